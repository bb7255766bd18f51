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

  logic [15:0] owed_q, lost_q, stale_q, owed, lost;

  assign owed = owed_q + 16'(begin_i) - 16'(answer_i);
  assign lost = lost_q - 16'(answer_i && lost_o);
  assign lost_o = lost_q != '0;
  assign stale_o = stale_q != '0 || !core_rst_ni;
  assign wait_o = owed_q == '0;
  // A change of gone_i alone moves something only if an answer is owed that is not lost yet.
  assign still_o = ~|{begin_i, answer_i, drop_i, gone_i && (owed_q != lost_q || stale_q != '0), !core_rst_ni && owed_q != '0};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      owed_q  <= '0;
      lost_q  <= '0;
      stale_q <= '0;
    end else begin
      if (!core_rst_ni) begin
        owed_q <= '0;
        lost_q <= '0;
      end else begin
        owed_q <= owed;
        lost_q <= gone_i ? owed : lost;
      end
      if (gone_i) stale_q <= '0;
      else stale_q <= stale_q + (core_rst_ni ? '0 : owed_q - lost_q) - 16'(drop_i);
    end
  end

endmodule
