// SPDX-License-Identifier: Apache-2.0
//
// via_vq_scatter keeps the rules of its port (via_axi_checker), without bound: payloads and valids stay, bursts lie within 4 KiB, WLAST is on the last
// beat that the address tells of and on no other, data does not come before its address, no more bursts are in flight than it has room to follow.
//
// Assumed: host memory keeps its own rules: B only for a write all of which it has taken, with its id. Anything may happen at the other ports, the
// store's too: what is planned is not looked at, and pieces may say anything.

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

  localparam int unsigned Lines = 2;  // beats of the longest burst
  localparam int unsigned Beats = 5;  // between the personality and the port
  localparam int unsigned Most = Beats + 2;  // with the one at the head of its FIFO, and the one that is rotated
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
    .busy_o        (),
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
    .done_near_o   (),
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
  typedef struct packed {  // as in the block
    logic                  chain_end;
    logic [QueueW-1:0]     queue;
    logic [7:0]            len;
    logic [AddrW-OffW-1:0] line;
  } burst_t;

  // The place in a FIFO, so far behind another one.
  function automatic place_t behind(input place_t p, input ptr_t by);
    return (ptr_t'(p) + by >= ptr_t'(Beats)) ? place_t'(ptr_t'(p) + by - ptr_t'(Beats)) : place_t'(ptr_t'(p) + by);
  endfunction

  // An address as the block makes it: its beats lie within Lines, so within a page.
  function automatic logic burst_ok(input burst_t b);
    return 32'(b.line[LineLog2-1:0]) + 32'(b.len) < Lines;
  endfunction

  // The beats not accepted, the oldest first: at the head, in the memory's output register, in the memory, in the rotation.
  ptr_t beats, stored;
  logic fetched;
  logic [Beats-1:0] mem_last;
  logic [Most-1:0] beat_last;
  assign stored  = ptr_t'(dut.u_beats.u_fifo.gen_ram.stored_q);
  assign fetched = dut.u_beats.u_fifo.gen_ram.valid_q;
  assign beats   = ptr_t'(dut.beat_valid) + ptr_t'(fetched) + stored + ptr_t'(dut.mixed_valid_q);
  for (genvar i = 0; i < Beats; i++) begin : gen_beat
    place_t at;
    assign at = behind(dut.u_beats.u_fifo.rptr_q, ptr_t'(i));
    assign mem_last[i] = ptr_t'(i) < stored && dut.u_beats.u_fifo.gen_ram.u_ram.mem[at][dut.u_beats.u_fifo.Width-1];
  end
  always_comb begin
    beat_last = (dut.mixed_valid_q && dut.mixed_last_q) ? Most'(1) << stored : '0;
    beat_last |= Most'(mem_last);
    if (fetched) beat_last = beat_last << 1 | Most'(dut.u_beats.u_fifo.gen_ram.u_ram.rdata_q[dut.u_beats.u_fifo.Width-1]);
    if (dut.beat_valid) beat_last = beat_last << 1 | Most'(dut.beat.last);
  end

  // The lengths of the bursts they belong to, in order: of those whose address was accepted, of the one at the head, of those in the FIFO.
  ptr_t ahead, bursts;  // addresses taken without all of their data; bursts not all of whose data was accepted
  burst_t [Beats-1:0] held;
  logic   [Beats-1:0] held_ok;
  len_t   [  Beats:0] held_len;
  len_t   [ Most-1:0] len;
  assign ahead    = u_m.aw_number_q - u_m.w_number_q;
  assign bursts   = ahead + ptr_t'(dut.burst_valid) + ptr_t'(dut.u_bursts.count_o);
  assign held_len[0] = dut.burst.len;
  for (genvar i = 0; i < Beats; i++) begin : gen_held
    place_t at;
    assign at = behind(dut.u_bursts.u_fifo.rptr_q, ptr_t'(i));
    assign held[i] = dut.u_bursts.u_fifo.gen_lut.mem[at];
    assign held_len[i+1] = held[i].len;
    assign held_ok[i] = ptr_t'(i) >= ptr_t'(dut.u_bursts.count_o) || burst_ok(held[i]);
  end
  for (genvar i = 0; i < Most; i++) begin : gen_len
    ptr_t at;
    assign at = ptr_t'(i) - ahead;
    assign len[i] = (ptr_t'(i) < ahead) ? u_m.wr_len_q[ptr_t'(u_m.w_number_q+ptr_t'(i))] : held_len[at[$clog2(Beats+1)-1:0]];
  end

  // Walks along the beats: each burst has as many as its length says, and what remains is the beginning of one that is not whole.
  int unsigned burst;
  len_t beat;
  logic match;
  always_comb begin
    match = 1'b1;
    burst = 0;
    beat  = u_m.w_beat_q;
    for (int unsigned i = 0; i < Most; i++) begin
      if (i < 32'(beats)) begin
        match &= beat_last[i] == (burst < 32'(bursts) && beat == len[burst[$clog2(Most)-1:0]]);
        if (beat_last[i]) burst++;
        beat = beat_last[i] ? '0 : beat + 1'b1;
      end
    end
    match &= burst == 32'(bursts);
  end

  logic begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    assume (rst_ni == begun_q);
    if (rst_ni) begin
      // beats: there is room for what is on its way
      i_beats : assert (behind(dut.u_beats.u_fifo.rptr_q, stored) == dut.u_beats.u_fifo.wptr_q);
      i_room : assert (ptr_t'(dut.beats_held) + ptr_t'(dut.mixed_valid_q) + ptr_t'(dut.w_room_q) <= ptr_t'(Beats));
      i_match : assert (match);
      i_next : assert (beat == dut.run_q);

      // bursts: lines that follow one another, up to the end of what a burst may lie in
      i_run : assert (dut.run_any_q == (dut.run_q != '0) && (!dut.pc_begun_q || dut.pc_valid));
      if (dut.run_any_q)
        i_lines :
        assert (dut.pc_begun_q && !dut.pc.drop && dut.line_q == dut.start_q + (AddrW - OffW)'(dut.run_q) && dut.run_q <= 8'(dut.line_q[LineLog2-1:0]));
      i_burst : assert (!dut.burst_valid || burst_ok(dut.burst));
      i_held : assert (&held_ok);
      i_bursts : assert (behind(dut.u_bursts.u_fifo.rptr_q, ptr_t'(dut.u_bursts.count_o)) == dut.u_bursts.u_fifo.wptr_q);
      i_places : assert (dut.u_beats.u_fifo.rptr_q < place_t'(Beats) && dut.u_bursts.u_fifo.rptr_q < place_t'(Beats));

      // sent
      i_sent : assert (ptr_t'(dut.sent_q) == ahead && ahead <= ptr_t'(Most) && dut.sent_any_q == (ahead != '0));
      i_flight :
      assert (ptr_t'(dut.u_flight.count_q) == u_m.wr_count_q && u_m.wr_count_q <= Window && u_m.wr_count_q == ptr_t'(u_m.wr_tail_q[0] - u_m.wr_head_q[0]));

      c_full : cover (u_m.wr_count_q == 3 && ahead == 2);
      c_burst : cover (w_valid && w.last && u_m.w_beat_q == 1 && u_m.w_number_q == 1);
    end
  end

endmodule
