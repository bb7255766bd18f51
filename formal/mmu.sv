// SPDX-License-Identifier: Apache-2.0
//
// via_mmu, without bound, whatever commands, bursts, misses, denials and aborts came before, and whatever is in the page table:
//   - No translated address leaves the card's memory, or leads to what is kept from slots. What leaves p_ar or p_aw goes to the error responder, to
//     host memory below 2^52, or to a byte range all of which is memory of one channel.
//   - What leaves otherwise than to the error responder is what an entry grants for that page and that direction: the last OpMap of the page, or of
//     the 2 MiB around it, or the last entry that was read for it from the page table, and no OpUnmap has come since.
//   - Such an entry of the page table is valid, is that of the page by its tag, has right check bits, and gives the right; that to write only with
//     its dirty bit set.
//
// The addresses that leave keep the rules of a port (via_axi_checker at p_), if those that come do (at v_, assumed): they stay until they are accepted,
// and a burst stays within 4 KiB, so the page of its first address is that of the burst. Addresses of the page table, too, stay until they are accepted
// (via_hs_checker).
// The entries are those of real arrays (ram_regs.sv), one way of two sets for each page size. Which read belongs to which walk is the order of FIFOs
// (formal/fifo) and of the port, and not shown here.

module mmu
  import via_pkg::*;
