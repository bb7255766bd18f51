// SPDX-License-Identifier: Apache-2.0
//
// Rules of an AXI port inside the shell (docs/interfaces.md, section 1) as assertions. One instance watches one port, from either side; it
// drives nothing. tools/checkers.py binds one to every AXI port of every block; not for synthesis. Each rule has a name, and
// test_checkers.py breaks each of them.
//
//   AR, AW  stable until accepted; INCR, full-width beats, aligned, within 4 KiB; at most `Outstanding` bursts without a response
//   R       stable until accepted; only for a read that was accepted, with its length and id; in order, or with InOrder = 0 in order per
//           id; with Behind not before B of any write of the same function that was complete (address and data accepted) in a cycle before
//           AR: the rule of a board's host port
//   W       stable until accepted; last on the last beat and on no other. Data may come before its address
//   B       stable until accepted; only for a write whose address and data were accepted, with its id; order as that of R
//
// A channel that the port does not have is tied to zero. With Responses = 0 the R, W and B channels are not checked: the port has addresses
// only.
// In a proof, AssumeReq and AssumeRsp turn the rules of the request or response side into assumptions, for the side that is not part of the
// design.
// Source: AMBA AXI4, chapters A3 and A5; for Behind docs/interfaces.md, section 2.

/* verilator coverage_off */  // not part of the coverage of the design
module via_axi_checker
  import via_pkg::*;
