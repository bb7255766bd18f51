// SPDX-License-Identifier: Apache-2.0
//
// The net device (type 1): NetPairs queue pairs and a control queue (queue 2 without VIRTIO_NET_F_MQ, the last one with it).
// User side: Ethernet frames without virtio header and frame check sequence. Parts: via_vdev_net_tx, via_vdev_net_rx, via_vdev_net_ctrl.
// Throughput: one beat a cycle each way; frames of 64 bytes: at most eight cycles each, both ways at once. Latency: five cycles each way.
// A request stands before those behind it until its bytes are taken. Source: VIRTIO 1.3, 5.1.

module via_vdev_net
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  localparam int unsigned NumQ = 32'(VdevNet.queues)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] features_i,
  input  logic                  driver_ok_i,
  input  fn_ctrl_t              ctrl_i,
  // Engine.
  output logic     [  NumQ-1:0] wait_o,
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
  input  logic     [  NumQ-1:0] in_use_i,
  input  logic     [  NumQ-1:0] avail_i,
  input  logic     [      31:0] head_wlen_i    [NumQ],
  input  logic     [      31:0] room_i         [NumQ],
  output logic     [  NumQ-1:0] short_o,
  // Device configuration.
  input  logic     [      11:0] dev_addr_i,
  output logic     [      31:0] dev_rdata_o,
  output logic                  config_change_o,
  // User side.
  output strm_t                 tx_o,
  output logic                  tx_valid_o,
  input  logic                  tx_ready_i,
  input  strm_t                 rx_i,
  input  logic                  rx_valid_i,
  output logic                  rx_ready_o,
  output logic                  still_o,
  output logic                  idle_o
);

  // ---------------------------------------------------------------- which queue is what
  logic mq, is_ctrl, open;
  assign mq = features_i[NetFMq];
  assign wait_o = mq ? VdevNet.waits[NumQ-1:0] : NumQ'(1);
  assign is_ctrl = !req_i.queue[0];  // the receive queues wait
  assign open = driver_ok_i && ctrl_i.up && ctrl_i.kind != AttachNone;

  logic tx_req_ready, ctrl_req_ready, tx_rd_ready, ctrl_rd_ready;
  assign req_ready_o = is_ctrl ? ctrl_req_ready : tx_req_ready;
  assign rd_ready_o  = is_ctrl ? ctrl_rd_ready : tx_rd_ready;

  vq_rsp_t  rsp[3];
  vq_beat_t wr [3];
  logic [2:0] rsp_valid, rsp_ready, wr_valid, wr_ready;
  logic tx_moving, rx_moving, ctrl_moving, out_moving;
  logic tx_idle, rx_idle, ctrl_idle, out_idle, tx_drop, rx_drop;

  logic [47:0] mac, dst;
  logic [2:0] pairs;
  logic accept;
  via_vdev_net_ctrl u_ctrl (
    .clk_i,
    .rst_ni,
    .features_i,
    .mac_i      (ctrl_i.mac),
    .req_i,
    .req_valid_i(req_valid_i && is_ctrl),
    .req_ready_o(ctrl_req_ready),
    .rd_i,
    .rd_valid_i,
    .rd_ready_o (ctrl_rd_ready),
    .rsp_o      (rsp[0]),
    .rsp_valid_o(rsp_valid[0]),
    .rsp_ready_i(rsp_ready[0]),
    .wr_o       (wr[0]),
    .wr_valid_o (wr_valid[0]),
    .wr_ready_i (wr_ready[0]),
    .fail_o,
    .mac_o      (mac),
    .pairs_o    (pairs),
    .dst_i      (dst),
    .accept_o   (accept),
    .moving_o   (ctrl_moving),
    .idle_o     (ctrl_idle)
  );
  assign fail_queue_o = req_i.queue;

  via_vdev_net_tx u_tx (
    .clk_i,
    .rst_ni,
    .csum_i     (features_i[NetFCsum]),
    .open_i     (open),
    .req_i,
    .req_valid_i(req_valid_i && !is_ctrl),
    .req_ready_o(tx_req_ready),
    .rd_i,
    .rd_valid_i,
    .rd_ready_o (tx_rd_ready),
    .rsp_o      (rsp[1]),
    .rsp_valid_o(rsp_valid[1]),
    .rsp_ready_i(rsp_ready[1]),
    .tx_o,
    .tx_valid_o,
    .tx_ready_i,
    .drop_o     (tx_drop),
    .moving_o   (tx_moving),
    .idle_o     (tx_idle)
  );
  assign wr[1] = '0;  // its answers have no bytes
  assign wr_valid[1] = 1'b0;

  logic [NetPairs-1:0] rx_in_use, rx_avail, rx_short;
  logic [31:0] rx_wlen[NetPairs], rx_room[NetPairs];
  for (genvar p = 0; p < NetPairs; p++) begin : gen_rxq
    assign rx_in_use[p] = in_use_i[2*p];
    assign rx_avail[p] = avail_i[2*p];
    assign rx_wlen[p] = head_wlen_i[2*p];
    assign rx_room[p] = room_i[2*p];
    assign short_o[2*p] = rx_short[p];
    assign short_o[2*p+1] = 1'b0;
  end

  via_vdev_net_rx u_rx (
    .clk_i,
    .rst_ni,
    .merge_i    (features_i[NetFMrgRxbuf]),
    .open_i     (open),
    .pairs_i    (pairs),
    .dst_o      (dst),
    .accept_i   (accept),
    .rx_i,
    .rx_valid_i,
    .rx_ready_o,
    .in_use_i   (rx_in_use),
    .avail_i    (rx_avail),
    .head_wlen_i(rx_wlen),
    .room_i     (rx_room),
    .short_o    (rx_short),
    .rsp_o      (rsp[2]),
    .rsp_valid_o(rsp_valid[2]),
    .rsp_ready_i(rsp_ready[2]),
    .merged_i,
    .merged_valid_i,
    .wr_o       (wr[2]),
    .wr_valid_o (wr_valid[2]),
    .wr_ready_i (wr_ready[2]),
    .drop_o     (rx_drop),
    .moving_o   (rx_moving),
    .idle_o     (rx_idle)
  );

  via_vdev_answers #(
    .N(3)
  ) u_answers (
    .clk_i,
    .rst_ni,
    .s_rsp_i      (rsp),
    .s_rsp_valid_i(rsp_valid),
    .s_rsp_ready_o(rsp_ready),
    .s_wr_i       (wr),
    .s_wr_valid_i (wr_valid),
    .s_wr_ready_o (wr_ready),
    .rsp_o,
    .rsp_valid_o,
    .rsp_ready_i,
    .wr_o,
    .wr_valid_o,
    .wr_ready_i,
    .moving_o     (out_moving),
    .idle_o       (out_idle)
  );

  assign short_o[NumQ-1] = 1'b0;

  // ---------------------------------------------------------------- configuration
  // Behind what the specification has: frames dropped on the way out, and on the way in.
  logic [31:0] tx_drops_q, rx_drops_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tx_drops_q <= '0;
      rx_drops_q <= '0;
    end else begin
      if (tx_drop) tx_drops_q <= tx_drops_q + 1'b1;
      if (rx_drop) rx_drops_q <= rx_drops_q + 1'b1;
    end
  end

  always_comb begin
    unique case (dev_addr_i)
      12'h000: dev_rdata_o = mac[31:0];
      12'h004: dev_rdata_o = {15'h0, ctrl_i.up, mac[47:32]};
      12'h008: dev_rdata_o = {16'(NetMtu), 16'(NetPairs)};
      12'h00c: dev_rdata_o = NetSpeed;
      12'h010: dev_rdata_o = 32'h1;  // full duplex
      12'h040: dev_rdata_o = tx_drops_q;
      12'h044: dev_rdata_o = rx_drops_q;
      default: dev_rdata_o = '0;
    endcase
  end
  logic up_q;
  always_ff @(posedge clk_i) up_q <= ctrl_i.up;
  assign config_change_o = up_q != ctrl_i.up;

  assign still_o = !(tx_moving || rx_moving || ctrl_moving || out_moving || config_change_o);
  assign idle_o = tx_idle && rx_idle && ctrl_idle && out_idle;

endmodule
