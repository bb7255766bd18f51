// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "dram.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace via {
namespace {

constexpr uint32_t kBursts =
    16;  // AXI read bursts waiting to be expanded; write bursts without all their data
constexpr uint32_t kWritesOwed = 64;
constexpr uint32_t kReturns = 128;  // read commands whose data has not been handed over
alignas(64) constexpr uint8_t kZeros[kBeatBytes] = {};

}  // namespace

std::string Dram::check(const vsim_dram& c) {
  if (c.mib < 1 || c.mib > 16384) return "a DRAM channel has 1 to 16384 MiB";
  if (!std::has_single_bit(c.data_bytes) || c.data_bytes < kBeatBytes || c.data_bytes > 128) {
    return "a DRAM burst is a power of two of at most 128 bytes and holds at least a beat of the shell";
  }
  if (!std::has_single_bit(c.banks) || c.banks > 64) return "DRAM banks are a power of two up to 64";
  if (!std::has_single_bit(c.row_bytes) || c.row_bytes < c.data_bytes || c.row_bytes > 65536) {
    return "a DRAM row is a power of two up to 65536 bytes";
  }
  if (c.queue < 1 || c.queue > 64) return "the DRAM controller looks at 1 to 64 requests";
  if (!std::has_single_bit(c.groups) || c.groups > c.banks) {
    return "bank groups of a DRAM are a power of two, at most one a bank";
  }
  if (c.machines && c.machines != c.groups) return "a DRAM controller has a machine for each bank group";
  for (uint32_t fifo : {c.read_fifo, c.write_fifo}) {
    if (c.machines && (fifo < 1 || fifo > kReturns))
      return "the FIFOs of a DRAM controller hold 1 to 128 requests";
  }
  if (c.machines && (c.clock_ps < 100 || c.clock_ps > 1'000'000)) {
    return "the clock of a DRAM controller has a period of 0.1 ns to 1 us";
  }
  const uint32_t times[] = {c.t_rcd_ps, c.t_rp_ps,  c.t_ras_ps,   c.t_cl_ps,  c.t_cwl_ps,
                            c.t_wr_ps,  c.t_wtr_ps, c.t_rtw_ps,   c.t_ccd_ps, c.t_ccd_l_ps,
                            c.t_faw_ps, c.t_rfc_ps, c.machine_ps, c.track_ps, c.controller_ps};
  for (uint32_t t : times) {
    if (t > 10'000'000) return "DRAM times are at most 10 us";
  }
  if (c.burst_ps < 100 || c.burst_ps > 10'000'000) return "a DRAM burst takes 0.1 ns to 10 us";
  if (c.t_refi_ps <= c.t_rfc_ps) return "DRAM refresh takes all the time there is";
  return {};
}

Dram::Dram(const vsim_dram& config, vsim_counters& counters, unsigned channel)
    : config_(config),
      read_bytes_(counters.dram_read_bytes[channel]),
      write_bytes_(counters.dram_write_bytes[channel]),
      row_hits_(counters.dram_row_hits[channel]),
      row_misses_(counters.dram_row_misses[channel]),
      size_(uint64_t{config.mib} << 20),
      asked_(kBursts),
      returns_(kReturns),
      write_bursts_(kBursts),
      responses_(kWritesOwed),
      machines_(config.machines),
      banks_(config.banks),
      column_ok_(config.groups),
      claimed_(config.banks),
      next_refresh_(config.t_refi_ps) {
  // Pages come into being when they are written.
  void* at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<uint8_t*>(at);
  reads_.reserve(config.queue);
  writes_.reserve(config.machines ? config.write_fifo : config.queue);
  for (Machine& machine : machines_) machine.commands.reserve(config.queue);
  reset();
}

Dram::~Dram() {
  munmap(memory_, size_);
}

void Dram::reset() {
  asked_.clear();
  returns_.clear();
  returned_ = 0;
  write_bursts_.clear();
  write_beats_ = 0;
  resp_ = kOkay;
  responses_.clear();
  owed_ = 0;
  reads_.clear();
  writes_.clear();
  draining_ = false;
  batch_ = 0;
  for (Machine& machine : machines_) {
    machine.commands.clear();
    machine.open = 0;
  }
  held_ = 0;
  taking_ = taking_write_ = false;
  response_ = {};
  make_response(0);
}

void Dram::edge(const Clock& clock, const AxiRequest& shell) {
  const uint64_t now = clock.ps();
  const uint64_t end = now + clock.period_ps();
  accept(now, shell);
  if (config_.machines) {
    run_machines(now, end);
  } else {
    expand(now);
  }
  if (!config_.machines && (!reads_.empty() || !writes_.empty())) {
    refresh(now);
    choose_direction();
    open_rows(now, end);
    while (issue(now, end)) {
    }
  }
  make_response(now);
}

