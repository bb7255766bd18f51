// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The program behind the other systems of `viaduct bench fsrf`: apps in slots, DRAM channels, and rtl/rivals
// between them. It obeys the lines of its standard input, which the bench writes, in order, and prints
// results; a wrong line ends it. Nothing depends on the wall clock.
//
//   clock KHZ                       first of all
//   dram WORD…                      members of vsim_dram in order
//   system DIRECT STRIPED SPLIT WALK TLB STEP PAGE_LOG2 SETS_LOG2 WAYS MISS
//                                   as the inputs of via_rival
//   app SLOT OBJECT STREAM BYTES FILE START
//                                   loads an app and its memory: BYTES from BASE on, the first ones from
//                                   FILE; 1 in register START begins it, unless its streams do
//   set SLOT OFFSET VALUE           writes a register of the app
//   in SLOT ID OFFSET BYTES LAST    a move, carried out by `go` in this order
//   out SLOT OFFSET BYTES           likewise
//   pager RESIDENT FRAMES UNIT MOST WRITABLE WRITABLE_END READ WRITE MMIO_READ MMIO_WRITE SERVICE IN OUT DISK
//         DISK_RATE
//                                   demand paging, as PagerConfig; RESIDENT: the first pages are in card
//                                   memory
//   go FIRST                        enters all pages into the TLBs, begins all moves and apps, and runs to
//                                   the end
//   get SLOT OFFSET                 prints `register VALUE`
//   save SLOT FILE                  writes the app's memory to a file
//
// `go` prints for every slot `ran FIRST LAST BEATS_IN BEATS_OUT MISSES`: cycles of the first and last
// transfer at the app, or of the end of its last move out, and `out BYTES ID` for each of its moves out. With
// `go 1` beats count until the first slot has ended, and LAST is that cycle for the others. With a pager
// FIRST is the beginning of the run, since a page may be loaded before anything is transferred, and a line
// `paged FAULTS LOADS STORES` follows `ran`, in pages.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "Vrival.h"
#include "Vrival__Syms.h"
#include "Vrival___024root.h"
#include "axi.h"
#include "clock.h"
#include "dram.h"
#include "rivals/app.h"
#include "rivals/pager.h"
#include "rivals/script.h"
#include "slot.h"
#include "verilated_top.h"

VIA_VERILATED(Vrival)

namespace via {
namespace {

using Ports = Vrival___024root;
using Top = VerilatedModel<VrivalModel>;

constexpr unsigned kSlots = sizeof(Ports::slot_arvalid_i) / sizeof(Ports::slot_arvalid_i[0]);
constexpr unsigned kChannels = sizeof(Ports::mem_arvalid_o) / sizeof(Ports::mem_arvalid_o[0]);
constexpr uint64_t kBase = uint64_t{1} << 33;  // BaseLog2 of via_rival
constexpr uint64_t kChunk = (uint64_t{2} << 20) / kChannels;
constexpr uint32_t kAll = (uint64_t{1} << kSlots) - 1;
constexpr uint64_t kStill = 64;  // cycles after which nothing is on its way between slots and DRAM
constexpr unsigned kReset = 16;
constexpr unsigned kMoves = 15;
constexpr uint64_t kStuck = 1'000'000;  // cycles without a transfer
constexpr unsigned kPrepare = 32'768;
constexpr uint64_t kDrain = 512;  // cycles behind the end, for the last writes

struct Move {
  uint32_t id;
  uint64_t offset;
  uint32_t bytes;
  bool last;
};

struct Place {
  Slot slot;
  bool stream = false;
  uint32_t start = 0;
  uint64_t bytes = 0;
  std::deque<Move> in, out;
  unsigned in_left = 0, out_left = 0;
  bool irq = false;
  Pager pager;
  Slot::Levels levels{};
  uint64_t written = 0;  // cycle in which the last move out ended
  Slot::Activity counted{};
  std::vector<std::pair<uint32_t, uint32_t>> done;  // of moves out

