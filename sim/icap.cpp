// Copyright Viaduct contributors.
// SPDX-License-Identifier: Apache-2.0
#include "icap.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "sha256.h"

namespace via {
namespace {

uint32_t word_at(const uint8_t* bytes) {
  return bytes[0] | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
}

// The name in a container, empty if it is none.
std::string name_of(const uint8_t* field) {
  size_t len = 0;
  const auto allowed = [](uint8_t c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  while (len < 31 && allowed(field[len])) len++;
  for (size_t i = len; i < 32; i++) {
    if (field[i] != 0) return {};
  }
  return {reinterpret_cast<const char*>(field), len};
}

bool hash_file(int fd, Sha256::Digest& digest) {
  Sha256 hash;
  alignas(64) uint8_t buffer[65536];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    hash.update(buffer, static_cast<size_t>(got));
  }
  digest = hash.finish();
  return true;
}

// The objects opened so far, those that were no good included. None is closed: the loader would take an
// object of the same path for the old one as long as that is in use, so each is opened by its own descriptor,
// which must then stay its own.
struct Object {
  viaduct_image_status status;
  const SlotApi* api;
};
std::mutex objects_lock;
std::map<Sha256::Digest, Object> objects;

viaduct_image_status examine(void* object, const SlotApi*& api) {
  const auto get = reinterpret_cast<const SlotApi* (*)()>(dlsym(object, "viaduct_slot_api"));
  const SlotApi* found = get ? get() : nullptr;
  if (!found) return VIADUCT_IMAGE_BROKEN;
  if (found->abi != VIADUCT_SLOT_ABI) return VIADUCT_IMAGE_WRONG_ABI;
  if (found->geometry != kAppGeometry) return VIADUCT_IMAGE_WRONG_GEOMETRY;
  if (found->in_size != sizeof(viaduct_slot_in) || found->out_size != sizeof(viaduct_slot_out)) {
    return VIADUCT_IMAGE_WRONG_ABI;
  }
  api = found;
  return VIADUCT_IMAGE_LOADED;
}

}  // namespace

viaduct_image_status open_image(const std::string& image_dir, const uint8_t* container, size_t len,
                                const SlotApi*& api) {
  if (len < VIADUCT_IMAGE_BYTES || std::memcmp(container, VIADUCT_IMAGE_MAGIC, 4) != 0 ||
      word_at(container + 4) != VIADUCT_IMAGE_VERSION ||
      len != VIADUCT_IMAGE_BYTES + uint64_t{4} * word_at(container + VIADUCT_IMAGE_PADDING)) {
    return VIADUCT_IMAGE_BAD_CONTAINER;
  }
  const std::string name = name_of(container + VIADUCT_IMAGE_NAME);
  if (name.empty()) return VIADUCT_IMAGE_BAD_CONTAINER;
  if (word_at(container + VIADUCT_IMAGE_GEOMETRY) != kAppGeometry) return VIADUCT_IMAGE_WRONG_GEOMETRY;

  const std::string path = image_dir + "/" + name + "/" + name + ".so";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno == EMFILE ? VIADUCT_IMAGE_NO_DESCRIPTORS : VIADUCT_IMAGE_NOT_FOUND;
  Sha256::Digest digest;
  const bool readable = hash_file(fd, digest);
  if (!readable || std::memcmp(digest.data(), container + VIADUCT_IMAGE_DIGEST, digest.size()) != 0) {
    close(fd);
    return readable ? VIADUCT_IMAGE_WRONG_HASH : VIADUCT_IMAGE_NOT_FOUND;
  }
  const std::lock_guard lock(objects_lock);
  const auto known = objects.find(digest);
  if (known != objects.end()) {
    close(fd);
    api = known->second.api;
    return known->second.status;
  }
  const std::string opened = "/proc/self/fd/" + std::to_string(fd);
  void* object = dlopen(opened.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    // The loader holds nothing, so a later attempt may succeed, as when memory was short. It needs one more
    // descriptor.
    const int more = dup(fd);
    const bool full = more < 0 && errno == EMFILE;
    if (more >= 0) close(more);
    close(fd);
    return full ? VIADUCT_IMAGE_NO_DESCRIPTORS : VIADUCT_IMAGE_BROKEN;
  }
  const viaduct_image_status status = examine(object, api);
  objects.emplace(digest, Object{status, api});
  return status;
}

Icap::Action Icap::edge(const IcapRequest& shell, unsigned slots) {
  Action action;
  done_ = false;
  if (shell.start) {
    active_ = true;
    slot_ = shell.slot;
    length_ = 0;
    if (slot_ < slots) action.unload = slot_;
  }
  if (shell.valid && active_) {
    for (unsigned i = 0; i < 4 && length_ + i < sizeof container_; i++) {
      container_[length_ + i] = static_cast<uint8_t>(shell.data >> (8 * i));
    }
    length_ += 4;
  }
  if (shell.end && active_) {
    active_ = false;
    done_ = true;
    status_ = slot_ < slots ? open_image(image_dir_, container_, length_, action.api) : VIADUCT_IMAGE_NO_SLOT;
    if (status_ == VIADUCT_IMAGE_LOADED) action.load = slot_;
  }
  return action;
}

}  // namespace via
