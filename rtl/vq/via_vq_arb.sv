// SPDX-License-Identifier: Apache-2.0
//
// Arbiter with a short path from request to grant: among the requesters, the one granted longest ago wins. It keeps one bit per pair of
// requesters instead of a rotating priority (via_rr_arb), so a grant is a request with no other request ahead of it: two levels of logic
// for four requesters.
// Throughput: one grant per cycle. Latency: none. `ack_i` gives the granted one the lowest priority. Order: fair, a requester is overtaken
// by each other one at most once. Without `ack_i` nothing changes.

module via_vq_arb #(
  parameter  int unsigned N  = 4,
  localparam int unsigned IW = (N > 1) ? $clog2(N) : 1
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic [ N-1:0] req_i,   // level: one bit per requester; may change in any cycle
  input  logic          ack_i,   // level: the grant of this cycle is used
  output logic [ N-1:0] gnt_o,   // granted requester, one-hot; zero if there is none
  output logic [IW-1:0] idx_o,   // its index
  output logic          valid_o
);

  localparam bit NOk = via_pkg::param_in("via_vq_arb N", N, 1, 16);

  logic [N-1:0][N-1:0] ahead;  // [i][j]: j has priority over i

  for (genvar i = 0; i < N; i++) begin : gen_one
    assign gnt_o[i]    = req_i[i] && (req_i & ahead[i]) == '0;
    assign ahead[i][i] = 1'b0;
    for (genvar j = 0; j < i; j++) begin : gen_pair
      logic first_q;  // j has priority over i
      assign ahead[i][j] = first_q;
      assign ahead[j][i] = !first_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) first_q <= 1'b1;
        else if (ack_i && gnt_o[i]) first_q <= 1'b1;
        else if (ack_i && gnt_o[j]) first_q <= 1'b0;
      end
    end
  end

  if (N == 1) begin : gen_no_turns
    logic unused;
    assign unused = &{clk_i, rst_ni, ack_i};
  end

  assign valid_o = |req_i;
  logic [N-1:0][IW-1:0] number;
  for (genvar i = 0; i < N; i++) begin : gen_number
    assign number[i] = IW'(i);
  end
  via_vq_pick #(
    .N    (N),
    .Width(IW)
  ) u_idx (
    .sel_i(gnt_o),
    .s_i  (number),
    .m_o  (idx_o)
  );

endmodule
