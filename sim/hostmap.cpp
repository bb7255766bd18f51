// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "hostmap.h"

#include <algorithm>
#include <cerrno>

#include "viaduct_sim.h"

namespace via {

size_t HostMap::after(uint64_t iova) const {
  auto it = std::upper_bound(ranges_.begin(), ranges_.end(), iova,
                             [](uint64_t at, const auto& range) { return at < range->iova; });
  return static_cast<size_t>(it - ranges_.begin());
}

int HostMap::map(uint64_t iova, void* host, uint64_t len, unsigned perms, std::string& why) {
  if (len == 0 || (iova | len) % 4096 != 0) {
    why = "a DMA mapping consists of whole 4 KiB pages";
    return -EINVAL;
  }
  if (iova + len < iova || iova + len > uint64_t{1} << 62) {
    why = "a DMA mapping lies below bus address 2^62";
    return -EINVAL;
  }
  if (!host || perms == 0 || (perms & ~(VSIM_DMA_READ | VSIM_DMA_WRITE)) != 0) {
    why = "a DMA mapping needs memory and permissions";
    return -EINVAL;
  }
  const size_t at = after(iova);
  const bool hits_previous = at > 0 && iova - ranges_[at - 1]->iova < ranges_[at - 1]->len;
  const bool hits_next = at < ranges_.size() && ranges_[at]->iova - iova < len;
  if (hits_previous || hits_next) {
    why = "part of the range is mapped for DMA already";
    return -EEXIST;
  }
  auto range = std::make_unique<HostRange>(HostRange{iova, len, static_cast<uint8_t*>(host), perms});
  ranges_.insert(ranges_.begin() + static_cast<std::ptrdiff_t>(at), std::move(range));
  return 0;
}

HostRange* HostMap::close(uint64_t iova, uint64_t len) {
  const size_t at = after(iova);
  if (at == 0 || ranges_[at - 1]->iova != iova || ranges_[at - 1]->len != len) return nullptr;
  ranges_[at - 1]->perms = 0;
  return ranges_[at - 1].get();
}

void HostMap::erase(uint64_t iova) {
  last_ = nullptr;
  ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(after(iova)) - 1);
}

HostRange* HostMap::find(uint64_t addr, unsigned perms) {
  if (!last_ || addr - last_->iova >= last_->len) {
    const size_t at = after(addr);
    if (at == 0 || addr - ranges_[at - 1]->iova >= ranges_[at - 1]->len) return nullptr;
    last_ = ranges_[at - 1].get();
  }
  return (last_->perms & perms) == perms ? last_ : nullptr;
}

}  // namespace via
