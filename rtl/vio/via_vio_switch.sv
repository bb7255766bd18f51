// SPDX-License-Identifier: Apache-2.0
//
// Connects any source of streams to any sink: streams of slots, user sides of functions, and ports of the board.
//
//   outputs of apps ───┐                                       ┌──> inputs of apps, beside the movers (via_slot_port)
//   functions, tx ─────┼─> via_vio_source   via_vio_sink ──────┼──> functions, rx
//   board, rx ─────────┘        └── every beat to all sinks that take it ──┴──> board, tx
//
// Each sink takes one source, so nothing is interleaved; a source that several sinks take goes to all of them (a tee).
//
//   sink                 its source
//   input of an app      the function attached to this stream (ctrl_i), else the route set for it: output of an app, port of the board
//   function             as attached: output of an app, or the board's port of the function
//   port of the board    the route set for it (output of an app), else the function attached to the port
//
// An attachment takes effect at once: an open message is ended with `last` by a beat of one zero byte. A route (route_i) waits for the end of
// the message unless told otherwise, and is removed when a function is attached to its sink, and when the slot at either end is isolated, so
// that it never joins the next app there.
// Of several functions attached to one stream the one with the lowest number has it; the others are connected to nothing.
//
// Throughput: one beat a cycle for every source and sink. Latency: one cycle for beats; what is set takes effect within six, if nothing is
// in flight. Order: kept. What a function or the board sends without a sink is dropped; what an app sends without one is for its mover.
// What is sent to an isolated slot, or to a function in reset, is dropped.
// Misuse: a stream, slot or function that the card does not have, as a source, is none; as a sink, it is ignored. A function that is
// disconnected from a slot whose app still works on its messages: the app's output goes to what the slot is connected to next.

