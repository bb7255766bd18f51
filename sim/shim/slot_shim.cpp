// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Compiled together with each Verilated app (prefix Vslot, top module via_slot) into its shared object; see
// viaduct_slot.h for the contract.
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <memory>

#include "Vslot.h"
#include "Vslot__Syms.h"
#include "Vslot___024root.h"
#include "verilated_hooks.h"
#include "verilated_top.h"
#include "viaduct_slot.h"

VIA_VERILATED(Vslot)

namespace {

using In = viaduct_slot_in;
using Out = viaduct_slot_out;
using Slot = via::VerilatedTop<VslotModel>;
using via::narrow;
using via::widen;

// Thrown by an app's $error, $fatal, $stop or $finish, through its model.
struct Ended {};

// A model is being taken down.
thread_local bool dropping = false;

// An app in a slot. If it has ended its simulation there is no model until it is reset: its outputs then
// violate the contract of a stream, so that the guard isolates the slot as that of any app that does so.
class Instance {
 public:
  Instance() { start(); }
  ~Instance() { drop(); }

  // Null if the simulation has ended.
  Slot* model() { return model_.get(); }

  // `step` is one edge of the model.
  template <class Step>
  bool edge(const In& in, Out& out, Step step) {
    if (!model_ && !in.rst_n && ran_) start();
    ran_ = in.rst_n;
    if (model_) {
      try {
        return step(*model_);
      } catch (const Ended&) {
        drop();
      }
    }
    out = {};
    out.m_valid = 1;  // with no byte
    return true;
  }

 private:
  void start() {
    ran_ = false;
    try {
      model_ = std::make_unique<Slot>();
    } catch (const Ended&) {
    }
  }

  // What its final blocks say ends nothing more.
  void drop() {
    dropping = true;
    model_.reset();
    dropping = false;
  }

  std::unique_ptr<Slot> model_;
  bool ran_ = false;  // out of reset at the last edge
};

Instance& instance_of(void* p) {
  return *static_cast<Instance*>(p);
}

void end(const char* file, int line) {
  if (dropping) return;
  std::fprintf(stderr, "simulated app: $error, $fatal, $stop or $finish at %s:%d; its slot is isolated\n",
               file, line);
  throw Ended{};
}

void drive(Vslot___024root& r, const In& in) {
  r.rst_ni = in.rst_n;
  r.arready_i = in.arready;
  r.awready_i = in.awready;
  r.wready_i = in.wready;
  r.m_ready_i = static_cast<decltype(r.m_ready_i)>(in.m_ready);
  r.s_valid_i = static_cast<decltype(r.s_valid_i)>(in.s_valid);
  if (in.s_valid) {
    narrow(r.s_data_i, in.s_data);
    narrow(r.s_keep_i, in.s_keep);
    narrow(r.s_last_i, in.s_last);
    narrow(r.s_id_i, in.s_id);
  }
  r.rvalid_i = in.rvalid;
  if (in.rvalid) {
    narrow(r.rdata_i, in.rdata);
    r.rid_i = in.rid;
    r.rresp_i = in.rresp;
    r.rlast_i = in.rlast;
  }
  r.bvalid_i = in.bvalid;
  if (in.bvalid) {
    r.bid_i = in.bid;
    r.bresp_i = in.bresp;
  }
  r.reg_valid_i = in.reg_valid;
  if (in.reg_valid) {
    r.reg_write_i = in.reg_write;
    r.reg_addr_i = in.reg_addr;
    r.reg_wdata_i = in.reg_wdata;
  }
}

void sample(const Vslot___024root& r, Out& out) {
  out.s_ready = r.s_ready_o;
  out.rready = r.rready_o;
  out.bready = r.bready_o;
  out.irq = r.irq_o;
  out.busy = r.busy_o;
  out.m_valid = r.m_valid_o;
  if (out.m_valid) {
    widen(out.m_data, r.m_data_o);
    widen(out.m_keep, r.m_keep_o);
    widen(out.m_last, r.m_last_o);
    widen(out.m_id, r.m_id_o);
  }
  out.arvalid = r.arvalid_o;
  if (out.arvalid) {
    out.araddr = r.araddr_o;
    out.arid = r.arid_o;
    out.arlen = r.arlen_o;
    out.arsize = r.arsize_o;
    out.arburst = r.arburst_o;
  }
  out.awvalid = r.awvalid_o;
  if (out.awvalid) {
    out.awaddr = r.awaddr_o;
    out.awid = r.awid_o;
    out.awlen = r.awlen_o;
    out.awsize = r.awsize_o;
    out.awburst = r.awburst_o;
  }
  out.wvalid = r.wvalid_o;
  if (out.wvalid) {
    widen(out.wdata, r.wdata_o);
    widen(out.wstrb, r.wstrb_o);
    out.wlast = r.wlast_o;
  }
  out.reg_rvalid = r.reg_rvalid_o;
  if (out.reg_rvalid) {
    out.reg_rdata = r.reg_rdata_o;
    out.reg_err = r.reg_err_o;
  }
}

void* create() {
  try {
    return new Instance;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void edge(void* p, const In* in, Out* out) {
  instance_of(p).edge(*in, *out, [&](Slot& slot) {
    drive(slot.ports(), *in);
    slot.edge();
    sample(slot.ports(), *out);
    return false;
  });
}

int edge_settled(void* p, const In* in, Out* out) {
  return instance_of(p).edge(*in, *out, [&](Slot& slot) {
    drive(slot.ports(), *in);
    const bool settled = slot.edge_settled();
    sample(slot.ports(), *out);
    return settled;
  });
}

int trace_open(void* p, const char* path, uint64_t now_ps, uint32_t period_ps) {
  Slot* slot = instance_of(p).model();
  return slot ? slot->trace_open(path, now_ps, period_ps) : 0;
}

void trace_close(void* p) {
  if (Slot* slot = instance_of(p).model()) slot->trace_close();
}

int coverage_write(void* p, const char* path) {
  Slot* slot = instance_of(p).model();
  return slot ? slot->coverage_write(path) : 0;
}

constexpr uint32_t log2_of(uint32_t v) {
  return v <= 1 ? 0 : 1 + log2_of(v / 2);
}

constexpr struct viaduct_slot_api api = {
    .abi = VIADUCT_SLOT_ABI,
    .geometry = log2_of(VIA_DATA_W / 8) << 24 | VIA_NUM_STREAMS << 16,
    .in_size = sizeof(In),
    .out_size = sizeof(Out),
    .flags = (VM_TRACE_FST ? VIADUCT_SLOT_TRACE : 0) | (VM_COVERAGE ? VIADUCT_SLOT_COVERAGE : 0),
    .rsvd = 0,
    .state_bytes = Slot::state_bytes(),
    .create = create,
    .destroy = [](void* p) { delete &instance_of(p); },
    .edge = edge,
    .edge_settled = edge_settled,
    .trace_open = trace_open,
    .trace_close = trace_close,
    .coverage_write = coverage_write,
};

}  // namespace

// Standard output is the program's.
extern "C" int via_verilated_print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  return length;
}

void vl_stop(const char* file, int line, const char*) {
  end(file, line);
}
void vl_finish(const char* file, int line, const char*) {
  end(file, line);
}
void vl_fatal(const char* file, int line, const char*, const char* message) {
  std::fprintf(stderr, "%s\n", message);
  end(file, line);
}

extern "C" __attribute__((visibility("default"))) const struct viaduct_slot_api* viaduct_slot_api() {
  return &api;
}
