// SPDX-License-Identifier: Apache-2.0
//
// Walks chains of descriptors through the lines requested by via_vq_fetch_burst, and passes their pieces on in order.
//
// Throughput: one descriptor a cycle, one cycle more for each token that does not share (`share` of vq_token_t), or that follows a chain
// that left its line. A chain continues in its own line or in the next one that was read, if its contents were available by
// then; otherwise the walker reads the line itself and everything waits for that.
// Latency: two cycles from a line to the piece: in one the descriptor is extracted, in the other checked; the source is notified a cycle
// later. A token takes a cycle, which has passed long before its line arrives.
// Order: that of the tokens; the pieces of a chain are consecutive. A line that was used leaves (`line_pop_o`) a cycle later.
// Checks: next inside the table, length against the queue's size, form of a reference to an indirect table. A chain in error ends with a
// piece that says so. Packed: a first descriptor that is not available yet stops the walk of its queue (`stop_*`).
// A token of an old epoch is dropped; a chain that was begun is walked to its end. Outputs come from registers.
// Misuse: if more than `Lines` lines are requested and not used up, lines are lost.

module via_vq_fetch_walk
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ  = 2,  // queues
  parameter int unsigned Lines = 32  // lines requested and not used up
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  vq_feat_t                  feat_i,               // negotiated features
  input  vq_cfg_t                   cfg_i        [NumQ],  // queues as the driver has set them up
  input  logic      [     NumQ-1:0] on_i,                 // level: the queue is in use
  input  logic      [     NumQ-1:0] epoch_f_i,            // level: current epoch of the queue's chains
  input  logic      [     NumQ-1:0] back_i,               // pulse: that epoch flips in the next cycle
  output logic      [     NumQ-1:0] epoch_w_o,            // level: current epoch of the queue's lines
  input  vq_token_t                 tok_i,                // part of a token, within one line
  input  logic                      tok_fresh_i,          // it comes with a new line
  input  logic                      tok_final_i,          // it is the last part of its token
  input  logic      [          6:0] tok_line_i,           // number of its line in the queue's table
  input  logic      [          1:0] tok_low_i,            // descriptor within that line at which it begins
  input  logic                      tok_valid_i,
  output logic                      tok_ready_o,
  // lines: what was requested, and the responses, which are always accepted
  input  vq_line_t                  tag_i,                // with tag_valid_i: the line requested
  input  logic                      tag_valid_i,          // pulse
  input  vq_burst_t                 burst_i,              // with burst_valid_i: the burst requested
  input  logic                      burst_valid_i,        // pulse
  input  logic      [    DataW-1:0] line_i,               // with line_valid_i: its contents
  input  logic                      line_err_i,           // with line_valid_i: the read failed
  input  logic                      line_valid_i,         // pulse
  output logic                      line_pop_o,           // pulse: a line was used up in the previous cycle
  output logic                      one_req_o,            // level, held until one_done_i: read a line
  output logic      [         57:0] one_line_o,           // with it: address bits 63:6
  input  logic                      one_done_i,           // pulse: the line is here
  input  logic                      one_err_i,            // with one_done_i: the read failed
  input  logic      [    DataW-1:0] one_data_i,           // with one_done_i: the line
  // pieces; for those that refer to an indirect table also the table
  output logic      [     NumQ-1:0] piece_o,              // pulse: a piece was offered in the previous cycle
  output vq_elem_t                  m_o,                  // piece
  output logic                      m_valid_o,
  input  logic                      m_ready_i,
  output vq_table_t                 ask_o,                // table
  output logic                      ask_valid_o,
  input  logic                      ask_ready_i,
  output logic                      done_valid_o,         // pulse: a token is used up
  output logic      [   QueueW-1:0] done_queue_o,         // its queue
  output logic                      more_valid_o,         // pulse: in order: a chain has another descriptor
  output logic      [   QueueW-1:0] more_queue_o,         // its queue
  output logic                      more_beyond_o,        // with it: its token does not cover that one
  input  logic                      more_direct_i,        // with it: and no later token does either
  output logic                      stop_valid_o,         // pulse: packed: unavailable descriptor
  output logic      [   QueueW-1:0] stop_queue_o,         // its queue
  output logic      [QSizeLog2-1:0] stop_index_o,         // its index
  output logic                      stop_wrap_o,          // its wrap counter
  output logic                      still_o               // level: nothing moves unless an input changes
);

  localparam bit NumQOk = param_in("via_vq_fetch_walk NumQ", NumQ, 1, QueuesMax);
  localparam bit LinesOk = param_in("via_vq_fetch_walk Lines", Lines, 8, 1024);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;

  localparam int unsigned Pieces = 64;

  /// A descriptor in memory. Split: `w3` = next, `w2` = flags; packed: flags, buffer id.
  typedef struct packed {
    logic [15:0] w3;
    logic [15:0] w2;
    logic [31:0] len;
    logic [63:0] addr;
  } raw_t;

  typedef struct packed {
    logic             err;
    logic [DataW-1:0] data;
  } line_t;

  /// Part of a token, within one line.
  typedef struct packed {
    logic       fresh;   // it comes with a new line
    logic       final_;  // it is the last part of its token
    logic [6:0] number;  // of its line
    logic [1:0] low;     // descriptor within that line at which it begins
    vq_token_t  tok;
  } entry_t;

  typedef enum logic [1:0] {
    StTake,  // waits for a token, and its line
    StWalk,
    StAsk,   // the address of a line that was not prefetched
    StRead   // wait for it
  } state_e;

  typedef enum logic [1:0] {
    FromLine,
    FromNext,  // the next line, not popped: its own tokens will need it
    FromRead
  } from_e;

  state_e state_q;
  from_e  from_q;
  logic [DataW-1:0] line_q, read_q;
  logic line_err_q, read_err_q;
  vq_token_t tok_q;
  logic [NumQ-1:0] mine_q;  // its queue, one-hot
  logic [QSizeLog2-1:0] at_q;  // current descriptor
  logic [QSizeLog2-1:0] up_q;  // the next one in the table
  logic [8:0] place_q;  // its position in the lines of the table: four to a line, counted from the start of the first line
  logic [6:0] prev_q;  // the number of its line, minus one
  logic [2:0] rest_q;  // descriptors of the token, from at_q on
  logic final_q;
  logic first_q;  // at_q begins a chain
  logic [QSizeLog2:0] n_q;  // descriptors of the chain before it
  logic full_q;  // with one more the chain would be as long as the queue
  logic [15:0] id_q;
  vq_feat_t feat_q;  // constant before the driver is ready
  // Set-up of the token's queue.
  logic [57:0] base_q;
  logic [1:0] align_q;
  logic [QSizeLog2:0] size_q;
  logic [QSizeLog2-1:0] end_q;  // its last descriptor
  logic pop_q;  // a line is used up
  // The descriptor at at_q.
  raw_t raw_q;
  logic raw_valid_q, raw_err_q;
  logic [57:0] one_line_q;
  logic [NumQ-1:0] epoch_w_q;
  // Sequential: number of descriptors of coming tokens that were walked already, as parts of a chain that left its token.
  localparam int unsigned SkipW = (QSizeLog2 < 3) ? 4 : QSizeLog2 + 1;  // wide enough for a comparison with a token's three bits
  logic [NumQ-1:0][SkipW-1:0] skip_q;
  // Reports to the source, a cycle later.
  logic done_q, more_q, more_valid_q, beyond_q, end_beyond_q, stop_q;
  logic [NumQ-1:0] said_mine_q;
  logic [QueueW-1:0] done_queue_q, said_queue_q;
  logic said_wrap_q;
  logic [QSizeLog2-1:0] said_index_q;

  assign epoch_w_o = epoch_w_q;

  always_ff @(posedge clk_i) feat_q <= feat_i;

  /// `value + more`, without a carry chain: as fast, and it can be mapped together with the logic that uses the result.
  function automatic logic [QSizeLog2-1:0] plus(input logic [QSizeLog2-1:0] value, input logic more);
    logic carry;
    carry = more;
    for (int unsigned i = 0; i < QSizeLog2; i++) begin
      plus[i] = value[i] ^ carry;
      carry &= value[i];
    end
  endfunction

  /// The position of a descriptor in the lines of its table, which begins at descriptor `align` of the first line.
  function automatic logic [8:0] placed(input logic [QSizeLog2-1:0] index, input logic [1:0] align);
    logic c0, c1;
    logic [6:0] line;
    c0   = index[0] & align[0];
    c1   = index[1] & align[1] | (index[1] | align[1]) & c0;
    line = 7'(plus(QSizeLog2'(index >> 2), c1));
    return {line, index[1] ^ align[1] ^ c0, index[0] ^ align[0]};
  endfunction

  /// The descriptor after `index` in a table whose last one is `last`.
  function automatic logic [QSizeLog2-1:0] behind(input logic [QSizeLog2-1:0] index, input logic [QSizeLog2-1:0] last);
    return (index == last) ? '0 : plus(index, 1'b1);
  endfunction

  // ---------------------------------------------------------------- lines
  // A line that is waited for is used in the cycle in which it arrives. A tag arrives before its line.
  vq_line_t tag;
  line_t line;
  logic tag_valid, line_valid, line_pop, tag_room;

  via_fifo #(
    .T    (vq_line_t),
    .Depth(Lines)
  ) u_tags (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (tag_i),
    .s_valid_i(tag_valid_i),
    .s_ready_o(tag_room),
    .m_o      (tag),
    .m_valid_o(tag_valid),
    .m_ready_i(line_pop),
    .count_o  ()
  );

  via_vq_fetch_reorder #(
    .Lines(Lines)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .burst_i,
    .burst_valid_i,
    .line_i,
    .line_err_i,
    .line_valid_i,
    .line_o      (line.data),
    .line_err_o  (line.err),
    .line_valid_o(line_valid),
    .line_pop_i  (line_pop)
  );
  assign line_pop_o = pop_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!tag_valid_i || tag_room)
      else $error("tag without a place");
      assert (!line_pop || tag_valid)
      else $error("line without a tag");
    end
  end
