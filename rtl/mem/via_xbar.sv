// SPDX-License-Identifier: Apache-2.0
//
// Crossbar: slots and DMA engines to DRAM channels and host memory (FSRF paper, section 5.3, but out of order over the targets).
//
// Managers are slots, DMA engines and the walks of page tables. Those that request a target share it by bytes and weights, behind those of the
// class that goes first. Subordinates 0..NumSub-2 are DRAM channels, the last one is host memory. The address selects the destination of a burst:
//   addr[AddrErrBit]  -> completed here with SLVERR; so are addresses in host memory of a manager that has no way to it
//   addr[AddrHostBit] -> host memory, bits 63:52 cleared
//   else              -> channel addr[ChanLog2 +: log2(NumChan)], address within the channel
// Throughput: per direction one burst granted and one beat moved for every manager and every subordinate each cycle. Latency: AR and R three
// cycles, B two; AW five after the last beat of the burst, of a long one the 17th, and W one more (via_xbar_wr). Order: in order for
// every manager; on their way to different subordinates bursts overtake one another, and responses wait for their turn in buffers here.
// Downstream everything has id 0. To a channel that others use in the same way, bursts go in pieces of 16 beats.
// Misuse: a manager that stalls R or B harms only itself; one that pauses within the W of a long burst stops its target.

