// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "board.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace via {
namespace {

constexpr size_t kWireFrame = 60;      // shorter frames are padded by who sends them
constexpr size_t kFrameOverhead = 24;  // preamble and delimiter 8, FCS 4, gap 12
constexpr size_t kEventBytes = 8;
constexpr size_t kLargestFifo = 16 << 20;
constexpr uint64_t kFsPerSecond = 1'000'000'000'000'000;

}  // namespace

std::string Port::check(const vsim_port& config) {
  if (config.kind == VSIM_PORT_NONE) return {};
  if (config.kind > VSIM_PORT_KEYS) return "there is no board port of kind " + std::to_string(config.kind);
  const size_t least = config.kind == VSIM_PORT_ETHERNET ? 16 * 1024 : kBeatBytes;
  if (config.fifo_bytes < least || config.fifo_bytes > kLargestFifo) {
    return "the buffer of this board port is " + std::to_string(least) + " bytes to 16 MiB";
  }
  if (config.bytes_per_second > 1'000'000'000'000) return "a board port carries at most 1 TB/s";
  const bool limited = config.max_frame != 0;
  if (limited && (config.kind != VSIM_PORT_ETHERNET || config.max_frame < kLeastLimit ||
                  config.max_frame > kMaxFrame + kFcs)) {
    return "the longest frame of an Ethernet port is " + std::to_string(kLeastLimit) + " to " +
           std::to_string(kMaxFrame + kFcs) + " bytes";
  }
  return {};
}

Port::Port(const vsim_port& config, vsim_fn_counters& counters)
    : kind_(config.kind),
      fifo_bytes_(config.fifo_bytes),
      piece_(config.kind == VSIM_PORT_KEYS ? kEventBytes : 16),
      longest_(config.max_frame ? config.max_frame - kFcs : kMaxFrame),
      bytes_per_second_(config.bytes_per_second),
      fs_per_byte_(config.bytes_per_second ? kFsPerSecond / config.bytes_per_second : 0),
      counters_(counters) {
  response_.rx_data = beat_;
  response_.tx_ready = takes_beat();
}

void Port::reset() {
  building_.clear();
  too_long_ = false;
  held_ = 0;
  for (Queue* queue : {&sending_, &to_host_, &from_host_, &fifo_}) queue->clear();
  begun_ = offered_ = 0;
  receiving_ = false;
  response_ = {};
  response_.rx_data = beat_;
  response_.tx_ready = takes_beat();
}

// A frame that was cut short by its sender takes what there is of it.
uint64_t Port::wire_bytes(size_t bytes) const {
  return framed() ? bytes + kFrameOverhead : bytes;
}

void Port::put(Lane& lane, uint64_t start_ps, Packet& packet) {
  packet.began_ps = std::max(start_ps, lane.free_ps());
  packet.ps = lane.send(start_ps, wire_bytes(packet.data.size()), fs_per_byte_);
}

int Port::link(uint64_t now_ps, uint32_t state) {
  if (!framed()) return -ENODEV;
  if (state > VSIM_LINK_LOOP) return -EINVAL;
  if (state == VSIM_LINK_DOWN && link_ != VSIM_LINK_DOWN) cut_ps_ = now_ps;
  if (state != VSIM_LINK_DOWN && link_ == VSIM_LINK_DOWN) restored_ps_ = now_ps;
  link_ = state;
  return 0;
}

vsim_fn_counters Port::counters() const {
  vsim_fn_counters now = counters_;
  if (!framed()) return now;
  now.tx_busy_ps = tx_.busy_ps();
  now.rx_busy_ps = link_ == VSIM_LINK_LOOP ? tx_.busy_ps() : rx_.busy_ps();
  now.line_bytes_per_second = bytes_per_second_;
  now.link_up = link_ != VSIM_LINK_DOWN;
  return now;
}

// ------------------------------------------------------------------------------------------------ the host's
// side
size_t Port::room() const {
  if (!exists() || from_host_.packets() >= kQueuePackets) return 0;
  return kQueueBytes - from_host_.bytes();
}

int Port::send(uint64_t now_ps, uint8_t channel, const uint8_t* data, size_t len, uint32_t flags,
               uint64_t not_before_ps) {
  if (!exists()) return -ENODEV;
  const bool as_is = framed() && (flags & VSIM_FRAME_AS_IS);
  const bool fits = framed() && !as_is ? len >= kMinFrame && len <= kMaxFrame : len > 0 && len <= kMaxSend;
  if (!fits || (kind_ == VSIM_PORT_KEYS && len % kEventBytes != 0)) return -EMSGSIZE;
  if (link_ == VSIM_LINK_LOOP) return -ENOTCONN;
  if (!from_host_.has_room(len)) return -EAGAIN;
  Packet packet{channel, std::max(now_ps, not_before_ps), {data, data + len}};
  packet.bad_fcs = framed() && (flags & VSIM_FRAME_BAD_FCS);
  if (framed() && !as_is && len < kWireFrame) packet.data.resize(kWireFrame);
  from_host_.push(std::move(packet));
  if (!receiving_) begin_rx(now_ps);
  return 0;
}

int64_t Port::receive(uint8_t& channel, uint64_t& sent_ps, uint8_t* data, size_t len) {
  if (!exists()) return -ENODEV;
  if (to_host_.empty()) return -EAGAIN;
  if (to_host_.front().data.size() > len) return -EMSGSIZE;
  const Packet packet = to_host_.pop();
  channel = packet.channel;
  sent_ps = packet.ps;
  std::memcpy(data, packet.data.data(), packet.data.size());
  return static_cast<int64_t>(packet.data.size());
}