// ------------------------------------------------------------------------------------------------ from the
// shell
void Dram::accept(uint64_t now, const AxiRequest& shell) {
  if (response_.rvalid && shell.rready) {
    response_.rvalid = false;
    if (++returned_ == returns_.front().beats) {
      returned_ = 0;
      returns_.pop();
    }
  }
  if (response_.bvalid && shell.bready) {
    response_.bvalid = false;
    responses_.pop();
    owed_--;
  }
  if (shell.arvalid && response_.arready) {
    check_burst("reads card memory", shell.araddr, shell.arlen + 1u);
    asked_.push() = {shell.araddr, shell.arlen + 1u};
  }
  // Before AW: an address that comes in at this edge has its data from the next one on.
  if (shell.wvalid && response_.wready) accept_beat(now, shell);
  if (shell.awvalid && response_.awready) {
    check_burst("writes card memory", shell.awaddr, shell.awlen + 1u);
    write_bursts_.push() = {shell.awaddr, shell.awlen + 1u};
    owed_++;
  }
}

void Dram::accept_beat(uint64_t now, const AxiRequest& shell) {
  const Burst& burst = write_bursts_.front();
  const uint64_t addr = burst.addr + uint64_t{write_beats_} * kBeatBytes;
  write_beats_++;
  const bool last = write_beats_ == burst.beats;
  if (addr < size_) {
    write_beat(memory_ + addr, shell.wdata, shell.wstrb);
    write_bytes_ += static_cast<uint64_t>(std::popcount(shell.wstrb));
    // One command a DRAM burst: it waits for the last beat that falls into it.
    if (last || (addr + kBeatBytes) % config_.data_bytes == 0) {
      writes_.push_back({.place = place(addr), .number = 0, .write = true, .last = last});
    }
  } else {
    resp_ = kSlvErr;
    // What of the burst lies in the channel ends before this.
    if (taking_write_ && writes_.empty()) taking_ = false;
    if (!writes_.empty()) writes_.back().last = true;
  }
  if (last) {
    responses_.push() = {now + config_.controller_ps, resp_};
    resp_ = kOkay;
    write_beats_ = 0;
    write_bursts_.pop();
  }
}

// Without machines rows follow each other over the banks of a group; the bank is scrambled by the row, so
// that strides do not hit one bank only.
Dram::Place Dram::place(uint64_t addr) const {
  const uint64_t burst = addr / config_.data_bytes, group = burst & (config_.groups - 1);
  const uint64_t in_group = burst / config_.groups, banks = config_.banks / config_.groups;
  uint64_t bank, row;
  bool closes = false;
  if (config_.machines) {
    bank = in_group / 2 & (banks - 1);
    row = addr / (uint64_t{config_.row_bytes} * config_.banks);
    closes = (in_group & 1) != 0;
  } else {
    const uint64_t row_index = in_group * config_.data_bytes / config_.row_bytes;
    row = row_index / banks;
    bank = (row_index ^ row) & (banks - 1);
  }
  return {static_cast<uint32_t>(bank * config_.groups + group), static_cast<int64_t>(row), closes};
}

void Dram::expand(uint64_t now) {
  while (!asked_.empty() && reads_.size() < config_.queue && !returns_.full()) {
    const Command command = next_read(now);
    if (command.place.row >= 0) reads_.push_back(command);
  }
}

// The next command of the oldest read burst; beyond the channel it has no row, and is answered.
Dram::Command Dram::next_read(uint64_t now) {
  Burst& burst = asked_.front();
  const auto left = static_cast<uint32_t>(config_.data_bytes - burst.addr % config_.data_bytes);
  const uint32_t beats = std::min(burst.beats, left / kBeatBytes);
  const bool failed = burst.addr >= size_, last = beats == burst.beats;
  Command command{.place = {0, -1, false}, .number = returns_.tail(), .last = last};
  returns_.push() = {burst.addr, beats, failed, last, failed, now + config_.controller_ps};
  if (!failed) {
    command.place = place(burst.addr);
    read_bytes_ += uint64_t{beats} * kBeatBytes;
  }
  burst.addr += uint64_t{beats} * kBeatBytes;
  burst.beats -= beats;
  if (burst.beats == 0) asked_.pop();
  return command;
}

// ------------------------------------------------------------------------------------------------ the banks
void Dram::refresh(uint64_t now) {
  if (now < next_refresh_) return;
  const uint64_t start = next_refresh_ + (now - next_refresh_) / config_.t_refi_ps * config_.t_refi_ps;
  for (Bank& bank : banks_) {
    const uint64_t closed = bank.row < 0 ? start : std::max(start, bank.precharge_ok) + config_.t_rp_ps;
    bank.row = -1;
    bank.activate_ok = std::max(bank.activate_ok, closed + config_.t_rfc_ps);
  }
  next_refresh_ = start + config_.t_refi_ps;
  for (Machine& machine : machines_) machine.open = 0;
}

