// SPDX-License-Identifier: Apache-2.0
//
// MMU of one slot: translates AR and AW, each by its own pipelined TLB (via_tlb) with 4 KiB and 2 MiB pages at once.
//
// Throughput: one translation a cycle and direction. Latency: two cycles. Order: kept in each direction; a miss holds up later bursts, which
// are looked up meanwhile: their misses are posted while the first one waits (one in two cycles), up to Waiting + 3 bursts in each direction.
// R, W and B do not pass through. A change of the TLBs (OpMap, OpUnmap, OpScan) costs about ten cycles in which nothing is translated.
//
// OpMap     fills an invalid way; if there is none, it evicts the ways of the set in turn. A victim is reported unless it is in the page table,
//           and so is an entry of the same page, which is replaced in place. StBadArg for a page that is not entirely in card memory (or, with `host`,
//           below 2^52).
// OpUnmap   invalidates at once; completes when every burst translated before is complete. StNotFound if there was no such page.
// OpScan    reports and clears the accessed bit, leaves dirty.
// OpDeny    completes all misses waiting on the page with an error (three to five cycles for each burst that waits); StNotFound if there was none.
// Accessed = translated for a read or a write since OpMap or the last OpScan; dirty = translated for a write since OpMap. To be looked up
// behind a miss is neither.
// Events: one for a page that misses, as long as no other page is posted between; another one for each direction, for another reason, or
// when the page has been mapped and has left the TLB before the burst's turn. The host tolerates one that is out of date. What misses during
// an abort posts nothing; events posted before it may leave during it, and later.
// After reset the arrays are cleared: for as many cycles as the larger array has sets nothing is translated, bursts wait.
// Misuse: an address beyond VaW completes with an error and posts an event; it never reaches memory. No translation leads beyond the card's
// memory: OpMap is refused.
// Source: FSRF paper, sections 4.5 and 5.2, its six-cycle state machine replaced by a pipeline, its single fault by many.

module via_mmu
  import via_pkg::*;
