// SPDX-License-Identifier: Apache-2.0
//
// TLB in DRAM of FSRF (paper, section 5.2, figure 4): every access, read or write, reads the 64-byte line of its page number from a table
// in its slot's channel before it goes on. All pages are in the table here (hot runs), so the content of the line is not looked at.
//
// Throughput: one translation a cycle for both directions together, in turn; as many in flight as `Outstanding`. Latency: about 18 cycles
// and one access to DRAM (a reading of the published artifact), of which the crossbar, `Delay` and the registers here are the 18. Order:
// kept in each direction, as a direction's translations are in order. The lines are read by a manager of their own, so that they do not
// wait behind the app's data; in the published design they share its path. Without `walk_i` everything passes.

module via_rival_dram
  import via_pkg::*;
#(
  parameter int unsigned Outstanding = 64,  // translations in flight: the artifact's
  parameter int unsigned Delay       = 9    // cycles between the line and the address that it gives
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  logic    walk_i,           // constant
  input  axi_ax_t s_ar_i,
  input  logic    s_ar_valid_i,
  output logic    s_ar_ready_o,
  input  axi_ax_t s_aw_i,
  input  logic    s_aw_valid_i,
  output logic    s_aw_ready_o,
  output axi_ax_t m_ar_o,
  output logic    m_ar_valid_o,
  input  logic    m_ar_ready_i,
  output axi_ax_t m_aw_o,
  output logic    m_aw_valid_o,
  input  logic    m_aw_ready_i,
  output axi_ax_t walk_ar_o,        // address within the slot's channel
  output logic    walk_ar_valid_o,
  input  logic    walk_ar_ready_i,
  input  logic    walk_r_valid_i,
  output logic    walk_r_ready_o
);

  localparam bit OutstandingOk = param_in("via_rival_dram Outstanding", Outstanding, 2, 1024);
  localparam bit DelayOk = param_in("via_rival_dram Delay", Delay, 1, 64);

  // Index of the table: the low bits of the number of a 4 KiB page (reference: 21 bits, 128 MiB of lines).
  localparam int unsigned IndexW = 21;
  localparam int unsigned LineLog2 = 6;
  localparam int unsigned CountW = $clog2(Outstanding + 1);

  logic last_q, ask, write, asked;
  logic [CountW-1:0] flight_q[2];
  logic [1:0] open, out;
  axi_ax_t ax;
  for (genvar d = 0; d < 2; d++) begin : gen_open
    assign open[d] = flight_q[d] != CountW'(Outstanding);
  end
  assign write = s_aw_valid_i && open[1] && (!(s_ar_valid_i && open[0]) || !last_q);
  assign ask = walk_i && (s_aw_valid_i && open[1] || s_ar_valid_i && open[0]);
  assign ax = write ? s_aw_i : s_ar_i;

  // The access waits here for its line.
  logic pending_ready, pending_valid, pending_write;
  axi_ax_t pending;
  via_fifo #(
    .T    (logic [$bits(axi_ax_t):0]),
    .Depth(2 * Outstanding)
  ) u_pending (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({write, ax}),
    .s_valid_i(asked),
    .s_ready_o(pending_ready),
    .m_o      ({pending_write, pending}),
    .m_valid_o(pending_valid),
    .m_ready_i(walk_r_valid_i && walk_r_ready_o),
    .count_o  ()
  );
  assign asked = ask && pending_ready && walk_ar_ready_i;
  assign walk_ar_valid_o = ask && pending_ready;
  always_comb begin
    walk_ar_o = '0;
    walk_ar_o.burst = BurstIncr;
    walk_ar_o.size = 3'(BeatLog2);
    walk_ar_o.addr = AddrW'(IndexW'(ax.addr >> PageLog2)) << LineLog2;
  end
  assign walk_r_ready_o = pending_valid;  // the FIFOs at the end have room for all that is in flight

  // Comparison of the line's eight entries and all else behind it.
  logic [Delay-1:0] on_q, write_q;
  axi_ax_t ax_q[Delay];
  logic [1:0] q_valid;
  axi_ax_t q[2];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      on_q <= '0;
    end else begin
      on_q[0] <= walk_r_valid_i && walk_r_ready_o;
      for (int unsigned i = 1; i < Delay; i++) on_q[i] <= on_q[i-1];
    end
    write_q[0] <= pending_write;
    ax_q[0]    <= pending;
    for (int unsigned i = 1; i < Delay; i++) begin
      write_q[i] <= write_q[i-1];
      ax_q[i]    <= ax_q[i-1];
    end
  end
  for (genvar d = 0; d < 2; d++) begin : gen_out
    via_fifo #(
      .T    (axi_ax_t),
      .Depth(Outstanding)
    ) u_out (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (ax_q[Delay-1]),
      .s_valid_i(on_q[Delay-1] && write_q[Delay-1] == 1'(d)),
      .s_ready_o(),                                            // there is room: `open`
      .m_o      (q[d]),
      .m_valid_o(q_valid[d]),
      .m_ready_i(out[d]),
      .count_o  ()
    );
    always_ff @(posedge clk_i) begin
      if (!rst_ni) flight_q[d] <= '0;
      else flight_q[d] <= flight_q[d] + CountW'(asked && write == 1'(d)) - CountW'(out[d] && q_valid[d]);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) last_q <= 1'b0;
    else if (asked) last_q <= write;
  end

  assign out = {m_aw_ready_i, m_ar_ready_i} & {2{walk_i}};
  assign m_ar_o = walk_i ? q[0] : s_ar_i;
  assign m_aw_o = walk_i ? q[1] : s_aw_i;
  assign m_ar_valid_o = walk_i ? q_valid[0] : s_ar_valid_i;
  assign m_aw_valid_o = walk_i ? q_valid[1] : s_aw_valid_i;
  assign s_ar_ready_o = walk_i ? asked && !write : m_ar_ready_i;
  assign s_aw_ready_o = walk_i ? asked && write : m_aw_ready_i;

endmodule
