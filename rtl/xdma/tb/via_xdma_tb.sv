// SPDX-License-Identifier: Apache-2.0
//
// via_xdma with flat ports.

module via_xdma_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned Channels = 1
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,
  input logic req_valid,
  input logic req_cfg,
  input logic [2:0] req_bar,
  input logic req_write,
  input logic [15:0] req_addr,
  input logic [3:0] req_strb,
  input logic [31:0] req_wdata,
  output logic req_rvalid,
  output logic [31:0] req_rdata,
  input logic flr_i,
  output logic flr_busy_o,
  input logic bus_master_i,
  input logic [15:0] user_irq_i,
  output logic [15:0] user_irq_ack_o,
  input logic [31:0] chan_mib_i,
  output logic [44:0] user_req,  // {addr, write, wdata}
  output logic [3:0] user_slot,
  output logic user_valid,
  input logic user_rvalid,
  input logic [31:0] user_rdata,
  output logic msix_valid_o,
  output logic [7:0] msix_vector_o,
  input logic msix_ready_i,
  output logic [IdW-1:0] host_arid,
  output logic [AddrW-1:0] host_araddr,
  output logic [7:0] host_arlen,
  output logic [2:0] host_arsize,
  output logic [1:0] host_arburst,
  output logic host_arvalid,
  input logic host_arready,
  input logic [IdW-1:0] host_rid,
  input logic [DataW-1:0] host_rdata,
  input logic [1:0] host_rresp,
  input logic host_rlast,
  input logic host_rvalid,
  output logic host_rready,
  output logic [IdW-1:0] host_awid,
  output logic [AddrW-1:0] host_awaddr,
  output logic [7:0] host_awlen,
  output logic [2:0] host_awsize,
  output logic [1:0] host_awburst,
  output logic host_awvalid,
  input logic host_awready,
  output logic [DataW-1:0] host_wdata,
  output logic [StrbW-1:0] host_wstrb,
  output logic host_wlast,
  output logic host_wvalid,
  input logic host_wready,
  input logic [IdW-1:0] host_bid,
  input logic [1:0] host_bresp,
  input logic host_bvalid,
  output logic host_bready,
  output logic [IdW-1:0] card_arid,
  output logic [AddrW-1:0] card_araddr,
  output logic [7:0] card_arlen,
  output logic [2:0] card_arsize,
  output logic [1:0] card_arburst,
  output logic card_arvalid,
  input logic card_arready,
  input logic [IdW-1:0] card_rid,
  input logic [DataW-1:0] card_rdata,
  input logic [1:0] card_rresp,
  input logic card_rlast,
  input logic card_rvalid,
  output logic card_rready,
  output logic [IdW-1:0] card_awid,
  output logic [AddrW-1:0] card_awaddr,
  output logic [7:0] card_awlen,
  output logic [2:0] card_awsize,
  output logic [1:0] card_awburst,
  output logic card_awvalid,
  input logic card_awready,
  output logic [DataW-1:0] card_wdata,
  output logic [StrbW-1:0] card_wstrb,
  output logic card_wlast,
  output logic card_wvalid,
  input logic card_wready,
  input logic [IdW-1:0] card_bid,
  input logic [1:0] card_bresp,
  input logic card_bvalid,
  output logic card_bready,
  output logic still_o,
  output logic idle_o
);

  axi_ax_t host_ar, host_aw;
  axi_r_t host_r;
  axi_w_t host_w;
  axi_b_t host_b;
  assign {host_arid, host_arburst, host_arsize, host_arlen, host_araddr} = host_ar;
  assign {host_awid, host_awburst, host_awsize, host_awlen, host_awaddr} = host_aw;
  assign {host_wlast, host_wstrb, host_wdata} = host_w;
  assign host_r = '{id: host_rid, resp: axi_resp_e'(host_rresp), last: host_rlast, data: host_rdata};
  assign host_b = '{id: host_bid, resp: axi_resp_e'(host_bresp)};

  axi_ax_t card_ar, card_aw;
  axi_r_t card_r;
  axi_w_t card_w;
  axi_b_t card_b;
  assign {card_arid, card_arburst, card_arsize, card_arlen, card_araddr} = card_ar;
  assign {card_awid, card_awburst, card_awsize, card_awlen, card_awaddr} = card_aw;
  assign {card_wlast, card_wstrb, card_wdata} = card_w;
  assign card_r = '{id: card_rid, resp: axi_resp_e'(card_rresp), last: card_rlast, data: card_rdata};
  assign card_b = '{id: card_bid, resp: axi_resp_e'(card_bresp)};

  reg_req_t user;
  assign user_req = {user.addr, user.write, user.wdata};

  fn_req_t req;
  assign req = '{fn: FnW'(FnXdma), cfg: req_cfg, bar: req_bar, write: req_write, addr: req_addr, strb: req_strb, wdata: req_wdata};

  logic clk;
  via_tb_gate #(
    .W(9 + 16 + 32)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (still_o && ~|{req_valid, req_rvalid, user_valid, user_rvalid, msix_valid_o,
                            host_arvalid, host_awvalid, host_wvalid, host_rvalid, host_bvalid,
                            card_arvalid, card_awvalid, card_wvalid, card_rvalid, card_bvalid}),
    .inputs_i({
      flr_i,
      bus_master_i,
      user_irq_i,
      chan_mib_i,
      msix_ready_i,
      host_arready,
      host_awready,
      host_wready,
      card_arready,
      card_awready,
      card_wready
    }),
    .clk_o(clk)
  );

  via_xdma #(
    .Channels(Channels)
  ) u_dut (
    .clk_i(clk),
    .rst_ni,
    .time_i,
    .chan_mib_i,
    .req_i(req),
    .req_valid_i(req_valid),
    .req_rvalid_o(req_rvalid),
    .req_rdata_o(req_rdata),
    .flr_i,
    .flr_busy_o,
    .bus_master_i,
    .user_irq_i,
    .user_irq_ack_o,
    .user_req_o(user),
    .user_slot_o(user_slot),
    .user_valid_o(user_valid),
    .user_rvalid_i(user_rvalid),
    .user_rdata_i(user_rdata),
    .msix_valid_o,
    .msix_vector_o,
    .msix_ready_i,
    .m_ar_o(host_ar),
    .m_ar_valid_o(host_arvalid),
    .m_ar_ready_i(host_arready),
    .m_r_i(host_r),
    .m_r_valid_i(host_rvalid),
    .m_r_ready_o(host_rready),
    .m_aw_o(host_aw),
    .m_aw_valid_o(host_awvalid),
    .m_aw_ready_i(host_awready),
    .m_w_o(host_w),
    .m_w_valid_o(host_wvalid),
    .m_w_ready_i(host_wready),
    .m_b_i(host_b),
    .m_b_valid_i(host_bvalid),
    .m_b_ready_o(host_bready),
    .m_card_ar_o(card_ar),
    .m_card_ar_valid_o(card_arvalid),
    .m_card_ar_ready_i(card_arready),
    .m_card_r_i(card_r),
    .m_card_r_valid_i(card_rvalid),
    .m_card_r_ready_o(card_rready),
    .m_card_aw_o(card_aw),
    .m_card_aw_valid_o(card_awvalid),
    .m_card_aw_ready_i(card_awready),
    .m_card_w_o(card_w),
    .m_card_w_valid_o(card_wvalid),
    .m_card_w_ready_i(card_wready),
    .m_card_b_i(card_b),
    .m_card_b_valid_i(card_bvalid),
    .m_card_b_ready_o(card_bready),
    .still_o,
    .idle_o
  );

endmodule
