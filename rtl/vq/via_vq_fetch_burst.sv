// SPDX-License-Identifier: Apache-2.0
//
// Requests the descriptors named by tokens, up to four 64-byte lines in a burst, and splits the tokens by lines; consecutive tokens within
// a line share its read, and those in the line after or before it the burst, up to eight lines: a request costs the link as much as half a
// line, and drivers take the descriptors that were returned last first, so that their heads ascend and descend.
//
// Throughput: one token a cycle, `Lines` lines in flight or held by the walker. Latency: one cycle to the address, and to the tag of a line;
// the address of a line whose token has `more` waits for the tokens that may share its burst, no more than four cycles for each.
// Order: tokens, tags and lines leave in order. A token with `fresh` comes with a new line; one with `final` is the last part of its
// original token. Misuse: tokens that share a line must be of one queue, and no more lines may be popped than were requested (asserted).

module via_vq_fetch_burst
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ  = 2,  // queues
  parameter int unsigned Lines = 32  // lines in flight or held
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  vq_cfg_t         cfg_i        [NumQ],  // queues as the driver has set them up
  input  vq_token_t       s_i,                  // token
  input  logic            s_valid_i,
  output logic            s_ready_o,
  output vq_token_t       m_o,                  // part of a token, within one line
  output logic            m_fresh_o,            // it comes with a new line
  output logic            m_final_o,            // it is the last part of its token
  output logic      [6:0] m_line_o,             // number of its line in the table
  output logic      [1:0] m_low_o,              // descriptor within the line at which it begins
  output logic            m_valid_o,
  input  logic            m_ready_i,
  // lines requested in the previous cycle; the walker has room for them
  output vq_line_t        tag_o,                // with tag_valid_o: the line
  output logic            tag_valid_o,          // pulse
  input  logic            line_pop_i,           // pulse: a line is used up
  output axi_ax_t         m_ar_o,
  output logic            m_ar_valid_o,
  input  logic            m_ar_ready_i,
  output vq_burst_t       burst_o,              // with burst_valid_o: the burst requested
  output logic            burst_valid_o,        // pulse
  output logic            still_o               // level: nothing moves unless an input changes
);

  localparam bit NumQOk = param_in("via_vq_fetch_burst NumQ", NumQ, 1, QueuesMax);
  localparam bit LinesOk = param_in("via_vq_fetch_burst Lines", Lines, 8, 1024);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned Tokens = 256;
  localparam int unsigned Burst = 8;  // lines of a burst that tokens share
  localparam int unsigned Patience = 4;  // cycles without a token after which the burst goes

  localparam int unsigned CountW = $clog2(Lines + 1);

  typedef struct packed {
    logic       fresh;
    logic       final_;
    logic [6:0] number;
    logic [1:0] low;
    vq_token_t  tok;
  } entry_t;

  // The rest of a token whose burst was requested, after the `left_step_q` descriptors that have gone: whole lines except for the last.
  logic part_q;
  vq_token_t left_q, left;
  logic [2:0] left_step_q;
  logic [6:0] left_number_q;
  logic [1:0] low;  // descriptor within its line at which the token begins
  logic [2:0] rest;  // descriptors from there on
  logic [1:0] more_lines;
  logic fresh, ends, go, take, ask, ar_room, line_room_q, tok_room, enter, tag_valid_q;
  logic [CountW-1:0] lines_q;  // requested, not used up
  logic [63:0] desc;
  logic [8:0] at;  // descriptor, counted from the start of the table's first line,
  logic [8:0] past;  // the same, a line further
  logic [8:0] far;  // and counted from the start of its first page
  logic [6:0] number;
  logic [NumQ-1:0][51:0] next_page_q;
  vq_line_t tag, in_tag, last_q;
  logic [6:0] after_q, before_q;  // numbers of the line after last_q, and of the second one before it
  logic last_here_q;  // a token of the current shared group came before this one and set last_q
  logic [1:0] last_align_q;
  axi_ax_t ar, ar_out;
  entry_t in, out;

  // A burst that waits for further lines.
  logic held_q, due_q, joins, joins_up, joins_down, push, load;
  logic up_q, down_q;  // the line after its last one, the line before its first one may join it
  logic falls_q;  // the latter has
  logic [$clog2(Patience)-1:0] idle_q;  // cycles since the last token
  axi_ax_t held_ar_q;

  assign desc = cfg_i[QW'(s_i.queue)].desc;
  assign at = 9'(s_i.index) + 9'(desc[5:4]);
  assign past = 9'(s_i.index) + 9'({1'b1, desc[5:4]});
  assign number = at[8:2];
  assign far = 9'(s_i.index) + 9'(desc[11:4]);
  assign low = {s_i.index[1] ^ desc[5] ^ s_i.index[0] & desc[4], s_i.index[0] ^ desc[4]};
  assign rest = 3'd4 - 3'(low);
  // Written without carry chains: a few LUTs.
  always_comb begin
    unique case (low)
      2'd0: begin
        ends = s_i.count <= 5'd4;
        more_lines = {s_i.count > 5'd8, s_i.count > 5'd12 || s_i.count > 5'd4 && s_i.count <= 5'd8};
      end
      2'd1: begin
        ends = s_i.count <= 5'd3;
        more_lines = {s_i.count > 5'd7, s_i.count > 5'd11 || s_i.count > 5'd3 && s_i.count <= 5'd7};
      end
      2'd2: begin
        ends = s_i.count <= 5'd2;
        more_lines = {s_i.count > 5'd6, s_i.count > 5'd10 || s_i.count > 5'd2 && s_i.count <= 5'd6};
      end
      default: begin
        ends = s_i.count <= 5'd1;
        more_lines = {s_i.count > 5'd5, s_i.count > 5'd9 || s_i.count > 5'd1 && s_i.count <= 5'd5};
      end
    endcase
  end
  assign tag   = '{queue: s_i.queue, epoch_f: s_i.epoch_f, epoch_w: s_i.epoch_w, safe: s_i.safe, number: number, prev: number - 7'd1};
  assign fresh = s_i.err == VqErrNone && !(s_i.share && last_here_q && lies_in(s_i.index, last_align_q, last_q.number, last_q.prev));

  // Parts for the walker: that of the first line in the cycle in which the token arrives, then the rest.
  always_comb begin
    left       = left_q;
    left.index = left_q.index + QSizeLog2'(left_step_q);
    left.count = left_q.count - 5'(left_step_q);
    if (part_q) begin
      in = '{fresh: 1'b1, final_: left.count <= 5'd4, number: left_number_q, low: 2'd0, tok: left};
      if (!in.final_) in.tok.count = 5'd4;
      in_tag = '{
          queue: left_q.queue,
          epoch_f: left_q.epoch_f,
          epoch_w: left_q.epoch_w,
          safe: left_q.safe,
          number: left_number_q,
          prev: left_number_q - 7'd1
      };
    end else begin
      in = '{fresh: fresh, final_: ends, number: number, low: low, tok: s_i};
      if (!ends) in.tok.count = 5'(rest);
      in_tag = tag;
    end
  end

  // Ready only with room for everything that a token may need, so that readiness does not depend on its contents.
  assign s_ready_o = !part_q && tok_room && ar_room && line_room_q;
  assign take = s_valid_i && s_ready_o;
  assign go = part_q ? tok_room : take;
  assign ask = take && fresh;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) part_q <= 1'b0;
    else if (go) part_q <= !in.final_;
  end
  always_ff @(posedge clk_i) begin
    if (!part_q) begin
      left_q        <= s_i;
      left_step_q   <= rest;
      left_number_q <= past[8:2];
    end else if (go) begin
      left_q.index  <= left.index;
      left_q.count  <= left.count;
      left_step_q   <= 3'd4;
      left_number_q <= left_number_q + 7'd1;
    end
  end

  // A token in error may come between two that share a line, or before them. Tokens that share are of one queue and are not split.
  assign enter = go && in.fresh;
  always_ff @(posedge clk_i) begin
    if (enter) last_q <= in_tag;
    if (enter && !part_q) begin
      last_align_q <= desc[5:4];
      after_q      <= past[8:2];
      before_q     <= number - 7'd2;
    end
    if (take) last_here_q <= fresh || s_i.share && last_here_q;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tag_valid_q <= 1'b0;
      lines_q     <= '0;
      line_room_q <= 1'b1;
    end else begin
      tag_valid_q <= enter;
      if (enter != line_pop_i) lines_q <= enter ? lines_q + 1'b1 : lines_q - 1'b1;
      // Room for a whole burst, and for the line entered in this cycle.
      line_room_q <= lines_q <= CountW'(Lines - 5);
    end
  end
  always_ff @(posedge clk_i) tag_o <= in_tag;
  assign tag_valid_o = tag_valid_q;

  // The table occupies 65 lines at most, hence two pages. Set up long before the first token.
  always_ff @(posedge clk_i) for (int unsigned q = 0; q < NumQ; q++) next_page_q[q] <= cfg_i[q].desc[63:12] + 52'd1;
  always_comb begin
    ar       = '0;
    ar.burst = BurstIncr;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(more_lines);
    ar.addr  = {far[8] ? next_page_q[QW'(s_i.queue)] : desc[63:12], far[7:2], 6'd0};
  end

  // Only what was available before the held burst's first line is read may join it. A burst that is due leaves with the next token at the
  // latest, since there is room for an address whenever a token is accepted.
  assign joins_up   = up_q && lies_in(s_i.index, last_align_q, after_q, last_q.number);
  assign joins_down = down_q && lies_in(s_i.index, last_align_q, last_q.prev, before_q);
  assign joins      = s_i.share && last_here_q && held_q && !due_q && (joins_up || joins_down);
  assign load       = ask && !joins && (held_q || s_i.more);
  assign push       = ar_room && (held_q ? due_q || ask && !joins : ask && !s_i.more);
  assign ar_out     = held_q ? held_ar_q : ar;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) held_q <= 1'b0;
    else held_q <= load || held_q && !push;
  end
  always_ff @(posedge clk_i) begin
    // A token that waits for room for its line may join, too.
    if (take) idle_q <= '0;
    else if (!due_q && (line_room_q || !tok_room || !s_valid_i)) idle_q <= idle_q + 1'b1;
    // While the walker has less to do a burst is no longer than what is under way before it, so that the first lines are not late.
    if (load) due_q <= !s_i.more;
    else begin
      due_q <= due_q || idle_q == '1 || CountW'({held_ar_q.len[2:0], 1'b0}) + CountW'(2) >= lines_q ||
               take && (!s_i.more || ask && joins && held_ar_q.len[2:0] == 3'(Burst - 2));
    end
    if (load) held_ar_q <= ar;
    else if (ask && joins) begin
      held_ar_q.len[2:0] <= held_ar_q.len[2:0] + 3'd1;
      if (joins_down) held_ar_q.addr <= ar.addr;
    end
    // Within a page, in one direction, and not beside the lines of a token that has several.
    if (load || ask && joins) begin
      falls_q <= !load && joins_down;
      up_q <= far[7:2] != '1 && more_lines == '0 && (load || joins_up);
      down_q <= far[7:2] != '0 && more_lines == '0 && (load || joins_down);
    end
  end

  always_ff @(posedge clk_i) begin
    burst_valid_o <= push && rst_ni;
    burst_o       <= '{down: held_q && falls_q, len: ar_out.len[2:0]};
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar_out),
    .s_valid_i(push),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  via_vq_fifo #(
    .T    (entry_t),
    .Depth(Tokens)
  ) u_tokens (
    .clk_i,
    .rst_ni,
    .s_i      (in),
    .s_valid_i(go),
    .s_ready_o(tok_room),
    .m_o      (out),
    .m_valid_o,
    .m_ready_i,
    .count_o  (),
    .hidden_o ()           // not in distributed memory
  );
  assign m_o = out.tok;
  assign m_fresh_o = out.fresh;
  assign m_final_o = out.final_;
  assign m_line_o = out.number;
  assign m_low_o = out.low;

  assign still_o = ~|{go, held_q, burst_valid_o, tag_valid_q, m_ar_valid_o, m_valid_o && m_ready_i, line_pop_i};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(take && s_i.share && last_here_q) || {last_q.queue, last_q.epoch_f, last_q.epoch_w, last_q.safe} == {s_i.queue, s_i.epoch_f, s_i.epoch_w, s_i.safe})
      else $error("tokens that share are of different queues");
      assert (!line_pop_i || lines_q != '0)
      else $error("pop without a line");
    end
  end
`endif

endmodule
