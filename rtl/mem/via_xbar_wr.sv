// SPDX-License-Identifier: Apache-2.0
//
// Write half of the crossbar: out of order over the targets, in order for every manager.
//
//   AW of manager m ──> orders of m
//                  └──> via_xbar_queue[m][t] ─> via_xbar_share[t] ──> AW of target t
//   W of manager m ───> buffer[m][t] ──────────────────────────────> W of target t
//   B of manager m <── next in order <── responses[m][t] <────────── B of target t
//
// A request waits for its own target only, and is sent when its data is here, of a long one the first `Piece` + 1 beats: managers send the data of
// a burst without a pause, and buffers are in the order of bursts. So a target never waits for a manager. A manager waits when its
// buffer for a target is full.
// Throughput: one W beat a manager and a target each cycle, no bubble between bursts. Latency: three cycles for AW, four for W, two for B.
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
  output logic                 still_o,               // nothing moves unless something is offered, or another input changes
  output logic                 idle_o                 // level: no write is in flight
);

  localparam bit NumMgrOk = param_in("via_xbar_wr NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar_wr NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar_wr Outstanding", Outstanding, 1, 1024);
  localparam bit QueueOk = param_in("via_xbar_wr Queue", Queue, 1, 1024);
  localparam bit RoomOk = param_in("via_xbar_wr Room", Room, MaxBurstBeats, 65536);
  localparam bit PieceOk = param_pow2("via_xbar_wr Piece", Piece, 1, MaxBurstBeats);

  localparam int unsigned PlaceW = 52 - BeatLog2;
  localparam int unsigned MgrW = (NumMgr > 1) ? $clog2(NumMgr) : 1;
  localparam int unsigned Sent = 4;  // pieces granted whose data is not sent

  // A piece sent to a target.
  typedef struct packed {
    logic [MgrW-1:0] mgr;
    logic [7:0]      len;
  } piece_t;

  // Whom a response of a target is for.
  typedef struct packed {
    logic [NumMgr-1:0] mgr;   // one-hot
    logic              last;  // of the last piece of a burst
  } owner_t;

  // ---------------------------------------------------------------- managers
  logic [NumSub-1:0] offered[NumMgr], offer_last[NumMgr], granted[NumMgr], cut[NumMgr];
  logic [PlaceW-1:0] offer[NumMgr][NumSub];
  logic [7:0] offer_len[NumMgr][NumSub];
  logic [StrbW+DataW-1:0] beat[NumMgr][NumSub];  // next beat for the target
  logic [NumSub-1:0] beat_valid[NumMgr], send[NumMgr];
  logic [NumSub-1:0] answer[NumMgr], answer_last[NumMgr];
  axi_resp_e back[NumSub];
  logic [NumMgr-1:0] mgr_still, mgr_idle;
  always_comb for (int unsigned t = 0; t < NumSub; t++) back[t] = m_b_i[t].resp;

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
      .piece_len_o  (offer_len[m]),
      .piece_last_o (offer_last[m]),
      .piece_valid_o(offered[m]),
      .piece_ready_i(granted[m]),
      .cut_i        (cut[m]),
      .beat_o       (beat[m]),
      .beat_valid_o (beat_valid[m]),
      .beat_ready_i (send[m]),
      .back_i       (back),
      .back_valid_i (answer[m]),
      .back_last_i  (answer_last[m]),
      .still_o      (mgr_still[m]),
      .idle_o       (mgr_idle[m])
    );
  end

  // ---------------------------------------------------------------- targets
  logic [NumSub-1:0] sends;

  for (genvar t = 0; t < NumSub; t++) begin : gen_sub
    logic [NumMgr-1:0] req, gnt, shared;
    logic [7:0] req_len[NumMgr];
    axi_ax_t ax;
    logic any, ack, grant, slice_ready, sent_room, owner_room, last;
    logic [MgrW-1:0] from;
    piece_t piece;
    owner_t owner;
    logic piece_valid, w_take, w_last, w_valid_q, w_advance;
    logic [7:0] count_q;
    logic [NumMgr-1:0] have;
    axi_w_t w_q;

    for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
      assign req[m] = offered[m][t];
      assign req_len[m] = offer_len[m][t];
      assign granted[m][t] = gnt[m] && ack;
      // Host memory gets requests whole: a link is best at long ones.
      assign cut[m][t] = t < NumChan && shared[m];
      assign send[m][t] = w_take && piece.mgr == MgrW'(m);
      assign have[m] = beat_valid[m][t];
      assign answer[m][t] = m_b_valid_i[t] && owner.mgr[m];
      assign answer_last[m][t] = answer[m][t] && owner.last;
    end

    via_xbar_share #(
      .N      (NumMgr),
      .Quantum((t < NumChan) ? Piece : MaxBurstBeats)
    ) u_share (
      .clk_i,
      .rst_ni,
      .req_i(req),
      .len_i(req_len),
      .ack_i(ack),
      .gnt_o(gnt),
      .valid_o(any),
      .shared_o(shared)
    );
    assign ack   = slice_ready && sent_room && owner_room;
    assign grant = any && ack;

    always_comb begin
      ax   = '0;
      last = 1'b0;
      from = '0;
      for (int unsigned m = 0; m < NumMgr; m++) begin
        if (any && gnt[m]) begin
          ax.addr |= AddrW'(offer[m][t]) << BeatLog2;
          ax.len |= offer_len[m][t];
          last |= offer_last[m][t];
          from |= MgrW'(m);
        end
      end
      ax.size  = 3'(BeatLog2);
      ax.burst = 2'b01;
    end

    via_slice #(
      .T(axi_ax_t)
    ) u_aw (
      .clk_i,
      .rst_ni,
      .s_i      (ax),
      .s_valid_i(grant),
      .s_ready_o(slice_ready),
      .m_o      (m_aw_o[t]),
      .m_valid_o(m_aw_valid_o[t]),
      .m_ready_i(m_aw_ready_i[t])
    );

    // Data of the pieces, in the order of their grants.
    via_fifo #(
      .T    (piece_t),
      .Depth(Sent)
    ) u_sent (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      ({from, ax.len}),
      .s_valid_i(grant),
      .s_ready_o(sent_room),
      .m_o      (piece),
      .m_valid_o(piece_valid),
      .m_ready_i(w_take && w_last),
      .count_o  ()
    );
    assign w_advance = !w_valid_q || m_w_ready_i[t];
    assign w_last = count_q == piece.len;
    assign w_take = piece_valid && w_advance && have[piece.mgr];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        w_valid_q <= 1'b0;
        count_q   <= '0;
      end else begin
        if (w_advance) w_valid_q <= w_take;
        if (w_take) count_q <= w_last ? '0 : count_q + 1'b1;
      end
    end
    always_ff @(posedge clk_i)
      if (w_take)
        w_q <= '{last: w_last, strb: beat[piece.mgr][t][DataW+:StrbW], data: beat[piece.mgr][t][DataW-1:0]};
    assign m_w_o[t] = w_q;
    assign m_w_valid_o[t] = w_valid_q;

    via_fifo #(
      .T    (owner_t),
      .Depth(Outstanding)
    ) u_owner (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      ({gnt, last}),
      .s_valid_i(grant),
      .s_ready_o(owner_room),
      .m_o      (owner),
      .m_valid_o(),
      .m_ready_i(m_b_valid_i[t]),
      .count_o  ()
    );
    assign sends[t] = m_aw_valid_o[t] || piece_valid || w_valid_q;
  end

  assign m_b_ready_o = '1;
  assign still_o = &mgr_still && ~|sends;
  assign idle_o = &mgr_idle && ~|{m_aw_valid_o, m_w_valid_o};

endmodule
