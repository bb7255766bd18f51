// SPDX-License-Identifier: Apache-2.0
//
// Where a channel leaves a slot: a register slice, and a watch on valid. A slot that drops valid before ready breaks the handshake; what it does
// to the payload meanwhile only changes its own data. Throughput: one beat a cycle. Latency: one cycle.
// With `cut_i` nothing enters, and the slice forgets what it holds, a cycle later. What comes with `bad_i` is taken and does not enter, nor does
// anything behind it until `cut_i`; `stopped_o` says so once all before it has left.

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
  input  logic bad_i,
  output logic s_ready_o,
  output T     m_o,
  output logic m_valid_o,
  input  logic m_ready_i,
  output logic dropped_o,
  output logic stopped_o
);

  logic ready, waits_q, stop_q;

  via_slice #(
    .T(T)
  ) u_slice (
    .clk_i,
    .rst_ni   (rst_ni && !cut_i),
    .s_i,
    .s_valid_i(s_valid_i && !cut_i && !bad_i && !stop_q),
    .s_ready_o(ready),
    .m_o,
    .m_valid_o,
    .m_ready_i
  );
  assign s_ready_o = ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || cut_i) begin
      waits_q <= 1'b0;
      stop_q  <= 1'b0;
    end else begin
      waits_q <= s_valid_i && !ready;
      stop_q  <= stop_q || s_valid_i && ready && bad_i;
    end
  end
  assign stopped_o = stop_q && !m_valid_o;
  assign dropped_o = waits_q && !s_valid_i;

endmodule
