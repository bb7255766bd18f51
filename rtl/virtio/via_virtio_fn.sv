// SPDX-License-Identifier: Apache-2.0
//
// One virtio function of the card: registers, queue engine, and the personality selected by `Fn`.
//
//   fn_req ── via_virtio_pci ──────────── via_vq ──┬── via_vdev_select ── tx, rx, memory of the disk
//                  └── enable, drained ──────┤     └ requests, responses
//                                            └── host memory
//
// Throughput, latency, order and misuse: those of its parts; nothing is added. R from host memory comes two cycles after its AR was accepted,
// or later. Resets: docs/interfaces.md, section 8.

module via_virtio_fn
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter int unsigned Fn = FnNet  // number of the function: selects the device
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic         [63:0] time_i,            // card time
  input  fn_ctrl_t            ctrl_i,            // settings from the management function
  output logic                flush_o,           // level, of the disk: a flush waits for the host (via_fn_flush)
  input  logic                flush_done_i,      // level while flush_o: it succeeded
  input  logic                flush_failed_i,    // level while flush_o: it failed
  output logic         [ 7:0] status_o,          // device status
  output fn_features_t        features_o,        // features offered and accepted
  // Registers, interrupts, function-level events.
  input  fn_req_t             req_i,             // register access
  input  logic                req_valid_i,       // held until req_rvalid_o
  output logic                req_rvalid_o,      // one-cycle pulse: the access is complete
  output logic         [31:0] req_rdata_o,       // read data, with req_rvalid_o
  input  logic                flr_i,             // one-cycle pulse: function-level reset
  output logic                flr_busy_o,        // level: the reset is in progress
  input  logic                bus_master_i,      // level: Bus Master Enable
  output logic                msix_valid_o,
  output logic         [ 7:0] msix_vector_o,     // MSI-X vector
  input  logic                msix_ready_i,
  output logic                core_rst_no,       // reset of engine and device
  // Host memory.
  output axi_ax_t             m_ar_o,
  output logic                m_ar_valid_o,
  input  logic                m_ar_ready_i,
  input  axi_r_t              m_r_i,
  input  logic                m_r_valid_i,
  output logic                m_r_ready_o,
  output axi_ax_t             m_aw_o,
  output logic                m_aw_valid_o,
  input  logic                m_aw_ready_i,
  output axi_w_t              m_w_o,
  output logic                m_w_valid_o,
  input  logic                m_w_ready_i,
  input  axi_b_t              m_b_i,
  input  logic                m_b_valid_i,
  output logic                m_b_ready_o,
  // Memory of the disk.
  output axi_ax_t             m_mem_ar_o,
  output logic                m_mem_ar_valid_o,
  input  logic                m_mem_ar_ready_i,
  input  axi_r_t              m_mem_r_i,
  input  logic                m_mem_r_valid_i,
  output logic                m_mem_r_ready_o,
  output axi_ax_t             m_mem_aw_o,
  output logic                m_mem_aw_valid_o,
  input  logic                m_mem_aw_ready_i,
  output axi_w_t              m_mem_w_o,
  output logic                m_mem_w_valid_o,
  input  logic                m_mem_w_ready_i,
  input  axi_b_t              m_mem_b_i,
  input  logic                m_mem_b_valid_i,
  output logic                m_mem_b_ready_o,
  // User side.
  output strm_t               tx_o,
  output logic                tx_valid_o,
  input  logic                tx_ready_i,
  input  strm_t               rx_i,
  input  logic                rx_valid_i,
  output logic                rx_ready_o,
  output logic                still_o,           // level: nothing moves unless an input changes
  output logic                idle_o             // level: nothing is in flight
);

  localparam bit WidthOk = param_in("VIA_DATA_W of via_virtio_fn", DataW, 512, 512);
  localparam bit FnOk = param_in("via_virtio_fn Fn", Fn, FnNet, FnInput);

  localparam vdev_t Dev = vdev(Fn);
  localparam int unsigned NumQ = 32'(Dev.queues);

  logic pci_still, vq_still, dev_still, pci_idle, vq_idle, dev_idle;

  // ---------------------------------------------------------------- registers
  logic gate, drained, driver_ok;
  vq_feat_t feat;
  logic [63:0] withhold, negotiated, offered;
  vq_cfg_t queue[NumQ];
  logic [NumQ-1:0] queue_reset, queue_quiet;
  vq_notify_t notify;
  logic notify_valid, irq_valid, irq_ready, engine_error;
  logic [QueueW-1:0] irq_queue;
  logic [9:0] stat_addr;
  logic stat_write;
  logic [31:0] stat_rdata;
  logic [11:0] dev_addr;
  logic dev_write, config_change;
  logic [3:0] dev_strb;
  logic [31:0] dev_wdata, dev_rdata;

  via_virtio_pci #(
    .DeviceType(Dev.device),
    .Class     (Dev.code),
    .NumQ      (NumQ),
    .Features  (Dev.features),
    .Needs     (Dev.needs)
  ) u_pci (
    .clk_i,
    .rst_ni,
    .withhold_i     (withhold),
    .offer_i        (ctrl_i.offer),
    .offered_o      (offered),
    .status_o,
    .req_i,
    .req_valid_i,
    .req_rvalid_o,
    .req_rdata_o,
    .flr_i,
    .flr_busy_o,
    .bus_master_i,
    .gate_o         (gate),
    .drained_i      (drained),
    .core_rst_no,
    .feat_o         (feat),
    .features_o     (negotiated),
    .driver_ok_o    (driver_ok),
    .queue_o        (queue),
    .queue_reset_o  (queue_reset),
    .queue_quiet_i  (queue_quiet),
    .notify_o       (notify),
    .notify_valid_o (notify_valid),
    .irq_valid_i    (irq_valid),
    .irq_queue_i    (irq_queue),
    .irq_ready_o    (irq_ready),
    .error_i        (engine_error),
    .stat_addr_o    (stat_addr),
    .stat_write_o   (stat_write),
    .stat_rdata_i   (stat_rdata),
    .dev_addr_o     (dev_addr),
    .dev_write_o    (dev_write),
    .dev_strb_o     (dev_strb),
    .dev_wdata_o    (dev_wdata),
    .dev_rdata_i    (dev_rdata),
    .config_change_i(config_change),
    .msix_valid_o,
    .msix_vector_o,
    .msix_ready_i,
    .still_o        (pci_still),
    .idle_o         (pci_idle)
  );

  always_ff @(posedge clk_i) features_o <= '{supported: Dev.features | EngineFeatures, offered: offered, negotiated: negotiated};

  // ---------------------------------------------------------------- engine
  logic [NumQ-1:0] waits, avail, in_use, wanting;
  logic [31:0] head_wlen[NumQ], room[NumQ];
  logic [NumQ-1:0] busy;
  logic fail;
  logic [QueueW-1:0] fail_queue;
  vq_req_t req;
  vq_rsp_t rsp;
  vq_beat_t rd, wr;
  logic req_valid, req_ready, rd_valid, rd_ready, rsp_valid, rsp_ready, wr_valid, wr_ready, merged_valid;
  logic [15:0] merged;
  via_vq #(
    .NumQ  (NumQ),
    .AtHand(Dev.at_hand)
  ) u_vq (
    .clk_i,
    .rst_ni        (core_rst_no),
    .enable_i      (gate),
    .drained_o     (drained),
    .time_i,
    .wait_i        (waits),
    .feat_i        (feat),
    .driver_ok_i   (driver_ok),
    .queue_i       (queue),
    .queue_reset_i (queue_reset),
    .queue_quiet_o (queue_quiet),
    .notify_i      (notify),
    .notify_valid_i(notify_valid),
    .moderate_i    (ctrl_i.moderate),
    .look_i        (ctrl_i.look),
    .short_i       (wanting),
    .irq_valid_o   (irq_valid),
    .irq_queue_o   (irq_queue),
    .irq_ready_i   (irq_ready),
    .error_o       (engine_error),
    .error_cause_o (),                                       // counted by the engine
    .error_queue_o (),
    .fail_i        (fail),
    .fail_queue_i  (fail_queue),
    .req_o         (req),
    .req_valid_o   (req_valid),
    .req_ready_i   (req_ready),
    .rd_o          (rd),
    .rd_valid_o    (rd_valid),
    .rd_ready_i    (rd_ready),
    .rsp_i         (rsp),
    .rsp_valid_i   (rsp_valid),
    .rsp_ready_o   (rsp_ready),
    .merged_o      (merged),
    .merged_valid_o(merged_valid),
    .wr_i          (wr),
    .wr_valid_i    (wr_valid),
    .wr_ready_o    (wr_ready),
    .avail_o       (avail),
    .head_wlen_o   (head_wlen),
    .room_o        (room),
    .busy_o        (busy),
    .m_ar_o,
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o,
    .m_aw_o,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_w_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_b_i,
    .m_b_valid_i,
    .m_b_ready_o,
    .user_out_i    (tx_valid_o && tx_ready_i && tx_o.last),
    .user_in_i     (rx_valid_i && rx_ready_o),
    .user_end_i    (rx_valid_i && rx_ready_o && rx_i.last),
    .stat_addr_i   (stat_addr),
    .stat_write_i  (stat_write),
    .stat_rdata_o  (stat_rdata),
    .still_o       (vq_still),
    .idle_o        (vq_idle)
  );

  // ---------------------------------------------------------------- personality
  always_comb begin
    for (int unsigned q = 0; q < NumQ; q++) in_use[q] = queue[q].enable && !queue_reset[q];
  end
  via_vdev_select #(
    .Fn(Fn)
  ) u_dev (
    .clk_i,
    .rst_ni         (core_rst_no),
    .features_i     (negotiated),
    .driver_ok_i    (driver_ok),
    .ctrl_i,
    .flush_o,
    .flush_done_i,
    .flush_failed_i,
    .withhold_o     (withhold),
    .wait_o         (waits),
    .short_o        (wanting),
    .fail_o         (fail),
    .fail_queue_o   (fail_queue),
    .req_i          (req),
    .req_valid_i    (req_valid),
    .req_ready_o    (req_ready),
    .rd_i           (rd),
    .rd_valid_i     (rd_valid),
    .rd_ready_o     (rd_ready),
    .rsp_o          (rsp),
    .rsp_valid_o    (rsp_valid),
    .rsp_ready_i    (rsp_ready),
    .merged_i       (merged),
    .merged_valid_i (merged_valid),
    .wr_o           (wr),
    .wr_valid_o     (wr_valid),
    .wr_ready_i     (wr_ready),
    .in_use_i       (in_use),
    .avail_i        (avail),
    .head_wlen_i    (head_wlen),
    .room_i         (room),
    .busy_i         (busy),
    .dev_addr_i     (dev_addr),
    .dev_write_i    (dev_write),
    .dev_strb_i     (dev_strb),
    .dev_wdata_i    (dev_wdata),
    .dev_rdata_o    (dev_rdata),
    .config_change_o(config_change),
    .tx_o,
    .tx_valid_o,
    .tx_ready_i,
    .rx_i,
    .rx_valid_i,
    .rx_ready_o,
    .m_mem_ar_o,
    .m_mem_ar_valid_o,
    .m_mem_ar_ready_i,
    .m_mem_r_i,
    .m_mem_r_valid_i,
    .m_mem_r_ready_o,
    .m_mem_aw_o,
    .m_mem_aw_valid_o,
    .m_mem_aw_ready_i,
    .m_mem_w_o,
    .m_mem_w_valid_o,
    .m_mem_w_ready_i,
    .m_mem_b_i,
    .m_mem_b_valid_i,
    .m_mem_b_ready_o,
    .still_o        (dev_still),
    .idle_o         (dev_idle)
  );

  // The outputs of engine and device were collected a cycle or two earlier. What passes the gate counts, too: the gate counts it.
  logic pci_still_q, pci_idle_q;
  always_ff @(posedge clk_i) begin
    pci_still_q <= pci_still;
    pci_idle_q <= pci_idle;
    still_o <= pci_still_q && vq_still && dev_still &&
        ~|{m_ar_valid_o && m_ar_ready_i, m_aw_valid_o && m_aw_ready_i, m_w_valid_o && m_w_ready_i, m_r_valid_i, m_b_valid_i};
    idle_o <= pci_idle_q && vq_idle && dev_idle;
  end

endmodule
