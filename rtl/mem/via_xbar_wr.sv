// SPDX-License-Identifier: Apache-2.0
//
// Write half of the crossbar.
//
// Throughput: one W beat a manager and a subordinate each cycle, no bubble between bursts. Latency: one cycle each for AW, W and B.
// Order: W and B follow the order of AW at every manager and every subordinate. A manager offers an AW only when it holds the whole burst,
// so W is never waited for. Misuse: see via_xbar.

module via_xbar_wr
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 1,
  parameter int unsigned NumSub = NumChan + 1,
  parameter int unsigned Outstanding = 64
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  axi_ax_t              s_aw_i      [NumMgr],
  input  logic    [NumMgr-1:0] s_aw_valid_i,
  output logic    [NumMgr-1:0] s_aw_ready_o,
  input  axi_w_t               s_w_i       [NumMgr],
  input  logic    [NumMgr-1:0] s_w_valid_i,
  output logic    [NumMgr-1:0] s_w_ready_o,
  output axi_b_t               s_b_o       [NumMgr],
  output logic    [NumMgr-1:0] s_b_valid_o,
  input  logic    [NumMgr-1:0] s_b_ready_i,
  output axi_ax_t              m_aw_o      [NumSub],
  output logic    [NumSub-1:0] m_aw_valid_o,
  input  logic    [NumSub-1:0] m_aw_ready_i,
  output axi_w_t               m_w_o       [NumSub],
  output logic    [NumSub-1:0] m_w_valid_o,
  input  logic    [NumSub-1:0] m_w_ready_i,
  input  axi_b_t               m_b_i       [NumSub],
  input  logic    [NumSub-1:0] m_b_valid_i,
  output logic    [NumSub-1:0] m_b_ready_o,
  output logic                 still_o,               // nothing moves unless an input changes
  output logic                 idle_o                 // level: no write is in flight
);

  localparam bit NumMgrOk = param_in("via_xbar_wr NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar_wr NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar_wr Outstanding", Outstanding, 1, 1024);

  localparam int unsigned TgtW = $clog2(NumSub + 1);
  localparam int unsigned SubW = (NumSub > 1) ? $clog2(NumSub) : 1;
  localparam int unsigned MgrW = (NumMgr > 1) ? $clog2(NumMgr) : 1;

  axi_ax_t ax[NumSub+1];
  logic [NumSub:0] ax_valid, ax_ready;
  logic [NumMgr-1:0] mgr_room, mgr_push;
  logic [NumSub:0] tgt_room, tgt_push;
  logic [TgtW-1:0] mgr_tgt[  NumMgr];
  logic [MgrW-1:0] tgt_mgr[NumSub+1];

  via_xbar_grant #(
    .NumMgr(NumMgr),
    .NumSub(NumSub)
  ) u_grant (
    .clk_i,
    .rst_ni,
    .s_ax_i      (s_aw_i),
    .s_ax_valid_i(s_aw_valid_i),
    .s_ax_ready_o(s_aw_ready_o),
    .m_ax_o      (ax),
    .m_ax_valid_o(ax_valid),
    .m_ax_ready_i(ax_ready),
    .mgr_room_i  (mgr_room),
    .tgt_room_i  (tgt_room),
    .mgr_push_o  (mgr_push),
    .mgr_tgt_o   (mgr_tgt),
    .tgt_push_o  (tgt_push),
    .tgt_mgr_o   (tgt_mgr)
  );

  for (genvar t = 0; t < NumSub; t++) begin : gen_aw
    assign m_aw_o[t] = ax[t];
  end
  assign m_aw_valid_o = ax_valid[NumSub-1:0];
  assign ax_ready[NumSub-1:0] = m_aw_ready_i;
  assign ax_ready[NumSub] = 1'b1;  // for a burst to the error target only its W beats matter

  // Each order is kept twice: to route W, and later to route B.
  logic [NumMgr-1:0] mgr_w_room, mgr_b_room, mgr_w_busy, mgr_b_busy, mgr_w_done, mgr_b_done;
  logic [NumSub:0] tgt_w_room, tgt_b_room, tgt_w_busy, tgt_b_busy, tgt_w_done, tgt_b_done;
  logic [TgtW-1:0] mgr_w_head[NumMgr], mgr_b_head[NumMgr];
  logic [MgrW-1:0] tgt_w_head[NumSub+1], tgt_b_head[NumSub+1];
  logic [IdW-1:0] mgr_b_id[NumMgr];
  assign mgr_room = mgr_w_room & mgr_b_room;
  assign tgt_room = tgt_w_room & tgt_b_room;

  // ---------------------------------------------------------------- W
  logic [NumSub:0] w_room, w_take, w_last;
  always_comb begin
    for (int unsigned t = 0; t <= NumSub; t++) begin
      w_take[t] = tgt_w_busy[t] && w_room[t] && s_w_valid_i[tgt_w_head[t]] && mgr_w_busy[tgt_w_head[t]] &&
          mgr_w_head[tgt_w_head[t]] == TgtW'(t);
      w_last[t] = s_w_i[tgt_w_head[t]].last;
    end
    s_w_ready_o = '0;
    for (int unsigned t = 0; t <= NumSub; t++) if (w_take[t]) s_w_ready_o[tgt_w_head[t]] = 1'b1;
    for (int unsigned m = 0; m < NumMgr; m++) mgr_w_done[m] = s_w_ready_o[m] && s_w_i[m].last;
  end
  assign tgt_w_done = w_take & w_last;

  logic [NumSub-1:0] w_out_valid;
  for (genvar t = 0; t < NumSub; t++) begin : gen_w
    via_slice #(
      .T(axi_w_t)
    ) u_w (
      .clk_i,
      .rst_ni,
      .s_i      (s_w_i[tgt_w_head[t]]),
      .s_valid_i(w_take[t]),
      .s_ready_o(w_room[t]),
      .m_o      (m_w_o[t]),
      .m_valid_o(w_out_valid[t]),
      .m_ready_i(m_w_ready_i[t])
    );
  end
  assign m_w_valid_o = w_out_valid;
  assign w_room[NumSub] = 1'b1;

  // ---------------------------------------------------------------- B
  // The error target owes one B for each burst whose last beat it accepted.
  localparam int unsigned OweW = $clog2(Outstanding + 1);
  logic [OweW-1:0] owed_q;
  logic [NumSub:0] b_valid, b_ready;
  logic [NumMgr-1:0] b_room, b_take, b_out_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) owed_q <= '0;
    else if (tgt_w_done[NumSub] != b_ready[NumSub]) begin
      owed_q <= tgt_w_done[NumSub] ? owed_q + 1'b1 : owed_q - 1'b1;
    end
  end
  assign b_valid = {owed_q != '0, m_b_valid_i};
  assign m_b_ready_o = b_ready[NumSub-1:0];
  assign tgt_b_done = b_ready;

  always_comb begin
    for (int unsigned m = 0; m < NumMgr; m++) begin
      b_take[m] = mgr_b_busy[m] && b_room[m] && b_valid[mgr_b_head[m]] && tgt_b_busy[mgr_b_head[m]] &&
          tgt_b_head[mgr_b_head[m]] == MgrW'(m);
    end
    b_ready = '0;
    for (int unsigned m = 0; m < NumMgr; m++) if (b_take[m]) b_ready[mgr_b_head[m]] = 1'b1;
  end
  assign mgr_b_done = b_take;

  for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
    axi_b_t b;
    always_comb begin
      b.id   = mgr_b_id[m];
      b.resp = (mgr_b_head[m] == TgtW'(NumSub)) ? RespSlvErr : m_b_i[SubW'(mgr_b_head[m])].resp;
    end

    via_slice #(
      .T(axi_b_t)
    ) u_b (
      .clk_i,
      .rst_ni,
      .s_i      (b),
      .s_valid_i(b_take[m]),
      .s_ready_o(b_room[m]),
      .m_o      (s_b_o[m]),
      .m_valid_o(b_out_valid[m]),
      .m_ready_i(s_b_ready_i[m])
    );

    via_fifo #(
      .T    (logic [TgtW-1:0]),
      .Depth(Outstanding)
    ) u_w_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (mgr_tgt[m]),
      .s_valid_i(mgr_push[m]),
      .s_ready_o(mgr_w_room[m]),
      .m_o      (mgr_w_head[m]),
      .m_valid_o(mgr_w_busy[m]),
      .m_ready_i(mgr_w_done[m]),
      .count_o  ()
    );
    via_fifo #(
      .T    (logic [TgtW+IdW-1:0]),
      .Depth(Outstanding)
    ) u_b_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      ({mgr_tgt[m], s_aw_i[m].id}),
      .s_valid_i(mgr_push[m]),
      .s_ready_o(mgr_b_room[m]),
      .m_o      ({mgr_b_head[m], mgr_b_id[m]}),
      .m_valid_o(mgr_b_busy[m]),
      .m_ready_i(mgr_b_done[m]),
      .count_o  ()
    );
  end
  assign s_b_valid_o = b_out_valid;

  for (genvar t = 0; t <= NumSub; t++) begin : gen_tgt
    via_fifo #(
      .T    (logic [MgrW-1:0]),
      .Depth(Outstanding)
    ) u_w_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (tgt_mgr[t]),
      .s_valid_i(tgt_push[t]),
      .s_ready_o(tgt_w_room[t]),
      .m_o      (tgt_w_head[t]),
      .m_valid_o(tgt_w_busy[t]),
      .m_ready_i(tgt_w_done[t]),
      .count_o  ()
    );
    via_fifo #(
      .T    (logic [MgrW-1:0]),
      .Depth(Outstanding)
    ) u_b_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (tgt_mgr[t]),
      .s_valid_i(tgt_push[t]),
      .s_ready_o(tgt_b_room[t]),
      .m_o      (tgt_b_head[t]),
      .m_valid_o(tgt_b_busy[t]),
      .m_ready_i(tgt_b_done[t]),
      .count_o  ()
    );
  end

  assign still_o = ~|{s_aw_valid_i, s_w_valid_i, ax_valid, w_out_valid, owed_q != '0, m_b_valid_i, b_out_valid};
  assign idle_o  = mgr_b_busy == '0 && b_out_valid == '0 && ax_valid == '0;

endmodule
