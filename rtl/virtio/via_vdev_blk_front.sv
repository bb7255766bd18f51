// SPDX-License-Identifier: Apache-2.0
//
// Requests of the disk, checked: takes the header off, looks at type, lengths and range, says what is to be done. The payload of a write
// follows on pay_o; what else lies in a chain is dropped.
// Every request that has a status byte becomes an op. One without (no writable byte, or more than can be counted) raises fail_o.
// Throughput: three cycles a request, one beat of payload a cycle. Latency: two cycles. Source: VIRTIO 1.3, 5.2.6.

module via_vdev_blk_front
  import via_pkg::*;
  import via_virtio_pkg::*;
  import via_vdev_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,
  input  fn_ctrl_t ctrl_i,
  input  logic     flushes_i,    // the driver flushes
  input  vq_req_t  req_i,
  input  logic     req_valid_i,
  output logic     req_ready_o,
  input  vq_beat_t rd_i,
  input  logic     rd_valid_i,
  output logic     rd_ready_o,
  output logic     fail_o,
  output blk_op_t  op_o,
  output logic     op_valid_o,
  input  logic     op_ready_i,
  output vq_beat_t pay_o,
  output logic     pay_valid_o,
  input  logic     pay_ready_i,
  output logic     moving_o,
  output logic     idle_o
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
    StHead,   // the header's beat stands at `beat`
    StSeg,    // the segment of discard and write zeroes comes in
    StSegOp,  // ... and is there
    StBody    // the rest of the chain
  } state_e;

  state_e state_q;
  hdr_t hdr;
  vq_beat_t beat;
  logic beat_valid, beat_ready, strip_ready, strip_idle, all_in_q, none, done;

  // The bytes behind this request's are another's.
  assign none = req_i.rlen == '0;
  assign rd_ready_o = req_valid_i && !none && !all_in_q && strip_ready;
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
    .s_valid_i(rd_valid_i && req_valid_i && !none && !all_in_q),
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

  logic headed, body, in_range, unanswerable, segmented, write_q;
  logic [31:0] data_out, data_in, count;
  logic [63:0] sector;
  logic [7:0] status;
  blk_kind_e kind;

  assign headed = req_i.rlen >= 32'(BlkHeader);
  assign unanswerable = req_i.wlen == '0 || req_i.wlen == '1;
  assign segmented = headed && (hdr.kind == TDiscard || hdr.kind == TWriteZeroes) && req_i.rlen == 32'(2 * BlkHeader);
  assign data_out = req_i.rlen - 32'(BlkHeader);
  assign data_in = req_i.wlen - 32'd1;

  always_comb begin
    sector = hdr.sector;
    count  = 32'(data_in[31:9]);
    if (hdr.kind == TOut) count = 32'(data_out[31:9]);
    if (state_q == StSegOp) begin
      sector = seg.sector;
      count  = seg.count;
    end
  end
  assign in_range = sector[63:40] == '0 && 42'(sector[39:0]) + 42'(count) <= 42'(ctrl_i.sectors);

  always_comb begin
    kind   = BlkAnswer;
    status = BlkIoErr;
    if (headed && !none) begin
      unique case (hdr.kind)
        TIn: if (data_out == '0 && data_in[8:0] == '0 && data_in != '0 && in_range) kind = BlkRead;
        TOut: if (data_out[8:0] == '0 && data_out != '0 && in_range && !ctrl_i.read_only) kind = BlkWrite;
        TFlush: status = BlkOk;
        TGetId: if (data_in >= 32'd20) kind = BlkIdent;
        TDiscard:
        if (state_q == StSegOp) begin
          if (seg.flags != '0) status = BlkUnsupp;
          else if (in_range && seg.count <= BlkDiscardMax && !ctrl_i.read_only) status = BlkOk;
        end
        TWriteZeroes:
        if (state_q == StSegOp) begin
          if (seg.flags[31:1] != '0) status = BlkUnsupp;
          else if (in_range && seg.count <= BlkZeroMax && !ctrl_i.read_only) begin
            if (seg.count == '0) status = BlkOk;
            else kind = BlkZero;
          end
        end
        default: status = BlkUnsupp;
      endcase
    end
  end

  always_comb begin
    op_o.kind = kind;
    op_o.app = ctrl_i.kind == AttachSlot;
    op_o.header = ctrl_i.header;
    // A driver that cannot flush relies on what is answered.
    op_o.held   = ctrl_i.flush.limit != '0 && (kind == BlkAnswer && status == BlkOk && hdr.kind == TFlush ||
                                               kind inside {BlkWrite, BlkZero} && !flushes_i);
    op_o.queue = req_i.queue;
    op_o.status = status;
    op_o.wlen = req_i.wlen;
    op_o.len = count << 9;
    op_o.sector = sector[39:0];
    op_o.addr = 64'(ctrl_i.base) + {15'h0, sector[39:0], 9'h0};
  end

  // ---------------------------------------------------------------- one request after the other
  logic at_head;
  assign at_head = state_q == StHead && req_valid_i && (none || beat_valid);
  assign op_valid_o = !unanswerable && (at_head && !segmented || state_q == StSegOp);
  assign fail_o = at_head && unanswerable;
  assign body = state_q == StBody;
  assign pay_valid_o = body && write_q && beat_valid;
  assign pay_o = beat;
  assign beat_ready = state_q == StSeg || body && (!write_q || pay_ready_i);
  assign done = at_head && none && (fail_o || op_valid_o && op_ready_i) || beat_valid && body && beat_ready && beat.last ||
                state_q == StSegOp && op_ready_i;
  assign req_ready_o = done;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= StHead;
    else begin
      unique case (state_q)
        StHead:
        if (at_head && !none) begin
          if (unanswerable || op_valid_o && op_ready_i) state_q <= StBody;
          else if (segmented) state_q <= StSeg;
        end
        StSeg:   if (beat_valid && beat.last) state_q <= StSegOp;
        StSegOp: if (op_ready_i) state_q <= StHead;
        StBody:  if (done) state_q <= StHead;
        default: ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StHead) write_q <= !unanswerable && kind == BlkWrite;
    if (state_q == StSeg && beat_valid) seg_q <= (SegBeats * DataW)'({beat.data, seg_q} >> DataW);
  end

  assign moving_o = rd_valid_i && rd_ready_o || op_valid_o && op_ready_i || fail_o || beat_valid && beat_ready || at_head && segmented;
  assign idle_o   = state_q == StHead && strip_idle;

endmodule
