// SPDX-License-Identifier: Apache-2.0
//
// Virtual range -> input stream: executes OpMoveIn.
//
// Throughput: one beat a cycle across bursts and commands. Latency: that of the read plus four cycles. Order: commands of a stream in
// order. A burst is read only when the FIFO has room for all of it, so R never waits for the app.
// Misuse: addr0 not aligned to a beat, length zero, or without FlagEop not a multiple of the beat -> StBadArg.
// A beat that reads with an error ends its command with StFault: neither it nor later ones of the command are delivered, and the message
// has no `last`; the host resets the slot. abort_i (level) ends every command with StAborted.

module via_mover_in
  import via_pkg::*;
#(
  parameter int unsigned Beats = 8 * MaxBurstBeats,  // read ahead of the app: covers the latency of the link
  parameter int unsigned Queue = 16
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  cmd_t    cmd_i,
  input  logic    cmd_valid_i,
  output logic    cmd_ready_o,
  output cpl_t    cpl_o,
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
  input  logic    abort_i,
  output logic    still_o,  // nothing moves unless an input changes
  output logic    idle_o
);

  localparam int unsigned CreditW = $clog2(Beats + 1);
  localparam int unsigned BurstW = $clog2(MaxBurstBeats + 1);
  localparam int unsigned Window = 16;  // bursts in flight, commands in flight
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
  } active_t;  // what the way out must know of a command
  typedef struct packed {
    logic none;     // nothing was read: the command ended early
    logic cmd_end;  // last of its command
  } burst_t;

  logic busy_q, bad_q, bad, start, act_room, burst_room, ar_room, issue, quit, ends, ends_now;
  logic [AddrW-1:0] va_q;
  logic [31:0] left_q;
  logic [CreditW-1:0] credit_q;
  logic [12:0] to_page;     // beats up to the 4 KiB boundary
  logic [32:0] beats_left;
  logic [BurstW-1:0] burst;

  assign bad = q.len == '0 || |q.addr0[BeatLog2-1:0] || !q.flags[FlagEop] && |q.len[BeatLog2-1:0];
  assign start = q_valid && act_room && (!busy_q || (issue || quit) && ends_now);
  assign q_ready = start;

  assign to_page = (13'd4096 - {1'b0, va_q[PageLog2-1:0]}) >> BeatLog2;
  assign beats_left = ({1'b0, left_q} + 33'(StrbW - 1)) >> BeatLog2;
  always_comb begin
    burst = BurstW'(MaxBurstBeats);
    if (to_page < 13'(burst)) burst = BurstW'(to_page);
    if (beats_left < 33'(burst)) burst = BurstW'(beats_left);
  end
  assign ends = beats_left == 33'(burst);

  // A command whose beats are dropped on the way out is not read any further.
  logic [SeqW-1:0] issue_seq_q, out_seq_q;  // commands begun, commands ended
  logic failed_q;
  assign quit = busy_q && burst_room && (abort_i || bad_q || failed_q && issue_seq_q == out_seq_q);
  assign issue = busy_q && burst_room && ar_room && !quit && CreditW'(burst) <= credit_q;
  assign ends_now = quit || ends;

  axi_ax_t ar;
  always_comb begin
    ar       = '0;
    ar.burst = 2'b01;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(burst - 1'b1);
    ar.addr  = va_q;
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

  logic beat_pop;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q      <= 1'b0;
      issue_seq_q <= '0;
      credit_q    <= CreditW'(Beats);
    end else begin
      if (start) busy_q <= 1'b1;
      else if ((issue || quit) && ends_now) busy_q <= 1'b0;
      if ((issue || quit) && ends_now) issue_seq_q <= issue_seq_q + 1'b1;
      if (issue || beat_pop) credit_q <= credit_q - (issue ? CreditW'(burst) : '0) + CreditW'(beat_pop);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) begin
      va_q   <= q.addr0;
      left_q <= q.len;
      bad_q  <= bad;
    end else if (issue) begin
      va_q   <= va_q + (AddrW'(burst) << BeatLog2);
      left_q <= left_q - (32'(burst) << BeatLog2);
    end
  end

  active_t act;
  logic act_valid, act_pop;
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
    .m_o      (act),
    .m_valid_o(act_valid),
    .m_ready_i(act_pop),
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
    .s_i      ('{none: quit, cmd_end: ends_now}),
    .s_valid_i(issue || quit),
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

  logic [31:0] sent_q, remain;
  logic ready, drop, final_beat, out_room, cmd_end;
  strm_t s;
  assign remain = act.len - sent_q;
  assign final_beat = remain <= 32'(StrbW);
  assign drop = failed_q || abort_i || beat.err;
  assign ready = act_valid && head_valid && done_ready;
  assign beat_pop = ready && !head.none && beat_valid && (drop || out_room);
  assign head_pop = ready && head.none || beat_pop && beat.last;
  assign cmd_end = head_pop && head.cmd_end;
  assign act_pop = cmd_end;

  always_comb begin
    s.id   = act.id;
    s.last = final_beat && act.eop;
    s.data = beat.data;
    s.keep = '1;
    // The last beat of a message holds what is left, 1 to StrbW bytes.
    if (s.last) s.keep = {StrbW{1'b1}} >> (32'(StrbW) - remain);
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
  assign sent = (beat_pop && !drop) ? sent_q + (final_beat ? remain : 32'(StrbW)) : sent_q;

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
    done.tag    = act.tag;
    done.bytes  = sent;
    done.status = act.bad ? StBadArg : abort_i ? StAborted : (failed_q || beat_pop && drop) ? StFault : StOk;
  end
  assign done_valid = cmd_end;

  assign still_o = q_still && ~|{start, issue, quit, m_ar_valid_o, m_r_valid_i, beat_pop, head_pop, strm_valid_o && strm_ready_i};
  assign idle_o = q_idle && !busy_q && !act_valid && !m_ar_valid_o && !strm_valid_o;

endmodule
