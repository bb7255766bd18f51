// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Demand paging of the other systems of `viaduct bench fsrf`, for a slot, as in the published artifact (FSRF
// paper, section 5.3 and Table 2): a page that is not resident stops the slot, which drains; then the host
// serves one fault. Every wait is added to the one before: it sees the fault, writes the oldest pages back if
// there are no frames (each of a writable mapping, as there are no dirty bits), reads the page from the disk
// if it is not in memory, copies it in, and lets the slot go on. Slots share the link, whose directions carry
// one transfer after the other, and the disk, which does so too, but begins to read while others wait for its
// latency.
//
// Where the sources leave a choice the replica gets the faster one. A poll of the host is never late: what it
// waits for is seen half a register read later. A copy takes no time of DRAM channels. A page keeps its
// location in card memory, so that none is fragmented; its bytes are there only while it is resident, and are
// overwritten when it leaves.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace via {

// Times in cycles, rates in bytes per 1000 cycles.
struct PagerConfig {
  uint32_t frames = 0;  // pages of 4 KiB of each slot that are resident at most; 0: all are, always
  uint32_t unit = 1;    // pages that a fault loads
  uint32_t most = 1;    // pages that it loads while there are free frames, and once faults are in order
  uint32_t writable = 0, writable_end = 0;  // pages of mappings that the app may write
  uint32_t read_latency = 0, write_latency = 0, mmio_read = 0, mmio_write = 0, service = 0;
  uint32_t in_rate = 1, out_rate = 1;
  uint32_t disk_latency = 0, disk_rate = 0;  // of a disk that pages are read from; rate 0: they are in memory
};

// What carries one transfer after the other: a direction of the link, or the disk.
class Lanes {
 public:
  // When a transfer ends that may begin at `now`.
  uint64_t carry(uint64_t now, uint64_t bytes, uint32_t rate) {
    const uint64_t begin = std::max(now * 1000, free_);
    free_ = begin + bytes * 1'000'000 / rate;
    return (free_ + 999) / 1000;
  }

 private:
  uint64_t free_ = 0;  // in thousandths of a cycle
};

class Pager {
 public:
  static constexpr uint64_t kPage = 4096;
  // Calls back with location and size of the parts of a page in card memory.
  using Places = std::function<void(uint64_t offset, uint64_t bytes,
                                    const std::function<void(uint64_t at, uint8_t* memory, uint64_t n)>&)>;

  // All pages are in card memory; those without a frame leave it.
  void begin(const PagerConfig& config, uint64_t bytes, bool resident, Places places) {
    config_ = config;
    places_ = std::move(places);
    pages_ = (bytes + kPage - 1) / kPage;
    host_.assign(pages_ * kPage, 0);
    bytes_ = bytes;
    there_.assign(pages_, true);
    ring_.clear();
    next_ = pages_;
    run_ = config.unit;
    loads_ = stores_ = faults_ = 0;
    state_ = State::kRuns;
    for (uint64_t n = 0; n < pages_; n++) {
      if (resident && ring_.size() < config_.frames) {
        ring_.push_back(n);
      } else {
        leave(n);
      }
    }
  }

  bool runs() const { return state_ == State::kRuns; }
  bool resident(uint64_t offset) const { return offset / kPage < pages_ && there_[offset / kPage]; }

  // An access to a page that is not resident.
  void miss(uint64_t offset) {
    page_ = offset / kPage;
    state_ = page_ < pages_ ? State::kDrains : State::kLost;
  }
  // The slot stands still, and will not go on in this cycle.
  bool stands_still(uint64_t now) const {
    const bool ends = state_ == State::kResponded && now >= until_;
    return state_ != State::kRuns && state_ != State::kLost && state_ != State::kDrains && !ends;
  }
  // It is outside the memory: nobody will serve it.
  bool lost() const { return state_ == State::kLost; }

