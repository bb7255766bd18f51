// SPDX-License-Identifier: Apache-2.0
//
// What is around the lanes of an app that hashes many messages at once: beats to the lane of their id, digests out.
//
//   in -> beat -> lane of id modulo Lanes ...      digests of the lanes -> arbiter -> out, a message for each
//
// Throughput: a beat a cycle in; out a beat a cycle, and a digest has DigestBytes * 8 / DataW of them, at least one. Latency: a cycle each
// way. Order: kept within a lane. A beat for a lane that is full holds those behind it.

module hash_spread
  import via_pkg::*;
  import hash_pkg::*;
#(
  parameter int unsigned Lanes       = 16,  // a power of two
  parameter int unsigned DigestBytes = 16   // a power of two
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  strm_t                     in_i,
  input  logic                      in_valid_i,
  output logic                      in_ready_o,
  output part_t                     part_o,                 // for every lane
  output logic  [        Lanes-1:0] part_valid_o,
  input  logic  [        Lanes-1:0] part_ready_i,
  input  logic  [8*DigestBytes-1:0] digest_i      [Lanes],  // first byte lowest
  input  logic  [              7:0] digest_id_i   [Lanes],
  input  logic  [        Lanes-1:0] digest_valid_i,
  output logic  [        Lanes-1:0] digest_ready_o,
  output strm_t                     out_o,
  output logic                      out_valid_o,
  input  logic                      out_ready_i,
  input  logic  [        Lanes-1:0] lane_busy_i,
  output logic                      busy_o                  // level: a lane is busy, or a beat is on its way
);

  localparam bit LanesOk = param_pow2("hash_spread Lanes", Lanes, 2, 256);
  localparam bit DigestBytesOk = param_pow2("hash_spread DigestBytes", DigestBytes, 16, 32);

  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned OutBeats = StrbW < DigestBytes ? DigestBytes / StrbW : 1;
  localparam int unsigned OutBytes = DigestBytes / OutBeats;

  // ---------------------------------------------------------------- in
  part_t part_q;
  logic part_valid_q;
  logic [LaneW-1:0] to;

  assign to = part_q.id[LaneW-1:0];
  assign in_ready_o = !part_valid_q || part_ready_i[to];
  assign part_o = part_q;
  assign part_valid_o = Lanes'(part_valid_q) << to;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) part_valid_q <= 1'b0;
    else if (in_ready_o) part_valid_q <= in_valid_i;
    if (in_valid_i && in_ready_o)
      part_q <= '{id: in_i.id, last: in_i.last, full: in_i.keep[StrbW-1], bytes: bytes_of(in_i.keep), data: in_i.data};
  end
  always_ff @(posedge clk_i) busy_o <= rst_ni && (lane_busy_i != '0 || part_valid_q);

  // ---------------------------------------------------------------- out
  logic valid_q, any, last, take;
  logic [Lanes-1:0] grant;
  logic [LaneW-1:0] from;
  logic [1:0] left_q;  // beats behind this one
  logic [8*DigestBytes-1:0] digest_q;
  logic [7:0] id_q;

  via_rr_arb #(
    .N(Lanes)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (digest_valid_i),
    .ack_i  (take),
    .gnt_o  (grant),
    .idx_o  (from),
    .valid_o(any)
  );

  assign last = left_q == '0;
  assign take = any && (!valid_q || out_ready_i && last);
  assign digest_ready_o = take ? grant : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (take) valid_q <= 1'b1;
    else if (out_ready_i && last) valid_q <= 1'b0;
    if (take) begin
      digest_q <= digest_i[from];
      id_q <= digest_id_i[from];
      left_q <= 2'(OutBeats - 1);
    end else if (valid_q && out_ready_i) begin
      digest_q <= digest_q >> (8 * OutBytes);
      left_q   <= left_q - 1'b1;
    end
  end

  assign out_valid_o = valid_q;
  assign out_o = '{id: id_q, last: last, keep: StrbW'({OutBytes{1'b1}}), data: DataW'(digest_q)};

endmodule
