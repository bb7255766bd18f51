// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// What the shell sees at each edge, kept so that a bare shell can be given the same: the measure of what the
// models cost.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "shell.h"

namespace via {

class Recording {
 public:
  // Edges in which only the time changes share one set of inputs.
  struct Inputs {
    bool reset, msix_ready, icap_ready, icap_done;
    uint8_t icap_status;
    uint32_t loaded;
    AxiResponse host, mem[Shell::kChannels];
    LiteRequest lite;
    FnRequest fn;
    uint32_t flr, bus_master;
    SysmonResponse sysmon;
    PortResponse port[Shell::kFunctions];
    viaduct_slot_out slot[Shell::kSlots];
    uint8_t data[1 + Shell::kChannels][kBeatBytes];    // behind the rdata of host and mem
    uint8_t port_data[Shell::kFunctions][kBeatBytes];  // and the rx_data of ports
  };

  explicit Recording(uint64_t edges, uint32_t khz, uint32_t mib)
      : clk_khz(khz), chan_mib(mib), left_(edges) {}
  const uint32_t clk_khz, chan_mib;  // of the board

  // The next edge has new inputs: fill them in.
  Inputs* fresh() {
    if (left_ == 0) return nullptr;
    inputs_.emplace_back();
    return &inputs_.back();
  }
  // `count` edges with the inputs at hand, the first of them at `time`; `digest` of the shell's outputs after
  // the last.
  void edges(uint64_t time, uint64_t count, uint64_t digest) {
    if (left_ == 0 || inputs_.empty()) return;
    count = std::min(count, left_);
    left_ -= count;
    runs_.push_back({inputs_.size() - 1, time, count, digest});
  }

  // Gives a shell fresh from power-up all of it. Returns the edges; with `verify` the first whose outputs
  // differ, negative.
  int64_t replay(bool verify) const;

 private:
  struct Run {
    size_t inputs;
    uint64_t time, count, digest;
  };
  uint64_t left_;
  std::vector<Inputs> inputs_;
  std::vector<Run> runs_;
};

// Of everything the shell drives and means.
uint64_t digest_of(Shell& shell);

}  // namespace via
