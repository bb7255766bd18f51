// SPDX-License-Identifier: Apache-2.0
//
// Target of an address that enters the crossbar. Combinational.
//   addr[AddrErrBit]  -> error response
//   addr[AddrHostBit] -> host memory
//   else              -> channel addr[ChanLog2 +: log2(NumChan)]; bits above are ignored: MMU and DMA engines check them

module via_xbar_route
  import via_pkg::*;
#(
  parameter int unsigned NumSub = NumChan + 1,
  parameter bit ToHost = 1'b1  // without it an address in host memory is an error
) (
  input  logic [AddrW-1:0] addr_i,
  output logic [ NumSub:0] tgt_o    // one-hot: channels, host memory, error response
);

  localparam bit NumSubOk = param_in("via_xbar_route NumSub", NumSub, NumChan + 1, NumChan + 1);

  localparam int unsigned ChanW = (NumChan > 1) ? $clog2(NumChan) : 1;

  logic err, host;
  assign err  = addr_i[AddrErrBit] || addr_i[AddrHostBit] && !ToHost;
  assign host = addr_i[AddrHostBit] && !err;
  always_comb begin
    for (int unsigned c = 0; c < NumChan; c++) begin
      tgt_o[c] = !err && !host && (NumChan == 1 || addr_i[ChanLog2+:ChanW] == ChanW'(c));
    end
    tgt_o[NumChan] = host;
    tgt_o[NumSub]  = err;
  end

endmodule
