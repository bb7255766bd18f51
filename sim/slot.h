// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// One place for an app: the instance in it, and what crosses its edge.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "axi.h"
#include "icap.h"
#include "trace.h"
#include "viaduct_slot.h"

namespace via {

class Slot {
 public:
  ~Slot() { unload(); }

  // False if out of memory; the slot is then empty.
  bool load(const SlotApi* api) {
    unload();
    instance_ = api->create();
    if (instance_) api_ = api;
    return loaded();
  }

  void unload() {
    if (loaded()) {
      trace_close();
      api_->destroy(instance_);
    }
    api_ = nullptr;
    instance_ = nullptr;
    out = {};
    activity_ = {};
    still_ = 0;
    next_try_ = kFirstTry;
    settled_ = false;
    tracing_ = false;
  }

  bool loaded() const { return api_ != nullptr; }
  // The app says that it computes.
  bool busy() const { return loaded() && in.rst_n && out.busy; }
  // A further edge with the same inputs changes nothing, so it is left out.
  bool settled() const { return !loaded() || settled_; }
  // Nothing will come of this slot by itself.
  bool idle() const { return settled() || (!out.busy && still_ >= kIdle); }

  // What has crossed the app's streams and memory port since one of its registers was written: cycles of the
  // first and the last transfer, and beats into the app and out of it.
  struct Activity {
    uint64_t first, last, beats_in, beats_out;
  };
  const Activity& activity() const { return activity_; }

  // Bytes at streams and memory port of all apps in the slot since power-up; reads are whole beats.
  struct Totals {
    uint64_t stream_in, stream_out, mem_read, mem_write;
  };
  const Totals& totals() const { return totals_; }

  // One clock edge, in cycle `now`. True if the slot was evaluated. With `every` it is, even where that
  // changes nothing.
  bool edge(bool every, uint64_t now) {
    if (!loaded()) return false;
    watch(now);
    if (settled_) {
      if (std::memcmp(&in, &settled_in_, sizeof in) == 0) {
        if (every) api_->edge(instance_, &in, &out);
        return every;
      }
      settled_ = false;
      still_ = 0;
      next_try_ = kFirstTry;
    }
    still_ = transfers() ? 0 : still_ + 1;
    if (still_ == 0) next_try_ = kFirstTry;
    if (still_ < next_try_) {
      api_->edge(instance_, &in, &out);
      return true;
    }
    settled_ = api_->edge_settled(instance_, &in, &out) != 0;
    settled_in_ = in;
    next_try_ = still_ + (still_ < kLongestWait ? still_ : kLongestWait);
    return true;
  }

  // What is transferred at the coming edge.
  void trace(Trace& trace, unsigned slot) const {
    trace.level(VSIM_TRACE_LOADED, slot, loaded());
    trace.level(VSIM_TRACE_BUSY, slot, busy());
    if (!loaded() || !in.rst_n) return;
    for (unsigned k = 0; k < VIA_NUM_STREAMS; k++) {
      const bool s_valid = in.s_valid >> k & 1, m_valid = out.m_valid >> k & 1;
      trace.handshake(VSIM_TRACE_STREAM_IN, slot, k, s_valid, out.s_ready >> k & 1, kept(in.s_keep, k));
      trace.handshake(VSIM_TRACE_STREAM_OUT, slot, k, m_valid, in.m_ready >> k & 1, kept(out.m_keep, k));
    }
    trace.handshake(VSIM_TRACE_SLOT_READ, slot, 0, in.rvalid, out.rready, kBeatBytes);
    trace.handshake(VSIM_TRACE_SLOT_WRITE, slot, 0, out.wvalid, in.wready, ones(out.wstrb[0]));
    if (out.irq) trace.event(VSIM_TRACE_APP_IRQ, slot, 0, trace.cycle(), trace.cycle(), 0);
  }

  // The levels of everything but payloads; a slot whose levels are as before has nothing new for the shell.
  struct Levels {
    uint64_t word[2];
    bool operator==(const Levels&) const = default;
  };
  Levels levels() const {
    Levels levels;
    std::memcpy(&levels, &out, sizeof levels);
    return levels;
  }
  bool any_valid() const {
    return out.m_valid || out.arvalid || out.awvalid || out.wvalid || out.reg_rvalid || out.irq;
  }

  // 0, or a negative errno: -ENOTSUP if the app was built without waves.
  int trace_open(const std::string& path, uint64_t now_ps, uint32_t period_ps) {
    const int status = loaded() ? api_->trace_open(instance_, path.c_str(), now_ps, period_ps) : 0;
    tracing_ = loaded() && status == 0;
    return status;
  }
  void trace_close() {
    if (tracing_) api_->trace_close(instance_);
    tracing_ = false;
  }
  bool has_coverage() const { return loaded() && (api_->flags & VIADUCT_SLOT_COVERAGE); }
  int coverage_write(const std::string& path) { return api_->coverage_write(instance_, path.c_str()); }

  viaduct_slot_in in{};
  viaduct_slot_out out{};

 private:
  static uint64_t ones(uint64_t bits) { return static_cast<uint64_t>(std::popcount(bits)); }
  // Bytes of a beat of stream k.
  static uint64_t kept(const uint64_t* keep, unsigned k) {
    const unsigned bit = k * kBeatBytes;
    return ones(keep[bit / 64] >> bit % 64 & kFullStrobe);
  }

  static constexpr uint32_t kFirstTry = 16;       // edges without a transfer before the slot is tried
  static constexpr uint32_t kLongestWait = 1024;  // between tries
  static constexpr uint32_t kIdle = 2048;  // edges after which a slot that is not busy counts as idle anyhow

  bool moves() const {
    return (in.s_valid & out.s_ready) || (out.m_valid & in.m_ready) || (out.arvalid && in.arready) ||
           (in.rvalid && out.rready) || (out.awvalid && in.awready) || (out.wvalid && in.wready) ||
           (in.bvalid && out.bready);
  }
  bool transfers() const { return moves() || in.reg_valid || out.reg_rvalid || out.irq; }

  void watch(uint64_t now) {
    if (in.reg_valid && in.reg_write) activity_ = {};
    if (!in.rst_n || !moves()) return;
    if (activity_.first == 0) activity_.first = now;
    activity_.last = now;
    activity_.beats_in +=
        std::popcount(static_cast<unsigned>(in.s_valid & out.s_ready)) + (in.rvalid && out.rready);
    activity_.beats_out +=
        std::popcount(static_cast<unsigned>(out.m_valid & in.m_ready)) + (out.wvalid && in.wready);
    for (unsigned k = 0; k < VIA_NUM_STREAMS; k++) {
      if (in.s_valid & out.s_ready & (1u << k)) totals_.stream_in += kept(in.s_keep, k);
      if (out.m_valid & in.m_ready & (1u << k)) totals_.stream_out += kept(out.m_keep, k);
    }
    if (in.rvalid && out.rready) totals_.mem_read += kBeatBytes;
    if (out.wvalid && in.wready) totals_.mem_write += ones(out.wstrb[0]);
  }

  const SlotApi* api_ = nullptr;
  void* instance_ = nullptr;
  Activity activity_{};
  Totals totals_{};
  uint32_t still_ = 0;  // edges since the last transfer
  uint32_t next_try_ = kFirstTry;
  bool settled_ = false;
  bool tracing_ = false;
  viaduct_slot_in settled_in_{};
};

}  // namespace via
