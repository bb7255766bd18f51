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

// A port of a model has its place in a vector of the socket, with whole words for each element.
template <class T>
constexpr size_t words(const T&) {
  return (sizeof(T) + 3) / 4;
}
template <class T, size_t N>
constexpr size_t words(const VlUnpacked<T, N>& port) {
  return N * words(port[0]);
}

template <class T>
inline void take_port(T& port, const uint32_t* v) {
  std::memcpy(&port, v, sizeof port);
}
template <class T, size_t N>
inline void take_port(VlUnpacked<T, N>& port, const uint32_t* v) {
  for (size_t i = 0; i < N; i++) take_port(port[i], v + i * words(port[i]));
}
template <class T>
inline void give_port(const T& port, uint32_t* v) {
  if constexpr (sizeof port < sizeof *v)
    *v = port;
  else
    std::memcpy(v, &port, sizeof port);
}
template <class T, size_t N>
inline void give_port(const VlUnpacked<T, N>& port, uint32_t* v) {
  for (size_t i = 0; i < N; i++) give_port(port[i], v + i * words(port[i]));
}

// The same for payloads: those elements whose bit of their valid is set.
template <class T>
inline void take_port(T& port, const uint32_t* v, uint64_t valid) {
  if (valid & 1) take_port(port, v);
}
template <class T, size_t N>
inline void take_port(VlUnpacked<T, N>& port, const uint32_t* v, uint64_t valid) {
  for (size_t i = 0; i < N; i++) take_port(port[i], v + i * words(port[i]), valid >> i);
}
template <class T>
inline void give_port(const T& port, uint32_t* v, uint64_t valid) {
  if (valid & 1) give_port(port, v);
}
template <class T, size_t N>
inline void give_port(const VlUnpacked<T, N>& port, uint32_t* v, uint64_t valid) {
  for (size_t i = 0; i < N; i++) give_port(port[i], v + i * words(port[i]), valid >> i);
}

// `Ports` moves the ports between the model and the vectors of its socket (made by tools/parts.py).
template <class Model, class Ports>
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
      checked_edge(left_out, in, out);
    } else {
      Ports::take(r, in);
      step();
    }
    Ports::give(r, out);
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

  void checked_edge(bool left_out, const uint32_t* in, uint32_t* out) {
    auto& r = top_.ports();
    // In reset and at the first edge behind it registers hold anything. The first input is rst_ni.
    const bool compares = (in[0] & 1) && edges_++ > 0;
    rested_ = left_out ? rested_ + 1 : 0;
    if (compares && left_out && rested_ <= 2) rests();
    Ports::take(r, in);
    top_.look();
    if (compares) compare(out, "depends on an input of the same cycle");
    step();
    if (compares && left_out) compare(out, "changes at an edge that would be left out");
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

  void compare(const uint32_t* old, const char* what) {
    now_.assign(old, old + Ports::size(top_.ports()));
    Ports::give(top_.ports(), now_.data());
    if (std::memcmp(old, now_.data(), sizeof *old * now_.size()) == 0) return;
    for (size_t i = 0; i < outputs_.size(); i++) {
      const size_t end = i + 1 < outputs_.size() ? outputs_[i + 1].first / 32 : now_.size();
      for (size_t word = outputs_[i].first / 32; word < end; word++) {
        if (old[word] == now_[word]) continue;
        std::fprintf(stderr, "viaduct card: %s: %s %s: %08x, then %08x\n", place_.c_str(),
                     outputs_[i].second.c_str(), what, old[word], now_[word]);
        std::abort();
      }
    }
  }

  std::string place_;
  uint64_t edges_ = 0;   // out of reset
  uint64_t rested_ = 0;  // edges in a row that would be left out
  VerilatedModel<Model> top_;
  std::vector<uint32_t> now_;                              // outputs that are compared
  std::vector<std::pair<uint32_t, std::string>> outputs_;  // where they begin, in bits
};

}  // namespace via
