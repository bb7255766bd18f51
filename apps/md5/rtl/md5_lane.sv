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
// A round takes one cycle because the sum of what does not depend on the round before is computed ahead, in three cycles:
//
//   k = K[t+3], word = w[index of t+3]      add = k + word      pre = d + add      p, q = mix(b, c)      b' = b + rotate(pre + (p ^ b & q))
//
// leaves two additions and a rotation in a row. For the same reason b is never loaded: its part of the state is added by the round's adder.

module md5_lane
  import via_pkg::*;
  import hash_pkg::*;
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

  feed_t feed;
  logic load, init, sum, prep, round, last;

  hash_feed #(
    .FifoBytes(FifoBytes)
  ) u_feed (
    .clk_i,
    .rst_ni,
    .s_i,
    .s_valid_i,
    .s_ready_o,
    .feed_o (feed),
    .load_o (load),
    .init_o (init),
    .sum_o  (sum),
    .prep_o (prep),
    .round_o(round),
    .last_i (last),
    .id_o,
    .valid_o,
    .ready_i,
    .busy_o
  );

  // ---------------------------------------------------------------- rounds
  logic [5:0] round_q, next_q, ahead_q;  // the round of this cycle, the next one, three rounds ahead
  turn_t turn_q;  // of round_q
  logic [15:0][31:0] w_q;
  logic [3:0][31:0] hash_q;
  logic [31:0] a_q, b_q, c_q, d_q, pre_q, add_q, k_q, word_q;
  mix_t mix_q;  // of c_q and d_q

  assign last = round_q == '1;

  always_ff @(posedge clk_i) begin
    if (load) w_q <= 512'({padded(feed, 1'b0), w_q} >> DataW);
    if (sum) hash_q <= {hash_q[3] + d_q, hash_q[2] + c_q, hash_q[1] + b_q, hash_q[0] + a_q};
    else if (load && init) hash_q <= Init;
    if (round || sum) b_q <= b_q + rotate(turn_q, pre_q + (mix_q.p ^ b_q & mix_q.q));
    else if (load && init) b_q <= Init[1];
    if (prep) begin
      {d_q, c_q, a_q} <= {hash_q[3:2], hash_q[0]};
      pre_q <= hash_q[0] + K[0] + w_q[0];
      add_q <= K[1] + w_q[1];
      mix_q <= mix(2'd0, hash_q[2], hash_q[3]);
      turn_q <= turn(2'd0, 2'd0);
      round_q <= '0;
      next_q <= 6'd1;
      ahead_q <= 6'd3;
      k_q <= K[2];
      word_q <= w_q[2];
    end
    if (round) begin
      a_q <= d_q;
      c_q <= b_q;
      d_q <= c_q;
      mix_q <= mix(next_q[5:4], b_q, c_q);
      turn_q <= turn(next_q[5:4], next_q[1:0]);
      // For the next three rounds; after the last one the results are not used.
      pre_q <= d_q + add_q;
      add_q <= k_q + word_q;
      k_q <= K[ahead_q];
      word_q <= w_q[index(ahead_q)];
      round_q <= next_q;
      next_q <= next_q + 1'b1;
      ahead_q <= ahead_q + 1'b1;
      if (last) begin
        // With sum, b becomes b + hash_q[1].
        turn_q <= '0;
        mix_q  <= '0;
        pre_q  <= unturned(hash_q[1]);
      end
    end
  end

  assign digest_o = hash_q;

endmodule
