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
  output logic                 still_o,               // nothing moves unless something is offered, or another input changes
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
  localparam int unsigned PlaceW = 52 - BeatLog2;

  // ---------------------------------------------------------------- managers
  logic [NumSub-1:0] offered[NumMgr], granted[NumMgr], cut[NumMgr];
  logic [PlaceW-1:0] offer[NumMgr][NumSub];
  logic [7:0] offer_len[NumMgr][NumSub];
  logic [NumSub-1:0] store[NumMgr];  // a beat of this target is for this manager
  logic [DataW+1:0] back[NumSub];  // response and data of a beat
  logic [NumMgr-1:0] mgr_still, mgr_idle;
  always_comb for (int unsigned t = 0; t < NumSub; t++) back[t] = {m_r_i[t].resp, m_r_i[t].data};

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
      .piece_len_o  (offer_len[m]),
      .piece_valid_o(offered[m]),
      .piece_ready_i(granted[m]),
      .cut_i        (cut[m]),
      .back_i       (back),
      .back_valid_i (store[m]),
      .still_o      (mgr_still[m]),
      .idle_o       (mgr_idle[m])
    );
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
        if (any && gnt[m]) begin
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
    assign sends[t] = m_ar_valid_o[t];

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
  assign still_o = &mgr_still && ~|sends;
  assign idle_o = &mgr_idle && ~|m_ar_valid_o;

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
