// SPDX-License-Identifier: Apache-2.0
//
// Meters what a slot requests of card and host memory, between its MMU and the crossbar: counts it, says while it goes first, and holds addresses
// back that are beyond the slot's rate or in-flight cap (docs/design.md, "Classes, rates and caps").
//
// The rate is a token bucket: it gains `rate` / 256 beats a cycle up to `depth`, and every burst, read or written, takes its beats from it when its
// address passes. Below zero the slot is no longer of the class that goes first, and with `limit` no address passes. As this takes three
// cycles, up to two bursts each way follow the one that empties the bucket; they are paid back before the next one passes.
// The cap is for each way by itself: an address passes while less than `cap` beats were under way two cycles before, so at most `cap` - 1 beats
// and two bursts are.
// Without rate and cap everything passes in the same cycle.
// Throughput: an address each way and cycle. Latency: none. Order: kept. Misuse: none, both sides are the shell's.

module via_slot_meter
  import via_pkg::*;
#(
  parameter int unsigned Flight = 256  // bursts in flight each way, at most
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  sched_cfg_t          cfg_i,
  input  logic         [31:0] time_i,        // card time, the lower half
  // of the MMU
  input  logic         [ 7:0] s_ar_len_i,    // beats - 1
  input  logic                s_ar_host_i,   // of host memory
  input  logic                s_ar_valid_i,
  output logic                s_ar_ready_o,
  input  logic         [ 7:0] s_aw_len_i,
  input  logic                s_aw_host_i,
  input  logic                s_aw_valid_i,
  output logic                s_aw_ready_o,
  // to the crossbar; the payload passes beside this block
  output logic                m_ar_valid_o,
  input  logic                m_ar_ready_i,
  output logic                m_aw_valid_o,
  input  logic                m_aw_ready_i,
  input  logic                rd_beat_i,     // pulse: a beat that was read arrives
  input  logic                wr_done_i,     // pulse: a burst has been written
  output logic                first_o,       // level: the slot is of the class that goes first
  output meter_count_t        count_o,
  output logic                still_o        // nothing moves unless an input changes
);

  localparam bit FlightOk = param_in("via_slot_meter Flight", Flight, 1, 1024);

  // By ways: reads, writes.
  localparam int unsigned Rd = 0, Wr = 1;
  localparam int unsigned BeatsW = $clog2(Flight * MaxBurstBeats + 1);
  logic [1:0] s_valid, m_ready, host, pass, open_q, done;
  logic [1:0] passed_q, host_q;  // a burst passed in the last cycle
  logic [7:0] len[2], len_q[2], done_len[2];
  logic [BeatsW-1:0] flight_q[2];
  logic spent, bucket_still;  // the bucket is below zero

  assign s_valid = {s_aw_valid_i, s_ar_valid_i};
  assign m_ready = {m_aw_ready_i, m_ar_ready_i};
  assign host = {s_aw_host_i, s_ar_host_i};
  assign len[Rd] = s_ar_len_i;
  assign len[Wr] = s_aw_len_i;
  assign {m_aw_valid_o, m_ar_valid_o} = s_valid & open_q;
  assign {s_aw_ready_o, s_ar_ready_o} = m_ready & open_q;
  assign pass = s_valid & m_ready & open_q;

  // ---------------------------------------------------------------- under way
  assign done = {wr_done_i, rd_beat_i};
  assign done_len[Rd] = '0;
  via_fifo #(
    .T    (logic [7:0]),
    .Depth(Flight)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (s_aw_len_i),
    .s_valid_i(pass[Wr]),
    .s_ready_o(),
    .m_o      (done_len[Wr]),
    .m_valid_o(),
    .m_ready_i(wr_done_i),
    .count_o  ()
  );

  for (genvar w = 0; w < 2; w++) begin : gen_way
    logic [BeatsW-1:0] more, less;
    logic below;
    assign more  = BeatsW'(len[w]) + 1'b1;
    assign less  = done[w] ? BeatsW'(done_len[w]) + 1'b1 : '0;
    assign below = cfg_i.cap == '0 || flight_q[w] < BeatsW'({cfg_i.cap, 4'h0});
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        flight_q[w] <= '0;
        open_q[w]   <= 1'b0;
      end else begin
        flight_q[w] <= flight_q[w] + (pass[w] ? more : '0) - less;
        // An address that has been shown stays.
        open_q[w]   <= below && !(spent && cfg_i.limit) || s_valid[w] && open_q[w] && !m_ready[w];
      end
    end
  end

  // ---------------------------------------------------------------- the bucket
  // In 1/256 beats. It may be fuller than `depth` by the gain of two cycles.
  localparam int unsigned TokenW = 22;
  logic signed [TokenW-1:0] tokens_q;
  logic [9:0] charge_q;  // beats that passed in the last cycle
  logic [9:0] gain_q;
  logic full;
  assign full  = tokens_q >= $signed({2'b0, cfg_i.depth, 12'h0});
  assign spent = tokens_q[TokenW-1];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) charge_q <= '0;
    else charge_q <= (pass[Rd] ? 10'(len[Rd]) + 1'b1 : '0) + (pass[Wr] ? 10'(len[Wr]) + 1'b1 : '0);
    if (!rst_ni || cfg_i.rate == '0) begin
      gain_q   <= '0;
      tokens_q <= '0;
    end else begin
      gain_q   <= full ? '0 : cfg_i.rate;
      tokens_q <= tokens_q + TokenW'(gain_q) - TokenW'({charge_q, 8'h0});
    end
  end
  assign bucket_still = cfg_i.rate == '0 || full && gain_q == '0;
  always_ff @(posedge clk_i) first_o <= rst_ni && cfg_i.first && !spent;

  // ---------------------------------------------------------------- counters
  // A wait is an address that is there and does not pass. It is counted by time, when it begins and ends, so that nothing changes meanwhile.
  logic [1:0] wait_now, wait_q;
  assign wait_now = s_valid & ~pass;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      passed_q <= '0;
      wait_q   <= '0;
      count_o  <= '0;
    end else begin
      passed_q <= pass;
      wait_q   <= wait_now;
      for (int unsigned w = 0; w < 2; w++) begin
        if (passed_q[w]) count_o.beats[w][host_q[w]] <= count_o.beats[w][host_q[w]] + 32'(len_q[w]) + 1'b1;
        if (wait_now[w] && !wait_q[w]) count_o.waited[w] <= count_o.waited[w] - time_i;
        if (!wait_now[w] && wait_q[w]) count_o.waited[w] <= count_o.waited[w] + time_i;
      end
      count_o.waits <= wait_now;
    end
  end
  always_ff @(posedge clk_i) begin
    host_q <= host;
    len_q  <= len;
  end

  assign still_o = bucket_still && pass == '0 && passed_q == '0 && wait_now == wait_q;

endmodule
