// SPDX-License-Identifier: Apache-2.0
//
// Holds the descriptors and chains that via_vq_fetch found until they are answered.
//
// Throughput: one descriptor written a cycle, one read a cycle and port, one job every second cycle, one pop of a queue every third cycle.
// Latency: a chain is offered as job and as head in the cycle after it was entered, if none is before it. Order: chains of one queue in the
// order found, as jobs and as heads; jobs of several queues take turns. A job offered is withdrawn a cycle after the reset of its queue began.
// Misuse: the writer looks at `free_o`; a pop without a head, or of a chain whose job was not yet taken, is an error of the engine (asserted).

module via_vq_store
  import via_pkg::*;
  import via_virtio_pkg::*;
#(
  parameter int unsigned NumQ = 2
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic      [     NumQ-1:0] wait_i,              // the queue's chains wait for an answer: they are no jobs
  input  logic      [     NumQ-1:0] clear_i,             // queue is off: forget its chains
  input  logic      [     NumQ-1:0] hide_i,              // queue is being reset: no more jobs
  // from the fetch: descriptor number `w_offset_i` of the chain in the making, then the chain
  input  logic                      w_valid_i,
  input  logic      [   QueueW-1:0] w_queue_i,
  input  logic      [QSizeLog2-1:0] w_offset_i,
  input  vq_desc_t                  w_desc_i,
  input  logic                      w_commit_i,          // of w_queue_i, with its last descriptor
  input  vq_chain_t                 w_chain_i,           // `first` is filled in here
  output logic      [  QSizeLog2:0] free_o      [NumQ],
  output vq_chain_t                 job_o,
  output logic      [   QueueW-1:0] job_queue_o,
  output logic                      job_valid_o,
  input  logic                      job_ready_i,
  output vq_chain_t                 head_o      [NumQ],
  output logic      [     NumQ-1:0] head_valid_o,
  input  logic      [     NumQ-1:0] head_pop_i,
  output logic      [         31:0] room_o      [NumQ],
  input  logic                      a_re_i,
  input  logic      [   QueueW-1:0] a_queue_i,
  input  logic      [QSizeLog2-1:0] a_index_i,
  output vq_read_t                  a_desc_o,
  input  logic                      b_re_i,
  input  logic      [   QueueW-1:0] b_queue_i,
  input  logic      [QSizeLog2-1:0] b_index_i,
  output vq_desc_t                  b_desc_o,
  output logic                      still_o
);

  localparam bit NumQOk = param_in("via_vq_store NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned QW = (NumQ > 1) ? $clog2(NumQ) : 1;
  localparam int unsigned AW = $clog2(NumQ * QSizeMax);
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
  logic [PageW+1:0] w_end;  // within a burst's greatest size, less one

  assign wq = QW'(w_queue_i);
  assign w_index = tail_q[wq] + w_offset_i;
  // The first burst is found here, ahead of the read that waits for it.
  assign w_end = (PageW + 2)'(w_desc_i.addr[PageW-1:0]) + (PageW + 2)'(w_desc_i.len[PageW:0]) - 1'b1;
  always_comb begin
    w_read.desc  = w_desc_i;
    w_read.whole = w_desc_i.len[31:PageW+1] == '0 && w_end[PageW+1:PageW] == '0;
    w_read.beats = 8'(w_beats);
  end
  assign w_beats  = (w_read.whole ? w_end[PageW-1:BeatLog2] : '1) - w_desc_i.addr[PageW-1:BeatLog2];
  assign a_desc_o = a_raw;
  assign b_desc_o = b_raw;

  via_ram_sdp #(
    .Width(ReadBits),
    .Depth(NumQ * QSizeMax)
  ) u_desc_a (
    .clk_i,
    .we_i   (w_valid_i),
    .waddr_i(AW'({wq, w_index})),
    .wdata_i(w_read),
    .re_i   (a_re_i),
    .raddr_i(AW'({QW'(a_queue_i), a_index_i})),
    .rdata_o(a_raw)
  );

  via_ram_sdp #(
    .Width(DescBits),
    .Depth(NumQ * QSizeMax)
  ) u_desc_b (
    .clk_i,
    .we_i   (w_valid_i),
    .waddr_i(AW'({wq, w_index})),
    .wdata_i(w_desc_i),
    .re_i   (b_re_i),
    .raddr_i(AW'({QW'(b_queue_i), b_index_i})),
    .rdata_o(b_raw)
  );

  // ---------------------------------------------------------------- chains
  // A memory holds those behind the head, another one those not yet given out as jobs: the same chains, read at different times.
  vq_chain_t chain;
  logic [NumQ-1:0][QSizeLog2-1:0] put_q;  // next place of the queue in either memory
  logic [NumQ-1:0] head_free, head_direct, head_want, head_get;
  logic [NumQ-1:0][QSizeLog2-1:0] head_at_q;
  logic [QW-1:0] head_sel, head_sel_q;
  logic head_go, head_go_q;
  logic [ChainBits-1:0] head_raw, job_raw;
  vq_chain_t head_data;

  always_comb begin
    chain       = w_chain_i;
    chain.first = tail_q[wq];
  end

  via_ram_sdp #(
    .Width(ChainBits),
    .Depth(NumQ * QSizeMax)
  ) u_heads (
    .clk_i,
    .we_i   (w_commit_i),
    .waddr_i(AW'({wq, put_q[wq]})),
    .wdata_i(chain),
    .re_i   (head_go),
    .raddr_i(AW'({head_sel, head_at_q[head_sel]})),
    .rdata_o(head_raw)
  );
  assign head_data = head_raw;

  via_rr_arb #(
    .N(NumQ)
  ) u_head_arb (
    .clk_i,
    .rst_ni,
    .req_i  (head_want),
    .ack_i  (head_go),
    .gnt_o  (head_get),
    .idx_o  (head_sel),
    .valid_o(head_go)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) head_go_q <= 1'b0;
    else head_go_q <= head_go;
  end
  always_ff @(posedge clk_i) if (head_go) head_sel_q <= head_sel;

  for (genvar q = 0; q < NumQ; q++) begin : gen_queue
    logic put, pop, arrives, valid_q, fetching_q;
    logic [QSizeLog2:0] behind_q, free_q, taken, freed;
    logic [31:0] room_q, more, less;
    vq_chain_t head_q;

    assign put = w_commit_i && wq == QW'(q);
    assign pop = head_pop_i[q] && valid_q;
    assign arrives = head_go_q && fetching_q && head_sel_q == QW'(q);
    assign head_free[q] = (!valid_q || pop) && !fetching_q;
    assign head_direct[q] = put && head_free[q] && behind_q == '0;
    assign head_want[q] = head_free[q] && behind_q != '0;
    assign head_o[q] = head_q;
    assign head_valid_o[q] = valid_q;
    assign room_o[q] = room_q;
    assign free_o[q] = free_q;

    assign taken = put ? chain.nread + chain.nwrite : '0;
    assign freed = pop ? head_q.nread + head_q.nwrite : '0;
    // 24 bits each: the sum of a full queue fits.
    assign more = put ? clamp(chain.wlen) : '0;
    assign less = pop ? clamp(head_q.wlen) : '0;

    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i[q]) begin
        valid_q      <= 1'b0;
        fetching_q   <= 1'b0;
        behind_q     <= '0;
        free_q       <= (QSizeLog2 + 1)'(QSizeMax);
        room_q       <= '0;
        tail_q[q]    <= '0;
        put_q[q]     <= '0;
        head_at_q[q] <= '0;
      end else begin
        if (head_direct[q] || arrives) valid_q <= 1'b1;
        else if (pop) valid_q <= 1'b0;
        if (head_get[q]) fetching_q <= 1'b1;
        else if (arrives) fetching_q <= 1'b0;
        if ((put && !head_direct[q]) != head_get[q]) behind_q <= head_get[q] ? behind_q - 1'b1 : behind_q + 1'b1;
        if (put || pop) free_q <= free_q - taken + freed;
        if (!wait_i[q]) room_q <= '0;
        else if (put || pop) room_q <= room_q + more - less;
        if (put) tail_q[q] <= tail_q[q] + taken[QSizeLog2-1:0];
        if (put) put_q[q] <= put_q[q] + 1'b1;
        if (head_direct[q] || head_get[q]) head_at_q[q] <= head_at_q[q] + 1'b1;
      end
    end

    always_ff @(posedge clk_i) begin
      if (head_direct[q]) head_q <= chain;
      else if (arrives) head_q <= head_data;
    end

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni && !clear_i[q]) begin
        assert (!head_pop_i[q] || valid_q)
        else $error("pop without a head");
        assert (!put || taken <= free_q)
        else $error("chain entered without room");
      end
    end
