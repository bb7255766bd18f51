// SPDX-License-Identifier: Apache-2.0
//
// One address channel of via_axi_mux whose sources share by beats and weights (via_share): grants one of them and puts its index into the id.
// Throughput: one address per cycle, also of one source alone. Latency: one cycle, and what via_share takes to give balances. Order: that of each
// source is kept. Sources 0..NumFirst-1 are of the class that goes first, whatever `first_i` says.
// What is granted and has not come back is bounded by `window_i` (via_window): what is beyond waits here, where it is shared. Those who go first do
// not wait for it; the others may exceed it by two bursts. A source that was first stays so until all that was waiting here has left.

module via_axi_mux_share
  import via_pkg::*;
#(
  parameter int unsigned N = 3,
  parameter int unsigned NumFirst = 1
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  host_quanta_t           quanta_i  [N],  // as of via_share, of sources behind the first ones
  input  logic         [  N-1:0] first_i,
  input  logic                   plain_i,
  input  logic         [  N-1:0] full_i,         // level: from the next cycle on accept nothing from this source
  input  logic                   hold_i,         // level: from the next cycle on grant nothing
  input  logic         [    7:0] window_i,       // beats under way, in 16
  input  logic                   back_i,         // pulse: beats have come back
  input  logic         [    7:0] back_len_i,     // with it: beats - 1
  input  axi_ax_t                s_i       [N],
  input  logic         [  N-1:0] s_valid_i,
  output logic         [  N-1:0] s_ready_o,
  output logic         [  N-1:0] gnt_o,          // one-hot: whose address leaves in this cycle; zero if none does
  output logic         [   63:0] addr_o,         // of that burst
  output logic         [    7:0] len_o,
  output logic         [IdW-1:0] id_o,
  output logic                   any_o,          // one does
  input  logic                   room_i,         // level: one may
  output logic                   still_o         // nothing moves
);

  localparam bit NOk = param_in("via_axi_mux_share N", N, 1, 1 << IdW);
  localparam bit NumFirstOk = param_in("via_axi_mux_share NumFirst", NumFirst, 0, N);

  localparam logic [N-1:0] Rings = N'((1 << NumFirst) - 1);

  typedef struct packed {
    logic [63:0] addr;
    logic [7:0]  len;
  } offer_t;

  logic [N-1:0] full_q, room, req[1], urgent[1], gnt[1];
  offer_t offer[N];
  logic [7:0] len[1][N];
  host_quanta_t quanta[N];
  logic [N-1:0] urged, waiting, stays_q;
  logic hold_q, ack, any, below;

  always_ff @(posedge clk_i) begin
    full_q <= rst_ni ? full_i : '1;
    hold_q <= hold_i || !rst_ni;
  end

  for (genvar i = 0; i < N; i++) begin : gen_source
    via_slice #(
      .T  (offer_t),
      .Ram(1'b1)
    ) u_offer (
      .clk_i,
      .rst_ni,
      .s_i      ({s_i[i].addr, s_i[i].len}),
      .s_valid_i(s_valid_i[i] && !full_q[i]),
      .s_ready_o(room[i]),
      .m_o      (offer[i]),
      .m_valid_o(waiting[i]),
      .m_ready_i(gnt[0][i] && ack)
    );
    assign len[0][i] = offer[i].len;
    assign quanta[i] = (i < NumFirst) ? '1 : quanta_i[i];
  end
  assign s_ready_o = room & ~full_q;
  assign urgent[0] = Rings;
  assign urged = Rings | stays_q;
  assign req[0] = waiting & (urged | {N{below}});
  always_ff @(posedge clk_i) stays_q <= rst_ni ? first_i | stays_q & waiting : '0;
  assign ack = room_i && !hold_q;

  via_share #(
    .N      (N),
    .Ways   (1),
    .Quantum(MaxBurstBeats)
  ) u_share (
    .clk_i,
    .rst_ni,
    .quanta_i(quanta),
    .plain_i,
    .first_i (urged),
    .req_i   (req),
    .len_i   (len),
    .urgent_i(urgent),
    .ack_i   (ack),
    .gnt_o   (gnt),
    .valid_o (any),
    .shared_o()
  );
  assign gnt_o = gnt[0] & {N{ack}};
  assign any_o = any && ack;

  always_comb begin
    addr_o = '0;
    len_o  = '0;
    id_o   = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (gnt[0][i]) begin
        addr_o |= offer[i].addr;
        len_o |= offer[i].len;
        id_o |= IdW'(i);
      end
    end
  end

  localparam int unsigned Most = 16 * 255;
  via_window #(
    .Most(Most)
  ) u_window (
    .clk_i,
    .rst_ni,
    .window_i($clog2(Most + 1)'({window_i, 4'h0})),
    .grant_i (any_o),
    .len_i   (len_o),
    .long_i  (1'b0),
    .back_i,
    .back_len_i,
    .below_o (below)
  );

  assign still_o = ~|{s_valid_i & s_ready_o, waiting, first_i ^ stays_q, hold_q};

endmodule
