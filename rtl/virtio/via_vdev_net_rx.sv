// SPDX-License-Identifier: Apache-2.0
//
// Receive side of the net device: holds a frame until its end, chooses a queue pair, puts the header before it, hands it to the engine.
// Throughput: one beat a cycle into the store and out of it; answers are announced ahead of their data: with mergeable buffers one every second
// cycle, without one every third, if the engine takes them as fast. Latency: five cycles from the last beat. Order: kept.
// Frames of one flow go to one pair: IPv4 by addresses and, for unfragmented TCP and UDP, ports; all others by source address.
// Dropped: frames the filter refuses, shorter than 14 or longer than NetFrameMax bytes, all while `open_i` is low, without mergeable buffers
// those longer than the buffer at hand, and those of a pair whose receive queue is not in use, so that the other pairs' frames do not wait
// until its reset is over. Without a buffer frames wait, and rx_i is held back when the store is full. Source: VIRTIO 1.3, 5.1.6.3 to 5.1.6.5.

module via_vdev_net_rx
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
(
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    merge_i,                   // VIRTIO_NET_F_MRG_RXBUF
  input  logic                    open_i,                    // link and driver are up
  input  logic     [         2:0] pairs_i,
  output logic     [        47:0] dst_o,                     // to the filter
  input  logic                    accept_i,
  input  strm_t                   rx_i,
  input  logic                    rx_valid_i,
  output logic                    rx_ready_o,
  input  logic     [NetPairs-1:0] in_use_i,                  // receive queue of each pair: enabled, not being reset
  input  logic     [NetPairs-1:0] avail_i,
  input  logic     [        31:0] head_wlen_i   [NetPairs],
  input  logic     [        31:0] room_i        [NetPairs],
  output logic     [NetPairs-1:0] short_o,                   // a frame waits for buffers of the pair
  output vq_rsp_t                 rsp_o,
  output logic                    rsp_valid_o,
  input  logic                    rsp_ready_i,
  input  logic     [        15:0] merged_i,
  input  logic                    merged_valid_i,
  output vq_beat_t                wr_o,
  output logic                    wr_valid_o,
  input  logic                    wr_ready_i,
  output logic                    drop_o,                    // a frame is dropped
  output logic                    moving_o,
  output logic                    idle_o
);

  localparam int unsigned Beats = (NetFrameMax + StrbW - 1) / StrbW;
  localparam int unsigned Depth = 1 << $clog2(3 * Beats);
  localparam int unsigned PtrW = $clog2(Depth);
  localparam int unsigned PairW = $clog2(NetPairs);
  localparam int unsigned Outs = 8;  // answers whose data is to be handed over
  localparam int unsigned OutW = $clog2(Outs + 1);
  localparam int unsigned LookBytes = 38;  // up to the ports of IPv4
  localparam int unsigned LookBeats = (LookBytes + StrbW - 1) / StrbW;
  typedef logic [13:0] len_t;
  typedef logic [PtrW:0] count_t;

  // ---------------------------------------------------------------- in: a frame counts when its last beat is stored
  logic [PtrW-1:0] wptr_q;
  count_t held_q, open_q;  // beats of whole frames, of the frame that comes in
  logic first_q, drop_q, drop, take, store, commit, cancel, room, note_room;
  len_t len_q, len;

  assign dst_o = rx_i.data[47:0];
  assign drop = first_q ? !open_i || !accept_i : drop_q;
  assign room = held_q + open_q != count_t'(Depth);
  assign rx_ready_o = drop || room && note_room;
  assign take = rx_valid_i && rx_ready_o;
  assign len = (first_q ? '0 : len_q) + (rx_i.last ? len_t'(keep_bytes(rx_i.keep)) : len_t'(StrbW));
  assign store = take && !drop;
  assign commit = store && rx_i.last && len >= 14'd14 && len <= len_t'(NetFrameMax);
  // The rest of a frame that is already too long is dropped as it comes.
  assign cancel = store && !commit && (rx_i.last || len > len_t'(NetFrameMax));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q  <= '0;
      first_q <= 1'b1;
      open_q  <= '0;
    end else begin
      if (take) first_q <= rx_i.last;
      if (commit || cancel) open_q <= '0;
      else if (store) open_q <= open_q + 1'b1;
      if (cancel) wptr_q <= wptr_q - open_q[PtrW-1:0];
      else if (store) wptr_q <= wptr_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      drop_q <= drop || cancel;
      len_q  <= len;
    end
  end

  // ---------------------------------------------------------------- flow
  logic [LookBeats*DataW-1:0] look_q, look;
  logic [$clog2(LookBeats+1)-1:0] look_at_q;
  always_comb begin
    look = look_q;
    for (int unsigned i = 0; i < LookBeats; i++) begin
      if (look_at_q == ($clog2(LookBeats + 1))'(i)) look[i*DataW+:DataW] = rx_i.data;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) look_at_q <= '0;
    else if (take) begin
      if (rx_i.last) look_at_q <= '0;
      else if (look_at_q != ($clog2(LookBeats + 1))'(LookBeats)) look_at_q <= look_at_q + 1'b1;
    end
  end
  if (LookBeats > 1) begin : gen_look
    always_ff @(posedge clk_i) begin
      if (store) look_q <= look;
    end
  end else begin : gen_no_look
    assign look_q = '0;
  end

  logic [31:0] mix;
  logic [ 7:0] hash;
  logic ip, ports;
  assign ip = len >= 14'd34 && look[12*8+:16] == 16'h0008;
  assign ports = ip && len >= 14'd38 && look[14*8+:8] == 8'h45 && (look[23*8+:8] == 8'd6 || look[23*8+:8] == 8'd17) &&
                 {look[20*8+:6], look[21*8+:8]} == '0 && !look[20*8+5];
  always_comb begin
    mix = look[6*8+:32] ^ {16'h0, look[10*8+:16]};
    if (ip) mix = look[26*8+:32] ^ look[30*8+:32] ^ (ports ? look[34*8+:32] : '0);
  end
  assign hash = mix[31:24] ^ mix[23:16] ^ mix[15:8] ^ mix[7:0];

  // ---------------------------------------------------------------- frames held
  typedef struct packed {
    logic [7:0] hash;
    len_t       len;
  } note_t;
  note_t note;
  logic note_valid, note_pop;
  via_fifo #(
    .T    (note_t),
    .Depth(32)
  ) u_notes (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{hash: hash, len: len}),
    .s_valid_i(commit),
    .s_ready_o(note_room),
    .m_o      (note),
    .m_valid_o(note_valid),
    .m_ready_i(note_pop),
    .count_o  ()
  );

  // The next beat of whole frames stands in the memory's output register.
  logic [PtrW-1:0] rptr_q;
  count_t ready_q;  // beats of whole frames not yet fetched
  logic [DataW-1:0] data;
  logic data_valid_q, fetch, data_pop;
  assign fetch = ready_q != '0 && (!data_valid_q || data_pop);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rptr_q       <= '0;
      ready_q      <= '0;
      held_q       <= '0;
      data_valid_q <= 1'b0;
    end else begin
      if (fetch) rptr_q <= rptr_q + 1'b1;
      if (fetch || data_pop) data_valid_q <= fetch;
      if (commit || fetch) ready_q <= ready_q + (commit ? open_q + 1'b1 : '0) - count_t'(fetch);
      if (commit || data_pop) held_q <= held_q + (commit ? open_q + 1'b1 : '0) - count_t'(data_pop);
    end
  end
  via_ram_sdp #(
    .Width(DataW),
    .Depth(Depth)
  ) u_store (
    .clk_i,
    .we_i   (store),
    .waddr_i(wptr_q),
    .wdata_i(rx_i.data),
    .re_i   (fetch),
    .raddr_i(rptr_q),
    .rdata_o(data)
  );

  // ---------------------------------------------------------------- answers: announced while the data of earlier ones moves
  typedef enum logic [1:0] {
    StWait,
    StAnswer,
    StMerged
  } state_e;
  typedef struct packed {
    logic        drop;
    logic [15:0] buffers;
    len_t        len;
  } out_t;
  state_e state_q;
  out_t out_new, out;
  logic [PairW-1:0] pair, pair_q;
  logic single, single_q, fits, unfit, decide, next, skip, announced, out_push, out_valid, out_pop;
  logic [OutW-1:0] outs;
  len_t answer_len_q;
  logic [31:0] need;

  always_comb begin
    unique case (pairs_i)
      3'd2:    pair = PairW'(note.hash[0]);
      3'd3:    pair = PairW'(note.hash % 8'd3);
      3'd4:    pair = note.hash[1:0];
      default: pair = '0;
    endcase
  end
  assign need   = 32'(note.len) + 32'(NetHeader);
  assign single = !merge_i && avail_i[pair] && head_wlen_i[pair] >= need;
  assign fits   = single || merge_i && room_i[pair] >= need;
  assign unfit  = !in_use_i[pair] || !merge_i && avail_i[pair] && head_wlen_i[pair] < need;

  for (genvar p = 0; p < NetPairs; p++) begin : gen_short
    assign short_o[p] = state_q == StWait && note_valid && pair == PairW'(p) && !fits && !unfit;
  end

  assign rsp_valid_o = state_q == StAnswer;
  assign rsp_o = '{queue: QueueW'({pair_q, 1'b0}), merge: !single_q, len: 32'(answer_len_q) + 32'(NetHeader)};

  // What the engine says of buffers counts again one cycle after it took an answer: just when it says how many that one needed.
  assign announced = state_q == StAnswer && rsp_ready_i && single_q || state_q == StMerged && merged_valid_i;
  // One entry of u_outs is for the answer under way.
  assign decide = note_valid && outs < OutW'(Outs - 1) && (state_q == StWait || state_q == StMerged && merged_valid_i);
  assign next = decide && fits && !unfit;
  assign skip = decide && unfit && state_q == StWait;
  assign out_push = announced || skip;
  assign note_pop = next || skip;
  assign out_new = '{drop: skip, buffers: (state_q == StMerged) ? merged_i : 16'd1, len: skip ? note.len : answer_len_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StWait;
    end else begin
      unique case (state_q)
        StWait:   if (next) state_q <= StAnswer;
        StAnswer: if (rsp_ready_i) state_q <= single_q ? StWait : StMerged;
        StMerged: if (merged_valid_i) state_q <= next ? StAnswer : StWait;
        default:  ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (next) begin
      answer_len_q <= note.len;
      pair_q       <= pair;
      single_q     <= single;
    end
  end

  via_fifo #(
    .T    (out_t),
    .Depth(Outs)
  ) u_outs (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (out_new),
    .s_valid_i(out_push),
    .s_ready_o(),
    .m_o      (out),
    .m_valid_o(out_valid),
    .m_ready_i(out_pop),
    .count_o  (outs)
  );

  // ---------------------------------------------------------------- data
  logic begun_q, offered_q, beat_last, beat_valid, beat_ready, prepend_idle;
  len_t left_q, left;
  vq_beat_t beat;
  assign left = begun_q ? left_q : out.len;
  assign beat_last = left <= len_t'(StrbW);
  assign beat = '{last: beat_last, keep: beat_last ? keep_of(left[BeatLog2:0]) : '1, data: data};
  // The tail of the frame before may still stand in u_prepend, which takes the header with the first beat.
  assign beat_valid = data_valid_q && out_valid && !out.drop && (begun_q || offered_q || prepend_idle);
  assign data_pop = data_valid_q && out_valid && out.drop || beat_valid && beat_ready;
  assign out_pop = data_pop && beat_last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q   <= 1'b0;
      offered_q <= 1'b0;
    end else begin
      if (data_pop) begun_q <= !beat_last;
      offered_q <= beat_valid && !beat_ready;
    end
    if (data_pop) left_q <= left - len_t'(StrbW);
  end

  logic [NetHeader*8-1:0] header;
  assign header = {merge_i ? out.buffers : 16'd1, 80'h0};

  via_vdev_prepend #(
    .Bytes(NetHeader)
  ) u_prepend (
    .clk_i,
    .rst_ni,
    .head_i   (header),
    .s_i      (beat),
    .s_valid_i(beat_valid),
    .s_ready_o(beat_ready),
    .m_o      (wr_o),
    .m_valid_o(wr_valid_o),
    .m_ready_i(wr_ready_i),
    .idle_o   (prepend_idle)
  );

  assign drop_o   = take && rx_i.last && !commit || out_pop && out.drop;
  assign moving_o = take || fetch || data_pop || next || skip || announced || merged_valid_i;
  assign idle_o   = first_q && !note_valid && state_q == StWait && !out_valid && prepend_idle;

endmodule
