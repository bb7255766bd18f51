// SPDX-License-Identifier: Apache-2.0
//
// The queue engine of a virtio function: from notifications to requests, from responses to used entries and interrupts.
//
//            notify                              ┌─ jobs ──> via_vq_gather ──> req, rd
//               └──> via_vq_fetch ─ via_vq_store ┤
//                                                └─ heads ─> via_vq_scatter <── rsp, wr
//   AR, R <── via_vq_rdmux <── fetch, gather, used    └───── via_vq_used ──> irq
//   AW, W <── via_vq_wrmux <── payload, used, avail_event
//
// Throughput: a chain of one descriptor every 4 cycles, payload a beat per cycle and direction. Latency, and order of data: see the blocks.
// Order towards the host: payload, used entry, the write that makes the entry visible, all on one port; after that write the suppression
// field is read; then the interrupt.
// Host port: R comes two cycles after its AR was accepted, or later (via_vq_rdmux); an earlier one is dropped (asserted).
// Gate: while `enable_i` is low nothing begins at the port, and what was begun is completed. Reset the engine only when it has drained.
// Misuse: an error stops its queue and is reported once on error_*; other queues continue. A queue is quiet when nothing of it is in flight
// and every request of it has its response.

module via_vq
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ   = 2,    // queues
  parameter bit          AtHand = 1'b0  // see via_vq_scatter
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    enable_i,              // level: accesses to host memory may begin
  output logic                    drained_o,             // level: none is in flight, and none begins until enable_i rises
  input  logic       [      63:0] time_i,                // card time
  input  logic       [  NumQ-1:0] wait_i,                // level: chains of the queue wait for a response, they are no requests
  input  vq_feat_t                feat_i,                // negotiated features
  input  logic                    driver_ok_i,           // level: DRIVER_OK is set
  input  vq_cfg_t                 queue_i       [NumQ],  // queues as the driver has set them up
  input  logic       [  NumQ-1:0] queue_reset_i,         // level: the queue is under reset
  output logic       [  NumQ-1:0] queue_quiet_o,         // level: nothing of the queue is in flight
  input  vq_notify_t              notify_i,              // with notify_valid_i: the notification
  input  logic                    notify_valid_i,        // pulse
  input  logic       [      15:0] moderate_i,            // minimum cycles between two interrupts of a queue
  input  vq_look_t                look_i,                // polling of queues without buffers
  input  logic       [  NumQ-1:0] short_i,               // level: data waits for buffers of the queue, which are not there
  output logic                    irq_valid_o,
  output logic       [QueueW-1:0] irq_queue_o,           // queue whose interrupt it is
  input  logic                    irq_ready_i,
  output logic                    error_o,               // pulse: a queue has stopped
  output vq_err_e                 error_cause_o,         // with error_o: why
  output logic       [QueueW-1:0] error_queue_o,         // with error_o: which queue
  input  logic                    fail_i,                // pulse: the personality cannot respond to a request
  input  logic       [QueueW-1:0] fail_queue_i,          // with fail_i: stop this queue
  output vq_req_t                 req_o,                 // request: a chain with readable bytes
  output logic                    req_valid_o,
  input  logic                    req_ready_i,
  output vq_beat_t                rd_o,                  // its bytes
  output logic                    rd_valid_o,
  input  logic                    rd_ready_i,
  input  vq_rsp_t                 rsp_i,                 // response
  input  logic                    rsp_valid_i,
  output logic                    rsp_ready_o,
  output logic       [      15:0] merged_o,              // chains that the last `merge` response used
  output logic                    merged_valid_o,        // pulse: merged_o is valid
  input  vq_beat_t                wr_i,                  // bytes of the response
  input  logic                    wr_valid_i,
  output logic                    wr_ready_o,
  output logic       [  NumQ-1:0] avail_o,               // level: the queue has a buffer
  output logic       [      31:0] head_wlen_o   [NumQ],  // size in bytes of its next buffer
  output logic       [      31:0] room_o        [NumQ],  // bytes of all its buffers
  output logic       [  NumQ-1:0] busy_o,                // level: a response uses its chains, or it is closing: room_o is not valid
  output axi_ax_t                 m_ar_o,
  output logic                    m_ar_valid_o,
  input  logic                    m_ar_ready_i,
  input  axi_r_t                  m_r_i,
  input  logic                    m_r_valid_i,
  output logic                    m_r_ready_o,
  output axi_ax_t                 m_aw_o,
  output logic                    m_aw_valid_o,
  input  logic                    m_aw_ready_i,
  output axi_w_t                  m_w_o,
  output logic                    m_w_valid_o,
  input  logic                    m_w_ready_i,
  input  axi_b_t                  m_b_i,
  input  logic                    m_b_valid_i,
  output logic                    m_b_ready_o,
  // for the counters
  input  logic                    user_out_i,            // pulse: a whole message has gone to the user side
  input  logic                    user_in_i,             // pulse: a beat has come from there
  input  logic                    user_end_i,            // pulse: the last beat of a message has
  input  logic       [       9:0] stat_addr_i,           // word address of a counter
  input  logic                    stat_write_i,          // pulse: write it
  output logic       [      31:0] stat_rdata_o,          // its value
  output logic                    still_o,               // level: nothing moves unless an input changes
  output logic                    idle_o                 // level: nothing is in flight
);

  // A ring line (64 bytes) is one beat.
  localparam bit WidthOk = param_in("VIA_DATA_W of via_vq", DataW, 512, 512);
  localparam bit NumQOk = param_in("via_vq NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  // Read clients: suppression fields, four of via_vq_fetch, payload.
  localparam int unsigned NumRd = 6;
  localparam int unsigned RdGather = NumRd - 1;

  logic [7:0] still;
  logic [5:0] idle;
  logic [NumQ-1:0][QSizeLog2:0] asked_q;  // requests without a response
  logic [NumQ-1:0] tells;  // a write of the queue's avail_event is in flight
  logic [NumQ-1:0] owed, off, closing, answering, fetch_quiet, gather_quiet, scatter_quiet, used_quiet, quiet, quiet_q, stop;
  for (genvar q = 0; q < NumQ; q++) begin : gen_closing
    assign off[q] = !queue_i[q].enable;
    assign closing[q] = off[q] || queue_reset_i[q];
  end

  // ---------------------------------------------------------------- host memory
  axi_ax_t ar[NumRd];
  logic [NumRd-1:0] ar_valid, ar_ready, r_valid, r_ready;
  axi_r_t r[NumRd];

  logic rd_drained, wr_drained;
  assign drained_o = rd_drained && wr_drained;

  via_vq_rdmux #(
    .N(NumRd)
  ) u_rdmux (
    .clk_i,
    .rst_ni,
    .enable_i,
    .drained_o   (rd_drained),
    .s_ar_i      (ar),
    .s_ar_valid_i(ar_valid),
    .s_ar_ready_o(ar_ready),
    .s_r_o       (r),
    .s_r_valid_o (r_valid),
    .s_r_ready_i (r_ready),
    .m_ar_o,
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o,
    .idle_o      (idle[0])
  );

  axi_ax_t aw[2];
  axi_w_t  w [2];
  axi_b_t  b;
  logic [1:0] aw_valid, aw_ready, w_valid, w_ready, b_valid;
  logic [63:0] ev_addr;
  logic [15:0] ev_data;
  logic [QueueW-1:0] ev_queue, ev_busy_queue;
  logic ev_valid, ev_ready, ev_busy, ev_err;

  via_vq_wrmux u_wrmux (
    .clk_i,
    .rst_ni,
    .enable_i,
    .drained_o      (wr_drained),
    .s_aw_i         (aw),
    .s_aw_valid_i   (aw_valid),
    .s_aw_ready_o   (aw_ready),
    .s_w_i          (w),
    .s_w_valid_i    (w_valid),
    .s_w_ready_o    (w_ready),
    .s_b_o          (b),
    .s_b_valid_o    (b_valid),
    .ev_addr_i      (ev_addr),
    .ev_data_i      (ev_data),
    .ev_queue_i     (ev_queue),
    .ev_valid_i     (ev_valid),
    .ev_ready_o     (ev_ready),
    .ev_busy_o      (ev_busy),
    .ev_busy_queue_o(ev_busy_queue),
    .ev_err_o       (ev_err),
    .m_aw_o,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_w_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_b_i,
    .m_b_valid_i,
    .m_b_ready_o,
    .still_o        (still[0]),
    .idle_o         (idle[1])
  );

  // ---------------------------------------------------------------- chains
  vq_chain_t job;
  vq_chain_t head[NumQ];
  logic [QueueW-1:0] job_queue, a_queue, b_queue;
  logic job_valid, job_ready, a_re, b_re;
  logic [NumQ-1:0] head_valid, head_pop;
  logic [QSizeLog2-1:0] a_index, b_index;
  vq_read_t a_desc, job_desc;
  logic job_near;
  vq_desc_t b_desc;
  logic [31:0] room[NumQ];
  logic fetch_err_valid;
  vq_err_e fetch_err;
  logic [QueueW-1:0] fetch_err_queue;
  logic cnt_idx, cnt_ring, cnt_event;
  logic [1:0] cnt_desc, cnt_table;

  // The four read ports of the fetch.
  axi_ax_t f_ar[4];
  axi_r_t  f_r [4];
  for (genvar i = 0; i < 4; i++) begin : gen_fetch_rd
    assign ar[1+i] = f_ar[i];
    assign f_r[i]  = r[1+i];
  end

  logic [NumQ-1:0] look;  // pulse: poll the queue without a notification

  via_vq_fetch #(
    .NumQ(NumQ)
  ) u_fetch (
    .clk_i,
    .rst_ni,
    .wait_i,
    .feat_i,
    .driver_ok_i,
    .queue_i,
    .queue_reset_i,
    .quiet_o     (fetch_quiet),
    .notify_i,
    .notify_valid_i,
    .look_i      (look),
    .job_o       (job),
    .job_desc_o  (job_desc),
    .job_near_o  (job_near),
    .job_queue_o (job_queue),
    .job_valid_o (job_valid),
    .job_ready_i (job_ready),
    .head_o      (head),
    .head_valid_o(head_valid),
    .head_pop_i  (head_pop),
    .room_o      (room),
    .a_re_i      (a_re),
    .a_queue_i   (a_queue),
    .a_index_i   (a_index),
    .a_desc_o    (a_desc),
    .b_re_i      (b_re),
    .b_queue_i   (b_queue),
    .b_index_i   (b_index),
    .b_desc_o    (b_desc),
    .m_ar_o      (f_ar),
    .m_ar_valid_o(ar_valid[4:1]),
    .m_ar_ready_i(ar_ready[4:1]),
    .m_r_i       (f_r),
    .m_r_valid_i (r_valid[4:1]),
    .m_r_ready_o (r_ready[4:1]),
    .ev_addr_o   (ev_addr),
    .ev_data_o   (ev_data),
    .ev_queue_o  (ev_queue),
    .ev_valid_o  (ev_valid),
    .ev_ready_i  (ev_ready),
    .err_valid_o (fetch_err_valid),
    .err_o       (fetch_err),
    .err_queue_o (fetch_err_queue),
    .stop_i      (stop),
    .cnt_idx_o   (cnt_idx),
    .cnt_ring_o  (cnt_ring),
    .cnt_desc_o  (cnt_desc),
    .cnt_table_o (cnt_table),
    .cnt_event_o (cnt_event),
    .still_o     (still[1]),
    .idle_o      (idle[2])
  );

  logic rd_err;
  logic [QueueW-1:0] rd_err_queue;
  via_vq_gather #(
    .NumQ(NumQ)
  ) u_gather (
    .clk_i,
    .rst_ni,
    .job_i       (job),
    .job_desc_i  (job_desc),
    .job_near_i  (job_near),
    .job_queue_i (job_queue),
    .job_valid_i (job_valid),
    .job_ready_o (job_ready),
    .a_re_o      (a_re),
    .a_queue_o   (a_queue),
    .a_index_o   (a_index),
    .a_desc_i    (a_desc),
    .m_ar_o      (ar[RdGather]),
    .m_ar_valid_o(ar_valid[RdGather]),
    .m_ar_ready_i(ar_ready[RdGather]),
    .m_r_i       (r[RdGather]),
    .m_r_valid_i (r_valid[RdGather]),
    .m_r_ready_o (r_ready[RdGather]),
    .req_o,
    .req_valid_o,
    .req_ready_i,
    .rd_o,
    .rd_valid_o,
    .rd_ready_i,
    .err_valid_o (rd_err),
    .err_queue_o (rd_err_queue),
    .quiet_o     (gather_quiet),
    .still_o     (still[2]),
    .idle_o      (idle[3])
  );

  logic [QueueW-1:0] done_queue;
  logic [15:0] done_id, done_slots;
  logic [31:0] done_len;
  logic done_whole, done_more, done_near, done_valid, done_ready, wr_err;
  logic [QueueW-1:0] wr_err_queue;

  via_vq_scatter #(
    .NumQ  (NumQ),
    .AtHand(AtHand)
  ) u_scatter (
    .clk_i,
    .rst_ni,
    .wait_i,
    .off_i       (off),
    .closing_i   (closing),
    .owed_i      (owed),
    .rsp_i,
    .rsp_valid_i,
    .rsp_ready_o,
    .busy_o      (answering),
    .merged_o,
    .merged_valid_o,
    .wr_i,
    .wr_valid_i,
    .wr_ready_o,
    .head_i      (head),
    .head_valid_i(head_valid),
    .head_pop_o  (head_pop),
    .b_re_o      (b_re),
    .b_queue_o   (b_queue),
    .b_index_o   (b_index),
    .b_desc_i    (b_desc),
    .m_aw_o      (aw[0]),
    .m_aw_valid_o(aw_valid[0]),
    .m_aw_ready_i(aw_ready[0]),
    .m_w_o       (w[0]),
    .m_w_valid_o (w_valid[0]),
    .m_w_ready_i (w_ready[0]),
    .m_b_i       (b),
    .m_b_valid_i (b_valid[0]),
    .m_b_ready_o (),
    .done_queue_o(done_queue),
    .done_id_o   (done_id),
    .done_slots_o(done_slots),
    .done_len_o  (done_len),
    .done_whole_o(done_whole),
    .done_more_o (done_more),
    .done_near_o (done_near),
    .done_valid_o(done_valid),
    .done_ready_i(done_ready),
    .err_valid_o (wr_err),
    .err_queue_o (wr_err_queue),
    .quiet_o     (scatter_quiet),
    .still_o     (still[3]),
    .idle_o      (idle[4])
  );

  logic used_wr_err, used_rd_err, cnt_line, cnt_index, shown;
  logic [QueueW-1:0] shown_queue;
  logic [QueueW-1:0] used_wr_err_queue, used_rd_err_queue;
  via_vq_used #(
    .NumQ(NumQ)
  ) u_used (
    .clk_i,
    .rst_ni,
    .time_i,
    .feat_i,
    .queue_i,
    .closing_i     (closing),
    .moderate_i,
    .done_queue_i  (done_queue),
    .done_id_i     (done_id),
    .done_slots_i  (done_slots),
    .done_len_i    (done_len),
    .done_whole_i  (done_whole),
    .done_more_i   (done_more),
    .done_near_i   (done_near),
    .done_valid_i  (done_valid),
    .done_ready_o  (done_ready),
    .m_ar_o        (ar[0]),
    .m_ar_valid_o  (ar_valid[0]),
    .m_ar_ready_i  (ar_ready[0]),
    .m_r_i         (r[0]),
    .m_r_valid_i   (r_valid[0]),
    .m_r_ready_o   (r_ready[0]),
    .m_aw_o        (aw[1]),
    .m_aw_valid_o  (aw_valid[1]),
    .m_aw_ready_i  (aw_ready[1]),
    .m_w_o         (w[1]),
    .m_w_valid_o   (w_valid[1]),
    .m_w_ready_i   (w_ready[1]),
    .m_b_i         (b),
    .m_b_valid_i   (b_valid[1]),
    .m_b_ready_o   (),
    .irq_valid_o,
    .irq_queue_o,
    .irq_ready_i,
    .wr_err_o      (used_wr_err),
    .wr_err_queue_o(used_wr_err_queue),
    .rd_err_o      (used_rd_err),
    .rd_err_queue_o(used_rd_err_queue),
    .cnt_line_o    (cnt_line),
    .cnt_index_o   (cnt_index),
    .shown_o       (shown),
    .shown_queue_o (shown_queue),
    .quiet_o       (used_quiet),
    .still_o       (still[4]),
    .idle_o        (idle[5])
  );

  // ---------------------------------------------------------------- polling for a driver that does not notify
  logic [NumQ-1:0] lacks;
  for (genvar q = 0; q < NumQ; q++) begin : gen_lacks
    // A head on its way from the store is not missing; while a response is in progress the state is not known.
    assign lacks[q] = short_i[q] && wait_i[q] && !busy_o[q] && (head_valid[q] || room[q] == '0);
  end
  via_vq_look #(
    .NumQ(NumQ)
  ) u_look (
    .clk_i,
    .rst_ni,
    .look_i,
    .wake_i (notify_valid_i || user_in_i),
    .short_i(lacks),
    .look_o (look),
    .still_o(still[6])
  );

  // ---------------------------------------------------------------- waiting queues as the personality sees them; quiet queues
  via_vq_avail #(
    .NumQ(NumQ)
  ) u_avail (
    .wait_i,
    .head_valid_i(head_valid),
    .off_i       (off),
    .reset_i     (queue_reset_i),
    .held_i      (answering),
    .busy_o,
    .avail_o
  );
  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    logic more, less;
    assign head_wlen_o[q] = head[q].wlen;
    assign room_o[q] = room[q];

    assign more = job_valid && job_ready && QW'(job_queue) == QW'(q);
    assign less = head_pop[q] && !wait_i[q];
    assign owed[q] = asked_q[q] != '0;
    assign tells[q] = ev_busy && QW'(ev_busy_queue) == QW'(q);
    assign quiet[q] = fetch_quiet[q] && gather_quiet[q] && scatter_quiet[q] && used_quiet[q] && !owed[q] && !tells[q];
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !queue_i[q].enable) asked_q[q] <= '0;
      else if (more != less) asked_q[q] <= more ? asked_q[q] + 1'b1 : asked_q[q] - 1'b1;
    end
  end

  // Only the reset of a queue asks whether it is quiet, and looks some cycles after the queue was disabled.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) quiet_q <= '0;
    else if (quiet_q != quiet) quiet_q <= quiet;
  end
  assign queue_quiet_o = quiet_q;

  // ---------------------------------------------------------------- errors: reported one at a time, the first of each kind
  localparam int unsigned Kinds = 7;
  localparam vq_err_e [Kinds-1:0] Cause = {VqErrRead, VqErrWrite, VqErrWrite, VqErrWrite, VqErrPayload, VqErrRequest, VqErrNone};
  logic [Kinds-1:0] err_new, err_q, err_pick;
  logic [Kinds-1:0][QueueW-1:0] err_queue_new, err_queue_q;
  vq_err_e fetch_err_q;
  logic [2:0] err_at;

  assign err_new = {used_rd_err, used_wr_err, ev_err, wr_err, rd_err, fail_i, fetch_err_valid};
  assign err_queue_new = {used_rd_err_queue, used_wr_err_queue, ev_busy_queue, wr_err_queue, rd_err_queue, fail_queue_i, fetch_err_queue};

  always_comb begin
    err_at = '0;
    for (int unsigned i = Kinds; i > 0; i--) if (err_q[i-1]) err_at = 3'(i - 1);
  end
  assign err_pick = (err_q != '0) ? Kinds'(1) << err_at : '0;
  assign error_o = err_q != '0;
  assign error_cause_o = (err_at == '0) ? fetch_err_q : Cause[err_at];
  assign error_queue_o = err_queue_q[err_at];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) err_q <= '0;
    else err_q <= (err_q & ~err_pick) | err_new;
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Kinds; i++) if (err_new[i]) err_queue_q[i] <= err_queue_new[i];
    if (fetch_err_valid) fetch_err_q <= fetch_err;
  end
  for (genvar q = 0; q < NumQ; q++) begin : gen_stop
    assign stop[q] = error_o && err_at != '0 && QW'(error_queue_o) == QW'(q);
  end

  // ---------------------------------------------------------------- counters
  logic stat_still, begins, is_idle, was_idle_q;
  logic [NumQ-1:0] head_q;
  logic fetch_q, read_q, write_q, done_take;

  // From registers: the ready signals come from the host port through all readers and writers.
  always_ff @(posedge clk_i) begin
    fetch_q <= rst_ni && ar_valid[0] && ar_ready[0];
    read_q  <= rst_ni && ar_valid[RdGather] && ar_ready[RdGather];
    write_q <= rst_ni && aw_valid[0] && aw_ready[0];
  end
  assign done_take = done_valid && done_ready;
  // From registers: the parts are idle a cycle earlier.
  logic [5:0] idle_q;
  logic [7:0] still_q;
  always_ff @(posedge clk_i) begin
    idle_q  <= idle;
    still_q <= still;
  end
  assign is_idle = &idle_q && err_q == '0;
  // Notifications are at least four cycles apart; by then the fetch is seen to be busy.
  assign begins  = notify_valid_i && was_idle_q;
  always_ff @(posedge clk_i) if (was_idle_q != is_idle) was_idle_q <= is_idle;
  always_ff @(posedge clk_i) if (head_q != head_valid) head_q <= head_valid;

  // If a traced message was sent on a queue with a partner that waits (VIRTIO 1.3, 5.1.2 and 5.3.2: transmit queue 2n + 1, receive queue
  // 2n), the later stages are those of the waiting queue: returning the sent buffer is not the response.
  logic beside_q;
  logic [QueueW-1:0] response_q, partner;
  assign partner = notify_i.queue ^ QueueW'(1);
  always_ff @(posedge clk_i) begin
    if (begins) begin
      beside_q   <= 32'(partner) < NumQ && wait_i[QW'(partner)];
      response_q <= partner;
    end
  end

  via_vq_stat u_stat (
    .clk_i,
    .rst_ni,
    .time_i,
    .addr_i(stat_addr_i),
    .write_i(stat_write_i),
    .rdata_o(stat_rdata_o),
    .inc_i({
      2'(cnt_event),
      2'(cnt_index),
      2'(cnt_line),
      2'(write_q),
      2'(fetch_q),
      2'(read_q),
      cnt_table,
      cnt_desc,
      2'(cnt_ring),
      2'(cnt_idx),
      2'(irq_valid_o && irq_ready_i),
      2'(done_take),
      2'(req_valid_o && req_ready_i),
      2'(notify_valid_i)
    }),
    .bytes_rd_i(req_o.rlen),
    .bytes_rd_valid_i(req_valid_o && req_ready_i),
    .bytes_wr_i(done_len),
    .bytes_wr_valid_i(done_take),
    .error_i(error_o),
    .error_cause_i(error_cause_o),
    .error_queue_i(error_queue_o),
    .begin_i(begins),
    .user_out_i,
    .user_in_i(user_end_i),
    .stage_i({
      irq_valid_o && irq_ready_i && (!beside_q || irq_queue_o == response_q),
      shown && (!beside_q || shown_queue == response_q),
      rsp_valid_i && rsp_ready_o && (!beside_q || rsp_i.queue == response_q),
      rd_valid_o && rd_ready_i && rd_o.last,
      job_valid || (head_valid & ~head_q) != '0
    }),
    .still_o(stat_still)
  );

  // Two registers: the first one waits for ready signals of the host port.
  assign still[5] = stat_still;
  assign still[7] = err_new == '0 && !error_o && head_q == head_valid && quiet_q == quiet && was_idle_q == is_idle && !notify_valid_i;
  assign still_o  = &still_q && !m_ar_valid_o && !m_r_valid_i;
  assign idle_o   = is_idle;

endmodule
