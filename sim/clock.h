// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Card time: whole cycles, and the same instant in picoseconds for the models.
#pragma once
#include <cstdint>

namespace via {

class Clock {
 public:
  explicit Clock(uint32_t khz) : khz_(khz), step_(kPsPerKhz / khz), step_rest_(kPsPerKhz % khz) {}

  uint64_t cycles() const { return cycles_; }
  uint64_t ps() const { return ps_; }
  uint32_t khz() const { return khz_; }
  // Length of the next cycle; differs by one where the period is not a whole number.
  uint32_t period_ps() const { return step_; }

  void tick() {
    cycles_++;
    ps_ += step_;
    rest_ += step_rest_;
    if (rest_ >= khz_) {
      rest_ -= khz_;
      ps_++;
    }
  }

  void jump(uint64_t cycles) {
    const unsigned __int128 rest = static_cast<unsigned __int128>(step_rest_) * cycles + rest_;
    cycles_ += cycles;
    ps_ += step_ * cycles + static_cast<uint64_t>(rest / khz_);
    rest_ = static_cast<uint32_t>(rest % khz_);
  }

  // First cycle, counted from now, at whose start `ps` has passed.
  uint64_t cycles_until(uint64_t ps) const { return ps <= ps_ ? 0 : to_cycles(ps - ps_); }
  // Cycles that last at least `ps`.
  uint64_t to_cycles(uint64_t ps) const {
    const unsigned __int128 scaled = static_cast<unsigned __int128>(ps) * khz_ + (kPsPerKhz - 1);
    return static_cast<uint64_t>(scaled / kPsPerKhz);
  }

 private:
  static constexpr uint64_t kPsPerKhz = 1'000'000'000;  // picoseconds in the period of 1 kHz
  uint32_t khz_;
  uint32_t step_;
  uint32_t step_rest_;
  uint32_t rest_ = 0;
  uint64_t cycles_ = 0;
  uint64_t ps_ = 0;
};

}  // namespace via
