// SPDX-License-Identifier: Apache-2.0
//
// via_axi_mux with a manager of the test (gen_mgr[i].u_bus) at every source and a memory of the test (u_m) at the port.

module via_axi_mux_tb
  import via_pkg::*;
#(
  parameter int unsigned N = 3,
  parameter int unsigned NumFirst = 1,
  parameter int unsigned Outstanding = 16,
  parameter bit Shared = 1'b0
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  input  logic [4*N-1:0] weights_i,  // of each source; 0 stands for 1
  input  logic [  N-1:0] first_i,
  input  logic [    7:0] window_i,
  input  logic           plain_i,
  output logic           idle_o
);

  axi_ax_t s_ar[N], s_aw[N], m_ar, m_aw;
  axi_r_t s_r[N], m_r;
  axi_w_t s_w[N], m_w;
  axi_b_t s_b[N], m_b;
  logic [N-1:0] s_ar_valid, s_ar_ready, s_r_valid, s_r_ready, s_aw_valid, s_aw_ready, s_w_valid, s_w_ready, s_b_valid, s_b_ready;
  logic m_ar_valid, m_ar_ready, m_r_valid, m_r_ready, m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_b_valid, m_b_ready;

  for (genvar i = 0; i < N; i++) begin : gen_mgr
    via_tb_mgr u_bus (
      .clk_i,
      .rst_ni,
      .m_ar_o      (s_ar[i]),
      .m_ar_valid_o(s_ar_valid[i]),
      .m_ar_ready_i(s_ar_ready[i]),
      .m_r_i       (s_r[i]),
      .m_r_valid_i (s_r_valid[i]),
      .m_r_ready_o (s_r_ready[i]),
      .m_aw_o      (s_aw[i]),
      .m_aw_valid_o(s_aw_valid[i]),
      .m_aw_ready_i(s_aw_ready[i]),
      .m_w_o       (s_w[i]),
      .m_w_valid_o (s_w_valid[i]),
      .m_w_ready_i (s_w_ready[i]),
      .m_b_i       (s_b[i]),
      .m_b_valid_i (s_b_valid[i]),
      .m_b_ready_o (s_b_ready[i])
    );
  end

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

  logic clk, still;
  via_tb_gate #(
    .W(5 * N + 5)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i(still),
    .inputs_i({s_ar_valid, s_r_ready, s_aw_valid, s_w_valid, s_b_ready, m_ar_ready, m_r_valid, m_aw_ready, m_w_ready, m_b_valid}),
    .clk_o(clk)
  );

  logic [WeightW-1:0] weight[N];
  always_comb for (int unsigned i = 0; i < N; i++) weight[i] = (weights_i[4*i+:4] == '0) ? 4'd1 : weights_i[4*i+:4];

  via_axi_mux #(
    .NumRd      (N),
    .NumWr      (N),
    .NumFirst   (NumFirst),
    .Outstanding(Outstanding),
    .Ordered    (1'b1),
    .Shared     (Shared)
  ) u_dut (
    .clk_i       (clk),
    .rst_ni,
    .weight_i    (weight),
    .first_i     ('{first_i, first_i}),
    .share_i     ('{plain: plain_i, chan_log2: 4'd4, host_log2: 4'($clog2(MaxBurstBeats))}),
    .window_i,
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

endmodule
