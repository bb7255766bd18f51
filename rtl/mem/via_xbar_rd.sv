// SPDX-License-Identifier: Apache-2.0
//
// Read half of the crossbar: out of order over the targets, in order for every manager.
//
//   AR of manager m ──> order of m ────────────────────────────────┐
//                  └──> via_xbar_queue[m][t] ─> via_xbar_share[t] ──> AR of target t
//   R of manager m <── next in order <── buffer[m][t] <─────────────── R of target t
//
// A request waits for its own target only, and its response waits in the buffer of its manager and target for its turn. As a request is sent
// only when there is room for its response, a target is never stalled, whatever managers do.
// Throughput: one R beat a manager and a target each cycle, no bubble between bursts. Latency: three cycles each for AR and R.
// Requests to a channel that others use are cut into pieces of `Piece` beats, and a channel has at most about `Window` beats requested and not
// delivered: a short request waits for little, however long those of other managers are. Host memory, which is far away, has no such limit.
// Misuse: a manager that stalls R fills its own buffers only.

module via_xbar_rd
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 1,
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
  output logic                 still_o,               // nothing moves unless an input changes
  output logic                 idle_o                 // level: no read is in flight
);

  localparam bit NumMgrOk = param_in("via_xbar_rd NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar_rd NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar_rd Outstanding", Outstanding, 1, 1024);
  localparam bit QueueOk = param_in("via_xbar_rd Queue", Queue, 1, 1024);
  localparam bit RoomOk = param_in("via_xbar_rd Room", Room, MaxBurstBeats, 65536);
  localparam bit PieceOk = param_pow2("via_xbar_rd Piece", Piece, 1, MaxBurstBeats);
  localparam bit WindowOk = param_in("via_xbar_rd Window", Window, 1, 65536);

  localparam int unsigned OwnerDepth = 2 * Window;
  localparam int unsigned HostBits = 52 - BeatLog2;
  localparam int unsigned ChanBits = ChanLog2 - BeatLog2;

  typedef struct packed {
    axi_resp_e        resp;
    logic [DataW-1:0] data;
  } beat_t;

  // What a manager expects next: from target `from`, or the error response.
  localparam int unsigned FromW = $clog2(NumSub);
  typedef struct packed {
    logic                   failed;
    logic [FromW-1:0] from;
    logic [7:0]             len;
    logic [IdW-1:0]         id;
  } order_t;

  // ---------------------------------------------------------------- managers
  logic [HostBits-1:0] place[NumMgr];  // address in beats
  logic [7:0] len[NumMgr];
  logic [NumSub-1:0] enter[NumMgr], room[NumMgr];  // a request enters a queue; a queue has room
  logic [NumSub-1:0] offered[NumMgr], granted[NumMgr], cut[NumMgr];
  logic [HostBits-1:0] offer[NumMgr][NumSub];
  logic [7:0] offer_len[NumMgr][NumSub];
  logic [NumSub-1:0] store[NumMgr];  // a beat of this target is for this manager
  logic [NumMgr-1:0] moves, open;

  for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
    axi_ax_t ar;
    logic ar_valid, ar_take, order_room, skid_ready;
    logic [NumSub:0] tgt;

    via_skid #(
      .T(axi_ax_t)
    ) u_ar (
      .clk_i,
      .rst_ni,
      .s_i      (s_ar_i[m]),
      .s_valid_i(s_ar_valid_i[m]),
      .s_ready_o(skid_ready),
      .m_o      (ar),
      .m_valid_o(ar_valid),
      .m_ready_i(ar_take)
    );
    assign s_ar_ready_o[m] = skid_ready;

    via_xbar_route #(
      .NumSub(NumSub),
      .ToHost(ToHost[m])
    ) u_route (
      .addr_i(ar.addr),
      .tgt_o (tgt)
    );
    assign ar_take  = order_room && |(tgt &{1'b1, room[m]});
    assign enter[m] = (ar_valid && order_room) ? tgt[NumSub-1:0] : '0;
    assign place[m] = ar.addr[BeatLog2+:HostBits];
    assign len[m]   = ar.len;

    order_t head;
    logic head_valid, done;
    logic [FromW-1:0] from;
    always_comb begin
      from = '0;
      for (int unsigned t = 0; t < NumSub; t++) if (tgt[t]) from |= FromW'(t);
    end
    via_fifo #(
      .T    (order_t),
      .Depth(Outstanding)
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
    logic [NumSub-1:0] ready, queue_still;
    logic advance, take, valid_q, last;
    logic [7:0] count_q;  // beats of the burst that have been sent
    beat_t beat[NumSub];
    axi_r_t r_q;

    assign advance = !valid_q || s_r_ready_i[m];
    assign take = head_valid && advance && (head.failed || ready[head.from]);
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

    assign s_r_o[m] = r_q;
    assign s_r_valid_o[m] = valid_q;
    assign moves[m] = valid_q || take || s_ar_valid_i[m] || !skid_ready || queue_still != '1;
    assign open[m] = valid_q || head_valid || !skid_ready;

    for (genvar t = 0; t < NumSub; t++) begin : gen_tgt
      if (t < NumChan || ToHost[m]) begin : gen_point
        localparam int unsigned Width = (t < NumChan) ? ChanBits : HostBits;
        logic [Width-1:0] at;
        logic free;
        assign free = take && !head.failed && head.from == FromW'(t);

        via_xbar_queue #(
          .Width(Width),
          .Depth(Queue),
          .Piece(Piece),
          .Most (Room)
        ) u_queue (
          .clk_i,
          .rst_ni,
          .s_i      (place[m][Width-1:0]),
          .s_len_i  (len[m]),
          .s_valid_i(enter[m][t]),
          .s_ready_o(room[m][t]),
          .m_o      (at),
          .m_len_o  (offer_len[m][t]),
          .m_valid_o(offered[m][t]),
          .m_ready_i(granted[m][t]),
          .m_last_o (),
          .cut_i    (cut[m][t]),
          .credit_i (free),
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
          .s_i      ({m_r_i[t].resp, m_r_i[t].data}),
          .s_valid_i(store[m][t]),
          .s_ready_o(),
          .m_o      (beat[t]),
          .m_valid_o(ready[t]),
          .m_ready_i(free),
          .count_o  ()
        );
      end else begin : gen_none
        assign offer[m][t] = '0;
        assign offer_len[m][t] = '0;
        assign offered[m][t] = 1'b0;
        assign room[m][t] = 1'b0;
        assign beat[t] = '0;
        assign ready[t] = 1'b0;
        assign queue_still[t] = 1'b1;
      end
    end
  end

  // ---------------------------------------------------------------- targets
  logic [NumSub-1:0] sends;
  for (genvar t = 0; t < NumSub; t++) begin : gen_sub
    logic [NumMgr-1:0] req, gnt, owner, shared;
    logic [7:0] req_len[NumMgr];
    axi_ax_t ax;
    logic any, ack, slice_ready, owner_room, below;

    for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
      assign req[m] = offered[m][t];
      assign req_len[m] = offer_len[m][t];
      assign granted[m][t] = gnt[m] && ack;
      // Host memory gets requests whole: a link is best at long ones.
      assign cut[m][t] = t < NumChan && shared[m];
      assign store[m][t] = m_r_valid_i[t] && owner[m];
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
    assign ack = slice_ready && owner_room && below;

    always_comb begin
      ax = '0;
      for (int unsigned m = 0; m < NumMgr; m++) begin
        if (gnt[m]) begin
          ax.addr |= AddrW'(offer[m][t]) << BeatLog2;
          ax.len |= offer_len[m][t];
        end
      end
      ax.size  = 3'(BeatLog2);
      ax.burst = 2'b01;
    end

    via_slice #(
      .T(axi_ax_t)
    ) u_ar (
      .clk_i,
      .rst_ni,
      .s_i      (ax),
      .s_valid_i(any && ack),
      .s_ready_o(slice_ready),
      .m_o      (m_ar_o[t]),
      .m_valid_o(m_ar_valid_o[t]),
      .m_ready_i(m_ar_ready_i[t])
    );

    via_fifo #(
      .T    (logic [NumMgr-1:0]),
      .Depth(OwnerDepth)
    ) u_owner (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (gnt),
      .s_valid_i(any && ack),
      .s_ready_o(owner_room),
      .m_o      (owner),
      .m_valid_o(),
      .m_ready_i(m_r_valid_i[t] && m_r_i[t].last),
      .count_o  ()
    );
    assign sends[t] = m_ar_valid_o[t] || m_r_valid_i[t];

    // Beats requested and not delivered. The sum follows a grant by two cycles, so nothing is granted in the one after a long burst.
    if (t < NumChan) begin : gen_window
      localparam int unsigned Long = 8;
      localparam int unsigned FlightW = $clog2(Window + 2 * MaxBurstBeats + 1);
      logic [FlightW-1:0] flight_q, flight;
      logic [8:0] more_q;
      logic below_q, long_q;
      assign flight = flight_q + FlightW'(more_q) - FlightW'(m_r_valid_i[t]);
      assign below  = below_q && !long_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
          flight_q <= '0;
          more_q   <= '0;
          below_q  <= 1'b1;
          long_q   <= 1'b0;
        end else begin
          flight_q <= flight;
          more_q   <= (any && ack) ? 9'(ax.len) + 9'd1 : '0;
          below_q  <= flight < FlightW'(Window);
          long_q   <= any && ack && ax.len >= 8'(Long);
        end
      end
    end else begin : gen_far
      assign below = 1'b1;
    end
  end

  assign m_r_ready_o = '1;
  assign still_o = ~|{moves, sends};
  assign idle_o = ~|{open, m_ar_valid_o};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      for (int unsigned t = 0; t < NumSub; t++) begin
        logic [NumMgr-1:0] at;
        for (int unsigned m = 0; m < NumMgr; m++) at[m] = store[m][t];
        a_owner :
        assert (!m_r_valid_i[t] || $onehot(at))
        else $error("target %0d sends a beat that nobody requested", t);
      end
    end
  end
`endif

endmodule
