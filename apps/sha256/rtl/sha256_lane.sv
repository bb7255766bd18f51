// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) of one message after the other.
//
//   beats -> FIFO -> mask, pad -> w[0..15] -> a round a cycle -> + hash -> digest
//
// Throughput: a block of 64 bytes every 65 + 512 / DataW cycles: the beats of the block (with the first of them the previous block is added
// to the hash), one cycle that prepares the first round, 64 rounds. Latency: that of the last blocks. Order: kept. The digest is held at the
// output until accepted. A lane that has nothing to do changes no register.
//
// A round is a sum of five operands and no more, as the sums of terms that do not depend on the round before are computed ahead, in two cycles:
//
//   add = K[t+2] + w[t+2]    pre = g + add    pre_d = g + c + add    e' = pre_d + S1(e) + ch(e, f, g)    a' = pre + ... + S0(a) + maj(a, b, c)
//
// Two rounds in a cycle would be 14 levels of logic: more bytes per cycle, but not at this clock.

module sha256_lane
  import via_pkg::*;
  import hash_pkg::*;
  import sha256_pkg::*;
#(
  parameter int unsigned FifoBytes = 32768
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  part_t         s_i,
  input  logic          s_valid_i,
  output logic          s_ready_o,
  output logic  [255:0] digest_o,   // first byte lowest
  output logic  [  7:0] id_o,       // with valid_o: stream id of the message
  output logic          valid_o,
  input  logic          ready_i,
  output logic          busy_o      // level: a message is in progress
);

  localparam bit FifoBytesOk = param_pow2("sha256_lane FifoBytes", FifoBytes, 256, 1 << 20);

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
  logic [5:0] round_q;
  logic [15:0][31:0] w_q;
  logic [7:0][31:0] hash_q;
  logic [31:0] a_q, b_q, c_q, d_q, e_q, f_q, g_q, h_q;
  logic [31:0] add_q, pre_q, pre_d_q;
  logic [31:0] k_q;  // constant of the word after that of add_q

  // Words in the order of a number: the highest byte first.
  function automatic logic [DataW-1:0] words(input logic [DataW-1:0] beat);
    for (int unsigned i = 0; i < DataW / 32; i++) words[32*i+:32] = swap(beat[32*i+:32]);
  endfunction

  assign last = round_q == '1;

  always_ff @(posedge clk_i) begin
    if (load) w_q <= 512'({words(padded(feed, 1'b1)), w_q} >> DataW);
    if (sum) begin
      hash_q <= {
        hash_q[7] + h_q,
        hash_q[6] + g_q,
        hash_q[5] + f_q,
        hash_q[4] + e_q,
        hash_q[3] + d_q,
        hash_q[2] + c_q,
        hash_q[1] + b_q,
        hash_q[0] + a_q
      };
    end else if (load && init) begin
      hash_q <= Init;
    end
    if (prep) begin
      {h_q, g_q, f_q, e_q, d_q, c_q, b_q, a_q} <= hash_q;
      pre_q <= hash_q[7] + K[0] + w_q[0];
      pre_d_q <= hash_q[7] + K[0] + w_q[0] + hash_q[3];
      add_q <= K[1] + w_q[1];
      k_q <= K[2];
      round_q <= '0;
    end
    if (round) begin
      {h_q, g_q, f_q} <= {g_q, f_q, e_q};
      {d_q, c_q, b_q} <= {c_q, b_q, a_q};
      // Each sum is a tree of its own: a part in common would be an addition before another.
      e_q <= pre_d_q + big_sigma1(e_q) + ch(e_q, f_q, g_q);
      a_q <= pre_q + big_sigma1(e_q) + ch(e_q, f_q, g_q) + big_sigma0(a_q) + maj(a_q, b_q, c_q);
      // For the next rounds; after the last one the results are not used.
      pre_q <= g_q + add_q;
      pre_d_q <= g_q + add_q + c_q;
      add_q <= k_q + w_q[2];
      k_q <= K[round_q+6'd3];
      w_q <= {sigma1(w_q[14]) + w_q[9] + sigma0(w_q[1]) + w_q[0], w_q[15:1]};
      round_q <= round_q + 1'b1;
    end
  end

  for (genvar i = 0; i < 8; i++) begin : gen_digest
    assign digest_o[32*i+:32] = swap(hash_q[i]);
  end

endmodule
