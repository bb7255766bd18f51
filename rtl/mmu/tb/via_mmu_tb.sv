// SPDX-License-Identifier: Apache-2.0
//
// via_mmu with flat ports, its clock stopped while nothing moves, as in the simulated card (tools/parts.py).

module via_mmu_tb
  import via_pkg::*;
#(
  parameter int unsigned PageWays = 2,
  parameter int unsigned PageSets = 16,
  parameter int unsigned HugeWays = 2,
  parameter int unsigned HugeSets = 8
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic [    31:0] chan_mib_i,
  // lane 0: AR, lane 1: AW; {id, len, addr}
  input  logic [IdW+71:0] v_ax      [2],
  input  logic [     1:0] v_valid,
  output logic [     1:0] v_ready,
  output logic [IdW+71:0] p_ax      [2],
  output logic [     1:0] p_valid,
  input  logic [     1:0] p_ready,
  input  logic [     1:0] done,
  // {tag, flags, op, addr1, addr0}
  input  logic [   175:0] cmd,
  input  logic            cmd_valid,
  output logic            cmd_ready,
  // {info, bytes, tag, status, op, flags}
  output logic [   151:0] cpl,
  output logic            cpl_valid,
  input  logic            cpl_ready,
  // {info, va, source, is_write, cause}
  output logic [   144:0] evt,
  output logic            evt_valid,
  input  logic            evt_ready,
  input  logic            abort_i,
  output logic [    31:0] count     [4],
  output logic            idle_o
);

  axi_ax_t v[2], p[2];
  cmd_t c;
  for (genvar d = 0; d < 2; d++) begin : gen_lane
    assign v[d] = '{id: v_ax[d][72+:IdW], burst: 2'b01, size: 3'(BeatLog2), len: v_ax[d][64+:8], addr: v_ax[d][63:0]};
    assign p_ax[d] = {p[d].id, p[d].len, p[d].addr};
    always_ff @(posedge clk_i) if (rst_ni && p_valid[d]) assert (p[d].burst == 2'b01 && p[d].size == 3'(BeatLog2));
  end
  always_comb begin
    c = '0;
    c.tag = cmd[175:144];
    c.flags = cmd[143:136];
    c.op = cmd[135:128];
    c.addr1 = cmd[127:64];
    c.addr0 = cmd[63:0];
  end

  logic gated_clk;
  via_tb_gate #(
    .W(5 + 32)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (idle_o && ~|{v_valid, cmd_valid, done}),
    .inputs_i({p_ready, cpl_ready, evt_ready, abort_i, chan_mib_i}),
    .clk_o   (gated_clk)
  );

  via_mmu #(
    .PageWays(PageWays),
    .PageSets(PageSets),
    .HugeWays(HugeWays),
    .HugeSets(HugeSets)
  ) u_dut (
    .clk_i       (gated_clk),
    .rst_ni,
    .chan_mib_i,
    .v_ar_i      (v[0]),
    .v_ar_valid_i(v_valid[0]),
    .v_ar_ready_o(v_ready[0]),
    .v_aw_i      (v[1]),
    .v_aw_valid_i(v_valid[1]),
    .v_aw_ready_o(v_ready[1]),
    .p_ar_o      (p[0]),
    .p_ar_valid_o(p_valid[0]),
    .p_ar_ready_i(p_ready[0]),
    .p_aw_o      (p[1]),
    .p_aw_valid_o(p_valid[1]),
    .p_aw_ready_i(p_ready[1]),
    .rd_done_i   (done[0]),
    .wr_done_i   (done[1]),
    .cmd_i       (c),
    .cmd_valid_i (cmd_valid),
    .cmd_ready_o (cmd_ready),
    .cpl_o       (cpl),
    .cpl_valid_o (cpl_valid),
    .cpl_ready_i (cpl_ready),
    .evt_o       (evt),
    .evt_valid_o (evt_valid),
    .evt_ready_i (evt_ready),
    .abort_i,
    .n_rd_o      (count[0]),
    .n_wr_o      (count[1]),
    .n_rd_miss_o (count[2]),
    .n_wr_miss_o (count[3]),
    .idle_o
  );

endmodule
