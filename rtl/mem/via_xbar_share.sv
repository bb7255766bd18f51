// SPDX-License-Identifier: Apache-2.0
//
// Shares a target of the crossbar among managers by beats: surplus round robin, a form of deficit round robin (Shreedhar and Varghese,
// "Efficient Fair Queuing Using Deficit Round Robin", SIGCOMM 1995).
//
// Meant for bursts of at most a quantum. A longer one, offered while nobody else requested the target, is charged as a quantum.
// Every manager has a balance of beats. A grant takes the beats of the burst from it; who is below zero waits until no other manager that
// requests has a balance, then all those below zero get a quantum. Among those with a balance the urgent ones are first, and among equals the
// one granted longest ago: urgency decides who is next, not how much anybody gets.
// Throughput: one grant a cycle, also of one manager alone and in the cycle of a refill. Latency: none, combinational.
// A manager that requests waits for less than three quanta of each of the others. Of two that request without pause, neither is granted four
// quanta more than the other in any time, whatever the lengths of their bursts. Both are proved in formal/xbar_share.

module via_xbar_share
  import via_pkg::*;
#(
  parameter int unsigned N = NumSlots + 3,
  parameter int unsigned Quantum = MaxBurstBeats  // beats, a power of two; a longer burst is charged as one
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [N-1:0] req_i,        // level: the manager requests; may change in any cycle
  input  logic [  7:0] len_i   [N],  // with req_i: beats of its burst - 1
  input  logic [N-1:0] urgent_i,     // level: all else of the manager waits for this target
  input  logic         ack_i,        // level: the grant of this cycle is used
  output logic [N-1:0] gnt_o,        // granted manager, one-hot; zero if there is none
  output logic         valid_o,      // there is a grant
  output logic [N-1:0] shared_o      // another manager has requested during the last 16 to 32 grants
);

  localparam bit NOk = param_in("via_xbar_share N", N, 1, 64);

  localparam bit QuantumOk = param_pow2("via_xbar_share Quantum", Quantum, 1, 256);

  localparam int unsigned BalanceW = $clog2(Quantum) + 2;

  logic signed [BalanceW-1:0] balance_q[N];
  logic [N-1:0] below, rich;
  logic refill;
  // later_q[m][k]: k was granted after m, or has never been and has a higher number.
  logic [N-1:0] later_q[N], precede[N];

  always_comb for (int unsigned m = 0; m < N; m++) below[m] = balance_q[m][BalanceW-1];
  assign valid_o = |req_i;
  assign rich    = req_i & ~below;
  assign refill  = rich == '0;

  // precede[m][k]: k is before m.
  always_comb begin
    for (int unsigned m = 0; m < N; m++) precede[m] = urgent_i[m] ? urgent_i & ~later_q[m] : urgent_i | ~later_q[m];
  end

  // The first of those with a balance, and the first of all, are found at the same time.
  function automatic logic first(input logic [N-1:0] among, input logic [N-1:0] ahead, input int unsigned m);
    return among[m] && (among & ahead & ~(N'(1) << m)) == '0;
  endfunction
  always_comb begin
    gnt_o = '0;
    if (valid_o) begin
      for (int unsigned m = 0; m < N; m++) gnt_o[m] = first(rich, precede[m], m) || refill && first(req_i, precede[m], m);
    end
  end

  for (genvar m = 0; m < N; m++) begin : gen_mgr
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        balance_q[m] <= '0;
        later_q[m]   <= {N{1'b1}} << m << 1;
      end else if (ack_i && valid_o) begin
        automatic logic [7:0] charge = (9'(len_i[m]) >= 9'(Quantum)) ? 8'(Quantum - 1) : len_i[m];  // beats - 1
        automatic logic signed [BalanceW-1:0] base = balance_q[m];
        if (refill && below[m]) base = base + BalanceW'(Quantum);
        balance_q[m] <= gnt_o[m] ? base + ~BalanceW'(charge) : base;
        later_q[m]   <= gnt_o[m] ? '0 : later_q[m] | gnt_o;
      end
    end
  end

  // Counted in grants, so that nothing changes without one.
  localparam int unsigned RecentLog2 = 4;
  logic [RecentLog2-1:0] recent_q;
  logic [N-1:0] now_q, past_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      recent_q <= '0;
      now_q    <= '0;
      past_q   <= '0;
      shared_o <= '0;
    end else begin
      if (ack_i && valid_o) recent_q <= recent_q + 1'b1;
      if (ack_i && valid_o && recent_q == '1) begin
        now_q  <= req_i;
        past_q <= now_q;
      end else begin
        now_q <= now_q | req_i;
      end
      for (int unsigned m = 0; m < N; m++) shared_o[m] <= ((now_q | past_q) & ~(N'(1) << m)) != '0;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && ack_i && valid_o) begin
      a_one : assert ($onehot(gnt_o));
    end
  end
`endif

endmodule
