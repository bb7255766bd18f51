// SPDX-License-Identifier: Apache-2.0
//
// Last stage of via_vq_fetch: resolves indirect tables, checks every descriptor and enters whole chains into the store.
//
// Throughput: one descriptor a cycle, and one cycle more for each table. Latency: a piece without a table goes to the store in the cycle
// after it came, an entry of a table two cycles after its beat; a table is requested in the cycle after it came. Outputs come from
// registers.
// Pieces wait for tables; 128 beats of tables are in flight, in bursts of at most 512 bytes that cross no 4 KiB. Order: in order. A table
// is read from its first entry to its last; if `next` does not name the following entry, the walk continues with single reads.
// Checks (misuse of the driver): `next` inside the table, no nesting, readable before writable, length not zero, buffer inside the address
// space, at most 4 GiB and not more descriptors than the store holds for a queue. An error is reported two cycles after it was found.
// A chain without room flips the queue's epoch (`back_o`: fetch it again) and parks the queue until there is room.
// Pieces of an old epoch, or of a queue that is off, are dropped.

module via_vq_fetch_table
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2  // queues
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  vq_feat_t                  feat_i,              // negotiated features
  input  logic      [     NumQ-1:0] on_i,                // level: the queue is in use
  output logic      [     NumQ-1:0] epoch_f_o,           // level: current epoch of the queue's chains
  output logic      [     NumQ-1:0] park_o,              // level: the queue waits for room in the store
  output logic      [     NumQ-1:0] back_o,              // pulse: restart after the last chain in the store
  output logic      [     NumQ-1:0] busy_o,              // level: pieces of the queue are here
  // pieces; they stay at the port until they are used up
  input  logic      [     NumQ-1:0] piece_i,             // pulse: a piece was offered in the previous cycle
  input  vq_elem_t                  s_i,                 // piece
  input  logic                      s_valid_i,
  output logic                      s_ready_o,
  // the tables they refer to, in the same order
  input  vq_table_t                 ask_i,               // table to request
  input  logic                      ask_valid_i,
  output logic                      ask_ready_o,
  output axi_ax_t                   m_ar_o,
  output logic                      m_ar_valid_o,
  input  logic                      m_ar_ready_i,
  input  axi_r_t                    m_r_i,
  input  logic                      m_r_valid_i,
  output logic                      one_req_o,           // level, held until one_done_i: read a line
  output logic      [         57:0] one_line_o,          // with it: address bits 63:6
  input  logic                      one_done_i,          // pulse: the line is here
  input  logic                      one_err_i,           // with one_done_i: the read failed
  input  logic      [    DataW-1:0] one_data_i,          // with one_done_i: the line
  // store
  input  logic      [  QSizeLog2:0] free_i      [NumQ],  // free descriptors of the queue in the store
  output logic                      w_valid_o,           // pulse: write a descriptor
  output logic      [   QueueW-1:0] w_queue_o,           // its queue
  output logic      [QSizeLog2-1:0] w_offset_o,          // its number in the chain
  output vq_desc_t                  w_desc_o,            // the descriptor
  output logic                      w_commit_o,          // with w_valid_o: it is the last, the chain is complete
  output vq_chain_t                 w_chain_o,           // with w_commit_o: the chain
  output logic      [  QSizeLog2:0] w_slots_o,           // with w_commit_o: its ring slots, also for split
  output logic                      err_valid_o,         // pulse: a queue has failed
  output vq_err_e                   err_o,               // with err_valid_o: why
  output logic      [   QueueW-1:0] err_queue_o,         // with err_valid_o: which queue
  output logic                      cnt_o,               // pulse: a burst of a table is requested
  output logic                      still_o              // level: nothing moves unless an input changes
);

  localparam bit NumQOk = param_in("via_vq_fetch_table NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned Beats = 128;
  localparam int unsigned BurstMax = 8;

  typedef struct packed {
    logic [6:0]  more;   // beats after the next burst
    logic [57:0] line;   // address bits 63:6
    logic [2:0]  limit;  // most beats of the next burst, minus one
    logic        ends;   // it is the last
  } table_t;

  typedef struct packed {
    logic             err;
    logic [3:0]       goes;    // per entry, for a ring that is not packed: NEXT is set and the next index is one that a table may have
    logic [3:0]       writes;  // per entry: the buffer is writable
    logic [DataW-1:0] data;
  } line_t;

  logic packed_q;
  logic [NumQ-1:0] ok_q;  // on, and no error was found here
  always_ff @(posedge clk_i) packed_q <= feat_i.packed_ring;

  // ---------------------------------------------------------------- pieces
  // A piece with a table is held in head_q until it is used up; one without is processed as it arrives.
  vq_elem_t head_q;
  logic [NumQ-1:0] s_oh, head_oh_q;  // its queue
  logic [8:0] s_entries;
  logic s_table, passes, head_valid_q, head_load, head_pop;

  assign s_ready_o = !head_valid_q;
  assign s_entries = s_i.len[12:4];
  assign s_table = s_i.indirect && s_i.err == VqErrNone;
  assign passes = s_valid_i && !head_valid_q && !s_table;
  assign head_load = s_valid_i && !head_valid_q && s_table;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) head_valid_q <= 1'b0;
    else head_valid_q <= head_valid_q ? !head_pop : head_load;
  end
  always_ff @(posedge clk_i) begin
    if (!head_valid_q) begin
      head_q    <= s_i;
      head_oh_q <= s_oh;
    end
  end

  // ---------------------------------------------------------------- requests for tables
  typedef enum logic [1:0] {
    CutReady,  // `limit` and `ends` are those of the next burst
    CutStep,   // advance past the burst that was accepted
    CutFind    // compute the next one
  } cut_e;

  cut_e cut_q;
  table_t s_ask, ask_q, ask;
  logic ask_valid_q, src_valid, burst_go, burst_go_q;
  logic [3:0] s_beats;
  logic [2:0] len, len_q;  // beats minus one
  logic [7:0] credit_q;
  logic credit_ok_q, beat_pop, beat_pop_q, ar_valid_q;
  axi_ax_t ar, ar_q;

  // A burst ends before the next page, that is before line 0 of 64. A burst other than the table's last is as long as possible.
  function automatic logic [2:0] farthest(input logic [5:0] line);
    return (&line[5:3]) ? ~line[2:0] : '1;
  endfunction

  // Entries that the first burst may cover: 4 a beat, minus those before the start of the table.
  assign s_beats = (ask_i.addr[1:0] != '0) ? 4'(farthest(ask_i.addr[7:2])) : (&ask_i.addr[7:5]) ? 4'd8 - 4'(ask_i.addr[4:2]) : 4'd8;
  always_comb begin
    s_ask.more  = 7'((10'(ask_i.addr[1:0]) + 10'(ask_i.entries) - 10'd1) >> 2);
    s_ask.line  = ask_i.addr[59:2];
    s_ask.limit = farthest(ask_i.addr[7:2]);
    s_ask.ends  = ask_i.entries <= 9'({s_beats, -ask_i.addr[1:0]});
  end
  assign ask_ready_o = !ask_valid_q;

  // The first burst of a table is issued as the table arrives; the next ones are computed in two steps. The flag is two bursts old, so it
  // leaves room for three.
  assign ask = ask_valid_q ? ask_q : s_ask;
  assign src_valid = ask_valid_q ? cut_q == CutReady : ask_valid_i;
  assign len = ask.ends ? ask.more[2:0] : ask.limit;
  assign burst_go = src_valid && credit_ok_q && (!ar_valid_q || m_ar_ready_i);
  always_comb begin
    ar       = '0;
    ar.burst = BurstIncr;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(len);
    ar.addr  = {ask.line, 6'd0};
  end
  assign cnt_o = burst_go_q;
  assign m_ar_o = ar_q;
  assign m_ar_valid_o = ar_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q  <= 1'b0;
      ask_valid_q <= 1'b0;
      cut_q       <= CutReady;
      beat_pop_q  <= 1'b0;
      burst_go_q  <= 1'b0;
      len_q       <= '0;
      credit_q    <= 8'(Beats);
      credit_ok_q <= 1'b1;
    end else begin
      if (burst_go) ar_valid_q <= 1'b1;
      else if (m_ar_ready_i) ar_valid_q <= 1'b0;
      ask_valid_q <= (ask_valid_q || ask_valid_i) && !(burst_go && ask.ends);
      if (burst_go) cut_q <= ask.ends ? CutReady : CutStep;
      else cut_q <= (cut_q == CutStep) ? CutFind : CutReady;
      beat_pop_q  <= beat_pop;
      burst_go_q  <= burst_go;
      len_q       <= burst_go ? len : '0;
      credit_q    <= credit_q - 8'(len_q) - 8'(burst_go_q) + 8'(beat_pop_q);
      credit_ok_q <= credit_q >= 8'(3 * BurstMax);
    end
  end
  always_ff @(posedge clk_i) begin
    if (burst_go) ar_q <= ar;
    if (!ask_valid_q) ask_q <= s_ask;
    else if (cut_q == CutStep) begin
      ask_q.more <= ask_q.more - 7'(ask_q.limit) - 7'd1;
      ask_q.line <= {ask_q.line[57:3] + 55'd1, (&ask_q.line[5:3]) ? 3'd0 : ask_q.line[2:0]};
    end else if (cut_q == CutFind) begin
      ask_q.limit <= farthest(ask_q.line[5:0]);
      ask_q.ends  <= ask_q.more <= 7'(farthest(ask_q.line[5:0]));
    end
  end

  line_t line_in, line;
  logic line_valid, line_hidden, unused_ready;
  always_comb begin
    line_in.err  = m_r_i.resp != RespOkay;
    line_in.data = m_r_i.data;
    for (int unsigned i = 0; i < 4; i++) begin
      line_in.goes[i]   = m_r_i.data[128*i+96] && m_r_i.data[128*i+121+:7] == '0;
      line_in.writes[i] = packed_q ? m_r_i.data[128*i+113] : m_r_i.data[128*i+97];
    end
  end
  // There is always room: bursts are requested with credits.
  via_vq_fifo #(
    .T    (line_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .s_i      (line_in),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(unused_ready),
    .m_o      (line),
    .m_valid_o(line_valid),
    .m_ready_i(beat_pop),
    .count_o  (),
    .hidden_o (line_hidden)
  );

  // ---------------------------------------------------------------- the current descriptor
  typedef enum logic [2:0] {
    StStream,  // a direct descriptor, or the table's entries as they arrive
    StDrain,   // drop the rest of the table's beats
    StPlace,   // an entry out of sequence: its position
    StLine,    // its line
    StRead,    // read the line
    StEntry    // use the entry
  } state_e;

  state_e state_q;
  logic jump_q;  // after draining: read entry_q
  logic [8:0] entry_q;  // index in the table
  logic [8:0] after_q;  // the next index, as long as the entries come in sequence
  logic [8:0] rest_q;  // entries that may still come, including the current one
  logic one_q;  // it is 1
  logic [9:0] place_q;  // position of the current entry, from the start of the table's first line
  logic [6:0] beats_q;  // of the table, not popped
  logic last_beat_q;  // it is 1
  logic [57:0] one_line_q;
  logic [127:0] read_q;
  logic read_err_q, read_write_q;

  logic item_t, item, item_last, live, h_live, src_err, t_err, follows, t_next, t_flag, t_nested, t_head;
  logic [(1<<QueueW)-1:0] s_lives, s_rooms;
  logic h_roomy, s_live, s_roomy, fits, full_q, first_q, ends, ends_early, streams, drains, pops_early, pops_ended, same;
  logic [127:0] raw;
  logic [3:0] in_turn;
  vq_err_e src_code;
  logic [NumQ-1:0] oh, s_match, h_match, lacks, epoch_q, room_for_q;
  vq_elem_t el;
  vq_desc_t desc;

  assign item_t = streams || state_q == StEntry;
  assign item = head_valid_q ? item_t : passes;
  assign el = head_valid_q ? head_q : s_i;

  assign raw = (state_q == StEntry) ? read_q : line.data[128*place_q[1:0]+:128];
  // Packed: all entries of the table belong to the chain; of the flags only WRITE counts.
  assign t_flag = raw[96];
  assign t_next = packed_q ? !one_q : t_flag;
  assign t_nested = !packed_q && raw[98];
  assign t_head = !packed_q && raw[127:112] >= 16'(head_q.len[12:4]);
  assign follows = packed_q || raw[127:112] == 16'(after_q);

  assign item_last = head_valid_q ? !t_next : el.last;
  assign t_err = (state_q == StEntry) ? read_err_q : line.err;
  assign src_code = head_valid_q ? VqErrRead : el.err;

  always_comb begin
    desc.write = head_valid_q ? (state_q == StEntry ? read_write_q : line.writes[place_q[1:0]]) : s_i.write;
    desc.last  = item_last;
    desc.len   = head_valid_q ? raw[95:64] : el.len;
    desc.addr  = head_valid_q ? raw[63:0] : el.addr;
  end

  // State of its queue: alive, with room for one more descriptor; for the first waiting piece, and for the one arriving.
  for (genvar i = 0; i < NumQ; i++) begin : gen_match
    assign s_oh[i] = s_i.queue == QueueW'(i);
    assign s_match[i] = s_oh[i] && ok_q[i] && epoch_q[i] == s_i.epoch_f;
    assign h_match[i] = head_oh_q[i] && ok_q[i] && epoch_q[i] == head_q.epoch_f;
  end
  // Of the arriving piece, selected by its queue number: fewer levels than by the queue's bit.
  always_comb begin
    s_lives = '0;
    for (int unsigned i = 0; i < NumQ; i++) s_lives[i] = ok_q[i] && epoch_q[i] == s_i.epoch_f;
    s_rooms = s_lives & (1 << QueueW)'(room_for_q);
  end
  assign s_live = s_lives[s_i.queue];
  assign s_roomy = s_rooms[s_i.queue];
  assign h_live = |h_match;
  assign h_roomy = |(head_oh_q & room_for_q);
  assign oh = head_valid_q ? head_oh_q : s_oh;
  assign src_err = head_valid_q ? t_err : s_i.err != VqErrNone;
  assign fits = head_valid_q ? item_t && !t_err && |(h_match & room_for_q) : passes && s_i.err == VqErrNone && s_roomy;
  // No error so far, but no room.
  assign lacks = head_valid_q ? h_match & ~room_for_q & {NumQ{item_t && !t_err && !full_q}} :
                                s_match & ~room_for_q & {NumQ{passes && s_i.err == VqErrNone && !full_q}};
  assign live = head_valid_q ? h_live : s_live;

  // ---------------------------------------------------------------- the chain so far
  // The descriptor to write is held in registers, with the sums up to it, and so are its errors, which take effect a cycle later. Until
  // then the walk continues as if there were none; that is harmless, as nothing is read for it and nothing more of the queue is committed.
  logic [NumQ-1:0] made_oh_q;
  logic [QSizeLog2:0] n, n1, count_q, count1_q, nread_q, nwrite_q;
  logic writes_q, valid_q, commit_q, checked_q, fault, nested, order;
  logic src_q, nested_q, head_bad_q, loop_q, size_bad_q, end_bad_q, bad_length, order_q, full_bad_q, early_q;
  vq_err_e src_code_q, fault_code;
  logic [QSizeLog2-1:0] offset_q;
  logic [8:0] made_rest_q;
  logic made_table_q;
  logic [32:0] rlen_q, wlen_q;
  logic [31:0] total_q;  // minus one, so that a carry means more than 4 GiB
  logic [32:0] low_end, total;
  logic high_end;
  vq_desc_t desc_q;
  vq_elem_t made_q;

  assign n = first_q ? '0 : count_q;
  assign n1 = first_q ? (QSizeLog2 + 1)'(1) : count1_q;
  assign total = (first_q ? '1 : {1'b0, total_q}) + 33'(desc.len);
  // The buffer may end exactly at the end of the address space. A sum of 0 is detected without adding: each bit equals the carry from the
  // one below.
  assign low_end = 33'(desc.addr[31:0]) + 33'(desc.len);
  assign high_end = &desc.addr[63:32] && (desc.addr[31:0] ^ desc.len) != ((desc.addr[31:0] | desc.len) << 1);
  assign same = head_valid_q ? head_q.queue == made_q.queue : s_i.queue == made_q.queue;
  assign nested = head_valid_q && t_nested;
  assign order = !desc.write && writes_q && !first_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      commit_q <= 1'b0;
      checked_q <= 1'b0;
      full_q <= 1'b0;
      first_q <= 1'b1;
    end else begin
      valid_q   <= fits;
      commit_q  <= fits && item_last && !nested && !order && !(fault && same);
      checked_q <= fits || item && live && (src_err || full_q);
      // The chain ends with its last piece, whatever became of it.
      if ((head_pop || passes) && el.last) begin
        first_q <= 1'b1;
        full_q  <= 1'b0;
      end else if (item) begin
        first_q <= 1'b0;
        full_q  <= n == (QSizeLog2 + 1)'(QSizeMax - 1);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (item) begin
      made_q       <= el;
      made_oh_q    <= oh;
      made_table_q <= head_valid_q;
      made_rest_q  <= rest_q;
      desc_q       <= desc;
      offset_q     <= n[QSizeLog2-1:0];
      count_q      <= n1;
      count1_q     <= n1 + 1'b1;
      writes_q     <= desc.write || writes_q && !first_q;
      nread_q      <= (first_q ? '0 : nread_q) + (QSizeLog2 + 1)'(!desc.write);
      nwrite_q     <= (first_q ? '0 : nwrite_q) + (QSizeLog2 + 1)'(desc.write);
      rlen_q       <= (first_q ? '0 : rlen_q) + (desc.write ? '0 : 33'(desc.len));
      wlen_q       <= (first_q ? '0 : wlen_q) + (desc.write ? 33'(desc.len) : '0);
      total_q      <= total[31:0];
      src_q        <= src_err;
      src_code_q   <= src_code;
      nested_q     <= nested;
      head_bad_q   <= head_valid_q && t_next && t_head;
      loop_q       <= head_valid_q && t_next && one_q;
      size_bad_q   <= desc.len == '0 || total[32];
      end_bad_q    <= low_end[32] && high_end;
      order_q      <= order;
      full_bad_q   <= full_q;
      early_q      <= src_err || nested || order || full_q || head_valid_q && t_next && (t_head || one_q);
    end
  end

  assign bad_length = size_bad_q || end_bad_q;
  assign w_valid_o  = valid_q;
  assign w_queue_o  = made_q.queue;
  assign w_offset_o = offset_q;
  assign w_desc_o   = desc_q;
  assign w_commit_o = commit_q && !bad_length;
  assign w_slots_o  = made_q.slots;
  always_comb begin
    w_chain_o        = '0;  // `first` is filled in by the store
    w_chain_o.id     = made_q.id;
    w_chain_o.slots  = packed_q ? 16'(made_q.slots) : 16'd1;
    w_chain_o.nread  = nread_q;
    w_chain_o.nwrite = nwrite_q;
    w_chain_o.rlen   = rlen_q[31:0] | {32{rlen_q[32]}};
    w_chain_o.wlen   = wlen_q[31:0] | {32{wlen_q[32]}};
  end

  always_comb begin
    fault_code = VqErrNone;
    if (src_q) fault_code = src_code_q;
    else if (nested_q) fault_code = VqErrIndirect;
    else if (head_bad_q) fault_code = VqErrHead;
    else if (loop_q) fault_code = VqErrLoop;
    else if (bad_length) fault_code = VqErrLen;
    else if (order_q) fault_code = VqErrOrder;
    else if (full_bad_q) fault_code = VqErrLoop;
  end
  assign fault = checked_q && (early_q || bad_length);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) err_valid_o <= 1'b0;
    else err_valid_o <= fault;
  end
  always_ff @(posedge clk_i) begin
    err_o       <= fault_code;
    err_queue_o <= made_q.queue;
  end

  // ---------------------------------------------------------------- steps
  // `ends`: no more of this table is needed. Its last entry always ends it: a NEXT flag there is an error.
  assign ends_early = !h_live || !t_err && !full_q && !h_roomy || one_q;
  assign ends = ends_early || !packed_q && !t_flag;
  assign streams = head_valid_q && state_q == StStream && line_valid;
  assign drains = state_q == StDrain && line_valid;
  // Evaluated for each entry of the line in parallel, then selected.
  always_comb begin
    for (int unsigned i = 0; i < 4; i++) in_turn[i] = packed_q || line.goes[i] && line.data[128*i+112+:9] == after_q;
  end
  assign beat_pop   = drains || streams && (ends_early || &place_q[1:0] || !in_turn[place_q[1:0]]);
  assign pops_early = drains && last_beat_q && !jump_q || state_q == StLine && !h_live;
  assign pops_ended = streams && last_beat_q || state_q == StEntry;
  assign head_pop   = head_valid_q && (pops_early || pops_ended && ends);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StStream;
    end else begin
      unique case (state_q)
        StStream: begin
          if (item_t) begin
            if (ends && !last_beat_q) state_q <= StDrain;
            else if (!ends && !follows) state_q <= last_beat_q ? StPlace : StDrain;
          end
        end
        StDrain: if (drains && last_beat_q) state_q <= jump_q ? StPlace : StStream;
        StPlace: state_q <= StLine;
        StLine:  state_q <= h_live ? StRead : StStream;
        StRead:  if (one_done_i) state_q <= StEntry;
        default: state_q <= ends ? StStream : StPlace;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (head_load) begin
      after_q     <= 9'd1;
      rest_q      <= s_entries;
      one_q       <= s_entries == 9'd1;
      place_q     <= 10'(s_i.addr[5:4]);
      beats_q     <= 7'((10'(s_i.addr[5:4]) + 10'(s_entries) + 10'd3) >> 2);
      last_beat_q <= s_entries <= 9'd4 && 3'(s_i.addr[5:4]) + s_entries[2:0] <= 3'd4;
    end else begin
      if (item_t) begin
        after_q <= after_q + 9'd1;
        rest_q  <= rest_q - 9'd1;
        one_q   <= rest_q == 9'd2;
      end
      if (state_q == StPlace) place_q <= 10'(entry_q) + 10'(head_q.addr[5:4]);
      else if (item_t) place_q[1:0] <= place_q[1:0] + 2'd1;
      if (beat_pop) begin
        beats_q     <= beats_q - 7'd1;
        last_beat_q <= beats_q == 7'd2;
      end
    end
    if (item_t) begin
      jump_q  <= !ends;
      entry_q <= raw[120:112];
    end
    if (state_q == StLine) one_line_q <= head_q.addr[63:6] + 58'(place_q[9:2]);
    if (one_done_i) begin
      read_q       <= one_data_i[128*place_q[1:0]+:128];
      read_err_q   <= one_err_i;
      // Single entries occur in split rings only.
      read_write_q <= one_data_i[128*place_q[1:0]+97];
    end
  end

  assign one_req_o  = state_q == StRead;
  assign one_line_o = one_line_q;

  // ---------------------------------------------------------------- queues
  logic [QSizeLog2:0] needs;
  logic [9:0] needs_all;
  // Room that the chain needs for certain, or at most: when that is free it is fetched again.
  assign needs_all = 10'(offset_q) + (made_table_q ? 10'(made_rest_q) : 10'd1);
  assign needs = (needs_all > 10'(QSizeMax)) ? (QSizeLog2 + 1)'(QSizeMax) : needs_all[QSizeLog2:0];

  logic [NumQ-1:0] unpark;
  for (genvar i = 0; i < NumQ; i++) begin : gen_queue
    logic back_q, epoch_out_q, park_q, fits_q, bad_q, busy_q, mine, pending, piece_in, out_q;
    logic over_none, over_one, over_count, over_count1;
    logic [QSizeLog2:0] needs_q;
    logic [6:0] pieces_q;

    assign back_o[i] = back_q;
    assign epoch_f_o[i] = epoch_out_q;  // changes together with the effect of back_o, not before
    assign park_o[i] = park_q;
    assign unpark[i] = park_q && fits_q;
    assign busy_o[i] = busy_q;
    assign piece_in = piece_i[i];

    // Whether there is room for the next descriptor, computed a cycle early: after those of the chain being assembled, or committed now,
    // and after the current one.
    assign mine = item && oh[i];
    assign over_none = free_i[i] != '0;
    assign over_one = free_i[i][QSizeLog2:1] != '0;
    assign over_count = free_i[i] > count_q;
    assign over_count1 = free_i[i] > count1_q;
    assign pending = made_oh_q[i] && (commit_q || !first_q);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        epoch_q[i]  <= 1'b0;
        epoch_out_q <= 1'b0;
        back_q      <= 1'b0;
        pieces_q    <= '0;
        busy_q      <= 1'b0;
        out_q       <= 1'b0;
      end else begin
        back_q <= lacks[i];
        epoch_q[i] <= epoch_q[i] ^ lacks[i];
        epoch_out_q <= epoch_q[i];
        // A piece counts until its result was reported.
        out_q <= head_valid_q ? head_pop && head_oh_q[i] : passes && s_oh[i];
        if (piece_in != out_q) begin
          pieces_q <= piece_in ? pieces_q + 7'd1 : pieces_q - 7'd1;
          busy_q   <= piece_in || pieces_q != 7'd1;
        end
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !on_i[i]) begin
        park_q  <= 1'b0;
        bad_q   <= 1'b0;
        ok_q[i] <= 1'b0;
      end else begin
        if (back_q) park_q <= 1'b1;
        else if (unpark[i]) park_q <= 1'b0;
        if (fault && made_oh_q[i]) bad_q <= 1'b1;
        ok_q[i] <= !bad_q && !(fault && made_oh_q[i]);
      end
    end
    always_ff @(posedge clk_i) begin
      if (back_q) needs_q <= needs;
      fits_q <= !back_q && free_i[i] >= needs_q;
      room_for_q[i] <= mine ? (pending ? over_count1 : over_one) : pending ? over_count : over_none;
    end
  end

  logic moves, moves_q;
  assign moves = |{piece_i, m_ar_valid_o, m_r_valid_i, item, beat_pop, head_load, one_done_i, unpark, line_hidden,
                   state_q == StPlace, state_q == StLine, ask_valid_i && !ask_valid_q, ask_valid_q && !ar_valid_q && (credit_ok_q || credit_q >= 8'(3 * BurstMax)),
                   cut_q != CutReady, back_o, epoch_q ^ epoch_f_o, fault, beat_pop_q};
  always_ff @(posedge clk_i) moves_q <= moves;
  assign still_o = !moves && !moves_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!m_r_valid_i || unused_ready)
      else $error("beat without a place");
    end
  end
`endif

endmodule