  bool ended() const { return !slot.loaded() || (stream ? in_left == 0 && out_left == 0 : irq); }
  // What it has transferred until it ended, or until now.
  void count(uint64_t now) {
    counted = slot.activity();
    counted.last = ended() ? std::max(counted.last, written) : now;
  }
};

class Rival {
 public:
  Rival(uint32_t khz, const vsim_dram& config) : clock_(khz) {
    for (unsigned c = 0; c < kChannels; c++) dram_.push_back(std::make_unique<Dram>(config, counters_, c));
  }

  void system(const std::vector<uint32_t>& v) {
    Ports& r = top_.ports();
    r.direct_i = v[0];
    striped_ = r.striped_i = v[1];
    r.split_i = v[2];
    walk_ = r.walk_i = v[3];
    r.tlb_i = v[4];
    r.step_i = v[5];
    page_log2_ = r.page_log2_i = v[6];
    r.sets_log2_i = v[7];
    r.ways_i = v[8];
    r.miss_i = v[9];
    r.open_i = kAll;
    r.rst_ni = 0;
    for (unsigned i = 0; i < kReset; i++) edge();
    r.rst_ni = 1;
  }

  void pager(bool resident, const PagerConfig& config) {
    if (config.frames == 0 || config.unit == 0 || config.most < config.unit || config.frames < config.most) {
      fail("the pager's numbers of pages make no sense");
    }
    if (config.in_rate == 0 || config.out_rate == 0) fail("the link has no rate");
    pager_ = config;
    resident_ = resident;
  }

  void app(unsigned s, const std::string& object, bool stream, uint64_t bytes, const std::string& file,
           uint32_t start) {
    Place& place = places_.at(s);
    if (!place.slot.load(app_of(object))) fail("out of memory");
    place.stream = stream;
    place.start = start;
    place.bytes = bytes;
    top_.ports().stream_i = static_cast<decltype(Ports::stream_i)>((top_.ports().stream_i & ~(1u << s)) |
                                                                   (unsigned{stream} << s));
    for (unsigned i = 0; i < kReset; i++) edge();
    place.slot.in.rst_n = 1;
    std::ifstream from(file, std::ios::binary);
    std::vector<char> data((std::istreambuf_iterator<char>(from)), std::istreambuf_iterator<char>());
    if (!from || data.size() > bytes) fail(file + " cannot be read, or is too long");
    each_piece(s, data.size(),
               [&](uint64_t at, uint8_t* memory, uint64_t n) { std::memcpy(memory, &data[at], n); });
  }

  void save(unsigned s, const std::string& file) {
    std::vector<char> data(places_.at(s).bytes);
    each_piece(s, data.size(),
               [&](uint64_t at, uint8_t* memory, uint64_t n) { std::memcpy(&data[at], memory, n); });
    for (uint64_t at = 0; paged() && at < data.size(); at += Pager::kPage) {
      const Pager& pager = places_.at(s).pager;
      if (!pager.resident(at))
        std::memcpy(&data[at], pager.in_host(at), std::min(Pager::kPage, data.size() - at));
    }
    std::ofstream(file, std::ios::binary).write(data.data(), static_cast<std::streamsize>(data.size()));
  }

  uint32_t access(unsigned s, uint32_t offset, bool write, uint32_t value) {
    Slot& slot = places_.at(s).slot;
    slot.in.reg_valid = 1;
    slot.in.reg_write = write;
    slot.in.reg_addr = static_cast<uint16_t>(offset);
    slot.in.reg_wdata = value;
    for (unsigned i = 0; !slot.out.reg_rvalid; i++) {
      if (i == 1000) fail("an app does not answer a register access");
      edge();
    }
    const uint32_t response = slot.out.reg_rdata;
    slot.in.reg_valid = 0;
    edge();
    return response;
  }

  void move(unsigned s, bool in, const Move& move) {
    (in ? places_.at(s).in : places_.at(s).out).push_back(move);
  }

