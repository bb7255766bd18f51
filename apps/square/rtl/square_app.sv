// SPDX-License-Identifier: Apache-2.0
//
// Squares every 32-bit word of the stream, modulo 2^32.
// Throughput: one beat a cycle. Latency: three cycles, as deep as the registers of a DSP block. Order: kept.
//
// With x = h * 2^16 + l: x^2 = l^2 + 2^17 * h * l modulo 2^32, two products of 16 bits for each word:
//
//   in -> [ h, l ] -> [ l * l, h * l ] -> [ sum ] -> out
//         stage 0      stage 1            stage 2
//
// A stage advances when the next one is empty or advances, so bubbles close while the output waits.

module square_app
  import via_pkg::*;
(
  input  logic  clk_i,
  input  logic  rst_ni,
  input  strm_t in_i,
  input  logic  in_valid_i,
  output logic  in_ready_o,
  output strm_t out_o,
  output logic  out_valid_o,
  input  logic  out_ready_i
);

  localparam int unsigned Words = DataW / 32;

  typedef struct packed {
    logic [7:0]       id;
    logic             last;
    logic [StrbW-1:0] keep;
  } side_t;

  logic [2:0] valid_q, ready, load;
  assign ready = {!valid_q[2] || out_ready_i, !(&valid_q[2:1]) || out_ready_i, !(&valid_q[2:0]) || out_ready_i};
  assign load = ready & {valid_q[1:0], in_valid_i};
  assign in_ready_o = ready[0];
  assign out_valid_o = valid_q[2];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= (valid_q & ~ready) | load;
  end

  side_t side0_q, side1_q, side2_q;
  logic [Words-1:0][31:0] x_q, square_q, cross_q, sum_q;

  always_ff @(posedge clk_i) begin
    if (load[0]) begin
      side0_q <= '{id: in_i.id, last: in_i.last, keep: in_i.keep};
      x_q <= in_i.data;
    end
    if (load[1]) begin
      side1_q <= side0_q;
      for (int unsigned i = 0; i < Words; i++) begin
        square_q[i] <= 32'(x_q[i][15:0]) * 32'(x_q[i][15:0]);
        cross_q[i]  <= 32'(x_q[i][31:16]) * 32'(x_q[i][15:0]);
      end
    end
    if (load[2]) begin
      side2_q <= side1_q;
      for (int unsigned i = 0; i < Words; i++) sum_q[i] <= square_q[i] + {cross_q[i][14:0], 17'b0};
    end
  end

  assign out_o = '{id: side2_q.id, last: side2_q.last, keep: side2_q.keep, data: sum_q};

endmodule
