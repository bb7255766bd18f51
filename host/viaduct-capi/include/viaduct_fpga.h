/* Copyright Viaduct contributors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The calls of the "system-level FPGA device driver" (Vipin et al., FPT 2013, table II) over libviaduct: a
 * program written for that driver is compiled with this header and linked with -lviaduct. The header is all
 * there is; its functions are weak, so any number of source files may include it. docs/host-api.md has the
 * example of the paper.
 *
 * Names. A user channel of the paper is stream 0 of a slot: USERPCIE1 and USERDRAM1 are slot 0, and so on.
 * USERPCIE streams between host memory and the app; USERDRAM by way of card memory at `addr`, which is why
 * an app's input and output can be one call after the other there.
 *
 * Results. Functions return 0, or a negative number of <errno.h>; those that return a value return
 * FPGA_FAILED. viaduct_error() then says what is wrong, and fpga_error() does as well for what this header
 * itself refuses.
 *
 * The card is opened by the first call: VIADUCT_CARD in the environment, or "sim". Calls are for one thread
 * at a time.
 */
#ifndef VIADUCT_FPGA_H
#define VIADUCT_FPGA_H

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "viaduct.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FPGA_API __attribute__((weak))

/* Sources and destinations of transfers. */
typedef enum fpga_point {
  HOST,
  DRAM,
  USERPCIE1,
  USERPCIE2,
  USERPCIE3,
  USERPCIE4,
  USERDRAM1,
  USERDRAM2,
  USERDRAM3,
  USERDRAM4,
  ETHERNET,
  FPGA_POINTS
} fpga_point;

/* As the paper's listing 2 has them. */
#define USER1 USERDRAM1
#define USER2 USERDRAM2
#define USER3 USERDRAM3
#define USER4 USERDRAM4

/* An address of card memory. */
typedef uint64_t fpga_address;
#define FPGA_FAILED UINT32_MAX
#define FPGA_NO_MEMORY UINT64_MAX

/* Addresses of fpga_reg_wr() and fpga_reg_rd(): of the card from 0 on, of the app of a user channel (1 to 4)
 * from here on. */
#define FPGA_USER_REG(user, offset) (((uint32_t)(user) << 20) | (uint32_t)(offset))

/* ------------------------------------------------------------------------------------------------ state */

/* A transfer into or out of a channel that was begun. `then_out`: bytes to be copied to `data` after it. */
typedef struct fpga_transfer {
  viaduct_pending* pending;
  viaduct_route route;
  char endpoint[48];
  fpga_address addr;
  void* data;
  uint64_t then_out;
} fpga_transfer;

typedef struct fpga_state {
  viaduct_card* card;
  viaduct_slot* copies; /* a slot without an app, for copies while no app is loaded */
  viaduct_slot* user[4];
  viaduct_connection* net_in[4]; /* from Ethernet to the user channel, and back */
  viaduct_connection* net_out[4];
  fpga_transfer in[5]; /* of each user channel, and of card memory */
  fpga_transfer out[5];
  char error[200];
} fpga_state;

FPGA_API fpga_state fpga_now;

/* What this header has refused, or what the library says. */
FPGA_API const char* fpga_error(void) {
  return fpga_now.error[0] != 0 ? fpga_now.error : viaduct_error();
}

/* Refuses a call. */
FPGA_API int fpga_refuse(int number, const char* why) {
  snprintf(fpga_now.error, sizeof fpga_now.error, "%s", why);
  errno = number;
  return -number;
}

/* The result of a call of the library. */
FPGA_API int fpga_result(int code) {
  fpga_now.error[0] = 0;
  return code == 0 ? 0 : errno > 0 ? -errno : -EIO;
}

FPGA_API int fpga_open(void) {
  const char* name = getenv("VIADUCT_CARD");
  if (fpga_now.card != NULL) return 0;
  return fpga_result(viaduct_open(name != NULL && name[0] != 0 ? name : "sim", NULL, &fpga_now.card));
}

/* The slot whose queue copies card memory. */
FPGA_API int fpga_copies(viaduct_slot** slot) {
  int k, done = fpga_open();
  *slot = fpga_now.copies;
  for (k = 0; k < 4 && *slot == NULL; k++) *slot = fpga_now.user[k];
  if (done != 0 || *slot != NULL) return done;
  /* The last one, so that the first user channels are free; one that turns out to be needed is given up. */
  for (k = 3; k >= 0; k--) {
    done = fpga_result(viaduct_claim(fpga_now.card, k, &fpga_now.copies));
    if (done == 0) break;
  }
  *slot = fpga_now.copies;
  return done;
}

