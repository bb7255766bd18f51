/* Copyright Viaduct contributors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * C ABI of the simulated card, exported by the shell's shared object (libviaduct_card.so).
 *
 * A card is one thread's at a time: the caller serialises calls on one `vsim`, vsim_stop() excepted. No call
 * blocks, none prints. Functions that can fail return 0 or a negative errno; vsim_error() then says what was
 * wrong. Time is card cycles since power-up; nothing depends on the wall clock, so equal calls give equal
 * cycles. A shell that breaks a rule that the models rely on ends the process, with a line on standard error.
 */
#ifndef VIADUCT_SIM_H
#define VIADUCT_SIM_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define VSIM_ABI_VERSION 7u

typedef struct vsim vsim;

/* PCIe link, as seen by the card. Rates are derived: generation x lanes, 8b/10b or 128b/130b. */
struct vsim_link {
  uint32_t generation;           /* 1..5 */
  uint32_t lanes;                /* 1..16 */
  uint32_t mps;                  /* bytes, 128..4096: most payload in a write TLP */
  uint32_t mrrs;                 /* bytes, 128..4096: largest read request TLP */
  uint32_t rcb;                  /* bytes, 64 or 128: completions are split at these boundaries */
  uint32_t tags;                 /* read requests in flight */
  uint32_t read_latency_ns;      /* request leaves the card -> first completion arrives, unloaded */
  uint32_t write_latency_ns;     /* last byte leaves the card -> visible in host memory */
  uint32_t mmio_read_ns;         /* host load -> host has the value, without the card's own cycles */
  uint32_t mmio_write_ns;        /* host store -> reaches the card */
  uint32_t irq_latency_ns;       /* MSI-X write leaves the card -> host handler may run */
  uint32_t read_efficiency_pct;  /* 1..100: host-side limit on read throughput, from calibration */
  uint32_t write_efficiency_pct; /* same for writes */
};

/* One DRAM channel: JEDEC bank timing in nanoseconds x 1000 (picoseconds). */
struct vsim_dram {
  uint32_t mib;                      /* size of a channel */
  uint32_t data_bytes;               /* bytes a burst (BL8 x 64 bit = 64) */
  uint32_t burst_ps;                 /* time a burst occupies the data bus */
  uint32_t banks, groups, row_bytes; /* bank groups, 1: none; consecutive bursts go to consecutive ones */
  uint32_t t_rcd_ps, t_rp_ps, t_ras_ps, t_cl_ps, t_cwl_ps, t_wr_ps, t_wtr_ps, t_rtw_ps;
  uint32_t t_ccd_ps;   /* column commands, whatever their banks (tCCD_S of DDR4) */
  uint32_t t_ccd_l_ps; /* column commands to one bank group (tCCD_L); without groups the same */
  uint32_t t_faw_ps;
  uint32_t t_refi_ps, t_rfc_ps;
  /* The controller. Without machines: any of the first `queue` requests may go first, row hits before others,
   * reads before writes. With machines: one for each bank group, which it serves strictly in order, `queue`
   * requests each.
   */
  uint32_t machines;
  uint32_t queue;
  /* With machines: reads not handed over, and writes not taken in, at most. */
  uint32_t read_fifo, write_fifo;
  uint32_t clock_ps;   /* of the controller with machines: a row opened, one closed, a column command each */
  uint32_t machine_ps; /* from one request to the row commands of the next, of a machine */
  uint32_t track_ps;   /* with machines: without a read for so long one is made up, for the PHY; 0: never */
  uint32_t controller_ps; /* fixed controller and PHY latency */
};

