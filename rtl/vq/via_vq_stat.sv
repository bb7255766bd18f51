// SPDX-License-Identifier: Apache-2.0
//
// Counters of a queue engine, its last error, and a trace of the most recent notification that found the engine idle. Map: README.md.
//
// Throughput: all inputs may change in every cycle. Latency: read data two cycles after the address; events are counted four cycles later.
// A write to word 0 clears everything except the cause of the last error. Misuse: writes to other words do nothing.
// A stage that does not occur (no payload, no interrupt wanted) is left out: its time belongs to the next stage.

module via_vq_stat
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic    [      63:0]      time_i,            // card time
  input  logic    [       9:0]      addr_i,            // word address
  input  logic                      write_i,           // pulse: write
  output logic    [      31:0]      rdata_o,           // word read, two cycles after addr_i
  // increments in this cycle, in the order of the map from word 6 on
  input  logic    [      13:0][1:0] inc_i,             // 0 to 3 each
  input  logic    [      31:0]      bytes_rd_i,        // readable bytes of a request
  input  logic                      bytes_rd_valid_i,  // pulse
  input  logic    [      31:0]      bytes_wr_i,        // written bytes of a used chain
  input  logic                      bytes_wr_valid_i,  // pulse
  input  logic                      error_i,           // pulse: a queue has stopped
  input  vq_err_e                   error_cause_i,     // with error_i: why
  input  logic    [QueueW-1:0]      error_queue_i,     // with error_i: which queue
  // trace: begins with a notification, then the ends of the stages
  input  logic                      begin_i,           // pulse: a notification starts the trace
  input  logic    [       4:0]      stage_i,           // pulses: chain found, payload complete, response, entries visible, interrupt
  input  logic                      user_out_i,        // pulse, within the trace: a whole message has gone to the user side
  input  logic                      user_in_i,         // pulse: one has come from there
  output logic                      still_o            // level: nothing moves unless an input changes
);

  localparam int unsigned Counters = 14;
  localparam int unsigned Stages = 5;

  // ---------------------------------------------------------------- events of the previous cycle
  logic [Counters-1:0][1:0] inc_q;
  logic [31:0] bytes_rd_q, bytes_wr_q;
  logic bytes_rd_valid_q, bytes_wr_valid_q, error_q, begin_q, user_out_q, user_in_q, clear_q, clear_late_q;
  logic [Stages-1:0] stage_q;
  logic [63:0] time_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {inc_q, bytes_rd_valid_q, bytes_wr_valid_q, error_q, begin_q, user_out_q, user_in_q, stage_q, clear_q, clear_late_q} <= '0;
    end else begin
      inc_q            <= inc_i;
      bytes_rd_valid_q <= bytes_rd_valid_i;
      bytes_wr_valid_q <= bytes_wr_valid_i;
      error_q          <= error_i;
      begin_q          <= begin_i;
      user_out_q       <= user_out_i;
      user_in_q        <= user_in_i;
      stage_q          <= stage_i;
      clear_q          <= write_i && addr_i == '0;
      clear_late_q     <= clear_q;
    end
  end
  always_ff @(posedge clk_i) begin
    bytes_rd_q <= bytes_rd_i;
    bytes_wr_q <= bytes_wr_i;
    time_q     <= time_i;
  end

  // ---------------------------------------------------------------- counters
  logic [Counters-1:0][31:0] count_q;
  logic [63:0] rd_q, wr_q;
  logic [15:0] errors_q;
  logic [3:0] cause_q;
  logic [QueueW-1:0] err_queue_q;

  for (genvar i = 0; i < Counters; i++) begin : gen_count
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_q) count_q[i] <= '0;
      else if (inc_q[i] != '0) count_q[i] <= count_q[i] + 32'(inc_q[i]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_q) begin
      rd_q     <= '0;
      wr_q     <= '0;
      errors_q <= '0;
    end else begin
      if (bytes_rd_valid_q) rd_q <= rd_q + 64'(bytes_rd_q);
      if (bytes_wr_valid_q) wr_q <= wr_q + 64'(bytes_wr_q);
      if (error_q && errors_q != '1) errors_q <= errors_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cause_q     <= '0;
      err_queue_q <= '0;
    end else if (error_i) begin
      cause_q     <= error_cause_i;
      err_queue_q <= error_queue_i;
    end
  end

  // ---------------------------------------------------------------- trace
  logic tracing_q;
  logic [Stages-1:0] seen_q, hit, first;
  logic [Stages:0][63:0] stamp_q;  // [0]: the notification
  logic [31:0] last_q;
  logic [Stages-1:0][31:0] min_q, max_q, n_q;
  logic [Stages-1:0][63:0] sum_q;
  // Entered a cycle later: the time that a stage took.
  logic [Stages-1:0] hit_q, first_q;
  logic [31:0] span_q;

  // Stages end in order; if several end in one cycle the later ones take no time.
  always_ff @(posedge clk_i) begin
    hit_q   <= rst_ni ? hit : '0;
    first_q <= first;
    span_q  <= time_q[31:0] - last_q;
  end
  for (genvar s = 0; s < Stages; s++) begin : gen_stage
    logic [31:0] took;
    assign hit[s] = tracing_q && stage_q[s] && (seen_q >> s) == '0;
    if (s == 0) begin : gen_first
      assign first[s] = 1'b1;
    end else begin : gen_later
      assign first[s] = hit[s-1:0] == '0;
    end
    assign took = first_q[s] ? span_q : '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_late_q) begin
        n_q[s]   <= '0;
        sum_q[s] <= '0;
        min_q[s] <= '1;
        max_q[s] <= '0;
      end else if (hit_q[s]) begin
        n_q[s]   <= n_q[s] + 1'b1;
        sum_q[s] <= sum_q[s] + 64'(took);
        if (took < min_q[s]) min_q[s] <= took;
        if (took > max_q[s]) max_q[s] <= took;
      end
    end
    always_ff @(posedge clk_i) if (hit[s]) stamp_q[s+1] <= time_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_q) begin
      tracing_q <= 1'b0;
      seen_q    <= '0;
    end else if (begin_q) begin
      tracing_q <= 1'b1;
      seen_q    <= '0;
    end else if (hit != '0) begin
      tracing_q <= !hit[Stages-1];
      seen_q    <= seen_q | hit;
    end
  end
  always_ff @(posedge clk_i) begin
    if (begin_q) stamp_q[0] <= time_q;
    if (begin_q || hit != '0) last_q <= time_q[31:0];
  end

  // ---------------------------------------------------------------- time of the user side within the trace
  logic user_q, user_hit, user_hit_q;
  logic [31:0] user_at_q, user_took_q, user_n_q, user_min_q, user_max_q;
  logic [63:0] user_sum_q;
  assign user_hit = tracing_q && user_q && user_in_q && !user_out_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_q) user_q <= 1'b0;
    else if (user_out_q && tracing_q) user_q <= 1'b1;
    else if (user_hit || begin_q) user_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    user_hit_q  <= user_hit && rst_ni;
    user_took_q <= time_q[31:0] - user_at_q;
    if (user_out_q && tracing_q) user_at_q <= time_q[31:0];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_late_q) begin
      user_n_q   <= '0;
      user_sum_q <= '0;
      user_min_q <= '1;
      user_max_q <= '0;
    end else if (user_hit_q) begin
      user_n_q   <= user_n_q + 1'b1;
      user_sum_q <= user_sum_q + 64'(user_took_q);
      if (user_took_q < user_min_q) user_min_q <= user_took_q;
      if (user_took_q > user_max_q) user_max_q <= user_took_q;
    end
  end

  // ---------------------------------------------------------------- read: first the word of each part, then the part
  logic [6:0] word, word_q;
  logic within_q;
  logic [31:0] count, counter_q, stamps_q, stages_q, users_q;
  logic [2:0] at, stamp;
  assign word  = addr_i[6:0];
  assign at    = word[5:3] - 3'd6;  // stages begin at word 48
  assign stamp = word[3:1];  // stamps at word 32

  always_comb begin
    unique case (word[4:0])
      5'd0: count = 32'h5651_0001;
      5'd1: count = {errors_q, 4'h0, 4'(err_queue_q), 4'h0, cause_q};
      5'd2: count = rd_q[31:0];
      5'd3: count = rd_q[63:32];
      5'd4: count = wr_q[31:0];
      5'd5: count = wr_q[63:32];
      default: begin
        count = '0;
        for (int unsigned i = 0; i < Counters; i++) if (word[4:0] == 5'(6 + i)) count = count_q[i];
      end
    endcase
  end

  function automatic logic [31:0] summary(input logic [2:0] what, input logic [31:0] n, input logic [31:0] least, input logic [31:0] most,
                                          input logic [63:0] sum);
    unique case (what)
      3'd0: return n;
      3'd1: return least;
      3'd2: return most;
      3'd4: return sum[31:0];
      3'd5: return sum[63:32];
      default: return '0;
    endcase
  endfunction

  always_ff @(posedge clk_i) begin
    word_q    <= word;
    within_q  <= addr_i[9:7] == '0;
    counter_q <= count;
    if (word[3:2] == 2'b11) stamps_q <= (word[1:0] == '0) ? 32'(seen_q) : '0;
    else stamps_q <= word[0] ? stamp_q[stamp][63:32] : stamp_q[stamp][31:0];
    stages_q <= summary(word[2:0], n_q[at], min_q[at], max_q[at], sum_q[at]);
    users_q  <= summary(word[2:0], user_n_q, user_min_q, user_max_q, user_sum_q);
  end
  always_ff @(posedge clk_i) begin
    if (!within_q) rdata_o <= '0;
    else if (word_q < 7'd32) rdata_o <= counter_q;
    else if (word_q < 7'd48) rdata_o <= stamps_q;
    else if (word_q < 7'd88) rdata_o <= stages_q;
    else if (word_q < 7'd96) rdata_o <= users_q;
    else rdata_o <= '0;
  end

  // An event reaches rdata_o four cycles later.
  logic [3:0] stirred_q;
  logic stirs;
  assign stirs = write_i || inc_i != '0 || error_i || begin_i || stage_i != stage_q || hit != '0 || user_out_i || user_in_i != user_in_q ||
                 user_hit || addr_i[6:0] != word_q || (addr_i[9:7] == '0) != within_q;
  always_ff @(posedge clk_i) stirred_q <= rst_ni ? {stirred_q[2:0], stirs} : '0;
  assign still_o = !stirs && stirred_q == '0;

endmodule
