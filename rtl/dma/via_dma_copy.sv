// SPDX-License-Identifier: Apache-2.0
//
// Copies ranges from one AXI port to another for all slots: one direction of the DMA engine.
//
// Throughput: one beat a cycle in and out; slots share it by bytes and weights; a burst of one slot every second cycle. Latency: that of the
// read, the length of a burst, eight cycles.
// Order: the jobs of a slot end in order. A burst is read only when there is buffer for all of it, and written only once all of it is here,
// so neither side ever waits for the other (docs/interfaces.md, section 1, No deadlocks).
// A burst that was read with an error is not written. After the first error of a job no further burst of it is begun; the job ends once the
// bursts in flight are complete.
// A job with `fill` writes zeros and reads nothing. The strobes of the last beat stop at `len`.
// Misuse: addresses must be aligned to a beat and ranges lie below 2^SrcW and 2^DstW, with a length above zero; the caller checks.
// beat is strobed to `len`.

module via_dma_copy
  import via_pkg::*;
#(
  parameter status_e     ReadErr  = StHostErr,          // status of a job whose read failed
  parameter status_e     WriteErr = StCardErr,          // of a job whose write failed
  parameter int unsigned SrcW     = AddrW,              // bits of a source address
  parameter int unsigned DstW     = AddrW,              // bits of a destination address
  parameter int unsigned Beats    = 8 * MaxBurstBeats,  // capacity of the buffer between reads and writes
  parameter int unsigned Jobs     = 16,                 // jobs of a slot begun and not ended: no more are offered
  parameter bit          Fill     = 1'b1                // whether a job can have `fill`
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic    [ WeightW-1:0] weight_i     [NumSlots],  // share of each slot, from 1
  input  logic    [NumSlots-1:0] first_i,                  // level: the slot goes before those without it
  input  logic    [NumSlots-1:0] job_valid_i,
  output logic    [NumSlots-1:0] job_ready_o,
  input  logic    [    SrcW-1:0] job_src_i    [NumSlots],  // address to read, aligned to a beat
  input  logic    [    DstW-1:0] job_dst_i    [NumSlots],  // address to write, aligned to a beat
  input  logic    [        31:0] job_len_i    [NumSlots],  // bytes, not zero
  input  logic    [NumSlots-1:0] job_fill_i,               // write zeros instead of reading
  output logic                   done_o,                   // one-cycle pulse per job; the receiver always has room
  output logic    [   SlotW-1:0] done_slot_o,              // slot of the job that ended
  output status_e                done_status_o,            // its status
  input  logic    [NumSlots-1:0] abort_i,                  // level: jobs of the slot end with StAborted
  output axi_ax_t                m_ar_o,
  output logic                   m_ar_valid_o,
  input  logic                   m_ar_ready_i,
  input  axi_r_t                 m_r_i,
  input  logic                   m_r_valid_i,
  output logic                   m_r_ready_o,
  output axi_ax_t                m_aw_o,
  output logic                   m_aw_valid_o,
  input  logic                   m_aw_ready_i,
  output axi_w_t                 m_w_o,
  output logic                   m_w_valid_o,
  input  logic                   m_w_ready_i,
  input  axi_b_t                 m_b_i,
  input  logic                   m_b_valid_i,
  output logic                   m_b_ready_o,
  output logic                   idle_o                    // level: no job and no burst is in flight
);

  localparam bit SrcWOk = param_in("via_dma_copy SrcW", SrcW, PageLog2 + 1, AddrW);
  localparam bit DstWOk = param_in("via_dma_copy DstW", DstW, PageLog2 + 1, AddrW);
  localparam bit BeatsOk = param_in("via_dma_copy Beats", Beats, MaxBurstBeats, 65536);
  localparam bit JobsOk = param_in("via_dma_copy Jobs", Jobs, 1, 256);

  localparam int unsigned CreditW = $clog2(Beats + 1);
  localparam int unsigned BurstW = $clog2(MaxBurstBeats + 1);
  localparam int unsigned LenW = $clog2(MaxBurstBeats);  // of beats - 1
  localparam int unsigned Window = 64;  // bursts in flight, read and write side each
  localparam int unsigned SeqW = $clog2(Jobs) + 1;

  // ---------------------------------------------------------------- jobs to bursts
  // In one cycle the next burst of each slot is computed, in the next it is offered. A burst that was granted waits in a slice for credits.
  localparam int unsigned PageBeatsLog2 = PageLog2 - BeatLog2;
  localparam int unsigned LeftW = 33 - BeatLog2;

  typedef struct packed {
    logic                quit;   // no burst: the job ends here
    logic                fill;
    logic                ends;   // last of its job
    logic [BurstW-1:0]   beats;
    logic [BeatLog2-1:0] tail;   // bytes of the job's last beat, 0 = all
    logic [SlotW-1:0]    slot;
  } burst_t;
  // Addresses are counted in beats.
  typedef struct packed {
    logic [SrcW-1:BeatLog2] src;
    logic [DstW-1:BeatLog2] dst;
  } place_t;

  logic [NumSlots-1:0] busy_q, fill_q, pick, cut_q, ends_q, quit_q;
  logic [NumSlots-1:0][SrcW-1:BeatLog2] src_q;
  logic [NumSlots-1:0][DstW-1:BeatLog2] dst_q;
  logic [NumSlots-1:0][LeftW-1:0] left_q;  // beats
  logic [NumSlots-1:0][BeatLog2-1:0] tail_q;
  logic [NumSlots-1:0][BurstW-1:0] beats_q;
  logic [NumSlots-1:0][SeqW-1:0] cut_seq_q, begun_q, ended_q;  // jobs whose last burst was computed; was issued; was completed
  logic [NumSlots-1:0] bad_job_q, lost_q;  // the oldest job has failed; the job being issued was aborted
  status_e [NumSlots-1:0] status_q;  // first error of the oldest job
  logic [SlotW-1:0] slot;
  logic any, take_room;

  // Who is granted does not depend on credits, so that short bursts do not overtake a long one that waits for credits. A slot requests from one
  // burst of its to the next, too: in the cycle in which that is computed nobody else gets its share.
  logic [NumSlots-1:0] want[1], none[1], granted[1];
  logic [7:0] want_len[1][NumSlots];
  assign want[0] = busy_q | cut_q;
  assign none[0] = '0;
  assign pick = granted[0] & cut_q;
  assign any = pick != '0;
  host_quanta_t quanta[NumSlots];
  always_comb for (int unsigned s = 0; s < NumSlots; s++) quanta[s] = {weight_i[s], ($clog2(MaxBurstBeats))'(0)};
  via_share #(
    .N      (NumSlots),
    .Ways   (1),
    .Quantum(MaxBurstBeats)
  ) u_share (
    .clk_i,
    .rst_ni,
    .quanta_i(quanta),
    .plain_i (1'b0),
    .first_i,
    .req_i   (want),
    .len_i   (want_len),
    .urgent_i(none),
    .ack_i   (take_room && any),
    .gnt_o   (granted),
    .valid_o (),
    .shared_o()
  );
  always_comb begin
    slot = '0;
    for (int unsigned s = 0; s < NumSlots; s++) begin
      want_len[0][s] = 8'(beats_q[s] - 1'b1);
      if (pick[s]) slot |= SlotW'(s);
    end
  end
  assign job_ready_o = ~busy_q | pick & ends_q & {NumSlots{take_room}};

  for (genvar s = 0; s < NumSlots; s++) begin : gen_cut
    logic [PageBeatsLog2-1:0] src_beat, dst_beat;  // beat within the page
    logic [PageBeatsLog2:0] span;  // beats up to the next 4 KiB boundary of either
    logic [PageBeatsLog2+1:0] src_end, dst_end;
    logic ends, load, quit;
    assign src_beat = src_q[s][PageLog2-1:BeatLog2];
    assign dst_beat = dst_q[s][PageLog2-1:BeatLog2];
    assign span = (PageBeatsLog2 + 1)'(1 << PageBeatsLog2) - {1'b0, (src_beat > dst_beat) ? src_beat : dst_beat};
    // The whole rest is one burst if it neither crosses a boundary nor is too long.
    assign src_end = {2'b0, src_beat} + {1'b0, left_q[s][PageBeatsLog2:0]} - 1'b1;
    assign dst_end = {2'b0, dst_beat} + {1'b0, left_q[s][PageBeatsLog2:0]} - 1'b1;
    assign ends = left_q[s] <= LeftW'(MaxBurstBeats) && src_end[PageBeatsLog2+1:PageBeatsLog2] == '0 &&
                  dst_end[PageBeatsLog2+1:PageBeatsLog2] == '0;
    // No further burst of a job that has failed or is aborted: this entry carries no burst and ends the job.
    assign quit = abort_i[s] || lost_q[s] && cut_seq_q[s] == begun_q[s] || bad_job_q[s] && cut_seq_q[s] == ended_q[s];
    assign load = job_valid_i[s] && job_ready_o[s];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        busy_q[s]    <= 1'b0;
        cut_q[s]     <= 1'b0;
        cut_seq_q[s] <= '0;
      end else begin
        if (job_ready_o[s]) busy_q[s] <= job_valid_i[s];
        cut_q[s] <= cut_q[s] ? !(pick[s] && take_room) : busy_q[s];
        if (pick[s] && take_room && ends_q[s]) cut_seq_q[s] <= cut_seq_q[s] + 1'b1;
      end
    end
    always_ff @(posedge clk_i) begin
      if (load) begin
        src_q[s]  <= job_src_i[s][SrcW-1:BeatLog2];
        dst_q[s]  <= job_dst_i[s][DstW-1:BeatLog2];
        left_q[s] <= LeftW'(({1'b0, job_len_i[s]} + 33'(StrbW - 1)) >> BeatLog2);
        tail_q[s] <= job_len_i[s][BeatLog2-1:0];
        fill_q[s] <= job_fill_i[s];
      end else if (pick[s] && take_room) begin
        src_q[s]  <= src_q[s] + (SrcW - BeatLog2)'(beats_q[s]);
        dst_q[s]  <= dst_q[s] + (DstW - BeatLog2)'(beats_q[s]);
        left_q[s] <= left_q[s] - LeftW'(beats_q[s]);
      end
      if (!cut_q[s]) begin
        ends_q[s]  <= ends || quit;
        quit_q[s]  <= quit;
        beats_q[s] <= ends ? BurstW'(left_q[s]) : (span > (PageBeatsLog2 + 1)'(MaxBurstBeats)) ? BurstW'(MaxBurstBeats) : BurstW'(span);
      end
    end
  end

  burst_t next, x;
  place_t next_at, x_at;
  logic x_valid, x_pop, quit, issue, end_job, ar_room, meta_room, fits;
  logic [CreditW-1:0] credit_q, credit;

  always_comb begin
    next.quit   = quit_q[slot];
    next.fill   = Fill && fill_q[slot];
    next.ends   = ends_q[slot];
    next.beats  = beats_q[slot];
    next.tail   = tail_q[slot];
    next.slot   = slot;
    next_at.src = src_q[slot];
    next_at.dst = dst_q[slot];
  end

  via_slice #(
    .T(burst_t)
  ) u_next (
    .clk_i,
    .rst_ni,
    .s_i      (next),
    .s_valid_i(any),
    .s_ready_o(take_room),
    .m_o      (x),
    .m_valid_o(x_valid),
    .m_ready_i(x_pop)
  );
  // Moves in step with the slice above: filled and emptied in the same cycles.
  via_slice #(
    .T  (place_t),
    .Ram(1'b1)
  ) u_next_at (
    .clk_i,
    .rst_ni,
    .s_i      (next_at),
    .s_valid_i(any),
    .s_ready_o(),
    .m_o      (x_at),
    .m_valid_o(),
    .m_ready_i(x_pop)
  );

  // The job has failed or was aborted while this burst waited: its bursts are dropped, and its last entry ends it.
  assign quit = x.quit || abort_i[x.slot] || lost_q[x.slot] || bad_job_q[x.slot] && begun_q[x.slot] == ended_q[x.slot];
  assign fits = CreditW'(x.beats) <= credit_q;
  assign issue = x_valid && meta_room && !quit && (x.fill || ar_room && fits);
  assign end_job = x_valid && meta_room && quit && x.ends;
  assign x_pop = issue || x_valid && meta_room && quit;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q <= '0;
      lost_q  <= '0;
    end else if (x_pop) begin
      if (x.ends) begun_q[x.slot] <= begun_q[x.slot] + 1'b1;
      lost_q[x.slot] <= quit && !x.ends;
    end
  end

  axi_ax_t ar;
  always_comb begin
    ar       = '0;
    ar.burst = BurstIncr;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(x.beats - 1'b1);
    ar.addr  = AddrW'({x_at.src, BeatLog2'(0)});
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(issue && !x.fill),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  typedef struct packed {
    logic                   none;     // no burst: only ends the job
    logic                   fill;
    logic                   cmd_end;
    logic [LenW-1:0]        len;      // beats - 1
    logic [BeatLog2-1:0]    tail;     // bytes of the last beat, 0 = all
    logic [SlotW-1:0]       slot;
    logic [DstW-1:BeatLog2] dst;
  } meta_t;
  meta_t meta, behind, head_q;
  logic behind_valid, behind_room, head_valid_q, head_pop;

  always_comb begin
    meta.none    = quit;
    meta.fill    = x.fill;
    meta.cmd_end = x.ends;
    meta.len     = LenW'(x.beats - 1'b1);
    meta.tail    = x.ends ? x.tail : '0;
    meta.slot    = x.slot;
    meta.dst     = x_at.dst;
  end

  via_fifo #(
    .T    (meta_t),
    .Depth(Window)
  ) u_meta (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (meta),
    .s_valid_i(issue || end_job),
    .s_ready_o(meta_room),
    .m_o      (behind),
    .m_valid_o(behind_valid),
    .m_ready_i(behind_room),
    .count_o  ()
  );

  // The burst being written is held in registers.
  assign behind_room = !head_valid_q || head_pop;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) head_valid_q <= 1'b0;
    else if (behind_room) head_valid_q <= behind_valid;
  end
  always_ff @(posedge clk_i) if (behind_room) head_q <= behind;

  // ---------------------------------------------------------------- data, and which bursts are complete
  logic [DataW-1:0] data;
  logic data_valid, data_pop, r_take;
  logic arrived, arrived_err, bad_q;

  assign r_take = m_r_valid_i && m_r_ready_o;

  via_fifo #(
    .T    (logic [DataW-1:0]),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_data (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (m_r_i.data),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      (data),
    .m_valid_o(data_valid),
    .m_ready_i(data_pop),
    .count_o  ()
  );

  via_fifo #(
    .T    (logic),
    .Depth(Window)
  ) u_arrived (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (bad_q || m_r_i.resp != RespOkay),
    .s_valid_i(r_take && m_r_i.last),
    .s_ready_o(),
    .m_o      (arrived_err),
    .m_valid_o(arrived),
    .m_ready_i(head_pop && !head_q.none && !head_q.fill),
    .count_o  ()
  );

  // A buffer entry counts as free in the cycle after its beat has left.
  logic popped_q;
  assign credit = credit_q + CreditW'(popped_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bad_q    <= 1'b0;
      popped_q <= 1'b0;
      credit_q <= CreditW'(Beats);
    end else begin
      if (r_take) bad_q <= !m_r_i.last && (bad_q || m_r_i.resp != RespOkay);
      popped_q <= data_pop;
      credit_q <= (issue && !x.fill) ? credit - CreditW'(x.beats) : credit;
    end
  end

  // ---------------------------------------------------------------- write
  typedef struct packed {
    logic             none;     // no burst was written
    logic             err;      // its read failed
    logic             cmd_end;
    logic [SlotW-1:0] slot;
  } wait_t;
  wait_t first, wait_head;
  logic first_valid, first_pop, first_room, wait_valid, wait_room, aw_room, w_room;
  logic beat_go, beat_drop;
  logic [LenW-1:0] more_q;  // beats of the burst after this one
  logic first_beat_q, last_beat_q;
  assign beat_drop = head_valid_q && !head_q.none && !head_q.fill && arrived && arrived_err && data_valid && wait_room;
  assign beat_go = head_valid_q && !head_q.none && (head_q.fill || arrived && !arrived_err && data_valid) && w_room && aw_room && wait_room;
  assign data_pop = beat_drop || beat_go && !head_q.fill;
  assign head_pop = head_valid_q && head_q.none && wait_room || (beat_go || beat_drop) && last_beat_q;

  // For the next beat: whether it is the first of its burst, and the last.
  always_ff @(posedge clk_i) begin
    if (behind_room) begin
      more_q       <= behind.len;
      first_beat_q <= 1'b1;
      last_beat_q  <= behind.len == '0;
    end else if (beat_go || beat_drop) begin
      more_q       <= more_q - 1'b1;
      first_beat_q <= 1'b0;
      last_beat_q  <= more_q == LenW'(1);
    end
  end

  axi_ax_t aw;
  axi_w_t  w;
  always_comb begin
    aw       = '0;
    aw.burst = BurstIncr;
    aw.size  = 3'(BeatLog2);
    aw.len   = 8'(head_q.len);
    aw.addr  = AddrW'({head_q.dst, BeatLog2'(0)});
    w.data   = head_q.fill ? '0 : data;
    w.last   = last_beat_q;
    w.strb   = '1;
    if (last_beat_q && head_q.tail != '0) w.strb = ~({StrbW{1'b1}} << head_q.tail);
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (aw),
    .s_valid_i(beat_go && first_beat_q),
    .s_ready_o(aw_room),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i)
  );

  // Zeros are inserted in front of the register of the slice.
  via_slice #(
    .T  (axi_w_t),
    .Ram(!Fill)
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
    .s_i      ('{none: head_q.none || beat_drop, err: beat_drop, cmd_end: head_q.cmd_end, slot: head_q.slot}),
    .s_valid_i(head_pop),
    .s_ready_o(wait_room),
    .m_o      (wait_head),
    .m_valid_o(wait_valid),
    .m_ready_i(first_room),
    .count_o  ()
  );
  // The next entry is held in a register, as it drives the readiness for B.
  via_slice #(
    .T(wait_t)
  ) u_first (
    .clk_i,
    .rst_ni,
    .s_i      (wait_head),
    .s_valid_i(wait_valid),
    .s_ready_o(first_room),
    .m_o      (first),
    .m_valid_o(first_valid),
    .m_ready_i(first_pop)
  );

  // The B of a burst can arrive before its entry is visible: the entry is made with the last beat, so B waits here for it.
  assign m_b_ready_o = first_valid && !first.none;
  assign first_pop   = first_valid && (first.none || m_b_valid_i);

  status_e status;
  always_comb begin
    status = status_q[first.slot];
    if (status == StOk) begin
      if (first.err) status = ReadErr;
      else if (!first.none && m_b_i.resp != RespOkay) status = WriteErr;
      else if (first.none) status = StAborted;
    end
  end
  logic done_q;
  logic [SlotW-1:0] done_slot_q;
  status_e done_status_q;
  assign done_o = done_q;
  assign done_slot_o = done_slot_q;
  assign done_status_o = done_status_q;
  always_ff @(posedge clk_i) begin
    done_q        <= rst_ni && first_pop && first.cmd_end;
    done_slot_q   <= first.slot;
    done_status_q <= status;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ended_q   <= '0;
      bad_job_q <= '0;
      status_q  <= '{default: StOk};
    end else if (first_pop) begin
      status_q[first.slot]  <= first.cmd_end ? StOk : status;
      bad_job_q[first.slot] <= !first.cmd_end && status != StOk;
      if (first.cmd_end) ended_q[first.slot] <= ended_q[first.slot] + 1'b1;
    end
  end

  assign idle_o = busy_q == '0 && !x_valid && !behind_valid && !head_valid_q && !wait_valid && !first_valid && !done_q;

endmodule
