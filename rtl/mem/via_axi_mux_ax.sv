// SPDX-License-Identifier: Apache-2.0
//
// One address channel of via_axi_mux: picks a source and puts its index into the id. Combinational, one address per cycle.
// Sources 0..NumFirst-1 go first (0 before 1), the rest take turns. A choice stands until it is taken.

module via_axi_mux_ax
  import via_pkg::*;
#(
  parameter int unsigned N = 3,
  parameter int unsigned NumFirst = 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  axi_ax_t         s_i      [N],
  input  logic    [N-1:0] s_valid_i,
  output logic    [N-1:0] s_ready_o,
  output axi_ax_t         m_o,
  output logic            m_valid_o,
  input  logic            m_ready_i
);

  logic [N-1:0] first, rest, pick;

  always_comb begin
    first = '0;
    for (int unsigned i = NumFirst; i > 0; i--) if (s_valid_i[i-1]) first = N'(1) << (i - 1);
  end

  via_rr_arb #(
    .N(N)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (s_valid_i & ~N'((1 << NumFirst) - 1)),
    .ack_i  (m_ready_i && first == '0),
    .gnt_o  (rest),
    .idx_o  (),
    .valid_o()
  );

  assign pick = (first != '0) ? first : rest;
  assign m_valid_o = |s_valid_i;
  assign s_ready_o = pick & {N{m_ready_i}};

  always_comb begin
    m_o = s_i[0];
    for (int unsigned i = 0; i < N; i++) begin
      if (pick[i]) begin
        m_o = s_i[i];
        m_o.id = IdW'(i);
      end
    end
  end

endmodule
