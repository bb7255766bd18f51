// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The FPGA's system monitor as the shell sees it: a SYSMONE4 (Xilinx UG580) behind its dynamic
// reconfiguration port, with a current sensor at auxiliary input 0. There is no silicon, so what it measures
// is a model.
//
// Heat: one thermal resistance and one time constant. The power is a constant part and one for each byte of
// card memory and of the link, averaged over 1 ms of card time. The supply of the logic falls with its
// current. Nothing else affects it, neither the machine nor the wall clock, so equal runs measure the same.
#pragma once
#include <cstdint>

namespace via {

struct SysmonRequest {  // driven by the shell
  bool en;
  uint8_t addr;
};

struct SysmonResponse {  // driven by the model
  bool rdy = false;
  uint16_t data = 0;
};

class Sysmon {
 public:
  // What the board tells the shell: SYSMONE4, a model, and the current at full scale.
  static constexpr uint8_t kKind = 2 | 8;
  static constexpr uint32_t kFullMilliamperes = 100'000;
  // Parameters of the model.
  static constexpr double kAmbient = 30.0;        // degrees Celsius
  static constexpr double kResistance = 0.8;      // kelvins per watt, from junction to ambient
  static constexpr double kTimeConstant = 20e-3;  // seconds: the die and its spreader, no heat sink
  static constexpr double kStaticPower = 12.0;    // watts
  static constexpr double kDramEnergy = 160e-12;  // joules a byte
  static constexpr double kLinkEnergy = 40e-12;   // joules a byte
  static constexpr double kVccint = 0.85;         // volts without a load
  static constexpr double kSupplyOhms = 0.3e-3;   // of the supply of the logic
  static constexpr double kVccaux = 1.8, kVccbram = 0.85;
  static constexpr unsigned kLatency = 8;  // cycles from the request to the answer

  explicit Sysmon(uint32_t clk_khz) : period_(clk_khz), next_(clk_khz) { measure(kStaticPower); }

  // When the model is to be told of activity next: card time in cycles.
  uint64_t next() const { return next_; }
  // Bytes that card memory and link have moved since power-up.
  void look(uint64_t cycles, uint64_t dram_bytes, uint64_t link_bytes);

  // One clock edge: takes what the shell drove up to it, makes the response for the next one.
  void edge(const SysmonRequest& shell);
  const SysmonResponse& response() const { return response_; }
  bool sleeps(const SysmonRequest& shell) const { return !shell.en && left_ == 0 && !response_.rdy; }
  void reset() { left_ = 0, response_ = {}; }

  // The register at an address of the port; 0 if there is none.
  uint16_t read(uint8_t addr) const;
  double temperature() const { return temperature_; }  // degrees Celsius
  double amperes() const { return amperes_; }          // of the supply of the logic
  double vccint() const { return kVccint - kSupplyOhms * amperes_; }

 private:
  enum { kTemp, kInt, kAux, kBram, kChannels };
  struct Channel {
    uint16_t last = 0, max = 0, min = 0xffff;
  };
  void heat(double power, double seconds);
  void measure(double power);

  uint64_t period_, next_;
  uint64_t dram_bytes_ = 0, link_bytes_ = 0;
  double temperature_ = kAmbient, amperes_ = 0;
  Channel channels_[kChannels];
  uint16_t current_ = 0;
  unsigned left_ = 0;  // cycles until the answer
  uint8_t addr_ = 0;
  SysmonResponse response_;
};

}  // namespace via
