// SPDX-License-Identifier: Apache-2.0
//
// via_vq_used keeps the rules of its port (via_axi_checker), without bound, split and packed rings: payloads and valids stay, bursts lie within 4 KiB,
// WLAST is on the last beat that the address tells of and on no other, a read is one beat, no more bursts are in flight than it has room to follow.
//
// Assumed: host memory keeps its own rules: R only for a read and B only for a write that it has taken, as many and with the ids asked for, and they
// stay until accepted. Anything may happen at the other ports; queues may come and go, and what is set up may change in every cycle.

module vq_used_port
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input logic            clk_i,
  input logic            rst_ni,
  input logic     [63:0] time_i,
  input vq_feat_t        feat_i,
  input vq_cfg_t         queue_i     [2],
  input logic     [ 1:0] closing_i,
  input logic     [15:0] moderate_i,
  input logic            done_queue_i,
  input logic     [15:0] done_id_i,
  input logic     [15:0] done_slots_i,
  input logic     [31:0] done_len_i,
  input logic            done_whole_i,
  input logic            done_more_i,
  input logic            done_near_i,
  input logic            done_valid_i,
  input logic            ar_ready_i,
  input axi_r_t          r_i,
  input logic            r_valid_i,
  input logic            aw_ready_i,
  input logic            w_ready_i,
  input axi_b_t          b_i,
  input logic            b_valid_i,
  input logic            irq_ready_i
);

  localparam int unsigned Lines = 2;  // beats of the longest burst
  localparam int unsigned Beats = 2 * Lines;  // beats that wait at the port
  localparam int unsigned Window = 64;  // writes that the block follows
  localparam int unsigned OffW = BeatLog2;
  localparam int unsigned LineLog2 = $clog2(Lines);

  axi_ax_t ar, aw;
  axi_w_t w;
  logic ar_valid, r_ready, aw_valid, w_valid, b_ready;

  via_vq_used #(
    .NumQ      (2),
    .Batch     (2),
    .Depth     (2),
    .Hold      (2),
    .Gap       (1),
    .Most      (2),
    .Recent    (2),
    .BurstBytes(Lines * StrbW)
  ) dut (
    .clk_i,
    .rst_ni,
    .time_i,
    .feat_i,
    .queue_i,
    .closing_i,
    .moderate_i,
    .done_queue_i  (QueueW'(done_queue_i)),
    .done_id_i,
    .done_slots_i,
    .done_len_i,
    .done_whole_i,
    .done_more_i,
    .done_near_i,
    .done_valid_i,
    .done_ready_o  (),
    .m_ar_o        (ar),
    .m_ar_valid_o  (ar_valid),
    .m_ar_ready_i  (ar_ready_i),
    .m_r_i         (r_i),
    .m_r_valid_i   (r_valid_i),
    .m_r_ready_o   (r_ready),
    .m_aw_o        (aw),
    .m_aw_valid_o  (aw_valid),
    .m_aw_ready_i  (aw_ready_i),
    .m_w_o         (w),
    .m_w_valid_o   (w_valid),
    .m_w_ready_i   (w_ready_i),
    .m_b_i         (b_i),
    .m_b_valid_i   (b_valid_i),
    .m_b_ready_o   (b_ready),
    .irq_valid_o   (),
    .irq_queue_o   (),
    .irq_ready_i,
    .wr_err_o      (),
    .wr_err_queue_o(),
    .rd_err_o      (),
    .rd_err_queue_o(),
    .cnt_line_o    (),
    .cnt_index_o   (),
    .shown_o       (),
    .quiet_o       (),
    .still_o       (),
    .idle_o        ()
  );

  via_axi_checker #(
    .Outstanding(Window),
    .AssumeRsp  (1'b1)
  ) u_m (
    .clk_i,
    .rst_ni,
    .ar_i      (ar),
    .ar_valid_i(ar_valid),
    .ar_ready_i(ar_ready_i),
    .r_i       (r_i),
    .r_valid_i (r_valid_i),
    .r_ready_i (r_ready),
    .aw_i      (aw),
    .aw_valid_i(aw_valid),
    .aw_ready_i(aw_ready_i),
    .w_i       (w),
    .w_valid_i (w_valid),
    .w_ready_i (w_ready_i),
    .b_i       (b_i),
    .b_valid_i (b_valid_i),
    .b_ready_i (b_ready)
  );

  // ---------------------------------------------------------------- what holds in every cycle, for the induction
  localparam int unsigned PtrW = $clog2(Window + 1) + 1;  // as in the checker
  typedef logic [PtrW-1:0] ptr_t;
  typedef logic [$clog2(Beats)-1:0] place_t;
  typedef logic [7:0] len_t;

  // An address as the block makes it: its beats lie within Lines, so within a page.
  function automatic logic burst_ok(input axi_ax_t ax, input int unsigned lines);
    return ax.burst == BurstIncr && ax.size == 3'(BeatLog2) && ax.addr[OffW-1:0] == '0 && 32'(ax.len) < lines &&
        32'(ax.addr[OffW+:LineLog2]) + 32'(ax.len) < Lines;
  endfunction

  logic aw_main, aw_skid;
  axi_ax_t aw_first, aw_second;
  ptr_t aw_held;
  assign aw_main   = dut.u_aw.main_valid_q;
  assign aw_skid   = dut.u_aw.skid_valid_q;
  assign aw_first  = dut.u_aw.gen_ff.main_q;
  assign aw_second = dut.u_aw.gen_ff.skid_q;
  assign aw_held   = ptr_t'(aw_main) + ptr_t'(aw_skid);

  // The reads that are asked for, one a queue: in their FIFO, answered and about to be decided upon.
  logic [1:0] asked;
  logic [2:0] asked_count;
  ptr_t rd_owed;
  logic [1:0] waiting;  // in the FIFO
  logic head, second;  // their queues
  assign rd_owed = u_m.rd_tail_q[0] - u_m.rd_head_q[0];
  assign waiting = dut.u_irq.u_asked.count_q;
  assign head    = dut.u_irq.u_asked.gen_lut.mem[dut.u_irq.u_asked.rptr_q][dut.u_irq.u_asked.Width-1];
  assign second  = dut.u_irq.u_asked.gen_lut.mem[!dut.u_irq.u_asked.rptr_q][dut.u_irq.u_asked.Width-1];
  always_comb begin
    asked = '0;
    if (waiting != '0) asked |= 2'b01 << head;
    if (waiting == 2'd2) asked |= 2'b01 << second;
    if (dut.u_irq.r_valid_q) asked |= 2'b01 << dut.u_irq.r_q.queue;
    asked_count = 3'(waiting) + 3'(dut.u_irq.r_valid_q);
  end

  // The beats in the FIFO, in order.
  logic [Beats-1:0] beat_last;
  int unsigned beats;
  assign beats = 32'(dut.u_w.count_q);
  for (genvar i = 0; i < Beats; i++) begin : gen_beat
    place_t at;
    assign at = dut.u_w.rptr_q + place_t'(i);
    assign beat_last[i] = dut.u_w.gen_lut.mem[at][dut.u_w.Width-1];
  end

  // The lengths of the bursts they belong to, in order: of those whose address was accepted, of those in the slice. Data may be accepted before its address:
  // then the bursts that are whole already are the first ones of the slice.
  ptr_t ahead, over, bursts;  // addresses taken without all of their data; the other way round; bursts not all of whose data was accepted
  logic [1:0][7:0] held_len;
  len_t [Beats-1:0] len;
  assign ahead    = u_m.early ? '0 : u_m.aw_number_q - u_m.w_number_q;
  assign over     = u_m.early ? u_m.w_number_q - u_m.aw_number_q : '0;
  assign bursts   = aw_held + ahead - over;
  assign held_len = {aw_second.len, aw_first.len};
  for (genvar i = 0; i < Beats; i++) begin : gen_burst
    logic second_one;
    assign second_one = ptr_t'(i) + over != ahead;
    assign len[i] = (ptr_t'(i) < ahead) ? u_m.wr_len_q[ptr_t'(u_m.w_number_q+ptr_t'(i))] : held_len[second_one];
  end

  // Walks along the beats: each burst has as many as its length says, and what remains is the beginning of one that is not whole.
  int unsigned burst;
  len_t beat;
  logic match;
  always_comb begin
    match = 1'b1;
    burst = 0;
    beat  = u_m.w_beat_q;
    for (int unsigned i = 0; i < Beats; i++) begin
      if (i < beats) begin
        match &= beat_last[i] == (burst < 32'(bursts) && beat == len[place_t'(burst)]);
        if (beat_last[i]) burst++;
        beat = beat_last[i] ? '0 : beat + 1'b1;
      end
    end
    match &= burst == 32'(bursts);
  end

  logic begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    if (rst_ni) begin
      i_places : assert (!aw_skid || aw_main && !dut.u_aw.ready_q);
      i_aw : assert ((!aw_main || burst_ok(aw_first, Lines)) && (!aw_skid || burst_ok(aw_second, Lines)));

      // reads: each waits at the port or is owed its one beat
      i_asked :
      assert (ptr_t'(waiting) + ptr_t'(dut.u_irq.goes_q) == ptr_t'(dut.u_irq.port_valid_q) + u_m.rd_count_q && u_m.rd_count_q <= 2 && u_m.rd_count_q == rd_owed);
      i_at_once :
      assert (!dut.u_irq.goes_q || dut.u_irq.port_valid_q && dut.u_irq.left_valid_q && !dut.u_irq.pend_q[dut.u_irq.left_q.queue] && !dut.u_irq.asked_q[dut.u_irq.left_q.queue]);
      i_one_each : assert (dut.u_irq.asked_q == asked && 3'($countones(dut.u_irq.asked_q)) == asked_count && waiting <= 2'd2);
      i_pick : assert (!dut.u_irq.pick_valid_q || dut.u_irq.pend_q[dut.u_irq.pick_q] && !dut.u_irq.asked_q[dut.u_irq.pick_q]);
      i_pointers : assert (waiting[0] == (dut.u_irq.u_asked.wptr_q != dut.u_irq.u_asked.rptr_q));
      i_rd_beat : assert (u_m.rd_beat_q[0] == '0);
      i_rd_len :
      assert ((rd_owed == 0 || u_m.rd_owed_q[0][u_m.rd_head_q[0]].len == '0) && (rd_owed != 2 || u_m.rd_owed_q[0][ptr_t'(u_m.rd_head_q[0]+1'b1)].len == '0));

      // writes: the address goes into its slice with the last beat
      i_flight :
      assert (ptr_t'(dut.u_flight.count_q) == aw_held + u_m.wr_count_q && u_m.wr_count_q <= Window && u_m.wr_count_q == ptr_t'(u_m.wr_tail_q[0] - u_m.wr_head_q[0]));
      i_beats : assert (place_t'(dut.u_w.wptr_q - dut.u_w.rptr_q) == place_t'(dut.u_w.count_q));
      i_match : assert (match);
      i_next : assert (beat == 8'(dut.beats_q));
      i_begun : assert (dut.beats_q == '0 || dut.line_valid_q && dut.beats_q <= dut.line_lo);
      i_over : assert (over <= aw_held);
      i_early :
      assert ((over == '0 || u_m.w_beats_q[u_m.aw_number_q] == aw_first.len) && (over != 2 || u_m.w_beats_q[ptr_t'(u_m.aw_number_q+1'b1)] == aw_second.len));

      c_full : cover (u_m.wr_count_q == 2 && u_m.rd_count_q == 1);
      c_burst : cover (w_valid && w.last && u_m.w_beat_q == 1 && u_m.w_number_q == 1);
    end
  end

endmodule
