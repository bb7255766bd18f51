// SPDX-License-Identifier: Apache-2.0
//
// A flush of the disk that waits for the host: what the driver wrote is in card memory (the store), and the host writes it back to the
// backing file. Each flush gets a number and posts an event; the host reads the number, writes back, and returns the number with the
// result.
//
//   ask_i ──> asked_o, evt_o ──> host ──> ctrl_i.count, ctrl_i.failed ──> done_o or failed_o
//
// Throughput: one flush at a time. Latency: one cycle to `evt_o`, the host's, one to `done_o`. A flush fails when the host says so, after
// `ctrl_i.limit` times 2^UnitLog2 cycles, and when the limit becomes 0. The numbers continue over a reset of the function, so that a late
// reply to an earlier flush completes no later one.
// Misuse: a reply with a number that nothing waits for has no effect.

module via_fn_flush
  import via_virtio_pkg::*;
#(
  parameter int unsigned UnitLog2 = 18  // log2 of the cycles of one unit of the limit
) (
  input  logic               clk_i,
  input  logic               rst_ni,    // of the card, not of the function
  input  flush_ctrl_t        ctrl_i,    // registers: number and result from the host, time limit
  input  logic               ask_i,     // level: a flush waits; falls with its completion, or by a reset of the function
  output logic               done_o,    // level while it waits: the host has written back
  output logic               failed_o,  // level while it waits: the flush has failed
  output logic        [15:0] asked_o,   // number of the latest flush
  output logic               evt_o,     // pulse: post an event
  output logic               still_o    // level: nothing moves unless an input changes
);

  localparam bit UnitLog2Ok = via_pkg::param_in("via_fn_flush UnitLog2", UnitLog2, 1, 40);

  logic open_q, evt_q, over, replied, done_q, failed_q;
  logic [15:0] asked_q;
  // Runs only while a flush waits.
  logic [16+UnitLog2-1:0] waited_q;

  assign over = waited_q[UnitLog2+:16] >= ctrl_i.limit;
  assign replied = ctrl_i.count == asked_q;
  assign failed_o = failed_q;
  assign done_o = done_q;
  assign asked_o = asked_q;
  assign evt_o = evt_q;
  assign still_o = !ask_i && !open_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q   <= 1'b0;
      evt_q    <= 1'b0;
      done_q   <= 1'b0;
      failed_q <= 1'b0;
      asked_q  <= '0;
    end else begin
      open_q   <= ask_i;
      evt_q    <= ask_i && !open_q;
      done_q   <= ask_i && open_q && !over && replied && !ctrl_i.failed;
      failed_q <= ask_i && open_q && (over || replied && ctrl_i.failed);
      if (ask_i && !open_q) asked_q <= asked_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!open_q) waited_q <= '0;
    else waited_q <= waited_q + 1'b1;
  end

endmodule
