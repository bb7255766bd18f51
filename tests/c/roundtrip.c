// SPDX-License-Identifier: Apache-2.0
// Data through the apps pass and inc, in buffers of awkward sizes, compared with the expected results.
// Arguments: the card, a folder for files.
#include "test.h"

#define MOST 100000

static unsigned char in[MOST], out[MOST + 1], expected[MOST];

// Adds `amount` to every little-endian word; a short last one is treated as if zeros followed.
static void inc(size_t length, uint32_t amount) {
  for (size_t at = 0; at < length; at += 4) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4 && at + i < length; i++) word |= (uint32_t)in[at + i] << (8 * i);
    word += amount;
    for (size_t i = 0; i < 4 && at + i < length; i++) expected[at + i] = (unsigned char)(word >> (8 * i));
  }
}

static viaduct_report run(viaduct_slot* slot, size_t length, const viaduct_run_options* options) {
  viaduct_route routes[] = {route(VIADUCT_IN, in, length), route(VIADUCT_OUT, out, length)};
  viaduct_report report;
  memset(out, 0xee, sizeof out);
  OK(viaduct_run(slot, routes, 2, options, &report));
  CHECK(routes[0].length == length && routes[1].length == length);
  CHECK(out[length] == 0xee);  // bytes after the buffer are unchanged
  CHECK(report.bytes_in == length && report.bytes_out == length && report.denied == 0);
  return report;
}

// The run goes on while this thread waits.
static void run_meanwhile(viaduct_slot* slot, size_t length) {
  viaduct_route routes[] = {route(VIADUCT_IN, in, length), route(VIADUCT_OUT, out, VIADUCT_ALLOCATE)};
  viaduct_report report;
  viaduct_pending* pending;
  OK(viaduct_run_begin(slot, routes, 2, NULL, &report, &pending));
  OK(viaduct_wait(pending, UINT32_MAX));
  CHECK(report.bytes_out == length && routes[1].length == length);
  CHECK(memcmp(in, routes[1].data, length) == 0);
  OK(viaduct_free(routes[1].data));
  OK(viaduct_run_begin(slot, routes, 3, NULL, NULL, &pending));
  CHECK(viaduct_wait(pending, UINT32_MAX) == -1 && errno == EINVAL);
  CHECK(viaduct_error_code() == VIADUCT_E_ARGUMENT && strstr(viaduct_error(), "too many") != NULL);
}

struct seen {
  unsigned calls;
  viaduct_progress last;
  viaduct_slot* slot;
};

static int progress(void* user, const viaduct_progress* now) {
  struct seen* seen = user;
  CHECK(now->bytes_in >= seen->last.bytes_in && now->cycles >= seen->last.cycles);
  seen->calls++;
  seen->last = *now;
  // The library can be used from here, but the slot in use cannot be unloaded.
  uint32_t index;
  OK(viaduct_slot_index(seen->slot, &index));
  FAILS(VIADUCT_E_BUSY, "in use", viaduct_unload(seen->slot));
  FAILS(VIADUCT_E_BUSY, "running", viaduct_run(seen->slot, NULL, 0, NULL, NULL));
  return 0;
}

