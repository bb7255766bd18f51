// SPDX-License-Identifier: Apache-2.0
//
// The whole shell: host memory (u_host) and DRAM (gen_chan[c].u_mem) are played by the test, and so is the memory port of each app
// (gen_slot[s].u_app). The streams of each app are a loop. The shell's clock stops while it says that it is quiet.

module via_shell_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [        19:0] axil_awaddr,
  input  logic                axil_awvalid,
  output logic                axil_awready,
  input  logic [        31:0] axil_wdata,
  input  logic [         3:0] axil_wstrb,
  input  logic                axil_wvalid,
  output logic                axil_wready,
  output logic [         1:0] axil_bresp,
  output logic                axil_bvalid,
  input  logic                axil_bready,
  input  logic [        19:0] axil_araddr,
  input  logic                axil_arvalid,
  output logic                axil_arready,
  output logic [        31:0] axil_rdata,
  output logic [         1:0] axil_rresp,
  output logic                axil_rvalid,
  input  logic                axil_rready,
  output logic                msix_valid,
  output logic [         7:0] msix_vector,
  // functions: accesses, resets, interrupts; the board's port of each is a loop
  input  logic                fn_valid,
  input  logic [        60:0] fn_req,
  output logic                fn_rvalid,
  output logic [        31:0] fn_rdata,
  input  logic [     NumFn:1] fn_flr,
  output logic [     NumFn:1] fn_flr_busy,
  input  logic [     NumFn:1] fn_bus_master,
  output logic                fn_msix_valid,
  output logic [         3:0] fn_msix_fn,
  output logic [         7:0] fn_msix_vector,
  input  logic [NumSlots-1:0] loaded,
  output logic [NumSlots-1:0] slot_rst_n,
  output logic                stopped,
  output logic                quiet_o
);

  localparam int unsigned NS = NumStreams;

  logic [63:0] time_q;
  always_ff @(posedge clk_i) time_q <= rst_ni ? time_q + 1'b1 : '0;

  axi_ax_t h_ar;
  axi_ax_t h_aw;
  axi_r_t  h_r;
  axi_w_t  h_w;
  axi_b_t  h_b;
  logic h_ar_valid, h_ar_ready;
  logic h_aw_valid, h_aw_ready;
  logic h_r_valid, h_r_ready;
  logic h_w_valid, h_w_ready;
  logic h_b_valid, h_b_ready;

  logic [63:0] mem_araddr[NumChan], mem_awaddr[NumChan];
  logic [7:0] mem_arlen[NumChan], mem_awlen[NumChan];
  logic mem_arvalid[NumChan], mem_arready[NumChan], mem_rlast[NumChan], mem_rvalid[NumChan], mem_rready[NumChan];
  logic mem_awvalid[NumChan], mem_awready[NumChan], mem_wlast[NumChan], mem_wvalid[NumChan], mem_wready[NumChan];
  logic mem_bvalid[NumChan], mem_bready[NumChan];
  logic [DataW-1:0] mem_rdata[NumChan], mem_wdata[NumChan];
  logic [StrbW-1:0] mem_wstrb[NumChan];
  logic [1:0] mem_rresp[NumChan], mem_bresp[NumChan];

  logic [NumChan-1:0] chan_in;
  for (genvar c = 0; c < NumChan; c++) begin : gen_chan
    axi_ax_t m_ar;
    axi_ax_t m_aw;
    axi_r_t  m_r;
    axi_w_t  m_w;
    axi_b_t  m_b;
    logic m_ar_valid, m_ar_ready;
    logic m_aw_valid, m_aw_ready;
    logic m_r_valid, m_r_ready;
    logic m_w_valid, m_w_ready;
    logic m_b_valid, m_b_ready;
    assign m_ar = '{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: mem_arlen[c], addr: mem_araddr[c]};
    assign m_aw = '{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: mem_awlen[c], addr: mem_awaddr[c]};
    assign m_w = '{last: mem_wlast[c], strb: mem_wstrb[c], data: mem_wdata[c]};
    assign {m_ar_valid, m_aw_valid, m_w_valid, m_r_ready, m_b_ready} = {
      mem_arvalid[c], mem_awvalid[c], mem_wvalid[c], mem_rready[c], mem_bready[c]
    };
    assign {mem_arready[c], mem_awready[c], mem_wready[c], mem_rvalid[c], mem_bvalid[c]} = {
      m_ar_ready, m_aw_ready, m_w_ready, m_r_valid, m_b_valid
    };
    assign {mem_rresp[c], mem_rlast[c], mem_rdata[c], mem_bresp[c]} = {m_r.resp, m_r.last, m_r.data, m_b.resp};
    assign chan_in[c] = mem_rvalid[c] || mem_bvalid[c];
    via_tb_sub u_mem (
      .clk_i,
      .rst_ni,
      .s_ar_i(m_ar),
      .s_ar_valid_i(m_ar_valid),
      .s_ar_ready_o(m_ar_ready),
      .s_r_o(m_r),
      .s_r_valid_o(m_r_valid),
      .s_r_ready_i(m_r_ready),
      .s_aw_i(m_aw),
      .s_aw_valid_i(m_aw_valid),
      .s_aw_ready_o(m_aw_ready),
      .s_w_i(m_w),
      .s_w_valid_i(m_w_valid),
      .s_w_ready_o(m_w_ready),
      .s_b_o(m_b),
      .s_b_valid_o(m_b_valid),
      .s_b_ready_i(m_b_ready)
    );
  end

  via_tb_sub u_host (
    .clk_i,
    .rst_ni,
    .s_ar_i(h_ar),
    .s_ar_valid_i(h_ar_valid),
    .s_ar_ready_o(h_ar_ready),
    .s_r_o(h_r),
    .s_r_valid_o(h_r_valid),
    .s_r_ready_i(h_r_ready),
    .s_aw_i(h_aw),
    .s_aw_valid_i(h_aw_valid),
    .s_aw_ready_o(h_aw_ready),
    .s_w_i(h_w),
    .s_w_valid_i(h_w_valid),
    .s_w_ready_o(h_w_ready),
    .s_b_o(h_b),
    .s_b_valid_o(h_b_valid),
    .s_b_ready_i(h_b_ready)
  );

  logic rst_n[NumSlots];
  logic [NS-1:0] s_valid[NumSlots];
  logic [NS-1:0] s_ready[NumSlots];
  logic [NS*DataW-1:0] s_data[NumSlots];
  logic [NS*StrbW-1:0] s_keep[NumSlots];
  logic [NS-1:0] s_last[NumSlots];
  logic [NS*8-1:0] s_id[NumSlots];
  logic [NS-1:0] m_valid[NumSlots];
  logic [NS-1:0] m_ready[NumSlots];
  logic [NS*DataW-1:0] m_data[NumSlots];
  logic [NS*StrbW-1:0] m_keep[NumSlots];
  logic [NS-1:0] m_last[NumSlots];
  logic [NS*8-1:0] m_id[NumSlots];
  logic [IdW-1:0] arid[NumSlots];
  logic [VaW-1:0] araddr[NumSlots];
  logic [7:0] arlen[NumSlots];
  logic [2:0] arsize[NumSlots];
  logic [1:0] arburst[NumSlots];
  logic arvalid[NumSlots];
  logic arready[NumSlots];
  logic [IdW-1:0] rid[NumSlots];
  logic [DataW-1:0] rdata[NumSlots];
  logic [1:0] rresp[NumSlots];
  logic rlast[NumSlots];
  logic rvalid[NumSlots];
  logic rready[NumSlots];
  logic [IdW-1:0] awid[NumSlots];
  logic [VaW-1:0] awaddr[NumSlots];
  logic [7:0] awlen[NumSlots];
  logic [2:0] awsize[NumSlots];
  logic [1:0] awburst[NumSlots];
  logic awvalid[NumSlots];
  logic awready[NumSlots];
  logic [DataW-1:0] wdata[NumSlots];
  logic [StrbW-1:0] wstrb[NumSlots];
  logic wlast[NumSlots];
  logic wvalid[NumSlots];
  logic wready[NumSlots];
  logic [IdW-1:0] bid[NumSlots];
  logic [1:0] bresp[NumSlots];
  logic bvalid[NumSlots];
  logic bready[NumSlots];
  logic reg_valid[NumSlots];
  logic reg_write[NumSlots];
  logic [11:0] reg_addr[NumSlots];
  logic [31:0] reg_wdata[NumSlots];
  logic reg_rvalid_q[NumSlots];
  logic [31:0] reg_rdata_q[NumSlots];
  logic reg_err[NumSlots];
  logic irq[NumSlots];
  logic busy[NumSlots];

  logic [NumSlots-1:0][3+NS:0] slot_in;
  logic [NumSlots-1:0] reg_q;
  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    axi_ax_t ar, aw;
    axi_w_t w;
    assign slot_rst_n[s] = rst_n[s];
    via_tb_mgr u_app (
      .clk_i,
      .rst_ni(rst_ni && rst_n[s]),
      .m_ar_o(ar),
      .m_ar_valid_o(arvalid[s]),
      .m_ar_ready_i(arready[s]),
      .m_r_i('{id: rid[s], resp: axi_resp_e'(rresp[s]), last: rlast[s], data: rdata[s]}),
      .m_r_valid_i(rvalid[s]),
      .m_r_ready_o(rready[s]),
      .m_aw_o(aw),
      .m_aw_valid_o(awvalid[s]),
      .m_aw_ready_i(awready[s]),
      .m_w_o(w),
      .m_w_valid_o(wvalid[s]),
      .m_w_ready_i(wready[s]),
      .m_b_i('{id: bid[s], resp: axi_resp_e'(bresp[s])}),
      .m_b_valid_i(bvalid[s]),
      .m_b_ready_o(bready[s])
    );
    assign {arid[s], arburst[s], arsize[s], arlen[s], araddr[s]} = {ar.id, ar.burst, ar.size, ar.len, ar.addr[VaW-1:0]};
    assign {awid[s], awburst[s], awsize[s], awlen[s], awaddr[s]} = {aw.id, aw.burst, aw.size, aw.len, aw.addr[VaW-1:0]};
    assign {wlast[s], wstrb[s], wdata[s]} = w;
    for (genvar k = 0; k < NS; k++) begin : gen_loop
      strm_t m;
      via_slice #(
        .T(strm_t)
      ) u_loop (
        .clk_i,
        .rst_ni   (rst_ni && rst_n[s]),
        .s_i      ('{id: s_id[s][k*8+:8], last: s_last[s][k], keep: s_keep[s][k*StrbW+:StrbW], data: s_data[s][k*DataW+:DataW]}),
        .s_valid_i(s_valid[s][k]),
        .s_ready_o(s_ready[s][k]),
        .m_o      (m),
        .m_valid_o(m_valid[s][k]),
        .m_ready_i(m_ready[s][k])
      );
      assign {m_id[s][k*8+:8], m_last[s][k], m_keep[s][k*StrbW+:StrbW], m_data[s][k*DataW+:DataW]} = m;
    end
    // One register: reads what was written, whatever the address.
    always_ff @(posedge clk_i) begin
      reg_rvalid_q[s] <= reg_valid[s] && !reg_rvalid_q[s] && !reg_q[s];
      reg_q[s] <= reg_valid[s];
      if (reg_valid[s] && reg_write[s]) reg_rdata_q[s] <= reg_wdata[s] + 32'(reg_addr[s]);
    end
    assign {reg_err[s], irq[s], busy[s]} = '0;
    assign slot_in[s] = {arvalid[s], awvalid[s], wvalid[s], m_valid[s], reg_rvalid_q[s]};
  end

  // The board's ports: what a function sends comes back to it.
  logic b_tx_valid[NumFn+1], b_tx_ready[NumFn+1], b_rx_valid[NumFn+1], b_rx_ready[NumFn+1];
  strm_t b_tx[NumFn+1], b_rx[NumFn+1];
  logic [DataW-1:0] b_tx_data[NumFn+1], b_rx_data[NumFn+1];
  logic [StrbW-1:0] b_tx_keep[NumFn+1], b_rx_keep[NumFn+1];
  logic b_tx_last[NumFn+1], b_rx_last[NumFn+1];
  logic [7:0] b_tx_id[NumFn+1], b_rx_id[NumFn+1];
  logic [NumFn:0] brd_in;
  for (genvar f = 0; f <= NumFn; f++) begin : gen_board
    assign b_tx[f] = '{id: b_tx_id[f], last: b_tx_last[f], keep: b_tx_keep[f], data: b_tx_data[f]};
    assign {b_rx_id[f], b_rx_last[f], b_rx_keep[f], b_rx_data[f]} = b_rx[f];
    assign brd_in[f] = b_rx_valid[f];
    via_slice #(
      .T(strm_t)
    ) u_loop (
      .clk_i,
      .rst_ni,
      .s_i      (b_tx[f]),
      .s_valid_i(b_tx_valid[f]),
      .s_ready_o(b_tx_ready[f]),
      .m_o      (b_rx[f]),
      .m_valid_o(b_rx_valid[f]),
      .m_ready_i(b_rx_ready[f])
    );
  end

  logic clk;
  logic [(5+NS)*NumSlots+NumChan+3*NumFn+8:0] inputs;
  assign inputs = {
    brd_in,
    fn_valid,
    fn_flr,
    fn_bus_master,
    loaded,
    slot_in,
    chan_in,
    h_r_valid,
    h_b_valid,
    axil_awvalid,
    axil_wvalid,
    axil_arvalid,
    axil_bready,
    axil_rready
  };
  via_tb_gate #(
    .W($bits(inputs))
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (quiet_o),
    .inputs_i(inputs),
    .clk_o   (clk)
  );
  assign stopped = !u_gate.run;

  via_shell u_dut (
    .clk_i(clk),
    .rst_ni,
    .time_i(time_q),
    .chan_mib_i(32'd16),
    .clk_khz_i(32'd250000),
    .axil_awaddr_i(axil_awaddr),
    .axil_awvalid_i(axil_awvalid),
    .axil_awready_o(axil_awready),
    .axil_wdata_i(axil_wdata),
    .axil_wstrb_i(axil_wstrb),
    .axil_wvalid_i(axil_wvalid),
    .axil_wready_o(axil_wready),
    .axil_bresp_o(axil_bresp),
    .axil_bvalid_o(axil_bvalid),
    .axil_bready_i(axil_bready),
    .axil_araddr_i(axil_araddr),
    .axil_arvalid_i(axil_arvalid),
    .axil_arready_o(axil_arready),
    .axil_rdata_o(axil_rdata),
    .axil_rresp_o(axil_rresp),
    .axil_rvalid_o(axil_rvalid),
    .axil_rready_i(axil_rready),
    .host_arid_o(h_ar.id),
    .host_araddr_o(h_ar.addr),
    .host_arlen_o(h_ar.len),
    .host_arvalid_o(h_ar_valid),
    .host_arready_i(h_ar_ready),
    .host_rid_i(h_r.id),
    .host_rdata_i(h_r.data),
    .host_rresp_i(h_r.resp),
    .host_rlast_i(h_r.last),
    .host_rvalid_i(h_r_valid),
    .host_rready_o(h_r_ready),
    .host_awid_o(h_aw.id),
    .host_awaddr_o(h_aw.addr),
    .host_awlen_o(h_aw.len),
    .host_awvalid_o(h_aw_valid),
    .host_awready_i(h_aw_ready),
    .host_wdata_o(h_w.data),
    .host_wstrb_o(h_w.strb),
    .host_wlast_o(h_w.last),
    .host_wvalid_o(h_w_valid),
    .host_wready_i(h_w_ready),
    .host_bid_i(h_b.id),
    .host_bresp_i(h_b.resp),
    .host_bvalid_i(h_b_valid),
    .host_bready_o(h_b_ready),
    .msix_valid_o(msix_valid),
    .msix_vector_o(msix_vector),
    .msix_ready_i(1'b1),
    .fn_valid_i(fn_valid),
    .fn_fn_i(fn_req[60:57]),
    .fn_cfg_i(fn_req[56]),
    .fn_bar_i(fn_req[55:53]),
    .fn_write_i(fn_req[52]),
    .fn_addr_i(fn_req[51:36]),
    .fn_strb_i(fn_req[35:32]),
    .fn_wdata_i(fn_req[31:0]),
    .fn_rvalid_o(fn_rvalid),
    .fn_rdata_o(fn_rdata),
    .fn_flr_i(fn_flr),
    .fn_flr_busy_o(fn_flr_busy),
    .fn_bus_master_i(fn_bus_master),
    .fn_msix_valid_o(fn_msix_valid),
    .fn_msix_fn_o(fn_msix_fn),
    .fn_msix_vector_o(fn_msix_vector),
    .fn_msix_ready_i(1'b1),
    .brd_tx_valid_o(b_tx_valid),
    .brd_tx_ready_i(b_tx_ready),
    .brd_tx_data_o(b_tx_data),
    .brd_tx_keep_o(b_tx_keep),
    .brd_tx_last_o(b_tx_last),
    .brd_tx_id_o(b_tx_id),
    .brd_rx_valid_i(b_rx_valid),
    .brd_rx_ready_o(b_rx_ready),
    .brd_rx_data_i(b_rx_data),
    .brd_rx_keep_i(b_rx_keep),
    .brd_rx_last_i(b_rx_last),
    .brd_rx_id_i(b_rx_id),
    .mem_araddr_o(mem_araddr),
    .mem_arlen_o(mem_arlen),
    .mem_arvalid_o(mem_arvalid),
    .mem_arready_i(mem_arready),
    .mem_rdata_i(mem_rdata),
    .mem_rresp_i(mem_rresp),
    .mem_rlast_i(mem_rlast),
    .mem_rvalid_i(mem_rvalid),
    .mem_rready_o(mem_rready),
    .mem_awaddr_o(mem_awaddr),
    .mem_awlen_o(mem_awlen),
    .mem_awvalid_o(mem_awvalid),
    .mem_awready_i(mem_awready),
    .mem_wdata_o(mem_wdata),
    .mem_wstrb_o(mem_wstrb),
    .mem_wlast_o(mem_wlast),
    .mem_wvalid_o(mem_wvalid),
    .mem_wready_i(mem_wready),
    .mem_bresp_i(mem_bresp),
    .mem_bvalid_i(mem_bvalid),
    .mem_bready_o(mem_bready),
    .icap_valid_o(),
    .icap_data_o(),
    .icap_slot_o(),
    .icap_start_o(),
    .icap_end_o(),
    .icap_ready_i(1'b1),
    .icap_done_i(1'b0),
    .icap_status_i(8'h0),
    .sysmon_kind_i(4'h2),
    .sysmon_full_i(32'd0),
    .sysmon_en_o(),
    .sysmon_addr_o(),
    .sysmon_data_i(16'h0),
    .sysmon_rdy_i(1'b0),
    .slot_loaded_i(loaded),
    .slot_rst_no(rst_n),
    .slot_s_valid_o(s_valid),
    .slot_s_ready_i(s_ready),
    .slot_s_data_o(s_data),
    .slot_s_keep_o(s_keep),
    .slot_s_last_o(s_last),
    .slot_s_id_o(s_id),
    .slot_m_valid_i(m_valid),
    .slot_m_ready_o(m_ready),
    .slot_m_data_i(m_data),
    .slot_m_keep_i(m_keep),
    .slot_m_last_i(m_last),
    .slot_m_id_i(m_id),
    .slot_arid_i(arid),
    .slot_araddr_i(araddr),
    .slot_arlen_i(arlen),
    .slot_arsize_i(arsize),
    .slot_arburst_i(arburst),
    .slot_arvalid_i(arvalid),
    .slot_arready_o(arready),
    .slot_rid_o(rid),
    .slot_rdata_o(rdata),
    .slot_rresp_o(rresp),
    .slot_rlast_o(rlast),
    .slot_rvalid_o(rvalid),
    .slot_rready_i(rready),
    .slot_awid_i(awid),
    .slot_awaddr_i(awaddr),
    .slot_awlen_i(awlen),
    .slot_awsize_i(awsize),
    .slot_awburst_i(awburst),
    .slot_awvalid_i(awvalid),
    .slot_awready_o(awready),
    .slot_wdata_i(wdata),
    .slot_wstrb_i(wstrb),
    .slot_wlast_i(wlast),
    .slot_wvalid_i(wvalid),
    .slot_wready_o(wready),
    .slot_bid_o(bid),
    .slot_bresp_o(bresp),
    .slot_bvalid_o(bvalid),
    .slot_bready_i(bready),
    .slot_reg_valid_o(reg_valid),
    .slot_reg_write_o(reg_write),
    .slot_reg_addr_o(reg_addr),
    .slot_reg_wdata_o(reg_wdata),
    .slot_reg_rvalid_i(reg_rvalid_q),
    .slot_reg_rdata_i(reg_rdata_q),
    .slot_reg_err_i(reg_err),
    .slot_irq_i(irq),
    .slot_busy_i(busy),
    .quiet_o
  );
  assign {h_ar.burst, h_ar.size, h_aw.burst, h_aw.size} = {2{BurstIncr, 3'(BeatLog2)}};

endmodule
