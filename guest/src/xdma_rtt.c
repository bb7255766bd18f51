// SPDX-License-Identifier: Apache-2.0
// Measures round trips through the device files of kernel/xdma: a write to card memory and a read from the
// same address. The data read is compared with the data written. Prints a JSON object like that of udp_rtt;
// exit code 1 if data was wrong or a transfer failed.
//
//   xdma_rtt CARD [-n ROUNDS] [-r FILE] [SIZE...]
//
// CARD: common prefix of its device files, /dev/viaduct_xdma0. -r: append every time in nanoseconds to a
// file, one per line after its size.
#include <fcntl.h>
#include <unistd.h>

#include "roundtrip.h"

enum { MaxSize = 1 << 20 };

static uint8_t sent[MaxSize] __attribute__((aligned(4096))), got[MaxSize] __attribute__((aligned(4096)));

static void usage(void) {
  fprintf(stderr, "usage: xdma_rtt CARD [-n ROUNDS] [-r FILE] [SIZE...]\n");
  exit(2);
}

static int channel(const char* card, const char* name, int flags) {
  char path[256];
  snprintf(path, sizeof path, "%s_%s", card, name);
  int fd = open(path, flags);
  if (fd < 0) {
    perror(path);
    exit(1);
  }
  return fd;
}

int main(int argc, char** argv) {
  if (argc < 2) usage();
  unsigned long rounds = 1000;
  FILE* raw = NULL;
  optind = 2;
  for (int c; (c = getopt(argc, argv, "n:r:")) != -1;) {
    if (c == 'n') {
      rounds = number(optarg, 1, 100000000);
    } else if (c == 'r') {
      raw = append_to(optarg);
    } else {
      usage();
    }
  }
  size_t sizes[MaxSizes], kinds = sizes_of(argc - optind, argv + optind, sizes, MaxSize);
  int to_card = channel(argv[1], "h2c_0", O_WRONLY), from_card = channel(argv[1], "c2h_0", O_RDONLY);
  uint64_t* times = room_for("xdma_rtt", rounds);

  bool good = true;
  uint64_t round = 0;
  printf("{\"peer\": \"%s\", \"rounds\": %lu, \"sizes\": [", argv[1], rounds);
  for (size_t k = 0; k < kinds; k++) {
    size_t size = sizes[k];
    unsigned long right = 0, wrong = 0;
    for (unsigned long i = 0; i < rounds + Warmup; i++) {
      fill(sent, size, ++round);
      uint64_t begun = now();
      if (pwrite(to_card, sent, size, 0) != (ssize_t)size ||
          pread(from_card, got, size, 0) != (ssize_t)size) {
        perror("xdma_rtt: transfer");
        return 1;
      }
      uint64_t took = now() - begun;
      bool same = memcmp(sent, got, size) == 0;
      wrong += !same;
      if (i < Warmup || !same) continue;
      times[right++] = took;
      if (raw != NULL) fprintf(raw, "%zu %llu\n", size, (unsigned long long)took);
    }
    if (k > 0) printf(", ");
    print_times(size, times, right, 0, wrong);
    good = good && wrong == 0;
  }
  printf("]}\n");
  if (raw != NULL && fclose(raw) != 0) {
    perror("xdma_rtt: -r");
    return 1;
  }
  return good ? 0 : 1;
}
