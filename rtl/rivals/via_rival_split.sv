// SPDX-License-Identifier: Apache-2.0
//
// Bursts to requests of one beat each, as the AmorphOS replica of the FSRF paper (section 6.2) has between translation and crossbar; its
// memory interface has requests of 64 bytes only. Without `split_i` everything passes unchanged.
//
// Throughput: one request a cycle and direction. Latency: none. Order: kept; responses of a burst become one again.

module via_rival_split
  import via_pkg::*;
#(
  parameter int unsigned Bursts = 64  // bursts in flight, each direction
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  logic    split_i,       // constant
  input  axi_ax_t s_ar_i,
  input  logic    s_ar_valid_i,
  output logic    s_ar_ready_o,
  output axi_r_t  s_r_o,
  output logic    s_r_valid_o,
  input  logic    s_r_ready_i,
  input  axi_ax_t s_aw_i,
  input  logic    s_aw_valid_i,
  output logic    s_aw_ready_o,
  output logic    s_aw_sent_o,   // pulse: the first request of a burst has gone, its data may follow
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
  output axi_w_t  m_w_o,
  output logic    m_w_valid_o,
  input  logic    m_w_ready_i,
  input  axi_b_t  m_b_i,
  input  logic    m_b_valid_i,
  output logic    m_b_ready_o
);

  localparam bit BurstsOk = param_in("via_rival_split Bursts", Bursts, 2, 1024);

  // [0] reads, [1] writes. `at` is the next beat of the burst at the front, `done` the next response of the oldest one in flight.
  axi_ax_t ax_i[2];
  logic [1:0] ax_valid, ax_ready, last, len_ready, len_valid, response, done_last;
  logic [7:0] at_q[2], done_q[2], len[2];
  assign ax_i[0]  = s_ar_i;
  assign ax_i[1]  = s_aw_i;
  assign ax_valid = {s_aw_valid_i, s_ar_valid_i};
  assign ax_ready = {m_aw_ready_i, m_ar_ready_i};
  assign response = {m_b_valid_i && m_b_ready_o, m_r_valid_i && m_r_ready_o};

  for (genvar d = 0; d < 2; d++) begin : gen_way
    assign last[d] = !split_i || at_q[d] == ax_i[d].len;
    assign done_last[d] = done_q[d] == len[d];
    // Lengths of the bursts in flight, once their first request has gone.
    via_fifo #(
      .T    (logic [7:0]),
      .Depth(Bursts)
    ) u_len (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (ax_i[d].len),
      .s_valid_i(split_i && ax_valid[d] && ax_ready[d] && at_q[d] == '0),
      .s_ready_o(len_ready[d]),
      .m_o      (len[d]),
      .m_valid_o(len_valid[d]),
      .m_ready_i(response[d] && done_last[d]),
      .count_o  ()
    );
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        at_q[d]   <= '0;
        done_q[d] <= '0;
      end else if (split_i) begin
        if (ax_valid[d] && ax_ready[d] && (at_q[d] != '0 || len_ready[d])) at_q[d] <= last[d] ? '0 : at_q[d] + 1'b1;
        if (response[d] && len_valid[d]) done_q[d] <= done_last[d] ? '0 : done_q[d] + 1'b1;
      end
    end
  end

  function automatic axi_ax_t one(input axi_ax_t ax, input logic [7:0] beat);
    one = ax;
    one.len = '0;
    one.addr = ax.addr + (AddrW'(beat) << BeatLog2);
    return one;
  endfunction

  logic [1:0] open;
  assign open[0] = !split_i || at_q[0] != '0 || len_ready[0];
  assign open[1] = !split_i || at_q[1] != '0 || len_ready[1];
  assign m_ar_o = split_i ? one(s_ar_i, at_q[0]) : s_ar_i;
  assign m_aw_o = split_i ? one(s_aw_i, at_q[1]) : s_aw_i;
  assign s_aw_sent_o = m_aw_valid_o && m_aw_ready_i && at_q[1] == '0;
  assign m_ar_valid_o = s_ar_valid_i && open[0];
  assign m_aw_valid_o = s_aw_valid_i && open[1];
  assign s_ar_ready_o = m_ar_ready_i && open[0] && last[0];
  assign s_aw_ready_o = m_aw_ready_i && open[1] && last[1];

  always_comb begin
    m_w_o = s_w_i;
    if (split_i) m_w_o.last = 1'b1;
    s_r_o = m_r_i;
    if (split_i) s_r_o.last = done_last[0];
  end
  assign m_w_valid_o = s_w_valid_i;
  assign s_w_ready_o = m_w_ready_i;
  assign s_r_valid_o = m_r_valid_i;
  assign m_r_ready_o = s_r_ready_i;
  assign s_b_o = m_b_i;
  assign s_b_valid_o = m_b_valid_i && (!split_i || done_last[1]);
  assign m_b_ready_o = s_b_ready_i || split_i && !done_last[1];

endmodule
