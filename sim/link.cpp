// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "link.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace via {
namespace {

constexpr uint32_t kWriteBursts = 64;
// Posted data the card's end of the link holds; a read waits for what is there when it comes. As much as 1024
// credits of 16 bytes, the order of what root ports grant: an estimate.
constexpr uint32_t kWriteBytes = 16 * 1024;
constexpr uint32_t kMsixBytes = 4;

constexpr uint64_t ps(uint32_t ns) {
  return uint64_t{ns} * 1000;
}

// As write_beat(), in ascending words: a thread of the host that sees one of them sees those before it.
void store_beat(uint8_t* to, const uint8_t* data, uint64_t strobe) {
  for (unsigned at = 0; strobe; at += 8, strobe >>= 8) {
    if ((strobe & 0xff) == 0xff) {
      uint64_t word;
      std::memcpy(&word, data + at, sizeof word);
      __atomic_store_n(reinterpret_cast<uint64_t*>(to + at), word, __ATOMIC_RELEASE);
    } else {
      write_beat(to + at, data + at, strobe & 0xff);
    }
  }
}

}  // namespace

void check_burst(const char* what, uint64_t addr, uint32_t beats) {
  const uint64_t offset = addr % kMaxBurstBytes;
  if (addr % kBeatBytes == 0 && offset + uint64_t{beats} * kBeatBytes <= kMaxBurstBytes) return;
  std::fprintf(stderr, "viaduct card: the shell %s: %u beats at 0x%llx are not whole ones within 4 KiB\n",
               what, beats, static_cast<unsigned long long>(addr));
  std::abort();
}

void write_beat(uint8_t* to, const uint8_t* data, uint64_t strobe) {
  if (strobe == kFullStrobe) {
    std::memcpy(to, data, kBeatBytes);
    return;
  }
  while (strobe) {
    const int from = std::countr_zero(strobe);
    const int count = std::countr_one(strobe >> from);
    std::memcpy(to + from, data + from, static_cast<size_t>(count));
    if (from + count == 64) break;
    strobe &= ~uint64_t{0} << (from + count);
  }
}

std::string Link::check(const vsim_link& c) {
  const auto size_ok = [](uint32_t v) { return v >= 128 && v <= 4096 && std::has_single_bit(v); };
  if (c.generation < 1 || c.generation > 5) return "PCIe generation is 1 to 5";
  if (c.lanes < 1 || c.lanes > 16 || !std::has_single_bit(c.lanes)) return "PCIe lanes are 1, 2, 4, 8 or 16";
  if (!size_ok(c.mps)) return "MPS is a power of two, 128 to 4096 bytes";
  if (!size_ok(c.mrrs)) return "MRRS is a power of two, 128 to 4096 bytes";
  if (c.rcb != 64 && c.rcb != 128) return "RCB is 64 or 128 bytes";
  if (c.tags < 1 || c.tags > 1024) return "tags are 1 to 1024";
  const auto pct_ok = [](uint32_t v) { return v >= 1 && v <= 100; };
  if (!pct_ok(c.read_efficiency_pct) || !pct_ok(c.write_efficiency_pct)) return "efficiency is 1 to 100 %";
  const uint32_t slowest =
      std::max({c.read_latency_ns, c.write_latency_ns, c.mmio_read_ns, c.mmio_write_ns, c.irq_latency_ns});
  if (slowest > 1'000'000) return "latencies of the link are at most 1 ms";
  return {};
}

double Link::link_layer_share(const vsim_link& c) {
  // Base Specification 5.0, sections 2.6.1.2 and 3.6.3.1: symbol times between two flow-control updates, and
  // between two ACKs: (MPS + 28) * factor / lanes + internal delay, rounded down, as in tables 2-46 to 2-48
  // and 3-7 to 3-9.
  const uint32_t column = std::min<uint32_t>(static_cast<uint32_t>(std::countr_zero(c.lanes)), 4);
  constexpr uint32_t small[] = {14, 14, 14, 25, 30}, large[] = {10, 10, 10, 10, 20};  // factors, in tenths
  constexpr uint32_t delay[] = {19, 70, 115, 115, 115};
  const uint32_t factor = (c.mps <= 256 ? small : large)[column];
  const uint32_t interval = (c.mps + 28) * factor / (10 * c.lanes) + delay[c.generation - 1];
  constexpr double packet = 8;  // bytes of a DLLP with framing
  constexpr double skip = 4.0 / 1538;
  return 2 * packet / interval + skip;
}

