// SPDX-License-Identifier: Apache-2.0
//
// The positions of an access sequence: offset i is size * ((high half of x[i]) * places / 2^32), with x[i] from xorshift64*
// (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016) after i + 1 steps from the seed.
//
//   state -> partial products -> high half -> * places -> * size -> offset
//
// Throughput: one offset a cycle. Latency: five cycles after `start_i`. Order: that of the sequence. Misuse: all inputs but the handshake
// must not change from `start_i` to the last offset.

module rng_place (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        start_i,   // one-cycle pulse: begin the sequence
  input  logic [63:0] seed_i,    // not zero
  input  logic [31:0] count_i,   // offsets
  input  logic [31:0] places_i,  // number of possible positions
  input  logic [ 4:0] shift_i,   // log2 of the size
  output logic [63:0] offset_o,  // with valid_o: next offset in bytes
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
  logic [31:0] cross_q, cross2_q, high_q;

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
    if (move && valid_q[3]) offset_o <= 64'(scaled_q[63:32]) << shift_i;
  end

endmodule
