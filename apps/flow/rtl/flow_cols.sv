// SPDX-License-Identifier: Apache-2.0
//
// Gives each group together with the pixels to the left and to the right of it.
//
// Throughput: a group in each cycle with en_i. Latency: two of them. What is outside of a line is zero.

module flow_cols
  import flow_pkg::*;
#(
  parameter int unsigned Half  = 2,  // pixels on each side, at most 4
  parameter int unsigned Width = 8
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,
  input  logic                                en_i,
  input  tag_t                                tag_i,
  input  logic [       Pixels-1:0][Width-1:0] s_i,
  output tag_t                                tag_o,
  output logic [Pixels+2*Half-1:0][Width-1:0] row_o    // [Half] is the first pixel of the group
);

  localparam bit HalfOk = via_pkg::param_in("flow_cols Half", Half, 1, Pixels);
  localparam bit WidthOk = via_pkg::param_in("flow_cols Width", Width, 1, 256);

  logic [Half-1:0][Width-1:0] left_q;
  logic [Pixels-1:0][Width-1:0] s_q;
  tag_t tag_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {tag_o, tag_q} <= '0;
    else if (en_i) {tag_o, tag_q} <= {tag_q, tag_i};
    if (en_i) begin
      s_q    <= s_i;
      left_q <= s_q[Pixels-1-:Half];
      row_o  <= {tag_q.last ? '0 : s_i[Half-1:0], s_q, tag_q.first ? '0 : left_q};
    end
  end

endmodule
