// SPDX-License-Identifier: Apache-2.0
//
// Stops the clock of a block four cycles after an input has changed, and three cycles after the block has reported that nothing moves, as
// the simulator does with parts of the shell (tools/parts.py; there four after the report). A block that wrongly reports it then fails its
// test. `inputs_i` are the inputs that still_o of the block does not cover: a change of one starts the clock.

module via_tb_gate #(
  parameter int unsigned W = 1
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         still_i,
  input  logic [W-1:0] inputs_i,
  output logic         clk_o
);

  localparam int unsigned Settle = 4;
  localparam int unsigned Stay = 3;

  logic [  2:0] left_q;
  logic [W-1:0] inputs_q;
  logic moves, run;
  assign moves = !rst_ni || inputs_i != inputs_q;
  always_ff @(posedge clk_i) begin
    inputs_q <= inputs_i;
    if (moves) left_q <= 3'(Settle);
    else if (!still_i && left_q <= 3'(Stay)) left_q <= 3'(Stay);
    else if (left_q != '0) left_q <= left_q - 1'b1;
  end
  always_latch if (!clk_i) run = moves || !still_i || left_q != '0;
  assign clk_o = clk_i && run;

endmodule
