// SPDX-License-Identifier: Apache-2.0
//
// The only write port of a queue engine: payload bursts, used entries, and avail_event, each two bytes.
//
// Throughput: one beat a cycle. Latency: none added on AW and W of payload and used entries, one cycle for avail_event. Order: W in the
// order of AW, B in the same order; the writes of one source stay in order. avail_event has priority, then used entries.
// avail_event is accepted (`ev_ready_o`) in the cycle after its W: the available index is read again after that, and the host port keeps
// the read behind it.
// The current source of AW, W and B is held in registers, so a channel passes one level of logic here.
// While `enable_i` is low (bus mastering is disabled, or a reset is pending) no write begins. An address once offered to the host stays
// offered until it is accepted, as AXI demands, and counts as begun from then on; W passes for addresses that were accepted, so a burst begun
// is always finished.
// Misuse: relies on the rule against deadlocks (docs/interfaces.md, section 1, No deadlocks): a source holds all W data of the AW it offers.
// Relies on the sources for the number of bursts in flight, so that only the selection stands between the host port's AWREADY and theirs: no
// more than Window besides the one whose B comes next. An avail_event that ends with an error is reported.

module via_vq_wrmux
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned Window = 128  // bursts in flight, and one more: those of payload, those of used entries, one avail_event
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 enable_i,            // level: writes may begin
  output logic                 drained_o,           // level: nothing is in flight, and nothing begins until enable_i rises
  // source 0: payload, source 1: used entries
  input  axi_ax_t              s_aw_i         [2],
  input  logic    [       1:0] s_aw_valid_i,
  output logic    [       1:0] s_aw_ready_o,
  input  axi_w_t               s_w_i          [2],
  input  logic    [       1:0] s_w_valid_i,
  output logic    [       1:0] s_w_ready_o,
  output axi_b_t               s_b_o,               // payload of B, for both sources
  output logic    [       1:0] s_b_valid_o,         // pulse: always accepted
  input  logic    [      63:0] ev_addr_i,           // avail_event: its address
  input  logic    [      15:0] ev_data_i,           // its value
  input  logic    [QueueW-1:0] ev_queue_i,          // its queue
  input  logic                 ev_valid_i,
  output logic                 ev_ready_o,
  output logic                 ev_busy_o,           // level: an avail_event is held or has no response
  output logic    [QueueW-1:0] ev_busy_queue_o,     // its queue
  output logic                 ev_err_o,            // pulse: it ended with an error
  output axi_ax_t              m_aw_o,
  output logic                 m_aw_valid_o,
  input  logic                 m_aw_ready_i,
  output axi_w_t               m_w_o,
  output logic                 m_w_valid_o,
  input  logic                 m_w_ready_i,
  input  axi_b_t               m_b_i,
  input  logic                 m_b_valid_i,
  output logic                 m_b_ready_o,
  output logic                 still_o,             // level: nothing moves unless an input changes
  output logic                 idle_o               // level: nothing is in flight
);

  localparam bit WindowOk = param_in("via_vq_wrmux Window", Window, 1, 1024);

  localparam int unsigned CountW = $clog2(Window + 1);

  localparam int unsigned Ev = 2;  // source 2: avail_event
  typedef logic [2:0] turn_t;  // one-hot
  typedef enum logic [1:0] {
    AwOpen,
    AwPayload,
    AwUsed,
    AwEvent
  } aw_turn_e;

  // ---------------------------------------------------------------- avail_event: its address and data wait here
  logic ev_aw_q, ev_w_q, ev_busy_q, ev_ready_q, ev_err_q, ev_take, ev_done;
  logic [63:0] ev_addr_q;
  logic [15:0] ev_data_q;
  logic [StrbW-1:0] ev_strb_q;
  logic [QueueW-1:0] ev_queue_q;
  assign ev_take = ev_valid_i && !ev_busy_q;
  assign ev_busy_o = ev_busy_q || ev_err_q;
  assign ev_busy_queue_o = ev_queue_q;

  // ---------------------------------------------------------------- AW
  // No source selected: of those that offer an address, used entries have priority. What was offered and not accepted stays selected.
  aw_turn_e turn_q;
  turn_t pick, w_next, w_turn_q, b_next, b_turn_q;
  logic room, pass, shown_q, aw_take, w_more, w_end, b_more, drained_q;
  logic [CountW-1:0] open;

  assign pick = (turn_q == AwEvent) ? 3'b100 : (turn_q == AwUsed || turn_q == AwOpen && s_aw_valid_i[1]) ? 3'b010 : 3'b001;
  always_comb begin
    m_aw_o = pick[1] ? s_aw_i[1] : s_aw_i[0];
    if (turn_q == AwEvent) begin
      m_aw_o       = '0;
      m_aw_o.burst = BurstIncr;
      m_aw_o.size  = 3'(BeatLog2);
      m_aw_o.addr  = {ev_addr_q[AddrW-1:BeatLog2], BeatLog2'(0)};
    end
    m_aw_o.id = '0;
  end
  // The selected source offers an address.
  assign pass = enable_i || shown_q;
  assign m_aw_valid_o = (|s_aw_valid_i || turn_q == AwEvent) && pass;
  assign aw_take = m_aw_valid_o && m_aw_ready_i;
  assign s_aw_ready_o[0] = m_aw_ready_i && pass && (turn_q == AwPayload || turn_q == AwOpen && !s_aw_valid_i[1]);
  assign s_aw_ready_o[1] = m_aw_ready_i && pass && (turn_q == AwUsed || turn_q == AwOpen);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q     <= AwOpen;
      shown_q    <= 1'b0;
      ev_aw_q    <= 1'b0;
      ev_w_q     <= 1'b0;
      ev_busy_q  <= 1'b0;
      ev_ready_q <= 1'b0;
    end else begin
      shown_q <= m_aw_valid_o && !m_aw_ready_i;
      if (m_aw_valid_o && !m_aw_ready_i) turn_q <= pick[Ev] ? AwEvent : pick[1] ? AwUsed : AwPayload;
      else turn_q <= (ev_take || ev_aw_q && !(aw_take && turn_q == AwEvent)) ? AwEvent : AwOpen;
      if (ev_take) ev_busy_q <= 1'b1;
      else if (ev_done) ev_busy_q <= 1'b0;
      if (ev_take) ev_aw_q <= 1'b1;
      else if (aw_take && turn_q == AwEvent) ev_aw_q <= 1'b0;
      if (ev_take) ev_w_q <= 1'b1;
      else if (w_end && w_turn_q[Ev]) ev_w_q <= 1'b0;
      ev_ready_q <= w_end && w_turn_q[Ev];
    end
  end
  always_ff @(posedge clk_i) begin
    if (ev_take) begin
      ev_addr_q  <= ev_addr_i;
      ev_data_q  <= ev_data_i;
      ev_strb_q  <= StrbW'(2'b11) << {ev_addr_i[BeatLog2-1:1], 1'b0};
      ev_queue_q <= ev_queue_i;
    end
  end
  assign ev_ready_o = ev_ready_q;

  // ---------------------------------------------------------------- W, B
  // The source of the current burst, and those of the bursts after it.
  logic w_free, b_free;
  assign w_free = w_turn_q == '0 || w_end;
  assign b_free = b_turn_q == '0 || m_b_valid_i;

  via_fifo #(
    .T    (turn_t),
    .Depth(Window)
  ) u_w (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (pick),
    .s_valid_i(aw_take && (w_more || !w_free)),
    .s_ready_o(),
    .m_o      (w_next),
    .m_valid_o(w_more),
    .m_ready_i(w_free),
    .count_o  ()
  );
  via_fifo #(
    .T    (turn_t),
    .Depth(Window)
  ) u_b (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (pick),
    .s_valid_i(aw_take && (b_more || !b_free)),
    .s_ready_o(room),
    .m_o      (b_next),
    .m_valid_o(b_more),
    .m_ready_i(b_free),
    .count_o  (open)
  );
  // The B of a burst comes after its W, so room for the one implies room for the other.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_turn_q <= '0;
      b_turn_q <= '0;
    end else begin
      if (w_free) w_turn_q <= w_more ? w_next : aw_take ? pick : '0;
      if (b_free) b_turn_q <= b_more ? b_next : aw_take ? pick : '0;
    end
  end

  always_comb begin
    m_w_o = w_turn_q[1] ? s_w_i[1] : s_w_i[0];
    if (w_turn_q[Ev]) begin
      m_w_o.last = 1'b1;
      m_w_o.data = {StrbW / 2{ev_data_q}};
      m_w_o.strb = ev_strb_q;
    end
  end
  assign m_w_valid_o = w_turn_q[Ev] || w_turn_q[1] && s_w_valid_i[1] || w_turn_q[0] && s_w_valid_i[0];
  assign w_end = m_w_valid_o && m_w_ready_i && m_w_o.last;
  assign s_w_ready_o = w_turn_q[1:0] & {2{m_w_ready_i}};

  assign m_b_ready_o = 1'b1;
  assign s_b_o = m_b_i;
  assign s_b_valid_o = b_turn_q[1:0] & {2{m_b_valid_i}};
  assign ev_done = b_turn_q[Ev] && m_b_valid_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) ev_err_q <= 1'b0;
    else ev_err_q <= ev_done && m_b_i.resp != RespOkay;
  end
  assign ev_err_o = ev_err_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) drained_q <= 1'b0;
    else drained_q <= !pass && open == '0 && b_turn_q == '0;
  end
  assign drained_o = drained_q;

  assign still_o = ~|{ev_take, ev_aw_q, ev_w_q, ev_ready_q, ev_err_q, m_aw_valid_o, m_w_valid_o, m_b_valid_i};
  assign idle_o = open == '0 && b_turn_q == '0 && !ev_aw_q && !ev_w_q && !ev_err_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!aw_take || room)
      else $error("more bursts in flight than Window");
      assert (!m_b_valid_i || b_turn_q != '0)
      else $error("B without a write");
    end
  end
`endif

endmodule
