// SPDX-License-Identifier: Apache-2.0
// Effects of the process: fork, stopped runs, descriptors, signals and limits.
// Arguments: the card, a folder for files.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define LENGTH 300000

static unsigned char in[LENGTH], out[LENGTH];

static void works(viaduct_slot* slot) {
  viaduct_route routes[] = {route(VIADUCT_IN, in, LENGTH), route(VIADUCT_OUT, out, LENGTH)};
  memset(out, 0, sizeof out);
  OK(viaduct_run(slot, routes, 2, NULL, NULL));
  CHECK(memcmp(in, out, LENGTH) == 0);
}

// Ends with the exit code of the child, which is killed if it hangs.
static int in_a_child(void (*work)(viaduct_card*, viaduct_slot*), viaduct_card* card, viaduct_slot* slot) {
  int status;
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(200);
    work(card, slot);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void refused(viaduct_card* card, viaduct_slot* slot) {
  uint64_t cycles;
  uint32_t word;
  viaduct_route routes[] = {route(VIADUCT_IN, in, 64), route(VIADUCT_OUT, out, 64)};
  FAILS(VIADUCT_E_HANDLE, "before fork()", viaduct_time(card, &cycles));
  FAILS(VIADUCT_E_HANDLE, "before fork()", viaduct_read32(slot, 0, &word));
  FAILS(VIADUCT_E_HANDLE, "before fork()", viaduct_run(slot, routes, 2, NULL, NULL));
  FAILS(VIADUCT_E_HANDLE, "before fork()", viaduct_unload(slot));
  FAILS(VIADUCT_E_HANDLE, "before fork()", viaduct_close(card));
  OK(viaduct_free(in));  // may be a copy of the parent's buffer
}

static void has_its_own(viaduct_card* card, viaduct_slot* slot) {
  viaduct_card* mine;
  refused(card, slot);
  OK(viaduct_open("sim", NULL, &mine));
  OK(viaduct_load(mine, VIADUCT_ANY_SLOT, "pass", &slot));
  works(slot);
  OK(viaduct_unload(slot));
  OK(viaduct_close(mine));
}

static volatile int enough;

static void* runs(void* slot) {
  static unsigned char from[4096], to[4096];
  while (!enough) {
    viaduct_route routes[] = {route(VIADUCT_IN, from, sizeof from), route(VIADUCT_OUT, to, sizeof to)};
    OK(viaduct_run(slot, routes, 2, NULL, NULL));
  }
  return NULL;
}

static void forks(viaduct_card* card, viaduct_slot* slot) {
  CHECK(in_a_child(has_its_own, card, slot) == 0);
  works(slot);
  // While another thread is in a call.
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, runs, slot) == 0);
  for (int i = 0; i < 20; i++) CHECK(in_a_child(refused, card, slot) == 0);
  enough = 1;
  CHECK(pthread_join(thread, NULL) == 0);
  works(slot);
}

static int stop_after(void* left, const viaduct_progress* now) {
  (void)now;
  return --*(int*)left == 0;
}

static void stops(viaduct_card* card, viaduct_slot* slot) {
  int left = 3, ends[2];
  char endpoint[32];
  viaduct_run_options options = {4096, stop_after, &left, 0, 0};
  viaduct_route routes[] = {route(VIADUCT_IN, in, LENGTH), route(VIADUCT_OUT, out, LENGTH)};
  FAILS(VIADUCT_E_STOPPED, "stopped by the program", viaduct_run(slot, routes, 2, &options, NULL));
  CHECK(left == 0);
  works(slot);
  // No data arrives, and the progress function is still called.
  left = 3;
  CHECK(pipe(ends) == 0);
  snprintf(endpoint, sizeof endpoint, "fd:%d", ends[0]);
  viaduct_route silent[] = {{"in", VIADUCT_IN, 0, endpoint, NULL, 0, 0},
                            route(VIADUCT_OUT, NULL, VIADUCT_ALLOCATE)};
  FAILS(VIADUCT_E_STOPPED, "stopped by the program", viaduct_run(slot, silent, 2, &options, NULL));
  CHECK(left == 0);
  // The descriptor is still open, and data written to it is not lost.
  CHECK(write(ends[1], "viaduct", 7) == 7 && close(ends[1]) == 0);
  OK(viaduct_run(slot, silent, 2, NULL, NULL));
  CHECK(silent[1].length == 7 && memcmp(silent[1].data, "viaduct", 7) == 0);
  OK(viaduct_free(silent[1].data));
  close(ends[0]);

  viaduct_slot* rng;
  OK(viaduct_load(card, VIADUCT_ANY_SLOT, "rng", &rng));
  uint64_t va = map(rng, -1, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
  OK(viaduct_set(rng, "size", "64"));
  OK(viaduct_set(rng, "seed", "5"));
  OK(viaduct_set(rng, "count", "1000000000"));
  options.chunk_bytes = 0;
  left = 2;
  FAILS(VIADUCT_E_STOPPED, "stopped by the program",
        viaduct_start_and_wait(rng, va, 65536, 0, &options, NULL));
  OK(viaduct_set(rng, "count", "10"));
  OK(viaduct_start_and_wait(rng, va, 65536, 0, NULL, NULL));
  OK(viaduct_unload(rng));
}

// Neither SIGPIPE nor SIGXFSZ, which would end this program.
static void fails_without_a_signal(viaduct_slot* slot, const char* folder) {
  int ends[2];
  char endpoint[600], path[512];
  viaduct_run_options options = {4096, NULL, NULL, 0, 0};
  CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
  snprintf(endpoint, sizeof endpoint, "fd:%d", ends[1]);
  viaduct_route routes[] = {route(VIADUCT_IN, in, LENGTH), {"out", VIADUCT_OUT, 0, endpoint, NULL, 0, 0}};
  FAILS(VIADUCT_E_IO, "Broken pipe", viaduct_run(slot, routes, 2, &options, NULL));
  close(ends[1]);

  struct rlimit before, small;
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
  small = before;
  small.rlim_cur = 100000;
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  snprintf(path, sizeof path, "%s/large", folder);
  snprintf(endpoint, sizeof endpoint, "file:%s", path);
  FAILS(VIADUCT_E_IO, "File too large", viaduct_run(slot, routes, 2, &options, NULL));
  int file = open(path, O_RDONLY);
  CHECK(file >= 0 && read(file, out, LENGTH) == 100000 && memcmp(in, out, 100000) == 0);
  close(file);
  // Memory for the card counts as a file.
  FAILS(VIADUCT_E_MEMORY, "ulimit -f", viaduct_run(slot, routes, 2, NULL, NULL));
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
  works(slot);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  viaduct_card* card;
  viaduct_slot* slot;
  fill(in, LENGTH, 7);
  OK(viaduct_open(argv[1], NULL, &card));
  OK(viaduct_load(card, 0, "pass", &slot));
  works(slot);
  stops(card, slot);
  fails_without_a_signal(slot, argv[2]);
  forks(card, slot);
  OK(viaduct_unload(slot));
  OK(viaduct_close(card));
  puts("as expected");
  return 0;
}
