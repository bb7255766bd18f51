// SPDX-License-Identifier: Apache-2.0
//
// One round of AES (FIPS 197, 5.1) on several blocks, with its round key, followed by a register.
// Throughput: one beat a cycle. Latency: one cycle. Order: kept. Without `en_i` nothing changes, which saves time in simulation. The round
// key is loaded by `key_we_i`; misuse: not while a state is in the pipeline.

module aes_round
  import aes_pkg::*;
#(
  parameter int unsigned Blocks = 4,  // blocks of 128 bits
  parameter bit Last = 1'b0  // the last round has no MixColumns
) (
  input  logic                      clk_i,
  input  logic                      key_we_i,  // pulse: load the round key
  input  logic [       127:0]       key_i,     // round key
  input  logic                      en_i,      // a state is at the input
  input  logic [Blocks*4-1:0][31:0] state_i,   // state, as columns
  output logic [Blocks*4-1:0][31:0] state_o    // state after the round, a cycle later
);

  localparam bit BlocksOk = via_pkg::param_in("aes_round Blocks", Blocks, 1, 4);

  logic [3:0][31:0] key_q;

  always_ff @(posedge clk_i) begin
    if (key_we_i) key_q <= key_i;
  end

  for (genvar b = 0; b < int'(Blocks); b++) begin : gen_block
    for (genvar c = 0; c < 4; c++) begin : gen_column
      logic [31:0] column_q;
      assign state_o[4*b+c] = column_q;

      always_ff @(posedge clk_i) begin
        if (en_i) begin
          logic [31:0] s;
          // ShiftRows: row r comes from column c + r.
          s = sub({state_i[4*b+(c+3)%4][31:24], state_i[4*b+(c+2)%4][23:16], state_i[4*b+(c+1)%4][15:8], state_i[4*b+c][7:0]});
          column_q <= (Last ? s : mix(s)) ^ key_q[c];
        end
      end
    end
  end

endmodule
