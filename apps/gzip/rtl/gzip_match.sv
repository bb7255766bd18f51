// SPDX-License-Identifier: Apache-2.0
//
// Finds in each message what has come before (LZ77), and tells of each byte what becomes of it.
//
//   byte -> four bytes -> their place -> table: who was here before -> equal? how far? -> match or literal -> token_o
//     +---> the last 32 KiB, read along with a match ---------------------------------------^
//
// The table has, for each of 2^PlaceLog2 places, the last position whose four bytes have this place, and the bytes. Of a position at which no
// match is in progress the entry decides: if it has the same bytes and is near enough, a match begins there, and lasts while the bytes that
// follow are the same. Every position enters the table. Throughput: a byte a cycle; behind a message nine cycles, in which its last bytes
// leave the pipeline. Order: kept. `go_i` low holds all of it.
//
// Positions count on from message to message, but leave out 32 KiB or more between them, so that no entry of a message is near enough for
// the next. The table is emptied, in 2^PlaceLog2 cycles, after reset, and before numbers of positions could return: at the end of a message in
// the upper half of them, and at their end. Misuse: none; every sequence of beats gives a file.

module gzip_match
  import gzip_pkg::*;
#(
  parameter int unsigned PlaceLog2 = 13,
  parameter int unsigned LapLog2   = 20   // positions are counted modulo 2^(15 + this)
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic   [7:0] data_i,
  input  logic         first_i,        // of its message
  input  logic         last_i,         // of its message
  input  logic         empty_i,        // with last_i: there is no byte, only the end
  input  logic         valid_i,
  output logic         ready_o,
  input  logic         go_i,           // there is room for a token
  output token_t       token_o,
  output logic         token_valid_o,  // one cycle
  output logic         busy_o          // level: something moves although no byte comes
);

  localparam bit PlaceLog2Ok = via_pkg::param_in("gzip_match PlaceLog2", PlaceLog2, 8, 16);
  localparam bit LapLog2Ok = via_pkg::param_in("gzip_match LapLog2", LapLog2, 2, 24);

  localparam int unsigned PosW = 15 + LapLog2;
  localparam int unsigned Behind = 9;  // cycles behind a message

  typedef logic [PosW-1:0] pos_t;

  /// A step of the pipeline: a byte of a message, its end, or nothing.
  typedef struct packed {
    logic       valid;
    logic       first;
    logic       stop;
    logic [7:0] data;
    pos_t       pos;
  } step_t;

  typedef struct packed {
    logic        valid;
    pos_t        pos;
    logic [31:0] four;
  } entry_t;

  // ---------------------------------------------------------------- bytes
  logic [3:0] behind_q;  // steps without a byte that are still to come
  logic clear_q, clear_next_q;  // the table is emptied; it is to be when the pipeline is
  logic [PlaceLog2-1:0] clear_at_q;
  pos_t pos_q;
  logic take, move;

  assign ready_o = go_i && behind_q == '0 && !clear_q;
  assign take = valid_i && ready_o;
  assign move = go_i && !clear_q && (take || behind_q != '0);
  assign busy_o = behind_q != '0 || clear_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      behind_q     <= '0;
      clear_q      <= 1'b1;
      clear_next_q <= 1'b0;
      clear_at_q   <= '0;
      pos_q        <= '0;
    end else begin
      if (take && last_i) behind_q <= 4'(Behind);
      else if (move && behind_q != '0) behind_q <= behind_q - 1'b1;
      if (take) begin
        pos_q <= pos_q + 1'b1;
        if (pos_q == '1) clear_q <= 1'b1;
        if (last_i) begin
          pos_q        <= pos_q[PosW-1] ? '0 : {pos_q[PosW-1:15] + LapLog2'(2), 15'b0};
          clear_next_q <= pos_q[PosW-1];
        end
      end
      if (move && behind_q == 4'd1) begin
        clear_q      <= clear_next_q;
        clear_next_q <= 1'b0;
      end
      if (clear_q) begin
        clear_at_q <= clear_at_q + 1'b1;
        if (clear_at_q == '1) clear_q <= 1'b0;
      end
    end
  end

  // ---------------------------------------------------------------- four bytes, and the table
  step_t [3:0] window_q;  // the oldest highest
  step_t step1_q, step2_q, step3_q, step4_q;
  logic four1_q, four2_q;  // four bytes of the message begin with this one
  logic [31:0] bytes1_q, bytes2_q;
  entry_t entry;

  function automatic logic [PlaceLog2-1:0] place(input logic [31:0] x);
    return PlaceLog2'(x ^ x >> 9 ^ x >> 19);
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < 4; i++) {window_q[i].valid, window_q[i].first, window_q[i].stop} <= '0;
      {step1_q.valid, step1_q.first, step1_q.stop} <= '0;
      {step2_q.valid, step2_q.first, step2_q.stop} <= '0;
      {step3_q.valid, step3_q.first, step3_q.stop} <= '0;
      {step4_q.valid, step4_q.first, step4_q.stop} <= '0;
      {four1_q, four2_q} <= '0;
    end else if (move) begin
      window_q <= {
        window_q[2:0],
        step_t
        '{valid: take && !empty_i, first: take && first_i, stop: behind_q == 4'(Behind), data: data_i, pos: pos_q}
      };
      step1_q <= window_q[3];
      step2_q <= step1_q;
      step3_q <= step2_q;
      step4_q <= step3_q;
      four1_q <= window_q[3].valid && window_q[2].valid && window_q[1].valid && window_q[0].valid;
      four2_q <= four1_q;
      bytes1_q <= {window_q[0].data, window_q[1].data, window_q[2].data, window_q[3].data};
      bytes2_q <= bytes1_q;
    end
  end

  // A read of the word that is written in the same cycle returns the old one, and the next read this one.
  via_ram_sdp #(
    .Width($bits(entry_t)),
    .Depth(1 << PlaceLog2)
  ) u_table (
    .clk_i,
    .we_i   (clear_q || move && four1_q),
    .waddr_i(clear_q ? clear_at_q : place(bytes1_q)),
    .wdata_i(clear_q ? '0 : {1'b1, step1_q.pos, bytes1_q}),
    .re_i   (move),
    .raddr_i(place(bytes1_q)),
    .rdata_o(entry)
  );

  // ---------------------------------------------------------------- is it the same, and how far
  logic same3_q, hit4_q;
  pos_t back3_q;  // distance - 1
  logic [14:0] back4_q;

  always_ff @(posedge clk_i) begin
    if (move) begin
      same3_q <= four2_q && entry.valid && entry.four == bytes2_q;
      back3_q <= step2_q.pos + ~entry.pos;
      // The highest distances are of bytes that have been replaced by those that are behind in the pipeline.
      hit4_q  <= same3_q && back3_q[PosW-1:15] == '0 && back3_q < PosW'(32751);
      back4_q <= back3_q[14:0];
    end
  end

  // ---------------------------------------------------------------- the bytes before
  logic [ 7:0] past;
  logic [14:0] back_q;  // of the match in progress

  via_ram_sdp #(
    .Width(8),
    .Depth(32768)
  ) u_past (
    .clk_i,
    .we_i   (take),
    .waddr_i(pos_q[14:0]),
    .wdata_i(data_i),
    .re_i   (move),
    .raddr_i(step3_q.pos[14:0] - back_q - 1'b1),
    .rdata_o(past)
  );

  // ---------------------------------------------------------------- match or literal
  logic in_match_q, goes_on;
  logic [8:0] length_q;  // of the match in progress

  assign goes_on = in_match_q && step4_q.valid && (length_q < 9'(MinMatch) || past == step4_q.data && length_q != 9'(MaxMatch));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_match_q    <= 1'b0;
      token_valid_o <= 1'b0;
    end else begin
      token_valid_o <= move && (step4_q.valid && !(goes_on || !in_match_q && hit4_q) || step4_q.first || step4_q.stop);
      if (move && (step4_q.valid || step4_q.stop) && !goes_on) in_match_q <= step4_q.valid && hit4_q;
    end
    if (move) begin
      if (goes_on) length_q <= length_q + 1'b1;
      else if (step4_q.valid) begin
        length_q <= 9'd1;
        back_q   <= back4_q;
      end
      token_o <= '{
          start: step4_q.first,
          match: in_match_q,
          literal: step4_q.valid && !hit4_q,
          stop: step4_q.stop,
          length: 8'(length_q - 9'd3),
          length_extra: length_extra(8'(length_q - 9'd3)),
          back: back_q,
          back_extra: distance_extra(back_q),
          data: step4_q.data
      };
    end
  end

endmodule
