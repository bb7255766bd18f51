// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The C ABI of the card (viaduct_sim.h).
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>

#include "card.h"
#include "viaduct_sim.h"

using via::Card;

struct vsim {
  std::string image_dir;  // outlives the caller's
  std::string error;
  std::unique_ptr<Card> card;

  int fail(int code, std::string why) {
    error = std::move(why);
    return code;
  }
};

namespace {

// Cycles after which a shell that does not take or answer a register access counts as broken. Its own
// time-outs are much shorter.
constexpr uint64_t kRegisterCycles = 4'000'000;
constexpr uint64_t kDrainCycles = 4'000'000;

std::string check(const vsim_config* config) {
  if (!config) return "no configuration";
  if (config->abi != VSIM_ABI_VERSION) {
    return "the caller is built for card model " + std::to_string(config->abi) + ", this is " +
           std::to_string(VSIM_ABI_VERSION);
  }
  if (config->clk_khz < 1000 || config->clk_khz > 2'000'000) return "the clock is 1 to 2000 MHz";
  if (!config->image_dir) return "no folder of app images";
  std::string why = via::Link::check(config->link);
  return why.empty() ? via::Dram::check(config->dram) : why;
}

// Address at the shell, or -1.
int64_t bar_address(unsigned bar, uint64_t offset) {
  if (offset % 4 != 0) return -1;
  if (bar == 0 && offset < 0x40000) return static_cast<int64_t>(offset);
  if (bar == 2 && offset < 0x10000) return static_cast<int64_t>(0x40000 + offset);
  return -1;
}

std::string place(unsigned bar, uint64_t offset) {
  char text[64];
  std::snprintf(text, sizeof text, "BAR%u offset 0x%llx", bar, static_cast<unsigned long long>(offset));
  return text;
}

// Runs until `done` or for so many cycles at most; whether it was done.
template <class Done>
bool run_until(Card& card, uint64_t cycles, Done done) {
  const uint64_t end = card.clock.cycles() + cycles;
  while (!done()) {
    if (card.clock.cycles() >= end) return false;
    card.advance(end - card.clock.cycles());
  }
  return true;
}

}  // namespace

