// SPDX-License-Identifier: Apache-2.0
//
// MD5 (RFC 1321) of one message after the other.
//
//   beats -> FIFO -> mask, pad -> w[0..15] -> a round a cycle -> + state -> digest
//
// Throughput: a block of 64 bytes every 65 + 512 / DataW cycles: the beats of the block (with the first of them the previous block is added
// to the state), one cycle that prepares the first round, 64 rounds. Latency: that of the last blocks. Order: kept. The digest is held at the
// output until accepted. A lane that has nothing to do changes no register.
//
// A round takes one cycle because the sum of what does not depend on the round before is computed ahead, in two cycles:
//
//   add = K[t+2] + w[index of t+2]      pre = d + add      p, q = mix(b, c)      b' = b + rotate(pre + (p ^ b & q))
//
// leaves two additions and a rotation in a row.

module md5_lane
  import via_pkg::*;
  import md5_pkg::*;
#(
  parameter int unsigned FifoBytes = 32768
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  part_t         s_i,
  input  logic          s_valid_i,
  output logic          s_ready_o,
  output logic  [127:0] digest_o,   // first byte lowest
  output logic  [  7:0] id_o,       // with valid_o: stream id of the message
  output logic          valid_o,
  input  logic          ready_i,
  output logic          busy_o      // level: a message is in progress
);

  localparam bit FifoBytesOk = param_pow2("md5_lane FifoBytes", FifoBytes, 256, 1 << 20);

  localparam int unsigned BlockBeats = 512 / DataW;
  localparam int unsigned PosW = BlockBeats > 1 ? $clog2(BlockBeats) : 1;
  localparam int unsigned BeatsW = 61 - BeatLog2;  // the length of a message has 64 bits

  typedef enum logic [1:0] {
    Load,   // beats into w
    Prep,
    Round,
    Done    // the digest waits to be accepted
  } state_e;
  typedef enum logic [1:0] {
    None,  // within the message
    Mark,  // the next beat starts with the byte 0x80
    Zero   // zeros and the length
  } pad_e;

  // ---------------------------------------------------------------- beats
  // A lane whose FIFO was full accepts nothing until it is half empty: beats then come in runs, and memory is read in long bursts.
  localparam int unsigned Depth = FifoBytes / StrbW;
  part_t beat;
  logic beat_valid, beat_pop, fifo_ready, open_q;
  logic [$clog2(Depth+1)-1:0] held;

  assign s_ready_o = fifo_ready && open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b1;
    else if (!fifo_ready) open_q <= 1'b0;
    else if (32'(held) <= Depth / 2) open_q <= 1'b1;
  end

  via_fifo #(
    .T    (part_t),
    .Depth(Depth),
    .Ram  (1'b1)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i,
    .s_valid_i(s_valid_i && open_q),
    .s_ready_o(fifo_ready),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_pop),
    .count_o  (held)
  );

  // ---------------------------------------------------------------- control
  state_e state_q;
  pad_e pad_q;
  logic [PosW-1:0] pos_q;  // beat within the block
  logic [5:0] round_q, next_q, after_q;  // the round of this cycle, the next one, the one after that
  logic first_q;  // the next block is the first of a message
  logic sum_q;  // a block has passed the rounds and is not yet added
  logic final_q;  // it was the last block of its message
  logic full, load, tail, room;

  assign full = beat.full;
  assign load = state_q == Load && !(sum_q && final_q) && (beat_valid || pad_q != None);
  assign beat_pop = load && pad_q == None;
  assign tail = pad_q == None && beat.last;
  // The length fits into the beat, after the message and its mark.
  if (StrbW > 8) begin : gen_room
    assign room = pad_q != None || tail && !full && beat.bytes <= BeatLog2'(StrbW - 9);
  end else begin : gen_no_room
    assign room = pad_q == Zero;
  end

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
          end else if (load) begin
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
          if (round_q == '1) begin
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
      beats_q <= beats + BeatsW'(full);
      rest_q  <= beat.bytes;
      id_o    <= beat.id;
    end
  end

  // ---------------------------------------------------------------- rounds
  logic [15:0][31:0] w_q;
  logic [ 3:0][31:0] hash_q;
  logic [31:0] a_q, b_q, c_q, d_q, pre_q, add_q;
  mix_t mix_q;  // of c_q and d_q

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Load: begin
        if (load) begin
          logic [DataW-1:0] in;
          in = beat.data;
          if (pad_q != None) begin
            in = '0;
            if (pad_q == Mark) in[7:0] = 8'h80;
          end else if (!full) begin
            for (int unsigned i = 0; i < StrbW; i++) begin
              if (i >= 32'(beat.bytes)) in[8*i+:8] = i == 32'(beat.bytes) ? 8'h80 : 8'h00;
            end
          end
          if (pos_q == PosW'(BlockBeats - 1) && room) in[DataW-1-:64] = {beats, pad_q == None ? beat.bytes : rest_q, 3'b0};
          w_q <= 512'({in, w_q} >> DataW);
        end
        if (sum_q) hash_q <= {hash_q[3] + d_q, hash_q[2] + c_q, hash_q[1] + b_q, hash_q[0] + a_q};
        else if (load && first_q) hash_q <= Init;
      end
      Prep: begin
        {d_q, c_q, b_q, a_q} <= hash_q;
        pre_q <= hash_q[0] + K[0] + w_q[0];
        add_q <= K[1] + w_q[1];
        mix_q <= mix(2'd0, hash_q[2], hash_q[3]);
        round_q <= '0;
        next_q <= 6'd1;
        after_q <= 6'd2;
      end
      Round: begin
        a_q <= d_q;
        b_q <= b_q + rotate(round_q[5:4], round_q[1:0], pre_q + (mix_q.p ^ b_q & mix_q.q));
        c_q <= b_q;
        d_q <= c_q;
        mix_q <= mix(next_q[5:4], b_q, c_q);
        // For the next round and the one after it; after the last one the results are not used.
        pre_q <= d_q + add_q;
        add_q <= K[after_q] + w_q[index(after_q)];
        round_q <= next_q;
        next_q <= after_q;
        after_q <= after_q + 1'b1;
      end
      Done: ;
    endcase
  end

  assign digest_o = hash_q;

endmodule
