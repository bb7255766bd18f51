// SPDX-License-Identifier: Apache-2.0
//
// via_slot_port between an app (u_s, streams, registers), the crossbar (u_m), a DMA engine and rings, all driven by the test.

module via_slot_port_tb
  import via_pkg::*;
#(
  parameter int unsigned PageWays = 2,
  parameter int unsigned PageSets = 16,
  parameter int unsigned HugeWays = 2,
  parameter int unsigned HugeSets = 4,
  localparam int unsigned NS = NumStreams
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [           3:0] ctrl,     // slot_ctrl_t
  input logic [CardAddrW+13:0] table_i,  // table_cfg_t
  input logic [          27:0] sched,    // sched_cfg_t
  input logic [          31:0] time_i,
  input logic                  loaded,

  input  logic                load,
  output logic [        11:0] stat,                // slot_stat_t
  output logic [        31:0] count          [8],
  output logic [       193:0] meter,               // meter_count_t
  output logic                first,
  input  logic [       255:0] cmd,
  input  logic                cmd_valid,
  output logic                cmd_ready,
  output logic [       151:0] cpl,
  output logic                cpl_valid,
  input  logic                cpl_ready,
  output logic [       255:0] dma_cmd,
  output logic                dma_cmd_valid,
  input  logic                dma_cmd_ready,
  input  logic [       151:0] dma_cpl,
  input  logic                dma_cpl_valid,
  output logic                dma_cpl_ready,
  output logic                dma_abort,
  output logic [       144:0] evt,
  output logic                evt_valid,
  input  logic                evt_ready,
  input  logic [         2:0] ring_err,            // command tail, command read, completion write
  input  logic [        44:0] app,                 // {addr, write, wdata}
  input  logic                app_valid,
  output logic                app_open,
  output logic                app_rvalid,
  output logic [        31:0] app_rdata,
  output logic                app_err,
  input  logic                app_timeout,
  // the app
  output logic                slot_rst_no,
  output logic [NS*DataW-1:0] s_tdata,
  output logic [NS*StrbW-1:0] s_tkeep,
  output logic [    NS*8-1:0] s_tid,
  output logic [      NS-1:0] s_tlast,
  output logic [      NS-1:0] s_tvalid,
  input  logic [      NS-1:0] s_tready,
  input  logic [NS*DataW-1:0] m_tdata,
  input  logic [NS*StrbW-1:0] m_tkeep,
  input  logic [    NS*8-1:0] m_tid,
  input  logic [      NS-1:0] m_tlast,
  input  logic [      NS-1:0] m_tvalid,
  output logic [      NS-1:0] m_tready,
  output logic [        44:0] slot_reg,
  output logic                slot_reg_valid,
  input  logic                slot_reg_rvalid,
  input  logic [        31:0] slot_reg_rdata,
  input  logic                slot_irq,
  input  logic                disk_flush,
  input  logic                slot_busy,
  // the switch: stream 0, and the disk of a function (u_d)
  input  logic                in_on,
  input  logic                out_on,
  output logic                vio_cut,
  input  logic [   DataW-1:0] ft_tdata,
  input  logic [   StrbW-1:0] ft_tkeep,
  input  logic [         7:0] ft_tid,
  input  logic                ft_tlast,
  input  logic                ft_tvalid,
  output logic                ft_tready,
  output logic [   DataW-1:0] fr_tdata,
  output logic [   StrbW-1:0] fr_tkeep,
  output logic [         7:0] fr_tid,
  output logic                fr_tlast,
  output logic                fr_tvalid,
  input  logic                fr_tready,
  output logic                idle_o
);

  strm_t s[NS], m[NS];
  slot_stat_t stat_s;
  reg_req_t   slot_reg_s;
  assign stat = stat_s;
  assign slot_reg = {slot_reg_s.addr, slot_reg_s.write, slot_reg_s.wdata};
  for (genvar k = 0; k < NS; k++) begin : gen_stream
    assign s_tdata[k*DataW+:DataW] = s[k].data;
    assign s_tkeep[k*StrbW+:StrbW] = s[k].keep;
    assign s_tid[k*8+:8] = s[k].id;
    assign s_tlast[k] = s[k].last;
    assign m[k] = '{id: m_tid[k*8+:8], last: m_tlast[k], keep: m_tkeep[k*StrbW+:StrbW], data: m_tdata[k*DataW+:DataW]};
  end

  axi_ax_t s_ar;
  logic s_ar_valid, s_ar_ready;
  axi_r_t s_r;
  logic s_r_valid, s_r_ready;
  axi_ax_t s_aw;
  logic s_aw_valid, s_aw_ready;
  axi_w_t s_w;
  logic s_w_valid, s_w_ready;
  axi_b_t s_b;
  logic s_b_valid, s_b_ready;
  axi_ax_t m_ar;
  logic m_ar_valid, m_ar_ready;
  axi_r_t m_r;
  logic m_r_valid, m_r_ready;
  axi_ax_t m_aw;
  logic m_aw_valid, m_aw_ready;
  axi_w_t m_w;
  logic m_w_valid, m_w_ready;
  axi_b_t m_b;
  logic m_b_valid, m_b_ready;

  strm_t ft[1], fr[1];
  assign ft[0] = '{id: ft_tid, last: ft_tlast, keep: ft_tkeep, data: ft_tdata};
  assign {fr_tid, fr_tlast, fr_tkeep, fr_tdata} = fr[0];
  axi_ax_t d_ar;
  logic d_ar_valid, d_ar_ready;
  axi_r_t d_r;
  logic d_r_valid, d_r_ready;
  axi_ax_t d_aw;
  logic d_aw_valid, d_aw_ready;
  axi_w_t d_w;
  logic d_w_valid, d_w_ready;
  axi_b_t d_b;
  logic d_b_valid, d_b_ready;
  via_tb_mgr u_d (
    .clk_i,
    .rst_ni,
    .m_ar_o(d_ar),
    .m_ar_valid_o(d_ar_valid),
    .m_ar_ready_i(d_ar_ready),
    .m_r_i(d_r),
    .m_r_valid_i(d_r_valid),
    .m_r_ready_o(d_r_ready),
    .m_aw_o(d_aw),
    .m_aw_valid_o(d_aw_valid),
    .m_aw_ready_i(d_aw_ready),
    .m_w_o(d_w),
    .m_w_valid_o(d_w_valid),
    .m_w_ready_i(d_w_ready),
    .m_b_i(d_b),
    .m_b_valid_i(d_b_valid),
    .m_b_ready_o(d_b_ready)
  );

  // An isolated app is not observed any more, so its valid may drop.
  via_tb_mgr u_s (
    .clk_i,
    .rst_ni(rst_ni && !stat_s.isolated),
    .m_ar_o(s_ar),
    .m_ar_valid_o(s_ar_valid),
    .m_ar_ready_i(s_ar_ready),
    .m_r_i(s_r),
    .m_r_valid_i(s_r_valid),
    .m_r_ready_o(s_r_ready),
    .m_aw_o(s_aw),
    .m_aw_valid_o(s_aw_valid),
    .m_aw_ready_i(s_aw_ready),
    .m_w_o(s_w),
    .m_w_valid_o(s_w_valid),
    .m_w_ready_i(s_w_ready),
    .m_b_i(s_b),
    .m_b_valid_i(s_b_valid),
    .m_b_ready_o(s_b_ready)
  );
  // The page table: driven by the test.
  axi_ax_t t_ar;
  logic t_ar_valid, t_ar_ready;
  axi_r_t t_r;
  logic t_r_valid, t_r_ready;
  axi_ax_t t_aw;
  logic t_aw_valid, t_aw_ready;
  axi_w_t t_w;
  logic t_w_valid, t_w_ready;
  axi_b_t t_b;
  logic t_b_valid, t_b_ready;
  via_tb_sub u_t (
    .clk_i,
    .rst_ni,
    .s_ar_i(t_ar),
    .s_ar_valid_i(t_ar_valid),
    .s_ar_ready_o(t_ar_ready),
    .s_r_o(t_r),
    .s_r_valid_o(t_r_valid),
    .s_r_ready_i(t_r_ready),
    .s_aw_i(t_aw),
    .s_aw_valid_i(t_aw_valid),
    .s_aw_ready_o(t_aw_ready),
    .s_w_i(t_w),
    .s_w_valid_i(t_w_valid),
    .s_w_ready_o(t_w_ready),
    .s_b_o(t_b),
    .s_b_valid_o(t_b_valid),
    .s_b_ready_i(t_b_ready)
  );
  via_tb_sub u_m (
    .clk_i,
    .rst_ni,
    .s_ar_i(m_ar),
    .s_ar_valid_i(m_ar_valid),
    .s_ar_ready_o(m_ar_ready),
    .s_r_o(m_r),
    .s_r_valid_o(m_r_valid),
    .s_r_ready_i(m_r_ready),
    .s_aw_i(m_aw),
    .s_aw_valid_i(m_aw_valid),
    .s_aw_ready_o(m_aw_ready),
    .s_w_i(m_w),
    .s_w_valid_i(m_w_valid),
    .s_w_ready_o(m_w_ready),
    .s_b_o(m_b),
    .s_b_valid_o(m_b_valid),
    .s_b_ready_i(m_b_ready)
  );

  logic clk, still;
  // Inputs that still_o does not cover; what the app and the registers change is covered by their own blocks.
  logic [174+$bits(table_cfg_t)+$bits(sched_cfg_t)+(NS+1)*(DataW+StrbW+12):0] inputs;
  assign inputs = (175 + $bits(
          table_cfg_t
      ) + $bits(
          sched_cfg_t
      ) + (NS + 1) * (DataW + StrbW + 12))'({
        table_i,
        sched,
        t_ar_ready,
        t_r_valid,
        t_aw_ready,
        t_w_ready,
        t_b_valid,
        s_ar_valid,
        s_aw_valid,
        s_w_valid,
        s_r_ready,
        s_b_ready,
        cmd_valid,
        cpl_ready,
        dma_cmd_ready,
        dma_cpl_valid,
        evt_ready,
        m_ar_ready,
        m_r_valid,
        m_aw_ready,
        m_w_ready,
        m_b_valid,
        d_r_ready,
        d_b_ready,
        ctrl,
        loaded,
        load,
        ring_err,
        app,
        app_valid,
        app_timeout,
        s_tready,
        m_tdata,
        m_tkeep,
        m_tid,
        m_tlast,
        m_tvalid,
        slot_reg_rvalid,
        slot_irq,
        slot_busy,
        disk_flush,
        d_ar_valid,
        d_aw_valid,
        d_w_valid,
        in_on,
        out_on,
        ft_tdata,
        ft_tkeep,
        ft_tid,
        ft_tlast,
        ft_tvalid,
        fr_tready
      });
  via_tb_gate #(
    .W($bits(inputs))
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i(still),
    .inputs_i(inputs),
    .clk_o(clk)
  );

  via_slot_port #(
    .PageWays(PageWays),
    .PageSets(PageSets),
    .HugeWays(HugeWays),
    .HugeSets(HugeSets)
  ) u_dut (
    .clk_i(clk),
    .rst_ni,
    .chan_mib_i(32'd16384),
    .ctrl_i(slot_ctrl_t'(ctrl)),
    .table_i(table_cfg_t'(table_i)),
    .sched_i(sched_cfg_t'(sched)),
    .time_i,
    .loaded_i(loaded),
    .load_i(load),
    .stat_o(stat_s),
    .count_o(count),
    .meter_o(meter),
    .first_o(first),
    .cmd_i(cmd_t'(cmd)),
    .cmd_valid_i(cmd_valid),
    .cmd_ready_o(cmd_ready),
    .cpl_o(cpl),
    .cpl_valid_o(cpl_valid),
    .cpl_ready_i(cpl_ready),
    .dma_cmd_o(dma_cmd),
    .dma_cmd_valid_o(dma_cmd_valid),
    .dma_cmd_ready_i(dma_cmd_ready),
    .dma_cpl_i(cpl_t'(dma_cpl)),
    .dma_cpl_valid_i(dma_cpl_valid),
    .dma_cpl_ready_o(dma_cpl_ready),
    .dma_abort_o(dma_abort),
    .evt_o(evt),
    .evt_valid_o(evt_valid),
    .evt_ready_i(evt_ready),
    .ring_err_cmd_i(|ring_err[1:0]),
    .ring_err_info_i(ring_err[1]),
    .ring_err_cpl_i(ring_err[2]),
    .reg_i('{addr: app[44:33], write: app[32], wdata: app[31:0]}),
    .reg_valid_i(app_valid),
    .reg_open_o(app_open),
    .reg_rvalid_o(app_rvalid),
    .reg_rdata_o(app_rdata),
    .reg_err_o(app_err),
    .reg_timeout_i(app_timeout),
    .walk_ar_o(t_ar),
    .walk_ar_valid_o(t_ar_valid),
    .walk_ar_ready_i(t_ar_ready),
    .walk_r_i(t_r),
    .walk_r_valid_i(t_r_valid),
    .walk_r_ready_o(t_r_ready),
    .walk_aw_o(t_aw),
    .walk_aw_valid_o(t_aw_valid),
    .walk_aw_ready_i(t_aw_ready),
    .walk_w_o(t_w),
    .walk_w_valid_o(t_w_valid),
    .walk_w_ready_i(t_w_ready),
    .walk_b_i(t_b),
    .walk_b_valid_i(t_b_valid),
    .walk_b_ready_o(t_b_ready),
    .m_ar_o(m_ar),
    .m_ar_valid_o(m_ar_valid),
    .m_ar_ready_i(m_ar_ready),
    .m_r_i(m_r),
    .m_r_valid_i(m_r_valid),
    .m_r_ready_o(m_r_ready),
    .m_aw_o(m_aw),
    .m_aw_valid_o(m_aw_valid),
    .m_aw_ready_i(m_aw_ready),
    .m_w_o(m_w),
    .m_w_valid_o(m_w_valid),
    .m_w_ready_i(m_w_ready),
    .m_b_i(m_b),
    .m_b_valid_i(m_b_valid),
    .m_b_ready_o(m_b_ready),
    .vio_cut_o(vio_cut),
    .vio_in_on_i(in_on),
    .vio_out_on_i(out_on),
    .vio_in_i(ft),
    .vio_in_valid_i(ft_tvalid),
    .vio_in_ready_o(ft_tready),
    .vio_out_o(fr),
    .vio_out_valid_o(fr_tvalid),
    .vio_out_ready_i(fr_tready),
    .disk_ar_i(d_ar),
    .disk_ar_valid_i(d_ar_valid),
    .disk_ar_ready_o(d_ar_ready),
    .disk_r_o(d_r),
    .disk_r_valid_o(d_r_valid),
    .disk_r_ready_i(d_r_ready),
    .disk_aw_i(d_aw),
    .disk_aw_valid_i(d_aw_valid),
    .disk_aw_ready_o(d_aw_ready),
    .disk_w_i(d_w),
    .disk_w_valid_i(d_w_valid),
    .disk_w_ready_o(d_w_ready),
    .disk_flush_i(disk_flush),
    .disk_b_o(d_b),
    .disk_b_valid_o(d_b_valid),
    .disk_b_ready_i(d_b_ready),
    .slot_rst_no,
    .slot_s_o(s),
    .slot_s_valid_o(s_tvalid),
    .slot_s_ready_i(s_tready),
    .slot_m_i(m),
    .slot_m_valid_i(m_tvalid),
    .slot_m_ready_o(m_tready),
    .slot_ar_i(s_ar),
    .slot_ar_valid_i(s_ar_valid),
    .slot_ar_ready_o(s_ar_ready),
    .slot_r_o(s_r),
    .slot_r_valid_o(s_r_valid),
    .slot_r_ready_i(s_r_ready),
    .slot_aw_i(s_aw),
    .slot_aw_valid_i(s_aw_valid),
    .slot_aw_ready_o(s_aw_ready),
    .slot_w_i(s_w),
    .slot_w_valid_i(s_w_valid),
    .slot_w_ready_o(s_w_ready),
    .slot_b_o(s_b),
    .slot_b_valid_o(s_b_valid),
    .slot_b_ready_i(s_b_ready),
    .slot_reg_o(slot_reg_s),
    .slot_reg_valid_o(slot_reg_valid),
    .slot_reg_rvalid_i(slot_reg_rvalid),
    .slot_reg_rdata_i(slot_reg_rdata),
    .slot_reg_err_i(1'b0),
    .slot_irq_i(slot_irq),
    .irq_o(),
    .slot_busy_i(slot_busy),
    .still_o(still),
    .idle_o
  );

  // No deadlocks (docs/interfaces.md, section 1).
  logic gap_q;
  always_ff @(posedge clk_i) begin
    gap_q <= rst_ni && m_w_valid && m_w_ready && !m_w.last;
    if (rst_ni) begin
      assert (!gap_q || m_w_valid)
      else $error("pause inside a burst");
    end
  end

endmodule
