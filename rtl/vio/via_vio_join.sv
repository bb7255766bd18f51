// SPDX-License-Identifier: Apache-2.0
//
// Merges streams of several sources into one, one source at a time; the selection may change at any time, also within a message.
//
// Throughput: one beat a cycle. Latency: one cycle. Order: kept. With `Slice` readiness comes from a register; without, it is that of m,
// for sources that have a skid buffer of their own, and costs half the area. If the source of an open message is no longer selected, the
// message is ended by a beat of one zero byte with `last`; only then another message follows. A source must offer a message from its
// beginning. Sources that are not selected wait. Every output of m comes from a register. Misuse: more than one source
// selected (asserted).

module via_vio_join
  import via_pkg::*;
#(
  parameter int unsigned N = 2,
  parameter bit Slice = 1'b1
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic  [N-1:0] sel_i,         // level: selected source, one-hot or zero
  input  strm_t         s_i      [N],
  input  logic  [N-1:0] s_valid_i,
  output logic  [N-1:0] s_ready_o,
  output strm_t         m_o,
  output logic          m_valid_o,
  input  logic          m_ready_i,
  output logic          last_o,        // pulse: the last beat of a message enters
  output logic          still_o,       // nothing moves unless an input changes
  output logic          idle_o         // level: no message is open and no beat is held
);

  localparam bit NOk = param_in("via_vio_join N", N, 1, 32);

  logic open_q, close_q, lost, any, room, enter;
  logic [N-1:0] cur_q;
  logic [7:0] id_q;
  strm_t beat;

  // A lost source is noticed in one cycle, in which nothing enters; the message is closed from the next on, even if the source comes back
  // at once.
  logic [N-1:0] may;
  assign lost = open_q && (sel_i & cur_q) == '0;
  assign may = close_q ? '0 : open_q ? sel_i & cur_q : sel_i;
  assign any = (may & s_valid_i) != '0;
  assign s_ready_o = may & {N{room}};
  assign enter = (close_q || any) && room;
  assign last_o = enter && beat.last;

  // AND-OR: at most one source is selected.
  always_comb begin
    beat = '0;
    for (int unsigned i = 0; i < N; i++) beat |= s_i[i] & {$bits(strm_t) {sel_i[i]}};
    if (close_q) beat = '{id: id_q, last: 1'b1, keep: StrbW'(1), data: '0};
  end

  if (Slice) begin : gen_slice
    via_slice #(
      .T(strm_t)
    ) u_slice (
      .clk_i,
      .rst_ni,
      .s_i      (beat),
      .s_valid_i(close_q || any),
      .s_ready_o(room),
      .m_o,
      .m_valid_o,
      .m_ready_i
    );
  end else begin : gen_reg
    strm_t beat_q;
    logic  valid_q;
    assign room = !valid_q || m_ready_i;
    assign m_o = beat_q;
    assign m_valid_o = valid_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) valid_q <= 1'b0;
      else if (room) valid_q <= close_q || any;
    end
    always_ff @(posedge clk_i) if (room) beat_q <= beat;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q  <= 1'b0;
      close_q <= 1'b0;
    end else begin
      if (enter) open_q <= !beat.last;
      close_q <= close_q ? !room : lost;
    end
  end
  always_ff @(posedge clk_i) begin
    if (enter && !open_q) begin
      cur_q <= sel_i;
      id_q  <= beat.id;
    end
  end

  assign still_o = !enter && !(lost && !close_q) && !(m_valid_o && m_ready_i);
  assign idle_o  = !open_q && !m_valid_o;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i)
    if (rst_ni)
      assert ($onehot0(sel_i))
      else $error("two sources at once");
`endif

endmodule
