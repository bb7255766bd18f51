// SPDX-License-Identifier: Apache-2.0
//
// via_vq with flat ports; its clock is stopped while it reports that nothing moves.

module via_vq_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ   = 4,
  parameter bit          AtHand = 1'b0
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [  NumQ-1:0] wait_mask,
  input  logic [       4:0] feat,                // vq_feat_t
  input  logic              driver_ok,
  input  logic [     208:0] cfg         [NumQ],  // vq_cfg_t
  input  logic [  NumQ-1:0] queue_reset,
  output logic [  NumQ-1:0] queue_quiet,
  input  logic [      19:0] notify,              // vq_notify_t
  input  logic              notify_valid,
  input  logic [      15:0] moderate,
  input  logic [      31:0] look,                // vq_look_t
  input  logic [  NumQ-1:0] lacking,
  output logic              irq_valid,
  output logic [QueueW-1:0] irq_queue,
  input  logic              irq_ready,
  output logic              error,
  output logic [       3:0] error_cause,
  output logic [QueueW-1:0] error_queue,
  input  logic              fail,
  input  logic [QueueW-1:0] fail_queue,
  output logic [QueueW-1:0] req_queue,
  output logic [      31:0] req_rlen,
  output logic [      31:0] req_wlen,
  output logic              req_valid,
  input  logic              req_ready,
  output logic [ DataW-1:0] rd_data,
  output logic [ StrbW-1:0] rd_keep,
  output logic              rd_last,
  output logic              rd_valid,
  input  logic              rd_ready,
  input  logic [QueueW-1:0] rsp_queue,
  input  logic              rsp_merge,
  input  logic [      31:0] rsp_len,
  input  logic              rsp_valid,
  output logic              rsp_ready,
  output logic [      15:0] merged,
  output logic              merged_valid,
  input  logic [ DataW-1:0] wr_data,
  input  logic [ StrbW-1:0] wr_keep,
  input  logic              wr_last,
  input  logic              wr_valid,
  output logic              wr_ready,
  output logic              at_hand,
  output logic [  NumQ-1:0] avail,
  output logic [      31:0] head_wlen   [NumQ],
  output logic [      31:0] room        [NumQ],
  output logic [   IdW-1:0] host_arid,
  output logic [ AddrW-1:0] host_araddr,
  output logic [       7:0] host_arlen,
  output logic              host_arvalid,
  input  logic              host_arready,
  input  logic [   IdW-1:0] host_rid,
  input  logic [ DataW-1:0] host_rdata,
  input  logic [       1:0] host_rresp,
  input  logic              host_rlast,
  input  logic              host_rvalid,
  output logic              host_rready,
  output logic [   IdW-1:0] host_awid,
  output logic [ AddrW-1:0] host_awaddr,
  output logic [       7:0] host_awlen,
  output logic              host_awvalid,
  input  logic              host_awready,
  output logic [ DataW-1:0] host_wdata,
  output logic [ StrbW-1:0] host_wstrb,
  output logic              host_wlast,
  output logic              host_wvalid,
  input  logic              host_wready,
  input  logic [   IdW-1:0] host_bid,
  input  logic [       1:0] host_bresp,
  input  logic              host_bvalid,
  output logic              host_bready,
  input  logic [       9:0] stat_addr,
  input  logic              stat_write,
  output logic [      31:0] stat_rdata,
  output logic              still_o,
  output logic              idle_o
);

  vq_cfg_t queue[NumQ];
  logic [NumQ-1:0][208:0] levels;
  vq_err_e cause;
  vq_req_t req;
  vq_beat_t rd;
  axi_ax_t ar, aw;
  axi_w_t w;
  logic [63:0] time_q;
  logic clk, still;

  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    assign queue[q]  = vq_cfg_t'(cfg[q]);
    assign levels[q] = cfg[q];
  end
  always_ff @(posedge clk_i) time_q <= rst_ni ? time_q + 64'd1 : 64'd1000;

  assign error_cause = cause;
  assign req_queue = req.queue;
  assign req_rlen = req.rlen;
  assign req_wlen = req.wlen;
  assign {rd_last, rd_keep, rd_data} = rd;
  assign host_arid = ar.id;
  assign host_araddr = ar.addr;
  assign host_arlen = ar.len;
  assign host_awid = aw.id;
  assign host_awaddr = aw.addr;
  assign host_awlen = aw.len;
  assign {host_wlast, host_wstrb, host_wdata} = w;
  assign still_o = still;

  // Data ports count by their valid: data of a response that is not accepted yet moves nothing.
  localparam int unsigned InputsW = $bits(levels) + NumQ * 3 + 5 + 1 + 16 + 32 + 1 + QueueW + 2 + QueueW + 35 + 10 + 1 + 4 + 3;
  logic [InputsW-1:0] inputs, inputs_q;
  logic [2:0] left_q;
  assign inputs = {
    levels,
    queue_reset,
    wait_mask,
    feat,
    driver_ok,
    moderate,
    look,
    lacking,
    fail,
    fail_queue,
    req_ready,
    rd_ready,
    rsp_queue,
    rsp_merge,
    rsp_len,
    rsp_valid,
    wr_valid,
    stat_addr,
    stat_write,
    irq_ready,
    host_arready,
    host_awready,
    host_wready,
    host_rvalid,
    host_bvalid,
    notify_valid
  };

  via_tb_gate #(
    .W(InputsW)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (still),
    .inputs_i(inputs),
    .clk_o   (clk)
  );

  logic [31:0] rooms[NumQ];
  logic [NumQ-1:0] busy;
  for (genvar q = 0; q < NumQ; q++) begin : gen_room
    assign room[q] = busy[q] ? '0 : rooms[q];
  end

  via_vq #(
    .NumQ  (NumQ),
    .AtHand(AtHand)
  ) u_dut (
    .clk_i         (clk),
    .rst_ni,
    .enable_i      (1'b1),
    .drained_o     (),
    .time_i        (time_q),
    .wait_i        (wait_mask),
    .feat_i        (vq_feat_t'(feat)),
    .driver_ok_i   (driver_ok),
    .queue_i       (queue),
    .queue_reset_i (queue_reset),
    .queue_quiet_o (queue_quiet),
    .notify_i      (vq_notify_t'(notify)),
    .notify_valid_i(notify_valid),
    .moderate_i    (moderate),
    .look_i        (vq_look_t'(look)),
    .short_i       (lacking),
    .irq_valid_o   (irq_valid),
    .irq_queue_o   (irq_queue),
    .irq_ready_i   (irq_ready),
    .error_o       (error),
    .error_cause_o (cause),
    .error_queue_o (error_queue),
    .fail_i        (fail),
    .fail_queue_i  (fail_queue),
    .req_o         (req),
    .req_valid_o   (req_valid),
    .req_ready_i   (req_ready),
    .rd_o          (rd),
    .rd_valid_o    (rd_valid),
    .rd_ready_i    (rd_ready),
    .rsp_i         ('{queue: rsp_queue, merge: rsp_merge, len: rsp_len}),
    .rsp_valid_i   (rsp_valid),
    .rsp_ready_o   (rsp_ready),
    .merged_o      (merged),
    .merged_valid_o(merged_valid),
    .wr_i          ({wr_last, wr_keep, wr_data}),
    .wr_valid_i    (wr_valid),
    .wr_ready_o    (wr_ready),
    .avail_o       (avail),
    .head_wlen_o   (head_wlen),
    .room_o        (rooms),
    .busy_o        (busy),
    .m_ar_o        (ar),
    .m_ar_valid_o  (host_arvalid),
    .m_ar_ready_i  (host_arready),
    .m_r_i         ({host_rid, host_rresp, host_rlast, host_rdata}),
    .m_r_valid_i   (host_rvalid),
    .m_r_ready_o   (host_rready),
    .m_aw_o        (aw),
    .m_aw_valid_o  (host_awvalid),
    .m_aw_ready_i  (host_awready),
    .m_w_o         (w),
    .m_w_valid_o   (host_wvalid),
    .m_w_ready_i   (host_wready),
    .m_b_i         ({host_bid, host_bresp}),
    .m_b_valid_i   (host_bvalid),
    .m_b_ready_o   (host_bready),
    .user_out_i    (1'b0),
    .user_in_i     (1'b0),
    .user_end_i    (1'b0),
    .stat_addr_i   (stat_addr),
    .stat_write_i  (stat_write),
    .stat_rdata_o  (stat_rdata),
    .still_o       (still),
    .idle_o
  );

  assign at_hand = AtHand;

  always_ff @(posedge clk_i) begin
    inputs_q <= inputs;
    if (!rst_ni || !still || inputs != inputs_q) left_q <= 3'd4;
    else if (left_q != '0) left_q <= left_q - 1'b1;
    if (rst_ni) begin
      // The simulator leaves out a block that was at rest for four cycles without a change of its inputs: time alone must not wake it.
      assert (still || left_q != '0 || inputs != inputs_q)
      else $error("still_o fell by itself");
      assert (host_rready || !host_rvalid)
      else $error("R refused");
      assert (host_bready || !host_bvalid)
      else $error("B refused");
    end
  end

endmodule
