// SPDX-License-Identifier: Apache-2.0
//
// Sends a few transfers that obey the rules past the checkers; with +fault=NAME it breaks the one rule of that name. Prints "by the rules"
// at the end; a rule that is broken ends the simulation before.

module via_checkers_tb
  import via_pkg::*;
;

  logic clk = 1'b0, rst_n = 1'b0;
  typedef enum {
    Ar,
    R,
    Aw,
    W,
    B,
    S,
    H
  } channel_e;
  axi_ax_t ar, aw;
  axi_r_t r;
  axi_w_t w;
  axi_b_t b;
  strm_t s;
  logic [11:0] h;  // payload of the handshake that is neither AXI nor a stream
  logic [6:0] valid, ready;  // by channel_e
  string fault;

  // One checker with everything in order; one that lets ids overtake each other, but no read overtake a write of its function.
  for (genvar i = 0; i < 2; i++) begin : gen_order
    via_axi_checker #(
      .InOrder    (i == 0),
      .Behind     (i == 1),
      .Outstanding(4)
    ) u_axi (
      .clk_i     (clk),
      .rst_ni    (rst_n),
      .ar_i      (ar),
      .ar_valid_i(valid[Ar]),
      .ar_ready_i(ready[Ar]),
      .r_i       (r),
      .r_valid_i (valid[R]),
      .r_ready_i (ready[R]),
      .aw_i      (aw),
      .aw_valid_i(valid[Aw]),
      .aw_ready_i(ready[Aw]),
      .w_i       (w),
      .w_valid_i (valid[W]),
      .w_ready_i (ready[W]),
      .b_i       (b),
      .b_valid_i (valid[B]),
      .b_ready_i (ready[B])
    );
  end
  via_strm_checker u_strm (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .s_i    (s),
    .valid_i(valid[S]),
    .ready_i(ready[S])
  );
  via_hs_checker #(
    .Width(12)
  ) u_hs (
    .clk_i  (clk),
    .rst_ni (rst_n),
    .s_i    (h),
    .valid_i(valid[H]),
    .ready_i(ready[H])
  );

  function automatic bit is_fault(input string name);
    return fault == name;
  endfunction

  task automatic tick;
    #1 clk = 1'b1;
    #1 clk = 1'b0;
  endtask

  /// The two cycles in which a beat is offered and accepted; a fault is a change in between.
  task automatic offer(input channel_e c);
    valid[c] = 1'b1;
    ready[c] = 1'b0;
    tick();
    case (fault)
      "ar_stable": if (c == Ar) ar.addr += 64'h1000;
      "r_stable": if (c == R) r.data = '0;
      "aw_stable": if (c == Aw) valid[Aw] = 1'b0;
      "w_stable": if (c == W) w.strb = '0;
      "b_stable": if (c == B) b.resp = RespSlvErr;
      "stable": if (c == S) s.data = '1;
      "stays": if (c == H) valid[H] = 1'b0;
      "same": if (c == H) h += 1'b1;
      default: ;
    endcase
    ready[c] = 1'b1;
    tick();
    valid[c] = 1'b0;
  endtask

  /// An address that obeys the rules, except for the fault chosen.
  function automatic axi_ax_t address(input string channel, input logic [IdW-1:0] id);
    axi_ax_t ax;
    ax = '{id: id, burst: BurstIncr, size: 3'(BeatLog2), len: 8'd1, addr: 64'h1000};
    if (is_fault({channel, "_incr"})) ax.burst = 2'b10;
    if (is_fault({channel, "_size"})) ax.size = 3'd0;
    if (is_fault({channel, "_aligned"})) ax.addr = 64'h1001;
    if (is_fault({channel, "_page"})) ax.addr = 64'h2000 - 64'(StrbW);
    return ax;
  endfunction

  task automatic read(input logic [IdW-1:0] id);
    ar = address("ar", id);
    offer(Ar);
  endtask

  task automatic read_beat(input logic [IdW-1:0] id, input logic last);
    r = '{id: id, resp: RespOkay, last: last, data: '1};
    offer(R);
  endtask

  task automatic write_address(input logic [IdW-1:0] id);
    aw = address("aw", id);
    offer(Aw);
  endtask

  task automatic write_beat(input logic last);
    w = '{last: last, strb: '1, data: '0};
    offer(W);
  endtask

  task automatic respond(input logic [IdW-1:0] id);
    b = '{id: id, resp: RespOkay};
    offer(B);
  endtask

  task automatic send(input logic [7:0] id, input logic last, input logic [StrbW-1:0] keep);
    s = '{id: id, last: last, keep: keep, data: '0};
    offer(S);
  endtask

  initial begin
    if (!$value$plusargs("fault=%s", fault)) fault = "";
    {valid, ready} = '0;
    tick();
    tick();
    rst_n = 1'b1;
    tick();

    // Two reads in flight, of different ids.
    if (is_fault("r_asked")) read_beat(6'd5, 1'b0);
    read(6'd5);
    read(6'd9);
    if (is_fault("ar_few")) repeat (3) read(6'd5);
    if (is_fault("overtakes")) begin
      read_beat(6'd9, 1'b0);
      read_beat(6'd9, 1'b1);
    end
    read_beat(is_fault("r_id") ? 6'd6 : 6'd5, is_fault("r_last"));
    read_beat(6'd5, 1'b1);
    read_beat(6'd9, 1'b0);
    read_beat(6'd9, 1'b1);

    // A write whose data comes before its address, and two whose data comes after it.
    write_beat(is_fault("w_early"));
    if (!is_fault("w_early")) write_beat(1'b1);
    write_address(6'd1);
    respond(6'd1);
    write_address(6'd5);
    write_beat(is_fault("w_last"));
    if (is_fault("b_whole")) respond(6'd5);
    write_address(6'd9);
    if (is_fault("aw_few")) repeat (3) write_address(6'd5);
    write_beat(1'b1);
    write_beat(1'b0);
    respond(is_fault("b_id") ? 6'd6 : 6'd5);
    write_beat(1'b1);
    respond(6'd9);

    // A read after a write of its function waits for B; one of another function, and one before the write, do not.
    read(6'd1);
    write_address(6'd2);
    write_beat(1'b0);
    write_beat(1'b1);
    read(6'd0);
    read(6'd7);
    read_beat(6'd1, 1'b0);
    read_beat(6'd1, 1'b1);
    if (!is_fault("r_behind")) respond(6'd2);
    read_beat(6'd0, 1'b0);
    read_beat(6'd0, 1'b1);
    read_beat(6'd7, 1'b0);
    read_beat(6'd7, 1'b1);

    // A message of two beats.
    send(8'd3, is_fault("some"), is_fault("run") ? StrbW'(5) : is_fault("full") ? StrbW'(7) : is_fault("some") ? '0 : '1);
    send(8'd4, 1'b1, StrbW'(7));  // of another message

    // Two transfers of the plain handshake; the payload may change once one is accepted, and while nothing is offered.
    h = 12'h123;
    offer(H);
    h = 12'h456;
    tick();
    h = 12'h789;
    offer(H);
    $display("by the rules");
    $finish;
  end

endmodule
