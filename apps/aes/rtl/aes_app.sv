// SPDX-License-Identifier: Apache-2.0
//
// AES-256 in counter mode (FIPS 197, NIST SP 800-38A 6.5): DataW / 128 blocks at once. Encryption and decryption are the same.
//
//   in -+--------------------------------------------> data FIFO --+
//       |                                                         (+) -> out
//       +-> counters -> + key 0 -> round 1 ... round 14 -> key    |
//                                                         stream --+
//                                                         FIFO
//
// Throughput: one beat a cycle. Latency: 16 cycles. Order: kept. Only the counters pass through the rounds while the data waits in a FIFO;
// every beat in the rounds has an entry reserved in both FIFOs, so the rounds never stall.
//
// The counter starts from `iv` with every message and counts big-endian modulo 2^128, as OpenSSL's aes-256-ctr does. `iv` is sampled with
// the first beat of a message. Messages under one key follow each other without a bubble. A new key is expanded between two messages, which
// costs two cycles: one round key is distributed every cycle, right behind the last beat of the previous message and right ahead of the
// next one. A message in progress keeps its key.
//
// With `sectors`, for the data of a disk, a message begins with 64 bytes whose lowest 40 bits give the number of a sector of 512 bytes
// (docs/interfaces.md, section 8). They are passed on unchanged, and the counter starts after them from `iv` + 32 * sector: each block of
// the disk has the same counter whatever request it is part of.

module aes_app
  import via_pkg::*;
  import aes_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  input  strm_t         in_i,
  input  logic          in_valid_i,
  output logic          in_ready_o,
  output strm_t         out_o,
  output logic          out_valid_o,
  input  logic          out_ready_i,
  input  logic  [255:0] key_i,        // key, first byte lowest
  input  logic          key_we_i,     // one-cycle pulse: key_i has changed
  input  logic  [127:0] iv_i,         // initial counter, first byte lowest
  input  logic          sectors_i     // level: messages begin with a sector number
);

  localparam int unsigned Blocks = DataW / 128;
  localparam int unsigned Depth = 32;  // more than the beats in the rounds, so that an output that waits does not stop them at once

  // ---------------------------------------------------------------- key schedule
  logic stale_q;  // the key has changed and is not expanded yet
  logic expand_q;
  logic [3:0] step_q;  // round key being distributed
  logic [7:0] rcon_q;
  logic [255:0] window_q;  // round keys step and step + 1
  logic expand_start;
  logic [Rounds:0] key_we;

  always_comb begin
    for (int unsigned i = 0; i <= Rounds; i++) key_we[i] = expand_q && step_q == 4'(i);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stale_q  <= 1'b1;
      expand_q <= 1'b0;
    end else begin
      if (key_we_i) stale_q <= 1'b1;
      else if (expand_start) stale_q <= 1'b0;
      if (expand_start) expand_q <= 1'b1;
      else if (step_q == 4'(Rounds)) expand_q <= 1'b0;
    end
    if (expand_start) begin
      step_q   <= '0;
      rcon_q   <= 8'h01;
      window_q <= key_i;
    end else if (expand_q) begin
      step_q   <= step_q + 1'b1;
      window_q <= {next_key(window_q[127:0], window_q[255:224], !step_q[0], rcon_q), window_q[255:128]};
      if (!step_q[0]) rcon_q <= rcon_q << 1;
    end
  end

  // ---------------------------------------------------------------- data, waiting for its key stream
  strm_t data;
  logic data_ready, data_valid, data_head, stream_valid, pop, take;
  logic [DataW-1:0] stream;
  logic busy_q;  // within a message
  logic head_q;  // ... and its header

  // The header: its first beat contains the sector number.
  localparam int unsigned HeadBeats = 512 / DataW;
  localparam int unsigned BlocksLog2 = 5;  // of a sector
  logic head, head_last;
  logic [2:0] head_left_q;
  assign head = busy_q ? head_q : sectors_i;
  assign head_last = busy_q ? head_left_q == '0 : HeadBeats == 1;
  assign in_ready_o = data_ready && (busy_q || !(stale_q || key_we[0]));
  assign take = in_valid_i && in_ready_o;
  assign expand_start = stale_q && !expand_q && !busy_q;

  via_fifo #(
    .T    (logic [$bits(strm_t):0]),
    .Depth(Depth)
  ) u_data (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({head, in_i}),
    .s_valid_i(take),
    .s_ready_o(data_ready),
    .m_o      ({data_head, data}),
    .m_valid_o(data_valid),
    .m_ready_i(pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- counters
  logic [127:0] count_q, first;  // as numbers
  assign first = busy_q ? count_q : swap(iv_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_q <= 1'b0;
    else if (take) busy_q <= !in_i.last;
    if (take) begin
      head_q      <= head && !head_last;
      head_left_q <= busy_q ? head_left_q - 1'b1 : 3'(HeadBeats - 2);
      if (!head) count_q <= first + 128'(Blocks);
      else if (!busy_q) count_q <= first + 128'({in_i.data[39:0], BlocksLog2'(0)});
    end
  end

  // ---------------------------------------------------------------- rounds
  logic [Rounds:0] valid_q;
  logic [127:0] key0_q;
  logic [Blocks-1:0][127:0] state0_q;
  logic [DataW-1:0] state[Rounds+1];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[Rounds-1:0], take};
    if (key_we[0]) key0_q <= window_q[127:0];
    if (take) begin
      for (int unsigned b = 0; b < Blocks; b++) state0_q[b] <= swap(first + 128'(b)) ^ key0_q;
    end
  end
  assign state[0] = state0_q;

  for (genvar r = 1; r <= int'(Rounds); r++) begin : gen_round
    aes_round #(
      .Blocks(Blocks),
      .Last  (r == int'(Rounds))
    ) u_round (
      .clk_i,
      .key_we_i(key_we[r]),
      .key_i   (window_q[127:0]),
      .en_i    (valid_q[r-1]),
      .state_i (state[r-1]),
      .state_o (state[r])
    );
  end

  via_fifo #(
    .T    (logic [DataW-1:0]),
    .Depth(Depth)
  ) u_stream (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (state[Rounds]),
    .s_valid_i(valid_q[Rounds]),
    .s_ready_o(),
    .m_o      (stream),
    .m_valid_o(stream_valid),
    .m_ready_i(pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- out
  assign out_valid_o = stream_valid;
  assign pop = stream_valid && out_ready_i;
  assign out_o = '{id: data.id, last: data.last, keep: data.keep, data: data_head ? data.data : data.data ^ stream};

`ifndef SYNTHESIS
  // The key stream never comes before its data.
  assert property (@(posedge clk_i) disable iff (!rst_ni) stream_valid |-> data_valid);
`endif

endmodule
