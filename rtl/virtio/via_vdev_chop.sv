// SPDX-License-Identifier: Apache-2.0
//
// Messages of any length into answers to a waiting queue. Bytes are held first, so an answer announced is there in full. What does not fit
// into the guest's buffer goes into the next one; an answer never mixes two messages. Bytes without `last` are answered as soon as a buffer
// stands ready.
// With `Unit` not zero a message is a series of records of that many bytes, one an answer; a part of a record at the end of a message
// is dropped, and so is a buffer too small for a record (answered with no bytes).
// Throughput: one beat a cycle; an answer takes three cycles more. After a buffer that is no multiple of a beat the next answer is short: it
// ends at the beat's end. Latency: six cycles.
// Misuse: a beat without `last` counts as full; one with `last` and without bytes only ends its message.

module via_vdev_chop
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter int unsigned Beats = 32,
  parameter int unsigned Unit = 0,
  parameter logic [QueueW-1:0] Queue = '0
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  // The stream; id is not looked at.
  input  strm_t           s_i,
  input  logic            s_valid_i,
  output logic            s_ready_o,
  input  logic            drop_i,       // nobody is there to hear it: what comes is taken and forgotten
  // Queue `Queue` of the engine: a buffer stands ready, its bytes
  input  logic            avail_i,
  input  logic     [31:0] wlen_i,
  output vq_rsp_t         rsp_o,
  output logic            rsp_valid_o,
  input  logic            rsp_ready_i,
  output vq_beat_t        wr_o,
  output logic            wr_valid_o,
  input  logic            wr_ready_i,
  output logic            short_o,      // bytes wait for a buffer
  output logic            moving_o,     // something moves besides the answer ports
  output logic            idle_o
);

  localparam bit BeatsOk = param_in("via_vdev_chop Beats", Beats, 2, 65536);
  localparam bit UnitOk = param_in("via_vdev_chop Unit", Unit, 0, Beats * StrbW);

  localparam int unsigned LenW = $clog2(Beats * StrbW + 1);
  typedef logic [LenW-1:0] len_t;

  // ---------------------------------------------------------------- what is held
  typedef struct packed {
    logic [BeatLog2:0] bytes;
    logic [DataW-1:0]  data;
  } held_t;
  held_t held;
  logic room, held_room, held_valid, held_pop, run_room, run_valid, run_pop, take, ends;
  logic [BeatLog2:0] bytes;
  len_t open_q, open_now, run, load;  // bytes after the last run; those that stay after this cycle

  assign bytes = s_i.last ? keep_bytes(s_i.keep) : (BeatLog2 + 1)'(StrbW);
  assign room = held_room && run_room;
  assign s_ready_o = room || drop_i;
  assign take = s_valid_i && room && !drop_i;
  assign ends = take && s_i.last && (open_now != '0 || bytes != '0);

  via_fifo #(
    .T    (held_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_held (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{bytes: bytes, data: s_i.data}),
    .s_valid_i(take && bytes != '0),
    .s_ready_o(held_room),
    .m_o      (held),
    .m_valid_o(held_valid),
    .m_ready_i(held_pop),
    .count_o  ()
  );

  // Lengths of messages, or of their ends, that are held in full.
  via_fifo #(
    .T    (len_t),
    .Depth(8)
  ) u_runs (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (open_now + len_t'(bytes)),
    .s_valid_i(ends),
    .s_ready_o(run_room),
    .m_o      (run),
    .m_valid_o(run_valid),
    .m_ready_i(run_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- answers
  typedef enum logic [2:0] {
    StLoad,    // take the next run of bytes
    StAnswer,  // wait for a buffer
    StOffer,   // announce; the offer stays whatever becomes of the queue
    StData,    // hand over
    StSkip     // drop what is left of a record
  } state_e;
  state_e state_q;
  len_t left_q, part_q, part;  // bytes of the run not yet answered; of the answer
  logic [BeatLog2:0] off_q, in_beat, now;  // bytes of the beat at the head already gone; still there; to go now
  logic close, decide, beat;

  // The bytes of a message not yet ended become a run of their own when nothing else is there.
  assign close = state_q == StLoad && !run_valid && open_q != '0 && avail_i && Unit == 0;
  assign run_pop = state_q == StLoad && run_valid;
  assign load = run_valid ? run : open_q;
  assign open_now = close ? '0 : open_q;

  assign in_beat = held.bytes - off_q;
  always_comb begin
    part = left_q;
    if (Unit != 0) part = len_t'(Unit);
    if (off_q != '0 && part > len_t'(in_beat)) part = len_t'(in_beat);
    if (wlen_i < 32'(part)) part = (Unit != 0) ? '0 : len_t'(wlen_i);
  end
  assign decide = state_q == StAnswer && avail_i && held_valid;
  assign rsp_valid_o = state_q == StOffer;
  assign rsp_o = '{queue: Queue, merge: 1'b0, len: 32'(part_q)};

  assign now = (part_q < len_t'(in_beat)) ? part_q[BeatLog2:0] : in_beat;
  assign wr_valid_o = state_q == StData && held_valid;
  always_comb begin
    wr_o.last = part_q == len_t'(now);
    wr_o.keep = keep_of(now);
    wr_o.data = (off_q == '0) ? held.data : held.data >> {off_q[BeatLog2-1:0], 3'b000};
  end
  assign beat = wr_valid_o && wr_ready_i || state_q == StSkip && held_valid;
  assign held_pop = beat && now == in_beat;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StLoad;
      open_q  <= '0;
      off_q   <= '0;
    end else begin
      if (take) open_q <= ends ? '0 : open_now + len_t'(bytes);
      else if (close) open_q <= '0;
      if (beat) off_q <= held_pop ? '0 : off_q + now;
      unique case (state_q)
        StLoad:   if (run_valid || close) state_q <= (Unit != 0 && load < len_t'(Unit)) ? StSkip : StAnswer;
        StAnswer: if (decide) state_q <= StOffer;
        StOffer:  if (rsp_ready_i) state_q <= (part_q == '0) ? StAnswer : StData;
        StData:
        if (beat && wr_o.last) begin
          state_q <= StAnswer;
          if (left_q == part_q) state_q <= StLoad;
          else if (Unit != 0 && left_q - part_q < len_t'(Unit)) state_q <= StSkip;
        end
        StSkip:   if (beat && wr_o.last) state_q <= StLoad;
        default:  ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StLoad) begin
      left_q <= load;
      part_q <= load;  // to be skipped
    end else if (state_q == StAnswer) part_q <= part;
    else if (beat) begin
      left_q <= left_q - len_t'(now);
      part_q <= (wr_o.last) ? left_q - len_t'(now) : part_q - len_t'(now);
    end
  end

  assign short_o  = !avail_i && (state_q == StAnswer && held_valid || state_q == StLoad && !run_valid && open_q != '0 && Unit == 0);
  assign moving_o = take || run_pop || close || decide || state_q == StSkip;
  assign idle_o   = state_q == StLoad && !run_valid && open_q == '0;

endmodule
