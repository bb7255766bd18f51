// SPDX-License-Identifier: Apache-2.0
//
// Quotient of two numbers, with 8 bits behind the point, rounded towards zero and limited to 15 bits and a sign.
//
//   |n| * 2^8 / d, a bit in each cycle
//
// Throughput: one in each cycle with en_i. Latency: 18 of them. What is divided by zero or less is zero.

module flow_divide #(
  parameter int unsigned Width = 37  // of the dividend, with its sign, and of the divisor
) (
  input  logic                    clk_i,
  input  logic                    en_i,
  input  logic signed [Width-1:0] n_i,
  input  logic signed [Width-1:0] d_i,
  output logic signed [     15:0] q_o
);

  localparam bit WidthOk = via_pkg::param_in("flow_divide Width", Width, 8, 256);

  localparam int unsigned Bits = 15;

  // The divisor, and what is left of |n| * 2^8 / 2^14, of which one bit more is taken in each stage.
  logic [Bits:0][Width-1:0] d_q, rest_q;
  logic [Bits:0][Bits-1:0] bits_q;  // bits of the dividend to come, from above; bits of the quotient, from below
  logic [Bits:0] minus_q, none_q, over_q;
  logic [Width-1:0] n_q, first_d_q;
  logic n_minus_q;
  logic [Width+7:0] scaled;

  assign scaled = {n_q, 8'b0};

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      n_q        <= n_i < 0 ? -n_i : n_i;
      n_minus_q  <= n_i < 0;
      first_d_q  <= d_i;
      d_q[0]     <= first_d_q;
      minus_q[0] <= n_minus_q;
      none_q[0]  <= first_d_q[Width-1] || first_d_q == '0;
      // The quotient has more than 15 bits if what is above the lowest 15 is not below the divisor.
      over_q[0]  <= (Width)'(scaled[Width+7:Bits]) >= first_d_q;
      rest_q[0]  <= (Width)'(scaled[Width+7:Bits]);
      bits_q[0]  <= scaled[Bits-1:0];
      for (int unsigned i = 0; i < Bits; i++) begin
        logic [Width:0] rest;
        rest = {rest_q[i], bits_q[i][Bits-1]};
        d_q[i+1] <= d_q[i];
        {minus_q[i+1], none_q[i+1], over_q[i+1]} <= {minus_q[i], none_q[i], over_q[i]};
        rest_q[i+1] <= rest >= {1'b0, d_q[i]} ? Width'(rest - {1'b0, d_q[i]}) : Width'(rest);
        bits_q[i+1] <= {bits_q[i][Bits-2:0], rest >= {1'b0, d_q[i]}};
      end
      if (none_q[Bits]) q_o <= '0;
      else if (over_q[Bits]) q_o <= minus_q[Bits] ? -16'sd32767 : 16'sd32767;
      else q_o <= minus_q[Bits] ? -{1'b0, bits_q[Bits]} : {1'b0, bits_q[Bits]};
    end
  end

endmodule
