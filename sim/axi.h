// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// AXI4 between the shell and a model. `AxiRequest` is what the shell's registers drive, `AxiResponse` what
// the model's do; both hold from one clock edge to the next, and a transfer is made at an edge where valid
// and ready were set.
#pragma once
#include <cstdint>

#include "viaduct_slot.h"

namespace via {

constexpr unsigned kBeatBytes = VIA_DATA_W / 8;
constexpr unsigned kMaxBurstBytes = 4096;
constexpr uint8_t kOkay = 0;
constexpr uint8_t kSlvErr = 2;

struct AxiRequest {
  bool arvalid = false, rready = false, awvalid = false, wvalid = false, bready = false;
  bool wlast = false;
  uint8_t arid = 0, arlen = 0, awid = 0, awlen = 0;
  uint64_t araddr = 0, awaddr = 0;
  const uint8_t* wdata = nullptr;  // kBeatBytes
  uint64_t wstrb = 0;
};

struct AxiResponse {
  bool arready = false, rvalid = false, awready = false, wready = false, bvalid = false;
  bool rlast = false;
  // The R payload is new since the edge before: copy it. Until then `rdata` need not be looked at again.
  bool rfresh = false;
  uint8_t rid = 0, rresp = 0, bid = 0, bresp = 0;
  const uint8_t* rdata = nullptr;  // kBeatBytes

  // Whether the shell sees now what it saw of `driven`.
  bool same_as(const AxiResponse& driven) const {
    return !rfresh && arready == driven.arready && rvalid == driven.rvalid && awready == driven.awready &&
           wready == driven.wready && bvalid == driven.bvalid && bid == driven.bid && bresp == driven.bresp;
  }
};

constexpr uint64_t kFullStrobe = kBeatBytes == 64 ? ~uint64_t{0} : (uint64_t{1} << kBeatBytes) - 1;

// Ends the process unless a burst of the shell is whole beats within 4 KiB (docs/interfaces.md, section 1):
// the models rely on that where they access memory.
void check_burst(const char* what, uint64_t addr, uint32_t beats);

// Writes the bytes of a beat whose strobe is set.
void write_beat(uint8_t* to, const uint8_t* data, uint64_t strobe);

}  // namespace via
