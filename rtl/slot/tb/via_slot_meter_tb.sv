// SPDX-License-Identifier: Apache-2.0
//
// via_slot_meter with its settings and counters as plain bits.

module via_slot_meter_tb
  import via_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [27:0] cfg,              // sched_cfg_t
  input  logic [ 7:0] ar_len,
  input  logic        ar_host,
  input  logic        ar_valid,
  output logic        ar_ready,
  input  logic [ 7:0] aw_len,
  input  logic        aw_host,
  input  logic        aw_valid,
  output logic        aw_ready,
  output logic        out_ar_valid,
  input  logic        out_ar_ready,
  output logic        out_aw_valid,
  input  logic        out_aw_ready,
  input  logic        rd_beat,
  input  logic        wr_done,
  output logic        first,
  output logic [31:0] beats       [4],  // reads and writes of card memory, then of host memory
  output logic [31:0] waited      [2]
);

  // Counts while the clock of the block stands still, too.
  logic [31:0] time_q;
  always_ff @(posedge clk_i) time_q <= rst_ni ? time_q + 1'b1 : '0;

  logic clk, still;
  via_tb_gate #(
    .W(50)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i(still && !rd_beat && !wr_done),
    .inputs_i({cfg, ar_len, ar_host, ar_valid, aw_len, aw_host, aw_valid, out_ar_ready, out_aw_ready}),
    .clk_o(clk)
  );

  meter_count_t count;
  always_comb begin
    for (int unsigned w = 0; w < 2; w++) begin
      beats[w]   = count.beats[w][0];
      beats[2+w] = count.beats[w][1];
      waited[w]  = count.waited[w] + (count.waits[w] ? time_q : '0);
    end
  end

  via_slot_meter u_dut (
    .clk_i       (clk),
    .rst_ni,
    .cfg_i       (sched_cfg_t'(cfg)),
    .time_i      (time_q),
    .s_ar_len_i  (ar_len),
    .s_ar_host_i (ar_host),
    .s_ar_valid_i(ar_valid),
    .s_ar_ready_o(ar_ready),
    .s_aw_len_i  (aw_len),
    .s_aw_host_i (aw_host),
    .s_aw_valid_i(aw_valid),
    .s_aw_ready_o(aw_ready),
    .m_ar_valid_o(out_ar_valid),
    .m_ar_ready_i(out_ar_ready),
    .m_aw_valid_o(out_aw_valid),
    .m_aw_ready_i(out_aw_ready),
    .rd_beat_i   (rd_beat),
    .wr_done_i   (wr_done),
    .first_o     (first),
    .count_o     (count),
    .still_o     (still)
  );

endmodule
