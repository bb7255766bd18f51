// SPDX-License-Identifier: Apache-2.0
//
// Edge of a slot for one channel: a register slice or, with `Depth` above 2, a FIFO, and a check of valid. A slot that drops valid before
// ready breaks the handshake (reported); a change of the payload meanwhile harms only the slot's own data. Throughput: one beat a cycle.
// Latency: one cycle. Order: kept.
// With `cut_i` nothing enters, and a cycle later what is held is dropped. A beat that comes with `bad_i` is accepted and dropped, and
// so is everything after it until `cut_i`; `stopped_o` reports that once everything before it has left.

module via_guard_edge
  import via_pkg::*;
#(
  parameter type T = logic,
  parameter int unsigned Depth = 2  // beats held
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic cut_i,      // level: the slot is cut off
  input  T     s_i,
  input  logic s_valid_i,
  input  logic bad_i,      // the beat offered breaks a rule
  output logic s_ready_o,
  output T     m_o,
  output logic m_valid_o,
  input  logic m_ready_i,
  output logic dropped_o,  // pulse: the slot has dropped valid before ready
  output logic stopped_o   // level: a bad beat came, and all before it have left
);

  localparam bit DepthOk = param_in("via_guard_edge Depth", Depth, 2, 1024);

  logic enter, ready, waits_q, stop_q;
  assign enter = s_valid_i && s_ready_o && !cut_i && !bad_i && !stop_q;

  if (Depth == 2) begin : gen_slice
    via_slice #(
      .T(T)
    ) u_slice (
      .clk_i,
      .rst_ni   (rst_ni && !cut_i),
      .s_i,
      .s_valid_i(enter),
      .s_ready_o(ready),
      .m_o,
      .m_valid_o,
      .m_ready_i
    );
    assign s_ready_o = ready;
  end else begin : gen_fifo
    logic closed_q;
    always_ff @(posedge clk_i) closed_q <= !rst_ni || cut_i;
    assign s_ready_o = ready && !closed_q;

    via_fifo #(
      .T    (T),
      .Depth(Depth)
    ) u_fifo (
      .clk_i,
      .rst_ni,
      .flush_i  (cut_i),
      .s_i,
      .s_valid_i(enter),
      .s_ready_o(ready),
      .m_o,
      .m_valid_o,
      .m_ready_i,
      .count_o  ()
    );
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || cut_i) begin
      waits_q <= 1'b0;
      stop_q  <= 1'b0;
    end else begin
      waits_q <= s_valid_i && !s_ready_o;
      stop_q  <= stop_q || s_valid_i && s_ready_o && bad_i;
    end
  end
  assign stopped_o = stop_q && !m_valid_o;
  assign dropped_o = waits_q && !s_valid_i;

endmodule
