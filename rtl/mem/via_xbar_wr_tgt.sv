// SPDX-License-Identifier: Apache-2.0
//
// One target's side of the write half of the crossbar: grants the pieces that managers offer, by beats, sends their data behind them, and tells
// whose a response of the target is.
//
//   pieces of manager m ──> slice[m] ──> grant of via_share, in via_xbar ──> AW
//                                             ├──> pieces granted ──┐
//   beats of manager m ───> buffer[m] ──────────────────────────────┴──> W
//                                             └──> owners ──> whose the next response is
//
// A manager offers a piece when its data is in the buffer here, of a long one the first `Piece` + 1 beats, behind which the rest follows without
// a pause: so the target never waits for data.
// Of host memory as many beats are under way as `window_i` says; what is beyond waits for its grant.
// Throughput: one piece and one beat a cycle. Latency: two cycles for AW, three for W. Order: that of each manager is kept; the target responds
// in the order of AW.

module via_xbar_wr_tgt
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 3,
  parameter bit Far = 1'b0,  // host memory, not a channel: pieces for it are not cut
  parameter bit [NumMgr-1:0] ToHost = NumMgr'((1 << NumSlots) - 1),  // managers that reach host memory
  parameter int unsigned Outstanding = 64,
  parameter int unsigned Room = 512,  // beats of the buffer of a manager; twice as many at a channel with ToHost
  parameter int unsigned Piece = 16
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  /* verilator lint_off UNUSEDSIGNAL */  // of a channel, and of managers with no way to host memory
  input  logic        [     NumMgr-1:0] first_i,                // level: who goes first, for whom the window of host memory does not count
  input  logic        [            7:0] window_i,               // Far: beats granted and not responded to, in 16 beats
  input  xbar_piece_t                   piece_i      [NumMgr],
  input  logic        [     NumMgr-1:0] piece_valid_i,
  output logic        [     NumMgr-1:0] piece_ready_o,
  output logic        [     NumMgr-1:0] req_o,                  // to via_share: who requests
  output logic        [            7:0] req_len_o    [NumMgr],  // beats - 1 of its piece
  output logic                          ack_o,                  // level: a grant is used
  input  logic        [     NumMgr-1:0] gnt_i,                  // its grant, one-hot; zero if there is none
  input  logic                          gnt_any_i,              // there is one
  input  logic        [StrbW+DataW-1:0] beat_i       [NumMgr],  // strobes and data, in the order of the bursts
  input  logic        [     NumMgr-1:0] beat_valid_i,
  /* verilator lint_on UNUSEDSIGNAL */
  output logic        [     NumMgr-1:0] beat_ready_o,
  output logic                          first_o,                // level: Far: somebody of those who go first waits, here or at the port
  output axi_ax_t                       m_aw_o,
  output logic                          m_aw_valid_o,
  input  logic                          m_aw_ready_i,
  output axi_w_t                        m_w_o,
  output logic                          m_w_valid_o,
  input  logic                          m_w_ready_i,
  input  logic                          back_valid_i,           // pulse: a response of the target
  output logic        [     NumMgr-1:0] owner_o,                // one-hot: whose the next response is
  output logic                          owner_last_o,           // it is for the last piece of a burst
  output logic                          still_o                 // nothing moves unless an input changes
);

  localparam bit NumMgrOk = param_in("via_xbar_wr_tgt NumMgr", NumMgr, 1, 64);
  localparam bit OutstandingOk = param_in("via_xbar_wr_tgt Outstanding", Outstanding, 1, 1024);
  localparam bit RoomOk = param_in("via_xbar_wr_tgt Room", Room, MaxBurstBeats, 65536);
  localparam bit PieceOk = param_pow2("via_xbar_wr_tgt Piece", Piece, 1, MaxBurstBeats);

  localparam int unsigned Width = Far ? 52 - BeatLog2 : ChanLog2 - BeatLog2;
  localparam int unsigned MgrW = (NumMgr > 1) ? $clog2(NumMgr) : 1;
  localparam int unsigned Sent = 4;  // pieces granted whose data is not sent

  typedef struct packed {
    logic             last;
    logic [7:0]       len;
    logic [Width-1:0] place;
  } piece_t;

  // A piece that has been granted.
  typedef struct packed {
    logic [MgrW-1:0] mgr;
    logic [7:0]      len;
  } sent_t;

  // Whom a response of the target is for.
  typedef struct packed {
    logic [7:0]        len;   // beats - 1
    logic [NumMgr-1:0] mgr;   // one-hot
    logic              last;  // of the last piece of a burst
  } owner_t;

  logic [NumMgr-1:0] req, req_last, have;
  /* verilator lint_off UNUSEDSIGNAL */  // of managers with no way to it
  logic [NumMgr-1:0] send;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [7:0] req_len[NumMgr];
  logic [Width-1:0] req_place[NumMgr];
  logic [StrbW+DataW-1:0] beat[NumMgr];  // next beat of a manager
  axi_ax_t ax;
  logic ack, grant, slice_ready, sent_room, owner_room, below, last;
  logic [MgrW-1:0] from;
  sent_t sent;
  owner_t owner;
  logic sent_valid, w_take, w_last, w_valid_q, w_advance;
  logic [7:0] count_q;
  axi_w_t w_q;

  // ---------------------------------------------------------------- offers and data
  for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
    if (!Far || ToHost[m]) begin : gen_way
      piece_t offer;
      via_slice #(
        .T  (piece_t),
        .Ram(1'b1)
      ) u_offer (
        .clk_i,
        .rst_ni,
        .s_i      ({piece_i[m].last, piece_i[m].len, piece_i[m].place[Width-1:0]}),
        .s_valid_i(piece_valid_i[m]),
        .s_ready_o(piece_ready_o[m]),
        .m_o      (offer),
        .m_valid_o(req[m]),
        .m_ready_i(gnt_i[m] && ack)
      );
      assign req_last[m]  = offer.last;
      assign req_len[m]   = offer.len;
      assign req_place[m] = offer.place;

      via_fifo #(
        .T    (logic [StrbW+DataW-1:0]),
        .Depth((!Far && ToHost[m]) ? 2 * Room : Room),
        .Ram  (1'b1)
      ) u_beats (
        .clk_i,
        .rst_ni,
        .flush_i  (1'b0),
        .s_i      (beat_i[m]),
        .s_valid_i(beat_valid_i[m]),
        .s_ready_o(beat_ready_o[m]),
        .m_o      (beat[m]),
        .m_valid_o(have[m]),
        .m_ready_i(send[m]),
        .count_o  ()
      );
    end else begin : gen_none
      assign piece_ready_o[m] = 1'b0;
      assign beat_ready_o[m] = 1'b0;
      assign req[m] = 1'b0;
      assign req_last[m] = 1'b0;
      assign req_len[m] = '0;
      assign req_place[m] = '0;
      assign beat[m] = '0;
      assign have[m] = 1'b0;
    end
  end

  // ---------------------------------------------------------------- grant
  assign ack = slice_ready && sent_room && owner_room;
  assign req_o = req & (first_i | {NumMgr{below}});
  assign req_len_o = req_len;
  assign ack_o = ack;
  assign grant = gnt_any_i && ack;

  always_comb begin
    ax   = '0;
    last = 1'b0;
    from = '0;
    for (int unsigned m = 0; m < NumMgr; m++) begin
      if (gnt_i[m]) begin
        ax.addr |= AddrW'(req_place[m]) << BeatLog2;
        ax.len |= req_len[m];
        last |= req_last[m];
        from |= MgrW'(m);
      end
    end
    ax.size  = 3'(BeatLog2);
    ax.burst = BurstIncr;
  end

  via_slice #(
    .T  (axi_ax_t),
    .Ram(Far)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (ax),
    .s_valid_i(grant),
    .s_ready_o(slice_ready),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i)
  );

  // ---------------------------------------------------------------- data of the pieces, in the order of their grants
  via_fifo #(
    .T    (sent_t),
    .Depth(Sent)
  ) u_sent (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({from, ax.len}),
    .s_valid_i(grant),
    .s_ready_o(sent_room),
    .m_o      (sent),
    .m_valid_o(sent_valid),
    .m_ready_i(w_take && w_last),
    .count_o  ()
  );
  assign w_advance = !w_valid_q || m_w_ready_i;
  assign w_last = count_q == sent.len;
  assign w_take = sent_valid && w_advance && have[sent.mgr];
  always_comb for (int unsigned m = 0; m < NumMgr; m++) send[m] = w_take && sent.mgr == MgrW'(m);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_valid_q <= 1'b0;
      count_q   <= '0;
    end else begin
      if (w_advance) w_valid_q <= w_take;
      if (w_take) count_q <= w_last ? '0 : count_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) if (w_take) w_q <= '{last: w_last, strb: beat[sent.mgr][DataW+:StrbW], data: beat[sent.mgr][DataW-1:0]};
  assign m_w_o = w_q;
  assign m_w_valid_o = w_valid_q;

  // ---------------------------------------------------------------- responses
  logic owed;
  via_fifo #(
    .T    (owner_t),
    .Depth(Outstanding)
  ) u_owner (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({ax.len, gnt_i, last}),
    .s_valid_i(grant),
    .s_ready_o(owner_room),
    .m_o      (owner),
    .m_valid_o(owed),
    .m_ready_i(back_valid_i),
    .count_o  ()
  );
  assign owner_o = owner.mgr;
  assign owner_last_o = owner.last;

  // Beats of host memory granted and not responded to. A channel takes what it has granted at once.
  if (Far) begin : gen_far
    localparam int unsigned Most = 16 * 255;
    logic back_q;
    logic [7:0] back_len_q;
    always_ff @(posedge clk_i) begin
      back_q     <= rst_ni && back_valid_i;
      back_len_q <= owner.len;
      first_o    <= rst_ni && ((req & first_i) != '0 || first_o && m_aw_valid_o);
    end
    via_window #(
      .Most(Most)
    ) u_window (
      .clk_i,
      .rst_ni,
      .window_i  ($clog2(Most + 1)'({window_i, 4'h0})),
      .grant_i   (grant),
      .len_i     (ax.len),
      .long_i    (1'b0),
      .back_i    (back_q),
      .back_len_i(back_len_q),
      .below_o   (below)
    );
  end else begin : gen_near
    assign below   = 1'b1;
    assign first_o = 1'b0;
  end

  // A request may wait for via_share to give it a quantum, with nothing else going on.
  always_ff @(posedge clk_i) begin
    still_o <= ~|{
        piece_valid_i & piece_ready_o, beat_valid_i & beat_ready_o, req, m_aw_valid_o && m_aw_ready_i, w_take, w_valid_q && m_w_ready_i, back_valid_i};
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!back_valid_i || owed)
      else $error("a target sends a response that nobody requested");
    end
  end
`endif

endmodule
