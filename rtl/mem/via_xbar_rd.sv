// SPDX-License-Identifier: Apache-2.0
//
// Read half of the crossbar: out of order over the targets, in order for every manager.
//
//   AR of manager m ──> order of m ────────────────────────────────┐
//                  └──> queue[m][t] ──> grant[t] ───────────────────> AR of target t
//   R of manager m <── next in order <── buffer[m][t] <─────────────── R of target t
//
// A request waits for its own target only, and its response waits in the buffer of its manager and target for its turn. As a request is sent
// only when there is room for its response, a target is never stalled, whatever managers do.
// Throughput: one R beat a manager and a target each cycle, no bubble between bursts. Latency: three cycles each for AR and R.
// Requests to a channel that others use are cut into pieces of `Piece` beats, and a channel has at most about `Window` beats requested and not
// delivered: a short request waits for little, however long those of other managers are. Host memory, which is far away, has no such limit.
// Who is granted decides via_xbar, as reads and writes of a channel are shared together.
// Misuse: a manager that stalls R fills its own buffers only.

module via_xbar_rd
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 3,
  parameter int unsigned NumSub = NumChan + 1,
  parameter bit [NumMgr-1:0] ToHost = '1,  // managers that reach host memory; for the others its addresses are errors
  parameter int unsigned Outstanding = 64,
  parameter int unsigned Queue = 32,
  parameter int unsigned Room = 512,
  parameter int unsigned Piece = 16,
  parameter int unsigned Window = 128
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic    [NumMgr-1:0] first_i,                       // level: who goes first
  input  logic    [       7:0] window_i,                      // beats of host memory under way, in 16
  output logic                 first_o,                       // level: one of those who go first waits for host memory
  input  axi_ax_t              s_ar_i      [NumMgr],
  input  logic    [NumMgr-1:0] s_ar_valid_i,
  output logic    [NumMgr-1:0] s_ar_ready_o,
  output axi_r_t               s_r_o       [NumMgr],
  output logic    [NumMgr-1:0] s_r_valid_o,
  input  logic    [NumMgr-1:0] s_r_ready_i,
  output axi_ax_t              m_ar_o      [NumSub],
  output logic    [NumSub-1:0] m_ar_valid_o,
  input  logic    [NumSub-1:0] m_ar_ready_i,
  input  axi_r_t               m_r_i       [NumSub],
  input  logic    [NumSub-1:0] m_r_valid_i,
  output logic    [NumSub-1:0] m_r_ready_o,
  output logic    [NumMgr-1:0] req_o       [NumSub],          // to via_share of each target: who requests
  output logic    [       7:0] req_len_o   [NumSub][NumMgr],  // beats - 1 of its piece
  output logic    [NumMgr-1:0] urgent_o    [NumSub],          // level: all else of the manager waits for this target
  output logic    [NumSub-1:0] ack_o,                         // level: a grant is used
  input  logic    [NumMgr-1:0] gnt_i       [NumSub],          // its grant, one-hot
  input  logic    [NumSub-1:0] gnt_any_i,                     // there is one
  input  logic    [NumMgr-1:0] cut_i       [NumSub],          // level: others use the target; requests are to be cut
  output logic                 still_o,                       // nothing moves unless something is offered, or another input changes
  output logic                 idle_o                         // level: no read is in flight
);

  localparam bit NumMgrOk = param_in("via_xbar_rd NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar_rd NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar_rd Outstanding", Outstanding, 1, 1024);
  localparam bit QueueOk = param_in("via_xbar_rd Queue", Queue, 1, 1024);
  localparam bit RoomOk = param_in("via_xbar_rd Room", Room, MaxBurstBeats, 65536);
  localparam bit PieceOk = param_pow2("via_xbar_rd Piece", Piece, 1, MaxBurstBeats);
  localparam bit WindowOk = param_in("via_xbar_rd Window", Window, 1, 65536);

  // Between manager m and target t, by managers and by targets.
  logic [NumSub-1:0] offered[NumMgr], taken[NumMgr], urgent[NumMgr], cut[NumMgr], store[NumMgr];
  xbar_piece_t offer[NumMgr][NumSub];
  logic [DataW+1:0] back[NumSub];  // response and data of a beat
  logic [NumMgr-1:0] mgr_still, mgr_idle;
  logic [NumSub-1:0] tgt_still, tgt_first;
  for (genvar t = 0; t < NumSub; t++) begin : gen_back
    assign back[t] = {m_r_i[t].resp, m_r_i[t].data};
  end

  for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
    via_xbar_rd_mgr #(
      .ToHost     (ToHost[m]),
      .Outstanding(Outstanding),
      .Queue      (Queue),
      .Room       (Room),
      .Piece      (Piece)
    ) u_mgr (
      .clk_i,
      .rst_ni,
      .s_ar_i       (s_ar_i[m]),
      .s_ar_valid_i (s_ar_valid_i[m]),
      .s_ar_ready_o (s_ar_ready_o[m]),
      .s_r_o        (s_r_o[m]),
      .s_r_valid_o  (s_r_valid_o[m]),
      .s_r_ready_i  (s_r_ready_i[m]),
      .piece_o      (offer[m]),
      .piece_valid_o(offered[m]),
      .piece_ready_i(taken[m]),
      .urgent_o     (urgent[m]),
      .cut_i        (cut[m]),
      .back_i       (back),
      .back_valid_i (store[m]),
      .still_o      (mgr_still[m]),
      .idle_o       (mgr_idle[m])
    );
  end

  for (genvar t = 0; t < NumSub; t++) begin : gen_tgt
    xbar_piece_t piece[NumMgr];
    logic [NumMgr-1:0] piece_valid, piece_ready, owner;

    for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
      assign piece[m] = offer[m][t];
      assign piece_valid[m] = offered[m][t];
      assign taken[m][t] = piece_ready[m];
      assign urgent_o[t][m] = urgent[m][t];
      assign cut[m][t] = cut_i[t][m];
      assign store[m][t] = m_r_valid_i[t] && owner[m];
    end

    via_xbar_rd_tgt #(
      .NumMgr(NumMgr),
      .Far   (t == NumChan),
      .Ways  ((t == NumChan) ? ToHost : '1),
      .Piece (Piece),
      .Window(Window)
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
      .m_ar_o       (m_ar_o[t]),
      .m_ar_valid_o (m_ar_valid_o[t]),
      .m_ar_ready_i (m_ar_ready_i[t]),
      .back_valid_i (m_r_valid_i[t]),
      .back_last_i  (m_r_i[t].last),
      .owner_o      (owner),
      .still_o      (tgt_still[t])
    );
  end

  assign m_r_ready_o = '1;
  assign still_o = &mgr_still && &tgt_still;
  assign first_o = |tgt_first;
  assign idle_o = &mgr_idle && ~|m_ar_valid_o;

endmodule
