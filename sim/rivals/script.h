// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// What the programs with other systems have in common: they obey lines of text, and a wrong one ends them
// with its reason.
#pragma once
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <istream>
#include <string>

namespace via {

[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, why.c_str());
  std::exit(1);
}

// The next word of a line.
template <class T>
T next(std::istream& line) {
  T value{};
  if (!(line >> value)) fail("a word is missing, or is no number");
  return value;
}

// xorshift64* (Vigna, 2016).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }
  unsigned below(unsigned n) { return static_cast<unsigned>((next() >> 33) % n); }
  unsigned from_to(unsigned least, unsigned most) { return least + below(most - least + 1); }
  bool once_in(unsigned n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace via
