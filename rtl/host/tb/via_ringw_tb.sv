// SPDX-License-Identifier: Apache-2.0
//
// via_ringw with flat ports and the test's host memory (u_m).

module via_ringw_tb
  import via_pkg::*;
#(
  localparam int unsigned Rings = 2 * NumSlots
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [        63:0] time_i,
  input  logic [        68:0] cfg      [   Rings],  // ring_cfg_t
  input  logic [        15:0] head     [   Rings],
  input  logic [   Rings-1:0] arm,
  output logic [        15:0] tail     [   Rings],
  output logic [        15:0] used     [   Rings],
  output logic [   Rings-1:0] on,
  output logic [   Rings-1:0] err,
  output logic [NumSlots-1:0] cpl_err,
  output logic [NumSlots-1:0] cpl_done,
  input  logic [       151:0] cpl      [NumSlots],
  input  logic [NumSlots-1:0] cpl_valid,
  output logic [NumSlots-1:0] cpl_ready,
  input  logic [       144:0] evt      [NumSlots],
  input  logic [NumSlots-1:0] evt_valid,
  output logic [NumSlots-1:0] evt_ready,
  output logic [   Rings-1:0] irq,
  output logic                idle_o
);

  ring_cfg_t cfg_s[Rings];
  ring_idx_t head_s[Rings], tail_s[Rings], used_s[Rings];
  cpl_t cpl_s[NumSlots];
  evt_t evt_s[NumSlots];
  for (genvar r = 0; r < Rings; r++) begin : gen_ring
    assign cfg_s[r]  = ring_cfg_t'(cfg[r]);
    assign head_s[r] = head[r];
    assign tail[r]   = tail_s[r];
    assign used[r]   = used_s[r];
  end
  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    assign cpl_s[s] = cpl_t'(cpl[s]);
    assign evt_s[s] = evt_t'(evt[s]);
  end

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
  logic [Rings-1:0][84:0] levels;
  logic [2*Rings+2:0] handshakes;
  assign handshakes = (2 * Rings + 3)'({arm, cpl_valid, evt_valid, aw_ready, w_ready, b_valid});
  for (genvar k = 0; k < Rings; k++) begin : gen_level
    assign levels[k] = {cfg[k], head[k]};
  end
  via_tb_gate #(
    .W($bits(levels) + $bits(handshakes))
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i(still),
    .inputs_i({levels, handshakes}),
    .clk_o(clk)
  );

  via_ringw u_dut (
    .clk_i       (clk),
    .rst_ni,
    .time_i,
    .cfg_i       (cfg_s),
    .head_i      (head_s),
    .arm_i       (arm),
    .tail_o      (tail_s),
    .used_o      (used_s),
    .cpl_done_o  (cpl_done),
    .on_o        (on),
    .err_o       (err),
    .cpl_err_o   (cpl_err),
    .cpl_i       (cpl_s),
    .cpl_valid_i (cpl_valid),
    .cpl_ready_o (cpl_ready),
    .evt_i       (evt_s),
    .evt_valid_i (evt_valid),
    .evt_ready_o (evt_ready),
    .m_aw_o      (aw),
    .m_aw_valid_o(aw_valid),
    .m_aw_ready_i(aw_ready),
    .m_w_o       (w),
    .m_w_valid_o (w_valid),
    .m_w_ready_i (w_ready),
    .m_b_i       (b),
    .m_b_valid_i (b_valid),
    .m_b_ready_o (b_ready),
    .irq_o       (irq),
    .still_o     (still),
    .idle_o
  );

  // No deadlocks (docs/interfaces.md, section 1): a burst begun goes on whatever its slot does, and no response waits.
  logic gap_q;
  always_ff @(posedge clk_i) begin
    gap_q <= rst_ni && w_valid && w_ready && !w.last;
    if (rst_ni) begin
      assert (!gap_q || w_valid)
      else $error("pause inside a burst");
      assert (!b_valid || b_ready)
      else $error("B refused");
    end
  end

endmodule
