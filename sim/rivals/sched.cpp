// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The program behind `viaduct bench vio` for schedulers: members of rtl/rivals/via_rival_sched.sv, and a
// device that they share. It obeys the lines of its standard input, in order, and prints results; a wrong
// line ends it.
//
//   share POLICY DEVICE N CAP BEATS MEMBER…
//                    who gets how much. A MEMBER is INDEX:WAYS:WEIGHT:SHORTEST:LONGEST, and always has a
//                    burst of that many beats waiting, of random length, in WAYS 1 (reads), 2 (writes) or 3
//                    (both). Until the one with the least for its weight has had BEATS beats for each unit of
//                    it. Prints `shared CYCLES MOVED BEATS…`: beats that the device has moved, and those
//                    granted to each member
//   wait POLICY DEVICE N CAP REQUESTS LENGTH
//                    member N - 1 goes first; it requests a burst of LENGTH beats REQUESTS times, at random
//                    times, while all others saturate the device with bursts of all lengths and weights.
//                    Prints `waited GRANT START`: the longest time from a request to its grant, and to its
//                    first beat
//
// POLICY: 0 by bytes, 1 round robin by bursts, 2 vFPIO's, 3 vFPIO's mended. DEVICE: 0 a link, one way, quanta
// of 64 beats; 1 a DRAM channel, reads and writes with one data bus, quanta of 16 beats. A device moves a
// beat a cycle, and accepts bursts while less than CAP beats are under way.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "Vsched.h"
#include "Vsched__Syms.h"
#include "Vsched___024root.h"
#include "rivals/script.h"
#include "verilated_top.h"

VIA_VERILATED(Vsched)

namespace via {
namespace {

using Ports = Vsched___024root;
using Top = VerilatedModel<VschedModel>;

constexpr unsigned kMax = sizeof(Ports::weight_i) / sizeof(Ports::weight_i[0]);
constexpr unsigned kLongest = 64;  // beats of a burst
constexpr unsigned kQuantumLog2[] = {6, 4};
constexpr uint64_t kTooLong = 100'000'000;  // cycles

struct Member {
  unsigned index = 0, ways = 1, weight = 1, shortest = 1, longest = 1;
  uint64_t beats = 0;
};

class Bench {
 public:
  Bench(unsigned policy, unsigned device, unsigned n, unsigned cap) : cap_(cap), n_(n) {
    if (policy > 3 || device > 1) fail("there is no such policy or device");
    if (policy >= 2 && device == 1) fail("vFPIO's scheduler has no reads and writes of one account");
    if (n == 0 || n > kMax) fail("there are 1 to 16 members");
    if (cap == 0) fail("a device accepts at least a beat");
    Ports& r = top_.ports();
    r.n_i = static_cast<decltype(r.n_i)>(n);
    r.chan_i = device == 1;
    r.rival_i = policy >= 2;
    r.plain_i = policy == 1 || policy == 3;
    r.quantum_log2_i = kQuantumLog2[device];
    r.first_i = 0;
    r.req_i[0] = r.req_i[1] = 0;
    r.ack_i = 0;
    for (unsigned m = 0; m < kMax; m++) r.weight_i[m] = 1;
    r.rst_ni = 0;
    edge();
    edge();
    r.rst_ni = 1;
  }

  void share(std::vector<Member>& members, uint64_t beats) {
    Ports& r = top_.ports();
    for (const Member& member : members) {
      r.weight_i[member.index] = static_cast<decltype(+r.weight_i[0])>(member.weight);
      for (unsigned w = 0; w < 2; w++) {
        if (member.ways >> w & 1) request(w, member.index, random_.from_to(member.shortest, member.longest));
      }
    }
    std::array<Member*, kMax> by_index{};
    for (Member& member : members) by_index[member.index] = &member;
    uint64_t cycles = 0;
    const auto has_enough = [&](const Member& m) { return m.beats >= beats * m.weight; };
    // A member that is starved would never have enough: what the device moves in all that time is enough
    // then.
    uint64_t weights = 0;
    for (const Member& member : members) weights += member.weight;
    while (!std::all_of(members.begin(), members.end(), has_enough) && cycles < 2 * beats * weights) {
      for (unsigned w = 0; w < 2; w++) {
        const unsigned m = granted(w);
        if (m == kMax) continue;
        Member& member = *by_index[m];
        member.beats += length_[w][m];
        request(w, m, random_.from_to(member.shortest, member.longest));
      }
      cycles++;
    }
    uint64_t moved = 0;
    for (const Member& member : members) moved += member.beats;
    std::printf("shared %llu %llu", static_cast<unsigned long long>(cycles),
                static_cast<unsigned long long>(moved - under_way_));
    for (const Member& m : members) std::printf(" %llu", static_cast<unsigned long long>(m.beats));
    std::printf("\n");
  }