/* Number of the user channel of a point, from 0; -1 if it is none. */
FPGA_API int fpga_user(fpga_point point) {
  if (point >= USERPCIE1 && point <= USERPCIE4) return (int)point - (int)USERPCIE1;
  if (point >= USERDRAM1 && point <= USERDRAM4) return (int)point - (int)USERDRAM1;
  return -1;
}

/* ------------------------------------------------------------------------------------------------ set-up */

/* Waits for transfers of a channel; see below. */
FPGA_API int fpga_wait_interrupt(fpga_point channel);

/* Closes everything: what the paper's driver does at the end of a program. */
FPGA_API int fpga_close(void) {
  int k, failed = 0, done;
  for (k = 0; k < 5; k++) {
    done = fpga_wait_interrupt(k == 4 ? DRAM : (fpga_point)((int)USERPCIE1 + k));
    if (failed == 0) failed = done;
  }
  for (k = 0; k < 4; k++) {
    if (fpga_now.net_in[k] != NULL) viaduct_disconnect(fpga_now.net_in[k]);
    if (fpga_now.net_out[k] != NULL) viaduct_disconnect(fpga_now.net_out[k]);
    if (fpga_now.user[k] != NULL && viaduct_unload(fpga_now.user[k]) != 0 && failed == 0) failed = -EIO;
    fpga_now.net_in[k] = fpga_now.net_out[k] = NULL;
    fpga_now.user[k] = NULL;
  }
  if (fpga_now.copies != NULL) viaduct_unload(fpga_now.copies);
  fpga_now.copies = NULL;
  if (fpga_now.card != NULL && viaduct_close(fpga_now.card) != 0 && failed == 0) failed = -EIO;
  fpga_now.card = NULL;
  return failed;
}

/* Loads an app, by name or by the path of its image, into the slot of a user channel, while others go on.
 * `dest_id` is a user channel: USER1 to USER4, or USERPCIE1 to USERPCIE4. */
FPGA_API int load_bitstream(const char* bitfile, fpga_point dest_id) {
  int user = fpga_user(dest_id), done = fpga_open();
  uint32_t index = 0;
  if (user < 0)
    return fpga_refuse(EINVAL, "load_bitstream: the destination is a user channel, USER1 to USER4");
  if (done != 0) return done;
  done = fpga_wait_interrupt(dest_id);
  if (done != 0) return done;
  if (fpga_now.user[user] != NULL) {
    done = fpga_result(viaduct_unload(fpga_now.user[user]));
    fpga_now.user[user] = NULL;
    if (done != 0) return done;
  }
  if (fpga_now.copies != NULL && viaduct_slot_index(fpga_now.copies, &index) == 0 &&
      index == (uint32_t)user) {
    done = fpga_wait_interrupt(DRAM);
    viaduct_unload(fpga_now.copies);
    fpga_now.copies = NULL;
    if (done != 0) return done;
  }
  return fpga_result(viaduct_load(fpga_now.card, user, bitfile, &fpga_now.user[user]));
}

/* Reloads the shell. A Viaduct card has one stored image of it, at address 0. All apps are gone afterwards;
 * card memory, and what was allocated of it, stay. */
FPGA_API int fpga_reboot(uint32_t address) {
  int k, done = fpga_open();
  if (address != 0)
    return fpga_refuse(EINVAL, "fpga_reboot: the card has one image of its shell, at address 0");
  for (k = 0; k < 5 && done == 0; k++)
    done = fpga_wait_interrupt(k == 4 ? DRAM : (fpga_point)((int)USERPCIE1 + k));
  if (done != 0) return done;
  for (k = 0; k < 4; k++) {
    if (fpga_now.user[k] != NULL) viaduct_unload(fpga_now.user[k]);
    fpga_now.user[k] = NULL;
  }
  if (fpga_now.copies != NULL) viaduct_unload(fpga_now.copies);
  fpga_now.copies = NULL;
  return fpga_result(viaduct_reset_card(fpga_now.card));
}

/* What the system monitor measures. The board has no sensors for its own supply: those are NAN. */
typedef struct sys_stat {
  float temp;    /* degrees Celsius, of the die */
  float v_int;   /* volts: supply of the logic */
  float v_aux;   /* auxiliary supply */
  float v_board; /* NAN */
  float i_int;   /* amperes of the supply of the logic; NAN if the board does not measure them */
  float i_board; /* NAN */
  float p_int;   /* watts of the supply of the logic, as i_int */
  float p_board; /* NAN */
} sys_stat;

