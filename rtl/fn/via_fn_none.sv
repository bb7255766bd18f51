// SPDX-License-Identifier: Apache-2.0
//
// Takes the place of a function that a build leaves out: it has the ports of via_virtio_fn, every read returns all ones, as PCIe does for
// an absent device, and nothing else happens.
// Throughput: an access every second cycle. Latency: one cycle. Order: one access at a time. Misuse: none is possible.

module via_fn_none
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,
  // Inputs that an absent function ignores; their meaning is that in via_virtio_fn.
  /* verilator lint_off UNUSEDSIGNAL */
  input logic [63:0] time_i,
  input fn_ctrl_t ctrl_i,
  input fn_req_t req_i,
  input logic flr_i,
  input logic bus_master_i,
  input logic flush_done_i,
  input logic flush_failed_i,
  input logic msix_ready_i,
  input logic m_ar_ready_i,
  input axi_r_t m_r_i,
  input logic m_r_valid_i,
  input logic m_aw_ready_i,
  input logic m_w_ready_i,
  input axi_b_t m_b_i,
  input logic m_b_valid_i,
  input logic m_mem_ar_ready_i,
  input axi_r_t m_mem_r_i,
  input logic m_mem_r_valid_i,
  input logic m_mem_aw_ready_i,
  input logic m_mem_w_ready_i,
  input axi_b_t m_mem_b_i,
  input logic m_mem_b_valid_i,
  input logic tx_ready_i,
  input strm_t rx_i,
  input logic rx_valid_i,
  /* verilator lint_on UNUSEDSIGNAL */
  input logic req_valid_i,
  output logic req_rvalid_o,
  output logic [31:0] req_rdata_o,
  output logic [7:0] status_o,
  output fn_features_t features_o,
  output logic flr_busy_o,
  output logic msix_valid_o,
  output logic [7:0] msix_vector_o,
  output logic flush_o,
  output logic core_rst_no,
  output axi_ax_t m_ar_o,
  output logic m_ar_valid_o,
  output logic m_r_ready_o,
  output axi_ax_t m_aw_o,
  output logic m_aw_valid_o,
  output axi_w_t m_w_o,
  output logic m_w_valid_o,
  output logic m_b_ready_o,
  output axi_ax_t m_mem_ar_o,
  output logic m_mem_ar_valid_o,
  output logic m_mem_r_ready_o,
  output axi_ax_t m_mem_aw_o,
  output logic m_mem_aw_valid_o,
  output axi_w_t m_mem_w_o,
  output logic m_mem_w_valid_o,
  output logic m_mem_b_ready_o,
  output strm_t tx_o,
  output logic tx_valid_o,
  output logic rx_ready_o,
  output logic still_o,
  output logic idle_o
);

  logic rvalid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) rvalid_q <= 1'b0;
    else rvalid_q <= req_valid_i && !rvalid_q;
  end
  assign req_rvalid_o = rvalid_q;
  assign req_rdata_o = '1;
  assign still_o = !req_valid_i && !rvalid_q;
  assign idle_o = 1'b1;

  assign core_rst_no = 1'b1;
  assign status_o = '0;
  assign features_o = '0;
  assign msix_vector_o = '0;
  assign tx_o = '0;
  assign {flr_busy_o, msix_valid_o, tx_valid_o, flush_o} = '0;
  assign rx_ready_o = 1'b1;
  assign m_ar_o = '0;
  assign m_aw_o = '0;
  assign m_w_o = '0;
  assign {m_ar_valid_o, m_aw_valid_o, m_w_valid_o} = '0;
  assign {m_r_ready_o, m_b_ready_o} = '1;
  assign m_mem_ar_o = '0;
  assign m_mem_aw_o = '0;
  assign m_mem_w_o = '0;
  assign {m_mem_ar_valid_o, m_mem_aw_valid_o, m_mem_w_valid_o} = '0;
  assign {m_mem_r_ready_o, m_mem_b_ready_o} = '1;

endmodule
