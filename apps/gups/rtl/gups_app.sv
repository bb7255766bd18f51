// SPDX-License-Identifier: Apache-2.0
//
// Random updates of a table, as RandomAccess of the HPC Challenge does: `updates` times x = 2x mod P, table[x mod words] ^= x.
//
//   x -> held while its word is in flight -+-> AR            R -> ^ x -> FIFO -+-> AW
//                                          +-> FIFO of addresses and x         +-> W       B -> the word may be used again
//
// P is the polynomial x^64 + x^2 + x + 1 over GF(2). The table is as many 64-bit words, a power of two, as fit into `bytes`; memory behind it
// is not accessed. An update reads the beat with its word and writes only the word.
// Throughput: one update a cycle, up to Outstanding in flight: at most Outstanding updates in the time from AR to B. Latency: that of the
// memory. R and B never wait, W follows its AW without a gap. Order: an update waits, and all behind it, while an earlier one of the same
// word is in flight; others complete as the bus does. So no update is lost, and the table is that of updates made one after the other.
// Requires what the shell's bus does: reads and writes of one id complete in order, and a read after B of a write sees it.
// Misuse: a base that is not a multiple of 64, a memory shorter than 8 bytes or a seed of zero ends the run at once with one error. A
// response with an error counts as one; a word that could not be read is not written.

module gups_app
  import via_pkg::*;
