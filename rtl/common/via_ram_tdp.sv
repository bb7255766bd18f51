// SPDX-License-Identifier: Apache-2.0
//
// True dual-port memory: two ports that each read or write, one clock. A board may replace it.
// Latency: read data one cycle after an enabled access without write, held until the next. Two accesses to one address in one cycle, at
// least one of them a write, leave the read data of the other port undefined.

module via_ram_tdp #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 16,
  localparam int unsigned AW = (Depth > 1) ? $clog2(Depth) : 1
) (
  input  logic             clk_i,
  input  logic             a_en_i,     // access in this cycle
  input  logic             a_we_i,     // it is a write
  input  logic [   AW-1:0] a_addr_i,   // word address
  input  logic [Width-1:0] a_wdata_i,  // word to write
  output logic [Width-1:0] a_rdata_o,  // word read, a cycle after; held
  input  logic             b_en_i,     // port b: as port a
  input  logic             b_we_i,     // it is a write
  input  logic [   AW-1:0] b_addr_i,   // word address
  input  logic [Width-1:0] b_wdata_i,  // word to write
  output logic [Width-1:0] b_rdata_o   // word read, a cycle after; held
);

  localparam bit WidthOk = via_pkg::param_in("via_ram_tdp Width", Width, 1, 65536);
  localparam bit DepthOk = via_pkg::param_in("via_ram_tdp Depth", Depth, 1, 1 << 24);

  logic [Width-1:0] mem[Depth];
  logic [Width-1:0] a_q, b_q;

  always_ff @(posedge clk_i) begin
    if (a_en_i && a_we_i) mem[a_addr_i] <= a_wdata_i;
    if (a_en_i && !a_we_i) a_q <= mem[a_addr_i];
  end

  always_ff @(posedge clk_i) begin
    if (b_en_i && b_we_i) mem[b_addr_i] <= b_wdata_i;
    if (b_en_i && !b_we_i) b_q <= mem[b_addr_i];
  end

  assign a_rdata_o = a_q;
  assign b_rdata_o = b_q;

endmodule
