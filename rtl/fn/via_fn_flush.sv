// SPDX-License-Identifier: Apache-2.0
//
// A flush of the disk that waits for the host: what the driver wrote is in the store, which is memory of the card, and the host brings it to where it
// lies for good. Each flush gets a number and posts an event; the host reads the number, writes back, and gives the number back with how it went.
//
//   ask_i ──> asked_o, evt_o ──> host ──> ctrl_i.count, ctrl_i.failed ──> done_o or failed_o
//
// One at a time. Latency: two cycles and those of the host. A flush fails when the host says so, after `ctrl_i.limit` times 2^UnitLog2 cycles, and when
// the limit becomes 0. The numbers outlive a reset of the function, so that an answer to a flush of before it answers no later one.
// Misuse: an answer to a number that nobody waits for does nothing.

module via_fn_flush
  import via_virtio_pkg::*;
#(
  parameter int unsigned UnitLog2 = 18  // cycles of the limit
) (
  input  logic               clk_i,
  input  logic               rst_ni,    // of the card
  input  flush_ctrl_t        ctrl_i,
  input  logic               ask_i,     // level: a flush waits; falls with its answer, or by a reset of the function
  output logic               done_o,    // while it waits
  output logic               failed_o,
  output logic        [15:0] asked_o,   // number of the last one
  output logic               evt_o,     // pulse
  output logic               still_o
);

  localparam bit UnitLog2Ok = via_pkg::param_in("via_fn_flush UnitLog2", UnitLog2, 1, 40);

  logic open_q, over;
  logic [15:0] asked_q;
  // It runs only while a flush waits.
  logic [16+UnitLog2-1:0] waited_q;

  assign over = waited_q[UnitLog2+:16] >= ctrl_i.limit;
  assign failed_o = open_q && (over || ctrl_i.count == asked_q && ctrl_i.failed);
  assign done_o = open_q && !over && ctrl_i.count == asked_q && !ctrl_i.failed;
  assign asked_o = asked_q;
  assign evt_o = ask_i && !open_q;
  assign still_o = !ask_i && !open_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q  <= 1'b0;
      asked_q <= '0;
    end else begin
      open_q <= ask_i;
      if (evt_o) asked_q <= asked_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (evt_o) waited_q <= '0;
    else if (open_q) waited_q <= waited_q + 1'b1;
  end

endmodule
