// SPDX-License-Identifier: Apache-2.0
//
// First stage of via_vq_fetch: keeps track of how far each queue's driver has gone, and determines which descriptors to read.
//
// Split: reads the available index (or takes it from the notification), then ring lines of 64 bytes with up to 32 heads each; one token per
// head. Split in order: the heads follow from one another, so only the index is read; tokens name descriptors of the table, one for each
// chain that is known to be available; the walker requests more where a chain is longer (`more_*`). Packed: tokens name descriptors of the
// ring; with notification data exactly those that were announced, up to 16 a token, otherwise some lines ahead of the walker, which stops
// at the first unavailable one.
// While a split queue's tokens are used up its index is read again, so that a driver that goes on adding is not waited for.
// avail_event (split, EVENT_IDX): written when everything known was requested; then the index is read again, so that no notification is
// missed.
// The state of each queue is in via_vq_ring_queue.
//
// Throughput: one token a cycle; in order and packed one every 3 cycles per queue. 16 ring reads in flight, of which up to 5 of one queue's
// index. Latency, for a queue with nothing else pending: from a notification to a token (in order, packed) one cycle, to the address of an
// index or ring line two; from an index to a token two, to the address of a ring line three; from a ring line to its first token one.
// Order: tokens of a queue in ring order.
// Restart: `back_i` returns a queue to its last committed chain, `stop_*` to the descriptor that was unavailable. The epoch flips in the
// following cycle.
// Polling without a notification (`look_i`): reads the index again; packed, continues from the first descriptor that was not announced,
// with notification data until it finds one that is not available. A queue with anything in progress is not polled. A queue that was
// notified before it was on is treated in the same way.
// Misuse: an index that jumps, or a misaligned or malformed queue, is reported on `serr_*` two cycles later; the parent then lowers on_i.

