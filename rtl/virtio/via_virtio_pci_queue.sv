// SPDX-License-Identifier: Apache-2.0
//
// The registers of one virtqueue: what the common configuration structure shows while the queue is selected.
//
// Throughput: a write a cycle. Latency: one cycle. Once the queue is enabled, size and addresses do not change until the queue or the
// device is reset, whatever the driver writes. A queue reset is a level from the driver's write until `quiet_i`, which is looked at from
// the third cycle on, so that a notification just given, or a chain that leaves the store at that moment, is not overlooked; then the queue
// is as after power-up.
// Misuse: a size that the ring format does not allow is not accepted; a vector that does not exist reads back as 0xffff; the queue cannot
// be disabled by writing 0. Source: VIRTIO 1.3, 4.1.4.3.

module via_virtio_pci_queue
  import via_virtio_pkg::*;
#(
  parameter int unsigned QSize = QSizeMax,  // largest size offered
  parameter int unsigned NumVec = 3,  // MSI-X vectors of the function
  parameter int unsigned Index = 0  // number of the queue
) (
  input  logic           clk_i,
  input  logic           clear_i,       // level: device reset
  input  logic           write_i,       // pulse: write of the word addr_i of this queue
  input  logic    [ 5:0] addr_i,        // word address in the common configuration
  input  logic    [ 3:0] strb_i,        // bytes written
  input  logic    [31:0] wdata_i,       // data to write
  output logic    [31:0] rdata_o,       // read data
  input  logic           negotiated_i,  // level: FEATURES_OK is set
  input  logic           packed_i,      // level: RING_PACKED was negotiated
  input  logic           ring_reset_i,  // level: RING_RESET was negotiated
  output vq_cfg_t        cfg_o,         // the queue as set up
  output logic    [ 7:0] vector_o,      // its MSI-X vector; 0xff: none
  output logic           reset_o,       // level: the queue is under reset
  input  logic           quiet_i,       // level: nothing of the queue is in flight
  output logic           busy_o         // level: something moves without an input
);

  localparam bit QSizeOk = via_pkg::param_pow2("via_virtio_pci_queue QSize", QSize, 2, 32768);
  localparam bit NumVecOk = via_pkg::param_in("via_virtio_pci_queue NumVec", NumVec, 1, 255);
  localparam bit IndexOk = via_pkg::param_in("via_virtio_pci_queue Index", Index, 0, QueuesMax - 1);

  logic [15:0] size_q;
  logic [63:0] desc_q, driver_q, device_q;
  logic [7:0] vector_q;
  logic enable_q, reset_q;
  logic [1:0] settled_q;

  // ---------------------------------------------------------------- checks
  // 16-bit fields can only be written whole, as the specification demands; half a field is not accepted.
  logic [15:0] size, vector;
  logic size_ok, vector_ok, pow2;
  assign {vector, size} = wdata_i;
  assign pow2 = (size & (size - 16'd1)) == '0;
  assign size_ok = size != '0 && size <= 16'(QSize) && (packed_i || pow2);
  assign vector_ok = vector < 16'(NumVec);

  // ---------------------------------------------------------------- registers
  logic set_up;  // not enabled: addresses and size may change
  logic finish;
  assign set_up = write_i && !enable_q && !reset_q;
  assign finish = reset_q && settled_q == '1 && quiet_i;
  assign busy_o = reset_q && settled_q != '1 || finish;

  always_ff @(posedge clk_i) begin
    if (clear_i || finish) begin
      size_q   <= 16'(QSize);
      vector_q <= '1;
      enable_q <= 1'b0;
      reset_q  <= 1'b0;
      desc_q   <= '0;
      driver_q <= '0;
      device_q <= '0;
    end else begin
      if (write_i && addr_i == 6'h18 && &strb_i[3:2]) vector_q <= vector_ok ? vector[7:0] : '1;
      if (write_i && addr_i == 6'h38 && strb_i[2] && wdata_i[16] && ring_reset_i) reset_q <= 1'b1;
      if (set_up) begin
        if (addr_i == 6'h18 && &strb_i[1:0] && size_ok) size_q <= size;
        if (addr_i == 6'h1c && strb_i[0] && wdata_i[0] && negotiated_i) enable_q <= 1'b1;
        for (int unsigned b = 0; b < 4; b++) begin
          if (strb_i[b]) begin
            if (addr_i == 6'h20) desc_q[8*b+:8] <= wdata_i[8*b+:8];
            if (addr_i == 6'h24) desc_q[32+8*b+:8] <= wdata_i[8*b+:8];
            if (addr_i == 6'h28) driver_q[8*b+:8] <= wdata_i[8*b+:8];
            if (addr_i == 6'h2c) driver_q[32+8*b+:8] <= wdata_i[8*b+:8];
            if (addr_i == 6'h30) device_q[8*b+:8] <= wdata_i[8*b+:8];
            if (addr_i == 6'h34) device_q[32+8*b+:8] <= wdata_i[8*b+:8];
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!reset_q) settled_q <= '0;
    else if (settled_q != '1) settled_q <= settled_q + 1'b1;
  end

  always_comb begin
    unique case (addr_i)
      6'h18:   rdata_o = {{8{vector_q == '1}}, vector_q, size_q};
      6'h1c:   rdata_o = {16'(Index), 15'h0, enable_q};  // queue_notify_off
      6'h20:   rdata_o = desc_q[31:0];
      6'h24:   rdata_o = desc_q[63:32];
      6'h28:   rdata_o = driver_q[31:0];
      6'h2c:   rdata_o = driver_q[63:32];
      6'h30:   rdata_o = device_q[31:0];
      6'h34:   rdata_o = device_q[63:32];
      6'h38:   rdata_o = {15'h0, reset_q, 16'(Index)};  // queue_notify_data
      default: rdata_o = '0;
    endcase
  end

  assign cfg_o = '{enable: enable_q, size: size_q, desc: desc_q, driver: driver_q, device: device_q};
  assign vector_o = vector_q;
  assign reset_o = reset_q;

endmodule
