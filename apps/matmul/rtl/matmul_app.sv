// SPDX-License-Identifier: Apache-2.0
//
// Product of two matrices of signed bytes, with sums of 32 bits.
//
//   lines of A, 16 rows of 64 bytes -> FIFO -> next 16 x 64 -> this 16 x 64, a column in two cycles --+
//   lines of B -> FIFO -> halves ----------------------------------------------------------------------+-> array -> lines of the product
//
// In the memory, row by row: A with rows x inner bytes, B with inner x cols, and the product with rows x cols words of 32 bits.
// Throughput: a tile of the product, 16 rows and 64 columns, in 2 * inner cycles and 131 in which it leaves the array, as a line is written in
// two cycles, data behind its address: 512 multiplications a cycle times inner / (inner + 65.5). For 128 cycles 80 lines are read. Latency: that of the memory and of a tile. Up to 128 lines of B and 32
// of A in flight. Order: tiles from left to right, then down; a line of the product is written once. Requires what the shell's bus does:
// reads complete in order. Misuse: a base that is not a multiple of 4096, sizes that are zero or not multiples of 16, 64 and 64, or a memory
// too short for the product end the run at once with one error. Lines that cannot be read or written count as errors.

module matmul_app
  import via_pkg::*;
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
  input  logic    [63:0] base_i,          // address of the memory
  input  logic    [63:0] bytes_i,         // its size
  input  logic    [15:0] rows_i,
  input  logic    [15:0] inner_i,
  input  logic    [15:0] cols_i,
  input  logic           start_i,         // one-cycle pulse; the inputs above are sampled with it
  output logic           done_o,          // level: no run is in progress
  output logic    [31:0] errors_o,        // lines with an error, and 1 for wrong parameters
  output logic    [63:0] cycles_o,        // duration of the last run
  output logic           busy_o,          // level: a run is in progress
  output logic           irq_o            // one-cycle pulse: the run has ended
);

  localparam int unsigned A = 0;  // readers
  localparam int unsigned B = 1;
  localparam int unsigned HeldA = 32;  // lines in flight and in the FIFO
  localparam int unsigned HeldB = 128;

  // ---------------------------------------------------------------- parameters, sampled at the start
  logic [63:0] base_q, bytes_q, need_q, b_at_q, c_at_q;
  logic [15:0] rows_q, inner_q, cols_q;
  logic [31:0] a_bytes_q, b_bytes_q, c_words_q;
  logic sample, go, bad, run, finish;

  always_ff @(posedge clk_i) begin
    if (sample) begin
      base_q  <= base_i;
      bytes_q <= bytes_i;
      rows_q  <= rows_i;
      inner_q <= inner_i;
      cols_q  <= cols_i;
    end
    a_bytes_q <= 32'(rows_q) * 32'(inner_q);
    b_bytes_q <= 32'(inner_q) * 32'(cols_q);
    c_words_q <= 32'(rows_q) * 32'(cols_q);
    b_at_q    <= base_q + 64'(a_bytes_q);
    c_at_q    <= b_at_q + 64'(b_bytes_q);
    need_q    <= 64'(a_bytes_q) + 64'(b_bytes_q) + {30'b0, c_words_q, 2'b0};
  end
  assign bad = base_q[11:0] != '0 || rows_q == '0 || inner_q == '0 || cols_q == '0 ||
      rows_q[3:0] != '0 || inner_q[5:0] != '0 || cols_q[5:0] != '0 || need_q > bytes_q;

  // ---------------------------------------------------------------- memory
  logic [63:0] rd_addr[2], wr_addr_q;
  logic [5:0] rd_len[2];
  logic [1:0] rd_valid, rd_ready, line_valid, mem_errors;
  logic [511:0] line, wr_line;
  logic wr_valid, wr_ready, wr_idle;

  assign rd_len = '{default: '0};

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
    .line_error_o(),
    .line_valid_o(line_valid),
    .wr_addr_i   (wr_addr_q),
    .wr_line_i   (wr_line),
    .wr_strb_i   ('1),
    .wr_valid_i  (wr_valid),
    .wr_ready_o  (wr_ready),
    .wr_idle_o   (wr_idle),
    .errors_o    (mem_errors)
  );

  // Position of a reader or of the array: chunks of 64 along `inner`, tiles along the columns, tiles along the rows.
  typedef struct packed {
    logic [9:0]  chunk;
    logic [9:0]  col;
    logic [11:0] row;
  } place_t;

  logic [9:0] last_chunk_q, last_col_q;
  logic [11:0] last_row_q;

  always_ff @(posedge clk_i) begin
    last_chunk_q <= inner_q[15:6] - 1'b1;
    last_col_q   <= cols_q[15:6] - 1'b1;
    last_row_q   <= rows_q[15:4] - 1'b1;
  end

  function automatic place_t after(input place_t p);
    place_t next;
    next = p;
    next.chunk = p.chunk == last_chunk_q ? '0 : p.chunk + 1'b1;
    if (p.chunk == last_chunk_q) next.col = p.col == last_col_q ? '0 : p.col + 1'b1;
    if (p.chunk == last_chunk_q && p.col == last_col_q) next.row = p.row + 1'b1;
    return next;
  endfunction

  function automatic logic at_end(input place_t p);
    return p.chunk == last_chunk_q && p.col == last_col_q && p.row == last_row_q;
  endfunction

  // ---------------------------------------------------------------- requests of A: a line of each of 16 rows, for every chunk
  place_t a_place_q;
  logic a_more_q;
  logic [3:0] a_line_q;
  logic [63:0] a_addr_q, a_chunk_q, a_panel_q;  // next line; first one of the chunk, of these 16 rows
  logic [$clog2(HeldA+1)-1:0] a_held_q;
  logic a_send, a_pop;

  assign rd_addr[A]  = a_addr_q;
  assign rd_valid[A] = a_more_q && a_held_q != ($clog2(HeldA + 1))'(HeldA);
  assign a_send      = rd_valid[A] && rd_ready[A];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_more_q <= 1'b0;
      a_held_q <= '0;
    end else begin
      if (go) a_more_q <= 1'b1;
      else if (a_send && a_line_q == '1 && at_end(a_place_q)) a_more_q <= 1'b0;
      if (a_send != a_pop) a_held_q <= a_send ? a_held_q + 1'b1 : a_held_q - 1'b1;
    end
    if (go) begin
      a_place_q <= '0;
      a_line_q  <= '0;
      a_addr_q  <= base_q;
      a_chunk_q <= base_q;
      a_panel_q <= base_q;
    end else if (a_send) begin
      a_line_q <= a_line_q + 1'b1;
      a_addr_q <= a_addr_q + 64'(inner_q);
      if (a_line_q == '1) begin
        a_place_q <= after(a_place_q);
        if (a_place_q.chunk != last_chunk_q) begin
          a_addr_q  <= a_chunk_q + 64'd64;
          a_chunk_q <= a_chunk_q + 64'd64;
        end else if (a_place_q.col != last_col_q) begin
          a_addr_q  <= a_panel_q;
          a_chunk_q <= a_panel_q;
        end else begin
          a_addr_q  <= a_panel_q + {44'b0, inner_q, 4'b0};
          a_chunk_q <= a_panel_q + {44'b0, inner_q, 4'b0};
          a_panel_q <= a_panel_q + {44'b0, inner_q, 4'b0};
        end
      end
    end
  end

  // ---------------------------------------------------------------- requests of B: a line of each of its rows, for every tile
  place_t b_place_q;
  logic b_more_q;
  logic [5:0] b_line_q;  // of the chunk
  logic [63:0] b_addr_q, b_tile_q;  // next line; first one of these 64 columns
  logic [$clog2(HeldB+1)-1:0] b_held_q;
  logic b_send, b_pop;

  assign rd_addr[B]  = b_addr_q;
  assign rd_valid[B] = b_more_q && b_held_q != ($clog2(HeldB + 1))'(HeldB);
  assign b_send      = rd_valid[B] && rd_ready[B];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      b_more_q <= 1'b0;
      b_held_q <= '0;
    end else begin
      if (go) b_more_q <= 1'b1;
      else if (b_send && b_line_q == '1 && at_end(b_place_q)) b_more_q <= 1'b0;
      if (b_send != b_pop) b_held_q <= b_send ? b_held_q + 1'b1 : b_held_q - 1'b1;
    end
    if (go) begin
      b_place_q <= '0;
      b_line_q  <= '0;
      b_addr_q  <= b_at_q;
      b_tile_q  <= b_at_q;
    end else if (b_send) begin
      b_line_q <= b_line_q + 1'b1;
      b_addr_q <= b_addr_q + 64'(cols_q);
      if (b_line_q == '1) begin
        b_place_q <= after(b_place_q);
        if (b_place_q.chunk == last_chunk_q) begin
          b_addr_q <= b_place_q.col == last_col_q ? b_at_q : b_tile_q + 64'd64;
          b_tile_q <= b_place_q.col == last_col_q ? b_at_q : b_tile_q + 64'd64;
        end
      end
    end
  end

  // ---------------------------------------------------------------- lines
  // The FIFOs have room for all lines in flight.
  logic [511:0] a_line, b_line;
  logic a_line_valid, b_line_valid;

  via_fifo #(
    .T    (logic [511:0]),
    .Depth(HeldA)
  ) u_a (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (line),
    .s_valid_i(line_valid[A]),
    .s_ready_o(),
    .m_o      (a_line),
    .m_valid_o(a_line_valid),
    .m_ready_i(a_pop),
    .count_o  ()
  );

  via_fifo #(
    .T    (logic [511:0]),
    .Depth(HeldB),
    .Ram  (1'b1)
  ) u_b (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (line),
    .s_valid_i(line_valid[B]),
    .s_ready_o(),
    .m_o      (b_line),
    .m_valid_o(b_line_valid),
    .m_ready_i(b_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- the next chunk of A, and this one
  logic [15:0][511:0] next_q, chunk_q;  // rows
  logic [4:0] next_rows_q;
  logic chunk_valid_q, step, chunk_end, chunk_take;

  assign a_pop      = a_line_valid && (!next_rows_q[4] || chunk_take);
  assign chunk_take = next_rows_q[4] && (!chunk_valid_q || chunk_end);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_rows_q   <= '0;
      chunk_valid_q <= 1'b0;
    end else begin
      next_rows_q <= (chunk_take ? '0 : next_rows_q) + 5'(a_pop);
      if (chunk_take) chunk_valid_q <= 1'b1;
      else if (chunk_end) chunk_valid_q <= 1'b0;
    end
    if (a_pop) next_q <= {a_line, next_q[15:1]};
    if (chunk_take) chunk_q <= next_q;
    else if (b_pop) for (int unsigned r = 0; r < 16; r++) chunk_q[r] <= chunk_q[r] >> 8;
  end

  // ---------------------------------------------------------------- steps
  typedef enum logic [1:0] {
    Steps,
    Settle,  // the last step reaches the sums
    Drain
  } state_e;

  state_e state_q;
  place_t place_q;
  logic half_q, active_q, tile_end;
  logic [5:0] column_q;  // of the chunk
  logic [15:0][7:0] a;
  logic [5:0] wait_q;  // cycles of Settle, lines of Drain

  assign step      = state_q == Steps && chunk_valid_q && b_line_valid;
  assign b_pop     = step && half_q;
  assign chunk_end = b_pop && column_q == '1;
  assign tile_end  = chunk_end && place_q.chunk == last_chunk_q;

  for (genvar r = 0; r < 16; r++) begin : gen_a
    assign a[r] = chunk_q[r][7:0];
  end

  matmul_array u_array (
    .clk_i,
    .a_i    (a),
    .b_i    (half_q ? b_line[511:256] : b_line[255:0]),
    .half_i (half_q),
    .first_i(column_q == '0 && place_q.chunk == '0),
    .step_i (step),
    .line_o (wr_line),
    .shift_i(wr_valid && wr_ready)
  );

  // ---------------------------------------------------------------- lines of the product
  logic [63:0] c_row_q, c_tile_q, c_panel_q;  // first line of this row of the tile, of the tile, of these 16 rows

  assign wr_valid = state_q == Drain;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q  <= Steps;
      active_q <= 1'b0;
    end else begin
      if (go) active_q <= 1'b1;
      unique case (state_q)
        Steps:  if (tile_end) state_q <= Settle;
        Settle: if (wait_q[0]) state_q <= Drain;
        default: begin
          if (wr_ready && wait_q == '1) begin
            state_q <= Steps;
            if (at_end(place_q)) active_q <= 1'b0;
          end
        end
      endcase
    end
    unique case (state_q)
      Steps:   wait_q <= '0;
      Settle:  wait_q <= wait_q[0] ? '0 : wait_q + 1'b1;
      default: if (wr_ready) wait_q <= wait_q + 1'b1;
    endcase
    if (go) begin
      place_q   <= '0;
      half_q    <= 1'b0;
      column_q  <= '0;
      wr_addr_q <= c_at_q;
      c_row_q   <= c_at_q;
      c_tile_q  <= c_at_q;
      c_panel_q <= c_at_q;
    end else begin
      if (step) half_q <= !half_q;
      if (b_pop) column_q <= column_q + 1'b1;
      // The place stays that of the tile until it has left.
      if (chunk_end && !tile_end) place_q <= after(place_q);
      if (wr_valid && wr_ready) begin
        wr_addr_q <= wr_addr_q + 64'd64;
        if (wait_q[1:0] == '1) begin
          wr_addr_q <= c_row_q + {46'b0, cols_q, 2'b0};
          c_row_q   <= c_row_q + {46'b0, cols_q, 2'b0};
        end
        if (wait_q == '1) begin
          place_q <= after(place_q);
          if (place_q.col != last_col_q) begin
            wr_addr_q <= c_tile_q + 64'd256;
            c_row_q   <= c_tile_q + 64'd256;
            c_tile_q  <= c_tile_q + 64'd256;
          end else begin
            wr_addr_q <= c_panel_q + {42'b0, cols_q, 6'b0};
            c_row_q   <= c_panel_q + {42'b0, cols_q, 6'b0};
            c_tile_q  <= c_panel_q + {42'b0, cols_q, 6'b0};
            c_panel_q <= c_panel_q + {42'b0, cols_q, 6'b0};
          end
        end
      end
    end
  end

  // ---------------------------------------------------------------- run
  assign finish = !active_q && wr_idle;
  assign busy_o = run;

  mem_run #(
    .Setup(4)
  ) u_run (
    .clk_i,
    .rst_ni,
    .start_i,
    .sample_o(sample),
    .bad_i   (bad),
    .go_o    (go),
    .run_o   (run),
    .finish_i(finish),
    .errors_i({1'b0, mem_errors}),
    .done_o,
    .irq_o,
    .errors_o,
    .cycles_o
  );

endmodule
