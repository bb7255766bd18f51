// SPDX-License-Identifier: Apache-2.0
//
// One address channel of via_axi_mux: selects a source and puts its index into the id.
// Throughput: one address per cycle, also of one source alone. Latency: none for the source selected last, one cycle for another one.
// The selection is a register: the selected source may transfer in every cycle, until another one requests and is selected instead. Sources
// 0..NumFirst-1 have priority (0 before 1), the others are served round robin. Order: that of each source is kept.

module via_axi_mux_ax
  import via_pkg::*;
#(
  parameter int unsigned N = 3,
  parameter int unsigned NumFirst = 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic    [N-1:0] full_i,        // level: from the next cycle on accept nothing from this source, except an address already offered
  input  axi_ax_t         s_i      [N],
  input  logic    [N-1:0] s_valid_i,
  output logic    [N-1:0] s_ready_o,
  output axi_ax_t         m_o,
  output logic            m_valid_o,
  input  logic            m_ready_i,
  output logic            still_o        // level: nothing moves
);

  localparam bit NOk = param_in("via_axi_mux_ax N", N, 1, 1 << IdW);
  localparam bit NumFirstOk = param_in("via_axi_mux_ax NumFirst", NumFirst, 0, N);

  logic [N-1:0] turn_q, turn, full_q, open_q, ask, first, rest;
  logic others;

  assign ask = s_valid_i & ~turn_q & ~full_q;

  always_comb begin
    first = '0;
    for (int unsigned i = NumFirst; i > 0; i--) if (ask[i-1]) first = N'(1) << (i - 1);
  end

  via_rr_arb #(
    .N(N)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (ask & ~N'((1 << NumFirst) - 1)),
    .ack_i  (m_ready_i && first == '0),
    .gnt_o  (rest),
    .idx_o  (),
    .valid_o(others)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= N'(1);
      open_q <= '0;
      full_q <= '1;
    end else begin
      turn_q <= turn;
      open_q <= turn & (~full_i | open_q & s_valid_i & {N{!m_ready_i}});
      full_q <= full_i;
    end
  end

  assign turn = (m_ready_i && (first != '0 || others)) ? (first != '0) ? first : rest : turn_q;
  assign m_valid_o = |(s_valid_i & open_q);
  assign s_ready_o = open_q & {N{m_ready_i}};

  assign still_o = !m_ready_i || ask == '0 && !m_valid_o;

  always_comb begin
    m_o = '0;
    for (int unsigned i = 0; i < N; i++) if (turn_q[i]) m_o |= s_i[i];
    m_o.id = '0;
    for (int unsigned i = 0; i < N; i++) if (turn_q[i]) m_o.id |= IdW'(i);
  end

endmodule