extern "C" {

vsim* vsim_open(const vsim_config* config, char* err, size_t errlen) {
  std::string why = check(config);
  if (why.empty()) {
    try {
      auto sim = std::make_unique<vsim>();
      sim->image_dir = config->image_dir;
      vsim_config own = *config;
      own.image_dir = sim->image_dir.c_str();
      sim->card = std::make_unique<Card>(own);
      return sim.release();
    } catch (const std::bad_alloc&) {
      why = "out of memory: " + std::to_string(via::Shell::kChannels) + " DRAM channels of " +
            std::to_string(config->dram.mib) + " MiB need that much address space";
    }
  }
  if (err && errlen > 0) std::snprintf(err, errlen, "%s", why.c_str());
  return nullptr;
}

void vsim_close(vsim* sim) {
  delete sim;
}

const char* vsim_error(const vsim* sim) {
  return sim->error.c_str();
}

void vsim_reset(vsim* sim) {
  sim->card->reset();
}

int vsim_bar_read(vsim* sim, unsigned bar, uint64_t offset, uint32_t* value) {
  const int64_t addr = bar_address(bar, offset);
  if (addr < 0) return sim->fail(-EINVAL, place(bar, offset) + ": no such register");
  Card& card = *sim->card;
  if (!run_until(card, kRegisterCycles, [&] { return !card.bar.full(); })) {
    return sim->fail(-ETIMEDOUT, "the shell does not take register accesses");
  }
  card.bar.read(card.clock.ps(), static_cast<uint32_t>(addr));
  card.counters.mmio_reads++;
  if (!run_until(card, kRegisterCycles, [&] { return card.bar.answered(); })) {
    card.bar.give_up();
    return sim->fail(-ETIMEDOUT, place(bar, offset) + ": the shell does not answer");
  }
  *value = card.bar.value();
  const uint64_t back = std::max(card.clock.ps() + card.bar.read_back_ps(), card.link.writes_visible_ps());
  run_until(card, kRegisterCycles, [&] { return card.clock.ps() >= back; });
  return 0;
}

int vsim_bar_write(vsim* sim, unsigned bar, uint64_t offset, uint32_t value) {
  const int64_t addr = bar_address(bar, offset);
  if (addr < 0) return sim->fail(-EINVAL, place(bar, offset) + ": no such register");
  Card& card = *sim->card;
  if (!run_until(card, kRegisterCycles, [&] { return !card.bar.full(); })) {
    return sim->fail(-ETIMEDOUT, "the shell does not take register accesses");
  }
  card.bar.write(card.clock.ps(), static_cast<uint32_t>(addr), value);
  card.counters.mmio_writes++;
  return 0;
}

int vsim_dma_map(vsim* sim, uint64_t iova, void* host, uint64_t len, unsigned perms) {
  std::string why;
  const int code = sim->card->map.map(iova, host, len, perms, why);
  return code ? sim->fail(code, std::move(why)) : 0;
}

int vsim_dma_unmap(vsim* sim, uint64_t iova, uint64_t len) {
  Card& card = *sim->card;
  const via::HostRange* range = card.map.close(iova, len);
  if (!range) return sim->fail(-ENOENT, "no DMA mapping begins there with that length");
  // The host never holds up what the link carries, so this ends.
  if (!run_until(card, kDrainCycles, [&] { return range->in_flight == 0; })) {
    return sim->fail(-ETIMEDOUT, "accesses to a DMA mapping do not end");
  }
  card.map.erase(iova);
  return 0;
}

uint64_t vsim_run(vsim* sim, uint64_t max_cycles, uint64_t irq_mask) {
  Card& card = *sim->card;
  const uint64_t begin = card.clock.cycles();
  const uint64_t end = begin + std::min(max_cycles, ~uint64_t{0} - begin);
  while (card.clock.cycles() < end && !(card.link.pending & irq_mask) && !card.parked()) {
    card.advance(end - card.clock.cycles());
  }
  return card.clock.cycles() - begin;
}

void vsim_charge(vsim* sim, uint64_t ns) {
  Card& card = *sim->card;
  const uint64_t ps = std::min(ns, ~uint64_t{0} / 1'000'000) * 1000;
  uint64_t left = card.clock.to_cycles(ps);
  while (left > 0) {
    if (card.parked()) {
      card.sleep(left);
      return;
    }
    const uint64_t before = card.clock.cycles();
    card.advance(left);
    left -= card.clock.cycles() - before;
  }
}

int vsim_parked(const vsim* sim) {
  return sim->card->parked();
}

uint64_t vsim_now(const vsim* sim) {
  return sim->card->clock.cycles();
}

uint64_t vsim_irq_take(vsim* sim, uint64_t mask) {
  const uint64_t taken = sim->card->link.pending & mask;
  sim->card->link.pending &= ~mask;
  return taken;
}

int vsim_record(vsim* sim, uint64_t edges) {
  try {
    sim->card->record(edges);
    return 0;
  } catch (const std::bad_alloc&) {
    return sim->fail(-ENOMEM, "no memory to record the shell's inputs");
  }
}

int64_t vsim_replay(vsim* sim, int verify) {
  if (!sim->card->recording()) return sim->fail(-EINVAL, "nothing was recorded");
  const int64_t edges = sim->card->recording()->replay(verify != 0);
  if (edges >= 0) return edges;
  return sim->fail(-EIO, "the bare shell differs after edge " + std::to_string(-edges));
}

int vsim_wave_open(vsim* sim, const char* path, uint64_t start, uint64_t cycles) {
  std::string why;
  const int code = sim->card->wave_open(path, start, cycles, why);
  return code ? sim->fail(code, std::move(why)) : 0;
}

void vsim_get_counters(const vsim* sim, vsim_counters* counters) {
  *counters = sim->card->counters;
  counters->cycles = sim->card->clock.cycles();
}

}  // extern "C"
