// SPDX-License-Identifier: Apache-2.0
//
// One manager's side of the read half of the crossbar: requests go to a queue for each target, responses come into a buffer for each target
// and leave in the order of the requests, with the manager's ids.
//
//   AR ──> order ──────────────────────────┐
//     └──> via_xbar_queue[t] ──> pieces    │
//   R <─── next in order <── buffer[t] <───┴── beats of target t
//
// A piece is offered only when its buffer has room for all of it, so beats are always accepted.
// Throughput: one beat a cycle, no bubble between bursts; a beat of every target each cycle into the buffers. Latency: one cycle for AR, three
// for R. Order: kept. Misuse: a manager that stalls R fills its own buffers only. Source: FSRF paper, section 5.3, where reads are in order.

module via_xbar_rd_mgr
  import via_pkg::*;
#(
  parameter int unsigned NumSub = NumChan + 1,
  parameter bit ToHost = 1'b1,  // without it addresses in host memory are errors
  parameter int unsigned Outstanding = 64,  // bursts in flight; four times as many with ToHost
  parameter int unsigned Queue = 32,  // requests that wait, for each target; twice as many for a channel with ToHost
  parameter int unsigned Room = 512,  // beats of each buffer; of a channel's twice as many with ToHost
  parameter int unsigned Piece = 16  // beats of a piece of a request that is cut
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  axi_ax_t                  s_ar_i,
  input  logic                     s_ar_valid_i,
  output logic                     s_ar_ready_o,
  output axi_r_t                   s_r_o,
  output logic                     s_r_valid_o,
  input  logic                     s_r_ready_i,
  output xbar_piece_t              piece_o      [NumSub],
  output logic        [NumSub-1:0] piece_valid_o,
  input  logic        [NumSub-1:0] piece_ready_i,
  output logic        [NumSub-1:0] urgent_o,               // level: the oldest read is of this target
  input  logic        [NumSub-1:0] cut_i,                  // level: others use the target
  input  logic        [ DataW+1:0] back_i       [NumSub],  // response and data of a beat
  input  logic        [NumSub-1:0] back_valid_i,           // pulse: a beat for this manager
  output logic                     still_o,                // nothing moves unless an input changes
  output logic                     idle_o                  // level: no read is in flight
);

  localparam bit NumSubOk = param_in("via_xbar_rd_mgr NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar_rd_mgr Outstanding", Outstanding, 1, 1024);
  localparam bit QueueOk = param_in("via_xbar_rd_mgr Queue", Queue, 1, 1024);
  localparam bit RoomOk = param_in("via_xbar_rd_mgr Room", Room, MaxBurstBeats, 65536);
  localparam bit PieceOk = param_pow2("via_xbar_rd_mgr Piece", Piece, 1, MaxBurstBeats);

  localparam int unsigned Flight = ToHost ? 4 * Outstanding : Outstanding;
  localparam int unsigned ChanBits = ChanLog2 - BeatLog2;
  localparam int unsigned PlaceW = 52 - BeatLog2;

  typedef struct packed {
    axi_resp_e        resp;
    logic [DataW-1:0] data;
  } beat_t;

  // What is to be delivered next: from target `from`, or the error response.
  localparam int unsigned FromW = $clog2(NumSub);
  typedef struct packed {
    logic                   failed;
    logic [FromW-1:0] from;
    logic [7:0]             len;
    logic [IdW-1:0]         id;
  } order_t;

  logic [PlaceW-1:0] place;  // address in beats
  logic [7:0] len;
  logic [NumSub-1:0] enter, room;  // a request enters a queue; a queue has room
  axi_ax_t ar;
  logic ar_valid, ar_take, order_room, skid_ready;
  logic [NumSub:0] tgt;

  via_skid #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (s_ar_i),
    .s_valid_i(s_ar_valid_i),
    .s_ready_o(skid_ready),
    .m_o      (ar),
    .m_valid_o(ar_valid),
    .m_ready_i(ar_take)
  );
  assign s_ar_ready_o = skid_ready;

  via_xbar_route #(
    .NumSub(NumSub),
    .ToHost(ToHost)
  ) u_route (
    .addr_i(ar.addr),
    .tgt_o (tgt)
  );
  assign ar_take = order_room && |(tgt &{1'b1, room});
  assign enter = (ar_valid && order_room) ? tgt[NumSub-1:0] : '0;
  assign place = ar.addr[BeatLog2+:PlaceW];
  assign len = ar.len;

  order_t head;
  logic head_valid, done;
  logic [FromW-1:0] from;
  always_comb begin
    from = '0;
    for (int unsigned t = 0; t < NumSub; t++) if (tgt[t]) from |= FromW'(t);
  end
  via_fifo #(
    .T    (order_t),
    .Depth(Flight)
  ) u_order (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({tgt[NumSub], from, ar.len, ar.id}),
    .s_valid_i(ar_valid && ar_take),
    .s_ready_o(order_room),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(done),
    .count_o  ()
  );

  // The next beat, from the buffer that the order names, or made here.
  logic [NumSub-1:0] ready, queue_empty;
  logic there, advance, take, valid_q, last;
  logic [7:0] count_q;  // beats of the burst that have been sent
  beat_t beat[NumSub];
  axi_r_t r_q;

  assign advance = !valid_q || s_r_ready_i;
  assign there = head_valid && (head.failed || ready[head.from]);
  assign take = advance && there;
  assign last = count_q == head.len;
  assign done = take && last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      count_q <= '0;
    end else begin
      if (advance) valid_q <= take;
      if (take) count_q <= last ? '0 : count_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      r_q <= '{id: head.id, resp: beat[head.from].resp, last: last, data: beat[head.from].data};
      if (head.failed) r_q <= '{id: head.id, resp: RespSlvErr, last: last, data: '0};
    end
  end

  // Until it is there, nothing else is delivered.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) urgent_o <= '0;
    else urgent_o <= NumSub'(head_valid && !head.failed) << head.from;
  end

  assign s_r_o = r_q;
  assign s_r_valid_o = valid_q;
  assign still_o = !(valid_q || there || !skid_ready || queue_empty != '1);
  assign idle_o = !(valid_q || head_valid || !skid_ready);

  for (genvar t = 0; t < NumSub; t++) begin : gen_tgt
    if (t < NumChan || ToHost) begin : gen_point
      localparam int unsigned Width = (t < NumChan) ? ChanBits : PlaceW;
      localparam int unsigned Depth = (t < NumChan && ToHost) ? 2 * Room : Room;
      logic [Width-1:0] at;
      logic [7:0] at_len;
      logic at_last;
      logic free;
      assign free = take && !head.failed && head.from == FromW'(t);

      via_xbar_queue #(
        .Width(Width),
        .Depth((t < NumChan && ToHost) ? 2 * Queue : Queue),
        .Piece(Piece),
        .Most (Depth)
      ) u_queue (
        .clk_i,
        .rst_ni,
        .s_i      (place[Width-1:0]),
        .s_len_i  (len),
        .s_valid_i(enter[t]),
        .s_ready_o(room[t]),
        .m_o      (at),
        .m_len_o  (at_len),
        .m_valid_o(piece_valid_o[t]),
        .m_ready_i(piece_ready_i[t]),
        .m_last_o (at_last),
        .cut_i    (cut_i[t]),
        .credit_i (free),
        .still_o  (),
        .empty_o  (queue_empty[t])
      );
      assign piece_o[t] = '{last: at_last, len: at_len, place: PlaceW'(at)};

      via_fifo #(
        .T    (beat_t),
        .Depth(Depth),
        .Ram  (1'b1)
      ) u_beats (
        .clk_i,
        .rst_ni,
        .flush_i  (1'b0),
        .s_i      (back_i[t]),
        .s_valid_i(back_valid_i[t]),
        .s_ready_o(),
        .m_o      (beat[t]),
        .m_valid_o(ready[t]),
        .m_ready_i(free),
        .count_o  ()
      );
    end else begin : gen_none
      assign piece_o[t] = '0;
      assign piece_valid_o[t] = 1'b0;
      assign room[t] = 1'b0;
      assign beat[t] = '0;
      assign ready[t] = 1'b0;
      assign queue_empty[t] = 1'b1;
    end
  end

endmodule
