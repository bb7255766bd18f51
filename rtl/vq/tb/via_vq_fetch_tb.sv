// SPDX-License-Identifier: Apache-2.0
//
// via_vq_fetch with flat ports. The chains of queue 0 wait for responses, those of the others become jobs.

module via_vq_fetch_tb
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ  = 3,
  parameter int unsigned NumRd = 4
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [       4:0] feat,                 // vq_feat_t
  input  logic              driver_ok,
  input  logic [     208:0] cfg         [ NumQ],  // vq_cfg_t
  input  logic [  NumQ-1:0] queue_reset,
  output logic [  NumQ-1:0] quiet,
  input  logic [      19:0] notify,               // vq_notify_t
  input  logic              notify_valid,
  output logic [     121:0] job,                  // vq_chain_t
  output logic [      97:0] job_desc,
  output logic              job_near,
  output logic [QueueW-1:0] job_queue,
  output logic              job_valid,
  input  logic              job_ready,
  output logic [     121:0] head        [ NumQ],
  output logic [  NumQ-1:0] head_valid,
  input  logic [  NumQ-1:0] head_pop,
  output logic [      31:0] room        [ NumQ],
  input  logic              a_re,
  input  logic [QueueW-1:0] a_queue,
  input  logic [       7:0] a_index,
  output logic [      97:0] a_desc,
  input  logic              b_re,
  input  logic [QueueW-1:0] b_queue,
  input  logic [       7:0] b_index,
  output logic [      97:0] b_desc,
  output logic [      63:0] ar_addr     [NumRd],
  output logic [       7:0] ar_len      [NumRd],
  output logic [ NumRd-1:0] ar_valid,
  input  logic [ NumRd-1:0] ar_ready,
  input  logic [ DataW-1:0] r_data      [NumRd],
  input  logic [ NumRd-1:0] r_err,
  input  logic [ NumRd-1:0] r_last,
  input  logic [ NumRd-1:0] r_valid,
  output logic [      63:0] ev_addr,
  output logic [      15:0] ev_data,
  output logic              ev_valid,
  input  logic              ev_ready,
  output logic              err_valid,
  output logic [       3:0] err,
  output logic [QueueW-1:0] err_queue,
  input  logic [  NumQ-1:0] stop,
  output logic [       1:0] cnt_desc,
  output logic [       1:0] cnt_table,
  output logic              cnt_idx,
  output logic              cnt_ring,
  output logic              cnt_event,
  output logic              still_o,
  output logic              idle_o
);

  vq_cfg_t queue[NumQ];
  vq_chain_t heads[NumQ];
  vq_err_e code;
  logic [31:0] rooms[NumQ];
  axi_ax_t ar[NumRd];
  axi_r_t r[NumRd];
  // Always accepted, as asserted below.
  logic [NumRd-1:0] r_ready;
  logic [NumQ-1:0][208:0] levels;
  logic clk, still;
  vq_read_t a_read, job_read;

  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    assign queue[q]  = vq_cfg_t'(cfg[q]);
    assign head[q]   = heads[q];
    assign room[q]   = rooms[q];
    assign levels[q] = cfg[q];
  end
  for (genvar i = 0; i < NumRd; i++) begin : gen_rd
    assign ar_addr[i] = ar[i].addr;
    assign ar_len[i] = ar[i].len;
    assign r[i] = '{id: '0, resp: r_err[i] ? RespSlvErr : RespOkay, last: r_last[i], data: r_data[i]};
  end
  assign err = code;
  assign a_desc = a_read.desc;
  assign job_desc = job_read.desc;
  assign still_o = still;

  via_tb_gate #(
    .W($bits(levels) + 3 * NumQ + 2 * NumRd + 10)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i(still && !a_re),  // a read keeps the clock running
    .inputs_i({levels, queue_reset, stop, feat, driver_ok, notify_valid, job_ready, head_pop, b_re, ar_ready, r_valid, ev_ready}),
    .clk_o(clk)
  );

  via_vq_fetch #(
    .NumQ(NumQ)
  ) u_dut (
    .clk_i         (clk),
    .rst_ni,
    .wait_i        (NumQ'(1)),
    .feat_i        (vq_feat_t'(feat)),
    .driver_ok_i   (driver_ok),
    .queue_i       (queue),
    .queue_reset_i (queue_reset),
    .quiet_o       (quiet),
    .notify_i      (vq_notify_t'(notify)),
    .notify_valid_i(notify_valid),
    .look_i        ('0),
    .job_o         (job),
    .job_desc_o    (job_read),
    .job_near_o    (job_near),
    .job_queue_o   (job_queue),
    .job_valid_o   (job_valid),
    .job_ready_i   (job_ready),
    .head_o        (heads),
    .head_valid_o  (head_valid),
    .head_pop_i    (head_pop),
    .room_o        (rooms),
    .a_re_i        (a_re),
    .a_queue_i     (a_queue),
    .a_index_i     (a_index),
    .a_desc_o      (a_read),
    .b_re_i        (b_re),
    .b_queue_i     (b_queue),
    .b_index_i     (b_index),
    .b_desc_o      (b_desc),
    .m_ar_o        (ar),
    .m_ar_valid_o  (ar_valid),
    .m_ar_ready_i  (ar_ready),
    .m_r_i         (r),
    .m_r_valid_i   (r_valid),
    .m_r_ready_o   (r_ready),
    .ev_addr_o     (ev_addr),
    .ev_data_o     (ev_data),
    .ev_queue_o    (),
    .ev_valid_o    (ev_valid),
    .ev_ready_i    (ev_ready),
    .err_valid_o   (err_valid),
    .err_o         (code),
    .err_queue_o   (err_queue),
    .stop_i        (stop),
    .cnt_idx_o     (cnt_idx),
    .cnt_ring_o    (cnt_ring),
    .cnt_desc_o    (cnt_desc),
    .cnt_table_o   (cnt_table),
    .cnt_event_o   (cnt_event),
    .still_o       (still),
    .idle_o
  );

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (&r_ready)
      else $error("R refused");
    end
  end

endmodule
