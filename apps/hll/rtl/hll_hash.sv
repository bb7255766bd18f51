// SPDX-License-Identifier: Apache-2.0
//
// MurmurHash3 (x86, 32 bits) of a key of four bytes (Austin Appleby, smhasher, MurmurHash3.cpp).
//
//   key -> * C1 -> rotate -> * C2 -> ^ seed, rotate, * 5 + N, ^ 4 -> * F1 -> * F2 -> hash
//
// Throughput: one key a cycle. Latency: 9 cycles. Order: kept; nothing is held. A product is made in two cycles: two products of 16 bits and
// 32, then their sum. Misuse: `seed_i` must not change while keys are in it.

module hll_hash (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [31:0] key_i,    // first byte lowest
  input  logic        valid_i,
  input  logic [31:0] seed_i,
  output logic [31:0] hash_o,
  output logic        valid_o
);

  localparam logic [31:0] C1 = 32'hcc9e_2d51;
  localparam logic [31:0] C2 = 32'h1b87_3593;
  localparam logic [31:0] N = 32'he654_6b64;
  localparam logic [31:0] F1 = 32'h85eb_ca6b;
  localparam logic [31:0] F2 = 32'hc2b2_ae35;

  // The product of x and c modulo 2^32 is the sum of two, the second of them 16 bits higher.
  typedef struct packed {
    logic [15:0] high;
    logic [31:0] low;
  } product_t;

  function automatic product_t times(input logic [31:0] x, input logic [31:0] c);
    return '{high: x[31:16] * c[15:0], low: 32'(x[15:0]) * c};
  endfunction

  function automatic logic [31:0] sum(input product_t p);
    return {p.low[31:16] + p.high, p.low[15:0]};
  endfunction

  logic [7:0] valid_q;
  product_t c1_q, c2_q, f1_q, f2_q;
  logic [31:0] k1_q, k2_q, mixed_q, h_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {valid_o, valid_q} <= '0;
    else {valid_o, valid_q} <= {valid_q, valid_i};

    if (valid_i) c1_q <= times(key_i, C1);
    if (valid_q[0]) k1_q <= sum(c1_q);
    if (valid_q[1]) c2_q <= times({k1_q[16:0], k1_q[31:17]}, C2);
    if (valid_q[2]) k2_q <= sum(c2_q) ^ seed_i;
    if (valid_q[3]) begin
      logic [31:0] h;
      h = {k2_q[18:0], k2_q[31:19]};
      mixed_q <= h + (h << 2) + N;
    end
    if (valid_q[4]) begin
      logic [31:0] h;
      h = mixed_q ^ 32'd4;
      h ^= h >> 16;
      f1_q <= times(h, F1);
    end
    if (valid_q[5]) h_q <= sum(f1_q);
    if (valid_q[6]) f2_q <= times(h_q ^ h_q >> 13, F2);
    if (valid_q[7]) begin
      logic [31:0] h;
      h = sum(f2_q);
      hash_o <= h ^ h >> 16;
    end
  end

endmodule
