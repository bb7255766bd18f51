// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// What shell and slots have in common as Verilated objects: one clock edge a call, waves, coverage, and the
// proof that an edge changes nothing.
#pragma once
#include <verilated.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#if VM_TRACE_FST
#include <verilated_fst_c.h>
#endif
#if VM_COVERAGE
#include <verilated_cov.h>
#endif

namespace via {

// Signals keep their little-endian words whatever type Verilator gives them, so a copy of bytes is a copy of
// bits.
template <class To, class From>
inline void widen(To& to, const From& from) {
  static_assert(std::is_trivially_copyable_v<From> && sizeof(To) >= sizeof(From));
  std::memcpy(&to, &from, sizeof(From));
}
template <class To, class From>
inline void narrow(To& to, const From& from) {
  static_assert(std::is_trivially_copyable_v<From> && sizeof(To) <= sizeof(From));
  std::memcpy(&to, &from, sizeof(To));
}

// kGates: the top gates clocks of parts of it.
template <class Top, class Root, class Syms, bool kGates>
class VerilatedTop {
 public:
  VerilatedTop() {
    context_.timeprecision(-12);
    context_.timeunit(-12);
#if VM_TRACE_FST
    context_.traceEverOn(true);
#endif
    top_ = std::make_unique<Top>(&context_, "");
  }
  ~VerilatedTop() {
    trace_close();
    top_->final();
  }

  Root& ports() { return *top_->rootp; }

  // One cycle. Gates of clocks inside look at the inputs while the clock is low; nothing else does.
  void edge() {
    Root& r = ports();
    if constexpr (kGates) {
      r.clk_i = 0;
      top_->eval();
    } else {
      rearm(r);
    }
    r.clk_i = 1;
    top_->eval();
#if VM_TRACE_FST
    if (fst_) {
      fst_->dump(time_ps_);
      r.clk_i = 0;
      top_->eval();
      fst_->dump(time_ps_ + period_ps_ / 2);
      time_ps_ += period_ps_;
    }
#endif
  }

  // As edge(); whether it left the whole state, inputs included, as it was.
  bool edge_settled() {
    if (!before_) before_ = std::make_unique<unsigned char[]>(sizeof(Syms));
    const void* state = ports().vlSymsp;
    std::memcpy(before_.get(), state, sizeof(Syms));
    edge();
    return std::memcmp(before_.get(), state, sizeof(Syms)) == 0;
  }

  static constexpr size_t state_bytes() { return sizeof(Syms); }

  int trace_open(const char* path, uint64_t now_ps, uint32_t period_ps) {
#if VM_TRACE_FST
    trace_close();
    fst_ = std::make_unique<VerilatedFstC>();
    top_->trace(fst_.get(), 99);
    fst_->open(path);
    if (!fst_->isOpen()) {
      fst_.reset();
      return -EIO;
    }
    time_ps_ = now_ps;
    period_ps_ = period_ps;
    return 0;
#else
    (void)path, (void)now_ps, (void)period_ps;
    return -ENOTSUP;
#endif
  }
  void trace_close() {
#if VM_TRACE_FST
    if (fst_) fst_->close();
    fst_.reset();
#endif
  }

  int coverage_write([[maybe_unused]] const char* path) {
#if VM_COVERAGE
    context_.coveragep()->write(path);
    return 0;
#else
    return -ENOTSUP;
#endif
  }

 private:
  // The name is Verilator's for the previous value of the clock; a version that calls it differently gets the
  // falling edge evaluated, which is slower and equally right.
  template <class R>
  void rearm(R& r) {
    r.clk_i = 0;
    if constexpr (requires { r.__Vtrigprevexpr___TOP__clk_i__0; })
      r.__Vtrigprevexpr___TOP__clk_i__0 = 0;
    else
      top_->eval();
  }

  VerilatedContext context_;
  std::unique_ptr<Top> top_;
  std::unique_ptr<unsigned char[]> before_;
#if VM_TRACE_FST
  std::unique_ptr<VerilatedFstC> fst_;
  uint64_t time_ps_ = 0;
  uint32_t period_ps_ = 0;
#endif
};

}  // namespace via
