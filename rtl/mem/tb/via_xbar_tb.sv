// SPDX-License-Identifier: Apache-2.0
//
// via_xbar with a manager (gen_mgr[m].u_bus) and a memory (gen_sub[s].u_bus) of the test at every port.

module via_xbar_tb
  import via_pkg::*;
#(
  parameter int unsigned Outstanding = 64,
  localparam int unsigned NumMgr = NumSlots + 1,
  parameter bit [NumMgr-1:0] ToHost = '1,
  localparam int unsigned NumSub = NumChan + 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [4*NumMgr-1:0] weights_i,  // of each manager; 0 stands for 1
  input  logic [  NumMgr-1:0] first_i,
  input  logic                plain_i,
  input  logic [         3:0] quantum_i,  // log2 of that of a channel, in beats
  output logic [  NumMgr-1:0] to_host_o,
  output logic                idle_o
);

  assign to_host_o = ToHost;

  axi_ax_t s_ar[NumMgr], s_aw[NumMgr], m_ar[NumSub], m_aw[NumSub];
  axi_r_t s_r[NumMgr], m_r[NumSub];
  axi_w_t s_w[NumMgr], m_w[NumSub];
  axi_b_t s_b[NumMgr], m_b[NumSub];
  logic [NumMgr-1:0] s_ar_valid, s_ar_ready, s_r_valid, s_r_ready, s_aw_valid, s_aw_ready, s_w_valid, s_w_ready, s_b_valid, s_b_ready;
  logic [NumSub-1:0] m_ar_valid, m_ar_ready, m_r_valid, m_r_ready, m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_b_valid, m_b_ready;

  for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
    via_tb_mgr u_bus (
      .clk_i,
      .rst_ni,
      .m_ar_o      (s_ar[m]),
      .m_ar_valid_o(s_ar_valid[m]),
      .m_ar_ready_i(s_ar_ready[m]),
      .m_r_i       (s_r[m]),
      .m_r_valid_i (s_r_valid[m]),
      .m_r_ready_o (s_r_ready[m]),
      .m_aw_o      (s_aw[m]),
      .m_aw_valid_o(s_aw_valid[m]),
      .m_aw_ready_i(s_aw_ready[m]),
      .m_w_o       (s_w[m]),
      .m_w_valid_o (s_w_valid[m]),
      .m_w_ready_i (s_w_ready[m]),
      .m_b_i       (s_b[m]),
      .m_b_valid_i (s_b_valid[m]),
      .m_b_ready_o (s_b_ready[m])
    );
  end

  for (genvar s = 0; s < NumSub; s++) begin : gen_sub
    via_tb_sub u_bus (
      .clk_i,
      .rst_ni,
      .s_ar_i      (m_ar[s]),
      .s_ar_valid_i(m_ar_valid[s]),
      .s_ar_ready_o(m_ar_ready[s]),
      .s_r_o       (m_r[s]),
      .s_r_valid_o (m_r_valid[s]),
      .s_r_ready_i (m_r_ready[s]),
      .s_aw_i      (m_aw[s]),
      .s_aw_valid_i(m_aw_valid[s]),
      .s_aw_ready_o(m_aw_ready[s]),
      .s_w_i       (m_w[s]),
      .s_w_valid_i (m_w_valid[s]),
      .s_w_ready_o (m_w_ready[s]),
      .s_b_o       (m_b[s]),
      .s_b_valid_o (m_b_valid[s]),
      .s_b_ready_i (m_b_ready[s])
    );
  end

  logic clk, still;
  via_tb_gate #(
    .W(5 * NumMgr + 5 * NumSub)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i(still),
    .inputs_i({s_ar_valid, s_r_ready, s_aw_valid, s_w_valid, s_b_ready, m_ar_ready, m_r_valid, m_aw_ready, m_w_ready, m_b_valid}),
    .clk_o(clk)
  );

  logic [WeightW-1:0] weight[NumMgr];
  always_comb for (int unsigned m = 0; m < NumMgr; m++) weight[m] = (weights_i[4*m+:4] == '0) ? 4'd1 : weights_i[4*m+:4];

  via_xbar #(
    .NumMgr     (NumMgr),
    .ToHost     (ToHost),
    .Outstanding(Outstanding)
  ) u_dut (
    .clk_i       (clk),
    .rst_ni,
    .weight_i    (weight),
    .first_i,
    .share_i     ('{plain: plain_i, chan_log2: quantum_i, host_log2: 4'($clog2(MaxBurstBeats))}),
    .window_i    ('1),
    .first_o     (),
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
