// SPDX-License-Identifier: Apache-2.0
//
// Rules of a stream inside the shell (strm_t, via_pkg), as assertions: one instance watches a port, from either side. Bound to every stream of every
// block by tools/checkers.py; not for synthesis. Each rule has its name, and test_checkers.py breaks each of them.
//
//   a beat stays until it is taken; keep is a run of ones from bit 0, all ones but for the last beat of a message, and never empty
//
// Messages with different ids may interleave, so nothing is said of ids. In a proof `Assume` makes them assumptions: of a stream whose source is not the design's. Source: AMBA AXI4-Stream, chapter 2; docs/interfaces.md, section 3.

/* verilator coverage_off */  // the design is what is covered
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

  // One copy for all ports: simulations are built several times as fast.
  /* verilator no_inline_module */

  logic  wait_q;  // offered and not taken
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