#(
  parameter int unsigned PageWays = MmuPageWays,  // geometry of the TLB for 4 KiB pages
  parameter int unsigned PageSets = MmuPageSets,
  parameter int unsigned HugeWays = MmuHugeWays,  // and of that for 2 MiB pages
  parameter int unsigned HugeSets = MmuHugeSets,
  parameter int unsigned Waiting  = 64,    // bursts of each direction that wait behind a missing one
  parameter int unsigned Walks    = 32     // misses of both directions, and commands, under way to the page table
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic       [31:0] chan_mib_i,       // size of each DRAM channel in MiB, constant
  input  table_cfg_t        table_i,          // page table of the slot; constant while it is enabled
  input  axi_ax_t           v_ar_i,
  input  logic              v_ar_valid_i,
  output logic              v_ar_ready_o,
  input  axi_ax_t           v_aw_i,
  input  logic              v_aw_valid_i,
  output logic              v_aw_ready_o,
  output axi_ax_t           p_ar_o,
  output logic              p_ar_valid_o,
  input  logic              p_ar_ready_i,
  output axi_ax_t           p_aw_o,
  output logic              p_aw_valid_o,
  input  logic              p_aw_ready_i,
  input  logic              rd_done_i,        // pulse: the last R of a burst was delivered
  input  logic              wr_done_i,        // pulse: B of a burst was delivered
  input  cmd_t              cmd_i,            // OpMap, OpUnmap, OpScan or OpDeny
  input  logic              cmd_valid_i,
  output logic              cmd_ready_o,
  output cpl_t              cpl_o,            // completion
  output logic              cpl_valid_o,
  input  logic              cpl_ready_i,
  output evt_t              evt_o,            // a miss or a permission fault, waiting for the host
  output logic              evt_valid_o,
  input  logic              evt_ready_i,
  output axi_ax_t           walk_ar_o,        // page table in card memory
  output logic              walk_ar_valid_o,
  input  logic              walk_ar_ready_i,
  input  axi_r_t            walk_r_i,
  input  logic              walk_r_valid_i,
  output logic              walk_r_ready_o,
  output axi_ax_t           walk_aw_o,
  output logic              walk_aw_valid_o,
  input  logic              walk_aw_ready_i,
  output axi_w_t            walk_w_o,
  output logic              walk_w_valid_o,
  input  logic              walk_w_ready_i,
  input  axi_b_t            walk_b_i,
  input  logic              walk_b_valid_i,
  output logic              walk_b_ready_o,
  input  logic              abort_i,          // level: all translations complete with an error
  output logic       [31:0] n_rd_o,           // translated reads, wrapping
  output logic       [31:0] n_wr_o,           // translated writes, wrapping
  output logic       [31:0] n_rd_miss_o,      // misses of reads, wrapping
  output logic       [31:0] n_wr_miss_o,      // misses of writes, wrapping
  output logic              quiet_o,          // level: bursts that ended leave no access to the page table
  output logic              idle_o            // level: nothing is held or waits; translated bursts may be in flight
);

  localparam bit PageWaysOk = param_in("via_mmu PageWays", PageWays, 1, 64);
  localparam bit PageSetsOk = param_pow2("via_mmu PageSets", PageSets, 2, 65536);
  localparam bit HugeWaysOk = param_in("via_mmu HugeWays", HugeWays, 1, 64);
  localparam bit HugeSetsOk = param_pow2("via_mmu HugeSets", HugeSets, 2, 65536);
  localparam bit WaitingOk = param_pow2("via_mmu Waiting", Waiting, 2, 1024);
  localparam bit WalksOk = param_pow2("via_mmu Walks", Walks, 2, 128);

  localparam int unsigned PWayW = (PageWays > 1) ? $clog2(PageWays) : 1;
  localparam int unsigned HWayW = (HugeWays > 1) ? $clog2(HugeWays) : 1;
  localparam int unsigned MaxSets = (PageSets > HugeSets) ? PageSets : HugeSets;
  localparam int unsigned SweepW = $clog2(MaxSets);
  localparam int unsigned CntW = 16;

  // ---------------------------------------------------------------- control of both TLBs
  typedef enum logic [2:0] {
    Sweep,  // after reset
    Idle,
    Hold,   // wait until both pipelines have stopped, read the set
    Look,   // the set is read: choose the way
    Act,    // change it
    Deny,   // both pipelines mark what waits on the page
    Post    // hand over the completion
  } state_e;
  state_e state_q;
  logic [SweepW-1:0] sweep_q;
  logic last_set_q;  // sweep_q is the last set

  // What via_walk hands over: commands, and translations from the page table (`fill`).
  cmd_t act, cmd_q;
  logic act_valid, act_fill, act_bad, act_found, act_accessed, act_dirty, act_damaged;
  logic [15:0] act_number;
  logic fill_q, unfit, told_found_q, told_accessed_q, told_dirty_q, told_damaged_q;
  // The table has the dirty bit: an entry of it permits writes only once that is set.
  pte_t wpte;
  always_comb begin
    wpte = pte_t'(cmd_q.addr1);
    wpte.w &= fill_q || !cmd_q.flags[FlagTable];
  end
  logic hold_q, sweeping_q, op_re, op_we, op_touch, op_sweep, op_wvalid, op_huge, op_left, op_map, deny;
  logic op_ever[2];
  logic [VaW-1:0] op_va, op_ra, act_va;
  logic meets;  // the fill that may follow is of the same set
  logic [PWayW-1:0] op_pway_q, pvictim_q;
  logic [HWayW-1:0] op_hway_q, hvictim_q;

  logic held[2], op_hit[2][2], denied[2], tlb_idle[2];
  logic [PWayW-1:0] page_way[2];
  logic [HWayW-1:0] huge_way[2];
  logic [PageWays-1:0] page_valid[2], page_ever[2], page_recent[2], page_kept[2], kept_q;
  logic [HugeWays-1:0] huge_valid[2], huge_ever[2], huge_recent[2];
  logic [VaW-1:0] page_va[2][PageWays], huge_va[2][HugeWays];

  axi_ax_t v[2], p[2];
  logic v_valid[2], v_ready[2], p_valid[2], p_ready[2], miss[2];
  evt_t evt[2];
  logic evt_valid[2], evt_ready[2];

  assign v[0] = v_ar_i;
  assign v[1] = v_aw_i;
  assign v_valid[0] = v_ar_valid_i;
  assign v_valid[1] = v_aw_valid_i;
  assign v_ar_ready_o = v_ready[0];
  assign v_aw_ready_o = v_ready[1];
  assign p_ar_o = p[0];
  assign p_aw_o = p[1];
  assign p_ar_valid_o = p_valid[0];
  assign p_aw_valid_o = p_valid[1];
  assign p_ready[0] = p_ar_ready_i;
  assign p_ready[1] = p_aw_ready_i;

  for (genvar d = 0; d < 2; d++) begin : gen_dir
    via_tlb #(
      .PageWays(PageWays),
      .PageSets(PageSets),
      .HugeWays(HugeWays),
      .HugeSets(HugeSets),
      .Waiting (Waiting),
      .Write   (d == 1)
    ) u_tlb (
      .clk_i,
      .rst_ni,
      .v_i          (v[d]),
      .v_valid_i    (v_valid[d]),
      .v_ready_o    (v_ready[d]),
      .p_o          (p[d]),
      .p_valid_o    (p_valid[d]),
      .p_ready_i    (p_ready[d]),
      .evt_o        (evt[d]),
      .evt_valid_o  (evt_valid[d]),
      .evt_ready_i  (evt_ready[d]),
      .abort_i,
      .miss_o       (miss[d]),
      .hold_i       (hold_q),
      .held_o       (held[d]),
      .op_re_i      (op_re),
      .op_ra_i      (op_ra),
      .op_va_i      (op_va),
      .op_hit_o     (op_hit[d]),
      .page_way_o   (page_way[d]),
      .huge_way_o   (huge_way[d]),
      .page_valid_o (page_valid[d]),
      .page_ever_o  (page_ever[d]),
      .page_recent_o(page_recent[d]),
      .page_kept_o  (page_kept[d]),
      .page_va_o    (page_va[d]),
      .huge_valid_o (huge_valid[d]),
      .huge_ever_o  (huge_ever[d]),
      .huge_recent_o(huge_recent[d]),
      .huge_va_o    (huge_va[d]),
      .op_we_i      (op_we),
      .op_sweep_i   (op_sweep),
      .op_touch_i   (op_touch),
      .op_ever_i    (op_ever[d]),
      .op_huge_i    (op_huge),
      .op_page_way_i(op_pway_q),
      .op_huge_way_i(op_hway_q),
      .op_wvalid_i  (op_wvalid),
      .op_wkept_i   (!cmd_q.flags[FlagTable]),
      .op_wpte_i    (wpte),
      .op_left_i    (op_left),
      .op_map_i     (op_map),
      .deny_i       (deny),
      .denied_o     (denied[d]),
      .idle_o       (tlb_idle[d])
    );
  end

  // ---------------------------------------------------------------- commands
  // The victim of OpMap: the entry of the same page, else an invalid way, else the ways in turn. A fill displaces only what is in the page table.
  logic is_map, is_unmap, is_scan, is_deny, found_q;
  assign is_map   = cmd_q.op == OpMap;
  assign is_unmap = cmd_q.op == OpUnmap;
  assign is_scan  = cmd_q.op == OpScan;
  assign is_deny  = cmd_q.op == OpDeny;
  assign op_huge  = cmd_q.flags[FlagHuge] && !sweeping_q;

  logic [PWayW-1:0] page_free;
  logic [HWayW-1:0] huge_free;
  always_comb begin
    page_free = pvictim_q;
    if (fill_q && page_kept[0][pvictim_q]) for (int unsigned w = 0; w < PageWays; w++) if (!page_kept[0][w]) page_free = PWayW'(w);
    for (int unsigned w = 0; w < PageWays; w++) if (!page_valid[0][w]) page_free = PWayW'(w);
    huge_free = hvictim_q;
    for (int unsigned w = 0; w < HugeWays; w++) if (!huge_valid[0][w]) huge_free = HWayW'(w);
  end
  always_ff @(posedge clk_i) begin
    if (state_q == Look) begin
      found_q   <= op_hit[0][op_huge];
      kept_q    <= page_kept[0];
      op_pway_q <= op_hit[0][0] ? page_way[0] : page_free;
      op_hway_q <= op_hit[0][1] ? huge_way[0] : huge_free;
    end
  end

  // The arrays still have what was read.
  logic accessed, dirty, victim_valid, victim_told;
  logic [VaW-1:0] victim_va;
  always_comb begin
    if (op_huge) begin
      victim_valid = huge_valid[0][op_hway_q];
      victim_told  = victim_valid;
      victim_va    = huge_va[0][op_hway_q];
      accessed     = huge_recent[0][op_hway_q] || huge_recent[1][op_hway_q];
      dirty        = huge_ever[1][op_hway_q];
      op_ever[0]   = huge_ever[0][op_hway_q];
      op_ever[1]   = huge_ever[1][op_hway_q];
    end else begin
      victim_valid = page_valid[0][op_pway_q];
      victim_told  = page_kept[0][op_pway_q];
      victim_va    = page_va[0][op_pway_q];
      accessed     = page_recent[0][op_pway_q] || page_recent[1][op_pway_q];
      dirty        = page_ever[1][op_pway_q];
      op_ever[0]   = page_ever[0][op_pway_q];
      op_ever[1]   = page_ever[1][op_pway_q];
    end
  end

  // A fill finds its page, or all of the set, kept: it does not enter.
  assign unfit = fill_q && kept_q[op_pway_q];

  logic idle_cmd, both_held, deny_q, room, cmd_go, cmd_ready_q, act_ready;
  logic [2:0] run_q;  // fills since the arrays were taken
  logic again_q;  // the last cycle of a fill, and another one may follow
  logic [3:0] waiting;  // completions
  assign both_held = held[0] && held[1];
  assign idle_cmd  = state_q == Idle;

  assign op_sweep  = sweeping_q && both_held;
  assign op_va     = sweeping_q ? VaW'(sweep_q) << PageLog2 : cmd_q.addr0[VaW-1:0];
  // The set of a fill that follows another one is read while that is entered, unless it is the same set.
  assign op_re     = state_q == Hold && both_held || again_q;
  assign op_ra     = again_q ? act_va : cmd_q.addr0[VaW-1:0];
  assign meets     = act_va[PageLog2+:$clog2(PageSets)] == cmd_q.addr0[PageLog2+:$clog2(PageSets)];
  assign op_wvalid = state_q == Act && is_map;
  assign op_we     = state_q == Act && (is_map && !unfit || is_unmap && found_q);
  assign op_touch  = state_q == Act && is_scan && found_q;
  // An entry that is replaced in place does not leave: a burst that now lacks the right posts that in any case.
  assign op_left   = state_q == Act && (is_map && !unfit && victim_valid && !found_q || is_unmap && found_q);
  assign op_map    = state_q == Act && is_map && !unfit;
  assign deny      = state_q == Deny && deny_q;
  // A fill that waits follows another one without giving the arrays back, a few times.
  assign act_ready = cmd_ready_q || again_q && act_fill;
  assign cmd_go    = act_valid && act_ready;

  state_e state_d;
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Sweep: if (both_held && last_set_q) state_d = Idle;
      Idle: if (cmd_go) state_d = act_bad ? Post : Hold;
      Hold: if (both_held) state_d = Look;
      Look: state_d = Act;
      Act: state_d = !fill_q ? (is_deny ? Deny : Post) : !cmd_go ? Idle : meets ? Hold : Look;
      Deny: if (!deny_q && both_held) state_d = Post;
      default: state_d = Idle;  // Post: there was room for the completion when the command was accepted
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= Sweep;
      hold_q      <= 1'b1;
      sweeping_q  <= 1'b1;
      sweep_q     <= '0;
      last_set_q  <= 1'b0;
      deny_q      <= 1'b0;
      cmd_ready_q <= 1'b0;
      run_q       <= '0;
      again_q     <= 1'b0;

    end else begin
      deny_q      <= state_q == Act;
      // Ready again in the first cycle of Idle; a completion on its way into the FIFO counts.
      cmd_ready_q <= (state_q == Post || state_q == Act && fill_q && !cmd_go) ? waiting < 4'd7 : idle_cmd && room && !cmd_go;
      run_q       <= idle_cmd ? '0 : run_q + 3'(cmd_go);
      again_q     <= state_q == Look && fill_q && run_q != '1;
      if (state_q == Sweep && both_held) begin
        sweep_q    <= sweep_q + 1'b1;
        last_set_q <= sweep_q == SweepW'(MaxSets - 2);
      end
      state_q <= state_d;
      hold_q <= state_d inside {Sweep, Hold, Look, Act, Deny};
      sweeping_q <= state_d == Sweep;
    end
  end

  cpl_t cpl_q;
  always_ff @(posedge clk_i) begin
    if (cmd_go) begin
      cmd_q           <= act;
      fill_q          <= act_fill;
      told_found_q    <= act_found;
      told_accessed_q <= act_accessed;
      told_dirty_q    <= act_dirty;
      told_damaged_q  <= act_damaged;
      cpl_q           <= '0;
      cpl_q.tag       <= act.tag;
      cpl_q.op        <= act.op;
      cpl_q.bytes     <= 32'(act_number);
      cpl_q.status    <= act_bad ? StBadArg : StOk;
    end
    if (state_q == Act) begin
      if (is_map) begin
        cpl_q.flags[CplVictim]         <= victim_told;
        cpl_q.flags[CplVictimAccessed] <= victim_told && accessed;
        cpl_q.flags[CplVictimDirty]    <= victim_told && dirty;
        cpl_q.flags[CplVictimHuge]     <= victim_told && op_huge;
        cpl_q.info                     <= victim_told ? 64'(victim_va) : '0;
        if (op_huge) hvictim_q <= (hvictim_q == HWayW'(HugeWays - 1)) ? '0 : hvictim_q + 1'b1;
        else pvictim_q <= (pvictim_q == PWayW'(PageWays - 1)) ? '0 : pvictim_q + 1'b1;
      end else if (!is_deny) begin
        cpl_q.flags[CplAccessed] <= found_q && accessed || told_accessed_q;
        cpl_q.flags[CplDirty]    <= found_q && dirty || told_dirty_q;
        cpl_q.flags[CplDamaged]  <= told_damaged_q;
        if (!found_q && !told_found_q) cpl_q.status <= StNotFound;
      end
    end
    if (state_q == Deny && !denied[0] && !denied[1]) cpl_q.status <= StNotFound;
    if (state_q == Deny && (denied[0] || denied[1])) cpl_q.status <= StOk;
    if (!rst_ni) begin
      pvictim_q <= '0;
      hvictim_q <= '0;
    end
  end

  // ---------------------------------------------------------------- completions
  // Each completion carries how many bursts had been translated, and entries of the page table written, when it was made. As OpMap may have
  // displaced an entry in use, every completion waits for these bursts: a displaced or unmapped frame is free when the host sees the
  // completion.
  typedef struct packed {
    logic [CntW-1:0] rd;
    logic [CntW-1:0] wr;
    logic [CntW-1:0] mark;
    logic in_table;
    cpl_t cpl;
  } wait_t;
  logic [CntW-1:0] rd_issued_q, rd_done_q, wr_issued_q, wr_done_q, marks_issued, marks_done;
  wait_t first;
  logic first_valid, first_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_issued_q <= '0;
      rd_done_q   <= '0;
      wr_issued_q <= '0;
      wr_done_q   <= '0;
    end else begin
      if (p_valid[0] && p_ready[0]) rd_issued_q <= rd_issued_q + 1'b1;
      if (p_valid[1] && p_ready[1]) wr_issued_q <= wr_issued_q + 1'b1;
      if (rd_done_i) rd_done_q <= rd_done_q + 1'b1;
      if (wr_done_i) wr_done_q <= wr_done_q + 1'b1;
    end
  end

  via_fifo #(
    .T    (wait_t),
    .Depth(8)
  ) u_wait (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      ({rd_issued_q, wr_issued_q, marks_issued, cmd_q.flags[FlagTable], cpl_q}),
    .s_valid_i(state_q == Post),
    .s_ready_o(room),
    .m_o      (first),
    .m_valid_o(first_valid),
    .m_ready_i(first_ready),
    .count_o  (waiting)
  );

  // After an error response the page table counts no more: nothing that a command has done to it is sure.
  logic reached, cpl_room, walk_broken;
  cpl_t cpl;
  always_comb begin
    cpl = first.cpl;
    if (first.in_table && walk_broken) begin
      if (cpl.op == OpMap) begin
        if (cpl.status == StOk) cpl.status = StCardErr;
      end else cpl.flags[CplDamaged] = 1'b1;
    end
  end
  assign reached = $signed(rd_done_q - first.rd) >= 0 && $signed(wr_done_q - first.wr) >= 0 && $signed(marks_done - first.mark) >= 0;
  assign first_ready = reached && cpl_room;
  via_slice #(
    .T  (cpl_t),
    .Ram(1'b1)
  ) u_cpl (
    .clk_i,
    .rst_ni,
    .s_i      (cpl),
    .s_valid_i(first_valid && reached),
    .s_ready_o(cpl_room),
    .m_o      (cpl_o),
    .m_valid_o(cpl_valid_o),
    .m_ready_i(cpl_ready_i)
  );

  // ---------------------------------------------------------------- misses and counters
  // Both directions in turn; then to the page table.
  logic evt_room, evt_pick, evt_last_q, missed_valid, missed_ready, walk_idle, walk_quiet;
  evt_t missed;
  assign evt_pick = evt_valid[1] && (!evt_valid[0] || !evt_last_q);
  assign evt_ready[0] = evt_room && !evt_pick;
  assign evt_ready[1] = evt_room && evt_pick;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) evt_last_q <= 1'b0;
    else if (evt_room && (evt_valid[0] || evt_valid[1])) evt_last_q <= evt_pick;
  end
  via_slice #(
    .T(evt_t)
  ) u_evt (
    .clk_i,
    .rst_ni,
    .s_i      (evt_pick ? evt[1] : evt[0]),
    .s_valid_i(evt_valid[0] || evt_valid[1]),
    .s_ready_o(evt_room),
    .m_o      (missed),
    .m_valid_o(missed_valid),
    .m_ready_i(missed_ready)
  );

  via_walk #(
    .Walks(Walks)
  ) u_walk (
    .clk_i,
    .rst_ni,
    .chan_mib_i,
    .table_i,
    .abort_i,
    .evt_i         (missed),
    .evt_valid_i   (missed_valid),
    .evt_ready_o   (missed_ready),
    .evt_o,
    .evt_valid_o,
    .evt_ready_i,
    .cmd_i,
    .cmd_valid_i,
    .cmd_ready_o,
    .act_o         (act),
    .act_valid_o   (act_valid),
    .act_ready_i   (act_ready),
    .act_va_o      (act_va),
    .act_fill_o    (act_fill),
    .act_bad_o     (act_bad),
    .act_found_o   (act_found),
    .act_accessed_o(act_accessed),
    .act_dirty_o   (act_dirty),
    .act_damaged_o (act_damaged),
    .act_number_o  (act_number),
    .fill_done_i   (state_q == Act && fill_q),
    .fill_unfit_i  (unfit),
    .marks_issued_o(marks_issued),
    .marks_done_o  (marks_done),
    .broken_o      (walk_broken),
    .m_ar_o        (walk_ar_o),
    .m_ar_valid_o  (walk_ar_valid_o),
    .m_ar_ready_i  (walk_ar_ready_i),
    .m_r_i         (walk_r_i),
    .m_r_valid_i   (walk_r_valid_i),
    .m_r_ready_o   (walk_r_ready_o),
    .m_aw_o        (walk_aw_o),
    .m_aw_valid_o  (walk_aw_valid_o),
    .m_aw_ready_i  (walk_aw_ready_i),
    .m_w_o         (walk_w_o),
    .m_w_valid_o   (walk_w_valid_o),
    .m_w_ready_i   (walk_w_ready_i),
    .m_b_i         (walk_b_i),
    .m_b_valid_i   (walk_b_valid_i),
    .m_b_ready_o   (walk_b_ready_o),
    .quiet_o       (walk_quiet),
    .idle_o        (walk_idle)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      n_rd_o      <= '0;
      n_wr_o      <= '0;
      n_rd_miss_o <= '0;
      n_wr_miss_o <= '0;
    end else begin
      if (p_valid[0] && p_ready[0]) n_rd_o <= n_rd_o + 1'b1;
      if (p_valid[1] && p_ready[1]) n_wr_o <= n_wr_o + 1'b1;
      if (miss[0]) n_rd_miss_o <= n_rd_miss_o + 1'b1;
      if (miss[1]) n_wr_miss_o <= n_wr_miss_o + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) quiet_o <= 1'b0;
    else quiet_o <= walk_quiet && !missed_valid && !evt_valid[0] && !evt_valid[1];
  end
  assign idle_o = idle_cmd && cmd_ready_q && waiting == '0 && tlb_idle[0] && tlb_idle[1] && !missed_valid && walk_idle && !cpl_valid_o;

endmodule
