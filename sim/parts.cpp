// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "parts.h"

#include <svdpi.h>

#include <cstdio>
#include <cstdlib>

// Called by sockets.
extern "C" void* via_part_create(const char* kind, const char* place) {
  via::Parts* parts = via::Parts::current;
  std::unique_ptr<via::Part> part;
  if (parts) part = via::make_part(kind, parts->context, place, parts->checks);
  if (!part) {
    std::fprintf(stderr, "viaduct card: %s: there is no part '%s'\n", place, kind);
    std::abort();
  }
  parts->all.push_back(part.get());
  return part.release();
}

extern "C" svBit via_part_checks(void* part) {
  return static_cast<via::Part*>(part)->checks;
}

extern "C" void via_part_output(void* part, const char* name, uint32_t at) {
  static_cast<via::Part*>(part)->output(name, at);
}

extern "C" void via_part_destroy(void* part) {
  delete static_cast<via::Part*>(part);
}
