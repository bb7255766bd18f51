// SPDX-License-Identifier: Apache-2.0
//
// via_guard between a slot (u_s) and the shell (u_m), both played by the test.

module via_guard_tb
  import via_pkg::*;
#(
  parameter int unsigned RdOutstanding = 8,
  parameter int unsigned WrOutstanding = 8,
  parameter int unsigned RdBeats = 300,
  parameter int unsigned WrBeats = 256,
  parameter int unsigned StuckCycles = 100
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        quiesce_i,
  input  logic        isolate_i,
  output logic        violation_o,
  output logic [ 7:0] cause_o,
  output logic [63:0] va_o,
  output logic        is_write_o,
  output logic        quiet_o
);

  axi_ax_t s_ar, s_aw, m_ar, m_aw;
  axi_r_t s_r, m_r;
  axi_w_t s_w, m_w;
  axi_b_t s_b, m_b;
  logic s_ar_valid, s_ar_ready, s_r_valid, s_r_ready, s_aw_valid, s_aw_ready, s_w_valid, s_w_ready, s_b_valid, s_b_ready;
  logic m_ar_valid, m_ar_ready, m_r_valid, m_r_ready, m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_b_valid, m_b_ready;
  event_e cause;
  assign cause_o = cause;

  // An isolated slot is not observed any more, so its valid may drop.
  via_tb_mgr u_s (
    .clk_i,
    .rst_ni      (rst_ni && !isolate_i),
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

  logic clk;
  via_tb_gate #(
    .W(7)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (quiet_o && ~|{s_ar_valid, s_aw_valid, s_w_valid, s_r_valid, s_b_valid,
                            m_ar_valid, m_aw_valid, m_w_valid, m_r_valid, m_b_valid}),
    .inputs_i({s_r_ready, s_b_ready, m_ar_ready, m_aw_ready, m_w_ready, quiesce_i, isolate_i}),
    .clk_o(clk)
  );

  via_guard #(
    .RdOutstanding(RdOutstanding),
    .WrOutstanding(WrOutstanding),
    .RdBeats      (RdBeats),
    .WrBeats      (WrBeats),
    .StuckCycles  (StuckCycles)
  ) u_dut (
    .clk_i       (clk),
    .rst_ni,
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
    .quiesce_i,
    .isolate_i,
    .violation_o,
    .cause_o     (cause),
    .va_o,
    .is_write_o,
    .quiet_o
  );

  // No deadlocks (docs/interfaces.md, section 1): the guard never makes the shell wait for a response.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!m_r_valid || m_r_ready)
      else $error("R refused");
      assert (!m_b_valid || m_b_ready)
      else $error("B refused");
      assert (!m_ar_valid || m_ar.id == '0)
      else $error("AR with an id");
      assert (!m_aw_valid || m_aw.id == '0)
      else $error("AW with an id");
    end
  end

endmodule
