// SPDX-License-Identifier: Apache-2.0
//
// An input device (type 18): a keyboard. User side in: events of 8 bytes {type, code, value}, any number per message, passed to the driver
// as they are (EV_SYN included). User side out: what the driver sends to the keyboard (its LEDs), one message per buffer.
// Throughput: an event in eight cycles. Latency: ten cycles in, four out. Order: kept in each direction. Misuse: an incomplete event is
// dropped (via_vdev_chop). Source: VIRTIO 1.3, 5.8.

module via_vdev_input
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  localparam int unsigned NumQ = 32'(VdevInput.queues)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  fn_ctrl_t            ctrl_i,             // settings: connection
  // Engine: queue 0 has buffers for events, queue 1 carries status.
  input  vq_req_t             req_i,              // request
  input  logic                none_i,             // with req_i: it has no readable bytes
  input  logic                req_valid_i,
  output logic                req_ready_o,
  input  vq_beat_t            rd_i,               // readable bytes of the request
  input  logic                rd_valid_i,
  output logic                rd_ready_o,
  output vq_rsp_t             rsp_o,              // response
  output logic                rsp_valid_o,
  input  logic                rsp_ready_i,
  output vq_beat_t            wr_o,               // its bytes
  output logic                wr_valid_o,
  input  logic                wr_ready_i,
  input  logic     [NumQ-1:0] avail_i,            // level: the queue has a buffer
  input  logic     [    31:0] head_wlen_i[NumQ],  // size in bytes of its next buffer
  output logic     [NumQ-1:0] short_o,            // level: data waits for buffers
  // Device configuration.
  input  logic     [    11:0] dev_addr_i,         // device configuration: byte address
  input  logic                dev_write_i,        // pulse: write
  input  logic     [     3:0] dev_strb_i,         // bytes written
  input  logic     [    31:0] dev_wdata_i,        // data to write
  output logic     [    31:0] dev_rdata_o,        // read data, in the same cycle
  // User side.
  output strm_t               tx_o,
  output logic                tx_valid_o,
  input  logic                tx_ready_i,
  input  strm_t               rx_i,
  input  logic                rx_valid_i,
  output logic                rx_ready_o,
  output logic                still_o,            // level: nothing moves unless an input changes
  output logic                idle_o              // level: nothing is held
);

  vq_rsp_t  rsp[2];
  vq_beat_t wr [2];
  logic [1:0] rsp_valid, rsp_ready, wr_valid, wr_ready;
  logic chop_moving, chop_idle, tell_moving, tell_idle, out_moving, out_idle;

  // ---------------------------------------------------------------- events
  via_vdev_chop #(
    .Unit (8),
    .Queue(QueueW'(0))
  ) u_events (
    .clk_i,
    .rst_ni,
    .s_i        (rx_i),
    .s_valid_i  (rx_valid_i),
    .s_ready_o  (rx_ready_o),
    .drop_i     (1'b0),
    .avail_i    (avail_i[0]),
    .wlen_i     (head_wlen_i[0]),
    .rsp_o      (rsp[0]),
    .rsp_valid_o(rsp_valid[0]),
    .rsp_ready_i(rsp_ready[0]),
    .wr_o       (wr[0]),
    .wr_valid_o (wr_valid[0]),
    .wr_ready_i (wr_ready[0]),
    .short_o    (short_o[0]),
    .moving_o   (chop_moving),
    .idle_o     (chop_idle)
  );

  assign short_o[1] = 1'b0;

  // ---------------------------------------------------------------- status
  logic up_q;
  always_ff @(posedge clk_i) up_q <= ctrl_i.up && ctrl_i.kind != AttachNone;
  via_vdev_tell u_status (
    .clk_i,
    .rst_ni,
    .drop_i      (!up_q),
    .id_i        ('0),
    .byte_i      ('0),
    .byte_valid_i(1'b0),
    .byte_ready_o(),
    .req_i,
    .none_i,
    .req_valid_i,
    .req_ready_o,
    .rd_i,
    .rd_valid_i,
    .rd_ready_o,
    .rsp_o       (rsp[1]),
    .rsp_valid_o (rsp_valid[1]),
    .rsp_ready_i (rsp_ready[1]),
    .tx_o,
    .tx_valid_o,
    .tx_ready_i,
    .moving_o    (tell_moving),
    .idle_o      (tell_idle)
  );
  assign wr[1] = '0;
  assign wr_valid[1] = 1'b0;

  via_vdev_responses #(
    .N(2)
  ) u_responses (
    .clk_i,
    .rst_ni,
    .s_rsp_i      (rsp),
    .s_rsp_valid_i(rsp_valid),
    .s_rsp_ready_o(rsp_ready),
    .early_o      (),
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

  // ---------------------------------------------------------------- configuration, addressed by `select` and `subsel`
  localparam logic [7:0] SelName = 8'h01;
  localparam logic [7:0] SelIds = 8'h03;
  localparam logic [7:0] SelBits = 8'h11;
  localparam logic [7:0] EvKey = 8'h01;
  localparam logic [7:0] EvLed = 8'h11;
  localparam logic [7:0] EvRep = 8'h14;
  logic [7:0] select_q, subsel_q, size;
  logic [127:0] text;  // from its lowest byte
  logic select_write;
  assign select_write = dev_write_i && dev_addr_i == '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      select_q <= '0;
      subsel_q <= '0;
    end else if (select_write) begin
      if (dev_strb_i[0]) select_q <= dev_wdata_i[7:0];
      if (dev_strb_i[1]) subsel_q <= dev_wdata_i[15:8];
    end
  end
  always_comb begin
    size = '0;
    text = '0;
    if (select_q == SelName && subsel_q == '0) begin
      size = 8'd16;
      text = "draobyek tcudaiV";
    end
    if (select_q == SelIds && subsel_q == '0) begin
      size = 8'd8;
      text = {64'h0, 16'd1, 16'd1, 16'h1af4, 16'h0006};  // version, product, vendor, bus: virtual
    end
    if (select_q == SelBits && subsel_q == EvKey) begin
      size = 8'd16;
      text = ~128'h1;  // keys 1 to 127
    end
    if (select_q == SelBits && subsel_q == EvLed) begin
      size = 8'd1;
      text = 128'h7;  // LEDs: num lock, caps lock, scroll lock
    end
    if (select_q == SelBits && subsel_q == EvRep) size = 8'd1;
  end
  always_comb begin
    unique case (dev_addr_i)
      12'h000: dev_rdata_o = {8'h0, size, subsel_q, select_q};
      12'h008: dev_rdata_o = text[31:0];
      12'h00c: dev_rdata_o = text[63:32];
      12'h010: dev_rdata_o = text[95:64];
      12'h014: dev_rdata_o = text[127:96];
      default: dev_rdata_o = '0;
    endcase
  end

  assign still_o = !(chop_moving || tell_moving || out_moving || select_write);
  assign idle_o  = chop_idle && tell_idle && out_idle;

endmodule
