// SPDX-License-Identifier: Apache-2.0
//
// Test app: passes every beat on. The fault is in mute_regs.sv.

// verilog_format: off  // a line per channel
module mute_app import via_pkg::*; (  // verilator lint_off UNUSEDSIGNAL  // nothing is held
  input  logic  clk_i, rst_ni, input logic [31:0] amount_i,  // verilator lint_on UNUSEDSIGNAL
  input  strm_t in_i,  input  logic in_valid_i,  output logic in_ready_o,
  output strm_t out_o, output logic out_valid_o, input  logic out_ready_i
);
  assign out_o = in_i;
  assign out_valid_o = in_valid_i;
  assign in_ready_o = out_ready_i;
endmodule
