// SPDX-License-Identifier: Apache-2.0
//
// Types of the XDMA-compatible function (docs/xdma.md). Source: PG195, register space and descriptor format.

// A block uses a few of these; which ones differs.
/* verilator lint_off UNUSEDPARAM */
package via_xdma_pkg;

  /// What went wrong with a descriptor.
  typedef enum logic [3:0] {
    XErrNone     = 4'd0,
    XErrMagic    = 4'd1,  // descriptor without the magic number
    XErrAlign    = 4'd2,  // address of a descriptor is not a multiple of 32; fixed card address of several beats that is not one of a beat
    XErrDescDec  = 4'd3,  // no memory where the descriptor should be
    XErrDescSlv  = 4'd4,  // memory answered the read of the descriptor with an error
    XErrReadDec  = 4'd5,
    XErrReadSlv  = 4'd6,
    XErrWriteDec = 4'd7,
    XErrWriteSlv = 4'd8
  } xdma_err_e;

  /// A descriptor, checked. With `err` it only carries the error to its place in the order.
  typedef struct packed {
    xdma_err_e   err;
    logic        completed;  // count, log and write back its completion
    logic        stop;       // last of the list
    logic        none;       // no bytes
    logic [27:0] less;       // length less one
    logic [63:0] src;
    logic [63:0] dst;
  } xdma_desc_t;

  parameter logic [15:0] DescMagic = 16'had4b;
  parameter int unsigned DescLog2 = 5;  // 32 bytes
  parameter int unsigned DescBits = 8 << DescLog2;

  // Bits of a channel's control and status registers; what is not named differs between the two.
  parameter int unsigned BitRun = 0;  // status: busy
  parameter int unsigned BitStopped = 1;
  parameter int unsigned BitCompleted = 2;
  parameter int unsigned BitAlign = 3;
  parameter int unsigned BitMagic = 4;
  parameter int unsigned BitIdle = 6;
  parameter int unsigned BitRead = 9;
  parameter int unsigned BitWrite = 14;
  parameter int unsigned BitDesc = 19;
  parameter int unsigned BitFixed = 25;  // control only: the card address does not advance
  parameter int unsigned BitWriteBack = 26;  // control only

  /// The bits of the status register that show an error.
  function automatic logic [31:0] err_bits(input xdma_err_e err);
    unique case (err)
      XErrMagic: return 32'b1 << BitMagic;
      XErrAlign: return 32'b1 << BitAlign;
      XErrDescDec: return 32'b1 << BitDesc;
      XErrDescSlv: return 32'b1 << (BitDesc + 1);
      XErrReadDec: return 32'b1 << BitRead;
      XErrReadSlv: return 32'b1 << (BitRead + 1);
      XErrWriteDec: return 32'b1 << BitWrite;
      XErrWriteSlv: return 32'b1 << (BitWrite + 1);
      default: return '0;
    endcase
  endfunction

  /// Errors after which the engine goes on unless the control register enables them: of data read and written.
  parameter logic [31:0] DataErrBits = 32'h3ff << BitRead;

  /// Whether the engine stops at an error, `enabled` being the control register.
  function automatic logic err_stops(input xdma_err_e err, input logic [31:0] enabled);
    return (err_bits(err) & (enabled | ~DataErrBits)) != '0;
  endfunction

  /// Version in the identifiers, 0x1fcTCCVV.
  parameter logic [7:0] IdVersion = 8'h06;

endpackage
/* verilator lint_on UNUSEDPARAM */
