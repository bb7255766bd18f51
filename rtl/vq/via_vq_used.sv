// SPDX-License-Identifier: Apache-2.0
//
// Reports used chains to the driver: entries in batches, then the write that makes them visible, then (via_vq_used_irq) the interrupt.
//
//   done ─ FIFO ─ runs ─ entries ─ line ──> AW, W      used elements or descriptors: a beat is a line, consecutive lines are a burst
//      └ alone ┘           └─ index ─────┘  └─ the index has left ─> via_vq_used_irq: suppression field (AR, R) ─> irq
//
// Throughput: one chain a cycle while batches are long, one every three to five cycles with one chain a batch. Latency of a
// single chain, from `done_valid_i` to AW: 3 cycles for its entry, 4 for its index (split); 2 and 3 if it was announced (done_near_i) at
// least a cycle before.
// A batch consists of consecutive waiting chains of one queue, at most `Batch` of them and the rest of a response spread over several. If
// chains come in quick succession (the first one less than `Recent` cycles after the one before), they wait for more: for `Hold` cycles,
// then as long as the next one comes within `Gap` cycles (within `Hold` after a few of them), at most `Most` cycles; less if nothing more
// can come (the whole ring is used, the queue closes), if a chain of another queue comes after them, or if the FIFO fills. Then they are
// processed one a cycle, and those that come meanwhile join them. Each write saved leaves room on the link for payload. A single chain
// never waits.
// Order: entries of a batch, then its index (split) or its first descriptor (packed), so that the whole batch becomes visible at once and
// last. The suppression field is read in the cycle after that write was accepted (W): the host port keeps the read behind it
// (docs/interfaces.md).
// In order: chains whose writable bytes are all written need no entry if a later one of the batch has one (the driver then takes them as
// used completely).
// Misuse: chains of a queue that is off when their batch begins are dropped. A write or read that ends with an error stops the queue
// (`err_*`).

