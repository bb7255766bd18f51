// SPDX-License-Identifier: Apache-2.0
//
// Merges the answers of `N` parts of a device onto the engine's answer and write streams.
// A part offers an answer and later its bytes; the bytes of all parts follow in the order in which the answers were taken. An answer is taken
// from its part when the engine takes it, so what the engine says of buffers counts for the part from the next cycle on.
// With `Early` the last part offers for one cycle, only while early_o is high: it need not wait a cycle for its turn. s_rsp_ready_o tells it, too,
// when the engine takes the answer.
// Throughput: one answer every second cycle and part, one beat a cycle. Latency: one cycle, also of beats.

module via_vdev_answers
  import via_virtio_pkg::*;
#(
  parameter int unsigned N = 2,
  parameter bit Early = 1'b0
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  vq_rsp_t          s_rsp_i      [N],
  input  logic     [N-1:0] s_rsp_valid_i,
  output logic     [N-1:0] s_rsp_ready_o,
  output logic             early_o,
  input  vq_beat_t         s_wr_i       [N],
  input  logic     [N-1:0] s_wr_valid_i,
  output logic     [N-1:0] s_wr_ready_o,
  output vq_rsp_t          rsp_o,
  output logic             rsp_valid_o,
  input  logic             rsp_ready_i,
  output vq_beat_t         wr_o,
  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  output logic             moving_o,          // an answer or a beat moved in the cycle before
  output logic             idle_o
);

  localparam bit NOk = via_pkg::param_in("via_vdev_answers N", N, 1, 16);

  localparam int unsigned NW = (N > 1) ? $clog2(N) : 1;
  localparam logic [N-1:0] Waits = Early ? N'((1 << (N - 1)) - 1) : '1;  // parts that wait for their turn

  // ---------------------------------------------------------------- answers
  logic [N-1:0] own_q, req, gnt, load;  // own_q: whose answer stands at the port
  logic [NW-1:0] idx, now;
  logic valid_q, new_q, turn_q, free, any, room, order_put, order_valid, order_pop;  // new_q: it came in the cycle before
  logic [2:0] orders;
  vq_rsp_t rsp_q, rsp;

  assign free = (!valid_q || rsp_ready_i) && room;
  assign req = s_rsp_valid_i & Waits & ~own_q;
  // The early part has the turn after another's answer.
  assign early_o = Early && free && (!any || turn_q);
  via_rr_arb #(
    .N(N)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (req),
    .ack_i  (free && !turn_q),
    .gnt_o  (gnt),
    .idx_o  (),
    .valid_o(any)
  );
  always_comb begin
    load = (free && !turn_q) ? gnt : '0;
    if (Early) load[N-1] = early_o && s_rsp_valid_i[N-1];
    // What nobody offers does no harm: it is not valid.
    rsp = '0;
    for (int unsigned i = 0; i < N; i++) if ((Early && i == N - 1) ? early_o : gnt[i] && !early_o) rsp |= s_rsp_i[i];
    idx = '0;
    for (int unsigned i = 0; i < N; i++) if (own_q[i]) idx |= NW'(i);
  end
  assign rsp_o = rsp_q;
  assign rsp_valid_o = valid_q;
  assign s_rsp_ready_o = own_q & {N{rsp_ready_i}};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      own_q   <= '0;
      valid_q <= 1'b0;
      turn_q  <= 1'b0;
      new_q   <= 1'b0;
    end else begin
      if (!valid_q || rsp_ready_i) begin
        own_q   <= load;
        valid_q <= load != '0;
      end
      new_q <= load != '0;
      if (free) turn_q <= Early && any && !turn_q;
    end
  end
  always_ff @(posedge clk_i) if (!valid_q || rsp_ready_i) rsp_q <= rsp;

  // ---------------------------------------------------------------- bytes
  vq_beat_t wr;
  logic wr_valid, wr_room;
  via_fifo #(
    .T    (logic [NW-1:0]),
    .Depth(4)
  ) u_order (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (idx),
    .s_valid_i(order_put),
    .s_ready_o(),
    .m_o      (now),
    .m_valid_o(order_valid),
    .m_ready_i(order_pop),
    .count_o  (orders)
  );
  assign order_put = new_q && rsp_q.len != '0;
  assign room = orders < 3'd3 || orders == 3'd3 && !new_q;

  assign wr = s_wr_i[now];
  assign wr_valid = order_valid && s_wr_valid_i[now];
  assign order_pop = wr_valid && wr_room && wr.last;
  always_comb begin
    s_wr_ready_o = '0;
    s_wr_ready_o[now] = order_valid && wr_room;
  end
  via_slice #(
    .T(vq_beat_t)
  ) u_wr (
    .clk_i,
    .rst_ni,
    .s_i      (wr),
    .s_valid_i(wr_valid),
    .s_ready_o(wr_room),
    .m_o      (wr_o),
    .m_valid_o(wr_valid_o),
    .m_ready_i(wr_ready_i)
  );

  always_ff @(posedge clk_i)
    moving_o <= load != '0 || valid_q && rsp_ready_i || wr_valid && wr_room || wr_valid_o && wr_ready_i || turn_q && free || new_q;
  assign idle_o = !any && !valid_q && !order_valid && !wr_valid_o;

endmodule
