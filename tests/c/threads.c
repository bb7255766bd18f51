// SPDX-License-Identifier: Apache-2.0
// Threads with a slot each, and two threads with one slot: all data arrives at the right place.
// Argument: the card.
#define _GNU_SOURCE
#include <pthread.h>

#include "test.h"

#define THREADS 3
#define LENGTH 20000

static viaduct_card* card;
static viaduct_slot* shared;

static void* own_slot(void* number) {
  static unsigned char in[THREADS][LENGTH], out[THREADS][LENGTH];
  size_t me = (size_t)number;
  viaduct_slot* slot;
  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "pass", &slot));
  for (uint32_t run = 0; run < 3; run++) {
    fill(in[me], LENGTH, (uint32_t)me * 100 + run);
    viaduct_route routes[] = {route(VIADUCT_IN, in[me], LENGTH), route(VIADUCT_OUT, out[me], LENGTH)};
    OK(viaduct_run(slot, routes, 2, NULL, NULL));
    CHECK(memcmp(in[me], out[me], LENGTH) == 0);
  }
  // The text of this thread's own failure, independent of the others.
  char text[16];
  snprintf(text, sizeof text, "reg%zu", me);
  for (int i = 0; i < 100; i++) FAILS(VIADUCT_E_NOT_FOUND, text, viaduct_set(slot, text, "0"));
  OK(viaduct_unload(slot));
  return NULL;
}

// Returns how many of its runs found the slot busy.
static void* same_slot(void* number) {
  static unsigned char in[2][LENGTH], out[2][LENGTH];
  size_t me = (size_t)number, busy = 0;
  for (uint32_t run = 0; run < 4; run++) {
    fill(in[me], LENGTH, (uint32_t)me * 100 + run);
    viaduct_route routes[] = {route(VIADUCT_IN, in[me], LENGTH), route(VIADUCT_OUT, out[me], LENGTH)};
    int code = viaduct_run(shared, routes, 2, NULL, NULL);
    CHECK(code == VIADUCT_OK || code == VIADUCT_E_BUSY);
    if (code == VIADUCT_OK) CHECK(memcmp(in[me], out[me], LENGTH) == 0);
    busy += code == VIADUCT_E_BUSY;
  }
  return (void*)busy;
}

// A run that was begun has the slot at once, whichever thread comes first after that.
static void begun_first(void) {
  unsigned char data[64];
  viaduct_pending *first, *second;
  fill(data, sizeof data, 9);
  for (int i = 0; i < 20; i++) {
    int ends[2];
    char endpoint[32];
    CHECK(pipe(ends) == 0);
    snprintf(endpoint, sizeof endpoint, "fd:%d", ends[0]);
    viaduct_route begun[] = {{"in", VIADUCT_IN, 0, endpoint, NULL, 0, 0},
                             route(VIADUCT_OUT, NULL, VIADUCT_ALLOCATE)};
    viaduct_route later[] = {route(VIADUCT_IN, data, 64), route(VIADUCT_OUT, data, 64)};
    OK(viaduct_run_begin(shared, begun, 2, NULL, NULL, &first));
    FAILS(VIADUCT_E_BUSY, "a run is running", viaduct_run(shared, later, 2, NULL, NULL));
    POSIX(EBUSY, "a run is running", viaduct_run_begin(shared, later, 2, NULL, NULL, &second));
    CHECK(write(ends[1], data, 64) == 64 && close(ends[1]) == 0);
    OK(viaduct_wait(first, UINT32_MAX));
    CHECK(begun[1].length == 64 && memcmp(begun[1].data, data, 64) == 0);
    OK(viaduct_free(begun[1].data));
    close(ends[0]);
    OK(viaduct_run(shared, later, 2, NULL, NULL));
  }
  viaduct_slot* rng;
  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "rng", &rng));
  uint64_t va = map(rng, -1, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
  OK(viaduct_set(rng, "size", "64"));
  OK(viaduct_set(rng, "seed", "5"));
  OK(viaduct_set(rng, "count", "3000"));
  for (int i = 0; i < 10; i++) {
    OK(viaduct_start(rng, va, 65536, 0, NULL, NULL, &first));
    FAILS(VIADUCT_E_BUSY, "a memory run", viaduct_start_and_wait(rng, va, 65536, 0, NULL, NULL));
    OK(viaduct_wait(first, UINT32_MAX));
  }
  OK(viaduct_unload(rng));
}

static viaduct_route silent[2];
static volatile int returned = 1;

static void* is_cancelled(void* nothing) {
  returned = viaduct_run(shared, silent, 2, NULL, NULL);
  pthread_testcancel();
  return nothing;
}

// A thread that is cancelled in a call ends after it, and not inside of the library.
static void cancelled(void) {
  int ends[2];
  char endpoint[32];
  void* result;
  pthread_t thread;
  CHECK(pipe(ends) == 0);
  snprintf(endpoint, sizeof endpoint, "fd:%d", ends[0]);
  silent[0] = route(VIADUCT_IN, NULL, 0);
  silent[0].endpoint = endpoint;
  silent[1] = route(VIADUCT_OUT, NULL, VIADUCT_ALLOCATE);
  CHECK(pthread_create(&thread, NULL, is_cancelled, NULL) == 0);
  usleep(300000);
  CHECK(pthread_cancel(thread) == 0);
  usleep(300000);
  CHECK(returned == 1 && write(ends[1], "viaduct", 7) == 7 && close(ends[1]) == 0);
  CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  CHECK(returned == VIADUCT_OK && silent[1].length == 7 && memcmp(silent[1].data, "viaduct", 7) == 0);
  OK(viaduct_free(silent[1].data));
  close(ends[0]);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  pthread_t threads[THREADS];
  OK(viaduct_open(argv[1], NULL, &card));
  for (size_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, own_slot, (void*)i) == 0);
  for (size_t i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);

  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "pass", &shared));
  size_t busy = 0;
  for (size_t i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, same_slot, (void*)i) == 0);
  for (size_t i = 0; i < 2; i++) {
    void* result;
    CHECK(pthread_join(threads[i], &result) == 0);
    busy += (size_t)result;
  }
  CHECK(busy < 8);
  begun_first();
  cancelled();
  OK(viaduct_unload(shared));
  OK(viaduct_close(card));
  puts("as expected");
  return 0;
}
