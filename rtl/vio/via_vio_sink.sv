// SPDX-License-Identifier: Apache-2.0
//
// A sink of via_vio_switch: takes whole messages from one source at a time, and changes to another between two messages.
//
//   beats of all sources ──> multiplexer ──> FIFO ──> m
//   want_i ──> Run ──> Stop ──> Close ──> Run       (the source stops, an open message is ended, the next source is chosen)
//
// Throughput: one beat a cycle. Latency: one cycle for beats; a change of an idle sink takes four cycles, then the new source's first beat
// may come. Order: kept. A change waits for the end of the message (the app that sends it decides when that is), unless `now_i` is high or
// the source is cut off: then the message is ended by a beat of one zero byte with `last`, and the rest of it is not taken. A message of
// which the beginning went elsewhere is not taken either. What was taken before a change still leaves.
// With `cut_i` everything held and everything that comes is dropped, until a message begins after it.
// Misuse: a sink that does not accept stops its source, and with it the source's other sinks.

module via_vio_sink
  import via_pkg::*;
#(
  parameter  int unsigned N    = 2,             // sources
  localparam int unsigned SelW = $clog2(N + 1)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic  [SelW-1:0] want_i,        // level: source to take; 0 = none
  input  logic             now_i,         // level: change within a message, too
  input  logic             cut_i,         // level: drop everything
  // sources
  input  strm_t            s_i      [N],
  input  logic  [     N:1] go_i,          // pulse: a beat is sent
  input  logic  [     N:1] first_i,       // level: the next beat is the first of its message
  input  logic  [     N:1] s_cut_i,       // level: the source starts over
  output logic  [     N:1] takes_o,       // level, one-hot: source that is taken
  output logic  [     N:1] hold_o,        // level: the source must not send in the next cycle
  output logic  [     N:1] drain_o,       // level: the source must pause for a cycle after a message
  output logic  [     N:1] short_o,       // pulse: a message of the source was cut short
  output logic             on_o,          // level: a source is taken or to be taken, or something of one is held
  output logic             pending_o,     // level: not the source that is wanted, or something of an earlier one is held
  // sink
  output strm_t            m_o,
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output logic             still_o,       // nothing moves unless an input changes
  output logic             idle_o         // level: nothing is held, no message is open
);

  localparam bit NOk = param_in("via_vio_sink N", N, 1, 63);

  // Beats in the FIFO, and how many of them are for what comes after `hold_o`: a beat in the cycle in which the count exceeds the limit, one in
  // which room_q falls, one in which the source's ready falls, and the one that ends a message. Distributed memory is 32 deep anyway.
  localparam int unsigned Depth = 32, Margin = 4;

  typedef enum logic [1:0] {
    Run,   // takes sel_q, if that is not 0
    Stop,  // the source's ready is low: this cycle or the one before had the last beat
    Close  // takes nothing: ends the open message, if there is one
  } state_e;

  // What is multiplexed: `keep` as the number of bytes behind the first.
  typedef struct packed {
    logic [7:0]          id;
    logic                last;
    logic [BeatLog2-1:0] bytes;
    logic [DataW-1:0]    data;
  } beat_t;

  state_e state_q, state_d;
  logic [SelW-1:0] sel_q, sel_d, from_q;  // from_q: source of the last beat in the FIFO
  logic [N:1] takes_q, takes_d, wants;
  logic open_q, room_q, change, lost, leave, come, push, close;
  logic [7:0] id_q;
  logic [$clog2(Depth+1)-1:0] count;
  logic [$bits(beat_t)-1:0] all[N];
  beat_t beat;
  strm_t entry;

  always_comb for (int unsigned i = 1; i <= N; i++) wants[i] = want_i == SelW'(i);
  assign change = want_i != sel_q;
  assign lost   = open_q && (takes_q & s_cut_i) != '0;
  assign leave  = change && (!open_q || now_i);

  always_comb begin
    state_d = state_q;
    sel_d   = sel_q;
    unique case (state_q)
      Run: if (leave) state_d = Stop;
      Stop: begin
        state_d = leave ? Close : Run;
        if (leave) sel_d = '0;
      end
      default: begin
        if (!open_q || cut_i) begin
          state_d = Run;
          sel_d   = want_i;
        end
      end
    endcase
    // No beat comes in the cycle after this, as the source has stopped itself.
    if (lost) begin
      state_d = Close;
      sel_d   = '0;
    end
    for (int unsigned i = 1; i <= N; i++) takes_d[i] = sel_d == SelW'(i);
  end

  // ---------------------------------------------------------------- sources
  logic ok;
  assign ok = room_q && state_q == Run && !leave && !lost;
  assign takes_o = takes_q;
  // The next source is stopped as well before it is taken, for it may not know yet that there is no space.
  assign hold_o = (takes_q | wants) & {N{!ok}};
  assign drain_o = takes_q & {N{change}};
  assign short_o = takes_q & {N{lost || state_q == Stop && leave && open_q}};

  // ---------------------------------------------------------------- beats
  for (genvar i = 0; i < N; i++) begin : gen_all
    assign all[i] = {s_i[i].id, s_i[i].last, bytes_behind_first(s_i[i].keep), s_i[i].data};
  end
  // Without a source all zeros: nobody's data is in the beat that ends a message.
  via_vio_mux #(
    .W($bits(beat_t)),
    .N(N)
  ) u_mux (
    .clk_i,
    .sel_i(sel_d),
    .s_i  (all),
    .m_o  (beat)
  );
  assign come = (takes_q & go_i) != '0 && (open_q || (takes_q & first_i) != '0);
  assign close = state_q == Close && open_q && room_q;
  assign push = (come || close) && !cut_i;
  assign entry = '{
          id: close ? id_q : beat.id,
          last: close || beat.last,
          keep: keep_behind_first(close ? '0 : beat.bytes),
          data: (close && N == 1) ? beat.data & ~DataW'(8'hff) : beat.data
      };

  via_fifo #(
    .T    (strm_t),
    .Depth(Depth)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i  (cut_i),
    .s_i      (entry),
    .s_valid_i(push),
    .s_ready_o(),
    .m_o,
    .m_valid_o,
    .m_ready_i,
    .count_o  (count)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Run;
      sel_q   <= '0;
      takes_q <= '0;
      open_q  <= 1'b0;
      room_q  <= 1'b1;
      from_q  <= '0;
    end else begin
      state_q <= state_d;
      sel_q   <= sel_d;
      takes_q <= takes_d;
      room_q  <= count <= ($bits(count))'(Depth - Margin) || cut_i;
      if (cut_i) open_q <= 1'b0;
      else if (push) open_q <= !entry.last;
      if (push && !close) from_q <= sel_q;
    end
  end
  always_ff @(posedge clk_i) if (push) id_q <= entry.id;

  // ---------------------------------------------------------------- status
  assign on_o = want_i != '0 || sel_q != '0 || open_q || m_valid_o;
  assign pending_o = change || state_q != Run || m_valid_o && from_q != sel_q;
  assign idle_o = !open_q && !m_valid_o;
  assign still_o = state_d == state_q && ~|{(takes_q & go_i), push, m_valid_o && m_ready_i, cut_i && !idle_o} && room_q == (count <= ($bits(
      count
  ))'(Depth - Margin) || cut_i);

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!push || u_fifo.s_ready_o)
      else $error("a beat came without space for it");
      assert (!come || !open_q || (takes_q & first_i) == '0)
      else $error("a message begins within another");
    end
  end
`endif

endmodule
