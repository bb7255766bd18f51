// SPDX-License-Identifier: Apache-2.0
//
// A register file that never responds. It is compiled before the generated one, which is then ignored.

module via_app_regs (
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        reg_valid_i,
  input  logic        reg_write_i,
  input  logic [11:0] reg_addr_i,
  input  logic [31:0] reg_wdata_i,
  /* verilator lint_on UNUSEDSIGNAL */
  output logic [31:0] amount_o,
  output logic        reg_rvalid_o,
  output logic [31:0] reg_rdata_o,
  output logic        reg_err_o
);

  assign {amount_o, reg_rvalid_o, reg_rdata_o, reg_err_o} = '0;

endmodule
