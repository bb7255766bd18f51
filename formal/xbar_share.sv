// SPDX-License-Identifier: Apache-2.0
//
// via_xbar_share, without bound: it never idles while somebody requests, grants only who requests, and one at a time; who requests waits for less
// than three quanta of each of the others, whoever is urgent; beats of two that request without pause differ by less than four quanta, in any time.
//
// Assumed: requests and their lengths stay until they are granted, and no burst is longer than a quantum.

module xbar_share #(
  parameter int unsigned N       = 3,
  parameter int unsigned Quantum = 4
) (
  input logic         clk_i,
  input logic         rst_ni,
  input logic [N-1:0] req_i,
  input logic [  7:0] len_i   [N],
  input logic [N-1:0] urgent_i,
  input logic         ack_i
);

  localparam int unsigned W = 8;
  logic [N-1:0] gnt;
  logic valid;

  via_xbar_share #(
    .N      (N),
    .Quantum(Quantum)
  ) dut (
    .clk_i,
    .rst_ni,
    .req_i,
    .len_i,
    .urgent_i,
    .ack_i,
    .gnt_o(gnt),
    .valid_o(valid),
    .shared_o()
  );

  logic begun_q = 1'b0;
  logic [N-1:0] kept_q;  // requested and not granted
  logic [N-1:0][7:0] len_q;
  logic signed [W-1:0] balance[N];
  logic signed [1:0][W-1:0] before_q;
  // Beats of k since m waits; beats of the first two since both request without pause, their balances then.
  logic [N-1:0][N-1:0][W-1:0] others_q;
  logic signed [W-1:0] ahead_q;
  logic both_q;
  logic [N-1:0] granted;
  assign granted = ack_i ? gnt : '0;
  always_comb for (int unsigned m = 0; m < N; m++) balance[m] = W'(dut.balance_q[m]);

  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    for (int unsigned m = 0; m < N; m++) begin
      assume (32'(len_i[m]) < Quantum);
      if (kept_q[m]) assume (req_i[m] && len_i[m] == len_q[m]);
    end
    for (int unsigned m = 0; m < N; m++) len_q[m] <= len_i[m];
    if (!rst_ni) begin
      kept_q   <= '0;
      both_q   <= 1'b0;
      others_q <= '0;
    end else begin
      kept_q <= req_i & ~granted;
      for (int unsigned m = 0; m < N; m++) begin
        for (int unsigned k = 0; k < N; k++) begin
          others_q[m][k] <= (!req_i[m] || granted[m]) ? '0 : others_q[m][k] + (granted[k] ? W'(len_i[k]) + W'(1) : '0);
        end
      end
      both_q <= req_i[0] && req_i[1];
      if (req_i[0] && req_i[1]) begin
        ahead_q <= (both_q ? ahead_q : '0) + (granted[0] ? W'(len_i[0]) + W'(1) : '0) - (granted[1] ? W'(len_i[1]) + W'(1) : '0);
        if (!both_q) before_q <= {balance[1], balance[0]};
      end

      a_works : assert (valid == |req_i);
      a_one : assert ($onehot0(gnt) && (gnt != '0) == valid && (gnt & ~req_i) == '0);
      if (both_q) begin
        i_start :
        assert ($signed(
            before_q[0]
        ) >= -$signed(
            W'(Quantum)
        ) && $signed(
            before_q[0]
        ) < $signed(
            W'(Quantum)
        ) && $signed(
            before_q[1]
        ) >= -$signed(
            W'(Quantum)
        ) && $signed(
            before_q[1]
        ) < $signed(
            W'(Quantum)
        ));
        i_account : assert (ahead_q == ($signed(before_q[0]) - balance[0]) - ($signed(before_q[1]) - balance[1]));
        a_even : assert (ahead_q < $signed(W'(4 * Quantum)) && ahead_q > -$signed(W'(4 * Quantum)));
      end
    end
  end

  for (genvar m = 0; m < N; m++) begin : gen_mgr
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        i_range : assert (balance[m] >= -$signed(W'(Quantum)) && balance[m] < $signed(W'(Quantum)));
        i_self : assert (others_q[m][m] == '0);
      end
    end
    for (genvar k = 0; k < N; k++) begin : gen_other
      if (k != m) begin : gen_pair
        always_ff @(posedge clk_i) begin
          if (rst_ni) begin
            i_order : assert (dut.later_q[m][k] != dut.later_q[k][m]);
            // Who was granted while m waits comes after m.
            i_after : assert (others_q[m][k] == '0 || kept_q[m] && dut.later_q[m][k]);
            if (kept_q[m] && balance[m] < 0) i_spent : assert ($signed(others_q[m][k]) < $signed(W'(Quantum)) - balance[k]);
            // Nobody gets a new quantum while m has a balance and waits.
            if (kept_q[m] && balance[m] >= 0) i_second : assert ($signed(others_q[m][k]) < $signed(W'(2 * Quantum)) - balance[k]);
            a_waits : assert (32'(others_q[m][k]) < 3 * Quantum);
          end
        end
        for (genvar j = 0; j < N; j++) begin : gen_third
          if (j != m && j != k) begin : gen_chain
            always_ff @(posedge clk_i) begin
              if (rst_ni) i_chain : assert (!dut.later_q[m][k] || !dut.later_q[k][j] || dut.later_q[m][j]);
            end
          end
        end
      end
    end
  end

endmodule
