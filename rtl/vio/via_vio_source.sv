// SPDX-License-Identifier: Apache-2.0
//
// A source of via_vio_switch: sends its beats to all sinks that take it, at the same time, and knows where its messages begin.
//
// Throughput: one beat a cycle. Latency: none for beats; `ready_o` comes from a register, so a sink's wish to stop takes effect in the next
// cycle (via_vio_sink has space for what comes meanwhile). Order: kept. Without a sink the beats of a source with `Waits` wait, those of
// others are accepted and dropped. Misuse: none is possible.

module via_vio_source #(
  parameter int unsigned N     = 2,    // sinks
  parameter bit          Waits = 1'b0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         cut_i,    // level: the source starts over: its open message is over, and no beat is taken
  input  logic         fresh_i,  // level: no beat is taken, and the next one that is will be the first of its message
  input  logic         valid_i,
  input  logic         last_i,
  output logic         ready_o,
  input  logic [N-1:0] takes_i,  // level: the sink takes this source
  input  logic [N-1:0] hold_i,   // level: the sink will not have space for a beat in the next cycle
  input  logic [N-1:0] drain_i,  // level: after the end of a message the sink needs a cycle without a beat
  output logic         go_o,     // pulse: a beat is sent
  output logic         first_o,  // level: the next beat is the first of its message
  output logic         still_o   // nothing moves unless an input changes
);

  localparam bit NOk = via_pkg::param_in("via_vio_source N", N, 1, 64);

  logic ready_q, ready, mid_q;

  assign ready   = !cut_i && hold_i == '0 && (takes_i != '0 || !Waits) && !(drain_i != '0 && go_o && last_i);
  assign go_o    = valid_i && ready_q && !cut_i;
  assign first_o = !mid_q;
  assign ready_o = ready_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ready_q <= 1'b0;
      mid_q   <= 1'b0;
    end else begin
      ready_q <= ready;
      if (cut_i || fresh_i) mid_q <= 1'b0;
      else if (go_o) mid_q <= !last_i;
    end
  end

  assign still_o = !go_o && ready == ready_q && !((cut_i || fresh_i) && mid_q);

endmodule
