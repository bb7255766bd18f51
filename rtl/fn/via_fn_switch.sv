// SPDX-License-Identifier: Apache-2.0
//
// Connects the user side of each function to nothing, to the board's port of the function, or to stream 0 of a slot, as its registers say
// (fn_ctrl_t), and the disk's memory port to the MMU of a slot.
//
//   function tx ──> via_skid ──> via_fn_src ──┬──> board
//                                             └──> via_fn_join ──> slot
//   board ──> via_skid ──> via_fn_src ──┬──> via_fn_join ──> function rx
//   slot ──> via_fn_hold ───────────────┘
//
// Throughput: one beat a cycle for every function each way. Latency: one cycle each way, two for a change of a connection. Order: kept. Of
// several functions that request one slot the one with the lowest number gets it; the others are connected to nothing. A connection may
// change at any time, also by the isolation of the slot: an open message is ended with `last` (a beat of one byte), and the rest of it is
// dropped. What a function without a connection sends is dropped. The disk gets one response for each message it sends, if need be a
// substitute of one byte (via_fn_debt).
// Misuse: if a function is disconnected from a slot whose app still works on its messages, the app's output goes to whatever the slot is
// connected to next: reset the slot first.

module via_fn_switch
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumUser = FnInput,  // functions with a user side, from 1
  parameter int unsigned Disk    = FnBlk  // the one that is owed a response for each message
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  fn_ctrl_t                ctrl_i         [NumUser:1],     // from the registers: kind of connection, slot
  input  logic     [   NumUser:1] core_rst_ni,                    // reset of the function
  output logic     [   NumUser:1] attached_o,                     // level: connected to a slot or the board
  // functions
  input  strm_t                   tx_i           [NumUser:1],
  input  logic     [   NumUser:1] tx_valid_i,
  output logic     [   NumUser:1] tx_ready_o,
  output strm_t                   rx_o           [NumUser:1],
  output logic     [   NumUser:1] rx_valid_o,
  input  logic     [   NumUser:1] rx_ready_i,
  // the board's ports
  output strm_t                   brd_tx_o       [NumUser:1],
  output logic     [   NumUser:1] brd_tx_valid_o,
  input  logic     [   NumUser:1] brd_tx_ready_i,
  input  strm_t                   brd_rx_i       [NumUser:1],
  input  logic     [   NumUser:1] brd_rx_valid_i,
  output logic     [   NumUser:1] brd_rx_ready_o,
  // slots: stream 0
  input  logic     [NumSlots-1:0] slot_cut_i,                     // level: the slot is isolated
  output logic     [NumSlots-1:0] slot_on_o,                      // level: stream 0 belongs to a function, not to the movers
  output logic     [     FnW-1:0] slot_fn_o      [ NumSlots],     // level: function that its output goes to; 0 = drop it
  output strm_t                   slot_tx_o      [ NumSlots],
  output logic     [NumSlots-1:0] slot_tx_valid_o,
  input  logic     [NumSlots-1:0] slot_tx_ready_i,
  input  strm_t                   slot_rx_i      [ NumSlots],
  input  logic     [NumSlots-1:0] slot_rx_valid_i,
  output logic     [NumSlots-1:0] slot_rx_ready_o,
  input  logic     [     FnW-1:0] slot_rx_fn_i   [ NumSlots],     // value of slot_fn_o that holds for this beat
  // [0] messages accepted from the function, [1] delivered to it, [2] cut short
  output logic     [        31:0] count_o        [NumUser:1][3],  // counters, wrapping
  output logic                    still_o,                        // nothing moves unless an input changes
  output logic                    idle_o                          // level: no beat is held, no message is open
);

  localparam bit NumUserOk = param_in("via_fn_switch NumUser", NumUser, 1, NumFn);
  localparam bit DiskOk = param_in("via_fn_switch Disk", Disk, 1, NumFn);

  // Destination of a function: 0 none, 1 board, 2 + s slot s.
  localparam int unsigned DstW = $clog2(NumSlots + 2);
  localparam logic [DstW-1:0] ToBoard = DstW'(1);
  function automatic logic [DstW-1:0] to_slot(input int unsigned s);
    return DstW'(s + 2);
  endfunction

  // ---------------------------------------------------------------- connections
  logic [DstW-1:0] want[NumUser:1], want_q[NumUser:1], dst[NumUser:1];
  logic [NumSlots-1:0] on, on_q;
  logic [FnW-1:0] fn[NumSlots], fn_q[NumSlots];
  logic [NumUser:1] core_q;
  logic change;
  logic [NumUser:1] asks[NumSlots], gets[NumSlots];

  always_comb begin
    for (int unsigned f = 1; f <= NumUser; f++) want[f] = (ctrl_i[f].kind == AttachBoard) ? ToBoard : '0;
    for (int unsigned s = 0; s < NumSlots; s++) begin
      for (int unsigned f = 1; f <= NumUser; f++) asks[s][f] = ctrl_i[f].kind == AttachSlot && 32'(ctrl_i[f].slot) == s;
      // The lowest bit set.
      gets[s] = asks[s] & ~(asks[s] - 1'b1);
      on[s]   = asks[s] != '0;
      fn[s]   = '0;
      for (int unsigned f = 1; f <= NumUser; f++) begin
        if (gets[s][f] && !slot_cut_i[s]) want[f] |= to_slot(s);
        // During a reset of the disk its messages still arrive there: via_fn_debt has to count them.
        if (gets[s][f] && !slot_cut_i[s] && (core_rst_ni[f] || f == Disk)) fn[s] |= FnW'(f);
      end
    end
    change = on != on_q || core_rst_ni != core_q;
    for (int unsigned f = 1; f <= NumUser; f++) change |= want[f] != want_q[f];
    for (int unsigned s = 0; s < NumSlots; s++) change |= fn[s] != fn_q[s];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int unsigned f = 1; f <= NumUser; f++) want_q[f] <= '0;
      for (int unsigned s = 0; s < NumSlots; s++) fn_q[s] <= '0;
      on_q   <= '0;
      core_q <= '0;
    end else begin
      want_q <= want;
      fn_q   <= fn;
      on_q   <= on;
      core_q <= core_rst_ni;
    end
  end
  assign slot_on_o = on_q;
  assign slot_fn_o = fn_q;

  // ---------------------------------------------------------------- to the user side
  strm_t in[NumUser:1];
  logic [NumUser:1] in_valid, in_ready, src_valid, src_ready, src_still, begins, tx_cut, brd_ready, brd_still, brd_idle;
  logic [NumSlots-1:0] slot_still, slot_idle;
  logic [NumUser-1:0] slot_sel[NumSlots], slot_ready[NumSlots];
  strm_t tx[NumUser];  // as an input of via_fn_join
  logic [NumUser-1:0] tx_valid;

  for (genvar f = 1; f <= NumUser; f++) begin : gen_tx
    // The buffer is emptied during a reset of the function: via_fn_src then accepts and drops everything.
    via_skid #(
      .T(strm_t)
    ) u_in (
      .clk_i,
      .rst_ni,
      .s_i      (tx_i[f]),
      .s_valid_i(tx_valid_i[f]),
      .s_ready_o(tx_ready_o[f]),
      .m_o      (in[f]),
      .m_valid_o(in_valid[f]),
      .m_ready_i(in_ready[f])
    );
    via_fn_src #(
      .DstW(DstW)
    ) u_src (
      .clk_i,
      .rst_ni,
      .cut_i    (!core_rst_ni[f]),
      .dst_i    (want_q[f]),
      .dst_o    (dst[f]),
      .s_valid_i(in_valid[f]),
      .s_last_i (in[f].last),
      .s_ready_o(in_ready[f]),
      .m_valid_o(src_valid[f]),
      .m_ready_i(src_ready[f]),
      .open_o   (),
      .begin_o  (begins[f]),
      .cut_o    (tx_cut[f]),
      .still_o  (src_still[f])
    );
    // In step with dst[f].
    always_ff @(posedge clk_i) attached_o[f] <= rst_ni && want_q[f] != '0;
    assign tx[f-1] = in[f];
    assign tx_valid[f-1] = src_valid[f];

    strm_t brd_tx[1];
    assign brd_tx[0] = in[f];
    via_fn_join #(
      .N    (1),
      .Slice(1'b0)
    ) u_board (
      .clk_i,
      .rst_ni,
      .sel_i    (dst[f] == ToBoard && core_rst_ni[f]),
      .s_i      (brd_tx),
      .s_valid_i(src_valid[f]),
      .s_ready_o(brd_ready[f]),
      .m_o      (brd_tx_o[f]),
      .m_valid_o(brd_tx_valid_o[f]),
      .m_ready_i(brd_tx_ready_i[f]),
      .beat_o   (),
      .last_o   (),
      .cut_o    (),
      .still_o  (brd_still[f]),
      .idle_o   (brd_idle[f])
    );

    always_comb begin
      src_ready[f] = brd_ready[f];
      for (int unsigned s = 0; s < NumSlots; s++) if (slot_ready[s][f-1]) src_ready[f] = 1'b1;
    end
  end

  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    always_comb for (int unsigned f = 1; f <= NumUser; f++) slot_sel[s][f-1] = dst[f] == to_slot(s) && core_rst_ni[f];
    via_fn_join #(
      .N    (NumUser),
      .Slice(1'b0)
    ) u_slot (
      .clk_i,
      .rst_ni,
      .sel_i    (slot_sel[s]),
      .s_i      (tx),
      .s_valid_i(tx_valid),
      .s_ready_o(slot_ready[s]),
      .m_o      (slot_tx_o[s]),
      .m_valid_o(slot_tx_valid_o[s]),
      .m_ready_i(slot_tx_ready_i[s]),
      .beat_o   (),
      .last_o   (),
      .cut_o    (),
      .still_o  (slot_still[s]),
      .idle_o   (slot_idle[s])
    );
  end

  // ---------------------------------------------------------------- from the user side
  // Sources of a function: slots, board, and substitutes for lost responses.
  localparam int unsigned NumSrc = NumSlots + 2;
  localparam int unsigned Board = NumSlots;
  localparam int unsigned MadeUp = NumSlots + 1;

  logic [NumUser:1] brd_in_valid, brd_src_valid, brd_src_ready, brd_src_still, rx_ends, rx_cut, rx_still, rx_idle, debt_still;
  logic [NumSlots-1:0] from_slot[NumUser:1], from_slot_ready[NumUser:1];
  strm_t brd_rx[NumUser:1];
  strm_t app[NumSlots];
  logic [NumUser:1] app_to[NumSlots];
  logic [NumSlots-1:0] app_valid, app_ready, app_still;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_app
    via_fn_hold #(
      .NumDst(NumUser),
      .DstW  (FnW)
    ) u_hold (
      .clk_i,
      .rst_ni,
      .s_i      (slot_rx_i[s]),
      .s_dst_i  (slot_rx_fn_i[s]),
      .s_valid_i(slot_rx_valid_i[s]),
      .s_ready_o(slot_rx_ready_o[s]),
      .m_o      (app[s]),
      .m_to_o   (app_to[s]),
      .m_valid_o(app_valid[s]),
      .m_ready_i(app_ready[s]),
      .still_o  (app_still[s])
    );
  end

  for (genvar f = 1; f <= NumUser; f++) begin : gen_rx
    strm_t rx[NumSrc];
    logic [NumSrc-1:0] sel, sel_real, valid, ready;
    logic brd_in_ready, brd_on, lost, stale, pass;

    via_skid #(
      .T(strm_t)
    ) u_in (
      .clk_i,
      .rst_ni,
      .s_i      (brd_rx_i[f]),
      .s_valid_i(brd_rx_valid_i[f]),
      .s_ready_o(brd_rx_ready_o[f]),
      .m_o      (brd_rx[f]),
      .m_valid_o(brd_in_valid[f]),
      .m_ready_i(brd_in_ready)
    );
    via_fn_src #(
      .DstW(1)
    ) u_src (
      .clk_i,
      .rst_ni,
      .cut_i    (1'b0),
      .dst_i    (want_q[f] == ToBoard && (core_rst_ni[f] || f == Disk)),
      .dst_o    (brd_on),
      .s_valid_i(brd_in_valid[f]),
      .s_last_i (brd_rx[f].last),
      .s_ready_o(brd_in_ready),
      .m_valid_o(brd_src_valid[f]),
      .m_ready_i(brd_src_ready[f]),
      .open_o   (),
      .begin_o  (),
      .cut_o    (),
      .still_o  (brd_src_still[f])
    );

    for (genvar s = 0; s < NumSlots; s++) begin : gen_from
      assign from_slot[f][s] = app_to[s][f];
      assign from_slot_ready[f][s] = from_slot[f][s] && (stale || ready[s]);
      assign rx[s] = app[s];
      assign valid[s] = app_valid[s];
    end
    assign brd_src_ready[f] = stale || ready[Board];
    assign rx[Board] = brd_rx[f];
    assign valid[Board] = brd_src_valid[f];
    assign rx[MadeUp] = '{id: '0, last: 1'b1, keep: StrbW'(1), data: '0};
    assign valid[MadeUp] = 1'b1;
    assign sel_real = {1'b0, brd_on, from_slot[f]};
    assign sel = {lost, {(NumSrc - 1) {1'b0}}} | sel_real & {NumSrc{pass}};

    via_fn_join #(
      .N    (NumSrc),
      .Slice(1'b0)
    ) u_join (
      .clk_i,
      .rst_ni   (rst_ni && core_rst_ni[f]),
      .sel_i    (sel),
      .s_i      (rx),
      .s_valid_i(valid),
      .s_ready_o(ready),
      .m_o      (rx_o[f]),
      .m_valid_o(rx_valid_o[f]),
      .m_ready_i(rx_ready_i[f]),
      .beat_o   (),
      .last_o   (rx_ends[f]),
      .cut_o    (rx_cut[f]),
      .still_o  (rx_still[f]),
      .idle_o   (rx_idle[f])
    );

    if (f == Disk) begin : gen_debt
      logic drop;
      always_comb begin
        drop = brd_on && brd_src_valid[f] && brd_rx[f].last;
        for (int unsigned s = 0; s < NumSlots; s++) if (from_slot[f][s] && app_valid[s] && app[s].last) drop = 1'b1;
      end
      via_fn_debt u_debt (
        .clk_i,
        .rst_ni,
        .core_rst_ni(core_rst_ni[f]),
        .gone_i     (dst[f] == '0 || dst[f] != want_q[f]),
        .begin_i    (begins[f]),
        .response_i (rx_ends[f]),
        .drop_i     (stale && drop),
        .lost_o     (lost),
        .stale_o    (stale),
        .pass_o     (pass),
        .still_o    (debt_still[f])
      );
    end else begin : gen_free
      assign {lost, stale} = '0;
      // One cycle longer than the reset, as its effect reaches the slots a cycle later.
      assign pass = core_rst_ni[f] && core_q[f];
      assign debt_still[f] = 1'b1;
    end
  end

  always_comb begin
    app_ready = '0;
    for (int unsigned f = 1; f <= NumUser; f++) app_ready |= from_slot_ready[f];
  end

  // ---------------------------------------------------------------- counters, one cycle late
  logic [31:0] count_q[NumUser:1][3];
  logic [NumUser:1] begun_q, ended_q, rx_cut_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {begun_q, ended_q, rx_cut_q} <= '0;
    else {begun_q, ended_q, rx_cut_q} <= {begins, rx_ends, rx_cut};
  end
  for (genvar f = 1; f <= NumUser; f++) begin : gen_count
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        for (int unsigned i = 0; i < 3; i++) count_q[f][i] <= '0;
      end else begin
        if (begun_q[f]) count_q[f][0] <= count_q[f][0] + 1'b1;
        if (ended_q[f]) count_q[f][1] <= count_q[f][1] + 1'b1;
        // tx_cut is one cycle late, too.
        if (tx_cut[f] || rx_cut_q[f]) count_q[f][2] <= count_q[f][2] + ((tx_cut[f] && rx_cut_q[f]) ? 32'd2 : 32'd1);
      end
    end
  end
  assign count_o = count_q;

  // Collected in two steps: some of these signals pass through several blocks.
  localparam int unsigned Stills = 5 * NumUser + 2 * NumSlots;
  logic [Stills-1:0] still_q;
  logic quiet_q, same_q;
  always_ff @(posedge clk_i) begin
    still_q <= {src_still, brd_still, slot_still, brd_src_still, rx_still, debt_still, app_still};
    same_q  <= !change;
    quiet_q <= {brd_rx_valid_i & brd_rx_ready_o, tx_valid_i & tx_ready_o, begun_q, ended_q, rx_cut_q} == '0;
    still_o <= &still_q && quiet_q && same_q;
    idle_o  <= &{brd_idle, slot_idle, rx_idle};
  end

endmodule
