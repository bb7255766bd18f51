// SPDX-License-Identifier: Apache-2.0
// App rng on buffers and files: reads are summed up, writes arrive in the mapped file or buffer.
// Arguments: the card, a folder for files.
#include "test.h"

#define WORDS (20000 / 8)

static uint64_t memory[WORDS], expected[WORDS];

// One step of app rng: the offset of the next access of 64 bytes, as apps/rng/README.md defines it.
static size_t place(uint64_t* x, size_t length) {
  *x ^= *x >> 12;
  *x ^= *x << 25;
  *x ^= *x >> 27;
  uint64_t high = (*x * 0x2545F4914F6CDD1Du) >> 32;
  return (size_t)((high * (length / 64)) >> 32) * 64;
}

static uint64_t checksum(uint64_t seed, unsigned count) {
  uint64_t sum = 0;
  while (count-- > 0) {
    size_t at = place(&seed, sizeof memory) / 8;
    for (size_t i = 0; i < 8; i++) sum += memory[at + i];
  }
  return sum;
}

static void write_expected(uint64_t seed, unsigned count) {
  uint64_t x = seed;
  while (count-- > 0) {
    size_t at = place(&x, sizeof memory);
    for (size_t i = 0; i < 64; i += 8) expected[(at + i) / 8] = seed ^ (at + i);
  }
}

static void set(viaduct_slot* slot, const char* seed, const char* count, const char* write) {
  OK(viaduct_set(slot, "size", "64"));
  OK(viaduct_set(slot, "seed", seed));
  OK(viaduct_set(slot, "count", count));
  OK(viaduct_set(slot, "write", write));
}

static void reads(viaduct_slot* slot, uint32_t flags) {
  viaduct_mapping* mapping;
  viaduct_report report;
  uint64_t sum = 0;
  OK(viaduct_map(slot, NULL, memory, sizeof memory, VIADUCT_READ, flags, &mapping));
  set(slot, "12345", "300", "0");
  OK(viaduct_start_and_wait(slot, mapping, 0, NULL, &report));
  OK(viaduct_get_bytes(slot, "checksum", &sum, sizeof sum, NULL));
  CHECK(sum == checksum(12345, 300));
  CHECK(report.cycles > 0 && report.memory_read_beats == 300 && report.misses > 0 && report.denied == 0);
  FAILS(VIADUCT_E_BUSY, "in use", viaduct_unload(slot));
  OK(viaduct_unmap(mapping));
}

// A run that takes too long is ended; the app works again afterwards, with the same registers.
static void takes_too_long(viaduct_slot* slot) {
  viaduct_mapping* mapping;
  uint64_t sum = 0;
  OK(viaduct_map(slot, NULL, memory, sizeof memory, VIADUCT_READ, 0, &mapping));
  set(slot, "5", "1000000000", "0");
  FAILS(VIADUCT_E_APP, "waiting for the app to finish",
        viaduct_start_and_wait(slot, mapping, 20, NULL, NULL));
  OK(viaduct_set(slot, "count", "10"));
  OK(viaduct_start_and_wait(slot, mapping, 0, NULL, NULL));
  OK(viaduct_get_bytes(slot, "checksum", &sum, sizeof sum, NULL));
  CHECK(sum == checksum(5, 10));
  OK(viaduct_unmap(mapping));
}

static void writes_buffer(viaduct_slot* slot) {
  viaduct_mapping* mapping;
  OK(viaduct_map(slot, NULL, memory, sizeof memory, VIADUCT_READ | VIADUCT_WRITE, 0, &mapping));
  memcpy(expected, memory, sizeof memory);
  set(slot, "99", "50", "1");
  OK(viaduct_start_and_wait(slot, mapping, 60000, NULL, NULL));
  write_expected(99, 50);
  OK(viaduct_sync(mapping, 0));
  CHECK(memcmp(memory, expected, sizeof memory) == 0);
  set(slot, "100", "50", "1");
  OK(viaduct_start_and_wait(slot, mapping, 0, NULL, NULL));
  write_expected(100, 50);
  OK(viaduct_unmap(mapping));
  CHECK(memcmp(memory, expected, sizeof memory) == 0);
}

static void writes_file(viaduct_slot* slot, const char* folder) {
  char path[512];
  snprintf(path, sizeof path, "%s/new", folder);
  viaduct_mapping* mapping;
  uint32_t flags = VIADUCT_MAP_CREATE | VIADUCT_MAP_SMALL;
  OK(viaduct_map(slot, path, NULL, sizeof memory, VIADUCT_READ | VIADUCT_WRITE, flags, &mapping));
  memset(expected, 0, sizeof expected);
  set(slot, "7", "100", "1");
  OK(viaduct_start_and_wait(slot, mapping, 0, NULL, NULL));
  write_expected(7, 100);
  OK(viaduct_unmap(mapping));
  FILE* file = fopen(path, "rb");
  CHECK(file != NULL && fread(memory, 1, sizeof memory, file) == sizeof memory && fgetc(file) == EOF);
  fclose(file);
  CHECK(memcmp(memory, expected, sizeof memory) == 0);

  // A read-only file: the app's writes are denied and counted, the file is unchanged.
  viaduct_report report;
  OK(viaduct_map(slot, path, NULL, 0, VIADUCT_READ, 0, &mapping));
  set(slot, "8", "10", "1");
  OK(viaduct_start_and_wait(slot, mapping, 0, NULL, &report));
  CHECK(report.denied > 0);
  OK(viaduct_unmap(mapping));
  file = fopen(path, "rb");
  CHECK(file != NULL && fread(memory, 1, sizeof memory, file) == sizeof memory);
  fclose(file);
  CHECK(memcmp(memory, expected, sizeof memory) == 0);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  viaduct_card* card;
  viaduct_slot *slot, *other;
  viaduct_mapping* foreign;
  OK(viaduct_open(argv[1], NULL, &card));
  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "rng", &slot));
  fill((unsigned char*)memory, sizeof memory, 11);
  reads(slot, 0);
  reads(slot, VIADUCT_MAP_HOST);
  takes_too_long(slot);
  writes_buffer(slot);
  writes_file(slot, argv[2]);

  // A mapping of another slot is refused.
  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "rng", &other));
  OK(viaduct_map(other, NULL, NULL, 4096, VIADUCT_READ, 0, &foreign));
  FAILS(VIADUCT_E_ARGUMENT, "another slot", viaduct_start_and_wait(slot, foreign, 0, NULL, NULL));
  OK(viaduct_unmap(foreign));
  OK(viaduct_unload(other));
  OK(viaduct_unload(slot));
  OK(viaduct_close(card));
  puts("as expected");
  return 0;
}