#(
  parameter int unsigned ChanMib = 5
) (
  input logic    clk_i,
  input logic    rst_ni,
  input axi_ax_t v_ar_i,
  input logic    v_ar_valid_i,
  input axi_ax_t v_aw_i,
  input logic    v_aw_valid_i,
  input logic    p_ar_ready_i,
  input logic    p_aw_ready_i,
  input logic    rd_done_i,
  input logic    wr_done_i,
  input cmd_t    cmd_i,
  input logic    cmd_valid_i,
  input logic    cpl_ready_i,
  input logic    evt_ready_i,
  input logic    abort_i,
  input logic [VaW-PageLog2+40:0] watch_i,  // {page, frame, in host memory}: any

  input table_cfg_t table_i,
  input logic    walk_ar_ready_i,
  input axi_r_t  walk_r_i,
  input logic    walk_r_valid_i,
  input logic    walk_aw_ready_i,
  input logic    walk_w_ready_i,
  input axi_b_t  walk_b_i,
  input logic    walk_b_valid_i
);

  // Kept from slots: one block of 2 MiB of every channel.
  localparam logic [13:0] KeepFirst = 14'd1, KeepEnd = 14'd2;
  table_cfg_t tables;
  always_comb begin
    tables = table_i;
    tables.keep_first = KeepFirst;
    tables.keep_end = KeepEnd;
  end

  axi_ax_t p_ar, p_aw;
  logic v_ar_ready, v_aw_ready, p_ar_valid, p_aw_valid;
  axi_ax_t walk_ar, walk_aw;
  logic walk_ar_valid, walk_aw_valid;

  via_mmu #(
    .PageWays(1),
    .PageSets(2),
    .HugeWays(1),
    .HugeSets(2),
    .Waiting (2),
    .Walks   (2)

  ) dut (
    .clk_i,
    .rst_ni,
    .chan_mib_i     (ChanMib),
    .table_i        (tables),
    .v_ar_i,
    .v_ar_valid_i,
    .v_ar_ready_o   (v_ar_ready),
    .v_aw_i,
    .v_aw_valid_i,
    .v_aw_ready_o   (v_aw_ready),
    .p_ar_o         (p_ar),
    .p_ar_valid_o   (p_ar_valid),
    .p_ar_ready_i,
    .p_aw_o         (p_aw),
    .p_aw_valid_o   (p_aw_valid),
    .p_aw_ready_i,
    .rd_done_i,
    .wr_done_i,
    .cmd_i,
    .cmd_valid_i,
    .cmd_ready_o    (),
    .cpl_o          (),
    .cpl_valid_o    (),
    .cpl_ready_i,
    .evt_o          (),
    .evt_valid_o    (),
    .evt_ready_i,
    .walk_ar_o      (walk_ar),
    .walk_ar_valid_o(walk_ar_valid),
    .walk_ar_ready_i,
    .walk_r_i,
    .walk_r_valid_i,
    .walk_r_ready_o (),
    .walk_aw_o      (walk_aw),
    .walk_aw_valid_o(walk_aw_valid),
    .walk_aw_ready_i,
    .walk_w_o       (),
    .walk_w_valid_o (),
    .walk_w_ready_i,
    .walk_b_i,
    .walk_b_valid_i,
    .walk_b_ready_o (),
    .abort_i,
    .n_rd_o         (),
    .n_wr_o         (),
    .n_rd_miss_o    (),
    .n_wr_miss_o    (),
    .quiet_o        (),
    .idle_o         ()
  );

  via_hs_checker #(
    .Width($bits(walk_ar))
  ) u_walk_ar (
    .clk_i,
    .rst_ni,
    .s_i    (walk_ar),
    .valid_i(walk_ar_valid),
    .ready_i(walk_ar_ready_i)
  );

  via_hs_checker #(
    .Width($bits(walk_aw))
  ) u_walk_aw (
    .clk_i,
    .rst_ni,
    .s_i    (walk_aw),
    .valid_i(walk_aw_valid),
    .ready_i(walk_aw_ready_i)
  );

  via_axi_checker #(
    .Responses(1'b0),
    .AssumeReq(1'b1)
  ) u_v (
    .clk_i,
    .rst_ni,
    .ar_i      (v_ar_i),
    .ar_valid_i(v_ar_valid_i),
    .ar_ready_i(v_ar_ready),
    .r_i       ('0),
    .r_valid_i (1'b0),
    .r_ready_i (1'b0),
    .aw_i      (v_aw_i),
    .aw_valid_i(v_aw_valid_i),
    .aw_ready_i(v_aw_ready),
    .w_i       ('0),
    .w_valid_i (1'b0),
    .w_ready_i (1'b0),
    .b_i       ('0),
    .b_valid_i (1'b0),
    .b_ready_i (1'b0)
  );
  via_axi_checker #(
    .Responses(1'b0)
  ) u_p (
    .clk_i,
    .rst_ni,
    .ar_i      (p_ar),
    .ar_valid_i(p_ar_valid),
    .ar_ready_i(p_ar_ready_i),
    .r_i       ('0),
    .r_valid_i (1'b0),
    .r_ready_i (1'b0),
    .aw_i      (p_aw),
    .aw_valid_i(p_aw_valid),
    .aw_ready_i(p_aw_ready_i),
    .w_i       ('0),
    .w_valid_i (1'b0),
    .w_ready_i (1'b0),
    .b_i       ('0),
    .b_valid_i (1'b0),
    .b_ready_i (1'b0)
  );

  // A block of 2 MiB of a channel is kept from slots.
  function automatic logic kept(input logic [ChanLog2-HugeLog2-1:0] block);
    return 14'(block) >= KeepFirst && 14'(block) < KeepEnd;
  endfunction

  // A burst stays within 4 KiB, so its first address says it all.

  function automatic logic stays(input axi_ax_t ax);
    if (ax.addr[AddrErrBit]) return ax.addr[AddrErrBit-1:PageLog2] == '0 && !ax.addr[AddrHostBit];
    if (ax.addr[AddrHostBit]) return ax.addr[AddrErrBit-1:52] == '0;
    return ax.addr < AddrW'(NumChan) << ChanLog2 && 32'(ax.addr[ChanLog2-1:20]) < ChanMib && !kept(ax.addr[ChanLog2-1:HugeLog2]);
  endfunction

  // An entry as an array holds it: {valid, kept, host, w, r, tag, ppn}. What the proof needs of it: if it counts, its page is all there.
  function automatic logic good(input logic valid, input logic host, input logic [39:0] ppn, input logic huge);
    logic [ChanLog2-21:0] mib;
    mib = ppn[ChanLog2-PageLog2-1-:ChanLog2-20];
    if (!valid) return 1'b1;
    if (huge && ppn[HugeLog2-PageLog2-1:0] != '0) return 1'b0;
    return host || ppn >> (CardAddrW - PageLog2) == '0 && 32'(mib) < ChanMib && (!huge || 32'(mib | 1'b1) < ChanMib) && !kept(
        mib[ChanLog2-21:1]
    );
  endfunction

  // States of via_walk, of via_mmu and of via_tlb.
  localparam logic [1:0] WalkNone = 2'd0, WalkAct = 2'd2;
  localparam logic [2:0] Sweep = 3'd0, Idle = 3'd1, Hold = 3'd2, Look = 3'd3, Act = 3'd4, Deny = 3'd5;
  localparam logic [3:0] Run = 4'd0, Held = 4'd1, Reread2 = 4'd2, Compare2 = 4'd3, Reread1 = 4'd4, Read = 4'd7, Post = 4'd11;
  localparam int unsigned RecordW = 3 + 3 + 1 + 2 + 16 + 64;
  localparam int unsigned EntryW = 5 + (VaW - PageLog2 - 1) + 40;
  localparam int unsigned HugeEntryW = 5 + (VaW - HugeLog2 - 1) + 40;

  function automatic logic good_command(input cmd_t c);
    return c.op != OpMap || good(1'b1, c.addr1[3], c.addr1[51:12], c.flags[FlagHuge]);
  endfunction

  // The commands that are in via_walk, of which it keeps the rest apart.
  logic [1:0] kept_cmds;
  assign kept_cmds = 2'(dut.u_walk.u_order.count_q == 2'd2 ? order_cmd(
      1'b0
  ) + order_cmd(
      1'b1
  ) : dut.u_walk.u_order.count_q == 2'd1 ? order_cmd(
      dut.u_walk.u_order.rptr_q
  ) : 2'd0) + 2'(dut.u_walk.judge_q != 2'd0 && dut.u_walk.rec_q.cmd);
  function automatic logic [1:0] order_cmd(input logic i);
    return 2'(dut.u_walk.u_order.gen_lut.mem[i][RecordW-1]);
  endfunction

  // An entry is valid and has this tag.
  function automatic logic is_page(input logic [EntryW-1:0] e, input logic [VaW-PageLog2-2:0] tag);
    return e[EntryW-1] && e[EntryW-6:40] == tag;
  endfunction
  function automatic logic is_huge(input logic [HugeEntryW-1:0] e, input logic [VaW-HugeLog2-2:0] tag);
    return e[HugeEntryW-1] && e[HugeEntryW-6:40] == tag;
  endfunction

  logic begun_q = 1'b0;



  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    if (rst_ni) begin
      a_read : assert (!p_ar_valid || stays(p_ar));
      a_write : assert (!p_aw_valid || stays(p_aw));

      // ---------------------------------------------------------------- what holds in every cycle, for the induction
      i_ready : assert (!dut.cmd_ready_q || dut.state_q == Idle);
      i_hold :
      assert (dut.hold_q == (dut.state_q == Sweep || dut.state_q == Hold || dut.state_q == Look || dut.state_q == Act || dut.state_q == Deny));
      i_again : assert (!dut.again_q || dut.state_q == Act && dut.fill_q);
      i_sweep : assert (dut.sweeping_q == (dut.state_q == Sweep));
      i_last_set : assert (dut.state_q != Sweep || dut.last_set_q == dut.sweep_q);
      // Every command that via_walk has in its order has its rest in `u_commands`, and the one that is judged is at the front.
      i_kept : assert (32'(dut.u_walk.u_commands.count_q) == 32'(kept_cmds));
      i_ptrs : assert (3'(dut.u_walk.u_commands.wptr_q - dut.u_walk.u_commands.rptr_q) == dut.u_walk.u_commands.count_q[2:0]);
      i_order : assert (1'(dut.u_walk.u_order.wptr_q - dut.u_walk.u_order.rptr_q) == dut.u_walk.u_order.count_q[0]);
      if (dut.u_walk.judge_q != WalkNone) begin
        i_page :
        assert (dut.u_walk.ppn_q == (dut.u_walk.rec_q.cmd ? dut.u_walk.cmd.addr1[51:12] : 40'(dut.u_walk.pte_q.ppn)) || !dut.u_walk.rec_q.cmd && !dut.u_walk.rec_q.read);
      end
      i_huge : assert (dut.u_walk.judge_q == WalkNone || dut.u_walk.huge_q == (dut.u_walk.rec_q.cmd && dut.u_walk.cmd.flags[FlagHuge]));
      if (dut.u_walk.judge_q == WalkAct) begin
        i_judged : assert (!dut.u_walk.rec_q.cmd || dut.u_walk.bad_q || good_command(dut.u_walk.cmd));
        i_kind : assert (dut.u_walk.rec_q.cmd || !dut.u_walk.map_q && !dut.u_walk.unmap_q && !dut.u_walk.scan_q);
        // What the page table grants: a valid entry of this page, with right check bits and the right.
        i_walked :
        assert (!dut.u_walk.walked_q || !dut.u_walk.rec_q.cmd && dut.u_walk.rec_q.read && dut.u_walk.pte_q.v &&
            dut.u_walk.pte_q.check == table_check(
            dut.u_walk.pte_q[63:16]
        ) && dut.u_walk.pte_q.tag == dut.u_walk.rec_q.miss.va[47:29] &&
            (dut.u_walk.rec_q.miss.is_write ? dut.u_walk.pte_q.w : dut.u_walk.pte_q.r) && good(
            1'b1, 1'b0, dut.u_walk.ppn_q, 1'b0
        ));
      end
      i_judge : assert (dut.u_walk.judge_q <= WalkAct);
      if (dut.act_valid && dut.act_fill) begin
        // No more than that; to write only with the dirty bit.
        a_fill :
        assert (dut.u_walk.walked_q && dut.act.op == OpMap && dut.act.addr0 == {16'h0, dut.u_walk.rec_q.miss.va[47:12], 12'h0} &&
            dut.act.addr1[51:12] == 40'(dut.u_walk.pte_q.ppn) && !dut.act.addr1[3] && (!dut.act.addr1[1] || dut.u_walk.pte_q.r) &&
            (!dut.act.addr1[2] || dut.u_walk.pte_q.w && (dut.u_walk.pte_q.dirty || dut.u_walk.write && dut.u_walk.word.dirty)));
      end
      // Both directions hold the same, and what a command was found to find is there until it is carried out.
      if (dut.state_q != Sweep) begin
        i_same_page : assert (dut.gen_dir[0].u_tlb.u_page.gen_way[0].u_entry.mem == dut.gen_dir[1].u_tlb.u_page.gen_way[0].u_entry.mem);
        i_same_huge : assert (dut.gen_dir[0].u_tlb.u_huge.gen_way[0].u_entry.mem == dut.gen_dir[1].u_tlb.u_huge.gen_way[0].u_entry.mem);
      end
      i_ways : assert (dut.pvictim_q == '0 && dut.hvictim_q == '0 && (dut.state_q != Act || dut.op_pway_q == '0 && dut.op_hway_q == '0));
      if (dut.state_q == Look) begin
        i_look :
        assert (
            {dut.gen_dir[0].u_tlb.u_page.tag_q, dut.gen_dir[0].u_tlb.u_page.set_q} == dut.cmd_q.addr0[VaW-1:PageLog2] &&
            {dut.gen_dir[0].u_tlb.u_huge.tag_q, dut.gen_dir[0].u_tlb.u_huge.set_q} == dut.cmd_q.addr0[VaW-1:HugeLog2] &&
            dut.gen_dir[0].u_tlb.u_page.gen_way[0].u_entry.rdata_q == dut.gen_dir[0].u_tlb.u_page.gen_way[0].u_entry.mem[dut.cmd_q.addr0[PageLog2]] &&
            dut.gen_dir[0].u_tlb.u_huge.gen_way[0].u_entry.rdata_q == dut.gen_dir[0].u_tlb.u_huge.gen_way[0].u_entry.mem[dut.cmd_q.addr0[HugeLog2]]);
      end
      if (dut.state_q == Act) begin
        i_found :
        assert (dut.found_q == (dut.op_huge ? is_huge(
            dut.gen_dir[0].u_tlb.u_huge.gen_way[0].u_entry.mem[dut.cmd_q.addr0[HugeLog2]], dut.cmd_q.addr0[VaW-1:HugeLog2+1]
        ) : is_page(
            dut.gen_dir[0].u_tlb.u_page.gen_way[0].u_entry.mem[dut.cmd_q.addr0[PageLog2]], dut.cmd_q.addr0[VaW-1:PageLog2+1]
        )));
      end
      // What a command was found to be stays so until it is carried out.
      if (dut.state_q == Hold || dut.state_q == Look || dut.state_q == Act) begin
        i_command : assert (good_command(dut.cmd_q));
        // So a fill writes no entry of 2 MiB while the set of the next one is read.
        i_fill : assert (!dut.fill_q || dut.cmd_q.op == OpMap && !dut.cmd_q.flags[FlagHuge]);
      end
    end
  end

  function automatic logic good_page(input logic [EntryW-1:0] e);
    return good(e[EntryW-1], e[EntryW-3], e[39:0], 1'b0);
  endfunction
  function automatic logic good_huge(input logic [HugeEntryW-1:0] e);
    return good(e[HugeEntryW-1], e[HugeEntryW-3], e[39:0], 1'b1);
  endfunction

  // A burst of via_tlb, which keeps what differs between bursts: {bad, id, len, addr}.
  function automatic logic kept_ok(input logic [8+AddrW-1:0] b);
    return b[BeatLog2-1:0] == '0 && 16'(b[PageLog2-1:0]) + (16'(b[AddrW+:8]) + 16'd1) * 16'(StrbW) <= 16'(1 << PageLog2);
  endfunction

  // Of the two entries in a queue's memory, entry `i` holds a burst: one burst is in its register.
  function automatic logic waits(input logic [1:0] count, input logic first, input logic i);
    return count == 2'd3 || count == 2'd2 && first == i;
  endfunction

  // ---------------------------------------------------------------- what is granted
  // Any page and any frame are watched. An entry grants the page the frame from its OpMap on, until another one of the page, or its OpUnmap.
  logic [VaW-PageLog2-1:0] vp;
  logic [39:0] fp;
  logic fh;
  always_ff @(posedge clk_i) if (!begun_q) {vp, fp, fh} <= watch_i;
  localparam int unsigned Big = HugeLog2 - PageLog2;

  // {valid, kept, host, w, r, tag, ppn}, at set `s`
  function automatic logic grants_page(input logic [EntryW-1:0] e, input logic s, input logic is_write);
    return e[EntryW-1] && e[EntryW-3] == fh && (is_write ? e[EntryW-4] : e[EntryW-5]) && {e[EntryW-6:40], s} == vp && e[39:0] == fp;
  endfunction
  function automatic logic grants_huge(input logic [HugeEntryW-1:0] e, input logic s, input logic is_write);
    return e[HugeEntryW-1] && e[HugeEntryW-3] == fh && (is_write ? e[HugeEntryW-4] : e[HugeEntryW-5]) &&
        {e[HugeEntryW-6:40], s} == vp[VaW-PageLog2-1:Big] && {e[39:Big], vp[Big-1:0]} == fp;
  endfunction

  for (genvar d = 0; d < 2; d++) begin : gen_dir
    logic page_q, huge_q;  // an entry of this size grants the page the frame, for this direction
    logic right;
    assign right = d == 1 ? dut.wpte.w : dut.wpte.r;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        page_q <= 1'b0;
        huge_q <= 1'b0;
      end else if (dut.state_q == Act && (dut.is_map && !dut.unfit || dut.is_unmap)) begin
        if (!dut.op_huge && dut.cmd_q.addr0[VaW-1:PageLog2] == vp) begin
          page_q <= dut.is_map && right && dut.wpte.host == fh && dut.wpte.ppn == fp;
        end
        if (dut.op_huge && dut.cmd_q.addr0[VaW-1:HugeLog2] == vp[VaW-PageLog2-1:Big]) begin
          huge_q <= dut.is_map && right && dut.wpte.host == fh && {dut.wpte.ppn[39:Big], vp[Big-1:0]} == fp;
        end
      end
    end
    axi_ax_t p;
    logic p_valid;
    assign p = d == 1 ? p_aw : p_ar;
    assign p_valid = d == 1 ? p_aw_valid : p_ar_valid;

    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        i_owner : assert (dut.gen_dir[d].u_tlb.of_owner_q == (dut.gen_dir[d].u_tlb.state_q == Held));
        i_of_s1 :
        assert (dut.gen_dir[d].u_tlb.of_s1_q == (dut.gen_dir[d].u_tlb.state_q == Compare2 || dut.gen_dir[d].u_tlb.state_q == Reread1));
        i_of_s2 : assert (dut.gen_dir[d].u_tlb.of_s2_q == (dut.gen_dir[d].u_tlb.state_q == Reread2));
        i_scout :
        assert (dut.gen_dir[d].u_tlb.of_scout_q == (dut.gen_dir[d].u_tlb.state_q == Read || dut.gen_dir[d].u_tlb.state_q == Post));
        a_granted :
        assert (!p_valid || p.addr[AddrErrBit] || dut.gen_dir[d].u_tlb.s2_q.addr[VaW-1:PageLog2] != vp || p.addr[AddrHostBit] != fh ||
            p.addr[51:PageLog2] != fp || page_q || huge_q);
        i_grant_page_0 :
        assert (dut.state_q == Sweep && !dut.sweep_q || !grants_page(
            dut.gen_dir[d].u_tlb.u_page.gen_way[0].u_entry.mem[0], 1'b0, d == 1
        ) || page_q);
        i_grant_page_1 :
        assert (dut.state_q == Sweep || !grants_page(dut.gen_dir[d].u_tlb.u_page.gen_way[0].u_entry.mem[1], 1'b1, d == 1) || page_q);
        i_grant_huge_0 :
        assert (dut.state_q == Sweep && !dut.sweep_q || !grants_huge(
            dut.gen_dir[d].u_tlb.u_huge.gen_way[0].u_entry.mem[0], 1'b0, d == 1
        ) || huge_q);
        i_grant_huge_1 :
        assert (dut.state_q == Sweep || !grants_huge(dut.gen_dir[d].u_tlb.u_huge.gen_way[0].u_entry.mem[1], 1'b1, d == 1) || huge_q);
        if (dut.gen_dir[d].u_tlb.s1_valid_q && dut.gen_dir[d].u_tlb.state_q == Run || dut.gen_dir[d].u_tlb.state_q == Compare2) begin
          // It is of the burst's set, and compared with its tag.
          i_read_for :
          assert (
              {dut.gen_dir[d].u_tlb.u_page.tag_q, dut.gen_dir[d].u_tlb.u_page.set_q, dut.gen_dir[d].u_tlb.u_huge.tag_q, dut.gen_dir[d].u_tlb.u_huge.set_q} ==
              ((dut.gen_dir[d].u_tlb.state_q == Compare2) ? {dut.gen_dir[d].u_tlb.s2_q.addr[VaW-1:PageLog2], dut.gen_dir[d].u_tlb.s2_q.addr[VaW-1:HugeLog2]} :
                                 {dut.gen_dir[d].u_tlb.s1_q.addr[VaW-1:PageLog2], dut.gen_dir[d].u_tlb.s1_q.addr[VaW-1:HugeLog2]}));
          i_grant_page :
          assert (!grants_page(
              dut.gen_dir[d].u_tlb.u_page.gen_way[0].u_entry.rdata_q, dut.gen_dir[d].u_tlb.u_page.set_q, d == 1
          ) || page_q);
          i_grant_huge :
          assert (!grants_huge(
              dut.gen_dir[d].u_tlb.u_huge.gen_way[0].u_entry.rdata_q, dut.gen_dir[d].u_tlb.u_huge.set_q, d == 1
          ) || huge_q);
        end

        // After reset the arrays hold anything until they are swept, and nothing is looked up meanwhile.
        if (dut.state_q == Sweep) begin
          i_sweeps : assert (!dut.gen_dir[d].u_tlb.s1_valid_q && !dut.gen_dir[d].u_tlb.s2_valid_q && dut.gen_dir[d].u_tlb.state_q <= Held);
        end
        if (dut.state_q != Sweep || dut.sweep_q) begin
          i_page_0 : assert (good_page(dut.gen_dir[d].u_tlb.u_page.gen_way[0].u_entry.mem[0]));
          i_huge_0 : assert (good_huge(dut.gen_dir[d].u_tlb.u_huge.gen_way[0].u_entry.mem[0]));
        end
        if (dut.state_q != Sweep) begin
          i_page_1 : assert (good_page(dut.gen_dir[d].u_tlb.u_page.gen_way[0].u_entry.mem[1]));
          i_huge_1 : assert (good_huge(dut.gen_dir[d].u_tlb.u_huge.gen_way[0].u_entry.mem[1]));
        end
        // What waits is as the rules have it, and nothing that is offered is touched while it is looked up again.
        i_front : assert (!dut.gen_dir[d].u_tlb.u_queue.any_q || kept_ok(dut.gen_dir[d].u_tlb.u_queue.front_q[8+AddrW-1:0]));
        i_queue_0 :
        assert (!waits(
            dut.gen_dir[d].u_tlb.u_queue.count_q, dut.gen_dir[d].u_tlb.u_queue.rptr_q, 1'b0
        ) || kept_ok(
            dut.gen_dir[d].u_tlb.u_queue.mem[0][8+AddrW-1:0]
        ));
        i_queue_1 :
        assert (!waits(
            dut.gen_dir[d].u_tlb.u_queue.count_q, dut.gen_dir[d].u_tlb.u_queue.rptr_q, 1'b1
        ) || kept_ok(
            dut.gen_dir[d].u_tlb.u_queue.mem[1][8+AddrW-1:0]
        ));
        i_first : assert (!dut.gen_dir[d].u_tlb.s1_valid_q || kept_ok(dut.gen_dir[d].u_tlb.s1_q[8+AddrW-1:0]));
        i_second : assert (!dut.gen_dir[d].u_tlb.s2_valid_q || kept_ok(dut.gen_dir[d].u_tlb.s2_q[8+AddrW-1:0]));
        i_shown : assert (!dut.gen_dir[d].u_tlb.p_valid || dut.gen_dir[d].u_tlb.s2_valid_q && dut.gen_dir[d].u_tlb.state_q == Run);
        // The owner changes the arrays only while it holds them.
        i_held : assert (dut.gen_dir[d].u_tlb.state_q == Held || dut.state_q != Look && dut.state_q != Act);
        i_state : assert (dut.gen_dir[d].u_tlb.state_q <= Post);
        // What was read for a burst.
        if (dut.gen_dir[d].u_tlb.s1_valid_q && dut.gen_dir[d].u_tlb.state_q == Run || dut.gen_dir[d].u_tlb.state_q == Compare2) begin
          i_read_page : assert (good_page(dut.gen_dir[d].u_tlb.u_page.gen_way[0].u_entry.rdata_q));
          i_read_huge : assert (good_huge(dut.gen_dir[d].u_tlb.u_huge.gen_way[0].u_entry.rdata_q));
        end
      end
    end
  end

endmodule
