// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "recording.h"

#include <memory>

namespace via {
namespace {

class Digest {
 public:
  void add(uint64_t value) { sum_ = (sum_ ^ value) * 0x9e3779b97f4a7c15u ^ sum_ >> 29; }
  void add(const void* bytes, size_t count) {
    for (size_t i = 0; i + 8 <= count; i += 8) {
      uint64_t word;
      std::memcpy(&word, static_cast<const uint8_t*>(bytes) + i, 8);
      add(word);
    }
  }
  void add(const AxiRequest& q) {
    add(uint64_t{q.arvalid} | q.rready << 1 | q.awvalid << 2 | q.wvalid << 3 | q.bready << 4);
    if (q.arvalid) add(q.araddr ^ uint64_t{q.arid} << 56 ^ uint64_t{q.arlen} << 48);
    if (q.awvalid) add(q.awaddr ^ uint64_t{q.awid} << 56 ^ uint64_t{q.awlen} << 48);
    if (q.wvalid) {
      add(q.wstrb);
      add(q.wdata, kBeatBytes);
    }
  }
  uint64_t sum() const { return sum_; }

 private:
  uint64_t sum_ = 1;
};

void drive(Shell& shell, const Recording::Inputs& in) {
  AxiResponse host = in.host;
  host.rfresh = host.rvalid;
  host.rdata = in.data[0];
  shell.drive_host(host, in.msix_ready);
  for (unsigned c = 0; c < Shell::kChannels; c++) {
    AxiResponse mem = in.mem[c];
    mem.rfresh = mem.rvalid;
    mem.rdata = in.data[1 + c];
    shell.drive_mem(c, mem);
  }
  shell.drive_lite(in.lite);
  shell.drive_fn(in.fn, in.flr, in.bus_master);
  for (unsigned f = 1; f < Shell::kFunctions; f++) {
    PortResponse port = in.port[f];
    port.rx_fresh = port.rx_valid;
    port.rx_data = in.port_data[f];
    shell.drive_port(f, port);
  }
  for (unsigned s = 0; s < Shell::kSlots; s++) shell.drive_slot(s, in.slot[s]);
  shell.drive_sysmon(in.sysmon);
  Shell::Ports& ports = shell.ports();
  ports.icap_ready_i = in.icap_ready;
  ports.icap_done_i = in.icap_done;
  ports.icap_status_i = in.icap_status;
  ports.slot_loaded_i = static_cast<decltype(ports.slot_loaded_i)>(in.loaded);
}

}  // namespace

uint64_t digest_of(Shell& shell) {
  Digest digest;
  digest.add(shell.host());
  for (unsigned c = 0; c < Shell::kChannels; c++) digest.add(shell.mem(c));
  const LiteResponse lite = shell.lite();
  digest.add(uint64_t{lite.awready} | lite.wready << 1 | lite.bvalid << 2 | lite.arready << 3 |
             lite.rvalid << 4);
  if (lite.rvalid) digest.add(lite.rdata);
  const MsixRequest msix = shell.msix();
  digest.add(msix.valid ? msix.vector : 256);
  digest.add(msix.fn_valid ? msix.fn_vector | uint64_t{msix.fn} << 8 : 1 << 16);
  const FnResponse fn = shell.fn();
  digest.add(fn.rvalid ? fn.rdata : ~uint64_t{0});
  digest.add(shell.fn_flr_busy());
  digest.add(shell.sysmon().en ? shell.sysmon().addr : 256);
  for (unsigned f = 1; f < Shell::kFunctions; f++) {
    const PortRequest port = shell.port(f);
    digest.add(uint64_t{port.tx_valid} | port.rx_ready << 1);
    if (!port.tx_valid) continue;
    digest.add(port.tx_keep ^ uint64_t{port.tx_last} << 63);
    digest.add(port.tx_data, kBeatBytes);
  }
  viaduct_slot_in slot;
  for (unsigned s = 0; s < Shell::kSlots; s++) {
    std::memset(&slot, 0, sizeof slot);  // payloads that mean nothing are not filled in
    shell.slot(s, slot);
    digest.add(&slot, sizeof slot);
  }
  return digest.sum();
}

int64_t Recording::replay(bool verify) const {
  auto shell = std::make_unique<Shell>();
  shell->ports().clk_khz_i = clk_khz;
  shell->ports().chan_mib_i = chan_mib;
  size_t driven = inputs_.size();
  int64_t edges = 0;
  for (const Run& run : runs_) {
    if (run.inputs != driven) drive(*shell, inputs_[run.inputs]);
    driven = run.inputs;
    for (uint64_t i = 0; i < run.count; i++) {
      shell->drive_board(inputs_[driven].reset, run.time + i);
      shell->top.edge();
    }
    edges += static_cast<int64_t>(run.count);
    // In reset the shell drives what its registers happen to hold.
    if (verify && !inputs_[driven].reset && digest_of(*shell) != run.digest) return -edges;
  }
  return edges;
}

}  // namespace via
