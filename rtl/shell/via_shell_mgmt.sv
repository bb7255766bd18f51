// SPDX-License-Identifier: Apache-2.0
//
// The management function: the registers of the card, the rings of all slots in host memory, the DMA engine that serves them, and their interrupts.
//
//   BARs ──> via_csr ──> control of slots and functions, configuration port
//              │  └──> via_app_regs <── user BAR of XDMA     registers of apps
//          via_cmdq ──> commands to slots,   slots ──> via_ringw ──> via_msix
//          slots ──> via_dma ──> completions to slots
//
// Throughput, latency and order are those of the blocks inside.

module via_shell_mgmt
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,  // cycles since power-up
  input logic [31:0] chan_mib_i,  // size of each DRAM channel in MiB
  input logic [31:0] clk_khz_i,  // nominal clock
  input logic rest_quiet_i,  // nothing but registers is at work: QUIET in the status of the card
  // BAR access, AXI4-Lite. BAR0 at 0x00000, BAR2 at 0x40000.
  input logic [19:0] axil_awaddr_i,
  input logic axil_awvalid_i,
  output logic axil_awready_o,
  input logic [31:0] axil_wdata_i,
  input logic [3:0] axil_wstrb_i,
  input logic axil_wvalid_i,
  output logic axil_wready_o,
  output logic [1:0] axil_bresp_o,
  output logic axil_bvalid_o,
  input logic axil_bready_i,
  input logic [19:0] axil_araddr_i,
  input logic axil_arvalid_i,
  output logic axil_arready_o,
  output logic [31:0] axil_rdata_o,
  output logic [1:0] axil_rresp_o,
  output logic axil_rvalid_o,
  input logic axil_rready_i,
  // MSI-X: vector 2s = completions of slot s, 2s+1 = its events.
  output logic msix_valid_o,
  output logic [7:0] msix_vector_o,
  input logic msix_ready_i,
  // Configuration port: loads an app image into a slot.
  output logic icap_valid_o,
  output logic [31:0] icap_data_o,
  output logic [3:0] icap_slot_o,
  output logic icap_start_o,
  output logic icap_end_o,
  input logic icap_ready_i,
  input logic icap_done_i,
  input logic [7:0] icap_status_i,
  // System monitor of the FPGA, by its dynamic reconfiguration port.
  input logic [3:0] sysmon_kind_i,
  input logic [31:0] sysmon_full_i,
  output logic sysmon_en_o,
  output logic [7:0] sysmon_addr_o,
  input logic [15:0] sysmon_data_i,
  input logic sysmon_rdy_i,
  input logic [NumSlots-1:0] slot_loaded_i,  // an app is in the slot
  // Slots: their control, and what becomes of it.
  output slot_ctrl_t ctrl_o[NumSlots],
  output table_cfg_t table_o[NumSlots],
  output logic [WeightW-1:0] weight_o[NumSlots+3],  // share of card memory of slots, XDMA, DMA, page tables
  output sched_cfg_t sched_o[NumSlots],
  output logic [7:0] window_o,  // of host memory: beats under way each way, in 16
  output share_cfg_t share_o,  // policy and quanta of all that is shared
  output host_share_t host_share_o,  // weights and classes at the host port
  input slot_stat_t stat_i[NumSlots],
  input logic [31:0] count_i[NumSlots][8],  // in the order of the counter registers
  input meter_count_t meter_i[NumSlots],  // what they have requested of memory
  input logic [NumSlots-1:0] first_i,  // the slot goes first
  output logic [NumSlots-1:0] load_o,  // an image is being loaded
  // Commands to slots, completions and events from them, and the DMA commands that they pass on.
  output cmd_t cmd_o[NumSlots],
  output logic [NumSlots-1:0] cmd_valid_o,
  input logic [NumSlots-1:0] cmd_ready_i,
  input cpl_t cpl_i[NumSlots],
  input logic [NumSlots-1:0] cpl_valid_i,
  output logic [NumSlots-1:0] cpl_ready_o,
  input evt_t evt_i[NumSlots],
  input logic [NumSlots-1:0] evt_valid_i,
  output logic [NumSlots-1:0] evt_ready_o,
  input cmd_t dma_cmd_i[NumSlots],
  input logic [NumSlots-1:0] dma_cmd_valid_i,
  output logic [NumSlots-1:0] dma_cmd_ready_o,
  output cpl_t dma_cpl_o,  // to all slots, valid to one
  output logic [NumSlots-1:0] dma_cpl_valid_o,
  input logic [NumSlots-1:0] dma_cpl_ready_i,
  input logic [NumSlots-1:0] dma_abort_i,  // queued DMA commands of the slot end with StAborted
  output logic [NumSlots-1:0] cmd_err_o,  // one pulse: the command ring stopped
  output logic [NumSlots-1:0] cmd_err_info_o,  // with it: why, as EvRing has it
  output logic [NumSlots-1:0] cpl_err_o,  // one pulse: the completion ring stopped
  // Registers of apps, one access at a time.
  output reg_req_t reg_req_o,  // to all slots, valid to one
  output logic [NumSlots-1:0] reg_valid_o,  // held until the response or the time-out
  input logic [NumSlots-1:0] reg_open_i,  // an app is there to answer
  input logic [NumSlots-1:0] reg_rvalid_i,  // one pulse: the response
  input logic [31:0] reg_rdata_i[NumSlots],
  input logic [NumSlots-1:0] reg_err_i,  // with the response: there is no such register
  output logic [NumSlots-1:0] reg_timeout_o,  // one pulse: the access ended without a response
  // Routes of the switch.
  output vio_route_t route_o,
  output logic route_set_o,  // pulse: set it; its sink is also the one that route_state_i is about
  input vio_state_t route_state_i,
  // Functions: their management registers.
  output fn_ctrl_t fn_ctrl_o[NumFn:1],
  input logic [NumFn:1] fn_present_i,  // the build has the function
  input logic [NumFn:1] fn_attached_i,  // its user side is connected
  input logic [7:0] fn_status_i[NumFn:1],  // as its driver set it
  input fn_features_t fn_features_i[NumFn:1],
  input logic [31:0] fn_count_i[NumFn:1][3],  // in the order of the counter registers
  input logic [15:0] fn_flushes_i[NumFn:1],  // that wanted the host
  // User BAR of XDMA: a register of the app in a slot.
  input reg_req_t user_req_i,
  input logic [3:0] user_slot_i,
  input logic user_valid_i,  // held until the response
  output logic user_rvalid_o,  // one pulse: the response
  output logic [31:0] user_rdata_o,  // all ones: nobody answered
  // Host memory: 0 rings, 1 DMA.
  output axi_ax_t hostmem_ar_o[2],
  output logic [1:0] hostmem_ar_valid_o,
  input logic [1:0] hostmem_ar_ready_i,
  input axi_r_t hostmem_r_i[2],
  input logic [1:0] hostmem_r_valid_i,
  output logic [1:0] hostmem_r_ready_o,
  output axi_ax_t hostmem_aw_o[2],
  output logic [1:0] hostmem_aw_valid_o,
  input logic [1:0] hostmem_aw_ready_i,
  output axi_w_t hostmem_w_o[2],
  output logic [1:0] hostmem_w_valid_o,
  input logic [1:0] hostmem_w_ready_i,
  input axi_b_t hostmem_b_i[2],
  input logic [1:0] hostmem_b_valid_i,
  output logic [1:0] hostmem_b_ready_o,
  // Card memory, of DMA: addresses as via_xbar takes them.
  output axi_ax_t cardmem_ar_o,
  output logic cardmem_ar_valid_o,
  input logic cardmem_ar_ready_i,
  input axi_r_t cardmem_r_i,
  input logic cardmem_r_valid_i,
  output logic cardmem_r_ready_o,
  output axi_ax_t cardmem_aw_o,
  output logic cardmem_aw_valid_o,
  input logic cardmem_aw_ready_i,
  output axi_w_t cardmem_w_o,
  output logic cardmem_w_valid_o,
  input logic cardmem_w_ready_i,
  input axi_b_t cardmem_b_i,
  input logic cardmem_b_valid_i,
  output logic cardmem_b_ready_o,
  output logic still_o,  // nothing moves unless an input changes
  output logic idle_o  // rings, DMA and interrupts have nothing to do
);

  // ---------------------------------------------------------------- registers
  // Who asks for registers of apps: the management function, XDMA.
  reg_req_t app_req[2];
  logic [3:0] app_slot[2];
  logic [1:0] app_valid, app_rvalid;
  logic csr_idle, app_regs_idle;
  logic sysmon_start, sysmon_idle;
  sysmon_state_t sysmon;
  logic [15:0] sysmon_value[SysmonValues];

  ring_cfg_t cmd_cfg[NumSlots], ring_cfg[2*NumSlots];
  ring_idx_t cmd_tail[NumSlots], cmd_head[NumSlots];
  ring_idx_t ring_head[2*NumSlots], ring_tail[2*NumSlots], ring_used[2*NumSlots];
  logic [NumSlots-1:0] cmd_on, cmd_tail_err, cmd_bus_err;
  logic [2*NumSlots-1:0] ring_arm, ring_on, ring_err, irq;

  via_csr #(
    .PageWays(MmuPageWays),
    .PageSets(MmuPageSets),
    .HugeWays(MmuHugeWays),
    .HugeSets(MmuHugeSets)
  ) u_csr (
    .clk_i,
    .rst_ni,
    .time_i,
    .chan_mib_i,
    .clk_khz_i,
    .quiet_i       (rest_quiet_i),
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
    .ctrl_o,
    .table_o,
    .weight_o,
    .sched_o,
    .window_o,
    .share_o,
    .host_share_o,
    .stat_i,
    .count_i,
    .meter_i,
    .app_req_o     (app_req[0]),
    .app_slot_o    (app_slot[0]),
    .app_valid_o   (app_valid[0]),
    .app_rvalid_i  (app_rvalid[0]),
    .app_rdata_i   (user_rdata_o),
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
    .route_o,
    .route_set_o,
    .route_state_i,
    .fn_ctrl_o,
    .fn_present_i,
    .fn_attached_i,
    .fn_status_i,
    .fn_features_i,
    .fn_count_i,
    .fn_flushes_i,
    .loaded_i      (slot_loaded_i),
    .load_o,
    .icap_valid_o,
    .icap_data_o,
    .icap_slot_o,
    .icap_start_o,
    .icap_end_o,
    .icap_ready_i,
    .icap_done_i,
    .icap_status_i,
    .sysmon_kind_i,
    .sysmon_full_i,
    .sysmon_start_o(sysmon_start),
    .sysmon_i      (sysmon),
    .sysmon_value_i(sysmon_value),
    .idle_o        (csr_idle)
  );

  via_sysmon u_sysmon (
    .clk_i,
    .rst_ni,
    .start_i   (sysmon_start),
    .state_o   (sysmon),
    .value_o   (sysmon_value),
    .drp_en_o  (sysmon_en_o),
    .drp_addr_o(sysmon_addr_o),
    .drp_data_i(sysmon_data_i),
    .drp_rdy_i (sysmon_rdy_i),
    .idle_o    (sysmon_idle)
  );

  assign app_req[1] = user_req_i;
  assign app_slot[1] = user_slot_i;
  assign app_valid[1] = user_valid_i;
  assign user_rvalid_o = app_rvalid[1];

  via_app_regs u_app_regs (
    .clk_i,
    .rst_ni,
    .s_req_i   (app_req),
    .s_slot_i  (app_slot),
    .s_valid_i (app_valid),
    .s_rvalid_o(app_rvalid),
    .s_rdata_o (user_rdata_o),
    .reach_i   (fn_ctrl_o[FnXdma].reach),
    .reg_o     (reg_req_o),
    .reg_valid_o,
    .reg_open_i,
    .reg_rvalid_i,
    .reg_rdata_i,
    .reg_err_i,
    .reg_timeout_o,
    .idle_o    (app_regs_idle)
  );

  // ---------------------------------------------------------------- rings
  localparam int unsigned Rings = 0, Dma = 1;
  ring_cfg_t cpl_cfg[NumSlots];
  ring_idx_t cpl_used[NumSlots];
  logic [NumSlots-1:0] cpl_done;
  logic cmdq_still, cmdq_idle, ringw_still, ringw_idle, msix_idle;

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
    .err_o       (cmd_err_o),
    .err_info_o  (cmd_err_info_o),
    .m_ar_o      (hostmem_ar_o[Rings]),
    .m_ar_valid_o(hostmem_ar_valid_o[Rings]),
    .m_ar_ready_i(hostmem_ar_ready_i[Rings]),
    .m_r_i       (hostmem_r_i[Rings]),
    .m_r_valid_i (hostmem_r_valid_i[Rings]),
    .m_r_ready_o (hostmem_r_ready_o[Rings]),
    .cmd_o,
    .cmd_valid_o,
    .cmd_ready_i,
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
    .cpl_err_o,
    .cpl_i,
    .cpl_valid_i,
    .cpl_ready_o,
    .evt_i,
    .evt_valid_i,
    .evt_ready_o,
    .m_aw_o      (hostmem_aw_o[Rings]),
    .m_aw_valid_o(hostmem_aw_valid_o[Rings]),
    .m_aw_ready_i(hostmem_aw_ready_i[Rings]),
    .m_w_o       (hostmem_w_o[Rings]),
    .m_w_valid_o (hostmem_w_valid_o[Rings]),
    .m_w_ready_i (hostmem_w_ready_i[Rings]),
    .m_b_i       (hostmem_b_i[Rings]),
    .m_b_valid_i (hostmem_b_valid_i[Rings]),
    .m_b_ready_o (hostmem_b_ready_o[Rings]),
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

  // ---------------------------------------------------------------- DMA
  logic [SlotW-1:0] dma_slot;
  logic dma_valid, dma_idle;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_dma
    assign dma_cpl_valid_o[s] = dma_valid && dma_slot == SlotW'(s);
  end

  via_dma u_dma (
    .clk_i,
    .rst_ni,
    .chan_mib_i,
    .weight_i         (weight_o[0:NumSlots-1]),
    .first_i,
    .cmd_i            (dma_cmd_i),
    .cmd_valid_i      (dma_cmd_valid_i),
    .cmd_ready_o      (dma_cmd_ready_o),
    .cpl_o            (dma_cpl_o),
    .cpl_slot_o       (dma_slot),
    .cpl_valid_o      (dma_valid),
    .cpl_ready_i      (dma_cpl_ready_i[dma_slot]),
    .abort_i          (dma_abort_i),
    .m_host_ar_o      (hostmem_ar_o[Dma]),
    .m_host_ar_valid_o(hostmem_ar_valid_o[Dma]),
    .m_host_ar_ready_i(hostmem_ar_ready_i[Dma]),
    .m_host_r_i       (hostmem_r_i[Dma]),
    .m_host_r_valid_i (hostmem_r_valid_i[Dma]),
    .m_host_r_ready_o (hostmem_r_ready_o[Dma]),
    .m_host_aw_o      (hostmem_aw_o[Dma]),
    .m_host_aw_valid_o(hostmem_aw_valid_o[Dma]),
    .m_host_aw_ready_i(hostmem_aw_ready_i[Dma]),
    .m_host_w_o       (hostmem_w_o[Dma]),
    .m_host_w_valid_o (hostmem_w_valid_o[Dma]),
    .m_host_w_ready_i (hostmem_w_ready_i[Dma]),
    .m_host_b_i       (hostmem_b_i[Dma]),
    .m_host_b_valid_i (hostmem_b_valid_i[Dma]),
    .m_host_b_ready_o (hostmem_b_ready_o[Dma]),
    .m_card_ar_o      (cardmem_ar_o),
    .m_card_ar_valid_o(cardmem_ar_valid_o),
    .m_card_ar_ready_i(cardmem_ar_ready_i),
    .m_card_r_i       (cardmem_r_i),
    .m_card_r_valid_i (cardmem_r_valid_i),
    .m_card_r_ready_o (cardmem_r_ready_o),
    .m_card_aw_o      (cardmem_aw_o),
    .m_card_aw_valid_o(cardmem_aw_valid_o),
    .m_card_aw_ready_i(cardmem_aw_ready_i),
    .m_card_w_o       (cardmem_w_o),
    .m_card_w_valid_o (cardmem_w_valid_o),
    .m_card_w_ready_i (cardmem_w_ready_i),
    .m_card_b_i       (cardmem_b_i),
    .m_card_b_valid_i (cardmem_b_valid_i),
    .m_card_b_ready_o (cardmem_b_ready_o),
    .idle_o           (dma_idle)
  );

  assign still_o = cmdq_still && ringw_still && msix_idle && dma_idle && csr_idle && app_regs_idle && sysmon_idle;
  assign idle_o  = cmdq_idle && ringw_idle && msix_idle && dma_idle;

endmodule
