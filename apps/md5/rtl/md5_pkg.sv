// SPDX-License-Identifier: Apache-2.0
//
// MD5 (RFC 1321): constants and functions. Words are numbers, first byte lowest, as in the message.

package md5_pkg;

  // verilog_format: off
  /// floor(2^32 * |sin(i + 1)|)
  localparam logic [31:0] K[64] = '{
    32'hd76aa478, 32'he8c7b756, 32'h242070db, 32'hc1bdceee, 32'hf57c0faf, 32'h4787c62a, 32'ha8304613, 32'hfd469501,
    32'h698098d8, 32'h8b44f7af, 32'hffff5bb1, 32'h895cd7be, 32'h6b901122, 32'hfd987193, 32'ha679438e, 32'h49b40821,
    32'hf61e2562, 32'hc040b340, 32'h265e5a51, 32'he9b6c7aa, 32'hd62f105d, 32'h02441453, 32'hd8a1e681, 32'he7d3fbc8,
    32'h21e1cde6, 32'hc33707d6, 32'hf4d50d87, 32'h455a14ed, 32'ha9e3e905, 32'hfcefa3f8, 32'h676f02d9, 32'h8d2a4c8a,
    32'hfffa3942, 32'h8771f681, 32'h6d9d6122, 32'hfde5380c, 32'ha4beea44, 32'h4bdecfa9, 32'hf6bb4b60, 32'hbebfbc70,
    32'h289b7ec6, 32'heaa127fa, 32'hd4ef3085, 32'h04881d05, 32'hd9d4d039, 32'he6db99e5, 32'h1fa27cf8, 32'hc4ac5665,
    32'hf4292244, 32'h432aff97, 32'hab9423a7, 32'hfc93a039, 32'h655b59c3, 32'h8f0ccc92, 32'hffeff47d, 32'h85845dd1,
    32'h6fa87e4f, 32'hfe2ce6e0, 32'ha3014314, 32'h4e0811a1, 32'hf7537e82, 32'hbd3af235, 32'h2ad7d2bb, 32'heb86d391
  };

  /// The initial state, A lowest.
  localparam logic [3:0][31:0] Init = {32'h10325476, 32'h98badcfe, 32'hefcdab89, 32'h67452301};
  // verilog_format: on

  /// The word of the block that round t uses.
  function automatic logic [3:0] index(input logic [5:0] t);
    unique case (t[5:4])
      2'd0: return t[3:0];
      2'd1: return t[3:0] * 4'd5 + 4'd1;
      2'd2: return t[3:0] * 4'd3 + 4'd5;
      default: return t[3:0] * 4'd7;
    endcase
  endfunction

  /// The function of three words of a group of 16 rounds, F, G, H or I, is p ^ b & q, with p and q of the other two words only.
  typedef struct packed {
    logic [31:0] p;
    logic [31:0] q;
  } mix_t;

  function automatic mix_t mix(input logic [1:0] group, input logic [31:0] c, input logic [31:0] d);
    unique case (group)
      2'd0: return '{p: d, q: c ^ d};  // b & c | ~b & d
      2'd1: return '{p: c & ~d, q: d};  // b & d | c & ~d
      2'd2: return '{p: c ^ d, q: '1};  // b ^ c ^ d
      default: return '{p: ~(c ^ d), q: d};  // c ^ (b | ~d)
    endcase
  endfunction

  function automatic logic [31:0] left(input logic [31:0] x, input int unsigned n);
    return x << n | x >> (32 - n);
  endfunction

  /// The amount by which a round rotates: 4, 9, 14 or 20, and up to three more. Each is one choice of four, which is one LUT a bit.
  typedef struct packed {
    logic [1:0] coarse;
    logic [1:0] fine;
  } turn_t;

  /// Of a round: the group of 16 it is in and its position in the group, modulo 4, say it.
  function automatic turn_t turn(input logic [1:0] group, input logic [1:0] t);
    logic [3:0][1:0] fine;
    unique case (t)
      2'd0: fine = {2'd2, 2'd0, 2'd1, 2'd3};  // 6, 4, 5, 7
      2'd1: fine = {2'd1, 2'd2, 2'd0, 2'd3};  // 10, 11, 9, 12
      2'd2: fine = {2'd1, 2'd2, 2'd0, 2'd3};  // 15, 16, 14, 17
      default: fine = {2'd1, 2'd3, 2'd0, 2'd2};  // 21, 23, 20, 22
    endcase
    return '{coarse: t, fine: fine[group]};
  endfunction

  function automatic logic [31:0] rotate(input turn_t by, input logic [31:0] x);
    logic [3:0][31:0] some, more;
    some = {left(x, 20), left(x, 14), left(x, 9), left(x, 4)};
    more = {left(some[by.coarse], 3), left(some[by.coarse], 2), left(some[by.coarse], 1), some[by.coarse]};
    return more[by.fine];
  endfunction

  /// What the rotation of zeros in turn_t makes x.
  function automatic logic [31:0] unturned(input logic [31:0] x);
    return left(x, 28);
  endfunction

endpackage
