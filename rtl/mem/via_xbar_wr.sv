// SPDX-License-Identifier: Apache-2.0
//
// Write half of the crossbar: out of order over the targets, in order for every manager.
//
//   AW of manager m ──> orders of m
//                  └──> queue[m][t] ──> grant[t] ──> AW of target t
//   W of manager m ───> buffer[m][t] ──────────────────────────────> W of target t
//   B of manager m <── next in order <── responses[m][t] <────────── B of target t
//
// A request waits for its own target only, and is sent when its data is here, of a long one the first `Piece` + 1 beats: managers send the data of
// a burst without a pause, and buffers are in the order of bursts. So a target never waits for a manager. A manager waits when its
// buffer for a target is full.
// Throughput: one W beat a manager and a target each cycle, no bubble between bursts. Latency: AW five cycles after the last beat of
// the burst, of a long one the 17th, W one more; two for B.
// Who is granted decides via_xbar, as reads and writes of a channel are shared together.
// Misuse: a manager that stalls B harms only itself. One that pauses within the W of a long burst stops the target, which guards, movers and DMA
// engines do not.

module via_xbar_wr
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 3,
  parameter int unsigned NumSub = NumChan + 1,
  parameter bit [NumMgr-1:0] ToHost = '1,  // managers that reach host memory; for the others its addresses are errors
  parameter int unsigned Outstanding = 64,
  parameter int unsigned Queue = 32,
  parameter int unsigned Room = 512,
  parameter int unsigned Piece = 16
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic    [NumMgr-1:0] first_i,                       // level: who goes first
  input  logic    [       7:0] window_i,                      // beats of host memory under way, in 16
  output logic                 first_o,                       // level: one of those who go first waits for host memory
  input  axi_ax_t              s_aw_i      [NumMgr],
  input  logic    [NumMgr-1:0] s_aw_valid_i,
  output logic    [NumMgr-1:0] s_aw_ready_o,
  input  axi_w_t               s_w_i       [NumMgr],
  input  logic    [NumMgr-1:0] s_w_valid_i,
  output logic    [NumMgr-1:0] s_w_ready_o,
  output axi_b_t               s_b_o       [NumMgr],
  output logic    [NumMgr-1:0] s_b_valid_o,
  input  logic    [NumMgr-1:0] s_b_ready_i,
  output axi_ax_t              m_aw_o      [NumSub],
  output logic    [NumSub-1:0] m_aw_valid_o,
  input  logic    [NumSub-1:0] m_aw_ready_i,
  output axi_w_t               m_w_o       [NumSub],
  output logic    [NumSub-1:0] m_w_valid_o,
  input  logic    [NumSub-1:0] m_w_ready_i,
  input  axi_b_t               m_b_i       [NumSub],
  input  logic    [NumSub-1:0] m_b_valid_i,
  output logic    [NumSub-1:0] m_b_ready_o,
  output logic    [NumMgr-1:0] req_o       [NumSub],          // to via_share of each target: who requests
  output logic    [       7:0] req_len_o   [NumSub][NumMgr],  // beats - 1 of its piece
  output logic    [NumMgr-1:0] urgent_o    [NumSub],          // level: all else of the manager waits for this target
  output logic    [NumSub-1:0] ack_o,                         // level: a grant is used
  input  logic    [NumMgr-1:0] gnt_i       [NumSub],          // its grant, one-hot
  input  logic    [NumSub-1:0] gnt_any_i,                     // there is one
  input  logic    [NumMgr-1:0] cut_i       [NumSub],          // level: others use the target; requests are to be cut
  output logic                 still_o,                       // nothing moves unless something is offered, or another input changes
  output logic                 idle_o                         // level: no write is in flight
);

  localparam bit NumMgrOk = param_in("via_xbar_wr NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar_wr NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar_wr Outstanding", Outstanding, 1, 1024);
  localparam bit QueueOk = param_in("via_xbar_wr Queue", Queue, 1, 1024);
  localparam bit RoomOk = param_in("via_xbar_wr Room", Room, MaxBurstBeats, 65536);
  localparam bit PieceOk = param_pow2("via_xbar_wr Piece", Piece, 1, MaxBurstBeats);

  // Between manager m and target t, by managers.
  logic [NumSub-1:0] offered[NumMgr], taken[NumMgr], urgent[NumMgr], cut[NumMgr];
  xbar_piece_t offer[NumMgr][NumSub];
  logic [StrbW+DataW-1:0] beat[NumMgr];  // next beat of a manager
  logic [NumSub-1:0] beat_valid[NumMgr], beat_ready[NumMgr];
  logic [NumSub-1:0] response[NumMgr], response_last[NumMgr];
  axi_resp_e back[NumSub];
  logic [NumMgr-1:0] mgr_still, mgr_idle;
  logic [NumSub-1:0] tgt_still, tgt_first;
  for (genvar t = 0; t < NumSub; t++) begin : gen_back
    assign back[t] = m_b_i[t].resp;
  end

  for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
    via_xbar_wr_mgr #(
      .ToHost     (ToHost[m]),
      .Outstanding(Outstanding),
      .Queue      (Queue),
      .Room       (Room),
      .Piece      (Piece)
    ) u_mgr (
      .clk_i,
      .rst_ni,
      .s_aw_i       (s_aw_i[m]),
      .s_aw_valid_i (s_aw_valid_i[m]),
      .s_aw_ready_o (s_aw_ready_o[m]),
      .s_w_i        (s_w_i[m]),
      .s_w_valid_i  (s_w_valid_i[m]),
      .s_w_ready_o  (s_w_ready_o[m]),
      .s_b_o        (s_b_o[m]),
      .s_b_valid_o  (s_b_valid_o[m]),
      .s_b_ready_i  (s_b_ready_i[m]),
      .piece_o      (offer[m]),
      .piece_valid_o(offered[m]),
      .piece_ready_i(taken[m]),
      .urgent_o     (urgent[m]),
      .cut_i        (cut[m]),
      .beat_o       (beat[m]),
      .beat_valid_o (beat_valid[m]),
      .beat_ready_i (beat_ready[m]),
      .back_i       (back),
      .back_valid_i (response[m]),
      .back_last_i  (response_last[m]),
      .still_o      (mgr_still[m]),
      .idle_o       (mgr_idle[m])
    );
  end

  for (genvar t = 0; t < NumSub; t++) begin : gen_tgt
    xbar_piece_t piece[NumMgr];
    logic [NumMgr-1:0] piece_valid, piece_ready, put, put_ready, owner;
    logic owner_last;

    for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
      assign piece[m] = offer[m][t];
      assign piece_valid[m] = offered[m][t];
      assign taken[m][t] = piece_ready[m];
      assign urgent_o[t][m] = urgent[m][t];
      assign cut[m][t] = cut_i[t][m];
      assign put[m] = beat_valid[m][t];
      assign beat_ready[m][t] = put_ready[m];
      assign response[m][t] = m_b_valid_i[t] && owner[m];
      assign response_last[m][t] = response[m][t] && owner_last;
    end

    via_xbar_wr_tgt #(
      .NumMgr     (NumMgr),
      .Far        (t == NumChan),
      .ToHost     (ToHost),
      .Outstanding(Outstanding),
      .Room       (Room),
      .Piece      (Piece)
    ) u_tgt (
      .clk_i,
      .rst_ni,
      .first_i,
      .window_i,
      .first_o      (tgt_first[t]),
      .piece_i      (piece),
      .piece_valid_i(piece_valid),
      .piece_ready_o(piece_ready),
      .req_o        (req_o[t]),
      .req_len_o    (req_len_o[t]),
      .ack_o        (ack_o[t]),
      .gnt_i        (gnt_i[t]),
      .gnt_any_i    (gnt_any_i[t]),
      .beat_i       (beat),
      .beat_valid_i (put),
      .beat_ready_o (put_ready),
      .m_aw_o       (m_aw_o[t]),
      .m_aw_valid_o (m_aw_valid_o[t]),
      .m_aw_ready_i (m_aw_ready_i[t]),
      .m_w_o        (m_w_o[t]),
      .m_w_valid_o  (m_w_valid_o[t]),
      .m_w_ready_i  (m_w_ready_i[t]),
      .back_valid_i (m_b_valid_i[t]),
      .owner_o      (owner),
      .owner_last_o (owner_last),
      .still_o      (tgt_still[t])
    );
  end

  assign m_b_ready_o = '1;
  assign still_o = &mgr_still && &tgt_still;
  assign first_o = |tgt_first;
  assign idle_o = &mgr_idle && ~|{m_aw_valid_o, m_w_valid_o};

endmodule
