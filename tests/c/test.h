// SPDX-License-Identifier: Apache-2.0
// Shared by the C tests: checks that print their line.
#ifndef TEST_H
#define TEST_H
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "viaduct.h"

// The call succeeds.
#define OK(call)                                                                        \
  do {                                                                                  \
    int ok_code = (call);                                                               \
    if (ok_code != VIADUCT_OK) {                                                        \
      fprintf(stderr, "%s:%d: %d: %s\n", __FILE__, __LINE__, ok_code, viaduct_error()); \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)

// Whether errno is the number that the header has beside this code. Others may have the system's.
static inline int is_number_of(int code) {
  switch (code) {
    case VIADUCT_E_ARGUMENT:
      return errno == EINVAL;
    case VIADUCT_E_HANDLE:
      return errno == EBADF;
    case VIADUCT_E_NOT_FOUND:
      return errno == ENOENT;
    case VIADUCT_E_BUSY:
      return errno == EBUSY;
    case VIADUCT_E_TOO_SMALL:
      return errno == ERANGE;
    case VIADUCT_E_MEMORY:
      return errno == ENOMEM;
    case VIADUCT_E_STOPPED:
      return errno == ECANCELED;
    default:
      return errno != 0;
  }
}

// The call fails with this code, its error number, and these words in its text.
#define FAILS(code, words, call)                                                                            \
  do {                                                                                                      \
    errno = 0;                                                                                              \
    int fails_code = (call);                                                                                \
    if (fails_code != (code) || !is_number_of(code) || strstr(viaduct_error(), words) == NULL) {            \
      fprintf(stderr, "%s:%d: %d, errno %d: %s\n", __FILE__, __LINE__, fails_code, errno, viaduct_error()); \
      exit(1);                                                                                              \
    }                                                                                                       \
  } while (0)

// The call returns -1, or VIADUCT_MAP_FAILED, with this number in errno and these words in the text.
#define POSIX(number, words, call)                                                                       \
  do {                                                                                                   \
    errno = 0;                                                                                           \
    int64_t posix_result = (int64_t)(call);                                                              \
    if (posix_result != -1 || errno != (number) || strstr(viaduct_error(), words) == NULL) {             \
      fprintf(stderr, "%s:%d: %lld, errno %d: %s\n", __FILE__, __LINE__, (long long)posix_result, errno, \
              viaduct_error());                                                                          \
      exit(1);                                                                                           \
    }                                                                                                    \
  } while (0)

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

// Maps all of it, or ends the program.
static inline uint64_t map(viaduct_slot* slot, int fd, uint64_t length, int prot, int flags) {
  uint64_t va = viaduct_mmap(slot, 0, length, prot, flags, fd, 0);
  if (va == VIADUCT_MAP_FAILED) {
    fprintf(stderr, "errno %d: %s\n", errno, viaduct_error());
    exit(1);
  }
  return va;
}

// A route between a stream and memory.
static inline viaduct_route route(int32_t direction, void* data, uint64_t capacity) {
  viaduct_route r = {NULL, direction, 0, NULL, data, capacity, 0};
  return r;
}

// Deterministic bytes that differ from one offset to the next.
static inline void fill(unsigned char* data, size_t length, uint32_t seed) {
  for (size_t i = 0; i < length; i++) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = (unsigned char)(seed >> 24);
  }
}
#endif
