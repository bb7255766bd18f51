// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The Verilated shell behind the types of the models: what its registers drive, and how it is driven.
// Payloads are copied only when they are new.
#pragma once
#include <cstdint>
#include <iterator>

#include "Vshell.h"
#include "Vshell__Syms.h"
#include "Vshell___024root.h"
#include "axi.h"
#include "bar.h"
#include "board.h"
#include "icap.h"
#include "link.h"
#include "sysmon.h"
#include "verilated_top.h"
#include "viaduct_slot.h"

VIA_VERILATED(Vshell)

namespace via {

template <class T>
constexpr unsigned count_of(const T& array) {
  return sizeof array / sizeof array[0];
}

class Shell {
 public:
  using Top = VerilatedTop<VshellModel>;
  using Ports = Vshell___024root;
  static constexpr unsigned kSlots = sizeof(Ports::slot_rst_no) / sizeof(Ports::slot_rst_no[0]);
  static constexpr unsigned kChannels = sizeof(Ports::mem_arvalid_o) / sizeof(Ports::mem_arvalid_o[0]);
  static_assert(sizeof(Ports::host_rdata_i) == kBeatBytes, "VIA_DATA_W differs between C++ and Verilog");
  static_assert(kSlots <= 16 && kChannels <= 16);
  // Functions, the management function included.
  static constexpr unsigned kFunctions = sizeof(Ports::brd_tx_valid_o) / sizeof(Ports::brd_tx_valid_o[0]);
  static_assert(kFunctions <= VSIM_FUNCTIONS);

  explicit Shell(bool checks = false) : top(checks) {
    ports().sysmon_kind_i = Sysmon::kKind;
    ports().sysmon_full_i = Sysmon::kFullMilliamperes;
  }

  Top top;

  Ports& ports() { return top.ports(); }
  bool quiet() { return ports().quiet_o; }

  // ------------------------------------------------------------ what the shell drives
  AxiRequest host() {
    const Ports& r = ports();
    AxiRequest q;
    q.arvalid = r.host_arvalid_o;
    q.arid = r.host_arid_o;
    q.araddr = r.host_araddr_o;
    q.arlen = r.host_arlen_o;
    q.rready = r.host_rready_o;
    q.awvalid = r.host_awvalid_o;
    q.awid = r.host_awid_o;
    q.awaddr = r.host_awaddr_o;
    q.awlen = r.host_awlen_o;
    q.wvalid = r.host_wvalid_o;
    q.wdata = bytes(r.host_wdata_o);
    q.wstrb = r.host_wstrb_o;
    q.bready = r.host_bready_o;
    return q;
  }
  AxiRequest mem(unsigned c) {
    const Ports& r = ports();
    AxiRequest q;
    q.arvalid = r.mem_arvalid_o[c];
    q.araddr = r.mem_araddr_o[c];
    q.arlen = r.mem_arlen_o[c];
    q.rready = r.mem_rready_o[c];
    q.awvalid = r.mem_awvalid_o[c];
    q.awaddr = r.mem_awaddr_o[c];
    q.awlen = r.mem_awlen_o[c];
    q.wvalid = r.mem_wvalid_o[c];
    q.wdata = bytes(r.mem_wdata_o[c]);
    q.wstrb = r.mem_wstrb_o[c];
    q.bready = r.mem_bready_o[c];
    return q;
  }
  MsixRequest msix() {
    const Ports& r = ports();
    return {.valid = r.msix_valid_o != 0,
            .fn_valid = r.fn_msix_valid_o != 0,
            .vector = r.msix_vector_o,
            .fn = r.fn_msix_fn_o,
            .fn_vector = r.fn_msix_vector_o};
  }
  FnResponse fn() { return {.rvalid = ports().fn_rvalid_o != 0, .rdata = ports().fn_rdata_o}; }
  // One bit a function, from bit 1 on.
  uint32_t fn_flr_busy() { return uint32_t{ports().fn_flr_busy_o} << 1; }
  PortRequest port(unsigned f) {
    const Ports& r = ports();
    PortRequest q;
    q.rx_ready = r.brd_rx_ready_o[f];
    q.tx_valid = r.brd_tx_valid_o[f];
    if (q.tx_valid) {
      q.tx_last = r.brd_tx_last_o[f];
      q.tx_id = r.brd_tx_id_o[f];
      widen(q.tx_keep, r.brd_tx_keep_o[f]);
      q.tx_data = bytes(r.brd_tx_data_o[f]);
    }
    return q;
  }
  LiteResponse lite() {
    const Ports& r = ports();
    return {.awready = r.axil_awready_o != 0,
            .wready = r.axil_wready_o != 0,
            .bvalid = r.axil_bvalid_o != 0,
            .arready = r.axil_arready_o != 0,
            .rvalid = r.axil_rvalid_o != 0,
            .rresp = r.axil_rresp_o,
            .rdata = r.axil_rdata_o};
  }
  IcapRequest icap() {
    const Ports& r = ports();
    return {.valid = r.icap_valid_o != 0,
            .start = r.icap_start_o != 0,
            .end = r.icap_end_o != 0,
            .slot = r.icap_slot_o,
            .data = r.icap_data_o};
  }
  SysmonRequest sysmon() { return {.en = ports().sysmon_en_o != 0, .addr = ports().sysmon_addr_o}; }
  void slot(unsigned s, viaduct_slot_in& in) {
    const Ports& r = ports();
    in.rst_n = r.slot_rst_no[s];
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
    in.reg_valid = r.slot_reg_valid_o[s];
    if (in.reg_valid) {
      in.reg_write = r.slot_reg_write_o[s];
      in.reg_addr = r.slot_reg_addr_o[s];
      in.reg_wdata = r.slot_reg_wdata_o[s];
    }
  }

