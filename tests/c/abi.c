// SPDX-License-Identifier: Apache-2.0
// Layout of the header's structures, as in the library: see host/viaduct-capi/src/types.rs.
#include <stdio.h>

#include "viaduct.h"

// C99 has no static assertion: an array of length -1 is refused by the compiler.
#define CHECK(name, condition) typedef char check_##name[(condition) ? 1 : -1]

CHECK(timeouts, sizeof(viaduct_timeouts) == 12);
CHECK(info, sizeof(viaduct_info) == 56 && offsetof(viaduct_info, channel_mib) == 48);
CHECK(port, sizeof(viaduct_port) == 24 && offsetof(viaduct_port, length) == 16);
CHECK(reg, sizeof(viaduct_register) == 24 && offsetof(viaduct_register, required) == 20);
CHECK(route, sizeof(viaduct_route) == 48 && offsetof(viaduct_route, length) == 40);
CHECK(progress, sizeof(viaduct_progress) == 32);
CHECK(options, sizeof(viaduct_run_options) == 32 && offsetof(viaduct_run_options, durable) == 24);
CHECK(pager, sizeof(viaduct_pager) == 80 && offsetof(viaduct_pager, promoted) == 72);
CHECK(awaited, sizeof(viaduct_awaited) == 16 && offsetof(viaduct_awaited, irqs) == 8);
CHECK(schedule, sizeof(viaduct_schedule) == 32 && offsetof(viaduct_schedule, in_flight) == 24);
CHECK(connection, sizeof(viaduct_connection_info) == 56 && offsetof(viaduct_connection_info, changing) == 48);
CHECK(rows, sizeof(viaduct_rows) == 32 && offsetof(viaduct_rows, host_step) == 24);
CHECK(monitor, sizeof(viaduct_system_monitor) == 120 && offsetof(viaduct_system_monitor, power) == 112);
CHECK(report, sizeof(viaduct_report) == 72 && offsetof(viaduct_report, denied) == 64);

// Every function, with the header's own type, so that one missing in the library does not link.
#define TAKE(name) (void (*)(void)) name
static void (*const functions[])(void) = {
    TAKE(viaduct_abi_version),
    TAKE(viaduct_error),
    TAKE(viaduct_open),
    TAKE(viaduct_close),
    TAKE(viaduct_get_info),
    TAKE(viaduct_time),
    TAKE(viaduct_load),
    TAKE(viaduct_unload),
    TAKE(viaduct_slot_index),
    TAKE(viaduct_get_port),
    TAKE(viaduct_get_register),
    TAKE(viaduct_set),
    TAKE(viaduct_set_bytes),
    TAKE(viaduct_get_bytes),
    TAKE(viaduct_read32),
    TAKE(viaduct_write32),
    TAKE(viaduct_run),
    TAKE(viaduct_free),
    TAKE(viaduct_mmap),
    TAKE(viaduct_munmap),
    TAKE(viaduct_msync),
    TAKE(viaduct_madvise),
    TAKE(viaduct_munmap_begin),
    TAKE(viaduct_msync_begin),
    TAKE(viaduct_madvise_begin),
    TAKE(viaduct_wait),
    TAKE(viaduct_set_frames),
    TAKE(viaduct_get_pager),
    TAKE(viaduct_error_code),
    TAKE(viaduct_error_path),
    TAKE(viaduct_start_and_wait),
    TAKE(viaduct_open_wait),
    TAKE(viaduct_set_host_frames),
    TAKE(viaduct_set_channels),
    TAKE(viaduct_run_begin),
    TAKE(viaduct_start),
    TAKE(viaduct_pending_fd),
    TAKE(viaduct_get_irqs),
    TAKE(viaduct_wait_for_one),
    TAKE(viaduct_set_weight),
    TAKE(viaduct_pause),
    TAKE(viaduct_resume),
    TAKE(viaduct_run_through),
    TAKE(viaduct_set_schedule),
    TAKE(viaduct_connect),
    TAKE(viaduct_connected),
    TAKE(viaduct_disconnect),
    TAKE(viaduct_get_connections),
    TAKE(viaduct_get_system_monitor),
    TAKE(viaduct_run_buffered),
    TAKE(viaduct_reset_card),
    TAKE(viaduct_read_card32),
    TAKE(viaduct_write_card32),
    TAKE(viaduct_claim),
    TAKE(viaduct_reset),
    TAKE(viaduct_transfer),
    TAKE(viaduct_transfer_begin),
    TAKE(viaduct_alloc_memory),
    TAKE(viaduct_free_memory),
    TAKE(viaduct_copy_in),
    TAKE(viaduct_copy_out),
    TAKE(viaduct_copy_rows_in),
    TAKE(viaduct_copy_rows_out),
    TAKE(viaduct_copy_in_begin),
    TAKE(viaduct_copy_out_begin),
    TAKE(viaduct_read_word),
    TAKE(viaduct_write_word),
};

int main(void) {
  size_t count = sizeof functions / sizeof functions[0];
  if (viaduct_abi_version() != VIADUCT_ABI_VERSION) {
    fprintf(stderr, "header %u, library %u\n", VIADUCT_ABI_VERSION, viaduct_abi_version());
    return 1;
  }
  printf("%zu functions\n", count);
  return 0;
}
