// SPDX-License-Identifier: Apache-2.0
//
// via_csr and via_app_regs with flat ports, named as AXI4-Lite models expect them. The second source of accesses to the apps stands for the
// user BAR of a function.

module via_csr_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned AppTimeout  = 256,
  parameter int unsigned IcapTimeout = 100
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic          [          63:0] time_i,
  input  logic                           quiet_i,
  input  logic          [          19:0] axil_awaddr,
  input  logic                           axil_awvalid,
  output logic                           axil_awready,
  input  logic          [          31:0] axil_wdata,
  input  logic          [           3:0] axil_wstrb,
  input  logic                           axil_wvalid,
  output logic                           axil_wready,
  output logic          [           1:0] axil_bresp,
  output logic                           axil_bvalid,
  input  logic                           axil_bready,
  input  logic          [          19:0] axil_araddr,
  input  logic                           axil_arvalid,
  output logic                           axil_arready,
  output logic          [          31:0] axil_rdata,
  output logic          [           1:0] axil_rresp,
  output logic                           axil_rvalid,
  input  logic                           axil_rready,
  output logic          [           3:0] ctrl        [    NumSlots],
  input  logic          [          11:0] stat        [    NumSlots],
  input  logic          [          31:0] count       [    NumSlots][8],
  input  logic          [         193:0] meter       [    NumSlots],     // meter_count_t
  input  logic          [          44:0] user,                           // {addr, write, wdata}
  input  logic          [           3:0] user_slot,
  input  logic                           user_valid,
  output logic                           user_rvalid,
  output logic          [          31:0] user_rdata,
  input  logic          [          15:0] reach,
  output logic          [          44:0] app,                            // {addr, write, wdata}
  output logic          [  NumSlots-1:0] app_valid,
  input  logic          [  NumSlots-1:0] app_open,
  input  logic          [  NumSlots-1:0] app_rvalid,
  input  logic          [          31:0] app_rdata   [    NumSlots],
  input  logic          [  NumSlots-1:0] app_err,
  output logic          [  NumSlots-1:0] app_timeout,
  output logic          [          68:0] cmd_cfg     [    NumSlots],
  output logic          [          15:0] cmd_tail    [    NumSlots],
  input  logic          [          15:0] cmd_head    [    NumSlots],
  input  logic          [  NumSlots-1:0] cmd_on,
  input  logic          [  NumSlots-1:0] cmd_tail_err,
  input  logic          [  NumSlots-1:0] cmd_bus_err,
  output logic          [          68:0] ring_cfg    [  2*NumSlots],
  output logic          [          15:0] ring_head   [  2*NumSlots],
  output logic          [2*NumSlots-1:0] ring_arm,
  input  logic          [          15:0] ring_tail   [  2*NumSlots],
  input  logic          [2*NumSlots-1:0] ring_on,
  input  logic          [2*NumSlots-1:0] ring_err,
  output logic          [CardAddrW+13:0] tables      [    NumSlots],     // table_cfg_t
  output logic          [   WeightW-1:0] weights     [  NumSlots+3],
  output logic          [          27:0] sched       [    NumSlots],     // sched_cfg_t
  output logic          [           7:0] window,
  output share_cfg_t                     share,
  output host_share_t                    host_share,
  output logic          [          20:0] route,                          // vio_route_t
  output logic                           route_set,
  input  logic          [          10:0] route_state,                    // vio_state_t
  output logic          [         343:0] fn_ctrl     [     NumFn:1],
  input  logic          [       NumFn:1] fn_present,
  input  logic          [       NumFn:1] fn_attached,
  input  logic          [           7:0] fn_status   [     NumFn:1],
  input  logic          [         191:0] fn_features [     NumFn:1],
  input  logic          [          31:0] fn_count    [     NumFn:1][3],
  input  logic          [          15:0] fn_flushes  [     NumFn:1],
  input  logic          [  NumSlots-1:0] loaded,
  output logic          [  NumSlots-1:0] load,
  output logic                           icap_valid,
  output logic          [          31:0] icap_data,
  output logic          [           3:0] icap_slot,
  output logic                           icap_start,
  output logic                           icap_end,
  input  logic                           icap_ready,
  input  logic                           icap_done,
  input  logic          [           7:0] icap_status,
  output logic                           sysmon_start,
  input  sysmon_state_t                  sysmon,
  input  logic          [          15:0] sysmon_value[SysmonValues],
  output logic                           idle_o
);

  slot_ctrl_t   ctrl_s [NumSlots];
  table_cfg_t   table_s[NumSlots];
  sched_cfg_t   sched_s[NumSlots];
  meter_count_t meter_s[NumSlots];
  slot_stat_t   stat_s [NumSlots];
  ring_cfg_t cmd_cfg_s[NumSlots], ring_cfg_s[2*NumSlots];
  ring_idx_t cmd_tail_s[NumSlots], cmd_head_s[NumSlots], ring_head_s[2*NumSlots], ring_tail_s[2*NumSlots];
  reg_req_t reg_s, app_req[2];
  logic [3:0] app_slot[2];
  logic [1:0] req_valid, req_rvalid;
  logic [31:0] req_rdata;
  logic csr_idle, app_regs_idle;
  assign app_req[1] = '{addr: user[44:33], write: user[32], wdata: user[31:0]};
  assign app_slot[1] = user_slot;
  assign req_valid[1] = user_valid;
  assign user_rvalid = req_rvalid[1];
  assign user_rdata = req_rdata;
  assign idle_o = csr_idle && app_regs_idle;

  via_app_regs #(
    .AppTimeout(AppTimeout)
  ) u_app_regs (
    .clk_i,
    .rst_ni,
    .s_req_i      (app_req),
    .s_slot_i     (app_slot),
    .s_valid_i    (req_valid),
    .s_rvalid_o   (req_rvalid),
    .s_rdata_o    (req_rdata),
    .reach_i      (reach),
    .reg_o        (reg_s),
    .reg_valid_o  (app_valid),
    .reg_open_i   (app_open),
    .reg_rvalid_i (app_rvalid),
    .reg_rdata_i  (app_rdata),
    .reg_err_i    (app_err),
    .reg_timeout_o(app_timeout),
    .idle_o       (app_regs_idle)
  );

  assign app = {reg_s.addr, reg_s.write, reg_s.wdata};
  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    assign ctrl[s] = ctrl_s[s];
    assign tables[s] = table_s[s];
    assign sched[s] = sched_s[s];
    assign meter_s[s] = meter[s];
    assign stat_s[s] = slot_stat_t'(stat[s]);
    assign cmd_cfg[s] = cmd_cfg_s[s];
    assign cmd_tail[s] = cmd_tail_s[s];
    assign cmd_head_s[s] = cmd_head[s];
  end
  fn_ctrl_t fn_ctrl_s[NumFn:1];
  fn_features_t fn_features_s[NumFn:1];
  for (genvar f = 1; f <= NumFn; f++) begin : gen_fn
    assign fn_ctrl[f] = fn_ctrl_s[f];
    assign fn_features_s[f] = fn_features[f];
  end
  for (genvar r = 0; r < 2 * NumSlots; r++) begin : gen_ring
    assign ring_cfg[r] = ring_cfg_s[r];
    assign ring_head[r] = ring_head_s[r];
    assign ring_tail_s[r] = ring_tail[r];
  end

  logic clk;
  via_tb_gate #(
    .W(3 + 3 * NumSlots + 2 * 2 * NumSlots + 2 * NumFn + NumSlots + 10)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i(csr_idle && ~|{axil_awvalid, axil_wvalid, axil_arvalid, axil_bvalid, axil_rvalid, req_valid[0], req_rvalid[0], icap_valid}),
    .inputs_i({
      quiet_i,
      axil_bready,
      axil_rready,
      cmd_on,
      cmd_tail_err,
      cmd_bus_err,
      ring_on,
      ring_err,
      fn_present,
      fn_attached,
      loaded,
      icap_ready,
      icap_done,
      icap_status
    }),
    .clk_o(clk)
  );

  via_csr #(
    .IcapTimeout(IcapTimeout)
  ) u_dut (
    .clk_i         (clk),
    .rst_ni,
    .time_i,
    .chan_mib_i    (32'd1234),
    .clk_khz_i     (32'd250000),
    .quiet_i,
    .axil_awaddr_i (axil_awaddr),
    .axil_awvalid_i(axil_awvalid),
    .axil_awready_o(axil_awready),
    .axil_wdata_i  (axil_wdata),
    .axil_wstrb_i  (axil_wstrb),
    .axil_wvalid_i (axil_wvalid),
    .axil_wready_o (axil_wready),
    .axil_bresp_o  (axil_bresp),
    .axil_bvalid_o (axil_bvalid),
    .axil_bready_i (axil_bready),
    .axil_araddr_i (axil_araddr),
    .axil_arvalid_i(axil_arvalid),
    .axil_arready_o(axil_arready),
    .axil_rdata_o  (axil_rdata),
    .axil_rresp_o  (axil_rresp),
    .axil_rvalid_o (axil_rvalid),
    .axil_rready_i (axil_rready),
    .ctrl_o        (ctrl_s),
    .table_o       (table_s),
    .weight_o      (weights),
    .sched_o       (sched_s),
    .window_o      (window),
    .share_o       (share),
    .host_share_o  (host_share),
    .stat_i        (stat_s),
    .count_i       (count),
    .meter_i       (meter_s),
    .app_req_o     (app_req[0]),
    .app_slot_o    (app_slot[0]),
    .app_valid_o   (req_valid[0]),
    .app_rvalid_i  (req_rvalid[0]),
    .app_rdata_i   (req_rdata),
    .cmd_cfg_o     (cmd_cfg_s),
    .cmd_tail_o    (cmd_tail_s),
    .cmd_head_i    (cmd_head_s),
    .cmd_on_i      (cmd_on),
    .cmd_tail_err_i(cmd_tail_err),
    .cmd_bus_err_i (cmd_bus_err),
    .ring_cfg_o    (ring_cfg_s),
    .ring_head_o   (ring_head_s),
    .ring_arm_o    (ring_arm),
    .ring_tail_i   (ring_tail_s),
    .ring_on_i     (ring_on),
    .ring_err_i    (ring_err),
    .route_o       (route),
    .route_set_o   (route_set),
    .route_state_i (route_state),
    .fn_ctrl_o     (fn_ctrl_s),
    .fn_present_i  (fn_present),
    .fn_attached_i (fn_attached),
    .fn_status_i   (fn_status),
    .fn_features_i (fn_features_s),
    .fn_count_i    (fn_count),
    .fn_flushes_i  (fn_flushes),
    .loaded_i      (loaded),
    .load_o        (load),
    .icap_valid_o  (icap_valid),
    .icap_data_o   (icap_data),
    .icap_slot_o   (icap_slot),
    .icap_start_o  (icap_start),
    .icap_end_o    (icap_end),
    .icap_ready_i  (icap_ready),
    .icap_done_i   (icap_done),
    .icap_status_i (icap_status),
    .sysmon_kind_i (4'ha),
    .sysmon_full_i (32'd45678),
    .sysmon_start_o(sysmon_start),
    .sysmon_i      (sysmon),
    .sysmon_value_i(sysmon_value),
    .idle_o        (csr_idle)
  );

endmodule
