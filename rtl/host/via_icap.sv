// SPDX-License-Identifier: Apache-2.0
//
// Feeds app images from registers to the board's configuration port.
//
// Throughput: one 32-bit word a cycle; 16 words are held. `room_o` says that a word given now is kept. An image begins with `start_i`, which
// drops what is left of an image not ended, and ends with `end_i` once every word before it has been taken. `load_o` is high for the slot from
// `start_i` until the configuration logic is done: the shell keeps the slot cut off and in reset meanwhile.

module via_icap
  import via_pkg::*;
(
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [         3:0] slot_i,
  input  logic                start_i,
  input  logic                end_i,
  input  logic [        31:0] word_i,
  input  logic                word_valid_i,
  output logic                room_o,
  output logic                busy_o,
  output logic                done_o,
  output logic [         7:0] code_o,
  output logic [NumSlots-1:0] load_o,
  output logic                icap_valid_o,
  output logic [        31:0] icap_data_o,
  output logic [         3:0] icap_slot_o,
  output logic                icap_start_o,
  output logic                icap_end_o,
  input  logic                icap_ready_i,
  input  logic                icap_done_i,
  input  logic [         7:0] icap_status_i,
  output logic                idle_o
);

  localparam int unsigned Depth = 16;

  logic busy_q, done_q, ending_q, start_q, end_q, held_valid, out_valid_q;
  logic [7:0] code_q;
  logic [3:0] slot_q;
  logic [31:0] held, out_q;
  logic [$clog2(Depth+1)-1:0] count;
  logic pop;

  via_fifo #(
    .T    (logic [31:0]),
    .Depth(Depth)
  ) u_words (
    .clk_i,
    .rst_ni,
    .flush_i  (start_i),
    .s_i      (word_i),
    .s_valid_i(word_valid_i && busy_q),
    .s_ready_o(),
    .m_o      (held),
    .m_valid_o(held_valid),
    .m_ready_i(pop),
    .count_o  (count)
  );
  // One word may already be on its way here.
  assign room_o = 32'(count) < Depth - 1;
  assign pop = held_valid && (!out_valid_q || icap_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q      <= 1'b0;
      done_q      <= 1'b0;
      ending_q    <= 1'b0;
      start_q     <= 1'b0;
      end_q       <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      start_q <= start_i;
      end_q   <= ending_q && !held_valid && !out_valid_q && !start_i;
      if (start_i) begin
        busy_q      <= 1'b1;
        done_q      <= 1'b0;
        ending_q    <= 1'b0;
        out_valid_q <= 1'b0;
      end else begin
        if (pop) out_valid_q <= 1'b1;
        else if (icap_ready_i) out_valid_q <= 1'b0;
        if (end_i && busy_q) ending_q <= 1'b1;
        else if (!held_valid && !out_valid_q) ending_q <= 1'b0;
        if (icap_done_i && busy_q) begin
          busy_q <= 1'b0;
          done_q <= 1'b1;
        end
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) slot_q <= slot_i;
    if (pop) out_q <= held;
    if (icap_done_i) code_q <= icap_status_i;
  end

  // `busy_q` by slot.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) load_o <= '0;
    else if (start_i) for (int unsigned s = 0; s < NumSlots; s++) load_o[s] <= slot_i == 4'(s);
    else if (icap_done_i) load_o <= '0;
  end
  assign busy_o = busy_q;
  assign done_o = done_q;
  assign code_o = code_q;
  assign icap_valid_o = out_valid_q;
  assign icap_data_o = out_q;
  assign icap_slot_o = slot_q;
  assign icap_start_o = start_q;
  assign icap_end_o = end_q;
  assign idle_o = ~|{start_i, end_i, word_valid_i, start_q, end_q, ending_q, held_valid, out_valid_q};

endmodule
