// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The card's configuration port: one word a cycle, as an ICAP takes them. An image begins with `start`, at
// which the slot is empty, and ends with `end`; what it names is then opened, checked and handed to the card.
#pragma once
#include <cstdint>
#include <string>

#include "viaduct_image.h"
#include "viaduct_slot.h"

namespace via {

using SlotApi = struct ::viaduct_slot_api;  // a function of the same name exists

// What the geometry of an app must be.
constexpr uint32_t kAppGeometry =
    static_cast<uint32_t>(__builtin_ctz(VIA_DATA_W / 8)) << 24 | uint32_t{VIA_NUM_STREAMS} << 16;

// Opens the object a container of `len` bytes names. Its code stays in the process: two slots may run the
// same app, and an object that was rebuilt meanwhile is a different one. Sets `api` unless it fails.
viaduct_image_status open_image(const std::string& image_dir, const uint8_t* container, size_t len,
                                const SlotApi*& api);

struct IcapRequest {  // driven by the shell
  bool valid, start, end;
  uint8_t slot;
  uint32_t data;
};

class Icap {
 public:
  explicit Icap(std::string image_dir) : image_dir_(std::move(image_dir)) {}

  // What the edge asks the card to do.
  struct Action {
    int unload = -1;  // slot to empty
    int load = -1;    // slot to fill with `api`; the card answers with finish()
    const SlotApi* api = nullptr;
  };
  Action edge(const IcapRequest& shell, unsigned slots);
  void finish(viaduct_image_status status) { status_ = status; }

  // Outputs.
  bool ready() const { return true; }
  bool done() const { return done_; }
  uint8_t status() const { return status_; }

  bool sleeps(const IcapRequest& shell) const { return !done_ && !shell.valid && !shell.start && !shell.end; }
  void reset() { active_ = done_ = false; }

 private:
  std::string image_dir_;
  bool active_ = false;
  bool done_ = false;
  uint8_t status_ = 0;
  uint8_t slot_ = 0;
  size_t length_ = 0;  // bytes received, those beyond the container included
  uint8_t container_[VIADUCT_IMAGE_BYTES];
};

}  // namespace via
