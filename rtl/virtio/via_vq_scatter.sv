// SPDX-License-Identifier: Apache-2.0
//
// Writes answers into the device-writable buffers of chains and hands the chains on as used (docs/interfaces.md, section 8).
//
//   rsp ─ plan: head chains, their descriptors ─┬─ pieces ─┐
//                                               └─ chains ─┼─────────────── (address of the chain's last burst accepted) ─> done
//   wr ─────────────────────────────────────────── cut, rotate ─ beats FIFO ─ AW, W
//
// Throughput: an answer into a chain of one writable descriptor, or without bytes, in a cycle, any other in 2 cycles plus one per further
// descriptor; a beat per cycle. Latency: answer to AW 7 cycles, and the length of its
// first burst. Order: data, and chains handed on, in the order of the answers. A chain is handed on once the port has taken the address of its last
// burst, all of whose W is here then: what is written behind that on the same port cannot overtake it, since W goes in the order of the addresses.
// An answer is taken (rsp_ready_o) in the cycle in which its chains leave the store: what avail_o and room_o say next is without them.
// AW is sent when all W of its burst is here (no wedge). A burst stays within BurstBytes, and so within 4 KiB.
// Misuse: bytes beyond a chain's `wlen` are taken and dropped. An answer for a waiting queue that is being reset, or for one without chains, is
// dropped with its data. `last` and `keep` of wr are not looked at: `len` counts.

