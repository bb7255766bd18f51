// SPDX-License-Identifier: Apache-2.0
//
// Holds the descriptors and chains that via_vq_fetch found until their responses have been written.
//
// Throughput: one descriptor written a cycle, one read a cycle and port, one job every second cycle, one pop of a queue every third cycle.
// Latency: a chain is offered as job and as head in the cycle after it was entered, if none is before it. Order: chains of one queue in the
// order found, as jobs and as heads; jobs of several queues are served round robin. A job on offer is withdrawn a cycle after the reset of
// its queue began.
// Misuse: the writer has to respect `free_o`; a pop without a head, or of a chain whose job was not yet accepted, is an error of the engine
// (asserted).

module via_vq_store
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2  // queues
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic      [     NumQ-1:0] wait_i,              // level: the queue's chains wait for a response: they are no jobs
  input  logic      [     NumQ-1:0] clear_i,             // level: the queue is off: drop its chains
  input  logic      [     NumQ-1:0] hide_i,              // level: the queue is under reset: no more jobs
  // from the fetch: descriptors of the chain being assembled, then the chain
  input  logic                      w_valid_i,           // pulse: write a descriptor
  input  logic      [   QueueW-1:0] w_queue_i,           // its queue
  input  logic      [QSizeLog2-1:0] w_offset_i,          // its number in the chain
  input  vq_desc_t                  w_desc_i,            // the descriptor
  input  logic                      w_commit_i,          // with w_valid_i: it is the last, the chain is complete
  input  vq_chain_t                 w_chain_i,           // with w_commit_i: the chain; `first` is filled in here
  output logic      [  QSizeLog2:0] free_o      [NumQ],  // free descriptors of the queue
  output vq_chain_t                 job_o,               // chain with readable bytes
  output vq_read_t                  job_desc_o,          // its only descriptor, if job_near_o is high
  output logic                      job_near_o,          // level, with job_valid_o: job_desc_o is valid, no read is needed
  output logic      [   QueueW-1:0] job_queue_o,         // its queue
  output logic                      job_valid_o,
  input  logic                      job_ready_i,
  output vq_chain_t                 head_o      [NumQ],  // oldest chain of each queue
  output logic      [     NumQ-1:0] head_valid_o,        // level: there is one
  input  logic      [     NumQ-1:0] head_pop_i,          // pulse: remove it
  output logic      [         31:0] room_o      [NumQ],  // writable bytes of all chains of the queue, saturated
  input  logic                      a_re_i,              // pulse: read a descriptor (port a)
  input  logic      [   QueueW-1:0] a_queue_i,           // its queue
  input  logic      [QSizeLog2-1:0] a_index_i,           // its index
  output vq_read_t                  a_desc_o,            // the descriptor, a cycle after a_re_i
  input  logic                      b_re_i,              // pulse: read a descriptor (port b)
  input  logic      [   QueueW-1:0] b_queue_i,           // its queue
  input  logic      [QSizeLog2-1:0] b_index_i,           // its index
  output vq_desc_t                  b_desc_o,            // the descriptor, a cycle after b_re_i
  output logic                      still_o              // level: nothing moves unless an input changes
);

  localparam bit NumQOk = param_in("via_vq_store NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned DescBits = $bits(vq_desc_t);
  localparam int unsigned ReadBits = $bits(vq_read_t);
  localparam int unsigned PageW = $clog2(MaxBurstBeats * StrbW);
  localparam int unsigned ChainBits = $bits(vq_chain_t);

  // ---------------------------------------------------------------- descriptors
  logic [NumQ-1:0][QSizeLog2-1:0] tail_q;  // next descriptor of the queue
  logic [QW-1:0] wq;
  logic [QSizeLog2-1:0] w_index;
  logic [ReadBits-1:0] a_raw;
  logic [DescBits-1:0] b_raw;
  vq_read_t w_read;
  logic [PageW-BeatLog2-1:0] w_beats;
  logic [PageW+1:0] w_end;  // within the largest burst, minus one

  assign wq = QW'(w_queue_i);
  assign w_index = tail_q[wq] + w_offset_i;
  // The first burst is computed here, so that a read returns it with the descriptor.
  assign w_end = (PageW + 2)'(w_desc_i.addr[PageW-1:0]) + (PageW + 2)'(w_desc_i.len[PageW:0]) - 1'b1;
  always_comb begin
    w_read.desc  = w_desc_i;
    w_read.whole = w_desc_i.len[31:PageW+1] == '0 && w_end[PageW+1:PageW] == '0;
    w_read.beats = 8'(w_beats);
  end
  assign w_beats  = (w_read.whole ? w_end[PageW-1:BeatLog2] : '1) - w_desc_i.addr[PageW-1:BeatLog2];
  assign a_desc_o = a_raw;
  assign b_desc_o = b_raw;

  via_vq_ram #(
    .Width(ReadBits),
    .NumQ (NumQ)
  ) u_desc_a (
    .clk_i,
    .we_i    (w_valid_i),
    .wqueue_i(wq),
    .windex_i(w_index),
    .wdata_i (w_read),
    .re_i    (a_re_i),
    .rqueue_i(QW'(a_queue_i)),
    .rindex_i(a_index_i),
    .rdata_o (a_raw)
  );

  via_vq_ram #(
    .Width(DescBits),
    .NumQ (NumQ)
  ) u_desc_b (
    .clk_i,
    .we_i    (w_valid_i),
    .wqueue_i(wq),
    .windex_i(w_index),
    .wdata_i (w_desc_i),
    .re_i    (b_re_i),
    .rqueue_i(QW'(b_queue_i)),
    .rindex_i(b_index_i),
    .rdata_o (b_raw)
  );

  // ---------------------------------------------------------------- chains
  // One memory holds the chains after the head, another one those not yet offered as jobs: the same chains, read at different times.
  vq_chain_t chain;
  logic [NumQ-1:0] w_me, put;
  logic [QSizeLog2:0] taken;  // descriptors of the chain
  logic [NumQ-1:0][QSizeLog2-1:0] put_q;  // next entry of the queue in either memory
  logic [NumQ-1:0] head_want, head_get, head_comes_q;
  logic [NumQ-1:0][QSizeLog2-1:0] head_at_q;
  logic [QW-1:0] head_sel;
  logic [QSizeLog2-1:0] head_index;
  logic head_go;
  logic [ChainBits-1:0] head_raw, job_raw;
  vq_chain_t head_data;
  // The room of a chain is counted a cycle after its head is there.
  logic [NumQ-1:0] more_q, frees;  // entries that became free and are not counted yet
  logic [23:0] more_len_q;

  for (genvar q = 0; q < NumQ; q++) begin : gen_me
    assign w_me[q] = wq == QW'(q);
    assign put[q]  = w_commit_i && w_me[q];
  end
  assign taken = (QSizeLog2 + 1)'(w_offset_i) + 1'b1;

  always_comb begin
    chain       = w_chain_i;
    chain.first = tail_q[wq];
  end

  // 24 bits each: the sum of a full queue fits.
  function automatic logic [23:0] clamp(input logic [31:0] len);
    return len[23:0] | {24{len[31:24] != '0}};
  endfunction

  always_ff @(posedge clk_i) begin
    more_q     <= put;
    more_len_q <= clamp(w_chain_i.wlen);
  end

  via_vq_ram #(
    .Width(ChainBits),
    .NumQ (NumQ)
  ) u_heads (
    .clk_i,
    .we_i    (w_commit_i),
    .wqueue_i(wq),
    .windex_i(put_q[wq]),
    .wdata_i (chain),
    .re_i    (head_go),
    .rqueue_i(head_sel),
    .rindex_i(head_index),
    .rdata_o (head_raw)
  );
  assign head_data = head_raw;

  via_vq_arb #(
    .N(NumQ)
  ) u_head_arb (
    .clk_i,
    .rst_ni,
    .req_i  (head_want),
    .ack_i  (1'b1),
    .gnt_o  (head_get),
    .idx_o  (head_sel),
    .valid_o(head_go)
  );
  always_comb begin
    head_index = '0;
    for (int unsigned q = 0; q < NumQ; q++) if (head_get[q]) head_index |= head_at_q[q];
  end

  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    logic pop, free, direct, valid_q;
    logic more_behind_q;  // behind_q is not zero
    logic [QSizeLog2:0] behind_q, free_q, freed_q;
    logic [31:0] room_q;
    logic [23:0] more, less;
    vq_chain_t head_q;

    assign pop = head_pop_i[q] && valid_q;
    assign free = (!valid_q || pop) && !head_comes_q[q];
    assign direct = put[q] && free && !more_behind_q;
    assign head_want[q] = free && more_behind_q;
    assign head_o[q] = head_q;
    assign head_valid_o[q] = valid_q;
    assign room_o[q] = room_q;
    assign free_o[q] = free_q;
    assign frees[q] = freed_q != '0;

    assign more = more_q[q] ? more_len_q : '0;
    assign less = pop ? clamp(head_q.wlen) : '0;

    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i[q]) begin
        valid_q         <= 1'b0;
        head_comes_q[q] <= 1'b0;
        behind_q        <= '0;
        more_behind_q   <= 1'b0;
        free_q          <= (QSizeLog2 + 1)'(QSizeMax);
        freed_q         <= '0;
        room_q          <= '0;
        tail_q[q]       <= '0;
        put_q[q]        <= '0;
        head_at_q[q]    <= '0;
      end else begin
        if (direct || head_comes_q[q]) valid_q <= 1'b1;
        else if (pop) valid_q <= 1'b0;
        head_comes_q[q] <= head_get[q];
        if ((put[q] && !direct) != head_get[q]) begin
          behind_q      <= head_get[q] ? behind_q - 1'b1 : behind_q + 1'b1;
          more_behind_q <= !head_get[q] || behind_q != (QSizeLog2 + 1)'(1);
        end
        // Entries filled count at once, entries freed a cycle later.
        freed_q <= pop ? head_q.nread + head_q.nwrite : '0;
        free_q  <= free_q - (put[q] ? taken : '0) + freed_q;
        if (!wait_i[q]) room_q <= '0;
        else room_q <= room_q + 32'(more) - 32'(less);
        if (put[q]) tail_q[q] <= tail_q[q] + taken[QSizeLog2-1:0];
        if (put[q]) put_q[q] <= put_q[q] + 1'b1;
        if (direct || head_get[q]) head_at_q[q] <= head_at_q[q] + 1'b1;
      end
    end

    always_ff @(posedge clk_i) begin
      if (head_comes_q[q]) head_q <= head_data;
      else if (direct) head_q <= chain;
    end

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni && !clear_i[q]) begin
        assert (!head_pop_i[q] || valid_q)
        else $error("pop without a head");
        assert (!put[q] || taken <= free_q)
        else $error("chain entered without room");
        assert (!put[q] || w_valid_i && taken == w_chain_i.nread + w_chain_i.nwrite)
        else $error("chain entered without its last descriptor");
      end
    end
`endif
  end

  // ---------------------------------------------------------------- jobs
  logic [NumQ-1:0] job_put, job_pass, job_wait_q, job_get, job_me_q;
  logic [NumQ-1:0][QSizeLog2-1:0] job_at_q;
  logic [QW-1:0] job_sel, job_queue_q;
  logic [QSizeLog2-1:0] job_index;
  logic job_any, job_go, job_room, job_hidden, job_go_q, job_valid_q, job_direct;
  vq_chain_t job_q;
  vq_read_t job_desc_q;
  logic job_near_q;

  via_vq_ram #(
    .Width(ChainBits),
    .NumQ (NumQ)
  ) u_jobs (
    .clk_i,
    .we_i    (job_put != '0),
    .wqueue_i(wq),
    .windex_i(put_q[wq]),
    .wdata_i (chain),
    .re_i    (job_go),
    .rqueue_i(job_sel),
    .rindex_i(job_index),
    .rdata_o (job_raw)
  );

  via_vq_arb #(
    .N(NumQ)
  ) u_job_arb (
    .clk_i,
    .rst_ni,
    .req_i  (job_wait_q),
    .ack_i  (job_room),
    .gnt_o  (job_get),
    .idx_o  (job_sel),
    .valid_o(job_any)
  );
  always_comb begin
    job_index = '0;
    for (int unsigned q = 0; q < NumQ; q++) if (job_get[q]) job_index |= job_at_q[q];
  end

  // The next job is fetched when the register is free or being read; job_queue_q and job_me_q belong to the one fetched.
  assign job_hidden = (job_me_q & hide_i) != '0;
  assign job_room = !job_go_q && (!job_valid_q || job_ready_i || job_hidden);
  assign job_go = job_room && job_any;
  assign job_direct = job_room && !job_any && job_pass != '0;
  assign job_valid_o = job_valid_q;
  assign job_o = job_q;
  assign job_desc_o = job_desc_q;
  assign job_near_o = job_near_q;
  assign job_queue_o = QueueW'(job_queue_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      job_go_q    <= 1'b0;
      job_valid_q <= 1'b0;
    end else begin
      job_go_q <= job_go;
      if (job_direct) job_valid_q <= 1'b1;
      else if (job_go_q) job_valid_q <= !job_hidden;
      else if (job_room) job_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (job_room) begin
      job_queue_q <= job_any ? job_sel : wq;
      job_me_q    <= job_any ? job_get : w_me;
    end
    if (job_go_q) job_q <= job_raw;
    else if (job_room) job_q <= chain;
    // A chain that is a job as soon as it was entered, if it has one descriptor, which was entered with it.
    if (job_room) job_desc_q <= w_read;
    if (job_go_q) job_near_q <= 1'b0;
    else if (job_room) job_near_q <= w_offset_i == '0 && w_chain_i.nread[0];
  end

  for (genvar q = 0; q < NumQ; q++) begin : gen_job
    logic direct, get;
    logic [QSizeLog2:0] waiting_q;  // job_wait_q: not zero

    assign job_put[q] = put[q] && !wait_i[q];
    assign job_pass[q] = job_put[q] && !clear_i[q] && !hide_i[q];
    assign direct = job_put[q] && job_room && !job_any;
    assign get = job_get[q] && job_room;

    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i[q] || hide_i[q]) begin
        waiting_q     <= '0;
        job_wait_q[q] <= 1'b0;
      end else if ((job_put[q] && !direct) != get) begin
        waiting_q     <= get ? waiting_q - 1'b1 : waiting_q + 1'b1;
        job_wait_q[q] <= !get || waiting_q != (QSizeLog2 + 1)'(1);
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i[q]) job_at_q[q] <= '0;
      else if (direct || get) job_at_q[q] <= job_at_q[q] + 1'b1;
    end
  end

  assign still_o = ~|{b_re_i, w_valid_i, w_commit_i, head_pop_i, head_go, head_comes_q, job_go, job_go_q, job_valid_o && job_ready_i,
                      job_valid_q && job_hidden, more_q, frees};

endmodule
