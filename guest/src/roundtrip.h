// SPDX-License-Identifier: Apache-2.0
// Shared by the programs that measure round trips: time, payload, and the distribution as JSON.
#ifndef GUEST_ROUNDTRIP_H
#define GUEST_ROUNDTRIP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The first round trips of each size resolve addresses and fill caches: they are checked, but not counted.
enum { MinSize = 8, Warmup = 20, MaxSizes = 64 };

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

static unsigned long number(const char* text, unsigned long low, unsigned long high) {
  char* end;
  unsigned long value = strtoul(text, &end, 10);
  if (*text == 0 || *end != 0 || value < low || value > high) {
    fprintf(stderr, "%s is not a number from %lu to %lu\n", text, low, high);
    exit(2);
  }
  return value;
}

// Sizes in bytes from the remaining arguments; the usual ones if there are none.
static size_t sizes_of(int count, char** words, size_t* sizes, size_t most) {
  static const size_t usual[] = {64, 128, 256, 512, 1024};
  size_t kinds = 0;
  while (kinds < (size_t)count && kinds < MaxSizes) {
    sizes[kinds] = number(words[kinds], MinSize, most);
    kinds++;
  }
  if (kinds > 0) return kinds;
  memcpy(sizes, usual, sizeof usual);
  return sizeof usual / sizeof *usual;
}

// The file of option -r.
static FILE* append_to(const char* path) {
  FILE* file = fopen(path, "a");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  return file;
}

// Memory for the time of each round.
static uint64_t* room_for(const char* program, unsigned long rounds) {
  uint64_t* times = malloc(rounds * sizeof *times);
  if (times == NULL) {
    fprintf(stderr, "%s: no memory for %lu rounds\n", program, rounds);
    exit(1);
  }
  return times;
}

// One size's object, times in microseconds; sorts the times.
static void print_times(size_t size, uint64_t* times, unsigned long right, unsigned long lost,
                        unsigned long wrong) {
  static const struct {
    const char* name;
    double share;
  } marks[] = {{"min", 0}, {"p50", .5}, {"p95", .95}, {"p99", .99}, {"p99.9", .999}, {"max", 1}};
  printf("{\"size\": %zu, \"warmup\": %d, \"answered\": %lu, \"lost\": %lu, \"wrong\": %lu", size, Warmup,
         right, lost, wrong);
  if (right > 0) {
    double sum = 0;
    for (unsigned long i = 0; i < right; i++) sum += (double)times[i];
    qsort(times, right, sizeof *times, by_value);
    printf(", \"unit\": \"us\", \"mean\": %.3f", sum / (double)right / 1e3);
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++) {
      unsigned long at = (unsigned long)(marks[m].share * (double)(right - 1) + .5);
      printf(", \"%s\": %.3f", marks[m].name, (double)times[at] / 1e3);
    }
  }
  printf("}");
  fflush(stdout);
}

#endif
