// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Ends the process when an edge of an app does not end: its RTL has a loop that takes no simulated time,
// which nothing else can leave. The limit is in looks of a thread, so that a machine that was suspended is
// not mistaken for one.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace via {

class Watchdog {
 public:
  Watchdog() {
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { watch(); });
    } catch (const std::system_error&) {  // as many threads as the process may have
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // An edge of the app in this slot begins; it ends. Called by one thread at a time.
  void begin(unsigned slot) { now_.store((edges_ += 1) << 8 | (slot + 1), std::memory_order_relaxed); }
  void end() { now_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::seconds kLook{5};
  static constexpr int kLooks = 12;  // at the same edge: a minute, of an edge that takes microseconds

  void watch() {
    uint64_t seen = 0;
    int same = 0;
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kLook, [this] { return over_; })) {
      const uint64_t now = now_.load(std::memory_order_relaxed);
      same = (now != 0 && now == seen) ? same + 1 : 0;
      seen = now;
      if (same >= kLooks) give_up(static_cast<unsigned>(now & 0xff) - 1);
    }
  }

  [[noreturn]] static void give_up(unsigned slot) {
    const std::string tell = "error: the simulated app in slot " + std::to_string(slot) +
                             " has a loop that takes no time; the simulation cannot go on\n";
    (void)!write(STDERR_FILENO, tell.data(), tell.size());
    _exit(EXIT_FAILURE);
  }

  std::atomic<uint64_t> now_{0};  // number of the edge and of its slot, 0 outside of an edge
  uint64_t edges_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace via