  void step(uint64_t now, bool drained, Lanes& in, Lanes& out, Lanes& disk) {
    switch (state_) {
      case State::kRuns:
      case State::kLost:
        return;
      case State::kDrains:
        if (drained) wait(State::kServed, now + config_.mmio_read / 2 + config_.service);
        return;
      default:
        if (now < until_) return;
    }
    if (state_ == State::kServed) {
      choose();
      const uint64_t keep = config_.frames - std::min<uint64_t>(config_.frames, chosen_);
      uint64_t gone = 0;
      while (ring_.size() > keep) {
        const uint64_t page = ring_.front();
        leave(page);
        ring_.pop_front();
        gone += page >= config_.writable && page < config_.writable_end;
      }
      stores_ += gone;
      const uint64_t begun = now + config_.mmio_write;
      const uint64_t ended = out.carry(begun, gone * kPage, config_.out_rate) + config_.write_latency;
      wait(State::kFreed, gone ? ended + config_.mmio_read / 2 : now);
    } else if (state_ == State::kFreed && config_.disk_rate) {
      wait(State::kRead, disk.carry(now, chosen_ * kPage, config_.disk_rate) + config_.disk_latency);
    } else if (state_ == State::kFreed || state_ == State::kRead) {
      for (uint64_t n = page_; n < page_ + chosen_; n++) come(n);
      loads_ += chosen_;
      const uint64_t begun = now + config_.mmio_write + config_.read_latency;
      wait(State::kLoaded, in.carry(begun, chosen_ * kPage, config_.in_rate) + config_.mmio_read / 2);
    } else if (state_ == State::kLoaded) {
      wait(State::kResponded, now + config_.mmio_write);
    } else if (entered_ == chosen_) {
      faults_++;
      state_ = State::kRuns;
    }
  }

  // The next page to be entered into the TLB, if there is one, before the slot goes on; as an offset.
  bool enters(uint64_t now, uint64_t& offset) {
    if (state_ != State::kResponded || now < until_ || entered_ == chosen_) return false;
    offset = (page_ + entered_++) * kPage;
    return true;
  }

  // The bytes of a page that is not in card memory.
  const uint8_t* in_host(uint64_t offset) const { return &host_[offset]; }
  uint64_t faults() const { return faults_; }
  uint64_t loads() const { return loads_; }
  uint64_t stores() const { return stores_; }

 private:
  enum class State { kRuns, kLost, kDrains, kServed, kFreed, kRead, kLoaded, kResponded };

  void wait(State next, uint64_t until) {
    state_ = next;
    until_ = until;
  }

  // How many pages the fault loads: as many as one may while frames are free or, twice as many as before,
  // while faults are in order.
  void choose() {
    const bool free = ring_.size() + config_.most <= config_.frames;
    run_ = free ? config_.most : page_ == next_ ? std::min(run_ * 2, config_.most) : config_.unit;
    while (page_ % config_.unit && !there_[page_ - 1]) page_--;  // a part of the unit may be resident
    chosen_ = entered_ = 0;
    while (chosen_ < std::min(run_, config_.frames) && page_ + chosen_ < pages_ && !there_[page_ + chosen_])
      chosen_++;
    next_ = page_ + chosen_;
  }

  uint64_t length(uint64_t n) const { return std::min(kPage, bytes_ - n * kPage); }

  void leave(uint64_t n) {
    places_(n * kPage, length(n), [&](uint64_t at, uint8_t* memory, uint64_t size) {
      std::copy_n(memory, size, &host_[at]);
      std::fill_n(memory, size, 0xee);
    });
    there_[n] = false;
  }

  void come(uint64_t n) {
    places_(n * kPage, length(n),
            [&](uint64_t at, uint8_t* memory, uint64_t size) { std::copy_n(&host_[at], size, memory); });
    there_[n] = true;
    ring_.push_back(n);
  }

  PagerConfig config_;
  Places places_;
  uint64_t bytes_ = 0, pages_ = 0;
  std::vector<uint8_t> host_;
  std::vector<bool> there_;
  std::deque<uint64_t> ring_;  // resident pages, the oldest first
  State state_ = State::kRuns;
  uint64_t page_ = 0, until_ = 0, next_ = 0, loads_ = 0, stores_ = 0, faults_ = 0;
  uint32_t run_ = 1, chosen_ = 0, entered_ = 0;
};

}  // namespace via
