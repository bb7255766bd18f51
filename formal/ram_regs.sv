// SPDX-License-Identifier: Apache-2.0
//
// via_ram_sdp with its words in registers that a proof can name: `mem[i]`, and the word that was read. Behaves like the real one.

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

  localparam int unsigned LaneW = Width / Lanes;
  logic [Depth-1:0][Width-1:0] mem;
  logic [Width-1:0] rdata_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < Lanes; l++) if (we_i[l]) mem[waddr_i][l*LaneW+:LaneW] <= wdata_i[l*LaneW+:LaneW];
    if (re_i) rdata_q <= mem[raddr_i];
  end
  assign rdata_o = rdata_q;

endmodule
