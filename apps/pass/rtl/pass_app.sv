// SPDX-License-Identifier: Apache-2.0
//
// Passes every beat on: the smallest app. Throughput: one beat a cycle. Latency: none of its own. Order: kept.

// verilog_format: off  // a line per channel
module pass_app import via_pkg::*; (  // verilator lint_off UNUSEDSIGNAL  // nothing is held
  input  logic  clk_i, rst_ni,  // verilator lint_on UNUSEDSIGNAL
  input  strm_t in_i,  input  logic in_valid_i,  output logic in_ready_o,
  output strm_t out_o, output logic out_valid_o, input  logic out_ready_i
);
  assign out_o = in_i;
  assign out_valid_o = in_valid_i;
  assign in_ready_o = out_ready_i;
endmodule
