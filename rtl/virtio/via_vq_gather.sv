// SPDX-License-Identifier: Apache-2.0
//
// Reads the device-readable buffers of chains: jobs become requests and one dense stream of beats (docs/interfaces.md, section 8).
//
//   job ─ descriptors ─ bursts (AR) ··· host ··· R ─ beats FIFO ─ rotate ─ pack ─> rd
//     └──────────── request ─────────────────────────────────────────────────> req
//
// Throughput: a chain of one descriptor per cycle, a burst per cycle, a beat per cycle: with all but the first and last beat of a buffer
// full the stream is full. Latency: job to AR 2 cycles, R to rd 4 cycles. Beats * StrbW bytes are in flight: what covers the link's latency.
// Order: jobs, requests, reads and data all in the order of the jobs. A request is offered once all descriptors of its chain are read from
// the store, so an early answer may free them.
// A burst is read only with room for all of it (no wedge). Misuse: a beat that reads with an error becomes zeros and is reported, the request
// is otherwise whole. A length that the descriptors do not add up to (`rlen`) is not noticed here: via_vq_fetch makes both.

module via_vq_gather
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ  = 2,
  parameter int unsigned Beats = 32768 / StrbW  // read ahead of the personality
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  vq_chain_t                 job_i,
  input  logic      [   QueueW-1:0] job_queue_i,
  input  logic                      job_valid_i,
  output logic                      job_ready_o,
  output logic                      a_re_o,
  output logic      [   QueueW-1:0] a_queue_o,
  output logic      [QSizeLog2-1:0] a_index_o,
  input  vq_desc_t                  a_desc_i,      // one cycle after a_re_o
  output axi_ax_t                   m_ar_o,
  output logic                      m_ar_valid_o,
  input  logic                      m_ar_ready_i,
  input  axi_r_t                    m_r_i,
  input  logic                      m_r_valid_i,
  output logic                      m_r_ready_o,
  output vq_req_t                   req_o,
  output logic                      req_valid_o,
  input  logic                      req_ready_i,
  output vq_beat_t                  rd_o,
  output logic                      rd_valid_o,
  input  logic                      rd_ready_i,
  output logic                      err_valid_o,   // pulse
  output logic      [   QueueW-1:0] err_queue_o,
  output logic      [     NumQ-1:0] quiet_o,       // nothing of this queue is held
  output logic                      still_o,
  output logic                      idle_o
);

  localparam bit NumQOk = param_in("via_vq_gather NumQ", NumQ, 1, QueuesMax);
  localparam bit BeatsOk = param_in("via_vq_gather Beats", Beats, MaxBurstBeats, 65536);

  localparam int unsigned CreditW = $clog2(Beats + 1);
  localparam int unsigned BurstW = $clog2(MaxBurstBeats + 1);
  localparam int unsigned MaxBytes = MaxBurstBeats * StrbW;
  localparam int unsigned Segments = 128;  // buffers in flight
  localparam int unsigned Requests = 64;  // offered to the personality and not taken
  localparam int unsigned OffW = BeatLog2;

  // ---------------------------------------------------------------- job to descriptors
  logic walk_q, walking, req_room, desc_room, last_desc;
  logic [QSizeLog2-1:0] index_q;
  logic [QSizeLog2:0] left_q, left;
  logic [QueueW-1:0] queue_q, queue;

  // A job is taken with its first descriptor; the rest of its walk does not need the port, where a job may be withdrawn. The request goes
  // out with it: the rest of a long chain is walked only as the personality takes the data.
  assign left = walk_q ? left_q : job_i.nread;
  assign queue = walk_q ? queue_q : job_queue_i;
  assign last_desc = left <= (QSizeLog2 + 1)'(1);
  assign job_ready_o = !walk_q && desc_room && req_room;
  assign walking = walk_q ? desc_room : job_valid_i && job_ready_o;
  assign a_re_o = walking && left != '0;
  assign a_queue_o = queue;
  assign a_index_o = walk_q ? index_q : job_i.first;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) walk_q <= 1'b0;
    else if (walking) walk_q <= !last_desc;
  end
  always_ff @(posedge clk_i) begin
    if (walking) begin
      index_q <= a_index_o + 1'b1;
      left_q  <= left - 1'b1;
      queue_q <= queue;
    end
  end

  via_fifo #(
    .T    (vq_req_t),
    .Depth(Requests)
  ) u_req (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{queue: job_queue_i, rlen: job_i.rlen, wlen: job_i.wlen}),
    .s_valid_i(walking && !walk_q),
    .s_ready_o(req_room),
    .m_o      (req_o),
    .m_valid_o(req_valid_o),
    .m_ready_i(req_ready_i),
    .count_o  ()
  );

  // Descriptors on their way from the store, and those that wait for their bursts.
  typedef struct packed {
    logic [QueueW-1:0] queue;
    logic              last;   // of the chain's readable ones
    logic [31:0]       len;
    logic [AddrW-1:0]  addr;
  } buf_t;
  buf_t got, cur;
  logic got_q, got_last_q, cur_valid, cur_pop;
  logic [QueueW-1:0] got_queue_q;
  logic [2:0] held;

  assign desc_room = held + 3'(got_q) < 3'd4;
  assign got = '{queue: got_queue_q, last: got_last_q, len: a_desc_i.len, addr: a_desc_i.addr};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) got_q <= 1'b0;
    else got_q <= a_re_o;
  end
  always_ff @(posedge clk_i) begin
    if (a_re_o) begin
      got_queue_q <= queue;
      got_last_q  <= last_desc;
    end
  end

  via_fifo #(
    .T    (buf_t),
    .Depth(4)
  ) u_desc (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (got),
    .s_valid_i(got_q),
    .s_ready_o(),
    .m_o      (cur),
    .m_valid_o(cur_valid),
    .m_ready_i(cur_pop),
    .count_o  (held)
  );

  // ---------------------------------------------------------------- descriptors to bursts
  logic [31:0] done_q, rest;  // bytes of `cur` asked for; those left
  logic [AddrW-1:0] at;
  logic [12:0] page, bytes;
  logic [BurstW-1:0] burst;
  logic issue, ar_room, seg_room, ends, beat_pop;
  logic [CreditW-1:0] credit_q;

  assign rest = cur.len - done_q;
  assign at = cur.addr + AddrW'(done_q);
  // Up to the next boundary of a burst's greatest size: none crosses 4 KiB.
  assign page = 13'(MaxBytes) - (at[12:0] & 13'(MaxBytes - 1));
  assign ends = rest <= 32'(page);
  assign bytes = ends ? rest[12:0] : page;
  assign burst = BurstW'((bytes + 13'(at[OffW-1:0]) + 13'(StrbW - 1)) >> BeatLog2);
  assign issue = cur_valid && ar_room && (seg_room || done_q != '0) && CreditW'(burst) <= credit_q;
  assign cur_pop = issue && ends;

  axi_ax_t ar;
  always_comb begin
    ar       = '0;
    ar.burst = 2'b01;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(burst - 1'b1);
    ar.addr  = {at[AddrW-1:OffW], OffW'(0)};
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(issue),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q   <= '0;
      credit_q <= CreditW'(Beats);
    end else begin
      if (issue) done_q <= ends ? '0 : done_q + 32'(bytes);
      if (issue || beat_pop) credit_q <= credit_q - (issue ? CreditW'(burst) : '0) + CreditW'(beat_pop);
    end
  end

  typedef struct packed {
    logic [QueueW-1:0] queue;
    logic              last;
    logic [OffW-1:0]   off;
    logic [31:0]       len;
  } seg_t;
  seg_t seg;
  logic seg_valid, seg_pop;

  via_fifo #(
    .T    (seg_t),
    .Depth(Segments)
  ) u_seg (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{queue: cur.queue, last: cur.last, off: cur.addr[OffW-1:0], len: cur.len}),
    .s_valid_i(issue && done_q == '0),
    .s_ready_o(seg_room),
    .m_o      (seg),
    .m_valid_o(seg_valid),
    .m_ready_i(seg_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- beats
  typedef struct packed {
    logic             err;
    logic [DataW-1:0] data;
  } beat_t;
  beat_t beat;
  logic beat_valid;
  logic [CreditW-1:0] beats_held;

  via_fifo #(
    .T    (beat_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({m_r_i.resp != RespOkay, m_r_i.data}),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_pop),
    .count_o  (beats_held)
  );

  // Bytes of this beat: `count` from `from` on. They go behind the `fill_q` bytes that wait in the packer.
  logic begun_q, seg_ends, chain_ends, rot_ready;
  logic [31:0] bytes_q, remain;
  logic [OffW-1:0] from, fill_q;
  logic [OffW:0] count, sum;

  assign from = begun_q ? '0 : seg.off;
  assign remain = begun_q ? bytes_q : seg.len;
  assign seg_ends = remain <= 32'(StrbW) - 32'(from);
  assign count = seg_ends ? remain[OffW:0] : (OffW + 1)'(StrbW) - (OffW + 1)'(from);
  assign chain_ends = seg_ends && seg.last;
  assign sum = (OffW + 1)'(fill_q) + count;
  assign beat_pop = beat_valid && seg_valid && rot_ready;
  assign seg_pop = beat_pop && seg_ends;
  assign err_valid_o = beat_pop && beat.err;
  assign err_queue_o = seg.queue;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q <= 1'b0;
      fill_q  <= '0;
    end else if (beat_pop) begin
      begun_q <= !seg_ends;
      fill_q  <= chain_ends ? '0 : sum[OffW-1:0];
    end
  end
  always_ff @(posedge clk_i) if (beat_pop) bytes_q <= remain - 32'(count);

  // ---------------------------------------------------------------- rotate
  logic rot_valid_q, rot_full_q, rot_last_q, rot_tail_q, pack_ready, tail_now_q;
  logic [OffW-1:0] rot_fill_q, rot_by, rot_rest_q;
  logic [QueueW-1:0] rot_queue_q;
  logic [DataW-1:0] rot_q, packed_beat;

  assign rot_by = fill_q - from;
  assign rot_ready = !rot_valid_q || pack_ready && (!rot_tail_q || tail_now_q);

  function automatic logic [DataW-1:0] rotate(input logic [DataW-1:0] d, input logic [OffW-1:0] by);
    return d << {by, 3'b0} | d >> {(OffW + 1)'(StrbW) - (OffW + 1)'(by), 3'b0};
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) rot_valid_q <= 1'b0;
    else if (rot_ready) rot_valid_q <= beat_pop;
  end
  always_ff @(posedge clk_i) begin
    if (beat_pop) begin
      rot_q       <= beat.err ? '0 : rotate(beat.data, rot_by);
      rot_fill_q  <= fill_q;
      rot_full_q  <= sum >= (OffW + 1)'(StrbW);
      rot_last_q  <= chain_ends;
      rot_tail_q  <= chain_ends && sum > (OffW + 1)'(StrbW);  // a beat more
      rot_rest_q  <= sum[OffW-1:0];  // bytes of the chain's final beat, 0 = all
      rot_queue_q <= seg.queue;
    end
  end

  // ---------------------------------------------------------------- pack
  // Bytes below `rot_fill_q` wait in acc_q; the rotated beat brings those above, and behind its end the first ones of the next.
  logic [DataW-1:0] acc_q;
  logic out_room, out_go, final_beat;
  vq_beat_t out;

  logic [DataW-1:0] fresh;
  assign fresh = {DataW{1'b1}} << {rot_fill_q, 3'b0};
  assign packed_beat = rot_q & fresh | acc_q & ~fresh;

  assign final_beat = rot_last_q && (!rot_tail_q || tail_now_q);
  assign out_go = rot_valid_q && (rot_full_q || rot_last_q);
  assign pack_ready = !out_go || out_room;

  always_comb begin
    out.last = final_beat;
    out.data = tail_now_q ? rot_q : packed_beat;
    out.keep = '1;
    if (final_beat) out.keep = {StrbW{1'b1}} >> OffW'(-rot_rest_q);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) tail_now_q <= 1'b0;
    else if (rot_valid_q && pack_ready) tail_now_q <= rot_tail_q && !tail_now_q;
  end
  always_ff @(posedge clk_i) if (rot_valid_q && pack_ready && !rot_last_q) acc_q <= rot_full_q ? rot_q : packed_beat;

  via_slice #(
    .T(vq_beat_t)
  ) u_out (
    .clk_i,
    .rst_ni,
    .s_i      (out),
    .s_valid_i(out_go),
    .s_ready_o(out_room),
    .m_o      (rd_o),
    .m_valid_o(rd_valid_o),
    .m_ready_i(rd_ready_i)
  );

  // ---------------------------------------------------------------- what is held of each queue
  // Counted from the descriptor taken to the buffer read; a request itself is still the queue's oldest chain in the store.
  localparam int unsigned HeldW = $clog2(Segments + 8);
  logic [NumQ-1:0][HeldW-1:0] open_q;
  for (genvar q = 0; q < NumQ; q++) begin : gen_open
    logic more, less;
    assign more = a_re_o && a_queue_o == QueueW'(q);
    assign less = seg_pop && seg.queue == QueueW'(q);
    assign quiet_o[q] = open_q[q] == '0 && !(rot_valid_q && rot_queue_q == QueueW'(q));
    always_ff @(posedge clk_i) begin
      if (!rst_ni) open_q[q] <= '0;
      else if (more != less) open_q[q] <= more ? open_q[q] + 1'b1 : open_q[q] - 1'b1;
    end
  end

  logic moves;
  assign moves = |{walking, got_q, issue, m_ar_valid_o, m_r_valid_i, beat_pop, rot_valid_q && pack_ready, req_valid_o && req_ready_i,
                   rd_valid_o && rd_ready_i};
  // A beat shows behind the memory a cycle or two after it came.
  assign still_o = !moves && (beat_valid || beats_held == '0);
  assign idle_o = !walk_q && !got_q && held == '0 && !seg_valid && !rot_valid_q && !req_valid_o && !rd_valid_o && !m_ar_valid_o;

endmodule
