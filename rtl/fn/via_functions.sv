// SPDX-License-Identifier: Apache-2.0
//
// All functions of the card besides the management function: instantiates them, routes register accesses to them, merges their interrupts,
// and counts the messages of their user sides, which via_vio_switch connects. Number f is at index f of every port.
//
// Register accesses: one at a time; valid is held until rvalid_o. Latency: that of the function and one cycle. Throughput and order of
// data: those of the functions. Misuse: an access to a function that the card does not have reads all ones.
// VIA_FN_MASK (macro, bit f = function f) leaves functions out of a build; so does a data path that is not 512 bits wide, as the queue
// engine reads descriptors in lines of 64 bytes.

module via_functions
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter  logic        [NumFn:0] FnMask  = FnBuilt,
  localparam int unsigned           NumUser = FnInput   // functions with a user side
) (
  // Without functions most inputs are ignored.
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic                        clk_i,
  input  logic                        rst_ni,
  input  logic         [        63:0] time_i,                           // card time
  input  logic         [        31:0] chan_mib_i,                       // size of each DRAM channel in MiB, constant
  // management registers
  input  fn_ctrl_t                    ctrl_i           [  NumFn:1],     // settings of each function
  output logic         [     NumFn:1] present_o,                        // constant: the function is in this build
  output logic         [         7:0] status_o         [  NumFn:1],     // virtio device status
  output fn_features_t                features_o       [  NumFn:1],     // virtio features offered and accepted
  output logic         [        31:0] count_o          [  NumFn:1][3],  // message counters of via_fn_user
  output logic         [        15:0] flushes_o        [  NumFn:1],     // number of the latest flush that the host must do
  // accesses from the host
  input  fn_req_t                     fn_req_i,                         // address, data and function of the access
  input  logic                        fn_valid_i,                       // held until fn_rvalid_o
  output logic                        fn_rvalid_o,                      // one-cycle pulse: the access is complete
  output logic         [        31:0] fn_rdata_o,                       // read data, with fn_rvalid_o
  input  logic         [     NumFn:1] fn_flr_i,                         // pulse: function-level reset
  output logic         [     NumFn:1] fn_flr_busy_o,                    // level: the reset is in progress
  input  logic         [     NumFn:1] fn_bus_master_i,                  // level: Bus Master Enable of the PCI command register
  output logic                        fn_msix_valid_o,
  output logic         [     FnW-1:0] fn_msix_fn_o,                     // function that sends the message
  output logic         [         7:0] fn_msix_vector_o,                 // its vector
  input  logic                        fn_msix_ready_i,
  // host memory: function f at index f - 1
  output axi_ax_t                     m_ar_o           [    NumFn],
  output logic         [   NumFn-1:0] m_ar_valid_o,
  input  logic         [   NumFn-1:0] m_ar_ready_i,
  input  axi_r_t                      m_r_i            [    NumFn],
  input  logic         [   NumFn-1:0] m_r_valid_i,
  output logic         [   NumFn-1:0] m_r_ready_o,
  output axi_ax_t                     m_aw_o           [    NumFn],
  output logic         [   NumFn-1:0] m_aw_valid_o,
  input  logic         [   NumFn-1:0] m_aw_ready_i,
  output axi_w_t                      m_w_o            [    NumFn],
  output logic         [   NumFn-1:0] m_w_valid_o,
  input  logic         [   NumFn-1:0] m_w_ready_i,
  input  axi_b_t                      m_b_i            [    NumFn],
  input  logic         [   NumFn-1:0] m_b_valid_i,
  output logic         [   NumFn-1:0] m_b_ready_o,
  // card memory, of XDMA: addresses as via_xbar expects them
  output axi_ax_t                     m_card_ar_o,
  output logic                        m_card_ar_valid_o,
  input  logic                        m_card_ar_ready_i,
  input  axi_r_t                      m_card_r_i,
  input  logic                        m_card_r_valid_i,
  output logic                        m_card_r_ready_o,
  output axi_ax_t                     m_card_aw_o,
  output logic                        m_card_aw_valid_o,
  input  logic                        m_card_aw_ready_i,
  output axi_w_t                      m_card_w_o,
  output logic                        m_card_w_valid_o,
  input  logic                        m_card_w_ready_i,
  input  axi_b_t                      m_card_b_i,
  input  logic                        m_card_b_valid_i,
  output logic                        m_card_b_ready_o,
  // user BAR of XDMA: a register of the app in a slot; valid is held until rvalid
  output reg_req_t                    user_req_o,                       // register access
  output logic         [         3:0] user_slot_o,                      // slot it is for
  output logic                        user_valid_o,
  input  logic                        user_rvalid_i,                    // one-cycle pulse: the access is complete
  input  logic         [        31:0] user_rdata_i,                     // read data, with user_rvalid_i
  // user sides, to via_vio_switch
  output logic         [   NumUser:1] core_rst_no,                      // reset of the function
  output strm_t                       tx_o             [NumUser:1],
  output logic         [   NumUser:1] tx_valid_o,
  input  logic         [   NumUser:1] tx_ready_i,
  input  strm_t                       rx_i             [NumUser:1],
  input  logic         [   NumUser:1] rx_valid_i,
  output logic         [   NumUser:1] rx_ready_o,
  input  logic         [   NumUser:1] gone_i,                           // level: no response comes to what was sent
  input  logic         [         1:0] short_i          [NumUser:1],     // messages from and to the function cut short in an earlier cycle
  // slots: interrupts, and the disk's memory port
  input  logic         [NumSlots-1:0] slot_irq_i,                       // one-cycle pulses: user interrupts of XDMA
  output axi_ax_t                     disk_ar_o,
  output logic         [NumSlots-1:0] disk_ar_valid_o,
  input  logic         [NumSlots-1:0] disk_ar_ready_i,
  input  axi_r_t                      disk_r_i         [ NumSlots],
  input  logic         [NumSlots-1:0] disk_r_valid_i,
  output logic         [NumSlots-1:0] disk_r_ready_o,
  output axi_ax_t                     disk_aw_o,
  output logic         [NumSlots-1:0] disk_aw_valid_o,
  input  logic         [NumSlots-1:0] disk_aw_ready_i,
  output axi_w_t                      disk_w_o,
  output logic         [NumSlots-1:0] disk_w_valid_o,
  input  logic         [NumSlots-1:0] disk_w_ready_i,
  output logic         [NumSlots-1:0] disk_flush_o,                     // pulse: a flush waits for the host
  input  axi_b_t                      disk_b_i         [ NumSlots],
  input  logic         [NumSlots-1:0] disk_b_valid_i,
  output logic         [NumSlots-1:0] disk_b_ready_o,
  output logic                        still_o,                          // nothing moves unless an input changes
  output logic                        idle_o                            // level: no access, message or burst is in progress
  /* verilator lint_on UNUSEDSIGNAL */
);

  localparam logic [NumFn:0] Present = functions_of(FnMask);

  // ---------------------------------------------------------------- accesses
  // The response comes from a register; the request is still valid in that cycle and is masked then.
  logic [NumFn:1] req_valid, rvalid, here;
  logic [31:0] rdata[NumFn:1], response;
  logic rvalid_q;
  logic [NumFn:1] flr_busy, flr_busy_q;

  always_comb begin
    response = '1;
    for (int unsigned f = 1; f <= NumFn; f++) begin
      here[f] = fn_req_i.fn == FnW'(f);
      req_valid[f] = fn_valid_i && !rvalid_q && here[f];
      if (here[f]) response = rdata[f];
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rvalid_q   <= 1'b0;
      flr_busy_q <= '0;
    end else begin
      rvalid_q   <= fn_valid_i && !rvalid_q && ((rvalid & here) != '0 || here == '0);
      flr_busy_q <= fn_flr_i | flr_busy;
    end
  end
  always_ff @(posedge clk_i) if (fn_valid_i && !rvalid_q) fn_rdata_o <= response;
  assign fn_rvalid_o   = rvalid_q;
  assign fn_flr_busy_o = flr_busy_q;

  // ---------------------------------------------------------------- functions
  logic [NumFn:1] fn_still, fn_idle, msix_valid, msix_ready;
  logic [7:0] msix_vector[NumFn:1];
  // User sides; those above NumUser are not connected, and without functions nothing is.
  /* verilator lint_off UNUSEDSIGNAL */
  logic [NumFn:1] core_rst_n, tx_valid, rx_ready, flush;
  strm_t tx[NumFn:1];
  logic [NumFn:1] tx_ready, rx_valid;
  strm_t rx[NumFn:1];
  logic [NumUser:1] user_still, user_idle;

  logic flush_done, flush_failed, flush_evt, flush_still;
  logic [15:0] user_irq, user_irq_ack;
  logic irqs_still;

  // The disk's memory port, before the slot is selected.
  axi_ax_t mem_ar;
  logic mem_ar_valid, mem_ar_ready;
  axi_r_t mem_r;
  logic mem_r_valid, mem_r_ready;
  axi_ax_t mem_aw;
  logic mem_aw_valid, mem_aw_ready;
  axi_w_t mem_w;
  logic mem_w_valid, mem_w_ready;
  axi_b_t mem_b;
  logic mem_b_valid, mem_b_ready;
  /* verilator lint_on UNUSEDSIGNAL */

  assign present_o = Present[NumFn:1];

  for (genvar f = 1; f <= NumFn; f++) begin : gen_fn
    localparam int unsigned H = f - 1;  // index of its manager

    fn_ctrl_t ctrl;
    always_comb begin
      ctrl = ctrl_i[f];
      // A disk whose store is in a slot that the card does not have gets no sectors.
      if (32'(ctrl.store) >= NumSlots) ctrl.sectors = '0;
    end

    // A second manager: the disk's store, XDMA's card memory; the other functions have none.
    /* verilator lint_off UNUSEDSIGNAL */
    axi_ax_t d_ar;
    logic d_ar_valid;
    logic d_r_ready;
    axi_ax_t d_aw;
    logic d_aw_valid;
    axi_w_t d_w;
    logic d_w_valid;
    logic d_b_ready;
    /* verilator lint_on UNUSEDSIGNAL */
    logic d_ar_ready;
    axi_r_t d_r;
    logic d_r_valid;
    logic d_aw_ready;
    logic d_w_ready;
    axi_b_t d_b;
    logic d_b_valid;

    if (!Present[f]) begin : gen_none
      via_fn_none u_fn (
        .clk_i,
        .rst_ni,
        .time_i,
        .req_i           (fn_req_i),
        .req_valid_i     (req_valid[f]),
        .req_rvalid_o    (rvalid[f]),
        .req_rdata_o     (rdata[f]),
        .flr_i           (fn_flr_i[f]),
        .flr_busy_o      (flr_busy[f]),
        .bus_master_i    (fn_bus_master_i[f]),
        .msix_valid_o    (msix_valid[f]),
        .msix_vector_o   (msix_vector[f]),
        .msix_ready_i    (msix_ready[f]),
        .m_ar_o          (m_ar_o[H]),
        .m_ar_valid_o    (m_ar_valid_o[H]),
        .m_ar_ready_i    (m_ar_ready_i[H]),
        .m_r_i           (m_r_i[H]),
        .m_r_valid_i     (m_r_valid_i[H]),
        .m_r_ready_o     (m_r_ready_o[H]),
        .m_aw_o          (m_aw_o[H]),
        .m_aw_valid_o    (m_aw_valid_o[H]),
        .m_aw_ready_i    (m_aw_ready_i[H]),
        .m_w_o           (m_w_o[H]),
        .m_w_valid_o     (m_w_valid_o[H]),
        .m_w_ready_i     (m_w_ready_i[H]),
        .m_b_i           (m_b_i[H]),
        .m_b_valid_i     (m_b_valid_i[H]),
        .m_b_ready_o     (m_b_ready_o[H]),
        .m_mem_ar_o      (d_ar),
        .m_mem_ar_valid_o(d_ar_valid),
        .m_mem_ar_ready_i(d_ar_ready),
        .m_mem_r_i       (d_r),
        .m_mem_r_valid_i (d_r_valid),
        .m_mem_r_ready_o (d_r_ready),
        .m_mem_aw_o      (d_aw),
        .m_mem_aw_valid_o(d_aw_valid),
        .m_mem_aw_ready_i(d_aw_ready),
        .m_mem_w_o       (d_w),
        .m_mem_w_valid_o (d_w_valid),
        .m_mem_w_ready_i (d_w_ready),
        .m_mem_b_i       (d_b),
        .m_mem_b_valid_i (d_b_valid),
        .m_mem_b_ready_o (d_b_ready),
        .ctrl_i          (ctrl),
        .flush_o         (flush[f]),
        .flush_done_i    (flush_done && f == FnBlk),
        .flush_failed_i  (flush_failed && f == FnBlk),
        .status_o        (status_o[f]),
        .features_o      (features_o[f]),
        .core_rst_no     (core_rst_n[f]),
        .tx_o            (tx[f]),
        .tx_valid_o      (tx_valid[f]),
        .tx_ready_i      (tx_ready[f]),
        .rx_i            (rx[f]),
        .rx_valid_i      (rx_valid[f]),
        .rx_ready_o      (rx_ready[f]),
        .still_o         (fn_still[f]),
        .idle_o          (fn_idle[f])
      );
    end else if (f == FnXdma) begin : gen_xdma
      via_xdma u_fn (
        .clk_i,
        .rst_ni,
        .time_i,
        .chan_mib_i,
        .req_i            (fn_req_i),
        .req_valid_i      (req_valid[f]),
        .req_rvalid_o     (rvalid[f]),
        .req_rdata_o      (rdata[f]),
        .flr_i            (fn_flr_i[f]),
        .flr_busy_o       (flr_busy[f]),
        .bus_master_i     (fn_bus_master_i[f]),
        .msix_valid_o     (msix_valid[f]),
        .msix_vector_o    (msix_vector[f]),
        .msix_ready_i     (msix_ready[f]),
        .user_irq_i       (user_irq),
        .user_irq_ack_o   (user_irq_ack),
        .user_req_o,
        .user_slot_o,
        .user_valid_o,
        .user_rvalid_i,
        .user_rdata_i,
        .m_ar_o           (m_ar_o[H]),
        .m_ar_valid_o     (m_ar_valid_o[H]),
        .m_ar_ready_i     (m_ar_ready_i[H]),
        .m_r_i            (m_r_i[H]),
        .m_r_valid_i      (m_r_valid_i[H]),
        .m_r_ready_o      (m_r_ready_o[H]),
        .m_aw_o           (m_aw_o[H]),
        .m_aw_valid_o     (m_aw_valid_o[H]),
        .m_aw_ready_i     (m_aw_ready_i[H]),
        .m_w_o            (m_w_o[H]),
        .m_w_valid_o      (m_w_valid_o[H]),
        .m_w_ready_i      (m_w_ready_i[H]),
        .m_b_i            (m_b_i[H]),
        .m_b_valid_i      (m_b_valid_i[H]),
        .m_b_ready_o      (m_b_ready_o[H]),
        .m_card_ar_o      (d_ar),
        .m_card_ar_valid_o(d_ar_valid),
        .m_card_ar_ready_i(d_ar_ready),
        .m_card_r_i       (d_r),
        .m_card_r_valid_i (d_r_valid),
        .m_card_r_ready_o (d_r_ready),
        .m_card_aw_o      (d_aw),
        .m_card_aw_valid_o(d_aw_valid),
        .m_card_aw_ready_i(d_aw_ready),
        .m_card_w_o       (d_w),
        .m_card_w_valid_o (d_w_valid),
        .m_card_w_ready_i (d_w_ready),
        .m_card_b_i       (d_b),
        .m_card_b_valid_i (d_b_valid),
        .m_card_b_ready_o (d_b_ready),
        .still_o          (fn_still[f]),
        .idle_o           (fn_idle[f])
      );
      assign status_o[f] = '0;
      assign features_o[f] = '0;
      assign {core_rst_n[f], tx_valid[f], rx_ready[f], flush[f]} = '0;
      assign tx[f] = '0;
    end else begin : gen_virtio
      via_virtio_fn #(
        .Fn(f)
      ) u_fn (
        .clk_i,
        .rst_ni,
        .time_i,
        .req_i           (fn_req_i),
        .req_valid_i     (req_valid[f]),
        .req_rvalid_o    (rvalid[f]),
        .req_rdata_o     (rdata[f]),
        .flr_i           (fn_flr_i[f]),
        .flr_busy_o      (flr_busy[f]),
        .bus_master_i    (fn_bus_master_i[f]),
        .msix_valid_o    (msix_valid[f]),
        .msix_vector_o   (msix_vector[f]),
        .msix_ready_i    (msix_ready[f]),
        .m_ar_o          (m_ar_o[H]),
        .m_ar_valid_o    (m_ar_valid_o[H]),
        .m_ar_ready_i    (m_ar_ready_i[H]),
        .m_r_i           (m_r_i[H]),
        .m_r_valid_i     (m_r_valid_i[H]),
        .m_r_ready_o     (m_r_ready_o[H]),
        .m_aw_o          (m_aw_o[H]),
        .m_aw_valid_o    (m_aw_valid_o[H]),
        .m_aw_ready_i    (m_aw_ready_i[H]),
        .m_w_o           (m_w_o[H]),
        .m_w_valid_o     (m_w_valid_o[H]),
        .m_w_ready_i     (m_w_ready_i[H]),
        .m_b_i           (m_b_i[H]),
        .m_b_valid_i     (m_b_valid_i[H]),
        .m_b_ready_o     (m_b_ready_o[H]),
        .m_mem_ar_o      (d_ar),
        .m_mem_ar_valid_o(d_ar_valid),
        .m_mem_ar_ready_i(d_ar_ready),
        .m_mem_r_i       (d_r),
        .m_mem_r_valid_i (d_r_valid),
        .m_mem_r_ready_o (d_r_ready),
        .m_mem_aw_o      (d_aw),
        .m_mem_aw_valid_o(d_aw_valid),
        .m_mem_aw_ready_i(d_aw_ready),
        .m_mem_w_o       (d_w),
        .m_mem_w_valid_o (d_w_valid),
        .m_mem_w_ready_i (d_w_ready),
        .m_mem_b_i       (d_b),
        .m_mem_b_valid_i (d_b_valid),
        .m_mem_b_ready_o (d_b_ready),
        .ctrl_i          (ctrl),
        .flush_o         (flush[f]),
        .flush_done_i    (flush_done && f == FnBlk),
        .flush_failed_i  (flush_failed && f == FnBlk),
        .status_o        (status_o[f]),
        .features_o      (features_o[f]),
        .core_rst_no     (core_rst_n[f]),
        .tx_o            (tx[f]),
        .tx_valid_o      (tx_valid[f]),
        .tx_ready_i      (tx_ready[f]),
        .rx_i            (rx[f]),
        .rx_valid_i      (rx_valid[f]),
        .rx_ready_o      (rx_ready[f]),
        .still_o         (fn_still[f]),
        .idle_o          (fn_idle[f])
      );
    end

    if (f == FnBlk) begin : gen_disk
      assign mem_ar = d_ar;
      assign mem_ar_valid = d_ar_valid;
      assign d_ar_ready = mem_ar_ready;
      assign d_r = mem_r;
      assign d_r_valid = mem_r_valid;
      assign mem_r_ready = d_r_ready;
      assign mem_aw = d_aw;
      assign mem_aw_valid = d_aw_valid;
      assign d_aw_ready = mem_aw_ready;
      assign mem_w = d_w;
      assign mem_w_valid = d_w_valid;
      assign d_w_ready = mem_w_ready;
      assign d_b = mem_b;
      assign d_b_valid = mem_b_valid;
      assign mem_b_ready = d_b_ready;
    end else if (f == FnXdma) begin : gen_card
      assign m_card_ar_o = d_ar;
      assign m_card_ar_valid_o = d_ar_valid;
      assign d_ar_ready = m_card_ar_ready_i;
      assign d_r = m_card_r_i;
      assign d_r_valid = m_card_r_valid_i;
      assign m_card_r_ready_o = d_r_ready;
      assign m_card_aw_o = d_aw;
      assign m_card_aw_valid_o = d_aw_valid;
      assign d_aw_ready = m_card_aw_ready_i;
      assign m_card_w_o = d_w;
      assign m_card_w_valid_o = d_w_valid;
      assign d_w_ready = m_card_w_ready_i;
      assign d_b = m_card_b_i;
      assign d_b_valid = m_card_b_valid_i;
      assign m_card_b_ready_o = d_b_ready;
    end else begin : gen_no_mem
      assign {d_ar_ready, d_aw_ready, d_w_ready, d_r_valid, d_b_valid} = '0;
      assign d_r = '0;
      assign d_b = '0;
    end

    if (f == FnBlk) begin : gen_flush
      via_fn_flush u_flush (
        .clk_i,
        .rst_ni,
        .ctrl_i  (ctrl.flush),
        .ask_i   (flush[f]),
        .done_o  (flush_done),
        .failed_o(flush_failed),
        .asked_o (flushes_o[f]),
        .evt_o   (flush_evt),
        .still_o (flush_still)
      );
    end else begin : gen_no_flush
      assign flushes_o[f] = '0;
    end

    if (f <= NumUser && Present[f]) begin : gen_user
      assign core_rst_no[f] = core_rst_n[f];
      assign tx_o[f] = tx[f];
      assign tx_valid_o[f] = tx_valid[f];
      assign tx_ready[f] = tx_ready_i[f];
      via_fn_user #(
        .Owed(f == FnBlk)
      ) u_user (
        .clk_i,
        .rst_ni,
        .core_rst_ni(core_rst_n[f]),
        .gone_i     (gone_i[f]),
        .short_i    (short_i[f]),
        .sent_i     (tx_valid[f] && tx_ready[f]),
        .last_i     (tx[f].last),
        .s_i        (rx_i[f]),
        .s_valid_i  (rx_valid_i[f]),
        .s_ready_o  (rx_ready_o[f]),
        .m_o        (rx[f]),
        .m_valid_o  (rx_valid[f]),
        .m_ready_i  (rx_ready[f]),
        .count_o    (count_o[f]),
        .still_o    (user_still[f]),
        .idle_o     (user_idle[f])
      );
    end else begin : gen_no_user
      assign count_o[f] = '{default: '0};
      assign {tx_ready[f], rx_valid[f]} = '0;
      assign rx[f] = '0;
      if (f <= NumUser) begin : gen_none
        assign {core_rst_no[f], rx_ready_o[f], user_still[f], user_idle[f]} = '1;
        assign tx_valid_o[f] = 1'b0;
        assign tx_o[f] = '0;
      end
    end
  end

  if (!Present[FnXdma]) begin : gen_no_xdma
    assign user_irq_ack = '0;
    assign user_req_o   = '0;
    assign user_slot_o  = '0;
    assign user_valid_o = 1'b0;
  end

  // ---------------------------------------------------------------- interrupts, user sides, store
  via_fn_irqs u_irqs (
    .clk_i,
    .rst_ni,
    .irq_i  (slot_irq_i),
    .req_o  (user_irq),
    .ack_i  (user_irq_ack),
    .still_o(irqs_still)
  );

  logic msix_still, msix_idle, mem_still, mem_idle;

  via_fn_msix u_msix (
    .clk_i,
    .rst_ni,
    .valid_i      (msix_valid),
    .vector_i     (msix_vector),
    .ready_o      (msix_ready),
    .msix_valid_o (fn_msix_valid_o),
    .msix_fn_o    (fn_msix_fn_o),
    .msix_vector_o(fn_msix_vector_o),
    .msix_ready_i (fn_msix_ready_i),
    .still_o      (msix_still),
    .idle_o       (msix_idle)
  );

  if (!Present[FnBlk]) begin : gen_no_store
    assign {disk_ar_o, disk_aw_o, disk_w_o, mem_r, mem_b} = '0;
    assign {disk_ar_valid_o, disk_r_ready_o, disk_aw_valid_o, disk_w_valid_o, disk_b_ready_o} = '0;
    assign {mem_ar_ready, mem_r_valid, mem_aw_ready, mem_w_ready, mem_b_valid} = '0;
    assign {mem_still, mem_idle} = '1;
  end else begin : gen_store
    via_fn_mem u_mem (
      .clk_i,
      .rst_ni,
      .core_rst_ni (core_rst_n[FnBlk]),
      .store_i     (ctrl_i[FnBlk].store),
      .s_ar_i      (mem_ar),
      .s_ar_valid_i(mem_ar_valid),
      .s_ar_ready_o(mem_ar_ready),
      .s_r_o       (mem_r),
      .s_r_valid_o (mem_r_valid),
      .s_r_ready_i (mem_r_ready),
      .s_aw_i      (mem_aw),
      .s_aw_valid_i(mem_aw_valid),
      .s_aw_ready_o(mem_aw_ready),
      .s_w_i       (mem_w),
      .s_w_valid_i (mem_w_valid),
      .s_w_ready_o (mem_w_ready),
      .s_b_o       (mem_b),
      .s_b_valid_o (mem_b_valid),
      .s_b_ready_i (mem_b_ready),
      .m_ar_o      (disk_ar_o),
      .m_ar_valid_o(disk_ar_valid_o),
      .m_ar_ready_i(disk_ar_ready_i),
      .m_r_i       (disk_r_i),
      .m_r_valid_i (disk_r_valid_i),
      .m_r_ready_o (disk_r_ready_o),
      .m_aw_o      (disk_aw_o),
      .m_aw_valid_o(disk_aw_valid_o),
      .m_aw_ready_i(disk_aw_ready_i),
      .m_w_o       (disk_w_o),
      .m_w_valid_o (disk_w_valid_o),
      .m_w_ready_i (disk_w_ready_i),
      .m_b_i       (disk_b_i),
      .m_b_valid_i (disk_b_valid_i),
      .m_b_ready_o (disk_b_ready_o),
      .still_o     (mem_still),
      .idle_o      (mem_idle)
    );
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned s = 0; s < NumSlots; s++) disk_flush_o[s] <= flush_evt && 32'(ctrl_i[FnBlk].store) == s;
  end

  // From a register, as all outputs: the interrupts of slots reach some of its terms within a cycle.
  logic access_q;
  always_ff @(posedge clk_i) begin
    access_q <= fn_valid_i || |fn_flr_i;
    still_o  <= &fn_still && flush_still && irqs_still && msix_still && &user_still && mem_still &&
                ~|{access_q, rvalid_q, disk_flush_o} && flr_busy == flr_busy_q;
  end
  assign idle_o = &fn_idle && msix_idle && &user_idle && mem_idle && !rvalid_q;

endmodule
