// SPDX-License-Identifier: Apache-2.0
//
// Decides on interrupts: after the write that makes used entries visible it reads the driver's current suppression settings, and requests
// an interrupt if they ask for one.
//
// Throughput: a decision a cycle over all queues; one read in flight per queue; what becomes visible meanwhile is decided by the next read.
// Latency: 1 cycle to AR, 2 from R to irq. Order: round robin. A driver that checks the ring after it has enabled interrupts never misses
// one: the read is offered after the write was accepted, so the host port keeps it behind that write, and the entries are visible when the
// field is read.
// Split: flags of the available ring, or used_event with EVENT_IDX. Packed: driver event suppression, with EVENT_IDX also a single
// descriptor.
// Moderation: less than moderate_i cycles after a queue's last interrupt the next one is delayed, never lost; while one waits still_o is
// low, as time matters. (Time is compared in 32 bits: an interrupt in the first moderate_i of every 2^32 cycles after the last one may be
// delayed as well.)
// Misuse: a field that cannot be read stops the queue (err_o) and counts as a request for an interrupt. An interrupt of a queue under reset
// is dropped.

module via_vq_used_irq
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2,  // queues
  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] time_i,              // card time
  input  vq_feat_t              feat_i,              // negotiated features
  input  vq_cfg_t               queue_i     [NumQ],  // queues as the driver has set them up
  input  logic     [  NumQ-1:0] closing_i,           // level: the queue is under reset or off
  input  logic     [      15:0] moderate_i,          // minimum cycles between two interrupts of a queue
  // a write that makes used entries visible was accepted
  input  logic                  left_valid_i,        // pulse
  input  logic     [    QW-1:0] left_queue_i,        // its queue
  input  logic     [      15:0] left_idx_i,          // ring position after the entries
  input  logic                  left_wrap_i,         // wrap counter at that position
  input  logic     [      15:0] left_adv_i,          // ring entries that became visible
  output axi_ax_t               m_ar_o,
  output logic                  m_ar_valid_o,
  input  logic                  m_ar_ready_i,
  input  axi_r_t                m_r_i,
  input  logic                  m_r_valid_i,
  output logic                  m_r_ready_o,
  output logic                  irq_valid_o,
  output logic     [QueueW-1:0] irq_queue_o,         // queue whose interrupt it is
  input  logic                  irq_ready_i,
  output logic                  err_o,               // pulse: a read failed
  output logic     [QueueW-1:0] err_queue_o,         // with err_o: stop this queue
  output logic     [  NumQ-1:0] quiet_o,             // level: nothing of this queue is held
  output logic                  still_o,             // level: nothing moves unless an input changes
  output logic                  idle_o               // level: nothing is held
);

  localparam bit NumQOk = param_in("via_vq_used_irq NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned WordW = BeatLog2 - 1;  // number of a 16-bit word in a beat

  // ---------------------------------------------------------------- read requests
  // The read for a batch is requested in the cycle after the batch became visible, unless its queue has a read in flight or another request
  // is at the port or about to be: then it waits.
  typedef struct packed {
    logic [QW-1:0]    queue;
    logic             wrap;
    logic [15:0]      idx;
    logic [15:0]      adv;
    logic [15:0]      size;   // of the queue
    logic [AddrW-1:0] field;  // address of what the driver writes
  } ask_t;
  logic [NumQ-1:0] pend_q, asked_q, wrap_q;
  logic [NumQ-1:0][15:0] idx_q, adv_q;
  logic [NumQ-1:0][15:0] skip_q;  // from there to the field, in words
  logic [NumQ-1:0][AddrW-1:0] field_q;
  logic [QW-1:0] pick, pick_q;
  logic any, picked, pick_valid_q;
  ask_t left, left_q, next;
  logic [AddrW-1:0] port_q;  // the address at the port
  logic left_valid_q, at_once, goes_q, port_valid_q;  // goes_q: the request in left_q is at the port

  assign left = '{
          queue: left_queue_i,
          wrap: left_wrap_i,
          idx: left_idx_i,
          adv: left_adv_i,
          size: queue_i[left_queue_i].size,
          field: field_q[left_queue_i]
      };
  assign at_once = left_valid_i && !pend_q[left_queue_i] && !asked_q[left_queue_i] && !(left_valid_q && left_q.queue == left_queue_i) &&
                   !port_valid_q && !picked;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_valid_q <= 1'b0;
      goes_q       <= 1'b0;
    end else begin
      left_valid_q <= left_valid_i;
      goes_q       <= at_once;
    end
  end
  always_ff @(posedge clk_i) left_q <= left;

  via_rr_arb #(
    .N(NumQ)
  ) u_ask (
    .clk_i,
    .rst_ni,
    .req_i  (pend_q & ~asked_q),
    .ack_i  (any && !pick_valid_q),
    .gnt_o  (),
    .idx_o  (pick),
    .valid_o(any)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pick_valid_q <= 1'b0;
      port_valid_q <= 1'b0;
    end else begin
      pick_valid_q <= pick_valid_q ? !picked : any;
      port_valid_q <= port_valid_q && !m_ar_ready_i || picked || at_once;
    end
  end
  always_ff @(posedge clk_i) begin
    if (any && !pick_valid_q) pick_q <= pick;
    if (!port_valid_q) port_q <= picked ? field_q[pick_q] : left.field;
  end

  assign picked = pick_valid_q && !port_valid_q;
  always_comb begin
    next = left_q;
    if (!goes_q)
      next = '{
          queue: pick_q,
          wrap: wrap_q[pick_q],
          idx: idx_q[pick_q],
          adv: adv_q[pick_q],
          size: queue_i[pick_q].size,
          field: field_q[pick_q]
      };
  end

  assign m_ar_valid_o = port_valid_q;
  always_comb begin
    m_ar_o       = '0;
    m_ar_o.burst = BurstIncr;
    m_ar_o.size  = 3'(BeatLog2);
    m_ar_o.addr  = {port_q[AddrW-1:BeatLog2], BeatLog2'(0)};
  end

  // One read in flight per queue: there is always room. R comes no sooner than the cycle after AR was accepted.
  typedef struct packed {
    logic [QW-1:0]    queue;
    logic             wrap;
    logic [15:0]      idx;
    logic [15:0]      adv;
    logic [15:0]      size;
    logic [WordW-1:0] word;   // of the beat
  } asked_t;
  asked_t asked, a;
  logic a_valid, answered;
  assign asked = '{queue: next.queue, wrap: next.wrap, idx: next.idx, adv: next.adv, size: next.size, word: next.field[BeatLog2-1:1]};

  via_fifo #(
    .T    (asked_t),
    .Depth(NumQ)
  ) u_asked (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (asked),
    .s_valid_i(goes_q || picked),
    .s_ready_o(),
    .m_o      (a),
    .m_valid_o(a_valid),
    .m_ready_i(answered),
    .count_o  ()
  );
  assign m_r_ready_o = 1'b1;
  assign answered = a_valid && m_r_valid_i;

  // ---------------------------------------------------------------- decide
  // First the field is extracted from its beat, and the range of the driver's event values that lie among the entries that became visible
  // is computed. Then they are compared.
  typedef struct packed {
    logic [QW-1:0] queue;
    logic          round;       // `low` is above `high`: the range wraps around the end of the ring
    logic [15:0]   low;
    logic [15:0]   high;        // the first one after the range
    logic [15:0]   low_other;   // packed: of an event with the other wrap counter
    logic [15:0]   high_other;
  } range_t;
  logic [15:0] word, flags;
  logic refused, sure, by_event, event_in, wish;
  logic r_valid_q, r_sure_q, r_by_event_q, r_other_q, err_q;
  logic [15:0] r_word_q;
  logic [16:0] low;
  logic [17:0] low_other;
  range_t range, r_q;

  always_comb begin
    low              = 17'(a.idx) - 17'(a.adv);
    low_other        = 18'(a.idx) + 18'(a.size) - 18'(a.adv);
    range            = '{queue: a.queue, default: '0};
    range.high       = a.idx;
    range.round      = low[16] && !feat_i.packed_ring;
    range.low        = (low[16] && feat_i.packed_ring) ? '0 : low[15:0];
    range.high_other = a.idx + a.size;
    range.low_other  = low_other[17] ? '0 : low_other[15:0];
  end
  assign word = m_r_i.data[{a.word, 4'h0}+:16];
  assign flags = m_r_i.data[{a.word|WordW'(1), 4'h0}+:16];
  assign refused = m_r_i.resp != RespOkay;
  assign by_event = feat_i.event_idx && (!feat_i.packed_ring || flags[1:0] == 2'd2);
  assign sure = refused || (feat_i.packed_ring ? !flags[0] && !(flags[1] && feat_i.event_idx) || flags[1:0] == 2'd3 : !feat_i.event_idx && !word[0]);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_valid_q <= 1'b0;
      err_q     <= 1'b0;
    end else begin
      r_valid_q <= answered;
      err_q     <= answered && refused;
    end
  end
  always_ff @(posedge clk_i) begin
    if (answered) begin
      r_q          <= range;
      r_sure_q     <= sure;
      r_by_event_q <= by_event;
      r_other_q    <= feat_i.packed_ring && word[15] != a.wrap;
      r_word_q     <= {word[15] && !feat_i.packed_ring, word[14:0]};
    end
  end
  always_comb begin
    logic from, to;
    from = r_word_q >= r_q.low;
    to   = r_word_q < r_q.high;
    if (r_other_q) event_in = r_word_q >= r_q.low_other && r_word_q < r_q.high_other;
    else event_in = r_q.round ? from || to : from && to;
  end
  assign wish = r_sure_q || r_by_event_q && event_in;
  assign err_o = err_q;
  assign err_queue_o = QueueW'(r_q.queue);

  // ---------------------------------------------------------------- interrupts
  logic [NumQ-1:0] want_q, cool_q, fired_q, fires_q, closing_q;
  logic [NumQ-1:0][31:0] last_q, since_q;
  logic [QW-1:0] irq_sel, irq_queue_q;
  logic irq_any, irq_room, irq_direct, irq_valid_q;

  always_ff @(posedge clk_i) closing_q <= closing_i;

  via_rr_arb #(
    .N(NumQ)
  ) u_irq (
    .clk_i,
    .rst_ni,
    .req_i  (want_q & cool_q & ~closing_q),
    .ack_i  (irq_room),
    .gnt_o  (),
    .idx_o  (irq_sel),
    .valid_o(irq_any)
  );
  assign irq_room = !irq_valid_q || irq_ready_i;
  // If none waits, the one decided now is sent at once.
  assign irq_direct = !irq_any && irq_room && r_valid_q && cool_q[r_q.queue] && !closing_q[r_q.queue] && wish;
  assign irq_valid_o = irq_valid_q;
  assign irq_queue_o = QueueW'(irq_queue_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) irq_valid_q <= 1'b0;
    else if (irq_room) irq_valid_q <= irq_any || irq_direct;
  end
  always_ff @(posedge clk_i) if (irq_room) irq_queue_q <= irq_any ? irq_sel : r_q.queue;

  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    logic newer, mine, ends, fires;
    assign newer = left_valid_q && left_q.queue == QW'(q);
    assign mine = picked && pick_q == QW'(q);
    assign ends = r_valid_q && r_q.queue == QW'(q);
    assign fires = irq_any ? irq_room && irq_sel == QW'(q) : irq_direct && r_q.queue == QW'(q);
    assign quiet_o[q] = !newer && !pend_q[q] && !asked_q[q] && !want_q[q] && !(irq_valid_q && irq_queue_q == QW'(q));

    always_ff @(posedge clk_i) begin
      // A queue is set up long before one of its chains is used.
      skip_q[q]  <= (feat_i.event_idx && !feat_i.packed_ring) ? 16'(queue_i[q].size + 16'd2) : '0;
      field_q[q] <= queue_i[q].driver + AddrW'({skip_q[q], 1'b0});
      if (!rst_ni) begin
        pend_q[q]  <= 1'b0;
        asked_q[q] <= 1'b0;
        want_q[q]  <= 1'b0;
        fired_q[q] <= 1'b0;
        fires_q[q] <= 1'b0;
        cool_q[q]  <= 1'b1;
        adv_q[q]   <= '0;
      end else begin
        pend_q[q] <= newer && !goes_q || pend_q[q] && !mine;
        if (mine || newer && goes_q) asked_q[q] <= 1'b1;
        else if (ends) asked_q[q] <= 1'b0;
        if (newer && !goes_q) adv_q[q] <= (mine ? '0 : adv_q[q]) + left_q.adv;
        else if (mine) adv_q[q] <= '0;
        want_q[q]  <= (want_q[q] || ends && wish) && !fires && !closing_q[q];
        fires_q[q] <= fires;
        if (fires_q[q]) fired_q[q] <= 1'b1;
        // Updated only when it is about to matter, so that time alone changes nothing.
        if (fires || fires_q[q]) cool_q[q] <= 1'b0;
        else if (m_r_valid_i || want_q[q]) cool_q[q] <= !fired_q[q] || moderate_i == '0 || since_q[q] >= 32'(moderate_i);
      end
    end
    always_ff @(posedge clk_i) begin
      if (newer) begin
        idx_q[q]  <= left_q.idx;
        wrap_q[q] <= left_q.wrap;
      end
      if (fires_q[q]) last_q[q] <= time_i[31:0];
      // As of the read of the suppression field, so that it is there with the data. It is never too long; if it was too short then, the
      // interrupt waits in `want_q` and goes a few cycles later.
      if (fires_q[q]) since_q[q] <= '0;
      else if (m_ar_valid_o || m_r_valid_i || want_q[q]) since_q[q] <= time_i[31:0] - last_q[q];
    end
  end

  // While an interrupt is delayed only time advances; this toggles a register, so that a check for changed state does not take the block
  // for one at rest.
  logic waits_q;
  always_ff @(posedge clk_i) waits_q <= (want_q & ~cool_q) != '0 && !waits_q;

  assign still_o = ~|{left_valid_q, pend_q & ~asked_q, m_ar_valid_o, m_r_valid_i, r_valid_q, want_q, fires_q, waits_q,
                      irq_valid_q && irq_ready_i};
  assign idle_o = ~|{left_valid_q, pend_q, asked_q, want_q, irq_valid_q};

endmodule
