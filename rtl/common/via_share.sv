// SPDX-License-Identifier: Apache-2.0
//
// Shares what takes one burst at a time (a target of the crossbar, a copy engine of the DMA engine) among managers by beats: surplus round robin, a
// form of deficit round robin (Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round Robin", SIGCOMM 1995), over one or two ways. The
// ways of a DRAM channel are reads and writes: they have one data bus, so a manager's beats count whichever way they go. Each way has a grant of its
// own.
//
// Every manager has a balance of beats for each way. A grant takes the beats of the burst from it, at most `Most`. Below zero it waits until
// nobody who requests, either way, has a balance; then balances below zero get a quantum for each unit of their manager's weight in each cycle, of
// a manager that requests both ways one of them, in turn. So managers share by weight. Who has a balance then is granted in the same cycle, if it
// was near enough in the last one too. Among those with a balance the urgent ones are first, and among equals the one granted longest ago: urgency
// decides who is next, not how much anybody gets.
// After a cycle in which a manager requests alone, each of its ways is refilled by itself, so that neither waits for the other.
// Managers with `first_i` are a class of their own, with shares by weight among themselves, and urgent. In a cycle behind one in which one of them
// has requested, the balances of the others are not refilled: they spend what they have, at most the quanta of their weight and a burst, and
// wait then.
// Throughput: one grant a way and cycle, also of one manager alone; none in a cycle in which all who request are below zero and came near it
// just now, or are further below, after bursts longer than their quanta, and in the one behind the last request of the first class if all
// others are below zero. Latency: none, combinational.
// In one class, with equal weights, a request waits for less than 2 * (2 * Quantum + Most) + Most beats of each of the others each way (with one way,
// 2 * Quantum + 2 * Most). Of two managers that each request the same ways without pause neither is granted more than the other by 2 * (Quantum +
// Most) beats in any time, by three or four times Quantum + Most if one or both request both ways, whatever the lengths of their bursts; Quantum is
// then that of the weight, `quanta_i`. With other weights a request waits for as many more beats of another as its weight is greater, and the
// difference is of beats for each unit of weight. Proved in formal/share, which has the terms.
// With `plain_i` the one granted longest ago is next whatever it has moved, behind those who are urgent and go first: round robin by bursts, for
// comparison and for those who want it. All balances are zero meanwhile.
// Misuse: a way without a balance waits for the other one if somebody has a balance there; its acknowledgement must not depend on this way.

module via_share
  import via_pkg::*;
