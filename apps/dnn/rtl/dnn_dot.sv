// SPDX-License-Identifier: Apache-2.0
//
// Products of lines, summed up over several of them, as a number of 16 bits.
//
//   a, w -> 32 products -> tree -> sum since `first` -> with `last`: round, shift, saturate -> value
//
// Throughput: a line a cycle. Latency: eleven cycles. Order: kept; nothing waits. The sum is exact; value = floor(sum / 2^fraction + 1/2),
// limited to 16 bits.

module dnn_dot
  import dnn_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  input  line_t         a_i,
  input  line_t         w_i,
  input  logic          first_i,
  input  logic          last_i,
  input  logic          valid_i,
  input  logic    [3:0] fraction_i,  // constant meanwhile, 0 to 14
  output number_t       value_o,
  output logic          valid_o
);

  localparam int unsigned SumW = 42;  // of up to 32 lines

  logic signed [31:0][31:0] p_q;
  logic signed [15:0][32:0] t1_q;
  logic signed [7:0][33:0] t2_q;
  logic signed [3:0][34:0] t3_q;
  logic signed [1:0][35:0] t4_q;
  logic signed [36:0] t5_q;
  logic signed [SumW-1:0] sum_q, round_q, shift_q;
  logic [6:0] valid_q;  // of p_q to sum_q
  logic [6:0] first_q, last_q;
  logic [2:0] end_q;  // of round_q, shift_q, value_o

  assign valid_o = end_q[2];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      end_q   <= '0;
    end else begin
      valid_q <= {valid_q[5:0], valid_i};
      end_q   <= {end_q[1:0], valid_q[6] && last_q[6]};
    end
    first_q <= {first_q[5:0], first_i};
    last_q  <= {last_q[5:0], last_i};
    if (valid_i) for (int unsigned i = 0; i < 32; i++) p_q[i] <= 32'(signed'(a_i[i])) * 32'(signed'(w_i[i]));
    if (valid_q[0]) for (int unsigned i = 0; i < 16; i++) t1_q[i] <= 33'(signed'(p_q[2*i])) + 33'(signed'(p_q[2*i+1]));
    if (valid_q[1]) for (int unsigned i = 0; i < 8; i++) t2_q[i] <= 34'(signed'(t1_q[2*i])) + 34'(signed'(t1_q[2*i+1]));
    if (valid_q[2]) for (int unsigned i = 0; i < 4; i++) t3_q[i] <= 35'(signed'(t2_q[2*i])) + 35'(signed'(t2_q[2*i+1]));
    if (valid_q[3]) for (int unsigned i = 0; i < 2; i++) t4_q[i] <= 36'(signed'(t3_q[2*i])) + 36'(signed'(t3_q[2*i+1]));
    if (valid_q[4]) t5_q <= 37'(signed'(t4_q[0])) + 37'(signed'(t4_q[1]));
    if (valid_q[5]) sum_q <= SumW'(t5_q) + (first_q[5] ? '0 : sum_q);
    round_q <= sum_q + (SumW'(1) << fraction_i >> 1);
    shift_q <= round_q >>> fraction_i;
    if (shift_q[SumW-1:15] == '0 || shift_q[SumW-1:15] == '1) value_o <= shift_q[15:0];
    else value_o <= {shift_q[SumW-1], {15{!shift_q[SumW-1]}}};
  end

endmodule
