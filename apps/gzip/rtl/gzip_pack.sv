// SPDX-License-Identifier: Apache-2.0
//
// Makes gzip files (RFC 1952) of tokens: header, one block with fixed codes, checksum, length.
//
//   token -> items: a code, two, or 32 bits -> one number -> words of 32 bits -> beats
//
// Throughput: an item a cycle; a token has one for its match and one for its byte, so that a byte a cycle can be kept up in the long run: a match
// is of four bytes or more. The start of a message takes three more, its end four. Latency: five cycles. Order: kept. Everything waits while
// a beat stands at the output.

module gzip_pack
  import via_pkg::*;
  import gzip_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  input  token_t        token_i,
  input  logic          token_valid_i,
  output logic          token_ready_o,
  input  logic   [31:0] crc_i,          // of the message whose end is next, at its end
  input  logic   [31:0] size_i,
  output logic          sum_take_o,     // one cycle: these two are taken
  input  logic   [ 7:0] id_i,           // of the message that is at the output
  output logic          id_take_o,      // one cycle: its last beat has gone to the output
  output strm_t         out_o,
  output logic          out_valid_o,
  input  logic          out_ready_i,
  output logic          busy_o
);

  localparam int unsigned Words = DataW / 32;
  localparam int unsigned PlaceW = $clog2(Words + 1);

  logic move;  // everything here
  assign move = !out_valid_o || out_ready_i;

  // ---------------------------------------------------------------- items of a token
  typedef struct packed {
    logic        align;   // zeros up to the next byte follow
    logic        finish;  // the file ends: what is left is a word, too
    logic [5:0]  count;
    logic [31:0] bits;
    code_t       more;    // behind these; at most 18 of them
  } item_t;

  item_t item, item_q;
  logic item_valid_q, done;
  logic [2:0] done_q;  // start, match, literal of the token at the input
  logic [1:0] part_q;  // of a start or a stop
  code_t length, literal;

  assign length = length_code(token_i.length, token_i.length_extra);
  assign literal = literal_code(token_i.data);
  assign token_ready_o = move && done;

  always_comb begin
    item = '0;
    done = 1'b0;
    if (token_i.start && !done_q[2]) begin
      unique case (part_q)
        2'd0: {item.count, item.bits} = {6'd32, 32'h00088b1f};
        2'd1: {item.count, item.bits} = {6'd32, 32'h00000000};
        // Unknown system; the only block, with fixed codes.
        default: {item.count, item.bits} = {6'd19, 32'h0003ff00};
      endcase
      done = part_q == 2'd2 && !token_i.match && !token_i.literal && !token_i.stop;
    end else if (token_i.match && !done_q[1]) begin
      item.count = 6'(length.count);
      item.bits  = 32'(length.bits);
      item.more  = distance_code(token_i.back, token_i.back_extra);
      done       = !token_i.literal && !token_i.stop;
    end else if (token_i.literal && !done_q[0]) begin
      item.count = 6'(literal.count);
      item.bits  = 32'(literal.bits);
      done       = !token_i.stop;
    end else begin
      unique case (part_q)
        2'd0: begin
          item.count = 6'd7;
          item.align = 1'b1;
        end
        2'd1: {item.count, item.bits} = {6'd32, crc_i};
        2'd2: {item.count, item.bits} = {6'd32, size_i};
        default: item.finish = 1'b1;
      endcase
      done = part_q == 2'd3;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      item_valid_q <= 1'b0;
      done_q       <= '0;
      part_q       <= '0;
      sum_take_o   <= 1'b0;
    end else begin
      sum_take_o <= 1'b0;
      if (move) begin
        item_valid_q <= token_valid_i;
        if (token_valid_i) begin
          if (token_i.start && !done_q[2]) begin
            part_q    <= part_q == 2'd2 ? '0 : part_q + 1'b1;
            done_q[2] <= part_q == 2'd2;
          end else if (token_i.match && !done_q[1]) done_q[1] <= 1'b1;
          else if (token_i.literal && !done_q[0]) done_q[0] <= 1'b1;
          else part_q <= part_q + 1'b1;
          if (done) begin
            done_q     <= '0;
            part_q     <= '0;
            sum_take_o <= token_i.stop;
          end
        end
      end
    end
    if (move) item_q <= item;
  end

  // ---------------------------------------------------------------- one number
  logic number_valid_q, align_q, finish_q;
  logic [31:0] number_q;
  logic [ 5:0] count_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) number_valid_q <= 1'b0;
    else if (move) number_valid_q <= item_valid_q;
    if (move) begin
      // An item with more has no more than 31 bits in all.
      number_q <= item_q.bits | 32'(item_q.more.bits) << item_q.count[4:0];
      count_q  <= item_q.count + 6'(item_q.more.count);
      align_q  <= item_q.align;
      finish_q <= item_q.finish;
    end
  end

  // ---------------------------------------------------------------- words
  logic [30:0] rest_q;  // bits that do not fill a word
  logic [ 4:0] rest_count_q;
  logic [62:0] bits;
  logic [6:0] sum, count;
  logic word_valid_q, word_last_q;
  logic [31:0] word_q;
  logic [ 2:0] word_bytes_q;

  assign bits  = 63'(rest_q) | 63'(number_q) << rest_count_q;
  assign sum   = 7'(rest_count_q) + 7'(count_q);
  assign count = align_q ? (sum + 7'd7) & ~7'd7 : sum;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      word_valid_q <= 1'b0;
      rest_count_q <= '0;
    end else if (move) begin
      word_valid_q <= number_valid_q && (count[5] || finish_q);
      if (number_valid_q) rest_count_q <= finish_q ? '0 : count[4:0];
    end
    if (!rst_ni) rest_q <= '0;
    else if (move && number_valid_q) rest_q <= finish_q ? '0 : count[5] ? bits[62:32] : bits[30:0];
    if (move) begin
      word_q       <= bits[31:0];
      word_last_q  <= finish_q;
      word_bytes_q <= finish_q ? 3'(count[4:3]) : 3'd4;
    end
  end

  // ---------------------------------------------------------------- beats
  // A full beat waits for the next word: it may be the last.
  logic [Words-1:0][31:0] beat_q;
  logic [PlaceW-1:0] words_q;  // in the beat
  logic [1:0] short_q;  // bytes that its last word lacks
  logic last_q;  // the beat is the last
  logic full, add, pass;
  logic [PlaceW-1:0] at;

  assign full = words_q == PlaceW'(Words);
  assign add  = word_valid_q && word_bytes_q != '0;
  assign pass = last_q || full && add;
  assign at   = pass ? '0 : words_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      words_q     <= '0;
      last_q      <= 1'b0;
      out_valid_o <= 1'b0;
      id_take_o   <= 1'b0;
    end else begin
      id_take_o <= move && last_q;
      if (move) begin
        out_valid_o <= pass;
        words_q     <= at + PlaceW'(add);
        last_q      <= word_valid_q && word_last_q;
      end
    end
    if (move) begin
      if (add) begin
        beat_q[at[$clog2(Words)-1:0]] <= word_q;
        short_q <= 2'(3'd4 - word_bytes_q);
      end
      if (pass) out_o <= '{id: id_i, last: last_q, keep: ~({StrbW{1'b1}} << ({words_q, 2'b0} - (PlaceW + 2)'(short_q))), data: beat_q};
    end
  end

  assign busy_o = token_valid_i || item_valid_q || number_valid_q || word_valid_q || last_q;

endmodule
