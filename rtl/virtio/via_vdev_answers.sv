// SPDX-License-Identifier: Apache-2.0
//
// Merges the answers of `N` parts of a device onto the engine's answer and write streams.
// A part offers an answer and later its bytes; the bytes of all parts follow in the order in which the answers were taken.
// Throughput: one answer a cycle, one beat a cycle. Latency: none.

module via_vdev_answers
  import via_virtio_pkg::*;
#(
  parameter int unsigned N = 2
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  vq_rsp_t          s_rsp_i      [N],
  input  logic     [N-1:0] s_rsp_valid_i,
  output logic     [N-1:0] s_rsp_ready_o,
  input  vq_beat_t         s_wr_i       [N],
  input  logic     [N-1:0] s_wr_valid_i,
  output logic     [N-1:0] s_wr_ready_o,
  output vq_rsp_t          rsp_o,
  output logic             rsp_valid_o,
  input  logic             rsp_ready_i,
  output vq_beat_t         wr_o,
  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  output logic             moving_o,          // an answer or a beat moves
  output logic             idle_o
);

  localparam bit NOk = via_pkg::param_in("via_vdev_answers N", N, 1, 16);

  localparam int unsigned NW = (N > 1) ? $clog2(N) : 1;

  // A grant stays until it is taken: the payload offered does not change.
  logic [N-1:0] gnt, req, lock_q;
  logic [NW-1:0] idx, now;
  logic any, room, order_valid, order_pop;
  assign req = |lock_q ? lock_q : s_rsp_valid_i;
  via_rr_arb #(
    .N(N)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (req),
    .ack_i  (rsp_valid_o && rsp_ready_i),
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(any)
  );
  assign rsp_o = s_rsp_i[idx];
  assign rsp_valid_o = any && room;
  assign s_rsp_ready_o = (room && rsp_ready_i) ? gnt : '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) lock_q <= '0;
    else lock_q <= (rsp_valid_o && !rsp_ready_i) ? gnt : '0;
  end

  via_fifo #(
    .T    (logic [NW-1:0]),
    .Depth(4)
  ) u_order (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (idx),
    .s_valid_i(rsp_valid_o && rsp_ready_i && rsp_o.len != '0),
    .s_ready_o(room),
    .m_o      (now),
    .m_valid_o(order_valid),
    .m_ready_i(order_pop),
    .count_o  ()
  );

  assign wr_o = s_wr_i[now];
  assign wr_valid_o = order_valid && s_wr_valid_i[now];
  assign order_pop = wr_valid_o && wr_ready_i && wr_o.last;
  always_comb begin
    s_wr_ready_o = '0;
    s_wr_ready_o[now] = order_valid && wr_ready_i;
  end

  assign moving_o = rsp_valid_o && rsp_ready_i || wr_valid_o && wr_ready_i;
  assign idle_o   = !any && !order_valid;

endmodule
