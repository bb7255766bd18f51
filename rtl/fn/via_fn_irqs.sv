// SPDX-License-Identifier: Apache-2.0
//
// Interrupts of the slots as user interrupts of the XDMA-compatible function: that of slot s is number s.
// An app's interrupt is a pulse; the function's request is a level that is held until its MSI-X message was sent, and is low for a cycle
// between two requests. Pulses that come before that are merged into one request; each is followed by a message, if the driver has enabled
// it.
// Throughput: a pulse a cycle. Latency: one cycle. Order: none between slots.

module via_fn_irqs #(
  parameter int unsigned NumSlots = via_pkg::NumSlots,
  parameter int unsigned Users    = 16
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [NumSlots-1:0] irq_i,   // one-cycle pulses, one bit per slot
  output logic [   Users-1:0] req_o,   // level: request, held until ack_i
  input  logic [   Users-1:0] ack_i,   // one-cycle pulse: the message of the request was sent
  output logic                still_o  // level: nothing moves unless an input changes
);

  localparam bit UsersOk = via_pkg::param_in("via_fn_irqs Users", Users, 1, 16);
  localparam bit NumSlotsOk = via_pkg::param_in("via_fn_irqs NumSlots", NumSlots, 1, Users);

  logic [Users-1:0] pend_q, acked_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pend_q  <= '0;
      acked_q <= '0;
    end else begin
      pend_q  <= (pend_q & ~ack_i) | Users'(irq_i);
      acked_q <= ack_i;
    end
  end
  assign req_o   = pend_q & ~acked_q;
  assign still_o = ~|{irq_i, ack_i, acked_q};

endmodule
