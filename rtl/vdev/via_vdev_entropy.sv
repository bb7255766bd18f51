// SPDX-License-Identifier: Apache-2.0
//
// The entropy device (type 4): delivers bytes of the user side to the guest's buffers, each byte once. A buffer gets what is held when its
// turn comes, at most up to the end of a message or 32 beats. While the user side provides nothing, buffers wait.
// Throughput: one beat a cycle; a response takes six cycles more. Latency: ten cycles. Order: kept. Misuse: none is possible. Source:
// VIRTIO 1.3, 5.4.

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
  input  logic     [NumQ-1:0] avail_i,            // level: the queue has a buffer
  input  logic     [    31:0] head_wlen_i[NumQ],  // size in bytes of its next buffer
  output logic     [NumQ-1:0] short_o,            // level: data waits for buffers
  output vq_rsp_t             rsp_o,              // response
  output logic                rsp_valid_o,
  input  logic                rsp_ready_i,
  output vq_beat_t            wr_o,               // its bytes
  output logic                wr_valid_o,
  input  logic                wr_ready_i,
  // User side.
  input  strm_t               rx_i,
  input  logic                rx_valid_i,
  output logic                rx_ready_o,
  output logic                still_o,            // level: nothing moves unless an input changes
  output logic                idle_o              // level: nothing is held
);

  vq_rsp_t  rsp[1];
  vq_beat_t wr [1];
  logic [0:0] rsp_valid, rsp_ready, wr_valid, wr_ready;
  logic chop_moving, chop_idle, out_moving, out_idle;
  via_vdev_chop u_chop (
    .clk_i,
    .rst_ni,
    .s_i        (rx_i),
    .s_valid_i  (rx_valid_i),
    .s_ready_o  (rx_ready_o),
    .drop_i     (1'b0),
    .avail_i    (avail_i[0]),
    .wlen_i     (head_wlen_i[0]),
    .rsp_o      (rsp[0]),
    .rsp_valid_o(rsp_valid[0]),
    .rsp_ready_i(rsp_ready[0]),
    .wr_o       (wr[0]),
    .wr_valid_o (wr_valid[0]),
    .wr_ready_i (wr_ready[0]),
    .short_o    (),
    .moving_o   (chop_moving),
    .idle_o     (chop_idle)
  );

  via_vdev_responses #(
    .N(1)
  ) u_responses (
    .clk_i,
    .rst_ni,
    .s_rsp_i      (rsp),
    .s_rsp_valid_i(rsp_valid),
    .s_rsp_ready_o(rsp_ready),
    .early_o      (),
    .s_wr_i       (wr),
    .s_wr_valid_i (wr_valid),
    .s_wr_ready_o (wr_ready),
    .rsp_o,
    .rsp_valid_o,
    .rsp_ready_i,
    .wr_o,
    .wr_valid_o,
    .wr_ready_i,
    .moving_o     (out_moving),
    .idle_o       (out_idle)
  );

  // Random bytes are always waiting, which is no reason to poll for buffers: a driver that wants some notifies.
  assign short_o = '0;

  assign still_o = !(chop_moving || out_moving);
  assign idle_o  = chop_idle && out_idle;

endmodule
