// SPDX-License-Identifier: Apache-2.0
//
// The edges of one iteration: reads the rank of each one's source and multiplies it by the weight.
//
//   lines of 8 edges -> edge -> address of a line of ranks -> reader -> rank * weight -> FIFO -> out
//                        +-> FIFO: word of the line, weight ----------------+
//
// Throughput: an edge a cycle, each reading a line; up to Fetches of them in flight or not yet taken. Latency: eleven cycles besides that of the
// memory. Order: that of the edges. Misuse: an edge from a vertex that does not exist counts as an error, and its product is zero; so is
// that of a rank that cannot be read.

module pgrnk_edges #(
  parameter int unsigned Fetches = 128  // a power of two
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         start_i,       // one-cycle pulse: an iteration begins
  input  logic [ 31:0] edges_i,       // with start_i
  input  logic [ 31:0] vertices_i,    // constant in a run
  input  logic [ 63:0] ranks_i,       // constant in an iteration: address of the ranks
  input  logic [511:0] s_i,           // lines of edges
  input  logic         s_valid_i,
  output logic         s_ready_o,
  output logic [ 63:0] rd_addr_o,     // the reader of ranks: single lines
  output logic         rd_valid_o,
  input  logic         rd_ready_i,
  input  logic [511:0] line_i,
  input  logic         line_error_i,
  input  logic         line_valid_i,
  output logic [ 63:0] product_o,
  output logic         valid_o,
  input  logic         ready_i,
  output logic         error_o        // one-cycle pulse: an edge from nowhere
);

  localparam bit FetchesOk = via_pkg::param_pow2("pgrnk_edges Fetches", Fetches, 16, 1024);

  localparam int unsigned CountW = $clog2(Fetches + 1);

  typedef struct packed {
    logic [31:0] weight;
    logic [31:0] source;
  } edge_t;

  typedef struct packed {
    logic [2:0]  word;
    logic [31:0] weight;
  } fetch_t;

  // ---------------------------------------------------------------- edges
  logic [31:0] left_q;
  logic [2:0] at_q;
  logic [CountW-1:0] free_q;
  logic take, move, pop, more_q;
  edge_t edge_q, real_q;  // as read; with a source that exists
  logic edge_valid_q, real_valid_q, rd_valid_q, none;
  logic [63:0] rd_addr_q;

  assign move = !rd_valid_q || rd_ready_i;
  assign take = s_valid_i && more_q && free_q != '0 && (!edge_valid_q || move);
  assign s_ready_o = take && (at_q == '1 || left_q == 32'd1);
  assign pop = valid_o && ready_i;
  assign none = edge_q.source >= vertices_i;
  assign rd_addr_o = rd_addr_q;
  assign rd_valid_o = rd_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      more_q       <= 1'b0;
      free_q       <= CountW'(Fetches);
      edge_valid_q <= 1'b0;
      real_valid_q <= 1'b0;
      rd_valid_q   <= 1'b0;
      error_o      <= 1'b0;
    end else begin
      if (start_i) more_q <= edges_i != '0;
      else if (take) more_q <= left_q != 32'd1;
      if (take != pop) free_q <= take ? free_q - 1'b1 : free_q + 1'b1;
      if (take) edge_valid_q <= 1'b1;
      else if (move) edge_valid_q <= 1'b0;
      if (move) {rd_valid_q, real_valid_q} <= {real_valid_q, edge_valid_q};
      error_o <= move && edge_valid_q && none;
    end
    if (start_i) begin
      left_q <= edges_i;
      at_q   <= '0;
    end else if (take) begin
      left_q <= left_q - 1'b1;
      at_q   <= at_q + 1'b1;
    end
    if (take) edge_q <= s_i[64*at_q+:64];
    // An edge from nowhere reads the first rank, so that all take the same way.
    if (move) begin
      real_q    <= '{source: none ? '0 : edge_q.source, weight: none ? '0 : edge_q.weight};
      rd_addr_q <= ranks_i + {29'b0, real_q.source[31:3], 6'b0};
    end
  end

  // ---------------------------------------------------------------- ranks
  fetch_t next;
  logic   mul_valid_q;
  logic [63:0] rank_q, product;
  logic [31:0] weight_q;
  logic product_valid;
  logic [63:0] head;
  logic head_valid, head_ready;

  via_fifo #(
    .T    (fetch_t),
    .Depth(Fetches)
  ) u_fetches (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{word: real_q.source[2:0], weight: real_q.weight}),
    .s_valid_i(real_valid_q && move),
    .s_ready_o(),
    .m_o      (next),
    .m_valid_o(),
    .m_ready_i(line_valid_i),
    .count_o  ()
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) mul_valid_q <= 1'b0;
    else mul_valid_q <= line_valid_i;
    if (line_valid_i) begin
      rank_q   <= line_i[64*next.word+:64];
      weight_q <= line_error_i ? '0 : next.weight;
    end
  end

  pgrnk_mul u_mul (
    .clk_i,
    .rst_ni,
    .a_i    (rank_q),
    .b_i    (weight_q),
    .valid_i(mul_valid_q),
    .p_o    (product),
    .valid_o(product_valid)
  );

  via_fifo #(
    .T    (logic [63:0]),
    .Depth(Fetches)
  ) u_products (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (product),
    .s_valid_i(product_valid),
    .s_ready_o(),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(head_ready),
    .count_o  ()
  );

  // The sum begins at a register.
  via_slice #(
    .T(logic [63:0])
  ) u_slice (
    .clk_i,
    .rst_ni,
    .s_i      (head),
    .s_valid_i(head_valid),
    .s_ready_o(head_ready),
    .m_o      (product_o),
    .m_valid_o(valid_o),
    .m_ready_i(ready_i)
  );

endmodule
