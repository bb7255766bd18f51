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

void Bar::push(uint64_t arrive_ps, bool write, uint32_t addr, uint32_t data) {
  last_arrive_ps_ = std::max(last_arrive_ps_, arrive_ps);
  queue_.push() = {last_arrive_ps_, write, true, addr, data};
}

void Bar::write(uint64_t now_ps, uint32_t addr, uint32_t data) {
  push(now_ps + write_ps_, true, addr, data);
}

void Bar::read(uint64_t now_ps, uint32_t addr) {
  answered_ = false;
  push(now_ps + read_ps_, false, addr, 0);
}

void Bar::give_up() {
  for (uint64_t i = queue_.head(); i != queue_.tail(); i++) queue_[i].wanted = false;
}

void Bar::edge(uint64_t now_ps, const LiteAnswer& shell) {
  if (active_) {
    if (shell.awready) request_.awvalid = false;
    if (shell.wready) request_.wvalid = false;
    if (shell.arready) request_.arvalid = false;
    if (request_.bready && shell.bvalid) {
      // A refused write is dropped, as a posted write on PCIe is.
      request_.bready = active_ = false;
      queue_.pop();
    } else if (request_.rready && shell.rvalid) {
      // A refused read reads as all ones.
      if (queue_.front().wanted) {
        answered_ = true;
        value_ = shell.rresp ? ~uint32_t{0} : shell.rdata;
      }
      request_.rready = active_ = false;
      queue_.pop();
    }
  }
  if (!active_ && !queue_.empty() && queue_.front().arrive_ps <= now_ps) {
    const Access& access = queue_.front();
    active_ = true;
    request_.addr = access.addr;
    request_.wdata = access.data;
    request_.awvalid = request_.wvalid = request_.bready = access.write;
    request_.arvalid = request_.rready = !access.write;
  }
}

void Bar::reset() {
  request_ = {};
  queue_.clear();
  active_ = answered_ = false;
}

}  // namespace via
