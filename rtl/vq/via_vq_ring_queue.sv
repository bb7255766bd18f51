// SPDX-License-Identifier: Apache-2.0
//
// One queue of via_vq_ring: how far its driver has gone, how far descriptors were requested, and what is in the store; determines what to
// request next.
//
// Offers (`want_*`, `news_o`, `lone_o`) come from registers that are computed a cycle early. They may become true late, but never stay true
// too long: a request moves the queue a cycle later (`cnt_*`), and until everything that follows from it is known the queue offers nothing
// more. Throughput: tokens and ring lines of a queue are therefore at least 3 cycles apart; those of several queues are not. Latency: see
// via_vq_ring. Order: ring order.
// A queue is calm when everything known was requested and the next position is known. News then need not wait for `want_*`: it is signalled
// on `news_o`.
// Misuse: the set-up must not change while enabled; a malformed one is reported on `bad_o`, and the queue requests nothing.

module via_vq_ring_queue
  import via_virtio_pkg::*;
(
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  vq_feat_t                 feat_i,          // negotiated features
  input  vq_cfg_t                  cfg_i,           // the queue as set up
  input  logic                     run_i,           // level: the queue is in use and has room
  input  logic                     look_i,          // pulse: poll
  output logic                     bad_o,           // level: the set-up is malformed
  output logic     [          7:0] mask_o,          // split: size - 1, to reduce an index to a ring position
  // progress of the driver: `value_i`, an index or a position in the ring
  input  logic                     heard_i,         // pulse: there is any
  input  logic                     notified_i,      // with it: by a notification,
  input  logic                     early_i,         // or by one from before the queue was on
  input  logic                     indexed_i,       // with it: by an index that was read without error
  input  logic     [         15:0] value_i,         // the index or position
  input  logic                     wrap_i,          // wrap counter in the notification
  input  logic     [         14:0] offset_i,        // position in the notification, unreduced
  input  logic     [         15:0] was_i,           // value_i of the previous cycle
  output logic                     news_o,          // there is something to request: a token may be sent
  output logic     [          1:0] ahead_o,         // number of new entries,
  output logic                     near_o,          // which is less than four
  output logic                     jumped_o,        // error, a cycle later: an index that the driver may not have
  output logic                     beyond_o,        // error, a cycle later: a position outside the ring
  // reads
  output logic                     want_read_o,     // level: a read is wanted
  output logic                     want_idx_o,      // with it: of the index, otherwise of a ring line
  output logic     [         63:6] line_o,          // with it: address of the line
  output logic     [          4:0] place_o,         // with it: first word in the line
  output logic     [          5:0] count_o,         // with it: entries in the line
  input  logic                     read_go_i,       // pulse: the read is issued
  output logic                     idx_went_o,      // pulse: a read of the index was issued in the previous cycle
  output logic                     line_went_o,     // pulse: a read of a ring line was
  input  logic                     idx_done_i,      // pulse: a read of the index has ended
  input  logic                     line_done_i,     // pulse: a read of a ring line has ended
  // tokens: seq_go_i is known early in the cycle, fast_i late
  output logic                     want_seq_o,      // level: a token is wanted
  output logic     [QSizeLog2-1:0] index_o,         // its first descriptor
  output logic                     wrap_o,          // its wrap counter
  output logic                     safe_o,          // the driver has announced it
  output logic     [          2:0] cap_o,           // descriptors left in the line at index_o
  output logic     [          4:0] count_seq_o,     // descriptors that the token covers, unless it is for news
  input  logic                     seq_go_i,        // pulse: the wanted token is sent,
  input  logic                     fast_i,          // or one for news, as the queue is calm
  input  logic     [          4:0] cnt_seq_i,       // requested in the previous cycle: descriptors,
  input  logic     [          5:0] cnt_line_i,      // or ring entries
  input  logic                     tok_in_i,        // pulse: a token is in flight
  input  logic                     tok_out_i,       // pulse: a token is used up
  input  logic                     more_i,          // pulse: in order: a chain has another descriptor
  input  logic                     more_beyond_i,   // with it: its token does not cover that one
  output logic                     lone_o,          // level: exactly one token is in flight, and none is to follow
  input  logic                     stop_i,          // pulse: packed: unavailable descriptor
  input  logic     [QSizeLog2-1:0] stop_index_i,    // its index
  input  logic                     stop_wrap_i,     // its wrap counter
  input  logic                     commit_i,        // pulse: a chain has entered the store
  input  logic     [  QSizeLog2:0] commit_slots_i,  // its ring slots
  input  logic                     back_i,          // pulse: restart after the last chain in the store
  output logic                     busy_o,          // level: anything of the queue is in flight
  // avail_event
  output logic                     want_event_o,    // level: avail_event is to be written
  output logic     [         15:0] told_o,          // its value: what was known when the write was accepted
  input  logic                     ev_go_i,         // pulse: the write is accepted
  input  logic                     ev_done_i        // pulse: it has left
);

  // Positions below have 8 bits.
  localparam bit SizeOk = via_pkg::param_in("VIA_QUEUE_SIZE of via_vq_ring_queue", QSizeMax, 4, 256);

  localparam int unsigned LinesMax = 32;  // packed: limit of lines read ahead

  logic is_packed, seq, told, exact, probe_q;
  assign is_packed = feat_i.packed_ring;
  assign seq = is_packed || feat_i.in_order;
  assign told = !is_packed || feat_i.notif_data;
  assign exact = told && !probe_q;  // tokens cover only what the driver has announced

  // ---------------------------------------------------------------- state
  // What the driver announced, what was requested, what is in the store. Split in order: the number of chains known to be available, or
  // more where chains turned out to be longer (`more_i`).
  logic [15:0] known_q, pos_q, done_q, limit_q, told_q;  // packed: known_q is the end of those announced, and limit_q is constant
  logic [QSizeLog2-1:0] dpos_q, cpos_q;  // sequential: next descriptor to request; the one after the last in the store
  logic [15:0] kback_q;  // known_q minus one round of the ring: may be negative
  logic dwrap_q, kwrap_q, cwrap_q;
  logic enable_q, bad_q;
  logic pend_q;  // the index has to be read
  logic go_q;  // packed, not exact: lines are being read
  logic again_q;  // and a notification came meanwhile
  // Lines that may be read ahead. Never more than once around the ring: flags from two rounds ago look like those of the current round.
  logic [5:0] ahead_q;
  logic [8:0] tokens_q;
  logic [4:0] lines_q;  // reads of ring lines in flight
  logic [2:0] looks_q;  // reads of the index in flight
  logic calm_q;  // everything known was requested, and the next position is known
  logic event_q;
  // Requests of the previous cycle: they are counted now.
  logic seq_went_q, line_went_q, idx_went_q, tok_went_q, line_came_q;
  logic gone_q;  // the queue has restarted meanwhile
  logic sent;  // a request is counted

  logic [8:0] size;
  assign size = 9'(cfg_i.size[QSizeLog2:0]);

  // ---------------------------------------------------------------- set-up
  logic [63:12] next_page_q;  // a ring is shorter than a page
  logic [  7:0] mask_q;
  logic [  5:0] begin_q;  // first word of the ring, counted from the start of its first line
  logic [  8:0] end_q;  // and its last word
  logic [  3:0] first_q;  // first descriptor, within 256 bytes
  logic [  6:0] idx_line_q;  // line of the index in its page, or in the next one
  // Exactly one of nine bits is set: computed from three groups of three.
  logic [2:0] none, single;
  logic power;
  for (genvar g = 0; g < 3; g++) begin : gen_power
    assign none[g]   = cfg_i.size[3*g+:3] == '0;
    assign single[g] = cfg_i.size[3*g+:3] inside {3'd1, 3'd2, 3'd4};
  end
  assign power = none[2] && none[1] && single[0] || none[2] && single[1] && none[0] || single[2] && none[1] && none[0];

  always_ff @(posedge clk_i) begin
    bad_q        <= cfg_i.enable && (cfg_i.desc[3:0] != '0 || (is_packed ? cfg_i.driver[1:0] != '0 : cfg_i.driver[0]) || cfg_i.device[1:0] != '0 ||
                                    cfg_i.size == '0 || cfg_i.size > 16'(QSizeMax) || !is_packed && !power);
    next_page_q <= cfg_i.driver[63:12] + 52'd1;
    mask_q <= 8'(size - 9'd1);
    begin_q <= 6'(cfg_i.driver[5:1]) + 6'd2;
    end_q <= 9'(begin_q) + 9'(mask_q);
    first_q <= cfg_i.desc[7:4];
    idx_line_q <= 7'(cfg_i.driver[11:6]) + 7'(&cfg_i.driver[5:1]);
  end
  assign bad_o = bad_q;

  // ---------------------------------------------------------------- progress of the driver
  // The distance from what is known, and to the furthest position allowed. Both are less than half of 2^16 in either direction, as long as
  // the driver obeys the rules. Split: notifications and reads may overtake one another, so an index behind the known one is simply no
  // news. Packed: likewise a position behind. A position with the other wrap counter lies a round ahead, and not behind the known one.
  // Each queue compares with its own state in parallel: only the results are collected.
  logic [15:0] base, limit, ahead, gap, open, old;
  logic counts, onward, take, beyond, noticed, other_round, jumped_q, behind_q, beyond_q;

  assign other_round = is_packed && wrap_i != kwrap_q;
  assign base = other_round ? kback_q : known_q;
  assign limit = other_round ? known_q : limit_q;
  assign ahead = value_i - base;
  assign open = limit - value_i;
  assign gap = base - value_i;
  assign beyond = is_packed && {1'b0, offset_i} >= cfg_i.size;
  assign counts = feat_i.notif_data && !(is_packed && probe_q);
  assign onward = gap[15] && !open[15];
  // Only split queues read an index.
  assign take = indexed_i && onward || notified_i && counts && !beyond && onward;
  assign news_o = seq && calm_q && (told ? take : notified_i);
  assign ahead_o = ahead[1:0];
  assign near_o = ahead[8:2] == '0;
  assign jumped_o = jumped_q && (!behind_q || old[15]);
  assign beyond_o = beyond_q;
  assign told_o = told_q;
  assign noticed = notified_i && !bad_q;

  // One round behind what was known in the previous cycle (the queue is no longer calm by then). Split: an index that is not further behind
  // was just read late.
  assign old = was_i - kback_q;
  always_ff @(posedge clk_i) begin
    kback_q  <= known_q - 16'(size);
    behind_q <= ahead[15];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      jumped_q <= 1'b0;
      beyond_q <= 1'b0;
    end else begin
      jumped_q <= !is_packed && (indexed_i || notified_i && feat_i.notif_data) && (ahead[15] || open[15]);
      beyond_q <= notified_i && feat_i.notif_data && beyond;
    end
  end

  // ---------------------------------------------------------------- what to request next
  logic [7:0] place;
  logic [8:0] word, room, near;
  logic [5:0] to_end, to_wrap, line_cap_q;
  logic [6:0] line_q;
  logic [4:0] place_q;
  logic [1:0] at;
  logic [3:0] at_block;
  logic [2:0] in_line, in_ring;
  logic [2:0] cap_q;
  logic [4:0] block, upto16, left16, room_q, most_q, upto_q;
  logic [15:0] left;
  logic [5:0] left_q;
  logic far_q;
  logic any, moving, direct, quick, look, recheck, pends, ring_line, idx_go, idx_left, line_left, seq_left, event_left;
  logic want_read_q, want_idx_q, want_seq_q, lone_q, rest_q, busy_q, want_event_q, more_ahead;

  function automatic logic [2:0] counted(input logic [2:0] more_than);
    return {more_than[2], more_than[0] && !more_than[2], !more_than[0] || more_than[1] && !more_than[2]};
  endfunction

  function automatic logic [4:0] up_to_16(input logic [8:0] have);
    return |have[8:4] ? 5'd16 : have[4:0];
  endfunction

  // Ring lines: the line, and its entries up to its end, or up to the end of the ring if that comes first.
  assign place = pos_q[7:0] & mask_q;
  assign word = 9'(begin_q) + 9'(place);
  assign to_end = 6'd32 - {1'b0, word[4:0]};
  assign to_wrap = {1'b0, mask_q[4:0] & ~pos_q[4:0]} + 6'd1;
  // Tokens for news: descriptors up to the end of the line and of the ring, encoded as: more than one, more than two, more than three.
  assign at = first_q[1:0] + dpos_q[1:0];
  assign room = size - 9'(dpos_q);
  assign in_line = {at == 2'd0, !at[1], at != 2'd3};
  assign in_ring = {|room[8:2], |room[8:2] || &room[1:0], |room[8:1]};
  // Other tokens: up to the end of 256 aligned bytes, of the ring, and of what is left. Reading ahead goes line by line.
  assign at_block = first_q + 4'(dpos_q);
  assign block = exact ? 5'd16 - 5'(at_block) : 5'd4 - 5'(at_block[1:0]);
  // The end of what was announced comes before that of the ring if the driver is in the same round.
  assign near = known_q[8:0] - 9'(dpos_q);
  assign upto16 = (is_packed && exact && kwrap_q == dwrap_q) ? up_to_16(near) : up_to_16(room);
  assign left16 = (is_packed || |left[15:4]) ? 5'd16 : left[4:0];

  // Entries left to request.
  assign left = known_q - pos_q;
  assign any = known_q != (is_packed ? 16'(dpos_q) : pos_q) || is_packed && kwrap_q != dwrap_q;

  always_ff @(posedge clk_i) begin
    line_q     <= 7'(cfg_i.driver[11:6]) + 7'(word[8:5]);
    place_q    <= word[4:0];
    line_cap_q <= (word[8:5] == end_q[8:5]) ? to_wrap : to_end;
    cap_q      <= counted(in_line & in_ring);
    room_q     <= (room[8:5] != '0) ? '1 : room[4:0];
    left_q     <= (calm_q && heard_i && !seq) ? ahead[5:0] : left[5:0];
    far_q      <= (calm_q && heard_i && !seq) ? |ahead[8:6] : |left[15:6];
    upto_q     <= upto16;
    most_q     <= (left16 < block) ? left16 : block;
  end

  // Inputs of the computations above change now or have just changed, other than by news.
  assign moving = seq_went_q || line_went_q || back_i || stop_i || direct;
  // Everything is known except how far the driver has gone.
  assign quick = calm_q && !back_i && take;

  assign more_ahead = tokens_q < 9'(ahead_q) && (tokens_q == '0 || tokens_q < 9'(size[QSizeLog2:2]));
  assign idx_left = run_i && !bad_q && (pend_q || pends) && looks_q < 3'd3;
  assign line_left = run_i && !bad_q && !seq && (any && !moving || quick);
  assign seq_left = run_i && !bad_q && seq && !moving && (exact ? any : go_q && more_ahead);
  assign event_left = feat_i.event_idx && !is_packed && !any && !moving && !pend_q && !idx_went_q && looks_q == '0 && !event_q && told_q != known_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !cfg_i.enable || !enable_q) begin
      want_idx_q   <= 1'b0;
      want_event_q <= 1'b0;
      calm_q       <= 1'b0;
      lone_q       <= 1'b0;
      rest_q       <= 1'b0;
    end else begin
      want_idx_q <= idx_left;
      want_event_q <= run_i && !bad_q && event_left && !heard_i;
      // What is requested now was counted as left to request, so these need not depend on the request.
      calm_q       <= run_i && !bad_q && !(any && told) && !moving && !heard_i && !look_i && (!seq || tokens_q == '0 && !probe_q && (told || !go_q));
      lone_q <= tokens_q == 9'd1 && !any && !moving && !heard_i && !more_i || lone_q && direct && !back_i && !heard_i;
      // Nothing of the queue is in flight, and nothing is to come.
      rest_q       <= run_i && !bad_q && tokens_q == '0 && looks_q == '0 && lines_q == '0 && !pend_q && !idx_went_q && !tok_went_q && !moving && !heard_i &&
                      ((!seq || exact) ? !any : !go_q && !probe_q);
    end
  end
  // What was requested is not offered again in the next cycle; anything else waits for that.
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !cfg_i.enable || !enable_q || read_go_i) want_read_q <= 1'b0;
    else want_read_q <= idx_left || line_left;
    if (!rst_ni || !cfg_i.enable || !enable_q || seq_go_i) want_seq_q <= 1'b0;
    else want_seq_q <= seq_left;
  end
  // A request that may be granted counts as in flight.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_q <= 1'b0;
    else
      busy_q <= tokens_q != '0 || looks_q != '0 || lines_q != '0 || event_q || seq_went_q || tok_went_q || idx_went_q || line_went_q ||
                want_read_q || want_seq_q || want_event_q || calm_q && heard_i;
  end
  assign busy_o = busy_q;
  assign lone_o = lone_q;
  assign want_event_o = want_event_q;

  assign want_read_o = want_read_q;
  assign want_idx_o = want_idx_q;
  assign idx_went_o = idx_went_q;
  assign line_went_o = line_went_q;
  assign want_seq_o = want_seq_q;
  assign idx_go = read_go_i && want_idx_q;

  assign ring_line = want_idx_q ? idx_line_q[6] : line_q[6];
  assign line_o = {ring_line ? next_page_q : cfg_i.driver[63:12], want_idx_q ? idx_line_q[5:0] : line_q[5:0]};
  assign place_o = want_idx_q ? cfg_i.driver[5:1] + 5'd1 : place_q;
  assign count_o = (far_q || left_q > line_cap_q) ? line_cap_q : left_q;

  assign index_o = dpos_q;
  assign wrap_o = dwrap_q;
  assign safe_o = exact;
  assign cap_o = cap_q;
  assign count_seq_o = (upto_q < most_q) ? upto_q : most_q;
  assign mask_o = mask_q;

  // ---------------------------------------------------------------- steps
  logic c_over, cnt_wraps;
  logic [5:0] cnt;
  logic [8:0] c_sum;
  logic [QSizeLog2-1:0] c_next, d_sum;

  assign look = look_i && run_i && rest_q && !heard_i;
  assign direct = more_i && more_beyond_i && lone_q;
  // A driver that goes on adding is not waited for: its index is read again with every sixteenth token that is used up before the last.
  assign recheck = tok_out_i && tokens_q[3:0] == '0;
  assign pends = !is_packed && (recheck || notified_i && !feat_i.notif_data || early_i || ev_done_i || look_i && run_i && rest_q);
  // After the chain being committed.
  assign c_sum = 9'(cpos_q) + 9'(commit_slots_i);
  assign c_over = c_sum >= size;
  assign c_next = QSizeLog2'(c_over ? c_sum - size : c_sum);
  assign sent = (seq_went_q || line_went_q) && !gone_q;
  assign cnt = seq ? 6'(cnt_seq_i) : cnt_line_i;
  assign d_sum = dpos_q + (sent ? QSizeLog2'(cnt_seq_i) : QSizeLog2'(1));
  assign cnt_wraps = cnt_seq_i == room_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || !cfg_i.enable) begin
      enable_q                                                       <= 1'b0;
      known_q                                                        <= '0;
      pos_q                                                          <= '0;
      told_q                                                         <= '0;
      done_q                                                         <= '0;
      limit_q                                                        <= is_packed ? 16'(QSizeMax) : cfg_i.size;
      dpos_q                                                         <= '0;
      cpos_q                                                         <= '0;
      dwrap_q                                                        <= 1'b1;
      kwrap_q                                                        <= 1'b1;
      cwrap_q                                                        <= 1'b1;
      probe_q                                                        <= 1'b0;
      pend_q                                                         <= 1'b0;
      event_q                                                        <= 1'b0;
      go_q                                                           <= 1'b0;
      again_q                                                        <= 1'b0;
      ahead_q                                                        <= 6'd1;
      tokens_q                                                       <= '0;
      looks_q                                                        <= '0;
      lines_q                                                        <= '0;
      gone_q                                                         <= 1'b0;
      {seq_went_q, line_went_q, idx_went_q, tok_went_q, line_came_q} <= '0;
    end else begin
      enable_q <= 1'b1;
      // What is known.
      if (stop_i && is_packed && told) begin
        {kwrap_q, known_q} <= {stop_wrap_i, 16'(stop_index_i)};
      end else if (take) begin
        {kwrap_q, known_q} <= {wrap_i, value_i};
      end
      pend_q <= pends || pend_q && !idx_go;
      if (idx_went_q != idx_done_i) looks_q <= idx_went_q ? looks_q + 3'd1 : looks_q - 3'd1;
      if (line_went_q != line_came_q) lines_q <= line_went_q ? lines_q + 5'd1 : lines_q - 5'd1;
      if (ev_go_i) event_q <= 1'b1;
      else if (ev_done_i) event_q <= 1'b0;
      if (ev_go_i) told_q <= known_q;

      // What is in the store.
      if (commit_i) begin
        done_q <= done_q + 16'd1;
        if (!is_packed) limit_q <= limit_q + 16'd1;
        cpos_q  <= c_next;
        cwrap_q <= cwrap_q ^ c_over;
      end
      if (!enable_q && !is_packed) limit_q <= cfg_i.size;

      // What was requested. A restart discards requests of the previous cycle.
      gone_q <= back_i || stop_i;
      if (back_i) pos_q <= done_q;
      else pos_q <= pos_q + (sent ? 16'(cnt) : 16'd0) - 16'(more_i && !direct);
      if (back_i) begin
        dpos_q  <= cpos_q;
        dwrap_q <= cwrap_q;
      end else if (stop_i) begin
        dpos_q  <= stop_index_i;
        dwrap_q <= stop_wrap_i;
      end else if (sent) begin
        dpos_q  <= cnt_wraps ? '0 : d_sum;
        dwrap_q <= dwrap_q ^ cnt_wraps;
      end else if (direct) begin
        dpos_q <= d_sum & QSizeLog2'(mask_q);
      end

      // Packed, notified before it was on: how far is not known.
      if ((look || early_i) && is_packed && told) probe_q <= 1'b1;
      else if (stop_i) probe_q <= probe_q && (again_q || noticed);
      if (back_i || noticed || early_i || look || stop_i && again_q) go_q <= 1'b1;
      else if (stop_i) go_q <= 1'b0;
      if (noticed && go_q && !stop_i) again_q <= 1'b1;
      else if (stop_i || look) again_q <= 1'b0;
      if (stop_i || back_i || look) ahead_q <= 6'd1;
      else if (commit_i && ahead_q != 6'(LinesMax)) ahead_q <= ahead_q + 6'd1;

      seq_went_q  <= seq_go_i || fast_i;
      line_went_q <= read_go_i && !want_idx_q;
      idx_went_q  <= idx_go;
      tok_went_q  <= tok_in_i;
      line_came_q <= line_done_i;
      if ((seq_went_q || tok_went_q) != tok_out_i) tokens_q <= tok_out_i ? tokens_q - 9'd1 : tokens_q + 9'd1;
    end
  end

endmodule
