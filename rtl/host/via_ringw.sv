// SPDX-License-Identifier: Apache-2.0
//
// Writes completions and events of all slots into their rings in host memory and decides on interrupts.
//
// Throughput: one entry a cycle (32-byte entries; a narrower data path takes 32 B / beat cycles). Latency: two cycles to the write. Many
// entries in flight. Order: entries of a ring in order; a ring's written index moves, and its interrupt is raised, once host memory has
// answered the write. Ring 2s holds the completions of slot s, ring 2s + 1 its events.
// A completion is always taken: via_cmdq fetched its command only with room for it. An event waits for room in its ring.
// Misuse: a completion for a disabled ring, one without room (the host moved its index astray), or a write that host memory refuses: the
// completion is dropped; the latter two stop the ring (CPL_ERR, EvRing) until it is disabled. Likewise events (EVT_ERR). Nobody waits.

module via_ringw
  import via_pkg::*;
(
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic      [          63:0] time_i,
  input  ring_cfg_t                  cfg_i       [2*NumSlots],
  input  ring_idx_t                  head_i      [2*NumSlots],  // doorbell: read by the host
  input  logic      [2*NumSlots-1:0] arm_i,                     // one pulse with the write of the doorbell
  output ring_idx_t                  tail_o      [2*NumSlots],  // written, visible to the host
  output ring_idx_t                  used_o      [2*NumSlots],  // entries in the ring or on their way, not read by the host
  output logic      [2*NumSlots-1:0] on_o,                      // the ring may still be written
  output logic      [2*NumSlots-1:0] err_o,                     // stands still
  output logic      [  NumSlots-1:0] cpl_err_o,                 // one pulse: a completion ring stopped
  input  cpl_t                       cpl_i       [  NumSlots],
  input  logic      [  NumSlots-1:0] cpl_valid_i,
  output logic      [  NumSlots-1:0] cpl_ready_o,
  input  evt_t                       evt_i       [  NumSlots],
  input  logic      [  NumSlots-1:0] evt_valid_i,
  output logic      [  NumSlots-1:0] evt_ready_o,
  output axi_ax_t                    m_aw_o,
  output logic                       m_aw_valid_o,
  input  logic                       m_aw_ready_i,
  output axi_w_t                     m_w_o,
  output logic                       m_w_valid_o,
  input  logic                       m_w_ready_i,
  input  axi_b_t                     m_b_i,
  input  logic                       m_b_valid_i,
  output logic                       m_b_ready_o,
  output logic      [2*NumSlots-1:0] irq_o,                     // one pulse
  output logic                       still_o,                   // nothing moves unless an input changes
  output logic                       idle_o
);

  localparam int unsigned Rings = 2 * NumSlots;
  localparam int unsigned RingW = $clog2(Rings);
  localparam int unsigned EntryLog2 = 5;
  localparam int unsigned BeatsPer = (StrbW < 32) ? 32 / StrbW : 1;
  localparam int unsigned PartW = (BeatsPer > 1) ? $clog2(BeatsPer) : 1;
  localparam int unsigned Window = 32;  // entries in flight

  // ---------------------------------------------------------------- pick a ring
  logic [Rings-1:0] valid, ready, drop, full, stop, pick, err_q;
  logic [Rings-1:0][15:0] alloc_q, tail_q;
  logic [Rings-1:0][5:0] flight_q;
  logic [RingW-1:0] ring;
  logic any, take, room, last_part;

  for (genvar r = 0; r < Rings; r++) begin : gen_in
    localparam int unsigned S = r / 2;
    logic [15:0] used;
    assign used = alloc_q[r] - head_i[r];
    assign full[r] = used >= (16'd1 << cfg_i[r].size_log2);
    assign used_o[r] = used;
    assign tail_o[r] = tail_q[r];
    assign on_o[r] = cfg_i[r].enable || flight_q[r] != '0;
    if (r % 2 == 0) begin : gen_cpl
      assign drop[r] = cpl_valid_i[S] && (!cfg_i[r].enable || err_q[r] || full[r]);
      assign stop[r] = cpl_valid_i[S] && cfg_i[r].enable && !err_q[r] && full[r];
      assign valid[r] = cpl_valid_i[S] && !drop[r];
      assign cpl_ready_o[S] = ready[r] || drop[r];
    end else begin : gen_evt
      assign drop[r] = evt_valid_i[S] && (!cfg_i[r].enable || err_q[r]);
      assign stop[r] = 1'b0;
      assign valid[r] = evt_valid_i[S] && !drop[r] && !full[r];
      assign evt_ready_o[S] = ready[r] || drop[r];
    end
  end

  via_rr_arb #(
    .N(Rings)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (valid),
    .ack_i  (take),
    .gnt_o  (),
    .idx_o  (ring),
    .valid_o(any)
  );

  // ---------------------------------------------------------------- make the entry
  logic [3:0][63:0] entry;
  logic [255:0] flat;
  logic [15:0] index, place;
  logic [63:0] addr;
  logic [PartW-1:0] part_q;
  logic aw_room, w_room;
  cpl_t cpl;
  evt_t evt;
  ring_cfg_t cfg;
  logic is_evt;

  assign cpl = cpl_i[SlotW'(ring>>1)];
  assign evt = evt_i[SlotW'(ring>>1)];
  assign is_evt = ring[0];
  assign cfg = cfg_i[ring];
  assign index = alloc_q[ring];
  assign place = index & ((16'd1 << cfg.size_log2) - 16'd1);
  assign addr = cfg.base + (64'(place) << EntryLog2);

  always_comb begin
    // word 0 holds the fields of cmd_t's word 0 where both have them: the tag in its upper half.
    if (is_evt) begin
      entry[0] = {40'h0, evt.source, 7'h0, evt.is_write, evt.cause};
      entry[1] = evt.va;
      entry[2] = evt.info;
    end else begin
      entry[0] = {cpl.tag, 8'h0, cpl.status, cpl.op, cpl.flags};
      entry[1] = 64'(cpl.bytes);
      entry[2] = cpl.info;
    end
    entry[3] = {~index[cfg.size_log2], time_i[62:0]};
  end

  assign flat = entry;

  logic beat_go;
  // An entry is taken with its first beat; what comes or goes on the ports after that does not change it.
  assign take = part_q == '0 && any && room && aw_room && w_room;
  assign beat_go = take || part_q != '0 && w_room;
  assign last_part = part_q == PartW'(BeatsPer - 1);
  assign ready = pick & {Rings{take}};
  assign pick = Rings'(1) << ring;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) part_q <= '0;
    else if (beat_go) part_q <= last_part ? '0 : part_q + 1'b1;
  end

  axi_ax_t aw;
  axi_w_t  w;
  always_comb begin
    aw       = '0;
    aw.burst = 2'b01;
    aw.size  = 3'(BeatLog2);
    aw.len   = 8'(BeatsPer - 1);
    aw.addr  = addr & ~64'(StrbW - 1);
    w.last   = last_part;
  end
  if (BeatsPer > 1) begin : gen_narrow
    logic [255:DataW] rest_q;
    assign w.data = (part_q == '0) ? flat[DataW-1:0] : rest_q[DataW+:DataW];
    assign w.strb = '1;
    always_ff @(posedge clk_i) begin
      if (take) rest_q <= flat[255:DataW];
      else if (beat_go) rest_q <= rest_q >> DataW;
    end
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
    .s_valid_i(take),
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

  // ---------------------------------------------------------------- answers
  logic [RingW-1:0] done;
  logic done_valid, answered;
  logic [Rings-1:0] b_ok, b_err, armed_q;

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
    logic mine, off, fire;
    assign mine = answered && done == RingW'(r);
    assign off = !cfg_i[r].enable;
    assign b_ok[r] = mine && m_b_i.resp == RespOkay && !err_q[r] && !off;
    assign b_err[r] = mine && m_b_i.resp != RespOkay && !err_q[r] && !off;
    // The host asks with the index it has read up to; anything written past it answers.
    assign fire = armed_q[r] && tail_q[r] != head_i[r];
    assign irq_o[r] = fire;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        alloc_q[r]  <= '0;
        tail_q[r]   <= '0;
        flight_q[r] <= '0;
        armed_q[r]  <= 1'b0;
        err_q[r]    <= 1'b0;
      end else begin
        if (off) alloc_q[r] <= '0;
        else if (ready[r]) alloc_q[r] <= alloc_q[r] + 1'b1;
        if (off) tail_q[r] <= '0;
        else if (b_ok[r]) tail_q[r] <= tail_q[r] + 1'b1;
        if (ready[r] != mine) flight_q[r] <= ready[r] ? flight_q[r] + 1'b1 : flight_q[r] - 1'b1;
        if (off || fire) armed_q[r] <= 1'b0;
        if (arm_i[r] && !off) armed_q[r] <= 1'b1;
        if (off) err_q[r] <= 1'b0;
        else if (b_err[r] || stop[r]) err_q[r] <= 1'b1;
      end
    end
  end
  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    assign cpl_err_o[s] = b_err[2*s] || stop[2*s];
  end
  assign err_o = err_q;

  // An event that waits for room changes nothing.
  logic [NumSlots-1:0] evt_waits;
  for (genvar s = 0; s < NumSlots; s++) begin : gen_waits
    assign evt_waits[s] = full[2*s+1] && !drop[2*s+1];
  end
  assign still_o = ~|{cpl_valid_i, valid, evt_valid_i & ~evt_waits, m_aw_valid_o, m_w_valid_o, m_b_valid_i, irq_o, arm_i};
  assign idle_o  = still_o && !done_valid;

endmodule
