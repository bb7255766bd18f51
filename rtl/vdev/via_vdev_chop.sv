// SPDX-License-Identifier: Apache-2.0
//
// Turns messages of any length into responses to a waiting queue. Bytes are buffered first, so that a response, once offered, has all of
// its bytes here. What does not fit into the guest's buffer goes into the next one; a response never mixes two messages. Bytes of a message
// that has not ended are delivered as soon as a buffer is available.
// With `Unit` not zero a message is a series of records of that many bytes, one per response; an incomplete record at the end of a message
// is dropped, and so is a buffer too small for a record (completed with no bytes).
// Throughput: one beat a cycle; a response takes five cycles more. After a buffer whose size is no multiple of a beat the next response is
// short: it ends at the end of the beat. Latency: eight cycles. Order: kept.
// Room is reserved for beats still on their way in when the buffer fills up, so fewer than `Beats` may be held.
// Misuse: a beat without `last` counts as full; one with `last` and without bytes only ends its message.

module via_vdev_chop
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter int unsigned Beats = 32,  // capacity of the buffer
  parameter int unsigned Unit = 0,  // bytes of a record; 0: a stream of bytes
  parameter logic [QueueW-1:0] Queue = '0  // queue of the responses
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  strm_t           s_i,          // stream; id is ignored
  input  logic            s_valid_i,
  output logic            s_ready_o,
  input  logic            drop_i,       // level: nothing receives; beats are accepted and dropped
  // queue `Queue` of the engine
  input  logic            avail_i,      // level: the queue has a buffer
  input  logic     [31:0] wlen_i,       // its size in bytes
  output vq_rsp_t         rsp_o,        // response
  output logic            rsp_valid_o,
  input  logic            rsp_ready_i,
  output vq_beat_t        wr_o,         // its bytes
  output logic            wr_valid_o,
  input  logic            wr_ready_i,
  output logic            short_o,      // level: bytes wait for a buffer
  output logic            moving_o,     // level: something moves besides the response ports
  output logic            idle_o        // level: nothing is held
);

  localparam bit UnitOk = param_in("via_vdev_chop Unit", Unit, 0, StrbW);
  localparam bit UnitPartOk = param_in("via_vdev_chop beat modulo Unit", (Unit == 0) ? 0 : StrbW % Unit, 0, 0);

  localparam int unsigned LenW = $clog2(Beats * StrbW + 1);
  typedef logic [LenW-1:0] len_t;

  // ---------------------------------------------------------------- buffered bytes
  typedef struct packed {
    logic [BeatLog2:0] bytes;
    logic [DataW-1:0]  data;
  } held_t;
  localparam int unsigned Runs = 8;
  localparam int unsigned Late = 3;  // beats that may still arrive when the buffer is found to be full
  localparam bit BeatsOk = param_in("via_vdev_chop Beats", Beats, Late, 65536);
  localparam int unsigned BeatsW = $clog2(Beats + 1);
  localparam int unsigned RunsW = $clog2(Runs + 1);
  held_t held, in_q;
  logic in_valid_q, in_last_q, in_drop_q, ready_q, drop_q;
  logic held_valid, held_pop, run_valid, run_pop, take, ends;
  logic [BeatsW-1:0] beats;
  logic [ RunsW-1:0] runs;
  len_t open_q, open_now, run, load;  // bytes after the last run; those left after this cycle

  assign s_ready_o = ready_q;
  assign take = in_valid_q && !in_drop_q;
  assign ends = take && in_last_q && (open_now != '0 || in_q.bytes != '0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ready_q    <= 1'b0;
      drop_q     <= 1'b0;
      in_valid_q <= 1'b0;
    end else begin
      ready_q    <= drop_i || beats <= BeatsW'(Beats - Late) && runs <= RunsW'(Runs - Late);
      drop_q     <= drop_i;
      in_valid_q <= s_valid_i && ready_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (s_valid_i && ready_q) begin
      in_q      <= '{bytes: s_i.last ? keep_bytes(s_i.keep) : (BeatLog2 + 1)'(StrbW), data: s_i.data};
      in_last_q <= s_i.last;
      in_drop_q <= drop_q;  // its value when room was found
    end
  end

  via_fifo #(
    .T    (held_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_held (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (in_q),
    .s_valid_i(take && in_q.bytes != '0),
    .s_ready_o(),
    .m_o      (held),
    .m_valid_o(held_valid),
    .m_ready_i(held_pop),
    .count_o  (beats)
  );

  // Lengths of messages, or of their ends, of which all bytes are held.
  via_fifo #(
    .T    (len_t),
    .Depth(Runs)
  ) u_runs (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (open_now + len_t'(in_q.bytes)),
    .s_valid_i(ends),
    .s_ready_o(),
    .m_o      (run),
    .m_valid_o(run_valid),
    .m_ready_i(run_pop),
    .count_o  (runs)
  );

  // ---------------------------------------------------------------- responses
  typedef enum logic [2:0] {
    StLoad,  // take the next run of bytes
    StLook,  // determine what the beat at the head allows
    StResponse,  // wait for a buffer
    StOffer,  // offer the response, whatever becomes of the queue
    StData,  // send its bytes
    StSkip,  // drop the rest of a record
    StNext  // whether the beat, and the run, are used up
  } state_e;
  state_e state_q;
  len_t left_q, most_q, part_q, part;  // bytes of the run not yet delivered; upper limit of the response; its bytes
  logic [BeatLog2:0] off_q, in_beat, now;  // bytes of the beat at the head already sent; left; to be sent now
  logic close, decide, beat, last, fits, short_unit;

  // The bytes of a message that has not ended become a run when there is no other run.
  assign close = state_q == StLoad && !run_valid && open_q != '0 && avail_i;
  assign run_pop = state_q == StLoad && run_valid;
  assign load = run_valid ? run : open_q;
  assign open_now = close ? '0 : open_q;

  assign in_beat = held.bytes - off_q;
  assign fits = wlen_i >= 32'(most_q);
  assign part = fits ? most_q : (Unit != 0) ? '0 : len_t'(wlen_i);
  assign decide = state_q == StResponse && avail_i;
  assign rsp_valid_o = state_q == StOffer;
  assign rsp_o = '{queue: Queue, merge: 1'b0, len: 32'(part_q)};

  // A response that begins within a beat ends with it; every beat of a run except its last is full.
  assign last = part_q <= len_t'(StrbW);
  assign now = last ? part_q[BeatLog2:0] : (BeatLog2 + 1)'(StrbW);
  assign wr_valid_o = state_q == StData && held_valid;
  always_comb begin
    wr_o.last = last;
    wr_o.keep = keep_of(now);
    wr_o.data = (off_q == '0) ? held.data : held.data >> {off_q[BeatLog2-1:0], 3'b000};
  end
  assign beat = wr_valid_o && wr_ready_i || state_q == StSkip && held_valid;
  assign held_pop = beat && !last || state_q == StNext && held_valid && off_q == held.bytes;
  assign short_unit = Unit != 0 && left_q < len_t'(Unit);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StLoad;
      open_q  <= '0;
      off_q   <= '0;
    end else begin
      if (take) open_q <= ends ? '0 : open_now + len_t'(in_q.bytes);
      else if (close) open_q <= '0;
      if (held_pop) off_q <= '0;
      else if (beat) off_q <= off_q + now;
      unique case (state_q)
        StLoad: if (run_valid || close) state_q <= StLook;
        StLook: if (held_valid) state_q <= short_unit ? StSkip : StResponse;
        StResponse: if (decide) state_q <= StOffer;
        StOffer: if (rsp_ready_i) state_q <= (part_q == '0) ? StResponse : StData;
        StData: if (beat && last) state_q <= StNext;
        StSkip: if (beat && last) state_q <= StNext;
        StNext: state_q <= (left_q == '0) ? StLoad : StLook;
        default: ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StLoad) left_q <= load;
    else if (beat) left_q <= left_q - len_t'(now);
    // A record is delivered whole or not at all; otherwise what is left, but only to the end of a beat that was begun.
    most_q <= (Unit != 0) ? len_t'(Unit) : (off_q != '0 && left_q > len_t'(in_beat)) ? len_t'(in_beat) : left_q;
    if (state_q == StLook) part_q <= left_q;  // bytes to be skipped
    else if (state_q == StResponse) part_q <= part;
    else if (beat) part_q <= part_q - len_t'(now);
  end

  assign short_o = !avail_i && (state_q == StResponse || state_q == StLoad && !run_valid && open_q != '0);
  always_ff @(posedge clk_i)
    moving_o <= in_valid_q || s_valid_i && ready_q || run_pop || close || decide || beat || state_q inside {StSkip, StNext} ||
                state_q == StLook && held_valid || rsp_valid_o && rsp_ready_i;
  assign idle_o = state_q == StLoad && !run_valid && open_q == '0 && !in_valid_q;

endmodule
