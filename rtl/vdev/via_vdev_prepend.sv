// SPDX-License-Identifier: Apache-2.0
//
// Inserts `Bytes` bytes in front of every message of a stream. `head_i` is used with the first beat of a message; a message may be one beat
// without bytes.
// Throughput: one output beat a cycle. Latency: none. Order: kept. The shift is a constant; `Bytes` must not be a multiple of a beat.

module via_vdev_prepend
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned Bytes = 12
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic     [Bytes*8-1:0] head_i,     // bytes to insert, from the lowest byte
  input  vq_beat_t               s_i,        // message
  input  logic                   s_valid_i,
  output logic                   s_ready_o,
  output vq_beat_t               m_o,        // message with the bytes in front
  output logic                   m_valid_o,
  input  logic                   m_ready_i,
  output logic                   idle_o      // level: nothing is held
);

  localparam bit BytesOk = param_in("via_vdev_prepend Bytes", Bytes, 1, 4096);
  localparam bit BytesPartOk = param_in("via_vdev_prepend Bytes modulo a beat", Bytes % StrbW, 1, StrbW - 1);

  localparam int unsigned Whole = Bytes / StrbW;
  localparam int unsigned Shift = Bytes % StrbW;
  localparam int unsigned CountW = $clog2(Whole + 2);

  logic [CountW-1:0] count_q;  // beats of this message sent; stops at Whole + 1
  logic in_head, out, spill, tail_q;
  if (Whole != 0) begin : gen_heads
    assign in_head = count_q < CountW'(Whole);
  end else begin : gen_no_heads
    assign in_head = 1'b0;
  end

  assign m_valid_o = tail_q || s_valid_i;
  assign out = m_valid_o && m_ready_i;
  assign s_ready_o = m_ready_i && !tail_q && !in_head;

  logic [8*Shift-1:0] carry_q, carry;
  logic [Shift-1:0] carry_keep_q;
  assign carry = (count_q == CountW'(Whole)) ? head_i[Bytes*8-1-:8*Shift] : carry_q;
  // The last beat of the input does not fit entirely into the one that leaves now.
  assign spill = s_i.last && s_i.keep[StrbW-Shift] && !in_head;
  always_comb begin
    m_o.data = {s_i.data[DataW-8*Shift-1:0], carry};
    m_o.keep = {s_i.keep[StrbW-Shift-1:0], {Shift{1'b1}}};
    m_o.last = s_i.last && !spill;
    if (tail_q) m_o = '{last: 1'b1, keep: StrbW'(carry_keep_q), data: DataW'(carry_q)};
    if (in_head) m_o = '{last: 1'b0, keep: '1, data: DataW'(head_i >> (32'(count_q) * DataW))};
  end
  always_ff @(posedge clk_i) begin
    if (out && !tail_q && !in_head) begin
      carry_q      <= s_i.data[DataW-1-:8*Shift];
      carry_keep_q <= s_i.keep[StrbW-1-:Shift];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
      tail_q  <= 1'b0;
    end else if (out) begin
      count_q <= m_o.last ? '0 : (count_q == CountW'(Whole + 1)) ? count_q : count_q + 1'b1;
      tail_q  <= spill && !tail_q;
    end
  end

  assign idle_o = count_q == '0 && !tail_q;

endmodule
