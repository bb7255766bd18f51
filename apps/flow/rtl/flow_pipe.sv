// SPDX-License-Identifier: Apache-2.0
//
// Optical flow of groups of pixels of five frames, after the Rosetta suite (Zhou et al., FPGA 2018): gradients, their weighted means, products,
// weighted means of these, and the solution of two equations for each pixel.
//
//   frames -> dy, dz -> dx -> means of 7 rows, 7 columns -> six products -> means of 3 rows, 3 columns -> divisions
//
// What is outside of the image is zero in every step. Throughput: a group in each cycle with en_i. Latency: six lines and about 60 of them.

module flow_pipe
  import flow_pkg::*;
#(
  parameter int unsigned MaxLine = 2048  // groups of a line
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic                         en_i,
  input  tag_t                         tag_i,
  input  logic [Pixels-1:0][4:0][ 7:0] s_i,     // frames, the oldest first
  output tag_t                         tag_o,
  output logic [Pixels-1:0][1:0][15:0] m_o      // movement of a frame in x and y, 2^-8 pixels
);

  localparam bit MaxLineOk = via_pkg::param_pow2("flow_pipe MaxLine", MaxLine, 8, 1 << 16);

  localparam int unsigned GradW = 13;
  localparam int unsigned TensorW = 24;

  typedef logic signed [GradW-1:0] grad_t;
  typedef logic signed [TensorW-1:0] tensor_t;

  // The gradient in the middle of five values, twelvefold; that in the middle does not count.
  function automatic grad_t gradient(input logic [7:0] a, input logic [7:0] b, input logic [7:0] d, input logic [7:0] e);
    return grad_t'({1'b0, a}) - grad_t'({1'b0, e}) + ((grad_t'({1'b0, d}) - grad_t'({1'b0, b})) <<< 3);
  endfunction

  // ---------------------------------------------------------------- gradients
  tag_t rows_tag, dyz_tag_q, cols_tag, grad_tag_q;
  logic [4:0][Pixels-1:0][39:0] rows;
  logic [Pixels-1:0][2*GradW+7:0] dyz_q;  // dz, dy, and the pixel of the middle frame
  logic [Pixels+3:0][2*GradW+7:0] cols;
  logic [Pixels-1:0][2:0][GradW-1:0] grad_q;  // dz, dy, dx

  flow_rows #(
    .Taps   (5),
    .Width  (40),
    .MaxLine(MaxLine)
  ) u_rows (
    .clk_i,
    .rst_ni,
    .en_i,
    .tag_i,
    .s_i,
    .tag_o (rows_tag),
    .taps_o(rows)
  );

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      for (int unsigned p = 0; p < Pixels; p++) begin
        // Frames, and rows from the top, around the pixel.
        dyz_q[p] <= {
          gradient(rows[2][p][7:0], rows[2][p][15:8], rows[2][p][31:24], rows[2][p][39:32]),
          gradient(rows[4][p][23:16], rows[3][p][23:16], rows[1][p][23:16], rows[0][p][23:16]),
          rows[2][p][23:16]
        };
      end
    end
  end

  flow_cols #(
    .Half (2),
    .Width(2 * GradW + 8)
  ) u_cols (
    .clk_i,
    .rst_ni,
    .en_i,
    .tag_i(dyz_tag_q),
    .s_i  (dyz_q),
    .tag_o(cols_tag),
    .row_o(cols)
  );

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      for (int unsigned p = 0; p < Pixels; p++) begin
        grad_t dx;
        dx = gradient(cols[p][7:0], cols[p+1][7:0], cols[p+3][7:0], cols[p+4][7:0]);
        grad_q[p] <= cols_tag.valid[p] ? {cols[p+2][8+:2*GradW], dx} : '0;
      end
    end
  end

  // ---------------------------------------------------------------- means of gradients
  tag_t rows7_tag, mean7_tag, cols7_tag, mean77_tag;
  tag_t [4:0] rows7_tag_q;
  tag_t [3:0] cols7_tag_q;
  logic [6:0][Pixels-1:0][3*GradW-1:0] rows7;
  logic [Pixels-1:0][2:0][GradW-1:0] mean7, mean7_in_q, mean77;
  logic [Pixels+5:0][3*GradW-1:0] cols7;

  flow_rows #(
    .Taps   (7),
    .Width  (3 * GradW),
    .MaxLine(MaxLine)
  ) u_rows7 (
    .clk_i,
    .rst_ni,
    .en_i,
    .tag_i (grad_tag_q),
    .s_i   (grad_q),
    .tag_o (rows7_tag),
    .taps_o(rows7)
  );

  flow_cols #(
    .Half (3),
    .Width(3 * GradW)
  ) u_cols7 (
    .clk_i,
    .rst_ni,
    .en_i,
    .tag_i(rows7_tag_q[4]),
    .s_i  (mean7_in_q),
    .tag_o(cols7_tag),
    .row_o(cols7)
  );

  for (genvar p = 0; p < int'(Pixels); p++) begin : gen_mean7
    for (genvar g = 0; g < 3; g++) begin : gen_of
      logic [6:0][GradW-1:0] column, row;
      for (genvar t = 0; t < 7; t++) begin : gen_tap
        assign column[t] = rows7[t][p][GradW*g+:GradW];
        assign row[t] = cols7[p+t][GradW*g+:GradW];
      end
      flow_smooth #(
        .Taps (7),
        .Width(GradW)
      ) u_y (
        .clk_i,
        .en_i,
        .s_i   (column),
        .mean_o(mean7[p][g])
      );
      flow_smooth #(
        .Taps (7),
        .Width(GradW)
      ) u_x (
        .clk_i,
        .en_i,
        .s_i   (row),
        .mean_o(mean77[p][g])
      );
    end
  end

  assign mean7_tag  = rows7_tag_q[3];
  assign mean77_tag = cols7_tag_q[3];
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      for (int unsigned p = 0; p < Pixels; p++) mean7_in_q[p] <= mean7_tag.valid[p] ? mean7[p] : '0;
    end
  end

  // ---------------------------------------------------------------- products, and their means
  typedef logic [4:0][TensorW-1:0] products_t;  // yz, xz, xy, yy, xx

  tag_t products_tag_q, rows3_tag, cols3_tag;
  tag_t [4:0] rows3_tag_q;
  products_t [Pixels-1:0] products_q, mean3, mean3_in_q, mean33;
  products_t [2:0][Pixels-1:0] rows3;
  products_t [Pixels+1:0] cols3;

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      for (int unsigned p = 0; p < Pixels; p++) begin
        tensor_t x, y, z;
        x = tensor_t'(signed'(mean77[p][0]));
        y = tensor_t'(signed'(mean77[p][1]));
        z = tensor_t'(signed'(mean77[p][2]));
        products_q[p] <= mean77_tag.valid[p] ? {y * z, x * z, x * y, y * y, x * x} : '0;
      end
    end
  end

  flow_rows #(
    .Taps   (3),
    .Width  (5 * TensorW),
    .MaxLine(MaxLine)
  ) u_rows3 (
    .clk_i,
    .rst_ni,
    .en_i,
    .tag_i (products_tag_q),
    .s_i   (products_q),
    .tag_o (rows3_tag),
    .taps_o(rows3)
  );

  flow_cols #(
    .Half (1),
    .Width(5 * TensorW)
  ) u_cols3 (
    .clk_i,
    .rst_ni,
    .en_i,
    .tag_i(rows3_tag_q[4]),
    .s_i  (mean3_in_q),
    .tag_o(cols3_tag),
    .row_o(cols3)
  );

  for (genvar p = 0; p < int'(Pixels); p++) begin : gen_mean3
    for (genvar g = 0; g < 5; g++) begin : gen_of
      logic [2:0][TensorW-1:0] column, row;
      for (genvar t = 0; t < 3; t++) begin : gen_tap
        assign column[t] = rows3[t][p][g];
        assign row[t] = cols3[p+t][g];
      end
      flow_smooth #(
        .Taps (3),
        .Width(TensorW)
      ) u_y (
        .clk_i,
        .en_i,
        .s_i   (column),
        .mean_o(mean3[p][g])
      );
      flow_smooth #(
        .Taps (3),
        .Width(TensorW)
      ) u_x (
        .clk_i,
        .en_i,
        .s_i   (row),
        .mean_o(mean33[p][g])
      );
    end
  end

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      for (int unsigned p = 0; p < Pixels; p++) mean3_in_q[p] <= rows3_tag_q[3].valid[p] ? mean3[p] : '0;
    end
  end

  // ---------------------------------------------------------------- solution
  // The means with 6 bits less; products of these; numerators and the determinant; quotients.
  localparam int unsigned SmallW = TensorW - 6;
  localparam int unsigned Latency = 4 + 3 + 18;
  typedef logic signed [SmallW-1:0] cut_t;
  typedef logic signed [2*SmallW-1:0] square_t;
  typedef logic signed [2*SmallW:0] det_t;

  tag_t [Latency-1:0] tag_q;
  assign tag_o = tag_q[Latency-1];

  // All tags; what is here at reset belongs to no image.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {dyz_tag_q, grad_tag_q, products_tag_q, rows7_tag_q, cols7_tag_q, rows3_tag_q, tag_q} <= '0;
    end else if (en_i) begin
      dyz_tag_q      <= rows_tag;
      grad_tag_q     <= cols_tag;
      rows7_tag_q    <= {rows7_tag_q[3:0], rows7_tag};
      cols7_tag_q    <= {cols7_tag_q[2:0], cols7_tag};
      products_tag_q <= mean77_tag;
      rows3_tag_q    <= {rows3_tag_q[3:0], rows3_tag};
      tag_q          <= {tag_q[Latency-2:0], cols3_tag};
    end
  end

  for (genvar p = 0; p < int'(Pixels); p++) begin : gen_solve
    cut_t xx_q, yy_q, xy_q, xz_q, yz_q;
    square_t xx_yy_q, xy_xy_q, xy_yz_q, yy_xz_q, xy_xz_q, xx_yz_q;
    det_t det_q, x_q, y_q;

    function automatic cut_t cut(input logic [TensorW-1:0] mean);
      return cut_t'((tensor_t'(signed'(mean)) + tensor_t'(32)) >>> 6);
    endfunction

    always_ff @(posedge clk_i) begin
      if (en_i) begin
        xx_q    <= cut(mean33[p][0]);
        yy_q    <= cut(mean33[p][1]);
        xy_q    <= cut(mean33[p][2]);
        xz_q    <= cut(mean33[p][3]);
        yz_q    <= cut(mean33[p][4]);
        xx_yy_q <= xx_q * yy_q;
        xy_xy_q <= xy_q * xy_q;
        xy_yz_q <= xy_q * yz_q;
        yy_xz_q <= yy_q * xz_q;
        xy_xz_q <= xy_q * xz_q;
        xx_yz_q <= xx_q * yz_q;
        det_q   <= xx_yy_q - xy_xy_q;
        x_q     <= xy_yz_q - yy_xz_q;
        y_q     <= xy_xz_q - xx_yz_q;
      end
    end

    flow_divide #(
      .Width(2 * SmallW + 1)
    ) u_x (
      .clk_i,
      .en_i,
      .n_i(x_q),
      .d_i(det_q),
      .q_o(m_o[p][0])
    );
    flow_divide #(
      .Width(2 * SmallW + 1)
    ) u_y (
      .clk_i,
      .en_i,
      .n_i(y_q),
      .d_i(det_q),
      .q_o(m_o[p][1])
    );
  end

endmodule
