// SPDX-License-Identifier: Apache-2.0
//
// The vertices of one iteration: the products of the edges into each are summed up and become its new rank.
//
//   lines of 4 vertices -> vertex, sum of its products -> * damping --+
//                             +-> share -----------------> * base ----+-> + -> lines of 8 ranks -> FIFO -> writer
//
// Throughput: a vertex in as many cycles as it has edges, at least one. Latency: that of its products and nine cycles. Order: kept.
// Misuse: if a vertex has more edges than there are left, those that are missing add nothing; edges behind those of the last vertex are
// dropped. Either is one error.

module pgrnk_vertices (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         start_i,          // one-cycle pulse: an iteration begins
  input  logic [ 31:0] vertices_i,       // with start_i, not zero
  input  logic [ 31:0] edges_i,          // with start_i
  input  logic [ 63:0] ranks_i,          // with start_i: address of the new ranks
  input  logic [ 31:0] damping_i,        // constant in a run, 2^-31
  input  logic [ 31:0] base_i,           // constant in an iteration, 2^-31: what every vertex of share 1 gets
  input  logic [511:0] s_i,              // lines of vertices
  input  logic         s_valid_i,
  output logic         s_ready_o,
  input  logic [ 63:0] product_i,
  input  logic         product_valid_i,
  output logic         product_ready_o,
  output logic [ 63:0] wr_addr_o,
  output logic [511:0] wr_line_o,
  output logic [ 63:0] wr_strb_o,
  output logic         wr_valid_o,
  input  logic         wr_ready_i,
  output logic [ 63:0] mass_o,           // with done_o: sum of the new ranks of vertices without edges out of them
  output logic         error_o,          // one-cycle pulse
  output logic         done_o            // level: all ranks were accepted by the writer, and all products taken
);

  localparam int unsigned Lines = 16;

  typedef struct packed {
    logic [30:0] rsvd;
    logic        sink;    // no edge out of it
    logic [31:0] degree;  // edges into it
    logic [63:0] share;   // of what is spread over all, 2^-32
  } vertex_t;

  typedef struct packed {
    logic [63:0]  addr;
    logic [7:0]   words;
    logic [511:0] data;
  } write_t;

  // ---------------------------------------------------------------- vertices
  logic [31:0] unread_q, edges_q, need_q;
  logic [1:0] at_q;
  vertex_t next, current_q;
  logic valid_q, last_q;  // there is a current vertex; no other behind it
  logic zero_q, one_q;  // edges that it still needs
  logic load, step, finish, none_q, room_q, drain_q;
  logic [63:0] sum_q, sum;

  assign next = s_i[128*at_q+:128];
  assign load = s_valid_i && unread_q != '0 && (!valid_q || finish);
  assign s_ready_o = load && (at_q == '1 || unread_q == 32'd1);
  // A product is taken.
  assign step = valid_q && !zero_q && product_valid_i && room_q;
  assign finish = valid_q && room_q && (zero_q || none_q || step && one_q);
  assign product_ready_o = valid_q && !zero_q && room_q || drain_q;
  assign sum = sum_q + (step ? product_i : '0);

  // The first vertex that misses an edge; edges behind those of the last one.
  logic short_q, missing, left, pop;
  assign pop = product_valid_i && product_ready_o;
  assign missing = none_q && !zero_q && !short_q;
  assign left = last_q && !none_q && !(step && edges_q == 32'd1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      unread_q <= '0;
      valid_q  <= 1'b0;
      drain_q  <= 1'b0;
      none_q   <= 1'b1;
      error_o  <= 1'b0;
    end else begin
      error_o <= finish && (missing || left);
      if (start_i) unread_q <= vertices_i;
      else if (load) unread_q <= unread_q - 1'b1;
      if (start_i) none_q <= edges_i == '0;
      else if (pop) none_q <= edges_q == 32'd1;
      if (start_i) drain_q <= 1'b0;
      else if (finish && last_q) drain_q <= 1'b1;
      if (load) valid_q <= 1'b1;
      else if (finish) valid_q <= 1'b0;
    end
    if (start_i) short_q <= 1'b0;
    else if (finish && missing) short_q <= 1'b1;
    if (start_i) edges_q <= edges_i;
    else if (pop) edges_q <= edges_q - 1'b1;
    if (start_i) at_q <= '0;
    else if (load) at_q <= at_q + 1'b1;
    if (load) begin
      current_q <= next;
      need_q <= next.degree;
      zero_q <= next.degree == '0;
      one_q <= next.degree == 32'd1;
      last_q <= unread_q == 32'd1;
      sum_q <= '0;
    end else if (step) begin
      need_q <= need_q - 1'b1;
      one_q  <= need_q == 32'd2;
      sum_q  <= sum;
    end
  end

  // ---------------------------------------------------------------- ranks
  logic sum_valid_q, product_valid, rank_valid_q, sink, last;
  logic [63:0] total_q, share_q, damped, basic, rank_q;
  logic [5:0][1:0] side_q;  // of the vertices in the multipliers: sink, last

  always_ff @(posedge clk_i) begin
    if (!rst_ni) sum_valid_q <= 1'b0;
    else sum_valid_q <= finish;
    if (finish) begin
      total_q <= sum;
      share_q <= current_q.share;
    end
    side_q <= {side_q[4:0], {current_q.sink, last_q}};
  end

  pgrnk_mul u_damped (
    .clk_i,
    .rst_ni,
    .a_i    (total_q),
    .b_i    (damping_i),
    .valid_i(sum_valid_q),
    .p_o    (damped),
    .valid_o(product_valid)
  );
  pgrnk_mul u_basic (
    .clk_i,
    .rst_ni,
    .a_i    (share_q),
    .b_i    (base_i),
    .valid_i(sum_valid_q),
    .p_o    (basic),
    .valid_o()
  );

  assign {sink, last} = side_q[5];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) rank_valid_q <= 1'b0;
    else rank_valid_q <= product_valid;
    if (product_valid) rank_q <= damped + basic;
  end

  // ---------------------------------------------------------------- lines of ranks
  logic [2:0] word_q;
  logic line_valid_q, open_q, written_q;
  write_t line_q, write;
  logic [63:0] addr_q;
  logic [$clog2(Lines+1)-1:0] count;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      line_valid_q <= 1'b0;
      open_q       <= 1'b0;
    end else begin
      line_valid_q <= rank_valid_q && (word_q == '1 || last);
      if (start_i) open_q <= 1'b1;
      else if (line_valid_q && written_q) open_q <= 1'b0;
    end
    if (start_i) begin
      word_q <= '0;
      addr_q <= ranks_i;
      mass_o <= '0;
    end else if (rank_valid_q) begin
      word_q <= word_q + 1'b1;
      if (word_q == '1) addr_q <= addr_q + 64'd64;
      if (sink) mass_o <= mass_o + rank_q;
    end
    if (rank_valid_q) begin
      line_q.addr <= addr_q;
      line_q.words <= word_q == '0 ? 8'b1 : line_q.words | 8'b1 << word_q;
      line_q.data[64*word_q+:64] <= rank_q;
      written_q <= last;
    end
    // Ranks on their way fill two more lines at most.
    room_q <= 32'(count) < Lines - 4;
  end

  via_fifo #(
    .T    (write_t),
    .Depth(Lines)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (line_q),
    .s_valid_i(line_valid_q),
    .s_ready_o(),
    .m_o      (write),
    .m_valid_o(wr_valid_o),
    .m_ready_i(wr_ready_i),
    .count_o  (count)
  );

  assign wr_addr_o = write.addr;
  assign wr_line_o = write.data;
  for (genvar i = 0; i < 8; i++) begin : gen_strb
    assign wr_strb_o[8*i+:8] = {8{write.words[i]}};
  end
  assign done_o = !open_q && !line_valid_q && !wr_valid_o && none_q;

endmodule
