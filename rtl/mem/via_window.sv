// SPDX-License-Identifier: Apache-2.0
//
// How much of a memory is under way: beats granted less those that have come back. Beyond the window nothing is granted, so what waits does so
// where it is shared, and not in the memory's own queues.
//
// The sum follows a grant by two cycles; nothing is granted in the cycle after a burst longer than `WindowLong` beats, so that at most `window_i`
// beats, a burst and 2 * `WindowLong` beats are under way. Throughput: a grant a cycle, of longer bursts one in two. Latency: none. Misuse: none.

module via_window
  import via_pkg::*;
#(
  parameter int unsigned Most = 128  // the largest window, in beats
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic [$clog2(Most+1)-1:0] window_i,    // in beats
  input  logic                      grant_i,     // pulse: a burst is granted
  input  logic [               7:0] len_i,       // with it: beats - 1
  input  logic                      long_i,      // with it: more than `WindowLong` beats; 0 if a burst more does not matter
  input  logic                      back_i,      // pulse: beats have come back
  input  logic [               7:0] back_len_i,  // with it: beats - 1
  output logic                      below_o      // level, a register: a burst may be granted
);

  localparam bit MostOk = param_in("via_window Most", Most, 1, 65536);

  localparam int unsigned FlightW = $clog2(Most + 2 * MaxBurstBeats + 1);
  logic [FlightW-1:0] flight_q, flight;
  logic [7:0] len_q;
  logic granted_q;
  assign flight = flight_q + FlightW'(len_q & {8{granted_q}}) + FlightW'(granted_q) - FlightW'(back_len_i & {8{back_i}}) - FlightW'(back_i);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      flight_q  <= '0;
      granted_q <= 1'b0;
      below_o   <= 1'b1;
    end else begin
      flight_q  <= flight;
      granted_q <= grant_i;
      below_o   <= flight < FlightW'(window_i) && !(grant_i && long_i);
    end
  end
  always_ff @(posedge clk_i) len_q <= len_i;

endmodule
