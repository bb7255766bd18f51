// SPDX-License-Identifier: Apache-2.0
//
// Bound to the top of a simulation. Registers and clock nets power up with random contents, and what is reset by a register of its own
// comes to itself a cycle later: assertions count while the top is not in reset, from its first reset on.

/* verilator coverage_off */  // the design is what is covered
module via_tb_assert (
  input logic clk_i,
  input logic rst_ni
);

  logic reset_q;  // there was a reset
  initial begin
    $assertoff;
    reset_q = 1'b0;
  end
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      $assertoff;
      reset_q <= 1'b1;
    end else if (reset_q) begin
      $asserton;
    end
  end

endmodule
/* verilator coverage_on */
