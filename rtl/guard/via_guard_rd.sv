// SPDX-License-Identifier: Apache-2.0
//
// Read half of via_guard: see there for throughput, latency, order and misuse.

module via_guard_rd
  import via_pkg::*;
#(
  parameter int unsigned Outstanding = 64,  // reads in flight
  parameter int unsigned Beats       = 512  // buffer for read data
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  input  axi_ax_t        s_ar_i,
  input  logic           s_ar_valid_i,
  output logic           s_ar_ready_o,
  output axi_r_t         s_r_o,
  output logic           s_r_valid_o,
  input  logic           s_r_ready_i,
  output axi_ax_t        m_ar_o,
  output logic           m_ar_valid_o,
  input  logic           m_ar_ready_i,
  input  axi_r_t         m_r_i,
  input  logic           m_r_valid_i,
  output logic           m_r_ready_o,
  input  logic           quiesce_i,     // level: accept no new read
  input  logic           isolate_i,     // level, held until reset: the app is cut off
  output logic           violation_o,   // level until isolate_i: a rule was broken
  output event_e         cause_o,       // with violation_o: which rule
  output logic    [63:0] va_o,          // with violation_o: address of the burst
  output logic           quiet_o        // level: no read is in flight
);

  localparam bit OutstandingOk = param_in("via_guard_rd Outstanding", Outstanding, 1, 1024);
  localparam bit BeatsOk = param_in("via_guard_rd Beats", Beats, MaxBurstBeats, 65536);

  localparam int unsigned CreditW = $clog2(Beats + 1);

  typedef struct packed {
    logic    bad;
    event_e  cause;
    axi_ax_t ax;
  } checked_t;
  checked_t in, held;  // the check is done in front of the slice
  axi_ax_t ar, ar_out;
  logic ar_valid, ar_bad, ar_pass, ar_room, dropped, id_room, id_valid;
  event_e ar_cause;
  logic [CreditW-1:0] credit_q;

  via_guard_edge #(
    .T(checked_t)
  ) u_edge (
    .clk_i,
    .rst_ni,
    .cut_i    (isolate_i),
    .s_i      (in),
    .s_valid_i(s_ar_valid_i),
    .bad_i    (1'b0),
    .s_ready_o(s_ar_ready_o),
    .m_o      (held),
    .m_valid_o(ar_valid),
    .m_ready_i(ar_pass),
    .dropped_o(dropped),
    .stopped_o()
  );

  via_guard_ax u_check (
    .ax_i   (s_ar_i),
    .bad_o  (in.bad),
    .cause_o(in.cause)
  );
  assign in.ax = s_ar_i;
  assign ar = held.ax;
  assign ar_bad = held.bad;
  assign ar_cause = held.cause;

  // It has ar.len + 1 beats.
  assign ar_pass = ar_valid && !ar_bad && !isolate_i && !quiesce_i && ar_room && id_room && CreditW'(ar.len) < credit_q;
  assign violation_o = !isolate_i && (ar_valid && ar_bad || dropped);
  assign cause_o = dropped ? EvUnstable : ar_cause;
  assign va_o = ar.addr;

  always_comb begin
    ar_out    = ar;
    ar_out.id = '0;
  end
  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar_out),
    .s_valid_i(ar_pass),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  // Responses are buffered here, so that the shell never waits. After isolation they are accepted and dropped.
  typedef struct packed {
    axi_resp_e        resp;
    logic             last;
    logic [DataW-1:0] data;
  } beat_t;
  beat_t beat;
  logic beat_valid, beat_take, out_room;
  logic [IdW-1:0] id;

  via_fifo #(
    .T    (beat_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({m_r_i.resp, m_r_i.last, m_r_i.data}),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_take),
    .count_o  ()
  );
  via_fifo #(
    .T    (logic [IdW-1:0]),
    .Depth(Outstanding)
  ) u_ids (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (ar.id),
    .s_valid_i(ar_pass),
    .s_ready_o(id_room),
    .m_o      (id),
    .m_valid_o(id_valid),
    .m_ready_i(beat_take && beat.last),
    .count_o  ()
  );
  assign beat_take = beat_valid && (out_room || isolate_i);

  via_slice #(
    .T(axi_r_t)
  ) u_r (
    .clk_i,
    .rst_ni   (rst_ni && !isolate_i),
    .s_i      ('{id: id, resp: beat.resp, last: beat.last, data: beat.data}),
    .s_valid_i(beat_valid),
    .s_ready_o(out_room),
    .m_o      (s_r_o),
    .m_valid_o(s_r_valid_o),
    .m_ready_i(s_r_ready_i)
  );

  // Beside the comparison, not behind it.
  logic [CreditW-1:0] less;
  assign less = credit_q + ~CreditW'(ar.len);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) credit_q <= CreditW'(Beats);
    else if (ar_pass) credit_q <= less + CreditW'(beat_take);
    else if (beat_take) credit_q <= credit_q + 1'b1;
  end

  assign quiet_o = !id_valid && !m_ar_valid_o && !s_r_valid_o && (!ar_valid || quiesce_i || isolate_i);

endmodule
