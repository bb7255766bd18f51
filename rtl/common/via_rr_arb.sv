// SPDX-License-Identifier: Apache-2.0
//
// Round-robin arbiter: grants one of N requests, combinationally; `ack_i` moves the granted one to the back.
// Without `ack_i` the priority does not move, so an idle arbiter changes no register.

module via_rr_arb #(
  parameter  int unsigned N  = 4,
  localparam int unsigned IW = (N > 1) ? $clog2(N) : 1
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic [ N-1:0] req_i,
  input  logic          ack_i,
  output logic [ N-1:0] gnt_o,
  output logic [IW-1:0] idx_o,
  output logic          valid_o
);

  localparam bit NOk = via_pkg::param_in("via_rr_arb N", N, 1, 256);

  logic [N-1:0] behind_q;  // those behind the one granted last: they go first
  logic [N-1:0] pool, behind;

  // Those above the lowest that is set, as a tree: a subtraction would be a carry chain.
  function automatic logic [N-1:0] above(input logic [N-1:0] x);
    above = x << 1;
    for (int unsigned k = 1; k < N; k *= 2) above |= above << k;
  endfunction

  // Of those behind the last grant, else of all, the lowest; as one bit.
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
