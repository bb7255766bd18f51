// SPDX-License-Identifier: Apache-2.0
//
// Walks chains of descriptors through the lines that via_vq_fetch_line read and hands their pieces on, in order.
//
// Throughput: one descriptor a cycle, one cycle more for each token; small split chains take 2 to 3 cycles. A chain goes on in its own line or
// in the next one that was read, if its contents were available by then; else the walker reads the line itself and everybody waits for it.
// Latency: two cycles from a line to the piece, in one the descriptor is cut out, in the other checked; the source is told a cycle later.
// Ordering: in order of the tokens; the pieces of a chain follow one another.
// Checks: next inside the table, length against the queue's size, form of a reference to an indirect table. A chain in error ends with a
// piece that says so. Packed: a first descriptor that is not available yet stops the walk of its queue (`stop_*`).
// A token of an old epoch is dropped; a chain begun is walked to its end.

module via_vq_fetch_walk
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  vq_feat_t                  feat_i,
  input  vq_cfg_t                   cfg_i        [NumQ],
  input  logic      [     NumQ-1:0] on_i,
  input  logic      [     NumQ-1:0] epoch_f_i,
  output logic      [     NumQ-1:0] epoch_w_o,
  input  vq_token_t                 tok_i,
  input  logic                      tok_fresh_i,
  input  logic                      tok_final_i,          // the last of those that the source counts as one
  input  logic      [          6:0] tok_line_i,           // number of its line in the queue's table
  input  logic                      tok_valid_i,
  output logic                      tok_ready_o,
  input  logic                      tag_valid_i,
  input  logic      [   QueueW-1:0] tag_queue_i,
  input  logic                      tag_epoch_f_i,
  input  logic                      tag_epoch_w_i,
  input  logic                      tag_safe_i,
  input  logic      [          6:0] tag_line_i,
  input  logic                      line_valid_i,
  input  logic                      line_err_i,
  input  logic      [    DataW-1:0] line_i,
  output logic                      line_pop_o,
  output logic                      one_req_o,
  output logic      [         57:0] one_line_o,
  input  logic                      one_done_i,
  input  logic                      one_err_i,
  input  logic      [    DataW-1:0] one_data_i,
  // pieces, and of those that refer to an indirect table the table
  output logic      [     NumQ-1:0] piece_o,              // pulse: a piece was put there, in the cycle before
  output vq_elem_t                  m_o,
  output logic                      m_valid_o,
  input  logic                      m_ready_i,
  output vq_table_t                 ask_o,
  output logic                      ask_valid_o,
  input  logic                      ask_ready_i,
  output logic                      done_valid_o,
  output logic      [   QueueW-1:0] done_queue_o,
  output logic                      more_valid_o,
  output logic      [   QueueW-1:0] more_queue_o,
  output logic                      more_beyond_o,
  input  logic                      more_direct_i,
  output logic                      stop_valid_o,
  output logic      [   QueueW-1:0] stop_queue_o,
  output logic      [QSizeLog2-1:0] stop_index_o,
  output logic                      stop_wrap_o,
  output logic                      still_o
);

  localparam bit NumQOk = param_in("via_vq_fetch_walk NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;

  localparam int unsigned Pieces = 64;

  /// A descriptor in memory. Split: `w3` = next, `w2` = flags; packed: flags, buffer id.
  typedef struct packed {
    logic [15:0] w3;
    logic [15:0] w2;
    logic [31:0] len;
    logic [63:0] addr;
  } raw_t;

  typedef enum logic [1:0] {
    StTake,  // waits for a token, and its line
    StWalk,
    StAsk,   // the address of a line that nobody foresaw
    StRead   // waits for it
  } state_e;

  typedef enum logic [1:0] {
    FromLine,
    FromNext,  // the line behind it, not popped: its own tokens will need it
    FromRead
  } from_e;

  state_e state_q;
  from_e  from_q;
  logic [DataW-1:0] line_q, read_q;
  logic line_err_q, read_err_q;
  vq_token_t tok_q;
  logic [QSizeLog2-1:0] at_q;  // descriptor
  logic [8:0] place_q;  // of it in the lines of the table: four to a line, counted from where the first line begins
  logic [2:0] rest_q;  // of the token, from at_q on
  logic final_q;
  logic first_q;  // at_q begins a chain
  logic [QSizeLog2:0] n_q;  // descriptors of the chain before it
  logic full_q;  // with one more the chain would be as long as the queue
  logic [15:0] id_q;
  vq_feat_t feat_q;  // settled before the driver is
  // Of the token's queue.
  logic [57:0] base_q;
  logic [1:0] align_q;
  logic [QSizeLog2:0] size_q;
  logic [QSizeLog2-1:0] end_q;  // its last descriptor
  // The descriptor at at_q.
  raw_t raw_q;
  logic raw_valid_q, raw_err_q;
  logic [57:0] one_line_q;
  logic [NumQ-1:0] epoch_w_q;
  // Sequential: how many descriptors of coming tokens were walked already, as parts of chains that left their token.
  logic [NumQ-1:0][16:0] skip_q;
  // What the source is told, a cycle later.
  logic done_q, more_q, beyond_q, end_beyond_q, stop_q;
  logic [QueueW-1:0] done_queue_q, said_queue_q;
  logic said_epoch_q, said_wrap_q;
  logic [QSizeLog2-1:0] said_index_q;

  assign epoch_w_o = epoch_w_q;

  always_ff @(posedge clk_i) feat_q <= feat_i;

  /// `value + more`, without a carry chain: as fast, and it can be mapped together with what looks at the result.
  function automatic logic [QSizeLog2-1:0] plus(input logic [QSizeLog2-1:0] value, input logic more);
    logic carry;
    carry = more;
    for (int unsigned i = 0; i < QSizeLog2; i++) begin
      plus[i] = value[i] ^ carry;
      carry &= value[i];
    end
  endfunction

  /// The place of a descriptor in the lines of its table, which begins at descriptor `align` of the first.
  function automatic logic [8:0] placed(input logic [QSizeLog2-1:0] index, input logic [1:0] align);
    logic c0, c1;
    logic [6:0] line;
    c0   = index[0] & align[0];
    c1   = index[1] & align[1] | (index[1] | align[1]) & c0;
    line = 7'(plus(QSizeLog2'(index >> 2), c1));
    return {line, index[1] ^ align[1] ^ c0, index[0] ^ align[0]};
  endfunction

  // ---------------------------------------------------------------- take a token
  logic [QW-1:0] tq;
  logic stale, skips, takes, drops, go;
  logic [NumQ-1:0] far;
  logic [1:0] t_part;
  logic [QSizeLog2-1:0] t_index;

  assign tq = QW'(tok_i.queue);
  assign stale = !on_i[tq] || tok_i.epoch_f != epoch_f_i[tq] || tok_i.epoch_w != epoch_w_q[tq];
  assign skips = tok_i.err == VqErrNone && (far[tq] || skip_q[tq][2:0] >= tok_i.count[2:0]);
  // A stop that is being told flips the epoch first.
  assign go = state_q == StTake && !stop_q && tok_valid_i && (!tok_fresh_i || line_valid_i);
  assign drops = go && (stale || skips);
  assign takes = go && !(stale || skips);
  assign tok_ready_o = go;
  assign line_pop_o = go && tok_fresh_i;
  assign t_index = tok_i.index + skip_q[tq][QSizeLog2-1:0];
  assign t_part = tok_i.index[1:0] + skip_q[tq][1:0] + cfg_i[tq].desc[5:4];

  // ---------------------------------------------------------------- what the descriptor at hand says
  logic room, piece_room, ask_room;
  logic [15:0] flags;
  logic avail, next, indirect, write;
  vq_err_e err;
  logic table_bad, next_bad, has_table, w3_up;
  logic has_desc, stops, goes, fails, last, done;
  logic [QSizeLog2-1:0] up;  // the descriptor behind it in the table

  assign up = (at_q == end_q) ? '0 : plus(at_q, 1'b1);
  // A split table's size is a power of two.
  assign w3_up = raw_q.w3[QSizeLog2-1:0] == (plus(at_q, 1'b1) & end_q);
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
  // A descriptor that has both, a table and a next one, is in error already.
  assign has_table = indirect && !table_bad && !raw_err_q && tok_q.err == VqErrNone;
  assign room = piece_room && ask_room;
  assign has_desc = state_q == StWalk && raw_valid_q;
  assign stops = has_desc && !raw_err_q && !avail && tok_q.err == VqErrNone;
  assign goes = has_desc && !stops && room;
  assign last = !next || fails;
  // The token is used up with the last descriptor of a chain that reaches its end, or with an error.
  assign done = stops || goes && (fails || !next && rest_q <= 3'd1);

  // ---------------------------------------------------------------- the descriptor after it
  logic [QSizeLog2-1:0] to;
  logic [8:0] to_place;
  logic same_line, peeks, leaves;
  logic [2:0] rest1;
  logic [DataW-1:0] line_a;
  logic err_a, pick_b;
  logic [1:0] part;
  raw_t raw_a, raw_b;

  assign to = (next && !feat_q.packed_ring) ? raw_q.w3[QSizeLog2-1:0] : up;
  assign to_place = placed(to, align_q);
  assign rest1 = (rest_q != '0) ? rest_q - 3'd1 : 3'd0;
  assign same_line = to_place[8:2] == place_q[8:2];
  assign peeks = tag_valid_i && tag_safe_i && tag_queue_i == tok_q.queue && tag_epoch_f_i == tok_q.epoch_f && tag_epoch_w_i == tok_q.epoch_w &&
                 tag_line_i == to_place[8:2];
  assign leaves = next && !same_line;

  // Cut out of two lines at once, for which one it is comes last.
  always_comb begin
    part = place_q[1:0];
    if (state_q == StTake) part = t_part;
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
    if (state_q == StTake) pick_b = tok_fresh_i;
    else if (state_q == StWalk) pick_b = from_q == FromNext || leaves && has_desc;
  end
  assign raw_a = line_a[128*part+:128];
  assign raw_b = line_i[128*part+:128];

  always_ff @(posedge clk_i) begin
    if (state_q == StTake || state_q == StRead || goes || !raw_valid_q) begin
      raw_q     <= pick_b ? raw_b : raw_a;
      raw_err_q <= pick_b ? line_err_i : err_a;
    end
  end
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StTake:  raw_valid_q <= 1'b1;
      StWalk: begin
        if (!raw_valid_q) raw_valid_q <= line_valid_i;
        else if (goes) raw_valid_q <= !pick_b || line_valid_i;
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
          if (done) state_q <= StTake;
          else if (goes && leaves && !peeks) state_q <= StAsk;
        end
        StAsk:   state_q <= StRead;
        default: if (one_done_i) state_q <= StWalk;
      endcase
    end
  end

  // Nobody looks at them in StTake, so they need not wait for what becomes of the token.
  always_ff @(posedge clk_i) begin
    if (state_q == StTake) begin
      tok_q   <= tok_i;
      at_q    <= t_index;
      place_q <= {tok_line_i, t_part};
      rest_q  <= tok_i.count[2:0] - skip_q[tq][2:0];
      final_q <= tok_final_i;
      first_q <= 1'b1;
      n_q     <= '0;
      full_q  <= cfg_i[tq].size[QSizeLog2:1] == '0;
      from_q  <= FromLine;
      base_q  <= cfg_i[tq].desc[63:6];
      align_q <= cfg_i[tq].desc[5:4];
      size_q  <= cfg_i[tq].size[QSizeLog2:0];
      end_q   <= cfg_i[tq].size[QSizeLog2-1:0] - 1'b1;
    end else if (goes) begin
      at_q    <= to;
      place_q <= to_place;
      rest_q  <= rest1;
      first_q <= !next;
      n_q     <= next ? n_q + 1'b1 : '0;
      full_q  <= next ? n_q + (QSizeLog2 + 1)'(2) >= size_q : size_q <= (QSizeLog2 + 1)'(1);
      if (first_q) id_q <= 16'(at_q);
      if (!next) from_q <= FromLine;
      else if (!same_line) from_q <= peeks ? FromNext : FromRead;
    end
    if (state_q == StTake && tok_fresh_i && go) begin
      line_q     <= line_i;
      line_err_q <= line_err_i;
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

  // ---------------------------------------------------------------- what the source is told
  logic current, more, stop;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q  <= 1'b0;
      more_q  <= 1'b0;
      stop_q  <= 1'b0;
      piece_o <= '0;
    end else begin
      done_q <= done && final_q || drops && tok_final_i;
      more_q <= goes && next && !fails && (feat_q.in_order || feat_q.packed_ring);
      stop_q <= stops;
      for (int unsigned i = 0; i < NumQ; i++) piece_o[i] <= goes && QW'(tok_q.queue) == QW'(i);
    end
  end
  always_ff @(posedge clk_i) begin
    done_queue_q <= (state_q == StTake) ? tok_i.queue : tok_q.queue;
    said_queue_q <= tok_q.queue;
    said_epoch_q <= tok_q.epoch_f;
    said_wrap_q  <= tok_q.wrap;
    said_index_q <= at_q;
    beyond_q     <= rest_q <= 3'd1;
    end_beyond_q <= rest_q <= 3'd1 && final_q;
  end

  // What was seen of an epoch that has ended meanwhile is no news.
  assign current = on_i[QW'(said_queue_q)] && said_epoch_q == epoch_f_i[QW'(said_queue_q)];
  assign more = more_q && current;
  assign stop = stop_q && current;
  assign done_valid_o = done_q;
  assign done_queue_o = done_queue_q;
  assign more_valid_o = more && !feat_q.packed_ring;
  assign more_queue_o = said_queue_q;
  assign more_beyond_o = end_beyond_q;
  assign stop_valid_o = stop;
  assign stop_queue_o = said_queue_q;
  assign stop_index_o = said_index_q;
  assign stop_wrap_o = said_wrap_q;

  logic [NumQ-1:0] epoch_f_seen_q;
  for (genvar i = 0; i < NumQ; i++) begin : gen_queue
    logic beyond, skipped, mine;
    assign mine = QW'(said_queue_q) == QW'(i);
    // A later token covers the descriptor too.
    assign beyond = more && beyond_q && mine && (feat_q.packed_ring || !end_beyond_q || !more_direct_i);
    assign skipped = go && !stale && tok_i.err == VqErrNone && tq == QW'(i);
    assign far[i] = skip_q[i][16:3] != '0;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) epoch_w_q[i] <= 1'b0;
      else if (stop && mine) epoch_w_q[i] <= !epoch_w_q[i];
    end
    // Going back, from wherever, forgets what was walked ahead.
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !on_i[i] || stop && mine || epoch_f_seen_q[i] != epoch_f_i[i]) skip_q[i] <= '0;
      else if (skipped) skip_q[i] <= skips ? skip_q[i] - 17'(tok_i.count[2:0]) : '0;
      else if (beyond) skip_q[i] <= skip_q[i] + 17'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) epoch_f_seen_q <= '0;
    else epoch_f_seen_q <= epoch_f_i;
  end

  assign still_o = ~|{epoch_f_seen_q ^ epoch_f_i, go, done_q, more_q, stop_q, piece_o, has_desc && (stops || room), !raw_valid_q && line_valid_i && state_q == StWalk,
                      state_q == StAsk, one_done_i, m_valid_o && m_ready_i, ask_valid_o && ask_ready_i};

endmodule