module via_xbar
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 3,
  parameter int unsigned NumSub = NumChan + 1,
  parameter bit [NumMgr-1:0] ToHost = NumMgr'((1 << NumSlots) - 1),  // managers that reach host memory: the slots
  parameter int unsigned Outstanding = 64,  // bursts in flight of a manager, reads and writes each; of one with ToHost four times as many
  parameter int unsigned Piece = 16  // beats of a channel that are granted at a time while others use it
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic       [WeightW-1:0] weight_i    [NumMgr],  // share of each manager, from 1
  input  logic       [ NumMgr-1:0] first_i,               // level: the manager is of the class that goes first
  input  share_cfg_t               share_i,               // policy and quanta
  input  logic       [        7:0] window_i,              // beats of host memory under way, each way, in 16 beats
  output logic       [        1:0] first_o,               // level: one of those who go first waits for host memory: reads (0), writes (1)
  input  axi_ax_t                  s_ar_i      [NumMgr],
  input  logic       [ NumMgr-1:0] s_ar_valid_i,
  output logic       [ NumMgr-1:0] s_ar_ready_o,
  output axi_r_t                   s_r_o       [NumMgr],
  output logic       [ NumMgr-1:0] s_r_valid_o,
  input  logic       [ NumMgr-1:0] s_r_ready_i,
  input  axi_ax_t                  s_aw_i      [NumMgr],
  input  logic       [ NumMgr-1:0] s_aw_valid_i,
  output logic       [ NumMgr-1:0] s_aw_ready_o,
  input  axi_w_t                   s_w_i       [NumMgr],
  input  logic       [ NumMgr-1:0] s_w_valid_i,
  output logic       [ NumMgr-1:0] s_w_ready_o,
  output axi_b_t                   s_b_o       [NumMgr],
  output logic       [ NumMgr-1:0] s_b_valid_o,
  input  logic       [ NumMgr-1:0] s_b_ready_i,
  output axi_ax_t                  m_ar_o      [NumSub],
  output logic       [ NumSub-1:0] m_ar_valid_o,
  input  logic       [ NumSub-1:0] m_ar_ready_i,
  input  axi_r_t                   m_r_i       [NumSub],
  input  logic       [ NumSub-1:0] m_r_valid_i,
  output logic       [ NumSub-1:0] m_r_ready_o,
  output axi_ax_t                  m_aw_o      [NumSub],
  output logic       [ NumSub-1:0] m_aw_valid_o,
  input  logic       [ NumSub-1:0] m_aw_ready_i,
  output axi_w_t                   m_w_o       [NumSub],
  output logic       [ NumSub-1:0] m_w_valid_o,
  input  logic       [ NumSub-1:0] m_w_ready_i,
  input  axi_b_t                   m_b_i       [NumSub],
  input  logic       [ NumSub-1:0] m_b_valid_i,
  output logic       [ NumSub-1:0] m_b_ready_o,
  output logic                     still_o,               // nothing moves unless something is offered, or another input changes
  output logic                     idle_o                 // level: no burst is in flight
);

  localparam bit NumMgrOk = param_in("via_xbar NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit PieceOk = param_pow2("via_xbar Piece", Piece, 1, MaxBurstBeats);
  localparam bit OutstandingOk = param_in("via_xbar Outstanding", Outstanding, 1, 1024);

  logic rd_idle, wr_idle, rd_still, wr_still;
  assign still_o = rd_still && wr_still;
  assign idle_o  = rd_idle && wr_idle;

  // The class comes from far away, and decides a grant in the cycle in which it is used.
  logic [NumMgr-1:0] first_q;
  logic plain_q;
  always_ff @(posedge clk_i) begin
    first_q <= rst_ni ? first_i : '0;
    plain_q <= rst_ni && share_i.plain;
  end

  // What via_share gives at a time.
  localparam int unsigned ChanQuantaW = ChanQuantumLog2 + WeightW;
  logic [ChanQuantaW-1:0] chan_quanta_q[NumMgr];
  host_quanta_t host_quanta_q[NumMgr];
  always_ff @(posedge clk_i) begin
    for (int unsigned m = 0; m < NumMgr; m++) begin
      chan_quanta_q[m] <= ChanQuantaW'(weight_i[m]) << share_i.chan_log2;
      host_quanta_q[m] <= host_quanta_t'(weight_i[m]) << share_i.host_log2;
    end
  end

  // By ways: reads and writes.
  logic [NumMgr-1:0] req[2][NumSub], gnt[2][NumSub], cut[2][NumSub];
  /* verilator lint_off UNUSEDSIGNAL */  // for host memory
  logic [NumMgr-1:0] urgent[2][NumSub];
  /* verilator lint_on UNUSEDSIGNAL */
  logic [7:0] req_len[2][NumSub][NumMgr];
  logic [NumSub-1:0] ack[2], gnt_any[2];

  via_xbar_rd #(
    .NumMgr     (NumMgr),
    .NumSub     (NumSub),
    .ToHost     (ToHost),
    .Outstanding(Outstanding),
    .Piece      (Piece)
  ) u_rd (
    .clk_i,
    .rst_ni,
    .first_i  (first_q),
    .window_i,
    .first_o  (first_o[0]),
    .s_ar_i,
    .s_ar_valid_i,
    .s_ar_ready_o,
    .s_r_o,
    .s_r_valid_o,
    .s_r_ready_i,
    .m_ar_o,
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o,
    .req_o    (req[0]),
    .req_len_o(req_len[0]),
    .urgent_o (urgent[0]),
    .ack_o    (ack[0]),
    .gnt_i    (gnt[0]),
    .gnt_any_i(gnt_any[0]),
    .cut_i    (cut[0]),
    .still_o  (rd_still),
    .idle_o   (rd_idle)
  );

  via_xbar_wr #(
    .NumMgr     (NumMgr),
    .NumSub     (NumSub),
    .ToHost     (ToHost),
    .Outstanding(Outstanding),
    .Piece      (Piece)
  ) u_wr (
    .clk_i,
    .rst_ni,
    .first_i  (first_q),
    .window_i,
    .first_o  (first_o[1]),
    .s_aw_i,
    .s_aw_valid_i,
    .s_aw_ready_o,
    .s_w_i,
    .s_w_valid_i,
    .s_w_ready_o,
    .s_b_o,
    .s_b_valid_o,
    .s_b_ready_i,
    .m_aw_o,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_w_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_b_i,
    .m_b_valid_i,
    .m_b_ready_o,
    .req_o    (req[1]),
    .req_len_o(req_len[1]),
    .urgent_o (urgent[1]),
    .ack_o    (ack[1]),
    .gnt_i    (gnt[1]),
    .gnt_any_i(gnt_any[1]),
    .cut_i    (cut[1]),
    .still_o  (wr_still),
    .idle_o   (wr_idle)
  );

  // A channel is shared by reads and writes together, in quanta of a piece. DRAM loses time whenever its bus turns: therefore a burst of up to
  // four pieces is cut only while others use the same way, and beside the other way it is whole, and charged in full. Host memory is beyond a link
  // with a data path each way, and its bursts are not cut.
  localparam int unsigned Most = 1 << ChanQuantumLog2;
  for (genvar t = 0; t < NumSub; t++) begin : gen_tgt
    if (t < NumChan) begin : gen_channel
      logic [NumMgr-1:0] chan_req[2], chan_urgent[2], chan_gnt[2], shared[2];
      logic [7:0] chan_len[2][NumMgr];
      logic [1:0] chan_ack, chan_valid;
      for (genvar w = 0; w < 2; w++) begin : gen_way
        assign chan_req[w] = req[w][t];
        assign chan_urgent[w] = urgent[w][t];
        assign chan_len[w] = req_len[w][t];
        assign chan_ack[w] = ack[w][t];
        assign gnt[w][t] = chan_gnt[w];
        assign gnt_any[w][t] = chan_valid[w];
        assign cut[w][t] = shared[w] | shared[1-w] & {NumMgr{MaxBurstBeats > Most}};
      end
      via_share #(
        .N      (NumMgr),
        .Ways   (2),
        .Quantum(Most)
      ) u_share (
        .clk_i,
        .rst_ni,
        .quanta_i(chan_quanta_q),
        .plain_i (plain_q),
        .first_i(first_q),
        .req_i   (chan_req),
        .len_i   (chan_len),
        .urgent_i(chan_urgent),
        .ack_i   (chan_ack),
        .gnt_o   (chan_gnt),
        .valid_o (chan_valid),
        .shared_o(shared)
      );
    end else begin : gen_host
      for (genvar w = 0; w < 2; w++) begin : gen_way
        logic [NumMgr-1:0] one_req[1], one_gnt[1];
        logic [7:0] one_len[1][NumMgr];
        assign one_req[0] = req[w][t];
        assign one_len[0] = req_len[w][t];
        assign gnt[w][t]  = one_gnt[0];
        via_share #(
          .N      (NumMgr),
          .Ways   (1),
          .Quantum(MaxBurstBeats)
        ) u_share (
          .clk_i,
          .rst_ni,
          .quanta_i(host_quanta_q),
          .plain_i (plain_q),
          .first_i(first_q),
          .req_i   (one_req),
          .len_i   (one_len),
          .urgent_i('{default: '0}),  // a wait there is one for the link
          .ack_i   (ack[w][t]),
          .gnt_o   (one_gnt),
          .valid_o (gnt_any[w][t]),
          .shared_o()
        );
      end
      assign cut[0][t] = '0;
      assign cut[1][t] = '0;
    end
  end

endmodule
