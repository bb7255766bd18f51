// SPDX-License-Identifier: Apache-2.0
//
// What every replica has between an app and its translation, as in the published design (FSRF paper, section 5.2): data of reads is
// buffered until the app accepts it, and the address of a write is held until all of its data is there.
//
//   s_ar ── credits ────────────> m_ar (to the translation)      s_aw ── FIFO ── all data here? ──> m_aw (to the translation)
//   s_r  <── FIFO <────────────── m_r  (from the crossbar)       s_w  ── FIFO ── address gone? ───> m_w  (to the crossbar)
//
// Throughput: one beat a cycle and direction. Latency: AR none, R, AW and W one cycle, B none. Order: kept. `aw_sent_i` is a pulse for each
// address that has reached the crossbar; its data follows. Misuse is not detected: only the apps of this repository run here.

module via_rival_port
  import via_pkg::*;
#(
  // Both as in the published artifact: 64 accesses of a slot in flight in each direction, reads with room for 512 beats.
  parameter int unsigned Outstanding = 64,
  parameter int unsigned RdBeats = 512,
  // The artifact holds the data of its writes in flight; this is four bursts of 4 KiB, more than an app sends before the first has gone.
  parameter int unsigned WrBeats = 256
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  axi_ax_t s_ar_i,
  input  logic    s_ar_valid_i,
  output logic    s_ar_ready_o,
  output axi_r_t  s_r_o,
  output logic    s_r_valid_o,
  input  logic    s_r_ready_i,
  input  axi_ax_t s_aw_i,
  input  logic    s_aw_valid_i,
  output logic    s_aw_ready_o,
  input  axi_w_t  s_w_i,
  input  logic    s_w_valid_i,
  output logic    s_w_ready_o,
  output axi_b_t  s_b_o,
  output logic    s_b_valid_o,
  input  logic    s_b_ready_i,
  output axi_ax_t m_ar_o,
  output logic    m_ar_valid_o,
  input  logic    m_ar_ready_i,
  input  axi_r_t  m_r_i,
  input  logic    m_r_valid_i,
  output logic    m_r_ready_o,
  output axi_ax_t m_aw_o,
  output logic    m_aw_valid_o,
  input  logic    m_aw_ready_i,
  input  logic    aw_sent_i,     // pulse: the address of a burst has begun to enter the crossbar
  output axi_w_t  m_w_o,
  output logic    m_w_valid_o,
  input  logic    m_w_ready_i,
  input  axi_b_t  m_b_i,
  input  logic    m_b_valid_i,
  output logic    m_b_ready_o,
  output logic    drained_o      // no access is on its way: those whose address has left have been answered
);

  localparam bit OutstandingOk = param_in("via_rival_port Outstanding", Outstanding, 1, 1024);
  localparam bit RdBeatsOk = param_in("via_rival_port RdBeats", RdBeats, 512, 65536);
  localparam bit WrBeatsOk = param_in("via_rival_port WrBeats", WrBeats, 256, 65536);

  localparam int unsigned FlightW = $clog2(Outstanding + 1);
  localparam int unsigned RoomW = $clog2(RdBeats + 1);

  // ---------------------------------------------------------------- reads
  logic [FlightW-1:0] reads_q, writes_q;
  logic [RoomW-1:0] room_q;
  logic ar_open, ar_in, r_out, r_end;
  assign ar_open = reads_q != FlightW'(Outstanding) && room_q >= RoomW'(s_ar_i.len) + 1'b1;
  assign m_ar_o = s_ar_i;
  assign m_ar_valid_o = s_ar_valid_i && ar_open;
  assign s_ar_ready_o = m_ar_ready_i && ar_open;
  assign ar_in = s_ar_valid_i && s_ar_ready_o;
  assign r_out = s_r_valid_o && s_r_ready_i;
  assign r_end = r_out && s_r_o.last;

  via_fifo #(
    .T    (axi_r_t),
    .Depth(RdBeats)
  ) u_r (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (m_r_i),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      (s_r_o),
    .m_valid_o(s_r_valid_o),
    .m_ready_i(s_r_ready_i),
    .count_o  ()
  );

  // ---------------------------------------------------------------- writes
  axi_ax_t aw;
  logic aw_valid, aw_ready, w_valid, w_ready, w_in_end, aw_out, w_end, b_end;
  logic [15:0] whole_q, owed_q;  // bursts whose data is here and whose address is; whose address has gone and whose data has not
  via_fifo #(
    .T    (axi_ax_t),
    .Depth(Outstanding)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (s_aw_i),
    .s_valid_i(s_aw_valid_i),
    .s_ready_o(s_aw_ready_o),
    .m_o      (aw),
    .m_valid_o(aw_valid),
    .m_ready_i(aw_ready),
    .count_o  ()
  );
  via_fifo #(
    .T    (axi_w_t),
    .Depth(WrBeats)
  ) u_w (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (s_w_i),
    .s_valid_i(s_w_valid_i),
    .s_ready_o(s_w_ready_o),
    .m_o      (m_w_o),
    .m_valid_o(w_valid),
    .m_ready_i(w_ready),
    .count_o  ()
  );
  assign w_in_end = s_w_valid_i && s_w_ready_o && s_w_i.last;
  assign m_aw_o = aw;
  assign m_aw_valid_o = aw_valid && whole_q != '0 && writes_q != FlightW'(Outstanding);
  assign aw_ready = m_aw_ready_i && whole_q != '0 && writes_q != FlightW'(Outstanding);
  assign aw_out = m_aw_valid_o && m_aw_ready_i;
  assign m_w_valid_o = w_valid && owed_q != '0;
  assign w_ready = m_w_ready_i && owed_q != '0;
  assign w_end = m_w_valid_o && m_w_ready_i && m_w_o.last;
  assign s_b_o = m_b_i;
  assign s_b_valid_o = m_b_valid_i;
  assign m_b_ready_o = s_b_ready_i;
  assign b_end = s_b_valid_o && s_b_ready_i;
  assign drained_o = reads_q == '0 && writes_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reads_q  <= '0;
      writes_q <= '0;
      room_q   <= RoomW'(RdBeats);
      whole_q  <= '0;
      owed_q   <= '0;
    end else begin
      reads_q  <= reads_q + FlightW'(ar_in) - FlightW'(r_end);
      writes_q <= writes_q + FlightW'(aw_out) - FlightW'(b_end);
      room_q   <= room_q - (ar_in ? RoomW'(s_ar_i.len) + 1'b1 : '0) + RoomW'(r_out);
      whole_q  <= whole_q + 16'(w_in_end) - 16'(aw_out);
      owed_q   <= owed_q + 16'(aw_sent_i) - 16'(w_end);
    end
  end

endmodule
