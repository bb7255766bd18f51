// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The program behind `viaduct bench vio` for ports: apps, devices, and one of the systems of
// rtl/rivals/via_rival_vio.sv between them. It obeys the lines of its standard input, in order, and prints
// results; a wrong line ends it. Nothing depends on the wall clock.
//
//   system SYSTEM CHAIN             0 direct, 1 fixed, 2 mux, 3 viaduct; resets it, all slots are empty then
//   app SLOT OBJECT                 loads an app
//   set SLOT OFFSET VALUE           writes a register of the app
//   run BYTES COUNT IN OUT          COUNT messages of BYTES each, from file IN, as fast as they are taken by
//                                   slot 0 (with CHAIN: by all slots) from device 0; what comes back to
//                                   device 0, COUNT messages, is written to OUT. Prints `ran LATENCY CYCLES`:
//                                   from the first beat sent to the first received, and to the last one
//   change                          prints `changed IDLE BUSY`: cycles from the write of a route to the
//                                   first beat by it, if nothing is sent, and behind the last beat by the
//                                   former route if a message is on its way
//   routes CHANGES SEED             changes routes at random while all sources send, with random stalls;
//                                   prints `routes CHANGES MESSAGES DROPPED LOST DOUBLED DAMAGED MISROUTED
//                                   IDLE BUSY`: what became of the messages, and the longest change of a sink
//                                   with nothing on its way, and behind the end of what was
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "Vvio.h"
#include "Vvio__Syms.h"
#include "Vvio___024root.h"
#include "axi.h"
#include "rivals/app.h"
#include "rivals/script.h"
#include "slot.h"
#include "verilated_top.h"

VIA_VERILATED(Vvio)

namespace via {
namespace {

using Ports = Vvio___024root;
using Top = VerilatedModel<VvioModel>;

constexpr unsigned kSlots = sizeof(Ports::sel_i) / sizeof(Ports::sel_i[0]);
constexpr unsigned kDevices = sizeof(Ports::rx_data_i) / sizeof(Ports::rx_data_i[0]);
constexpr unsigned kEnds = kSlots + kDevices;  // ends of routes: slots, devices
constexpr unsigned kNone = kEnds;
constexpr uint64_t kStuck = 1'000'000;  // cycles without a beat
constexpr unsigned kReset = 16;
constexpr unsigned kSettle = 64;  // cycles in which everything that is on its way without stalls arrives
constexpr uint64_t kFull = kBeatBytes == 64 ? ~uint64_t{0} : (uint64_t{1} << kBeatBytes % 64) - 1;

enum System : unsigned { kDirect, kFixed, kMux, kViaduct };

struct Beat {
  uint64_t data[kBeatBytes / 8]{};
  uint64_t keep = 0;
  bool last = false;
  uint8_t id = 0;
};

// One end of a stream each way, as the card sees it: what it offers and whether it accepts.
struct End {
  Beat offer;
  bool offers = false, accepts = false;
};

class Bench {
 public:
  void system(unsigned system, bool chain) {
    if (system > kViaduct) fail("there is no such system");
    if (chain && system != kDirect && system != kViaduct) fail("this system has no routes from app to app");
    system_ = system;
    chain_ = chain;
    for (Slot& slot : slots_) slot.unload();
    slots_.clear();
    slots_.resize(kSlots);
    ends_.fill({});
    Ports& r = top_.ports();
    r.system_i = static_cast<decltype(r.system_i)>(system);
    r.chain_i = chain;
    r.route_set_i = 0;
    for (unsigned s = 0; s < kSlots; s++) r.sel_i[s] = kDevices;
    r.rst_ni = 0;
    for (unsigned i = 0; i < kReset; i++) edge();
    r.rst_ni = 1;
    for (unsigned i = 0; i < kReset; i++) edge();
    // Slot s has device s, or what is before it in the chain.
    for (unsigned s = 0; s < kSlots; s++) {
      const unsigned device = s < kDevices ? kSlots + s : kNone;
      if (!chain) {
        connect(s, device, s);
      } else if (system_ == kViaduct) {
        set_route(s, s == 0 ? kSlots : s - 1);
        if (s == kSlots - 1) set_route(kSlots, s);
      }
    }
    for (unsigned i = 0; i < kSettle; i++) edge();
  }

