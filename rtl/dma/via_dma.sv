// SPDX-License-Identifier: Apache-2.0
//
// DMA engine: executes OpH2c, OpC2h and OpFill of every slot.
//
// Two copy engines (via_dma_copy), host to card and card to host, run at once; each moves one beat a cycle and lets the slots take turns
// burst by burst. Order: the commands of a slot complete in order; their data is not ordered before that, so a command that reads what an
// earlier one writes is given after the earlier one's completion. Completion says all of `len` or nothing of it.
// Misuse: length zero, an address not aligned to a beat or outside its space -> StBadArg. An error of a port ends only its command.
// abort_i[s] (level): commands of slot s end with StAborted, bursts in flight drain.

module via_dma
  import via_pkg::*;
#(
  parameter int unsigned Window = 16  // commands of a slot in flight
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  cmd_t                   cmd_i            [NumSlots],
  input  logic    [NumSlots-1:0] cmd_valid_i,
  output logic    [NumSlots-1:0] cmd_ready_o,
  output cpl_t                   cpl_o,
  output logic    [   SlotW-1:0] cpl_slot_o,
  output logic                   cpl_valid_o,
  input  logic                   cpl_ready_i,
  input  logic    [NumSlots-1:0] abort_i,
  // host memory
  output axi_ax_t                m_host_ar_o,
  output logic                   m_host_ar_valid_o,
  input  logic                   m_host_ar_ready_i,
  input  axi_r_t                 m_host_r_i,
  input  logic                   m_host_r_valid_i,
  output logic                   m_host_r_ready_o,
  output axi_ax_t                m_host_aw_o,
  output logic                   m_host_aw_valid_o,
  input  logic                   m_host_aw_ready_i,
  output axi_w_t                 m_host_w_o,
  output logic                   m_host_w_valid_o,
  input  logic                   m_host_w_ready_i,
  input  axi_b_t                 m_host_b_i,
  input  logic                   m_host_b_valid_i,
  output logic                   m_host_b_ready_o,
  // card memory
  output axi_ax_t                m_card_ar_o,
  output logic                   m_card_ar_valid_o,
  input  logic                   m_card_ar_ready_i,
  input  axi_r_t                 m_card_r_i,
  input  logic                   m_card_r_valid_i,
  output logic                   m_card_r_ready_o,
  output axi_ax_t                m_card_aw_o,
  output logic                   m_card_aw_valid_o,
  input  logic                   m_card_aw_ready_i,
  output axi_w_t                 m_card_w_o,
  output logic                   m_card_w_valid_o,
  input  logic                   m_card_w_ready_i,
  input  axi_b_t                 m_card_b_i,
  input  logic                   m_card_b_valid_i,
  output logic                   m_card_b_ready_o,
  output logic                   idle_o
);

  localparam int unsigned HostAddrW = 52;  // as a pte_t can name
  localparam int unsigned CardAddrW = ChanLog2 + ((NumChan > 1) ? $clog2(NumChan) : 0);

  // [base, base + len) lies below 2^w.
  function automatic logic outside(input logic [63:0] base, input logic [31:0] len, input int unsigned w);
    logic [64:0] last;
    last = {1'b0, base} + 65'(len) - 65'd1;
    return (last >> w) != '0;
  endfunction

  typedef struct packed {
    logic        bad;
    logic        to_host;
    logic [7:0]  op;
    logic [31:0] tag;
    logic [31:0] len;
  } order_t;

  logic [AddrW-1:0] host_addr[NumSlots], card_addr[NumSlots];
  logic [31:0] len[NumSlots];
  logic [NumSlots-1:0] in_valid, in_ready, out_valid, out_ready, fill;
  logic in_done, out_done, in_idle, out_idle;
  logic [SlotW-1:0] in_slot, out_slot;
  status_e in_status, out_status;

  via_dma_copy #(
    .ReadErr (StHostErr),
    .WriteErr(StCardErr),
    .Jobs    (Window)
  ) u_in (
    .clk_i,
    .rst_ni,
    .job_valid_i  (in_valid),
    .job_ready_o  (in_ready),
    .job_src_i    (host_addr),
    .job_dst_i    (card_addr),
    .job_len_i    (len),
    .job_fill_i   (fill),
    .done_o       (in_done),
    .done_slot_o  (in_slot),
    .done_status_o(in_status),
    .abort_i,
    .m_ar_o       (m_host_ar_o),
    .m_ar_valid_o (m_host_ar_valid_o),
    .m_ar_ready_i (m_host_ar_ready_i),
    .m_r_i        (m_host_r_i),
    .m_r_valid_i  (m_host_r_valid_i),
    .m_r_ready_o  (m_host_r_ready_o),
    .m_aw_o       (m_card_aw_o),
    .m_aw_valid_o (m_card_aw_valid_o),
    .m_aw_ready_i (m_card_aw_ready_i),
    .m_w_o        (m_card_w_o),
    .m_w_valid_o  (m_card_w_valid_o),
    .m_w_ready_i  (m_card_w_ready_i),
    .m_b_i        (m_card_b_i),
    .m_b_valid_i  (m_card_b_valid_i),
    .m_b_ready_o  (m_card_b_ready_o),
    .idle_o       (in_idle)
  );

  via_dma_copy #(
    .ReadErr (StCardErr),
    .WriteErr(StHostErr),
    .Jobs    (Window)
  ) u_out (
    .clk_i,
    .rst_ni,
    .job_valid_i  (out_valid),
    .job_ready_o  (out_ready),
    .job_src_i    (card_addr),
    .job_dst_i    (host_addr),
    .job_len_i    (len),
    .job_fill_i   ('0),
    .done_o       (out_done),
    .done_slot_o  (out_slot),
    .done_status_o(out_status),
    .abort_i,
    .m_ar_o       (m_card_ar_o),
    .m_ar_valid_o (m_card_ar_valid_o),
    .m_ar_ready_i (m_card_ar_ready_i),
    .m_r_i        (m_card_r_i),
    .m_r_valid_i  (m_card_r_valid_i),
    .m_r_ready_o  (m_card_r_ready_o),
    .m_aw_o       (m_host_aw_o),
    .m_aw_valid_o (m_host_aw_valid_o),
    .m_aw_ready_i (m_host_aw_ready_i),
    .m_w_o        (m_host_w_o),
    .m_w_valid_o  (m_host_w_valid_o),
    .m_w_ready_i  (m_host_w_ready_i),
    .m_b_i        (m_host_b_i),
    .m_b_valid_i  (m_host_b_valid_i),
    .m_b_ready_o  (m_host_b_ready_o),
    .idle_o       (out_idle)
  );

  // ---------------------------------------------------------------- per slot: commands in, completions in their order
  order_t  order [NumSlots];
  status_e status[NumSlots];
  logic [NumSlots-1:0] order_valid, complete, gnt;
  logic cpl_room;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    logic bad, to_host, room, accept;
    status_e in_head, out_head;
    logic in_head_valid, out_head_valid;

    assign to_host = cmd_i[s].op == OpC2h;
    assign fill[s] = cmd_i[s].op == OpFill;
    assign host_addr[s] = cmd_i[s].addr0;
    // Card addresses carry no routing bits: those above are checked to be zero.
    assign card_addr[s] = cmd_i[s].addr1;
    assign len[s] = cmd_i[s].len;
    always_comb begin
      bad = cmd_i[s].len == '0 || |cmd_i[s].addr1[BeatLog2-1:0] || outside(cmd_i[s].addr1, cmd_i[s].len, CardAddrW);
      if (!fill[s]) bad |= |cmd_i[s].addr0[BeatLog2-1:0] || outside(cmd_i[s].addr0, cmd_i[s].len, HostAddrW);
    end

    assign accept = cmd_valid_i[s] && room;
    assign in_valid[s] = accept && !bad && !to_host;
    assign out_valid[s] = accept && !bad && to_host;
    assign cmd_ready_o[s] = room && (bad || (to_host ? out_ready[s] : in_ready[s]));

    via_fifo #(
      .T    (order_t),
      .Depth(Window)
    ) u_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      ('{bad: bad, to_host: to_host, op: cmd_i[s].op, tag: cmd_i[s].tag, len: cmd_i[s].len}),
      .s_valid_i(cmd_valid_i[s] && cmd_ready_o[s]),
      .s_ready_o(room),
      .m_o      (order[s]),
      .m_valid_o(order_valid[s]),
      .m_ready_i(gnt[s] && cpl_room),
      .count_o  ()
    );

    // As deep as the order queue: an engine never waits for its answer to be taken.
    via_fifo #(
      .T    (status_e),
      .Depth(Window)
    ) u_in_done (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (in_status),
      .s_valid_i(in_done && in_slot == SlotW'(s)),
      .s_ready_o(),
      .m_o      (in_head),
      .m_valid_o(in_head_valid),
      .m_ready_i(gnt[s] && cpl_room && !order[s].bad && !order[s].to_host),
      .count_o  ()
    );

    via_fifo #(
      .T    (status_e),
      .Depth(Window)
    ) u_out_done (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (out_status),
      .s_valid_i(out_done && out_slot == SlotW'(s)),
      .s_ready_o(),
      .m_o      (out_head),
      .m_valid_o(out_head_valid),
      .m_ready_i(gnt[s] && cpl_room && !order[s].bad && order[s].to_host),
      .count_o  ()
    );

    assign complete[s] = order_valid[s] && (order[s].bad || (order[s].to_host ? out_head_valid : in_head_valid));
    assign status[s]   = order[s].bad ? StBadArg : order[s].to_host ? out_head : in_head;
  end

  // ---------------------------------------------------------------- completions
  typedef struct packed {
    logic [SlotW-1:0] slot;
    cpl_t             cpl;
  } out_t;
  out_t next, held;
  logic [SlotW-1:0] idx;
  logic any;

  via_rr_arb #(
    .N(NumSlots)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (complete),
    .ack_i  (cpl_room),
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(any)
  );

  always_comb begin
    next            = '0;
    next.slot       = idx;
    next.cpl.status = status[idx];
    next.cpl.op     = order[idx].op;
    next.cpl.tag    = order[idx].tag;
    next.cpl.bytes  = (status[idx] == StOk) ? order[idx].len : '0;
  end

  via_slice #(
    .T(out_t)
  ) u_cpl (
    .clk_i,
    .rst_ni,
    .s_i      (next),
    .s_valid_i(any),
    .s_ready_o(cpl_room),
    .m_o      (held),
    .m_valid_o(cpl_valid_o),
    .m_ready_i(cpl_ready_i)
  );
  assign cpl_o = held.cpl;
  assign cpl_slot_o = held.slot;

  assign idle_o = in_idle && out_idle && order_valid == '0 && !cpl_valid_o && cmd_valid_i == '0;

endmodule
