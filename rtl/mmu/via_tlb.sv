// SPDX-License-Identifier: Apache-2.0
//
// Translation of one direction (AR or AW) of a slot: both page sizes are looked up in parallel.
//
// Throughput: one translation a cycle on hits. Latency: two cycles. Order: kept; a miss holds up later bursts.
// A miss (no translation, or no permission) posts one event and waits; after every change of the arrays it is looked up again. It ends with
// a hit, or with `deny` or `abort_i`, which send the burst to AddrErrBit (`abort_i` also those that would hit). Misuse: a burst whose
// address is wider than VaW is sent there at once.
//
// The owner gets exclusive access to the arrays by raising `hold_i` and waiting for `held_o`. When it drops `hold_i`, the pipeline reads
// again what it had in flight: three cycles per change in which nothing is translated.

module via_tlb
  import via_pkg::*;
#(
  parameter int unsigned PageWays = 4,
  parameter int unsigned PageSets = 1024,
  parameter int unsigned HugeWays = 4,
  parameter int unsigned HugeSets = 256,
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
  output evt_t    evt_o,  // the miss that waits
  output logic    evt_valid_o,
  input  logic    evt_ready_i,
  input  logic    abort_i,  // level: complete all translations with an error
  output logic    miss_o,  // one-cycle pulse per lookup that misses for the first time

  // the arrays, for the owner
  input  logic                hold_i,                   // level: the owner requests the arrays
  output logic                held_o,                   // level: the pipeline has stopped, the arrays are the owner's
  input  logic                op_re_i,                  // pulse: look up op_va_i
  input  logic [     VaW-1:0] op_va_i,                  // virtual address; for a sweep the set number
  output logic                op_hit_o     [       2],  // [0]: in the 4 KiB array, [1]: in the 2 MiB array
  output logic [   PWayW-1:0] page_way_o,               // way that hit
  output logic [   HWayW-1:0] huge_way_o,               // way that hit
  output logic [PageWays-1:0] page_valid_o,             // of the set read: valid entries
  output logic [PageWays-1:0] page_ever_o,              // accessed (written) since the entry was made
  output logic [PageWays-1:0] page_recent_o,            // the same, since the last scan
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
  input  pte_t                op_wpte_i,                // the new translation
  // deny the waiting miss if it is on this page
  input  logic                deny_i,                   // pulse: complete the waiting miss with an error
  input  logic                deny_huge_i,              // compare as a 2 MiB page
  output logic                deny_match_o,             // level: the waiting miss is on the page op_va_i
  output logic                idle_o                    // level: the pipeline is empty
);

  localparam bit PageWaysOk = param_in("via_tlb PageWays", PageWays, 1, 64);
  localparam bit PageSetsOk = param_pow2("via_tlb PageSets", PageSets, 2, 65536);
  localparam bit HugeWaysOk = param_in("via_tlb HugeWays", HugeWays, 1, 64);
  localparam bit HugeSetsOk = param_pow2("via_tlb HugeSets", HugeSets, 2, 65536);

  // ---------------------------------------------------------------- pipeline registers
  // s1: the set is in the arrays' output registers. s2: translated, or waiting.
  axi_ax_t s1_q, s2_q;
  logic s1_valid_q, s2_valid_q;
  logic s2_hit_q, s2_perm_q, s2_huge_q, s2_err_q;
  logic [PWayW-1:0] s2_pway_q;
  logic [HWayW-1:0] s2_hway_q;
  pte_t s2_pte_q;
  logic s2_posted_q;  // the event of this miss was posted
  logic s2_posted_perm_q;

  typedef enum logic [1:0] {
    Run,      // the arrays' output belongs to s1
    Reread2,  // read for s2
    Compare2  // compare s2 with it, read for s1
  } state_e;
  state_e state_q;

  logic s2_bad, s2_go, s2_ok, s2_out, s1_move, accept;
  // A burst is aligned to its size, so it is enough to check the address of its first beat.
  assign s2_bad = |s2_q.addr[AddrW-1:VaW];
  assign s2_ok  = s2_hit_q && s2_perm_q && !s2_bad && !s2_err_q;
  // A miss that ends meanwhile must not disturb a decision of the owner of the arrays.
  logic s2_ready, held_q;
  assign s2_ready = s2_valid_q && state_q == Run && (s2_ok || s2_err_q || s2_bad && s2_posted_q);
  assign s2_go = s2_ready && !held_q;
  assign p_valid_o = s2_go;
  assign s2_out = s2_go && p_ready_i;

  // Nothing enters s2 until the arrays' output belongs to s1 again.
  logic hold_q, moving;
  assign moving = state_q == Run && !hold_i && !hold_q;
  assign s1_move = s1_valid_q && moving && (!s2_valid_q || s2_out);
  assign v_ready_o = moving && (!s1_valid_q || s1_move);
  assign accept = v_valid_i && v_ready_o;

  // While the pipeline is held, s2 is empty or waits for a change of the arrays.
  assign held_o = hold_i && state_q == Run && (held_q || !s2_ready);

  // ---------------------------------------------------------------- arrays
  logic re;
  logic [VaW-1:0] ra, cmp_va;
  always_comb begin
    if (held_o) begin
      re = op_re_i;
      ra = op_va_i;
      cmp_va = op_va_i;
    end else begin
      unique case (state_q)
        Reread2:  ra = s2_q.addr[VaW-1:0];
        Compare2: ra = s1_q.addr[VaW-1:0];
        default:  ra = v_i.addr[VaW-1:0];
      endcase
      re = accept || state_q != Run;
      cmp_va = (state_q == Compare2) ? s2_q.addr[VaW-1:0] : s1_q.addr[VaW-1:0];
    end
  end

  // The owner sweeps both arrays with the set number at the position of the 4 KiB page number.
  logic [VaW-1:0] op_huge_va;
  assign op_huge_va = op_sweep_i ? op_va_i << (HugeLog2 - PageLog2) : op_va_i;

  logic phit, hhit;
  pte_t ppte, hpte;
  logic [PWayW-1:0] pway;
  logic [HWayW-1:0] hway;
  logic touch;
  assign touch = s2_out && s2_ok;

  via_tlb_array #(
    .Ways    (PageWays),
    .Sets    (PageSets),
    .PageBits(PageLog2)
  ) u_page (
    .clk_i,
    .re_i         (re),
    .va_i         (ra),
    .cmp_va_i     (cmp_va),
    .hit_o        (phit),
    .way_o        (pway),
    .pte_o        (ppte),
    .valid_o      (page_valid_o),
    .ever_o       (page_ever_o),
    .recent_o     (page_recent_o),
    .page_o       (page_va_o),
    .we_i         (op_we_i && !op_huge_i),
    .sweep_i      (op_sweep_i),
    .wway_i       (op_page_way_i),
    .wva_i        (op_va_i),
    .wvalid_i     (op_wvalid_i),
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
    .cmp_va_i     (cmp_va),
    .hit_o        (hhit),
    .way_o        (hway),
    .pte_o        (hpte),
    .valid_o      (huge_valid_o),
    .ever_o       (huge_ever_o),
    .recent_o     (huge_recent_o),
    .page_o       (huge_va_o),
    .we_i         (op_we_i && op_huge_i),
    .sweep_i      (op_sweep_i),
    .wway_i       (op_huge_way_i),
    .wva_i        (op_huge_va),
    .wvalid_i     (op_wvalid_i),
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

  // ---------------------------------------------------------------- control
  pte_t pte;
  assign pte = hhit ? hpte : ppte;

  logic load2;
  assign load2 = s1_move || state_q == Compare2;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
      state_q    <= Run;
    end else begin
      if (accept) s1_valid_q <= 1'b1;
      else if (s1_move) s1_valid_q <= 1'b0;
      if (s1_move) s2_valid_q <= 1'b1;
      else if (s2_out) s2_valid_q <= 1'b0;

      unique case (state_q)
        Run: if (hold_q && !hold_i && (s1_valid_q || s2_valid_q)) state_q <= Reread2;
        Reread2: state_q <= Compare2;
        default: state_q <= Run;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    hold_q <= rst_ni && hold_i;
    held_q <= rst_ni && held_o;
  end

  always_ff @(posedge clk_i) begin
    if (accept) s1_q <= v_i;
    if (s1_move) s2_q <= s1_q;
    if (load2) begin
      s2_hit_q  <= phit || hhit;
      s2_perm_q <= Write ? pte.w : pte.r;
      s2_huge_q <= hhit;
      s2_pte_q  <= pte;
      s2_pway_q <= pway;
      s2_hway_q <= hway;
    end
    if (s1_move) begin
      s2_err_q    <= abort_i;
      s2_posted_q <= 1'b0;
    end else begin
      // A burst already offered is not changed.
      if (deny_i && deny_match_o || abort_i && !s2_go) s2_err_q <= 1'b1;
      if (evt_valid_o && evt_ready_i) begin
        s2_posted_q      <= 1'b1;
        s2_posted_perm_q <= s2_hit_q;
      end
    end
  end

  // ---------------------------------------------------------------- result
  always_comb begin
    p_o = s2_q;
    if (!s2_ok) begin
      p_o.addr = '0;
      p_o.addr[AddrErrBit] = 1'b1;
      p_o.addr[PageLog2-1:0] = s2_q.addr[PageLog2-1:0];
    end else begin
      p_o.addr = {12'h0, s2_pte_q.ppn, s2_q.addr[PageLog2-1:0]};
      if (s2_huge_q) p_o.addr[HugeLog2-1:PageLog2] = s2_q.addr[HugeLog2-1:PageLog2];
      p_o.addr[AddrHostBit] = s2_pte_q.host;
    end
  end

  logic waiting;
  assign waiting = s2_valid_q && state_q == Run && !s2_ok && !s2_err_q && !abort_i;
  assign deny_match_o = s2_valid_q && !s2_ok && !s2_err_q && !s2_bad &&
      (deny_huge_i ? s2_q.addr[VaW-1:HugeLog2] == op_va_i[VaW-1:HugeLog2]
                   : s2_q.addr[VaW-1:PageLog2] == op_va_i[VaW-1:PageLog2]);

  // One event per miss; a second one if the retry fails for the other reason.
  assign evt_valid_o = waiting && (!s2_posted_q || (!s2_bad && s2_posted_perm_q != s2_hit_q));
  always_comb begin
    evt_o          = '0;
    evt_o.cause    = s2_bad ? EvBounds : s2_hit_q ? EvPerm : EvMiss;
    evt_o.is_write = Write;
    evt_o.source   = 8'(s2_q.id[IdW-1-:2]);
    evt_o.va       = s2_q.addr;
    evt_o.info     = 64'(({56'h0, s2_q.len} + 64'd1) << BeatLog2);
  end
  assign miss_o = evt_valid_o && evt_ready_i && !s2_posted_q;

  assign idle_o = !s1_valid_q && !s2_valid_q && state_q == Run && !hold_i && !hold_q;

endmodule
