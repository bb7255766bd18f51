// SPDX-License-Identifier: Apache-2.0
// Threads with a slot each, and two threads with one slot: all data arrives at the right place.
// Argument: the card.
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
  OK(viaduct_unload(shared));
  OK(viaduct_close(card));
  puts("as expected");
  return 0;
}
