// SPDX-License-Identifier: Apache-2.0
//
// The shell's side of one slot: everything the app can reach, and the checks and limits on it.
//
//                    commands ──> via_dispatch ──> DMA (shared), MMU, movers
//   streams to app  <── via_mover_in  <── R ──┐
//   streams of app ──> via_guard_strm ──> via_mover_out ──┤ via_axi_mux ──> via_mmu ──> via_slot_meter ──> crossbar
//   memory port    <──> via_guard ────────────────────────┤
//   disk of a function (docs/interfaces.md, section 8) ───┘
//
// A stream may belong to via_vio_switch instead of its mover, each direction for itself (vio_in_on_i, vio_out_on_i). Moves on it, running ones
// included, end with StAborted meanwhile. When the input changes hands in the middle of a message, the message is ended with `last`; when
// the output does, its rest is dropped.
//
// Throughput: one beat a cycle in each direction of the memory side, shared by movers and memory port burst by burst. Latency and order:
// those of the parts above.
// Misuse: rules that the app breaks isolate the slot (via_slot_events). An isolated slot (docs/interfaces.md, slot_ctrl_t) sees no
// handshake; its moves end with StAborted, waiting translations complete with an error, and what is in flight drains. DMA and translation
// commands continue, so that the host can write pages back; they end with StAborted only while the slot is held in reset. The store of a
// disk may lie in the address space of a slot without an app: there nothing is cut off, and the disk's accesses work.

module via_slot_port
  import via_pkg::*;
