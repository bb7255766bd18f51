// SPDX-License-Identifier: Apache-2.0
//
// The shell's edge of one DRAM channel: register slices between the crossbar and the channel's flat ports. Channels carry no ids:
// everything is in order.
// Throughput: one beat a cycle each way. Latency: one cycle a channel. Misuse: none is detected; the memory controller must obey AXI.

module via_mem_port
  import via_pkg::*;
(
  input  logic                clk_i,
  input  logic                rst_ni,
  input  axi_ax_t             s_ar_i,
  input  logic                s_ar_valid_i,
  output logic                s_ar_ready_o,
  output axi_r_t              s_r_o,
  output logic                s_r_valid_o,
  input  logic                s_r_ready_i,
  input  axi_ax_t             s_aw_i,
  input  logic                s_aw_valid_i,
  output logic                s_aw_ready_o,
  input  axi_w_t              s_w_i,
  input  logic                s_w_valid_i,
  output logic                s_w_ready_o,
  output axi_b_t              s_b_o,
  output logic                s_b_valid_o,
  input  logic                s_b_ready_i,
  // flat AXI to the memory controller: addresses within the channel, INCR bursts of full-width beats
  output logic    [     63:0] mem_araddr_o,
  output logic    [      7:0] mem_arlen_o,
  output logic                mem_arvalid_o,
  input  logic                mem_arready_i,
  input  logic    [DataW-1:0] mem_rdata_i,
  input  logic    [      1:0] mem_rresp_i,
  input  logic                mem_rlast_i,
  input  logic                mem_rvalid_i,
  output logic                mem_rready_o,
  output logic    [     63:0] mem_awaddr_o,
  output logic    [      7:0] mem_awlen_o,
  output logic                mem_awvalid_o,
  input  logic                mem_awready_i,
  output logic    [DataW-1:0] mem_wdata_o,
  output logic    [StrbW-1:0] mem_wstrb_o,
  output logic                mem_wlast_o,
  output logic                mem_wvalid_o,
  input  logic                mem_wready_i,
  input  logic    [      1:0] mem_bresp_i,
  input  logic                mem_bvalid_i,
  output logic                mem_bready_o,
  output logic                idle_o          // level: nothing is held or offered
);

  typedef struct packed {
    logic [7:0]  len;
    logic [63:0] addr;
  } ax_t;
  typedef struct packed {
    axi_resp_e        resp;
    logic             last;
    logic [DataW-1:0] data;
  } r_t;
  ax_t ar, aw;
  r_t r;
  axi_w_t w;
  logic [1:0] b;

  via_slice #(
    .T(ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      ('{len: s_ar_i.len, addr: s_ar_i.addr}),
    .s_valid_i(s_ar_valid_i),
    .s_ready_o(s_ar_ready_o),
    .m_o      (ar),
    .m_valid_o(mem_arvalid_o),
    .m_ready_i(mem_arready_i)
  );
  assign mem_araddr_o = ar.addr;
  assign mem_arlen_o  = ar.len;

  via_slice #(
    .T(r_t)
  ) u_r (
    .clk_i,
    .rst_ni,
    .s_i      ('{resp: axi_resp_e'(mem_rresp_i), last: mem_rlast_i, data: mem_rdata_i}),
    .s_valid_i(mem_rvalid_i),
    .s_ready_o(mem_rready_o),
    .m_o      (r),
    .m_valid_o(s_r_valid_o),
    .m_ready_i(s_r_ready_i)
  );
  assign s_r_o = '{id: '0, resp: r.resp, last: r.last, data: r.data};

  via_slice #(
    .T(ax_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      ('{len: s_aw_i.len, addr: s_aw_i.addr}),
    .s_valid_i(s_aw_valid_i),
    .s_ready_o(s_aw_ready_o),
    .m_o      (aw),
    .m_valid_o(mem_awvalid_o),
    .m_ready_i(mem_awready_i)
  );
  assign mem_awaddr_o = aw.addr;
  assign mem_awlen_o  = aw.len;

  via_slice #(
    .T(axi_w_t)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i      (s_w_i),
    .s_valid_i(s_w_valid_i),
    .s_ready_o(s_w_ready_o),
    .m_o      (w),
    .m_valid_o(mem_wvalid_o),
    .m_ready_i(mem_wready_i)
  );
  assign mem_wdata_o = w.data;
  assign mem_wstrb_o = w.strb;
  assign mem_wlast_o = w.last;

  via_slice #(
    .T(logic [1:0])
  ) u_b (
    .clk_i,
    .rst_ni,
    .s_i      (mem_bresp_i),
    .s_valid_i(mem_bvalid_i),
    .s_ready_o(mem_bready_o),
    .m_o      (b),
    .m_valid_o(s_b_valid_o),
    .m_ready_i(s_b_ready_i)
  );
  assign s_b_o = '{id: '0, resp: axi_resp_e'(b)};

  logic idle;
  assign idle = ~|{s_ar_valid_i, mem_arvalid_o, mem_rvalid_i, s_r_valid_o, s_aw_valid_i, mem_awvalid_o, s_w_valid_i, mem_wvalid_o,
                     mem_bvalid_i, s_b_valid_o};
  always_ff @(posedge clk_i) idle_o <= idle;

endmodule
