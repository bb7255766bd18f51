// SPDX-License-Identifier: Apache-2.0
// App rng on buffers and files: reads are summed up, writes arrive in the mapped file or buffer.
// Arguments: the card, a folder for files.
#define _GNU_SOURCE
#include <poll.h>

#include "test.h"

#define WORDS (20000 / 8)

// Memory that the card sees as a file.
static int file;
static uint64_t* memory;
#define LENGTH (WORDS * 8)
static uint64_t expected[WORDS];

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
    size_t at = place(&seed, LENGTH) / 8;
    for (size_t i = 0; i < 8; i++) sum += memory[at + i];
  }
  return sum;
}

static void write_expected(uint64_t seed, unsigned count) {
  uint64_t x = seed;
  while (count-- > 0) {
    size_t at = place(&x, LENGTH);
    for (size_t i = 0; i < 64; i += 8) expected[(at + i) / 8] = seed ^ (at + i);
  }
}

static void set(viaduct_slot* slot, const char* seed, const char* count, const char* write) {
  OK(viaduct_set(slot, "size", "64"));
  OK(viaduct_set(slot, "seed", seed));
  OK(viaduct_set(slot, "count", count));
  OK(viaduct_set(slot, "write", write));
}

static void reads(viaduct_slot* slot, int flags) {
  viaduct_report report;
  uint64_t sum = 0;
  uint64_t va = map(slot, file, LENGTH, PROT_READ, MAP_SHARED | flags);
  set(slot, "12345", "300", "0");
  OK(viaduct_start_and_wait(slot, va, LENGTH, 0, NULL, &report));
  OK(viaduct_get_bytes(slot, "checksum", &sum, sizeof sum, NULL));
  CHECK(sum == checksum(12345, 300));
  CHECK(report.cycles > 0 && report.memory_read_beats == 300 && report.misses > 0 && report.denied == 0);
  OK(viaduct_munmap(slot, va, LENGTH));
}

// A run that takes too long is ended; the app works again afterwards, with the same registers.
static void takes_too_long(viaduct_slot* slot) {
  uint64_t sum = 0;
  uint64_t va = map(slot, file, LENGTH, PROT_READ, MAP_SHARED);
  set(slot, "5", "1000000000", "0");
  FAILS(VIADUCT_E_APP, "has not finished within 20ms",
        viaduct_start_and_wait(slot, va, LENGTH, 20, NULL, NULL));
  OK(viaduct_set(slot, "count", "10"));
  OK(viaduct_start_and_wait(slot, va, LENGTH, 0, NULL, NULL));
  OK(viaduct_get_bytes(slot, "checksum", &sum, sizeof sum, NULL));
  CHECK(sum == checksum(5, 10));
  OK(viaduct_munmap(slot, va, LENGTH));
}

