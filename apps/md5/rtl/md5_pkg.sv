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

  /// Rotation by the amount of a round: which of its group of 16 rounds, modulo 4, and the group name it.
  function automatic logic [31:0] rotate(input logic [1:0] group, input logic [1:0] t, input logic [31:0] x);
    logic [3:0][31:0] y0, y1, y2, y3;
    y0 = {left(x, 6), left(x, 4), left(x, 5), left(x, 7)};
    y1 = {left(x, 10), left(x, 11), left(x, 9), left(x, 12)};
    y2 = {left(x, 15), left(x, 16), left(x, 14), left(x, 17)};
    y3 = {left(x, 21), left(x, 23), left(x, 20), left(x, 22)};
    unique case (t)
      2'd0: return y0[group];
      2'd1: return y1[group];
      2'd2: return y2[group];
      default: return y3[group];
    endcase
  endfunction

endpackage
