// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// PCIe between the card's host port and host memory.
//
// Each direction is a serial resource at the rate of the link. A read burst is split at MRRS boundaries into
// request TLPs, each of which needs a tag; host memory is read when the request gets there, and the data
// returns in completion TLPs of at most MPS bytes that end on RCB boundaries. A write burst is split at MPS
// boundaries; a TLP leaves when its data is complete, and is in host memory the write latency later, in
// order. As PCIe has it, a read does not pass a write whose last beat was accepted before the read's address,
// whoever asks, and an interrupt is behind every write accepted before it. A write may pass a read.
//
// What a byte takes on the wire includes the share of the data link layer, as in the model of Neugebauer et
// al., "Understanding PCIe performance for end host networking", SIGCOMM 2018 (fs_per_byte()).
//
// The id of a burst names the function that asks: each has host memory of its own (hostmap.h).
//
// Reads of different ids take turns burst by burst; answers of one id come in order, and no bursts are
// interleaved.
#pragma once
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>

#include "axi.h"
#include "clock.h"
#include "hostmap.h"
#include "lane.h"
#include "ring.h"
#include "viaduct_sim.h"

namespace via {

// Interrupt requests: of the management function, and of the others.
struct MsixRequest {
  bool valid = false, fn_valid = false;
  uint8_t vector = 0, fn = 0, fn_vector = 0;
};

class Link {
 public:
  // Bytes beside the payload, PCI Express Base Specification: 2 of sequence number, 4 of LCRC and 2 of
  // framing, and the header, of 16 bytes with a 64-bit address and 12 of a completion.
  static constexpr uint32_t kRequestOverhead = 24, kCompletionOverhead = 20;

  // Requests with ids below this are the management function's; further ones one function's each.
  static constexpr unsigned kFirstId = 3;
  static constexpr unsigned function_of(uint8_t id) { return id < kFirstId ? 0 : id - kFirstId + 1; }

  // `functions` of them, each with a map and counters.
  Link(const vsim_link& config, unsigned functions, HostMap* maps, vsim_fn_counters* counters);
  // Empty if the configuration makes sense, otherwise what does not.
  static std::string check(const vsim_link& config);
  // Share of each direction that the data link and physical layers take for themselves: ACKs and flow-control
  // updates at the intervals the specification recommends, and SKIP ordered sets. The published model takes 8
  // bytes an interval from the rate of all lanes, which is more than they take on a wide link; so does this.
  static double link_layer_share(const vsim_link& config);
  // Femtoseconds a byte of a TLP takes on the wire, with that share.
  static uint64_t fs_per_byte(const vsim_link& config);

  // One clock edge: takes what the shell drove up to it, makes the response for the next one.
  void edge(const Clock& clock, const AxiRequest& shell, const MsixRequest& msix);
  const AxiResponse& response() const { return response_; }
  uint64_t fs_per_byte() const { return fs_per_byte_; }
  // Time that packets of all kinds have taken of each direction: from the card, to it.
  uint64_t up_busy_ps() const { return up_.busy_ps(); }
  uint64_t down_busy_ps() const { return down_.busy_ps(); }
  bool msix_ready() const { return msix_ready_; }

  // Nothing in flight and nothing offered to the shell.
  bool empty() const { return idle_ && interrupts_.empty(); }
  // When the model changes next although nothing comes in: something arrives on either side. 0: perhaps at
  // the next edge, the largest number: never.
  uint64_t next_ps() const;
  bool carries_interrupt_of(unsigned function) const;
  // The shell offers nothing.
  static bool rests(const AxiRequest& shell, const MsixRequest& msix) {
    return !shell.arvalid && !shell.awvalid && !shell.wvalid && !msix.valid && !msix.fn_valid;
  }
  // An edge need not be shown to the model: nothing is in flight, and nothing would come in.
  bool sleeps(const AxiRequest& shell, const MsixRequest& msix) const {
    return empty() && rests(shell, msix);
  }

  // Function whose write burst is being received, 0 if there is none.
  unsigned writer() const { return write_bursts_.empty() ? 0 : function_of(write_bursts_.front().id); }
  // Packets of writes that the card has handed over, and those of them whose data is in host memory.
  uint64_t writes_begun() const { return writes_.tail(); }
  uint64_t writes_done() const { return writes_.head(); }

  // Function-level reset: forgets what is in flight.
  void reset();

