// SPDX-License-Identifier: Apache-2.0
//
// Convolution of an image of 8-bit pixels with [1 2 1; 2 4 2; 1 2 1] / 16, rounded to the nearest, halves up. What is outside of the image
// is zero. A message is an image, line by line from the top, `width` pixels in a line; so is the message it gives.
//
//   beat --+-> line above it -> line above that
//          |        |               |
//          +--------+---------------+-> + 1 2 1 -> + 1 2 1 of it and the pixels beside -> / 16 -> out
//
// Throughput: one beat a cycle, and behind each image width / StrbW + 1 cycles in which the next one waits. An image with lines of one beat
// takes two cycles for each. Latency: a line and four beats. Order: kept. A last line that ends early is continued with zeros, and the output
// is as long as the input. `width` is sampled with the first beat. Misuse: an image for which `width` is not a multiple of 64 from 64 to
// MaxWidth gives as many zeros, and counts as an error.

module conv_app
  import via_pkg::*;
#(
  parameter int unsigned MaxWidth = 131072  // pixels of a line, a power of two; two lines are held in block memory
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  strm_t        in_i,
  input  logic         in_valid_i,
  output logic         in_ready_o,
  output strm_t        out_o,
  output logic         out_valid_o,
  input  logic         out_ready_i,
  input  logic  [31:0] width_i,      // pixels of a line
  output logic  [31:0] errors_o,     // images for which width_i was wrong
  output logic         busy_o
);

  localparam bit MaxWidthOk = param_pow2("conv_app MaxWidth", MaxWidth, 128, 1 << 20);

  localparam int unsigned Pixels = StrbW;
  localparam int unsigned ColW = $clog2(MaxWidth / Pixels);

  typedef logic [Pixels-1:0][7:0] beat_t;
  typedef logic [Pixels-1:0][9:0] sums_t;
  typedef enum logic [1:0] {
    Start,  // an image is awaited
    Body,   // its beats come
    Fill,   // zeros up to the end of the line
    Below   // the line below the image, of zeros: gives the sums of the last one
  } state_e;

  // What goes with the sums of a beat.
  typedef struct packed {
    logic [7:0]        id;
    logic              eol;   // no pixel to the right of it is needed
    logic              last;  // of the image
    logic              drop;  // behind the last one
    logic [Pixels-1:0] keep;
  } side_t;

  // Everything moves at once: when the beat at the output does.
  logic go;
  assign go = !out_valid_o || out_ready_i;

  // ---------------------------------------------------------------- beats, and zeros behind them
  state_e state_q;
  logic [ColW-1:0] col_q, end_col_q, last_col_q;  // of this beat, of the last one of a line, of the last one of the image
  logic bad_q, top_q, second_q;  // the line is the first, the second
  logic [7:0] id_q;
  logic [Pixels-1:0] keep_q;  // of the last beat
  logic step, take, eol, behind, wait_q;
  logic  bad;  // width_i is wrong
  beat_t beat;

  // A line of one beat is written in the cycle after its beat, and read in the cycle after that.
  assign step = go && !wait_q && (state_q == Body ? in_valid_i : state_q != Start);
  assign in_ready_o = state_q == Body && go && !wait_q;
  assign take = state_q == Body && step;
  assign eol = col_q == end_col_q;
  assign bad = width_i[5:0] != '0 || width_i == '0 || width_i > 32'(MaxWidth);
  assign behind = state_q == Below && col_q > last_col_q;

  always_comb begin
    for (int unsigned i = 0; i < Pixels; i++) beat[i] = state_q == Body && in_i.keep[i] && !bad_q ? in_i.data[8*i+:8] : '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q  <= Start;
      wait_q   <= 1'b0;
      errors_o <= '0;
      busy_o   <= 1'b0;
    end else begin
      unique case (state_q)
        Start: if (in_valid_i) state_q <= Body;
        Body:  if (take && in_i.last) state_q <= eol ? Below : Fill;
        Fill:  if (step && eol) state_q <= Below;
        Below: if (step && (eol || behind)) state_q <= Start;
      endcase
      if (go) wait_q <= step && end_col_q == '0;
      if (state_q == Start && in_valid_i && bad) errors_o <= errors_o + 1'b1;
      busy_o <= go && (state_q == Fill || state_q == Below);
    end
    if (state_q == Start) begin
      col_q     <= '0;
      end_col_q <= bad ? '0 : ColW'((width_i - 32'd1) >> BeatLog2);
      bad_q     <= bad;
      top_q     <= 1'b1;
      second_q  <= 1'b0;
    end else if (step) begin
      col_q <= eol ? '0 : col_q + 1'b1;
      if (eol) begin
        top_q    <= 1'b0;
        second_q <= top_q;
      end
    end
    if (take) begin
      id_q       <= in_i.id;
      last_col_q <= col_q;
      keep_q     <= in_i.keep;
    end
  end

  // ---------------------------------------------------------------- lines
  logic valid1_q, top1_q, second1_q;
  logic [ColW-1:0] col1_q;
  beat_t beat1_q, above, above2;
  side_t side1_q;
  beat_t [1:0] lines;  // the line above, the one above that

  via_ram_sdp #(
    .Width(2 * DataW),
    .Depth(MaxWidth / Pixels)
  ) u_lines (
    .clk_i,
    .we_i   (valid1_q && go),
    .waddr_i(col1_q),
    .wdata_i({above, beat1_q}),
    .re_i   (step),
    .raddr_i(col_q),
    .rdata_o(lines)
  );
  assign above  = top1_q ? '0 : lines[0];
  assign above2 = top1_q || second1_q ? '0 : lines[1];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid1_q <= 1'b0;
    else if (go) valid1_q <= step;
    if (step) begin
      beat1_q   <= beat;
      col1_q    <= col_q;
      top1_q    <= top_q;
      second1_q <= second_q;
      side1_q   <= '{id: id_q, eol: eol || behind, last: state_q == Below && col_q == last_col_q, drop: behind, keep: keep_q};
    end
  end

  // ---------------------------------------------------------------- sums of three lines
  logic  valid2_q;
  sums_t sums2_q;
  side_t side2_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid2_q <= 1'b0;
    else if (go) valid2_q <= valid1_q && !top1_q;
    if (go && valid1_q) begin
      for (int unsigned i = 0; i < Pixels; i++) sums2_q[i] <= 10'(beat1_q[i]) + {1'b0, above[i], 1'b0} + 10'(above2[i]);
      side2_q <= side1_q;
    end
  end

  // ---------------------------------------------------------------- sums of three pixels
  // The beat of sums3_q waits for the one to the right of it.
  logic valid3_q, leave;
  sums_t sums3_q;
  side_t side3_q;
  logic [9:0] left_q;  // sum to the left of the beat
  logic [Pixels+1:0][9:0] row;

  assign leave = valid3_q && (valid2_q || side3_q.eol);
  assign row   = {side3_q.eol ? 10'b0 : sums2_q[0], sums3_q, left_q};

  strm_t out_q;
  logic  out_valid_q;
  assign out_o = out_q;
  assign out_valid_o = out_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid3_q    <= 1'b0;
      out_valid_q <= 1'b0;
    end else if (go) begin
      if (valid2_q) valid3_q <= 1'b1;
      else if (leave) valid3_q <= 1'b0;
      out_valid_q <= leave && !side3_q.drop;
    end
    if (go && valid2_q) begin
      sums3_q <= sums2_q;
      side3_q <= side2_q;
    end
    if (!rst_ni) left_q <= '0;
    else if (go && leave) left_q <= side3_q.eol ? '0 : sums3_q[Pixels-1];
    if (go && leave) begin
      out_q.id   <= side3_q.id;
      out_q.last <= side3_q.last;
      out_q.keep <= side3_q.last ? side3_q.keep : '1;
      for (int unsigned i = 0; i < Pixels; i++) begin
        logic [11:0] sum;
        sum = 12'(row[i]) + {1'b0, row[i+1], 1'b0} + 12'(row[i+2]) + 12'd8;
        out_q.data[8*i+:8] <= sum[11:4];
      end
    end
  end

endmodule
