// SPDX-License-Identifier: Apache-2.0
//
// Collects interrupt requests and passes them to the MSI-X port one at a time, round robin. Throughput: one a cycle. Latency: two cycles. A
// request for a vector that is already pending is merged with it; every request is followed by an interrupt.

module via_msix #(
  parameter int unsigned NumVec = 8
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [NumVec-1:0] set_i,          // one-cycle pulses: request an interrupt
  output logic              msix_valid_o,
  output logic [       7:0] msix_vector_o,  // MSI-X vector
  input  logic              msix_ready_i,
  output logic              idle_o          // level: nothing is pending
);

  localparam bit NumVecOk = via_pkg::param_in("via_msix NumVec", NumVec, 2, 256);

  localparam int unsigned VW = $clog2(NumVec);

  logic [NumVec-1:0] pend_q, gnt;
  logic [VW-1:0] idx;
  logic any, load, valid_q;
  logic [7:0] vector_q;

  assign load = any && (!valid_q || msix_ready_i);

  via_rr_arb #(
    .N(NumVec)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (pend_q),
    .ack_i  (load),
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(any)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pend_q  <= '0;
      valid_q <= 1'b0;
    end else begin
      pend_q <= (pend_q & ~(gnt &{NumVec{load}})) | set_i;
      if (load) valid_q <= 1'b1;
      else if (msix_ready_i) valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) if (load) vector_q <= 8'(idx);

  assign msix_valid_o = valid_q;
  assign msix_vector_o = vector_q;
  assign idle_o = ~|{pend_q, set_i, valid_q};

endmodule
