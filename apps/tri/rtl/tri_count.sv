// SPDX-License-Identifier: Apache-2.0
//
// Counts what two sorted lists have in common, a line of one with two lines of the other at a time.
//
//   lists of vertices -> ring of pairs of lines -> pair --+
//   lists of their neighbours -> FIFO -> line ------------+-> equal? -> number of entries
//
// Behind a pair and a line whose ids are compared, the one that ends lower is left. Throughput: a line in a cycle; a pair that is left for the
// next one takes another one, and two if the one behind it is left at once. Latency: six cycles. Order: kept.
// Misuse: entries of lists that are not sorted may be missed.

module tri_count
  import tri_pkg::*;
#(
  parameter  int unsigned Pairs = 256,
  parameter  int unsigned Depth = 256,           // lines in flight
  localparam int unsigned PairW = $clog2(Pairs)
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               clear_i,       // one-cycle pulse
  input  logic               pair_we_i,
  input  logic  [ PairW-1:0] pair_at_i,
  input  pair_t              pair_i,
  input  logic  [ PairW-1:0] list_at_i,     // with list_valid_i: a list is whole
  input  logic  [LinesW-1:0] list_pairs_i,
  input  logic               list_valid_i,
  output logic               free_o,        // a pulse: the oldest list is done, and its pairs are free
  output logic  [LinesW-1:0] free_pairs_o,
  input  job_t               job_i,
  input  logic               job_valid_i,
  output logic               job_ready_o,
  input  ids_t               ids_i,
  input  logic               ids_valid_i,
  output logic               taken_o,       // a pulse: one line of them has left the FIFO
  output logic  [      63:0] count_o
);

  localparam bit PairsOk = via_pkg::param_pow2("tri_count Pairs", Pairs, 256, 1 << 14);
  localparam bit DepthOk = via_pkg::param_in("tri_count Depth", Depth, 128, 1 << 12);

  typedef struct packed {
    logic [PairW-1:0]  at;
    logic [LinesW-1:0] pairs;
  } list_t;

  // ---------------------------------------------------------------- lists of neighbours
  ids_t head, ids;
  logic head_valid, head_ready, ids_valid, ids_pop;

  via_fifo #(
    .T    (ids_t),
    .Depth(Depth),
    .Ram  (1'b1)
  ) u_ids (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (ids_i),
    .s_valid_i(ids_valid_i),
    .s_ready_o(),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(head_ready),
    .count_o  ()
  );

  via_slice #(
    .T(ids_t)
  ) u_slice (
    .clk_i,
    .rst_ni,
    .s_i      (head),
    .s_valid_i(head_valid),
    .s_ready_o(head_ready),
    .m_o      (ids),
    .m_valid_o(ids_valid),
    .m_ready_i(ids_pop)
  );

  // ---------------------------------------------------------------- lists of vertices
  list_t queued, next_q, list_q;
  pair_t read, next_pair_q, home_q, pair_q;
  logic queued_valid, queued_ready, next_valid_q, next_loaded_q, valid_q;
  logic ram_re, re_next, re_ahead, next_read_q, switch;
  logic [PairW-1:0] ahead_at_q, ram_at;
  logic ahead_q;  // the memory shows the pair behind pair_q
  logic [LinesW-1:0] behind_q;  // pairs behind pair_q
  logic job_pop, job_end, list_end, advance, less_pairs;

  via_fifo #(
    .T    (list_t),
    .Depth(Pairs)
  ) u_lists (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{at: list_at_i, pairs: list_pairs_i}),
    .s_valid_i(list_valid_i),
    .s_ready_o(),
    .m_o      (queued),
    .m_valid_o(queued_valid),
    .m_ready_i(queued_ready),
    .count_o  ()
  );

  // The pair that the current list needs next goes first.
  assign less_pairs = behind_q == '0;
  assign re_ahead = valid_q && !ahead_q && !less_pairs;
  assign re_next = next_valid_q && !next_loaded_q && !next_read_q && !re_ahead;
  assign ram_re = re_ahead || re_next;
  assign ram_at = re_ahead ? ahead_at_q : next_q.at;

  via_ram_sdp #(
    .Width($bits(pair_t)),
    .Depth(Pairs)
  ) u_pairs (
    .clk_i,
    .we_i   (pair_we_i),
    .waddr_i(pair_at_i),
    .wdata_i(pair_i),
    .re_i   (ram_re),
    .raddr_i(ram_at),
    .rdata_o(read)
  );

  assign switch = next_loaded_q && (!valid_q || list_end);
  assign queued_ready = !next_valid_q || switch;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_valid_q  <= 1'b0;
      next_loaded_q <= 1'b0;
      next_read_q   <= 1'b0;
      valid_q       <= 1'b0;
    end else begin
      if (queued_ready) next_valid_q <= queued_valid;
      next_read_q <= re_next;
      if (switch) next_loaded_q <= 1'b0;
      else if (next_read_q) next_loaded_q <= 1'b1;
      if (switch) valid_q <= 1'b1;
      else if (list_end) valid_q <= 1'b0;
    end
    if (queued_ready) next_q <= queued;
    if (next_read_q) next_pair_q <= read;
    if (switch) begin
      list_q <= next_q;
      home_q <= next_pair_q;
    end
  end

  // ---------------------------------------------------------------- a line and a pair
  logic job_q, lower, count;
  logic [LinesW-1:0] left_q;
  logic first_q, last_q, none_q;  // the first line of the list comes; of the job: last, without lines

  assign lower = pair_q[15] < ids[7] && !less_pairs;
  assign advance = job_q && ids_valid && lower && ahead_q && !none_q;
  assign ids_pop = job_q && ids_valid && !lower && !none_q;
  assign count = advance || ids_pop;
  assign job_end = ids_pop && left_q == LinesW'(1) || job_q && none_q;
  assign list_end = job_end && last_q;
  // The next job may be the first of the next list.
  assign job_ready_o = job_end ? !last_q || next_loaded_q : valid_q && !job_q;
  assign job_pop = job_valid_i && job_ready_o;
  assign taken_o = head_valid && head_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      job_q   <= 1'b0;
      ahead_q <= 1'b0;
      free_o  <= 1'b0;
    end else begin
      if (job_pop) job_q <= 1'b1;
      else if (job_end) job_q <= 1'b0;
      // The second pair stays where it is from one job to the next.
      if (switch || re_next || advance) ahead_q <= 1'b0;
      else if (job_end && behind_q != list_q.pairs - 1'b1) ahead_q <= 1'b0;
      else if (re_ahead) ahead_q <= 1'b1;
      free_o <= list_end;
    end
    free_pairs_o <= list_q.pairs;
    if (job_pop) begin
      left_q  <= job_i.lines;
      none_q  <= job_i.lines == '0;
      last_q  <= job_i.last;
      first_q <= 1'b1;
    end else if (ids_pop) begin
      left_q  <= left_q - 1'b1;
      first_q <= 1'b0;
    end
    if (switch) begin
      pair_q     <= next_pair_q;
      behind_q   <= next_q.pairs - 1'b1;
      ahead_at_q <= next_q.at + 1'b1;
    end else if (job_end) begin
      pair_q     <= home_q;
      behind_q   <= list_q.pairs - 1'b1;
      ahead_at_q <= list_q.at + 1'b1;
    end else if (advance) begin
      pair_q     <= read;
      behind_q   <= behind_q - 1'b1;
      ahead_at_q <= ahead_at_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------- number of entries
  logic [7:0] equal_q;
  logic [3:0] number_q;
  logic count_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) count_q <= 1'b0;
    else count_q <= count;
    for (int unsigned i = 0; i < 8; i++) begin
      logic equal;
      equal = 1'b0;
      for (int unsigned k = 0; k < 16; k++) equal |= ids[i] == pair_q[k];
      equal_q[i] <= equal && ids[i] != '1 && !(i == 0 && first_q);
    end
    number_q <= count_q ? 4'($countones(equal_q)) : '0;
    if (clear_i) count_o <= '0;
    else count_o <= count_o + 64'(number_q);
  end

endmodule
