// SPDX-License-Identifier: Apache-2.0
//
// One manager's side of the write half of the crossbar: requests go to a queue for each target, data to the buffer at its target; responses
// leave in the order of the requests, with the manager's ids.
//
//   AW ──> orders ─────────────────────────┐
//     └──> via_xbar_queue[t] ──> pieces    │
//   W ─────────────────────────> beats     │
//   B <─── next in order <── responses[t] <┴── B of the pieces of target t
//
// A piece is offered when its data is in the buffer, of a long one the first `Piece` + 1 beats, behind which the rest follows without a pause.
// Throughput: one beat a cycle, no bubble between bursts. Latency: three cycles from the last beat needed to the piece
// offered, two for B. Order: kept. Misuse: a manager that stalls B harms only itself; one that pauses within the W of a long burst stops its
// target.

module via_xbar_wr_mgr
  import via_pkg::*;
#(
  parameter int unsigned NumSub = NumChan + 1,
  parameter bit ToHost = 1'b1,  // without it addresses in host memory are errors
  parameter int unsigned Outstanding = 64,  // bursts in flight; four times as many with ToHost
  parameter int unsigned Queue = 32,  // requests that wait, for each target; twice as many for a channel with ToHost
  parameter int unsigned Room = 512,  // beats of the buffer at each target; twice as many at a channel with ToHost
  parameter int unsigned Piece = 16  // beats of a piece of a request that is cut
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  input  axi_ax_t                       s_aw_i,
  input  logic                          s_aw_valid_i,
  output logic                          s_aw_ready_o,
  input  axi_w_t                        s_w_i,
  input  logic                          s_w_valid_i,
  output logic                          s_w_ready_o,
  output axi_b_t                        s_b_o,
  output logic                          s_b_valid_o,
  input  logic                          s_b_ready_i,
  output xbar_piece_t                   piece_o      [NumSub],
  output logic        [     NumSub-1:0] piece_valid_o,
  input  logic        [     NumSub-1:0] piece_ready_i,
  output logic        [     NumSub-1:0] urgent_o,               // level: data is for this target now
  input  logic        [     NumSub-1:0] cut_i,                  // level: others use the target
  output logic        [StrbW+DataW-1:0] beat_o,                 // strobes and data, in the order of the bursts
  output logic        [     NumSub-1:0] beat_valid_o,           // for this target
  input  logic        [     NumSub-1:0] beat_ready_i,
  input  axi_resp_e                     back_i       [NumSub],
  input  logic        [     NumSub-1:0] back_valid_i,           // pulse: the response to a piece of this manager
  input  logic        [     NumSub-1:0] back_last_i,            // with it: to the last piece of its burst
  output logic                          still_o,                // nothing moves unless an input changes
  output logic                          idle_o                  // level: no write is in flight
);

  localparam bit NumSubOk = param_in("via_xbar_wr_mgr NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar_wr_mgr Outstanding", Outstanding, 1, 1024);
  localparam bit QueueOk = param_in("via_xbar_wr_mgr Queue", Queue, 1, 1024);
  localparam bit RoomOk = param_in("via_xbar_wr_mgr Room", Room, MaxBurstBeats, 65536);
  localparam bit PieceOk = param_pow2("via_xbar_wr_mgr Piece", Piece, 1, MaxBurstBeats);

  localparam int unsigned Flight = ToHost ? 4 * Outstanding : Outstanding;
  localparam int unsigned ChanBits = ChanLog2 - BeatLog2;
  localparam int unsigned PlaceW = 52 - BeatLog2;

  // Bursts in their order. `tgt` is one-hot; bit NumSub is the error response.
  typedef struct packed {
    logic [NumSub:0] tgt;
    logic [IdW-1:0]  id;
  } order_t;

  logic [PlaceW-1:0] place;  // address in beats
  logic [7:0] len;
  logic [NumSub-1:0] enter, room;  // a request enters a queue; a queue has room
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
    .s_i      (s_aw_i),
    .s_valid_i(s_aw_valid_i),
    .s_ready_o(aw_ready),
    .m_o      (aw),
    .m_valid_o(aw_valid),
    .m_ready_i(aw_take)
  );
  assign s_aw_ready_o = aw_ready;

  via_xbar_route #(
    .NumSub(NumSub),
    .ToHost(ToHost)
  ) u_route (
    .addr_i(aw.addr),
    .tgt_o (tgt)
  );
  assign aw_take = w_room && b_room && |(tgt &{1'b1, room});
  assign enter = (aw_valid && w_room && b_room) ? tgt[NumSub-1:0] : '0;
  assign place = aw.addr[BeatLog2+:PlaceW];
  assign len = aw.len;

  // W goes to its burst's target; that of an error is dropped.
  via_slice #(
    .T  (axi_w_t),
    .Ram(1'b1)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i      (s_w_i),
    .s_valid_i(s_w_valid_i),
    .s_ready_o(w_ready),
    .m_o      (w),
    .m_valid_o(w_valid),
    .m_ready_i(w_take)
  );
  assign s_w_ready_o = w_ready;

  via_fifo #(
    .T    (logic [NumSub:0]),
    .Depth(Flight)
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
  assign w_take = w_tgt_valid && |(w_tgt &{1'b1, beat_ready_i});
  // When its buffer is full, data for others waits behind it.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) urgent_o <= '0;
    else urgent_o <= (w_valid && w_tgt_valid) ? w_tgt[NumSub-1:0] : '0;
  end
  assign beat_o = {w.strb, w.data};
  assign beat_valid_o = (w_valid && w_tgt_valid) ? w_tgt[NumSub-1:0] : '0;

  // B in the order of AW. Error responses are owed for the bursts that were dropped.
  localparam int unsigned OweW = $clog2(Flight + 1);
  order_t head;
  logic head_valid, there, advance, take, valid_q, owe;
  logic [OweW-1:0] owed_q;
  logic owes_q;  // owed_q is not zero
  logic [NumSub-1:0] ready, queue_still;
  axi_resp_e resp[NumSub];
  axi_b_t b, b_q;

  via_fifo #(
    .T    (order_t),
    .Depth(Flight)
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
  assign advance = !valid_q || s_b_ready_i;
  assign there = head_valid && |(head.tgt &{owes_q, ready});
  assign take = advance && there;
  assign owe = w_valid && w_take && w.last && w_tgt[NumSub];
  always_comb begin
    b = '{id: head.id, resp: head.tgt[NumSub] ? RespSlvErr : RespOkay};
    for (int unsigned t = 0; t < NumSub; t++) if (head.tgt[t]) b.resp = axi_resp_e'(b.resp | resp[t]);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      owed_q  <= '0;
      owes_q  <= 1'b0;
    end else begin
      if (advance) valid_q <= take;
      if (owe != (take && head.tgt[NumSub])) begin
        owed_q <= owe ? owed_q + 1'b1 : owed_q - 1'b1;
        owes_q <= owe || owed_q != OweW'(1);
      end
    end
  end
  always_ff @(posedge clk_i) if (take) b_q <= b;

  assign s_b_o = b_q;
  assign s_b_valid_o = valid_q;
  // Addresses and data enter with a transfer at the port, or when a queue has moved.
  always_ff @(posedge clk_i) begin
    still_o <= queue_still == '1 && ~|{w_valid && w_take, back_valid_i, take, valid_q && s_b_ready_i};
  end
  assign idle_o = !(valid_q || head_valid || !aw_ready || w_valid);

  for (genvar t = 0; t < NumSub; t++) begin : gen_tgt
    if (t < NumChan || ToHost) begin : gen_point
      localparam int unsigned Width = (t < NumChan) ? ChanBits : PlaceW;
      logic [Width-1:0] at;
      logic [7:0] at_len;
      logic at_last;

      via_xbar_queue #(
        .Width(Width),
        .Depth((t < NumChan && ToHost) ? 2 * Queue : Queue),
        .Piece(Piece),
        .Most ((t < NumChan && ToHost) ? 2 * Room : Room),
        .Start(0),
        .Ahead(1'b1)
      ) u_queue (
        .clk_i,
        .rst_ni,
        .s_i      (place[Width-1:0]),
        .s_len_i  (len),
        .s_valid_i(enter[t]),
        .s_ready_o(room[t]),
        .m_o      (at),
        .m_len_o  (at_len),
        .m_last_o (at_last),
        .m_valid_o(piece_valid_o[t]),
        .m_ready_i(piece_ready_i[t]),
        .cut_i    (cut_i[t]),
        .credit_i (beat_valid_o[t] && beat_ready_i[t]),
        .still_o  (queue_still[t]),
        .empty_o  ()
      );
      assign piece_o[t] = '{last: at_last, len: at_len, place: PlaceW'(at)};

      // A burst has failed if a piece of it has.
      axi_resp_e so_far_q, failed;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) so_far_q <= RespOkay;
        else if (back_valid_i[t]) so_far_q <= back_last_i[t] ? RespOkay : failed;
      end
      assign failed = axi_resp_e'(so_far_q | back_i[t]);

      via_fifo #(
        .T    (axi_resp_e),
        .Depth(Flight)
      ) u_resp (
        .clk_i,
        .rst_ni,
        .flush_i  (1'b0),
        .s_i      (failed),
        .s_valid_i(back_valid_i[t] && back_last_i[t]),
        .s_ready_o(),
        .m_o      (resp[t]),
        .m_valid_o(ready[t]),
        .m_ready_i(take && head.tgt[t]),
        .count_o  ()
      );
    end else begin : gen_none
      assign piece_o[t] = '0;
      assign piece_valid_o[t] = 1'b0;
      assign room[t] = 1'b0;
      assign resp[t] = RespOkay;
      assign ready[t] = 1'b0;
      assign queue_still[t] = 1'b1;
    end
  end

endmodule
