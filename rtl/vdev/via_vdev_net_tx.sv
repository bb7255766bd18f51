// SPDX-License-Identifier: Apache-2.0
//
// Transmit side of the net device: removes the header, inserts a checksum where the driver requests one, sends the frame.
// Throughput: one beat a cycle, from the guest and to the user side. Latency: a beat is sent two cycles after it came, or in the cycle
// after the next one of its frame, which is needed; three more behind frames that are held; a frame that needs a checksum is held until its end. Order: kept.
// Misuse: a frame too short or too long, with segmentation requested, or with a checksum field outside of it, is dropped; so is everything
// while `open_i` is low. The buffer completes when its last byte is accepted. Source: VIRTIO 1.3, 5.1.6.2.

module via_vdev_net_tx
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
(
  input  logic           clk_i,
  input  logic           rst_ni,
  input  logic           csum_i,       // level: VIRTIO_NET_F_CSUM was negotiated
  input  logic           open_i,       // level: the user side is connected
  input  vq_req_t        req_i,        // request
  input  logic           none_i,       // with req_i: it has no readable bytes
  input  logic           req_valid_i,
  output logic           req_ready_o,
  input  vq_beat_t       rd_i,         // its bytes
  input  logic           rd_valid_i,
  output logic           rd_ready_o,
  output vq_rsp_t        rsp_o,        // response
  output logic           rsp_valid_o,
  input  logic           rsp_ready_i,
  output strm_t          tx_o,
  output logic           tx_valid_o,
  input  logic           tx_ready_i,
  output logic     [1:0] drop_o,       // pulses: a frame is dropped: [0] on its way in, [1] on its way out
  output logic           moving_o,     // level: something moves
  output logic           idle_o        // level: no frame is held
);

  localparam int unsigned Beats = (NetFrameMax + StrbW - 1) / StrbW;
  localparam int unsigned LenW = 14;
  typedef logic [LenW-1:0] len_t;

  // ---------------------------------------------------------------- header
  typedef struct packed {
    logic [15:0] num_buffers;
    logic [15:0] csum_offset;
    logic [15:0] csum_start;
    logic [15:0] gso_size;
    logic [15:0] hdr_len;
    logic [7:0]  gso_type;
    logic [7:0]  flags;
  } hdr_t;
  hdr_t hdr;
  vq_beat_t beat;
  logic beat_valid, beat_ready, strip_ready, strip_idle;
  logic rsp_room, end_now, in_open;

  via_vdev_strip #(
    .Bytes(NetHeader)
  ) u_strip (
    .clk_i,
    .rst_ni,
    .s_i      (rd_i),
    .s_valid_i(rd_valid_i && in_open),
    .s_ready_o(strip_ready),
    .m_o      (beat),
    .head_o   (hdr),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_ready),
    .idle_o   (strip_idle)
  );

  // A request leaves the engine with the last of its bytes, which may still be on their way while those of the next request arrive. So
  // frames that leave u_strip are described by the entry in u_frame.
  typedef struct packed {
    logic [QueueW-1:0] queue;
    logic              none;   // without bytes
    logic              drop;   // too short or too long
    len_t              len;    // without the header
  } frame_t;
  frame_t req;
  logic req_valid, req_room, in_none, in_put, put_q, begun_q;
  assign in_none = none_i;
  assign in_open = req_valid_i && !in_none && (put_q || req_room);
  assign rd_ready_o = in_open && strip_ready;
  // Entered as it is offered, whether its first bytes have arrived or not, so this does not depend on their readiness.
  assign in_put = req_valid_i && !put_q;
  assign req_ready_o = rd_valid_i && rd_ready_o ? rd_i.last : req_valid_i && in_none && req_room;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      put_q   <= 1'b0;
      begun_q <= 1'b0;
    end else begin
      put_q <= (put_q || in_put && req_room) && !req_ready_o;
      if (rd_valid_i && rd_ready_o) begun_q <= !rd_i.last;
    end
  end
  // At most one frame is in u_strip, and one is arriving.
  via_slice #(
    .T(frame_t)
  ) u_frame (
    .clk_i,
    .rst_ni,
    .s_i(
    '{
        queue: req_i.queue,
        none: in_none,
        drop: req_i.rlen < 32'(NetHeader + 14) || req_i.rlen > 32'(NetHeader + NetFrameMax),
        len: len_t'(req_i.rlen - 32'(NetHeader))
    }
    ),
    .s_valid_i(in_put),
    .s_ready_o(req_room),
    .m_o(req),
    .m_valid_o(req_valid),
    .m_ready_i(end_now)
  );

  // ---------------------------------------------------------------- what to do with the frame
  // Errors that take longer to detect (a checksum field outside of the frame, segmentation) are recorded in its note: such a frame is
  // dropped on its way out.
  logic
      wants,
      first_q,
      first,
      closed_q,
      dropping,
      take,
      sum_next,
      sum_busy_q;  // closed_q: the user side was not connected when this frame began
  assign wants = csum_i && hdr.flags[0];
  assign dropping = req.drop || closed_q;

  // Room for a beat and its note, not counting what leaves in this cycle: computed a cycle early, so the last entry of each FIFO stays
  // free.
  localparam int unsigned Notes = 8;
  logic [$clog2(2*Beats+1)-1:0] beats;
  logic [  $clog2(Notes+1)-1:0] notes;
  logic may_q, note_put;
  logic [1:0] unused_room;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) may_q <= 1'b0;
    else may_q <= 32'(beats) < 2 * Beats - 1 && 32'(notes) < Notes - 1 && !sum_next;
  end

  // Beats that arrive after a request without bytes belong to a later one.
  assign beat_ready = req_valid && !req.none && rsp_room && (dropping || may_q);
  assign take = beat_valid && beat_ready;
  assign first = take ? beat.last : first_q;
  assign end_now = take && beat.last || req_valid && req.none && rsp_room;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q  <= 1'b1;
      closed_q <= 1'b1;
    end else begin
      first_q <= first;
      if (first) closed_q <= !open_i;
    end
  end

  // ---------------------------------------------------------------- sum of 16-bit words, in memory order, from csum_start on
  // Ones' complement sum: the carry out of a word is added at its bottom. Until the end the sum is kept as three words still to be added.
  localparam int unsigned Words = StrbW / 2;
  localparam int unsigned LineW = 16 - BeatLog2;

  function automatic logic [15:0] times2(input logic [15:0] x);
    return {x[14:0], x[15]};
  endfunction
  // Reduces six words to three: the bits of each weight become a number of three bits.
  function automatic logic [2:0][15:0] six(input logic [5:0][15:0] w);
    logic [15:0] low_a, low_b, high_a, high_b, both;
    low_a  = w[0] ^ w[1] ^ w[2];
    low_b  = w[3] ^ w[4] ^ w[5];
    high_a = w[0] & w[1] | w[0] & w[2] | w[1] & w[2];
    high_b = w[3] & w[4] | w[3] & w[5] | w[4] & w[5];
    both   = low_a & low_b;
    return {times2(times2(high_a & high_b | high_a & both | high_b & both)), times2(high_a ^ high_b ^ both), low_a ^ low_b};
  endfunction

  logic [LineW-1:0] start_line, line_q;  // line_q: that of the next beat
  logic here, here_q, past, past_q;  // the sum begins in this beat; before it
  logic [StrbW-1:0] counted;
  // Words of a beat after the next stage: half as many.
  localparam int unsigned Groups1 = (Words + 5) / 6;
  logic [6*Groups1-1:0][15:0] words;
  logic [3*Groups1-1:0][15:0] step1, part_q;
  logic part_valid_q, part_last_q, sum_done_q;

  // The start of the sum is decoded as the header arrives: its byte within the beat, as a bit mask, and whether that is the first beat.
  logic [StrbW-1:0] from_q;
  logic zero_q;
  logic [15:0] start_in;
  assign start_in = rd_i.data[48+:16];
  always_ff @(posedge clk_i) begin
    if (rd_valid_i && rd_ready_o && !begun_q) begin
      for (int unsigned i = 0; i < StrbW; i++) from_q[i] <= 32'(start_in[BeatLog2-1:0]) <= i;
      zero_q <= start_in[15:BeatLog2] == '0;
    end
  end
  assign start_line = hdr.csum_start[15:BeatLog2];
  assign here = first_q ? zero_q : here_q;
  assign past = !first_q && past_q;
  always_comb begin
    counted = beat.keep & ({StrbW{past}} | {StrbW{here}} & from_q);
    words   = '0;
    for (int unsigned i = 0; i < Words; i++)
    words[i] = {beat.data[16*i+8+:8] & {8{counted[2*i+1]}}, beat.data[16*i+:8] & {8{counted[2*i]}}};
    for (int unsigned i = 0; i < Groups1; i++) step1[3*i+:3] = six(words[6*i+:6]);
  end

  logic summing;
  assign summing  = take && !dropping && wants;
  assign sum_next = summing && beat.last || part_last_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      part_valid_q <= 1'b0;
      part_last_q  <= 1'b0;
      sum_done_q   <= 1'b0;
      sum_busy_q   <= 1'b0;
    end else begin
      part_valid_q <= summing;
      part_last_q  <= summing && beat.last;
      sum_done_q   <= part_last_q;
      sum_busy_q   <= sum_next;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      line_q <= (first_q ? LineW'(1) : line_q) + 1'b1;
      here_q <= start_line == (first_q ? LineW'(1) : line_q);
      past_q <= here || past;
      part_q <= step1;
    end
  end

  // The parts of a beat, and the sum so far, reduced to three words again.
  localparam int unsigned Groups2 = (3 * Groups1 + 3 + 5) / 6;
  localparam int unsigned Groups3 = (3 * Groups2 + 5) / 6;
  localparam int unsigned Groups4 = (3 * Groups3 + 5) / 6;
  logic [2:0][15:0] acc_q;
  logic [6*Groups2-1:0][15:0] adds;
  logic [6*Groups3-1:0][15:0] step2;
  logic [6*Groups4-1:0][15:0] step3;
  logic [3*Groups4-1:0][15:0] step4;
  localparam bit WordsOk = param_in("beats of via_vdev_net_tx in words", Words, 1, 48);
  always_comb begin
    adds = '0;
    adds[0+:3] = acc_q;
    adds[3+:3*Groups1] = part_q;
    step2 = '0;
    for (int unsigned i = 0; i < Groups2; i++) step2[3*i+:3] = six(adds[6*i+:6]);
    step3 = '0;
    for (int unsigned i = 0; i < Groups3; i++) step3[3*i+:3] = six(step2[6*i+:6]);
    for (int unsigned i = 0; i < Groups4; i++) step4[3*i+:3] = six(step3[6*i+:6]);
  end
  // The sum is read before any part of the next frame arrives.
  always_ff @(posedge clk_i) begin
    if (!rst_ni || sum_done_q) acc_q <= '0;
    else if (part_valid_q) acc_q <= step4[2:0];
  end

  // ---------------------------------------------------------------- frames held, and what to change in them
  typedef struct packed {
    logic        drop;
    logic        insert;
    len_t        place;   // offset of the low byte of the value, and of the high one
    len_t        place2;
    logic        first;   // ... they are in the frame's first beat
    logic        first2;
    logic [15:0] value;
  } note_t;
  note_t note, head;
  vq_beat_t held;
  logic held_valid, out, out_room, direct, direct_q, hold;  // direct_q: the frame's previous beat was not held
  logic [16:0] more;
  logic [15:0] plain;
  logic [15:0] sum;
  logic [1:0][15:0] words2;
  logic head_valid, odd_q, place_first_q, place2_first_q;
  logic [16:0] place_q;
  len_t place2_q, frame_q;
  logic outside_q, gso_q;
  always_ff @(posedge clk_i) begin
    if (summing && first_q) begin
      gso_q   <= hdr.gso_type != '0;
      place_q <= 17'(hdr.csum_start) + 17'(hdr.csum_offset);
      frame_q <= req.len;
      odd_q   <= hdr.csum_start[0];  // the words begin at odd bytes: swap the bytes of the sum
    end
    // Valid when the sum is, at the earliest two cycles after the first beat.
    place2_q       <= place_q[LenW-1:0] + 1'b1;
    place_first_q  <= place_q[LenW-1:BeatLog2] == '0;
    place2_first_q <= place_q[LenW-1:BeatLog2] == '0 && !(&place_q[BeatLog2-1:0]);
    outside_q      <= 18'(place_q) + 18'd2 > 18'(frame_q);
  end
  // Of the two representations of zero the sum yields all zeros, so its complement, the checksum, is never zero; in UDP zero means no
  // checksum.
  assign words2 = {times2(acc_q[0] & acc_q[1] | acc_q[0] & acc_q[2] | acc_q[1] & acc_q[2]), acc_q[0] ^ acc_q[1] ^ acc_q[2]};
  assign plain  = words2[0] + words2[1];
  assign more   = 17'(words2[0]) + 17'(words2[1]) + 17'd1;
  assign sum    = (&words2) ? '0 : more[16] ? more[15:0] : plain;
  always_comb begin
    note.drop   = sum_done_q ? outside_q || gso_q : hdr.gso_type != '0;
    note.insert = sum_done_q;
    note.place  = place_q[LenW-1:0];
    note.place2 = place2_q;
    note.first  = place_first_q;
    note.first2 = place2_first_q;
    note.value  = odd_q ? ~{sum[7:0], sum[15:8]} : ~sum;
  end
  assign note_put = sum_done_q || hold && !wants && (first_q || direct_q);

  via_fifo #(
    .T    (note_t),
    .Depth(Notes)
  ) u_notes (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (note),
    .s_valid_i(note_put),
    .s_ready_o(unused_room[0]),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(out && held.last),
    .count_o  (notes)
  );

  via_fifo #(
    .T    (vq_beat_t),
    .Depth(2 * Beats),
    .Ram  (1'b1)
  ) u_frames (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (beat),
    .s_valid_i(hold),
    .s_ready_o(unused_room[1]),
    .m_o      (held),
    .m_valid_o(held_valid),
    .m_ready_i(head_valid && (out_room || head.drop)),
    .count_o  (beats)
  );
  assign out = held_valid && head_valid && (out_room || head.drop);

  // Beats pass by the FIFOs while these are empty. The rest of a frame that the user side stops is held there, and so is what follows it,
  // so that a request of another queue does not wait for the user side.
  logic clear_q;  // no frame is held
  assign direct = out_room && (first_q ? clear_q && !wants && hdr.gso_type == '0 : direct_q);
  assign hold   = take && !dropping && !direct;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) clear_q <= 1'b0;
    else clear_q <= beats == '0 && notes == '0 && !hold;
  end
  always_ff @(posedge clk_i) if (take) direct_q <= direct;

  // Whether the checksum is in the beat after the current one is computed a beat ahead.
  logic [LenW-BeatLog2-1:0] out_next_q;
  logic out_first_q, low_q, high_q, low_here, high_here;
  strm_t s;
  assign low_here  = held_valid && head.insert && (out_first_q ? head.first : low_q);
  assign high_here = held_valid && head.insert && (out_first_q ? head.first2 : high_q);
  always_comb begin
    s.id   = '0;
    s.last = held_valid ? held.last : beat.last;
    s.keep = held_valid ? held.keep : beat.keep;
    s.data = held_valid ? held.data : beat.data;
    for (int unsigned i = 0; i < StrbW; i++) begin
      if (low_here && head.place[BeatLog2-1:0] == BeatLog2'(i)) s.data[8*i+:8] = head.value[7:0];
      if (high_here && head.place2[BeatLog2-1:0] == BeatLog2'(i)) s.data[8*i+:8] = head.value[15:8];
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_first_q <= 1'b1;
      out_next_q  <= (LenW - BeatLog2)'(1);
    end else if (out) begin
      out_first_q <= held.last;
      out_next_q  <= held.last ? (LenW - BeatLog2)'(1) : out_next_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (out) begin
      low_q  <= out_next_q == head.place[LenW-1:BeatLog2];
      high_q <= out_next_q == head.place2[LenW-1:BeatLog2];
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) drop_o <= '0;
    else drop_o <= {out && head.drop && held.last, end_now && (req.none || dropping)};
  end

  via_slice #(
    .T(strm_t)
  ) u_out (
    .clk_i,
    .rst_ni,
    .s_i      (s),
    .s_valid_i(held_valid && head_valid && !head.drop || take && !dropping && direct),
    .s_ready_o(out_room),
    .m_o      (tx_o),
    .m_valid_o(tx_valid_o),
    .m_ready_i(tx_ready_i)
  );

  // ---------------------------------------------------------------- responses
  logic [QueueW-1:0] queue;
  via_fifo #(
    .T    (logic [QueueW-1:0]),
    .Depth(4)
  ) u_done (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (req.queue),
    .s_valid_i(end_now),
    .s_ready_o(rsp_room),
    .m_o      (queue),
    .m_valid_o(rsp_valid_o),
    .m_ready_i(rsp_ready_i),
    .count_o  ()
  );
  assign rsp_o = '{queue: queue, merge: 1'b0, len: '0};

  assign moving_o = rd_valid_i && rd_ready_o || in_put && req_room || req_valid_i && req_ready_o || take || end_now || sum_busy_q || part_valid_q || out || drop_o != '0 || tx_valid_o && tx_ready_i;
  assign idle_o = strip_idle && !req_valid && first_q && !sum_busy_q && !held_valid && !head_valid && !tx_valid_o && !rsp_valid_o;

endmodule
