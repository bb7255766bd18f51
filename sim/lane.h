// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// A serial resource: one direction of a link, a wire, a serial line.
#pragma once
#include <cstdint>

namespace via {

class Lane {
 public:
  uint64_t free_ps() const { return free_ps_; }
  // Time it has been in use, with what is still being sent.
  uint64_t busy_ps() const { return busy_ps_; }
  // Sends `bytes`, not before `start_ps`; returns when the last byte is through.
  uint64_t send(uint64_t start_ps, uint64_t bytes, uint64_t fs_per_byte) {
    if (start_ps > free_ps_) {
      free_ps_ = start_ps;
      rest_fs_ = 0;
    }
    busy_fs_ += bytes * fs_per_byte;
    busy_ps_ += busy_fs_ / 1000;
    busy_fs_ %= 1000;
    const uint64_t fs = bytes * fs_per_byte + rest_fs_;
    free_ps_ += fs / 1000;
    rest_fs_ = fs % 1000;
    return free_ps_;
  }

 private:
  uint64_t free_ps_ = 0;
  uint64_t rest_fs_ = 0;
  uint64_t busy_ps_ = 0, busy_fs_ = 0;
};

}  // namespace via
