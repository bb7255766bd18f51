// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The parts of the shell that are Verilated apart (tools/parts.py): models of their own, called at a clock
// edge from the sockets that stand in the shell for them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

class VerilatedContext;

namespace via {

class Part {
 public:
  explicit Part(bool checks) : checks(checks) {}
  virtual ~Part() = default;
  // One clock edge: the inputs before it, the outputs after it, as vectors of 32-bit words. A `left_out` edge
  // would not have been evaluated: only a card that checks asks for it.
  virtual bool edge(bool left_out, const uint32_t* in, uint32_t* out) = 0;
  // An output begins at a bit of the vector.
  virtual void output(const char* name, uint32_t at) = 0;

  const bool checks;  // every edge is evaluated and compared
  // While set, each edge notes whether it changed the part's state.
  bool watched = false;
  bool changed = false;
};

// The parts of one shell. They register themselves while the shell is evaluated for the first time.
class Parts {
 public:
  Parts(VerilatedContext* context, bool checks) : context(context), checks(checks) {}

  VerilatedContext* const context;
  const bool checks;  // of its parts (VIADUCT_SIM_CHECK=1)
  std::vector<Part*> all;

  // Where new parts go; of the thread that makes a shell.
  static inline thread_local Parts* current = nullptr;
};

// Makes a part of a kind, for the instance at a place in the shell; null if there is no such kind. Made by
// tools/parts.py.
std::unique_ptr<Part> make_part(const std::string& kind, VerilatedContext* context, const char* place,
                                bool checks);

}  // namespace via
