// SPDX-License-Identifier: Apache-2.0
//
// The edge of a stream whose destination may change at any time: every destination gets messages from their first beat on.
//
// Throughput: one beat a cycle. Latency: none for beats, one cycle for a change of dst_i. Order: kept. Beats go to dst_o; 0 is none: beats
// are then accepted and dropped, and so is the rest of a message whose beginning went elsewhere. The old destination itself ends a message
// that stops in the middle (via_vio_join, via_vio_sink). Misuse: none is possible.

module via_vio_edge #(
  parameter int unsigned DstW = 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            cut_i,      // level: the source starts over: its open message is over, and no beat is taken
  input  logic [DstW-1:0] dst_i,      // level: destination, may change in any cycle
  output logic [DstW-1:0] dst_o,      // destination, from a register
  input  logic            s_valid_i,
  input  logic            s_last_i,   // the beat offered is the last of its message
  output logic            s_ready_o,
  output logic            m_valid_o,
  input  logic            m_ready_i,
  output logic            open_o,     // level: in the next cycle beats go to dst_o, unless cut_i
  output logic            still_o     // nothing moves unless an input changes
);

  localparam bit DstWOk = via_pkg::param_in("via_vio_edge DstW", DstW, 1, 8);

  logic [DstW-1:0] dst_q;
  // skip_q: within a message whose beginning went elsewhere
  logic mid_q, mid, skip_q, skip, none_q, drop, beat;

  assign drop = cut_i || none_q || skip_q;
  assign s_ready_o = drop || m_ready_i;
  assign m_valid_o = s_valid_i && !drop;
  assign dst_o = dst_q;
  assign beat = s_valid_i && s_ready_o && !cut_i;
  assign mid = beat ? !s_last_i : mid_q;
  assign skip = mid && !cut_i && (skip_q || dst_i != dst_q);
  assign open_o = dst_i != '0 && !skip;
  assign still_o = !beat && dst_i == dst_q && !(cut_i && mid_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dst_q  <= '0;
      mid_q  <= 1'b0;
      skip_q <= 1'b0;
      none_q <= 1'b1;
    end else begin
      dst_q  <= dst_i;
      mid_q  <= mid && !cut_i;
      skip_q <= skip;
      none_q <= dst_i == '0;
    end
  end

endmodule
