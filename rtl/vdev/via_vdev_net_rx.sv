// SPDX-License-Identifier: Apache-2.0
//
// Receive side of the net device: buffers a frame until its end, selects a queue pair, prepends the header, and passes it to the engine.
//
//   rx ── beat, length, flow ─┬─ store ─────────────────────────────── data ── prepend header ── wr
//                             └─ notes ── next frame ── response ── frames to hand over ┘
//
// Throughput: one beat a cycle into the store and out of it; responses are offered ahead of their data, one every second cycle if the
// engine accepts them as fast. Latency: two cycles from the last beat to the response, and two more to the first of its bytes. Order: kept.
// Frames of one flow go to one pair: IPv4 by addresses and, for unfragmented TCP and UDP, ports; all others by source address.
// Dropped are: frames that the filter rejects, that are shorter than 14 or longer than NetFrameMax bytes, all while `open_i` is low,
// without mergeable buffers those longer than the next buffer, and those of a pair whose receive queue is not in use, so that frames of
// other pairs do not wait for the end of its reset. Without a buffer frames wait, and rx_i is stalled when the store is nearly full, even
// for a frame that will be dropped. Source: VIRTIO 1.3, 5.1.6.3 to 5.1.6.5.

module via_vdev_net_rx
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
(
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    merge_i,                   // level: VIRTIO_NET_F_MRG_RXBUF was negotiated
  input  logic                    open_i,                    // level: link and driver are up
  input  logic     [         2:0] pairs_i,                   // queue pairs in use
  output logic     [        47:0] dst_o,                     // destination address, to the filter
  input  logic                    accept_i,                  // a cycle later: it passes the filter
  input  strm_t                   rx_i,
  input  logic                    rx_valid_i,
  output logic                    rx_ready_o,
  input  logic     [NetPairs-1:0] in_use_i,                  // level, receive queue of each pair: enabled, not under reset
  input  logic     [NetPairs-1:0] avail_i,                   // level: it has a buffer
  input  logic     [        31:0] head_wlen_i   [NetPairs],  // size in bytes of its next buffer
  input  logic     [        31:0] room_i        [NetPairs],  // bytes of all its buffers
  input  logic     [NetPairs-1:0] busy_i,                    // level: a response is using its chains, room_i is not valid
  output logic     [NetPairs-1:0] short_o,                   // level: a frame waits for buffers of the pair
  output vq_rsp_t                 rsp_o,                     // response
  output logic                    rsp_valid_o,               // one-cycle pulse, while rsp_early_i is high
  input  logic                    rsp_early_i,               // level: a response may be offered
  input  logic                    rsp_ready_i,               // pulse: the engine accepts it
  input  logic     [        15:0] merged_i,                  // chains that the last `merge` response used
  input  logic                    merged_valid_i,            // pulse: merged_i is valid
  output vq_beat_t                wr_o,                      // its bytes
  output logic                    wr_valid_o,
  input  logic                    wr_ready_i,
  output logic     [         1:0] drop_o,                    // pulses: a frame is dropped: [0] on arrival, [1] when its turn comes
  output logic                    moving_o,                  // level: something moves
  output logic                    idle_o                     // level: no frame is held
);

  localparam int unsigned Beats = (NetFrameMax + StrbW - 1) / StrbW;
  localparam int unsigned Full = NetFrameMax / StrbW;  // beats before the one that may be the last of the longest frame
  localparam int unsigned Depth = 1 << $clog2(3 * Beats);
  localparam int unsigned PtrW = $clog2(Depth);
  localparam int unsigned PairW = $clog2(NetPairs);
  localparam int unsigned Notes = 32;
  localparam int unsigned NoteW = $clog2(Notes + 1);
  localparam int unsigned Outs = 8;  // responses whose data is to be sent
  localparam int unsigned OutW = $clog2(Outs + 1);
  localparam int unsigned LookBytes = 38;  // up to the ports of IPv4
  localparam int unsigned LookBeats = (LookBytes + StrbW - 1) / StrbW;
  localparam int unsigned CountW = $clog2(Beats + 2);
  // Beats that may still arrive when the store is found to be full: that of this cycle, and those already in the pipeline.
  localparam int unsigned Late = 4;
  localparam int unsigned LenW = 14;
  typedef logic [LenW-1:0] len_t;

  localparam bit LenOk = param_in("NetFrameMax of via_vdev_net_rx", NetFrameMax + NetHeader, StrbW, (1 << $bits(len_t)) - 1);

  // ---------------------------------------------------------------- in: registers for a beat and what it contributes to its frame
  logic ready_q, take, first_q, over, open_q;
  logic [CountW-1:0] count, count_q;  // beats of the frame before this one
  logic in_q, in_first_q, in_last_q, in_over_q, in_enough_q;  // in_enough_q: at least as long as an Ethernet header
  logic [DataW-1:0] in_data_q;
  len_t in_len_q;  // with the header
  logic in_ip_q;
  logic [7:0] in_by_ip_q, in_by_mac_q;  // number of its flow, if it is IPv4, and if not
  logic [1:0] in_third, in_fourth;  // remainders of the number divided by 3, by 4

  assign dst_o = rx_i.data[47:0];
  assign rx_ready_o = ready_q;
  assign take = rx_valid_i && ready_q;
  assign count = first_q ? '0 : count_q;

  // Whether the frame has at least that many bytes, as far as it has arrived.
  function automatic logic has(input int unsigned bytes, input logic [CountW-1:0] ahead, input logic [StrbW-1:0] keep);
    return ahead > CountW'((bytes - 1) / StrbW) || ahead == CountW'((bytes - 1) / StrbW) && keep[(bytes-1)%StrbW];
  endfunction

  assign over = !first_q && (in_over_q || has(NetFrameMax + 1, count_q, rx_i.keep) || count_q == CountW'(Full) && !rx_i.last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= 1'b1;
      in_q    <= 1'b0;
    end else begin
      if (take) first_q <= rx_i.last;
      in_q <= take;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      count_q     <= count + 1'b1;
      in_first_q  <= first_q;
      in_last_q   <= rx_i.last;
      in_over_q   <= over;
      in_enough_q <= has(14, count, rx_i.keep);
      in_data_q   <= rx_i.data;
      in_len_q    <= (first_q ? len_t'(NetHeader) : in_len_q) + len_t'(keep_bytes(rx_i.keep));
    end
  end

  // ---------------------------------------------------------------- flow
  logic [LookBeats*DataW-1:0] look_q, look;
  always_comb begin
    look = look_q;
    for (int unsigned i = 0; i < LookBeats; i++) if (count == CountW'(i)) look[i*DataW+:DataW] = rx_i.data;
  end
  if (LookBeats > 1) begin : gen_look
    always_ff @(posedge clk_i) begin
      if (take) look_q <= look;
    end
  end else begin : gen_no_look
    assign look_q = '0;
  end

  logic ip, ports;
  logic [7:0] by_addr, by_port, by_mac;
  assign ip = has(34, count, rx_i.keep) && look[12*8+:16] == 16'h0008;
  assign ports = has(
      38, count, rx_i.keep
  ) && look[14*8+:8] == 8'h45 && (look[23*8+:8] == 8'd6 || look[23*8+:8] == 8'd17) && {look[20*8+:6], look[21*8+:8]} == '0 && !look[20*8+5];
  always_comb begin
    {by_addr, by_port, by_mac} = '0;
    for (int unsigned i = 0; i < 8; i++) by_addr ^= look[(26+i)*8+:8];
    for (int unsigned i = 0; i < 4; i++) by_port ^= look[(34+i)*8+:8];
    for (int unsigned i = 0; i < 6; i++) by_mac ^= look[(6+i)*8+:8];
  end
  always_ff @(posedge clk_i) begin
    if (take && 32'(count) < LookBeats) begin
      in_ip_q     <= ip;
      in_by_ip_q  <= by_addr ^ (ports ? by_port : '0);
      in_by_mac_q <= by_mac;
    end
  end

  // The remainder of a division by 3: that of the sum of the digits to base 4.
  function automatic logic [1:0] third_of(input logic [3:0] digits);
    unique case (digits)
      4'h0, 4'h3, 4'h6, 4'h9, 4'hc, 4'hf: return 2'd0;
      4'h1, 4'h4, 4'h7, 4'ha, 4'hd: return 2'd1;
      default: return 2'd2;
    endcase
  endfunction
  assign in_third = in_ip_q ? third_of(
      {third_of(in_by_ip_q[7:4]), third_of(in_by_ip_q[3:0])}
  ) : third_of(
      {third_of(in_by_mac_q[7:4]), third_of(in_by_mac_q[3:0])}
  );
  assign in_fourth = in_ip_q ? in_by_ip_q[1:0] : in_by_mac_q[1:0];

  // ---------------------------------------------------------------- store: a frame counts once its last beat is there
  // Positions: of the next beat, and the one after it; after the last whole frame; of the next beat to fetch. The store is never full.
  logic [PtrW-1:0] wptr_q, wnext, end_q, rptr_q;
  logic drop_q, drop, store, commit, cancel;

  assign drop   = in_first_q ? !open_q || !accept_i : drop_q;
  assign store  = in_q && !drop;
  assign commit = store && in_last_q && !in_over_q && in_enough_q;
  // The rest of a frame that is already too long is dropped as it arrives.
  assign cancel = store && (in_over_q || in_last_q && !in_enough_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      end_q  <= '0;
      open_q <= 1'b0;
    end else begin
      open_q <= open_i;
      if (cancel) wptr_q <= end_q;
      else if (store) wptr_q <= wnext;
      if (commit) end_q <= wnext;
    end
  end
  assign wnext = wptr_q + 1'b1;
  always_ff @(posedge clk_i) begin
    if (in_q) drop_q <= drop || cancel;
  end

  // The next beat of whole frames is held in the memory's output register.
  logic [DataW-1:0] data;
  logic data_valid_q, fetch, data_pop;
  assign fetch = rptr_q != end_q && (!data_valid_q || data_pop);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rptr_q       <= '0;
      data_valid_q <= 1'b0;
    end else begin
      if (fetch) rptr_q <= rptr_q + 1'b1;
      if (fetch || data_pop) data_valid_q <= fetch;
    end
  end
  via_ram_sdp #(
    .Width(DataW),
    .Depth(Depth)
  ) u_store (
    .clk_i,
    .we_i   (store),
    .waddr_i(wptr_q),
    .wdata_i(in_data_q),
    .re_i   (fetch),
    .raddr_i(rptr_q),
    .rdata_o(data)
  );

  // ---------------------------------------------------------------- frames held: the next one in a register
  typedef struct packed {
    logic [1:0] third;   // remainders of the flow's number divided by 3, by 4
    logic [1:0] fourth;
    len_t       len;     // with the header
  } note_t;
  note_t in_note, held_note, next_q, note;
  logic held_note_valid, held_note_pop, held_note_put, next_valid_q, note_valid, note_pop;
  logic [NoteW-1:0] notes;
  assign in_note = '{third: in_third, fourth: in_fourth, len: in_len_q};
  via_fifo #(
    .T    (note_t),
    .Depth(Notes)
  ) u_notes (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (in_note),
    .s_valid_i(held_note_put),
    .s_ready_o(),
    .m_o      (held_note),
    .m_valid_o(held_note_valid),
    .m_ready_i(held_note_pop),
    .count_o  (notes)
  );
  // A frame with none before it is evaluated as it arrives. Only next_valid_q depends on the result.
  assign note = next_valid_q ? next_q : in_note;
  assign note_valid = next_valid_q || commit && !held_note_valid;
  assign held_note_pop = held_note_valid && !next_valid_q;
  assign held_note_put = commit && (held_note_valid || next_valid_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) next_valid_q <= 1'b0;
    else next_valid_q <= held_note_pop || note_valid && !note_pop;
  end
  always_ff @(posedge clk_i) begin
    if (!next_valid_q) next_q <= held_note_valid ? held_note : in_note;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ready_q <= 1'b0;
    else ready_q <= PtrW'(wptr_q - rptr_q) <= PtrW'(Depth - Late) && notes <= NoteW'(Notes - Late);
  end

  // ---------------------------------------------------------------- responses: offered while the data of earlier ones moves
  typedef enum logic [1:0] {
    StWait,
    StResponse,
    StMerged
  } state_e;
  state_e state_q;
  logic [NetPairs-1:0] merges_q, singles_q, unused_q, may, cannot, pops;  // pops: the frame is done if it is decided now
  logic [PairW-1:0] pair;
  logic single_q, decide, next, skip, skip_q, announced, outs_room_q;
  len_t response_len_q, skip_len_q;

  // Evaluated for every pair in parallel; then the result for the frame's pair is selected.
  always_comb begin
    unique case (pairs_i)
      3'd2:    pair = PairW'(note.fourth[0]);
      3'd3:    pair = PairW'(note.third);
      3'd4:    pair = PairW'(note.fourth);
      default: pair = '0;
    endcase
  end
  always_ff @(posedge clk_i) begin
    merges_q  <= in_use_i & {NetPairs{merge_i}};
    singles_q <= in_use_i & {NetPairs{!merge_i}};
    unused_q  <= ~in_use_i;
  end
  for (genvar p = 0; p < NetPairs; p++) begin : gen_pair
    logic one, all;
    assign one = head_wlen_i[p][31:LenW] != '0 || len_t'(head_wlen_i[p]) >= note.len;
    assign all = room_i[p][31:LenW] != '0 || len_t'(room_i[p]) >= note.len;
    assign may[p] = merges_q[p] && all && !busy_i[p] || singles_q[p] && avail_i[p] && one;
    assign cannot[p] = unused_q[p] || singles_q[p] && avail_i[p] && !one;
    assign pops[p] = rsp_early_i && may[p] || state_q == StWait && cannot[p];
  end

  assign decide = note_valid && outs_room_q && (state_q == StWait || state_q == StMerged && merged_valid_i);
  assign next = rsp_valid_o && rsp_early_i;
  assign skip = decide && state_q == StWait && cannot[pair];
  assign note_pop = decide && pops[pair];

  assign rsp_valid_o = decide && may[pair];
  assign rsp_o = '{queue: QueueW'({pair, 1'b0}), merge: merge_i, len: 32'(note.len)};

  // The engine's buffer state is valid again one cycle after it accepted a response: exactly when it reports how many buffers that one
  // needed.
  assign announced = state_q == StResponse && rsp_ready_i && single_q || state_q == StMerged && merged_valid_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StWait;
    end else begin
      unique case (state_q)
        StWait: if (next) state_q <= StResponse;
        StResponse: if (rsp_ready_i) state_q <= single_q ? StWait : StMerged;
        StMerged: if (merged_valid_i) state_q <= next ? StResponse : StWait;
        default: ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    // Of the response that may be decided now.
    if (state_q == StWait || state_q == StMerged && merged_valid_i) begin
      response_len_q <= note.len - len_t'(NetHeader);
      single_q       <= !merge_i;
    end
    skip_len_q <= note.len - len_t'(NetHeader);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) skip_q <= 1'b0;
    else skip_q <= skip;
  end
  // Registered: nothing depends on it in the same cycle.
  logic waits_q;
  logic [NetPairs-1:0] lacks_q;
  logic [PairW-1:0] pair_q;
  always_ff @(posedge clk_i) begin
    waits_q <= rst_ni && state_q == StWait && note_valid;
    lacks_q <= ~may & ~cannot;
    pair_q  <= pair;
  end
  assign short_o = (waits_q && lacks_q[pair_q]) ? NetPairs'(1) << pair_q : '0;

  // ---------------------------------------------------------------- frames to hand over: the one whose data moves is in registers
  typedef struct packed {
    logic        drop;
    logic [15:0] buffers;
    len_t        len;
  } out_t;
  out_t out_new, out_held;
  logic out_push, out_held_valid, out_held_pop, out_load, out_early, out_pop;
  logic out_valid_q, out_drop_q, out_told_q, taken_q;  // taken_q: the current response already has its frame here
  logic [15:0] out_buffers_q;
  logic [StrbW-1:0] out_keep_q;  // of its last beat
  logic [CountW-1:0] out_left_q;  // beats after the current one
  logic out_last_q;
  logic [OutW-1:0] outs;

  assign out_new  = '{drop: skip_q, buffers: (state_q == StMerged) ? merged_i : 16'd1, len: skip_q ? skip_len_q : response_len_q};
  // No response is offered in the cycle after a skipped frame.
  assign out_push = skip_q || announced && !taken_q && !out_early;
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
    .m_o      (out_held),
    .m_valid_o(out_held_valid),
    .m_ready_i(out_held_pop),
    .count_o  (outs)
  );
  // A frame with none before it is prepared before its response is offered.
  assign out_load = !out_valid_q || out_pop;
  assign out_held_pop = out_held_valid && out_load;
  assign out_early = !out_valid_q && !out_held_valid && !skip_q && !taken_q && state_q inside {StResponse, StMerged};

  function automatic logic [CountW-1:0] behind(input len_t len);
    return CountW'((len - 1'b1) >> BeatLog2);
  endfunction
  function automatic logic [StrbW-1:0] last_keep(input logic [BeatLog2-1:0] bytes);
    return (bytes == '0) ? '1 : keep_of({1'b0, bytes});
  endfunction
  len_t load_len;
  assign load_len = out_held_valid ? out_held.len : response_len_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q <= 1'b0;
      taken_q     <= 1'b0;
      outs_room_q <= 1'b0;
    end else begin
      if (out_load) out_valid_q <= out_held_valid || out_early;
      if (announced) taken_q <= 1'b0;
      else if (out_early) taken_q <= 1'b1;
      // Counts the current response and those decided but not yet counted.
      outs_room_q <= outs < OutW'(Outs - 3);
    end
  end
  always_ff @(posedge clk_i) begin
    if (out_load) begin
      out_drop_q <= out_held_valid && out_held.drop;
      out_keep_q <= last_keep(load_len[BeatLog2-1:0]);
      out_left_q <= behind(load_len);
      out_last_q <= behind(load_len) == '0;
    end else if (data_pop) begin
      out_left_q <= out_left_q - 1'b1;
      out_last_q <= out_left_q == CountW'(1);
    end
    if (out_load) out_told_q <= out_held_valid || announced;
    else if (announced && taken_q) out_told_q <= 1'b1;
    // A frame whose response is not accepted yet takes the number of buffers as it is offered, the last time when it is accepted.
    if (out_load || !out_told_q) out_buffers_q <= (out_load && out_held_valid) ? out_held.buffers : out_new.buffers;
  end

  // ---------------------------------------------------------------- data
  logic told, beat_valid, beat_ready, prepend_idle;
  vq_beat_t beat;
  assign told = out_valid_q && (out_told_q || announced);  // a frame without an accepted response belongs to the current one
  assign beat = '{last: out_last_q, keep: out_last_q ? out_keep_q : '1, data: data};
  assign beat_valid = data_valid_q && told && !out_drop_q;
  assign data_pop = data_valid_q && out_valid_q && out_drop_q || beat_valid && beat_ready;
  assign out_pop = data_pop && out_last_q;

  // Used with the first beat.
  logic [NetHeader*8-1:0] header;
  assign header = {!merge_i ? 16'd1 : out_told_q ? out_buffers_q : merged_i, 80'h0};

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

  always_ff @(posedge clk_i) begin
    if (!rst_ni) drop_o <= '0;
    else drop_o <= {out_pop && out_drop_q, in_q && in_last_q && !commit};
  end
  logic [1:0] moves_q;
  always_ff @(posedge clk_i)
    moves_q <= {
      |{take, in_q, held_note_pop, next, skip, skip_q, drop_o != '0}, |{fetch, data_pop, announced, merged_valid_i, out_held_pop, out_early}
    };
  assign moving_o = moves_q != '0;
  assign idle_o = first_q && !in_q && !note_valid && !held_note_valid && state_q == StWait && !skip_q && !out_valid_q && !out_held_valid && prepend_idle;

endmodule
