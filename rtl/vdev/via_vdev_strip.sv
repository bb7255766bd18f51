// SPDX-License-Identifier: Apache-2.0
//
// Removes the first `Bytes` bytes of every message of a stream. The rest leaves shifted down; `head_o` holds the removed bytes meanwhile. A
// message no longer than that leaves as one beat without bytes, so every message has a last beat.
// Throughput: one input beat a cycle. Latency: one cycle; a shifted beat waits for the next one. Order: kept. The shift is a constant.
// Misuse: a message shorter than `Bytes` leaves undefined bytes in head_o; the block that knows the length has to check it.

module via_vdev_strip
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned Bytes = 16
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  vq_beat_t               s_i,        // message
  input  logic                   s_valid_i,
  output logic                   s_ready_o,
  output vq_beat_t               m_o,        // message without its first bytes
  output logic     [Bytes*8-1:0] head_o,     // removed bytes, from the lowest byte; valid with m_valid_o
  output logic                   m_valid_o,
  input  logic                   m_ready_i,
  output logic                   idle_o      // level: nothing is held
);

  localparam bit BytesOk = param_in("via_vdev_strip Bytes", Bytes, 1, 4096);

  localparam int unsigned Whole = Bytes / StrbW;  // whole beats to remove
  localparam int unsigned Shift = Bytes % StrbW;
  localparam int unsigned Heads = (Bytes + StrbW - 1) / StrbW;
  localparam int unsigned CountW = $clog2(Whole + 2);

  logic [CountW-1:0] count_q;  // beats of this message accepted; stops at Whole + 1
  logic taking, in_head, take, out;
  if (Whole != 0) begin : gen_heads
    assign in_head = count_q < CountW'(Whole);
  end else begin : gen_no_heads
    assign in_head = 1'b0;
  end

  // The beat before the one at the input.
  vq_beat_t held_q;
  logic held_valid_q, needs_next, merges;

  assign needs_next = Shift != 0 && !held_q.last;
  assign m_valid_o  = held_valid_q && (!needs_next || s_valid_i);
  assign out        = m_valid_o && m_ready_i;
  assign s_ready_o  = !held_valid_q || m_ready_i;
  assign take       = s_valid_i && s_ready_o;
  // The beat at the input is completed by the one that leaves now.
  assign taking     = take && !(in_head && !s_i.last) && !merges;

  if (Shift != 0) begin : gen_shift
    assign merges = held_valid_q && !held_q.last && s_i.last && !s_i.keep[Shift];
    always_comb begin
      m_o.data = held_q.data >> (8 * Shift);
      m_o.keep = held_q.keep >> Shift;
      m_o.last = held_q.last;
      if (!held_q.last) begin
        m_o.data[DataW-1-:8*Shift] = s_i.data[8*Shift-1:0];
        m_o.keep[StrbW-1-:Shift]   = s_i.keep[Shift-1:0];
        m_o.last                   = merges;
      end
    end
  end else begin : gen_whole
    assign merges = 1'b0;
    assign m_o = held_q;
  end

  logic [Heads*DataW-1:0] head_q;
  assign head_o = head_q[Bytes*8-1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q      <= '0;
      held_valid_q <= 1'b0;
    end else begin
      if (take) count_q <= s_i.last ? '0 : (count_q == CountW'(Whole + 1)) ? count_q : count_q + 1'b1;
      if (taking) held_valid_q <= 1'b1;
      else if (out) held_valid_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (taking) begin
      held_q <= s_i;
      // A message that ends within the head leaves no bytes.
      if (in_head) held_q.keep <= '0;
    end
    for (int unsigned i = 0; i < Heads; i++) begin
      if (take && count_q == CountW'(i)) head_q[i*DataW+:DataW] <= s_i.data;
    end
  end

  assign idle_o = !held_valid_q && count_q == '0;

endmodule