#(
  parameter int unsigned N = NumSlots + 3,
  parameter int unsigned Ways = 2,
  parameter int unsigned Quantum = MaxBurstBeats,  // beats, the largest, a power of two
  parameter int unsigned Most = Quantum,  // beats, a power of two: a longer burst is charged as so many
  parameter int unsigned WeightBits = WeightW,
  localparam int unsigned QuantaW = $clog2(Quantum) + WeightBits
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [QuantaW-1:0] quanta_i[   N],     // beats that a refill gives: weight times quantum, from 1; the bounds hold while it stays
  input  logic               plain_i,            // level: round robin by bursts; may change in any cycle
  input  logic [      N-1:0] first_i,            // level: the manager is of the class that goes first; may change in any cycle
  input  logic [      N-1:0] req_i   [Ways],     // level: the manager requests; may change in any cycle
  input  logic [        7:0] len_i   [Ways][N],  // with req_i: beats of its burst - 1
  input  logic [      N-1:0] urgent_i[Ways],     // level: all else of the manager in this way waits for this target
  input  logic [   Ways-1:0] ack_i,              // level: the grant of this cycle is used
  output logic [      N-1:0] gnt_o   [Ways],     // granted manager, one-hot; zero if there is none
  output logic [   Ways-1:0] valid_o,            // there is a grant
  output logic [      N-1:0] shared_o[Ways]      // another manager has requested this way during the last 16 to 32 grants
);

  localparam bit NOk = param_in("via_share N", N, 1, 64);
  localparam bit WaysOk = param_in("via_share Ways", Ways, 1, 2);
  localparam bit QuantumOk = param_pow2("via_share Quantum", Quantum, 1, 256);

  localparam bit MostOk = param_pow2("via_share Most", Most, Quantum, 256);

  localparam bit WeightBitsOk = param_in("via_share WeightBits", WeightBits, 1, 8);

  // From -Most to just below the quanta of the largest weight.
  localparam int unsigned BalanceW = ((QuantaW > $clog2(Most)) ? QuantaW : $clog2(Most)) + 1;

  logic [N-1:0] below[Ways], near[Ways], rich[Ways], any;  // near: one refill suffices, and may be
  logic [Ways-1:0] spent, used;  // nobody who requests has a balance; a grant is used
  logic all_spent, refill;
  logic [N-1:0] alone_q;  // in the last cycle only this one requested: it needs no balance
  logic [N-1:0] fill[Ways];  // a refill is for this balance, if it is below zero
  logic [N-1:0] may_fill_q;  // of the first class, or nobody of it requested in the last cycle
  logic first_fill_q;  // somebody of it did, and nobody of it had a balance

  always_comb begin
    any = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      any |= req_i[w];
      rich[w]  = req_i[w] & (~below[w] | alone_q);
      spent[w] = rich[w] == '0;
    end
  end
  assign all_spent = spent == '1;
  assign refill = all_spent && any != '0;
  always_comb for (int unsigned w = 0; w < Ways; w++) valid_o[w] = !spent[w] || all_spent && (req_i[w] & fill[w] & near[w]) != '0;
  assign used = ack_i & valid_o;

  // Registers change in a cycle with a request, and in the one behind it: in others there is nothing to simulate.
  logic moves, stirred_q;
  assign moves = any != '0 || stirred_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      alone_q   <= '0;
      stirred_q <= 1'b0;
    end else if (moves) begin
      alone_q   <= (any & (any - 1'b1)) == '0 ? any : '0;
      stirred_q <= any != '0;
    end
  end

  // Balances of the first class are refilled also while others have some.
  logic [N-1:0] first_any, first_rich;
  always_comb begin
    first_any  = '0;
    first_rich = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      first_any |= req_i[w] & first_i;
      first_rich |= rich[w] & first_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      may_fill_q   <= '1;
      first_fill_q <= 1'b0;
    end else if (moves) begin
      may_fill_q   <= first_i | {N{first_any == '0}};
      first_fill_q <= first_any != '0 && first_rich == '0;
    end
  end
  // Of a manager that requests both ways the next refill is for way `turn_q`.
  if (Ways > 1) begin : gen_turn
    logic [N-1:0] turn_q, both;
    assign both = req_i[0] & req_i[1];
    assign fill[0] = ~(req_i[1] & turn_q);
    assign fill[1] = ~(req_i[0] & ~turn_q);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) turn_q <= N'({N{2'b01}});
      else if (refill) turn_q <= turn_q ^ both & may_fill_q;
    end
  end else begin : gen_always
    assign fill[0] = '1;
  end

  // Who goes first is urgent, so that it waits for nobody's balance. By bursts nothing but the order bounds what goes before others: nobody
  // else is urgent then.
  logic [N-1:0] first_q;
  logic plain_q;
  always_ff @(posedge clk_i) begin
    first_q <= rst_ni ? first_i : '0;
    plain_q <= !rst_ni || plain_i;
  end

  // The first of those with a balance, and the first of all, are found at the same time.
  function automatic logic first(input logic [N-1:0] among, input logic [N-1:0] ahead, input int unsigned m);
    return among[m] && (among & ahead & ~(N'(1) << m)) == '0;
  endfunction

  for (genvar w = 0; w < Ways; w++) begin : gen_way
    // later_q[m][k]: k was granted after m, or has never been and has a higher number.
    logic [N-1:0] later_q[N], urgent;
    assign urgent = first_q | urgent_i[w] & {N{!plain_q}};
    always_comb begin
      gnt_o[w] = '0;
      if (req_i[w] != '0) begin
        for (int unsigned m = 0; m < N; m++) begin
          // Who is before m.
          automatic logic [N-1:0] precede = urgent[m] ? urgent & ~later_q[m] : urgent | ~later_q[m];
          gnt_o[w][m] = first(rich[w], precede, m) || all_spent && first(req_i[w] & fill[w] & near[w], precede, m);
        end
      end
    end
    for (genvar m = 0; m < N; m++) begin : gen_mgr
      logic signed [BalanceW-1:0] balance_q, refilled;
      logic near_q;  // of the last cycle, unless it has been granted since: so it is a bit, and what comes near is refilled once more
      assign refilled = balance_q + BalanceW'(quanta_i[m]);
      assign near[w][m] = near_q;
      assign below[w][m] = balance_q[BalanceW-1];
      always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
          balance_q  <= '0;
          near_q     <= 1'b0;
          later_q[m] <= {N{1'b1}} << m << 1;
        end else if (moves) begin
          automatic logic [7:0] charge = (9'(len_i[w][m]) >= 9'(Most)) ? 8'(Most - 1) : len_i[w][m];  // beats - 1
          automatic logic signed [BalanceW-1:0] base = balance_q;
          if (below[w][m] && (refill && fill[w][m] && may_fill_q[m] || first_fill_q && first_i[m])) base = refilled;
          if (below[w][m] && alone_q[m] && req_i[w][m]) base = '0;
          balance_q <= plain_i ? '0 : (used[w] && gnt_o[w][m]) ? base + ~BalanceW'(charge) : base;
          near_q    <= below[w][m] && !refilled[BalanceW-1] && !(used[w] && gnt_o[w][m]) && (first_i[m] || first_any == '0);
          if (used[w]) later_q[m] <= gnt_o[w][m] ? '0 : later_q[m] | gnt_o[w];
        end
      end
    end

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni && used[w]) begin
        a_one : assert ($onehot(gnt_o[w]));
      end
    end
`endif
  end

  // Counted in grants, so that nothing changes without one.
  localparam int unsigned RecentLog2 = 4;
  logic [RecentLog2-1:0] recent_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) recent_q <= '0;
    else if (used != '0) recent_q <= recent_q + 1'b1;
  end
  for (genvar w = 0; w < Ways; w++) begin : gen_shared
    logic [N-1:0] now_q, past_q, seen;
    assign seen = now_q | past_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        now_q       <= '0;
        past_q      <= '0;
        shared_o[w] <= '0;
      end else if (moves) begin
        if (used != '0 && recent_q == '1) begin
          now_q  <= req_i[w];
          past_q <= now_q;
        end else begin
          now_q <= now_q | req_i[w];
        end
        shared_o[w] <= (seen & (seen - 1'b1)) != '0 ? '1 : seen != '0 ? ~seen : '0;
      end
    end
  end

endmodule
