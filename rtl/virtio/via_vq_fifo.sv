// SPDX-License-Identifier: Apache-2.0
//
// FIFO in block memory (Ram = 0: in distributed memory) whose oldest entry stands in a register: what comes while it is empty is there in the next
// cycle.
//
// Throughput: one entry a cycle in and out. Latency: one cycle if nothing is held, else as via_fifo with this Ram. Order: kept.
// Depth + 1 entries are held. `m_valid_o` and `m_o` come from registers. Misuse: as a ready/valid channel, see via_fifo.

module via_vq_fifo #(
  parameter  type         T     = logic,
  parameter  int unsigned Depth = 4,
  parameter  bit          Ram   = 1'b1,
  localparam int unsigned CW    = $clog2(Depth + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  T     s_i,
  input  logic s_valid_i,
  output logic s_ready_o,
  output T     m_o,
  output logic m_valid_o,
  input  logic m_ready_i,
  output logic hidden_o    // entries are held and none is offered
);

  localparam bit DepthOk = via_pkg::param_in("via_vq_fifo Depth", Depth, 1, 1 << 24);

  T behind, head_q;
  logic push, pop, behind_valid, head_valid_q, any_q, load;
  logic [CW-1:0] count;

  // Behind the register: whatever comes while it is taken, or while something waits there already.
  assign push = s_valid_i && (head_valid_q || any_q);
  assign load = !head_valid_q || m_ready_i;
  assign pop = behind_valid && load;
  assign m_o = head_q;
  assign m_valid_o = head_valid_q;
  assign hidden_o = any_q && !head_valid_q;

  via_fifo #(
    .T    (T),
    .Depth(Depth),
    .Ram  (Ram)
  ) u_behind (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i,
    .s_valid_i(push),
    .s_ready_o,
    .m_o      (behind),
    .m_valid_o(behind_valid),
    .m_ready_i(load),
    .count_o  (count)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_valid_q <= 1'b0;
      any_q        <= 1'b0;
    end else begin
      if (head_valid_q) head_valid_q <= !m_ready_i || behind_valid;
      else head_valid_q <= behind_valid || !any_q && s_valid_i && s_ready_o;
      if ((push && s_ready_o) != pop) any_q <= !pop || count != CW'(1);
    end
  end
  always_ff @(posedge clk_i) if (load) head_q <= any_q ? behind : s_i;

endmodule
