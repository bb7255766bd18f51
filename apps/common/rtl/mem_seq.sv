// SPDX-License-Identifier: Apache-2.0
//
// Reads consecutive lines of 64 bytes, far ahead of their use: a reader of mem_lines with a FIFO.
//
//   start -> requests of up to Burst lines -> mem_lines -> FIFO -> out
//
// Throughput: a line a cycle; at most Depth lines in flight and not yet taken. Latency: two cycles besides that of the memory. Order: that of
// the addresses. No request crosses a multiple of Burst lines. Misuse: `start_i` before all lines of the previous one are taken is not
// allowed.

module mem_seq
  import via_pkg::*;
#(
  parameter  int unsigned Depth  = 128,  // lines
  parameter  int unsigned Burst  = 16,   // lines, a power of two
  parameter  int unsigned CountW = 40,   // width of a number of lines
  localparam int unsigned LenW   = 6
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              start_i,       // one-cycle pulse
  input  logic [      63:0] addr_i,        // with start_i: of the first line, a multiple of 64
  input  logic [CountW-1:0] lines_i,       // with start_i
  output logic [      63:0] rd_addr_o,
  output logic [  LenW-1:0] rd_len_o,
  output logic              rd_valid_o,
  input  logic              rd_ready_i,
  input  logic [     511:0] line_i,
  input  logic              line_valid_i,
  output logic [     511:0] m_o,
  output logic              m_valid_o,
  input  logic              m_ready_i,
  output logic              idle_o         // level: every line was taken
);

  // 32 lines are the longest burst of beats of 64 bits.
  localparam bit BurstOk = param_pow2("mem_seq Burst", Burst, 2, 32);
  localparam bit DepthOk = param_in("mem_seq Depth", Depth, 4 * Burst, 1 << 16);
  localparam bit CountWOk = param_in("mem_seq CountW", CountW, 6, 58);

  localparam int unsigned BurstLog2 = $clog2(Burst);
  localparam int unsigned FreeW = $clog2(Depth + 1);

  logic [57:0] at_q;  // line
  logic [CountW-1:0] left_q;
  logic [BurstLog2:0] room, chunk, issued_q;  // lines: to a multiple of Burst; of the request; of the one before
  logic [FreeW-1:0] free_q;
  logic fits, issue, pop, more_q, valid_q;

  assign room = (BurstLog2 + 1)'(Burst) - (BurstLog2 + 1)'(at_q[BurstLog2-1:0]);
  assign fits = left_q <= CountW'(room);
  assign chunk = fits ? (BurstLog2 + 1)'(left_q) : room;
  assign issue = valid_q && rd_ready_i;
  assign pop = m_valid_o && m_ready_i;
  assign rd_addr_o = {at_q, 6'b0};
  assign rd_len_o = LenW'(chunk - 1'b1);
  assign rd_valid_o = valid_q;
  assign idle_o = !more_q && issued_q == '0 && free_q == FreeW'(Depth);

  always_ff @(posedge clk_i) begin
    logic more;
    more = start_i ? lines_i != '0 : more_q && !(issue && fits);
    if (!rst_ni) begin
      free_q   <= FreeW'(Depth);
      issued_q <= '0;
      more_q   <= 1'b0;
      valid_q  <= 1'b0;
    end else begin
      free_q   <= free_q - FreeW'(issued_q) + FreeW'(pop);
      issued_q <= issue ? chunk : '0;
      more_q   <= more;
      // Space for a request, behind two that are not counted yet.
      valid_q  <= more && (free_q >= FreeW'(3 * Burst) || valid_q && !issue);
    end
    if (start_i) begin
      at_q   <= addr_i[63:6];
      left_q <= lines_i;
    end else if (issue) begin
      // Unless it was the last request, up to a multiple of Burst.
      at_q   <= {at_q[57:BurstLog2] + 1'b1, BurstLog2'(0)};
      left_q <= left_q - CountW'(room);
    end
  end

  via_fifo #(
    .T    (logic [511:0]),
    .Depth(Depth),
    .Ram  (1'b1)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (line_i),
    .s_valid_i(line_valid_i),
    .s_ready_o(),
    .m_o,
    .m_valid_o,
    .m_ready_i,
    .count_o  ()
  );

endmodule
