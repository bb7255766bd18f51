// SPDX-License-Identifier: Apache-2.0
//
// Routes the commands of one slot to their engines, and merges the completions.
// Throughput: one command and one completion per cycle. Latency: one cycle to a mover, three to DMA and MMU; one for completions, two of
// DMA and MMU, one more if the previous completion came from another engine.
// Order: commands for one engine keep their order; engines run in parallel, except that
//   - OpMap and OpUnmap wait until every DMA command before them is complete (later DMA commands do not wait for them), and
//   - DMA with FlagFence waits until every MMU command before it is complete.
// Both wait for earlier commands only, so there is no cycle of waiting. They rely on DMA and MMU completing in order.
// Misuse: an unknown operation, a reserved bit set, or a stream that does not exist completes with StBadOp here.

module via_dispatch
  import via_pkg::*;
#(
  parameter int unsigned Depth  = 16,  // commands waiting for DMA, and for the MMU, each
  parameter int unsigned Flight = 127  // DMA commands, and MMU commands, accepted and not complete: no more are accepted
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  cmd_t                  cmd_i,                        // next command of the slot
  input  logic                  cmd_valid_i,
  output logic                  cmd_ready_o,
  output cpl_t                  cpl_o,                        // completion of any engine
  output logic                  cpl_valid_o,
  input  logic                  cpl_ready_i,
  // engines
  output cmd_t                  dma_cmd_o,                    // without port, id and reserved bits
  output logic                  dma_cmd_valid_o,
  input  logic                  dma_cmd_ready_i,
  input  cpl_t                  dma_cpl_i,                    // completion from DMA
  input  logic                  dma_cpl_valid_i,
  output logic                  dma_cpl_ready_o,
  output cmd_t                  mmu_cmd_o,                    // without port, id, reserved bits and length
  output logic                  mmu_cmd_valid_o,
  input  logic                  mmu_cmd_ready_i,
  input  cpl_t                  mmu_cpl_i,                    // completion from the MMU
  input  logic                  mmu_cpl_valid_i,
  output logic                  mmu_cpl_ready_o,
  output cmd_t                  move_cmd_o,                   // command for the mover whose valid is set
  output logic [NumStreams-1:0] mvi_cmd_valid_o,
  input  logic [NumStreams-1:0] mvi_cmd_ready_i,
  input  cpl_t                  mvi_cpl_i      [NumStreams],  // completions of the movers in
  input  logic [NumStreams-1:0] mvi_cpl_valid_i,
  output logic [NumStreams-1:0] mvi_cpl_ready_o,
  output logic [NumStreams-1:0] mvo_cmd_valid_o,
  input  logic [NumStreams-1:0] mvo_cmd_ready_i,
  input  cpl_t                  mvo_cpl_i      [NumStreams],  // completions of the movers out
  input  logic [NumStreams-1:0] mvo_cpl_valid_i,
  output logic [NumStreams-1:0] mvo_cpl_ready_o,
  output logic                  idle_o                        // level: no command waits, no completion is held
);

  localparam bit DepthOk = param_in("via_dispatch Depth", Depth, 1, 64);
  localparam bit FlightOk = param_in("via_dispatch Flight", Flight, Depth + 2, 127);

  // ---------------------------------------------------------------- decode, on the way into a slice
  // The decoded command is held in flip-flops, the command itself in a memory; no engine reads its reserved bits.
  typedef struct packed {
    logic                  odd;       // a reserved bit is set: completed here, whatever its operation
    logic                  to_dma;
    logic                  to_mmu;
    logic                  to_local;
    logic                  nop;       // only needs a completion
    logic                  fence;     // DMA: waits for the MMU; MMU: waits for DMA
    logic [NumStreams-1:0] mvi;       // one-hot, by stream; zero if odd: these are outputs
    logic [NumStreams-1:0] mvo;
  } to_t;
  localparam int unsigned FlagW = FlagTable + 1;
  typedef struct packed {
    logic [31:0]      len;
    logic [63:0]      addr1;
    logic [63:0]      addr0;
    logic [31:0]      tag;
    logic [7:0]       id;
    logic [7:0]       port;
    logic [FlagW-1:0] flags;
    logic [7:0]       op;
  } short_t;
  to_t in, at;
  short_t cmd;
  logic at_valid, at_ready, at_good, at_here, port_ok, to_mvi, to_mvo;

  always_comb begin
    in = '0;
    {to_mvi, to_mvo} = '0;
    port_ok = 1'b0;
    for (int unsigned k = 0; k < NumStreams; k++) port_ok |= cmd_i.port == 8'(k);
    in.odd = cmd_i.rsvd != '0 || cmd_i.flags[7:FlagW] != '0;
    unique case (cmd_i.op)
      OpNop: in.nop = 1'b1;
      OpH2c, OpC2h, OpFill: begin
        in.to_dma = 1'b1;
        in.fence  = cmd_i.flags[FlagFence];
      end
      OpMap, OpUnmap: begin
        in.to_mmu = 1'b1;
        in.fence  = 1'b1;
      end
      OpDeny, OpScan: in.to_mmu = 1'b1;
      OpMoveIn: to_mvi = port_ok;
      OpMoveOut: to_mvo = port_ok;
      default: ;
    endcase
    for (int unsigned k = 0; k < NumStreams; k++) begin
      in.mvi[k] = to_mvi && cmd_i.port == 8'(k) && !in.odd;
      in.mvo[k] = to_mvo && cmd_i.port == 8'(k) && !in.odd;
    end
    in.to_local = ~|{in.to_dma, in.to_mmu, to_mvi, to_mvo};
  end

  via_slice #(
    .T(to_t)
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
  // Moves in step with the slice above: filled and emptied in the same cycles.
  via_slice #(
    .T  (short_t),
    .Ram(1'b1)
  ) u_cmd (
    .clk_i,
    .rst_ni,
    .s_i(
    '{
        len: cmd_i.len,
        addr1: cmd_i.addr1,
        addr0: cmd_i.addr0,
        tag: cmd_i.tag,
        id: cmd_i.id,
        port: cmd_i.port,
        flags: cmd_i.flags[FlagW-1:0],
        op: cmd_i.op
    }
    ),
    .s_valid_i(cmd_valid_i),
    .s_ready_o(),
    .m_o(cmd),
    .m_valid_o(),
    .m_ready_i(at_ready)
  );

  // ---------------------------------------------------------------- DMA and MMU: each waits for earlier commands of the other
  typedef struct packed {
    logic [31:0]      len;
    logic [63:0]      addr1;
    logic [63:0]      addr0;
    logic [31:0]      tag;
    logic [FlagW-1:0] flags;
    logic [7:0]       op;
  } dma_cmd_t;
  typedef struct packed {
    logic [63:0]      addr1;
    logic [63:0]      addr0;
    logic [31:0]      tag;
    logic [FlagW-1:0] flags;
    logic [7:0]       op;
  } mmu_cmd_t;
  dma_cmd_t dma_cmd;
  mmu_cmd_t mmu_cmd;
  cpl_t dma_cpl, mmu_cpl;
  logic dma_cpl_valid, dma_cpl_ready, mmu_cpl_valid, mmu_cpl_ready;
  logic dma_ready, dma_empty, mmu_ready, mmu_empty;
  logic [7:0] dma_taken, dma_complete, mmu_taken, mmu_complete;

  via_dispatch_queue #(
    .T     (dma_cmd_t),
    .Depth (Depth),
    .Flight(Flight)
  ) u_dma (
    .clk_i,
    .rst_ni,
    .s_i             ('{len: cmd.len, addr1: cmd.addr1, addr0: cmd.addr0, tag: cmd.tag, flags: cmd.flags, op: cmd.op}),
    .s_fence_i       (at.fence),
    .s_valid_i       (at_good && at.to_dma),
    .s_ready_o       (dma_ready),
    .m_o             (dma_cmd),
    .m_valid_o       (dma_cmd_valid_o),
    .m_ready_i       (dma_cmd_ready_i),
    .complete_i      (dma_cpl_valid && dma_cpl_ready),
    .taken_o         (dma_taken),
    .complete_o      (dma_complete),
    .rival_taken_i   (mmu_taken),
    .rival_complete_i(mmu_complete),
    .empty_o         (dma_empty)
  );

  via_dispatch_queue #(
    .T     (mmu_cmd_t),
    .Depth (Depth),
    .Flight(Flight)
  ) u_mmu (
    .clk_i,
    .rst_ni,
    .s_i             ('{addr1: cmd.addr1, addr0: cmd.addr0, tag: cmd.tag, flags: cmd.flags, op: cmd.op}),
    .s_fence_i       (at.fence),
    .s_valid_i       (at_good && at.to_mmu),
    .s_ready_o       (mmu_ready),
    .m_o             (mmu_cmd),
    .m_valid_o       (mmu_cmd_valid_o),
    .m_ready_i       (mmu_cmd_ready_i),
    .complete_i      (mmu_cpl_valid && mmu_cpl_ready),
    .taken_o         (mmu_taken),
    .complete_o      (mmu_complete),
    .rival_taken_i   (dma_taken),
    .rival_complete_i(dma_complete),
    .empty_o         (mmu_empty)
  );

  always_comb begin
    dma_cmd_o = '0;
    dma_cmd_o.len = dma_cmd.len;
    dma_cmd_o.addr1 = dma_cmd.addr1;
    dma_cmd_o.addr0 = dma_cmd.addr0;
    dma_cmd_o.tag = dma_cmd.tag;
    dma_cmd_o.flags = 8'(dma_cmd.flags);
    dma_cmd_o.op = dma_cmd.op;
    mmu_cmd_o = '0;
    mmu_cmd_o.addr1 = mmu_cmd.addr1;
    mmu_cmd_o.addr0 = mmu_cmd.addr0;
    mmu_cmd_o.tag = mmu_cmd.tag;
    mmu_cmd_o.flags = 8'(mmu_cmd.flags);
    mmu_cmd_o.op = mmu_cmd.op;
    move_cmd_o = '{
        rsvd: '0,
        len: cmd.len,
        addr1: cmd.addr1,
        addr0: cmd.addr0,
        tag: cmd.tag,
        id: cmd.id,
        port: cmd.port,
        flags: 8'(cmd.flags),
        op: cmd.op
    };
  end

  // ---------------------------------------------------------------- movers and local completions
  logic local_valid_q, local_ready, local_gnt;
  cpl_t local_q;

  assign at_good = at_valid && !at.odd;
  assign at_here = at_valid && (at.odd || at.to_local);
  assign mvi_cmd_valid_o = at.mvi & {NumStreams{at_valid}};
  assign mvo_cmd_valid_o = at.mvo & {NumStreams{at_valid}};
  assign local_ready = !local_valid_q || local_gnt;

  assign at_ready = at_here && local_ready || at_good && (at.to_dma && dma_ready || at.to_mmu && mmu_ready ||
                    |(at.mvi & mvi_cmd_ready_i) || |(at.mvo & mvo_cmd_ready_i));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) local_valid_q <= 1'b0;
    else if (local_ready) local_valid_q <= at_here;
  end

  always_ff @(posedge clk_i) begin
    if (at_here && local_ready) begin
      local_q <= '{info: '0, bytes: '0, tag: cmd.tag, status: (at.nop && !at.odd) ? StOk : StBadOp, op: cmd.op, flags: '0};
    end
  end

  // ---------------------------------------------------------------- completions
  // Those of DMA come from an engine that all slots share, those of the MMU from behind its tables: each goes through a slice.
  via_slice #(
    .T  (cpl_t),
    .Ram(1'b1)
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
    .T  (cpl_t),
    .Ram(1'b1)
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
  logic [NumSrc-1:0] src_valid, src_ready, turn_q, turn_next;
  logic cpl_valid, cpl_ready, others;
  cpl_t cpl;

  assign src_valid[2:0] = {mmu_cpl_valid, dma_cpl_valid, local_valid_q};
  assign {mmu_cpl_ready, dma_cpl_ready, local_gnt} = src_ready[2:0];
  assign src[0] = local_q;
  assign src[1] = dma_cpl;
  assign src[2] = mmu_cpl;
  for (genvar k = 0; k < NumStreams; k++) begin : gen_src
    assign src[3+k] = mvi_cpl_i[k];
    assign src[3+NumStreams+k] = mvo_cpl_i[k];
  end
  assign src_valid[NumSrc-1:3] = {mvo_cpl_valid_i, mvi_cpl_valid_i};
  assign {mvo_cpl_ready_o, mvi_cpl_ready_o} = src_ready[NumSrc-1:3];

  // The selection is a register, as in via_axi_mux_ax: the selected source may transfer in every cycle, until another one requests.
  via_rr_arb #(
    .N(NumSrc)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (src_valid & ~turn_q),
    .ack_i  (cpl_ready),
    .gnt_o  (turn_next),
    .idx_o  (),
    .valid_o(others)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) turn_q <= NumSrc'(1);
    else if (cpl_ready && others) turn_q <= turn_next;
  end

  assign src_ready = turn_q & {NumSrc{cpl_ready}};
  assign cpl_valid = |(src_valid & turn_q);

  always_comb begin
    cpl = '0;
    for (int unsigned i = 0; i < NumSrc; i++) if (turn_q[i]) cpl |= src[i];
  end

  via_slice #(
    .T  (cpl_t),
    .Ram(1'b1)
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

  // A valid at an input counts as well: the register is then low in the first cycle in which what was accepted is in here.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) idle_o <= 1'b0;
    else idle_o <= ~|{cmd_valid_i, at_valid, !dma_empty, !mmu_empty, dma_cpl_valid_i, mmu_cpl_valid_i, src_valid, cpl_valid_o};
  end

endmodule
