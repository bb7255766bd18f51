// SPDX-License-Identifier: Apache-2.0
//
// Random accesses to a memory: reads and sums up, or writes, `count` blocks of `size` bytes at random positions in `bytes` from `base` on.
//
//   places -> split into bursts -+-> AR            R -> sum of the words of a beat -> checksum
//                                +-> AW            B
//                                +-> FIFO -> W     seed ^ offset of the word
//
// Throughput: one burst or one beat of data a cycle, whichever is less; up to Outstanding bursts in flight. Latency: that of the memory.
// Bursts do not cross 4 KiB. R and B never wait, W follows its AW without a gap. Order: as the bus responds; the results do not depend on
// it within a burst. Misuse: a size that is not a power of two from 64 to 2 MiB, a base that is not a multiple of 64, a memory shorter than
// one access or a seed of zero ends the run at once with one error. Error responses are counted.

module rng_app
  import via_pkg::*;
#(
  parameter int unsigned Outstanding = 256  // bursts in flight
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  output axi_ax_t        mem_ar_o,
  output logic           mem_ar_valid_o,
  input  logic           mem_ar_ready_i,
  input  axi_r_t         mem_r_i,
  input  logic           mem_r_valid_i,
  output logic           mem_r_ready_o,
  output axi_ax_t        mem_aw_o,
  output logic           mem_aw_valid_o,
  input  logic           mem_aw_ready_i,
  output axi_w_t         mem_w_o,
  output logic           mem_w_valid_o,
  input  logic           mem_w_ready_i,
  input  axi_b_t         mem_b_i,
  input  logic           mem_b_valid_i,
  output logic           mem_b_ready_o,
  input  logic    [63:0] base_i,          // address of the memory
  input  logic    [63:0] bytes_i,         // its size
  input  logic    [31:0] size_i,          // bytes of one access
  input  logic    [31:0] count_i,         // accesses
  input  logic    [63:0] seed_i,          // of the random sequence, not zero
  input  logic           write_i,         // write rather than read
  input  logic           permute_i,       // every position once, before any comes again
  input  logic           start_i,         // one-cycle pulse; the inputs above are sampled with it
  output logic           done_o,          // level: no run is in progress
  output logic    [63:0] checksum_o,      // sum of all words read
  output logic    [31:0] errors_o,        // error responses, and 1 for wrong parameters
  output logic    [63:0] cycles_o,        // duration of the last run
  output logic           irq_o            // one-cycle pulse: the run has ended
);

  localparam bit OutstandingOk = param_in("rng_app Outstanding", Outstanding, 1, 1024);

  localparam int unsigned MinLog2 = 6;
  localparam int unsigned MaxLog2 = 21;
  localparam int unsigned BurstBytes = MaxBurstBeats * StrbW;
  localparam int unsigned BurstLog2 = $clog2(BurstBytes);
  localparam int unsigned CountW = $clog2(Outstanding + 1);

  typedef struct packed {
    logic [7:0]  len;
    logic [63:0] offset;  // from the base
  } burst_t;

  // ---------------------------------------------------------------- parameters, sampled at the start
  logic write_q, permute_q, bad;
  logic [63:0] base_q, seed_q, bytes_q, places;
  logic [31:0] size_q, count_q, places_q;
  logic [4:0] shift, shift_q;
  logic sample, go, finish;

  always_comb begin
    shift = '0;
    for (int unsigned i = MinLog2; i <= MaxLog2; i++) if (size_q[i]) shift = 5'(i);
  end
  assign places = bytes_q >> shift;
  assign bad = size_q != 32'd1 << shift || shift == '0 || base_q[MinLog2-1:0] != '0 || places == '0 || seed_q == '0;

  always_ff @(posedge clk_i) begin
    if (sample) begin
      write_q <= write_i;
      permute_q <= permute_i;
      base_q <= base_i;
      bytes_q <= bytes_i;
      size_q <= size_i;
      count_q <= count_i;
      seed_q <= seed_i;
    end
    if (go) begin
      shift_q  <= shift;
      places_q <= places[63:32] != '0 ? '1 : places[31:0];
    end
  end

  // ---------------------------------------------------------------- positions
  logic [63:0] place;
  logic place_valid, place_ready;

  rng_place u_place (
    .clk_i,
    .rst_ni,
    .start_i(go),
    .seed_i(seed_q),
    .count_i(count_q),
    .places_i(places_q),
    .shift_i(shift_q),
    .permute_i(permute_q),
    .offset_o(place),
    .valid_o(place_valid),
    .ready_i(place_ready)
  );

  // ---------------------------------------------------------------- bursts
  burst_t burst;
  logic   active_q;  // an access is being split
  logic [63:0] offset_q, addr_q;
  logic [MaxLog2:0] left_q, room, chunk;  // bytes
  logic [31:0] todo_q;  // accesses not yet issued completely
  logic [CountW-1:0] out_q;  // bursts without a response
  logic issue, answered, fits, w_ready;

  assign room = (MaxLog2 + 1)'(BurstBytes) - (MaxLog2 + 1)'(addr_q[BurstLog2-1:0]);
  assign fits = left_q <= room;
  assign chunk = fits ? left_q : room;
  assign burst = '{offset: offset_q, len: 8'((chunk >> BeatLog2) - 1'b1)};
  assign place_ready = !active_q || issue && fits;

  logic offer;
  assign offer = active_q && out_q != CountW'(Outstanding) && (!write_q || w_ready);
  assign mem_ar_valid_o = offer && !write_q;
  assign mem_aw_valid_o = offer && write_q;
  assign issue = offer && (write_q ? mem_aw_ready_i : mem_ar_ready_i);
  assign mem_ar_o = '{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: burst.len, addr: addr_q};
  assign mem_aw_o = mem_ar_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      out_q    <= '0;
    end else begin
      if (place_ready) active_q <= place_valid;
      if (issue != answered) out_q <= issue ? out_q + 1'b1 : out_q - 1'b1;
    end
    if (place_ready) begin
      offset_q <= place;
      addr_q   <= base_q + place;
      left_q   <= (MaxLog2 + 1)'(1) << shift_q;
    end else if (issue) begin
      offset_q <= offset_q + 64'(chunk);
      addr_q   <= addr_q + 64'(chunk);
      left_q   <= left_q - chunk;
    end
    if (go) todo_q <= count_q;
    else if (issue && fits) todo_q <= todo_q - 1'b1;
  end

  // ---------------------------------------------------------------- data written
  burst_t w_next;
  logic w_next_valid, w_pop, w_valid_q;
  logic [63:0] w_offset_q;
  logic [ 7:0] w_left_q;

  via_fifo #(
    .T    (burst_t),
    .Depth(16)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (burst),
    .s_valid_i(issue && write_q),
    .s_ready_o(w_ready),
    .m_o      (w_next),
    .m_valid_o(w_next_valid),
    .m_ready_i(w_pop),
    .count_o  ()
  );

  assign w_pop = !w_valid_q || mem_w_ready_i && w_left_q == '0;
  assign mem_w_valid_o = w_valid_q;

  always_comb begin
    mem_w_o = '{last: w_left_q == '0, strb: '1, data: '0};
    for (int unsigned i = 0; i < DataW / 64; i++) mem_w_o.data[64*i+:64] = seed_q ^ {w_offset_q[63:BeatLog2], BeatLog2'(8 * i)};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) w_valid_q <= 1'b0;
    else if (w_pop) w_valid_q <= w_next_valid;
    if (w_pop) begin
      w_offset_q <= w_next.offset;
      w_left_q   <= w_next.len;
    end else if (mem_w_ready_i) begin
      w_offset_q <= w_offset_q + 64'(StrbW);
      w_left_q   <= w_left_q - 1'b1;
    end
  end

  // ---------------------------------------------------------------- responses
  logic r_bad_q;  // an earlier beat of the burst had an error
  logic r_error, burst_error, sum_valid_q;
  logic [63:0] sum_q;

  assign mem_r_ready_o = 1'b1;
  assign mem_b_ready_o = 1'b1;
  assign answered = mem_r_valid_i && mem_r_i.last || mem_b_valid_i;
  assign r_error = mem_r_i.resp[1];
  assign burst_error = mem_b_valid_i ? mem_b_i.resp[1] : r_error || r_bad_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) sum_valid_q <= 1'b0;
    else sum_valid_q <= mem_r_valid_i && !r_error;
    if (mem_r_valid_i) begin
      logic [63:0] sum;
      sum = '0;
      for (int unsigned i = 0; i < DataW / 64; i++) sum += mem_r_i.data[64*i+:64];
      sum_q <= sum;
    end
    if (!rst_ni) r_bad_q <= 1'b0;
    else if (mem_r_valid_i) r_bad_q <= !mem_r_i.last && (r_bad_q || r_error);
  end

  // ---------------------------------------------------------------- run
  assign finish = todo_q == '0 && out_q == '0;

  mem_run u_run (
    .clk_i,
    .rst_ni,
    .start_i,
    .sample_o(sample),
    .bad_i   (bad),
    .go_o    (go),
    .run_o   (),
    .finish_i(finish),
    .errors_i(3'(answered && burst_error)),
    .done_o,
    .irq_o,
    .errors_o,
    .cycles_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || sample) checksum_o <= '0;
    else if (sum_valid_q) checksum_o <= checksum_o + sum_q;
  end

endmodule
