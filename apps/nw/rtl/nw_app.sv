// SPDX-License-Identifier: Apache-2.0
//
// Scores of the alignments of every block of 64 bases of one string with every block of another.
//
//   AR: block of a, all of b, next block of a, all of b ...      R -> FIFO -> pairs -> grid -> scores -> FIFO -> AW, W
//
// In the memory: `rows` blocks of string a, 16 bytes each, filled up to a multiple of 1 KiB; `cols` blocks of string b; and from there on the
// scores, `cols` signed bytes for each block of a.
// Throughput: one pair a cycle, that is 16 bytes read and one written; between blocks of a one cycle more. Up to Tiles tiles of 64 pairs in
// flight. Latency: that of the memory and 130 cycles. Bursts of 1 KiB and 64 bytes do not cross 4 KiB. R and B never wait, W follows its AW
// without a gap. Order: the scores are written in the order of their addresses. Requires what the shell's bus does: reads complete in order.
// Misuse: a base that is not a multiple of 4096, no rows, `cols` that is zero or not a multiple of 64, or a memory too short for the scores
// ends the run at once with one error. Error responses are counted; scores of what could not be read are wrong.

module nw_app
  import via_pkg::*;
#(
  parameter int unsigned Tiles = 8  // in flight, from AR to B
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
  input  logic    [31:0] rows_i,          // blocks of string a
  input  logic    [31:0] cols_i,          // blocks of string b
  input  logic           start_i,         // one-cycle pulse; the inputs above are sampled with it
  output logic           done_o,          // level: no run is in progress
  output logic    [31:0] errors_o,        // bursts with an error, and 1 for wrong parameters
  output logic    [63:0] cycles_o,        // duration of the last run
  output logic           irq_o            // one-cycle pulse: the run has ended
);

  localparam bit TilesOk = param_in("nw_app Tiles", Tiles, 1, 64);
  localparam bit DataWOk = param_in("VIA_DATA_W of nw_app", DataW, 128, 512);

  localparam int unsigned Blocks = DataW / 128;  // of a beat
  localparam int unsigned BlockW = Blocks > 1 ? $clog2(Blocks) : 1;
  localparam int unsigned TileBeats = 1024 / StrbW;
  localparam int unsigned ScoreBeats = 64 / StrbW;
  localparam int unsigned CountW = $clog2(Tiles + 1);

  function automatic axi_ax_t burst(input logic [63:0] addr, input int unsigned beats);
    return '{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: 8'(beats - 1), addr: addr};
  endfunction

  // ---------------------------------------------------------------- parameters, sampled at the start
  logic [63:0] base_q, bytes_q, scores_q, need_q;
  logic [31:0] rows_q, cols_q;
  logic [36:0] b_at_q;  // offset of string b
  logic sample, go, bad, finish;

  always_ff @(posedge clk_i) begin
    if (sample) begin
      base_q  <= base_i;
      bytes_q <= bytes_i;
      rows_q  <= rows_i;
      cols_q  <= cols_i;
    end
    scores_q <= 64'(rows_q) * 64'(cols_q);
    b_at_q   <= {27'(rows_q[31:6]) + 27'(rows_q[5:0] != '0), 10'b0};
    need_q   <= scores_q + 64'(b_at_q) + 64'({cols_q, 4'b0});
  end
  assign bad = base_q[11:0] != '0 || rows_q == '0 || cols_q == '0 || cols_q[5:0] != '0 || need_q > bytes_q;

  // ---------------------------------------------------------------- reads
  logic more_q;  // a burst is to be sent
  logic head_q;  // it is that of a block of a
  logic [31:0] row_q;
  logic [25:0] tile_q;
  logic [63:0] a_addr_q, b_addr_q;
  logic [CountW-1:0] flying_q;  // tiles
  logic ar_valid_q, send, last_tile, answered;
  axi_ax_t ar_q;

  assign send = more_q && (!ar_valid_q || mem_ar_ready_i) && (head_q || flying_q != CountW'(Tiles));
  assign last_tile = tile_q == cols_q[31:6] - 1'b1;
  assign mem_ar_o = ar_q;
  assign mem_ar_valid_o = ar_valid_q;
  assign answered = mem_b_valid_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      more_q     <= 1'b0;
      ar_valid_q <= 1'b0;
      flying_q   <= '0;
    end else begin
      if (go) more_q <= 1'b1;
      else if (send && !head_q && last_tile && row_q == rows_q - 1'b1) more_q <= 1'b0;
      if (send) ar_valid_q <= 1'b1;
      else if (mem_ar_ready_i) ar_valid_q <= 1'b0;
      if ((send && !head_q) != answered) flying_q <= answered ? flying_q - 1'b1 : flying_q + 1'b1;
    end
    if (go) begin
      head_q   <= 1'b1;
      row_q    <= '0;
      tile_q   <= '0;
      a_addr_q <= base_q;
      b_addr_q <= base_q + 64'(b_at_q);
    end else if (send) begin
      head_q <= !head_q && last_tile;
      if (!head_q) begin
        tile_q   <= last_tile ? '0 : tile_q + 1'b1;
        b_addr_q <= last_tile ? base_q + 64'(b_at_q) : b_addr_q + 64'd1024;
        if (last_tile) begin
          row_q    <= row_q + 1'b1;
          a_addr_q <= a_addr_q + 64'd16;
        end
      end
    end
    if (send) ar_q <= head_q ? burst(a_addr_q & ~64'(StrbW - 1), 1) : burst(b_addr_q, TileBeats);
  end

  // ---------------------------------------------------------------- pairs
  // The FIFO has room for all beats in flight, and one beat of string a more than there are tiles.
  logic [Blocks-1:0][127:0] beat;
  logic beat_valid, beat_pop, pair;
  logic expect_q;  // the next beat is of string a
  logic [BlockW-1:0] a_block_q, block_q;
  logic [ 31:0] left_q;  // blocks of b in this row
  logic [127:0] a_q;

  via_fifo #(
    .T    (logic [DataW-1:0]),
    .Depth(Tiles * (TileBeats + 1) + 1),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (mem_r_i.data),
    .s_valid_i(mem_r_valid_i),
    .s_ready_o(),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_pop),
    .count_o  ()
  );

  assign mem_r_ready_o = 1'b1;
  assign pair = beat_valid && !expect_q;
  assign beat_pop = expect_q || Blocks == 1 || block_q == BlockW'(Blocks - 1);

  always_ff @(posedge clk_i) begin
    if (go) begin
      expect_q  <= 1'b1;
      a_block_q <= '0;
      block_q   <= '0;
    end else if (beat_valid) begin
      if (expect_q) begin
        a_q       <= beat[a_block_q];
        a_block_q <= Blocks == 1 ? '0 : a_block_q + 1'b1;
        left_q    <= cols_q;
        expect_q  <= 1'b0;
      end else begin
        block_q  <= Blocks == 1 ? '0 : block_q + 1'b1;
        left_q   <= left_q - 1'b1;
        expect_q <= left_q == 32'd1;
      end
    end
  end

  logic [7:0] score;
  logic score_valid;

  nw_grid u_grid (
    .clk_i,
    .rst_ni,
    .a_i    (a_q),
    .b_i    (beat[block_q]),
    .valid_i(pair),
    .score_o(score),
    .valid_o(score_valid)
  );

  // ---------------------------------------------------------------- scores
  logic [DataW-1:0] scores_beat_q, w_data;
  logic [5:0] got_q;  // scores of this tile
  logic full_q, tile_done_q, w_valid, w_take;
  logic [CountW-1:0] whole_q;  // tiles in the FIFO and not announced
  logic [3:0] w_left_q;  // beats of the announced one
  logic [63:0] aw_addr_q;
  logic aw_take;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      got_q       <= '0;
      full_q      <= 1'b0;
      tile_done_q <= 1'b0;
    end else begin
      if (score_valid) got_q <= got_q + 1'b1;
      full_q      <= score_valid && got_q[BeatLog2-1:0] == '1;
      tile_done_q <= score_valid && got_q == '1;
    end
    if (score_valid) scores_beat_q <= {score, scores_beat_q[DataW-1:8]};
  end

  via_fifo #(
    .T    (logic [DataW-1:0]),
    .Depth(Tiles * ScoreBeats)
  ) u_scores (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (scores_beat_q),
    .s_valid_i(full_q),
    .s_ready_o(),
    .m_o      (w_data),
    .m_valid_o(w_valid),
    .m_ready_i(w_take),
    .count_o  ()
  );

  assign mem_aw_valid_o = whole_q != '0 && w_left_q == '0;
  assign mem_aw_o = burst(aw_addr_q, ScoreBeats);
  assign aw_take = mem_aw_valid_o && mem_aw_ready_i;
  assign mem_w_valid_o = w_left_q != '0 && w_valid;
  assign mem_w_o = '{last: w_left_q == 4'd1, strb: '1, data: w_data};
  assign w_take = mem_w_ready_i && w_left_q != '0;
  assign mem_b_ready_o = 1'b1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      whole_q  <= '0;
      w_left_q <= '0;
    end else begin
      if (tile_done_q != aw_take) whole_q <= aw_take ? whole_q - 1'b1 : whole_q + 1'b1;
      if (aw_take) w_left_q <= 4'(ScoreBeats);
      else if (w_take && w_valid) w_left_q <= w_left_q - 1'b1;
    end
    if (go) aw_addr_q <= base_q + 64'(b_at_q) + 64'({cols_q, 4'b0});
    else if (aw_take) aw_addr_q <= aw_addr_q + 64'd64;
  end

  // ---------------------------------------------------------------- run
  logic r_bad_q, r_error;
  assign r_error = mem_r_valid_i && mem_r_i.last && (mem_r_i.resp[1] || r_bad_q);
  assign finish  = !more_q && flying_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) r_bad_q <= 1'b0;
    else if (mem_r_valid_i) r_bad_q <= !mem_r_i.last && (r_bad_q || mem_r_i.resp[1]);
  end

  mem_run #(
    .Setup(3)
  ) u_run (
    .clk_i,
    .rst_ni,
    .start_i,
    .sample_o(sample),
    .bad_i   (bad),
    .go_o    (go),
    .run_o   (),
    .finish_i(finish),
    .errors_i(3'(r_error) + 3'(mem_b_valid_i && mem_b_i.resp[1])),
    .done_o,
    .irq_o,
    .errors_o,
    .cycles_o
  );

endmodule
