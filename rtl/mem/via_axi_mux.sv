// SPDX-License-Identifier: Apache-2.0
//
// Merges several readers and writers onto one AXI port. The id on the port is the source's index; the sources' own ids are kept here and
// returned with the response. Sources 0..NumFirst-1 (rings) have priority over the rest (bulk data), which is served round robin, burst by
// burst, or with Shared by beats and weights, reads and writes each, with a window of what is under way (via_axi_mux_share).
// Throughput: one beat per cycle and channel. Latency: one cycle each way, one more for an address of a source other than the last one; with
// Shared one more for every address.
// Every output of the port is a register.
// Order: responses of one source come in order; those of different sources may overtake one another. With Ordered a read leaves after every
// write (of any source) whose last beat was accepted in an earlier cycle; without it reads and writes are not ordered.
// Misuse: relies on the rule against deadlocks (docs/interfaces.md, section 1, No deadlocks): a source that does not accept its R or B, or holds
// back W after AW, stops the others.
// Responses with an id that no source has are dropped.

module via_axi_mux
  import via_pkg::*;
#(
  parameter int unsigned NumRd = 3,
  parameter int unsigned NumWr = 3,
  parameter int unsigned NumFirst = 1,
  parameter int unsigned Outstanding = 64,  // bursts in flight per source, reads and writes each
  parameter bit Ordered = 1'b0,
  parameter bit Shared = 1'b0
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  /* verilator lint_off UNUSEDSIGNAL */  // without Shared
  input  logic       [WeightW-1:0] weight_i    [NumRd],  // share of each source, from 1; the first ones have enough
  input  logic       [  NumRd-1:0] first_i     [    2],  // level: goes first, as those do: reads (0), writes (1)
  input  share_cfg_t               share_i,              // policy and quantum
  input  logic       [        7:0] window_i,             // beats under way each way, in 16
  /* verilator lint_on UNUSEDSIGNAL */
  input  axi_ax_t                  s_ar_i      [NumRd],
  input  logic       [  NumRd-1:0] s_ar_valid_i,
  output logic       [  NumRd-1:0] s_ar_ready_o,
  output axi_r_t                   s_r_o       [NumRd],
  output logic       [  NumRd-1:0] s_r_valid_o,
  input  logic       [  NumRd-1:0] s_r_ready_i,
  input  axi_ax_t                  s_aw_i      [NumWr],
  input  logic       [  NumWr-1:0] s_aw_valid_i,
  output logic       [  NumWr-1:0] s_aw_ready_o,
  input  axi_w_t                   s_w_i       [NumWr],
  input  logic       [  NumWr-1:0] s_w_valid_i,
  output logic       [  NumWr-1:0] s_w_ready_o,
  output axi_b_t                   s_b_o       [NumWr],
  output logic       [  NumWr-1:0] s_b_valid_o,
  input  logic       [  NumWr-1:0] s_b_ready_i,
  output axi_ax_t                  m_ar_o,
  output logic                     m_ar_valid_o,
  input  logic                     m_ar_ready_i,
  input  axi_r_t                   m_r_i,
  input  logic                     m_r_valid_i,
  output logic                     m_r_ready_o,
  output axi_ax_t                  m_aw_o,
  output logic                     m_aw_valid_o,
  input  logic                     m_aw_ready_i,
  output axi_w_t                   m_w_o,
  output logic                     m_w_valid_o,
  input  logic                     m_w_ready_i,
  input  axi_b_t                   m_b_i,
  input  logic                     m_b_valid_i,
  output logic                     m_b_ready_o,
  output logic                     still_o,              // nothing moves unless an input changes
  output logic                     idle_o                // level: no burst is in flight
);

  localparam bit NumRdOk = param_in("via_axi_mux NumRd", NumRd, 1, 1 << IdW);
  localparam bit NumWrOk = param_in("via_axi_mux NumWr", NumWr, 1, 1 << IdW);
  localparam bit NumFirstOk = param_in("via_axi_mux NumFirst", NumFirst, 0, (NumRd < NumWr) ? NumRd : NumWr);
  localparam bit OutstandingOk = param_in("via_axi_mux Outstanding", Outstanding, 2, 1024);

  localparam bit SourcesOk = param_in("via_axi_mux NumWr", NumWr, Shared ? NumRd : 1, Shared ? NumRd : 1 << IdW);

  axi_ax_t aw;
  logic [NumWr-1:0] aw_take;  // one-hot: whose address is taken in this cycle
  logic aw_valid, aw_ready, aw_still, ar_still, order_full;
  axi_w_t w;
  logic w_valid, w_ready;

  // What the sources share by, if they do.
  /* verilator lint_off UNUSEDSIGNAL */  // without Shared
  host_quanta_t quanta_q[NumRd];
  logic plain_q;
  /* verilator lint_on UNUSEDSIGNAL */
  if (Shared) begin : gen_share
    always_ff @(posedge clk_i) begin
      for (int unsigned i = 0; i < NumRd; i++) quanta_q[i] <= host_quanta_t'(weight_i[i]) << share_i.host_log2;
      plain_q <= rst_ni && share_i.plain;
    end
  end else begin : gen_turns
    assign quanta_q = '{default: '0};
    assign plain_q  = 1'b0;
  end

  // ---------------------------------------------------------------- read: AR
  axi_ax_t ar;
  logic ar_valid, ar_ready;
  logic [NumRd-1:0] rd_owed, rd_full;
  /* verilator lint_off UNUSEDSIGNAL */  // without Shared
  logic rd_back_q;  // a beat has come back
  /* verilator lint_on UNUSEDSIGNAL */

  if (Shared) begin : gen_ar_share
    via_axi_mux_share #(
      .N(NumRd),
      .NumFirst(NumFirst)
    ) u_ar (
      .clk_i,
      .rst_ni,
      .quanta_i  (quanta_q),
      .first_i   (first_i[0]),
      .plain_i   (plain_q),
      .full_i    (rd_full),
      .hold_i    (1'b0),
      .window_i,
      .back_i    (rd_back_q),
      .back_len_i('0),
      .s_i       (s_ar_i),
      .s_valid_i (s_ar_valid_i),
      .s_ready_o (s_ar_ready_o),
      .gnt_o     (),
      .addr_o    (ar.addr),
      .len_o     (ar.len),
      .id_o      (ar.id),
      .any_o     (ar_valid),
      .room_i    (ar_ready),
      .still_o   (ar_still)
    );
    assign ar.size  = 3'(BeatLog2);
    assign ar.burst = BurstIncr;
  end else begin : gen_ar_turn
    via_axi_mux_ax #(
      .N(NumRd),
      .NumFirst(NumFirst)
    ) u_ar (
      .clk_i,
      .rst_ni,
      .s_i      (s_ar_i),
      .full_i   (rd_full),
      .s_valid_i(s_ar_valid_i),
      .s_ready_o(s_ar_ready_o),
      .m_o      (ar),
      .m_valid_o(ar_valid),
      .m_ready_i(ar_ready),
      .still_o  (ar_still)
    );
  end

  if (Ordered) begin : gen_ordered
    via_axi_behind u_ar_slice (
      .clk_i,
      .rst_ni,
      .aw_in_i  (aw_valid && aw_ready),
      .aw_out_i (m_aw_valid_o && m_aw_ready_i),
      .w_in_i   (w_valid && w_ready && w.last),
      .w_out_i  (m_w_valid_o && m_w_ready_i && m_w_o.last),
      .s_i      (ar),
      .s_valid_i(ar_valid),
      .s_ready_o(ar_ready),
      .m_o      (m_ar_o),
      .m_valid_o(m_ar_valid_o),
      .m_ready_i(m_ar_ready_i)
    );
  end else begin : gen_free
    via_slice #(
      .T(axi_ax_t)
    ) u_ar_slice (
      .clk_i,
      .rst_ni,
      .s_i      (ar),
      .s_valid_i(ar_valid),
      .s_ready_o(ar_ready),
      .m_o      (m_ar_o),
      .m_valid_o(m_ar_valid_o),
      .m_ready_i(m_ar_ready_i)
    );
  end

  // ---------------------------------------------------------------- read: R
  typedef struct packed {
    logic [NumRd-1:0] hit;  // one-hot: the source it belongs to
    axi_r_t           r;
  } rd_response_t;
  logic [NumRd-1:0] r_hit_in, r_hit;
  axi_r_t r;
  logic r_valid, r_ready;
  for (genvar i = 0; i < NumRd; i++) begin : gen_r_hit
    assign r_hit_in[i] = m_r_i.id == IdW'(i);
  end

  via_slice #(
    .T(rd_response_t)
  ) u_r_slice (
    .clk_i,
    .rst_ni,
    .s_i      ({r_hit_in, m_r_i}),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      ({r_hit, r}),
    .m_valid_o(r_valid),
    .m_ready_i(r_ready)
  );

  logic [NumRd-1:0] r_stall;
  assign r_ready = ~|r_stall;
  always_ff @(posedge clk_i) rd_back_q <= rst_ni && r_valid && r_ready;

  for (genvar i = 0; i < NumRd; i++) begin : gen_rd
    logic hit, id_valid;
    logic [IdW-1:0] id;
    logic [$clog2(Outstanding+1)-1:0] held;
    assign hit = r_valid && r_hit[i];
    assign s_r_valid_o[i] = hit;
    assign r_stall[i] = hit && !s_r_ready_i[i];
    assign s_r_o[i] = '{id: id, resp: r.resp, last: r.last, data: r.data};
    // Computed a cycle early: one more burst may come in between.
    assign rd_full[i] = held >= ($clog2(Outstanding + 1))'(Outstanding - 1);
    assign rd_owed[i] = id_valid;

    via_fifo #(
      .T(logic [IdW-1:0]),
      .Depth(Outstanding)
    ) u_ids (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (s_ar_i[i].id),
      .s_valid_i(s_ar_valid_i[i] && s_ar_ready_o[i]),
      .s_ready_o(),
      .m_o      (id),
      .m_valid_o(id_valid),
      .m_ready_i(hit && s_r_ready_i[i] && r.last),
      .count_o  (held)
    );
  end

  // ---------------------------------------------------------------- write: AW
  logic [NumWr-1:0] wr_full, wr_owed;
  /* verilator lint_off UNUSEDSIGNAL */  // without Shared
  logic wr_back_q;  // a burst has, of so many beats - 1
  logic [7:0] wr_back_len_q;
  /* verilator lint_on UNUSEDSIGNAL */

  if (Shared) begin : gen_aw_share
    via_axi_mux_share #(
      .N(NumWr),
      .NumFirst(NumFirst)
    ) u_aw (
      .clk_i,
      .rst_ni,
      .quanta_i  (quanta_q),
      .first_i   (first_i[1]),
      .plain_i   (plain_q),
      .full_i    (wr_full),
      .hold_i    (order_full),
      .window_i,
      .back_i    (wr_back_q),
      .back_len_i(wr_back_len_q),
      .s_i       (s_aw_i),
      .s_valid_i (s_aw_valid_i),
      .s_ready_o (s_aw_ready_o),
      .gnt_o     (aw_take),
      .addr_o    (aw.addr),
      .len_o     (aw.len),
      .id_o      (aw.id),
      .any_o     (aw_valid),
      .room_i    (aw_ready),
      .still_o   (aw_still)
    );
    assign aw.size  = 3'(BeatLog2);
    assign aw.burst = BurstIncr;
  end else begin : gen_aw_turn
    via_axi_mux_ax #(
      .N(NumWr),
      .NumFirst(NumFirst)
    ) u_aw (
      .clk_i,
      .rst_ni,
      .s_i      (s_aw_i),
      .full_i   (wr_full | {NumWr{order_full}}),
      .s_valid_i(s_aw_valid_i),
      .s_ready_o(s_aw_ready_o),
      .m_o      (aw),
      .m_valid_o(aw_valid),
      .m_ready_i(aw_ready),
      .still_o  (aw_still)
    );
    assign aw_take = s_aw_valid_i & s_aw_ready_o;
  end

  via_slice #(
    .T(axi_ax_t)
  ) u_aw_slice (
    .clk_i,
    .rst_ni,
    .s_i      (aw),
    .s_valid_i(aw_valid),
    .s_ready_o(aw_ready),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i)
  );

  // ---------------------------------------------------------------- write: W in the order of AW
  // The source of the current burst is held in a register, one-hot, zero if there is none: it drives the readiness. Later bursts wait in a
  // FIFO, also one whose address comes with the last beat before it, so that no path leads from a source's W into the FIFO; then a cycle passes
  // without W.
  logic [NumWr-1:0] w_src_q, w_behind;
  logic w_src_free, w_behind_valid, w_pass;
  logic [NumWr-1:0] w_ends;
  always_comb for (int unsigned i = 0; i < NumWr; i++) w_ends[i] = w_src_q[i] && s_w_valid_i[i] && s_w_i[i].last;
  assign w_src_free = w_src_q == '0 || w_ready && w_ends != '0;
  assign w_pass = w_src_q == '0 && !w_behind_valid;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) w_src_q <= '0;
    else if (w_src_free) w_src_q <= w_behind_valid ? w_behind : w_pass ? aw_take : '0;
  end
  // Computed a cycle early: one more burst may come in between.
  localparam int unsigned Order = 16;
  logic [$clog2(Order+1)-1:0] order_held;
  assign order_full = order_held >= ($clog2(Order + 1))'(Order - 1);

  via_fifo #(
    .T(logic [NumWr-1:0]),
    .Depth(Order)
  ) u_order (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (aw_take),
    .s_valid_i(aw_valid && aw_ready && !w_pass),
    .s_ready_o(),
    .m_o      (w_behind),
    .m_valid_o(w_behind_valid),
    .m_ready_i(w_src_free),
    .count_o  (order_held)
  );

  assign w_valid = |(w_src_q & s_w_valid_i);
  assign s_w_ready_o = w_src_q & {NumWr{w_ready}};
  always_comb begin
    w = '0;
    for (int unsigned i = 0; i < NumWr; i++) if (w_src_q[i]) w |= s_w_i[i];
  end

  via_slice #(
    .T(axi_w_t)
  ) u_w_slice (
    .clk_i,
    .rst_ni,
    .s_i      (w),
    .s_valid_i(w_valid),
    .s_ready_o(w_ready),
    .m_o      (m_w_o),
    .m_valid_o(m_w_valid_o),
    .m_ready_i(m_w_ready_i)
  );

  // ---------------------------------------------------------------- write: B
  typedef struct packed {
    logic [NumWr-1:0] hit;
    axi_b_t           b;
  } wr_response_t;
  logic [NumWr-1:0] b_hit_in, b_hit;
  axi_b_t b;
  logic b_valid, b_ready;
  for (genvar i = 0; i < NumWr; i++) begin : gen_b_hit
    assign b_hit_in[i] = m_b_i.id == IdW'(i);
  end
  logic [NumWr-1:0] b_stall;
  logic [7:0] b_len[NumWr];
  assign b_ready = ~|b_stall;
  always_ff @(posedge clk_i) begin
    wr_back_q <= rst_ni && b_valid && b_ready;
    wr_back_len_q <= '0;
    for (int unsigned i = 0; i < NumWr; i++) if (b_hit[i]) wr_back_len_q <= b_len[i];
  end

  via_slice #(
    .T(wr_response_t)
  ) u_b_slice (
    .clk_i,
    .rst_ni,
    .s_i      ({b_hit_in, m_b_i}),
    .s_valid_i(m_b_valid_i),
    .s_ready_o(m_b_ready_o),
    .m_o      ({b_hit, b}),
    .m_valid_o(b_valid),
    .m_ready_i(b_ready)
  );

  for (genvar i = 0; i < NumWr; i++) begin : gen_wr
    logic hit, id_valid;
    logic [IdW-1:0] id;
    logic [$clog2(Outstanding+1)-1:0] held;
    assign hit = b_valid && b_hit[i];
    assign s_b_valid_o[i] = hit;
    assign b_stall[i] = hit && !s_b_ready_i[i];
    assign s_b_o[i] = '{id: id, resp: b.resp};
    assign wr_full[i] = held >= ($clog2(Outstanding + 1))'(Outstanding - 1);
    assign wr_owed[i] = id_valid;

    via_fifo #(
      .T(logic [IdW+7:0]),
      .Depth(Outstanding)
    ) u_ids (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      ({s_aw_i[i].len, s_aw_i[i].id}),
      .s_valid_i(s_aw_valid_i[i] && s_aw_ready_o[i]),
      .s_ready_o(),
      .m_o      ({b_len[i], id}),
      .m_valid_o(id_valid),
      .m_ready_i(hit && s_b_ready_i[i]),
      .count_o  (held)
    );
  end

  always_ff @(posedge clk_i) begin
    still_o <= ar_still && aw_still && ~|{
        m_ar_valid_o && m_ar_ready_i, m_aw_valid_o && m_aw_ready_i, w_valid && w_ready, m_w_valid_o && m_w_ready_i,
        w_src_free && w_behind_valid, m_r_valid_i && m_r_ready_o, r_valid && r_ready, m_b_valid_i && m_b_ready_o, b_valid && b_ready};
    idle_o <= ~|{s_ar_valid_i, s_aw_valid_i, s_w_valid_i, rd_owed, wr_owed, m_r_valid_i, r_valid, m_b_valid_i, b_valid, w_src_q};
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i)
    if (rst_ni) begin
      assert (!(r_valid && 32'(r.id) >= NumRd))
      else $error("read response with id %0d: no such source", r.id);
      assert (!(b_valid && 32'(b.id) >= NumWr))
      else $error("write response with id %0d: no such source", b.id);
    end
`endif

endmodule