`endif

  // ---------------------------------------------------------------- start of a token
  entry_t entry;
  vq_token_t tok;
  logic tok_valid, go;
  logic ends;  // the current descriptor is the last of its token

  via_slice #(
    .T(entry_t)
  ) u_tok (
    .clk_i,
    .rst_ni,
    .s_i      ('{fresh: tok_fresh_i, final_: tok_final_i, number: tok_line_i, low: tok_low_i, tok: tok_i}),
    .s_valid_i(tok_valid_i),
    .s_ready_o(tok_ready_o),
    .m_o      (entry),
    .m_valid_o(tok_valid),
    .m_ready_i(go)
  );
  assign tok = entry.tok;

  // Per queue: an arriving token of it is of an old epoch, or none of its descriptors is left.
  logic [QW-1:0] tq;
  logic [NumQ-1:0] old, walked;
  logic waits, ready, takes, drops, follows, t_last;
  logic [1:0] t_part;
  logic [QSizeLog2-1:0] t_index, t_up, t_skip;
  logic [QSizeLog2:0] t_size;

  for (genvar i = 0; i < NumQ; i++) begin : gen_token
    assign old[i] = !on_i[i] || tok.epoch_f != epoch_f_i[i] || tok.epoch_w != epoch_w_q[i];
    assign walked[i] = skip_q[i][SkipW-1:3] != '0 || skip_q[i][2:0] >= tok.count[2:0];
  end
  assign tq = QW'(tok.queue);
  // A stop that is being reported flips the epoch first.
  assign waits = state_q == StTake && !stop_q;
  assign ready = tok_valid && (!entry.fresh || line_valid);
  assign drops = waits && ready && (old[tq] || walked[tq] && tok.err == VqErrNone);
  // A token that shares is of the queue and the epochs of the one before it, and split: when that one ends in its own line this one follows
  // without a cycle between them, and is dropped no more than a chain that was begun.
  assign follows = ends && from_q == FromLine && tok.share && ready;
  assign takes = waits && ready && !(old[tq] || walked[tq] && tok.err == VqErrNone) || follows;
  assign go = waits && ready || follows;
  assign line_pop = go && entry.fresh;
  assign t_skip = skip_q[tq][QSizeLog2-1:0];
  assign t_index = tok.index + t_skip;
  assign t_part = entry.low + t_skip[1:0];
  // Whether it is the table's last one, index + skip + 1 == size, without a carry chain: a sum is all ones if and only if exactly one of
  // the two bits is set in each position.
  assign t_size = cfg_i[tq].size[QSizeLog2:0];
  always_comb begin
    logic [QSizeLog2-1:0] sum, carry, less;
    less = ~t_size[QSizeLog2-1:0];
    sum = tok.index ^ t_skip ^ less;
    carry = tok.index & t_skip | tok.index & less | t_skip & less;
    t_last = (sum ^ {carry[QSizeLog2-2:0], 1'b1}) == '1;
    t_up = t_last ? '0 : tok.index + t_skip + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) pop_q <= 1'b0;
    else pop_q <= line_pop;
  end

  // ---------------------------------------------------------------- evaluation of the current descriptor
  logic room, piece_room, ask_room;
  logic [15:0] flags;
  logic avail, next, indirect, write;
  vq_err_e err;
  logic table_bad, next_bad, has_table, w3_up;
  logic has_desc, stops, goes, fails, last, done;

  // Whether it names the next one in the table; the size of a split table is a power of two.
  assign w3_up = raw_q.w3[QSizeLog2-1:0] == up_q;
  assign flags = feat_q.packed_ring ? raw_q.w3 : raw_q.w2;
  assign next = flags[0];
  assign write = flags[1];
  assign indirect = flags[2];
  // Packed: flags bits 7 and 15 are AVAIL and USED.
  assign avail = !feat_q.packed_ring || !first_q || flags[7] == tok_q.wrap && flags[15] != tok_q.wrap;

  // A table of at most 4 KiB, in units of 16 bytes, ends inside the address space.
  assign table_bad = !feat_q.indirect || next || raw_q.len[3:0] != '0 || raw_q.len[31:4] == '0 || raw_q.len[31:4] > 28'(QSizeMax) ||
                     raw_q.addr[3:0] != '0 || &raw_q.addr[63:12] && 10'(raw_q.addr[11:4]) + 10'(raw_q.len[12:4]) > 10'd256;
  assign next_bad = !feat_q.packed_ring && (raw_q.w3 >= 16'(size_q) || feat_q.in_order && !w3_up);
  always_comb begin
    err = VqErrNone;
    if (tok_q.err != VqErrNone) err = tok_q.err;
    else if (raw_err_q) err = VqErrRead;
    else if (indirect && table_bad) err = VqErrIndirect;
    else if (next && next_bad) err = VqErrHead;
    else if (next && full_q) err = VqErrLoop;
  end

  assign fails = tok_q.err != VqErrNone || raw_err_q || indirect && table_bad || next && (next_bad || full_q);
  // A descriptor with both INDIRECT and NEXT is in error already.
  assign has_table = indirect && !table_bad && !raw_err_q && tok_q.err == VqErrNone;
  assign room = piece_room && ask_room;
  assign has_desc = state_q == StWalk && raw_valid_q;
  assign stops = has_desc && !raw_err_q && !avail && tok_q.err == VqErrNone;
  assign goes = has_desc && !stops && room;
  assign last = !next || fails;
  // The token is used up by the last descriptor of a chain that reaches the end of the token, or by an error.
  assign done = stops || goes && (fails || !next && rest_q <= 3'd1);
  // The same for a chain of a split queue that names no further descriptor, whether it is in error or not.
  assign ends = has_desc && !feat_q.packed_ring && room && !next && rest_q <= 3'd1;

  // ---------------------------------------------------------------- the next descriptor
  logic [QSizeLog2-1:0] to, to_up;
  logic [8:0] to_place;
  logic same_line, peeks, leaves, named;
  logic [2:0] rest1;
  logic [DataW-1:0] line_a;
  logic err_a, pick_b;
  logic [1:0] part;
  raw_t raw_a, raw_b;

  // Either named by the descriptor, or the next in the table.
  assign named = !feat_q.packed_ring && raw_q.w2[0];
  assign to = named ? raw_q.w3[QSizeLog2-1:0] : up_q;
  assign to_up = named ? behind(raw_q.w3[QSizeLog2-1:0], end_q) : behind(up_q, end_q);
  assign to_place = placed(to, align_q);
  assign rest1 = (rest_q != '0) ? rest_q - 3'd1 : 3'd0;
  assign same_line = lies_in(to, align_q, place_q[8:2], prev_q);
  assign peeks = tag_valid && tag.safe && tag.queue == tok_q.queue && tag.epoch_f == tok_q.epoch_f && tag.epoch_w == tok_q.epoch_w &&
                 lies_in(
      to, align_q, tag.number, tag.prev
  );
  assign leaves = next && !same_line;

  // Extracted from both lines in parallel; the line is selected last.
  always_comb begin
    part = place_q[1:0];
    if (state_q == StTake || ends) part = t_part;
    else if (has_desc) part = to_place[1:0];
    line_a = line_q;
    err_a  = line_err_q;
    if (state_q == StRead) begin
      line_a = one_data_i;
      err_a  = one_err_i;
    end else if (state_q == StWalk && from_q == FromRead) begin
      line_a = read_q;
      err_a  = read_err_q;
    end
    pick_b = 1'b0;
    if (state_q == StTake || ends && from_q == FromLine) pick_b = entry.fresh;
    else if (state_q == StWalk) pick_b = from_q == FromNext || leaves && has_desc;
  end
  assign raw_a = line_a[128*part+:128];
  assign raw_b = line.data[128*part+:128];

  always_ff @(posedge clk_i) begin
    if (state_q == StTake || state_q == StRead || goes || !raw_valid_q) begin
      raw_q     <= pick_b ? raw_b : raw_a;
      raw_err_q <= pick_b ? line.err : err_a;
    end
  end
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StTake:  raw_valid_q <= 1'b1;
      StWalk: begin
        if (!raw_valid_q) raw_valid_q <= line_valid;
        else if (goes) raw_valid_q <= done || !pick_b || line_valid;
      end
      default: raw_valid_q <= 1'b1;
    endcase
  end

  // ---------------------------------------------------------------- state
  assign one_req_o  = state_q == StRead;
  assign one_line_o = one_line_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StTake;
    end else begin
      unique case (state_q)
        StTake:  if (takes) state_q <= StWalk;
        StWalk: begin
          if (done) state_q <= follows ? StWalk : StTake;
          else if (goes && leaves && !peeks) state_q <= StAsk;
        end
        StAsk:   state_q <= StRead;
        default: if (one_done_i) state_q <= StWalk;
      endcase
    end
  end

  // Not used in StTake, so they need not wait for the decision about the token.
  always_ff @(posedge clk_i) begin
    if (state_q == StTake || ends) begin
      tok_q <= tok;
      for (int unsigned i = 0; i < NumQ; i++) mine_q[i] <= tq == QW'(i);
      at_q    <= t_index;
      up_q    <= t_up;
      place_q <= {entry.number, t_part};
      prev_q  <= entry.number - 7'd1;
      rest_q  <= tok.count[2:0] - 3'(t_skip);
      final_q <= entry.final_;
      first_q <= 1'b1;
      n_q     <= '0;
      full_q  <= t_size[QSizeLog2:1] == '0;
      from_q  <= FromLine;
      base_q  <= cfg_i[tq].desc[63:6];
      align_q <= cfg_i[tq].desc[5:4];
      size_q  <= t_size;
      end_q   <= t_size[QSizeLog2-1:0] - 1'b1;
    end else if (goes) begin
      at_q    <= to;
      up_q    <= to_up;
      place_q <= to_place;
      prev_q  <= to_place[8:2] - 7'd1;
      rest_q  <= rest1;
      first_q <= !next;
      n_q     <= next ? n_q + 1'b1 : '0;
      full_q  <= next ? n_q + (QSizeLog2 + 1)'(2) >= size_q : size_q <= (QSizeLog2 + 1)'(1);
      if (first_q) id_q <= 16'(at_q);
      if (!next) from_q <= FromLine;
      else if (!same_line) from_q <= peeks ? FromNext : FromRead;
    end
    if (line_pop) begin
      line_q     <= line.data;
      line_err_q <= line.err;
    end
    if (state_q == StRead) begin
      read_q     <= one_data_i;
      read_err_q <= one_err_i;
    end
    if (state_q == StAsk) one_line_q <= base_q + 58'(place_q[8:2]);
  end

  // ---------------------------------------------------------------- pieces
  vq_elem_t  piece;
  vq_table_t ask;

  always_comb begin
    piece          = '0;
    piece.queue    = tok_q.queue;
    piece.epoch_f  = tok_q.epoch_f;
    piece.last     = last;
    piece.err      = err;
    piece.indirect = indirect && tok_q.err == VqErrNone;
    piece.write    = write;
    piece.slots    = n_q + 1'b1;
    // Packed: the buffer id is that of the last descriptor. Split: the head.
    piece.id       = feat_q.packed_ring ? raw_q.w2 : first_q ? 16'(at_q) : id_q;
    piece.len      = raw_q.len;
    piece.addr     = raw_q.addr;
  end
  assign ask = '{entries: raw_q.len[12:4], addr: raw_q.addr[63:4]};

  via_fifo #(
    .T    (vq_elem_t),
    .Depth(Pieces)
  ) u_pieces (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (piece),
    .s_valid_i(goes),
    .s_ready_o(piece_room),
    .m_o,
    .m_valid_o,
    .m_ready_i,
    .count_o  ()
  );

  via_fifo #(
    .T    (vq_table_t),
    .Depth(8)
  ) u_ask (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (ask),
    .s_valid_i(goes && has_table),
    .s_ready_o(ask_room),
    .m_o      (ask_o),
    .m_valid_o(ask_valid_o),
    .m_ready_i(ask_ready_i),
    .count_o  ()
  );

  // ---------------------------------------------------------------- reports to the source
  logic current, asks;

  // Results of an epoch that has ended meanwhile are not reported.
  assign current = |(mine_q & on_i & ~(epoch_f_i ^ back_i ^{NumQ{tok_q.epoch_f}}));
  assign asks = goes && next && !fails && current;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q       <= 1'b0;
      more_q       <= 1'b0;
      more_valid_q <= 1'b0;
      stop_q       <= 1'b0;
      piece_o      <= '0;
    end else begin
      done_q       <= done && final_q || drops && entry.final_;
      more_q       <= asks && (feat_q.in_order || feat_q.packed_ring);
      more_valid_q <= asks && feat_q.in_order && !feat_q.packed_ring;
      stop_q       <= stops && current;
      piece_o      <= goes ? mine_q : '0;
    end
  end
  always_ff @(posedge clk_i) begin
    done_queue_q <= (state_q == StTake) ? tok.queue : tok_q.queue;
    said_queue_q <= tok_q.queue;
    said_mine_q  <= mine_q;
    said_wrap_q  <= tok_q.wrap;
    said_index_q <= at_q;
    beyond_q     <= rest_q <= 3'd1;
    end_beyond_q <= rest_q <= 3'd1 && final_q;
  end

  assign done_valid_o  = done_q;
  assign done_queue_o  = done_queue_q;
  assign more_valid_o  = more_valid_q;
  assign more_queue_o  = said_queue_q;
  assign more_beyond_o = end_beyond_q;
  assign stop_valid_o  = stop_q;
  assign stop_queue_o  = said_queue_q;
  assign stop_index_o  = said_index_q;
  assign stop_wrap_o   = said_wrap_q;

  logic beyond;
  // A later token covers the descriptor too.
  assign beyond = more_q && beyond_q && (feat_q.packed_ring || !end_beyond_q || !more_direct_i);
  for (genvar i = 0; i < NumQ; i++) begin : gen_queue
    logic skipped;
    assign skipped = go && !old[i] && tok.err == VqErrNone && tq == QW'(i);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) epoch_w_q[i] <= 1'b0;
      else if (stop_q && said_mine_q[i]) epoch_w_q[i] <= !epoch_w_q[i];
    end
    // Any restart resets the count of descriptors walked ahead.
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !on_i[i] || stop_q && said_mine_q[i] || back_i[i]) skip_q[i] <= '0;
      else if (skipped) skip_q[i] <= walked[i] ? skip_q[i] - SkipW'(tok.count[2:0]) : '0;
      else if (beyond && said_mine_q[i]) skip_q[i] <= skip_q[i] + 1'b1;
    end
  end

  assign still_o = ~|{back_i, tag_valid_i, line_valid_i, tok_valid_i && tok_ready_o, go, done_q, more_q, stop_q, piece_o, has_desc && (stops || room),
                      !raw_valid_q && line_valid && state_q == StWalk, state_q == StAsk, one_done_i, m_valid_o && m_ready_i, ask_valid_o && ask_ready_i};

endmodule