uint64_t Link::fs_per_byte(const vsim_link& c) {
  // One lane: 8b/10b up to generation 2, 128b/130b from 3.
  constexpr double lane[] = {4e6, 2e6, 1.015625e6, 0.5078125e6, 0.25390625e6};
  return static_cast<uint64_t>(lane[c.generation - 1] / c.lanes / (1 - link_layer_share(c)) + 0.5);
}

Link::Link(const vsim_link& config, unsigned functions, HostMap* maps, vsim_fn_counters* counters)
    : config_(config),
      functions_(functions),
      maps_(maps),
      counters_(counters),
      fs_per_byte_(fs_per_byte(config)),
      read_fs_(fs_per_byte_ * 100 / config.read_efficiency_pct),
      write_fs_(fs_per_byte_ * 100 / config.write_efficiency_pct),
      bursts_(std::make_unique<ReadBurst[]>(kReadBursts)),
      free_bursts_(kReadBursts),
      issued_(kReadBursts),
      reads_(config.tags),
      write_bursts_(kWriteBursts),
      beats_(kWriteBytes / kBeatBytes),
      writes_(kWriteBytes / kBeatBytes),
      responses_(kWriteBursts),
      interrupts_(64) {
  reset();
}

void Link::reset() {
  for (uint64_t i = reads_.head(); i != reads_.tail(); i++) {
    if (reads_[i].range && i >= sampled_) reads_[i].range->in_flight--;
  }
  for (uint64_t i = writes_.head(); i != sent_; i++) {
    if (writes_[i].range) writes_[i].range->in_flight--;
  }
  free_bursts_.clear();
  for (int32_t i = 0; i < kReadBursts; i++) free_bursts_.push() = i;
  std::fill(std::begin(first_of_), std::end(first_of_), -1);
  std::fill(std::begin(last_of_), std::end(last_of_), -1);
  ids_waiting_ = 0;
  issuing_ = -1;
  turn_ = 0;
  issued_.clear();
  reads_.clear();
  sampled_ = 0;
  completing_ = false;
  completed_ = completion_bytes_ = 0;
  write_bursts_.clear();
  beats_.clear();
  writes_.clear();
  sent_ = 0;
  visible_ps_ = 0;
  burst_beats_ = tlp_beats_ = tlp_payload_ = tlp_packets_ = 0;
  tlp_goes_on_ = false;
  bursts_accepted_ = bursts_sent_ = 0;
  owed_ = 0;
  resp_ = kOkay;
  responses_.clear();
  interrupts_.clear();
  interrupts_sent_ = 0;
  std::fill(std::begin(pending_), std::end(pending_), 0);
  pending_functions_ = 0;
  response_ = {};
  make_response();
}

void Link::edge(const Clock& clock, const AxiRequest& shell, const MsixRequest& msix) {
  const uint64_t now = clock.ps();
  accept(shell, msix);
  send(clock);
  // Writes first: a read that is behind one sees it.
  commit(now);
  arrive(now);
  make_response();
}

// ------------------------------------------------------------------------------------------------ from the
// shell
void Link::accept(const AxiRequest& shell, const MsixRequest& msix) {
  if (response_.rvalid && shell.rready) {
    ReadBurst& burst = bursts_[issued_.front()];
    burst.taken += kBeatBytes;
    response_.rvalid = false;
    if (burst.taken == burst.bytes) {
      free_bursts_.push() = issued_.front();
      issued_.pop();
    }
  }
  if (response_.bvalid && shell.bready) {
    response_.bvalid = false;
    responses_.pop();
    owed_--;
  }
  if (shell.arvalid && response_.arready) {
    const int32_t index = free_bursts_.front();
    free_bursts_.pop();
    ReadBurst& burst = bursts_[index];
    burst.id = shell.arid;
    burst.addr = shell.araddr;
    burst.bytes = (shell.arlen + 1u) * kBeatBytes;
    check_burst("reads host memory", shell.araddr, shell.arlen + 1u);
    burst.issued = burst.arrived = burst.taken = 0;
    burst.behind = writes_.tail();
    burst.failed.reset();
    burst.next = -1;
    int32_t& last = last_of_[burst.id];
    (last < 0 ? first_of_[burst.id] : bursts_[last].next) = index;
    last = index;
    ids_waiting_ |= uint64_t{1} << burst.id;
  }
  // Before AW: an address that comes in at this edge has its data from the next one on.
  if (shell.wvalid && response_.wready) accept_beat(shell);
  if (shell.awvalid && response_.awready) {
    check_burst("writes host memory", shell.awaddr, shell.awlen + 1u);
    write_bursts_.push() = {shell.awid, shell.awaddr, shell.awlen + 1u};
    bursts_accepted_++;
    owed_++;
  }
  if (msix.valid && msix_ready_) interrupts_.push() = {0, msix.vector, bursts_accepted_, 0};
  if (msix.fn_valid && msix_ready_) interrupts_.push() = {msix.fn, msix.fn_vector, bursts_accepted_, 0};
}

