// SPDX-License-Identifier: Apache-2.0
//
// The port of a queue engine as a gate, without bound: via_vq_rdmux and via_vq_wrmux begin no access while `enable_i` is low, hold what they
// have offered, never send W before its AW was accepted, and report that they have drained when nothing is offered or in flight, until
// `enable_i` rises.
//
// Assumed: sources hold what they offer until it is accepted and always accept R; R ends a read that was accepted two cycles before or earlier, B a write whose address and
// data were; no more writes are in flight than the multiplexer has room to follow. `enable_i` may change in every cycle.

module vq_gate
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input logic                 clk_i,
  input logic                 rst_ni,
  input logic                 enable_i,
  input axi_ax_t              s_ar_i      [2],
  input logic    [       1:0] s_ar_valid_i,
  input axi_ax_t              s_aw_i      [2],
  input logic    [       1:0] s_aw_valid_i,
  input axi_w_t               s_w_i       [2],
  input logic    [       1:0] s_w_valid_i,
  input logic    [      63:0] ev_addr_i,
  input logic    [      15:0] ev_data_i,
  input logic    [QueueW-1:0] ev_queue_i,
  input logic                 ev_valid_i,
  input logic                 m_ar_ready_i,
  input axi_r_t               m_r_i,
  input logic                 m_r_valid_i,
  input logic                 m_aw_ready_i,
  input logic                 m_w_ready_i,
  input axi_b_t               m_b_i,
  input logic                 m_b_valid_i
);

  // as in via_vq_wrmux
  typedef enum logic [1:0] {
    AwOpen,
    AwPayload,
    AwUsed,
    AwEvent
  } aw_turn_e;
  localparam int unsigned Room = 2;  // writes that the blocks follow, and one more
  localparam int unsigned RdRoom = 4;  // reads that they follow
  typedef logic [3:0] count_t;

  axi_ax_t m_ar, m_aw;
  axi_w_t m_w;
  logic [1:0] s_ar_ready, s_aw_ready, s_w_ready;
  logic rd_drained, wr_drained, m_ar_valid, m_aw_valid, m_w_valid, ev_ready;

  via_vq_rdmux #(
    .N          (2),
    .Outstanding(RdRoom)
  ) rd (
    .clk_i,
    .rst_ni,
    .enable_i,
    .drained_o   (rd_drained),
    .s_ar_i,
    .s_ar_valid_i,
    .s_ar_ready_o(s_ar_ready),
    .s_r_o       (),
    .s_r_valid_o (),
    .s_r_ready_i (2'b11),
    .m_ar_o      (m_ar),
    .m_ar_valid_o(m_ar_valid),
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o (),
    .idle_o      ()
  );
  via_vq_wrmux #(
    .Window(Room)
  ) wr (
    .clk_i,
    .rst_ni,
    .enable_i,
    .drained_o      (wr_drained),
    .s_aw_i,
    .s_aw_valid_i,
    .s_aw_ready_o   (s_aw_ready),
    .s_w_i,
    .s_w_valid_i,
    .s_w_ready_o    (s_w_ready),
    .s_b_o          (),
    .s_b_valid_o    (),
    .ev_addr_i,
    .ev_data_i,
    .ev_queue_i,
    .ev_valid_i,
    .ev_ready_o     (ev_ready),
    .ev_busy_o      (),
    .ev_busy_queue_o(),
    .ev_err_o       (),
    .m_aw_o         (m_aw),
    .m_aw_valid_o   (m_aw_valid),
    .m_aw_ready_i,
    .m_w_o          (m_w),
    .m_w_valid_o    (m_w_valid),
    .m_w_ready_i,
    .m_b_i,
    .m_b_valid_i,
    .m_b_ready_o    (),
    .still_o        (),
    .idle_o         ()
  );

  // What is offered stays as it is until accepted.
  via_hs_checker #(
    .Width($bits(axi_ax_t))
  ) u_ar_held (
    .clk_i,
    .rst_ni,
    .s_i    (m_ar),
    .valid_i(m_ar_valid),
    .ready_i(m_ar_ready_i)
  );
  via_hs_checker #(
    .Width($bits(axi_ax_t))
  ) u_aw_held (
    .clk_i,
    .rst_ni,
    .s_i    (m_aw),
    .valid_i(m_aw_valid),
    .ready_i(m_aw_ready_i)
  );
  via_hs_checker #(
    .Width($bits(axi_w_t))
  ) u_w_held (
    .clk_i,
    .rst_ni,
    .s_i    (m_w),
    .valid_i(m_w_valid),
    .ready_i(m_w_ready_i)
  );

  // What the ports have seen since reset, modulo 16, and what was offered in the cycle before and not accepted.
  logic begun_q = 1'b0;
  logic ar_wait_q, aw_wait_q, enable_q, rd_drained_q, wr_drained_q;
  axi_ax_t m_ar_q, m_aw_q;
  logic [1:0] s_ar_wait_q, s_aw_wait_q, s_w_wait_q;
  axi_ax_t s_ar_q[2];
  axi_ax_t s_aw_q[2];
  axi_w_t  s_w_q [2];
  count_t ar_q, ar_late_q, r_q, aw_q, w_q, b_q;  // addresses accepted, last beats and responses
  logic aw_take;
  aw_turn_e turn;
  assign turn = aw_turn_e'(wr.turn_q);
  assign aw_take = m_aw_valid && m_aw_ready_i;

  // The sources of the writes without response, and of those whose data is not complete, in order: in the registers, then in the FIFOs. Each is
  // one, avail_event once at most, and the latter are the last of the former.
  logic [Room:0][2:0] b_turn, w_turn;
  logic [1:0] done;  // writes whose data is complete, without response
  logic turns_ok;
  logic [2:0] b_events, w_events;
  assign done = 2'(w_q - b_q);
  always_comb begin
    b_turn = '0;
    w_turn = '0;
    b_turn[0] = wr.b_turn_q;
    w_turn[0] = wr.w_turn_q;
    for (int unsigned i = 0; i < Room; i++) begin
      if (2'(i) < wr.u_b.count_q) b_turn[i+1] = wr.u_b.gen_lut.mem[1'(wr.u_b.rptr_q+1'(i))];
      if (2'(i) < wr.u_w.count_q) w_turn[i+1] = wr.u_w.gen_lut.mem[1'(wr.u_w.rptr_q+1'(i))];
    end
    turns_ok = 1'b1;
    b_events = '0;
    w_events = '0;
    for (int unsigned i = 0; i <= Room; i++) begin
      turns_ok &= count_t'(i) < count_t'(aw_q - b_q) ? $onehot(b_turn[i]) : b_turn[i] == '0;
      turns_ok &= count_t'(i) >= count_t'(aw_q - w_q) ? w_turn[i] == '0 : w_turn[i] == b_turn[2'(i)+done];
      b_events += 3'(b_turn[i][2]);
      w_events += 3'(w_turn[i][2]);
    end
  end

  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    ar_wait_q    <= rst_ni && m_ar_valid && !m_ar_ready_i;
    aw_wait_q    <= rst_ni && m_aw_valid && !m_aw_ready_i;
    s_ar_wait_q  <= {2{rst_ni}} & s_ar_valid_i & ~s_ar_ready;
    s_aw_wait_q  <= {2{rst_ni}} & s_aw_valid_i & ~s_aw_ready;
    s_w_wait_q   <= {2{rst_ni}} & s_w_valid_i & ~s_w_ready;
    enable_q     <= enable_i;
    rd_drained_q <= rst_ni && rd_drained;
    wr_drained_q <= rst_ni && wr_drained;
    m_ar_q       <= m_ar;
    m_aw_q       <= m_aw;
    s_ar_q       <= s_ar_i;
    s_aw_q       <= s_aw_i;
    s_w_q        <= s_w_i;
    if (!rst_ni) begin
      ar_q <= '0;
      ar_late_q <= '0;
      r_q <= '0;
      aw_q <= '0;
      w_q <= '0;
      b_q <= '0;
    end else begin
      ar_q <= ar_q + count_t'(m_ar_valid && m_ar_ready_i);
      ar_late_q <= ar_q;
      r_q <= r_q + count_t'(m_r_valid_i && m_r_i.last);
      aw_q <= aw_q + count_t'(aw_take);
      w_q <= w_q + count_t'(m_w_valid && m_w_ready_i && m_w.last);
      b_q <= b_q + count_t'(m_b_valid_i);

      // ---------------------------------------------------------------- assumed
      for (int unsigned i = 0; i < 2; i++) begin
        if (s_ar_wait_q[i]) assume (s_ar_valid_i[i] && s_ar_i[i] == s_ar_q[i]);
        if (s_aw_wait_q[i]) assume (s_aw_valid_i[i] && s_aw_i[i] == s_aw_q[i]);
        if (s_w_wait_q[i]) assume (s_w_valid_i[i] && s_w_i[i] == s_w_q[i]);
      end
      if (m_r_valid_i) assume (r_q != ar_late_q);
      if (m_b_valid_i) assume (b_q != aw_q && b_q != w_q);
      if (aw_take) assume (wr.room);

      // ---------------------------------------------------------------- proved
      if (!enable_i) begin
        a_ar_begins : assert (!m_ar_valid || ar_wait_q);
        a_aw_begins : assert (!m_aw_valid || aw_wait_q);
      end
      if (m_w_valid) a_w_follows : assert (w_q != aw_q);
      if (rd_drained && !enable_i) a_rd_drained : assert (!m_ar_valid && r_q == ar_q);
      if (wr_drained && !enable_i) a_wr_drained : assert (!m_aw_valid && !m_w_valid && b_q == aw_q && w_q == aw_q);
      if (rd_drained_q && !enable_q) a_rd_stays : assert (rd_drained);
      if (wr_drained_q && !enable_q) a_wr_stays : assert (wr_drained);
      a_one_read : assert ((s_ar_ready & s_ar_valid_i) != 2'b11 && |(s_ar_ready & s_ar_valid_i) == (m_ar_valid && m_ar_ready_i));
      a_one : assert ((s_aw_ready & s_aw_valid_i) != 2'b11 && |(s_aw_ready & s_aw_valid_i) == (aw_take && turn != AwEvent));

      // ---------------------------------------------------------------- what holds in every cycle, for the induction
      i_shown : assert (rd.shown_q == ar_wait_q && wr.shown_q == aw_wait_q);
      i_drained : assert ((!rd_drained || !rd.shown_q && ar_q == r_q) && (!wr_drained || !wr.shown_q && aw_q == b_q));
      i_offered : assert (!ar_wait_q || (rd.open_q & s_ar_wait_q) != '0 && m_ar_q.addr == s_ar_q[rd.open_q[1]].addr);
      i_one_turn : assert (ar_wait_q ? $onehot(rd.open_q) : rd.open_q == '1);
      i_owed :
      assert (count_t'(rd.u_owner.count_q) + count_t'(rd.take_q) == count_t'(ar_q - r_q) && count_t'(rd.take_q) == count_t'(ar_q - ar_late_q));
      i_read_room :
      assert (count_t'(ar_q - r_q) + count_t'(ar_wait_q) <= count_t'(RdRoom) && (!rd.room_q || count_t'(ar_q - r_q) + count_t'(ar_wait_q) < count_t'(RdRoom)));
      i_room : assert (rd.u_owner.ready_q == (rd.u_owner.count_q != 3'(RdRoom)) && wr.u_b.ready_q == (wr.u_b.count_q != 2'(Room)));
      i_writes : assert (count_t'(wr.u_b.count_q) + count_t'(wr.b_turn_q != '0) == count_t'(aw_q - b_q) && wr.u_b.count_q <= 2'(Room));
      i_data : assert (count_t'(wr.u_w.count_q) + count_t'(wr.w_turn_q != '0) == count_t'(aw_q - w_q));
      i_behind : assert (count_t'(aw_q - w_q) <= count_t'(aw_q - b_q));
      i_data_room : assert (wr.u_w.ready_q == (wr.u_w.count_q != 2'(Room)));
      i_heads : assert ((wr.b_turn_q != '0 || wr.u_b.count_q == '0) && (wr.w_turn_q != '0 || wr.u_w.count_q == '0));
      i_turns : assert (turns_ok);
      i_ptrs : assert (1'(wr.u_b.wptr_q - wr.u_b.rptr_q) == wr.u_b.count_q[0] && 1'(wr.u_w.wptr_q - wr.u_w.rptr_q) == wr.u_w.count_q[0]);
      i_once : assert (b_events == 3'(wr.ev_busy_q && !wr.ev_aw_q) && w_events == 3'(wr.ev_w_q && !wr.ev_aw_q));
      i_states : assert ((!wr.ev_aw_q || wr.ev_w_q) && (!wr.ev_w_q || wr.ev_busy_q));
      i_turn : assert (!(turn inside {AwPayload, AwUsed}) || aw_wait_q);
      i_source : assert ((turn != AwPayload || s_aw_wait_q[0]) && (turn != AwUsed || s_aw_wait_q[1]));
      i_open : assert (turn != AwOpen || !aw_wait_q && !wr.ev_aw_q);
      i_event : assert (turn != AwEvent || wr.ev_aw_q);
      i_same : assert (!aw_wait_q || turn == AwEvent || m_aw_q.addr == s_aw_q[turn==AwUsed].addr);

      c_shut : cover (!enable_i && aw_wait_q && ar_wait_q && w_q != aw_q);
      c_drained : cover (rd_drained && wr_drained && aw_q == 2 && ar_q == 2);
    end
  end

endmodule
