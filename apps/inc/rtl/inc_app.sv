// SPDX-License-Identifier: Apache-2.0
//
// Adds `amount` to every 32-bit word of the stream, modulo 2^32. If a message ends within a word, its bytes are treated as if the rest of
// the word followed. Throughput: one beat a cycle. Latency: none of its own: one adder between the registers at the edge of the slot.
// Order: kept. `amount` should not change during a message; a beat uses the value of its cycle.

module inc_app
  import via_pkg::*;
(  // verilator lint_off UNUSEDSIGNAL  // nothing is held
  input  logic         clk_i,
  input  logic         rst_ni,       // verilator lint_on UNUSEDSIGNAL
  input  strm_t        in_i,
  input  logic         in_valid_i,
  output logic         in_ready_o,
  output strm_t        out_o,
  output logic         out_valid_o,
  input  logic         out_ready_i,
  input  logic  [31:0] amount_i      // summand
);

  assign out_valid_o = in_valid_i;
  assign in_ready_o  = out_ready_i;

  always_comb begin
    out_o = in_i;
    for (int unsigned i = 0; i < DataW / 32; i++) out_o.data[32*i+:32] = in_i.data[32*i+:32] + amount_i;
  end

endmodule
