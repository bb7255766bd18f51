// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "sysmon.h"

#include <algorithm>
#include <cmath>

namespace via {
namespace {

constexpr double kPeriodSeconds = 1e-3;

uint16_t code(double part) {
  return static_cast<uint16_t>(std::clamp(std::lround(part * 65536.0), 0l, 65535l));
}

}  // namespace

void Sysmon::look(uint64_t cycles, uint64_t dram_bytes, uint64_t link_bytes) {
  if (cycles < next_) return;
  // What has moved since belongs to the first period: in those that were left out nothing has.
  const double joules = static_cast<double>(dram_bytes - dram_bytes_) * kDramEnergy +
                        static_cast<double>(link_bytes - link_bytes_) * kLinkEnergy;
  dram_bytes_ = dram_bytes;
  link_bytes_ = link_bytes;
  const double power = kStaticPower + joules / kPeriodSeconds;
  heat(power, kPeriodSeconds);
  measure(power);
  const uint64_t more = (cycles - next_) / period_;
  if (more > 0) {
    heat(kStaticPower, static_cast<double>(more) * kPeriodSeconds);
    measure(kStaticPower);
  }
  next_ += (more + 1) * period_;
}

void Sysmon::heat(double power, double seconds) {
  const double end = kAmbient + kResistance * power;
  temperature_ = end + (temperature_ - end) * std::exp(-seconds / kTimeConstant);
}

void Sysmon::measure(double power) {
  amperes_ = power / kVccint;
  const uint16_t codes[kChannels] = {code((temperature_ + 279.42657680) / 507.5921310), code(vccint() / 3),
                                     code(kVccaux / 3), code(kVccbram / 3)};
  for (unsigned c = 0; c < kChannels; c++) {
    channels_[c].last = codes[c];
    channels_[c].max = std::max(channels_[c].max, codes[c]);
    channels_[c].min = std::min(channels_[c].min, codes[c]);
  }
  current_ = code(amperes_ * 1000 / kFullMilliamperes);
}

uint16_t Sysmon::read(uint8_t addr) const {
  switch (addr) {
    case 0x00:
      return channels_[kTemp].last;
    case 0x01:
      return channels_[kInt].last;
    case 0x02:
      return channels_[kAux].last;
    case 0x06:
      return channels_[kBram].last;
    case 0x10:
      return current_;
    default:
      if (addr >= 0x20 && addr < 0x24) return channels_[addr - 0x20].max;
      if (addr >= 0x24 && addr < 0x28) return channels_[addr - 0x24].min;
      return 0;
  }
}

void Sysmon::edge(const SysmonRequest& shell) {
  response_.rdy = false;
  if (shell.en) {
    addr_ = shell.addr;
    left_ = kLatency;
  } else if (left_ > 0 && --left_ == 0) {
    response_ = {.rdy = true, .data = read(addr_)};
  }
}

}  // namespace via
