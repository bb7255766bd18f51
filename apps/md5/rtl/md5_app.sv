// SPDX-License-Identifier: Apache-2.0
//
// MD5 (RFC 1321) of every message: a message of 16 bytes for each, first byte of the digest first, under the same id.
//
//   in -> lane of id modulo Lanes -> [ lane 0 ... lane Lanes-1 ] -> arbiter -> out
//
// Throughput: 64 bytes every 65 + 512 / DataW cycles a lane (0.97 bytes a cycle at DataW = 512). Messages of different lanes may
// be interleaved beat by beat; those of one lane come one after the other, otherwise their digests are wrong, and nothing else. A
// beat for a full lane holds the stream: to keep all lanes at work, change lanes every FifoBytes or earlier. Order: kept within a lane.

module md5_app
  import via_pkg::*;
  import md5_pkg::*;
#(
  parameter int unsigned Lanes     = 16,    // a power of two
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

  localparam bit LanesOk = param_pow2("md5_app Lanes", Lanes, 2, 256);
  localparam bit FifoBytesOk = param_pow2("md5_app FifoBytes", FifoBytes, 256, 1 << 20);

  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned OutBeats = DataW < 128 ? 128 / DataW : 1;
  localparam int unsigned OutBytes = 16 / OutBeats;

  // ---------------------------------------------------------------- lanes
  logic [LaneW-1:0] to;
  logic [Lanes-1:0] lane_ready, done, grant, lane_busy;
  logic take;  // the granted digest is accepted
  logic [127:0] digest[Lanes];
  logic [7:0] id[Lanes];

  part_t part_q;
  logic part_valid_q;

  assign to = part_q.id[LaneW-1:0];
  assign in_ready_o = !part_valid_q || lane_ready[to];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) part_valid_q <= 1'b0;
    else if (in_ready_o) part_valid_q <= in_valid_i;
    if (in_valid_i && in_ready_o)
      part_q <= '{id: in_i.id, last: in_i.last, full: in_i.keep[StrbW-1], bytes: bytes_of(in_i.keep), data: in_i.data};
  end

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    md5_lane #(
      .FifoBytes(FifoBytes)
    ) u_lane (
      .clk_i,
      .rst_ni,
      .s_i      (part_q),
      .s_valid_i(part_valid_q && to == LaneW'(l)),
      .s_ready_o(lane_ready[l]),
      .digest_o (digest[l]),
      .id_o     (id[l]),
      .valid_o  (done[l]),
      .ready_i  (grant[l] && take),
      .busy_o   (lane_busy[l])
    );
  end
  always_ff @(posedge clk_i) busy_o <= rst_ni && (lane_busy != '0 || part_valid_q);

  // ---------------------------------------------------------------- out
  logic valid_q, any, last;
  logic left_q;  // beats behind this one
  logic [127:0] digest_q;
  logic [7:0] id_q;
  logic [LaneW-1:0] from;

  via_rr_arb #(
    .N(Lanes)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (done),
    .ack_i  (take),
    .gnt_o  (grant),
    .idx_o  (from),
    .valid_o(any)
  );

  assign last = left_q == '0;
  assign take = any && (!valid_q || out_ready_i && last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (take) valid_q <= 1'b1;
    else if (out_ready_i && last) valid_q <= 1'b0;
    if (take) begin
      digest_q <= digest[from];
      id_q <= id[from];
      left_q <= 1'(OutBeats - 1);
    end else if (valid_q && out_ready_i) begin
      digest_q <= 128'({128'b0, digest_q} >> (8 * OutBytes));
      left_q   <= left_q - 1'b1;
    end
  end

  assign out_valid_o = valid_q;
  assign out_o = '{id: id_q, last: last, keep: StrbW'({OutBytes{1'b1}}), data: DataW'(digest_q)};

endmodule
