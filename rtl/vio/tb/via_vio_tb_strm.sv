// SPDX-License-Identifier: Apache-2.0
//
// Both ends of a stream, driven by a test: the variables `t_*` of this scope are what it sends, `r_*` what it receives. Checks that
// received beats are stable until accepted and have no gaps in `keep`.

module via_vio_tb_strm
  import via_pkg::*;
(
  input  logic  clk_i,
  input  logic  rst_ni,
  output strm_t t_o,
  output logic  t_valid_o,
  input  logic  t_ready_i,
  input  strm_t r_i,
  input  logic  r_valid_i,
  output logic  r_ready_o
);

  // Read by the test.
  /* verilator lint_off UNUSEDSIGNAL */
  logic t_ready, r_valid, r_last;
  logic [DataW-1:0] r_data;
  logic [StrbW-1:0] r_keep;
  logic [7:0] r_id;
  /* verilator lint_on UNUSEDSIGNAL */
  // Written by the test.
  /* verilator lint_off UNDRIVEN */
  logic t_valid, t_last, r_ready;
  logic [DataW-1:0] t_data;
  logic [StrbW-1:0] t_keep;
  logic [7:0] t_id;
  /* verilator lint_on UNDRIVEN */

  assign t_o = '{id: t_id, last: t_last, keep: t_keep, data: t_data};
  assign t_valid_o = t_valid;
  assign t_ready = t_ready_i;
  assign {r_id, r_last, r_keep, r_data} = r_i;
  assign r_valid = r_valid_i;
  assign r_ready_o = r_ready;

  strm_t r_q;
  logic wait_q, open_q;
  always_ff @(posedge clk_i) begin
    wait_q <= rst_ni && r_valid_i && !r_ready_o;
    if (r_valid_i) r_q <= r_i;
    if (!rst_ni) open_q <= 1'b0;
    else if (r_valid_i && r_ready_o) open_q <= !r_i.last;
    if (rst_ni) begin
      assert (!wait_q || r_valid_i && r_i == r_q)
      else $error("a beat changed before it was accepted");
      assert (!r_valid_i || (r_i.last ? r_i.keep != '0 && (r_i.keep & (r_i.keep + 1'b1)) == '0 : r_i.keep == '1))
      else $error("keep has gaps");
      assert (!(r_valid_i && open_q) || r_i.id == r_q.id)
      else $error("id changed within a message");
    end
  end

endmodule
