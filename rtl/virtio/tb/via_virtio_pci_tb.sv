// SPDX-License-Identifier: Apache-2.0
//
// via_virtio_pci with flat ports, its gate and the test's host memory (u_m). The core is played here: once the driver is ready it reads and
// writes without end, and it loses everything in its reset, in the middle of whatever it does. Then nothing of it may be in flight.

module via_virtio_pci_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 4,
  parameter int unsigned QSize = 128,
  localparam int unsigned QB = $clog2(NumQ)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              req_cfg,
  input  logic              req_write,
  input  logic [      15:0] req_addr,
  input  logic [       3:0] req_strb,
  input  logic [      31:0] req_wdata,
  input  logic              req_valid,
  output logic              req_rvalid,
  output logic [      31:0] req_rdata,
  input  logic              flr,
  output logic              flr_busy,
  input  logic              bus_master,
  input  logic              traffic,              // the core makes some
  output logic              core_rst_n,
  output logic [       4:0] feat,
  output logic [      63:0] features,
  input  logic [      63:0] offer,
  output logic [      63:0] offered,
  output logic              driver_ok,
  output logic [  NumQ-1:0] q_enable,
  output logic [      15:0] q_size       [NumQ],
  output logic [      63:0] q_desc       [NumQ],
  output logic [      63:0] q_driver     [NumQ],
  output logic [      63:0] q_device     [NumQ],
  output logic [  NumQ-1:0] q_reset,
  input  logic [  NumQ-1:0] q_quiet,
  output logic [QueueW-1:0] notify_queue,
  output logic [      15:0] notify_data,          // wrap, offset
  output logic              notify_valid,
  input  logic              irq_valid,
  input  logic [QueueW-1:0] irq_queue,
  input  logic [      63:0] withhold,
  input  logic              error,
  input  logic              config_change,
  output logic              stat_write,
  output logic [       9:0] stat_addr,
  output logic              dev_write,
  output logic [      11:0] dev_addr,
  output logic [       3:0] dev_strb,
  output logic [      31:0] dev_wdata,
  output logic              msix_valid,
  output logic [       7:0] msix_vector,
  input  logic              msix_ready,
  output logic              idle_o
);

  logic clk, still, gate, drained, rvalid, irq_ready;
  fn_req_t req;
  vq_feat_t feat_s;
  vq_cfg_t queue[NumQ];
  vq_notify_t notify;
  logic [31:0] stat_rdata_q, dev_rdata;

  assign req = '{fn: '0, cfg: req_cfg, bar: '0, write: req_write, addr: req_addr, strb: req_strb, wdata: req_wdata};
  assign req_rvalid = rvalid;
  assign feat = feat_s;
  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    assign q_enable[q] = queue[q].enable;
    assign q_size[q]   = queue[q].size;
    assign q_desc[q]   = queue[q].desc;
    assign q_driver[q] = queue[q].driver;
    assign q_device[q] = queue[q].device;
  end
  assign notify_queue = notify.queue;
  assign notify_data  = {notify.wrap, notify.offset};

  // Counters and device configuration are recognised by their address; the configuration's first words can be written.
  logic [3:0][31:0] dev_q;
  logic [9:0] stat_addr_q;
  always_ff @(posedge clk_i) begin
    stat_addr_q  <= stat_addr;
    stat_rdata_q <= {22'h2c0de, stat_addr_q};
    for (int b = 0; b < 4; b++) if (dev_write && dev_strb[b] && dev_addr < 12'd16) dev_q[dev_addr[3:2]][8*b+:8] <= dev_wdata[8*b+:8];
  end
  assign dev_rdata = (dev_addr < 12'd16) ? dev_q[dev_addr[3:2]] : {20'hc0f16, dev_addr};

  via_tb_gate #(
    .W(NumQ + 66)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (still),
    .inputs_i({q_quiet, bus_master, drained, offer}),
    .clk_o   (clk)
  );

  via_virtio_pci #(
    .DeviceType(16'd1),
    .Class     (24'h020000),
    .NumQ      (NumQ),
    .Features  (64'h0000_0000_0003_0020),
    .Needs     ({6'd17, 6'd16, 36'd0}),    // feature 17 is nothing without 16
    .QSize     (QSize)
  ) u_dut (
    .clk_i          (clk),
    .rst_ni,
    .req_i          (req),
    .req_valid_i    (req_valid),
    .req_rvalid_o   (rvalid),
    .req_rdata_o    (req_rdata),
    .flr_i          (flr),
    .flr_busy_o     (flr_busy),
    .bus_master_i   (bus_master),
    .gate_o         (gate),
    .drained_i      (drained),
    .core_rst_no    (core_rst_n),
    .status_o       (),
    .feat_o         (feat_s),
    .features_o     (features),
    .offer_i        (offer),
    .offered_o      (offered),
    .driver_ok_o    (driver_ok),
    .queue_o        (queue),
    .queue_reset_o  (q_reset),
    .queue_quiet_i  (q_quiet),
    .notify_o       (notify),
    .notify_valid_o (notify_valid),
    .irq_valid_i    (irq_valid),
    .irq_queue_i    (irq_queue),
    .irq_ready_o    (irq_ready),
    .error_i        (error),
    .stat_addr_o    (stat_addr),
    .stat_write_o   (stat_write),
    .stat_rdata_i   (stat_rdata_q),
    .withhold_i     (withhold),
    .dev_addr_o     (dev_addr),
    .dev_write_o    (dev_write),
    .dev_strb_o     (dev_strb),
    .dev_wdata_o    (dev_wdata),
    .dev_rdata_i    (dev_rdata),
    .config_change_i(config_change),
    .msix_valid_o   (msix_valid),
    .msix_vector_o  (msix_vector),
    .msix_ready_i   (msix_ready),
    .still_o        (still),
    .idle_o
  );

  // ---------------------------------------------------------------- the core
  axi_ax_t ar, aw, m_ar, m_aw;
  axi_w_t w, m_w;
  axi_r_t r, m_r;
  axi_b_t b, m_b;
  logic ar_valid_q, ar_ready, aw_valid_q, aw_ready, w_ready, r_valid, b_valid;
  logic m_ar_valid, m_ar_ready, m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_r_valid, m_r_ready, m_b_valid, m_b_ready;
  logic [31:0] lfsr_q;
  logic [2:0] w_left_q;
  logic go;
  assign go = traffic && driver_ok && |q_enable;

  always_comb begin
    ar = '{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: 8'd3, addr: 64'h1000};
    aw = ar;
    w  = '{last: w_left_q == 3'd1, strb: '1, data: '0};
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) lfsr_q <= 32'h1;
    else lfsr_q <= {lfsr_q[30:0], lfsr_q[31] ^ lfsr_q[21] ^ lfsr_q[1] ^ lfsr_q[0]};
    if (!core_rst_n) begin
      ar_valid_q <= 1'b0;
      aw_valid_q <= 1'b0;
      w_left_q   <= '0;
    end else begin
      if (!ar_valid_q) ar_valid_q <= go && lfsr_q[1:0] == '0;
      else if (ar_ready) ar_valid_q <= 1'b0;
      if (!aw_valid_q && w_left_q == '0 && go && lfsr_q[3:2] == '0) begin
        aw_valid_q <= 1'b1;
        w_left_q   <= 3'd4;
      end else begin
        if (aw_ready) aw_valid_q <= 1'b0;
        if (w_ready && w_left_q != '0) w_left_q <= w_left_q - 1'b1;
      end
    end
  end

  via_fn_gate u_fn_gate (
    .clk_i,
    .rst_ni,
    .enable_i    (gate),
    .drained_o   (drained),
    .s_ar_i      (ar),
    .s_ar_valid_i(ar_valid_q),
    .s_ar_ready_o(ar_ready),
    .s_r_o       (r),
    .s_r_valid_o (r_valid),
    .s_r_ready_i (1'b1),
    .s_aw_i      (aw),
    .s_aw_valid_i(aw_valid_q),
    .s_aw_ready_o(aw_ready),
    .s_w_i       (w),
    .s_w_valid_i (w_left_q != '0),
    .s_w_ready_o (w_ready),
    .s_b_o       (b),
    .s_b_valid_o (b_valid),
    .s_b_ready_i (1'b1),
    .m_ar_o      (m_ar),
    .m_ar_valid_o(m_ar_valid),
    .m_ar_ready_i(m_ar_ready),
    .m_r_i       (m_r),
    .m_r_valid_i (m_r_valid),
    .m_r_ready_o (m_r_ready),
    .m_aw_o      (m_aw),
    .m_aw_valid_o(m_aw_valid),
    .m_aw_ready_i(m_aw_ready),
    .m_w_o       (m_w),
    .m_w_valid_o (m_w_valid),
    .m_w_ready_i (m_w_ready),
    .m_b_i       (m_b),
    .m_b_valid_i (m_b_valid),
    .m_b_ready_o (m_b_ready)
  );

  via_tb_sub u_m (
    .clk_i,
    .rst_ni,
    .s_ar_i      (m_ar),
    .s_ar_valid_i(m_ar_valid),
    .s_ar_ready_o(m_ar_ready),
    .s_r_o       (m_r),
    .s_r_valid_o (m_r_valid),
    .s_r_ready_i (m_r_ready),
    .s_aw_i      (m_aw),
    .s_aw_valid_i(m_aw_valid),
    .s_aw_ready_o(m_aw_ready),
    .s_w_i       (m_w),
    .s_w_valid_i (m_w_valid),
    .s_w_ready_o (m_w_ready),
    .s_b_o       (m_b),
    .s_b_valid_o (m_b_valid),
    .s_b_ready_i (m_b_ready)
  );

  // ---------------------------------------------------------------- what must hold at every moment
  int flight_q;
  logic msix_wait_q;
  logic [7:0] msix_vector_q;
  vq_cfg_t queue_q[NumQ];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) flight_q <= 0;
    else flight_q <= flight_q + 32'(m_ar_valid && m_ar_ready) + 32'(m_aw_valid && m_aw_ready) - 32'(m_b_valid) - 32'(m_r_valid && m_r.last);
    msix_wait_q   <= rst_ni && msix_valid && !msix_ready;
    msix_vector_q <= msix_vector;
    if (rst_ni) begin
      assert (core_rst_n || flight_q == 0 && !(m_ar_valid || m_aw_valid || m_w_valid || r_valid || b_valid))
      else $error("reset in mid-air");
      assert (!msix_wait_q || msix_valid && msix_vector == msix_vector_q)
      else $error("MSI-X request dropped or changed");
      assert (irq_ready)
      else $error("an interrupt waits");
      assert (!notify_valid || core_rst_n && q_enable[notify_queue[QB-1:0]])
      else $error("notification of a queue that is off");
    end
  end
  for (genvar q = 0; q < NumQ; q++) begin : gen_check
    always_ff @(posedge clk_i) begin
      queue_q[q] <= queue[q];
      if (rst_ni) begin
        assert (!(queue_q[q].enable && queue[q].enable) || queue[q] == queue_q[q])
        else $error("an enabled queue changed");
      end
    end
  end
  // The core answers nobody: its data is not looked at.
  logic unused;
  assign unused = ^{r, b};

endmodule
