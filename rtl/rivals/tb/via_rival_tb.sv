// SPDX-License-Identifier: Apache-2.0
//
// via_rival with a manager of the test at the memory port of every slot (gen_slot[s].u_bus) and a memory of the test at every channel
// (gen_chan[c].u_m). The system is chosen by the test; streams are not used.

module via_rival_tb
  import via_pkg::*;
#(
  localparam int unsigned VpnW = 36
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            direct_i,
  input  logic            striped_i,
  input  logic            split_i,
  input  logic            walk_i,
  input  logic            tlb_i,
  input  logic [     3:0] step_i,
  input  logic [     5:0] page_log2_i,
  input  logic [     3:0] sets_log2_i,
  input  logic [     2:0] ways_i,
  input  logic [    15:0] miss_i,
  input  logic [VpnW-1:0] fill_i,
  input  logic            fill_valid_i,
  output logic [    31:0] misses_o       // of the first slot
);

  logic slot_arvalid[NumSlots], slot_arready[NumSlots], slot_rlast[NumSlots], slot_rvalid[NumSlots], slot_rready[NumSlots];
  logic slot_awvalid[NumSlots], slot_awready[NumSlots], slot_wlast[NumSlots], slot_wvalid[NumSlots], slot_wready[NumSlots];
  logic slot_bvalid[NumSlots], slot_bready[NumSlots];
  logic [IdW-1:0] slot_arid[NumSlots], slot_rid[NumSlots], slot_awid[NumSlots], slot_bid[NumSlots];
  logic [VaW-1:0] slot_araddr[NumSlots], slot_awaddr[NumSlots];
  logic [7:0] slot_arlen[NumSlots], slot_awlen[NumSlots];
  logic [DataW-1:0] slot_rdata[NumSlots], slot_wdata[NumSlots];
  logic [StrbW-1:0] slot_wstrb[NumSlots];
  logic [1:0] slot_rresp[NumSlots], slot_bresp[NumSlots];
  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    axi_ax_t ar, aw;
    axi_w_t w;
    via_tb_mgr u_bus (
      .clk_i,
      .rst_ni,
      .m_ar_o      (ar),
      .m_ar_valid_o(slot_arvalid[s]),
      .m_ar_ready_i(slot_arready[s]),
      .m_r_i       ('{id: slot_rid[s], resp: axi_resp_e'(slot_rresp[s]), last: slot_rlast[s], data: slot_rdata[s]}),
      .m_r_valid_i (slot_rvalid[s]),
      .m_r_ready_o (slot_rready[s]),
      .m_aw_o      (aw),
      .m_aw_valid_o(slot_awvalid[s]),
      .m_aw_ready_i(slot_awready[s]),
      .m_w_o       (w),
      .m_w_valid_o (slot_wvalid[s]),
      .m_w_ready_i (slot_wready[s]),
      .m_b_i       ('{id: slot_bid[s], resp: axi_resp_e'(slot_bresp[s])}),
      .m_b_valid_i (slot_bvalid[s]),
      .m_b_ready_o (slot_bready[s])
    );
    assign slot_arid[s]   = ar.id;
    assign slot_araddr[s] = VaW'(ar.addr);
    assign slot_arlen[s]  = ar.len;
    assign slot_awid[s]   = aw.id;
    assign slot_awaddr[s] = VaW'(aw.addr);
    assign slot_awlen[s]  = aw.len;
    assign slot_wdata[s]  = w.data;
    assign slot_wstrb[s]  = w.strb;
    assign slot_wlast[s]  = w.last;
  end

  logic mem_arvalid[NumChan], mem_arready[NumChan], mem_rlast[NumChan], mem_rvalid[NumChan], mem_rready[NumChan];
  logic mem_awvalid[NumChan], mem_awready[NumChan], mem_wlast[NumChan], mem_wvalid[NumChan], mem_wready[NumChan];
  logic mem_bvalid[NumChan], mem_bready[NumChan];
  logic [63:0] mem_araddr[NumChan], mem_awaddr[NumChan];
  logic [7:0] mem_arlen[NumChan], mem_awlen[NumChan];
  logic [DataW-1:0] mem_rdata[NumChan], mem_wdata[NumChan];
  logic [StrbW-1:0] mem_wstrb[NumChan];
  logic [1:0] mem_rresp[NumChan], mem_bresp[NumChan];
  for (genvar c = 0; c < NumChan; c++) begin : gen_chan
    axi_r_t r;
    axi_b_t b;
    via_tb_sub u_m (
      .clk_i,
      .rst_ni,
      .s_ar_i      ('{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: mem_arlen[c], addr: mem_araddr[c]}),
      .s_ar_valid_i(mem_arvalid[c]),
      .s_ar_ready_o(mem_arready[c]),
      .s_r_o       (r),
      .s_r_valid_o (mem_rvalid[c]),
      .s_r_ready_i (mem_rready[c]),
      .s_aw_i      ('{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: mem_awlen[c], addr: mem_awaddr[c]}),
      .s_aw_valid_i(mem_awvalid[c]),
      .s_aw_ready_o(mem_awready[c]),
      .s_w_i       ('{last: mem_wlast[c], strb: mem_wstrb[c], data: mem_wdata[c]}),
      .s_w_valid_i (mem_wvalid[c]),
      .s_w_ready_o (mem_wready[c]),
      .s_b_o       (b),
      .s_b_valid_o (mem_bvalid[c]),
      .s_b_ready_i (mem_bready[c])
    );
    assign mem_rdata[c] = r.data;
    assign mem_rresp[c] = r.resp;
    assign mem_rlast[c] = r.last;
    assign mem_bresp[c] = b.resp;
  end

  logic [31:0] misses[NumSlots];
  assign misses_o = misses[0];

  // Streams are idle.
  localparam logic [63:0] NoAddr[NumSlots] = '{default: '0};
  localparam logic [31:0] NoLen[NumSlots] = '{default: '0};
  localparam logic [7:0] NoId[NumSlots] = '{default: '0};
  localparam logic No[NumSlots] = '{default: '0};
  localparam logic [NumStreams-1:0] NoStream[NumSlots] = '{default: '0};
  localparam logic [NumStreams*DataW-1:0] NoData[NumSlots] = '{default: '0};
  localparam logic [NumStreams*StrbW-1:0] NoKeep[NumSlots] = '{default: '0};
  localparam logic [NumStreams*8-1:0] NoIds[NumSlots] = '{default: '0};

  via_rival #(
    .VpnW(VpnW)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .direct_i,
    .striped_i,
    .split_i,
    .walk_i,
    .tlb_i,
    .step_i,
    .page_log2_i,
    .sets_log2_i,
    .ways_i,
    .miss_i,
    .fill_i,
    .fill_valid_i   ({NumSlots{fill_valid_i}}),
    .want_ar_o      (),
    .want_aw_o      (),
    .want_ar_valid_o(),
    .want_aw_valid_o(),
    .open_i         ('1),
    .drained_o      (),
    .stream_i       ('0),
    .in_addr_i      (NoAddr),
    .in_len_i       (NoLen),
    .in_id_i        (NoId),
    .in_eop_i       (No),
    .in_valid_i     (No),
    .in_ready_o     (),
    .in_done_o      (),
    .in_status_o    (),
    .out_addr_i     (NoAddr),
    .out_len_i      (NoLen),
    .out_valid_i    (No),
    .out_ready_o    (),
    .out_done_o     (),
    .out_status_o   (),
    .out_bytes_o    (),
    .out_id_o       (),
    .misses_o       (misses),
    .slot_arvalid_i (slot_arvalid),
    .slot_arready_o (slot_arready),
    .slot_arid_i    (slot_arid),
    .slot_araddr_i  (slot_araddr),
    .slot_arlen_i   (slot_arlen),
    .slot_rid_o     (slot_rid),
    .slot_rdata_o   (slot_rdata),
    .slot_rresp_o   (slot_rresp),
    .slot_rlast_o   (slot_rlast),
    .slot_rvalid_o  (slot_rvalid),
    .slot_rready_i  (slot_rready),
    .slot_awvalid_i (slot_awvalid),
    .slot_awready_o (slot_awready),
    .slot_awid_i    (slot_awid),
    .slot_awaddr_i  (slot_awaddr),
    .slot_awlen_i   (slot_awlen),
    .slot_wdata_i   (slot_wdata),
    .slot_wstrb_i   (slot_wstrb),
    .slot_wlast_i   (slot_wlast),
    .slot_wvalid_i  (slot_wvalid),
    .slot_wready_o  (slot_wready),
    .slot_bid_o     (slot_bid),
    .slot_bresp_o   (slot_bresp),
    .slot_bvalid_o  (slot_bvalid),
    .slot_bready_i  (slot_bready),
    .slot_s_valid_o (),
    .slot_s_ready_i (NoStream),
    .slot_s_data_o  (),
    .slot_s_keep_o  (),
    .slot_s_last_o  (),
    .slot_s_id_o    (),
    .slot_m_valid_i (NoStream),
    .slot_m_ready_o (),
    .slot_m_data_i  (NoData),
    .slot_m_keep_i  (NoKeep),
    .slot_m_last_i  (NoStream),
    .slot_m_id_i    (NoIds),
    .mem_araddr_o   (mem_araddr),
    .mem_arlen_o    (mem_arlen),
    .mem_arvalid_o  (mem_arvalid),
    .mem_arready_i  (mem_arready),
    .mem_rdata_i    (mem_rdata),
    .mem_rresp_i    (mem_rresp),
    .mem_rlast_i    (mem_rlast),
    .mem_rvalid_i   (mem_rvalid),
    .mem_rready_o   (mem_rready),
    .mem_awaddr_o   (mem_awaddr),
    .mem_awlen_o    (mem_awlen),
    .mem_awvalid_o  (mem_awvalid),
    .mem_awready_i  (mem_awready),
    .mem_wdata_o    (mem_wdata),
    .mem_wstrb_o    (mem_wstrb),
    .mem_wlast_o    (mem_wlast),
    .mem_wvalid_o   (mem_wvalid),
    .mem_wready_i   (mem_wready),
    .mem_bresp_i    (mem_bresp),
    .mem_bvalid_i   (mem_bvalid),
    .mem_bready_o   (mem_bready)
  );

endmodule
