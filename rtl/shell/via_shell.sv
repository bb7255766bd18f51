// SPDX-License-Identifier: Apache-2.0
//
// The shell: everything on the card that is not user logic. Flat ports, for a board top or a simulator (docs/interfaces.md, section 2).
// Every output comes from a register, and no output depends on an input of the same cycle.

module via_shell
  import via_pkg::*;
#(
  localparam int unsigned NS = NumStreams
) (
  // Board: cycles since power-up, MiB of a DRAM channel, nominal clock in kHz.
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [        63:0] time_i,
  input  logic [        31:0] chan_mib_i,
  input  logic [        31:0] clk_khz_i,
  // BAR access, AXI4-Lite. BAR0 at 0x00000, BAR2 at 0x40000.
  input  logic [        19:0] axil_awaddr_i,
  input  logic                axil_awvalid_i,
  output logic                axil_awready_o,
  input  logic [        31:0] axil_wdata_i,
  input  logic [         3:0] axil_wstrb_i,
  input  logic                axil_wvalid_i,
  output logic                axil_wready_o,
  output logic [         1:0] axil_bresp_o,
  output logic                axil_bvalid_o,
  input  logic                axil_bready_i,
  input  logic [        19:0] axil_araddr_i,
  input  logic                axil_arvalid_i,
  output logic                axil_arready_o,
  output logic [        31:0] axil_rdata_o,
  output logic [         1:0] axil_rresp_o,
  output logic                axil_rvalid_o,
  input  logic                axil_rready_i,
  // Host memory, AXI4 manager. Answers of one id come in order.
  output logic [     IdW-1:0] host_arid_o,
  output logic [        63:0] host_araddr_o,
  output logic [         7:0] host_arlen_o,
  output logic                host_arvalid_o,
  input  logic                host_arready_i,
  input  logic [     IdW-1:0] host_rid_i,
  input  logic [   DataW-1:0] host_rdata_i,
  input  logic [         1:0] host_rresp_i,
  input  logic                host_rlast_i,
  input  logic                host_rvalid_i,
  output logic                host_rready_o,
  output logic [     IdW-1:0] host_awid_o,
  output logic [        63:0] host_awaddr_o,
  output logic [         7:0] host_awlen_o,
  output logic                host_awvalid_o,
  input  logic                host_awready_i,
  output logic [   DataW-1:0] host_wdata_o,
  output logic [   StrbW-1:0] host_wstrb_o,
  output logic                host_wlast_o,
  output logic                host_wvalid_o,
  input  logic                host_wready_i,
  input  logic [     IdW-1:0] host_bid_i,
  input  logic [         1:0] host_bresp_i,
  input  logic                host_bvalid_i,
  output logic                host_bready_o,
  // MSI-X: vector 2s = completions of slot s, 2s+1 = its events.
  output logic                msix_valid_o,
  output logic [         7:0] msix_vector_o,
  input  logic                msix_ready_i,
  // DRAM channels, AXI4 managers without ids; the address is within the channel.
  output logic [        63:0] mem_araddr_o     [ NumChan],
  output logic [         7:0] mem_arlen_o      [ NumChan],
  output logic                mem_arvalid_o    [ NumChan],
  input  logic                mem_arready_i    [ NumChan],
  input  logic [   DataW-1:0] mem_rdata_i      [ NumChan],
  input  logic [         1:0] mem_rresp_i      [ NumChan],
  input  logic                mem_rlast_i      [ NumChan],
  input  logic                mem_rvalid_i     [ NumChan],
  output logic                mem_rready_o     [ NumChan],
  output logic [        63:0] mem_awaddr_o     [ NumChan],
  output logic [         7:0] mem_awlen_o      [ NumChan],
  output logic                mem_awvalid_o    [ NumChan],
  input  logic                mem_awready_i    [ NumChan],
  output logic [   DataW-1:0] mem_wdata_o      [ NumChan],
  output logic [   StrbW-1:0] mem_wstrb_o      [ NumChan],
  output logic                mem_wlast_o      [ NumChan],
  output logic                mem_wvalid_o     [ NumChan],
  input  logic                mem_wready_i     [ NumChan],
  input  logic [         1:0] mem_bresp_i      [ NumChan],
  input  logic                mem_bvalid_i     [ NumChan],
  output logic                mem_bready_o     [ NumChan],
  // Configuration port: loads an app image into a slot.
  output logic                icap_valid_o,
  output logic [        31:0] icap_data_o,
  output logic [         3:0] icap_slot_o,
  output logic                icap_start_o,
  output logic                icap_end_o,
  input  logic                icap_ready_i,
  input  logic                icap_done_i,
  input  logic [         7:0] icap_status_i,
  input  logic [NumSlots-1:0] slot_loaded_i,
  // Slots: the ports of via_slot, directions exchanged. Stream k is in bits [k*W +: W].
  output logic                slot_rst_no      [NumSlots],
  output logic [      NS-1:0] slot_s_valid_o   [NumSlots],
  input  logic [      NS-1:0] slot_s_ready_i   [NumSlots],
  output logic [NS*DataW-1:0] slot_s_data_o    [NumSlots],
  output logic [NS*StrbW-1:0] slot_s_keep_o    [NumSlots],
  output logic [      NS-1:0] slot_s_last_o    [NumSlots],
  output logic [    NS*8-1:0] slot_s_id_o      [NumSlots],
  input  logic [      NS-1:0] slot_m_valid_i   [NumSlots],
  output logic [      NS-1:0] slot_m_ready_o   [NumSlots],
  input  logic [NS*DataW-1:0] slot_m_data_i    [NumSlots],
  input  logic [NS*StrbW-1:0] slot_m_keep_i    [NumSlots],
  input  logic [      NS-1:0] slot_m_last_i    [NumSlots],
  input  logic [    NS*8-1:0] slot_m_id_i      [NumSlots],
  input  logic [     IdW-1:0] slot_arid_i      [NumSlots],
  input  logic [     VaW-1:0] slot_araddr_i    [NumSlots],
  input  logic [         7:0] slot_arlen_i     [NumSlots],
  input  logic [         2:0] slot_arsize_i    [NumSlots],
  input  logic [         1:0] slot_arburst_i   [NumSlots],
  input  logic                slot_arvalid_i   [NumSlots],
  output logic                slot_arready_o   [NumSlots],
  output logic [     IdW-1:0] slot_rid_o       [NumSlots],
  output logic [   DataW-1:0] slot_rdata_o     [NumSlots],
  output logic [         1:0] slot_rresp_o     [NumSlots],
  output logic                slot_rlast_o     [NumSlots],
  output logic                slot_rvalid_o    [NumSlots],
  input  logic                slot_rready_i    [NumSlots],
  input  logic [     IdW-1:0] slot_awid_i      [NumSlots],
  input  logic [     VaW-1:0] slot_awaddr_i    [NumSlots],
  input  logic [         7:0] slot_awlen_i     [NumSlots],
  input  logic [         2:0] slot_awsize_i    [NumSlots],
  input  logic [         1:0] slot_awburst_i   [NumSlots],
  input  logic                slot_awvalid_i   [NumSlots],
  output logic                slot_awready_o   [NumSlots],
  input  logic [   DataW-1:0] slot_wdata_i     [NumSlots],
  input  logic [   StrbW-1:0] slot_wstrb_i     [NumSlots],
  input  logic                slot_wlast_i     [NumSlots],
  input  logic                slot_wvalid_i    [NumSlots],
  output logic                slot_wready_o    [NumSlots],
  output logic [     IdW-1:0] slot_bid_o       [NumSlots],
  output logic [         1:0] slot_bresp_o     [NumSlots],
  output logic                slot_bvalid_o    [NumSlots],
  input  logic                slot_bready_i    [NumSlots],
  output logic                slot_reg_valid_o [NumSlots],
  output logic                slot_reg_write_o [NumSlots],
  output logic [        11:0] slot_reg_addr_o  [NumSlots],
  output logic [        31:0] slot_reg_wdata_o [NumSlots],
  input  logic                slot_reg_rvalid_i[NumSlots],
  input  logic [        31:0] slot_reg_rdata_i [NumSlots],
  input  logic                slot_reg_err_i   [NumSlots],
  input  logic                slot_irq_i       [NumSlots],
  input  logic                slot_busy_i      [NumSlots],
  // Registered: while it is high and no input is valid, a clock edge changes no register.
  output logic                quiet_o
);

  assign axil_awready_o = '0;
  assign axil_wready_o = '0;
  assign axil_bresp_o = '0;
  assign axil_bvalid_o = '0;
  assign axil_arready_o = '0;
  assign axil_rdata_o = '0;
  assign axil_rresp_o = '0;
  assign axil_rvalid_o = '0;
  assign host_arid_o = '0;
  assign host_araddr_o = '0;
  assign host_arlen_o = '0;
  assign host_arvalid_o = '0;
  assign host_rready_o = '0;
  assign host_awid_o = '0;
  assign host_awaddr_o = '0;
  assign host_awlen_o = '0;
  assign host_awvalid_o = '0;
  assign host_wdata_o = '0;
  assign host_wstrb_o = '0;
  assign host_wlast_o = '0;
  assign host_wvalid_o = '0;
  assign host_bready_o = '0;
  assign msix_valid_o = '0;
  assign msix_vector_o = '0;
  assign mem_araddr_o = '{default: '0};
  assign mem_arlen_o = '{default: '0};
  assign mem_arvalid_o = '{default: '0};
  assign mem_rready_o = '{default: '0};
  assign mem_awaddr_o = '{default: '0};
  assign mem_awlen_o = '{default: '0};
  assign mem_awvalid_o = '{default: '0};
  assign mem_wdata_o = '{default: '0};
  assign mem_wstrb_o = '{default: '0};
  assign mem_wlast_o = '{default: '0};
  assign mem_wvalid_o = '{default: '0};
  assign mem_bready_o = '{default: '0};
  assign icap_valid_o = '0;
  assign icap_data_o = '0;
  assign icap_slot_o = '0;
  assign icap_start_o = '0;
  assign icap_end_o = '0;
  assign slot_rst_no = '{default: '0};
  assign slot_s_valid_o = '{default: '0};
  assign slot_s_data_o = '{default: '0};
  assign slot_s_keep_o = '{default: '0};
  assign slot_s_last_o = '{default: '0};
  assign slot_s_id_o = '{default: '0};
  assign slot_m_ready_o = '{default: '0};
  assign slot_arready_o = '{default: '0};
  assign slot_rid_o = '{default: '0};
  assign slot_rdata_o = '{default: '0};
  assign slot_rresp_o = '{default: '0};
  assign slot_rlast_o = '{default: '0};
  assign slot_rvalid_o = '{default: '0};
  assign slot_awready_o = '{default: '0};
  assign slot_wready_o = '{default: '0};
  assign slot_bid_o = '{default: '0};
  assign slot_bresp_o = '{default: '0};
  assign slot_bvalid_o = '{default: '0};
  assign slot_reg_valid_o = '{default: '0};
  assign slot_reg_write_o = '{default: '0};
  assign slot_reg_addr_o = '{default: '0};
  assign slot_reg_wdata_o = '{default: '0};
  assign quiet_o = '0;

endmodule
