// SPDX-License-Identifier: Apache-2.0
//
// The shell: everything on the card that is not user logic. Flat ports, for a board top or a simulator (docs/interfaces.md, section 2).
// Every output comes from a register, and no output depends on an input of the same cycle.

module via_shell
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  localparam int unsigned NS = NumStreams
) (
  // Board: cycles since power-up, MiB of a DRAM channel, nominal clock in kHz.
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [        63:0] time_i,
  input  logic [        31:0] chan_mib_i,
  input  logic [        31:0] clk_khz_i,
  // BAR access, AXI4-Lite. BAR0 at 0x00000, BAR2 at 0x40000.
  input  logic [        19:0] axil_awaddr_i,
  input  logic                axil_awvalid_i,
  output logic                axil_awready_o,
  input  logic [        31:0] axil_wdata_i,
  input  logic [         3:0] axil_wstrb_i,
  input  logic                axil_wvalid_i,
  output logic                axil_wready_o,
  output logic [         1:0] axil_bresp_o,
  output logic                axil_bvalid_o,
  input  logic                axil_bready_i,
  input  logic [        19:0] axil_araddr_i,
  input  logic                axil_arvalid_i,
  output logic                axil_arready_o,
  output logic [        31:0] axil_rdata_o,
  output logic [         1:0] axil_rresp_o,
  output logic                axil_rvalid_o,
  input  logic                axil_rready_i,
  // Host memory, AXI4 manager. Answers of one id come in order.
  output logic [     IdW-1:0] host_arid_o,
  output logic [        63:0] host_araddr_o,
  output logic [         7:0] host_arlen_o,
  output logic                host_arvalid_o,
  input  logic                host_arready_i,
  input  logic [     IdW-1:0] host_rid_i,
  input  logic [   DataW-1:0] host_rdata_i,
  input  logic [         1:0] host_rresp_i,
  input  logic                host_rlast_i,
  input  logic                host_rvalid_i,
  output logic                host_rready_o,
  output logic [     IdW-1:0] host_awid_o,
  output logic [        63:0] host_awaddr_o,
  output logic [         7:0] host_awlen_o,
  output logic                host_awvalid_o,
  input  logic                host_awready_i,
  output logic [   DataW-1:0] host_wdata_o,
  output logic [   StrbW-1:0] host_wstrb_o,
  output logic                host_wlast_o,
  output logic                host_wvalid_o,
  input  logic                host_wready_i,
  input  logic [     IdW-1:0] host_bid_i,
  input  logic [         1:0] host_bresp_i,
  input  logic                host_bvalid_i,
  output logic                host_bready_o,
  // MSI-X: vector 2s = completions of slot s, 2s+1 = its events.
  output logic                msix_valid_o,
  output logic [         7:0] msix_vector_o,
  input  logic                msix_ready_i,
  // Functions beside the management function (docs/interfaces.md, section 8): accesses to their registers, resets, interrupts.
  input  logic                fn_valid_i,
  input  logic [     FnW-1:0] fn_fn_i,
  input  logic                fn_cfg_i,
  input  logic [         2:0] fn_bar_i,
  input  logic                fn_write_i,
  input  logic [        15:0] fn_addr_i,
  input  logic [         3:0] fn_strb_i,
  input  logic [        31:0] fn_wdata_i,
  output logic                fn_rvalid_o,
  output logic [        31:0] fn_rdata_o,
  input  logic [     NumFn:1] fn_flr_i,
  output logic [     NumFn:1] fn_flr_busy_o,
  input  logic [     NumFn:1] fn_bus_master_i,
  output logic                fn_msix_valid_o,
  output logic [     FnW-1:0] fn_msix_fn_o,
  output logic [         7:0] fn_msix_vector_o,
  input  logic                fn_msix_ready_i,
  // The board's ports of the functions, streams; index = function. Those of functions without a user side stay idle.
  output logic                brd_tx_valid_o   [ NumFn+1],
  input  logic                brd_tx_ready_i   [ NumFn+1],
  output logic [   DataW-1:0] brd_tx_data_o    [ NumFn+1],
  output logic [   StrbW-1:0] brd_tx_keep_o    [ NumFn+1],
  output logic                brd_tx_last_o    [ NumFn+1],
  output logic [         7:0] brd_tx_id_o      [ NumFn+1],
  input  logic                brd_rx_valid_i   [ NumFn+1],
  output logic                brd_rx_ready_o   [ NumFn+1],
  input  logic [   DataW-1:0] brd_rx_data_i    [ NumFn+1],
  input  logic [   StrbW-1:0] brd_rx_keep_i    [ NumFn+1],
  input  logic                brd_rx_last_i    [ NumFn+1],
  input  logic [         7:0] brd_rx_id_i      [ NumFn+1],
  // DRAM channels, AXI4 managers without ids; the address is within the channel.
  output logic [        63:0] mem_araddr_o     [ NumChan],
  output logic [         7:0] mem_arlen_o      [ NumChan],
  output logic                mem_arvalid_o    [ NumChan],
  input  logic                mem_arready_i    [ NumChan],
  input  logic [   DataW-1:0] mem_rdata_i      [ NumChan],
  input  logic [         1:0] mem_rresp_i      [ NumChan],
  input  logic                mem_rlast_i      [ NumChan],
  input  logic                mem_rvalid_i     [ NumChan],
  output logic                mem_rready_o     [ NumChan],
  output logic [        63:0] mem_awaddr_o     [ NumChan],
  output logic [         7:0] mem_awlen_o      [ NumChan],
  output logic                mem_awvalid_o    [ NumChan],
  input  logic                mem_awready_i    [ NumChan],
  output logic [   DataW-1:0] mem_wdata_o      [ NumChan],
  output logic [   StrbW-1:0] mem_wstrb_o      [ NumChan],
  output logic                mem_wlast_o      [ NumChan],
  output logic                mem_wvalid_o     [ NumChan],
  input  logic                mem_wready_i     [ NumChan],
  input  logic [         1:0] mem_bresp_i      [ NumChan],
  input  logic                mem_bvalid_i     [ NumChan],
  output logic                mem_bready_o     [ NumChan],
  // Configuration port: loads an app image into a slot.
  output logic                icap_valid_o,
  output logic [        31:0] icap_data_o,
  output logic [         3:0] icap_slot_o,
  output logic                icap_start_o,
  output logic                icap_end_o,
  input  logic                icap_ready_i,
  input  logic                icap_done_i,
  input  logic [         7:0] icap_status_i,
  input  logic [NumSlots-1:0] slot_loaded_i,
  // Slots: the ports of via_slot, directions exchanged. Stream k is in bits [k*W +: W].
  output logic                slot_rst_no      [NumSlots],
  output logic [      NS-1:0] slot_s_valid_o   [NumSlots],
  input  logic [      NS-1:0] slot_s_ready_i   [NumSlots],
  output logic [NS*DataW-1:0] slot_s_data_o    [NumSlots],
  output logic [NS*StrbW-1:0] slot_s_keep_o    [NumSlots],
  output logic [      NS-1:0] slot_s_last_o    [NumSlots],
  output logic [    NS*8-1:0] slot_s_id_o      [NumSlots],
  input  logic [      NS-1:0] slot_m_valid_i   [NumSlots],
  output logic [      NS-1:0] slot_m_ready_o   [NumSlots],
  input  logic [NS*DataW-1:0] slot_m_data_i    [NumSlots],
  input  logic [NS*StrbW-1:0] slot_m_keep_i    [NumSlots],
  input  logic [      NS-1:0] slot_m_last_i    [NumSlots],
  input  logic [    NS*8-1:0] slot_m_id_i      [NumSlots],
  input  logic [     IdW-1:0] slot_arid_i      [NumSlots],
  input  logic [     VaW-1:0] slot_araddr_i    [NumSlots],
  input  logic [         7:0] slot_arlen_i     [NumSlots],
  input  logic [         2:0] slot_arsize_i    [NumSlots],
  input  logic [         1:0] slot_arburst_i   [NumSlots],
  input  logic                slot_arvalid_i   [NumSlots],
  output logic                slot_arready_o   [NumSlots],
  output logic [     IdW-1:0] slot_rid_o       [NumSlots],
  output logic [   DataW-1:0] slot_rdata_o     [NumSlots],
  output logic [         1:0] slot_rresp_o     [NumSlots],
  output logic                slot_rlast_o     [NumSlots],
  output logic                slot_rvalid_o    [NumSlots],
  input  logic                slot_rready_i    [NumSlots],
  input  logic [     IdW-1:0] slot_awid_i      [NumSlots],
  input  logic [     VaW-1:0] slot_awaddr_i    [NumSlots],
  input  logic [         7:0] slot_awlen_i     [NumSlots],
  input  logic [         2:0] slot_awsize_i    [NumSlots],
  input  logic [         1:0] slot_awburst_i   [NumSlots],
  input  logic                slot_awvalid_i   [NumSlots],
  output logic                slot_awready_o   [NumSlots],
  input  logic [   DataW-1:0] slot_wdata_i     [NumSlots],
  input  logic [   StrbW-1:0] slot_wstrb_i     [NumSlots],
  input  logic                slot_wlast_i     [NumSlots],
  input  logic                slot_wvalid_i    [NumSlots],
  output logic                slot_wready_o    [NumSlots],
  output logic [     IdW-1:0] slot_bid_o       [NumSlots],
  output logic [         1:0] slot_bresp_o     [NumSlots],
  output logic                slot_bvalid_o    [NumSlots],
  input  logic                slot_bready_i    [NumSlots],
  output logic                slot_reg_valid_o [NumSlots],
  output logic                slot_reg_write_o [NumSlots],
  output logic [        11:0] slot_reg_addr_o  [NumSlots],
  output logic [        31:0] slot_reg_wdata_o [NumSlots],
  input  logic                slot_reg_rvalid_i[NumSlots],
  input  logic [        31:0] slot_reg_rdata_i [NumSlots],
  input  logic                slot_reg_err_i   [NumSlots],
  input  logic                slot_irq_i       [NumSlots],
  input  logic                slot_busy_i      [NumSlots],
  // Registered: while it is high and no input but time_i changes, a clock edge changes no register.
  output logic                quiet_o
);

  // ---------------------------------------------------------------- registers
  localparam int unsigned PageWays = 4, PageSets = 1024, HugeWays = 4, HugeSets = 256;

  slot_ctrl_t ctrl[NumSlots];
  slot_stat_t stat[NumSlots];
  logic [31:0] count[NumSlots][8];
  reg_req_t reg_req;
  logic [NumSlots-1:0] reg_valid, reg_open, reg_rvalid, reg_err, reg_timeout, load;
  logic [31:0] reg_rdata[NumSlots], app_rdata;
  // Who asks for registers of apps: the management function, XDMA.
  reg_req_t app_req[2];
  logic [3:0] app_slot[2];
  logic [1:0] app_valid, app_rvalid;
  logic app_regs_idle;

  ring_cfg_t cmd_cfg[NumSlots], ring_cfg[2*NumSlots];
  ring_idx_t cmd_tail[NumSlots], cmd_head[NumSlots];
  ring_idx_t ring_head[2*NumSlots], ring_tail[2*NumSlots], ring_used[2*NumSlots];
  logic [NumSlots-1:0] cmd_on, cmd_tail_err, cmd_bus_err;
  logic [2*NumSlots-1:0] ring_arm, ring_on, ring_err, irq;
  logic csr_idle, rest_quiet_q;

  fn_ctrl_t fn_ctrl[NumFn:1];
  logic [NumFn:1] fn_present, fn_attached;
  logic [7:0] fn_status[NumFn:1];
  fn_features_t fn_features[NumFn:1];
  logic [31:0] fn_count[NumFn:1][3];
  logic [15:0] fn_flushes[NumFn:1];

  via_csr #(
    .PageWays(PageWays),
    .PageSets(PageSets),
    .HugeWays(HugeWays),
    .HugeSets(HugeSets)
  ) u_csr (
    .clk_i,
    .rst_ni,
    .time_i,
    .chan_mib_i,
    .clk_khz_i,
    .quiet_i       (rest_quiet_q),
    .axil_awaddr_i,
    .axil_awvalid_i,
    .axil_awready_o,
    .axil_wdata_i,
    .axil_wstrb_i,
    .axil_wvalid_i,
    .axil_wready_o,
    .axil_bresp_o,
    .axil_bvalid_o,
    .axil_bready_i,
    .axil_araddr_i,
    .axil_arvalid_i,
    .axil_arready_o,
    .axil_rdata_o,
    .axil_rresp_o,
    .axil_rvalid_o,
    .axil_rready_i,
    .ctrl_o        (ctrl),
    .stat_i        (stat),
    .count_i       (count),
    .app_req_o     (app_req[0]),
    .app_slot_o    (app_slot[0]),
    .app_valid_o   (app_valid[0]),
    .app_rvalid_i  (app_rvalid[0]),
    .app_rdata_i   (app_rdata),
    .cmd_cfg_o     (cmd_cfg),
    .cmd_tail_o    (cmd_tail),
    .cmd_head_i    (cmd_head),
    .cmd_on_i      (cmd_on),
    .cmd_tail_err_i(cmd_tail_err),
    .cmd_bus_err_i (cmd_bus_err),
    .ring_cfg_o    (ring_cfg),
    .ring_head_o   (ring_head),
    .ring_arm_o    (ring_arm),
    .ring_tail_i   (ring_tail),
    .ring_on_i     (ring_on),
    .ring_err_i    (ring_err),
    .fn_ctrl_o     (fn_ctrl),
    .fn_present_i  (fn_present),
    .fn_attached_i (fn_attached),
    .fn_status_i   (fn_status),
    .fn_features_i (fn_features),
    .fn_count_i    (fn_count),
    .fn_flushes_i  (fn_flushes),
    .loaded_i      (slot_loaded_i),
    .load_o        (load),
    .icap_valid_o,
    .icap_data_o,
    .icap_slot_o,
    .icap_start_o,
    .icap_end_o,
    .icap_ready_i,
    .icap_done_i,
    .icap_status_i,
    .idle_o        (csr_idle)
  );

  via_app_regs u_app_regs (
    .clk_i,
    .rst_ni,
    .s_req_i      (app_req),
    .s_slot_i     (app_slot),
    .s_valid_i    (app_valid),
    .s_rvalid_o   (app_rvalid),
    .s_rdata_o    (app_rdata),
    .reach_i      (fn_ctrl[FnXdma].reach),
    .reg_o        (reg_req),
    .reg_valid_o  (reg_valid),
    .reg_open_i   (reg_open),
    .reg_rvalid_i (reg_rvalid),
    .reg_rdata_i  (reg_rdata),
    .reg_err_i    (reg_err),
    .reg_timeout_o(reg_timeout),
    .idle_o       (app_regs_idle)
  );

  // ---------------------------------------------------------------- rings
  // Readers of host memory: 0 command rings, 1 DMA, 2 slots (through the crossbar), 2 + f function f. Writers: 0 completion and event rings, then the same.
  localparam int unsigned Rings = 0, Dma = 1, Slots = 2, Fns = 3, NumHost = Fns + NumFn;
  axi_ax_t h_ar[NumHost], h_aw[NumHost];
  axi_r_t h_r[NumHost];
  axi_w_t h_w[NumHost];
  axi_b_t h_b[NumHost];
  logic [NumHost-1:0] h_ar_valid, h_ar_ready, h_r_valid, h_r_ready;
  logic [NumHost-1:0] h_aw_valid, h_aw_ready, h_w_valid, h_w_ready, h_b_valid, h_b_ready;

  cmd_t cmd[NumSlots], dma_cmd[NumSlots];
  cpl_t cpl[NumSlots], dma_cpl;
  evt_t evt[NumSlots];
  logic [NumSlots-1:0] cmd_valid, cmd_ready, cpl_valid, cpl_ready, evt_valid, evt_ready;
  logic [NumSlots-1:0] dma_cmd_valid, dma_cmd_ready, dma_cpl_ready, dma_abort;
  logic [SlotW-1:0] dma_cpl_slot;
  logic dma_cpl_valid;
  logic [NumSlots-1:0] cmd_err, cmd_err_info, cpl_err;
  ring_cfg_t cpl_cfg[NumSlots];
  ring_idx_t cpl_used[NumSlots];
  logic [NumSlots-1:0] cpl_done;
  logic cmdq_idle, ringw_idle, msix_idle, dma_idle, host_idle, xbar_idle;
  logic cmdq_still, ringw_still, host_still, xbar_still;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_cpl
    assign cpl_cfg[s]  = ring_cfg[2*s];
    assign cpl_used[s] = ring_used[2*s];
  end

  via_cmdq u_cmdq (
    .clk_i,
    .rst_ni,
    .cmd_cfg_i   (cmd_cfg),
    .cmd_tail_i  (cmd_tail),
    .cmd_head_o  (cmd_head),
    .on_o        (cmd_on),
    .tail_err_o  (cmd_tail_err),
    .bus_err_o   (cmd_bus_err),
    .cpl_cfg_i   (cpl_cfg),
    .cpl_used_i  (cpl_used),
    .cpl_done_i  (cpl_done),
    .err_o       (cmd_err),
    .err_info_o  (cmd_err_info),
    .m_ar_o      (h_ar[Rings]),
    .m_ar_valid_o(h_ar_valid[Rings]),
    .m_ar_ready_i(h_ar_ready[Rings]),
    .m_r_i       (h_r[Rings]),
    .m_r_valid_i (h_r_valid[Rings]),
    .m_r_ready_o (h_r_ready[Rings]),
    .cmd_o       (cmd),
    .cmd_valid_o (cmd_valid),
    .cmd_ready_i (cmd_ready),
    .still_o     (cmdq_still),
    .idle_o      (cmdq_idle)
  );

  via_ringw u_ringw (
    .clk_i,
    .rst_ni,
    .time_i,
    .cfg_i       (ring_cfg),
    .head_i      (ring_head),
    .arm_i       (ring_arm),
    .tail_o      (ring_tail),
    .used_o      (ring_used),
    .cpl_done_o  (cpl_done),
    .on_o        (ring_on),
    .err_o       (ring_err),
    .cpl_err_o   (cpl_err),
    .cpl_i       (cpl),
    .cpl_valid_i (cpl_valid),
    .cpl_ready_o (cpl_ready),
    .evt_i       (evt),
    .evt_valid_i (evt_valid),
    .evt_ready_o (evt_ready),
    .m_aw_o      (h_aw[Rings]),
    .m_aw_valid_o(h_aw_valid[Rings]),
    .m_aw_ready_i(h_aw_ready[Rings]),
    .m_w_o       (h_w[Rings]),
    .m_w_valid_o (h_w_valid[Rings]),
    .m_w_ready_i (h_w_ready[Rings]),
    .m_b_i       (h_b[Rings]),
    .m_b_valid_i (h_b_valid[Rings]),
    .m_b_ready_o (h_b_ready[Rings]),
    .irq_o       (irq),
    .still_o     (ringw_still),
    .idle_o      (ringw_idle)
  );

  via_msix #(
    .NumVec(2 * NumSlots)
  ) u_msix (
    .clk_i,
    .rst_ni,
    .set_i (irq),
    .msix_valid_o,
    .msix_vector_o,
    .msix_ready_i,
    .idle_o(msix_idle)
  );

  // ---------------------------------------------------------------- memory
  // Managers of the crossbar: slots, XDMA, then DMA. Subordinates: DRAM channels, then host memory.
  localparam int unsigned NumMgr = NumSlots + 2, XdmaMgr = NumSlots, DmaMgr = NumSlots + 1;
  axi_ax_t x_ar[NumMgr], x_aw[NumMgr], c_ar[NumChan+1], c_aw[NumChan+1];
  axi_r_t x_r[NumMgr], c_r[NumChan+1];
  axi_w_t x_w[NumMgr], c_w[NumChan+1];
  axi_b_t x_b[NumMgr], c_b[NumChan+1];
  logic [NumMgr-1:0] x_ar_valid, x_ar_ready, x_r_valid, x_r_ready, x_aw_valid, x_aw_ready, x_w_valid, x_w_ready, x_b_valid, x_b_ready;
  logic [NumChan:0] c_ar_valid, c_ar_ready, c_r_valid, c_r_ready, c_aw_valid, c_aw_ready, c_w_valid, c_w_ready, c_b_valid, c_b_ready;

  via_dma u_dma (
    .clk_i,
    .rst_ni,
    .chan_mib_i,
    .cmd_i            (dma_cmd),
    .cmd_valid_i      (dma_cmd_valid),
    .cmd_ready_o      (dma_cmd_ready),
    .cpl_o            (dma_cpl),
    .cpl_slot_o       (dma_cpl_slot),
    .cpl_valid_o      (dma_cpl_valid),
    .cpl_ready_i      (dma_cpl_ready[dma_cpl_slot]),
    .abort_i          (dma_abort),
    .m_host_ar_o      (h_ar[Dma]),
    .m_host_ar_valid_o(h_ar_valid[Dma]),
    .m_host_ar_ready_i(h_ar_ready[Dma]),
    .m_host_r_i       (h_r[Dma]),
    .m_host_r_valid_i (h_r_valid[Dma]),
    .m_host_r_ready_o (h_r_ready[Dma]),
    .m_host_aw_o      (h_aw[Dma]),
    .m_host_aw_valid_o(h_aw_valid[Dma]),
    .m_host_aw_ready_i(h_aw_ready[Dma]),
    .m_host_w_o       (h_w[Dma]),
    .m_host_w_valid_o (h_w_valid[Dma]),
    .m_host_w_ready_i (h_w_ready[Dma]),
    .m_host_b_i       (h_b[Dma]),
    .m_host_b_valid_i (h_b_valid[Dma]),
    .m_host_b_ready_o (h_b_ready[Dma]),
    .m_card_ar_o      (x_ar[DmaMgr]),
    .m_card_ar_valid_o(x_ar_valid[DmaMgr]),
    .m_card_ar_ready_i(x_ar_ready[DmaMgr]),
    .m_card_r_i       (x_r[DmaMgr]),
    .m_card_r_valid_i (x_r_valid[DmaMgr]),
    .m_card_r_ready_o (x_r_ready[DmaMgr]),
    .m_card_aw_o      (x_aw[DmaMgr]),
    .m_card_aw_valid_o(x_aw_valid[DmaMgr]),
    .m_card_aw_ready_i(x_aw_ready[DmaMgr]),
    .m_card_w_o       (x_w[DmaMgr]),
    .m_card_w_valid_o (x_w_valid[DmaMgr]),
    .m_card_w_ready_i (x_w_ready[DmaMgr]),
    .m_card_b_i       (x_b[DmaMgr]),
    .m_card_b_valid_i (x_b_valid[DmaMgr]),
    .m_card_b_ready_o (x_b_ready[DmaMgr]),
    .idle_o           (dma_idle)
  );

  via_xbar #(
    .NumMgr(NumMgr)
  ) u_xbar (
    .clk_i,
    .rst_ni,
    .s_ar_i      (x_ar),
    .s_ar_valid_i(x_ar_valid),
    .s_ar_ready_o(x_ar_ready),
    .s_r_o       (x_r),
    .s_r_valid_o (x_r_valid),
    .s_r_ready_i (x_r_ready),
    .s_aw_i      (x_aw),
    .s_aw_valid_i(x_aw_valid),
    .s_aw_ready_o(x_aw_ready),
    .s_w_i       (x_w),
    .s_w_valid_i (x_w_valid),
    .s_w_ready_o (x_w_ready),
    .s_b_o       (x_b),
    .s_b_valid_o (x_b_valid),
    .s_b_ready_i (x_b_ready),
    .m_ar_o      (c_ar),
    .m_ar_valid_o(c_ar_valid),
    .m_ar_ready_i(c_ar_ready),
    .m_r_i       (c_r),
    .m_r_valid_i (c_r_valid),
    .m_r_ready_o (c_r_ready),
    .m_aw_o      (c_aw),
    .m_aw_valid_o(c_aw_valid),
    .m_aw_ready_i(c_aw_ready),
    .m_w_o       (c_w),
    .m_w_valid_o (c_w_valid),
    .m_w_ready_i (c_w_ready),
    .m_b_i       (c_b),
    .m_b_valid_i (c_b_valid),
    .m_b_ready_o (c_b_ready),
    .still_o     (xbar_still),
    .idle_o      (xbar_idle)
  );

  assign h_ar[Slots] = c_ar[NumChan];
  assign h_ar_valid[Slots] = c_ar_valid[NumChan];
  assign c_ar_ready[NumChan] = h_ar_ready[Slots];
  assign c_r[NumChan] = h_r[Slots];
  assign c_r_valid[NumChan] = h_r_valid[Slots];
  assign h_r_ready[Slots] = c_r_ready[NumChan];
  assign h_aw[Slots] = c_aw[NumChan];
  assign h_aw_valid[Slots] = c_aw_valid[NumChan];
  assign c_aw_ready[NumChan] = h_aw_ready[Slots];
  assign h_w[Slots] = c_w[NumChan];
  assign h_w_valid[Slots] = c_w_valid[NumChan];
  assign c_w_ready[NumChan] = h_w_ready[Slots];
  assign c_b[NumChan] = h_b[Slots];
  assign c_b_valid[NumChan] = h_b_valid[Slots];
  assign h_b_ready[Slots] = c_b_ready[NumChan];

  axi_ax_t host_ar, host_aw;
  axi_w_t host_w;
  axi_r_t host_r;
  axi_b_t host_b;

  via_axi_mux #(
    .NumRd   (NumHost),
    .NumWr   (NumHost),
    .NumFirst(1),
    .Ordered (1'b1)
  ) u_host (
    .clk_i,
    .rst_ni,
    .s_ar_i      (h_ar),
    .s_ar_valid_i(h_ar_valid),
    .s_ar_ready_o(h_ar_ready),
    .s_r_o       (h_r),
    .s_r_valid_o (h_r_valid),
    .s_r_ready_i (h_r_ready),
    .s_aw_i      (h_aw),
    .s_aw_valid_i(h_aw_valid),
    .s_aw_ready_o(h_aw_ready),
    .s_w_i       (h_w),
    .s_w_valid_i (h_w_valid),
    .s_w_ready_o (h_w_ready),
    .s_b_o       (h_b),
    .s_b_valid_o (h_b_valid),
    .s_b_ready_i (h_b_ready),
    .m_ar_o      (host_ar),
    .m_ar_valid_o(host_arvalid_o),
    .m_ar_ready_i(host_arready_i),
    .m_r_i       (host_r),
    .m_r_valid_i (host_rvalid_i),
    .m_r_ready_o (host_rready_o),
    .m_aw_o      (host_aw),
    .m_aw_valid_o(host_awvalid_o),
    .m_aw_ready_i(host_awready_i),
    .m_w_o       (host_w),
    .m_w_valid_o (host_wvalid_o),
    .m_w_ready_i (host_wready_i),
    .m_b_i       (host_b),
    .m_b_valid_i (host_bvalid_i),
    .m_b_ready_o (host_bready_o),
    .still_o     (host_still),
    .idle_o      (host_idle)
  );
  assign host_arid_o = host_ar.id;
  assign host_araddr_o = host_ar.addr;
  assign host_arlen_o = host_ar.len;
  assign host_r = '{id: host_rid_i, resp: axi_resp_e'(host_rresp_i), last: host_rlast_i, data: host_rdata_i};
  assign host_awid_o = host_aw.id;
  assign host_awaddr_o = host_aw.addr;
  assign host_awlen_o = host_aw.len;
  assign host_wdata_o = host_w.data;
  assign host_wstrb_o = host_w.strb;
  assign host_wlast_o = host_w.last;
  assign host_b = '{id: host_bid_i, resp: axi_resp_e'(host_bresp_i)};

  logic [NumChan-1:0] chan_idle;
  for (genvar c = 0; c < NumChan; c++) begin : gen_chan
    via_mem_port u_port (
      .clk_i,
      .rst_ni,
      .s_ar_i       (c_ar[c]),
      .s_ar_valid_i (c_ar_valid[c]),
      .s_ar_ready_o (c_ar_ready[c]),
      .s_r_o        (c_r[c]),
      .s_r_valid_o  (c_r_valid[c]),
      .s_r_ready_i  (c_r_ready[c]),
      .s_aw_i       (c_aw[c]),
      .s_aw_valid_i (c_aw_valid[c]),
      .s_aw_ready_o (c_aw_ready[c]),
      .s_w_i        (c_w[c]),
      .s_w_valid_i  (c_w_valid[c]),
      .s_w_ready_o  (c_w_ready[c]),
      .s_b_o        (c_b[c]),
      .s_b_valid_o  (c_b_valid[c]),
      .s_b_ready_i  (c_b_ready[c]),
      .mem_araddr_o (mem_araddr_o[c]),
      .mem_arlen_o  (mem_arlen_o[c]),
      .mem_arvalid_o(mem_arvalid_o[c]),
      .mem_arready_i(mem_arready_i[c]),
      .mem_rdata_i  (mem_rdata_i[c]),
      .mem_rresp_i  (mem_rresp_i[c]),
      .mem_rlast_i  (mem_rlast_i[c]),
      .mem_rvalid_i (mem_rvalid_i[c]),
      .mem_rready_o (mem_rready_o[c]),
      .mem_awaddr_o (mem_awaddr_o[c]),
      .mem_awlen_o  (mem_awlen_o[c]),
      .mem_awvalid_o(mem_awvalid_o[c]),
      .mem_awready_i(mem_awready_i[c]),
      .mem_wdata_o  (mem_wdata_o[c]),
      .mem_wstrb_o  (mem_wstrb_o[c]),
      .mem_wlast_o  (mem_wlast_o[c]),
      .mem_wvalid_o (mem_wvalid_o[c]),
      .mem_wready_i (mem_wready_i[c]),
      .mem_bresp_i  (mem_bresp_i[c]),
      .mem_bvalid_i (mem_bvalid_i[c]),
      .mem_bready_o (mem_bready_o[c]),
      .idle_o       (chan_idle[c])
    );
  end

  // ---------------------------------------------------------------- functions
  strm_t brd_tx[FnInput:1], brd_rx[FnInput:1];
  logic [FnInput:1] brd_tx_valid, brd_tx_ready, brd_rx_valid, brd_rx_ready;
  logic [NumSlots-1:0] app_irq, fn_cut, fn_on, fn_tx_valid, fn_tx_ready, fn_rx_valid, fn_rx_ready;
  logic [FnW-1:0] fn_slot[NumSlots], fn_rx_fn[NumSlots];
  strm_t fn_tx[NumSlots], fn_rx[NumSlots];
  // The disk: requests go to all slots, valid to one.
  axi_ax_t disk_ar;
  axi_r_t disk_r[NumSlots];
  axi_ax_t disk_aw;
  axi_w_t disk_w;
  axi_b_t disk_b[NumSlots];
  logic [NumSlots-1:0] disk_flush;
  logic [NumSlots-1:0]
      disk_ar_valid,
      disk_ar_ready,
      disk_r_valid,
      disk_r_ready,
      disk_aw_valid,
      disk_aw_ready,
      disk_w_valid,
      disk_w_ready,
      disk_b_valid,
      disk_b_ready;
  // Their managers of host memory.
  axi_ax_t f_ar[NumFn];
  axi_r_t  f_r [NumFn];
  axi_ax_t f_aw[NumFn];
  axi_w_t  f_w [NumFn];
  axi_b_t  f_b [NumFn];
  logic functions_still, functions_idle;

  for (genvar f = 0; f < NumFn; f++) begin : gen_host
    assign h_ar[Fns+f] = f_ar[f];
    assign f_r[f] = h_r[Fns+f];
    assign h_aw[Fns+f] = f_aw[f];
    assign h_w[Fns+f] = f_w[f];
    assign f_b[f] = h_b[Fns+f];
  end

  for (genvar f = 0; f <= NumFn; f++) begin : gen_board
    if (f >= 1 && f <= FnInput) begin : gen_port
      assign brd_tx_valid_o[f] = brd_tx_valid[f];
      assign brd_tx_ready[f] = brd_tx_ready_i[f];
      assign {brd_tx_id_o[f], brd_tx_last_o[f], brd_tx_keep_o[f], brd_tx_data_o[f]} = brd_tx[f];
      assign brd_rx_valid[f] = brd_rx_valid_i[f];
      assign brd_rx_ready_o[f] = brd_rx_ready[f];
      assign brd_rx[f] = '{id: brd_rx_id_i[f], last: brd_rx_last_i[f], keep: brd_rx_keep_i[f], data: brd_rx_data_i[f]};
    end else begin : gen_no_port
      assign brd_tx_valid_o[f] = 1'b0;
      assign {brd_tx_id_o[f], brd_tx_last_o[f], brd_tx_keep_o[f], brd_tx_data_o[f]} = '0;
      assign brd_rx_ready_o[f] = 1'b0;
    end
  end

  via_functions u_functions (
    .clk_i,
    .rst_ni,
    .time_i,
    .chan_mib_i,
    .ctrl_i(fn_ctrl),
    .present_o(fn_present),
    .attached_o(fn_attached),
    .status_o(fn_status),
    .features_o(fn_features),
    .count_o(fn_count),
    .flushes_o(fn_flushes),
    .fn_req_i('{fn: fn_fn_i, cfg: fn_cfg_i, bar: fn_bar_i, write: fn_write_i, addr: fn_addr_i, strb: fn_strb_i, wdata: fn_wdata_i}),
    .fn_valid_i,
    .fn_rvalid_o,
    .fn_rdata_o,
    .fn_flr_i,
    .fn_flr_busy_o,
    .fn_bus_master_i,
    .fn_msix_valid_o,
    .fn_msix_fn_o,
    .fn_msix_vector_o,
    .fn_msix_ready_i,
    .m_ar_o(f_ar),
    .m_ar_valid_o(h_ar_valid[NumHost-1:Fns]),
    .m_ar_ready_i(h_ar_ready[NumHost-1:Fns]),
    .m_r_i(f_r),
    .m_r_valid_i(h_r_valid[NumHost-1:Fns]),
    .m_r_ready_o(h_r_ready[NumHost-1:Fns]),
    .m_aw_o(f_aw),
    .m_aw_valid_o(h_aw_valid[NumHost-1:Fns]),
    .m_aw_ready_i(h_aw_ready[NumHost-1:Fns]),
    .m_w_o(f_w),
    .m_w_valid_o(h_w_valid[NumHost-1:Fns]),
    .m_w_ready_i(h_w_ready[NumHost-1:Fns]),
    .m_b_i(f_b),
    .m_b_valid_i(h_b_valid[NumHost-1:Fns]),
    .m_b_ready_o(h_b_ready[NumHost-1:Fns]),
    .m_card_ar_o(x_ar[XdmaMgr]),
    .m_card_ar_valid_o(x_ar_valid[XdmaMgr]),
    .m_card_ar_ready_i(x_ar_ready[XdmaMgr]),
    .m_card_r_i(x_r[XdmaMgr]),
    .m_card_r_valid_i(x_r_valid[XdmaMgr]),
    .m_card_r_ready_o(x_r_ready[XdmaMgr]),
    .m_card_aw_o(x_aw[XdmaMgr]),
    .m_card_aw_valid_o(x_aw_valid[XdmaMgr]),
    .m_card_aw_ready_i(x_aw_ready[XdmaMgr]),
    .m_card_w_o(x_w[XdmaMgr]),
    .m_card_w_valid_o(x_w_valid[XdmaMgr]),
    .m_card_w_ready_i(x_w_ready[XdmaMgr]),
    .m_card_b_i(x_b[XdmaMgr]),
    .m_card_b_valid_i(x_b_valid[XdmaMgr]),
    .m_card_b_ready_o(x_b_ready[XdmaMgr]),
    .user_req_o(app_req[1]),
    .user_slot_o(app_slot[1]),
    .user_valid_o(app_valid[1]),
    .user_rvalid_i(app_rvalid[1]),
    .user_rdata_i(app_rdata),
    .brd_tx_o(brd_tx),
    .brd_tx_valid_o(brd_tx_valid),
    .brd_tx_ready_i(brd_tx_ready),
    .brd_rx_i(brd_rx),
    .brd_rx_valid_i(brd_rx_valid),
    .brd_rx_ready_o(brd_rx_ready),
    .slot_irq_i(app_irq),
    .slot_cut_i(fn_cut),
    .slot_on_o(fn_on),
    .slot_fn_o(fn_slot),
    .slot_tx_o(fn_tx),
    .slot_tx_valid_o(fn_tx_valid),
    .slot_tx_ready_i(fn_tx_ready),
    .slot_rx_i(fn_rx),
    .slot_rx_valid_i(fn_rx_valid),
    .slot_rx_ready_o(fn_rx_ready),
    .slot_rx_fn_i(fn_rx_fn),
    .disk_ar_o(disk_ar),
    .disk_ar_valid_o(disk_ar_valid),
    .disk_ar_ready_i(disk_ar_ready),
    .disk_r_i(disk_r),
    .disk_r_valid_i(disk_r_valid),
    .disk_r_ready_o(disk_r_ready),
    .disk_aw_o(disk_aw),
    .disk_aw_valid_o(disk_aw_valid),
    .disk_aw_ready_i(disk_aw_ready),
    .disk_w_o(disk_w),
    .disk_w_valid_o(disk_w_valid),
    .disk_w_ready_i(disk_w_ready),
    .disk_flush_o(disk_flush),
    .disk_b_i(disk_b),
    .disk_b_valid_i(disk_b_valid),
    .disk_b_ready_o(disk_b_ready),
    .still_o(functions_still),
    .idle_o(functions_idle)
  );

  // ---------------------------------------------------------------- slots
  logic [NumSlots-1:0] slot_idle, slot_still;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    strm_t to_app[NS], from_app[NS];
    axi_ax_t ar, aw;
    axi_r_t   r;
    axi_w_t   w;
    axi_b_t   b;
    reg_req_t req;

    for (genvar k = 0; k < NS; k++) begin : gen_stream
      assign slot_s_data_o[s][k*DataW+:DataW] = to_app[k].data;
      assign slot_s_keep_o[s][k*StrbW+:StrbW] = to_app[k].keep;
      assign slot_s_last_o[s][k] = to_app[k].last;
      assign slot_s_id_o[s][k*8+:8] = to_app[k].id;
      assign from_app[k] = '{
              id: slot_m_id_i[s][k*8+:8],
              last: slot_m_last_i[s][k],
              keep: slot_m_keep_i[s][k*StrbW+:StrbW],
              data: slot_m_data_i[s][k*DataW+:DataW]
          };
    end
    assign ar = '{
            id: slot_arid_i[s],
            burst: slot_arburst_i[s],
            size: slot_arsize_i[s],
            len: slot_arlen_i[s],
            addr: AddrW'(slot_araddr_i[s])
        };
    assign aw = '{
            id: slot_awid_i[s],
            burst: slot_awburst_i[s],
            size: slot_awsize_i[s],
            len: slot_awlen_i[s],
            addr: AddrW'(slot_awaddr_i[s])
        };
    assign w = '{last: slot_wlast_i[s], strb: slot_wstrb_i[s], data: slot_wdata_i[s]};
    assign slot_rid_o[s] = r.id;
    assign slot_rdata_o[s] = r.data;
    assign slot_rresp_o[s] = r.resp;
    assign slot_rlast_o[s] = r.last;
    assign slot_bid_o[s] = b.id;
    assign slot_bresp_o[s] = b.resp;
    assign slot_reg_write_o[s] = req.write;
    assign slot_reg_addr_o[s] = req.addr;
    assign slot_reg_wdata_o[s] = req.wdata;

    via_slot_port #(
      .PageWays(PageWays),
      .PageSets(PageSets),
      .HugeWays(HugeWays),
      .HugeSets(HugeSets)
    ) u_port (
      .clk_i,
      .rst_ni,
      .chan_mib_i,
      .ctrl_i           (ctrl[s]),
      .loaded_i         (slot_loaded_i[s]),
      .load_i           (load[s]),
      .stat_o           (stat[s]),
      .count_o          (count[s]),
      .cmd_i            (cmd[s]),
      .cmd_valid_i      (cmd_valid[s]),
      .cmd_ready_o      (cmd_ready[s]),
      .cpl_o            (cpl[s]),
      .cpl_valid_o      (cpl_valid[s]),
      .cpl_ready_i      (cpl_ready[s]),
      .dma_cmd_o        (dma_cmd[s]),
      .dma_cmd_valid_o  (dma_cmd_valid[s]),
      .dma_cmd_ready_i  (dma_cmd_ready[s]),
      .dma_cpl_i        (dma_cpl),
      .dma_cpl_valid_i  (dma_cpl_valid && dma_cpl_slot == SlotW'(s)),
      .dma_cpl_ready_o  (dma_cpl_ready[s]),
      .dma_abort_o      (dma_abort[s]),
      .evt_o            (evt[s]),
      .evt_valid_o      (evt_valid[s]),
      .evt_ready_i      (evt_ready[s]),
      .ring_err_cmd_i   (cmd_err[s]),
      .ring_err_info_i  (cmd_err_info[s]),
      .ring_err_cpl_i   (cpl_err[s]),
      .reg_i            (reg_req),
      .reg_valid_i      (reg_valid[s]),
      .reg_open_o       (reg_open[s]),
      .reg_rvalid_o     (reg_rvalid[s]),
      .reg_rdata_o      (reg_rdata[s]),
      .reg_err_o        (reg_err[s]),
      .reg_timeout_i    (reg_timeout[s]),
      .m_ar_o           (x_ar[s]),
      .m_ar_valid_o     (x_ar_valid[s]),
      .m_ar_ready_i     (x_ar_ready[s]),
      .m_r_i            (x_r[s]),
      .m_r_valid_i      (x_r_valid[s]),
      .m_r_ready_o      (x_r_ready[s]),
      .m_aw_o           (x_aw[s]),
      .m_aw_valid_o     (x_aw_valid[s]),
      .m_aw_ready_i     (x_aw_ready[s]),
      .m_w_o            (x_w[s]),
      .m_w_valid_o      (x_w_valid[s]),
      .m_w_ready_i      (x_w_ready[s]),
      .m_b_i            (x_b[s]),
      .m_b_valid_i      (x_b_valid[s]),
      .m_b_ready_o      (x_b_ready[s]),
      .fn_cut_o         (fn_cut[s]),
      .fn_on_i          (fn_on[s]),
      .fn_i             (fn_slot[s]),
      .fn_tx_i          (fn_tx[s]),
      .fn_tx_valid_i    (fn_tx_valid[s]),
      .fn_tx_ready_o    (fn_tx_ready[s]),
      .fn_rx_o          (fn_rx[s]),
      .fn_rx_valid_o    (fn_rx_valid[s]),
      .fn_rx_ready_i    (fn_rx_ready[s]),
      .fn_rx_fn_o       (fn_rx_fn[s]),
      .disk_ar_i        (disk_ar),
      .disk_ar_valid_i  (disk_ar_valid[s]),
      .disk_ar_ready_o  (disk_ar_ready[s]),
      .disk_r_o         (disk_r[s]),
      .disk_r_valid_o   (disk_r_valid[s]),
      .disk_r_ready_i   (disk_r_ready[s]),
      .disk_aw_i        (disk_aw),
      .disk_aw_valid_i  (disk_aw_valid[s]),
      .disk_aw_ready_o  (disk_aw_ready[s]),
      .disk_w_i         (disk_w),
      .disk_w_valid_i   (disk_w_valid[s]),
      .disk_w_ready_o   (disk_w_ready[s]),
      .disk_flush_i     (disk_flush[s]),
      .disk_b_o         (disk_b[s]),
      .disk_b_valid_o   (disk_b_valid[s]),
      .disk_b_ready_i   (disk_b_ready[s]),
      .slot_rst_no      (slot_rst_no[s]),
      .slot_s_o         (to_app),
      .slot_s_valid_o   (slot_s_valid_o[s]),
      .slot_s_ready_i   (slot_s_ready_i[s]),
      .slot_m_i         (from_app),
      .slot_m_valid_i   (slot_m_valid_i[s]),
      .slot_m_ready_o   (slot_m_ready_o[s]),
      .slot_ar_i        (ar),
      .slot_ar_valid_i  (slot_arvalid_i[s]),
      .slot_ar_ready_o  (slot_arready_o[s]),
      .slot_r_o         (r),
      .slot_r_valid_o   (slot_rvalid_o[s]),
      .slot_r_ready_i   (slot_rready_i[s]),
      .slot_aw_i        (aw),
      .slot_aw_valid_i  (slot_awvalid_i[s]),
      .slot_aw_ready_o  (slot_awready_o[s]),
      .slot_w_i         (w),
      .slot_w_valid_i   (slot_wvalid_i[s]),
      .slot_w_ready_o   (slot_wready_o[s]),
      .slot_b_o         (b),
      .slot_b_valid_o   (slot_bvalid_o[s]),
      .slot_b_ready_i   (slot_bready_i[s]),
      .slot_reg_o       (req),
      .slot_reg_valid_o (slot_reg_valid_o[s]),
      .slot_reg_rvalid_i(slot_reg_rvalid_i[s]),
      .slot_reg_rdata_i (slot_reg_rdata_i[s]),
      .slot_reg_err_i   (slot_reg_err_i[s]),
      .slot_irq_i       (slot_irq_i[s]),
      .irq_o            (app_irq[s]),
      .slot_busy_i      (slot_busy_i[s]),
      .still_o          (slot_still[s]),
      .idle_o           (slot_idle[s])
    );
  end

  // ---------------------------------------------------------------- quiet
  // The signals look at what will move; eight cycles of them make sure that what they do not see has settled too,
  // across blocks (a block settles within seven).
  logic still, quiet_q;
  logic [6:0] was_still_q;
  assign still = cmdq_still && ringw_still && msix_idle && dma_idle && host_still && xbar_still && &chan_idle && &slot_still && csr_idle &&
                 app_regs_idle && functions_still && ~|{axil_awvalid_i, axil_wvalid_i, axil_arvalid_i, icap_done_i};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rest_quiet_q <= 1'b0;
      was_still_q  <= '0;
      quiet_q      <= 1'b0;
    end else begin
      rest_quiet_q <= cmdq_idle && ringw_idle && msix_idle && dma_idle && host_idle && xbar_idle && &chan_idle && &slot_idle && functions_idle;
      was_still_q <= {was_still_q[5:0], 1'b1} & {7{still}};
      quiet_q <= still && &was_still_q;
    end
  end
  assign quiet_o = quiet_q;

endmodule