module via_vq_scatter
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ       = 2,
  parameter int unsigned BurstBytes = 4 * StrbW,  // what a packet of the link usually carries: more only makes the first ones wait
  parameter int unsigned Beats      = 64          // between the personality and the port
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic      [     NumQ-1:0] wait_i,                // the queue's chains wait for an answer
  input  logic      [     NumQ-1:0] off_i,                 // the queue is off
  input  logic      [     NumQ-1:0] closing_i,             // it is being reset or off
  input  logic      [     NumQ-1:0] owed_i,                // requests of the queue are not answered: their chains are in the store
  input  vq_rsp_t                   rsp_i,
  input  logic                      rsp_valid_i,
  output logic                      rsp_ready_o,
  output logic      [         15:0] merged_o,
  output logic                      merged_valid_o,
  input  vq_beat_t                  wr_i,
  input  logic                      wr_valid_i,
  output logic                      wr_ready_o,
  input  vq_chain_t                 head_i        [NumQ],
  input  logic      [     NumQ-1:0] head_valid_i,
  output logic      [     NumQ-1:0] head_pop_o,
  output logic                      b_re_o,
  output logic      [   QueueW-1:0] b_queue_o,
  output logic      [QSizeLog2-1:0] b_index_o,
  input  vq_desc_t                  b_desc_i,              // one cycle after b_re_o
  output axi_ax_t                   m_aw_o,
  output logic                      m_aw_valid_o,
  input  logic                      m_aw_ready_i,
  output axi_w_t                    m_w_o,
  output logic                      m_w_valid_o,
  input  logic                      m_w_ready_i,
  input  axi_b_t                    m_b_i,
  input  logic                      m_b_valid_i,
  output logic                      m_b_ready_o,
  // chains that are used; `more`: the next one belongs to the same answer and must become visible with it;
  // `whole`: all writable bytes were written
  output logic      [   QueueW-1:0] done_queue_o,
  output logic      [         15:0] done_id_o,
  output logic      [         15:0] done_slots_o,
  output logic      [         31:0] done_len_o,
  output logic                      done_whole_o,
  output logic                      done_more_o,
  output logic                      done_valid_o,
  input  logic                      done_ready_i,
  output logic                      err_valid_o,           // pulse: a write was refused
  output logic      [   QueueW-1:0] err_queue_o,
  output logic      [     NumQ-1:0] quiet_o,               // nothing of this queue is held
  output logic                      still_o,
  output logic                      idle_o
);

  localparam bit NumQOk = param_in("via_vq_scatter NumQ", NumQ, 1, QueuesMax);
  localparam bit BurstBytesOk = param_pow2("via_vq_scatter BurstBytes", BurstBytes, 2 * StrbW, MaxBurstBeats * StrbW);
  localparam bit BeatsOk = param_in("via_vq_scatter Beats", Beats, BurstBytes / StrbW, 65536);

  localparam int unsigned OffW = BeatLog2;
  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned Pieces = QSizeMax + 4;  // all descriptors of one answer, and the rest that is dropped
  localparam int unsigned Chains = QSizeMax + 1;  // all chains of one answer
  localparam int unsigned Window = 64;  // bursts in flight
  localparam int unsigned BeatsW = $clog2(Beats + 1);
  localparam int unsigned PiecesW = $clog2(Pieces + 1);
  localparam int unsigned ChainsW = $clog2(Chains + 1);

  typedef struct packed {
    logic              drop;
    logic              chain_end;
    logic              ans_end;
    logic [QueueW-1:0] queue;
    logic [31:0]       len;
    logic [AddrW-1:0]  addr;
  } piece_t;
  typedef struct packed {
    logic              has_data;
    logic              whole;
    logic              more;
    logic [QueueW-1:0] queue;
    logic [15:0]       id;
    logic [15:0]       slots;
    logic [31:0]       len;
  } used_t;

  // ---------------------------------------------------------------- plan
  typedef enum logic [1:0] {
    PlChain,
    PlDesc,
    PlDrop
  } plan_e;
  plan_e plan_q, plan_d;

  vq_chain_t head, chain, chain_q;
  logic [QW-1:0] queue;
  logic begun_q, got_q, head_here, gone, piece_room, piece_push, chain_room, chain_done, answer_done, chain_last;
  logic [31:0] left_q, left, take, take_q, want_q, after, cut;
  logic [15:0] chains_q;
  logic [QSizeLog2-1:0] index_q;
  logic [PiecesW-1:0] pieces_held;
  logic [ChainsW-1:0] chains_held;
  piece_t piece, piece_in;
  logic piece_take;

  assign queue = QW'(rsp_i.queue);
  assign head = head_i[queue];
  assign head_here = head_valid_i[queue];
  // An answer begun is finished: the chains it needs are there as long as the queue is on.
  assign gone = off_i[queue] || closing_i[queue] && (wait_i[queue] ? !begun_q : !owed_i[queue]);
  assign left = begun_q ? left_q : rsp_i.len;  // bytes of the answer that no earlier chain takes
  assign chain = (plan_q == PlChain) ? head : chain_q;
  assign take = (plan_q == PlChain) ? (left < head.wlen ? left : head.wlen) : take_q;
  assign after = left - take;
  assign piece_room = pieces_held + PiecesW'(got_q) < PiecesW'(Pieces);
  assign chain_room = chains_held < ChainsW'(Chains);
  assign chain_last = !rsp_i.merge || after == '0;

  // want_q: bytes of the chain that no earlier descriptor takes
  assign cut = (b_desc_i.len < want_q) ? b_desc_i.len : want_q;

  // A chain of one writable descriptor takes what it takes whatever the descriptor says: it is planned while that is read.
  logic lone, lone_q, lone_end_q;
  logic [QueueW-1:0] lone_queue_q;
  assign lone = head.nwrite == (QSizeLog2 + 1)'(1) && (after == '0 || rsp_i.merge);

  assign b_queue_o = rsp_i.queue;
  assign b_index_o = (plan_q == PlChain) ? head.first + QSizeLog2'(head.nread) : index_q;

  always_comb begin
    plan_d = plan_q;
    b_re_o = 1'b0;
    piece_push = 1'b0;
    chain_done = 1'b0;
    answer_done = 1'b0;
    piece = '{
        drop: 1'b0,
        chain_end: cut == want_q,
        ans_end: cut == want_q && after == '0,
        queue: rsp_i.queue,
        len: cut,
        addr: b_desc_i.addr
    };
    unique case (plan_q)
      PlChain: begin
        if (rsp_valid_i && gone) begin
          if (left != '0) plan_d = PlDrop;
          else answer_done = 1'b1;
        end else if (rsp_valid_i && head_here && chain_room) begin
          if (take != '0) begin
            b_re_o = piece_room;
            chain_done = piece_room && lone;
            answer_done = chain_done && after == '0;
            if (piece_room && !lone) plan_d = PlDesc;
          end else begin
            chain_done  = 1'b1;
            answer_done = left == '0;
            if (left != '0 && !rsp_i.merge) plan_d = PlDrop;
          end
        end
      end
      PlDesc: begin
        if (got_q) begin
          piece_push = 1'b1;
          chain_done = cut == want_q;
          if (chain_done) begin
            answer_done = after == '0;
            plan_d = (after != '0 && !rsp_i.merge) ? PlDrop : PlChain;
          end
        end
        b_re_o = !chain_done && piece_room;
      end
      default: begin
        piece = '{drop: 1'b1, chain_end: 1'b0, ans_end: 1'b1, queue: rsp_i.queue, len: left, addr: '0};
        piece_push = piece_room;
        answer_done = piece_room;
        if (piece_room) plan_d = PlChain;
      end
    endcase
  end

  // The piece of a lone descriptor, one cycle after it was planned: nothing else enters then.
  always_comb begin
    piece_in = piece;
    if (lone_q) piece_in = '{drop: 1'b0, chain_end: 1'b1, ans_end: lone_end_q, queue: lone_queue_q, len: want_q, addr: b_desc_i.addr};
  end
  assign piece_take  = piece_push || lone_q;

  assign rsp_ready_o = answer_done;
  for (genvar q = 0; q < NumQ; q++) begin : gen_pop
    assign head_pop_o[q] = chain_done && queue == QW'(q) && head_valid_i[q];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      plan_q         <= PlChain;
      begun_q        <= 1'b0;
      got_q          <= 1'b0;
      lone_q         <= 1'b0;
      merged_valid_o <= 1'b0;
    end else begin
      plan_q         <= plan_d;
      got_q          <= b_re_o;
      lone_q         <= b_re_o && plan_q == PlChain && lone;
      merged_valid_o <= answer_done && rsp_i.merge;
      if (chain_done || answer_done) begun_q <= !answer_done;
    end
  end
  always_ff @(posedge clk_i) begin
    if (plan_q == PlChain) begin
      if (b_re_o || chain_done) begin
        chain_q <= head;
        take_q  <= take;
      end
      if (b_re_o) want_q <= take;
      if (b_re_o) lone_end_q <= after == '0;
      if (b_re_o) lone_queue_q <= rsp_i.queue;
    end else if (piece_push) want_q <= want_q - cut;
    if (b_re_o) index_q <= b_index_o + 1'b1;
    if (chain_done) begin
      left_q   <= after;
      chains_q <= (begun_q ? chains_q : '0) + 16'd1;
    end
    if (answer_done) merged_o <= (begun_q ? chains_q : '0) + 16'(chain_done);
  end

  piece_t pc;
  logic pc_valid, pc_pop;
  via_fifo #(
    .T    (piece_t),
    .Depth(Pieces),
    .Ram  (1'b1)
  ) u_pieces (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (piece_in),
    .s_valid_i(piece_take),
    .s_ready_o(),
    .m_o      (pc),
    .m_valid_o(pc_valid),
    .m_ready_i(pc_pop),
    .count_o  (pieces_held)
  );

  used_t used;
  logic used_valid, used_pop;
  via_fifo #(
    .T    (used_t),
    .Depth(Chains),
    .Ram  (1'b1)
  ) u_chains (
    .clk_i,
    .rst_ni,
    .flush_i(1'b0),
    .s_i(
    '{
        has_data: take != '0,
        whole: take == chain.wlen,
        more: !chain_last,
        queue: rsp_i.queue,
        id: chain.id,
        slots: chain.slots,
        len: take
    }
    ),
    .s_valid_i(chain_done),
    .s_ready_o(),
    .m_o(used),
    .m_valid_o(used_valid),
    .m_ready_i(used_pop),
    .count_o(chains_held)
  );

  // ---------------------------------------------------------------- cut the stream into beats of the buffers
  // x_q is the beat of the stream whose first `at_q` bytes are gone; the next one waits at the port.
  logic x_valid_q, fire, need_y, piece_end, ans_end, x_pop, skip_y, pc_begun_q, stuck, released, w_room;
  logic [OffW-1:0] at_q, off;
  logic [OffW:0] count, reach;
  logic [31:0] bytes_q, remain;
  logic [  DataW-1:0] x_q;
  logic [PiecesW-1:0] open_q;  // answers planned to their end whose data is not all here
  logic [AddrW-OffW-1:0] line_q, line;

  assign off = (pc_begun_q || pc.drop) ? '0 : pc.addr[OffW-1:0];
  assign remain = pc_begun_q ? bytes_q : pc.len;
  assign piece_end = remain <= 32'(StrbW) - 32'(off);
  assign count = piece_end ? remain[OffW:0] : (OffW + 1)'(StrbW) - (OffW + 1)'(off);
  assign reach = (OffW + 1)'(at_q) + count;
  assign need_y = reach > (OffW + 1)'(StrbW);
  // Data is taken once `merged_o` was given; an answer of more pieces than ever fit must not wait for that.
  assign stuck = pieces_held == PiecesW'(Pieces) || chains_held == ChainsW'(Chains);
  assign released = open_q != '0 || stuck;
  assign fire = pc_valid && released && x_valid_q && (!need_y || wr_valid_i) && (pc.drop || w_room);
  assign ans_end = fire && piece_end && pc.ans_end;
  assign x_pop = fire && (reach >= (OffW + 1)'(StrbW) || ans_end);
  assign skip_y = ans_end && need_y;  // the answer ends in the beat at the port
  assign pc_pop = fire && piece_end;
  assign wr_ready_o = skip_y || x_pop && !ans_end || (!x_valid_q || ans_end) && (open_q > PiecesW'(ans_end) || stuck);

  logic answer_has_data;
  assign answer_has_data = answer_done && rsp_i.len != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      x_valid_q  <= 1'b0;
      at_q       <= '0;
      pc_begun_q <= 1'b0;
      open_q     <= '0;
    end else begin
      if (wr_ready_o) x_valid_q <= wr_valid_i && !skip_y;
      else if (x_pop) x_valid_q <= 1'b0;
      if (fire) begin
        at_q       <= ans_end ? '0 : reach[OffW-1:0];
        pc_begun_q <= !piece_end;
      end
      if (answer_has_data != ans_end) open_q <= answer_has_data ? open_q + 1'b1 : open_q - 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (wr_valid_i && wr_ready_o && !skip_y) x_q <= wr_i.data;
    if (fire) begin
      bytes_q <= remain - 32'(count);
      line_q  <= line + 1'b1;
    end
  end

  // Byte j of the stream goes to byte j + off - at of the line, modulo a beat, whichever of the two beats it is in.
  function automatic logic [DataW-1:0] mix(input logic [DataW-1:0] x, input logic [DataW-1:0] y, input logic [OffW-1:0] at);
    logic [DataW-1:0] of_x;
    of_x = {DataW{1'b1}} << {at, 3'b0};
    return x & of_x | y & ~of_x;
  endfunction

  function automatic logic [DataW-1:0] rotate(input logic [DataW-1:0] d, input logic [OffW-1:0] by);
    return d << {by, 3'b0} | d >> {(OffW + 1)'(StrbW) - (OffW + 1)'(by), 3'b0};
  endfunction

  // ---------------------------------------------------------------- beats and bursts
  localparam int unsigned LineLog2 = $clog2(BurstBytes / StrbW);
  typedef struct packed {
    logic             last;
    logic [StrbW-1:0] strb;
    logic [DataW-1:0] data;
  } beat_t;
  typedef struct packed {
    logic                  chain_end;  // the last one of its chain
    logic [QueueW-1:0]     queue;
    logic [7:0]            len;
    logic [AddrW-OffW-1:0] line;
  } burst_t;
  beat_t beat_q, beat;
  burst_t burst_q, burst;
  logic beat_valid_q, beat_valid, beat_out, burst_valid, burst_out, flight_room, emit, burst_last;
  logic [7:0] run_q;  // beats of the burst so far
  logic [BeatsW-1:0] beats_held;

  assign emit = fire && !pc.drop;
  assign line = pc_begun_q ? line_q : pc.addr[AddrW-1:OffW];
  assign burst_last = piece_end || &line[LineLog2-1:0];
  assign w_room = beats_held + BeatsW'(beat_valid_q) < BeatsW'(Beats);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_valid_q <= 1'b0;
      run_q        <= '0;
    end else begin
      beat_valid_q <= emit;
      if (emit) run_q <= burst_last ? '0 : run_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (emit) begin
      beat_q.data <= rotate(mix(x_q, wr_i.data, at_q), off - at_q);
      beat_q.strb <= {StrbW{1'b1}} >> OffW'(-count[OffW-1:0]) << off;
      beat_q.last <= burst_last;
      burst_q     <= '{chain_end: piece_end && pc.chain_end, queue: pc.queue, len: run_q, line: line - (AddrW - OffW)'(run_q)};
    end
  end

  // There are never more bursts than beats, so whoever has room for a beat has room for its burst.
  via_fifo #(
    .T    (burst_t),
    .Depth(Beats)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (burst_q),
    .s_valid_i(beat_valid_q && beat_q.last),
    .s_ready_o(),
    .m_o      (burst),
    .m_valid_o(burst_valid),
    .m_ready_i(burst_out),
    .count_o  ()
  );

  via_fifo #(
    .T    (beat_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (beat_q),
    .s_valid_i(beat_valid_q),
    .s_ready_o(),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_out),
    .count_o  (beats_held)
  );

  always_comb begin
    m_aw_o       = '0;
    m_aw_o.burst = 2'b01;
    m_aw_o.size  = 3'(BeatLog2);
    m_aw_o.len   = burst.len;
    m_aw_o.addr  = {burst.line, OffW'(0)};
  end
  assign m_aw_valid_o = burst_valid && flight_room;
  assign burst_out = m_aw_valid_o && m_aw_ready_i;

  // W follows its AW.
  logic [BeatsW-1:0] sent_q;  // addresses sent whose data is not
  logic w_last;
  assign m_w_o = '{last: beat.last, strb: beat.strb, data: beat.data};
  assign m_w_valid_o = beat_valid && sent_q != '0;
  assign beat_out = m_w_valid_o && m_w_ready_i;
  assign w_last = beat_out && beat.last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) sent_q <= '0;
    else if (burst_out != w_last) sent_q <= burst_out ? sent_q + 1'b1 : sent_q - 1'b1;
  end

  logic [QueueW-1:0] flight;
  logic in_flight;
  via_fifo #(
    .T    (logic [QueueW-1:0]),
    .Depth(Window)
  ) u_flight (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (burst.queue),
    .s_valid_i(burst_out),
    .s_ready_o(flight_room),
    .m_o      (flight),
    .m_valid_o(in_flight),
    .m_ready_i(m_b_valid_i),
    .count_o  ()
  );
  assign m_b_ready_o = 1'b1;
  assign err_valid_o = m_b_valid_i && in_flight && m_b_i.resp != RespOkay;
  assign err_queue_o = flight;

  // ---------------------------------------------------------------- chains that are used
  logic [ChainsW-1:0] ended_q;  // chains all of whose bursts the port has, not handed on
  logic chain_out, chain_in;

  assign chain_in = burst_out && burst.chain_end;
  assign done_valid_o = used_valid && (!used.has_data || ended_q != '0);
  assign used_pop = done_valid_o && done_ready_i;
  assign chain_out = used_pop && used.has_data;
  assign done_queue_o = used.queue;
  assign done_id_o = used.id;
  assign done_slots_o = used.slots;
  assign done_len_o = used.len;
  assign done_whole_o = used.whole;
  assign done_more_o = used.more;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ended_q <= '0;
    else if (chain_in != chain_out) ended_q <= chain_in ? ended_q + 1'b1 : ended_q - 1'b1;
  end

  // Chains not handed on, and bursts that host memory has not answered.
  localparam int unsigned WindowW = $clog2(Window + 1);
  logic [NumQ-1:0][ChainsW-1:0] held_q;
  logic [NumQ-1:0][WindowW-1:0] flights_q;
  for (genvar q = 0; q < NumQ; q++) begin : gen_held
    logic more, less, leaves, lands;
    assign more = chain_done && queue == QW'(q);
    assign less = used_pop && used.queue == QueueW'(q);
    assign leaves = burst_out && burst.queue == QueueW'(q);
    assign lands = m_b_valid_i && in_flight && flight == QueueW'(q);
    assign quiet_o[q] = held_q[q] == '0 && flights_q[q] == '0 && !(rsp_valid_i && (plan_q != PlChain || begun_q) && queue == QW'(q));
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        held_q[q]    <= '0;
        flights_q[q] <= '0;
      end else begin
        if (more != less) held_q[q] <= more ? held_q[q] + 1'b1 : held_q[q] - 1'b1;
        if (leaves != lands) flights_q[q] <= leaves ? flights_q[q] + 1'b1 : flights_q[q] - 1'b1;
      end
    end
  end

  // Whatever is in a memory and not yet behind it is on its way.
  logic hidden;
  assign hidden = pieces_held != '0 && !pc_valid || chains_held != '0 && !used_valid || beats_held != '0 && !beat_valid;
  assign still_o = ~|{chain_done, answer_done, b_re_o, piece_take, plan_d != plan_q, got_q, merged_valid_o, hidden, fire,
                      wr_valid_i && wr_ready_o, beat_valid_q, m_aw_valid_o, m_w_valid_o, m_b_valid_i, used_pop};
  assign idle_o = plan_q == PlChain && !begun_q && pieces_held == '0 && chains_held == '0 && beats_held == '0 && !beat_valid_q && !x_valid_q &&
      !in_flight;

endmodule
