// SPDX-License-Identifier: Apache-2.0
//
// First-word-fall-through FIFO for one ready/valid channel, one clock.
// Throughput: one beat per cycle in and out. Latency: one cycle with Ram = 0 (distributed memory, combinational read), two with Ram = 1
// (via_ram_sdp with an output register). Order: kept. Ready falls when Depth entries are held.

module via_fifo #(
  parameter type T = logic,
  parameter int unsigned Depth = 4,
  parameter bit Ram = 1'b0,
  localparam int unsigned CW = $clog2(Depth + 1)
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic          flush_i,    // one-cycle pulse: drops all entries and what arrives in this cycle
  input  T              s_i,
  input  logic          s_valid_i,
  output logic          s_ready_o,
  output T              m_o,
  output logic          m_valid_o,
  input  logic          m_ready_i,
  output logic [CW-1:0] count_o     // entries held, including the one in the output register
);

  localparam bit DepthOk = via_pkg::param_in("via_fifo Depth", Depth, 1, 1 << 24);

  localparam int unsigned AW = (Depth > 1) ? $clog2(Depth) : 1;
  localparam int unsigned Width = $bits(T);

  logic [AW-1:0] wptr_q, rptr_q;
  logic [CW-1:0] count_q;
  // The handshake outputs come from registers: "not full" here, "not empty" below.
  logic ready_q;
  logic push, pop;

  assign push = s_valid_i && s_ready_o;
  assign pop = m_valid_o && m_ready_i;
  assign s_ready_o = ready_q;
  assign count_o = count_q;

  function automatic logic [AW-1:0] after(input logic [AW-1:0] p);
    return (p == AW'(Depth - 1)) ? '0 : p + 1'b1;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i) begin
      wptr_q  <= '0;
      count_q <= '0;
      ready_q <= 1'b1;
    end else begin
      if (push) wptr_q <= after(wptr_q);
      if (push != pop) begin
        count_q <= push ? count_q + 1'b1 : count_q - 1'b1;
        ready_q <= pop || count_q != CW'(Depth - 1);
      end
    end
  end

  if (Ram) begin : gen_ram
    // The memory holds the entries not yet fetched; a fetched one is in the memory's output register. A fetch starts when that register is
    // free or is read in this cycle.
    logic [CW-1:0] stored_q;  // written to the memory in an earlier cycle, not yet fetched
    logic valid_q, fetch;

    assign fetch = stored_q != '0 && (!valid_q || m_ready_i);
    assign m_valid_o = valid_q;

    always_ff @(posedge clk_i) begin
      if (!rst_ni || flush_i) begin
        rptr_q   <= '0;
        stored_q <= '0;
        valid_q  <= 1'b0;
      end else begin
        if (fetch) rptr_q <= after(rptr_q);
        if (fetch || m_ready_i) valid_q <= fetch;
        if (push != fetch) stored_q <= push ? stored_q + 1'b1 : stored_q - 1'b1;
      end
    end

    via_ram_sdp #(
      .Width(Width),
      .Depth(Depth)
    ) u_ram (
      .clk_i,
      .we_i   (push),
      .waddr_i(wptr_q),
      .wdata_i(s_i),
      .re_i   (fetch),
      .raddr_i(rptr_q),
      .rdata_o(m_o)
    );
`ifdef VIA_PROOF
    always_ff @(posedge clk_i) if (rst_ni) i_held : assert (count_q == stored_q + CW'(valid_q) && stored_q <= CW'(Depth));
`endif
  end else begin : gen_lut
    logic [Width-1:0] mem[Depth];
    logic any_q;

    assign m_valid_o = any_q;
    assign m_o = T'(mem[rptr_q]);

    always_ff @(posedge clk_i) begin
      if (push) mem[wptr_q] <= s_i;
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni || flush_i) begin
        rptr_q <= '0;
        any_q  <= 1'b0;
      end else begin
        if (pop) rptr_q <= after(rptr_q);
        if (push != pop) any_q <= push || count_q != CW'(1);
      end
    end
`ifdef VIA_PROOF
    always_ff @(posedge clk_i) if (rst_ni) i_any : assert (any_q == (count_q != '0));
`endif
  end

`ifdef VIA_PROOF
  // Invariants that the inductive proofs of blocks with FIFOs rely on.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      i_ready : assert (ready_q == (count_q != CW'(Depth)) && count_q <= CW'(Depth));
    end
  end
`endif

endmodule
