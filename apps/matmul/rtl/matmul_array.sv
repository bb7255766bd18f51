// SPDX-License-Identifier: Apache-2.0
//
// A tile of a product of matrices: 16 rows, 64 columns, signed bytes in, sums of 32 bits out.
//
//   16 bytes of A, one of each row ---+
//   32 bytes of B, half a line --> registers -> 512 products -> sums, 16 rows x 2 halves x 32 -> shifted out as lines of 16
//
// Throughput: 512 multiplications a cycle. A line of 64 bytes of B meets one column of A in two cycles, half by half. Latency: three cycles
// to the sum. The sums are shifted out in 64 cycles or more, row by row, from the lowest columns on; no step may come from three cycles
// before the first shift until the last. Nothing is reset: the first step of each half of a tile does not add.

module matmul_array (
  input  logic              clk_i,
  input  logic [15:0][ 7:0] a_i,
  input  logic [31:0][ 7:0] b_i,
  input  logic              half_i,   // of the columns
  input  logic              first_i,  // of the tile and this half
  input  logic              step_i,
  output logic [15:0][31:0] line_o,   // of the product: the next 16 columns
  input  logic              shift_i
);

  localparam int unsigned Rows = 16;
  localparam int unsigned Cols = 32;
  localparam int unsigned Out = 16;  // columns of a line

  // ---------------------------------------------------------------- operands, products
  logic [Rows-1:0][7:0] a_q;
  logic [Cols-1:0][7:0] b_q;
  logic [Rows-1:0][Cols-1:0][15:0] product_q;
  logic [1:0] step_q, half_q, first_q;

  always_ff @(posedge clk_i) begin
    step_q  <= {step_q[0], step_i};
    half_q  <= {half_q[0], half_i};
    first_q <= {first_q[0], first_i};
    if (step_i) begin
      a_q <= a_i;
      b_q <= b_i;
    end
    if (step_q[0]) begin
      for (int unsigned r = 0; r < Rows; r++) begin
        for (int unsigned c = 0; c < Cols; c++) product_q[r][c] <= 16'(signed'(a_q[r])) * 16'(signed'(b_q[c]));
      end
    end
  end

  // ---------------------------------------------------------------- sums
  // As one vector in the order in which they leave.
  logic [Rows-1:0][1:0][Cols-1:0][31:0] sum_q;

  assign line_o = sum_q[0][0][Out-1:0];

  always_ff @(posedge clk_i) begin
    if (shift_i) sum_q <= sum_q >> (32 * Out);
    else if (step_q[1]) begin
      for (int unsigned h = 0; h < 2; h++) begin
        if (half_q[1] == 1'(h)) begin
          for (int unsigned r = 0; r < Rows; r++) begin
            for (int unsigned c = 0; c < Cols; c++) begin
              sum_q[r][h][c] <= (first_q[1] ? '0 : sum_q[r][h][c]) + 32'(signed'(product_q[r][c]));
            end
          end
        end
      end
    end
  end

endmodule
