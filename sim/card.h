// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The whole card: the shell, the slots, and the models around them, clock edge by clock edge.
//
// At an edge everyone sees what the others' registers held before it, as in hardware; so the order in which
// the parts are evaluated does not matter, and a part whose inputs stay the same and that has come to rest
// need not be.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bar.h"
#include "board.h"
#include "clock.h"
#include "dram.h"
#include "hostmap.h"
#include "icap.h"
#include "link.h"
#include "recording.h"
#include "shell.h"
#include "slot.h"
#include "sysmon.h"
#include "trace.h"
#include "viaduct_sim.h"
#include "watchdog.h"

namespace via {

class Card {
 public:
  // `config` has been checked. Throws std::bad_alloc.
  explicit Card(const vsim_config& config);
  ~Card();

  static constexpr unsigned kFunctions = Shell::kFunctions;  // the management function included

  Clock clock;
  HostMap maps[kFunctions];
  vsim_counters counters{};
  vsim_fn_counters fn_counters[kFunctions]{};
  Link link;
  Bar bar;
  std::vector<Port> ports;        // by function
  uint32_t bus_master = 0;        // one bit a function
  std::atomic<bool> stop{false};  // set from any thread

  // Begins a function-level reset; whether one of these functions is still being reset.
  void function_reset(unsigned function) { flr_ |= 1u << function; }
  bool resetting(unsigned function) {
    return ((flr_ | driven_.flr | shell_.fn_flr_busy()) >> function & 1) != 0;
  }
  const Sysmon& sysmon() const { return sysmon_; }
  const Slot& slot(unsigned s) const { return slots_[s]; }
  static constexpr unsigned slots() { return kSlots; }
  // Functions whose board port has a packet for the host.
  uint32_t packets() const {
    uint32_t mask = 0;
    for (const unsigned f : board_) mask |= uint32_t{ports[f].has_packet()} << f;
    return mask;
  }

  // Nothing will happen unless the host does something.
  bool parked();
  // Some cycles pass: at least one, at most `cycles`.
  void advance(uint64_t cycles);
  // Cycles pass in which nothing happens.
  void sleep(uint64_t cycles);
  void reset();
  // Starts over from power-up (see reset) and keeps what the shell sees at the next `edges` edges.
  void record(uint64_t edges);
  const Recording* recording() const { return recording_.get(); }
  // Without a trace nothing is looked at for one.
  void trace(bool on) { trace_ = on ? std::make_unique<Trace>() : nullptr; }
  Trace* trace() { return trace_.get(); }
  int wave_open(const char* path, uint64_t start, uint64_t cycles, std::string& why);

 private:
  static constexpr unsigned kSlots = Shell::kSlots;
  static constexpr unsigned kChannels = Shell::kChannels;

  void step();
  void drive();
  void record_inputs(bool reset);
  bool models_rest();
  bool inputs_same() const;
  bool shell_rests();
  uint64_t next_packet_ps() const;
  bool tries_shell() const { return rested_ >= next_try_; }
  void look_at_shell();
  void trace_edge();
  void slot_edges();
  void model_edges();
  void shell_edge();
  void check_skipped_shell();
  void configure(const Icap::Action& action);
  void unload(unsigned slot);
  void look_at_sysmon();
  bool waving() const { return wave_end_ != 0; }
  void wave_step();
  void wave_begin();
  void wave_close();
  std::string wave_slot_path(unsigned slot) const;

  Shell shell_;
  Icap icap_;
  Sysmon sysmon_;
  std::vector<std::unique_ptr<Dram>> dram_;
  Slot slots_[kSlots];
  Watchdog watchdog_;

  // What the shell saw the last time it was evaluated.
  struct Driven {
    AxiResponse host, mem[kChannels];
    bool msix_ready;
    LiteRequest lite;
    FnRequest fn;
    uint32_t flr, bus_master;
    SysmonResponse sysmon;
    PortResponse port[kFunctions];
    Slot::Levels slot[kSlots];
  };
  Driven driven_{};
  std::vector<unsigned> board_;  // functions with a port of the board
  uint32_t flr_ = 0;             // function-level resets that the shell is to see at the next edge

  // The shell is left out when it says that it is quiet, or was seen to be, and its inputs are the same for a
  // while.
  uint32_t busy_edges_ = kLinger;  // edges the shell gets, whatever it says
  uint64_t rested_ = 0;            // edges since an input of the shell changed
  uint64_t next_try_ = kFirstTry;
  bool fixed_ = false;     // an edge was seen to change nothing
  bool evaluated_ = true;  // at the last edge
  static constexpr uint32_t kLinger = 5;
  static constexpr uint64_t kFirstTry = 256;
  static constexpr uint64_t kLongestWait = 16384;

  bool check_;  // run the shell where it could be left out, and see that nothing changes
  bool fault_;  // respond to a write that nobody made, once host memory is read: a checker has to stop the
                // card
  uint32_t checked_ = 0;

  std::unique_ptr<Recording> recording_;
  std::unique_ptr<Trace> trace_;

  std::string wave_path_;
  uint64_t wave_start_ = ~uint64_t{0}, wave_cycles_ = 0;
  uint64_t wave_end_ = 0;  // not 0: waves are being written

  std::string coverage_;  // prefix of coverage files, empty: none
  unsigned coverage_files_ = 0;
};

}  // namespace via
