// SPDX-License-Identifier: Apache-2.0
//
// Compresses every message: out comes a gzip file (RFC 1952) with one DEFLATE block with fixed codes, under the same id.
//
//   in -> bytes -> matches or literals -> FIFO -> codes -> words -> out
//           +----> checksum, length -> FIFO ---------^
//
// Throughput: a byte a cycle, and nine cycles behind each message; out at most nine bits for a byte. Latency: a token has passed after 16 cycles,
// and stays until its beat is full or the message ends. Order: kept. After a reset 2^PlaceLog2 cycles pass before the first byte. Misuse: a
// message without a byte gives an empty file.

module gzip_app
  import via_pkg::*;
  import gzip_pkg::*;
#(
  parameter int unsigned PlaceLog2 = 13,  // places of the table of positions
  parameter int unsigned LapLog2   = 20   // see gzip_match
) (
  input  logic  clk_i,
  input  logic  rst_ni,
  input  strm_t in_i,
  input  logic  in_valid_i,
  output logic  in_ready_o,
  output strm_t out_o,
  output logic  out_valid_o,
  input  logic  out_ready_i,
  output logic  busy_o
);

  localparam bit PlaceLog2Ok = param_in("gzip_app PlaceLog2", PlaceLog2, 8, 16);
  localparam bit LapLog2Ok = param_in("gzip_app LapLog2", LapLog2, 2, 24);

  localparam int unsigned Tokens = 16;

  typedef struct packed {
    logic [31:0] crc;
    logic [31:0] size;
  } sum_t;

  // ---------------------------------------------------------------- bytes of a beat
  /// `keep` is a run of ones, so it has one end.
  function automatic logic [BeatLog2:0] bytes_of(input logic [StrbW-1:0] keep);
    logic [BeatLog2:0] bytes;
    bytes = '0;
    for (int unsigned i = 0; i < StrbW; i++) if (keep[i] && (i == StrbW - 1 || !keep[(i+1)%StrbW])) bytes |= (BeatLog2 + 1)'(i + 1);
    return bytes;
  endfunction

  logic [ DataW-1:0] data_q;
  logic [BeatLog2:0] left_q;  // bytes of the beat
  logic held_q, last_q, first_q;
  logic [7:0] id_q;
  logic take, ready, ends_beat, ends;

  assign ends_beat = left_q[BeatLog2:1] == '0;  // one byte, or none
  assign ends = last_q && ends_beat;
  assign take = held_q && ready;
  assign in_ready_o = !held_q || take && ends_beat;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q  <= 1'b0;
      first_q <= 1'b1;
    end else begin
      if (in_ready_o) held_q <= in_valid_i;
      if (take) first_q <= ends;
    end
    if (in_ready_o) begin
      data_q <= in_i.data;
      last_q <= in_i.last;
      id_q   <= in_i.id;
      left_q <= bytes_of(in_i.keep);
    end else if (take) begin
      data_q <= data_q >> 8;
      left_q <= left_q - 1'b1;
    end
  end

  // ---------------------------------------------------------------- checksum, length
  logic [31:0] crc_q, crc, size_q, size;
  logic sum_valid_q, sum_take, id_take, byte_valid;
  logic [7:0] id;
  sum_t sum;

  assign byte_valid = left_q != '0;
  assign crc = crc_after(first_q ? '1 : crc_q, data_q[7:0]);
  assign size = (first_q ? '0 : size_q) + 32'(byte_valid);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) sum_valid_q <= 1'b0;
    else sum_valid_q <= take && ends;
    if (take) begin
      crc_q  <= byte_valid ? crc : first_q ? '1 : crc_q;
      size_q <= size;
    end
  end

  // One for each message between here and the output: no more than there are tokens of starts and ends.
  via_fifo #(
    .T    (sum_t),
    .Depth(Tokens)
  ) u_sums (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({~crc_q, size_q}),
    .s_valid_i(sum_valid_q),
    .s_ready_o(),
    .m_o      (sum),
    .m_valid_o(),
    .m_ready_i(sum_take),
    .count_o  ()
  );
  via_fifo #(
    .T    (logic [7:0]),
    .Depth(Tokens)
  ) u_ids (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (id_q),
    .s_valid_i(take && first_q),
    .s_ready_o(),
    .m_o      (id),
    .m_valid_o(),
    .m_ready_i(id_take),
    .count_o  ()
  );

  // ---------------------------------------------------------------- matches or literals
  token_t token, token_head;
  logic token_valid, token_head_valid, token_head_ready, room_q, match_busy, pack_busy;
  logic [$clog2(Tokens+1)-1:0] tokens;

  gzip_match #(
    .PlaceLog2(PlaceLog2),
    .LapLog2  (LapLog2)
  ) u_match (
    .clk_i,
    .rst_ni,
    .data_i       (data_q[7:0]),
    .first_i      (first_q),
    .last_i       (ends),
    .empty_i      (!byte_valid),
    .valid_i      (held_q),
    .ready_o      (ready),
    .go_i         (room_q),
    .token_o      (token),
    .token_valid_o(token_valid),
    .busy_o       (match_busy)
  );

  // Two tokens may be on their way when room is found to be short.
  always_ff @(posedge clk_i) room_q <= rst_ni && tokens < ($clog2(Tokens + 1))'(Tokens - 3);

  via_fifo #(
    .T    (token_t),
    .Depth(Tokens)
  ) u_tokens (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (token),
    .s_valid_i(token_valid),
    .s_ready_o(),
    .m_o      (token_head),
    .m_valid_o(token_head_valid),
    .m_ready_i(token_head_ready),
    .count_o  (tokens)
  );

  // ---------------------------------------------------------------- the file
  gzip_pack u_pack (
    .clk_i,
    .rst_ni,
    .token_i      (token_head),
    .token_valid_i(token_head_valid),
    .token_ready_o(token_head_ready),
    .crc_i        (sum.crc),
    .size_i       (sum.size),
    .sum_take_o   (sum_take),
    .id_i         (id),
    .id_take_o    (id_take),
    .out_o,
    .out_valid_o,
    .out_ready_i,
    .busy_o       (pack_busy)
  );

  always_ff @(posedge clk_i) busy_o <= rst_ni && (held_q || match_busy || token_valid || pack_busy);

endmodule
