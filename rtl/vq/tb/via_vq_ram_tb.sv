// SPDX-License-Identifier: Apache-2.0
//
// via_vq_ram with the reset port that every test bench has, and its number of queues as a signal.

module via_vq_ram_tb
  import via_virtio_pkg::*;
#(
  parameter  int unsigned Width = 8,
  parameter  int unsigned NumQ  = 2,
  localparam int unsigned QW    = (NumQ > 1) ? $clog2(NumQ) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 we_i,
  input  logic [       QW-1:0] wqueue_i,
  input  logic [QSizeLog2-1:0] windex_i,
  input  logic [    Width-1:0] wdata_i,
  input  logic                 re_i,
  input  logic [       QW-1:0] rqueue_i,
  input  logic [QSizeLog2-1:0] rindex_i,
  output logic [    Width-1:0] rdata_o,
  output logic [         31:0] num_q
);

  assign num_q = NumQ;

  via_vq_ram #(
    .Width(Width),
    .NumQ (NumQ)
  ) u_ram (
    .clk_i,
    .we_i(we_i && rst_ni),
    .wqueue_i,
    .windex_i,
    .wdata_i,
    .re_i,
    .rqueue_i,
    .rindex_i,
    .rdata_o
  );

endmodule