`endif
  end

  function automatic logic [31:0] clamp(input logic [31:0] len);
    return (len[31:24] != '0) ? 32'h00ff_ffff : len;
  endfunction

  // ---------------------------------------------------------------- jobs
  logic [NumQ-1:0] job_want, job_get, job_pass;
  logic [NumQ-1:0][QSizeLog2-1:0] job_at_q;
  logic [QW-1:0] job_sel, job_queue_q;
  logic job_any, job_go, job_room, job_go_q, job_valid_q, job_direct;
  vq_chain_t job_q;

  via_ram_sdp #(
    .Width(ChainBits),
    .Depth(NumQ * QSizeMax)
  ) u_jobs (
    .clk_i,
    .we_i   (w_commit_i && !wait_i[wq]),
    .waddr_i(AW'({wq, put_q[wq]})),
    .wdata_i(chain),
    .re_i   (job_go),
    .raddr_i(AW'({job_sel, job_at_q[job_sel]})),
    .rdata_o(job_raw)
  );

  via_rr_arb #(
    .N(NumQ)
  ) u_job_arb (
    .clk_i,
    .rst_ni,
    .req_i  (job_want),
    .ack_i  (job_go),
    .gnt_o  (job_get),
    .idx_o  (job_sel),
    .valid_o(job_any)
  );

  // The next one is fetched when the register is free or leaves; job_queue_q is that of the one fetched.
  assign job_room = !job_go_q && (!job_valid_q || job_ready_i || hide_i[job_queue_q]);
  assign job_go = job_room && job_any;
  assign job_direct = job_room && !job_any && |job_pass;
  assign job_valid_o = job_valid_q;
  assign job_o = job_q;
  assign job_queue_o = QueueW'(job_queue_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      job_go_q    <= 1'b0;
      job_valid_q <= 1'b0;
    end else begin
      job_go_q <= job_go;
      if (job_direct) job_valid_q <= 1'b1;
      else if (job_go_q) job_valid_q <= !hide_i[job_queue_q];
      else if (job_room) job_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (job_go) job_queue_q <= job_sel;
    else if (job_direct) job_queue_q <= wq;
    if (job_direct) job_q <= chain;
    else if (job_go_q) job_q <= job_raw;
  end

  for (genvar q = 0; q < NumQ; q++) begin : gen_job
    logic put, direct;
    logic [QSizeLog2:0] waiting_q;

    assign put = w_commit_i && wq == QW'(q) && !wait_i[q];
    assign job_want[q] = waiting_q != '0;
    assign job_pass[q] = put && !job_want[q] && !clear_i[q] && !hide_i[q];
    assign direct = job_direct && job_pass[q];

    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i[q] || hide_i[q]) begin
        waiting_q <= '0;
      end else if ((put && !direct) != (job_get[q] && job_go)) begin
        waiting_q <= (put && !direct) ? waiting_q + 1'b1 : waiting_q - 1'b1;
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i[q]) job_at_q[q] <= '0;
      else if (direct || job_get[q] && job_go) job_at_q[q] <= job_at_q[q] + 1'b1;
    end
  end

  assign still_o = ~|{b_re_i, w_valid_i, w_commit_i, head_pop_i, head_go, head_go_q, job_go, job_go_q, job_valid_o && job_ready_i,
                      job_valid_q && hide_i[job_queue_q]};

endmodule
