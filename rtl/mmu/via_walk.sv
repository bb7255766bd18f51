// SPDX-License-Identifier: Apache-2.0
//
// The page table in card memory of one slot: looks up there what the TLBs miss, and keeps its entries for the commands.
//
//   misses ──> order ───────────────────────────> judge ──> fills and commands, to the TLBs
//   commands ─┘   └─> AR ─> memory ─> R ─> entries ─┘  ├──> AW, W: an entry, or its accessed and dirty bits
//                                                      └──> events: misses of the table too, to the host
//
// Everything passes through here in one order. So when a command that takes rights away is carried out, every walk before it has been; a walk
// behind it reads memory only when what the command writes is there (`closed`): walks under way cannot bring back what was removed. So does a
// command that reads the entry, if perhaps its page is the same (`shut_q`).
// An entry permits writes only once its dirty bit is set: the walk of the first write sets it, and only then the TLB gets the right. So what
// is in memory when the completion of an OpUnmap leaves is exact, and TLB entries may be displaced without a word.
// The accessed bit is set by walks and cleared by OpScan. Both bits share a byte, written whole; a walk that has perhaps read it before
// another one set the dirty bit (`recent`) does not write it: an accessed bit may be lost then, a dirty bit never.
//
// Throughput: a record in two cycles, a command in three. Latency: three cycles, and that of memory if it is read. Order: kept, over misses
// and commands. Entries: table_pte_t; eight neighbouring pages share 64 bytes. One beat is read, in which the entry is, whatever the width
// of the bus.
// Misuse: an entry with wrong check bits, or with a page that is not in the card's memory or is kept from slots, is an event (EvTable). After an
// error response to a write every walk is, until the table is disabled (broken_o). Without table misses are events at once; a table that is not
// aligned to its size, or not in the card's memory as a whole, counts as none.
// Source: FSRF paper, section 4.5 (DRAM TLB), its line of distant pages replaced by one of neighbours, its drained pipeline by an order.

module via_walk
  import via_pkg::*;
