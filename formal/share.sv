// SPDX-License-Identifier: Apache-2.0
//
// via_share, without bound, for one way and for two, with weights of the managers (`Weights`, 2 bits each): while somebody requests it grants, or
// gives balances below zero their quanta, so it idles for at most Most / Quantum + 1 cycles, with two ways 2 * Most / Quantum + 1; it grants only who
// requests, one at a time in a way; a request of weight f waits for less than Ways * (2 * Quantum * k + Most * k / f) + Most beats of another of weight k
// in each way, whoever is urgent; beats for each unit of weight of two managers that each request the same ways without pause differ by less than
// Quantum + Most / weight for each way that each of them requests, in any time.
//
// A manager that requested alone in the last cycle is granted in both ways; beats are counted from then on.
//
// With `Classes` managers may be of the class that goes first, and enter and leave it at any time. In a cycle behind one in which one of it requests no
// balance of another becomes greater, so such a manager is given what its balance was, and a burst, until those requests end. Who requests and is of
// the class is granted, or another is, or its balance is refilled. Shares and waits are proved without it: in one class all is the same.
//
// With `Plain` somebody is granted in every cycle with a request, and each of the others at most once in a way while one waits.
//
// Assumed: requests and their lengths stay until they are granted, and no burst is longer than Most.

