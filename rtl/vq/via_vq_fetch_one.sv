// SPDX-License-Identifier: Apache-2.0
//
// Single reads of 64-byte lines for two clients: descriptors that could not be prefetched.
//
// Throughput: one read in flight. Latency: one cycle to the address, none from R. Order: the clients alternate. Misuse: a client has to
// hold `req_i` and its address until `done_o`.

module via_vq_fetch_one
  import via_pkg::*;
(
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic    [      1:0]       req_i,         // level, held until done_o: read a line
  input  logic    [      1:0][57:0] line_i,        // address bits 63:6
  output logic    [      1:0]       done_o,        // pulse: data_o is the client's line
  output logic                      err_o,         // with done_o: the read failed
  output logic    [DataW-1:0]       data_o,        // with done_o: the line
  output logic    [      1:0]       cnt_o,         // pulse: a read is issued
  output axi_ax_t                   m_ar_o,
  output logic                      m_ar_valid_o,
  input  logic                      m_ar_ready_i,
  input  axi_r_t                    m_r_i,
  input  logic                      m_r_valid_i,
  output logic                      still_o        // level: nothing moves unless an input changes
);

  logic busy_q, owner_q, ar_valid_q, start, pick;
  logic [57:0] line_q;

  // The client that was not served last has priority.
  assign pick   = req_i[!owner_q] ? !owner_q : owner_q;
  assign start  = |req_i && !busy_q;
  assign cnt_o  = start ? 2'b01 << pick : 2'b00;
  assign done_o = m_r_valid_i ? 2'b01 << owner_q : 2'b00;
  assign err_o  = m_r_i.resp != RespOkay;
  assign data_o = m_r_i.data;

  always_comb begin
    m_ar_o       = '0;
    m_ar_o.burst = BurstIncr;
    m_ar_o.size  = 3'(BeatLog2);
    m_ar_o.addr  = {line_q, 6'd0};
  end
  assign m_ar_valid_o = ar_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q     <= 1'b0;
      owner_q    <= 1'b0;
      ar_valid_q <= 1'b0;
    end else begin
      if (start) busy_q <= 1'b1;
      else if (m_r_valid_i) busy_q <= 1'b0;
      if (start) owner_q <= pick;
      if (start) ar_valid_q <= 1'b1;
      else if (m_ar_ready_i) ar_valid_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) if (start) line_q <= line_i[pick];

  assign still_o = ~|{start, m_r_valid_i, m_ar_valid_o};

endmodule
