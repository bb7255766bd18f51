// SPDX-License-Identifier: Apache-2.0
//
// Copies byte ranges from one AXI port to another, any alignment of source and destination: the data path of a channel.
//
//   job ─> AR bursts ─> R ─> raw beats ─> shift and merge ─> beats of the destination ─> AW, W ─> B ─> done
//                            (credits)    (one barrel shifter)  (whole bursts)
//
// Throughput: one beat a cycle; a descriptor whose ends are aligned differently at source and destination costs one cycle more.
// Latency: that of the read, the length of a burst, eleven cycles. Order: jobs end in order.
// A burst is read only when there is room for all of it, and written only once all of it is here (docs/interfaces.md, section 1,
// No deadlocks).
// A burst of which anything was read with an error is not written. A range outside host addresses or outside the memory that the card has
// is an error of that job, and nothing of it is moved. After the first error that enabled_i selects nothing more is written, until clear_i;
// done_err_o reports the error for its job and all later ones. Other errors are ignored.
// With fixed_i every beat of a job goes to, or comes from, the same card address, which must be aligned to a beat unless the job has one
// beat only.
// A job of no bytes moves nothing. Misuse: clear_i is allowed only with idle_o.

module via_xdma_mover
  import via_pkg::*;
  import via_xdma_pkg::*;
