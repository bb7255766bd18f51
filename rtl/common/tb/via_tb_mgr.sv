// SPDX-License-Identifier: Apache-2.0
//
// An AXI manager driven by a test. A bus model of cocotbext-axi or via_tb.py attaches to the variables `axi_*` of this scope (prefix
// `axi`); the ports are the structs of the shell.

module via_tb_mgr
  import via_pkg::*;
(
  input  logic    clk_i,
  input  logic    rst_ni,
  output axi_ax_t m_ar_o,
  output logic    m_ar_valid_o,
  input  logic    m_ar_ready_i,
  input  axi_r_t  m_r_i,
  input  logic    m_r_valid_i,
  output logic    m_r_ready_o,
  output axi_ax_t m_aw_o,
  output logic    m_aw_valid_o,
  input  logic    m_aw_ready_i,
  output axi_w_t  m_w_o,
  output logic    m_w_valid_o,
  input  logic    m_w_ready_i,
  input  axi_b_t  m_b_i,
  input  logic    m_b_valid_i,
  output logic    m_b_ready_o
);

  // Written by the test.
  /* verilator lint_off UNDRIVEN */
  logic [IdW-1:0] axi_arid, axi_awid;
  logic [AddrW-1:0] axi_araddr, axi_awaddr;
  logic [7:0] axi_arlen, axi_awlen;
  logic [2:0] axi_arsize, axi_awsize;
  logic [1:0] axi_arburst, axi_awburst;
  logic axi_arvalid, axi_awvalid, axi_wvalid, axi_wlast, axi_rready, axi_bready;
  logic [DataW-1:0] axi_wdata;
  logic [StrbW-1:0] axi_wstrb;
  /* verilator lint_on UNDRIVEN */
  // Read by the test.
  /* verilator lint_off UNUSEDSIGNAL */
  logic axi_arready, axi_awready, axi_wready, axi_rvalid, axi_rlast, axi_bvalid;
  logic [IdW-1:0] axi_rid, axi_bid;
  logic [1:0] axi_rresp, axi_bresp;
  logic [DataW-1:0] axi_rdata;
  /* verilator lint_on UNUSEDSIGNAL */

  assign m_ar_o = '{id: axi_arid, burst: axi_arburst, size: axi_arsize, len: axi_arlen, addr: axi_araddr};
  assign m_ar_valid_o = axi_arvalid;
  assign axi_arready = m_ar_ready_i;
  assign {axi_rid, axi_rresp, axi_rlast, axi_rdata} = m_r_i;
  assign axi_rvalid = m_r_valid_i;
  assign m_r_ready_o = axi_rready;
  assign m_aw_o = '{id: axi_awid, burst: axi_awburst, size: axi_awsize, len: axi_awlen, addr: axi_awaddr};
  assign m_aw_valid_o = axi_awvalid;
  assign axi_awready = m_aw_ready_i;
  assign m_w_o = '{last: axi_wlast, strb: axi_wstrb, data: axi_wdata};
  assign m_w_valid_o = axi_wvalid;
  assign axi_wready = m_w_ready_i;
  assign {axi_bid, axi_bresp} = m_b_i;
  assign axi_bvalid = m_b_valid_i;
  assign m_b_ready_o = axi_bready;

  // Rules that every response must obey.
  logic r_wait_q, b_wait_q;
  axi_r_t r_q;
  axi_b_t b_q;
  always_ff @(posedge clk_i) begin
    r_wait_q <= rst_ni && m_r_valid_i && !m_r_ready_o;
    b_wait_q <= rst_ni && m_b_valid_i && !m_b_ready_o;
    r_q <= m_r_i;
    b_q <= m_b_i;
    if (rst_ni) begin
      assert (!r_wait_q || m_r_valid_i && m_r_i == r_q)
      else $error("R dropped or changed");
      assert (!b_wait_q || m_b_valid_i && m_b_i == b_q)
      else $error("B dropped or changed");
    end
  end

endmodule