// ------------------------------------------------------------------------------------------------ one edge
void Port::edge(const Clock& clock, const PortRequest& shell) {
  const uint64_t now = clock.ps();
  if (shell.tx_valid && response_.tx_ready) accept(shell, now);
  if (response_.rx_valid && shell.rx_ready) response_.rx_valid = false;
  deliver(now);
  arrive(clock);
  offer_beat();
  response_.tx_ready = takes_beat();
}

uint64_t Port::next_of_wire() const {
  uint64_t next = ~uint64_t{0};
  if (!sending_.empty() && !tx_blocked()) next = sending_.front().ps;
  if (receiving_ && !rx_blocked()) next = std::min(next, on_wire_.ps);
  return next;
}

// ------------------------------------------------------------------------------------------------ from the
// function
void Port::accept(const PortRequest& shell, uint64_t now) {
  building_channel_ = shell.tx_id;
  for (uint64_t keep = shell.tx_keep & kFullStrobe; keep;) {
    const int from = std::countr_zero(keep);
    const int count = std::countr_one(keep >> from);
    building_.insert(building_.end(), shell.tx_data + from, shell.tx_data + from + count);
    if (from + count == 64) break;
    keep &= ~uint64_t{0} << (from + count);
  }
  if (building_.size() > longest_) {
    too_long_ = framed();
    building_.resize(longest_);
  }
  held_ = sending_.bytes() + building_.size();
  // A line without frames has no use for their ends.
  if (shell.tx_last || !framed()) finish_packet(now);
}

void Port::finish_packet(uint64_t now) {
  if (framed() && (too_long_ || building_.size() < kMinFrame)) {
    drop(counters_.tx_drops, too_long_ ? counters_.tx_long : counters_.tx_short);
  } else if (!building_.empty()) {
    if (framed() && building_.size() < kWireFrame) building_.resize(kWireFrame);
    Packet packet{building_channel_, 0, building_};
    put(tx_, now, packet);
    sending_.push(std::move(packet));
  }
  building_.clear();
  too_long_ = false;
  held_ = sending_.bytes();
}

void Port::deliver(uint64_t now) {
  while (!sending_.empty() && sending_.front().ps <= now && !tx_blocked()) {
    Packet packet = sending_.pop();
    held_ -= packet.data.size();
    if (framed() && cut(packet)) {
      drop(counters_.tx_drops, counters_.tx_down);
      continue;
    }
    const bool loops = link_ == VSIM_LINK_LOOP;
    if (!loops && !to_host_.has_room(packet.data.size())) {
      drop(counters_.tx_drops, counters_.tx_full);
      continue;
    }
    counters_.tx_packets++;
    counters_.tx_bytes += packet.data.size();
    if (loops) {
      packet.channel = 0;
      land(std::move(packet));
    } else {
      to_host_.push(std::move(packet));
    }
  }
}

// ------------------------------------------------------------------------------------------------ to the
// function Puts on the wire what comes next, if there is anything: back to back with what came before it, but
// not before `not_before`.
void Port::begin_rx(uint64_t not_before) {
  receiving_ = !from_host_.empty();
  if (!receiving_) return;
  const Packet& first = from_host_.front();
  const uint64_t earliest = first.ps;
  if (framed()) {
    on_wire_ = from_host_.pop();
  } else {
    const size_t left = first.data.size() - begun_, take = std::min(left, piece_);
    const auto from = first.data.begin() + static_cast<std::ptrdiff_t>(begun_);
    on_wire_ = {first.channel, 0, {from, from + static_cast<std::ptrdiff_t>(take)}};
    begun_ += take;
    if (take == left) {
      from_host_.pop();
      begun_ = 0;
    }
  }
  put(rx_, std::max(earliest, not_before), on_wire_);
}

void Port::arrive(const Clock& clock) {
  const uint64_t now = clock.ps();
  while (receiving_ && on_wire_.ps <= now && !rx_blocked()) {
    // A line that was stopped goes on from now.
    const bool stopped = !framed() && now - on_wire_.ps > clock.period_ps();
    land(std::move(on_wire_));
    begin_rx(stopped ? now : 0);
  }
}

// Its last bit has come.
void Port::land(Packet packet) {
  const size_t size = packet.data.size();
  uint64_t& drops = counters_.rx_drops;
  if (framed() && cut(packet)) return drop(drops, counters_.rx_down);
  if (framed() && size < kWireFrame) return drop(drops, counters_.rx_short);
  if (framed() && size > longest_) return drop(drops, counters_.rx_long);
  if (packet.bad_fcs) return drop(drops, counters_.rx_fcs);
  if (fifo_.bytes() + size > fifo_bytes_) return drop(drops, counters_.rx_full);
  counters_.rx_packets++;
  counters_.rx_bytes += size;
  fifo_.push(std::move(packet));
}

void Port::offer_beat() {
  response_.rx_fresh = false;
  if (response_.rx_valid || fifo_.empty()) return;
  const Packet& packet = fifo_.front();
  const size_t bytes = std::min<size_t>(packet.data.size() - offered_, kBeatBytes);
  std::memset(beat_, 0, sizeof beat_);
  std::memcpy(beat_, packet.data.data() + offered_, bytes);
  offered_ += bytes;
  response_.rx_valid = response_.rx_fresh = true;
  response_.rx_id = packet.channel;
  response_.rx_last = offered_ == packet.data.size();
  response_.rx_keep = bytes == kBeatBytes ? kFullStrobe : (uint64_t{1} << bytes) - 1;
  if (response_.rx_last) {
    fifo_.pop();
    offered_ = 0;
  }
}

}  // namespace via
