// SPDX-License-Identifier: Apache-2.0
//
// The systems that `viaduct bench fsrf` compares with, around the same apps, movers and DRAM channels: what is between them is the system
// that its inputs select. Only the bench builds this module (sim/rivals), and no card contains it.
//
//   slot ─┬─ memory port ────────────┐
//         └─ streams ── via_mover_* ─┴─> via_rival_port ─> via_rival_sram ─> via_rival_dram ─> via_rival_split ─> via_xbar ─> channels
//                                    └──────────────────────────── direct ──────────────────────────────────────────────────> channel s
//
// What a system does not have passes unchanged, in the same cycle. The crossbar is the card's own: the published one keeps all bursts of a
// manager in one order and adds a cycle or more of its own, so every replica is at least as fast as the original here. The published
// crossbar and port are those of its physical baseline, too (paper, section 6.2). Throughput, latency and order: those of the parts.
// There are no checks and no guards.

module via_rival
  import via_pkg::*;
#(
  parameter int unsigned VpnW = 36,  // bits of the number of a page
  localparam int unsigned NS = NumStreams
) (
  input logic clk_i,
  input logic rst_ni,

  // the system, constant; which has which values, and where they come from, is in bench/fsrf/systems.rs (viaduct-cli)
  input logic direct_i,  // the app is wired to its channel: none of the rest applies
  input logic striped_i,  // 2 MiB regions in chunks of 512 KiB over all channels, rather than a channel for each slot
  input logic split_i,  // bursts become requests of one beat each
  input logic walk_i,  // every translation reads a line of a table in the slot's channel
  input logic tlb_i,  // translations are looked up in SRAM; the rest as in via_rival_sram
  input logic [3:0] step_i,
  input logic [5:0] page_log2_i,
  input logic [3:0] sets_log2_i,
  input logic [2:0] ways_i,
  input logic [15:0] miss_i,
  // a page, and the slots into whose TLBs it is entered in this cycle
  input logic [VpnW-1:0] fill_i,
  input logic [NumSlots-1:0] fill_valid_i,
  // Demand paging: addresses of each direction that want to go on, reads and writes, and whether those of a slot may in this cycle.
  // `sim/rivals/pager.h` is the host.
  output logic [VaW-1:0] want_ar_o[NumSlots],
  output logic [VaW-1:0] want_aw_o[NumSlots],
  output logic [NumSlots-1:0] want_ar_valid_o,
  output logic [NumSlots-1:0] want_aw_valid_o,
  input logic [NumSlots-1:0] open_i,
  output logic [NumSlots-1:0] drained_o,  // nothing that went on is unanswered
  // the memory of a slot belongs to its streams rather than to its memory port, constant
  input logic [NumSlots-1:0] stream_i,

  // moves of stream 0, as OpMoveIn and OpMoveOut
  input  logic [63:0] in_addr_i   [NumSlots],
  input  logic [31:0] in_len_i    [NumSlots],
  input  logic [ 7:0] in_id_i     [NumSlots],
  input  logic        in_eop_i    [NumSlots],
  input  logic        in_valid_i  [NumSlots],
  output logic        in_ready_o  [NumSlots],
  output logic        in_done_o   [NumSlots],  // pulse: a move has ended
  output logic [ 7:0] in_status_o [NumSlots],
  input  logic [63:0] out_addr_i  [NumSlots],
  input  logic [31:0] out_len_i   [NumSlots],
  input  logic        out_valid_i [NumSlots],
  output logic        out_ready_o [NumSlots],
  output logic        out_done_o  [NumSlots],
  output logic [ 7:0] out_status_o[NumSlots],
  output logic [31:0] out_bytes_o [NumSlots],
  output logic [ 7:0] out_id_o    [NumSlots],
  output logic [31:0] misses_o    [NumSlots],  // of the TLB

  // slots, as in via_shell
  input  logic                slot_arvalid_i[NumSlots],
  output logic                slot_arready_o[NumSlots],
  input  logic [     IdW-1:0] slot_arid_i   [NumSlots],
  input  logic [     VaW-1:0] slot_araddr_i [NumSlots],
  input  logic [         7:0] slot_arlen_i  [NumSlots],
  output logic [     IdW-1:0] slot_rid_o    [NumSlots],
  output logic [   DataW-1:0] slot_rdata_o  [NumSlots],
  output logic [         1:0] slot_rresp_o  [NumSlots],
  output logic                slot_rlast_o  [NumSlots],
  output logic                slot_rvalid_o [NumSlots],
  input  logic                slot_rready_i [NumSlots],
  input  logic                slot_awvalid_i[NumSlots],
  output logic                slot_awready_o[NumSlots],
  input  logic [     IdW-1:0] slot_awid_i   [NumSlots],
  input  logic [     VaW-1:0] slot_awaddr_i [NumSlots],
  input  logic [         7:0] slot_awlen_i  [NumSlots],
  input  logic [   DataW-1:0] slot_wdata_i  [NumSlots],
  input  logic [   StrbW-1:0] slot_wstrb_i  [NumSlots],
  input  logic                slot_wlast_i  [NumSlots],
  input  logic                slot_wvalid_i [NumSlots],
  output logic                slot_wready_o [NumSlots],
  output logic [     IdW-1:0] slot_bid_o    [NumSlots],
  output logic [         1:0] slot_bresp_o  [NumSlots],
  output logic                slot_bvalid_o [NumSlots],
  input  logic                slot_bready_i [NumSlots],
  output logic [      NS-1:0] slot_s_valid_o[NumSlots],
  input  logic [      NS-1:0] slot_s_ready_i[NumSlots],
  output logic [NS*DataW-1:0] slot_s_data_o [NumSlots],
  output logic [NS*StrbW-1:0] slot_s_keep_o [NumSlots],
  output logic [      NS-1:0] slot_s_last_o [NumSlots],
  output logic [    NS*8-1:0] slot_s_id_o   [NumSlots],
  input  logic [      NS-1:0] slot_m_valid_i[NumSlots],
  output logic [      NS-1:0] slot_m_ready_o[NumSlots],
  input  logic [NS*DataW-1:0] slot_m_data_i [NumSlots],
  input  logic [NS*StrbW-1:0] slot_m_keep_i [NumSlots],
  input  logic [      NS-1:0] slot_m_last_i [NumSlots],
  input  logic [    NS*8-1:0] slot_m_id_i   [NumSlots],

  // DRAM channels, as in via_shell
  output logic [     63:0] mem_araddr_o [NumChan],
  output logic [      7:0] mem_arlen_o  [NumChan],
  output logic             mem_arvalid_o[NumChan],
  input  logic             mem_arready_i[NumChan],
  input  logic [DataW-1:0] mem_rdata_i  [NumChan],
  input  logic [      1:0] mem_rresp_i  [NumChan],
  input  logic             mem_rlast_i  [NumChan],
  input  logic             mem_rvalid_i [NumChan],
  output logic             mem_rready_o [NumChan],
  output logic [     63:0] mem_awaddr_o [NumChan],
  output logic [      7:0] mem_awlen_o  [NumChan],
  output logic             mem_awvalid_o[NumChan],
  input  logic             mem_awready_i[NumChan],
  output logic [DataW-1:0] mem_wdata_o  [NumChan],
  output logic [StrbW-1:0] mem_wstrb_o  [NumChan],
  output logic             mem_wlast_o  [NumChan],
  output logic             mem_wvalid_o [NumChan],
  input  logic             mem_wready_i [NumChan],
  input  logic [      1:0] mem_bresp_i  [NumChan],
  input  logic             mem_bvalid_i [NumChan],
  output logic             mem_bready_o [NumChan]
);

  localparam bit VpnWOk = param_in("via_rival VpnW", VpnW, 16, 48);

  localparam int unsigned BaseLog2 = 33;  // where the data of a slot begins in its address space
  localparam int unsigned ChanW = $clog2(NumChan);
  localparam int unsigned ChunkLog2 = HugeLog2 - ChanW;
  localparam int unsigned NumMgr = 2 * NumSlots;  // slots, and their tables
  localparam int unsigned NumSub = NumChan + 1;  // the last one, host memory, is not used
  localparam int unsigned Outstanding = 512;  // of the crossbar, which never limits: a port has 64 bursts, of 64 beats if they are split

  axi_ax_t mgr_ar[NumMgr], mgr_aw[NumMgr], sub_ar[NumSub], sub_aw[NumSub];
  axi_r_t mgr_r[NumMgr], sub_r[NumSub];
  axi_w_t mgr_w[NumMgr], sub_w[NumSub];
  axi_b_t mgr_b[NumMgr], sub_b[NumSub];
  logic [NumMgr-1:0] mgr_ar_valid, mgr_ar_ready, mgr_r_valid, mgr_r_ready;
  logic [NumMgr-1:0] mgr_aw_valid, mgr_aw_ready, mgr_w_valid, mgr_w_ready, mgr_b_valid, mgr_b_ready;
  logic [NumSub-1:0] sub_ar_valid, sub_ar_ready, sub_r_valid, sub_r_ready;
  logic [NumSub-1:0] sub_aw_valid, sub_aw_ready, sub_w_valid, sub_w_ready, sub_b_valid, sub_b_ready;

  // The memory side of each slot before the choice between direct and the rest.
  axi_ax_t src_ar[NumSlots], src_aw[NumSlots];
  axi_r_t src_r[NumSlots];
  axi_w_t src_w[NumSlots];
  axi_b_t src_b[NumSlots];
  logic [NumSlots-1:0] src_ar_valid, src_ar_ready, src_r_valid, src_r_ready;
  logic [NumSlots-1:0] src_aw_valid, src_aw_ready, src_w_valid, src_w_ready, src_b_valid, src_b_ready;

  /// Where the data of a slot is. Striped regions of different slots begin at different channels, so that apps that run in step do not meet
  /// at one: the published placement does not do that.
  function automatic logic [AddrW-1:0] place(input int unsigned slot, input logic [AddrW-1:0] va);
    logic [AddrW-1:0] offset, chunk;
    offset = va & ((64'd1 << BaseLog2) - 64'd1);
    chunk  = (offset >> ChunkLog2) + AddrW'(slot);
    if (!striped_i) begin
      return (AddrW'(slot % NumChan) << ChanLog2) + (AddrW'(slot / NumChan) << 32) + (walk_i ? 64'd1 << 27 : '0) + offset;
    end
    return ((chunk & AddrW'(NumChan - 1)) << ChanLog2) + (AddrW'(slot) << 29) + ((offset >> HugeLog2) << ChunkLog2) +
        (offset & ((64'd1 << ChunkLog2) - 64'd1));
  endfunction

  function automatic axi_ax_t placed(input int unsigned slot, input axi_ax_t ax);
    placed = ax;
    placed.addr = place(slot, ax.addr);
    return placed;
  endfunction

  function automatic axi_ax_t burst(input logic [IdW-1:0] id, input logic [VaW-1:0] addr, input logic [7:0] len);
    return '{id: id, burst: BurstIncr, size: 3'(BeatLog2), len: len, addr: AddrW'(addr)};
  endfunction

  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    // ------------------------------------------------------------ streams
    cmd_t cmd_in, cmd_out;
    cpl_t cpl_in, cpl_out;
    strm_t to_app, from_app;
    axi_ax_t mv_ar, mv_aw;
    axi_w_t mv_w;
    logic mv_ar_valid, mv_r_ready, mv_aw_valid, mv_w_valid, mv_b_ready;
    assign cmd_in = '{
            op: OpMoveIn,
            flags: 8'(in_eop_i[s]) << FlagEop,
            port: '0,
            id: in_id_i[s],
            tag: '0,
            addr0: in_addr_i[s],
            addr1: '0,
            len: in_len_i[s],
            rsvd: '0
        };
    assign cmd_out = '{
            op: OpMoveOut,
            flags: '0,
            port: '0,
            id: '0,
            tag: '0,
            addr0: out_addr_i[s],
            addr1: '0,
            len: out_len_i[s],
            rsvd: '0
        };
    via_mover_in u_in (
      .clk_i,
      .rst_ni,
      .cmd_i       (cmd_in),
      .cmd_valid_i (in_valid_i[s]),
      .cmd_ready_o (in_ready_o[s]),
      .cpl_o       (cpl_in),
      .cpl_valid_o (in_done_o[s]),
      .cpl_ready_i (1'b1),
      .m_ar_o      (mv_ar),
      .m_ar_valid_o(mv_ar_valid),
      .m_ar_ready_i(src_ar_ready[s] && stream_i[s]),
      .m_r_i       (src_r[s]),
      .m_r_valid_i (src_r_valid[s] && stream_i[s]),
      .m_r_ready_o (mv_r_ready),
      .strm_o      (to_app),
      .strm_valid_o(slot_s_valid_o[s][0]),
      .strm_ready_i(slot_s_ready_i[s][0]),
      .abort_i     (1'b0),
      .still_o     (),
      .idle_o      ()
    );
    via_mover_out u_out (
      .clk_i,
      .rst_ni,
      .cmd_i       (cmd_out),
      .cmd_valid_i (out_valid_i[s]),
      .cmd_ready_o (out_ready_o[s]),
      .cpl_o       (cpl_out),
      .cpl_valid_o (out_done_o[s]),
      .cpl_ready_i (1'b1),
      .m_aw_o      (mv_aw),
      .m_aw_valid_o(mv_aw_valid),
      .m_aw_ready_i(src_aw_ready[s] && stream_i[s]),
      .m_w_o       (mv_w),
      .m_w_valid_o (mv_w_valid),
      .m_w_ready_i (src_w_ready[s] && stream_i[s]),
      .m_b_i       (src_b[s]),
      .m_b_valid_i (src_b_valid[s] && stream_i[s]),
      .m_b_ready_o (mv_b_ready),
      .strm_i      (from_app),
      .strm_valid_i(slot_m_valid_i[s][0]),
      .strm_ready_o(slot_m_ready_o[s][0]),
      .abort_i     (1'b0),
      .still_o     (),
      .idle_o      ()
    );
    assign in_status_o[s] = cpl_in.status;
    assign out_status_o[s] = cpl_out.status;
    assign out_bytes_o[s] = cpl_out.bytes;
    assign out_id_o[s] = cpl_out.info[7:0];
    // Only the first stream has movers.
    for (genvar k = 1; k < NS; k++) begin : gen_unused
      assign slot_s_valid_o[s][k] = 1'b0;
      assign slot_m_ready_o[s][k] = 1'b0;
    end
    assign slot_s_data_o[s] = (NS * DataW)'(to_app.data);
    assign slot_s_keep_o[s] = (NS * StrbW)'(to_app.keep);
    assign slot_s_last_o[s] = NS'(to_app.last);
    assign slot_s_id_o[s] = (NS * 8)'(to_app.id);
    assign from_app = '{
            id: slot_m_id_i[s][7:0],
            last: slot_m_last_i[s][0],
            keep: slot_m_keep_i[s][StrbW-1:0],
            data: slot_m_data_i[s][DataW-1:0]
        };

    // ------------------------------------------------------------ streams or memory port
    assign src_ar[s] = stream_i[s] ? mv_ar : burst(slot_arid_i[s], slot_araddr_i[s], slot_arlen_i[s]);
    assign src_aw[s] = stream_i[s] ? mv_aw : burst(slot_awid_i[s], slot_awaddr_i[s], slot_awlen_i[s]);
    assign src_w[s] = stream_i[s] ? mv_w : '{last: slot_wlast_i[s], strb: slot_wstrb_i[s], data: slot_wdata_i[s]};
    assign src_ar_valid[s] = stream_i[s] ? mv_ar_valid : slot_arvalid_i[s];
    assign src_r_ready[s] = stream_i[s] ? mv_r_ready : slot_rready_i[s];
    assign src_aw_valid[s] = stream_i[s] ? mv_aw_valid : slot_awvalid_i[s];
    assign src_w_valid[s] = stream_i[s] ? mv_w_valid : slot_wvalid_i[s];
    assign src_b_ready[s] = stream_i[s] ? mv_b_ready : slot_bready_i[s];
    assign slot_arready_o[s] = src_ar_ready[s] && !stream_i[s];
    assign slot_rvalid_o[s] = src_r_valid[s] && !stream_i[s];
    assign slot_rid_o[s] = src_r[s].id;
    assign slot_rdata_o[s] = src_r[s].data;
    assign slot_rresp_o[s] = src_r[s].resp;
    assign slot_rlast_o[s] = src_r[s].last;
    assign slot_awready_o[s] = src_aw_ready[s] && !stream_i[s];
    assign slot_wready_o[s] = src_w_ready[s] && !stream_i[s];
    assign slot_bvalid_o[s] = src_b_valid[s] && !stream_i[s];
    assign slot_bid_o[s] = src_b[s].id;
    assign slot_bresp_o[s] = src_b[s].resp;

    // ------------------------------------------------------------ the system
    // The ids of the app come back in order, by themselves where it is wired to its channel.
    axi_ax_t v_ar, v_aw, t_ar, t_aw, p_ar, p_aw, walk_ar;
    axi_r_t p_r, x_r;
    axi_w_t p_w;
    axi_b_t p_b, x_b;
    logic v_ar_valid, v_ar_ready, v_aw_valid, v_aw_ready, t_ar_valid, t_ar_ready, t_aw_valid, t_aw_ready;
    logic p_ar_valid, p_ar_ready, p_aw_valid, p_aw_ready, p_aw_sent, p_r_valid, p_r_ready, p_w_valid, p_w_ready, p_b_valid, p_b_ready;
    logic x_ar_ready, x_r_valid, x_aw_ready, x_w_ready, x_b_valid;

    via_rival_port u_port (
      .clk_i,
      .rst_ni,
      .s_ar_i      (src_ar[s]),
      .s_ar_valid_i(src_ar_valid[s] && !direct_i),
      .s_ar_ready_o(x_ar_ready),
      .s_r_o       (x_r),
      .s_r_valid_o (x_r_valid),
      .s_r_ready_i (src_r_ready[s]),
      .s_aw_i      (src_aw[s]),
      .s_aw_valid_i(src_aw_valid[s] && !direct_i),
      .s_aw_ready_o(x_aw_ready),
      .s_w_i       (src_w[s]),
      .s_w_valid_i (src_w_valid[s] && !direct_i),
      .s_w_ready_o (x_w_ready),
      .s_b_o       (x_b),
      .s_b_valid_o (x_b_valid),
      .s_b_ready_i (src_b_ready[s]),
      .m_ar_o      (v_ar),
      .m_ar_valid_o(v_ar_valid),
      .m_ar_ready_i(v_ar_ready && open_i[s]),
      .m_r_i       (p_r),
      .m_r_valid_i (p_r_valid),
      .m_r_ready_o (p_r_ready),
      .m_aw_o      (v_aw),
      .m_aw_valid_o(v_aw_valid),
      .m_aw_ready_i(v_aw_ready && open_i[s]),
      .aw_sent_i   (p_aw_sent),
      .m_w_o       (p_w),
      .m_w_valid_o (p_w_valid),
      .m_w_ready_i (p_w_ready),
      .m_b_i       (p_b),
      .m_b_valid_i (p_b_valid),
      .m_b_ready_o (p_b_ready),
      .drained_o   (drained_o[s])
    );
    assign want_ar_o[s] = VaW'(v_ar.addr);
    assign want_aw_o[s] = VaW'(v_aw.addr);
    assign want_ar_valid_o[s] = v_ar_valid;
    assign want_aw_valid_o[s] = v_aw_valid;
    via_rival_sram #(
      .VpnW(VpnW)
    ) u_sram (
      .clk_i,
      .rst_ni,
      .tlb_i,
      .step_i,
      .page_log2_i,
      .sets_log2_i,
      .ways_i,
      .miss_i,
      .fill_i,
      .fill_valid_i(fill_valid_i[s]),
      .s_ar_i      (v_ar),
      .s_ar_valid_i(v_ar_valid && open_i[s]),
      .s_ar_ready_o(v_ar_ready),
      .s_aw_i      (v_aw),
      .s_aw_valid_i(v_aw_valid && open_i[s]),
      .s_aw_ready_o(v_aw_ready),
      .m_ar_o      (t_ar),
      .m_ar_valid_o(t_ar_valid),
      .m_ar_ready_i(t_ar_ready),
      .m_aw_o      (t_aw),
      .m_aw_valid_o(t_aw_valid),
      .m_aw_ready_i(t_aw_ready),
      .misses_o    (misses_o[s])
    );
    via_rival_dram u_dram (
      .clk_i,
      .rst_ni,
      .walk_i,
      .s_ar_i         (t_ar),
      .s_ar_valid_i   (t_ar_valid),
      .s_ar_ready_o   (t_ar_ready),
      .s_aw_i         (t_aw),
      .s_aw_valid_i   (t_aw_valid),
      .s_aw_ready_o   (t_aw_ready),
      .m_ar_o         (p_ar),
      .m_ar_valid_o   (p_ar_valid),
      .m_ar_ready_i   (p_ar_ready),
      .m_aw_o         (p_aw),
      .m_aw_valid_o   (p_aw_valid),
      .m_aw_ready_i   (p_aw_ready),
      .walk_ar_o      (walk_ar),
      .walk_ar_valid_o(mgr_ar_valid[NumSlots+s]),
      .walk_ar_ready_i(mgr_ar_ready[NumSlots+s]),
      .walk_r_valid_i (mgr_r_valid[NumSlots+s]),
      .walk_r_ready_o (mgr_r_ready[NumSlots+s])
    );
    via_rival_split u_split (
      .clk_i,
      .rst_ni,
      .split_i,
      .s_ar_i      (placed(s, p_ar)),
      .s_ar_valid_i(p_ar_valid),
      .s_ar_ready_o(p_ar_ready),
      .s_r_o       (p_r),
      .s_r_valid_o (p_r_valid),
      .s_r_ready_i (p_r_ready),
      .s_aw_i      (placed(s, p_aw)),
      .s_aw_valid_i(p_aw_valid),
      .s_aw_ready_o(p_aw_ready),
      .s_aw_sent_o (p_aw_sent),
      .s_w_i       (p_w),
      .s_w_valid_i (p_w_valid),
      .s_w_ready_o (p_w_ready),
      .s_b_o       (p_b),
      .s_b_valid_o (p_b_valid),
      .s_b_ready_i (p_b_ready),
      .m_ar_o      (mgr_ar[s]),
      .m_ar_valid_o(mgr_ar_valid[s]),
      .m_ar_ready_i(mgr_ar_ready[s]),
      .m_r_i       (mgr_r[s]),
      .m_r_valid_i (mgr_r_valid[s]),
      .m_r_ready_o (mgr_r_ready[s]),
      .m_aw_o      (mgr_aw[s]),
      .m_aw_valid_o(mgr_aw_valid[s]),
      .m_aw_ready_i(mgr_aw_ready[s]),
      .m_w_o       (mgr_w[s]),
      .m_w_valid_o (mgr_w_valid[s]),
      .m_w_ready_i (mgr_w_ready[s]),
      .m_b_i       (mgr_b[s]),
      .m_b_valid_i (mgr_b_valid[s]),
      .m_b_ready_o (mgr_b_ready[s])
    );
    always_comb begin
      mgr_ar[NumSlots+s] = walk_ar;
      mgr_ar[NumSlots+s].addr = walk_ar.addr + (AddrW'(s % NumChan) << ChanLog2);
    end
    assign mgr_aw[NumSlots+s] = '0;
    assign mgr_w[NumSlots+s] = '0;
    assign mgr_aw_valid[NumSlots+s] = 1'b0;
    assign mgr_w_valid[NumSlots+s] = 1'b0;
    assign mgr_b_ready[NumSlots+s] = 1'b1;

    // ------------------------------------------------------------ or none: slot s at channel s
    if (s < NumChan) begin : gen_direct
      // A channel answers in order: ids of reads and of writes wait here.
      logic [IdW-1:0] rid, bid;
      via_fifo #(
        .T    (logic [IdW-1:0]),
        .Depth(256)
      ) u_rid (
        .clk_i,
        .rst_ni,
        .flush_i  (1'b0),
        .s_i      (src_ar[s].id),
        .s_valid_i(direct_i && src_ar_valid[s] && src_ar_ready[s]),
        .s_ready_o(),
        .m_o      (rid),
        .m_valid_o(),
        .m_ready_i(direct_i && src_r_valid[s] && src_r_ready[s] && src_r[s].last),
        .count_o  ()
      );
      via_fifo #(
        .T    (logic [IdW-1:0]),
        .Depth(256)
      ) u_bid (
        .clk_i,
        .rst_ni,
        .flush_i  (1'b0),
        .s_i      (src_aw[s].id),
        .s_valid_i(direct_i && src_aw_valid[s] && src_aw_ready[s]),
        .s_ready_o(),
        .m_o      (bid),
        .m_valid_o(),
        .m_ready_i(direct_i && src_b_valid[s] && src_b_ready[s]),
        .count_o  ()
      );
      assign src_ar_ready[s] = direct_i ? mem_arready_i[s] : x_ar_ready;
      assign src_r_valid[s] = direct_i ? mem_rvalid_i[s] : x_r_valid;
      assign src_r[s] = direct_i ? '{id: rid, resp: axi_resp_e'(mem_rresp_i[s]), last: mem_rlast_i[s], data: mem_rdata_i[s]} : x_r;
      assign src_aw_ready[s] = direct_i ? mem_awready_i[s] : x_aw_ready;
      assign src_w_ready[s] = direct_i ? mem_wready_i[s] : x_w_ready;
      assign src_b_valid[s] = direct_i ? mem_bvalid_i[s] : x_b_valid;
      assign src_b[s] = direct_i ? '{id: bid, resp: axi_resp_e'(mem_bresp_i[s])} : x_b;
    end else begin : gen_alone
      assign src_ar_ready[s] = !direct_i && x_ar_ready;
      assign src_r_valid[s] = !direct_i && x_r_valid;
      assign src_r[s] = x_r;
      assign src_aw_ready[s] = !direct_i && x_aw_ready;
      assign src_w_ready[s] = !direct_i && x_w_ready;
      assign src_b_valid[s] = !direct_i && x_b_valid;
      assign src_b[s] = x_b;
    end
  end

  // All have the same share.
  logic [WeightW-1:0] weight[NumMgr];
  always_comb for (int unsigned m = 0; m < NumMgr; m++) weight[m] = WeightW'(1);
  via_xbar #(
    .NumMgr     (NumMgr),
    .NumSub     (NumSub),
    .ToHost     ('0),
    .Outstanding(Outstanding)
  ) u_xbar (
    .clk_i,
    .rst_ni,
    .weight_i    (weight),
    .first_i     ('0),
    .share_i     ('{plain: 1'b0, chan_log2: 4'd4, host_log2: 4'($clog2(MaxBurstBeats))}),
    .window_i    ('1),
    .first_o     (),
    .s_ar_i      (mgr_ar),
    .s_ar_valid_i(mgr_ar_valid),
    .s_ar_ready_o(mgr_ar_ready),
    .s_r_o       (mgr_r),
    .s_r_valid_o (mgr_r_valid),
    .s_r_ready_i (mgr_r_ready),
    .s_aw_i      (mgr_aw),
    .s_aw_valid_i(mgr_aw_valid),
    .s_aw_ready_o(mgr_aw_ready),
    .s_w_i       (mgr_w),
    .s_w_valid_i (mgr_w_valid),
    .s_w_ready_o (mgr_w_ready),
    .s_b_o       (mgr_b),
    .s_b_valid_o (mgr_b_valid),
    .s_b_ready_i (mgr_b_ready),
    .m_ar_o      (sub_ar),
    .m_ar_valid_o(sub_ar_valid),
    .m_ar_ready_i(sub_ar_ready),
    .m_r_i       (sub_r),
    .m_r_valid_i (sub_r_valid),
    .m_r_ready_o (sub_r_ready),
    .m_aw_o      (sub_aw),
    .m_aw_valid_o(sub_aw_valid),
    .m_aw_ready_i(sub_aw_ready),
    .m_w_o       (sub_w),
    .m_w_valid_o (sub_w_valid),
    .m_w_ready_i (sub_w_ready),
    .m_b_i       (sub_b),
    .m_b_valid_i (sub_b_valid),
    .m_b_ready_o (sub_b_ready),
    .still_o     (),
    .idle_o      ()
  );

  assign sub_ar_ready[NumChan] = 1'b0;
  assign sub_r_valid[NumChan] = 1'b0;
  assign sub_r[NumChan] = '0;
  assign sub_aw_ready[NumChan] = 1'b0;
  assign sub_w_ready[NumChan] = 1'b0;
  assign sub_b_valid[NumChan] = 1'b0;
  assign sub_b[NumChan] = '0;
  for (genvar c = 0; c < NumChan; c++) begin : gen_chan
    axi_ax_t ar, aw;
    axi_w_t w;
    logic ar_valid, aw_valid, w_valid, r_ready, b_ready;
    if (c < NumSlots) begin : gen_direct
      assign ar = direct_i ? placed(c, src_ar[c]) : sub_ar[c];
      assign aw = direct_i ? placed(c, src_aw[c]) : sub_aw[c];
      assign w = direct_i ? src_w[c] : sub_w[c];
      assign ar_valid = direct_i ? src_ar_valid[c] : sub_ar_valid[c];
      assign aw_valid = direct_i ? src_aw_valid[c] : sub_aw_valid[c];
      assign w_valid = direct_i ? src_w_valid[c] : sub_w_valid[c];
      assign r_ready = direct_i ? src_r_ready[c] : sub_r_ready[c];
      assign b_ready = direct_i ? src_b_ready[c] : sub_b_ready[c];
    end else begin : gen_alone
      assign ar = sub_ar[c];
      assign aw = sub_aw[c];
      assign w = sub_w[c];
      assign ar_valid = sub_ar_valid[c];
      assign aw_valid = sub_aw_valid[c];
      assign w_valid = sub_w_valid[c];
      assign r_ready = sub_r_ready[c];
      assign b_ready = sub_b_ready[c];
    end
    assign mem_araddr_o[c] = ar.addr & ((64'd1 << ChanLog2) - 64'd1);
    assign mem_arlen_o[c] = ar.len;
    assign mem_arvalid_o[c] = ar_valid;
    assign mem_rready_o[c] = r_ready;
    assign mem_awaddr_o[c] = aw.addr & ((64'd1 << ChanLog2) - 64'd1);
    assign mem_awlen_o[c] = aw.len;
    assign mem_awvalid_o[c] = aw_valid;
    assign mem_wdata_o[c] = w.data;
    assign mem_wstrb_o[c] = w.strb;
    assign mem_wlast_o[c] = w.last;
    assign mem_wvalid_o[c] = w_valid;
    assign mem_bready_o[c] = b_ready;
    assign sub_ar_ready[c] = mem_arready_i[c] && !direct_i;
    assign sub_r_valid[c] = mem_rvalid_i[c] && !direct_i;
    assign sub_r[c] = '{id: '0, resp: axi_resp_e'(mem_rresp_i[c]), last: mem_rlast_i[c], data: mem_rdata_i[c]};
    assign sub_aw_ready[c] = mem_awready_i[c] && !direct_i;
    assign sub_w_ready[c] = mem_wready_i[c] && !direct_i;
    assign sub_b_valid[c] = mem_bvalid_i[c] && !direct_i;
    assign sub_b[c] = '{id: '0, resp: axi_resp_e'(mem_bresp_i[c])};
  end

endmodule
