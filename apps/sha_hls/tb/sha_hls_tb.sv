// SPDX-License-Identifier: Apache-2.0
//
// The generated app with the types of an app's ports: its own are plain vectors.

module sha_hls_tb
  import via_pkg::*;
(
  input  logic  clk_i,
  input  logic  rst_ni,
  input  strm_t in_i,
  input  logic  in_valid_i,
  output logic  in_ready_o,
  output strm_t out_o,
  output logic  out_valid_o,
  input  logic  out_ready_i,
  output logic  busy_o
);

  sha_hls_app u_app (
    .clk_i      (clk_i),
    .rst_ni     (rst_ni),
    .in_i       (in_i),
    .in_valid_i (in_valid_i),
    .in_ready_o (in_ready_o),
    .out_o      (out_o),
    .out_valid_o(out_valid_o),
    .out_ready_i(out_ready_i),
    .busy_o     (busy_o)
  );

endmodule
