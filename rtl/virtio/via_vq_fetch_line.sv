// SPDX-License-Identifier: Apache-2.0
//
// Reads the descriptors that tokens name, up to four 64-byte lines in a burst, and parts the tokens by lines; tokens that follow one another in
// a line share its read.
//
// Throughput: one token a cycle, 32 lines in flight. Latency: one cycle to the address, none from the line. Ordering: tokens and lines leave in order. A token
// with `fresh` comes with a new line, one with `final` is the last of those it came in with; the walker pops line and token apart, so it sees the line behind the current one early.

module via_vq_fetch_line
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  vq_cfg_t                cfg_i        [NumQ],
  input  vq_token_t              s_i,
  input  logic                   s_valid_i,
  output logic                   s_ready_o,
  output vq_token_t              m_o,
  output logic                   m_fresh_o,
  output logic                   m_final_o,
  output logic      [       6:0] m_line_o,
  output logic                   m_valid_o,
  input  logic                   m_ready_i,
  // the first line not popped: known by its number in the queue's table as soon as it is asked for
  output logic                   tag_valid_o,
  output logic      [QueueW-1:0] tag_queue_o,
  output logic                   tag_epoch_f_o,
  output logic                   tag_epoch_w_o,
  output logic                   tag_safe_o,
  output logic      [       6:0] tag_line_o,
  output logic                   line_valid_o,
  output logic                   line_err_o,
  output logic      [ DataW-1:0] line_o,
  input  logic                   line_pop_i,
  output axi_ax_t                m_ar_o,
  output logic                   m_ar_valid_o,
  input  logic                   m_ar_ready_i,
  input  axi_r_t                 m_r_i,
  input  logic                   m_r_valid_i,
  output logic                   cnt_o,
  output logic                   still_o
);

  localparam bit NumQOk = param_in("via_vq_fetch_line NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned Lines = 32;
  localparam int unsigned Tokens = 128;

  typedef struct packed {
    logic       fresh;
    logic       final_;
    logic [6:0] number;
    vq_token_t  tok;
  } entry_t;

  typedef struct packed {
    logic [QueueW-1:0] queue;
    logic              epoch_f;
    logic              epoch_w;
    logic              safe;
    logic [6:0]        number;
  } tag_t;

  typedef struct packed {
    logic             err;
    logic [DataW-1:0] data;
  } line_t;

  // What is left of a token whose burst was asked for: whole lines but for the last.
  logic part_q;
  vq_token_t left_q;
  logic [6:0] left_number_q;
  logic [1:0] low;  // where in its line the token begins
  logic [2:0] in_line;
  logic [1:0] more_lines;
  logic fresh, ends, go, take, ask, ar_room, tag_room, tok_room;
  logic [$clog2(Lines+1)-1:0] tags;
  logic [63:0] desc;
  logic [9:0] at;
  logic [7:0] page;  // of the first line, in lines from where the table's first page begins
  logic [51:0] high;
  tag_t tag, in_tag, last_q, first;
  axi_ax_t ar;
  entry_t in, out;
  line_t line_in, line;

  assign desc = cfg_i[QW'(s_i.queue)].desc;
  assign at = 10'(s_i.index) + 10'(desc[5:4]);
  assign low = {s_i.index[1] ^ desc[5] ^ s_i.index[0] & desc[4], s_i.index[0] ^ desc[4]};
  assign in_line = 3'd4 - 3'(low);
  // Without carry chains: a few LUTs.
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
  assign tag   = '{queue: s_i.queue, epoch_f: s_i.epoch_f, epoch_w: s_i.epoch_w, safe: s_i.safe, number: at[8:2]};
  assign fresh = s_i.err == VqErrNone && !(s_i.share && tag == last_q);

  // What goes on to the walker: a token in the cycle in which it comes, for one line, then what is left of it.
  always_comb begin
    if (part_q) begin
      in = '{fresh: 1'b1, final_: left_q.count <= 5'd4, number: left_number_q, tok: left_q};
      if (!in.final_) in.tok.count = 5'd4;
      in_tag = '{queue: left_q.queue, epoch_f: left_q.epoch_f, epoch_w: left_q.epoch_w, safe: left_q.safe, number: left_number_q};
    end else begin
      in = '{fresh: fresh, final_: ends, number: at[8:2], tok: s_i};
      if (!ends) in.tok.count = 5'(in_line);
      in_tag = tag;
    end
  end

  // Room for all that a token may need, so that nothing waits for what it names.
  assign s_ready_o = !part_q && tok_room && ar_room && tag_room;
  assign take = s_valid_i && s_ready_o;
  assign go = part_q ? tok_room : take;
  assign ask = take && fresh;
  always_ff @(posedge clk_i) cnt_o <= ask && rst_ni;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) part_q <= 1'b0;
    else if (go) part_q <= !in.final_;
  end
  always_ff @(posedge clk_i) begin
    if (!part_q) begin
      left_q        <= s_i;
      left_q.index  <= s_i.index + QSizeLog2'(in_line);
      left_q.count  <= s_i.count - 5'(in_line);
      left_number_q <= at[8:2] + 7'd1;
    end else if (go) begin
      left_q.index  <= left_q.index + QSizeLog2'(4);
      left_q.count  <= left_q.count - 5'd4;
      left_number_q <= left_number_q + 7'd1;
    end
  end

  // A token that is in error may stand between two that share a line.
  always_ff @(posedge clk_i) if (go && in.fresh) last_q <= in_tag;

  // The table takes 65 lines at most, so its pages are two; both are there when it is known which.
  assign page = 8'(desc[11:6]) + at[9:2];
  assign high = desc[63:12] + 52'd1;
  always_comb begin
    ar       = '0;
    ar.burst = 2'b01;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(more_lines);
    ar.addr  = {page[6] ? high : desc[63:12], page[5:0], 6'd0};
  end
  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(ask),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  via_fifo #(
    .T    (entry_t),
    .Depth(Tokens)
  ) u_tokens (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (in),
    .s_valid_i(go),
    .s_ready_o(tok_room),
    .m_o      (out),
    .m_valid_o,
    .m_ready_i,
    .count_o  ()
  );
  assign m_o = out.tok;
  assign m_fresh_o = out.fresh;
  assign m_final_o = out.final_;
  assign m_line_o = out.number;

  via_fifo #(
    .T    (tag_t),
    .Depth(Lines)
  ) u_tags (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (in_tag),
    .s_valid_i(go && in.fresh),
    .s_ready_o(),
    .m_o      (first),
    .m_valid_o(tag_valid_o),
    .m_ready_i(line_pop_i),
    .count_o  (tags)
  );
  // For a whole burst, and for the line that is entered in this cycle.
  always_ff @(posedge clk_i) tag_room <= rst_ni && tags <= ($clog2(Lines + 1))'(Lines - 5);
  assign tag_queue_o = first.queue;
  assign tag_epoch_f_o = first.epoch_f;
  assign tag_epoch_w_o = first.epoch_w;
  assign tag_safe_o = first.safe;
  assign tag_line_o = first.number;

  // Room is there: a tag is held for each line. One that is waited for passes by in the cycle in which it comes.
  logic unused_ready, kept;
  assign line_in = '{err: m_r_i.resp != RespOkay, data: m_r_i.data};
  via_fifo #(
    .T    (line_t),
    .Depth(Lines)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (line_in),
    .s_valid_i(m_r_valid_i && (kept || !line_pop_i)),
    .s_ready_o(unused_ready),
    .m_o      (line),
    .m_valid_o(kept),
    .m_ready_i(line_pop_i),
    .count_o  ()
  );
  assign line_valid_o = kept || m_r_valid_i;
  assign line_err_o = kept ? line.err : line_in.err;
  assign line_o = kept ? line.data : line_in.data;

  assign still_o = ~|{go, cnt_o, m_r_valid_i, m_ar_valid_o && m_ar_ready_i, m_valid_o && m_ready_i, line_pop_i};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!m_r_valid_i || unused_ready)
      else $error("line without a place");
      assert (!line_pop_i || line_valid_o)
      else $error("pop without a line");
    end
  end
`endif

endmodule
