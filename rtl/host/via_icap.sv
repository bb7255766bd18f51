// SPDX-License-Identifier: Apache-2.0
//
// Passes app images from registers to the board's configuration port.
//
// Throughput: one 32-bit word a cycle; 16 words are buffered. Latency: two cycles. Order: kept. An image begins with `start_i`, which drops
// what is left of an unfinished image; it ends with `end_i`, which is passed on once every word before it has been accepted. `load_o` is
// high for the slot from `start_i` until the configuration logic is done: the shell keeps the slot cut off and in reset meanwhile.
// Misuse: words outside an image, and words written without `room_o`, are dropped.

module via_icap
  import via_pkg::*;
(
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [         3:0] slot_i,         // slot to load, with start_i
  input  logic                start_i,        // one-cycle pulse: an image begins
  input  logic                end_i,          // one-cycle pulse: all words of the image were written
  input  logic [        31:0] word_i,         // word of the image
  input  logic                word_valid_i,
  output logic                room_o,         // level: a word written now is kept
  output logic                busy_o,         // level: an image is being loaded
  output logic                done_o,         // level: the last image was loaded, see code_o
  output logic [         7:0] code_o,         // result from the configuration logic
  output logic [NumSlots-1:0] load_o,         // level: the slot is being loaded
  output logic                icap_valid_o,
  output logic [        31:0] icap_data_o,    // word of the image
  output logic [         3:0] icap_slot_o,    // slot being loaded
  output logic                icap_start_o,   // one-cycle pulse: an image begins
  output logic                icap_end_o,     // one-cycle pulse: the image is complete
  input  logic                icap_ready_i,
  input  logic                icap_done_i,    // one-cycle pulse: the configuration logic has finished
  input  logic [         7:0] icap_status_i,  // its result, with icap_done_i; 0 = loaded
  output logic                idle_o          // level: no word is held
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
  // One more word may already be on its way.
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

  // `busy_q` per slot.
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