#(
  parameter bit          C2h      = 1'b0,               // from card memory to the host
  parameter int unsigned HostBits = 52,                 // width of host addresses
  parameter int unsigned Beats    = 8 * MaxBurstBeats,  // capacity of the buffer between reads and writes
  parameter int unsigned Jobs     = 32                  // jobs in flight
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic       [31:0] chan_mib_i,        // size of each DRAM channel in MiB, constant
  input  logic              clear_i,           // one-cycle pulse: forget the error
  input  logic       [31:0] enabled_i,         // level: errors that stop, bits as in the status register
  input  logic              fixed_i,           // level, for jobs accepted: the card address does not advance
  input  xdma_desc_t        job_i,             // err is ignored
  input  logic              job_valid_i,
  output logic              job_ready_o,
  output logic              done_o,            // one-cycle pulse per job; the receiver always has room
  output logic              done_stop_o,       // with it: the last job of the list
  output logic              done_completed_o,  // with it: the job asks for its completion to be reported
  output xdma_err_e         done_err_o,        // with it: error, or XErrNone
  output logic              beat_o,            // one-cycle pulse: a beat was written, for the performance counter
  output axi_ax_t           m_ar_o,
  output logic              m_ar_valid_o,
  input  logic              m_ar_ready_i,
  input  axi_r_t            m_r_i,
  input  logic              m_r_valid_i,
  output logic              m_r_ready_o,
  output axi_ax_t           m_aw_o,
  output logic              m_aw_valid_o,
  input  logic              m_aw_ready_i,
  output axi_w_t            m_w_o,
  output logic              m_w_valid_o,
  input  logic              m_w_ready_i,
  input  axi_b_t            m_b_i,
  input  logic              m_b_valid_i,
  output logic              m_b_ready_o,
  output logic              idle_o             // level: no job is in flight
);

  localparam bit HostBitsOk = param_in("via_xdma_mover HostBits", HostBits, PageLog2, 52);
  localparam bit BeatsOk = param_in("via_xdma_mover Beats", Beats, MaxBurstBeats, 65536);
  localparam bit JobsOk = param_in("via_xdma_mover Jobs", Jobs, 1, 1024);

  localparam int unsigned CreditW = $clog2(Beats + 1);
  localparam int unsigned BurstLog2 = $clog2(MaxBurstBeats);
  localparam int unsigned Window = 64;  // bursts in flight at the write side
  localparam int unsigned CountW = 28 - BeatLog2 + 1;  // beats of a job

  typedef logic [BeatLog2-1:0] offset_t;
  typedef logic [CountW-1:0] count_t;

  // Number of beats minus one, of a length minus one.
  function automatic count_t beats_of(input offset_t offset, input logic [27:0] less);
    return count_t'((29'(offset) + 29'(less)) >> BeatLog2);
  endfunction

  // ---------------------------------------------------------------- jobs
  typedef struct packed {
    logic        completed;
    logic        stop;
    logic        fixed;
    logic        none;       // no bytes
    logic [63:0] src;
    logic [63:0] dst;
    logic [63:0] src_last;   // address of the last byte; the card's is not checked with `fixed`
    logic [63:0] dst_last;
    count_t      raws_less;  // beats read, minus one
    count_t      outs_less;  // beats written, minus one
  } job_t;
  job_t job;
  logic job_valid, job_ready;

  via_slice #(
    .T(job_t)
  ) u_job (
    .clk_i,
    .rst_ni,
    .s_i(
    '{
        completed: job_i.completed,
        stop: job_i.stop,
        fixed: fixed_i,
        none: job_i.none,
        src: job_i.src,
        dst: job_i.dst,
        src_last: job_i.src + 64'(job_i.less),
        dst_last: job_i.dst + 64'(job_i.less),
        raws_less: beats_of(job_i.src[BeatLog2-1:0], job_i.less),
        outs_less: beats_of(job_i.dst[BeatLog2-1:0], job_i.less)
    }
    ),
    .s_valid_i(job_valid_i),
    .s_ready_o(job_ready_o),
    .m_o(job),
    .m_valid_o(job_valid),
    .m_ready_i(job_ready)
  );

  // ---------------------------------------------------------------- valid address ranges

  // The end of a range that begins below 2^HostBits cannot wrap; the same holds for card addresses.
  function automatic logic no_host(input logic [63:0] first, input logic [63:0] last);
    return ((first | last) >> HostBits) != '0;
  endfunction

  logic src_bad, dst_bad, misplaced;
  if (C2h) begin : gen_c2h
    assign src_bad   = card_outside(job.src, job.fixed ? job.src : job.src_last, chan_mib_i);
    assign dst_bad   = no_host(job.dst, job.dst_last);
    assign misplaced = job.fixed && job.src[BeatLog2-1:0] != '0 && job.raws_less != '0;
  end else begin : gen_h2c
    assign src_bad   = no_host(job.src, job.src_last);
    assign dst_bad   = card_outside(job.dst, job.fixed ? job.dst : job.dst_last, chan_mib_i);
    assign misplaced = job.fixed && job.dst[BeatLog2-1:0] != '0 && job.outs_less != '0;
  end

  // ---------------------------------------------------------------- what the aligner needs of a job
  typedef struct packed {
    xdma_err_e        err;
    logic             none;       // moves nothing
    logic             completed;
    logic             stop;
    logic             fixed;      // the destination does not advance
    count_t           raws;       // beats read
    count_t           outs;       // beats written
    logic             out_one;    // one beat written
    logic             prime;      // the first beat written needs two beats read
    offset_t          shift;      // bytes the data moves down in a beat, modulo a beat
    offset_t          tail;       // bytes of the last beat written, 0 = all
    logic [AddrW-1:0] dst;
  } work_t;
  work_t work;

  always_comb begin
    work           = '0;  // err and none: behind the slice
    work.err       = XErrNone;
    work.completed = job.completed;
    work.stop      = job.stop;
    work.fixed     = !C2h && job.fixed;
    work.raws      = job.raws_less + 1'b1;
    work.outs      = job.outs_less + 1'b1;
    work.out_one   = job.outs_less == '0;
    work.prime     = job.src[BeatLog2-1:0] > job.dst[BeatLog2-1:0];
    work.shift     = job.src[BeatLog2-1:0] - job.dst[BeatLog2-1:0];
    work.tail      = job.dst_last[BeatLog2-1:0] + 1'b1;
    work.dst       = job.dst;
  end

  // ---------------------------------------------------------------- jobs to read bursts
  // A job that has been checked: its first burst is known. Later bursts begin at a multiple of the longest burst.
  typedef struct packed {
    work_t                   work;
    logic                    empty;
    logic                    misplaced;
    logic                    src_bad;
    logic                    dst_bad;
    logic                    still;      // the source address does not advance
    logic                    one;        // the first burst is the whole job
    logic [BurstLog2:0]      burst;
    count_t                  rest;       // beats after it, if there are any
    logic [AddrW-1:BeatLog2] src;
  } plan_t;
  plan_t plan, next;
  logic next_valid, next_ready;
  logic [BurstLog2-1:0] to_page;  // beats, minus one

  assign to_page = ~job.src[BeatLog2+:BurstLog2];
  always_comb begin
    plan.work      = work;
    plan.empty     = job.none;
    plan.misplaced = misplaced;
    plan.src_bad   = src_bad;
    plan.dst_bad   = dst_bad;
    plan.still     = C2h && job.fixed;
    plan.src       = job.src[AddrW-1:BeatLog2];
    plan.one       = job.raws_less[CountW-1:BurstLog2] == '0 && job.raws_less[BurstLog2-1:0] <= to_page;
    plan.burst     = (BurstLog2 + 1)'(plan.one ? job.raws_less[BurstLog2-1:0] : to_page) + 1'b1;
    plan.rest      = job.raws_less - count_t'(to_page);
    if (plan.still) begin
      plan.one   = job.raws_less == '0;
      plan.burst = (BurstLog2 + 1)'(1);
      plan.rest  = job.raws_less;
    end
  end

  via_slice #(
    .T(plan_t)
  ) u_plan (
    .clk_i,
    .rst_ni,
    .s_i      (plan),
    .s_valid_i(job_valid),
    .s_ready_o(job_ready),
    .m_o      (next),
    .m_valid_o(next_valid),
    .m_ready_i(next_ready)
  );

  work_t next_work;
  always_comb begin
    next_work      = next.work;
    next_work.none = next.empty || next.misplaced || next.src_bad || next.dst_bad;
    if (!next.empty) begin
      if (next.misplaced) next_work.err = XErrAlign;
      else if (next.src_bad) next_work.err = XErrReadDec;
      else if (next.dst_bad) next_work.err = XErrWriteDec;
    end
  end

  logic take, issue, ends, ar_room, jobs_room;
  logic busy_q, still_q, last_q;  // last: the current burst is the job's last
  logic [AddrW-1:BeatLog2] src_q;
  count_t rest_q, rest_less;
  logic [BurstLog2:0] burst_q, burst_next;
  logic [CreditW-1:0] credit_q;
  logic raw_pop, raw_pop_q, last_next;

  // Whether there is room for the current burst, from a register: after a burst or a job was accepted there is, if there was room for two
  // of the longest before; otherwise it is known a cycle later.
  logic fits_q;
  assign issue = busy_q && ar_room && fits_q;
  assign ends = issue && last_q;
  assign next_ready = (!busy_q || ends) && jobs_room;
  assign take = next_valid && next_ready;

  always_comb begin
    if (still_q) begin
      burst_next = (BurstLog2 + 1)'(1);
      rest_less  = rest_q - 1'b1;
      last_next  = rest_q == count_t'(1);
    end else begin
      burst_next = (rest_q >= count_t'(MaxBurstBeats)) ? (BurstLog2 + 1)'(MaxBurstBeats) : (BurstLog2 + 1)'(rest_q);
      rest_less  = (rest_q >= count_t'(MaxBurstBeats)) ? rest_q - count_t'(MaxBurstBeats) : '0;
      last_next  = rest_q <= count_t'(MaxBurstBeats);
    end
  end

  // A buffer entry that becomes free counts a cycle later.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q    <= 1'b0;
      raw_pop_q <= 1'b0;
      fits_q    <= 1'b0;
      credit_q  <= CreditW'(Beats);
    end else begin
      if (take) busy_q <= !next_work.none;
      else if (ends) busy_q <= 1'b0;
      raw_pop_q <= raw_pop;
      fits_q <= (take || issue) ? 32'(credit_q) >= 2 * MaxBurstBeats : CreditW'(burst_q) <= credit_q;
      if (issue || raw_pop_q) credit_q <= credit_q - (issue ? CreditW'(burst_q) : '0) + CreditW'(raw_pop_q);
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      src_q   <= next.src;
      burst_q <= next.burst;
      rest_q  <= next.rest;
      last_q  <= next.one;
      still_q <= next.still;
    end else if (issue) begin
      if (!still_q) src_q <= {src_q[AddrW-1:BeatLog2+BurstLog2] + 1'b1, BurstLog2'(0)};
      burst_q <= burst_next;
      rest_q  <= rest_less;
      last_q  <= last_next;
    end
  end

  axi_ax_t ar;
  always_comb begin
    ar       = '0;
    ar.burst = BurstIncr;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(burst_q - 1'b1);
    ar.addr  = {src_q, BeatLog2'(0)};
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

  work_t fresh, cur_q;
  logic fresh_valid, cur_valid_q, cur_ends;

  via_fifo #(
    .T    (work_t),
    .Depth(Jobs)
  ) u_jobs (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (next_work),
    .s_valid_i(take),
    .s_ready_o(jobs_room),
    .m_o      (fresh),
    .m_valid_o(fresh_valid),
    .m_ready_i(!cur_valid_q || cur_ends),
    .count_o  ()
  );

  // ---------------------------------------------------------------- raw beats
  typedef struct packed {
    axi_resp_e        resp;
    logic [DataW-1:0] data;
  } raw_t;
  raw_t raw;
  logic raw_valid;

  via_fifo #(
    .T    (raw_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_raw (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{resp: m_r_i.resp, data: m_r_i.data}),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      (raw),
    .m_valid_o(raw_valid),
    .m_ready_i(raw_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- align
  // Byte j of a written beat is byte j + shift of two consecutive beats read.
  logic [DataW-1:0] merged, prev_q;
  logic first_q, go, priming, out_push, chunk_push, chunk_end, out_room, chunk_room;
  count_t raws_left_q, outs_left_q;
  logic raw_left_q, out_last_q;  // raws_left_q is not 0; outs_left_q is 1
  logic part_last_q;  // the beat to be written is the last one before a multiple of the longest burst, or is a burst of its own
  logic [AddrW-1:BeatLog2] at_q, chunk_at_q;
  logic lead_q;  // the burst being assembled is the job's first
  xdma_err_e bad_q, bad, prev_bad_q, raw_bad;  // of the burst being assembled, of what is kept of the last beat read, of the one offered

  assign priming = cur_q.prime && first_q;
  assign go = cur_valid_q && chunk_room && (cur_q.none || out_room && (!raw_left_q || raw_valid));
  assign raw_pop = go && !cur_q.none && raw_left_q;
  assign out_push = go && !cur_q.none && !priming;
  assign chunk_end = out_last_q || part_last_q;
  assign chunk_push = go && cur_q.none || out_push && chunk_end;
  assign cur_ends = go && (cur_q.none || !priming && out_last_q);

  // Inside a condition, as a simulator would otherwise evaluate the shifter in every cycle.
  always_comb begin
    merged = raw.data;
    if (cur_valid_q && cur_q.shift != '0) merged = DataW'({raw.data, prev_q} >> {cur_q.shift, 3'b000});
  end

  always_comb begin
    raw_bad = XErrNone;
    if (raw_left_q && raw.resp == RespSlvErr) raw_bad = XErrReadSlv;
    if (raw_left_q && raw.resp == RespDecErr) raw_bad = XErrReadDec;
    bad = bad_q;
    if (bad == XErrNone) bad = prev_bad_q;
    if (bad == XErrNone) bad = raw_bad;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) cur_valid_q <= 1'b0;
    else if (!cur_valid_q || cur_ends) cur_valid_q <= fresh_valid;
  end
  always_ff @(posedge clk_i) begin
    if (fresh_valid && (!cur_valid_q || cur_ends)) begin
      cur_q       <= fresh;
      first_q     <= 1'b1;
      lead_q      <= 1'b1;
      raws_left_q <= fresh.raws;
      raw_left_q  <= !fresh.none;
      out_last_q  <= fresh.out_one;
      part_last_q <= (&fresh.dst[BeatLog2+:BurstLog2]) || fresh.fixed;
      outs_left_q <= fresh.outs;
      at_q        <= fresh.dst[AddrW-1:BeatLog2];
      chunk_at_q  <= fresh.dst[AddrW-1:BeatLog2];
      bad_q       <= fresh.err;
      prev_bad_q  <= XErrNone;
    end else if (go) begin
      first_q    <= 1'b0;
      bad_q      <= (out_push && chunk_end) ? XErrNone : bad;
      prev_bad_q <= (cur_q.shift != '0) ? raw_bad : XErrNone;
      if (raw_pop) begin
        raws_left_q <= raws_left_q - 1'b1;
        raw_left_q  <= raws_left_q != count_t'(1);
      end
      if (out_push) begin
        outs_left_q <= outs_left_q - 1'b1;
        out_last_q  <= outs_left_q == count_t'(2);
        if (!cur_q.fixed) at_q <= at_q + 1'b1;
        part_last_q <= (at_q[BeatLog2+:BurstLog2] == BurstLog2'(MaxBurstBeats - 2)) || cur_q.fixed;
        if (chunk_end && !cur_q.fixed) chunk_at_q <= at_q + 1'b1;
        if (chunk_end) lead_q <= 1'b0;
      end
    end
    if (raw_pop && cur_q.shift != '0) prev_q <= raw.data;
  end

  typedef struct packed {
    xdma_err_e               err;
    logic                    spoilt;     // something was read with an error, even one that does not stop
    logic                    none;
    logic                    job_end;
    logic                    completed;
    logic                    stop;
    logic [7:0]              len;        // beats - 1
    logic                    one;        // a single beat
    offset_t                 lead;       // bytes before the first
    offset_t                 tail;
    logic [AddrW-1:BeatLog2] at;
  } chunk_t;
  chunk_t chunk, made, head;
  logic made_valid, made_ready, head_valid, head_pop, out_valid, out_pop;
  logic [DataW-1:0] out;

  always_comb begin
    chunk.err       = bad;
    chunk.spoilt    = 1'b0;  // behind the FIFO
    chunk.none      = cur_q.none;
    chunk.job_end   = cur_ends;
    chunk.completed = cur_q.completed;
    chunk.stop      = cur_q.stop;
    chunk.len       = 8'(at_q - chunk_at_q);
    chunk.one       = at_q[BeatLog2+:8] == chunk_at_q[BeatLog2+:8];
    chunk.lead      = lead_q ? cur_q.dst[BeatLog2-1:0] : '0;
    chunk.tail      = cur_ends ? cur_q.tail : '0;
    chunk.at        = chunk_at_q;
  end

  via_fifo #(
    .T    (chunk_t),
    .Depth(16)
  ) u_chunks (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (chunk),
    .s_valid_i(chunk_push),
    .s_ready_o(chunk_room),
    .m_o      (made),
    .m_valid_o(made_valid),
    .m_ready_i(made_ready),
    .count_o  ()
  );

  // What is written is decided from a register. An error that does not stop is dropped here: decided once, as the control register may
  // change meanwhile.
  chunk_t decided;
  always_comb begin
    decided        = made;
    decided.spoilt = made.err != XErrNone;
    if (!err_stops(made.err, enabled_i)) decided.err = XErrNone;
  end
  via_slice #(
    .T(chunk_t)
  ) u_head (
    .clk_i,
    .rst_ni,
    .s_i      (decided),
    .s_valid_i(made_valid),
    .s_ready_o(made_ready),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(head_pop)
  );

  via_fifo #(
    .T    (logic [DataW-1:0]),
    .Depth(2 * MaxBurstBeats),
    .Ram  (1'b1)
  ) u_out (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (merged),
    .s_valid_i(out_push),
    .s_ready_o(out_room),
    .m_o      (out),
    .m_valid_o(out_valid),
    .m_ready_i(out_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- write
  typedef struct packed {
    xdma_err_e err;
    logic      none;       // no burst was written
    logic      job_end;
    logic      completed;
    logic      stop;
  } wait_t;
  wait_t first;
  logic first_valid, first_pop, wait_room, aw_room, w_room;
  logic beat_go, beat_drop, last_beat, drop_q, drop, kill_q;
  logic [7:0] after_q;  // number of the next beat of the burst
  logic begin_q, final_q;  // the current beat is the burst's first; its last, if it is not the first
  logic failed_q;  // err_q holds an error
  xdma_err_e err_q, err, b_err;

  // A burst is written or dropped as a whole: an error that arrives within it takes effect with the next one.
  assign drop = head.spoilt || (begin_q ? kill_q || failed_q : drop_q);
  assign last_beat = begin_q ? head.one : final_q;
  assign beat_drop = head_valid && !head.none && drop && out_valid && wait_room;
  assign beat_go = head_valid && !head.none && !drop && out_valid && aw_room && w_room && wait_room;
  assign out_pop = head_valid && !head.none && (drop || aw_room && w_room) && out_valid && wait_room;
  assign head_pop = head_valid && head.none && wait_room || out_pop && last_beat;
  assign beat_o = beat_go;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      after_q <= 8'd1;
      begin_q <= 1'b1;
      drop_q  <= 1'b0;
    end else if (out_pop) begin
      after_q <= last_beat ? 8'd1 : after_q + 1'b1;
      begin_q <= last_beat;
      drop_q  <= drop;
    end
  end
  always_ff @(posedge clk_i) if (out_pop) final_q <= after_q == head.len;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) kill_q <= 1'b0;
    else if (head_pop && head.err != XErrNone) kill_q <= 1'b1;  // later bursts must not wait for this error to reach its turn
  end

  axi_ax_t aw;
  axi_w_t  w;
  always_comb begin
    aw       = '0;
    aw.burst = BurstIncr;
    aw.size  = 3'(BeatLog2);
    aw.len   = head.len;
    aw.addr  = {head.at, BeatLog2'(0)};
    w.data   = out;
    w.last   = last_beat;
    w.strb   = '1;
    if (begin_q) w.strb = {StrbW{1'b1}} << head.lead;
    if (last_beat && head.tail != '0) w.strb &= ~({StrbW{1'b1}} << head.tail);
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (aw),
    .s_valid_i(beat_go && begin_q),
    .s_ready_o(aw_room),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i)
  );

  via_slice #(
    .T(axi_w_t)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i      (w),
    .s_valid_i(beat_go),
    .s_ready_o(w_room),
    .m_o      (m_w_o),
    .m_valid_o(m_w_valid_o),
    .m_ready_i(m_w_ready_i)
  );

  // ---------------------------------------------------------------- responses
  via_fifo #(
    .T    (wait_t),
    .Depth(Window)
  ) u_wait (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{err: head.err, none: head.none || beat_drop, job_end: head.job_end, completed: head.completed, stop: head.stop}),
    .s_valid_i(head_pop),
    .s_ready_o(wait_room),
    .m_o      (first),
    .m_valid_o(first_valid),
    .m_ready_i(first_pop),
    .count_o  ()
  );

  // The response of a burst comes after its last beat has left, and its entry is made with that beat: the entry is always here in time.
  assign m_b_ready_o = first_valid && !first.none;
  assign first_pop   = first_valid && (first.none || m_b_valid_i);

  always_comb begin
    b_err = XErrNone;
    if (!first.none && m_b_i.resp == RespSlvErr) b_err = XErrWriteSlv;
    if (!first.none && m_b_i.resp == RespDecErr) b_err = XErrWriteDec;
    err = err_q;
    if (err == XErrNone) err = first.err;
    if (err == XErrNone && err_stops(b_err, enabled_i)) err = b_err;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) done_o <= 1'b0;
    else done_o <= first_pop && first.job_end;
  end
  always_ff @(posedge clk_i) begin
    done_stop_o      <= first.stop;
    done_completed_o <= first.completed;
    done_err_o       <= err;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      err_q    <= XErrNone;
      failed_q <= 1'b0;
    end else if (first_pop) begin
      err_q    <= err;
      failed_q <= err != XErrNone;
    end
  end

  assign idle_o = !job_valid && !next_valid && !busy_q && !fresh_valid && !cur_valid_q && !made_valid && !head_valid && !first_valid && !done_o;

endmodule
