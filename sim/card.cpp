// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace via {
namespace {

constexpr unsigned kResetCycles = 16;

std::string coverage_prefix() {
  static std::atomic<unsigned> cards;
  const char* dir = std::getenv("VIADUCT_COVERAGE");
  if (!VM_COVERAGE || !dir || !*dir) return {};
  return std::string(dir) + "/" + std::to_string(getpid()) + "-" + std::to_string(cards++) + "-";
}

bool wanted(const char* name) {
  const char* value = std::getenv(name);
  return value && std::strcmp(value, "1") == 0;
}

}  // namespace

Card::Card(const vsim_config& config)
    : clock(config.clk_khz),
      link(config.link, kFunctions, maps, fn_counters),
      bar(config.link),
      icap_(config.image_dir),
      sysmon_(config.clk_khz),
      check_(wanted("VIADUCT_SIM_CHECK")),
      shell_(wanted("VIADUCT_SIM_CHECK")),
      fault_(VIA_ASSERT && wanted("VIADUCT_SIM_FAULT")),
      coverage_(coverage_prefix()) {
  ports.reserve(kFunctions);
  for (unsigned f = 0; f < kFunctions; f++) {
    ports.emplace_back(config.port[f], fn_counters[f]);
    if (f > 0 && ports[f].exists()) board_.push_back(f);
  }
  for (unsigned c = 0; c < kChannels; c++) {
    dram_.push_back(std::make_unique<Dram>(config.dram, counters, c));
  }
  shell_.ports().clk_khz_i = config.clk_khz;
  shell_.ports().chan_mib_i = config.dram.mib;
  reset();
}

Card::~Card() {
  for (unsigned s = 0; s < kSlots; s++) unload(s);
  wave_close();
  if (!coverage_.empty()) shell_.top.coverage_write((coverage_ + "shell.dat").c_str());
}

void Card::reset() {
  link.reset();
  bar.reset();
  icap_.reset();
  sysmon_.reset();
  bus_master = flr_ = 0;
  for (Port& port : ports) port.reset();
  for (auto& dram : dram_) dram->reset();
  fixed_ = false;
  rested_ = 0;
  // In reset the models stand still: what the shell says means nothing until it is over.
  for (unsigned i = 0; i < kResetCycles; i++) {
    drive();
    shell_.drive_board(true, clock.cycles());
    record_inputs(true);
    look_at_shell();
    slot_edges();
    shell_edge();
    if (recording_) recording_->edges(clock.cycles(), 1, digest_of(shell_));
    clock.tick();
  }
  busy_edges_ = kLinger;
}

// ------------------------------------------------------------------------------------------------ one edge
void Card::drive() {
  // While the shell is tried for rest its time stands still: time alone is no change.
  shell_.drive_board(false, tries_shell() ? shell_.ports().time_i : clock.cycles());
  driven_.host = link.response();
  if (fault_ && shell_.host().arvalid) driven_.host.bvalid = true;
  driven_.msix_ready = link.msix_ready();
  driven_.lite = bar.request();
  shell_.drive_host(driven_.host, driven_.msix_ready);
  shell_.drive_lite(driven_.lite);
  driven_.fn = bar.fn_request();
  driven_.flr = flr_;
  driven_.bus_master = bus_master;
  flr_ = 0;
  shell_.drive_fn(driven_.fn, driven_.flr, driven_.bus_master);
  for (const unsigned f : board_) {
    driven_.port[f] = ports[f].response();
    shell_.drive_port(f, driven_.port[f]);
  }
  for (unsigned c = 0; c < kChannels; c++) {
    driven_.mem[c] = dram_[c]->response();
    shell_.drive_mem(c, driven_.mem[c]);
  }
  uint32_t loaded = 0;
  for (unsigned s = 0; s < kSlots; s++) {
    loaded |= uint32_t{slots_[s].loaded()} << s;
    driven_.slot[s] = slots_[s].levels();
    shell_.drive_slot(s, slots_[s].out);
  }
  shell_.drive_icap(icap_, loaded);
  driven_.sysmon = sysmon_.response();
  shell_.drive_sysmon(driven_.sysmon);
}

void Card::record(uint64_t edges) {
  recording_ = std::make_unique<Recording>(edges, shell_.ports().clk_khz_i, shell_.ports().chan_mib_i);
  reset();
}

