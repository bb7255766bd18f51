// SPDX-License-Identifier: Apache-2.0
//
// Write half of via_guard: see there for throughput, latency, order and misuse.

module via_guard_wr
  import via_pkg::*;
#(
  parameter int unsigned Outstanding = 64,    // writes in flight
  parameter int unsigned Beats       = 256,   // buffer for write data
  parameter int unsigned StuckCycles = 65536  // without a beat of a write begun: a violation
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  input  axi_ax_t        s_aw_i,
  input  logic           s_aw_valid_i,
  output logic           s_aw_ready_o,
  input  axi_w_t         s_w_i,
  input  logic           s_w_valid_i,
  output logic           s_w_ready_o,
  output axi_b_t         s_b_o,
  output logic           s_b_valid_o,
  input  logic           s_b_ready_i,
  output axi_ax_t        m_aw_o,
  output logic           m_aw_valid_o,
  input  logic           m_aw_ready_i,
  output axi_w_t         m_w_o,
  output logic           m_w_valid_o,
  input  logic           m_w_ready_i,
  input  axi_b_t         m_b_i,
  input  logic           m_b_valid_i,
  output logic           m_b_ready_o,
  input  logic           quiesce_i,     // level: accept no new write
  input  logic           isolate_i,     // level, held until reset: the app is cut off
  output logic           violation_o,   // level until isolate_i: a rule was broken
  output event_e         cause_o,       // with violation_o: which rule
  output logic    [63:0] va_o,          // with violation_o: address of the burst
  output logic           quiet_o        // level: no write is in flight
);

  localparam bit OutstandingOk = param_in("via_guard_wr Outstanding", Outstanding, 1, 1024);
  localparam bit BeatsOk = param_in("via_guard_wr Beats", Beats, MaxBurstBeats, 65536);
  localparam bit StuckCyclesOk = param_in("via_guard_wr StuckCycles", StuckCycles, 1, 1 << 30);

  localparam int unsigned StuckW = $clog2(StuckCycles + 1);
  localparam int unsigned Ahead = 8;  // addresses that may be ahead of their data

  typedef struct packed {
    logic    bad;
    event_e  cause;
    axi_ax_t ax;
  } checked_t;
  checked_t in, held_aw;  // the check is done in front of the edge
  axi_ax_t aw;
  axi_w_t  w;
  logic aw_valid, aw_take, aw_bad, aw_dropped, w_valid, w_take, w_bad, w_dropped;
  event_e aw_cause;

  via_guard_edge #(
    .T    (checked_t),
    .Depth(Ahead)
  ) u_aw_edge (
    .clk_i,
    .rst_ni,
    .cut_i    (isolate_i),
    .s_i      (in),
    .s_valid_i(s_aw_valid_i),
    .bad_i    (1'b0),
    .s_ready_o(s_aw_ready_o),
    .m_o      (held_aw),
    .m_valid_o(aw_valid),
    .m_ready_i(aw_take),
    .dropped_o(aw_dropped),
    .stopped_o()
  );
  via_guard_edge #(
    .T(axi_w_t)
  ) u_w_edge (
    .clk_i,
    .rst_ni,
    .cut_i    (isolate_i),
    .s_i      (s_w_i),
    .s_valid_i(s_w_valid_i),
    .bad_i    (1'b0),
    .s_ready_o(s_w_ready_o),
    .m_o      (w),
    .m_valid_o(w_valid),
    .m_ready_i(w_take),
    .dropped_o(w_dropped),
    .stopped_o()
  );

  via_guard_ax u_check (
    .ax_i   (s_aw_i),
    .bad_o  (in.bad),
    .cause_o(in.cause)
  );
  assign in.ax = s_aw_i;
  assign aw = held_aw.ax;
  assign aw_bad = held_aw.bad;
  assign aw_cause = held_aw.cause;

  // ---------------------------------------------------------------- gather
  // The AW waits at the edge until its last beat is in the FIFO, then it is offered to the shell.
  logic ready, begin_ok, data_room, burst_room, id_room, flush;
  logic [7:0] count_q;
  logic begun_q;  // count_q is not 0
  logic [StuckW-1:0] stuck_q;

  assign begin_ok = begun_q || !quiesce_i;
  assign ready = aw_valid && !aw_bad && !isolate_i && begin_ok && data_room && burst_room && id_room;
  assign w_bad = w_valid && w.last != (count_q == aw.len);
  assign w_take = ready && w_valid && !w_bad;
  assign aw_take = w_take && w.last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || isolate_i) begin
      count_q <= '0;
      begun_q <= 1'b0;
      stuck_q <= '0;
    end else begin
      if (aw_take) count_q <= '0;
      else if (w_take) count_q <= count_q + 1'b1;
      if (w_take) begun_q <= !w.last;
      if (ready && !w_valid) stuck_q <= stuck_q + 1'b1;
      else stuck_q <= '0;
    end
  end

  logic stuck;
  assign stuck = stuck_q == StuckW'(StuckCycles);
  assign violation_o = !isolate_i && (aw_valid && aw_bad || ready && w_bad || stuck || aw_dropped || w_dropped);
  always_comb begin
    cause_o = EvUnstable;
    if (stuck) cause_o = EvStuck;
    if (ready && w_bad) cause_o = EvWlast;
    if (aw_valid && aw_bad) cause_o = aw_cause;
  end
  assign va_o = aw.addr;

  // ---------------------------------------------------------------- forward
  axi_ax_t aw_out;
  axi_w_t  beat;
  logic beat_valid, burst_valid;
  logic [$clog2(Beats+1)-1:0] held;

  always_comb begin
    aw_out    = aw;
    aw_out.id = '0;
  end
  via_fifo #(
    .T    (axi_ax_t),
    .Depth(4)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (aw_out),
    .s_valid_i(aw_take),
    .s_ready_o(burst_room),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i),
    .count_o  ()
  );
  via_fifo #(
    .T    (axi_w_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .flush_i  (flush),
    .s_i      (w),
    .s_valid_i(w_take),
    .s_ready_o(data_room),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(m_w_ready_i && burst_valid),
    .count_o  (held)
  );

  // Number of whole bursts held: only their beats are offered.
  logic [$clog2(Outstanding+1)-1:0] whole_q;
  logic w_last_out, whole_any_q;  // whole_any_q: whole_q is not 0
  assign burst_valid = whole_any_q;
  assign m_w_o = beat;
  assign m_w_valid_o = beat_valid && burst_valid;
  assign w_last_out = m_w_valid_o && m_w_ready_i && beat.last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      whole_q     <= '0;
      whole_any_q <= 1'b0;
    end else if (aw_take != w_last_out) begin
      whole_q     <= aw_take ? whole_q + 1'b1 : whole_q - 1'b1;
      whole_any_q <= aw_take || whole_q != ($clog2(Outstanding + 1))'(1);
    end
  end

  // After isolation, whatever is left when the whole bursts have gone belongs to a burst that was never finished.
  assign flush = isolate_i && !burst_valid && held != '0;

  // ---------------------------------------------------------------- responses
  axi_resp_e resp;
  logic [IdW-1:0] id;
  logic id_valid, resp_valid, resp_take, out_room;

  via_fifo #(
    .T    (logic [IdW-1:0]),
    .Depth(Outstanding)
  ) u_ids (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (aw.id),
    .s_valid_i(aw_take),
    .s_ready_o(id_room),
    .m_o      (id),
    .m_valid_o(id_valid),
    .m_ready_i(resp_take),
    .count_o  ()
  );
  via_fifo #(
    .T    (axi_resp_e),
    .Depth(Outstanding)
  ) u_resps (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (m_b_i.resp),
    .s_valid_i(m_b_valid_i),
    .s_ready_o(m_b_ready_o),
    .m_o      (resp),
    .m_valid_o(resp_valid),
    .m_ready_i(resp_take),
    .count_o  ()
  );
  assign resp_take = resp_valid && (out_room || isolate_i);

  via_slice #(
    .T(axi_b_t)
  ) u_b (
    .clk_i,
    .rst_ni   (rst_ni && !isolate_i),
    .s_i      ('{id: id, resp: resp}),
    .s_valid_i(resp_valid),
    .s_ready_o(out_room),
    .m_o      (s_b_o),
    .m_valid_o(s_b_valid_o),
    .m_ready_i(s_b_ready_i)
  );

  assign quiet_o = !id_valid && !s_b_valid_o && (held == '0) && (!aw_valid || isolate_i || quiesce_i && !begun_q);

endmodule
