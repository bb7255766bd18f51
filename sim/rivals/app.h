// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Apps of the programs with other systems: objects as the card runs them.
#pragma once
#include <dlfcn.h>

#include <string>

#include "rivals/script.h"
#include "slot.h"

namespace via {

// The app in an object that `viaduct build` has made for cards of this geometry.
inline const SlotApi* app_of(const std::string& object) {
  void* library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(dlerror());
  auto* get = reinterpret_cast<const SlotApi* (*)()>(dlsym(library, "viaduct_slot_api"));
  const SlotApi* api = get ? get() : nullptr;
  if (!api || api->abi != VIADUCT_SLOT_ABI || api->in_size != sizeof(viaduct_slot_in)) {
    fail(object + " is not an app for this geometry");
  }
  return api;
}

}  // namespace via
