// SPDX-License-Identifier: Apache-2.0
//
// Reads the lists of the neighbours in a list, and says for whom they are.
//
//   lines of a list -> entries that have a list -> inside the graph? -+-> requests of up to 32 lines
//                                                                     +-> FIFO -> jobs
//
// Throughput: an entry a cycle, a line in at least one cycle; at most Depth lines in flight and not yet taken. Latency: five cycles. Order:
// kept. No request crosses a multiple of 32 lines. Misuse: a list that is not in the graph is an error and is left out.

module tri_fetch
  import tri_pkg::*;
#(
  parameter int unsigned Depth = 256
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [      57:0] base_i,       // line of the memory at which the graph begins
  input  logic [PlaceW-1:0] lines_i,      // of the graph
  input  logic [     511:0] s_i,
  input  logic              s_first_i,    // it begins a list
  input  logic              s_last_i,
  input  logic              s_valid_i,
  output logic              s_ready_o,
  output logic [      63:0] rd_addr_o,
  output logic [       5:0] rd_len_o,
  output logic              rd_valid_o,
  input  logic              rd_ready_i,
  input  logic              taken_i,      // a pulse: a line was taken
  output job_t              job_o,
  output logic              job_valid_o,
  input  logic              job_ready_i,
  output logic              error_o       // a pulse
);

  localparam bit DepthOk = via_pkg::param_in("tri_fetch Depth", Depth, 128, 1 << 12);
  localparam int unsigned FreeW = $clog2(Depth + 1);

  // ---------------------------------------------------------------- entries of a line
  logic [7:0][PlaceW+LinesW-1:0] ways_q;  // to the lists of its neighbours
  logic [7:0] todo_q, next;  // those that are left; the lowest of them
  logic held_q, step, move, only, end_q;  // the line ends a list
  logic [PlaceW+LinesW-1:0] way;

  assign next = todo_q & ~(todo_q - 1'b1);
  assign step = held_q && move;
  assign only = (todo_q & ~next) == '0;
  assign s_ready_o = !held_q || step && only;

  always_comb begin
    way = '0;
    for (int unsigned i = 0; i < 8; i++) if (next[i]) way |= ways_q[i];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) held_q <= 1'b0;
    else if (s_ready_o) held_q <= s_valid_i;
    if (s_ready_o) begin
      for (int unsigned i = 0; i < 8; i++) begin
        entry_t entry;
        entry = s_i[64*i+:64];
        ways_q[i] <= {entry.place, entry.lines};
        todo_q[i] <= entry.id != '1 && entry.lines != '0 && !(i == 0 && s_first_i);
      end
      end_q <= s_last_i;
    end else if (step) begin
      todo_q <= todo_q & ~next;
    end
  end

  // ---------------------------------------------------------------- inside the graph?
  typedef struct packed {
    logic              last;   // the end of a list
    logic              entry;  // an entry: its list
    logic [PlaceW-1:0] place;
    logic [LinesW-1:0] lines;
  } part_t;

  part_t part_q, summed_q, checked_q;
  logic part_valid_q, summed_valid_q, checked_valid_q, inside_q;
  logic [PlaceW:0] behind_q;  // the line behind summed_q
  logic [57:0] at;
  logic job_ready, split_ready, fetch;

  assign fetch = checked_q.entry && inside_q;
  assign move  = !checked_valid_q || job_ready && (!fetch || split_ready);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {part_valid_q, summed_valid_q, checked_valid_q, error_o} <= '0;
    else begin
      if (move) {checked_valid_q, summed_valid_q, part_valid_q} <= {summed_valid_q, part_valid_q, held_q && (todo_q != '0 || end_q)};
      error_o <= move && checked_valid_q && checked_q.entry && !inside_q;
    end
    if (move) begin
      part_q    <= '{last: only && end_q, entry: next != '0, place: way[PlaceW+LinesW-1:LinesW], lines: way[LinesW-1:0]};
      summed_q  <= part_q;
      behind_q  <= (PlaceW + 1)'(part_q.place) + (PlaceW + 1)'(part_q.lines);
      checked_q <= summed_q;
      inside_q  <= behind_q <= {1'b0, lines_i};
    end
  end

  via_fifo #(
    .T    (job_t),
    .Depth(512)
  ) u_jobs (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{last: checked_q.last, lines: fetch ? checked_q.lines : '0}),
    .s_valid_i(checked_valid_q && move && (checked_q.last || fetch)),
    .s_ready_o(job_ready),
    .m_o      (job_o),
    .m_valid_o(job_valid_o),
    .m_ready_i(job_ready_i),
    .count_o  ()
  );

  // ---------------------------------------------------------------- requests
  logic [57:0] at_q;
  logic [LinesW-1:0] left_q;
  logic [5:0] room, issued_q;  // lines: to a multiple of 32; of the last request
  logic [FreeW-1:0] free_q;
  logic split_q, rd_valid_q, fits, issue;

  assign at = base_i + 58'(checked_q.place);
  assign room = 6'd32 - 6'(at_q[4:0]);
  assign fits = left_q <= LinesW'(room);
  assign issue = rd_valid_q && rd_ready_i;
  assign split_ready = !split_q || issue && fits;
  assign rd_addr_o = {at_q, 6'b0};
  assign rd_len_o = (fits ? left_q[5:0] : room) - 1'b1;
  assign rd_valid_o = rd_valid_q;

  always_ff @(posedge clk_i) begin
    logic load;
    load = checked_valid_q && move && fetch;
    if (!rst_ni) begin
      split_q    <= 1'b0;
      rd_valid_q <= 1'b0;
      free_q     <= FreeW'(Depth);
      issued_q   <= '0;
    end else begin
      if (load) split_q <= 1'b1;
      else if (split_ready) split_q <= 1'b0;
      // Space for a request, behind two that are not counted yet.
      rd_valid_q <= (load || split_q && !(issue && fits)) && (free_q >= FreeW'(96) || rd_valid_q && !issue);
      issued_q   <= issue ? 6'(rd_len_o) + 1'b1 : '0;
      free_q     <= free_q - FreeW'(issued_q) + FreeW'(taken_i);
    end
    if (load) begin
      at_q   <= at;
      left_q <= checked_q.lines;
    end else if (issue) begin
      at_q   <= {at_q[57:5] + 1'b1, 5'b0};
      left_q <= left_q - LinesW'(room);
    end
  end

endmodule
