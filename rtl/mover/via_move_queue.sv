// SPDX-License-Identifier: Apache-2.0
//
// Command queue of a mover: holds up to Queue commands. One more completes with StFull at once instead of waiting, so the dispatcher is
// never blocked by a mover. Completions of the mover and these refusals leave through one port, refusals first.
// Throughput: one command and one completion a cycle; the cycle after a refusal accepts no command. Latency: one cycle each way. Order:
// commands are kept in order.

module via_move_queue
  import via_pkg::*;
#(
  parameter int unsigned Queue = 16  // commands held
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  cmd_t cmd_i,         // from the dispatcher
  input  logic cmd_valid_i,
  output logic cmd_ready_o,
  output cmd_t cmd_o,         // to the mover
  output logic cmd_valid_o,
  input  logic cmd_ready_i,
  input  cpl_t done_i,        // completion from the mover
  input  logic done_valid_i,
  output logic done_ready_o,
  output cpl_t cpl_o,         // to the dispatcher
  output logic cpl_valid_o,
  input  logic cpl_ready_i,
  output logic still_o,       // level: nothing moves unless an input changes
  output logic idle_o         // level: as still_o, and no command is held
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
