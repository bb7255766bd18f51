// SPDX-License-Identifier: Apache-2.0
//
// Reads a list of descriptors from host memory, ahead of their use.
//
// A list consists of blocks of adjacent descriptors: the first block's address and size come from registers, every further one's from the
// last descriptor of the block before it. Links inside a block are ignored. A block is read in bursts of up to 16 descriptors, two in
// flight.
// Throughput: one descriptor a cycle (256 bits and more of data width). Order: that of the list. Latency: a read and six cycles.
// A descriptor that cannot be used ends the list; its error comes out in its position. `stop_i` drops what was read and what still arrives,
// one descriptor a cycle. Misuse: start_i is allowed only with idle_o and without stop_i. A list without an end is read until stopped.
// Source: PG195, descriptor format.

module via_xdma_fetch
  import via_pkg::*;
  import via_xdma_pkg::*;
#(
  parameter int unsigned HostBits = 52  // width of host addresses
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              start_i,       // one-cycle pulse: start a list
  input  logic       [63:0] addr_i,        // with start_i: address of the first block
  input  logic       [ 5:0] adj_i,         // with start_i: descriptors of the first block, minus one
  input  logic              stop_i,        // level: drop the rest of the list
  input  logic              halt_i,        // level: begin no new read
  output xdma_desc_t        desc_o,        // next descriptor, or an error
  output logic              desc_valid_o,
  input  logic              desc_ready_i,
  output axi_ax_t           m_ar_o,
  output logic              m_ar_valid_o,
  input  logic              m_ar_ready_i,
  input  axi_r_t            m_r_i,
  input  logic              m_r_valid_i,
  output logic              m_r_ready_o,
  output logic              idle_o         // level: no list, and no read in flight
);

  localparam bit HostBitsOk = param_in("via_xdma_fetch HostBits", HostBits, PageLog2, 52);

  localparam int unsigned BurstDescs = 16;
  localparam int unsigned Bursts = 2;
  // Either a beat holds two descriptors (and a burst may start or end with one of them), or a descriptor takes one or more beats.
  localparam bit Two = DataW > DescBits;
  localparam int unsigned DescBeats = Two ? 1 : DescBits / DataW;
  localparam int unsigned BurstBeats = Two ? BurstDescs / 2 + 1 : BurstDescs * DescBeats;

  typedef logic [63:DescLog2] place_t;

  // ---------------------------------------------------------------- reads
  typedef struct packed {
    logic       upper;      // the first descriptor is the upper one of its beat
    logic       block_end;
    logic [4:0] count;
  } burst_t;
  burst_t cut, cut_q, head;
  logic cut_valid_q, head_valid, head_pop;

  place_t at_q;
  logic [6:0] left_q;  // descriptors of the block not yet requested
  logic no_mem, misaligned_q;  // error of the address at_q
  logic ask, ar_room, info_room, list_end, next_block;
  logic [ 7:0] to_page;
  logic [63:0] link;
  logic [ 5:0] link_adj;

  assign to_page = 8'd128 - 8'(at_q[11:DescLog2]);
  // A burst is computed in one cycle and requested in a later one.
  always_comb begin
    cut.count = 5'(BurstDescs);
    if (left_q < 7'(BurstDescs)) cut.count = 5'(left_q);
    if (to_page < 8'(cut.count)) cut.count = 5'(to_page);
    cut.upper     = Two && at_q[DescLog2];
    cut.block_end = 7'(cut.count) == left_q;
  end
  assign no_mem = ({at_q, DescLog2'(0)} >> HostBits) != '0;
  assign ask = cut_valid_q && !halt_i && !stop_i && ar_room && info_room;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || stop_i || list_end) cut_valid_q <= 1'b0;
    else cut_valid_q <= cut_valid_q ? !ask : left_q != '0 && !no_mem && !misaligned_q;
  end
  always_ff @(posedge clk_i) if (!cut_valid_q) cut_q <= cut;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || stop_i || list_end) left_q <= '0;
    else if (start_i) left_q <= 7'(adj_i) + 1'b1;
    else if (next_block) left_q <= 7'(link_adj) + 1'b1;
    else if (ask) left_q <= left_q - 7'(cut_q.count);
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      at_q         <= addr_i[63:DescLog2];
      misaligned_q <= addr_i[DescLog2-1:0] != '0;
    end else if (next_block) begin
      at_q         <= link[63:DescLog2];
      misaligned_q <= link[DescLog2-1:0] != '0;
    end else if (ask) begin
      at_q <= at_q + place_t'(cut_q.count);
    end
  end

  axi_ax_t ar;
  always_comb begin
    ar       = '0;
    ar.burst = BurstIncr;
    ar.size  = 3'(BeatLog2);
    ar.len   = Two ? 8'((7'(cut_q.upper) + 7'(cut_q.count) + 7'd1) >> 1) - 8'd1 : 8'(32'(cut_q.count) * DescBeats - 1);
    ar.addr  = {at_q, DescLog2'(0)} & ~64'(StrbW - 1);
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(ask),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  // An entry in this FIFO reserves room for its whole burst in the one below.
  via_fifo #(
    .T    (burst_t),
    .Depth(Bursts)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (cut_q),
    .s_valid_i(ask),
    .s_ready_o(info_room),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(head_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- beats to descriptors
  typedef struct packed {
    logic             fail;
    logic             dec;
    logic [DataW-1:0] data;
  } beat_t;
  beat_t beat;
  logic beat_valid, beat_pop;

  via_fifo #(
    .T    (beat_t),
    .Depth(Bursts * BurstBeats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ('{fail: m_r_i.resp != RespOkay, dec: m_r_i.resp == RespDecErr, data: m_r_i.data}),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_pop),
    .count_o  ()
  );

  logic [DescBits-1:0] raw;
  logic raw_valid, fail, dec, go, last, entry_room;
  logic [4:0] done_q;  // descriptors of this burst handled

  assign last = done_q + 1'b1 == head.count;
  assign head_pop = go && last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) done_q <= '0;
    else if (go) done_q <= last ? '0 : done_q + 1'b1;
  end

  if (Two) begin : gen_two
    logic upper;
    assign upper = head.upper ^ done_q[0];
    assign raw = upper ? beat.data[DataW-1-:DescBits] : beat.data[DescBits-1:0];
    assign {fail, dec} = {beat.fail, beat.dec};
    assign raw_valid = head_valid && beat_valid;
    assign beat_pop = go && (upper || last);
  end else if (DescBeats == 1) begin : gen_one
    assign raw = beat.data[DescBits-1:0];
    assign {fail, dec} = {beat.fail, beat.dec};
    assign raw_valid = head_valid && beat_valid;
    assign beat_pop = go;
  end else begin : gen_many
    localparam int unsigned PartW = $clog2(DescBeats);
    logic [DescBits-DataW-1:0] held_q;
    logic held_fail_q, held_dec_q;
    logic [PartW-1:0] part_q;
    logic part_last;
    assign part_last = part_q == PartW'(DescBeats - 1);
    assign raw = {beat.data, held_q};
    assign fail = beat.fail || held_fail_q;
    assign dec = beat.dec || held_dec_q;
    assign raw_valid = head_valid && beat_valid && part_last;
    assign beat_pop = go || head_valid && beat_valid && !part_last;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) part_q <= '0;
      else if (beat_pop) part_q <= part_last ? '0 : part_q + 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (beat_pop) begin
        held_q      <= (DescBits - DataW)'({beat.data, held_q} >> DataW);
        held_fail_q <= !part_last && (beat.fail || part_q != '0 && held_fail_q);
        held_dec_q  <= !part_last && (beat.dec || part_q != '0 && held_dec_q);
      end
    end
  end

  // ---------------------------------------------------------------- the list
  typedef struct packed {
    logic        ends;       // the list, by its flag or by its error
    logic        block_end;
    logic [5:0]  adj;
    logic [63:0] link;
    logic [27:0] len;
    xdma_desc_t  desc;       // none and less: behind the slice
  } entry_t;
  entry_t fresh, entry;
  logic entry_valid, over_q, drop, room, push, dead_end;
  xdma_desc_t desc;

  assign go = raw_valid && entry_room;
  always_comb begin
    fresh.desc     = '0;
    fresh.desc.err = XErrNone;
    if (fail) fresh.desc.err = dec ? XErrDescDec : XErrDescSlv;
    else if (raw[31:16] != DescMagic) fresh.desc.err = XErrMagic;
    fresh.desc.stop      = raw[0];
    fresh.desc.completed = raw[1];
    fresh.desc.src       = raw[64+:64];
    fresh.desc.dst       = raw[128+:64];
    fresh.ends           = raw[0] || fail || raw[31:16] != DescMagic;
    fresh.block_end      = head.block_end && last;
    fresh.adj            = raw[13:8];
    fresh.link           = raw[192+:64];
    fresh.len            = raw[32+:28];
  end

  via_slice #(
    .T(entry_t)
  ) u_entry (
    .clk_i,
    .rst_ni,
    .s_i      (fresh),
    .s_valid_i(raw_valid),
    .s_ready_o(entry_room),
    .m_o      (entry),
    .m_valid_o(entry_valid),
    .m_ready_i(drop || room)
  );

  assign link = entry.link;
  assign link_adj = entry.adj;

  // Descriptors read past the end of the list are dropped.
  assign drop = over_q || stop_i;
  // The next block cannot be read: reported when the last descriptor before it has gone.
  assign dead_end = left_q != '0 && (no_mem || misaligned_q) && !head_valid && !entry_valid;
  assign push = !drop && (entry_valid || dead_end);

  always_comb begin
    desc      = entry.desc;
    desc.none = entry.len == '0;
    desc.less = entry.len - 1'b1;
    if (!entry_valid) desc.err = misaligned_q ? XErrAlign : XErrDescDec;
  end

  assign list_end   = push && room && (entry.ends || !entry_valid);
  assign next_block = push && room && entry_valid && !entry.ends && entry.block_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) over_q <= 1'b0;
    else if (list_end) over_q <= 1'b1;
  end

  xdma_desc_t kept;
  logic kept_valid, kept_ready;
  via_fifo #(
    .T    (xdma_desc_t),
    .Depth(BurstDescs)
  ) u_descs (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (desc),
    .s_valid_i(push),
    .s_ready_o(room),
    .m_o      (kept),
    .m_valid_o(kept_valid),
    .m_ready_i(kept_ready),
    .count_o  ()
  );

  // The mover's adders begin at a register. After a stop the rest leaves at one descriptor a cycle.
  via_slice #(
    .T(xdma_desc_t)
  ) u_desc (
    .clk_i,
    .rst_ni,
    .s_i      (kept),
    .s_valid_i(kept_valid),
    .s_ready_o(kept_ready),
    .m_o      (desc_o),
    .m_valid_o(desc_valid_o),
    .m_ready_i(desc_ready_i || stop_i)
  );

  assign idle_o = !head_valid && !entry_valid && left_q == '0 && !kept_valid && !desc_valid_o;

endmodule
