// SPDX-License-Identifier: Apache-2.0
//
// Guard of a stream that leaves a slot: enforces the contract of strm_t.
//
// Throughput: one beat a cycle. Latency: one cycle. Order: kept. Misuse: a beat with partial or empty keep that is not the last, keep that
// is not a run of ones from bit 0, or an id that changes within a message raises `violation_o` with EvStream; a dropped valid raises it
// with EvUnstable. The offending beat and those after it are not passed on; it is reported once the beats before it are accepted.

module via_guard_strm
  import via_pkg::*;
(
  input  logic   clk_i,
  input  logic   rst_ni,
  input  logic   isolate_i,    // level, held until reset: the slot is cut off; what is held is dropped a cycle later
  input  strm_t  s_i,
  input  logic   s_valid_i,
  output logic   s_ready_o,
  output strm_t  m_o,
  output logic   m_valid_o,
  input  logic   m_ready_i,
  output logic   violation_o,  // pulse, every second cycle until isolate_i: a rule was broken
  output event_e cause_o,      // with violation_o: which rule
  output logic   still_o,      // nothing moves unless an input changes
  output logic   quiet_o       // level: no beat is held or offered
);

  // Checked in front of the slice: keep is a run of ones from bit 0, all ones except on the last beat; the id is that of the message.
  logic bad, dropped, stopped, take, open_q, broken;
  logic [7:0] id_q;

  // A run of ones from bit 0 that has the top bit is all ones.
  assign broken = !s_i.keep[0] || |(s_i.keep[StrbW-1:1] & ~s_i.keep[StrbW-2:0]);
  assign bad = broken || !s_i.last && !s_i.keep[StrbW-1] || open_q && s_i.id != id_q;
  assign take = s_valid_i && s_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || isolate_i) open_q <= 1'b0;
    else if (take) open_q <= !s_i.last;
  end
  always_ff @(posedge clk_i) if (take && !open_q) id_q <= s_i.id;

  via_guard_edge #(
    .T(strm_t)
  ) u_edge (
    .clk_i,
    .rst_ni,
    .cut_i    (isolate_i),
    .s_i,
    .s_valid_i,
    .bad_i    (bad),
    .s_ready_o,
    .m_o,
    .m_valid_o,
    .m_ready_i,
    .dropped_o(dropped),
    .stopped_o(stopped)
  );

  // Reported one cycle later, and until the parent isolates the slot.
  logic violation_q, quiet_q;
  event_e cause_q;
  always_ff @(posedge clk_i) begin
    violation_q <= rst_ni && !isolate_i && (stopped || dropped) && !violation_q;
    cause_q     <= dropped ? EvUnstable : EvStream;
    quiet_q     <= !m_valid_o && !stopped || isolate_i;
  end
  assign violation_o = violation_q;
  assign cause_o = cause_q;
  assign quiet_o = quiet_q;
  assign still_o = ~|{take, m_valid_o && m_ready_i, dropped, stopped && !isolate_i};

endmodule
