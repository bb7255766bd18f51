// SPDX-License-Identifier: Apache-2.0
//
// FIFO whose oldest word is held in a register, loaded straight from the input when no other word is before it: a single word waits one
// cycle, even one that arrives as the last one leaves.
//
// Throughput: one word a cycle in and out. Latency: one cycle if nothing is held behind the register, else that of via_fifo and one more,
// and yet one more with Late, for words that arrive late in a cycle: a register then precedes the memory. Order: kept.
// Depth + 1 words are held; `count_o` counts those behind the register. All outputs except `hidden_o` come from registers.
// Misuse: a word that comes without `s_ready_o` is lost; a source that counts credits may leave it unconnected. With Late it has to count,
// and `count_o` is a cycle late.

module via_vq_fifo #(
  parameter  type         T     = logic,
  parameter  int unsigned Depth = 4,                 // words besides the one in the register
  parameter  bit          Ram   = 1'b0,              // block memory, see via_fifo
  parameter  bit          Late  = 1'b0,              // a register in front of the memory
  localparam int unsigned CW    = $clog2(Depth + 1)
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  T              s_i,        // word
  input  logic          s_valid_i,
  output logic          s_ready_o,
  output T              m_o,        // oldest word, from a register
  output logic          m_valid_o,
  input  logic          m_ready_i,
  output logic [CW-1:0] count_o,    // words held behind the register
  output logic          hidden_o    // level: words are on their way to the register
);

  localparam bit DepthOk = via_pkg::param_in("via_vq_fifo Depth", Depth, 1, 1 << 24);

  T next, head_q, word;
  logic
      push,
      put,
      late,
      load,
      direct,
      next_valid,
      valid_q,
      any_q,
      came,
      any_if_load;  // late: a word is in the register in front of the memory

  assign load = !valid_q || m_ready_i;
  assign direct = s_valid_i && load && !any_q;
  assign push = s_valid_i && !direct;
  assign m_o = head_q;
  assign m_valid_o = valid_q;
  assign hidden_o = any_q && !(valid_q && next_valid);

  if (Late) begin : gen_late
    T word_q;
    logic put_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) put_q <= 1'b0;
      else put_q <= push;
    end
    always_ff @(posedge clk_i) word_q <= s_i;
    assign word = word_q;
    assign put  = put_q;
    assign late = put_q;
  end else begin : gen_now
    assign word = s_i;
    assign put  = push;
    assign late = 1'b0;
  end

  via_fifo #(
    .T    (T),
    .Depth(Depth),
    .Ram  (Ram)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (word),
    .s_valid_i(put),
    .s_ready_o,
    .m_o      (next),
    .m_valid_o(next_valid),
    .m_ready_i(load),
    .count_o
  );

  // any_q: a word is held behind the register. Its next value is computed except for `load`, which arrives last.
  assign came = s_valid_i && s_ready_o;
  assign any_if_load = any_q && (!next_valid || came || late || count_o != CW'(1));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      any_q   <= 1'b0;
    end else begin
      if (load) valid_q <= next_valid || direct;
      any_q <= load ? any_if_load : any_q || came;
    end
  end
  always_ff @(posedge clk_i) if (load) head_q <= any_q ? next : s_i;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i)
    if (rst_ni)
      assert (!late || s_ready_o)
      else $error("a word comes without room");
`endif

`ifdef VIA_PROOF
  // Invariants that the inductive proofs of blocks with such FIFOs rely on.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      i_any : assert (any_q == (count_o != '0 || late));
      i_head : assert (Ram || valid_q || !any_q);
    end
  end
`endif

endmodule
