// SPDX-License-Identifier: Apache-2.0
//
// Output stream -> virtual range: executes OpMoveOut.
//
// Throughput: one beat a cycle across bursts and commands. Latency: a burst leaves once its last beat is held. Order: commands of a stream
// in order. A write address is sent only when all beats of the burst are held, so W never waits for the app.
// A command ends at `last`, or when its capacity is used up; the rest of the message then goes to the next command. The completion reports
// how many bytes were written, whether `last` ended the command, and in `info` the id of the message.
// Misuse: addr0 not aligned to a beat, length zero or not a multiple of the beat -> StBadArg. A write with an error response ends its
// command with StFault once all of its bursts have their response.

module via_mover_out
  import via_pkg::*;
#(
  parameter int unsigned Beats = 2 * MaxBurstBeats,  // buffer in beats
  parameter int unsigned Queue = 16                  // commands held; one more completes with StFull
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  cmd_t    cmd_i,  // OpMoveOut
  input  logic    cmd_valid_i,
  output logic    cmd_ready_o,
  output cpl_t    cpl_o,  // completion
  output logic    cpl_valid_o,
  input  logic    cpl_ready_i,
  output axi_ax_t m_aw_o,
  output logic    m_aw_valid_o,
  input  logic    m_aw_ready_i,
  output axi_w_t  m_w_o,
  output logic    m_w_valid_o,
  input  logic    m_w_ready_i,
  input  axi_b_t  m_b_i,
  input  logic    m_b_valid_i,
  output logic    m_b_ready_o,
  input  strm_t   strm_i,
  input  logic    strm_valid_i,
  output logic    strm_ready_o,
  input  logic    abort_i,  // level: one cycle later commands end with StAborted, and beats are no longer accepted
  output logic    still_o,  // nothing moves unless an input changes
  output logic    idle_o  // level: as still_o, and no command or burst is held
);

  localparam bit BeatsOk = param_in("via_mover_out Beats", Beats, MaxBurstBeats, 65536);
  localparam bit QueueOk = param_in("via_mover_out Queue", Queue, 2, 256);

  localparam int unsigned BurstW = $clog2(MaxBurstBeats + 1);
  localparam int unsigned Window = 16;  // bursts in flight

  cmd_t q;
  logic q_valid, q_ready, q_idle, q_still;
  cpl_t done;
  logic done_valid, done_ready;

  via_move_queue #(
    .Queue(Queue - 1)  // the one being filled counts as well
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

  // ---------------------------------------------------------------- beats to bursts
  typedef struct packed {
    logic        none;     // no burst: only ends the command
    logic        cmd_end;
    logic        last;
    logic [7:0]  id;       // stream id of the message
    status_e     status;   // of a command that ended neither by its capacity nor by `last`
    logic [31:0] tag;
    logic [31:0] bytes;
  } burst_t;

  localparam int unsigned LeftW = 32 - BeatLog2;

  // The command being filled is held in registers.
  logic act_valid_q, good_q, bad_q, last_beat_q;  // last_beat_q: its capacity has room for one more beat
  logic [31:0] tag_q;
  logic [AddrW-1:0] va_q, burst_va_q;  // address of the next beat; of the open burst
  logic [LeftW-1:0] left_q, taken_q;  // beats of capacity left; beats accepted

  logic next, bad, take, close, cmd_done, quit, flush, page_end, abort_q;
  logic aw_room, data_room, burst_room;
  logic [31:0] bytes;
  logic [BurstW-1:0] beats_q;  // of the open burst
  logic open_q, full_q;  // it has beats, it takes one more
  logic [BeatLog2:0] keep_bytes;

  always_ff @(posedge clk_i) abort_q <= rst_ni && abort_i;

  assign next = !act_valid_q || cmd_done && take || quit;
  assign q_ready = next;
  assign bad = q.len == '0 || |q.addr0[BeatLog2-1:0] || |q.len[BeatLog2-1:0];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      act_valid_q <= 1'b0;
      good_q      <= 1'b0;
    end else if (next) begin
      act_valid_q <= q_valid;
      good_q      <= q_valid && !bad;
    end
  end
  always_ff @(posedge clk_i) begin
    if (next) begin
      bad_q       <= bad;
      tag_q       <= q.tag;
      va_q        <= q.addr0;
      left_q      <= q.len[31:BeatLog2];
      last_beat_q <= q.len[31:BeatLog2] == LeftW'(1);
      taken_q     <= '0;
    end else if (take) begin
      va_q        <= va_q + AddrW'(StrbW);
      left_q      <= left_q - 1'b1;
      last_beat_q <= left_q == LeftW'(2);
      taken_q     <= taken_q + 1'b1;
    end
    if (take && !open_q) burst_va_q <= va_q;
  end

  // `keep` is a run of ones from bit 0: the position of its last one gives the number of bytes.
  always_comb begin
    keep_bytes = '0;
    for (int unsigned i = 0; i < StrbW; i++) begin
      if (strm_i.keep[i] && (i == StrbW - 1 || !strm_i.keep[(i+1)%StrbW])) keep_bytes |= (BeatLog2 + 1)'(i + 1);
    end
    if (!strm_i.last) keep_bytes = (BeatLog2 + 1)'(StrbW);
  end
  assign bytes = {taken_q, BeatLog2'(0)} + 32'(keep_bytes);

  assign strm_ready_o = good_q && !abort_q && data_room && aw_room && burst_room;
  assign take = strm_valid_i && strm_ready_o;
  assign cmd_done = strm_i.last || last_beat_q;
  assign page_end = &va_q[PageLog2-1:BeatLog2];
  assign close = take && (cmd_done || page_end || full_q);

  // On abort an open burst is written as far as it was filled; then its command, and every later one, ends.
  assign flush = abort_q && open_q && aw_room && burst_room;
  assign quit = act_valid_q && burst_room && !open_q && (bad_q || abort_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || close || flush) begin
      beats_q <= '0;
      open_q  <= 1'b0;
      full_q  <= 1'b0;
    end else if (take) begin
      beats_q <= beats_q + 1'b1;
      open_q  <= 1'b1;
      full_q  <= beats_q == BurstW'(MaxBurstBeats - 2);
    end
  end

  axi_ax_t aw;
  always_comb begin
    aw       = '0;
    aw.burst = BurstIncr;
    aw.size  = 3'(BeatLog2);
    aw.len   = flush ? 8'(beats_q - 1'b1) : 8'(beats_q);
    aw.addr  = open_q ? burst_va_q : va_q;
  end

  via_fifo #(
    .T    (axi_ax_t),
    .Depth(4)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (aw),
    .s_valid_i(close || flush),
    .s_ready_o(aw_room),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i),
    .count_o  ()
  );

  // ---------------------------------------------------------------- data
  typedef struct packed {
    logic [StrbW-1:0] strb;
    logic [DataW-1:0] data;
  } beat_t;
  beat_t beat;
  logic beat_valid, w_open, w_room, w_take;

  via_fifo #(
    .T    (beat_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({strm_i.keep, strm_i.data}),
    .s_valid_i(take),
    .s_ready_o(data_room),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(w_open && w_room),
    .count_o  ()
  );

  // W is offered once the burst is closed; the length then known gives its last beat. There is space for it whenever a burst closes: that
  // needs space in u_bursts, which is as deep and holds each burst until its response, so for longer than its length is here.
  logic [7:0] w_len, w_count_q;
  logic w_pop, len_room;
  via_fifo #(
    .T    (logic [7:0]),
    .Depth(Window)
  ) u_w_len (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (aw.len),
    .s_valid_i(close || flush),
    .s_ready_o(len_room),
    .m_o      (w_len),
    .m_valid_o(w_open),
    .m_ready_i(w_pop),
    .count_o  ()
  );
  axi_w_t w;
  assign w = '{last: w_count_q == w_len, strb: beat.strb, data: beat.data};
  assign w_take = beat_valid && w_open && w_room;
  assign w_pop = w_take && w.last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || w_pop) w_count_q <= '0;
    else if (w_take) w_count_q <= w_count_q + 1'b1;
  end
  via_slice #(
    .T(axi_w_t)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i      (w),
    .s_valid_i(beat_valid && w_open),
    .s_ready_o(w_room),
    .m_o      (m_w_o),
    .m_valid_o(m_w_valid_o),
    .m_ready_i(m_w_ready_i)
  );

  // ---------------------------------------------------------------- responses
  burst_t entry, head;
  logic head_valid, head_pop, error_q, error;
  always_comb begin
    entry = '{
        none: quit,
        cmd_end: quit || close && cmd_done,
        last: close && strm_i.last,
        id: close ? strm_i.id : '0,
        status: !quit ? StOk : bad_q ? StBadArg : StAborted,
        tag: tag_q,
        bytes: quit ? {taken_q, BeatLog2'(0)} : bytes
    };
  end

  via_fifo #(
    .T    (burst_t),
    .Depth(Window)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (entry),
    .s_valid_i(close || flush || quit),
    .s_ready_o(burst_room),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(head_pop),
    .count_o  ()
  );

  // B never waits for a completion to be accepted: there is room for the response of every burst in flight.
  logic b_err, b_valid;
  via_fifo #(
    .T    (logic),
    .Depth(Window)
  ) u_b (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (m_b_i.resp != RespOkay),
    .s_valid_i(m_b_valid_i),
    .s_ready_o(m_b_ready_o),
    .m_o      (b_err),
    .m_valid_o(b_valid),
    .m_ready_i(head_pop && !head.none),
    .count_o  ()
  );

  assign head_pop = head_valid && done_ready && (head.none || b_valid);
  assign error = error_q || !head.none && b_err;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) error_q <= 1'b0;
    else if (head_pop) error_q <= error && !head.cmd_end;
  end

  always_comb begin
    done                = '0;
    done.op             = OpMoveOut;
    done.tag            = head.tag;
    done.bytes          = head.bytes;
    done.info           = 64'(head.id);
    done.flags[CplLast] = head.last;
    done.status         = (head.status == StOk && error) ? StFault : head.status;
  end
  assign done_valid = head_pop && head.cmd_end;

  assign still_o = q_still && abort_q == abort_i && ~|{take, next && q_valid, flush, quit, m_aw_valid_o && m_aw_ready_i, w_take, m_w_valid_o && m_w_ready_i, m_b_valid_i, head_pop};
  assign idle_o = q_idle && !act_valid_q && !head_valid && !open_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(close || flush) || len_room)
      else $error("no space for the length of a burst");
    end
  end
`endif

endmodule
