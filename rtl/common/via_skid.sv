// SPDX-License-Identifier: Apache-2.0
//
// Skid buffer for one ready/valid channel: holds one beat that was offered and not accepted, so that `s_ready_o` comes from a register. For
// places where a register slice would cost a cycle of latency; payload and valid are combinational from s_ to m_.
// Throughput: one beat per cycle. Latency: none. Order: kept.

module via_skid #(
  parameter type T = logic
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  T     s_i,
  input  logic s_valid_i,
  output logic s_ready_o,
  output T     m_o,
  output logic m_valid_o,
  input  logic m_ready_i
);

  T held_q;
  logic ready_q;

  assign s_ready_o = ready_q;
  assign m_valid_o = s_valid_i || !ready_q;
  assign m_o = ready_q ? s_i : held_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ready_q <= 1'b1;
    else ready_q <= !m_valid_o || m_ready_i;
  end
  always_ff @(posedge clk_i) if (ready_q && s_valid_i && !m_ready_i) held_q <= s_i;

endmodule
