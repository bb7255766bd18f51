// SPDX-License-Identifier: Apache-2.0
//
// Skid buffer for a stream whose destination may change at any time (from a via_fn_src, to a via_fn_join): holds one beat that was offered
// and not accepted, as via_skid does, so that `s_ready_o` comes from a register.
//
// Throughput: one beat a cycle. Latency: none. Order: kept. Misuse: a beat held when its destination changes is dropped, and in that cycle
// m has no destination: to the old destination the connection ends within a message, whatever s_dst_i is afterwards.

module via_fn_hold
  import via_pkg::*;
#(
  parameter int unsigned NumDst = 1,
  parameter int unsigned DstW   = 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  strm_t            s_i,
  input  logic  [DstW-1:0] s_dst_i,    // level, also without a beat: destination; 0 and above NumDst is none
  input  logic             s_valid_i,
  output logic             s_ready_o,
  output strm_t            m_o,
  output logic  [NumDst:1] m_to_o,     // level, one-hot: destination, also of m_valid_o
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output logic             still_o     // nothing moves unless an input changes
);

  localparam bit DstWOk = param_in("via_fn_hold DstW", DstW, 1, 8);
  localparam bit NumDstOk = param_in("via_fn_hold NumDst", NumDst, 1, (1 << DstW) - 1);

  strm_t held_q;
  logic [NumDst:1] to, to_q;
  logic [DstW-1:0] dst_q;
  logic ready_q, stays;

  assign stays = ready_q || s_dst_i == dst_q;
  always_comb for (int unsigned d = 1; d <= NumDst; d++) to[d] = s_dst_i == DstW'(d);
  assign s_ready_o = ready_q;
  assign m_o = ready_q ? s_i : held_q;
  assign m_to_o = to & (to_q | {NumDst{ready_q}});
  assign m_valid_o = !ready_q || s_valid_i;
  assign still_o = ready_q ? !s_valid_i : stays && !m_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ready_q <= 1'b1;
    else ready_q <= !m_valid_o || !stays || m_ready_i;
  end
  always_ff @(posedge clk_i) begin
    if (ready_q && s_valid_i && !m_ready_i) begin
      held_q <= s_i;
      dst_q  <= s_dst_i;
      to_q   <= to;
    end
  end

endmodule
