// SPDX-License-Identifier: Apache-2.0
//
// via_guard_strm with flat ports, named as AXI4-Stream models expect them.

module via_guard_strm_tb
  import via_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             isolate_i,
  input  logic [DataW-1:0] s_tdata,
  input  logic [StrbW-1:0] s_tkeep,
  input  logic [      7:0] s_tid,
  input  logic             s_tlast,
  input  logic             s_tvalid,
  output logic             s_tready,
  output logic [DataW-1:0] m_tdata,
  output logic [StrbW-1:0] m_tkeep,
  output logic [      7:0] m_tid,
  output logic             m_tlast,
  output logic             m_tvalid,
  input  logic             m_tready,
  output logic             violation_o,
  output logic [      7:0] cause_o,
  output logic             quiet_o
);

  strm_t s, m;
  event_e cause;
  assign s = '{id: s_tid, last: s_tlast, keep: s_tkeep, data: s_tdata};
  assign {m_tid, m_tlast, m_tkeep, m_tdata} = m;
  assign cause_o = cause;

  via_guard_strm u_dut (
    .clk_i,
    .rst_ni,
    .isolate_i,
    .s_i      (s),
    .s_valid_i(s_tvalid),
    .s_ready_o(s_tready),
    .m_o      (m),
    .m_valid_o(m_tvalid),
    .m_ready_i(m_tready),
    .violation_o,
    .cause_o  (cause),
    .still_o  (),
    .quiet_o
  );

  // What passes obeys the contract, whatever comes in.
  logic wait_q, open_q;
  strm_t m_q;
  always_ff @(posedge clk_i) begin
    wait_q <= rst_ni && !isolate_i && m_tvalid && !m_tready;
    if (!rst_ni || isolate_i) open_q <= 1'b0;
    else if (m_tvalid && m_tready) open_q <= !m.last;
    m_q <= m;
    if (rst_ni && !isolate_i) begin
      assert (!wait_q || m_tvalid && m == m_q)
      else $error("beat dropped or changed");
      assert (!m_tvalid || m.last || &m.keep)
      else $error("partial beat inside a message");
      assert (!m_tvalid || m.keep[0] && (m.keep & (m.keep + 1'b1)) == '0)
      else $error("keep is no run");
      assert (!(m_tvalid && open_q) || m.id == m_q.id)
      else $error("id changes");
    end
  end

endmodule
