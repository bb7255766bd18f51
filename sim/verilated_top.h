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

#include "parts.h"
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

// The classes of the model with prefix V, and what evaluates it: that is eval() without what it does for
// messages of other threads and for objects of SystemVerilog classes, which these models do not have. The
// locks it takes for them would cost a twentieth of the time.
#define VIA_VERILATED(V)                                             \
  void V##___024root___eval(V##___024root*);                         \
  struct V##Model {                                                  \
    using Top = V;                                                   \
    using Root = V##___024root;                                      \
    using Syms = V##__Syms;                                          \
    static void evaluate(Root* root) { V##___024root___eval(root); } \
  };

// A model that is clocked by clk_i. Its context belongs to whom made it. look() comes first: it begins the
// model.
template <class Model>
class VerilatedModel {
 public:
  using Top = typename Model::Top;
  using Root = typename Model::Root;
  using Syms = typename Model::Syms;

  explicit VerilatedModel(VerilatedContext* context, const char* name = "")
      : top_(std::make_unique<Top>(context, name)) {}

  Root& ports() { return *top_->rootp; }
  Top& top() { return *top_; }

  // One cycle.
  void edge() {
    Root& r = ports();
    rearm(r);
#if VM_TRACE_FST
    r.vlSymsp->__Vm_activity = true;  // as eval() does: without it no change is recorded
#endif
    r.clk_i = 1;
    Model::evaluate(&r);
  }
  // As edge(); whether it left the whole state, inputs included, as it was.
  bool edge_settled() {
    if (!before_) before_ = std::make_unique<unsigned char[]>(sizeof(Syms));
    const void* state = ports().vlSymsp;
    std::memcpy(before_.get(), state, sizeof(Syms));
    edge();
    return std::memcmp(before_.get(), state, sizeof(Syms)) == 0;
  }
  // What follows from the inputs without an edge.
  void look() { top_->eval(); }

  static constexpr size_t state_bytes() { return sizeof(Syms); }

#if VM_TRACE_FST
  void trace(VerilatedFstC* fst) { top_->trace(fst, 99); }
#else
  void trace(VerilatedFstC*) {}
#endif

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

  std::unique_ptr<Top> top_;
  std::unique_ptr<unsigned char[]> before_;
};

// A model with a context of its own, waves and coverage; with the parts that its sockets stand for, if it has
// any.
template <class Names>
class VerilatedTop {
 public:
  using Root = typename Names::Root;
  using Syms = typename Names::Syms;

  explicit VerilatedTop(bool checks = false) : parts_(&context_, checks) {
    context_.timeprecision(-12);
    context_.timeunit(-12);
#if VM_TRACE_FST
    context_.traceEverOn(true);
#endif
    model_ = std::make_unique<Model>(&context_);
    Parts::current = &parts_;
    model_->look();
    Parts::current = nullptr;
  }
  ~VerilatedTop() {
    trace_close();
    // Names of scopes are taken back from the thread's context, which may be another's by now.
    Verilated::threadContextp(&context_);
    model_->top().final();
    model_.reset();
  }

  Root& ports() { return model_->ports(); }

  void edge() {
    model_->edge();
#if VM_TRACE_FST
    if (fst_) {
      fst_->dump(time_ps_);
      ports().clk_i = 0;
      model_->look();
      fst_->dump(time_ps_ + period_ps_ / 2);
      time_ps_ += period_ps_;
    }
#endif
  }

  bool edge_settled() {
    for (Part* part : parts_.all) {
      part->watched = true;
      part->changed = false;
    }
    bool settled = model_->edge_settled();
    for (Part* part : parts_.all) {
      part->watched = false;
      settled &= !part->changed;
    }
    return settled;
  }

  static constexpr size_t state_bytes() { return sizeof(Syms); }

  int trace_open(const char* path, uint64_t now_ps, uint32_t period_ps) {
#if VM_TRACE_FST
    trace_close();
    fst_ = std::make_unique<VerilatedFstC>();
    model_->trace(fst_.get());
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
  using Model = VerilatedModel<Names>;

  VerilatedContext context_;
  Parts parts_;
  std::unique_ptr<Model> model_;
#if VM_TRACE_FST
  std::unique_ptr<VerilatedFstC> fst_;
  uint64_t time_ps_ = 0;
  uint32_t period_ps_ = 0;
#endif
};

}  // namespace via