/* What the board has for a function's packets. Fixed sizes and limits are those of sim/board.h. */
enum vsim_port_kind {
  VSIM_PORT_NONE = 0,
  /* MAC and wire: whole frames without FCS, padded to 60 bytes; preamble, FCS and gap (24 bytes) take their
   * time on the wire. What finds no room, in the MAC's buffer or at the host, is dropped; so is what is too
   * short, too long, damaged, or cut by a link that was down. Each is counted. */
  VSIM_PORT_ETHERNET = 1,
  /* A serial line with flow control: up to 16 bytes a packet; nothing is dropped. */
  VSIM_PORT_UART = 2,
  /* Entropy source: hands on what the host gives it, 16 bytes at a time. */
  VSIM_PORT_ENTROPY = 3,
  /* Keys: 8-byte events, one a packet. */
  VSIM_PORT_KEYS = 4
};
struct vsim_port {
  uint32_t kind;
  uint32_t fifo_bytes;       /* buffer in each direction: 64 bytes to 16 MiB; Ethernet: 16 KiB at least */
  uint64_t bytes_per_second; /* 0: at once */
  uint32_t max_frame;        /* Ethernet: longest frame with its FCS, 1518 to 9238 bytes; 0: 9238 */
  uint32_t reserved;         /* 0 */
};

#define VSIM_PORT_QUEUE                                                                            \
  (1u << 20)              /* bytes that wait on the host's side of a port, each way; packets: 1024 \
                           */
#define VSIM_FUNCTIONS 16 /* most functions, 0 included */

struct vsim_config {
  uint32_t abi;     /* VSIM_ABI_VERSION */
  uint32_t clk_khz; /* shell clock, e.g. 250000 */
  struct vsim_link link;
  struct vsim_dram dram;
  struct vsim_port
      port[VSIM_FUNCTIONS]; /* of each function; those the shell does not have are not looked at */
  const char* image_dir;    /* folder of app images: <name>/<name>.via and <name>/<name>.so */
};

/* Creates a powered-up card. On failure returns NULL and writes a message to err. */
vsim* vsim_open(const struct vsim_config* cfg, char* err, size_t errlen);
void vsim_close(vsim*);
const char* vsim_error(const vsim*); /* last failure, valid until the next call */
/* Reset of the whole card: the shell is as after power-up, no function is bus master, and nothing is in
 * flight. Apps stay in their slots, DRAM keeps its content, DMA mappings stay, time goes on. */
void vsim_reset(vsim*);

/* BAR access to function 0, 32-bit, naturally aligned; bar is 0 or 2. A read runs the card until the response
 * is there. */
int vsim_bar_read(vsim*, unsigned bar, uint64_t offset, uint32_t* value);
int vsim_bar_write(vsim*, unsigned bar, uint64_t offset, uint32_t value);

/* Functions 1 to vsim_functions() are the others. */
unsigned vsim_functions(const vsim*);
/* Access to a BAR of such a function (`space` 0 to 5; offset below 64 KiB) or, with VSIM_CONFIG, to what the
 * shell has of its configuration space (offset below 256); 1, 2 or 4 bytes, naturally aligned. Which BARs
 * there are says its configuration space. */
#define VSIM_CONFIG 6u
int vsim_fn_read(vsim*, unsigned fn, unsigned space, uint32_t offset, unsigned bytes, uint32_t* value);
int vsim_fn_write(vsim*, unsigned fn, unsigned space, uint32_t offset, unsigned bytes, uint32_t value);
/* Whether the function may reach memory and raise interrupts; off after power-up. Takes effect behind the
 * writes made before it. */
int vsim_fn_bus_master(vsim*, unsigned fn, int on);
/* Function-level reset. Runs the card until it is over. Bus master and interrupts of the function are then
 * off and none pending; its DMA mappings stay. */
int vsim_fn_reset(vsim*, unsigned fn);

/* Host memory that function `fn` may reach: [iova, iova+len) is at `host`. Accesses elsewhere end with an
 * error. */
#define VSIM_DMA_READ 1u  /* the card may read */
#define VSIM_DMA_WRITE 2u /* the card may write */
int vsim_dma_map(vsim*, unsigned fn, uint64_t iova, void* host, uint64_t len, unsigned perms);
/* After return no access to the range is in flight or will be made. */
int vsim_dma_unmap(vsim*, unsigned fn, uint64_t iova, uint64_t len);

/* Runs until `max_cycles` have passed, an interrupt of one of the functions in `irq_of` is pending or a board
 * port of those in `packet_of` has a packet for the host (masks, bit f = function f), vsim_stop() is called,
 * or the card parks (nothing in flight, every slot and function idle, and no interrupt or packet on its way).
 * Returns the cycles run. */