/* Reads the system monitor; all values are NAN if that fails. On a simulated card they are those of a model
 * (viaduct_system_monitor.model). */
FPGA_API sys_stat fpga_read_sys_param(void) {
  sys_stat values = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
  viaduct_system_monitor monitor;
  if (fpga_open() != 0 || fpga_result(viaduct_get_system_monitor(fpga_now.card, &monitor)) != 0)
    return values;
  values.temp = (float)monitor.temperature.last;
  values.v_int = (float)monitor.vccint.last;
  values.v_aux = (float)monitor.vccaux.last;
  if (monitor.has_current) {
    values.i_int = (float)monitor.current;
    values.p_int = (float)monitor.power;
  }
  return values;
}

/* ------------------------------------------------------------------------------------------------ card
 * memory */

/* Allocates card memory; FPGA_NO_MEMORY if there is none. */
FPGA_API fpga_address fpga_malloc(uint64_t size) {
  fpga_address addr = FPGA_NO_MEMORY;
  if (fpga_open() == 0) fpga_result(viaduct_alloc_memory(fpga_now.card, size, &addr));
  return addr;
}

FPGA_API int fpga_free(fpga_address addr) {
  int done = fpga_open();
  return done != 0 ? done : fpga_result(viaduct_free_memory(fpga_now.card, addr));
}

/* A 32-bit word of card memory that was allocated. */
FPGA_API int fpga_ddr_pio_wr(fpga_address addr, uint32_t data) {
  viaduct_slot* slot;
  int done = fpga_copies(&slot);
  return done != 0 ? done : fpga_result(viaduct_write_word(slot, addr, data));
}

FPGA_API uint32_t fpga_ddr_pio_rd(fpga_address addr) {
  viaduct_slot* slot;
  uint32_t data = FPGA_FAILED;
  if (fpga_copies(&slot) == 0) fpga_result(viaduct_read_word(slot, addr, &data));
  return data;
}

/* ------------------------------------------------------------------------------------------------ transfers
 */

/* Waits for what was begun on a channel: transfers of a user channel both ways, or copies of card memory
 * (DRAM). 0 if there is nothing. */
FPGA_API int fpga_wait_interrupt(fpga_point channel) {
  int user = fpga_user(channel), way, done, failed = 0;
  viaduct_slot* slot;
  if (user < 0 && channel != DRAM) {
    return fpga_refuse(EINVAL, "fpga_wait_interrupt: a channel is DRAM or a user channel");
  }
  for (way = 0; way < 2; way++) {
    fpga_transfer* one = &(way == 0 ? fpga_now.in : fpga_now.out)[user < 0 ? 4 : user];
    if (one->pending == NULL) continue;
    done = fpga_result(viaduct_wait(one->pending, UINT32_MAX));
    one->pending = NULL;
    if (done == 0 && one->then_out > 0) done = fpga_copies(&slot);
    if (done == 0 && one->then_out > 0) {
      done = fpga_result(viaduct_copy_out(slot, one->addr, one->data, one->then_out));
    }
    if (failed == 0) failed = done;
  }
  return failed;
}

/* Begins a transfer of a user channel: of memory of the program, or of card memory if `data` is NULL. */
FPGA_API int fpga_begin(int user, int32_t way, void* data, uint64_t len, fpga_address addr) {
  fpga_transfer* one = &(way == VIADUCT_IN ? fpga_now.in : fpga_now.out)[user];
  if (fpga_now.user[user] == NULL) {
    return fpga_refuse(ENOENT, "the user channel has no app: call load_bitstream() first");
  }
  if (one->pending != NULL) {
    return fpga_refuse(EBUSY, "a transfer of the channel is under way: call fpga_wait_interrupt() first");
  }
  one->route.port = NULL;
  one->route.direction = way;
  one->route.reserved = 0;
  one->route.endpoint = NULL;
  one->route.data = data;
  one->route.capacity = len;
  one->route.length = 0;
  one->then_out = 0;
  if (data == NULL) {
    snprintf(one->endpoint, sizeof one->endpoint, "card:%llu+%llu", (unsigned long long)addr,
             (unsigned long long)len);
    one->route.endpoint = one->endpoint;
  }
  return fpga_result(viaduct_transfer_begin(fpga_now.user[user], &one->route, &one->pending));
}

