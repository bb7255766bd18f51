// SPDX-License-Identifier: Apache-2.0
//
// via_mover_in between a memory (u_m) and a stream of the test.

module via_mover_in_tb
  import via_pkg::*;
#(
  parameter int unsigned Beats = 2 * MaxBurstBeats,
  parameter int unsigned Queue = 16
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  // {len, addr0, tag, id, flags}
  input  logic [    143:0] cmd,
  input  logic             cmd_valid,
  output logic             cmd_ready,
  // {info, bytes, tag, status, op, flags}
  output logic [    151:0] cpl,
  output logic             cpl_valid,
  input  logic             cpl_ready,
  output logic [DataW-1:0] m_tdata,
  output logic [StrbW-1:0] m_tkeep,
  output logic [      7:0] m_tid,
  output logic             m_tlast,
  output logic             m_tvalid,
  input  logic             m_tready,
  input  logic             abort_i,
  output logic             idle_o
);

  cmd_t c;
  always_comb begin
    c       = '0;
    c.op    = OpMoveIn;
    c.len   = cmd[143:112];
    c.addr0 = cmd[111:48];
    c.tag   = cmd[47:16];
    c.id    = cmd[15:8];
    c.flags = cmd[7:0];
  end

  strm_t strm;
  assign {m_tid, m_tlast, m_tkeep, m_tdata} = strm;

  axi_ax_t ar;
  axi_r_t  r;
  logic ar_valid, ar_ready, r_valid, r_ready;
  // Only reads.
  /* verilator lint_off UNUSEDSIGNAL */
  axi_b_t b;
  logic aw_ready, w_ready, b_valid;
  /* verilator lint_on UNUSEDSIGNAL */

  via_tb_sub u_m (
    .clk_i,
    .rst_ni,
    .s_ar_i      (ar),
    .s_ar_valid_i(ar_valid),
    .s_ar_ready_o(ar_ready),
    .s_r_o       (r),
    .s_r_valid_o (r_valid),
    .s_r_ready_i (r_ready),
    .s_aw_i      ('0),
    .s_aw_valid_i(1'b0),
    .s_aw_ready_o(aw_ready),
    .s_w_i       ('0),
    .s_w_valid_i (1'b0),
    .s_w_ready_o (w_ready),
    .s_b_o       (b),
    .s_b_valid_o (b_valid),
    .s_b_ready_i (1'b0)
  );

  logic clk, still;
  via_tb_gate u_gate (
    .clk_i,
    .rst_ni,
    .still_i(still),
    .inputs_i(1'b0),
    .clk_o(clk)
  );

  via_mover_in #(
    .Beats(Beats),
    .Queue(Queue)
  ) u_dut (
    .clk_i       (clk),
    .rst_ni,
    .cmd_i       (c),
    .cmd_valid_i (cmd_valid),
    .cmd_ready_o (cmd_ready),
    .cpl_o       (cpl),
    .cpl_valid_o (cpl_valid),
    .cpl_ready_i (cpl_ready),
    .m_ar_o      (ar),
    .m_ar_valid_o(ar_valid),
    .m_ar_ready_i(ar_ready),
    .m_r_i       (r),
    .m_r_valid_i (r_valid),
    .m_r_ready_o (r_ready),
    .strm_o      (strm),
    .strm_valid_o(m_tvalid),
    .strm_ready_i(m_tready),
    .abort_i,
    .still_o     (still),
    .idle_o
  );

  // No deadlocks (docs/interfaces.md, section 1): responses are never refused.
  always_ff @(posedge clk_i)
    if (rst_ni)
      assert (!r_valid || r_ready)
      else $error("R refused");

endmodule
