// SPDX-License-Identifier: Apache-2.0
//
// One port of every kind that tools/checkers.py recognises as a handshake of its own; it accepts nothing.

module via_hs_ports
  import via_pkg::*;
#(
  parameter int unsigned N = 3,
  parameter type         T = logic
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  // a single port, of a type parameter, with a second payload port
  input  T             one_i,
  input  logic [  1:0] one_side_i,
  input  logic         one_valid_i,
  output logic         one_ready_o,
  // several channels in one vector: an array of payloads, one payload bit each, and one payload common to all
  input  cpl_t         vec_i        [  N],
  input  logic [N-1:0] vec_bit_i,
  input  logic [  7:0] vec_all_i,
  input  logic [N-1:0] vec_valid_i,
  output logic [N-1:0] vec_ready_o,
  // the same, numbered from 1
  input  logic [  2:0] from1_i      [N:1],
  input  logic [  N:1] from1_bit_i,
  input  logic [  N:1] from1_valid_i,
  output logic [  N:1] from1_ready_o,
  // unpacked arrays, with flat names
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
