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

  function automatic axi_ax_t one(input axi_ax_t ax, input logic [7:0] beat);
    one = ax;
    one.len = '0;
    one.addr = ax.addr + (AddrW'(beat) << BeatLog2);
    return one;
  endfunction

  // [0] reads, [1] writes. A burst is taken with its first request and waits here for the others. `at` is the next of them, `done` the next
  // response of the oldest burst in flight.
  axi_ax_t s_ax[2], m_ax[2], ax_q[2];
  logic [1:0] s_valid, s_ready, m_valid, m_ready, open, first, len_ready, response, done_last;
  logic [7:0] at_q[2], done_q[2], len[2];
  assign s_ax[0]  = s_ar_i;
  assign s_ax[1]  = s_aw_i;
  assign s_valid  = {s_aw_valid_i, s_ar_valid_i};
  assign m_ready  = {m_aw_ready_i, m_ar_ready_i};
  assign response = {m_b_valid_i && m_b_ready_o, m_r_valid_i && m_r_ready_o};

  for (genvar d = 0; d < 2; d++) begin : gen_way
    assign first[d] = at_q[d] == '0;
    assign open[d] = !split_i || first[d] && len_ready[d];
    assign m_valid[d] = s_valid[d] && open[d] || !first[d];
    assign s_ready[d] = m_ready[d] && open[d];
    assign m_ax[d] = !split_i ? s_ax[d] : first[d] ? one(s_ax[d], '0) : one(ax_q[d], at_q[d]);
    assign done_last[d] = done_q[d] == len[d];
    // Lengths of the bursts in flight. A response is later than its request, which leaves the crossbar cycles after it has come here.
    via_fifo #(
      .T    (logic [7:0]),
      .Depth(Bursts)
    ) u_len (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (s_ax[d].len),
      .s_valid_i(split_i && first[d] && s_valid[d] && m_ready[d]),
      .s_ready_o(len_ready[d]),
      .m_o      (len[d]),
      .m_valid_o(),
      .m_ready_i(split_i && response[d] && done_last[d]),
      .count_o  ()
    );
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        at_q[d]   <= '0;
        done_q[d] <= '0;
      end else if (split_i) begin
        if (m_valid[d] && m_ready[d]) begin
          if (first[d]) at_q[d] <= 8'(s_ax[d].len != '0);
          else at_q[d] <= at_q[d] == ax_q[d].len ? '0 : at_q[d] + 1'b1;
        end
        if (response[d]) done_q[d] <= done_last[d] ? '0 : done_q[d] + 1'b1;
      end
      if (first[d]) ax_q[d] <= s_ax[d];
    end
  end

  assign m_ar_o = m_ax[0];
  assign m_aw_o = m_ax[1];
  assign m_ar_valid_o = m_valid[0];
  assign m_aw_valid_o = m_valid[1];
  assign s_ar_ready_o = s_ready[0];
  assign s_aw_ready_o = s_ready[1];
  assign s_aw_sent_o = s_aw_valid_i && s_aw_ready_o;

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