  void go(bool first) {
    uint64_t most = 0;
    for (const Place& place : places_) most = std::max(most, place.bytes);
    for (uint64_t at = 0; at < most; at += uint64_t{1} << page_log2_) {
      top_.ports().fill_valid_i = kAll;
      top_.ports().fill_i = (kBase + at) >> page_log2_;
      edge();
    }
    top_.ports().fill_valid_i = 0;
    // Apps that prepare something behind their reset have done so.
    for (unsigned i = 0; i < kPrepare; i++) {
      if (std::all_of(places_.begin(), places_.end(), [](const Place& p) { return p.slot.settled(); })) break;
      edge();
    }
    for (unsigned s = 0; paged() && s < kSlots; s++) {
      places_[s].pager.begin(
          pager_, places_[s].bytes, resident_,
          [this, s](uint64_t offset, uint64_t bytes, const auto& act) { each_piece(s, offset, bytes, act); });
    }
    begun_ = true;
    const uint64_t begin = clock_.cycles();
    for (unsigned s = kSlots; s-- > 0;) {
      Place& place = places_[s];
      place.in_left = place.in.size();
      place.out_left = place.out.size();
      place.irq = false;
      if (place.slot.loaded() && !place.stream) access(s, place.start, true, 1);
    }
    uint64_t moved = clock_.cycles();
    bool counted = false;
    const auto count = [&] {
      for (Place& place : places_) place.count(clock_.cycles());
      counted = true;
    };
    const auto ended = [](const Place& place) { return place.ended(); };
    while (!std::all_of(places_.begin(), places_.end(), ended)) {
      edge();
      if (first && !counted && std::any_of(places_.begin(), places_.end(), [](const Place& place) {
            return place.slot.loaded() && place.ended();
          })) {
        count();
      }
      for (const Place& place : places_) moved = std::max(moved, place.slot.activity().last);
      if (clock_.cycles() - moved > kStuck) fail("nothing has moved for a long time");
    }
    for (uint64_t i = 0; i < kDrain; i++) edge();
    if (!counted) count();
    begun_ = false;
    for (unsigned s = 0; s < kSlots; s++) {
      if (!places_[s].slot.loaded()) continue;
      const Slot::Activity& a = places_[s].counted;
      std::printf("ran %llu %llu %llu %llu %u\n", static_cast<unsigned long long>(paged() ? begin : a.first),
                  static_cast<unsigned long long>(a.last), static_cast<unsigned long long>(a.beats_in),
                  static_cast<unsigned long long>(a.beats_out), unsigned{top_.ports().misses_o[s]});
      if (paged()) {
        const Pager& p = places_[s].pager;
        std::printf("paged %llu %llu %llu\n", static_cast<unsigned long long>(p.faults()),
                    static_cast<unsigned long long>(p.loads()), static_cast<unsigned long long>(p.stores()));
      }
      for (const auto& [bytes, id] : places_[s].done) std::printf("out %u %u\n", bytes, id);
      places_[s].done.clear();
    }
  }

 private:
  bool paged() const { return pager_.frames != 0; }

  // Which addresses go on to their translation in this cycle; whether that has changed.
  bool gate(Ports& r) {
    uint32_t open = 0;
    for (unsigned s = 0; s < kSlots; s++) {
      Pager& pager = places_[s].pager;
      if (!places_[s].slot.loaded() || !begun_) continue;
      const bool ar = r.want_ar_valid_o >> s & 1, aw = r.want_aw_valid_o >> s & 1;
      const uint64_t read = r.want_ar_o[s] - kBase, write = r.want_aw_o[s] - kBase;
      if (pager.runs() && ar && !pager.resident(read)) {
        pager.miss(read);
      } else if (pager.runs() && aw && !pager.resident(write)) {
        pager.miss(write);
      }
      if (pager.lost()) fail("an access is outside the memory of its slot");
      open |= uint32_t{pager.runs()} << s;
    }
    const bool changed = r.open_i != open;
    r.open_i = static_cast<decltype(r.open_i)>(open);
    return changed;
  }

  // As `place` of via_rival.
  template <class Do>
  void each_piece(unsigned s, uint64_t bytes, Do act) {
    each_piece(s, 0, bytes, act);
  }

