// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The C ABI of the card (viaduct_sim.h).
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <system_error>

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

// Cycles after which a shell that does not accept or answer a register access counts as broken. Its own
// time-outs are much shorter.
constexpr uint64_t kRegisterCycles = 4'000'000;
constexpr uint64_t kDrainCycles = 4'000'000;
constexpr uint64_t kResetTellCycles = 16;

std::string check(const vsim_config* config) {
  if (!config) return "no configuration";
  if (config->abi != VSIM_ABI_VERSION) {
    return "the caller is built for card model " + std::to_string(config->abi) + ", this is " +
           std::to_string(VSIM_ABI_VERSION);
  }
  if (config->clk_khz < 1000 || config->clk_khz > 2'000'000) return "the clock is 1 to 2000 MHz";
  if (!config->image_dir) return "no folder of app images";
  std::string why = via::Link::check(config->link);
  if (why.empty()) why = via::Dram::check(config->dram);
  for (const vsim_port& port : config->port) {
    if (why.empty()) why = via::Port::check(port);
  }
  return why;
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

std::string no_function(unsigned fn) {
  return "the card has no function " + std::to_string(fn);
}

// Whether there is such a function beside the management function.
bool is_function(unsigned fn) {
  return fn >= 1 && fn < Card::kFunctions;
}

// An access as the functions' port takes it; not valid if there is no such place.
via::FnRequest fn_request(unsigned fn, unsigned space, bool write, uint32_t offset, unsigned bytes,
                          uint32_t value) {
  const bool cfg = space == VSIM_CONFIG;
  via::FnRequest request;
  const bool sized = bytes == 1 || bytes == 2 || bytes == 4;
  if (!is_function(fn) || space > VSIM_CONFIG || !sized || offset % bytes != 0 ||
      offset >= (cfg ? 0x100u : 0x10000u))
    return request;
  const unsigned lane = offset % 4;
  request.valid = true;
  request.cfg = cfg;
  request.bar = static_cast<uint8_t>(cfg ? 0 : space);
  request.write = write;
  request.fn = static_cast<uint8_t>(fn);
  request.strb = static_cast<uint8_t>(((1u << bytes) - 1) << lane);
  request.addr = static_cast<uint16_t>(offset - lane);
  request.wdata = value << (8 * lane);
  return request;
}

std::string fn_place(unsigned fn, unsigned space, uint32_t offset, unsigned bytes) {
  const std::string where = space == VSIM_CONFIG ? "configuration" : "BAR" + std::to_string(space);
  char text[96];
  std::snprintf(text, sizeof text, "function %u: %u bytes at %s offset 0x%x", fn, bytes, where.c_str(),
                offset);
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

const char* port_error(int code) {
  switch (code) {
    case -ENODEV:
      return "the board has nothing beside this function";
    case -EMSGSIZE:
      return "a packet of this length does not fit";
    case -ENOTCONN:
      return "the board port is looped back";
    case -EINVAL:
      return "a link has no such state";
    default:
      return "the board port is not ready";
  }
}

// An access of the host to a register, which ends now.
void trace_register(Card& card, vsim_trace_kind kind, unsigned fn, unsigned space, uint64_t begin,
                    uint64_t offset) {
  if (card.trace()) card.trace()->event(kind, fn, space, begin, card.clock.cycles(), offset);
}

// 0, or an error: the queue of register accesses has room for one more.
int make_room(vsim* sim) {
  Card& card = *sim->card;
  if (run_until(card, kRegisterCycles, [&] { return !card.bar.full(); })) return 0;
  return sim->fail(-ETIMEDOUT, "the shell does not take register accesses");
}

// 0, or an error: every register access so far has reached its register.
int flush(vsim* sim) {
  Card& card = *sim->card;
  if (run_until(card, kRegisterCycles, [&] { return card.bar.empty(); })) return 0;
  return sim->fail(-ETIMEDOUT, "the shell does not answer a register access");
}

// Waits for the response to the read just begun, and for what the card has written before it.
template <class Where>
int response(vsim* sim, Where where, uint32_t& value) {
  Card& card = *sim->card;
  if (!run_until(card, kRegisterCycles, [&] { return card.bar.answered(); })) {
    card.bar.give_up();
    return sim->fail(-ETIMEDOUT, where() + ": the shell does not answer");
  }
  value = card.bar.value();
  const uint64_t back = card.clock.ps() + card.bar.read_back_ps();
  const uint64_t writes = card.link.writes_begun();
  run_until(card, kRegisterCycles,
            [&] { return card.clock.ps() >= back && card.link.writes_done() >= writes; });
  return 0;
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
            std::to_string(config->dram.mib) +
            " MiB need that much address space; raise the limit of memory (`ulimit -v`)";
    } catch (const std::system_error& e) {  // Verilator's library starts threads
      why = "a thread of the model cannot be started: " + e.code().message() +
            "; the limit of threads is reached (`ulimit -u`, or that of the container): end other "
            "programs, or raise it";
    } catch (const std::exception& e) {
      why = std::string("the model cannot start: ") + e.what();
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
  if (const int code = make_room(sim)) return code;
  Card& card = *sim->card;
  const uint64_t begin = card.clock.cycles();
  card.bar.read(card.clock.ps(), static_cast<uint32_t>(addr));
  card.fn_counters[0].mmio_reads++;
  const int code = response(sim, [&] { return place(bar, offset); }, *value);
  trace_register(card, VSIM_TRACE_REG_READ, 0, bar, begin, offset);
  return code;
}

int vsim_bar_write(vsim* sim, unsigned bar, uint64_t offset, uint32_t value) {
  const int64_t addr = bar_address(bar, offset);
  if (addr < 0) return sim->fail(-EINVAL, place(bar, offset) + ": no such register");
  if (const int code = make_room(sim)) return code;
  Card& card = *sim->card;
  card.bar.write(card.clock.ps(), static_cast<uint32_t>(addr), value);
  card.fn_counters[0].mmio_writes++;
  trace_register(card, VSIM_TRACE_REG_WRITE, 0, bar, card.clock.cycles(), offset);
  return 0;
}

unsigned vsim_functions(const vsim*) {
  return Card::kFunctions - 1;
}

int vsim_fn_read(vsim* sim, unsigned fn, unsigned space, uint32_t offset, unsigned bytes, uint32_t* value) {
  const via::FnRequest request = fn_request(fn, space, false, offset, bytes, 0);
  const auto where = [&] { return fn_place(fn, space, offset, bytes); };
  if (!request.valid) return sim->fail(-EINVAL, where() + ": no such place");
  if (const int code = make_room(sim)) return code;
  Card& card = *sim->card;
  const uint64_t begin = card.clock.cycles();
  card.bar.access(card.clock.ps(), request);
  card.fn_counters[fn].mmio_reads++;
  const int code = response(sim, where, *value);
  trace_register(card, VSIM_TRACE_REG_READ, fn, space, begin, offset);
  if (code) return code;
  *value = *value >> (8 * (offset % 4)) & (~uint32_t{0} >> (32 - 8 * bytes));
  return 0;
}

int vsim_fn_write(vsim* sim, unsigned fn, unsigned space, uint32_t offset, unsigned bytes, uint32_t value) {
  const via::FnRequest request = fn_request(fn, space, true, offset, bytes, value);
  if (!request.valid) return sim->fail(-EINVAL, fn_place(fn, space, offset, bytes) + ": no such place");
  if (const int code = make_room(sim)) return code;
  Card& card = *sim->card;
  card.bar.access(card.clock.ps(), request);
  card.fn_counters[fn].mmio_writes++;
  trace_register(card, VSIM_TRACE_REG_WRITE, fn, space, card.clock.cycles(), offset);
  return 0;
}

int vsim_fn_bus_master(vsim* sim, unsigned fn, int on) {
  if (!is_function(fn)) return sim->fail(-EINVAL, no_function(fn));
  if (const int code = flush(sim)) return code;
  Card& card = *sim->card;
  card.bus_master = (card.bus_master & ~(1u << fn)) | (on ? 1u << fn : 0);
  return 0;
}

int vsim_fn_reset(vsim* sim, unsigned fn) {
  if (!is_function(fn)) return sim->fail(-EINVAL, no_function(fn));
  if (const int code = flush(sim)) return code;
  Card& card = *sim->card;
  card.function_reset(fn);
  // The shell needs a few cycles to say that it is at it.
  const uint64_t told = card.clock.cycles() + kResetTellCycles;
  if (!run_until(card, kDrainCycles, [&] { return card.clock.cycles() >= told && !card.resetting(fn); })) {
    return sim->fail(-ETIMEDOUT, "the reset of function " + std::to_string(fn) + " does not end");
  }
  card.bus_master &= ~(1u << fn);
  // Interrupts on their way are the old driver's.
  run_until(card, kRegisterCycles, [&] { return !card.link.carries_interrupt_of(fn); });
  card.link.take(fn, ~uint64_t{0});
  return 0;
}

int vsim_dma_map(vsim* sim, unsigned fn, uint64_t iova, void* host, uint64_t len, unsigned perms) {
  if (fn >= Card::kFunctions) return sim->fail(-EINVAL, no_function(fn));
  std::string why;
  const int code = sim->card->maps[fn].map(iova, host, len, perms, why);
  return code ? sim->fail(code, std::move(why)) : 0;
}

int vsim_dma_unmap(vsim* sim, unsigned fn, uint64_t iova, uint64_t len) {
  if (fn >= Card::kFunctions) return sim->fail(-EINVAL, no_function(fn));
  Card& card = *sim->card;
  via::HostMap& map = card.maps[fn];
  const via::HostRange* range = map.close(iova, len);
  if (!range) return sim->fail(-ENOENT, "no DMA mapping begins there with that length");
  // The host never holds up what the link carries, so this ends.
  if (!run_until(card, kDrainCycles, [&] { return range->in_flight == 0; })) {
    return sim->fail(-ETIMEDOUT, "accesses to a DMA mapping do not end");
  }
  map.erase(iova);
  return 0;
}

uint64_t vsim_run(vsim* sim, uint64_t max_cycles, uint32_t irq_of, uint32_t packet_of) {
  Card& card = *sim->card;
  const uint64_t begin = card.clock.cycles();
  const uint64_t end = begin + std::min(max_cycles, ~uint64_t{0} - begin);
  const auto over = [&] {
    return (card.link.pending() & irq_of) || (packet_of && (card.packets() & packet_of)) ||
           card.stop.load(std::memory_order_relaxed) || card.parked();
  };
  while (card.clock.cycles() < end && !over()) card.advance(end - card.clock.cycles());
  card.stop.store(false, std::memory_order_relaxed);
  return card.clock.cycles() - begin;
}

void vsim_stop(vsim* sim) {
  sim->card->stop.store(true, std::memory_order_relaxed);
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

uint64_t vsim_link_fs_per_byte(const vsim* sim) {
  return sim->card->link.fs_per_byte();
}

uint64_t vsim_irq_take(vsim* sim, unsigned fn, uint64_t mask) {
  return fn < Card::kFunctions ? sim->card->link.take(fn, mask) : 0;
}

int vsim_port_send(vsim* sim, unsigned fn, uint8_t channel, uint64_t not_before_ps, uint32_t flags,
                   const void* data, size_t len) {
  if (fn >= Card::kFunctions) return sim->fail(-EINVAL, no_function(fn));
  Card& card = *sim->card;
  try {
    const int code = card.ports[fn].send(card.clock.ps(), channel, static_cast<const uint8_t*>(data), len,
                                         flags, not_before_ps);
    return code ? sim->fail(code, port_error(code)) : 0;
  } catch (const std::bad_alloc&) {
    return sim->fail(-EAGAIN, "no memory for a packet");
  }
}

int64_t vsim_port_receive(vsim* sim, unsigned fn, uint8_t* channel, uint64_t* sent_ps, void* data,
                          size_t len) {
  if (fn >= Card::kFunctions) return sim->fail(-EINVAL, no_function(fn));
  const int64_t code = sim->card->ports[fn].receive(*channel, *sent_ps, static_cast<uint8_t*>(data), len);
  return code < 0 ? sim->fail(static_cast<int>(code), port_error(static_cast<int>(code))) : code;
}

int vsim_port_link(vsim* sim, unsigned fn, unsigned state) {
  if (fn >= Card::kFunctions) return sim->fail(-EINVAL, no_function(fn));
  Card& card = *sim->card;
  const int code = card.ports[fn].link(card.clock.ps(), state);
  return code ? sim->fail(code, port_error(code)) : 0;
}

uint32_t vsim_port_packets(const vsim* sim) {
  return sim->card->packets();
}

size_t vsim_port_room(const vsim* sim, unsigned fn) {
  return fn < Card::kFunctions ? sim->card->ports[fn].room() : 0;
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

int vsim_trace(vsim* sim, int on) {
  try {
    sim->card->trace(on != 0);
    return 0;
  } catch (const std::bad_alloc&) {
    return sim->fail(-ENOMEM, "no memory for a trace");
  }
}

size_t vsim_trace_take(vsim* sim, vsim_trace_record* to, size_t room, int end) {
  via::Trace* trace = sim->card->trace();
  return trace ? trace->take(to, room, end != 0) : 0;
}

void vsim_get_counters(const vsim* sim, vsim_counters* counters) {
  *counters = sim->card->counters;
  counters->cycles = sim->card->clock.cycles();
  counters->slots = via::Card::slots();
  counters->channels = via::Shell::kChannels;
  counters->link_up_ps = sim->card->link.up_busy_ps();
  counters->link_down_ps = sim->card->link.down_busy_ps();
  const via::Sysmon& sysmon = sim->card->sysmon();
  counters->temperature = sysmon.temperature();
  counters->vccint_volts = sysmon.vccint();
  counters->vccint_amperes = sysmon.amperes();
  for (unsigned s = 0; s < via::Card::slots(); s++) {
    const via::Slot::Activity& activity = sim->card->slot(s).activity();
    counters->slot_first[s] = activity.first;
    counters->slot_last[s] = activity.last;
    counters->slot_beats_in[s] = activity.beats_in;
    counters->slot_beats_out[s] = activity.beats_out;
    const via::Slot::Totals& totals = sim->card->slot(s).totals();
    counters->slot_stream_in[s] = totals.stream_in;
    counters->slot_stream_out[s] = totals.stream_out;
    counters->slot_mem_read[s] = totals.mem_read;
    counters->slot_mem_write[s] = totals.mem_write;
    counters->slots_loaded |= uint32_t{sim->card->slot(s).loaded()} << s;
    counters->slots_busy |= uint32_t{sim->card->slot(s).busy()} << s;
  }
  for (const vsim_fn_counters& fn : sim->card->fn_counters) {
    counters->mmio_reads += fn.mmio_reads;
    counters->mmio_writes += fn.mmio_writes;
    counters->irqs += fn.irqs;
    counters->host_read_bytes += fn.host_read_bytes;
    counters->host_write_bytes += fn.host_write_bytes;
    counters->host_read_tlps += fn.host_read_tlps;
    counters->host_write_tlps += fn.host_write_tlps;
  }
}

int vsim_get_fn_counters(const vsim* sim, unsigned fn, vsim_fn_counters* counters) {
  if (fn >= Card::kFunctions) return -EINVAL;
  *counters = sim->card->ports[fn].counters();
  return 0;
}

}  // extern "C"
