// SPDX-License-Identifier: Apache-2.0
//
// The source of via_vq_fetch: knows how far each queue's driver went and says which descriptors are to be read.
//
// Split: reads the available index (or takes it from the notification), then ring lines of 64 bytes, up to 32 heads each; one token a head.
// Split in order: the heads follow from one another, so only the index is read; tokens name lines of the table, covering one descriptor a
// chain that is known available; the walker asks for more where a chain has more (`more_*`). Packed: tokens name lines of the ring; with
// notification data exactly the descriptors that were announced, else some lines ahead of the walker, which stops at the first unavailable one.
// avail_event (split, EVENT_IDX): written when everything known was asked for; then the index is read again, so no notification is missed.
//
// Throughput: one token a cycle; 8 ring reads in flight, of which up to 4 of a queue's index. Ordering: tokens of a queue in ring order.
// Going back: `back_i` returns a queue to its last committed chain, `stop_*` to the descriptor that was unavailable.
// Looking without a notification (`look_i`): reads the index again; packed, walks on from the first descriptor that was not announced, with
// notification data until it meets one that is not available. A queue with something under way is not looked at.
// Misuse: an index that jumps, or a misaligned or malformed queue, is reported on `serr_*`; the top then lowers on_i.

module via_vq_ring
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  vq_feat_t                   feat_i,
  input  vq_cfg_t                    cfg_i         [NumQ],
  input  logic       [     NumQ-1:0] on_i,                  // enabled and neither stopped nor being reset
  input  logic       [     NumQ-1:0] run_i,                 // besides, there is room for its chains
  input  logic       [     NumQ-1:0] epoch_f_i,
  input  logic       [     NumQ-1:0] epoch_w_i,
  input  vq_notify_t                 notify_i,
  input  logic                       notify_valid_i,
  input  logic       [     NumQ-1:0] look_i,                // pulse
  output vq_token_t                  tok_o,
  output logic                       tok_valid_o,
  input  logic                       tok_ready_i,
  // from the walker
  input  logic                       done_valid_i,          // a token was used up
  input  logic       [   QueueW-1:0] done_queue_i,
  input  logic                       more_valid_i,          // in order: a chain goes on
  input  logic       [   QueueW-1:0] more_queue_i,
  input  logic                       more_beyond_i,         // with a descriptor that its token does not cover
  output logic                       more_direct_o,         // which no later token covers either
  input  logic                       stop_valid_i,          // packed: unavailable
  input  logic       [   QueueW-1:0] stop_queue_i,
  input  logic       [QSizeLog2-1:0] stop_index_i,
  input  logic                       stop_wrap_i,
  // from the assembler
  input  logic                       commit_valid_i,
  input  logic       [   QueueW-1:0] commit_queue_i,
  input  logic       [  QSizeLog2:0] commit_slots_i,
  input  logic       [     NumQ-1:0] back_i,
  output logic       [     NumQ-1:0] busy_o,                // reads, tokens or an event of the queue are under way
  output axi_ax_t                    m_ar_o,
  output logic                       m_ar_valid_o,
  input  logic                       m_ar_ready_i,
  input  axi_r_t                     m_r_i,
  input  logic                       m_r_valid_i,
  output logic       [         63:0] ev_addr_o,
  output logic       [         15:0] ev_data_o,
  output logic       [   QueueW-1:0] ev_queue_o,
  output logic                       ev_valid_o,
  input  logic                       ev_ready_i,
  output logic                       serr_valid_o,
  output vq_err_e                    serr_o,
  output logic       [   QueueW-1:0] serr_queue_o,
  output logic                       cnt_idx_o,
  output logic                       cnt_ring_o,
  output logic                       cnt_event_o,
  output logic                       still_o
);

  localparam bit NumQOk = param_in("via_vq_ring NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned Window = 8;  // ring reads in flight
  localparam int unsigned LinesMax = 32;  // packed: lines read ahead

  typedef struct packed {
    logic [QW-1:0] queue;
    logic          epoch_f;
    logic          epoch_w;
    logic          idx;      // the index, else entries
    logic [4:0]    place;    // first 16-bit word in the line
    logic [5:0]    count;    // entries
  } tag_t;

  typedef struct packed {
    logic             err;
    logic [DataW-1:0] data;
  } line_t;

  logic is_packed, seq, told;
  logic [NumQ-1:0] exact, probe_q;  // tokens are for what the driver has announced; packed, told: looks beyond that
  assign is_packed = feat_i.packed_ring;
  assign seq = is_packed || feat_i.in_order;
  assign told = !is_packed || feat_i.notif_data;
  assign exact = {NumQ{told}} & ~probe_q;

  // ---------------------------------------------------------------- state of a queue
  logic [NumQ-1:0][15:0] known_q, pos_q, told_q;
  logic [NumQ-1:0][15:0] done_avail_q;  // index behind the last chain in the store
  logic [NumQ-1:0][QSizeLog2-1:0] dpos_q, kpos_q;  // sequential: next descriptor to ask for; end of those announced
  logic [NumQ-1:0] dwrap_q, kwrap_q;
  logic [NumQ-1:0][16:0] todo_q;  // sequential and exact: descriptors to ask for
  logic [NumQ-1:0] pend_q, want_idx, want_line, want_seq, want_event, event_q, bad_cfg;

  // ---------------------------------------------------------------- reads of index and ring
  logic [QW-1:0] rq;
  logic rd_any, rd_go, rd_idx, tag_room, tag_pop;
  logic ar_valid_q;
  axi_ax_t ar, ar_q;
  logic [63:0] rd_addr;
  logic [15:0] place, left;
  logic [8:0] to_wrap;
  logic [5:0] rd_count, to_end;
  tag_t rd_tag, tag;

  via_rr_arb #(
    .N(NumQ)
  ) u_rd_arb (
    .clk_i,
    .rst_ni,
    .req_i  (want_idx | want_line),
    .ack_i  (rd_go),
    .gnt_o  (),
    .idx_o  (rq),
    .valid_o(rd_any)
  );

  assign rd_go = rd_any && tag_room && (!ar_valid_q || m_ar_ready_i);
  assign rd_idx = want_idx[rq];
  assign place = pos_q[rq] & (cfg_i[rq].size - 16'd1);
  assign rd_addr = cfg_i[rq].driver + (rd_idx ? 64'd2 : 64'd4 + {47'd0, place, 1'b0});
  assign to_end = 6'd32 - {1'b0, rd_addr[5:1]};
  assign to_wrap = (QSizeLog2 + 1)'(cfg_i[rq].size - place);
  assign left = known_q[rq] - pos_q[rq];
  always_comb begin
    rd_count = to_end;
    if (9'(rd_count) > to_wrap) rd_count = to_wrap[5:0];
    if (16'(rd_count) > left) rd_count = left[5:0];
    ar       = '0;
    ar.burst = 2'b01;
    ar.size  = 3'(BeatLog2);
    ar.addr  = {rd_addr[63:6], 6'd0};
  end
  assign rd_tag = '{queue: rq, epoch_f: epoch_f_i[rq], epoch_w: epoch_w_i[rq], idx: rd_idx, place: rd_addr[5:1], count: rd_count};

  assign m_ar_o = ar_q;
  assign m_ar_valid_o = ar_valid_q;
  assign cnt_idx_o = rd_go && rd_idx;
  assign cnt_ring_o = rd_go && !rd_idx;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) ar_valid_q <= 1'b0;
    else if (rd_go) ar_valid_q <= 1'b1;
    else if (m_ar_ready_i) ar_valid_q <= 1'b0;
  end
  always_ff @(posedge clk_i) if (rd_go) ar_q <= ar;

  via_fifo #(
    .T    (tag_t),
    .Depth(Window)
  ) u_tags (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (rd_tag),
    .s_valid_i(rd_go),
    .s_ready_o(tag_room),
    .m_o      (tag),
    .m_valid_o(),
    .m_ready_i(tag_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- answers
  line_t line_in, line;
  logic line_valid, line_stale, idx_here, entry_here, last_entry;
  logic [5:0] entry_q;
  logic [4:0] word;
  logic [15:0] value;
  // Room is there: a tag is held for each line.
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
    .s_valid_i(m_r_valid_i),
    .s_ready_o(unused_ready),
    .m_o      (line),
    .m_valid_o(line_valid),
    .m_ready_i(tag_pop),
    .count_o  ()
  );

  assign word = tag.place + entry_q[4:0];
  assign value = line.data[16*word+:16];
  assign line_stale = !on_i[tag.queue] || !tag.idx && tag.epoch_f != epoch_f_i[tag.queue];
  // A notification comes when it likes; the answer waits a cycle for it.
  assign idx_here = line_valid && tag.idx && !line_stale && !notify_valid_i;
  assign entry_here = line_valid && !tag.idx && !line_stale;
  assign last_entry = entry_q == tag.count - 6'd1 || line.err;
  assign tag_pop = line_valid && (line_stale || idx_here || entry_here && tok_ready_i && last_entry);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) entry_q <= '0;
    else if (tag_pop) entry_q <= '0;
    else if (entry_here && tok_ready_i) entry_q <= entry_q + 6'd1;
  end

  // ---------------------------------------------------------------- tokens
  logic [QW-1:0] sq;
  logic seq_any, seq_go;
  logic [9:0] seq_at;
  logic [8:0] seq_wrap_room;
  logic [4:0] seq_count;
  logic seq_wraps;
  vq_token_t head_tok, seq_tok;

  via_rr_arb #(
    .N(NumQ)
  ) u_seq_arb (
    .clk_i,
    .rst_ni,
    .req_i  (want_seq),
    .ack_i  (seq_go),
    .gnt_o  (),
    .idx_o  (sq),
    .valid_o(seq_any)
  );

  assign seq_go = seq_any && tok_ready_i;
  assign seq_at = 10'(cfg_i[sq].desc[7:4]) + 10'(dpos_q[sq]);
  assign seq_wrap_room = cfg_i[sq].size[QSizeLog2:0] - {1'b0, dpos_q[sq]};
  always_comb begin
    // What is announced is read 256 bytes at a time, what is looked at ahead by lines.
    seq_count = exact[sq] ? 5'd16 - 5'(seq_at[3:0]) : 5'd4 - 5'(seq_at[1:0]);
    if (9'(seq_count) > seq_wrap_room) seq_count = seq_wrap_room[4:0];
    if (exact[sq] && 17'(seq_count) > todo_q[sq]) seq_count = todo_q[sq][4:0];
  end
  assign seq_wraps = 9'(seq_count) == seq_wrap_room;

  always_comb begin
    head_tok         = '0;
    head_tok.queue   = QueueW'(tag.queue);
    head_tok.epoch_f = tag.epoch_f;
    head_tok.epoch_w = tag.epoch_w;
    head_tok.err     = VqErrNone;
    if (line.err) head_tok.err = VqErrRead;
    else if (value >= cfg_i[tag.queue].size) head_tok.err = VqErrHead;
    head_tok.safe   = 1'b1;
    head_tok.share  = entry_q != '0;
    head_tok.count  = 5'd1;
    head_tok.index  = value[QSizeLog2-1:0];
    seq_tok         = '0;
    seq_tok.queue   = QueueW'(sq);
    seq_tok.epoch_f = epoch_f_i[sq];
    seq_tok.epoch_w = epoch_w_i[sq];
    seq_tok.err     = VqErrNone;
    seq_tok.safe    = exact[sq];
    seq_tok.wrap    = dwrap_q[sq];
    seq_tok.count   = seq_count;
    seq_tok.index   = dpos_q[sq];
  end
  assign tok_o = seq ? seq_tok : head_tok;
  assign tok_valid_o = seq ? seq_any : entry_here;

  // ---------------------------------------------------------------- what the driver says: from a notification or from its index
  logic [QW-1:0] kq;
  logic k_mine, k_notify, k_index, k_idx_err;
  logic [15:0] k_value, k_ahead, k_open, k_behind;
  logic [8:0] k_poff, k_pdist;
  logic k_take, k_bad, k_old;
  logic k_ptake, k_pbad;

  assign k_mine = notify_valid_i && 32'(notify_i.queue) < NumQ;
  assign k_notify = k_mine && on_i[QW'(notify_i.queue)];
  assign kq = notify_valid_i ? QW'(notify_i.queue) : tag.queue;
  assign k_value = notify_valid_i ? {notify_i.wrap, notify_i.offset} : value;
  assign k_idx_err = idx_here && line.err;
  // Split. Notifications and reads may overtake one another: an index behind the one known is no news then.
  assign k_index = k_notify && feat_i.notif_data && !is_packed || idx_here && !line.err;
  assign k_ahead = k_value - known_q[kq];
  assign k_behind = known_q[kq] - k_value;
  assign k_open = k_value - done_avail_q[kq];
  assign k_old = k_behind <= cfg_i[kq].size;
  assign k_take = k_index && k_ahead <= cfg_i[kq].size && k_open <= cfg_i[kq].size;
  assign k_bad = k_index && !k_take && !k_old;
  // Packed: distance from the end known to the one announced; behind it means old.
  assign k_poff = {1'b0, k_value[QSizeLog2-1:0]} + ((k_value[15] != kwrap_q[kq]) ? cfg_i[kq].size[QSizeLog2:0] : 9'd0);
  assign k_pdist = k_poff - {1'b0, kpos_q[kq]};
  assign k_ptake = k_notify && feat_i.notif_data && is_packed && !k_pbad && !probe_q[kq] && k_poff >= {1'b0, kpos_q[kq]} && k_pdist <= cfg_i[kq].size[QSizeLog2:0];
  assign k_pbad = k_notify && feat_i.notif_data && is_packed && {1'b0, k_value[14:0]} >= cfg_i[kq].size;

  assign serr_valid_o = k_notify && bad_cfg[kq] || k_bad || k_pbad || k_idx_err;
  assign serr_o = k_idx_err ? VqErrRead : (k_notify && bad_cfg[kq]) ? VqErrAlign : VqErrIndex;
  assign serr_queue_o = QueueW'(kq);

  // ---------------------------------------------------------------- avail_event
  logic [QW-1:0] eq, ev_queue_q;
  logic ev_any, ev_go, ev_valid_q;
  logic [63:0] ev_addr_q;
  logic [15:0] ev_data_q;

  via_rr_arb #(
    .N(NumQ)
  ) u_ev_arb (
    .clk_i,
    .rst_ni,
    .req_i  (want_event),
    .ack_i  (ev_go),
    .gnt_o  (),
    .idx_o  (eq),
    .valid_o(ev_any)
  );

  assign ev_go = ev_any && !ev_valid_q;
  assign ev_addr_o = ev_addr_q;
  assign ev_data_o = ev_data_q;
  assign ev_queue_o = QueueW'(ev_queue_q);
  assign ev_valid_o = ev_valid_q;
  assign cnt_event_o = ev_go;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) ev_valid_q <= 1'b0;
    else if (ev_go) ev_valid_q <= 1'b1;
    else if (ev_ready_i) ev_valid_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (ev_go) begin
      ev_queue_q <= eq;
      ev_addr_q  <= cfg_i[eq].device + 64'd4 + {45'd0, cfg_i[eq].size, 3'd0};
      ev_data_q  <= known_q[eq];
    end
  end

  // ---------------------------------------------------------------- the queues
  logic [NumQ-1:0] lone;  // just one token of the queue is under way, and none is to follow
  assign more_direct_o = lone[QW'(more_queue_i)];

  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    logic go_q;  // packed, not exact: lines are being read
    logic again_q;  // and a notification came meanwhile
    // Lines that may be read ahead. Never more than once around the ring: the flags of two rounds ago look as those of this one.
    logic [5:0] ahead_q;
    logic [QSizeLog2-1:0] cpos_q;  // sequential: behind the last chain in the store
    logic cwrap_q;
    logic [7:0] tokens_q;
    logic [3:0] reads_q;
    logic [2:0] looks_q;  // reads of the index
    logic usable, rests, look, k_me, line_go, s_go, stop, commit, more, tok_in, tok_out, rd_in, rd_out, notified, early, ev_done, direct;
    logic [8:0] size, c_sum, k_dist;
    logic [QSizeLog2-1:0] c_next, d_next;
    logic c_over;
    logic [15:0] c_avail, c_left;
    logic [16:0] todo_add, todo_sub;

    assign size = cfg_i[q].size[QSizeLog2:0];
    assign bad_cfg[q] = cfg_i[q].desc[3:0] != '0 || (is_packed ? cfg_i[q].driver[1:0] != '0 : cfg_i[q].driver[0]) || cfg_i[q].device[1:0] != '0 ||
                        cfg_i[q].size == '0 || cfg_i[q].size > 16'(QSizeMax) || !is_packed && (cfg_i[q].size & (cfg_i[q].size - 16'd1)) != '0;

    assign usable = run_i[q] && !bad_cfg[q];
    assign want_idx[q] = usable && pend_q[q] && !looks_q[2];
    assign want_line[q] = usable && !seq && pos_q[q] != known_q[q];
    assign want_seq[q] = usable && seq && (exact[q] ? todo_q[q] != '0 : go_q && tokens_q < 8'(ahead_q) && (tokens_q == '0 || tokens_q < 8'(size[QSizeLog2:2])));
    assign want_event[q] = usable && feat_i.event_idx && !is_packed && (seq ? todo_q[q] == '0 : pos_q[q] == known_q[q]) &&
                           !pend_q[q] && looks_q == '0 && !event_q[q] && told_q[q] != known_q[q];

    // Nothing of it is under way, and nothing is to come.
    assign rests = tokens_q == '0 && reads_q == '0 && !pend_q[q] &&
                   (!seq ? pos_q[q] == known_q[q] : exact[q] ? todo_q[q] == '0 : !go_q && !probe_q[q]);
    assign look = look_i[q] && usable && rests && !(notify_valid_i && k_me);

    assign k_me = kq == QW'(q);
    assign notified = k_notify && k_me && !bad_cfg[q];
    // Before DRIVER_OK: kept, and looked after then.
    assign early = k_mine && k_me && !on_i[q];
    assign line_go = rd_go && !rd_idx && rq == QW'(q);
    assign s_go = seq_go && seq && sq == QW'(q);
    assign stop = stop_valid_i && QW'(stop_queue_i) == QW'(q);
    assign commit = commit_valid_i && QW'(commit_queue_i) == QW'(q);
    assign more = more_valid_i && QW'(more_queue_i) == QW'(q);
    assign direct = more && more_beyond_i && more_direct_o;
    assign lone[q] = tokens_q == 8'd1 && todo_q[q] == '0;
    assign ev_done = ev_valid_q && ev_ready_i && ev_queue_q == QW'(q);
    assign tok_in = tok_valid_o && tok_ready_i && QW'(tok_o.queue) == QW'(q);
    assign tok_out = done_valid_i && QW'(done_queue_i) == QW'(q);
    assign rd_in = rd_go && rq == QW'(q);
    assign rd_out = tag_pop && tag.queue == QW'(q);
    assign busy_o[q] = tokens_q != '0 || reads_q != '0 || event_q[q];

    // Behind the chain being committed.
    assign c_sum = {1'b0, cpos_q} + commit_slots_i;
    assign c_over = c_sum >= size;
    assign c_next = QSizeLog2'(c_over ? c_sum - size : c_sum);
    assign c_avail = done_avail_q[q] + 16'd1;
    assign c_left = known_q[q] - done_avail_q[q];
    assign d_next = (9'(dpos_q[q]) + 9'd1 == size) ? '0 : dpos_q[q] + 1'b1;
    assign k_dist = {1'b0, kpos_q[q]} - {1'b0, cpos_q} + ((kwrap_q[q] != cwrap_q) ? size : 9'd0);
    assign todo_add = (k_take && k_me && seq ? 17'(k_ahead) : 17'd0) + (k_ptake && k_me ? 17'(k_pdist) : 17'd0) + 17'(more && !direct);
    assign todo_sub = s_go ? 17'(seq_count) : 17'd0;

    always_ff @(posedge clk_i) begin
      if (!rst_ni || !cfg_i[q].enable) begin
        known_q[q]      <= '0;
        pos_q[q]        <= '0;
        told_q[q]       <= '0;
        done_avail_q[q] <= '0;
        dpos_q[q]       <= '0;
        kpos_q[q]       <= '0;
        cpos_q          <= '0;
        dwrap_q[q]      <= 1'b1;
        kwrap_q[q]      <= 1'b1;
        cwrap_q         <= 1'b1;
        todo_q[q]       <= '0;
        probe_q[q]      <= 1'b0;
        pend_q[q]       <= 1'b0;
        looks_q         <= '0;
        event_q[q]      <= 1'b0;
        go_q            <= 1'b0;
        again_q         <= 1'b0;
        ahead_q         <= 6'd1;
        tokens_q        <= '0;
        reads_q         <= '0;
      end else begin
        // What is known
        if (k_take && k_me) known_q[q] <= k_value;
        if (k_ptake && k_me) {kwrap_q[q], kpos_q[q]} <= {k_value[15], k_value[QSizeLog2-1:0]};
        if (notified && !is_packed && !feat_i.notif_data || ev_done || early || look && !is_packed) pend_q[q] <= 1'b1;
        else if (rd_in && rd_idx) pend_q[q] <= 1'b0;
        if ((rd_in && rd_idx) != (rd_out && tag.idx)) looks_q <= (rd_in && rd_idx) ? looks_q + 3'd1 : looks_q - 3'd1;
        if (ev_go && eq == QW'(q)) event_q[q] <= 1'b1;
        else if (ev_done) event_q[q] <= 1'b0;
        if (ev_go && eq == QW'(q)) told_q[q] <= known_q[q];

        // What is in the store
        if (commit) begin
          done_avail_q[q] <= c_avail;
          cpos_q          <= c_next;
          cwrap_q         <= cwrap_q ^ c_over;
        end

        // What is asked for
        if (back_i[q]) pos_q[q] <= done_avail_q[q];
        else if (line_go) pos_q[q] <= pos_q[q] + 16'(rd_count);
        if (back_i[q]) begin
          dpos_q[q]  <= cpos_q;
          dwrap_q[q] <= cwrap_q;
        end else if (stop) begin
          dpos_q[q]  <= stop_index_i;
          dwrap_q[q] <= stop_wrap_i;
        end else if (s_go) begin
          dpos_q[q]  <= seq_wraps ? '0 : dpos_q[q] + QSizeLog2'(seq_count);
          dwrap_q[q] <= dwrap_q[q] ^ seq_wraps;
        end else if (direct) begin
          dpos_q[q] <= d_next;
        end
        if (back_i[q]) todo_q[q] <= (!is_packed ? 17'(c_left) : exact[q] ? 17'(k_dist) : 17'd0) + todo_add;
        else if (stop) todo_q[q] <= '0;
        else todo_q[q] <= todo_q[q] + todo_add - todo_sub;
        if (stop && told) {kwrap_q[q], kpos_q[q]} <= {stop_wrap_i, stop_index_i};

        if (look && is_packed && told) probe_q[q] <= 1'b1;
        else if (stop) probe_q[q] <= probe_q[q] && (again_q || notified);
        if (back_i[q] || notified || early || look || stop && again_q) go_q <= 1'b1;
        else if (stop) go_q <= 1'b0;
        if (notified && go_q && !stop) again_q <= 1'b1;
        else if (stop || look) again_q <= 1'b0;
        if (stop || back_i[q] || look) ahead_q <= 6'd1;
        else if (commit && ahead_q != 6'(LinesMax)) ahead_q <= ahead_q + 6'd1;

        if (tok_in != tok_out) tokens_q <= tok_in ? tokens_q + 8'd1 : tokens_q - 8'd1;
        if (rd_in != rd_out) reads_q <= rd_in ? reads_q + 4'd1 : reads_q - 4'd1;
      end
    end
  end

  assign still_o = ~|{notify_valid_i, look_i, m_r_valid_i, m_ar_valid_o && m_ar_ready_i, rd_go, tag_pop, tok_valid_o && tok_ready_i, ev_go,
                      ev_valid_q && ev_ready_i, done_valid_i, more_valid_i, stop_valid_i, commit_valid_i, back_i, line_valid && tag.idx};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!m_r_valid_i || unused_ready)
      else $error("line without a place");
    end
  end
`endif

endmodule