#(
  parameter int unsigned PageWays = MmuPageWays,  // geometry of each TLB: 4 KiB pages (Page), 2 MiB pages (Huge)
  parameter int unsigned PageSets = MmuPageSets,
  parameter int unsigned HugeWays = MmuHugeWays,
  parameter int unsigned HugeSets = MmuHugeSets,
  localparam int unsigned NS = NumStreams,
  localparam int unsigned NV = VioStreams
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic       [31:0] chan_mib_i,  // size of each DRAM channel in MiB, constant
  input table_cfg_t        table_i,     // page table of the slot
  input sched_cfg_t        sched_i,     // its share of memory, besides its weight
  input logic       [31:0] time_i,      // card time, the lower half

  // control
  input  slot_ctrl_t            ctrl_i,                 // control register
  input  logic                  loaded_i,               // level: an app is in the slot
  input  logic                  load_i,                 // level: an image is being loaded
  output slot_stat_t            stat_o,                 // status register
  output logic         [  31:0] count_o          [ 8],  // counters, in the order of their registers
  output meter_count_t          meter_o,                // what it has requested of memory
  output logic                  first_o,                // level: it goes before others there
  // commands and events
  input  cmd_t                  cmd_i,                  // next command of the slot
  input  logic                  cmd_valid_i,
  output logic                  cmd_ready_o,
  output cpl_t                  cpl_o,                  // completion
  output logic                  cpl_valid_o,
  input  logic                  cpl_ready_i,
  output cmd_t                  dma_cmd_o,              // command for the DMA engine
  output logic                  dma_cmd_valid_o,
  input  logic                  dma_cmd_ready_i,
  input  cpl_t                  dma_cpl_i,              // its completion
  input  logic                  dma_cpl_valid_i,
  output logic                  dma_cpl_ready_o,
  output logic                  dma_abort_o,            // level: end the slot's DMA commands with StAborted
  output evt_t                  evt_o,                  // next event
  output logic                  evt_valid_o,
  input  logic                  evt_ready_i,
  input  logic                  ring_err_cmd_i,         // pulse: the command ring stopped
  input  logic                  ring_err_info_i,        // with it: 0 tail, 1 read
  input  logic                  ring_err_cpl_i,         // pulse: the completion ring stopped
  // app registers
  input  reg_req_t              reg_i,                  // register access, with reg_valid_i
  input  logic                  reg_valid_i,            // held until the response or the time-out
  output logic                  reg_open_o,             // level: an app is there to respond
  output logic                  reg_rvalid_o,           // pulse: the app responds
  output logic         [  31:0] reg_rdata_o,            // read data, with reg_rvalid_o
  output logic                  reg_err_o,              // the app refuses, with reg_rvalid_o
  input  logic                  reg_timeout_i,          // pulse: the app has not responded in time
  // crossbar
  output axi_ax_t               m_ar_o,
  output logic                  m_ar_valid_o,
  input  logic                  m_ar_ready_i,
  input  axi_r_t                m_r_i,
  input  logic                  m_r_valid_i,
  output logic                  m_r_ready_o,
  output axi_ax_t               m_aw_o,
  output logic                  m_aw_valid_o,
  input  logic                  m_aw_ready_i,
  output axi_w_t                m_w_o,
  output logic                  m_w_valid_o,
  input  logic                  m_w_ready_i,
  input  axi_b_t                m_b_i,
  input  logic                  m_b_valid_i,
  output logic                  m_b_ready_o,
  // crossbar, shared by the slots: the page table
  output axi_ax_t               walk_ar_o,
  output logic                  walk_ar_valid_o,
  input  logic                  walk_ar_ready_i,
  input  axi_r_t                walk_r_i,
  input  logic                  walk_r_valid_i,
  output logic                  walk_r_ready_o,
  output axi_ax_t               walk_aw_o,
  output logic                  walk_aw_valid_o,
  input  logic                  walk_aw_ready_i,
  output axi_w_t                walk_w_o,
  output logic                  walk_w_valid_o,
  input  logic                  walk_w_ready_i,
  input  axi_b_t                walk_b_i,
  input  logic                  walk_b_valid_i,
  output logic                  walk_b_ready_o,
  // streams of via_vio_switch
  output logic                  vio_cut_o,              // level: the slot is isolated
  input  logic         [NV-1:0] vio_in_on_i,            // level: the app's input belongs to the switch
  input  logic         [NV-1:0] vio_out_on_i,           // level: its output does
  input  strm_t                 vio_in_i         [NV],  // to the app
  input  logic         [NV-1:0] vio_in_valid_i,
  output logic         [NV-1:0] vio_in_ready_o,
  output strm_t                 vio_out_o        [NV],  // from the app
  output logic         [NV-1:0] vio_out_valid_o,
  input  logic         [NV-1:0] vio_out_ready_i,
  // memory port of a disk
  input  axi_ax_t               disk_ar_i,
  input  logic                  disk_ar_valid_i,
  output logic                  disk_ar_ready_o,
  output axi_r_t                disk_r_o,
  output logic                  disk_r_valid_o,
  input  logic                  disk_r_ready_i,
  input  axi_ax_t               disk_aw_i,
  input  logic                  disk_aw_valid_i,
  output logic                  disk_aw_ready_o,
  input  axi_w_t                disk_w_i,
  input  logic                  disk_w_valid_i,
  output logic                  disk_w_ready_o,
  input  logic                  disk_flush_i,           // pulse: a flush waits for the host
  output axi_b_t                disk_b_o,
  output logic                  disk_b_valid_o,
  input  logic                  disk_b_ready_i,
  // slot, as in docs/interfaces.md, section 3
  output logic                  slot_rst_no,            // reset of the app
  output strm_t                 slot_s_o         [NS],
  output logic         [NS-1:0] slot_s_valid_o,
  input  logic         [NS-1:0] slot_s_ready_i,
  input  strm_t                 slot_m_i         [NS],
  input  logic         [NS-1:0] slot_m_valid_i,
  output logic         [NS-1:0] slot_m_ready_o,
  input  axi_ax_t               slot_ar_i,
  input  logic                  slot_ar_valid_i,
  output logic                  slot_ar_ready_o,
  output axi_r_t                slot_r_o,
  output logic                  slot_r_valid_o,
  input  logic                  slot_r_ready_i,
  input  axi_ax_t               slot_aw_i,
  input  logic                  slot_aw_valid_i,
  output logic                  slot_aw_ready_o,
  input  axi_w_t                slot_w_i,
  input  logic                  slot_w_valid_i,
  output logic                  slot_w_ready_o,
  output axi_b_t                slot_b_o,
  output logic                  slot_b_valid_o,
  input  logic                  slot_b_ready_i,
  output reg_req_t              slot_reg_o,             // register access, with slot_reg_valid_o
  output logic                  slot_reg_valid_o,       // held until the response
  input  logic                  slot_reg_rvalid_i,      // pulse: the app responds
  input  logic         [  31:0] slot_reg_rdata_i,       // read data
  input  logic                  slot_reg_err_i,         // the app refuses the access
  input  logic                  slot_irq_i,             // pulse: interrupt of the app
  output logic                  irq_o,                  // pulse: interrupt of the app, unless isolated
  input  logic                  slot_busy_i,            // level: the app reports that it computes
  output logic                  still_o,                // nothing moves unless an input changes
  output logic                  idle_o                  // level: nothing of the slot is in flight
);

  localparam bit PageWaysOk = param_in("via_slot_port PageWays", PageWays, 1, 64);
  localparam bit PageSetsOk = param_pow2("via_slot_port PageSets", PageSets, 2, 65536);
  localparam bit HugeWaysOk = param_in("via_slot_port HugeWays", HugeWays, 1, 64);
  localparam bit HugeSetsOk = param_pow2("via_slot_port HugeSets", HugeSets, 2, 65536);

  // ---------------------------------------------------------------- control
  logic cut, isolated, isolated_q, stop_q, hold_q, busy_q, irq_q, quiesce_q, reset_q, loaded_q;
  event_e cause;

  assign cut = ctrl_i.isolate || ctrl_i.reset || !ctrl_i.run || load_i || !loaded_i;

  // The app is reset one cycle after it is cut off, so that its signals are never used while it is being reset. Signals that gate
  // handshakes with other blocks come from registers, too.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stop_q     <= 1'b1;
      isolated_q <= 1'b1;
      hold_q     <= 1'b1;
      busy_q     <= 1'b0;
      irq_q      <= 1'b0;
      quiesce_q  <= 1'b0;
      reset_q    <= 1'b0;
      loaded_q   <= 1'b0;
    end else begin
      isolated_q <= isolated;
      stop_q     <= ctrl_i.reset || !ctrl_i.run || load_i || !loaded_i;
      hold_q     <= stop_q;
      busy_q     <= slot_busy_i && !isolated;
      irq_q      <= slot_irq_i && !isolated;
      quiesce_q  <= ctrl_i.quiesce;
      reset_q    <= ctrl_i.reset;
      loaded_q   <= loaded_i;
    end
  end
  assign slot_rst_no = !hold_q;
  assign irq_o = irq_q;
  assign vio_cut_o = isolated;
  assign dma_abort_o = reset_q;

  // ---------------------------------------------------------------- streams to the app
  // Managers behind the mux: 0 the app's memory port, 1 + k the mover of stream k, the last one the disk.
  localparam int unsigned Disk = 1 + NS;
  axi_ax_t ar[2+NS], aw[2+NS];
  axi_r_t r[2+NS];
  axi_w_t w[2+NS];
  axi_b_t b[2+NS];
  logic [NS+1:0] ar_valid, ar_ready, r_valid, r_ready, aw_valid, aw_ready, w_valid, w_ready, b_valid, b_ready;

  cmd_t move_cmd;
  logic [NS-1:0] mvi_cmd_valid, mvi_cmd_ready, mvi_cpl_valid, mvi_cpl_ready, mvi_idle, mvi_still;
  logic [NS-1:0] mvo_cmd_valid, mvo_cmd_ready, mvo_cpl_valid, mvo_cpl_ready, mvo_idle, mvo_still;
  cpl_t mvi_cpl[NS], mvo_cpl[NS];
  logic [NS-1:0] strm_violation, strm_quiet, strm_still, beat_in, beat_out;
  logic [NV-1:0] vio_still, join_idle;
  event_e strm_cause[NS];

  for (genvar k = 0; k < NS; k++) begin : gen_stream
    strm_t strm, moved;
    logic strm_valid, strm_ready, guard_ready, moved_valid, moved_ready, out_valid, out_ready, abort_in, abort_out;

    via_mover_in u_in (
      .clk_i,
      .rst_ni,
      .cmd_i       (move_cmd),
      .cmd_valid_i (mvi_cmd_valid[k]),
      .cmd_ready_o (mvi_cmd_ready[k]),
      .cpl_o       (mvi_cpl[k]),
      .cpl_valid_o (mvi_cpl_valid[k]),
      .cpl_ready_i (mvi_cpl_ready[k]),
      .m_ar_o      (ar[1+k]),
      .m_ar_valid_o(ar_valid[1+k]),
      .m_ar_ready_i(ar_ready[1+k]),
      .m_r_i       (r[1+k]),
      .m_r_valid_i (r_valid[1+k]),
      .m_r_ready_o (r_ready[1+k]),
      .strm_o      (moved),
      .strm_valid_o(moved_valid),
      .strm_ready_i(moved_ready),
      .abort_i     (abort_in),
      .still_o     (mvi_still[k]),
      .idle_o      (mvi_idle[k])
    );
    assign beat_in[k] = slot_s_valid_o[k] && slot_s_ready_i[k] && !isolated;

    via_guard_strm u_guard (
      .clk_i,
      .rst_ni,
      .isolate_i  (isolated),
      .s_i        (slot_m_i[k]),
      .s_valid_i  (slot_m_valid_i[k]),
      .s_ready_o  (guard_ready),
      .m_o        (strm),
      .m_valid_o  (strm_valid),
      .m_ready_i  (strm_ready && !quiesce_q),
      .violation_o(strm_violation[k]),
      .cause_o    (strm_cause[k]),
      .still_o    (strm_still[k]),
      .quiet_o    (strm_quiet[k])
    );
    assign slot_m_ready_o[k] = guard_ready;
    assign beat_out[k] = strm_valid && strm_ready && !quiesce_q && !isolated;

    via_mover_out u_out (
      .clk_i,
      .rst_ni,
      .cmd_i       (move_cmd),
      .cmd_valid_i (mvo_cmd_valid[k]),
      .cmd_ready_o (mvo_cmd_ready[k]),
      .cpl_o       (mvo_cpl[k]),
      .cpl_valid_o (mvo_cpl_valid[k]),
      .cpl_ready_i (mvo_cpl_ready[k]),
      .m_aw_o      (aw[1+k]),
      .m_aw_valid_o(aw_valid[1+k]),
      .m_aw_ready_i(aw_ready[1+k]),
      .m_w_o       (w[1+k]),
      .m_w_valid_o (w_valid[1+k]),
      .m_w_ready_i (w_ready[1+k]),
      .m_b_i       (b[1+k]),
      .m_b_valid_i (b_valid[1+k]),
      .m_b_ready_o (b_ready[1+k]),
      .strm_i      (strm),
      .strm_valid_i(out_valid),
      .strm_ready_o(out_ready),
      .abort_i     (abort_out),
      .still_o     (mvo_still[k]),
      .idle_o      (mvo_idle[k])
    );

    if (k < NV) begin : gen_shared
      // ---- input: the mover gets it back once all moves from before have ended
      logic in_off, in_off_q, in_on_q, switch_q, join_still;
      logic [1:0] sel, join_ready;
      strm_t from[2];
      assign in_off = in_on_q || in_off_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
          in_on_q  <= 1'b0;
          switch_q <= 1'b0;
          in_off_q <= 1'b0;
        end else begin
          in_on_q  <= vio_in_on_i[k];
          switch_q <= in_on_q && !isolated;
          in_off_q <= in_off && (in_on_q || !mvi_idle[k]);
        end
      end
      assign abort_in = isolated || in_off;

      // The switch's side is enabled two cycles after vio_in_on_i. The two are never enabled together: in_off_q is set when in_on_q falls.
      assign sel = {!in_off && !isolated_q, switch_q};
      assign from[0] = vio_in_i[k];
      assign from[1] = moved;
      // The mover's beats are dropped while it does not own the stream, and both sides' in an isolated slot, and in the cycle behind that.
      assign moved_ready = join_ready[1] || !sel[1];
      assign vio_in_ready_o[k] = join_ready[0] || isolated_q;
      via_vio_join #(
        .N(2)
      ) u_join (
        .clk_i,
        .rst_ni,
        .sel_i    (sel),
        .s_i      (from),
        .s_valid_i({moved_valid, vio_in_valid_i[k]}),
        .s_ready_o(join_ready),
        .m_o      (slot_s_o[k]),
        .m_valid_o(slot_s_valid_o[k]),
        .m_ready_i(slot_s_ready_i[k] || isolated),
        .last_o   (),
        .still_o  (join_still),
        .idle_o   (join_idle[k])
      );

      // ---- output: while moves from before end nobody takes it
      localparam logic [1:0] ToNobody = 2'd1, ToSwitch = 2'd3, ToMover = 2'd2;
      logic out_off, out_off_q, src_valid, src_ready, src_open, src_still, vio_open_q;
      logic [1:0] dst_want, dst;
      assign out_off = vio_out_on_i[k] || out_off_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) out_off_q <= 1'b0;
        else out_off_q <= out_off && (vio_out_on_i[k] || !mvo_idle[k]);
      end
      assign abort_out = isolated || out_off;
      assign dst_want  = !out_off ? ToMover : vio_out_on_i[k] ? ToSwitch : ToNobody;
      via_vio_edge #(
        .DstW(2)
      ) u_src (
        .clk_i,
        .rst_ni,
        .cut_i    (isolated),
        .dst_i    (dst_want),
        .dst_o    (dst),
        .s_valid_i(strm_valid && !quiesce_q),
        .s_last_i (strm.last),
        .s_ready_o(strm_ready),
        .m_valid_o(src_valid),
        .m_ready_i(src_ready),
        .open_o   (src_open),
        .still_o  (src_still)
      );
      assign out_valid = src_valid && dst == ToMover;
      assign src_ready = (dst == ToMover) ? out_ready : dst == ToSwitch && vio_out_ready_i[k];
      assign vio_out_o[k] = strm;
      // As src_valid && dst == ToSwitch; decided a cycle ahead, since it leaves the block.
      assign vio_out_valid_o[k] = strm_valid && vio_open_q && !isolated;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) vio_open_q <= 1'b0;
        else vio_open_q <= src_open && dst_want == ToSwitch && !ctrl_i.quiesce;
      end
