// SPDX-License-Identifier: Apache-2.0
//
// Interrupts of the slots as user interrupts of the XDMA-compatible function: that of slot s is number s.
// An app's interrupt is a pulse, the function's request a level that stands until its message was sent and is low for a cycle between two.
// Pulses that come before that are one request; none is without a message after it, if the driver has enabled it.
// Throughput: a pulse a cycle. Latency: one cycle.

module via_fn_irqs #(
  parameter int unsigned NumSlots = via_pkg::NumSlots,
  parameter int unsigned Users    = 16
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [NumSlots-1:0] irq_i,   // pulses
  output logic [   Users-1:0] req_o,
  input  logic [   Users-1:0] ack_i,   // pulse: the message of a request was sent
  output logic                still_o
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
