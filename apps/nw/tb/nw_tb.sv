// SPDX-License-Identifier: Apache-2.0
//
// nw_app with individual signals for its memory port, as the memory model of the test expects them.

module nw_tb
  import via_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,
  output logic [      5:0] mem_arid,
  output logic [     63:0] mem_araddr,
  output logic [      7:0] mem_arlen,
  output logic             mem_arvalid,
  input  logic             mem_arready,
  input  logic [      5:0] mem_rid,
  input  logic [DataW-1:0] mem_rdata,
  input  logic [      1:0] mem_rresp,
  input  logic             mem_rlast,
  input  logic             mem_rvalid,
  output logic             mem_rready,
  output logic [      5:0] mem_awid,
  output logic [     63:0] mem_awaddr,
  output logic [      7:0] mem_awlen,
  output logic             mem_awvalid,
  input  logic             mem_awready,
  output logic [DataW-1:0] mem_wdata,
  output logic [StrbW-1:0] mem_wstrb,
  output logic             mem_wlast,
  output logic             mem_wvalid,
  input  logic             mem_wready,
  input  logic [      5:0] mem_bid,
  input  logic [      1:0] mem_bresp,
  input  logic             mem_bvalid,
  output logic             mem_bready,
  input  logic [     63:0] base_i,
  input  logic [     63:0] bytes_i,
  input  logic [     31:0] rows_i,
  input  logic [     31:0] cols_i,
  input  logic             start_i,
  output logic             done_o,
  output logic [     31:0] errors_o,
  output logic [     63:0] cycles_o,
  output logic             irq_o
);

  axi_ax_t ar, aw;
  axi_w_t w;

  nw_app u_app (
    .mem_ar_o      (ar),
    .mem_ar_valid_o(mem_arvalid),
    .mem_ar_ready_i(mem_arready),
    .mem_r_i       ({mem_rid, mem_rresp, mem_rlast, mem_rdata}),
    .mem_r_valid_i (mem_rvalid),
    .mem_r_ready_o (mem_rready),
    .mem_aw_o      (aw),
    .mem_aw_valid_o(mem_awvalid),
    .mem_aw_ready_i(mem_awready),
    .mem_w_o       (w),
    .mem_w_valid_o (mem_wvalid),
    .mem_w_ready_i (mem_wready),
    .mem_b_i       ({mem_bid, mem_bresp}),
    .mem_b_valid_i (mem_bvalid),
    .mem_b_ready_o (mem_bready),
    .*
  );

  assign {mem_arid, mem_araddr, mem_arlen} = {ar.id, ar.addr, ar.len};
  assign {mem_awid, mem_awaddr, mem_awlen} = {aw.id, aw.addr, aw.len};
  assign {mem_wdata, mem_wstrb, mem_wlast} = {w.data, w.strb, w.last};

  // Rules that the shell's guard checks of every burst, besides 4 KiB and WLAST.
  always_ff @(posedge clk_i) begin
    if (rst_ni && mem_arvalid) assert (ar.burst == 2'b01 && ar.size == 3'(BeatLog2));
    if (rst_ni && mem_awvalid) assert (aw.burst == 2'b01 && aw.size == 3'(BeatLog2));
  end

endmodule