static void pass(viaduct_card* card, const char* folder) {
  static const size_t sizes[] = {1, 63, 64, 65, 4095, 4096, 4097, MOST};
  viaduct_slot* slot;
  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "pass", &slot));
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    fill(in, sizes[i], (uint32_t)i);
    viaduct_report report = run(slot, sizes[i], NULL);
    CHECK(memcmp(in, out, sizes[i]) == 0);
    CHECK(report.cycles > 0 && report.beats_in == (sizes[i] + 63) / 64 &&
          report.beats_out == report.beats_in);
    run_meanwhile(slot, sizes[i]);
  }
  CHECK(run(slot, 0, NULL).cycles == 0);

  struct seen seen = {0, {0, 0, 0, 0}, slot};
  viaduct_run_options options = {4096, progress, &seen, 0, 0};
  fill(in, MOST, 99);
  run(slot, MOST, &options);
  CHECK(memcmp(in, out, MOST) == 0);
  CHECK(seen.calls > 1 && seen.last.bytes_in == MOST && seen.last.total_in == MOST &&
        seen.last.bytes_out == MOST);

  // Input and output in the same memory.
  memcpy(out, in, MOST);
  viaduct_route routes[] = {route(VIADUCT_IN, in, MOST), route(VIADUCT_OUT, in, MOST)};
  OK(viaduct_run(slot, routes, 2, NULL, NULL));
  CHECK(memcmp(in, out, MOST) == 0);

  // The library allocates the buffer.
  viaduct_route made[] = {route(VIADUCT_OUT, NULL, VIADUCT_ALLOCATE), route(VIADUCT_IN, in, 12345)};
  OK(viaduct_run(slot, made, 2, NULL, NULL));
  CHECK(made[0].length == 12345 && memcmp(made[0].data, in, 12345) == 0);
  OK(viaduct_free(made[0].data));
  FAILS(VIADUCT_E_ARGUMENT, "not a buffer", viaduct_free(made[0].data));

  // From a file into memory, from memory into a file.
  char path[512], endpoint[600];
  snprintf(path, sizeof path, "%s/file", folder);
  snprintf(endpoint, sizeof endpoint, "file:%s", path);
  viaduct_route to_file[] = {route(VIADUCT_IN, in, 5000), {"out", VIADUCT_OUT, 0, endpoint, NULL, 0, 0}};
  OK(viaduct_run(slot, to_file, 2, NULL, NULL));
  viaduct_route from_file[] = {{"in", VIADUCT_IN, 0, endpoint, NULL, 0, 0}, route(VIADUCT_OUT, out, 5000)};
  memset(out, 0, 5000);
  OK(viaduct_run(slot, from_file, 2, NULL, NULL));
  CHECK(memcmp(in, out, 5000) == 0);

  // A buffer that is too small is reported before the run, with the length needed.
  from_file[1].capacity = 4999;
  FAILS(VIADUCT_E_TOO_SMALL, "5000", viaduct_run(slot, from_file, 2, NULL, NULL));
  CHECK(from_file[1].length == 5000);
  OK(viaduct_unload(slot));
}

static void registers(viaduct_card* card) {
  viaduct_slot* slot;
  OK(viaduct_load(card, 0, "inc", &slot));
  uint32_t index;
  OK(viaduct_slot_index(slot, &index));
  CHECK(index == 0);
  viaduct_port port;
  OK(viaduct_get_port(slot, 1, &port));
  CHECK(strcmp(port.name, "out") == 0 && port.direction == VIADUCT_OUT &&
        port.length_kind == VIADUCT_LENGTH_SAME);
  FAILS(VIADUCT_E_NOT_FOUND, "number 2", viaduct_get_port(slot, 2, &port));
  viaduct_register reg;
  OK(viaduct_get_register(slot, 0, &reg));
  CHECK(strcmp(reg.name, "amount") == 0 && reg.width == 32 && reg.access == VIADUCT_ACCESS_RW &&
        !reg.required);
  FAILS(VIADUCT_E_NOT_FOUND, "number 1", viaduct_get_register(slot, 1, &reg));

  fill(in, 65, 5);
  inc(65, 1);
  run(slot, 65, NULL);
  CHECK(memcmp(expected, out, 65) == 0);

  OK(viaduct_set(slot, "amount", "0xdeadbeef"));
  uint32_t value;
  OK(viaduct_read32(slot, reg.offset, &value));
  CHECK(value == 0xdeadbeef);
  inc(65, value);
  run(slot, 65, NULL);
  CHECK(memcmp(expected, out, 65) == 0);

  OK(viaduct_set_bytes(slot, "amount", "\x01\x02", 2));
  unsigned char bytes[5] = {9, 9, 9, 9, 9};
  size_t length;
  OK(viaduct_get_bytes(slot, "amount", bytes, sizeof bytes, &length));
  CHECK(length == 4 && memcmp(bytes, "\x01\x02\x00\x00\x09", 5) == 0);
  OK(viaduct_write32(slot, reg.offset, 77));
  inc(65, 77);
  run(slot, 65, NULL);
  CHECK(memcmp(expected, out, 65) == 0);
  OK(viaduct_unload(slot));
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  viaduct_card* card;
  OK(viaduct_open(argv[1], NULL, &card));
  viaduct_info info;
  OK(viaduct_get_info(card, &info));
  CHECK(info.slots > 0 && info.data_bytes == 64 && info.clock_khz > 0 && info.channel_mib > 0);
  uint64_t before, after;
  OK(viaduct_time(card, &before));
  pass(card, argv[2]);
  registers(card);
  OK(viaduct_time(card, &after));
  CHECK(after > before);
  OK(viaduct_close(card));
  puts("as expected");
  return 0;
}