void Link::accept_beat(const AxiRequest& shell) {
  WriteBeat& beat = beats_.push();
  beat.strobe = shell.wstrb;
  std::memcpy(beat.data, shell.wdata, kBeatBytes);
  burst_beats_++;
  tlp_beats_++;
  // A TLP carries whole double words, and only its first and last one may be written in part: bytes that are
  // left out part it in two (PCI Express Base Specification, byte enables).
  const uint64_t strobe = shell.wstrb;
  for (unsigned word = 0; word < kBeatBytes / 4; word++) tlp_payload_ += (strobe >> (4 * word) & 15) ? 4 : 0;
  tlp_packets_ += static_cast<uint32_t>(std::popcount(strobe & ~(strobe << 1 | (tlp_goes_on_ ? 1 : 0))));
  tlp_goes_on_ = strobe >> (kBeatBytes - 1) & 1;
  const WriteBurst& burst = write_bursts_.front();
  const bool last = burst_beats_ == burst.beats;
  const uint64_t end = burst.addr + uint64_t{burst_beats_} * kBeatBytes;
  if (!last && end % config_.mps != 0) return;
  WriteTlp& tlp = writes_.push();
  tlp.addr = end - uint64_t{tlp_beats_} * kBeatBytes;
  tlp.first_beat = beats_.tail() - tlp_beats_;
  tlp.beats = tlp_beats_;
  tlp.payload = tlp_payload_;
  tlp.packets = std::max(tlp_packets_, 1u);
  tlp.last = last;
  tlp.id = burst.id;
  tlp_beats_ = tlp_payload_ = tlp_packets_ = 0;
  tlp_goes_on_ = false;
  if (last) {
    burst_beats_ = 0;
    write_bursts_.pop();
  }
}

// An id that belongs to no function reaches nothing.
HostRange* Link::find(uint8_t id, uint64_t addr, unsigned perms) {
  const unsigned function = function_of(id);
  return function < functions_ ? maps_[function].find(addr, perms) : nullptr;
}

vsim_fn_counters& Link::counters_of(uint8_t id) {
  const unsigned function = function_of(id);
  return counters_[function < functions_ ? function : 0];
}

// ------------------------------------------------------------------------------------------------ card to
// host
void Link::send(const Clock& clock) {
  // The lane is given away only when it is free, so that a late read need not wait behind a heap of writes.
  const uint64_t now = clock.ps();
  const uint64_t end = now + clock.period_ps();
  while (up_.free_ps() < end) {
    if (!send_interrupt(now) && !send_read(now) && !send_write(now)) break;
  }
}

bool Link::send_interrupt(uint64_t now) {
  if (interrupts_sent_ == interrupts_.tail()) return false;
  Interrupt& interrupt = interrupts_[interrupts_sent_];
  if (interrupt.after_burst > bursts_sent_) return false;
  const uint64_t left = up_.send(now, kRequestOverhead + kMsixBytes, fs_per_byte_);
  interrupt.arrive_ps = std::max(left + ps(config_.irq_latency_ns), visible_ps_);
  interrupts_sent_++;
  return true;
}

