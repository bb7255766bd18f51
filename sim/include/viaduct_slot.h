/* Copyright Viaduct contributors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What crosses the edge of a slot at each clock edge (docs/interfaces.md, section 3), and the C ABI of an
 * app's shared object. An app object exports one function, viaduct_slot_api(); the card model checks `abi`
 * and `geometry` before it touches anything else.
 *
 * Compiled with the geometry the card is built with: VIA_DATA_W and VIA_NUM_STREAMS as in
 * rtl/common/via_pkg.sv. Structs hold no padding that is not zeroed once, so equal signals compare equal with
 * memcmp.
 */
#ifndef VIADUCT_SLOT_H
#define VIADUCT_SLOT_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#ifndef VIA_DATA_W
#define VIA_DATA_W 512
#endif
#ifndef VIA_NUM_STREAMS
#define VIA_NUM_STREAMS 1
#endif

#define VIADUCT_SLOT_ABI 1u

/* 64-bit words that hold `bits`. Bit 0 of a signal is bit 0 of word 0; bits above its width are zero. */
#define VIADUCT_WORDS(bits) (((bits) + 63) / 64)

/* Driven by the shell. A payload is meaningful, and brought up to date, only while its valid is high. */
struct viaduct_slot_in {
  uint8_t rst_n, arready, awready, wready;
  uint8_t rvalid, bvalid, reg_valid, reg_write;
  uint16_t s_valid, m_ready; /* bit k: stream k */
  uint16_t s_last, reg_addr;
  uint32_t reg_wdata;
  uint8_t rid, rresp, rlast, bid;
  uint8_t bresp, rsvd[7];
  uint64_t s_id[VIADUCT_WORDS(VIA_NUM_STREAMS * 8)];
  uint64_t s_keep[VIADUCT_WORDS(VIA_NUM_STREAMS * VIA_DATA_W / 8)];
  uint64_t s_data[VIADUCT_WORDS(VIA_NUM_STREAMS * VIA_DATA_W)];
  uint64_t rdata[VIADUCT_WORDS(VIA_DATA_W)];
};

/* Driven by the slot; same rule for payloads. An empty slot drives zeros. */
struct viaduct_slot_out {
  uint8_t rready, bready, reg_rvalid, reg_err;
  uint8_t irq, busy, arvalid, awvalid;
  uint8_t wvalid, wlast;
  uint16_t s_ready, m_valid; /* bit k: stream k */
  uint16_t m_last;
  uint32_t reg_rdata;
  uint8_t arid, arlen, arsize, arburst;
  uint8_t awid, awlen, awsize, awburst;
  uint64_t araddr, awaddr;
  uint64_t m_id[VIADUCT_WORDS(VIA_NUM_STREAMS * 8)];
  uint64_t m_keep[VIADUCT_WORDS(VIA_NUM_STREAMS * VIA_DATA_W / 8)];
  uint64_t m_data[VIADUCT_WORDS(VIA_NUM_STREAMS * VIA_DATA_W)];
  uint64_t wstrb[VIADUCT_WORDS(VIA_DATA_W / 8)];
  uint64_t wdata[VIADUCT_WORDS(VIA_DATA_W)];
};

#define VIADUCT_SLOT_TRACE 1u    /* flags: built with waves */
#define VIADUCT_SLOT_COVERAGE 2u /* built with coverage */

struct viaduct_slot_api {
  uint32_t abi;      /* VIADUCT_SLOT_ABI */
  uint32_t geometry; /* as register GEOMETRY, slots and channels zero: those do not concern an app */
  uint32_t in_size, out_size;
  uint32_t flags;
  uint32_t rsvd;
  uint64_t state_bytes; /* size of the object's state */
  /* A slot after power-up, in reset. NULL if out of memory. Instances share nothing. */
  void* (*create)(void);
  void (*destroy)(void* slot);
  /* One rising clock edge with these inputs; then the outputs. */
  void (*edge)(void* slot, const struct viaduct_slot_in* in, struct viaduct_slot_out* out);
  /* As edge; returns 1 if it left the whole state as it was, bit by bit. Then every further edge with the
   * same inputs would do so too, and may be left out. Costs a copy and a comparison of the state. */
  int (*edge_settled)(void* slot, const struct viaduct_slot_in* in, struct viaduct_slot_out* out);
  /* Waves as FST. After `trace_open` each edge is recorded until `trace_close`; times are in picoseconds. */
  int (*trace_open)(void* slot, const char* path, uint64_t now_ps, uint32_t period_ps); /* 0 or -errno */
  void (*trace_close)(void* slot);
  /* Coverage counted so far, as a Verilator .dat file. 0 or -errno. */
  int (*coverage_write)(void* slot, const char* path);
};

const struct viaduct_slot_api* viaduct_slot_api(void);

#ifdef __cplusplus
}
#endif
#endif
