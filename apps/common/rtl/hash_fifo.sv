// SPDX-License-Identifier: Apache-2.0
//
// The FIFO of a lane that hashes messages. One that was full accepts nothing until it is half empty: beats then come in runs, and memory is
// read in long bursts. Throughput: a beat a cycle. Latency: two cycles. Order: kept.

module hash_fifo
  import via_pkg::*;
  import hash_pkg::*;
#(
  parameter int unsigned FifoBytes = 32768
) (
  input  logic  clk_i,
  input  logic  rst_ni,
  input  part_t s_i,
  input  logic  s_valid_i,
  output logic  s_ready_o,
  output part_t m_o,
  output logic  m_valid_o,
  input  logic  m_ready_i
);

  localparam bit FifoBytesOk = param_pow2("hash_fifo FifoBytes", FifoBytes, 256, 1 << 20);

  localparam int unsigned Depth = FifoBytes / StrbW;
  logic fifo_ready, open_q;
  logic [$clog2(Depth+1)-1:0] held;

  assign s_ready_o = fifo_ready && open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b1;
    else if (!fifo_ready) open_q <= 1'b0;
    else if (32'(held) <= Depth / 2) open_q <= 1'b1;
  end

  via_fifo #(
    .T    (part_t),
    .Depth(Depth),
    .Ram  (1'b1)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i,
    .s_valid_i(s_valid_i && open_q),
    .s_ready_o(fifo_ready),
    .m_o,
    .m_valid_o,
    .m_ready_i,
    .count_o  (held)
  );

endmodule