// Who has the bus keeps it for a batch, then the other direction gets it if it needs it.
void Dram::choose_direction() {
  const size_t many = config_.queue - config_.queue / 4;
  const size_t few = config_.queue / 4;
  const bool batch_done = batch_ >= config_.queue;
  const bool drains =
      !writes_.empty() && (reads_.empty() || (draining_ ? writes_.size() > few && !batch_done
                                                        : writes_.size() >= many && batch_done));
  if (drains != draining_) batch_ = 0;
  draining_ = drains;
}

void Dram::open_rows(uint64_t now, uint64_t end) {
  bool misses = false;
  pass_++;
  for (const Command& command : active()) {
    const Bank& bank = banks_[command.place.bank];
    if (bank.row == command.place.row) {
      claimed_[command.place.bank] = pass_;
    } else {
      misses = true;
    }
  }
  if (!misses) return;
  for (Command& command : active()) {
    if (claimed_[command.place.bank] == pass_) continue;
    claimed_[command.place.bank] = pass_;
    Bank& bank = banks_[command.place.bank];
    if (bank.row >= 0 && std::max(now, bank.precharge_ok) >= end) continue;
    open_row(now, command);
  }
}

// Closes the bank's row if it has one and opens the command's, as soon as may be; when that is.
uint64_t Dram::open_row(uint64_t now, Command& command) {
  Bank& bank = banks_[command.place.bank];
  uint64_t activate = std::max(now, bank.activate_ok);
  if (bank.row >= 0) activate = std::max(activate, std::max(now, bank.precharge_ok) + config_.t_rp_ps);
  const uint64_t newest = activates_[(activate_turn_ + 3) % 4];
  activate = std::max({activate, newest + config_.t_ccd_ps, activates_[activate_turn_] + config_.t_faw_ps});
  activates_[activate_turn_] = activate;
  activate_turn_ = (activate_turn_ + 1) % 4;
  bank.row = command.place.row;
  bank.cas_ok = activate + config_.t_rcd_ps;
  bank.precharge_ok = activate + config_.t_ras_ps;
  command.opened = true;
  return activate;
}

// Issues the command that can go first, the oldest of equals, if that is before `end`.
bool Dram::issue(uint64_t now, uint64_t end) {
  const uint64_t floor = std::max({now, next_cas_, draining_ ? write_cas_ok_ : read_cas_ok_});
  if (floor >= end) return false;
  std::vector<Command>& queue = active();
  size_t best = queue.size();
  uint64_t best_cas = end;
  for (size_t i = 0; i < queue.size() && best_cas > floor; i++) {
    const Bank& bank = banks_[queue[i].place.bank];
    if (bank.row != queue[i].place.row) continue;
    const uint64_t cas = std::max({floor, bank.cas_ok, column_ok_[group_of(queue[i].place)]});
    if (cas < best_cas) {
      best = i;
      best_cas = cas;
    }
  }
  if (best == queue.size()) return false;
  issue_at(best_cas, queue[best]);
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(best));
  return true;
}

void Dram::issue_at(uint64_t cas, const Command& command) {
  Bank& bank = banks_[command.place.bank];
  const uint64_t data_end = cas + (command.write ? config_.t_cwl_ps : config_.t_cl_ps) + config_.burst_ps;
  next_cas_ = cas + std::max(config_.t_ccd_ps, config_.burst_ps);
  column_ok_[group_of(command.place)] = cas + config_.t_ccd_l_ps;
  if (command.write) {
    read_cas_ok_ = data_end + config_.t_wtr_ps;
    bank.precharge_ok = std::max(bank.precharge_ok, data_end + config_.t_wr_ps);
  } else {
    write_cas_ok_ = cas + config_.t_rtw_ps;
    // Read to precharge is about two bursts in every DDR generation.
    bank.precharge_ok = std::max(bank.precharge_ok, cas + 2 * uint64_t{config_.burst_ps});
    Return& back = returns_[command.number];
    back.done = true;
    back.ready_ps = data_end + config_.controller_ps;
  }
  if (command.place.closes) {
    bank.row = -1;
    bank.activate_ok = std::max(bank.activate_ok, bank.precharge_ok + config_.t_rp_ps);
  }
  batch_++;
  (command.opened ? row_misses_ : row_hits_)++;
}

// ------------------------------------------------------------------------------------------------ machines
void Dram::run_machines(uint64_t now, uint64_t end) {
  if (next_clock_ps_ < now) {
    next_clock_ps_ += (now - next_clock_ps_ + config_.clock_ps - 1) / config_.clock_ps * config_.clock_ps;
  }
  for (; next_clock_ps_ < end; next_clock_ps_ += config_.clock_ps) {
    refresh(next_clock_ps_);
    column_of_machines(next_clock_ps_);
    rows_of_machines(next_clock_ps_);
    take_in(next_clock_ps_);
    turn_ = (turn_ + 1) & (config_.machines - 1);
  }
}