  // Functions that have interrupts which have arrived and were not accepted.
  uint32_t pending() const { return pending_functions_; }
  // Takes those of a function among `mask`, by vector.
  uint64_t take(unsigned function, uint64_t mask);

 private:
  struct ReadBurst {
    uint8_t id;
    uint64_t addr;
    uint32_t bytes, issued, arrived, taken;  // of the burst: all, asked for, arrived, handed to the shell
    uint64_t behind;                         // index into writes_: earlier ones leave before it
    std::bitset<256> failed;                 // by beat
    int32_t next;                            // of the same id, waiting
    alignas(64) uint8_t data[kMaxBurstBytes];
  };
  struct ReadTlp {
    int32_t burst;
    uint32_t offset, bytes;
    uint64_t sample_ps, first_ps;  // host memory is read; first completion is there, unless the lane is busy
    HostRange* range;              // nullptr: answered with an error
  };
  struct WriteBurst {
    uint8_t id;
    uint64_t addr;
    uint32_t beats;
  };
  struct WriteTlp {
    uint64_t addr;
    uint64_t first_beat;
    uint32_t beats, payload, packets;
    bool last;
    uint8_t id;
    uint64_t visible_ps;
    HostRange* range;
  };
  struct WriteBeat {
    uint64_t strobe;
    alignas(kBeatBytes) uint8_t data[kBeatBytes];
  };
  struct WriteResponse {
    uint8_t id, resp;
  };
  struct Interrupt {
    uint8_t function, vector;
    uint64_t after_burst;  // running number of the first write burst it is not behind
    uint64_t arrive_ps;    // once sent
  };

  void accept(const AxiRequest& shell, const MsixRequest& msix);
  HostRange* find(uint8_t id, uint64_t addr, unsigned perms);
  vsim_fn_counters& counters_of(uint8_t id);
  void accept_beat(const AxiRequest& shell);
  void send(const Clock& clock);
  bool send_interrupt(uint64_t now);
  bool send_read(uint64_t now);
  bool send_write(uint64_t now);
  bool pick_burst();
  bool may_leave(int32_t burst) const { return bursts_[burst].behind <= sent_; }
  void arrive(uint64_t now);
  void begin_completion();
  void commit(uint64_t now);
  void make_response();

  vsim_link config_;
  unsigned functions_;
  HostMap* maps_;               // by function
  vsim_fn_counters* counters_;  // by function
  uint64_t pending_[VSIM_FUNCTIONS] = {};
  uint32_t pending_functions_ = 0;
  uint64_t fs_per_byte_, read_fs_, write_fs_;
  Lane up_, down_;
  AxiResponse response_;
  bool msix_ready_ = true;
  bool idle_ = true;

  // Reads: bursts wait by id, are asked for one at a time, and are handed over in the order they were asked
  // for.
  static constexpr int kReadBursts = 128;
  std::unique_ptr<ReadBurst[]> bursts_;
  Ring<int32_t> free_bursts_;
  int32_t first_of_[64], last_of_[64];
  uint64_t ids_waiting_ = 0;
  uint8_t turn_ = 0;
  int32_t issuing_ = -1;
  Ring<int32_t> issued_;  // bursts, oldest first; the first one is being handed over
  Ring<ReadTlp> reads_;   // requests that hold a tag
  uint64_t sampled_ = 0;  // index into reads_: earlier ones have their data
  bool completing_ = false;
  uint32_t completion_bytes_ = 0, completed_ = 0;  // of the first request
  uint64_t completion_ps_ = 0;

  // Writes.
  Ring<WriteBurst> write_bursts_;  // from AW to the last W
  Ring<WriteBeat> beats_;
  Ring<WriteTlp> writes_;
  uint64_t sent_ = 0;                                           // index into writes_: earlier ones have left
  uint32_t burst_beats_ = 0, tlp_beats_ = 0, tlp_payload_ = 0;  // of the burst and TLP being received
  uint32_t tlp_packets_ = 0;                                    // that it is parted in
  bool tlp_goes_on_ = false;                                    // its last byte so far is written
  uint64_t bursts_accepted_ = 0, bursts_sent_ = 0;
  uint32_t owed_ = 0;  // bursts whose B has not been accepted
  uint8_t resp_ = kOkay;
  Ring<WriteResponse> responses_;
  uint64_t visible_ps_ = 0;

  Ring<Interrupt> interrupts_;
  uint64_t interrupts_sent_ = 0;
};

}  // namespace via
