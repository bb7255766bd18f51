// SPDX-License-Identifier: Apache-2.0
//
// Says when a waiting queue is to be looked at again although nobody has notified: data waits for its buffers and none are there. A driver may
// put buffers back without a notification, as software devices find them when data comes.
//
// Throughput: one look of a queue in `period` cycles at most, the first one two cycles after data found no buffer. Latency: one cycle.
// After `count` looks in a row that found nothing it rests until data comes from the user side or the driver notifies any queue: then it looks
// as often again. Period 0: never. Count 0: without end. While it counts `still_o` is low, so the clock does not stop before it has looked.
// Misuse: none. Source: VIRTIO 1.3, 2.9.1 (a driver should notify; software devices do without).

module via_vq_look
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  vq_look_t            look_i,
  input  logic                wake_i,   // data came, or a notification
  input  logic     [NumQ-1:0] short_i,  // data waits for buffers of the queue that are not there
  output logic     [NumQ-1:0] look_o,   // pulse
  output logic                still_o
);

  localparam bit NumQOk = via_pkg::param_in("via_vq_look NumQ", NumQ, 1, QueuesMax);

  logic [NumQ-1:0] short_q, look_q;
  logic [15:0] wait_q, left_q;  // cycles to the next look, looks left
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