#(
  parameter int unsigned Walks = 32  // misses and commands under way
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic       [   31:0] chan_mib_i,      // size of each DRAM channel in MiB, constant
  input  table_cfg_t           table_i,         // base and size are constant while it is enabled
  input  logic                 abort_i,         // level: misses end here
  input  evt_t                 evt_i,           // a miss, or another event of a TLB
  input  logic                 evt_valid_i,
  output logic                 evt_ready_o,
  output evt_t                 evt_o,           // an event for the host
  output logic                 evt_valid_o,
  input  logic                 evt_ready_i,
  input  cmd_t                 cmd_i,           // OpMap, OpUnmap, OpScan or OpDeny
  input  logic                 cmd_valid_i,
  output logic                 cmd_ready_o,
  output cmd_t                 act_o,           // what the TLBs' owner has to do: the command, or an OpMap for a miss
  output logic                 act_valid_o,
  input  logic                 act_ready_i,
  output logic       [VaW-1:0] act_va_o,        // its address
  output logic                 act_fill_o,      // it is for a miss: no completion, and it displaces no entry of OpMap
  output logic                 act_bad_o,       // its arguments are wrong
  output logic                 act_found_o,     // the page has an entry in the table, or had before the command; and its bits
  output logic                 act_accessed_o,
  output logic                 act_dirty_o,
  output logic                 act_damaged_o,   // the entry had wrong check bits
  output logic       [   15:0] act_number_o,    // commands handed over before it, wrapping
  input  logic                 fill_done_i,     // pulse: the fill is in the TLBs
  input  logic                 fill_unfit_i,    // with it: it is not, its set is full of entries of OpMap
  output logic       [   15:0] marks_issued_o,  // writes to the table, wrapping
  output logic       [   15:0] marks_done_o,    // those with a response
  output logic                 broken_o,        // level: one of them was an error
  output axi_ax_t              m_ar_o,          // card memory
  output logic                 m_ar_valid_o,
  input  logic                 m_ar_ready_i,
  input  axi_r_t               m_r_i,
  input  logic                 m_r_valid_i,
  output logic                 m_r_ready_o,
  output axi_ax_t              m_aw_o,
  output logic                 m_aw_valid_o,
  input  logic                 m_aw_ready_i,
  output axi_w_t               m_w_o,
  output logic                 m_w_valid_o,
  input  logic                 m_w_ready_i,
  input  axi_b_t               m_b_i,
  input  logic                 m_b_valid_i,
  output logic                 m_b_ready_o,
  output logic                 quiet_o,         // level: no read or write is in flight, none follows from what was accepted
  output logic                 idle_o           // level: nothing is held, no read or write is in flight
);

  localparam bit WalksOk = param_pow2("via_walk Walks", Walks, 2, 128);
  localparam int unsigned PickW = BeatLog2 - TableEntryLog2;  // bits that choose an entry in a beat
  localparam int unsigned VpnW = VaW - PageLog2;
  localparam int unsigned CW = $clog2(Walks + 1);
  localparam int unsigned Commands = 8;

  typedef struct packed {
    logic [2:0]  cause;     // of event_e
    logic        is_write;
    logic [1:0]  source;
    logic [15:0] info;
    logic [63:0] va;
  } miss_t;
  typedef struct packed {
    logic cmd;  // a command, whose rest is in `commands`
    logic read;  // an entry is read for it
    logic closes;  // its change of the table holds up later misses
    miss_t miss;
  } record_t;
  typedef struct packed {
    logic       failed;
    table_pte_t pte;
  } read_t;

  typedef enum logic [1:0] {
    None,
    Check,  // of the entry and of arguments
    Act     // write, hand over
  } judge_e;
  judge_e judge_q;
  record_t rec_q;
  table_pte_t pte_q;
  logic [39:0] ppn_q;
  logic failed_q, hit_q, damaged_q, walked_q, bad_q, recent_q, abort_q, broken_q, map_q, unmap_q, scan_q;
  logic [7:0] check_q;
  logic [63:0] new_q, old_q;  // pages whose dirty bit was set a short while ago
  logic new_any_q;  // new_q is not 0

  // ---------------------------------------------------------------- addresses
  logic [TableMaxLog2-1:0] mask;
  always_comb begin
    for (int unsigned i = 0; i < TableMaxLog2; i++) mask[i] = i < TableMinLog2 || 5'(i) < table_i.size_log2;
  end
  // Of the beat in which an entry is.
  function automatic logic [AddrW-1:0] place(input logic [TableMaxLog2-1:0] index, input logic [CardAddrW-21:0] base);
    logic [AddrW-1:0] at;
    at = AddrW'(index) << TableEntryLog2 | AddrW'(base) << 20;
    at[BeatLog2-1:0] = '0;
    return at;
  endfunction
  function automatic logic [IdW-1:0] pick(input logic [VpnW-1:0] vpn);
    return IdW'(vpn & VpnW'((1 << PickW) - 1));
  endfunction

  // The smallest table has 1 MiB, so a table that is aligned to its size ends in the channel in which it begins.
  logic enable_q, sized_q, placed_q;
  logic [1:0] on_q;
  logic [TableMaxLog2-TableMinLog2-1:0] beyond_q;  // MiB of the table less one
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      enable_q <= 1'b0;
      on_q     <= '0;
    end else begin
      enable_q <= table_i.enable && &on_q && sized_q && placed_q;
      on_q     <= {on_q[0], table_i.enable};
    end
    sized_q <= table_i.size_log2 >= 5'(TableMinLog2) && table_i.size_log2 <= 5'(TableMaxLog2);
    beyond_q <= mask[TableMaxLog2-1:TableMinLog2];
    placed_q <= (table_i.base[TableMaxLog2-TableMinLog2-1:0] & beyond_q) == '0 &&
        32'(table_i.base[ChanLog2-21:0] | (ChanLog2 - 20)'(beyond_q)) < chan_mib_i;
  end

  // ---------------------------------------------------------------- acceptance
  logic order_room, ar_room, cmds_room, take_cmd, take_evt, with_table, changes, open;
  logic [CW-1:0] events_q;  // misses under way and events that wait
  logic [7:0] closed_q;  // commands whose change is not in memory yet
  record_t in, head;
  cmd_t cmd;
  logic head_valid, leave, load;

  logic calm_q;  // what is at the port concerns nothing that is being changed
  assign with_table = enable_q && cmd_i.flags[FlagTable];
  assign changes = with_table && cmd_i.op inside {OpMap, OpUnmap};
  assign cmd_ready_o = order_room && ar_room && cmds_room && calm_q;
  assign take_cmd = cmd_valid_i && cmd_ready_o;
  assign open = order_room && ar_room && closed_q == '0 && !events_q[CW-1];
  // During an abort misses end here.
  assign evt_ready_o = abort_i || open && !cmd_valid_i;
  assign take_evt = evt_valid_i && evt_ready_o && !abort_i;

  // Entries, by the low bits of their places, whose change may not be in memory yet. A change made while no other is under way begins a new
  // time, with a new number; in `shut_q` each place keeps the number of the time of its last change. So the entries to wait for are those with
  // the number of the present time, and nothing has to be cleared when it ends. While there are any, a command is looked at for a cycle before
  // it is accepted.
  localparam int unsigned ShutLog2 = 6;
  logic [7:0] shut_q[1<<ShutLog2];
  logic [7:0] time_q, time_d;
  logic [ShutLog2-1:0] at;
  assign at = cmd_i.addr0[PageLog2+:ShutLog2];
  assign time_d = (closed_q == '0) ? time_q + 1'b1 : time_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      time_q <= '0;
      calm_q <= 1'b1;
    end else begin
      if (take_cmd && changes) time_q <= time_d;
      calm_q <= closed_q == '0 && !(take_cmd && changes) || cmd_valid_i && !take_cmd && (!cmd_i.flags[FlagTable] || shut_q[at] != time_q);
    end
  end
  always_ff @(posedge clk_i) if (take_cmd && changes) shut_q[at] <= time_d;

  always_comb begin
    in = '0;
    in.cmd = cmd_valid_i;
    in.closes = cmd_valid_i && changes;
    in.miss.cause = evt_i.cause[2:0];
    in.miss.is_write = evt_i.is_write;
    in.miss.source = evt_i.source[1:0];
    in.miss.info = evt_i.info[15:0];
    in.miss.va = cmd_valid_i ? cmd_i.addr0 : evt_i.va;
    in.read = cmd_valid_i ? with_table && cmd_i.op inside {OpUnmap, OpScan} : enable_q && evt_i.cause inside {EvMiss, EvPerm};
  end

  via_fifo #(
    .T    (record_t),
    .Depth(Walks)
  ) u_order (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (in),
    .s_valid_i(take_cmd || take_evt),
    .s_ready_o(order_room),
    .m_o      (head),
    .m_valid_o(head_valid),
    .m_ready_i(load),
    .count_o  ()
  );
  via_fifo #(
    .T    (cmd_t),
    .Depth(Commands)
  ) u_commands (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (cmd_i),
    .s_valid_i(take_cmd),
    .s_ready_o(cmds_room),
    .m_o      (cmd),
    .m_valid_o(),
    .m_ready_i(leave && rec_q.cmd),
    .count_o  ()
  );

  axi_ax_t ar;
  always_comb begin
    ar = '{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: '0, addr: '0};
    ar.id = pick(in.miss.va[VaW-1:PageLog2]);
    ar.addr = place(in.miss.va[PageLog2+:TableMaxLog2] & mask, table_i.base);
  end
  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i((take_cmd || take_evt) && in.read),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  // ---------------------------------------------------------------- entries that were read
  // There is room for as many as records.
  read_t got, entry;
  logic entry_valid, go;
  assign got.failed = m_r_i.resp != RespOkay;
  if (PickW == 0) begin : gen_whole
    assign got.pte = m_r_i.data;
  end else begin : gen_pick
    assign got.pte = m_r_i.data[64*m_r_i.id[PickW-1:0]+:64];
  end
  via_fifo #(
    .T    (read_t),
    .Depth(Walks)
  ) u_entries (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (got),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(),
    .m_o      (entry),
    .m_valid_o(entry_valid),
    .m_ready_i(load && head.read),
    .count_o  ()
  );
  assign m_r_ready_o = 1'b1;

  // ---------------------------------------------------------------- judge
  logic load_valid, next, hit, damaged, right;
  pte_t arg;

  assign load_valid = head_valid && (!head.read || entry_valid);
  // Behind a command that was handed over a cycle later: the next one is at the front then.
  assign load = load_valid && (judge_q == None || next || go && !rec_q.cmd);
  assign arg = pte_t'(cmd.addr1);

  // What a command may do. A page of card memory must be there as a whole, and not be kept from slots, so that no translation leads elsewhere.
  logic huge_q, flagged, is_map, is_unmap, is_scan, bad, outside;
  logic [AddrW-1:0] frame, frame_last;
  logic [13:0] block;
  assign flagged = cmd.flags[FlagTable];
  assign is_map = rec_q.cmd && cmd.op == OpMap;
  assign is_unmap = rec_q.cmd && cmd.op == OpUnmap;
  assign is_scan = rec_q.cmd && cmd.op == OpScan;
  assign frame = {12'h0, ppn_q, PageLog2'(0)};
  assign frame_last = frame | (huge_q ? AddrW'((1 << HugeLog2) - 1) : AddrW'((1 << PageLog2) - 1));
  assign block = 14'(frame[ChanLog2-1:HugeLog2]);
  assign outside = card_outside(frame, frame_last, chan_mib_i) || block >= table_i.keep_first && block < table_i.keep_end;
  always_comb begin
    bad = |rec_q.miss.va[AddrW-1:VaW] || |rec_q.miss.va[PageLog2-1:0] || huge_q && |rec_q.miss.va[HugeLog2-1:PageLog2];
    bad |= flagged && (huge_q || !enable_q || is_map && arg.host);
    if (is_map) bad |= !arg.v || |arg.rsvd_hi || |arg.rsvd_lo || huge_q && |arg.ppn[HugeLog2-PageLog2-1:0] || !arg.host && outside;
  end

  logic [7:0] check;
  assign check = table_check(pte_q[63:16]);
  assign hit = rec_q.read && pte_q.v && pte_q.tag == rec_q.miss.va[VaW-1-:TableTagW];
  assign damaged = rec_q.read && (failed_q || broken_q || check != pte_q.check || pte_q.v && outside && !rec_q.cmd);
  assign right = rec_q.miss.is_write ? pte_q.w : pte_q.r;

  always_ff @(posedge clk_i) begin
    if (load) begin
      rec_q    <= head;
      huge_q   <= head.cmd && cmd.flags[FlagHuge];
      failed_q <= head.read && entry.failed;
      pte_q    <= entry.pte;
      ppn_q    <= head.cmd ? arg.ppn : 40'(entry.pte.ppn);
      if (!head.read) begin
        pte_q <= '{
            tag: head.miss.va[VaW-1-:TableTagW],
            ppn: arg.ppn[25:0],
            w: arg.w,
            r: arg.r,
            v: 1'b1,
            check: '0,
            rsvd: '0,
            dirty: 1'b0,
            accessed: 1'b0
        };
      end
    end
    if (judge_q == Check) begin
      check_q   <= check;
      hit_q     <= hit;
      damaged_q <= damaged;
      walked_q  <= !rec_q.cmd && hit && !damaged && right && !abort_i;
      bad_q     <= rec_q.cmd && bad;
      abort_q   <= abort_i;
      map_q     <= is_map;
      unmap_q   <= is_unmap;
      scan_q    <= is_scan;
      recent_q  <= pte_q.w && !pte_q.dirty && (new_q[rec_q.miss.va[PageLog2+:6]] || old_q[rec_q.miss.va[PageLog2+:6]]);
    end
  end

  // ---------------------------------------------------------------- decision
  logic mark, whole, write, push, act, drop, dirties, tell, unfit;
  logic filling_q;  // a fill was handed over and is not done
  miss_t filled_q;
  table_pte_t word;

  assign dirties = walked_q && rec_q.miss.is_write && !pte_q.dirty;
  always_comb begin
    mark = dirties || walked_q && !pte_q.accessed && (rec_q.miss.is_write || !recent_q);
    mark |= scan_q && hit_q && !damaged_q && !bad_q && pte_q.accessed && !recent_q;
    whole = rec_q.closes && !bad_q && (map_q || hit_q || damaged_q);
    // Of a mark only the lowest byte is written.
    word = pte_q;
    word.check = check_q;
    word.rsvd = '0;
    word.dirty = !map_q && (pte_q.dirty || rec_q.miss.is_write && !rec_q.cmd);
    word.accessed = !rec_q.cmd;
    if (unmap_q) word = '0;
  end
  assign write = mark || whole;

  logic aw_room, w_room, spare;
  assign act = judge_q == Act && (rec_q.cmd || walked_q);
  assign act_valid_o = act && (!write || aw_room && w_room);
  assign go = act_valid_o && act_ready_i;
  assign drop = judge_q == Act && !act && abort_q;
  // A fill that finds no place is an event, too: others wait until it is known.
  assign unfit = fill_done_i && fill_unfit_i;
  assign tell = judge_q == Act && !act && !abort_q && !filling_q;
  assign push = tell || unfit;
  assign next = drop || tell;
  assign leave = go || next;

  assign act_va_o = rec_q.miss.va[VaW-1:0];
  assign act_fill_o = !rec_q.cmd;
  assign act_bad_o = bad_q;
  assign act_found_o = hit_q || damaged_q;
  assign act_accessed_o = hit_q && pte_q.accessed || damaged_q;
  assign act_dirty_o = hit_q && (pte_q.dirty || recent_q) || damaged_q;
  assign act_damaged_o = damaged_q;
  always_comb begin
    act_o = cmd;
    if (!rec_q.cmd) begin
      act_o = '0;
      act_o.op = OpMap;
      act_o.flags[FlagTable] = 1'b1;
      act_o.addr0 = {16'h0, rec_q.miss.va[VaW-1:PageLog2], PageLog2'(0)};
      act_o.addr1 = {12'h0, ppn_q, 8'h0, 1'b0, pte_q.w && (pte_q.dirty || rec_q.miss.is_write), pte_q.r, 1'b1};
    end
  end

  always_ff @(posedge clk_i) begin
    if (go) filled_q <= rec_q.miss;
    if (!rst_ni) filling_q <= 1'b0;
    else filling_q <= go && !rec_q.cmd || filling_q && !fill_done_i;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) judge_q <= None;
    else begin
      unique case (judge_q)
        Check:   judge_q <= Act;
        default: ;
      endcase
      if (load) judge_q <= Check;
      else if (leave) judge_q <= None;
    end
  end

  // ---------------------------------------------------------------- writes
  axi_ax_t aw;
  // A beat has the word in all places, so that only one of them is kept.
  typedef struct packed {
    logic [StrbW-1:0] strb;
    table_pte_t       word;
  } lane_t;
  lane_t w, w_out;
  always_comb begin
    aw = '{id: '0, burst: BurstIncr, size: 3'(BeatLog2), len: '0, addr: '0};
    aw.id = IdW'(whole);
    aw.addr = place(rec_q.miss.va[PageLog2+:TableMaxLog2] & mask, table_i.base);
    w = '{strb: '0, word: word};
    w.strb = StrbW'(whole ? 8'hff : 8'h01) << {pick(rec_q.miss.va[VaW-1:PageLog2]), 3'b000};
  end
  via_slice #(
    .T(axi_ax_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (aw),
    .s_valid_i(go && write),
    .s_ready_o(aw_room),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i)
  );
  via_slice #(
    .T  (lane_t),
    .Ram(1'b1)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i      (w),
    .s_valid_i(go && write),
    .s_ready_o(w_room),
    .m_o      (w_out),
    .m_valid_o(m_w_valid_o),
    .m_ready_i(m_w_ready_i)
  );
  assign m_w_o = '{last: 1'b1, strb: w_out.strb, data: {(DataW / 64) {w_out.word}}};
  assign m_b_ready_o = 1'b1;

  logic [15:0] issued_q, done_q;
  logic [1:0] fewer_q;  // changes that are in memory, or were refused
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      issued_q <= '0;
      done_q   <= '0;
      closed_q <= '0;
      fewer_q  <= '0;
      broken_q <= 1'b0;
    end else begin
      if (go && write) issued_q <= issued_q + 1'b1;
      if (m_b_valid_i) done_q <= done_q + 1'b1;
      fewer_q  <= 2'(m_b_valid_i && m_b_i.id[0]) + 2'(go && rec_q.closes && !whole);
      closed_q <= closed_q + 8'(take_cmd && changes) - 8'(fewer_q);
      broken_q <= enable_q && (broken_q || m_b_valid_i && m_b_i.resp != RespOkay);
    end
  end
  assign marks_issued_o = issued_q;
  assign marks_done_o   = done_q;
  assign broken_o       = broken_q;

  // ---------------------------------------------------------------- recent dirty bits
  // Pages, by the low bits of their numbers, whose dirty bit was set since `new_q` was last empty. They stay in `old_q` until memory has answered
  // for all of them and every record from before has been judged.
  typedef enum logic [1:0] {
    Free,       // there are none in `old_q`
    Responses,  // wait for responses
    Judgements  // wait for records
  } age_e;
  age_e age_q;
  logic [15:0] until_done_q;
  logic [CW:0] taken_q, judged_q, until_judged_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      age_q    <= Free;
      new_q    <= '0;
      new_any_q <= 1'b0;
      old_q    <= '0;
      taken_q  <= '0;
      judged_q <= '0;
    end else begin
      if (take_cmd || take_evt) taken_q <= taken_q + 1'b1;
      if (leave) judged_q <= judged_q + 1'b1;
      unique case (age_q)
        Free:
        if (new_any_q) begin
          age_q <= Responses;
          old_q <= new_q;
          new_q <= '0;
          new_any_q <= 1'b0;
        end
        Responses: if ($signed(16'(done_q - until_done_q)) >= 0) age_q <= Judgements;
        default:
        if ($signed((CW + 1)'(judged_q - until_judged_q)) >= 0) begin
          age_q <= Free;
          old_q <= '0;
        end
      endcase
      if (go && dirties) begin
        new_q[rec_q.miss.va[PageLog2+:6]] <= 1'b1;
        new_any_q <= 1'b1;
      end
    end
    if (age_q == Free) until_done_q <= issued_q;
    if (age_q == Responses) until_judged_q <= taken_q;
  end

  // ---------------------------------------------------------------- events
  // Each tells how many commands were handed over before: those have not answered it, however late they complete.
  typedef struct packed {
    logic [15:0] number;
    miss_t       miss;
  } told_t;
  told_t told, out;
  logic [15:0] number_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) number_q <= '0;
    else if (go && rec_q.cmd) number_q <= number_q + 1'b1;
  end
  assign act_number_o = number_q;
  always_comb begin
    // The TLBs tell whether their entry, or none, is the cause, also if what the table would grant found no place.
    told = '{number: number_q, miss: unfit ? filled_q : rec_q.miss};
    if (!unfit && rec_q.read) begin
      if (damaged_q) told.miss.cause = 3'(EvTable);
      else if (hit_q) told.miss.cause = 3'(EvPerm);
    end
  end
  via_fifo #(
    .T    (told_t),
    .Depth(Walks)
  ) u_events (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (told),
    .s_valid_i(push),
    .s_ready_o(),
    .m_o      (out),
    .m_valid_o(evt_valid_o),
    .m_ready_i(evt_ready_i),
    .count_o  ()
  );
  assign spare = fill_done_i && !fill_unfit_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) events_q <= '0;
    else events_q <= events_q + CW'(take_evt) - CW'(drop) - CW'(spare) - CW'(evt_valid_o && evt_ready_i);
  end

  assign evt_o = '{
          info: {32'h0, out.number, out.miss.info},
          va: out.miss.va,
          source: evt_source_e'(8'(out.miss.source)),
          is_write: out.miss.is_write,
          cause: event_e'(8'(out.miss.cause))
      };

  assign quiet_o = !head_valid && judge_q == None && issued_q == done_q && closed_q == '0 && !m_ar_valid_o;
  assign idle_o = quiet_o && calm_q && !filling_q && events_q == '0 && !evt_valid_o && age_q == Free && !new_any_q;

endmodule
