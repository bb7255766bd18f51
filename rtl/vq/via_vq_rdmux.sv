// SPDX-License-Identifier: Apache-2.0
//
// Merges the read clients of a queue engine onto one AR/R. Everything is sent with id 0 and comes back in order.
//
// Throughput: one address and one beat per cycle. Latency: none. Order: client 0 has priority over 1, and so on; the parent puts reads that
// others depend on (fields, rings, descriptors) before payload, which is limited by its own credits and uses the remaining address cycles.
// While `enable_i` is low (bus mastering is disabled, or a reset is pending) no read begins at the port. An address once offered stays
// offered until it is accepted, as AXI demands, and counts as begun from then on.
// Misuse: relies on the rule against deadlocks (docs/interfaces.md, section 1, No deadlocks): a client accepts its R whenever it comes
// (asserted); and on the host port for R no sooner than two cycles after its address was accepted (asserted): the owner of a read is noted a
// cycle late, so that only the selection stands between the clients and the port.

module via_vq_rdmux
  import via_pkg::*;
#(
  parameter int unsigned N = 4,  // clients
  parameter int unsigned Outstanding = 128  // bursts in flight
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            enable_i,         // level: reads may begin
  output logic            drained_o,        // level: nothing is in flight, and nothing begins until enable_i rises
  input  axi_ax_t         s_ar_i      [N],
  input  logic    [N-1:0] s_ar_valid_i,
  output logic    [N-1:0] s_ar_ready_o,
  output axi_r_t          s_r_o       [N],
  output logic    [N-1:0] s_r_valid_o,
  input  logic    [N-1:0] s_r_ready_i,      // must be high with valid: only asserted
  output axi_ax_t         m_ar_o,
  output logic            m_ar_valid_o,
  input  logic            m_ar_ready_i,
  input  axi_r_t          m_r_i,
  input  logic            m_r_valid_i,
  output logic            m_r_ready_o,
  output logic            idle_o            // level: no read is in flight
);

  localparam bit NOk = param_in("via_vq_rdmux N", N, 1, 16);
  localparam bit OutstandingOk = param_in("via_vq_rdmux Outstanding", Outstanding, 4, 1024);

  localparam int unsigned Pairs = (N + 1) / 2;
  localparam int unsigned CountW = $clog2(Outstanding + 1);

  logic [N-1:0] open_q;  // clients that may be selected: all, or the one whose address was offered and not accepted
  logic [N-1:0] ask, turn, turn_q, owner;  // all but the first are one-hot
  logic room_q, pass, shown_q, take, take_q, owed, r_end, drained_q;
  logic [CountW-1:0] reads;

  assign ask = s_ar_valid_i & open_q;
  always_comb begin
    turn = '0;
    for (int unsigned i = N; i > 0; i--) if (ask[i-1]) turn = N'(1) << (i - 1);
  end
  // The address is selected in each pair of clients, then among pairs: two levels of logic, and none to compute `turn`.
  axi_ax_t ar[2*Pairs], pair[Pairs];
  logic [2*Pairs-1:0] asks;
  assign asks = (2 * Pairs)'(ask);
  for (genvar i = 0; i < 2 * Pairs; i++) begin : gen_ar
    assign ar[i] = (i < N) ? s_ar_i[i%N] : '0;
  end
  always_comb begin
    for (int unsigned p = 0; p < Pairs; p++) pair[p] = asks[2*p] ? ar[2*p] : ar[2*p+1];
    m_ar_o = pair[Pairs-1];
    for (int unsigned p = Pairs - 1; p > 0; p--) if (asks[2*p-2+:2] != '0) m_ar_o = pair[p-1];
    m_ar_o.id = '0;
  end
  assign pass = shown_q || enable_i && room_q;
  assign m_ar_valid_o = s_ar_valid_i != '0 && pass;
  always_comb begin
    s_ar_ready_o = open_q & {N{m_ar_ready_i && pass}};
    for (int unsigned i = 1; i < N; i++) if ((ask & ~({N{1'b1}} << i)) != '0) s_ar_ready_o[i] = 1'b0;
  end
  assign take = m_ar_valid_o && m_ar_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q    <= '1;
      room_q    <= 1'b0;
      take_q    <= 1'b0;
      shown_q   <= 1'b0;
      drained_q <= 1'b0;
    end else begin
      open_q    <= (m_ar_valid_o && !m_ar_ready_i) ? turn : '1;
      shown_q   <= m_ar_valid_o && !m_ar_ready_i;
      // Up to three reads are not counted yet.
      room_q    <= reads < CountW'(Outstanding - 3);
      take_q    <= take;
      drained_q <= !enable_i && !shown_q && !owed && !take_q;
    end
  end
  always_ff @(posedge clk_i) turn_q <= turn;
  assign drained_o = drained_q;

  via_fifo #(
    .T    (logic [N-1:0]),
    .Depth(Outstanding)
  ) u_owner (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (turn_q),
    .s_valid_i(take_q),
    .s_ready_o(),
    .m_o      (owner),
    .m_valid_o(owed),
    .m_ready_i(r_end),
    .count_o  (reads)
  );

  for (genvar i = 0; i < N; i++) begin : gen_r
    assign s_r_o[i] = m_r_i;
    assign s_r_valid_o[i] = m_r_valid_i && owed && owner[i];
  end
  assign m_r_ready_o = 1'b1;
  assign r_end = m_r_valid_i && m_r_i.last;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && m_r_valid_i) begin
      assert (owed)
      else $error("R without a read");
      assert (|(s_r_ready_i & owner))
      else $error("a client does not accept its R");
    end
  end
`endif

  assign idle_o = !owed && !take_q && s_ar_valid_i == '0;

endmodule
