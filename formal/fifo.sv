// SPDX-License-Identifier: Apache-2.0
//
// via_fifo, and via_vq_fifo (`Head`), without bound: every word comes out, unchanged, once, after those that came before it, and stays at the head until it is accepted; it
// counts what it holds. One word, any, is watched; words are one bit wide, for nothing in the FIFO looks at them.

module fifo #(
  parameter bit Ram  = 1'b0,
  parameter bit Head = 1'b0,
  parameter bit Late = 1'b0
) (
  input logic clk_i,
  input logic rst_ni,
  input logic s_i,
  input logic s_valid_i,
  input logic m_ready_i,
  input logic watch_i
);

  localparam int unsigned Depth = 4;
  logic s_ready, m, m_valid, hidden, push, pop;
  logic [2:0] count, held_q;  // words held, as it says and as they are

  // What `count_o` leaves out: the word at the head of via_vq_fifo, and the one before its memory.
  logic [2:0] outside;
  if (Head) begin : gen_head
    via_vq_fifo #(
      .Depth(Depth),
      .Ram  (Ram),
      .Late (Late)
    ) dut (
      .clk_i,
      .rst_ni,
      .s_i,
      .s_valid_i,
      .s_ready_o(s_ready),
      .m_o      (m),
      .m_valid_o(m_valid),
      .m_ready_i,
      .count_o  (count),
      .hidden_o (hidden)
    );
    assign outside = 3'(m_valid) + 3'(dut.late);
  end else begin : gen_plain
    via_fifo #(
      .Depth(Depth),
      .Ram  (Ram)
    ) dut (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i,
      .s_valid_i,
      .s_ready_o(s_ready),
      .m_o      (m),
      .m_valid_o(m_valid),
      .m_ready_i,
      .count_o  (count)
    );
    assign outside = '0;
    assign hidden  = held_q != '0 && !m_valid;
  end
  via_hs_checker #(
    .Width(1)
  ) u_held (
    .clk_i,
    .rst_ni,
    .s_i    (m),
    .valid_i(m_valid),
    .ready_i(m_ready_i)
  );
  assign push = s_valid_i && s_ready;
  assign pop  = m_valid && m_ready_i;

  logic begun_q = 1'b0;
  logic watched_q, word_q, lone_q;
  logic [2:0] ahead_q;  // words before the one that is watched
  logic [2:0] starved_q;  // cycles without a word at the head while there is one
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    if (Late) assume (!s_valid_i || held_q < 3'(Depth));  // a source that counts
    if (!rst_ni) begin
      watched_q <= 1'b0;
      held_q    <= '0;
      ahead_q   <= '0;
      word_q    <= 1'b0;
      lone_q    <= 1'b0;
      starved_q <= '0;
    end else begin
      held_q <= held_q + 3'(push) - 3'(pop);
      lone_q <= push && held_q == 3'(pop) && (Head || !Ram);  // what comes alone, or as the last one leaves, is there in the next cycle
      starved_q <= (held_q != '0 && !m_valid) ? starved_q + 1'b1 : '0;
      if (!watched_q) begin
        if (push && watch_i) begin
          watched_q <= 1'b1;
          word_q    <= s_i;
          ahead_q   <= held_q - 3'(pop);
        end
      end else if (pop) begin
        if (ahead_q == '0) watched_q <= 1'b0;
        else ahead_q <= ahead_q - 1'b1;
      end

      a_count : assert (count == held_q - outside && count <= 3'(Depth));
      a_room : assert (s_ready == (count != 3'(Depth)));
      a_real : assert (!m_valid || held_q != '0);
      a_comes : assert (starved_q <= 3'(Ram) + 3'(Ram && Head) + 3'(Late));
      a_lone : assert (!lone_q || m_valid);
      a_hidden : assert (hidden || held_q == '0 || m_valid);
      if (watched_q) begin
        a_kept : assert (ahead_q < held_q);
        if (m_valid && ahead_q == '0) a_word : assert (m == word_q);
      end
    end
  end

endmodule
