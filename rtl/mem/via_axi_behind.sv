// SPDX-License-Identifier: Apache-2.0
//
// Register slice for read addresses that keeps a read behind the writes accepted before it, as PCIe requires (Base Specification, ordering
// rules: a read does not pass a posted write). It sits beside the slices of AW and W, whose inputs and outputs it counts.
// Throughput: an address a cycle. Latency: one cycle, or until the cycle after the last of those writes has left. Order: kept.
// A write is before a read if its last beat was accepted in an earlier cycle. Bursts whose last beat is still to come delay no read.
// Every output is a register; `m_ready_i` and the four pulses drive registers only. Misuse: an outgoing pulse without an incoming one
// before it, or more than two writes in a slice, breaks the count (asserted).

module via_axi_behind
  import via_pkg::*;
(
  input  logic    clk_i,
  input  logic    rst_ni,
  input  logic    aw_in_i,  // pulse: an address enters the slice of AW
  input  logic    aw_out_i,  // pulse: one leaves it
  input  logic    w_in_i,  // pulse: the last beat of a burst enters the slice of W
  input  logic    w_out_i,  // pulse: one leaves it
  input  axi_ax_t s_i,
  input  logic    s_valid_i,
  output logic    s_ready_o,
  output axi_ax_t m_o,
  output logic    m_valid_o,
  input  logic    m_ready_i
);

  // Writes in the slices, and, for each read address held, how many of them are before it: two at most.
  logic [1:0] aw_q, w_q;
  typedef struct packed {
    logic       full;
    logic [1:0] aw;
    logic [1:0] w;
  } wait_t;
  wait_t main_q, main_d, skid_q, skid_d, fresh;
  axi_ax_t main_ax_q, skid_ax_q;
  logic ready_q, valid_q, take, advance;

  // `ahead` as it is after this cycle.
  function automatic wait_t passed(input wait_t ahead, input logic aw_out, input logic w_out);
    passed = ahead;
    if (aw_out && ahead.aw != '0) passed.aw = ahead.aw - 2'd1;
    if (w_out && ahead.w != '0) passed.w = ahead.w - 2'd1;
  endfunction

  assign s_ready_o = ready_q;
  assign m_valid_o = valid_q;
  assign m_o       = main_ax_q;
  assign take      = s_valid_i && ready_q;
  assign advance   = !main_q.full || valid_q && m_ready_i;

  always_comb begin
    fresh  = passed('{full: take, aw: aw_q, w: w_q}, aw_out_i, w_out_i);
    main_d = passed(main_q, aw_out_i, w_out_i);
    skid_d = passed(skid_q, aw_out_i, w_out_i);
    if (advance) begin
      main_d = skid_q.full ? skid_d : fresh;
      skid_d = '0;
    end else if (take) begin
      skid_d = fresh;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_q    <= '0;
      w_q     <= '0;
      main_q  <= '0;
      skid_q  <= '0;
      valid_q <= 1'b0;
      ready_q <= 1'b0;
    end else begin
      aw_q    <= aw_q + 2'(aw_in_i) - 2'(aw_out_i);
      w_q     <= w_q + 2'(w_in_i) - 2'(w_out_i);
      main_q  <= main_d;
      skid_q  <= skid_d;
      valid_q <= main_d.full && main_d.aw == '0 && main_d.w == '0;
      ready_q <= !skid_d.full;
    end
  end
  always_ff @(posedge clk_i) begin
    if (advance && (skid_q.full || take)) main_ax_q <= skid_q.full ? skid_ax_q : s_i;
    if (!advance && take) skid_ax_q <= s_i;
  end

`ifndef SYNTHESIS
  // Checked with independent counters: writes that have completely entered and left, and how many had entered before each address held.
  logic [31:0] come_q, aw_gone_q, w_gone_q, main_come_q, skid_come_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      come_q    <= '0;
      aw_gone_q <= '0;
      w_gone_q  <= '0;
    end else begin
      come_q    <= come_q + 32'(w_in_i);
      aw_gone_q <= aw_gone_q + 32'(aw_out_i);
      w_gone_q  <= w_gone_q + 32'(w_out_i);
      if (advance && (skid_q.full || take)) main_come_q <= skid_q.full ? skid_come_q : come_q;
      if (!advance && take) skid_come_q <= come_q;
      a_behind :
      assert (!valid_q || signed'(w_gone_q - main_come_q) >= 0 && signed'(aw_gone_q - main_come_q) >= 0)
      else $error("a read passes a write that was accepted before it");
      a_room : assert (aw_q != 2'd3 && w_q != 2'd3);
    end
  end
`endif

endmodule
