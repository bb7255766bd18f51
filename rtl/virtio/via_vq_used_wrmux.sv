// SPDX-License-Identifier: Apache-2.0
//
// The one write port of a queue engine: payload bursts, used entries, and avail_event, each two bytes.
//
// Throughput: one beat a cycle. Latency: none added on AW and W of payload and used entries, one cycle for avail_event. Order: W in the order
// of AW, B back in that order; what one source sends is written in the order it sends it. avail_event goes first, then used entries.
// avail_event is taken (`ev_ready_o`) with its W: the available index is read again after that, and the host port keeps the read behind it.
// Misuse: relies on the no-wedge rule: a source holds all W data of the AW it offers. A refused avail_event is reported.

module via_vq_used_wrmux
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned Window = 128  // bursts in flight
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  // source 0: payload, source 1: used entries
  input  axi_ax_t              s_aw_i         [2],
  input  logic    [       1:0] s_aw_valid_i,
  output logic    [       1:0] s_aw_ready_o,
  input  axi_w_t               s_w_i          [2],
  input  logic    [       1:0] s_w_valid_i,
  output logic    [       1:0] s_w_ready_o,
  output axi_b_t               s_b_o,
  output logic    [       1:0] s_b_valid_o,         // always taken
  input  logic    [      63:0] ev_addr_i,
  input  logic    [      15:0] ev_data_i,
  input  logic    [QueueW-1:0] ev_queue_i,
  input  logic                 ev_valid_i,
  output logic                 ev_ready_o,
  output logic                 ev_busy_o,           // one is held or not answered, of ev_busy_queue_o
  output logic    [QueueW-1:0] ev_busy_queue_o,
  output logic                 ev_err_o,            // pulse: that one was refused
  output axi_ax_t              m_aw_o,
  output logic                 m_aw_valid_o,
  input  logic                 m_aw_ready_i,
  output axi_w_t               m_w_o,
  output logic                 m_w_valid_o,
  input  logic                 m_w_ready_i,
  input  axi_b_t               m_b_i,
  input  logic                 m_b_valid_i,
  output logic                 m_b_ready_o,
  output logic                 still_o,
  output logic                 idle_o
);

  localparam bit WindowOk = param_in("via_vq_used_wrmux Window", Window, 1, 1024);

  localparam int unsigned CountW = $clog2(Window + 1);

  // ---------------------------------------------------------------- avail_event: its address and data wait here
  logic ev_aw_q, ev_w_q, ev_busy_q, ev_take, ev_done;
  logic [63:0] ev_addr_q;
  logic [15:0] ev_data_q;
  logic [QueueW-1:0] ev_queue_q;
  assign ev_take = ev_valid_i && !ev_busy_q;
  assign ev_busy_o = ev_busy_q;
  assign ev_busy_queue_o = ev_queue_q;

  // ---------------------------------------------------------------- AW
  logic [1:0] pick, hold_q, w_src, b_src;
  logic held_q, room, aw_take, w_valid, w_end, b_valid;
  logic [CountW-1:0] open;

  always_comb begin
    pick = 2'd0;
    if (s_aw_valid_i[1]) pick = 2'd1;
    if (ev_aw_q) pick = 2'd2;
    if (held_q) pick = hold_q;
  end
  always_comb begin
    m_aw_o = s_aw_i[pick[0]];
    if (pick[1]) begin
      m_aw_o       = '0;
      m_aw_o.burst = 2'b01;
      m_aw_o.size  = 3'(BeatLog2);
      m_aw_o.addr  = {ev_addr_q[AddrW-1:BeatLog2], BeatLog2'(0)};
    end
    m_aw_o.id = '0;
  end
  assign m_aw_valid_o = (|s_aw_valid_i || ev_aw_q) && room;
  assign aw_take = m_aw_valid_o && m_aw_ready_i;
  assign s_aw_ready_o = {aw_take && pick == 2'd1, aw_take && pick == 2'd0};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= 1'b0;
      ev_aw_q <= 1'b0;
      ev_w_q <= 1'b0;
      ev_busy_q <= 1'b0;
    end else begin
      if (ev_take) ev_busy_q <= 1'b1;
      else if (ev_done) ev_busy_q <= 1'b0;
      held_q <= m_aw_valid_o && !m_aw_ready_i;
      if (ev_take) ev_aw_q <= 1'b1;
      else if (aw_take && pick[1]) ev_aw_q <= 1'b0;
      if (ev_take) ev_w_q <= 1'b1;
      else if (w_end && w_src[1]) ev_w_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (m_aw_valid_o && !held_q) hold_q <= pick;
    if (ev_take) begin
      ev_addr_q  <= ev_addr_i;
      ev_data_q  <= ev_data_i;
      ev_queue_q <= ev_queue_i;
    end
  end

  // ---------------------------------------------------------------- W, B
  via_fifo #(
    .T    (logic [1:0]),
    .Depth(Window)
  ) u_w (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (pick),
    .s_valid_i(aw_take),
    .s_ready_o(),
    .m_o      (w_src),
    .m_valid_o(w_valid),
    .m_ready_i(w_end),
    .count_o  ()
  );
  via_fifo #(
    .T    (logic [1:0]),
    .Depth(Window)
  ) u_b (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (pick),
    .s_valid_i(aw_take),
    .s_ready_o(room),
    .m_o      (b_src),
    .m_valid_o(b_valid),
    .m_ready_i(m_b_valid_i),
    .count_o  (open)
  );

  always_comb begin
    m_w_o = s_w_i[w_src[0]];
    if (w_src[1]) begin
      m_w_o.last = 1'b1;
      m_w_o.data = {StrbW / 2{ev_data_q}};
      m_w_o.strb = StrbW'(2'b11) << {ev_addr_q[BeatLog2-1:1], 1'b0};
    end
  end
  assign m_w_valid_o = w_valid && (w_src[1] ? ev_w_q : s_w_valid_i[w_src[0]]);
  assign w_end = m_w_valid_o && m_w_ready_i && m_w_o.last;
  assign ev_ready_o = w_end && w_src[1];
  assign s_w_ready_o = {w_valid && w_src == 2'd1 && m_w_ready_i, w_valid && w_src == 2'd0 && m_w_ready_i};

  assign m_b_ready_o = 1'b1;
  assign s_b_o = m_b_i;
  assign s_b_valid_o = {b_valid && b_src == 2'd1 && m_b_valid_i, b_valid && b_src == 2'd0 && m_b_valid_i};
  assign ev_done = b_valid && b_src[1] && m_b_valid_i;
  assign ev_err_o = ev_done && m_b_i.resp != RespOkay;

  assign still_o = ~|{ev_take, ev_aw_q, ev_w_q, m_aw_valid_o, m_w_valid_o, m_b_valid_i};
  assign idle_o = open == '0 && !ev_aw_q && !ev_w_q;

endmodule
