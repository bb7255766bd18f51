// SPDX-License-Identifier: Apache-2.0
//
// via_vq_used, without bound, split and packed rings, with and without IN_ORDER: what makes chains visible (the used index, or the first descriptor of
// a batch) is written after the entries of all of them, each whole and in its place, and counts only chains that were handed over.
//
// One chain, any, is watched from the cycle in which it is taken from the FIFO until it is visible. What is written is looked at where AW and W
// are formed together; via_slice hands them on in that order. The suppression field is asked for only once what shows a batch was accepted (W).
// Assumed: queues stay on and set up; a split ring has a power of two of places; a chain takes one place or more, at most the ring; entries of a batch
// do not overlap (via_vq_fetch takes no more chains than the ring has places); what is announced of a chain stays until it comes.

module vq_used
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
  input logic            irq_ready_i,
  input logic            watch_i
);

  localparam int unsigned OffW = BeatLog2;
  localparam int unsigned LineW = AddrW - OffW;
  localparam int unsigned Depth = 4;
  localparam int unsigned Batch = 4;

  axi_ax_t ar, aw;
  axi_w_t w;
  logic done_ready, ar_valid, r_ready, aw_valid, w_valid, b_ready, irq_valid, wr_err, rd_err, cnt_line, cnt_index, shown, still, idle;
  logic [QueueW-1:0] irq_queue, wr_err_queue, rd_err_queue;
  logic [1:0] quiet;

  via_vq_used #(
    .NumQ      (2),
    .Batch     (Batch),
    .Depth     (Depth),
    .Hold      (2),
    .Gap       (1),
    .Most      (4),
    .Recent    (2),
    .BurstBytes(2 * StrbW)
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
    .done_ready_o  (done_ready),
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
    .irq_valid_o   (irq_valid),
    .irq_queue_o   (irq_queue),
    .irq_ready_i,
    .wr_err_o      (wr_err),
    .wr_err_queue_o(wr_err_queue),
    .rd_err_o      (rd_err),
    .rd_err_queue_o(rd_err_queue),
    .cnt_line_o    (cnt_line),
    .cnt_index_o   (cnt_index),
    .shown_o       (shown),
    .quiet_o       (quiet),
    .still_o       (still),
    .idle_o        (idle)
  );

  // ---------------------------------------------------------------- assumed
  logic begun_q = 1'b0;
  vq_feat_t feat_q;
  vq_cfg_t [1:0] cfg_q;
  logic on_ring, near_q;
  logic [66:0] done, done_q;
  assign done = {done_queue_i, done_id_i, done_slots_i, done_len_i, done_whole_i, done_more_i};
  assign on_ring = feat_i.packed_ring;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    near_q <= done_near_i && !(done_valid_i && done_ready);
    done_q <= done;
    if (begun_q && near_q) assume (done_near_i && done == done_q);
    feat_q <= feat_i;
    if (begun_q) assume (feat_i == feat_q);
    for (int q = 0; q < 2; q++) begin
      cfg_q[q] <= queue_i[q];
      if (begun_q) assume (queue_i[q] == cfg_q[q]);
      assume (queue_i[q].enable && queue_i[q].size != '0 && queue_i[q].size <= 16'h8000);
      assume (on_ring || (queue_i[q].size & (queue_i[q].size - 1'b1)) == '0);
      assume (queue_i[q].device[1:0] == '0 && queue_i[q].desc[3:0] == '0);
    end
    if (dut.c_valid) begin
      assume (dut.c.slots != '0 && dut.c.slots <= queue_i[dut.c.queue[0]].size);
      // FIFOs of a queue each hold its chains, with what was found on their way in.
      if (!dut.free) assume (dut.c.queue == QueueW'(dut.side) && dut.c.left == queue_i[dut.c.queue[0]].size - dut.c.slots);
    end
  end

  // ---------------------------------------------------------------- the places of the rings, and how many chains have come
  logic [1:0][15:0] at_q;  // next place of each ring; of a split ring the number of chains
  logic [1:0] wrap_q;  // wrap counters
  logic [1:0][15:0] come_q;  // chains handed over
  logic q;  // the queue of the chain at the head
  logic [16:0] behind;
  logic rounds;  // the place after the chain at the head is in the next round
  logic [15:0] after;
  assign q = dut.c.queue[0];
  assign behind = 17'(at_q[q]) + 17'(on_ring ? dut.c.slots : 16'd1);
  assign rounds = on_ring && behind >= 17'(queue_i[q].size);
  assign after = rounds ? 16'(behind - 17'(queue_i[q].size)) : behind[15:0];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      at_q   <= '0;
      wrap_q <= 2'b11;
      come_q <= '0;
    end else begin
      come_q[done_queue_i] <= come_q[done_queue_i] + 16'(done_valid_i && done_ready);
      if (dut.take) begin
        at_q[q]   <= after;
        wrap_q[q] <= wrap_q[q] ^ rounds;
      end
      a_queue : assert (!dut.take || dut.queue == q);
      a_no_drop : assert (!dut.open_q || !dut.void_q);
      if (dut.open_q) i_at_open : assert (at_q[dut.queue_q] == dut.idx && wrap_q[dut.queue_q] == !dut.wrap);
      i_at_0 : assert (dut.open_q && dut.queue_q == 1'b0 || at_q[0] == dut.idx_q[0] && wrap_q[0] == !dut.wrap_q[0]);
      i_at_1 : assert (dut.open_q && dut.queue_q == 1'b1 || at_q[1] == dut.idx_q[1] && wrap_q[1] == !dut.wrap_q[1]);
      if (dut.open_q) begin
        i_pos :
        assert (!on_ring || dut.left_q == queue_i[dut.queue_q].size - dut.step_q && dut.step_q != '0 && dut.step_q <= queue_i[dut.queue_q].size && dut.pos_q < queue_i[dut.queue_q].size);
        i_step : assert (on_ring || dut.step_q == 16'd1);
        i_base :
        assert (dut.base_q == (on_ring ? queue_i[dut.queue_q].desc : queue_i[dut.queue_q].device) && dut.mask_q == queue_i[dut.queue_q].size - 16'd1);
        i_full : assert (dut.full_q == (dut.n_q == 3'(Batch)) && dut.n_q <= 3'(Batch));
      end else i_closed : assert (!dut.run_q && !dut.first_q);
      i_in_run : assert (dut.in_run_q == (dut.run_q || !dut.open_q));
      if (dut.ahead_q) i_near : assert (!dut.open_q && near_q);
      if (dut.ahead_q) begin
        i_ahead :
        assert (dut.queue_q == done_q[66] && {dut.run_id_q, dut.run_len_q, dut.more_q} == {done_q[65-:16], done_q[33-:32], done_q[0]});
        i_ahead_at :
        assert (dut.pos_q == at_q[dut.queue_q] && dut.run_at_q == at_q[dut.queue_q] && dut.pos_wrap_q == !wrap_q[dut.queue_q] && dut.run_wrap_q == !wrap_q[dut.queue_q]);
        i_ahead_step :
        assert (dut.step_q == (on_ring ? done_q[49-:16] : 16'd1) && dut.left_q == queue_i[dut.queue_q].size - done_q[49-:16] && dut.adv_q == dut.step_q);
        i_ahead_base :
        assert (dut.base_q == (on_ring ? queue_i[dut.queue_q].desc : queue_i[dut.queue_q].device) && dut.mask_q == queue_i[dut.queue_q].size - 16'd1);
      end
      i_in_ring : assert (!on_ring || at_q[0] < queue_i[0].size && at_q[1] < queue_i[1].size);
      // no chain counts before it is handed over
      if (!on_ring) a_come : assert (16'(at_q[0] + 16'(dut.held[0])) == come_q[0] && 16'(at_q[1] + 16'(dut.held[1])) == come_q[1]);
      i_fifo : assert (dut.held[0] <= Depth && dut.held[1] <= Depth);
    end
  end

  // ---------------------------------------------------------------- the run that the chain taken last belongs to
  logic [15:0] run_at_q;  // where its entry goes
  logic run_wrap_q, run_whole_q, run_queue_q;
  always_ff @(posedge clk_i) begin
    if (dut.take) begin
      if (!dut.extend) begin
        run_at_q   <= at_q[q];
        run_wrap_q <= wrap_q[q];
      end
      run_whole_q <= dut.c.whole;
      run_queue_q <= q;
    end
    if (rst_ni) begin
      i_feat : assert (dut.feat_q == feat_i);
      if (dut.take && dut.extend) a_skips : assert (feat_i.in_order && run_whole_q && run_queue_q == q);
      if (dut.open_q) i_open : assert (dut.queue_q == run_queue_q);
      if (dut.run_q)
        i_run : assert (dut.open_q && dut.run_at_q == run_at_q && dut.run_wrap_q != run_wrap_q && dut.run_whole_q == run_whole_q);
      i_first : assert (!dut.first_q || on_ring && dut.open_q);
      if (dut.open_q) i_kept : assert (dut.run_q || dut.first_q || !on_ring);
    end
  end

  // Items wait in two places, the second one if the first does not leave.
  logic item_in, item_moves, item_second;
  assign item_in = dut.u_item.take;
  assign item_moves = dut.u_item.advance;
  assign item_second = dut.u_item.skid_valid_q;
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      i_places : assert ((!item_second || dut.item_valid_q) && (!dut.item_ready || !item_second));
      a_item_in : assert (item_in == (dut.item_new && !dut.void_q) && (!dut.item_new || dut.item_ready));
    end
  end

  // The first entry of a packed batch is not written but to show the batch.
  logic batch_first_q;  // no entry of the batch is made yet
  always_ff @(posedge clk_i) begin
    if (!rst_ni) batch_first_q <= 1'b1;
    else if (dut.final_now || dut.at_once) batch_first_q <= 1'b1;
    else if (dut.emit) batch_first_q <= 1'b0;
    if (rst_ni && on_ring) begin
      a_kept_back : assert (!(item_in && !dut.item_d.shows && batch_first_q));
      i_batch_first : assert (batch_first_q == !dut.first_q);
    end
  end

  // ---------------------------------------------------------------- the chain that is watched
  typedef enum logic [2:0] {
    StNone,
    StRun,    // taken, its entry not made
    StOut,    // its entry is on its way to memory
    StFirst,  // its entry is kept back: the first of a packed batch
    StShow    // its entry is what shows the batch
  } st_e;
  st_e st_q;
  logic in_item_q, visible_q;  // its entry is in a register before the line; what shows it is
  logic item_at_q, visible_at_q;  // in the second one
  logic [1:0] in_line_q, written_q;  // its lower and upper four bytes
  logic [15:0] id_q, place_q;
  logic [31:0] len_q;
  logic ring_q, ring_wrap_q;
  logic [AddrW-1:0] addr, addr_hi;
  logic [63:0] entry;
  logic [15:0] place;

  assign place = place_q & (queue_i[ring_q].size - 16'd1);
  assign addr = on_ring ? queue_i[ring_q].desc + AddrW'({place_q, 4'h8}) : queue_i[ring_q].device + AddrW'({place, 3'h4});
  assign addr_hi = addr + AddrW'(4);
  assign entry = on_ring ? {ring_wrap_q, 7'h0, ring_wrap_q, 5'h0, len_q != '0, 1'b0, id_q, len_q} : {len_q, 16'h0, id_q};

  // What the line holds of it, and what is written of it now.
  function automatic logic word_in(input logic [AddrW-1:0] a, input logic [31:0] d, input logic [AddrW-OffW-1:0] line,
                                   input logic [StrbW-1:0] strb, input logic [DataW-1:0] data);
    return a[AddrW-1:OffW] == line && 4'(strb >> {a[OffW-1:2], 2'b00}) == 4'hf && 32'(data >> {a[OffW-1:2], 5'h0}) == d;
  endfunction
  logic [1:0] line_has, out_has, in_line;
  logic merge_it;
  assign merge_it = in_item_q && !item_at_q && dut.merge;
  assign in_line = (dut.flush ? 2'b00 : in_line_q) | (!merge_it ? 2'b00 : !dut.straddles ? 2'b11 : dut.half_q ? 2'b10 : 2'b01);
  assign line_has[0] = word_in(addr, entry[31:0], dut.line_q, dut.line_strb, dut.line_data_q);
  assign line_has[1] = word_in(addr_hi, entry[63:32], dut.line_q, dut.line_strb, dut.line_data_q);
  assign out_has[0] = word_in(addr, entry[31:0], dut.out_line, dut.w.strb, dut.w.data);
  assign out_has[1] = word_in(addr_hi, entry[63:32], dut.out_line, dut.w.strb, dut.w.data);

  // The items with its entry and with what shows it.
  typedef struct packed {
    logic             shows;
    logic [AddrW-1:0] addr;
    logic [63:0]      data;
  } item_t;
  item_t first, second, mine, showing;
  logic mine_valid;
  assign first = '{shows: dut.item_q.shows, addr: dut.item_q.addr, data: dut.item_q.data};
  assign second = '{shows: dut.u_item.gen_ff.skid_q.shows, addr: dut.u_item.gen_ff.skid_q.addr, data: dut.u_item.gen_ff.skid_q.data};
  assign mine = item_at_q ? second : first;
  assign showing = visible_at_q ? second : first;
  assign mine_valid = item_at_q ? item_second : dut.item_valid_q;

  // The words of the line that entries have put there, of whatever chain; and those before an entry of 8 bytes that are its descriptor's address, where
  // the bus is as wide as a descriptor. No other is written, and of the latter only zeros.
  localparam int unsigned Lanes = StrbW / 4;
  localparam int unsigned LaneW = $clog2(Lanes);
  logic [Lanes-1:0] own, pad, own_q, pad_q, pad_bad;
  logic goes_on;  // an entry joins the line
  assign goes_on = dut.line_valid_q && !dut.flush;
  for (genvar i = 0; i < Lanes; i++) begin : gen_own
    logic [AddrW-3:0] word, of;
    assign word = {dut.want + LineW'(dut.half_q), LaneW'(i)};
    assign of = dut.item_q.addr[AddrW-1:2];
    assign own[i] = word == of || word == of + 1'b1;
    assign pad[i] = Lanes >= 4 && on_ring && (word + 1'b1 == of || word + 2'd2 == of);
    assign pad_bad[i] = pad_q[i] && dut.line_data_q[32*i+:32] != '0;
    always_ff @(posedge clk_i) begin
      if (dut.merge) begin
        own_q[i] <= own[i] || own_q[i] && goes_on;
        pad_q[i] <= !own[i] && (pad[i] || pad_q[i] && goes_on);
      end
    end
  end

  // What shows the batch.
  logic show_ring_q;
  logic [15:0] show_at_q;
  logic [AddrW-1:0] index_at;
  assign index_at = queue_i[show_ring_q].device + AddrW'(2);

  logic show_ring, show_ring_second_q;
  logic [15:0] show_at, show_at_second_q;
  assign show_ring = dut.at_once ? q : run_queue_q;
  assign show_at   = dut.at_once ? after : at_q[run_queue_q];
  logic [LineW-1:0] before_q;  // line of the beat before
  logic [7:0] beat_q;  // of its burst
  always_ff @(posedge clk_i) begin
    if (item_moves) begin
      show_ring_q <= item_second ? show_ring_second_q : show_ring;
      show_at_q   <= item_second ? show_at_second_q : show_at;
    end else if (item_in) begin
      show_ring_second_q <= show_ring;
      show_at_second_q   <= show_at;
    end
    if (dut.out_go) before_q <= dut.out_line;
    if (!rst_ni) beat_q <= '0;
    else if (dut.out_go) beat_q <= dut.w.last ? '0 : beat_q + 1'b1;
    if (!rst_ni) begin
      st_q      <= StNone;
      in_item_q <= 1'b0;
      visible_q <= 1'b0;
      in_line_q <= '0;
      written_q <= '0;
    end else begin
      if (st_q == StNone && dut.take && watch_i) begin
        st_q         <= dut.at_once ? StShow : dut.early ? StOut : StRun;
        in_item_q    <= dut.early && !dut.at_once;
        item_at_q    <= !item_moves;
        visible_q    <= dut.at_once;
        visible_at_q <= !item_moves;
        id_q         <= dut.c.id;
        len_q        <= dut.c.len;
        ring_q       <= q;
        place_q      <= dut.extend ? run_at_q : at_q[q];
        ring_wrap_q  <= dut.extend ? run_wrap_q : wrap_q[q];
        in_line_q    <= '0;
        written_q    <= '0;
      end
      if (st_q == StRun) begin
        if (dut.emit) begin
          st_q      <= (on_ring && !dut.first_q) ? StFirst : StOut;
          in_item_q <= !on_ring || dut.first_q;
          item_at_q <= !item_moves;
        end else if (dut.take) st_q <= StNone;  // a later chain of the run stands for it
      end
      if (dut.flush) written_q <= written_q | in_line_q;
      if (merge_it) in_item_q <= dut.straddles && !dut.half_q;
      if (st_q == StOut) in_line_q <= in_line;
      if (in_item_q && !item_at_q && dut.entry_out) begin
        written_q <= 2'b11;
        in_item_q <= 1'b0;
      end
      if (in_item_q && item_moves) item_at_q <= 1'b0;
      if (visible_q && item_moves) visible_at_q <= 1'b0;
      if (dut.final_now && st_q != StNone && !visible_q) begin
        visible_q <= 1'b1;
        visible_at_q <= !item_moves;
        if (st_q != StOut) st_q <= StShow;
      end
      if (dut.shows_out && visible_q && !visible_at_q) begin
        st_q      <= StNone;
        visible_q <= 1'b0;
        written_q <= '0;
      end

      // the entries of a batch do not overlap: used elements of 8 bytes, descriptors of 16
      if (st_q == StOut && (!in_item_q || item_at_q) && dut.item_valid_q && !dut.item_q.shows) begin
        assume (dut.item_q.addr - addr >= (on_ring ? AddrW'(16) : AddrW'(8)) && addr - dut.item_q.addr >= (on_ring ? AddrW'(16) : AddrW'(8)));
      end

      // ---------------------------------------------------------------- proved
      a_one :
      assert ($onehot0(
          {dut.flush, dut.shows_out, dut.entry_out}
      ) && dut.out_go == (dut.flush || dut.shows_out || dut.entry_out) && (!dut.out_go || dut.aw_room && dut.w_room && dut.flight_room));
      // A burst: lines that follow one another, its address with the last one.
      a_last : assert (dut.aw_go == (dut.out_go && dut.w.last));
      a_out :
      assert (!dut.aw_go || dut.aw.addr[OffW-1:0] == '0 && dut.aw.len == beat_q && dut.aw.addr[AddrW-1:OffW] == dut.out_line - LineW'(beat_q) && 2'(dut.aw.addr[OffW]) + 2'(beat_q) < 2'd2);
      a_next : assert (!dut.out_go || beat_q == '0 || dut.out_line == before_q + 1'b1);
      if (beat_q != '0) i_next : assert (dut.line_valid_q && dut.line_q == before_q + 1'b1 && beat_q <= 8'(dut.line_lo));
      i_beats : assert (beat_q == 8'(dut.beats_q));
      a_left : assert (!dut.left || w_valid && w_ready_i);
      if (dut.line_valid_q) a_only : assert ((dut.line_strb_q & ~(own_q | pad_q)) == '0 && pad_bad == '0);
      if (dut.flush) a_strobe : assert (dut.w.strb == dut.line_strb);
      if (dut.flush) a_entry : assert ((!in_line_q[0] || out_has[0]) && (!in_line_q[1] || out_has[1]));
      if (dut.entry_out)
        a_entry_alone : assert (!dut.line_valid_q && $countones(dut.w.strb) == 8 && (!in_item_q || item_at_q || out_has == 2'b11));
      if (dut.shows_out) begin
        if (visible_q && !visible_at_q && st_q == StOut) a_before : assert (written_q == 2'b11);
        if (visible_q && !visible_at_q && st_q == StShow) a_shows : assert (on_ring && out_has == 2'b11 && $countones(dut.w.strb) == 8);
        if (visible_q) a_state : assert (st_q == StOut || st_q == StShow);
        if (!on_ring) begin
          a_index : assert (16'(dut.w.data >> {index_at[OffW-1:0], 3'h0}) == show_at_q);
          a_index_at : assert (dut.aw.addr[AddrW-1:OffW] == index_at[AddrW-1:OffW] && dut.w.strb == StrbW'(2'b11) << index_at[OffW-1:0]);
        end
      end

      c_index : cover (!on_ring && dut.shows_out && visible_q && show_at_q == 16'd2);
      c_first : cover (on_ring && dut.shows_out && visible_q && st_q == StShow);

      // ---------------------------------------------------------------- for the induction
      i_st : assert (st_q <= StShow);
      if (st_q == StRun) begin
        i_st_run :
        assert (dut.run_q && dut.run_id_q == id_q && dut.run_len_q == len_q && run_at_q == place_q && run_wrap_q == ring_wrap_q && run_queue_q == ring_q);
      end
      if (st_q != StOut) i_clear : assert (!in_item_q && in_line_q == '0 && written_q == '0);
      if (in_item_q) begin
        i_item :
        assert (mine_valid && !mine.shows && mine.addr == addr && mine.data == entry && (!visible_q || !item_at_q && visible_at_q));
        i_half :
        assert ((dut.half_q && !item_at_q) ? (in_line_q[0] != written_q[0] && !in_line_q[1] && !written_q[1]) : (in_line_q == '0 && written_q == '0));
      end
      if (st_q == StOut && !in_item_q) i_merged : assert ((in_line_q ^ written_q) == 2'b11);
      if (dut.item_valid_q && !dut.item_q.shows)
        i_aligned : assert (dut.item_q.addr[1:0] == '0 && (!on_ring || dut.item_q.addr[3:2] == 2'b10));
      if (item_second && !dut.u_item.gen_ff.skid_q.shows)
        i_aligned_second : assert (dut.u_item.gen_ff.skid_q.addr[1:0] == '0 && (!on_ring || dut.u_item.gen_ff.skid_q.addr[3:2] == 2'b10));
      if (dut.half_q) i_straddles : assert (dut.item_valid_q && dut.straddles && dut.line_valid_q && dut.line_q == dut.want);
      if (in_line_q != '0) i_line : assert (dut.line_valid_q && (!in_line_q[0] || line_has[0]) && (!in_line_q[1] || line_has[1]));
      if (st_q == StFirst)
        i_st_first : assert (dut.first_q && dut.first_addr_q == addr && dut.first_data_q == entry && !visible_q && run_queue_q == ring_q);
      if (st_q == StShow) i_st_show : assert (on_ring && visible_q && showing.addr == addr && showing.data == entry);
      if (st_q == StRun || st_q == StNone) i_later : assert (!visible_q);
      if (visible_q) i_visible : assert (showing.shows && (visible_at_q ? item_second : dut.item_valid_q));
      if (!visible_q && st_q != StNone) i_batch : assert (dut.open_q && run_queue_q == ring_q);
      if (dut.item_valid_q && dut.item_q.shows && !on_ring)
        i_index : assert (dut.item_q.addr == index_at && dut.item_q.data == {4{show_at_q}});
      if (item_second && dut.u_item.gen_ff.skid_q.shows && !on_ring)
        i_index_second :
        assert (dut.u_item.gen_ff.skid_q.addr == queue_i[show_ring_second_q].device + AddrW'(2) && dut.u_item.gen_ff.skid_q.data == {4{show_at_second_q}});
    end
  end

endmodule
