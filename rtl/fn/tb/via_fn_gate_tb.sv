// SPDX-License-Identifier: Apache-2.0
//
// via_fn_gate between the test's function (u_s) and its host memory (u_m). Checks what a shut gate must guarantee.

module via_fn_gate_tb
  import via_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic enable,
  output logic drained
);

  axi_ax_t s_ar, s_aw, m_ar, m_aw;
  axi_w_t s_w, m_w;
  axi_r_t s_r, m_r;
  axi_b_t s_b, m_b;
  logic s_ar_valid, s_ar_ready, s_aw_valid, s_aw_ready, s_w_valid, s_w_ready, s_r_valid, s_r_ready, s_b_valid, s_b_ready;
  logic m_ar_valid, m_ar_ready, m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_r_valid, m_r_ready, m_b_valid, m_b_ready;

  via_tb_mgr u_s (
    .clk_i,
    .rst_ni,
    .m_ar_o      (s_ar),
    .m_ar_valid_o(s_ar_valid),
    .m_ar_ready_i(s_ar_ready),
    .m_r_i       (s_r),
    .m_r_valid_i (s_r_valid),
    .m_r_ready_o (s_r_ready),
    .m_aw_o      (s_aw),
    .m_aw_valid_o(s_aw_valid),
    .m_aw_ready_i(s_aw_ready),
    .m_w_o       (s_w),
    .m_w_valid_o (s_w_valid),
    .m_w_ready_i (s_w_ready),
    .m_b_i       (s_b),
    .m_b_valid_i (s_b_valid),
    .m_b_ready_o (s_b_ready)
  );

  via_fn_gate u_dut (
    .clk_i,
    .rst_ni,
    .enable_i    (enable),
    .drained_o   (drained),
    .s_ar_i      (s_ar),
    .s_ar_valid_i(s_ar_valid),
    .s_ar_ready_o(s_ar_ready),
    .s_r_o       (s_r),
    .s_r_valid_o (s_r_valid),
    .s_r_ready_i (s_r_ready),
    .s_aw_i      (s_aw),
    .s_aw_valid_i(s_aw_valid),
    .s_aw_ready_o(s_aw_ready),
    .s_w_i       (s_w),
    .s_w_valid_i (s_w_valid),
    .s_w_ready_o (s_w_ready),
    .s_b_o       (s_b),
    .s_b_valid_o (s_b_valid),
    .s_b_ready_i (s_b_ready),
    .m_ar_o      (m_ar),
    .m_ar_valid_o(m_ar_valid),
    .m_ar_ready_i(m_ar_ready),
    .m_r_i       (m_r),
    .m_r_valid_i (m_r_valid),
    .m_r_ready_o (m_r_ready),
    .m_aw_o      (m_aw),
    .m_aw_valid_o(m_aw_valid),
    .m_aw_ready_i(m_aw_ready),
    .m_w_o       (m_w),
    .m_w_valid_o (m_w_valid),
    .m_w_ready_i (m_w_ready),
    .m_b_i       (m_b),
    .m_b_valid_i (m_b_valid),
    .m_b_ready_o (m_b_ready)
  );

  via_tb_sub u_m (
    .clk_i,
    .rst_ni,
    .s_ar_i      (m_ar),
    .s_ar_valid_i(m_ar_valid),
    .s_ar_ready_o(m_ar_ready),
    .s_r_o       (m_r),
    .s_r_valid_o (m_r_valid),
    .s_r_ready_i (m_r_ready),
    .s_aw_i      (m_aw),
    .s_aw_valid_i(m_aw_valid),
    .s_aw_ready_o(m_aw_ready),
    .s_w_i       (m_w),
    .s_w_valid_i (m_w_valid),
    .s_w_ready_o (m_w_ready),
    .s_b_o       (m_b),
    .s_b_valid_o (m_b_valid),
    .s_b_ready_i (m_b_ready)
  );

  logic ar_wait_q, aw_wait_q, drained_q;
  int ahead_q;  // bursts of data taken ahead of their address
  always_ff @(posedge clk_i) begin
    ar_wait_q <= rst_ni && m_ar_valid && !m_ar_ready;
    aw_wait_q <= rst_ni && m_aw_valid && !m_aw_ready;
    drained_q <= rst_ni && drained;
    if (!rst_ni) ahead_q <= 0;
    else ahead_q <= ahead_q + 32'(m_w_valid && m_w_ready && m_w.last) - 32'(m_aw_valid && m_aw_ready);
    if (rst_ni) begin
      assert (enable || !m_ar_valid || ar_wait_q)
      else $error("a read began behind a shut gate");
      assert (enable || !m_aw_valid || aw_wait_q)
      else $error("a write began behind a shut gate");
      assert (!m_w_valid || m_aw_valid || ahead_q < 0)
      else $error("data without an address shown");
      assert (!drained || !(enable || m_ar_valid || m_aw_valid || m_w_valid || m_r_valid || m_b_valid))
      else $error("something moves after drained");
      assert (!drained_q || enable || drained)
      else $error("drained fell behind a shut gate");
    end
  end

endmodule
