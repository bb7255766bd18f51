// SPDX-License-Identifier: Apache-2.0
//
// PageRank: `iterations` times, the rank of each vertex becomes the sum over the edges into it of the rank of their source times the weight of
// the edge, damped, and its share of what is spread over all.
//
//   edges ----> address of a rank -> rank * weight --+
//   vertices ----------------------------------------+-> sum -> damping -> ranks of the next iteration
//
// The memory: `vertices` of 16 bytes (share of 2^-32, degree in, bit 0 of the last word: no edge out), `edges` of 8 bytes (source, weight of
// 2^-31) sorted by the vertex they lead to, ranks of 2^-32 and 8 bytes, and room for as many, each from a multiple of 64 on. The ranks
// before odd iterations are the first ones, before even ones the second.
// Throughput: the read channel is busy: an edge is a line of ranks and an eighth of a line, a vertex a quarter of a line; at most an edge
// a cycle. Between iterations it is idle until all ranks are written and 70 cycles more. Latency: that of the memory. Misuse: wrong
// parameters end the run at once with one error. What is wrong in the memory counts as errors and ends nothing early: edges from vertices
// that do not exist are without effect, those that are missing or left over too, and ranks that could not be read are zero.

module pgrnk_app
  import via_pkg::*;
#(
  parameter int unsigned Fetches = 128  // ranks in flight, a power of two
) (
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
  input  logic    [63:0] base_i,          // address of the memory
  input  logic    [63:0] bytes_i,         // its size
  input  logic    [31:0] vertices_i,
  input  logic    [31:0] edges_i,
  input  logic    [31:0] iterations_i,
  input  logic    [31:0] damping_i,       // 2^-31
  input  logic    [63:0] mass_i,          // sum of the first ranks of vertices without edges out of them, 2^-32
  input  logic           start_i,         // one-cycle pulse; the inputs above are sampled with it
  output logic           done_o,          // level: no run is in progress
  output logic    [63:0] mass_after_o,    // the same sum of the last ranks
  output logic    [31:0] errors_o,
  output logic    [63:0] cycles_o,        // duration of the last run
  output logic           busy_o,          // level: a run is in progress
  output logic           irq_o            // one-cycle pulse: the run has ended
);

  localparam bit FetchesOk = param_pow2("pgrnk_app Fetches", Fetches, 16, 1024);

  localparam int unsigned Vertices = 0;  // readers
  localparam int unsigned Edges = 1;
  localparam int unsigned Ranks = 2;

  typedef enum logic [1:0] {
    Base,    // the part of all vertices is computed
    Begin,
    Stream,
    Settle   // everything is written: one cycle, for errors_o of the last response
  } state_e;

  // ---------------------------------------------------------------- parameters, sampled at the start
  logic [63:0] base_q, bytes_q, mass_q;
  logic [31:0] vertices_q, edges_q, iterations_q, damping_q;
  logic [33:0] vertex_lines_q, edge_lines_q, rank_lines_q, to_ranks_q, to_second_q, need_q;
  logic sample, go, bad, run, finish;
  logic [2:0] setup_q;

  always_ff @(posedge clk_i) begin
    setup_q <= {setup_q[1:0], sample};
    if (sample) begin
      base_q       <= base_i;
      bytes_q      <= bytes_i;
      vertices_q   <= vertices_i;
      edges_q      <= edges_i;
      iterations_q <= iterations_i;
      damping_q    <= damping_i;
    end
    if (setup_q[0]) begin
      vertex_lines_q <= (34'(vertices_q) + 34'd3) >> 2;
      edge_lines_q   <= (34'(edges_q) + 34'd7) >> 3;
      rank_lines_q   <= (34'(vertices_q) + 34'd7) >> 3;
    end
    if (setup_q[1]) to_ranks_q <= vertex_lines_q + edge_lines_q;
    if (setup_q[2]) to_second_q <= to_ranks_q + rank_lines_q;
    need_q <= to_second_q + rank_lines_q;
  end
  assign bad = base_q[5:0] != '0 || vertices_q == '0 || iterations_q == '0 || damping_q > 32'h8000_0000 || bytes_q[63:6] < 58'(need_q);

  // ---------------------------------------------------------------- iterations
  state_e state_q;
  logic [31:0] left_q;
  logic second_q;  // the ranks that are read
  logic begin_base_q, based, streamed, begin_stream;
  logic [63:0] rank_read_q, rank_write_q, mass;
  logic [31:0] base;

  assign begin_stream = state_q == Begin;
  assign finish = state_q == Settle && left_q == '0;

  always_ff @(posedge clk_i) begin
    begin_base_q <= go || state_q == Settle && left_q != '0;
    if (go) state_q <= Base;
    else begin
      unique case (state_q)
        Base:   if (based) state_q <= Begin;
        Begin:  state_q <= Stream;
        Stream: if (streamed) state_q <= Settle;
        Settle: if (left_q != '0) state_q <= Base;
      endcase
    end
    if (go) left_q <= iterations_q;
    else if (begin_stream) left_q <= left_q - 1'b1;
    if (go) second_q <= 1'b0;
    else if (state_q == Stream && streamed) second_q <= !second_q;
    if (sample) mass_q <= mass_i;
    else if (state_q == Stream && streamed) mass_q <= mass;
    if (state_q == Base) begin
      rank_read_q  <= base_q + {24'b0, second_q ? to_second_q : to_ranks_q, 6'b0};
      rank_write_q <= base_q + {24'b0, second_q ? to_ranks_q : to_second_q, 6'b0};
    end
  end
  assign mass_after_o = mass_q;
  assign busy_o = run;

  pgrnk_base u_base (
    .clk_i,
    .rst_ni,
    .start_i   (begin_base_q),
    .mass_i    (mass_q),
    .vertices_i(vertices_q),
    .damping_i (damping_q),
    .base_o    (base),
    .valid_o   (based)
  );

  // ---------------------------------------------------------------- memory
  logic [63:0] rd_addr[3];
  logic [ 5:0] rd_len [3];
  logic [2:0] rd_valid, rd_ready, line_valid;
  logic [511:0] line, wr_line, vertex_line, edge_line;
  logic [63:0] wr_addr, wr_strb;
  logic line_error, wr_valid, wr_ready, wr_idle;
  logic [1:0] mem_errors;
  logic vertex_valid, vertex_ready, vertex_idle, edge_valid, edge_ready, edge_idle;

  mem_lines #(
    .Readers(3)
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
    .wr_addr_i   (wr_addr),
    .wr_line_i   (wr_line),
    .wr_strb_i   (wr_strb),
    .wr_valid_i  (wr_valid),
    .wr_ready_o  (wr_ready),
    .wr_idle_o   (wr_idle),
    .errors_o    (mem_errors)
  );

  // Vertices are read in short bursts, so that they do not hold up the ranks of the edges into those before them.
  mem_seq #(
    .Depth (64),
    .Burst (4),
    .CountW(34)
  ) u_vertex_lines (
    .clk_i,
    .rst_ni,
    .start_i     (begin_stream),
    .addr_i      (base_q),
    .lines_i     (vertex_lines_q),
    .rd_addr_o   (rd_addr[Vertices]),
    .rd_len_o    (rd_len[Vertices]),
    .rd_valid_o  (rd_valid[Vertices]),
    .rd_ready_i  (rd_ready[Vertices]),
    .line_i      (line),
    .line_valid_i(line_valid[Vertices]),
    .m_o         (vertex_line),
    .m_valid_o   (vertex_valid),
    .m_ready_i   (vertex_ready),
    .idle_o      (vertex_idle)
  );

  mem_seq #(
    .Depth (64),
    .Burst (4),
    .CountW(34)
  ) u_edge_lines (
    .clk_i,
    .rst_ni,
    .start_i     (begin_stream),
    .addr_i      (base_q + {24'b0, vertex_lines_q, 6'b0}),
    .lines_i     (edge_lines_q),
    .rd_addr_o   (rd_addr[Edges]),
    .rd_len_o    (rd_len[Edges]),
    .rd_valid_o  (rd_valid[Edges]),
    .rd_ready_i  (rd_ready[Edges]),
    .line_i      (line),
    .line_valid_i(line_valid[Edges]),
    .m_o         (edge_line),
    .m_valid_o   (edge_valid),
    .m_ready_i   (edge_ready),
    .idle_o      (edge_idle)
  );

  // ---------------------------------------------------------------- edges and vertices
  logic [63:0] product;
  logic product_valid, product_ready, edge_error, vertex_error, vertices_done;

  assign rd_len[Ranks] = '0;

  pgrnk_edges #(
    .Fetches(Fetches)
  ) u_edges (
    .clk_i,
    .rst_ni,
    .start_i     (begin_stream),
    .edges_i     (edges_q),
    .vertices_i  (vertices_q),
    .ranks_i     (rank_read_q),
    .s_i         (edge_line),
    .s_valid_i   (edge_valid),
    .s_ready_o   (edge_ready),
    .rd_addr_o   (rd_addr[Ranks]),
    .rd_valid_o  (rd_valid[Ranks]),
    .rd_ready_i  (rd_ready[Ranks]),
    .line_i      (line),
    .line_error_i(line_error),
    .line_valid_i(line_valid[Ranks]),
    .product_o   (product),
    .valid_o     (product_valid),
    .ready_i     (product_ready),
    .error_o     (edge_error)
  );

  pgrnk_vertices u_vertices (
    .clk_i,
    .rst_ni,
    .start_i        (begin_stream),
    .vertices_i     (vertices_q),
    .edges_i        (edges_q),
    .ranks_i        (rank_write_q),
    .damping_i      (damping_q),
    .base_i         (base),
    .s_i            (vertex_line),
    .s_valid_i      (vertex_valid),
    .s_ready_o      (vertex_ready),
    .product_i      (product),
    .product_valid_i(product_valid),
    .product_ready_o(product_ready),
    .wr_addr_o      (wr_addr),
    .wr_line_o      (wr_line),
    .wr_strb_o      (wr_strb),
    .wr_valid_o     (wr_valid),
    .wr_ready_i     (wr_ready),
    .mass_o         (mass),
    .error_o        (vertex_error),
    .done_o         (vertices_done)
  );
  assign streamed = vertices_done && vertex_idle && edge_idle && wr_idle;

  mem_run #(
    .Setup(5)
  ) u_run (
    .clk_i,
    .rst_ni,
    .start_i,
    .sample_o(sample),
    .bad_i   (bad),
    .go_o    (go),
    .run_o   (run),
    .finish_i(finish),
    .errors_i(3'(mem_errors) + 3'(edge_error) + 3'(vertex_error)),
    .done_o,
    .irq_o,
    .errors_o,
    .cycles_o
  );

endmodule
