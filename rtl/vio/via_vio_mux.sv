// SPDX-License-Identifier: Apache-2.0
//
// Multiplexer of a sink of via_vio_switch: input `sel_q`, from 1; zeros for 0 and above N. Combinational, with its select in registers.
//
// Inputs in groups of four, each a LUT a bit (6 inputs: four and two bits of the select), then one of the groups: up to 3 by a register each,
// as an OR of ANDs, more by the upper bits of the select. So 5 inputs take 2 LUTs a bit, 7 take 3, 11 take 4 and 15 take 5; without this
// structure the mapper takes up to 7.
// With one input it is passed on always: there is nobody else whose data would have to be kept from the sink.

module via_vio_mux #(
  parameter  int unsigned W    = 8,
  parameter  int unsigned N    = 2,
  localparam int unsigned SelW = $clog2(N + 1)
) (
  input  logic            clk_i,
  input  logic [SelW-1:0] sel_i,     // of the next cycle
  input  logic [   W-1:0] s_i  [N],
  output logic [   W-1:0] m_o
);

  localparam bit WOk = via_pkg::param_in("via_vio_mux W", W, 1, 4096);
  localparam bit NOk = via_pkg::param_in("via_vio_mux N", N, 1, 63);
  localparam int unsigned Groups = N / 4 + 1;

  if (N == 1) begin : gen_one
    assign m_o = s_i[0];
    /* verilator lint_off UNUSEDSIGNAL */
    logic unused;
    assign unused = clk_i | sel_i;
    /* verilator lint_on UNUSEDSIGNAL */
  end else begin : gen_mux
    logic [  1:0] low_q;
    logic [W-1:0] of_group[Groups];

    always_ff @(posedge clk_i) low_q <= 2'(sel_i);
    for (genvar g = 0; g < Groups; g++) begin : gen_group
      always_comb begin
        of_group[g] = '0;
        for (int unsigned i = 4 * g; i < 4 * g + 4; i++) begin
          // The last group fits into the LUT of the OR, if it has two inputs and one bit selects.
          if (i >= 1 && i <= N && (g == Groups - 1 && N % 4 <= 1 ? low_q[0] == 1'(i) : low_q == 2'(i))) of_group[g] = s_i[i-1];
        end
      end
    end

    if (Groups <= 3) begin : gen_few
      logic [Groups-1:0] group_q;
      always_ff @(posedge clk_i) for (int unsigned g = 0; g < Groups; g++) group_q[g] <= 32'(sel_i >> 2) == g;
      always_comb begin
        m_o = '0;
        for (int unsigned g = 0; g < Groups; g++) m_o |= of_group[g] & {W{group_q[g]}};
      end
    end else begin : gen_many
      logic [SelW-3:0] group_q;
      always_ff @(posedge clk_i) group_q <= sel_i[SelW-1:2];
      always_comb begin
        m_o = '0;
        for (int unsigned g = 0; g < Groups; g++) if (32'(group_q) == g) m_o = of_group[g];
      end
    end
  end

endmodule
