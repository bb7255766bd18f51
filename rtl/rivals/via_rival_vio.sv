// SPDX-License-Identifier: Apache-2.0
//
// What can be between an app's stream and a device, around the same apps and devices: this card's port and switch, and what `viaduct bench
// vio` compares them with. Only the bench builds this module (sim/rivals/vio.cpp), and no card contains it.
//
//   device d, source ──> [system] ──> app ──> [system] ──> device d, sink
//
// The system is chosen by `system_i`, constant after reset:
//   SysDirect   wires: nothing but the registers at the app's own edge (via_slot). Slot s has device s for good.
//   SysFixed    a fixed-port shell (Coyote): ports that belong to one device each, a register slice each way. Slot s has device s for good.
//   SysMux      the published vFPIO: a slice each way at the app, and one multiplexer for its port, whose select is a register. It changes
//               in the cycle in which it is written, whatever is in flight; the host polls the register afterwards. Without a selection
//               (`sel_i` of NumDev) beats wait.
//   SysViaduct  via_slot_port and via_vio_switch as in a card.
// With `chain_i` the input of each slot but the first takes the output of the one before it, and device 0 is the source of the first slot and
// the sink of the last, constant after reset; only SysDirect and SysViaduct (by its routes) can.
//
// Throughput, latency, order: those of the systems. In SysMux two slots that select one device are an error of the host, as in the original:
// the lower one has it. There is no memory: reads and writes of an app wait for ever.

