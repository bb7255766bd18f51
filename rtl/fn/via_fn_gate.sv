// SPDX-License-Identifier: Apache-2.0
//
// The gate on a function's AXI port: while `enable_i` is low (bus mastering is disabled, or a reset is pending) no access begins; accesses
// begun before are completed.
//
// Throughput: every channel one beat a cycle. Latency: none, the gate is combinational; but W passes only from the cycle after its address
// was offered.
// Order: kept. An address once offered to the host stays offered until it is accepted, as AXI demands, and counts as begun from then on. W
// passes for addresses offered before, so a burst begun is always finished. A via_axi_mux on either side does not accept W earlier either.
// R and B always pass.
// Misuse: a function that offers an address without having the burst's data, or does not accept R and B, never drains.

module via_fn_gate
  import via_pkg::*;
#(
  parameter int unsigned CountW = 10  // width of the counters of bursts in flight
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  logic    enable_i,  // level: accesses may begin
  output logic    drained_o,  // level: the gate is shut and nothing is in flight, until it opens; the function may be reset
  // from the function
  input  axi_ax_t s_ar_i,
  input  logic    s_ar_valid_i,
  output logic    s_ar_ready_o,
  output axi_r_t  s_r_o,
  output logic    s_r_valid_o,
  input  logic    s_r_ready_i,
  input  axi_ax_t s_aw_i,
  input  logic    s_aw_valid_i,
  output logic    s_aw_ready_o,
  input  axi_w_t  s_w_i,
  input  logic    s_w_valid_i,
  output logic    s_w_ready_o,
  output axi_b_t  s_b_o,
  output logic    s_b_valid_o,
  input  logic    s_b_ready_i,
  // to host memory
  output axi_ax_t m_ar_o,
  output logic    m_ar_valid_o,
  input  logic    m_ar_ready_i,
  input  axi_r_t  m_r_i,
  input  logic    m_r_valid_i,
  output logic    m_r_ready_o,
  output axi_ax_t m_aw_o,
  output logic    m_aw_valid_o,
  input  logic    m_aw_ready_i,
  output axi_w_t  m_w_o,
  output logic    m_w_valid_o,
  input  logic    m_w_ready_i,
  input  axi_b_t  m_b_i,
  input  logic    m_b_valid_i,
  output logic    m_b_ready_o
);

  localparam bit CountWOk = param_in("via_fn_gate CountW", CountW, 2, 16);

  logic ar_shown_q, aw_shown_q;  // offered in an earlier cycle, not yet accepted
  logic [CountW-1:0] rd_q, wr_q, data_q;  // reads and writes in flight; write bursts whose data has not passed yet
  logic data_any_q;  // data_q is not 0

  // ---------------------------------------------------------------- addresses
  logic ar_pass, aw_pass, ar_new, aw_new;
  assign ar_pass = enable_i || ar_shown_q;
  assign aw_pass = enable_i || aw_shown_q;
  assign m_ar_o = s_ar_i;
  assign m_aw_o = s_aw_i;
  assign m_ar_valid_o = s_ar_valid_i && ar_pass;
  assign m_aw_valid_o = s_aw_valid_i && aw_pass;
  assign s_ar_ready_o = m_ar_ready_i && ar_pass;
  assign s_aw_ready_o = m_aw_ready_i && aw_pass;
  assign ar_new = m_ar_valid_o && !ar_shown_q;
  assign aw_new = m_aw_valid_o && !aw_shown_q;

  // ---------------------------------------------------------------- data and responses
  assign m_w_o = s_w_i;
  assign m_w_valid_o = s_w_valid_i && data_any_q;
  assign s_w_ready_o = m_w_ready_i && data_any_q;
  assign s_r_o = m_r_i;
  assign s_r_valid_o = m_r_valid_i;
  assign m_r_ready_o = s_r_ready_i;
  assign s_b_o = m_b_i;
  assign s_b_valid_o = m_b_valid_i;
  assign m_b_ready_o = s_b_ready_i;

  // ---------------------------------------------------------------- bursts in flight
  logic rd_end, wr_end, data_end;
  assign rd_end   = m_r_valid_i && s_r_ready_i && m_r_i.last;
  assign wr_end   = m_b_valid_i && s_b_ready_i;
  assign data_end = m_w_valid_o && m_w_ready_i && s_w_i.last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_shown_q <= 1'b0;
      aw_shown_q <= 1'b0;
      rd_q       <= '0;
      wr_q       <= '0;
      data_q     <= '0;
      data_any_q <= 1'b0;
    end else begin
      ar_shown_q <= m_ar_valid_o && !m_ar_ready_i;
      aw_shown_q <= m_aw_valid_o && !m_aw_ready_i;
      if (ar_new != rd_end) rd_q <= ar_new ? rd_q + 1'b1 : rd_q - 1'b1;
      if (aw_new != wr_end) wr_q <= aw_new ? wr_q + 1'b1 : wr_q - 1'b1;
      if (aw_new != data_end) begin
        data_q     <= aw_new ? data_q + 1'b1 : data_q - 1'b1;
        data_any_q <= aw_new || data_q != CountW'(1);
      end
    end
  end

  assign drained_o = !enable_i && rd_q == '0 && wr_q == '0;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(&rd_q) && !(&wr_q))
      else $error("more bursts in flight than can be counted");
      assert (!rd_end || rd_q != '0)
      else $error("R without a read");
      assert (!wr_end || wr_q != '0)
      else $error("B without a write");
    end
  end
`endif

endmodule
