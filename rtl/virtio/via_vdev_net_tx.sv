// SPDX-License-Identifier: Apache-2.0
//
// Transmit side of the net device: takes the header off, inserts a checksum where the driver asks for one, sends the frame.
// Throughput: one beat a cycle, from the guest and to the user side. Latency: five cycles; a frame that needs a checksum is
// held until its end. Order: kept.
// A frame too short or too long, with segmentation wanted, or with a checksum place outside of it, is dropped; so is everything while
// `open_i` is low. The buffer is answered when its last byte is taken. Source: VIRTIO 1.3, 5.1.6.2.

module via_vdev_net_tx
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,
  input  logic     csum_i,       // VIRTIO_NET_F_CSUM
  input  logic     open_i,       // somebody takes frames
  input  vq_req_t  req_i,
  input  logic     req_valid_i,
  output logic     req_ready_o,
  input  vq_beat_t rd_i,
  input  logic     rd_valid_i,
  output logic     rd_ready_o,
  output vq_rsp_t  rsp_o,
  output logic     rsp_valid_o,
  input  logic     rsp_ready_i,
  output strm_t    tx_o,
  output logic     tx_valid_o,
  input  logic     tx_ready_i,
  output logic     drop_o,       // a frame is dropped
  output logic     moving_o,
  output logic     idle_o
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
  logic rsp_room, end_now, none, in_open;

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

  // A request leaves the engine with the last of its bytes, which may still be on their way here while those of the next one come. So the frames
  // that come out of u_strip are known by what stands in u_frame.
  vq_req_t req;
  logic req_valid, req_room, in_none, in_put, begun_q;
  assign in_none = req_i.rlen == '0;
  assign in_open = req_valid_i && !in_none && (begun_q || req_room);
  assign rd_ready_o = in_open && strip_ready;
  // With its first bytes, or without any.
  assign in_put = rd_valid_i && rd_ready_o ? !begun_q : req_valid_i && in_none;
  assign req_ready_o = rd_valid_i && rd_ready_o ? rd_i.last : req_valid_i && in_none && req_room;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begun_q <= 1'b0;
    else if (rd_valid_i && rd_ready_o) begun_q <= !rd_i.last;
  end
  via_fifo #(
    .T    (vq_req_t),
    .Depth(4)
  ) u_frame (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (req_i),
    .s_valid_i(in_put),
    .s_ready_o(req_room),
    .m_o      (req),
    .m_valid_o(req_valid),
    .m_ready_i(end_now),
    .count_o  ()
  );
  assign none = req.rlen == '0;

  // ---------------------------------------------------------------- what to do with the frame
  logic fits, wants, csum_fits, drop, first_q, drop_q, dropping, take, sum_busy;
  logic [31:0] frame;
  logic [16:0] place;
  assign frame = req.rlen - 32'(NetHeader);
  assign fits = req.rlen >= 32'(NetHeader + 14) && req.rlen <= 32'(NetHeader + NetFrameMax);
  assign wants = csum_i && hdr.flags[0];
  assign place = 17'(hdr.csum_start) + 17'(hdr.csum_offset);
  assign csum_fits = 18'(place) + 18'd2 <= 18'(frame[LenW-1:0]);
  assign drop = !fits || !open_i || hdr.gso_type != '0 || wants && !csum_fits;
  assign dropping = first_q ? drop : drop_q;

  logic beat_room, note_room, note_put;
  // What comes out behind a request without bytes belongs to a later one.
  assign beat_ready = req_valid && !none && rsp_room && (dropping || beat_room && note_room && !sum_busy);
  assign take = beat_valid && beat_ready;
  assign end_now = take && beat.last || req_valid && none && rsp_room;
  assign drop_o = end_now && (none || dropping);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) first_q <= 1'b1;
    else if (take) first_q <= beat.last;
  end
  always_ff @(posedge clk_i) begin
    if (take && first_q) drop_q <= drop;
  end

  // ---------------------------------------------------------------- sum of 16-bit words, in memory order, from csum_start on
  len_t at_q, at;  // of the beat in the frame
  logic [BeatLog2:0] skip;
  logic [ StrbW-1:0] counted;
  logic [22:0] part, part_q;
  logic [31:0] acc_q;
  logic part_valid_q, part_last_q, sum_done_q;
  assign at = first_q ? '0 : at_q;
  always_comb begin
    skip = '0;
    if (hdr.csum_start >= 16'(at) + 16'(StrbW)) skip = (BeatLog2 + 1)'(StrbW);
    else if (hdr.csum_start > 16'(at)) skip = (BeatLog2 + 1)'(hdr.csum_start - 16'(at));
  end
  assign counted = beat.keep & ~keep_of(skip);
  always_comb begin
    part = '0;
    if (wants) begin
      for (int unsigned i = 0; i < StrbW; i += 2) begin
        part += 23'({beat.data[8*i+8+:8] & {8{counted[i+1]}}, beat.data[8*i+:8] & {8{counted[i]}}});
      end
    end
  end

  logic summing;
  assign summing  = take && !dropping && wants;
  assign sum_busy = part_last_q || sum_done_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      part_valid_q <= 1'b0;
      part_last_q  <= 1'b0;
      sum_done_q   <= 1'b0;
    end else begin
      part_valid_q <= summing;
      part_last_q  <= summing && beat.last;
      sum_done_q   <= part_last_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) at_q <= at + len_t'(StrbW);
    if (summing) part_q <= part;
    if (summing && first_q) acc_q <= '0;
    else if (part_valid_q) acc_q <= acc_q + 32'(part_q);
  end

  // ---------------------------------------------------------------- frames held, and what to change in them
  typedef struct packed {
    logic        insert;
    len_t        place;
    logic [15:0] value;   // byte at `place` in the low half
  } note_t;
  note_t note, head;
  vq_beat_t held;
  logic held_valid, out, out_room;
  logic [16:0] fold1;
  logic [15:0] fold2;
  logic head_valid, odd_q;
  len_t place_q;
  always_ff @(posedge clk_i) begin
    if (summing) begin
      place_q <= place[LenW-1:0];
      odd_q   <= hdr.csum_start[0];  // the words begin at odd bytes: the sum's halves change places
    end
  end
  assign fold1 = 17'(acc_q[15:0]) + 17'(acc_q[31:16]);
  assign fold2 = ~(fold1[15:0] + 16'(fold1[16]));
  always_comb begin
    note.insert = sum_done_q;
    note.place  = place_q;
    // Zero means no checksum in UDP; the other zero is the same number.
    note.value  = (fold2 == '0) ? '1 : odd_q ? {fold2[7:0], fold2[15:8]} : fold2;
  end
  assign note_put = sum_done_q || take && first_q && !dropping && !wants;

  via_fifo #(
    .T    (note_t),
    .Depth(8)
  ) u_notes (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (note),
    .s_valid_i(note_put),
    .s_ready_o(note_room),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(out && held.last),
    .count_o  ()
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
    .s_valid_i(take && !dropping),
    .s_ready_o(beat_room),
    .m_o      (held),
    .m_valid_o(held_valid),
    .m_ready_i(head_valid && out_room),
    .count_o  ()
  );
  assign out = held_valid && head_valid && out_room;

  len_t  out_at_q;
  strm_t s;
  always_comb begin
    s.id   = '0;
    s.last = held.last;
    s.keep = held.keep;
    s.data = held.data;
    if (head.insert) begin
      for (int unsigned i = 0; i < StrbW; i++) begin
        if (out_at_q + len_t'(i) == head.place) s.data[8*i+:8] = head.value[7:0];
        if (out_at_q + len_t'(i) == head.place + 1'b1) s.data[8*i+:8] = head.value[15:8];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) out_at_q <= '0;
    else if (out) out_at_q <= held.last ? '0 : out_at_q + len_t'(StrbW);
  end

  via_slice #(
    .T(strm_t)
  ) u_out (
    .clk_i,
    .rst_ni,
    .s_i      (s),
    .s_valid_i(held_valid && head_valid),
    .s_ready_o(out_room),
    .m_o      (tx_o),
    .m_valid_o(tx_valid_o),
    .m_ready_i(tx_ready_i)
  );

  // ---------------------------------------------------------------- answers
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

  assign moving_o = rd_valid_i && rd_ready_o || req_valid_i && req_ready_o || take || end_now || sum_busy || part_valid_q || out || tx_valid_o && tx_ready_i;
  assign idle_o = strip_idle && !req_valid && first_q && !sum_busy && !held_valid && !head_valid && !tx_valid_o && !rsp_valid_o;

endmodule
