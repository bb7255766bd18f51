// SPDX-License-Identifier: Apache-2.0
//
// The order of an image: four layers, in each of them pixels, outputs of a pixel, lines of weights of an output.
//
//   Conv1: rows of the image, 12 x 12 pixels, 20 outputs, 1 line       Conv2: 4 x 4 pixels, 50 outputs, 25 lines
//   Full1: 500 outputs, 26 lines                                       Full2: 10 outputs, 16 lines
//
// A pixel is one behind the pooling: four are computed at once, see dnn_app. Throughput: a step a cycle, between layers 20 cycles until
// the last one is through; two cycles for each row of pixels of Conv1.

module dnn_steps
  import dnn_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic          start_i,   // one-cycle pulse: an image
  input  logic          row_i,     // a row of the image is there
  output logic          row_o,     // it is taken
  input  logic          line_i,    // a line of weights is there; in layer Full1 it is needed
  output logic          line_o,    // it is taken
  output logic          step_o,    // level: a step in this cycle
  output layer_e        layer_o,
  output logic   [ 3:0] y_o,       // pixel
  output logic   [ 3:0] x_o,
  output logic   [ 2:0] ky_o,      // in layer Conv2: place in the window
  output logic   [ 2:0] kx_o,
  output logic   [ 4:0] k_o,       // line of the output
  output logic   [10:0] weight_o,  // line of the weights kept, but in layer Full1
  output logic          first_o,   // first and last line of an output
  output logic          last_o,
  output logic          turn_o,    // the windows move on by a pixel
  output logic          end_o      // one-cycle pulse: everything is through
);

  typedef enum logic [1:0] {
    Idle,
    Rows,
    Steps,
    Drain
  } state_e;

  // Limits of a layer: last line, last output, last column of pixels, last row of them; where its weights begin.
  typedef struct packed {
    logic [4:0]  k;
    logic [8:0]  n;
    logic [3:0]  x;
    logic [3:0]  y;
    logic [10:0] weight;
  } limit_t;

  function automatic limit_t limit_of(input layer_e layer);
    unique case (layer)
      Conv1:   return '{k: 5'(Lines1 - 1), n: 9'(Maps1 - 1), x: 4'(Side1 - 1), y: 4'(Side1 - 1), weight: '0};
      Conv2:   return '{k: 5'(Lines2 - 1), n: 9'(Maps2 - 1), x: 4'(Side2 - 1), y: 4'(Side2 - 1), weight: 11'(At2)};
      Full1:   return '{k: 5'(Lines3 - 1), n: 9'(Hidden - 1), x: '0, y: '0, weight: '0};
      default: return '{k: 5'(Lines4 - 1), n: 9'(Classes - 1), x: '0, y: '0, weight: 11'(At4)};
    endcase
  endfunction

  state_e state_q;
  layer_e layer_q;
  limit_t limit_q;
  logic [4:0] k_q, wait_q;
  logic [8:0] n_q;
  logic [3:0] x_q, y_q;
  logic [2:0] ky_q, kx_q, rows_q;
  logic [10:0] weight_q;
  logic k_end, n_end, x_end, y_end;

  assign row_o = state_q == Rows && row_i;
  assign step_o = state_q == Steps && (layer_q != Full1 || line_i);
  assign line_o = step_o && layer_q == Full1;
  assign layer_o = layer_q;
  assign {y_o, x_o, ky_o, kx_o, k_o, weight_o} = {y_q, x_q, ky_q, kx_q, k_q, weight_q};
  assign first_o = k_q == '0;
  assign last_o = k_end;
  assign k_end = k_q == limit_q.k;
  assign n_end = k_end && n_q == limit_q.n;
  assign x_end = n_end && x_q == limit_q.x;
  assign y_end = x_end && y_q == limit_q.y;
  assign turn_o = step_o && n_end;
  assign end_o = state_q == Drain && wait_q == '0 && layer_q == Full2;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= Idle;
    else begin
      unique case (state_q)
        Idle:  if (start_i) state_q <= Rows;
        Rows:  if (row_i && rows_q == 3'd1) state_q <= Steps;
        Steps: if (step_o && x_end) state_q <= y_end ? Drain : layer_q == Conv1 ? Rows : Steps;
        Drain: if (wait_q == '0) state_q <= layer_q == Full2 ? Idle : Steps;
      endcase
    end
    wait_q <= state_q == Drain ? wait_q - 1'b1 : 5'd20;
    // Two new rows for each row of pixels, and those that are in the window of the first.
    if (state_q == Idle) rows_q <= 3'(Kernel + 1);
    else if (state_q == Steps) rows_q <= 3'd2;
    else if (row_o) rows_q <= rows_q - 1'b1;
    if (state_q == Idle || state_q == Drain && wait_q == '0) begin
      layer_e next;
      next = state_q == Idle ? Conv1 : layer_e'(layer_q + 2'd1);
      layer_q <= next;
      limit_q <= limit_of(next);
      weight_q <= limit_of(next).weight;
      {k_q, n_q, x_q, y_q, ky_q, kx_q} <= '0;
    end else if (step_o) begin
      k_q <= k_end ? '0 : k_q + 1'b1;
      kx_q <= k_end || kx_q == 3'(Kernel - 1) ? '0 : kx_q + 1'b1;
      ky_q <= k_end ? '0 : ky_q + 3'(kx_q == 3'(Kernel - 1));
      // Each pixel has the same weights.
      weight_q <= n_end ? limit_q.weight : weight_q + 1'b1;
      if (k_end) n_q <= n_end ? '0 : n_q + 1'b1;
      if (n_end) x_q <= x_end ? '0 : x_q + 1'b1;
      if (x_end) y_q <= y_q + 1'b1;
    end
  end

endmodule
