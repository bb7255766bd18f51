// SPDX-License-Identifier: Apache-2.0
//
// Copies ranges from one AXI port to another for all slots: one direction of the DMA engine.
//
// Throughput: one beat a cycle in and out; slots take turns burst by burst. Latency: that of the read, the length of a burst, four cycles.
// Order: the jobs of a slot end in order. A burst is read only with room for all of it and written only once all of it is here, so
// neither side ever waits for the other (docs/interfaces.md, the no-wedge rule).
// A burst that reads with an error is not written. After the first error of a job nothing more of it is begun; it ends once what is in flight
// is answered. abort_i[s] (level) ends every job of slot s that way with StAborted.
// A job with `fill` writes zeros and reads nothing. Addresses are aligned to a beat (the caller checks); the last beat is strobed to `len`.

module via_dma_copy
  import via_pkg::*;
#(
  parameter status_e     ReadErr  = StHostErr,          // status of a job whose read failed
  parameter status_e     WriteErr = StCardErr,
  parameter int unsigned Beats    = 8 * MaxBurstBeats,  // read ahead of the write
  parameter int unsigned Jobs     = 16                  // of a slot, begun and not ended: no more are offered
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic    [NumSlots-1:0] job_valid_i,
  output logic    [NumSlots-1:0] job_ready_o,
  input  logic    [   AddrW-1:0] job_src_i    [NumSlots],
  input  logic    [   AddrW-1:0] job_dst_i    [NumSlots],
  input  logic    [        31:0] job_len_i    [NumSlots],
  input  logic    [NumSlots-1:0] job_fill_i,
  output logic                   done_o,                   // one pulse a job; the taker has room
  output logic    [   SlotW-1:0] done_slot_o,
  output status_e                done_status_o,
  input  logic    [NumSlots-1:0] abort_i,
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
  output logic                   idle_o
);

  localparam int unsigned CreditW = $clog2(Beats + 1);
  localparam int unsigned BurstW = $clog2(MaxBurstBeats + 1);
  localparam int unsigned Window = 64;  // bursts in flight, read and write side each
  localparam int unsigned SeqW = $clog2(Jobs) + 1;

  // ---------------------------------------------------------------- jobs to bursts
  logic [NumSlots-1:0] busy_q, fill_q, pick;
  logic [NumSlots-1:0][AddrW-1:0] src_q, dst_q;
  logic [NumSlots-1:0][31:0] left_q;
  logic [NumSlots-1:0][SeqW-1:0] begun_q, ended_q;  // jobs whose last burst is issued; whose last burst is answered
  status_e [NumSlots-1:0] status_q;  // first error of the job that ends next
  logic    [   SlotW-1:0] slot;
  logic any, quit, issue, step, ends, ar_room, meta_room;
  logic [CreditW-1:0] credit_q;
  logic [AddrW-1:0] src, dst;
  logic [31:0] left;
  logic [32:0] beats_left;
  logic [BurstW-1:0] burst;

  // Turns follow the requests, not the credits: a long burst is not passed by short ones.
  via_rr_arb #(
    .N(NumSlots)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (busy_q),
    .ack_i  (step),
    .gnt_o  (pick),
    .idx_o  (slot),
    .valid_o(any)
  );

  assign src  = src_q[slot];
  assign dst  = dst_q[slot];
  assign left = left_q[slot];

  function automatic logic [12:0] to_page(input logic [PageLog2-1:0] offset);
    return (13'd4096 - {1'b0, offset}) >> BeatLog2;
  endfunction

  assign beats_left = ({1'b0, left} + 33'(StrbW - 1)) >> BeatLog2;
  always_comb begin
    burst = BurstW'(MaxBurstBeats);
    if (to_page(src[PageLog2-1:0]) < 13'(burst)) burst = BurstW'(to_page(src[PageLog2-1:0]));
    if (to_page(dst[PageLog2-1:0]) < 13'(burst)) burst = BurstW'(to_page(dst[PageLog2-1:0]));
    if (beats_left < 33'(burst)) burst = BurstW'(beats_left);
  end

  assign quit = abort_i[slot] || status_q[slot] != StOk && begun_q[slot] == ended_q[slot];
  assign issue = any && meta_room && !quit && (fill_q[slot] || ar_room && CreditW'(burst) <= credit_q);
  assign step = issue || any && meta_room && quit;
  assign ends = quit || beats_left == 33'(burst);
  assign job_ready_o = ~busy_q | pick & {NumSlots{step && ends}};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q  <= '0;
      begun_q <= '0;
    end else begin
      for (int unsigned s = 0; s < NumSlots; s++) begin
        if (job_ready_o[s]) busy_q[s] <= job_valid_i[s];
        if (step && ends && pick[s]) begun_q[s] <= begun_q[s] + 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned s = 0; s < NumSlots; s++) begin
      if (job_valid_i[s] && job_ready_o[s]) begin
        src_q[s]  <= job_src_i[s];
        dst_q[s]  <= job_dst_i[s];
        left_q[s] <= job_len_i[s];
        fill_q[s] <= job_fill_i[s];
      end else if (issue && pick[s]) begin
        src_q[s]  <= src + (AddrW'(burst) << BeatLog2);
        dst_q[s]  <= dst + (AddrW'(burst) << BeatLog2);
        left_q[s] <= left - (32'(burst) << BeatLog2);
      end
    end
  end

  axi_ax_t ar;
  always_comb begin
    ar       = '0;
    ar.burst = 2'b01;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(burst - 1'b1);
    ar.addr  = src;
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(issue && !fill_q[slot]),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  typedef struct packed {
    logic                none;     // no burst: only ends the job
    logic                fill;
    logic                cmd_end;
    logic [7:0]          len;      // beats - 1
    logic [BeatLog2-1:0] tail;     // bytes of the last beat, 0 = all
    logic [SlotW-1:0]    slot;
    logic [AddrW-1:0]    dst;
  } meta_t;
  meta_t meta, head;
  logic head_valid, head_pop;

  always_comb begin
    meta.none    = quit;
    meta.fill    = fill_q[slot];
    meta.cmd_end = ends;
    meta.len     = 8'(burst - 1'b1);
    meta.tail    = ends ? left[BeatLog2-1:0] : '0;
    meta.slot    = slot;
    meta.dst     = dst;
  end

  via_fifo #(
    .T    (meta_t),
    .Depth(Window)
  ) u_meta (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (meta),
    .s_valid_i(step),
    .s_ready_o(meta_room),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(head_pop),
    .count_o  ()
  );

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
    .m_ready_i(head_pop && !head.none && !head.fill),
    .count_o  ()
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bad_q    <= 1'b0;
      credit_q <= CreditW'(Beats);
    end else begin
      if (r_take) bad_q <= !m_r_i.last && (bad_q || m_r_i.resp != RespOkay);
      if (issue && !fill_q[slot] || data_pop) begin
        credit_q <= credit_q - ((issue && !fill_q[slot]) ? CreditW'(burst) : '0) + CreditW'(data_pop);
      end
    end
  end

  // ---------------------------------------------------------------- write
  typedef struct packed {
    logic             none;     // no burst was written
    logic             err;      // its read failed
    logic             cmd_end;
    logic [SlotW-1:0] slot;
  } wait_t;
  wait_t first;
  logic first_valid, first_pop, wait_room, aw_room, w_room;
  logic beat_go, beat_drop, last_beat;
  logic [7:0] beat_q;

  assign last_beat = beat_q == head.len;
  assign beat_drop = head_valid && !head.none && !head.fill && arrived && arrived_err && data_valid && wait_room;
  assign beat_go   = head_valid && !head.none && (head.fill || arrived && !arrived_err && data_valid) && w_room && aw_room && wait_room;
  assign data_pop  = beat_drop || beat_go && !head.fill;
  assign head_pop  = head_valid && head.none && wait_room || (beat_go || beat_drop) && last_beat;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) beat_q <= '0;
    else if (beat_go || beat_drop) beat_q <= last_beat ? '0 : beat_q + 1'b1;
  end

  axi_ax_t aw;
  axi_w_t  w;
  always_comb begin
    aw       = '0;
    aw.burst = 2'b01;
    aw.size  = 3'(BeatLog2);
    aw.len   = head.len;
    aw.addr  = head.dst;
    w.data   = head.fill ? '0 : data;
    w.last   = last_beat;
    w.strb   = '1;
    if (last_beat && head.tail != '0) w.strb = ~({StrbW{1'b1}} << head.tail);
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
    .s_i      ('{none: head.none || beat_drop, err: beat_drop, cmd_end: head.cmd_end, slot: head.slot}),
    .s_valid_i(head_pop),
    .s_ready_o(wait_room),
    .m_o      (first),
    .m_valid_o(first_valid),
    .m_ready_i(first_pop),
    .count_o  ()
  );

  // A burst's answer can be here before its entry is seen: the entry is made with the last beat, the answer comes after it has left.
  assign m_b_ready_o = first_valid && !first.none;
  assign first_pop   = first_valid && (first.none || m_b_valid_i);

  status_e status;
  always_comb begin
    status = status_q[first.slot];
    if (status == StOk) begin
      if (first.err) status = ReadErr;
      else if (!first.none && m_b_i.resp != RespOkay) status = WriteErr;
      else if (abort_i[first.slot] && first.none) status = StAborted;
    end
  end
  assign done_o = first_pop && first.cmd_end;
  assign done_slot_o = first.slot;
  assign done_status_o = status;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ended_q  <= '0;
      status_q <= '{default: StOk};
    end else if (first_pop) begin
      status_q[first.slot] <= first.cmd_end ? StOk : status;
      if (first.cmd_end) ended_q[first.slot] <= ended_q[first.slot] + 1'b1;
    end
  end

  assign idle_o = busy_q == '0 && !head_valid && !first_valid;

endmodule
