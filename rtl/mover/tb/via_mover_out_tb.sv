// SPDX-License-Identifier: Apache-2.0
//
// via_mover_out between a memory (u_m) and a stream of the test.

module via_mover_out_tb
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
  input  logic [DataW-1:0] s_tdata,
  input  logic [StrbW-1:0] s_tkeep,
  input  logic [      7:0] s_tid,
  input  logic             s_tlast,
  input  logic             s_tvalid,
  output logic             s_tready,
  input  logic             abort_i,
  output logic             idle_o
);

  cmd_t c;
  always_comb begin
    c       = '0;
    c.op    = OpMoveOut;
    c.len   = cmd[143:112];
    c.addr0 = cmd[111:48];
    c.tag   = cmd[47:16];
    c.id    = cmd[15:8];
    c.flags = cmd[7:0];
  end

  strm_t strm;
  assign strm = '{id: s_tid, last: s_tlast, keep: s_tkeep, data: s_tdata};

  axi_ax_t aw;
  axi_w_t  w;
  axi_b_t  b;
  logic aw_valid, aw_ready, w_valid, w_ready, b_valid, b_ready;
  // Only writes.
  /* verilator lint_off UNUSEDSIGNAL */
  axi_r_t r;
  logic ar_ready, r_valid;
  /* verilator lint_on UNUSEDSIGNAL */

  via_tb_sub u_m (
    .clk_i,
    .rst_ni,
    .s_ar_i      ('0),
    .s_ar_valid_i(1'b0),
    .s_ar_ready_o(ar_ready),
    .s_r_o       (r),
    .s_r_valid_o (r_valid),
    .s_r_ready_i (1'b0),
    .s_aw_i      (aw),
    .s_aw_valid_i(aw_valid),
    .s_aw_ready_o(aw_ready),
    .s_w_i       (w),
    .s_w_valid_i (w_valid),
    .s_w_ready_o (w_ready),
    .s_b_o       (b),
    .s_b_valid_o (b_valid),
    .s_b_ready_i (b_ready)
  );

  logic clk, still;
  via_tb_gate u_gate (
    .clk_i,
    .rst_ni,
    .still_i(still),
    .inputs_i(1'b0),
    .clk_o(clk)
  );

  via_mover_out #(
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
    .m_aw_o      (aw),
    .m_aw_valid_o(aw_valid),
    .m_aw_ready_i(aw_ready),
    .m_w_o       (w),
    .m_w_valid_o (w_valid),
    .m_w_ready_i (w_ready),
    .m_b_i       (b),
    .m_b_valid_i (b_valid),
    .m_b_ready_o (b_ready),
    .strm_i      (strm),
    .strm_valid_i(s_tvalid),
    .strm_ready_o(s_tready),
    .abort_i,
    .still_o     (still),
    .idle_o
  );

  // No deadlocks (docs/interfaces.md, section 1): responses are never refused, and a write address is sent only when all of its data is held.
  logic gap_q;
  always_ff @(posedge clk_i) begin
    if (rst_ni)
      assert (!b_valid || b_ready)
      else $error("B refused");
    // A burst begun is finished without a pause.
    gap_q <= rst_ni && w_valid && w_ready && !w.last;
    if (rst_ni)
      assert (!gap_q || w_valid)
      else $error("pause inside a burst");
  end

endmodule