  template <class Do>
  void each_piece(unsigned s, uint64_t from, uint64_t bytes, Do act) {
    for (uint64_t at = from; at < from + bytes;) {
      uint64_t channel = s % kChannels, offset = (uint64_t{s / kChannels} << 32) + (walk_ ? 1 << 27 : 0) + at;
      if (striped_) {
        channel = (at / kChunk + s) % kChannels;
        offset = (uint64_t{s} << 29) + (at >> 21) * kChunk + at % kChunk;
      }
      const uint64_t n = std::min(from + bytes - at, kChunk - at % kChunk);
      if (offset + n > dram_[channel]->size()) fail("the memory does not fit into its channel");
      act(at, dram_[channel]->memory() + offset, n);
      at += n;
    }
  }

  // Whether all slots wait for the host and have done so for long: then an edge changes nothing outside the
  // apps, and is left out there.
  bool stands_still() {
    bool still = paged() && begun_;
    for (Place& place : places_) {
      if (!still || !place.slot.loaded()) continue;
      still = place.pager.stands_still(clock_.cycles()) && place.slot.levels() == place.levels;
      place.levels = place.slot.levels();
    }
    still_ = still ? still_ + 1 : 0;
    return still_ > kStill;
  }

  // Everybody sees what the others drove before the edge, as in sim/card.cpp.
  void edge() {
    if (stands_still()) {
      for (Place& place : places_) {
        place.pager.step(clock_.cycles(), true, in_, out_, disk_);
        place.slot.edge(false, clock_.cycles());
      }
      clock_.tick();
      return;
    }
    Ports& r = top_.ports();
    for (unsigned c = 0; c < kChannels; c++) drive_mem(r, c, dram_[c]->response());
    for (unsigned s = 0; s < kSlots; s++) drive_slot(r, s, places_[s]);
    // Outputs of the replicas may depend on inputs of the same cycle: direct wires.
    r.clk_i = 0;
    top_.look();
    if (paged() && begun_) {
      if (gate(r)) top_.look();
      r.fill_valid_i = 0;
      for (unsigned s = 0; s < kSlots; s++) {
        places_[s].pager.step(clock_.cycles(), r.drained_o >> s & 1, in_, out_, disk_);
        uint64_t offset = 0;
        if (r.fill_valid_i || !places_[s].pager.enters(clock_.cycles(), offset)) continue;
        r.fill_valid_i = static_cast<decltype(r.fill_valid_i)>(1u << s);
        r.fill_i = (kBase + offset) >> page_log2_;
      }
    }
    for (unsigned s = 0; s < kSlots; s++) look_at(r, s, places_[s]);
    AxiRequest mem[kChannels];
    for (unsigned c = 0; c < kChannels; c++) mem[c] = request(r, c);
    for (Place& place : places_) {
      place.slot.edge(false, clock_.cycles());
      place.irq |= begun_ && place.slot.out.irq;
    }
    for (unsigned c = 0; c < kChannels; c++) {
      if (!dram_[c]->sleeps(mem[c])) dram_[c]->edge(clock_, mem[c]);
    }
    top_.edge();
    clock_.tick();
  }

  static AxiRequest request(const Ports& r, unsigned c) {
    AxiRequest q;
    q.arvalid = r.mem_arvalid_o[c];
    q.araddr = r.mem_araddr_o[c];
    q.arlen = r.mem_arlen_o[c];
    q.rready = r.mem_rready_o[c];
    q.awvalid = r.mem_awvalid_o[c];
    q.awaddr = r.mem_awaddr_o[c];
    q.awlen = r.mem_awlen_o[c];
    q.wvalid = r.mem_wvalid_o[c];
    q.wlast = r.mem_wlast_o[c];
    q.wdata = reinterpret_cast<const uint8_t*>(&r.mem_wdata_o[c]);
    q.wstrb = r.mem_wstrb_o[c];
    q.bready = r.mem_bready_o[c];
    return q;
  }

