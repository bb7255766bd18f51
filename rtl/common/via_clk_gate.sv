// SPDX-License-Identifier: Apache-2.0
//
// The clock of a block that says when nothing in it moves: seven cycles after the last of what is listed below it stops, and
// the simulated card has nothing to evaluate in that block.
//
//   still_i is low    something in the block moves by itself
//   wake_i is high    something reaches it
//   watch_i differs   from the cycle before: a level that it sees has changed
//
// The block must not depend on being clocked while `still_i` is high, `wake_i` low and `watch_i` the same, but for the seven
// cycles. It runs in reset. In synthesis the clock goes through: what the block does is the same with and without a gate.
// The gate is the usual one: a latch, open while the clock is low, and an and.

module via_clk_gate #(
  parameter int unsigned Width = 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             still_i,
  input  logic             wake_i,
  input  logic [Width-1:0] watch_i,
  output logic             clk_o
);

  localparam bit WidthOk = via_pkg::param_in("via_clk_gate Width", Width, 1, 65536);

`ifdef SYNTHESIS
  logic unused;
  assign unused = ^{rst_ni, still_i, wake_i, watch_i};
  assign clk_o  = clk_i;
`else
  logic [Width-1:0] seen_q;
  logic [2:0] left_q;
  logic moves, on;
  assign moves = !rst_ni || !still_i || wake_i || watch_i != seen_q;

  always_ff @(posedge clk_i) begin
    seen_q <= watch_i;
    if (moves) left_q <= 3'd7;
    else if (left_q != 0) left_q <= left_q - 3'd1;
  end

  always_latch if (!clk_i) on = moves || left_q != 0;
  assign clk_o = clk_i && on;
`endif

endmodule
