// SPDX-License-Identifier: Apache-2.0
//
// Configuration space of a virtio function: identity, the list of virtio capabilities, and the window of the PCI_CFG capability through which
// BAR0 can be reached without mapping it.
//
// Throughput: an access a cycle. Latency: a read is combinational; a write takes one cycle. `win_*` gives the meaning of an access to the
// window's data word as an access to BAR0. The list starts at CfgCaps, where the board's own capabilities end; its last next pointer is 0.
// Misuse: a window with another BAR, a length other than 1, 2 or 4, or an offset that is not a multiple of the length or lies outside the
// virtio registers: nothing is accessed, it reads as 0. Source: VIRTIO 1.3, 4.1.4.

module via_virtio_pci_cap
  import via_virtio_pkg::*;
#(
  parameter logic [15:0] DeviceType = 16'd1,  // virtio device type
  parameter logic [23:0] Class = 24'h020000,  // PCI class code
  parameter int unsigned NumQ = 2  // queues
) (
  input  logic        clk_i,
  input  logic        clear_i,      // pulse: function reset, closes the window
  input  logic [ 7:0] addr_i,       // byte address
  input  logic        write_i,      // pulse: write
  input  logic [ 3:0] strb_i,       // bytes written
  input  logic [31:0] wdata_i,      // data to write
  output logic [31:0] rdata_o,      // read data, except for the data word of the window
  // the data word of the window
  output logic        win_hit_o,    // addr_i is this word
  output logic        win_ok_o,     // level: the window is valid
  output logic [15:0] win_addr_o,   // address of the word in BAR0
  output logic [ 3:0] win_strb_o,   // byte enables for it
  output logic [31:0] win_wdata_o,  // data for it
  output logic [ 1:0] win_shift_o,  // bytes by which read data is moved down
  output logic [ 3:0] win_keep_o    // bytes of it that are valid
);

  localparam bit DeviceTypeOk = via_pkg::param_in("via_virtio_pci_cap DeviceType", 32'(DeviceType), 1, 63);
  localparam bit NumQOk = via_pkg::param_in("via_virtio_pci_cap NumQ", NumQ, 1, QueuesMax);

  // Addresses of the capabilities.
  localparam logic [7:0] CapCommon = CfgCaps;
  localparam logic [7:0] CapNotify = CapCommon + 8'd16;
  localparam logic [7:0] CapIsr = CapNotify + 8'd20;
  localparam logic [7:0] CapDevice = CapIsr + 8'd16;
  localparam logic [7:0] CapWindow = CapDevice + 8'd16;
  localparam logic [7:0] CapVendor = CapWindow + 8'd20;
  localparam logic [15:0] Vendor = 16'h1af4;
  localparam logic [15:0] Owner = 16'h1209;  // of the vendor capability, as in the management function; 1af4 is not allowed here

  // Word 0 of a capability: vendor specific (9), next, length, kind.
  function automatic logic [31:0] head(input logic [7:0] next, input logic [7:0] len, input logic [7:0] kind);
    return {kind, len, next, 8'h09};
  endfunction

  // ---------------------------------------------------------------- the window's own fields
  logic [31:0] offset_q, length_q;
  logic [7:0] bar_q;

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      bar_q    <= '0;
      offset_q <= '0;
      length_q <= '0;
    end else if (write_i) begin
      if (addr_i == CapWindow + 8'd4 && strb_i[0]) bar_q <= wdata_i[7:0];
      if (addr_i == CapWindow + 8'd8) offset_q <= merge_bytes(offset_q, wdata_i, strb_i);
      if (addr_i == CapWindow + 8'd12) length_q <= merge_bytes(length_q, wdata_i, strb_i);
    end
  end

  // ---------------------------------------------------------------- the window's data
  // A write may leave out bytes of the window: they keep their last value.
  logic [31:0] data_q, data;
  logic [3:0] keep, keep_q, strb_q;
  logic fits, ok_q;
  assign win_hit_o = addr_i == CapWindow + 8'd16;
  assign data = merge_bytes(data_q, wdata_i, strb_i);
  always_ff @(posedge clk_i) begin
    if (clear_i) data_q <= '0;
    else if (write_i && win_hit_o) data_q <= data;
  end

  always_comb begin
    unique case (length_q)
      32'd1:   {fits, keep} = {1'b1, 4'b0001};
      32'd2:   {fits, keep} = {!offset_q[0], 4'b0011};
      32'd4:   {fits, keep} = {offset_q[1:0] == 2'b00, 4'b1111};
      default: {fits, keep} = '0;
    endcase
  end
  // Registered: the fields were written by an earlier access.
  always_ff @(posedge clk_i) begin
    ok_q   <= fits && bar_q == 8'h0 && offset_q < 32'(BarMsixTable);
    keep_q <= keep;
    strb_q <= keep << offset_q[1:0];
  end
  assign win_ok_o = ok_q;
  assign win_addr_o = {offset_q[15:2], 2'b00};
  assign win_shift_o = offset_q[1:0];
  assign win_keep_o = keep_q;
  assign win_strb_o = strb_q;
  assign win_wdata_o = data << {offset_q[1:0], 3'b000};

  // ---------------------------------------------------------------- read
  always_comb begin
    unique case (addr_i)
      8'h00:             rdata_o = {16'h1040 + DeviceType, Vendor};
      8'h08:             rdata_o = {Class, 8'h01};
      8'h10:             rdata_o = 32'hffff_0004;  // BAR0: 64 KiB, 64-bit address
      8'h14:             rdata_o = '1;
      8'h2c:             rdata_o = {16'h1040 + DeviceType, Vendor};
      8'h7c:             rdata_o = {16'(NumQ), 16'h0};  // MSI-X message control: vectors - 1
      8'h80:             rdata_o = 32'(BarMsixTable);
      8'h84:             rdata_o = 32'(BarMsixPending);
      CapCommon:         rdata_o = head(CapNotify, 8'd16, 8'd1);
      CapCommon + 8'd8:  rdata_o = 32'(BarCommon);
      CapCommon + 8'd12: rdata_o = 32'h40;
      CapNotify:         rdata_o = head(CapIsr, 8'd20, 8'd2);
      CapNotify + 8'd8:  rdata_o = 32'(BarNotify);
      CapNotify + 8'd12: rdata_o = 32'(4 * NumQ);
      CapNotify + 8'd16: rdata_o = 32'd4;  // notify_off_multiplier
      CapIsr:            rdata_o = head(CapDevice, 8'd16, 8'd3);
      CapIsr + 8'd8:     rdata_o = 32'(BarIsr);
      CapIsr + 8'd12:    rdata_o = 32'h4;
      CapDevice:         rdata_o = head(CapWindow, 8'd16, 8'd4);
      CapDevice + 8'd8:  rdata_o = 32'(BarDevice);
      CapDevice + 8'd12: rdata_o = 32'h1000;
      CapWindow:         rdata_o = head(CapVendor, 8'd20, 8'd5);
      CapWindow + 8'd4:  rdata_o = 32'(bar_q);
      CapWindow + 8'd8:  rdata_o = offset_q;
      CapWindow + 8'd12: rdata_o = length_q;
      // Vendor capability: vendor id, BAR 0, version 1 of the layout; says where the counters are.
      CapVendor:         rdata_o = head(8'h00, 8'd16, 8'd9);
      CapVendor + 8'd4:  rdata_o = {8'd1, 8'd0, Owner};
      CapVendor + 8'd8:  rdata_o = 32'(BarStat);
      CapVendor + 8'd12: rdata_o = 32'h1000;
      default:           rdata_o = '0;
    endcase
  end

endmodule
