// SPDX-License-Identifier: Apache-2.0
//
// Stops the clock of a block seven cycles after the last activity in it, as the simulator does with the shell and its parts
// (tools/parts.py). A block that wrongly reports that nothing moves then fails its test. `inputs_i` are the inputs that still_o of the
// block does not cover: a change of one starts the clock.

module via_tb_gate #(
  parameter int unsigned W = 1
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         still_i,
  input  logic [W-1:0] inputs_i,
  output logic         clk_o
);

  logic [  2:0] left_q;
  logic [W-1:0] inputs_q;
  logic moves, run;
  assign moves = !rst_ni || !still_i || inputs_i != inputs_q;
  always_ff @(posedge clk_i) begin
    inputs_q <= inputs_i;
    if (moves) left_q <= 3'd7;
    else if (left_q != '0) left_q <= left_q - 1'b1;
  end
  always_latch if (!clk_i) run = moves || left_q != '0;
  assign clk_o = clk_i && run;

endmodule