#(
  parameter int unsigned Outstanding = 128  // updates in flight, a power of two
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  output axi_ax_t        mem_ar_o,
  output logic           mem_ar_valid_o,
  input  logic           mem_ar_ready_i,
  input  axi_r_t         mem_r_i,
  input  logic           mem_r_valid_i,
  output logic           mem_r_ready_o,
  output axi_ax_t        mem_aw_o,
  output logic           mem_aw_valid_o,
  input  logic           mem_aw_ready_i,
  output axi_w_t         mem_w_o,
  output logic           mem_w_valid_o,
  input  logic           mem_w_ready_i,
  input  axi_b_t         mem_b_i,
  input  logic           mem_b_valid_i,
  output logic           mem_b_ready_o,
  input  logic    [63:0] base_i,          // address of the memory
  input  logic    [63:0] bytes_i,         // its size
  input  logic    [63:0] updates_i,       // zero: four for each word
  input  logic    [63:0] seed_i,          // x before the first update, not zero
  input  logic           start_i,         // one-cycle pulse; the inputs above are sampled with it
  output logic           done_o,          // level: no run is in progress
  output logic    [63:0] held_o,          // updates that waited for an earlier one of the same word
  output logic    [31:0] errors_o,        // error responses, and 1 for wrong parameters
  output logic    [63:0] cycles_o,        // duration of the last run
  output logic           irq_o            // one-cycle pulse: the run has ended
);

  localparam bit OutstandingOk = param_pow2("gups_app Outstanding", Outstanding, 2, 1024);

  localparam int unsigned IndexW = VaW - 3;
  localparam int unsigned Words = DataW / 64;  // of a beat
  localparam int unsigned WordW = Words > 1 ? $clog2(Words) : 1;

  typedef struct packed {
    logic [63:0] addr;
    logic [63:0] x;
  } update_t;

  typedef struct packed {
    logic [63:0] addr;
    logic [63:0] data;
  } result_t;

  typedef struct packed {
    logic [WordW-1:0] word;
    logic [63:0]      data;
  } write_t;

  function automatic logic [WordW-1:0] word_of(input logic [2:0] index);
    return Words > 1 ? WordW'(index) : '0;
  endfunction

  // ---------------------------------------------------------------- parameters, sampled at the start
  logic [63:0] base_q, bytes_q, updates_q, seed_q;
  logic [IndexW:0] words, table_words;
  logic [IndexW-1:0] mask_q;
  logic sample, go, bad, finish;

  always_comb begin
    // All bits below the highest one.
    words = bytes_q[63:VaW] != '0 ? '1 : {1'b0, bytes_q[VaW-1:3]};
    for (int unsigned k = 1; k <= IndexW; k *= 2) words |= words >> k;
  end
  assign table_words = words & ~(words >> 1);
  assign bad = base_q[5:0] != '0 || words == '0 || seed_q == '0;

  always_ff @(posedge clk_i) begin
    if (sample) begin
      base_q    <= base_i;
      bytes_q   <= bytes_i;
      updates_q <= updates_i;
      seed_q    <= seed_i;
    end
    if (go) mask_q <= words[IndexW:1];
  end

  // ---------------------------------------------------------------- the sequence
  // x_q is the value of the update behind the current one.
  function automatic logic [63:0] step(input logic [63:0] x);
    return x << 1 ^ (x[63] ? 64'd7 : 64'd0);
  endfunction

  logic more_q;  // there is one
  logic current_q;  // there is a current one
  logic fresh_q;  // it is the first cycle of it
  logic [63:0] x_q, left_q;
  update_t update_q;
  logic [IndexW-1:0] index;
  logic load, take, retire, held, full, empty;

  assign index = x_q[IndexW-1:0] & mask_q;
  assign load  = more_q && (!current_q || take);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      more_q    <= 1'b0;
      current_q <= 1'b0;
    end else begin
      if (go) more_q <= 1'b1;
      else if (load) more_q <= left_q != 64'd1;
      if (load) current_q <= 1'b1;
      else if (take) current_q <= 1'b0;
    end
    fresh_q <= load;
    if (go) begin
      x_q    <= step(seed_q);
      left_q <= updates_q == '0 ? 64'(table_words) << 2 : updates_q;
    end else if (load) begin
      x_q    <= step(x_q);
      left_q <= left_q - 1'b1;
    end
    if (load) update_q <= '{addr: base_q + 64'({index, 3'b0}), x: x_q};
  end

  gups_hold #(
    .Entries(Outstanding),
    .IndexW (IndexW)
  ) u_hold (
    .clk_i,
    .rst_ni,
    .next_i  (index),
    .load_i  (load),
    .take_i  (take),
    .retire_i(retire),
    .held_o  (held),
    .full_o  (full),
    .empty_o (empty)
  );

  // ---------------------------------------------------------------- reads
  logic ar_valid_q;
  logic [63:0] ar_addr_q;
  update_t read;  // the oldest update whose word has not been read

  function automatic axi_ax_t access (input logic [63:0] addr);
    return '{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: '0, addr: addr & ~64'(StrbW - 1)};
  endfunction

  assign take = current_q && !held && !full && (!ar_valid_q || mem_ar_ready_i);
  assign mem_ar_valid_o = ar_valid_q;
  assign mem_ar_o = access (ar_addr_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ar_valid_q <= 1'b0;
    else if (take) ar_valid_q <= 1'b1;
    else if (mem_ar_ready_i) ar_valid_q <= 1'b0;
    if (take) ar_addr_q <= update_q.addr;
  end

  // As deep as there are updates in flight, so never full; the same holds for the FIFOs below.
  via_fifo #(
    .T    (update_t),
    .Depth(Outstanding)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (update_q),
    .s_valid_i(take),
    .s_ready_o(),
    .m_o      (read),
    .m_valid_o(),
    .m_ready_i(mem_r_valid_i),
    .count_o  ()
  );

  logic r_valid_q, r_error_q;
  result_t result_q;
  assign mem_r_ready_o = 1'b1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) r_valid_q <= 1'b0;
    else r_valid_q <= mem_r_valid_i;
    if (mem_r_valid_i) begin
      r_error_q <= mem_r_i.resp[1];
      result_q  <= '{addr: read.addr, data: mem_r_i.data[64*word_of(read.addr[5:3])+:64] ^ read.x};
    end
  end

  // ---------------------------------------------------------------- writes
  result_t write;
  write_t  w_next;
  logic write_valid, write_ready, w_ready, w_next_valid, w_pop, w_valid_q;

  via_fifo #(
    .T    (result_t),
    .Depth(Outstanding)
  ) u_results (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (result_q),
    .s_valid_i(r_valid_q && !r_error_q),
    .s_ready_o(),
    .m_o      (write),
    .m_valid_o(write_valid),
    .m_ready_i(write_ready),
    .count_o  ()
  );

  assign mem_aw_valid_o = write_valid && w_ready;
  assign mem_aw_o = access (write.addr);
  assign write_ready = mem_aw_ready_i && w_ready;

  via_fifo #(
    .T    (write_t),
    .Depth(16)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{word: word_of(write.addr[5:3]), data: write.data}),
    .s_valid_i(write_valid && write_ready),
    .s_ready_o(w_ready),
    .m_o      (w_next),
    .m_valid_o(w_next_valid),
    .m_ready_i(w_pop),
    .count_o  ()
  );

  logic [StrbW-1:0] strb_q;
  logic [63:0] data_q;
  assign w_pop = !w_valid_q || mem_w_ready_i;
  assign mem_w_valid_o = w_valid_q;
  assign mem_w_o = '{last: 1'b1, strb: strb_q, data: {Words{data_q}}};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) w_valid_q <= 1'b0;
    else if (w_pop) w_valid_q <= w_next_valid;
    if (w_pop) begin
      strb_q <= StrbW'(8'hff) << {w_next.word, 3'b0};
      data_q <= w_next.data;
    end
  end

  // ---------------------------------------------------------------- responses
  // Updates are retired in order; one that could not be read has no B.
  logic order_valid, order_skip;
  logic [$clog2(Outstanding+1)-1:0] responded_q;  // B of updates not yet retired
  assign mem_b_ready_o = 1'b1;
  assign retire = order_valid && (order_skip || responded_q != '0);

  via_fifo #(
    .T    (logic),
    .Depth(Outstanding)
  ) u_order (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (r_error_q),
    .s_valid_i(r_valid_q),
    .s_ready_o(),
    .m_o      (order_skip),
    .m_valid_o(order_valid),
    .m_ready_i(retire),
    .count_o  ()
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) responded_q <= '0;
    else if (mem_b_valid_i != (retire && !order_skip)) responded_q <= mem_b_valid_i ? responded_q + 1'b1 : responded_q - 1'b1;
  end

  // ---------------------------------------------------------------- run
  assign finish = !more_q && !current_q && empty;

  mem_run u_run (
    .clk_i,
    .rst_ni,
    .start_i,
    .sample_o(sample),
    .bad_i   (bad),
    .go_o    (go),
    .run_o   (),
    .finish_i(finish),
    .errors_i(3'(r_valid_q && r_error_q) + 3'(mem_b_valid_i && mem_b_i.resp[1])),
    .done_o,
    .irq_o,
    .errors_o,
    .cycles_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || sample) held_o <= '0;
    else if (current_q && fresh_q && held) held_o <= held_o + 1'b1;
  end

endmodule
