// SPDX-License-Identifier: Apache-2.0
//
// TLB in SRAM of the replicas: set-associative, index the low bits of the page number, replaced in turn; a miss is served by the host and
// takes `miss_i` cycles.
//
// Throughput: with `step_i` the state machine of the published design (FSRF paper, section 5.2; Coyote's latency, section 6.2), which
// serves reads and writes in turn and takes that many cycles for each; with `step_i` 0 one translation a cycle and direction, one cycle
// later. Order: kept in each direction. A miss holds up the machine, or with `step_i` 0 its direction. The published design also drains
// all accesses before it reports a miss; this one does not. Without `tlb_i` everything passes.

module via_rival_sram
  import via_pkg::*;
#(
  // The largest TLB among the replicas: Coyote's for pages of 4 KiB (paper, section 6.2).
  parameter int unsigned Ways = 4,
  parameter int unsigned Sets = 1024,
  parameter int unsigned VpnW = 36  // bits of a page number that are compared
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  // the system, constant
  input  logic               tlb_i,         // there is a TLB
  input  logic    [     3:0] step_i,        // cycles of a translation, reads and writes in turn; 0: one a cycle and direction
  input  logic    [     5:0] page_log2_i,   // bytes of a page
  input  logic    [     3:0] sets_log2_i,   // sets
  input  logic    [     2:0] ways_i,        // ways
  input  logic    [    15:0] miss_i,        // cycles until the host has entered a page
  input  logic    [VpnW-1:0] fill_i,        // page that is entered before the run, with fill_valid_i
  input  logic               fill_valid_i,
  input  axi_ax_t            s_ar_i,
  input  logic               s_ar_valid_i,
  output logic               s_ar_ready_o,
  input  axi_ax_t            s_aw_i,
  input  logic               s_aw_valid_i,
  output logic               s_aw_ready_o,
  output axi_ax_t            m_ar_o,
  output logic               m_ar_valid_o,
  input  logic               m_ar_ready_i,
  output axi_ax_t            m_aw_o,
  output logic               m_aw_valid_o,
  input  logic               m_aw_ready_i,
  output logic    [    31:0] misses_o       // pages entered since reset, without those before the run
);

  localparam bit WaysOk = param_in("via_rival_sram Ways", Ways, 2, 4);
  localparam bit SetsOk = param_pow2("via_rival_sram Sets", Sets, 2, 65536);
  localparam bit VpnWOk = param_in("via_rival_sram VpnW", VpnW, 16, 48);

  localparam int unsigned SetW = $clog2(Sets);

  localparam int unsigned WayW = $clog2(Ways);

  logic [VpnW-1:0] tag_q  [Sets] [Ways];
  logic [Ways-1:0] valid_q[Sets];
  logic [WayW-1:0] turn_q [Sets];

  // [0] reads, [1] writes: the access being translated, and cycles until it may leave.
  axi_ax_t ax_q[2], s_ax[2];
  logic [1:0] held_q, hit, leave, take, s_valid, m_ready, missing_q;
  logic [15:0] wait_q[2];
  logic [VpnW-1:0] vpn[2], fill;
  logic [SetW-1:0] set[2], fill_set;
  logic last_q, fill_now;  // direction that had the machine last
  logic [31:0] misses_q;

  assign s_ax[0]  = s_ar_i;
  assign s_ax[1]  = s_aw_i;
  assign s_valid  = {s_aw_valid_i, s_ar_valid_i};
  assign m_ready  = {m_aw_ready_i, m_ar_ready_i};
  assign misses_o = misses_q;

  function automatic logic [SetW-1:0] set_of(input logic [SetW-1:0] page);
    return page & SetW'((1 << sets_log2_i) - 1);
  endfunction

  for (genvar d = 0; d < 2; d++) begin : gen_way
    assign vpn[d] = VpnW'(ax_q[d].addr >> page_log2_i);
    assign set[d] = set_of(SetW'(vpn[d]));
    always_comb begin
      hit[d] = 1'b0;
      for (int unsigned w = 0; w < Ways; w++) hit[d] |= valid_q[set[d]][w] && tag_q[set[d]][w] == vpn[d];
    end
    assign leave[d] = held_q[d] && wait_q[d] == '0 && hit[d] && m_ready[d];
  end

  // Who may be taken: with a machine one at a time, in turn.
  always_comb begin
    take = s_valid & (~held_q | leave);
    if (step_i != '0) begin
      if (held_q != '0 && (held_q & leave) == '0) take = '0;
      else if (take == 2'b11) take = last_q ? 2'b01 : 2'b10;
    end
  end

  // A page that the host enters. Both directions at once: the second one a cycle later.
  logic [1:0] enter;
  assign enter[0] = held_q[0] && missing_q[0] && wait_q[0] == '0 && !hit[0];
  assign enter[1] = held_q[1] && missing_q[1] && wait_q[1] == '0 && !hit[1] && !enter[0];
  assign fill_now = fill_valid_i || enter != '0;
  assign fill = fill_valid_i ? fill_i : enter[0] ? vpn[0] : vpn[1];
  assign fill_set = set_of(SetW'(fill));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q    <= '0;
      missing_q <= '0;
      last_q    <= 1'b1;
      misses_q  <= '0;
      for (int unsigned s = 0; s < Sets; s++) begin
        valid_q[s] <= '0;
        turn_q[s]  <= '0;
      end
    end else begin
      for (int unsigned d = 0; d < 2; d++) begin
        if (wait_q[d] != '0) wait_q[d] <= wait_q[d] - 1'b1;
        if (leave[d]) begin
          held_q[d]    <= 1'b0;
          missing_q[d] <= 1'b0;
        end else if (held_q[d] && wait_q[d] == '0 && !hit[d] && !missing_q[d]) begin
          missing_q[d] <= 1'b1;
          wait_q[d]    <= miss_i;
        end
        if (take[d]) begin
          held_q[d] <= 1'b1;
          ax_q[d]   <= s_ax[d];
          // Taken at the edge before the first cycle, and leaves in the last one.
          wait_q[d] <= step_i == '0 ? '0 : 16'(step_i) - 1'b1;
          last_q    <= d == 1;
        end
      end
      misses_q <= misses_q + 32'(enter != '0);
      if (fill_now) begin
        tag_q[fill_set][turn_q[fill_set]] <= fill;
        valid_q[fill_set][turn_q[fill_set]] <= 1'b1;
        turn_q[fill_set] <= 3'(turn_q[fill_set]) + 1'b1 == ways_i ? '0 : turn_q[fill_set] + 1'b1;
      end
    end
  end

  assign m_ar_o = tlb_i ? ax_q[0] : s_ar_i;
  assign m_aw_o = tlb_i ? ax_q[1] : s_aw_i;
  assign m_ar_valid_o = tlb_i ? held_q[0] && wait_q[0] == '0 && hit[0] : s_ar_valid_i;
  assign m_aw_valid_o = tlb_i ? held_q[1] && wait_q[1] == '0 && hit[1] : s_aw_valid_i;
  assign s_ar_ready_o = tlb_i ? take[0] : m_ar_ready_i;
  assign s_aw_ready_o = tlb_i ? take[1] : m_aw_ready_i;

endmodule
