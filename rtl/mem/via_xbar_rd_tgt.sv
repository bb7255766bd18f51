// SPDX-License-Identifier: Apache-2.0
//
// One target's side of the read half of the crossbar: grants the pieces that managers offer, by beats, and tells whose a beat of the target is.
//
//   pieces of manager m ──> slice[m] ──> grant of via_share, in via_xbar ──> AR
//                                             └──> owners ──> whose the next beat is
//
// Throughput: one piece a cycle. Latency: two cycles. Order: that of each manager is kept; the target responds in the order of AR.
// A channel has at most about `Window` beats requested and not delivered, host memory (`Far`) as many as `window_i` says: beyond that requests
// wait here, where they are shared, so a short one waits for little, however long those of other managers are. Pieces for host memory are not cut:
// a link is best at long ones.

module via_xbar_rd_tgt
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 3,
  parameter bit Far = 1'b0,  // host memory, not a channel
  parameter bit [NumMgr-1:0] Ways = (Far ? NumMgr'((1 << NumSlots) - 1) : '1),  // managers that reach it
  parameter int unsigned Piece = 16,  // beats of a piece of a request that is cut
  parameter int unsigned Window = 128
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  /* verilator lint_off UNUSEDSIGNAL */  // of managers with no way to it; of a channel; `last`, and what is above a channel's address
  input  logic        [NumMgr-1:0] first_i,                // level: who goes first, for whom the window of host memory does not count
  input  logic        [       7:0] window_i,               // Far: beats requested and not delivered, in 16 beats
  input  xbar_piece_t              piece_i      [NumMgr],
  input  logic        [NumMgr-1:0] piece_valid_i,
  /* verilator lint_on UNUSEDSIGNAL */
  output logic        [NumMgr-1:0] piece_ready_o,
  output logic        [NumMgr-1:0] req_o,                  // to via_share: who requests
  output logic        [       7:0] req_len_o    [NumMgr],  // beats - 1 of its piece
  output logic                     ack_o,                  // level: a grant is used
  input  logic        [NumMgr-1:0] gnt_i,                  // its grant, one-hot; zero if there is none
  input  logic                     gnt_any_i,              // there is one
  output logic                     first_o,                // level: Far: somebody of those who go first waits, here or at the port
  output axi_ax_t                  m_ar_o,
  output logic                     m_ar_valid_o,
  input  logic                     m_ar_ready_i,
  input  logic                     back_valid_i,           // pulse: a beat of the target
  input  logic                     back_last_i,            // with it: the last one of a piece
  output logic        [NumMgr-1:0] owner_o,                // one-hot: whose the next beat is
  output logic                     still_o                 // nothing moves unless an input changes
);

  localparam bit NumMgrOk = param_in("via_xbar_rd_tgt NumMgr", NumMgr, 1, 64);
  localparam bit PieceOk = param_pow2("via_xbar_rd_tgt Piece", Piece, 1, MaxBurstBeats);
  localparam bit WindowOk = param_in("via_xbar_rd_tgt Window", Window, 1, 65536);

  localparam int unsigned OwnerDepth = 2 * Window;
  localparam int unsigned Width = Far ? 52 - BeatLog2 : ChanLog2 - BeatLog2;

  typedef struct packed {
    logic [7:0]       len;
    logic [Width-1:0] place;
  } piece_t;

  logic [NumMgr-1:0] req;
  logic [7:0] req_len[NumMgr];
  logic [Width-1:0] req_place[NumMgr];
  axi_ax_t ax;
  logic ack, slice_ready, owner_room, below, long_gnt;

  // ---------------------------------------------------------------- offers
  for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
    if (Ways[m]) begin : gen_way
      piece_t offer;
      via_slice #(
        .T  (piece_t),
        .Ram(1'b1)
      ) u_offer (
        .clk_i,
        .rst_ni,
        .s_i      ({piece_i[m].len, piece_i[m].place[Width-1:0]}),
        .s_valid_i(piece_valid_i[m]),
        .s_ready_o(piece_ready_o[m]),
        .m_o      (offer),
        .m_valid_o(req[m]),
        .m_ready_i(gnt_i[m] && ack)
      );
      assign req_len[m]   = offer.len;
      assign req_place[m] = offer.place;
    end else begin : gen_none
      assign piece_ready_o[m] = 1'b0;
      assign req[m] = 1'b0;
      assign req_len[m] = '0;
      assign req_place[m] = '0;
    end
  end

  // ---------------------------------------------------------------- grant
  // Whoever goes first has what it has freed of the window a little later than the window: others would take it.
  assign ack = slice_ready && owner_room && (Far || below);
  assign req_o = Far ? req & (first_i | {NumMgr{below}}) : req;
  assign req_len_o = req_len;
  assign ack_o = ack;

  always_comb begin
    ax = '0;
    long_gnt = 1'b0;
    for (int unsigned m = 0; m < NumMgr; m++) begin
      if (gnt_i[m]) begin
        ax.addr |= AddrW'(req_place[m]) << BeatLog2;
        ax.len |= req_len[m];
        if (!Far) long_gnt |= req_len[m] >= 8'(WindowLong);
      end
    end
    ax.size  = 3'(BeatLog2);
    ax.burst = BurstIncr;
  end

  via_slice #(
    .T  (axi_ax_t),
    .Ram(Far)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ax),
    .s_valid_i(gnt_any_i && ack),
    .s_ready_o(slice_ready),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  // ---------------------------------------------------------------- what is under way
  logic owed;
  via_fifo #(
    .T    (logic [NumMgr-1:0]),
    .Depth(OwnerDepth)
  ) u_owner (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (gnt_i),
    .s_valid_i(gnt_any_i && ack),
    .s_ready_o(owner_room),
    .m_o      (owner_o),
    .m_valid_o(owed),
    .m_ready_i(back_valid_i && back_last_i),
    .count_o  ()
  );

  // Beats requested and not delivered.
  localparam int unsigned Most = Far ? 16 * 255 : Window;
  via_window #(
    .Most(Most)
  ) u_window (
    .clk_i,
    .rst_ni,
    .window_i  ($clog2(Most + 1)'(Far ? 32'({window_i, 4'h0}) : Window)),
    .grant_i   (gnt_any_i && ack),
    .len_i     (ax.len),
    .long_i    (long_gnt),
    .back_i    (back_valid_i),
    .back_len_i('0),
    .below_o   (below)
  );

  if (Far) begin : gen_far
    always_ff @(posedge clk_i) first_o <= rst_ni && ((req & first_i) != '0 || first_o && m_ar_valid_o);
  end else begin : gen_near
    assign first_o = 1'b0;
  end

  assign still_o = ~|req && !m_ar_valid_o && !first_o;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!back_valid_i || owed)
      else $error("a target sends a beat that nobody requested");
    end
  end
`endif

endmodule
