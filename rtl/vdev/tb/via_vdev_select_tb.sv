// SPDX-License-Identifier: Apache-2.0
//
// A personality between a model of the queue engine and a model of the user side, with its memory port at u_mem. Arrays are flat here. The
// clock is stopped whenever the device reports that nothing moves in it.

module via_vdev_select_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter  int unsigned Fn   = FnNet,
  localparam int unsigned NumQ = 32'(vdev(Fn).queues)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic     [       63:0] features,
  input  logic                   driver_ok,
  input  fn_ctrl_t               ctrl,
  output logic                   flush,
  input  logic                   flush_done,
  input  logic                   flush_failed,
  output logic     [       63:0] withhold,
  output logic     [   NumQ-1:0] waits,
  output logic     [   NumQ-1:0] lacking,
  output logic                   fail,
  output logic     [ QueueW-1:0] fail_queue,
  input  vq_req_t                req,
  input  logic                   req_valid,
  output logic                   req_ready,
  input  vq_beat_t               rd,
  input  logic                   rd_valid,
  output logic                   rd_ready,
  output vq_rsp_t                rsp,
  output logic                   rsp_valid,
  input  logic                   rsp_ready,
  input  logic     [       15:0] merged,
  input  logic                   merged_valid,
  output vq_beat_t               wr,
  output logic                   wr_valid,
  input  logic                   wr_ready,
  input  logic     [   NumQ-1:0] in_use,
  input  logic     [   NumQ-1:0] avail,
  input  logic     [32*NumQ-1:0] head_wlen,
  input  logic     [32*NumQ-1:0] room,
  input  logic     [   NumQ-1:0] busy,
  input  logic     [       11:0] dev_addr,
  input  logic                   dev_write,
  input  logic     [        3:0] dev_strb,
  input  logic     [       31:0] dev_wdata,
  output logic     [       31:0] dev_rdata,
  output logic                   config_change,
  output strm_t                  tx,
  output logic                   tx_valid,
  input  logic                   tx_ready,
  input  strm_t                  rx,
  input  logic                   rx_valid,
  output logic                   rx_ready,
  output logic                   still_o,
  output logic                   idle_o
);

  logic [31:0] wlens[NumQ], rooms[NumQ];
  for (genvar q = 0; q < NumQ; q++) begin : gen_q
    assign wlens[q] = head_wlen[32*q+:32];
    assign rooms[q] = room[32*q+:32];
  end

  axi_ax_t ar, aw;
  axi_r_t r;
  axi_w_t w;
  axi_b_t b;
  logic ar_valid, ar_ready, r_valid, r_ready, aw_valid, aw_ready, w_valid, w_ready, b_valid, b_ready;
  via_tb_sub u_mem (
    .clk_i,
    .rst_ni,
    .s_ar_i      (ar),
    .s_ar_valid_i(ar_valid),
    .s_ar_ready_o(ar_ready),
    .s_r_o       (r),
    .s_r_valid_o (r_valid),
    .s_r_ready_i (r_ready),
    .s_aw_i      (aw),
    .s_aw_valid_i(aw_valid),
    .s_aw_ready_o(aw_ready),
    .s_w_i       (w),
    .s_w_valid_i (w_valid),
    .s_w_ready_o (w_ready),
    .s_b_o       (b),
    .s_b_valid_o (b_valid),
    .s_b_ready_i (b_ready)
  );

  // All inputs except payloads.
  logic clk;
  logic [12:0] handshakes;
  assign handshakes = {
    req_valid, rd_valid, rsp_ready, merged_valid, wr_ready, tx_ready, rx_valid, flush_done, ar_ready, r_valid, aw_ready, w_ready, b_valid
  };
  via_tb_gate #(
    .W($bits(handshakes) + 67 * NumQ + 13 + 64 + 1 + $bits(fn_ctrl_t))
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (still_o),
    .inputs_i({handshakes, in_use, avail, head_wlen, room, busy, dev_addr, dev_write, features, driver_ok, ctrl}),
    .clk_o   (clk)
  );

  via_vdev_select #(
    .Fn(Fn)
  ) u_dut (
    .clk_i           (clk),
    .rst_ni,
    .features_i      (features),
    .driver_ok_i     (driver_ok),
    .ctrl_i          (ctrl),
    .flush_o         (flush),
    .flush_done_i    (flush_done),
    .flush_failed_i  (flush_failed),
    .withhold_o      (withhold),
    .wait_o          (waits),
    .short_o         (lacking),
    .fail_o          (fail),
    .fail_queue_o    (fail_queue),
    .req_i           (req),
    .req_valid_i     (req_valid),
    .req_ready_o     (req_ready),
    .rd_i            (rd),
    .rd_valid_i      (rd_valid),
    .rd_ready_o      (rd_ready),
    .rsp_o           (rsp),
    .rsp_valid_o     (rsp_valid),
    .rsp_ready_i     (rsp_ready),
    .merged_i        (merged),
    .merged_valid_i  (merged_valid),
    .wr_o            (wr),
    .wr_valid_o      (wr_valid),
    .wr_ready_i      (wr_ready),
    .in_use_i        (in_use),
    .avail_i         (avail),
    .head_wlen_i     (wlens),
    .room_i          (rooms),
    .busy_i          (busy),
    .dev_addr_i      (dev_addr),
    .dev_write_i     (dev_write),
    .dev_strb_i      (dev_strb),
    .dev_wdata_i     (dev_wdata),
    .dev_rdata_o     (dev_rdata),
    .config_change_o (config_change),
    .tx_o            (tx),
    .tx_valid_o      (tx_valid),
    .tx_ready_i      (tx_ready),
    .rx_i            (rx),
    .rx_valid_i      (rx_valid),
    .rx_ready_o      (rx_ready),
    .m_mem_ar_o      (ar),
    .m_mem_ar_valid_o(ar_valid),
    .m_mem_ar_ready_i(ar_ready),
    .m_mem_r_i       (r),
    .m_mem_r_valid_i (r_valid && Fn == FnBlk),
    .m_mem_r_ready_o (r_ready),
    .m_mem_aw_o      (aw),
    .m_mem_aw_valid_o(aw_valid),
    .m_mem_aw_ready_i(aw_ready),
    .m_mem_w_o       (w),
    .m_mem_w_valid_o (w_valid),
    .m_mem_w_ready_i (w_ready),
    .m_mem_b_i       (b),
    .m_mem_b_valid_i (b_valid && Fn == FnBlk),  // the memory port of the others is not used
    .m_mem_b_ready_o (b_ready),
    .still_o,
    .idle_o
  );

  // No deadlocks (docs/interfaces.md, section 1), and the streams: what is offered stays until accepted.
  logic rsp_wait_q, wr_wait_q, tx_wait_q;
  vq_rsp_t rsp_q;
  vq_beat_t wr_q;
  strm_t tx_q;
  always_ff @(posedge clk_i) begin
    rsp_wait_q <= rst_ni && rsp_valid && !rsp_ready;
    wr_wait_q <= rst_ni && wr_valid && !wr_ready;
    tx_wait_q <= rst_ni && tx_valid && !tx_ready;
    rsp_q <= rsp;
    wr_q <= wr;
    tx_q <= tx;
    if (rst_ni) begin
      assert (!r_valid || r_ready)
      else $error("R refused");
      assert (!b_valid || b_ready)
      else $error("B refused");
      assert (!rsp_wait_q || rsp_valid && rsp == rsp_q)
      else $error("response dropped or changed");
      assert (!wr_wait_q || wr_valid && wr == wr_q)
      else $error("write beat dropped or changed");
      assert (!tx_wait_q || tx_valid && tx == tx_q)
      else $error("sent beat dropped or changed");
    end
  end

endmodule