#(
  parameter bit          InOrder     = 1'b1,
  parameter bit          Responses   = 1'b1,
  parameter bit          Behind      = 1'b0,
  parameter int unsigned Outstanding = 255,
  parameter bit          AssumeReq   = 1'b0,
  parameter bit          AssumeRsp   = 1'b0
) (
  input logic    clk_i,
  input logic    rst_ni,
  input axi_ax_t ar_i,
  input logic    ar_valid_i,
  input logic    ar_ready_i,
  input axi_r_t  r_i,
  input logic    r_valid_i,
  input logic    r_ready_i,
  input axi_ax_t aw_i,
  input logic    aw_valid_i,
  input logic    aw_ready_i,
  input axi_w_t  w_i,
  input logic    w_valid_i,
  input logic    w_ready_i,
  input axi_b_t  b_i,
  input logic    b_valid_i,
  input logic    b_ready_i
);

  // A single module for all ports: simulations build several times faster.
  /* verilator no_inline_module */

  localparam bit OutstandingOk = param_in("via_axi_checker Outstanding", Outstanding, 1, 4096);

  localparam int unsigned PtrW = $clog2(Outstanding + 1) + 1;  // one bit more, so that the distance of two numbers tells which is ahead
  localparam int unsigned Places = 1 << PtrW;
  localparam int unsigned Keys = InOrder ? 1 : 1 << IdW;
  localparam int unsigned KeyW = InOrder ? 1 : IdW;
  typedef logic [PtrW-1:0] ptr_t;

  // ---------------------------------------------------------------- payload offered in the previous cycle and not accepted
  logic ar_wait_q, r_wait_q, aw_wait_q, w_wait_q, b_wait_q;
  axi_ax_t ar_q, aw_q;
  axi_r_t r_q;
  axi_w_t w_q;
  axi_b_t b_q;

  always_ff @(posedge clk_i) begin
    ar_wait_q <= rst_ni && ar_valid_i && !ar_ready_i;
    r_wait_q  <= rst_ni && r_valid_i && !r_ready_i;
    aw_wait_q <= rst_ni && aw_valid_i && !aw_ready_i;
    w_wait_q  <= rst_ni && w_valid_i && !w_ready_i;
    b_wait_q  <= rst_ni && b_valid_i && !b_ready_i;
    if (ar_valid_i) ar_q <= ar_i;
    if (r_valid_i) r_q <= r_i;
    if (aw_valid_i) aw_q <= aw_i;
    if (w_valid_i) w_q <= w_i;
    if (b_valid_i) b_q <= b_i;
  end

  // ---------------------------------------------------------------- reads whose data is outstanding
  typedef struct packed {
    logic [IdW-1:0] id;
    logic [7:0]     len;
  } read_t;
  read_t rd_owed_q[Keys][Places], rd_first;
  ptr_t rd_tail_q[Keys], rd_head_q[Keys], rd_count_q;
  logic [7:0] rd_beat_q[Keys];
  logic [KeyW-1:0] ar_key, r_key;
  logic rd_in, rd_out;

  assign ar_key = InOrder ? '0 : KeyW'(ar_i.id);
  assign r_key = InOrder ? '0 : KeyW'(r_i.id);
  assign rd_first = rd_owed_q[r_key][rd_head_q[r_key]];
  assign rd_in = ar_valid_i && ar_ready_i;
  assign rd_out = r_valid_i && r_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_count_q <= '0;
      for (int unsigned k = 0; k < Keys; k++) begin
        rd_tail_q[k] <= '0;
        rd_head_q[k] <= '0;
        rd_beat_q[k] <= '0;
      end
    end else begin
      if (rd_in) rd_tail_q[ar_key] <= rd_tail_q[ar_key] + 1'b1;
      if (rd_out) rd_beat_q[r_key] <= r_i.last ? '0 : rd_beat_q[r_key] + 1'b1;
      if (rd_out && r_i.last) rd_head_q[r_key] <= rd_head_q[r_key] + 1'b1;
      rd_count_q <= rd_count_q + ptr_t'(rd_in) - ptr_t'(rd_out && r_i.last);
    end
  end
  always_ff @(posedge clk_i) if (rd_in) rd_owed_q[ar_key][rd_tail_q[ar_key]] <= '{id: ar_i.id, len: ar_i.len};

  // ---------------------------------------------------------------- writes: data against addresses, responses against both
  typedef struct packed {
    logic [IdW-1:0] id;
    ptr_t           number;  // number of the write, counted in the order of addresses
  } write_t;
  write_t wr_owed_q[Keys][Places], wr_first;
  logic [7:0] wr_len_q[Places], w_beats_q[Places], w_len;  // beats as AWLEN says; beats that came
  ptr_t
      wr_tail_q[Keys],
      wr_head_q[Keys],
      aw_number_q,
      w_number_q,
      wr_count_q;  // *_number_q count accepted addresses and accepted last beats of data
  logic [7:0] w_beat_q;
  logic [KeyW-1:0] aw_key, b_key;
  logic wr_in, w_out, wr_out, w_named, early, wr_whole;

  assign aw_key = InOrder ? '0 : KeyW'(aw_i.id);
  assign b_key = InOrder ? '0 : KeyW'(b_i.id);
  assign wr_first = wr_owed_q[b_key][wr_head_q[b_key]];
  assign wr_in = aw_valid_i && aw_ready_i;
  assign w_out = w_valid_i && w_ready_i;
  assign wr_out = b_valid_i && b_ready_i;
  // Whether the address of the current W beat is known: accepted already, or offered now. If not, WLAST is compared when the address comes.
  assign w_named = (w_number_q == aw_number_q) ? aw_valid_i : !early;
  assign early = (aw_number_q - w_number_q) >> (PtrW - 1) != '0;
  assign w_len = (w_number_q == aw_number_q) ? aw_i.len : wr_len_q[w_number_q];
  assign wr_whole = wr_head_q[b_key] != wr_tail_q[b_key] && wr_first.number != w_number_q && (wr_first.number - w_number_q) >> (PtrW - 1) != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_number_q <= '0;
      w_number_q  <= '0;
      w_beat_q    <= '0;
      wr_count_q  <= '0;
      for (int unsigned k = 0; k < Keys; k++) begin
        wr_tail_q[k] <= '0;
        wr_head_q[k] <= '0;
      end
    end else begin
      if (wr_in) aw_number_q <= aw_number_q + 1'b1;
      if (wr_in) wr_tail_q[aw_key] <= wr_tail_q[aw_key] + 1'b1;
      if (w_out) w_beat_q <= w_i.last ? '0 : w_beat_q + 1'b1;
      if (w_out && w_i.last) w_number_q <= w_number_q + 1'b1;
      if (wr_out) wr_head_q[b_key] <= wr_head_q[b_key] + 1'b1;
      wr_count_q <= wr_count_q + ptr_t'(wr_in) - ptr_t'(wr_out);
    end
  end
  always_ff @(posedge clk_i) begin
    if (wr_in) wr_owed_q[aw_key][wr_tail_q[aw_key]] <= '{id: aw_i.id, number: aw_number_q};
    if (wr_in) wr_len_q[aw_number_q] <= aw_i.len;
    if (w_out && w_i.last) w_beats_q[w_number_q] <= w_beat_q;
  end

  // ---------------------------------------------------------------- order of reads behind writes, per function
  logic r_stable, r_asked, r_id, r_last, r_behind, b_stable, b_whole, b_id;

  if (Behind) begin : gen_behind
    // Per function (given by the id): the number of complete writes, and of those whose B was offered. Per read: the number of complete
    // writes before it.
    logic [31:0] whole_q[1<<IdW], told_q[1<<IdW], ahead_q[Keys][Places], told;
    logic [IdW-1:0] wr_id_q[Places], whole_id, ar_fn, r_fn, b_fn, whole_fn;
    logic whole, w_ended;

    // Ids 0 to 2 belong to one function (function 0).
    function automatic logic [IdW-1:0] fn_of(input logic [IdW-1:0] id);
      return (id < IdW'(3)) ? '0 : id;
    endfunction

    assign ar_fn    = fn_of(ar_i.id);
    assign r_fn     = fn_of(r_i.id);
    assign b_fn     = fn_of(b_i.id);
    assign whole_fn = fn_of(whole_id);
    assign w_ended  = w_out && w_i.last;
    assign whole    = (w_number_q == aw_number_q) ? wr_in && w_ended : early ? wr_in : w_ended;
    assign whole_id = (w_number_q == aw_number_q || early) ? aw_i.id : wr_id_q[w_number_q];
    // A B offered in the same cycle as R is early enough.
    assign told     = told_q[r_fn] + 32'(b_valid_i && !b_wait_q && r_fn == b_fn);
    assign r_behind = !r_valid_i || !r_asked || rd_beat_q[r_key] != '0 || signed'(told - ahead_q[r_key][rd_head_q[r_key]]) >= 32'sd0;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        for (int unsigned f = 0; f < 1 << IdW; f++) begin
          whole_q[f] <= '0;
          told_q[f]  <= '0;
        end
      end else begin
        if (whole) whole_q[whole_fn] <= whole_q[whole_fn] + 1'b1;
        if (b_valid_i && !b_wait_q) told_q[b_fn] <= told_q[b_fn] + 1'b1;
      end
    end
    always_ff @(posedge clk_i) begin
      if (wr_in) wr_id_q[aw_number_q] <= aw_i.id;
      if (rd_in) ahead_q[ar_key][rd_tail_q[ar_key]] <= whole_q[ar_fn];
    end
  end else begin : gen_free
    assign r_behind = 1'b1;
  end

  // ---------------------------------------------------------------- rules of the requesting side
  function automatic logic in_page(input logic [PageLog2-1:0] offset, input logic [7:0] len);
    return 16'(offset) + (16'(len) + 16'd1) * 16'(StrbW) <= 16'(1 << PageLog2);
  endfunction

  logic ar_stable, ar_incr, ar_size, ar_aligned, ar_page, ar_few;
  logic aw_stable, aw_incr, aw_size, aw_aligned, aw_page, aw_few, w_stable, w_last;

  assign ar_stable = !ar_wait_q || ar_valid_i && ar_i == ar_q;
  assign ar_incr = !ar_valid_i || ar_i.burst == BurstIncr;
  assign ar_size = !ar_valid_i || ar_i.size == 3'(BeatLog2);
  assign ar_aligned = !ar_valid_i || ar_i.addr[BeatLog2-1:0] == '0;
  assign ar_page = !ar_valid_i || in_page(ar_i.addr[PageLog2-1:0], ar_i.len);
  assign ar_few = !Responses || !ar_valid_i || rd_count_q != ptr_t'(Outstanding) || !ar_ready_i;
  assign aw_stable = !aw_wait_q || aw_valid_i && aw_i == aw_q;
  assign aw_incr = !aw_valid_i || aw_i.burst == BurstIncr;
  assign aw_size = !aw_valid_i || aw_i.size == 3'(BeatLog2);
  assign aw_aligned = !aw_valid_i || aw_i.addr[BeatLog2-1:0] == '0;
  assign aw_page = !aw_valid_i || in_page(aw_i.addr[PageLog2-1:0], aw_i.len);
  assign aw_few = !Responses || !aw_valid_i || wr_count_q != ptr_t'(Outstanding) || !aw_ready_i;
  assign w_stable = !w_wait_q || w_valid_i && w_i == w_q;
  assign w_last     = !Responses || (!w_valid_i || !w_named || w_i.last == (w_beat_q == w_len)) &&
                      (!aw_valid_i || !early || aw_i.len == w_beats_q[aw_number_q]);

  // ---------------------------------------------------------------- rules of the responding side
  assign r_stable = !r_wait_q || r_valid_i && r_i == r_q;
  assign r_asked = !Responses || !r_valid_i || rd_head_q[r_key] != rd_tail_q[r_key];
  assign r_id = !Responses || !r_valid_i || !r_asked || r_i.id == rd_first.id;
  assign r_last = !Responses || !r_valid_i || !r_asked || r_i.last == (rd_beat_q[r_key] == rd_first.len);
  assign b_stable = !b_wait_q || b_valid_i && b_i == b_q;
  assign b_whole = !Responses || !b_valid_i || wr_whole;
  assign b_id = !Responses || !b_valid_i || !wr_whole || b_i.id == wr_first.id;

  if (AssumeReq) begin : gen_assume_req
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        assume (&{ar_stable, ar_incr, ar_size, ar_aligned, ar_page, ar_few});
        assume (&{aw_stable, aw_incr, aw_size, aw_aligned, aw_page, aw_few, w_stable, w_last});
      end
    end
  end else begin : gen_req
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        a_ar_stable :
        assert (ar_stable)
        else $error("AR changed or withdrawn before it was accepted");
        a_ar_incr :
        assert (ar_incr)
        else $error("AR is not INCR");
        a_ar_size :
        assert (ar_size)
        else $error("AR does not request full-width beats");
        a_ar_aligned :
        assert (ar_aligned)
        else $error("AR is not aligned to a beat");
        a_ar_page :
        assert (ar_page)
        else $error("AR crosses 4 KiB");
        a_ar_few :
        assert (ar_few)
        else $error("more reads in flight than allowed");
        a_aw_stable :
        assert (aw_stable)
        else $error("AW changed or withdrawn before it was accepted");
        a_aw_incr :
        assert (aw_incr)
        else $error("AW is not INCR");
        a_aw_size :
        assert (aw_size)
        else $error("AW does not request full-width beats");
        a_aw_aligned :
        assert (aw_aligned)
        else $error("AW is not aligned to a beat");
        a_aw_page :
        assert (aw_page)
        else $error("AW crosses 4 KiB");
        a_aw_few :
        assert (aw_few)
        else $error("more writes in flight than allowed");
        a_w_stable :
        assert (w_stable)
        else $error("W changed or withdrawn before it was accepted");
        a_w_last :
        assert (w_last)
        else $error("WLAST does not match AWLEN");
      end
    end
  end

  if (AssumeRsp) begin : gen_assume_rsp
    always_ff @(posedge clk_i) begin
      if (rst_ni) assume (&{r_stable, r_asked, r_id, r_last, r_behind, b_stable, b_whole, b_id});
    end
  end else begin : gen_rsp
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        a_r_stable :
        assert (r_stable)
        else $error("R changed or withdrawn before it was accepted");
        a_r_asked :
        assert (r_asked)
        else $error("R without a request");
        a_r_id :
        assert (r_id)
        else $error("R with the wrong id");
        a_r_last :
        assert (r_last)
        else $error("RLAST does not match ARLEN");
        a_r_behind :
        assert (r_behind)
        else $error("R before B of a write that was complete before its read");
        a_b_stable :
        assert (b_stable)
        else $error("B changed or withdrawn before it was accepted");
        a_b_whole :
        assert (b_whole)
        else $error("B without a write all of which was taken");
        a_b_id :
        assert (b_id)
        else $error("B with the wrong id");
      end
    end
  end

endmodule
/* verilator coverage_on */
