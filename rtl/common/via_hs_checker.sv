// SPDX-License-Identifier: Apache-2.0
//
// Rules of a handshake inside the shell that is neither AXI nor a stream, as assertions: one instance watches a port, from either side. Bound by
// tools/checkers.py to every such port of every block; not for synthesis. Each rule has its name, and test_checkers.py breaks each of them.
//
//   what is offered stays until it is taken: valid, and all of the payload
//
// A payload may be padded with zeros: few widths make few modules. Nothing is said of unknown values: the simulation has none.
// Source: docs/interfaces.md, section 1.

/* verilator coverage_off */  // the design is what is covered
module via_hs_checker
  import via_pkg::*;
#(
  parameter int unsigned Width = 1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic [Width-1:0] s_i,
  input logic             valid_i,
  input logic             ready_i
);

  // One copy for all ports of a width: simulations are built several times as fast.
  /* verilator no_inline_module */

  localparam bit WidthOk = param_in("via_hs_checker Width", Width, 1, 1 << 16);

  logic wait_q;  // offered and not taken
  logic [Width-1:0] s_q;

  always_ff @(posedge clk_i) begin
    wait_q <= rst_ni && valid_i && !ready_i;
    if (valid_i && !ready_i) s_q <= s_i;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_stays :
      assert (!wait_q || valid_i)
      else $error("what was offered was withdrawn before it was taken");
      a_same :
      assert (!wait_q || !valid_i || s_i == s_q)
      else $error("what was offered changed before it was taken");
    end
  end

endmodule
/* verilator coverage_on */
