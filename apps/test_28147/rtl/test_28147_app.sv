// SPDX-License-Identifier: Apache-2.0
//
// Passes bytes on, each XORed with a mask. One beat per cycle, latency one cycle, order kept.
// Streams: `keep` marks valid bytes, `last` ends a message; a beat moves when valid and ready are both high.
// Both sides of these ports are registered, so `ready` may depend on the `ready` it comes from.

module test_28147_app
  import via_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  strm_t       in_i,
  input  logic        in_valid_i,
  output logic        in_ready_o,
  output strm_t       out_o,
  output logic        out_valid_o,
  input  logic        out_ready_i,
  input  logic  [7:0] mask_i
);

  assign in_ready_o = !out_valid_o || out_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) out_valid_o <= 1'b0;
    else if (in_ready_o) out_valid_o <= in_valid_i;

    if (in_valid_i && in_ready_o) begin
      out_o      <= in_i;
      out_o.data <= in_i.data ^ {StrbW{mask_i}};
    end
  end

endmodule
