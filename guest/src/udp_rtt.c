// SPDX-License-Identifier: Apache-2.0
// UDP round trips to a host that sends every datagram back: how long each takes. One is on its way at a time;
// every answer is compared with what was sent. Prints one JSON object; exit code 1 if an answer was wrong or
// more than one in a thousand got lost.
//
//   udp_rtt ADDRESS PORT [-n ROUNDS] [-t MILLISECONDS] [-r FILE] [SIZE…]
//
// Sizes are payload bytes; without any: 64 128 256 512 1024. -t: how long to wait for an answer; what comes
// later is not counted. -r: append every time in nanoseconds to a file, one a line after its size.
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MaxSize = 65507, MinSize = 8, Warmup = 20 };

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

// Payload of a round: its number, then bytes that differ from round to round.
static void fill(uint8_t* to, size_t size, uint64_t round) {
  uint64_t x = round * 0x9e3779b97f4a7c15u + size;
  memcpy(to, &round, sizeof round);
  for (size_t i = sizeof round; i < size; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    to[i] = (uint8_t)x;
  }
}

static uint8_t sent[MaxSize], got[MaxSize + 1];

enum answer { Right, Wrong, Lost };

// Waits for the answer of this round; older ones, that came too late, are passed over.
static enum answer await(int fd, size_t size, uint64_t round, uint64_t limit_ns) {
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

static unsigned long number(const char* text, unsigned long low, unsigned long high) {
  char* end;
  unsigned long value = strtoul(text, &end, 10);
  if (*text == 0 || *end != 0 || value < low || value > high) {
    fprintf(stderr, "udp_rtt: %s is not a number from %lu to %lu\n", text, low, high);
    exit(2);
  }
  return value;
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
      raw = fopen(optarg, "a");
      if (raw == NULL) {
        perror(optarg);
        return 1;
      }
    } else {
      usage();
    }
  }
  size_t sizes[64] = {64, 128, 256, 512, 1024}, kinds = 5;
  if (optind < argc) kinds = 0;
  for (int i = optind; i < argc && kinds < 64; i++) sizes[kinds++] = number(argv[i], MinSize, MaxSize);

  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr*)&to, sizeof to) != 0) {
    perror("udp_rtt");
    return 1;
  }
  uint64_t* times = malloc(rounds * sizeof *times);
  if (times == NULL) {
    fprintf(stderr, "udp_rtt: no memory for %lu rounds\n", rounds);
    return 1;
  }

  bool good = true;
  uint64_t round = 0;
  printf("{\"peer\": \"%s\", \"rounds\": %lu, \"sizes\": [", argv[1], rounds);
  for (size_t k = 0; k < kinds; k++) {
    size_t size = sizes[k];
    unsigned long right = 0, wrong = 0, lost = 0, warm = 0;
    // The first ones find addresses and fill caches; they are checked and not counted.
    for (unsigned long i = 0; i < rounds + Warmup; i++) {
      fill(sent, size, ++round);
      uint64_t begun = now();
      if (send(fd, sent, size, 0) != (ssize_t)size && errno != ECONNREFUSED) {
        perror("udp_rtt: send");
        return 1;
      }
      enum answer answer = await(fd, size, round, patience * 1000000);
      uint64_t took = now() - begun;
      if (answer == Wrong) wrong++;
      if (i < Warmup) {
        warm += answer == Right;
        if (i == Warmup - 1 && warm == 0) break;
        continue;
      }
      if (answer == Lost) lost++;
      if (answer == Right) {
        times[right++] = took;
        if (raw != NULL) fprintf(raw, "%zu %llu\n", size, (unsigned long long)took);
      }
    }
    if (warm == 0) {
      printf("]}\n");
      fprintf(stderr, "udp_rtt: %s:%s answers none of %d datagrams of %zu bytes\n", argv[1], argv[2], Warmup,
              size);
      return 1;
    }
    qsort(times, right, sizeof *times, by_value);
    double sum = 0;
    for (unsigned long i = 0; i < right; i++) sum += (double)times[i];
    printf("%s{\"size\": %zu, \"answered\": %lu, \"lost\": %lu, \"wrong\": %lu", k ? ", " : "", size, right,
           lost, wrong);
    if (right > 0) {
      static const struct {
        const char* name;
        double share;
      } marks[] = {{"min", 0}, {"p50", .5}, {"p95", .95}, {"p99", .99}, {"p99.9", .999}, {"max", 1}};
      printf(", \"unit\": \"us\", \"mean\": %.3f", sum / (double)right / 1e3);
      for (size_t m = 0; m < sizeof marks / sizeof *marks; m++) {
        unsigned long at = (unsigned long)(marks[m].share * (double)(right - 1) + .5);
        printf(", \"%s\": %.3f", marks[m].name, (double)times[at] / 1e3);
      }
    }
    printf("}");
    fflush(stdout);
    good = good && wrong == 0 && lost * 1000 <= rounds;
  }
  printf("]}\n");
  if (raw != NULL && fclose(raw) != 0) {
    perror("udp_rtt: -r");
    return 1;
  }
  return good ? 0 : 1;
}