// Options that only runs of streams have must be 0, and a reserved one always.
static void options_of_streams(viaduct_slot* slot) {
  uint64_t va = map(slot, file, LENGTH, PROT_READ, MAP_SHARED);
  viaduct_run_options chunks = {4096, NULL, NULL, 0, 0}, durable = {0, NULL, NULL, 1, 0};
  viaduct_run_options reserved = {0, NULL, NULL, 0, 9}, none = {0, NULL, NULL, 0, 0};
  set(slot, "5", "10", "0");
  FAILS(VIADUCT_E_ARGUMENT, "they must be 0 here",
        viaduct_start_and_wait(slot, va, LENGTH, 0, &chunks, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "they must be 0 here",
        viaduct_start_and_wait(slot, va, LENGTH, 0, &durable, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "reserved of the options is 9",
        viaduct_start_and_wait(slot, va, LENGTH, 0, &reserved, NULL));
  OK(viaduct_start_and_wait(slot, va, LENGTH, 0, &none, NULL));
  OK(viaduct_munmap(slot, va, LENGTH));
}

// What the app writes is in the program's memory, and the other way round.
static void shares_memory(viaduct_slot* slot) {
  uint64_t va = map(slot, file, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED);
  memcpy(expected, memory, LENGTH);
  set(slot, "99", "50", "1");
  OK(viaduct_start_and_wait(slot, va, LENGTH, 60000, NULL, NULL));
  write_expected(99, 50);
  CHECK(memcmp(memory, expected, LENGTH) != 0);
  OK(viaduct_msync(slot, va, LENGTH, MS_ASYNC));
  CHECK(memcmp(memory, expected, LENGTH) == 0);

  uint64_t sum = 0;
  fill((unsigned char*)memory, LENGTH, 12);
  OK(viaduct_msync(slot, va, LENGTH, MS_ASYNC | MS_INVALIDATE));
  set(slot, "5", "40", "0");
  OK(viaduct_start_and_wait(slot, va, LENGTH, 0, NULL, NULL));
  OK(viaduct_get_bytes(slot, "checksum", &sum, sizeof sum, NULL));
  CHECK(sum == checksum(5, 40));

  memcpy(expected, memory, LENGTH);
  set(slot, "100", "50", "1");
  OK(viaduct_start_and_wait(slot, va, LENGTH, 0, NULL, NULL));
  write_expected(100, 50);
  OK(viaduct_munmap(slot, va, LENGTH));
  CHECK(memcmp(memory, expected, LENGTH) == 0);
}

static void writes_file(viaduct_slot* slot, const char* folder) {
  char path[512], more;
  snprintf(path, sizeof path, "%s/new", folder);
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && ftruncate(fd, LENGTH) == 0);
  uint64_t va = map(slot, fd, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | VIADUCT_MAP_SMALL);
  close(fd);
  memset(expected, 0, LENGTH);
  set(slot, "7", "100", "1");
  OK(viaduct_start_and_wait(slot, va, LENGTH, 0, NULL, NULL));
  write_expected(7, 100);
  // The slot takes its mappings with it.
  OK(viaduct_unload(slot));
  fd = open(path, O_RDONLY);
  CHECK(fd >= 0 && read(fd, memory, LENGTH) == LENGTH && read(fd, &more, 1) == 0);
  CHECK(memcmp(memory, expected, LENGTH) == 0);
  close(fd);
}

// Writes are denied and counted, or stay with the mapping; the file is unchanged.
static void leaves_file(viaduct_slot* slot, const char* folder) {
  char path[512];
  viaduct_report report;
  uint64_t sum = 0, after = 0;
  snprintf(path, sizeof path, "%s/new", folder);
  int fd = open(path, O_RDONLY);
  uint64_t va = map(slot, fd, LENGTH, PROT_READ, MAP_SHARED);
  set(slot, "8", "10", "1");
  OK(viaduct_start_and_wait(slot, va, LENGTH, 0, NULL, &report));
  CHECK(report.denied > 0);
  uint64_t own = map(slot, fd, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_POPULATE);
  set(slot, "8", "10", "1");
  OK(viaduct_start_and_wait(slot, own, LENGTH, 0, NULL, &report));
  CHECK(report.denied == 0);
  OK(viaduct_msync(slot, own, LENGTH, MS_SYNC));
  OK(viaduct_set(slot, "write", "0"));
  OK(viaduct_start_and_wait(slot, own, LENGTH, 0, NULL, NULL));
  OK(viaduct_get_bytes(slot, "checksum", &sum, sizeof sum, NULL));
  OK(viaduct_start_and_wait(slot, va, LENGTH, 0, NULL, NULL));
  OK(viaduct_get_bytes(slot, "checksum", &after, sizeof after, NULL));
  CHECK(sum != after);
  OK(viaduct_munmap(slot, own, LENGTH));
  OK(viaduct_munmap(slot, va, LENGTH));
  CHECK(pread(fd, memory, LENGTH, 0) == LENGTH && memcmp(memory, expected, LENGTH) == 0);
  close(fd);
}

static void goes_on_meanwhile(viaduct_slot* slot) {
  viaduct_pending *loaded, *synced, *gone;
  viaduct_pager before, after;
  uint64_t va = map(slot, file, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED);
  OK(viaduct_get_pager(slot, &before));
  OK(viaduct_madvise_begin(slot, va, LENGTH, MADV_WILLNEED, &loaded));
  OK(viaduct_wait(loaded, UINT32_MAX));
  POSIX(EBADF, "operation", viaduct_wait(loaded, 0));
  OK(viaduct_get_pager(slot, &after));
  CHECK(after.pages_in - before.pages_in == (LENGTH + 4095) / 4096 && after.faults == before.faults);
  memcpy(expected, memory, LENGTH);
  set(slot, "55", "70", "1");
  OK(viaduct_start_and_wait(slot, va, LENGTH, 0, NULL, NULL));
  write_expected(55, 70);
  OK(viaduct_msync_begin(slot, va, LENGTH, MS_SYNC, &synced));
  OK(viaduct_munmap_begin(slot, va, LENGTH, &gone));
  while (viaduct_wait(gone, 1) != 0) CHECK(errno == ETIMEDOUT);
  CHECK(memcmp(memory, expected, LENGTH) == 0);
  OK(viaduct_wait(synced, 0));
  OK(viaduct_msync_begin(slot, va, LENGTH, MS_SYNC, &synced));
  CHECK(viaduct_unload(slot) == VIADUCT_E_BUSY);
  POSIX(ENOMEM, "nothing is mapped", viaduct_wait(synced, UINT32_MAX));
}

// An app runs while the program waits for descriptors, and another is ended.
static void runs_meanwhile(viaduct_slot* slot) {
  uint64_t sum = 0;
  viaduct_pending* pending;
  viaduct_report report = {0};
  uint64_t va = map(slot, file, LENGTH, PROT_READ, MAP_SHARED);
  set(slot, "321", "300", "0");
  OK(viaduct_start(slot, va, LENGTH, 60000, NULL, &report, &pending));
  struct pollfd polled = {viaduct_pending_fd(pending), POLLIN, 0};
  CHECK(polled.fd >= 0 && polled.fd == viaduct_pending_fd(pending));
  CHECK(viaduct_unload(slot) == VIADUCT_E_BUSY);
  CHECK(poll(&polled, 1, 60000) == 1 && (polled.revents & POLLIN) != 0);
  OK(viaduct_wait(pending, 0));
  CHECK(report.memory_read_beats == 300);
  OK(viaduct_get_bytes(slot, "checksum", &sum, sizeof sum, NULL));
  CHECK(sum == checksum(321, 300));
  POSIX(EBADF, "operation", viaduct_pending_fd(pending));
  POSIX(EINVAL, "NULL", viaduct_start(slot, va, LENGTH, 0, NULL, NULL, NULL));

  OK(viaduct_set(slot, "count", "1000000000"));
  OK(viaduct_start(slot, va, LENGTH, 20, NULL, NULL, &pending));
  POSIX(ETIMEDOUT, "has not finished within 20ms", viaduct_wait(pending, UINT32_MAX));
  CHECK(viaduct_error_code() == VIADUCT_E_APP);
  OK(viaduct_munmap(slot, va, LENGTH));
}

// This thread serves the page faults of two apps; the one that was started last ends first.
static void serves_several(viaduct_card* card, viaduct_slot* slot) {
  viaduct_slot* other;
  uint64_t sums[2];
  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "rng", &other));
  viaduct_awaited both[] = {{slot, 0}, {other, 0}};
  for (int i = 0; i < 2; i++) {
    char text[24];
    viaduct_slot* one = both[i].slot;
    set(one, i == 0 ? "77" : "78", i == 0 ? "3000" : "100", "0");
    snprintf(text, sizeof text, "%llu", (unsigned long long)map(one, file, LENGTH, PROT_READ, MAP_SHARED));
    OK(viaduct_set(one, "base", text));
    snprintf(text, sizeof text, "%d", LENGTH);
    OK(viaduct_set(one, "bytes", text));
    OK(viaduct_get_irqs(one, &both[i].irqs));
  }
  POSIX(ETIMEDOUT, "interrupt", viaduct_wait_for_one(both, 2, 10));
  for (int i = 0; i < 2; i++) OK(viaduct_set(both[i].slot, "start", "1"));
  CHECK(viaduct_wait_for_one(both, 2, 60000) == 1);
  CHECK(viaduct_wait_for_one(both, 1, 60000) == 0);
  for (int i = 0; i < 2; i++) OK(viaduct_get_bytes(both[i].slot, "checksum", &sums[i], sizeof sums[i], NULL));
  CHECK(sums[0] == checksum(77, 3000) && sums[1] == checksum(78, 100));
  POSIX(EINVAL, "at least one", viaduct_wait_for_one(both, 0, 0));
  POSIX(EINVAL, "address", viaduct_wait_for_one(NULL, 1, 0));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_get_irqs(slot, NULL));
  OK(viaduct_unload(other));
  POSIX(EBADF, "closed", viaduct_wait_for_one(both, 2, 0));
}

