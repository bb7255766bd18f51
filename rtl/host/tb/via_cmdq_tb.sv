// SPDX-License-Identifier: Apache-2.0
//
// via_cmdq with flat ports and the test's host memory (u_m).

module via_cmdq_tb
  import via_pkg::*;
#(
  parameter int unsigned Queue = 32,
  parameter int unsigned Fetch = 16
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [        68:0] cmd_cfg  [NumSlots],  // ring_cfg_t
  input  logic [        15:0] cmd_tail [NumSlots],
  output logic [        15:0] cmd_head [NumSlots],
  output logic [NumSlots-1:0] on,
  output logic [NumSlots-1:0] tail_err,
  output logic [NumSlots-1:0] bus_err,
  input  logic [        68:0] cpl_cfg  [NumSlots],
  input  logic [        15:0] cpl_used [NumSlots],
  input  logic [NumSlots-1:0] cpl_done,
  output logic [NumSlots-1:0] err,
  output logic [NumSlots-1:0] err_info,
  output logic [       255:0] cmd      [NumSlots],
  output logic [NumSlots-1:0] cmd_valid,
  input  logic [NumSlots-1:0] cmd_ready,
  output logic                idle_o
);

  ring_cfg_t cmd_cfg_s[NumSlots], cpl_cfg_s[NumSlots];
  ring_idx_t tail_s[NumSlots], head_s[NumSlots], used_s[NumSlots];
  cmd_t cmd_s[NumSlots];
  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    assign cmd_cfg_s[s] = ring_cfg_t'(cmd_cfg[s]);
    assign cpl_cfg_s[s] = ring_cfg_t'(cpl_cfg[s]);
    assign tail_s[s] = cmd_tail[s];
    assign used_s[s] = cpl_used[s];
    assign cmd_head[s] = head_s[s];
    assign cmd[s] = cmd_s[s];
  end

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
  logic [NumSlots-1:0][169:0] levels;
  logic [NumSlots+1:0] handshakes;
  assign handshakes = {cmd_ready, ar_ready, r_valid};
  for (genvar s = 0; s < NumSlots; s++) begin : gen_level
    assign levels[s] = {cmd_cfg[s], cmd_tail[s], cpl_cfg[s], cpl_used[s]};
  end
  via_tb_gate #(
    .W($bits(levels) + $bits(handshakes))
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i(still && !(|cpl_done)),
    .inputs_i({levels, handshakes}),
    .clk_o(clk)
  );

  via_cmdq #(
    .Queue(Queue),
    .Fetch(Fetch)
  ) u_dut (
    .clk_i       (clk),
    .rst_ni,
    .cmd_cfg_i   (cmd_cfg_s),
    .cmd_tail_i  (tail_s),
    .cmd_head_o  (head_s),
    .on_o        (on),
    .tail_err_o  (tail_err),
    .bus_err_o   (bus_err),
    .cpl_cfg_i   (cpl_cfg_s),
    .cpl_used_i  (used_s),
    .cpl_done_i  (cpl_done),
    .err_o       (err),
    .err_info_o  (err_info),
    .m_ar_o      (ar),
    .m_ar_valid_o(ar_valid),
    .m_ar_ready_i(ar_ready),
    .m_r_i       (r),
    .m_r_valid_i (r_valid),
    .m_r_ready_o (r_ready),
    .cmd_o       (cmd_s),
    .cmd_valid_o (cmd_valid),
    .cmd_ready_i (cmd_ready),
    .still_o     (still),
    .idle_o
  );

  always_ff @(posedge clk_i)
    if (rst_ni)
      assert (!r_valid || r_ready)
      else $error("R refused");

endmodule