void Card::record_inputs(bool reset) {
  Recording::Inputs* in = recording_ ? recording_->fresh() : nullptr;
  if (!in) return;
  *in = {.reset = reset,
         .msix_ready = driven_.msix_ready,
         .icap_ready = icap_.ready(),
         .icap_done = icap_.done(),
         .icap_status = icap_.status(),
         .loaded = shell_.ports().slot_loaded_i,
         .host = driven_.host,
         .mem = {},
         .lite = driven_.lite,
         .fn = driven_.fn,
         .flr = driven_.flr,
         .bus_master = driven_.bus_master,
         .sysmon = driven_.sysmon,
         .port = {},
         .slot = {},
         .data = {},
         .port_data = {}};
  if (in->host.rvalid) std::memcpy(in->data[0], in->host.rdata, kBeatBytes);
  for (unsigned c = 0; c < kChannels; c++) {
    in->mem[c] = driven_.mem[c];
    if (in->mem[c].rvalid) std::memcpy(in->data[1 + c], in->mem[c].rdata, kBeatBytes);
  }
  for (unsigned s = 0; s < kSlots; s++) in->slot[s] = slots_[s].out;
  for (const unsigned f : board_) {
    in->port[f] = driven_.port[f];
    if (in->port[f].rx_valid) std::memcpy(in->port_data[f], in->port[f].rx_data, kBeatBytes);
  }
}

// No model is asked for anything, and none but the link has anything in flight that concerns the shell.
bool Card::models_rest() {
  if (!Link::rests(shell_.host(), shell_.msix()) || !bar.waiting() || !icap_.sleeps(shell_.icap()) ||
      !sysmon_.sleeps(shell_.sysmon()))
    return false;
  for (const unsigned f : board_) {
    if (!ports[f].rests(shell_.port(f))) return false;
  }
  for (unsigned c = 0; c < kChannels; c++) {
    if (!dram_[c]->rests(shell_.mem(c))) return false;
  }
  return true;
}

// Whether the shell would see at this edge what it saw the last time. The time does not count.
bool Card::inputs_same() const {
  if (!link.response().same_as(driven_.host) || link.msix_ready() != driven_.msix_ready || icap_.done() ||
      sysmon_.response().rdy || bar.request() != driven_.lite || bar.fn_request() != driven_.fn ||
      flr_ != driven_.flr || bus_master != driven_.bus_master) {
    return false;
  }
  for (const unsigned f : board_) {
    if (!ports[f].response().same_as(driven_.port[f])) return false;
  }
  for (unsigned c = 0; c < kChannels; c++) {
    if (!dram_[c]->response().same_as(driven_.mem[c])) return false;
  }
  for (unsigned s = 0; s < kSlots; s++) {
    // An app that runs may change a payload under the shell's eyes.
    if (slots_[s].levels() != driven_.slot[s] || (slots_[s].any_valid() && !slots_[s].settled()))
      return false;
  }
  return true;
}

// Whether the shell can be left out at this edge.
bool Card::shell_rests() {
  if (!inputs_same()) {
    busy_edges_ = kLinger;
    rested_ = 0;
    next_try_ = kFirstTry;
    fixed_ = false;
    return false;
  }
  rested_++;
  if (busy_edges_ > 0) {
    busy_edges_--;
    return false;
  }
  return fixed_ || shell_.quiet();
}

void Card::look_at_shell() {
  if (!evaluated_) return;
  for (unsigned s = 0; s < kSlots; s++) {
    if (slots_[s].loaded()) shell_.slot(s, slots_[s].in);
  }
}

// What is transferred at this edge.
void Card::trace_edge() {
  Trace& trace = *trace_;
  trace.look(clock.cycles());
  for (unsigned s = 0; s < kSlots; s++) slots_[s].trace(trace, s);
  const AxiRequest host = shell_.host();
  const AxiResponse& link_says = link.response();
  const unsigned reader = Link::function_of(link_says.rid);
  trace.handshake(VSIM_TRACE_HOST_READ, reader, 0, link_says.rvalid, host.rready, kBeatBytes);
  trace.handshake(VSIM_TRACE_HOST_WRITE, link.writer(), 0, host.wvalid, link_says.wready,
                  static_cast<uint64_t>(std::popcount(host.wstrb)));
  const MsixRequest msix = shell_.msix();
  const uint64_t now = clock.cycles();
  if (link.msix_ready() && msix.valid) trace.event(VSIM_TRACE_INTERRUPT, 0, msix.vector, now, now, 0);
  if (link.msix_ready() && msix.fn_valid)
    trace.event(VSIM_TRACE_INTERRUPT, msix.fn, msix.fn_vector, now, now, 0);
  for (unsigned c = 0; c < kChannels; c++) {
    const AxiRequest mem = shell_.mem(c);
    const AxiResponse& dram_says = dram_[c]->response();
    trace.handshake(VSIM_TRACE_DRAM_READ, c, 0, dram_says.rvalid, mem.rready, kBeatBytes);
    trace.handshake(VSIM_TRACE_DRAM_WRITE, c, 0, mem.wvalid, dram_says.wready,
                    static_cast<uint64_t>(std::popcount(mem.wstrb)));
  }
  for (const unsigned f : board_) {
    const PortRequest port = shell_.port(f);
    const PortResponse& wire_says = ports[f].response();
    trace.handshake(VSIM_TRACE_PORT_TX, f, 0, port.tx_valid, wire_says.tx_ready,
                    static_cast<uint64_t>(std::popcount(port.tx_keep)));
    trace.handshake(VSIM_TRACE_PORT_RX, f, 0, wire_says.rx_valid, port.rx_ready,
                    static_cast<uint64_t>(std::popcount(wire_says.rx_keep)));
  }
  trace.total(VSIM_TRACE_LINK_UP, link.up_busy_ps());
  trace.total(VSIM_TRACE_LINK_DOWN, link.down_busy_ps());
}

