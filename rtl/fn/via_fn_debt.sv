// SPDX-License-Identifier: Apache-2.0
//
// The answers that a function waits for which gets one message for each that it sends (the disk). Its user side may go away, and the function may be
// reset: neither must leave it waiting for ever, or give it the answer to another message.
//
//   lost_o   the next answer will not come: an answer that says so has to be made up, and nothing else may pass
//   stale_o  what comes answers a message from before the reset: it has to be dropped
//   pass_o   what comes answers a message: it may pass; otherwise it has to wait
// Each comes from registers and core_rst_ni by a single level. What happens is counted a cycle later; what may pass is known one answer ahead, so
// that none too much does. Counts are kept modulo 2^16; a function has less than that open.

module via_fn_debt (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic core_rst_ni,  // of the function
  input  logic gone_i,       // level: there is no user side, or it was another one before
  input  logic begin_i,      // the function begins a message
  input  logic answer_i,     // an answer to the function ends, a made-up one too
  input  logic drop_i,       // a message from the user side ends that is dropped
  output logic lost_o,
  output logic stale_o,
  output logic pass_o,
  output logic still_o       // nothing moves unless an input changes
);

  logic begin_q, answer_q, drop_q, gone_q, core_q;  // of the cycle before
  logic [15:0] owed_q, lost_q, stale_q, owed, lost, stale, fresh;
  logic shut_q;  // gone, or reset
  logic lost_any_q, stale_any_q, stale_one_q;  // the counters: not 0, just 1
  logic fresh_any_q;
  // Made up, or passed: if no answer ended in the cycle before, and if one did that is not counted yet.
  logic made_q, made_next_q, real_q, real_next_q;

  assign lost_o  = core_rst_ni && core_q && (answer_q ? made_next_q : made_q);
  assign pass_o  = core_rst_ni && !shut_q && (answer_q ? real_next_q : real_q);
  assign stale_o = !core_rst_ni || !shut_q && stale_any_q && !(drop_q && stale_one_q);

  assign fresh   = owed_q - lost_q;
  always_comb begin
    owed  = owed_q + 16'(begin_q) - 16'(answer_q);
    lost  = gone_q ? owed : lost_q - 16'(answer_q && lost_any_q);
    // A message that nobody asked for may be dropped too: it answers nothing.
    stale = stale_q + (core_q ? '0 : fresh) - 16'(drop_q && (stale_any_q || !core_q && fresh_any_q));
    if (!core_q) {owed, lost} = '0;
    if (gone_q) stale = '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {begin_q, answer_q, drop_q, gone_q} <= '0;
      core_q                              <= 1'b1;
      shut_q                              <= 1'b0;
      owed_q                              <= '0;
      lost_q                              <= '0;
      stale_q                             <= '0;
      {lost_any_q, made_q, made_next_q}   <= '0;
      {real_q, real_next_q}               <= '0;
      {stale_any_q, stale_one_q}          <= '0;
      fresh_any_q                         <= 1'b0;
    end else begin
      begin_q     <= begin_i;
      answer_q    <= answer_i;
      drop_q      <= drop_i;
      gone_q      <= gone_i;
      core_q      <= core_rst_ni;
      shut_q      <= gone_i || !core_rst_ni;
      owed_q      <= owed;
      lost_q      <= lost;
      stale_q     <= stale;
      lost_any_q  <= lost != '0;
      made_q      <= lost != '0 && stale == '0;
      made_next_q <= lost[15:1] != '0 && stale == '0;
      real_q      <= lost == '0 && stale == '0 && owed != '0;
      real_next_q <= lost[15:1] == '0 && stale == '0 && owed[15:1] != '0;
      stale_any_q <= stale != '0;
      stale_one_q <= stale == 16'd1;
      fresh_any_q <= owed != lost;
    end
  end

  // What is told here is told a cycle later. A change of gone_i alone moves something only if an answer is owed that is not lost yet.
  assign still_o = ~|{begin_i, answer_i, drop_i, begin_q, answer_q, drop_q, gone_i != gone_q, core_rst_ni != core_q,
                      gone_q && (owed_q != lost_q || stale_q != '0), !core_q && owed_q != '0};

endmodule