// The next id in turn whose first burst may leave.
bool Link::pick_burst() {
  uint64_t ids = ids_waiting_;
  int id;
  do {
    if (!ids) return false;
    const uint64_t from_turn = ids & (~uint64_t{0} << turn_);
    id = std::countr_zero(from_turn ? from_turn : ids);
    ids &= ~(uint64_t{1} << id);
  } while (!may_leave(first_of_[id]));
  turn_ = static_cast<uint8_t>((id + 1) & 63);
  issuing_ = first_of_[id];
  first_of_[id] = bursts_[issuing_].next;
  if (first_of_[id] < 0) {
    last_of_[id] = -1;
    ids_waiting_ &= ~(uint64_t{1} << id);
  }
  issued_.push() = issuing_;
  return true;
}

bool Link::send_read(uint64_t now) {
  if (reads_.full()) return false;
  if (issuing_ < 0 && !pick_burst()) return false;
  ReadBurst& burst = bursts_[issuing_];
  const uint64_t addr = burst.addr + burst.issued;
  const uint32_t to_boundary = config_.mrrs - static_cast<uint32_t>(addr & (config_.mrrs - 1));
  const uint32_t bytes = std::min(burst.bytes - burst.issued, to_boundary);
  const uint64_t left = up_.send(now, kRequestOverhead, fs_per_byte_);
  const uint64_t half = ps(config_.read_latency_ns) / 2;
  ReadTlp& tlp = reads_.push();
  tlp.burst = issuing_;
  tlp.offset = burst.issued;
  tlp.bytes = bytes;
  tlp.sample_ps = std::max(left + half, visible_ps_);
  tlp.first_ps = tlp.sample_ps + ps(config_.read_latency_ns) - half;
  tlp.range = find(burst.id, addr, VSIM_DMA_READ);
  if (tlp.range) tlp.range->in_flight++;
  burst.issued += bytes;
  if (burst.issued == burst.bytes) issuing_ = -1;
  vsim_fn_counters& counters = counters_of(burst.id);
  counters.host_read_tlps++;
  counters.host_read_bytes += bytes;
  return true;
}

bool Link::send_write(uint64_t now) {
  if (sent_ == writes_.tail()) return false;
  WriteTlp& tlp = writes_[sent_++];
  const uint64_t left = up_.send(now, kRequestOverhead * tlp.packets + tlp.payload, write_fs_);
  visible_ps_ = tlp.visible_ps = left + ps(config_.write_latency_ns);
  tlp.range = find(tlp.id, tlp.addr, VSIM_DMA_WRITE);
  if (tlp.range) tlp.range->in_flight++;
  if (tlp.last) bursts_sent_++;
  vsim_fn_counters& counters = counters_of(tlp.id);
  counters.host_write_tlps += tlp.packets;
  counters.host_write_bytes += tlp.payload;
  return true;
}

// ------------------------------------------------------------------------------------------------ host to
// card
void Link::begin_completion() {
  const ReadTlp& tlp = reads_.front();
  const uint64_t addr = bursts_[tlp.burst].addr + tlp.offset + completed_;
  const uint64_t boundary = (addr & ~uint64_t{config_.rcb - 1}) + config_.mps;
  const auto to_boundary = static_cast<uint32_t>(boundary - addr);
  completion_bytes_ = std::min(tlp.bytes - completed_, to_boundary);
  // A completion with an error has no data and ends the request.
  const uint32_t payload = tlp.range ? completion_bytes_ : 0;
  if (!tlp.range) completion_bytes_ = tlp.bytes;
  const uint64_t wire_ps = (kCompletionOverhead + payload) * read_fs_ / 1000;
  const uint64_t start = tlp.first_ps > wire_ps ? tlp.first_ps - wire_ps : 0;
  completion_ps_ = down_.send(start, kCompletionOverhead + payload, read_fs_);
  completing_ = true;
}

