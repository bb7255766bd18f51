// SPDX-License-Identifier: Apache-2.0
//
// Merges the interrupts of all functions into one port, round robin. Throughput: one a cycle. Latency: one cycle. Order: kept for each
// function. Misuse: none is possible; a function waits until its interrupt is accepted.

module via_fn_msix
  import via_virtio_pkg::*;
(
  input  logic           clk_i,
  input  logic           rst_ni,
  input  logic [NumFn:1] valid_i,
  input  logic [    7:0] vector_i     [NumFn:1],  // MSI-X vector, with valid_i
  output logic [NumFn:1] ready_o,
  output logic           msix_valid_o,
  output logic [FnW-1:0] msix_fn_o,               // function it belongs to
  output logic [    7:0] msix_vector_o,           // its vector
  input  logic           msix_ready_i,
  output logic           still_o,                 // nothing moves unless an input changes
  output logic           idle_o                   // level: no interrupt waits
);

  typedef struct packed {
    logic [FnW-1:0] fn;
    logic [7:0]     vector;
  } irq_t;

  logic [NumFn-1:0] valid, gnt;
  logic [7:0] vector[NumFn:1];
  logic any, room;
  irq_t irq, irq_out;

  via_rr_arb #(
    .N(NumFn)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (valid),
    .ack_i  (room),
    .gnt_o  (gnt),
    .idx_o  (),
    .valid_o(any)
  );
  for (genvar f = 1; f <= NumFn; f++) begin : gen_fn
    via_skid #(
      .T(logic [7:0])
    ) u_skid (
      .clk_i,
      .rst_ni,
      .s_i      (vector_i[f]),
      .s_valid_i(valid_i[f]),
      .s_ready_o(ready_o[f]),
      .m_o      (vector[f]),
      .m_valid_o(valid[f-1]),
      .m_ready_i(room && gnt[f-1])
    );
  end

  always_comb begin
    irq = '{fn: '0, vector: '0};
    for (int unsigned f = 1; f <= NumFn; f++) if (gnt[f-1]) irq |= {FnW'(f), vector[f]};
  end

  via_slice #(
    .T(irq_t)
  ) u_slice (
    .clk_i,
    .rst_ni,
    .s_i      (irq),
    .s_valid_i(any),
    .s_ready_o(room),
    .m_o      (irq_out),
    .m_valid_o(msix_valid_o),
    .m_ready_i(msix_ready_i)
  );
  assign msix_fn_o = irq_out.fn;
  assign msix_vector_o = irq_out.vector;
  assign still_o = !(any && room) && (valid_i & ready_o) == '0 && !msix_valid_o;
  assign idle_o = !any && !msix_valid_o;

endmodule
