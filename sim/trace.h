// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// What crosses the boundaries of the card's parts, as intervals (vsim_trace_record).
//
// A transfer extends the interval of its lane, unless the lane was idle for kGap cycles or the interval would
// be longer than kLongest. So the size of a trace follows the phases of a run rather than its beats, and
// rates have the resolution of kLongest cycles.
#pragma once
#include <cstdint>
#include <vector>

#include "viaduct_sim.h"

namespace via {

class Trace {
 public:
  static constexpr uint64_t kGap = 32;
  static constexpr uint64_t kLongest = 1024;

  // The boundaries are looked at in this cycle. In those since the last look nothing has changed.
  void look(uint64_t cycle);
  uint64_t cycle() const { return cycle_; }
  // A handshake of a lane in this cycle: `amount` is transferred, or waits for the receiver.
  void handshake(vsim_trace_kind kind, unsigned index, unsigned port, bool valid, bool ready,
                 uint64_t amount) {
    if (valid && ready) transfer(kind, index, port, amount);
    if (valid && !ready) wait({kind, index, port});
  }
  void transfer(vsim_trace_kind kind, unsigned index, unsigned port, uint64_t amount) {
    span({kind, index, port}, cycle_, cycle_ + 1).amount += amount;
  }
  // Whether something lasts in this cycle: an interval of any length.
  void level(vsim_trace_kind kind, unsigned index, bool on);
  // Something by itself.
  void event(vsim_trace_kind kind, unsigned index, unsigned port, uint64_t begin, uint64_t end,
             uint64_t amount);
  // A total that grows, as intervals of at least kLongest cycles.
  void total(vsim_trace_kind kind, uint64_t value);

  // Moves at most `room` records to `to`; with `end` those too that are not over, up to the last look.
  size_t take(vsim_trace_record* to, size_t room, bool end);

 private:
  static constexpr unsigned kIndices = 16, kPorts = 16;
  struct LaneId {
    vsim_trace_kind kind;
    unsigned index, port;
  };

  void wait(LaneId lane) {
    span(lane, cycle_, cycle_ + 1).waited++;
    waiting_.push_back(lane);
  }
  vsim_trace_record& span(LaneId lane, uint64_t begin, uint64_t end);
  void close(vsim_trace_record& open);

  uint64_t cycle_ = 0;
  std::vector<LaneId> waiting_;                                      // at the last look
  vsim_trace_record open_[VSIM_TRACE_KINDS][kIndices][kPorts] = {};  // end 0: none
  struct Total {
    uint64_t value, cycle;
  } totals_[VSIM_TRACE_KINDS] = {};
  std::vector<vsim_trace_record> done_;
  size_t taken_ = 0;
};

}  // namespace via