  static void drive_mem(Ports& r, unsigned c, const AxiResponse& a) {
    r.mem_arready_i[c] = a.arready;
    r.mem_rvalid_i[c] = a.rvalid;
    if (a.rfresh) {
      narrow(r.mem_rdata_i[c], *reinterpret_cast<const uint8_t (*)[kBeatBytes]>(a.rdata));
      r.mem_rresp_i[c] = a.rresp;
      r.mem_rlast_i[c] = a.rlast;
    }
    r.mem_awready_i[c] = a.awready;
    r.mem_wready_i[c] = a.wready;
    r.mem_bvalid_i[c] = a.bvalid;
    r.mem_bresp_i[c] = a.bresp;
  }

  void drive_slot(Ports& r, unsigned s, Place& place) {
    const viaduct_slot_out& out = place.slot.out;
    const bool moves = begun_ && r.rst_ni;
    // The queue of a mover holds 16; more would be refused.
    r.in_valid_i[s] = moves && !place.in.empty() && place.in_left - place.in.size() < kMoves;
    if (!place.in.empty()) {
      const Move& move = place.in.front();
      r.in_addr_i[s] = kBase + move.offset;
      r.in_len_i[s] = move.bytes;
      r.in_id_i[s] = move.id;
      r.in_eop_i[s] = move.last;
    }
    r.out_valid_i[s] = moves && !place.out.empty() && place.out_left - place.out.size() < kMoves;
    if (!place.out.empty()) {
      r.out_addr_i[s] = kBase + place.out.front().offset;
      r.out_len_i[s] = place.out.front().bytes;
    }
    r.slot_s_ready_i[s] = out.s_ready;
    r.slot_rready_i[s] = out.rready;
    r.slot_bready_i[s] = out.bready;
    r.slot_m_valid_i[s] = out.m_valid;
    if (out.m_valid) {
      narrow(r.slot_m_data_i[s], out.m_data);
      narrow(r.slot_m_keep_i[s], out.m_keep);
      narrow(r.slot_m_last_i[s], out.m_last);
      narrow(r.slot_m_id_i[s], out.m_id);
    }
    r.slot_arvalid_i[s] = out.arvalid;
    r.slot_araddr_i[s] = out.araddr;
    r.slot_arid_i[s] = out.arid;
    r.slot_arlen_i[s] = out.arlen;
    r.slot_awvalid_i[s] = out.awvalid;
    r.slot_awaddr_i[s] = out.awaddr;
    r.slot_awid_i[s] = out.awid;
    r.slot_awlen_i[s] = out.awlen;
    r.slot_wvalid_i[s] = out.wvalid;
    if (out.wvalid) {
      narrow(r.slot_wdata_i[s], out.wdata);
      narrow(r.slot_wstrb_i[s], out.wstrb);
      r.slot_wlast_i[s] = out.wlast;
    }
  }

  // What a slot sees; and moves that are accepted, or have ended, at this edge.
  void look_at(const Ports& r, unsigned s, Place& place) {
    viaduct_slot_in& in = place.slot.in;
    in.arready = r.slot_arready_o[s];
    in.awready = r.slot_awready_o[s];
    in.wready = r.slot_wready_o[s];
    in.m_ready = r.slot_m_ready_o[s];
    in.s_valid = r.slot_s_valid_o[s];
    if (in.s_valid) {
      widen(in.s_data, r.slot_s_data_o[s]);
      widen(in.s_keep, r.slot_s_keep_o[s]);
      widen(in.s_last, r.slot_s_last_o[s]);
      widen(in.s_id, r.slot_s_id_o[s]);
    }
    in.rvalid = r.slot_rvalid_o[s];
    if (in.rvalid) {
      widen(in.rdata, r.slot_rdata_o[s]);
      in.rid = r.slot_rid_o[s];
      in.rresp = r.slot_rresp_o[s];
      in.rlast = r.slot_rlast_o[s];
    }
    in.bvalid = r.slot_bvalid_o[s];
    if (in.bvalid) {
      in.bid = r.slot_bid_o[s];
      in.bresp = r.slot_bresp_o[s];
    }
    if (!r.rst_ni) return;
    if (r.in_valid_i[s] && r.in_ready_o[s]) place.in.pop_front();
    if (r.out_valid_i[s] && r.out_ready_o[s]) place.out.pop_front();
    if (r.in_done_o[s]) {
      if (r.in_status_o[s]) fail("a move in has ended with status " + std::to_string(r.in_status_o[s]));
      place.in_left--;
    }
    if (r.out_done_o[s]) {
      if (r.out_status_o[s]) fail("a move out has ended with status " + std::to_string(r.out_status_o[s]));
      place.done.emplace_back(r.out_bytes_o[s], r.out_id_o[s]);
      place.out_left--;
      place.written = clock_.cycles();
    }
  }

