// SPDX-License-Identifier: Apache-2.0
//
// HyperLogLog of every n-th item: the largest rank in each of 2^BucketsLog2 buckets.
//
//   item -> hash -> bucket, rank -> read word -> max -> write word
//                                       ^---- forwarded ----+
//
// A bucket is named by the highest bits of the hash; the rank is the number of zeros above the highest one of the other bits, and one. A word
// of the memory holds Pack buckets, so that all buckets are read and cleared in 2^BucketsLog2 / Pack cycles.
// Throughput: one item a cycle, whatever its bucket: a word just changed is forwarded to the two items behind. Latency: 13 cycles from an
// item to its bucket. With `dump_i` word `addr_i` is read and set to zero; it is at `word_o` a cycle later. Misuse: a dump while items are on
// their way mixes them with what follows.

module hll_lane #(
  parameter int unsigned BucketsLog2 = 16,
  localparam int unsigned RankW = 5,
  localparam int unsigned Pack = 8,
  localparam int unsigned AddrW = BucketsLog2 - $clog2(Pack)
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  input  logic [     31:0]            item_i,
  input  logic                        valid_i,
  input  logic [     31:0]            seed_i,   // of the hash; constant while items are on their way
  input  logic                        dump_i,   // read and clear word addr_i
  input  logic [AddrW-1:0]            addr_i,
  output logic [ Pack-1:0][RankW-1:0] word_o    // a cycle after dump_i
);

  localparam bit BucketsLog2Ok = via_pkg::param_in("hll_lane BucketsLog2", BucketsLog2, 6, 20);

  typedef logic [Pack-1:0][RankW-1:0] word_t;
  localparam int unsigned FieldW = $clog2(Pack);
  localparam int unsigned RestW = 32 - BucketsLog2;

  logic [31:0] hash;
  logic hash_valid;

  hll_hash u_hash (
    .clk_i,
    .rst_ni,
    .key_i  (item_i),
    .valid_i,
    .seed_i,
    .hash_o (hash),
    .valid_o(hash_valid)
  );

  function automatic logic [RankW-1:0] rank_of(input logic [RestW-1:0] rest);
    logic [RankW-1:0] rank;
    rank = RankW'(RestW + 1);
    for (int unsigned i = 0; i < RestW; i++) if (rest[i]) rank = RankW'(RestW - i);
    return rank;
  endfunction

  // ---------------------------------------------------------------- ranks
  // a: reads its word. b: has it. w: its new word is being written. v: was written in the previous cycle.
  logic a_valid_q, b_valid_q, w_valid_q, w_write_q, b_dump_q;
  logic [BucketsLog2-1:0] a_bucket_q, b_bucket_q;
  logic [RankW-1:0] a_rank_q, b_rank_q;
  logic [AddrW-1:0] a_addr, w_addr_q, b_addr_q;
  logic b_is_w_q, b_is_v_q;  // the word of b is that of w, of v
  word_t read, old, new_word, w_word_q, v_word_q;
  logic more;

  assign a_addr   = a_bucket_q[BucketsLog2-1:FieldW];
  assign b_addr_q = b_bucket_q[BucketsLog2-1:FieldW];

  via_ram_sdp #(
    .Width(Pack * RankW),
    .Depth(1 << AddrW)
  ) u_ram (
    .clk_i,
    .we_i   (w_write_q),
    .waddr_i(w_addr_q),
    .wdata_i(w_word_q),
    .re_i   (a_valid_q || dump_i),
    .raddr_i(dump_i ? addr_i : a_addr),
    .rdata_o(read)
  );
  assign word_o = read;

  assign old = b_is_w_q ? w_word_q : b_is_v_q ? v_word_q : read;
  assign more = b_rank_q > old[b_bucket_q[FieldW-1:0]];
  always_comb begin
    new_word = old;
    if (more) new_word[b_bucket_q[FieldW-1:0]] = b_rank_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
      w_valid_q <= 1'b0;
      w_write_q <= 1'b0;
      b_dump_q  <= 1'b0;
    end else begin
      a_valid_q <= hash_valid;
      b_valid_q <= a_valid_q;
      w_valid_q <= b_valid_q;
      w_write_q <= b_valid_q && more || b_dump_q;
      b_dump_q  <= dump_i;
    end
    if (hash_valid) begin
      a_bucket_q <= hash[31-:BucketsLog2];
      a_rank_q   <= rank_of(hash[RestW-1:0]);
    end
    if (a_valid_q) begin
      b_bucket_q <= a_bucket_q;
      b_rank_q   <= a_rank_q;
      b_is_w_q   <= b_valid_q && b_addr_q == a_addr;
      b_is_v_q   <= w_valid_q && w_addr_q == a_addr;
    end
    if (dump_i) b_bucket_q[BucketsLog2-1:FieldW] <= addr_i;
    if (b_valid_q || b_dump_q) begin
      w_addr_q <= b_addr_q;
      w_word_q <= b_dump_q ? '0 : new_word;
    end
    v_word_q <= w_word_q;
  end

endmodule
