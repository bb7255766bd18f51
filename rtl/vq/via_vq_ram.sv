// SPDX-License-Identifier: Apache-2.0
//
// Memory of QSizeMax words for each of some queues: one write port, one read port, one clock.
//
// It has one bank for each power of two in the number of queues (9 is 8 and 1). A single block RAM of such a depth would be composed of
// parts with a multiplexer wider than that of two or three banks.
// Throughput: one write and one read a cycle. Latency: read data one cycle after `re_i`, held until the next read; one LUT follows the
// memory's register. A read of the word written in the same cycle returns the old one. Misuse: a queue number out of range has no words.

module via_vq_ram
  import via_virtio_pkg::*;
#(
  parameter  int unsigned Width = 8,  // bits of a word
  parameter  int unsigned NumQ  = 2,  // queues
  localparam int unsigned QW    = (NumQ > 1) ? $clog2(NumQ) : 1
) (
  input  logic                 clk_i,
  input  logic                 we_i,      // write in this cycle
  input  logic [       QW-1:0] wqueue_i,  // queue of the word
  input  logic [QSizeLog2-1:0] windex_i,  // its index
  input  logic [    Width-1:0] wdata_i,   // its value
  input  logic                 re_i,      // read in this cycle
  input  logic [       QW-1:0] rqueue_i,  // queue of the word
  input  logic [QSizeLog2-1:0] rindex_i,  // its index
  output logic [    Width-1:0] rdata_o    // word read, a cycle after `re_i`; held
);

  localparam bit WidthOk = via_pkg::param_in("via_vq_ram Width", Width, 1, 65536);
  localparam bit NumQOk = via_pkg::param_in("via_vq_ram NumQ", NumQ, 1, QueuesMax);

  localparam int unsigned Sizes = $clog2(NumQ + 1);  // powers of two up to NumQ
  // The width of an index into the largest bank, plus one.
  localparam int unsigned AW = Sizes + QSizeLog2;

  logic [Sizes-1:0][Width-1:0] rdata;
  logic [AW-1:0] waddr, raddr;

  assign waddr = AW'({wqueue_i, windex_i});
  assign raddr = AW'({rqueue_i, rindex_i});

  for (genvar k = 0; k < Sizes; k++) begin : gen_bank
    if (NumQ[k]) begin : gen_there
      logic w_me, r_me, here_q;
      logic [Width-1:0] word;
      // Larger banks come first.
      assign w_me = waddr[AW-1:QSizeLog2+k] == (Sizes - k)'((NumQ >> (k + 1)) << 1);
      assign r_me = raddr[AW-1:QSizeLog2+k] == (Sizes - k)'((NumQ >> (k + 1)) << 1);
      always_ff @(posedge clk_i) if (re_i) here_q <= r_me;
      via_ram_sdp #(
        .Width(Width),
        .Depth(QSizeMax << k)
      ) u_ram (
        .clk_i,
        .we_i   (we_i && w_me),
        .waddr_i(waddr[QSizeLog2+k-1:0]),
        .wdata_i,
        .re_i   (re_i && r_me),
        .raddr_i(raddr[QSizeLog2+k-1:0]),
        .rdata_o(word)
      );
      assign rdata[k] = here_q ? word : '0;
    end else begin : gen_none
      assign rdata[k] = '0;
    end
  end

  always_comb begin
    rdata_o = '0;
    for (int unsigned k = 0; k < Sizes; k++) rdata_o |= rdata[k];
  end

endmodule