module via_rival_vio
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  localparam int unsigned NS = NumStreams,
  localparam int unsigned NumDev = 2,  // the devices that any slot can reach: Ethernet and UART (via_vio_switch)
  localparam int unsigned DevW = $clog2(NumDev + 1)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [         1:0] system_i,
  input  logic                chain_i,
  // SysMux: device of each slot
  input  logic [    DevW-1:0] sel_i         [NumSlots],
  // SysViaduct: a route (vio_route_t), and the state of its sink (vio_state_t)
  input  logic [        20:0] route_i,
  input  logic                route_set_i,
  output logic [        10:0] state_o,
  output logic [NumSlots-1:0] isolated_o,                // level: the app has broken a rule
  // devices: sources (rx) and sinks (tx)
  input  logic [  NumDev-1:0] rx_valid_i,
  output logic [  NumDev-1:0] rx_ready_o,
  input  logic [   DataW-1:0] rx_data_i     [  NumDev],
  input  logic [   StrbW-1:0] rx_keep_i     [  NumDev],
  input  logic [  NumDev-1:0] rx_last_i,
  input  logic [         7:0] rx_id_i       [  NumDev],
  output logic [  NumDev-1:0] tx_valid_o,
  input  logic [  NumDev-1:0] tx_ready_i,
  output logic [   DataW-1:0] tx_data_o     [  NumDev],
  output logic [   StrbW-1:0] tx_keep_o     [  NumDev],
  output logic [  NumDev-1:0] tx_last_o,
  output logic [         7:0] tx_id_o       [  NumDev],
  // slots, as in via_shell; the first stream of each
  output logic [NumSlots-1:0] slot_rst_no,
  output logic [NumSlots-1:0] slot_s_valid_o,
  input  logic [NumSlots-1:0] slot_s_ready_i,
  output logic [   DataW-1:0] slot_s_data_o [NumSlots],
  output logic [   StrbW-1:0] slot_s_keep_o [NumSlots],
  output logic [NumSlots-1:0] slot_s_last_o,
  output logic [         7:0] slot_s_id_o   [NumSlots],
  input  logic [NumSlots-1:0] slot_m_valid_i,
  output logic [NumSlots-1:0] slot_m_ready_o,
  input  logic [   DataW-1:0] slot_m_data_i [NumSlots],
  input  logic [   StrbW-1:0] slot_m_keep_i [NumSlots],
  input  logic [NumSlots-1:0] slot_m_last_i,
  input  logic [         7:0] slot_m_id_i   [NumSlots]
);

  typedef enum logic [1:0] {
    SysDirect  = 2'd0,
    SysFixed   = 2'd1,
    SysMux     = 2'd2,
    SysViaduct = 2'd3
  } system_e;
  system_e system;
  assign system = system_e'(system_i);

  localparam int unsigned NumUser = FnInput;
  localparam int unsigned NumApp = NumSlots * VioStreams;
  localparam int unsigned DevFn[NumDev] = '{FnNet, FnConsole};  // the functions whose ports the devices are

  strm_t rx[NumDev], tx[NumDev], app_out[NumSlots], app_in[NumSlots];
  for (genvar d = 0; d < NumDev; d++) begin : gen_dev
    assign rx[d] = '{id: rx_id_i[d], last: rx_last_i[d], keep: rx_keep_i[d], data: rx_data_i[d]};
    assign {tx_id_o[d], tx_last_o[d], tx_keep_o[d], tx_data_o[d]} = tx[d];
  end
  for (genvar s = 0; s < NumSlots; s++) begin : gen_edge
    assign app_out[s] = '{id: slot_m_id_i[s], last: slot_m_last_i[s], keep: slot_m_keep_i[s], data: slot_m_data_i[s]};
    assign {slot_s_id_o[s], slot_s_last_o[s], slot_s_keep_o[s], slot_s_data_o[s]} = app_in[s];
  end

  // ---------------------------------------------------------------- direct, fixed, multiplexer
  // A slot's device; NumDev: none.
  logic [DevW-1:0] dev[NumSlots];
  // The side of the devices, behind the slices of an app that has some.
  strm_t near_in[NumSlots], near_out[NumSlots], cut_in[NumSlots], cut_out[NumSlots];
  logic [NumSlots-1:0] near_in_valid, near_in_ready, near_out_valid, near_out_ready;
  logic [NumSlots-1:0] cut_in_valid, cut_in_ready, cut_out_valid, cut_out_ready;
  logic [NumSlots-1:0] wire_in_valid, wire_out_ready;
  strm_t wire_in[NumSlots];
  logic [NumDev-1:0] wire_rx_ready, wire_tx_valid;
  strm_t wire_tx[NumDev];
  logic  sliced;
  assign sliced = system != SysDirect;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_wire
    always_comb begin
      dev[s] = (s < NumDev) ? DevW'(s) : DevW'(NumDev);
      if (system == SysMux) dev[s] = sel_i[s];
    end
    via_slice #(
      .T(strm_t)
    ) u_in (
      .clk_i,
      .rst_ni,
      .s_i      (near_in[s]),
      .s_valid_i(near_in_valid[s] && sliced),
      .s_ready_o(cut_in_ready[s]),
      .m_o      (cut_in[s]),
      .m_valid_o(cut_in_valid[s]),
      .m_ready_i(slot_s_ready_i[s])
    );
    via_slice #(
      .T(strm_t)
    ) u_out (
      .clk_i,
      .rst_ni,
      .s_i      (app_out[s]),
      .s_valid_i(slot_m_valid_i[s] && sliced && system != SysViaduct),
      .s_ready_o(cut_out_ready[s]),
      .m_o      (cut_out[s]),
      .m_valid_o(cut_out_valid[s]),
      .m_ready_i(near_out_ready[s])
    );
    assign wire_in[s] = sliced ? cut_in[s] : near_in[s];
    assign wire_in_valid[s] = sliced ? cut_in_valid[s] : near_in_valid[s];
    assign near_in_ready[s] = sliced ? cut_in_ready[s] : slot_s_ready_i[s];
    assign near_out[s] = sliced ? cut_out[s] : app_out[s];
    assign near_out_valid[s] = sliced ? cut_out_valid[s] : slot_m_valid_i[s];
    assign wire_out_ready[s] = sliced ? cut_out_ready[s] : near_out_ready[s];
  end

  always_comb begin
    wire_rx_ready = '0;
    wire_tx_valid = '0;
    for (int unsigned d = 0; d < NumDev; d++) wire_tx[d] = '0;
    for (int unsigned s = 0; s < NumSlots; s++) begin
      near_in[s] = '0;
      near_in_valid[s] = 1'b0;
      near_out_ready[s] = 1'b0;
    end
    for (int unsigned d = 0; d < NumDev; d++) begin
      for (int s = NumSlots - 1; s >= 0; s--) begin  // the lowest is the last one that is looked at
        if (!chain_i && dev[s] == DevW'(d)) begin
          near_in[s] = rx[d];
          wire_tx[d] = near_out[s];
          wire_tx_valid[d] = near_out_valid[s];
          for (int unsigned o = 0; o < NumSlots; o++) begin
            if (int'(o) > s && dev[o] == DevW'(d)) begin
              near_in_valid[o]  = 1'b0;
              near_out_ready[o] = 1'b0;
            end
          end
          near_in_valid[s]  = rx_valid_i[d];
          near_out_ready[s] = tx_ready_i[d];
          wire_rx_ready[d]  = near_in_ready[s];
        end
      end
    end
    if (chain_i) begin
      near_in[0] = rx[0];
      near_in_valid[0] = rx_valid_i[0];
      wire_rx_ready[0] = near_in_ready[0];
      for (int unsigned s = 1; s < NumSlots; s++) begin
        near_in[s] = near_out[s-1];
        near_in_valid[s] = near_out_valid[s-1];
        near_out_ready[s-1] = near_in_ready[s];
      end
      wire_tx[0] = near_out[NumSlots-1];
      wire_tx_valid[0] = near_out_valid[NumSlots-1];
      near_out_ready[NumSlots-1] = tx_ready_i[0];
    end
  end

  // ---------------------------------------------------------------- this card
  logic via;
  assign via = system == SysViaduct;
  fn_ctrl_t ctrl[NumUser:1];
  strm_t fn_tx[NumUser:1], brd_tx[NumUser:1], brd_rx[NumUser:1];
  logic [NumUser:1] brd_tx_valid, brd_tx_ready, brd_rx_valid, brd_rx_ready;
  logic [NumSlots-1:0] slot_cut;
  strm_t vio_in[NumApp], vio_out[NumApp], port_in[NumSlots];
  logic [NumApp-1:0] vio_in_on, vio_out_on, vio_in_valid, vio_in_ready, vio_out_valid, vio_out_ready;
  logic [NumSlots-1:0] port_in_valid, port_out_ready, port_rst_n;

  always_comb begin
    for (int unsigned f = 1; f <= NumUser; f++) begin
      ctrl[f] = '0;
      ctrl[f].kind = AttachNone;
      fn_tx[f] = '0;
      brd_rx[f] = '0;
      brd_rx_valid[f] = 1'b0;
      brd_tx_ready[f] = 1'b1;
    end
    for (int unsigned d = 0; d < NumDev; d++) begin
      brd_rx[DevFn[d]] = rx[d];
      brd_rx_valid[DevFn[d]] = rx_valid_i[d] && via;
      brd_tx_ready[DevFn[d]] = tx_ready_i[d];
    end
  end

  // At any width: what this function mask would leave out below 512 bits are functions, and here only their ports are used.
  via_vio_switch #(
    .FnMask(FnBuilt)
  ) u_switch (
    .clk_i,
    .rst_ni,
    .route_i,
    .route_set_i,
    .state_o,
    .ctrl_i         (ctrl),
    .attached_o     (),
    .short_o        (),
    .core_rst_ni    ('1),
    .tx_i           (fn_tx),
    .tx_valid_i     ('0),
    .tx_ready_o     (),
    .rx_o           (),
    .rx_valid_o     (),
    .rx_ready_i     ('1),
    .gone_o         (),
    .brd_tx_o       (brd_tx),
    .brd_tx_valid_o (brd_tx_valid),
    .brd_tx_ready_i (brd_tx_ready),
    .brd_rx_i       (brd_rx),
    .brd_rx_valid_i (brd_rx_valid),
    .brd_rx_ready_o (brd_rx_ready),
    .slot_cut_i     (slot_cut),
    .app_in_on_o    (vio_in_on),
    .app_out_on_o   (vio_out_on),
    .app_in_o       (vio_in),
    .app_in_valid_o (vio_in_valid),
    .app_in_ready_i (vio_in_ready),
    .app_out_i      (vio_out),
    .app_out_valid_i(vio_out_valid),
    .app_out_ready_o(vio_out_ready),
    .still_o        (),
    .idle_o         ()
  );

  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    localparam int unsigned A = s * VioStreams;
    strm_t to_app[NS], from_app[NS];
    logic [NS-1:0] to_valid, from_ready;
    for (genvar k = 0; k < NS; k++) begin : gen_from
      if (k == 0) begin : gen_first
        assign from_app[k] = app_out[s];
      end else begin : gen_none
        assign from_app[k] = '0;
      end
    end
    assign port_in[s] = to_app[0];
    assign port_in_valid[s] = to_valid[0];
    assign port_out_ready[s] = from_ready[0];
    // The smallest TLBs: nothing is translated here.
    via_slot_port #(
      .PageWays(1),
      .PageSets(2),
      .HugeWays(1),
      .HugeSets(2)
    ) u_port (
      .clk_i,
      .rst_ni,
      .chan_mib_i       ('0),
      .table_i          ('0),
      .sched_i          ('0),
      .time_i           ('0),
      .ctrl_i           ('{isolate: 1'b0, reset: 1'b0, quiesce: 1'b0, run: 1'b1}),
      .loaded_i         (1'b1),
      .load_i           (1'b0),
      .stat_o           (),
      .count_o          (),
      .meter_o          (),
      .first_o          (),
      .cmd_i            ('0),
      .cmd_valid_i      (1'b0),
      .cmd_ready_o      (),
      .cpl_o            (),
      .cpl_valid_o      (),
      .cpl_ready_i      (1'b1),
      .dma_cmd_o        (),
      .dma_cmd_valid_o  (),
      .dma_cmd_ready_i  (1'b0),
      .dma_cpl_i        ('0),
      .dma_cpl_valid_i  (1'b0),
      .dma_cpl_ready_o  (),
      .dma_abort_o      (),
      .evt_o            (),
      .evt_valid_o      (),
      .evt_ready_i      (1'b1),
      .ring_err_cmd_i   (1'b0),
      .ring_err_info_i  (1'b0),
      .ring_err_cpl_i   (1'b0),
      .reg_i            ('0),
      .reg_valid_i      (1'b0),
      .reg_open_o       (),
      .reg_rvalid_o     (),
      .reg_rdata_o      (),
      .reg_err_o        (),
      .reg_timeout_i    (1'b0),
      .m_ar_o           (),
      .m_ar_valid_o     (),
      .m_ar_ready_i     (1'b0),
      .m_r_i            ('0),
      .m_r_valid_i      (1'b0),
      .m_r_ready_o      (),
      .m_aw_o           (),
      .m_aw_valid_o     (),
      .m_aw_ready_i     (1'b0),
      .m_w_o            (),
      .m_w_valid_o      (),
      .m_w_ready_i      (1'b0),
      .m_b_i            ('0),
      .m_b_valid_i      (1'b0),
      .m_b_ready_o      (),
      .walk_ar_o        (),
      .walk_ar_valid_o  (),
      .walk_ar_ready_i  (1'b0),
      .walk_r_i         ('0),
      .walk_r_valid_i   (1'b0),
      .walk_r_ready_o   (),
      .walk_aw_o        (),
      .walk_aw_valid_o  (),
      .walk_aw_ready_i  (1'b0),
      .walk_w_o         (),
      .walk_w_valid_o   (),
      .walk_w_ready_i   (1'b0),
      .walk_b_i         ('0),
      .walk_b_valid_i   (1'b0),
      .walk_b_ready_o   (),
      .vio_cut_o        (slot_cut[s]),
      .vio_in_on_i      (vio_in_on[A+:VioStreams]),
      .vio_out_on_i     (vio_out_on[A+:VioStreams]),
      .vio_in_i         (vio_in[A+:VioStreams]),
      .vio_in_valid_i   (vio_in_valid[A+:VioStreams]),
      .vio_in_ready_o   (vio_in_ready[A+:VioStreams]),
      .vio_out_o        (vio_out[A+:VioStreams]),
      .vio_out_valid_o  (vio_out_valid[A+:VioStreams]),
      .vio_out_ready_i  (vio_out_ready[A+:VioStreams]),
      .disk_ar_i        ('0),
      .disk_ar_valid_i  (1'b0),
      .disk_ar_ready_o  (),
      .disk_r_o         (),
      .disk_r_valid_o   (),
      .disk_r_ready_i   (1'b1),
      .disk_aw_i        ('0),
      .disk_aw_valid_i  (1'b0),
      .disk_aw_ready_o  (),
      .disk_w_i         ('0),
      .disk_w_valid_i   (1'b0),
      .disk_w_ready_o   (),
      .disk_flush_i     (1'b0),
      .disk_b_o         (),
      .disk_b_valid_o   (),
      .disk_b_ready_i   (1'b1),
      .slot_rst_no      (port_rst_n[s]),
      .slot_s_o         (to_app),
      .slot_s_valid_o   (to_valid),
      .slot_s_ready_i   (NS'(slot_s_ready_i[s])),
      .slot_m_i         (from_app),
      .slot_m_valid_i   (NS'(slot_m_valid_i[s] && via)),
      .slot_m_ready_o   (from_ready),
      .slot_ar_i        ('0),
      .slot_ar_valid_i  (1'b0),
      .slot_ar_ready_o  (),
      .slot_r_o         (),
      .slot_r_valid_o   (),
      .slot_r_ready_i   (1'b1),
      .slot_aw_i        ('0),
      .slot_aw_valid_i  (1'b0),
      .slot_aw_ready_o  (),
      .slot_w_i         ('0),
      .slot_w_valid_i   (1'b0),
      .slot_w_ready_o   (),
      .slot_b_o         (),
      .slot_b_valid_o   (),
      .slot_b_ready_i   (1'b1),
      .slot_reg_o       (),
      .slot_reg_valid_o (),
      .slot_reg_rvalid_i(1'b0),
      .slot_reg_rdata_i ('0),
      .slot_reg_err_i   (1'b0),
      .slot_irq_i       (1'b0),
      .irq_o            (),
      .slot_busy_i      (1'b0),
      .still_o          (),
      .idle_o           ()
    );
    if (NS > 1) begin : gen_unused
      /* verilator lint_off UNUSEDSIGNAL */
      logic unused;
      assign unused = ^{to_valid[NS-1:1], from_ready[NS-1:1]};
      /* verilator lint_on UNUSEDSIGNAL */
    end
  end

  // ---------------------------------------------------------------- the one that is chosen
  always_comb begin
    isolated_o  = slot_cut & {NumSlots{via}};
    slot_rst_no = via ? port_rst_n : {NumSlots{rst_ni}};
    for (int unsigned s = 0; s < NumSlots; s++) begin
      app_in[s] = via ? port_in[s] : wire_in[s];
      slot_s_valid_o[s] = via ? port_in_valid[s] : wire_in_valid[s];
      slot_m_ready_o[s] = via ? port_out_ready[s] : wire_out_ready[s];
    end
    for (int unsigned d = 0; d < NumDev; d++) begin
      tx[d] = via ? brd_tx[DevFn[d]] : wire_tx[d];
      tx_valid_o[d] = via ? brd_tx_valid[DevFn[d]] : wire_tx_valid[d];
      rx_ready_o[d] = via ? brd_rx_ready[DevFn[d]] : wire_rx_ready[d];
    end
  end

endmodule
