// SPDX-License-Identifier: Apache-2.0
// Measures UDP round trips to a host that sends every datagram back, one at a time. Every reply is compared
// with the datagram sent. Prints one JSON object; exit code 1 if a reply was wrong or more than one in a
// thousand was lost.
//
//   udp_rtt ADDRESS PORT [-n ROUNDS] [-t MILLISECONDS] [-r FILE] [SIZE…]
//
// Sizes are payload bytes; by default 64 128 256 512 1024. -t: how long to wait for a reply; later ones are
// not counted. -r: append every time in nanoseconds to a file, one per line after its size.
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roundtrip.h"

enum { MaxSize = 65507 };

static uint8_t sent[MaxSize], got[MaxSize + 1];

enum response { Right, Wrong, Lost };

// Waits for the reply of this round; late replies of earlier rounds are skipped.
static enum response await(int fd, size_t size, uint64_t round, uint64_t limit_ns) {
  uint64_t end = now() + limit_ns;
  for (;;) {
    ssize_t n = recv(fd, got, sizeof got, MSG_DONTWAIT);
    if (n >= 0) {
      uint64_t number;
      if ((size_t)n != size) return Wrong;
      memcpy(&number, got, sizeof number);
      if (number < round) continue;
      return memcmp(sent, got, size) == 0 ? Right : Wrong;
    }
    if (errno != EAGAIN && errno != ECONNREFUSED && errno != EINTR) {
      perror("udp_rtt: recv");
      exit(1);
    }
    uint64_t at = now();
    if (at >= end) return Lost;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    poll(&wait, 1, (int)((end - at) / 1000000) + 1);
  }
}

static void usage(void) {
  fprintf(stderr, "usage: udp_rtt ADDRESS PORT [-n ROUNDS] [-t MILLISECONDS] [-r FILE] [SIZE...]\n");
  exit(2);
}

int main(int argc, char** argv) {
  if (argc < 3) usage();
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number(argv[2], 1, 65535))};
  if (inet_pton(AF_INET, argv[1], &to.sin_addr) != 1) usage();
  unsigned long rounds = 1000, patience = 1000;
  FILE* raw = NULL;
  optind = 3;
  for (int c; (c = getopt(argc, argv, "n:t:r:")) != -1;) {
    if (c == 'n') {
      rounds = number(optarg, 1, 100000000);
    } else if (c == 't') {
      patience = number(optarg, 1, 600000);
    } else if (c == 'r') {
      raw = append_to(optarg);
    } else {
      usage();
    }
  }
  size_t sizes[MaxSizes], kinds = sizes_of(argc - optind, argv + optind, sizes, MaxSize);

  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr*)&to, sizeof to) != 0) {
    perror("udp_rtt");
    return 1;
  }
  uint64_t* times = room_for("udp_rtt", rounds);

  bool good = true;
  uint64_t round = 0;
  printf("{\"peer\": \"%s\", \"rounds\": %lu, \"sizes\": [", argv[1], rounds);
  for (size_t k = 0; k < kinds; k++) {
    size_t size = sizes[k];
    unsigned long right = 0, wrong = 0, lost = 0, warm = 0;
    for (unsigned long i = 0; i < rounds + Warmup; i++) {
      fill(sent, size, ++round);
      uint64_t begun = now();
      if (send(fd, sent, size, 0) != (ssize_t)size && errno != ECONNREFUSED) {
        perror("udp_rtt: send");
        return 1;
      }
      enum response response = await(fd, size, round, patience * 1000000);
      uint64_t took = now() - begun;
      if (response == Wrong) wrong++;
      if (i < Warmup) {
        warm += response == Right;
        if (i == Warmup - 1 && warm == 0) break;
        continue;
      }
      if (response == Lost) lost++;
      if (response == Right) {
        times[right++] = took;
        if (raw != NULL) fprintf(raw, "%zu %llu\n", size, (unsigned long long)took);
      }
    }
    if (warm == 0) {
      printf("]}\n");
      fprintf(stderr, "udp_rtt: %s:%s replies to none of %d datagrams of %zu bytes\n", argv[1], argv[2],
              Warmup, size);
      return 1;
    }
    if (k > 0) printf(", ");
    print_times(size, times, right, lost, wrong);
    good = good && wrong == 0 && lost * 1000 <= rounds;
  }
  printf("]}\n");
  if (raw != NULL && fclose(raw) != 0) {
    perror("udp_rtt: -r");
    return 1;
  }
  return good ? 0 : 1;
}
