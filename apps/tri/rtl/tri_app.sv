// SPDX-License-Identifier: Apache-2.0
//
// Counts the triangles of a graph: for each edge from u to v, the vertices that both have an edge to.
//
//   graph, line by line -> lists -> ring ----------------------------+
//                            +-> neighbours -> their lists -> FIFO --+-> entries in common -> triangles
//
// The memory is the graph: a list of `entry_t` (tri_pkg) for each vertex with an edge, from a line of 64 bytes on, sorted by id.
// Throughput: the read channel is busy, with all lists in turn and the list of the neighbour for each edge, up to 320 lines in flight; see
// tri_count for lists of more than two lines. Latency: that of the memory. One port serves both streams of reads: what is read for an edge
// depends on the graph only, and is asked for long before it is used. Misuse: wrong parameters end the run at once with one error. Lists
// that are not where an entry says, or not in the graph, count as errors; of a graph with errors the number of triangles is wrong, but
// every line of the graph is read once, so the run ends.

module tri_app
  import via_pkg::*;
  import tri_pkg::PlaceW;
  import tri_pkg::LinesW;
(
  input  logic           clk_i,
  input  logic           rst_ni,
  output axi_ax_t        mem_ar_o,
  output logic           mem_ar_valid_o,
  input  logic           mem_ar_ready_i,
  input  axi_r_t         mem_r_i,
  input  logic           mem_r_valid_i,
  output logic           mem_r_ready_o,
  output axi_ax_t        mem_aw_o,
  output logic           mem_aw_valid_o,
  input  logic           mem_aw_ready_i,
  output axi_w_t         mem_w_o,
  output logic           mem_w_valid_o,
  input  logic           mem_w_ready_i,
  input  axi_b_t         mem_b_i,
  input  logic           mem_b_valid_i,
  output logic           mem_b_ready_o,
  input  logic    [63:0] base_i,          // address of the graph
  input  logic    [63:0] bytes_i,         // size of the memory
  input  logic    [31:0] lines_i,         // of the graph; zero: as many as the memory has
  input  logic           start_i,         // one-cycle pulse; the inputs above are sampled with it
  output logic           done_o,          // level: no run is in progress
  output logic    [63:0] triangles_o,
  output logic    [31:0] errors_o,
  output logic    [63:0] cycles_o,        // duration of the last run
  output logic           irq_o            // one-cycle pulse: the run has ended
);

  localparam int unsigned Pairs = 256;
  localparam int unsigned Depth = 256;
  localparam int unsigned PairW = $clog2(Pairs);
  localparam int unsigned Graph = 0;  // readers
  localparam int unsigned Lists = 1;

  // ---------------------------------------------------------------- parameters, sampled at the start
  logic [63:0] base_q, bytes_q;
  logic [31:0] given_q, lines_q;
  logic sample, go, bad, run, finish, setup_q;

  always_ff @(posedge clk_i) begin
    setup_q <= sample;
    if (sample) begin
      base_q  <= base_i;
      bytes_q <= bytes_i;
      given_q <= lines_i;
    end
    if (setup_q) lines_q <= given_q != '0 ? given_q : bytes_q[63:38] != '0 ? '1 : bytes_q[37:6];
  end
  assign bad = base_q[5:0] != '0 || lines_q == '0 || lines_q >> PlaceW != '0 || bytes_q[63:6] < 58'(lines_q);

  // ---------------------------------------------------------------- memory
  logic [63:0] rd_addr[2];
  logic [ 5:0] rd_len [2];
  logic [1:0] rd_valid, rd_ready, line_valid;
  logic [511:0] line, graph_head, graph_line;
  logic line_error;
  logic [1:0] mem_errors;
  logic graph_head_valid, graph_head_ready, graph_valid, graph_ready, graph_idle;

  mem_lines #(
    .Readers(2)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .mem_ar_o,
    .mem_ar_valid_o,
    .mem_ar_ready_i,
    .mem_r_i,
    .mem_r_valid_i,
    .mem_r_ready_o,
    .mem_aw_o,
    .mem_aw_valid_o,
    .mem_aw_ready_i,
    .mem_w_o,
    .mem_w_valid_o,
    .mem_w_ready_i,
    .mem_b_i,
    .mem_b_valid_i,
    .mem_b_ready_o,
    .rd_addr_i   (rd_addr),
    .rd_len_i    (rd_len),
    .rd_valid_i  (rd_valid),
    .rd_ready_o  (rd_ready),
    .line_o      (line),
    .line_error_o(line_error),
    .line_valid_o(line_valid),
    .wr_addr_i   ('0),
    .wr_line_i   ('0),
    .wr_strb_i   ('0),
    .wr_valid_i  (1'b0),
    .wr_ready_o  (),
    .wr_idle_o   (),
    .errors_o    (mem_errors)
  );

  mem_seq #(
    .Depth (64),
    .Burst (8),
    .CountW(32)
  ) u_graph (
    .clk_i,
    .rst_ni,
    .start_i     (go),
    .addr_i      (base_q),
    .lines_i     (lines_q),
    .rd_addr_o   (rd_addr[Graph]),
    .rd_len_o    (rd_len[Graph]),
    .rd_valid_o  (rd_valid[Graph]),
    .rd_ready_i  (rd_ready[Graph]),
    .line_i      (line),
    .line_valid_i(line_valid[Graph]),
    .m_o         (graph_head),
    .m_valid_o   (graph_head_valid),
    .m_ready_i   (graph_head_ready),
    .idle_o      (graph_idle)
  );

  via_slice #(
    .T(logic [511:0])
  ) u_slice (
    .clk_i,
    .rst_ni,
    .s_i      (graph_head),
    .s_valid_i(graph_head_valid),
    .s_ready_o(graph_head_ready),
    .m_o      (graph_line),
    .m_valid_o(graph_valid),
    .m_ready_i(graph_ready)
  );

  // ---------------------------------------------------------------- lists
  logic pair_we, list_valid, free, cut, cut_error, fetch_error;
  logic [PairW-1:0] pair_at, list_at;
  tri_pkg::pair_t pair;
  logic [LinesW-1:0] list_pairs, free_pairs;
  logic [511:0] list_line;
  logic list_first, list_last, list_line_valid, list_line_ready;
  tri_pkg::job_t job;
  logic job_valid, job_ready, taken;

  tri_lists #(
    .Pairs(Pairs)
  ) u_lists (
    .clk_i,
    .rst_ni,
    .start_i     (go),
    .lines_i     (lines_q[PlaceW-1:0]),
    .s_i         (graph_line),
    .s_valid_i   (graph_valid),
    .s_ready_o   (graph_ready),
    .pair_we_o   (pair_we),
    .pair_at_o   (pair_at),
    .pair_o      (pair),
    .list_at_o   (list_at),
    .list_pairs_o(list_pairs),
    .list_valid_o(list_valid),
    .free_i      (free),
    .free_pairs_i(free_pairs),
    .line_o      (list_line),
    .line_first_o(list_first),
    .line_last_o (list_last),
    .line_valid_o(list_line_valid),
    .line_ready_i(list_line_ready),
    .error_o     (cut_error),
    .done_o      (cut)
  );

  tri_fetch #(
    .Depth(Depth)
  ) u_fetch (
    .clk_i,
    .rst_ni,
    .base_i     (base_q[63:6]),
    .lines_i    (lines_q[PlaceW-1:0]),
    .s_i        (list_line),
    .s_first_i  (list_first),
    .s_last_i   (list_last),
    .s_valid_i  (list_line_valid),
    .s_ready_o  (list_line_ready),
    .rd_addr_o  (rd_addr[Lists]),
    .rd_len_o   (rd_len[Lists]),
    .rd_valid_o (rd_valid[Lists]),
    .rd_ready_i (rd_ready[Lists]),
    .taken_i    (taken),
    .job_o      (job),
    .job_valid_o(job_valid),
    .job_ready_i(job_ready),
    .error_o    (fetch_error)
  );

  tri_count #(
    .Pairs(Pairs),
    .Depth(Depth)
  ) u_count (
    .clk_i,
    .rst_ni,
    .clear_i     (sample),
    .pair_we_i   (pair_we),
    .pair_at_i   (pair_at),
    .pair_i      (pair),
    .list_at_i   (list_at),
    .list_pairs_i(list_pairs),
    .list_valid_i(list_valid),
    .free_o      (free),
    .free_pairs_o(free_pairs),
    .job_i       (job),
    .job_valid_i (job_valid),
    .job_ready_o (job_ready),
    // What could not be read has no entries.
    .ids_i       (tri_pkg::ids_of(line) | {$bits(tri_pkg::ids_t) {line_error}}),
    .ids_valid_i (line_valid[Lists]),
    .taken_o     (taken),
    .count_o     (triangles_o)
  );

  // ---------------------------------------------------------------- run
  // Every list that was cut ends with a job of its own, behind all others of it. Its entries are counted a few cycles later.
  logic [PairW:0] open_q;  // lists that were cut and are not done
  logic [3:0] settled_q;
  assign finish = settled_q[3];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= '0;
    else if (list_valid != free) open_q <= list_valid ? open_q + 1'b1 : open_q - 1'b1;
    settled_q <= run && cut && graph_idle && open_q == '0 && !list_valid ? {settled_q[2:0], 1'b1} : '0;
  end

  mem_run #(
    .Setup(2)
  ) u_run (
    .clk_i,
    .rst_ni,
    .start_i,
    .sample_o(sample),
    .bad_i   (bad),
    .go_o    (go),
    .run_o   (run),
    .finish_i(finish),
    .errors_i(3'(mem_errors) + 3'(cut_error) + 3'(fetch_error)),
    .done_o,
    .irq_o,
    .errors_o,
    .cycles_o
  );

endmodule
