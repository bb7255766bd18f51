// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// What the board has beside a function: an Ethernet port, a UART, an entropy source, keys.
//
// Both directions of a port are serial and have a buffer on the card's side (FIFO) and a queue on the host's.
// From the function: a packet goes on the wire when it is whole, keeps its place in the FIFO until its last
// bit has left, and is then the host's to take. To the function: one packet after the other comes over the
// wire into the FIFO, from where the function has it beat by beat. A frame of Ethernet that finds no room
// where it arrives is lost; the other lines stop their sender instead.
//
// A frame of Ethernet takes the wire for its bytes, at least 60, and 24 more (IEEE 802.3: preamble and start
// delimiter 8, FCS 4, gap 12), in both directions at the same time. What a MAC does not pass on is counted by
// its cause: shorter than 64 bytes with FCS, longer than the port is set to, a wrong FCS, cut by a link that
// was down, no room.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "axi.h"
#include "clock.h"
#include "lane.h"
#include "viaduct_sim.h"

namespace via {

struct PortRequest {  // driven by the shell
  bool tx_valid = false, tx_last = false, rx_ready = false;
  uint8_t tx_id = 0;
  uint64_t tx_keep = 0;
  const uint8_t* tx_data = nullptr;  // kBeatBytes
};

struct PortResponse {  // driven by the model
  bool tx_ready = false, rx_valid = false, rx_last = false;
  // The payload is new since the edge before: copy it.
  bool rx_fresh = false;
  uint8_t rx_id = 0;
  uint64_t rx_keep = 0;
  const uint8_t* rx_data = nullptr;  // kBeatBytes

  // Whether the shell sees now what it saw of `driven`.
  bool same_as(const PortResponse& driven) const {
    return !rx_fresh && tx_ready == driven.tx_ready && rx_valid == driven.rx_valid;
  }
};

class Port {
 public:
  static constexpr size_t kMaxFrame = 9234;  // 9216 and a header with a VLAN tag
  static constexpr size_t kMinFrame = 14;    // a header
  static constexpr size_t kQueueBytes =
      VSIM_PORT_QUEUE;  // most bytes, and packets, in a queue on the host's side
  static constexpr size_t kQueuePackets = 1024;
  static constexpr size_t kMaxSend = 64 * 1024;
  static constexpr size_t kFcs = 4;
  static constexpr size_t kLeastLimit = 1518;  // the longest frame of Ethernet, with FCS

  Port(const vsim_port& config, vsim_fn_counters& counters);
  // Empty if the configuration makes sense, otherwise what does not.
  static std::string check(const vsim_port& config);

  bool exists() const { return kind_ != VSIM_PORT_NONE; }

  // The host's side. 0 or a negative errno. A packet does not begin before `not_before_ps`; `flags` are
  // VSIM_FRAME_….
  int send(uint64_t now_ps, uint8_t channel, const uint8_t* data, size_t len, uint32_t flags = 0,
           uint64_t not_before_ps = 0);
  // `sent_ps`: when its last bit, with the FCS, was on the wire.
  int64_t receive(uint8_t& channel, uint64_t& sent_ps, uint8_t* data, size_t len);
  int link(uint64_t now_ps, uint32_t state);
  // Counters, with those of the wire as of now.
  vsim_fn_counters counters() const;
  size_t room() const;
  bool has_packet() const { return !to_host_.empty(); }

  // One clock edge: takes what the shell drove up to it, makes the response for the next one.
  void edge(const Clock& clock, const PortRequest& shell);
  const PortResponse& response() const { return response_; }

  // Nothing passes between the shell and the port.
  bool rests(const PortRequest& shell) const {
    return !(shell.tx_valid && response_.tx_ready) && !(response_.rx_valid && shell.rx_ready) &&
           (response_.rx_valid || fifo_.empty()) && !response_.rx_fresh && response_.tx_ready == takes_beat();
  }
  // When something happens on the wire, ~0 if nothing will.
  uint64_t next_ps() const { return sending_.empty() && !receiving_ ? ~uint64_t{0} : next_of_wire(); }
  // An edge need not be shown to the port: nothing is under way, and nothing would come in.
  bool sleeps(const PortRequest& shell) const { return next_ps() == ~uint64_t{0} && rests(shell); }
  void reset();

 private:
  struct Packet {
    uint8_t channel;
    uint64_t ps;  // sent (to the host), not before (from it)
    std::vector<uint8_t> data;
    bool bad_fcs = false;
    uint64_t began_ps = 0;  // on the wire
  };
  // Packets and the bytes in them.
  class Queue {
   public:
    bool empty() const { return packets_.empty(); }
    size_t bytes() const { return bytes_; }
    size_t packets() const { return packets_.size(); }
    const Packet& front() const { return packets_.front(); }
    void push(Packet packet) {
      bytes_ += packet.data.size();
      packets_.push_back(std::move(packet));
    }
    Packet pop() {
      Packet packet = std::move(packets_.front());
      packets_.pop_front();
      bytes_ -= packet.data.size();
      return packet;
    }
    bool has_room(size_t bytes) const { return packets() < kQueuePackets && bytes_ + bytes <= kQueueBytes; }
    void clear() {
      packets_.clear();
      bytes_ = 0;
    }

   private:
    std::deque<Packet> packets_;
    size_t bytes_ = 0;
  };

  bool framed() const { return kind_ == VSIM_PORT_ETHERNET; }
  bool takes_beat() const { return exists() && held_ + kBeatBytes <= fifo_bytes_; }
  bool tx_blocked() const { return !framed() && !to_host_.has_room(sending_.front().data.size()); }
  bool rx_blocked() const { return !framed() && fifo_.bytes() + on_wire_.data.size() > fifo_bytes_; }
  uint64_t next_of_wire() const;
  uint64_t wire_bytes(size_t bytes) const;
  // The link was down while this was on the wire.
  bool cut(const Packet& packet) const {
    return link_ == VSIM_LINK_DOWN || (packet.began_ps < restored_ps_ && packet.ps > cut_ps_);
  }
  void drop(uint64_t& total, uint64_t& cause) {
    total++;
    cause++;
  }
  void put(Lane& lane, uint64_t start_ps, Packet& packet);
  void land(Packet packet);
  void accept(const PortRequest& shell, uint64_t now);
  void finish_packet(uint64_t now);
  void deliver(uint64_t now);
  void begin_rx(uint64_t not_before);
  void arrive(const Clock& clock);
  void offer_beat();

  uint32_t kind_;
  size_t fifo_bytes_, piece_, longest_;
  uint64_t bytes_per_second_, fs_per_byte_;
  uint32_t link_ = VSIM_LINK_UP;
  uint64_t cut_ps_ = 0, restored_ps_ = 0;  // when the link was down last
  vsim_fn_counters& counters_;
  PortResponse response_;

  // From the function.
  std::vector<uint8_t> building_;
  uint8_t building_channel_ = 0;
  bool too_long_ = false;
  size_t held_ = 0;  // bytes in the FIFO
  Queue sending_, to_host_;
  Lane tx_;

  // To the function.
  Queue from_host_;
  size_t begun_ = 0;        // bytes of the first packet that are through, where a packet goes in pieces
  bool receiving_ = false;  // `on_wire_` means something
  Packet on_wire_{};
  Lane rx_;
  Queue fifo_;
  size_t offered_ = 0;  // bytes of the first packet in the FIFO that the function has had
  alignas(kBeatBytes) uint8_t beat_[kBeatBytes] = {};
};

}  // namespace via
