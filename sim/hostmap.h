// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Host memory the card may reach: what an IOMMU's table is to a real card.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace via {

struct HostRange {
  uint64_t iova, len;
  uint8_t* host;
  unsigned perms;          // VSIM_DMA_*; none while the range is being taken back
  uint32_t in_flight = 0;  // requests on the link that were let through and have not touched memory yet
};

class HostMap {
 public:
  // 0 or a negative errno, `why` then says what was wrong. Ranges are whole 4 KiB pages.
  int map(uint64_t iova, void* host, uint64_t len, unsigned perms, std::string& why);
  // From now on nobody gets in. nullptr if there is no such range.
  HostRange* close(uint64_t iova, uint64_t len);
  // Forgets a closed range with nothing in flight.
  void erase(uint64_t iova);
  // The range that allows an access; nullptr if none does. The access does not cross 4 KiB, so it lies in one
  // range.
  HostRange* find(uint64_t addr, unsigned perms);

 private:
  size_t after(uint64_t iova) const;  // index of the first range that begins beyond iova

  std::vector<std::unique_ptr<HostRange>> ranges_;  // by iova, disjoint; pointers to ranges stay valid
  HostRange* last_ = nullptr;
};

}  // namespace via
