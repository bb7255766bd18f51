// SPDX-License-Identifier: Apache-2.0
//
// Checks one AR or AW of a slot: incrementing, full-width, aligned to the beat, within 4 KiB. Combinational; holds nothing.

module via_guard_ax
  import via_pkg::*;
(
  input  axi_ax_t ax_i,
  output logic    bad_o,  // the burst breaks a rule
  output event_e  cause_o  // which one
);

  logic [9:0] last;  // beat of the burst's last byte, counted from the start of the page of its first; a burst has 256 beats at most
  logic shape;

  assign shape = ax_i.burst != BurstIncr || ax_i.size != 3'(BeatLog2) || |ax_i.addr[BeatLog2-1:0];
  assign last = 10'(ax_i.addr[PageLog2-1:BeatLog2]) + 10'(ax_i.len);
  assign bad_o = shape || |last[9:PageLog2-BeatLog2];
  assign cause_o = shape ? EvBadBurst : EvCross4k;

endmodule
