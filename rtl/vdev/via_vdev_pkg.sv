// SPDX-License-Identifier: Apache-2.0
//
// Constants of each virtio device of the card: identity, features, queues. One constant per device; a new device adds one here
// (docs/virtio-devices.md). Source: VIRTIO 1.3, section 5.

// A block uses a few of these; which ones differs.
/* verilator lint_off UNUSEDPARAM */
package via_vdev_pkg;

  import via_pkg::*;
  import via_virtio_pkg::*;

  typedef struct packed {
    logic [15:0]                  device;    // device type; the PCI device id is 0x1040 + it
    logic [23:0]                  code;      // PCI class code
    logic [63:0]                  features;  // the device's own; the engine adds EngineFeatures
    feature_need_t [NeedsMax-1:0] needs;     // features that need other ones
    logic [7:0]                   queues;    // one MSI-X vector each, and one for configuration changes
    logic [QueuesMax-1:0]         waits;     // queues whose chains wait for a response; the rest are requests
    logic                         at_hand;   // bytes of a response are all here when the first one is offered, and follow at a beat a cycle
  } vdev_t;

  // ---------------------------------------------------------------- net
  parameter int unsigned NetFCsum = 0;
  parameter int unsigned NetFGuestCsum = 1;
  parameter int unsigned NetFMtu = 3;
  parameter int unsigned NetFMac = 5;
  parameter int unsigned NetFMrgRxbuf = 15;
  parameter int unsigned NetFStatus = 16;
  parameter int unsigned NetFCtrlVq = 17;
  parameter int unsigned NetFCtrlRx = 18;
  parameter int unsigned NetFCtrlRxExtra = 20;
  parameter int unsigned NetFMq = 22;
  parameter int unsigned NetFCtrlMacAddr = 23;
  parameter logic [63:0] NetFSpeedDuplex = 64'd63;

  parameter int unsigned NetPairs = 4;
  parameter int unsigned NetMtu = 9216;
  parameter int unsigned NetFrameMax = NetMtu + 18;  // bytes of a frame: the MTU, plus an Ethernet header with a VLAN tag
  parameter int unsigned NetHeader = 12;  // bytes of struct virtio_net_hdr
  parameter int unsigned NetSpeed = 100_000;  // Mbit/s
  parameter vdev_t VdevNet = '{
      device: 16'd1,
      code: 24'h020000,
      features:
      64'b1 <<
      NetFCsum
      | 64'b1 <<
      NetFGuestCsum
      | 64'b1 <<
      NetFMtu
      | 64'b1 <<
      NetFMac
      | 64'b1 <<
      NetFMrgRxbuf
      | 64'b1 <<
      NetFStatus
      | 64'b1 <<
      NetFCtrlVq
      | 64'b1 <<
      NetFCtrlRx
      | 64'b1 <<
      NetFCtrlRxExtra
      | 64'b1 <<
      NetFMq
      | 64'b1 <<
      NetFCtrlMacAddr
      | 64'b1 <<
      NetFSpeedDuplex,
      needs: '{
          '{feature: 6'(NetFCtrlRx), needs: 6'(NetFCtrlVq)},
          '{feature: 6'(NetFCtrlRxExtra), needs: 6'(NetFCtrlVq)},
          '{feature: 6'(NetFMq), needs: 6'(NetFCtrlVq)},
          '{feature: 6'(NetFCtrlMacAddr), needs: 6'(NetFCtrlVq)}
      },
      queues: 8'(2 * NetPairs + 1),
      waits: 16'b01010101,
      at_hand: 1'b1  // frames are held until their end
  };

  // ---------------------------------------------------------------- blk
  parameter int unsigned BlkFSegMax = 2;
  parameter int unsigned BlkFRo = 5;
  parameter int unsigned BlkFBlkSize = 6;
  parameter int unsigned BlkFFlush = 9;
  parameter int unsigned BlkFTopology = 10;
  parameter int unsigned BlkFMq = 12;
  parameter int unsigned BlkFDiscard = 13;
  parameter int unsigned BlkFWriteZeroes = 14;

  parameter int unsigned BlkQueues = 4;
  parameter int unsigned BlkHeader = 16;  // bytes of the request's header, and of a discard segment
  parameter int unsigned BlkUserHeader = 64;  // bytes ahead of a message to the user side, with fn_ctrl_t.header
  parameter int unsigned BlkSegMax = QSizeMax - 2;
  parameter int unsigned BlkZeroMax = 8192;  // sectors of one write zeroes request
  parameter int unsigned BlkDiscardMax = 1 << 22;  // sectors of one discard request
  parameter logic [20*8-1:0] BlkId = 160'("0-ksid-tcudaiv");  // sent from its lowest byte: "viaduct-disk-0"
  parameter vdev_t VdevBlk = '{
      device: 16'd2,
      code: 24'h018000,
      features:
      64'b1 <<
      BlkFSegMax
      | 64'b1 <<
      BlkFRo
      | 64'b1 <<
      BlkFBlkSize
      | 64'b1 <<
      BlkFFlush
      | 64'b1 <<
      BlkFTopology
      | 64'b1 <<
      BlkFMq
      | 64'b1 <<
      BlkFDiscard
      | 64'b1 <<
      BlkFWriteZeroes,
      needs: '0,
      queues: 8'(BlkQueues),
      waits: 16'b0,
      at_hand: 1'b0
  };
  parameter logic [7:0] BlkOk = 8'd0;
  parameter logic [7:0] BlkIoErr = 8'd1;
  parameter logic [7:0] BlkUnsupp = 8'd2;

  typedef enum logic [2:0] {
    BlkResponse = 3'd0,  // nothing to move: `status` is known
    BlkIdent = 3'd1,  // the disk's name
    BlkRead = 3'd2,
    BlkWrite = 3'd3,
    BlkZero = 3'd4
  } blk_kind_e;

  /// A request after the check of its header and lengths.
  typedef struct packed {
    blk_kind_e         kind;
    logic              app;     // its data passes through the user side
    logic              header;  // ... with a header that gives the number of its sector
    logic              held;    // it completes when the host has written back what was written
    logic [QueueW-1:0] queue;
    logic [7:0]        status;  // BlkResponse: the status to return
    logic [31:0]       wlen;    // writable bytes of the chain, the status byte is the last
    logic [31:0]       len;     // bytes of data, a multiple of a sector
    logic [39:0]       sector;
    logic [63:0]       addr;    // in the store
  } blk_op_t;

  // ---------------------------------------------------------------- console
  parameter int unsigned ConsoleFSize = 0;
  parameter int unsigned ConsoleFMultiport = 1;
  parameter int unsigned ConsoleFEmergWrite = 2;
  parameter int unsigned ConsolePorts = 2;
  // Receive and transmit queues of port 0, of control, of port 1.
  parameter vdev_t VdevConsole = '{
      device: 16'd3,
      code: 24'h078000,
      features: 64'b1 << ConsoleFSize | 64'b1 << ConsoleFMultiport | 64'b1 << ConsoleFEmergWrite,
      needs: '0,
      queues: 8'(2 * ConsolePorts + 2),
      waits: 16'b010101,
      at_hand: 1'b0
  };

  // ---------------------------------------------------------------- entropy
  parameter vdev_t VdevEntropy = '{
      device: 16'd4,
      code: 24'h00ff00,
      features: '0,
      needs: '0,
      queues: 8'd1,
      waits: 16'b1,
      at_hand: 1'b0
  };

  // ---------------------------------------------------------------- input
  // Buffers for events, and status from the driver.
  parameter vdev_t VdevInput = '{
      device: 16'd18,
      code: 24'h090000,
      features: '0,
      needs: '0,
      queues: 8'd2,
      waits: 16'b01,
      at_hand: 1'b0
  };

  // ---------------------------------------------------------------- any
  /// The device of function `fn`.
  function automatic vdev_t vdev(input int unsigned fn);
    case (fn)
      FnNet:     return VdevNet;
      FnBlk:     return VdevBlk;
      FnConsole: return VdevConsole;
      FnInput:   return VdevInput;
      default:   return VdevEntropy;
    endcase
  endfunction

  /// Bytes of a beat: `keep` is a run of ones from bit 0. Bit k of their number n is the parity of the one bits at positions divisible by
  // 2^k.
  function automatic logic [BeatLog2:0] keep_bytes(input logic [StrbW-1:0] keep);
    logic [BeatLog2:0] n;
    n = '0;
    for (int unsigned b = 0; b <= BeatLog2; b++) begin
      for (int unsigned k = 1; k << b <= StrbW; k++) n[b] ^= keep[(k<<b)-1];
    end
    return n;
  endfunction

  /// `n` ones from bit 0; n at most StrbW.
  function automatic logic [StrbW-1:0] keep_of(input logic [BeatLog2:0] n);
    return ~({StrbW{1'b1}} << n);
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
