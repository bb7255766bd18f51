// SPDX-License-Identifier: Apache-2.0
//
// Reads the 64-byte lines of descriptors that tokens name; tokens that follow one another in a line share its read.
//
// Throughput: one token a cycle, 32 lines in flight. Latency: one cycle to the address, none from the line. Ordering: tokens and lines leave in order. A token
// with `fresh` comes with a new line; the walker pops line and token apart, so it sees the line behind the current one early.

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

  logic fresh, take, ask, ar_room, tag_room, tok_room;
  logic [63:0] desc;
  logic [ 9:0] at;
  logic [ 7:0] low;
  logic [51:0] high;
  tag_t tag, last_q, first;
  axi_ax_t ar;
  entry_t in, out;
  line_t line_in, line;

  assign desc = cfg_i[QW'(s_i.queue)].desc;
  assign at = 10'(s_i.index) + 10'(desc[5:4]);
  assign tag = '{queue: s_i.queue, epoch_f: s_i.epoch_f, epoch_w: s_i.epoch_w, safe: s_i.safe, number: at[8:2]};
  assign fresh = s_i.err == VqErrNone && !(s_i.share && tag == last_q);
  // Room for all that a token may need, so that nothing waits for what it names.
  assign s_ready_o = tok_room && ar_room && tag_room;
  assign take = s_valid_i && s_ready_o;
  assign ask = take && fresh;
  always_ff @(posedge clk_i) cnt_o <= ask && rst_ni;

  // A token that is in error may stand between two that share a line.
  always_ff @(posedge clk_i) if (ask) last_q <= tag;

  // The table takes 65 lines at most, so its pages are two; both are there when it is known which.
  assign low  = 8'(desc[11:6]) + at[9:2];
  assign high = desc[63:12] + 52'd1;
  always_comb begin
    ar       = '0;
    ar.burst = 2'b01;
    ar.size  = 3'(BeatLog2);
    ar.addr  = {low[6] ? high : desc[63:12], low[5:0], 6'd0};
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

  assign in = '{fresh: fresh, number: at[8:2], tok: s_i};
  via_fifo #(
    .T    (entry_t),
    .Depth(Tokens)
  ) u_tokens (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (in),
    .s_valid_i(take),
    .s_ready_o(tok_room),
    .m_o      (out),
    .m_valid_o,
    .m_ready_i,
    .count_o  ()
  );
  assign m_o = out.tok;
  assign m_fresh_o = out.fresh;
  assign m_line_o = out.number;

  via_fifo #(
    .T    (tag_t),
    .Depth(Lines)
  ) u_tags (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (tag),
    .s_valid_i(ask),
    .s_ready_o(tag_room),
    .m_o      (first),
    .m_valid_o(tag_valid_o),
    .m_ready_i(line_pop_i),
    .count_o  ()
  );
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

  assign still_o = ~|{take, cnt_o, m_r_valid_i, m_ar_valid_o && m_ar_ready_i, m_valid_o && m_ready_i, line_pop_i};

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
