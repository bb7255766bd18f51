// SPDX-License-Identifier: Apache-2.0
//
// Bound to the top of a simulation. Registers and clock nets power up with random contents, and what has a reset register of its own is
// reset a cycle later. Assertions are therefore enabled only while the top is not in reset, and only after its first reset.

/* verilator coverage_off */  // not part of the coverage of the design
module via_tb_assert (
  input logic clk_i,
  input logic rst_ni
);

  logic reset_q;  // there was a reset before
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
