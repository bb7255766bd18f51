// SPDX-License-Identifier: Apache-2.0
//
// via_xbar_queue, without bound: a piece is offered only when there is credit for it. Reads: for all of its beats, so a buffer never overflows.
// Writes (`Ahead`): for all of them or the first `Piece` + 1, so a subordinate waits for no data.
//
// Assumed: requests are no longer than a burst, also as they come out of via_fifo (proved in fifo); the buffer gives no more credit than it has
// beats.

module xbar_queue
  import via_pkg::*;
#(
  parameter bit Ahead = 1'b0
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [7:0] s_i,
  input logic [7:0] s_len_i,
  input logic       s_valid_i,
  input logic       m_ready_i,
  input logic       cut_i,
  input logic       credit_i
);

  localparam int unsigned Width = 8;
  localparam int unsigned Piece = 4;
  localparam int unsigned Most = MaxBurstBeats;
  localparam int unsigned Start = Ahead ? 0 : Most;
  localparam int unsigned W = 16;
  typedef logic signed [W-1:0] beats_t;

  logic s_ready, m_valid, m_last;
  logic [Width-1:0] m;
  logic [7:0] m_len;

  via_xbar_queue #(
    .Width(Width),
    .Depth(2),
    .Piece(Piece),
    .Most (Most),
    .Start(Start),
    .Ahead(Ahead)
  ) dut (
    .clk_i,
    .rst_ni,
    .s_i,
    .s_len_i,
    .s_valid_i,
    .s_ready_o(s_ready),
    .m_o      (m),
    .m_len_o  (m_len),
    .m_last_o (m_last),
    .m_valid_o(m_valid),
    .m_ready_i,
    .cut_i,
    .credit_i,
    .still_o  ()
  );

  via_hs_checker #(
    .Width(Width + 9)
  ) u_held (
    .clk_i,
    .rst_ni,
    .s_i    ({m, m_len, m_last}),
    .valid_i(m_valid),
    .ready_i(m_ready_i)
  );

  // Beats of credit that no piece has used; with `Ahead` below zero while data of a piece is still to come.
  beats_t owned_q;
  beats_t claimed;
  assign claimed = dut.full_q ? beats_t'(dut.piece_q.len) + beats_t'(1) : beats_t'(0);

  // What a piece of `len` needs before it is offered.
  function automatic beats_t enough(input logic [7:0] len);
    return (Ahead && 32'(len) > Piece) ? beats_t'(Piece + 1) : beats_t'(len) + beats_t'(1);
  endfunction

  function automatic logic fits(input logic [7:0] len);
    return 32'(len) < MaxBurstBeats;
  endfunction

  function automatic logic over(input logic [7:0] len);
    return 32'(len) >= Piece;
  endfunction

  logic begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    assume (fits(s_len_i));
    // The FIFO delivers what entered it (formal/fifo).
    assume (!dut.held_valid || fits(dut.held_len) && dut.held_over == over(dut.held_len));
    if (!rst_ni) begin
      owned_q <= beats_t'(Start);
    end else begin
      owned_q <= owned_q + beats_t'(credit_i) - ((m_valid && m_ready_i) ? beats_t'(m_len) + beats_t'(1) : beats_t'(0));
      if (owned_q >= beats_t'(Most)) assume (!credit_i);

      a_paid : assert (!m_valid || owned_q >= enough(m_len));
      i_account : assert (owned_q == beats_t'(dut.credit_q) + beats_t'(dut.credit_late_q) + claimed);
      i_most : assert (owned_q <= beats_t'(Most));
      i_fits : assert (!dut.full_q || fits(dut.piece_q.len));
      i_rest : assert (!dut.more_q || dut.full_q && fits(dut.rest_q) && dut.rest_over_q == over(dut.rest_q));
      i_early : assert (!dut.full_q || !dut.early_q || Ahead && beats_t'(dut.rest_q) == beats_t'(dut.piece_q.len) - beats_t'(Piece));
      // The credit's register is wide enough.
      i_least :
      assert (beats_t'(dut.credit_q) >= (dut.full_q ? -claimed : beats_t'(0)) - (Ahead ? beats_t'(MaxBurstBeats - 1 - Piece) : beats_t'(0)));
    end
  end

endmodule
