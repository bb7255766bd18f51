// SPDX-License-Identifier: Apache-2.0
//
// Hands the commands of one slot to the engine each is for, and merges the completions.
// Throughput: one command and one completion per cycle. Latency: one cycle to a mover, three to DMA and MMU; one for completions, two of DMA and MMU.
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

  localparam bit DepthOk = param_in("via_dispatch Depth", Depth, 1, 256);

  // Commands of one engine are counted from 0 modulo 2^32: `goal` is not after `at`.
  function automatic logic reached(input logic [31:0] goal, input logic [31:0] at);
    return $signed(at - goal) >= 0;
  endfunction

  // ---------------------------------------------------------------- decode, on the way into a slice
  typedef struct packed {
    logic                  to_dma;
    logic                  to_mmu;
    logic                  to_local;
    logic                  nop;       // done by being answered
    logic [NumStreams-1:0] mvi;       // one-hot, with the stream
    logic [NumStreams-1:0] mvo;
    cmd_t                  cmd;
  } in_t;
  in_t in, at;
  cmd_t cmd;
  logic at_valid, at_ready, port_ok, to_mvi, to_mvo;

  always_comb begin
    in = '0;
    in.cmd = cmd_i;
    {to_mvi, to_mvo} = '0;
    port_ok = 1'b0;
    for (int unsigned k = 0; k < NumStreams; k++) port_ok |= cmd_i.port == 8'(k);
    if (cmd_i.rsvd == '0 && cmd_i.flags[7:FlagHuge+1] == '0) begin
      unique case (cmd_i.op)
        OpNop:                          in.nop = 1'b1;
        OpH2c, OpC2h, OpFill:           in.to_dma = 1'b1;
        OpMap, OpUnmap, OpDeny, OpScan: in.to_mmu = 1'b1;
        OpMoveIn:                       to_mvi = port_ok;
        OpMoveOut:                      to_mvo = port_ok;
        default:                        ;
      endcase
    end
    for (int unsigned k = 0; k < NumStreams; k++) begin
      in.mvi[k] = to_mvi && cmd_i.port == 8'(k);
      in.mvo[k] = to_mvo && cmd_i.port == 8'(k);
    end
    in.to_local = ~|{in.to_dma, in.to_mmu, to_mvi, to_mvo};
  end

  via_slice #(
    .T(in_t)
  ) u_in (
    .clk_i,
    .rst_ni,
    .s_i      (in),
    .s_valid_i(cmd_valid_i),
    .s_ready_o(cmd_ready_o),
    .m_o      (at),
    .m_valid_o(at_valid),
    .m_ready_i(at_ready)
  );
  assign cmd = at.cmd;

  // ---------------------------------------------------------------- DMA and MMU: wait in a queue, each with the count to wait for
  typedef struct packed {
    logic        waits;
    logic [31:0] upto;
    cmd_t        cmd;
  } held_t;

  cpl_t dma_cpl, mmu_cpl;
  logic dma_cpl_valid, dma_cpl_ready, mmu_cpl_valid, mmu_cpl_ready;
  logic [31:0] dma_in_q, dma_done_q, mmu_in_q, mmu_done_q;
  logic dma_ready, dma_held_valid, dma_next, dma_valid_q, mmu_ready, mmu_held_valid, mmu_next, mmu_valid_q;
  held_t dma_held, mmu_held, dma_q, mmu_q;

  via_fifo #(
    .T(held_t),
    .Depth(Depth)
  ) u_dma (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{waits: cmd.flags[FlagFence], upto: mmu_in_q, cmd: cmd}),
    .s_valid_i(at_valid && at.to_dma),
    .s_ready_o(dma_ready),
    .m_o      (dma_held),
    .m_valid_o(dma_held_valid),
    .m_ready_i(dma_next),
    .count_o  ()
  );

  via_fifo #(
    .T(held_t),
    .Depth(Depth)
  ) u_mmu (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{waits: cmd.op inside {OpMap, OpUnmap}, upto: dma_in_q, cmd: cmd}),
    .s_valid_i(at_valid && at.to_mmu),
    .s_ready_o(mmu_ready),
    .m_o      (mmu_held),
    .m_valid_o(mmu_held_valid),
    .m_ready_i(mmu_next),
    .count_o  ()
  );

  // The first of each queue stands in a register and goes once its wait is over.
  assign dma_cmd_o = dma_q.cmd;
  assign mmu_cmd_o = mmu_q.cmd;
  assign dma_cmd_valid_o = dma_valid_q && !dma_q.waits;
  assign mmu_cmd_valid_o = mmu_valid_q && !mmu_q.waits;
  assign dma_next = !dma_valid_q || dma_cmd_ready_i && !dma_q.waits;
  assign mmu_next = !mmu_valid_q || mmu_cmd_ready_i && !mmu_q.waits;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dma_valid_q <= 1'b0;
      mmu_valid_q <= 1'b0;
    end else begin
      if (dma_next) dma_valid_q <= dma_held_valid;
      if (mmu_next) mmu_valid_q <= mmu_held_valid;
    end
  end
  always_ff @(posedge clk_i) begin
    if (dma_next) dma_q <= dma_held;
    if (mmu_next) mmu_q <= mmu_held;
    dma_q.waits <= dma_next ? dma_held.waits && !reached(dma_held.upto, mmu_done_q) : dma_q.waits && !reached(dma_q.upto, mmu_done_q);
    mmu_q.waits <= mmu_next ? mmu_held.waits && !reached(mmu_held.upto, dma_done_q) : mmu_q.waits && !reached(mmu_q.upto, dma_done_q);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dma_in_q   <= '0;
      dma_done_q <= '0;
      mmu_in_q   <= '0;
      mmu_done_q <= '0;
    end else begin
      if (at_valid && at.to_dma && dma_ready) dma_in_q <= dma_in_q + 1'b1;
      if (at_valid && at.to_mmu && mmu_ready) mmu_in_q <= mmu_in_q + 1'b1;
      if (dma_cpl_valid && dma_cpl_ready) dma_done_q <= dma_done_q + 1'b1;
      if (mmu_cpl_valid && mmu_cpl_ready) mmu_done_q <= mmu_done_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------- movers and local answers
  logic local_valid_q, local_ready, local_gnt;
  cpl_t local_q;

  assign move_cmd_o = cmd;
  assign mvi_cmd_valid_o = at.mvi & {NumStreams{at_valid}};
  assign mvo_cmd_valid_o = at.mvo & {NumStreams{at_valid}};
  assign local_ready = !local_valid_q || local_gnt;

  assign at_ready = at.to_dma && dma_ready || at.to_mmu && mmu_ready || at.to_local && local_ready ||
                    |(at.mvi & mvi_cmd_ready_i) || |(at.mvo & mvo_cmd_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) local_valid_q <= 1'b0;
    else if (local_ready) local_valid_q <= at_valid && at.to_local;
  end

  always_ff @(posedge clk_i) begin
    if (at_valid && at.to_local && local_ready) begin
      local_q <= '{info: '0, bytes: '0, tag: cmd.tag, status: at.nop ? StOk : StBadOp, op: cmd.op, flags: '0};
    end
  end

  // ---------------------------------------------------------------- completions
  // Those of DMA come from an engine that all slots share, those of the MMU from behind its tables: each into a slice.
  via_slice #(
    .T(cpl_t)
  ) u_dma_cpl (
    .clk_i,
    .rst_ni,
    .s_i      (dma_cpl_i),
    .s_valid_i(dma_cpl_valid_i),
    .s_ready_o(dma_cpl_ready_o),
    .m_o      (dma_cpl),
    .m_valid_o(dma_cpl_valid),
    .m_ready_i(dma_cpl_ready)
  );

  via_slice #(
    .T(cpl_t)
  ) u_mmu_cpl (
    .clk_i,
    .rst_ni,
    .s_i      (mmu_cpl_i),
    .s_valid_i(mmu_cpl_valid_i),
    .s_ready_o(mmu_cpl_ready_o),
    .m_o      (mmu_cpl),
    .m_valid_o(mmu_cpl_valid),
    .m_ready_i(mmu_cpl_ready)
  );

  localparam int unsigned NumSrc = 3 + 2 * NumStreams;
  cpl_t src[NumSrc];
  logic [NumSrc-1:0] src_valid, src_ready, src_gnt;
  logic cpl_valid, cpl_ready;
  cpl_t cpl;

  assign src_valid[2:0] = {mmu_cpl_valid, dma_cpl_valid, local_valid_q};
  assign {mmu_cpl_ready, dma_cpl_ready, local_gnt} = src_ready[2:0];
  assign src[0] = local_q;
  assign src[1] = dma_cpl;
  assign src[2] = mmu_cpl;
  for (genvar k = 0; k < NumStreams; k++) begin : gen_src
    via_skid #(
      .T(cpl_t)
    ) u_mvi_cpl (
      .clk_i,
      .rst_ni,
      .s_i      (mvi_cpl_i[k]),
      .s_valid_i(mvi_cpl_valid_i[k]),
      .s_ready_o(mvi_cpl_ready_o[k]),
      .m_o      (src[3+k]),
      .m_valid_o(src_valid[3+k]),
      .m_ready_i(src_ready[3+k])
    );
    via_skid #(
      .T(cpl_t)
    ) u_mvo_cpl (
      .clk_i,
      .rst_ni,
      .s_i      (mvo_cpl_i[k]),
      .s_valid_i(mvo_cpl_valid_i[k]),
      .s_ready_o(mvo_cpl_ready_o[k]),
      .m_o      (src[3+NumStreams+k]),
      .m_valid_o(src_valid[3+NumStreams+k]),
      .m_ready_i(src_ready[3+NumStreams+k])
    );
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
    cpl = '0;
    for (int unsigned i = 0; i < NumSrc; i++) if (src_gnt[i]) cpl |= src[i];
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

  assign idle_o = ~|{cmd_valid_i, at_valid, dma_held_valid, dma_valid_q, mmu_held_valid, mmu_valid_q, dma_cpl_valid_i, mmu_cpl_valid_i, src_valid, cpl_valid_o};

endmodule
