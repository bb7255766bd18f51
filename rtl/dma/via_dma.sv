// SPDX-License-Identifier: Apache-2.0
//
// DMA engine: executes OpH2c, OpC2h and OpFill of every slot.
//
// Two copy engines (via_dma_copy), host to card and card to host, run in parallel. Throughput: each moves one beat a cycle; the slots share
// it by bytes and weights (via_share). Latency: that of the copy engine, and five cycles from command to completion.
// Order: the commands of a slot complete in order; their data is not ordered before that, so a command that reads what an earlier one
// writes must be given after the earlier one's completion. A completion reports all of `len`, or zero bytes and an error.
// Misuse: length zero, an address not aligned to a beat, a range that leaves the card's memory or 2^52 bytes of the host -> StBadArg. An
// error response of a port ends only the command it belongs to.

module via_dma
  import via_pkg::*;
#(
  parameter int unsigned Window = 16  // commands of a slot in flight
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic    [        31:0] chan_mib_i,                   // size of each DRAM channel in MiB, constant
  input  logic    [ WeightW-1:0] weight_i         [NumSlots],  // share of each slot, from 1
  input  logic    [NumSlots-1:0] first_i,                      // level: the slot goes before those without it
  input  cmd_t                   cmd_i            [NumSlots],  // OpH2c, OpC2h or OpFill of each slot
  input  logic    [NumSlots-1:0] cmd_valid_i,
  output logic    [NumSlots-1:0] cmd_ready_o,
  output cpl_t                   cpl_o,                        // completion
  output logic    [   SlotW-1:0] cpl_slot_o,                   // slot it belongs to
  output logic                   cpl_valid_o,
  input  logic                   cpl_ready_i,
  input  logic    [NumSlots-1:0] abort_i,                      // level: the slot's commands end with StAborted, after bursts in flight
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
  output logic                   idle_o                        // level: no command and no burst is in flight
);

  localparam bit WindowOk = param_in("via_dma Window", Window, 1, 256);

  localparam int unsigned HostAddrW = 52;  // as wide as in a pte_t
  localparam int unsigned MibLog2 = 20;

  typedef struct packed {
    logic        bad;
    logic        to_host;
    logic [7:0]  op;
    logic [31:0] tag;
    logic [31:0] len;
  } order_t;
  typedef struct packed {
    order_t                      order;
    logic                        fill;
    logic [HostAddrW-1:BeatLog2] host_beat;  // addresses in beats
    logic [CardAddrW-1:BeatLog2] card_beat;
  } job_t;
  typedef struct packed {
    logic                     host_over;  // the host range ends beyond the address space
    logic [CardAddrW:MibLog2] card_end;   // MiB of the card range's last byte
    job_t                     job;
  } first_t;

  logic [HostAddrW-1:0] host_addr[NumSlots];
  logic [CardAddrW-1:0] card_addr[NumSlots];
  logic [31:0] len[NumSlots];
  logic [NumSlots-1:0] in_valid, in_ready, out_valid, out_ready, fill;
  logic in_done, out_done, in_idle, out_idle;
  logic [SlotW-1:0] in_slot, out_slot;
  status_e in_status, out_status;

  via_dma_copy #(
    .ReadErr (StHostErr),
    .WriteErr(StCardErr),
    .SrcW    (HostAddrW),
    .DstW    (CardAddrW),
    .Jobs    (Window)
  ) u_in (
    .clk_i,
    .rst_ni,
    .weight_i,
    .first_i,
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
    .SrcW    (CardAddrW),
    .DstW    (HostAddrW),
    .Jobs    (Window),
    .Fill    (1'b0)
  ) u_out (
    .clk_i,
    .rst_ni,
    .weight_i,
    .first_i,
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

  // ---------------------------------------------------------------- per slot: commands in, completions in the same order
  cpl_t cpl_q[NumSlots];
  logic [NumSlots-1:0] job_here, cpl_valid_q, gnt, order_valid;
  logic cpl_room;

  for (genvar s = 0; s < NumSlots; s++) begin : gen_slot
    cmd_t cmd;
    first_t first_in, first;
    job_t job_in, job;
    logic first_valid, first_room;
    logic [HostAddrW:0] host_end;
    logic [CardAddrW:0] card_end;
    logic bad, job_valid, job_pop, room, complete, next;
    order_t order;
    status_e in_head, out_head, status;
    logic in_head_valid, out_head_valid;

    // The check that [addr, addr + len) lies in its memory takes two steps, each in front of a slice. Card addresses carry no routing bits:
    // those above are zero.
    assign cmd = cmd_i[s];
    assign host_end = {1'b0, cmd.addr0[HostAddrW-1:0]} + (HostAddrW + 1)'(cmd.len) - 1'b1;
    assign card_end = {1'b0, cmd.addr1[CardAddrW-1:0]} + (CardAddrW + 1)'(cmd.len) - 1'b1;
    always_comb begin
      bad = cmd.len == '0 || |cmd.addr1[BeatLog2-1:0] || |cmd.addr1[AddrW-1:CardAddrW];
      if (cmd.op != OpFill) bad |= |cmd.addr0[BeatLog2-1:0] || |cmd.addr0[AddrW-1:HostAddrW];
      first_in = '{
          host_over: cmd.op != OpFill && host_end[HostAddrW],
          card_end: card_end[CardAddrW:MibLog2],
          job: '{
              order: '{bad: bad, to_host: cmd.op == OpC2h, op: cmd.op, tag: cmd.tag, len: cmd.len},
              fill: cmd.op == OpFill,
              host_beat: cmd.addr0[HostAddrW-1:BeatLog2],
              card_beat: cmd.addr1[CardAddrW-1:BeatLog2]
          }
      };
      job_in = first.job;
      job_in.order.bad |= first.host_over || card_outside(
          AddrW'({first.job.card_beat, BeatLog2'(0)}), AddrW'({first.card_end, MibLog2'(0)}), chan_mib_i
      );
    end

    via_slice #(
      .T  (first_t),
      .Ram(1'b1)
    ) u_first (
      .clk_i,
      .rst_ni,
      .s_i      (first_in),
      .s_valid_i(cmd_valid_i[s]),
      .s_ready_o(cmd_ready_o[s]),
      .m_o      (first),
      .m_valid_o(first_valid),
      .m_ready_i(first_room)
    );

    via_slice #(
      .T  (job_t),
      .Ram(1'b1)
    ) u_job (
      .clk_i,
      .rst_ni,
      .s_i      (job_in),
      .s_valid_i(first_valid),
      .s_ready_o(first_room),
      .m_o      (job),
      .m_valid_o(job_valid),
      .m_ready_i(job_pop)
    );

    assign job_here[s] = first_valid || job_valid;
    assign fill[s] = job.fill;
    assign host_addr[s] = {job.host_beat, BeatLog2'(0)};
    assign card_addr[s] = {job.card_beat, BeatLog2'(0)};
    assign len[s] = job.order.len;
    assign in_valid[s] = job_valid && room && !job.order.bad && !job.order.to_host;
    assign out_valid[s] = job_valid && room && !job.order.bad && job.order.to_host;
    assign job_pop = room && (job.order.bad || (job.order.to_host ? out_ready[s] : in_ready[s]));

    via_fifo #(
      .T    (order_t),
      .Depth(Window)
    ) u_order (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (job.order),
      .s_valid_i(job_valid && job_pop),
      .s_ready_o(room),
      .m_o      (order),
      .m_valid_o(order_valid[s]),
      .m_ready_i(complete && next),
      .count_o  ()
    );

    // As deep as the order queue, so an engine never waits to deliver its status.
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
      .m_ready_i(next && order_valid[s] && !order.bad && !order.to_host),
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
      .m_ready_i(next && order_valid[s] && !order.bad && order.to_host),
      .count_o  ()
    );

    assign complete = order_valid[s] && (order.bad || (order.to_host ? out_head_valid : in_head_valid));
    assign status   = order.bad ? StBadArg : order.to_host ? out_head : in_head;
    assign next     = !cpl_valid_q[s] || gnt[s] && cpl_room;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) cpl_valid_q[s] <= 1'b0;
      else if (next) cpl_valid_q[s] <= complete;
    end
    always_ff @(posedge clk_i) begin
      if (next) begin
        cpl_q[s] <= '{info: '0, bytes: (status == StOk) ? order.len : '0, tag: order.tag, status: status, op: order.op, flags: '0};
      end
    end
  end

  // ---------------------------------------------------------------- completions
  typedef struct packed {
    logic [SlotW-1:0] slot;
    cpl_t             cpl;
  } out_t;
  out_t offer, held;
  logic [SlotW-1:0] idx;
  logic any;

  via_rr_arb #(
    .N(NumSlots)
  ) u_arb (
    .clk_i,
    .rst_ni,
    .req_i  (cpl_valid_q),
    .ack_i  (cpl_room),
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(any)
  );

  assign offer = '{slot: idx, cpl: cpl_q[idx]};

  via_slice #(
    .T  (out_t),
    .Ram(1'b1)
  ) u_cpl (
    .clk_i,
    .rst_ni,
    .s_i      (offer),
    .s_valid_i(any),
    .s_ready_o(cpl_room),
    .m_o      (held),
    .m_valid_o(cpl_valid_o),
    .m_ready_i(cpl_ready_i)
  );
  assign cpl_o = held.cpl;
  assign cpl_slot_o = held.slot;

  logic idle;
  assign idle = in_idle && out_idle && ~|{cmd_valid_i, job_here, order_valid, cpl_valid_q, cpl_valid_o};
  always_ff @(posedge clk_i) idle_o <= idle;

endmodule
