// SPDX-License-Identifier: Apache-2.0
//
// What a device sees of its queues. A module of its own, since what passes through it leads from the registers of other blocks to those of the
// device: mapped with the blocks around it, its two levels of logic would be made as deep as theirs.
// Throughput, latency: combinational. Misuse: none is possible.

module via_vq_avail
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2
) (
  input  logic [NumQ-1:0] wait_i,        // queues whose responses wait for buffers
  input  logic [NumQ-1:0] head_valid_i,  // level: a chain is there
  input  logic [NumQ-1:0] off_i,         // level: the queue is not enabled
  input  logic [NumQ-1:0] reset_i,       // level: the queue is being reset
  input  logic [NumQ-1:0] held_i,        // level: a response of the queue is in progress, and may still use chains
  output logic [NumQ-1:0] busy_o,        // level: it is not known which chains are left
  output logic [NumQ-1:0] avail_o        // level: a queue that waits has a chain
);

  localparam bit NumQOk = via_pkg::param_in("via_vq_avail NumQ", NumQ, 1, QueuesMax);

  assign busy_o  = off_i | reset_i | held_i;
  assign avail_o = wait_i & head_valid_i & ~busy_o;

endmodule
