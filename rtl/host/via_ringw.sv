// SPDX-License-Identifier: Apache-2.0
//
// Writes completions and events of all slots into their rings in host memory and decides on interrupts.
//
// Throughput: one entry a cycle (32-byte entries; a narrower data path takes 32 B / beat cycles), an event of one slot every third cycle.
// Latency: three cycles to the write. Many entries in flight. Order: entries of a ring in order; its written index moves, and its interrupt
// is raised, once the write has its response from host memory. Ring 2s holds the completions of slot s, ring 2s + 1 its events.
// A completion never waits for its ring: via_cmdq fetched its command only with room for it. An event waits for room in its ring; until it
// is accepted it may be replaced by another one.
// Misuse: a completion for a disabled ring, one without room (the host has set a wrong index), or a write that ends with an error is
// dropped; the latter two stop the ring (CPL_ERR, EvRing) until it is disabled. Likewise events (EVT_ERR). No other ring is delayed.
//
//   completion -> FIFO of its slot \                                    / AW
//                                    > pick -> entry_q -> address, beats    -> responses -> index, interrupt
//   event -> held of its slot ------/                                    \ W

module via_ringw
  import via_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,  // card time, for the time stamp
  input ring_cfg_t cfg_i[2*NumSlots],  // rings, from the registers
  input ring_idx_t head_i[2*NumSlots],  // doorbell: index up to which the host has read
  input logic [2*NumSlots-1:0] arm_i,  // pulse, with the write of the doorbell: arm the interrupt
  output ring_idx_t tail_o[2*NumSlots],  // index up to which entries are visible to the host
  output ring_idx_t used_o[2*NumSlots],  // entries in the ring or being written, not read by the host
  output logic [NumSlots-1:0] cpl_done_o,  // pulse: a completion left; if written, used_o counts it a cycle later
  output logic [2*NumSlots-1:0] on_o,  // level: the ring may still be written
  output logic [2*NumSlots-1:0] err_o,  // level until disabled: the ring has stopped
  output logic [NumSlots-1:0] cpl_err_o,  // one-cycle pulse: a completion ring stopped
  input cpl_t cpl_i[NumSlots],  // completions of each slot
  input logic [NumSlots-1:0] cpl_valid_i,
  output logic [NumSlots-1:0] cpl_ready_o,
  input evt_t evt_i[NumSlots],  // events of each slot
  input logic [NumSlots-1:0] evt_valid_i,
  output logic [NumSlots-1:0] evt_ready_o,
  output axi_ax_t m_aw_o,
  output logic m_aw_valid_o,
  input logic m_aw_ready_i,
  output axi_w_t m_w_o,
  output logic m_w_valid_o,
  input logic m_w_ready_i,
  input axi_b_t m_b_i,
  input logic m_b_valid_i,
  output logic m_b_ready_o,
  output logic [2*NumSlots-1:0] irq_o,  // one-cycle pulse: interrupt of the ring
  output logic still_o,  // nothing moves unless an input changes
  output logic idle_o  // level: no entry is held or in flight
);

  localparam int unsigned Rings = 2 * NumSlots;
  localparam int unsigned RingW = $clog2(Rings);
  localparam int unsigned EntryLog2 = 5;
  localparam int unsigned BeatsPer = (StrbW < 32) ? 32 / StrbW : 1;
  localparam int unsigned PartW = (BeatsPer > 1) ? $clog2(BeatsPer) : 1;
  localparam int unsigned Window = 32;  // entries in flight

  // ---------------------------------------------------------------- entries waiting for their ring
  // A completion waits in a FIFO, which is independent of everything else. An event is accepted once its ring has room for it.
  cpl_t cpl  [NumSlots];
  evt_t evt_q[NumSlots];
  logic [NumSlots-1:0] cpl_valid, cpl_pop, evt_valid_q, evt_pop, evt_ready_q;
  logic [Rings-1:0] valid, taken, drop, full, took_q, full_q, last_q, stop, pick, err_q, off;
  logic [Rings-1:0][15:0] alloc_q, tail_q, head_q, used_q;
  logic [Rings-1:0][5:0] flight_q;
  logic [Rings-1:0] flies_q;
  logic [NumSlots-1:0] done_q;
  logic [RingW-1:0] ring;
  logic any, take, room, next;  // `next`: the previous entry leaves or has left

  for (genvar s = 0; s < NumSlots; s++) begin : gen_source
    localparam int unsigned C = 2 * s;
    localparam int unsigned E = 2 * s + 1;

    via_fifo #(
      .T    (cpl_t),
      .Depth(4)
    ) u_cpl (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (cpl_i[s]),
      .s_valid_i(cpl_valid_i[s]),
      .s_ready_o(cpl_ready_o[s]),
      .m_o      (cpl[s]),
      .m_valid_o(cpl_valid[s]),
      .m_ready_i(cpl_pop[s]),
      .count_o  ()
    );
    assign drop[C] = cpl_valid[s] && (off[C] || err_q[C] || full[C]);
    assign stop[C] = cpl_valid[s] && !off[C] && !err_q[C] && full[C];
    assign valid[C] = cpl_valid[s] && !off[C] && !err_q[C] && !full[C];
    assign cpl_pop[s] = taken[C] || drop[C];

    assign drop[E] = evt_valid_q[s] && (off[E] || err_q[E]);
    assign stop[E] = 1'b0;
    assign valid[E] = evt_valid_q[s] && !off[E] && !err_q[E];
    assign evt_pop[s] = taken[E] || drop[E];
    assign evt_ready_o[s] = evt_ready_q[s];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        evt_ready_q[s] <= 1'b0;
        evt_valid_q[s] <= 1'b0;
      end else begin
        evt_ready_q[s] <= !(evt_ready_q[s] && evt_valid_i[s]) && !evt_valid_q[s] && (off[E] || err_q[E] || !full[E]);
        evt_valid_q[s] <= evt_ready_q[s] && evt_valid_i[s] || evt_valid_q[s] && !evt_pop[s];
      end
    end
    always_ff @(posedge clk_i) if (evt_ready_q[s]) evt_q[s] <= evt_i[s];
  end

  // The room is counted one cycle late: an entry accepted in the previous cycle fills the last entry.
  for (genvar r = 0; r < Rings; r++) begin : gen_room
    logic [15:0] used, mask;
    assign off[r] = !cfg_i[r].enable;
    assign used = alloc_q[r] - head_q[r];
    assign mask = ~(16'hffff << cfg_i[r].size_log2);
    assign full[r] = full_q[r] || took_q[r] && last_q[r];
    assign used_o[r] = used_q[r];
    assign tail_o[r] = tail_q[r];
    always_ff @(posedge clk_i) begin
      head_q[r] <= head_i[r];
      used_q[r] <= used;
      full_q[r] <= |(used & ~mask);
      last_q[r] <= used == mask;
      took_q[r] <= taken[r];
    end
  end

  via_rr_arb #(
    .N(Rings)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (valid),
    .ack_i  (take),
    .gnt_o  (pick),
    .idx_o  (ring),
    .valid_o(any)
  );
  assign take  = any && room && next;
  assign taken = pick & {Rings{take}};

  // ---------------------------------------------------------------- the entry
  // Word 0 has the layout of cmd_t's word 0 where both have a field; the tag is in its upper half.
  typedef struct packed {
    logic [3:0]       size_log2;
    logic [63:12]     base;
    logic [15:0]      index;
    logic [62:0]      stamp;
    logic [2:0][63:0] word;
  } entry_t;
  entry_t offer[Rings], entry, entry_q;
  logic entry_valid_q;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_offer
    assign offer[2*s] = '{
            size_log2: cfg_i[2*s].size_log2,
            base: cfg_i[2*s].base[63:12],
            index: alloc_q[2*s],
            stamp: time_i[62:0],
            word: {cpl[s].info, 64'(cpl[s].bytes), cpl[s].tag, 8'h0, cpl[s].status, cpl[s].op, cpl[s].flags}
        };
    assign offer[2*s+1] = '{
            size_log2: cfg_i[2*s+1].size_log2,
            base: cfg_i[2*s+1].base[63:12],
            index: alloc_q[2*s+1],
            stamp: time_i[62:0],
            word: {evt_q[s].info, evt_q[s].va, 40'h0, evt_q[s].source, 7'h0, evt_q[s].is_write, evt_q[s].cause}
        };
  end
  always_comb begin
    entry = '0;
    for (int unsigned r = 0; r < Rings; r++) if (pick[r]) entry |= offer[r];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) entry_valid_q <= 1'b0;
    else if (next) entry_valid_q <= take;
  end
  always_ff @(posedge clk_i) if (next) entry_q <= entry;

  logic [255:0] flat;
  logic [15:0] place;
  logic [63:0] addr;
  logic [PartW-1:0] part_q;
  logic aw_room, w_room, beat_go, aw_go, last_part;

  assign place = entry_q.index & ~(16'hffff << entry_q.size_log2);
  // Rings begin at a page: only page numbers are added.
  assign addr = {entry_q.base + 52'(place[15:12-EntryLog2]), place[11-EntryLog2:0], 5'h0};
  assign flat = {~entry_q.index[entry_q.size_log2], entry_q.stamp, entry_q.word};

  assign beat_go = entry_valid_q && w_room && (part_q != '0 || aw_room);
  assign aw_go = entry_valid_q && w_room && aw_room && part_q == '0;
  assign last_part = part_q == PartW'(BeatsPer - 1);
  assign next = !entry_valid_q || beat_go && last_part;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) part_q <= '0;
    else if (beat_go) part_q <= last_part ? '0 : part_q + 1'b1;
  end

  axi_ax_t aw;
  axi_w_t  w;
  always_comb begin
    aw       = '0;
    aw.burst = BurstIncr;
    aw.size  = 3'(BeatLog2);
    aw.len   = 8'(BeatsPer - 1);
    aw.addr  = addr & ~64'(StrbW - 1);
    w.last   = last_part;
  end
  if (BeatsPer > 1) begin : gen_narrow
    assign w.data = flat[part_q*DataW+:DataW];
    assign w.strb = '1;
  end else if (StrbW > 32) begin : gen_wide
    assign w.data = {StrbW / 32{flat}};
    assign w.strb = StrbW'(32'hffff_ffff) << addr[BeatLog2-1:0];
  end else begin : gen_same
    assign w.data = flat;
    assign w.strb = '1;
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (aw),
    .s_valid_i(aw_go),
    .s_ready_o(aw_room),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i)
  );

  via_slice #(
    .T(axi_w_t)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i      (w),
    .s_valid_i(beat_go),
    .s_ready_o(w_room),
    .m_o      (m_w_o),
    .m_valid_o(m_w_valid_o),
    .m_ready_i(m_w_ready_i)
  );

  // ---------------------------------------------------------------- responses
  logic [RingW-1:0] done;
  logic done_valid, answered;
  logic [Rings-1:0] b_ok, b_err, arm_q, armed_q, irq_q;
  logic [NumSlots-1:0] cpl_err_q;

  via_fifo #(
    .T    (logic [RingW-1:0]),
    .Depth(Window)
  ) u_flight (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (ring),
    .s_valid_i(take),
    .s_ready_o(room),
    .m_o      (done),
    .m_valid_o(done_valid),
    .m_ready_i(answered),
    .count_o  ()
  );
  assign m_b_ready_o = done_valid;
  assign answered = done_valid && m_b_valid_i;

  for (genvar r = 0; r < Rings; r++) begin : gen_ring
    logic mine, fire;
    assign mine = answered && done == RingW'(r);
    assign b_ok[r] = mine && m_b_i.resp == RespOkay && !err_q[r] && !off[r];
    assign b_err[r] = mine && m_b_i.resp != RespOkay && !err_q[r] && !off[r];
    // The host arms the interrupt with the index up to which it has read; anything written past that raises it.
    assign fire = armed_q[r] && tail_q[r] != head_q[r];
    assign on_o[r] = flies_q[r];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        alloc_q[r]  <= '0;
        tail_q[r]   <= '0;
        flight_q[r] <= '0;
        flies_q[r]  <= 1'b0;
        armed_q[r]  <= 1'b0;
        irq_q[r]    <= 1'b0;
        err_q[r]    <= 1'b0;
      end else begin
        if (off[r]) alloc_q[r] <= '0;
        else if (taken[r]) alloc_q[r] <= alloc_q[r] + 1'b1;
        if (off[r]) tail_q[r] <= '0;
        else if (b_ok[r]) tail_q[r] <= tail_q[r] + 1'b1;
        if (taken[r] != mine) flight_q[r] <= taken[r] ? flight_q[r] + 1'b1 : flight_q[r] - 1'b1;
        flies_q[r] <= !off[r] || took_q[r] || flight_q[r] != '0;
        // The doorbell's index arrives a cycle later, so its pulse is delayed as well.
        armed_q[r] <= !off[r] && (arm_q[r] || armed_q[r] && !fire);
        irq_q[r]   <= fire && !off[r];
        if (off[r]) err_q[r] <= 1'b0;
        else if (b_err[r] || stop[r]) err_q[r] <= 1'b1;
      end
    end
  end
  assign irq_o = irq_q;
  assign err_o = err_q;

  // The pulse comes one cycle before the count that includes the entry, as via_cmdq updates its own count a cycle after the pulse.
  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        done_q[s]    <= 1'b0;
        cpl_err_q[s] <= 1'b0;
      end else begin
        done_q[s]    <= cpl_pop[s];
        cpl_err_q[s] <= b_err[2*s] || stop[2*s];
      end
    end
  end
  always_ff @(posedge clk_i) arm_q <= rst_ni ? arm_i : '0;
  assign cpl_done_o = done_q;
  assign cpl_err_o  = cpl_err_q;

  // An event that waits for room changes nothing.
  logic [NumSlots-1:0] evt_moves;
  for (genvar s = 0; s < NumSlots; s++) begin : gen_moves
    assign evt_moves[s] = evt_valid_q[s] || evt_valid_i[s] && (evt_ready_q[s] || off[2*s+1] || err_q[2*s+1] || !full[2*s+1]);
  end
  logic still, idle;
  assign still = ~|{cpl_valid_i, cpl_valid, evt_moves, entry_valid_q, m_aw_valid_o, m_w_valid_o, m_b_valid_i, irq_q, arm_i, arm_q};
  assign idle  = still && !done_valid;
  always_ff @(posedge clk_i) begin
    still_o <= still;
    idle_o  <= idle;
  end

endmodule
