// SPDX-License-Identifier: Apache-2.0
//
// via_mmu, without bound: no translated address leaves the card's memory. What leaves p_ar or p_aw goes to the error responder, to host memory
// below 2^52, or to a byte range all of which is memory of one channel: whatever commands, bursts, misses, denials and aborts came before.
//
// The addresses that leave keep the rules of a port (via_axi_checker at p_), if those that come do (at v_, assumed): they stay until they are accepted,
// and a burst stays within 4 KiB, so the page of its first address is that of the burst.
// The entries are those of real arrays (ram_regs.sv), one way of two sets for each page size.

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
  input logic    abort_i
);

  axi_ax_t p_ar, p_aw;
  logic v_ar_ready, v_aw_ready, p_ar_valid, p_aw_valid;

  via_mmu #(
    .PageWays(1),
    .PageSets(2),
    .HugeWays(1),
    .HugeSets(2),
    .Waiting (2)
  ) dut (
    .clk_i,
    .rst_ni,
    .chan_mib_i  (ChanMib),
    .v_ar_i,
    .v_ar_valid_i,
    .v_ar_ready_o(v_ar_ready),
    .v_aw_i,
    .v_aw_valid_i,
    .v_aw_ready_o(v_aw_ready),
    .p_ar_o      (p_ar),
    .p_ar_valid_o(p_ar_valid),
    .p_ar_ready_i,
    .p_aw_o      (p_aw),
    .p_aw_valid_o(p_aw_valid),
    .p_aw_ready_i,
    .rd_done_i,
    .wr_done_i,
    .cmd_i,
    .cmd_valid_i,
    .cmd_ready_o (),
    .cpl_o       (),
    .cpl_valid_o (),
    .cpl_ready_i,
    .evt_o       (),
    .evt_valid_o (),
    .evt_ready_i,
    .abort_i,
    .n_rd_o      (),
    .n_wr_o      (),
    .n_rd_miss_o (),
    .n_wr_miss_o (),
    .idle_o      ()
  );

  via_axi_checker #(
    .Answers  (1'b0),
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
    .Answers(1'b0)
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

  // A burst stays within 4 KiB, so its first address says it all.
  function automatic logic stays(input axi_ax_t ax);
    if (ax.addr[AddrErrBit]) return ax.addr[AddrErrBit-1:PageLog2] == '0 && !ax.addr[AddrHostBit];
    if (ax.addr[AddrHostBit]) return ax.addr[AddrErrBit-1:52] == '0;
    return ax.addr < AddrW'(NumChan) << ChanLog2 && 32'(ax.addr[ChanLog2-1:20]) < ChanMib;
  endfunction

  // An entry as an array holds it: {valid, host, w, r, tag, ppn}. What the proof needs of it: if it counts, its page is all there.
  function automatic logic good(input logic valid, input logic host, input logic [39:0] ppn, input logic huge);
    logic [ChanLog2-21:0] mib;
    mib = ppn[ChanLog2-PageLog2-1-:ChanLog2-20];
    if (!valid) return 1'b1;
    if (huge && ppn[HugeLog2-PageLog2-1:0] != '0) return 1'b0;
    return host || ppn >> (CardAddrW - PageLog2) == '0 && 32'(mib) < ChanMib && (!huge || 32'(mib | 1'b1) < ChanMib);
  endfunction

  // States of via_mmu and of via_tlb.
  localparam logic [2:0] Sweep = 3'd0, Idle = 3'd1, Hold = 3'd2, Look = 3'd3, Act = 3'd4;
  localparam logic [3:0] Run = 4'd0, Held = 4'd1, Reread2 = 4'd2, Compare2 = 4'd3, Judge = 4'd9;
  localparam int unsigned EntryW = 4 + (VaW - PageLog2 - 1) + 40;
  localparam int unsigned HugeEntryW = 4 + (VaW - HugeLog2 - 1) + 40;

  logic begun_q = 1'b0;

  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    if (rst_ni) begin
      a_read : assert (!p_ar_valid || stays(p_ar));
      a_write : assert (!p_aw_valid || stays(p_aw));

      // ---------------------------------------------------------------- what holds in every cycle, for the induction
      i_ready : assert (!dut.cmd_ready_q || dut.state_q == Idle);
      // What a command was found to be stays so until it is carried out.
      if (dut.state_q == Hold || dut.state_q == Look || dut.state_q == Act) begin
        i_command : assert (dut.cmd_q.op != OpMap || good(1'b1, dut.cmd_q.addr1[3], dut.cmd_q.addr1[51:12], dut.cmd_q.flags[FlagHuge]));
      end
    end
  end

  function automatic logic good_page(input logic [EntryW-1:0] e);
    return good(e[EntryW-1], e[EntryW-2], e[39:0], 1'b0);
  endfunction
  function automatic logic good_huge(input logic [HugeEntryW-1:0] e);
    return good(e[HugeEntryW-1], e[HugeEntryW-2], e[39:0], 1'b1);
  endfunction

  // A burst of via_tlb, which keeps what differs between bursts: {bad, id, len, addr}.
  function automatic logic kept_ok(input logic [8+AddrW-1:0] b);
    return b[BeatLog2-1:0] == '0 && 16'(b[PageLog2-1:0]) + (16'(b[AddrW+:8]) + 16'd1) * 16'(StrbW) <= 16'(1 << PageLog2);
  endfunction

  // Of the two entries in a queue's memory, entry `i` holds a burst: one burst is in its register.
  function automatic logic waits(input logic [1:0] count, input logic first, input logic i);
    return count == 2'd3 || count == 2'd2 && first == i;
  endfunction

  for (genvar d = 0; d < 2; d++) begin : gen_dir
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
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
        i_state : assert (dut.gen_dir[d].u_tlb.state_q <= Judge);
        // What was read for a burst.
        if (dut.gen_dir[d].u_tlb.s1_valid_q && dut.gen_dir[d].u_tlb.state_q == Run || dut.gen_dir[d].u_tlb.state_q == Compare2) begin
          i_read_page : assert (good_page(dut.gen_dir[d].u_tlb.u_page.gen_way[0].u_entry.rdata_q));
          i_read_huge : assert (good_huge(dut.gen_dir[d].u_tlb.u_huge.gen_way[0].u_entry.rdata_q));
        end
      end
    end
  end

endmodule
