// SPDX-License-Identifier: Apache-2.0
//
// The personality of function `Fn` behind the same ports for all: what a device does not use is tied off here, and nowhere else.
// A new device is one more branch (docs/virtio-devices.md).

module via_vdev_select
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter  int unsigned Fn   = FnNet,
  localparam int unsigned NumQ = 32'(vdev(Fn).queues)
) (
  // Each device uses some of the inputs.
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] features_i,
  input  logic                  driver_ok_i,
  input  fn_ctrl_t              ctrl_i,
  // Flushes of the disk that wait for the host.
  output logic                  flush_o,
  input  logic                  flush_done_i,
  input  logic                  flush_failed_i,
  output logic     [      63:0] withhold_o,              // features not to be offered now
  // Engine.
  output logic     [  NumQ-1:0] wait_o,
  output logic     [  NumQ-1:0] short_o,                 // data waits for buffers of the queue, which are not there
  output logic                  fail_o,
  output logic     [QueueW-1:0] fail_queue_o,
  input  vq_req_t               req_i,
  input  logic                  req_valid_i,
  output logic                  req_ready_o,
  input  vq_beat_t              rd_i,
  input  logic                  rd_valid_i,
  output logic                  rd_ready_o,
  output vq_rsp_t               rsp_o,
  output logic                  rsp_valid_o,
  input  logic                  rsp_ready_i,
  input  logic     [      15:0] merged_i,
  input  logic                  merged_valid_i,
  output vq_beat_t              wr_o,
  output logic                  wr_valid_o,
  input  logic                  wr_ready_i,
  input  logic     [  NumQ-1:0] in_use_i,                // enabled, not being reset
  input  logic     [  NumQ-1:0] avail_i,
  input  logic     [      31:0] head_wlen_i     [NumQ],
  input  logic     [      31:0] room_i          [NumQ],
  // Device configuration.
  input  logic     [      11:0] dev_addr_i,
  input  logic                  dev_write_i,
  input  logic     [       3:0] dev_strb_i,
  input  logic     [      31:0] dev_wdata_i,
  output logic     [      31:0] dev_rdata_o,
  output logic                  config_change_o,
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
  output logic                  still_o,
  output logic                  idle_o
  /* verilator lint_on UNUSEDSIGNAL */
);

  localparam bit FnOk = param_in("via_vdev_select Fn", Fn, FnNet, FnInput);

  localparam vdev_t Dev = vdev(Fn);

  if (Fn == FnNet) begin : gen_net
    via_vdev_net u_dev (
      .clk_i,
      .rst_ni,
      .features_i,
      .driver_ok_i,
      .ctrl_i,
      .wait_o,
      .fail_o,
      .fail_queue_o,
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
      .short_o,
      .dev_addr_i,
      .dev_rdata_o,
      .config_change_o,
      .tx_o,
      .tx_valid_o,
      .tx_ready_i,
      .rx_i,
      .rx_valid_i,
      .rx_ready_o,
      .still_o,
      .idle_o
    );
    assign withhold_o = '0;
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
      .withhold_o,
      .fail_o,
      .fail_queue_o,
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
      .dev_addr_i,
      .dev_rdata_o,
      .config_change_o,
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
      .still_o,
      .idle_o
    );
    assign wait_o  = Dev.waits[NumQ-1:0];
    assign short_o = '0;  // none waits
  end else if (Fn == FnConsole) begin : gen_console
    via_vdev_console u_dev (
      .clk_i,
      .rst_ni,
      .features_i,
      .driver_ok_i,
      .ctrl_i,
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
      .avail_i,
      .head_wlen_i,
      .short_o,
      .dev_addr_i,
      .dev_write_i,
      .dev_strb_i,
      .dev_wdata_i,
      .dev_rdata_o,
      .config_change_o,
      .tx_o,
      .tx_valid_o,
      .tx_ready_i,
      .rx_i,
      .rx_valid_i,
      .rx_ready_o,
      .still_o,
      .idle_o
    );
    assign withhold_o = '0;
    assign wait_o = Dev.waits[NumQ-1:0];
    assign fail_o = 1'b0;
    assign fail_queue_o = '0;
  end else if (Fn == FnEntropy) begin : gen_entropy
    via_vdev_entropy u_dev (
      .clk_i,
      .rst_ni,
      .avail_i,
      .head_wlen_i,
      .short_o,
      .rsp_o,
      .rsp_valid_o,
      .rsp_ready_i,
      .wr_o,
      .wr_valid_o,
      .wr_ready_i,
      .rx_i,
      .rx_valid_i,
      .rx_ready_o,
      .still_o,
      .idle_o
    );
    assign withhold_o = '0;
    assign wait_o = Dev.waits[NumQ-1:0];
    assign fail_o = 1'b0;
    assign fail_queue_o = '0;
    assign req_ready_o = 1'b1;
    assign rd_ready_o = 1'b1;
    assign dev_rdata_o = '0;
    assign config_change_o = 1'b0;
    assign tx_o = '0;
    assign tx_valid_o = 1'b0;
  end else if (Fn == FnInput) begin : gen_input
    via_vdev_input u_dev (
      .clk_i,
      .rst_ni,
      .ctrl_i,
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
      .avail_i,
      .head_wlen_i,
      .short_o,
      .dev_addr_i,
      .dev_write_i,
      .dev_strb_i,
      .dev_wdata_i,
      .dev_rdata_o,
      .tx_o,
      .tx_valid_o,
      .tx_ready_i,
      .rx_i,
      .rx_valid_i,
      .rx_ready_o,
      .still_o,
      .idle_o
    );
    assign withhold_o = '0;
    assign wait_o = Dev.waits[NumQ-1:0];
    assign fail_o = 1'b0;
    assign fail_queue_o = '0;
    assign config_change_o = 1'b0;
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