/* Copies between the program and card memory, to its end or as channel DRAM. */
FPGA_API int fpga_copy(int inward, void* data, uint64_t len, fpga_address addr, int block) {
  fpga_transfer* one = &(inward ? fpga_now.in : fpga_now.out)[4];
  viaduct_rows rows = {0, 1, 0, 0};
  viaduct_slot* slot;
  int done = fpga_copies(&slot);
  if (done != 0) return done;
  if (block) {
    return fpga_result(inward ? viaduct_copy_in(slot, addr, data, len)
                              : viaduct_copy_out(slot, addr, data, len));
  }
  if (one->pending != NULL) {
    return fpga_refuse(EBUSY, "a copy of card memory is under way: call fpga_wait_interrupt(DRAM) first");
  }
  rows.bytes = rows.card_step = rows.host_step = len;
  one->then_out = 0;
  return fpga_result(inward ? viaduct_copy_in_begin(slot, addr, data, &rows, &one->pending)
                            : viaduct_copy_out_begin(slot, addr, data, &rows, &one->pending));
}

/* Connects the board's Ethernet port to a user channel, or back; it stays so until the app goes. */
FPGA_API int fpga_ethernet(int user, int inward) {
  viaduct_connection** one = &(inward ? fpga_now.net_in : fpga_now.net_out)[user];
  char port[16];
  int connected = 0;
  snprintf(port, sizeof port, "slot:%d", user);
  if (fpga_now.user[user] == NULL) {
    return fpga_refuse(ENOENT, "the user channel has no app: call load_bitstream() first");
  }
  if (*one != NULL && viaduct_connected(*one, &connected) == 0 && connected) return 0;
  if (*one != NULL) viaduct_disconnect(*one);
  *one = NULL;
  return fpga_result(inward ? viaduct_connect(fpga_now.card, "board:net", port, one)
                            : viaduct_connect(fpga_now.card, port, "board:net", one));
}

/* Table II: moves `len` bytes between two points. `data` is memory of the program, for HOST; `addr` is a card
 * address of fpga_malloc(), for DRAM and USERDRAM. With `block` 0 the transfer is deferred: `data` is in use
 * until fpga_wait_interrupt() of the user channel, or of DRAM, has returned.
 *
 *   HOST and DRAM        copies
 *   HOST and USERPCIEn   a message of the app's first input, or of its first output, from and to host memory.
 *                        An app that answers before it has all needs the input to be deferred
 *   HOST and USERDRAMn   the same by way of card memory at `addr`. The input is on its way to the app when
 *                        this returns; a later transfer of the output waits for the app
 *   DRAM and a user      a message from and to card memory
 *   ETHERNET and a user  frames, from now on; `data`, `len` and `addr` are ignored
 *
 * Others are refused: an app has to be between (`pass` does nothing else). */
FPGA_API int fpga_move(fpga_point src, fpga_point dest, void* data, uint64_t len, fpga_address addr,
                       int block) {
  int from = fpga_user(src), to = fpga_user(dest), done;
  int user = from >= 0 ? from : to;
  int host = src == HOST || dest == HOST, dram = src == DRAM || dest == DRAM;
  int by_memory = (src >= USERDRAM1 && src <= USERDRAM4) || (dest >= USERDRAM1 && dest <= USERDRAM4);
  if (src == ETHERNET && to >= 0) return fpga_ethernet(to, 1);
  if (dest == ETHERNET && from >= 0) return fpga_ethernet(from, 0);
  if (host && data == NULL && len > 0) return fpga_refuse(EINVAL, "fpga_transfer_data: data is NULL");
  if (host && dram) return fpga_copy(src == HOST, data, len, addr, block);
  if ((from >= 0) == (to >= 0) || !(host || dram)) {
    return fpga_refuse(EINVAL, "fpga_transfer_data: there is no way between these points without an app");
  }
  if (len == 0) return fpga_refuse(EINVAL, "fpga_transfer_data: a message has at least one byte");
  if (to >= 0) {
    if (host && by_memory && (done = fpga_copy(1, data, len, addr, 1)) != 0) return done;
    done = fpga_begin(user, VIADUCT_IN, host && !by_memory ? data : NULL, len, addr);
    /* What is in card memory need not be waited for. */
    return done != 0 || !block || by_memory ? done : fpga_wait_interrupt(dest);
  }
  done = fpga_begin(user, VIADUCT_OUT, host && !by_memory ? data : NULL, len, addr);
  if (done != 0) return done;
  if (host && by_memory) {
    fpga_now.out[user].addr = addr;
    fpga_now.out[user].data = data;
    fpga_now.out[user].then_out = len;
  }
  return block ? fpga_wait_interrupt(src) : 0;
}

