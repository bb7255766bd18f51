// SPDX-License-Identifier: Apache-2.0
//
// Merges the read clients of a queue engine onto one AR/R. Everything is sent with id 0 and comes back in order.
//
// Throughput: one address and one beat per cycle. Latency: one cycle for an address, none for R. Order: client 0 has priority over 1, and
// so on; the parent puts reads that others depend on (fields, rings, descriptors) before payload, which is limited by its own credits and
// uses the remaining address cycles.
// While `enable_i` is low (bus mastering is disabled, or a reset is pending) no read begins at the port. An address once offered stays
// offered until it is accepted, as AXI demands, and counts as begun from then on.
// Misuse: relies on the no-wedge rule: a client accepts its R whenever it comes (asserted).

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
  localparam bit OutstandingOk = param_in("via_vq_rdmux Outstanding", Outstanding, 1, 1024);

  localparam int unsigned CountW = $clog2(Outstanding + 1);

  logic [N-1:0] turn, owner;  // one-hot
  logic room, left, take, owed, r_end;

  always_comb begin
    turn = '0;
    for (int unsigned i = N; i > 0; i--) if (s_ar_valid_i[i-1]) turn = N'(1) << (i - 1);
  end

  axi_ax_t ar;
  always_comb begin
    ar = '0;
    for (int unsigned i = 0; i < N; i++) if (turn[i]) ar |= s_ar_i[i];
    ar.id = '0;
  end
  assign take = s_ar_valid_i != '0 && room && left;
  assign s_ar_ready_o = turn & {N{room && left}};

  logic ar_valid, pass, shown_q, begins, drained_q;
  logic [CountW-1:0] flight_q;  // reads that were offered, without their R
  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(s_ar_valid_i != '0 && room),
    .s_ready_o(left),
    .m_o      (m_ar_o),
    .m_valid_o(ar_valid),
    .m_ready_i(m_ar_ready_i && pass)
  );

  assign pass = enable_i || shown_q;
  assign m_ar_valid_o = ar_valid && pass;
  assign begins = m_ar_valid_o && !shown_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      shown_q   <= 1'b0;
      flight_q  <= '0;
      drained_q <= 1'b0;
    end else begin
      shown_q <= m_ar_valid_o && !m_ar_ready_i;
      if (begins != r_end) flight_q <= begins ? flight_q + 1'b1 : flight_q - 1'b1;
      drained_q <= !pass && flight_q == '0;
    end
  end
  assign drained_o = drained_q;

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
  assign m_r_ready_o = 1'b1;
  assign r_end = m_r_valid_i && m_r_i.last;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && m_r_valid_i) begin
      assert (flight_q != '0)
      else $error("R without a read");
      assert (|(s_r_ready_i & owner))
      else $error("a client does not accept its R");
    end
  end
`endif

  assign idle_o = !owed && s_ar_valid_i == '0;

endmodule
