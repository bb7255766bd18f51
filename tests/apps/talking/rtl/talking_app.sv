// SPDX-License-Identifier: Apache-2.0
//
// Test app: passes every beat on, and does what no hardware can, as app.toml lists.

// verilog_format: off  // a line per channel
module talking_app import via_pkg::*; (
  input  logic  clk_i, rst_ni, input logic [7:0] mode_i,
  input  strm_t in_i,  input  logic in_valid_i,  output logic in_ready_o,
  output strm_t out_o, output logic out_valid_o, input  logic out_ready_i
);
  // verilog_format: on
  logic turns;
  always @(posedge clk_i) begin
    if (rst_ni && in_valid_i && in_ready_o) begin
      case (mode_i)
        8'd1: $display("a beat");
        8'd2: $error("a beat is wrong");
        8'd3: $finish;
        8'd4: $fatal(1, "a beat is very wrong");
        8'd5: $stop;
        8'd6: begin
          turns = 1'b1;
          while (turns) begin
            turns = turns | in_valid_i;
            $fflush;
          end
        end
        default: ;
      endcase
    end
  end
  assign out_o = in_i;
  assign out_valid_o = in_valid_i;
  assign in_ready_o = out_ready_i;
endmodule
