// SPDX-License-Identifier: Apache-2.0
//
// Checks one AR or AW of a slot: incrementing, full-width, aligned to the beat, within 4 KiB. Combinational.

module via_guard_ax
  import via_pkg::*;
(
  input  axi_ax_t ax_i,
  output logic    bad_o,
  output event_e  cause_o
);

  logic [15:0] last;  // offset of the burst's last byte in its first 4 KiB page
  logic shape;

  assign shape = ax_i.burst != 2'b01 || ax_i.size != 3'(BeatLog2) || |ax_i.addr[BeatLog2-1:0];
  assign last = 16'(ax_i.addr[PageLog2-1:0]) + (16'(ax_i.len) << BeatLog2) + 16'(StrbW - 1);
  assign bad_o = shape || |last[15:PageLog2];
  assign cause_o = shape ? EvBadBurst : EvCross4k;

endmodule
