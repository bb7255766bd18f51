// SPDX-License-Identifier: Apache-2.0
//
// Bound to the top of a block test. Registers and clock nets power up with random contents, which may look like a clock edge at time 0:
// assertions count from the first edge in reset.

module via_tb_assert (
  input logic clk_i,
  input logic rst_ni
);

  initial $assertoff;
  always_ff @(posedge clk_i) if ($time != 0 && !rst_ni) $asserton;

endmodule
