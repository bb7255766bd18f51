// SPDX-License-Identifier: Apache-2.0
//
// Round-robin arbiter: grants one of N requests, combinationally. `ack_i` gives the granted requester the lowest priority.
// Without `ack_i` the priority does not move, so an idle arbiter changes no register. Throughput: one grant per cycle. Latency: none.

module via_rr_arb #(
  parameter  int unsigned N  = 4,
  localparam int unsigned IW = (N > 1) ? $clog2(N) : 1
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic [ N-1:0] req_i,   // level: one bit per requester; may change in any cycle
  input  logic          ack_i,   // level: the grant of this cycle is used
  output logic [ N-1:0] gnt_o,   // granted requester, one-hot; zero if there is none
  output logic [IW-1:0] idx_o,   // its index; zero if there is none
  output logic          valid_o  // there is a grant
);

  localparam bit NOk = via_pkg::param_in("via_rr_arb N", N, 1, 256);

  logic [N-1:0] behind_q;  // requesters after the one granted last: they have priority
  logic [N-1:0] pool, behind;

  // All bits above the lowest set one, computed as a tree; a subtraction would be a carry chain.
  function automatic logic [N-1:0] above(input logic [N-1:0] x);
    above = x << 1;
    for (int unsigned k = 1; k < N; k *= 2) above |= above << k;
  endfunction

  // The lowest requester of those after the last grant, or else of all; one-hot.
  assign pool    = |(req_i & behind_q) ? req_i & behind_q : req_i;
  assign behind  = |(req_i & behind_q) ? above(req_i & behind_q) : above(req_i);
  assign gnt_o   = pool & ~behind;
  assign valid_o = |req_i;

  always_comb begin
    idx_o = '0;
    for (int unsigned i = 0; i < N; i++) if (gnt_o[i]) idx_o |= IW'(i);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) behind_q <= '0;
    else if (ack_i && valid_o) behind_q <= behind;
  end

endmodule
