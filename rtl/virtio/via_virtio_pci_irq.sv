// SPDX-License-Identifier: Apache-2.0
//
// Turns the interrupts of a function's queues and of its configuration into MSI-X requests, and keeps the ISR.
//
// Throughput: one request every two cycles. Latency: one cycle for a queue if none waits, otherwise two. Order: round robin. Requests of
// one source merge while they wait; each is followed by an interrupt. The vector is looked up when the request is sent; without a vector it
// only sets the ISR. With bus mastering disabled requests wait. A request once offered stays until it is accepted, and `busy_o` is high
// meanwhile. Misuse: none is possible.
// Source: VIRTIO 1.3, 4.1.4.5, 4.1.5.3, 4.1.5.4.

module via_virtio_pci_irq
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2  // queues
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              clear_i,                // level: device reset, drops what waits
  input  logic              bus_master_i,           // level: Bus Master Enable
  input  logic              set_valid_i,            // pulse: interrupt of a queue; always accepted
  input  logic [QueueW-1:0] set_queue_i,            // with it: the queue
  input  logic              set_config_i,           // pulse: interrupt of the configuration
  input  logic [  NumQ-1:0] forget_i,               // levels: queues under reset, whose requests are dropped
  input  logic [       7:0] vector_i     [NumQ+1],  // vectors of the queues, then of the configuration; 0xff: none
  output logic [       1:0] isr_o,                  // ISR status: [0] queue, [1] configuration
  input  logic              isr_read_i,             // pulse: the ISR is read, which clears it
  output logic              msix_valid_o,
  output logic [       7:0] msix_vector_o,          // MSI-X vector
  input  logic              msix_ready_i,
  output logic              busy_o,                 // level: a message is offered
  output logic              still_o,                // level: nothing moves unless an input changes
  output logic              idle_o                  // level: nothing waits
);

  localparam bit NumQOk = via_pkg::param_in("via_virtio_pci_irq NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned Sources = NumQ + 1;

  logic [Sources-1:0] pend_q, set, gnt, pick, forget;
  logic [7:0] vector, vector_q;
  logic [1:0] isr_q;
  logic any, take, takes, direct, ends, valid_q;  // ends: it is dropped, or has no vector

  always_comb begin
    set = '0;
    for (int unsigned q = 0; q < NumQ; q++) set[q] = set_valid_i && set_queue_i == QueueW'(q);
    set[NumQ] = set_config_i;
  end
  assign forget = {1'b0, forget_i} | {Sources{clear_i}};

  via_rr_arb #(
    .N(Sources)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (pend_q),
    .ack_i  (take),
    .gnt_o  (gnt),
    .idx_o  (),
    .valid_o(any)
  );
  // If none waits, that of a queue is sent at once.
  assign pick = any ? gnt : {1'b0, set[NumQ-1:0]};
  always_comb begin
    vector = '0;
    ends   = 1'b0;
    for (int unsigned i = 0; i < Sources; i++) begin
      if (pick[i]) vector |= vector_i[i];
      ends |= pick[i] && (forget[i] || vector_i[i] == '1);
    end
  end
  assign take   = any && !valid_q && bus_master_i;
  assign direct = !any && set_valid_i && !valid_q && bus_master_i;
  assign takes  = take || direct;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pend_q  <= '0;
      valid_q <= 1'b0;
      isr_q   <= '0;
    end else begin
      pend_q <= (pend_q & ~(gnt &{Sources{take}}) | set & ~{1'b0, {NumQ{direct}}}) & ~forget;
      if (valid_q) valid_q <= !msix_ready_i;
      else valid_q <= takes && !ends;
      if (clear_i) isr_q <= '0;
      else isr_q <= (isr_q & ~{2{isr_read_i}}) | {set_config_i, set_valid_i};
    end
  end
  always_ff @(posedge clk_i) if (takes) vector_q <= vector;

  assign isr_o = isr_q;
  assign msix_valid_o = valid_q;
  assign msix_vector_o = vector_q;
  assign busy_o = valid_q;
  assign idle_o = ~|{pend_q, valid_q, set};
  assign still_o = ~|{take, valid_q, set};

endmodule
