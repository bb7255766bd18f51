// SPDX-License-Identifier: Apache-2.0
//
// The common configuration structure: features, device status, queues.
//
// Throughput: an access a cycle. Latency: a read is combinational, except for the registers of queues, where it takes one cycle; a write
// takes one cycle. Status bits are only ever added; a write of 0 requests a reset from the parent, which clears everything here by
// `clear_i`; until then the status reads as not 0.
// Misuse: FEATURES_OK is not accepted unless the features are a subset of those offered, with VERSION_1 and all that they need (`Needs`)
// among them; after it features cannot change; DRIVER_OK is not accepted without it. A queue that does not exist reads as 0, its vector as
// 0xffff.
// Source: VIRTIO 1.3, 2.1, 2.2, 4.1.4.3.

module via_virtio_pci_common
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2,  // queues
  parameter int unsigned QSize = QSizeMax,  // largest queue size offered
  parameter feature_need_t [NeedsMax-1:0] Needs = '0  // features that need other ones
) (
  input  logic               clk_i,
  input  logic               clear_i,                  // level: device reset
  input  logic               resetting_i,              // level: a reset is requested or in progress
  output logic               reset_o,                  // one-cycle pulse: the driver requests a reset
  input  logic    [    63:0] offer_i,                  // the owner's mask; sampled until a driver begins
  input  logic    [    63:0] withhold_i,               // features that the device cannot serve now
  output logic    [    63:0] offered_o,                // features offered
  input  logic               write_i,                  // pulse: write
  input  logic    [     5:0] addr_i,                   // word address
  input  logic    [     3:0] strb_i,                   // bytes written
  input  logic    [    31:0] wdata_i,                  // data to write
  output logic    [    31:0] rdata_o,                  // read data
  output logic    [     7:0] status_o,                 // device status
  output logic    [    63:0] features_o,               // 0 before FEATURES_OK
  output logic               driver_ok_o,              // level: DRIVER_OK is set
  output vq_cfg_t            queue_o        [  NumQ],  // queues as the driver has set them up
  output logic    [NumQ-1:0] queue_reset_o,            // level: the queue is under reset
  input  logic    [NumQ-1:0] queue_quiet_i,            // level: nothing of the queue is in flight
  output logic    [NumQ-1:0] queue_busy_o,             // level: a queue reset makes progress
  output logic    [     7:0] vector_o       [NumQ+1],  // of the queues, then of the configuration; 0xff: none
  input  logic               error_i,                  // pulse: DEVICE_NEEDS_RESET
  input  logic               config_change_i,          // one-cycle pulse: the device configuration has changed
  input  logic               dev_read_i                // one-cycle pulse: device configuration is read
);

  localparam bit NumQOk = via_pkg::param_in("via_virtio_pci_common NumQ", NumQ, 1, QueuesMax);
  localparam bit QSizeOk = via_pkg::param_pow2("via_virtio_pci_common QSize", QSize, 2, 32768);

  localparam int unsigned NumVec = NumQ + 1;
  // Bits of the device status that a driver may set.
  localparam logic [7:0] StatusDriver = 8'h8f;
  localparam int unsigned DriverOk = 2;
  localparam int unsigned FeaturesOk = 3;
  localparam int unsigned NeedsReset = 6;

  logic [31:0] dev_sel_q, drv_sel_q;
  logic [63:0] wanted_q, offer_q, offered_q;
  logic [7:0] status_q, generation_q, vector_q;
  logic [15:0] select_q;
  logic [NumQ-1:0] selected_q;  // select_q is this queue
  logic changed_q;  // since the device configuration was read last
  logic negotiated;
  assign negotiated = status_q[FeaturesOk];

  // ---------------------------------------------------------------- status
  logic acceptable, status_write;
  logic [7:0] status_add;
  // From the first status bit to the next reset the driver sees the same offer.
  always_ff @(posedge clk_i) begin
    if (status_q == '0) offer_q <= offer_i;
    offered_q <= offer_q & ~withhold_i;
  end
  assign offered_o = offered_q;

  assign acceptable = (wanted_q & ~offered_q) == '0 && wanted_q[FVersion1] && features_whole(wanted_q, Needs);
  assign status_write = write_i && addr_i == 6'h14 && strb_i[0];
  assign reset_o = status_write && wdata_i[7:0] == '0;
  always_comb begin
    status_add = wdata_i[7:0] & StatusDriver;
    if (!acceptable) status_add[FeaturesOk] = negotiated;
    // A driver that sets DRIVER_OK in the same write cannot have seen FEATURES_OK.
    if (!negotiated) status_add[DriverOk] = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      dev_sel_q    <= '0;
      drv_sel_q    <= '0;
      wanted_q     <= '0;
      status_q     <= '0;
      generation_q <= '0;
      changed_q    <= 1'b0;
      vector_q     <= '1;
      select_q     <= '0;
      selected_q   <= NumQ'(1);
    end else begin
      if (status_write) status_q <= status_q | status_add;
      if (error_i) status_q[NeedsReset] <= 1'b1;
      // Incremented once for all changes between two reads, so that a driver cannot miss them by wrap-around.
      if (config_change_i && (!changed_q || dev_read_i)) generation_q <= generation_q + 1'b1;
      if (config_change_i) changed_q <= 1'b1;
      else if (dev_read_i) changed_q <= 1'b0;
      if (write_i) begin
        unique case (addr_i)
          6'h00:   dev_sel_q <= merge_bytes(dev_sel_q, wdata_i, strb_i);
          6'h08:   drv_sel_q <= merge_bytes(drv_sel_q, wdata_i, strb_i);
          6'h0c: begin
            if (drv_sel_q == 32'd0 && !negotiated) wanted_q[31:0] <= merge_bytes(wanted_q[31:0], wdata_i, strb_i);
            if (drv_sel_q == 32'd1 && !negotiated) wanted_q[63:32] <= merge_bytes(wanted_q[63:32], wdata_i, strb_i);
          end
          6'h10:   if (&strb_i[1:0]) vector_q <= (wdata_i[15:0] < 16'(NumVec)) ? wdata_i[7:0] : '1;
          6'h14:
          if (&strb_i[3:2]) begin
            select_q <= wdata_i[31:16];
            for (int unsigned q = 0; q < NumQ; q++) selected_q[q] <= wdata_i[31:16] == 16'(q);
          end
          default: ;
        endcase
      end
    end
  end

  assign features_o  = negotiated ? wanted_q : '0;
  assign driver_ok_o = status_q[DriverOk] && !resetting_i;

  // ---------------------------------------------------------------- queues
  logic [NumQ-1:0][31:0] q_rdata;
  logic [31:0] q_word, q_word_q;
  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    via_virtio_pci_queue #(
      .QSize (QSize),
      .NumVec(NumVec),
      .Index (q)
    ) u_queue (
      .clk_i,
      .clear_i,
      .write_i     (write_i && selected_q[q]),
      .addr_i,
      .strb_i,
      .wdata_i,
      .rdata_o     (q_rdata[q]),
      .negotiated_i(negotiated),
      .packed_i    (features_o[FRingPacked]),
      .ring_reset_i(features_o[FRingReset]),
      .cfg_o       (queue_o[q]),
      .vector_o    (vector_o[q]),
      .reset_o     (queue_reset_o[q]),
      .quiet_i     (queue_quiet_i[q]),
      .busy_o      (queue_busy_o[q])
    );
  end
  assign vector_o[NumQ] = vector_q;

  always_comb begin
    q_word = (addr_i == 6'h18 && selected_q == '0) ? 32'hffff_0000 : '0;  // no such queue
    for (int unsigned q = 0; q < NumQ; q++) if (selected_q[q]) q_word |= q_rdata[q];
  end
  always_ff @(posedge clk_i) q_word_q <= q_word;

  // ---------------------------------------------------------------- read
  logic [7:0] status;
  // Reads as not 0 until the reset is done.
  assign status   = status_q | 8'(resetting_i);
  assign status_o = status;
  always_comb begin
    unique case (addr_i)
      6'h00:   rdata_o = dev_sel_q;
      6'h04: begin
        unique case (dev_sel_q)
          32'd0:   rdata_o = offered_q[31:0];
          32'd1:   rdata_o = offered_q[63:32];
          default: rdata_o = '0;
        endcase
      end
      6'h08:   rdata_o = drv_sel_q;
      6'h0c: begin
        unique case (drv_sel_q)
          32'd0:   rdata_o = wanted_q[31:0];
          32'd1:   rdata_o = wanted_q[63:32];
          default: rdata_o = '0;
        endcase
      end
      6'h10:   rdata_o = {16'(NumQ), {8{vector_q == '1}}, vector_q};
      6'h14:   rdata_o = {select_q, generation_q, status};
      6'h3c:   rdata_o = '0;  // admin_queue_index, admin_queue_num: none
      default: rdata_o = q_word_q;
    endcase
  end

endmodule
