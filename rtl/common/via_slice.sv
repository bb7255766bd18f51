// SPDX-License-Identifier: Apache-2.0
//
// Register slice for one ready/valid channel: every output comes from a register.
// Throughput: one beat per cycle. Latency: one cycle. Order: kept. It holds up to two beats, so `ready` can be a register too: it falls
// while the second entry is being filled.
// With Ram = 1 the payload is held in distributed memory instead of flip-flops with a multiplexer: two thirds of the LUTs and no
// flip-flops, but the output payload is a memory read. For wide payloads at which no long path begins.

module via_slice #(
  parameter type T   = logic,
  parameter bit  Ram = 1'b0
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  T     s_i,
  input  logic s_valid_i,
  output logic s_ready_o,
  output T     m_o,
  output logic m_valid_o,
  input  logic m_ready_i
);

  logic main_valid_q, skid_valid_q, ready_q;

  assign s_ready_o = ready_q;
  assign m_valid_o = main_valid_q;

  logic take, advance;
  assign take    = s_valid_i && ready_q;
  assign advance = m_ready_i || !main_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      main_valid_q <= 1'b0;
      skid_valid_q <= 1'b0;
      ready_q      <= 1'b0;
    end else begin
      if (advance) main_valid_q <= take || skid_valid_q;
      if (advance) skid_valid_q <= 1'b0;
      else if (take) skid_valid_q <= 1'b1;
      ready_q <= advance || !(take || skid_valid_q);
    end
  end

  if (Ram) begin : gen_ram
    logic [$bits(T)-1:0] mem[2];
    logic wptr_q, rptr_q;

    assign m_o = T'(mem[rptr_q]);
    always_ff @(posedge clk_i) if (take) mem[wptr_q] <= s_i;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        wptr_q <= 1'b0;
        rptr_q <= 1'b0;
      end else begin
        if (take) wptr_q <= !wptr_q;
        if (main_valid_q && m_ready_i) rptr_q <= !rptr_q;
      end
    end
  end else begin : gen_ff
    T main_q, skid_q;

    assign m_o = main_q;
    always_ff @(posedge clk_i) begin
      if (advance && (skid_valid_q || take)) main_q <= skid_valid_q ? skid_q : s_i;
      if (!advance && take) skid_q <= s_i;
    end
  end

endmodule
