// SPDX-License-Identifier: Apache-2.0
//
// FIFO of via_vq_scatter whose head stands in a register, straight from the input when nothing is before it: what comes alone waits one cycle.
// Throughput: one word per cycle in and out. Latency: one cycle if nothing is held, else that of via_fifo and one. Order: kept.
// Misuse: the source looks at `count_o`, words behind the head, at most Depth; what comes without room is lost.

module via_vq_scatter_fifo #(
  parameter type T = logic,
  parameter int unsigned Depth = 4,
  parameter bit Ram = 1'b0,
  localparam int unsigned CW = $clog2(Depth + 1)
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  T              s_i,
  input  logic          s_valid_i,
  output T              m_o,
  output logic          m_valid_o,
  input  logic          m_ready_i,
  output logic [CW-1:0] count_o
);

  localparam bit DepthOk = via_pkg::param_in("via_vq_scatter_fifo Depth", Depth, 1, 1 << 24);

  T head_q, next;
  logic valid_q, load, direct, next_valid, push;

  assign load      = !valid_q || m_ready_i;
  assign direct    = s_valid_i && load && count_o == '0;
  assign push      = s_valid_i && !direct;
  assign m_o       = head_q;
  assign m_valid_o = valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (load) valid_q <= next_valid || direct;
  end
  always_ff @(posedge clk_i) if (load) head_q <= next_valid ? next : s_i;

  via_fifo #(
    .T    (T),
    .Depth(Depth),
    .Ram  (Ram)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i,
    .s_valid_i(push),
    .s_ready_o(),
    .m_o      (next),
    .m_valid_o(next_valid),
    .m_ready_i(load),
    .count_o
  );

endmodule
