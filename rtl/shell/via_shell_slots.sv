// SPDX-License-Identifier: Apache-2.0
//
// The slots: a port for each, its control and commands from the management function, its streams from and to movers and via_vio_switch, its
// memory accesses, and those of a disk, to the crossbar. On the app's side the ports are the flat wires of docs/interfaces.md, section 3.
//
// Throughput, latency, order and what happens to an app that breaks a rule are those of via_slot_port.

module via_shell_slots
  import via_pkg::*;
#(
  localparam int unsigned NS = NumStreams,
  localparam int unsigned NumApp = NumSlots * VioStreams
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  input  logic         [        31:0] chan_mib_i,                       // size of each DRAM channel in MiB
  input  logic         [        31:0] time_i,                           // card time, the lower half
  // Slots: the ports of via_slot, directions exchanged. Stream k is in bits [k*W +: W].
  output logic                        slot_rst_no       [NumSlots],
  output logic         [      NS-1:0] slot_s_valid_o    [NumSlots],
  input  logic         [      NS-1:0] slot_s_ready_i    [NumSlots],
  output logic         [NS*DataW-1:0] slot_s_data_o     [NumSlots],
  output logic         [NS*StrbW-1:0] slot_s_keep_o     [NumSlots],
  output logic         [      NS-1:0] slot_s_last_o     [NumSlots],
  output logic         [    NS*8-1:0] slot_s_id_o       [NumSlots],
  input  logic         [      NS-1:0] slot_m_valid_i    [NumSlots],
  output logic         [      NS-1:0] slot_m_ready_o    [NumSlots],
  input  logic         [NS*DataW-1:0] slot_m_data_i     [NumSlots],
  input  logic         [NS*StrbW-1:0] slot_m_keep_i     [NumSlots],
  input  logic         [      NS-1:0] slot_m_last_i     [NumSlots],
  input  logic         [    NS*8-1:0] slot_m_id_i       [NumSlots],
  input  logic         [     IdW-1:0] slot_arid_i       [NumSlots],
  input  logic         [     VaW-1:0] slot_araddr_i     [NumSlots],
  input  logic         [         7:0] slot_arlen_i      [NumSlots],
  input  logic         [         2:0] slot_arsize_i     [NumSlots],
  input  logic         [         1:0] slot_arburst_i    [NumSlots],
  input  logic                        slot_arvalid_i    [NumSlots],
  output logic                        slot_arready_o    [NumSlots],
  output logic         [     IdW-1:0] slot_rid_o        [NumSlots],
  output logic         [   DataW-1:0] slot_rdata_o      [NumSlots],
  output logic         [         1:0] slot_rresp_o      [NumSlots],
  output logic                        slot_rlast_o      [NumSlots],
  output logic                        slot_rvalid_o     [NumSlots],
  input  logic                        slot_rready_i     [NumSlots],
  input  logic         [     IdW-1:0] slot_awid_i       [NumSlots],
  input  logic         [     VaW-1:0] slot_awaddr_i     [NumSlots],
  input  logic         [         7:0] slot_awlen_i      [NumSlots],
  input  logic         [         2:0] slot_awsize_i     [NumSlots],
  input  logic         [         1:0] slot_awburst_i    [NumSlots],
  input  logic                        slot_awvalid_i    [NumSlots],
  output logic                        slot_awready_o    [NumSlots],
  input  logic         [   DataW-1:0] slot_wdata_i      [NumSlots],
  input  logic         [   StrbW-1:0] slot_wstrb_i      [NumSlots],
  input  logic                        slot_wlast_i      [NumSlots],
  input  logic                        slot_wvalid_i     [NumSlots],
  output logic                        slot_wready_o     [NumSlots],
  output logic         [     IdW-1:0] slot_bid_o        [NumSlots],
  output logic         [         1:0] slot_bresp_o      [NumSlots],
  output logic                        slot_bvalid_o     [NumSlots],
  input  logic                        slot_bready_i     [NumSlots],
  output logic                        slot_reg_valid_o  [NumSlots],
  output logic                        slot_reg_write_o  [NumSlots],
  output logic         [        11:0] slot_reg_addr_o   [NumSlots],
  output logic         [        31:0] slot_reg_wdata_o  [NumSlots],
  input  logic                        slot_reg_rvalid_i [NumSlots],
  input  logic         [        31:0] slot_reg_rdata_i  [NumSlots],
  input  logic                        slot_reg_err_i    [NumSlots],
  input  logic                        slot_irq_i        [NumSlots],
  input  logic                        slot_busy_i       [NumSlots],
  input  logic         [NumSlots-1:0] slot_loaded_i,                    // an app is in the slot
  // Slots: their control, and what becomes of it.
  input  slot_ctrl_t                  ctrl_i            [NumSlots],
  input  table_cfg_t                  table_i           [NumSlots],
  input  sched_cfg_t                  sched_i           [NumSlots],
  output slot_stat_t                  stat_o            [NumSlots],
  output logic         [        31:0] count_o           [NumSlots][8],  // in the order of the counter registers
  output meter_count_t                meter_o           [NumSlots],     // what they have requested of memory
  output logic         [NumSlots-1:0] first_o,                          // the slot goes first there
  input  logic         [NumSlots-1:0] load_i,                           // an image is being loaded
  // Commands to slots, completions and events from them, and the DMA commands that they pass on.
  input  cmd_t                        cmd_i             [NumSlots],
  input  logic         [NumSlots-1:0] cmd_valid_i,
  output logic         [NumSlots-1:0] cmd_ready_o,
  output cpl_t                        cpl_o             [NumSlots],
  output logic         [NumSlots-1:0] cpl_valid_o,
  input  logic         [NumSlots-1:0] cpl_ready_i,
  output evt_t                        evt_o             [NumSlots],
  output logic         [NumSlots-1:0] evt_valid_o,
  input  logic         [NumSlots-1:0] evt_ready_i,
  output cmd_t                        dma_cmd_o         [NumSlots],
  output logic         [NumSlots-1:0] dma_cmd_valid_o,
  input  logic         [NumSlots-1:0] dma_cmd_ready_i,
  input  cpl_t                        dma_cpl_i,                        // to all slots, valid to one
  input  logic         [NumSlots-1:0] dma_cpl_valid_i,
  output logic         [NumSlots-1:0] dma_cpl_ready_o,
  output logic         [NumSlots-1:0] dma_abort_o,                      // queued DMA commands of the slot end with StAborted
  input  logic         [NumSlots-1:0] cmd_err_i,                        // one pulse: the command ring stopped
  input  logic         [NumSlots-1:0] cmd_err_info_i,                   // with it: why, as EvRing has it
  input  logic         [NumSlots-1:0] cpl_err_i,                        // one pulse: the completion ring stopped
  // Registers of apps, one access at a time.
  input  reg_req_t                    reg_req_i,                        // to all slots, valid to one
  input  logic         [NumSlots-1:0] reg_valid_i,                      // held until the response or the time-out
  output logic         [NumSlots-1:0] reg_open_o,                       // an app is there to answer
  output logic         [NumSlots-1:0] reg_rvalid_o,                     // one pulse: the response
  output logic         [        31:0] reg_rdata_o       [NumSlots],
  output logic         [NumSlots-1:0] reg_err_o,                        // with the response: there is no such register
  input  logic         [NumSlots-1:0] reg_timeout_i,                    // one pulse: the access ended without a response
  // Functions: interrupts of apps.
  output logic         [NumSlots-1:0] fn_irq_o,                         // one pulse: the app's, if it is listened to
  // Streams of via_vio_switch: stream k of slot s is number s * VioStreams + k.
  output logic         [NumSlots-1:0] vio_cut_o,                        // isolated
  input  logic         [  NumApp-1:0] vio_in_on_i,                      // the app's input belongs to the switch
  input  logic         [  NumApp-1:0] vio_out_on_i,                     // its output does
  input  strm_t                       vio_in_i          [  NumApp],     // to the app
  input  logic         [  NumApp-1:0] vio_in_valid_i,
  output logic         [  NumApp-1:0] vio_in_ready_o,
  output strm_t                       vio_out_o         [  NumApp],     // from the app
  output logic         [  NumApp-1:0] vio_out_valid_o,
  input  logic         [  NumApp-1:0] vio_out_ready_i,
  // Disk in the address space of a slot: requests go to all slots, valid to one.
  input  axi_ax_t                     disk_ar_i,
  input  logic         [NumSlots-1:0] disk_ar_valid_i,
  output logic         [NumSlots-1:0] disk_ar_ready_o,
  output axi_r_t                      disk_r_o          [NumSlots],
  output logic         [NumSlots-1:0] disk_r_valid_o,
  input  logic         [NumSlots-1:0] disk_r_ready_i,
  input  axi_ax_t                     disk_aw_i,
  input  logic         [NumSlots-1:0] disk_aw_valid_i,
  output logic         [NumSlots-1:0] disk_aw_ready_o,
  input  axi_w_t                      disk_w_i,
  input  logic         [NumSlots-1:0] disk_w_valid_i,
  output logic         [NumSlots-1:0] disk_w_ready_o,
  input  logic         [NumSlots-1:0] disk_flush_i,                     // one pulse: a flush waits for the host
  output axi_b_t                      disk_b_o          [NumSlots],
  output logic         [NumSlots-1:0] disk_b_valid_o,
  input  logic         [NumSlots-1:0] disk_b_ready_i,
  // Memory, translated: addresses as via_xbar takes them.
  output axi_ax_t                     cardmem_ar_o      [NumSlots],
  output logic         [NumSlots-1:0] cardmem_ar_valid_o,
  input  logic         [NumSlots-1:0] cardmem_ar_ready_i,
  input  axi_r_t                      cardmem_r_i       [NumSlots],
  input  logic         [NumSlots-1:0] cardmem_r_valid_i,
  output logic         [NumSlots-1:0] cardmem_r_ready_o,
  output axi_ax_t                     cardmem_aw_o      [NumSlots],
  output logic         [NumSlots-1:0] cardmem_aw_valid_o,
  input  logic         [NumSlots-1:0] cardmem_aw_ready_i,
  output axi_w_t                      cardmem_w_o       [NumSlots],
  output logic         [NumSlots-1:0] cardmem_w_valid_o,
  input  logic         [NumSlots-1:0] cardmem_w_ready_i,
  input  axi_b_t                      cardmem_b_i       [NumSlots],
  input  logic         [NumSlots-1:0] cardmem_b_valid_i,
  output logic         [NumSlots-1:0] cardmem_b_ready_o,
  // Page tables of all slots in card memory.
  output axi_ax_t                     walk_ar_o,
  output logic                        walk_ar_valid_o,
  input  logic                        walk_ar_ready_i,
  input  axi_r_t                      walk_r_i,
  input  logic                        walk_r_valid_i,
  output logic                        walk_r_ready_o,
  output axi_ax_t                     walk_aw_o,
  output logic                        walk_aw_valid_o,
  input  logic                        walk_aw_ready_i,
  output axi_w_t                      walk_w_o,
  output logic                        walk_w_valid_o,
  input  logic                        walk_w_ready_i,
  input  axi_b_t                      walk_b_i,
  input  logic                        walk_b_valid_i,
  output logic                        walk_b_ready_o,
  output logic                        still_o,                          // nothing moves unless an input changes
  output logic                        idle_o                            // nothing is in flight
);

  logic [NumSlots-1:0] slot_idle, slot_still;

  // ---------------------------------------------------------------- page tables: all slots on one port
  axi_ax_t walk_ar[NumSlots], walk_aw[NumSlots];
  axi_r_t walk_r[NumSlots];
  axi_w_t walk_w[NumSlots];
  axi_b_t walk_b[NumSlots];
  logic [NumSlots-1:0] walk_ar_valid, walk_ar_ready, walk_r_valid, walk_r_ready, walk_aw_valid, walk_aw_ready;
  logic [NumSlots-1:0] walk_w_valid, walk_w_ready, walk_b_valid, walk_b_ready;
  logic walk_still, walk_idle;

  via_axi_mux #(
    .NumRd   (NumSlots),
    .NumWr   (NumSlots),
    .NumFirst(0)
  ) u_walks (
    .clk_i,
    .rst_ni,
    .weight_i('{default: '0}),
    .first_i('{default: '0}),
    .share_i('0),
    .window_i('0),
    .s_ar_i(walk_ar),
    .s_ar_valid_i(walk_ar_valid),
    .s_ar_ready_o(walk_ar_ready),
    .s_r_o(walk_r),
    .s_r_valid_o(walk_r_valid),
    .s_r_ready_i(walk_r_ready),
    .s_aw_i(walk_aw),
    .s_aw_valid_i(walk_aw_valid),
    .s_aw_ready_o(walk_aw_ready),
    .s_w_i(walk_w),
    .s_w_valid_i(walk_w_valid),
    .s_w_ready_o(walk_w_ready),
    .s_b_o(walk_b),
    .s_b_valid_o(walk_b_valid),
    .s_b_ready_i(walk_b_ready),
    .m_ar_o(walk_ar_o),
    .m_ar_valid_o(walk_ar_valid_o),
    .m_ar_ready_i(walk_ar_ready_i),
    .m_r_i(walk_r_i),
    .m_r_valid_i(walk_r_valid_i),
    .m_r_ready_o(walk_r_ready_o),
    .m_aw_o(walk_aw_o),
    .m_aw_valid_o(walk_aw_valid_o),
    .m_aw_ready_i(walk_aw_ready_i),
    .m_w_o(walk_w_o),
    .m_w_valid_o(walk_w_valid_o),
    .m_w_ready_i(walk_w_ready_i),
    .m_b_i(walk_b_i),
    .m_b_valid_i(walk_b_valid_i),
    .m_b_ready_o(walk_b_ready_o),
    .still_o(walk_still),
    .idle_o(walk_idle)
  );


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
      .PageWays(MmuPageWays),
      .PageSets(MmuPageSets),
      .HugeWays(MmuHugeWays),
      .HugeSets(MmuHugeSets)
    ) u_port (
      .clk_i,
      .rst_ni,
      .chan_mib_i,
      .ctrl_i           (ctrl_i[s]),
      .table_i          (table_i[s]),
      .sched_i          (sched_i[s]),
      .time_i,
      .loaded_i         (slot_loaded_i[s]),
      .load_i           (load_i[s]),
      .stat_o           (stat_o[s]),
      .count_o          (count_o[s]),
      .meter_o          (meter_o[s]),
      .first_o          (first_o[s]),
      .cmd_i            (cmd_i[s]),
      .cmd_valid_i      (cmd_valid_i[s]),
      .cmd_ready_o      (cmd_ready_o[s]),
      .cpl_o            (cpl_o[s]),
      .cpl_valid_o      (cpl_valid_o[s]),
      .cpl_ready_i      (cpl_ready_i[s]),
      .dma_cmd_o        (dma_cmd_o[s]),
      .dma_cmd_valid_o  (dma_cmd_valid_o[s]),
      .dma_cmd_ready_i  (dma_cmd_ready_i[s]),
      .dma_cpl_i        (dma_cpl_i),
      .dma_cpl_valid_i  (dma_cpl_valid_i[s]),
      .dma_cpl_ready_o  (dma_cpl_ready_o[s]),
      .dma_abort_o      (dma_abort_o[s]),
      .evt_o            (evt_o[s]),
      .evt_valid_o      (evt_valid_o[s]),
      .evt_ready_i      (evt_ready_i[s]),
      .ring_err_cmd_i   (cmd_err_i[s]),
      .ring_err_info_i  (cmd_err_info_i[s]),
      .ring_err_cpl_i   (cpl_err_i[s]),
      .reg_i            (reg_req_i),
      .reg_valid_i      (reg_valid_i[s]),
      .reg_open_o       (reg_open_o[s]),
      .reg_rvalid_o     (reg_rvalid_o[s]),
      .reg_rdata_o      (reg_rdata_o[s]),
      .reg_err_o        (reg_err_o[s]),
      .reg_timeout_i    (reg_timeout_i[s]),
      .m_ar_o           (cardmem_ar_o[s]),
      .m_ar_valid_o     (cardmem_ar_valid_o[s]),
      .m_ar_ready_i     (cardmem_ar_ready_i[s]),
      .m_r_i            (cardmem_r_i[s]),
      .m_r_valid_i      (cardmem_r_valid_i[s]),
      .m_r_ready_o      (cardmem_r_ready_o[s]),
      .m_aw_o           (cardmem_aw_o[s]),
      .m_aw_valid_o     (cardmem_aw_valid_o[s]),
      .m_aw_ready_i     (cardmem_aw_ready_i[s]),
      .m_w_o            (cardmem_w_o[s]),
      .m_w_valid_o      (cardmem_w_valid_o[s]),
      .m_w_ready_i      (cardmem_w_ready_i[s]),
      .m_b_i            (cardmem_b_i[s]),
      .m_b_valid_i      (cardmem_b_valid_i[s]),
      .m_b_ready_o      (cardmem_b_ready_o[s]),
      .walk_ar_o        (walk_ar[s]),
      .walk_ar_valid_o  (walk_ar_valid[s]),
      .walk_ar_ready_i  (walk_ar_ready[s]),
      .walk_r_i         (walk_r[s]),
      .walk_r_valid_i   (walk_r_valid[s]),
      .walk_r_ready_o   (walk_r_ready[s]),
      .walk_aw_o        (walk_aw[s]),
      .walk_aw_valid_o  (walk_aw_valid[s]),
      .walk_aw_ready_i  (walk_aw_ready[s]),
      .walk_w_o         (walk_w[s]),
      .walk_w_valid_o   (walk_w_valid[s]),
      .walk_w_ready_i   (walk_w_ready[s]),
      .walk_b_i         (walk_b[s]),
      .walk_b_valid_i   (walk_b_valid[s]),
      .walk_b_ready_o   (walk_b_ready[s]),
      .vio_cut_o        (vio_cut_o[s]),
      .vio_in_on_i      (vio_in_on_i[s*VioStreams+:VioStreams]),
      .vio_out_on_i     (vio_out_on_i[s*VioStreams+:VioStreams]),
      .vio_in_i         (vio_in_i[s*VioStreams:s*VioStreams+VioStreams-1]),
      .vio_in_valid_i   (vio_in_valid_i[s*VioStreams+:VioStreams]),
      .vio_in_ready_o   (vio_in_ready_o[s*VioStreams+:VioStreams]),
      .vio_out_o        (vio_out_o[s*VioStreams:s*VioStreams+VioStreams-1]),
      .vio_out_valid_o  (vio_out_valid_o[s*VioStreams+:VioStreams]),
      .vio_out_ready_i  (vio_out_ready_i[s*VioStreams+:VioStreams]),
      .disk_ar_i        (disk_ar_i),
      .disk_ar_valid_i  (disk_ar_valid_i[s]),
      .disk_ar_ready_o  (disk_ar_ready_o[s]),
      .disk_r_o         (disk_r_o[s]),
      .disk_r_valid_o   (disk_r_valid_o[s]),
      .disk_r_ready_i   (disk_r_ready_i[s]),
      .disk_aw_i        (disk_aw_i),
      .disk_aw_valid_i  (disk_aw_valid_i[s]),
      .disk_aw_ready_o  (disk_aw_ready_o[s]),
      .disk_w_i         (disk_w_i),
      .disk_w_valid_i   (disk_w_valid_i[s]),
      .disk_w_ready_o   (disk_w_ready_o[s]),
      .disk_flush_i     (disk_flush_i[s]),
      .disk_b_o         (disk_b_o[s]),
      .disk_b_valid_o   (disk_b_valid_o[s]),
      .disk_b_ready_i   (disk_b_ready_i[s]),
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
      .irq_o            (fn_irq_o[s]),
      .slot_busy_i      (slot_busy_i[s]),
      .still_o          (slot_still[s]),
      .idle_o           (slot_idle[s])
    );
  end

  assign still_o = &slot_still && walk_still;
  assign idle_o  = &slot_idle && walk_idle;

endmodule
