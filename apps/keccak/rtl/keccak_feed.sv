// SPDX-License-Identifier: Apache-2.0
//
// The blocks of one message after the other for a lane of SHA3-256: 136 bytes each, the last one padded with 0x06, zeros and 0x80.
//
//   beats -> FIFO -> two words a cycle, mark -> shift register of 18 words -> block_o
//
// A block has 17 words, so that every second one begins with the second word of a pair. That word stays in the register, above the block
// before; the block that it begins lies one word too high in the end, and is moved down in a cycle of its own. Beats of 64 bits enter as
// single words.
//
// Throughput: a block every 9 cycles, or 17 with beats of 64 bits, if it is taken at once. Order: kept. A lane that has nothing to do
// changes no register. Misuse: messages of one lane that are not one after the other give wrong blocks.

module keccak_feed
  import via_pkg::*;
  import hash_pkg::*;
  import keccak_pkg::*;
#(
  parameter int unsigned FifoBytes = 32768
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  part_t                        s_i,
  input  logic                         s_valid_i,
  output logic                         s_ready_o,
  output logic  [BlockWords-1:0][63:0] block_o,
  output logic                         first_o,    // with valid_o: of its message
  output logic                         final_o,    // with valid_o: of its message
  output logic  [           7:0]       id_o,       // with valid_o: stream id of the message
  output logic                         valid_o,    // level: there is a block
  input  logic                         take_i,     // with valid_o: it is taken
  output logic                         busy_o      // level: there is a beat or a block, or one is being padded
);

  localparam bit FifoBytesOk = param_pow2("keccak_feed FifoBytes", FifoBytes, 256, 1 << 20);

  localparam int unsigned BeatWords = DataW / 64;
  localparam int unsigned Words = BeatWords > 1 ? 2 : 1;  // that enter in a cycle
  localparam int unsigned Parts = BeatWords / Words;  // of a beat
  localparam int unsigned PartW = Parts > 1 ? $clog2(Parts) : 1;
  localparam int unsigned PartLog2 = $clog2(8 * Words);  // bytes of a part
  localparam int unsigned Held = BlockWords + Words - 1;

  part_t beat;
  logic beat_valid, beat_pop;

  hash_fifo #(
    .FifoBytes(FifoBytes)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .s_i,
    .s_valid_i,
    .s_ready_o,
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_pop)
  );

  // ---------------------------------------------------------------- where it is in block and message
  logic [PartW-1:0] part_q, end_part;
  logic [PartLog2-1:0] end_byte;
  pad_e pad_q;  // None: within the message; Mark: it ended with a full beat; Zero: behind its mark
  logic load, ends, mark, last_part;
  logic [4:0] place_q;  // in the block, of the first word of the part
  logic full_q, odd_q, down_q;
  logic end_block, over, closes, mark_later;

  assign end_part = PartW'(beat.bytes >> PartLog2);
  assign end_byte = pad_q == Mark ? '0 : beat.bytes[PartLog2-1:0];
  assign last_part = Parts == 1 || part_q == PartW'(Parts - 1);
  assign ends = pad_q == None && beat.last && !beat.full && (Parts == 1 || part_q == end_part);
  assign mark = ends || pad_q == Mark;
  assign beat_pop = load && pad_q == None && (ends || last_part);

  assign end_block = place_q >= 5'(BlockWords - Words);
  assign over = Words == 2 && place_q == 5'(BlockWords - 1);  // the second word is of the next block
  assign mark_later = over && end_byte[PartLog2-1];
  assign closes = end_block && (pad_q == Zero || mark && !mark_later);
  assign load = (!full_q || take_i) && !down_q && (beat_valid || pad_q != None);

  // ---------------------------------------------------------------- a part, with the mark behind the message
  logic [Words-1:0][7:0][7:0] bytes;

  always_comb begin
    bytes = (64 * Words)'(beat.data >> 64 * Words * 32'(part_q));
    if (pad_q != None) bytes = '0;
    if (mark) begin
      for (int unsigned i = 0; i < 8 * Words; i++) begin
        if (i >= 32'(end_byte)) bytes[i/8][i%8] = i == 32'(end_byte) ? 8'h06 : 8'h00;
      end
    end
    // The mark of the end of the block: of its last byte, which is in the first word of the part if the second one is of the next block.
    if (closes) bytes[over?0 : Words-1][7][7] = 1'b1;
  end

  // ---------------------------------------------------------------- the block
  logic [Held-1:0][63:0] words_q;
  logic first_q, begun_q;
  assign block_o = words_q[BlockWords-1:0];
  assign valid_o = full_q;
  assign first_o = first_q;
  assign busy_o  = full_q || down_q || pad_q != None || beat_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pad_q   <= None;
      part_q  <= '0;
      place_q <= '0;
      odd_q   <= 1'b0;
      full_q  <= 1'b0;
      down_q  <= 1'b0;
      begun_q <= 1'b0;
    end else begin
      if (take_i) full_q <= 1'b0;
      if (down_q) begin
        down_q <= 1'b0;
        full_q <= 1'b1;
      end
      if (load) begin
        if (pad_q == None) part_q <= ends || last_part ? '0 : part_q + 1'b1;
        if (mark) pad_q <= Zero;
        else if (pad_q == None && last_part && beat.last) pad_q <= Mark;
        place_q <= place_q + 5'(Words);
        if (end_block) begin
          // The next block, of this message or another, begins in the word behind this one or in the next part.
          odd_q   <= over && !closes;
          place_q <= over && !closes ? 5'd1 : 5'd0;
          full_q  <= !odd_q;
          down_q  <= odd_q;
          begun_q <= !closes;
          if (closes) pad_q <= None;
        end
      end
    end
    if (load && end_block) begin
      first_q <= !begun_q;
      final_o <= closes;
    end
    if (load && pad_q == None) id_o <= beat.id;
    if (load) words_q <= {bytes, words_q[Held-1:Words]};
    else if (down_q) words_q <= words_q >> 64;
  end

endmodule
