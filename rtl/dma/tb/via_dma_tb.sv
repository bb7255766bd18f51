// SPDX-License-Identifier: Apache-2.0
//
// via_dma with flat ports.

module via_dma_tb
  import via_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,
  // {len, addr1, addr0, tag, op}
  input logic [199:0] cmd[NumSlots],
  input logic [NumSlots-1:0] cmd_valid,
  output logic [NumSlots-1:0] cmd_ready,
  // {slot, bytes, tag, status, op}
  output logic [87:0] cpl,
  output logic cpl_valid,
  input logic cpl_ready,
  input logic [NumSlots-1:0] abort_i,
  input logic [4*NumSlots-1:0] weights,  // of each slot; 0 stands for 1
  input logic [NumSlots-1:0] goes_first,
  output logic [IdW-1:0] host_arid,
  output logic [AddrW-1:0] host_araddr,
  output logic [7:0] host_arlen,
  output logic [2:0] host_arsize,
  output logic [1:0] host_arburst,
  output logic host_arvalid,
  input logic host_arready,
  output logic [IdW-1:0] host_awid,
  output logic [AddrW-1:0] host_awaddr,
  output logic [7:0] host_awlen,
  output logic [2:0] host_awsize,
  output logic [1:0] host_awburst,
  output logic host_awvalid,
  input logic host_awready,
  input logic [IdW-1:0] host_rid,
  input logic [DataW-1:0] host_rdata,
  input logic [1:0] host_rresp,
  input logic host_rlast,
  input logic host_rvalid,
  output logic host_rready,
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
  output logic [IdW-1:0] card_awid,
  output logic [AddrW-1:0] card_awaddr,
  output logic [7:0] card_awlen,
  output logic [2:0] card_awsize,
  output logic [1:0] card_awburst,
  output logic card_awvalid,
  input logic card_awready,
  input logic [IdW-1:0] card_rid,
  input logic [DataW-1:0] card_rdata,
  input logic [1:0] card_rresp,
  input logic card_rlast,
  input logic card_rvalid,
  output logic card_rready,
  output logic [DataW-1:0] card_wdata,
  output logic [StrbW-1:0] card_wstrb,
  output logic card_wlast,
  output logic card_wvalid,
  input logic card_wready,
  input logic [IdW-1:0] card_bid,
  input logic [1:0] card_bresp,
  input logic card_bvalid,
  output logic card_bready,
  output logic idle_o
);

  cmd_t c[NumSlots];
  cpl_t done;
  logic [SlotW-1:0] slot;
  for (genvar s = 0; s < NumSlots; s++) begin : gen_cmd
    always_comb begin
      c[s] = '0;
      {c[s].len, c[s].addr1, c[s].addr0, c[s].tag, c[s].op} = cmd[s];
    end
  end
  assign cpl = {8'(slot), done.bytes, done.tag, done.status, done.op};

  axi_ax_t host_ar, host_aw;
  axi_r_t host_r;
  axi_w_t host_w;
  axi_b_t host_b;
  assign host_arid = host_ar.id;
  assign host_araddr = host_ar.addr;
  assign host_arlen = host_ar.len;
  assign host_arsize = host_ar.size;
  assign host_arburst = host_ar.burst;
  assign host_awid = host_aw.id;
  assign host_awaddr = host_aw.addr;
  assign host_awlen = host_aw.len;
  assign host_awsize = host_aw.size;
  assign host_awburst = host_aw.burst;
  assign host_r = '{id: host_rid, resp: axi_resp_e'(host_rresp), last: host_rlast, data: host_rdata};
  assign host_b = '{id: host_bid, resp: axi_resp_e'(host_bresp)};
  assign {host_wlast, host_wstrb, host_wdata} = host_w;
  axi_ax_t card_ar, card_aw;
  axi_r_t card_r;
  axi_w_t card_w;
  axi_b_t card_b;
  assign card_arid = card_ar.id;
  assign card_araddr = card_ar.addr;
  assign card_arlen = card_ar.len;
  assign card_arsize = card_ar.size;
  assign card_arburst = card_ar.burst;
  assign card_awid = card_aw.id;
  assign card_awaddr = card_aw.addr;
  assign card_awlen = card_aw.len;
  assign card_awsize = card_aw.size;
  assign card_awburst = card_aw.burst;
  assign card_r = '{id: card_rid, resp: axi_resp_e'(card_rresp), last: card_rlast, data: card_rdata};
  assign card_b = '{id: card_bid, resp: axi_resp_e'(card_bresp)};
  assign {card_wlast, card_wstrb, card_wdata} = card_w;

  logic clk;
  via_tb_gate #(
    .W(7 + NumSlots)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (idle_o && ~|{cmd_valid, cpl_valid,
                           host_arvalid, host_awvalid, host_wvalid, host_rvalid, host_bvalid,
                           card_arvalid, card_awvalid, card_wvalid, card_rvalid, card_bvalid}),
    .inputs_i({cpl_ready, host_arready, host_awready, host_wready, card_arready, card_awready, card_wready, abort_i}),
    .clk_o(clk)
  );

  logic [WeightW-1:0] weight[NumSlots];
  always_comb for (int unsigned s = 0; s < NumSlots; s++) weight[s] = (weights[4*s+:4] == '0) ? 4'd1 : weights[4*s+:4];

  via_dma u_dut (
    .clk_i(clk),
    .rst_ni,
    .chan_mib_i(32'd8),
    .weight_i(weight),
    .first_i(goes_first),
    .cmd_i(c),
    .cmd_valid_i(cmd_valid),
    .cmd_ready_o(cmd_ready),
    .cpl_o(done),
    .cpl_slot_o(slot),
    .cpl_valid_o(cpl_valid),
    .cpl_ready_i(cpl_ready),
    .abort_i,
    .m_host_ar_o(host_ar),
    .m_host_ar_valid_o(host_arvalid),
    .m_host_ar_ready_i(host_arready),
    .m_host_r_i(host_r),
    .m_host_r_valid_i(host_rvalid),
    .m_host_r_ready_o(host_rready),
    .m_host_aw_o(host_aw),
    .m_host_aw_valid_o(host_awvalid),
    .m_host_aw_ready_i(host_awready),
    .m_host_w_o(host_w),
    .m_host_w_valid_o(host_wvalid),
    .m_host_w_ready_i(host_wready),
    .m_host_b_i(host_b),
    .m_host_b_valid_i(host_bvalid),
    .m_host_b_ready_o(host_bready),
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
    .idle_o
  );

endmodule
