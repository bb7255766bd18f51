// SPDX-License-Identifier: Apache-2.0
//
// Selects one of several words: the one whose bit is set in `sel_i`; with several bits set their words are ORed, with none the result is 0.
// Combinational.
// Each bit of the result is an OR tree: two levels for nine words.

module via_vq_pick #(
  parameter int unsigned N = 2,  // words
  parameter int unsigned Width = 8
) (
  input  logic [    N-1:0]            sel_i,  // selection, one-hot or zero
  input  logic [    N-1:0][Width-1:0] s_i,    // words
  output logic [Width-1:0]            m_o     // selected word
);

  localparam bit NOk = via_pkg::param_in("via_vq_pick N", N, 1, 16);
  localparam bit WidthOk = via_pkg::param_in("via_vq_pick Width", Width, 1, 1024);

  for (genvar b = 0; b < Width; b++) begin : gen_bit
    logic [N-1:0] column;
    for (genvar i = 0; i < N; i++) begin : gen_word
      assign column[i] = s_i[i][b];
    end
    assign m_o[b] = |(sel_i & column);
  end

endmodule
