// SPDX-License-Identifier: Apache-2.0
//
// A PCI function with the registers and descriptors of the vendor's DMA engine ("XDMA", memory-mapped channels): Channels from host to card
// and as many back, and 16 user interrupts.
//
//   fn_req ──> decode ──> via_xdma_channel x 2 Channels ──┬─> via_axi_mux ─> via_fn_gate ─> host memory
//                 │            │ irq                      └─> via_axi_mux ─> via_fn_gate ─> card memory
//                 ├─> via_xdma_irq ─> MSI-X
//                 └─> user BAR: registers of the slots' apps
//
// Throughput: one beat a cycle in each direction. Latency of a register access: four cycles; in the user BAR three and that of the app.
// Order: see via_xdma_channel.
// A function-level reset closes both gates, waits until nothing is in flight, and resets everything behind them. With bus mastering
// disabled, accesses to host memory and interrupts wait. While nothing is requested nothing changes (no free-running counter).
// Misuse: accesses of less than 32 bits and absent registers: writes do nothing, reads return 0. Accesses through the user BAR always
// complete in time (via_app_regs).
// Source: PG195, register space; docs/xdma.md says what is implemented.

module via_xdma
  import via_pkg::*;
  import via_xdma_pkg::xdma_words_t, via_xdma_pkg::xdma_words;
  import via_virtio_pkg::*;
