// SPDX-License-Identifier: Apache-2.0
//
// The run of an app with a memory port: start, checks of the parameters, end, and the registers that tell of it.
//
//   start_i -> sample_o -> Setup cycles -> bad_i ? done with one error : go_o -> run -> finish_i -> done, interrupt
//
// A start within a run is ignored. `finish_i` must not be high in a run before all accesses are answered: then nothing is in flight once
// done_o is high.

module mem_run #(
  parameter int unsigned Setup = 1  // cycles from the sampled registers to bad_i
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        start_i,   // one-cycle pulse
  output logic        sample_o,  // one cycle: parameters are taken
  input  logic        bad_i,     // in the last cycle of the setup: they are wrong
  output logic        go_o,      // that cycle, if they are not
  output logic        run_o,     // level: a run is in progress, from the cycle after go_o on
  input  logic        finish_i,  // with run_o: it ends
  input  logic [ 2:0] errors_i,  // errors in this cycle
  output logic        done_o,    // level: no run is in progress
  output logic        irq_o,     // one-cycle pulse: a run has ended
  output logic [31:0] errors_o,  // of the last run, and 1 for wrong parameters
  output logic [63:0] cycles_o   // its duration
);

  localparam bit SetupOk = via_pkg::param_in("mem_run Setup", Setup, 1, 16);

  logic [Setup-1:0] setup_q;  // one-hot
  logic run_q, end_run, last_setup;

  assign sample_o   = start_i && setup_q == '0 && !run_q;
  assign last_setup = setup_q[Setup-1];
  assign go_o       = last_setup && !bad_i;
  assign run_o      = run_q;
  assign end_run    = last_setup && bad_i || run_q && finish_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      setup_q  <= '0;
      run_q    <= 1'b0;
      done_o   <= 1'b0;
      irq_o    <= 1'b0;
      errors_o <= '0;
      cycles_o <= '0;
    end else begin
      setup_q <= Setup'({setup_q, sample_o});
      run_q   <= go_o || run_q && !finish_i;
      irq_o   <= end_run;
      if (sample_o) begin
        done_o   <= 1'b0;
        errors_o <= '0;
        cycles_o <= '0;
      end else begin
        if (end_run) done_o <= 1'b1;
        if (setup_q != '0 || run_q) cycles_o <= cycles_o + 1'b1;
        errors_o <= errors_o + 32'(errors_i) + 32'(last_setup && bad_i);
      end
    end
  end

endmodule
