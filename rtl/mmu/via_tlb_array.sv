// SPDX-License-Identifier: Apache-2.0
//
// One set-associative array of translations of one page size, for one direction, with its touched bits.
//
// Throughput: one read and one write each cycle. Latency: one cycle from `re_i` to the result, which is then held until the next read. The
// touched bits of the entry named by `touch_*` are written in the same way. Misuse: nothing is valid until the owner has swept every set
// with invalid entries, so it must not be read earlier.

module via_tlb_array
  import via_pkg::*;
#(
  parameter int unsigned Ways = 4,
  parameter int unsigned Sets = 1024,
  parameter int unsigned PageBits = PageLog2,
  localparam int unsigned SetW = $clog2(Sets),
  localparam int unsigned WayW = (Ways > 1) ? $clog2(Ways) : 1,
  localparam int unsigned TagW = VaW - PageBits - SetW
) (
  input  logic            clk_i,
  // lookup
  input  logic            re_i,                 // pulse: read the set of va_i
  input  logic [ VaW-1:0] va_i,                 // address to look up
  output logic            hit_o,                // level: an entry of the set that was read matches it
  output logic [WayW-1:0] way_o,                // its way
  output pte_t            pte_o,                // its translation
  output logic [Ways-1:0] valid_o,              // valid entries of the set that was read
  output logic [Ways-1:0] ever_o,               // translated since the entry was written
  output logic [Ways-1:0] recent_o,             // the same, since the last scan
  output logic [Ways-1:0] kept_o,               // those that were written with wkept_i
  output logic [ VaW-1:0] page_o       [Ways],  // their virtual addresses
  // write of one entry, or invalidation of a whole set
  input  logic            we_i,                 // pulse: write
  input  logic            sweep_i,              // with it: invalidate all ways of the set
  input  logic [WayW-1:0] wway_i,               // way to write
  input  logic [ VaW-1:0] wva_i,                // virtual address of the new entry
  input  logic            wvalid_i,             // the new entry is valid
  input  logic            wkept_i,              // it is in no page table: kept_o
  input  pte_t            wpte_i,               // its translation
  // touched bits {ever, recent}
  input  logic            touch_i,              // pulse: write the touched bits
  input  logic [     1:0] touch_value_i,        // their value
  input  logic [WayW-1:0] touch_way_i,          // way of the entry
  input  logic [ VaW-1:0] touch_va_i            // its virtual address
);

  localparam bit WaysOk = param_in("via_tlb_array Ways", Ways, 1, 64);
  localparam bit SetsOk = param_pow2("via_tlb_array Sets", Sets, 2, 65536);
  localparam bit PageBitsOk = param_in("via_tlb_array PageBits", PageBits, PageLog2, HugeLog2);

  typedef struct packed {
    logic            valid;
    logic            kept;
    logic            host;
    logic            w;
    logic            r;
    logic [TagW-1:0] tag;
    logic [39:0]     ppn;
  } entry_t;

  entry_t entry  [Ways];
  entry_t wentry;
  assign wentry = '{
          valid: wvalid_i,
          kept: wkept_i,
          host: wpte_i.host,
          w: wpte_i.w,
          r: wpte_i.r,
          tag: wva_i[VaW-1-:TagW],
          ppn: wpte_i.ppn
      };

  logic [Ways-1:0] match;
  logic [SetW-1:0] set_q;
  logic [TagW-1:0] tag_q;

  always_ff @(posedge clk_i) if (re_i) {tag_q, set_q} <= va_i[VaW-1:PageBits];

  for (genvar w = 0; w < Ways; w++) begin : gen_way
    via_ram_sdp #(
      .Width($bits(entry_t)),
      .Depth(Sets)
    ) u_entry (
      .clk_i,
      .we_i   (sweep_i || we_i && wway_i == WayW'(w)),
      .waddr_i(wva_i[PageBits+:SetW]),
      .wdata_i(wentry),
      .re_i,
      .raddr_i(va_i[PageBits+:SetW]),
      .rdata_o(entry[w])
    );
    assign match[w]   = entry[w].valid && entry[w].tag == tag_q;
    assign valid_o[w] = entry[w].valid;
    assign kept_o[w]  = entry[w].valid && entry[w].kept;
    assign page_o[w]  = {entry[w].tag, set_q, {PageBits{1'b0}}};
  end

  // One memory for all ways, in lanes: wide enough for a block RAM.
  logic [Ways-1:0] touched;
  logic [Ways-1:0][1:0] bits;
  for (genvar w = 0; w < Ways; w++) begin : gen_touched
    assign touched[w] = touch_i && touch_way_i == WayW'(w);
    assign {ever_o[w], recent_o[w]} = bits[w];
  end
  via_ram_sdp #(
    .Width(2 * Ways),
    .Depth(Sets),
    .Lanes(Ways)
  ) u_touched (
    .clk_i,
    .we_i   (touched),
    .waddr_i(touch_va_i[PageBits+:SetW]),
    .wdata_i({Ways{touch_value_i}}),
    .re_i,
    .raddr_i(va_i[PageBits+:SetW]),
    .rdata_o(bits)
  );

  // At most one way matches: OpMap replaces an entry of the same page in place.
  always_comb begin
    hit_o = |match;
    way_o = '0;
    pte_o = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      way_o |= WayW'(w) & {WayW{match[w]}};
      pte_o.v |= match[w];
      pte_o.ppn |= entry[w].ppn & {40{match[w]}};
      pte_o.host |= entry[w].host && match[w];
      pte_o.w |= entry[w].w && match[w];
      pte_o.r |= entry[w].r && match[w];
    end
  end

endmodule
