// SPDX-License-Identifier: Apache-2.0
//
// Reads the device-readable buffers of chains: jobs become requests and one dense stream of beats (docs/interfaces.md, section 8).
//
//   job ─ descriptors ─ bursts (AR) ··· host ··· R ─ beats FIFO ─ rotate ─ pack ─> rd
//     └──────────── request ─────────────────────────────────────────────────> req
//
// Throughput: a chain of one descriptor per cycle, a beat per cycle, the first burst of a buffer per cycle, a further one every 3 cycles.
// If all beats of a buffer except the first and last are full, so is the stream. Latency, if nothing waits: job to AR 2 cycles, 1 if its
// descriptor comes with it; R to rd 2 cycles. Beats * StrbW bytes are in flight, to cover the latency of the link.
// Order: jobs, requests, reads and data all in the order of the jobs. A request is offered with its first descriptor; its response comes
// after all its bytes were accepted (docs/interfaces.md), when its descriptors are no longer needed.
// A burst is read only when there is room for all of it (docs/interfaces.md, section 1, No deadlocks). Misuse: a beat that is read with an
// error becomes zeros and is reported; the request is otherwise complete. A length (`rlen`) that differs from the sum of the descriptors is not detected here:
// via_vq_fetch provides both.

module via_vq_gather
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2,  // queues
  parameter int unsigned Beats = 32768 / StrbW  // capacity of the buffer in front of the personality
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  vq_chain_t                 job_i,         // chain with readable bytes
  input  vq_read_t                  job_desc_i,    // its only descriptor, if job_near_i is high
  input  logic                      job_near_i,    // level, with job_valid_i: job_desc_i is valid
  input  logic      [   QueueW-1:0] job_queue_i,   // its queue
  input  logic                      job_valid_i,
  output logic                      job_ready_o,
  output logic                      a_re_o,        // pulse: read a descriptor
  output logic      [   QueueW-1:0] a_queue_o,     // its queue
  output logic      [QSizeLog2-1:0] a_index_o,     // its index in the store
  input  vq_read_t                  a_desc_i,      // the descriptor, one cycle after a_re_o
  output axi_ax_t                   m_ar_o,
  output logic                      m_ar_valid_o,
  input  logic                      m_ar_ready_i,
  input  axi_r_t                    m_r_i,
  input  logic                      m_r_valid_i,
  output logic                      m_r_ready_o,
  output vq_req_t                   req_o,         // request
  output logic                      req_valid_o,
  input  logic                      req_ready_i,
  output vq_beat_t                  rd_o,          // its bytes
  output logic                      rd_valid_o,
  input  logic                      rd_ready_i,
  output logic                      err_valid_o,   // pulse: a read failed
  output logic      [   QueueW-1:0] err_queue_o,   // with err_valid_o: stop this queue
  output logic      [     NumQ-1:0] quiet_o,       // level: nothing of this queue is held
  output logic                      still_o,       // level: nothing moves unless an input changes
  output logic                      idle_o         // level: nothing is held
);

  localparam bit NumQOk = param_in("via_vq_gather NumQ", NumQ, 1, QueuesMax);
  localparam bit BeatsOk = param_in("via_vq_gather Beats", Beats, MaxBurstBeats, 65536);

  localparam int unsigned CreditW = $clog2(Beats + 1);
  localparam int unsigned MaxBytes = MaxBurstBeats * StrbW;
  localparam int unsigned Segments = 128;  // buffers in flight
  localparam int unsigned Requests = 64;  // offered to the personality and not accepted
  localparam int unsigned Descs = 8;  // descriptors waiting for their bursts
  localparam int unsigned OffW = BeatLog2;
  localparam int unsigned PageW = $clog2(MaxBytes);

  // ---------------------------------------------------------------- job to descriptors
  logic walk_q, walks_q, ready_q, starts, reads, room, left_one_q, job_some, job_one, last_desc, walk, steps;
  localparam int unsigned ReqW = $clog2(Requests + 1);
  logic [ReqW-1:0] req_count;
  logic [QSizeLog2-1:0] index_q;
  logic [QSizeLog2:0] left_q;
  logic [QueueW-1:0] queue_q;

  // A job is accepted with its first descriptor; the rest of its walk does not need the job port, where a job may be withdrawn. The request
  // is offered at the same time: the rest of a long chain is walked only as the personality accepts the data.
  assign job_some = job_i.nread != '0;
  assign job_one = job_i.nread[QSizeLog2:1] == '0;
  assign job_ready_o = ready_q;
  assign starts = job_valid_i && ready_q;
  assign steps = walks_q || starts;
  assign reads = walks_q || starts && job_some;
  assign walk = steps ? !last_desc : walk_q;
  assign last_desc = walk_q ? left_one_q : job_one;
  assign a_re_o = walks_q || ready_q;  // data read without a job, or for one without readable descriptors, is ignored
  assign a_queue_o = walk_q ? queue_q : job_queue_i;
  assign a_index_o = walk_q ? index_q : job_i.first;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      walk_q  <= 1'b0;
      walks_q <= 1'b0;
      ready_q <= 1'b0;
    end else begin
      walk_q  <= walk;
      walks_q <= walk && room;
      ready_q <= !walk && room && req_count < ReqW'(Requests - 1);
    end
  end
  always_ff @(posedge clk_i) begin
    if (steps) begin
      index_q    <= a_index_o + 1'b1;
      left_q     <= (walk_q ? left_q : job_i.nread) - 1'b1;
      left_one_q <= (walk_q ? left_q : job_i.nread) == (QSizeLog2 + 1)'(2);
      queue_q    <= a_queue_o;
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
    .s_valid_i(starts),
    .s_ready_o(),                                                           // ready_q reserves room
    .m_o      (req_o),
    .m_valid_o(req_valid_o),
    .m_ready_i(req_ready_i),
    .count_o  (req_count)
  );

  // Descriptors on their way from the store, and those waiting for their bursts: the oldest in cur_q.
  typedef struct packed {
    logic [QueueW-1:0] queue;
    logic              last;   // of the chain's readable ones
    logic [7:0]        beats;  // of the next burst, minus one
    logic              whole;  // it is the buffer's last
    logic [31:0]       len;    // bytes not yet requested
    logic [AddrW-1:0]  addr;
  } buf_t;
  buf_t got, fresh, behind, cur_q, src;
  logic got_q, got_last_q, near, behind_valid, cur_valid_q, cur_pop, cur_pop_q;
  logic [QueueW-1:0] got_queue_q;
  localparam int unsigned UsedW = $clog2(Descs + 1);
  logic [UsedW-1:0] used_q;

  assign room = used_q < UsedW'(Descs - 1) || used_q == UsedW'(Descs - 1) && !reads;
  assign got = '{
          queue: got_queue_q,
          last: got_last_q,
          beats: a_desc_i.beats,
          whole: a_desc_i.whole,
          len: a_desc_i.desc.len,
          addr: a_desc_i.desc.addr
      };

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      got_q     <= 1'b0;
      cur_pop_q <= 1'b0;
      used_q    <= '0;
    end else begin
      got_q     <= reads && !near;
      cur_pop_q <= cur_pop;
      if (reads != cur_pop_q) used_q <= reads ? used_q + 1'b1 : used_q - 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (reads) begin
      got_queue_q <= a_queue_o;
      got_last_q  <= last_desc;
    end
  end

  via_fifo #(
    .T    (buf_t),
    .Depth(Descs)
  ) u_desc (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (got),
    .s_valid_i(got_q && (cur_valid_q || behind_valid)),
    .s_ready_o(),
    .m_o      (behind),
    .m_valid_o(behind_valid),
    .m_ready_i(!cur_valid_q || cur_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- descriptors to bursts
  // A burst ends at the next boundary of the largest burst: none crosses 4 KiB. It is loaded into the register of the port and offered
  // there at once if there are plenty of credits, otherwise as soon as they suffice. The first burst of a buffer comes with the descriptor
  // from the store, straight from its memory if nothing waits; the next ones are computed in two steps.
  typedef enum logic [1:0] {
    CutReady,  // `beats` and `whole` are those of the next burst
    CutStep,   // advance past the burst that was accepted
    CutFind    // compute the next one
  } cut_e;
  cut_e cut_state_q;
  logic begin_q, begins, src_valid, take, seg_room_q, cut_q, ar_valid_q, ar_ready, charge_q, plenty_q, fits, beat_pop, beat_pop_q;
  logic [PageW-1:0] end_at;  // end of the remaining bytes, minus one
  logic [CreditW-1:0] credit_q;
  axi_ax_t ar_q;

  // A descriptor that comes with its job is used at once if no other waits.
  assign near = starts && job_near_i && !got_q && !cur_valid_q && !behind_valid;
  always_comb begin
    fresh = got;
    if (!got_q)
      fresh = '{
          queue: job_queue_i,
          last: 1'b1,
          beats: job_desc_i.beats,
          whole: job_desc_i.whole,
          len: job_desc_i.desc.len,
          addr: job_desc_i.desc.addr
      };
  end
  assign src = cur_valid_q ? cur_q : fresh;
  assign src_valid = cur_valid_q ? cut_state_q == CutReady : got_q && !behind_valid || near;
  assign begins = !cur_valid_q || begin_q;
  assign take = src_valid && (!cut_q || ar_valid_q && ar_ready) && (seg_room_q || !begins);
  assign cur_pop = take && src.whole;
  assign end_at = cur_q.len[PageW-1:0] - 1'b1;
  assign fits = cut_q && !ar_valid_q && CreditW'(ar_q.len) < credit_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cur_valid_q <= 1'b0;
      cut_state_q <= CutReady;
      cut_q       <= 1'b0;
      ar_valid_q  <= 1'b0;
      charge_q    <= 1'b0;
      beat_pop_q  <= 1'b0;
      credit_q    <= CreditW'(Beats);
      plenty_q    <= 1'b0;
    end else begin
      if (cur_valid_q) cur_valid_q <= !cur_pop || behind_valid;
      else cur_valid_q <= behind_valid || (got_q || near) && !cur_pop;
      // A buffer that needs more than this burst continues after it.
      if (take && !src.whole) cut_state_q <= CutStep;
      else if (!cur_valid_q || take) cut_state_q <= CutReady;
      else if (cut_state_q == CutStep) cut_state_q <= CutFind;
      else cut_state_q <= CutReady;
      cut_q      <= take || cut_q && !(ar_valid_q && ar_ready);
      ar_valid_q <= take ? plenty_q : fits || ar_valid_q && !ar_ready;
      charge_q   <= take && plenty_q || fits;
      beat_pop_q <= beat_pop;
      credit_q   <= credit_q - (charge_q ? CreditW'(ar_q.len) : '0) - CreditW'(charge_q) + CreditW'(beat_pop_q);
      // The two previous bursts are not yet counted.
      plenty_q   <= 32'(credit_q) >= 3 * MaxBurstBeats;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!cur_valid_q || cur_pop) begin
      cur_q   <= behind_valid ? behind : fresh;
      begin_q <= behind_valid || !take;
    end else begin
      if (take) begin_q <= 1'b0;
      if (cut_state_q == CutStep) begin
        cur_q.len  <= cur_q.len + {{32 - PageW{1'b1}}, cur_q.addr[PageW-1:0]};
        cur_q.addr <= {cur_q.addr[AddrW-1:PageW] + 1'b1, PageW'(0)};
      end
      if (cut_state_q == CutFind) begin
        cur_q.whole <= cur_q.len <= 32'(MaxBytes);
        cur_q.beats <= (cur_q.len <= 32'(MaxBytes)) ? 8'(end_at[PageW-1:OffW]) : 8'(MaxBurstBeats - 1);
      end
    end
    if (take) begin
      ar_q       <= '0;
      ar_q.burst <= BurstIncr;
      ar_q.size  <= 3'(BeatLog2);
      ar_q.len   <= src.beats;
      ar_q.addr  <= {src.addr[AddrW-1:OffW], OffW'(0)};
    end
  end
  // The readiness of the port depends on arbitration; the skid buffer keeps it out of the paths here.
  via_skid #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar_q),
    .s_valid_i(ar_valid_q),
    .s_ready_o(ar_ready),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  /// What the beats of a buffer contribute; for the current buffer, what its next beat contributes.
  typedef struct packed {
    logic [QueueW-1:0]     queue;
    logic                  last;
    logic                  ends;   // the beat is the buffer's last
    logic [OffW-1:0] from;         // first byte of the beat
    logic [OffW:0]         count;  // bytes of it
    logic [31:0]           more;   // bytes after it, if it is not the last
  } seg_t;
  seg_t seg_in, seg_next, seg_q;
  buf_t new_q;  // the buffer just begun
  logic new_valid_q, seg_valid_q, seg_waits, seg_pop;
  logic [$clog2(Segments+1)-1:0] segs;
  logic [OffW+1:0] seg_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      new_valid_q <= 1'b0;
      seg_room_q  <= 1'b1;
    end else begin
      new_valid_q <= take && begins;
      // Two may be on their way.
      seg_room_q  <= 32'(segs) < Segments - 2;
    end
  end
  always_ff @(posedge clk_i) new_q <= src;

  assign seg_end = (OffW + 2)'(new_q.addr[OffW-1:0]) + (OffW + 2)'(new_q.len[OffW:0]) - 1'b1;
  always_comb begin
    seg_in.queue = new_q.queue;
    seg_in.last  = new_q.last;
    seg_in.ends  = new_q.len[31:OffW+1] == '0 && seg_end[OffW+1:OffW] == '0;
    seg_in.from  = new_q.addr[OffW-1:0];
    seg_in.count = seg_in.ends ? new_q.len[OffW:0] : (OffW + 1)'(StrbW) - (OffW + 1)'(new_q.addr[OffW-1:0]);
    seg_in.more  = new_q.len + {{32 - OffW{1'b1}}, new_q.addr[OffW-1:0]};
  end

  via_fifo #(
    .T    (seg_t),
    .Depth(Segments)
  ) u_seg (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (seg_in),
    .s_valid_i(new_valid_q),
    .s_ready_o(),                         // seg_room_q reserves room
    .m_o      (seg_next),
    .m_valid_o(seg_waits),
    .m_ready_i(!seg_valid_q || seg_pop),
    .count_o  (segs)
  );

  // ---------------------------------------------------------------- beats
  typedef struct packed {
    logic             err;
    logic [DataW-1:0] data;
  } beat_t;
  beat_t beat_in, beat_held, beat;
  logic beat_valid, beat_hidden, beat_wait, beat_by;

  assign beat_in = '{err: m_r_i.resp != RespOkay, data: m_r_i.data};
  via_vq_fifo #(
    .T    (beat_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .s_i      (beat_in),
    .s_valid_i(m_r_valid_i && !beat_by),
    .s_ready_o(m_r_ready_o),
    .m_o      (beat_held),
    .m_valid_o(beat_wait),
    .m_ready_i(beat_pop),
    .count_o  (),
    .hidden_o (beat_hidden)
  );
  // A beat with none waiting before it need not pass the FIFO.
  assign beat = beat_wait ? beat_held : beat_in;
  assign beat_valid = beat_wait || m_r_valid_i && !beat_hidden;
  assign beat_by = !beat_wait && beat_pop;

  // Bytes of this beat: `count` starting at `from`. They are appended to the `fill_q` bytes in the packer.
  logic chain_ends, rot_ready, more_fits;
  logic [OffW-1:0] fill_q;
  logic [  OffW:0] sum;

  assign chain_ends = seg_q.ends && seg_q.last;
  assign sum = (OffW + 1)'(fill_q) + seg_q.count;
  assign beat_pop = beat_valid && seg_valid_q && rot_ready;
  assign seg_pop = beat_pop && seg_q.ends;
  assign more_fits = seg_q.more[31:OffW] == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      seg_valid_q <= 1'b0;
      fill_q      <= '0;
      err_valid_o <= 1'b0;
    end else begin
      if (!seg_valid_q || seg_pop) seg_valid_q <= seg_waits;
      if (beat_pop) fill_q <= chain_ends ? '0 : sum[OffW-1:0];
      err_valid_o <= beat_pop && beat.err;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!seg_valid_q || seg_pop) seg_q <= seg_next;
    else if (beat_pop) begin
      seg_q.from  <= '0;
      seg_q.ends  <= more_fits || seg_q.more == 32'(StrbW);
      seg_q.count <= more_fits ? {1'b0, seg_q.more[OffW-1:0]} : (OffW + 1)'(StrbW);
      seg_q.more  <= seg_q.more - 32'(StrbW);
    end
    err_queue_o <= seg_q.queue;
  end

  // ---------------------------------------------------------------- rotate
  // The beat carries its instructions for the packer: which bytes it contributes, and which bytes the chain's final beat has.
  logic rot_valid_q, rot_full_q, rot_out_q, rot_last_q, rot_tail_q, rot_ends_q, rot_leaves, pack_ready, tail_now_q;
  logic [  OffW-1:0] rot_by;
  logic [QueueW-1:0] rot_queue_q;
  logic [StrbW-1:0] rot_fresh_q, rot_keep_q;
  logic [DataW-1:0] rot_q;

  assign rot_by = fill_q - seg_q.from;
  assign rot_leaves = rot_valid_q && pack_ready && (!rot_tail_q || tail_now_q);
  assign rot_ready = !rot_valid_q || rot_leaves;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) rot_valid_q <= 1'b0;
    else if (rot_ready) rot_valid_q <= beat_pop;
  end
  always_ff @(posedge clk_i) begin
    if (rot_ready) begin
      rot_q       <= beat.err ? '0 : rotated(beat.data, rot_by);
      rot_full_q  <= sum[OffW];
      rot_out_q   <= sum[OffW] || chain_ends;
      rot_last_q  <= chain_ends;
      rot_tail_q  <= chain_ends && sum > (OffW + 1)'(StrbW);  // one more beat
      rot_ends_q  <= seg_q.ends;
      rot_queue_q <= seg_q.queue;
      for (int unsigned i = 0; i < StrbW; i++) begin
        rot_fresh_q[i] <= OffW'(i) >= fill_q;
        rot_keep_q[i]  <= OffW'(i) < sum[OffW-1:0] || sum[OffW-1:0] == '0;
      end
    end
  end

  // ---------------------------------------------------------------- pack
  // acc_q holds older bytes; the rotated beat brings the new ones, and wrapped around, the first bytes of the next output beat.
  logic [DataW-1:0] acc_q;
  logic out_room, out_go, final_beat;
  vq_beat_t out;

  assign final_beat = rot_last_q && (!rot_tail_q || tail_now_q);
  assign out_go = rot_valid_q && rot_out_q;
  assign pack_ready = !rot_out_q || out_room;

  always_comb begin
    out.last = final_beat;
    for (int unsigned i = 0; i < StrbW; i++) begin
      out.data[8*i+:8] = (tail_now_q || rot_fresh_q[i]) ? rot_q[8*i+:8] : acc_q[8*i+:8];
      out.keep[i] = !final_beat || rot_keep_q[i];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) tail_now_q <= 1'b0;
    else if (rot_valid_q && pack_ready) tail_now_q <= rot_tail_q && !tail_now_q;
  end
  always_ff @(posedge clk_i) begin
    if (rot_valid_q && pack_ready) begin
      for (int unsigned i = 0; i < StrbW; i++) if (rot_full_q || rot_fresh_q[i]) acc_q[8*i+:8] <= rot_q[8*i+:8];
    end
  end

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

  // ---------------------------------------------------------------- amount held of each queue
  // Counted from the descriptor accepted to the buffer packed; a request itself remains the queue's oldest chain in the store.
  localparam int unsigned HeldW = $clog2(Segments + Descs + 8);
  for (genvar q = 0; q < NumQ; q++) begin : gen_open
    logic more, less, some_q;
    logic [HeldW-1:0] open_q;
    assign more = reads && a_queue_o == QueueW'(q);
    assign less = rot_leaves && rot_ends_q && rot_queue_q == QueueW'(q);
    assign quiet_o[q] = !some_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        open_q <= '0;
        some_q <= 1'b0;
      end else if (more != less) begin
        open_q <= more ? open_q + 1'b1 : open_q - 1'b1;
        some_q <= more || open_q != HeldW'(1);
      end
    end
  end

  logic moves;
  assign moves = |{starts, reads, got_q, take, behind_valid && !cur_valid_q, cut_state_q != CutReady, new_valid_q, cur_pop_q, charge_q, fits, m_ar_valid_o && m_ar_ready_i, m_r_valid_i, beat_pop,
                   beat_pop_q, seg_waits && !seg_valid_q, rot_valid_q && pack_ready, req_valid_o && req_ready_i, rd_valid_o && rd_ready_i,
                   err_valid_o};
  // A beat becomes visible after the memory a cycle or two after it came.
  assign still_o = !moves && !beat_hidden;
  assign idle_o = !walk_q && used_q == '0 && !cut_q && !seg_valid_q && !seg_waits && !rot_valid_q && !req_valid_o && !rd_valid_o;

endmodule
