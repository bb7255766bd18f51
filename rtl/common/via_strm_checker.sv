// SPDX-License-Identifier: Apache-2.0
//
// Rules of a stream inside the shell (strm_t, via_pkg) as assertions. One instance watches one port, from either side; it drives nothing.
// tools/checkers.py binds one to every stream of every block; not for synthesis. Each rule has a name, and test_checkers.py breaks each of
// them.
//
//   a beat is stable until accepted; keep is a run of ones from bit 0, all ones except on the last beat of a message, and never empty
//
// Messages with different ids may interleave, so ids are not checked. In a proof, `Assume` turns the rules into assumptions, for a stream
// whose source is not part of the design.
// Source: AMBA AXI4-Stream, chapter 2; docs/interfaces.md, section 3.

/* verilator coverage_off */  // not part of the coverage of the design
module via_strm_checker
  import via_pkg::*;
#(
  parameter bit Assume = 1'b0
) (
  input logic  clk_i,
  input logic  rst_ni,
  input strm_t s_i,
  input logic  valid_i,
  input logic  ready_i
);

  // A single module for all ports: simulations build several times faster.
  /* verilator no_inline_module */

  logic  wait_q;  // offered and not accepted
  strm_t beat_q;

  always_ff @(posedge clk_i) begin
    wait_q <= rst_ni && valid_i && !ready_i;
    if (valid_i) beat_q <= s_i;
  end

  logic stable, run, full, some;
  assign stable = !wait_q || valid_i && s_i == beat_q;
  assign run    = !valid_i || (s_i.keep & (s_i.keep + 1'b1)) == '0;
  assign full   = !valid_i || s_i.last || &s_i.keep;
  assign some   = !valid_i || s_i.keep != '0;

  if (Assume) begin : gen_assume
    always_ff @(posedge clk_i) if (rst_ni) assume (&{stable, run, full, some});
  end else begin : gen_assert
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        a_stable :
        assert (stable)
        else $error("a beat changed or was withdrawn before it was taken");
        a_run :
        assert (run)
        else $error("keep is no run of ones from bit 0");
        a_full :
        assert (full)
        else $error("a beat that is not the last is not full");
        a_some :
        assert (some)
        else $error("a beat without bytes");
      end
    end
  end

endmodule
/* verilator coverage_on */
