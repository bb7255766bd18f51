// SPDX-License-Identifier: Apache-2.0
//
// via_fn_switch between functions (gen_fn[f].u_fn), the board (gen_fn[f].u_brd) and the apps of slots (gen_slot[s].u_app), all driven by
// the test. The edge of a slot is as in via_slot_port. The clock of the switch is stopped while it reports that nothing moves.

module via_fn_switch_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumUser = 3
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [         1:0] kind    [NumUser:1],
  input  logic [         3:0] slot    [NumUser:1],
  input  logic [   NumUser:1] core_rst,                // active high
  input  logic [NumSlots-1:0] cut,
  output logic [   NumUser:1] attached,
  output logic [        31:0] count   [NumUser:1][3],
  output logic                idle_o
);

  fn_ctrl_t ctrl[NumUser:1];
  strm_t tx[NumUser:1], rx[NumUser:1], brd_tx[NumUser:1], brd_rx[NumUser:1];
  logic [NumUser:1] tx_valid, tx_ready, rx_valid, rx_ready, brd_tx_valid, brd_tx_ready, brd_rx_valid, brd_rx_ready;

  for (genvar f = 1; f <= NumUser; f++) begin : gen_fn
    always_comb begin
      ctrl[f] = '0;
      ctrl[f].kind = attach_e'(kind[f]);
      ctrl[f].slot = slot[f];
    end
    via_fn_tb_strm u_fn (
      .clk_i,
      .rst_ni   (rst_ni && !core_rst[f]),
      .t_o      (tx[f]),
      .t_valid_o(tx_valid[f]),
      .t_ready_i(tx_ready[f]),
      .r_i      (rx[f]),
      .r_valid_i(rx_valid[f]),
      .r_ready_o(rx_ready[f])
    );
    via_fn_tb_strm u_brd (
      .clk_i,
      .rst_ni,
      .t_o      (brd_rx[f]),
      .t_valid_o(brd_rx_valid[f]),
      .t_ready_i(brd_rx_ready[f]),
      .r_i      (brd_tx[f]),
      .r_valid_i(brd_tx_valid[f]),
      .r_ready_o(brd_tx_ready[f])
    );
  end

  logic [NumSlots-1:0] on, s_tx_valid, s_tx_ready, s_rx_valid, s_rx_ready, src_still;
  logic [FnW-1:0] fn[NumSlots], rx_fn[NumSlots];
  strm_t s_tx[NumSlots], s_rx[NumSlots];
  logic clk;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    logic app_ready, app_valid, src_valid, src_ready;
    logic [FnW-1:0] dst;
    via_fn_tb_strm u_app (
      .clk_i,
      .rst_ni   (rst_ni && !cut[s]),
      .t_o      (s_rx[s]),
      .t_valid_o(app_valid),
      .t_ready_i(app_ready),
      .r_i      (s_tx[s]),
      .r_valid_i(s_tx_valid[s] && !cut[s]),
      .r_ready_o(src_ready)
    );
    assign s_tx_ready[s] = src_ready || cut[s];
    via_fn_src #(
      .DstW(FnW)
    ) u_src (
      .clk_i    (clk),
      .rst_ni,
      .cut_i    (cut[s]),
      .dst_i    (on[s] ? fn[s] : '1),
      .dst_o    (dst),
      .s_valid_i(app_valid && !cut[s]),
      .s_last_i (s_rx[s].last),
      .s_ready_o(app_ready),
      .m_valid_o(src_valid),
      // Beats that are not for a function go to the movers, which accept them.
      .m_ready_i(dst == '1 || s_rx_ready[s]),
      .open_o   (),
      .begin_o  (),
      .cut_o    (),
      .still_o  (src_still[s])
    );
    assign s_rx_valid[s] = src_valid && dst != '1;
    assign rx_fn[s] = cut[s] ? '0 : dst;
  end

  logic still;
  logic [11*NumUser+4*NumSlots-1:0] inputs;
  logic [NumUser:1][5:0] where;
  for (genvar f = 1; f <= NumUser; f++) begin : gen_where
    assign where[f] = {kind[f], slot[f]};
  end
  assign inputs = {where, core_rst, cut, s_rx_valid, s_tx_ready, on, tx_valid, rx_ready, brd_tx_ready, brd_rx_valid};
  via_tb_gate #(
    .W($bits(inputs))
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (still && &src_still),
    .inputs_i(inputs),
    .clk_o   (clk)
  );

  via_fn_switch #(
    .NumUser(NumUser)
  ) u_dut (
    .clk_i          (clk),
    .rst_ni,
    .ctrl_i         (ctrl),
    .core_rst_ni    (~core_rst),
    .attached_o     (attached),
    .tx_i           (tx),
    .tx_valid_i     (tx_valid),
    .tx_ready_o     (tx_ready),
    .rx_o           (rx),
    .rx_valid_o     (rx_valid),
    .rx_ready_i     (rx_ready),
    .brd_tx_o       (brd_tx),
    .brd_tx_valid_o (brd_tx_valid),
    .brd_tx_ready_i (brd_tx_ready),
    .brd_rx_i       (brd_rx),
    .brd_rx_valid_i (brd_rx_valid),
    .brd_rx_ready_o (brd_rx_ready),
    .slot_cut_i     (cut),
    .slot_on_o      (on),
    .slot_fn_o      (fn),
    .slot_tx_o      (s_tx),
    .slot_tx_valid_o(s_tx_valid),
    .slot_tx_ready_i(s_tx_ready),
    .slot_rx_i      (s_rx),
    .slot_rx_valid_i(s_rx_valid),
    .slot_rx_ready_o(s_rx_ready),
    .slot_rx_fn_i   (rx_fn),
    .count_o        (count),
    .still_o        (still),
    .idle_o
  );

endmodule
