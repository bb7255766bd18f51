// SPDX-License-Identifier: Apache-2.0
//
// Front half of the queue engine: from notifications to checked chains in the store.
//
//   notify ─> via_vq_ring ─ tokens ─> via_vq_fetch_burst ─ lines ─> via_vq_fetch_walk ─ pieces ─> via_vq_fetch_table ─ chains ─> via_vq_store
//             index, ring             64-byte lines                next, indirect               tables, checks                 jobs, heads
//
// Each stage has many reads in flight and processes the responses in order. What was requested too early, or has no room, is dropped by
// means of an epoch bit per queue and requested again, starting after the last chain in the store.
// Throughput: a chain of one descriptor per cycle, whatever the latency; an indirect one of n descriptors every n + 1. Latency
// from a notification: reads of index, ring line, descriptor line (and table) one after the other, with two to three cycles between them.
// Order: chains of one queue in ring order. A queue in error delivers no more chains until it is reset (`err_*` once); the others continue.
// Reset of a queue: a chain stays at head_o until the queue is disabled; jobs are withdrawn a cycle later.
// Misuse: a chain must not be popped before its job was accepted and its descriptors were read.

module via_vq_fetch
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter  int unsigned NumQ  = 2,  // queues
  localparam int unsigned NumRd = 4   // read clients: rings, descriptors, single descriptors, indirect tables
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic       [     NumQ-1:0] wait_i,                 // level: chains of the queue wait for a response, they are no jobs
  input  vq_feat_t                   feat_i,                 // negotiated features
  input  logic                       driver_ok_i,            // level: DRIVER_OK is set
  input  vq_cfg_t                    queue_i       [ NumQ],  // queues as the driver has set them up
  input  logic       [     NumQ-1:0] queue_reset_i,          // level: the queue is under reset
  output logic       [     NumQ-1:0] quiet_o,                // level: nothing of the queue is in flight
  input  vq_notify_t                 notify_i,               // with notify_valid_i: the notification
  input  logic                       notify_valid_i,         // pulse
  input  logic       [     NumQ-1:0] look_i,                 // pulse: treat the queue as if notified
  // chains
  output vq_chain_t                  job_o,                  // chain with readable bytes
  output logic       [   QueueW-1:0] job_queue_o,            // its queue
  output vq_read_t                   job_desc_o,             // its only descriptor, if job_near_o is high
  output logic                       job_near_o,             // level, with job_valid_o: job_desc_o is valid, no read is needed
  output logic                       job_valid_o,
  input  logic                       job_ready_i,
  output vq_chain_t                  head_o        [ NumQ],  // oldest chain of each queue
  output logic       [     NumQ-1:0] head_valid_o,           // level: there is one
  input  logic       [     NumQ-1:0] head_pop_i,             // pulse: remove it
  output logic       [         31:0] room_o        [ NumQ],  // writable bytes of all chains of the queue, saturated
  input  logic                       a_re_i,                 // pulse: read a descriptor (port a)
  input  logic       [   QueueW-1:0] a_queue_i,              // its queue
  input  logic       [QSizeLog2-1:0] a_index_i,              // its index in the store
  output vq_read_t                   a_desc_o,               // the descriptor, a cycle after a_re_i
  input  logic                       b_re_i,                 // pulse: read a descriptor (port b)
  input  logic       [   QueueW-1:0] b_queue_i,              // its queue
  input  logic       [QSizeLog2-1:0] b_index_i,              // its index in the store
  output vq_desc_t                   b_desc_o,               // the descriptor, a cycle after b_re_i
  // host memory
  output axi_ax_t                    m_ar_o        [NumRd],
  output logic       [    NumRd-1:0] m_ar_valid_o,
  input  logic       [    NumRd-1:0] m_ar_ready_i,
  input  axi_r_t                     m_r_i         [NumRd],
  input  logic       [    NumRd-1:0] m_r_valid_i,
  output logic       [    NumRd-1:0] m_r_ready_o,
  output logic       [         63:0] ev_addr_o,              // avail_event to write: its address
  output logic       [         15:0] ev_data_o,              // its value
  output logic       [   QueueW-1:0] ev_queue_o,             // its queue
  output logic                       ev_valid_o,
  input  logic                       ev_ready_i,
  output logic                       err_valid_o,            // pulse: a queue has failed
  output vq_err_e                    err_o,                  // with err_valid_o: why
  output logic       [   QueueW-1:0] err_queue_o,            // with err_valid_o: which queue
  input  logic       [     NumQ-1:0] stop_i,                 // pulse: another block found an error, deliver no more chains
  // pulses for the counters
  output logic                       cnt_idx_o,              // reads of an index
  output logic                       cnt_ring_o,             // reads of a ring line
  output logic       [          1:0] cnt_desc_o,             // reads of descriptors
  output logic       [          1:0] cnt_table_o,            // reads of indirect tables
  output logic                       cnt_event_o,            // writes of avail_event
  output logic                       still_o,                // level: nothing moves unless an input changes
  output logic                       idle_o                  // level: nothing is in flight
);

  localparam bit NumQOk = param_in("via_vq_fetch NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned Lines = 64;  // descriptor lines requested and not walked

  // ---------------------------------------------------------------- queues
  logic [NumQ-1:0] off, on, run, stopped_q, park, epoch_f, epoch_w, back, src_busy, piece_busy;
  logic [NumQ-1:0] fault_q;  // an error to be reported
  vq_err_e [NumQ-1:0] fault_code_q;
  logic serr_valid, terr_valid;
  vq_err_e serr, terr;
  logic [QueueW-1:0] serr_queue, terr_queue;

  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    logic s_me, t_me, tell, was_on_q;
    assign off[q] = !queue_i[q].enable;
    assign on[q]  = queue_i[q].enable && driver_ok_i && !queue_reset_i[q] && !stopped_q[q];
    assign run[q] = on[q] && !park[q];
    // Events of the first cycle in which it is off are counted in the next one.
    always_ff @(posedge clk_i) begin
      was_on_q   <= on[q];
      quiet_o[q] <= !on[q] && !was_on_q && !src_busy[q] && !piece_busy[q];
    end
    assign s_me = serr_valid && QW'(serr_queue) == QW'(q);
    assign t_me = terr_valid && QW'(terr_queue) == QW'(q);
    assign tell = err_valid_o && QW'(err_queue_o) == QW'(q);

    always_ff @(posedge clk_i) begin
      if (!rst_ni || off[q]) begin
        stopped_q[q] <= 1'b0;
        fault_q[q]   <= 1'b0;
      end else begin
        if (s_me || t_me || stop_i[q]) stopped_q[q] <= 1'b1;
        if ((s_me || t_me) && !stopped_q[q]) fault_q[q] <= 1'b1;
        else if (tell) fault_q[q] <= 1'b0;
      end
    end
    always_ff @(posedge clk_i) if ((s_me || t_me) && !stopped_q[q]) fault_code_q[q] <= t_me ? terr : serr;
  end

  logic [QW-1:0] fault;
  via_rr_arb #(
    .N(NumQ)
  ) u_fault_arb (
    .clk_i,
    .rst_ni,
    .req_i  (fault_q),
    .ack_i  (1'b1),
    .gnt_o  (),
    .idx_o  (fault),
    .valid_o(err_valid_o)
  );
  assign err_o = fault_code_q[fault];
  assign err_queue_o = QueueW'(fault);

  // ---------------------------------------------------------------- rings
  vq_token_t tok;
  logic tok_valid, tok_ready;
  logic done_valid, more_valid, more_beyond, stop_valid, stop_wrap;
  logic [NumQ-1:0] lone;
  logic [QueueW-1:0] done_queue, more_queue, stop_queue;
  logic [QSizeLog2-1:0] stop_index;
  logic w_valid, w_commit;
  logic [QueueW-1:0] w_queue;
  logic [QSizeLog2-1:0] w_offset;
  logic [QSizeLog2:0] w_slots;
  logic [QSizeLog2:0] room[NumQ];
  vq_desc_t w_desc;
  vq_chain_t w_chain;
  logic [5:0] still;

  assign m_r_ready_o = '1;

  via_vq_ring #(
    .NumQ(NumQ)
  ) u_ring (
    .clk_i,
    .rst_ni,
    .feat_i,
    .cfg_i         (queue_i),
    .on_i          (on),
    .run_i         (run),
    .epoch_f_i     (epoch_f),
    .epoch_w_i     (epoch_w),
    .notify_i,
    .notify_valid_i,
    .look_i,
    .tok_o         (tok),
    .tok_valid_o   (tok_valid),
    .tok_ready_i   (tok_ready),
    .done_valid_i  (done_valid),
    .done_queue_i  (done_queue),
    .more_valid_i  (more_valid),
    .more_queue_i  (more_queue),
    .more_beyond_i (more_beyond),
    .lone_o        (lone),
    .stop_valid_i  (stop_valid),
    .stop_queue_i  (stop_queue),
    .stop_index_i  (stop_index),
    .stop_wrap_i   (stop_wrap),
    .commit_valid_i(w_commit),
    .commit_queue_i(w_queue),
    .commit_slots_i(w_slots),
    .back_i        (back),
    .busy_o        (src_busy),
    .m_ar_o        (m_ar_o[0]),
    .m_ar_valid_o  (m_ar_valid_o[0]),
    .m_ar_ready_i  (m_ar_ready_i[0]),
    .m_r_i         (m_r_i[0]),
    .m_r_valid_i   (m_r_valid_i[0]),
    .ev_addr_o,
    .ev_data_o,
    .ev_queue_o,
    .ev_valid_o,
    .ev_ready_i,
    .serr_valid_o  (serr_valid),
    .serr_o        (serr),
    .serr_queue_o  (serr_queue),
    .cnt_idx_o,
    .cnt_ring_o,
    .cnt_event_o,
    .still_o       (still[0])
  );

  // ---------------------------------------------------------------- lines
  vq_token_t lt;
  logic lt_fresh, lt_final, lt_valid, lt_ready;
  logic [6:0] lt_line;
  logic [1:0] lt_low;
  vq_line_t tag;
  vq_burst_t burst;
  logic tag_valid, burst_valid, line_pop;

  via_vq_fetch_burst #(
    .NumQ (NumQ),
    .Lines(Lines)
  ) u_line (
    .clk_i,
    .rst_ni,
    .cfg_i        (queue_i),
    .s_i          (tok),
    .s_valid_i    (tok_valid),
    .s_ready_o    (tok_ready),
    .m_o          (lt),
    .m_fresh_o    (lt_fresh),
    .m_final_o    (lt_final),
    .m_line_o     (lt_line),
    .m_low_o      (lt_low),
    .m_valid_o    (lt_valid),
    .m_ready_i    (lt_ready),
    .tag_o        (tag),
    .tag_valid_o  (tag_valid),
    .line_pop_i   (line_pop),
    .m_ar_o       (m_ar_o[1]),
    .m_ar_valid_o (m_ar_valid_o[1]),
    .m_ar_ready_i (m_ar_ready_i[1]),
    .burst_o      (burst),
    .burst_valid_o(burst_valid),
    .still_o      (still[1])
  );

  // ---------------------------------------------------------------- chains
  logic [1:0] one_req, one_done, one_cnt;
  logic [1:0][57:0] one_line;
  logic one_err;
  logic [DataW-1:0] one_data;
  logic [NumQ-1:0] el_new;
  vq_elem_t el;
  logic el_valid, el_ready;
  vq_table_t ask;
  logic ask_valid, ask_ready;

  via_vq_fetch_one u_one (
    .clk_i,
    .rst_ni,
    .req_i       (one_req),
    .line_i      (one_line),
    .done_o      (one_done),
    .err_o       (one_err),
    .data_o      (one_data),
    .cnt_o       (one_cnt),
    .m_ar_o      (m_ar_o[2]),
    .m_ar_valid_o(m_ar_valid_o[2]),
    .m_ar_ready_i(m_ar_ready_i[2]),
    .m_r_i       (m_r_i[2]),
    .m_r_valid_i (m_r_valid_i[2]),
    .still_o     (still[2])
  );

  via_vq_fetch_walk #(
    .NumQ (NumQ),
    .Lines(Lines)
  ) u_walk (
    .clk_i,
    .rst_ni,
    .feat_i,
    .cfg_i        (queue_i),
    .on_i         (on),
    .epoch_f_i    (epoch_f),
    .back_i       (back),
    .epoch_w_o    (epoch_w),
    .tok_i        (lt),
    .tok_fresh_i  (lt_fresh),
    .tok_final_i  (lt_final),
    .tok_line_i   (lt_line),
    .tok_low_i    (lt_low),
    .tok_valid_i  (lt_valid),
    .tok_ready_o  (lt_ready),
    .tag_i        (tag),
    .tag_valid_i  (tag_valid),
    .burst_i      (burst),
    .burst_valid_i(burst_valid),
    .line_i       (m_r_i[1].data),
    .line_err_i   (m_r_i[1].resp != RespOkay),
    .line_valid_i (m_r_valid_i[1]),
    .line_pop_o   (line_pop),
    .one_req_o    (one_req[0]),
    .one_line_o   (one_line[0]),
    .one_done_i   (one_done[0]),
    .one_err_i    (one_err),
    .one_data_i   (one_data),
    .piece_o      (el_new),
    .m_o          (el),
    .m_valid_o    (el_valid),
    .m_ready_i    (el_ready),
    .ask_o        (ask),
    .ask_valid_o  (ask_valid),
    .ask_ready_i  (ask_ready),
    .done_valid_o (done_valid),
    .done_queue_o (done_queue),
    .more_valid_o (more_valid),
    .more_queue_o (more_queue),
    .more_beyond_o(more_beyond),
    .more_direct_i(lone[QW'(more_queue)]),
    .stop_valid_o (stop_valid),
    .stop_queue_o (stop_queue),
    .stop_index_o (stop_index),
    .stop_wrap_o  (stop_wrap),
    .still_o      (still[3])
  );

  logic cnt_burst;
  via_vq_fetch_table #(
    .NumQ(NumQ)
  ) u_table (
    .clk_i,
    .rst_ni,
    .feat_i,
    .on_i        (on),
    .epoch_f_o   (epoch_f),
    .park_o      (park),
    .back_o      (back),
    .busy_o      (piece_busy),
    .piece_i     (el_new),
    .s_i         (el),
    .s_valid_i   (el_valid),
    .s_ready_o   (el_ready),
    .ask_i       (ask),
    .ask_valid_i (ask_valid),
    .ask_ready_o (ask_ready),
    .m_ar_o      (m_ar_o[3]),
    .m_ar_valid_o(m_ar_valid_o[3]),
    .m_ar_ready_i(m_ar_ready_i[3]),
    .m_r_i       (m_r_i[3]),
    .m_r_valid_i (m_r_valid_i[3]),
    .one_req_o   (one_req[1]),
    .one_line_o  (one_line[1]),
    .one_done_i  (one_done[1]),
    .one_err_i   (one_err),
    .one_data_i  (one_data),
    .free_i      (room),
    .w_valid_o   (w_valid),
    .w_queue_o   (w_queue),
    .w_offset_o  (w_offset),
    .w_desc_o    (w_desc),
    .w_commit_o  (w_commit),
    .w_chain_o   (w_chain),
    .w_slots_o   (w_slots),
    .err_valid_o (terr_valid),
    .err_o       (terr),
    .err_queue_o (terr_queue),
    .cnt_o       (cnt_burst),
    .still_o     (still[4])
  );

  via_vq_store #(
    .NumQ(NumQ)
  ) u_store (
    .clk_i,
    .rst_ni,
    .wait_i,
    .clear_i   (off),
    .hide_i    (queue_reset_i),
    .w_valid_i (w_valid),
    .w_queue_i (w_queue),
    .w_offset_i(w_offset),
    .w_desc_i  (w_desc),
    .w_commit_i(w_commit),
    .w_chain_i (w_chain),
    .free_o    (room),
    .job_o,
    .job_desc_o,
    .job_near_o,
    .job_queue_o,
    .job_valid_o,
    .job_ready_i,
    .head_o,
    .head_valid_o,
    .head_pop_i,
    .room_o,
    .a_re_i,
    .a_queue_i,
    .a_index_i,
    .a_desc_o,
    .b_re_i,
    .b_queue_i,
    .b_index_i,
    .b_desc_o,
    .still_o   (still[5])
  );

  // ---------------------------------------------------------------- counters, rest
  assign cnt_desc_o  = 2'(burst_valid) + 2'(one_cnt[0]);
  assign cnt_table_o = 2'(cnt_burst) + 2'(one_cnt[1]);

  logic [NumQ-1:0] parked_q;
  always_ff @(posedge clk_i) parked_q <= park;
  logic [5:0] still_q;
  logic rest_still_q;
  always_ff @(posedge clk_i) begin
    still_q      <= still;
    rest_still_q <= fault_q == '0 && stop_i == '0 && park == parked_q;
  end
  assign still_o = &still_q && rest_still_q;
  assign idle_o  = still_o && src_busy == '0 && piece_busy == '0 && !job_valid_o;

endmodule
