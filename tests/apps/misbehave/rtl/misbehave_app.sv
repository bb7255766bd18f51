// SPDX-License-Identifier: Apache-2.0
//
// Test app: passes its stream on and reads one beat of memory at each start, except for the one violation selected by `mode`.

// verilog_format: off  // a line per channel
module misbehave_app import via_pkg::*; (
  input  logic    clk_i, rst_ni,
  input  strm_t   in_i,     input  logic in_valid_i,     output logic in_ready_o,
  output strm_t   out_o,    output logic out_valid_o,    input  logic out_ready_i,
  output axi_ax_t mem_ar_o, output logic mem_ar_valid_o, input  logic mem_ar_ready_i,
  input  axi_r_t  mem_r_i,  input  logic mem_r_valid_i,  output logic mem_r_ready_o,
  output axi_ax_t mem_aw_o, output logic mem_aw_valid_o, input  logic mem_aw_ready_i,
  output axi_w_t  mem_w_o,  output logic mem_w_valid_o,  input  logic mem_w_ready_i,
  input  axi_b_t  mem_b_i,  input  logic mem_b_valid_i,  output logic mem_b_ready_o,
  input  logic [63:0] base_i, bytes_i,
  input  logic [4:0]  mode_i,
  input  logic [63:0] offset_i,
  input  logic        start_i,
  output logic        done_o,
  output logic [31:0] errors_o, starts_o,
  output logic        busy_o
);
  // verilog_format: on

  typedef enum logic [4:0] {
    Good      = 5'd0,
    Fixed     = 5'd1,   // a FIXED burst
    Narrow    = 5'd2,   // beats of 4 bytes
    Unaligned = 5'd3,   // an address inside a beat
    Cross4k   = 5'd4,   // a burst over the end of a 4 KiB page
    EarlyLast = 5'd5,   // WLAST before the burst's end
    NoLast    = 5'd6,   // no WLAST at the burst's end
    NoData    = 5'd7,   // an AW without data
    Deaf      = 5'd8,   // never accepts R
    Forever   = 5'd9,   // reads again and again
    Lazy      = 5'd10,  // does nothing
    Busy      = 5'd11,  // does nothing and reports that it computes
    Swallow   = 5'd16,  // accepts input, produces nothing
    Hole      = 5'd17,  // bytes missing within a message
    Endless   = 5'd18,  // output that does not end, once input has come
    Shut      = 5'd19,  // accepts no input
    Short     = 5'd20,  // ends the message with its first beat
    Empty     = 5'd21,  // a last beat without bytes
    NewId     = 5'd22   // another id with every beat
  } mode_e;

  mode_e mode;
  assign mode = mode_e'(mode_i);

  // ---------------------------------------------------------------- streams
  logic [7:0] beats_q;
  logic pass, begun_q;
  assign pass = !(mode inside {Swallow, Endless, Shut});
  assign in_ready_o = pass ? out_ready_i : mode != Shut;
  assign out_valid_o = pass ? in_valid_i : mode == Endless && begun_q;

  always_comb begin
    out_o = in_i;
    if (mode == Hole) {out_o.last, out_o.keep[3]} = '0;
    if (mode == Endless) out_o = '{id: '0, last: 1'b0, keep: '1, data: '0};
    if (mode == Short) out_o.last = 1'b1;
    if (mode == Empty && in_i.last) out_o.keep = '0;
    if (mode == NewId) out_o.id = beats_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {begun_q, beats_q} <= '0;
    else begin
      if (in_valid_i) begun_q <= 1'b1;
      if (out_valid_o && out_ready_i) beats_q <= beats_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------- memory
  logic ar_q, aw_q, w_q, writes, answered;
  assign writes   = mode inside {EarlyLast, NoLast, NoData};
  assign answered = mem_r_valid_i && mem_r_ready_o && mem_r_i.last;

  always_comb begin
    mem_ar_o = '{id: '0, burst: 2'b01, size: 3'(BeatLog2), len: '0, addr: base_i + offset_i};
    unique case (mode)
      Fixed: mem_ar_o.burst = 2'b00;
      Narrow: mem_ar_o.size = 3'd2;
      Unaligned: mem_ar_o.addr[2] = 1'b1;
      Cross4k: {mem_ar_o.addr[11:0], mem_ar_o.len} = {12'hfc0, 8'd255};
      Deaf: mem_ar_o.len = 8'(4096 / StrbW - 1);
      EarlyLast: mem_ar_o.len = 8'd3;
      default: ;
    endcase
  end
  assign mem_aw_o = mem_ar_o;
  assign mem_w_o = '{last: mode == EarlyLast, strb: '1, data: '0};
  assign {mem_ar_valid_o, mem_aw_valid_o, mem_w_valid_o} = {ar_q, aw_q, w_q};
  assign mem_r_ready_o = mode != Deaf;
  assign mem_b_ready_o = 1'b1;
  assign busy_o = mode == Busy;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {ar_q, aw_q, w_q, done_o} <= '0;
      {errors_o, starts_o} <= '0;
    end else begin
      if (mem_ar_ready_i) ar_q <= 1'b0;
      if (mem_aw_ready_i) aw_q <= 1'b0;
      if (mem_w_ready_i) w_q <= 1'b0;
      if (answered && mem_r_i.resp[1]) errors_o <= errors_o + 1'b1;
      if (answered) done_o <= mode != Forever;
      if (start_i) begin
        done_o   <= 1'b0;
        starts_o <= starts_o + 1'b1;
      end
      if (start_i && !(mode inside {Lazy, Busy}) || answered && mode == Forever) begin
        ar_q <= !writes;
        aw_q <= writes;
        w_q  <= writes && mode != NoData;
      end
    end
  end

  logic unused;
  assign unused = ^{bytes_i, mem_r_i, mem_b_i, mem_b_valid_i};

endmodule
