// SPDX-License-Identifier: Apache-2.0
//
// Between a function and via_vio_switch: counts the messages of the user side. With `Owed` (the disk) the function gets exactly one response
// for each message it sends, in their order, if need be a substitute of one byte (via_fn_debt): without a connection, and after a change.
//
// Throughput: one beat a cycle. Latency: none, with `Owed` one cycle. Order: kept. What the function sends passes beside this block.
// Misuse: none is possible.

module via_fn_user
  import via_pkg::*;
#(
  parameter bit Owed = 1'b0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         core_rst_ni,     // reset of the function
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic         gone_i,          // level: no response comes to what was sent; only with `Owed`
  /* verilator lint_on UNUSEDSIGNAL */
  input  logic  [ 1:0] short_i,         // messages cut short in an earlier cycle
  // what the function sends
  input  logic         sent_i,          // pulse: a beat is accepted
  input  logic         last_i,          // with it: it is the last of its message
  // what it receives
  input  strm_t        s_i,
  input  logic         s_valid_i,
  output logic         s_ready_o,
  output strm_t        m_o,
  output logic         m_valid_o,
  input  logic         m_ready_i,
  // [0] messages accepted from the function, [1] delivered to it, [2] cut short
  output logic  [31:0] count_o    [3],  // counters, wrapping
  output logic         still_o,         // nothing moves unless an input changes
  output logic         idle_o           // level: nothing is held
);

  logic mid_q, sent, begins, ends, part_still;
  assign sent   = sent_i && core_rst_ni;
  assign begins = sent && !mid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !core_rst_ni) mid_q <= 1'b0;
    else if (sent) mid_q <= !last_i;
  end

  if (Owed) begin : gen_owed
    logic lost, stale, pass, debt_still, join_still;
    logic [1:0] ready;
    strm_t from[2];
    assign from[0]   = s_i;
    assign from[1]   = '{id: '0, last: 1'b1, keep: StrbW'(1), data: '0};
    assign s_ready_o = stale || ready[0];
    via_vio_join #(
      .N    (2),
      .Slice(1'b0)
    ) u_join (
      .clk_i,
      .rst_ni   (rst_ni && core_rst_ni),
      .sel_i    ({lost, pass && !lost && !gone_i}),
      .s_i      (from),
      .s_valid_i({1'b1, s_valid_i}),
      .s_ready_o(ready),
      .m_o,
      .m_valid_o,
      .m_ready_i,
      .last_o   (ends),
      .still_o  (join_still),
      .idle_o
    );
    via_fn_debt u_debt (
      .clk_i,
      .rst_ni,
      .core_rst_ni,
      .gone_i,
      .begin_i   (begins),
      .response_i(ends),
      .drop_i    (stale && s_valid_i && s_i.last),
      .lost_o    (lost),
      .stale_o   (stale),
      .pass_o    (pass),
      .still_o   (debt_still)
    );
    assign part_still = debt_still && join_still;
  end else begin : gen_free
    assign m_o = s_i;
    assign m_valid_o = s_valid_i && core_rst_ni;
    assign s_ready_o = m_ready_i || !core_rst_ni;
    assign ends = m_valid_o && m_ready_i && s_i.last;
    assign part_still = 1'b1;
    assign idle_o = 1'b1;
  end

  // One cycle late.
  logic begun_q, ended_q;
  logic [31:0] count_q[3];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {begun_q, ended_q} <= '0;
      for (int unsigned i = 0; i < 3; i++) count_q[i] <= '0;
    end else begin
      {begun_q, ended_q} <= {begins, ends};
      if (begun_q) count_q[0] <= count_q[0] + 1'b1;
      if (ended_q) count_q[1] <= count_q[1] + 1'b1;
      if (short_i != '0) count_q[2] <= count_q[2] + 32'(short_i);
    end
  end
  assign count_o = count_q;

  // From a register: it is collected with those of the functions.
  logic core_q;
  always_ff @(posedge clk_i) begin
    core_q  <= core_rst_ni;
    still_o <= part_still && core_q == core_rst_ni && ~|{sent, s_valid_i && s_ready_o, m_valid_o && m_ready_i, begun_q, ended_q, short_i};
  end

endmodule
