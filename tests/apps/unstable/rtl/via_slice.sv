// SPDX-License-Identifier: Apache-2.0
//
// A slice that offers each beat in every other cycle only, accepted or not: its valid falls before ready.

module via_slice #(
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

  T beat_q;
  logic held_q, show_q;
  assign s_ready_o = !held_q;
  assign m_valid_o = held_q && show_q;
  assign m_o = beat_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {held_q, show_q} <= '0;
    else begin
      show_q <= !show_q;
      if (!held_q) held_q <= s_valid_i;
      else if (m_valid_o && m_ready_i) held_q <= 1'b0;
    end
    if (!held_q) beat_q <= s_i;
  end

endmodule
