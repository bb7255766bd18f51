// SPDX-License-Identifier: Apache-2.0
//
// The console (type 3): port 0 is a console, port 1 a channel of bytes; without VIRTIO_CONSOLE_F_MULTIPORT there is only port 0.
// User side: bytes, id = port. A buffer of the driver is one message to the user side; a message from there may have any length and is
// spread over as many buffers as it needs. Bytes to a port that the driver has not opened are dropped; to an open one without buffers they
// wait, and rx_i is stalled when 32 beats are held. An emergency write is a message of one byte from port 0.
// The size comes from ctrl_i; a change is reported as a configuration change, and, with ports, by a control message about port 0.
// Throughput: one beat a cycle. Latency: four cycles out, eleven in. Order: kept for each port and direction. Misuse: see
// via_vdev_console_ctrl. Source: VIRTIO 1.3, 5.3.

module via_vdev_console
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  localparam int unsigned NumQ = 32'(VdevConsole.queues)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic     [    63:0] features_i,             // features accepted
  input  logic                driver_ok_i,            // level: DRIVER_OK is set
  input  fn_ctrl_t            ctrl_i,                 // settings: size, connection
  // Engine.
  input  vq_req_t             req_i,                  // request
  input  logic                none_i,                 // with req_i: it has no readable bytes
  input  logic                req_valid_i,
  output logic                req_ready_o,
  input  vq_beat_t            rd_i,                   // readable bytes of the request
  input  logic                rd_valid_i,
  output logic                rd_ready_o,
  output vq_rsp_t             rsp_o,                  // response
  output logic                rsp_valid_o,
  input  logic                rsp_ready_i,
  output vq_beat_t            wr_o,                   // its bytes
  output logic                wr_valid_o,
  input  logic                wr_ready_i,
  input  logic     [NumQ-1:0] avail_i,                // level: the queue has a buffer
  input  logic     [    31:0] head_wlen_i    [NumQ],  // size in bytes of its next buffer
  output logic     [NumQ-1:0] short_o,                // level: data waits for buffers
  // Device configuration.
  input  logic     [    11:0] dev_addr_i,             // device configuration: byte address
  input  logic                dev_write_i,            // pulse: write
  input  logic     [     3:0] dev_strb_i,             // bytes written
  input  logic     [    31:0] dev_wdata_i,            // data to write
  output logic     [    31:0] dev_rdata_o,            // read data, in the same cycle
  output logic                config_change_o,        // pulse: the device configuration has changed
  // User side.
  output strm_t               tx_o,
  output logic                tx_valid_o,
  input  logic                tx_ready_i,
  input  strm_t               rx_i,
  input  logic                rx_valid_i,
  output logic                rx_ready_o,
  output logic                still_o,                // level: nothing moves unless an input changes
  output logic                idle_o                  // level: nothing is held
);

  // Port 0 has queues 0 and 1, control 2 and 3, port k > 0 has 2k + 2 and 2k + 3.
  localparam int unsigned Clients = ConsolePorts + 2;
  localparam int unsigned CtrlRx = 2;
  localparam logic [QueueW-1:0] CtrlTx = 4'd3;

  vq_rsp_t  rsp[Clients];
  vq_beat_t wr [Clients];
  logic [Clients-1:0] rsp_valid, rsp_ready, wr_valid, wr_ready;
  logic [ConsolePorts-1:0] chop_ready, chop_moving, chop_idle, guest_open, open;
  logic multiport, up_q;
  assign multiport = features_i[ConsoleFMultiport];
  always_ff @(posedge clk_i) up_q <= ctrl_i.up && ctrl_i.kind != AttachNone;
  assign open = !driver_ok_i ? '0 : multiport ? guest_open : ConsolePorts'(1);

  // ---------------------------------------------------------------- out: the driver's buffers, and emergency writes
  logic is_ctrl, emergency, emergency_take, emergency_put, tell_moving, tell_idle, heard, first_q;
  logic [7:0] emergency_byte, port;
  assign is_ctrl = req_i.queue == CtrlTx;
  assign port = (req_i.queue == 4'd1) ? 8'd0 : 8'(req_i.queue[QueueW-1:1]) - 8'd1;
  via_vdev_tell u_tell (
    .clk_i,
    .rst_ni,
    .drop_i      (is_ctrl || !up_q || !multiport && req_i.queue != 4'd1),
    .id_i        (port),
    .byte_i      (emergency_byte),
    .byte_valid_i(emergency),
    .byte_ready_o(emergency_take),
    .req_i,
    .none_i,
    .req_valid_i,
    .req_ready_o,
    .rd_i,
    .rd_valid_i,
    .rd_ready_o,
    .rsp_o       (rsp[Clients-1]),
    .rsp_valid_o (rsp_valid[Clients-1]),
    .rsp_ready_i (rsp_ready[Clients-1]),
    .tx_o,
    .tx_valid_o,
    .tx_ready_i,
    .moving_o    (tell_moving),
    .idle_o      (tell_idle)
  );

  // Characters written to the configuration space.
  assign emergency_put = dev_write_i && dev_addr_i == 12'h008 && dev_strb_i[0];
  via_fifo #(
    .T    (logic [7:0]),
    .Depth(16)
  ) u_emergency (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (dev_wdata_i[7:0]),
    .s_valid_i(emergency_put),
    .s_ready_o(),
    .m_o      (emergency_byte),
    .m_valid_o(emergency),
    .m_ready_i(emergency_take),
    .count_o  ()
  );

  // The first beat of a control message.
  assign heard = rd_valid_i && rd_ready_o && is_ctrl && multiport && first_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) first_q <= 1'b1;
    else if (rd_valid_i && rd_ready_o) first_q <= rd_i.last;
  end
  assign wr[Clients-1] = '0;
  assign wr_valid[Clients-1] = 1'b0;

  // ---------------------------------------------------------------- control
  logic ctrl_moving, ctrl_idle;
  via_vdev_console_ctrl #(
    .Queue(QueueW'(CtrlRx))
  ) u_ctrl (
    .clk_i,
    .rst_ni,
    .msg_i      (rd_i),
    .msg_valid_i(heard),
    .size_i     (features_i[ConsoleFSize]),
    .rows_i     (ctrl_i.rows),
    .cols_i     (ctrl_i.cols),
    .resize_i   (config_change_o),
    .open_o     (guest_open),
    .avail_i    (avail_i[CtrlRx]),
    .wlen_i     (head_wlen_i[CtrlRx]),
    .rsp_o      (rsp[ConsolePorts]),
    .rsp_valid_o(rsp_valid[ConsolePorts]),
    .rsp_ready_i(rsp_ready[ConsolePorts]),
    .wr_o       (wr[ConsolePorts]),
    .wr_valid_o (wr_valid[ConsolePorts]),
    .wr_ready_i (wr_ready[ConsolePorts]),
    .short_o    (short_o[CtrlRx]),
    .moving_o   (ctrl_moving),
    .idle_o     (ctrl_idle)
  );

  assign short_o[CtrlRx+1] = 1'b0;

  // ---------------------------------------------------------------- in
  strm_t rx;
  logic rx_valid, rx_ready;
  logic [ConsolePorts-1:0] rx_sel;
  via_slice #(
    .T(strm_t)
  ) u_rx (
    .clk_i,
    .rst_ni,
    .s_i      (rx_i),
    .s_valid_i(rx_valid_i),
    .s_ready_o(rx_ready_o),
    .m_o      (rx),
    .m_valid_o(rx_valid),
    .m_ready_i(rx_ready)
  );
  always_comb begin
    for (int unsigned p = 0; p < ConsolePorts; p++) rx_sel[p] = rx.id == 8'(p);
  end
  assign rx_ready = (rx_sel == '0) || |(rx_sel & chop_ready);
  for (genvar p = 0; p < ConsolePorts; p++) begin : gen_port
    localparam int unsigned Queue = (p == 0) ? 0 : 2 * p + 2;
    assign short_o[Queue+1] = 1'b0;
    via_vdev_chop #(
      .Queue(QueueW'(Queue))
    ) u_chop (
      .clk_i,
      .rst_ni,
      .s_i        (rx),
      .s_valid_i  (rx_valid && rx_sel[p]),
      .s_ready_o  (chop_ready[p]),
      .drop_i     (!open[p]),
      .avail_i    (avail_i[Queue]),
      .wlen_i     (head_wlen_i[Queue]),
      .rsp_o      (rsp[p]),
      .rsp_valid_o(rsp_valid[p]),
      .rsp_ready_i(rsp_ready[p]),
      .wr_o       (wr[p]),
      .wr_valid_o (wr_valid[p]),
      .wr_ready_i (wr_ready[p]),
      .short_o    (short_o[Queue]),
      .moving_o   (chop_moving[p]),
      .idle_o     (chop_idle[p])
    );
  end

  logic out_moving, out_idle;
  via_vdev_responses #(
    .N(Clients)
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

  // ---------------------------------------------------------------- configuration
  always_comb begin
    unique case (dev_addr_i)
      12'h000: dev_rdata_o = {ctrl_i.rows, ctrl_i.cols};
      12'h004: dev_rdata_o = ConsolePorts;
      default: dev_rdata_o = '0;
    endcase
  end

  logic [31:0] size_q;
  always_ff @(posedge clk_i) size_q <= {ctrl_i.rows, ctrl_i.cols};
  assign config_change_o = size_q != {ctrl_i.rows, ctrl_i.cols};

  logic moves_q;
  always_ff @(posedge clk_i) moves_q <= |{config_change_o, emergency_put, rx_valid_i && rx_ready_o, rx_valid && rx_ready};
  assign still_o = !(tell_moving || ctrl_moving || |chop_moving || out_moving || moves_q);
  assign idle_o  = !rx_valid && tell_idle && !emergency && ctrl_idle && &chop_idle && out_idle;

endmodule
