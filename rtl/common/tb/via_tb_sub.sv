// SPDX-License-Identifier: Apache-2.0
//
// An AXI subordinate driven by a test. A memory model of cocotbext-axi or via_tb.py attaches to the variables `axi_*` of this scope (prefix
// `axi`); the ports are the structs of the shell. Checks the rules that every request of the shell must obey.

module via_tb_sub
  import via_pkg::*;
(
  input  logic    clk_i,
  input  logic    rst_ni,
  input  axi_ax_t s_ar_i,
  input  logic    s_ar_valid_i,
  output logic    s_ar_ready_o,
  output axi_r_t  s_r_o,
  output logic    s_r_valid_o,
  input  logic    s_r_ready_i,
  input  axi_ax_t s_aw_i,
  input  logic    s_aw_valid_i,
  output logic    s_aw_ready_o,
  input  axi_w_t  s_w_i,
  input  logic    s_w_valid_i,
  output logic    s_w_ready_o,
  output axi_b_t  s_b_o,
  output logic    s_b_valid_o,
  input  logic    s_b_ready_i
);

  // Read by the test.
  /* verilator lint_off UNUSEDSIGNAL */
  logic [IdW-1:0] axi_arid, axi_awid;
  logic [AddrW-1:0] axi_araddr, axi_awaddr;
  logic [7:0] axi_arlen, axi_awlen;
  logic [2:0] axi_arsize, axi_awsize;
  logic [1:0] axi_arburst, axi_awburst;
  logic axi_arvalid, axi_awvalid, axi_wvalid, axi_wlast, axi_rready, axi_bready;
  logic [DataW-1:0] axi_wdata;
  logic [StrbW-1:0] axi_wstrb;
  /* verilator lint_on UNUSEDSIGNAL */
  // Written by the test.
  /* verilator lint_off UNDRIVEN */
  logic axi_arready, axi_awready, axi_wready, axi_rvalid, axi_rlast, axi_bvalid;
  logic [IdW-1:0] axi_rid, axi_bid;
  logic [1:0] axi_rresp, axi_bresp;
  logic [DataW-1:0] axi_rdata;
  /* verilator lint_on UNDRIVEN */

  assign {axi_arid, axi_arburst, axi_arsize, axi_arlen, axi_araddr} = s_ar_i;
  assign axi_arvalid = s_ar_valid_i;
  assign s_ar_ready_o = axi_arready;
  assign s_r_o = '{id: axi_rid, resp: axi_resp_e'(axi_rresp), last: axi_rlast, data: axi_rdata};
  assign s_r_valid_o = axi_rvalid;
  assign axi_rready = s_r_ready_i;
  assign {axi_awid, axi_awburst, axi_awsize, axi_awlen, axi_awaddr} = s_aw_i;
  assign axi_awvalid = s_aw_valid_i;
  assign s_aw_ready_o = axi_awready;
  assign {axi_wlast, axi_wstrb, axi_wdata} = s_w_i;
  assign axi_wvalid = s_w_valid_i;
  assign s_w_ready_o = axi_wready;
  assign s_b_o = '{id: axi_bid, resp: axi_resp_e'(axi_bresp)};
  assign s_b_valid_o = axi_bvalid;
  assign axi_bready = s_b_ready_i;

  logic ar_wait_q, aw_wait_q, w_wait_q;
  axi_ax_t ar_q, aw_q;
  axi_w_t w_q;
  always_ff @(posedge clk_i) begin
    ar_wait_q <= rst_ni && s_ar_valid_i && !s_ar_ready_o;
    aw_wait_q <= rst_ni && s_aw_valid_i && !s_aw_ready_o;
    w_wait_q <= rst_ni && s_w_valid_i && !s_w_ready_o;
    ar_q <= s_ar_i;
    aw_q <= s_aw_i;
    w_q <= s_w_i;
    if (rst_ni) begin
      assert (!ar_wait_q || s_ar_valid_i && s_ar_i == ar_q)
      else $error("AR dropped or changed");
      assert (!aw_wait_q || s_aw_valid_i && s_aw_i == aw_q)
      else $error("AW dropped or changed");
      assert (!w_wait_q || s_w_valid_i && s_w_i == w_q)
      else $error("W dropped or changed");
      assert (!s_ar_valid_i || s_ar_i.burst == BurstIncr && s_ar_i.size == 3'(BeatLog2))
      else $error("AR is no full-width INCR burst");
      assert (!s_aw_valid_i || s_aw_i.burst == BurstIncr && s_aw_i.size == 3'(BeatLog2))
      else $error("AW is no full-width INCR burst");
    end
  end

endmodule
