// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Queue of fixed capacity whose entries are reached by running index, so that several stages can each keep
// their place in it. Allocates once.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>

namespace via {

template <class T>
class Ring {
 public:
  explicit Ring(uint32_t capacity)
      : capacity_(capacity),
        mask_(std::bit_ceil(capacity) - 1),
        slots_(std::make_unique<T[]>(std::size_t{mask_} + 1)) {}

  uint64_t head() const { return head_; }  // index of the oldest entry
  uint64_t tail() const { return tail_; }  // index the next entry will have
  uint32_t size() const { return static_cast<uint32_t>(tail_ - head_); }
  uint32_t room() const { return capacity_ - size(); }
  bool empty() const { return head_ == tail_; }
  bool full() const { return room() == 0; }

  T& operator[](uint64_t index) { return slots_[index & mask_]; }
  const T& operator[](uint64_t index) const { return slots_[index & mask_]; }
  T& front() { return (*this)[head_]; }
  const T& front() const { return (*this)[head_]; }
  // Makes a new last entry, which still holds what an older one held.
  T& push() { return (*this)[tail_++]; }
  void pop(uint32_t count = 1) { head_ += count; }
  void clear() { head_ = tail_ = 0; }

 private:
  uint32_t capacity_;
  uint32_t mask_;
  std::unique_ptr<T[]> slots_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
};

}  // namespace via
