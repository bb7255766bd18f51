/* Copyright Viaduct contributors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * C ABI of the simulated card, exported by the shell's shared object (libviaduct_card.so).
 *
 * A card is one thread's at a time: the caller serialises calls on one `vsim`. No call blocks, none prints.
 * Functions that can fail return 0 or a negative errno; vsim_error() then says what was wrong.
 * Time is card cycles since power-up; nothing depends on the wall clock, so equal calls give equal cycles.
 */
#ifndef VIADUCT_SIM_H
#define VIADUCT_SIM_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define VSIM_ABI_VERSION 1u

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
  uint32_t mib;        /* size of a channel */
  uint32_t data_bytes; /* bytes a burst (BL8 x 64 bit = 64) */
  uint32_t burst_ps;   /* time a burst occupies the data bus */
  uint32_t banks, row_bytes;
  uint32_t t_rcd_ps, t_rp_ps, t_ras_ps, t_cl_ps, t_wr_ps, t_wtr_ps, t_rtw_ps, t_ccd_ps, t_faw_ps;
  uint32_t t_refi_ps, t_rfc_ps;
  uint32_t queue;         /* requests the controller looks at (row hits first within it, in-order answers) */
  uint32_t controller_ps; /* fixed controller and PHY latency */
};

struct vsim_config {
  uint32_t abi;     /* VSIM_ABI_VERSION */
  uint32_t clk_khz; /* shell clock, e.g. 250000 */
  struct vsim_link link;
  struct vsim_dram dram;
  const char* image_dir; /* folder of app images: <name>/<name>.via and <name>/<name>.so */
};

/* Creates a powered-up card. On failure returns NULL and writes a message to err. */
vsim* vsim_open(const struct vsim_config* cfg, char* err, size_t errlen);
void vsim_close(vsim*);
const char* vsim_error(const vsim*); /* last failure, valid until the next call */
/* Function-level reset: the shell is as after power-up and nothing is in flight. Apps stay in their slots,
 * DRAM keeps its content, DMA mappings stay, time goes on. */
void vsim_reset(vsim*);

/* BAR access, 32-bit, naturally aligned; bar is 0 or 2. A read runs the card until the answer is there. */
int vsim_bar_read(vsim*, unsigned bar, uint64_t offset, uint32_t* value);
int vsim_bar_write(vsim*, unsigned bar, uint64_t offset, uint32_t value);

/* Host memory the card may reach: [iova, iova+len) is at `host`. Accesses elsewhere answer with an error. */
#define VSIM_DMA_READ 1u  /* the card may read */
#define VSIM_DMA_WRITE 2u /* the card may write */
int vsim_dma_map(vsim*, uint64_t iova, void* host, uint64_t len, unsigned perms);
/* After return no access to the range is in flight or will be made. */
int vsim_dma_unmap(vsim*, uint64_t iova, uint64_t len);

/* Runs until `max_cycles` have passed, an interrupt of `irq_mask` is pending, or the card parks (nothing in
 * flight, every slot idle, and no interrupt on its way). Returns the cycles run. */
uint64_t vsim_run(vsim*, uint64_t max_cycles, uint64_t irq_mask);
/* Lets `ns` of card time pass, whatever happens (host service time in benchmark mode). */
void vsim_charge(vsim*, uint64_t ns);
int vsim_parked(const vsim*);
uint64_t vsim_now(const vsim*);
/* Interrupts pending among mask, by vector; clears them. */
uint64_t vsim_irq_take(vsim*, uint64_t mask);

/* FST of shell and slots from cycle `start` (needs an object built with waves; -ENOTSUP otherwise). */
int vsim_wave_open(vsim*, const char* path, uint64_t start, uint64_t cycles);

/* What the models cost: starts over from power-up as vsim_reset does, and keeps what the shell sees at the
 * next `edges` edges (up to 2 KiB each). */
int vsim_record(vsim*, uint64_t edges);
/* Gives a bare shell the recorded edges, all of them evaluated. Returns their number; with `verify` it also
 * compares what the shell drives: -EIO if an edge differs. */
int64_t vsim_replay(vsim*, int verify);

struct vsim_counters { /* since power-up */
  uint64_t cycles, shell_evals, slot_evals;
  uint64_t mmio_reads, mmio_writes, irqs;
  uint64_t host_read_bytes, host_write_bytes, host_read_tlps, host_write_tlps;
  uint64_t dram_read_bytes[16], dram_write_bytes[16], dram_row_hits[16], dram_row_misses[16];
};
void vsim_get_counters(const vsim*, struct vsim_counters*);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
