// SPDX-License-Identifier: Apache-2.0
//
// Guard of a stream that leaves a slot: enforces the contract of strm_t.
//
// Throughput: one beat a cycle. Latency: one cycle. Order: kept. Misuse: a beat with partial or empty keep that is not the last, keep that is not a
// run of ones from bit 0, or an id that changes within a message raises `violation_o` with EvStream; a dropped valid raises it with EvUnstable.
// The offending beat is not passed on. With isolate_i the slot is cut off and what is held is dropped.

module via_guard_strm
  import via_pkg::*;
(
  input  logic   clk_i,
  input  logic   rst_ni,
  input  logic   isolate_i,
  input  strm_t  s_i,
  input  logic   s_valid_i,
  output logic   s_ready_o,
  output strm_t  m_o,
  output logic   m_valid_o,
  input  logic   m_ready_i,
  output logic   violation_o,
  output event_e cause_o,
  output logic   quiet_o
);

  strm_t beat;
  logic valid, bad, dropped, open_q;
  logic [7:0] id_q;

  via_guard_edge #(
    .T(strm_t)
  ) u_edge (
    .clk_i,
    .rst_ni,
    .cut_i    (isolate_i),
    .s_i,
    .s_valid_i,
    .s_ready_o,
    .m_o      (beat),
    .m_valid_o(valid),
    .m_ready_i(m_ready_i && !bad),
    .dropped_o(dropped)
  );

  // A run of ones from bit 0 and its successor share no bit.
  logic keep_bad;
  assign keep_bad = beat.last ? beat.keep == '0 || |(beat.keep & (beat.keep + 1'b1)) : !(&beat.keep);
  assign bad = keep_bad || open_q && beat.id != id_q;

  assign m_o = beat;
  assign m_valid_o = valid && !bad && !isolate_i;
  assign violation_o = !isolate_i && (valid && bad || dropped);
  assign cause_o = dropped ? EvUnstable : EvStream;
  assign quiet_o = !valid || isolate_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || isolate_i) open_q <= 1'b0;
    else if (m_valid_o && m_ready_i) open_q <= !beat.last;
  end
  always_ff @(posedge clk_i) if (m_valid_o && m_ready_i && !open_q) id_q <= beat.id;

endmodule
