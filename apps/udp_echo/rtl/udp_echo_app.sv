// SPDX-License-Identifier: Apache-2.0
//
// A host on a stream of Ethernet frames (without FCS), as the peer of round-trip measurements of the network function:
//   UDP over IPv4   the datagram is returned with addresses and ports exchanged, so that every checksum stays correct
//   ICMP echo       becomes the reply; its checksum is adjusted (RFC 1624)
//   ARP request     for any address: the reply gives `mac`
// Everything else, including fragments and IPv4 options, is dropped, as is a frame that is not addressed to `mac` (ARP: or broadcast).
// Only the first beat is evaluated. Throughput: one beat a cycle. Latency: none of its own. Order: kept.

module udp_echo_app
  import via_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  input  strm_t        in_i,
  input  logic         in_valid_i,
  output logic         in_ready_o,
  output strm_t        out_o,
  output logic         out_valid_o,
  input  logic         out_ready_i,
  input  logic  [47:0] mac_i,        // MAC address, first byte lowest
  output logic  [31:0] answered_o,   // frames returned, wrapping
  output logic  [31:0] dropped_o     // frames dropped, wrapping
);

  if (DataW != 512) begin : gen_width
    $fatal(1, "the headers must lie in one beat of 64 bytes");
  end

  // Byte offsets in a frame; fields are as on the wire, so a number's first byte is its highest.
  localparam int unsigned Dst = 0, Src = 6, EtherType = 12;
  localparam int unsigned IpVersion = 14, IpFlags = 20, IpProto = 23, IpSrc = 26, IpDst = 30, Ports = 34;
  localparam int unsigned IcmpType = 34, IcmpSum = 36;
  localparam int unsigned ArpKind = 14, ArpOp = 20, ArpSha = 22, ArpSpa = 28, ArpTha = 32, ArpTpa = 38;
  localparam int unsigned HeaderBytes = 42;

  // ---------------------------------------------------------------- classification
  logic [DataW-1:0] d;
  logic for_us, broadcast, whole, ip, udp, ping, arp, answer, unused_tail;
  assign d = in_i.data;
  assign whole = in_i.keep[HeaderBytes-1];
  assign broadcast = &d[8*Dst+:48];
  assign for_us = d[8*Dst+:48] == mac_i;
  // A sender with a group address gets no reply.
  assign ip = for_us && d[8*EtherType+:16] == 16'h0008 && d[8*IpVersion+:8] == 8'h45 && (d[8*IpFlags+:16] & 16'hff3f) == '0;
  assign udp = ip && d[8*IpProto+:8] == 8'd17;
  assign ping = ip && d[8*IpProto+:8] == 8'd1 && d[8*IcmpType+:16] == 16'h0008;
  // Ethernet, IPv4, lengths 6 and 4, request.
  assign arp = (for_us || broadcast) && d[8*EtherType+:16] == 16'h0608 && d[8*ArpKind+:48] == 48'h0406_0008_0100 &&
               d[8*ArpOp+:16] == 16'h0100;
  assign answer = whole && !d[8*Src] && (udp || ping || arp);
  assign unused_tail = ^in_i.keep[StrbW-1:HeaderBytes];

  // ---------------------------------------------------------------- first beat of the reply
  // Type 8 becomes 0: the sum of the rest grows by 0x0800 with the carry added at the low end; 0xffff stays what it was.
  logic [15:0] sum;
  logic [16:0] mended;
  assign sum = {d[8*IcmpSum+:8], d[8*(IcmpSum+1)+:8]};
  assign mended = {1'b0, sum} + 17'h0800;

  strm_t first;
  always_comb begin
    first = in_i;
    first.data[8*Dst+:48] = d[8*Src+:48];
    first.data[8*Src+:48] = mac_i;
    if (arp) begin
      first.data[8*ArpOp+:16]  = 16'h0200;
      first.data[8*ArpSha+:48] = mac_i;
      first.data[8*ArpSpa+:32] = d[8*ArpTpa+:32];
      first.data[8*ArpTha+:48] = d[8*ArpSha+:48];
      first.data[8*ArpTpa+:32] = d[8*ArpSpa+:32];
    end else begin
      first.data[8*IpSrc+:32] = d[8*IpDst+:32];
      first.data[8*IpDst+:32] = d[8*IpSrc+:32];
      if (udp) begin
        first.data[8*Ports+:16] = d[8*(Ports+2)+:16];
        first.data[8*(Ports+2)+:16] = d[8*Ports+:16];
      end else begin
        first.data[8*IcmpType+:8] = 8'h00;
        {first.data[8*IcmpSum+:8], first.data[8*(IcmpSum+1)+:8]} = mended[15:0] + 16'(mended[16]);
      end
    end
  end

  // ---------------------------------------------------------------- stream
  // Of the current frame: past its first beat; dropped.
  logic inside_q, drop_q, drop, taken;
  assign drop = inside_q ? drop_q : !answer;
  assign out_o = inside_q ? in_i : first;
  assign out_valid_o = in_valid_i && !drop;
  assign in_ready_o = out_ready_i || drop;
  assign taken = in_valid_i && in_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q   <= 1'b0;
      answered_o <= '0;
      dropped_o  <= '0;
    end else if (taken) begin
      inside_q <= !in_i.last;
      if (!inside_q) begin
        answered_o <= answered_o + 32'(answer);
        dropped_o  <= dropped_o + 32'(!answer);
      end
    end
    if (taken && !inside_q) drop_q <= !answer;
  end

endmodule
