// SPDX-License-Identifier: Apache-2.0
//
// Requests of one manager to one target of the crossbar, cut into pieces, and the credit for their beats.
//
// A piece is offered when the manager's buffer for this target has room for all of its response (reads), or holds its data (writes, `Ahead`),
// so a target never waits for a manager. While others request the target, pieces are short, so that a short request never waits for a long one
// of another manager; else a request is one piece, as memory is best at long ones.
// Both rules for credit are proved in formal/xbar_queue.
// Throughput: one piece a cycle. Latency: one cycle. Order: kept. Credit counts two cycles after `credit_i`. Outputs depend on registers only;
// `m_valid_o` is one sum behind them: it goes into a register slice at the target.

module via_xbar_queue
  import via_pkg::*;
#(
  parameter int unsigned Width = 48,  // bits of an address in beats
  parameter int unsigned Depth = 32,  // requests held, besides those that are offered
  parameter int unsigned Piece = 16,  // beats of a piece of a request that is cut, a power of two
  parameter int unsigned Most = 512,  // beats of the buffer, at least the longest request
  parameter int unsigned Start = Most,  // beats of credit after reset
  parameter bit Ahead = 1'b0  // credit for the first `Piece` + 1 beats is enough: the rest follows without a pause
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [Width-1:0] s_i,        // address in beats
  input  logic [      7:0] s_len_i,    // beats - 1
  input  logic             s_valid_i,
  output logic             s_ready_o,
  output logic [Width-1:0] m_o,        // address of the piece, in beats
  output logic [      7:0] m_len_o,    // its beats - 1
  output logic             m_last_o,   // it is the last one of its request
  output logic             m_valid_o,  // there is credit for it
  input  logic             m_ready_i,
  input  logic             cut_i,      // level: cut requests into pieces; otherwise what is left of one is a piece
  input  logic             credit_i,   // pulse: one beat more
  output logic             still_o,    // level: nothing moves, unless a request enters
  output logic             empty_o     // level: nothing is held, and the credit does not change
);

  localparam bit WidthOk = param_in("via_xbar_queue Width", Width, 1, 64);
  localparam bit DepthOk = param_in("via_xbar_queue Depth", Depth, 1, 1024);
  localparam bit PieceOk = param_pow2("via_xbar_queue Piece", Piece, 1, 256);
  localparam bit MostOk = param_in("via_xbar_queue Most", Most, MaxBurstBeats, 65536);
  localparam bit StartOk = param_in("via_xbar_queue Start", Start, 0, Most);

  localparam int unsigned PieceLog2 = $clog2(Piece);
  localparam int unsigned CreditW = $clog2(Most + 1) + 1;

  // A burst does not cross 4 KiB: beyond these bits its addresses are the same.
  localparam int unsigned LowW = (PageLog2 - BeatLog2 < Width) ? PageLog2 - BeatLog2 : Width;

  typedef struct packed {
    logic             last;
    logic [7:0]       len;
    logic [Width-1:0] place;
  } piece_t;

  logic [Width-1:0] held;
  logic [7:0] held_len, left, rest_q;
  logic [7:0] need;  // beats - 1 of the next piece
  logic held_valid, full_q, more_q, have, go, paid, early_q, credit_late_q;
  logic s_over, held_over, rest_over_q, over, long;  // more than a piece
  piece_t piece_q;

  // ---------------------------------------------------------------- requests that wait
  // Of the request in work, `rest_q` (beats - 1, with `more_q`) is to be cut. An empty queue is passed by.
  assign go = !full_q || paid && m_ready_i;
  assign have = more_q || held_valid || s_valid_i;
  assign left = more_q ? rest_q : held_valid ? held_len : s_len_i;
  // Noted with each length, beside its choice, not behind it.
  assign s_over = 9'(s_len_i) >> PieceLog2 != '0;
  assign over = more_q ? rest_over_q : held_valid ? held_over : s_over;
  assign long = cut_i && over;
  // Piece - 1 if it is long, else all that is left, which has no higher bits if requests are cut.
  assign need = left & {8{!cut_i}} & ~8'(Piece - 1) | (left | {8{long}}) & 8'(Piece - 1);

  via_fifo #(
    .T    (logic [Width+8:0]),
    .Depth(Depth)
  ) u_held (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({s_over, s_len_i, s_i}),
    .s_valid_i(s_valid_i && s_ready_o && !(go && !more_q && !held_valid)),
    .s_ready_o(s_ready_o),
    .m_o      ({held_over, held_len, held}),
    .m_valid_o(held_valid),
    .m_ready_i(go && !more_q),
    .count_o  ()
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      full_q <= 1'b0;
      more_q <= 1'b0;
    end else if (go) begin
      full_q <= have;
      more_q <= have && long;
    end
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      rest_q       <= left - 8'(Piece);
      rest_over_q  <= 9'(left) >> PieceLog2 + 1 != '0;
      early_q      <= Ahead && !cut_i && over;
      piece_q.last <= !long;
      piece_q.len  <= need;
      if (!more_q) piece_q.place <= held_valid ? held : s_i;
      else piece_q.place[LowW-1:0] <= piece_q.place[LowW-1:0] + LowW'(Piece);
    end
  end

  // ---------------------------------------------------------------- credit
  // Beats that no piece has claimed. Below zero the piece in work waits.
  logic signed [CreditW-1:0] credit_q, due;
  assign due  = credit_q + (early_q ? CreditW'(rest_q) : '0);
  assign paid = !due[CreditW-1];

  // A claim takes `need` + 1 beats: credit_q + ~need + credit_late_q. One sum serves with and without it, whose carry is the late beat.
  logic signed [CreditW-1:0] taken, credit;
  /* verilator lint_off UNUSEDSIGNAL */  // the lowest bit of the sum: only its carry matters
  logic carried;
  /* verilator lint_on UNUSEDSIGNAL */
  assign taken = (go && have) ? ~CreditW'(need) : '0;
  assign {credit, carried} = {credit_q, 1'b1} + {taken, credit_late_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      credit_q      <= CreditW'(Start);
      credit_late_q <= 1'b0;
    end else begin
      credit_q      <= credit;
      credit_late_q <= credit_i;
    end
  end

  assign m_valid_o = full_q && paid;
  assign m_o       = piece_q.place;
  assign m_len_o   = piece_q.len;
  assign m_last_o  = piece_q.last;
  assign empty_o   = !full_q && !credit_late_q;
  assign still_o   = !(go && (full_q || more_q || held_valid)) && !credit_late_q;

endmodule