/* Listing 2 has the card address before the data, table II behind the length. */
FPGA_API int fpga_move_listed(fpga_point src, fpga_point dest, fpga_address addr, void* data, uint64_t len,
                              int block) {
  return fpga_move(src, dest, data, len, addr, block);
}

/* fpga_transfer_data(src, dest, data, len, addr), or with `block` behind it. In C11 also, by the type of the
 * third argument, fpga_transfer_data(src, dest, addr, data, len), as the paper's listing has it. */
#define FPGA_WITH_BLOCK(last, block, ...) last, block
#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define fpga_transfer_data(src, dest, third, fourth, ...) \
  _Generic((third),                                       \
      fpga_address: fpga_move_listed,                     \
      unsigned long long: fpga_move_listed,               \
      default: fpga_move)(src, dest, third, fourth, FPGA_WITH_BLOCK(__VA_ARGS__, 1, 0))
#else
#define fpga_transfer_data(src, dest, data, len, ...) \
  fpga_move(src, dest, data, len, FPGA_WITH_BLOCK(__VA_ARGS__, 1, 0))
#endif

FPGA_API int fpga_send_data(fpga_point dest, void* data, uint64_t len, fpga_address addr) {
  return fpga_move(HOST, dest, data, len, addr, 1);
}

FPGA_API int fpga_recv_data(fpga_point src, void* data, uint64_t len, fpga_address addr) {
  return fpga_move(src, HOST, data, len, addr, 1);
}

/* ------------------------------------------------------------------------------------------------ registers
 */

/* Writes a register: of an app, FPGA_USER_REG(), or of the card, of which 0x1c (SCRATCH) is the program's. */
FPGA_API int fpga_reg_wr(uint32_t addr, uint32_t data) {
  uint32_t user = addr >> 20, offset = addr & 0xfffff;
  int done = fpga_open();
  if (done != 0) return done;
  if (user == 0) return fpga_result(viaduct_write_card32(fpga_now.card, offset, data));
  if (user > 4 || fpga_now.user[user - 1] == NULL) {
    return fpga_refuse(ENOENT, "fpga_reg_wr: the user channel has no app: call load_bitstream() first");
  }
  return fpga_result(viaduct_write32(fpga_now.user[user - 1], offset, data));
}

/* Reads a register of an app or of the card. */
FPGA_API uint32_t fpga_reg_rd(uint32_t addr) {
  uint32_t user = addr >> 20, offset = addr & 0xfffff, data = FPGA_FAILED;
  if (fpga_open() != 0) return FPGA_FAILED;
  if (user == 0) {
    fpga_result(viaduct_read_card32(fpga_now.card, offset, &data));
  } else if (user > 4 || fpga_now.user[user - 1] == NULL) {
    fpga_refuse(ENOENT, "fpga_reg_rd: the user channel has no app: call load_bitstream() first");
  } else {
    fpga_result(viaduct_read32(fpga_now.user[user - 1], offset, &data));
  }
  return data;
}

/* ------------------------------------------------------------------------------------------------ apps */

/* Resets all apps that were loaded: the paper's user logic. The shell gives every app the reset that it was
 * written for, so the polarity, 0 or 1, makes no difference. */
FPGA_API int user_soft_reset(uint32_t polarity) {
  int k, done = fpga_open();
  if (polarity > 1) return fpga_refuse(EINVAL, "user_soft_reset: a polarity is 0 or 1");
  for (k = 0; k < 4 && done == 0; k++) {
    if (fpga_now.user[k] != NULL) done = fpga_result(viaduct_reset(fpga_now.user[k]));
  }
  return done;
}

/* Sets the clock of the apps, in MHz. They have the shell's, so that is the only frequency for now. */
FPGA_API int user_set_clk(uint32_t frequency) {
  viaduct_info info;
  int done = fpga_open();
  if (done == 0) done = fpga_result(viaduct_get_info(fpga_now.card, &info));
  if (done != 0) return done;
  if (frequency * 1000 == info.clock_khz) return 0;
  snprintf(
      fpga_now.error, sizeof fpga_now.error,
      "user_set_clk: %u MHz: apps have the clock of the shell, %u MHz; slots have no clocks of their own yet",
      (unsigned)frequency, (unsigned)(info.clock_khz / 1000));
  errno = ENOTSUP;
  return -ENOTSUP;
}

#ifdef __cplusplus
}
#endif

#endif
