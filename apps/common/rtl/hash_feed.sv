// SPDX-License-Identifier: Apache-2.0
//
// What is around the rounds of a lane that hashes one message after the other in blocks of 64 bytes: its FIFO, the padding, the order of
// things.
//
//   beats -> FIFO -> feed_o, for `padded` of hash_pkg -> rounds -> digest
//
// Of a block: 512 / DataW cycles with load_o, one with prep_o, and those with round_o, the last of which the rounds name by last_i. With
// sum_o, in the cycle after the rounds, the block is added to the hash; it may be the first load_o of the next block. Throughput: a block in
// the cycles of its beats, its rounds, and one. Latency: that of the last blocks. Order: kept. A lane that has nothing to do changes no
// register. Misuse: messages of one lane that are not one after the other give wrong digests.

module hash_feed
  import via_pkg::*;
  import hash_pkg::*;
#(
  parameter int unsigned FifoBytes = 32768
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  part_t       s_i,
  input  logic        s_valid_i,
  output logic        s_ready_o,
  output feed_t       feed_o,     // with load_o
  output logic        load_o,     // the block is shifted by a beat, and this one enters
  output logic        init_o,     // level: with load_o, the message begins with this beat
  output logic        sum_o,      // one cycle: what the rounds gave is added
  output logic        prep_o,     // one cycle: the block is whole, its rounds begin in the next
  output logic        round_o,    // level: a round
  input  logic        last_i,     // with round_o: it is the last
  output logic  [7:0] id_o,       // with valid_o: stream id of the message
  output logic        valid_o,    // level: the hash is the digest
  input  logic        ready_i,
  output logic        busy_o      // level: a message is in progress
);

  localparam bit FifoBytesOk = param_pow2("hash_feed FifoBytes", FifoBytes, 256, 1 << 20);

  localparam int unsigned BlockBeats = 512 / DataW;
  localparam int unsigned PosW = BlockBeats > 1 ? $clog2(BlockBeats) : 1;
  localparam int unsigned BeatsW = 61 - BeatLog2;  // the length of a message has 64 bits

  typedef enum logic [1:0] {
    Load,
    Prep,
    Round,
    Done    // the digest waits to be accepted
  } state_e;

  // ---------------------------------------------------------------- beats
  part_t beat;
  logic beat_valid, beat_pop;

  hash_fifo #(
    .FifoBytes(FifoBytes)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .s_i,
    .s_valid_i,
    .s_ready_o,
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_pop)
  );

  // ---------------------------------------------------------------- control
  state_e state_q;
  pad_e pad_q;
  logic [PosW-1:0] pos_q;  // beat within the block
  logic first_q;  // the next block is the first of a message
  logic sum_q;  // a block has passed the rounds and is not yet added
  logic final_q;  // it was the last block of its message
  logic full, tail, room;

  assign full = beat.full;
  assign load_o = state_q == Load && !(sum_q && final_q) && (beat_valid || pad_q != None);
  assign beat_pop = load_o && pad_q == None;
  assign tail = pad_q == None && beat.last;
  // The length fits into the beat, after the message and its mark.
  if (StrbW > 8) begin : gen_room
    assign room = pad_q != None || tail && !full && beat.bytes <= BeatLog2'(StrbW - 9);
  end else begin : gen_no_room
    assign room = pad_q == Zero;
  end

  assign init_o  = first_q;
  assign sum_o   = sum_q;
  assign prep_o  = state_q == Prep;
  assign round_o = state_q == Round;
  assign valid_o = state_q == Done;
  assign busy_o  = state_q == Prep || state_q == Round || sum_q || pad_q != None || beat_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Load;
      pad_q   <= None;
      pos_q   <= '0;
      first_q <= 1'b1;
      sum_q   <= 1'b0;
      final_q <= 1'b0;
    end else begin
      unique case (state_q)
        Load: begin
          sum_q <= 1'b0;
          if (sum_q && final_q) begin
            state_q <= Done;
            first_q <= 1'b1;
            final_q <= 1'b0;
            pad_q   <= None;
          end else if (load_o) begin
            first_q <= 1'b0;
            pos_q   <= pos_q + 1'b1;
            if (tail && full) pad_q <= Mark;
            else if (tail || pad_q == Mark) pad_q <= Zero;
            if (pos_q == PosW'(BlockBeats - 1)) begin
              pos_q   <= '0;
              final_q <= room;
              state_q <= Prep;
            end
          end
        end
        Prep: state_q <= Round;
        Round: begin
          if (last_i) begin
            sum_q   <= 1'b1;
            state_q <= Load;
          end
        end
        Done: if (ready_i) state_q <= Load;
      endcase
    end
  end

  // ---------------------------------------------------------------- length
  logic [BeatsW-1:0] beats_q, beats;  // full beats of the message
  logic [BeatLog2-1:0] rest_q;  // bytes after them
  assign beats = first_q ? '0 : beats_q;

  always_ff @(posedge clk_i) begin
    if (beat_pop) begin
      // The sum does not wait for the memory of the FIFO.
      beats_q <= full ? beats + 1'b1 : beats;
      rest_q  <= beat.bytes;
      id_o    <= beat.id;
    end
  end

  assign feed_o = '{
          beat: beat,
          pad: pad_q,
          length: pos_q == PosW'(BlockBeats - 1) && room,
          bits: {beats, pad_q == None ? beat.bytes : rest_q, 3'b0}
      };

endmodule
