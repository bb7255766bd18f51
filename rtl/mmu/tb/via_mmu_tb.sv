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
  input  logic                          clk_i,
  input  logic                          rst_ni,
  input  logic [                  31:0] chan_mib_i,
  // lane 0: AR, lane 1: AW; {id, len, addr}
  input  logic [              IdW+71:0] v_ax         [2],
  input  logic [                   1:0] v_valid,
  output logic [                   1:0] v_ready,
  output logic [              IdW+71:0] p_ax         [2],
  output logic [                   1:0] p_valid,
  input  logic [                   1:0] p_ready,
  input  logic [                   1:0] done,
  // {tag, flags, op, addr1, addr0}
  input  logic [                 175:0] cmd,
  input  logic                          cmd_valid,
  output logic                          cmd_ready,
  // {info, bytes, tag, status, op, flags}
  output logic [                 151:0] cpl,
  output logic                          cpl_valid,
  input  logic                          cpl_ready,
  // {info, va, source, is_write, cause}
  output logic [                 144:0] evt,
  output logic                          evt_valid,
  input  logic                          evt_ready,
  // {keep_end, keep_first, base, size_log2, enable}
  input  logic [14+14+CardAddrW-20+5:0] table_i,
  // page table in card memory: {id, addr}, {strb, data}, {id, resp, data}, {id, resp}
  output logic [              IdW+63:0] walk_ar,
  output logic                          walk_ar_valid,
  input  logic                          walk_ar_ready,
  input  logic [         IdW+DataW+1:0] walk_r,
  input  logic                          walk_r_valid,
  output logic [              IdW+63:0] walk_aw,
  output logic                          walk_aw_valid,
  input  logic                          walk_aw_ready,
  output logic [       StrbW+DataW-1:0] walk_w,
  output logic                          walk_w_valid,
  input  logic                          walk_w_ready,
  input  logic [               IdW+1:0] walk_b,
  input  logic                          walk_b_valid,
  input  logic                          abort_i,
  output logic [                  31:0] count        [4],
  output logic                          quiet_o,
  output logic                          idle_o
);

  axi_ax_t v[2], p[2];
  cmd_t c;
  for (genvar d = 0; d < 2; d++) begin : gen_lane
    assign v[d] = '{id: v_ax[d][72+:IdW], burst: BurstIncr, size: 3'(BeatLog2), len: v_ax[d][64+:8], addr: v_ax[d][63:0]};
    assign p_ax[d] = {p[d].id, p[d].len, p[d].addr};
    always_ff @(posedge clk_i) if (rst_ni && p_valid[d]) assert (p[d].burst == BurstIncr && p[d].size == 3'(BeatLog2));
  end
  always_comb begin
    c = '0;
    c.tag = cmd[175:144];
    c.flags = cmd[143:136];
    c.op = cmd[135:128];
    c.addr1 = cmd[127:64];
    c.addr0 = cmd[63:0];
  end

  axi_ax_t walk_ar_ax, walk_aw_ax;
  axi_w_t walk_w_w;
  axi_r_t walk_r_r;
  axi_b_t walk_b_b;
  logic walk_r_ready, walk_b_ready;
  assign walk_ar  = {walk_ar_ax.id, walk_ar_ax.addr};
  assign walk_aw  = {walk_aw_ax.id, walk_aw_ax.addr};
  assign walk_w   = {walk_w_w.strb, walk_w_w.data};
  assign walk_r_r = '{id: walk_r[DataW+2+:IdW], resp: axi_resp_e'(walk_r[DataW+:2]), last: 1'b1, data: walk_r[DataW-1:0]};
  assign walk_b_b = '{id: walk_b[2+:IdW], resp: axi_resp_e'(walk_b[1:0])};
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (walk_r_ready && walk_b_ready);
      assert (!walk_ar_valid || walk_ar_ax.len == '0);
      assert (!walk_aw_valid || walk_aw_ax.len == '0);
      assert (!walk_w_valid || walk_w_w.last);
    end
  end

  logic gated_clk;
  via_tb_gate #(
    .W(8 + 32 + $bits(table_cfg_t))
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (idle_o && ~|{v_valid, cmd_valid, done, walk_r_valid, walk_b_valid}),
    .inputs_i({p_ready, cpl_ready, evt_ready, abort_i, chan_mib_i, walk_ar_ready, walk_aw_ready, walk_w_ready, table_i}),
    .clk_o   (gated_clk)
  );

  via_mmu #(
    .PageWays(PageWays),
    .PageSets(PageSets),
    .HugeWays(HugeWays),
    .HugeSets(HugeSets)
  ) u_dut (
    .clk_i          (gated_clk),
    .rst_ni,
    .chan_mib_i,
    .table_i        (table_cfg_t'(table_i)),
    .v_ar_i         (v[0]),
    .v_ar_valid_i   (v_valid[0]),
    .v_ar_ready_o   (v_ready[0]),
    .v_aw_i         (v[1]),
    .v_aw_valid_i   (v_valid[1]),
    .v_aw_ready_o   (v_ready[1]),
    .p_ar_o         (p[0]),
    .p_ar_valid_o   (p_valid[0]),
    .p_ar_ready_i   (p_ready[0]),
    .p_aw_o         (p[1]),
    .p_aw_valid_o   (p_valid[1]),
    .p_aw_ready_i   (p_ready[1]),
    .rd_done_i      (done[0]),
    .wr_done_i      (done[1]),
    .cmd_i          (c),
    .cmd_valid_i    (cmd_valid),
    .cmd_ready_o    (cmd_ready),
    .cpl_o          (cpl),
    .cpl_valid_o    (cpl_valid),
    .cpl_ready_i    (cpl_ready),
    .evt_o          (evt),
    .evt_valid_o    (evt_valid),
    .evt_ready_i    (evt_ready),
    .walk_ar_o      (walk_ar_ax),
    .walk_ar_valid_o(walk_ar_valid),
    .walk_ar_ready_i(walk_ar_ready),
    .walk_r_i       (walk_r_r),
    .walk_r_valid_i (walk_r_valid),
    .walk_r_ready_o (walk_r_ready),
    .walk_aw_o      (walk_aw_ax),
    .walk_aw_valid_o(walk_aw_valid),
    .walk_aw_ready_i(walk_aw_ready),
    .walk_w_o       (walk_w_w),
    .walk_w_valid_o (walk_w_valid),
    .walk_w_ready_i (walk_w_ready),
    .walk_b_i       (walk_b_b),
    .walk_b_valid_i (walk_b_valid),
    .walk_b_ready_o (walk_b_ready),
    .abort_i,
    .n_rd_o         (count[0]),
    .n_wr_o         (count[1]),
    .n_rd_miss_o    (count[2]),
    .n_wr_miss_o    (count[3]),
    .quiet_o,
    .idle_o
  );

endmodule
