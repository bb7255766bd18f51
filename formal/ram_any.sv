// SPDX-License-Identifier: Apache-2.0
//
// In place of via_ram_sdp: what is read is anything, and stays until the next read. Holds for every content, so a proof with it holds for the
// real memory; what it needs to know of the content it assumes, and proves it where words are written (formal/fifo.sv: words come out as they
// went in).

module via_ram_sdp #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 16,
  parameter int unsigned Lanes = 1,
  localparam int unsigned AW = (Depth > 1) ? $clog2(Depth) : 1
) (
  input  logic             clk_i,
  input  logic [Lanes-1:0] we_i,
  input  logic [   AW-1:0] waddr_i,
  input  logic [Width-1:0] wdata_i,
  input  logic             re_i,
  input  logic [   AW-1:0] raddr_i,
  output logic [Width-1:0] rdata_o
);

  logic [Width-1:0] any, rdata_q;  // nothing drives `any`: the solver chooses it in every cycle
  always_ff @(posedge clk_i) if (re_i) rdata_q <= any;
  assign rdata_o = rdata_q;

endmodule
