// SPDX-License-Identifier: Apache-2.0
//
// via_vio_switch between functions (gen_fn[f].u_fn), the board (gen_fn[f].u_brd) and the streams of apps (gen_app[a].u_app), all driven by
// the test. Between a function and the switch is via_fn_user; the edge of a slot is as in via_slot_port, without movers: what an app sends
// without a route waits. The clock of the switch is stopped while it reports that nothing moves.

module via_vio_switch_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  localparam int unsigned NumUser = FnInput,
  localparam int unsigned NumApp  = NumSlots * VioStreams
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [         1:0] kind     [NumUser:1],
  input  logic [         3:0] slot     [NumUser:1],
  input  logic [         1:0] strm     [NumUser:1],
  input  logic [        20:0] set,                      // vio_route_t
  input  logic                set_valid,
  output logic [        10:0] state,                    // vio_state_t
  input  logic [   NumUser:1] core_rst,                 // active high
  input  logic [NumSlots-1:0] cut,
  output logic [   NumUser:1] attached,
  output logic [  NumApp-1:0] in_on,
  output logic [  NumApp-1:0] out_on,
  output logic [        31:0] count    [NumUser:1][3],
  output logic                idle_o
);

  fn_ctrl_t ctrl[NumUser:1];
  strm_t tx[NumUser:1], rx[NumUser:1], brd_tx[NumUser:1], brd_rx[NumUser:1];
  logic [NumUser:1] tx_valid, tx_ready, rx_valid, rx_ready, brd_tx_valid, brd_tx_ready, brd_rx_valid, brd_rx_ready, gone;
  logic [1:0] shorts[NumUser:1];
  logic [NumUser:1] user_still;
  logic clk;

  for (genvar f = 1; f <= NumUser; f++) begin : gen_fn
    strm_t to_fn;
    logic to_fn_valid, to_fn_ready;
    always_comb begin
      ctrl[f] = '0;
      ctrl[f].kind = attach_e'(kind[f]);
      ctrl[f].slot = slot[f];
      ctrl[f].stream = strm[f];
    end
    via_vio_tb_strm u_fn (
      .clk_i,
      .rst_ni   (rst_ni && !core_rst[f]),
      .t_o      (tx[f]),
      .t_valid_o(tx_valid[f]),
      .t_ready_i(tx_ready[f]),
      .r_i      (to_fn),
      .r_valid_i(to_fn_valid),
      .r_ready_o(to_fn_ready)
    );
    via_fn_user #(
      .Owed(f == FnBlk)
    ) u_user (
      .clk_i      (clk),
      .rst_ni,
      .core_rst_ni(!core_rst[f]),
      .gone_i     (gone[f]),
      .short_i    (shorts[f]),
      .sent_i     (tx_valid[f] && tx_ready[f]),
      .last_i     (tx[f].last),
      .s_i        (rx[f]),
      .s_valid_i  (rx_valid[f]),
      .s_ready_o  (rx_ready[f]),
      .m_o        (to_fn),
      .m_valid_o  (to_fn_valid),
      .m_ready_i  (to_fn_ready),
      .count_o    (count[f]),
      .still_o    (user_still[f]),
      .idle_o     ()
    );
    via_vio_tb_strm u_brd (
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

  logic [NumApp-1:0] in_valid, in_ready, out_valid, out_ready, src_still, app_take, app_send;
  strm_t in[NumApp], out[NumApp];

  for (genvar a = 0; a < NumApp; a++) begin : gen_app
    localparam int unsigned S = a / VioStreams;
    logic app_ready, src_valid, app_in_ready;
    logic [1:0] dst;
    via_vio_tb_strm u_app (
      .clk_i,
      .rst_ni   (rst_ni && !cut[S]),
      .t_o      (out[a]),
      .t_valid_o(app_send[a]),
      .t_ready_i(app_ready),
      .r_i      (in[a]),
      .r_valid_i(in_valid[a] && !cut[S]),
      .r_ready_o(app_in_ready)
    );
    assign in_ready[a] = app_in_ready || cut[S];
    assign app_take[a] = in_ready[a];
    via_vio_edge #(
      .DstW(2)
    ) u_src (
      .clk_i    (clk),
      .rst_ni,
      .cut_i    (cut[S]),
      .dst_i    (out_on[a] ? 2'd2 : 2'd1),
      .dst_o    (dst),
      .s_valid_i(app_send[a] && !cut[S]),
      .s_last_i (out[a].last),
      .s_ready_o(app_ready),
      .m_valid_o(src_valid),
      .m_ready_i(dst == 2'd2 && out_ready[a]),
      .open_o   (),
      .still_o  (src_still[a])
    );
    assign out_valid[a] = src_valid && dst == 2'd2;
  end

  logic still;
  logic [NumUser:1][7:0] where;
  for (genvar f = 1; f <= NumUser; f++) begin : gen_where
    assign where[f] = {kind[f], slot[f], strm[f]};
  end
  logic [13*NumUser+NumSlots+5*NumApp+22-1:0] inputs;
  assign inputs = {
    where, core_rst, cut, app_send, app_take, out_valid, in_on, out_on, tx_valid, rx_ready, brd_tx_ready, brd_rx_valid, set, set_valid
  };
  via_tb_gate #(
    .W($bits(inputs))
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (still && &src_still && &user_still),
    .inputs_i(inputs),
    .clk_o   (clk)
  );

  // All functions, also with a data path that the functions themselves do not have.
  via_vio_switch #(
    .FnMask(7'h3e)
  ) u_dut (
    .clk_i          (clk),
    .rst_ni,
    .route_i        (set),
    .route_set_i    (set_valid),
    .state_o        (state),
    .ctrl_i         (ctrl),
    .attached_o     (attached),
    .short_o        (shorts),
    .core_rst_ni    (~core_rst),
    .tx_i           (tx),
    .tx_valid_i     (tx_valid),
    .tx_ready_o     (tx_ready),
    .rx_o           (rx),
    .rx_valid_o     (rx_valid),
    .rx_ready_i     (rx_ready),
    .gone_o         (gone),
    .brd_tx_o       (brd_tx),
    .brd_tx_valid_o (brd_tx_valid),
    .brd_tx_ready_i (brd_tx_ready),
    .brd_rx_i       (brd_rx),
    .brd_rx_valid_i (brd_rx_valid),
    .brd_rx_ready_o (brd_rx_ready),
    .slot_cut_i     (cut),
    .app_in_on_o    (in_on),
    .app_out_on_o   (out_on),
    .app_in_o       (in),
    .app_in_valid_o (in_valid),
    .app_in_ready_i (in_ready),
    .app_out_i      (out),
    .app_out_valid_i(out_valid),
    .app_out_ready_o(out_ready),
    .still_o        (still),
    .idle_o
  );

endmodule
