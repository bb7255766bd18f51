// SPDX-License-Identifier: Apache-2.0
//
// Writes responses into the device-writable buffers of chains, and passes the chains on as used (docs/interfaces.md, section 8).
//
//   rsp ─ plan: head chains ─┬─ their descriptors ─ pieces ─┐
//                            └─ chains ─────────────────────┼─────── (address of the chain's last burst accepted) ─> done
//   wr ────────────────────────────────────────────── cut ─┬─ bursts ─ AW
//                                                          └─ rotate ─ beats ─ W
//
// Throughput: a response without bytes in 1 cycle, one into a chain of one writable descriptor in 2, of one queue every 3, any other in 4
// cycles plus one per further descriptor; a beat per cycle. Latency: response to AW 4 cycles, data to AW one, and without AtHand the length
// of the first burst.
// Order: data, and chains passed on, in the order of the responses. A chain is passed on once the port has accepted the address of its last
// burst: a later write on the same port cannot overtake it, since W follows the order of the addresses.
// One response is held: it is accepted (rsp_ready_o) when none is held, and its queue is in `busy_o` from the next cycle on until the last
// of its chains has left the store. The data of a response with `merge` is offered after merged_valid_o. AW is sent when all W of its burst
// is here or leaves the rotation (docs/interfaces.md, section 1, No deadlocks); with AtHand when the first beat is, as the rest follows
// without fail. A burst stays within BurstBytes, and so within 4 KiB.
// Misuse: bytes beyond a chain's `wlen` are accepted and dropped. A response for a waiting queue that is under reset, or for one without
// chains, is dropped with its data. `last` and `keep` of wr are ignored: `len` counts.

