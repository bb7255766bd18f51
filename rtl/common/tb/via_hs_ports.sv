// SPDX-License-Identifier: Apache-2.0
//
// A port of every kind that tools/checkers.py knows as a handshake by itself; it takes nothing.

module via_hs_ports
  import via_pkg::*;
#(
  parameter int unsigned N = 3,
  parameter type         T = logic
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  // alone, of a type of its own, with a sibling
  input  T             one_i,
  input  logic [  1:0] one_side_i,
  input  logic         one_valid_i,
  output logic         one_ready_o,
  // wires in one vector: payload for each, as a bit for each, and one for all
  input  cpl_t         vec_i        [  N],
  input  logic [N-1:0] vec_bit_i,
  input  logic [  7:0] vec_all_i,
  input  logic [N-1:0] vec_valid_i,
  output logic [N-1:0] vec_ready_o,
  // the same, counted from 1
  input  logic [  2:0] from1_i      [N:1],
  input  logic [  N:1] from1_bit_i,
  input  logic [  N:1] from1_valid_i,
  output logic [  N:1] from1_ready_o,
  // an array of wires, with flat names
  input  logic [  2:0] flat_data_i  [  N],
  input  logic         flat_valid_i [  N],
  output logic         flat_ready_o [  N],
  // without payload
  input  logic         bare_valid_i,
  output logic         bare_ready_o
);

  localparam bit NOk = param_in("via_hs_ports N", N, 1, 16);

  assign one_ready_o   = 1'b0;
  assign vec_ready_o   = '0;
  assign from1_ready_o = '0;
  assign flat_ready_o  = '{default: 1'b0};
  assign bare_ready_o  = 1'b0;

endmodule
