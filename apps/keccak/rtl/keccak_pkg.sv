// SPDX-License-Identifier: Apache-2.0
//
// Keccak-f[1600] (FIPS 202): the state and its round. Words are numbers, first byte lowest, as in the message.

package keccak_pkg;

  localparam int unsigned Rounds = 24;
  /// Words of a block of SHA3-256: 136 bytes.
  localparam int unsigned BlockWords = 17;

  /// Row y, word x of it: word 5y + x of the state.
  typedef logic [4:0][4:0][63:0] state_t;

  // verilog_format: off
  /// Of iota. Those behind the last round are not used.
  localparam logic [63:0] Constant[32] = '{
    64'h0000000000000001, 64'h0000000000008082, 64'h800000000000808a, 64'h8000000080008000, 64'h000000000000808b, 64'h0000000080000001,
    64'h8000000080008081, 64'h8000000000008009, 64'h000000000000008a, 64'h0000000000000088, 64'h0000000080008009, 64'h000000008000000a,
    64'h000000008000808b, 64'h800000000000008b, 64'h8000000000008089, 64'h8000000000008003, 64'h8000000000008002, 64'h8000000000000080,
    64'h000000000000800a, 64'h800000008000000a, 64'h8000000080008081, 64'h8000000000008080, 64'h0000000080000001, 64'h8000000080008008,
    64'h0, 64'h0, 64'h0, 64'h0, 64'h0, 64'h0, 64'h0, 64'h0
  };

  /// By how much rho rotates word x of row y.
  localparam int unsigned Turn[5][5] = '{
    '{ 0,  1, 62, 28, 27},
    '{36, 44,  6, 55, 20},
    '{ 3, 10, 43, 25, 39},
    '{41, 45, 15, 21,  8},
    '{18,  2, 61, 56, 14}
  };
  // verilog_format: on

  function automatic logic [63:0] left(input logic [63:0] x, input int unsigned n);
    return x << n | x >> (64 - n);
  endfunction

  /// One round: three levels of logic, parities of columns, theta with the moves of rho and pi, chi with iota.
  function automatic state_t round(input state_t a, input logic [63:0] constant);
    logic [4:0][63:0] parity;
    state_t moved, result;
    parity = a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4];
    for (int unsigned y = 0; y < 5; y++) begin
      for (int unsigned x = 0; x < 5; x++) begin
        moved[(2*x+3*y)%5][y] = left(a[y][x] ^ parity[(x+4)%5] ^ left(parity[(x+1)%5], 1), Turn[y][x]);
      end
    end
    for (int unsigned y = 0; y < 5; y++) begin
      for (int unsigned x = 0; x < 5; x++) result[y][x] = moved[y][x] ^ ~moved[y][(x+1)%5] & moved[y][(x+2)%5];
    end
    result[0][0] ^= constant;
    return result;
  endfunction

endpackage
