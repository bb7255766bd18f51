// SPDX-License-Identifier: Apache-2.0
// Every invalid argument gives an error with a text, and valid calls work afterwards. Argument: the card.
#define _GNU_SOURCE
#include "test.h"

#define RW (PROT_READ | PROT_WRITE)

// Errors of POSIX, each with the slot as it was.
static void mappings(viaduct_slot* slot) {
  int fd = memfd_create("file", 0);
  int pipes[2], folder = open("/", O_RDONLY);
  CHECK(fd >= 0 && folder >= 0 && ftruncate(fd, 16 * 4096) == 0 && pipe(pipes) == 0);
  char self[64];
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  int reads = open(self, O_RDONLY), writes = open(self, O_WRONLY), path = open(self, O_PATH);
  CHECK(reads >= 0 && writes >= 0 && path >= 0);
#define MMAP(addr, length, prot, flags, fd, offset) viaduct_mmap(slot, addr, length, prot, flags, fd, offset)
  POSIX(EBADF, "NULL", viaduct_mmap(NULL, 0, 4096, RW, MAP_SHARED, fd, 0));
  POSIX(EBADF, "not an open descriptor", MMAP(0, 4096, RW, MAP_SHARED, -1, 0));
  POSIX(EBADF, "not an open descriptor", MMAP(0, 4096, RW, MAP_SHARED, 12345, 0));
  POSIX(EACCES, "writing", MMAP(0, 4096, RW, MAP_SHARED, reads, 0));
  POSIX(EACCES, "reading", MMAP(0, 4096, PROT_READ, MAP_SHARED, writes, 0));
  POSIX(EACCES, "reading", MMAP(0, 4096, PROT_WRITE, MAP_PRIVATE, writes, 0));
  POSIX(EACCES, "reading", MMAP(0, 4096, PROT_READ, MAP_SHARED, path, 0));
  CHECK(viaduct_error_code() == VIADUCT_E_IO);
  POSIX(ENODEV, "a directory", MMAP(0, 4096, PROT_READ, MAP_SHARED, folder, 0));
  POSIX(EACCES, "reading only", MMAP(0, 4096, RW, MAP_SHARED, pipes[0], 0));
  POSIX(EACCES, "reading", MMAP(0, 4096, PROT_READ, MAP_SHARED, pipes[1], 0));
  POSIX(ESPIPE, "offset 0", MMAP(0, 4096, PROT_READ, MAP_SHARED, pipes[0], 4096));
  POSIX(EINVAL, "map it shared", MMAP(0, 4096, PROT_READ, MAP_PRIVATE, pipes[0], 0));
  POSIX(EINVAL, "host memory", MMAP(0, 4096, PROT_READ, MAP_SHARED | VIADUCT_MAP_HOST, pipes[0], 0));
  uint64_t stream = MMAP(0, 4096, PROT_READ, MAP_SHARED, pipes[0], 0);
  CHECK(stream != VIADUCT_MAP_FAILED && viaduct_munmap(slot, stream, 4096) == 0);
  POSIX(EINVAL, "length is 0", MMAP(0, 0, RW, MAP_SHARED, fd, 0));
  CHECK(viaduct_error_code() == VIADUCT_E_ARGUMENT);
  POSIX(EINVAL, "MAP_SHARED or MAP_PRIVATE", MMAP(0, 4096, RW, 0, fd, 0));
  POSIX(EINVAL, "MAP_SHARED or MAP_PRIVATE", MMAP(0, 4096, RW, MAP_SHARED | MAP_PRIVATE, fd, 0));
  POSIX(EINVAL, "flags", MMAP(0, 4096, RW, MAP_SHARED | MAP_HUGETLB | VIADUCT_MAP_SMALL, fd, 0));
  POSIX(EINVAL, "flags", MMAP(0, 4096, RW, MAP_SHARED | MAP_GROWSDOWN, fd, 0));
  POSIX(EINVAL, "multiple of 4096", MMAP(0, 4096, RW, MAP_SHARED, fd, 100));
  POSIX(EINVAL, "negative", MMAP(0, 4096, RW, MAP_SHARED, fd, -4096));
  POSIX(EOVERFLOW, "more than a file", MMAP(0, UINT64_MAX, RW, MAP_SHARED, fd, 4096));
  POSIX(EOVERFLOW, "more than a file", MMAP(0, 8192, RW, MAP_SHARED, fd, INT64_MAX & ~4095ll));
  POSIX(ENOTSUP, "prot", MMAP(0, 4096, RW | PROT_EXEC, MAP_SHARED, fd, 0));
  POSIX(ENOMEM, "address space", MMAP(0, 1ull << 60, RW, MAP_SHARED, fd, 0));
  POSIX(ENOMEM, "host memory", MMAP(0, 1ull << 62, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  POSIX(ENOMEM, "address space", MMAP(1ull << 48, 4096, RW, MAP_SHARED | MAP_FIXED, fd, 0));
  POSIX(ENOMEM, "address space", MMAP(0, 4096, RW, MAP_SHARED | MAP_FIXED, fd, 0));
  POSIX(EINVAL, "multiple", MMAP(0x123456789, 4096, RW, MAP_SHARED | MAP_FIXED, fd, 0));

  uint64_t va = MMAP(0x700000001234, 100, RW, MAP_SHARED, fd, 4096);
  CHECK(va == 0x700000001000);
  POSIX(EEXIST, "something is mapped", MMAP(va, 100, RW, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0));
  CHECK(MMAP(va, 100, RW, MAP_PRIVATE | MAP_FIXED, fd, 8192) == va);
  uint64_t next = MMAP(va + 4096, 3 * 4096, PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
  CHECK(next == va + 4096 && close(fd) == 0);

  POSIX(EINVAL, "MS_SYNC and MS_ASYNC", viaduct_msync(slot, va, 100, MS_SYNC | MS_ASYNC));
  POSIX(EINVAL, "unknown", viaduct_msync(slot, va, 100, 1 << 20));
  POSIX(EINVAL, "multiple", viaduct_msync(slot, va + 1, 100, MS_SYNC));
  POSIX(ENOMEM, "nothing is mapped", viaduct_msync(slot, va, 5 * 4096, MS_SYNC));
  POSIX(ENOMEM, "address space", viaduct_msync(slot, va, UINT64_MAX, MS_SYNC));
  OK(viaduct_msync(slot, va, 4 * 4096, MS_SYNC | MS_INVALIDATE));
  OK(viaduct_msync(slot, va, 0, MS_ASYNC));
  POSIX(EINVAL, "no advice", viaduct_madvise(slot, va, 100, 77));
  POSIX(ENOMEM, "nothing is mapped", viaduct_madvise(slot, 1 << 20, 100, MADV_WILLNEED));
  OK(viaduct_madvise(slot, va, 100, VIADUCT_MADV_REUSE));
  POSIX(EINVAL, "empty", viaduct_munmap(slot, va, 0));
  POSIX(EINVAL, "multiple", viaduct_munmap(slot, va + 100, 100));
  POSIX(EINVAL, "any address space", viaduct_munmap(slot, va, UINT64_MAX - va + 1));
  POSIX(EINVAL, "leaves", viaduct_munmap(slot, va, UINT64_MAX - va));
  POSIX(EINVAL, "NULL", viaduct_msync_begin(slot, va, 100, MS_SYNC, NULL));
  POSIX(EBADF, "NULL", viaduct_wait(NULL, 0));
  // A part in the middle, then the rest, and then nothing, which is no error.
  OK(viaduct_munmap(slot, va + 2 * 4096, 100));
  POSIX(ENOMEM, "nothing is mapped", viaduct_msync(slot, va, 4 * 4096, MS_ASYNC));
  OK(viaduct_msync(slot, va, 2 * 4096, MS_ASYNC));
  OK(viaduct_munmap(slot, va, 4 * 4096));
  OK(viaduct_munmap(slot, va, 4 * 4096));
  close(reads), close(writes), close(path), close(folder), close(pipes[0]), close(pipes[1]);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  CHECK(viaduct_error()[0] == 0);
  viaduct_card *card = NULL, *none = NULL;
  viaduct_slot *slot = NULL, *other = NULL;
  uint32_t word;
  uint64_t cycles;
  unsigned char data[128];
  fill(data, sizeof data, 1);

  // Cards.
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_open(NULL, NULL, &none));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_open(argv[1], NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "UTF-8", viaduct_open("sim:\xff", NULL, &none));
  FAILS(VIADUCT_E_ARGUMENT, "or sim", viaduct_open("", NULL, &none));
  FAILS(VIADUCT_E_ARGUMENT, "or sim", viaduct_open("pci:0", NULL, &none));
  FAILS(VIADUCT_E_NOT_FOUND, "gen3x16", viaduct_open("sim:gen9", NULL, &none));
  FAILS(VIADUCT_E_CARD, "/nowhere/a.sock", viaduct_open("unix:/nowhere/a.sock", NULL, &none));
  CHECK(none == NULL);
  FAILS(VIADUCT_E_HANDLE, "NULL", viaduct_time(NULL, &cycles));
  FAILS(VIADUCT_E_HANDLE, "not the handle", viaduct_time((viaduct_card*)data, &cycles));
  viaduct_timeouts timeouts = {2000, 0, 0};
  OK(viaduct_open(argv[1], &timeouts, &card));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_time(card, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "aligned", viaduct_time(card, (uint64_t*)(void*)(data + 1)));

  // Slots.
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_load(card, 0, NULL, &slot));
  FAILS(VIADUCT_E_NOT_FOUND, "did you mean pass?", viaduct_load(card, 0, "psas", &slot));
  FAILS(VIADUCT_E_NOT_FOUND, "no slot 99", viaduct_load(card, 99, "pass", &slot));
  FAILS(VIADUCT_E_NOT_FOUND, "no slot -2", viaduct_load(card, -2, "pass", &slot));
  FAILS(VIADUCT_E_IO, "nowhere.via", viaduct_load(card, 0, "nowhere.via", &slot));
  FAILS(VIADUCT_E_IO, "/dev/zero", viaduct_load(card, 0, "/dev/zero", &slot));
  FAILS(VIADUCT_E_ARGUMENT, "image", viaduct_load(card, 0, argv[0], &slot));
  CHECK(slot == NULL);
  OK(viaduct_load(card, 0, "aes", &slot));
  FAILS(VIADUCT_E_BUSY, "slot 0", viaduct_load(card, 0, "pass", &other));
  FAILS(VIADUCT_E_BUSY, "in use", viaduct_close(card));
  FAILS(VIADUCT_E_HANDLE, "open slot", viaduct_unload((viaduct_slot*)(void*)card));

  // Connections.
  viaduct_connection* link = NULL;
  size_t links = 7;
  int connected;
  FAILS(VIADUCT_E_HANDLE, "NULL", viaduct_connect(NULL, "slot:0", "slot:1", &link));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_connect(card, NULL, "slot:1", &link));
  FAILS(VIADUCT_E_ARGUMENT, "no end of a route", viaduct_connect(card, "slot:0", "slot:", &link));
  FAILS(VIADUCT_E_ARGUMENT, "claim it first", viaduct_connect(card, "slot:0", "slot:1", &link));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_connect(card, "slot:0", "slot:0", NULL));
  FAILS(VIADUCT_E_HANDLE, "NULL", viaduct_disconnect(link));
  FAILS(VIADUCT_E_HANDLE, "open connection", viaduct_connected((viaduct_connection*)(void*)slot, &connected));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_get_connections(card, NULL, 1, &links));
  CHECK(links == 7);
  OK(viaduct_get_connections(card, NULL, 0, &links));
  CHECK(links == 0);
  OK(viaduct_connect(card, "slot:0", "slot:0:0", &link));
  FAILS(VIADUCT_E_TOO_SMALL, "has 1 connections", viaduct_get_connections(card, NULL, 0, &links));
  viaduct_connection_info info;
  OK(viaduct_get_connections(card, &info, 1, &links));
  CHECK(links == 1 && strcmp(info.source, "slot:0:0") == 0 && strcmp(info.sink, "slot:0:0") == 0);
  OK(viaduct_connected(link, &connected));
  CHECK(connected == 1);
  OK(viaduct_disconnect(link));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_disconnect(link));

  // Registers.
  FAILS(VIADUCT_E_NOT_FOUND, "did you mean key?", viaduct_set(slot, "kye", "0"));
  FAILS(VIADUCT_E_ARGUMENT, "hexadecimal", viaduct_set(slot, "key", "zz"));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_set(slot, "key", NULL));
  FAILS(VIADUCT_E_ARGUMENT, "31 bytes given", viaduct_set_bytes(slot, "key", data, 31));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_set_bytes(slot, "key", NULL, 32));
  FAILS(VIADUCT_E_ARGUMENT, "more than memory can have", viaduct_set_bytes(slot, "key", data, SIZE_MAX));
  size_t length = 0;
  FAILS(VIADUCT_E_TOO_SMALL, "32 bytes", viaduct_get_bytes(slot, "key", data, 31, &length));
  CHECK(length == 32);
  FAILS(VIADUCT_E_ARGUMENT, "multiples of 4", viaduct_read32(slot, 2, &word));
  FAILS(VIADUCT_E_ARGUMENT, "multiples of 4", viaduct_write32(slot, 1 << 20, 0));

  // Routes.
  viaduct_route two[] = {route(VIADUCT_IN, data, 64), route(VIADUCT_OUT, data, 64)};
  FAILS(VIADUCT_E_ARGUMENT, "register key must be set", viaduct_run(slot, two, 2, NULL, NULL));
  OK(viaduct_set_bytes(slot, "key", data, 32));
  OK(viaduct_set(slot, "iv", "00000000000000000000000000000000"));
  FAILS(VIADUCT_E_ARGUMENT, "routes", viaduct_run(slot, NULL, 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "too many", viaduct_run(slot, two, 1000, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "output out has no route", viaduct_run(slot, two, 1, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "input in has no route", viaduct_run(slot, two, 0, NULL, NULL));
  viaduct_route wrong[2];
#define WITH(field, value) (memcpy(wrong, two, sizeof two), wrong[1].field = (value), wrong)
  FAILS(VIADUCT_E_ARGUMENT, "two routes", viaduct_run(slot, WITH(direction, VIADUCT_IN), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "7 is not a direction", viaduct_run(slot, WITH(direction, 7), 2, NULL, NULL));
  FAILS(VIADUCT_E_NOT_FOUND, "there is out only", viaduct_run(slot, WITH(port, "zzzz"), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "UTF-8", viaduct_run(slot, WITH(port, "\xc0"), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "reserved of routes[1] is 3",
        viaduct_run(slot, WITH(reserved, 3), 2, NULL, NULL));
  viaduct_run_options later = {0, NULL, NULL, 0, 9};
  FAILS(VIADUCT_E_ARGUMENT, "reserved of the options is 9", viaduct_run(slot, two, 2, &later, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "reserved of the options is 9",
        viaduct_start_and_wait(slot, 0, 0, 0, &later, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "endpoint", viaduct_run(slot, WITH(endpoint, "disk:1"), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "endpoint", viaduct_run(slot, WITH(endpoint, ""), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "capacity", viaduct_run(slot, WITH(endpoint, "host:64"), 2, NULL, NULL));
  FAILS(VIADUCT_E_IO, "/nowhere", viaduct_run(slot, WITH(endpoint, "file:/nowhere/x"), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_run(slot, WITH(data, NULL), 2, NULL, NULL));
  FAILS(VIADUCT_E_TOO_SMALL, "64 bytes", viaduct_run(slot, WITH(capacity, 63), 2, NULL, NULL));
  CHECK(wrong[1].length == 64);
  two[0].capacity = UINT64_MAX;
  FAILS(VIADUCT_E_ARGUMENT, "more than memory can have", viaduct_run(slot, two, 2, NULL, NULL));
  two[0].capacity = 64;
  FAILS(VIADUCT_E_ARGUMENT, "not a buffer", viaduct_free(data));
  OK(viaduct_free(NULL));

  FAILS(VIADUCT_E_NOT_FOUND, "no memory port", viaduct_start_and_wait(slot, 0, 0, 0, NULL, NULL));
  mappings(slot);

  // After all that, the slot works. AES in counter mode is its own inverse.
  unsigned char text[64], cipher[64], back[64];
  fill(text, sizeof text, 3);
  viaduct_route encrypt[] = {route(VIADUCT_IN, text, 64), route(VIADUCT_OUT, cipher, 64)};
  viaduct_route decrypt[] = {route(VIADUCT_IN, cipher, 64), route(VIADUCT_OUT, back, 64)};
  OK(viaduct_run(slot, encrypt, 2, NULL, NULL));
  OK(viaduct_run(slot, decrypt, 2, NULL, NULL));
  CHECK(memcmp(text, cipher, 64) != 0 && memcmp(text, back, 64) == 0);

  // A run that fails resets the app; its registers are as before.
  FAILS(VIADUCT_E_IO, "/dev/full",
        viaduct_run(slot, (memcpy(wrong, encrypt, sizeof wrong), wrong[1].endpoint = "file:/dev/full", wrong),
                    2, NULL, NULL));
  memset(back, 0, sizeof back);
  OK(viaduct_run(slot, decrypt, 2, NULL, NULL));
  CHECK(memcmp(text, back, 64) == 0);

  // Closed handles.
  OK(viaduct_unload(slot));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_unload(slot));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_run(slot, two, 2, NULL, NULL));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_set(slot, "key", "0"));
  OK(viaduct_close(card));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_close(card));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_load(card, 0, "pass", &slot));
  puts("as expected");
  return 0;
}