uint64_t vsim_run(vsim*, uint64_t max_cycles, uint32_t irq_of, uint32_t packet_of);
/* From any thread: makes vsim_run() return before its next cycle; if none runs, the next one. */
void vsim_stop(vsim*);
/* Lets `ns` of card time pass, whatever happens (host service time in benchmark mode). */
void vsim_charge(vsim*, uint64_t ns);
int vsim_parked(const vsim*);
uint64_t vsim_now(const vsim*);
/* Femtoseconds a byte of a packet takes on the PCIe link, each way, with the share of the data link layer. */
uint64_t vsim_link_fs_per_byte(const vsim*);
/* Interrupts of a function pending among mask, by vector (at most 64); clears them. */
uint64_t vsim_irq_take(vsim*, unsigned fn, uint64_t mask);

/* Board ports. Packets wait in bounded queues on both sides; neither call blocks.
 * Gives a port a packet: whole frames for Ethernet (14 to 9234 bytes), any number of bytes up to 64 KiB
 * otherwise, events of 8 bytes for keys. `channel` is the stream's id. The first bit is not on the line
 * before `not_before_ps` (picoseconds since power-up). -EAGAIN: no room until the card has run; -ENOTCONN:
 * the port is looped back. */
#define VSIM_FRAME_AS_IS 1u   /* Ethernet: 1 to 64 KiB, not padded; the port drops what is no valid frame */
#define VSIM_FRAME_BAD_FCS 2u /* Ethernet: was damaged on its way */
int vsim_port_send(vsim*, unsigned fn, uint8_t channel, uint64_t not_before_ps, uint32_t flags,
                   const void* data, size_t len);
/* Takes the oldest packet a port has for the host: returns its length, or -EAGAIN if there is none, -EMSGSIZE
 * if it is longer than `len` (it stays). `sent_ps`: when its last bit was on the line. */
int64_t vsim_port_receive(vsim*, unsigned fn, uint8_t* channel, uint64_t* sent_ps, void* data, size_t len);
/* What is at the other end of an Ethernet port: the host (after power-up), nothing that responds, or a plug
 * that leads what is sent back. A frame is lost if the link was down at any time while it was on the line. A
 * reset of the card does not change it. */
enum vsim_link_state { VSIM_LINK_UP = 0, VSIM_LINK_DOWN = 1, VSIM_LINK_LOOP = 2 };
int vsim_port_link(vsim*, unsigned fn, unsigned state);
/* Functions whose board port has a packet for the host (mask). */
uint32_t vsim_port_packets(const vsim*);
/* Bytes vsim_port_send() takes at this moment before it has no room; VSIM_PORT_QUEUE when nothing waits. */
size_t vsim_port_room(const vsim*, unsigned fn);

/* FST of shell and slots from cycle `start` (needs an object built with waves; -ENOTSUP otherwise). */
int vsim_wave_open(vsim*, const char* path, uint64_t start, uint64_t cycles);

/* A trace of what crosses the boundaries of the card's parts. It costs some time of the host and changes no
 * cycle of the card. */
enum vsim_trace_kind {
  /* Handshakes: `amount` is bytes, `waited` cycles in which the sender waited for the receiver. */
  VSIM_TRACE_STREAM_IN = 0,  /* index: slot, port: input stream of the app */
  VSIM_TRACE_STREAM_OUT = 1, /* index: slot, port: output stream */
  VSIM_TRACE_SLOT_READ = 2,  /* index: slot. Data of reads of the app's memory port */
  VSIM_TRACE_SLOT_WRITE = 3,
  VSIM_TRACE_DRAM_READ = 4, /* index: channel */
  VSIM_TRACE_DRAM_WRITE = 5,
  VSIM_TRACE_HOST_READ = 6, /* index: function. Data of reads of host memory, at the shell's port */
  VSIM_TRACE_HOST_WRITE = 7,
  VSIM_TRACE_PORT_TX = 8, /* index: function. Its board port, from the function */
  VSIM_TRACE_PORT_RX = 9,
  /* Levels. */
  VSIM_TRACE_LOADED = 10, /* index: slot. An app is in it */
  VSIM_TRACE_BUSY = 11,   /* index: slot. The app says that it computes */
  /* Single events. */
  VSIM_TRACE_APP_IRQ = 12,   /* index: slot. Interrupt of the app */
  VSIM_TRACE_INTERRUPT = 13, /* index: function, port: vector. MSI-X message of the card */
  VSIM_TRACE_REG_READ = 14,  /* index: function, port: BAR, or VSIM_CONFIG; amount: offset */
  VSIM_TRACE_REG_WRITE = 15,
  /* Totals: `amount` is picoseconds in the interval in which packets took that direction of the link. */
  VSIM_TRACE_LINK_UP = 16,   /* from the card */
  VSIM_TRACE_LINK_DOWN = 17, /* to the card */
  VSIM_TRACE_KINDS = 18
};
struct vsim_trace_record {
  uint64_t begin, end; /* cycles, the first of the interval and the first after it */
  uint64_t amount, waited;
  uint32_t kind; /* enum vsim_trace_kind */
  uint16_t index, port;
};
/* Begins a trace, or ends it and drops its records. */
int vsim_trace(vsim*, int on);
/* Takes at most `room` records, those of one lane in the order of time; with `end` those too that are not
 * over. Records are kept until they are taken. */
