// SPDX-License-Identifier: Apache-2.0
//
// Register slice, FIFOs and skid buffer side by side. Lane 0: via_slice; 1 and 2: via_fifo with distributed and with block memory; 3 and 4:
// the smallest of both; 5: via_skid; 6: via_slice with memory.

module via_queues_tb #(
  parameter  int unsigned W = 40,
  localparam int unsigned N = 7
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         flush_i,
  input  logic [W-1:0] s_data [N],
  input  logic [N-1:0] s_valid,
  output logic [N-1:0] s_ready,
  output logic [W-1:0] m_data [N],
  output logic [N-1:0] m_valid,
  input  logic [N-1:0] m_ready,
  output logic [  3:0] count  [N]
);

  via_slice #(
    .T(logic [W-1:0])
  ) u_slice (
    .clk_i,
    .rst_ni,
    .s_i      (s_data[0]),
    .s_valid_i(s_valid[0]),
    .s_ready_o(s_ready[0]),
    .m_o      (m_data[0]),
    .m_valid_o(m_valid[0]),
    .m_ready_i(m_ready[0])
  );
  assign count[0] = '0;

  via_skid #(
    .T(logic [W-1:0])
  ) u_skid (
    .clk_i,
    .rst_ni,
    .s_i      (s_data[5]),
    .s_valid_i(s_valid[5]),
    .s_ready_o(s_ready[5]),
    .m_o      (m_data[5]),
    .m_valid_o(m_valid[5]),
    .m_ready_i(m_ready[5])
  );
  assign count[5] = '0;

  via_slice #(
    .T  (logic [W-1:0]),
    .Ram(1'b1)
  ) u_slice_ram (
    .clk_i,
    .rst_ni,
    .s_i      (s_data[6]),
    .s_valid_i(s_valid[6]),
    .s_ready_o(s_ready[6]),
    .m_o      (m_data[6]),
    .m_valid_o(m_valid[6]),
    .m_ready_i(m_ready[6])
  );
  assign count[6] = '0;

  for (genvar i = 1; i < 5; i++) begin : gen_fifo
    localparam int unsigned Depth = (i < 3) ? 11 : 4 - (i - 3) * 2;
    logic [$clog2(Depth + 1)-1:0] held;
    via_fifo #(
      .T    (logic [W-1:0]),
      .Depth(Depth),
      .Ram  (i % 2 == 0)
    ) u_fifo (
      .clk_i,
      .rst_ni,
      .flush_i,
      .s_i      (s_data[i]),
      .s_valid_i(s_valid[i]),
      .s_ready_o(s_ready[i]),
      .m_o      (m_data[i]),
      .m_valid_o(m_valid[i]),
      .m_ready_i(m_ready[i]),
      .count_o  (held)
    );
    assign count[i] = 4'(held);
  end

endmodule
