// SPDX-License-Identifier: Apache-2.0
//
// Collects the events of one slot into one stream, and decides when the slot is isolated.
//
// A violation (reported by a guard, or an app register that does not respond) isolates the slot in the next cycle, as the host can do too,
// and posts one event; while the slot is isolated, for whatever reason, further violations are not reported. Isolation by a violation ends
// with `ctrl_i.reset`.
// Interrupts of the app are counted; one event may stand for several, and so may one of a flush. Throughput: one event a cycle. Latency:
// two cycles. Order: violations first, MMU events last; events of one source in order. Misuse: an event that waits while its ring has no
// room delays later ones of this slot only.

module via_slot_events
  import via_pkg::*;
#(
  parameter int unsigned NumSrc = 2 + NumStreams  // sources of violations: registers, memory port, streams; lower numbers have priority
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                reset_i,                  // level: ends an isolation by a violation
  input  logic                isolate_i,                // level: the host isolates the slot
  input  logic   [NumSrc-1:0] violation_i,              // one-cycle pulses
  input  evt_t                violation_evt_i[NumSrc],  // event to post, with violation_i
  input  logic                ring_err_cmd_i,           // pulse: the command ring stopped (EvRing)
  input  logic                ring_err_info_i,          // with it: 0 tail, 1 read
  input  logic                ring_err_cpl_i,           // pulse: the completion ring stopped (EvRing)
  input  logic                irq_i,                    // pulse: interrupt of the app
  input  logic                flush_i,                  // pulse: a flush of the disk waits for the host
  input  evt_t                mmu_evt_i,                // faults
  input  logic                mmu_evt_valid_i,
  output logic                mmu_evt_ready_o,
  output evt_t                evt_o,                    // next event
  output logic                evt_valid_o,
  input  logic                evt_ready_i,
  output logic                isolated_o,               // level: by a violation or by the host
  output event_e              cause_o,                  // of the isolation; 0 if by the host
  output logic                idle_o                    // level: no event waits
);

  localparam bit NumSrcOk = param_in("via_slot_events NumSrc", NumSrc, 1, 64);

  logic isolated_q, on_q, violation_q, flush_q, take_violation, take_ring, take_irq, take_flush;
  logic [2:0] ring_q;  // tail jumped, command read, completion write
  logic [1:0] ring_which;
  evt_t violation, violation_evt_q, ring_evt, irq_evt, flush_evt, evt;
  logic evt_valid, evt_room;
  logic [31:0] irqs_q;
  logic irq_q;  // not yet posted
  logic accept;

  always_comb begin
    violation = violation_evt_i[0];
    for (int unsigned i = NumSrc; i > 0; i--) if (violation_i[i-1]) violation = violation_evt_i[i-1];
  end
  assign accept = |violation_i && !isolated_q && !isolate_i && !violation_q;

  assign take_violation = evt_room && violation_q;
  assign take_ring = evt_room && !violation_q && ring_q != '0;
  assign take_irq = evt_room && !violation_q && ring_q == '0 && irq_q;
  assign take_flush = evt_room && !violation_q && ring_q == '0 && !irq_q && flush_q;

  always_comb begin
    ring_which = ring_q[0] ? 2'd0 : ring_q[1] ? 2'd1 : 2'd2;
    ring_evt = '0;
    ring_evt.cause = EvRing;
    ring_evt.source = SrcRings;
    ring_evt.info = 64'(ring_which);
    irq_evt = '0;
    irq_evt.cause = EvIrq;
    irq_evt.source = SrcRegisters;
    irq_evt.info = 64'(irqs_q);
    flush_evt = '0;
    flush_evt.cause = EvFlush;
    flush_evt.source = SrcDisk;

    evt = mmu_evt_i;
    if (violation_q) evt = violation_evt_q;
    else if (ring_q != '0) evt = ring_evt;
    else if (irq_q) evt = irq_evt;
    else if (flush_q) evt = flush_evt;
  end
  assign evt_valid = violation_q || ring_q != '0 || irq_q || flush_q || mmu_evt_valid_i;
  // A waiting event is not replaced by a more urgent one.
  via_slice #(
    .T(evt_t)
  ) u_evt (
    .clk_i,
    .rst_ni,
    .s_i      (evt),
    .s_valid_i(evt_valid),
    .s_ready_o(evt_room),
    .m_o      (evt_o),
    .m_valid_o(evt_valid_o),
    .m_ready_i(evt_ready_i)
  );

  assign mmu_evt_ready_o = evt_room && !violation_q && ring_q == '0 && !irq_q && !flush_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      isolated_q  <= 1'b0;
      violation_q <= 1'b0;
      ring_q      <= '0;
      irqs_q      <= '0;
      irq_q       <= 1'b0;
      on_q        <= 1'b1;
      flush_q     <= 1'b0;
    end else begin
      if (reset_i) isolated_q <= 1'b0;
      else if (accept) isolated_q <= 1'b1;
      on_q <= isolate_i || !reset_i && (isolated_q || accept);
      if (accept) violation_q <= 1'b1;
      else if (take_violation) violation_q <= 1'b0;
      ring_q <= (ring_q & ~(3'(take_ring) << ring_which)) |
                {ring_err_cpl_i, ring_err_cmd_i && ring_err_info_i, ring_err_cmd_i && !ring_err_info_i};
      if (irq_i) irqs_q <= irqs_q + 1'b1;
      irq_q <= irq_i || irq_q && !take_irq;
      if (flush_i) flush_q <= 1'b1;
      else if (take_flush) flush_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) if (accept) violation_evt_q <= violation;

  assign isolated_o = on_q;
  assign cause_o = isolated_q ? violation_evt_q.cause : event_e'(8'h00);
  // An input counts as well: the register is then low in the first cycle in which what came with it is in here.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) idle_o <= 1'b0;
    else idle_o <= ~|{evt_valid, evt_valid_o, violation_i, irq_i, flush_i, ring_err_cmd_i, ring_err_cpl_i};
  end

endmodule