// One command a clock, of one AXI burst after the other.
void Dram::take_in(uint64_t now) {
  const bool can_read = !asked_.empty() && returns_.size() < config_.read_fifo, can_write = !writes_.empty();
  if (!taking_) {
    if (!can_read && !can_write) return;
    taking_write_ = can_write && (!can_read || !taking_write_);
    taking_ = true;
  }
  if (taking_write_ ? !can_write : !can_read) return;
  const auto machine_of = [&](const Place& place) -> Machine& { return machines_[group_of(place)]; };
  Command command;
  if (taking_write_) {
    command = writes_.front();
    if (machine_of(command.place).commands.size() >= config_.queue) return;
    writes_.erase(writes_.begin());
  } else {
    const uint64_t addr = asked_.front().addr;
    if (addr < size_ && machine_of(place(addr)).commands.size() >= config_.queue) return;
    command = next_read(now);
  }
  if (command.last) taking_ = false;
  if (command.place.row < 0) return;
  machine_of(command.place).commands.push_back(command);
  held_++;
}

// First stages: each goes through its commands in order, closes and opens a row where one is in the way or
// none is open, and waits where commands before it still need the open one.
void Dram::rows_of_machines(uint64_t now) {
  bool opened = false;
  for (uint32_t i = 0; i < config_.machines; i++) {
    Machine& machine = machines_[(turn_ + i) & (config_.machines - 1)];
    if (machine.open == machine.commands.size() || machine.ready_ps > now) continue;
    Command& command = machine.commands[machine.open];
    Bank& bank = banks_[command.place.bank];
    // What those before it still do with the bank.
    bool used = false, closes = false;
    for (size_t earlier = 0; earlier < machine.open; earlier++) {
      const Place& place = machine.commands[earlier].place;
      used |= place.bank == command.place.bank;
      closes |= place.bank == command.place.bank && place.closes;
    }
    if (bank.row == command.place.row && !closes) {
      machine.open++;
      continue;
    }
    if (used || opened || (bank.row < 0 ? bank.activate_ok : bank.precharge_ok) > now) continue;
    opened = true;
    machine.ready_ps = open_row(now, command) + config_.machine_ps;
    machine.open++;
  }
}

// Second stages: one column command of all machines, reads first.
void Dram::column_of_machines(uint64_t now) {
  if (next_cas_ > now) return;
  if (config_.track_ps && held_ > 0 && now - last_read_ps_ >= config_.track_ps) {
    // Writes wait for it.
    if (read_cas_ok_ > now) return;
    last_read_ps_ = now;
    next_cas_ = now + config_.burst_ps;
    write_cas_ok_ = now + config_.t_rtw_ps;
    return;
  }
  for (const bool write : {false, true}) {
    if ((write ? write_cas_ok_ : read_cas_ok_) > now) continue;
    for (uint32_t i = 0; i < config_.machines; i++) {
      Machine& machine = machines_[(turn_ + i) & (config_.machines - 1)];
      if (machine.open == 0) continue;
      const Command& command = machine.commands.front();
      if (column_ok_[group_of(command.place)] > now) continue;
      if (command.write != write || banks_[command.place.bank].row != command.place.row ||
          banks_[command.place.bank].cas_ok > now)
        continue;
      if (!write) last_read_ps_ = now;
      issue_at(now, command);
      machine.commands.erase(machine.commands.begin());
      machine.open--;
      held_--;
      return;
    }
  }
}

// ------------------------------------------------------------------------------------------------ to the
// shell
void Dram::make_response(uint64_t now) {
  response_.rfresh = false;
  if (!response_.rvalid && !returns_.empty()) {
    const Return& back = returns_.front();
    if (back.done && back.ready_ps <= now) {
      response_.rvalid = response_.rfresh = true;
      response_.rdata = back.failed ? kZeros : memory_ + back.addr + std::size_t{returned_} * kBeatBytes;
      response_.rresp = back.failed ? kSlvErr : kOkay;
      response_.rlast = back.last && returned_ + 1 == back.beats;
    }
  }
  if (!response_.bvalid && !responses_.empty() && responses_.front().ready_ps <= now) {
    response_.bvalid = true;
    response_.bresp = responses_.front().resp;
  }
  response_.arready = !asked_.full();
  response_.awready = !write_bursts_.full() && owed_ < kWritesOwed;
  response_.wready =
      !write_bursts_.empty() && writes_.size() < (config_.machines ? config_.write_fifo : config_.queue);
}

}  // namespace via
