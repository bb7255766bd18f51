// SPDX-License-Identifier: Apache-2.0
//
// What apps share that hash messages: beats; and the padding of the last ones, for blocks of 64 bytes (MD5, SHA-1, SHA-2 of 32 bits).

package hash_pkg;

  import via_pkg::*;

  /// A beat of a message, with a number in place of `keep`.
  typedef struct packed {
    logic [7:0]          id;
    logic                last;
    logic                full;
    logic [BeatLog2-1:0] bytes;  // if it is not full; else zero
    logic [DataW-1:0]    data;
  } part_t;

  typedef enum logic [1:0] {
    None,  // within the message
    Mark,  // a beat behind it that starts with the byte 0x80
    Zero   // zeros behind that, and the length
  } pad_e;

  /// A beat of a block, before it is padded.
  typedef struct packed {
    part_t       beat;    // if `pad` is None
    pad_e        pad;
    logic        length;  // it ends with the length of the message
    logic [63:0] bits;    // that
  } feed_t;

  /// `bytes` of a beat. `keep` is a run of ones, so it has one end.
  function automatic logic [BeatLog2-1:0] bytes_of(input logic [StrbW-1:0] keep);
    logic [BeatLog2-1:0] bytes;
    bytes = '0;
    for (int unsigned i = 1; i < StrbW; i++) if (keep[i-1] && !keep[i]) bytes |= BeatLog2'(i);
    return bytes;
  endfunction

  /// Reverses the bytes of a word.
  function automatic logic [31:0] swap(input logic [31:0] x);
    return {x[7:0], x[15:8], x[23:16], x[31:24]};
  endfunction

  /// The beat as it enters the block, first byte lowest; `big`: the length has its highest byte first. Called within clocked blocks, so that a
  /// simulation does not evaluate it in every cycle.
  function automatic logic [DataW-1:0] padded(input feed_t feed, input bit big);
    logic [DataW-1:0] data;
    data = feed.beat.data;
    if (feed.pad != None) begin
      data = '0;
      if (feed.pad == Mark) data[7:0] = 8'h80;
    end else if (!feed.beat.full) begin
      for (int unsigned i = 0; i < StrbW; i++) begin
        if (i >= 32'(feed.beat.bytes)) data[8*i+:8] = i == 32'(feed.beat.bytes) ? 8'h80 : 8'h00;
      end
    end
    if (feed.length) data[DataW-1-:64] = big ? {swap(feed.bits[31:0]), swap(feed.bits[63:32])} : feed.bits;
    return data;
  endfunction

endpackage
