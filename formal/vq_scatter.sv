// SPDX-License-Identifier: Apache-2.0
//
// via_vq_scatter, without bound: no byte is written outside the writable buffers of the chain that is answered, whatever the personality says and
// however the ports stall; a chain is handed on as used after the port has taken the address of its last burst, and claims the bytes that are written.
// Both ways: addresses that go with the last beat of a burst, whose W are here then, and with the first one (AtHand).
//
// Proved in three steps, the FIFOs between them being exact (fifo.sv):
//   plan   each piece is the head of a writable descriptor of the chain answered; a chain's pieces add up to the length it is handed on with
//   cut    the beats of a piece, one after the other, are its bytes from first to last; each burst is the address and length of its beats
//   send   W after its AW, handed on after the burst that ends the chain; no FIFO overflows

module vq_scatter
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter bit AtHand = 1'b0
) (
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
  localparam int unsigned LineW = AddrW - OffW;
  typedef struct packed {  // as in the block
    logic              drop;
    logic              chain_end;
    logic              ans_end;
    logic [QueueW-1:0] queue;
    logic              single;
    logic [OffW:0]     count;
    logic [OffW:0]     till;
    logic [31-OffW:0]  whole;
    logic [LineW-1:0]  line;
    logic [OffW-1:0]   off;
  } piece_t;
  typedef logic [LineW:0] lines_t;
  typedef logic [15:0] count_t;
  typedef logic [AddrW:0] addr_t;  // one bit more: the end of a buffer

  // Lines of a piece behind its first one, and the last byte of the last one.
  function automatic lines_t lines_of(input piece_t p);
    return lines_t'(p.whole) + lines_t'(p.till[OffW] && p.till[OffW-1:0] != '0) - lines_t'(p.till == '0);
  endfunction

  function automatic logic [OffW-1:0] tail_of(input piece_t p);
    return p.till[OffW-1:0] - 1'b1;
  endfunction

  // Of a piece, wherever it is: not empty, and its parts say the same.
  function automatic logic good(input piece_t p);
    return p.queue < QueueW'(2) && (!p.drop || !p.chain_end && p.off == '0) && p.single == (lines_of(p) == '0) &&
        (p.whole != '0 || p.till > (OffW + 1)'(p.off)) && (!p.single || tail_of(p) >= p.off) &&
        p.count == (p.single ? (OffW + 1)'(tail_of(p)) + 1'b1 : (OffW + 1)'(StrbW)) - (OffW + 1)'(p.off);
  endfunction

  axi_ax_t aw;
  axi_w_t  w;
  logic rsp_ready, merged_valid, wr_ready, b_re, aw_valid, w_valid, b_ready, done_whole, done_more, done_valid, err_valid, still, idle;
  logic [1:0] pop, quiet, busy;
  logic [15:0] merged, done_id, done_slots;
  logic [31:0] done_len;
  logic [QueueW-1:0] b_queue, done_queue, err_queue;
  logic [QSizeLog2-1:0] b_index;
  vq_desc_t b_desc;

  via_vq_scatter #(
    .NumQ      (2),
    .BurstBytes(BurstBytes),
    .Beats     (Beats),
    .AtHand    (AtHand)
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
    .busy_o        (busy),
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
    .done_near_o   (),
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
      assume (34'(head_i[q].wlen) <= prefix[q][2'(nwrite[q])] && (head_i[q].wlen == '0) == (head_i[q].nwrite == '0));
      for (int i = 0; i < 3; i++) begin
        assume (desc_i[q][i].len != '0);
        assume (addr_t'(desc_i[q][i].addr) + addr_t'(desc_i[q][i].len) <= {1'b1, AddrW'(0)});
      end
    end
  end

  // The store's memory: what is asked for is there one cycle later, also if its chain was popped with the question.
  logic asked_q, read_queue_q;
  logic [QSizeLog2-1:0] place_got_q;  // of the descriptor that is here
  logic [QSizeLog2-1:0] place, place_q;  // of the descriptor asked for, among the writable ones of its queue's chain
  vq_desc_t asked, read_q;
  assign place = b_index - head_i[b_queue[0]].first - QSizeLog2'(head_i[b_queue[0]].nread);
  always_comb begin
    asked = stray_i;
    for (int i = 0; i < 3; i++) if (place == QSizeLog2'(i) && i < int'(nwrite[b_queue[0]])) asked = desc_i[b_queue[0]][i];
  end
  assign b_desc = asked_q ? read_q : stray_i;
  always_ff @(posedge clk_i) begin
    asked_q     <= rst_ni && b_re;
    place_got_q <= place_q;
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
  logic mine, judged;  // queue of the response judged in the cycle before, or held, and of the one at hand
  logic piece_ok, record_ok, same_head;
  logic [31:0] piece_len;
  logic [31:0] planned_q, planned;  // bytes of the pieces of the chain so far
  logic [QSizeLog2-1:0] next_place;
  vq_desc_t granted_q, lone_q;  // the descriptor of a chain of one, which is handed on with the question for it; its piece follows
  addr_t piece_lo;
  assign mine = dut.queue_q[0];
  assign judged = dut.mine[1];
  assign piece_len = (dut.desc_take && dut.desc_q.len < dut.want_q) ? dut.desc_q.len : dut.want_q;
  assign planned = planned_q + (dut.desc_take ? piece_len : '0);
  assign next_place = dut.index_q - head_i[mine].first - QSizeLog2'(head_i[mine].nread);
  assign piece_lo = dut.piece_in.drop ? '0 : addr_t'(dut.desc_addr);
  always_comb begin
    piece_ok = 1'b0;
    for (int i = 0; i < 3; i++)
    if (i < int'(nwrite[mine]) && dut.desc_addr == desc_i[mine][i].addr && piece_len <= desc_i[mine][i].len && dut.piece_in.queue == QueueW'(mine))
      piece_ok = 1'b1;
  end
  // The lines of a piece are those of its bytes.
  assign record_ok = dut.piece_in.off == piece_lo[OffW-1:0] && (dut.piece_in.drop || dut.piece_in.line == piece_lo[AddrW-1:OffW]) &&
      addr_t'({lines_of(
      dut.piece_in
  ), tail_of(
      dut.piece_in
  )}) + 1'b1 == addr_t'(dut.piece_in.off) + addr_t'(piece_len);
  assign same_head = dut.chain_q.id == head_i[mine].id && dut.chain_q.slots == head_i[mine].slots && dut.chain_q.wlen == head_i[mine].wlen;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || dut.desc_end || dut.plan_q != PlDesc) planned_q <= '0;
    else planned_q <= planned;
    granted_q <= desc_i[judged][0];
    lone_q    <= granted_q;
    if (rst_ni) begin
      if (dut.piece_take) begin
        a_record : assert (piece_len != '0 && record_ok && good(dut.piece_in));
        if (dut.piece_in.drop) a_drop : assert (!dut.piece_in.chain_end && !dut.ready_q);
      end
      if (dut.desc_take)
        a_granted : assert (!dut.ready_q && head_valid_i[mine] && piece_ok && !dut.piece_in.drop && dut.piece_in.chain_end == dut.desc_end);
      if (dut.desc_end) a_adds_up : assert (planned == dut.take && dut.take <= head_i[mine].wlen && dut.has_data_q);
      a_popped : assert (dut.popped_q ? pop == 2'b01 << mine && held_q[mine] && same_head && (dut.at_once_q || !dut.ready_q) : pop == '0);
      if (dut.go_lone) a_one : assert (nwrite[judged] == 3'd1);
      if (dut.popped_q) a_claims : assert (dut.has_data_q == (dut.take != '0) && dut.partial == (dut.take != dut.chain_q.wlen));
      if (dut.lone_q) begin
        a_lone :
        assert (dut.desc_addr == lone_q.addr && piece_len == dut.take && piece_len <= lone_q.len && dut.piece_in.queue == dut.queue_q);
        a_lone_ends : assert (!dut.desc_take && !dut.drop_take && !dut.piece_in.drop && dut.piece_in.chain_end);
      end
      // for the induction
      i_lone_ask :
      assert (!dut.lone_ask_q || dut.re_q && dut.popped_q && !dut.at_once_q && dut.plan_q == PlChain && dut.judged_q && dut.step_q && dut.left_q != '0 && dut.has_data_q && granted_q == desc_i[mine][0] && nwrite[mine] == 3'd1 && dut.chain_q.wlen != '0 && dut.chain_q.wlen <= granted_q.len && place == '0 && !dut.lone_q && !dut.taken_q);
      i_lone :
      assert (!dut.lone_q || dut.queue_q < QueueW'(2) && asked_q && read_q == lone_q && dut.plan_q == PlChain && !dut.popped_q && !dut.judged_q && dut.want_q == dut.take && dut.want_q != '0 && dut.want_q <= lone_q.len);
      i_over : assert (!dut.over_q || dut.lone_q && !dut.fits_q && dut.left_q != '0 && !dut.taken_q);
      i_asked_read : assert (!dut.read_q || asked_q);
      i_plan : assert (dut.plan_q != 2'd3);
      // a response without bytes is taken as it is judged
      i_at_once :
      assert (!dut.at_once_q || dut.popped_q && !dut.taken_q && dut.plan_q == PlChain && !dut.has_data_q && !dut.re_q && dut.queue_q < QueueW'(2) && !dut.begun_q && dut.judged_q && dut.left_q == '0);
      // the response is held until it is done with
      i_response : assert (!(dut.popped_q && !dut.at_once_q || dut.taken_q || dut.over_q || dut.plan_q != PlChain) || !dut.ready_q);
      i_held : assert (dut.ready_q || dut.queue_q < QueueW'(2) && dut.mine_q == 2'b01 << mine && dut.some_left_q == (dut.left_q != '0));
      if (dut.popped_q && !dut.has_data_q) i_none : assert (dut.judged_q && (dut.left_q == '0 || dut.chain_q.wlen == '0));
      if (dut.lone_q || dut.plan_q == PlDesc && !dut.judged_q) i_judged : assert (!dut.partial_q || dut.fits_q);
      if (dut.plan_q == PlChain)
        i_between : assert (!dut.got_q && !dut.read_q && dut.re_q == dut.lone_ask_q && planned_q == '0 && (!dut.step_q || dut.popped_q));
      if (dut.plan_q == PlDesc) begin
        i_desc :
        assert (held_q[mine] && same_head && dut.take != '0 && dut.take <= head_i[mine].wlen && dut.has_data_q && dut.partial == (dut.take != dut.chain_q.wlen) && !dut.popped_q && !dut.taken_q && !dut.lone_ask_q && !dut.lone_q && !dut.over_q);
        if (dut.judged_q)
          i_first :
          assert (dut.step_q && planned_q == '0 && dut.left_q != '0 && !dut.got_q && !dut.read_q);
          else begin
            i_want : assert (dut.want_q != '0 && planned_q < dut.take && dut.want_q == dut.take - planned_q && dut.want_q <= dut.take);
            if (!dut.fits_q) i_after : assert (dut.left_q != '0);
          end
        // what is asked for, what is at the memory's output, and what is here, are the next descriptors
        if (dut.got_q)
          i_got :
          assert (place_got_q < QSizeLog2'(nwrite[mine]) && dut.desc_q == desc_i[mine][place_got_q] && prefix[mine][place_got_q] == 34'(planned_q));
        if (dut.read_q)
          i_read :
          assert (read_queue_q == mine && (place_q >= QSizeLog2'(nwrite[mine]) || read_q == desc_i[mine][place_q]) && next_place == place_q + 1'b1);
        if (dut.got_q && dut.read_q) i_got_read : assert (place_q == place_got_q + 1'b1);
        if (dut.got_q && !dut.read_q) i_got_next : assert (next_place == place_got_q + 1'b1);
        if (!dut.got_q && dut.read_q) i_read_first : assert (place_q < QSizeLog2'(nwrite[mine]) && prefix[mine][place_q] == 34'(planned_q));
        if (!dut.got_q && !dut.read_q) i_not : assert (next_place < QSizeLog2'(nwrite[mine]) && prefix[mine][next_place] == 34'(planned_q));
      end
      if (dut.plan_q == PlDrop)
        i_drop :
        assert ((!dut.drop_ready_q || dut.want_q != '0) && dut.left_q != '0 && (!(dut.judged_q && dut.step_q) || dut.chain_q.wlen == '0) && !dut.taken_q && !dut.got_q && !dut.read_q && !dut.re_q && !dut.lone_q && !dut.lone_ask_q && !dut.over_q && planned_q == '0);
    end
  end

  // ================================================================ what plan has proved of the pieces, and what is in order with the memories
  // A word that comes out of a FIFO is one of the words held there: set if all of them are, not set if none is. The head is in a register.
  count_t piece_ends_q, chain_datas_q, beat_lasts_q, burst_ends_q;  // words in the FIFOs with chain_end, has_data, last, chain_end
  count_t [1:0] chain_queue_q;  // words of each queue
  count_t piece_ends, chain_datas, beat_lasts, burst_ends, bursts;  // with the head
  logic ends_in, ends_out, datas_in, datas_out, lasts_in, lasts_out, bends_in, bends_out;
  piece_t piece_next;
  assign piece_next = dut.u_pieces.next;
  assign ends_in = dut.u_pieces.put && dut.u_pieces.word.chain_end;
  assign ends_out = dut.u_pieces.load && dut.u_pieces.next_valid && piece_next.chain_end;
  assign datas_in = dut.u_chains.push && dut.used_in.has_data;
  assign datas_out = dut.u_chains.load && dut.u_chains.next_valid && dut.u_chains.next.has_data;
  assign lasts_in = dut.u_beats.push && dut.beat_in.last;
  assign lasts_out = dut.u_beats.load && dut.u_beats.next_valid && dut.u_beats.next.last;
  assign bends_in = dut.u_bursts.push && dut.burst_in.chain_end;
  assign bends_out = dut.u_bursts.load && dut.u_bursts.next_valid && dut.u_bursts.next.chain_end;
  assign piece_ends = piece_ends_q + count_t'(dut.pc_valid && dut.pc.chain_end) + count_t'(dut.u_pieces.late && dut.u_pieces.word.chain_end);
  assign chain_datas = chain_datas_q + count_t'(dut.used_valid && dut.used.has_data);
  assign beat_lasts = beat_lasts_q + count_t'(dut.beat_valid && dut.beat.last);
  assign burst_ends = burst_ends_q + count_t'(dut.burst_valid && dut.burst.chain_end);
  assign bursts = count_t'(dut.u_bursts.count_o) + count_t'(dut.burst_valid);

  for (genvar q = 0; q < 2; q++) begin : gen_used
    logic in, out;
    assign in  = dut.u_chains.push && dut.used_in.queue == QueueW'(q);
    assign out = dut.u_chains.load && dut.u_chains.next_valid && dut.u_chains.next.queue == QueueW'(q);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) chain_queue_q[q] <= '0;
      else chain_queue_q[q] <= chain_queue_q[q] + count_t'(in) - count_t'(out);
      if (rst_ni) begin
        if (dut.u_chains.next_valid && dut.u_chains.next.queue == QueueW'(q)) assume (chain_queue_q[q] != '0);
        i_held : assert (count_t'(dut.held_q[q]) == chain_queue_q[q] + count_t'(dut.used_valid && dut.used.queue == QueueW'(q)));
        i_queue : assert (chain_queue_q[q] <= count_t'(dut.chains_held));
      end
    end
  end

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

      if (dut.u_pieces.next_valid) begin
        assume (good(piece_next));
        assume (piece_next.chain_end ? piece_ends_q != '0 : piece_ends_q != count_t'(dut.pieces_held));
      end
      if (dut.u_chains.next_valid) begin
        assume (dut.u_chains.next.has_data ? chain_datas_q != '0 : chain_datas_q != count_t'(dut.chains_held));
        assume (dut.u_chains.next.queue < QueueW'(2));
      end
      if (dut.u_beats.next_valid) assume (dut.u_beats.next.last ? beat_lasts_q != '0 : beat_lasts_q != count_t'(dut.beats_held));
      if (dut.u_bursts.next_valid)
        assume (dut.u_bursts.next.chain_end ? burst_ends_q != '0 : burst_ends_q != count_t'(dut.u_bursts.count_o));

      if (dut.pc_valid) i_pc : assert (good(dut.pc));
      if (dut.used_valid) i_used : assert (dut.used.queue < QueueW'(2));
      i_chain_queues : assert (chain_queue_q[0] + chain_queue_q[1] == count_t'(dut.chains_held));

      a_pieces_room : assert (!dut.u_pieces.put || dut.u_pieces.u_fifo.s_ready_o);
      a_chains_room : assert (!dut.u_chains.push || dut.u_chains.u_fifo.s_ready_o);
      a_bursts_room : assert (!dut.u_bursts.push || dut.u_bursts.u_fifo.s_ready_o);
      a_beats_room : assert (!dut.u_beats.push || dut.u_beats.u_fifo.s_ready_o);
      i_counts :
      assert (piece_ends_q <= count_t'(dut.pieces_held) && chain_datas_q <= count_t'(dut.chains_held) && beat_lasts_q <= count_t'(dut.beats_held) && burst_ends_q <= count_t'(dut.u_bursts.count_o));
      i_pieces :
      assert (dut.u_pieces.u_fifo.count_q == dut.u_pieces.u_fifo.gen_ram.stored_q + dut.u_pieces.u_fifo.gen_ram.valid_q && dut.pieces_held <= dut.Pieces);
      i_chains :
      assert (dut.u_chains.u_fifo.count_q == dut.u_chains.u_fifo.gen_ram.stored_q + dut.u_chains.u_fifo.gen_ram.valid_q && dut.chains_held <= dut.Chains);
      i_beats :
      assert (dut.u_beats.u_fifo.count_q == dut.u_beats.u_fifo.gen_ram.stored_q + dut.u_beats.u_fifo.gen_ram.valid_q && dut.beats_held <= Beats);
      i_stored :
      assert (dut.u_pieces.u_fifo.gen_ram.stored_q <= dut.Pieces && dut.u_chains.u_fifo.gen_ram.stored_q <= dut.Chains && dut.u_beats.u_fifo.gen_ram.stored_q <= Beats);
      // Room, told a cycle late, with what is on its way.
      i_piece_room :
      assert (count_t'(dut.pieces_held) + count_t'(dut.u_pieces.late) + count_t'(dut.re_q) + count_t'(dut.read_q) + count_t'(dut.got_q || dut.lone_q) + count_t'(dut.piece_room_q) <= count_t'(dut.Pieces));
      i_chain_room :
      assert (count_t'(dut.chains_held) + count_t'(dut.popped_q) + count_t'(dut.chain_room_q || dut.plan_q == PlDesc) <= count_t'(dut.Chains));
      i_beat_room : assert (count_t'(dut.beats_held) + count_t'(dut.mixed_valid_q) + count_t'(dut.w_room_q) <= Beats);
      i_burst_head : assert (dut.burst_valid || dut.u_bursts.count_o == '0);
    end
  end

  // ================================================================ cut
  // The lines of a piece, counted: the first one is the piece's own, each further one the next, there are as many as it has (a buffer does not
  // wrap). The bytes of a line are all of it but for those before `off` in the first one and behind the tail in the last one.
  localparam int unsigned CountW = 33 - OffW;
  logic [CountW-1:0] n_line_q, n_line, n_lines;  // lines of the piece that are done
  logic [LineW-1:0] next_q, first_q, first;
  logic [OffW-1:0] from, to, from_q, to_q;  // first and last byte of the line
  logic [7:0] n_q;  // beats of the burst so far
  logic last;
  // The burst as it was put; with its first beat, if that is not its last one, it is open until that comes.
  typedef struct packed {  // as in the block
    logic              chain_end;
    logic [QueueW-1:0] queue;
    logic [7:0]        len;
    logic [LineW-1:0]  line;
  } burst_t;
  burst_t put_q, put;
  logic open, open_end;
  logic [7:0] to_block;  // lines behind this one up to the end of the bytes that a burst may have
  assign put = (AtHand && n_q != '0) ? put_q : dut.burst_in;
  assign open = AtHand && n_q != '0;
  assign open_end = open && put_q.chain_end;
  assign to_block = 8'(LineLog2'(~dut.line_q[LineLog2-1:0]));
  assign n_line = dut.pc_begun_q ? n_line_q : '0;
  assign n_lines = CountW'(lines_of(dut.pc));
  assign last = n_line == n_lines;
  assign from = (n_line == '0) ? dut.pc.off : '0;
  assign to = last ? tail_of(dut.pc) : '1;
  assign first = (n_q == '0) ? dut.line : first_q;

  logic [StrbW-1:0] strobe;
  for (genvar i = 0; i < StrbW; i++) begin : gen_strobe
    assign strobe[i] = OffW'(i) >= from_q && OffW'(i) <= to_q;
  end

  always_ff @(posedge clk_i) begin
    if (dut.fire) begin
      next_q   <= dut.line + 1'b1;
      n_line_q <= n_line + 1'b1;
    end
    if (dut.burst_put) put_q <= dut.burst_in;
    if (dut.emit) begin
      first_q <= first;
      from_q  <= from;
      to_q    <= to;
    end
    if (!rst_ni) n_q <= '0;
    else if (dut.emit) n_q <= dut.burst_last ? '0 : n_q + 1'b1;

    if (rst_ni) begin
      if (dut.fire) begin
        a_begins : assert (dut.pc_valid && from <= to && n_line <= n_lines && dut.count == (OffW + 1)'(to) - (OffW + 1)'(from) + 1'b1);
        a_ends : assert (dut.piece_end == last && dut.pc_pop == last);
      end
      if (dut.emit) begin
        a_granted_only : assert (!dut.pc.drop);
        a_line : assert (dut.line == (dut.pc_begun_q ? next_q : dut.pc.line));
        a_place : assert (dut.line == first + LineW'(n_q));
        a_page : assert ((dut.line >> (12 - OffW)) == (first >> (12 - OffW)) && n_q < BurstBytes / StrbW);
        if (dut.burst_last) a_burst : assert (put.line == first && put.len == n_q && put.queue == dut.pc.queue);
        a_put : assert (dut.burst_put == (AtHand ? n_q == '0 : dut.burst_last));
        a_last : assert (dut.burst_last || !last);
        a_chain_end : assert ((dut.burst_last && put.chain_end) == (last && dut.pc.chain_end));
      end
      a_emits : assert (dut.pc.drop || !dut.pc_pop || dut.emit);
      if (dut.mixed_valid_q) a_strobe : assert (dut.beat_in.strb == strobe);
      // for the induction
      i_n : assert (n_q == dut.run_q && n_q < BurstBytes / StrbW && dut.run_any_q == (n_q != '0));
      if (dut.mixed_valid_q) i_mixed : assert (dut.mixed_off_q == from_q && dut.mixed_stop_q == to_q);
      if (open) begin
        i_open : assert (dut.pc_begun_q && put_q.line == first_q && put_q.queue == dut.pc.queue);
        i_open_len : assert (put_q.len == n_q + ((CountW'(dut.rest_q) <= CountW'(to_block)) ? 8'(dut.rest_q) : to_block));
        i_open_end : assert (put_q.chain_end == (dut.pc.chain_end && CountW'(dut.rest_q) <= CountW'(to_block)));
      end
      if (dut.pc_begun_q) begin
        i_begun : assert (dut.pc_valid && dut.rest_last_q == (dut.rest_q == '0) && n_line_q != '0 && n_line_q <= n_lines);
        i_rest : assert (dut.line_q == next_q && CountW'(dut.rest_q) == n_lines - n_line_q);
      end
      if (n_q != '0)
        i_run :
        assert (dut.pc_begun_q && !dut.pc.drop && dut.start_q == first_q && dut.line_q == first_q + LineW'(n_q) && n_q <= 8'(dut.line_q[LineLog2-1:0]));
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
      if (done_valid) a_done : assert (done_len == dut.used.len && done_queue == dut.used.queue && dut.used_valid);
      if (&quiet) a_quiet : assert (dut.chains_held == '0 && !dut.used_valid);
      // for the induction
      c_handed : cover (handed_q == 16'd1 && w_q == 16'd2 && ended_q == 16'd1);  // one chain of two bursts
      i_sent :
      assert (count_t'(dut.sent_q) == count_t'(aw_q - w_q) && dut.sent_q <= Beats + 2 && dut.u_bursts.count_o <= Beats && dut.u_flight.count_q <= dut.Window);
      i_bursts : assert (3'(dut.u_bursts.u_fifo.wptr_q - dut.u_bursts.u_fifo.rptr_q) == dut.u_bursts.count_o[2:0]);
      i_any : assert (dut.sent_any_q == (dut.sent_q != '0) && dut.ended_any_q == (dut.ended_q != '0));
      i_lasts : assert (beat_lasts + count_t'(dut.mixed_valid_q && dut.mixed_last_q) + count_t'(open) == bursts + count_t'(dut.sent_q));
      i_ended : assert (count_t'(dut.ended_q) == count_t'(ended_q - handed_q) && dut.ended_q <= dut.Chains + 1);
      i_chain :
      assert (chain_datas + count_t'(dut.popped_q && dut.has_data_q && !dut.lone_ask_q) + count_t'(open_end) == count_t'(dut.ended_q) + burst_ends + piece_ends + count_t'(dut.lone_q));
    end
  end

endmodule
