// SPDX-License-Identifier: Apache-2.0
//
// Part of via_dispatch: queue of the commands of one engine. A command with a fence waits until all commands of a rival engine that came
// before it are complete.
// Throughput: one command a cycle. Latency: two cycles; a fence opens two cycles after the last completion it waits for. Order: kept.
// Commands are counted modulo 256. Each fence puts its goal, the rival's count at its arrival, into a queue. Goals rise, and the first one
// is compared with the rival's completions until these reach it, so it is never compared with a count that has wrapped past it, however
// long the command itself waits. Misuse: more than Flight commands of the rival in flight would break the comparison; its own queue
// prevents that.

module via_dispatch_queue
  import via_pkg::*;
#(
  parameter type T = logic,
  parameter int unsigned Depth = 16,  // commands in the queue
  parameter int unsigned Flight = 127,  // commands accepted and not complete
  localparam int unsigned CountW = 8
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  T                  s_i,
  input  logic              s_fence_i,         // it has a fence
  input  logic              s_valid_i,
  output logic              s_ready_o,
  output T                  m_o,
  output logic              m_valid_o,
  input  logic              m_ready_i,
  input  logic              complete_i,        // pulse: a command of this engine is complete
  output logic [CountW-1:0] taken_o,           // commands accepted so far, modulo 256
  output logic [CountW-1:0] complete_o,        // commands complete so far, modulo 256
  input  logic [CountW-1:0] rival_taken_i,     // taken_o of the rival
  input  logic [CountW-1:0] rival_complete_i,  // complete_o of the rival
  output logic              empty_o            // level: no command is held
);

  localparam bit DepthOk = param_in("via_dispatch_queue Depth", Depth, 1, 64);
  // A goal is at most so far ahead of the completions, and these are at most Depth + 2 ahead of the first goal.
  localparam bit FlightOk = param_in("via_dispatch_queue Flight", Flight, Depth + 2, 127);

  typedef struct packed {
    logic fence;
    T     cmd;
  } held_t;
  held_t held;
  T cmd_q;
  logic room, held_valid, next, valid_q, waits_q, push, full_q;
  logic [CountW-1:0] taken_q, complete_q, flight;

  // ---------------------------------------------------------------- the queue, with its head in a register
  assign s_ready_o = room && !full_q;
  assign push = s_valid_i && s_ready_o;

  via_fifo #(
    .T    (held_t),
    .Depth(Depth)
  ) u_held (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{fence: s_fence_i, cmd: s_i}),
    .s_valid_i(s_valid_i && !full_q),
    .s_ready_o(room),
    .m_o      (held),
    .m_valid_o(held_valid),
    .m_ready_i(next),
    .count_o  ()
  );

  assign m_o = cmd_q;
  assign m_valid_o = valid_q && !waits_q;
  assign next = !valid_q || m_ready_i && !waits_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (next) valid_q <= held_valid;
  end
  always_ff @(posedge clk_i) if (next) cmd_q <= held.cmd;

  // ---------------------------------------------------------------- counts
  // Computed a cycle early: one more command may come in between.
  assign flight = taken_q - complete_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taken_q    <= '0;
      complete_q <= '0;
      full_q     <= 1'b0;
    end else begin
      taken_q    <= taken_q + CountW'(push);
      complete_q <= complete_q + CountW'(complete_i);
      full_q     <= flight >= CountW'(Flight - 1);
    end
  end
  assign taken_o = taken_q;
  assign complete_o = complete_q;

  // ---------------------------------------------------------------- goals
  localparam int unsigned OpenW = $clog2(Depth + 2);
  logic [CountW-1:0] goal, ahead;
  logic goal_valid, reached, opens, at_fence, open_q, one_q;
  logic [OpenW-1:0] opened_q;  // fences that are open and not passed; open_q: there are some, one_q: one

  via_fifo #(
    .T    (logic [CountW-1:0]),
    .Depth(2 * Depth)
  ) u_goals (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (rival_taken_i),
    .s_valid_i(push && s_fence_i),
    .s_ready_o(),
    .m_o      (goal),
    .m_valid_o(goal_valid),
    .m_ready_i(reached),
    .count_o  ()
  );
  assign ahead = rival_complete_i - goal;
  assign reached = !ahead[CountW-1];
  assign opens = goal_valid && reached;
  // The next one passes, if a fence is open or opens. `opens` is late: it chooses between what follows in each case.
  assign at_fence = next ? held_valid && held.fence : valid_q && waits_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      opened_q <= '0;
      open_q   <= 1'b0;
      one_q    <= 1'b0;
    end else if (opens && !at_fence) begin
      opened_q <= opened_q + 1'b1;
      open_q   <= 1'b1;
      one_q    <= !open_q;
    end else if (!opens && at_fence && open_q) begin
      opened_q <= opened_q - 1'b1;
      open_q   <= !one_q;
      one_q    <= opened_q == OpenW'(2);
    end
  end
  always_ff @(posedge clk_i) waits_q <= (next ? held.fence : waits_q) && !(open_q || opens);

  assign empty_o = !held_valid && !valid_q;

endmodule