  void wait(uint64_t requests, unsigned length) {
    Ports& r = top_.ports();
    const unsigned own = n_ - 1;
    r.first_i = static_cast<decltype(r.first_i)>(1u << own);
    for (unsigned m = 0; m < own; m++) {
      r.weight_i[m] = static_cast<decltype(+r.weight_i[0])>(1 + random_.below(15));
      for (unsigned w = 0; w <= r.chan_i; w++) request(w, m, random_.from_to(1, kLongest));
    }
    uint64_t longest_grant = 0, longest_start = 0, asked = 0, next = 1000;
    unsigned way = 0;
    bool waits = false;
    for (uint64_t done = 0; done < requests;) {
      if (!waits && now_ >= next) {
        way = r.chan_i ? random_.below(2) : 0;
        request(way, own, length);
        waits = true;
        asked = now_;
      }
      uint64_t ahead = under_way_;
      for (unsigned w = 0; w < 2; w++) {
        const unsigned m = granted(w);
        if (m == kMax) continue;
        if (m != own) {
          ahead += length_[w][m];  // of the other way in the same cycle
          request(w, m, random_.from_to(1, kLongest));
          continue;
        }
        r.req_i[w] &= static_cast<decltype(+r.req_i[0])>(~(1u << own));
        waits = false;
        done++;
        longest_grant = std::max(longest_grant, now_ - 1 - asked);
        longest_start = std::max(longest_start, now_ - 1 - asked + ahead);
        // Often soon, and also after the others have spent and refilled what they have.
        next = now_ + (random_.below(2) ? random_.below(64) : random_.below(8192));
      }
      if (waits && now_ - asked > kTooLong) fail("a request waits for ever");
    }
    std::printf("waited %llu %llu\n", static_cast<unsigned long long>(longest_grant),
                static_cast<unsigned long long>(longest_start));
  }

 private:
  void request(unsigned w, unsigned m, unsigned beats) {
    Ports& r = top_.ports();
    r.req_i[w] |= static_cast<decltype(+r.req_i[0])>(1u << m);
    (w ? r.len_wr_i : r.len_rd_i)[m] = static_cast<uint8_t>(beats - 1);
    fresh_[w][m] = beats;
  }

  // Who is granted in way w in this cycle, or kMax; way 0 comes first, and begins a cycle.
  unsigned granted(unsigned w) {
    if (w == 0) edge();
    if (!(grant_[w])) return kMax;
    return static_cast<unsigned>(std::countr_zero(grant_[w]));
  }

  void edge() {
    Ports& r = top_.ports();
    length_ = fresh_;
    r.ack_i = under_way_ < cap_ ? 3 : 0;
    r.clk_i = 0;
    top_.look();
    for (unsigned w = 0; w < 2; w++) {
      grant_[w] = r.rst_ni && (r.ack_i & r.valid_o) >> w & 1 ? r.gnt_o[w] : 0;
      if (grant_[w] & (grant_[w] - 1)) fail("two grants at once");
      if (grant_[w] & ~uint32_t{r.req_i[w]}) fail("a grant without a request");
    }
    top_.edge();
    now_++;
    under_way_ -= under_way_ != 0;
    for (unsigned w = 0; w < 2; w++) {
      if (grant_[w]) under_way_ += length_[w][std::countr_zero(grant_[w])];
    }
  }

  VerilatedContext context_;
  Top top_{&context_};
  Random random_{0x9e3779b97f4a7c15u};
  std::array<std::array<unsigned, kMax>, 2> fresh_{},
      length_{};  // beats of the burst that waits; that was granted
  uint32_t grant_[2] = {};
  uint64_t under_way_ = 0, now_ = 0;
  uint64_t cap_;
  unsigned n_;
};

Member member_of(const std::string& text, unsigned n) {
  Member m;
  char end = 0;
  const int read = std::sscanf(text.c_str(), "%u:%u:%u:%u:%u%c", &m.index, &m.ways, &m.weight, &m.shortest,
                               &m.longest, &end);
  if (read != 5 || m.index >= n || m.ways == 0 || m.ways > 3 || m.weight == 0 || m.weight > 15 ||
      m.shortest == 0 || m.shortest > m.longest || m.longest > kLongest) {
    fail(text + " is not INDEX:WAYS:WEIGHT:SHORTEST:LONGEST");
  }
  return m;
}

void obey() {
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string what;
    line >> what;
    if (what != "share" && what != "wait") fail("unknown: " + text);
    const auto policy = next<unsigned>(line), device = next<unsigned>(line), n = next<unsigned>(line);
    const auto bench = std::make_unique<Bench>(policy, device, n, next<unsigned>(line));
    if (what == "share") {
      const auto beats = next<uint64_t>(line);
      std::vector<Member> members;
      for (std::string word; line >> word;) members.push_back(member_of(word, n));
      if (members.empty()) fail("nobody requests anything");
      bench->share(members, beats);
    } else {
      const auto requests = next<uint64_t>(line);
      const auto length = next<unsigned>(line);
      if (length == 0 || length > kLongest) fail("a burst has 1 to 64 beats");
      bench->wait(requests, length);
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
