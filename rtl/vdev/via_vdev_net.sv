// SPDX-License-Identifier: Apache-2.0
//
// The net device (type 1): NetPairs queue pairs and a control queue (queue 2 without VIRTIO_NET_F_MQ, the last one with it).
// User side: Ethernet frames without virtio header and frame check sequence. Parts: via_vdev_net_tx, via_vdev_net_rx, via_vdev_net_ctrl.
// Throughput: one beat a cycle each way; frames of 64 bytes: at most eight cycles each, both ways at once. Latency: five cycles out, two
// from a frame's last beat to its response. Order: kept in each queue.
// Misuse: wrong frames are dropped, wrong commands get VIRTIO_NET_ERR (see the parts). Requests of all queues share one stream: one waits
// until the bytes of those before it are accepted. Source: VIRTIO 1.3, 5.1.

module via_vdev_net
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  localparam int unsigned NumQ = 32'(VdevNet.queues)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] features_i,             // features accepted
  input  logic                  driver_ok_i,            // level: DRIVER_OK is set
  input  fn_ctrl_t              ctrl_i,                 // settings: MAC address, link, connection
  // Engine.
  output logic     [  NumQ-1:0] wait_o,                 // level: chains of the queue wait for a response
  output logic                  fail_o,                 // pulse: a request cannot be responded to
  output logic     [QueueW-1:0] fail_queue_o,           // with fail_o: the queue to stop
  input  vq_req_t               req_i,                  // request
  input  logic                  req_valid_i,
  output logic                  req_ready_o,
  input  vq_beat_t              rd_i,                   // readable bytes of the request
  input  logic                  rd_valid_i,
  output logic                  rd_ready_o,
  output vq_rsp_t               rsp_o,                  // response
  output logic                  rsp_valid_o,
  input  logic                  rsp_ready_i,
  input  logic     [      15:0] merged_i,               // chains that the last `merge` response used
  input  logic                  merged_valid_i,         // pulse: merged_i is valid
  output vq_beat_t              wr_o,                   // bytes of the response
  output logic                  wr_valid_o,
  input  logic                  wr_ready_i,
  input  logic     [  NumQ-1:0] in_use_i,               // level: enabled, not under reset
  input  logic     [  NumQ-1:0] avail_i,                // level: the queue has a buffer
  input  logic     [      31:0] head_wlen_i    [NumQ],  // size in bytes of its next buffer
  input  logic     [      31:0] room_i         [NumQ],  // bytes of all its buffers
  input  logic     [  NumQ-1:0] busy_i,                 // level: a `merge` response is using its chains
  output logic     [  NumQ-1:0] short_o,                // level: frames wait for buffers of the queue
  // Device configuration.
  input  logic     [      11:0] dev_addr_i,             // device configuration: byte address
  output logic     [      31:0] dev_rdata_o,            // read data, in the same cycle
  output logic                  config_change_o,        // pulse: the device configuration has changed
  // User side.
  output strm_t                 tx_o,
  output logic                  tx_valid_o,
  input  logic                  tx_ready_i,
  input  strm_t                 rx_i,
  input  logic                  rx_valid_i,
  output logic                  rx_ready_o,
  output logic                  still_o,                // level: nothing moves unless an input changes
  output logic                  idle_o                  // level: nothing is held
);

  // ---------------------------------------------------------------- requests
  // A request arrives long before its bytes: it may be delayed by a cycle, its bytes may not.
  typedef struct packed {
    logic    none;  // without bytes
    vq_req_t req;
  } ask_t;
  ask_t ask;
  vq_req_t req;
  vq_beat_t rd;
  logic req_valid, req_ready, rd_valid, rd_ready;
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
  assign req = ask.req;
  via_skid #(
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

  // ---------------------------------------------------------------- roles of the queues
  logic is_ctrl, open;
  assign wait_o = features_i[NetFMq] ? VdevNet.waits[NumQ-1:0] : NumQ'(1);
  assign is_ctrl = !req.queue[0];  // receive queues get no requests
  assign open = driver_ok_i && ctrl_i.up && ctrl_i.kind != AttachNone;

  logic tx_req_ready, ctrl_req_ready, tx_rd_ready, ctrl_rd_ready;
  assign req_ready = is_ctrl ? ctrl_req_ready : tx_req_ready;
  assign rd_ready  = is_ctrl ? ctrl_rd_ready : tx_rd_ready;

  vq_rsp_t  rsp[3];
  vq_beat_t wr [3];
  logic [2:0] rsp_valid, rsp_ready, wr_valid, wr_ready;
  logic tx_moving, rx_moving, ctrl_moving, out_moving;
  logic tx_idle, rx_idle, ctrl_idle, out_idle, rx_early;
  logic [1:0] tx_drop, rx_drop;

  logic [47:0] mac, dst;
  logic [2:0] pairs;
  logic accept;
  via_vdev_net_ctrl u_ctrl (
    .clk_i,
    .rst_ni,
    .features_i,
    .mac_i      (ctrl_i.mac),
    .req_i      (req),
    .none_i     (ask.none),
    .req_valid_i(req_valid && is_ctrl),
    .req_ready_o(ctrl_req_ready),
    .rd_i       (rd),
    .rd_valid_i (rd_valid),
    .rd_ready_o (ctrl_rd_ready),
    .rsp_o      (rsp[0]),
    .rsp_valid_o(rsp_valid[0]),
    .rsp_ready_i(rsp_ready[0]),
    .wr_o       (wr[0]),
    .wr_valid_o (wr_valid[0]),
    .wr_ready_i (wr_ready[0]),
    .fail_o,
    .fail_queue_o,
    .mac_o      (mac),
    .pairs_o    (pairs),
    .dst_i      (dst),
    .accept_o   (accept),
    .moving_o   (ctrl_moving),
    .idle_o     (ctrl_idle)
  );

  via_vdev_net_tx u_tx (
    .clk_i,
    .rst_ni,
    .csum_i     (features_i[NetFCsum]),
    .open_i     (open),
    .req_i      (req),
    .none_i     (ask.none),
    .req_valid_i(req_valid && !is_ctrl),
    .req_ready_o(tx_req_ready),
    .rd_i       (rd),
    .rd_valid_i (rd_valid),
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
  assign wr[1] = '0;  // its responses have no bytes
  assign wr_valid[1] = 1'b0;

  logic [NetPairs-1:0] rx_in_use, rx_avail, rx_short;
  logic [31:0] rx_wlen[NetPairs], rx_room[NetPairs];
  logic [NetPairs-1:0] rx_busy;
  for (genvar p = 0; p < NetPairs; p++) begin : gen_rxq
    assign rx_in_use[p] = in_use_i[2*p];
    assign rx_avail[p] = avail_i[2*p];
    assign rx_wlen[p] = head_wlen_i[2*p];
    assign rx_room[p] = room_i[2*p];
    assign rx_busy[p] = busy_i[2*p];
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
    .busy_i     (rx_busy),
    .short_o    (rx_short),
    .rsp_o      (rsp[2]),
    .rsp_valid_o(rsp_valid[2]),
    .rsp_early_i(rx_early),
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

  via_vdev_responses #(
    .N    (3),
    .Early(1'b1)
  ) u_responses (
    .clk_i,
    .rst_ni,
    .s_rsp_i      (rsp),
    .s_rsp_valid_i(rsp_valid),
    .s_rsp_ready_o(rsp_ready),
    .early_o      (rx_early),
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
  // After the fields of the specification: counters of frames dropped in transmit and in receive direction.
  logic [31:0] tx_drops_q, rx_drops_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tx_drops_q <= '0;
      rx_drops_q <= '0;
    end else begin
      if (tx_drop != '0) tx_drops_q <= tx_drops_q + (&tx_drop ? 32'd2 : 32'd1);
      if (rx_drop != '0) rx_drops_q <= rx_drops_q + (&rx_drop ? 32'd2 : 32'd1);
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

  logic moves_q;
  always_ff @(posedge clk_i) moves_q <= |{config_change_o, req_valid_i && req_ready_o, req_valid && req_ready, rd_valid_i && rd_ready_o};
  assign still_o = !(tx_moving || rx_moving || ctrl_moving || out_moving || moves_q);
  assign idle_o  = !req_valid && tx_idle && rx_idle && ctrl_idle && out_idle;

endmodule
