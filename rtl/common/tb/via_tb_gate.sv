// SPDX-License-Identifier: Apache-2.0
//
// Stops the clock of a block that says for the second cycle that nothing moves in it, as the simulator does with the whole shell. A block that
// says so wrongly then fails its test. `inputs_i` are the inputs that the block's still_o leaves to others to watch.

module via_tb_gate #(
  parameter int unsigned W = 1
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         still_i,
  input  logic [W-1:0] inputs_i,
  output logic         clk_o
);

  logic was_still_q, run;
  logic [W-1:0] inputs_q;
  always_ff @(posedge clk_i) begin
    was_still_q <= rst_ni && still_i;
    inputs_q    <= inputs_i;
  end
  always_latch if (!clk_i) run = !(rst_ni && still_i && was_still_q && inputs_i == inputs_q);
  assign clk_o = clk_i && run;

endmodule