#(
  parameter int unsigned Channels = 1,  // each way, 1 to 4
  parameter int unsigned HostBits = 52  // width of host addresses
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic     [63:0] time_i,             // card time
  input  logic     [31:0] chan_mib_i,         // size of each DRAM channel in MiB, constant
  // accesses, one at a time: valid is held until rvalid
  input  fn_req_t         req_i,              // register access
  input  logic            req_valid_i,        // fn is already decoded
  output logic            req_rvalid_o,       // one-cycle pulse: the access is complete
  output logic     [31:0] req_rdata_o,        // read data, with req_rvalid_o
  input  logic            flr_i,              // one-cycle pulse: function-level reset
  output logic            flr_busy_o,         // level: the reset is in progress
  input  logic            bus_master_i,       // level: Bus Master Enable
  input  logic     [15:0] user_irq_i,         // levels: requests, held until user_irq_ack_o
  output logic     [15:0] user_irq_ack_o,     // pulse: the message was sent
  // user BAR: a register of the app in a slot; valid is held until rvalid
  output reg_req_t        user_req_o,         // register access
  output logic     [ 3:0] user_slot_o,        // slot it is for
  output logic            user_valid_o,
  input  logic            user_rvalid_i,      // one-cycle pulse: the access is complete
  input  logic     [31:0] user_rdata_i,       // read data, with user_rvalid_i
  output logic            msix_valid_o,
  output logic     [ 7:0] msix_vector_o,      // MSI-X vector
  input  logic            msix_ready_i,
  output axi_ax_t         m_ar_o,
  output logic            m_ar_valid_o,
  input  logic            m_ar_ready_i,
  input  axi_r_t          m_r_i,
  input  logic            m_r_valid_i,
  output logic            m_r_ready_o,
  output axi_ax_t         m_aw_o,
  output logic            m_aw_valid_o,
  input  logic            m_aw_ready_i,
  output axi_w_t          m_w_o,
  output logic            m_w_valid_o,
  input  logic            m_w_ready_i,
  input  axi_b_t          m_b_i,
  input  logic            m_b_valid_i,
  output logic            m_b_ready_o,
  output axi_ax_t         m_card_ar_o,
  output logic            m_card_ar_valid_o,
  input  logic            m_card_ar_ready_i,
  input  axi_r_t          m_card_r_i,
  input  logic            m_card_r_valid_i,
  output logic            m_card_r_ready_o,
  output axi_ax_t         m_card_aw_o,
  output logic            m_card_aw_valid_o,
  input  logic            m_card_aw_ready_i,
  output axi_w_t          m_card_w_o,
  output logic            m_card_w_valid_o,
  input  logic            m_card_w_ready_i,
  input  axi_b_t          m_card_b_i,
  input  logic            m_card_b_valid_i,
  output logic            m_card_b_ready_o,
  output logic            still_o,            // level: nothing moves unless an input changes
  output logic            idle_o              // level: nothing is in flight
);

  localparam bit ChannelsOk = param_in("via_xdma Channels", Channels, 1, 4);
  localparam bit HostBitsOk = param_in("via_xdma HostBits", HostBits, PageLog2, 52);

  localparam int unsigned NumCh = 2 * Channels;
  localparam int unsigned Users = 16;
  localparam int unsigned Vectors = NumCh + Users;

  // ---------------------------------------------------------------- function-level reset
  logic flr_q, reset_q, closed_q, host_on_q, card_on_q, drained, host_drained, card_drained;

  assign drained = closed_q && host_drained && card_drained && !msix_valid_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      flr_q     <= 1'b0;
      closed_q  <= 1'b0;
      reset_q   <= 1'b0;
      host_on_q <= 1'b0;
      card_on_q <= 1'b0;
    end else begin
      host_on_q <= bus_master_i && !flr_q;
      card_on_q <= !flr_q;
      if (flr_i) flr_q <= 1'b1;
      else if (reset_q) flr_q <= 1'b0;
      closed_q <= flr_q && !reset_q;
      reset_q  <= drained && !reset_q;
    end
  end
  assign flr_busy_o = flr_q;

  // One copy for each channel, and one for the rest: a single register would have thousands of loads. The gates stay shut for two cycles
  // more.
  (* keep = "true" *)
  logic [NumCh:0] core_rst_nq;
  always_ff @(posedge clk_i) core_rst_nq <= {(NumCh + 1) {rst_ni && !reset_q}};

  axi_ax_t host_ar, host_aw;
  axi_r_t host_r;
  axi_w_t host_w;
  axi_b_t host_b;
  logic host_ar_valid, host_ar_ready, host_r_valid, host_r_ready, host_aw_valid, host_aw_ready, host_w_valid, host_w_ready;
  logic host_b_valid, host_b_ready;

  via_fn_gate u_host_gate (
    .clk_i,
    .rst_ni,
    .enable_i    (host_on_q),
    .drained_o   (host_drained),
    .s_ar_i      (host_ar),
    .s_ar_valid_i(host_ar_valid),
    .s_ar_ready_o(host_ar_ready),
    .s_r_o       (host_r),
    .s_r_valid_o (host_r_valid),
    .s_r_ready_i (host_r_ready),
    .s_aw_i      (host_aw),
    .s_aw_valid_i(host_aw_valid),
    .s_aw_ready_o(host_aw_ready),
    .s_w_i       (host_w),
    .s_w_valid_i (host_w_valid),
    .s_w_ready_o (host_w_ready),
    .s_b_o       (host_b),
    .s_b_valid_o (host_b_valid),
    .s_b_ready_i (host_b_ready),
    .m_ar_o      (m_ar_o),
    .m_ar_valid_o(m_ar_valid_o),
    .m_ar_ready_i(m_ar_ready_i),
    .m_r_i       (m_r_i),
    .m_r_valid_i (m_r_valid_i),
    .m_r_ready_o (m_r_ready_o),
    .m_aw_o      (m_aw_o),
    .m_aw_valid_o(m_aw_valid_o),
    .m_aw_ready_i(m_aw_ready_i),
    .m_w_o       (m_w_o),
    .m_w_valid_o (m_w_valid_o),
    .m_w_ready_i (m_w_ready_i),
    .m_b_i       (m_b_i),
    .m_b_valid_i (m_b_valid_i),
    .m_b_ready_o (m_b_ready_o)
  );

  axi_ax_t card_ar, card_aw;
  axi_r_t card_r;
  axi_w_t card_w;
  axi_b_t card_b;
  logic card_ar_valid, card_ar_ready, card_r_valid, card_r_ready, card_aw_valid, card_aw_ready, card_w_valid, card_w_ready;
  logic card_b_valid, card_b_ready;

  via_fn_gate u_card_gate (
    .clk_i,
    .rst_ni,
    .enable_i    (card_on_q),
    .drained_o   (card_drained),
    .s_ar_i      (card_ar),
    .s_ar_valid_i(card_ar_valid),
    .s_ar_ready_o(card_ar_ready),
    .s_r_o       (card_r),
    .s_r_valid_o (card_r_valid),
    .s_r_ready_i (card_r_ready),
    .s_aw_i      (card_aw),
    .s_aw_valid_i(card_aw_valid),
    .s_aw_ready_o(card_aw_ready),
    .s_w_i       (card_w),
    .s_w_valid_i (card_w_valid),
    .s_w_ready_o (card_w_ready),
    .s_b_o       (card_b),
    .s_b_valid_o (card_b_valid),
    .s_b_ready_i (card_b_ready),
    .m_ar_o      (m_card_ar_o),
    .m_ar_valid_o(m_card_ar_valid_o),
    .m_ar_ready_i(m_card_ar_ready_i),
    .m_r_i       (m_card_r_i),
    .m_r_valid_i (m_card_r_valid_i),
    .m_r_ready_o (m_card_r_ready_o),
    .m_aw_o      (m_card_aw_o),
    .m_aw_valid_o(m_card_aw_valid_o),
    .m_aw_ready_i(m_card_aw_ready_i),
    .m_w_o       (m_card_w_o),
    .m_w_valid_o (m_card_w_valid_o),
    .m_w_ready_i (m_card_w_ready_i),
    .m_b_i       (m_card_b_i),
    .m_b_valid_i (m_card_b_valid_i),
    .m_b_ready_o (m_card_b_ready_o)
  );

  // ---------------------------------------------------------------- accesses
  typedef enum logic [3:0] {
    TgtH2c    = 4'h0,
    TgtC2h    = 4'h1,
    TgtIrq    = 4'h2,
    TgtConfig = 4'h3,
    TgtH2cSg  = 4'h4,
    TgtC2hSg  = 4'h5,
    TgtCommon = 4'h6
  } target_e;

  // look: the request has arrived; act: it is decoded and carried out; join: the read data is collected; then the response.
  logic look_q, act_q, join_q, rvalid_q, write, user, user_q;
  fn_req_t req_q;
  logic [NumCh-1:0] to_ch;
  // Each channel has its own copy, decoded: channels may be placed far apart.
  typedef struct packed {
    xdma_words_t read;
    xdma_words_t write;
    logic [31:0] wdata;
  } ch_req_t;
  ch_req_t [NumCh-1:0] ch_req_q;
  logic to_irq_q, common_q, exec;
  logic [3:0] target, number;
  logic [7:0] offset;
  logic [31:0] rdata, rdata_q, cfg_rdata, irq_rdata;
  logic [NumCh-1:0][31:0] ch_rdata, ch_rdata_q;
  logic [31:0] own_rdata_q, joined;
  logic [NumCh-1:0] ch_irq, ch_idle, halt_q, credit_mode_q;
  logic irq_idle;

  assign write  = req_q.write && req_q.strb == '1;
  // An access to the user BAR that has an effect.
  assign user   = look_q && !req_q.cfg && req_q.bar == XdmaBarUser && (write || !req_q.write);
  assign target = req_q.addr[15:12];
  assign number = req_q.addr[11:8];
  assign offset = req_q.addr[7:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      look_q   <= 1'b0;
      act_q    <= 1'b0;
      join_q   <= 1'b0;
      rvalid_q <= 1'b0;
      user_q   <= 1'b0;
      to_irq_q <= 1'b0;
      common_q <= 1'b0;
    end else begin
      look_q   <= req_valid_i && !(look_q || act_q || join_q || user_q || rvalid_q);
      act_q    <= look_q && !user;
      user_q   <= user || user_q && !user_rvalid_i;
      join_q   <= act_q;
      rvalid_q <= join_q || user_q && user_rvalid_i;
      to_irq_q <= exec && target == TgtIrq && number == '0;
      common_q <= exec && target == TgtCommon && number == '0;
    end
  end
  assign exec = look_q && !req_q.cfg && req_q.bar == XdmaBarDma;
  always_comb begin
    for (int unsigned c = 0; c < Channels; c++) begin
      to_ch[c]          = exec && (target == TgtH2c || target == TgtH2cSg) && number == 4'(c);
      to_ch[Channels+c] = exec && (target == TgtC2h || target == TgtC2hSg) && number == 4'(c);
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < NumCh; c++) begin
      ch_req_q[c].read  <= (to_ch[c] && !req_q.write) ? xdma_words(target[2], offset) : '0;
      ch_req_q[c].write <= (to_ch[c] && write) ? xdma_words(target[2], offset) : '0;
      if (to_ch[c]) ch_req_q[c].wdata <= req_q.wdata;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!look_q && !act_q && !join_q && !user_q) req_q <= req_i;
    ch_rdata_q <= ch_rdata;
    if (act_q) own_rdata_q <= req_q.cfg ? cfg_rdata : rdata;
    if (join_q || user_q) rdata_q <= user_q ? user_rdata_i : joined;
    if (user) begin
      user_slot_o <= req_q.addr[15:12];
      user_req_o  <= '{addr: req_q.addr[11:0], write: write, wdata: req_q.wdata};
    end
  end
  assign user_valid_o = user_q;
  assign req_rvalid_o = rvalid_q;
  assign req_rdata_o  = rdata_q;

  // The registers of configuration space that the PCIe core expects; there are no capabilities of its own.
  always_comb begin
    unique case (req_q.addr[7:0])
      8'h00:   cfg_rdata = 32'h903f_10ee;
      8'h08:   cfg_rdata = 32'h0580_0000;  // class code: other memory controller
      8'h10:   cfg_rdata = 32'hffff_0000;  // user BAR
      8'h14:   cfg_rdata = 32'hffff_0000;  // DMA BAR
      8'h2c:   cfg_rdata = 32'h0007_10ee;
      8'h7c:   cfg_rdata = {16'(Vectors - 1), 16'h0000};
      8'h80:   cfg_rdata = 32'(BarMsixTable) | 32'(XdmaBarDma);
      8'h84:   cfg_rdata = 32'(BarMsixPending) | 32'(XdmaBarDma);
      default: cfg_rdata = '0;
    endcase
  end

  always_comb begin
    // Blocks that are not addressed return 0.
    joined = own_rdata_q;
    for (int unsigned c = 0; c < NumCh; c++) joined |= ch_rdata_q[c];
    rdata = irq_rdata;
    if (act_q && !req_q.cfg && req_q.bar == XdmaBarDma) begin
      unique case (target)
        TgtConfig: begin
          if (number == '0) begin
            unique case (offset)
              8'h00: rdata = {12'h1fc, 4'h3, 8'h00, via_xdma_pkg::IdVersion};
              8'h08: rdata = 32'd5;  // a payload of up to 4 KiB
              8'h0c: rdata = 32'd5;  // a read request of up to 4 KiB
              8'h10: rdata = 32'h0000_ff01;
              8'h14: rdata = 32'd2;  // MSI-X
              8'h18: rdata = 32'($clog2(DataW / 64));
              8'h40, 8'h44: rdata = 32'h0000_0055;
              default: ;
            endcase
          end
        end
        TgtCommon: begin
          if (number == '0) begin
            unique case (offset)
              8'h00: rdata = {12'h1fc, 4'h6, 8'h00, via_xdma_pkg::IdVersion};
              8'h10, 8'h14, 8'h18: rdata = {12'd0, 4'(halt_q[NumCh-1:Channels]), 12'd0, 4'(halt_q[Channels-1:0])};
              8'h20, 8'h24, 8'h28: rdata = {12'd0, 4'(credit_mode_q[NumCh-1:Channels]), 12'd0, 4'(credit_mode_q[Channels-1:0])};
              default: ;
            endcase
          end
        end
        default: ;
      endcase
    end
  end

  // One bit per channel: H2C in the lower half of the word, C2H in the upper.
  logic [NumCh-1:0] chosen;
  assign chosen = {req_q.wdata[16+:Channels], req_q.wdata[Channels-1:0]};
  always_ff @(posedge clk_i) begin
    if (!core_rst_nq[NumCh]) begin
      halt_q        <= '0;
      credit_mode_q <= '0;
    end else if (common_q && write) begin
      unique case (offset)
        8'h10:   halt_q <= chosen;
        8'h14:   halt_q <= halt_q | chosen;
        8'h18:   halt_q <= halt_q & ~chosen;
        8'h20:   credit_mode_q <= chosen;
        8'h24:   credit_mode_q <= credit_mode_q | chosen;
        8'h28:   credit_mode_q <= credit_mode_q & ~chosen;
        default: ;
      endcase
    end
  end

  via_xdma_irq #(
    .Channels(NumCh),
    .Users   (Users),
    .Vectors (Vectors)
  ) u_irq (
    .clk_i,
    .rst_ni     (core_rst_nq[NumCh]),
    .reg_valid_i(to_irq_q),
    .reg_write_i(write),
    .reg_addr_i (offset),
    .reg_wdata_i(req_q.wdata),
    .reg_rdata_o(irq_rdata),
    .channel_i  (ch_irq),
    .user_i     (user_irq_i),
    .user_ack_o (user_irq_ack_o),
    .hold_i     (flr_q || !bus_master_i),
    .msix_valid_o,
    .msix_vector_o,
    .msix_ready_i,
    .idle_o     (irq_idle)
  );

  // ---------------------------------------------------------------- memories
  // Sources on the host port: descriptors and write-backs of all channels (H2C, then C2H) have priority over data.

  axi_ax_t host_rd_ar[NumCh + Channels];
  axi_r_t  host_rd_r [NumCh + Channels];
  axi_ax_t host_wr_aw[NumCh + Channels];
  axi_w_t  host_wr_w [NumCh + Channels];
  axi_b_t  host_wr_b [NumCh + Channels];
  logic [NumCh + Channels-1:0] host_rd_ar_valid, host_rd_ar_ready, host_rd_r_valid, host_rd_r_ready;
  logic [NumCh + Channels-1:0] host_wr_aw_valid, host_wr_aw_ready, host_wr_w_valid, host_wr_w_ready, host_wr_b_valid, host_wr_b_ready;
  logic host_idle;

  via_axi_mux #(
    .NumRd   (NumCh + Channels),
    .NumWr   (NumCh + Channels),
    .NumFirst(NumCh)
  ) u_host_mux (
    .clk_i,
    .rst_ni      (core_rst_nq[NumCh]),
    .weight_i    ('{default: '0}),
    .first_i     ('{default: '0}),
    .share_i     ('0),
    .window_i    ('0),
    .s_ar_i      (host_rd_ar),
    .s_ar_valid_i(host_rd_ar_valid),
    .s_ar_ready_o(host_rd_ar_ready),
    .s_r_o       (host_rd_r),
    .s_r_valid_o (host_rd_r_valid),
    .s_r_ready_i (host_rd_r_ready),
    .s_aw_i      (host_wr_aw),
    .s_aw_valid_i(host_wr_aw_valid),
    .s_aw_ready_o(host_wr_aw_ready),
    .s_w_i       (host_wr_w),
    .s_w_valid_i (host_wr_w_valid),
    .s_w_ready_o (host_wr_w_ready),
    .s_b_o       (host_wr_b),
    .s_b_valid_o (host_wr_b_valid),
    .s_b_ready_i (host_wr_b_ready),
    .m_ar_o      (host_ar),
    .m_ar_valid_o(host_ar_valid),
    .m_ar_ready_i(host_ar_ready),
    .m_r_i       (host_r),
    .m_r_valid_i (host_r_valid),
    .m_r_ready_o (host_r_ready),
    .m_aw_o      (host_aw),
    .m_aw_valid_o(host_aw_valid),
    .m_aw_ready_i(host_aw_ready),
    .m_w_o       (host_w),
    .m_w_valid_o (host_w_valid),
    .m_w_ready_i (host_w_ready),
    .m_b_i       (host_b),
    .m_b_valid_i (host_b_valid),
    .m_b_ready_o (host_b_ready),
    .still_o     (),
    .idle_o      (host_idle)
  );

  axi_ax_t card_rd_ar[Channels];
  axi_r_t  card_rd_r [Channels];
  axi_ax_t card_wr_aw[Channels];
  axi_w_t  card_wr_w [Channels];
  axi_b_t  card_wr_b [Channels];
  logic [Channels-1:0] card_rd_ar_valid, card_rd_ar_ready, card_rd_r_valid, card_rd_r_ready;
  logic [Channels-1:0] card_wr_aw_valid, card_wr_aw_ready, card_wr_w_valid, card_wr_w_ready, card_wr_b_valid, card_wr_b_ready;
  logic card_idle;

  via_axi_mux #(
    .NumRd   (Channels),
    .NumWr   (Channels),
    .NumFirst(0)
  ) u_card_mux (
    .clk_i,
    .rst_ni      (core_rst_nq[NumCh]),
    .weight_i    ('{default: '0}),
    .first_i     ('{default: '0}),
    .share_i     ('0),
    .window_i    ('0),
    .s_ar_i      (card_rd_ar),
    .s_ar_valid_i(card_rd_ar_valid),
    .s_ar_ready_o(card_rd_ar_ready),
    .s_r_o       (card_rd_r),
    .s_r_valid_o (card_rd_r_valid),
    .s_r_ready_i (card_rd_r_ready),
    .s_aw_i      (card_wr_aw),
    .s_aw_valid_i(card_wr_aw_valid),
    .s_aw_ready_o(card_wr_aw_ready),
    .s_w_i       (card_wr_w),
    .s_w_valid_i (card_wr_w_valid),
    .s_w_ready_o (card_wr_w_ready),
    .s_b_o       (card_wr_b),
    .s_b_valid_o (card_wr_b_valid),
    .s_b_ready_i (card_wr_b_ready),
    .m_ar_o      (card_ar),
    .m_ar_valid_o(card_ar_valid),
    .m_ar_ready_i(card_ar_ready),
    .m_r_i       (card_r),
    .m_r_valid_i (card_r_valid),
    .m_r_ready_o (card_r_ready),
    .m_aw_o      (card_aw),
    .m_aw_valid_o(card_aw_valid),
    .m_aw_ready_i(card_aw_ready),
    .m_w_o       (card_w),
    .m_w_valid_o (card_w_valid),
    .m_w_ready_i (card_w_ready),
    .m_b_i       (card_b),
    .m_b_valid_i (card_b_valid),
    .m_b_ready_o (card_b_ready),
    .still_o     (),
    .idle_o      (card_idle)
  );

  // ---------------------------------------------------------------- channels
  logic [31:0] chan_mib_q;  // constant while the card runs
  always_ff @(posedge clk_i) chan_mib_q <= chan_mib_i;

  for (genvar i = 0; i < Channels; i++) begin : gen_h2c
    localparam int unsigned K = i;
    localparam int unsigned Rd = NumCh + i;
    localparam int unsigned Wr = i;
    via_xdma_channel #(
      .C2h     (1'b0),
      .Index   (i),
      .HostBits(HostBits)
    ) u_channel (
      .clk_i,
      .rst_ni         (core_rst_nq[i]),
      .time_i,
      .chan_mib_i     (chan_mib_q),
      .reg_read_i     (ch_req_q[K].read),
      .reg_write_i    (ch_req_q[K].write),
      .reg_wdata_i    (ch_req_q[K].wdata),
      .reg_rdata_o    (ch_rdata[K]),
      .halt_i         (halt_q[K]),
      .credit_mode_i  (credit_mode_q[K]),
      .irq_o          (ch_irq[K]),
      .desc_ar_o      (host_rd_ar[K]),
      .desc_ar_valid_o(host_rd_ar_valid[K]),
      .desc_ar_ready_i(host_rd_ar_ready[K]),
      .desc_r_i       (host_rd_r[K]),
      .desc_r_valid_i (host_rd_r_valid[K]),
      .desc_r_ready_o (host_rd_r_ready[K]),
      .wb_aw_o        (host_wr_aw[K]),
      .wb_aw_valid_o  (host_wr_aw_valid[K]),
      .wb_aw_ready_i  (host_wr_aw_ready[K]),
      .wb_w_o         (host_wr_w[K]),
      .wb_w_valid_o   (host_wr_w_valid[K]),
      .wb_w_ready_i   (host_wr_w_ready[K]),
      .wb_b_i         (host_wr_b[K]),
      .wb_b_valid_i   (host_wr_b_valid[K]),
      .wb_b_ready_o   (host_wr_b_ready[K]),
      .m_ar_o         (host_rd_ar[Rd]),
      .m_ar_valid_o   (host_rd_ar_valid[Rd]),
      .m_ar_ready_i   (host_rd_ar_ready[Rd]),
      .m_r_i          (host_rd_r[Rd]),
      .m_r_valid_i    (host_rd_r_valid[Rd]),
      .m_r_ready_o    (host_rd_r_ready[Rd]),
      .m_aw_o         (card_wr_aw[Wr]),
      .m_aw_valid_o   (card_wr_aw_valid[Wr]),
      .m_aw_ready_i   (card_wr_aw_ready[Wr]),
      .m_w_o          (card_wr_w[Wr]),
      .m_w_valid_o    (card_wr_w_valid[Wr]),
      .m_w_ready_i    (card_wr_w_ready[Wr]),
      .m_b_i          (card_wr_b[Wr]),
      .m_b_valid_i    (card_wr_b_valid[Wr]),
      .m_b_ready_o    (card_wr_b_ready[Wr]),
      .idle_o         (ch_idle[K])
    );
  end

  for (genvar i = 0; i < Channels; i++) begin : gen_c2h
    localparam int unsigned K = Channels + i;
    localparam int unsigned Rd = i;
    localparam int unsigned Wr = NumCh + i;
    via_xdma_channel #(
      .C2h     (1'b1),
      .Index   (i),
      .HostBits(HostBits)
    ) u_channel (
      .clk_i,
      .rst_ni         (core_rst_nq[K]),
      .time_i,
      .chan_mib_i     (chan_mib_q),
      .reg_read_i     (ch_req_q[K].read),
      .reg_write_i    (ch_req_q[K].write),
      .reg_wdata_i    (ch_req_q[K].wdata),
      .reg_rdata_o    (ch_rdata[K]),
      .halt_i         (halt_q[K]),
      .credit_mode_i  (credit_mode_q[K]),
      .irq_o          (ch_irq[K]),
      .desc_ar_o      (host_rd_ar[K]),
      .desc_ar_valid_o(host_rd_ar_valid[K]),
      .desc_ar_ready_i(host_rd_ar_ready[K]),
      .desc_r_i       (host_rd_r[K]),
      .desc_r_valid_i (host_rd_r_valid[K]),
      .desc_r_ready_o (host_rd_r_ready[K]),
      .wb_aw_o        (host_wr_aw[K]),
      .wb_aw_valid_o  (host_wr_aw_valid[K]),
      .wb_aw_ready_i  (host_wr_aw_ready[K]),
      .wb_w_o         (host_wr_w[K]),
      .wb_w_valid_o   (host_wr_w_valid[K]),
      .wb_w_ready_i   (host_wr_w_ready[K]),
      .wb_b_i         (host_wr_b[K]),
      .wb_b_valid_i   (host_wr_b_valid[K]),
      .wb_b_ready_o   (host_wr_b_ready[K]),
      .m_ar_o         (card_rd_ar[Rd]),
      .m_ar_valid_o   (card_rd_ar_valid[Rd]),
      .m_ar_ready_i   (card_rd_ar_ready[Rd]),
      .m_r_i          (card_rd_r[Rd]),
      .m_r_valid_i    (card_rd_r_valid[Rd]),
      .m_r_ready_o    (card_rd_r_ready[Rd]),
      .m_aw_o         (host_wr_aw[Wr]),
      .m_aw_valid_o   (host_wr_aw_valid[Wr]),
      .m_aw_ready_i   (host_wr_aw_ready[Wr]),
      .m_w_o          (host_wr_w[Wr]),
      .m_w_valid_o    (host_wr_w_valid[Wr]),
      .m_w_ready_i    (host_wr_w_ready[Wr]),
      .m_b_i          (host_wr_b[Wr]),
      .m_b_valid_i    (host_wr_b_valid[Wr]),
      .m_b_ready_o    (host_wr_b_ready[Wr]),
      .idle_o         (ch_idle[K])
    );
  end

  logic still, idle;
  assign idle  = &ch_idle && host_idle && card_idle && irq_idle && !flr_q;
  assign still = idle && !req_valid_i && !look_q && !act_q && !join_q && !user_q && !rvalid_q && !flr_i;
  always_ff @(posedge clk_i) begin
    still_o <= still;
    idle_o  <= idle;
  end

endmodule