void Card::slot_edges() {
  for (unsigned s = 0; s < kSlots; s++) {
    watchdog_.begin(s);
    counters.slot_evals += slots_[s].edge(waving(), clock.cycles());
  }
  watchdog_.end();
}

void Card::model_edges() {
  const AxiRequest host = shell_.host();
  const MsixRequest msix = shell_.msix();
  if (!link.sleeps(host, msix)) link.edge(clock, host, msix);
  for (unsigned c = 0; c < kChannels; c++) {
    const AxiRequest mem = shell_.mem(c);
    if (!dram_[c]->sleeps(mem)) dram_[c]->edge(clock, mem);
  }
  if (!bar.empty()) bar.edge(clock.ps(), shell_.lite(), shell_.fn());
  for (const unsigned f : board_) {
    const PortRequest port = shell_.port(f);
    if (!ports[f].sleeps(port)) ports[f].edge(clock, port);
  }
  const IcapRequest icap = shell_.icap();
  if (!icap_.sleeps(icap)) configure(icap_.edge(icap, kSlots));
  if (clock.cycles() >= sysmon_.next()) look_at_sysmon();
  const SysmonRequest sysmon = shell_.sysmon();
  if (!sysmon_.sleeps(sysmon)) sysmon_.edge(sysmon);
}

void Card::look_at_sysmon() {
  uint64_t dram = 0, host = 0;
  for (unsigned c = 0; c < kChannels; c++) dram += counters.dram_read_bytes[c] + counters.dram_write_bytes[c];
  for (const vsim_fn_counters& f : fn_counters) host += f.host_read_bytes + f.host_write_bytes;
  sysmon_.look(clock.cycles(), dram, host);
}

void Card::shell_edge() {
  counters.shell_evals++;
  evaluated_ = true;
  if (!tries_shell()) {
    shell_.top.edge();
    return;
  }
  fixed_ = shell_.top.edge_settled();
  next_try_ = rested_ + std::min(rested_, kLongestWait);
}

void Card::step() {
  wave_step();
  const bool rests = shell_rests();
  if (rests) {
    check_skipped_shell();
  } else {
    drive();
    record_inputs(false);
  }
  look_at_shell();
  if (trace_) trace_edge();
  slot_edges();
  model_edges();
  if (!rests) {
    shell_edge();
  } else {
    evaluated_ = false;
    // Waves show every cycle, and change nothing else.
    if (waving()) shell_.top.edge();
  }
  if (recording_) recording_->edges(rests ? clock.cycles() : shell_.ports().time_i, 1, digest_of(shell_));
  clock.tick();
}

void Card::check_skipped_shell() {
  if (!check_ || waving()) return;
  if (evaluated_) checked_ = 0;
  if (checked_ >= 8) return;
  // Registers beside the data path may hold one more edge what Verilator keeps for itself; a second one may
  // not.
  const bool quiet = shell_.quiet();
  const uint64_t time = shell_.ports().time_i;
  drive();
  shell_.ports().time_i = time;
  const bool settled = shell_.top.edge_settled();
  checked_++;
  if ((checked_ < 3 || settled) && shell_.quiet() == quiet) return;
  std::fprintf(stderr,
               "viaduct card: cycle %llu: the shell changes although it could be left out (quiet %d, %d)\n",
               static_cast<unsigned long long>(clock.cycles()), quiet, shell_.quiet());
  std::abort();
}

// ------------------------------------------------------------------------------------------------ many edges
bool Card::parked() {
  if (busy_edges_ > 0 || !(fixed_ || shell_.quiet()) || !link.empty() || !bar.empty()) return false;
  if (next_packet_ps() != ~uint64_t{0}) return false;
  for (const Slot& slot : slots_) {
    if (!slot.idle()) return false;
  }
  return models_rest() && inputs_same();
}

