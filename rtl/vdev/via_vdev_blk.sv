// SPDX-License-Identifier: Apache-2.0
//
// The disk (type 2): BlkQueues request queues over a range of a slot's address space (the store), accessed through the memory port. With
// AttachSlot the data of every request passes through the user side, one message a request.
// Throughput: one beat a cycle; a read takes three cycles, a write four besides its data. Latency: that of the store and fourteen cycles.
// Order: requests are completed in the order in which they came, over all queues; up to Window are in flight at once, so that everything
// before a flush is in the store when the flush completes. With a flush limit a flush (and, if the driver cannot flush, a write) completes
// when the host has written the data back, or with an error if it does not (via_fn_flush); later requests proceed up to their responses.
// An error ends its request with VIRTIO_BLK_S_IOERR and affects no other.
// Misuse: every length, range and type is checked (via_vdev_blk_front). Source: VIRTIO 1.3, 5.2.

module via_vdev_blk
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  parameter int unsigned Window = 16  // requests in flight
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] features_i,        // features accepted
  input  logic                  driver_ok_i,       // level: DRIVER_OK is set
  input  fn_ctrl_t              ctrl_i,            // settings: store, size, flush limit, …
  output logic                  flush_o,           // level: a flush waits for the host
  input  logic                  flush_done_i,      // level while flush_o: the host has written back
  input  logic                  flush_failed_i,    // level while flush_o: it has failed
  output logic     [      63:0] withhold_o,        // features not to be offered now
  // Engine.
  output logic                  fail_o,            // pulse: a request cannot be responded to; stop the queue
  output logic     [QueueW-1:0] fail_queue_o,      // with fail_o: the queue
  input  vq_req_t               req_i,             // request
  input  logic                  none_i,            // with req_i: it has no readable bytes
  input  logic                  req_valid_i,
  output logic                  req_ready_o,
  input  vq_beat_t              rd_i,              // readable bytes of the request
  input  logic                  rd_valid_i,
  output logic                  rd_ready_o,
  output vq_rsp_t               rsp_o,             // response
  output logic                  rsp_valid_o,
  input  logic                  rsp_ready_i,
  output vq_beat_t              wr_o,              // its bytes
  output logic                  wr_valid_o,
  input  logic                  wr_ready_i,
  // Device configuration.
  input  logic     [      11:0] dev_addr_i,        // device configuration: byte address
  output logic     [      31:0] dev_rdata_o,       // read data, in the same cycle
  output logic                  config_change_o,   // pulse: the device configuration has changed
  // User side.
  output strm_t                 tx_o,
  output logic                  tx_valid_o,
  input  logic                  tx_ready_i,
  input  strm_t                 rx_i,
  input  logic                  rx_valid_i,
  output logic                  rx_ready_o,
  // The store.
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
  output logic                  still_o,           // level: nothing moves unless an input changes
  output logic                  idle_o             // level: no request is in flight
);

  localparam bit WindowOk = param_in("via_vdev_blk Window", Window, 1, 16);

  // ---------------------------------------------------------------- requests to ops
  blk_op_t op, response;
  logic op_valid, op_ready, has_data, data_room, response_room, response_valid, response_pop;
  vq_beat_t pay, front_pay;
  logic pay_valid, pay_ready, front_pay_valid, front_pay_ready, front_moving, front_idle;
  via_vdev_blk_front u_front (
    .clk_i,
    .rst_ni,
    .ctrl_i,
    .flushes_i  (features_i[BlkFFlush]),
    .req_i,
    .none_i,
    .req_valid_i,
    .req_ready_o,
    .rd_i,
    .rd_valid_i,
    .rd_ready_o,
    .fail_o,
    .op_o       (op),
    .op_valid_o (op_valid),
    .op_ready_i (op_ready),
    .pay_o      (front_pay),
    .pay_valid_o(front_pay_valid),
    .pay_ready_i(front_pay_ready),
    .moving_o   (front_moving),
    .idle_o     (front_idle)
  );
  assign fail_queue_o = req_i.queue;
  assign has_data = op.kind inside {BlkRead, BlkWrite, BlkZero};
  assign op_ready = response_room && (data_room || !has_data);

  via_fifo #(
    .T    (blk_op_t),
    .Depth(Window)
  ) u_ops (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (op),
    .s_valid_i(op_valid && op_ready),
    .s_ready_o(response_room),
    .m_o      (response),
    .m_valid_o(response_valid),
    .m_ready_i(response_pop),
    .count_o  ()
  );

  // The front proceeds to the next request while the last bytes of this one wait for their turn.
  via_fifo #(
    .T    (vq_beat_t),
    .Depth(8)
  ) u_pay (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (front_pay),
    .s_valid_i(front_pay_valid),
    .s_ready_o(front_pay_ready),
    .m_o      (pay),
    .m_valid_o(pay_valid),
    .m_ready_i(pay_ready),
    .count_o  ()
  );

  // ---------------------------------------------------------------- data
  vq_beat_t data;
  logic data_valid, data_take, err, result_valid, result_take, data_moving, data_idle;
  via_vdev_blk_data #(
    .Window(Window)
  ) u_data (
    .clk_i,
    .rst_ni,
    .op_i          (op),
    .op_valid_i    (op_valid && response_room && has_data),
    .op_ready_o    (data_room),
    .pay_i         (pay),
    .pay_valid_i   (pay_valid),
    .pay_ready_o   (pay_ready),
    .data_o        (data),
    .data_valid_o  (data_valid),
    .data_ready_i  (data_take),
    .result_err_o  (err),
    .result_valid_o(result_valid),
    .result_ready_i(result_take),
    .tx_o,
    .tx_valid_o,
    .tx_ready_i,
    .rx_i,
    .rx_valid_i,
    .rx_ready_o,
    .m_ar_o        (m_mem_ar_o),
    .m_ar_valid_o  (m_mem_ar_valid_o),
    .m_ar_ready_i  (m_mem_ar_ready_i),
    .m_r_i         (m_mem_r_i),
    .m_r_valid_i   (m_mem_r_valid_i),
    .m_r_ready_o   (m_mem_r_ready_o),
    .m_aw_o        (m_mem_aw_o),
    .m_aw_valid_o  (m_mem_aw_valid_o),
    .m_aw_ready_i  (m_mem_aw_ready_i),
    .m_w_o         (m_mem_w_o),
    .m_w_valid_o   (m_mem_w_valid_o),
    .m_w_ready_i   (m_mem_w_ready_i),
    .m_b_i         (m_mem_b_i),
    .m_b_valid_i   (m_mem_b_valid_i),
    .m_b_ready_o   (m_mem_b_ready_o),
    .moving_o      (data_moving),
    .idle_o        (data_idle)
  );

  // ---------------------------------------------------------------- responses
  typedef enum logic [1:0] {
    StBegin,
    StData,    // of a read
    StResult,  // ... and its result
    StFill     // the rest of the chain; the status is its last byte
  } state_e;
  state_e state_q;
  logic is_write, fill_last, ready, begins, settled_q, failed_q, flush_q, rsp_valid_q, wr_valid, wr_room;
  vq_rsp_t rsp_q;
  vq_beat_t wr;
  logic [7:0] status_q;
  logic [31:0] left_q;
  logic [DataW-1:0] text_q;  // first bytes of the fill
  localparam int unsigned TextW = (DataW > $bits(BlkId)) ? DataW : (($bits(BlkId) + DataW - 1) / DataW) * DataW;
  logic [TextW-1:0] id_q;

  assign is_write = response.kind inside {BlkWrite, BlkZero};
  // The response is offered from a register; its bytes follow meanwhile.
  assign ready = state_q == StBegin && response_valid && (!is_write || result_valid);
  assign begins = ready && (!response.held || settled_q) && (!rsp_valid_q || rsp_ready_i);
  assign rsp_valid_o = rsp_valid_q;
  assign rsp_o = rsp_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rsp_valid_q <= 1'b0;
      flush_q     <= 1'b0;
    end else begin
      rsp_valid_q <= begins || rsp_valid_q && !rsp_ready_i;
      flush_q     <= ready && response.held && !settled_q && !(flush_q && (flush_done_i || flush_failed_i));
    end
  end
  always_ff @(posedge clk_i) if (begins) rsp_q <= '{queue: response.queue, merge: 1'b0, len: response.wlen};
  assign flush_o = flush_q;
  assign result_take = begins && is_write || state_q == StResult;
  assign data_take = state_q == StData && wr_room;
  assign fill_last = left_q <= 32'(StrbW);
  assign response_pop = state_q == StFill && wr_room && fill_last;
  assign text_q = id_q[DataW-1:0];

  assign wr_valid = state_q == StData && data_valid || state_q == StFill;
  always_comb begin
    wr = '{last: 1'b0, keep: '1, data: data.data};
    if (state_q == StFill) begin
      wr.last = fill_last;
      wr.data = text_q;
      if (fill_last) begin
        wr.keep = keep_of(left_q[BeatLog2:0]);
        for (int unsigned i = 0; i < StrbW; i++) if (left_q[BeatLog2:0] == (BeatLog2 + 1)'(i + 1)) wr.data[8*i+:8] = status_q;
      end
    end
  end

  via_slice #(
    .T(vq_beat_t)
  ) u_wr (
    .clk_i,
    .rst_ni,
    .s_i      (wr),
    .s_valid_i(wr_valid),
    .s_ready_o(wr_room),
    .m_o      (wr_o),
    .m_valid_o(wr_valid_o),
    .m_ready_i(wr_ready_i)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= StBegin;
    else begin
      unique case (state_q)
        StBegin:  if (begins) state_q <= (response.kind == BlkRead) ? StData : StFill;
        StData:   if (data_valid && wr_room && data.last) state_q <= StResult;
        StResult: if (result_valid) state_q <= StFill;
        StFill:   if (response_pop) state_q <= StBegin;
        default:  ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || response_pop) settled_q <= 1'b0;
    else if (flush_q && !settled_q && (flush_done_i || flush_failed_i)) settled_q <= 1'b1;
    if (flush_q && !settled_q) failed_q <= flush_failed_i;
  end
  always_ff @(posedge clk_i) begin
    if (begins) begin
      left_q   <= (response.kind == BlkRead) ? 32'd1 : response.wlen;
      status_q <= is_write ? (err ? BlkIoErr : BlkOk) : (response.kind == BlkIdent) ? BlkOk : response.status;
      if (response.held && failed_q) status_q <= BlkIoErr;
      id_q <= (response.kind == BlkIdent) ? TextW'(BlkId) : '0;
    end
    if (state_q == StResult) status_q <= err ? BlkIoErr : BlkOk;
    if (state_q == StFill && wr_room && !fill_last) begin
      left_q <= left_q - 32'(StrbW);
      id_q   <= TextW'({DataW'(0), id_q} >> DataW);
    end
  end

  // ---------------------------------------------------------------- configuration
  always_comb begin
    unique case (dev_addr_i)
      12'h000: dev_rdata_o = ctrl_i.sectors[31:0];
      12'h004: dev_rdata_o = 32'(ctrl_i.sectors[39:32]);
      12'h00c: dev_rdata_o = BlkSegMax;
      12'h014: dev_rdata_o = 32'd512;  // block size
      12'h018: dev_rdata_o = {16'd8, 8'd0, 8'd3};  // physical blocks of 4 KiB; minimum good I/O size: one of them
      12'h020: dev_rdata_o = {16'(BlkQueues), 16'h0};
      12'h024: dev_rdata_o = BlkDiscardMax;
      12'h028: dev_rdata_o = 32'd1;
      12'h02c: dev_rdata_o = 32'd1;  // discard may begin at any sector
      12'h030: dev_rdata_o = BlkZeroMax;
      12'h034: dev_rdata_o = 32'd1;
      default: dev_rdata_o = '0;
    endcase
  end
  always_comb begin
    withhold_o = '0;
    withhold_o[BlkFRo] = !ctrl_i.read_only;
  end

  logic [39:0] sectors_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || ctrl_i.sectors != sectors_q) sectors_q <= ctrl_i.sectors;
  end
  assign config_change_o = driver_ok_i && ctrl_i.sectors != sectors_q;

  logic moves_q;
  always_ff @(posedge clk_i)
    moves_q <= |{begins, rsp_valid_o && rsp_ready_i, wr_valid && wr_room, wr_valid_o && wr_ready_i, ready && response.held, ctrl_i.sectors != sectors_q};
  assign still_o = !(front_moving || data_moving || moves_q || flush_q);
  assign idle_o  = front_idle && data_idle && !response_valid && !rsp_valid_q && !wr_valid_o;

endmodule
