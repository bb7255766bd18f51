// SPDX-License-Identifier: Apache-2.0
//
// Puts several readers and writers on one AXI port. The id on the port is the source's index; the sources' own ids are kept here and
// given back with the answer. Sources 0..NumFirst-1 (rings) go before the rest (bulk data), which take turns burst by burst.
// Throughput: one beat per cycle and channel. Latency: two cycles each way, one less for the answers. Every port output is a register.
// Ordering: answers of one source come in order; those of different sources may overtake one another.
// Misuse: relies on the no-wedge rule: a source that does not take its R or B, or holds back W after AW, stops the others.
// Answers with an id that no source has are dropped.

module via_axi_mux
  import via_pkg::*;
#(
  parameter int unsigned NumRd = 3,
  parameter int unsigned NumWr = 3,
  parameter int unsigned NumFirst = 1,
  parameter int unsigned Outstanding = 64  // bursts in flight a source
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  axi_ax_t             s_ar_i      [NumRd],
  input  logic    [NumRd-1:0] s_ar_valid_i,
  output logic    [NumRd-1:0] s_ar_ready_o,
  output axi_r_t              s_r_o       [NumRd],
  output logic    [NumRd-1:0] s_r_valid_o,
  input  logic    [NumRd-1:0] s_r_ready_i,
  input  axi_ax_t             s_aw_i      [NumWr],
  input  logic    [NumWr-1:0] s_aw_valid_i,
  output logic    [NumWr-1:0] s_aw_ready_o,
  input  axi_w_t              s_w_i       [NumWr],
  input  logic    [NumWr-1:0] s_w_valid_i,
  output logic    [NumWr-1:0] s_w_ready_o,
  output axi_b_t              s_b_o       [NumWr],
  output logic    [NumWr-1:0] s_b_valid_o,
  input  logic    [NumWr-1:0] s_b_ready_i,
  output axi_ax_t             m_ar_o,
  output logic                m_ar_valid_o,
  input  logic                m_ar_ready_i,
  input  axi_r_t              m_r_i,
  input  logic                m_r_valid_i,
  output logic                m_r_ready_o,
  output axi_ax_t             m_aw_o,
  output logic                m_aw_valid_o,
  input  logic                m_aw_ready_i,
  output axi_w_t              m_w_o,
  output logic                m_w_valid_o,
  input  logic                m_w_ready_i,
  input  axi_b_t              m_b_i,
  input  logic                m_b_valid_i,
  output logic                m_b_ready_o,
  output logic                still_o,              // nothing moves unless an input changes
  output logic                idle_o
);

  localparam int unsigned WrW = (NumWr > 1) ? $clog2(NumWr) : 1;

  // ---------------------------------------------------------------- read: AR
  axi_ax_t ar;
  logic ar_valid, ar_ready;
  logic [NumRd-1:0] rd_owed, rd_full;

  via_axi_mux_ax #(
    .N(NumRd),
    .NumFirst(NumFirst)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .s_i      (s_ar_i),
    .s_valid_i(s_ar_valid_i & ~rd_full),
    .s_ready_o(s_ar_ready_o),
    .m_o      (ar),
    .m_valid_o(ar_valid),
    .m_ready_i(ar_ready)
  );

  via_slice #(
    .T(axi_ax_t)
  ) u_ar_slice (
    .clk_i,
    .rst_ni,
    .s_i      (ar),
    .s_valid_i(ar_valid),
    .s_ready_o(ar_ready),
    .m_o      (m_ar_o),
    .m_valid_o(m_ar_valid_o),
    .m_ready_i(m_ar_ready_i)
  );

  // ---------------------------------------------------------------- read: R
  axi_r_t r;
  logic r_valid, r_ready;

  via_slice #(
    .T(axi_r_t)
  ) u_r_slice (
    .clk_i,
    .rst_ni,
    .s_i      (m_r_i),
    .s_valid_i(m_r_valid_i),
    .s_ready_o(m_r_ready_o),
    .m_o      (r),
    .m_valid_o(r_valid),
    .m_ready_i(r_ready)
  );

  logic [NumRd-1:0] r_stall;
  assign r_ready = ~|r_stall;

  for (genvar i = 0; i < NumRd; i++) begin : gen_rd
    logic hit, id_ready, id_valid;
    logic [IdW-1:0] id;
    assign hit = r_valid && r.id == IdW'(i);
    assign s_r_valid_o[i] = hit;
    assign r_stall[i] = hit && !s_r_ready_i[i];
    assign s_r_o[i] = '{id: id, resp: r.resp, last: r.last, data: r.data};
    assign rd_full[i] = !id_ready;
    assign rd_owed[i] = id_valid;

    via_fifo #(
      .T(logic [IdW-1:0]),
      .Depth(Outstanding)
    ) u_ids (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (s_ar_i[i].id),
      .s_valid_i(s_ar_valid_i[i] && s_ar_ready_o[i] && !rd_full[i]),
      .s_ready_o(id_ready),
      .m_o      (id),
      .m_valid_o(id_valid),
      .m_ready_i(hit && s_r_ready_i[i] && r.last),
      .count_o  ()
    );
  end

  // ---------------------------------------------------------------- write: AW
  axi_ax_t aw;
  logic aw_valid, aw_ready, aw_slice_ready, order_ready;
  logic [NumWr-1:0] wr_full, wr_owed;

  via_axi_mux_ax #(
    .N(NumWr),
    .NumFirst(NumFirst)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .s_i      (s_aw_i),
    .s_valid_i(s_aw_valid_i & ~wr_full),
    .s_ready_o(s_aw_ready_o),
    .m_o      (aw),
    .m_valid_o(aw_valid),
    .m_ready_i(aw_ready)
  );

  assign aw_ready = aw_slice_ready && order_ready;

  via_slice #(
    .T(axi_ax_t)
  ) u_aw_slice (
    .clk_i,
    .rst_ni,
    .s_i      (aw),
    .s_valid_i(aw_valid && order_ready),
    .s_ready_o(aw_slice_ready),
    .m_o      (m_aw_o),
    .m_valid_o(m_aw_valid_o),
    .m_ready_i(m_aw_ready_i)
  );

  // ---------------------------------------------------------------- write: W in the order of AW
  logic [WrW-1:0] w_src;
  logic w_src_valid, w_valid, w_ready;
  axi_w_t w;

  via_fifo #(
    .T(logic [WrW-1:0]),
    .Depth(8)
  ) u_order (
    .clk_i,
    .rst_ni,
    .flush_i  (1'b0),
    .s_i      (aw.id[WrW-1:0]),
    .s_valid_i(aw_valid && aw_slice_ready),
    .s_ready_o(order_ready),
    .m_o      (w_src),
    .m_valid_o(w_src_valid),
    .m_ready_i(w_valid && w_ready && w.last),
    .count_o  ()
  );

  always_comb begin
    w = s_w_i[0];
    w_valid = 1'b0;
    s_w_ready_o = '0;
    for (int unsigned i = 0; i < NumWr; i++) begin
      if (w_src == WrW'(i)) begin
        w = s_w_i[i];
        w_valid = w_src_valid && s_w_valid_i[i];
        s_w_ready_o[i] = w_src_valid && w_ready;
      end
    end
  end

  via_slice #(
    .T(axi_w_t)
  ) u_w_slice (
    .clk_i,
    .rst_ni,
    .s_i      (w),
    .s_valid_i(w_valid),
    .s_ready_o(w_ready),
    .m_o      (m_w_o),
    .m_valid_o(m_w_valid_o),
    .m_ready_i(m_w_ready_i)
  );

  // ---------------------------------------------------------------- write: B
  axi_b_t b;
  logic b_valid, b_ready;
  logic [NumWr-1:0] b_stall;
  assign b_ready = ~|b_stall;

  via_slice #(
    .T(axi_b_t)
  ) u_b_slice (
    .clk_i,
    .rst_ni,
    .s_i      (m_b_i),
    .s_valid_i(m_b_valid_i),
    .s_ready_o(m_b_ready_o),
    .m_o      (b),
    .m_valid_o(b_valid),
    .m_ready_i(b_ready)
  );

  for (genvar i = 0; i < NumWr; i++) begin : gen_wr
    logic hit, id_ready, id_valid;
    logic [IdW-1:0] id;
    assign hit = b_valid && b.id == IdW'(i);
    assign s_b_valid_o[i] = hit;
    assign b_stall[i] = hit && !s_b_ready_i[i];
    assign s_b_o[i] = '{id: id, resp: b.resp};
    assign wr_full[i] = !id_ready;
    assign wr_owed[i] = id_valid;

    via_fifo #(
      .T(logic [IdW-1:0]),
      .Depth(Outstanding)
    ) u_ids (
      .clk_i,
      .rst_ni,
      .flush_i  (1'b0),
      .s_i      (s_aw_i[i].id),
      .s_valid_i(s_aw_valid_i[i] && s_aw_ready_o[i] && !wr_full[i]),
      .s_ready_o(id_ready),
      .m_o      (id),
      .m_valid_o(id_valid),
      .m_ready_i(hit && s_b_ready_i[i]),
      .count_o  ()
    );
  end

  assign still_o = ~|{s_ar_valid_i, s_aw_valid_i, s_w_valid_i, m_ar_valid_o, m_aw_valid_o, m_w_valid_o, m_r_valid_i, r_valid, m_b_valid_i,
                      b_valid};
  assign idle_o = ~|{s_ar_valid_i, s_aw_valid_i, s_w_valid_i, rd_owed, wr_owed, m_r_valid_i, r_valid, m_b_valid_i, b_valid, w_src_valid};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i)
    if (rst_ni) begin
      assert (!(r_valid && 32'(r.id) >= NumRd))
      else $error("read answer with id %0d: no such source", r.id);
      assert (!(b_valid && 32'(b.id) >= NumWr))
      else $error("write answer with id %0d: no such source", b.id);
    end
`endif

endmodule