  Clock clock_;
  vsim_counters counters_{};
  VerilatedContext context_;
  Top top_{&context_};
  std::vector<std::unique_ptr<Dram>> dram_;
  std::vector<Place> places_ = std::vector<Place>(kSlots);
  PagerConfig pager_;
  Lanes in_, out_, disk_;  // to the card, from it, from the disk
  uint64_t still_ = 0;
  bool striped_ = false, walk_ = false, begun_ = false, resident_ = false;
  unsigned page_log2_ = 21;
};

void obey() {
  uint32_t khz = 0;
  std::unique_ptr<Rival> rival;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string what;
    line >> what;
    if (what == "clock") {
      khz = next<uint32_t>(line);
    } else if (what == "dram") {
      vsim_dram config;
      static_assert(sizeof config % sizeof(uint32_t) == 0);
      uint32_t words[sizeof config / sizeof(uint32_t)];
      for (uint32_t& word : words) word = next<uint32_t>(line);
      std::memcpy(&config, words, sizeof config);
      const std::string why = Dram::check(config);
      if (!why.empty() || khz == 0) fail(why + " (or no clock)");
      rival = std::make_unique<Rival>(khz, config);
    } else if (!rival) {
      fail("clock and dram come first");
    } else if (what == "system") {
      std::vector<uint32_t> values(10);
      for (uint32_t& value : values) value = next<uint32_t>(line);
      rival->system(values);
    } else if (what == "pager") {
      const bool resident = next<unsigned>(line) != 0;
      PagerConfig config;
      for (uint32_t* value :
           {&config.frames, &config.unit, &config.most, &config.writable, &config.writable_end,
            &config.read_latency, &config.write_latency, &config.mmio_read, &config.mmio_write,
            &config.service, &config.in_rate, &config.out_rate, &config.disk_latency, &config.disk_rate}) {
        *value = next<uint32_t>(line);
      }
      rival->pager(resident, config);
    } else if (what == "app") {
      const auto slot = next<unsigned>(line);
      const auto object = next<std::string>(line);
      const auto stream = next<unsigned>(line);
      const auto bytes = next<uint64_t>(line);
      const auto file = next<std::string>(line);
      rival->app(slot, object, stream != 0, bytes, file, next<uint32_t>(line));
    } else if (what == "set") {
      const auto slot = next<unsigned>(line);
      const auto offset = next<uint32_t>(line);
      rival->access(slot, offset, true, next<uint32_t>(line));
    } else if (what == "get") {
      const auto slot = next<unsigned>(line);
      std::printf("register %u\n", rival->access(slot, next<uint32_t>(line), false, 0));
    } else if (what == "in") {
      const auto slot = next<unsigned>(line);
      const auto id = next<uint32_t>(line);
      const auto offset = next<uint64_t>(line);
      const auto bytes = next<uint32_t>(line);
      rival->move(slot, true, {id, offset, bytes, next<unsigned>(line) != 0});
    } else if (what == "out") {
      const auto slot = next<unsigned>(line);
      const auto offset = next<uint64_t>(line);
      rival->move(slot, false, {0, offset, next<uint32_t>(line), false});
    } else if (what == "go") {
      rival->go(next<unsigned>(line) != 0);
    } else if (what == "save") {
      const auto slot = next<unsigned>(line);
      rival->save(slot, next<std::string>(line));
    } else {
      fail("unknown: " + text);
    }
  }
}

}  // namespace
}  // namespace via

int main() {
  via::obey();
  return 0;
}
