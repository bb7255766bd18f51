// SPDX-License-Identifier: Apache-2.0
//
// The register side of a virtio function: BAR0, configuration space, reset, interrupts (docs/interfaces.md, section 8).
//
//   req ─> access ─┬─ via_virtio_pci_cap     configuration space, window into BAR0
//                  ├─ via_virtio_pci_common  features, status, queues ──────────────> engine
//                  ├─ via_virtio_pci_irq     ISR, MSI-X <──────────────────────────── engine, personality
//                  └─ notifications, device configuration, counters ────────────────> engine, personality
//
// Latency: three cycles from valid to the response of a write, two until it takes effect, one until a notification is passed on, four of a
// read; one more in configuration space, and two more for a notification through the window.
// Throughput: one access at a time. Order: that of the accesses.
// Reset (status written 0, or function-level): shuts the gate, waits until nothing is in flight and the interrupt on offer is accepted,
// holds the core in reset for ResetCycles, and clears the registers; meanwhile accesses complete and writes do nothing.
// Features offered: those of device and engine that the owner's mask contains together with the features they need, and always VERSION_1;
// fixed from the driver's first status bit to the next reset.
// Misuse: an access outside the registers reads 0 and writes nothing; a notification for a queue that does not exist, is not enabled, is
// under reset or has the wrong size is dropped. Every access completes.

module via_virtio_pci
  import via_virtio_pkg::*;
