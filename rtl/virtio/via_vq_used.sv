// SPDX-License-Identifier: Apache-2.0
//
// Tells the driver which chains are used: entries in batches, then what makes them visible, then (via_vq_used_irq) the interrupt.
//
//   done ─ FIFO ─ runs ─ entries ─ line ──> AW, W      used elements or descriptors, a line of StrbW bytes at a time
//                          └─ index ─────┘  └─ the index has left ─> via_vq_used_irq: suppression field (AR, R) ─> irq
//
// Throughput: one chain a cycle while batches are long, one every three to five cycles with one chain a batch. Latency: 5 cycles to AW.
// A batch is what waits of one queue in a row, at most `Batch` chains and the rest of an answer spread over several. If chains come in quick
// succession, the last one less than `Recent` cycles before, a batch stays open for more of them until `Hold` cycles after its first one: each write
// saved is room on the link for payload. A chain that comes alone never waits.
// Order: entries of a batch, then its index (split) or its first descriptor (packed), so the whole batch becomes visible at once and last.
// The suppression field is asked for in the cycle after that write was taken (W): the host port keeps the read behind it (docs/interfaces.md).
// In order: chains whose writable bytes are all written need no entry if a later one of the batch has one (the driver takes them as wholly used).
// Misuse: a chain of a queue that is off is dropped. A refused write or read stops the queue (`err_*`).

