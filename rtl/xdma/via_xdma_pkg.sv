// SPDX-License-Identifier: Apache-2.0
//
// Types of the XDMA-compatible function (docs/xdma.md). Source: PG195, register space and descriptor format.

// A block uses a few of these; which ones differs.
/* verilator lint_off UNUSEDPARAM */
package via_xdma_pkg;

  /// What went wrong with a descriptor.
  typedef enum logic [3:0] {
    XErrNone = 4'd0,
    XErrMagic = 4'd1,  // descriptor without the magic number
    XErrAlign = 4'd2,  // address of a descriptor is not a multiple of 32; or a fixed card address of several beats is not aligned to a beat
    XErrDescDec = 4'd3,  // no memory at the descriptor's address
    XErrDescSlv = 4'd4,  // memory returned an error for the read of the descriptor
    XErrReadDec = 4'd5,
    XErrReadSlv = 4'd6,
    XErrWriteDec = 4'd7,
    XErrWriteSlv = 4'd8
  } xdma_err_e;

  /// A descriptor, checked. With `err` set it only carries the error to its position in the order.
  typedef struct packed {
    xdma_err_e   err;
    logic        completed;  // count, log and write back its completion
    logic        stop;       // last of the list
    logic        none;       // no bytes
    logic [27:0] less;       // length minus one
    logic [63:0] src;
    logic [63:0] dst;
  } xdma_desc_t;

  /// Registers of a channel, one bit each: decoded a cycle before the access. `sg_`: of its SGDMA block, the rest of its channel block.
  typedef struct packed {
    logic id;
    logic control;
    logic control_set;
    logic control_clear;
    logic status;
    logic status_clear;
    logic count;
    logic align;
    logic wb_lo;
    logic wb_hi;
    logic mask;
    logic mask_set;
    logic mask_clear;
    logic perf;
    logic cycles_lo;
    logic cycles_hi;
    logic beats_lo;
    logic beats_hi;
    logic sg_id;
    logic sg_first_lo;
    logic sg_first_hi;
    logic sg_adj;
    logic sg_credit;
  } xdma_words_t;

  /// The register at a byte address of a block; none if there is none.
  function automatic xdma_words_t xdma_words(input logic sg, input logic [7:0] addr);
    xdma_words_t w;
    w = '0;
    if (sg) begin
      unique case (addr)
        8'h00:   w.sg_id = 1'b1;
        8'h80:   w.sg_first_lo = 1'b1;
        8'h84:   w.sg_first_hi = 1'b1;
        8'h88:   w.sg_adj = 1'b1;
        8'h8c:   w.sg_credit = 1'b1;
        default: ;
      endcase
    end else begin
      unique case (addr)
        8'h00:   w.id = 1'b1;
        8'h04:   w.control = 1'b1;
        8'h08:   w.control_set = 1'b1;
        8'h0c:   w.control_clear = 1'b1;
        8'h40:   w.status = 1'b1;
        8'h44:   w.status_clear = 1'b1;
        8'h48:   w.count = 1'b1;
        8'h4c:   w.align = 1'b1;
        8'h88:   w.wb_lo = 1'b1;
        8'h8c:   w.wb_hi = 1'b1;
        8'h90:   w.mask = 1'b1;
        8'h94:   w.mask_set = 1'b1;
        8'h98:   w.mask_clear = 1'b1;
        8'hc0:   w.perf = 1'b1;
        8'hc4:   w.cycles_lo = 1'b1;
        8'hc8:   w.cycles_hi = 1'b1;
        8'hcc:   w.beats_lo = 1'b1;
        8'hd0:   w.beats_hi = 1'b1;
        default: ;
      endcase
    end
    return w;
  endfunction

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
