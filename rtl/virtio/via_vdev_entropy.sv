// SPDX-License-Identifier: Apache-2.0
//
// The entropy device (type 4): bytes of the user side to the guest's buffers, each byte once. A buffer gets what is held when its turn
// comes, at most the end of a message or 32 beats. When the user side gives nothing, buffers wait.
// Throughput: one beat a cycle; an answer takes three cycles more. Latency: six cycles. Source: VIRTIO 1.3, 5.4.

module via_vdev_entropy
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
#(
  localparam int unsigned NumQ = 32'(VdevEntropy.queues)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  // Engine.
  input  logic     [NumQ-1:0] avail_i,
  input  logic     [    31:0] head_wlen_i[NumQ],
  output logic     [NumQ-1:0] short_o,
  output vq_rsp_t             rsp_o,
  output logic                rsp_valid_o,
  input  logic                rsp_ready_i,
  output vq_beat_t            wr_o,
  output logic                wr_valid_o,
  input  logic                wr_ready_i,
  // User side.
  input  strm_t               rx_i,
  input  logic                rx_valid_i,
  output logic                rx_ready_o,
  output logic                still_o,
  output logic                idle_o
);

  logic moving;
  via_vdev_chop u_chop (
    .clk_i,
    .rst_ni,
    .s_i      (rx_i),
    .s_valid_i(rx_valid_i),
    .s_ready_o(rx_ready_o),
    .drop_i   (1'b0),
    .avail_i  (avail_i[0]),
    .wlen_i   (head_wlen_i[0]),
    .rsp_o,
    .rsp_valid_o,
    .rsp_ready_i,
    .wr_o,
    .wr_valid_o,
    .wr_ready_i,
    .short_o  (short_o[0]),
    .moving_o (moving),
    .idle_o
  );

  assign still_o = !(moving || rsp_valid_o && rsp_ready_i || wr_valid_o && wr_ready_i);

endmodule
