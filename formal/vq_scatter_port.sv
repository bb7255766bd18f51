// SPDX-License-Identifier: Apache-2.0
//
// via_vq_scatter keeps the rules of its port (via_axi_checker), without bound: payloads and valids stay, bursts lie within 4 KiB, WLAST is on the
// last beat that the address tells of and on no other, no more bursts are in flight than it has room to follow.
//
// Assumed: host memory keeps its own rules: B only for a write all of which it has taken, with its id. Anything may happen at the other ports: answers
// and chains may come, change and go in every cycle, and say anything. The FIFOs are real here (ram_regs.sv), so there are few places in them.

module vq_scatter_port
  import via_pkg::*;
  import via_virtio_pkg::*;
(
  input logic            clk_i,
  input logic            rst_ni,
  input vq_chain_t       head_i      [2],
  input logic      [1:0] head_valid_i,
  input vq_desc_t        b_desc_i,
  input vq_rsp_t         rsp_i,
  input logic            rsp_valid_i,
  input logic            wr_valid_i,
  input vq_beat_t        wr_i,
  input logic      [1:0] wait_i,
  input logic      [1:0] off_i,
  input logic      [1:0] closing_i,
  input logic      [1:0] owed_i,
  input logic            aw_ready_i,
  input logic            w_ready_i,
  input axi_b_t          b_i,
  input logic            b_valid_i,
  input logic            done_ready_i
);

  localparam int unsigned Lines = 2;  // beats of a burst; with 4 it is proved as well, four times as long
  localparam int unsigned Beats = 2;
  localparam int unsigned Window = 64;  // writes that the block follows
  localparam int unsigned OffW = BeatLog2;
  localparam int unsigned LineLog2 = $clog2(Lines);

  axi_ax_t aw;
  axi_w_t  w;
  logic aw_valid, w_valid, b_ready;

  via_vq_scatter #(
    .NumQ      (2),
    .BurstBytes(Lines * StrbW),
    .Beats     (Beats)
  ) dut (
    .clk_i,
    .rst_ni,
    .wait_i,
    .off_i,
    .closing_i,
    .owed_i,
    .rsp_i,
    .rsp_valid_i,
    .rsp_ready_o   (),
    .merged_o      (),
    .merged_valid_o(),
    .wr_i,
    .wr_valid_i,
    .wr_ready_o    (),
    .head_i,
    .head_valid_i,
    .head_pop_o    (),
    .b_re_o        (),
    .b_queue_o     (),
    .b_index_o     (),
    .b_desc_i,
    .m_aw_o        (aw),
    .m_aw_valid_o  (aw_valid),
    .m_aw_ready_i  (aw_ready_i),
    .m_w_o         (w),
    .m_w_valid_o   (w_valid),
    .m_w_ready_i   (w_ready_i),
    .m_b_i         (b_i),
    .m_b_valid_i   (b_valid_i),
    .m_b_ready_o   (b_ready),
    .done_queue_o  (),
    .done_id_o     (),
    .done_slots_o  (),
    .done_len_o    (),
    .done_whole_o  (),
    .done_more_o   (),
    .done_valid_o  (),
    .done_ready_i,
    .err_valid_o   (),
    .err_queue_o   (),
    .quiet_o       (),
    .still_o       (),
    .idle_o        ()
  );

  via_axi_checker #(
    .Outstanding(Window),
    .AssumeRsp  (1'b1)
  ) u_m (
    .clk_i,
    .rst_ni,
    .ar_i      ('0),
    .ar_valid_i(1'b0),
    .ar_ready_i(1'b0),
    .r_i       ('0),
    .r_valid_i (1'b0),
    .r_ready_i (1'b0),
    .aw_i      (aw),
    .aw_valid_i(aw_valid),
    .aw_ready_i(aw_ready_i),
    .w_i       (w),
    .w_valid_i (w_valid),
    .w_ready_i (w_ready_i),
    .b_i       (b_i),
    .b_valid_i (b_valid_i),
    .b_ready_i (b_ready)
  );

  // ---------------------------------------------------------------- what holds in every cycle, for the induction
  localparam int unsigned PtrW = $clog2(Window + 1) + 1;  // as in the checker
  typedef logic [PtrW-1:0] ptr_t;
  typedef logic [$clog2(Beats)-1:0] place_t;
  typedef logic [7:0] len_t;
  localparam int unsigned BurstW = 1 + QueueW + 8 + AddrW - OffW;  // of a burst in its FIFO

  // The beats in the FIFO, in order: the one at its output, and those in its memory.
  logic [Beats-1:0] beat_last;
  int unsigned beats;
  assign beats = 32'(dut.u_beats.count_q);
  for (genvar i = 0; i < Beats; i++) begin : gen_beat
    place_t at;
    assign at = dut.u_beats.rptr_q + place_t'(i) - place_t'(dut.beat_valid);
    assign beat_last[i] = (i == 0 && dut.beat_valid) ? dut.beat.last : dut.u_beats.gen_ram.u_ram.mem[at][dut.u_beats.Width-1];
  end

  // The lengths of the bursts they belong to, in order: of those whose address was taken, of those in the FIFO.
  len_t [Beats-1:0] len;
  logic [Beats-1:0] whole_line;  // what is in the FIFO stays within Lines
  int unsigned sent, bursts;
  assign sent   = 32'(dut.sent_q);
  assign bursts = sent + 32'(dut.u_bursts.count_q);
  for (genvar i = 0; i < Beats; i++) begin : gen_burst
    place_t at;
    logic [BurstW-1:0] word;
    assign at = dut.u_bursts.rptr_q + place_t'(i) - place_t'(sent);
    assign word = dut.u_bursts.gen_lut.mem[at];
    assign len[i] = (i < sent) ? u_m.wr_len[ptr_t'(u_m.w_number_q+ptr_t'(i))] : word[AddrW-OffW+:8];
    assign whole_line[i] = i < sent || i >= bursts || 9'(word[LineLog2-1:0]) + 9'(len[i]) < 9'(Lines);
  end

  // Walks along the beats: each burst has as many as its length says, and what remains is the beginning of one that is not whole.
  int unsigned burst;
  len_t beat;
  logic match;
  always_comb begin
    match = 1'b1;
    burst = 0;
    beat  = u_m.w_beat_q;
    for (int unsigned i = 0; i < Beats; i++) begin
      if (i < beats) begin
        match &= beat_last[i] == (burst < bursts && burst < Beats && beat == len[place_t'(burst)]);
        if (beat_last[i]) burst++;
        beat = beat_last[i] ? '0 : beat + 1'b1;
      end
    end
    match &= burst == bursts;
  end

  logic begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    if (rst_ni) begin
      i_match : assert (match);
      if (dut.beat_valid_q)
        i_next :
        assert (dut.burst_q.len == beat && dut.run_q == (dut.beat_q.last ? '0 : beat + 1'b1));
        else i_begun : assert (dut.run_q == beat);
      i_lines : assert (&whole_line && (!dut.beat_valid_q || 9'(dut.burst_q.line[LineLog2-1:0]) + 9'(dut.burst_q.len) < 9'(Lines)));
      if (dut.run_q != '0)
        i_run : assert (dut.pc_begun_q && dut.pc_valid && !dut.pc.drop && dut.run_q < Lines && dut.run_q <= 8'(dut.line_q[LineLog2-1:0]));
      if (dut.pc_begun_q) i_piece : assert (dut.pc_valid);

      i_room : assert (32'(dut.beats_held) + 32'(dut.beat_valid_q) <= Beats);
      i_beats : assert (place_t'(dut.u_beats.wptr_q - dut.u_beats.rptr_q) == place_t'(dut.u_beats.gen_ram.stored_q));
      i_bursts : assert (place_t'(dut.u_bursts.wptr_q - dut.u_bursts.rptr_q) == place_t'(dut.u_bursts.count_q));
      i_sent : assert (ptr_t'(dut.sent_q) == ptr_t'(u_m.aw_number_q - u_m.w_number_q) && sent <= Beats && bursts <= Beats);
      i_flight : assert (ptr_t'(dut.u_flight.count_q) == u_m.wr_count_q && u_m.wr_count_q == ptr_t'(u_m.wr_tail_q[0] - u_m.wr_head_q[0]));

      c_burst : cover (w_valid && w.last && u_m.w_beat_q == 1 && u_m.w_number_q == 1);
    end
  end

endmodule