size_t vsim_trace_take(vsim*, struct vsim_trace_record* to, size_t room, int end);

/* What the models cost: starts over from power-up as vsim_reset does, and keeps what the shell sees at the
 * next `edges` edges (up to 4 KiB each). */
int vsim_record(vsim*, uint64_t edges);
/* Gives a bare shell the recorded edges, all of them evaluated. Returns their number; with `verify` it also
 * compares what the shell drives: -EIO if an edge differs. */
int64_t vsim_replay(vsim*, int verify);

struct vsim_counters { /* since power-up */
  uint64_t cycles, shell_evals, slot_evals;
  uint64_t mmio_reads, mmio_writes, irqs;
  uint64_t host_read_bytes, host_write_bytes, host_read_tlps, host_write_tlps;
  uint64_t dram_read_bytes[16], dram_write_bytes[16], dram_row_hits[16], dram_row_misses[16];
  /* Time in picoseconds that packets of all kinds, with headers, have taken of each direction of the link:
   * from the card, to it. */
  uint64_t link_up_ps, link_down_ps;
  /* Of each slot since a register of its app was last written: cycles of the first and the last transfer at
   * the app's streams and memory port, beats into the app and out of it. */
  uint64_t slot_first[16], slot_last[16], slot_beats_in[16], slot_beats_out[16];
  /* Of each slot since power-up: bytes into and out of the streams of its apps, and bytes that they have read
   * (whole beats) and written through their memory ports. */
  uint64_t slot_stream_in[16], slot_stream_out[16], slot_mem_read[16], slot_mem_write[16];
  uint32_t slots, channels;
  uint32_t slots_loaded, slots_busy; /* bit s: an app is in slot s; it says that it computes */
  /* What the model of the system monitor has measured last (sim/sysmon.h). */
  double temperature;                  /* degrees Celsius */
  double vccint_volts, vccint_amperes; /* supply of the logic */
};
void vsim_get_counters(const vsim*, struct vsim_counters*);

struct vsim_fn_counters { /* of one function, since power-up */
  uint64_t mmio_reads, mmio_writes,
      irqs; /* configuration accesses that reach the shell are counted as well */
  uint64_t host_read_bytes, host_write_bytes, host_read_tlps, host_write_tlps;
  uint64_t tx_packets, tx_bytes, tx_drops; /* board port, from the function */
  uint64_t rx_packets, rx_bytes, rx_drops; /* and to it */
  /* Ethernet: dropped packets by cause, which together are the drops of their direction: too short, too long,
   * damaged, cut by a link that was down, no room. */
  uint64_t tx_short, tx_long, tx_down, tx_full;
  uint64_t rx_short, rx_long, rx_fcs, rx_down, rx_full;
  /* Ethernet: time in picoseconds that frames with their gaps have taken of the line, with what has begun;
   * what the line carries (0: no Ethernet port), and whether its link is up. */
  uint64_t tx_busy_ps, rx_busy_ps;
  uint64_t line_bytes_per_second;
  uint64_t link_up;
};
int vsim_get_fn_counters(const vsim*, unsigned fn, struct vsim_fn_counters*);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
