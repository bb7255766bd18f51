// SPDX-License-Identifier: Apache-2.0
//
// A whole virtio function: host memory at u_host, memory of the disk at u_mem, everything else flat. The clock is stopped whenever the
// function reports that nothing moves in it.

module via_virtio_fn_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned Fn = FnNet
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  fn_ctrl_t            ctrl,
  output logic         [ 7:0] status,
  output fn_features_t        features,
  input  logic                req_write,
  input  logic         [15:0] req_addr,
  input  logic         [ 3:0] req_strb,
  input  logic         [31:0] req_wdata,
  input  logic                req_valid,
  output logic                req_rvalid,
  output logic         [31:0] req_rdata,
  input  logic                flr,
  output logic                flr_busy,
  input  logic                bus_master,
  output logic                msix_valid,
  output logic         [ 7:0] msix_vector,
  input  logic                msix_ready,
  output logic                core_rst_n,
  output strm_t               tx,
  output logic                tx_valid,
  input  logic                tx_ready,
  input  strm_t               rx,
  input  logic                rx_valid,
  output logic                rx_ready,
  output logic                still_o,
  output logic                idle_o
);

  logic [63:0] time_q;
  always_ff @(posedge clk_i) time_q <= rst_ni ? time_q + 1'b1 : '0;

  fn_req_t req;
  assign req = '{fn: FnW'(Fn), cfg: 1'b0, bar: '0, write: req_write, addr: req_addr, strb: req_strb, wdata: req_wdata};

  axi_ax_t h_ar, h_aw, d_ar, d_aw;
  axi_r_t h_r, d_r;
  axi_w_t h_w, d_w;
  axi_b_t h_b, d_b;
  logic h_ar_valid, h_ar_ready, h_r_valid, h_r_ready, h_aw_valid, h_aw_ready, h_w_valid, h_w_ready, h_b_valid, h_b_ready;
  logic d_ar_valid, d_ar_ready, d_r_valid, d_r_ready, d_aw_valid, d_aw_ready, d_w_valid, d_w_ready, d_b_valid, d_b_ready;

  via_tb_sub u_host (
    .clk_i,
    .rst_ni,
    .s_ar_i      (h_ar),
    .s_ar_valid_i(h_ar_valid),
    .s_ar_ready_o(h_ar_ready),
    .s_r_o       (h_r),
    .s_r_valid_o (h_r_valid),
    .s_r_ready_i (h_r_ready),
    .s_aw_i      (h_aw),
    .s_aw_valid_i(h_aw_valid),
    .s_aw_ready_o(h_aw_ready),
    .s_w_i       (h_w),
    .s_w_valid_i (h_w_valid),
    .s_w_ready_o (h_w_ready),
    .s_b_o       (h_b),
    .s_b_valid_o (h_b_valid),
    .s_b_ready_i (h_b_ready)
  );
  // As in the card: bursts in flight at a reset of the function are completed here.
  axi_ax_t x_ar, x_aw;
  axi_w_t x_w;
  axi_r_t x_r [NumSlots];
  axi_b_t x_b [NumSlots];
  logic [NumSlots-1:0] x_ar_valid, x_r_ready, x_aw_valid, x_w_valid, x_b_ready;
  logic x_ar_ready, x_r_valid, x_aw_ready, x_w_ready, x_b_valid;
  axi_r_t x_r0;
  axi_b_t x_b0;
  for (genvar i = 0; i < NumSlots; i++) begin : gen_store
    assign x_r[i] = x_r0;
    assign x_b[i] = x_b0;
  end

  via_fn_mem u_store (
    .clk_i,
    .rst_ni,
    .store_i     ('0),
    .core_rst_ni (core_rst_n),
    .s_ar_i      (d_ar),
    .s_ar_valid_i(d_ar_valid),
    .s_ar_ready_o(d_ar_ready),
    .s_r_o       (d_r),
    .s_r_valid_o (d_r_valid),
    .s_r_ready_i (d_r_ready),
    .s_aw_i      (d_aw),
    .s_aw_valid_i(d_aw_valid),
    .s_aw_ready_o(d_aw_ready),
    .s_w_i       (d_w),
    .s_w_valid_i (d_w_valid),
    .s_w_ready_o (d_w_ready),
    .s_b_o       (d_b),
    .s_b_valid_o (d_b_valid),
    .s_b_ready_i (d_b_ready),
    .m_ar_o      (x_ar),
    .m_ar_valid_o(x_ar_valid),
    .m_ar_ready_i(NumSlots'(x_ar_ready)),
    .m_r_i       (x_r),
    .m_r_valid_i (NumSlots'(x_r_valid)),
    .m_r_ready_o (x_r_ready),
    .m_aw_o      (x_aw),
    .m_aw_valid_o(x_aw_valid),
    .m_aw_ready_i(NumSlots'(x_aw_ready)),
    .m_w_o       (x_w),
    .m_w_valid_o (x_w_valid),
    .m_w_ready_i (NumSlots'(x_w_ready)),
    .m_b_i       (x_b),
    .m_b_valid_i (NumSlots'(x_b_valid)),
    .m_b_ready_o (x_b_ready),
    .still_o     (),
    .idle_o      ()
  );
  via_tb_sub u_mem (
    .clk_i,
    .rst_ni,
    .s_ar_i      (x_ar),
    .s_ar_valid_i(x_ar_valid[0]),
    .s_ar_ready_o(x_ar_ready),
    .s_r_o       (x_r0),
    .s_r_valid_o (x_r_valid),
    .s_r_ready_i (x_r_ready[0]),
    .s_aw_i      (x_aw),
    .s_aw_valid_i(x_aw_valid[0]),
    .s_aw_ready_o(x_aw_ready),
    .s_w_i       (x_w),
    .s_w_valid_i (x_w_valid[0]),
    .s_w_ready_o (x_w_ready),
    .s_b_o       (x_b0),
    .s_b_valid_o (x_b_valid),
    .s_b_ready_i (x_b_ready[0])
  );

  logic clk;
  logic [12:0] handshakes;
  assign handshakes = {
    h_ar_ready,
    h_r_valid,
    h_aw_ready,
    h_w_ready,
    h_b_valid,
    d_ar_ready,
    d_r_valid,
    d_aw_ready,
    d_w_ready,
    d_b_valid,
    tx_ready,
    rx_valid,
    msix_ready
  };
  via_tb_gate #(
    .W($bits(handshakes) + $bits(fn_req_t) + 3)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (still_o),
    .inputs_i({handshakes, req, req_valid, flr, bus_master}),
    .clk_o   (clk)
  );

  via_virtio_fn #(
    .Fn(Fn)
  ) u_dut (
    .clk_i           (clk),
    .rst_ni,
    .time_i          (time_q),
    .ctrl_i          (ctrl),
    .flush_o         (),
    .flush_done_i    (1'b0),
    .flush_failed_i  (1'b0),
    .status_o        (status),
    .features_o      (features),
    .req_i           (req),
    .req_valid_i     (req_valid),
    .req_rvalid_o    (req_rvalid),
    .req_rdata_o     (req_rdata),
    .flr_i           (flr),
    .flr_busy_o      (flr_busy),
    .bus_master_i    (bus_master),
    .msix_valid_o    (msix_valid),
    .msix_vector_o   (msix_vector),
    .msix_ready_i    (msix_ready),
    .core_rst_no     (core_rst_n),
    .m_ar_o          (h_ar),
    .m_ar_valid_o    (h_ar_valid),
    .m_ar_ready_i    (h_ar_ready),
    .m_r_i           (h_r),
    .m_r_valid_i     (h_r_valid),
    .m_r_ready_o     (h_r_ready),
    .m_aw_o          (h_aw),
    .m_aw_valid_o    (h_aw_valid),
    .m_aw_ready_i    (h_aw_ready),
    .m_w_o           (h_w),
    .m_w_valid_o     (h_w_valid),
    .m_w_ready_i     (h_w_ready),
    .m_b_i           (h_b),
    .m_b_valid_i     (h_b_valid),
    .m_b_ready_o     (h_b_ready),
    .m_mem_ar_o      (d_ar),
    .m_mem_ar_valid_o(d_ar_valid),
    .m_mem_ar_ready_i(d_ar_ready),
    .m_mem_r_i       (d_r),
    .m_mem_r_valid_i (d_r_valid),
    .m_mem_r_ready_o (d_r_ready),
    .m_mem_aw_o      (d_aw),
    .m_mem_aw_valid_o(d_aw_valid),
    .m_mem_aw_ready_i(d_aw_ready),
    .m_mem_w_o       (d_w),
    .m_mem_w_valid_o (d_w_valid),
    .m_mem_w_ready_i (d_w_ready),
    .m_mem_b_i       (d_b),
    .m_mem_b_valid_i (d_b_valid),
    .m_mem_b_ready_o (d_b_ready),
    .tx_o            (tx),
    .tx_valid_o      (tx_valid),
    .tx_ready_i      (tx_ready),
    .rx_i            (rx),
    .rx_valid_i      (rx_valid),
    .rx_ready_o      (rx_ready),
    .still_o,
    .idle_o
  );

  always_ff @(posedge clk_i)
    if (rst_ni) begin
      assert (!h_r_valid || h_r_ready)
      else $error("R refused");
      assert (!h_b_valid || h_b_ready)
      else $error("B refused");
    end

endmodule
