// SPDX-License-Identifier: Apache-2.0
//
// A convolutional network like LeNet for images of 28 x 28: two layers of 5 x 5 windows with 20 and 50 maps, each followed by the maximum of
// 2 x 2, and two full layers of 500 and 10. Numbers have 16 bits; what is negative becomes zero, but in the last layer.
//
//   rows -> windows ---------+
//   maps 1 in four banks ----+-> a --+-> four sums of products -> largest -> maps 1, maps 2, hidden, scores
//   maps 2, hidden ----------+       |
//   weights kept, or read -> w ------+
//
// The four sums are those of the four pixels of a pooled one, with the same weights; full layers use the first. The four pixels are always in
// four different banks: rows and columns, even and odd.
// Throughput: an image in 2880 + 20000 + 13000 + 160 steps of a cycle and 110 cycles between them. The weights of the first full layer are
// read for each image, a line a step, with the port busy; all others once in a run. Latency: that of the memory, and of an image. Misuse:
// wrong parameters end the run at once with one error. Lines that cannot be read count as errors.

module dnn_app
  import via_pkg::*;
  import dnn_pkg::*;
(
  input  logic           clk_i,
  input  logic           rst_ni,
  output axi_ax_t        mem_ar_o,
  output logic           mem_ar_valid_o,
  input  logic           mem_ar_ready_i,
  input  axi_r_t         mem_r_i,
  input  logic           mem_r_valid_i,
  output logic           mem_r_ready_o,
  output axi_ax_t        mem_aw_o,
  output logic           mem_aw_valid_o,
  input  logic           mem_aw_ready_i,
  output axi_w_t         mem_w_o,
  output logic           mem_w_valid_o,
  input  logic           mem_w_ready_i,
  input  axi_b_t         mem_b_i,
  input  logic           mem_b_valid_i,
  output logic           mem_b_ready_o,
  input  logic    [63:0] base_i,          // address of the memory
  input  logic    [63:0] bytes_i,         // its size
  input  logic    [31:0] images_i,
  input  logic    [ 3:0] fraction_i,      // bits of a weight behind the point
  input  logic           start_i,         // one-cycle pulse; the inputs above are sampled with it
  output logic           done_o,          // level: no run is in progress
  output logic    [31:0] errors_o,
  output logic    [63:0] cycles_o,        // duration of the last run
  output logic           busy_o,          // level: a run is in progress
  output logic           irq_o            // one-cycle pulse: the run has ended
);

  localparam int unsigned WeightReader = 0;
  localparam int unsigned ImageReader = 1;

  typedef enum logic [2:0] {
    Idle,
    Keep,  // weights are read and kept
    Image,
    Compute,
    Result
  } state_e;

  // ---------------------------------------------------------------- parameters, sampled at the start
  logic [63:0] base_q, bytes_q;
  logic [31:0] images_q;
  logic [ 3:0] fraction_q;
  logic [37:0] image_lines_q, results_q, need_q;  // lines: all images, up to the results, all
  logic sample, go, bad, run, finish;

  always_ff @(posedge clk_i) begin
    if (sample) begin
      base_q     <= base_i;
      bytes_q    <= bytes_i;
      images_q   <= images_i;
      fraction_q <= fraction_i;
    end
    image_lines_q <= {1'b0, images_q, 5'b0} - 38'({images_q, 2'b0});  // 28 each
    results_q     <= image_lines_q + 38'(Weights);
    need_q        <= results_q + 38'(images_q);
  end
  assign bad = base_q[5:0] != '0 || images_q == '0 || fraction_q == '1 || bytes_q[63:6] < 58'(need_q);

  // ---------------------------------------------------------------- memory
  logic [63:0] rd_addr[2];
  logic [ 5:0] rd_len [2];
  logic [1:0] rd_valid, rd_ready, line_valid;
  logic [511:0] line, weight_head, weight_line, image_line;
  logic [1:0] mem_errors;
  logic weight_head_valid, weight_head_ready, weight_valid, weight_ready, image_valid, image_ready;
  logic read_full, wr_valid, wr_ready, wr_idle;
  logic [ 63:0] wr_addr_q;
  logic [511:0] result_q;

  mem_lines #(
    .Readers(2)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .mem_ar_o,
    .mem_ar_valid_o,
    .mem_ar_ready_i,
    .mem_r_i,
    .mem_r_valid_i,
    .mem_r_ready_o,
    .mem_aw_o,
    .mem_aw_valid_o,
    .mem_aw_ready_i,
    .mem_w_o,
    .mem_w_valid_o,
    .mem_w_ready_i,
    .mem_b_i,
    .mem_b_valid_i,
    .mem_b_ready_o,
    .rd_addr_i   (rd_addr),
    .rd_len_i    (rd_len),
    .rd_valid_i  (rd_valid),
    .rd_ready_o  (rd_ready),
    .line_o      (line),
    .line_error_o(),
    .line_valid_o(line_valid),
    .wr_addr_i   (wr_addr_q),
    .wr_line_i   (result_q),
    .wr_strb_i   ('1),
    .wr_valid_i  (wr_valid),
    .wr_ready_o  (wr_ready),
    .wr_idle_o   (wr_idle),
    .errors_o    (mem_errors)
  );

  mem_seq #(
    .Depth (256),
    .Burst (16),
    .CountW(16)
  ) u_weights (
    .clk_i,
    .rst_ni,
    .start_i     (go || read_full),
    .addr_i      (go ? base_q : base_q + 64'(64 * At3)),
    .lines_i     (go ? 16'(At3) : 16'(Weights - At3)),
    .rd_addr_o   (rd_addr[WeightReader]),
    .rd_len_o    (rd_len[WeightReader]),
    .rd_valid_o  (rd_valid[WeightReader]),
    .rd_ready_i  (rd_ready[WeightReader]),
    .line_i      (line),
    .line_valid_i(line_valid[WeightReader]),
    .m_o         (weight_head),
    .m_valid_o   (weight_head_valid),
    .m_ready_i   (weight_head_ready),
    .idle_o      ()
  );

  via_slice #(
    .T(logic [511:0])
  ) u_slice (
    .clk_i,
    .rst_ni,
    .s_i      (weight_head),
    .s_valid_i(weight_head_valid),
    .s_ready_o(weight_head_ready),
    .m_o      (weight_line),
    .m_valid_o(weight_valid),
    .m_ready_i(weight_ready)
  );

  mem_seq #(
    .Depth (64),
    .Burst (4),
    .CountW(38)
  ) u_images (
    .clk_i,
    .rst_ni,
    .start_i     (go),
    .addr_i      (base_q + 64'(64 * Weights)),
    .lines_i     (image_lines_q),
    .rd_addr_o   (rd_addr[ImageReader]),
    .rd_len_o    (rd_len[ImageReader]),
    .rd_valid_o  (rd_valid[ImageReader]),
    .rd_ready_i  (rd_ready[ImageReader]),
    .line_i      (line),
    .line_valid_i(line_valid[ImageReader]),
    .m_o         (image_line),
    .m_valid_o   (image_valid),
    .m_ready_i   (image_ready),
    .idle_o      ()
  );

  // ---------------------------------------------------------------- images, one after the other
  state_e state_q;
  logic [31:0] left_q;
  logic [10:0] kept_q;
  logic keep, image_end;

  assign keep = state_q == Keep && weight_valid;
  assign read_full = state_q == Image;
  assign wr_valid = state_q == Result;
  assign finish = state_q == Idle && wr_idle;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= Idle;
    else begin
      unique case (state_q)
        Idle: if (go) state_q <= Keep;
        Keep: if (keep && kept_q == 11'(At3 - 1)) state_q <= Image;
        Image: state_q <= Compute;
        Compute: if (image_end) state_q <= Result;
        default: if (wr_ready) state_q <= left_q == 32'd1 ? Idle : Image;
      endcase
    end
    kept_q <= state_q == Idle ? '0 : kept_q + 11'(keep);
    if (go) left_q <= images_q;
    else if (wr_valid && wr_ready) left_q <= left_q - 1'b1;
    if (go) wr_addr_q <= base_q + {20'b0, results_q, 6'b0};
    else if (wr_valid && wr_ready) wr_addr_q <= wr_addr_q + 64'd64;
  end

  // ---------------------------------------------------------------- steps
  logic step, row_take, line_take, first, last, turn;
  layer_e layer;
  logic [3:0] y, x;
  logic [2:0] ky, kx;
  logic [ 4:0] k;
  logic [10:0] weight_at;

  dnn_steps u_steps (
    .clk_i,
    .rst_ni,
    .start_i (state_q == Image),
    .row_i   (image_valid),
    .row_o   (row_take),
    .line_i  (weight_valid),
    .line_o  (line_take),
    .step_o  (step),
    .layer_o (layer),
    .y_o     (y),
    .x_o     (x),
    .ky_o    (ky),
    .kx_o    (kx),
    .k_o     (k),
    .weight_o(weight_at),
    .first_o (first),
    .last_o  (last),
    .turn_o  (turn),
    .end_o   (image_end)
  );
  assign image_ready  = row_take;
  assign weight_ready = keep || line_take;

  // ---------------------------------------------------------------- windows of the image
  // Six rows, which turn by two pixels, so that the windows of the four pixels are always at their beginning.
  number_t [Kernel:0][Side-1:0] rows_q;
  number_t [3:0][Window-1:0] windows_q;

  always_ff @(posedge clk_i) begin
    if (row_take) rows_q <= {image_line[16*Side-1:0], rows_q[Kernel:1]};
    else if (turn && layer == Conv1) begin
      for (int unsigned r = 0; r <= Kernel; r++) begin
        // Behind the last pixel of a row of them back to the first.
        if (x == 4'(Side1 - 1)) rows_q[r] <= {rows_q[r][5:0], rows_q[r][Side-1:6]};
        else rows_q[r] <= {rows_q[r][1:0], rows_q[r][Side-1:2]};
      end
    end
    if (step && layer == Conv1) begin
      for (int unsigned e = 0; e < 4; e++) begin
        for (int unsigned r = 0; r < Kernel; r++) windows_q[e][Kernel*r+:Kernel] <= rows_q[r+e/2][e%2+:Kernel];
      end
    end
  end

  // ---------------------------------------------------------------- numbers between layers
  number_t value;
  logic value_valid;
  line_t out_q;  // of what is computed
  logic out_we_q, bank_we_q, lane_end;
  logic [4:0] lane_q;
  logic [4:0] out_at_q;
  layer_e layer_q;  // a cycle ago
  logic [3:0] bank_y_q, bank_x_q;
  number_t [3:0][Maps1-1:0] maps;  // of the banks
  line_t inner, kept;

  for (genvar b = 0; b < 4; b++) begin : gen_bank
    // The place of the pixel that is in this bank, of those of the step.
    logic [2:0] row, col;
    logic [3:0] sum_y, sum_x;
    assign sum_y = 4'(ky) + 4'(1'(b / 2) ^ ky[0]);
    assign sum_x = 4'(kx) + 4'(1'(b % 2) ^ kx[0]);
    assign row   = y[2:0] + sum_y[3:1];
    assign col   = x[2:0] + sum_x[3:1];

    via_ram_sdp #(
      .Width(16 * Maps1),
      .Depth(64)
    ) u_maps (
      .clk_i,
      .we_i   (bank_we_q && bank_y_q[0] == 1'(b / 2) && bank_x_q[0] == 1'(b % 2)),
      .waddr_i({bank_y_q[3:1], bank_x_q[3:1]}),
      .wdata_i(out_q[Maps1-1:0]),
      .re_i   (step && layer == Conv2),
      .raddr_i({row, col}),
      .rdata_o(maps[b])
    );
  end

  // Maps 2 in the lower half, hidden numbers in the upper one.
  via_ram_sdp #(
    .Width(512),
    .Depth(64)
  ) u_inner (
    .clk_i,
    .we_i   (out_we_q),
    .waddr_i({layer == Full1, out_at_q}),
    .wdata_i(out_q),
    .re_i   (step && (layer == Full1 || layer == Full2)),
    .raddr_i({layer == Full2, k}),
    .rdata_o(inner)
  );

  via_ram_sdp #(
    .Width(512),
    .Depth(At3)
  ) u_kept (
    .clk_i,
    .we_i   (keep),
    .waddr_i(kept_q),
    .wdata_i(weight_line),
    .re_i   (step && layer != Full1),
    .raddr_i(weight_at),
    .rdata_o(kept)
  );

  // ---------------------------------------------------------------- products
  logic read_q, first1_q, last1_q, odd_y_q, odd_x_q, bias_q, zero_q, valid_q, first_q, last_q;
  line_t read_line_q, w_q;
  line_t [3:0] a_q;
  number_t [3:0] sums;
  logic [3:0] sum_valid;
  number_t one;

  assign one = 16'd1 << fraction_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_q  <= 1'b0;
      valid_q <= 1'b0;
    end else begin
      read_q  <= step;
      valid_q <= read_q;
    end
    first1_q <= first;
    last1_q  <= last;
    odd_y_q  <= ky[0];
    odd_x_q  <= kx[0];
    bias_q   <= layer == Conv1 || layer == Conv2 || last;
    zero_q   <= layer == Full1 && last;  // nothing but the bias
    if (line_take) read_line_q <= weight_line;
    first_q <= first1_q;
    last_q  <= last1_q;
    if (read_q) begin
      w_q <= layer == Full1 ? read_line_q : kept;
      for (int unsigned e = 0; e < 4; e++) begin
        a_q[e] <= '0;
        if (layer == Conv1) a_q[e][Window-1:0] <= windows_q[e];
        else if (layer == Conv2) a_q[e][Maps1-1:0] <= maps[2'(e)^{odd_y_q, odd_x_q}];
        else if (e == 0 && !zero_q) a_q[e] <= inner;
        if (bias_q) a_q[e][Lanes-1] <= one;
      end
    end
  end

  for (genvar e = 0; e < 4; e++) begin : gen_dot
    dnn_dot u_dot (
      .clk_i,
      .rst_ni,
      .a_i       (a_q[e]),
      .w_i       (w_q),
      .first_i   (first_q),
      .last_i    (last_q),
      .valid_i   (valid_q),
      .fraction_i(fraction_q),
      .value_o   (sums[e]),
      .valid_o   (sum_valid[e])
    );
  end

  // ---------------------------------------------------------------- results of a step
  function automatic number_t larger(input number_t p, input number_t q);
    return p > q ? p : q;
  endfunction

  number_t [1:0] rows_max_q;
  logic max_valid_q, pooled;
  assign pooled = layer == Conv1 || layer == Conv2;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      max_valid_q <= 1'b0;
      value_valid <= 1'b0;
    end else begin
      max_valid_q <= sum_valid[0];
      value_valid <= max_valid_q;
    end
    rows_max_q[0] <= pooled ? larger(sums[0], sums[1]) : sums[0];
    rows_max_q[1] <= pooled ? larger(sums[2], sums[3]) : sums[0];
    if (layer == Full2) value <= rows_max_q[0];
    else value <= larger(larger(rows_max_q[0], rows_max_q[1]), '0);
  end

  // ---------------------------------------------------------------- lines of results
  logic [8:0] count_q;  // results of the layer
  number_t best_q;
  assign lane_end = layer == Conv1 ? lane_q == 5'(Maps1 - 1) : lane_q == '1 || layer == Full1 && count_q == 9'(Hidden - 1);

  always_ff @(posedge clk_i) begin
    out_we_q  <= value_valid && lane_end && (layer == Conv2 || layer == Full1);
    bank_we_q <= value_valid && lane_end && layer == Conv1;
    layer_q   <= layer;
    if (state_q == Image) begin
      lane_q   <= '0;
      count_q  <= '0;
      out_at_q <= '0;
      bank_y_q <= '0;
      bank_x_q <= '0;
    end else begin
      if (value_valid) begin
        lane_q  <= lane_end ? '0 : lane_q + 1'b1;
        count_q <= layer == Full1 ? count_q + 1'b1 : '0;
        // The rest of a line is zero.
        if (lane_q == '0) out_q <= '0;
        out_q[lane_q] <= value;
      end
      if (layer != layer_q) out_at_q <= '0;
      else if (out_we_q) out_at_q <= out_at_q + 1'b1;
      if (bank_we_q) begin
        bank_x_q <= bank_x_q == 4'(Side1 - 1) ? '0 : bank_x_q + 1'b1;
        bank_y_q <= bank_y_q + 4'(bank_x_q == 4'(Side1 - 1));
      end
    end
    // Scores, and behind them the first of the largest.
    if (value_valid && layer == Full2) begin
      if (lane_q == '0) result_q <= '0;
      result_q[16*lane_q+:16] <= value;
      if (lane_q == '0 || value > best_q) begin
        best_q <= value;
        result_q[16*Classes+:16] <= 16'(lane_q);
      end
    end
  end

  // ---------------------------------------------------------------- run
  assign busy_o = run;

  mem_run #(
    .Setup(5)
  ) u_run (
    .clk_i,
    .rst_ni,
    .start_i,
    .sample_o(sample),
    .bad_i   (bad),
    .go_o    (go),
    .run_o   (run),
    .finish_i(finish),
    .errors_i(3'(mem_errors)),
    .done_o,
    .irq_o,
    .errors_o,
    .cycles_o
  );

endmodule
