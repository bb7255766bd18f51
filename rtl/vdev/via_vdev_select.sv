// SPDX-License-Identifier: Apache-2.0
//
// The personality of function `Fn` behind ports common to all: signals that a device does not use are tied off here, and nowhere else.
// Everything that is not a stream leaves through registers, a cycle after the device: read data and changes of the configuration space,
// features withheld, which queues wait or lack buffers, failures. Throughput, latency, order and misuse: those of the device.
// A new device is one more branch (docs/virtio-devices.md).

module via_vdev_select
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter int unsigned Fn = FnNet,  // number of the function: selects the device
  localparam int unsigned NumQ = 32'(vdev(Fn).queues)
) (
  // Each device uses some of the inputs.
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] features_i,              // features accepted
  input  logic                  driver_ok_i,             // level: DRIVER_OK is set
  input  fn_ctrl_t              ctrl_i,                  // settings from the management function
  // Flushes of the disk that wait for the host.
  output logic                  flush_o,                 // level: a flush waits for the host
  input  logic                  flush_done_i,            // level while flush_o: it succeeded
  input  logic                  flush_failed_i,          // level while flush_o: it failed
  output logic     [      63:0] withhold_o,              // features not to be offered now
  // Engine.
  output logic     [  NumQ-1:0] wait_o,                  // level: chains of the queue wait for a response
  output logic     [  NumQ-1:0] short_o,                 // level: data waits for buffers of the queue
  output logic                  fail_o,                  // pulse: a request cannot be responded to
  output logic     [QueueW-1:0] fail_queue_o,            // with fail_o: the queue to stop
  input  vq_req_t               req_i,                   // request
  input  logic                  req_valid_i,
  output logic                  req_ready_o,
  input  vq_beat_t              rd_i,                    // readable bytes of the request
  input  logic                  rd_valid_i,
  output logic                  rd_ready_o,
  output vq_rsp_t               rsp_o,                   // response
  output logic                  rsp_valid_o,
  input  logic                  rsp_ready_i,
  input  logic     [      15:0] merged_i,                // chains that the last `merge` response used
  input  logic                  merged_valid_i,          // pulse: merged_i is valid
  output vq_beat_t              wr_o,                    // bytes of the response
  output logic                  wr_valid_o,
  input  logic                  wr_ready_i,
  input  logic     [  NumQ-1:0] in_use_i,                // level: enabled, not under reset
  input  logic     [  NumQ-1:0] avail_i,                 // level: the queue has a buffer
  input  logic     [      31:0] head_wlen_i     [NumQ],  // size in bytes of its next buffer
  input  logic     [      31:0] room_i          [NumQ],  // bytes of all its buffers
  input  logic     [  NumQ-1:0] busy_i,                  // level: a `merge` response is using its chains
  // Device configuration.
  input  logic     [      11:0] dev_addr_i,              // device configuration: byte address
  input  logic                  dev_write_i,             // pulse: write
  input  logic     [       3:0] dev_strb_i,              // bytes written
  input  logic     [      31:0] dev_wdata_i,             // data to write
  output logic     [      31:0] dev_rdata_o,             // read data
  output logic                  config_change_o,         // pulse: the device configuration has changed
  // User side.
  output strm_t                 tx_o,
  output logic                  tx_valid_o,
  input  logic                  tx_ready_i,
  input  strm_t                 rx_i,
  input  logic                  rx_valid_i,
  output logic                  rx_ready_o,
  // Memory of the disk.
  output axi_ax_t               m_mem_ar_o,
  output logic                  m_mem_ar_valid_o,
  input  logic                  m_mem_ar_ready_i,
  input  axi_r_t                m_mem_r_i,
  input  logic                  m_mem_r_valid_i,
  output logic                  m_mem_r_ready_o,
  output axi_ax_t               m_mem_aw_o,
  output logic                  m_mem_aw_valid_o,
  input  logic                  m_mem_aw_ready_i,
  output axi_w_t                m_mem_w_o,
  output logic                  m_mem_w_valid_o,
  input  logic                  m_mem_w_ready_i,
  input  axi_b_t                m_mem_b_i,
  input  logic                  m_mem_b_valid_i,
  output logic                  m_mem_b_ready_o,
  output logic                  still_o,                 // level: nothing moves unless an input changes
  output logic                  idle_o                   // level: nothing is held
  /* verilator lint_on UNUSEDSIGNAL */
);

  localparam bit FnOk = param_in("via_vdev_select Fn", Fn, FnNet, FnInput);

  localparam vdev_t Dev = vdev(Fn);

  logic [63:0] withhold;
  logic [NumQ-1:0] waits, wanting;
  logic fail, config_change;
  logic [QueueW-1:0] fail_queue;
  logic [31:0] dev_rdata;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fail_o          <= 1'b0;
      config_change_o <= 1'b0;
      short_o         <= '0;
    end else begin
      fail_o          <= fail;
      config_change_o <= config_change;
      short_o         <= wanting;
    end
  end
  always_ff @(posedge clk_i) begin
    withhold_o   <= withhold;
    wait_o       <= waits;
    fail_queue_o <= fail_queue;
    dev_rdata_o  <= dev_rdata;
  end

  // The net device gets requests directly, the others a cycle later.
  /* verilator lint_off UNUSEDSIGNAL */
  vq_req_t  req;
  vq_beat_t rd;
  logic none, req_valid, req_ready, rd_valid, rd_ready, taking;  // none: the request has no bytes
  /* verilator lint_on UNUSEDSIGNAL */
  if (Fn != FnNet) begin : gen_requests
    // Whether a request has bytes is computed as it arrives.
    typedef struct packed {
      logic    none;
      vq_req_t req;
    } ask_t;
    ask_t ask;
    via_slice #(
      .T(ask_t)
    ) u_req (
      .clk_i,
      .rst_ni,
      .s_i      ('{none: req_i.rlen == '0, req: req_i}),
      .s_valid_i(req_valid_i),
      .s_ready_o(req_ready_o),
      .m_o      (ask),
      .m_valid_o(req_valid),
      .m_ready_i(req_ready)
    );
    assign {none, req} = ask;
    via_slice #(
      .T(vq_beat_t)
    ) u_rd (
      .clk_i,
      .rst_ni,
      .s_i      (rd_i),
      .s_valid_i(rd_valid_i),
      .s_ready_o(rd_ready_o),
      .m_o      (rd),
      .m_valid_o(rd_valid),
      .m_ready_i(rd_ready)
    );
    assign taking = req_valid_i && req_ready_o || rd_valid_i && rd_ready_o || req_valid && req_ready || rd_valid && rd_ready;
  end else begin : gen_no_requests
    assign {none, req, req_valid, req_ready, rd, rd_valid, rd_ready, taking} = '0;
  end
  logic dev_still, dev_idle;
  always_ff @(posedge clk_i) begin
    still_o <= dev_still && !taking;
    idle_o  <= dev_idle && !req_valid;
  end

  if (Fn == FnNet) begin : gen_net
    via_vdev_net u_dev (
      .clk_i,
      .rst_ni,
      .features_i,
      .driver_ok_i,
      .ctrl_i,
      .wait_o(waits),
      .fail_o(fail),
      .fail_queue_o(fail_queue),
      .req_i,
      .req_valid_i,
      .req_ready_o,
      .rd_i,
      .rd_valid_i,
      .rd_ready_o,
      .rsp_o,
      .rsp_valid_o,
      .rsp_ready_i,
      .wr_o,
      .wr_valid_o,
      .wr_ready_i,
      .merged_i,
      .merged_valid_i,
      .in_use_i,
      .avail_i,
      .head_wlen_i,
      .room_i,
      .busy_i,
      .short_o(wanting),
      .dev_addr_i,
      .dev_rdata_o(dev_rdata),
      .config_change_o(config_change),
      .tx_o,
      .tx_valid_o,
      .tx_ready_i,
      .rx_i,
      .rx_valid_i,
      .rx_ready_o,
      .still_o(dev_still),
      .idle_o(dev_idle)
    );
    assign withhold = '0;
  end else if (Fn == FnBlk) begin : gen_blk
    via_vdev_blk u_dev (
      .clk_i,
      .rst_ni,
      .features_i,
      .driver_ok_i,
      .ctrl_i,
      .flush_o,
      .flush_done_i,
      .flush_failed_i,
      .withhold_o     (withhold),
      .fail_o         (fail),
      .fail_queue_o   (fail_queue),
      .req_i          (req),
      .none_i         (none),
      .req_valid_i    (req_valid),
      .req_ready_o    (req_ready),
      .rd_i           (rd),
      .rd_valid_i     (rd_valid),
      .rd_ready_o     (rd_ready),
      .rsp_o,
      .rsp_valid_o,
      .rsp_ready_i,
      .wr_o,
      .wr_valid_o,
      .wr_ready_i,
      .dev_addr_i,
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
    assign waits   = Dev.waits[NumQ-1:0];
    assign wanting = '0;  // no queue waits
  end else if (Fn == FnConsole) begin : gen_console
    via_vdev_console u_dev (
      .clk_i,
      .rst_ni,
      .features_i,
      .driver_ok_i,
      .ctrl_i,
      .req_i          (req),
      .none_i         (none),
      .req_valid_i    (req_valid),
      .req_ready_o    (req_ready),
      .rd_i           (rd),
      .rd_valid_i     (rd_valid),
      .rd_ready_o     (rd_ready),
      .rsp_o,
      .rsp_valid_o,
      .rsp_ready_i,
      .wr_o,
      .wr_valid_o,
      .wr_ready_i,
      .avail_i,
      .head_wlen_i,
      .short_o        (wanting),
      .dev_addr_i,
      .dev_write_i,
      .dev_strb_i,
      .dev_wdata_i,
      .dev_rdata_o    (dev_rdata),
      .config_change_o(config_change),
      .tx_o,
      .tx_valid_o,
      .tx_ready_i,
      .rx_i,
      .rx_valid_i,
      .rx_ready_o,
      .still_o        (dev_still),
      .idle_o         (dev_idle)
    );
    assign withhold = '0;
    assign waits = Dev.waits[NumQ-1:0];
    assign fail = 1'b0;
    assign fail_queue = '0;
  end else if (Fn == FnEntropy) begin : gen_entropy
    via_vdev_entropy u_dev (
      .clk_i,
      .rst_ni,
      .avail_i,
      .head_wlen_i,
      .short_o(wanting),
      .rsp_o,
      .rsp_valid_o,
      .rsp_ready_i,
      .wr_o,
      .wr_valid_o,
      .wr_ready_i,
      .rx_i,
      .rx_valid_i,
      .rx_ready_o,
      .still_o(dev_still),
      .idle_o (dev_idle)
    );
    assign withhold = '0;
    assign waits = Dev.waits[NumQ-1:0];
    assign fail = 1'b0;
    assign fail_queue = '0;
    assign req_ready = 1'b1;
    assign rd_ready = 1'b1;
    assign dev_rdata = '0;
    assign config_change = 1'b0;
    assign tx_o = '0;
    assign tx_valid_o = 1'b0;
  end else if (Fn == FnInput) begin : gen_input
    via_vdev_input u_dev (
      .clk_i,
      .rst_ni,
      .ctrl_i,
      .req_i      (req),
      .none_i     (none),
      .req_valid_i(req_valid),
      .req_ready_o(req_ready),
      .rd_i       (rd),
      .rd_valid_i (rd_valid),
      .rd_ready_o (rd_ready),
      .rsp_o,
      .rsp_valid_o,
      .rsp_ready_i,
      .wr_o,
      .wr_valid_o,
      .wr_ready_i,
      .avail_i,
      .head_wlen_i,
      .short_o    (wanting),
      .dev_addr_i,
      .dev_write_i,
      .dev_strb_i,
      .dev_wdata_i,
      .dev_rdata_o(dev_rdata),
      .tx_o,
      .tx_valid_o,
      .tx_ready_i,
      .rx_i,
      .rx_valid_i,
      .rx_ready_o,
      .still_o    (dev_still),
      .idle_o     (dev_idle)
    );
    assign withhold = '0;
    assign waits = Dev.waits[NumQ-1:0];
    assign fail = 1'b0;
    assign fail_queue = '0;
    assign config_change = 1'b0;
  end

  if (Fn != FnBlk) begin : gen_no_mem
    assign m_mem_ar_o = '0;
    assign m_mem_ar_valid_o = 1'b0;
    assign m_mem_r_ready_o = 1'b1;
    assign m_mem_aw_o = '0;
    assign m_mem_aw_valid_o = 1'b0;
    assign m_mem_w_o = '0;
    assign m_mem_w_valid_o = 1'b0;
    assign m_mem_b_ready_o = 1'b1;
    assign flush_o = 1'b0;
  end

endmodule
