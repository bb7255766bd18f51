// SPDX-License-Identifier: Apache-2.0
//
// Read half of the crossbar.
//
// Throughput: one R beat a manager and a subordinate each cycle, no bubble between bursts. Latency: one cycle for AR, one for R.
// Order: a manager gets its responses in the order of its requests. Misuse: see via_xbar.

module via_xbar_rd
  import via_pkg::*;
#(
  parameter int unsigned NumMgr = NumSlots + 1,
  parameter int unsigned NumSub = NumChan + 1,
  parameter int unsigned Outstanding = 64
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  axi_ax_t              s_ar_i      [NumMgr],
  input  logic    [NumMgr-1:0] s_ar_valid_i,
  output logic    [NumMgr-1:0] s_ar_ready_o,
  output axi_r_t               s_r_o       [NumMgr],
  output logic    [NumMgr-1:0] s_r_valid_o,
  input  logic    [NumMgr-1:0] s_r_ready_i,
  output axi_ax_t              m_ar_o      [NumSub],
  output logic    [NumSub-1:0] m_ar_valid_o,
  input  logic    [NumSub-1:0] m_ar_ready_i,
  input  axi_r_t               m_r_i       [NumSub],
  input  logic    [NumSub-1:0] m_r_valid_i,
  output logic    [NumSub-1:0] m_r_ready_o,
  output logic                 still_o,               // nothing moves unless an input changes
  output logic                 idle_o                 // level: no read is in flight
);

  localparam bit NumMgrOk = param_in("via_xbar_rd NumMgr", NumMgr, 1, 64);
  localparam bit NumSubOk = param_in("via_xbar_rd NumSub", NumSub, NumChan + 1, NumChan + 1);
  localparam bit OutstandingOk = param_in("via_xbar_rd Outstanding", Outstanding, 1, 1024);

  localparam int unsigned TgtW = $clog2(NumSub + 1);
  localparam int unsigned SubW = (NumSub > 1) ? $clog2(NumSub) : 1;
  localparam int unsigned MgrW = (NumMgr > 1) ? $clog2(NumMgr) : 1;

  axi_ax_t ax[NumSub+1];
  logic [NumSub:0] ax_valid, ax_ready;
  logic [NumMgr-1:0] mgr_room, mgr_push, mgr_busy, mgr_done;
  logic [NumSub:0] tgt_room, tgt_push, tgt_busy, tgt_done;
  logic [TgtW-1:0] mgr_tgt[  NumMgr];
  logic [MgrW-1:0] tgt_mgr[NumSub+1];

  via_xbar_grant #(
    .NumMgr(NumMgr),
    .NumSub(NumSub)
  ) u_grant (
    .clk_i,
    .rst_ni,
    .s_ax_i      (s_ar_i),
    .s_ax_valid_i(s_ar_valid_i),
    .s_ax_ready_o(s_ar_ready_o),
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

  for (genvar t = 0; t < NumSub; t++) begin : gen_ar
    assign m_ar_o[t] = ax[t];
  end
  assign m_ar_valid_o = ax_valid[NumSub-1:0];
  assign ax_ready[NumSub-1:0] = m_ar_ready_i;

  // The error target: one burst at a time, a beat a cycle.
  logic err_active_q;
  logic [7:0] err_left_q;
  logic err_fire;

  assign ax_ready[NumSub] = !err_active_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) err_active_q <= 1'b0;
    else if (ax_valid[NumSub] && !err_active_q) err_active_q <= 1'b1;
    else if (err_fire && err_left_q == '0) err_active_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (ax_valid[NumSub] && !err_active_q) err_left_q <= ax[NumSub].len;
    else if (err_fire) err_left_q <= err_left_q - 1'b1;
  end

  // What each target offers, and the manager it is for.
  logic [NumSub:0] r_valid, r_last, r_ready;
  logic [MgrW-1:0] tgt_head[NumSub+1];
  logic [TgtW-1:0] mgr_head[  NumMgr];
  logic [ IdW-1:0] mgr_id  [  NumMgr];

  assign r_valid = {err_active_q, m_r_valid_i};
  always_comb begin
    for (int unsigned t = 0; t < NumSub; t++) r_last[t] = m_r_i[t].last;
    r_last[NumSub] = err_left_q == '0;
  end
  assign m_r_ready_o = r_ready[NumSub-1:0];
  assign err_fire = err_active_q && r_ready[NumSub];

  logic [NumMgr-1:0] slice_ready, take;
  always_comb begin
    for (int unsigned m = 0; m < NumMgr; m++) begin
      take[m] = mgr_busy[m] && slice_ready[m] && r_valid[mgr_head[m]] && tgt_busy[mgr_head[m]] && tgt_head[mgr_head[m]] == MgrW'(m);
      mgr_done[m] = take[m] && r_last[mgr_head[m]];
    end
    r_ready = '0;
    for (int unsigned m = 0; m < NumMgr; m++) if (take[m]) r_ready[mgr_head[m]] = 1'b1;
  end
  assign tgt_done = r_ready & r_last;

  logic [NumMgr-1:0] r_out_valid;
  for (genvar m = 0; m < NumMgr; m++) begin : gen_mgr
    axi_r_t r;
    always_comb begin
      if (mgr_head[m] == TgtW'(NumSub)) begin
        r = '0;
        r.resp = RespSlvErr;
      end else begin
        r = m_r_i[SubW'(mgr_head[m])];
      end
      r.last = r_last[mgr_head[m]];
      r.id   = mgr_id[m];
    end

    via_slice #(
      .T(axi_r_t)
    ) u_r (
      .clk_i,
      .rst_ni,
      .s_i      (r),
      .s_valid_i(take[m]),
      .s_ready_o(slice_ready[m]),
      .m_o      (s_r_o[m]),
      .m_valid_o(r_out_valid[m]),
      .m_ready_i(s_r_ready_i[m])
    );

    via_fifo #(
      .T    (logic [TgtW+IdW-1:0]),
      .Depth(Outstanding)
    ) u_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      ({mgr_tgt[m], s_ar_i[m].id}),
      .s_valid_i(mgr_push[m]),
      .s_ready_o(mgr_room[m]),
      .m_o      ({mgr_head[m], mgr_id[m]}),
      .m_valid_o(mgr_busy[m]),
      .m_ready_i(mgr_done[m]),
      .count_o  ()
    );
  end
  assign s_r_valid_o = r_out_valid;

  for (genvar t = 0; t <= NumSub; t++) begin : gen_tgt
    via_fifo #(
      .T    (logic [MgrW-1:0]),
      .Depth(Outstanding)
    ) u_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (tgt_mgr[t]),
      .s_valid_i(tgt_push[t]),
      .s_ready_o(tgt_room[t]),
      .m_o      (tgt_head[t]),
      .m_valid_o(tgt_busy[t]),
      .m_ready_i(tgt_done[t]),
      .count_o  ()
    );
  end

  assign still_o = ~|{s_ar_valid_i, ax_valid, err_active_q, m_r_valid_i, r_out_valid};
  assign idle_o  = mgr_busy == '0 && r_out_valid == '0 && ax_valid == '0;

endmodule
