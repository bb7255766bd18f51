// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Register accesses of the host: they cross the link, wait their turn in order, and become AXI4-Lite
// accesses or, for the functions beside the management function, requests at the port of those. Writes are
// posted. A read pushes earlier writes ahead of it, and its response what the card has written before it.
#pragma once
#include <cstdint>

#include "clock.h"
#include "ring.h"
#include "viaduct_sim.h"

namespace via {

struct LiteRequest {  // driven by the model
  bool awvalid = false, wvalid = false, bready = false, arvalid = false, rready = false;
  uint32_t addr = 0, wdata = 0;
  bool operator==(const LiteRequest&) const = default;
};

struct LiteResponse {  // driven by the shell
  bool awready, wready, bvalid, arready, rvalid;
  uint8_t rresp;
  uint32_t rdata;
};

struct FnRequest {  // driven by the model; held until answered
  bool valid = false, cfg = false, write = false;
  uint8_t fn = 0, bar = 0, strb = 0;
  uint16_t addr = 0;
  uint32_t wdata = 0;
  bool operator==(const FnRequest&) const = default;
};

struct FnResponse {  // driven by the shell
  bool rvalid;
  uint32_t rdata;
};

class Bar {
 public:
  explicit Bar(const vsim_link& config);

  bool full() const { return queue_.full(); }
  void write(uint64_t now_ps, uint32_t addr, uint32_t data);
  // One read at a time: it is `answered` or given up before the next.
  void read(uint64_t now_ps, uint32_t addr);
  // Either, at the functions' port, as `request.write` says.
  void access(uint64_t now_ps, const FnRequest& request);
  bool answered() const { return responded_; }
  uint32_t value() const { return value_; }
  void give_up();

  void edge(uint64_t now_ps, const LiteResponse& lite, const FnResponse& fn);
  const LiteRequest& request() const { return request_; }
  const FnRequest& fn_request() const { return fn_request_; }

  bool empty() const { return queue_.empty(); }
  // Nothing is with the shell; the first access gets there at `next_ps`, if there is one.
  bool waiting() const { return !active_; }
  uint64_t next_ps() const { return queue_.front().arrive_ps; }
  uint64_t read_back_ps() const { return back_ps_; }
  void reset();

 private:
  struct Access {
    uint64_t arrive_ps;
    bool write;
    bool wanted;
    uint32_t addr, data;
    FnRequest fn;  // valid: for the functions' port
  };
  void push(Access access, uint64_t now_ps);
  void end_access(bool failed, uint32_t data);

  uint64_t write_ps_, read_ps_, back_ps_;
  LiteRequest request_;
  FnRequest fn_request_;
  Ring<Access> queue_;
  uint64_t last_arrive_ps_ = 0;
  bool active_ = false;
  bool responded_ = false;
  uint32_t value_ = 0;
};

}  // namespace via
