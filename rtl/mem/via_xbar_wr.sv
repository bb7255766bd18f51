// SPDX-License-Identifier: Apache-2.0
//
// Write half of the crossbar: out of order over the targets, in order for every manager.
//
//   AW of manager m ──> orders of m
//                  └──> via_xbar_queue[m][t] ─> via_xbar_share[t] ──> AW of target t
//   W of manager m ───> buffer[m][t] ──────────────────────────────> W of target t
//   B of manager m <── next in order <── responses[m][t] <────────── B of target t
//
// A request waits for its own target only, and is sent when its data is here, of a long one the first `Piece` beats: managers send the data of
// a burst without a pause, and buffers are in the order of bursts. So a target never waits for a manager. A manager waits when its
// buffer for a target is full.
// Throughput: one W beat a manager and a target each cycle, no bubble between bursts. Latency: three cycles for AW, four for W, two for B.
// Misuse: a manager that stalls B harms only itself. One that pauses within the W of a long burst stops the target, which guards, movers and DMA
// engines do not.

module via_xbar_wr
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 1,
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
  output logic                 still_o,               // nothing moves unless an input changes
  output logic                 idle_o                 // level: no write is in flight
);

  localparam bit NumMgrOk = param_in("via_xbar_wr NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar_wr NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar_wr Outstanding", Outstanding, 1, 1024);
  localparam bit QueueOk = param_in("via_xbar_wr Queue", Queue, 1, 1024);
  localparam bit RoomOk = param_in("via_xbar_wr Room", Room, MaxBurstBeats, 65536);
  localparam bit PieceOk = param_pow2("via_xbar_wr Piece", Piece, 1, MaxBurstBeats);

  localparam int unsigned HostBits = 52 - BeatLog2;
  localparam int unsigned ChanBits = ChanLog2 - BeatLog2;
  localparam int unsigned Sent = 4;  // pieces granted whose data is not sent

  typedef struct packed {
    logic [StrbW-1:0] strb;
    logic [DataW-1:0] data;
  } beat_t;

  // Bursts of a manager in their order. `tgt` is one-hot; bit NumSub is the error response.
  typedef struct packed {
    logic [NumSub:0] tgt;
    logic [IdW-1:0]  id;
  } order_t;

  // A piece sent to a target.
  localparam int unsigned MgrW = (NumMgr > 1) ? $clog2(NumMgr) : 1;
  typedef struct packed {
    logic [MgrW-1:0] mgr;
    logic [7:0]      len;
  } piece_t;

  // Whom a response of a target is for.
  typedef struct packed {
    logic [NumMgr-1:0] mgr;   // one-hot
    logic              last;  // of the last piece of a burst
  } owner_t;
  owner_t owner[NumSub];

  // ---------------------------------------------------------------- managers
  logic [HostBits-1:0] place[NumMgr];  // address in beats
  logic [7:0] len[NumMgr];
  logic [NumSub-1:0] enter[NumMgr], room[NumMgr];  // a request enters a queue; a queue has room
  logic [NumSub-1:0] offered[NumMgr], offer_last[NumMgr], granted[NumMgr], cut[NumMgr];
  logic [HostBits-1:0] offer[NumMgr][NumSub];
  logic [7:0] offer_len[NumMgr][NumSub];
  beat_t beat[NumMgr][NumSub];  // next beat for the target
  logic [NumSub-1:0] beat_valid[NumMgr], send[NumMgr];
  logic [NumSub-1:0] answer[NumMgr];  // the last B of a burst
  axi_resp_e answer_resp[NumMgr][NumSub];
  logic [NumMgr-1:0] moves, open;

  for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
    axi_ax_t aw;
    axi_w_t  w;
    logic aw_valid, aw_take, aw_ready, w_valid, w_take, w_ready, w_room, b_room;
    logic [NumSub:0] tgt, w_tgt;
    logic w_tgt_valid;

    via_skid #(
      .T(axi_ax_t)
    ) u_aw (
      .clk_i,
      .rst_ni,
      .s_i      (s_aw_i[m]),
      .s_valid_i(s_aw_valid_i[m]),
      .s_ready_o(aw_ready),
      .m_o      (aw),
      .m_valid_o(aw_valid),
      .m_ready_i(aw_take)
    );
    assign s_aw_ready_o[m] = aw_ready;

    via_xbar_route #(
      .NumSub(NumSub),
      .ToHost(ToHost[m])
    ) u_route (
      .addr_i(aw.addr),
      .tgt_o (tgt)
    );
    assign aw_take  = w_room && b_room && |(tgt &{1'b1, room[m]});
    assign enter[m] = (aw_valid && w_room && b_room) ? tgt[NumSub-1:0] : '0;
    assign place[m] = aw.addr[BeatLog2+:HostBits];
    assign len[m]   = aw.len;

    // W goes to the buffer of its burst's target; that of an error is dropped.
    via_slice #(
      .T  (axi_w_t),
      .Ram(1'b1)
    ) u_w (
      .clk_i,
      .rst_ni,
      .s_i      (s_w_i[m]),
      .s_valid_i(s_w_valid_i[m]),
      .s_ready_o(w_ready),
      .m_o      (w),
      .m_valid_o(w_valid),
      .m_ready_i(w_take)
    );
    assign s_w_ready_o[m] = w_ready;

    via_fifo #(
      .T    (logic [NumSub:0]),
      .Depth(Outstanding)
    ) u_w_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (tgt),
      .s_valid_i(aw_valid && aw_take),
      .s_ready_o(w_room),
      .m_o      (w_tgt),
      .m_valid_o(w_tgt_valid),
      .m_ready_i(w_valid && w_take && w.last),
      .count_o  ()
    );
    logic [NumSub-1:0] buffer_room, store;
    assign w_take = w_tgt_valid && |(w_tgt &{1'b1, buffer_room});
    assign store  = (w_valid && w_tgt_valid) ? w_tgt[NumSub-1:0] & buffer_room : '0;

    // B in the order of AW. Error responses are owed for the bursts that were dropped.
    localparam int unsigned OweW = $clog2(Outstanding + 1);
    order_t head;
    logic head_valid, advance, take, valid_q, owe;
    logic [OweW-1:0] owed_q;
    logic [NumSub-1:0] ready, queue_still;
    axi_resp_e resp[NumSub];
    axi_b_t b, b_q;

    via_fifo #(
      .T    (order_t),
      .Depth(Outstanding)
    ) u_b_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      ({tgt, aw.id}),
      .s_valid_i(aw_valid && aw_take),
      .s_ready_o(b_room),
      .m_o      (head),
      .m_valid_o(head_valid),
      .m_ready_i(take),
      .count_o  ()
    );
    assign advance = !valid_q || s_b_ready_i[m];
    assign take = head_valid && advance && |(head.tgt &{owed_q != '0, ready});
    assign owe = w_valid && w_take && w.last && w_tgt[NumSub];
    always_comb begin
      b = '{id: head.id, resp: head.tgt[NumSub] ? RespSlvErr : RespOkay};
      for (int unsigned t = 0; t < NumSub; t++) if (head.tgt[t]) b.resp = axi_resp_e'(b.resp | resp[t]);
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        valid_q <= 1'b0;
        owed_q  <= '0;
      end else begin
        if (advance) valid_q <= take;
        if (owe != (take && head.tgt[NumSub])) owed_q <= owe ? owed_q + 1'b1 : owed_q - 1'b1;
      end
    end
    always_ff @(posedge clk_i) if (take) b_q <= b;

    assign s_b_o[m] = b_q;
    assign s_b_valid_o[m] = valid_q;
    assign moves[m] = valid_q || take || s_aw_valid_i[m] || !aw_ready || s_w_valid_i[m] || !w_ready || queue_still != '1;
    assign open[m] = valid_q || head_valid || !aw_ready || !w_ready;

    for (genvar t = 0; t < NumSub; t++) begin : gen_tgt
      if (t < NumChan || ToHost[m]) begin : gen_point
        localparam int unsigned Width = (t < NumChan) ? ChanBits : HostBits;
        logic [Width-1:0] at;

        via_xbar_queue #(
          .Width(Width),
          .Depth(Queue),
          .Piece(Piece),
          .Most (Room),
          .Start(0),
          .Ahead(1'b1)
        ) u_queue (
          .clk_i,
          .rst_ni,
          .s_i      (place[m][Width-1:0]),
          .s_len_i  (len[m]),
          .s_valid_i(enter[m][t]),
          .s_ready_o(room[m][t]),
          .m_o      (at),
          .m_len_o  (offer_len[m][t]),
          .m_last_o (offer_last[m][t]),
          .m_valid_o(offered[m][t]),
          .m_ready_i(granted[m][t]),
          .cut_i    (cut[m][t]),
          .credit_i (store[t]),
          .still_o  (queue_still[t])
        );
        assign offer[m][t] = HostBits'(at);

        via_fifo #(
          .T    (beat_t),
          .Depth(Room),
          .Ram  (1'b1)
        ) u_beats (
          .clk_i,
          .rst_ni,
          .flush_i  (1'b0),
          .s_i      ({w.strb, w.data}),
          .s_valid_i(store[t]),
          .s_ready_o(buffer_room[t]),
          .m_o      (beat[m][t]),
          .m_valid_o(beat_valid[m][t]),
          .m_ready_i(send[m][t]),
          .count_o  ()
        );

        // A burst has failed if a piece of it has.
        axi_resp_e so_far_q;
        always_ff @(posedge clk_i) begin
          if (!rst_ni) so_far_q <= RespOkay;
          else if (m_b_valid_i[t] && owner[t].mgr[m]) so_far_q <= owner[t].last ? RespOkay : answer_resp[m][t];
        end
        assign answer_resp[m][t] = axi_resp_e'(so_far_q | m_b_i[t].resp);
        assign answer[m][t] = m_b_valid_i[t] && owner[t].mgr[m] && owner[t].last;

        via_fifo #(
          .T    (axi_resp_e),
          .Depth(Outstanding)
        ) u_resp (
          .clk_i,
          .rst_ni,
          .flush_i  (1'b0),
          .s_i      (answer_resp[m][t]),
          .s_valid_i(answer[m][t]),
          .s_ready_o(),
          .m_o      (resp[t]),
          .m_valid_o(ready[t]),
          .m_ready_i(take && head.tgt[t]),
          .count_o  ()
        );
      end else begin : gen_none
        assign offer[m][t] = '0;
        assign offer_len[m][t] = '0;
        assign offer_last[m][t] = 1'b0;
        assign offered[m][t] = 1'b0;
        assign room[m][t] = 1'b0;
        assign buffer_room[t] = 1'b0;
        assign beat[m][t] = '0;
        assign beat_valid[m][t] = 1'b0;
        assign answer[m][t] = 1'b0;
        assign answer_resp[m][t] = RespOkay;
        assign resp[t] = RespOkay;
        assign ready[t] = 1'b0;
        assign queue_still[t] = 1'b1;
      end
    end
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
        if (gnt[m]) begin
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
    always_ff @(posedge clk_i) if (w_take) w_q <= '{last: w_last, strb: beat[piece.mgr][t].strb, data: beat[piece.mgr][t].data};
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
      .m_o      (owner[t]),
      .m_valid_o(),
      .m_ready_i(m_b_valid_i[t]),
      .count_o  ()
    );
    assign sends[t] = m_aw_valid_o[t] || piece_valid || w_valid_q || m_b_valid_i[t];
  end

  assign m_b_ready_o = '1;
  assign still_o = ~|{moves, sends};
  assign idle_o = ~|{open, m_aw_valid_o, m_w_valid_o};

endmodule
