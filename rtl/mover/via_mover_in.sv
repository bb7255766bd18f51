// SPDX-License-Identifier: Apache-2.0
//
// Virtual range -> input stream: executes OpMoveIn.
//
// Throughput: one beat a cycle across bursts and commands; a burst every second cycle. Latency: that of the read plus seven cycles. Order:
// commands of a stream in order. A burst is read only when the FIFO has room for all of it, so R never waits for the app.
// Misuse: addr0 not aligned to a beat, length zero, or without FlagEop not a multiple of the beat -> StBadArg.
// A beat that was read with an error ends its command with StFault once the app has accepted the beats before it. Neither this beat nor
// later ones of the command are delivered, and the message gets no `last`: the host has to reset the slot.

module via_mover_in
  import via_pkg::*;
#(
  parameter int unsigned Beats = 8 * MaxBurstBeats,  // buffer in front of the app: covers the latency of the link
  parameter int unsigned Queue = 16                  // commands held; one more completes with StFull
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  cmd_t    cmd_i,  // OpMoveIn
  input  logic    cmd_valid_i,
  output logic    cmd_ready_o,
  output cpl_t    cpl_o,  // completion
  output logic    cpl_valid_o,
  input  logic    cpl_ready_i,
  output axi_ax_t m_ar_o,
  output logic    m_ar_valid_o,
  input  logic    m_ar_ready_i,
  input  axi_r_t  m_r_i,
  input  logic    m_r_valid_i,
  output logic    m_r_ready_o,
  output strm_t   strm_o,
  output logic    strm_valid_o,
  input  logic    strm_ready_i,
  input  logic    abort_i,  // level: commands end with StAborted
  output logic    still_o,  // nothing moves unless an input changes
  output logic    idle_o  // level: as still_o, and no command or burst is held
);

  localparam bit BeatsOk = param_in("via_mover_in Beats", Beats, MaxBurstBeats, 65536);
  localparam bit QueueOk = param_in("via_mover_in Queue", Queue, 1, 256);

  localparam int unsigned CreditW = $clog2(Beats + 1);
  localparam int unsigned BurstW = $clog2(MaxBurstBeats + 1);
  localparam int unsigned Window = 16;  // limit of bursts in flight, and of commands in flight
  localparam int unsigned SeqW = $clog2(Window) + 1;

  cmd_t q;
  logic q_valid, q_ready, q_idle, q_still;
  cpl_t done;
  logic done_valid, done_ready;

  via_move_queue #(
    .Queue(Queue)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .cmd_i,
    .cmd_valid_i,
    .cmd_ready_o,
    .cmd_o       (q),
    .cmd_valid_o (q_valid),
    .cmd_ready_i (q_ready),
    .done_i      (done),
    .done_valid_i(done_valid),
    .done_ready_o(done_ready),
    .cpl_o,
    .cpl_valid_o,
    .cpl_ready_i,
    .still_o     (q_still),
    .idle_o      (q_idle)
  );

  // ---------------------------------------------------------------- commands to bursts
  typedef struct packed {
    logic        bad;
    logic        eop;
    logic [7:0]  id;
    logic [31:0] tag;
    logic [31:0] len;
  } active_t;  // of a command, for the stream side
  typedef struct packed {
    logic none;     // nothing was read: the command ended early
    logic cmd_end;  // last of its command
  } burst_t;
  typedef struct packed {
    logic              quit;   // the command ends here, without a burst
    logic              ends;   // last of its command
    logic [BurstW-1:0] beats;
    logic [AddrW-1:0]  va;
  } cut_t;

  // In one cycle the next burst is computed, in the next it is offered; then it waits in a slice for credits.
  localparam int unsigned PageBeatsLog2 = PageLog2 - BeatLog2;
  localparam int unsigned LeftW = 33 - BeatLog2;

  logic busy_q, bad_q, bad, start, act_room, burst_room, ar_room, issue, end_cmd, cmd_end, fits;
  logic cut_q, ends, ends_q, quit, quit_q, take, take_room, x_valid, x_pop, x_quit;
  cut_t x;
  logic [AddrW-1:0] va_q;
  logic [LeftW-1:0] left_q;  // beats
  logic [CreditW-1:0] credit_q, credit;
  logic [PageBeatsLog2-1:0] beat_at;  // beat within the page
  logic [PageBeatsLog2:0] to_page;  // beats up to the 4 KiB boundary
  logic [PageBeatsLog2+1:0] end_at;
  logic [BurstW-1:0] beats_q;

  assign bad = q.len == '0 || |q.addr0[BeatLog2-1:0] || !q.flags[FlagEop] && |q.len[BeatLog2-1:0];
  assign take = cut_q && take_room;
  assign start = q_valid && act_room && (!busy_q || take && ends_q);
  assign q_ready = start;

  assign beat_at = va_q[PageLog2-1:BeatLog2];
  assign to_page = (PageBeatsLog2 + 1)'(1 << PageBeatsLog2) - {1'b0, beat_at};
  // The whole rest is one burst if it neither crosses a boundary nor is too long.
  assign end_at = {2'b0, beat_at} + {1'b0, left_q[PageBeatsLog2:0]} - 1'b1;
  assign ends = left_q <= LeftW'(MaxBurstBeats) && end_at[PageBeatsLog2+1:PageBeatsLog2] == '0;

  // A command that failed is not read any further: bursts already computed are dropped, and its last entry, which carries no burst, ends
  // it.
  logic [SeqW-1:0] cut_seq_q, issue_seq_q, out_seq_q;  // commands whose last burst was computed; was issued; commands ended
  logic failed_q, lost_q, issue_failed_q;
  assign quit = abort_i || bad_q || lost_q && cut_seq_q == issue_seq_q || failed_q && cut_seq_q == out_seq_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q    <= 1'b0;
      cut_q     <= 1'b0;
      cut_seq_q <= '0;
    end else begin
      busy_q <= start || busy_q && !(take && ends_q);
      cut_q  <= cut_q ? !take : busy_q;
      if (take && ends_q) cut_seq_q <= cut_seq_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) begin
      va_q   <= q.addr0;
      left_q <= LeftW'(({1'b0, q.len} + 33'(StrbW - 1)) >> BeatLog2);
      bad_q  <= bad;
    end else if (take) begin
      va_q   <= va_q + (AddrW'(beats_q) << BeatLog2);
      left_q <= left_q - LeftW'(beats_q);
    end
    if (!cut_q) begin
      ends_q  <= ends || quit;
      quit_q  <= quit;
      beats_q <= ends ? BurstW'(left_q) : (to_page > (PageBeatsLog2 + 1)'(MaxBurstBeats)) ? BurstW'(MaxBurstBeats) : BurstW'(to_page);
    end
  end

  via_slice #(
    .T(cut_t)
  ) u_cut (
    .clk_i,
    .rst_ni,
    .s_i      ('{quit: quit_q, ends: ends_q, beats: beats_q, va: va_q}),
    .s_valid_i(cut_q),
    .s_ready_o(take_room),
    .m_o      (x),
    .m_valid_o(x_valid),
    .m_ready_i(x_pop)
  );

  assign x_quit  = x.quit || abort_i || lost_q || issue_failed_q;
  assign fits    = CreditW'(x.beats) <= credit_q;
  assign issue   = x_valid && burst_room && ar_room && !x_quit && fits;
  assign end_cmd = x_valid && burst_room && x_quit && x.ends;
  assign x_pop   = issue || x_valid && burst_room && x_quit;

  axi_ax_t ar;
  always_comb begin
    ar       = '0;
    ar.burst = BurstIncr;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(x.beats - 1'b1);
    ar.addr  = x.va;
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(issue),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  // A buffer entry counts as free in the cycle after its beat has left.
  logic beat_pop, popped_q;
  assign credit = credit_q + CreditW'(popped_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      issue_seq_q    <= '0;
      lost_q         <= 1'b0;
      issue_failed_q <= 1'b0;
      popped_q       <= 1'b0;
      credit_q       <= CreditW'(Beats);
    end else begin
      if (x_pop && x.ends) issue_seq_q <= issue_seq_q + 1'b1;
      if (x_pop) lost_q <= x_quit && !x.ends;
      // The command being issued has failed. True a cycle late, but never beyond its end.
      issue_failed_q <= failed_q && issue_seq_q == out_seq_q && !(x_pop && x.ends) && !cmd_end;
      popped_q <= beat_pop;
      credit_q <= issue ? credit - CreditW'(x.beats) : credit;
    end
  end

  active_t act_q, first;  // the command being delivered, in a register; the next one
  logic act_valid_q, first_valid, act_next;
  via_fifo #(
    .T    (active_t),
    .Depth(Window)
  ) u_active (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{bad: bad, eop: q.flags[FlagEop], id: q.id, tag: q.tag, len: q.len}),
    .s_valid_i(start),
    .s_ready_o(act_room),
    .m_o      (first),
    .m_valid_o(first_valid),
    .m_ready_i(act_next),
    .count_o  ()
  );

  burst_t head;
  logic head_valid, head_pop;
  via_fifo #(
    .T    (burst_t),
    .Depth(Window)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{none: x_quit, cmd_end: x.ends}),
    .s_valid_i(issue || end_cmd),
    .s_ready_o(burst_room),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(head_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- beats to the stream
  typedef struct packed {
    logic             err;
    logic             last;
    logic [DataW-1:0] data;
  } beat_t;
  beat_t beat;
  logic  beat_valid;

  via_fifo #(
    .T    (beat_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({m_r_i.resp != RespOkay, m_r_i.last, m_r_i.data}),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_pop),
    .count_o  ()
  );

  logic [31:0] sent_q, remain_q;  // bytes of the command
  logic [BeatLog2-1:0] absent_q;  // bytes that its last beat lacks
  logic ready, drop, final_q, out_room;
  strm_t s;
  // A beat that was read with an error waits for its turn as a good one does; later beats of the command are dropped at once.
  assign drop = failed_q || abort_i || beat.err;
  assign ready = act_valid_q && head_valid && done_ready;
  assign beat_pop = ready && !head.none && beat_valid && (failed_q || abort_i || out_room);
  assign head_pop = ready && head.none || beat_pop && beat.last;
  assign cmd_end = head_pop && head.cmd_end;
  assign act_next = !act_valid_q || cmd_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) act_valid_q <= 1'b0;
    else if (act_next) act_valid_q <= first_valid;
  end
  always_ff @(posedge clk_i) begin
    if (act_next) begin
      act_q    <= first;
      remain_q <= first.len;
      absent_q <= -first.len[BeatLog2-1:0];
      final_q  <= first.len <= 32'(StrbW);
    end else if (beat_pop) begin
      remain_q <= remain_q - 32'(StrbW);
      final_q  <= remain_q <= 32'(2 * StrbW);
    end
  end

  always_comb begin
    s.id   = act_q.id;
    s.last = final_q && act_q.eop;
    s.data = beat.data;
    s.keep = '1;
    // The last beat of a message holds the remaining 1 to StrbW bytes.
    if (s.last) s.keep = {StrbW{1'b1}} >> absent_q;
  end

  via_slice #(
    .T(strm_t)
  ) u_out (
    .clk_i,
    .rst_ni,
    .s_i      (s),
    .s_valid_i(beat_pop && !drop),
    .s_ready_o(out_room),
    .m_o      (strm_o),
    .m_valid_o(strm_valid_o),
    .m_ready_i(strm_ready_i)
  );

  logic [31:0] sent;
  assign sent = !(beat_pop && !drop) ? sent_q : final_q ? act_q.len : sent_q + 32'(StrbW);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_seq_q <= '0;
      failed_q  <= 1'b0;
      sent_q    <= '0;
    end else begin
      if (cmd_end) begin
        out_seq_q <= out_seq_q + 1'b1;
        failed_q  <= 1'b0;
        sent_q    <= '0;
      end else if (beat_pop) begin
        sent_q   <= sent;
        failed_q <= drop;
      end
    end
  end

  always_comb begin
    done        = '0;
    done.op     = OpMoveIn;
    done.tag    = act_q.tag;
    done.bytes  = sent;
    done.status = act_q.bad ? StBadArg : (abort_i || head.none && !failed_q) ? StAborted : (failed_q || beat_pop && drop) ? StFault : StOk;
  end
  assign done_valid = cmd_end;

  assign still_o = q_still && ~|{start, take, busy_q && !cut_q, x_pop, act_next && first_valid, m_ar_valid_o && m_ar_ready_i, m_r_valid_i, beat_pop, head_pop, strm_valid_o && strm_ready_i};
  assign idle_o = q_idle && !busy_q && !first_valid && !act_valid_q && !m_ar_valid_o && !strm_valid_o;

endmodule
