// SPDX-License-Identifier: Apache-2.0
//
// Counters of a queue engine, its last error, and the stages of the most recent notification that found it idle. Map: README.md.
//
// Latency: read data one cycle after the address. A write to word 0 clears everything but the last error's cause.
// A stage that does not occur (no payload, no interrupt wanted) is left out: its time belongs to the next one.

module via_vq_stat
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic    [      63:0]      time_i,
  input  logic    [       9:0]      addr_i,
  input  logic                      write_i,
  output logic    [      31:0]      rdata_o,
  // how many in this cycle, in the order of the map from word 6 on
  input  logic    [      13:0][1:0] inc_i,
  input  logic    [      31:0]      bytes_rd_i,        // of a request
  input  logic                      bytes_rd_valid_i,
  input  logic    [      31:0]      bytes_wr_i,        // of a used chain
  input  logic                      bytes_wr_valid_i,
  input  logic                      error_i,
  input  vq_err_e                   error_cause_i,
  input  logic    [QueueW-1:0]      error_queue_i,
  // the trace: begins with a notification, then the ends of stages
  input  logic                      begin_i,
  input  logic    [       4:0]      stage_i,           // chain found, payload complete, answer, entries visible, interrupt
  // within the trace: a whole message has gone to the user side, the first beat of one has come from there
  input  logic                      user_out_i,
  input  logic                      user_in_i,
  output logic                      still_o
);

  localparam int unsigned Counters = 14;
  localparam int unsigned Stages = 5;

  logic clear;
  assign clear = write_i && addr_i == '0;

  // ---------------------------------------------------------------- counters
  logic [Counters-1:0][31:0] count_q;
  logic [63:0] rd_q, wr_q;
  logic [15:0] errors_q;
  logic [3:0] cause_q;
  logic [QueueW-1:0] err_queue_q;

  for (genvar i = 0; i < Counters; i++) begin : gen_count
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear) count_q[i] <= '0;
      else if (inc_i[i] != '0) count_q[i] <= count_q[i] + 32'(inc_i[i]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear) begin
      rd_q     <= '0;
      wr_q     <= '0;
      errors_q <= '0;
    end else begin
      if (bytes_rd_valid_i) rd_q <= rd_q + 64'(bytes_rd_i);
      if (bytes_wr_valid_i) wr_q <= wr_q + 64'(bytes_wr_i);
      if (error_i && errors_q != '1) errors_q <= errors_q + 1'b1;
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
  logic [Stages-1:0] seen_q, hit;
  logic [Stages:0][63:0] stamp_q;  // [0]: the notification
  logic [31:0] last_q, span;
  logic [Stages-1:0][31:0] min_q, max_q, n_q;
  logic [Stages-1:0][63:0] sum_q;

  // Stages end in their order; of several that end in one cycle the later ones take no time.
  assign span = time_i[31:0] - last_q;
  for (genvar s = 0; s < Stages; s++) begin : gen_stage
    logic first;
    logic [31:0] took;
    assign hit[s] = tracing_q && stage_i[s] && (seen_q >> s) == '0;
    if (s == 0) begin : gen_first
      assign first = 1'b1;
    end else begin : gen_later
      assign first = hit[s-1:0] == '0;
    end
    assign took = first ? span : '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear) begin
        n_q[s]   <= '0;
        sum_q[s] <= '0;
        min_q[s] <= '1;
        max_q[s] <= '0;
      end else if (hit[s]) begin
        n_q[s]   <= n_q[s] + 1'b1;
        sum_q[s] <= sum_q[s] + 64'(took);
        if (took < min_q[s]) min_q[s] <= took;
        if (took > max_q[s]) max_q[s] <= took;
      end
    end
    always_ff @(posedge clk_i) if (hit[s]) stamp_q[s+1] <= time_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear) begin
      tracing_q <= 1'b0;
      seen_q    <= '0;
    end else if (begin_i) begin
      tracing_q <= 1'b1;
      seen_q    <= '0;
    end else if (hit != '0) begin
      tracing_q <= !hit[Stages-1];
      seen_q    <= seen_q | hit;
    end
  end
  always_ff @(posedge clk_i) begin
    if (begin_i) stamp_q[0] <= time_i;
    if (begin_i || hit != '0) last_q <= time_i[31:0];
  end

  // ---------------------------------------------------------------- time of the user side within the trace
  logic user_q, user_hit;
  logic [31:0] user_at_q, user_took, user_n_q, user_min_q, user_max_q;
  logic [63:0] user_sum_q;
  assign user_hit  = tracing_q && user_q && user_in_i;
  assign user_took = time_i[31:0] - user_at_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear) begin
      user_q     <= 1'b0;
      user_n_q   <= '0;
      user_sum_q <= '0;
      user_min_q <= '1;
      user_max_q <= '0;
    end else if (user_out_i && tracing_q) begin
      user_q <= 1'b1;
    end else if (user_hit || begin_i) begin
      user_q <= 1'b0;
      if (user_hit) begin
        user_n_q   <= user_n_q + 1'b1;
        user_sum_q <= user_sum_q + 64'(user_took);
        if (user_took < user_min_q) user_min_q <= user_took;
        if (user_took > user_max_q) user_max_q <= user_took;
      end
    end
  end
  always_ff @(posedge clk_i) if (user_out_i && tracing_q) user_at_q <= time_i[31:0];

  // ---------------------------------------------------------------- read
  logic [ 6:0] word;
  logic [31:0] data;
  logic [2:0] at, stamp;
  assign word = addr_i[6:0];
  assign at = 3'((word - 7'd48) >> 3);
  assign stamp = 3'((word - 7'd32) >> 1);

  always_comb begin
    data = '0;
    if (addr_i[9:7] == '0) begin
      if (word == 7'd0) data = 32'h5651_0001;
      else if (word == 7'd1) data = {errors_q, 4'h0, 4'(err_queue_q), 4'h0, cause_q};
      else if (word == 7'd2) data = rd_q[31:0];
      else if (word == 7'd3) data = rd_q[63:32];
      else if (word == 7'd4) data = wr_q[31:0];
      else if (word == 7'd5) data = wr_q[63:32];
      else if (word < 7'd6 + 7'(Counters)) data = count_q[4'(word-7'd6)];
      else if (word >= 7'd32 && word < 7'd44) data = word[0] ? stamp_q[stamp][63:32] : stamp_q[stamp][31:0];
      else if (word == 7'd44) data = 32'(seen_q);
      else if (word >= 7'd48 && word < 7'd48 + 7'(8 * Stages)) begin
        unique case (word[2:0])
          3'd0: data = n_q[at];
          3'd1: data = min_q[at];
          3'd2: data = max_q[at];
          3'd4: data = sum_q[at][31:0];
          3'd5: data = sum_q[at][63:32];
          default: data = '0;
        endcase
      end else if (word >= 7'd88 && word < 7'd96) begin
        unique case (word[2:0])
          3'd0: data = user_n_q;
          3'd1: data = user_min_q;
          3'd2: data = user_max_q;
          3'd4: data = user_sum_q[31:0];
          3'd5: data = user_sum_q[63:32];
          default: data = '0;
        endcase
      end
    end
  end
  always_ff @(posedge clk_i) if (rdata_o != data) rdata_o <= data;

  assign still_o = !write_i && inc_i == '0 && !error_i && !begin_i && hit == '0 && !user_out_i && !user_hit && rdata_o == data;

endmodule
