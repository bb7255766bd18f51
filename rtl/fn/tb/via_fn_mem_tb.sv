// SPDX-License-Identifier: Apache-2.0
//
// via_fn_mem between a disk (u_s) and the MMUs of the slots (gen_slot[s].u_m), all driven by the test. Its clock is stopped while it
// reports that nothing moves.

module via_fn_mem_tb
  import via_pkg::*;
(
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       core_rst,  // active high
  input  logic [3:0] store,
  output logic       idle_o
);

  axi_ax_t s_ar, s_aw, m_ar, m_aw;
  axi_r_t s_r, m_r[NumSlots];
  axi_w_t s_w, m_w;
  axi_b_t s_b, m_b[NumSlots];
  logic s_ar_valid, s_ar_ready, s_aw_valid, s_aw_ready, s_w_valid, s_w_ready, s_r_valid, s_r_ready, s_b_valid, s_b_ready;
  logic [NumSlots-1:0] m_ar_valid, m_ar_ready, m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_r_valid, m_r_ready, m_b_valid, m_b_ready;
  logic clk, still;

  via_tb_mgr u_s (
    .clk_i,
    .rst_ni      (rst_ni && !core_rst),
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
  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    via_tb_sub u_m (
      .clk_i,
      .rst_ni,
      .s_ar_i      (m_ar),
      .s_ar_valid_i(m_ar_valid[s]),
      .s_ar_ready_o(m_ar_ready[s]),
      .s_r_o       (m_r[s]),
      .s_r_valid_o (m_r_valid[s]),
      .s_r_ready_i (m_r_ready[s]),
      .s_aw_i      (m_aw),
      .s_aw_valid_i(m_aw_valid[s]),
      .s_aw_ready_o(m_aw_ready[s]),
      .s_w_i       (m_w),
      .s_w_valid_i (m_w_valid[s]),
      .s_w_ready_o (m_w_ready[s]),
      .s_b_o       (m_b[s]),
      .s_b_valid_o (m_b_valid[s]),
      .s_b_ready_i (m_b_ready[s])
    );
  end

  logic [4+5*NumSlots+3:0] inputs;
  assign inputs = {core_rst, store, m_ar_ready, m_aw_ready, m_w_ready, m_r_valid, m_b_valid, s_ar_valid, s_aw_valid, s_w_valid};
  via_tb_gate #(
    .W($bits(inputs))
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (still),
    .inputs_i(inputs),
    .clk_o   (clk)
  );

  via_fn_mem u_dut (
    .clk_i       (clk),
    .rst_ni,
    .core_rst_ni (!core_rst),
    .store_i     (store),
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
    .m_b_ready_o (m_b_ready),
    .still_o     (still),
    .idle_o
  );

  // The rule against deadlocks (docs/interfaces.md, section 1) holds whatever happens to the function.
  logic [NumSlots-1:0] gap_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned s = 0; s < NumSlots; s++) gap_q[s] <= rst_ni && m_w_valid[s] && m_w_ready[s] && !m_w.last;
    if (rst_ni)
      assert ((gap_q & ~m_w_valid) == '0)
      else $error("pause inside a burst");
  end

endmodule