void Link::arrive(uint64_t now) {
  for (; sampled_ != reads_.tail() && reads_[sampled_].sample_ps <= now; sampled_++) {
    const ReadTlp& tlp = reads_[sampled_];
    ReadBurst& burst = bursts_[tlp.burst];
    if (tlp.range) {
      const uint64_t addr = burst.addr + tlp.offset;
      std::memcpy(burst.data + tlp.offset, tlp.range->host + (addr - tlp.range->iova), tlp.bytes);
      tlp.range->in_flight--;
    } else {
      std::memset(burst.data + tlp.offset, 0, tlp.bytes);
      for (uint32_t at = tlp.offset; at < tlp.offset + tlp.bytes; at += kBeatBytes) {
        burst.failed.set(at / kBeatBytes);
      }
    }
  }
  while (!reads_.empty()) {
    if (!completing_) begin_completion();
    if (completion_ps_ > now) break;
    completing_ = false;
    const ReadTlp& tlp = reads_.front();
    bursts_[tlp.burst].arrived += completion_bytes_;
    completed_ += completion_bytes_;
    if (completed_ == tlp.bytes) {
      completed_ = 0;
      reads_.pop();
    }
  }
}

void Link::commit(uint64_t now) {
  for (; writes_.head() != sent_ && writes_.front().visible_ps <= now; writes_.pop()) {
    const WriteTlp& tlp = writes_.front();
    if (tlp.range) {
      uint8_t* to = tlp.range->host + (tlp.addr - tlp.range->iova);
      for (uint32_t i = 0; i < tlp.beats; i++) {
        const WriteBeat& beat = beats_[tlp.first_beat + i];
        store_beat(to + std::size_t{i} * kBeatBytes, beat.data, beat.strobe);
      }
      tlp.range->in_flight--;
    } else {
      resp_ = kSlvErr;
    }
    beats_.pop(tlp.beats);
    if (tlp.last) {
      responses_.push() = {tlp.id, resp_};
      resp_ = kOkay;
    }
  }
  for (; interrupts_.head() != interrupts_sent_ && interrupts_.front().arrive_ps <= now; interrupts_.pop()) {
    const Interrupt& interrupt = interrupts_.front();
    if (interrupt.function >= functions_) continue;
    pending_[interrupt.function] |= uint64_t{1} << (interrupt.vector & 63);
    pending_functions_ |= 1u << interrupt.function;
    counters_[interrupt.function].irqs++;
  }
}

uint64_t Link::take(unsigned function, uint64_t mask) {
  const uint64_t taken = pending_[function] & mask;
  pending_[function] &= ~taken;
  if (pending_[function] == 0) pending_functions_ &= ~(1u << function);
  return taken;
}

bool Link::carries_interrupt_of(unsigned function) const {
  for (uint64_t i = interrupts_.head(); i != interrupts_.tail(); i++) {
    if (interrupts_[i].function == function) return true;
  }
  return false;
}

uint64_t Link::next_ps() const {
  const bool offers = response_.rvalid || response_.bvalid;
  const bool sends =
      ids_waiting_ || issuing_ >= 0 || sent_ != writes_.tail() || interrupts_sent_ != interrupts_.tail();
  if (offers || sends) return 0;
  uint64_t next = ~uint64_t{0};
  if (sampled_ != reads_.tail()) next = std::min(next, reads_[sampled_].sample_ps);
  if (completing_) next = std::min(next, completion_ps_);
  if (!writes_.empty()) next = std::min(next, writes_.front().visible_ps);
  if (!interrupts_.empty()) next = std::min(next, interrupts_.front().arrive_ps);
  return next;
}

// ------------------------------------------------------------------------------------------------ to the
// shell
void Link::make_response() {
  response_.rfresh = false;
  if (!response_.rvalid && !issued_.empty()) {
    const ReadBurst& burst = bursts_[issued_.front()];
    if (burst.arrived >= burst.taken + kBeatBytes) {
      response_.rvalid = response_.rfresh = true;
      response_.rid = burst.id;
      response_.rdata = burst.data + burst.taken;
      response_.rresp = burst.failed.test(burst.taken / kBeatBytes) ? kSlvErr : kOkay;
      response_.rlast = burst.taken + kBeatBytes == burst.bytes;
    }
  }
  if (!response_.bvalid && !responses_.empty()) {
    response_.bvalid = true;
    response_.bid = responses_.front().id;
    response_.bresp = responses_.front().resp;
  }
  response_.arready = !free_bursts_.empty();
  response_.awready = owed_ < kWriteBursts;
  response_.wready = !write_bursts_.empty() && !beats_.full();
  msix_ready_ = interrupts_.room() >= 2;
  idle_ = free_bursts_.full() && owed_ == 0;
}

}  // namespace via
