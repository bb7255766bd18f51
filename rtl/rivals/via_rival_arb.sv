// SPDX-License-Identifier: Apache-2.0
//
// The scheduler of the published vFPIO (artifact, arbiter of host DMA requests), with its faults, and mended: chooses whose request is next, and
// charges nothing for its length.
//
// As published (`mended_i` low): the pointer moves by one with each grant, whoever was granted, so with 2 of 3 members active one has two thirds.
// That there is no priority is encoded as the number N in $clog2(N) bits. With N a power of two it is 0, member 0: the pointer stays there, and
// while member 0 requests nobody else is served. The member with priority is found by a comparison of priorities with indices: the last one
// whose priority is above the index, plus one, of the one found before; it is looked for first in every second grant upwards, in the others
// downwards.
// Mended: the pointer moves behind whom was granted, and members of `first_i` are before all others.
//
// Throughput: one grant a cycle. Latency: none, combinational. Misuse: none is possible.

module via_rival_arb
  import via_pkg::*;
#(
  parameter  int unsigned N = 4,
  localparam int unsigned W = (N > 1) ? $clog2(N) : 1
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         mended_i,  // constant
  input  logic [N-1:0] first_i,   // level: the member has priority 1, others 0
  input  logic [N-1:0] req_i,
  input  logic         ack_i,     // level: the grant of this cycle is used
  output logic [N-1:0] gnt_o,     // one-hot, or zero
  output logic         valid_o
);

  localparam bit NOk = param_in("via_rival_arb N", N, 1, 16);

  logic [W-1:0] next_q, best_q, turn_q;
  logic [W:0] found;
  logic [N-1:0] among;
  logic used;

  always_comb begin
    found = '0;
    for (int unsigned i = 0; i < N; i++) if ((W + 1)'(first_i[i]) > found) found = (W + 1)'(i + 1);
  end
  assign among = (mended_i && (req_i & first_i) != '0) ? req_i & first_i : req_i;
  assign valid_o = req_i != '0;
  assign used = valid_o && ack_i;

  // From the pointer on, upwards or downwards.
  always_comb begin
    gnt_o = '0;
    for (int unsigned i = 0; i < N; i++) begin
      automatic int unsigned m = (mended_i || turn_q == '0) ? (32'(next_q) + i) % N : (32'(next_q) + N - i) % N;
      if (among[m] && gnt_o == '0) gnt_o[m] = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_q <= '0;
      best_q <= W'(N);
      turn_q <= '0;
    end else if (used && mended_i) begin
      for (int unsigned m = 0; m < N; m++) if (gnt_o[m]) next_q <= W'((m + 1) % N);
    end else if (used) begin
      best_q <= (found == '0) ? W'(N) : W'(found - 1'b1);
      if (32'(best_q) == N) begin
        next_q <= (32'(next_q) == N - 1) ? '0 : next_q + 1'b1;
        turn_q <= '0;
      end else begin
        next_q <= best_q;
        turn_q <= (turn_q == '0) ? W'(1) : '0;
      end
    end
  end

endmodule