module share #(
  parameter int unsigned           N       = 3,
  parameter int unsigned           Ways    = 2,
  parameter int unsigned           Quantum = 2,
  parameter int unsigned           Most    = 4,
  parameter bit          [2*N-1:0] Weights = {N{2'd1}},
  parameter bit                    Classes = 1'b0,
  parameter bit                    Plain   = 1'b0
) (
  input logic            clk_i,
  input logic            rst_ni,
  input logic [   N-1:0] first_i,
  input logic [   N-1:0] req_i   [Ways],
  input logic [     7:0] len_i   [Ways][N],
  input logic [   N-1:0] urgent_i[Ways],
  input logic [Ways-1:0] ack_i
);

  localparam int unsigned W = 10;
  localparam int unsigned F = Ways * N;  // flows: manager m in way w is flow w * N + m
  logic [   N-1:0] gnt  [Ways];
  logic [Ways-1:0] valid;

  logic [$clog2(Quantum)+1:0] refill[N];
  always_comb for (int unsigned m = 0; m < N; m++) refill[m] = ($clog2(Quantum) + 2)'(quanta(m));
  // Weight of a flow, and what a refill gives it.
  function automatic int unsigned weight_of(input int unsigned f);
    return 32'(Weights[2*(f%N)+:2]);
  endfunction
  function automatic int unsigned quanta(input int unsigned f);
    return Quantum * weight_of(f);
  endfunction

  via_share #(
    .N         (N),
    .Ways      (Ways),
    .Quantum   (Quantum),
    .Most      (Most),
    .WeightBits(2)
  ) dut (
    .clk_i,
    .rst_ni,
    .quanta_i(refill),
    .plain_i (Plain),
    .first_i,
    .req_i,
    .len_i,
    .urgent_i,
    .ack_i,
    .gnt_o(gnt),
    .valid_o(valid),
    .shared_o()
  );

  logic begun_q = 1'b0;
  logic [F-1:0] req, granted, kept_q;  // kept_q: requested and not granted
  logic [F-1:0][7:0] len, len_q;
  logic signed [W-1:0] balance[F];
  logic [F-1:0][N-1:0] later;  // later_q of its way
  logic [F-1:0] turn;  // with two ways: the next refill is for it
  // Beats of k since f waits.
  logic [F-1:0][F-1:0][W-1:0] others_q;
  // Cycles without a grant since f waits.
  logic [F-1:0][W-1:0] idle_q;
  // Beats of the first two managers, each times the other's weight, since each requests the same ways without pause: the ways, and the balances then.
  logic signed [W-1:0] ahead_q, ahead, sum[2], before_q[2];
  logic [1:0][Ways-1:0] asks, ways_q;
  logic asked_q, both_q;  // both requested in the last cycle; in the last two

  for (genvar w = 0; w < Ways; w++) begin : gen_way
    for (genvar m = 0; m < N; m++) begin : gen_mgr
      assign req[w*N+m] = req_i[w][m];
      assign len[w*N+m] = len_i[w][m];
      assign granted[w*N+m] = ack_i[w] && gnt[w][m];
      assign balance[w*N+m] = W'(dut.gen_way[w].gen_mgr[m].balance_q);
      assign later[w*N+m] = dut.gen_way[w].later_q[m];
      if (Ways > 1) begin : gen_turn
        assign turn[w*N+m] = dut.gen_turn.turn_q[m] == 1'(w);
      end else begin : gen_none
        assign turn[w*N+m] = 1'b0;
      end
    end
  end

  // All that f has been given since it waits, at most, of both ways.
  function automatic int unsigned raised(input int unsigned f);
    return Ways * 32'(balance[f] + $signed(W'(Most)));
  endfunction

  always_comb begin
    ahead = '0;
    for (int unsigned m = 0; m < 2; m++) begin
      sum[m]  = '0;
      asks[m] = '0;
      for (int unsigned w = 0; w < Ways; w++) begin
        asks[m][w] = req[w*N+m];
        if (asks[m][w]) begin
          sum[m] += balance[w*N+m];
          if (granted[w*N+m]) begin
            if (m == 0) ahead += W'(weight_of(1)) * (W'(len[w*N+m]) + W'(1));
            else ahead -= W'(weight_of(0)) * (W'(len[w*N+m]) + W'(1));
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    if (!Classes) assume (first_i == '0);
    for (int unsigned f = 0; f < F; f++) begin
      assume (32'(len[f]) < Most);
      if (kept_q[f]) assume (req[f] && len[f] == len_q[f]);
    end
    len_q <= len;
    if (!rst_ni) begin
      kept_q   <= '0;
      asked_q  <= 1'b0;
      both_q   <= 1'b0;
      others_q <= '0;
      idle_q   <= '0;
    end else begin
      kept_q <= req & ~granted;
      for (int unsigned f = 0; f < F; f++) begin
        idle_q[f] <= (!req[f] || valid != '0) ? '0 : idle_q[f] + W'(1);
        for (int unsigned k = 0; k < F; k++) begin
          others_q[f][k] <= (!req[f] || granted[f] || dut.alone_q != '0) ? '0 : others_q[f][k] + (granted[k] ? W'(len[k]) + W'(1) : '0);
        end
      end
      asked_q <= asks[0] != '0 && asks[1] != '0;
      both_q  <= asks[0] != '0 && asks[1] != '0 && asked_q;
      ways_q  <= asks;
      ahead_q <= (both_q && ways_q == asks ? ahead_q : '0) + ahead;
      if (!both_q || ways_q != asks) before_q <= sum;

      i_alone : assert ($onehot0(dut.alone_q) && (!asked_q || dut.alone_q == '0) && (!both_q || asked_q));
    end
  end

  // The sums of the balances now, over the ways of before.
  logic signed [W-1:0] now[2];
  always_comb begin
    for (int unsigned m = 0; m < 2; m++) begin
      now[m] = '0;
      for (int unsigned w = 0; w < Ways; w++) if (ways_q[m][w]) now[m] += balance[w*N+m];
    end
  end
  // From -Most to just below the quanta of manager m, for each way.
  function automatic logic in_range(input logic signed [W-1:0] sum, input int unsigned ways, input int unsigned m);
    return sum >= -$signed(W'(ways * Most)) && sum < $signed(W'(ways * quanta(m)));
  endfunction
  logic [W-1:0] most;
  assign most = W'((quanta(0) + Most) * weight_of(1) * $countones(ways_q[0]) + (quanta(1) + Most) * weight_of(0) * $countones(ways_q[1]));
  always_ff @(posedge clk_i) begin
    if (rst_ni && both_q && !Classes && !Plain) begin
      i_start : assert (in_range(before_q[0], $countones(ways_q[0]), 0) && in_range(before_q[1], $countones(ways_q[1]), 1));
      i_account :
      assert (ahead_q == $signed(W'(weight_of(1))) * (before_q[0] - now[0]) - $signed(W'(weight_of(0))) * (before_q[1] - now[1]));
      a_even : assert (ahead_q < $signed(most) && ahead_q > -$signed(most));
    end
  end

  for (genvar w = 0; w < Ways; w++) begin : gen_one
    always_ff @(posedge clk_i) begin
      if (rst_ni)
        a_one :
        assert ((valid[w] || (req_i[w] & dut.alone_q) == '0) && $onehot0(
            gnt[w]
        ) && (gnt[w] != '0) == valid[w] && (gnt[w] & ~req_i[w]) == '0);
    end
  end

  // Of the last cycle: somebody of the first class had requested in the one before it; who was of that class then and
  // before; something could be granted.
  logic asked_first_q, behind_q, past_valid_q;
  logic [N-1:0] first_q, first_before_q;
  logic [F-1:0] firm_q;  // requested as one of the first class in the last two cycles, and was not granted
  logic [F-1:0] class_q;
  always_ff @(posedge clk_i) begin
    logic [F-1:0] classed;
    for (int unsigned f = 0; f < F; f++) classed[f] = req[f] && first_i[f%N];
    asked_first_q  <= rst_ni && classed != '0;
    behind_q       <= rst_ni && asked_first_q;
    first_q        <= first_i;
    first_before_q <= first_q;
    past_valid_q   <= valid != '0;
    class_q        <= rst_ni ? classed : '0;
    firm_q         <= rst_ni ? classed & class_q : '0;
    if (rst_ni) begin
      i_may : assert (dut.may_fill_q == (first_q | {N{!asked_first_q}}));
      i_fill : assert (!dut.first_fill_q || asked_first_q);
      i_stirred : assert (dut.stirred_q || dut.may_fill_q == '1 && !dut.first_fill_q && !asked_first_q);
      i_class : assert (Classes || !asked_first_q && !behind_q && class_q == '0 && firm_q == '0);
      i_asked : assert (asked_first_q == (class_q != '0) && (class_q & ~{Ways{first_q}}) == '0);
    end
  end

  for (genvar f = 0; f < F; f++) begin : gen_flow
    logic signed [W-1:0] past_balance = '0;
    logic past_granted = 1'b0, past_alone = 1'b0;
    logic [W-1:0] past_len;
    always_ff @(posedge clk_i) begin
      past_balance <= balance[f];
      past_granted <= granted[f];
      past_len     <= len[f];
      past_alone   <= dut.alone_q[f%N];
      if (!rst_ni) begin
        past_balance <= '0;
        past_granted <= 1'b0;
      end
    end
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        i_range : assert (in_range(balance[f], 1, f));
        i_near : assert (!dut.near[f/N][f%N] || balance[f] >= -$signed(W'(quanta(f))) && dut.may_fill_q[f%N]);
        if (Plain) a_always : assert (idle_q[f] == '0);
        if (Plain) i_zero : assert (balance[f] == '0 && dut.first_q == '0 && dut.plain_q);
        else if (!Classes) begin
          a_works : assert (32'(idle_q[f]) <= Ways * Most / Quantum + 1);
          i_works : assert (idle_q[f] == '0 || kept_q[f] && 32'(idle_q[f]) * Quantum <= raised(f) + 32'(turn[f]) * Quantum);
        end
        if (behind_q && !first_q[f%N] && !first_before_q[f%N] && !past_alone) a_behind : assert (balance[f] <= past_balance);
        // The refill of the other way may be before it.
        if (Classes && Ways == 1 && firm_q[f]) a_served : assert (past_valid_q || balance[f] > past_balance);
        // What is granted without a balance has been refilled; nothing else makes a balance greater.
        if (past_granted && past_balance < 0 && !Plain)
          a_refilled : assert (balance[f] == (past_alone ? '0 : past_balance + $signed(W'(quanta(f)))) - $signed(past_len) - W'(1));
        if (!past_granted && past_balance >= 0) a_kept : assert (balance[f] == past_balance);
        i_self : assert (others_q[f][f] == '0 && (kept_q[f] || others_q[f] == '0));
      end
    end
    for (genvar k = 0; k < F; k++) begin : gen_other
      if (k != f) begin : gen_pair
        // Times the weight of f, so that all are whole numbers: beats of k since f waits, and k's balance.
        logic signed [W-1:0] waited, left;
        assign waited = $signed(W'(weight_of(f))) * $signed(others_q[f][k]);
        assign left   = $signed(W'(weight_of(f))) * balance[k];
        always_ff @(posedge clk_i) begin
          if (rst_ni && Plain && k / N == f / N) a_once : assert (32'(others_q[f][k]) <= Most);
          if (rst_ni && !Classes && !Plain) begin
            // What k has spent since f waits: what it had, and a quantum for each refill. With two ways f has had half of them, and one may have been
            // for the other way of f's manager; then the next one is for f. None comes while f has a balance.
            if (kept_q[f] && balance[f] < 0)
              i_spent : assert (waited < $signed(W'((1 + 32'(turn[f])) * quanta(k) * weight_of(f) + raised(f) * weight_of(k))) - left);
            if (kept_q[f] && balance[f] >= 0)
              i_second : assert (waited < $signed(W'(Ways * (2 * quanta(k) * weight_of(f) + Most * weight_of(k)))) - left);
            a_waits : assert (waited < $signed(W'(Ways * (2 * quanta(k) * weight_of(f) + Most * weight_of(k)) + Most * weight_of(f))));
          end
        end
      end
      if (k != f && k / N == f / N) begin : gen_same
        always_ff @(posedge clk_i) begin
          if (rst_ni) begin
            i_order : assert (later[f][k%N] != later[k][f%N]);
            // Who was granted while f waits comes after f.
            i_after : assert (others_q[f][k] == '0 || kept_q[f] && later[f][k%N]);
          end
        end
        for (genvar j = 0; j < F; j++) begin : gen_third
          if (j != f && j != k && j / N == f / N) begin : gen_chain
            always_ff @(posedge clk_i) begin
              if (rst_ni) i_chain : assert (!later[f][k%N] || !later[k][j%N] || later[f][j%N]);
            end
          end
        end
      end
    end
  end

endmodule
