// SPDX-License-Identifier: Apache-2.0
//
// Schedulers of every number of members from 1 to 16, with the same ports, of which the inputs select one: this card's (via_share, as at the
// host port and as at a DRAM channel) and vFPIO's. Only `viaduct bench vio` builds this module (sim/rivals/sched.cpp), and no card contains it.
//
// Throughput, latency and order: those of the schedulers. The ones that are not selected see no request.

module via_rival_sched
  import via_pkg::*;
#(
  localparam int unsigned Max = 16,  // members
  localparam int unsigned Quantum = 64,  // beats, the largest: a burst of 4 KiB in a card of 512 bits
  localparam int unsigned QuantaW = $clog2(Quantum) + WeightW
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [        4:0] n_i,                  // members, constant
  input  logic               chan_i,               // constant: two ways with one account, as at a DRAM channel; else way 0 only
  input  logic               rival_i,              // constant: via_rival_arb, way 0 only
  input  logic               plain_i,              // constant: round robin by bursts; of the rival: mended
  input  logic [        2:0] quantum_log2_i,       // constant: beats that a unit of weight gets at a time
  input  logic [WeightW-1:0] weight_i      [Max],
  input  logic [    Max-1:0] first_i,
  input  logic [    Max-1:0] req_i         [  2],
  input  logic [        7:0] len_rd_i      [Max],  // beats - 1 of a member's burst
  input  logic [        7:0] len_wr_i      [Max],
  input  logic [        1:0] ack_i,
  output logic [    Max-1:0] gnt_o         [  2],
  output logic [        1:0] valid_o
);

  logic [Max-1:0] link_gnt[Max], chan_gnt[Max][2], rival_gnt[Max];
  logic link_valid[Max], rival_valid[Max];
  logic [1:0] chan_valid[Max];

  for (genvar i = 0; i < Max; i++) begin : gen_n
    localparam int unsigned N = i + 1;
    logic [N-1:0] link_req[1], link_won[1], chan_req[2], chan_won[2];
    logic [7:0] link_len[1][N], chan_len[2][N];
    logic [QuantaW-1:0] quanta[N];
    logic on, own;
    assign on  = 32'(n_i) == N;
    assign own = on && !rival_i;
    for (genvar m = 0; m < N; m++) begin : gen_member
      assign quanta[m] = QuantaW'(weight_i[m]) << quantum_log2_i;
      assign link_len[0][m] = len_rd_i[m];
      assign chan_len[0][m] = len_rd_i[m];
      assign chan_len[1][m] = len_wr_i[m];
    end
    assign link_req[0] = req_i[0][N-1:0] & {N{own && !chan_i}};
    assign chan_req[0] = req_i[0][N-1:0] & {N{own && chan_i}};
    assign chan_req[1] = req_i[1][N-1:0] & {N{own && chan_i}};
    via_share #(
      .N      (N),
      .Ways   (1),
      .Quantum(Quantum)
    ) u_link (
      .clk_i,
      .rst_ni,
      .quanta_i(quanta),
      .plain_i,
      .first_i (first_i[N-1:0]),
      .req_i   (link_req),
      .len_i   (link_len),
      .urgent_i('{default: '0}),
      .ack_i   (ack_i[0]),
      .gnt_o   (link_won),
      .valid_o (link_valid[i]),
      .shared_o()
    );
    via_share #(
      .N      (N),
      .Ways   (2),
      .Quantum(Quantum)
    ) u_chan (
      .clk_i,
      .rst_ni,
      .quanta_i(quanta),
      .plain_i,
      .first_i (first_i[N-1:0]),
      .req_i   (chan_req),
      .len_i   (chan_len),
      .urgent_i('{default: '0}),
      .ack_i,
      .gnt_o   (chan_won),
      .valid_o (chan_valid[i]),
      .shared_o()
    );
    logic [N-1:0] arb_won;
    via_rival_arb #(
      .N(N)
    ) u_rival (
      .clk_i,
      .rst_ni,
      .mended_i(plain_i),
      .first_i (first_i[N-1:0]),
      .req_i   (req_i[0][N-1:0] & {N{on && rival_i}}),
      .ack_i   (ack_i[0]),
      .gnt_o   (arb_won),
      .valid_o (rival_valid[i])
    );
    assign link_gnt[i] = Max'(link_won[0]);
    assign chan_gnt[i][0] = Max'(chan_won[0]);
    assign chan_gnt[i][1] = Max'(chan_won[1]);
    assign rival_gnt[i] = Max'(arb_won);
  end

  always_comb begin
    gnt_o   = '{default: '0};
    valid_o = '0;
    for (int unsigned i = 0; i < Max; i++) begin
      if (32'(n_i) == i + 1) begin
        gnt_o[0] = rival_i ? rival_gnt[i] : chan_i ? chan_gnt[i][0] : link_gnt[i];
        gnt_o[1] = chan_i ? chan_gnt[i][1] : '0;
        valid_o  = rival_i ? {1'b0, rival_valid[i]} : chan_i ? chan_valid[i] : {1'b0, link_valid[i]};
      end
    end
  end

endmodule
