// SPDX-License-Identifier: Apache-2.0
// Every call of the paper's table II (viaduct_fpga.h), right and wrong, on the simulated card.
#include "test.h"
#include "viaduct_fpga.h"

// The call is refused with this number, and these words in the text.
#define REFUSED(number, words, call)                                                                  \
  do {                                                                                                \
    int refused = (call);                                                                             \
    if (refused != -(number) || errno != (number) || strstr(fpga_error(), words) == NULL) {           \
      fprintf(stderr, "%s:%d: %d, errno %d: %s\n", __FILE__, __LINE__, refused, errno, fpga_error()); \
      exit(1);                                                                                        \
    }                                                                                                 \
  } while (0)

#define DONE(call)                                                                \
  do {                                                                            \
    int done = (call);                                                            \
    if (done != 0) {                                                              \
      fprintf(stderr, "%s:%d: %d: %s\n", __FILE__, __LINE__, done, fpga_error()); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

enum { COUNT = 5000, BYTES = 4 * COUNT };
static uint32_t a[COUNT], b[COUNT], c[COUNT];

static int incremented(const uint32_t* from, const uint32_t* to, uint32_t by) {
  for (int i = 0; i < COUNT; i++) {
    if (to[i] != from[i] + by) return 0;
  }
  return 1;
}

static void memory(void) {
  fpga_address one = fpga_malloc(BYTES), two = fpga_malloc(8 << 20);
  CHECK(one != FPGA_NO_MEMORY && two != FPGA_NO_MEMORY && one != two);
  CHECK(fpga_malloc(UINT64_MAX) == FPGA_NO_MEMORY && errno == ENOMEM);
  CHECK(fpga_malloc(0) == FPGA_NO_MEMORY && errno == EINVAL);

  // Copies, also to a place inside, before any app is loaded.
  DONE(fpga_transfer_data(HOST, DRAM, a, BYTES, one));
  DONE(fpga_transfer_data(DRAM, HOST, b, BYTES, one));
  CHECK(memcmp(a, b, BYTES) == 0);
  DONE(fpga_send_data(DRAM, a, 100, one + 13));
  DONE(fpga_recv_data(DRAM, b, BYTES, one));
  CHECK(memcmp((char*)b + 13, a, 100) == 0 && memcmp((char*)b + 113, (char*)a + 113, BYTES - 113) == 0);

  // Deferred ones: the data is there after the wait, and one at a time each way.
  DONE(fpga_transfer_data(HOST, DRAM, a, BYTES, one, 0));
  REFUSED(EBUSY, "fpga_wait_interrupt(DRAM)", fpga_transfer_data(HOST, DRAM, a, BYTES, two, 0));
  DONE(fpga_wait_interrupt(DRAM));
  DONE(fpga_transfer_data(DRAM, HOST, b, BYTES, one, 0));
  DONE(fpga_wait_interrupt(DRAM));
  DONE(fpga_wait_interrupt(DRAM));
  CHECK(memcmp(a, b, BYTES) == 0);

  // Words.
  DONE(fpga_ddr_pio_wr(one + 44, 0xdeadbeef));
  CHECK(fpga_ddr_pio_rd(one + 44) == 0xdeadbeef && fpga_ddr_pio_rd(one + 40) == a[10]);
  CHECK(fpga_ddr_pio_rd(one + 48) == a[12]);

  // What this program has not allocated is refused, and so is what is freed or in part outside.
  REFUSED(EINVAL, "not in memory", fpga_ddr_pio_wr(one + (3ull << 34), 1));
  REFUSED(EINVAL, "multiple of 4", fpga_ddr_pio_wr(one + 2, 1));
  REFUSED(EINVAL, "allocated", fpga_transfer_data(HOST, DRAM, a, BYTES, one + 4));
  REFUSED(EINVAL, "NULL", fpga_transfer_data(HOST, DRAM, NULL, BYTES, one));
  REFUSED(EINVAL, "begins at", fpga_free(one + 4096));
  DONE(fpga_free(one));
  DONE(fpga_free(two));
  REFUSED(EINVAL, "begins at", fpga_free(one));
  REFUSED(EINVAL, "not in memory", fpga_transfer_data(DRAM, HOST, b, 4, one));
}

static void apps(void) {
  fpga_address in = fpga_malloc(BYTES), out = fpga_malloc(BYTES);
  REFUSED(ENOENT, "load_bitstream", fpga_transfer_data(HOST, USERPCIE1, a, BYTES, 0));
  REFUSED(EINVAL, "user channel", load_bitstream("inc", DRAM));
  REFUSED(ENOENT, "did you mean inc?", load_bitstream("icn", USER1));
  DONE(load_bitstream("inc", USER1));
  DONE(load_bitstream("inc", USER4));  // where the copies before have been

  // By way of card memory, one call after the other; listing 2 and table II.
  DONE(fpga_transfer_data(HOST, USER1, in, a, BYTES));
  DONE(fpga_transfer_data(USER1, HOST, out, b, BYTES));
  CHECK(incremented(a, b, 1));
  DONE(fpga_transfer_data(DRAM, USERDRAM4, NULL, BYTES, out));
  DONE(fpga_transfer_data(USERDRAM4, DRAM, NULL, BYTES, in));
  DONE(fpga_transfer_data(DRAM, HOST, c, BYTES, in));
  CHECK(incremented(a, c, 2));

  // Between host memory and the app: the input is deferred. In use: neither freed nor used twice.
  memset(b, 0, BYTES);
  DONE(fpga_transfer_data(HOST, USERPCIE1, a, BYTES, 0, 0));
  REFUSED(EBUSY, "under way", fpga_transfer_data(HOST, USERPCIE1, a, BYTES, 0, 0));
  DONE(fpga_transfer_data(USERPCIE1, HOST, b, BYTES, 0, 0));
  DONE(fpga_wait_interrupt(USERPCIE1));
  CHECK(incremented(a, b, 1));
  DONE(fpga_transfer_data(DRAM, USERDRAM1, NULL, BYTES, in));
  REFUSED(EBUSY, "using the card memory", fpga_free(in));
  DONE(fpga_transfer_data(USERPCIE1, HOST, b, BYTES, 0));
  DONE(fpga_wait_interrupt(USERDRAM1));
  CHECK(incremented(a, b, 3));

  // Registers, of the app and of the card; a reset of the apps.
  DONE(fpga_reg_wr(FPGA_USER_REG(1, 0), 10));
  CHECK(fpga_reg_rd(FPGA_USER_REG(1, 0)) == 10);
  CHECK(fpga_reg_rd(0) == 0x56494144);
  DONE(fpga_reg_wr(0x1c, 77));
  CHECK(fpga_reg_rd(0x1c) == 77);
  REFUSED(EINVAL, "for the library", fpga_reg_wr(0x4c, 1));
  REFUSED(ENOENT, "load_bitstream", fpga_reg_wr(FPGA_USER_REG(2, 0), 1));
  CHECK(fpga_reg_rd(FPGA_USER_REG(9, 0)) == FPGA_FAILED && errno == ENOENT);
  REFUSED(EINVAL, "offset", fpga_reg_wr(FPGA_USER_REG(1, 0x1000), 1));
  DONE(user_soft_reset(1));
  CHECK(fpga_reg_rd(FPGA_USER_REG(1, 0)) == 1);
  REFUSED(EINVAL, "0 or 1", user_soft_reset(2));

  // The system monitor: of a simulated card a model, within what it can be.
  sys_stat values = fpga_read_sys_param();
  CHECK(values.temp > 29 && values.temp < 60 && values.v_int > 0.8f && values.v_int < 0.85f);
  CHECK(values.v_aux > 1.79f && values.v_aux < 1.81f && values.i_int > 10 && values.i_int < 60);
  CHECK(values.p_int > 0.99f * values.i_int * values.v_int && values.v_board != values.v_board);

  // Clocks.
  DONE(user_set_clk(250));
  REFUSED(ENOTSUP, "200 MHz", user_set_clk(200));

  // Ways that there are not.
  REFUSED(EINVAL, "without an app", fpga_transfer_data(HOST, HOST, a, BYTES, 0));
  REFUSED(EINVAL, "without an app", fpga_transfer_data(HOST, ETHERNET, a, BYTES, 0));
  REFUSED(EINVAL, "without an app", fpga_transfer_data(USER1, USERPCIE2, NULL, BYTES, in));
  REFUSED(EINVAL, "at least one byte", fpga_transfer_data(HOST, USERPCIE1, a, 0, 0));
  REFUSED(EINVAL, "a channel is", fpga_wait_interrupt(HOST));
  REFUSED(EINVAL, "at address 0", fpga_reboot(1));

  // Frames need a card with the function; the simulated one in a process has none.
  REFUSED(EINVAL, "without function net", fpga_transfer_data(ETHERNET, USER4, NULL, 0, 0));
  REFUSED(EINVAL, "without function net", fpga_transfer_data(USER4, ETHERNET, NULL, 0, 0));

  // After a reboot apps are gone, and card memory is as it was.
  DONE(fpga_transfer_data(HOST, DRAM, a, BYTES, in));
  DONE(fpga_reboot(0));
  CHECK(fpga_reg_rd(0x1c) == 0);
  REFUSED(ENOENT, "load_bitstream", fpga_transfer_data(HOST, USERPCIE1, a, BYTES, 0));
  DONE(fpga_transfer_data(DRAM, HOST, b, BYTES, in));
  CHECK(memcmp(a, b, BYTES) == 0);
  DONE(load_bitstream("inc", USER1));
  DONE(fpga_transfer_data(HOST, USER1, in, a, BYTES));
  DONE(fpga_transfer_data(USER1, HOST, out, b, BYTES));
  CHECK(incremented(a, b, 1));
  DONE(fpga_free(in));
}

int main(void) {
  fill((unsigned char*)a, BYTES, 1);
  memory();
  apps();
  DONE(fpga_close());
  puts("as expected");
  return 0;
}
