// SPDX-License-Identifier: Apache-2.0
//
// via_vq_used keeps the rules of its port (via_axi_checker), without bound, split and packed rings: payloads and valids stay, bursts are one whole
// beat within a line, WLAST is on it, no more bursts are in flight than it has room to follow.
//
// Assumed: host memory keeps its own rules: R only for a read and B only for a write that it has taken, as many and with the ids asked for, and they
// stay until taken. Anything may happen at the other ports; queues may come and go, and what is set up may change in every cycle.

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

  localparam int unsigned Window = 64;  // writes that the block follows

  axi_ax_t ar, aw;
  axi_w_t w;
  logic ar_valid, r_ready, aw_valid, w_valid, b_ready;

  via_vq_used #(
    .NumQ  (2),
    .Batch (2),
    .Depth (2),
    .Hold  (2),
    .Recent(2)
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
  typedef logic [$bits(axi_ax_t)-1:0] ax_bits_t;

  function automatic logic burst_ok(input axi_ax_t ax);
    return ax.burst == 2'b01 && ax.size == 3'(BeatLog2) && ax.addr[BeatLog2-1:0] == '0 && ax.len == '0;
  endfunction

  logic begun_q = 1'b0;
  ptr_t ar_held, aw_held, w_held, rd_owed, wr_ahead;
  assign ar_held  = ptr_t'(dut.u_irq.u_ar.main_valid_q) + ptr_t'(dut.u_irq.u_ar.skid_valid_q);
  assign aw_held  = ptr_t'(dut.u_aw.main_valid_q) + ptr_t'(dut.u_aw.skid_valid_q);
  assign w_held   = ptr_t'(dut.u_w.main_valid_q) + ptr_t'(dut.u_w.skid_valid_q);
  assign rd_owed  = u_m.rd_tail_q[0] - u_m.rd_head_q[0];
  assign wr_ahead = u_m.aw_number_q - u_m.w_number_q;  // writes whose address was taken and whose data was not, or the other way round

  // The reads that are asked for, one a queue.
  logic head, second;  // their queues
  assign head   = dut.u_irq.u_asked.gen_lut.mem[dut.u_irq.u_asked.rptr_q][dut.u_irq.u_asked.Width-1];
  assign second = dut.u_irq.u_asked.gen_lut.mem[!dut.u_irq.u_asked.rptr_q][dut.u_irq.u_asked.Width-1];

  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    if (rst_ni) begin
      i_places :
      assert ((!dut.u_aw.skid_valid_q || dut.u_aw.main_valid_q && !dut.u_aw.ready_q) && (!dut.u_w.skid_valid_q || dut.u_w.main_valid_q && !dut.u_w.ready_q) && (!dut.u_irq.u_ar.skid_valid_q || dut.u_irq.u_ar.main_valid_q && !dut.u_irq.u_ar.ready_q));
      i_ar :
      assert ((!dut.u_irq.u_ar.main_valid_q || burst_ok(
          dut.u_irq.u_ar.gen_ff.main_q
      )) && (!dut.u_irq.u_ar.skid_valid_q || burst_ok(
          dut.u_irq.u_ar.gen_ff.skid_q
      )));
      i_aw : assert ((!dut.u_aw.main_valid_q || burst_ok(dut.u_aw.gen_ff.main_q)) && (!dut.u_aw.skid_valid_q || burst_ok(dut.u_aw.gen_ff.skid_q)));
      i_w : assert ((!dut.u_w.main_valid_q || dut.u_w.gen_ff.main_q.w.last) && (!dut.u_w.skid_valid_q || dut.u_w.gen_ff.skid_q.w.last));

      // reads: each is in the slice or owed its one beat
      i_asked : assert (ptr_t'(dut.u_irq.u_asked.count_q) == ar_held + u_m.rd_count_q && u_m.rd_count_q <= 2 && u_m.rd_count_q == rd_owed);
      i_one_each :
      assert (dut.u_irq.asked_q == (dut.u_irq.u_asked.count_q == '0 ? 2'b00 : dut.u_irq.u_asked.count_q[0] ? 2'b01 << head : 2'b11) && (dut.u_irq.u_asked.count_q != 2'd2 || head != second));
      i_pointers : assert (dut.u_irq.u_asked.count_q[0] == (dut.u_irq.u_asked.wptr_q != dut.u_irq.u_asked.rptr_q));
      i_rd_beat : assert (u_m.rd_beat_q[0] == '0);
      i_rd_len :
      assert ((rd_owed == 0 || u_m.rd_owed[0][u_m.rd_head_q[0]].len == '0) && (rd_owed != 2 || u_m.rd_owed[0][ptr_t'(u_m.rd_head_q[0]+1'b1)].len == '0));

      // writes: address and data go into their slices together
      i_flight :
      assert (ptr_t'(dut.u_flight.count_q) == aw_held + u_m.wr_count_q && u_m.wr_count_q <= Window && u_m.wr_count_q == ptr_t'(u_m.wr_tail_q[0] - u_m.wr_head_q[0]));
      i_together : assert (wr_ahead + aw_held == w_held && u_m.w_beat_q == '0);
      i_wr_len :
      assert (u_m.early || (wr_ahead == 0 || u_m.wr_len[u_m.w_number_q] == '0) && (wr_ahead != 2 || u_m.wr_len[ptr_t'(u_m.w_number_q+1'b1)] == '0));
      i_w_beats :
      assert (!u_m.early || u_m.w_beats[u_m.aw_number_q] == '0 && (wr_ahead != -ptr_t'(2) || u_m.w_beats[ptr_t'(u_m.aw_number_q+1'b1)] == '0));

      c_full : cover (u_m.wr_count_q == 2 && u_m.rd_count_q == 1);
    end
  end

endmodule