#(
  parameter logic [15:0] DeviceType = 16'd1,  // virtio device type
  parameter logic [23:0] Class = 24'h020000,  // PCI class code
  parameter int unsigned NumQ = 2,  // queues
  parameter logic [63:0] Features = '0,  // of the device; those of the engine are added
  parameter feature_need_t [NeedsMax-1:0] Needs = '0,  // features that need other ones
  parameter int unsigned QSize = QSizeMax  // largest queue size offered
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  fn_req_t                 req_i,                  // register access
  input  logic                    req_valid_i,            // held until req_rvalid_o
  output logic                    req_rvalid_o,           // one-cycle pulse: the access is complete
  output logic       [      31:0] req_rdata_o,            // read data, with req_rvalid_o
  input  logic                    flr_i,                  // one-cycle pulse: function-level reset
  output logic                    flr_busy_o,             // level: the reset is in progress
  input  logic                    bus_master_i,           // level: Bus Master Enable
  output logic                    gate_o,                 // level: the function may begin accesses to host memory
  input  logic                    drained_i,              // level: the gate is shut and nothing is in flight
  output logic                    core_rst_no,            // reset of engine and device
  // engine
  output vq_feat_t                feat_o,                 // negotiated features that the engine depends on
  output logic       [       7:0] status_o,               // device status
  output logic       [      63:0] features_o,             // features accepted; 0 before FEATURES_OK
  output logic                    driver_ok_o,            // level: DRIVER_OK is set
  output vq_cfg_t                 queue_o        [NumQ],  // queues as the driver has set them up
  output logic       [  NumQ-1:0] queue_reset_o,          // level until quiet; `enable` falls with it
  input  logic       [  NumQ-1:0] queue_quiet_i,          // level: nothing of the queue is in flight
  output vq_notify_t              notify_o,               // with notify_valid_o: the notification
  output logic                    notify_valid_o,         // pulse
  input  logic                    irq_valid_i,
  input  logic       [QueueW-1:0] irq_queue_i,            // queue whose interrupt it is
  output logic                    irq_ready_o,
  input  logic                    error_i,                // one-cycle pulse: a queue has failed, DEVICE_NEEDS_RESET
  output logic       [       9:0] stat_addr_o,            // counter register, held during the access
  output logic                    stat_write_o,           // pulse
  input  logic       [      31:0] stat_rdata_i,           // its value
  // personality
  input  logic       [      63:0] withhold_i,             // features not offered now
  input  logic       [      63:0] offer_i,                // the owner's mask; a change takes effect with the next reset
  output logic       [      63:0] offered_o,              // features offered
  output logic       [      11:0] dev_addr_o,             // device configuration: byte address
  output logic                    dev_write_o,            // pulse
  output logic       [       3:0] dev_strb_o,             // bytes written
  output logic       [      31:0] dev_wdata_o,            // data to write
  input  logic       [      31:0] dev_rdata_i,            // read data
  input  logic                    config_change_i,        // one-cycle pulse: the device configuration has changed
  output logic                    msix_valid_o,
  output logic       [       7:0] msix_vector_o,          // MSI-X vector
  input  logic                    msix_ready_i,
  output logic                    still_o,                // level: nothing moves unless an input changes
  output logic                    idle_o                  // level: no access, no reset, no interrupt is in progress
);

  localparam bit DeviceTypeOk = via_pkg::param_in("via_virtio_pci DeviceType", 32'(DeviceType), 1, 63);
  localparam bit NumQOk = via_pkg::param_in("via_virtio_pci NumQ", NumQ, 1, QueuesMax);
  localparam bit QSizeOk = via_pkg::param_pow2("via_virtio_pci QSize", QSize, 2, 32768);

  localparam int unsigned ResetCycles = 8;

  // ---------------------------------------------------------------- reset
  typedef enum logic [1:0] {
    Run,
    Drain,  // no new access to host memory, wait for those in flight
    Clear   // the core is in reset
  } reset_e;
  reset_e rst_q;
  logic [$clog2(ResetCycles)-1:0] count_q;
  logic flr_q, core_q, want_reset, running, clear, clear_fn, msix_busy;

  assign running  = rst_q == Run;
  assign clear    = rst_q == Clear;
  assign clear_fn = clear && flr_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rst_q   <= Clear;
      flr_q   <= 1'b1;
      core_q  <= 1'b0;
      count_q <= '0;
    end else begin
      unique case (rst_q)
        Run: if (want_reset || flr_i) rst_q <= Drain;
        Drain: begin
          count_q <= '0;
          if (drained_i && !msix_busy) begin
            rst_q  <= Clear;
            core_q <= 1'b0;
          end
        end
        default: begin
          count_q <= flr_i ? '0 : count_q + 1'b1;
          if (&count_q && !flr_i) begin
            rst_q  <= Run;
            flr_q  <= 1'b0;
            core_q <= 1'b1;
          end
        end
      endcase
      if (flr_i) flr_q <= 1'b1;
    end
  end

  logic gate_q;
  always_ff @(posedge clk_i) gate_q <= bus_master_i && running && rst_ni;
  assign gate_o = gate_q;
  assign core_rst_no = core_q;
  assign flr_busy_o = flr_q;

  // ---------------------------------------------------------------- access
  logic at_common, at_isr, at_device, at_notify, at_stat, bar;
  // Wait: nothing; Map: an access through the window becomes one to BAR0; Look: decode; Do: carry out; Fetch: align the read data; Response:
  // respond.
  typedef enum logic [2:0] {
    Wait,
    Map,
    Look,
    Do,
    Fetch,
    Response
  } access_e;
  access_e acc_q;
  fn_req_t req_q, asked;  // asked: the request that is compared with the addresses of notifications
  logic [31:0] rdata, rdata_q;
  logic [3:0] keep_q;  // bytes of the response
  logic [1:0] shift_q;  // bytes by which they move down
  // Target of the access, in the cycle of Do.
  logic common_write_q, device_write_q, stat_write_q, at_common_q, at_isr_q, at_device_q, at_stat_q, isr_read_q, dev_read_q;
  logic notify_q;
  logic stat_q;  // the response comes from the counters
  logic [31:0] response, response_keep, response_q;
  logic [NumQ-1:0] named;  // the queue that the notification names
  logic whole, asks;
  logic mapped_q;  // the state was Map

  logic win_hit, win_ok, cap_write;
  logic [15:0] win_addr;
  logic [31:0] win_wdata, cap_rdata;
  logic [3:0] win_strb, win_keep;
  logic [1:0] win_shift;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) acc_q <= Wait;
    else begin
      unique case (acc_q)
        Wait:    if (req_valid_i) acc_q <= req_i.cfg ? Map : Look;
        Map:     acc_q <= Look;
        Look:    acc_q <= Do;
        Do:      acc_q <= req_q.write ? Response : Fetch;
        Fetch:   acc_q <= Response;
        default: acc_q <= Wait;
      endcase
    end
  end
  always_ff @(posedge clk_i) mapped_q <= acc_q == Map;

  always_ff @(posedge clk_i) begin
    if (acc_q == Wait && req_valid_i) begin
      req_q <= req_i;
      // A read without byte enables returns the whole word.
      if (!req_i.write && req_i.strb == '0) req_q.strb <= '1;
      keep_q  <= '1;
      shift_q <= '0;
    end
    if (acc_q == Map && req_q.cfg && win_hit) begin
      if (win_ok) begin
        req_q.cfg   <= 1'b0;
        req_q.addr  <= win_addr;
        req_q.strb  <= win_strb;
        req_q.wdata <= win_wdata;
        shift_q     <= win_shift;
        keep_q      <= win_keep;
      end else begin
        keep_q <= '0;
      end
    end
    if (acc_q == Do) begin
      rdata_q <= rdata;
      stat_q  <= at_stat_q;
    end
    if (acc_q == Fetch) response_q <= response & response_keep;
  end

  // ---------------------------------------------------------------- decode
  logic [31:0] common_rdata;
  logic [ 1:0] isr;
  assign bar = !req_q.cfg;
  assign at_common = bar && req_q.addr[15:6] == BarCommon[15:6];
  assign at_isr = bar && req_q.addr[15:2] == BarIsr[15:2];
  assign at_device = bar && req_q.addr[15:12] == BarDevice[15:12];
  assign at_stat = bar && req_q.addr[15:12] == BarStat[15:12];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {common_write_q, device_write_q, stat_write_q, isr_read_q, dev_read_q, notify_q} <= '0;
    end else begin
      common_write_q <= acc_q == Look && req_q.write && at_common;
      device_write_q <= acc_q == Look && req_q.write && at_device;
      stat_write_q   <= acc_q == Look && req_q.write && at_stat;
      isr_read_q     <= acc_q == Look && !req_q.write && at_isr && req_q.strb[0];
      dev_read_q     <= acc_q == Look && !req_q.write && at_device;
      notify_q       <= asks && asked.write && at_notify && whole && |named;
    end
  end
  always_ff @(posedge clk_i) begin
    if (acc_q == Look) begin
      at_common_q <= at_common;
      at_isr_q    <= at_isr;
      at_device_q <= at_device;
      at_stat_q   <= at_stat;
    end
  end
  assign cap_write = acc_q == Map && req_q.write && req_q.cfg && running;

  always_comb begin
    rdata = '0;
    if (req_q.cfg) rdata = cap_rdata;
    else if (at_common_q) rdata = common_rdata;
    else if (at_isr_q) rdata = 32'(isr);
    else if (at_device_q) rdata = dev_rdata_i;
  end

  // Move the requested bytes down, and return only these.
  assign response = (stat_q ? stat_rdata_i : rdata_q) >> {shift_q, 3'b000};
  for (genvar b = 0; b < 4; b++) begin : gen_keep
    assign response_keep[8*b+:8] = {8{keep_q[b]}};
  end
  assign req_rvalid_o = acc_q == Response;
  assign req_rdata_o  = response_q;

  // ---------------------------------------------------------------- configuration space
  via_virtio_pci_cap #(
    .DeviceType(DeviceType),
    .Class     (Class),
    .NumQ      (NumQ)
  ) u_cap (
    .clk_i,
    .clear_i    (clear_fn),
    .addr_i     ({req_q.addr[7:2], 2'b00}),
    .write_i    (cap_write),
    .strb_i     (req_q.strb),
    .wdata_i    (req_q.wdata),
    .rdata_o    (cap_rdata),
    .win_hit_o  (win_hit),
    .win_ok_o   (win_ok),
    .win_addr_o (win_addr),
    .win_strb_o (win_strb),
    .win_wdata_o(win_wdata),
    .win_shift_o(win_shift),
    .win_keep_o (win_keep)
  );

  // ---------------------------------------------------------------- common configuration
  logic error, change;
  logic [NumQ-1:0] quiet, queue_busy;
  logic [7:0] vector[NumQ+1];
  // Outputs of the core count only while it runs; a queue is quiet only once its interrupt on offer is accepted.
  assign error  = error_i && running;
  assign change = config_change_i && running;
  assign quiet  = queue_quiet_i & {NumQ{!msix_busy}};

  via_virtio_pci_common #(
    .NumQ (NumQ),
    .QSize(QSize),
    .Needs(Needs)
  ) u_common (
    .clk_i,
    .clear_i        (clear),
    .resetting_i    (!running),
    .offer_i        (features_served((Features | EngineFeatures) & (offer_i | 64'b1 << FVersion1), Needs)),
    .withhold_i,
    .offered_o,
    .reset_o        (want_reset),
    .write_i        (common_write_q && running),
    .addr_i         ({req_q.addr[5:2], 2'b00}),
    .strb_i         (req_q.strb),
    .wdata_i        (req_q.wdata),
    .rdata_o        (common_rdata),
    .status_o,
    .features_o,
    .driver_ok_o,
    .queue_o,
    .queue_reset_o,
    .queue_quiet_i  (quiet),
    .queue_busy_o   (queue_busy),
    .vector_o       (vector),
    .error_i        (error),
    .config_change_i(change),
    .dev_read_i     (dev_read_q)
  );

  always_comb begin
    feat_o.event_idx   = features_o[FEventIdx];
    feat_o.indirect    = features_o[FIndirectDesc];
    feat_o.packed_ring = features_o[FRingPacked];
    feat_o.in_order    = features_o[FInOrder];
    feat_o.notif_data  = features_o[FNotificationData];
  end

  // ---------------------------------------------------------------- notifications
  // Decoded as the access comes, without waiting for the state Look, except through the window.
  assign asked = (acc_q == Wait) ? req_i : req_q;
  assign asks = (acc_q == Wait && req_valid_i || acc_q == Look && mapped_q) && !asked.cfg;
  assign at_notify = asked.addr[15:12] == BarNotify[15:12] && asked.addr[11:2] < 10'(NumQ);
  for (genvar q = 0; q < NumQ; q++) begin : gen_named
    assign named[q] = asked.wdata[15:0] == 16'(q) && queue_o[q].enable && !queue_reset_o[q];
  end
  assign whole = feat_o.notif_data ? &asked.strb : &asked.strb[1:0];
  assign notify_valid_o = notify_q && running;
  assign notify_o = '{queue: req_q.wdata[QueueW-1:0], wrap: req_q.wdata[31], offset: req_q.wdata[30:16]};

  // ---------------------------------------------------------------- registers of other blocks
  assign stat_addr_o = req_q.addr[11:2];
  assign stat_write_o = stat_write_q && running;
  assign dev_addr_o = {req_q.addr[11:2], 2'b00};
  assign dev_write_o = device_write_q && running;
  assign dev_strb_o = req_q.strb;
  assign dev_wdata_o = req_q.wdata;

  // ---------------------------------------------------------------- interrupts
  logic irq_still, irq_idle;
  assign irq_ready_o = 1'b1;
  via_virtio_pci_irq #(
    .NumQ(NumQ)
  ) u_irq (
    .clk_i,
    .rst_ni,
    .clear_i     (!running),
    .bus_master_i,
    .set_valid_i (irq_valid_i && running),
    .set_queue_i (irq_queue_i),
    .set_config_i((error || change) && driver_ok_o),
    .forget_i    (queue_reset_o),
    .vector_i    (vector),
    .isr_o       (isr),
    .isr_read_i  (isr_read_q),
    .msix_valid_o,
    .msix_vector_o,
    .msix_ready_i,
    .busy_o      (msix_busy),
    .still_o     (irq_still),
    .idle_o      (irq_idle)
  );

  assign still_o = running && acc_q == Wait && irq_still && ~|{req_valid_i, flr_i, irq_valid_i, error_i, config_change_i, queue_busy};
  assign idle_o  = still_o && irq_idle && queue_reset_o == '0;

  if (!features_whole(Features | EngineFeatures, Needs)) begin : gen_offer_error
    $error("a feature is offered without one that it needs");
  end

endmodule
