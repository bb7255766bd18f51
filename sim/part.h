// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// One part as a Verilated model; see parts.h.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "parts.h"
#include "verilated_top.h"

namespace via {

template <class Model>
class VerilatedPart final : public Part {
 public:
  VerilatedPart(VerilatedContext* context, const char* place, bool checks)
      : Part(checks), place_(place), top_(context, place_.c_str()) {
    top_.look();  // which makes the parts inside
  }
  ~VerilatedPart() override { top_.top().final(); }

  bool edge(bool left_out, const uint32_t* in, uint32_t* out) override {
    auto& r = top_.ports();
    if (checks) {
      checked_edge(left_out, in);
    } else {
      std::memcpy(&r.in_i, in, sizeof r.in_i);
      step();
    }
    std::memcpy(out, &r.out_o, sizeof r.out_o);
    return true;
  }

  void output(const char* name, uint32_t at) override {
    if (checks) outputs_.emplace_back(at, name);
  }

 private:
  void step() {
    if (watched) {
      changed |= !top_.edge_settled();
    } else {
      top_.edge();
    }
  }

  void checked_edge(bool left_out, const uint32_t* in) {
    auto& r = top_.ports();
    // In reset and at the first edge behind it registers hold anything. The first input is rst_ni.
    const bool compares = (in[0] & 1) && edges_++ > 0;
    rested_ = left_out ? rested_ + 1 : 0;
    if (compares && left_out && rested_ <= 2) rests();
    const auto before = r.out_o;
    std::memcpy(&r.in_i, in, sizeof r.in_i);
    top_.look();
    if (compares) compare(before, "depends on an input of the same cycle");
    step();
    if (compares && left_out) compare(before, "changes at an edge that would be left out");
  }

  // With its inputs as they were the part must not change, or it could not be left out; what does not change
  // at the first edges of a rest does not change later. The first edge may change what Verilator keeps for
  // itself, and what follows from inputs that do not count (payloads, the time), hence only the second one
  // is compared.
  void rests() {
    top_.edge();
    if (top_.edge_settled()) return;
    std::fprintf(stderr, "viaduct card: %s: changes by itself at an edge that would be left out\n",
                 place_.c_str());
    std::abort();
  }

  template <class Bits>
  void compare(const Bits& before, const char* what) {
    if (std::memcmp(&before, &top_.ports().out_o, sizeof before) == 0) return;
    const auto* old = reinterpret_cast<const uint32_t*>(&before);
    const auto* now = reinterpret_cast<const uint32_t*>(&top_.ports().out_o);
    for (size_t i = 0; i < outputs_.size(); i++) {
      const uint32_t end = i + 1 < outputs_.size() ? outputs_[i + 1].first / 32 : sizeof before / 4;
      for (uint32_t word = outputs_[i].first / 32; word < end; word++) {
        if (old[word] == now[word]) continue;
        std::fprintf(stderr, "viaduct card: %s: %s %s: %08x, then %08x\n", place_.c_str(),
                     outputs_[i].second.c_str(), what, old[word], now[word]);
        std::abort();
      }
    }
  }

  std::string place_;
  uint64_t edges_ = 0;   // out of reset
  uint64_t rested_ = 0;  // edges in a row that would be left out
  VerilatedModel<Model> top_;
  std::vector<std::pair<uint32_t, std::string>> outputs_;  // where they begin, in bits
};

}  // namespace via
