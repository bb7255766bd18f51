// SPDX-License-Identifier: Apache-2.0
//
// via_fn_gate, without bound: with `enable_i` low no address begins and what was shown stays shown; W never runs ahead of AW; drained means that
// nothing is shown or in flight, and stays so until the gate opens.
//
// Assumed: the function holds what it offers until it is accepted; R ends a read that was accepted, B a write whose address and data were; fewer
// bursts are in flight than the counters can count (10 bits in the card, 4 here). The driver may move `enable_i` in every cycle.

module fn_gate
  import via_pkg::*;
(
  input logic    clk_i,
  input logic    rst_ni,
  input logic    enable_i,
  input axi_ax_t s_ar_i,
  input logic    s_ar_valid_i,
  input logic    s_r_ready_i,
  input axi_ax_t s_aw_i,
  input logic    s_aw_valid_i,
  input axi_w_t  s_w_i,
  input logic    s_w_valid_i,
  input logic    s_b_ready_i,
  input logic    m_ar_ready_i,
  input axi_r_t  m_r_i,
  input logic    m_r_valid_i,
  input logic    m_aw_ready_i,
  input logic    m_w_ready_i,
  input axi_b_t  m_b_i,
  input logic    m_b_valid_i
);

  localparam int unsigned CountW = 4;
  typedef logic [CountW-1:0] count_t;

  axi_ax_t m_ar, m_aw;
  axi_w_t m_w;
  axi_r_t s_r;
  axi_b_t s_b;
  logic drained, s_ar_ready, s_r_valid, s_aw_ready, s_w_ready, s_b_valid, m_ar_valid, m_r_ready, m_aw_valid, m_w_valid, m_b_ready;

  via_fn_gate #(
    .CountW(CountW)
  ) dut (
    .clk_i,
    .rst_ni,
    .enable_i,
    .drained_o   (drained),
    .s_ar_i,
    .s_ar_valid_i,
    .s_ar_ready_o(s_ar_ready),
    .s_r_o       (s_r),
    .s_r_valid_o (s_r_valid),
    .s_r_ready_i,
    .s_aw_i,
    .s_aw_valid_i,
    .s_aw_ready_o(s_aw_ready),
    .s_w_i,
    .s_w_valid_i,
    .s_w_ready_o (s_w_ready),
    .s_b_o       (s_b),
    .s_b_valid_o (s_b_valid),
    .s_b_ready_i,
    .m_ar_o      (m_ar),
    .m_ar_valid_o(m_ar_valid),
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o (m_r_ready),
    .m_aw_o      (m_aw),
    .m_aw_valid_o(m_aw_valid),
    .m_aw_ready_i,
    .m_w_o       (m_w),
    .m_w_valid_o (m_w_valid),
    .m_w_ready_i,
    .m_b_i,
    .m_b_valid_i,
    .m_b_ready_o (m_b_ready)
  );

  // Payloads and valids stay, addresses are as section 1 of docs/interfaces.md has them: assumed of the function and of memory, proved of the gate.
  via_axi_checker #(
    .Responses(1'b0),
    .AssumeReq(1'b1)
  ) u_s (
    .clk_i,
    .rst_ni,
    .ar_i(s_ar_i),
    .ar_valid_i(s_ar_valid_i),
    .ar_ready_i(s_ar_ready),
    .r_i(s_r),
    .r_valid_i(s_r_valid),
    .r_ready_i(s_r_ready_i),
    .aw_i(s_aw_i),
    .aw_valid_i(s_aw_valid_i),
    .aw_ready_i(s_aw_ready),
    .w_i(s_w_i),
    .w_valid_i(s_w_valid_i),
    .w_ready_i(s_w_ready),
    .b_i(s_b),
    .b_valid_i(s_b_valid),
    .b_ready_i(s_b_ready_i)
  );
  via_axi_checker #(
    .Responses(1'b0),
    .AssumeRsp(1'b1)
  ) u_m (
    .clk_i,
    .rst_ni,
    .ar_i(m_ar),
    .ar_valid_i(m_ar_valid),
    .ar_ready_i(m_ar_ready_i),
    .r_i(m_r_i),
    .r_valid_i(m_r_valid_i),
    .r_ready_i(m_r_ready),
    .aw_i(m_aw),
    .aw_valid_i(m_aw_valid),
    .aw_ready_i(m_aw_ready_i),
    .w_i(m_w),
    .w_valid_i(m_w_valid),
    .w_ready_i(m_w_ready_i),
    .b_i(m_b_i),
    .b_valid_i(m_b_valid_i),
    .b_ready_i(m_b_ready)
  );

  // What the ports have seen since reset, modulo 2^CountW.
  logic begun_q = 1'b0;
  logic ar_wait_q, aw_wait_q, w_wait_q, drained_q;  // offered to memory in the cycle before and not accepted; drained then
  logic s_ar_wait_q, s_aw_wait_q, s_w_wait_q;  // the same of the function
  axi_ax_t s_ar_q, s_aw_q;
  axi_w_t s_w_q;
  count_t ar_q, r_q, aw_q, w_q, b_q;  // addresses taken, last beats and answers taken
  count_t aw_shown;
  assign aw_shown = aw_q + count_t'(m_aw_valid);

  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    ar_wait_q   <= rst_ni && m_ar_valid && !m_ar_ready_i;
    aw_wait_q   <= rst_ni && m_aw_valid && !m_aw_ready_i;
    w_wait_q    <= rst_ni && m_w_valid && !m_w_ready_i;
    s_ar_wait_q <= rst_ni && s_ar_valid_i && !s_ar_ready;
    s_aw_wait_q <= rst_ni && s_aw_valid_i && !s_aw_ready;
    s_w_wait_q  <= rst_ni && s_w_valid_i && !s_w_ready;
    drained_q   <= rst_ni && drained;
    s_ar_q      <= s_ar_i;
    s_aw_q      <= s_aw_i;
    s_w_q       <= s_w_i;
    if (!rst_ni) begin
      ar_q <= '0;
      r_q  <= '0;
      aw_q <= '0;
      w_q  <= '0;
      b_q  <= '0;
    end else begin
      ar_q <= ar_q + count_t'(m_ar_valid && m_ar_ready_i);
      r_q  <= r_q + count_t'(m_r_valid_i && m_r_ready && m_r_i.last);
      aw_q <= aw_q + count_t'(m_aw_valid && m_aw_ready_i);
      w_q  <= w_q + count_t'(m_w_valid && m_w_ready_i && m_w.last);
      b_q  <= b_q + count_t'(m_b_valid_i && m_b_ready);

      // ---------------------------------------------------------------- assumed
      if (s_ar_wait_q) assume (s_ar_valid_i && s_ar_i == s_ar_q);
      if (s_aw_wait_q) assume (s_aw_valid_i && s_aw_i == s_aw_q);
      if (s_w_wait_q) assume (s_w_valid_i && s_w_i == s_w_q);
      if (m_r_valid_i) assume (r_q != ar_q);
      if (m_b_valid_i) assume (b_q != aw_q && b_q != w_q);
      assume (!(&dut.rd_q) && !(&dut.wr_q));

      // ---------------------------------------------------------------- proved
      if (!enable_i) begin
        a_ar_begins : assert (!m_ar_valid || ar_wait_q);
        a_aw_begins : assert (!m_aw_valid || aw_wait_q);
      end
      if (ar_wait_q) a_ar_held : assert (m_ar_valid && m_ar == s_ar_q);
      if (aw_wait_q) a_aw_held : assert (m_aw_valid && m_aw == s_aw_q);
      if (w_wait_q) a_w_held : assert (m_w_valid && m_w == s_w_q);
      if (m_w_valid) a_w_follows : assert (w_q != aw_shown);
      if (drained) begin
        a_drained : assert (!m_ar_valid && !m_aw_valid && !m_w_valid && r_q == ar_q && b_q == aw_q && w_q == aw_q);
        a_stays : assert (!enable_i);
      end
      if (drained_q && !enable_i) a_stays_drained : assert (drained);
      a_whole : assert (!m_r_valid_i || s_r_valid && m_r_ready == s_r_ready_i);

      // ---------------------------------------------------------------- what holds in every cycle, for the induction
      i_shown : assert (dut.ar_shown_q == ar_wait_q && dut.aw_shown_q == aw_wait_q);
      i_reads : assert (dut.rd_q == count_t'(ar_q - r_q) + count_t'(ar_wait_q));
      i_writes : assert (dut.wr_q == count_t'(aw_q - b_q) + count_t'(aw_wait_q));
      i_data : assert (dut.data_q == count_t'(aw_q - w_q) + count_t'(aw_wait_q));
      i_data_any : assert (dut.data_any_q == (dut.data_q != '0));
      i_order : assert (dut.data_q <= dut.wr_q);
      // a burst whose address waits has no response
      i_room : assert (count_t'(aw_q - b_q) <= dut.wr_q && count_t'(ar_q - r_q) <= dut.rd_q);
      i_wait :
      assert ((!s_aw_wait_q || !aw_wait_q || s_aw_valid_i) && (!ar_wait_q || s_ar_wait_q) && (!aw_wait_q || s_aw_wait_q) && (!w_wait_q || s_w_wait_q));
    end
  end

endmodule
