// SPDX-License-Identifier: Apache-2.0
//
// SHA3-256 (FIPS 202) of one message after the other.
//
//   beats -> keccak_feed: blocks -> ^ state -> two rounds a cycle -> digest
//
// Throughput: a block of 136 bytes every 12 cycles, 11.33 bytes a cycle, or with beats of 64 bits one every 17, as they come: the next block is
// collected meanwhile, and enters with the last two rounds of the one before. Latency: that of the last block and 12 cycles. Order: kept.
// The digest is held at the output until accepted; the next message stops before it would be overwritten. A lane that has nothing to do
// changes no register.

module keccak_lane
  import via_pkg::*;
  import hash_pkg::*;
  import keccak_pkg::*;
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

  localparam bit FifoBytesOk = param_pow2("keccak_lane FifoBytes", FifoBytes, 256, 1 << 20);

  localparam int unsigned Steps = Rounds / 2;

  logic [BlockWords-1:0][63:0] block;
  logic first, final_block, block_valid, take, feed_busy;
  logic [7:0] block_id;

  keccak_feed #(
    .FifoBytes(FifoBytes)
  ) u_feed (
    .clk_i,
    .rst_ni,
    .s_i,
    .s_valid_i,
    .s_ready_o,
    .block_o(block),
    .first_o(first),
    .final_o(final_block),
    .id_o   (block_id),
    .valid_o(block_valid),
    .take_i (take),
    .busy_o (feed_busy)
  );

  // ---------------------------------------------------------------- rounds
  state_t state_q;
  logic [3:0] next_q;  // step after this one
  logic [1:0][63:0] constant_q;  // of the rounds of this one
  logic run_q, last_q, final_q, step, ends;
  logic [7:0] run_id_q;

  // The last step of a message waits for room for its digest.
  assign step   = run_q && !(last_q && final_q && valid_o);
  assign ends   = step && last_q;
  assign take   = block_valid && (!run_q || ends);
  assign busy_o = run_q || feed_busy;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      run_q   <= 1'b0;
      valid_o <= 1'b0;
    end else begin
      if (take) run_q <= 1'b1;
      else if (ends) run_q <= 1'b0;
      if (ends && final_q) valid_o <= 1'b1;
      else if (ready_i) valid_o <= 1'b0;
    end
    if (take) begin
      next_q   <= 4'd1;
      last_q   <= 1'b0;
      final_q  <= final_block;
      run_id_q <= block_id;
    end else if (step) begin
      next_q <= next_q + 1'b1;
      last_q <= next_q == 4'(Steps - 1);
    end
    if (take) constant_q <= {Constant[1], Constant[0]};
    else if (step) constant_q <= {Constant[{next_q, 1'b1}], Constant[{next_q, 1'b0}]};
    if (step || take) begin
      state_t next;
      next = step ? round(round(state_q, constant_q[0]), constant_q[1]) : state_q;
      if (ends && final_q) begin
        digest_o <= next[0][3:0];
        id_o     <= run_id_q;
      end
      if (take && first) next = '0;
      if (take) next ^= $bits(state_t)'(block);
      state_q <= next;
    end
  end

endmodule
