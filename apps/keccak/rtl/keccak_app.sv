// SPDX-License-Identifier: Apache-2.0
//
// SHA3-256 (FIPS 202) of every message: a message of 32 bytes for each, first byte of the digest first, under the same id.
//
//   in -> lane of id modulo Lanes -> [ lane 0 ... lane Lanes-1 ] -> arbiter -> out
//
// Throughput: 136 bytes every 12 cycles a lane, 11.33 bytes a cycle; with beats of 64 bits 8. Messages of different lanes may be
// interleaved beat by beat; those of one lane come one after the other, otherwise their digests are wrong, and nothing else. A
// beat for a full lane holds the stream: to keep all lanes at work, change lanes every FifoBytes or earlier. Order: kept within a lane.

module keccak_app
  import via_pkg::*;
  import hash_pkg::*;
#(
  parameter int unsigned Lanes     = 4,     // a power of two
  parameter int unsigned FifoBytes = 32768  // of each lane; fills the block memories its width takes
) (
  input  logic  clk_i,
  input  logic  rst_ni,
  input  strm_t in_i,
  input  logic  in_valid_i,
  output logic  in_ready_o,
  output strm_t out_o,
  output logic  out_valid_o,
  input  logic  out_ready_i,
  output logic  busy_o
);

  localparam bit LanesOk = param_pow2("keccak_app Lanes", Lanes, 2, 256);
  localparam bit FifoBytesOk = param_pow2("keccak_app FifoBytes", FifoBytes, 256, 1 << 20);

  part_t part;
  logic [Lanes-1:0] part_valid, part_ready, digest_valid, digest_ready, lane_busy;
  logic [255:0] digest[Lanes];
  logic [7:0] digest_id[Lanes];

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    keccak_lane #(
      .FifoBytes(FifoBytes)
    ) u_lane (
      .clk_i,
      .rst_ni,
      .s_i      (part),
      .s_valid_i(part_valid[l]),
      .s_ready_o(part_ready[l]),
      .digest_o (digest[l]),
      .id_o     (digest_id[l]),
      .valid_o  (digest_valid[l]),
      .ready_i  (digest_ready[l]),
      .busy_o   (lane_busy[l])
    );
  end

  hash_spread #(
    .Lanes      (Lanes),
    .DigestBytes(32)
  ) u_spread (
    .clk_i,
    .rst_ni,
    .in_i,
    .in_valid_i,
    .in_ready_o,
    .part_o        (part),
    .part_valid_o  (part_valid),
    .part_ready_i  (part_ready),
    .digest_i      (digest),
    .digest_id_i   (digest_id),
    .digest_valid_i(digest_valid),
    .digest_ready_o(digest_ready),
    .out_o,
    .out_valid_o,
    .out_ready_i,
    .lane_busy_i   (lane_busy),
    .busy_o
  );

endmodule
