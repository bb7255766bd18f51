// SPDX-License-Identifier: Apache-2.0
//
// Decides on interrupts: behind the write that makes used entries visible it reads what the driver says about interrupts now, and asks for one.
//
// Throughput: a decision a cycle over all queues; one read in flight a queue, what becomes visible meanwhile is decided upon by the next one.
// Latency: 1 cycle to AR, 1 from R to irq. A driver that looks at the ring after it changed its mind never waits in vain: the read is offered
// after the write was taken, so the host port keeps it behind that write, and what is visible when the field is read includes the entries.
// Split: flags of the available ring, or used_event with EVENT_IDX. Packed: driver event suppression, with EVENT_IDX also a single descriptor.
// Moderation: less than moderate_i cycles after a queue's last interrupt the next one is held back, never lost; not still then, time matters.
// (Time is compared in 32 bits: an interrupt in the first moderate_i of every 2^32 cycles after the last one may be late by as much.)
// Misuse: a field that cannot be read stops the queue (err_o) and counts as a wish. An interrupt of a queue that is being reset is dropped.

module via_vq_used_irq
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter  int unsigned NumQ = 2,
  localparam int unsigned QW   = (NumQ > 1) ? $clog2(NumQ) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic     [      63:0] time_i,
  input  vq_feat_t              feat_i,
  input  vq_cfg_t               queue_i     [NumQ],
  input  logic     [  NumQ-1:0] closing_i,
  input  logic     [      15:0] moderate_i,
  // what makes used entries visible has been taken: the place behind them, the ring's wrap counter there, how many places they take
  input  logic                  left_valid_i,
  input  logic     [    QW-1:0] left_queue_i,
  input  logic     [      15:0] left_idx_i,
  input  logic                  left_wrap_i,
  input  logic     [      15:0] left_adv_i,
  output axi_ax_t               m_ar_o,
  output logic                  m_ar_valid_o,
  input  logic                  m_ar_ready_i,
  input  axi_r_t                m_r_i,
  input  logic                  m_r_valid_i,
  output logic                  m_r_ready_o,
  output logic                  irq_valid_o,
  output logic     [QueueW-1:0] irq_queue_o,
  input  logic                  irq_ready_i,
  output logic                  err_o,
  output logic     [QueueW-1:0] err_queue_o,
  output logic     [  NumQ-1:0] quiet_o,
  output logic                  still_o,
  output logic                  idle_o
);

  localparam bit NumQOk = param_in("via_vq_used_irq NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned WordW = BeatLog2 - 1;  // a 16-bit word of a beat

  // ---------------------------------------------------------------- ask
  // `_q`: what left earlier; without: now, too.
  logic [NumQ-1:0] pend, pend_q, asked_q, wrap, wrap_q;
  logic [NumQ-1:0][15:0] idx, idx_q, adv, adv_q;
  logic [QW-1:0] sel;
  logic any, ask, ar_room;
  vq_cfg_t cfg;
  logic [AddrW-1:0] field;

  via_rr_arb #(
    .N(NumQ)
  ) u_ask (
    .clk_i,
    .rst_ni,
    .req_i  (pend & ~asked_q),
    .ack_i  (ask),
    .gnt_o  (),
    .idx_o  (sel),
    .valid_o(any)
  );
  assign ask   = any && ar_room;
  assign cfg   = queue_i[sel];
  assign field = cfg.driver + ((feat_i.event_idx && !feat_i.packed_ring) ? AddrW'(4) + (AddrW'(cfg.size) << 1) : '0);

  axi_ax_t ar;
  always_comb begin
    ar       = '0;
    ar.burst = 2'b01;
    ar.size  = 3'(BeatLog2);
    ar.addr  = {field[AddrW-1:BeatLog2], BeatLog2'(0)};
  end
  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(ask),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  typedef struct packed {
    logic [QW-1:0]    queue;
    logic             wrap;
    logic [15:0]      idx;
    logic [15:0]      adv;
    logic [WordW-1:0] word;
  } ask_t;
  ask_t a;
  logic a_valid, answered;

  // One read a queue is in flight: there is always room.
  via_fifo #(
    .T    (ask_t),
    .Depth(NumQ)
  ) u_asked (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{queue: sel, wrap: wrap[sel], idx: idx[sel], adv: adv[sel], word: field[BeatLog2-1:1]}),
    .s_valid_i(ask),
    .s_ready_o(),
    .m_o      (a),
    .m_valid_o(a_valid),
    .m_ready_i(answered),
    .count_o  ()
  );
  assign m_r_ready_o = 1'b1;
  assign answered = a_valid && m_r_valid_i;

  // ---------------------------------------------------------------- decide
  logic [15:0] word, flags, behind;
  logic signed [17:0] ago;
  logic wish;

  assign word = m_r_i.data[{a.word, 4'h0}+:16];
  assign flags = m_r_i.data[{a.word|WordW'(1), 4'h0}+:16];
  assign behind = a.idx - word - 16'd1;
  // Places from the driver's event to the place behind the last entry.
  assign ago = 18'(a.idx) - 18'(word[14:0]) + ((word[15] == a.wrap) ? '0 : 18'(queue_i[a.queue].size));

  always_comb begin
    if (m_r_i.resp != RespOkay) wish = 1'b1;
    else if (!feat_i.packed_ring) wish = feat_i.event_idx ? behind < a.adv : !word[0];
    else begin
      unique case (flags[1:0])
        2'd1: wish = 1'b0;
        2'd2: wish = !feat_i.event_idx || ago > 0 && ago <= $signed({2'b0, a.adv});
        default: wish = 1'b1;
      endcase
    end
  end
  assign err_o = answered && m_r_i.resp != RespOkay;
  assign err_queue_o = QueueW'(a.queue);

  // ---------------------------------------------------------------- interrupts
  logic [NumQ-1:0] want, want_q, cool, fired_q;
  logic [NumQ-1:0][31:0] last_q;
  logic [QW-1:0] irq_sel, irq_queue_q;
  logic irq_any, irq_go, irq_valid_q;

  via_rr_arb #(
    .N(NumQ)
  ) u_irq (
    .clk_i,
    .rst_ni,
    .req_i  (want & cool & ~closing_i),
    .ack_i  (irq_go),
    .gnt_o  (),
    .idx_o  (irq_sel),
    .valid_o(irq_any)
  );
  assign irq_go = irq_any && (!irq_valid_q || irq_ready_i);
  assign irq_valid_o = irq_valid_q;
  assign irq_queue_o = QueueW'(irq_queue_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) irq_valid_q <= 1'b0;
    else if (irq_go) irq_valid_q <= 1'b1;
    else if (irq_ready_i) irq_valid_q <= 1'b0;
  end
  always_ff @(posedge clk_i) if (irq_go) irq_queue_q <= irq_sel;

  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    logic left, mine, ends, fires;
    assign left = left_valid_i && left_queue_i == QW'(q);
    assign mine = ask && sel == QW'(q);
    assign ends = answered && a.queue == QW'(q);
    assign fires = irq_go && irq_sel == QW'(q);
    assign pend[q] = pend_q[q] || left;
    assign idx[q] = left ? left_idx_i : idx_q[q];
    assign wrap[q] = left ? left_wrap_i : wrap_q[q];
    assign adv[q] = adv_q[q] + (left ? left_adv_i : '0);
    assign want[q] = want_q[q] || ends && wish;
    assign cool[q] = !fired_q[q] || moderate_i == '0 || time_i[31:0] - last_q[q] >= 32'(moderate_i);
    assign quiet_o[q] = !pend_q[q] && !asked_q[q] && !want_q[q] && !(irq_valid_q && irq_queue_q == QW'(q));

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        pend_q[q]  <= 1'b0;
        asked_q[q] <= 1'b0;
        want_q[q]  <= 1'b0;
        fired_q[q] <= 1'b0;
        adv_q[q]   <= '0;
      end else begin
        pend_q[q] <= pend[q] && !mine;
        if (mine) asked_q[q] <= 1'b1;
        else if (ends) asked_q[q] <= 1'b0;
        if (left || mine) adv_q[q] <= mine ? '0 : adv[q];
        want_q[q] <= want[q] && !fires && !closing_i[q];
        if (fires) fired_q[q] <= 1'b1;
      end
    end
    always_ff @(posedge clk_i) begin
      if (left) begin
        idx_q[q]  <= left_idx_i;
        wrap_q[q] <= left_wrap_i;
      end
      if (fires) last_q[q] <= time_i[31:0];
    end
  end

  // While an interrupt is held back only the time moves on, and who looks whether the state still changes would see a block at rest.
  logic waits_q;
  always_ff @(posedge clk_i) waits_q <= (want_q & ~cool) != '0 && !waits_q;

  assign still_o = ~|{left_valid_i, ask, m_ar_valid_o, m_r_valid_i, want_q, waits_q, irq_valid_q && irq_ready_i};
  assign idle_o  = ~|{pend_q, asked_q, want_q, irq_valid_q};

endmodule
