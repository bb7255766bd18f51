// SPDX-License-Identifier: Apache-2.0
//
// The memory port of an app in lines of 64 bytes, whatever the width of a beat: several readers, one writer.
//
//   requests of the readers -> arbiter -> AR, the reader in its id      R -> beats of a line -> line_o, for the reader of its id
//   lines to write -> AW, and beats of W                                B -> counted
//
// Throughput: a beat a cycle each way, a request a cycle. Latency: a cycle for a request and two for a line, besides that of the memory.
// Order: that of the bus, so kept for each reader. R and B never wait: a reader asks for no more than it can take. Misuse: a request that
// crosses 4 KiB, or is longer than MaxLines, is an error of the slot.

module mem_lines
  import via_pkg::*;
#(
  parameter int unsigned Readers = 2,
  localparam int unsigned LenW = 6,
  localparam int unsigned ReaderW = Readers > 1 ? $clog2(Readers) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  // The app's port.
  output axi_ax_t               mem_ar_o,
  output logic                  mem_ar_valid_o,
  input  logic                  mem_ar_ready_i,
  input  axi_r_t                mem_r_i,
  input  logic                  mem_r_valid_i,
  output logic                  mem_r_ready_o,
  output axi_ax_t               mem_aw_o,
  output logic                  mem_aw_valid_o,
  input  logic                  mem_aw_ready_i,
  output axi_w_t                mem_w_o,
  output logic                  mem_w_valid_o,
  input  logic                  mem_w_ready_i,
  input  axi_b_t                mem_b_i,
  input  logic                  mem_b_valid_i,
  output logic                  mem_b_ready_o,
  // Readers. Addresses are multiples of 64; a request has rd_len_i + 1 lines.
  input  logic    [       63:0] rd_addr_i     [Readers],
  input  logic    [   LenW-1:0] rd_len_i      [Readers],
  input  logic    [Readers-1:0] rd_valid_i,
  output logic    [Readers-1:0] rd_ready_o,
  output logic    [      511:0] line_o,
  output logic                  line_error_o,             // with line_valid_o: it could not be read
  output logic    [Readers-1:0] line_valid_o,             // one-hot: a pulse
  // The writer: one line, whole or in parts.
  input  logic    [       63:0] wr_addr_i,
  input  logic    [      511:0] wr_line_i,
  input  logic    [       63:0] wr_strb_i,
  input  logic                  wr_valid_i,
  output logic                  wr_ready_o,
  output logic                  wr_idle_o,                // level: every write is answered
  output logic    [        1:0] errors_o                  // bursts answered with an error in this cycle
);

  localparam bit ReadersOk = param_in("mem_lines Readers", Readers, 1, 16);

  localparam int unsigned LineBeats = 512 / DataW;
  localparam int unsigned BeatW = LineBeats > 1 ? $clog2(LineBeats) : 1;
  localparam int unsigned Writes = 128;  // in flight
  localparam int unsigned CountW = $clog2(Writes + 1);

  // ---------------------------------------------------------------- requests
  logic any, take, ar_valid_q;
  logic [Readers-1:0] grant;
  logic [ReaderW-1:0] from;
  axi_ax_t ar_q;

  via_rr_arb #(
    .N(Readers)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (rd_valid_i),
    .ack_i  (take),
    .gnt_o  (grant),
    .idx_o  (from),
    .valid_o(any)
  );

  assign take = any && (!ar_valid_q || mem_ar_ready_i);
  assign rd_ready_o = take ? grant : '0;
  assign mem_ar_o = ar_q;
  assign mem_ar_valid_o = ar_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ar_valid_q <= 1'b0;
    else if (take) ar_valid_q <= 1'b1;
    else if (mem_ar_ready_i) ar_valid_q <= 1'b0;
    if (take) begin
      ar_q <= '{
          id: IdW'(from),
          burst: BurstIncr,
          size: 3'(BeatLog2),
          len: 8'((32'(rd_len_i[from]) + 1) * LineBeats - 1),
          addr: rd_addr_i[from]
      };
    end
  end

  // ---------------------------------------------------------------- lines
  logic [511:0] line_q;
  logic r_error, line_bad_q, r_bad_q, bad, whole;
  logic [BeatW-1:0] r_beat_q;

  assign mem_r_ready_o = 1'b1;
  assign r_error = mem_r_i.resp[1];
  assign whole = LineBeats == 1 || r_beat_q == BeatW'(LineBeats - 1);
  assign bad = r_error || line_bad_q && r_beat_q != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_beat_q <= '0;
      r_bad_q  <= 1'b0;
    end else if (mem_r_valid_i) begin
      r_beat_q <= LineBeats == 1 ? '0 : r_beat_q + 1'b1;
      r_bad_q  <= !mem_r_i.last && (r_bad_q || r_error);
    end
    if (!rst_ni) line_valid_o <= '0;
    else line_valid_o <= Readers'(mem_r_valid_i && whole) << mem_r_i.id[ReaderW-1:0];
    if (mem_r_valid_i) begin
      line_q       <= 512'({mem_r_i.data, line_q} >> DataW);
      line_bad_q   <= bad;
      line_error_o <= bad;
    end
  end
  assign line_o = line_q;

  // ---------------------------------------------------------------- writes
  // The beats of a line behind its address.
  logic aw_valid_q, w_valid_q, w_last, w_done;
  logic [BeatW-1:0] w_beat_q;
  logic [63:0] aw_addr_q, strb_q;
  logic [511:0] data_q;
  logic [CountW-1:0] writes_q;

  assign w_last = LineBeats == 1 || w_beat_q == BeatW'(LineBeats - 1);
  assign w_done = !w_valid_q || mem_w_ready_i && w_last;
  assign wr_ready_o = (!aw_valid_q || mem_aw_ready_i) && w_done && writes_q != CountW'(Writes);
  assign mem_aw_valid_o = aw_valid_q;
  assign mem_aw_o = '{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: 8'(LineBeats - 1), addr: aw_addr_q};
  assign mem_w_valid_o = w_valid_q;
  assign mem_w_o = '{last: w_last, strb: strb_q[StrbW-1:0], data: data_q[DataW-1:0]};
  assign mem_b_ready_o = 1'b1;
  assign wr_idle_o = writes_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_valid_q <= 1'b0;
      w_valid_q  <= 1'b0;
      w_beat_q   <= '0;
      writes_q   <= '0;
    end else begin
      if (wr_ready_o) aw_valid_q <= wr_valid_i;
      else if (mem_aw_ready_i) aw_valid_q <= 1'b0;
      if (wr_ready_o && wr_valid_i) w_valid_q <= 1'b1;
      else if (w_done) w_valid_q <= 1'b0;
      if (w_valid_q && mem_w_ready_i) w_beat_q <= w_last ? '0 : w_beat_q + 1'b1;
      if ((wr_valid_i && wr_ready_o) != mem_b_valid_i) writes_q <= mem_b_valid_i ? writes_q - 1'b1 : writes_q + 1'b1;
    end
    if (wr_valid_i && wr_ready_o) begin
      aw_addr_q <= wr_addr_i;
      data_q    <= wr_line_i;
      strb_q    <= wr_strb_i;
    end else if (w_valid_q && mem_w_ready_i) begin
      data_q <= data_q >> (DataW % 512);
      strb_q <= strb_q >> (StrbW % 64);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) errors_o <= '0;
    else errors_o <= 2'(mem_r_valid_i && mem_r_i.last && (r_error || r_bad_q)) + 2'(mem_b_valid_i && mem_b_i.resp[1]);
  end

endmodule
