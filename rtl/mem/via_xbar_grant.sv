// SPDX-License-Identifier: Apache-2.0
//
// Address half of one crossbar direction: decodes, grants, and records the grant on both sides.
//
// Throughput: one burst a manager and one a target each cycle. Latency: one cycle. The last manager has priority, the others rotate. A
// grant enters the manager's queue and the target's queue in the same cycle; the grants of a cycle form a matching, so all queues agree on
// one order of all bursts. Targets 0..NumSub-1 are ports; target NumSub stands for bursts that complete with an error.

module via_xbar_grant
  import via_pkg::*;
#(
  parameter  int unsigned NumMgr = NumSlots + 1,
  parameter  int unsigned NumSub = NumChan + 1,
  localparam int unsigned TgtW   = $clog2(NumSub + 1),
  localparam int unsigned MgrW   = (NumMgr > 1) ? $clog2(NumMgr) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  axi_ax_t              s_ax_i      [  NumMgr],
  input  logic    [NumMgr-1:0] s_ax_valid_i,
  output logic    [NumMgr-1:0] s_ax_ready_o,
  output axi_ax_t              m_ax_o      [NumSub+1],
  output logic    [  NumSub:0] m_ax_valid_o,
  input  logic    [  NumSub:0] m_ax_ready_i,
  // The order queues of managers and targets: level "has room", one-cycle pulse "push", entry.
  input  logic    [NumMgr-1:0] mgr_room_i,              // level: the manager's queue has room
  input  logic    [  NumSub:0] tgt_room_i,              // level: the target's queue has room
  output logic    [NumMgr-1:0] mgr_push_o,              // pulse: a burst of the manager is granted
  output logic    [  TgtW-1:0] mgr_tgt_o   [  NumMgr],  // its target, decoded from the address offered
  output logic    [  NumSub:0] tgt_push_o,              // pulse: a burst to the target is granted
  output logic    [  MgrW-1:0] tgt_mgr_o   [NumSub+1]   // its manager
);

  localparam bit NumMgrOk = param_in("via_xbar_grant NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar_grant NumSub", NumSub, NumChan + 1, NumChan + 1);

  localparam int unsigned ChanW = (NumChan > 1) ? $clog2(NumChan) : 1;
  localparam int unsigned Dma = NumMgr - 1;

  // Address bits above the card's memory are ignored here; the MMU and the DMA engine check them.
  always_comb begin
    for (int unsigned m = 0; m < NumMgr; m++) begin
      if (s_ax_i[m].addr[AddrErrBit]) mgr_tgt_o[m] = TgtW'(NumSub);
      else if (s_ax_i[m].addr[AddrHostBit]) mgr_tgt_o[m] = TgtW'(NumSub - 1);
      else if (NumChan == 1) mgr_tgt_o[m] = '0;
      else mgr_tgt_o[m] = TgtW'(s_ax_i[m].addr[ChanLog2+:ChanW]);
    end
  end

  logic [NumMgr-1:0] gnt[NumSub+1];

  for (genvar t = 0; t <= NumSub; t++) begin : gen_tgt
    logic [NumMgr-1:0] req, first;
    logic slice_ready, grant;

    always_comb begin
      for (int unsigned m = 0; m < NumMgr; m++) begin
        req[m] = s_ax_valid_i[m] && mgr_room_i[m] && mgr_tgt_o[m] == TgtW'(t);
      end
      first = req;
      if (req[Dma]) first = NumMgr'(1) << Dma;
    end

    logic [NumMgr-1:0] pick;
    via_rr_arb #(
      .N(NumMgr)
    ) u_arb (
      .clk_i,
      .rst_ni,
      .req_i  (first),
      .ack_i  (grant),
      .gnt_o  (pick),
      .idx_o  (tgt_mgr_o[t]),
      .valid_o()
    );

    assign grant = |req && slice_ready && tgt_room_i[t];
    assign gnt[t] = grant ? pick : '0;
    assign tgt_push_o[t] = grant;

    axi_ax_t ax;
    always_comb begin
      ax = s_ax_i[tgt_mgr_o[t]];
      ax.id = '0;
      if (t < NumChan) ax.addr = AddrW'(ax.addr[ChanLog2-1:0]);
      else ax.addr[AddrW-1:AddrErrBit] = '0;
    end

    via_slice #(
      .T(axi_ax_t)
    ) u_slice (
      .clk_i,
      .rst_ni,
      .s_i      (ax),
      .s_valid_i(grant),
      .s_ready_o(slice_ready),
      .m_o      (m_ax_o[t]),
      .m_valid_o(m_ax_valid_o[t]),
      .m_ready_i(m_ax_ready_i[t])
    );
  end

  always_comb begin
    mgr_push_o = '0;
    for (int unsigned t = 0; t <= NumSub; t++) mgr_push_o |= gnt[t];
  end
  assign s_ax_ready_o = mgr_push_o;

endmodule
