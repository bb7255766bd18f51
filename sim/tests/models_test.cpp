// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests of the card's models without a shell: a driver plays the shell's part at the clock edge. Run by
// sim/test_models.py; the first argument is a scratch folder, the second one the test to run.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bar.h"
#include "board.h"
#include "clock.h"
#include "dram.h"
#include "hostmap.h"
#include "icap.h"
#include "link.h"
#include "rivals/pager.h"
#include "sha256.h"
#include "sysmon.h"

#define CHECK(condition, ...)                                       \
  do {                                                              \
    if (!(condition)) {                                             \
      std::printf("%s:%d: %s\n  ", __FILE__, __LINE__, #condition); \
      std::printf("" __VA_ARGS__);                                  \
      std::printf("\n");                                            \
      std::exit(1);                                                 \
    }                                                               \
  } while (0)

namespace {

using namespace via;

constexpr uint32_t kClkKhz = 250'000;
std::string scratch;
std::mt19937_64 rng;

vsim_link link_config() {
  return {.generation = 3,
          .lanes = 16,
          .mps = 256,
          .mrrs = 512,
          .rcb = 64,
          .tags = 256,
          .read_latency_ns = 550,
          .write_latency_ns = 300,
          .mmio_read_ns = 900,
          .mmio_write_ns = 300,
          .irq_latency_ns = 1000,
          .read_efficiency_pct = 100,
          .write_efficiency_pct = 100};
}

vsim_dram dram_config() {
  return {.mib = 1024,
          .data_bytes = 64,
          .burst_ps = 3333,
          .banks = 16,
          .groups = 4,
          .row_bytes = 8192,
          .t_rcd_ps = 14160,
          .t_rp_ps = 14160,
          .t_ras_ps = 32000,
          .t_cl_ps = 14160,
          .t_cwl_ps = 10000,
          .t_wr_ps = 15000,
          .t_wtr_ps = 7500,
          .t_rtw_ps = 9163,
          .t_ccd_ps = 3333,
          .t_ccd_l_ps = 5000,
          .t_faw_ps = 21000,
          .t_refi_ps = 7'800'000,
          .t_rfc_ps = 350'000,
          .machines = 0,
          .queue = 32,
          .read_fifo = 0,
          .write_fifo = 0,
          .clock_ps = 0,
          .machine_ps = 0,
          .track_ps = 0,
          .controller_ps = 40'000};
}

// As viaduct-sim's profile `f1`.
vsim_dram f1_dram() {
  vsim_dram c = dram_config();
  c.burst_ps = 3750;
  c.t_rcd_ps = c.t_rp_ps = 15000;
  c.t_ras_ps = 32813;
  c.t_cl_ps = c.t_wr_ps = 15938;
  c.t_cwl_ps = 11250;
  c.t_wtr_ps = 8438;
  c.t_rtw_ps = 10313;
  c.t_ccd_ps = 3750;
  c.t_ccd_l_ps = 5625;
  c.t_faw_ps = 15000;
  c.t_rfc_ps = 510'000;
  c.machines = 4;
  c.queue = 2;
  c.read_fifo = 32;
  c.write_fifo = 2;
  c.clock_ps = 3750;
  c.machine_ps = 18750;
  c.track_ps = 1'000'000;
  return c;
}

// As viaduct-sim's profile `hbm`.
vsim_dram hbm_dram() {
  vsim_dram c = dram_config();
  c.mib = 256;
  c.burst_ps = c.t_ccd_ps = c.t_ccd_l_ps = 4444;
  c.banks = 8;
  c.groups = 1;
  c.row_bytes = 2048;
  c.t_rcd_ps = c.t_rp_ps = c.t_cl_ps = 14000;
  c.t_ras_ps = 34000;
  c.t_cwl_ps = 4000;
  c.t_wr_ps = 16000;
  c.t_wtr_ps = 8000;
  c.t_rtw_ps = 14444;
  c.t_faw_ps = 60000;
  c.t_refi_ps = 3'900'000;
  c.t_rfc_ps = 260'000;
  c.controller_ps = 76'000;
  return c;
}

// Plays the shell towards one model: issues bursts, keeps the handshake rules, checks those of the model.
class Manager {
 public:
  struct Read {
    uint64_t addr;
    unsigned beats;
    uint8_t id = 0;
  };
  struct Write {
    uint64_t addr;
    unsigned beats;
    std::vector<uint8_t> data;
    std::vector<uint64_t> strobes;
    uint8_t id = 0;
  };
  struct ReadDone {
    uint8_t id;
    uint8_t resp;  // worst of the beats
    std::vector<uint8_t> data;
    std::vector<uint8_t> resps;
    uint64_t cycle;
  };
  struct WriteDone {
    uint8_t id, resp;
    uint64_t cycle;
  };

  std::deque<Read> reads;
  std::deque<Write> writes;
  std::vector<ReadDone> read_done;
  std::vector<WriteDone> write_done;
  double ready_chance = 1;  // of R and B
  bool keep_data = true;
  bool ordered = false;  // B of the writes taken before a read comes before its first R
  uint64_t beats_read = 0, beats_written = 0;

  const AxiRequest& request() const { return q_; }

  // After an edge with these responses; what the model drove before it.
  void edge(const AxiResponse& a, uint64_t cycle) {
    if (a.rfresh) std::memcpy(rdata_, a.rdata, kBeatBytes);
    if (q_.rready && a.rvalid) take_read(a, cycle);
    if (q_.bready && a.bvalid) write_done.push_back({a.bid, a.bresp, cycle});
    if (q_.arvalid && a.arready) {
      q_.arvalid = false;
      behind_[q_.arid].push_back(writes_taken_);
    }
    if (q_.awvalid && a.awready) q_.awvalid = false;
    if (q_.wvalid && a.wready) {
      q_.wvalid = false;
      beats_written++;
      if (++beat_ == writing_.front().beats) {
        beat_ = 0;
        writes_taken_++;
        writing_.pop_front();
      }
    }
    if (!q_.arvalid && !reads.empty()) {
      q_.arvalid = true;
      q_.araddr = reads.front().addr;
      q_.arlen = static_cast<uint8_t>(reads.front().beats - 1);
      q_.arid = reads.front().id;
      expected_[q_.arid].push_back(reads.front().beats);
      reads.pop_front();
    }
    if (!q_.awvalid && !writes.empty()) {
      q_.awvalid = true;
      q_.awaddr = writes.front().addr;
      q_.awlen = static_cast<uint8_t>(writes.front().beats - 1);
      q_.awid = writes.front().id;
      writing_.push_back(std::move(writes.front()));
      writes.pop_front();
    }
    if (!q_.wvalid && !writing_.empty()) {
      const Write& w = writing_.front();
      q_.wvalid = true;
      q_.wdata = w.data.empty() ? zeros_ : w.data.data() + std::size_t{beat_} * kBeatBytes;
      q_.wstrb = w.strobes.empty() ? kFullStrobe : w.strobes[beat_];
      q_.wlast = beat_ + 1 == w.beats;
    }
    q_.rready = chance();
    q_.bready = chance();
  }

 private:
  bool chance() { return ready_chance >= 1 || std::uniform_real_distribution<>(0, 1)(rng) < ready_chance; }

  void take_read(const AxiResponse& a, uint64_t cycle) {
    beats_read++;
    CHECK(!expected_[a.rid].empty(), "a response nobody asked for, id %d", a.rid);
    if (open_ >= 0) CHECK(open_ == a.rid, "bursts are interleaved");
    if (open_ < 0) {
      CHECK(!ordered || ready_chance < 1 || write_done.size() >= behind_[a.rid].front(),
            "a read passes a write, id %d", a.rid);
      behind_[a.rid].pop_front();
    }
    open_ = a.rid;
    if (keep_data) data_.insert(data_.end(), rdata_, rdata_ + kBeatBytes);
    resps_.push_back(a.rresp);
    CHECK(a.rlast == (resps_.size() == expected_[a.rid].front()), "last at beat %zu", resps_.size());
    if (!a.rlast) return;
    expected_[a.rid].pop_front();
    read_done.push_back({a.rid, *std::max_element(resps_.begin(), resps_.end()), data_, resps_, cycle});
    data_.clear();
    resps_.clear();
    open_ = -1;
  }

  AxiRequest q_;
  uint64_t writes_taken_ = 0;
  std::map<uint8_t, std::deque<uint64_t>> behind_;  // by id: writes taken before each read
  std::deque<Write> writing_;
  unsigned beat_ = 0;
  std::map<uint8_t, std::deque<unsigned>> expected_;
  int open_ = -1;
  std::vector<uint8_t> data_;
  std::vector<uint8_t> resps_;
  alignas(64) uint8_t rdata_[kBeatBytes];
  alignas(64) uint8_t zeros_[kBeatBytes] = {};
};

constexpr unsigned kFunctions = 4;
constexpr unsigned kIds = Link::kFirstId + kFunctions - 1;

// Memory at kBase that all functions reach.
struct LinkBench {
  HostMap maps[kFunctions];
  HostMap& map = maps[0];
  vsim_fn_counters counters[kFunctions]{};
  Clock clock{kClkKhz};
  Link link;
  Manager shell;
  std::vector<uint8_t> memory;
  MsixRequest msix;
  uint64_t pending[kFunctions] = {};
  uint64_t irq_cycle[64] = {};

  explicit LinkBench(const vsim_link& config, size_t bytes = 1 << 20)
      : link(config, kFunctions, maps, counters), memory(bytes) {
    CHECK(Link::check(config).empty());
    shell.ordered = true;
    for (auto& byte : memory) byte = static_cast<uint8_t>(rng());
    std::string why;
    for (HostMap& of_function : maps) {
      CHECK(of_function.map(kBase, memory.data(), bytes, VSIM_DMA_READ | VSIM_DMA_WRITE, why) == 0);
    }
  }
  static constexpr uint64_t kBase = 0x1000'0000;

  void step() {
    const AxiResponse response = link.response();
    const bool msix_taken = link.msix_ready();
    if (!link.sleeps(shell.request(), msix)) link.edge(clock, shell.request(), msix);
    for (unsigned f = 0; f < kFunctions; f++) {
      const bool expected = link.pending() >> f & 1;
      const uint64_t taken = link.take(f, ~uint64_t{0});
      CHECK((taken != 0) == expected);
      pending[f] |= taken;
    }
    for (unsigned v = 0; v < 64; v++) {
      if ((pending[0] >> v & 1) && irq_cycle[v] == 0) irq_cycle[v] = clock.cycles();
    }
    shell.edge(response, clock.cycles());
    if (msix_taken) msix = {};
    clock.tick();
  }
  void run(const std::function<bool()>& done, uint64_t limit = 1'000'000) {
    const uint64_t end = clock.cycles() + limit;
    while (!done()) {
      CHECK(clock.cycles() < end, "nothing happens any more");
      step();
    }
  }
};

struct DramBench {
  vsim_counters counters{};
  Clock clock{kClkKhz};
  Dram dram;
  Manager shell;

  explicit DramBench(const vsim_dram& config) : dram(config, counters, 0) {
    const std::string why = Dram::check(config);
    CHECK(why.empty(), "%s", why.c_str());
  }
  void step() {
    const AxiResponse response = dram.response();
    if (!dram.sleeps(shell.request())) dram.edge(clock, shell.request());
    shell.edge(response, clock.cycles());
    clock.tick();
  }
  void run(const std::function<bool()>& done, uint64_t limit = 2'000'000) {
    const uint64_t end = clock.cycles() + limit;
    while (!done()) {
      CHECK(clock.cycles() < end, "nothing happens any more");
      step();
    }
  }
};

double seconds(uint64_t cycles) {
  return static_cast<double>(cycles) / (kClkKhz * 1e3);
}
double mb_per_s(uint64_t beats, uint64_t cycles) {
  return static_cast<double>(beats * kBeatBytes) / seconds(cycles) / 1e6;
}
double mib_per_s(uint64_t beats, uint64_t cycles) {
  return mb_per_s(beats, cycles) * 1e6 / (1 << 20);
}

// ------------------------------------------------------------------------------------------------ link
struct BothWays {
  double read, write;  // MB/s
};
// Many bursts of 4 KiB at random places, of all functions.
BothWays link_throughput(const vsim_link& config, bool read, bool write) {
  LinkBench b(config);
  b.shell.keep_data = false;
  const auto more = [&] {
    const auto place = [&] { return b.kBase + rng() % (b.memory.size() / 4096) * 4096; };
    const auto id = [] { return static_cast<uint8_t>(rng() % kIds); };
    while (read && b.shell.reads.size() < 4) b.shell.reads.push_back({place(), 64, id()});
    while (write && b.shell.writes.size() < 4) b.shell.writes.push_back({place(), 64, {}, {}, id()});
    return false;
  };
  b.run([&] { return more() || b.clock.cycles() >= 20'000; });
  const uint64_t reads = b.shell.beats_read, writes = b.shell.beats_written, begin = b.clock.cycles();
  b.run([&] { return more() || b.clock.cycles() >= begin + 60'000; });
  const uint64_t cycles = b.clock.cycles() - begin;
  return {mb_per_s(b.shell.beats_read - reads, cycles), mb_per_s(b.shell.beats_written - writes, cycles)};
}

// Neugebauer et al., SIGCOMM 2018, the model published with the paper (github.com/pcie-bench/pcie-model,
// pcie.py and mem_bw.py): 64-bit addresses, no ECRC, completions of MPS. Its figure for both at once is what
// each way gets when both get the same.
void the_link_carries_what_the_published_model_says() {
  struct Published {
    uint32_t generation, lanes, mps;
    double tlp, read, write, both;  // GB/s
  };
  for (const Published& p : {Published{3, 16, 256, 14.212, 13.18, 12.99, 12.46},
                             Published{3, 8, 256, 7.235, 6.711, 6.615, 6.343},  // the paper's 57.88 Gbit/s
                             Published{2, 4, 128, 1.7367, 1.502, 1.4625, 1.4071}}) {
    vsim_link c = link_config();
    c.generation = p.generation;
    c.lanes = p.lanes;
    c.mps = p.mps;
    const auto near = [](double got, double wanted) { return std::abs(got / 1e3 - wanted) < 0.01 * wanted; };
    const double tlp = 1e9 / static_cast<double>(Link::fs_per_byte(c));
    const double read = link_throughput(c, true, false).read, write = link_throughput(c, false, true).write;
    const BothWays both = link_throughput(c, true, true);
    std::printf("generation %u x%u: %.0f MB/s of TLPs, read %.0f, write %.0f, both %.0f and %.0f\n",
                p.generation, p.lanes, tlp, read, write, both.read, both.write);
    CHECK(near(tlp, p.tlp) && near(read, p.read) && near(write, p.write));
    // What is left of the way from the card is the writes': reads ask for as much as the other way carries.
    CHECK(near(std::min(both.read, both.write), p.both));
  }
}

double read_throughput(const vsim_link& config, unsigned burst_bytes) {
  LinkBench b(config);
  b.shell.keep_data = false;
  const auto more = [&] {
    while (b.shell.reads.size() < 4) {
      const uint64_t at = rng() % (b.memory.size() / 4096) * 4096;
      b.shell.reads.push_back({b.kBase + at, burst_bytes / kBeatBytes, static_cast<uint8_t>(rng() % kIds)});
    }
    return false;
  };
  b.run([&] { return more() || b.clock.cycles() >= 5'000; });
  const uint64_t beats = b.shell.beats_read, begin = b.clock.cycles();
  b.run([&] { return more() || b.clock.cycles() >= begin + 40'000; });
  return mb_per_s(b.shell.beats_read - beats, b.clock.cycles() - begin);
}

void read_throughput_follows_the_formula() {
  for (uint32_t generation : {1u, 2u, 3u}) {
    for (uint32_t pct : {100u, 66u}) {
      for (uint32_t mps : {128u, 256u, 512u}) {
        vsim_link c = link_config();
        c.generation = generation;
        c.lanes = 8;
        c.mps = mps;
        c.read_efficiency_pct = pct;
        const double rate = 1e9 / static_cast<double>(Link::fs_per_byte(c));  // MB/s
        const double formula = rate * mps / (mps + Link::kCompletionOverhead) * pct / 100;
        const double got = read_throughput(c, 4096);
        CHECK(std::abs(got - formula) < formula * 0.01, "generation %u, MPS %u, %u %%: %.0f MB/s, not %.0f",
              generation, mps, pct, got, formula);
      }
    }
  }
}

void few_tags_limit_reads() {
  vsim_link c = link_config();
  c.tags = 8;
  // Eight requests of 512 bytes a round trip; the data itself takes time on the link too.
  const double wire = (512 + 2 * 20) * static_cast<double>(Link::fs_per_byte(c)) / 1e6;  // ns
  const double low = 8 * 512 / (550 + 8 * wire + 20) * 1e3, high = 8 * 512 / 550.0 * 1e3;
  const double got = read_throughput(c, 4096);
  CHECK(got > low && got < high, "%.0f MB/s, not between %.0f and %.0f", got, low, high);
}

void an_unloaded_read_takes_the_latency() {
  LinkBench b(link_config());
  b.shell.reads.push_back({b.kBase, 1});
  b.run([&] { return !b.shell.read_done.empty(); });
  const double ns = seconds(b.shell.read_done[0].cycle) * 1e9;
  CHECK(ns > 550 && ns < 550 + 40, "%.0f ns", ns);
}

void reads_return_the_data_in_order_of_each_id() {
  LinkBench b(link_config());
  b.shell.ready_chance = 0.7;
  std::map<uint8_t, std::deque<Manager::Read>> asked;
  for (int i = 0; i < 2000; i++) {
    const unsigned beats = 1 + static_cast<unsigned>(rng() % std::min(4096 / kBeatBytes, 256u));
    const uint64_t page = rng() % (b.memory.size() / 4096) * 4096;
    const uint64_t at = page + rng() % (4096 / kBeatBytes - beats + 1) * kBeatBytes;
    const Manager::Read read{b.kBase + at, beats, static_cast<uint8_t>(rng() % kIds)};
    asked[read.id].push_back(read);
    b.shell.reads.push_back(read);
  }
  b.run([&] { return b.shell.read_done.size() == 2000; });
  for (const auto& done : b.shell.read_done) {
    const Manager::Read read = asked[done.id].front();
    asked[done.id].pop_front();
    CHECK(done.resp == kOkay && done.data.size() == read.beats * kBeatBytes);
    CHECK(std::memcmp(done.data.data(), b.memory.data() + (read.addr - b.kBase), done.data.size()) == 0);
  }
  CHECK(b.link.empty());
}

void a_small_read_overtakes_a_heap_of_large_ones() {
  LinkBench b(link_config());
  for (int i = 0; i < 64; i++) b.shell.reads.push_back({b.kBase + 4096u * i, 4096 / kBeatBytes, 0});
  b.shell.reads.push_back({b.kBase, 1, 1});
  b.run([&] { return b.shell.read_done.size() == 65; });
  size_t at = 0;
  while (b.shell.read_done[at].id != 1) at++;
  CHECK(at < 40, "it came as number %zu", at);
}

double write_throughput(const vsim_link& config) {
  LinkBench b(config);
  const auto more = [&] {
    while (b.shell.writes.size() < 4) {
      b.shell.writes.push_back({b.kBase + rng() % 256 * 4096, 4096 / kBeatBytes, {}, {}});
    }
    return false;
  };
  b.run([&] { return more() || b.clock.cycles() >= 20'000; });
  const uint64_t beats = b.shell.beats_written, begin = b.clock.cycles();
  b.run([&] { return more() || b.clock.cycles() >= begin + 40'000; });
  return mb_per_s(b.shell.beats_written - beats, b.clock.cycles() - begin);
}

void write_throughput_follows_the_formula() {
  for (uint32_t pct : {100u, 66u}) {
    for (uint32_t mps : {128u, 256u}) {
      vsim_link c = link_config();
      c.mps = mps;
      c.write_efficiency_pct = pct;
      const double formula =
          1e9 / static_cast<double>(Link::fs_per_byte(c)) * mps / (mps + Link::kRequestOverhead) * pct / 100;
      const double got = write_throughput(c);
      CHECK(std::abs(got - formula) < formula * 0.01, "MPS %u, %u %%: %.0f MB/s, not %.0f", mps, pct, got,
            formula);
    }
  }
}

void writes_with_strobes_land_where_they_should() {
  LinkBench b(link_config());
  b.shell.ready_chance = 0.5;
  std::vector<uint8_t> want = b.memory;
  for (int i = 0; i < 1000; i++) {
    const unsigned beats = 1 + rng() % 16;
    const uint64_t at = rng() % (b.memory.size() / 4096) * 4096 + rng() % 48 * kBeatBytes;
    Manager::Write w{b.kBase + at, beats, {}, {}, static_cast<uint8_t>(rng() % kIds)};
    for (unsigned k = 0; k < beats; k++) {
      const uint64_t strobe = rng() % 3 == 0 ? rng() & rng()
                              : rng() % 2    ? kFullStrobe
                                             : kFullStrobe << rng() % 8;
      w.strobes.push_back(strobe & kFullStrobe);
      for (unsigned i = 0; i < kBeatBytes; i++) {
        w.data.push_back(static_cast<uint8_t>(rng()));
        if (w.strobes.back() >> i & 1) want[at + k * kBeatBytes + i] = w.data.back();
      }
    }
    b.shell.writes.push_back(std::move(w));
  }
  b.run([&] { return b.shell.write_done.size() == 1000; });
  for (const auto& done : b.shell.write_done) CHECK(done.resp == kOkay);
  CHECK(want == b.memory);
}

// Only the first and the last double word of a packet may be written in part.
void bytes_left_out_part_a_packet() {
  LinkBench b(link_config());
  constexpr uint64_t kHalves = 0xff00ff00ff00ff00 & kFullStrobe;  // 8 of every 16 bytes
  const std::vector<uint8_t> data(2 * kBeatBytes, 0x5a);
  b.shell.writes.push_back({b.kBase, 2, data, {kHalves, kHalves}});
  b.shell.writes.push_back({b.kBase, 2, data, {kFullStrobe & ~uint64_t{3}, 1}});
  b.run([&] { return b.shell.write_done.size() == 2; });
  CHECK(b.counters[0].host_write_tlps == 2 * kBeatBytes / 16 + 1, "%llu packets",
        static_cast<unsigned long long>(b.counters[0].host_write_tlps));
  CHECK(b.counters[0].host_write_bytes == kBeatBytes + kBeatBytes + 4);
}

void a_write_is_answered_when_it_is_visible() {
  LinkBench b(link_config());
  std::vector<uint8_t> data(kBeatBytes, 0x5a);
  b.memory[0] = 0;
  b.shell.writes.push_back({b.kBase, 1, data, {}});
  uint64_t visible = 0;
  b.run([&] {
    if (!visible && b.memory[0] == 0x5a) visible = b.clock.cycles();
    return !b.shell.write_done.empty();
  });
  CHECK(visible && b.shell.write_done[0].cycle >= visible);
  const double ns = seconds(visible) * 1e9;
  CHECK(ns > 300 && ns < 350, "%.0f ns", ns);
}

void a_read_sees_the_write_sent_before_it() {
  vsim_link c = link_config();
  c.write_latency_ns = 3000;
  LinkBench b(c);
  std::vector<uint8_t> data(kBeatBytes, 0x77);
  b.shell.writes.push_back({b.kBase + 4096, 1, data, {}});
  // Long enough for the write to leave, not for it to arrive.
  for (int i = 0; i < 10; i++) b.step();
  b.shell.reads.push_back({b.kBase + 4096, 1});
  b.run([&] { return !b.shell.read_done.empty(); });
  CHECK(b.shell.read_done[0].data == data);
}

void a_read_does_not_pass_a_heap_of_writes() {
  // A write of each function at the end of a heap of others, and behind it a read of the same place by the
  // same and by another function.
  for (const uint8_t reader : {3, 1}) {
    LinkBench b(link_config());
    for (int i = 0; i < 16; i++) b.shell.writes.push_back({b.kBase + 4096u * i, 64, {}, {}, 2});
    const std::vector<uint8_t> data(kBeatBytes, 0x77);
    b.shell.writes.push_back({b.kBase + 4096 * 20, 1, data, {}, 3});
    b.run([&] { return b.shell.beats_written == 16 * 64 + 1; });
    b.shell.reads.push_back({b.kBase + 4096 * 20, 1, reader});
    b.run([&] { return !b.shell.read_done.empty(); });
    CHECK(b.shell.read_done[0].data == data, "read with id %u", reader);
    // The rule of the host port: B of the writes before it comes before the first R of a read.
    CHECK(b.shell.write_done.size() == 17, "%zu answers", b.shell.write_done.size());
  }
}

void a_write_does_not_wait_for_a_read() {
  vsim_link c = link_config();
  c.read_latency_ns = 100'000;
  LinkBench b(c);
  b.shell.reads.push_back({b.kBase, 64});
  for (int i = 0; i < 10; i++) b.step();
  b.shell.writes.push_back({b.kBase + 4096, 1, {}, {}});
  b.run([&] { return !b.shell.write_done.empty(); });
  CHECK(b.shell.read_done.empty() && b.clock.cycles() < 200);
}

void an_interrupt_is_behind_the_writes_before_it() {
  LinkBench b(link_config());
  for (int i = 0; i < 8; i++) {
    b.shell.writes.push_back(
        {b.kBase + 4096u * i, 64, std::vector<uint8_t>(4096, static_cast<uint8_t>(i + 1)), {}});
  }
  for (auto& byte : b.memory) byte = 0;
  b.run([&] { return b.shell.writes.empty() && !b.shell.request().awvalid; });
  b.msix = {.valid = true, .fn_valid = true, .vector = 5, .fn = 2, .fn_vector = 63};
  b.run([&] { return b.pending[0] != 0 && b.pending[2] != 0; });
  CHECK(b.pending[0] == 1u << 5 && b.pending[1] == 0 && b.pending[2] == uint64_t{1} << 63);
  for (int i = 0; i < 8; i++) CHECK(b.memory[4096 * i + 4095] == i + 1, "burst %d is not there yet", i);
  b.run([&] { return b.link.empty(); });
  CHECK(b.counters[0].irqs == 1 && b.counters[1].irqs == 0 && b.counters[2].irqs == 1);
}

void accesses_outside_mapped_memory_are_errors() {
  LinkBench b(link_config());
  std::string why;
  std::vector<uint8_t> half(4096, 9);
  CHECK(b.map.map(0x9000'0000, half.data(), 4096, VSIM_DMA_READ, why) == 0);
  CHECK(b.map.map(0xa000'0000, half.data(), 4096, VSIM_DMA_WRITE, why) == 0);
  const uint64_t end = b.kBase + b.memory.size();
  b.shell.reads = {{0, 64},          {end, 1},         {~uint64_t{0} << 12 >> 2, 4},
                   {0xa000'0000, 1}, {0x9000'0000, 2}, {b.kBase, 1}};
  for (uint64_t at : {uint64_t{0}, end, uint64_t{0x9000'0000}, b.kBase}) {
    b.shell.writes.push_back({at, 2, std::vector<uint8_t>(2 * kBeatBytes, 1), {}});
  }
  b.run([&] { return b.shell.read_done.size() == 6 && b.shell.write_done.size() == 4; });
  const uint8_t reads[] = {kSlvErr, kSlvErr, kSlvErr, kSlvErr, kOkay, kOkay};
  const uint8_t writes[] = {kSlvErr, kSlvErr, kSlvErr, kOkay};
  for (int i = 0; i < 6; i++) CHECK(b.shell.read_done[i].resp == reads[i], "read %d", i);
  for (int i = 0; i < 4; i++) CHECK(b.shell.write_done[i].resp == writes[i], "write %d", i);
  for (uint8_t byte : b.shell.read_done[0].data) CHECK(byte == 0);
  CHECK(half == std::vector<uint8_t>(4096, 9));
}

void mappings_are_checked() {
  HostMap map;
  std::string why;
  std::array<uint8_t, 8192> memory;
  const auto add = [&](uint64_t at, uint64_t len, unsigned perms = VSIM_DMA_READ) {
    return map.map(at, memory.data(), len, perms, why);
  };
  CHECK(add(0x1000, 0) < 0 && add(0x1001, 4096) < 0 && add(0x1000, 100) < 0 && add(0x1000, 4096, 0) < 0);
  CHECK(add(0x1000, 4096, 8) < 0 && add(~uint64_t{0xfff}, 8192) < 0 && map.map(0, nullptr, 4096, 1, why) < 0);
  CHECK(add(0x4000, 8192) == 0 && add(0x2000, 8192) == 0 && add(0x8000, 4096) == 0);
  CHECK(add(0x3000, 4096) < 0 && add(0x5000, 8192) < 0 && add(0x1000, 8192) < 0 && add(0x4000, 4096) < 0);
  CHECK(map.find(0x4000, VSIM_DMA_READ)->iova == 0x4000 && map.find(0x3fff, VSIM_DMA_READ)->iova == 0x2000);
  CHECK(!map.find(0x4000, VSIM_DMA_WRITE) && !map.find(0x6000, VSIM_DMA_READ) && !map.find(0, VSIM_DMA_READ));
  CHECK(!map.close(0x4000, 4096) && !map.close(0x5000, 4096) && map.close(0x4000, 8192));
  CHECK(!map.find(0x4000, VSIM_DMA_READ));
  map.erase(0x4000);
  CHECK(!map.find(0x4000, VSIM_DMA_READ) && map.find(0x2000, VSIM_DMA_READ) && add(0x4000, 4096) == 0);
}

// Whether it ends the process, tried in a child.
template <class Body>
bool aborts(const Body& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

void bursts_of_a_broken_shell_end_the_card() {
  constexpr unsigned kPage = 4096 / kBeatBytes;
  struct {
    uint64_t offset;
    unsigned beats;
    bool fine;
  } const bursts[] = {{0, kPage, true},
                      {4096 - kBeatBytes, 1, true},
                      {4096 - kBeatBytes, 2, false},
                      {kBeatBytes, kPage, false},
                      {1, 1, false}};
  for (const auto& burst : bursts) {
    for (const bool write : {false, true}) {
      const auto give = [&](auto& bench, uint64_t base) {
        if (write) {
          bench.shell.writes.push_back({base + burst.offset, burst.beats, {}, {}});
        } else {
          bench.shell.reads.push_back({base + burst.offset, burst.beats});
        }
        bench.run([&] { return bench.shell.read_done.size() + bench.shell.write_done.size() == 1; });
      };
      const bool link_ends = aborts([&] {
        LinkBench bench(link_config());
        give(bench, LinkBench::kBase);
      });
      const bool dram_ends = aborts([&] {
        DramBench bench(dram_config());
        give(bench, 0);
      });
      CHECK(link_ends == !burst.fine && dram_ends == !burst.fine, "%u beats at %llu, %d", burst.beats,
            static_cast<unsigned long long>(burst.offset), write);
    }
  }
}

void a_closed_mapping_drains() {
  LinkBench b(link_config());
  for (int i = 0; i < 100; i++) {
    b.shell.reads.push_back({b.kBase + 4096u * (i % 8), 64});
    b.shell.writes.push_back({b.kBase + 4096u * (i % 8), 64, {}, {}});
  }
  for (int i = 0; i < 300; i++) b.step();
  HostRange* range = b.map.close(b.kBase, b.memory.size());
  CHECK(range && range->in_flight > 0);
  const uint64_t begin = b.clock.cycles();
  b.run([&] { return range->in_flight == 0; });
  CHECK(b.clock.cycles() - begin < 2000);
  b.map.erase(b.kBase);
  std::fill(b.memory.begin(), b.memory.end(), 0xee);
  b.run([&] { return b.shell.read_done.size() == 100 && b.shell.write_done.size() == 100; });
  CHECK(b.shell.read_done[99].resp == kSlvErr && b.shell.write_done[99].resp == kSlvErr);
  for (uint8_t byte : b.memory) CHECK(byte == 0xee, "written after the mapping was taken back");
}

void a_reset_of_the_link_leaves_nothing_in_flight() {
  LinkBench b(link_config());
  for (int i = 0; i < 50; i++) {
    b.shell.reads.push_back({b.kBase, 64});
    b.shell.writes.push_back({b.kBase, 64, {}, {}});
  }
  for (int i = 0; i < 200; i++) b.step();
  b.link.reset();
  CHECK(b.link.empty());
  CHECK(b.map.close(b.kBase, b.memory.size())->in_flight == 0);
}

// ------------------------------------------------------------------------------------------------ DRAM
// Accesses of `beats` at random places, or each `stride` times its size after the one before.
double dram_throughput(const vsim_dram& config, bool random, unsigned beats, bool write,
                       unsigned stride = 1) {
  DramBench b(config);
  b.shell.keep_data = false;
  const uint64_t size = uint64_t{config.mib} << 20, bytes = uint64_t{beats} * kBeatBytes;
  uint64_t next = 0;
  const auto more = [&] {
    const auto place = [&] {
      return random ? rng() % (size / bytes) * bytes : (next += stride * bytes) % size;
    };
    while (write && b.shell.writes.size() < 4) b.shell.writes.push_back({place(), beats, {}, {}});
    while (!write && b.shell.reads.size() < 4) b.shell.reads.push_back({place(), beats});
    return false;
  };
  b.run([&] { return more() || b.clock.cycles() >= 5'000; });
  const auto moved = [&] { return write ? b.shell.beats_written : b.shell.beats_read; };
  const uint64_t before = moved(), begin = b.clock.cycles();
  b.run([&] { return more() || b.clock.cycles() >= begin + 60'000; });
  return mib_per_s(moved() - before, b.clock.cycles() - begin);
}

double peak(const vsim_dram& c) {
  const double bus = 64 / (c.burst_ps * 1e-12) / (1 << 20), port = kBeatBytes * kClkKhz * 1e3 / (1 << 20);
  return std::min(bus, port);
}

void sequential_accesses_reach_nine_tenths_of_the_peak() {
  for (uint32_t burst : {3333u, 5000u}) {
    vsim_dram c = dram_config();
    c.burst_ps = c.t_ccd_ps = burst;
    const double reads = dram_throughput(c, false, 64, false), writes = dram_throughput(c, false, 64, true);
    CHECK(reads > 0.9 * peak(c), "reads %.0f of %.0f MiB/s", reads, peak(c));
    CHECK(writes > 0.9 * peak(c), "writes %.0f of %.0f MiB/s", writes, peak(c));
  }
}

void random_accesses_are_slower() {
  const vsim_dram c = dram_config();
  const double random = dram_throughput(c, true, 1, false);
  // Four activations in t_faw are the hard limit.
  const double faw = 4 * 64 / (c.t_faw_ps * 1e-12) / (1 << 20);
  CHECK(random < 0.75 * peak(c) && random < faw && random > 0.25 * peak(c), "%.0f MiB/s", random);
  vsim_dram narrow = c;
  narrow.queue = 4;
  CHECK(dram_throughput(narrow, true, 1, false) < 0.7 * random);
}

// Each fourth beat is in the same bank group, which takes a column command every t_ccd_l only.
void accesses_to_one_bank_group_are_slower() {
  const vsim_dram c = dram_config();
  const double limit = 64 / (c.t_ccd_l_ps * 1e-12) / (1 << 20);
  for (const bool write : {false, true}) {
    const double got = dram_throughput(c, false, 1, write, c.groups);
    CHECK(got > 0.9 * limit && got < limit, "%.0f of %.0f MiB/s, write %d", got, limit, write);
    CHECK(dram_throughput(c, false, 1, write, c.groups + 1) > 1.05 * limit, "write %d", write);
  }
}

// Streams through one channel, reads and writes at once: MiB/s of both together.
double shared_throughput(const vsim_dram& config) {
  DramBench b(config);
  b.shell.keep_data = false;
  uint64_t next = 0;
  const auto more = [&] {
    const uint64_t half = (uint64_t{config.mib} << 20) / 2;
    while (b.shell.reads.size() < 4) b.shell.reads.push_back({(next += 4096) % half, 64});
    while (b.shell.writes.size() < 4) b.shell.writes.push_back({(next += 4096) % half + half, 64, {}, {}});
    return false;
  };
  b.run([&] { return more() || b.clock.cycles() >= 5'000; });
  const uint64_t before = b.shell.beats_read + b.shell.beats_written, begin = b.clock.cycles();
  b.run([&] { return more() || b.clock.cycles() >= begin + 60'000; });
  return mib_per_s(b.shell.beats_read + b.shell.beats_written - before, b.clock.cycles() - begin);
}

// FSRF, Table 2, physical addressing, four channels: rng read and write, large (4 KiB each) and small (64
// bytes each), and the streaming workloads, of which two write as much as they read.
void the_f1_board_is_as_fast_as_measured() {
  const auto four = [](bool random, unsigned beats, bool write) {
    return 4 * dram_throughput(f1_dram(), random, beats, write);
  };
  const double reads = four(true, 64, false), writes = four(true, 64, true),
               both = 4 * shared_throughput(f1_dram());
  const double small_reads = four(true, 1, false), small_writes = four(true, 1, true);
  vsim_link c = link_config();
  c.read_efficiency_pct = c.write_efficiency_pct = 72;
  const double from_host = read_throughput(c, 4096) * 1e6 / (1 << 20);
  std::printf(
      "reads %.0f, writes %.0f, both %.0f, small reads %.0f, small writes %.0f, from the host %.0f MiB/s\n",
      reads, writes, both, small_reads, small_writes, from_host);
  const auto near = [](double value, double wanted) { return std::abs(value - wanted) < 0.05 * wanted; };
  CHECK(near(reads, 57'000) && near(writes, 54'000) && near(both, 57'000));
  CHECK(near(small_reads, 18'000) && near(small_writes, 15'000) && near(from_host, 9'000));
}

// Shuhai (FCCM 2020), a pseudo-channel of an Alveo U280: streams, and one read of an idle channel with its
// row open, no row open, and another row open.
void an_hbm_channel_is_as_fast_as_measured() {
  const vsim_dram c = hbm_dram();
  const double stream = dram_throughput(c, false, 64, false) * (1 << 20) / 1e9;
  DramBench b(c);
  const auto latency_ns = [&](uint64_t addr) {
    const size_t done = b.shell.read_done.size();
    const uint64_t begin = b.clock.ps();
    b.shell.reads = {{addr, 1}};
    b.run([&] { return b.shell.read_done.size() > done; });
    return static_cast<double>(b.clock.ps() - begin) / 1e3;
  };
  b.run([&] { return b.clock.cycles() == 100; });  // no row is opened in tFAW after time 0
  // Rows follow each other over the banks, in each round from the next one on.
  const double closed = latency_ns(0), hit = latency_ns(kBeatBytes),
               miss = latency_ns(uint64_t{c.row_bytes} * (c.banks + 1));
  std::printf("stream %.2f GB/s, read hit %.0f, closed %.0f, miss %.0f ns, random 64 bytes %.2f GB/s\n",
              stream, hit, closed, miss, dram_throughput(c, true, 1, false) * (1 << 20) / 1e9);
  CHECK(std::abs(stream - 13.27) < 0.02 * 13.27);
  // To a cycle of the card.
  CHECK(std::abs(hit - 106.7) < 4 && std::abs(closed - 122.2) < 4 && std::abs(miss - 137.8) < 4);
}

void dram_keeps_what_is_written(vsim_dram c) {
  c.mib = 1;
  DramBench b(c);
  b.shell.ready_chance = 0.6;
  std::vector<uint8_t> want(1 << 20);
  for (int round = 0; round < 20; round++) {
    // Writes, and once they are answered reads; writes of a round do not overlap.
    std::vector<uint64_t> places;
    for (int i = 0; i < 40; i++) {
      const uint64_t at = static_cast<uint64_t>(i) * 8192 + rng() % 64 * kBeatBytes;
      const unsigned beats = 1 + static_cast<unsigned>(rng() % 64);
      const unsigned fit = std::min<unsigned>(beats, static_cast<unsigned>((4096 - at % 4096) / kBeatBytes));
      Manager::Write w{at, fit, {}, {}};
      for (unsigned k = 0; k < fit; k++) {
        w.strobes.push_back((rng() % 2 ? ~uint64_t{0} : rng()) & kFullStrobe);
        for (unsigned n = 0; n < kBeatBytes; n++) {
          w.data.push_back(static_cast<uint8_t>(rng()));
          if (w.strobes.back() >> n & 1) want[at + k * kBeatBytes + n] = w.data.back();
        }
      }
      places.push_back(at);
      b.shell.writes.push_back(std::move(w));
    }
    const size_t writes = b.shell.write_done.size() + 40, reads = b.shell.read_done.size();
    b.run([&] { return b.shell.write_done.size() == writes; });
    for (uint64_t at : places) b.shell.reads.push_back({at / 4096 * 4096, 4096 / kBeatBytes});
    b.run([&] { return b.shell.read_done.size() == reads + 40; });
    for (size_t i = 0; i < 40; i++) {
      const auto& done = b.shell.read_done[reads + i];
      CHECK(done.resp == kOkay);
      CHECK(std::memcmp(done.data.data(), want.data() + places[i] / 4096 * 4096, 4096) == 0);
    }
  }
}

void dram_keeps_what_is_written() {
  dram_keeps_what_is_written(dram_config());
  dram_keeps_what_is_written(f1_dram());
  dram_keeps_what_is_written(hbm_dram());
}

void addresses_beyond_the_channel_are_errors() {
  vsim_dram c = dram_config();
  c.mib = 1;
  DramBench b(c);
  b.shell.reads = {{1 << 20, 4}, {(1 << 20) - 4096, 64}, {~uint64_t{0xfff}, 64}};
  b.shell.writes.push_back({1 << 20, 4, {}, {}});
  b.shell.writes.push_back({0, 4, {}, {}});
  b.shell.writes.push_back({~uint64_t{0xfff}, 64, {}, {}});
  b.run([&] { return b.shell.read_done.size() == 3 && b.shell.write_done.size() == 3; });
  const uint8_t want[] = {kSlvErr, kOkay, kSlvErr}, want_writes[] = {kSlvErr, kOkay, kSlvErr};
  for (int i = 0; i < 3; i++) {
    for (uint8_t resp : b.shell.read_done[i].resps) CHECK(resp == want[i], "read %d", i);
  }
  for (int i = 0; i < 3; i++) CHECK(b.shell.write_done[i].resp == want_writes[i], "write %d", i);
}

void bursts_wider_than_a_beat_are_answered_beat_by_beat() {
  vsim_dram c = dram_config();
  c.data_bytes = 128;
  DramBench b(c);
  std::vector<uint8_t> data(5 * kBeatBytes);
  for (auto& byte : data) byte = static_cast<uint8_t>(rng());
  b.shell.writes.push_back({kBeatBytes, 5, data, {}});
  b.run([&] { return b.shell.write_done.size() == 1; });
  b.shell.reads = {{kBeatBytes, 5}, {2 * kBeatBytes, 2}};
  b.run([&] { return b.shell.read_done.size() == 2; });
  CHECK(b.shell.read_done[0].data == data);
  CHECK(std::memcmp(b.shell.read_done[1].data.data(), data.data() + kBeatBytes, 2 * kBeatBytes) == 0);
}

void a_stride_does_not_hit_one_bank_only() {
  const vsim_dram c = dram_config();
  DramBench b(c);
  b.shell.keep_data = false;
  uint64_t next = 0;
  b.run([&] {
    while (b.shell.reads.size() < 4) {
      b.shell.reads.push_back({(next += uint64_t{c.row_bytes} * c.banks) % (1 << 29), 1});
    }
    return b.clock.cycles() >= 20'000;
  });
  const double one_bank = 64 / ((c.t_ras_ps + c.t_rp_ps) * 1e-12) / (1 << 20);
  CHECK(mib_per_s(b.shell.beats_read, 20'000) > 3 * one_bank);
}

void reads_and_writes_share_a_channel() {
  DramBench b(dram_config());
  b.shell.keep_data = false;
  uint64_t next = 0;
  b.run([&] {
    while (b.shell.reads.size() < 4) b.shell.reads.push_back({(next += 4096) % (1 << 29), 64});
    while (b.shell.writes.size() < 4) b.shell.writes.push_back({(next % (1 << 29)) + (1 << 29), 64, {}, {}});
    return b.clock.cycles() >= 60'000;
  });
  const double reads = mib_per_s(b.shell.beats_read, 60'000),
               writes = mib_per_s(b.shell.beats_written, 60'000);
  CHECK(reads > 0.25 * peak(dram_config()) && writes > 0.25 * peak(dram_config()), "%.0f and %.0f MiB/s",
        reads, writes);
  CHECK(reads + writes > 0.7 * peak(dram_config()), "%.0f and %.0f MiB/s", reads, writes);
}

// ------------------------------------------------------------------------------------------------ the rest
void time_is_exact() {
  Clock ticked(300'003), jumped(300'003);
  for (int i = 0; i < 1'000'000; i++) ticked.tick();
  jumped.jump(999'999);
  jumped.tick();
  CHECK(ticked.ps() == jumped.ps() && ticked.cycles() == jumped.cycles());
  CHECK(ticked.ps() == 1'000'000ull * 1'000'000'000 / 300'003);
  Clock clock(250'000);
  CHECK(clock.cycles_until(0) == 0 && clock.cycles_until(1) == 1 && clock.cycles_until(4000) == 1);
  CHECK(clock.cycles_until(4001) == 2 && clock.to_cycles(1'000'000) == 250);
}

void register_accesses_keep_their_order() {
  Bar bar(link_config());
  Clock clock(kClkKhz);
  // A shell that takes address and data at different times, and is slow to answer.
  std::vector<std::pair<uint32_t, uint32_t>> seen;
  LiteResponse shell{};
  bool aw = false, w = false, ar = false;
  const auto step = [&] {
    const LiteRequest q = bar.request();
    const LiteResponse now = shell;
    bar.edge(clock.ps(), now, {});
    if (q.awvalid && now.awready) aw = true;
    if (q.wvalid && now.wready) w = true;
    if (q.arvalid && now.arready) ar = true;
    if (now.bvalid && q.bready) shell.bvalid = false;
    if (now.rvalid && q.rready) shell.rvalid = false;
    if (aw && w) {
      seen.push_back({q.addr, q.wdata});
      aw = w = false;
      shell.bvalid = true;
    }
    if (ar) {
      ar = false;
      shell.rvalid = true;
      shell.rresp = q.addr == 0x40 ? kSlvErr : kOkay;
      shell.rdata = static_cast<uint32_t>(seen.size());
    }
    shell.awready = rng() % 3 == 0;
    shell.wready = rng() % 3 == 0;
    shell.arready = rng() % 3 == 0;
    clock.tick();
  };
  for (uint32_t i = 0; i < 20; i++) bar.write(clock.ps(), 4 * i, i);
  bar.read(clock.ps(), 0x10);
  while (!bar.answered()) step();
  CHECK(bar.value() == 20 && bar.empty());
  for (uint32_t i = 0; i < 20; i++) CHECK(seen[i].first == 4 * i && seen[i].second == i);
  CHECK(seconds(clock.cycles()) > 450e-9);
  bar.read(clock.ps(), 0x40);
  while (!bar.answered()) step();
  CHECK(bar.value() == 0xffff'ffff, "a refused read reads as all ones");
  bar.read(clock.ps(), 0x10);
  step();
  bar.give_up();
  while (!bar.empty()) step();
  CHECK(!bar.answered());
}

void functions_are_reached_in_order_with_the_rest() {
  Bar bar(link_config());
  Clock clock(kClkKhz);
  struct Seen {
    bool fn;
    uint32_t addr, data;
    uint8_t strb;
  };
  std::vector<Seen> seen;
  bool answered = false, gap = true;
  const auto step = [&] {
    const LiteRequest lite = bar.request();
    const FnRequest q = bar.fn_request();
    const bool response = q.valid && !answered && rng() % 3 == 0;
    // A management register answers at once.
    const bool b = lite.awvalid, r = lite.arvalid;
    bar.edge(
        clock.ps(),
        {.awready = true, .wready = true, .bvalid = b, .arready = true, .rvalid = r, .rresp = 0, .rdata = 7},
        {.rvalid = response, .rdata = 0x1122'3344});
    CHECK(!(q.valid && (lite.awvalid || lite.arvalid)), "two at a time");
    if (b) seen.push_back({false, lite.addr, lite.wdata, 0});
    if (response) {
      seen.push_back({true, q.addr, q.wdata, q.strb});
      gap = false;
    } else {
      gap |= !q.valid;
    }
    CHECK(!bar.fn_request().valid || gap || q.valid, "no edge between two requests");
    if (q.valid && !response) CHECK(bar.fn_request() == q, "a request changes before it is answered");
    clock.tick();
  };
  for (uint32_t i = 0; i < 10; i++) {
    bar.write(clock.ps(), 4 * i, i);
    bar.access(clock.ps(), {.valid = true,
                            .cfg = false,
                            .write = true,
                            .fn = 2,
                            .strb = 3,
                            .addr = static_cast<uint16_t>(4 * i),
                            .wdata = i});
  }
  bar.access(clock.ps(),
             {.valid = true, .cfg = true, .write = false, .fn = 1, .strb = 15, .addr = 0x90, .wdata = 0});
  while (!bar.answered()) step();
  CHECK(bar.value() == 0x1122'3344 && bar.empty() && seen.size() == 21);
  for (uint32_t i = 0; i < 20; i++) {
    CHECK(seen[i].fn == (i % 2 == 1) && seen[i].addr == 4 * (i / 2) && seen[i].data == i / 2);
  }
  bar.read(clock.ps(), 0x10);
  while (!bar.answered()) step();
  CHECK(bar.value() == 7);
}

// ------------------------------------------------------------------------------------------------ the board
// Plays a function towards a port of the board.
struct PortBench {
  Clock clock{kClkKhz};
  vsim_fn_counters counters{};
  Port port;
  std::deque<std::vector<uint8_t>> to_send;
  std::vector<std::vector<uint8_t>> got;  // packets the function has had
  std::vector<uint8_t> got_channels;
  double ready_chance = 1;
  bool skip = false;     // edges the port need not see are not shown to it
  uint64_t sent_ps = 0;  // when what receive() gave last had left

  explicit PortBench(const vsim_port& config) : port(config, counters) { CHECK(Port::check(config).empty()); }

  void step() {
    const PortResponse a = port.response();
    if (a.rx_fresh) {
      std::memcpy(rx_data_, a.rx_data, kBeatBytes);
      rx_keep_ = a.rx_keep;
    }
    if (!skip || !port.sleeps(q_) || port.next_ps() <= clock.ps()) port.edge(clock, q_);
    if (q_.rx_ready && a.rx_valid) take(a);
    if (q_.tx_valid && a.tx_ready) {
      q_.tx_valid = false;
      at_ += kBeatBytes;
      if (at_ >= to_send.front().size()) {
        to_send.pop_front();
        at_ = 0;
      }
    }
    if (!q_.tx_valid && !to_send.empty()) {
      const auto& packet = to_send.front();
      const size_t bytes = std::min<size_t>(packet.size() - at_, kBeatBytes);
      std::memset(tx_data_, 0xee, sizeof tx_data_);
      std::memcpy(tx_data_, packet.data() + at_, bytes);
      q_.tx_valid = true;
      q_.tx_last = at_ + bytes == packet.size();
      q_.tx_keep = bytes == 64 ? ~uint64_t{0} : (uint64_t{1} << bytes) - 1;
      q_.tx_id = 3;
      q_.tx_data = tx_data_;
    }
    q_.rx_ready = static_cast<double>(rng() % 1000) < 1000 * ready_chance;
    clock.tick();
  }
  void run(const std::function<bool()>& done, uint64_t limit = 1'000'000) {
    const uint64_t end = clock.cycles() + limit;
    while (!done()) {
      CHECK(clock.cycles() < end, "nothing happens any more");
      step();
    }
  }
  size_t frames() const { return got.size() - open_; }
  // What the host gets next; empty if there is nothing.
  std::vector<uint8_t> receive() {
    std::vector<uint8_t> data(Port::kMaxFrame);
    uint8_t channel = 0;
    const int64_t len = port.receive(channel, sent_ps, data.data(), data.size());
    CHECK(len > 0 || len == -EAGAIN);
    CHECK(len < 0 || channel == 3);
    data.resize(static_cast<size_t>(std::max<int64_t>(len, 0)));
    return data;
  }

 private:
  void take(const PortResponse& a) {
    const int bytes = std::popcount(rx_keep_);
    CHECK(bytes > 0 && rx_keep_ == (bytes == 64 ? ~uint64_t{0} : (uint64_t{1} << bytes) - 1));
    CHECK(a.rx_last || bytes == static_cast<int>(kBeatBytes));
    if (!open_) {
      got.emplace_back();
      got_channels.push_back(a.rx_id);
    }
    got.back().insert(got.back().end(), rx_data_, rx_data_ + bytes);
    open_ = !a.rx_last;
  }

  PortRequest q_;
  size_t at_ = 0;
  bool open_ = false;
  uint64_t rx_keep_ = 0;
  alignas(64) uint8_t tx_data_[64] = {};
  alignas(64) uint8_t rx_data_[64] = {};
};

std::vector<uint8_t> random_bytes(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (auto& byte : bytes) byte = static_cast<uint8_t>(rng());
  return bytes;
}

std::vector<uint8_t> padded(std::vector<uint8_t> frame) {
  frame.resize(std::max<size_t>(frame.size(), 60));
  return frame;
}

constexpr vsim_port kTenGigabit = {VSIM_PORT_ETHERNET, 64 * 1024, 1'250'000'000, 0, 0};
constexpr vsim_port kUart = {VSIM_PORT_UART, 256, 1'200'000, 0, 0};

void frames_pass_in_both_directions() {
  PortBench b(kTenGigabit);
  b.skip = true;
  b.ready_chance = 0.6;
  std::vector<std::vector<uint8_t>> out, in, received;
  for (int i = 0; i < 100; i++) {
    const size_t sizes[] = {14, 59, 60, 64, 65, 1514, 9234, 15 + rng() % 2000};
    out.push_back(random_bytes(sizes[rng() % 8]));
    in.push_back(random_bytes(sizes[rng() % 8]));
    b.to_send.push_back(out.back());
    CHECK(b.port.send(b.clock.ps(), 0, in.back().data(), in.back().size()) == 0);
  }
  b.run([&] {
    const auto frame = b.receive();
    if (!frame.empty()) received.push_back(frame);
    return received.size() == out.size() && b.frames() == in.size();
  });
  for (size_t i = 0; i < out.size(); i++) CHECK(received[i] == padded(out[i]), "frame %zu", i);
  for (size_t i = 0; i < in.size(); i++) CHECK(b.got[i] == padded(in[i]), "frame %zu", i);
  CHECK(b.counters.tx_packets == 100 && b.counters.rx_packets == 100);
  CHECK(b.counters.tx_drops == 0 && b.counters.rx_drops == 0);
  for (int i = 0; i < 3; i++) b.step();
  CHECK(b.port.sleeps({}));
}

void frames_take_their_time_on_the_wire() {
  // 10 Gbit/s and frames of 1514 and 60 bytes: preamble, FCS and gap are 24 bytes more.
  for (const size_t size : {1514u, 60u}) {
    PortBench b(kTenGigabit);
    constexpr unsigned kFrames = 200;
    for (unsigned i = 0; i < kFrames; i++) {
      b.to_send.push_back(random_bytes(size));
      CHECK(b.port.send(b.clock.ps(), 0, b.to_send.back().data(), size) == 0);
    }
    b.run([&] { return b.counters.tx_packets == kFrames; });
    const double expected = kFrames * static_cast<double>(size + 24) * 0.8e-9;
    CHECK(std::abs(seconds(b.clock.cycles()) / expected - 1) < 0.02, "%zu: %g s, not %g", size,
          seconds(b.clock.cycles()), expected);
    CHECK(b.got.size() + 2 >= kFrames, "both directions are equally fast: %zu", b.got.size());
  }
}

void a_frame_without_room_is_lost_and_nothing_else() {
  PortBench b({VSIM_PORT_ETHERNET, 16 * 1024, 12'500'000'000, 0, 0});
  b.ready_chance = 0;
  std::vector<std::vector<uint8_t>> in;
  for (int i = 0; i < 20; i++) {
    in.push_back(random_bytes(1500));
    CHECK(b.port.send(b.clock.ps(), 0, in.back().data(), 1500) == 0);
  }
  b.run([&] { return b.counters.rx_packets + b.counters.rx_drops == 20; });
  const uint64_t kept = b.counters.rx_packets;
  CHECK(kept >= 10 && b.counters.rx_drops == 20 - kept);
  b.step();
  CHECK(b.port.sleeps({}), "a function that takes nothing keeps nobody awake");
  b.ready_chance = 1;
  b.run([&] { return b.frames() == kept; });
  for (size_t i = 0; i < kept; i++) CHECK(b.got[i] == in[i]);
  // The host's queue has an end: a host that does not look loses frames, not the card.
  for (size_t i = 0; i < 2 * Port::kQueuePackets; i++) b.to_send.push_back(random_bytes(60));
  b.run([&] { return b.counters.tx_packets + b.counters.tx_drops == 2 * Port::kQueuePackets; });
  CHECK(b.counters.tx_packets == Port::kQueuePackets);
  // Frames that are too long or too short for the wire.
  b.to_send = {random_bytes(9235), random_bytes(40'000), random_bytes(13), random_bytes(100)};
  while (!b.receive().empty()) {
  }
  const uint64_t drops = b.counters.tx_drops;
  b.run([&] { return b.port.has_packet(); });
  CHECK(b.receive().size() == 100 && b.counters.tx_drops == drops + 3);
}

// What a frame with its FCS takes of the line: preamble and delimiter 8, gap 12.
uint64_t line_ps(size_t with_fcs, uint64_t bytes_per_second) {
  return (with_fcs + 20) * (1'000'000'000'000 / bytes_per_second);
}

void a_line_is_never_idle_and_never_faster_than_it_is() {
  for (const uint64_t rate : {uint64_t{125'000'000}, uint64_t{1'250'000'000}, uint64_t{12'500'000'000}}) {
    for (const size_t size : {60u, 124u, 508u, 1514u, 9014u}) {
      PortBench b({VSIM_PORT_ETHERNET, 64 * 1024, rate, 9018, 0});
      constexpr unsigned kFrames = 60;
      for (unsigned i = 0; i < kFrames; i++) {
        b.to_send.push_back(random_bytes(size));
        CHECK(b.port.send(0, 0, b.to_send.back().data(), size) == 0);
      }
      std::vector<uint64_t> ends;
      b.run(
          [&] {
            if (!b.receive().empty()) ends.push_back(b.sent_ps);
            return ends.size() == kFrames && b.frames() == kFrames;
          },
          20'000'000);
      const uint64_t each = line_ps(size + 4, rate);
      for (unsigned i = 1; i < kFrames; i++)
        CHECK(ends[i] - ends[i - 1] == each, "frame %u of %zu bytes: %llu ps, not %llu", i, size,
              static_cast<unsigned long long>(ends[i] - ends[i - 1]), static_cast<unsigned long long>(each));
      const vsim_fn_counters now = b.port.counters();
      CHECK(now.tx_busy_ps == kFrames * each && now.rx_busy_ps == kFrames * each);
      CHECK(now.line_bytes_per_second == rate && now.link_up == 1 && now.rx_drops == 0);
    }
  }
}

void a_sender_waits_while_the_line_is_behind_by_its_buffer() {
  PortBench b({VSIM_PORT_ETHERNET, 16 * 1024, 125'000'000, 0, 0});
  for (int i = 0; i < 100; i++) b.to_send.push_back(random_bytes(1000));
  // The buffer takes what fits into it, and not a beat more until a frame has left.
  for (int i = 0; i < 1000; i++) b.step();
  CHECK(b.counters.tx_packets == 0 && !b.port.response().tx_ready);
  CHECK(b.to_send.size() == 100 - 16, "%zu frames wait", b.to_send.size());
  b.run([&] { return b.counters.tx_packets == 1; });
  CHECK(b.clock.ps() >= line_ps(1004, 125'000'000));
  b.step();
  CHECK(b.port.response().tx_ready);
  b.run([&] {
    b.receive();
    return b.counters.tx_packets == 100;
  });
  CHECK(b.counters.tx_drops == 0);
}

void what_is_no_valid_frame_is_counted_by_its_cause() {
  PortBench b({VSIM_PORT_ETHERNET, 64 * 1024, 12'500'000'000, 1518, 0});
  const auto give = [&](size_t size, uint32_t flags) {
    const auto frame = random_bytes(size);
    return b.port.send(b.clock.ps(), 0, frame.data(), size, flags);
  };
  CHECK(give(0, VSIM_FRAME_AS_IS) == -EMSGSIZE && give(65'537, VSIM_FRAME_AS_IS) == -EMSGSIZE);
  for (const size_t size : {1u, 59u}) CHECK(give(size, VSIM_FRAME_AS_IS) == 0);
  for (const size_t size : {1515u, 9000u, 65'536u}) CHECK(give(size, VSIM_FRAME_AS_IS) == 0);
  CHECK(give(1515, 0) == 0);
  for (const size_t size : {60u, 1514u}) CHECK(give(size, VSIM_FRAME_AS_IS | VSIM_FRAME_BAD_FCS) == 0);
  // What is short and damaged is short: as in the statistics of IEEE 802.3, each frame counts once.
  CHECK(give(20, VSIM_FRAME_AS_IS | VSIM_FRAME_BAD_FCS) == 0);
  for (const size_t size : {60u, 1514u}) CHECK(give(size, VSIM_FRAME_AS_IS) == 0);
  CHECK(give(14, 0) == 0);
  for (const size_t size : {1514u, 1515u, 13u, 60u}) b.to_send.push_back(random_bytes(size));
  b.run([&] { return b.frames() == 3 && b.counters.tx_packets == 2; });
  const vsim_fn_counters& c = b.counters;
  CHECK(c.rx_short == 3 && c.rx_long == 4 && c.rx_fcs == 2 && c.rx_down == 0 && c.rx_full == 0);
  CHECK(c.rx_drops == 9 && c.rx_packets == 3);
  CHECK(c.tx_short == 1 && c.tx_long == 1 && c.tx_drops == 2 && c.tx_packets == 2);
  CHECK(b.got[0].size() == 60 && b.got[1].size() == 1514 && b.got[2].size() == 60);
}

void a_link_that_is_down_loses_what_is_on_the_line() {
  PortBench b(kTenGigabit);
  const auto both = [&](unsigned count) {
    for (unsigned i = 0; i < count; i++) {
      b.to_send.push_back(random_bytes(1246));
      CHECK(b.port.send(b.clock.ps(), 0, b.to_send.back().data(), 1246) == 0);
    }
  };
  // A frame takes 1016 ns, 254 cycles.
  both(40);
  for (int i = 0; i < 10 * 254 + 120; i++) b.step();
  CHECK(b.port.link(b.clock.ps(), 3) == -EINVAL);
  CHECK(b.port.link(b.clock.ps(), VSIM_LINK_DOWN) == 0 && b.port.counters().link_up == 0);
  for (int i = 0; i < 5 * 254; i++) b.step();
  CHECK(b.port.link(b.clock.ps(), VSIM_LINK_UP) == 0 && b.port.counters().link_up == 1);
  b.run([&] { return b.counters.tx_packets + b.counters.tx_drops == 40 && b.port.sleeps({}); });
  // Five frames' time, and the parts of those at both ends.
  const vsim_fn_counters& c = b.counters;
  CHECK(c.rx_down == 6 && c.rx_drops == 6 && c.rx_packets == 34, "%llu lost",
        static_cast<unsigned long long>(c.rx_down));
  CHECK(c.tx_down == 6 && c.tx_drops == 6 && c.tx_packets == 34, "%llu lost",
        static_cast<unsigned long long>(c.tx_down));
  // A moment is enough to lose the frame on the line.
  both(3);
  for (int i = 0; i < 380; i++) b.step();
  b.port.link(b.clock.ps(), VSIM_LINK_DOWN);
  b.step();
  b.port.link(b.clock.ps(), VSIM_LINK_UP);
  b.run([&] { return b.port.sleeps({}) && b.to_send.empty(); });
  CHECK(c.rx_down == 7 && c.tx_down == 7 && c.rx_packets == 36 && c.tx_packets == 36);
}

void a_looped_port_gets_back_what_it_sends() {
  PortBench b(kTenGigabit);
  CHECK(b.port.link(0, VSIM_LINK_LOOP) == 0 && b.port.counters().link_up == 1);
  std::vector<std::vector<uint8_t>> out;
  for (int i = 0; i < 100; i++) {
    out.push_back(random_bytes(14 + rng() % 2000));
    b.to_send.push_back(out.back());
  }
  CHECK(b.port.send(0, 0, out[0].data(), out[0].size()) == -ENOTCONN);
  b.run([&] { return b.frames() == 100; });
  for (size_t i = 0; i < out.size(); i++) CHECK(b.got[i] == padded(out[i]), "frame %zu", i);
  CHECK(b.counters.tx_packets == 100 && b.counters.rx_packets == 100 && b.receive().empty());
  // A function that does not take them loses those without room, and goes on sending.
  b.ready_chance = 0;
  for (int i = 0; i < 100; i++) b.to_send.push_back(random_bytes(1500));
  b.run([&] { return b.counters.tx_packets == 200; });
  CHECK(b.counters.rx_full > 40 && b.counters.rx_drops == b.counters.rx_full);
}

void a_frame_comes_at_its_time() {
  PortBench b(kTenGigabit);
  b.skip = true;
  const auto frame = random_bytes(60);
  const uint64_t times[] = {0, 5'000'000, 5'000'000, 2'000'000, 9'000'000};
  for (const uint64_t at : times) CHECK(b.port.send(0, 0, frame.data(), 60, 0, at) == 0);
  std::vector<uint64_t> came;
  b.run([&] {
    if (b.counters.rx_packets > came.size()) came.push_back(b.clock.ps());
    return came.size() == 5;
  });
  // 84 bytes take 67.2 ns; one cycle is 4 ns. The order stays.
  const uint64_t expected[] = {67'200, 5'067'200, 5'134'400, 5'201'600, 9'067'200};
  for (int i = 0; i < 5; i++)
    CHECK(came[i] >= expected[i] && came[i] <= expected[i] + 8'000, "frame %d: %llu ps", i,
          static_cast<unsigned long long>(came[i]));
}

void the_host_is_told_when_a_queue_is_full() {
  PortBench b(kTenGigabit);
  const auto frame = random_bytes(9234);
  CHECK(b.port.send(0, 0, frame.data(), 13) == -EMSGSIZE &&
        b.port.send(0, 0, frame.data(), 9235) == -EMSGSIZE);
  size_t sent = 0;
  while (b.port.send(0, 0, frame.data(), 9234) == 0) sent += 9234;
  CHECK(sent <= Port::kQueueBytes + 9234 && sent + 2 * 9234 > Port::kQueueBytes && b.port.room() < 9234);
  b.run([&] { return b.port.room() >= 9234; });
  CHECK(b.port.send(b.clock.ps(), 0, frame.data(), 9234) == 0);
  b.port.reset();
  // One is on the wire already.
  for (size_t i = 0; i <= Port::kQueuePackets; i++) CHECK(b.port.send(0, 0, frame.data(), 14) == 0);
  CHECK(b.port.send(0, 0, frame.data(), 14) == -EAGAIN && b.port.room() == 0);
  uint8_t channel, small[20];
  uint64_t sent_ps = 0;
  b.port.reset();
  CHECK(b.port.receive(channel, sent_ps, small, sizeof small) == -EAGAIN);
  b.to_send = {random_bytes(100)};
  b.run([&] { return b.port.has_packet(); });
  CHECK(b.port.receive(channel, sent_ps, small, sizeof small) == -EMSGSIZE && b.receive().size() == 100);
  Port nothing({}, b.counters);
  CHECK(nothing.send(0, 0, small, 20) == -ENODEV && nothing.receive(channel, sent_ps, small, 20) == -ENODEV);
  CHECK(nothing.link(0, VSIM_LINK_DOWN) == -ENODEV);
  CHECK(!nothing.response().tx_ready && nothing.sleeps({}));
}

void a_serial_line_stops_its_sender() {
  PortBench b(kUart);
  b.skip = true;
  b.ready_chance = 0;
  const auto in = random_bytes(3000);
  CHECK(b.port.send(0, 5, in.data(), in.size()) == 0);
  b.run([&] { return b.port.sleeps({}); });
  CHECK(b.counters.rx_bytes <= 256 + 16 && b.counters.rx_drops == 0);
  const uint64_t before = b.counters.rx_bytes;
  b.clock.jump(2'000'000);
  const double stopped = seconds(b.clock.cycles());
  b.ready_chance = 0.5;
  const auto all = [&] {
    std::vector<uint8_t> bytes;
    for (const auto& packet : b.got) bytes.insert(bytes.end(), packet.begin(), packet.end());
    return bytes;
  };
  b.run([&] { return b.counters.rx_bytes == 3000 && b.port.sleeps({}); }, 10'000'000);
  b.run([&] { return all().size() == 3000; });
  CHECK(all() == in);
  for (const auto& packet : b.got) CHECK(packet.size() <= 16);
  for (const uint8_t channel : b.got_channels) CHECK(channel == 5);
  const double expected = static_cast<double>(3000 - before - 16) / 1.2e6;
  CHECK(seconds(b.clock.cycles()) - stopped > 0.95 * expected, "a stopped line must not catch up");
  // The other way: a host that does not look stops the function, and nothing is lost.
  PortBench c({VSIM_PORT_UART, 256, 200'000'000, 0, 0});
  const auto out = random_bytes(64);
  for (size_t i = 0; i < Port::kQueuePackets + 20; i++) c.to_send.push_back(out);
  c.run([&] { return c.counters.tx_packets == Port::kQueuePackets; }, 1'000'000);
  for (int i = 0; i < 1000; i++) c.step();
  CHECK(c.counters.tx_packets == Port::kQueuePackets && !c.to_send.empty() && !c.port.response().tx_ready);
  size_t got = 0;
  c.run([&] {
    const auto bytes = c.receive();
    CHECK(bytes.empty() || bytes == out);
    got += bytes.size();
    return got == 64 * (Port::kQueuePackets + 20);
  });
  CHECK(c.counters.tx_drops == 0);
}

void keys_are_events() {
  PortBench b({VSIM_PORT_KEYS, 64, 0, 0, 0});
  const auto events = random_bytes(80);
  CHECK(b.port.send(0, 0, events.data(), 12) == -EMSGSIZE);
  CHECK(b.port.send(0, 0, events.data(), 80) == 0);
  b.run([&] { return b.frames() == 10; });
  for (size_t i = 0; i < 10; i++)
    CHECK(std::equal(b.got[i].begin(), b.got[i].end(), events.begin() + 8 * i) && b.got[i].size() == 8);
}

void boards_are_checked() {
  CHECK(Port::check({}).empty());
  CHECK(!Port::check({9, 64, 0, 0, 0}).empty() && !Port::check({VSIM_PORT_UART, 63, 0, 0, 0}).empty());
  CHECK(!Port::check({VSIM_PORT_ETHERNET, 8192, 0, 0, 0}).empty());
  CHECK(!Port::check({VSIM_PORT_UART, 64u << 20, 0, 0, 0}).empty());
  CHECK(!Port::check({VSIM_PORT_UART, 64, ~uint64_t{0}, 0, 0}).empty());
  CHECK(!Port::check({VSIM_PORT_UART, 64, 0, 1518, 0}).empty());
  for (const uint32_t longest : {1517u, 9239u})
    CHECK(!Port::check({VSIM_PORT_ETHERNET, 16384, 0, longest, 0}).empty());
  for (const uint32_t longest : {0u, 1518u, 9238u})
    CHECK(Port::check({VSIM_PORT_ETHERNET, 16384, 0, longest, 0}).empty());
}

void functions_have_memory_of_their_own() {
  LinkBench b(link_config());
  std::vector<uint8_t> one(8192, 0x11), two(8192, 0x22);
  std::string why;
  // The same bus address, other memory.
  CHECK(b.maps[1].map(0x5000'0000, one.data(), 8192, VSIM_DMA_READ | VSIM_DMA_WRITE, why) == 0);
  CHECK(b.maps[2].map(0x5000'0000, two.data(), 8192, VSIM_DMA_READ, why) == 0);
  for (const uint8_t id : {0, 1, 2, 3, 4, 5, 9, 63}) b.shell.reads.push_back({0x5000'0000, 1, id});
  b.run([&] { return b.shell.read_done.size() == 8; });
  for (const auto& read : b.shell.read_done) {
    const bool known = read.id == 3 || read.id == 4;
    CHECK((read.resp == kOkay) == known, "id %u", read.id);
    CHECK(read.data[0] == (read.id == 3 ? 0x11 : read.id == 4 ? 0x22 : 0), "id %u", read.id);
  }
  for (const uint8_t id : {0, 3, 4, 5}) {
    b.shell.writes.push_back({0x5000'1000, 1, std::vector<uint8_t>(kBeatBytes, id), {}, id});
  }
  b.run([&] { return b.shell.write_done.size() == 4; });
  for (const auto& write : b.shell.write_done)
    CHECK((write.resp == kOkay) == (write.id == 3), "id %u", write.id);
  CHECK(one[4096] == 3 && two[4096] == 0x22);
  CHECK(b.counters[1].host_read_bytes == kBeatBytes && b.counters[2].host_read_tlps == 1);
  CHECK(b.counters[1].host_write_tlps == 1 && b.counters[3].host_write_bytes == kBeatBytes);
  // Taking back one function's memory is no concern of another's.
  CHECK(b.maps[1].close(0x5000'0000, 8192) && b.maps[2].find(0x5000'0000, VSIM_DMA_READ));
}

std::string hex(const Sha256::Digest& digest) {
  std::string text;
  char two[3];
  for (uint8_t byte : digest) text += (std::snprintf(two, sizeof two, "%02x", byte), two);
  return text;
}

// Card memory of another system's slot, in one piece, and its pager.
struct Paged {
  std::vector<uint8_t> card;
  Pager pager;
  Lanes in, out, disk;
  uint64_t now = 1000;

  Paged(const PagerConfig& config, uint64_t pages, bool resident) : card(pages * Pager::kPage) {
    for (size_t i = 0; i < card.size(); i++) card[i] = expected(i);
    pager.begin(config, card.size(), resident, [this](uint64_t offset, uint64_t bytes, const auto& act) {
      act(offset, &card[offset], bytes);
    });
  }

  static uint8_t expected(size_t i) { return static_cast<uint8_t>(i * 7 + (i >> 12) * 31); }

  // Cycles in which the slot stands still for an access to a page, which it has drained for `drains` of them.
  uint64_t access(uint64_t page, unsigned drains = 0) {
    if (pager.resident(page * Pager::kPage)) return 0;
    pager.miss(page * Pager::kPage);
    const uint64_t begun = now;
    for (; !pager.runs(); now++) {
      uint64_t offset = 0;
      pager.step(now, now >= begun + drains, in, out, disk);
      pager.enters(now, offset);
      CHECK(now < begun + 1'000'000, "nobody serves page %d", static_cast<int>(page));
    }
    return now - begun;
  }

  bool right(uint64_t page) const {
    const uint64_t first = page * Pager::kPage;
    for (uint64_t i = first; i < first + Pager::kPage; i++) {
      if (card[i] != expected(i)) return false;
    }
    return true;
  }
};

PagerConfig paging(uint32_t frames, uint32_t unit, uint32_t most) {
  return {.frames = frames,
          .unit = unit,
          .most = most,
          .writable = 0,
          .writable_end = 64,
          .read_latency = 100,
          .write_latency = 70,
          .mmio_read = 200,
          .mmio_write = 50,
          .service = 1000,
          .in_rate = 32'000,
          .out_rate = 64'000};
}

void a_fault_of_another_system_takes_the_sum_of_its_waits() {
  Paged slot(paging(2, 1, 1), 4, false);
  // Seen, served; a command, the read and its data, seen; the response. A cycle for each change of state, at
  // most.
  const uint64_t load = 100 + 1000 + 50 + 100 + 4096 / 32 + 100 + 50;
  const uint64_t store = 50 + 4096 / 64 + 70 + 100;
  for (const auto& [page, drains, cycles] :
       {std::tuple{0u, 0u, load}, {1u, 300u, load + 300}, {2u, 0u, load + store}}) {
    const uint64_t took = slot.access(page, drains);
    CHECK(took >= cycles && took <= cycles + 4, "page %u: %d cycles, not %d", page, int(took), int(cycles));
    CHECK(slot.access(page) == 0);
  }
  CHECK(slot.pager.faults() == 3 && slot.pager.loads() == 3 && slot.pager.stores() == 1);
  // Another slot has the link.
  slot.in.carry(slot.now, 1 << 20, 32'000);
  CHECK(slot.access(3) > load + (1 << 20) / 32 - 1500);
  slot.pager.miss(4 * Pager::kPage);
  CHECK(slot.pager.lost());
  // Pages that nobody may write leave at once.
  PagerConfig config = paging(2, 1, 1);
  config.writable = 3;
  Paged reader(config, 4, false);
  for (const unsigned page : {0u, 1u, 2u}) {
    CHECK(reader.access(page) <= load + 4);
  }
  CHECK(reader.pager.loads() == 3 && reader.pager.stores() == 0);
  // From a disk: its latency, and its rate.
  config.disk_latency = 25'000;
  config.disk_rate = 8'000;
  Paged cold(config, 4, false);
  const uint64_t read = load + 25'000 + 4096 / 8;
  const uint64_t took = cold.access(0);
  CHECK(took >= read && took <= read + 4, "%d cycles, not %d", static_cast<int>(took),
        static_cast<int>(read));
}

void pages_of_another_system_leave_in_the_order_in_which_they_came() {
  for (const auto& [frames, unit, most] :
       {std::tuple{16u, 1u, 1u}, {16u, 1u, 8u}, {16u, 4u, 4u}, {18u, 4u, 4u}}) {
    Paged slot(paging(frames, unit, most), 64, true);
    std::deque<uint64_t> order;  // while pages come one by one
    for (uint64_t n = 0; n < 64; n++) {
      CHECK(slot.pager.resident(n * Pager::kPage) == (n < frames));
      if (n < frames) order.push_back(n);
    }
    for (int i = 0; i < 500; i++) {
      const uint64_t page = i < 250 ? rng() % 64 : i % 64;
      const uint64_t before = slot.pager.loads();
      slot.access(page);
      const uint64_t loaded = slot.pager.loads() - before;
      CHECK(loaded <= most && slot.right(page), "page %d", static_cast<int>(page));
      if (i < 250 && unit == 1 && i > 0) CHECK(loaded <= 2, "no order, and yet %d at once", int(loaded));
      if (most == 1 && loaded) {
        order.push_back(page);
        order.pop_front();
      }
      int there = 0;
      for (uint64_t n = 0; n < 64; n++) {
        const bool resident = slot.pager.resident(n * Pager::kPage);
        there += resident;
        CHECK(slot.right(n) == resident, "page %d", static_cast<int>(n));
        CHECK(most > 1 || resident == (std::find(order.begin(), order.end(), n) != order.end()));
        const uint8_t* host = slot.pager.in_host(n * Pager::kPage);
        CHECK(resident || host[99] == Paged::expected(n * Pager::kPage + 99));
      }
      CHECK(there <= static_cast<int>(frames));
    }
    // In order, faults load more and more.
    const uint64_t faults = slot.pager.faults(), loads = slot.pager.loads();
    for (uint64_t n = 0; n < 640; n++) slot.access(n % 64);
    const double each = double(slot.pager.loads() - loads) / double(slot.pager.faults() - faults);
    CHECK(each > most * 0.7, "%g pages a fault", each);
  }
}

void sha256_matches_the_standard() {
  const auto of = [](const std::string& message) {
    Sha256 hash;
    // In uneven pieces.
    for (size_t at = 0; at < message.size();) {
      const size_t take = std::min<size_t>(1 + at % 97, message.size() - at);
      hash.update(message.data() + at, take);
      at += take;
    }
    return hex(hash.finish());
  };
  CHECK(of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(of(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

std::array<uint8_t, VIADUCT_IMAGE_BYTES> container(const std::string& name, const std::string& object) {
  std::array<uint8_t, VIADUCT_IMAGE_BYTES> bytes{};
  std::memcpy(bytes.data(), VIADUCT_IMAGE_MAGIC, 4);
  bytes[4] = 1;
  std::memcpy(bytes.data() + VIADUCT_IMAGE_GEOMETRY, &kAppGeometry, 4);
  std::memcpy(bytes.data() + VIADUCT_IMAGE_NAME, name.data(), name.size());
  Sha256 hash;
  hash.update(object.data(), object.size());
  const auto digest = hash.finish();
  std::memcpy(bytes.data() + VIADUCT_IMAGE_DIGEST, digest.data(), digest.size());
  return bytes;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void images_are_checked() {
  // The script has compiled two objects: one is an app, the other one something else.
  const std::string app = contents(scratch + "/app/app.so"), other = contents(scratch + "/other/other.so");
  CHECK(!app.empty() && !other.empty());
  const auto open = [](const std::array<uint8_t, VIADUCT_IMAGE_BYTES>& bytes,
                       size_t len = VIADUCT_IMAGE_BYTES) {
    const SlotApi* api = nullptr;
    const auto status = open_image(scratch, bytes.data(), len, api);
    CHECK((status == VIADUCT_IMAGE_LOADED) == (api != nullptr));
    return status;
  };
  const auto good = container("app", app);
  CHECK(open(good) == VIADUCT_IMAGE_LOADED && open(good) == VIADUCT_IMAGE_LOADED);
  CHECK(open(good, 76) == VIADUCT_IMAGE_BAD_CONTAINER && open(good, 84) == VIADUCT_IMAGE_BAD_CONTAINER);
  for (size_t at : {0u, 4u, 12u}) {
    auto bad = good;
    bad[at] ^= 0x80;
    CHECK(open(bad) == VIADUCT_IMAGE_BAD_CONTAINER, "byte %zu", at);
  }
  auto bad = good;
  bad[VIADUCT_IMAGE_GEOMETRY + 2] ^= 1;
  CHECK(open(bad) == VIADUCT_IMAGE_WRONG_GEOMETRY);
  bad = good;
  bad[VIADUCT_IMAGE_DIGEST + 31] ^= 1;
  CHECK(open(bad) == VIADUCT_IMAGE_WRONG_HASH);
  CHECK(open(container("absent", app)) == VIADUCT_IMAGE_NOT_FOUND);
  // The object needs a descriptor, and the loader another one.
  rlimit before;
  const int next = dup(0);
  CHECK(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
  for (rlim_t more : {0, 1}) {
    const rlimit few = {.rlim_cur = next + more, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    CHECK(open(container("other", other)) == VIADUCT_IMAGE_NO_DESCRIPTORS, "%d more", int(more));
  }
  CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
  for (const char* name :
       {"", "..", "../app", "App", "app/../app", "a b", "thirty_two_characters_and_no_end"}) {
    CHECK(open(container(name, app)) == VIADUCT_IMAGE_BAD_CONTAINER, "%s", name);
  }
  bad = good;
  bad[VIADUCT_IMAGE_NAME + 31] = 'x';
  CHECK(open(bad) == VIADUCT_IMAGE_BAD_CONTAINER, "something behind the end of the name");
  CHECK(open(container("other", other)) == VIADUCT_IMAGE_BROKEN);
  CHECK(open(container("other", other)) == VIADUCT_IMAGE_BROKEN);
}

void the_configuration_port_takes_images() {
  const std::string app = contents(scratch + "/app/app.so");
  auto good = container("app", app);
  Icap icap(scratch);
  const auto feed = [&](size_t words, uint8_t slot) {
    Icap::Action action =
        icap.edge({.valid = false, .start = true, .end = false, .slot = slot, .data = 0}, 4);
    CHECK(action.unload == (slot < 4 ? slot : -1) && action.load == -1 && !icap.done());
    for (size_t i = 0; i < words; i++) {
      uint32_t word = 0;
      if (i < 20) std::memcpy(&word, good.data() + 4 * i, 4);
      icap.edge({.valid = true, .start = false, .end = false, .slot = slot, .data = word}, 4);
    }
    action = icap.edge({.valid = false, .start = false, .end = true, .slot = slot, .data = 0}, 4);
    CHECK(icap.done() && action.load == (icap.status() == VIADUCT_IMAGE_LOADED ? slot : -1));
    const uint8_t status = icap.status();
    icap.edge({}, 4);
    CHECK(!icap.done() && icap.sleeps({}));
    return status;
  };
  CHECK(feed(20, 0) == VIADUCT_IMAGE_LOADED && feed(20, 3) == VIADUCT_IMAGE_LOADED);
  CHECK(feed(19, 1) == VIADUCT_IMAGE_BAD_CONTAINER && feed(21, 1) == VIADUCT_IMAGE_BAD_CONTAINER);
  CHECK(feed(0, 1) == VIADUCT_IMAGE_BAD_CONTAINER && feed(100'000, 1) == VIADUCT_IMAGE_BAD_CONTAINER);
  // As long as it says, and no longer.
  good[VIADUCT_IMAGE_PADDING] = 100;
  CHECK(feed(120, 1) == VIADUCT_IMAGE_LOADED);
  CHECK(feed(119, 1) == VIADUCT_IMAGE_BAD_CONTAINER && feed(121, 1) == VIADUCT_IMAGE_BAD_CONTAINER);
  good[VIADUCT_IMAGE_PADDING] = 0;
  CHECK(feed(20, 4) == VIADUCT_IMAGE_NO_SLOT && feed(20, 15) == VIADUCT_IMAGE_NO_SLOT);
  // An end without a start, and words that belong to nothing.
  icap.edge({.valid = true, .start = false, .end = true, .slot = 0, .data = 7}, 4);
  CHECK(!icap.done());
}

// Degrees Celsius of a code (UG580).
double celsius(uint16_t code) {
  return code * 507.5921310 / 65536 - 279.42657680;
}

void temperature_follows_activity_and_time() {
  constexpr uint64_t kKhz = 250'000;  // a period is as many cycles
  Sysmon idle(kKhz), busy(kKhz), slept(kKhz);
  CHECK(std::abs(celsius(idle.read(0x00)) - Sysmon::kAmbient) < 0.01);
  // 10 ms at rest, and with 64 bytes a cycle of card memory.
  for (uint64_t k = 1; k <= 10; k++) {
    idle.look(k * kKhz, 0, 0);
    busy.look(k * kKhz, k * kKhz * 64, 0);
  }
  slept.look(10 * kKhz, 0, 0);
  CHECK(slept.read(0x00) == idle.read(0x00));
  const double part = 1 - std::exp(-10e-3 / Sysmon::kTimeConstant);
  const double rest = Sysmon::kResistance * Sysmon::kStaticPower;
  const double more = Sysmon::kResistance * 64 * 250e6 * Sysmon::kDramEnergy;
  CHECK(std::abs(celsius(idle.read(0x00)) - Sysmon::kAmbient - rest * part) < 0.01);
  CHECK(std::abs(celsius(busy.read(0x00)) - Sysmon::kAmbient - (rest + more) * part) < 0.01);
  // Its supply is lower and its current higher; the other supplies have no load.
  CHECK(busy.read(0x01) < idle.read(0x01) && busy.read(0x10) > idle.read(0x10));
  CHECK(busy.read(0x02) == std::lround(1.8 / 3 * 65536));
  // Afterwards it cools down, and the extremes stay.
  for (uint64_t k = 11; k <= 300; k++) busy.look(k * kKhz, k * kKhz * 64, 0);
  const uint16_t hottest = busy.read(0x00), lowest = busy.read(0x01);
  busy.look(1000 * kKhz, 300 * kKhz * 64, 0);
  CHECK(std::abs(celsius(busy.read(0x00)) - Sysmon::kAmbient - rest) < 0.01);
  CHECK(busy.read(0x20) == hottest && busy.read(0x25) == lowest);
  CHECK(std::abs(celsius(busy.read(0x24)) - Sysmon::kAmbient) < 0.01);
  // Bytes of the link count too, and a look before its time does not.
  const uint16_t before = busy.read(0x00);
  busy.look(busy.next() - 1, 0, 0);
  CHECK(busy.read(0x00) == before);
  busy.look(busy.next(), 300 * kKhz * 64, 1 << 30);
  CHECK(busy.read(0x00) > before);
}

void the_monitor_answers_as_its_port_does() {
  Sysmon monitor(250'000);
  const SysmonRequest none = {.en = false, .addr = 0};
  CHECK(monitor.sleeps(none) && !monitor.sleeps({.en = true, .addr = 0}));
  monitor.edge({.en = true, .addr = 0x02});
  for (unsigned i = 1; i < Sysmon::kLatency; i++) {
    CHECK(!monitor.response().rdy && !monitor.sleeps(none));
    monitor.edge(none);
  }
  monitor.edge(none);
  CHECK(monitor.response().rdy && monitor.response().data == monitor.read(0x02));
  monitor.edge(none);
  CHECK(!monitor.response().rdy && monitor.sleeps(none));
  CHECK(monitor.read(0x99) == 0);
}

using Test = void (*)();
#define TEST(name) {#name, name}
const std::map<std::string, Test> tests = {
    TEST(the_link_carries_what_the_published_model_says),
    TEST(read_throughput_follows_the_formula),
    TEST(few_tags_limit_reads),
    TEST(an_unloaded_read_takes_the_latency),
    TEST(reads_return_the_data_in_order_of_each_id),
    TEST(a_small_read_overtakes_a_heap_of_large_ones),
    TEST(write_throughput_follows_the_formula),
    TEST(writes_with_strobes_land_where_they_should),
    TEST(bytes_left_out_part_a_packet),
    TEST(a_write_is_answered_when_it_is_visible),
    TEST(a_read_sees_the_write_sent_before_it),
    TEST(a_read_does_not_pass_a_heap_of_writes),
    TEST(a_write_does_not_wait_for_a_read),
    TEST(an_interrupt_is_behind_the_writes_before_it),
    TEST(accesses_outside_mapped_memory_are_errors),
    TEST(mappings_are_checked),
    TEST(bursts_of_a_broken_shell_end_the_card),
    TEST(a_closed_mapping_drains),
    TEST(a_reset_of_the_link_leaves_nothing_in_flight),
    TEST(sequential_accesses_reach_nine_tenths_of_the_peak),
    TEST(random_accesses_are_slower),
    TEST(accesses_to_one_bank_group_are_slower),
    TEST(the_f1_board_is_as_fast_as_measured),
    TEST(an_hbm_channel_is_as_fast_as_measured),
    TEST(dram_keeps_what_is_written),
    TEST(addresses_beyond_the_channel_are_errors),
    TEST(bursts_wider_than_a_beat_are_answered_beat_by_beat),
    TEST(a_stride_does_not_hit_one_bank_only),
    TEST(reads_and_writes_share_a_channel),
    TEST(time_is_exact),
    TEST(register_accesses_keep_their_order),
    TEST(functions_are_reached_in_order_with_the_rest),
    TEST(functions_have_memory_of_their_own),
    TEST(frames_pass_in_both_directions),
    TEST(frames_take_their_time_on_the_wire),
    TEST(a_frame_without_room_is_lost_and_nothing_else),
    TEST(a_line_is_never_idle_and_never_faster_than_it_is),
    TEST(a_sender_waits_while_the_line_is_behind_by_its_buffer),
    TEST(what_is_no_valid_frame_is_counted_by_its_cause),
    TEST(a_link_that_is_down_loses_what_is_on_the_line),
    TEST(a_looped_port_gets_back_what_it_sends),
    TEST(a_frame_comes_at_its_time),
    TEST(the_host_is_told_when_a_queue_is_full),
    TEST(a_serial_line_stops_its_sender),
    TEST(keys_are_events),
    TEST(boards_are_checked),
    TEST(sha256_matches_the_standard),
    TEST(a_fault_of_another_system_takes_the_sum_of_its_waits),
    TEST(pages_of_another_system_leave_in_the_order_in_which_they_came),
    TEST(images_are_checked),
    TEST(the_configuration_port_takes_images),
    TEST(temperature_follows_activity_and_time),
    TEST(the_monitor_answers_as_its_port_does),
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const auto& [name, test] : tests) std::printf("%s\n", name.c_str());
    return 0;
  }
  const auto test = argc >= 3 ? tests.find(argv[2]) : tests.end();
  if (test == tests.end()) {
    std::fprintf(stderr, "usage: models_test --list | SCRATCH TEST [SEED]\n");
    return 2;
  }
  scratch = argv[1];
  const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 0) : 1;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  rng.seed(seed);
  test->second();
  return 0;
}
