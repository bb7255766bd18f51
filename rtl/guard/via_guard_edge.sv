// SPDX-License-Identifier: Apache-2.0
//
// Where a channel leaves a slot: a register slice, and a watch on valid. A slot that drops valid before ready breaks the handshake; what it does
// to the payload meanwhile only changes its own data. Throughput: one beat a cycle. Latency: one cycle.
// With `cut_i` the slot sees no ready and nothing enters; what the slice holds can still be taken or is flushed by reset.

module via_guard_edge
  import via_pkg::*;
#(
  parameter type T = logic
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic cut_i,
  input  T     s_i,
  input  logic s_valid_i,
  output logic s_ready_o,
  output T     m_o,
  output logic m_valid_o,
  input  logic m_ready_i,
  output logic dropped_o
);

  logic ready, waits_q;

  via_slice #(
    .T(T)
  ) u_slice (
    .clk_i,
    .rst_ni   (rst_ni && !cut_i),
    .s_i,
    .s_valid_i(s_valid_i && !cut_i),
    .s_ready_o(ready),
    .m_o,
    .m_valid_o,
    .m_ready_i
  );
  assign s_ready_o = ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || cut_i) waits_q <= 1'b0;
    else waits_q <= s_valid_i && !ready;
  end
  assign dropped_o = waits_q && !s_valid_i;

endmodule
