// SPDX-License-Identifier: Apache-2.0
//
// Puts the read clients of a queue engine on one AR/R. Everything is sent with id 0 and comes back in order.
//
// Throughput: one address and one beat per cycle. Latency: none added, either way. Order: client 0 goes before 1, and so on; the parent puts
// what others wait for (fields, rings, descriptors) before payload, which is limited by its own credit and takes what is left of the addresses.
// A client that has been offered stays offered until it is taken.
// Misuse: relies on the no-wedge rule: a client that does not take R stops the others.

module via_vq_rdmux
  import via_pkg::*;
#(
  parameter int unsigned N = 4,
  parameter int unsigned Outstanding = 128  // bursts in flight
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  axi_ax_t         s_ar_i      [N],
  input  logic    [N-1:0] s_ar_valid_i,
  output logic    [N-1:0] s_ar_ready_o,
  output axi_r_t          s_r_o       [N],
  output logic    [N-1:0] s_r_valid_o,
  input  logic    [N-1:0] s_r_ready_i,
  output axi_ax_t         m_ar_o,
  output logic            m_ar_valid_o,
  input  logic            m_ar_ready_i,
  input  axi_r_t          m_r_i,
  input  logic            m_r_valid_i,
  output logic            m_r_ready_o,
  output logic            idle_o
);

  localparam bit NOk = param_in("via_vq_rdmux N", N, 1, 16);
  localparam bit OutstandingOk = param_in("via_vq_rdmux Outstanding", Outstanding, 1, 1024);

  localparam int unsigned NW = (N > 1) ? $clog2(N) : 1;

  logic [NW-1:0] pick, hold_q;
  logic [N-1:0] turn, owner;  // one-hot
  logic held_q, room, take, owed, r_end;

  always_comb begin
    pick = '0;
    for (int unsigned i = N; i > 0; i--) if (s_ar_valid_i[i-1]) pick = NW'(i - 1);
    if (held_q) pick = hold_q;
  end

  always_comb begin
    m_ar_o    = s_ar_i[pick];
    m_ar_o.id = '0;
  end
  assign m_ar_valid_o = |s_ar_valid_i && room;
  assign take = m_ar_valid_o && m_ar_ready_i;
  assign turn = N'(1) << pick;
  assign s_ar_ready_o = take ? turn : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) held_q <= 1'b0;
    else held_q <= m_ar_valid_o && !m_ar_ready_i;
  end
  always_ff @(posedge clk_i) if (m_ar_valid_o && !held_q) hold_q <= pick;

  via_fifo #(
    .T    (logic [N-1:0]),
    .Depth(Outstanding)
  ) u_owner (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (turn),
    .s_valid_i(take),
    .s_ready_o(room),
    .m_o      (owner),
    .m_valid_o(owed),
    .m_ready_i(r_end),
    .count_o  ()
  );

  for (genvar i = 0; i < N; i++) begin : gen_r
    assign s_r_o[i] = m_r_i;
    assign s_r_valid_o[i] = m_r_valid_i && owed && owner[i];
  end
  assign m_r_ready_o = owed && |(s_r_ready_i & owner);
  assign r_end = m_r_valid_i && m_r_ready_o && m_r_i.last;

  assign idle_o = !owed && s_ar_valid_i == '0;

endmodule
