/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* for madvise() */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <viaduct.h>

/* Lets the app update words of the file at random; 0, or -1 after a message. */
static int update(viaduct_slot* slot, int fd, uint64_t length, const char* updates) {
  viaduct_pending* loading;
  viaduct_report report;
  viaduct_pager pager;
  uint64_t va = viaduct_mmap(slot, 0, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (va == VIADUCT_MAP_FAILED) {
    fprintf(stderr, "mmap: %s: %s\n", strerror(errno), viaduct_error());
    return -1;
  }

  /* The table is loaded while the app's registers are set. */
  if (viaduct_madvise(slot, va, length, MADV_RANDOM) != 0 ||
      viaduct_madvise_begin(slot, va, length, MADV_WILLNEED, &loading) != 0 ||
      viaduct_set(slot, "updates", updates) != 0 || viaduct_wait(loading, UINT32_MAX) != 0 ||
      viaduct_start_and_wait(slot, va, length, 0, NULL, &report) != 0 ||
      viaduct_msync(slot, va, length, MS_SYNC) != 0 || viaduct_get_pager(slot, &pager) != 0) {
    fprintf(stderr, "%s\n", viaduct_error());
    return -1;
  }
  printf("%llu cycles, %llu pages loaded, %llu written\n", (unsigned long long)report.cycles,
         (unsigned long long)pager.pages_in, (unsigned long long)pager.pages_out);
  return viaduct_munmap(slot, va, length);
}

int main(int argc, char** argv) {
  viaduct_card* card;
  viaduct_slot* slot;
  if (argc != 3) {
    fprintf(stderr, "usage: updates TABLE UPDATES\n");
    return 2;
  }
  int result = -1, fd = open(argv[1], O_RDWR);
  off_t length = lseek(fd, 0, SEEK_END);
  if (length < 0) {
    perror(argv[1]);
    return 1;
  }
  if (viaduct_open("sim", NULL, &card) == 0) {
    if (viaduct_load(card, VIADUCT_ANY_SLOT, "gups", &slot) == 0) {
      result = update(slot, fd, (uint64_t)length, argv[2]);
      viaduct_unload(slot);
    } else {
      fprintf(stderr, "%s\n", viaduct_error());
    }
    viaduct_close(card);
  } else {
    fprintf(stderr, "%s\n", viaduct_error());
  }
  close(fd);
  return result != 0;
}
