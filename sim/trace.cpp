// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "trace.h"

#include <algorithm>

namespace via {

void Trace::look(uint64_t cycle) {
  // What waited then has waited ever since.
  if (cycle > cycle_ + 1) {
    for (const LaneId& lane : waiting_) span(lane, cycle_ + 1, cycle).waited += cycle - cycle_ - 1;
  }
  waiting_.clear();
  cycle_ = cycle;
}

vsim_trace_record& Trace::span(LaneId lane, uint64_t begin, uint64_t end) {
  vsim_trace_record& open = open_[lane.kind][lane.index % kIndices][lane.port % kPorts];
  if (open.end != 0 && (begin > open.end + kGap || end > open.begin + kLongest)) close(open);
  if (open.end == 0) {
    open.begin = begin;
    open.kind = lane.kind;
    open.index = static_cast<uint16_t>(lane.index);
    open.port = static_cast<uint16_t>(lane.port);
  }
  open.end = std::max(open.end, end);
  return open;
}

void Trace::close(vsim_trace_record& open) {
  done_.push_back(open);
  open = {};
}

void Trace::level(vsim_trace_kind kind, unsigned index, bool on) {
  vsim_trace_record& open = open_[kind][index % kIndices][0];
  if (!on) {
    if (open.end != 0) {
      open.end = cycle_;
      close(open);
    }
    return;
  }
  if (open.end == 0) {
    open.begin = cycle_;
    open.kind = kind;
    open.index = static_cast<uint16_t>(index);
  }
  open.end = cycle_ + 1;
}

void Trace::event(vsim_trace_kind kind, unsigned index, unsigned port, uint64_t begin, uint64_t end,
                  uint64_t amount) {
  done_.push_back({begin, end, amount, 0, kind, static_cast<uint16_t>(index), static_cast<uint16_t>(port)});
}

void Trace::total(vsim_trace_kind kind, uint64_t value) {
  Total& last = totals_[kind];
  if (last.cycle != 0 && cycle_ < last.cycle + kLongest) return;
  if (last.cycle != 0) event(kind, 0, 0, last.cycle, cycle_, value - last.value);
  last = {value, cycle_};
}

size_t Trace::take(vsim_trace_record* to, size_t room, bool end) {
  if (end) {
    for (auto& kind : open_) {
      for (auto& index : kind) {
        for (vsim_trace_record& open : index) {
          if (open.end != 0) close(open);
        }
      }
    }
  }
  const size_t count = std::min(room, done_.size() - taken_);
  std::copy_n(done_.begin() + static_cast<std::ptrdiff_t>(taken_), count, to);
  taken_ += count;
  if (taken_ == done_.size()) {
    done_.clear();
    taken_ = 0;
  }
  return count;
}

}  // namespace via
