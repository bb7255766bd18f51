// SPDX-License-Identifier: Apache-2.0
//
// Source side of a stream whose destination may change at any time: every destination gets messages from their first beat on.
//
// Throughput: one beat a cycle. Latency: none for beats, one cycle for a change of dst_i. Order: kept. Beats go to dst_o; 0 is none: beats
// are then accepted and dropped, and so is the rest of a message whose beginning went elsewhere. The old destination itself ends a message
// that stops in the middle (via_fn_join). Misuse: none is possible.

module via_fn_src #(
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
  output logic            begin_o,    // pulse: the first beat of a message is accepted
  output logic            cut_o,      // pulse: in the previous cycle a message was cut short
  output logic            still_o     // nothing moves unless an input changes
);

  localparam bit DstWOk = via_pkg::param_in("via_fn_src DstW", DstW, 1, 8);

  logic [DstW-1:0] dst_q;
  // skip_q: within a message whose beginning went elsewhere
  logic mid_q, mid, skip_q, skip, none_q, drop, beat, goes, cut_q, moved_q;

  assign drop = cut_i || none_q || skip_q;
  assign s_ready_o = drop || m_ready_i;
  assign m_valid_o = s_valid_i && !drop;
  assign dst_o = dst_q;
  assign beat = s_valid_i && s_ready_o && !cut_i;
  assign mid = beat ? !s_last_i : mid_q;
  assign begin_o = beat && !mid_q;
  assign skip = mid && !cut_i && (skip_q || dst_i != dst_q);
  assign open_o = dst_i != '0 && !skip;
  assign goes = !skip_q && !none_q;
  // Only used for counting: from registers, so that no beat's readiness is in its path.
  assign cut_o = cut_q || moved_q && mid_q;
  assign still_o = !beat && dst_i == dst_q && !(cut_i && mid_q) && !cut_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dst_q   <= '0;
      mid_q   <= 1'b0;
      skip_q  <= 1'b0;
      none_q  <= 1'b1;
      cut_q   <= 1'b0;
      moved_q <= 1'b0;
    end else begin
      dst_q   <= dst_i;
      mid_q   <= mid && !cut_i;
      skip_q  <= skip;
      none_q  <= dst_i == '0;
      cut_q   <= goes && cut_i && mid_q;
      moved_q <= goes && dst_i != dst_q;
    end
  end

endmodule
