// SPDX-License-Identifier: Apache-2.0
//
// via_dispatch with flat ports. Engines: 0 DMA, 1 MMU, then the movers in, then the movers out.

module via_dispatch_tb
  import via_pkg::*;
#(
  localparam int unsigned NumEng = 2 + 2 * NumStreams
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [     255:0] cmd,
  input  logic              cmd_valid,
  output logic              cmd_ready,
  output logic [     151:0] cpl,
  output logic              cpl_valid,
  input  logic              cpl_ready,
  output logic [     255:0] eng_cmd      [     3],  // DMA, MMU, movers
  output logic [NumEng-1:0] eng_cmd_valid,
  input  logic [NumEng-1:0] eng_cmd_ready,
  input  logic [     151:0] eng_cpl      [NumEng],
  input  logic [NumEng-1:0] eng_cpl_valid,
  output logic [NumEng-1:0] eng_cpl_ready,
  output logic              idle_o
);

  cpl_t mvi_cpl[NumStreams], mvo_cpl[NumStreams];
  for (genvar k = 0; k < NumStreams; k++) begin : gen_stream
    assign mvi_cpl[k] = cpl_t'(eng_cpl[2+k]);
    assign mvo_cpl[k] = cpl_t'(eng_cpl[2+NumStreams+k]);
  end

  logic clk;
  via_tb_gate #(
    .W(1 + NumEng)
  ) u_gate (
    .clk_i,
    .rst_ni,
    .still_i (idle_o && ~|{cmd_valid, cpl_valid, eng_cmd_valid, eng_cpl_valid}),
    .inputs_i({cpl_ready, eng_cmd_ready}),
    .clk_o   (clk)
  );

  via_dispatch u_dut (
    .clk_i          (clk),
    .rst_ni,
    .cmd_i          (cmd_t'(cmd)),
    .cmd_valid_i    (cmd_valid),
    .cmd_ready_o    (cmd_ready),
    .cpl_o          (cpl),
    .cpl_valid_o    (cpl_valid),
    .cpl_ready_i    (cpl_ready),
    .dma_cmd_o      (eng_cmd[0]),
    .dma_cmd_valid_o(eng_cmd_valid[0]),
    .dma_cmd_ready_i(eng_cmd_ready[0]),
    .dma_cpl_i      (cpl_t'(eng_cpl[0])),
    .dma_cpl_valid_i(eng_cpl_valid[0]),
    .dma_cpl_ready_o(eng_cpl_ready[0]),
    .mmu_cmd_o      (eng_cmd[1]),
    .mmu_cmd_valid_o(eng_cmd_valid[1]),
    .mmu_cmd_ready_i(eng_cmd_ready[1]),
    .mmu_cpl_i      (cpl_t'(eng_cpl[1])),
    .mmu_cpl_valid_i(eng_cpl_valid[1]),
    .mmu_cpl_ready_o(eng_cpl_ready[1]),
    .move_cmd_o     (eng_cmd[2]),
    .mvi_cmd_valid_o(eng_cmd_valid[2+:NumStreams]),
    .mvi_cmd_ready_i(eng_cmd_ready[2+:NumStreams]),
    .mvi_cpl_i      (mvi_cpl),
    .mvi_cpl_valid_i(eng_cpl_valid[2+:NumStreams]),
    .mvi_cpl_ready_o(eng_cpl_ready[2+:NumStreams]),
    .mvo_cmd_valid_o(eng_cmd_valid[2+NumStreams+:NumStreams]),
    .mvo_cmd_ready_i(eng_cmd_ready[2+NumStreams+:NumStreams]),
    .mvo_cpl_i      (mvo_cpl),
    .mvo_cpl_valid_i(eng_cpl_valid[2+NumStreams+:NumStreams]),
    .mvo_cpl_ready_o(eng_cpl_ready[2+NumStreams+:NumStreams]),
    .idle_o
  );

endmodule
