// SPDX-License-Identifier: Apache-2.0
//
// Last stage of via_vq_fetch: resolves indirect tables, checks every descriptor and enters whole chains into the store.
//
// Throughput: one descriptor a cycle. Pieces wait for tables, 128 beats of tables in flight, in bursts of at most 512 bytes that cross no
// 4 KiB. Ordering: in order. A table is read from its first entry to its last; where `next` does not name the following entry, the walk goes on
// with single reads. Checks: `next` inside the table, no nesting, readable before writable, length not zero, buffer inside the address space,
// at most 4 GiB and not more descriptors than the store holds for a queue.
// A chain without room flips the queue's epoch (`back_o`: fetch it again) and parks the queue until there is room.
// Pieces of an old epoch, or of a queue that is off, are dropped.

module via_vq_fetch_table
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  vq_feat_t                  feat_i,
  input  logic      [     NumQ-1:0] on_i,
  output logic      [     NumQ-1:0] epoch_f_o,
  output logic      [     NumQ-1:0] park_o,
  output logic      [     NumQ-1:0] back_o,
  output logic      [     NumQ-1:0] busy_o,              // pieces of the queue are here
  // pieces; they wait where they are until they are used up
  input  logic      [     NumQ-1:0] piece_i,             // pulse: one was put there, in the cycle before
  input  vq_elem_t                  s_i,
  input  logic                      s_valid_i,
  output logic                      s_ready_o,
  // and the tables they refer to, in the same order
  input  vq_table_t                 ask_i,
  input  logic                      ask_valid_i,
  output logic                      ask_ready_o,
  output axi_ax_t                   m_ar_o,
  output logic                      m_ar_valid_o,
  input  logic                      m_ar_ready_i,
  input  axi_r_t                    m_r_i,
  input  logic                      m_r_valid_i,
  output logic                      one_req_o,
  output logic      [         57:0] one_line_o,
  input  logic                      one_done_i,
  input  logic                      one_err_i,
  input  logic      [    DataW-1:0] one_data_i,
  // store
  input  logic      [  QSizeLog2:0] free_i      [NumQ],
  output logic                      w_valid_o,
  output logic      [   QueueW-1:0] w_queue_o,
  output logic      [QSizeLog2-1:0] w_offset_o,
  output vq_desc_t                  w_desc_o,
  output logic                      w_commit_o,
  output vq_chain_t                 w_chain_o,
  output logic      [  QSizeLog2:0] w_slots_o,           // ring slots of the chain, split too
  output logic                      err_valid_o,
  output vq_err_e                   err_o,
  output logic      [   QueueW-1:0] err_queue_o,
  output logic                      cnt_o,
  output logic                      still_o
);

  localparam bit NumQOk = param_in("via_vq_fetch_table NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned Beats = 128;
  localparam int unsigned BurstMax = 8;

  typedef struct packed {
    logic             err;
    logic [DataW-1:0] data;
  } line_t;

  // ---------------------------------------------------------------- pieces
  vq_elem_t el;
  logic el_valid, el_pop;

  assign el = s_i;
  assign el_valid = s_valid_i;
  assign s_ready_o = el_pop;

  // ---------------------------------------------------------------- ask for tables
  vq_table_t ask;
  logic ask_valid, ask_pop, burst_go, burst_end;
  logic [6:0] asked_q;  // beats of the first table asked for
  logic [6:0] ask_beats, ask_left, to_page;
  logic [ 3:0] burst;
  logic [57:0] ask_line;
  logic [ 7:0] credit_q;
  logic beat_pop, ar_valid_q;
  axi_ax_t ar, ar_q;

  assign ask = ask_i;
  assign ask_valid = ask_valid_i;
  assign ask_ready_o = ask_pop;

  function automatic logic [6:0] beats_of(input logic [1:0] offset, input logic [8:0] entries);
    return 7'((10'(offset) + 10'(entries) + 10'd3) >> 2);
  endfunction

  assign ask_beats = beats_of(ask.addr[1:0], ask.entries);
  assign ask_left  = ask_beats - asked_q;
  assign ask_line  = ask.addr[59:2] + 58'(asked_q);
  assign to_page   = 7'd64 - {1'b0, ask_line[5:0]};
  always_comb begin
    burst = 4'(BurstMax);
    if (7'(burst) > ask_left) burst = ask_left[3:0];
    if (7'(burst) > to_page) burst = to_page[3:0];
    ar       = '0;
    ar.burst = 2'b01;
    ar.size  = 3'(BeatLog2);
    ar.len   = 8'(burst) - 8'd1;
    ar.addr  = {ask_line, 6'd0};
  end
  assign burst_go = ask_valid && credit_q >= 8'(burst) && (!ar_valid_q || m_ar_ready_i);
  assign burst_end = 7'(burst) == ask_left;
  assign ask_pop = burst_go && burst_end;
  assign cnt_o = burst_go;
  assign m_ar_o = ar_q;
  assign m_ar_valid_o = ar_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
      asked_q    <= '0;
      credit_q   <= 8'(Beats);
    end else begin
      if (burst_go) ar_valid_q <= 1'b1;
      else if (m_ar_ready_i) ar_valid_q <= 1'b0;
      if (burst_go) asked_q <= burst_end ? '0 : asked_q + 7'(burst);
      if (burst_go || beat_pop) credit_q <= credit_q - (burst_go ? 8'(burst) : 8'd0) + 8'(beat_pop);
    end
  end
  always_ff @(posedge clk_i) if (burst_go) ar_q <= ar;

  line_t line_in, line;
  logic line_valid, unused_ready;
  logic [7:0] held;
  assign line_in = '{err: m_r_i.resp != RespOkay, data: m_r_i.data};
  // Room is there: bursts are asked for with credit.
  via_fifo #(
    .T    (line_t),
    .Depth(Beats),
    .Ram  (1'b1)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (line_in),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(unused_ready),
    .m_o      (line),
    .m_valid_o(line_valid),
    .m_ready_i(beat_pop),
    .count_o  (held)
  );

  // ---------------------------------------------------------------- the descriptor at hand
  typedef enum logic [1:0] {
    StStream,  // a direct descriptor, or the table's entries as they come
    StDrain,   // the rest of the table's beats is not wanted
    StRead,    // asks for an entry out of turn
    StEntry    // and has it
  } state_e;

  state_e state_q;
  logic jump_q;  // after the drain: read entry_q
  logic begun_q;  // of the piece's table, at least one beat was popped or an entry taken
  logic [8:0] entry_q;  // of the table
  logic [8:0] walked_q;  // entries of the table before it
  logic [6:0] gone_q;  // beats of the table popped
  logic [127:0] read_q;
  logic read_err_q;

  logic [QW-1:0] q;
  logic stale, in_table, item, item_last, item_err, beat_end;
  logic [127:0] raw;
  logic [8:0] entries, entry, walked;
  logic [9:0] place;
  logic [6:0] beats, gone;
  logic t_next, t_nested, t_follows;
  logic [15:0] t_flags, t_to;
  vq_desc_t desc;

  assign q = QW'(el.queue);
  assign stale = !on_i[q] || el.epoch_f != epoch_f_o[q];
  assign in_table = el.indirect && el.err == VqErrNone;
  assign entries = el.len[12:4];
  assign beats = beats_of(el.addr[5:4], entries);
  assign entry = begun_q ? entry_q : '0;
  assign walked = begun_q ? walked_q : '0;
  assign gone = begun_q ? gone_q : '0;
  assign place = 10'(entry) + 10'(el.addr[5:4]);

  assign raw = (state_q == StEntry) ? read_q : line.data[128*place[1:0]+:128];
  assign t_flags = feat_i.packed_ring ? raw[127:112] : raw[111:96];
  assign t_to = feat_i.packed_ring ? 16'(entry) + 16'd1 : raw[127:112];
  // Packed: all entries of the table, only WRITE counts.
  assign t_next = feat_i.packed_ring ? entry + 9'd1 != entries : t_flags[0];
  assign t_nested = !feat_i.packed_ring && t_flags[2];
  assign t_follows = t_to == 16'(entry) + 16'd1;

  assign item = el_valid && (in_table ? (state_q == StStream && line_valid || state_q == StEntry) : state_q == StStream);
  assign item_last = in_table ? !t_next : el.last;
  assign item_err = in_table && ((state_q == StEntry) ? read_err_q : line.err);
  assign beat_end = place[1:0] == 2'd3;

  always_comb begin
    desc.write = in_table ? t_flags[1] : el.write;
    desc.last  = item_last;
    desc.len   = in_table ? raw[95:64] : el.len;
    desc.addr  = in_table ? raw[63:0] : el.addr;
  end

  // ---------------------------------------------------------------- the chain so far
  logic [QSizeLog2:0] nread_q, nwrite_q, n;
  logic [31:0] rlen_q, wlen_q, rlen, wlen;
  logic [32:0] sum, total_q;
  logic [33:0] total;  // readable and writable
  logic [64:0] buf_end;
  vq_err_e err;
  logic no_room, good, fails, ends;

  assign n = nread_q + nwrite_q;
  assign buf_end = {1'b0, desc.addr} + 65'(desc.len) - 65'd1;
  assign total = {1'b0, total_q} + 34'(desc.len);
  assign sum = {1'b0, desc.write ? wlen_q : rlen_q} + {1'b0, desc.len};
  always_comb begin
    err = VqErrNone;
    if (!in_table && el.err != VqErrNone) err = el.err;
    else if (item_err) err = VqErrRead;
    else if (t_nested && in_table) err = VqErrIndirect;
    else if (in_table && t_next && t_to >= 16'(entries)) err = VqErrHead;
    else if (in_table && t_next && walked + 9'd1 >= entries) err = VqErrLoop;
    else if (desc.len == '0 || buf_end[64] || total > 34'h1_0000_0000) err = VqErrLen;
    else if (!desc.write && nwrite_q != '0) err = VqErrOrder;
    else if (n == (QSizeLog2 + 1)'(QSizeMax)) err = VqErrLoop;
  end
  assign no_room = n >= free_i[q];
  assign good = item && !stale && err == VqErrNone && !no_room;
  assign fails = item && !stale && err != VqErrNone;
  assign rlen = desc.write ? rlen_q : sum[32] ? '1 : sum[31:0];
  assign wlen = !desc.write ? wlen_q : sum[32] ? '1 : sum[31:0];

  assign w_valid_o = good;
  assign w_queue_o = el.queue;
  assign w_offset_o = n[QSizeLog2-1:0];
  assign w_desc_o = desc;
  assign w_commit_o = good && item_last;
  assign w_slots_o = el.slots;
  always_comb begin
    w_chain_o        = '0;  // `first` is the store's
    w_chain_o.id     = el.id;
    w_chain_o.slots  = feat_i.packed_ring ? 16'(el.slots) : 16'd1;
    w_chain_o.nread  = nread_q + (QSizeLog2 + 1)'(!desc.write);
    w_chain_o.nwrite = nwrite_q + (QSizeLog2 + 1)'(desc.write);
    w_chain_o.rlen   = rlen;
    w_chain_o.wlen   = wlen;
  end
  assign err_valid_o = fails;
  assign err_o = err;
  assign err_queue_o = el.queue;

  // ---------------------------------------------------------------- steps
  // `ends`: nothing more of this table is wanted.
  assign ends = stale || fails || no_room || item_last;
  logic drained, step_pop;
  assign drained = gone + 7'd1 == beats;
  always_comb begin
    step_pop = 1'b0;
    beat_pop = 1'b0;
    unique case (state_q)
      StStream: begin
        if (item && !in_table) step_pop = 1'b1;
        else if (item) begin
          beat_pop = ends || beat_end || !t_follows;
          step_pop = ends && drained;
        end
      end
      StDrain: begin
        beat_pop = line_valid;
        step_pop = line_valid && drained && !jump_q;
      end
      StEntry: step_pop = ends;
      default: ;
    endcase
  end
  assign el_pop = step_pop;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StStream;
      begun_q <= 1'b0;
    end else begin
      if (step_pop) begun_q <= 1'b0;
      else if (item || beat_pop) begun_q <= 1'b1;
      unique case (state_q)
        StStream: begin
          if (item && in_table && !step_pop) begin
            if (ends) state_q <= StDrain;
            else if (!t_follows) state_q <= drained ? StRead : StDrain;
          end
        end
        StDrain: if (line_valid && drained) state_q <= jump_q ? StRead : StStream;
        StRead:  if (one_done_i) state_q <= StEntry;
        default: state_q <= ends ? StStream : StRead;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (item && in_table) begin
      jump_q   <= !ends && !t_follows;
      entry_q  <= t_to[8:0];
      walked_q <= walked + 9'd1;
    end
    if (beat_pop) gone_q <= gone + 7'd1;
    else if (item) gone_q <= gone;
    if (one_done_i) begin
      read_q     <= one_data_i[128*place[1:0]+:128];
      read_err_q <= one_err_i;
    end
  end

  assign one_req_o  = state_q == StRead;
  assign one_line_o = el.addr[63:6] + 58'(place[9:2]);

  // The chain ends with its last piece, whatever became of it.
  always_ff @(posedge clk_i) begin
    if (!rst_ni || step_pop && el.last) begin
      nread_q  <= '0;
      nwrite_q <= '0;
      rlen_q   <= '0;
      wlen_q   <= '0;
      total_q  <= '0;
    end else if (good) begin
      nread_q  <= w_chain_o.nread;
      nwrite_q <= w_chain_o.nwrite;
      rlen_q   <= rlen;
      wlen_q   <= wlen;
      total_q  <= total[32:0];
    end
  end

  // ---------------------------------------------------------------- queues
  logic [QSizeLog2:0] needs;
  logic [9:0] needs_all;
  // What the chain takes for certain, or may take at most: with that much room it is fetched again.
  assign needs_all = 10'(n) + (in_table ? 10'(entries) - 10'(walked) : 10'd1);
  assign needs = (needs_all > 10'(QSizeMax)) ? (QSizeLog2 + 1)'(QSizeMax) : needs_all[QSizeLog2:0];

  logic [NumQ-1:0] unpark;
  for (genvar i = 0; i < NumQ; i++) begin : gen_queue
    logic epoch_q, park_q, back, piece_in, piece_out;
    logic [QSizeLog2:0] needs_q;
    logic [6:0] pieces_q;

    assign back = item && !stale && err == VqErrNone && no_room && q == QW'(i);
    assign back_o[i] = back;
    assign epoch_f_o[i] = epoch_q;
    assign park_o[i] = park_q;
    assign unpark[i] = park_q && free_i[i] >= needs_q;
    assign busy_o[i] = pieces_q != '0;
    assign piece_in = piece_i[i];
    assign piece_out = el_pop && q == QW'(i);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        epoch_q  <= 1'b0;
        pieces_q <= '0;
      end else begin
        if (back) epoch_q <= !epoch_q;
        if (piece_in != piece_out) pieces_q <= piece_in ? pieces_q + 7'd1 : pieces_q - 7'd1;
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !on_i[i]) park_q <= 1'b0;
      else if (back) park_q <= 1'b1;
      else if (unpark[i]) park_q <= 1'b0;
    end
    always_ff @(posedge clk_i) if (back) needs_q <= needs;
  end

  assign still_o = ~|{piece_i, burst_go, m_ar_valid_o && m_ar_ready_i, m_r_valid_i, item, beat_pop, one_done_i, unpark,
 held != '0 && !line_valid,
                      ask_valid && credit_q >= 8'(burst) && !ar_valid_q};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!m_r_valid_i || unused_ready)
      else $error("beat without a place");
    end
  end
`endif

endmodule
