// SPDX-License-Identifier: Apache-2.0
//
// Rules of a handshake inside the shell that is neither AXI nor a stream, as assertions. One instance watches one port, from either side;
// it drives nothing. tools/checkers.py binds one to every such port of every block; not for synthesis. Each rule has a name, and
// test_checkers.py breaks each of them.
//
//   valid and the whole payload stay as they are until accepted
//
// The payload may be padded with zeros, so that few different widths, and thus few modules, are needed. Unknown values are not checked: the
// simulation is two-state.
// Source: docs/interfaces.md, section 1.

/* verilator coverage_off */  // not part of the coverage of the design
module via_hs_checker
  import via_pkg::*;
#(
  parameter int unsigned Width = 1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic [Width-1:0] s_i,      // payload
  input logic             valid_i,
  input logic             ready_i
);

  // A single module for all ports of one width: simulations build several times faster.
  /* verilator no_inline_module */

  localparam bit WidthOk = param_in("via_hs_checker Width", Width, 1, 1 << 16);

  logic wait_q;  // offered and not accepted
  logic [Width-1:0] s_q;

  always_ff @(posedge clk_i) begin
    wait_q <= rst_ni && valid_i && !ready_i;
    if (valid_i && !ready_i) s_q <= s_i;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_stays :
      assert (!wait_q || valid_i)
      else $error("valid was withdrawn before it was accepted");
      a_same :
      assert (!wait_q || !valid_i || s_i == s_q)
      else $error("the payload changed before it was accepted");
    end
  end

endmodule
/* verilator coverage_on */
