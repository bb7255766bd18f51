// SPDX-License-Identifier: Apache-2.0
//
// Hands the commands of one slot to the engine each is for, and merges the completions.
// Throughput: one command and one completion per cycle. Latency: one cycle to a mover, two to DMA and MMU, one for completions.
// Ordering: commands for one engine keep their order; engines run side by side, except that
//   - OpMap and OpUnmap wait until every DMA command before them is complete (DMA commands after them go on), and
//   - DMA with FlagFence waits until every MMU command before it is complete.
// Both look backwards only, so they cannot wait for each other in a circle. They rely on DMA and MMU completing in order.
// Misuse: an unknown operation, a reserved bit, or a stream that does not exist is answered with StBadOp here.

module via_dispatch
  import via_pkg::*;
#(
  parameter int unsigned Depth = 16  // commands waiting for DMA, and for the MMU
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  cmd_t                  cmd_i,
  input  logic                  cmd_valid_i,
  output logic                  cmd_ready_o,
  output cpl_t                  cpl_o,
  output logic                  cpl_valid_o,
  input  logic                  cpl_ready_i,
  // engines
  output cmd_t                  dma_cmd_o,
  output logic                  dma_cmd_valid_o,
  input  logic                  dma_cmd_ready_i,
  input  cpl_t                  dma_cpl_i,
  input  logic                  dma_cpl_valid_i,
  output logic                  dma_cpl_ready_o,
  output cmd_t                  mmu_cmd_o,
  output logic                  mmu_cmd_valid_o,
  input  logic                  mmu_cmd_ready_i,
  input  cpl_t                  mmu_cpl_i,
  input  logic                  mmu_cpl_valid_i,
  output logic                  mmu_cpl_ready_o,
  output cmd_t                  move_cmd_o,                   // to all movers
  output logic [NumStreams-1:0] mvi_cmd_valid_o,
  input  logic [NumStreams-1:0] mvi_cmd_ready_i,
  input  cpl_t                  mvi_cpl_i      [NumStreams],
  input  logic [NumStreams-1:0] mvi_cpl_valid_i,
  output logic [NumStreams-1:0] mvi_cpl_ready_o,
  output logic [NumStreams-1:0] mvo_cmd_valid_o,
  input  logic [NumStreams-1:0] mvo_cmd_ready_i,
  input  cpl_t                  mvo_cpl_i      [NumStreams],
  input  logic [NumStreams-1:0] mvo_cpl_valid_i,
  output logic [NumStreams-1:0] mvo_cpl_ready_o,
  output logic                  idle_o
);

  // Commands of one engine are counted from 0 modulo 2^32: `goal` is not after `at`.
  function automatic logic reached(input logic [31:0] goal, input logic [31:0] at);
    return $signed(at - goal) >= 0;
  endfunction

  // ---------------------------------------------------------------- decode
  logic to_dma, to_mmu, to_mvi, to_mvo, to_local;
  logic bad, port_ok;

  assign port_ok = 32'(cmd_i.port) < NumStreams;
  assign bad = cmd_i.rsvd != '0 || (cmd_i.flags >> (FlagHuge + 1)) != '0;

  always_comb begin
    {to_dma, to_mmu, to_mvi, to_mvo} = '0;
    if (!bad) begin
      unique case (cmd_i.op)
        OpH2c, OpC2h, OpFill:           to_dma = 1'b1;
        OpMap, OpUnmap, OpDeny, OpScan: to_mmu = 1'b1;
        OpMoveIn:                       to_mvi = port_ok;
        OpMoveOut:                      to_mvo = port_ok;
        default:                        ;
      endcase
    end
    to_local = ~|{to_dma, to_mmu, to_mvi, to_mvo};
  end

  // ---------------------------------------------------------------- DMA and MMU: wait in a queue, each with the count to wait for
  typedef struct packed {
    logic        wait_q;
    logic [31:0] upto;
    cmd_t        cmd;
  } held_t;

  logic [31:0] dma_in_q, dma_done_q, mmu_in_q, mmu_done_q;
  logic dma_ready, dma_held_valid, dma_go, mmu_ready, mmu_held_valid, mmu_go;
  held_t dma_held, mmu_held, dma_new, mmu_new;

  assign dma_new = '{wait_q: cmd_i.flags[FlagFence], upto: mmu_in_q, cmd: cmd_i};
  assign mmu_new = '{wait_q: cmd_i.op inside {OpMap, OpUnmap}, upto: dma_in_q, cmd: cmd_i};

  via_fifo #(
    .T(held_t),
    .Depth(Depth)
  ) u_dma (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (dma_new),
    .s_valid_i(cmd_valid_i && to_dma),
    .s_ready_o(dma_ready),
    .m_o      (dma_held),
    .m_valid_o(dma_held_valid),
    .m_ready_i(dma_cmd_ready_i && dma_go),
    .count_o  ()
  );

  via_fifo #(
    .T(held_t),
    .Depth(Depth)
  ) u_mmu (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (mmu_new),
    .s_valid_i(cmd_valid_i && to_mmu),
    .s_ready_o(mmu_ready),
    .m_o      (mmu_held),
    .m_valid_o(mmu_held_valid),
    .m_ready_i(mmu_cmd_ready_i && mmu_go),
    .count_o  ()
  );

  assign dma_go = !dma_held.wait_q || reached(dma_held.upto, mmu_done_q);
  assign mmu_go = !mmu_held.wait_q || reached(mmu_held.upto, dma_done_q);
  assign dma_cmd_o = dma_held.cmd;
  assign mmu_cmd_o = mmu_held.cmd;
  assign dma_cmd_valid_o = dma_held_valid && dma_go;
  assign mmu_cmd_valid_o = mmu_held_valid && mmu_go;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dma_in_q   <= '0;
      dma_done_q <= '0;
      mmu_in_q   <= '0;
      mmu_done_q <= '0;
    end else begin
      if (cmd_valid_i && to_dma && dma_ready) dma_in_q <= dma_in_q + 1'b1;
      if (cmd_valid_i && to_mmu && mmu_ready) mmu_in_q <= mmu_in_q + 1'b1;
      if (dma_cpl_valid_i && dma_cpl_ready_o) dma_done_q <= dma_done_q + 1'b1;
      if (mmu_cpl_valid_i && mmu_cpl_ready_o) mmu_done_q <= mmu_done_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------- movers and local answers
  logic [NumStreams-1:0] port_1h;
  logic local_valid_q, local_ready, local_gnt;
  cpl_t local_q;

  assign port_1h = NumStreams'(1) << cmd_i.port;
  assign move_cmd_o = cmd_i;
  assign mvi_cmd_valid_o = port_1h & {NumStreams{cmd_valid_i && to_mvi}};
  assign mvo_cmd_valid_o = port_1h & {NumStreams{cmd_valid_i && to_mvo}};
  assign local_ready = !local_valid_q || local_gnt;

  assign cmd_ready_o = to_dma && dma_ready || to_mmu && mmu_ready || to_local && local_ready ||
                       to_mvi && |(port_1h & mvi_cmd_ready_i) || to_mvo && |(port_1h & mvo_cmd_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) local_valid_q <= 1'b0;
    else if (local_ready) local_valid_q <= cmd_valid_i && to_local;
  end

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && to_local && local_ready) begin
      local_q <= '{
          info: '0,
          bytes: '0,
          tag: cmd_i.tag,
          status: (cmd_i.op == OpNop && !bad) ? StOk : StBadOp,
          op: cmd_i.op,
          flags: '0
      };
    end
  end

  // ---------------------------------------------------------------- completions
  localparam int unsigned NumSrc = 3 + 2 * NumStreams;
  cpl_t src[NumSrc];
  logic [NumSrc-1:0] src_valid, src_ready, src_gnt;
  logic cpl_valid, cpl_ready;
  cpl_t cpl;

  assign src_valid = {mvo_cpl_valid_i, mvi_cpl_valid_i, mmu_cpl_valid_i, dma_cpl_valid_i, local_valid_q};
  assign {mvo_cpl_ready_o, mvi_cpl_ready_o, mmu_cpl_ready_o, dma_cpl_ready_o, local_gnt} = src_ready;
  assign src[0] = local_q;
  assign src[1] = dma_cpl_i;
  assign src[2] = mmu_cpl_i;
  for (genvar k = 0; k < NumStreams; k++) begin : gen_src
    assign src[3+k] = mvi_cpl_i[k];
    assign src[3+NumStreams+k] = mvo_cpl_i[k];
  end

  via_rr_arb #(
    .N(NumSrc)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (src_valid),
    .ack_i  (cpl_ready),
    .gnt_o  (src_gnt),
    .idx_o  (),
    .valid_o(cpl_valid)
  );

  assign src_ready = src_gnt & {NumSrc{cpl_ready}};

  always_comb begin
    cpl = src[0];
    for (int unsigned i = 1; i < NumSrc; i++) if (src_gnt[i]) cpl = src[i];
  end

  via_slice #(
    .T(cpl_t)
  ) u_cpl (
    .clk_i,
    .rst_ni,
    .s_i      (cpl),
    .s_valid_i(cpl_valid),
    .s_ready_o(cpl_ready),
    .m_o      (cpl_o),
    .m_valid_o(cpl_valid_o),
    .m_ready_i(cpl_ready_i)
  );

  assign idle_o = ~|{cmd_valid_i, dma_held_valid, mmu_held_valid, src_valid, cpl_valid_o};

endmodule
