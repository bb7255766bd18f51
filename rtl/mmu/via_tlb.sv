// SPDX-License-Identifier: Apache-2.0
//
// Translation of one direction (AR or AW) of a slot: both page sizes are looked up in parallel.
//
//   v -> via_tlb_queue -> s1: arrays read -> s2: translated, on the output -> p
//                    \____________________|    or waiting
//                     scout: one entry at a time, while s2 waits
//
// Throughput: one translation a cycle on hits. Latency: two cycles. Order: kept; a miss holds up later bursts, and Waiting + 3 bursts are held.
// A miss (no translation, or no permission) posts one event and waits; after every change of the arrays it is looked up again, and posts
// again if its page was mapped and it still misses. It ends with a hit, or with `deny_i` or `abort_i`, which send the burst to AddrErrBit
// (`abort_i` also those that would hit). Misuse: a burst whose address is wider than VaW posts an event and is sent there.
//
// While a burst waits, the scout looks up each burst behind it, once, and posts the misses: one in two cycles. It posts nothing for the page
// that was posted last until that page is mapped or denied. When a burst reaches s2 and still misses, it posts again only if a translation
// has left the arrays since it was looked up: the page may have come and gone. So no miss is lost, and a page may be posted more than once.
//
// The owner gets exclusive access to the arrays by raising `hold_i` and waiting for `held_o`: within seven cycles once nothing is offered
// downstream. When it drops `hold_i`, the pipeline reads again what it had in flight: three cycles per change in which nothing is translated.
// With `deny_i` all waiting bursts are looked up once more, and those that miss on that page are marked: `held_o` is low meanwhile.

module via_tlb
  import via_pkg::*;
