// SPDX-License-Identifier: Apache-2.0
//
// Weighted mean of signed values: symmetric weights of 1 / 256, rounded to nearest, halves up.
//
//   7 values: 19 34 48 74 48 34 19      3 values: 83 90 83
//
// Throughput: one in each cycle with en_i. Latency: four of them.

module flow_smooth #(
  parameter int unsigned Taps  = 7,  // 7 or 3
  parameter int unsigned Width = 13  // of a value, and of the mean
) (
  input  logic                               clk_i,
  input  logic                               en_i,
  input  logic        [ Taps-1:0][Width-1:0] s_i,
  output logic signed [Width-1:0]            mean_o
);

  localparam bit TapsOk = via_pkg::param_in("flow_smooth Taps", Taps, 3, 7);
  localparam bit WidthOk = via_pkg::param_in("flow_smooth Width", Width, 8, 24);

  typedef logic signed [Width+8:0] sum_t;

  function automatic sum_t wide(input logic [Width-1:0] x);
    return sum_t'(signed'(x));
  endfunction

  // Sums of values with the same weight, from the middle on.
  sum_t [Taps/2:0] pair_q;
  sum_t [Taps/2:0] low_q, high_q;  // two parts of each times its weight
  sum_t [Taps/2:0] product_q;
  sum_t total;

  always_comb begin
    total = sum_t'(128);
    for (int unsigned i = 0; i <= Taps / 2; i++) total += product_q[i];
  end

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      pair_q[0] <= wide(s_i[Taps/2]);
      for (int unsigned i = 1; i <= Taps / 2; i++) pair_q[i] <= wide(s_i[Taps/2-i]) + wide(s_i[Taps/2+i]);
      for (int unsigned i = 0; i <= Taps / 2; i++) begin
        sum_t x;
        x = pair_q[i];
        if (Taps == 3) begin
          // 90 = 80 + 10, 83 = 80 + 3
          high_q[i] <= (x << 6) + (x << 4);
          low_q[i]  <= i == 0 ? (x << 3) + (x << 1) : (x << 1) + x;
        end else begin
          unique case (i)
            0: {high_q[i], low_q[i]} <= {sum_t'((x << 6) + (x << 3)), sum_t'(x << 1)};  // 74
            1: {high_q[i], low_q[i]} <= {sum_t'(x << 5), sum_t'(x << 4)};  // 48
            2: {high_q[i], low_q[i]} <= {sum_t'(x << 5), sum_t'(x << 1)};  // 34
            default: {high_q[i], low_q[i]} <= {sum_t'((x << 4) + (x << 1)), x};  // 19
          endcase
        end
        product_q[i] <= high_q[i] + low_q[i];
      end
      mean_o <= total[Width+7:8];
    end
  end

endmodule
