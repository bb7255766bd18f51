// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) of one message after the other.
//
//   beats -> FIFO -> mask, pad -> w[0..15] -> two rounds a cycle -> + hash -> digest
//
// Throughput: a block of 64 bytes every 33 + 512 / DataW cycles: the beats of the block (with the first of them the previous block is added
// to the hash), one cycle that prepares the first two rounds, 32 cycles with two rounds each. Latency: that of the last blocks. Order:
// kept. The digest is held at the output until accepted. A lane that has nothing to do changes no register.
//
// Two rounds fit into one cycle because the sums of terms that do not depend on the previous two rounds are computed a cycle ahead:
// with h, d of the first round and g, c of the second known early,
//
//   pre0 = h + K[t] + w[t]      pre_d = pre0 + d        e' = pre_d + S1(e)  + ch(e, f, g)     a' = pre0 + ... + S0(a)  + maj(a, b, c)
//   pre1 = g + K[t+1] + w[t+1]  pre_c = pre1 + c        e" = pre_c + S1(e') + ch(e', e, f)    a" = pre1 + ... + S0(a') + maj(a', a, b)
//
// leaves three additions of three operands in a row.

module sha256_lane
  import via_pkg::*;
  import sha256_pkg::*;
#(
  parameter int unsigned FifoBytes = 32768
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  input  strm_t         s_i,
  input  logic          s_valid_i,
  output logic          s_ready_o,
  output logic  [255:0] digest_o,   // first byte lowest
  output logic  [  7:0] id_o,       // with valid_o: stream id of the message
  output logic          valid_o,
  input  logic          ready_i,
  output logic          busy_o      // level: a message is in progress
);

  localparam bit FifoBytesOk = param_pow2("sha256_lane FifoBytes", FifoBytes, 256, 1 << 20);

  localparam int unsigned BlockBeats = 512 / DataW;
  localparam int unsigned PosW = BlockBeats > 1 ? $clog2(BlockBeats) : 1;
  localparam int unsigned BeatsW = 61 - BeatLog2;  // the length of a message has 64 bits

  typedef enum logic [1:0] {
    Load,   // beats into w
    Prep,
    Round,
    Done    // the digest waits to be accepted
  } state_e;
  typedef enum logic [1:0] {
    None,  // within the message
    Mark,  // the next beat starts with the byte 0x80
    Zero   // zeros and the length
  } pad_e;

  // ---------------------------------------------------------------- beats
  // A lane whose FIFO was full accepts nothing until it is half empty: beats then come in runs, and memory is read in long bursts.
  localparam int unsigned Depth = FifoBytes / StrbW;
  strm_t beat;
  logic beat_valid, beat_pop, fifo_ready, open_q;
  logic [$clog2(Depth+1)-1:0] held;

  assign s_ready_o = fifo_ready && open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b1;
    else if (!fifo_ready) open_q <= 1'b0;
    else if (32'(held) <= Depth / 2) open_q <= 1'b1;
  end

  via_fifo #(
    .T    (strm_t),
    .Depth(Depth),
    .Ram  (1'b1)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i,
    .s_valid_i(s_valid_i && open_q),
    .s_ready_o(fifo_ready),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_pop),
    .count_o  (held)
  );

  // ---------------------------------------------------------------- control
  state_e state_q;
  pad_e pad_q;
  logic [PosW-1:0] pos_q;  // beat within the block
  logic [4:0] pair_q;  // two rounds
  logic first_q;  // the next block is the first of a message
  logic sum_q;  // a block has passed the rounds and is not yet added
  logic final_q;  // it was the last block of its message
  logic full, load, tail, room;

  assign full = beat.keep[StrbW-1];
  assign load = state_q == Load && !(sum_q && final_q) && (beat_valid || pad_q != None);
  assign beat_pop = load && pad_q == None;
  assign tail = pad_q == None && beat.last;
  // The length fits into the beat, after the message and its mark.
  if (StrbW > 8) begin : gen_room
    assign room = pad_q != None || tail && !beat.keep[StrbW-9];
  end else begin : gen_no_room
    assign room = pad_q == Zero;
  end

  assign valid_o = state_q == Done;
  assign busy_o  = state_q == Prep || state_q == Round || sum_q || pad_q != None || beat_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Load;
      pad_q   <= None;
      pos_q   <= '0;
      first_q <= 1'b1;
      sum_q   <= 1'b0;
      final_q <= 1'b0;
    end else begin
      unique case (state_q)
        Load: begin
          sum_q <= 1'b0;
          if (sum_q && final_q) begin
            state_q <= Done;
            first_q <= 1'b1;
            final_q <= 1'b0;
            pad_q   <= None;
          end else if (load) begin
            first_q <= 1'b0;
            pos_q   <= pos_q + 1'b1;
            if (tail && full) pad_q <= Mark;
            else if (tail || pad_q == Mark) pad_q <= Zero;
            if (pos_q == PosW'(BlockBeats - 1)) begin
              pos_q   <= '0;
              final_q <= room;
              state_q <= Prep;
            end
          end
        end
        Prep: state_q <= Round;
        Round: begin
          if (pair_q == '1) begin
            sum_q   <= 1'b1;
            state_q <= Load;
          end
        end
        Done: if (ready_i) state_q <= Load;
      endcase
    end
  end

  // ---------------------------------------------------------------- length
  logic [BeatsW-1:0] beats_q, beats;  // full beats of the message
  logic [BeatLog2-1:0] rest_q;  // bytes after them
  assign beats = first_q ? '0 : beats_q;

  // Called within clocked blocks, so that a simulation does not evaluate it in every cycle.
  function automatic logic [BeatLog2-1:0] count(input logic [StrbW-1:0] keep);
    return BeatLog2'($countones(keep));
  endfunction

  always_ff @(posedge clk_i) begin
    if (beat_pop) begin
      beats_q <= beats + BeatsW'(full);
      rest_q  <= count(beat.keep);
      id_o    <= beat.id;
    end
  end

  // ---------------------------------------------------------------- rounds
  logic [15:0][31:0] w_q;
  logic [ 7:0][31:0] hash_q;
  logic [31:0] a_q, b_q, c_q, d_q, e_q, f_q, g_q, h_q;
  logic [31:0] pre0_q, pre_d_q, pre1_q, pre_c_q;

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Load: begin
        if (load) begin
          logic [DataW-1:0] in;
          logic [63:0] bits;
          in = beat.data;
          if (pad_q != None) begin
            in = '0;
            if (pad_q == Mark) in[7:0] = 8'h80;
          end else if (!full) begin
            for (int unsigned i = 0; i < StrbW; i++) begin
              if (!beat.keep[i]) in[8*i+:8] = (i == 0 || beat.keep[i-1]) ? 8'h80 : 8'h00;
            end
          end
          for (int unsigned i = 0; i < DataW / 32; i++) in[32*i+:32] = swap(in[32*i+:32]);
          if (pos_q == PosW'(BlockBeats - 1) && room) begin
            bits = {beats, pad_q == None ? count(beat.keep) : rest_q, 3'b0};
            in[DataW-1-:64] = {bits[31:0], bits[63:32]};
          end
          w_q <= 512'({in, w_q} >> DataW);
        end
        if (sum_q) begin
          hash_q <= {
            hash_q[7] + h_q,
            hash_q[6] + g_q,
            hash_q[5] + f_q,
            hash_q[4] + e_q,
            hash_q[3] + d_q,
            hash_q[2] + c_q,
            hash_q[1] + b_q,
            hash_q[0] + a_q
          };
        end else if (load && first_q) begin
          hash_q <= Init;
        end
      end
      Prep: begin
        {h_q, g_q, f_q, e_q, d_q, c_q, b_q, a_q} <= hash_q;
        pre0_q <= hash_q[7] + K[0] + w_q[0];
        pre_d_q <= hash_q[7] + K[0] + w_q[0] + hash_q[3];
        pre1_q <= hash_q[6] + K[1] + w_q[1];
        pre_c_q <= hash_q[6] + K[1] + w_q[1] + hash_q[2];
        pair_q <= '0;
      end
      Round: begin
        logic [31:0] t0, t1, a1, e1;
        t0 = big_sigma1(e_q) + ch(e_q, f_q, g_q);
        e1 = pre_d_q + t0;
        a1 = pre0_q + t0 + big_sigma0(a_q) + maj(a_q, b_q, c_q);
        t1 = big_sigma1(e1) + ch(e1, e_q, f_q);
        h_q <= f_q;
        g_q <= e_q;
        f_q <= e1;
        e_q <= pre_c_q + t1;
        d_q <= b_q;
        c_q <= a_q;
        b_q <= a1;
        a_q <= pre1_q + t1 + big_sigma0(a1) + maj(a1, a_q, b_q);
        // For the next pair; after the last one the result is not used.
        pre0_q <= f_q + K[{pair_q+5'd1, 1'b0}] + w_q[2];
        pre_d_q <= f_q + K[{pair_q+5'd1, 1'b0}] + w_q[2] + b_q;
        pre1_q <= e_q + K[{pair_q+5'd1, 1'b1}] + w_q[3];
        pre_c_q <= e_q + K[{pair_q+5'd1, 1'b1}] + w_q[3] + a_q;
        w_q <= {sigma1(w_q[15]) + w_q[10] + sigma0(w_q[2]) + w_q[1], sigma1(w_q[14]) + w_q[9] + sigma0(w_q[1]) + w_q[0], w_q[15:2]};
        pair_q <= pair_q + 1'b1;
      end
      Done: ;
    endcase
  end

  assign digest_o = hash_q;

endmodule
