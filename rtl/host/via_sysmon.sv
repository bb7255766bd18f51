// SPDX-License-Identifier: Apache-2.0
//
// Reads the system monitor of the FPGA through its dynamic reconfiguration port (DRP): temperature, supplies, current.
//
// Throughput: a reading of all values takes 13 accesses, each two cycles and what the monitor needs. Latency: see throughput. Order: that of
// `value_o`, in which each value changes when its access ends; `state_o.valid` says that all are of complete readings.
// Readings are made on request only, so that a card at rest stays at rest; the monitor itself measures all the time and keeps the extremes.
// Misuse: a start during a reading is ignored. A monitor that does not answer within Timeout cycles ends the reading: `state_o.failed`.
// Source: Xilinx UG480 (XADC), UG580 (SYSMONE4), status registers 00h to 06h, 10h (auxiliary input 0) and 20h to 27h; DRP timing: DRDY is one
// cycle, any number of cycles after DEN.

module via_sysmon
  import via_pkg::*;
#(
  parameter int unsigned Timeout = 4096  // cycles
) (
  input logic clk_i,
  input logic rst_ni,
  input logic start_i,  // one-cycle pulse: read all values
  output sysmon_state_t state_o,
  output logic [15:0] value_o[SysmonValues],  // codes, in the order of the registers: last, highest, lowest of four, then the current
  output logic drp_en_o,  // one-cycle pulse: read
  output logic [7:0] drp_addr_o,  // with it, and until the answer
  input logic [15:0] drp_data_i,
  input logic drp_rdy_i,  // one-cycle pulse: the answer
  output logic idle_o  // level: no reading
);

  localparam bit TimeoutOk = param_in("via_sysmon Timeout", Timeout, 2, 65536);

  // Address of a value: three of each channel, then the current.
  function automatic logic [7:0] address_of(input logic [3:0] index);
    unique case (index)
      4'd0: return 8'h00;  // temperature
      4'd1: return 8'h20;
      4'd2: return 8'h24;
      4'd3: return 8'h01;  // VCCINT
      4'd4: return 8'h21;
      4'd5: return 8'h25;
      4'd6: return 8'h02;  // VCCAUX
      4'd7: return 8'h22;
      4'd8: return 8'h26;
      4'd9: return 8'h06;  // VCCBRAM
      4'd10: return 8'h23;
      4'd11: return 8'h27;
      default: return 8'h10;  // auxiliary input 0
    endcase
  endfunction

  logic busy_q, valid_q, failed_q, waits_q, en_q, last, late_q;
  logic [3:0] index_q;
  logic [$clog2(Timeout)-1:0] count_q;
  logic answer;

  assign answer = waits_q && drp_rdy_i;
  assign last   = index_q == 4'(SysmonValues - 1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      valid_q  <= 1'b0;
      failed_q <= 1'b0;
      waits_q  <= 1'b0;
      en_q     <= 1'b0;
    end else begin
      en_q <= busy_q && !waits_q;
      if (!busy_q) begin
        busy_q <= start_i;
        if (start_i) failed_q <= 1'b0;
      end else if (!waits_q) begin
        waits_q <= 1'b1;
      end else if (answer) begin
        waits_q <= 1'b0;
        busy_q  <= !last;
        valid_q <= valid_q || last;
      end else if (late_q) begin
        waits_q  <= 1'b0;
        busy_q   <= 1'b0;
        failed_q <= 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!busy_q) index_q <= '0;
    else if (answer) index_q <= index_q + 4'd1;
    count_q <= waits_q ? count_q + 1'b1 : '0;
    late_q  <= waits_q && count_q == ($clog2(Timeout))'(Timeout - 2);
    if (busy_q && !waits_q) drp_addr_o <= address_of(index_q);
    for (int unsigned v = 0; v < SysmonValues; v++) if (answer && index_q == 4'(v)) value_o[v] <= drp_data_i;
  end

  assign state_o  = '{busy: busy_q, valid: valid_q, failed: failed_q};
  assign drp_en_o = en_q;
  assign idle_o   = ~|{busy_q, start_i, en_q};

endmodule
