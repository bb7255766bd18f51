/* SPDX-License-Identifier: Apache-2.0 */
/* Listing 2 of the paper on the system-level FPGA driver (Vipin et al., FPT 2013), on a Viaduct card: every
 * word of a vector is incremented by app `inc`. With COUNT as its argument it does so for that many words. */
#include <stdio.h>
#include <stdlib.h>
#include <viaduct_fpga.h>

/* What the app does. */
static void foo(const uint32_t* a, uint32_t* b) {
  *b = *a + 1;
}

static int run(uint32_t* host_a, uint32_t* host_b, size_t count) {
  size_t size_a = count * sizeof *host_a, size_b = count * sizeof *host_b;
  fpga_address device_a, device_b;

  /* allocate fpga dram memory */
  device_a = fpga_malloc(size_a);
  device_b = fpga_malloc(size_b);
  if (device_a == FPGA_NO_MEMORY || device_b == FPGA_NO_MEMORY) return -1;

  /* call FPGA logic */
  if (load_bitstream("inc", USER1) != 0) return -1;

  /* copy inputs */
  if (fpga_transfer_data(HOST, USER1, device_a, host_a, size_a) != 0) return -1;

  /* copy outputs */
  if (fpga_transfer_data(USER1, HOST, device_b, host_b, size_b) != 0) return -1;

  /* free fpga dram memory */
  return fpga_wait_interrupt(USER1) != 0 || fpga_free(device_a) != 0 || fpga_free(device_b) != 0 ? -1 : 0;
}

int main(int argc, char** argv) {
  size_t count = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000, wrong = 0;
  uint32_t *a = calloc(count + 1, sizeof *a), *b = calloc(count + 1, sizeof *b);
  int done = -1;
  if (a != NULL && b != NULL) {
    for (size_t i = 0; i < count; i++) a[i] = (uint32_t)(i * 2654435761u);
    done = run(a, b, count);
    if (done != 0) fprintf(stderr, "%s\n", fpga_error());
    for (size_t i = 0; i < count && done == 0; i++) {
      uint32_t expected;
      foo(&a[i], &expected);
      wrong += b[i] != expected;
    }
    if (done == 0) printf("%zu words, %zu wrong\n", count, wrong);
  }
  fpga_close();
  free(a);
  free(b);
  return done != 0 || wrong != 0;
}