  void app(unsigned s, const std::string& object) {
    if (!slots_.at(s).load(app_of(object))) fail("out of memory");
    for (unsigned i = 0; i < kReset; i++) edge();
    slots_[s].in.rst_n = 1;
    for (unsigned i = 0; i < kSettle; i++) edge();
  }

  void set(unsigned s, uint32_t offset, uint32_t value) {
    Slot& slot = slots_.at(s);
    slot.in.reg_valid = 1;
    slot.in.reg_write = 1;
    slot.in.reg_addr = static_cast<uint16_t>(offset);
    slot.in.reg_wdata = value;
    for (unsigned i = 0; !slot.out.reg_rvalid; i++) {
      if (i == 1000) fail("an app does not answer a register access");
      edge();
    }
    slot.in.reg_valid = 0;
    for (unsigned i = 0; i < kSettle; i++) edge();
  }

  void run(uint64_t bytes, uint64_t count, const std::string& in, const std::string& out) {
    std::ifstream from(in, std::ios::binary);
    const std::vector<char> data((std::istreambuf_iterator<char>(from)), std::istreambuf_iterator<char>());
    if (!from || bytes == 0 || data.size() != bytes * count) fail(in + " has another length");
    std::vector<char> got;
    uint64_t sent = 0, messages = 0, first_in = 0, first_out = 0, moved = now_;
    bool begun = false, came = false;
    End& device = ends_[kSlots];
    device.accepts = true;
    while (messages < count) {
      device.offers = sent < data.size();
      if (device.offers) {
        const uint64_t left = bytes - sent % bytes, n = std::min<uint64_t>(left, kBeatBytes);
        device.offer = {};
        std::memcpy(device.offer.data, &data[sent], n);
        device.offer.keep = n == kBeatBytes ? kFull : (uint64_t{1} << n) - 1;
        device.offer.last = n == left;
      }
      edge();
      if (taken_ >> kSlots & 1) {
        if (!begun) first_in = now_;
        begun = true;
        sent += std::min<uint64_t>(bytes - sent % bytes, kBeatBytes);
        moved = now_;
      }
      if (given_ >> kSlots & 1) {
        if (!came) first_out = now_;
        came = true;
        const Beat beat = received(kSlots);
        const auto* at = reinterpret_cast<const char*>(beat.data);
        got.insert(got.end(), at, at + std::popcount(beat.keep));
        messages += beat.last;
        moved = now_;
      }
      if (now_ - moved > kStuck) fail("no beat has moved for a long time");
    }
    device = {};
    std::printf("ran %llu %llu\n", static_cast<unsigned long long>(first_out - first_in),
                static_cast<unsigned long long>(moved - first_in + 1));
    std::ofstream(out, std::ios::binary).write(got.data(), static_cast<std::streamsize>(got.size()));
  }