module via_vq_used
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ   = 2,
  parameter int unsigned Batch  = 16,
  parameter int unsigned Depth  = 32,  // chains that wait, of even and of odd queues
  parameter int unsigned Hold   = 24,
  parameter int unsigned Recent = 32
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] time_i,
  input  vq_feat_t              feat_i,
  input  vq_cfg_t               queue_i       [NumQ],
  input  logic     [  NumQ-1:0] closing_i,             // the queue is being reset or is off
  input  logic     [      15:0] moderate_i,
  input  logic     [QueueW-1:0] done_queue_i,
  input  logic     [      15:0] done_id_i,
  input  logic     [      15:0] done_slots_i,
  input  logic     [      31:0] done_len_i,
  input  logic                  done_whole_i,
  input  logic                  done_more_i,
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
  output logic     [QueueW-1:0] irq_queue_o,
  input  logic                  irq_ready_i,
  output logic                  wr_err_o,              // pulse
  output logic     [QueueW-1:0] wr_err_queue_o,
  output logic                  rd_err_o,              // pulse
  output logic     [QueueW-1:0] rd_err_queue_o,
  output logic                  cnt_line_o,            // pulses: entries written
  output logic                  cnt_index_o,           // a batch made visible
  output logic                  shown_o,               // host memory has answered that (B)
  output logic     [  NumQ-1:0] quiet_o,               // nothing of this queue is held
  output logic                  still_o,
  output logic                  idle_o
);

  localparam bit NumQOk = param_in("via_vq_used NumQ", NumQ, 1, QueuesMax);
  localparam bit BatchOk = param_in("via_vq_used Batch", Batch, 1, 1024);
  localparam bit DepthOk = param_in("via_vq_used Depth", Depth, 1, 1024);
  localparam bit HoldOk = param_in("via_vq_used Hold", Hold, 1, 255);
  localparam bit RecentOk = param_in("via_vq_used Recent", Recent, 1, 255);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned OffW = BeatLog2;
  localparam int unsigned Lanes = StrbW / 4;
  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned Window = 64;  // writes in flight
  localparam int unsigned CountW = $clog2(Depth + 1);
  localparam int unsigned BatchW = $clog2(Batch + 1);
  localparam int unsigned HoldW = $clog2(Hold + 1);
  localparam int unsigned RecentW = $clog2(Recent + 1);

  typedef struct packed {
    logic              quick;  // came soon after the one before it of its queue
    logic              whole;
    logic              more;
    logic [QueueW-1:0] queue;
    logic [15:0]       id;
    logic [15:0]       slots;
    logic [31:0]       len;
  } chain_t;
  // Even queues wait apart from odd ones, so that what is received and what is sent do not cut each other's batches short.
  logic open_q;  // a batch is open, of queue_q
  logic [QW-1:0] queue_q;
  chain_t c, waiting[2];
  logic c_valid, c_pop, side, next_side_q;
  logic [1:0] waiting_valid, room;
  logic [1:0][CountW-1:0] held;
  logic [NumQ-1:0][RecentW-1:0] recent_q;  // cycles for which a further chain of the queue is a quick one

  chain_t chain_in;
  assign chain_in = '{
          quick: recent_q[QW'(done_queue_i)] != '0,
          whole: done_whole_i,
          more: done_more_i,
          queue: done_queue_i,
          id: done_id_i,
          slots: done_slots_i,
          len: done_len_i
      };
  for (genvar q = 0; q < NumQ; q++) begin : gen_recent
    always_ff @(posedge clk_i) begin
      if (!rst_ni) recent_q[q] <= '0;
      else if (done_valid_i && done_ready_o && QW'(done_queue_i) == QW'(q)) recent_q[q] <= RecentW'(Recent);
      else if (recent_q[q] != '0) recent_q[q] <= recent_q[q] - 1'b1;
    end
  end
  for (genvar i = 0; i < 2; i++) begin : gen_side
    via_fifo #(
      .T    (chain_t),
      .Depth(Depth)
    ) u_chains (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (chain_in),
      .s_valid_i(done_valid_i && done_queue_i[0] == 1'(i)),
      .s_ready_o(room[i]),
      .m_o      (waiting[i]),
      .m_valid_o(waiting_valid[i]),
      .m_ready_i(c_pop && side == 1'(i)),
      .count_o  (held[i])
    );
  end
  assign done_ready_o = room[done_queue_i[0]];
  assign side = open_q ? queue_q[0] : waiting_valid[next_side_q] ? next_side_q : !next_side_q;
  assign c = waiting[side];
  assign c_valid = waiting_valid[side];

  // ---------------------------------------------------------------- runs of chains, one entry each
  // idx_q is the next place: a free-running index (split) or a place of the ring (packed).
  logic [NumQ-1:0][15:0] idx_q;
  logic [NumQ-1:0] wrap_q;  // inverted: zero after reset stands for a wrap counter of one
  logic more_q, run_q, run_wrap_q, run_whole_q, first_q;
  logic [QW-1:0] queue;
  logic [BatchW-1:0] n_q;
  logic [15:0] run_at_q, run_id_q, adv_q, idx, idx_next, step, run_place;
  logic [31:0] run_len_q;
  logic wrap, wraps;
  logic [HoldW-1:0] hold_q;  // cycles for which the batch stays open though nothing waits
  logic take, drop, fits, extend, close, waits, lone, emit, final_now, item_ready;
  logic [AddrW-1:0] entry_addr;
  logic [63:0] entry, first_data_q;
  logic [AddrW-1:0] first_addr_q;
  vq_cfg_t cfg;

  assign queue = open_q ? queue_q : QW'(c.queue);
  assign cfg = queue_i[queue];
  assign idx = idx_q[queue];
  assign wrap = wrap_q[queue];

  assign run_place = run_at_q & (cfg.size - 16'd1);
  assign step = feat_i.packed_ring ? c.slots : 16'd1;
  assign wraps = feat_i.packed_ring && idx + step >= cfg.size;
  assign idx_next = idx + step - (wraps ? cfg.size : '0);

  assign drop = c_valid && !open_q && !cfg.enable;
  assign fits = c_valid && (open_q ? QW'(c.queue) == queue_q && (n_q != BatchW'(Batch) || more_q) : cfg.enable);
  assign extend = open_q && run_q && feat_i.in_order && run_whole_q;
  assign take = fits && (extend || !run_q || item_ready);
  assign waits = hold_q != '0 && !c_valid && n_q != BatchW'(Batch) && cfg.enable && !closing_i[queue];
  assign close = open_q && !fits && !(more_q && cfg.enable) && !waits;
  // A packed batch of one entry is shown by that entry at once.
  assign lone = feat_i.packed_ring && run_q && !first_q;
  assign emit = item_ready && run_q && (close && !lone || fits && !extend);
  assign final_now = item_ready && close && (!run_q || lone);
  assign c_pop = take || drop;

  always_comb begin
    if (feat_i.packed_ring) begin
      // Of the 16 bytes of a descriptor the upper 8: flags, id, len. Both of its wrap bits are the device's wrap counter.
      entry_addr = cfg.desc + (AddrW'(run_at_q) << 4) + AddrW'(8);
      entry = {!run_wrap_q, 7'h0, !run_wrap_q, 5'h0, run_len_q != '0, 1'b0, run_id_q, run_len_q};
    end else begin
      entry_addr = cfg.device + AddrW'(4) + (AddrW'(run_place) << 3);
      entry = {run_len_q, 16'h0, run_id_q};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q      <= 1'b0;
      run_q       <= 1'b0;
      first_q     <= 1'b0;
      next_side_q <= 1'b0;
      hold_q      <= '0;
    end else begin
      if (take && !open_q) hold_q <= c.quick ? HoldW'(Hold) : '0;
      else if (hold_q != '0) hold_q <= hold_q - 1'b1;
      if (take) open_q <= 1'b1;
      else if (final_now) open_q <= 1'b0;
      if (take) run_q <= 1'b1;
      else if (emit || final_now) run_q <= 1'b0;
      if (final_now) next_side_q <= !queue_q[0];
      if (final_now) first_q <= 1'b0;
      else if (emit && feat_i.packed_ring) first_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      queue_q     <= queue;
      more_q      <= c.more;
      n_q         <= !open_q ? BatchW'(1) : (n_q == BatchW'(Batch)) ? n_q : n_q + 1'b1;
      adv_q       <= (open_q ? adv_q : '0) + step;
      run_id_q    <= c.id;
      run_len_q   <= c.len;
      run_whole_q <= c.whole;
      if (!extend) begin
        run_at_q   <= idx;
        run_wrap_q <= wrap;
      end
    end
    if (emit && feat_i.packed_ring && !first_q) begin
      first_addr_q <= entry_addr;
      first_data_q <= entry;
    end
  end
  for (genvar q = 0; q < NumQ; q++) begin : gen_idx
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !queue_i[q].enable) begin
        idx_q[q]  <= '0;
        wrap_q[q] <= 1'b0;
      end else if (take && queue == QW'(q)) begin
        idx_q[q]  <= idx_next;
        wrap_q[q] <= wrap ^ wraps;
      end
    end
  end

  // ---------------------------------------------------------------- entries and what shows them, one at a time
  typedef struct packed {
    logic             shows;
    logic             closes;  // an entry behind which nothing waited: there is no need to keep its line for more
    logic             wrap;
    logic [QW-1:0]    queue;
    logic [15:0]      idx;
    logic [15:0]      adv;
    logic [63:0]      data;
    logic [AddrW-1:0] addr;
  } item_t;
  item_t item_d, item_q;
  logic item_valid_q, item_done;

  assign item_ready = !item_valid_q || item_done;
  always_comb begin
    item_d = '{shows: final_now, closes: close, wrap: !wrap, queue: queue_q, idx: idx, adv: adv_q, data: entry, addr: entry_addr};
    if (final_now && feat_i.packed_ring) begin
      item_d.data = lone ? entry : first_data_q;
      item_d.addr = lone ? entry_addr : first_addr_q;
    end else if (final_now) begin
      item_d.data = {4{idx}};
      item_d.addr = cfg.device + AddrW'(2);
    end
  end
  logic item_new;
  // The first entry of a packed batch is kept back: it is what shows the others.
  assign item_new = emit && (!feat_i.packed_ring || first_q) || final_now;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) item_valid_q <= 1'b0;
    else if (item_ready) item_valid_q <= item_new;
  end
  always_ff @(posedge clk_i) if (item_ready && item_new) item_q <= item_d;

  // ---------------------------------------------------------------- lines
  logic line_valid_q, half_q, hit, straddles, alone, merge, flush, shows_out, entry_out, out_go, out_room, aw_room, w_room, flight_room;
  logic [AddrW-OffW-1:0] line_q, want;
  logic [LaneW-1:0] lane;
  logic [Lanes-1:0] line_strb_q, en;
  logic [DataW-1:0] line_data_q;

  assign lane = item_q.addr[OffW-1:2];
  assign straddles = !item_q.shows && lane == LaneW'(Lanes - 1);
  assign want = item_q.addr[AddrW-1:OffW] + (AddrW - OffW)'(half_q);
  assign hit = !line_valid_q || line_q == want;
  assign out_room = aw_room && w_room && flight_room;
  assign alone = !item_q.shows && item_q.closes && !straddles && !line_valid_q;
  assign merge = item_valid_q && !item_q.shows && !alone && hit;
  assign flush = item_valid_q && line_valid_q && (item_q.shows || !hit) && out_room;
  assign shows_out = item_valid_q && item_q.shows && !line_valid_q && out_room;
  assign entry_out = item_valid_q && alone && out_room;
  assign item_done = merge && (!straddles || half_q) || shows_out || entry_out;
  assign out_go = flush || shows_out || entry_out;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      line_valid_q <= 1'b0;
      half_q       <= 1'b0;
    end else begin
      if (merge) line_valid_q <= 1'b1;
      else if (flush) line_valid_q <= 1'b0;
      if (merge) half_q <= straddles && !half_q;
    end
  end
  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    // A word is in its own lane, the other one behind it, in the next line if there is no such lane.
    assign en[i] = !half_q && lane == LaneW'(i) || (half_q || !straddles) && lane + 1'b1 == LaneW'(i);
    always_ff @(posedge clk_i) begin
      if (merge) line_strb_q[i] <= en[i] || line_valid_q && line_strb_q[i];
      if (merge && en[i]) line_data_q[32*i+:32] <= (lane[0] == 1'(i % 2)) ? item_q.data[31:0] : item_q.data[63:32];
    end
  end
  always_ff @(posedge clk_i) if (merge) line_q <= want;

  typedef struct packed {
    logic          shows;
    logic          wrap;
    logic [QW-1:0] queue;
    logic [15:0]   idx;
    logic [15:0]   adv;
  } flight_t;
  // A beat with what it shows, which is to be known when it has left.
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
    aw.burst = 2'b01;
    aw.size  = 3'(BeatLog2);
    aw.addr  = {flush ? line_q : item_q.addr[AddrW-1:OffW], OffW'(0)};
    w.last   = 1'b1;
    w.data   = line_data_q;
    w.strb   = line_strb;
    if (!flush) begin
      w.data = {StrbW / 8{item_q.addr[2] ? {item_q.data[31:0], item_q.data[63:32]} : item_q.data}};
      w.strb = ((feat_i.packed_ring || !item_q.shows) ? StrbW'(8'hff) : StrbW'(2'b11)) << item_q.addr[OffW-1:0];
    end
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (aw),
    .s_valid_i(out_go),
    .s_ready_o(aw_room),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i)
  );

  via_slice #(
    .T(out_t)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i      ('{w: w, f: flight}),
    .s_valid_i(out_go),
    .s_ready_o(w_room),
    .m_o      (out),
    .m_valid_o(m_w_valid_o),
    .m_ready_i(m_w_ready_i)
  );
  assign flight = '{shows: shows_out, wrap: item_q.wrap, queue: item_q.queue, idx: item_q.idx, adv: item_q.adv};
  assign m_w_o  = out.w;
  // W is taken behind AW, so now the whole write has.
  assign left   = m_w_valid_o && m_w_ready_i && out.f.shows;

  // ---------------------------------------------------------------- answers
  typedef struct packed {
    logic          shows;
    logic [QW-1:0] queue;
  } answer_t;
  answer_t f;
  logic f_valid, f_pop;

  via_fifo #(
    .T    (answer_t),
    .Depth(Window)
  ) u_flight (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{shows: flight.shows, queue: flight.queue}),
    .s_valid_i(out_go),
    .s_ready_o(flight_room),
    .m_o      (f),
    .m_valid_o(f_valid),
    .m_ready_i(f_pop),
    .count_o  ()
  );
  assign m_b_ready_o = 1'b1;
  assign f_pop = m_b_valid_i;
  assign wr_err_o = f_valid && m_b_valid_i && m_b_i.resp != RespOkay;
  assign wr_err_queue_o = QueueW'(f.queue);
  assign shown_o = f_valid && m_b_valid_i && f.shows;
  assign cnt_line_o = flush || entry_out;
  assign cnt_index_o = shows_out;

  logic [NumQ-1:0] irq_quiet;
  logic irq_still, irq_idle;
  via_vq_used_irq #(
    .NumQ(NumQ)
  ) u_irq (
    .clk_i,
    .rst_ni,
    .time_i,
    .feat_i,
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

  // ---------------------------------------------------------------- what is held of each queue
  localparam int unsigned HeldW = 10;  // chains waiting; batches begun and not answered
  logic [NumQ-1:0][HeldW-1:0] wait_q, batch_q;
  for (genvar q = 0; q < NumQ; q++) begin : gen_held
    logic come, go, begins, ends;
    assign come = done_valid_i && done_ready_o && QW'(done_queue_i) == QW'(q);
    assign go = c_pop && QW'(c.queue) == QW'(q);
    assign begins = take && !open_q && queue == QW'(q);
    assign ends = shown_o && f.queue == QW'(q);
    assign quiet_o[q] = wait_q[q] == '0 && batch_q[q] == '0 && irq_quiet[q];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        wait_q[q]  <= '0;
        batch_q[q] <= '0;
      end else begin
        if (come != go) wait_q[q] <= come ? wait_q[q] + 1'b1 : wait_q[q] - 1'b1;
        if (begins != ends) batch_q[q] <= begins ? batch_q[q] + 1'b1 : batch_q[q] - 1'b1;
      end
    end
  end

  assign still_o = irq_still && ~|{done_valid_i && done_ready_o, c_pop, close && item_ready, merge, out_go, m_aw_valid_o, m_w_valid_o, m_b_valid_i,
                                 open_q && hold_q != '0, recent_q != '0};
  assign idle_o = irq_idle && held == '0 && !open_q && !item_valid_q && !f_valid && !m_aw_valid_o && !m_w_valid_o;

endmodule
