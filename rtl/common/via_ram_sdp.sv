// SPDX-License-Identifier: Apache-2.0
//
// Simple dual-port memory: one write port, one read port, one clock. A board may replace it.
// Latency: read data one cycle after `re_i`, held until the next read. A read of the address written in the same cycle
// returns the old word.

module via_ram_sdp #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 16,
  parameter int unsigned Lanes = 1,  // equal parts of a word that are written separately
  localparam int unsigned AW = (Depth > 1) ? $clog2(Depth) : 1
) (
  input  logic             clk_i,
  input  logic [Lanes-1:0] we_i,     // write these lanes in this cycle
  input  logic [   AW-1:0] waddr_i,  // word address
  input  logic [Width-1:0] wdata_i,  // word to write
  input  logic             re_i,     // read in this cycle
  input  logic [   AW-1:0] raddr_i,  // word address
  output logic [Width-1:0] rdata_o   // word read, a cycle after `re_i`; held
);

  localparam bit WidthOk = via_pkg::param_in("via_ram_sdp Width", Width, 1, 65536);
  localparam bit DepthOk = via_pkg::param_in("via_ram_sdp Depth", Depth, 1, 1 << 24);
  localparam bit LanesOk = via_pkg::param_in("via_ram_sdp Lanes", Lanes, 1, Width);
  localparam int unsigned LaneW = Width / Lanes;
  if (LaneW * Lanes != Width) begin : gen_uneven
    $error("via_ram_sdp Lanes: %0d does not divide Width, %0d", Lanes, Width);
  end

  logic [Width-1:0] mem[Depth];
  logic [Width-1:0] rdata_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < Lanes; l++) if (we_i[l]) mem[waddr_i][l*LaneW+:LaneW] <= wdata_i[l*LaneW+:LaneW];
    if (re_i) rdata_q <= mem[raddr_i];
  end

  assign rdata_o = rdata_q;

endmodule
