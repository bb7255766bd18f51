// SPDX-License-Identifier: Apache-2.0
//
// Counts the responses owed to a function that gets one message for each one it sends (the disk). Its user side may be disconnected, and
// the function may be reset: in neither case may the function wait for ever, or get the response to another message.
//
//   lost_o   the next response will not come: a substitute has to be generated, and nothing else may pass
//   stale_o  the message that comes responds to one sent before the reset: it has to be dropped
//   pass_o   the message that comes responds to an open one: it may pass; otherwise it has to wait
// Each is driven by registers and core_rst_ni through one level of logic. Throughput: one event of each kind a cycle. Latency: events are
// counted a cycle later; to stay exact, the outputs take an event of the previous cycle into account.
// Misuse: counts are modulo 2^16, so the function must have fewer messages open; more are not detected.

module via_fn_debt (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic core_rst_ni,  // reset of the function
  input  logic gone_i,       // level: there is no user side, or it has changed since
  input  logic begin_i,      // pulse: the function begins a message
  input  logic response_i,   // pulse: a response to the function ends, or a substitute for one
  input  logic drop_i,       // pulse: a message from the user side that is dropped ends
  output logic lost_o,       // level: generate a substitute
  output logic stale_o,      // level: drop
  output logic pass_o,       // level: let pass
  output logic still_o       // nothing moves unless an input changes
);

  logic begin_q, response_q, drop_q, gone_q, core_q;  // previous cycle
  logic [15:0] owed_q, lost_q, stale_q, owed, lost, stale, fresh;
  logic shut_q;  // disconnected, or in reset
  logic lost_any_q, stale_any_q, stale_one_q;  // the counters: not 0, exactly 1
  logic fresh_any_q;
  // Whether to generate or to pass: if no response ended in the previous cycle, and (`next`) if one did that is not counted yet.
  logic made_q, made_next_q, real_q, real_next_q;

  assign lost_o  = core_rst_ni && core_q && (response_q ? made_next_q : made_q);
  assign pass_o  = core_rst_ni && !shut_q && (response_q ? real_next_q : real_q);
  assign stale_o = !core_rst_ni || !shut_q && stale_any_q && !(drop_q && stale_one_q);

  assign fresh   = owed_q - lost_q;
  always_comb begin
    owed  = owed_q + 16'(begin_q) - 16'(response_q);
    lost  = gone_q ? owed : lost_q - 16'(response_q && lost_any_q);
    // A dropped message may also be one that responds to nothing.
    stale = stale_q + (core_q ? '0 : fresh) - 16'(drop_q && (stale_any_q || !core_q && fresh_any_q));
    if (!core_q) {owed, lost} = '0;
    if (gone_q) stale = '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {begin_q, response_q, drop_q, gone_q} <= '0;
      core_q                                <= 1'b1;
      shut_q                                <= 1'b0;
      owed_q                                <= '0;
      lost_q                                <= '0;
      stale_q                               <= '0;
      {lost_any_q, made_q, made_next_q}     <= '0;
      {real_q, real_next_q}                 <= '0;
      {stale_any_q, stale_one_q}            <= '0;
      fresh_any_q                           <= 1'b0;
    end else begin
      begin_q     <= begin_i;
      response_q  <= response_i;
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

  // The outputs follow a cycle later. A change of gone_i alone moves something only if a response is owed that is not yet lost.
  assign still_o = ~|{begin_i, response_i, drop_i, begin_q, response_q, drop_q, gone_i != gone_q, core_rst_ni != core_q,
                      gone_q && (owed_q != lost_q || stale_q != '0), !core_q && owed_q != '0};

endmodule
