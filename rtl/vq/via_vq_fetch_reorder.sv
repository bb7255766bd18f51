// SPDX-License-Identifier: Apache-2.0
//
// Lines of descriptors that have arrived and wait for the walker, in the order of the tokens. A burst whose tokens name its lines from the
// last to the first arrives the wrong way round: its lines leave when all of them are here.
//
// Throughput: one line a cycle in and out. Latency: none for a line of an ascending burst that nothing waits before; of a descending one
// the last line leaves a cycle after its arrival. Order: that of the tokens. Lines are always accepted.
// Misuse: a line without its burst, or more than `Lines` lines requested and not used up (asserted).

module via_vq_fetch_reorder
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned Lines = 32  // lines requested and not used up
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  vq_burst_t             burst_i,        // with burst_valid_i: a burst that was requested
  input  logic                  burst_valid_i,  // pulse
  input  logic      [DataW-1:0] line_i,         // with line_valid_i: a line of the oldest burst
  input  logic                  line_err_i,     // with line_valid_i: the read failed
  input  logic                  line_valid_i,   // pulse
  output logic      [DataW-1:0] line_o,         // line
  output logic                  line_err_o,     // its read failed
  output logic                  line_valid_o,
  input  logic                  line_pop_i      // with line_valid_o: it is taken
);

  localparam bit LinesOk = param_in("via_vq_fetch_reorder Lines", Lines, 8, 1024);

  localparam int unsigned AW = $clog2(Lines);

  typedef struct packed {
    logic             err;
    logic [DataW-1:0] data;
  } line_t;

  vq_burst_t burst;
  logic burst_valid, burst_room, last, straight, kept_q;
  logic [2:0] i_q;  // lines of the burst that have arrived
  logic [2:0] i;  // place of the line that arrives within its burst, in the order of the tokens
  logic [AW-1:0] base_q, rptr_q;  // first place of the burst; next line to leave
  logic [AW:0] held_q, held;  // lines that may leave; with those that arrive now
  logic [3:0] more;
  line_t mem[2**AW];
  line_t line_in, line;

  via_fifo #(
    .T    (vq_burst_t),
    .Depth(Lines)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (burst_i),
    .s_valid_i(burst_valid_i),
    .s_ready_o(burst_room),
    .m_o      (burst),
    .m_valid_o(burst_valid),
    .m_ready_i(line_valid_i && last),
    .count_o  ()
  );

  assign last = i_q == burst.len;
  assign i = burst.down ? burst.len - i_q : i_q;
  assign straight = !burst.down || burst.len == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      i_q    <= '0;
      base_q <= '0;
    end else if (line_valid_i) begin
      i_q <= last ? '0 : i_q + 1'b1;
      if (last) base_q <= base_q + AW'(burst.len) + 1'b1;
    end
  end

  assign line_in = '{err: line_err_i, data: line_i};
  always_ff @(posedge clk_i) if (line_valid_i) mem[base_q+AW'(i)] <= line_in;
  assign line = kept_q ? mem[rptr_q] : line_in;
  assign line_o = line.data;
  assign line_err_o = line.err;
  assign line_valid_o = kept_q || line_valid_i && straight;

  assign more = !line_valid_i ? '0 : straight ? 4'd1 : last ? 4'(burst.len) + 4'd1 : '0;
  assign held = held_q + (AW + 1)'(more);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= '0;
      kept_q <= 1'b0;
      rptr_q <= '0;
    end else begin
      held_q <= held - (AW + 1)'(line_pop_i);
      // The pop is known last.
      kept_q <= line_pop_i ? held[AW:1] != '0 : held != '0;
      if (line_pop_i) rptr_q <= rptr_q + 1'b1;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!line_valid_i || burst_valid)
      else $error("line without a burst");
      assert (!burst_valid_i || burst_room)
      else $error("burst without a place");
      assert (!line_pop_i || line_valid_o)
      else $error("pop without a line");
      assert (32'(held) <= Lines)
      else $error("line without a place");
    end
  end
`endif

endmodule
