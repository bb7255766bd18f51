// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "bar.h"

#include <algorithm>

namespace via {

Bar::Bar(const vsim_link& config)
    : write_ps_(uint64_t{config.mmio_write_ns} * 1000),
      read_ps_(uint64_t{config.mmio_read_ns} * 1000 / 2),
      back_ps_(uint64_t{config.mmio_read_ns} * 1000 - read_ps_),
      queue_(64) {}

void Bar::push(Access access, uint64_t now_ps) {
  last_arrive_ps_ = std::max(last_arrive_ps_, now_ps + (access.write ? write_ps_ : read_ps_));
  access.arrive_ps = last_arrive_ps_;
  access.wanted = true;
  if (!access.write) responded_ = false;
  queue_.push() = access;
}

void Bar::write(uint64_t now_ps, uint32_t addr, uint32_t data) {
  push({.arrive_ps = 0, .write = true, .wanted = true, .addr = addr, .data = data, .fn = {}}, now_ps);
}

void Bar::read(uint64_t now_ps, uint32_t addr) {
  push({.arrive_ps = 0, .write = false, .wanted = true, .addr = addr, .data = 0, .fn = {}}, now_ps);
}

void Bar::access(uint64_t now_ps, const FnRequest& request) {
  push({.arrive_ps = 0, .write = request.write, .wanted = true, .addr = 0, .data = 0, .fn = request}, now_ps);
}

void Bar::give_up() {
  for (uint64_t i = queue_.head(); i != queue_.tail(); i++) queue_[i].wanted = false;
}

void Bar::end_access(bool failed, uint32_t data) {
  const Access& access = queue_.front();
  // A refused write is dropped, as a posted write on PCIe is; a refused read reads as all ones.
  if (!access.write && access.wanted) {
    responded_ = true;
    value_ = failed ? ~uint32_t{0} : data;
  }
  active_ = false;
  queue_.pop();
}

void Bar::edge(uint64_t now_ps, const LiteResponse& lite, const FnResponse& fn) {
  if (fn_request_.valid) {
    if (!fn.rvalid) return;
    fn_request_.valid = false;
    end_access(false, fn.rdata);
    // The next request is told from this one by an edge without any.
    return;
  }
  if (active_) {
    if (lite.awready) request_.awvalid = false;
    if (lite.wready) request_.wvalid = false;
    if (lite.arready) request_.arvalid = false;
    if ((request_.bready && lite.bvalid) || (request_.rready && lite.rvalid)) {
      end_access(lite.rresp != 0, lite.rdata);
      request_.bready = request_.rready = false;
    }
  }
  if (!active_ && !queue_.empty() && queue_.front().arrive_ps <= now_ps) {
    const Access& access = queue_.front();
    active_ = true;
    if (access.fn.valid) {
      fn_request_ = access.fn;
      return;
    }
    request_.addr = access.addr;
    request_.wdata = access.data;
    request_.awvalid = request_.wvalid = request_.bready = access.write;
    request_.arvalid = request_.rready = !access.write;
  }
}

void Bar::reset() {
  request_ = {};
  fn_request_ = {};
  queue_.clear();
  active_ = responded_ = false;
}

}  // namespace via
