// SPDX-License-Identifier: Apache-2.0
//
// Test app: reads 191 beats of 32 pages, more than can wait in the guard and behind it. The fault is in its own via_slice, which the slot's wrapper uses instead of the real one; a
// page miss makes the read channel wait, and the next request is withdrawn meanwhile.

// verilog_format: off  // a line per channel
module unstable_app import via_pkg::*; (
  input  logic    clk_i, rst_ni,
  output axi_ax_t mem_ar_o, output logic mem_ar_valid_o, input  logic mem_ar_ready_i,
  input  axi_r_t  mem_r_i,  input  logic mem_r_valid_i,  output logic mem_r_ready_o,
  output axi_ax_t mem_aw_o, output logic mem_aw_valid_o, input  logic mem_aw_ready_i,
  output axi_w_t  mem_w_o,  output logic mem_w_valid_o,  input  logic mem_w_ready_i,
  input  axi_b_t  mem_b_i,  input  logic mem_b_valid_i,  output logic mem_b_ready_o,
  input  logic [63:0] base_i,
  input  logic        start_i,
  output logic        done_o
);
  // verilog_format: on

  logic [7:0] left_q, due_q;
  assign mem_ar_o = '{id: '0, burst: 2'b01, size: 3'(BeatLog2), len: '0, addr: base_i + {47'd0, left_q[4:0], 3'd0, left_q[7:5], 6'd0}};
  assign mem_ar_valid_o = left_q != '0;
  assign {mem_aw_o, mem_aw_valid_o, mem_w_o, mem_w_valid_o} = '0;
  assign {mem_r_ready_o, mem_b_ready_o} = '1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {left_q, due_q, done_o} <= '0;
    else if (start_i) {left_q, due_q, done_o} <= {8'd191, 8'd191, 1'b0};
    else begin
      if (mem_ar_valid_o && mem_ar_ready_i) left_q <= left_q - 1'b1;
      if (mem_r_valid_i) begin
        due_q  <= due_q - 1'b1;
        done_o <= due_q == 8'd1;
      end
    end
  end

  logic unused;
  assign unused = ^{mem_aw_ready_i, mem_w_ready_i, mem_r_i, mem_b_i, mem_b_valid_i};

endmodule