  // Slot 0 gets its input from device 0 and then from device 1, which both offer all the time. Slots are
  // empty.
  void change() {
    if (chain_ || (system_ != kMux && system_ != kViaduct)) fail("this system has no routes to be changed");
    for (unsigned d = 1; d < kDevices; d++) connect(d, kNone, kNone);
    for (unsigned i = 0; i < kSettle; i++) edge();
    uint64_t cycles[2];
    constexpr unsigned kLong = 100;  // beats of the message that is on its way
    for (unsigned busy = 0; busy < 2; busy++) {
      connect(0, kSlots, kNone);
      for (unsigned i = 0; i < kSettle; i++) edge();
      ends_[0].accepts = true;
      uint64_t set = 0, old = 0;
      for (unsigned beat = 0;; old += busy) {
        if (old > kStuck) fail("the new route does not work");
        End& source = ends_[kSlots];
        source.offers = busy && beat < kLong;
        source.offer.keep = kFull;
        source.offer.id = 0;
        source.offer.last = beat == kLong - 1;
        ends_[kSlots + 1].offers = set != 0;
        ends_[kSlots + 1].offer.keep = kFull;
        ends_[kSlots + 1].offer.id = 1;
        ends_[kSlots + 1].offer.last = true;
        if (set == 0 && (!busy || beat == kLong / 2)) {
          write(0, kSlots + 1);
          set = now_ + 1;  // the cycle in which the register is written
        }
        edge();
        top_.ports().route_set_i = 0;
        if (taken_ >> kSlots & 1) beat++;
        if (!(given_ & 1)) continue;
        if (received(0).id == 1) break;
        if (received(0).last) set = now_;
      }
      cycles[busy] = now_ - set;
      ends_.fill({});
      ends_[0].accepts = true;
      for (unsigned i = 0; i < kSettle; i++) edge();
    }
    std::printf("changed %llu %llu\n", static_cast<unsigned long long>(cycles[0]),
                static_cast<unsigned long long>(cycles[1]));
  }

  void routes(uint64_t changes, uint64_t seed);

 private:
  // ---------------------------------------------------------------- routes
  // In a cycle: the register of a route. `sink` and `source` are ends; a slot's route each way in SysMux.
  void write(unsigned sink, unsigned source) {
    Ports& r = top_.ports();
    written_ = true;
    if (system_ == kMux) {
      r.sel_i[sink] = static_cast<decltype(+r.sel_i[0])>(source == kNone ? kDevices : source - kSlots);
      return;
    }
    r.route_i = end_word(source) << 10 | end_word(sink);
    r.route_set_i = 1;
  }

  // vio_end_t.
  static uint32_t end_word(unsigned end) {
    constexpr unsigned kFunction[] = {1, 3};  // DevFn of via_rival_vio: FnNet, FnConsole
    static_assert(sizeof kFunction / sizeof kFunction[0] == kDevices);
    if (end == kNone) return 0;
    return end < kSlots ? 1u << 8 | end << 4 : 3u << 8 | kFunction[end - kSlots];
  }

  void set_route(unsigned sink, unsigned source) {
    write(sink, source);
    edge();
    top_.ports().route_set_i = 0;
    for (unsigned i = 0; i < kReset; i++) edge();
  }

  // The slot's input from a device, and that device's sink from a slot.
  void connect(unsigned slot, unsigned device, unsigned source) {
    if (system_ == kMux) write(slot, device);
    if (system_ != kViaduct) return;
    set_route(slot, device);
    if (device != kNone && source != kNone) set_route(device, source);
  }

