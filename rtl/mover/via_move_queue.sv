// SPDX-License-Identifier: Apache-2.0
//
// Command queue of a mover: holds Queue commands; one more is answered StFull instead of waited for, so that the dispatcher never
// stands behind a mover. Completions of the mover and refusals leave by one port.

module via_move_queue
  import via_pkg::*;
#(
  parameter int unsigned Queue = 16
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  cmd_t cmd_i,
  input  logic cmd_valid_i,
  output logic cmd_ready_o,
  output cmd_t cmd_o,
  output logic cmd_valid_o,
  input  logic cmd_ready_i,
  input  cpl_t done_i,
  input  logic done_valid_i,
  output logic done_ready_o,
  output cpl_t cpl_o,
  output logic cpl_valid_o,
  input  logic cpl_ready_i,
  output logic still_o,
  output logic idle_o
);

  localparam bit QueueOk = param_in("via_move_queue Queue", Queue, 1, 256);

  logic room, refuse_q, out_ready;
  cpl_t refusal_q;

  assign cmd_ready_o = !refuse_q;

  via_fifo #(
    .T    (cmd_t),
    .Depth(Queue)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (cmd_i),
    .s_valid_i(cmd_valid_i && !refuse_q),
    .s_ready_o(room),
    .m_o      (cmd_o),
    .m_valid_o(cmd_valid_o),
    .m_ready_i(cmd_ready_i),
    .count_o  ()
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) refuse_q <= 1'b0;
    else if (cmd_valid_i && cmd_ready_o) refuse_q <= !room;
    else if (out_ready) refuse_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && cmd_ready_o && !room) begin
      refusal_q        <= '0;
      refusal_q.tag    <= cmd_i.tag;
      refusal_q.op     <= cmd_i.op;
      refusal_q.status <= StFull;
    end
  end

  assign done_ready_o = out_ready && !refuse_q;

  via_slice #(
    .T(cpl_t)
  ) u_out (
    .clk_i,
    .rst_ni,
    .s_i      (refuse_q ? refusal_q : done_i),
    .s_valid_i(refuse_q || done_valid_i),
    .s_ready_o(out_ready),
    .m_o      (cpl_o),
    .m_valid_o(cpl_valid_o),
    .m_ready_i(cpl_ready_i)
  );

  assign still_o = ~|{cmd_valid_i, refuse_q, done_valid_i, cpl_valid_o};
  assign idle_o  = still_o && !cmd_valid_o;

endmodule