`ifndef SYNTHESIS
      always_ff @(posedge clk_i)
        if (rst_ni)
          assert (vio_out_valid_o[k] == (src_valid && dst == ToSwitch))
          else $error("a beat for the switch is offered without via_vio_edge, or not offered");
`endif
      assign vio_still[k] = join_still && src_still && in_off_q == vio_in_on_i[k] && in_on_q == vio_in_on_i[k] && switch_q == (in_on_q && !isolated) &&
          out_off_q == vio_out_on_i[k] && !(vio_in_valid_i[k] && vio_in_ready_o[k]);
    end else begin : gen_own
      assign abort_in = isolated;
      assign abort_out = isolated;
      assign slot_s_o[k] = moved;
      assign slot_s_valid_o[k] = moved_valid;
      assign moved_ready = slot_s_ready_i[k] || isolated;
      assign out_valid = strm_valid && !quiesce_q;
      assign strm_ready = out_ready;
    end
  end

  // ---------------------------------------------------------------- disk
  assign ar[Disk] = disk_ar_i;
  assign ar_valid[Disk] = disk_ar_valid_i;
  assign disk_ar_ready_o = ar_ready[Disk];
  assign disk_r_o = r[Disk];
  assign disk_r_valid_o = r_valid[Disk];
  assign r_ready[Disk] = disk_r_ready_i;
  assign aw[Disk] = disk_aw_i;
  assign aw_valid[Disk] = disk_aw_valid_i;
  assign disk_aw_ready_o = aw_ready[Disk];
  assign w[Disk] = disk_w_i;
  assign w_valid[Disk] = disk_w_valid_i;
  assign disk_w_ready_o = w_ready[Disk];
  assign disk_b_o = b[Disk];
  assign disk_b_valid_o = b_valid[Disk];
  assign b_ready[Disk] = disk_b_ready_i;

  // ---------------------------------------------------------------- memory port
  logic mem_violation, mem_write, mem_quiet;
  event_e mem_cause;
  logic [63:0] mem_va;

  via_guard u_guard (
    .clk_i,
    .rst_ni,
    .s_ar_i      (slot_ar_i),
    .s_ar_valid_i(slot_ar_valid_i),
    .s_ar_ready_o(slot_ar_ready_o),
    .s_r_o       (slot_r_o),
    .s_r_valid_o (slot_r_valid_o),
    .s_r_ready_i (slot_r_ready_i),
    .s_aw_i      (slot_aw_i),
    .s_aw_valid_i(slot_aw_valid_i),
    .s_aw_ready_o(slot_aw_ready_o),
    .s_w_i       (slot_w_i),
    .s_w_valid_i (slot_w_valid_i),
    .s_w_ready_o (slot_w_ready_o),
    .s_b_o       (slot_b_o),
    .s_b_valid_o (slot_b_valid_o),
    .s_b_ready_i (slot_b_ready_i),
    .m_ar_o      (ar[0]),
    .m_ar_valid_o(ar_valid[0]),
    .m_ar_ready_i(ar_ready[0]),
    .m_r_i       (r[0]),
    .m_r_valid_i (r_valid[0]),
    .m_r_ready_o (r_ready[0]),
    .m_aw_o      (aw[0]),
    .m_aw_valid_o(aw_valid[0]),
    .m_aw_ready_i(aw_ready[0]),
    .m_w_o       (w[0]),
    .m_w_valid_o (w_valid[0]),
    .m_w_ready_i (w_ready[0]),
    .m_b_i       (b[0]),
    .m_b_valid_i (b_valid[0]),
    .m_b_ready_o (b_ready[0]),
    .quiesce_i   (quiesce_q),
    .isolate_i   (isolated),
    .violation_o (mem_violation),
    .cause_o     (mem_cause),
    .va_o        (mem_va),
    .is_write_o  (mem_write),
    .quiet_o     (mem_quiet)
  );

  // ---------------------------------------------------------------- all sources to the MMU
  axi_ax_t mux_ar, mux_aw, mmu_ar, mmu_aw;
  axi_r_t mux_r;
  axi_b_t mux_b;
  logic mux_ar_valid, mux_ar_ready, mux_aw_valid, mux_aw_ready, mux_idle, mux_still, mmu_idle, mmu_quiet;
  logic p_ar_valid, p_ar_ready, p_aw_valid, p_aw_ready, rd_beat, wr_done, meter_still;
  assign rd_beat = m_r_valid_i && m_r_ready_o;
  assign wr_done = m_b_valid_i && m_b_ready_o;

  via_axi_mux #(
    .NumRd   (2 + NS),
    .NumWr   (2 + NS),
    .NumFirst(0),
    .Outstanding(256)  // as via_guard
  ) u_mux (
    .clk_i,
    .rst_ni,
    .weight_i    ('{default: '0}),
    .first_i     ('{default: '0}),
    .share_i     ('0),
    .window_i    ('0),
    .s_ar_i      (ar),
    .s_ar_valid_i(ar_valid),
    .s_ar_ready_o(ar_ready),
    .s_r_o       (r),
    .s_r_valid_o (r_valid),
    .s_r_ready_i (r_ready),
    .s_aw_i      (aw),
    .s_aw_valid_i(aw_valid),
    .s_aw_ready_o(aw_ready),
    .s_w_i       (w),
    .s_w_valid_i (w_valid),
    .s_w_ready_o (w_ready),
    .s_b_o       (b),
    .s_b_valid_o (b_valid),
    .s_b_ready_i (b_ready),
    .m_ar_o      (mux_ar),
    .m_ar_valid_o(mux_ar_valid),
    .m_ar_ready_i(mux_ar_ready),
    .m_r_i       (mux_r),
    .m_r_valid_i (m_r_valid_i),
    .m_r_ready_o (m_r_ready_o),
    .m_aw_o      (mux_aw),
    .m_aw_valid_o(mux_aw_valid),
    .m_aw_ready_i(mux_aw_ready),
    .m_w_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_b_i       (mux_b),
    .m_b_valid_i (m_b_valid_i),
    .m_b_ready_o (m_b_ready_o),
    .still_o     (mux_still),
    .idle_o      (mux_idle)
  );

  // The MMU reads the kind of source from id[5:4]: 0 app, 1 mover. The mux's index stays below it.
  always_comb begin
    mmu_ar = mux_ar;
    mmu_aw = mux_aw;
    mmu_ar.id[IdW-1:4] = 2'(mux_ar.id[3:0] != '0);
    mmu_aw.id[IdW-1:4] = 2'(mux_aw.id[3:0] != '0);
    mux_r = m_r_i;
    mux_b = m_b_i;
    mux_r.id = IdW'(m_r_i.id[3:0]);
    mux_b.id = IdW'(m_b_i.id[3:0]);
  end

  // In an empty slot there is no app whose accesses would have to end, but perhaps the store of a disk.
  logic mmu_abort_q;
  always_ff @(posedge clk_i) begin
    mmu_abort_q <= rst_ni && isolated && (loaded_i || load_i || ctrl_i.reset || ctrl_i.isolate || cause != event_e'(8'h00));
  end

  cmd_t mmu_cmd;
  cpl_t mmu_cpl;
  evt_t mmu_evt;
  logic mmu_cmd_valid, mmu_cmd_ready, mmu_cpl_valid, mmu_cpl_ready, mmu_evt_valid, mmu_evt_ready;

  logic [31:0] chan_mib_q;
  table_cfg_t table_q;
  sched_cfg_t sched_q;
  always_ff @(posedge clk_i) begin
    chan_mib_q <= chan_mib_i;
    table_q    <= table_i;
    sched_q    <= sched_i;
  end
  via_mmu #(
    .PageWays(PageWays),
    .PageSets(PageSets),
    .HugeWays(HugeWays),
    .HugeSets(HugeSets)
  ) u_mmu (
    .clk_i,
    .rst_ni,
    .chan_mib_i  (chan_mib_q),
    .table_i     (table_q),
    .v_ar_i      (mmu_ar),
    .v_ar_valid_i(mux_ar_valid),
    .v_ar_ready_o(mux_ar_ready),
    .v_aw_i      (mmu_aw),
    .v_aw_valid_i(mux_aw_valid),
    .v_aw_ready_o(mux_aw_ready),
    .p_ar_o      (m_ar_o),
    .p_ar_valid_o(p_ar_valid),
    .p_ar_ready_i(p_ar_ready),
    .p_aw_o      (m_aw_o),
    .p_aw_valid_o(p_aw_valid),
    .p_aw_ready_i(p_aw_ready),
    .rd_done_i   (rd_beat && m_r_i.last),
    .wr_done_i   (wr_done),
    .cmd_i       (mmu_cmd),
    .cmd_valid_i (mmu_cmd_valid),
    .cmd_ready_o (mmu_cmd_ready),
    .cpl_o       (mmu_cpl),
    .cpl_valid_o (mmu_cpl_valid),
    .cpl_ready_i (mmu_cpl_ready),
    .evt_o       (mmu_evt),
    .evt_valid_o (mmu_evt_valid),
    .evt_ready_i (mmu_evt_ready),
    .walk_ar_o,
    .walk_ar_valid_o,
    .walk_ar_ready_i,
    .walk_r_i,
    .walk_r_valid_i,
    .walk_r_ready_o,
    .walk_aw_o,
    .walk_aw_valid_o,
    .walk_aw_ready_i,
    .walk_w_o,
    .walk_w_valid_o,
    .walk_w_ready_i,
    .walk_b_i,
    .walk_b_valid_i,
    .walk_b_ready_o,
    .abort_i     (mmu_abort_q),
    .n_rd_o      (count_o[0]),
    .n_wr_o      (count_o[1]),
    .n_rd_miss_o (count_o[2]),
    .n_wr_miss_o (count_o[3]),
    .quiet_o     (mmu_quiet),
    .idle_o      (mmu_idle)
  );

  // ---------------------------------------------------------------- what the slot requests of memory
  via_slot_meter u_meter (
    .clk_i,
    .rst_ni,
    .cfg_i       (sched_q),
    .time_i,
    .s_ar_len_i  (m_ar_o.len),
    .s_ar_host_i (m_ar_o.addr[AddrHostBit]),
    .s_ar_valid_i(p_ar_valid),
    .s_ar_ready_o(p_ar_ready),
    .s_aw_len_i  (m_aw_o.len),
    .s_aw_host_i (m_aw_o.addr[AddrHostBit]),
    .s_aw_valid_i(p_aw_valid),
    .s_aw_ready_o(p_aw_ready),
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .rd_beat_i   (rd_beat),
    .wr_done_i   (wr_done),
    .first_o,
    .count_o     (meter_o),
    .still_o     (meter_still)
  );

  // ---------------------------------------------------------------- commands
  logic dispatch_idle;

  via_dispatch u_dispatch (
    .clk_i,
    .rst_ni,
    .cmd_i,
    .cmd_valid_i,
    .cmd_ready_o,
    .cpl_o,
    .cpl_valid_o,
    .cpl_ready_i,
    .dma_cmd_o,
    .dma_cmd_valid_o,
    .dma_cmd_ready_i,
    .dma_cpl_i,
    .dma_cpl_valid_i,
    .dma_cpl_ready_o,
    .mmu_cmd_o      (mmu_cmd),
    .mmu_cmd_valid_o(mmu_cmd_valid),
    .mmu_cmd_ready_i(mmu_cmd_ready),
    .mmu_cpl_i      (mmu_cpl),
    .mmu_cpl_valid_i(mmu_cpl_valid),
    .mmu_cpl_ready_o(mmu_cpl_ready),
    .move_cmd_o     (move_cmd),
    .mvi_cmd_valid_o(mvi_cmd_valid),
    .mvi_cmd_ready_i(mvi_cmd_ready),
    .mvi_cpl_i      (mvi_cpl),
    .mvi_cpl_valid_i(mvi_cpl_valid),
    .mvi_cpl_ready_o(mvi_cpl_ready),
    .mvo_cmd_valid_o(mvo_cmd_valid),
    .mvo_cmd_ready_i(mvo_cmd_ready),
    .mvo_cpl_i      (mvo_cpl),
    .mvo_cpl_valid_i(mvo_cpl_valid),
    .mvo_cpl_ready_o(mvo_cpl_ready),
    .idle_o         (dispatch_idle)
  );

  // ---------------------------------------------------------------- registers
  logic responded_q, reg_valid_q;

  assign reg_open_o = !isolated && !hold_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reg_valid_q <= 1'b0;
      responded_q <= 1'b0;
    end else begin
      // The request is still valid in the cycle of its response: it must not reach the slot twice.
      reg_valid_q <= reg_valid_i && !isolated && !slot_reg_rvalid_i && !responded_q;
      responded_q <= slot_reg_rvalid_i && reg_valid_i && !isolated;
    end
  end
  always_ff @(posedge clk_i) begin
    if (reg_valid_i) slot_reg_o <= reg_i;
    if (slot_reg_rvalid_i && reg_valid_i) begin
      reg_rdata_o <= slot_reg_rdata_i;
      reg_err_o   <= slot_reg_err_i;
    end
  end
  assign slot_reg_valid_o = reg_valid_q;
  assign reg_rvalid_o = responded_q;

  // ---------------------------------------------------------------- events
  localparam int unsigned NumSrc = 2 + NS;
  logic [NumSrc-1:0] violation;
  evt_t violation_evt[NumSrc];
  logic events_idle;

  assign violation = {strm_violation, reg_timeout_i, mem_violation};
  assign violation_evt[0] = '{info: '0, va: mem_va, source: SrcMemory, is_write: mem_write, cause: mem_cause};
  assign violation_evt[1] = '{info: 64'(reg_i.addr), va: '0, source: SrcRegisters, is_write: reg_i.write, cause: EvRegTimeout};
  for (genvar k = 0; k < NS; k++) begin : gen_strm_evt
    assign violation_evt[2+k] = '{info: 64'(k), va: '0, source: SrcStream, is_write: 1'b0, cause: strm_cause[k]};
  end

  via_slot_events u_events (
    .clk_i,
    .rst_ni,
    .reset_i        (ctrl_i.reset),
    .isolate_i      (cut),
    .violation_i    (violation),
    .violation_evt_i(violation_evt),
    .ring_err_cmd_i,
    .ring_err_info_i,
    .ring_err_cpl_i,
    .irq_i          (irq_q),
    .flush_i        (disk_flush_i),
    .mmu_evt_i      (mmu_evt),
    .mmu_evt_valid_i(mmu_evt_valid),
    .mmu_evt_ready_o(mmu_evt_ready),
    .evt_o,
    .evt_valid_o,
    .evt_ready_i,
    .isolated_o     (isolated),
    .cause_o        (cause),
    .idle_o         (events_idle)
  );

  // ---------------------------------------------------------------- counters and status
  logic [31:0] beats_in_q, beats_out_q, rd_beats_q, wr_beats_q;
  logic app_rd_beat, app_wr_beat;
  assign app_rd_beat = slot_r_valid_o && slot_r_ready_i && !isolated;
  assign app_wr_beat = slot_w_valid_i && slot_w_ready_o && !isolated;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beats_in_q  <= '0;
      beats_out_q <= '0;
      rd_beats_q  <= '0;
      wr_beats_q  <= '0;
    end else begin
      if (beat_in != '0) beats_in_q <= beats_in_q + 32'($countones(beat_in));
      if (beat_out != '0) beats_out_q <= beats_out_q + 32'($countones(beat_out));
      if (app_rd_beat) rd_beats_q <= rd_beats_q + 1'b1;
      if (app_wr_beat) wr_beats_q <= wr_beats_q + 1'b1;
    end
  end
  assign count_o[4] = beats_in_q;
  assign count_o[5] = beats_out_q;
  assign count_o[6] = rd_beats_q;
  assign count_o[7] = wr_beats_q;

  logic quiet_q;
  always_ff @(posedge clk_i)
    quiet_q <= mmu_quiet && mem_quiet && &strm_quiet && &mvi_idle && &mvo_idle && &join_idle && mux_idle && dispatch_idle;
  assign stat_o = '{cause: cause, isolated: isolated, busy: busy_q, quiet: quiet_q, loaded: loaded_q};

  // Collected in two steps, each of all at the same time: what leaves one for another is in one of them.
  logic [4:0] rest_q;
  logic [3*NS+NV+1:0] still_q;
  logic [3*NS+NV:0] idle_q;
  always_ff @(posedge clk_i) begin
    rest_q  <= {mem_quiet, dispatch_idle, mmu_idle, events_idle, ~|{reg_valid_i, reg_valid_q, responded_q, irq_q}};
    still_q <= {mvi_still, mvo_still, strm_still, vio_still, mux_still, meter_still};
    idle_q  <= {mvi_idle, mvo_idle, strm_quiet, join_idle, mux_idle};
    still_o <= &rest_q && &still_q;
    idle_o  <= &rest_q && &idle_q;
  end

endmodule
