// SPDX-License-Identifier: Apache-2.0
//
// Score of the global alignment (Needleman and Wunsch, 1970) of two sequences of 64 bases: 1 for a match, -1 for a mismatch or a gap.
//
//   a, b -> diagonal 0 -> diagonal 1 -> ... -> diagonal 126 -> score
//
// Throughput: one pair a cycle. Latency: 128 cycles. Order: kept; nothing is held. Each stage has the cells of one diagonal of the grid of 64
// by 64 cells, one in each row. A cell keeps differences of scores, from -1 to 2, as numbers from 0 to 3: h to the cell at its left, v to the
// one above. With those of its neighbours, above and at its left,
//
//   d = max(match ? 2 : 0, h - 1, v - 1)      h' = d + 1 - v      v' = d + 1 - h
//
// The score is -128 and the sum of h in the last row. Bits of the same weight of all rows are one vector.

module nw_grid (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [127:0] a_i,      // 64 bases of two bits, the first lowest
  input  logic [127:0] b_i,
  input  logic         valid_i,
  output logic [  7:0] score_o,  // signed, -64 to 64
  output logic         valid_o
);

  localparam int unsigned Bases = 64;
  localparam int unsigned Diagonals = 2 * Bases - 1;

  typedef logic [Bases-1:0] row_t;
  typedef struct packed {
    row_t a1;
    row_t a0;
    row_t b1;  // the last base lowest
    row_t b0;
    row_t h1;
    row_t h0;
    row_t v1;
    row_t v0;
    logic [7:0] total;
  } diagonal_t;

  diagonal_t begin_q;
  diagonal_t stage_q[Diagonals];
  logic [Diagonals-1:0] valid_q;
  logic begin_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {valid_q, begin_valid_q} <= '0;
    else {valid_q, begin_valid_q} <= {valid_q[Diagonals-2:0], begin_valid_q, valid_i};
    if (valid_i) begin
      // At the edges of the grid all differences are -1.
      begin_q <= '0;
      begin_q.total <= -8'd128;
      for (int unsigned i = 0; i < Bases; i++) begin
        begin_q.a0[i] <= a_i[2*i];
        begin_q.a1[i] <= a_i[2*i+1];
        begin_q.b0[Bases-1-i] <= b_i[2*i];
        begin_q.b1[Bases-1-i] <= b_i[2*i+1];
      end
    end
  end

  for (genvar t = 0; t < int'(Diagonals); t++) begin : gen_diagonal
    diagonal_t from;
    logic from_valid;
    if (t == 0) begin : gen_first
      assign from = begin_q;
      assign from_valid = begin_valid_q;
    end else begin : gen_next
      assign from = stage_q[t-1];
      assign from_valid = valid_q[t-1];
    end

    // Row i has the cell of column t - i; rows without one on this diagonal keep the difference of the edge.
    localparam row_t Rows = t < int'(Bases) ? (row_t'(1) << t << 1) - row_t'(1) : '1;

    always_ff @(posedge clk_i) begin
      if (from_valid) begin
        diagonal_t to;
        row_t match, h1, h0, d2, d1, e1, e0;
        to = from;
        if (t < int'(Bases)) match = ~((from.a1 ^ from.b1 >> (Bases - 1 - t)) | (from.a0 ^ from.b0 >> (Bases - 1 - t)));
        else match = ~((from.a1 ^ from.b1 << (t - Bases + 1)) | (from.a0 ^ from.b0 << (t - Bases + 1)));
        h1 = from.h1 << 1;
        h0 = from.h0 << 1;
        d2 = match | h1 & h0 | from.v1 & from.v0;
        d1 = ~d2 & (h1 & ~h0 | from.v1 & ~from.v0);
        // d + 1
        e1 = d2 | d1;
        e0 = ~d1;
        to.v0 = (e0 ^ h0) & Rows;
        to.v1 = (e1 ^ h1 ^ ~e0 & h0) & Rows;
        to.h0 = e0 ^ from.v0;
        to.h1 = e1 ^ from.v1 ^ ~e0 & from.v0;
        if (t >= int'(Bases) - 1) to.total = from.total + 8'({to.h1[Bases-1], to.h0[Bases-1]});
        stage_q[t] <= to;
      end
    end
  end

  assign valid_o = valid_q[Diagonals-1];
  assign score_o = stage_q[Diagonals-1].total;

endmodule
