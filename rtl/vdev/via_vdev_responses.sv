// SPDX-License-Identifier: Apache-2.0
//
// Merges the responses of `N` parts of a device onto the engine's response and write streams.
// A part offers a response and later its bytes; the bytes of all parts follow in the order in which the responses were accepted. A response
// is accepted from its part when the engine accepts it, so the state of the queues that the engine reports takes it into account from the
// next cycle on.
// With `Early` the last part offers its response for one cycle, while early_o is high, and need not wait for arbitration. s_rsp_ready_o
// tells it, too, when the engine accepts the response.
// Throughput: one response every second cycle and part, one beat a cycle. Latency: one cycle, also of beats. Order: round robin between
// parts. Misuse: bytes without a response wait for ever.

module via_vdev_responses
  import via_virtio_pkg::*;
#(
  parameter int unsigned N = 2,  // the last part is the early one
  parameter bit Early = 1'b0
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  vq_rsp_t          s_rsp_i      [N],  // response of each part
  input  logic     [N-1:0] s_rsp_valid_i,
  output logic     [N-1:0] s_rsp_ready_o,
  output logic             early_o,           // level: the early part may offer its response
  input  vq_beat_t         s_wr_i       [N],  // bytes of each part
  input  logic     [N-1:0] s_wr_valid_i,
  output logic     [N-1:0] s_wr_ready_o,
  output vq_rsp_t          rsp_o,             // response to the engine
  output logic             rsp_valid_o,
  input  logic             rsp_ready_i,
  output vq_beat_t         wr_o,              // its bytes
  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  output logic             moving_o,          // level: a response or a beat moved in the previous cycle
  output logic             idle_o             // level: no response and no beat is held
);

  localparam bit NOk = via_pkg::param_in("via_vdev_responses N", N, 1, 16);

  localparam int unsigned NW = (N > 1) ? $clog2(N) : 1;
  localparam logic [N-1:0] Waits = Early ? N'((1 << (N - 1)) - 1) : '1;  // parts that take part in arbitration

  // ---------------------------------------------------------------- responses
  logic [N-1:0] own_q, req, gnt, load;  // own_q: the part whose response is offered
  logic [NW-1:0] idx, now;
  logic valid_q, new_q, turn_q, free, any, room, order_put, order_valid, order_pop;  // new_q: it was loaded in the previous cycle
  logic [2:0] orders;
  vq_rsp_t rsp_q, rsp;

  assign free = (!valid_q || rsp_ready_i) && room;
  assign req = s_rsp_valid_i & Waits & ~own_q;
  // The early part gets its turn after each response of another part.
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
    // A payload without valid does no harm.
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
