// SPDX-License-Identifier: Apache-2.0
//
// One channel of the XDMA-compatible function: registers, list of descriptors, data, write-back.
//
//   registers ─> via_xdma_fetch ─> via_xdma_mover ─> count, status, interrupt level
//                                              └───> write-back (poll mode)
//
// Throughput: one beat a cycle. Latency of a register: none. Order: descriptors in the order of their list; the data of a descriptor has
// its write responses before the descriptor is counted, and it is counted before the write-back and the interrupt.
// An error stops the channel: descriptors before it are counted, later ones move nothing more. An error of reading or writing data does so
// only if the control register enables it, otherwise the burst in question is left out and the channel continues. Clearing Run lets the
// descriptors that were begun end and drops the rest. If Run is set again meanwhile, the new list starts after that. Misuse (a wrong
// descriptor, an address outside memory) is reported in the status register.
// Source: PG195, channel registers (0x0000, 0x1000) and SGDMA registers (0x4000, 0x5000).

module via_xdma_channel
  import via_pkg::*;
  import via_xdma_pkg::*;
#(
  parameter bit          C2h      = 1'b0,  // card to host
  parameter int unsigned Index    = 0,     // number of the channel
  parameter int unsigned HostBits = 52     // width of host addresses
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic        [63:0] time_i,           // card time
  input  logic        [31:0] chan_mib_i,       // size of each DRAM channel in MiB, constant
  // register access: takes effect in its cycle
  input  xdma_words_t        reg_read_i,       // the register read in this cycle, if any
  input  xdma_words_t        reg_write_i,      // the register written in this cycle, if any
  input  logic        [31:0] reg_wdata_i,      // data to write
  output logic        [31:0] reg_rdata_o,      // read data, in the same cycle
  input  logic               halt_i,           // level: read no new descriptor
  input  logic               credit_mode_i,    // level: descriptors are used only as credits are given
  output logic               irq_o,            // level: interrupt request
  // host memory, descriptors
  output axi_ax_t            desc_ar_o,
  output logic               desc_ar_valid_o,
  input  logic               desc_ar_ready_i,
  input  axi_r_t             desc_r_i,
  input  logic               desc_r_valid_i,
  output logic               desc_r_ready_o,
  // host memory, write-back
  output axi_ax_t            wb_aw_o,
  output logic               wb_aw_valid_o,
  input  logic               wb_aw_ready_i,
  output axi_w_t             wb_w_o,
  output logic               wb_w_valid_o,
  input  logic               wb_w_ready_i,
  input  axi_b_t             wb_b_i,
  input  logic               wb_b_valid_i,
  output logic               wb_b_ready_o,
  // data, from one side to the other
  output axi_ax_t            m_ar_o,
  output logic               m_ar_valid_o,
  input  logic               m_ar_ready_i,
  input  axi_r_t             m_r_i,
  input  logic               m_r_valid_i,
  output logic               m_r_ready_o,
  output axi_ax_t            m_aw_o,
  output logic               m_aw_valid_o,
  input  logic               m_aw_ready_i,
  output axi_w_t             m_w_o,
  output logic               m_w_valid_o,
  input  logic               m_w_ready_i,
  input  axi_b_t             m_b_i,
  input  logic               m_b_valid_i,
  output logic               m_b_ready_o,
  output logic               idle_o            // level: nothing is in flight
);

  localparam bit IndexOk = param_in("via_xdma_channel Index", Index, 0, 3);
  localparam bit HostBitsOk = param_in("via_xdma_channel HostBits", HostBits, PageLog2, 52);

  // Conditions that can be logged in the status register, and enabled in the control register and in the interrupt mask: same bits in all
  // three.
  localparam logic [31:0] LogBits = 32'h00ff_fe7e;
  localparam logic [31:0] ControlBits = LogBits | 32'b1 << BitRun | 32'b1 << BitFixed | 32'b1 << BitWriteBack;
  localparam logic [31:0] Id = {12'h1fc, 3'b000, C2h, 4'b0000, 4'(Index), IdVersion};
  localparam logic [31:0] Alignments = {8'd0, 8'd1, 8'd1, 8'd64};  // any byte address, any length, 64-bit addresses

  typedef enum logic [1:0] {
    Idle,
    Run,
    Drain
  } state_e;
  state_e state_q;

  logic [31:0] control_q, control_d, status_q, mask_q, count_q, events;
  logic [63:0] wb_addr_q, first_q;
  logic [5:0] first_adj_q;
  logic [9:0] credit_q, credit;
  logic credit_any_q;  // credit_q is not 0
  logic run, start_q, start, fail_q, told_q, tell, busy;
  xdma_err_e  err_q;

  // ---------------------------------------------------------------- list and data
  xdma_desc_t desc;
  logic desc_valid, desc_ready, job_valid, job_ready, fetch_idle, mover_idle, beat;
  logic done, done_stop, done_completed;
  xdma_err_e done_err;

  assign run   = control_q[BitRun];
  assign start = state_q == Idle && start_q;

  via_xdma_fetch #(
    .HostBits(HostBits)
  ) u_fetch (
    .clk_i,
    .rst_ni,
    .start_i     (start),
    .addr_i      (first_q),
    .adj_i       (first_adj_q),
    .stop_i      (state_q == Drain),
    .halt_i,
    .desc_o      (desc),
    .desc_valid_o(desc_valid),
    .desc_ready_i(desc_ready),
    .m_ar_o      (desc_ar_o),
    .m_ar_valid_o(desc_ar_valid_o),
    .m_ar_ready_i(desc_ar_ready_i),
    .m_r_i       (desc_r_i),
    .m_r_valid_i (desc_r_valid_i),
    .m_r_ready_o (desc_r_ready_o),
    .idle_o      (fetch_idle)
  );

  assign job_valid  = state_q == Run && run && desc_valid && desc.err == XErrNone && (!credit_mode_i || credit_any_q);
  assign desc_ready = job_valid && job_ready;

  via_xdma_mover #(
    .C2h     (C2h),
    .HostBits(HostBits)
  ) u_mover (
    .clk_i,
    .rst_ni,
    .chan_mib_i,
    .clear_i         (start),
    .enabled_i       (control_q),
    .fixed_i         (control_q[BitFixed]),
    .job_i           (desc),
    .job_valid_i     (job_valid),
    .job_ready_o     (job_ready),
    .done_o          (done),
    .done_stop_o     (done_stop),
    .done_completed_o(done_completed),
    .done_err_o      (done_err),
    .beat_o          (beat),
    .m_ar_o,
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_r_i,
    .m_r_valid_i,
    .m_r_ready_o,
    .m_aw_o,
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_w_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_b_i,
    .m_b_valid_i,
    .m_b_ready_o,
    .idle_o          (mover_idle)
  );

  // ---------------------------------------------------------------- state
  logic desc_fails, job_fails, wb_idle;
  assign desc_fails = state_q == Run && desc_valid && desc.err != XErrNone && mover_idle;  // only when all before it are done
  assign job_fails = done && done_err != XErrNone;
  // An error is reported once the channel has stopped.
  assign tell = state_q == Drain && mover_idle && fail_q && !told_q;
  // Busy ends as soon as the status is final.
  assign busy = state_q == Run || start_q || state_q == Drain && (!mover_idle || tell || !run);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= Idle;
    else begin
      unique case (state_q)
        Idle: if (start_q) state_q <= Run;
        Run: if (!run || desc_fails || job_fails || done && done_stop) state_q <= Drain;
        Drain: if (mover_idle && fetch_idle && wb_idle && !tell) state_q <= Idle;
        default: state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start) begin
      fail_q  <= 1'b0;
      told_q  <= 1'b0;
      count_q <= '0;
    end else begin
      if (!fail_q && (desc_fails || job_fails)) fail_q <= 1'b1;
      if (tell) told_q <= 1'b1;
      if (done && done_err == XErrNone) count_q <= count_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) if (!fail_q) err_q <= desc_fails ? desc.err : done_err;

  // Credits given are added up to the maximum; one may be used in the same cycle.
  logic [10:0] given;
  assign given = 11'(credit_q) + 11'(reg_wdata_i[9:0]);
  always_comb begin
    credit = credit_q;
    if (reg_write_i.sg_credit) credit = given[10] ? '1 : given[9:0];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !run || !credit_mode_i) begin
      credit_q     <= '0;
      credit_any_q <= 1'b0;
    end else begin
      credit_q     <= credit - 10'(desc_ready);
      credit_any_q <= desc_ready ? credit > 10'd1 : credit != '0;
    end
  end

  // ---------------------------------------------------------------- logged conditions
  logic rests, wb_fails;
  xdma_err_e wb_err;
  // Idle with Run cleared: after the descriptors that were begun, or at once.
  assign rests = state_q == Drain && mover_idle && fetch_idle && wb_idle && !tell && !run || state_q == Idle && run && !control_d[BitRun];

  always_comb begin
    events = '0;
    if (tell) events = err_bits(err_q);
    if (wb_fails) events |= err_bits(wb_err);
    if (done && done_err == XErrNone) begin
      events[BitStopped]   = done_stop;
      events[BitCompleted] = done_completed;
    end
    if (rests) events[BitIdle] = 1'b1;
  end

  // ---------------------------------------------------------------- registers
  always_comb begin
    control_d = control_q;
    if (reg_write_i.control) control_d = reg_wdata_i & ControlBits;
    if (reg_write_i.control_set) control_d = control_q | reg_wdata_i & ControlBits;
    if (reg_write_i.control_clear) control_d = control_q & ~reg_wdata_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      control_q   <= '0;
      status_q    <= '0;
      mask_q      <= '0;
      start_q     <= 1'b0;
      wb_addr_q   <= '0;
      first_q     <= '0;
      first_adj_q <= '0;
    end else begin
      control_q <= control_d;
      if (!control_d[BitRun] || start) start_q <= 1'b0;
      if (control_d[BitRun] && !run) start_q <= 1'b1;

      if (start) status_q <= '0;
      else begin
        // A condition that occurs in the cycle of a clearing access is kept for the next one.
        status_q <= (reg_write_i.status ? status_q & ~reg_wdata_i : reg_read_i.status_clear ? '0 : status_q) | events & control_q & LogBits;
      end

      if (reg_write_i.wb_lo) wb_addr_q[31:0] <= {reg_wdata_i[31:2], 2'b00};
      if (reg_write_i.wb_hi) wb_addr_q[63:32] <= reg_wdata_i;
      if (reg_write_i.mask) mask_q <= reg_wdata_i & LogBits;
      if (reg_write_i.mask_set) mask_q <= mask_q | reg_wdata_i & LogBits;
      if (reg_write_i.mask_clear) mask_q <= mask_q & ~reg_wdata_i;
      if (reg_write_i.sg_first_lo) first_q[31:0] <= reg_wdata_i;
      if (reg_write_i.sg_first_hi) first_q[63:32] <= reg_wdata_i;
      if (reg_write_i.sg_adj) first_adj_q <= reg_wdata_i[5:0];
    end
  end

  // A clearing access lowers the request for a cycle, so that what it left, or what came with it, is a request of its own: its message is
  // the last one that a driver gets which waits for one before it reads again.
  logic cleared_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) cleared_q <= 1'b0;
    else cleared_q <= reg_write_i.status || reg_read_i.status_clear;
  end
  assign irq_o = !cleared_q && (status_q & mask_q) != '0;

  // ---------------------------------------------------------------- performance counters
  // Cycles are differences of time_i: a free-running counter would keep the card awake. The time used is that of the previous cycle; a
  // register access arrives a cycle after it has woken the clock.
  logic perf_q, perf_auto_q, perf_clear, perf_stops;
  logic [63:0] time_q, perf_from_q, perf_for_q, perf_cycles_q, perf_beats_q, perf_cycles, perf_shown_q;
  assign perf_clear  = reg_write_i.perf && reg_wdata_i[1];
  assign perf_stops  = reg_write_i.perf ? !reg_wdata_i[0] : perf_auto_q && done && (done_stop || done_err != XErrNone);
  assign perf_cycles = perf_cycles_q + perf_for_q;
  always_ff @(posedge clk_i) begin
    time_q       <= time_i;
    perf_shown_q <= perf_cycles;
    if (!perf_q || perf_stops) perf_for_q <= '0;
    else perf_for_q <= time_i - perf_from_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      perf_q        <= 1'b0;
      perf_auto_q   <= 1'b0;
      perf_cycles_q <= '0;
      perf_beats_q  <= '0;
      perf_from_q   <= '0;
    end else begin
      if (reg_write_i.perf) begin
        perf_auto_q <= reg_wdata_i[2];
        perf_q      <= reg_wdata_i[0];
        if (!perf_q || perf_clear) perf_from_q <= time_q;
        if (perf_q && perf_stops) perf_cycles_q <= perf_cycles;
        if (perf_clear) begin
          perf_cycles_q <= '0;
          perf_beats_q  <= '0;
        end
      end else begin
        if (perf_q && perf_stops) begin
          perf_q        <= 1'b0;
          perf_cycles_q <= perf_cycles;
        end
        if (perf_auto_q && start) begin
          perf_q      <= 1'b1;
          perf_from_q <= time_q;
        end
        if (perf_q && beat) perf_beats_q <= perf_beats_q + 1'b1;
      end
    end
  end

  // A register that is not read returns 0.
  function automatic logic [31:0] of(input logic asked, input logic [31:0] value);
    return asked ? value : '0;
  endfunction
  always_comb begin
    reg_rdata_o = of(reg_read_i.id, Id) | of(reg_read_i.sg_id, Id | 32'h0004_0000) | of(reg_read_i.align, Alignments);
    reg_rdata_o |= of(reg_read_i.control || reg_read_i.control_set || reg_read_i.control_clear, control_q);
    reg_rdata_o |= of(reg_read_i.status || reg_read_i.status_clear, {status_q[31:1], busy}) | of(reg_read_i.count, count_q);
    reg_rdata_o |= of(reg_read_i.mask || reg_read_i.mask_set || reg_read_i.mask_clear, mask_q);
    reg_rdata_o |= of(reg_read_i.wb_lo, wb_addr_q[31:0]) | of(reg_read_i.wb_hi, wb_addr_q[63:32]);
    reg_rdata_o |= of(reg_read_i.perf, {29'd0, perf_auto_q, 1'b0, perf_q});
    reg_rdata_o |= of(reg_read_i.cycles_lo, perf_shown_q[31:0]) | of(reg_read_i.cycles_hi, perf_shown_q[63:32]);
    reg_rdata_o |= of(reg_read_i.beats_lo, perf_beats_q[31:0]) | of(reg_read_i.beats_hi, perf_beats_q[63:32]);
    reg_rdata_o |= of(reg_read_i.sg_first_lo, first_q[31:0]) | of(reg_read_i.sg_first_hi, first_q[63:32]);
    reg_rdata_o |= of(reg_read_i.sg_adj, 32'(first_adj_q)) | of(reg_read_i.sg_credit, 32'(credit_q));
  end

  // ---------------------------------------------------------------- write-back
  // One at a time; completions meanwhile are reported together by the next one. Address and value are sampled when it begins.
  logic wb_want_q, wb_aw_q, wb_w_q, wb_b_q, wb_go, wb_outside;
  logic [63:2] wb_at_q;
  logic [31:0] wb_data_q;

  assign wb_outside = (wb_addr_q >> HostBits) != '0;
  assign wb_go = wb_want_q && !wb_b_q;
  assign wb_idle = !wb_want_q && !wb_b_q;
  assign wb_fails = wb_go && wb_outside || wb_b_valid_i && wb_b_i.resp != RespOkay;
  assign wb_err = (wb_go || wb_b_i.resp == RespDecErr) ? XErrWriteDec : XErrWriteSlv;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wb_want_q <= 1'b0;
      wb_aw_q   <= 1'b0;
      wb_w_q    <= 1'b0;
      wb_b_q    <= 1'b0;
    end else begin
      if (control_q[BitWriteBack] && (tell || done && done_completed && done_err == XErrNone)) wb_want_q <= 1'b1;
      else if (wb_go) wb_want_q <= 1'b0;
      if (wb_go && !wb_outside) begin
        wb_aw_q <= 1'b1;
        wb_w_q  <= 1'b1;
        wb_b_q  <= 1'b1;
      end
      if (wb_aw_valid_o && wb_aw_ready_i) wb_aw_q <= 1'b0;
      if (wb_w_valid_o && wb_w_ready_i) wb_w_q <= 1'b0;
      if (wb_b_valid_i && wb_b_ready_o) wb_b_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (wb_go) begin
      wb_at_q   <= wb_addr_q[63:2];
      wb_data_q <= {told_q, 7'd0, count_q[23:0]};
    end
  end

  assign wb_aw_valid_o = wb_aw_q;
  assign wb_w_valid_o  = wb_w_q;
  assign wb_b_ready_o  = wb_b_q;
  always_comb begin
    wb_aw_o       = '0;
    wb_aw_o.burst = BurstIncr;
    wb_aw_o.size  = 3'(BeatLog2);
    wb_aw_o.addr  = {wb_at_q[63:BeatLog2], BeatLog2'(0)};
    wb_w_o.last   = 1'b1;
    wb_w_o.strb   = StrbW'(4'hf) << {wb_at_q[BeatLog2-1:2], 2'b00};
    wb_w_o.data   = {(DataW / 32) {wb_data_q}};
  end

  assign idle_o = state_q == Idle && !start_q && mover_idle && fetch_idle && wb_idle;

endmodule
