// SPDX-License-Identifier: Apache-2.0
//
// Fetches the command rings of all slots from host memory and hands each slot its commands in order.
//
// Throughput: one command a cycle (32-byte entries; a narrower data path takes 32 B / beat cycles); up to `Fetch` commands a read, `Reads`
// reads in flight a slot, the further ones with no fewer. Latency: three cycles from doorbell to read, that of the read, three more to the
// command.
// Order: the commands of a slot in order; slots are served round robin. A command is fetched only if the slot's queue has room for it and
// the completion ring will have room for its completion, so a completion never waits for the host.
// Misuse: a tail more than a ring ahead of the head, or a ring that cannot be read, stops that ring (one EvRing event, status bit) until it
// is disabled; other slots continue. Commands fetched before a ring is disabled are still executed.

module via_cmdq
  import via_pkg::*;
#(
  parameter int unsigned Queue = 32,  // capacity of each slot's queue
  parameter int unsigned Fetch = 16,  // most commands per read, a power of two, 2 to 16
  parameter int unsigned Reads = 2    // reads in flight for a slot
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  ring_cfg_t                cmd_cfg_i   [NumSlots],  // command ring, from the registers
  input  ring_idx_t                cmd_tail_i  [NumSlots],  // doorbell: index up to which the host has written
  output ring_idx_t                cmd_head_o  [NumSlots],  // index up to which commands are fetched
  output logic      [NumSlots-1:0] on_o,                    // level: the ring may still be read
  output logic      [NumSlots-1:0] tail_err_o,              // level until disabled: the tail jumped
  output logic      [NumSlots-1:0] bus_err_o,               // level until disabled: a read failed
  input  ring_cfg_t                cpl_cfg_i   [NumSlots],  // completion ring, from the registers
  input  ring_idx_t                cpl_used_i  [NumSlots],  // completions in the ring, not yet read by the host
  input  logic      [NumSlots-1:0] cpl_done_i,              // one-cycle pulse: a completion left the card (written or dropped)
  output logic      [NumSlots-1:0] err_o,                   // one-cycle pulse: the ring stopped
  output logic      [NumSlots-1:0] err_info_o,              // with err_o: why, as in EvRing: 0 tail, 1 read
  // manager to host memory, reads only
  output axi_ax_t                  m_ar_o,
  output logic                     m_ar_valid_o,
  input  logic                     m_ar_ready_i,
  input  axi_r_t                   m_r_i,
  input  logic                     m_r_valid_i,
  output logic                     m_r_ready_o,
  output cmd_t                     cmd_o       [NumSlots],  // next command of each slot
  output logic      [NumSlots-1:0] cmd_valid_o,
  input  logic      [NumSlots-1:0] cmd_ready_i,
  output logic                     still_o,                 // nothing moves unless an input changes
  output logic                     idle_o                   // level: no read in flight, no command held
);

  localparam bit QueueOk = param_in("via_cmdq Queue", Queue, 2, 1024);
  localparam bit ReadsOk = param_in("via_cmdq Reads", Reads, 1, 8);
  localparam bit FetchOk = param_pow2("via_cmdq Fetch", Fetch, 2, (Queue < 16) ? Queue : 16);

  localparam int unsigned EntryB = 32;
  localparam int unsigned EntryLog2 = 5;
  localparam int unsigned PerBeat = (StrbW > EntryB) ? StrbW / EntryB : 1;  // commands in a beat
  localparam int unsigned BeatsPer = (StrbW < EntryB) ? EntryB / StrbW : 1;  // beats of a command
  localparam int unsigned FetchBeats = (PerBeat > 1) ? Fetch / PerBeat + 1 : Fetch * BeatsPer;
  localparam int unsigned CntW = $clog2(Queue + 1);
  localparam int unsigned FlightW = $clog2(Reads + 1);
  localparam int unsigned PosW = (PerBeat > 1) ? $clog2(PerBeat) : 1;

  localparam int unsigned FetchLog2 = $clog2(Fetch);

  // ---------------------------------------------------------------- how much each slot may fetch
  // Computed in four steps, each from registers: commands owed; entries of the completion ring in use; what each limit allows; the smallest.
  // The next read of a slot waits until they are finished; what others do meanwhile can only increase the room. What is in flight has its
  // room in the slot's queue and in the completion ring.
  logic [NumSlots-1:0] want, want_q, pick, full, busy, settling, tail_err_q, bus_err_q, jump, jump_q, r_fail, err_q, info_q;
  logic [NumSlots-1:0] fail_q;  // a read has failed
  logic [NumSlots-1:0] drop_q;  // a read has failed: nothing that comes behind it is executed, until the ring was off
  logic [NumSlots-1:0][FlightW-1:0] flight_q;  // reads in flight
  logic [NumSlots-1:0][CntW-1:0] claim_q;  // commands in flight
  logic [NumSlots-1:0][2:0] settled_q;
  logic [NumSlots-1:0][15:0] head_q, owed_q, total_q;  // read requested; those not completed; completion ring entries in use
  logic [NumSlots-1:0][15:0] index_q;  // head_q within the ring
  logic [NumSlots-1:0][15:0] read_q;  // the host may overwrite these entries
  logic [NumSlots-1:0][CntW-1:0] count_q, room;  // commands to fetch; room in the slot's queue
  logic [NumSlots-1:0][FetchLog2:0] avail_q, free_q, span_q;
  logic [NumSlots-1:0][63:EntryLog2] addr_q;
  logic [SlotW-1:0] slot;
  logic any, issue, ar_room;

  function automatic logic [FetchLog2:0] at_most(input logic [15:0] v);
    return |v[15:FetchLog2] ? (FetchLog2 + 1)'(Fetch) : {1'b0, v[FetchLog2-1:0]};
  endfunction

  function automatic logic [FetchLog2:0] smaller(input logic [FetchLog2:0] a, input logic [FetchLog2:0] b);
    return (a < b) ? a : b;
  endfunction

  for (genvar s = 0; s < NumSlots; s++) begin : gen_want
    logic [15:0] avail, ahead_q, mask_q, cpl_mask_q, cpl_free;
    logic enable_q;
    logic last_page;  // fewer than `Fetch` entries to the 4 KiB boundary (rings are aligned) or to the end of the ring: a read stops there
    logic [FetchLog2:0] count;
    assign avail = cmd_tail_i[s] - head_q[s];
    assign cpl_free = cpl_mask_q + 16'd1 - total_q[s];
    assign last_page = &(head_q[s][6:FetchLog2] | ~mask_q[6:FetchLog2]);

    assign jump[s] = cmd_cfg_i[s].enable && jump_q[s] && !tail_err_q[s];
    assign count = smaller(smaller(avail_q[s], free_q[s]), smaller(span_q[s], at_most(16'(room[s]))));
    assign want[s] = want_q[s] && !jump_q[s] && settled_q[s][2] && enable_q;

    always_ff @(posedge clk_i) begin
      mask_q     <= ~(16'hffff << cmd_cfg_i[s].size_log2);
      cpl_mask_q <= ~(16'hffff << cpl_cfg_i[s].size_log2);
      total_q[s] <= cpl_used_i[s] + owed_q[s];  // those in flight included

      avail_q[s] <= at_most(avail);
      ahead_q    <= avail;
      jump_q[s]  <= cmd_cfg_i[s].enable && enable_q && |(ahead_q & ~mask_q) && (|(ahead_q & ~{mask_q[14:0], 1'b1}) || |(ahead_q & mask_q));
      // More in use than the ring holds: the host has set a wrong index, see via_ringw.
      free_q[s]  <= |(total_q[s] & ~cpl_mask_q) ? '0 : at_most(cpl_free);
      span_q[s]  <= (FetchLog2 + 1)'(Fetch) - (last_page ? {1'b0, head_q[s][FetchLog2-1:0]} : '0);
      index_q[s] <= head_q[s] & mask_q;

      addr_q[s]  <= {cmd_cfg_i[s].base[63:12], 7'h0} + 59'(index_q[s]);
      count_q[s] <= CntW'(count);
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        settled_q[s] <= '0;
        want_q[s]    <= 1'b0;
      end else begin
        settled_q[s] <= {settled_q[s][1:0], 1'b1} & {3{cmd_cfg_i[s].enable && cpl_cfg_i[s].enable && !(issue && pick[s])}};
        want_q[s] <= cmd_cfg_i[s].enable && cpl_cfg_i[s].enable && settled_q[s][2] && !full[s] && !drop_q[s] && !tail_err_q[s] && !bus_err_q[s] &&
            !jump_q[s] && (busy[s] ? count == (FetchLog2 + 1)'(Fetch) : count != '0);
      end
    end
    always_ff @(posedge clk_i) begin
      enable_q <= cmd_cfg_i[s].enable;
      on_o[s]  <= cmd_cfg_i[s].enable || enable_q || busy[s];
    end
    assign cmd_head_o[s] = read_q[s];
    assign settling[s]   = enable_q && cpl_cfg_i[s].enable && !settled_q[s][2];
  end
  assign tail_err_o = tail_err_q;
  assign bus_err_o = bus_err_q;
  assign err_o = err_q;
  assign err_info_o = info_q;
  always_ff @(posedge clk_i) begin
    err_q  <= rst_ni ? jump | r_fail : '0;
    info_q <= r_fail;
  end

  via_rr_arb #(
    .N(NumSlots)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (want),
    .ack_i  (issue),
    .gnt_o  (pick),
    .idx_o  (slot),
    .valid_o(any)
  );
  assign issue = any && ar_room;

  // ---------------------------------------------------------------- read
  typedef struct packed {
    logic [SlotW-1:0] slot;
    logic [PosW-1:0]  pos;    // of the first command in the first beat
    logic [CntW-1:0]  count;
  } fetch_t;
  fetch_t fetch, now;
  logic now_valid, now_pop;
  axi_ax_t ar;
  logic [NumSlots-1:0][7:0] len;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_len
    if (PerBeat > 1) begin : gen_many
      assign len[s] = (8'(addr_q[s][EntryLog2+:PosW]) + 8'(count_q[s]) - 8'd1) >> $clog2(PerBeat);
    end else begin : gen_one
      assign len[s] = 8'(count_q[s]) * 8'(BeatsPer) - 8'd1;
    end
  end

  always_comb begin
    fetch.slot = slot;
    fetch.pos = (PerBeat > 1) ? addr_q[slot][EntryLog2+:PosW] : '0;
    fetch.count = count_q[slot];
    ar = '0;
    ar.burst = BurstIncr;
    ar.size = 3'(BeatLog2);
    ar.addr = {addr_q[slot], 5'h0} & ~64'(StrbW - 1);
    ar.len = len[slot];
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(issue),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  via_fifo #(
    .T    (fetch_t),
    .Depth(NumSlots * Reads)
  ) u_fetches (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (fetch),
    .s_valid_i(issue),
    .s_ready_o(),
    .m_o      (now),
    .m_valid_o(now_valid),
    .m_ready_i(now_pop),
    .count_o  ()
  );

  // There is room for all responses.
  typedef struct packed {
    logic             err;
    logic [DataW-1:0] data;
  } beat_t;
  beat_t beat;
  logic beat_valid, beat_pop;

  via_fifo #(
    .T    (beat_t),
    .Depth(NumSlots * Reads * FetchBeats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({m_r_i.resp != RespOkay, m_r_i.data}),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_pop),
    .count_o  ()
  );

  // ---------------------------------------------------------------- beats to commands
  logic [CntW-1:0] done_q;  // commands of this read handled
  logic failed_q, failed, cmd_whole, last_cmd;
  logic [255:0] entry;

  if (PerBeat > 1) begin : gen_split
    logic [PosW-1:0] pos;
    assign pos = now.pos + PosW'(done_q);
    assign entry = beat.data[256*pos+:256];
    assign cmd_whole = 1'b1;
    assign beat_pop = beat_valid && now_valid && (last_cmd || pos == PosW'(PerBeat - 1));
    assign failed = failed_q || beat.err || drop_q[now.slot] || fail_q[now.slot];
  end else if (BeatsPer > 1) begin : gen_join
    localparam int unsigned PartW = $clog2(BeatsPer);
    logic [PartW-1:0] part_q;
    logic [255:0] shift_q;
    assign entry = {beat.data, shift_q[255:DataW]};
    assign cmd_whole = part_q == PartW'(BeatsPer - 1);
    assign beat_pop = beat_valid && now_valid;
    assign failed = failed_q || beat.err || drop_q[now.slot] || fail_q[now.slot];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) part_q <= '0;
      else if (beat_pop) part_q <= cmd_whole ? '0 : part_q + 1'b1;
    end
    always_ff @(posedge clk_i) if (beat_pop) shift_q <= entry;
  end else begin : gen_same
    assign entry = beat.data;
    assign cmd_whole = 1'b1;
    assign beat_pop = beat_valid && now_valid;
    assign failed = failed_q || beat.err || drop_q[now.slot] || fail_q[now.slot];
  end

  logic step;  // a whole command has arrived
  assign step = beat_valid && now_valid && cmd_whole;
  assign last_cmd = done_q + 1'b1 == now.count;
  assign now_pop = step && last_cmd;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q   <= '0;
      failed_q <= 1'b0;
    end else begin
      if (step) done_q <= last_cmd ? '0 : done_q + 1'b1;
      if (now_pop) failed_q <= 1'b0;
      else if (beat_valid && now_valid && beat.err) failed_q <= 1'b1;
    end
  end

  // ---------------------------------------------------------------- per slot
  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    logic mine, ring_off, issued_q, lost_q;
    logic [CntW-1:0] held, given_q, issued;
    assign mine = now_valid && now.slot == SlotW'(s);
    assign r_fail[s] = fail_q[s] && !drop_q[s] && !ring_off;
    assign issued = issued_q ? given_q : '0;
    assign ring_off = !cmd_cfg_i[s].enable;
    assign room[s] = CntW'(Queue) - held - claim_q[s];
    assign full[s] = flight_q[s] == FlightW'(Reads);
    assign busy[s] = flight_q[s] != '0;

    via_fifo #(
      .T    (cmd_t),
      .Depth(Queue)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (cmd_t'(entry)),
      .s_valid_i(step && mine && !failed),
      .s_ready_o(),
      .m_o      (cmd_o[s]),
      .m_valid_o(cmd_valid_o[s]),
      .m_ready_i(cmd_ready_i[s]),
      .count_o  (held)
    );

    always_ff @(posedge clk_i) given_q <= count_q[s];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        flight_q[s]   <= '0;
        claim_q[s]    <= '0;
        drop_q[s]     <= 1'b0;
        fail_q[s]     <= 1'b0;
        lost_q        <= 1'b0;
        issued_q      <= 1'b0;
        tail_err_q[s] <= 1'b0;
        bus_err_q[s]  <= 1'b0;
        head_q[s]     <= '0;
        read_q[s]     <= '0;
        owed_q[s]     <= '0;
      end else begin
        flight_q[s] <= flight_q[s] + FlightW'(issue && pick[s]) - FlightW'(now_pop && mine);
        claim_q[s]  <= claim_q[s] + issued - CntW'(step && mine);
        fail_q[s]   <= now_pop && mine && failed;
        if (fail_q[s]) drop_q[s] <= 1'b1;
        else if (ring_off && !busy[s]) drop_q[s] <= 1'b0;

        if (ring_off) head_q[s] <= '0;
        else if (issue && pick[s]) head_q[s] <= head_q[s] + 16'(count_q[s]);
        if (ring_off) read_q[s] <= '0;
        else if (step && mine) read_q[s] <= read_q[s] + 1'b1;

        if (ring_off) tail_err_q[s] <= 1'b0;
        else if (jump[s]) tail_err_q[s] <= 1'b1;
        if (ring_off) bus_err_q[s] <= 1'b0;
        else if (r_fail[s] || drop_q[s]) bus_err_q[s] <= 1'b1;

        issued_q <= issue && pick[s];
        lost_q <= step && mine && failed;
        owed_q[s] <= owed_q[s] + 16'(issued) - 16'(cpl_done_i[s]) - 16'(lost_q);
      end
    end
  end

  logic still, idle;
  assign still = ~|{want, settling, jump, fail_q, err_q, cmd_valid_o & cmd_ready_i, m_ar_valid_o, m_r_valid_i, beat_valid};
  assign idle  = ~|{want, jump, busy, fail_q, err_q, cmd_valid_o, m_ar_valid_o};
  always_ff @(posedge clk_i) begin
    still_o <= still;
    idle_o  <= idle;
  end

endmodule
