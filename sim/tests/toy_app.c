/* Copyright Viaduct contributors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The smallest thing that is an app object: it does nothing at all.
 */
#include <stdlib.h>

#include "viaduct_slot.h"

static int nothing;

static void* create(void) {
  return &nothing;
}
static void destroy(void* slot) {
  (void)slot;
}
static void edge(void* slot, const struct viaduct_slot_in* in, struct viaduct_slot_out* out) {
  (void)slot, (void)in, (void)out;
}
static int edge_settled(void* slot, const struct viaduct_slot_in* in, struct viaduct_slot_out* out) {
  edge(slot, in, out);
  return 1;
}
static int trace_open(void* slot, const char* path, uint64_t now_ps, uint32_t period_ps) {
  (void)slot, (void)path, (void)now_ps, (void)period_ps;
  return -1;
}
static void trace_close(void* slot) {
  (void)slot;
}
static int coverage_write(void* slot, const char* path) {
  (void)slot, (void)path;
  return -1;
}

static const struct viaduct_slot_api api = {
    .abi = VIADUCT_SLOT_ABI,
    .geometry = 6u << 24 | 1u << 16,
    .in_size = sizeof(struct viaduct_slot_in),
    .out_size = sizeof(struct viaduct_slot_out),
    .create = create,
    .destroy = destroy,
    .edge = edge,
    .edge_settled = edge_settled,
    .trace_open = trace_open,
    .trace_close = trace_close,
    .coverage_write = coverage_write,
};

const struct viaduct_slot_api* viaduct_slot_api(void) {
  return &api;
}
