// SPDX-License-Identifier: Apache-2.0
//
// The shell's edge: where the card meets the board. Host memory on one AXI port for all who read and write it, DRAM behind the crossbar, and the
// streams of board ports; inside the shell these are structs, on the board's side flat wires.
//
//   rings, DMA of the management function, functions ──> via_axi_mux ──> host memory
//                                                             ^
//   slots, XDMA, DMA, page tables ──> via_xbar ───────────────┘
//                                        └──> DRAM, one port a channel
//
// Throughput, latency and order are those of the blocks inside. Nothing is checked here: who sends addresses keeps them in the card's memory.

module via_shell_edge
  import via_pkg::*;
  import via_virtio_pkg::NumFn, via_virtio_pkg::FnInput;
#(
  localparam int unsigned NumHost = NumFn + 2,
  localparam int unsigned NumCard = NumSlots + 3
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic        [ WeightW-1:0] weight_i          [  NumCard],  // share of card memory of slots, XDMA, DMA, page tables
  input  logic        [NumSlots-1:0] first_i,                        // level: the slot goes first there
  input  logic        [         7:0] window_i,                       // of host memory: beats under way each way, in 16
  input  share_cfg_t                 share_i,                        // policy and quanta
  input  host_share_t                host_share_i,                   // weights and classes at the host port
  // Host memory, AXI4 manager. Answers of one id come in order.
  output logic        [     IdW-1:0] host_arid_o,
  output logic        [        63:0] host_araddr_o,
  output logic        [         7:0] host_arlen_o,
  output logic                       host_arvalid_o,
  input  logic                       host_arready_i,
  input  logic        [     IdW-1:0] host_rid_i,
  input  logic        [   DataW-1:0] host_rdata_i,
  input  logic        [         1:0] host_rresp_i,
  input  logic                       host_rlast_i,
  input  logic                       host_rvalid_i,
  output logic                       host_rready_o,
  output logic        [     IdW-1:0] host_awid_o,
  output logic        [        63:0] host_awaddr_o,
  output logic        [         7:0] host_awlen_o,
  output logic                       host_awvalid_o,
  input  logic                       host_awready_i,
  output logic        [   DataW-1:0] host_wdata_o,
  output logic        [   StrbW-1:0] host_wstrb_o,
  output logic                       host_wlast_o,
  output logic                       host_wvalid_o,
  input  logic                       host_wready_i,
  input  logic        [     IdW-1:0] host_bid_i,
  input  logic        [         1:0] host_bresp_i,
  input  logic                       host_bvalid_i,
  output logic                       host_bready_o,
  // DRAM channels, AXI4 managers without ids; the address is within the channel.
  output logic        [        63:0] mem_araddr_o      [  NumChan],
  output logic        [         7:0] mem_arlen_o       [  NumChan],
  output logic                       mem_arvalid_o     [  NumChan],
  input  logic                       mem_arready_i     [  NumChan],
  input  logic        [   DataW-1:0] mem_rdata_i       [  NumChan],
  input  logic        [         1:0] mem_rresp_i       [  NumChan],
  input  logic                       mem_rlast_i       [  NumChan],
  input  logic                       mem_rvalid_i      [  NumChan],
  output logic                       mem_rready_o      [  NumChan],
  output logic        [        63:0] mem_awaddr_o      [  NumChan],
  output logic        [         7:0] mem_awlen_o       [  NumChan],
  output logic                       mem_awvalid_o     [  NumChan],
  input  logic                       mem_awready_i     [  NumChan],
  output logic        [   DataW-1:0] mem_wdata_o       [  NumChan],
  output logic        [   StrbW-1:0] mem_wstrb_o       [  NumChan],
  output logic                       mem_wlast_o       [  NumChan],
  output logic                       mem_wvalid_o      [  NumChan],
  input  logic                       mem_wready_i      [  NumChan],
  input  logic        [         1:0] mem_bresp_i       [  NumChan],
  input  logic                       mem_bvalid_i      [  NumChan],
  output logic                       mem_bready_o      [  NumChan],
  // The board's ports of the functions, streams; index = function. Those of functions without a user side stay idle.
  output logic                       brd_tx_valid_o    [  NumFn+1],
  input  logic                       brd_tx_ready_i    [  NumFn+1],
  output logic        [   DataW-1:0] brd_tx_data_o     [  NumFn+1],
  output logic        [   StrbW-1:0] brd_tx_keep_o     [  NumFn+1],
  output logic                       brd_tx_last_o     [  NumFn+1],
  output logic        [         7:0] brd_tx_id_o       [  NumFn+1],
  input  logic                       brd_rx_valid_i    [  NumFn+1],
  output logic                       brd_rx_ready_o    [  NumFn+1],
  input  logic        [   DataW-1:0] brd_rx_data_i     [  NumFn+1],
  input  logic        [   StrbW-1:0] brd_rx_keep_i     [  NumFn+1],
  input  logic                       brd_rx_last_i     [  NumFn+1],
  input  logic        [         7:0] brd_rx_id_i       [  NumFn+1],
  // Users of host memory: 0 rings, 1 DMA, 1 + f function f.
  input  axi_ax_t                    hostmem_ar_i      [  NumHost],
  input  logic        [ NumHost-1:0] hostmem_ar_valid_i,
  output logic        [ NumHost-1:0] hostmem_ar_ready_o,
  output axi_r_t                     hostmem_r_o       [  NumHost],
  output logic        [ NumHost-1:0] hostmem_r_valid_o,
  input  logic        [ NumHost-1:0] hostmem_r_ready_i,
  input  axi_ax_t                    hostmem_aw_i      [  NumHost],
  input  logic        [ NumHost-1:0] hostmem_aw_valid_i,
  output logic        [ NumHost-1:0] hostmem_aw_ready_o,
  input  axi_w_t                     hostmem_w_i       [  NumHost],
  input  logic        [ NumHost-1:0] hostmem_w_valid_i,
  output logic        [ NumHost-1:0] hostmem_w_ready_o,
  output axi_b_t                     hostmem_b_o       [  NumHost],
  output logic        [ NumHost-1:0] hostmem_b_valid_o,
  input  logic        [ NumHost-1:0] hostmem_b_ready_i,
  // Users of the crossbar, addresses as it takes them: slots, then XDMA, DMA, page tables.
  input  axi_ax_t                    cardmem_ar_i      [  NumCard],
  input  logic        [ NumCard-1:0] cardmem_ar_valid_i,
  output logic        [ NumCard-1:0] cardmem_ar_ready_o,
  output axi_r_t                     cardmem_r_o       [  NumCard],
  output logic        [ NumCard-1:0] cardmem_r_valid_o,
  input  logic        [ NumCard-1:0] cardmem_r_ready_i,
  input  axi_ax_t                    cardmem_aw_i      [  NumCard],
  input  logic        [ NumCard-1:0] cardmem_aw_valid_i,
  output logic        [ NumCard-1:0] cardmem_aw_ready_o,
  input  axi_w_t                     cardmem_w_i       [  NumCard],
  input  logic        [ NumCard-1:0] cardmem_w_valid_i,
  output logic        [ NumCard-1:0] cardmem_w_ready_o,
  output axi_b_t                     cardmem_b_o       [  NumCard],
  output logic        [ NumCard-1:0] cardmem_b_valid_o,
  input  logic        [ NumCard-1:0] cardmem_b_ready_i,
  // Streams of functions to and from their board ports.
  input  strm_t                      fn_brd_tx_i       [FnInput:1],
  input  logic        [   FnInput:1] fn_brd_tx_valid_i,
  output logic        [   FnInput:1] fn_brd_tx_ready_o,
  output strm_t                      fn_brd_rx_o       [FnInput:1],
  output logic        [   FnInput:1] fn_brd_rx_valid_o,
  input  logic        [   FnInput:1] fn_brd_rx_ready_i,
  output logic        [         1:0] still_o,                        // both: nothing moves unless an input changes
  output logic                       idle_o                          // nothing is in flight
);

  // ---------------------------------------------------------------- card memory
  // Subordinates of the crossbar: DRAM channels, then host memory.
  axi_ax_t c_ar[NumChan+1], c_aw[NumChan+1];
  axi_r_t c_r[NumChan+1];
  axi_w_t c_w[NumChan+1];
  axi_b_t c_b[NumChan+1];
  logic [NumChan:0] c_ar_valid, c_ar_ready, c_r_valid, c_r_ready, c_aw_valid, c_aw_ready, c_w_valid, c_w_ready, c_b_valid, c_b_ready;
  logic host_idle, host_still, xbar_idle, xbar_still;
  logic [1:0] xbar_first;  // reads (0), writes (1)

  via_xbar u_xbar (
    .clk_i,
    .rst_ni,
    .weight_i,
    // A slot that goes first may wait for a walk: so walks do too, meanwhile.
    .first_i     ({first_i != '0, 2'b00, first_i}),
    .share_i,
    .window_i,
    .first_o     (xbar_first),
    .s_ar_i      (cardmem_ar_i),
    .s_ar_valid_i(cardmem_ar_valid_i),
    .s_ar_ready_o(cardmem_ar_ready_o),
    .s_r_o       (cardmem_r_o),
    .s_r_valid_o (cardmem_r_valid_o),
    .s_r_ready_i (cardmem_r_ready_i),
    .s_aw_i      (cardmem_aw_i),
    .s_aw_valid_i(cardmem_aw_valid_i),
    .s_aw_ready_o(cardmem_aw_ready_o),
    .s_w_i       (cardmem_w_i),
    .s_w_valid_i (cardmem_w_valid_i),
    .s_w_ready_o (cardmem_w_ready_o),
    .s_b_o       (cardmem_b_o),
    .s_b_valid_o (cardmem_b_valid_o),
    .s_b_ready_i (cardmem_b_ready_i),
    .m_ar_o      (c_ar),
    .m_ar_valid_o(c_ar_valid),
    .m_ar_ready_i(c_ar_ready),
    .m_r_i       (c_r),
    .m_r_valid_i (c_r_valid),
    .m_r_ready_o (c_r_ready),
    .m_aw_o      (c_aw),
    .m_aw_valid_o(c_aw_valid),
    .m_aw_ready_i(c_aw_ready),
    .m_w_o       (c_w),
    .m_w_valid_o (c_w_valid),
    .m_w_ready_i (c_w_ready),
    .m_b_i       (c_b),
    .m_b_valid_i (c_b_valid),
    .m_b_ready_o (c_b_ready),
    .still_o     (xbar_still),
    .idle_o      (xbar_idle)
  );

  for (genvar c = 0; c < NumChan; c++) begin : gen_chan
    assign mem_araddr_o[c] = c_ar[c].addr;
    assign mem_arlen_o[c] = c_ar[c].len;
    assign mem_arvalid_o[c] = c_ar_valid[c];
    assign c_ar_ready[c] = mem_arready_i[c];
    assign c_r[c] = '{id: '0, resp: axi_resp_e'(mem_rresp_i[c]), last: mem_rlast_i[c], data: mem_rdata_i[c]};
    assign c_r_valid[c] = mem_rvalid_i[c];
    assign mem_rready_o[c] = c_r_ready[c];
    assign mem_awaddr_o[c] = c_aw[c].addr;
    assign mem_awlen_o[c] = c_aw[c].len;
    assign mem_awvalid_o[c] = c_aw_valid[c];
    assign c_aw_ready[c] = mem_awready_i[c];
    assign mem_wdata_o[c] = c_w[c].data;
    assign mem_wstrb_o[c] = c_w[c].strb;
    assign mem_wlast_o[c] = c_w[c].last;
    assign mem_wvalid_o[c] = c_w_valid[c];
    assign c_w_ready[c] = mem_wready_i[c];
    assign c_b[c] = '{id: '0, resp: axi_resp_e'(mem_bresp_i[c])};
    assign c_b_valid[c] = mem_bvalid_i[c];
    assign mem_bready_o[c] = c_b_ready[c];
  end

  // ---------------------------------------------------------------- host memory
  // Its users are those at the port, with the crossbar as number 2: the number is in the id that the host sees.
  localparam int unsigned Xbar = 2;
  axi_ax_t h_ar[NumHost+1], h_aw[NumHost+1];
  axi_r_t h_r[NumHost+1];
  axi_w_t h_w[NumHost+1];
  axi_b_t h_b[NumHost+1];
  axi_ax_t host_ar, host_aw;
  axi_w_t host_w;
  axi_r_t host_r;
  axi_b_t host_b;

  assign h_ar = {hostmem_ar_i[0:Xbar-1], c_ar[NumChan], hostmem_ar_i[Xbar:NumHost-1]};
  assign h_aw = {hostmem_aw_i[0:Xbar-1], c_aw[NumChan], hostmem_aw_i[Xbar:NumHost-1]};
  assign h_w = {hostmem_w_i[0:Xbar-1], c_w[NumChan], hostmem_w_i[Xbar:NumHost-1]};
  assign hostmem_r_o = {h_r[0:Xbar-1], h_r[Xbar+1:NumHost]};
  assign c_r[NumChan] = h_r[Xbar];
  assign hostmem_b_o = {h_b[0:Xbar-1], h_b[Xbar+1:NumHost]};
  assign c_b[NumChan] = h_b[Xbar];

  // What its users share it by. Rings, number 0, go first and have enough.
  logic [WeightW-1:0] host_weight[NumHost+1];
  logic [NumHost:0] host_first[2];
  assign host_weight[0] = WeightW'(1);
  for (genvar u = 0; u < NumHost; u++) begin : gen_weight
    assign host_weight[u+1] = host_share_i.weight[u];
  end
  for (genvar w = 0; w < 2; w++) begin : gen_first
    assign host_first[w] = {host_share_i.first, 1'b0} | (NumHost + 1)'(xbar_first[w]) << Xbar;
  end

  via_axi_mux #(
    .NumRd   (NumHost + 1),
    .NumWr   (NumHost + 1),
    .NumFirst(1),
    .Ordered (1'b1),
    .Shared  (1'b1)
  ) u_host (
    .clk_i,
    .rst_ni,
    .weight_i    (host_weight),
    .first_i     (host_first),
    .share_i     (share_i),
    .window_i,
    .s_ar_i      (h_ar),
    .s_ar_valid_i({hostmem_ar_valid_i[NumHost-1:Xbar], c_ar_valid[NumChan], hostmem_ar_valid_i[Xbar-1:0]}),
    .s_ar_ready_o({hostmem_ar_ready_o[NumHost-1:Xbar], c_ar_ready[NumChan], hostmem_ar_ready_o[Xbar-1:0]}),
    .s_r_o       (h_r),
    .s_r_valid_o ({hostmem_r_valid_o[NumHost-1:Xbar], c_r_valid[NumChan], hostmem_r_valid_o[Xbar-1:0]}),
    .s_r_ready_i ({hostmem_r_ready_i[NumHost-1:Xbar], c_r_ready[NumChan], hostmem_r_ready_i[Xbar-1:0]}),
    .s_aw_i      (h_aw),
    .s_aw_valid_i({hostmem_aw_valid_i[NumHost-1:Xbar], c_aw_valid[NumChan], hostmem_aw_valid_i[Xbar-1:0]}),
    .s_aw_ready_o({hostmem_aw_ready_o[NumHost-1:Xbar], c_aw_ready[NumChan], hostmem_aw_ready_o[Xbar-1:0]}),
    .s_w_i       (h_w),
    .s_w_valid_i ({hostmem_w_valid_i[NumHost-1:Xbar], c_w_valid[NumChan], hostmem_w_valid_i[Xbar-1:0]}),
    .s_w_ready_o ({hostmem_w_ready_o[NumHost-1:Xbar], c_w_ready[NumChan], hostmem_w_ready_o[Xbar-1:0]}),
    .s_b_o       (h_b),
    .s_b_valid_o ({hostmem_b_valid_o[NumHost-1:Xbar], c_b_valid[NumChan], hostmem_b_valid_o[Xbar-1:0]}),
    .s_b_ready_i ({hostmem_b_ready_i[NumHost-1:Xbar], c_b_ready[NumChan], hostmem_b_ready_i[Xbar-1:0]}),
    .m_ar_o      (host_ar),
    .m_ar_valid_o(host_arvalid_o),
    .m_ar_ready_i(host_arready_i),
    .m_r_i       (host_r),
    .m_r_valid_i (host_rvalid_i),
    .m_r_ready_o (host_rready_o),
    .m_aw_o      (host_aw),
    .m_aw_valid_o(host_awvalid_o),
    .m_aw_ready_i(host_awready_i),
    .m_w_o       (host_w),
    .m_w_valid_o (host_wvalid_o),
    .m_w_ready_i (host_wready_i),
    .m_b_i       (host_b),
    .m_b_valid_i (host_bvalid_i),
    .m_b_ready_o (host_bready_o),
    .still_o     (host_still),
    .idle_o      (host_idle)
  );

  assign host_arid_o = host_ar.id;
  assign host_araddr_o = host_ar.addr;
  assign host_arlen_o = host_ar.len;
  assign host_r = '{id: host_rid_i, resp: axi_resp_e'(host_rresp_i), last: host_rlast_i, data: host_rdata_i};
  assign host_awid_o = host_aw.id;
  assign host_awaddr_o = host_aw.addr;
  assign host_awlen_o = host_aw.len;
  assign host_wdata_o = host_w.data;
  assign host_wstrb_o = host_w.strb;
  assign host_wlast_o = host_w.last;
  assign host_b = '{id: host_bid_i, resp: axi_resp_e'(host_bresp_i)};

  // still_o of the crossbar does not cover what is offered to it.
  assign still_o = {xbar_still, host_still && ~|{cardmem_ar_valid_i, cardmem_aw_valid_i, cardmem_w_valid_i, c_r_valid, c_b_valid}};
  assign idle_o = host_idle && xbar_idle;

  // ---------------------------------------------------------------- board streams
  for (genvar f = 0; f <= NumFn; f++) begin : gen_board
    if (f >= 1 && f <= FnInput) begin : gen_port
      assign brd_tx_valid_o[f] = fn_brd_tx_valid_i[f];
      assign fn_brd_tx_ready_o[f] = brd_tx_ready_i[f];
      assign {brd_tx_id_o[f], brd_tx_last_o[f], brd_tx_keep_o[f], brd_tx_data_o[f]} = fn_brd_tx_i[f];
      assign fn_brd_rx_valid_o[f] = brd_rx_valid_i[f];
      assign brd_rx_ready_o[f] = fn_brd_rx_ready_i[f];
      assign fn_brd_rx_o[f] = '{id: brd_rx_id_i[f], last: brd_rx_last_i[f], keep: brd_rx_keep_i[f], data: brd_rx_data_i[f]};
    end else begin : gen_no_port
      assign brd_tx_valid_o[f] = 1'b0;
      assign {brd_tx_id_o[f], brd_tx_last_o[f], brd_tx_keep_o[f], brd_tx_data_o[f]} = '0;
      assign brd_rx_ready_o[f] = 1'b0;
    end
  end

endmodule
