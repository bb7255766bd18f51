// SPDX-License-Identifier: Apache-2.0
//
// DEFLATE with fixed codes (RFC 1951): what the matcher tells the encoder, and the codes.

package gzip_pkg;

  localparam int unsigned MinMatch = 4;
  localparam int unsigned MaxMatch = 258;

  /// What came of one byte, in the order of the members; several may.
  typedef struct packed {
    logic        start;         // a message begins
    logic        match;         // the match before this byte has ended
    logic        literal;       // the byte itself
    logic        stop;          // the message has ended, without a byte
    logic [7:0]  length;        // of the match, - 3
    logic [2:0]  length_extra;  // bits behind its code
    logic [14:0] back;          // its distance, - 1
    logic [3:0]  back_extra;
    logic [7:0]  data;
  } token_t;

  /// A code with the bits behind it, first bit lowest; the others are zero.
  typedef struct packed {
    logic [4:0]  count;
    logic [17:0] bits;
  } code_t;

  function automatic logic [8:0] reversed(input logic [8:0] x, input int unsigned count);
    logic [8:0] result;
    result = '0;
    for (int unsigned i = 0; i < 9; i++) if (i < count) result[i] = x[count-1-i];
    return result;
  endfunction

  function automatic code_t literal_code(input logic [7:0] data);
    if (data < 8'd144) return '{count: 5'd8, bits: 18'(reversed(9'h030 + 9'(data), 8))};
    return '{count: 5'd9, bits: 18'(reversed(9'h190 + 9'(data - 8'd144), 9))};
  endfunction

  /// Bits behind the code of a length - 3: those whose number has n bits, n above 3, are in groups of 2^(n - 3).
  function automatic logic [2:0] length_extra(input logic [7:0] length);
    logic [2:0] extra;
    extra = '0;
    for (int unsigned i = 3; i < 8; i++) if (length[i]) extra = 3'(i - 2);
    return length == 8'(MaxMatch - 3) ? '0 : extra;
  endfunction

  /// Of a length - 3.
  function automatic code_t length_code(input logic [7:0] length, input logic [2:0] extra);
    logic [4:0] symbol;  // of the lengths, from 0
    logic [7:0] more;
    symbol = 5'({extra, 2'b0}) + 5'(length >> extra);
    more   = length ^ (length >> extra << extra);
    if (length == 8'(MaxMatch - 3)) begin
      symbol = 5'd28;
      more   = '0;
    end
    // 257 to 279 have seven bits, 280 to 285 eight.
    if (symbol < 5'd23) return '{count: 5'd7 + 5'(extra), bits: 18'(reversed(9'(symbol) + 9'd1, 7)) | 18'(more) << 7};
    return '{count: 5'd8 + 5'(extra), bits: 18'(reversed(9'hC0 + 9'(symbol - 5'd23), 8)) | 18'(more) << 8};
  endfunction

  /// Bits behind the code of a distance - 1.
  function automatic logic [3:0] distance_extra(input logic [14:0] back);
    logic [3:0] extra;
    extra = '0;
    for (int unsigned i = 2; i < 15; i++) if (back[i]) extra = 4'(i - 1);
    return extra;
  endfunction

  /// Of a distance - 1.
  function automatic code_t distance_code(input logic [14:0] back, input logic [3:0] extra);
    logic [ 4:0] symbol;
    logic [14:0] more;
    symbol = {extra, 1'b0} + 5'(back >> extra);
    more   = back ^ (back >> extra << extra);
    return '{count: 5'd5 + 5'(extra), bits: 18'(reversed(9'(symbol), 5)) | 18'(more) << 5};
  endfunction

  /// CRC-32 after one more byte (RFC 1952, 8).
  function automatic logic [31:0] crc_after(input logic [31:0] crc, input logic [7:0] data);
    logic [31:0] c;
    c = crc ^ 32'(data);
    for (int unsigned i = 0; i < 8; i++) c = c >> 1 ^ (c[0] ? 32'hEDB88320 : '0);
    return c;
  endfunction

endpackage
