// SPDX-License-Identifier: Apache-2.0
//
// Connects the memory port of the disk to the MMU of the slot that holds its store.
//
// Throughput: one beat a cycle each way; a write address leaves once the data of the burst before has left. Latency: one cycle each way.
// Order: kept; each slot responds in order. A change of slot takes effect when nothing is in flight to the previous one.
// The function may be reset with bursts in flight: their responses are accepted and dropped here, and data that is missing is sent with no
// strobe set, so that neither the slot nor the function after its reset notices. Misuse: a slot that does not exist is never addressed; the
// previous one stays selected.

module via_fn_mem
  import via_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   core_rst_ni,             // reset of the function
  input  logic    [         3:0] store_i,                 // level: slot that holds the store
  input  axi_ax_t                s_ar_i,
  input  logic                   s_ar_valid_i,
  output logic                   s_ar_ready_o,
  output axi_r_t                 s_r_o,
  output logic                   s_r_valid_o,
  input  logic                   s_r_ready_i,
  input  axi_ax_t                s_aw_i,
  input  logic                   s_aw_valid_i,
  output logic                   s_aw_ready_o,
  input  axi_w_t                 s_w_i,
  input  logic                   s_w_valid_i,
  output logic                   s_w_ready_o,
  output axi_b_t                 s_b_o,
  output logic                   s_b_valid_o,
  input  logic                   s_b_ready_i,
  // Slots: the payload of requests goes to all of them, valid to one.
  output axi_ax_t                m_ar_o,
  output logic    [NumSlots-1:0] m_ar_valid_o,
  input  logic    [NumSlots-1:0] m_ar_ready_i,
  input  axi_r_t                 m_r_i       [NumSlots],
  input  logic    [NumSlots-1:0] m_r_valid_i,
  output logic    [NumSlots-1:0] m_r_ready_o,
  output axi_ax_t                m_aw_o,
  output logic    [NumSlots-1:0] m_aw_valid_o,
  input  logic    [NumSlots-1:0] m_aw_ready_i,
  output axi_w_t                 m_w_o,
  output logic    [NumSlots-1:0] m_w_valid_o,
  input  logic    [NumSlots-1:0] m_w_ready_i,
  input  axi_b_t                 m_b_i       [NumSlots],
  input  logic    [NumSlots-1:0] m_b_valid_i,
  output logic    [NumSlots-1:0] m_b_ready_o,
  output logic                   still_o,                 // nothing moves unless an input changes
  output logic                   idle_o                   // level: no burst is in flight
);

  localparam int unsigned CntW = 8;

  // ---------------------------------------------------------------- selected slot
  logic [SlotW-1:0] slot_q;
  logic [NumSlots-1:0] to_q;  // the same, one-hot
  logic change_q, none;
  logic [CntW-1:0] rd_q, wr_q, rd_orphan_q, wr_orphan_q;  // bursts in flight; those of them that belong to a function since reset

  assign none = rd_q == '0 && wr_q == '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      slot_q   <= '0;
      to_q     <= NumSlots'(1);
      change_q <= 1'b0;
    end else begin
      change_q <= 32'(store_i) < NumSlots && SlotW'(store_i) != slot_q && !(change_q && none);
      if (change_q && none && 32'(store_i) < NumSlots) begin
        slot_q <= SlotW'(store_i);
        to_q   <= NumSlots'(1) << store_i;
      end
    end
  end

  // ---------------------------------------------------------------- addresses
  logic ar_ok, ar_take, ar_valid, aw_ok, aw_take, aw_valid, w_busy_q;
  logic ar_room, aw_room;
  logic rd_room_q, wr_room_q;  // a cycle late: there is room for another burst

  always_ff @(posedge clk_i) begin
    rd_room_q <= !(&rd_q[CntW-1:2]);
    wr_room_q <= !(&wr_q[CntW-1:2]);
  end
  // Ready comes from registers: what a function offers in the cycle that resets it is not accepted, even if ready is high.
  assign ar_ok = !change_q && rd_room_q;
  assign aw_ok = !change_q && wr_room_q && !w_busy_q;
  assign s_ar_ready_o = ar_ok && ar_room;
  assign s_aw_ready_o = aw_ok && aw_room;
  assign ar_take = core_rst_ni && s_ar_valid_i && s_ar_ready_o;
  assign aw_take = core_rst_ni && s_aw_valid_i && s_aw_ready_o;

  via_slice #(
    .T(axi_ax_t)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (s_ar_i),
    .s_valid_i(core_rst_ni && s_ar_valid_i && ar_ok),
    .s_ready_o(ar_room),
    .m_o      (m_ar_o),
    .m_valid_o(ar_valid),
    .m_ready_i(m_ar_ready_i[slot_q])
  );
  via_slice #(
    .T(axi_ax_t)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (s_aw_i),
    .s_valid_i(core_rst_ni && s_aw_valid_i && aw_ok),
    .s_ready_o(aw_room),
    .m_o      (m_aw_o),
    .m_valid_o(aw_valid),
    .m_ready_i(m_aw_ready_i[slot_q])
  );
  assign m_ar_valid_o = to_q & {NumSlots{ar_valid}};
  assign m_aw_valid_o = to_q & {NumSlots{aw_valid}};

  // ---------------------------------------------------------------- data to the slot
  logic [7:0] left_q;
  logic made_up_q, w_valid, w_take, w_room, m_w_valid;
  axi_w_t w;

  assign w_valid = w_busy_q && (made_up_q || !core_rst_ni || s_w_valid_i);
  assign s_w_ready_o = w_busy_q && !made_up_q && w_room;
  assign w_take = w_valid && w_room;
  always_comb begin
    w = s_w_i;
    w.last = left_q == '0;
    if (made_up_q || !core_rst_ni) w.strb = '0;
  end
  // A beat that waits is not changed by a reset of the function.
  via_slice #(
    .T(axi_w_t)
  ) u_w (
    .clk_i,
    .rst_ni,
    .s_i      (w),
    .s_valid_i(w_valid),
    .s_ready_o(w_room),
    .m_o      (m_w_o),
    .m_valid_o(m_w_valid),
    .m_ready_i(m_w_ready_i[slot_q])
  );
  assign m_w_valid_o = to_q & {NumSlots{m_w_valid}};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_busy_q  <= 1'b0;
      made_up_q <= 1'b0;
    end else begin
      if (aw_take) w_busy_q <= 1'b1;
      else if (w_take && left_q == '0) w_busy_q <= 1'b0;
      if (!w_busy_q || w_take && left_q == '0) made_up_q <= 1'b0;
      else if (!core_rst_ni) made_up_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (aw_take) left_q <= s_aw_i.len;
    else if (w_take) left_q <= left_q - 1'b1;
  end

  // ---------------------------------------------------------------- responses
  logic rd_done, wr_done;
  logic rd_orphans_q, wr_orphans_q;  // there are some

  // The first responses after a reset belong to bursts from before it and are dropped; the response buffers are empty meanwhile.
  logic r_room, b_room;
  via_fifo #(
    .T    (axi_r_t),
    .Depth(2)
  ) u_r (
    .clk_i,
    .rst_ni,
    .flush_i  (!core_rst_ni),
    .s_i      (m_r_i[slot_q]),
    .s_valid_i(m_r_valid_i[slot_q] && !rd_orphans_q),
    .s_ready_o(r_room),
    .m_o      (s_r_o),
    .m_valid_o(s_r_valid_o),
    .m_ready_i(s_r_ready_i),
    .count_o  ()
  );
  via_fifo #(
    .T    (axi_b_t),
    .Depth(2)
  ) u_b (
    .clk_i,
    .rst_ni,
    .flush_i  (!core_rst_ni),
    .s_i      (m_b_i[slot_q]),
    .s_valid_i(m_b_valid_i[slot_q] && !wr_orphans_q),
    .s_ready_o(b_room),
    .m_o      (s_b_o),
    .m_valid_o(s_b_valid_o),
    .m_ready_i(s_b_ready_i),
    .count_o  ()
  );
  assign m_r_ready_o = to_q & {NumSlots{r_room}};
  assign m_b_ready_o = to_q & {NumSlots{b_room}};
  assign rd_done = m_r_valid_i[slot_q] && r_room && m_r_i[slot_q].last;
  assign wr_done = m_b_valid_i[slot_q] && b_room;

  function automatic logic [CntW-1:0] orphans(input logic alive, input logic [CntW-1:0] open, input logic [CntW-1:0] orphan,
                                              input logic done);
    if (!alive) return open - CntW'(done);
    return orphan - CntW'(done && orphan != '0);
  endfunction
  // Whether that count is more than 0.
  function automatic logic any_orphan(input logic alive, input logic [CntW-1:0] open, input logic [CntW-1:0] orphan, input logic done);
    logic [CntW-1:0] count;
    count = alive ? orphan : open;
    return count != '0 && !(done && count == CntW'(1));
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q <= '0;
      wr_q <= '0;
      rd_orphan_q <= '0;
      wr_orphan_q <= '0;
      rd_orphans_q <= 1'b0;
      wr_orphans_q <= 1'b0;
    end else begin
      rd_q <= rd_q + CntW'(ar_take) - CntW'(rd_done);
      wr_q <= wr_q + CntW'(aw_take) - CntW'(wr_done);
      rd_orphan_q <= orphans(core_rst_ni, rd_q, rd_orphan_q, rd_done);
      wr_orphan_q <= orphans(core_rst_ni, wr_q, wr_orphan_q, wr_done);
      rd_orphans_q <= any_orphan(core_rst_ni, rd_q, rd_orphan_q, rd_done);
      wr_orphans_q <= any_orphan(core_rst_ni, wr_q, wr_orphan_q, wr_done);
    end
  end

  logic still, idle;
  assign still = ~|{ar_take, aw_take, ar_valid, aw_valid, w_valid, m_w_valid, m_r_valid_i & to_q, m_b_valid_i & to_q, s_r_valid_o, s_b_valid_o,
                      change_q,
                      !core_rst_ni && (rd_q != rd_orphan_q || wr_q != wr_orphan_q)};
  assign idle = none && !s_r_valid_o && !s_b_valid_o;
  always_ff @(posedge clk_i) begin
    still_o <= still;
    idle_o  <= idle;
  end

endmodule