module via_vq_used
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ       = 2,   // queues
  parameter int unsigned Batch      = 64,  // chains in a batch
  parameter int unsigned Depth      = 64,  // chains that wait, of even and of odd queues each
  parameter int unsigned Hold       = 20,  // cycles, see above
  parameter int unsigned Gap        = 12,  // cycles, see above
  parameter int unsigned Most       = 64,  // cycles, see above
  parameter int unsigned Recent     = 32,  // cycles, see above
  parameter int unsigned BurstBytes = 256  // longest write; none crosses a multiple of it
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] time_i,                // card time
  input  vq_feat_t              feat_i,                // negotiated features
  input  vq_cfg_t               queue_i       [NumQ],  // queues as the driver has set them up
  input  logic     [  NumQ-1:0] closing_i,             // level: the queue is under reset or off
  input  logic     [      15:0] moderate_i,            // minimum cycles between two interrupts of a queue
  input  logic     [QueueW-1:0] done_queue_i,          // queue of the used chain
  input  logic     [      15:0] done_id_i,             // head index or buffer id
  input  logic     [      15:0] done_slots_i,          // ring slots
  input  logic     [      31:0] done_len_i,            // bytes written
  input  logic                  done_whole_i,          // all of its writable bytes were written
  input  logic                  done_more_i,           // the next chain must become visible with it
  input  logic                  done_near_i,           // level: these are the values of the chain that comes next, and stay until it comes
  input  logic                  done_valid_i,
  output logic                  done_ready_o,
  output axi_ax_t               m_ar_o,
  output logic                  m_ar_valid_o,
  input  logic                  m_ar_ready_i,
  input  axi_r_t                m_r_i,
  input  logic                  m_r_valid_i,
  output logic                  m_r_ready_o,
  output axi_ax_t               m_aw_o,
  output logic                  m_aw_valid_o,
  input  logic                  m_aw_ready_i,
  output axi_w_t                m_w_o,
  output logic                  m_w_valid_o,
  input  logic                  m_w_ready_i,
  input  axi_b_t                m_b_i,
  input  logic                  m_b_valid_i,
  output logic                  m_b_ready_o,
  output logic                  irq_valid_o,
  output logic     [QueueW-1:0] irq_queue_o,           // queue whose interrupt it is
  input  logic                  irq_ready_i,
  output logic                  wr_err_o,              // pulse: a write failed
  output logic     [QueueW-1:0] wr_err_queue_o,        // with wr_err_o: stop this queue
  output logic                  rd_err_o,              // pulse: a read failed
  output logic     [QueueW-1:0] rd_err_queue_o,        // with rd_err_o: stop this queue
  output logic                  cnt_line_o,            // pulse: a burst of entries is written
  output logic                  cnt_index_o,           // pulse: a batch is made visible
  output logic                  shown_o,               // pulse: that write has its response (B)
  output logic     [QueueW-1:0] shown_queue_o,         // with shown_o: the queue
  output logic     [  NumQ-1:0] quiet_o,               // level: nothing of this queue is held
  output logic                  still_o,               // level: nothing moves unless an input changes
  output logic                  idle_o                 // level: nothing is held
);

  localparam bit NumQOk = param_in("via_vq_used NumQ", NumQ, 1, QueuesMax);
  localparam bit BatchOk = param_in("via_vq_used Batch", Batch, 1, 1024);
  localparam bit DepthOk = param_in("via_vq_used Depth", Depth, 1, 1023);
  localparam bit HoldOk = param_in("via_vq_used Hold", Hold, 2, 255);
  localparam bit GapOk = param_in("via_vq_used Gap", Gap, 1, Hold);
  localparam bit MostOk = param_in("via_vq_used Most", Most, Hold, 1023);
  localparam bit RecentOk = param_in("via_vq_used Recent", Recent, 1, 255);
  localparam bit BurstOk = param_pow2("via_vq_used BurstBytes", BurstBytes, 2 * StrbW, 4096);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned OffW = BeatLog2;
  localparam int unsigned LineW = AddrW - OffW;
  localparam int unsigned Lanes = StrbW / 4;
  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned Burst = BurstBytes / StrbW;  // lines
  localparam int unsigned BurstW = $clog2(Burst);
  localparam int unsigned Window = 64;  // bursts in flight
  localparam int unsigned CountW = $clog2(Depth + 1);
  localparam int unsigned Full = Depth - Depth / 4;  // from this number on chains wait no longer
  localparam int unsigned Crowd = 4;  // from this number on it is not a short burst
  localparam int unsigned BatchW = $clog2(Batch + 1);
  localparam int unsigned HoldW = $clog2(Hold + 1);
  localparam int unsigned GapW = $clog2(Hold + 1);
  localparam int unsigned MostW = $clog2(Most + 1);
  localparam int unsigned RecentW = $clog2(Recent + 1);

  // Negotiated long before a chain is used.
  vq_feat_t feat_q;
  always_ff @(posedge clk_i) feat_q <= feat_i;

  // ---------------------------------------------------------------- waiting chains
  typedef struct packed {
    logic              same;   // of the same queue as the previous one in its FIFO
    logic              whole;
    logic              more;
    logic [QueueW-1:0] queue;
    logic [15:0]       id;
    logic [15:0]       slots;
    logic [15:0]       left;   // ring entries other than its own
    logic [31:0]       len;
  } chain_t;
  // Even queues wait separately from odd ones, so that receive and transmit queues do not cut each other's batches short.
  logic open_q;  // a batch is open, of queue_q
  logic [QW-1:0] queue_q, come_queue;
  chain_t chain_in, c, waiting[2];
  logic come, quick, by, free, c_valid, take, side, next_side_q;
  logic [1:0] waiting_valid, room, due_q, push;
  logic [1:0][CountW-1:0] held;
  logic [1:0][QW-1:0] last_q;  // queue of the previous chain
  logic [NumQ-1:0][RecentW-1:0] recent_q;  // cycles during which another chain of the queue counts as quick
  logic [NumQ-1:0] near_q, part_q;  // it still does; the response of the previous chain has more

  assign done_ready_o = &room;
  assign come = done_valid_i && done_ready_o;
  assign come_queue = QW'(done_queue_i);
  // The rest of a response does not wait.
  assign quick = near_q[come_queue] && !part_q[come_queue];
  assign chain_in = '{
          same: last_q[done_queue_i[0]] == come_queue,
          whole: done_whole_i,
          more: done_more_i,
          queue: done_queue_i,
          id: done_id_i,
          slots: done_slots_i,
          left: queue_i[come_queue].size - done_slots_i,
          len: done_len_i
      };
  // A single chain bypasses the FIFO.
  assign free = !open_q && waiting_valid == '0;
  assign by = free && come && !quick;

  for (genvar q = 0; q < NumQ; q++) begin : gen_recent
    logic mine;
    assign mine = come && come_queue == QW'(q);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        recent_q[q] <= '0;
        near_q[q]   <= 1'b0;
        part_q[q]   <= 1'b0;
      end else begin
        if (mine) recent_q[q] <= RecentW'(Recent);
        else if (near_q[q]) recent_q[q] <= recent_q[q] - 1'b1;
        if (mine) near_q[q] <= 1'b1;
        else if (recent_q[q] == RecentW'(1)) near_q[q] <= 1'b0;
        if (mine) part_q[q] <= done_more_i;
      end
    end
  end

  for (genvar i = 0; i < 2; i++) begin : gen_side
    logic [HoldW-1:0] hold_q;
    logic [GapW-1:0] gap_q;
    logic [MostW-1:0] most_q;
    logic [15:0] places_q;  // ring entries that the waiting chains occupy
    logic fresh, ends_q, mixed;

    assign push[i] = come && done_queue_i[0] == 1'(i) && !by;
    via_fifo #(
      .T    (chain_t),
      .Depth(Depth)
    ) u_chains (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (chain_in),
      .s_valid_i(push[i]),
      .s_ready_o(room[i]),
      .m_o      (waiting[i]),
      .m_valid_o(waiting_valid[i]),
      .m_ready_i(take && !free && side == 1'(i)),
      .count_o  (held[i])
    );

    assign fresh = push[i] && !waiting_valid[i];
    assign mixed = push[i] && waiting_valid[i] && !chain_in.same;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        due_q[i]  <= 1'b0;
        ends_q    <= 1'b0;
        last_q[i] <= '0;
      end else begin
        if (fresh) due_q[i] <= !quick;
        else if (waiting_valid[i] && (ends_q || mixed)) due_q[i] <= 1'b1;
        ends_q <= waiting_valid[i] && !due_q[i] && !fresh &&
            (hold_q == '0 && gap_q == '0 && !push[i] || most_q == '0 || held[i] >= CountW'(Full) || places_q >= queue_i[last_q[i]].size ||
             closing_i[last_q[i]]);
        if (come && done_queue_i[0] == 1'(i)) last_q[i] <= come_queue;
      end
    end
    always_ff @(posedge clk_i) begin
      if (fresh) begin
        hold_q   <= HoldW'(Hold - 2);
        most_q   <= MostW'(Most - 2);
        places_q <= feat_q.packed_ring ? done_slots_i : 16'd1;
      end else if (waiting_valid[i] && !due_q[i]) begin
        if (hold_q != '0) hold_q <= hold_q - 1'b1;
        if (most_q != '0) most_q <= most_q - 1'b1;
        if (push[i]) places_q <= places_q + (feat_q.packed_ring ? done_slots_i : 16'd1);
      end
      if (push[i]) gap_q <= (held[i] >= CountW'(Crowd)) ? GapW'(Hold - 1) : GapW'(Gap - 1);
      else if (gap_q != '0 && waiting_valid[i] && !due_q[i]) gap_q <= gap_q - 1'b1;
    end
  end

  // ---------------------------------------------------------------- runs of chains that share one entry
  // idx_q is the next ring position, while no batch of the queue is open: a free-running index (split) or a position in the ring (packed).
  logic [NumQ-1:0][15:0] idx_q;
  logic [NumQ-1:0] wrap_q;  // inverted: zero after reset stands for a wrap counter of one
  logic more_q, run_q, run_wrap_q, run_whole_q, first_q;
  logic on_q, void_q;  // the batch's queue is on; it was off when the batch began
  logic [QW-1:0] queue;
  logic [BatchW-1:0] n_q;
  logic full_q;  // n_q is Batch
  logic [15:0] run_at_q, run_id_q, adv_q, idx, step;
  logic [15:0] pos_q, step_q, left_q;  // of the previous chain: its position, the entries it occupies, and all others
  logic pos_wrap_q;
  logic [31:0] run_len_q;
  logic wrap, wraps, at_wrap;
  logic [15:0] at;  // position of the current chain
  logic fits, extend, close, lone, emit, final_now, item_ready;
  logic ahead_q, early, at_once;
  logic in_run_q;  // run_q is high or open_q low: the entry is that of the run
  logic [AddrW-1:0] entry_addr, base_q;
  logic [15:0] mask_q;
  logic [63:0] entry, first_data_q;
  logic [AddrW-1:0] first_addr_q;
  vq_cfg_t cfg;

  assign side = open_q ? queue_q[0] : (waiting_valid[next_side_q] && due_q[next_side_q]) ? next_side_q : !next_side_q;
  assign c = free ? chain_in : waiting[side];
  assign c_valid = free ? by : waiting_valid[side] && due_q[side];
  assign queue = open_q ? queue_q : QW'(c.queue);
  assign cfg = queue_i[QW'(c.queue)];

  // The position after the previous chain.
  assign wraps = feat_q.packed_ring && pos_q >= left_q;
  assign idx = wraps ? pos_q - left_q : pos_q + step_q;
  assign wrap = pos_wrap_q ^ wraps;
  assign at = open_q ? idx : idx_q[QW'(c.queue)];
  assign at_wrap = open_q ? wrap : wrap_q[QW'(c.queue)];
  assign step = feat_q.packed_ring ? c.slots : 16'd1;

  assign fits = c_valid && (!open_q || c.same && (!full_q || more_q));
  assign extend = run_q && feat_q.in_order && run_whole_q;
  assign take = fits && (extend || !run_q || item_ready);
  assign close = open_q && !fits && !(more_q && on_q);
  // Without a batch, and while no chain waits, the registers below hold the values at the port as of the previous cycle. A single chain that
  // was there already is processed as it comes.
  assign early = by && ahead_q && item_ready && !void_q && !c.more;
  assign at_once = early && feat_q.packed_ring;
  // A packed batch of one entry becomes visible with that entry.
  assign lone = feat_q.packed_ring && run_q && !first_q;
  assign emit = item_ready && run_q && (close && !lone || fits && !extend);
  assign final_now = item_ready && close && (!run_q || lone);

  // Of the 16 bytes of a descriptor the upper 8 are written: flags, id, len. Both of its wrap bits are the device's wrap counter.
  // The used index is at byte 2 of the used ring, its elements start at byte 4.
  logic [19:0] offset;
  always_comb begin
    if (feat_q.packed_ring) begin
      offset = {run_at_q, 4'h8};
      entry  = {!run_wrap_q, 7'h0, !run_wrap_q, 5'h0, run_len_q != '0, 1'b0, run_id_q, run_len_q};
    end else begin
      offset = in_run_q ? 20'({run_at_q & mask_q, 3'h4}) : 20'd2;
      entry  = {run_len_q, 16'h0, run_id_q};
    end
  end
  assign entry_addr = base_q + AddrW'(offset);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ahead_q     <= 1'b0;
      open_q      <= 1'b0;
      run_q       <= 1'b0;
      in_run_q    <= 1'b1;
      first_q     <= 1'b0;
      next_side_q <= 1'b0;
    end else begin
      ahead_q <= free && done_near_i && !come;
      if (take) open_q <= !at_once;
      else if (final_now) open_q <= 1'b0;
      if (take) run_q <= !early;
      else if (emit || final_now) run_q <= 1'b0;
      if (take) in_run_q <= !early || at_once;
      else if (final_now) in_run_q <= 1'b1;
      else if (emit) in_run_q <= 1'b0;
      if (final_now || at_once) next_side_q <= !queue_q[0];
      if (final_now) first_q <= 1'b0;
      else if (emit && feat_q.packed_ring) first_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    on_q <= queue_i[queue_q].enable;
    if (!open_q) begin
      queue_q <= QW'(c.queue);
      on_q    <= cfg.enable;
      void_q  <= !cfg.enable;
      base_q  <= feat_q.packed_ring ? cfg.desc : cfg.device;
      mask_q  <= cfg.size - 16'd1;
    end
    if (take || !open_q) begin
      more_q      <= c.more;
      n_q         <= !open_q ? BatchW'(1) : full_q ? n_q : n_q + 1'b1;
      full_q      <= open_q ? full_q || n_q == BatchW'(Batch - 1) : Batch == 1;
      adv_q       <= (open_q ? adv_q : '0) + step;
      pos_q       <= at;
      pos_wrap_q  <= at_wrap;
      step_q      <= step;
      left_q      <= c.left;
      run_id_q    <= c.id;
      run_len_q   <= c.len;
      run_whole_q <= c.whole;
      if (!extend) begin
        run_at_q   <= at;
        run_wrap_q <= at_wrap;
      end
    end
    if (emit && feat_q.packed_ring && !first_q) begin
      first_addr_q <= entry_addr;
      first_data_q <= entry;
    end
  end
  for (genvar q = 0; q < NumQ; q++) begin : gen_idx
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !queue_i[q].enable) begin
        idx_q[q]  <= '0;
        wrap_q[q] <= 1'b0;
      end else if ((final_now && !void_q || at_once) && queue_q == QW'(q)) begin
        idx_q[q]  <= idx;
        wrap_q[q] <= wrap;
      end
    end
  end

  // ---------------------------------------------------------------- entries and the writes that make them visible, one at a time
  typedef struct packed {
    logic             shows;
    logic             closes;  // an entry after which nothing waited: its line need not be kept for more
    logic             wrap;
    logic [QW-1:0]    queue;
    logic [15:0]      idx;
    logic [15:0]      adv;
    logic [63:0]      data;
    logic [AddrW-1:0] addr;
  } item_t;
  item_t item_d, item_q;
  logic item_valid_q, item_done;

  always_comb begin
    item_d = '{
        shows: final_now || at_once,
        closes: close || early,
        wrap: !wrap,
        queue: queue_q,
        idx: idx,
        adv: adv_q,
        data: entry,
        addr: entry_addr
    };
    if (feat_q.packed_ring && !in_run_q) begin
      item_d.data = first_data_q;
      item_d.addr = first_addr_q;
    end else if (!in_run_q) begin
      item_d.data = {4{idx}};
    end
  end
  logic item_new;
  // The first entry of a packed batch is held back: it makes the others visible.
  assign item_new = emit && (!feat_q.packed_ring || first_q) || final_now || early;
  via_slice #(
    .T(item_t)
  ) u_item (
    .clk_i,
    .rst_ni,
    .s_i      (item_d),
    .s_valid_i(item_new && !void_q),
    .s_ready_o(item_ready),
    .m_o      (item_q),
    .m_valid_o(item_valid_q),
    .m_ready_i(item_done)
  );

  // ---------------------------------------------------------------- lines, bursts
  // A line is filled until an entry does not belong to it; then it leaves, as a beat of a burst that continues if the entry's line is the
  // next one. The write that makes a batch visible, and a single entry, bypass the line. AW follows with the last beat.
  logic line_valid_q, half_q, near, same, next, straddles, alone, merge, flush, shows_out, entry_out, out_go, out_room, out_last;
  logic aw_room, w_room, flight_room, aw_go;
  logic [LineW-1:0] line_q, want, out_line;
  logic [BurstW-1:0] beats_q, line_lo, want_lo;  // beats of the burst that have left; number of the line within a burst
  logic [LaneW-1:0] lane;
  logic [Lanes-1:0] line_strb_q, en, pad;
  logic slot;
  logic [DataW-1:0] line_data_q;

  assign lane = item_q.addr[OffW-1:2];
  assign straddles = !item_q.shows && lane == LaneW'(Lanes - 1);
  assign want = item_q.addr[AddrW-1:OffW];
  assign line_lo = line_q[BurstW-1:0];
  assign want_lo = want[BurstW-1:0];
  assign near = line_q[LineW-1:BurstW] == want[LineW-1:BurstW];
  // The second half of an entry goes to the line after that of the first half.
  assign same = near && line_lo == want_lo && !half_q;
  assign next = line_lo != '1 && (half_q || near && want_lo == line_lo + 1'b1);
  assign out_room = aw_room && w_room && flight_room;
  assign alone = !item_q.shows && item_q.closes && !straddles && !line_valid_q;
  assign merge = item_valid_q && !item_q.shows && !alone && (!line_valid_q || same || out_room);
  assign flush = item_valid_q && line_valid_q && (item_q.shows || !same) && out_room;
  assign shows_out = item_valid_q && item_q.shows && !line_valid_q && out_room;
  assign entry_out = item_valid_q && alone && out_room;
  assign item_done = merge && (!straddles || half_q) || shows_out || entry_out;
  assign out_go = flush || shows_out || entry_out;
  assign out_last = !line_valid_q || item_q.shows || !next;
  assign aw_go = out_go && out_last;
  assign out_line = line_valid_q ? line_q : want;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      line_valid_q <= 1'b0;
      half_q       <= 1'b0;
      beats_q      <= '0;
    end else begin
      if (merge) line_valid_q <= 1'b1;
      else if (flush) line_valid_q <= 1'b0;
      if (merge) half_q <= straddles && !half_q;
      if (out_go) beats_q <= out_last ? '0 : beats_q + 1'b1;
    end
  end
  // The address in a used descriptor has no meaning (VIRTIO 1.3, 2.8.4), so it is written too, as zero: consecutive descriptors then leave
  // in one packet without gaps. This affects only entries that are not visible yet, so a driver that puts a new descriptor there does so
  // afterwards.
  assign slot = Lanes >= 4 && feat_q.packed_ring && item_q.addr[3:2] == 2'b10;
  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    assign pad[i] = slot && i % 4 < 2 && LaneW'(i / 4) == lane >> 2;
    // A word goes to its own lane, the other one to the next lane, in the next line if necessary.
    assign en[i]  = !half_q && lane == LaneW'(i) || (half_q || !straddles) && lane + 1'b1 == LaneW'(i);
    always_ff @(posedge clk_i) begin
      if (merge) line_strb_q[i] <= en[i] || pad[i] || line_valid_q && same && line_strb_q[i];
      if (merge && (en[i] || pad[i]))
        line_data_q[32*i+:32] <= pad[i] ? '0 : (lane[0] == 1'(i % 2)) ? item_q.data[31:0] : item_q.data[63:32];
    end
  end
  always_ff @(posedge clk_i) if (merge) line_q <= half_q ? line_q + 1'b1 : want;

  typedef struct packed {
    logic          shows;
    logic          wrap;
    logic [QW-1:0] queue;
    logic [15:0]   idx;
    logic [15:0]   adv;
  } flight_t;
  // A beat, with what becomes visible by it, which is needed when it has left.
  typedef struct packed {
    axi_w_t  w;
    flight_t f;
  } out_t;
  axi_ax_t aw;
  axi_w_t w;
  flight_t flight;
  out_t out;
  logic left;
  logic [StrbW-1:0] line_strb;
  for (genvar i = 0; i < Lanes; i++) begin : gen_strb
    assign line_strb[4*i+:4] = {4{line_strb_q[i]}};
  end
  always_comb begin
    aw       = '0;
    aw.burst = BurstIncr;
    aw.size  = 3'(BeatLog2);
    aw.len   = 8'(beats_q);
    aw.addr  = {out_line[LineW-1:BurstW], BurstW'(out_line[BurstW-1:0] - beats_q), OffW'(0)};
    w.last   = out_last;
    w.data   = line_data_q;
    w.strb   = line_strb;
    if (!line_valid_q) begin
      w.data = {StrbW / 8{item_q.addr[2] ? {item_q.data[31:0], item_q.data[63:32]} : item_q.data}};
      w.strb = ((feat_q.packed_ring || !item_q.shows) ? StrbW'(8'hff) : StrbW'(2'b11)) << item_q.addr[OffW-1:0];
    end
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (aw),
    .s_valid_i(aw_go),
    .s_ready_o(aw_room),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i)
  );

  // Room for a burst whose address is not offered yet, and for one that leaves.
  via_fifo #(
    .T    (out_t),
    .Depth(2 * Burst)
  ) u_w (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{w: w, f: flight}),
    .s_valid_i(out_go),
    .s_ready_o(w_room),
    .m_o      (out),
    .m_valid_o(m_w_valid_o),
    .m_ready_i(m_w_ready_i),
    .count_o  ()
  );
  assign flight = '{shows: shows_out, wrap: item_q.wrap, queue: item_q.queue, idx: item_q.idx, adv: item_q.adv};
  assign m_w_o  = out.w;
  // When W was accepted, AW was or is accepted too, so the whole write has left.
  assign left   = m_w_valid_o && m_w_ready_i && out.f.shows;

  // ---------------------------------------------------------------- responses
  typedef struct packed {
    logic          shows;
    logic [QW-1:0] queue;
  } response_t;
  response_t f;
  logic f_valid, bad_q, shown_q, cnt_line_q, cnt_index_q;
  logic [QW-1:0] f_queue_q;

  via_fifo #(
    .T    (response_t),
    .Depth(Window)
  ) u_flight (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{shows: flight.shows, queue: flight.queue}),
    .s_valid_i(aw_go),
    .s_ready_o(flight_room),
    .m_o      (f),
    .m_valid_o(f_valid),
    .m_ready_i(m_b_valid_i),
    .count_o  ()
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bad_q       <= 1'b0;
      shown_q     <= 1'b0;
      cnt_line_q  <= 1'b0;
      cnt_index_q <= 1'b0;
    end else begin
      bad_q       <= f_valid && m_b_valid_i && m_b_i.resp != RespOkay;
      shown_q     <= f_valid && m_b_valid_i && f.shows;
      cnt_line_q  <= aw_go && !shows_out;
      cnt_index_q <= shows_out;
    end
  end
  always_ff @(posedge clk_i) if (m_b_valid_i) f_queue_q <= f.queue;
  assign m_b_ready_o = 1'b1;
  assign wr_err_o = bad_q;
  assign wr_err_queue_o = QueueW'(f_queue_q);
  assign shown_o = shown_q;
  assign shown_queue_o = QueueW'(f_queue_q);
  assign cnt_line_o = cnt_line_q;
  assign cnt_index_o = cnt_index_q;

  logic [NumQ-1:0] irq_quiet;
  logic irq_still, irq_idle;
  via_vq_used_irq #(
    .NumQ(NumQ)
  ) u_irq (
    .clk_i,
    .rst_ni,
    .time_i,
    .feat_i      (feat_q),
    .queue_i,
    .closing_i,
    .moderate_i,
    .left_valid_i(left),
    .left_queue_i(out.f.queue),
    .left_idx_i  (out.f.idx),
    .left_wrap_i (out.f.wrap),
    .left_adv_i  (out.f.adv),
    .m_ar_o,
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o,
    .irq_valid_o,
    .irq_queue_o,
    .irq_ready_i,
    .err_o       (rd_err_o),
    .err_queue_o (rd_err_queue_o),
    .quiet_o     (irq_quiet),
    .still_o     (irq_still),
    .idle_o      (irq_idle)
  );

  // ---------------------------------------------------------------- amount held of each queue
  // A chain accepted, and a batch begun, count a cycle late; no queue is quiet in between.
  localparam int unsigned HeldW = 10;  // chains waiting; batches begun and without a response
  logic [NumQ-1:0][HeldW-1:0] wait_q, batch_q;
  logic [NumQ-1:0] quiet_q;
  logic took_q, began_q;
  logic [QW-1:0] took_queue_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      took_q  <= 1'b0;
      began_q <= 1'b0;
    end else begin
      took_q  <= take;
      // An early one began with the `enable` of the cycle before.
      began_q <= early || take && !open_q && cfg.enable;
    end
  end
  always_ff @(posedge clk_i) if (take) took_queue_q <= queue;
  for (genvar q = 0; q < NumQ; q++) begin : gen_held
    logic comes, goes, begins, ends;
    assign comes  = come && come_queue == QW'(q);
    assign goes   = took_q && took_queue_q == QW'(q);
    assign begins = began_q && took_queue_q == QW'(q);
    assign ends   = shown_q && f_queue_q == QW'(q);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        wait_q[q]  <= '0;
        batch_q[q] <= '0;
        quiet_q[q] <= 1'b1;
      end else begin
        if (comes != goes) wait_q[q] <= comes ? wait_q[q] + 1'b1 : wait_q[q] - 1'b1;
        if (begins != ends) batch_q[q] <= begins ? batch_q[q] + 1'b1 : batch_q[q] - 1'b1;
        quiet_q[q] <= !comes && wait_q[q] == '0 && batch_q[q] == '0 && irq_quiet[q];
      end
    end
  end
  assign quiet_o = quiet_q;

  logic pulse, waits;
  assign pulse = |{bad_q, shown_q, cnt_line_q, cnt_index_q, took_q};
  assign waits = |(waiting_valid & ~due_q);
  logic irq_still_q, moves_q, writes_q;
  always_ff @(posedge clk_i) begin
    irq_still_q <= irq_still;
    moves_q     <= |{come, take, close && item_ready, merge};
    writes_q    <= |{out_go, m_aw_valid_o, m_w_valid_o, m_b_valid_i, waits, near_q, pulse};
  end
  assign still_o = irq_still_q && !moves_q && !writes_q;
  assign idle_o  = irq_idle && waiting_valid == '0 && !open_q && !item_valid_q && !f_valid && !m_aw_valid_o && !m_w_valid_o && !pulse;

endmodule
