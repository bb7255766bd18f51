// SPDX-License-Identifier: Apache-2.0
//
// Gives each group together with those above and below it.
//
//   group -> rows of the memory: the last Taps - 1 groups of this column -> taps_o[0], the newest, to taps_o[Taps-1]
//
// What comes out belongs to the group in the middle, taps_o[Taps/2], so it is Taps / 2 lines late. Rows above the image are zero; those below
// it must be sent, with `valid` zero. Throughput: a group in each cycle with en_i. Latency: two of them, besides the lines. A line has three
// groups or more. Everything moves with en_i only.

module flow_rows
  import flow_pkg::*;
#(
  parameter int unsigned Taps    = 5,    // odd
  parameter int unsigned Width   = 8,    // of a pixel
  parameter int unsigned MaxLine = 2048  // groups of a line, a power of two
) (
  input  logic                                     clk_i,
  input  logic                                     rst_ni,
  input  logic                                     en_i,
  input  tag_t                                     tag_i,
  input  logic [Pixels-1:0][ Width-1:0]            s_i,
  output tag_t                                     tag_o,
  output logic [  Taps-1:0][Pixels-1:0][Width-1:0] taps_o
);

  localparam bit TapsOk = via_pkg::param_in("flow_rows Taps", Taps, 3, 7);
  localparam bit MaxLineOk = via_pkg::param_pow2("flow_rows MaxLine", MaxLine, 8, 1 << 16);
  localparam bit WidthOk = via_pkg::param_in("flow_rows Width", Width, 1, 256);

  localparam int unsigned Half = Taps / 2;
  localparam int unsigned ColW = $clog2(MaxLine);

  typedef logic [Pixels-1:0][Width-1:0] group_t;

  tag_t   [Half-1:0] above_tag;  // of the groups above, the nearest first; as many as are needed
  group_t [Taps-2:0] above;
  logic [ColW-1:0] next_q, col, col_q;
  tag_t   tag_q;
  group_t s_q;

  assign col = tag_i.first ? '0 : next_q;

  via_ram_sdp #(
    .Width($bits(above_tag) + $bits(above)),
    .Depth(MaxLine)
  ) u_above (
    .clk_i,
    .we_i   (en_i),
    .waddr_i(col_q),
    .wdata_i({(Half * $bits(tag_t))'({above_tag, tag_q}), ((Taps - 1) * $bits(group_t))'({above, s_q})}),
    .re_i   (en_i),
    .raddr_i(col),
    .rdata_o({above_tag, above})
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tag_q <= '0;
      tag_o <= '0;
    end else if (en_i) begin
      tag_q <= tag_i;
      // A group above the image is outside of it, and nothing in the memory counts, there or behind here.
      if (32'(tag_q.row) >= Half) tag_o <= above_tag[Half-1];
      else tag_o <= '{valid: '0, first: tag_q.first, last: tag_q.last, row: '0, close: 1'b0};
    end
    if (en_i) begin
      next_q <= col + 1'b1;
      col_q <= col;
      s_q <= s_i;
      taps_o[0] <= s_q;
      for (int unsigned t = 1; t < Taps; t++) taps_o[t] <= 32'(tag_q.row) >= t ? above[t-1] : '0;
    end
  end

endmodule