  // ---------------------------------------------------------------- an edge
  // Everybody sees what the others drove before the edge, as in sim/card.cpp. Where a slot is empty, its end
  // is driven by the test.
  void edge() {
    Ports& r = top_.ports();
    uint32_t s_ready = 0, m_valid = 0, m_last = 0, rx_valid = 0, rx_last = 0, tx_ready = 0;
    for (unsigned s = 0; s < kSlots; s++) {
      const Slot& slot = slots_[s];
      const bool valid = slot.loaded() ? slot.out.m_valid & 1 : ends_[s].offers;
      s_ready |= uint32_t{slot.loaded() ? (slot.out.s_ready & 1) != 0 : ends_[s].accepts} << s;
      m_valid |= uint32_t{valid} << s;
    }
    for (unsigned d = 0; d < kDevices; d++) {
      rx_valid |= uint32_t{ends_[kSlots + d].offers} << d;
      tx_ready |= uint32_t{ends_[kSlots + d].accepts} << d;
    }
    if (stands_still({s_ready, m_valid, rx_valid, tx_ready})) {
      for (Slot& slot : slots_) slot.edge(false, now_);
      now_++;
      return;
    }
    for (unsigned s = 0; s < kSlots; s++) {
      const Slot& slot = slots_[s];
      if (!(m_valid >> s & 1)) continue;
      if (slot.loaded()) {
        narrow(r.slot_m_data_i[s], slot.out.m_data);
        narrow(r.slot_m_keep_i[s], slot.out.m_keep);
        narrow(r.slot_m_id_i[s], slot.out.m_id);
        m_last |= uint32_t{slot.out.m_last & 1u} << s;
      } else {
        const Beat& beat = ends_[s].offer;
        narrow(r.slot_m_data_i[s], beat.data);
        narrow(r.slot_m_keep_i[s], beat.keep);
        r.slot_m_id_i[s] = beat.id;
        m_last |= uint32_t{beat.last} << s;
      }
    }
    for (unsigned d = 0; d < kDevices; d++) {
      const End& end = ends_[kSlots + d];
      if (!end.offers) continue;
      narrow(r.rx_data_i[d], end.offer.data);
      narrow(r.rx_keep_i[d], end.offer.keep);
      r.rx_id_i[d] = end.offer.id;
      rx_last |= uint32_t{end.offer.last} << d;
    }
    r.slot_s_ready_i = static_cast<decltype(r.slot_s_ready_i)>(s_ready);
    r.slot_m_valid_i = static_cast<decltype(r.slot_m_valid_i)>(m_valid);
    r.slot_m_last_i = static_cast<decltype(r.slot_m_last_i)>(m_last);
    r.rx_valid_i = static_cast<decltype(r.rx_valid_i)>(rx_valid);
    r.rx_last_i = static_cast<decltype(r.rx_last_i)>(rx_last);
    r.tx_ready_i = static_cast<decltype(r.tx_ready_i)>(tx_ready);
    r.clk_i = 0;
    top_.look();
    if (r.rst_ni && r.isolated_o && system_ == kViaduct && started_) fail("a slot was isolated");
    taken_ = (m_valid & r.slot_m_ready_o) | (rx_valid & r.rx_ready_o) << kSlots;
    offered_ = r.slot_s_valid_o | uint32_t{r.tx_valid_o} << kSlots;
    given_ = offered_ & (s_ready | tx_ready << kSlots);
    if (!r.rst_ni) taken_ = given_ = offered_ = 0;
    for (unsigned e = 0; e < kEnds; e++) {
      if (given_ >> e & 1) last_given_[e] = look_at(e);
    }
    state_ = r.state_o;
    for (unsigned s = 0; s < kSlots; s++) {
      viaduct_slot_in& in = slots_[s].in;
      in.m_ready = r.slot_m_ready_o >> s & 1;
      in.s_valid = r.slot_s_valid_o >> s & 1;
      if (in.s_valid) {
        widen(in.s_data, r.slot_s_data_o[s]);
        widen(in.s_keep, r.slot_s_keep_o[s]);
        in.s_last = r.slot_s_last_o >> s & 1;
        in.s_id[0] = r.slot_s_id_o[s];
      }
      slots_[s].edge(false, now_);
    }
    top_.edge();
    now_++;
  }

  // Whether nobody has offered or accepted anything else for so long that everything between them has come to
  // rest: then an edge changes nothing outside the apps, and is left out there.
  bool stands_still(const std::array<uint32_t, 4>& levels) {
    const Ports& r = top_.ports();
    const bool same = levels == levels_ && !taken_ && !given_ && r.rst_ni && !r.route_set_i && !written_;
    levels_ = levels;
    written_ = false;
    still_ = same ? still_ + 1 : 0;
    return still_ > kSettle / 2;
  }

