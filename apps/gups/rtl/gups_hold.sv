// SPDX-License-Identifier: Apache-2.0
//
// The updates in flight, oldest first, and whether the next one has to wait for one of them: it does while an earlier one of the same index
// is in flight.
//
//   next -> compared with all entries -> current, held? -> entry ... entry -> retired
//
// Throughput: one index a cycle. Latency: `held_o` is known the cycle after `load_i`, and falls the cycle after the entry is retired. Order:
// that of `take_i`. Misuse: `take_i` while full and `retire_i` while empty are not allowed.

module gups_hold #(
  parameter int unsigned Entries = 128,
  parameter int unsigned IndexW  = 45
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [IndexW-1:0] next_i,    // index of the update behind the current one
  input  logic              load_i,    // it becomes the current one
  input  logic              take_i,    // the current one is in flight from now on
  input  logic              retire_i,  // the oldest one in flight is complete
  output logic              held_o,    // level: an earlier update of the current index is in flight
  output logic              full_o,    // level: no entry is free
  output logic              empty_o    // level: nothing is in flight
);

  localparam bit EntriesOk = via_pkg::param_pow2("gups_hold Entries", Entries, 2, 1024);
  localparam bit IndexWOk = via_pkg::param_in("gups_hold IndexW", IndexW, 1, 64);

  localparam int unsigned PtrW = $clog2(Entries);

  logic [Entries-1:0][IndexW-1:0] index_q;
  logic [Entries-1:0] valid_q, hit_q, retired;
  logic [IndexW-1:0] current_q;
  logic [PtrW-1:0] wptr_q, rptr_q;

  assign retired = Entries'(retire_i) << rptr_q;
  assign held_o  = hit_q != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      wptr_q  <= '0;
      rptr_q  <= '0;
      full_o  <= 1'b0;
      empty_o <= 1'b1;
    end else if (take_i || retire_i) begin
      if (take_i) begin
        valid_q[wptr_q] <= 1'b1;
        wptr_q <= wptr_q + 1'b1;
      end
      if (retire_i) begin
        valid_q[rptr_q] <= 1'b0;
        rptr_q <= rptr_q + 1'b1;
      end
      // Both ends move at once: the number of entries stays.
      if (take_i != retire_i) begin
        full_o  <= take_i && wptr_q + 1'b1 == rptr_q;
        empty_o <= retire_i && rptr_q + 1'b1 == wptr_q;
      end
    end
    if (take_i) index_q[wptr_q] <= current_q;
  end

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      current_q <= next_i;
      for (int unsigned i = 0; i < Entries; i++) hit_q[i] <= valid_q[i] && !retired[i] && index_q[i] == next_i;
      // The current one becomes an entry in this cycle.
      if (take_i) hit_q[wptr_q] <= current_q == next_i;
    end else if (retire_i) begin
      hit_q[rptr_q] <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && take_i) assert (!full_o && !held_o);
    if (rst_ni && retire_i) assert (!empty_o);
  end
`endif

endmodule
