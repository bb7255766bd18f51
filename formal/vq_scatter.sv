// SPDX-License-Identifier: Apache-2.0
//
// via_vq_scatter, without bound: no byte is written outside the writable buffers of the chain that is answered, whatever the personality says and
// however the ports stall; a chain is handed on as used after the port has taken the address of its last burst, whose W are here, and claims the bytes
// that are written.
//
// Proved in three steps, the FIFOs between them being exact (fifo.sv):
//   plan   each piece is the head of a writable descriptor of the chain answered; a chain's pieces add up to the length it is handed on with
//   cut    the beats of a piece, one after the other, are its bytes from first to last; each burst is the address and length of its beats
//   send   W after its AW, handed on after the burst that ends the chain; no FIFO overflows

module vq_scatter
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input logic                 clk_i,
  input logic                 rst_ni,
  input vq_chain_t            head_i      [2],
  input logic      [1:0]      head_valid_i,
  input vq_desc_t  [1:0][2:0] desc_i,
  input vq_desc_t             stray_i,
  input vq_rsp_t              rsp_i,
  input logic                 rsp_valid_i,
  input logic                 wr_valid_i,
  input vq_beat_t             wr_i,
  input logic      [1:0]      wait_i,
  input logic      [1:0]      off_i,
  input logic      [1:0]      closing_i,
  input logic      [1:0]      owed_i,
  input logic                 aw_ready_i,
  input logic                 w_ready_i,
  input axi_b_t               b_i,
  input logic                 b_valid_i,
  input logic                 done_ready_i
);

  localparam int unsigned Beats = 8;
  localparam int unsigned BurstBytes = 4 * StrbW;
  localparam int unsigned OffW = BeatLog2;
  localparam int unsigned LineLog2 = $clog2(BurstBytes / StrbW);
  localparam logic [1:0] PlChain = 2'd0, PlDesc = 2'd1, PlDrop = 2'd2;  // states of the plan
  typedef logic [15:0] count_t;
  typedef logic [AddrW:0] addr_t;  // one bit more: the end of a buffer

  axi_ax_t aw;
  axi_w_t  w;
  logic rsp_ready, merged_valid, wr_ready, b_re, aw_valid, w_valid, b_ready, done_whole, done_more, done_valid, err_valid, still, idle;
  logic [1:0] pop, quiet;
  logic [15:0] merged, done_id, done_slots;
  logic [31:0] done_len;
  logic [QueueW-1:0] b_queue, done_queue, err_queue;
  logic [QSizeLog2-1:0] b_index;
  vq_desc_t b_desc;

  via_vq_scatter #(
    .NumQ      (2),
    .BurstBytes(BurstBytes),
    .Beats     (Beats)
  ) dut (
    .clk_i,
    .rst_ni,
    .wait_i,
    .off_i,
    .closing_i,
    .owed_i,
    .rsp_i,
    .rsp_valid_i,
    .rsp_ready_o   (rsp_ready),
    .merged_o      (merged),
    .merged_valid_o(merged_valid),
    .wr_i,
    .wr_valid_i,
    .wr_ready_o    (wr_ready),
    .head_i,
    .head_valid_i,
    .head_pop_o    (pop),
    .b_re_o        (b_re),
    .b_queue_o     (b_queue),
    .b_index_o     (b_index),
    .b_desc_i      (b_desc),
    .m_aw_o        (aw),
    .m_aw_valid_o  (aw_valid),
    .m_aw_ready_i  (aw_ready_i),
    .m_w_o         (w),
    .m_w_valid_o   (w_valid),
    .m_w_ready_i   (w_ready_i),
    .m_b_i         (b_i),
    .m_b_valid_i   (b_valid_i),
    .m_b_ready_o   (b_ready),
    .done_queue_o  (done_queue),
    .done_id_o     (done_id),
    .done_slots_o  (done_slots),
    .done_len_o    (done_len),
    .done_whole_o  (done_whole),
    .done_more_o   (done_more),
    .done_valid_o  (done_valid),
    .done_ready_i,
    .err_valid_o   (err_valid),
    .err_queue_o   (err_queue),
    .quiet_o       (quiet),
    .still_o       (still),
    .idle_o        (idle)
  );

  logic begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
  end

  // ================================================================ the store: chains of one to three writable buffers, any others behind each
  vq_chain_t [1:0] head_q;
  vq_desc_t [1:0][2:0] desc_q;
  logic [1:0] held_q;  // the head was there in the cycle before, and was not popped
  logic rsp_held_q;
  vq_rsp_t rsp_q;
  logic [2:0] nwrite[2];
  logic [33:0] prefix[2][4];  // bytes of the first descriptors
  for (genvar q = 0; q < 2; q++) begin : gen_chain
    assign nwrite[q] = 3'(head_i[q].nwrite);
    assign prefix[q][0] = '0;
    for (genvar i = 0; i < 3; i++) begin : gen_prefix
      assign prefix[q][i+1] = prefix[q][i] + 34'(desc_i[q][i].len);
    end
    always_ff @(posedge clk_i) begin
      head_q[q] <= head_i[q];
      desc_q[q] <= desc_i[q];
      held_q[q] <= rst_ni && head_valid_i[q] && !pop[q];
      if (held_q[q]) assume (head_valid_i[q] && head_i[q] == head_q[q] && desc_i[q] == desc_q[q]);
      assume (head_i[q].nwrite <= 3);
      assume (34'(head_i[q].wlen) <= prefix[q][2'(nwrite[q])]);
      for (int i = 0; i < 3; i++) begin
        assume (desc_i[q][i].len != '0);
        assume (addr_t'(desc_i[q][i].addr) + addr_t'(desc_i[q][i].len) <= {1'b1, AddrW'(0)});
      end
    end
  end

  // The store's memory: what is asked for is there one cycle later, also if its chain was popped with the question.
  logic asked_q, read_queue_q;
  logic [QSizeLog2-1:0] place, place_q;  // of the descriptor asked for, among the writable ones of its queue's chain
  vq_desc_t asked, read_q;
  assign place = b_index - head_i[b_queue[0]].first - QSizeLog2'(head_i[b_queue[0]].nread);
  always_comb begin
    asked = stray_i;
    for (int i = 0; i < 3; i++) if (place == QSizeLog2'(i) && i < int'(nwrite[b_queue[0]])) asked = desc_i[b_queue[0]][i];
  end
  assign b_desc = asked_q ? read_q : stray_i;
  always_ff @(posedge clk_i) begin
    asked_q <= rst_ni && b_re;
    if (b_re) begin
      read_q       <= asked;
      place_q      <= place;
      read_queue_q <= b_queue[0];
    end
    rsp_held_q <= rst_ni && rsp_valid_i && !rsp_ready;
    rsp_q <= rsp_i;
    if (rsp_held_q) assume (rsp_valid_i && rsp_i == rsp_q);
    assume (rsp_i.queue < QueueW'(2));
    if (!rst_ni) assume (!rsp_valid_i && !wr_valid_i && !b_valid_i);
  end

  // ================================================================ plan
  logic mine;  // queue of the answer
  logic piece_ok;
  logic [31:0] planned_q, planned;  // bytes of the pieces of the chain so far
  logic [QSizeLog2-1:0] next_place;
  logic lone;  // a chain of one descriptor is handed on with the question for it; its piece follows
  vq_desc_t granted_q;  // that descriptor
  logic [31:0] taken_q;
  logic [QueueW-1:0] taken_queue_q;
  assign lone = dut.plan_q == PlChain && dut.chain_done && b_re;
  assign mine = rsp_i.queue[0];
  assign planned = planned_q + (dut.piece_push && !dut.piece.drop ? dut.piece.len : '0);
  assign next_place = dut.index_q - head_i[mine].first - QSizeLog2'(head_i[mine].nread);
  always_comb begin
    piece_ok = 1'b0;
    for (int i = 0; i < 3; i++)
    if (i < int'(nwrite[mine]) && dut.piece.addr == desc_i[mine][i].addr && dut.piece.len <= desc_i[mine][i].len && dut.piece.queue == rsp_i.queue)
      piece_ok = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || dut.chain_done) planned_q <= '0;
    else planned_q <= planned;
    granted_q     <= desc_i[mine][0];
    taken_q       <= dut.take;
    taken_queue_q <= rsp_i.queue;
    if (rst_ni) begin
      if (dut.piece_push) begin
        a_piece_here : assert (dut.piece.len != '0 && rsp_valid_i);
        if (dut.piece.drop)
          a_drop :
          assert (!dut.piece.chain_end);
          else a_granted : assert (head_valid_i[mine] && piece_ok);
      end
      if (dut.chain_done) begin
        a_popped : assert (rsp_valid_i && pop == 2'b01 << mine && head_valid_i[mine]);
        a_adds_up : assert (planned == (lone ? '0 : dut.take) && dut.take <= head_i[mine].wlen);
        a_end_of_data : assert ((dut.take != '0) == (lone || dut.piece_push && !dut.piece.drop && dut.piece.chain_end));
        if (lone) a_one : assert (nwrite[mine] == 3'd1 && dut.take <= desc_i[mine][0].len);
      end else a_not_ended : assert (!dut.piece_push || !dut.piece.chain_end);
      if (dut.lone_q) begin
        a_lone : assert (dut.piece_in.addr == granted_q.addr && dut.piece_in.len == taken_q && dut.piece_in.queue == taken_queue_q);
        a_lone_ends : assert (!dut.piece_push && !dut.piece_in.drop && dut.piece_in.chain_end && dut.piece_in.len != '0);
      end
      // for the induction
      i_lone : assert (!dut.lone_q || dut.got_q && read_q == granted_q && dut.plan_q == PlChain);
      i_asked_got : assert (asked_q == dut.got_q);
      i_plan : assert (dut.plan_q != 2'd3);
      if (dut.plan_q == PlChain)
        i_between :
        assert (dut.got_q == dut.lone_q && planned_q == '0);
        else begin
          i_asked : assert (rsp_held_q);
        end
      if (dut.plan_q == PlDesc) begin
        i_desc : assert (held_q[mine] && dut.chain_q == head_i[mine] && dut.take_q != '0 && dut.take_q <= head_i[mine].wlen);
        i_want : assert (dut.want_q != '0 && planned_q < dut.take_q && dut.want_q == dut.take_q - planned_q && dut.want_q <= dut.take_q);
        i_next : assert (next_place <= QSizeLog2'(nwrite[mine]));
        if (dut.got_q)
          i_got :
          assert (read_queue_q == mine && place_q < QSizeLog2'(nwrite[mine]) && read_q == desc_i[mine][place_q] && next_place == place_q + 1'b1 && prefix[mine][place_q] == 34'(planned_q));
          else i_not : assert (next_place < QSizeLog2'(nwrite[mine]) && prefix[mine][next_place] == 34'(planned_q));
      end
      if (dut.plan_q == PlDrop) i_drop : assert (dut.left != '0 && !dut.got_q && planned_q == '0);
    end
  end

  // ================================================================ what plan has proved of the pieces, and what is in order with the memories
  // A head is one of the words held: set if all of them are, not set if none is.
  count_t piece_ends_q, chain_datas_q, beat_lasts_q, burst_ends_q;  // words held with chain_end, has_data, last, chain_end
  logic ends_in, ends_out, datas_in, datas_out, lasts_in, lasts_out, bends_in, bends_out;
  assign ends_in   = dut.piece_take && dut.piece_in.chain_end;
  assign ends_out  = dut.pc_pop && dut.pc.chain_end;
  assign datas_in  = dut.chain_done && dut.take != '0;
  assign datas_out = dut.used_pop && dut.used.has_data;
  assign lasts_in  = dut.beat_valid_q && dut.beat_q.last;
  assign lasts_out = dut.beat_out && dut.beat.last;
  assign bends_in  = dut.beat_valid_q && dut.beat_q.last && dut.burst_q.chain_end;
  assign bends_out = dut.burst_out && dut.burst.chain_end;

  addr_t lo, hi;  // the piece at the head
  assign lo = addr_t'(dut.pc.addr);
  assign hi = addr_t'(dut.pc.addr) + addr_t'(dut.pc.len);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      piece_ends_q  <= '0;
      chain_datas_q <= '0;
      beat_lasts_q  <= '0;
      burst_ends_q  <= '0;
    end else begin
      piece_ends_q  <= piece_ends_q + count_t'(ends_in) - count_t'(ends_out);
      chain_datas_q <= chain_datas_q + count_t'(datas_in) - count_t'(datas_out);
      beat_lasts_q  <= beat_lasts_q + count_t'(lasts_in) - count_t'(lasts_out);
      burst_ends_q  <= burst_ends_q + count_t'(bends_in) - count_t'(bends_out);

      if (dut.pc_valid) begin
        assume (dut.pc.len != '0 && dut.pc.queue < QueueW'(2));
        assume (dut.pc.drop ? !dut.pc.chain_end : hi <= {1'b1, AddrW'(0)});
        assume (dut.pc.chain_end ? piece_ends_q != '0 : piece_ends_q != count_t'(dut.pieces_held));
      end
      if (dut.used_valid) begin
        assume (dut.used.has_data ? chain_datas_q != '0 : chain_datas_q != count_t'(dut.chains_held));
        assume (dut.used.queue < QueueW'(2) && dut.held_q[dut.used.queue[0]] != '0);
      end
      if (dut.beat_valid) assume (dut.beat.last ? beat_lasts_q != '0 : beat_lasts_q != count_t'(dut.beats_held));
      if (dut.burst_valid) assume (dut.burst.chain_end ? burst_ends_q != '0 : burst_ends_q != count_t'(dut.u_bursts.count_q));

      a_pieces_room : assert (!dut.piece_take || dut.u_pieces.s_ready_o);
      a_chains_room : assert (!dut.chain_done || dut.u_chains.s_ready_o);
      a_bursts_room : assert (!lasts_in || dut.u_bursts.s_ready_o);
      a_beats_room : assert (!dut.beat_valid_q || dut.u_beats.s_ready_o);
      i_counts :
      assert (piece_ends_q <= count_t'(dut.pieces_held) && chain_datas_q <= count_t'(dut.chains_held) && beat_lasts_q <= count_t'(dut.beats_held) && burst_ends_q <= count_t'(dut.u_bursts.count_q));
      i_pieces :
      assert (dut.u_pieces.count_q == dut.u_pieces.gen_ram.stored_q + dut.u_pieces.gen_ram.valid_q && dut.pieces_held <= dut.Pieces);
      i_chains :
      assert (dut.u_chains.count_q == dut.u_chains.gen_ram.stored_q + dut.u_chains.gen_ram.valid_q && dut.chains_held <= dut.Chains);
      i_beats : assert (dut.u_beats.count_q == dut.u_beats.gen_ram.stored_q + dut.u_beats.gen_ram.valid_q && dut.beats_held <= Beats);
      i_stored :
      assert (dut.u_pieces.gen_ram.stored_q <= dut.Pieces && dut.u_chains.gen_ram.stored_q <= dut.Chains && dut.u_beats.gen_ram.stored_q <= Beats);
      i_room :
      assert ((!dut.got_q || dut.pieces_held < dut.Pieces) && (dut.plan_q != PlDesc || dut.chains_held < dut.Chains) && (!dut.beat_valid_q || dut.beats_held < Beats));
    end
  end

  // ================================================================ cut
  addr_t next_q, start, stop, beat_lo_q, beat_hi_q, piece_lo_q, piece_hi_q;
  logic [AddrW-OffW-1:0] first_q, first, beat_line_q, beat_first_q;
  logic [7:0] n_q, beat_n_q;  // beats of the burst so far
  logic piece_end_q;  // the beat before it was that of a piece that ends a chain
  assign start = dut.pc_begun_q ? next_q : lo;
  assign stop  = start + addr_t'(dut.count);
  assign first = (n_q == '0) ? dut.line : first_q;

  logic [StrbW-1:0] strobe;  // what it must be: the bytes of the beat from beat_lo_q to before beat_hi_q
  for (genvar i = 0; i < StrbW; i++) begin : gen_strobe
    addr_t at;
    assign at = addr_t'({beat_line_q, OffW'(i)});
    assign strobe[i] = at >= beat_lo_q && at < beat_hi_q;
  end

  always_ff @(posedge clk_i) begin
    if (dut.fire) next_q <= stop;
    if (dut.emit) begin
      first_q      <= first;
      beat_line_q  <= dut.line;
      beat_first_q <= first;
      beat_n_q     <= n_q;
      beat_lo_q    <= start;
      beat_hi_q    <= stop;
      piece_lo_q   <= lo;
      piece_hi_q   <= hi;
      piece_end_q  <= dut.pc.chain_end;
    end
    if (!rst_ni) n_q <= '0;
    else if (dut.emit) n_q <= dut.burst_last ? '0 : n_q + 1'b1;

    if (rst_ni) begin
      if (dut.emit) begin
        a_begins : assert (dut.pc_valid && !dut.pc.drop && dut.count != '0 && start >= lo && stop <= hi);
        a_ends : assert (dut.piece_end == (stop == hi) && dut.pc_pop == dut.piece_end);
        a_line : assert (addr_t'({dut.line, dut.off}) == start && (stop - 1'b1) >> OffW == addr_t'(dut.line));
      end
      a_emits : assert (dut.pc.drop || !dut.pc_pop || dut.emit);
      if (dut.beat_valid_q) begin
        a_strobe : assert (dut.beat_q.strb == strobe);
        a_inside : assert (beat_lo_q >= piece_lo_q && beat_lo_q < beat_hi_q && beat_hi_q <= piece_hi_q);
        a_place : assert (beat_line_q == beat_first_q + (AddrW - OffW)'(beat_n_q));
        a_page : assert ((beat_line_q >> (12 - OffW)) == (beat_first_q >> (12 - OffW)) && beat_n_q < BurstBytes / StrbW);
        if (dut.beat_q.last) a_burst : assert (dut.burst_q.line == beat_first_q && dut.burst_q.len == beat_n_q);
        a_last : assert (dut.beat_q.last || beat_hi_q != piece_hi_q);
        a_chain_end : assert ((dut.beat_q.last && dut.burst_q.chain_end) == (beat_hi_q == piece_hi_q && piece_end_q));
      end
      // for the induction
      i_n : assert (n_q == dut.run_q && n_q < BurstBytes / StrbW);
      if (dut.pc_begun_q) begin
        i_begun : assert (dut.pc_valid && dut.bytes_q != '0 && dut.bytes_q < dut.pc.len);
        if (!dut.pc.drop)
          i_rest : assert (next_q > lo && next_q < hi && addr_t'(dut.bytes_q) == hi - next_q && next_q == addr_t'({dut.line_q, OffW'(0)}));
      end
      if (n_q != '0)
        i_run :
        assert (dut.pc_begun_q && !dut.pc.drop && dut.line_q == first_q + (AddrW - OffW)'(n_q) && n_q <= 8'(dut.line_q[LineLog2-1:0]));
    end
  end

  // ================================================================ send
  count_t aw_q, w_q, ended_q, handed_q;  // addresses and last beats that the port has taken; chains ended there, handed on
  logic aw_wait_q, w_wait_q;
  axi_ax_t aw_before_q;
  axi_w_t  w_before_q;
  always_ff @(posedge clk_i) begin
    aw_wait_q   <= rst_ni && aw_valid && !aw_ready_i;
    w_wait_q    <= rst_ni && w_valid && !w_ready_i;
    aw_before_q <= aw;
    w_before_q  <= w;
    if (!rst_ni) begin
      aw_q     <= '0;
      w_q      <= '0;
      ended_q  <= '0;
      handed_q <= '0;
    end else begin
      aw_q     <= aw_q + count_t'(aw_valid && aw_ready_i);
      w_q      <= w_q + count_t'(w_valid && w_ready_i && w.last);
      ended_q  <= ended_q + count_t'(aw_valid && aw_ready_i && dut.burst.chain_end);
      handed_q <= handed_q + count_t'(done_valid && done_ready_i && dut.used.has_data);

      if (w_valid) a_w_follows : assert (aw_q != w_q);
      if (aw_wait_q) a_aw_held : assert (aw_valid && aw == aw_before_q);
      if (w_wait_q) a_w_held : assert (w_valid && w == w_before_q);
      if (done_valid && dut.used.has_data) a_after_data : assert (ended_q != handed_q);
      if (done_valid) a_done : assert (done_len == dut.used.len && done_queue == dut.used.queue && dut.chains_held != '0);
      if (&quiet) a_quiet : assert (dut.chains_held == '0);
      // for the induction
      c_handed : cover (handed_q == 16'd1 && w_q == 16'd2 && ended_q == 16'd1);  // one chain of two bursts
      i_sent :
      assert (count_t'(dut.sent_q) == count_t'(aw_q - w_q) && dut.sent_q <= Beats && dut.u_bursts.count_q <= Beats && dut.u_flight.count_q <= dut.Window);
      i_bursts : assert (3'(dut.u_bursts.wptr_q - dut.u_bursts.rptr_q) == dut.u_bursts.count_q[2:0]);
      i_lasts : assert (beat_lasts_q == count_t'(dut.u_bursts.count_q) + count_t'(dut.sent_q));
      i_ended : assert (count_t'(dut.ended_q) == count_t'(ended_q - handed_q) && dut.ended_q <= dut.Chains);
      i_chain : assert (chain_datas_q == count_t'(dut.ended_q) + burst_ends_q + count_t'(bends_in) + piece_ends_q + count_t'(dut.lone_q));
      i_held : assert (count_t'(dut.held_q[0]) + count_t'(dut.held_q[1]) == count_t'(dut.chains_held));
    end
  end

endmodule
