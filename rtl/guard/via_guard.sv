// SPDX-License-Identifier: Apache-2.0
//
// Guard of a slot's memory port: whatever the app does, everything that passes obeys the rules of the shell.
//
// Throughput: one R and one W beat a cycle, one burst a cycle each way. Latency: two cycles for AR, and for AW from its last W beat; two
// for R.
// Order: in order; the app's ids are returned. A read passes when there is buffer for its whole response, a write when all of its beats are
// held, so the shell never waits for the app.
// Misuse: bursts that are not incrementing, full-width and aligned (EvBadBurst) or cross 4 KiB (EvCross4k), WLAST that contradicts AWLEN
// (EvWlast), a write begun for which no beat comes for StuckCycles (EvStuck): violation_o pulses every second cycle until isolate_i, and
// the burst does not pass; valid dropped before ready (EvUnstable): one pulse for each time. The parent raises isolate_i at the first
// pulse: the app is cut off, unfinished bursts are dropped, outstanding responses are drained; quiet_o says when. A payload that changes
// before ready is not noticed: what passes, and is checked, is what is there with ready.

module via_guard
  import via_pkg::*;
#(
  parameter int unsigned RdOutstanding = 256,   // reads in flight
  parameter int unsigned WrOutstanding = 256,   // writes in flight
  parameter int unsigned RdBeats       = 2048,  // buffer for read data
  parameter int unsigned WrBeats       = 256,   // buffer for write data
  parameter int unsigned StuckCycles   = 65536  // without a beat of a write begun: a violation
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  // slot
  input  axi_ax_t        s_ar_i,
  input  logic           s_ar_valid_i,
  output logic           s_ar_ready_o,
  output axi_r_t         s_r_o,
  output logic           s_r_valid_o,
  input  logic           s_r_ready_i,
  input  axi_ax_t        s_aw_i,
  input  logic           s_aw_valid_i,
  output logic           s_aw_ready_o,
  input  axi_w_t         s_w_i,
  input  logic           s_w_valid_i,
  output logic           s_w_ready_o,
  output axi_b_t         s_b_o,
  output logic           s_b_valid_o,
  input  logic           s_b_ready_i,
  // shell
  output axi_ax_t        m_ar_o,
  output logic           m_ar_valid_o,
  input  logic           m_ar_ready_i,
  input  axi_r_t         m_r_i,
  input  logic           m_r_valid_i,
  output logic           m_r_ready_o,
  output axi_ax_t        m_aw_o,
  output logic           m_aw_valid_o,
  input  logic           m_aw_ready_i,
  output axi_w_t         m_w_o,
  output logic           m_w_valid_o,
  input  logic           m_w_ready_i,
  input  axi_b_t         m_b_i,
  input  logic           m_b_valid_i,
  output logic           m_b_ready_o,
  // control
  input  logic           quiesce_i,     // level: accept no new burst from the app
  input  logic           isolate_i,     // level, held until reset: cut the app off
  output logic           violation_o,   // pulse, for most rules every second cycle until isolate_i: a rule was broken
  output event_e         cause_o,       // with violation_o: which rule
  output logic    [63:0] va_o,          // with violation_o: address of the burst
  output logic           is_write_o,    // with violation_o: it was a write
  output logic           quiet_o        // level: nothing of the app is in flight in the shell
);

  localparam bit RdOutstandingOk = param_in("via_guard RdOutstanding", RdOutstanding, 1, 1024);
  localparam bit WrOutstandingOk = param_in("via_guard WrOutstanding", WrOutstanding, 1, 1024);
  localparam bit RdBeatsOk = param_in("via_guard RdBeats", RdBeats, MaxBurstBeats, 65536);
  localparam bit WrBeatsOk = param_in("via_guard WrBeats", WrBeats, MaxBurstBeats, 65536);
  localparam bit StuckCyclesOk = param_in("via_guard StuckCycles", StuckCycles, 1, 1 << 30);

  logic rd_violation, wr_violation, rd_quiet, wr_quiet;
  event_e rd_cause, wr_cause;
  logic [63:0] rd_va, wr_va;

  via_guard_rd #(
    .Outstanding(RdOutstanding),
    .Beats      (RdBeats)
  ) u_rd (
    .clk_i,
    .rst_ni,
    .s_ar_i,
    .s_ar_valid_i,
    .s_ar_ready_o,
    .s_r_o,
    .s_r_valid_o,
    .s_r_ready_i,
    .m_ar_o,
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o,
    .quiesce_i,
    .isolate_i,
    .violation_o(rd_violation),
    .cause_o    (rd_cause),
    .va_o       (rd_va),
    .quiet_o    (rd_quiet)
  );

  via_guard_wr #(
    .Outstanding(WrOutstanding),
    .Beats      (WrBeats),
    .StuckCycles(StuckCycles)
  ) u_wr (
    .clk_i,
    .rst_ni,
    .s_aw_i,
    .s_aw_valid_i,
    .s_aw_ready_o,
    .s_w_i,
    .s_w_valid_i,
    .s_w_ready_o,
    .s_b_o,
    .s_b_valid_o,
    .s_b_ready_i,
    .m_aw_o,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_w_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_b_i,
    .m_b_valid_i,
    .m_b_ready_o,
    .quiesce_i,
    .isolate_i,
    .violation_o(wr_violation),
    .cause_o    (wr_cause),
    .va_o       (wr_va),
    .quiet_o    (wr_quiet)
  );

  // Reported one cycle later; the offending burst stays where it is until the parent isolates the slot.
  logic violation_q, is_write_q, quiet_q;
  event_e cause_q;
  logic [63:0] va_q;
  always_ff @(posedge clk_i) begin
    violation_q <= rst_ni && (rd_violation || wr_violation) && !violation_q;
    quiet_q     <= rd_quiet && wr_quiet;
    is_write_q  <= !rd_violation;
    cause_q     <= rd_violation ? rd_cause : wr_cause;
    va_q        <= rd_violation ? rd_va : wr_va;
  end
  assign violation_o = violation_q;
  assign is_write_o = is_write_q;
  assign cause_o = cause_q;
  assign va_o = va_q;
  assign quiet_o = quiet_q;

endmodule
