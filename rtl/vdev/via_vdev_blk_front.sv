// SPDX-License-Identifier: Apache-2.0
//
// Checks the requests of the disk: removes the header, checks type, lengths and range, and decides on the op. The payload of a write
// follows on pay_o; other bytes of a chain are dropped.
// Every request that has a status byte becomes an op. Misuse: one without (no writable byte, or more than can be counted) raises fail_o.
// Three steps: checks of header and lengths alone, whether the range is in the store, the op. The payload of a request waits until its use
// is known.
// Throughput: three cycles a request, five with a payload, plus one for each of its beats. Latency: four cycles. Order: kept. Source:
// VIRTIO 1.3, 5.2.6.

module via_vdev_blk_front
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,
  input  fn_ctrl_t ctrl_i,       // settings: size, read-only, …
  input  logic     flushes_i,    // level: the driver has accepted VIRTIO_BLK_F_FLUSH
  input  vq_req_t  req_i,        // request
  input  logic     none_i,       // with req_i: it has no readable bytes
  input  logic     req_valid_i,
  output logic     req_ready_o,
  input  vq_beat_t rd_i,         // readable bytes of the request
  input  logic     rd_valid_i,
  output logic     rd_ready_o,
  output logic     fail_o,       // pulse: the request cannot be responded to
  output blk_op_t  op_o,         // checked request
  output logic     op_valid_o,
  input  logic     op_ready_i,
  output vq_beat_t pay_o,        // payload of a write
  output logic     pay_valid_o,
  input  logic     pay_ready_i,
  output logic     moving_o,     // level: something moves
  output logic     idle_o        // level: no request is in progress
);

  typedef enum logic [31:0] {
    TIn          = 32'd0,
    TOut         = 32'd1,
    TFlush       = 32'd4,
    TGetId       = 32'd8,
    TDiscard     = 32'd11,
    TWriteZeroes = 32'd13
  } type_e;
  typedef struct packed {
    logic [63:0] sector;
    logic [31:0] rsvd;
    logic [31:0] kind;
  } hdr_t;
  typedef struct packed {
    logic [31:0] flags;
    logic [31:0] count;
    logic [63:0] sector;
  } seg_t;
  typedef enum logic [1:0] {
    StHead,   // the beat of the header is at `beat`
    StSeg,    // receive the segment of discard or write zeroes
    StSegOp,  // ... it is complete
    StBody    // the rest of the chain
  } state_e;

  state_e state_q;
  hdr_t hdr;
  vq_beat_t beat;
  logic beat_valid, beat_ready, strip_ready, strip_idle, all_in_q, done;

  // Bytes after those of this request belong to the next one.
  assign rd_ready_o = req_valid_i && !none_i && !all_in_q && strip_ready;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || done) all_in_q <= 1'b0;
    else if (rd_valid_i && rd_ready_o && rd_i.last) all_in_q <= 1'b1;
  end
  via_vdev_strip #(
    .Bytes(BlkHeader)
  ) u_strip (
    .clk_i,
    .rst_ni,
    .s_i      (rd_i),
    .s_valid_i(rd_valid_i && req_valid_i && !none_i && !all_in_q),
    .s_ready_o(strip_ready),
    .m_o      (beat),
    .head_o   (hdr),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_ready),
    .idle_o   (strip_idle)
  );

  // ---------------------------------------------------------------- checks
  localparam int unsigned SegBeats = (BlkHeader + StrbW - 1) / StrbW;
  logic [SegBeats*DataW-1:0] seg_q;
  seg_t seg;
  assign seg = seg_q[BlkHeader*8-1:0];

  // ---- from header and lengths alone
  typedef struct packed {
    logic              is_in;       // the type is this one, and the lengths fit it
    logic              is_out;
    logic              is_flush;
    logic              is_id;
    logic              is_discard;  // with a segment
    logic              is_zeroes;
    logic              unknown;
    logic              bad_flags;   // of the segment
    logic              none;        // it covers no sector
    logic              few;         // ... no more than may be discarded, or zeroed
    logic              read_only;
    logic              below;       // the first sector is within the store
    logic [QueueW-1:0] queue;
    logic [31:0]       wlen;
    logic [31:0]       count;       // sectors
    logic [39:0]       sector;
    logic [39:0]       behind;      // sectors from there to the end of the store
  } step_t;
  step_t step, step_q;
  logic step_valid_q, op_valid_q, body_known_q, take, advance;
  blk_op_t op_q;

  logic headed, body, unanswerable, segmented, write_q, at_seg;
  logic [31:0] data_out, data_in;
  logic [63:0] sector;
  logic [40:0] behind;

  assign at_seg = state_q == StSegOp;
  assign headed = req_i.rlen >= 32'(BlkHeader);
  assign unanswerable = req_i.wlen == '0 || req_i.wlen == '1;
  assign segmented = headed && (hdr.kind == TDiscard || hdr.kind == TWriteZeroes) && req_i.rlen == 32'(2 * BlkHeader);
  assign data_out = req_i.rlen - 32'(BlkHeader);
  assign data_in = req_i.wlen - 32'd1;
  assign sector = at_seg ? seg.sector : hdr.sector;
  assign behind = 41'(ctrl_i.sectors) - 41'(sector[39:0]);

  always_comb begin
    step.is_in      = headed && hdr.kind == TIn && data_out == '0 && data_in[8:0] == '0 && data_in != '0;
    step.is_out     = headed && hdr.kind == TOut && data_out[8:0] == '0 && data_out != '0;
    step.is_flush   = headed && hdr.kind == TFlush;
    step.is_id      = headed && hdr.kind == TGetId && data_in >= 32'd20;
    step.is_discard = at_seg && hdr.kind == TDiscard;
    step.is_zeroes  = at_seg && hdr.kind == TWriteZeroes;
    step.unknown    = headed && !(hdr.kind inside {TIn, TOut, TFlush, TGetId, TDiscard, TWriteZeroes});
    step.bad_flags  = (hdr.kind == TDiscard) ? seg.flags != '0 : seg.flags[31:1] != '0;
    step.none       = seg.count == '0;
    step.few        = (hdr.kind == TDiscard) ? seg.count <= BlkDiscardMax : seg.count <= BlkZeroMax;
    step.read_only  = ctrl_i.read_only;
    step.below      = sector[63:40] == '0 && !behind[40];
    step.queue      = req_i.queue;
    step.wlen       = req_i.wlen;
    step.count      = at_seg ? seg.count : (hdr.kind == TOut) ? 32'(data_out[31:9]) : 32'(data_in[31:9]);
    step.sector     = sector[39:0];
    step.behind     = behind[39:0];
  end

  // ---- whether the range is in the store, and the op
  logic in_range;
  logic [7:0] status;
  blk_kind_e kind;
  blk_op_t op;
  assign in_range = step_q.below && 40'(step_q.count) <= step_q.behind;
  always_comb begin
    kind   = BlkResponse;
    status = BlkIoErr;
    if (step_q.is_in && in_range) kind = BlkRead;
    if (step_q.is_out && in_range && !step_q.read_only) kind = BlkWrite;
    if (step_q.is_flush) status = BlkOk;
    if (step_q.is_id) kind = BlkIdent;
    if (step_q.unknown) status = BlkUnsupp;
    if (step_q.is_discard || step_q.is_zeroes) begin
      if (step_q.bad_flags) status = BlkUnsupp;
      else if (in_range && step_q.few && !step_q.read_only) begin
        if (step_q.is_discard || step_q.none) status = BlkOk;
        else kind = BlkZero;
      end
    end
    op.kind = kind;
    op.app = ctrl_i.kind == AttachSlot;
    op.header = ctrl_i.header;
    // A driver that cannot flush relies on completed writes being durable.
    op.held = ctrl_i.flush.limit != '0 && (step_q.is_flush || kind inside {BlkWrite, BlkZero} && !flushes_i);
    op.queue = step_q.queue;
    op.status = status;
    op.wlen = step_q.wlen;
    op.len = step_q.count << 9;
    op.sector = step_q.sector;
    op.addr = 64'(ctrl_i.base) + {15'h0, step_q.sector, 9'h0};
  end
  assign advance = step_valid_q && (!op_valid_q || op_ready_i);
  assign op_o = op_q;
  assign op_valid_o = op_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_valid_q <= 1'b0;
      op_valid_q   <= 1'b0;
    end else begin
      step_valid_q <= take || step_valid_q && !advance;
      op_valid_q   <= advance || op_valid_q && !op_ready_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!step_valid_q) step_q <= step;
    if (advance) op_q <= op;
  end

  // ---------------------------------------------------------------- one request at a time
  logic at_head, begins;
  assign at_head = state_q == StHead && req_valid_i && (none_i || beat_valid);
  // One step at a time.
  assign take = !step_valid_q && !unanswerable && (at_head && !segmented || at_seg);
  assign fail_o = at_head && unanswerable;
  assign begins = fail_o || take;
  assign body = state_q == StBody && body_known_q;
  assign pay_valid_o = body && write_q && beat_valid;
  assign pay_o = beat;
  assign beat_ready = state_q == StSeg || body && (!write_q || pay_ready_i);
  assign done = at_head && none_i && begins || beat_valid && body && beat_ready && beat.last || at_seg && take;
  assign req_ready_o = done;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= StHead;
    else begin
      unique case (state_q)
        StHead:
        if (at_head && !none_i) begin
          if (begins) state_q <= StBody;
          else if (segmented) state_q <= StSeg;
        end
        StSeg:   if (beat_valid && beat.last) state_q <= StSegOp;
        StSegOp: if (take) state_q <= StHead;
        StBody:  if (done) state_q <= StHead;
        default: ;
      endcase
    end
  end
  // The use of the body is known with the op; of a request that fails, at once.
  always_ff @(posedge clk_i) begin
    if (state_q == StHead) begin
      body_known_q <= unanswerable;
      write_q      <= 1'b0;
    end else if (advance) begin
      body_known_q <= 1'b1;
      write_q      <= kind == BlkWrite;
    end
    if (state_q == StSeg && beat_valid) seg_q <= (SegBeats * DataW)'({beat.data, seg_q} >> DataW);
  end

  assign moving_o = rd_valid_i && rd_ready_o || step_valid_q || take || op_valid_o && op_ready_i || fail_o || beat_valid && beat_ready || at_head && segmented;
  assign idle_o = state_q == StHead && strip_idle && !step_valid_q && !op_valid_q;

endmodule
