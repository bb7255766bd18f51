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

  logic [IW-1:0] last_q;  // granted last: the one behind it goes first
  logic [IW-1:0] idx;

  // The lowest request above last_q, else the lowest request at all.
  always_comb begin
    idx = '0;
    for (int unsigned i = N; i > 0; i--) if (req_i[i-1]) idx = IW'(i - 1);
    for (int unsigned i = N; i > 0; i--) if (req_i[i-1] && IW'(i - 1) > last_q) idx = IW'(i - 1);
  end

  assign valid_o = |req_i;
  assign idx_o   = idx;
  assign gnt_o   = valid_o ? N'(1) << idx : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) last_q <= IW'(N - 1);
    else if (ack_i && valid_o) last_q <= idx;
  end

endmodule