module via_vq_scatter
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2,  // queues
  parameter int unsigned BurstBytes = 4 * StrbW,  // usual payload of a PCIe packet: longer bursts only delay the first ones
  parameter int unsigned Beats = 64,  // capacity of the buffer between the personality and the port
  parameter bit AtHand = 1'b0  // the personality holds all data of a response when it offers the first of it, and offers a beat a cycle
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic      [     NumQ-1:0] wait_i,                // level: the queue's chains wait for a response
  input  logic      [     NumQ-1:0] off_i,                 // level: the queue is off
  input  logic      [     NumQ-1:0] closing_i,             // level: it is under reset or off
  input  logic      [     NumQ-1:0] owed_i,                // level: requests of the queue lack responses: their chains are in the store
  input  vq_rsp_t                   rsp_i,                 // response
  input  logic                      rsp_valid_i,
  output logic                      rsp_ready_o,
  output logic      [     NumQ-1:0] busy_o,                // level: a response of the queue is held
  output logic      [         15:0] merged_o,              // chains that the last `merge` response used
  output logic                      merged_valid_o,        // pulse: merged_o is valid
  input  vq_beat_t                  wr_i,                  // bytes of the response
  input  logic                      wr_valid_i,
  output logic                      wr_ready_o,
  input  vq_chain_t                 head_i        [NumQ],  // oldest chain of each queue
  input  logic      [     NumQ-1:0] head_valid_i,          // level: there is one
  output logic      [     NumQ-1:0] head_pop_o,            // pulse: remove it
  output logic                      b_re_o,                // pulse: read a descriptor
  output logic      [   QueueW-1:0] b_queue_o,             // its queue
  output logic      [QSizeLog2-1:0] b_index_o,             // its index in the store
  input  vq_desc_t                  b_desc_i,              // the descriptor, one cycle after b_re_o
  output axi_ax_t                   m_aw_o,
  output logic                      m_aw_valid_o,
  input  logic                      m_aw_ready_i,
  output axi_w_t                    m_w_o,
  output logic                      m_w_valid_o,
  input  logic                      m_w_ready_i,
  input  axi_b_t                    m_b_i,
  input  logic                      m_b_valid_i,
  output logic                      m_b_ready_o,
  // used chains
  output logic      [   QueueW-1:0] done_queue_o,          // queue of the chain
  output logic      [         15:0] done_id_o,             // head index or buffer id
  output logic      [         15:0] done_slots_o,          // ring slots
  output logic      [         31:0] done_len_o,            // bytes written
  output logic                      done_whole_o,          // all of its writable bytes were written
  output logic                      done_more_o,           // the next chain is of the same response, and must become visible with it
  output logic                      done_near_o,           // level: these are the values of the next chain, and stay until it is passed on
  output logic                      done_valid_o,
  input  logic                      done_ready_i,
  output logic                      err_valid_o,           // pulse: a write failed
  output logic      [   QueueW-1:0] err_queue_o,           // with err_valid_o: stop this queue
  output logic      [     NumQ-1:0] quiet_o,               // level: nothing of this queue is held
  output logic                      still_o,               // level: nothing moves unless an input changes
  output logic                      idle_o                 // level: nothing is held
);

  localparam bit NumQOk = param_in("via_vq_scatter NumQ", NumQ, 1, QueuesMax);
  localparam bit BurstBytesOk = param_pow2("via_vq_scatter BurstBytes", BurstBytes, 2 * StrbW, MaxBurstBeats * StrbW);
  localparam bit BeatsOk = param_in("via_vq_scatter Beats", Beats, BurstBytes / StrbW + 3, 65536);

  localparam int unsigned OffW = BeatLog2;
  localparam int unsigned LineW = AddrW - OffW;
  localparam int unsigned WholeW = 32 - OffW;
  // Room is signalled by registers: they count what may still be on its way as if it were here.
  localparam int unsigned PiecesAhead = 6;
  localparam int unsigned ChainsAhead = 3;
  localparam int unsigned BeatsAhead = 3;
  localparam int unsigned Pieces = QSizeMax + 4 + PiecesAhead;  // all descriptors of one response, and the rest that is dropped
  localparam int unsigned Chains = QSizeMax + 1 + ChainsAhead;  // all chains of one response
  localparam int unsigned Window = 64;  // bursts in flight
  localparam int unsigned BeatsW = $clog2(Beats + 1);
  localparam int unsigned PiecesW = $clog2(Pieces + 1);
  localparam int unsigned ChainsW = $clog2(Chains + 1);
  localparam int unsigned OwnW = $clog2(Chains + 2);  // and one at the head

  // The lines of a piece: it ends before byte `till` (0 to twice a line) of line number `whole`, the first line being number 0.
  typedef struct packed {
    logic              drop;
    logic              chain_end;
    logic              ans_end;
    logic [QueueW-1:0] queue;
    logic              single;     // one line
    logic [OffW:0]     count;      // bytes in the first line
    logic [OffW:0]     till;
    logic [WholeW-1:0] whole;
    logic [LineW-1:0]  line;
    logic [OffW-1:0]   off;
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

  // ---------------------------------------------------------------- plan: assign a response to chains
  // One step per chain: the ports are evaluated in one cycle; the result (pop, read of a descriptor) is in registers in the next one, in
  // which the ports are out of date: nothing of that queue is evaluated then, and nothing at all if the evaluated response is still there.
  // A response without bytes, of a queue that does not wait, is finished in its first cycle, so that responses to transmitted buffers do
  // not delay those with received data. A descriptor arrives in the cycle after its read, late; its length is compared in the
  // next one. In a chain of one nothing is compared.
  typedef enum logic [1:0] {
    PlChain = 2'b00,
    PlDesc  = 2'b01,
    PlDrop  = 2'b10
  } plan_e;
  plan_e plan_q, plan_d;

  // The fields used of a chain at the head.
  typedef struct packed {
    logic [15:0]          id;
    logic [15:0]          slots;
    logic [31:0]          wlen;
    logic [QSizeLog2-1:0] first;  // its first writable descriptor
  } head_t;
  head_t [NumQ-1:0] head_in;
  head_t head, chain_q;
  logic [NumQ-1:0] busy_q, mine_q, mine, some, forth_in, none_in, one_in, gone_in, pop_d, pop_q;  // mine: queue of the response
  logic rsp_here, turn, judges, able, gone, here, roomy, one, forth, merge, some_left, some_left_q, partial, fits, taken;
  logic go_gone, go_empty, go_read, go_lone, go_done, at_once, take_d, desc_take, desc_end, drop_take, to_drop, in_desc, in_drop;
  logic ready_q, ready_d, begun_q, re_q, re_d, read_q, got_q, lone_ask_q, lone_q, over_q, popped_q, at_once_q, taken_q, drop_ready_q;
  logic piece_room_q, chain_room_q, merge_q, fits_q, has_data_q, partial_q, judged_q, step_q;
  logic [QueueW-1:0] queue_q;
  logic [31:0] left_q, left_d, take, want_q, want;
  vq_desc_t desc_q;  // with got_q
  logic [15:0] chains_q;
  logic [QSizeLog2-1:0] index_q;
  logic [PiecesW-1:0] pieces_held;
  logic [ChainsW-1:0] chains_held;

  // The current response is the one held, if there is one. Its queue is one-hot.
  assign rsp_here = rsp_valid_i || !ready_q;
  assign merge = ready_q ? rsp_i.merge : merge_q;
  for (genvar q = 0; q < NumQ; q++) begin : gen_in
    logic out;  // responses are dropped
    assign mine[q] = ready_q ? rsp_i.queue == QueueW'(q) : mine_q[q];
    // A response that was begun is finished: the chains it needs are there as long as the queue is on.
    assign out = off_i[q] || closing_i[q] && (wait_i[q] ? !begun_q : !owed_i[q]);
    assign gone_in[q] = out && !pop_q[q];
    assign some[q] = head_valid_i[q] && !out && !pop_q[q];
    assign forth_in[q] = head_valid_i[q] && !wait_i[q] && !off_i[q] && (!closing_i[q] || owed_i[q]) && !pop_q[q];  // there is one, and the queue does not wait
    assign one_in[q] = head_i[q].nwrite == (QSizeLog2 + 1)'(1);
    assign none_in[q] = head_i[q].nwrite == '0;  // and so no writable bytes, as no descriptor is empty
    assign head_in[q] = '{
            id: head_i[q].id,
            slots: head_i[q].slots,
            wlen: head_i[q].wlen,
            first: head_i[q].first + QSizeLog2'(head_i[q].nread)
        };
    // A chain of one writable descriptor gets the same bytes whatever the descriptor contains: it is popped while that is read.
    assign pop_d[q] = able && mine[q] && some[q] && (none_in[q] || !some_left || one_in[q] && piece_room_q);
  end
  always_comb begin
    head = '0;
    for (int unsigned q = 0; q < NumQ; q++) if (mine[q]) head |= head_in[q];
  end
  assign turn = plan_q == PlChain && !taken_q && !(popped_q && !at_once_q) && !over_q;
  assign some_left = ready_q ? rsp_i.len != '0 : some_left_q;
  // Of the response's queue: responses are dropped, has a chain, one with enough room, one with enough room in one descriptor.
  assign gone = |(mine & gone_in);
  assign here = |(mine & some);
  assign roomy = |(mine & some & ~none_in);
  assign one = |(mine & some & ~none_in & one_in);
  assign forth = |(mine & forth_in);

  assign judges = turn && rsp_here;
  assign able = judges && chain_room_q;
  assign go_gone = judges && gone;
  assign go_empty = able && here && !(some_left && roomy);
  assign go_read = able && piece_room_q && some_left && roomy;
  assign go_lone = able && piece_room_q && some_left && one;
  assign at_once = able && !some_left && forth && !begun_q && !merge;
  assign go_done = able && !some_left && here && (!forth || begun_q || merge);
  // Bytes of the response for the evaluated chain, in the next cycle: all that is left; `partial` if that is less than the chain's room.
  assign partial = judged_q ? left_q < chain_q.wlen : partial_q;
  assign fits = judged_q ? left_q <= chain_q.wlen : fits_q;
  assign take = partial ? left_q : chain_q.wlen;
  assign taken = taken_q || lone_ask_q && fits;
  assign take_d = go_gone && !some_left || go_done || desc_end && fits_q || drop_take;

  // Without a case: a state that stays would become a clock enable, and that a descriptor is the last one is known late.
  assign to_drop = over_q || some_left && (go_gone || go_empty && !merge);  // from PlChain
  assign in_desc = plan_q == PlDesc && !desc_end || plan_q == PlChain && go_read && !one && !over_q;
  assign in_drop = plan_q == PlDrop && !drop_take || plan_q == PlChain && to_drop || desc_end && !fits_q && !merge_q;
  assign plan_d = in_desc ? PlDesc : in_drop ? PlDrop : PlChain;

  assign left_d = ready_q ? rsp_i.len : left_q - chain_q.wlen;
  always_comb begin
    want = want_q - desc_q.len;
    if (judged_q) want = take;
    if (plan_q[1]) want = left_q;
  end

  // Further descriptors are read before it is known whether the chain needs them.
  assign re_d = go_read || plan_q == PlDesc && piece_room_q && !desc_end;
  assign b_re_o = re_q;
  assign b_queue_o = queue_q;
  assign b_index_o = index_q;
  assign head_pop_o = pop_q;
  assign rsp_ready_o = ready_q;
  assign ready_d = !rsp_here || taken || at_once;
  assign busy_o = busy_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      plan_q         <= PlChain;
      begun_q        <= 1'b0;
      re_q           <= 1'b0;
      read_q         <= 1'b0;
      got_q          <= 1'b0;
      lone_ask_q     <= 1'b0;
      lone_q         <= 1'b0;
      pop_q          <= '0;
      popped_q       <= 1'b0;
      over_q         <= 1'b0;
      step_q         <= 1'b0;
      ready_q        <= 1'b1;
      busy_q         <= '0;
      taken_q        <= 1'b0;
      at_once_q      <= 1'b0;
      chains_q       <= '0;
      merged_valid_o <= 1'b0;
      piece_room_q   <= 1'b1;
      chain_room_q   <= 1'b1;
    end else begin
      plan_q         <= plan_d;
      re_q           <= re_d;
      read_q         <= re_q && plan_q == PlDesc && !desc_end;
      got_q          <= read_q && !desc_end;
      lone_ask_q     <= go_lone;
      lone_q         <= lone_ask_q;
      step_q         <= go_empty || go_read;
      over_q         <= lone_ask_q && !fits && !merge_q;
      ready_q        <= ready_d;
      busy_q         <= ready_d ? '0 : mine;  // of the response that is held then
      popped_q       <= |pop_d || desc_end;
      taken_q        <= take_d;
      at_once_q      <= at_once;
      merged_valid_o <= taken && merge_q;
      piece_room_q   <= pieces_held <= PiecesW'(Pieces - PiecesAhead);
      chain_room_q   <= chains_held <= ChainsW'(Chains - ChainsAhead);
      pop_q          <= desc_end ? mine_q : pop_d;
      if (taken) begun_q <= 1'b0;
      else if (popped_q && !at_once_q) begun_q <= 1'b1;
      if (taken) chains_q <= '0;
      else if (popped_q && !at_once_q) chains_q <= chains_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (ready_q) begin
      mine_q  <= mine;
      queue_q <= rsp_i.queue;
      merge_q <= rsp_i.merge;
    end
    // left_q: bytes of the response left for this chain and later ones; after the evaluation only for later ones, unless this is the last.
    if (ready_q || judged_q && step_q && !partial) begin
      left_q      <= left_d;
      some_left_q <= left_d != '0;
    end
    if (turn) begin
      chain_q    <= head;
      has_data_q <= go_read;
    end
    judged_q     <= turn;
    desc_q       <= b_desc_i;
    partial_q    <= partial;
    fits_q       <= fits;
    drop_ready_q <= plan_q[1];  // want_q is to be dropped
    // want_q: bytes left for this descriptor and later ones of the chain, or to be dropped
    if (judged_q || plan_q[1] || desc_take) want_q <= want;
    if (turn) index_q <= head.first;
    else if (re_q) index_q <= index_q + 1'b1;
    merged_o <= chains_q + 16'(popped_q);
  end

  // ---------------------------------------------------------------- pieces
  // The lines of a piece are computed twice, with the length of the descriptor and with what is wanted of it or dropped; the selection
  // comes last.
  localparam int unsigned Wanted = 0, Whole = 1;
  typedef struct packed {
    logic              single;
    logic [OffW:0]     count;
    logic [OffW:0]     till;
    logic [WholeW-1:0] whole;
  } lines_t;
  lines_t [1:0] lines;
  logic [1:0][31:0] lines_len;
  logic [1:0][OffW-1:0] offs;
  lines_t lines_in;
  piece_t piece_in;
  logic piece_take, part;
  logic [AddrW-1:0] desc_addr;

  // The chain continues in its next descriptor, if it has several. Compared in two halves in parallel.
  assign part = desc_q.len[31:16] < want_q[31:16] || desc_q.len[31:16] == want_q[31:16] && desc_q.len[15:0] < want_q[15:0];
  assign desc_take = got_q;  // and so plan_q is PlDesc
  assign desc_end = desc_take && !part;
  assign drop_take = plan_q == PlDrop && piece_room_q && drop_ready_q;
  assign piece_take = desc_take || drop_take || lone_q;
  assign desc_addr = plan_q[0] ? desc_q.addr : b_desc_i.addr;  // of a chain of one
  assign lines_len = {desc_q.len, want_q};
  assign offs = {desc_q.addr[OffW-1:0], plan_q[1] ? OffW'(0) : desc_addr[OffW-1:0]};
  for (genvar i = 0; i < 2; i++) begin : gen_lines
    logic [  OffW:0] sum;
    logic [OffW-1:0] off;
    assign off = offs[i];
    logic aligned, scrap, lineful;  // less than a line; at least one line and less than two
    assign sum = (OffW + 1)'(lines_len[i][OffW-1:0]) + (OffW + 1)'(off);
    // Whether the sum is a multiple of a line, without a carry chain: a bit of the sum is determined by the lower bits.
    assign aligned = (lines_len[i][OffW-1:0] ^ off) == OffW'((lines_len[i][OffW-1:0] | off) << 1);
    assign scrap = lines_len[i][31:OffW] == '0;
    assign lineful = lines_len[i][31:OffW] == WholeW'(1);
    assign lines[i].whole = lines_len[i][31:OffW];
    assign lines[i].till = sum;
    assign lines[i].single = scrap && (!sum[OffW] || aligned) || lineful && lines_len[i][OffW-1:0] == '0 && off == '0;
    // Up to the end of the line both are the same.
    assign lines[i].count = (scrap && !sum[OffW]) ? (OffW + 1)'(lines_len[i][OffW-1:0]) : (OffW + 1)'(StrbW) - (OffW + 1)'(off);
  end
  // A late signal selects.
  assign lines_in = (part && plan_q[0]) ? lines[Whole] : lines[Wanted];
  assign piece_in = '{
          drop: plan_q[1],
          chain_end: !plan_q[1] && !(part && plan_q[0]),
          ans_end: plan_q[1] || !(part && plan_q[0]) && fits_q,
          queue: queue_q,
          single: lines[Wanted].single || lines[Whole].single && plan_q[0],  // the shorter one counts
          count: lines_in.count,
          till: lines_in.till,
          whole: lines_in.whole,
          line: desc_addr[AddrW-1:OffW],
          off: offs[Wanted]
      };

  piece_t pc;
  logic pc_valid, pc_pop, pieces_hidden;
  via_vq_fifo #(
    .T    (piece_t),
    .Depth(Pieces),
    .Ram  (1'b1),
    .Late (1'b1)      // the length of a descriptor comes from a memory
  ) u_pieces (
    .clk_i,
    .rst_ni,
    .s_i      (piece_in),
    .s_valid_i(piece_take),
    .s_ready_o(),
    .m_o      (pc),
    .m_valid_o(pc_valid),
    .m_ready_i(pc_pop),
    .count_o  (pieces_held),
    .hidden_o (pieces_hidden)
  );

  used_t used, used_in;
  logic used_valid, used_pop, chains_hidden;
  assign used_in = '{
          has_data: has_data_q,
          whole: !partial,
          more: merge_q && !fits,
          queue: queue_q,
          id: chain_q.id,
          slots: chain_q.slots,
          len: take
      };
  via_vq_fifo #(
    .T    (used_t),
    .Depth(Chains),
    .Ram  (1'b1)
  ) u_chains (
    .clk_i,
    .rst_ni,
    .s_i      (used_in),
    .s_valid_i(popped_q),
    .s_ready_o(),
    .m_o      (used),
    .m_valid_o(used_valid),
    .m_ready_i(used_pop),
    .count_o  (chains_held),
    .hidden_o (chains_hidden)
  );

  // ---------------------------------------------------------------- cut the stream at the boundaries of the buffers
  // carry_q is the beat of the stream whose first bytes, up to and including byte `at_q`, are used: none is left if that is the last one.
  // `y` is the next beat.
  localparam logic [OffW-1:0] AtEnd = '1;
  logic y_valid, fire, need_y, piece_end, ans_end, pc_begun_q, rest_last_q, w_room_q;
  logic [OffW-1:0] at_q, off, stop;
  logic [OffW:0] count, reach;
  logic [WholeW:0] rest_q, rest_less;
  logic rest_one, aligned, more, less;
  logic [DataW-1:0] carry_q, y;
  logic [LineW-1:0] line_q, line;

  via_skid #(
    .T(logic [DataW-1:0])
  ) u_wr (
    .clk_i,
    .rst_ni,
    .s_i      (wr_i.data),
    .s_valid_i(wr_valid_i),
    .s_ready_o(wr_ready_o),
    .m_o      (y),
    .m_valid_o(y_valid),
    .m_ready_i(fire && need_y)
  );

  assign off = pc_begun_q ? '0 : pc.off;
  // Lines after the first one: `whole`, one more, or one less.
  assign aligned = pc.till[OffW-1:0] == '0;
  assign more = pc.till[OffW] && !aligned;
  assign less = !pc.till[OffW] && aligned;
  // Lines after this one: their number minus one, and whether there is exactly one.
  assign rest_less = (pc_begun_q ? rest_q : (WholeW + 1)'(pc.whole)) + ((!pc_begun_q && more) ? '0 : {{WholeW{1'b1}}, pc_begun_q || !less});
  always_comb begin
    rest_one = pc.whole == WholeW'(1);
    if (more) rest_one = pc.whole == '0;
    if (less) rest_one = pc.whole == WholeW'(2);
    if (pc_begun_q) rest_one = rest_q == (WholeW + 1)'(1);
  end
  assign piece_end = pc_begun_q ? rest_last_q : pc.single;
  assign stop = piece_end ? pc.till[OffW-1:0] - 1'b1 : AtEnd;  // last byte in this line
  assign count = !pc_begun_q ? pc.count : (rest_last_q && !aligned) ? {1'b0, pc.till[OffW-1:0]} : (OffW + 1)'(StrbW);
  assign reach = (OffW + 1)'(at_q) + count;
  assign need_y = reach[OffW];
  assign fire = pc_valid && (!need_y || y_valid) && (pc.drop || w_room_q);
  assign ans_end = piece_end && pc.ans_end;
  assign pc_pop = fire && piece_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      at_q       <= AtEnd;
      pc_begun_q <= 1'b0;
    end else if (fire) begin
      at_q       <= ans_end ? AtEnd : reach[OffW-1:0];
      pc_begun_q <= !piece_end;
    end
  end
  always_ff @(posedge clk_i) begin
    if (fire && need_y) carry_q <= y;
    if (fire) begin
      rest_q      <= rest_less;
      rest_last_q <= rest_one;
      line_q      <= line + 1'b1;
    end
  end

  // ---------------------------------------------------------------- beats and bursts
  localparam int unsigned LineLog2 = $clog2(BurstBytes / StrbW);
  typedef struct packed {
    logic             last;
    logic [StrbW-1:0] strb;
    logic [DataW-1:0] data;
  } beat_t;
  typedef struct packed {
    logic              chain_end;  // last of its chain
    logic [QueueW-1:0] queue;
    logic [7:0]        len;
    logic [LineW-1:0]  line;
  } burst_t;
  beat_t beat_in, beat;
  burst_t burst_in, burst;
  logic mixed_valid_q, mixed_last_q, beat_valid, beat_out, burst_valid, burst_out, flight_room, emit, burst_last, run_any_q, beats_hidden;
  logic [DataW-1:0] mixed_q;
  logic [OffW-1:0] by_q, mixed_off_q, mixed_stop_q;
  logic [7:0] run_q;  // beats of the burst so far
  logic [LineW-1:0] start_q, start;
  logic [BeatsW-1:0] beats_held;
  logic burst_put;

  assign emit = fire && !pc.drop;
  assign line = pc_begun_q ? line_q : pc.line;
  assign start = run_any_q ? start_q : line;
  assign burst_last = piece_end || &line[LineLog2-1:0];

  if (AtHand) begin : gen_ahead
    // Its length is known with its first beat: up to the end of the piece, or the maximum. `behind`: lines of the piece after this one, if
    // they are few.
    logic far, ends;
    logic [LineLog2+1:0] behind;
    logic [LineLog2-1:0] room;
    assign room = ~line[LineLog2-1:0];
    assign behind = pc_begun_q ? (LineLog2 + 2)'(rest_q[LineLog2:0]) : (LineLog2 + 2)'(pc.whole[LineLog2:0]) + (LineLog2 + 2)'(more) - (LineLog2 + 2)'(less);
    assign far = pc_begun_q ? |rest_q[WholeW:LineLog2+1] : |pc.whole[WholeW-1:LineLog2+1];
    assign ends = !far && behind <= (LineLog2 + 2)'(room);
    assign burst_put = emit && !run_any_q;
    assign burst_in = '{chain_end: ends && pc.chain_end, queue: pc.queue, len: ends ? 8'(behind) : 8'(room), line: line};
  end else begin : gen_behind
    assign burst_put = emit && burst_last;
    assign burst_in  = '{chain_end: piece_end && pc.chain_end, queue: pc.queue, len: run_q, line: start};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      mixed_valid_q <= 1'b0;
      run_q         <= '0;
      run_any_q     <= 1'b0;
      w_room_q      <= 1'b1;
    end else begin
      mixed_valid_q <= emit;
      if (emit) run_q <= burst_last ? '0 : run_q + 1'b1;
      if (emit) run_any_q <= !burst_last;
      w_room_q <= beats_held <= BeatsW'(Beats - BeatsAhead);
    end
  end

  // Byte j of the stream goes to byte j + off - at of the line, modulo a beat, whichever of the two beats it is in: first the two are
  // merged, in the next cycle the result is rotated.
  logic [DataW-1:0] mix;
  logic [StrbW-1:0] of_y;
  assign of_y = {StrbW{1'b1}} >> ~at_q;
  for (genvar i = 0; i < StrbW; i++) begin : gen_mix
    assign mix[8*i+:8] = of_y[i] ? y[8*i+:8] : carry_q[8*i+:8];
  end
  always_ff @(posedge clk_i) begin
    mixed_q      <= mix;
    mixed_last_q <= burst_last;
    mixed_off_q  <= off;
    mixed_stop_q <= stop;
    by_q         <= off + ~at_q;
    if (emit) start_q <= start;
  end

  always_comb begin
    beat_in.last = mixed_last_q;
    beat_in.data = rotated(mixed_q, by_q);
    beat_in.strb = {StrbW{1'b1}} << mixed_off_q & {StrbW{1'b1}} >> ~mixed_stop_q;
  end

  // There are never more bursts than beats, so room for a beat implies room for its burst.
  via_vq_fifo #(
    .T    (burst_t),
    .Depth(Beats)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .s_i      (burst_in),
    .s_valid_i(burst_put),
    .s_ready_o(),
    .m_o      (burst),
    .m_valid_o(burst_valid),
    .m_ready_i(flight_room && m_aw_ready_i),
    .count_o  (),
    .hidden_o ()
  );

  via_vq_fifo #(
    .T    (beat_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .s_i      (beat_in),
    .s_valid_i(mixed_valid_q),
    .s_ready_o(),
    .m_o      (beat),
    .m_valid_o(beat_valid),
    .m_ready_i(beat_out),
    .count_o  (beats_held),
    .hidden_o (beats_hidden)
  );

  always_comb begin
    m_aw_o       = '0;
    m_aw_o.burst = BurstIncr;
    m_aw_o.size  = 3'(BeatLog2);
    m_aw_o.len   = burst.len;
    m_aw_o.addr  = {burst.line, OffW'(0)};
  end
  assign m_aw_valid_o = burst_valid && flight_room;
  assign burst_out = m_aw_valid_o && m_aw_ready_i;

  // W follows its AW.
  localparam int unsigned SentW = $clog2(Beats + 3);
  logic [SentW-1:0] sent_q;  // addresses sent whose data is not
  logic w_last, sent_any_q;
  assign m_w_o = '{last: beat.last, strb: beat.strb, data: beat.data};
  assign m_w_valid_o = beat_valid && sent_any_q;
  assign beat_out = m_w_valid_o && m_w_ready_i;
  assign w_last = beat_out && beat.last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sent_q     <= '0;
      sent_any_q <= 1'b0;
    end else if (burst_out != w_last) begin
      sent_q     <= burst_out ? sent_q + 1'b1 : sent_q - 1'b1;
      sent_any_q <= burst_out || sent_q != SentW'(1);
    end
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
  always_ff @(posedge clk_i) begin
    if (!rst_ni) err_valid_o <= 1'b0;
    else err_valid_o <= m_b_valid_i && in_flight && m_b_i.resp != RespOkay;
  end
  always_ff @(posedge clk_i) if (m_b_valid_i) err_queue_o <= flight;

  // ---------------------------------------------------------------- used chains
  logic [OwnW-1:0] ended_q;  // chains all of whose bursts the port has accepted, not passed on
  logic ended_any_q, chain_out, chain_in;

  assign chain_in = burst_out && burst.chain_end;
  assign done_near_o = used_valid;
  assign done_valid_o = used_valid && (!used.has_data || ended_any_q);
  assign used_pop = done_valid_o && done_ready_i;
  assign chain_out = used_pop && used.has_data;
  assign done_queue_o = used.queue;
  assign done_id_o = used.id;
  assign done_slots_o = used.slots;
  assign done_len_o = used.len;
  assign done_whole_o = used.whole;
  assign done_more_o = used.more;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ended_q     <= '0;
      ended_any_q <= 1'b0;
    end else if (chain_in != chain_out) begin
      ended_q     <= chain_in ? ended_q + 1'b1 : ended_q - 1'b1;
      ended_any_q <= chain_in || ended_q != OwnW'(1);
    end
  end

  // Chains not passed on, and bursts without a response from host memory.
  localparam int unsigned WindowW = $clog2(Window + 1);
  logic [NumQ-1:0][OwnW-1:0] held_q;
  logic [NumQ-1:0][WindowW-1:0] flights_q;
  logic [NumQ-1:0] quiet_d;
  for (genvar q = 0; q < NumQ; q++) begin : gen_held
    logic passed, leaves, lands;
    assign passed = used_pop && used.queue == QueueW'(q);
    assign leaves = burst_out && burst.queue == QueueW'(q);
    assign lands = m_b_valid_i && in_flight && flight == QueueW'(q);
    // A response that waits for the plan counts: either it does not wait long, or its queue is not under reset.
    assign quiet_d[q] = held_q[q] == '0 && flights_q[q] == '0 && !pop_q[q] && !(rsp_here && mine[q]);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        held_q[q]    <= '0;
        flights_q[q] <= '0;
      end else begin
        if (pop_q[q] != passed) held_q[q] <= pop_q[q] ? held_q[q] + 1'b1 : held_q[q] - 1'b1;
        if (leaves != lands) flights_q[q] <= leaves ? flights_q[q] + 1'b1 : flights_q[q] - 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) quiet_o <= '1;
    else quiet_o <= quiet_d;
  end

  logic [3:0] moves_q;
  plan_e was_plan_q;
  logic [NumQ-1:0] was_quiet_q;
  always_ff @(posedge clk_i) begin
    was_plan_q <= plan_q;
    was_quiet_q <= quiet_o;
    moves_q <= {
      |{rsp_valid_i && ready_q, go_empty, go_lone, taken, popped_q, over_q, got_q, lone_q, read_q, re_q, plan_q[1] && !drop_ready_q},
      |{desc_end, take_d, re_d, piece_take, plan_q != was_plan_q},
      |{merged_valid_o, pieces_hidden, chains_hidden, beats_hidden, fire, wr_valid_i && wr_ready_o, mixed_valid_q, m_aw_valid_o, m_w_valid_o, m_b_valid_i, err_valid_o, used_pop},
      quiet_o != was_quiet_q
    };
  end
  assign still_o = moves_q == '0;
  assign idle_o = plan_q == PlChain && ready_q && !begun_q && !popped_q && !taken_q && pieces_held == '0 && chains_held == '0 && beats_held == '0 && !pc_valid &&
      !used_valid && !beat_valid && !mixed_valid_q && wr_ready_o && !in_flight;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(AtHand && run_any_q && pc_valid && need_y && !y_valid))
      else $error("data that is at hand does not follow");
    end
  end
`endif

endmodule
