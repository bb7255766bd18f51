// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Types and constants shared by every block of the shell.
//
// The geometry of a card is fixed when it is built: each value below is a macro with a default, so
// one command-line define changes it everywhere. In every packed struct `data` (or `addr`) is the
// last member: it then starts at bit 0, which keeps simulation and wave viewing word-aligned.

`ifndef VIA_DATA_W
`define VIA_DATA_W 512
`endif
`ifndef VIA_NUM_SLOTS
`define VIA_NUM_SLOTS 4
`endif
`ifndef VIA_NUM_CHAN
`define VIA_NUM_CHAN 4
`endif
`ifndef VIA_NUM_STREAMS
`define VIA_NUM_STREAMS 1
`endif

// A block uses a few of these; which ones differs.
/* verilator lint_off UNUSEDPARAM */
package via_pkg;

  // ---------------------------------------------------------------- parameters
  // A value outside its range is refused at elaboration: these are constant functions, and `$fatal` in one ends elaboration with its
  // message (IEEE 1800-2017, 13.4.3). `name` names module and parameter; the functions return one.

  /// A parameter that may be `min` to `max`.
  function automatic bit param_in(input string name, input int unsigned value, input int unsigned min, input int unsigned max);
    if (value < min || value > max) $fatal(1, "%s is %0d: must be %0d to %0d", name, value, min, max);
    return 1'b1;
  endfunction

  /// A parameter that may be a power of two, `min` to `max`.
  function automatic bit param_pow2(input string name, input int unsigned value, input int unsigned min, input int unsigned max);
    if (value < min || value > max || (value & (value - 1)) != 0) begin
      $fatal(1, "%s is %0d: must be a power of two, %0d to %0d", name, value, min, max);
    end
    return 1'b1;
  endfunction

  // ---------------------------------------------------------------- geometry
  /// Width of every data path in bits: 64, 128, 256 or 512.
  parameter int unsigned DataW = `VIA_DATA_W;
  /// Slots, 1 to 16.
  parameter int unsigned NumSlots = `VIA_NUM_SLOTS;
  /// DRAM channels, a power of two, 1 to 16.
  parameter int unsigned NumChan = `VIA_NUM_CHAN;
  /// Input streams of a slot, and output streams of a slot: 1 to 14 (the MMU's port has 16 sources: these, the app and the disk).
  parameter int unsigned NumStreams = `VIA_NUM_STREAMS;
  localparam bit WidthMacroOk = param_pow2("VIA_DATA_W", DataW, 64, 512);
  localparam bit SlotsMacroOk = param_in("VIA_NUM_SLOTS", NumSlots, 1, 16);
  localparam bit ChanMacroOk = param_pow2("VIA_NUM_CHAN", NumChan, 1, 16);
  localparam bit StreamsMacroOk = param_in("VIA_NUM_STREAMS", NumStreams, 1, 14);

  parameter int unsigned StrbW = DataW / 8;
  parameter int unsigned BeatLog2 = $clog2(StrbW);
  parameter int unsigned AddrW = 64;
  parameter int unsigned IdW = 6;
  parameter int unsigned SlotW = (NumSlots > 1) ? $clog2(NumSlots) : 1;

  /// Virtual addresses of a slot are 48 bits wide.
  parameter int unsigned VaW = 48;
  parameter int unsigned PageLog2 = 12;
  parameter int unsigned HugeLog2 = 21;
  /// Translations that the MMU of a slot holds: ways and sets of its small pages, and of its huge pages.
  parameter int unsigned MmuPageWays = 4;
  parameter int unsigned MmuPageSets = 1024;
  parameter int unsigned MmuHugeWays = 4;
  parameter int unsigned MmuHugeSets = 256;
  /// A card address names the channel in bits [ChanLog2 +: log2(NumChan)]: 16 GiB a channel.
  parameter int unsigned ChanLog2 = 34;
  /// Card addresses are this wide.
  parameter int unsigned CardAddrW = ChanLog2 + $clog2(NumChan);
  /// An AXI burst neither crosses 4 KiB nor has more than 256 beats.
  parameter int unsigned MaxBurstBeats = (4096 / StrbW < 256) ? 4096 / StrbW : 256;
  // A burst of more beats is long for via_window.
  parameter int unsigned WindowLong = 8;

  // Where a translated address goes (see via_xbar).
  parameter int unsigned AddrHostBit = 63;  // host memory; bits 51:0 are the bus address
  parameter int unsigned AddrErrBit = 62;  // the crossbar itself completes the access with SLVERR

  /// Whether the card lacks memory for any byte of card addresses `first` to `last` (up to 4 GiB apart), each channel having `chan_mib`
  // MiB. Blocks that send addresses to the crossbar check this first: beyond the end, addresses alias to other memory.
  function automatic logic card_outside(input logic [AddrW-1:0] first, input logic [AddrW-1:0] last, input logic [31:0] chan_mib);
    return (first >> CardAddrW) != '0 || (last >> CardAddrW) != '0 ||
        32'(first[ChanLog2-1:20]) >= chan_mib || 32'(last[ChanLog2-1:20]) >= chan_mib ||
        (first >> ChanLog2) != (last >> ChanLog2) && chan_mib < 32'(1 << (ChanLog2 - 20));
  endfunction

  // ---------------------------------------------------------------- AXI4 channels
  typedef enum logic [1:0] {
    RespOkay   = 2'b00,
    RespExOkay = 2'b01,
    RespSlvErr = 2'b10,
    RespDecErr = 2'b11
  } axi_resp_e;

  /// AxBURST of an incrementing burst, the only kind inside the shell.
  parameter logic [1:0] BurstIncr = 2'b01;

  /// AR or AW. `len` is beats - 1. Inside the shell: INCR, full-width beats only.
  typedef struct packed {
    logic [IdW-1:0]   id;
    logic [1:0]       burst;
    logic [2:0]       size;
    logic [7:0]       len;
    logic [AddrW-1:0] addr;
  } axi_ax_t;

  typedef struct packed {
    logic             last;
    logic [StrbW-1:0] strb;
    logic [DataW-1:0] data;
  } axi_w_t;

  typedef struct packed {
    logic [IdW-1:0] id;
    axi_resp_e      resp;
  } axi_b_t;

  /// A piece of a burst on its way from a manager to a target of the crossbar: all of it, or a part.
  typedef struct packed {
    logic                 last;   // the last piece of its burst
    logic [7:0]           len;    // beats - 1
    logic [51-BeatLog2:0] place;  // address in the target, in beats
  } xbar_piece_t;

  typedef struct packed {
    logic [IdW-1:0]   id;
    axi_resp_e        resp;
    logic             last;
    logic [DataW-1:0] data;
  } axi_r_t;

  // ---------------------------------------------------------------- streams
  /// One AXI4-Stream beat. `last` only at the true end of a message; `keep` is all ones except on
  /// the last beat, where it is a run of ones from bit 0. Messages with different ids may interleave.
  typedef struct packed {
    logic [7:0]       id;
    logic             last;
    logic [StrbW-1:0] keep;
    logic [DataW-1:0] data;
  } strm_t;

  /// Bytes of a beat behind its first, from its `keep`, which is a run of ones from bit 0: bit b is the parity of every 2^b-th one behind the first.
  function automatic logic [BeatLog2-1:0] bytes_behind_first(input logic [StrbW-1:0] keep);
    bytes_behind_first = '0;
    for (int unsigned b = 0; b < BeatLog2; b++) begin
      for (int unsigned i = 1 << b; i < StrbW; i += 1 << b) bytes_behind_first[b] ^= keep[i];
    end
  endfunction

  /// The `keep` of a beat with `bytes` bytes behind its first.
  function automatic logic [StrbW-1:0] keep_behind_first(input logic [BeatLog2-1:0] bytes);
    for (int unsigned i = 0; i < StrbW; i++) keep_behind_first[i] = BeatLog2'(i) <= bytes;
  endfunction

  // ---------------------------------------------------------------- routes
  /// Streams of each slot that via_vio_switch connects, from stream 0 on: at most 16 of all slots.
  localparam int unsigned VioStreams = (NumStreams * NumSlots <= 16) ? NumStreams : 16 / NumSlots;

  /// Kinds of ends of a route.
  typedef enum logic [1:0] {
    VioOwn    = 2'd0,  // as a source: the one that the sink has without a route, which is its mover, or the function of a board's port
    VioStream = 2'd1,  // a slot's stream: as a source its output, as a sink its input
    VioFn     = 2'd2,  // the user side of a function
    VioBoard  = 2'd3   // the board's port of a function
  } vio_kind_e;

  typedef struct packed {
    vio_kind_e  kind;
    logic [3:0] slot;
    logic [3:0] index;  // stream of the slot; number of the function
  } vio_end_t;

  /// A route that the host sets.
  typedef struct packed {
    logic     now;     // do not wait for the end of a message
    vio_end_t source;
    vio_end_t sink;
  } vio_route_t;

  /// What a sink takes now.
  typedef struct packed {
    logic     pending;  // not yet what was set last, or the former source's data has not left
    vio_end_t source;
  } vio_state_t;

  // ---------------------------------------------------------------- system monitor
  parameter int unsigned SysmonValues = 13;  // last, highest and lowest of four channels, and a current
  typedef struct packed {
    logic busy;
    logic valid;   // the values are those of a complete reading
    logic failed;  // the last reading was given up
  } sysmon_state_t;

  // ---------------------------------------------------------------- commands, completions, events
  typedef enum logic [7:0] {
    OpNop     = 8'h00,
    OpH2c     = 8'h02,  // host memory addr0 -> card memory addr1, len bytes
    OpC2h     = 8'h03,  // card memory addr1 -> host memory addr0, len bytes
    OpFill    = 8'h04,  // zero len bytes of card memory at addr1
    OpMap     = 8'h10,  // enter the translation addr0 -> addr1 (a pte_t); page size in flags
    OpUnmap   = 8'h11,  // remove the translation of addr0; completes when nothing uses it any more
    OpDeny    = 8'h12,  // complete the fault pending on page addr0 with an error
    OpScan    = 8'h13,  // report and clear the accessed bit of addr0's translation
    OpMoveIn  = 8'h20,  // virtual range addr0, len -> input stream `port`
    OpMoveOut = 8'h21   // output stream `port` -> virtual range addr0, at most len bytes
  } op_e;

  // cmd_t.flags
  parameter int unsigned FlagFence = 0;  // DMA: start after every earlier OpMap/OpUnmap of the slot
  parameter int unsigned FlagEop = 1;  // OpMoveIn: raise `last` on the final beat
  parameter int unsigned FlagHuge = 2;  // OpMap/OpUnmap/OpScan: a 2 MiB page
  parameter int unsigned FlagTable = 3;  // OpMap/OpUnmap/OpScan: the entry in the page table in card memory, too

  /// A command as it lies in the command ring: 32 bytes, four little-endian 64-bit words.
  typedef struct packed {
    logic [31:0] rsvd;   // word 3 [63:32], must be zero
    logic [31:0] len;    // word 3 [31:0], bytes
    logic [63:0] addr1;  // word 2
    logic [63:0] addr0;  // word 1
    logic [31:0] tag;    // word 0 [63:32], returned in the completion
    logic [7:0]  id;     // word 0 [31:24], stream id of OpMoveIn
    logic [7:0]  port;   // word 0 [23:16], stream index
    logic [7:0]  flags;  // word 0 [15:8]
    logic [7:0]  op;  // op_e; unknown values complete with StBadOp
  } cmd_t;

  typedef enum logic [7:0] {
    StOk       = 8'h00,
    StBadOp    = 8'h01,  // unknown operation, reserved bits set, or no such port
    StHostErr  = 8'h02,  // host memory returned an error
    StCardErr  = 8'h03,  // card memory returned an error
    StBadArg   = 8'h04,  // zero length, misaligned address, range wraps or leaves its space
    StFull     = 8'h05,  // more moves outstanding than the port's queue holds
    StAborted  = 8'h06,  // the slot was reset or isolated first
    StFault    = 8'h07,  // a page of the range was denied
    StNotFound = 8'h08   // OpUnmap/OpScan/OpDeny: nothing there (for information)
  } status_e;

  // cpl_t.flags
  parameter int unsigned CplLast = 0;  // OpMoveOut: ended with `last`
  parameter int unsigned CplAccessed = 1;  // OpUnmap/OpScan: the page was accessed
  parameter int unsigned CplDirty = 2;  // OpUnmap/OpScan: the page was written
  parameter int unsigned CplVictim = 3;  // OpMap: an older translation that is not in the page table was displaced, see `info`
  parameter int unsigned CplVictimAccessed = 4;
  parameter int unsigned CplVictimDirty = 5;
  parameter int unsigned CplVictimHuge = 6;
  parameter int unsigned CplDamaged = 7;  // OpUnmap/OpScan with FlagTable: the page's entry had wrong check bits, so the page may have been written

  /// A completion as an engine hands it over. In the ring: word 0 = {tag, 8'h0, status, op, flags},
  /// word 1 = bytes, word 2 = info, word 3 = {phase, time[62:0]}: who sees the phase sees all of it.
  typedef struct packed {
    logic [63:0] info;    // OpMap: virtual address of the displaced page; OpMoveOut: stream id
    logic [31:0] bytes;   // bytes moved; OpMap, OpUnmap, OpScan, OpDeny: [15:0] how many of these were carried out before it
    logic [31:0] tag;
    status_e     status;
    logic [7:0]  op;
    logic [7:0]  flags;
  } cpl_t;

  typedef enum logic [7:0] {
    EvMiss       = 8'h01,  // no translation: waits for OpMap or OpDeny
    EvPerm       = 8'h02,  // no permission: waits for OpMap or OpDeny
    EvBounds     = 8'h03,  // address wider than VaW: already completed with an error
    EvTable      = 8'h04,  // the page's entry in the page table is damaged: waits for OpMap or OpDeny
    EvCross4k    = 8'h10,  // guard: burst crosses 4 KiB
    EvWlast      = 8'h11,  // guard: WLAST does not match AWLEN
    EvBadBurst   = 8'h12,  // guard: not INCR, or not full-width beats, or misaligned
    EvStuck      = 8'h13,  // guard: a write burst begun and not finished in time
    EvStream     = 8'h14,  // guard: keep or last against the stream contract
    EvUnstable   = 8'h15,  // guard: valid dropped before ready
    EvRegTimeout = 8'h16,  // the slot did not respond to a register access
    EvRing       = 8'h17,  // a ring of the slot was stopped; `info` = 0 tail jumped, 1 command read, 2 completion write failed
    EvIrq        = 8'h20,  // the app raised its interrupt; `info` counts them
    EvFlush      = 8'h21   // a flush of the disk in this slot waits for the host (docs/interfaces.md, section 8)
  } event_e;

  /// Which part of a slot an event comes from. Of a burst at the port of the MMU the two high bits of its id say it.
  typedef enum logic [7:0] {
    SrcMemory    = 8'd0,  // memory port of the app
    SrcMover     = 8'd1,  // also the disk's accesses, whose misses are like those of a mover
    SrcStream    = 8'd2,
    SrcRegisters = 8'd3,  // a register access that timed out, and the app's interrupts
    SrcRings     = 8'd4,
    SrcDisk      = 8'd5   // a flush that waits for the host
  } evt_source_e;

  /// An event as a block hands it over. In the ring: word 0 = {40'h0, source, is_write, cause} (8
  /// bits each), word 1 = va, word 2 = info, word 3 = {phase, time[62:0]}. `info` of EvMiss, EvPerm and EvTable: bytes of the burst [15:0], and
  /// how many commands for translations were carried out before [31:16]: those have not answered it.
  typedef struct packed {
    logic [63:0] info;
    logic [63:0] va;
    evt_source_e source;
    logic        is_write;
    event_e      cause;
  } evt_t;

  // ---------------------------------------------------------------- translation
  /// Page-table entry as OpMap carries it in addr1.
  typedef struct packed {
    logic [11:0] rsvd_hi;  // must be zero
    logic [39:0] ppn;      // byte address bits 51:12
    logic [7:0]  rsvd_lo;  // must be zero
    logic        host;     // host memory rather than card memory
    logic        w;
    logic        r;
    logic        v;        // must be one
  } pte_t;

  /// Entry of the page table in card memory: eight little-endian bytes. All zero is an entry without a page. The card writes the lowest
  // byte by itself, by its byte strobe, so it may do so while others write the rest.
  parameter int unsigned TableEntryLog2 = 3;
  parameter int unsigned TableMinLog2 = 17;  // entries of the smallest table: above its index is the tag
  parameter int unsigned TableMaxLog2 = 26;
  parameter int unsigned TableTagW = VaW - PageLog2 - TableMinLog2;
  typedef struct packed {
    logic [TableTagW-1:0] tag;       // virtual address bits 47:29
    logic [25:0]          ppn;       // card address bits 37:12
    logic                 w;
    logic                 r;
    logic                 v;
    logic [7:0]           check;     // table_check of the bits above
    logic [5:0]           rsvd;      // zero
    logic                 dirty;     // a write was translated; until then the card permits none by this entry
    logic                 accessed;  // an access was translated
  } table_pte_t;

  /// Check bits of an entry: CRC-8 (polynomial 0x07, from the top bit, initially 0) of its upper 48 bits.
  function automatic logic [7:0] table_check(input logic [47:0] bits);
    logic [7:0] crc;
    crc = '0;
    for (int i = 47; i >= 0; i--) crc = {crc[6:0], 1'b0} ^ ((crc[7] ^ bits[i]) ? 8'h07 : 8'h00);
    return crc;
  endfunction

  /// Page table of one slot, and the memory that no translation of any slot may lead to.
  typedef struct packed {
    logic [13:0]           keep_end;    // 2 MiB blocks [keep_first, keep_end) of every channel are out of reach
    logic [13:0]           keep_first;
    logic [CardAddrW-21:0] base;        // card address of the table in MiB, a multiple of its size
    logic [4:0]            size_log2;   // entries; TableMinLog2 to TableMaxLog2
    logic                  enable;
  } table_cfg_t;

  // ---------------------------------------------------------------- rings and slot control
  /// One ring in host memory, from the slot's registers.
  typedef struct packed {
    logic        enable;     // a rising edge sets the card's index of the ring to zero
    logic [3:0]  size_log2;  // entries, 2^4 to 2^15
    logic [63:0] base;       // bus address, 4 KiB aligned
  } ring_cfg_t;

  /// Ring indices are free-running modulo 2^16; entry = index mod size. The phase bit of an entry is
  /// the inverse of bit `size_log2` of its index: 1 on the first pass over a zeroed ring.
  typedef logic [15:0] ring_idx_t;

  /// Bits of the weight with which a manager shares card memory, from 1.
  localparam int unsigned WeightW = 4;
  /// Beats that via_share gives at a time for host memory: weight times quantum.
  typedef logic [$clog2(MaxBurstBeats) + WeightW - 1:0] host_quanta_t;

  /// Log2 of the largest quantum of a DRAM channel, in beats: via_xbar charges no burst with more.
  localparam int unsigned ChanQuantumLog2 = ($clog2(MaxBurstBeats) < 6) ? $clog2(MaxBurstBeats) : 6;

  /// How all that is shared is shared.
  typedef struct packed {
    logic       plain;      // round robin by bursts, whatever weights and lengths
    logic [3:0] chan_log2;  // log2 of the quantum of DRAM channels, in beats, at most ChanQuantumLog2
    logic [3:0] host_log2;  // log2 of that of host memory, at most that of MaxBurstBeats
  } share_cfg_t;

  /// Who shares the host port: the DMA of pages (0), slots together (1), function f (1 + f).
  localparam int unsigned HostShares = 8;
  typedef struct packed {
    logic [HostShares-1:0]              first;   // goes before the others
    logic [HostShares-1:0][WeightW-1:0] weight;  // from 1
  } host_share_t;

  /// How a slot shares card and host memory besides its weight (via_slot_meter). Beats are of DataW bits.
  typedef struct packed {
    logic       first;  // goes before slots that do not, while its bucket is not below zero
    logic       limit;  // its bucket below zero, it waits
    logic [7:0] cap;    // in 16 beats: those under way each way; 0 any number
    logic [9:0] rate;   // in 1/256 beats a cycle, reads and writes together: what the bucket gains; 0 no bucket
    logic [7:0] depth;  // in 16 beats: what the bucket holds
  } sched_cfg_t;

  /// What a slot has requested of memory; index 0 reads, 1 writes.
  typedef struct packed {
    logic [1:0][1:0][31:0] beats;   // [way][1 host memory, 0 card memory], modulo 2^32
    logic [1:0][31:0]      waited;  // cycles in which an address has waited, modulo 2^32; with `waits` less the card's time
    logic [1:0]            waits;   // one waits now
  } meter_count_t;

  typedef struct packed {
    logic isolate;  // cut the slot off: drop what it sends, complete what is outstanding
    logic reset;    // hold the app in reset (implies isolate)
    logic quiesce;  // accept nothing new from the app, let what is in flight finish
    logic run;      // the slot may run; low after power-up
  } slot_ctrl_t;

  typedef struct packed {
    event_e cause;     // of the isolation, valid with `isolated`
    logic   isolated;  // by a guard or by the host
    logic   busy;      // the app says it computes
    logic   quiet;     // nothing of this slot is in flight
    logic   loaded;    // an app is in the slot
  } slot_stat_t;

  /// Register access of a slot: one outstanding; `addr` is a byte address, 32-bit words.
  typedef struct packed {
    logic [11:0] addr;
    logic        write;
    logic [31:0] wdata;
  } reg_req_t;

endpackage
/* verilator lint_on UNUSEDPARAM */
