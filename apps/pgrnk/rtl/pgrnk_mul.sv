// SPDX-License-Identifier: Apache-2.0
//
// Product of a number and a fraction: p = floor(a * b / 2^31) modulo 2^64, with b in units of 2^-31.
//
//   a, b -> six products of 22 by 16 bits -> sums for each half of b -> p
//
// Throughput: one a cycle. Latency: four cycles. Order: kept; nothing waits.

module pgrnk_mul (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [63:0] a_i,
  input  logic [31:0] b_i,
  input  logic        valid_i,
  output logic [63:0] p_o,
  output logic        valid_o
);

  logic [65:0] a_q;
  logic [31:0] b_q;
  logic [1:0][2:0][37:0] part_q;  // [half of b][third of a]
  logic [1:0][81:0] half_q;
  logic [97:0] sum;
  logic [3:0] valid_q;

  assign sum = {half_q[1], 16'b0} + 98'(half_q[0]);
  assign valid_o = valid_q[3];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[2:0], valid_i};
    if (valid_i) begin
      a_q <= 66'(a_i);
      b_q <= b_i;
    end
    for (int unsigned h = 0; h < 2; h++) begin
      if (valid_q[0]) for (int unsigned t = 0; t < 3; t++) part_q[h][t] <= 38'(a_q[22*t+:22]) * 38'(b_q[16*h+:16]);
      // The first and the third do not overlap.
      if (valid_q[1]) half_q[h] <= {part_q[h][2], 6'b0, part_q[h][0]} + {22'b0, part_q[h][1], 22'b0};
    end
    if (valid_q[2]) p_o <= sum[94:31];
  end

endmodule
