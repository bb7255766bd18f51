// SPDX-License-Identifier: Apache-2.0
//
// Cuts the graph into lists: one for each vertex, in the order of the memory.
//
//   lines -> list -+-> ids, in pairs of lines, into the ring of tri_count
//                  +-> FIFO -> lines for tri_fetch
//
// Throughput: a line a cycle while the ring has room. Latency: one cycle. Order: kept. Misuse: a list whose first entry does not say where it
// is, or has no lines, is an error and ends with its first line; one that is longer than the graph ends with it.

module tri_lists
  import tri_pkg::*;
#(
  parameter  int unsigned Pairs = 256,           // of the ring, a power of two; the longest list has 128
  localparam int unsigned PairW = $clog2(Pairs)
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               start_i,       // one-cycle pulse
  input  logic  [PlaceW-1:0] lines_i,       // with start_i: of the graph
  input  logic  [     511:0] s_i,
  input  logic               s_valid_i,
  output logic               s_ready_o,
  output logic               pair_we_o,
  output logic  [ PairW-1:0] pair_at_o,
  output pair_t              pair_o,
  output logic  [ PairW-1:0] list_at_o,     // with list_valid_o: pairs of a whole list
  output logic  [LinesW-1:0] list_pairs_o,  // at most 128
  output logic               list_valid_o,  // a pulse
  input  logic               free_i,        // a pulse: free_pairs_i of the ring are free again
  input  logic  [LinesW-1:0] free_pairs_i,
  output logic  [     511:0] line_o,        // lines, and whether they begin and end a list
  output logic               line_first_o,
  output logic               line_last_o,
  output logic               line_valid_o,
  input  logic               line_ready_i,
  output logic               error_o,       // a pulse
  output logic               done_o         // level: the whole graph was cut
);

  localparam bit PairsOk = via_pkg::param_pow2("tri_lists Pairs", Pairs, 256, 1 << 14);

  typedef struct packed {
    logic first;
    logic last;
    logic [511:0] data;
  } line_t;

  logic [PlaceW-1:0] at_q, left_q;  // of the graph
  logic [LinesW-1:0] rest_q;  // lines of the list behind the first one
  logic [LinesW-1:0] pairs_q;  // whole ones of the list
  logic [PairW-1:0] pair_at_q, list_at_q;
  logic [PairW:0] room_q;
  logic first_q, odd_q, run_q, good, take, last, graph_last, whole;
  entry_t head;
  ids_t   even_q;
  line_t  line;
  logic   ready;

  assign head = s_i[63:0];
  assign good = head.lines != '0 && head.place == at_q;
  assign graph_last = left_q == PlaceW'(1);
  assign last = graph_last || (first_q ? !good || head.lines == LinesW'(1) : rest_q == LinesW'(1));
  // Two pairs more than are free are not counted yet.
  assign take = s_valid_i && run_q && ready && room_q > (PairW + 1)'(2);
  assign s_ready_o = take;
  assign whole = odd_q || last;
  assign done_o = !run_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      run_q        <= 1'b0;
      room_q       <= (PairW + 1)'(Pairs);
      pair_we_o    <= 1'b0;
      list_valid_o <= 1'b0;
      error_o      <= 1'b0;
    end else begin
      if (start_i) run_q <= lines_i != '0;
      else if (take && graph_last) run_q <= 1'b0;
      room_q <= room_q - (PairW + 1)'(pair_we_o) + (free_i ? (PairW + 1)'(free_pairs_i) : '0);
      pair_we_o <= take && whole;
      list_valid_o <= take && last;
      error_o <= take && first_q && !good;
    end
    if (start_i) begin
      at_q      <= '0;
      left_q    <= lines_i;
      first_q   <= 1'b1;
      odd_q     <= 1'b0;
      pair_at_q <= '0;
      list_at_q <= '0;
      pairs_q   <= LinesW'(1);
    end else if (take) begin
      at_q <= at_q + 1'b1;
      left_q <= left_q - 1'b1;
      first_q <= last;
      rest_q <= first_q ? head.lines - 1'b1 : rest_q - 1'b1;
      odd_q <= !whole;
      if (whole) pair_at_q <= pair_at_q + 1'b1;
      if (last) list_at_q <= pair_at_q + 1'b1;
      pairs_q <= last ? LinesW'(1) : pairs_q + LinesW'(whole);
    end
    if (take) begin
      ids_t ids;
      ids = ids_of(s_i);
      if (first_q) ids[0] = '1;  // not a neighbour
      even_q <= ids;
      pair_o <= odd_q ? {ids, even_q} : {{8 * IdW{1'b1}}, ids};
      pair_at_o <= pair_at_q;
      list_at_o <= list_at_q;
      list_pairs_o <= pairs_q;
    end
  end

  // Never full: as many lines as the ring holds.
  via_fifo #(
    .T    (line_t),
    .Depth(2 * Pairs),
    .Ram  (1'b1)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{first: first_q, last: last, data: s_i}),
    .s_valid_i(take),
    .s_ready_o(ready),
    .m_o      (line),
    .m_valid_o(line_valid_o),
    .m_ready_i(line_ready_i),
    .count_o  ()
  );
  assign {line_first_o, line_last_o, line_o} = line;

endmodule
