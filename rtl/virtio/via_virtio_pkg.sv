// SPDX-License-Identifier: Apache-2.0
//
// Types and constants of the virtio functions (docs/interfaces.md, section 8). Source: VIRTIO 1.3.

`ifndef VIA_FN_MASK
`define VIA_FN_MASK 'h7e
`endif
`ifndef VIA_QUEUE_SIZE
`define VIA_QUEUE_SIZE 256
`endif

// A block uses a few of these; which ones differs.
/* verilator lint_off UNUSEDPARAM */
package via_virtio_pkg;

  import via_pkg::*;

  // ---------------------------------------------------------------- geometry
  /// Largest queue a function offers, a power of two, 4 to 256; also descriptors of a queue that the card holds.
  parameter int unsigned QSizeMax = `VIA_QUEUE_SIZE;
  localparam bit QueueMacroOk = param_pow2("VIA_QUEUE_SIZE", QSizeMax, 4, 256);
  parameter int unsigned QSizeLog2 = $clog2(QSizeMax);
  /// Most queues a function may have.
  parameter int unsigned QueuesMax = 16;
  parameter int unsigned QueueW = $clog2(QueuesMax);

  // ---------------------------------------------------------------- feature bits that are not a device's own
  parameter int unsigned FIndirectDesc = 28;
  parameter int unsigned FEventIdx = 29;
  parameter int unsigned FVersion1 = 32;
  parameter int unsigned FAccessPlatform = 33;
  parameter int unsigned FRingPacked = 34;
  parameter int unsigned FInOrder = 35;
  parameter int unsigned FOrderPlatform = 36;
  parameter int unsigned FNotificationData = 38;
  parameter int unsigned FRingReset = 40;

  /// Features that the queue engine provides to every personality.
  parameter logic [63:0] EngineFeatures = 64'b1 << FIndirectDesc | 64'b1 << FEventIdx | 64'b1 << FVersion1 | 64'b1 << FAccessPlatform |
                                          64'b1 << FRingPacked | 64'b1 << FInOrder | 64'b1 << FOrderPlatform | 64'b1 << FNotificationData |
                                          64'b1 << FRingReset;

  /// Feature `feature` cannot be served without feature `needs`. All zero: an entry not used.
  typedef struct packed {
    logic [5:0] feature;
    logic [5:0] needs;
  } feature_need_t;
  parameter int unsigned NeedsMax = 4;

  /// Whether every one of `features` has what it needs.
  function automatic logic features_whole(input logic [63:0] features, input feature_need_t [NeedsMax-1:0] needs);
    features_whole = 1'b1;
    for (int unsigned i = 0; i < NeedsMax; i++) begin
      if (features[needs[i].feature] && !features[needs[i].needs]) features_whole = 1'b0;
    end
  endfunction

  /// `features` without those whose needs are not among them.
  function automatic logic [63:0] features_served(input logic [63:0] features, input feature_need_t [NeedsMax-1:0] needs);
    features_served = features;
    // A needed feature may itself need another one: as many passes as there are entries.
    for (int unsigned pass = 0; pass < NeedsMax; pass++) begin
      for (int unsigned i = 0; i < NeedsMax; i++) begin
        if (needs[i] != '0 && !features_served[needs[i].needs]) features_served[needs[i].feature] = 1'b0;
      end
    end
  endfunction

  /// The negotiated features that the engine depends on.
  typedef struct packed {
    logic event_idx;
    logic indirect;
    logic packed_ring;
    logic in_order;
    logic notif_data;
  } vq_feat_t;

  /// A queue as the driver set it up. Fields are stable while `enable` is high.
  typedef struct packed {
    logic        enable;
    logic [15:0] size;    // entries, 1 to QSizeMax; a power of two unless packed
    logic [63:0] desc;    // descriptor table, or packed ring
    logic [63:0] driver;  // available ring, or driver event suppression
    logic [63:0] device;  // used ring, or device event suppression
  } vq_cfg_t;

  /// A notification. `offset` and `wrap` are meaningful with NOTIFICATION_DATA only.
  typedef struct packed {
    logic [QueueW-1:0] queue;
    logic              wrap;
    logic [14:0]       offset;  // split: low 15 bits of the available index is {wrap, offset} as 16 bits
  } vq_notify_t;

  /// Why a queue was stopped; DEVICE_NEEDS_RESET is set then.
  typedef enum logic [3:0] {
    VqErrNone     = 4'd0,
    VqErrIndex    = 4'd1,   // available index ahead by more than the queue's size, or notification data does not fit
    VqErrHead     = 4'd2,   // head or next outside the table
    VqErrLoop     = 4'd3,   // chain longer than the queue's size
    VqErrIndirect = 4'd4,   // indirect table: nested, with NEXT, empty, not a multiple of 16, too long, not negotiated
    VqErrOrder    = 4'd5,   // readable descriptor after a writable one
    VqErrLen      = 4'd6,   // zero length, the buffer wraps the address space, or the chain holds more than 4 GiB
    VqErrRead     = 4'd7,   // host memory returned an error for a ring or descriptor read
    VqErrWrite    = 4'd8,   // host memory returned an error for a write
    VqErrPayload  = 4'd9,   // host memory returned an error for a payload read
    VqErrRequest  = 4'd10,  // the personality cannot respond: chain without the parts its device needs
    VqErrAlign    = 4'd11   // ring address misaligned
  } vq_err_e;

  // ---------------------------------------------------------------- chains: what via_vq_fetch found
  /// A descriptor as the card holds it. Flags are checked, indirect tables are resolved.
  typedef struct packed {
    logic        write;  // device-writable
    logic        last;   // of its chain
    logic [31:0] len;    // bytes, not zero
    logic [63:0] addr;
  } vq_desc_t;

  /// The same as via_vq_gather reads it, with its first burst, which reaches to a multiple of the largest burst.
  typedef struct packed {
    logic [7:0] beats;  // minus one
    logic       whole;  // of the whole buffer
    vq_desc_t   desc;
  } vq_read_t;

  /// A whole chain.
  typedef struct packed {
    logic [15:0]          id;      // head index, or buffer id
    logic [15:0]          slots;   // ring slots it occupies (packed), 1 for split
    logic [QSizeLog2-1:0] first;   // index of its first descriptor in the queue's part of the store; they follow, modulo QSizeMax
    logic [QSizeLog2:0]   nread;   // device-readable descriptors; they come first
    logic [QSizeLog2:0]   nwrite;  // device-writable descriptors
    logic [31:0]          rlen;    // bytes readable, saturated
    logic [31:0]          wlen;    // bytes writable, saturated
  } vq_chain_t;

  // ---------------------------------------------------------------- inside via_vq_fetch
  /// Descriptors to walk: `count` consecutive ones of a queue's table or packed ring, read in one burst; the walker gets a token for each of
  /// its 64-byte lines.
  typedef struct packed {
    logic [QueueW-1:0]    queue;
    logic                 epoch_f;  // epoch of the queue's chains: flips when the fetch restarts after the last whole chain
    logic                 epoch_w;  // epoch of the queue's lines: flips when the walker stops at an unavailable descriptor
    vq_err_e              err;      // not VqErrNone: there is nothing to walk
    logic                 wrap;     // wrap counter (packed)
    logic                 safe;     // known available before the line is read
    logic                 share;    // follows a token of the same queue and epochs, and was available before the line of that one was read
    logic                 more;     // another token that shares follows at once, unless the queue is stopped
    logic [4:0]           count;    // 1 to 16, in 256 aligned bytes; of a line 1 to 4
    logic [QSizeLog2-1:0] index;
  } vq_token_t;

  /// A line that was requested, by its number in the queue's table: the first one is number 0.
  typedef struct packed {
    logic [QueueW-1:0] queue;
    logic              epoch_f;
    logic              epoch_w;
    logic              safe;
    logic [6:0]        number;
    logic [6:0]        prev;     // the number minus one
  } vq_line_t;

  /// A burst of lines that was requested.
  typedef struct packed {
    logic       down;  // its tokens name its lines from the last to the first
    logic [2:0] len;   // lines minus one
  } vq_burst_t;

  /// Whether descriptor `index` lies in line `number` of its table, which begins at descriptor `align` of line 0. `prev`: the number minus
  /// one.
  function automatic logic lies_in(input logic [QSizeLog2-1:0] index, input logic [1:0] align, input logic [6:0] number,
                                   input logic [6:0] prev);
    logic over;
    over = index[1] & align[1] | (index[1] | align[1]) & index[0] & align[0];
    return over ? 7'(index >> 2) == prev : 7'(index >> 2) == number;
  endfunction

  /// A piece of a chain as it leaves the walker.
  typedef struct packed {
    logic [QueueW-1:0]  queue;
    logic               epoch_f;
    logic               last;
    vq_err_e            err;       // then `last` is set
    logic               indirect;  // `addr` and `len` are those of a table
    logic               write;
    logic [QSizeLog2:0] slots;     // ring slots of the chain, with `last`
    logic [15:0]        id;
    logic [31:0]        len;
    logic [63:0]        addr;
  } vq_elem_t;

  /// An indirect table that a piece refers to.
  typedef struct packed {
    logic [8:0]  entries;  // 1 to QSizeMax
    logic [59:0] addr;     // bits 63:4
  } vq_table_t;

  // ---------------------------------------------------------------- engine and personality
  /// A request: the chain's readable bytes follow on the read stream, if there are any.
  typedef struct packed {
    logic [QueueW-1:0] queue;
    logic [31:0]       rlen;
    logic [31:0]       wlen;
  } vq_req_t;

  /// A response: completes the oldest open chain of the queue with `len` bytes, which follow on the write stream.
  /// `merge`: spreads them over as many chains as they need (VIRTIO_NET_F_MRG_RXBUF); the engine says how many.
  typedef struct packed {
    logic [QueueW-1:0] queue;
    logic              merge;
    logic [31:0]       len;
  } vq_rsp_t;

  /// A beat of the read or write stream: dense; `keep` is a run of ones from bit 0, all ones unless `last`.
  typedef struct packed {
    logic             last;
    logic [StrbW-1:0] keep;
    logic [DataW-1:0] data;
  } vq_beat_t;

  // ---------------------------------------------------------------- functions of the card
  /// Function 0 is the management function; these are the others. The XDMA-compatible one is behind the same ports.
  parameter int unsigned FnNet = 1;
  parameter int unsigned FnBlk = 2;
  parameter int unsigned FnConsole = 3;
  parameter int unsigned FnEntropy = 4;
  parameter int unsigned FnInput = 5;
  parameter int unsigned FnXdma = 6;
  parameter int unsigned NumFn = 6;  // without function 0
  parameter int unsigned FnW = 4;

  /// Functions that a build has, bit f for function f.
  localparam bit FnMacroOk = param_in("VIA_FN_MASK", `VIA_FN_MASK, 0, (2 << NumFn) - 1);
  parameter logic [NumFn:0] FnBuilt = (NumFn + 1)'(`VIA_FN_MASK);

  /// Those of them that work with this data path: the queue engine reads descriptors in lines of 64 bytes.
  function automatic logic [NumFn:0] functions_of(input logic [NumFn:0] mask);
    return (DataW == 512) ? mask : mask & (NumFn + 1)'(1 << FnXdma);
  endfunction

  // BAR0 of a virtio function, 64 KiB. All of them the same.
  parameter logic [15:0] BarCommon = 16'h0000;
  parameter logic [15:0] BarIsr = 16'h1000;
  parameter logic [15:0] BarDevice = 16'h2000;
  parameter logic [15:0] BarNotify = 16'h3000;  // queue q at 4 q
  parameter logic [15:0] BarStat = 16'h4000;  // counters, via_vq_stat
  parameter logic [15:0] BarMsixTable = 16'h8000;  // kept by the PCIe core
  parameter logic [15:0] BarMsixPending = 16'hc000;
  parameter logic [7:0] CfgCaps = 8'h90;  // virtio capabilities in configuration space: from here to 8'hff

  // BARs of the XDMA-compatible function, 64 KiB each, in the vendor's order.
  parameter logic [2:0] XdmaBarUser = 3'd0;  // registers of the app in slot s at 0x1000 s
  parameter logic [2:0] XdmaBarDma = 3'd1;

  /// An access to a function's registers or to its capabilities. One at a time; held until the response.
  typedef struct packed {
    logic [FnW-1:0] fn;
    logic           cfg;    // configuration space rather than a BAR
    logic [2:0]     bar;    // which BAR; virtio functions have BAR0 only
    logic           write;
    logic [15:0]    addr;   // byte address of a 32-bit word
    logic [3:0]     strb;   // bytes written, or requested: a read of the ISR byte clears it
    logic [31:0]    wdata;
  } fn_req_t;

  /// Word `old` with the bytes of `data` that `strb` selects.
  function automatic logic [31:0] merge_bytes(input logic [31:0] old, input logic [31:0] data, input logic [3:0] strb);
    for (int unsigned i = 0; i < 4; i++) merge_bytes[8*i+:8] = strb[i] ? data[8*i+:8] : old[8*i+:8];
  endfunction

  /// `beat` rotated by `by` bytes: byte 0 becomes byte `by`. Each step rotates by a multiple of four times the previous unit: a 4:1
  /// multiplexer.
  function automatic logic [DataW-1:0] rotated(input logic [DataW-1:0] beat, input logic [BeatLog2-1:0] by);
    rotated = beat;
    for (int unsigned i = 0; i < BeatLog2; i += 2) begin
      unique case (2'((BeatLog2 + 1)'(by) >> i))
        2'd0: rotated = rotated;
        2'd1: rotated = rotated << (8 << i) | rotated >> (DataW - (8 << i));
        2'd2: rotated = rotated << (16 << i) % DataW | rotated >> (DataW - (16 << i) % DataW);
        default: rotated = rotated << (24 << i) % DataW | rotated >> (DataW - (24 << i) % DataW);
      endcase
    end
  endfunction

  /// What a function's user side is connected to, from the management registers.
  typedef enum logic [1:0] {
    AttachNone  = 2'd0,  // nothing is received, what is sent is dropped (net, console); the disk's data goes straight to its store
    AttachBoard = 2'd1,  // the board's port of this function: Ethernet, UART, entropy source, keys
    AttachSlot  = 2'd2   // a stream of a slot
  } attach_e;

  /// When a waiting queue without buffers is polled although the driver has not notified (via_vq_look).
  typedef struct packed {
    logic [15:0] count;   // consecutive polls that find nothing, 0 = no limit
    logic [15:0] period;  // cycles between two polls, 0 = no polling
  } vq_look_t;

  /// How a flush of the disk waits for the host (via_fn_flush).
  typedef struct packed {
    logic [15:0] limit;   // in 2^18 cycles, 0 = flushes do not wait for the host
    logic        failed;  // the host's result for flush number `count`
    logic [15:0] count;
  } flush_ctrl_t;

  /// Feature bits of a virtio function.
  typedef struct packed {
    logic [63:0] supported;   // by device and engine
    logic [63:0] offered;     // to the driver
    logic [63:0] negotiated;  // 0 before FEATURES_OK
  } fn_features_t;

  typedef struct packed {
    logic [15:0] reach;      // xdma: slots whose apps' registers its user BAR reaches
    logic        up;         // link is up (net), device is there
    attach_e     kind;
    logic [3:0]  slot;       // AttachSlot: this slot and
    logic [1:0]  stream;     // this stream of it, input and output
    logic [47:0] mac;        // net: first byte in the lowest byte
    logic [47:0] base;       // blk: address of the store, in slot `store`
    logic [3:0]  store;      // blk: slot whose address space holds the disk
    logic [39:0] sectors;    // blk: size in 512-byte sectors; 0 = no disk
    logic        read_only;  // blk: the driver may not write
    logic [15:0] moderate;   // minimum cycles between two interrupts of a queue, 0 = no limit
    logic        header;     // blk: messages to the user side begin with the number of their sector
    flush_ctrl_t flush;      // blk: flushes that wait for the host
    logic [15:0] rows;       // console: size in characters
    logic [15:0] cols;       // console: size in characters
    vq_look_t    look;
    logic [63:0] offer;      // features that the driver may be offered
  } fn_ctrl_t;

endpackage
/* verilator lint_on UNUSEDPARAM */
