// SPDX-License-Identifier: Apache-2.0
//
// HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007) of the 32-bit items of a message: a message of one byte for each of 2^BucketsLog2
// buckets, the largest rank of its items, or zero. Sketches of several messages are merged by taking the larger byte of each bucket.
//
//        +-> hash -> buckets -+
//   in --+        ...         +-> max -+-> 8 buckets a cycle -> out
//        +-> hash -> buckets -+        +-> zeros, full, sum of 2^-rank
//
// Each of the DataW / 32 lanes has buckets of its own.
// Throughput: one beat a cycle. Latency: after the last beat the buckets are sent, 8 in a cycle at most, and cleared; until then the next
// message waits, 2^BucketsLog2 / 8 + 32 cycles if the output does
// not wait. After a reset the app clears its buckets, which takes as long. Order: kept. A rest of less than four bytes at the
// end of a message is not an item. `seed` is sampled with the first beat of a message; `zeros`, `full` and `sum` are those of the last message when
// its last beat is sent, and no registers are wrong.

module hll_app
  import via_pkg::*;
#(
  parameter int unsigned BucketsLog2 = 16
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  strm_t        in_i,
  input  logic         in_valid_i,
  output logic         in_ready_o,
  output strm_t        out_o,
  output logic         out_valid_o,
  input  logic         out_ready_i,
  input  logic  [31:0] seed_i,       // of the hash
  output logic  [63:0] items_o,      // items of the message
  output logic  [31:0] zeros_o,      // buckets without an item
  output logic  [31:0] full_o,       // buckets with the largest rank
  output logic  [63:0] sum_o,        // sum of 2^-rank over all buckets, in units of 2^-(33 - BucketsLog2)
  output logic         busy_o
);

  localparam bit BucketsLog2Ok = param_in("hll_app BucketsLog2", BucketsLog2, 6, 20);

  localparam int unsigned Lanes = DataW / 32;
  localparam int unsigned RankW = 5;
  localparam int unsigned Pack = 8;
  localparam int unsigned WordAddrW = BucketsLog2 - $clog2(Pack);
  localparam int unsigned MaxRank = 33 - BucketsLog2;
  localparam int unsigned Drain = 16;  // more than the latency of a lane
  localparam int unsigned Words = StrbW / Pack;  // of a beat
  localparam int unsigned WordW = Words > 1 ? $clog2(Words) : 1;

  typedef logic [Pack-1:0][RankW-1:0] word_t;
  typedef enum logic [2:0] {
    Clear,  // after reset
    Count,  // items come
    Wait,   // the last ones are on their way
    Dump,   // buckets are read and cleared
    Send    // the last beats wait to be accepted
  } state_e;

  function automatic logic [RankW-1:0] max(input logic [RankW-1:0] a, input logic [RankW-1:0] b);
    return a > b ? a : b;
  endfunction

  // ---------------------------------------------------------------- control
  state_e state_q;
  logic [WordAddrW-1:0] addr_q;
  logic [$clog2(Drain)-1:0] wait_q;
  logic first_q;  // the next beat begins a message
  logic ready_q, room_q;
  logic [ 7:0] id_q;
  logic [31:0] seed_q;
  logic take, read, done, sent;

  assign in_ready_o = ready_q;
  assign take = in_valid_i && ready_q;
  assign read = state_q == Clear || state_q == Dump && room_q;
  assign done = read && addr_q == '1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Clear;
      addr_q  <= '0;
      first_q <= 1'b1;
      ready_q <= 1'b0;
    end else begin
      unique case (state_q)
        Clear: if (done) state_q <= Count;
        Count: if (take && in_i.last) state_q <= Wait;
        Wait: if (wait_q == '1) state_q <= Dump;
        Dump: if (done) state_q <= Send;
        default: if (sent) state_q <= Count;
      endcase
      if (read) addr_q <= addr_q + 1'b1;
      if (take) first_q <= in_i.last;
      ready_q <= state_q == Count ? !(take && in_i.last) : state_q == Clear && done || sent;
    end
    busy_o <= rst_ni && (state_q == Clear || state_q == Wait || state_q == Dump && room_q);
    wait_q <= state_q == Wait ? wait_q + 1'b1 : '0;
    if (take) begin
      id_q <= in_i.id;
      if (first_q) seed_q <= seed_i;
    end
  end

  // ---------------------------------------------------------------- items
  logic [Lanes-1:0] item_valid_q;
  logic [Lanes-1:0][31:0] item_q;
  logic take_q, item_first_q, more_q, more_first_q;
  logic [$clog2(Lanes+1)-1:0] more_items_q;  // items of a beat, a cycle later
  word_t lane_word[Lanes];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) item_valid_q <= '0;
    else for (int unsigned i = 0; i < Lanes; i++) item_valid_q[i] <= take && in_i.keep[4*i+3];
    take_q <= rst_ni && take;
    if (take) begin
      item_q <= in_i.data;
      item_first_q <= first_q;
    end
    more_q       <= rst_ni && take_q;
    more_first_q <= item_first_q;
    more_items_q <= ($clog2(Lanes + 1))'($countones(item_valid_q));
    if (!rst_ni) items_o <= '0;
    else if (more_q) items_o <= (more_first_q ? '0 : items_o) + 64'(more_items_q);
  end

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    hll_lane #(
      .BucketsLog2(BucketsLog2)
    ) u_lane (
      .clk_i,
      .rst_ni,
      .item_i (item_q[l]),
      .valid_i(item_valid_q[l]),
      .seed_i (seed_q),
      .dump_i (read),
      .addr_i (addr_q),
      .word_o (lane_word[l])
    );
  end

  // ---------------------------------------------------------------- merged buckets
  // Groups of four lanes, then all.
  localparam int unsigned Groups = (Lanes + 3) / 4;
  word_t [Groups-1:0] group_q;
  word_t merged_q;
  logic [1:0] read_q;  // a word is read; it is grouped
  logic merged_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) read_q <= '0;
    else read_q <= {read_q[0], read && state_q == Dump};
    if (!rst_ni) merged_valid_q <= 1'b0;
    else merged_valid_q <= read_q[1];
    if (read_q[0]) begin
      for (int unsigned g = 0; g < Groups; g++) begin
        word_t word;
        word = '0;
        for (int unsigned l = 4 * g; l < 4 * g + 4 && l < Lanes; l++) begin
          for (int unsigned i = 0; i < Pack; i++) word[i] = max(word[i], lane_word[l][i]);
        end
        group_q[g] <= word;
      end
    end
    if (read_q[1]) begin
      word_t word;
      word = '0;
      for (int unsigned g = 0; g < Groups; g++) begin
        for (int unsigned i = 0; i < Pack; i++) word[i] = max(word[i], group_q[g][i]);
      end
      merged_q <= word;
    end
  end

  // ---------------------------------------------------------------- zeros, full, sum
  localparam int unsigned PartW = MaxRank + 4;
  logic [Pack/2-1:0][MaxRank+1:0] pair_q;
  logic [$clog2(Pack+1)-1:0] none_q, none2_q, full_q, full2_q;
  logic [PartW-1:0] part_q;
  logic [1:0] sum_valid_q;

  function automatic logic [MaxRank+1:0] weight(input logic [RankW-1:0] rank);
    return (MaxRank + 2)'(1) << (RankW'(MaxRank) - rank);
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) sum_valid_q <= '0;
    else sum_valid_q <= {sum_valid_q[0], merged_valid_q};
    if (merged_valid_q) begin
      logic [Pack-1:0] none, full;
      for (int unsigned i = 0; i < Pack; i++) begin
        none[i] = merged_q[i] == '0;
        full[i] = merged_q[i] == RankW'(MaxRank);
      end
      none_q <= ($clog2(Pack + 1))'($countones(none));
      full_q <= ($clog2(Pack + 1))'($countones(full));
      for (int unsigned i = 0; i < Pack / 2; i++) pair_q[i] <= weight(merged_q[2*i]) + weight(merged_q[2*i+1]);
    end
    if (sum_valid_q[0]) begin
      logic [PartW-1:0] sum;
      sum = '0;
      for (int unsigned i = 0; i < Pack / 2; i++) sum += PartW'(pair_q[i]);
      part_q  <= sum;
      none2_q <= none_q;
      full2_q <= full_q;
    end
    if (!rst_ni || state_q == Wait) begin
      sum_o   <= '0;
      zeros_o <= '0;
      full_o  <= '0;
    end else if (sum_valid_q[1]) begin
      sum_o   <= sum_o + 64'(part_q);
      zeros_o <= zeros_o + 32'(none2_q);
      full_o  <= full_o + 32'(full2_q);
    end
  end

  // ---------------------------------------------------------------- out
  // A word is read only if the FIFO has room for it and for those on their way.
  localparam int unsigned Depth = 16;
  logic [Pack-1:0][7:0] word, word_q;
  logic word_valid, word_ready;
  logic [$clog2(Depth+1)-1:0] held;

  // A cycle later than merged, so that the sum of all words is there when the last beat is.
  always_ff @(posedge clk_i) begin
    if (merged_valid_q) for (int unsigned i = 0; i < Pack; i++) word_q[i] <= 8'(merged_q[i]);
  end
  always_ff @(posedge clk_i) room_q <= held <= ($clog2(Depth + 1))'(Depth - 8);

  via_fifo #(
    .T    (logic [Pack-1:0][7:0]),
    .Depth(Depth)
  ) u_words (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (word_q),
    .s_valid_i(sum_valid_q[0]),
    .s_ready_o(),
    .m_o      (word),
    .m_valid_o(word_valid),
    .m_ready_i(word_ready),
    .count_o  (held)
  );

  logic out_valid_q;
  logic [WordAddrW-1:0] sent_q;  // words of the message put into beats
  logic last_q;
  logic [DataW-1:0] data_q;
  logic beat_full;

  // The word completes a beat.
  assign beat_full = Words == 1 || sent_q[WordW-1:0] == '1;
  assign word_ready = !out_valid_q || out_ready_i;
  assign out_valid_o = out_valid_q;
  assign sent = out_valid_q && out_ready_i && last_q;
  assign out_o = '{id: id_q, last: last_q, keep: '1, data: data_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q <= 1'b0;
      sent_q      <= '0;
    end else if (word_ready) begin
      out_valid_q <= word_valid && beat_full;
      if (word_valid) sent_q <= sent_q + 1'b1;
    end
    if (word_ready && word_valid) begin
      data_q <= DataW'({word, data_q} >> 64);
      last_q <= sent_q == '1;
    end
  end

endmodule
