// SPDX-License-Identifier: Apache-2.0
//
// Walks chains of descriptors through the lines that via_vq_fetch_line read and hands their pieces on, in order.
//
// Throughput: one descriptor a cycle, one cycle more for each line and for each token; small split chains take 2 to 3 cycles. A chain goes on
// in its own line or in the next one that was read, if its contents were available by then; else the walker reads the line itself and
// everybody waits for it. Ordering: in order of the tokens; the pieces of a chain follow one another.
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
  output vq_elem_t                  m_o,
  output logic                      m_valid_o,
  input  logic                      m_ready_i,
  output logic                      done_valid_o,
  output logic      [   QueueW-1:0] done_queue_o,
  output logic                      more_valid_o,
  output logic                      more_beyond_o,
  input  logic                      more_direct_i,
  output logic                      stop_valid_o,
  output logic      [QSizeLog2-1:0] stop_index_o,
  output logic                      stop_wrap_o,
  output logic                      still_o
);

  localparam bit NumQOk = param_in("via_vq_fetch_walk NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;

  /// A descriptor in memory. Split: `hi` = {next, flags}; packed: {flags, buffer id}.
  typedef struct packed {
    logic [15:0] w3;
    logic [15:0] w2;
    logic [31:0] len;
    logic [63:0] addr;
  } raw_t;

  typedef enum logic [1:0] {
    StTake,  // waits for a token, and its line
    StWalk,
    StRead   // waits for a line that nobody foresaw
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
  logic [2:0] rest_q;  // of the token, from at_q on
  logic first_q;  // at_q begins a chain
  logic [QSizeLog2:0] n_q;  // descriptors of the chain before it
  logic [15:0] id_q;
  logic [6:0] number_q;  // of the line at_q is in
  logic [NumQ-1:0] epoch_w_q;
  // Sequential: how many descriptors of coming tokens were walked already, as parts of chains that left their token.
  logic [NumQ-1:0][16:0] skip_q;

  assign epoch_w_o = epoch_w_q;

  // ---------------------------------------------------------------- take a token
  logic [QW-1:0] tq;
  logic stale, skips, takes, drops, tok_err, ready_to_go;
  logic [9:0] t_at;
  logic [QSizeLog2-1:0] t_index;

  assign tq = QW'(tok_i.queue);
  assign stale = !on_i[tq] || tok_i.epoch_f != epoch_f_i[tq] || tok_i.epoch_w != epoch_w_q[tq];
  assign tok_err = tok_i.err != VqErrNone && !stale;
  assign skips = skip_q[tq] >= 17'(tok_i.count);
  assign ready_to_go = state_q == StTake && tok_valid_i && (!tok_fresh_i || line_valid_i);
  assign drops = ready_to_go && (stale || !tok_err && skips);
  assign takes = ready_to_go && !drops && (!tok_err || m_ready_i);
  assign tok_ready_o = drops || takes;
  assign line_pop_o = (drops || takes) && tok_fresh_i;
  assign t_index = tok_i.index + skip_q[tq][QSizeLog2-1:0];
  assign t_at = 10'(t_index) + 10'(cfg_i[tq].desc[5:4]);

  // ---------------------------------------------------------------- the descriptor at hand
  logic [QW-1:0] q;
  logic [8:0] size;
  logic [1:0] align;
  logic [9:0] at;
  logic [DataW-1:0] line;
  logic src_valid, src_err;
  raw_t raw;
  logic [15:0] flags;
  logic avail, next, indirect, write;

  assign q = QW'(tok_q.queue);
  assign size = cfg_i[q].size[QSizeLog2:0];
  assign align = cfg_i[q].desc[5:4];
  assign at = 10'(at_q) + 10'(align);
  always_comb begin
    unique case (from_q)
      FromNext: begin
        line      = line_i;
        src_valid = line_valid_i;
        src_err   = line_err_i;
      end
      FromRead: begin
        line      = read_q;
        src_valid = 1'b1;
        src_err   = read_err_q;
      end
      default: begin
        line      = line_q;
        src_valid = 1'b1;
        src_err   = line_err_q;
      end
    endcase
  end
  assign raw = line[128*at[1:0]+:128];
  assign flags = feat_i.packed_ring ? raw.w3 : raw.w2;
  assign next = flags[0];
  assign write = flags[1];
  assign indirect = flags[2];
  // Packed: flags bits 7 and 15 are AVAIL and USED.
  assign avail = !feat_i.packed_ring || !first_q || flags[7] == tok_q.wrap && flags[15] != tok_q.wrap;

  // ---------------------------------------------------------------- what comes of it
  vq_err_e err;
  logic [QSizeLog2:0] n1;
  logic [8:0] at1;
  logic [QSizeLog2-1:0] follows, follows_up;
  logic [9:0] f_at;
  logic has_desc, stops, goes, last, covered, done, current, same_line, peeks;
  logic [2:0] rest1;
  logic table_bad;
  logic [64:0] table_end;

  assign n1 = n_q + 1'b1;
  assign at1 = {1'b0, at_q} + 9'd1;
  assign follows_up = (at1 == size) ? '0 : at1[QSizeLog2-1:0];
  assign follows = feat_i.packed_ring ? follows_up : raw.w3[QSizeLog2-1:0];
  assign table_end = {1'b0, raw.addr} + 65'(raw.len) - 65'd1;
  assign table_bad = !feat_i.indirect || next || raw.len == '0 || raw.len[3:0] != '0 || raw.len > 32'(16 * QSizeMax) ||
                     raw.addr[3:0] != '0 || table_end[64];
  always_comb begin
    err = VqErrNone;
    if (src_err) err = VqErrRead;
    else if (indirect && table_bad) err = VqErrIndirect;
    else if (next && !feat_i.packed_ring && (raw.w3 >= cfg_i[q].size || feat_i.in_order && follows != follows_up)) err = VqErrHead;
    else if (next && n1 >= size) err = VqErrLoop;
  end

  assign has_desc = state_q == StWalk && src_valid;
  assign stops = has_desc && !src_err && !avail;
  assign goes = has_desc && !stops && m_ready_i;
  assign last = !next || err != VqErrNone;
  assign covered = rest_q != '0;
  assign rest1 = covered ? rest_q - 3'd1 : 3'd0;
  // The token is used up with the last descriptor of a chain that reaches its end, or with an error.
  assign done = stops || goes && last && (rest1 == '0 || err != VqErrNone);
  assign current = on_i[q] && tok_q.epoch_f == epoch_f_i[q];

  assign f_at = 10'(follows) + 10'(align);
  assign same_line = f_at[8:2] == number_q;
  assign peeks = tag_valid_i && tag_safe_i && tag_queue_i == tok_q.queue && tag_epoch_f_i == tok_q.epoch_f && tag_epoch_w_i == tok_q.epoch_w &&
                 tag_line_i == f_at[8:2];

  assign more_valid_o = goes && !last && feat_i.in_order && !feat_i.packed_ring && current;
  assign more_beyond_o = rest1 == '0;
  assign stop_valid_o = stops && current;
  assign stop_index_o = at_q;
  assign stop_wrap_o = tok_q.wrap;
  assign done_valid_o = done || drops || takes && tok_err;
  assign done_queue_o = (state_q == StTake) ? tok_i.queue : tok_q.queue;

  always_comb begin
    m_o          = '0;
    m_o.queue    = tok_q.queue;
    m_o.epoch_f  = tok_q.epoch_f;
    m_o.last     = last;
    m_o.err      = err;
    m_o.indirect = indirect;
    m_o.write    = write;
    m_o.slots    = n1;
    // Packed: the buffer id is that of the last descriptor. Split: the head.
    m_o.id       = feat_i.packed_ring ? raw.w2 : first_q ? 16'(at_q) : id_q;
    m_o.len      = raw.len;
    m_o.addr     = raw.addr;
    if (state_q == StTake) begin
      m_o.queue    = tok_i.queue;
      m_o.epoch_f  = tok_i.epoch_f;
      m_o.last     = 1'b1;
      m_o.err      = tok_i.err;
      m_o.indirect = 1'b0;
    end
  end
  assign m_valid_o  = has_desc && !stops || state_q == StTake && tok_valid_i && tok_err && (!tok_fresh_i || line_valid_i);

  // ---------------------------------------------------------------- state
  assign one_req_o  = state_q == StRead;
  assign one_line_o = cfg_i[q].desc[63:6] + 58'(at[9:2]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StTake;
    end else begin
      unique case (state_q)
        StTake:  if (takes && !tok_err) state_q <= StWalk;
        StWalk: begin
          if (done) state_q <= StTake;
          else if (goes && !last && !same_line && !peeks) state_q <= StRead;
        end
        default: if (one_done_i) state_q <= StWalk;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (takes && !tok_err) begin
      tok_q    <= tok_i;
      at_q     <= t_index;
      rest_q   <= tok_i.count - skip_q[tq][2:0];
      first_q  <= 1'b1;
      n_q      <= '0;
      number_q <= t_at[8:2];
      from_q   <= FromLine;
    end else if (goes) begin
      rest_q  <= rest1;
      first_q <= last;
      n_q     <= last ? '0 : n1;
      if (first_q) id_q <= 16'(at_q);
      at_q <= last ? follows_up : follows;
      if (!last) number_q <= f_at[8:2];
      if (last) from_q <= FromLine;
      else if (!same_line) from_q <= peeks ? FromNext : FromRead;
    end
    if (line_pop_o && takes) begin
      line_q     <= line_i;
      line_err_q <= line_err_i;
    end
    if (one_done_i) begin
      read_q     <= one_data_i;
      read_err_q <= one_err_i;
    end
  end

  logic [NumQ-1:0] epoch_f_seen_q;
  for (genvar i = 0; i < NumQ; i++) begin : gen_queue
    logic beyond, skipped, mine;
    assign mine = q == QW'(i);
    assign beyond = goes && !last && mine && (feat_i.in_order || feat_i.packed_ring) && rest1 == '0 && current &&
                    !(more_valid_o && more_direct_i);
    assign skipped = (drops || takes) && !stale && tok_i.err == VqErrNone && tq == QW'(i);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) epoch_w_q[i] <= 1'b0;
      else if (stop_valid_o && mine) epoch_w_q[i] <= !epoch_w_q[i];
    end
    // Going back, from wherever, forgets what was walked ahead.
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !on_i[i] || stop_valid_o && mine || epoch_f_seen_q[i] != epoch_f_i[i]) skip_q[i] <= '0;
      else if (skipped) skip_q[i] <= skips ? skip_q[i] - 17'(tok_i.count) : '0;
      else if (beyond) skip_q[i] <= skip_q[i] + 17'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) epoch_f_seen_q <= '0;
    else epoch_f_seen_q <= epoch_f_i;
  end

  assign still_o = ~|{epoch_f_seen_q ^ epoch_f_i, drops, takes, has_desc && (stops || m_ready_i), one_done_i};

endmodule
