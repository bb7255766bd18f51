// SPDX-License-Identifier: Apache-2.0
//
// Copies byte ranges from one AXI port to another, any alignment of source and destination: the data path of a channel.
//
//   job ─> AR bursts ─> R ─> raw beats ─> shift and merge ─> beats of the destination ─> AW, W ─> B ─> done
//                            (credits)    (one barrel shifter)  (whole bursts)
//
// Throughput: one beat a cycle; a descriptor whose ends are aligned differently at source and destination costs one cycle more.
// Latency: that of the read, the length of a burst, seven cycles. Order: jobs end in order.
// A burst is read only with room for all of it and written only once all of it is here (docs/interfaces.md, the no-wedge rule).
// A burst that read with an error is not written. After the first error nothing more is written, until clear_i; done_err_o says the error
// for its job and all later ones. A range that leaves its space is an error of that job, and nothing of it is moved.
// A job of no bytes moves nothing. Misuse: clear_i only while idle_o.

module via_xdma_mover
  import via_pkg::*;
  import via_xdma_pkg::*;
#(
  parameter int unsigned SrcBits = 52,                 // width of an address that has memory
  parameter int unsigned DstBits = 36,
  parameter int unsigned Beats   = 8 * MaxBurstBeats,  // read ahead of the write
  parameter int unsigned Jobs    = 32                  // read ahead of the write
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       clear_i,
  input  xdma_desc_t job_i,             // err is ignored
  input  logic       job_valid_i,
  output logic       job_ready_o,
  output logic       done_o,            // one pulse a job; the taker has room
  output logic       done_stop_o,
  output logic       done_completed_o,
  output xdma_err_e  done_err_o,
  output logic       beat_o,            // a beat was written: for the performance counter
  output axi_ax_t    m_ar_o,
  output logic       m_ar_valid_o,
  input  logic       m_ar_ready_i,
  input  axi_r_t     m_r_i,
  input  logic       m_r_valid_i,
  output logic       m_r_ready_o,
  output axi_ax_t    m_aw_o,
  output logic       m_aw_valid_o,
  input  logic       m_aw_ready_i,
  output axi_w_t     m_w_o,
  output logic       m_w_valid_o,
  input  logic       m_w_ready_i,
  input  axi_b_t     m_b_i,
  input  logic       m_b_valid_i,
  output logic       m_b_ready_o,
  output logic       idle_o
);

  localparam int unsigned CreditW = $clog2(Beats + 1);
  localparam int unsigned BurstLog2 = $clog2(MaxBurstBeats);
  localparam int unsigned Window = 64;  // bursts in flight at the write side
  localparam int unsigned CountW = 28 - BeatLog2 + 1;  // beats of a job

  typedef logic [BeatLog2-1:0] offset_t;
  typedef logic [CountW-1:0] count_t;

  function automatic count_t beats_of(input offset_t offset, input logic [27:0] len);
    return count_t'((29'(offset) + 29'(len) + 29'(StrbW - 1)) >> BeatLog2);
  endfunction

  // ---------------------------------------------------------------- jobs to read bursts
  logic take, issue, ends, ar_room, jobs_room;
  logic busy_q;
  logic [AddrW-1:BeatLog2] src_q;
  count_t left_q;
  logic [CreditW-1:0] credit_q;
  logic [BurstLog2:0] burst;
  logic src_bad, dst_bad, moves;
  logic raw_pop;

  // Of a range that begins below 2^bits the end cannot wrap.
  function automatic logic outside(input logic [63:0] addr, input logic [27:0] len, input int unsigned bits);
    return (addr >> bits) != '0 || ((addr + 64'(len) - 64'd1) >> bits) != '0;
  endfunction

  assign src_bad = job_valid_i && job_i.len != '0 && outside(job_i.src, job_i.len, SrcBits);
  assign dst_bad = job_valid_i && job_i.len != '0 && outside(job_i.dst, job_i.len, DstBits);
  assign moves = job_i.len != '0 && !src_bad && !dst_bad;

  assign burst = (left_q < count_t'(MaxBurstBeats - 32'(src_q[BeatLog2+:BurstLog2]))) ? (BurstLog2 + 1)'(left_q) :
      (BurstLog2 + 1)'(MaxBurstBeats - 32'(src_q[BeatLog2+:BurstLog2]));
  assign issue = busy_q && ar_room && CreditW'(burst) <= credit_q;
  assign ends = issue && count_t'(burst) == left_q;
  assign job_ready_o = (!busy_q || ends) && jobs_room;
  assign take = job_valid_i && job_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      credit_q <= CreditW'(Beats);
    end else begin
      if (take) busy_q <= moves;
      else if (ends) busy_q <= 1'b0;
      if (issue || raw_pop) credit_q <= credit_q - (issue ? CreditW'(burst) : '0) + CreditW'(raw_pop);
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      src_q  <= job_i.src[AddrW-1:BeatLog2];
      left_q <= beats_of(job_i.src[BeatLog2-1:0], job_i.len);
    end else if (issue) begin
      src_q  <= src_q + (AddrW - BeatLog2)'(burst);
      left_q <= left_q - count_t'(burst);
    end
  end

  axi_ax_t ar;
  always_comb begin
    ar       = '0;
    ar.burst = 2'b01;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(burst - 1'b1);
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

  // ---------------------------------------------------------------- what the aligner must know of a job
  typedef struct packed {
    xdma_err_e        err;
    logic             none;       // moves nothing
    logic             completed;
    logic             stop;
    count_t           raws;       // beats read
    count_t           outs;       // beats written
    logic             prime;      // the first beat written needs two beats read
    offset_t          shift;      // bytes the data moves down in a beat, modulo a beat
    offset_t          tail;       // bytes of the last beat written, 0 = all
    logic [AddrW-1:0] dst;
  } work_t;
  work_t work, fresh, cur_q;
  logic fresh_valid, cur_valid_q, cur_ends;

  always_comb begin
    work.err       = XErrNone;
    work.none      = !moves;
    work.completed = job_i.completed;
    work.stop      = job_i.stop;
    work.raws      = beats_of(job_i.src[BeatLog2-1:0], job_i.len);
    work.outs      = beats_of(job_i.dst[BeatLog2-1:0], job_i.len);
    work.prime     = job_i.src[BeatLog2-1:0] > job_i.dst[BeatLog2-1:0];
    work.shift     = job_i.src[BeatLog2-1:0] - job_i.dst[BeatLog2-1:0];
    work.tail      = job_i.dst[BeatLog2-1:0] + job_i.len[BeatLog2-1:0];
    work.dst       = job_i.dst;
    if (src_bad) work.err = XErrReadDec;
    else if (dst_bad) work.err = XErrWriteDec;
  end

  via_fifo #(
    .T    (work_t),
    .Depth(Jobs)
  ) u_jobs (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (work),
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
  // Byte j of a written beat is byte j + shift of two beats in a row.
  logic [DataW-1:0] merged, prev_q;
  logic first_q, go, priming, out_push, chunk_push, chunk_end, out_room, chunk_room;
  count_t raws_left_q, outs_left_q;
  logic [AddrW-1:BeatLog2] at_q, chunk_at_q;
  xdma_err_e bad_q, bad;

  assign priming = cur_q.prime && first_q;
  assign go = cur_valid_q && chunk_room && (cur_q.none || out_room && (raws_left_q == '0 || raw_valid));
  assign raw_pop = go && !cur_q.none && raws_left_q != '0;
  assign out_push = go && !cur_q.none && !priming;
  assign chunk_end = outs_left_q == count_t'(1) || (&at_q[BeatLog2+:BurstLog2]);
  assign chunk_push = go && cur_q.none || out_push && chunk_end;
  assign cur_ends = go && (cur_q.none || !priming && outs_left_q == count_t'(1));

  // In a branch, as a simulator would otherwise shift in every cycle.
  always_comb begin
    merged = raw.data;
    if (cur_valid_q && cur_q.shift != '0) merged = DataW'({raw.data, prev_q} >> {cur_q.shift, 3'b000});
  end

  always_comb begin
    bad = bad_q;
    if (bad_q == XErrNone && raw_pop && raw.resp == RespSlvErr) bad = XErrReadSlv;
    if (bad_q == XErrNone && raw_pop && raw.resp == RespDecErr) bad = XErrReadDec;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) cur_valid_q <= 1'b0;
    else if (!cur_valid_q || cur_ends) cur_valid_q <= fresh_valid;
  end
  always_ff @(posedge clk_i) begin
    if (fresh_valid && (!cur_valid_q || cur_ends)) begin
      cur_q       <= fresh;
      first_q     <= 1'b1;
      raws_left_q <= fresh.raws;
      outs_left_q <= fresh.outs;
      at_q        <= fresh.dst[AddrW-1:BeatLog2];
      chunk_at_q  <= fresh.dst[AddrW-1:BeatLog2];
      bad_q       <= fresh.err;
    end else if (go) begin
      first_q <= 1'b0;
      bad_q   <= bad;
      if (raw_pop) raws_left_q <= raws_left_q - 1'b1;
      if (out_push) begin
        outs_left_q <= outs_left_q - 1'b1;
        at_q        <= at_q + 1'b1;
        if (chunk_end) chunk_at_q <= at_q + 1'b1;
      end
    end
    if (raw_pop && cur_q.shift != '0) prev_q <= raw.data;
  end

  typedef struct packed {
    xdma_err_e               err;
    logic                    none;
    logic                    job_end;
    logic                    completed;
    logic                    stop;
    logic [7:0]              len;        // beats - 1
    offset_t                 lead;       // bytes before the first
    offset_t                 tail;
    logic [AddrW-1:BeatLog2] at;
  } chunk_t;
  chunk_t chunk, head;
  logic head_valid, head_pop, out_valid, out_pop;
  logic [DataW-1:0] out;

  always_comb begin
    chunk.err       = bad;
    chunk.none      = cur_q.none;
    chunk.job_end   = cur_ends;
    chunk.completed = cur_q.completed;
    chunk.stop      = cur_q.stop;
    chunk.len       = 8'(at_q - chunk_at_q);
    chunk.lead      = (chunk_at_q == cur_q.dst[AddrW-1:BeatLog2]) ? cur_q.dst[BeatLog2-1:0] : '0;
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
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(head_pop),
    .count_o  ()
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
  logic [7:0] beat_q;
  xdma_err_e err_q, err;

  // A burst is written or dropped as a whole: an error that arrives in its middle counts from the next one.
  assign drop = head.err != XErrNone || ((beat_q == '0) ? kill_q || err_q != XErrNone : drop_q);
  assign last_beat = beat_q == head.len;
  assign beat_drop = head_valid && !head.none && drop && out_valid && wait_room;
  assign beat_go = head_valid && !head.none && !drop && out_valid && aw_room && w_room && wait_room;
  assign out_pop = beat_go || beat_drop;
  assign head_pop = head_valid && head.none && wait_room || out_pop && last_beat;
  assign beat_o = beat_go;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q <= '0;
      drop_q <= 1'b0;
    end else if (out_pop) begin
      beat_q <= last_beat ? '0 : beat_q + 1'b1;
      drop_q <= drop;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) kill_q <= 1'b0;
    else if (head_pop && head.err != XErrNone) kill_q <= 1'b1;  // bursts behind it must not wait for this error to reach its turn
  end

  axi_ax_t aw;
  axi_w_t  w;
  always_comb begin
    aw       = '0;
    aw.burst = 2'b01;
    aw.size  = 3'(BeatLog2);
    aw.len   = head.len;
    aw.addr  = {head.at, BeatLog2'(0)};
    w.data   = out;
    w.last   = last_beat;
    w.strb   = '1;
    if (beat_q == '0) w.strb = {StrbW{1'b1}} << head.lead;
    if (last_beat && head.tail != '0) w.strb &= ~({StrbW{1'b1}} << head.tail);
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (aw),
    .s_valid_i(beat_go && beat_q == '0),
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

  // ---------------------------------------------------------------- answers
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

  // The answer of a burst comes after its last beat has left, and its entry is made with that beat: the entry is always here.
  assign m_b_ready_o = first_valid && !first.none;
  assign first_pop   = first_valid && (first.none || m_b_valid_i);

  always_comb begin
    err = err_q;
    if (err_q == XErrNone) begin
      err = first.err;
      if (!first.none && m_b_i.resp == RespSlvErr) err = XErrWriteSlv;
      if (!first.none && m_b_i.resp == RespDecErr) err = XErrWriteDec;
    end
  end
  assign done_o           = first_pop && first.job_end;
  assign done_stop_o      = first.stop;
  assign done_completed_o = first.completed;
  assign done_err_o       = err;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) err_q <= XErrNone;
    else if (first_pop) err_q <= err;
  end

  assign idle_o = !busy_q && !fresh_valid && !cur_valid_q && !head_valid && !first_valid;

endmodule
