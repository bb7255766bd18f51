// SPDX-License-Identifier: Apache-2.0
//
// Polls a waiting queue although the driver has not notified, when data waits for its buffers and none are there. A driver may supply
// buffers without a notification, since software devices find them when data comes.
//
// Throughput: a queue is polled at most once in `period` cycles, first two cycles after data found no buffer. Latency: one cycle. Order:
// none.
// After `count` consecutive polls that found nothing it stops until data comes from the user side or the driver notifies any queue; then it
// starts over. Period 0: never. Count 0: without limit. While it counts `still_o` is low, so that the clock does not stop before the poll.
// Misuse: none is possible. Source: VIRTIO 1.3, 2.9.1 (a driver should notify; software devices do without).

module via_vq_look
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2  // queues
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  vq_look_t            look_i,   // settings: count and period
  input  logic                wake_i,   // pulse: data came, or a notification
  input  logic     [NumQ-1:0] short_i,  // level: data waits for buffers of the queue that are not there
  output logic     [NumQ-1:0] look_o,   // pulse: poll the queue
  output logic                still_o   // level: nothing moves unless an input changes
);

  localparam bit NumQOk = via_pkg::param_in("via_vq_look NumQ", NumQ, 1, QueuesMax);

  logic [NumQ-1:0] short_q, look_q;
  logic [15:0] wait_q, left_q;  // cycles to the next poll; polls left
  logic wake_q, wanted, fresh;

  assign wanted = short_q != '0 && look_i.period != '0 && (left_q != '0 || look_i.count == '0);
  assign fresh  = wake_q || short_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      short_q <= '0;
      look_q  <= '0;
      wake_q  <= 1'b0;
      wait_q  <= '0;
      left_q  <= '0;
    end else begin
      short_q <= short_i;
      wake_q  <= wake_i;
      look_q  <= (wanted && wait_q == '0) ? short_q : '0;
      if (wait_q != '0) wait_q <= wait_q - 16'd1;
      else if (wanted) wait_q <= look_i.period;
      if (fresh) left_q <= look_i.count;
      else if (wanted && wait_q == '0 && left_q != '0) left_q <= left_q - 16'd1;
    end
  end

  assign look_o  = look_q;
  assign still_o = short_i == short_q && look_q == '0 && wait_q == '0 && !wanted && !wake_i && !(fresh && left_q != look_i.count);

endmodule
