// SPDX-License-Identifier: Apache-2.0
//
// The positions of an access sequence: offset i is size * ((high half of x[i]) * places / 2^32), with x[i] from xorshift64*
// (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016) after i + 1 steps from the seed.
//
//   state -> partial products -> high half -> * places -> * size -> offset
//
// or, with `permute_i`, each position once in 2^k offsets, of which there are as many as fit into `places`: y ^ (y >> 7), y being the lowest
// k bits of p[i], with p = p * 8197 + 0x9e3779b9, the lowest 32 bits of the seed being before the first. As 8196 is a multiple of 4 and the
// other constant odd, y has period 2^k (Hull and Dobell, "Random number generators", 1962); the last step is one to one.
//
// Throughput: one offset a cycle. Latency: five cycles after `start_i`. Order: that of the sequence. Misuse: all inputs but the handshake
// must not change from `start_i` to the last offset.

module rng_place (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        start_i,    // one-cycle pulse: begin the sequence
  input  logic [63:0] seed_i,     // not zero
  input  logic [31:0] count_i,    // offsets
  input  logic [31:0] places_i,   // number of possible positions
  input  logic [ 4:0] shift_i,    // log2 of the size
  input  logic        permute_i,
  output logic [63:0] offset_o,   // with valid_o: next offset in bytes
  output logic        valid_o,
  input  logic        ready_i
);

  localparam logic [63:0] Factor = 64'h2545_f491_4f6c_dd1d;

  function automatic logic [63:0] step(input logic [63:0] x);
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    return x;
  endfunction

  logic [3:0] valid_q;
  logic [31:0] left_q;
  logic move;
  assign move = !valid_o || ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {valid_o, valid_q} <= '0;
      left_q <= '0;
    end else if (start_i) begin
      left_q <= count_i;
    end else if (move) begin
      {valid_o, valid_q} <= {valid_q, left_q != '0};
      if (left_q != '0) left_q <= left_q - 1'b1;
    end
  end

  logic [63:0] x_q, low_q, scaled_q;
  logic [31:0] cross_q, cross2_q, high_q, place;
  logic [31:0] p_q, below, mask_q;
  logic [2:0][31:0] permuted_q;

  always_comb begin
    // All bits below the highest one.
    below = places_i;
    for (int unsigned k = 1; k < 32; k *= 2) below |= below >> k;
  end
  assign place = permute_i ? permuted_q[2] : scaled_q[63:32];

  always_ff @(posedge clk_i) begin
    if (start_i) x_q <= seed_i;
    else if (move && left_q != '0) x_q <= step(x_q);
    if (move && valid_q[0]) begin
      low_q    <= x_q[31:0] * 64'(Factor[31:0]);
      cross_q  <= x_q[31:0] * Factor[63:32];
      cross2_q <= x_q[63:32] * Factor[31:0];
    end
    if (move && valid_q[1]) high_q <= low_q[63:32] + cross_q + cross2_q;
    if (move && valid_q[2]) scaled_q <= high_q * 64'(places_i);
    mask_q <= below >> 1;
    if (start_i) p_q <= seed_i[31:0];
    else if (move && left_q != '0) p_q <= p_q + (p_q << 2) + (p_q << 13) + 32'h9e37_79b9;
    if (move) permuted_q <= {permuted_q[1:0], (p_q & mask_q) ^ ((p_q & mask_q) >> 7)};
    if (move && valid_q[3]) offset_o <= 64'(place) << shift_i;
  end

endmodule