  // ------------------------------------------------------------ what drives the shell
  void drive_board(bool reset, uint64_t time) {
    ports().rst_ni = !reset;
    ports().time_i = time;
  }
  void drive_host(const AxiResponse& a, bool msix_ready) {
    Ports& r = ports();
    r.host_arready_i = a.arready;
    r.host_rvalid_i = a.rvalid;
    if (a.rfresh) {
      narrow(r.host_rdata_i, *reinterpret_cast<const uint8_t (*)[kBeatBytes]>(a.rdata));
      r.host_rid_i = a.rid;
      r.host_rresp_i = a.rresp;
      r.host_rlast_i = a.rlast;
    }
    r.host_awready_i = a.awready;
    r.host_wready_i = a.wready;
    r.host_bvalid_i = a.bvalid;
    r.host_bid_i = a.bid;
    r.host_bresp_i = a.bresp;
    r.msix_ready_i = r.fn_msix_ready_i = msix_ready;
  }
  void drive_mem(unsigned c, const AxiResponse& a) {
    Ports& r = ports();
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
  void drive_lite(const LiteRequest& q) {
    Ports& r = ports();
    r.axil_awvalid_i = q.awvalid;
    r.axil_awaddr_i = r.axil_araddr_i = q.addr;
    r.axil_wvalid_i = q.wvalid;
    r.axil_wdata_i = q.wdata;
    r.axil_wstrb_i = 0xf;
    r.axil_bready_i = q.bready;
    r.axil_arvalid_i = q.arvalid;
    r.axil_rready_i = q.rready;
  }
  void drive_fn(const FnRequest& q, uint32_t flr, uint32_t bus_master) {
    Ports& r = ports();
    r.fn_valid_i = q.valid;
    r.fn_cfg_i = q.cfg;
    r.fn_bar_i = q.bar;
    r.fn_write_i = q.write;
    r.fn_fn_i = q.fn;
    r.fn_addr_i = q.addr;
    r.fn_strb_i = q.strb;
    r.fn_wdata_i = q.wdata;
    r.fn_flr_i = static_cast<decltype(r.fn_flr_i)>(flr >> 1);
    r.fn_bus_master_i = static_cast<decltype(r.fn_bus_master_i)>(bus_master >> 1);
  }
  void drive_port(unsigned f, const PortResponse& a) {
    Ports& r = ports();
    r.brd_tx_ready_i[f] = a.tx_ready;
    r.brd_rx_valid_i[f] = a.rx_valid;
    if (a.rx_fresh) {
      narrow(r.brd_rx_data_i[f], *reinterpret_cast<const uint8_t (*)[kBeatBytes]>(a.rx_data));
      narrow(r.brd_rx_keep_i[f], a.rx_keep);
      r.brd_rx_last_i[f] = a.rx_last;
      r.brd_rx_id_i[f] = a.rx_id;
    }
  }
  void drive_icap(const Icap& icap, uint32_t loaded) {
    Ports& r = ports();
    r.icap_ready_i = icap.ready();
    r.icap_done_i = icap.done();
    r.icap_status_i = icap.status();
    r.slot_loaded_i = static_cast<decltype(r.slot_loaded_i)>(loaded);
  }
  void drive_sysmon(const SysmonResponse& a) {
    ports().sysmon_rdy_i = a.rdy;
    ports().sysmon_data_i = a.data;
  }
  void drive_slot(unsigned s, const viaduct_slot_out& out) {
    Ports& r = ports();
    r.slot_s_ready_i[s] = out.s_ready;
    r.slot_rready_i[s] = out.rready;
    r.slot_bready_i[s] = out.bready;
    r.slot_irq_i[s] = out.irq;
    r.slot_busy_i[s] = out.busy;
    r.slot_m_valid_i[s] = out.m_valid;
    if (out.m_valid) {
      narrow(r.slot_m_data_i[s], out.m_data);
      narrow(r.slot_m_keep_i[s], out.m_keep);
      narrow(r.slot_m_last_i[s], out.m_last);
      narrow(r.slot_m_id_i[s], out.m_id);
    }
    r.slot_arvalid_i[s] = out.arvalid;
    if (out.arvalid) {
      r.slot_araddr_i[s] = out.araddr;
      r.slot_arid_i[s] = out.arid;
      r.slot_arlen_i[s] = out.arlen;
      r.slot_arsize_i[s] = out.arsize;
      r.slot_arburst_i[s] = out.arburst;
    }
    r.slot_awvalid_i[s] = out.awvalid;
    if (out.awvalid) {
      r.slot_awaddr_i[s] = out.awaddr;
      r.slot_awid_i[s] = out.awid;
      r.slot_awlen_i[s] = out.awlen;
      r.slot_awsize_i[s] = out.awsize;
      r.slot_awburst_i[s] = out.awburst;
    }
    r.slot_wvalid_i[s] = out.wvalid;
    if (out.wvalid) {
      narrow(r.slot_wdata_i[s], out.wdata);
      narrow(r.slot_wstrb_i[s], out.wstrb);
      r.slot_wlast_i[s] = out.wlast;
    }
    r.slot_reg_rvalid_i[s] = out.reg_rvalid;
    if (out.reg_rvalid) {
      r.slot_reg_rdata_i[s] = out.reg_rdata;
      r.slot_reg_err_i[s] = out.reg_err;
    }
  }

 private:
  template <class T>
  static const uint8_t* bytes(const T& signal) {
    return reinterpret_cast<const uint8_t*>(&signal);
  }
};

}  // namespace via
