// SPDX-License-Identifier: Apache-2.0
//
// Crossbar: slots and DMA engines to DRAM channels and host memory (FSRF paper, section 5.3, but out of order over the targets).
//
// Managers are slots, DMA engines and the walks of page tables. Those that request a target share it by bytes. Subordinates 0..NumSub-2 are
// DRAM channels, the last one is host memory. The address selects the destination of a burst:
//   addr[AddrErrBit]  -> completed here with SLVERR; so are addresses in host memory of a manager that has no way to it
//   addr[AddrHostBit] -> host memory, bits 63:52 cleared
//   else              -> channel addr[ChanLog2 +: log2(NumChan)], address within the channel
// Throughput: per direction one burst granted and one beat moved for every manager and every subordinate each cycle. Latency: AR and R three
// cycles, B two; AW five after the last beat of the burst, of a long one the 17th, and W one more (via_xbar_wr). Order: in order for
// every manager; on their way to different subordinates bursts overtake one another, and responses wait for their turn in buffers here.
// Downstream everything has id 0. To a channel that others use, bursts go in pieces of 16 beats.
// Misuse: a manager that stalls R or B harms only itself; one that pauses within the W of a long burst stops its target.

module via_xbar
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 3,
  parameter int unsigned NumSub = NumChan + 1,
  parameter bit [NumMgr-1:0] ToHost = NumMgr'((1 << NumSlots) - 1),  // managers that reach host memory: the slots
  parameter int unsigned Outstanding = 64  // bursts in flight for each manager, reads and writes each
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  axi_ax_t              s_ar_i      [NumMgr],
  input  logic    [NumMgr-1:0] s_ar_valid_i,
  output logic    [NumMgr-1:0] s_ar_ready_o,
  output axi_r_t               s_r_o       [NumMgr],
  output logic    [NumMgr-1:0] s_r_valid_o,
  input  logic    [NumMgr-1:0] s_r_ready_i,
  input  axi_ax_t              s_aw_i      [NumMgr],
  input  logic    [NumMgr-1:0] s_aw_valid_i,
  output logic    [NumMgr-1:0] s_aw_ready_o,
  input  axi_w_t               s_w_i       [NumMgr],
  input  logic    [NumMgr-1:0] s_w_valid_i,
  output logic    [NumMgr-1:0] s_w_ready_o,
  output axi_b_t               s_b_o       [NumMgr],
  output logic    [NumMgr-1:0] s_b_valid_o,
  input  logic    [NumMgr-1:0] s_b_ready_i,
  output axi_ax_t              m_ar_o      [NumSub],
  output logic    [NumSub-1:0] m_ar_valid_o,
  input  logic    [NumSub-1:0] m_ar_ready_i,
  input  axi_r_t               m_r_i       [NumSub],
  input  logic    [NumSub-1:0] m_r_valid_i,
  output logic    [NumSub-1:0] m_r_ready_o,
  output axi_ax_t              m_aw_o      [NumSub],
  output logic    [NumSub-1:0] m_aw_valid_o,
  input  logic    [NumSub-1:0] m_aw_ready_i,
  output axi_w_t               m_w_o       [NumSub],
  output logic    [NumSub-1:0] m_w_valid_o,
  input  logic    [NumSub-1:0] m_w_ready_i,
  input  axi_b_t               m_b_i       [NumSub],
  input  logic    [NumSub-1:0] m_b_valid_i,
  output logic    [NumSub-1:0] m_b_ready_o,
  output logic                 still_o,               // nothing moves unless something is offered, or another input changes
  output logic                 idle_o                 // level: no burst is in flight
);

  localparam bit NumMgrOk = param_in("via_xbar NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar Outstanding", Outstanding, 1, 1024);

  logic rd_idle, wr_idle, rd_still, wr_still;
  assign still_o = rd_still && wr_still;
  assign idle_o  = rd_idle && wr_idle;

  via_xbar_rd #(
    .NumMgr     (NumMgr),
    .NumSub     (NumSub),
    .ToHost     (ToHost),
    .Outstanding(Outstanding)
  ) u_rd (
    .clk_i,
    .rst_ni,
    .s_ar_i,
    .s_ar_valid_i,
    .s_ar_ready_o,
    .s_r_o,
    .s_r_valid_o,
    .s_r_ready_i,
    .m_ar_o,
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o,
    .still_o(rd_still),
    .idle_o (rd_idle)
  );

  via_xbar_wr #(
    .NumMgr     (NumMgr),
    .NumSub     (NumSub),
    .ToHost     (ToHost),
    .Outstanding(Outstanding)
  ) u_wr (
    .clk_i,
    .rst_ni,
    .s_aw_i,
    .s_aw_valid_i,
    .s_aw_ready_o,
    .s_w_i,
    .s_w_valid_i,
    .s_w_ready_o,
    .s_b_o,
    .s_b_valid_o,
    .s_b_ready_i,
    .m_aw_o,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_w_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_b_i,
    .m_b_valid_i,
    .m_b_ready_o,
    .still_o(wr_still),
    .idle_o (wr_idle)
  );

endmodule
