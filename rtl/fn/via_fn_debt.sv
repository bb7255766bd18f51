// SPDX-License-Identifier: Apache-2.0
//
// The answers that a function waits for which gets one message for each that it sends (the disk). Its user side may go away, and the function may be
// reset: neither must leave it waiting for ever, or give it the answer to another message.
//
//   lost_o   the next answer will not come: an answer that says so has to be made up, and nothing else may pass
//   stale_o  what comes answers a message from before the reset: it has to be dropped
//   wait_o   nothing is owed: a message from the user side has to wait
// All of them come from registers (and core_rst_ni). Counts are kept modulo 2^16; a function has less than that open.

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
  output logic wait_o,
  output logic still_o       // nothing moves unless an input changes
);

  logic [15:0] owed_q, lost_q, stale_q, owed, lost, fresh;
  logic owes_q, lost_any_q, stale_any_q;  // the counters are not 0
  logic owes, lost_any, stale_any;

  assign owed = owed_q + 16'(begin_i) - 16'(answer_i);
  assign lost = lost_q - 16'(answer_i && lost_o);
  assign lost_o = lost_any_q;
  assign stale_o = stale_any_q || !core_rst_ni;
  assign wait_o = !owes_q;

  // The same of the next cycle, from what the counters are now.
  assign fresh = owed_q - lost_q;
  assign owes = (begin_i == answer_i) ? owes_q : begin_i || owed_q != 16'd1;
  always_comb begin
    lost_any = lost_any_q && !(answer_i && lost_q == 16'd1);
    if (gone_i) lost_any = owes;
    stale_any = stale_any_q && !(drop_i && stale_q == 16'd1);
    if (!core_rst_ni) begin
      // The sum of three numbers is not 0.
      if (!drop_i) stale_any = stale_any_q || fresh != '0;
      else stale_any = !(stale_any_q ? stale_q == 16'd1 && fresh == '0 : fresh == 16'd1);
    end
    if (gone_i) stale_any = 1'b0;
  end
  // A change of gone_i alone moves something only if an answer is owed that is not lost yet.
  assign still_o = ~|{begin_i, answer_i, drop_i, gone_i && (owed_q != lost_q || stale_q != '0), !core_rst_ni && owed_q != '0};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      owed_q      <= '0;
      lost_q      <= '0;
      stale_q     <= '0;
      owes_q      <= 1'b0;
      lost_any_q  <= 1'b0;
      stale_any_q <= 1'b0;
    end else begin
      if (!core_rst_ni) begin
        owed_q     <= '0;
        lost_q     <= '0;
        owes_q     <= 1'b0;
        lost_any_q <= 1'b0;
      end else begin
        owed_q     <= owed;
        lost_q     <= gone_i ? owed : lost;
        owes_q     <= owes;
        lost_any_q <= lost_any;
      end
      stale_any_q <= stale_any;
      if (gone_i) stale_q <= '0;
      else stale_q <= stale_q + (core_rst_ni ? '0 : fresh) - 16'(drop_i);
    end
  end

endmodule
