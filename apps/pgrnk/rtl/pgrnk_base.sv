// SPDX-License-Identifier: Apache-2.0
//
// What every vertex of share 1 gets in an iteration: 1 - damping, and of the ranks of vertices without edges out of them, `mass`, the damped
// mean over all vertices.
//
//   mass / vertices -> * damping -> + 1 - damping
//
// Throughput, latency: one in 70 cycles.

module pgrnk_base (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        start_i,     // one-cycle pulse
  input  logic [63:0] mass_i,      // with start_i, 2^-32
  input  logic [31:0] vertices_i,  // constant, not zero
  input  logic [31:0] damping_i,   // constant, 2^-31, at most 1
  output logic [31:0] base_o,      // 2^-31
  output logic        valid_o      // one-cycle pulse, with base_o
);

  // A bit of the quotient each cycle; it replaces the dividend from the right.
  logic [63:0] quotient_q, damped;
  logic [32:0] rest, rest_q;
  logic [5:0] step_q;
  logic run_q, divided_q, damped_valid;

  assign rest = {rest_q[31:0], quotient_q[63]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      run_q     <= 1'b0;
      divided_q <= 1'b0;
      valid_o   <= 1'b0;
    end else begin
      if (start_i) run_q <= 1'b1;
      else if (step_q == '1) run_q <= 1'b0;
      divided_q <= run_q && step_q == '1;
      valid_o   <= damped_valid;
    end
    if (start_i) begin
      step_q     <= '0;
      rest_q     <= '0;
      quotient_q <= mass_i;
    end else if (run_q) begin
      step_q     <= step_q + 1'b1;
      quotient_q <= {quotient_q[62:0], rest >= 33'(vertices_i)};
      rest_q     <= rest >= 33'(vertices_i) ? rest - 33'(vertices_i) : rest;
    end
    if (damped_valid) base_o <= 32'h8000_0000 - damping_i + damped[32:1];
  end

  pgrnk_mul u_mul (
    .clk_i,
    .rst_ni,
    .a_i    (quotient_q),
    .b_i    (damping_i),
    .valid_i(divided_q),
    .p_o    (damped),
    .valid_o(damped_valid)
  );

endmodule