// What the app writes arrives in order, with the length that the end of the range says.
static void writes_pipe(viaduct_slot* slot) {
  int ends[2];
  static unsigned char got[65536];
  CHECK(pipe(ends) == 0);
  POSIX(EACCES, "writing only", viaduct_mmap(slot, 0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ends[1], 0));
  POSIX(EACCES, "writing", viaduct_mmap(slot, 0, 65536, PROT_WRITE, MAP_SHARED, ends[0], 0));
  uint64_t va = map(slot, ends[1], 65536, PROT_WRITE, MAP_SHARED);
  close(ends[1]);
  set(slot, "9", "1024", "1");
  OK(viaduct_set(slot, "permute", "1"));
  OK(viaduct_start_and_wait(slot, va, 65536, 60000, NULL, NULL));
  OK(viaduct_msync(slot, va, 100, MS_SYNC));
  CHECK(read(ends[0], got, sizeof got) == 100);
  OK(viaduct_munmap(slot, va, 62001));
  size_t length = 100;
  for (ssize_t part; (part = read(ends[0], got + length, sizeof got - length)) > 0;) {
    length += (size_t)part;
    if (length == 62001) OK(viaduct_munmap(slot, va, 65536));
  }
  CHECK(length == 62001);
  for (size_t at = 0; at + 8 <= length; at += 8) {
    uint64_t word;
    memcpy(&word, got + at, sizeof word);
    CHECK(word == (9 ^ at));
  }
  close(ends[0]);
  CHECK(pipe(ends) == 0);
  va = map(slot, ends[1], 65536, PROT_WRITE, MAP_SHARED);
  close(ends[1]), close(ends[0]);
  OK(viaduct_start_and_wait(slot, va, 65536, 60000, NULL, NULL));
  POSIX(EPIPE, "closed it", viaduct_msync(slot, va, 65536, MS_SYNC));
  POSIX(EPIPE, "closed it", viaduct_munmap(slot, va, 65536));
  OK(viaduct_set(slot, "permute", "0"));
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  viaduct_card* card;
  viaduct_slot* slot;
  OK(viaduct_open(argv[1], NULL, &card));
  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "rng", &slot));
  file = memfd_create("memory", 0);
  CHECK(file >= 0 && ftruncate(file, LENGTH) == 0);
  memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(memory != MAP_FAILED);
  fill((unsigned char*)memory, LENGTH, 11);
  reads(slot, 0);
  reads(slot, VIADUCT_MAP_HOST);
  takes_too_long(slot);
  options_of_streams(slot);
  shares_memory(slot);
  goes_on_meanwhile(slot);
  runs_meanwhile(slot);
  serves_several(card, slot);
  writes_pipe(slot);
  writes_file(slot, argv[2]);
  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "rng", &slot));
  leaves_file(slot, argv[2]);
  OK(viaduct_unload(slot));
  OK(viaduct_close(card));
  puts("as expected");
  return 0;
}