module via_vio_switch
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter logic [NumFn:0] FnMask = functions_of(FnBuilt),  // functions that the card has
  localparam int unsigned NumUser = FnInput,  // functions with a user side, if they are there
  localparam int unsigned NumApp = NumSlots * VioStreams  // streams of slots; stream k of slot s is number s * VioStreams + k
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  // registers
  input  vio_route_t                route_i,                     // route to be set; its sink is also the one that state_o is about
  input  logic                      route_set_i,                 // pulse
  output vio_state_t                state_o,                     // three cycles later; pending until then
  input  fn_ctrl_t                  ctrl_i         [NumUser:1],  // attachment: kind, slot, stream
  output logic       [   NumUser:1] attached_o,                  // level: connected to a slot or the board
  output logic       [         1:0] short_o        [NumUser:1],  // messages from and to the function cut short in an earlier cycle
  // functions
  input  logic       [   NumUser:1] core_rst_ni,                 // reset of the function
  input  strm_t                     tx_i           [NumUser:1],
  input  logic       [   NumUser:1] tx_valid_i,
  output logic       [   NumUser:1] tx_ready_o,
  output strm_t                     rx_o           [NumUser:1],
  output logic       [   NumUser:1] rx_valid_o,
  input  logic       [   NumUser:1] rx_ready_i,
  output logic       [   NumUser:1] gone_o,                      // level: no response comes any more to what the function sent until now
  // the board's ports
  output strm_t                     brd_tx_o       [NumUser:1],
  output logic       [   NumUser:1] brd_tx_valid_o,
  input  logic       [   NumUser:1] brd_tx_ready_i,
  input  strm_t                     brd_rx_i       [NumUser:1],
  input  logic       [   NumUser:1] brd_rx_valid_i,
  output logic       [   NumUser:1] brd_rx_ready_o,
  // slots
  input  logic       [NumSlots-1:0] slot_cut_i,                  // level: the slot is isolated
  output logic       [  NumApp-1:0] app_in_on_o,                 // level: the input belongs to the switch, not to its mover
  output logic       [  NumApp-1:0] app_out_on_o,                // level: so does the output
  output strm_t                     app_in_o       [   NumApp],
  output logic       [  NumApp-1:0] app_in_valid_o,
  input  logic       [  NumApp-1:0] app_in_ready_i,
  input  strm_t                     app_out_i      [   NumApp],
  input  logic       [  NumApp-1:0] app_out_valid_i,
  output logic       [  NumApp-1:0] app_out_ready_o,
  output logic                      still_o,                     // nothing moves unless an input changes
  output logic                      idle_o                       // level: no beat is held, no message is open
);

  // Sources and sinks have the same numbers: outputs and inputs of apps, functions (tx and rx), the board's ports.
  localparam int unsigned Fn = NumApp, Board = NumApp + NumUser, NumEnd = NumApp + 2 * NumUser;
  // Ports of the board that slots can use themselves: Ethernet and UART.
  localparam logic [NumUser:1] Shared = NumUser'(1 << (FnNet - 1) | 1 << (FnConsole - 1));
  localparam int unsigned SelW = $clog2(NumEnd + 1);

  function automatic int unsigned fn_end(input int unsigned f);
    return Fn + f - 1;
  endfunction
  function automatic int unsigned board_end(input int unsigned f);
    return Board + f - 1;
  endfunction
  function automatic bit present(input int unsigned e);
    return e < NumApp || e < Board && FnMask[e-Fn+1] || e >= Board && FnMask[e-Board+1];
  endfunction
  function automatic bit shared(input int unsigned e);
    return e >= Board && Shared[e-Board+1];
  endfunction
  /// Whether a sink can take a source.
  function automatic bit reaches(input int unsigned source, input int unsigned sink);
    if (!present(source) || !present(sink)) return 1'b0;
    if (sink < NumApp) return source < Board || shared(source);
    if (sink < Board) return source < NumApp || source - Board == sink - Fn;
    return source < NumApp && shared(sink) || source >= Fn && source < Board && source - Fn == sink - Board;
  endfunction
  /// Sources of a sink, and the place of one among them, from 1.
  function automatic int unsigned sources_of(input int unsigned sink);
    sources_of = 0;
    for (int unsigned e = 0; e < NumEnd; e++) if (reaches(e, sink)) sources_of++;
  endfunction
  function automatic int unsigned place_of(input int unsigned source, input int unsigned sink);
    place_of = 1;
    for (int unsigned e = 0; e < source; e++) if (reaches(e, sink)) place_of++;
  endfunction

  /// Number of the end that a register names, from 1; 0 if there is none.
  function automatic logic [SelW-1:0] number_of(input vio_end_t at);
    number_of = '0;
    for (int unsigned s = 0; s < NumSlots; s++) begin
      for (int unsigned k = 0; k < VioStreams; k++) begin
        if (at.kind == VioStream && 32'(at.slot) == s && 32'(at.index) == k) number_of |= SelW'(s * VioStreams + k + 1);
      end
    end
    for (int unsigned f = 1; f <= NumUser; f++) begin
      if (at.kind == VioBoard && 32'(at.index) == f && Shared[f] && FnMask[f]) number_of |= SelW'(board_end(f) + 1);
    end
  endfunction
  function automatic vio_end_t end_of(input int unsigned e);
    if (e < NumApp) return '{kind: VioStream, slot: 4'(e / VioStreams), index: 4'(e % VioStreams)};
    if (e < Board) return '{kind: VioFn, slot: '0, index: 4'(e - Fn + 1)};
    return '{kind: VioBoard, slot: '0, index: 4'(e - Board + 1)};
  endfunction

  // By sink, a bit for each source.
  logic [NumEnd-1:0] sink_takes[NumEnd], sink_hold[NumEnd], sink_drain[NumEnd], sink_short[NumEnd];

  // ---------------------------------------------------------------- what each sink is to take
  // Functions that want a stream.
  logic [NumUser:1] asks[NumApp], asks_q[NumApp];
  // Routes: a register for each sink that can have one; number of the source, from 1.
  vio_route_t set_q;
  logic set_valid_q, set_go_q, now_q;
  logic [SelW-1:0] sink_q, source_q;
  logic [SelW-1:0] route_q[NumEnd];
  logic [NumEnd-1:0] now_sink_q;
  logic [NumEnd-1:0] isolated;  // by end: its slot is

  always_comb begin
    isolated = '0;
    for (int unsigned e = 0; e < NumApp; e++) isolated[e] = slot_cut_i[e/VioStreams];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      set_valid_q <= 1'b0;
      set_go_q    <= 1'b0;
    end else begin
      set_valid_q <= route_set_i;
      set_go_q    <= set_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    set_q    <= route_i;
    sink_q   <= number_of(set_q.sink);
    source_q <= number_of(set_q.source);
    now_q    <= set_q.now;
  end

  for (genvar e = 0; e < NumEnd; e++) begin : gen_route
    if (e < NumApp || shared(e) && present(e)) begin : gen_set
      logic gone;
      // A function takes the input, or the slot at either end is isolated.
      always_comb begin
        gone = isolated[e];
        if (e < NumApp) gone |= asks_q[e%NumApp] != '0;
        for (int unsigned a = 0; a < NumApp; a++) if (route_q[e] == SelW'(a + 1) && isolated[a]) gone = 1'b1;
      end
      always_ff @(posedge clk_i) begin
        if (!rst_ni || gone) begin
          route_q[e]    <= '0;
          now_sink_q[e] <= 1'b0;
        end else if (set_go_q && sink_q == SelW'(e + 1)) begin
          // From port to port of the board there is no route.
          route_q[e]    <= (e >= Board && 32'(source_q) > NumApp) ? '0 : source_q;
          now_sink_q[e] <= now_q;
        end
      end
    end else begin : gen_none
      assign route_q[e] = '0;
      assign now_sink_q[e] = 1'b0;
    end
  end

  // Attachments: stream of the slot, if the function has it.
  logic [NumUser:1] gets[NumApp], board, board_q;
  logic [SelW-1:0] want[NumEnd], want_q[NumEnd];
  logic [NumEnd-1:0] now, now_q2;  // changes within a message
  logic [NumUser:1] attached;

  always_comb begin
    for (int unsigned e = 0; e < NumEnd; e++) want[e] = '0;
    now = now_sink_q;
    for (int unsigned a = 0; a < NumApp; a++) begin
      for (int unsigned f = 1; f <= NumUser; f++) begin
        asks[a][f] = FnMask[f] && ctrl_i[f].kind == AttachSlot && 32'(ctrl_i[f].slot) == a / VioStreams &&
            32'(ctrl_i[f].stream) == a % VioStreams;
      end
      // The lowest bit set.
      gets[a] = isolated[a] ? '0 : asks_q[a] & ~(asks_q[a] - 1'b1);
      want[a] = (asks_q[a] != '0) ? '0 : route_q[a];
      for (int unsigned f = 1; f <= NumUser; f++) begin
        if (gets[a][f]) want[a] |= SelW'(fn_end(f) + 1);
        if (gets[a][f]) want[fn_end(f)] |= SelW'(a + 1);
        now[a] |= gets[a][f] || sink_takes[a][fn_end(f)];
      end
    end
    for (int unsigned f = 1; f <= NumUser; f++) begin
      board[f] = ctrl_i[f].kind == AttachBoard;
      if (board_q[f]) want[fn_end(f)] = SelW'(board_end(f) + 1);
      attached[f] = FnMask[f] && want[fn_end(f)] != '0;
      want[board_end(f)] = (route_q[board_end(f)] != '0) ? route_q[board_end(f)] : board_q[f] ? SelW'(fn_end(f) + 1) : '0;
      now[fn_end(f)] = 1'b1;
      now[board_end(f)] |= sink_takes[board_end(f)][fn_end(f)];
    end
  end
  // Outputs of apps that a sink is to take.
  logic [NumApp-1:0] wanted;
  always_comb begin
    wanted = '0;
    for (int unsigned a = 0; a < NumApp; a++) begin
      for (int unsigned e = 0; e < NumEnd; e++) wanted[a] |= want_q[e] == SelW'(a + 1);
    end
  end
  always_ff @(posedge clk_i) begin
    asks_q     <= asks;
    board_q    <= board;
    want_q     <= want;
    now_q2     <= now;
    attached_o <= attached & {NumUser{rst_ni}};
  end

  // ---------------------------------------------------------------- sources
  strm_t src[NumEnd];
  logic [NumEnd-1:0] src_valid, src_cut, src_fresh, src_ready, go, first, src_still;
  // By source, a bit for each sink.
  logic [NumEnd-1:0] takes[NumEnd], hold[NumEnd], drain[NumEnd], shorts[NumEnd];

  for (genvar a = 0; a < NumApp; a++) begin : gen_app_out
    assign src[a] = app_out_i[a];
    assign src_valid[a] = app_out_valid_i[a];
    assign src_cut[a] = isolated[a];
    // The slot drops the rest of a message of which no sink takes more (via_vio_edge).
    assign src_fresh[a] = !app_out_on_o[a];
    assign app_out_ready_o[a] = src_ready[a];
  end
  for (genvar f = 1; f <= NumUser; f++) begin : gen_user_out
    assign src[fn_end(f)] = tx_i[f];
    assign src_valid[fn_end(f)] = tx_valid_i[f];
    assign src_cut[fn_end(f)] = !core_rst_ni[f];
    assign tx_ready_o[f] = src_ready[fn_end(f)];
    assign src[board_end(f)] = brd_rx_i[f];
    assign src_valid[board_end(f)] = brd_rx_valid_i[f];
    assign src_cut[board_end(f)] = 1'b0;
    assign {src_fresh[fn_end(f)], src_fresh[board_end(f)]} = '0;
    assign brd_rx_ready_o[f] = src_ready[board_end(f)];
  end

  for (genvar e = 0; e < NumEnd; e++) begin : gen_source
    if (present(e)) begin : gen_there
      via_vio_source #(
        .N    (NumEnd),
        .Waits(e < NumApp)
      ) u_source (
        .clk_i,
        .rst_ni,
        .cut_i  (src_cut[e]),
        .fresh_i(src_fresh[e]),
        .valid_i(src_valid[e]),
        .last_i (src[e].last),
        .ready_o(src_ready[e]),
        .takes_i(takes[e]),
        .hold_i (hold[e]),
        .drain_i(drain[e]),
        .go_o   (go[e]),
        .first_o(first[e]),
        .still_o(src_still[e])
      );
    end else begin : gen_none
      assign {src_ready[e], src_still[e], first[e]} = '1;  // what arrives is dropped
      assign go[e] = 1'b0;
    end
  end

  // ---------------------------------------------------------------- sinks
  logic [NumUser:1] gone;  // no response comes any more
  strm_t snk[NumEnd];
  logic [NumEnd-1:0] snk_valid, snk_ready, snk_cut, snk_on, snk_pending, snk_still, snk_idle;

  for (genvar a = 0; a < NumApp; a++) begin : gen_app_in
    assign app_in_o[a] = snk[a];
    assign app_in_valid_o[a] = snk_valid[a];
    assign snk_ready[a] = app_in_ready_i[a];
    assign snk_cut[a] = isolated[a];
  end
  for (genvar f = 1; f <= NumUser; f++) begin : gen_user_in
    assign rx_o[f] = snk[fn_end(f)];
    assign rx_valid_o[f] = snk_valid[fn_end(f)];
    assign snk_ready[fn_end(f)] = rx_ready_i[f];
    // To a disk in reset messages still come: they are counted there (via_fn_debt). Without a connection it gets no late response.
    assign snk_cut[fn_end(f)] = (f == FnBlk) ? gone[f] : !core_rst_ni[f];
    assign brd_tx_o[f] = snk[board_end(f)];
    assign brd_tx_valid_o[f] = snk_valid[board_end(f)];
    assign snk_ready[board_end(f)] = brd_tx_ready_i[f];
    assign snk_cut[board_end(f)] = 1'b0;
  end

  for (genvar e = 0; e < NumEnd; e++) begin : gen_sink
    localparam int unsigned N = sources_of(e);
    if (N > 0) begin : gen_there
      localparam int unsigned W = $clog2(N + 1);
      strm_t s[N];
      logic [N:1] s_go, s_first, s_cut, s_takes, s_hold, s_drain, s_short;
      logic [W-1:0] wants;
      for (genvar i = 0; i < NumEnd; i++) begin : gen_from
        if (reaches(i, e)) begin : gen_there
          localparam int unsigned P = place_of(i, e);
          assign s[P-1] = src[i];
          assign s_go[P] = go[i];
          assign s_first[P] = first[i];
          assign s_cut[P] = src_cut[i];
          assign sink_takes[e][i] = s_takes[P];
          assign sink_hold[e][i] = s_hold[P];
          assign sink_drain[e][i] = s_drain[P];
          assign sink_short[e][i] = s_short[P];
        end else begin : gen_none
          assign {sink_takes[e][i], sink_hold[e][i], sink_drain[e][i], sink_short[e][i]} = '0;
        end
      end
      always_comb begin
        wants = '0;
        for (int unsigned i = 0; i < NumEnd; i++) if (reaches(i, e) && want[e] == SelW'(i + 1)) wants |= W'(place_of(i, e));
      end
      logic [W-1:0] wants_q;
      always_ff @(posedge clk_i) wants_q <= rst_ni ? wants : '0;
      via_vio_sink #(
        .N(N)
      ) u_sink (
        .clk_i,
        .rst_ni,
        .want_i   (wants_q),
        .now_i    (now_q2[e]),
        .cut_i    (snk_cut[e]),
        .s_i      (s),
        .go_i     (s_go),
        .first_i  (s_first),
        .s_cut_i  (s_cut),
        .takes_o  (s_takes),
        .hold_o   (s_hold),
        .drain_o  (s_drain),
        .short_o  (s_short),
        .on_o     (snk_on[e]),
        .pending_o(snk_pending[e]),
        .m_o      (snk[e]),
        .m_valid_o(snk_valid[e]),
        .m_ready_i(snk_ready[e]),
        .still_o  (snk_still[e]),
        .idle_o   (snk_idle[e])
      );
    end else begin : gen_none
      assign {sink_takes[e], sink_hold[e], sink_drain[e], sink_short[e]} = '0;
      assign {snk_on[e], snk_pending[e], snk_valid[e]} = '0;
      assign {snk_still[e], snk_idle[e]} = '1;
      assign snk[e] = '0;
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < NumEnd; i++) begin
      for (int unsigned e = 0; e < NumEnd; e++) begin
        takes[i][e]  = sink_takes[e][i];
        hold[i][e]   = sink_hold[e][i];
        drain[i][e]  = sink_drain[e][i];
        shorts[i][e] = sink_short[e][i];
      end
    end
  end

  // ---------------------------------------------------------------- functions: responses, messages cut short
  always_comb begin
    for (int unsigned f = 1; f <= NumUser; f++) begin
      gone[f] = sink_takes[fn_end(f)] == '0 || sink_drain[fn_end(f)] != '0;
    end
  end
  always_ff @(posedge clk_i) begin
    gone_o <= gone | {NumUser{!rst_ni}};
    for (int unsigned f = 1; f <= NumUser; f++) begin
      short_o[f] <= rst_ni ? 2'(shorts[fn_end(f)] != '0) + 2'(sink_short[fn_end(f)] != '0) : '0;
    end
  end

  // ---------------------------------------------------------------- slots, state
  logic [3:0] stir_q;
  logic stir;
  vio_state_t state;

  always_comb begin
    state = '0;
    for (int unsigned e = 0; e < NumEnd; e++) begin
      if (sink_q == SelW'(e + 1)) begin
        state.pending = snk_pending[e];
        for (int unsigned i = 0; i < NumEnd; i++) if (sink_takes[e][i]) state.source |= end_of(i);
      end
    end
    // What was just set reaches its sink in the fourth cycle, and another sink is looked at in the third.
    state.pending |= stir || stir_q != '0;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      app_in_on_o  <= '0;
      app_out_on_o <= '0;
    end else begin
      app_in_on_o <= snk_on[NumApp-1:0];
      for (int unsigned a = 0; a < NumApp; a++) app_out_on_o[a] <= takes[a] != '0 || wanted[a];
    end
  end
  always_ff @(posedge clk_i) state_o <= state;

  // ---------------------------------------------------------------- activity
  // Collected in two steps: some of these signals pass through several blocks. What is set, an attachment and an isolated slot reach the sinks
  // within four cycles.
  logic [2*NumEnd-1:0] still_q;
  logic [NumSlots-1:0] cut_q;
  always_comb begin
    stir = route_set_i || route_i.sink != set_q.sink || slot_cut_i != cut_q || board != board_q;
    for (int unsigned a = 0; a < NumApp; a++) stir |= asks[a] != asks_q[a];
  end
  always_ff @(posedge clk_i) begin
    cut_q   <= slot_cut_i;
    stir_q  <= {stir_q[2:0], stir || !rst_ni};
    still_q <= {src_still, snk_still};
    still_o <= &still_q && stir_q == '0;
    idle_o  <= &snk_idle;
  end

endmodule
