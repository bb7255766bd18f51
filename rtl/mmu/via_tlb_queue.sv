// SPDX-License-Identifier: Apache-2.0
//
// Bursts that wait for their translation, in order. What arrives while it is empty passes through, so that nothing that is not held up loses
// a cycle. The next burst is in a register, the others in a memory. One of them at a time can be looked at without taking it; each carries
// a mark.
//
// Throughput: one burst a cycle in and out. Latency: none while it is empty, else one cycle. Order: kept. `s_ready_o` is a register: it falls
// when Depth + 1 bursts are held. A look takes two cycles: `look_i` is sampled with `look_load_i`, and in the next cycle `look_o` is that
// entry if `look_en_i` is high; nothing can be taken in that cycle. Misuse: a look at an entry that is not there reads anything; taking while
// looking puts the wrong burst next.

module via_tlb_queue #(
  parameter type T = logic,
  parameter int unsigned Depth = 64,  // bursts in the memory, a power of two
  localparam int unsigned AW = $clog2(Depth),
  localparam int unsigned CW = $clog2(Depth + 2)
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  T              s_i,
  input  logic          s_valid_i,
  output logic          s_ready_o,
  output T              front_o,       // the next burst
  output logic          front_mark_o,  // with front_o: it is marked
  output logic          front_any_o,   // there is one
  input  logic          take_i,        // take it, if there is one
  output logic [CW-1:0] count_o,       // bursts held
  input  logic [CW-1:0] look_i,        // place of an entry: 0 is the next one
  input  logic          look_load_i,   // pulse: sample look_i
  input  logic          look_en_i,     // level: look_o is that entry
  output T              look_o,
  output logic          look_mark_o,   // with look_o: it is marked
  input  logic          mark_i         // pulse: mark that entry
);

  localparam bit DepthOk = via_pkg::param_pow2("via_tlb_queue Depth", Depth, 2, 1024);

  logic [$bits(T)-1:0] mem[Depth];
  T front_q;
  logic [AW-1:0] wptr_q, rptr_q, look_q, raddr;
  logic [CW-1:0] count_q;
  logic [Depth-1:0] mark_q;
  logic front_mark_q, look_front_q;
  logic any_q;  // in the register
  logic more_q;  // in the memory
  logic ready_q, in, pop, store, load;

  assign raddr = look_en_i ? look_q : rptr_q;
  assign look_o = look_front_q ? front_q : T'(mem[raddr]);
  assign look_mark_o = look_front_q ? front_mark_q : mark_q[look_q];

  assign s_ready_o = ready_q;
  assign front_any_o = any_q || s_valid_i && ready_q;
  assign front_o = any_q ? front_q : s_i;
  assign front_mark_o = any_q && front_mark_q;
  assign count_o = count_q;

  assign in = s_valid_i && ready_q && (any_q || !take_i);  // what does not pass through
  assign pop = any_q && take_i;
  assign load = pop && more_q;  // from the memory to the register
  assign store = in && any_q && (!pop || more_q);  // into the memory

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q  <= '0;
      rptr_q  <= '0;
      count_q <= '0;
      any_q   <= 1'b0;
      more_q  <= 1'b0;
      ready_q <= 1'b1;
    end else begin
      if (store) wptr_q <= wptr_q + 1'b1;
      if (load) rptr_q <= rptr_q + 1'b1;
      any_q <= in || any_q && (!pop || more_q);
      if (store != load) more_q <= store || count_q != CW'(2);
      if (in != pop) begin
        count_q <= in ? count_q + 1'b1 : count_q - 1'b1;
        ready_q <= pop || count_q != CW'(Depth);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (store) mem[wptr_q] <= s_i;
    if (load) front_q <= T'(mem[raddr]);
    else if (!any_q || pop) front_q <= s_i;
    if (load) front_mark_q <= mark_q[rptr_q];
    else if (!any_q || pop) front_mark_q <= 1'b0;
    else if (mark_i && look_front_q) front_mark_q <= 1'b1;
    if (store) mark_q[wptr_q] <= 1'b0;
    if (mark_i && !look_front_q) mark_q[look_q] <= 1'b1;
    if (look_load_i) begin
      look_q       <= rptr_q + AW'(look_i) - 1'b1;
      look_front_q <= look_i == '0;
    end
  end

`ifdef VIA_PROOF
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      i_ready : assert (ready_q == (count_q != CW'(Depth + 1)) && count_q <= CW'(Depth + 1));
      i_any : assert (any_q == (count_q != '0) && more_q == (count_q > CW'(1)));
      i_place : assert (!more_q || AW'(wptr_q - rptr_q) == AW'(count_q - 1'b1));
      i_none : assert (more_q || wptr_q == rptr_q);
    end
  end
`endif

endmodule