uint64_t Card::next_packet_ps() const {
  uint64_t next = ~uint64_t{0};
  for (const unsigned f : board_) next = std::min(next, ports[f].next_ps());
  return next;
}

void Card::advance(uint64_t cycles) {
  // Only something on its way across the link, or on a wire of the board, can be what the card waits for.
  uint64_t next = ~uint64_t{0};
  if (!evaluated_ && !waving() && models_rest()) {
    next = std::min(link.next_ps(), next_packet_ps());
    if (!bar.empty()) next = std::min(next, bar.next_ps());
  }
  if (next != ~uint64_t{0}) {
    bool still = inputs_same();
    for (const Slot& slot : slots_) still &= slot.settled();
    const uint64_t left = std::min({cycles, clock.cycles_until(next), wave_start_ - clock.cycles()});
    if (still && left > 1) {
      if (recording_) recording_->edges(clock.cycles(), left - 1, digest_of(shell_));
      clock.jump(left - 1);
      rested_ += left - 1;
    }
  }
  step();
}

void Card::sleep(uint64_t cycles) {
  // Waves show every cycle.
  while (cycles > 0 && (waving() || wave_start_ - clock.cycles() < cycles)) {
    step();
    cycles--;
  }
  if (recording_ && cycles > 0) recording_->edges(clock.cycles(), cycles, digest_of(shell_));
  clock.jump(cycles);
}

// ------------------------------------------------------------------------------------------------
// configuration
void Card::configure(const Icap::Action& action) {
  if (action.unload >= 0) unload(static_cast<unsigned>(action.unload));
  if (action.load < 0) return;
  const auto s = static_cast<unsigned>(action.load);
  watchdog_.begin(s);
  const bool loaded = slots_[s].load(action.api);
  watchdog_.end();
  if (!loaded) {
    icap_.finish(VIADUCT_IMAGE_NO_MEMORY);
    return;
  }
  shell_.slot(s, slots_[s].in);
  if (waving()) slots_[s].trace_open(wave_slot_path(s), clock.ps(), clock.period_ps());
}

void Card::unload(unsigned s) {
  if (!coverage_.empty() && slots_[s].has_coverage()) {
    const std::string part = "slot" + std::to_string(s) + "-" + std::to_string(coverage_files_++) + ".dat";
    slots_[s].coverage_write(coverage_ + part);
  }
  slots_[s].unload();
}

// ------------------------------------------------------------------------------------------------ waves
int Card::wave_open(const char* path, uint64_t start, uint64_t cycles, std::string& why) {
  if (!VM_TRACE_FST) {
    why = "this card was built without waves: make card-trace";
    return -ENOTSUP;
  }
  if (cycles == 0) {
    why = "waves of no cycles were asked for";
    return -EINVAL;
  }
  // Whether it can be written: what is there stays until the recording begins.
  std::FILE* file = std::fopen(path, "a");
  if (!file) {
    const int error = errno;
    why = std::string(path) + ": " + std::strerror(error);
    return -error;
  }
  std::fclose(file);
  wave_close();
  wave_path_ = path;
  wave_start_ = std::max(start, clock.cycles());
  wave_cycles_ = std::min(cycles, ~uint64_t{0} - wave_start_);
  return 0;
}

void Card::wave_step() {
  if (clock.cycles() >= wave_start_) wave_begin();
  if (waving() && clock.cycles() >= wave_end_) wave_close();
}

void Card::wave_begin() {
  wave_end_ = wave_start_ + wave_cycles_;
  wave_start_ = ~uint64_t{0};
  shell_.top.trace_open(wave_path_.c_str(), clock.ps(), clock.period_ps());
  // An app built without waves is left out.
  for (unsigned s = 0; s < kSlots; s++) {
    slots_[s].trace_open(wave_slot_path(s), clock.ps(), clock.period_ps());
  }
}

void Card::wave_close() {
  if (waving()) {
    shell_.top.trace_close();
    for (Slot& slot : slots_) slot.trace_close();
  }
  wave_end_ = 0;
  wave_start_ = ~uint64_t{0};
}

// dir/name.fst -> dir/name.slot0.fst
std::string Card::wave_slot_path(unsigned slot) const {
  const size_t name = wave_path_.find_last_of('/') + 1;
  const size_t dot = wave_path_.find_last_of('.');
  const size_t stem = dot == std::string::npos || dot <= name ? wave_path_.size() : dot;
  return wave_path_.substr(0, stem) + ".slot" + std::to_string(slot) + wave_path_.substr(stem);
}

}  // namespace via