  Beat look_at(unsigned e) {
    const Ports& r = top_.ports();
    Beat beat;
    if (e < kSlots) {
      widen(beat.data, r.slot_s_data_o[e]);
      widen(beat.keep, r.slot_s_keep_o[e]);
      beat.last = r.slot_s_last_o >> e & 1;
      beat.id = r.slot_s_id_o[e];
    } else {
      const unsigned d = e - kSlots;
      widen(beat.data, r.tx_data_o[d]);
      widen(beat.keep, r.tx_keep_o[d]);
      beat.last = r.tx_last_o >> d & 1;
      beat.id = r.tx_id_o[d];
    }
    return beat;
  }

  // What an end has accepted at the last edge.
  const Beat& received(unsigned e) const { return last_given_[e]; }
  // Of the sink whose route was written last: not complete, and the source that it takes.
  bool pending() const { return state_ >> 10 & 1; }
  uint32_t taken_source() const { return state_ & 0x3ff; }

  VerilatedContext context_;
  Top top_{&context_};
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::array<End, kEnds> ends_{};
  std::array<Beat, kEnds> last_given_{};
  // At the last edge: beats of ends that the card took, that it offered them, and that they accepted.
  uint32_t taken_ = 0, offered_ = 0, given_ = 0;
  uint32_t state_ = 0;  // state_o before the last edge
  unsigned system_ = kDirect;
  bool chain_ = false, started_ = false;
  std::array<uint32_t, 4> levels_{};  // what the ends drove at the last edge
  bool written_ = false;              // a route was written since then
  unsigned still_ = 0;                // edges since something has changed
  uint64_t now_ = 0;                  // edges until now
};

// A message of the random traffic: its first word has source and number, every other word a value of both and
// of its place.
uint64_t word_of(unsigned source, uint64_t number, uint64_t place) {
  if (place == 0) return number << 8 | source;
  uint64_t x = (number << 8 | source) * 0x9e3779b97f4a7c15u + place;
  x ^= x >> 31;
  return x * 0xbf58476d1ce4e5b9u;
}

// Number of words: each message has another length, also of one word only.
uint64_t words_of(unsigned source, uint64_t number) {
  const uint64_t x = word_of(source, number, ~uint64_t{0}) >> 40;
  return 1 + (x % 8 == 0 ? x / 8 % 160 : x / 8 % 24);
}

struct Sender {
  uint64_t number = 0, at = 0;
  bool offers = false;
};

struct Receiver {
  bool open = false, wrong = false;
  unsigned source = kNone;
  uint64_t number = 0, at = 0;
};

void Bench::routes(uint64_t changes, uint64_t seed) {
  if (chain_ || (system_ != kMux && system_ != kViaduct)) fail("this system has no routes to be changed");
  constexpr uint64_t kWords = kBeatBytes / 8;
  Random random(seed * 2 + 1);
  std::array<Sender, kEnds> senders{};
  std::array<Receiver, kEnds> receivers{};
  std::array<unsigned, kEnds> stall{};  // of 16 cycles, how many it does not accept
  std::array<std::unordered_map<uint64_t, bool>, kEnds> under_way;  // numbers of messages that have been sent
  // What each sink takes, and what it took until the last change was complete.
  std::array<unsigned, kEnds> owner{}, before{};
  owner.fill(kNone);
  before.fill(kNone);
  uint64_t messages = 0, lost = 0, doubled = 0, damaged = 0, misrouted = 0, dropped = 0;
  uint64_t longest_idle = 0, longest_busy = 0;
  bool stop = false, settled = true;  // settled: no change is under way

  for (unsigned s = 0; s < kSlots; s++) connect(s, kNone, kNone);
  for (unsigned d = 0; system_ == kViaduct && d < kDevices; d++) set_route(kSlots + d, kNone);
  started_ = true;
  std::array<uint64_t, kEnds> last_beat{};
  // Whether a sink takes what this source sends, for certain.
  const auto routed = [&](unsigned source) {
    for (unsigned e = 0; e < kEnds; e++) {
      if (owner[e] == source && before[e] == source) return true;
    }
    return false;
  };
  const auto step = [&] {
    for (unsigned e = 0; e < kEnds; e++) {
      Sender& sender = senders[e];
      End& end = ends_[e];
      if (random.once_in(256)) stall[e] = random.below(16);
      end.accepts = stop || random.below(16) >= stall[e];
      // An offer stays until it is taken.
      if (!sender.offers) sender.offers = (!stop || sender.at != 0) && !random.once_in(5);
      end.offers = sender.offers;
      if (!end.offers) continue;
      const uint64_t words = words_of(e, sender.number);
      const uint64_t n = std::min(words - sender.at, kWords);
      end.offer = {};
      for (uint64_t i = 0; i < n; i++) end.offer.data[i] = word_of(e, sender.number, sender.at + i);
      end.offer.keep = n == kWords ? kFull : (uint64_t{1} << 8 * n) - 1;
      end.offer.last = sender.at + n == words;
      end.offer.id = static_cast<uint8_t>(sender.number);
    }
    edge();
    top_.ports().route_set_i = 0;
    for (unsigned e = 0; e < kEnds; e++) {
      Sender& sender = senders[e];
      if (taken_ >> e & 1) {
        sender.offers = false;
        // A device's message that no sink takes is dropped as a whole (via_vio_switch); all others are owed.
        if (sender.at == 0) under_way[e].emplace(sender.number, system_ == kMux || e < kSlots || routed(e));
        sender.at += kWords;
        if (ends_[e].offer.last) {
          sender.at = 0;
          sender.number++;
          messages++;
        }
      }
      Receiver& receiver = receivers[e];
      // While the end does not accept, what is on its way to it cannot arrive.
      if ((offered_ & ~given_) >> e & 1) last_beat[e] = now_;
      // What was taken by the former route has left, also the register at the app.
      if (settled && !(offered_ >> e & 1) && !receiver.open) before[e] = owner[e];
      if (!(given_ >> e & 1)) continue;
      last_beat[e] = now_;
      const Beat& beat = received(e);
      if (!receiver.open) {
        receiver = {.open = true,
                    .wrong = false,
                    .source = unsigned(beat.data[0] & 0xff),
                    .number = beat.data[0] >> 8,
                    .at = 0};
        receiver.wrong = receiver.source >= kEnds;
        if (!receiver.wrong && receiver.source != owner[e] && receiver.source != before[e]) misrouted++;
        if (settled && receiver.source == owner[e]) before[e] = owner[e];
      }
      if (!receiver.wrong) {
        const uint64_t words = words_of(receiver.source, receiver.number);
        const uint64_t n = receiver.at < words ? std::min(words - receiver.at, kWords) : 0;
        const uint64_t keep = n == kWords ? kFull : (uint64_t{1} << 8 * n) - 1;
        receiver.wrong = n == 0 || beat.keep != keep || beat.last != (receiver.at + n == words) ||
                         beat.id != static_cast<uint8_t>(receiver.number);
        for (uint64_t i = 0; i < n && !receiver.wrong; i++) {
          receiver.wrong = beat.data[i] != word_of(receiver.source, receiver.number, receiver.at + i);
        }
        receiver.at += kWords;
      }
      if (!beat.last) continue;
      receiver.open = false;
      if (receiver.wrong) {
        damaged++;
      } else {
        const auto found = under_way[receiver.source].find(receiver.number);
        if (found == under_way[receiver.source].end()) {
          doubled++;
        } else {
          under_way[receiver.source].erase(found);
        }
      }
    }
  };

  const auto settle = [&](unsigned source) {
    step();
    for (uint64_t i = 0; i < 3 || pending(); i++) {  // state_o is of this sink three cycles later
      if (i == kStuck) fail("a change does not end");
      step();
    }
    if (taken_source() != end_word(source)) fail("a route was not taken");
    settled = true;
  };

  for (uint64_t done = 0; done < changes;) {
    for (unsigned i = random.below(4) ? random.below(8) : random.below(80); i-- > 0;) step();
    unsigned sink = random.below(system_ == kMux ? kSlots : kEnds);
    // A device has only slots as sources; a slot anything. Each source has one sink, so that every message
    // has one place to go to.
    unsigned source = random.below(kEnds + 1);
    if (system_ == kMux && source < kSlots) continue;
    if (sink >= kSlots && source >= kSlots && source != kNone) continue;
    if (source != kNone && std::find(owner.begin(), owner.end(), source) != owner.end()) continue;
    if (source == owner[sink] || (system_ == kViaduct && before[sink] != owner[sink])) continue;
    done++;
    before[sink] = owner[sink];
    owner[sink] = source;
    write(sink, source);
    if (system_ == kMux) {
      // What the device gets is from the slot that has it.
      std::array<unsigned, kEnds> was = owner;
      for (unsigned d = kSlots; d < kEnds; d++) {
        before[d] = owner[d];
        owner[d] = kNone;
        for (unsigned s = 0; s < kSlots; s++) {
          if (was[s] == d) owner[d] = s;
        }
      }
      step();
      continue;
    }
    settled = false;
    const uint64_t set = now_ + 1;
    const bool busy = receivers[sink].open;
    settle(source);
    const uint64_t from = std::max(set, last_beat[sink]);
    uint64_t& longest = busy || last_beat[sink] >= set ? longest_busy : longest_idle;
    longest = std::max(longest, now_ - from);
  }
  // Everybody ends the open messages, and all that was taken arrives: also from slots without a sink, whose
  // messages wait.
  stop = true;
  for (unsigned s = 0; s < kSlots; s++) {
    for (uint64_t i = 0; i < 4096; i++) step();
    if (system_ == kMux) continue;
    for (unsigned e = 0; e < kEnds; e++) {
      if (owner[e] != s) continue;
      owner[e] = kNone;
      write(e, kNone);
      settle(kNone);
    }
    before[s] = owner[s];
    owner[s] = s;
    write(s, s);
    settle(s);
  }
  for (uint64_t i = 0; i < 4096; i++) step();
  for (unsigned e = 0; e < kEnds; e++) {
    if (senders[e].at != 0)
      under_way[e].erase(senders[e].number);  // its source has not ended it: nobody takes it
    for (const auto& [number, owed] : under_way[e]) (owed ? lost : dropped)++;
  }
  started_ = false;
  std::printf("routes %llu %llu %llu %llu %llu %llu %llu %llu %llu\n",
              static_cast<unsigned long long>(changes), static_cast<unsigned long long>(messages),
              static_cast<unsigned long long>(dropped), static_cast<unsigned long long>(lost),
              static_cast<unsigned long long>(doubled), static_cast<unsigned long long>(damaged),
              static_cast<unsigned long long>(misrouted), static_cast<unsigned long long>(longest_idle),
              static_cast<unsigned long long>(longest_busy));
}

void obey() {
  const auto bench = std::make_unique<Bench>();
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string what;
    line >> what;
    if (what == "system") {
      const auto system = next<unsigned>(line);
      bench->system(system, next<unsigned>(line) != 0);
    } else if (what == "app") {
      const auto slot = next<unsigned>(line);
      bench->app(slot, next<std::string>(line));
    } else if (what == "set") {
      const auto slot = next<unsigned>(line);
      const auto offset = next<uint32_t>(line);
      bench->set(slot, offset, next<uint32_t>(line));
    } else if (what == "run") {
      const auto bytes = next<uint64_t>(line);
      const auto count = next<uint64_t>(line);
      const auto in = next<std::string>(line);
      bench->run(bytes, count, in, next<std::string>(line));
    } else if (what == "change") {
      bench->change();
    } else if (what == "routes") {
      const auto changes = next<uint64_t>(line);
      bench->routes(changes, next<uint64_t>(line));
    } else {
      fail("unknown: " + text);
    }
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace via

int main() {
  via::obey();
  return 0;
}
