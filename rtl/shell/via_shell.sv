// SPDX-License-Identifier: Apache-2.0
//
// The shell: everything on the card that is not user logic. Flat ports, for a board top or a simulator (docs/interfaces.md, section 2).
// Every output comes from a register, and no output depends on an input of the same cycle.
//
// It wires five blocks: via_shell_edge (host memory, DRAM, board ports), via_shell_mgmt (the management function), via_shell_slots (a port for
// each slot), via_functions (all other functions) and via_vio_switch (streams between slots, functions and board), and says when nothing moves
// in any of them.

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
  // System monitor of the FPGA, by its dynamic reconfiguration port: kind (bit 3: a model) and mA at full scale, constant.
  input  logic [         3:0] sysmon_kind_i,
  input  logic [        31:0] sysmon_full_i,
  output logic                sysmon_en_o,
  output logic [         7:0] sysmon_addr_o,
  input  logic [        15:0] sysmon_data_i,
  input  logic                sysmon_rdy_i,
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

  // ---------------------------------------------------------------- between the blocks
  // Slots and the management function.
  slot_ctrl_t ctrl[NumSlots];
  table_cfg_t tables[NumSlots];
  logic [WeightW-1:0] weight[NumSlots+3];
  sched_cfg_t sched[NumSlots];
  meter_count_t meter[NumSlots];
  logic [NumSlots-1:0] first;
  logic [7:0] window;
  share_cfg_t share;
  host_share_t host_share;
  slot_stat_t stat[NumSlots];
  logic [31:0] count[NumSlots][8], reg_rdata[NumSlots];
  logic [NumSlots-1:0] load;
  cmd_t cmd[NumSlots], dma_cmd[NumSlots];
  logic [NumSlots-1:0] cmd_valid, cmd_ready, cmd_err, cmd_err_info;
  cpl_t cpl[NumSlots], dma_cpl;
  logic [NumSlots-1:0] cpl_valid, cpl_ready, cpl_err;
  evt_t evt[NumSlots];
  logic [NumSlots-1:0] evt_valid, evt_ready;
  logic [NumSlots-1:0] dma_cmd_valid, dma_cmd_ready, dma_cpl_valid, dma_cpl_ready, dma_abort;
  reg_req_t reg_req;
  logic [NumSlots-1:0] reg_valid, reg_open, reg_rvalid, reg_err, reg_timeout;
  // Functions and the management function.
  fn_ctrl_t fn_ctrl[NumFn:1];
  logic [NumFn:1] fn_present;
  logic [FnInput:1] fn_attached;
  logic [7:0] fn_status[NumFn:1];
  fn_features_t fn_features[NumFn:1];
  logic [31:0] fn_count[NumFn:1][3], user_rdata;
  logic [15:0] fn_flushes[NumFn:1];
  reg_req_t user_req;
  logic [3:0] user_slot;
  logic user_valid, user_rvalid;
  // The switch of streams.
  localparam int unsigned NumApp = NumSlots * VioStreams;
  vio_route_t vio_route;
  vio_state_t vio_state;
  logic vio_set;
  logic [NumSlots-1:0] vio_cut;
  logic [NumApp-1:0] vio_in_on, vio_out_on, vio_in_valid, vio_in_ready, vio_out_valid, vio_out_ready;
  strm_t vio_in[NumApp], vio_out[NumApp], fn_tx[FnInput:1], fn_rx[FnInput:1];
  logic [FnInput:1] fn_core_rst_n, fn_tx_valid, fn_tx_ready, fn_rx_valid, fn_rx_ready, fn_gone;
  logic [1:0] fn_short[FnInput:1];
  // Functions and slots.
  logic [NumSlots-1:0] fn_irq;
  axi_ax_t disk_ar, disk_aw;
  logic [NumSlots-1:0] disk_ar_valid, disk_ar_ready, disk_r_valid, disk_r_ready, disk_aw_valid, disk_aw_ready, disk_w_valid, disk_w_ready;
  logic [NumSlots-1:0] disk_flush, disk_b_valid, disk_b_ready;
  axi_r_t disk_r [NumSlots];
  axi_w_t disk_w;
  axi_b_t disk_b [NumSlots];
  // Functions and their board ports.
  strm_t fn_brd_tx[FnInput:1], fn_brd_rx[FnInput:1];
  logic [FnInput:1] fn_brd_tx_valid, fn_brd_tx_ready, fn_brd_rx_valid, fn_brd_rx_ready;
  // Users of host memory: rings and DMA of the management function, then the functions.
  localparam int unsigned Fns = 2, NumHost = Fns + NumFn;
  axi_ax_t hostmem_ar[NumHost], hostmem_aw[NumHost];
  axi_r_t hostmem_r[NumHost];
  axi_w_t hostmem_w[NumHost];
  axi_b_t hostmem_b[NumHost];
  logic [NumHost-1:0] hostmem_ar_valid, hostmem_ar_ready, hostmem_r_valid, hostmem_r_ready;
  logic [NumHost-1:0] hostmem_aw_valid, hostmem_aw_ready, hostmem_w_valid, hostmem_w_ready, hostmem_b_valid, hostmem_b_ready;
  // Users of the crossbar: slots, XDMA, DMA, page tables.
  localparam int unsigned Xdma = NumSlots, Dma = NumSlots + 1, Walk = NumSlots + 2, NumCard = NumSlots + 3;
  axi_ax_t cardmem_ar[NumCard], cardmem_aw[NumCard];
  axi_r_t cardmem_r[NumCard];
  axi_w_t cardmem_w[NumCard];
  axi_b_t cardmem_b[NumCard];
  logic [NumCard-1:0] cardmem_ar_valid, cardmem_ar_ready, cardmem_r_valid, cardmem_r_ready;
  logic [NumCard-1:0] cardmem_aw_valid, cardmem_aw_ready, cardmem_w_valid, cardmem_w_ready, cardmem_b_valid, cardmem_b_ready;
  // still: nothing moves unless an input changes; idle: nothing is in flight.
  logic [1:0] edge_still;
  logic edge_idle, mgmt_still, mgmt_idle, slots_still, slots_idle, functions_still, functions_idle, vio_still, vio_idle;
  logic [6:0] still_q;
  logic [5:0] was_still_q;
  logic settled_q, rest_quiet_q;

  // ---------------------------------------------------------------- the blocks
  // `.*` stands for the ports of the shell that a block has, too: clock, reset, and the board's or the slots' flat wires.
  via_shell_edge u_edge (
    .*,
    .weight_i(weight),
    .first_i(first),
    .window_i(window),
    .share_i(share),
    .host_share_i(host_share),
    .hostmem_ar_i(hostmem_ar),
    .hostmem_ar_valid_i(hostmem_ar_valid),
    .hostmem_ar_ready_o(hostmem_ar_ready),
    .hostmem_r_o(hostmem_r),
    .hostmem_r_valid_o(hostmem_r_valid),
    .hostmem_r_ready_i(hostmem_r_ready),
    .hostmem_aw_i(hostmem_aw),
    .hostmem_aw_valid_i(hostmem_aw_valid),
    .hostmem_aw_ready_o(hostmem_aw_ready),
    .hostmem_w_i(hostmem_w),
    .hostmem_w_valid_i(hostmem_w_valid),
    .hostmem_w_ready_o(hostmem_w_ready),
    .hostmem_b_o(hostmem_b),
    .hostmem_b_valid_o(hostmem_b_valid),
    .hostmem_b_ready_i(hostmem_b_ready),
    .cardmem_ar_i(cardmem_ar),
    .cardmem_ar_valid_i(cardmem_ar_valid),
    .cardmem_ar_ready_o(cardmem_ar_ready),
    .cardmem_r_o(cardmem_r),
    .cardmem_r_valid_o(cardmem_r_valid),
    .cardmem_r_ready_i(cardmem_r_ready),
    .cardmem_aw_i(cardmem_aw),
    .cardmem_aw_valid_i(cardmem_aw_valid),
    .cardmem_aw_ready_o(cardmem_aw_ready),
    .cardmem_w_i(cardmem_w),
    .cardmem_w_valid_i(cardmem_w_valid),
    .cardmem_w_ready_o(cardmem_w_ready),
    .cardmem_b_o(cardmem_b),
    .cardmem_b_valid_o(cardmem_b_valid),
    .cardmem_b_ready_i(cardmem_b_ready),
    .fn_brd_tx_i(fn_brd_tx),
    .fn_brd_tx_valid_i(fn_brd_tx_valid),
    .fn_brd_tx_ready_o(fn_brd_tx_ready),
    .fn_brd_rx_o(fn_brd_rx),
    .fn_brd_rx_valid_o(fn_brd_rx_valid),
    .fn_brd_rx_ready_i(fn_brd_rx_ready),
    .still_o(edge_still),
    .idle_o(edge_idle)
  );

  via_shell_mgmt u_mgmt (
    .*,
    .rest_quiet_i(rest_quiet_q),
    .ctrl_o(ctrl),
    .table_o(tables),
    .weight_o(weight),
    .sched_o(sched),
    .window_o(window),
    .share_o(share),
    .host_share_o(host_share),
    .stat_i(stat),
    .count_i(count),
    .meter_i(meter),
    .first_i(first),
    .load_o(load),
    .cmd_o(cmd),
    .cmd_valid_o(cmd_valid),
    .cmd_ready_i(cmd_ready),
    .cpl_i(cpl),
    .cpl_valid_i(cpl_valid),
    .cpl_ready_o(cpl_ready),
    .evt_i(evt),
    .evt_valid_i(evt_valid),
    .evt_ready_o(evt_ready),
    .dma_cmd_i(dma_cmd),
    .dma_cmd_valid_i(dma_cmd_valid),
    .dma_cmd_ready_o(dma_cmd_ready),
    .dma_cpl_o(dma_cpl),
    .dma_cpl_valid_o(dma_cpl_valid),
    .dma_cpl_ready_i(dma_cpl_ready),
    .dma_abort_i(dma_abort),
    .cmd_err_o(cmd_err),
    .cmd_err_info_o(cmd_err_info),
    .cpl_err_o(cpl_err),
    .reg_req_o(reg_req),
    .reg_valid_o(reg_valid),
    .reg_open_i(reg_open),
    .reg_rvalid_i(reg_rvalid),
    .reg_rdata_i(reg_rdata),
    .reg_err_i(reg_err),
    .reg_timeout_o(reg_timeout),
    .route_o(vio_route),
    .route_set_o(vio_set),
    .route_state_i(vio_state),
    .fn_ctrl_o(fn_ctrl),
    .fn_present_i(fn_present),
    .fn_attached_i(NumFn'(fn_attached)),
    .fn_status_i(fn_status),
    .fn_features_i(fn_features),
    .fn_count_i(fn_count),
    .fn_flushes_i(fn_flushes),
    .user_req_i(user_req),
    .user_slot_i(user_slot),
    .user_valid_i(user_valid),
    .user_rvalid_o(user_rvalid),
    .user_rdata_o(user_rdata),
    .hostmem_ar_o(hostmem_ar[0:Fns-1]),
    .hostmem_ar_valid_o(hostmem_ar_valid[Fns-1:0]),
    .hostmem_ar_ready_i(hostmem_ar_ready[Fns-1:0]),
    .hostmem_r_i(hostmem_r[0:Fns-1]),
    .hostmem_r_valid_i(hostmem_r_valid[Fns-1:0]),
    .hostmem_r_ready_o(hostmem_r_ready[Fns-1:0]),
    .hostmem_aw_o(hostmem_aw[0:Fns-1]),
    .hostmem_aw_valid_o(hostmem_aw_valid[Fns-1:0]),
    .hostmem_aw_ready_i(hostmem_aw_ready[Fns-1:0]),
    .hostmem_w_o(hostmem_w[0:Fns-1]),
    .hostmem_w_valid_o(hostmem_w_valid[Fns-1:0]),
    .hostmem_w_ready_i(hostmem_w_ready[Fns-1:0]),
    .hostmem_b_i(hostmem_b[0:Fns-1]),
    .hostmem_b_valid_i(hostmem_b_valid[Fns-1:0]),
    .hostmem_b_ready_o(hostmem_b_ready[Fns-1:0]),
    .cardmem_ar_o(cardmem_ar[Dma]),
    .cardmem_ar_valid_o(cardmem_ar_valid[Dma]),
    .cardmem_ar_ready_i(cardmem_ar_ready[Dma]),
    .cardmem_r_i(cardmem_r[Dma]),
    .cardmem_r_valid_i(cardmem_r_valid[Dma]),
    .cardmem_r_ready_o(cardmem_r_ready[Dma]),
    .cardmem_aw_o(cardmem_aw[Dma]),
    .cardmem_aw_valid_o(cardmem_aw_valid[Dma]),
    .cardmem_aw_ready_i(cardmem_aw_ready[Dma]),
    .cardmem_w_o(cardmem_w[Dma]),
    .cardmem_w_valid_o(cardmem_w_valid[Dma]),
    .cardmem_w_ready_i(cardmem_w_ready[Dma]),
    .cardmem_b_i(cardmem_b[Dma]),
    .cardmem_b_valid_i(cardmem_b_valid[Dma]),
    .cardmem_b_ready_o(cardmem_b_ready[Dma]),
    .still_o(mgmt_still),
    .idle_o(mgmt_idle)
  );

  via_shell_slots u_slots (
    .*,
    .ctrl_i(ctrl),
    .time_i(time_i[31:0]),
    .table_i(tables),
    .sched_i(sched),
    .stat_o(stat),
    .count_o(count),
    .meter_o(meter),
    .first_o(first),
    .load_i(load),
    .cmd_i(cmd),
    .cmd_valid_i(cmd_valid),
    .cmd_ready_o(cmd_ready),
    .cpl_o(cpl),
    .cpl_valid_o(cpl_valid),
    .cpl_ready_i(cpl_ready),
    .evt_o(evt),
    .evt_valid_o(evt_valid),
    .evt_ready_i(evt_ready),
    .dma_cmd_o(dma_cmd),
    .dma_cmd_valid_o(dma_cmd_valid),
    .dma_cmd_ready_i(dma_cmd_ready),
    .dma_cpl_i(dma_cpl),
    .dma_cpl_valid_i(dma_cpl_valid),
    .dma_cpl_ready_o(dma_cpl_ready),
    .dma_abort_o(dma_abort),
    .cmd_err_i(cmd_err),
    .cmd_err_info_i(cmd_err_info),
    .cpl_err_i(cpl_err),
    .reg_req_i(reg_req),
    .reg_valid_i(reg_valid),
    .reg_open_o(reg_open),
    .reg_rvalid_o(reg_rvalid),
    .reg_rdata_o(reg_rdata),
    .reg_err_o(reg_err),
    .reg_timeout_i(reg_timeout),
    .fn_irq_o(fn_irq),
    .vio_cut_o(vio_cut),
    .vio_in_on_i(vio_in_on),
    .vio_out_on_i(vio_out_on),
    .vio_in_i(vio_in),
    .vio_in_valid_i(vio_in_valid),
    .vio_in_ready_o(vio_in_ready),
    .vio_out_o(vio_out),
    .vio_out_valid_o(vio_out_valid),
    .vio_out_ready_i(vio_out_ready),
    .disk_ar_i(disk_ar),
    .disk_ar_valid_i(disk_ar_valid),
    .disk_ar_ready_o(disk_ar_ready),
    .disk_r_o(disk_r),
    .disk_r_valid_o(disk_r_valid),
    .disk_r_ready_i(disk_r_ready),
    .disk_aw_i(disk_aw),
    .disk_aw_valid_i(disk_aw_valid),
    .disk_aw_ready_o(disk_aw_ready),
    .disk_w_i(disk_w),
    .disk_w_valid_i(disk_w_valid),
    .disk_w_ready_o(disk_w_ready),
    .disk_flush_i(disk_flush),
    .disk_b_o(disk_b),
    .disk_b_valid_o(disk_b_valid),
    .disk_b_ready_i(disk_b_ready),
    .cardmem_ar_o(cardmem_ar[0:NumSlots-1]),
    .cardmem_ar_valid_o(cardmem_ar_valid[NumSlots-1:0]),
    .cardmem_ar_ready_i(cardmem_ar_ready[NumSlots-1:0]),
    .cardmem_r_i(cardmem_r[0:NumSlots-1]),
    .cardmem_r_valid_i(cardmem_r_valid[NumSlots-1:0]),
    .cardmem_r_ready_o(cardmem_r_ready[NumSlots-1:0]),
    .cardmem_aw_o(cardmem_aw[0:NumSlots-1]),
    .cardmem_aw_valid_o(cardmem_aw_valid[NumSlots-1:0]),
    .cardmem_aw_ready_i(cardmem_aw_ready[NumSlots-1:0]),
    .cardmem_w_o(cardmem_w[0:NumSlots-1]),
    .cardmem_w_valid_o(cardmem_w_valid[NumSlots-1:0]),
    .cardmem_w_ready_i(cardmem_w_ready[NumSlots-1:0]),
    .cardmem_b_i(cardmem_b[0:NumSlots-1]),
    .cardmem_b_valid_i(cardmem_b_valid[NumSlots-1:0]),
    .cardmem_b_ready_o(cardmem_b_ready[NumSlots-1:0]),
    .walk_ar_o(cardmem_ar[Walk]),
    .walk_ar_valid_o(cardmem_ar_valid[Walk]),
    .walk_ar_ready_i(cardmem_ar_ready[Walk]),
    .walk_r_i(cardmem_r[Walk]),
    .walk_r_valid_i(cardmem_r_valid[Walk]),
    .walk_r_ready_o(cardmem_r_ready[Walk]),
    .walk_aw_o(cardmem_aw[Walk]),
    .walk_aw_valid_o(cardmem_aw_valid[Walk]),
    .walk_aw_ready_i(cardmem_aw_ready[Walk]),
    .walk_w_o(cardmem_w[Walk]),
    .walk_w_valid_o(cardmem_w_valid[Walk]),
    .walk_w_ready_i(cardmem_w_ready[Walk]),
    .walk_b_i(cardmem_b[Walk]),
    .walk_b_valid_i(cardmem_b_valid[Walk]),
    .walk_b_ready_o(cardmem_b_ready[Walk]),
    .still_o(slots_still),
    .idle_o(slots_idle)
  );

  via_functions u_functions (
    .clk_i,
    .rst_ni,
    .time_i,
    .chan_mib_i,
    .ctrl_i(fn_ctrl),
    .present_o(fn_present),
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
    .m_ar_o(hostmem_ar[Fns:NumHost-1]),
    .m_ar_valid_o(hostmem_ar_valid[NumHost-1:Fns]),
    .m_ar_ready_i(hostmem_ar_ready[NumHost-1:Fns]),
    .m_r_i(hostmem_r[Fns:NumHost-1]),
    .m_r_valid_i(hostmem_r_valid[NumHost-1:Fns]),
    .m_r_ready_o(hostmem_r_ready[NumHost-1:Fns]),
    .m_aw_o(hostmem_aw[Fns:NumHost-1]),
    .m_aw_valid_o(hostmem_aw_valid[NumHost-1:Fns]),
    .m_aw_ready_i(hostmem_aw_ready[NumHost-1:Fns]),
    .m_w_o(hostmem_w[Fns:NumHost-1]),
    .m_w_valid_o(hostmem_w_valid[NumHost-1:Fns]),
    .m_w_ready_i(hostmem_w_ready[NumHost-1:Fns]),
    .m_b_i(hostmem_b[Fns:NumHost-1]),
    .m_b_valid_i(hostmem_b_valid[NumHost-1:Fns]),
    .m_b_ready_o(hostmem_b_ready[NumHost-1:Fns]),
    .m_card_ar_o(cardmem_ar[Xdma]),
    .m_card_ar_valid_o(cardmem_ar_valid[Xdma]),
    .m_card_ar_ready_i(cardmem_ar_ready[Xdma]),
    .m_card_r_i(cardmem_r[Xdma]),
    .m_card_r_valid_i(cardmem_r_valid[Xdma]),
    .m_card_r_ready_o(cardmem_r_ready[Xdma]),
    .m_card_aw_o(cardmem_aw[Xdma]),
    .m_card_aw_valid_o(cardmem_aw_valid[Xdma]),
    .m_card_aw_ready_i(cardmem_aw_ready[Xdma]),
    .m_card_w_o(cardmem_w[Xdma]),
    .m_card_w_valid_o(cardmem_w_valid[Xdma]),
    .m_card_w_ready_i(cardmem_w_ready[Xdma]),
    .m_card_b_i(cardmem_b[Xdma]),
    .m_card_b_valid_i(cardmem_b_valid[Xdma]),
    .m_card_b_ready_o(cardmem_b_ready[Xdma]),
    .user_req_o(user_req),
    .user_slot_o(user_slot),
    .user_valid_o(user_valid),
    .user_rvalid_i(user_rvalid),
    .user_rdata_i(user_rdata),
    .core_rst_no(fn_core_rst_n),
    .tx_o(fn_tx),
    .tx_valid_o(fn_tx_valid),
    .tx_ready_i(fn_tx_ready),
    .rx_i(fn_rx),
    .rx_valid_i(fn_rx_valid),
    .rx_ready_o(fn_rx_ready),
    .gone_i(fn_gone),
    .short_i(fn_short),
    .slot_irq_i(fn_irq),
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

  via_vio_switch u_vio (
    .clk_i,
    .rst_ni,
    .route_i(vio_route),
    .route_set_i(vio_set),
    .state_o(vio_state),
    .ctrl_i(fn_ctrl[FnInput:1]),
    .attached_o(fn_attached),
    .short_o(fn_short),
    .core_rst_ni(fn_core_rst_n),
    .tx_i(fn_tx),
    .tx_valid_i(fn_tx_valid),
    .tx_ready_o(fn_tx_ready),
    .rx_o(fn_rx),
    .rx_valid_o(fn_rx_valid),
    .rx_ready_i(fn_rx_ready),
    .gone_o(fn_gone),
    .brd_tx_o(fn_brd_tx),
    .brd_tx_valid_o(fn_brd_tx_valid),
    .brd_tx_ready_i(fn_brd_tx_ready),
    .brd_rx_i(fn_brd_rx),
    .brd_rx_valid_i(fn_brd_rx_valid),
    .brd_rx_ready_o(fn_brd_rx_ready),
    .slot_cut_i(vio_cut),
    .app_in_on_o(vio_in_on),
    .app_out_on_o(vio_out_on),
    .app_in_o(vio_in),
    .app_in_valid_o(vio_in_valid),
    .app_in_ready_i(vio_in_ready),
    .app_out_i(vio_out),
    .app_out_valid_i(vio_out_valid),
    .app_out_ready_o(vio_out_ready),
    .still_o(vio_still),
    .idle_o(vio_idle)
  );

  // ---------------------------------------------------------------- quiet
  // The signals look at what will move; eight cycles of them make sure that what they do not see has settled too,
  // across blocks (a block settles within four). They are long paths, so each has a register.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      still_q      <= '0;
      was_still_q  <= '0;
      settled_q    <= 1'b0;
      quiet_o      <= 1'b0;
      rest_quiet_q <= 1'b0;
    end else begin
      still_q <= {
        edge_still, mgmt_still, slots_still, functions_still, vio_still, ~|{axil_awvalid_i, axil_wvalid_i, axil_arvalid_i, icap_done_i}
      };
      was_still_q <= {was_still_q[4:0], &still_q};
      settled_q <= &still_q && &was_still_q;
      quiet_o <= settled_q && &still_q;
      rest_quiet_q <= edge_idle && mgmt_idle && slots_idle && functions_idle && vio_idle;
    end
  end

endmodule