#(
  parameter int unsigned PageWays = MmuPageWays,
  parameter int unsigned PageSets = MmuPageSets,
  parameter int unsigned HugeWays = MmuHugeWays,
  parameter int unsigned HugeSets = MmuHugeSets,
  parameter int unsigned Waiting = 64,  // bursts that wait behind a missing one
  parameter bit Write = 1'b0,  // the direction: AW rather than AR
  localparam int unsigned PWayW = (PageWays > 1) ? $clog2(PageWays) : 1,
  localparam int unsigned HWayW = (HugeWays > 1) ? $clog2(HugeWays) : 1
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  axi_ax_t v_i,
  input  logic    v_valid_i,
  output logic    v_ready_o,
  output axi_ax_t p_o,
  output logic    p_valid_o,
  input  logic    p_ready_i,
  output evt_t    evt_o,        // a miss that waits, or a wide address
  output logic    evt_valid_o,
  input  logic    evt_ready_i,
  input  logic    abort_i,      // level: complete all translations with an error
  output logic    miss_o,       // one-cycle pulse per miss that was posted

  // the arrays, for the owner
  input  logic                hold_i,                   // level: the owner requests the arrays
  output logic                held_o,                   // level: the pipeline has stopped, the arrays are the owner's
  input  logic                op_re_i,                  // pulse: look up op_ra_i
  input  logic [     VaW-1:0] op_ra_i,                  // virtual address
  input  logic [     VaW-1:0] op_va_i,                  // virtual address; for a sweep the set number
  output logic                op_hit_o     [       2],  // [0]: in the 4 KiB array, [1]: in the 2 MiB array
  output logic [   PWayW-1:0] page_way_o,               // way that hit
  output logic [   HWayW-1:0] huge_way_o,               // way that hit
  output logic [PageWays-1:0] page_valid_o,             // of the set read: valid entries
  output logic [PageWays-1:0] page_ever_o,              // accessed (written) since the entry was made
  output logic [PageWays-1:0] page_recent_o,            // the same, since the last scan
  output logic [PageWays-1:0] page_kept_o,              // valid and in no page table
  output logic [     VaW-1:0] page_va_o    [PageWays],  // virtual address of each entry
  output logic [HugeWays-1:0] huge_valid_o,             // as page_valid_o
  output logic [HugeWays-1:0] huge_ever_o,              // as page_ever_o
  output logic [HugeWays-1:0] huge_recent_o,            // as page_recent_o
  output logic [     VaW-1:0] huge_va_o    [HugeWays],  // as page_va_o
  input  logic                op_we_i,                  // pulse: write the entry of op_va_i
  input  logic                op_sweep_i,               // with it: invalidate the whole set in both arrays
  input  logic                op_touch_i,               // with it: write the touched bits only: {op_ever_i, 0}
  input  logic                op_ever_i,                // value of the bit `ever` to write
  input  logic                op_huge_i,                // the entry is in the 2 MiB array
  input  logic [   PWayW-1:0] op_page_way_i,            // way to write
  input  logic [   HWayW-1:0] op_huge_way_i,            // way to write
  input  logic                op_wvalid_i,              // the new entry is valid
  input  logic                op_wkept_i,               // it is in no page table
  input  pte_t                op_wpte_i,                // the new translation
  input  logic                op_left_i,                // pulse: a page leaves
  input  logic                op_map_i,                 // pulse: the page of op_va_i is mapped
  // deny the waiting misses on a page
  input  logic                deny_i,                   // pulse while held: complete those on the page op_va_i with an error
  output logic                denied_o,                 // level, held again: there was one
  output logic                idle_o                    // level: the pipeline is empty
);

  localparam bit PageWaysOk = param_in("via_tlb PageWays", PageWays, 1, 64);
  localparam bit PageSetsOk = param_pow2("via_tlb PageSets", PageSets, 2, 65536);
  localparam bit HugeWaysOk = param_in("via_tlb HugeWays", HugeWays, 1, 64);
  localparam bit HugeSetsOk = param_pow2("via_tlb HugeSets", HugeSets, 2, 65536);
  localparam bit WaitingOk = param_pow2("via_tlb Waiting", Waiting, 2, 1024);

  // All but what is the same for every burst.
  typedef struct packed {
    logic             bad;   // wider than VaW
    logic [IdW-1:0]   id;
    logic [7:0]       len;
    logic [AddrW-1:0] addr;
  } burst_t;
  localparam int unsigned CW = $clog2(Waiting + 2);
  localparam int unsigned NW = $clog2(Waiting + 3);  // bursts behind s2: s1 and the queue

  typedef enum logic [3:0] {
    Run,       // the arrays' output belongs to s1
    Held,      // the arrays are the owner's
    Reread2,   // read for s2
    Compare2,  // compare s2 with it, read for s1
    Reread1,   // read for s1
    Aim,       // choose an entry that waits, or end
    Fetch,     // deny: take it from s1 or the queue
    Read,      // read the arrays for it
    Compare,   // compare
    Judge,     // mark it as denied
    Sift,      // scout: compare one entry, take the next one
    Post       // post the former, read the arrays for the latter
  } state_e;
  state_e state_q, state_d;

  // ---------------------------------------------------------------- bursts
  burst_t in, front, look, s1_q, s2_q, sc_q;
  logic front_mark, front_valid, accept, look_mark, look_load, look_en, mark;
  logic [CW-1:0] queued, place;
  logic s1_valid_q, s1_deny_q, s2_valid_q;
  // A burst is aligned to its size, so it is enough to check the address of its first beat.
  assign in = '{bad: |v_i.addr[AddrW-1:VaW], id: v_i.id, len: v_i.len, addr: v_i.addr};

  logic moving, s2_free, s1_move, can_accept;
  via_tlb_queue #(
    .T    (burst_t),
    .Depth(Waiting)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .s_i         (in),
    .s_valid_i   (v_valid_i),
    .s_ready_o   (v_ready_o),
    .front_o     (front),
    .front_mark_o(front_mark),
    .front_any_o (front_valid),
    .take_i      (can_accept),
    .count_o     (queued),
    .look_i      (place),
    .look_load_i (look_load),
    .look_en_i   (look_en),
    .look_o      (look),
    .look_mark_o (look_mark),
    .mark_i      (mark)
  );

  // s2: translated (on the output), or waiting.
  logic p_valid, p_err_q, p_pass_q, p_host_q;
  logic [39:0] p_ppn_q;
  logic s2_hit_q, s2_err_q, s2_huge_q;
  logic [PWayW-1:0] s2_pway_q;
  logic [HWayW-1:0] s2_hway_q;
  logic s2_posted_q;  // the event of this miss was posted
  logic s2_posted_perm_q;

  assign p_valid = p_pass_q || p_err_q;
  assign moving = state_q == Run && !hold_i;
  assign s2_free = !s2_valid_q || p_valid && p_ready_i;
  assign s1_move = s1_valid_q && moving && s2_free;
  assign can_accept = moving && (!s1_valid_q || s2_free);
  assign accept = front_valid && can_accept;
  assign held_o = state_q == Held;

  // ---------------------------------------------------------------- arrays
  logic re;
  logic [VaW-1:0] ra;
  // Registers name the source of the address, since half of a cycle passes behind it, in the touched bits of 1024 sets.
  logic of_front, of_owner_q, of_s1_q, of_s2_q, of_scout_q;
  always_ff @(posedge clk_i) begin
    of_owner_q <= rst_ni && state_d == Held;
    of_s1_q    <= rst_ni && state_d inside {Compare2, Reread1};
    of_s2_q    <= rst_ni && state_d == Reread2;
    of_scout_q <= rst_ni && state_d inside {Read, Post};
  end
  assign of_front = !(of_owner_q || of_s1_q || of_s2_q || of_scout_q);
  assign ra = {VaW{of_front}} & front.addr[VaW-1:0] | {VaW{of_owner_q}} & op_ra_i | {VaW{of_s1_q}} & s1_q.addr[VaW-1:0] |
      {VaW{of_s2_q}} & s2_q.addr[VaW-1:0] | {VaW{of_scout_q}} & sc_q.addr[VaW-1:0];
  assign re = accept || of_owner_q && op_re_i || of_s1_q || of_s2_q || of_scout_q;

  // The owner sweeps both arrays with the set number at the position of the 4 KiB page number.
  logic [VaW-1:0] op_huge_va;
  assign op_huge_va = op_sweep_i ? op_va_i << (HugeLog2 - PageLog2) : op_va_i;

  logic phit, hhit, touch;
  pte_t ppte, hpte;
  logic [PWayW-1:0] pway;
  logic [HWayW-1:0] hway;
  assign touch = p_valid && p_ready_i && !p_err_q;

  via_tlb_array #(
    .Ways    (PageWays),
    .Sets    (PageSets),
    .PageBits(PageLog2)
  ) u_page (
    .clk_i,
    .re_i         (re),
    .va_i         (ra),
    .hit_o        (phit),
    .way_o        (pway),
    .pte_o        (ppte),
    .valid_o      (page_valid_o),
    .ever_o       (page_ever_o),
    .recent_o     (page_recent_o),
    .kept_o       (page_kept_o),
    .page_o       (page_va_o),
    .we_i         (op_we_i && !op_huge_i),
    .sweep_i      (op_sweep_i),
    .wway_i       (op_page_way_i),
    .wva_i        (op_va_i),
    .wvalid_i     (op_wvalid_i),
    .wkept_i      (op_wkept_i),
    .wpte_i       (op_wpte_i),
    .touch_i      (held_o ? (op_we_i || op_touch_i) && !op_huge_i : touch && !s2_huge_q),
    .touch_value_i(held_o ? {op_touch_i && op_ever_i, 1'b0} : 2'b11),
    .touch_way_i  (held_o ? op_page_way_i : s2_pway_q),
    .touch_va_i   (held_o ? op_va_i : s2_q.addr[VaW-1:0])
  );
  via_tlb_array #(
    .Ways    (HugeWays),
    .Sets    (HugeSets),
    .PageBits(HugeLog2)
  ) u_huge (
    .clk_i,
    .re_i         (re),
    .va_i         (ra),
    .hit_o        (hhit),
    .way_o        (hway),
    .pte_o        (hpte),
    .valid_o      (huge_valid_o),
    .ever_o       (huge_ever_o),
    .recent_o     (huge_recent_o),
    .kept_o       (),
    .page_o       (huge_va_o),
    .we_i         (op_we_i && op_huge_i),
    .sweep_i      (op_sweep_i),
    .wway_i       (op_huge_way_i),
    .wva_i        (op_huge_va),
    .wvalid_i     (op_wvalid_i),
    .wkept_i      (1'b1),
    .wpte_i       (op_wpte_i),
    .touch_i      (held_o ? (op_we_i || op_touch_i) && op_huge_i : touch && s2_huge_q),
    .touch_value_i(held_o ? {op_touch_i && op_ever_i, 1'b0} : 2'b11),
    .touch_way_i  (held_o ? op_huge_way_i : s2_hway_q),
    .touch_va_i   (held_o ? op_va_i : s2_q.addr[VaW-1:0])
  );
  assign op_hit_o[0] = phit;
  assign op_hit_o[1] = hhit;
  assign page_way_o  = pway;
  assign huge_way_o  = hway;

  // What was looked up is there, and with the right. A 2 MiB page comes first.
  logic pass;
  assign pass = hhit ? (Write ? hpte.w : hpte.r) : (Write ? ppte.w : ppte.r);

  // ---------------------------------------------------------------- events
  // A register per direction: what posted the event may end before it is accepted.
  logic evt_valid_q, evt_free, post_s2, post_sc, perm;
  assign evt_free = !evt_valid_q || state_q == Sift && evt_ready_i;
  burst_t evt_q;
  event_e cause_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) evt_valid_q <= 1'b0;
    else evt_valid_q <= post_s2 || post_sc || evt_valid_q && !evt_ready_i;
  end
  always_ff @(posedge clk_i) begin
    // Of an entry that the scout looks at it is there before it is posted.
    if (state_q != Post && evt_free) evt_q <= (state_q == Sift) ? sc_q : s2_q;
    if (!evt_valid_q) cause_q <= (state_q != Post && s2_q.bad) ? EvBounds : perm ? EvPerm : EvMiss;
  end
  always_comb begin
    evt_o          = '0;
    evt_o.cause    = cause_q;
    evt_o.is_write = Write;
    evt_o.source   = evt_source_e'(8'(evt_q.id[IdW-1-:2]));
    evt_o.va       = evt_q.addr;
    evt_o.info     = 64'(({56'h0, evt_q.len} + 64'd1) << BeatLog2);
  end
  assign evt_valid_o = evt_valid_q;

  // One event per miss; a second one if the retry fails for the other reason.
  logic waits, tell;
  assign waits = state_q == Run && s2_valid_q && !p_valid && !s2_err_q && !abort_i;
  assign tell = !s2_posted_q || !s2_q.bad && s2_posted_perm_q != s2_hit_q;
  assign post_s2 = waits && tell && !evt_valid_q;
  assign miss_o = post_s2 && !s2_posted_q || post_sc;

  // ---------------------------------------------------------------- scout
  // The first `seen_q` bursts behind s2 were looked up; a translation has left since the first `stale_q` of them were.
  function automatic logic same(input logic [VaW-1:PageLog2] x, input logic [VaW-1:PageLog2] y, input logic huge);
    return x[VaW-1:HugeLog2] == y[VaW-1:HugeLog2] && (huge || x[HugeLog2-1:PageLog2] == y[HugeLog2-1:PageLog2]);
  endfunction
  logic denying_q;  // OpDeny passes over all waiting bursts: they are looked up to be marked, not to post
  logic taken_q;  // there is an entry in sc_q that was not compared
  logic looked_q;  // and one that was, to be posted
  logic sift;  // both steps of that state can be done
  assign sift = state_q == Sift && evt_free;
  logic sc_hit_q, sc_pass_q, sc_denied_q, sc_mark_q, sc_told_q, denied_q, last_valid_q, last_perm_q;
  logic [NW-1:0] behind_q, seen_q, seen_d, stale_q, next_q, index;  // behind_q: bursts behind s2
  logic [NW-1:0] deny_next_q;  // the next one of the pass to deny
  logic [VaW-1:PageLog2] last_q;  // the page that was posted last
  logic more, step, skip, judged, away;

  // The scout takes entries before the ones in front of them are judged.
  assign index = denying_q ? deny_next_q : (state_q == Sift || state_q == Post) ? next_q : seen_q;
  assign more = index != behind_q;
  assign place = CW'(index - NW'(s1_valid_q));
  assign look_load = state_q == Aim || state_q == Post;
  assign look_en = state_q == Fetch || state_q == Sift;
  assign skip = sc_pass_q || evt_q.bad || sc_mark_q || sc_told_q;
  assign post_sc = state_q == Post && looked_q && !skip && !abort_i;
  assign judged = state_q == Judge;
  assign step = state_q == Post && looked_q && (skip || post_sc);
  // Not on the page to deny.
  assign away = denying_q && state_q == Read && !same(sc_q.addr[VaW-1:PageLog2], op_va_i[VaW-1:PageLog2], op_huge_i);
  assign perm = (state_q == Post) ? sc_hit_q : s2_hit_q;

  logic deny_it, on_last;
  assign deny_it = denying_q && state_q == Judge && !sc_pass_q && !sc_q.bad;
  assign mark = deny_it && !(s1_valid_q && deny_next_q == '0);
  assign on_last = same(last_q, op_va_i[VaW-1:PageLog2], op_huge_i);
  assign denied_o = denied_q;

  always_comb begin
    seen_d = seen_q;
    if (step) seen_d = seen_q + 1'b1;
    else if (s1_move && seen_q != '0) seen_d = seen_q - 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      behind_q     <= '0;
      seen_q       <= '0;
      stale_q      <= '0;
      denying_q    <= 1'b0;
      last_valid_q <= 1'b0;
    end else begin
      if ((v_valid_i && v_ready_o) != s1_move) behind_q <= s1_move ? behind_q - 1'b1 : behind_q + 1'b1;
      seen_q <= seen_d;
      if (op_left_i || abort_i) stale_q <= seen_d;
      else if (s1_move && stale_q != '0) stale_q <= stale_q - 1'b1;
      if (deny_i) denying_q <= 1'b1;
      else if (state_q == Aim && !more) denying_q <= 1'b0;
      if (abort_i || (op_map_i || deny_i) && on_last) last_valid_q <= 1'b0;
      else if (post_sc || post_s2) last_valid_q <= state_q == Post || !s2_q.bad;
    end
    if (post_sc || post_s2) begin
      last_q      <= (state_q == Post) ? evt_q.addr[VaW-1:PageLog2] : s2_q.addr[VaW-1:PageLog2];
      last_perm_q <= perm;
    end
    if (deny_i) deny_next_q <= '0;
    else if (judged && denying_q || away) deny_next_q <= deny_next_q + 1'b1;
    if (state_q == Fetch || sift) begin
      sc_q        <= (s1_valid_q && index == '0) ? s1_q : look;
      sc_denied_q <= (s1_valid_q && index == '0) ? s1_deny_q : look_mark;
    end
    if (state_q == Aim) next_q <= seen_q;
    else if (sift && more) next_q <= next_q + 1'b1;
    if (state_q == Aim) taken_q <= 1'b0;
    else if (sift) taken_q <= more;
    if (state_q == Aim) looked_q <= 1'b0;
    else if (sift) looked_q <= taken_q;
    if (state_q == Compare || sift) begin
      sc_mark_q <= sc_denied_q;
      sc_hit_q  <= phit || hhit;
      sc_pass_q <= pass;
      sc_told_q <= last_valid_q && last_perm_q == (phit || hhit) && last_q == sc_q.addr[VaW-1:PageLog2];
    end
  end

  // ---------------------------------------------------------------- control
  // The end of a wait without a translation.
  logic give_up, s2_page;
  assign give_up = moving && s2_valid_q && !p_valid && (s2_err_q || abort_i || s2_q.bad && s2_posted_q);
  assign s2_page = s2_valid_q && !s2_err_q && !s2_q.bad && same(s2_q.addr[VaW-1:PageLog2], op_va_i[VaW-1:PageLog2], op_huge_i);

  logic scout;
  assign scout = waits && s2_posted_q && !tell && !s2_q.bad && s1_valid_q && more;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Run:
      if (hold_i) state_d = p_valid ? Run : Held;
      else if (scout) state_d = Aim;
      Held:
      if (deny_i) state_d = Aim;
      else if (!hold_i) state_d = (s1_valid_q || s2_valid_q) ? Reread2 : Run;
      Reread2: state_d = Compare2;
      Aim:
      if (denying_q && more) state_d = Fetch;
      else if (hold_i) state_d = Held;
      else state_d = (more && !abort_i) ? Sift : Reread1;
      Fetch: state_d = Read;
      Read: state_d = away ? Aim : Compare;
      Compare: state_d = Judge;
      Judge: state_d = Aim;
      Sift:
      if (hold_i) state_d = Held;
      else if (abort_i) state_d = Reread1;
      else if (evt_free) state_d = Post;
      Post:
      if (hold_i) state_d = Held;
      else state_d = (taken_q && !abort_i) ? Sift : Reread1;
      default: state_d = Run;  // Compare2, Reread1
    endcase
  end

  always_ff @(posedge clk_i) state_q <= rst_ni ? state_d : Run;

  logic load2, forced, fair;
  assign load2  = s1_move || state_q == Compare2;
  assign forced = (state_q == Compare2) ? s2_valid_q && (abort_i || s2_err_q) : abort_i || s1_deny_q;
  assign fair   = (state_q == Compare2) ? s2_valid_q && !s2_q.bad : !s1_q.bad;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
      p_pass_q   <= 1'b0;
      p_err_q    <= 1'b0;
    end else begin
      if (accept) s1_valid_q <= 1'b1;
      else if (s1_move) s1_valid_q <= 1'b0;
      if (s1_move) s2_valid_q <= 1'b1;
      else if (p_valid && p_ready_i) s2_valid_q <= 1'b0;

      // The output is valid with either.
      if (load2) p_pass_q <= pass && fair;
      else if (p_ready_i) p_pass_q <= 1'b0;
      if (load2) p_err_q <= forced;
      else if (give_up) p_err_q <= 1'b1;
      else if (p_ready_i) p_err_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) begin
      s1_q      <= front;
      s1_deny_q <= front_mark;
    end else if (deny_it && deny_next_q == '0 && s1_valid_q) begin
      s1_deny_q <= 1'b1;
    end
    if (s1_move) s2_q <= s1_q;
    if (load2) begin
      s2_hit_q  <= phit || hhit;
      s2_huge_q <= hhit;
      s2_pway_q <= pway;
      s2_hway_q <= hway;
      p_host_q  <= hhit ? hpte.host : ppte.host;
      p_ppn_q   <= ppte.ppn;
      if (hhit) begin
        p_ppn_q <= hpte.ppn;
        p_ppn_q[HugeLog2-PageLog2-1:0] <= (state_q == Compare2) ? s2_q.addr[HugeLog2-1:PageLog2] : s1_q.addr[HugeLog2-1:PageLog2];
      end
    end
    if (s1_move) begin
      s2_err_q         <= 1'b0;
      s2_posted_q      <= seen_q != '0 && stale_q == '0 && !s1_q.bad;
      s2_posted_perm_q <= 1'b0;
    end else begin
      if (deny_i && s2_page) s2_err_q <= 1'b1;
      // Its event is answered. If it still cannot pass it posts again: the response may lack a right, or be displaced before the burst could use it.
      // The same if its event is lost in an abort that is over before the burst could be given up.
      if (op_map_i && s2_page || abort_i) s2_posted_q <= 1'b0;
      if (post_s2) begin
        s2_posted_q      <= 1'b1;
        s2_posted_perm_q <= s2_hit_q;
      end
    end
    if (deny_i) denied_q <= s2_page;
    else if (deny_it) denied_q <= 1'b1;
  end

  // ---------------------------------------------------------------- result
  always_comb begin
    p_o = '{id: s2_q.id, burst: BurstIncr, size: 3'(BeatLog2), len: s2_q.len, addr: '0};
    p_o.addr[PageLog2-1:0] = s2_q.addr[PageLog2-1:0];
    p_o.addr[AddrErrBit] = p_err_q;
    p_o.addr[AddrHostBit] = p_host_q && !p_err_q;
    p_o.addr[51:PageLog2] = p_ppn_q & {40{!p_err_q}};
  end
  assign p_valid_o = p_valid;

  assign idle_o = !s1_valid_q && !s2_valid_q && queued == '0 && state_q == Run && !hold_i && !evt_valid_q;

endmodule