module via_vq_ring
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2  // queues
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  vq_feat_t                   feat_i,                // negotiated features
  input  vq_cfg_t                    cfg_i         [NumQ],  // queues as the driver has set them up
  input  logic       [     NumQ-1:0] on_i,                  // level: enabled, and neither stopped nor under reset
  input  logic       [     NumQ-1:0] run_i,                 // level: on, and with room for its chains
  input  logic       [     NumQ-1:0] epoch_f_i,             // level: current epoch of the queue's chains
  input  logic       [     NumQ-1:0] epoch_w_i,             // level: current epoch of the queue's lines
  input  vq_notify_t                 notify_i,              // with notify_valid_i: the notification
  input  logic                       notify_valid_i,        // pulse
  input  logic       [     NumQ-1:0] look_i,                // pulse: poll the queue
  output vq_token_t                  tok_o,                 // token
  output logic                       tok_valid_o,
  input  logic                       tok_ready_i,
  // from the walker
  input  logic                       done_valid_i,          // pulse: a token was used up
  input  logic       [   QueueW-1:0] done_queue_i,          // its queue
  input  logic                       more_valid_i,          // pulse: in order: a chain has another descriptor
  input  logic       [   QueueW-1:0] more_queue_i,          // its queue
  input  logic                       more_beyond_i,         // with it: its token does not cover that one
  output logic       [     NumQ-1:0] lone_o,                // level: and no later token of the queue would either
  input  logic                       stop_valid_i,          // pulse: packed: unavailable descriptor
  input  logic       [   QueueW-1:0] stop_queue_i,          // its queue
  input  logic       [QSizeLog2-1:0] stop_index_i,          // its index
  input  logic                       stop_wrap_i,           // its wrap counter
  // from via_vq_fetch_table
  input  logic                       commit_valid_i,        // pulse: a chain has entered the store
  input  logic       [   QueueW-1:0] commit_queue_i,        // its queue
  input  logic       [  QSizeLog2:0] commit_slots_i,        // its ring slots
  input  logic       [     NumQ-1:0] back_i,                // pulse: restart after the last chain in the store
  output logic       [     NumQ-1:0] busy_o,                // level: reads, tokens or an event of the queue are in flight
  output axi_ax_t                    m_ar_o,
  output logic                       m_ar_valid_o,
  input  logic                       m_ar_ready_i,
  input  axi_r_t                     m_r_i,
  input  logic                       m_r_valid_i,
  output logic       [         63:0] ev_addr_o,             // avail_event to write: its address
  output logic       [         15:0] ev_data_o,             // its value
  output logic       [   QueueW-1:0] ev_queue_o,            // its queue
  output logic                       ev_valid_o,
  input  logic                       ev_ready_i,
  output logic                       serr_valid_o,          // pulse: a queue has failed
  output vq_err_e                    serr_o,                // with serr_valid_o: why
  output logic       [   QueueW-1:0] serr_queue_o,          // with serr_valid_o: which queue
  output logic                       cnt_idx_o,             // pulse: an index is read
  output logic                       cnt_ring_o,            // pulse: a ring line is read
  output logic                       cnt_event_o,           // pulse: avail_event is written
  output logic                       still_o                // level: nothing moves unless an input changes
);

  localparam bit NumQOk = param_in("via_vq_ring NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned Window = 16;  // ring reads in flight

  typedef struct packed {
    logic [QW-1:0] queue;
    logic          epoch_f;
    logic          epoch_w;
    logic          idx;      // a read of the index, otherwise of entries
    logic [4:0]    place;    // first 16-bit word in the line
    logic [5:0]    count;    // entries
  } tag_t;

  typedef struct packed {
    logic             err;
    logic [DataW-1:0] data;
  } line_t;

  /// Fields of a read or a token that a queue offers.
  typedef struct packed {
    logic [63:6] line;
    logic [4:0]  place;
    logic [5:0]  count;
    logic        idx;
    logic        epoch_f;
    logic        epoch_w;
  } read_t;

  typedef struct packed {
    logic                 epoch_f;
    logic                 epoch_w;
    logic                 safe;
    logic                 wrap;
    logic [QSizeLog2-1:0] index;
    logic [4:0]           count;
  } piece_t;

  // The negotiated features are constant long before a queue is enabled.
  vq_feat_t feat_q;
  logic is_packed, seq, told;
  always_ff @(posedge clk_i) feat_q <= feat_i;
  assign is_packed = feat_q.packed_ring;
  assign seq = is_packed || feat_q.in_order;
  assign told = !is_packed || feat_q.notif_data;

  // ---------------------------------------------------------------- outputs of the queues
  logic [NumQ-1:0] bad_cfg, want_read, want_idx, want_seq, want_event, idx_went, line_went;
  logic [NumQ-1:0] news, close, jumped, beyond;
  logic [NumQ-1:0][15:0] told_at;
  logic [NumQ-1:0][1:0] ahead;
  logic [NumQ-1:0][7:0] mask;
  read_t [NumQ-1:0] offer;
  piece_t [NumQ-1:0] piece, news_piece;
  logic [NumQ-1:0][2:0] cap;  // descriptors in the line: as many as a token for news may cover
  logic [NumQ-1:0][4:0] count_seq;  // descriptors that another token would cover

  // ---------------------------------------------------------------- reads of index and ring
  logic [NumQ-1:0] rd_gnt;
  logic [QW-1:0] rq;
  logic rd_any, rd_slot, rd_go, tag_room, tag_pop;
  logic ar_valid_q;
  logic [63:6] ar_line_q;
  logic [5:0] rd_count_q;
  logic cnt_idx_q, cnt_ring_q;
  read_t rd;
  tag_t rd_tag, next_tag, tag_q;
  logic head_go, next_valid, tag_load, tag_valid_q, last_q;

  via_vq_arb #(
    .N(NumQ)
  ) u_rd_arb (
    .clk_i,
    .rst_ni,
    .req_i  (want_read),
    .ack_i  (rd_slot),
    .gnt_o  (rd_gnt),
    .idx_o  (rq),
    .valid_o(rd_any)
  );

  assign rd_slot = tag_room && (!ar_valid_q || m_ar_ready_i);
  assign rd_go   = rd_any && rd_slot;
  via_vq_pick #(
    .N    (NumQ),
    .Width($bits(read_t))
  ) u_rd (
    .sel_i(rd_gnt),
    .s_i  (offer),
    .m_o  (rd)
  );
  assign rd_tag = '{queue: rq, epoch_f: rd.epoch_f, epoch_w: rd.epoch_w, idx: rd.idx, place: rd.place, count: rd.count};

  always_comb begin
    m_ar_o       = '0;
    m_ar_o.burst = BurstIncr;
    m_ar_o.size  = 3'(BeatLog2);
    m_ar_o.addr  = {ar_line_q, 6'd0};
  end
  assign m_ar_valid_o = ar_valid_q;
  assign cnt_idx_o = cnt_idx_q;
  assign cnt_ring_o = cnt_ring_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
      cnt_idx_q  <= idx_went != '0;
      cnt_ring_q <= line_went != '0;
    end else begin
      ar_valid_q <= rd_go || ar_valid_q && !m_ar_ready_i;
      cnt_idx_q  <= idx_went != '0;
      cnt_ring_q <= line_went != '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rd_go) ar_line_q <= rd.line;
    rd_count_q <= rd.count;
  end

  via_fifo #(
    .T    (tag_t),
    .Depth(Window - 1)
  ) u_tags (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (rd_tag),
    .s_valid_i(rd_go),
    .s_ready_o(tag_room),
    .m_o      (next_tag),
    .m_valid_o(next_valid),
    .m_ready_i(tag_load),
    .count_o  ()
  );

  // The oldest tag is held in a register, with the word of its line to continue at.
  logic [NumQ-1:0] tag_me_q;
  logic [5:0] rest_q;  // entries left of the line, including the current one
  logic [4:0] word_q;
  logic [7:0] next_mask, head_mask_q;  // from the size of the head's queue
  logic [NumQ-1:0] next_me;
  for (genvar q = 0; q < NumQ; q++) begin : gen_next
    assign next_me[q] = next_tag.queue == QW'(q);
  end
  via_vq_pick #(
    .N    (NumQ),
    .Width(8)
  ) u_mask (
    .sel_i(next_me),
    .s_i  (mask),
    .m_o  (next_mask)
  );
  assign tag_load = next_valid && (!tag_valid_q || tag_pop);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) tag_valid_q <= 1'b0;
    else tag_valid_q <= next_valid || tag_valid_q && !tag_pop;
  end
  always_ff @(posedge clk_i) begin
    if (tag_load) begin
      tag_q    <= next_tag;
      word_q <= next_tag.place;
      rest_q <= next_tag.count;
      last_q <= next_tag.count == 6'd1;
      head_mask_q <= next_mask;
      tag_me_q <= next_me;
    end else if (head_go) begin
      word_q <= word_q + 5'd1;
      rest_q <= rest_q - 6'd1;
      last_q <= rest_q == 6'd2;
    end
  end

  // ---------------------------------------------------------------- responses
  // A line that arrives when none waits is processed at once; it is kept if it is not finished then.
  line_t line_in, line;
  logic [NumQ-1:0] good;
  logic kept, here, stale_q, err, idx_go, last_entry, tok_free;
  logic begun_q;  // some entries of the line were processed
  logic [15:0] value;
  // An index that was read.
  logic found_valid_q, found_err_q, found_go;
  logic [QW-1:0] found_queue_q;
  logic [NumQ-1:0] found_me_q, found_good_q;
  logic [15:0] found_q;
  // There is always room: a tag is held for each line.
  logic unused_ready;

  assign line_in = '{err: m_r_i.resp != RespOkay, data: m_r_i.data};
  via_fifo #(
    .T    (line_t),
    .Depth(Window)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (line_in),
    .s_valid_i(m_r_valid_i && (kept || !tag_pop)),
    .s_ready_o(unused_ready),
    .m_o      (line),
    .m_valid_o(kept),
    .m_ready_i(tag_pop),
    .count_o  ()
  );

  assign here  = (kept || m_r_valid_i) && tag_valid_q;
  assign err   = kept ? line.err : line_in.err;
  assign value = kept ? line.data[16*word_q+:16] : line_in.data[16*word_q+:16];
  for (genvar q = 0; q < NumQ; q++) begin : gen_good
    assign good[q] = on_i[q] && tag_me_q[q] && tag_q.epoch_f == epoch_f_i[q];
  end
  // A cycle late: an entry that leaves in the first cycle is dropped afterwards.
  always_ff @(posedge clk_i) stale_q <= tag_valid_q && !tag_load && !tag_pop && !tag_q.idx && good == '0;
  assign head_go = here && !tag_q.idx && !stale_q && tok_free;
  assign idx_go = here && tag_q.idx && !found_valid_q;
  assign last_entry = last_q || err;
  assign tag_pop = here && (stale_q || idx_go || head_go && last_entry);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begun_q <= 1'b0;
    else if (tag_pop) begun_q <= 1'b0;
    else if (head_go) begun_q <= 1'b1;
  end

  // A notification cannot be delayed; the index waits a cycle for it.
  assign found_go = found_valid_q && !notify_valid_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      found_valid_q <= 1'b0;
      found_me_q    <= '0;
      found_good_q  <= '0;
    end else begin
      found_valid_q <= idx_go || found_valid_q && !found_go;
      if (idx_go || found_go) begin
        found_me_q   <= idx_go ? tag_me_q : '0;
        found_good_q <= (idx_go && !err) ? tag_me_q : '0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (idx_go) begin
      found_q       <= value;
      found_err_q   <= err;
      found_queue_q <= tag_q.queue;
    end
  end

  // ---------------------------------------------------------------- progress of the driver: from a notification or from its index
  // Each queue determines in parallel whether it is addressed and whether that is news.
  logic [QW-1:0] kq;
  logic [15:0] k_told, k_value;
  logic [1:0] k_ahead;
  logic [NumQ-1:0] noted, found, heard, notified, indexed;

  assign kq = notify_valid_i ? QW'(notify_i.queue) : found_queue_q;
  assign k_told = {notify_i.wrap, notify_i.offset};
  assign k_value = notify_valid_i ? k_told & {{16 - QSizeLog2{!is_packed}}, {QSizeLog2{1'b1}}} : found_q;
  for (genvar q = 0; q < NumQ; q++) begin : gen_me
    assign noted[q] = notify_valid_i && notify_i.queue == QueueW'(q);
    assign found[q] = found_me_q[q] && !notify_valid_i;
  end
  assign heard = noted | found;
  assign notified = noted & on_i;
  assign indexed = notify_valid_i ? '0 : found_good_q & on_i;
  via_vq_pick #(
    .N    (NumQ),
    .Width(2)
  ) u_ahead (
    .sel_i(heard),
    .s_i  (ahead),
    .m_o  (k_ahead)
  );

  // Errors are reported two cycles later.
  logic [NumQ-1:0] e_read_q, e_note_q, e_bad;
  logic [15:0] e_value_q;
  logic [QW-1:0] e_queue_q, serr_queue_q;
  logic serr_valid_q;
  vq_err_e serr_q;
  assign e_bad = e_note_q & bad_cfg;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      e_read_q     <= '0;
      e_note_q     <= '0;
      serr_valid_q <= 1'b0;
    end else begin
      e_read_q     <= found_err_q ? found & on_i : '0;
      e_note_q     <= notified;
      serr_valid_q <= (on_i & (jumped | beyond | e_read_q | e_bad)) != '0;
    end
  end
  always_ff @(posedge clk_i) begin
    e_value_q    <= k_value;
    e_queue_q    <= kq;
    serr_queue_q <= e_queue_q;
    serr_q       <= (e_read_q != '0) ? VqErrRead : (e_bad != '0) ? VqErrAlign : VqErrIndex;
  end
  assign serr_valid_o = serr_valid_q;
  assign serr_o = serr_q;
  assign serr_queue_o = QueueW'(serr_queue_q);

  // ---------------------------------------------------------------- tokens
  logic [NumQ-1:0] seq_gnt, slow, fast;
  logic [QW-1:0] sq;
  logic seq_any, fast_slot, near, near_q, tok_slow_q, err_q;
  logic [ 1:0] tok_fast_q;  // for either half of the queues
  logic [ 1:0] near_count_q;
  logic [ 4:0] tok_count;
  logic [ 3:0] over_q;
  logic [15:0] over_value;
  vq_token_t tok_d, tok_q;
  piece_t slow_piece, fast_piece, piece_d;

  via_vq_arb #(
    .N(NumQ)
  ) u_seq_arb (
    .clk_i,
    .rst_ni,
    .req_i  (want_seq),
    .ack_i  (tok_free),
    .gnt_o  (seq_gnt),
    .idx_o  (sq),
    .valid_o(seq_any)
  );

  assign tok_free = !tok_valid_o || tok_ready_i;
  assign slow = (tok_free && seq_any) ? seq_gnt : '0;
  // News of a calm queue becomes a token at once.
  assign fast_slot = tok_free && !seq_any;
  assign fast = fast_slot ? news : '0;

  via_vq_pick #(
    .N    (NumQ),
    .Width($bits(piece_t))
  ) u_slow (
    .sel_i(seq_gnt),
    .s_i  (piece),
    .m_o  (slow_piece)
  );
  assign fast_piece = news_piece[kq];
  assign piece_d = seq_any ? slow_piece : fast_piece;

  // A token for news covers the rest of the line, but no more than the news: that limit is applied on the way out.
  assign near = told ? (heard & close) != '0 && !seq_any : 1'b0;
  assign tok_count[4:2] = tok_q.count[4:2] & {2'b11, !near_q};
  always_comb begin
    unique case ({
      near_q, near_count_q
    })
      3'b101:  tok_count[1:0] = 2'd1;
      3'b110:  tok_count[1:0] = {tok_q.count[2:0] != 3'd1, tok_q.count[2:0] == 3'd1};
      3'b111:  tok_count[1:0] = {tok_q.count[2:0] != 3'd1, tok_q.count[2:0] != 3'd2};
      default: tok_count[1:0] = tok_q.count[1:0];
    endcase
  end
  // Set bits mean that the head is too large.
  // A head is too large, by some of its bits.
  assign over_value = {value[15:8], value[7:0] & ~head_mask_q};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {tok_slow_q, tok_fast_q} <= '0;
    else if (tok_free) {tok_slow_q, tok_fast_q} <= {seq ? seq_any : head_go, |news[NumQ-1:NumQ/2], |news[NumQ/2:0]};
  end
  always_ff @(posedge clk_i) begin
    if (tok_free) begin
      err_q <= !seq && err;
      for (int unsigned i = 0; i < 4; i++) over_q[i] <= !seq && over_value[4*i+:4] != '0;
      tok_q <= tok_d;
      near_q <= seq && near;
      near_count_q <= k_ahead;
    end
  end
  always_comb begin
    tok_d         = '0;
    tok_d.err     = VqErrNone;
    tok_d.queue   = QueueW'(tag_q.queue);
    tok_d.epoch_f = tag_q.epoch_f;
    tok_d.epoch_w = tag_q.epoch_w;
    tok_d.safe    = 1'b1;
    tok_d.share   = begun_q;
    tok_d.more    = !last_entry;
    tok_d.count   = 5'd1;
    tok_d.index   = value[QSizeLog2-1:0];
    if (seq) begin
      tok_d.queue   = seq_any ? QueueW'(sq) : QueueW'(kq);
      tok_d.epoch_f = piece_d.epoch_f;
      tok_d.epoch_w = piece_d.epoch_w;
      tok_d.safe    = piece_d.safe;
      tok_d.wrap    = piece_d.wrap;
      tok_d.share   = 1'b0;
      tok_d.more    = 1'b0;
      tok_d.count   = piece_d.count;
      tok_d.index   = piece_d.index;
    end
    tok_o       = tok_q;
    tok_o.count = tok_count;
    tok_o.err   = err_q ? VqErrRead : (over_q != '0) ? VqErrHead : VqErrNone;
  end
  assign tok_valid_o = tok_slow_q || tok_fast_q != '0;

  // ---------------------------------------------------------------- avail_event
  logic [NumQ-1:0] ev_gnt, ev_now, ev_mine_q;
  logic [QW-1:0] eq, ev_queue_q;
  logic ev_any, ev_go, ev_busy, ev_pick_q, ev_sum_q, ev_carry_q, ev_over_q, ev_valid_q;
  logic [63:0] ev_addr_q;
  logic [15:0] ev_data_q, ev_size_q;

  via_vq_arb #(
    .N(NumQ)
  ) u_ev_arb (
    .clk_i,
    .rst_ni,
    .req_i  (want_event),
    .ack_i  (!ev_busy),
    .gnt_o  (ev_gnt),
    .idx_o  (eq),
    .valid_o(ev_any)
  );

  // In steps: select the queue, what to write where, the address in two halves.
  assign ev_busy = ev_pick_q || ev_sum_q || ev_carry_q || ev_valid_q;
  assign ev_go = ev_any && !ev_busy;
  assign ev_now = ev_busy ? '0 : ev_gnt;
  assign ev_addr_o = ev_addr_q;
  assign ev_data_o = ev_data_q;
  assign ev_queue_o = QueueW'(ev_queue_q);
  assign ev_valid_o = ev_valid_q;
  assign cnt_event_o = ev_pick_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ev_pick_q  <= 1'b0;
      ev_sum_q   <= 1'b0;
      ev_carry_q <= 1'b0;
      ev_valid_q <= 1'b0;
    end else begin
      ev_pick_q  <= ev_go;
      ev_sum_q   <= ev_pick_q;
      ev_carry_q <= ev_sum_q;
      ev_valid_q <= ev_carry_q || ev_valid_q && !ev_ready_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!ev_busy) begin
      ev_mine_q  <= ev_gnt;
      ev_queue_q <= eq;
    end
    if (ev_pick_q) begin
      ev_addr_q <= cfg_i[ev_queue_q].device;
      ev_size_q <= cfg_i[ev_queue_q].size;
      ev_data_q <= told_at[ev_queue_q];
    end else if (ev_sum_q) begin
      {ev_over_q, ev_addr_q[31:0]} <= {1'b0, ev_addr_q[31:0]} + {14'd0, ev_size_q, 3'd4};
    end else if (ev_carry_q) begin
      ev_addr_q[63:32] <= ev_addr_q[63:32] + 32'(ev_over_q);
    end
  end

  // ---------------------------------------------------------------- the queues
  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    logic line_done;
    assign line_done = tag_pop && !tag_q.idx && tag_me_q[q];
    assign offer[q].idx = want_idx[q];
    assign offer[q].epoch_f = epoch_f_i[q];
    assign offer[q].epoch_w = epoch_w_i[q];
    assign piece[q].epoch_f = epoch_f_i[q];
    assign piece[q].epoch_w = epoch_w_i[q];
    assign piece[q].count = count_seq[q];
    always_comb begin
      news_piece[q]       = piece[q];
      news_piece[q].count = 5'(cap[q]);
    end

    via_vq_ring_queue u_queue (
      .clk_i,
      .rst_ni,
      .feat_i      (feat_q),
      .cfg_i       (cfg_i[q]),
      .run_i       (run_i[q]),
      .look_i      (look_i[q]),
      .bad_o       (bad_cfg[q]),
      .mask_o      (mask[q]),
      .heard_i     (heard[q]),
      .notified_i  (notified[q]),
      .early_i     (noted[q] && !on_i[q]),
      .indexed_i   (indexed[q]),
      .value_i     (k_value),
      .wrap_i      (notify_i.wrap),
      .offset_i    (notify_i.offset),
      .was_i       (e_value_q),
      .news_o      (news[q]),
      .ahead_o     (ahead[q]),
      .near_o      (close[q]),
      .jumped_o    (jumped[q]),
      .beyond_o    (beyond[q]),
      .want_read_o (want_read[q]),
      .want_idx_o  (want_idx[q]),
      .line_o      (offer[q].line),
      .place_o     (offer[q].place),
      .count_o     (offer[q].count),
      .read_go_i   (rd_slot && rd_gnt[q]),
      .idx_went_o  (idx_went[q]),
      .line_went_o (line_went[q]),
      .idx_done_i  (found[q]),
      .line_done_i (line_done),
      .want_seq_o  (want_seq[q]),
      .index_o     (piece[q].index),
      .wrap_o      (piece[q].wrap),
      .safe_o      (piece[q].safe),
      .cap_o       (cap[q]),
      .count_seq_o (count_seq[q]),
      .seq_go_i    (slow[q]),
      .fast_i      (fast[q]),
      .cnt_seq_i   (tok_count),
      .cnt_line_i  (rd_count_q),
      .tok_in_i    (head_go && tag_me_q[q]),
      .tok_out_i   (done_valid_i && QW'(done_queue_i) == QW'(q)),
      .more_i      (more_valid_i && QW'(more_queue_i) == QW'(q)),
      .more_beyond_i,
      .lone_o      (lone_o[q]),
      .stop_i      (stop_valid_i && QW'(stop_queue_i) == QW'(q)),
      .stop_index_i,
      .stop_wrap_i,
      .commit_i    (commit_valid_i && QW'(commit_queue_i) == QW'(q)),
      .commit_slots_i,
      .back_i      (back_i[q]),
      .busy_o      (busy_o[q]),
      .want_event_o(want_event[q]),
      .told_o      (told_at[q]),
      .ev_go_i     (ev_now[q]),
      .ev_done_i   (ev_valid_q && ev_ready_i && ev_mine_q[q])
    );
  end

  // The effects of a step have settled three cycles later.
  logic moves;
  logic [2:0] moved_q;
  assign moves = notify_valid_i || look_i != '0 || m_r_valid_i || m_ar_valid_o || tag_pop || head_go ||
                 tok_valid_o && tok_ready_i || tok_free && seq_any || found_valid_q || ev_go || ev_valid_q && ev_ready_i || done_valid_i ||
                 more_valid_i || stop_valid_i || commit_valid_i || back_i != '0 || kept && tag_q.idx;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) moved_q <= '0;
    else moved_q <= {moved_q[1:0], moves};
  end
  assign still_o = !moves && moved_q == '0;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!m_r_valid_i || unused_ready)
      else $error("line without a place");
    end
  end
`endif

endmodule
