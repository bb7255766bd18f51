/* Copyright Viaduct contributors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * libviaduct: cards, slots, runs and mappings for programs in C and C++. A worked example is in
 * docs/host-api.md.
 *
 * Results. Functions return 0 or a negative VIADUCT_E_* code; those of the mmap() family -1. All set `errno`
 * upon failure: to the number beside the code below, or that of the system's error, or what POSIX defines for
 * the mmap() family. After a failure viaduct_error() returns a text that says what is wrong and what to do
 * about it. A failing call leaves its result arguments unchanged, unless stated otherwise.
 *
 * Handles. A viaduct_card *, viaduct_slot *, viaduct_connection * or viaduct_pending * identifies an object
 * and is never dereferenced: NULL, a closed handle, or one of another kind gives VIADUCT_E_HANDLE. Values of
 * closed handles are not reused. Objects are closed in reverse order: an object that others depend on, or
 * that another call is using, stays open and its closing function returns VIADUCT_E_BUSY.
 *
 * Threads. All functions may be called from any thread, also concurrently; a slot allows one stream run and
 * one memory run at a time. Calls that move data block until the data is moved or the time-out has passed,
 * see viaduct_timeouts. A thread in a call is not cancelled: pthread_cancel() acts at its next cancellation
 * point after the call. What ends a run is its progress function, see viaduct_progress_fn. A thread must not
 * end in that function (pthread_exit()), nor have cancellations that are asynchronous.
 *
 * fork(). Handles belong to the process that opened them. In a child every function returns VIADUCT_E_HANDLE
 * for them, and nothing that the child does affects the parent's card. The child may open cards of its own.
 * Its copies of buffers that the library allocated in the parent are ignored by viaduct_free().
 *
 * Signals. The library's threads block all signals, and it installs no handlers. A file that exceeds
 * RLIMIT_FSIZE (`ulimit -f`) and a pipe without a reader are errors of the call, not SIGXFSZ or SIGPIPE.
 *
 * Fields named `reserved` must be 0 in structures that a program passes, else VIADUCT_E_ARGUMENT.
 *
 * Strings are UTF-8 and end with a zero byte. They and all arguments are only used during the call, and must
 * not be changed meanwhile.
 *
 * Copies. Files move between page cache and card without further copies. A buffer of the program is copied:
 * the card accesses only memory allocated for DMA, and the host library keeps the bytes of a run in memory of
 * its own. An input buffer is therefore copied as a whole when the run begins and once more in chunks; an
 * output buffer of the program is copied in chunks and once more as a whole at the end; one that the library
 * allocates (VIADUCT_ALLOCATE) is copied in chunks only.
 */
#ifndef VIADUCT_H
#define VIADUCT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented by every change that affects programs built against an older header. Compare with
 * viaduct_abi_version(). */
#define VIADUCT_ABI_VERSION 5u

/* ------------------------------------------------------------------------------------------------ results */

#define VIADUCT_OK 0
#define VIADUCT_E_ARGUMENT (-1)  /* EINVAL: an argument is NULL, not UTF-8, or a value out of range */
#define VIADUCT_E_HANDLE (-2)    /* EBADF: not an open handle of this kind */
#define VIADUCT_E_NOT_FOUND (-3) /* ENOENT: no such app, port, register or slot */
#define VIADUCT_E_BUSY (-4)      /* EBUSY: in use; close what depends on it, or wait for the other user */
#define VIADUCT_E_TOO_SMALL (-5) /* ERANGE: the buffer is too small; the length needed is returned */
#define VIADUCT_E_IO (-6)        /* EIO: a file could not be opened, read or written */
#define VIADUCT_E_APP (-7)       /* EIO: the app broke a rule or sent a wrong length; ETIMEDOUT: it hangs */
#define VIADUCT_E_CARD (-8)      /* EIO: the card is gone or refused the image; ETIMEDOUT: no response */
#define VIADUCT_E_BUILD (-9)     /* EIO: the app or the simulated card could not be built */
#define VIADUCT_E_MEMORY (-10)   /* ENOMEM: out of memory, on the card or the host, or a limit (`ulimit`) */
#define VIADUCT_E_INTERNAL (-11) /* EIO: an error in this library */
#define VIADUCT_E_STOPPED (-12)  /* ECANCELED: the program's progress function has stopped the run */

/* VIADUCT_ABI_VERSION of the library. */
uint32_t viaduct_abi_version(void);

/* Text about the last failed call of this thread, "" if there was none. Valid until the thread's next
 * failure. */
const char* viaduct_error(void);

/* Its VIADUCT_E_* code, also of functions that return -1; 0 if there was none. */
int viaduct_error_code(void);

/* Path of the file that it is about, NULL if it is about none. Valid as long. */
const char* viaduct_error_path(void);

/* ------------------------------------------------------------------------------------------------ cards */

typedef struct viaduct_card viaduct_card;

/* How long to wait, in milliseconds of wall-clock time, before something counts as hung. 0: the default. */
typedef struct viaduct_timeouts {
  uint32_t stall_ms;   /* without any activity of a slot; 30 s */
  uint32_t busy_ms;    /* the same while the app reports that it computes; 600 s */
  uint32_t control_ms; /* for loading an image or draining a slot; 30 s */
} viaduct_timeouts;

/* Properties of a card. */
typedef struct viaduct_info {
  uint32_t version_major; /* of the register map */
  uint32_t version_minor;
  uint32_t slots;
  uint32_t channels;      /* of DRAM */
  uint32_t streams;       /* input streams of a slot, and output streams of a slot */
  uint32_t data_bytes;    /* bytes in a beat of every data path */
  uint32_t clock_khz;     /* clock of the card; times are in its cycles */
  uint32_t tlb_page_ways; /* TLB entries of a slot for 4 KiB pages: ways x sets */
  uint32_t tlb_page_sets;
  uint32_t tlb_huge_ways; /* the same for 2 MiB pages */
  uint32_t tlb_huge_sets;
  uint32_t reserved;
  uint64_t channel_mib; /* MiB of each DRAM channel */
} viaduct_info;

/* Opens a card. `name` is "sim" (simulated in this process; built first if needed, with a message on standard
 * error), "sim:PROFILE" with the board and link to simulate ("sim:gen3x16"), "unix:PATH" (served by
 * `viaduct card`), or "vfio:0000:01:00.0" (a PCI function of this machine, bound to vfio-pci). The simulated
 * card and app names need a Viaduct checkout: VIADUCT_ROOT, else the one that holds the current folder, else
 * the one that holds this library, else what was installed with it. `timeouts` may be NULL. */
int viaduct_open(const char* name, const viaduct_timeouts* timeouts, viaduct_card** card);

/* The same, but while another program uses the card (VIADUCT_E_BUSY; viaduct_error() names it) it waits up
 * to `wait_ms` milliseconds or a little longer for the card to be free; UINT32_MAX: without limit. */
int viaduct_open_wait(const char* name, const viaduct_timeouts* timeouts, uint32_t wait_ms,
                      viaduct_card** card);

/* Closes a card. VIADUCT_E_BUSY while slots of it are open. */
int viaduct_close(viaduct_card* card);

int viaduct_get_info(viaduct_card* card, viaduct_info* info);

/* Card cycles since power-up. */
int viaduct_time(viaduct_card* card, uint64_t* cycles);

/* What a sensor has measured last, and its extremes since the monitor was reset. */
typedef struct viaduct_measured {
  double last;
  double min;
  double max;
} viaduct_measured;

/* One reading of the FPGA's system monitor: degrees Celsius, volts, amperes, watts. */
typedef struct viaduct_system_monitor {
  uint32_t model;               /* not 0: the values are those of a model; a simulated card has no sensors */
  uint32_t has_current;         /* not 0: the board measures the current of the logic's supply */
  viaduct_measured temperature; /* of the die */
  viaduct_measured vccint;      /* supply of the logic */
  viaduct_measured vccaux;      /* auxiliary supply */
  viaduct_measured vccbram;     /* supply of the memories */
  double current;               /* of the supply of the logic; 0 without a sensor */
  double power;                 /* current times vccint.last */
} viaduct_system_monitor;

/* VIADUCT_E_NOT_FOUND: the board has none, or the card is of an older version. */
int viaduct_get_system_monitor(viaduct_card* card, viaduct_system_monitor* monitor);

/* Function-level reset of the card: registers and slots are as after power-up; card memory, and what was
 * allocated of it, stay. VIADUCT_E_BUSY while a slot of this program is open. */
int viaduct_reset_card(viaduct_card* card);

/* 32-bit registers of the card by byte offset (VIA_CARD_* of the register map). A program may write 0x1c,
 * SCRATCH; the others are for the library. */
int viaduct_read_card32(viaduct_card* card, uint32_t offset, uint32_t* value);
int viaduct_write_card32(viaduct_card* card, uint32_t offset, uint32_t value);

/* ------------------------------------------------------------------------------------------------ slots */

typedef struct viaduct_slot viaduct_slot;

#define VIADUCT_ANY_SLOT (-1)

/* Claims slot `index` (VIADUCT_ANY_SLOT: the first that this program does not hold), loads an app into it and
 * starts it. `app` is the name of an app of the checkout, which is built first if needed, or the path of an
 * image: it contains a '/' or ends with ".via". The manifest of an image is next to it, as the build leaves
 * it (aes.via, aes.toml), else that of the checkout. */
int viaduct_load(viaduct_card* card, int32_t index, const char* app, viaduct_slot** slot);

/* Claims a slot without an app, for copies of card memory. */
int viaduct_claim(viaduct_card* card, int32_t index, viaduct_slot** slot);

/* Resets the app: registers take their reset values, and what was under way on its streams fails. */
int viaduct_reset(viaduct_slot* slot);

/* Stops the app, removes all mappings of the slot and releases it. VIADUCT_E_BUSY while another call uses it.
 * VIADUCT_E_IO: the slot is released, and changes that could not be written to their files are lost. */
int viaduct_unload(viaduct_slot* slot);

/* Pauses the app, to leave link and memory to others: nothing more is taken from its output streams and its
 * memory port until viaduct_resume(). Nothing is lost, registers can be used, and calls that wait for the app
 * go on waiting, without their time-out. From any thread, also while another one waits. */
int viaduct_pause(viaduct_slot* slot);
int viaduct_resume(viaduct_slot* slot);

/* Number of the slot on its card. */
int viaduct_slot_index(viaduct_slot* slot, uint32_t* index);

/* ------------------------------------------------------------------------------------------------ the app's
 * interface */

#define VIADUCT_IN 0
#define VIADUCT_OUT 1
#define VIADUCT_MEMORY 2

/* Length of an output stream in a run. */
#define VIADUCT_LENGTH_ANY 0     /* not known in advance */
#define VIADUCT_LENGTH_SAME 1    /* as much as went into the input of the same number */
#define VIADUCT_LENGTH_MESSAGE 2 /* `length` bytes */

typedef struct viaduct_port {
  const char* name;    /* valid until the slot is unloaded */
  int32_t direction;   /* VIADUCT_IN, VIADUCT_OUT, VIADUCT_MEMORY */
  int32_t length_kind; /* of an output: VIADUCT_LENGTH_* */
  uint64_t length;
} viaduct_port;

#define VIADUCT_ACCESS_RW 0
#define VIADUCT_ACCESS_RO 1
#define VIADUCT_ACCESS_PULSE 2 /* a written value is presented to the app for one cycle */

typedef struct viaduct_register {
  const char* name;  /* valid until the slot is unloaded */
  uint32_t offset;   /* in the slot's register window, in bytes */
  uint32_t width;    /* in bits */
  int32_t access;    /* VIADUCT_ACCESS_* */
  uint32_t required; /* not 0: must be set before a run */
} viaduct_register;

/* Port or register number `index` (from 0) of the app, in the order of its manifest; inputs come before
 * outputs and the memory port last. VIADUCT_E_NOT_FOUND past the last one. */
int viaduct_get_port(viaduct_slot* slot, uint32_t index, viaduct_port* port);
int viaduct_get_register(viaduct_slot* slot, uint32_t index, viaduct_register* reg);

/* ------------------------------------------------------------------------------------------------ registers
 */

/* Sets a register from text, as `--set` of the command line tool does: a number (decimal or 0x...) or
 * hexadecimal bytes, as the app's manifest says. */
int viaduct_set(viaduct_slot* slot, const char* name, const char* text);

/* Sets a register from bytes, the lowest first. A register of type bytes requires all of them, in others the
 * missing ones are 0. */
int viaduct_set_bytes(viaduct_slot* slot, const char* name, const void* data, size_t length);

/* Reads a register into `data`, lowest byte first. `length` receives its size in bytes, also with
 * VIADUCT_E_TOO_SMALL; it may be NULL. */
int viaduct_get_bytes(viaduct_slot* slot, const char* name, void* data, size_t capacity, size_t* length);

/* 32-bit registers by byte offset in the slot's window, in the manifest or not. */
int viaduct_read32(viaduct_slot* slot, uint32_t offset, uint32_t* value);
int viaduct_write32(viaduct_slot* slot, uint32_t offset, uint32_t value);

/* ------------------------------------------------------------------------------------------------ runs */

/* The library allocates the buffer of this output. */
#define VIADUCT_ALLOCATE UINT64_MAX

/* One end of a run. Either `endpoint` is text, or it is NULL and the route leads to memory. Text:
 *   "file:PATH"            a file, a FIFO or a character device
 *   "fd:NUMBER"            an open descriptor, read or written from its position; it stays open
 *   "-"                    standard input, or standard output
 *   "card:ADDRESS+LENGTH"  a range of card memory
 *   "host:SIZE"            SIZE zero bytes as input; an output of any length is dropped
 *   "eth:"                 the board's Ethernet port, on the card: each frame is a message
 * Endpoints without a reliable length (FIFOs, devices, descriptors, files of /proc) are streams: they are
 * read to their end, or written in order, and waiting for their other end does not count as a hang. If all
 * streams of a run lead to Ethernet, it lasts until its progress function stops it, and returns 0 then. */
typedef struct viaduct_route {
  const char* port;     /* name of the stream; NULL: the first of that direction */
  int32_t direction;    /* VIADUCT_IN or VIADUCT_OUT */
  int32_t reserved;     /* 0 */
  const char* endpoint; /* or NULL */
  void* data; /* input: the bytes, only read. Output: their destination. May be NULL if capacity is 0 */
  uint64_t capacity; /* input: number of bytes. Output: size. With VIADUCT_ALLOCATE `data` is set after the
                        run: release it with viaduct_free() */
  uint64_t length;   /* set after the run if the route leads to memory: bytes sent or received */
} viaduct_route;

typedef struct viaduct_progress {
  uint64_t bytes_in;  /* accepted by the app */
  uint64_t total_in;  /* of all inputs together; 0 while the length of one is unknown */
  uint64_t bytes_out; /* produced by the app */
  uint64_t cycles;    /* since the first command */
} viaduct_progress;

/* Called on the thread of the run, when data has moved and also about ten times a second. 0 lets the run
 * continue; any other value stops it: the app is reset, and the call returns VIADUCT_E_STOPPED. It may use
 * the library, but cannot run or unload this slot. It must return: no longjmp, no C++ exception. */
typedef int (*viaduct_progress_fn)(void* user, const viaduct_progress* progress);

typedef struct viaduct_run_options {
  uint64_t chunk_bytes;         /* moved by one command; 0: 1 MiB */
  viaduct_progress_fn progress; /* or NULL */
  void* user;                   /* passed to `progress` */
  uint32_t durable;             /* not 0: output files are on stable storage when the run ends */
  uint32_t reserved;            /* 0 */
} viaduct_run_options;

/* Results of a run. Beats are those of this slot during the run. */
typedef struct viaduct_report {
  uint64_t bytes_in;
  uint64_t bytes_out;
  uint64_t cycles; /* of the card, from the first command to the last completion */
  uint64_t beats_in;
  uint64_t beats_out;
  uint64_t memory_read_beats;
  uint64_t memory_write_beats;
  uint64_t misses; /* TLB misses */
  uint64_t denied; /* accesses of the app to memory that is not mapped for it */
} viaduct_report;

/* Sends data through the app's streams: one message per stream. Every input and output stream needs a route.
 * Input and output may be the same memory. `options` and `report` may be NULL.
 *
 * A buffer that is too small gives VIADUCT_E_TOO_SMALL with the length needed in its route. If the length of
 * the output is known from the manifest, this is detected before the run, else after it; the bytes that fit
 * are then in the buffer. An output of unknown length is kept in the library's memory until the app ends it,
 * regardless of the capacity: use a file for one that may be huge.
 *
 * After any other failure the app has been reset and registers that were set through this handle are set
 * again; output files hold the data written so far, buffers are unchanged. */
int viaduct_run(viaduct_slot* slot, viaduct_route* routes, size_t count, const viaduct_run_options* options,
                viaduct_report* report);

/* The same through the apps of several slots of one card in sequence: what an app gives, the next one gets,
 * on the card. Inputs are those of the first, outputs those of the last; in between each has one output and
 * one input, and no memory port. An empty input is an error. Of the report, beats, misses and denied
 * are those of the first slot. If the app of one breaks a rule the run fails, and all are reset. */
int viaduct_run_through(viaduct_slot* const* slots, size_t slot_count, viaduct_route* routes, size_t count,
                        const viaduct_run_options* options, viaduct_report* report);

/* The same as viaduct_run(), but it goes on while the program does something else, on a thread that also
 * calls `progress`: the result is that of viaduct_wait(). Until that has returned it, routes, options, report
 * and all that they point to are the library's. The slot has this run when it returns: a later one gets
 * VIADUCT_E_BUSY, and -1 with EBUSY is returned if there was one before. Returns as the functions for
 * mappings do, see there. */
typedef struct viaduct_pending viaduct_pending;

int viaduct_run_begin(viaduct_slot* slot, viaduct_route* routes, size_t count,
                      const viaduct_run_options* options, viaduct_report* report, viaduct_pending** pending);

/* One stream of an app alone, as a message; the others are left alone, and an input and an output may be
 * under way at the same time. Input: all of it is sent, and the app has taken it when this returns; an app
 * that answers before it has taken all needs a transfer of its output meanwhile. Output: a message of exactly
 * `capacity` bytes, or of the length of a card: endpoint; of any length to other endpoints and with
 * VIADUCT_ALLOCATE. A failure is that of viaduct_run(), and resets the app; VIADUCT_E_BUSY if the stream is
 * in use. viaduct_transfer_begin() begins and returns as viaduct_run_begin() does. */
int viaduct_transfer(viaduct_slot* slot, viaduct_route* route);
int viaduct_transfer_begin(viaduct_slot* slot, viaduct_route* route, viaduct_pending** pending);

/* A message of `length` bytes into the app's first input, and one of exactly `result_length` bytes from its
 * first output, both by way of two buffers of `buffer_bytes` in card memory (a multiple of 4096, at most
 * 64 MiB): while the DMA engine fills one, the app has the other. With a length of 0 the stream is left out.
 * `report` may be NULL. Failures are as those of viaduct_run(). */
int viaduct_run_buffered(viaduct_slot* slot, const void* data, uint64_t length, void* result,
                         uint64_t result_length, uint64_t buffer_bytes, viaduct_report* report);

/* ------------------------------------------------------------------------------------------- card memory
 *
 * Memory on the card that this program has allocated. A card address is a number: with it and "card:" apps
 * use the memory (viaduct_route), and the functions below copy between it and memory of the program, by the
 * queue of any slot of the card, with an app or without one (viaduct_claim()). Ranges that are not inside
 * what one viaduct_alloc_memory() has returned are refused (VIADUCT_E_ARGUMENT).
 *
 * The card copies beats of viaduct_info.data_bytes. A copy to card memory whose rows do not begin at such
 * beats reads them, changes them and writes them back: an app must not write to the same beats meanwhile.
 * Other copies of this program may. */

/* Allocates at least `length` bytes in one piece, at a multiple of 4096, of one channel. Their content is not
 * defined. VIADUCT_E_MEMORY: no channel has as much in one piece. */
int viaduct_alloc_memory(viaduct_card* card, uint64_t length, uint64_t* addr);

/* Frees what was allocated at `addr`. VIADUCT_E_BUSY while a run or copy uses it. viaduct_close() frees all.
 */
int viaduct_free_memory(viaduct_card* card, uint64_t addr);

/* Copies bytes between the program and card memory. */
int viaduct_copy_in(viaduct_slot* slot, uint64_t addr, const void* data, uint64_t length);
int viaduct_copy_out(viaduct_slot* slot, uint64_t addr, void* data, uint64_t length);

/* A block of two dimensions. */
typedef struct viaduct_rows {
  uint64_t bytes;     /* of a row */
  uint64_t rows;      /* how many */
  uint64_t card_step; /* bytes from one row to the next in card memory; at least `bytes` */
  uint64_t host_step; /* the same in memory of the program */
} viaduct_rows;

/* Copies rows: the first one is at `addr` and at `data`. Many rows are copied with one doorbell. */
int viaduct_copy_rows_in(viaduct_slot* slot, uint64_t addr, const void* data, const viaduct_rows* rows);
int viaduct_copy_rows_out(viaduct_slot* slot, uint64_t addr, void* data, const viaduct_rows* rows);

/* The same, but they go on while the program does something else: the result is that of viaduct_wait(), and
 * until then `data` is the library's. Copies that were begun are not ordered among each other. These return
 * as the functions for mappings do, see there. */
int viaduct_copy_in_begin(viaduct_slot* slot, uint64_t addr, const void* data, const viaduct_rows* rows,
                          viaduct_pending** pending);
int viaduct_copy_out_begin(viaduct_slot* slot, uint64_t addr, void* data, const viaduct_rows* rows,
                           viaduct_pending** pending);

/* A 32-bit word of card memory, little-endian, at a multiple of 4. */
int viaduct_read_word(viaduct_slot* slot, uint64_t addr, uint32_t* value);
int viaduct_write_word(viaduct_slot* slot, uint64_t addr, uint32_t value);

/* ------------------------------------------------------------------------------------------- connections
 *
 * An output of an app leads to an input of another one on the card, or from and to a port of the board. Ends
 * are text: "slot:N:STREAM", or "slot:N" for stream 0, of slot N of the card (viaduct_slot_index()); as a
 * source its output, as a sink its input; "board:net" and "board:console" for Ethernet and UART. While an
 * input or output is connected, a run has no route for it. The length of what comes is not known to it.
 * viaduct_run_through() connects apps for one run.
 */
typedef struct viaduct_connection viaduct_connection;

/* Lets `sink` take its messages from `source`. This program must have loaded the apps. A source may have
 * several sinks, which all get every message, at the speed of the slowest. A sink has one source: what it
 * took before ends with its present message; if that does not end within viaduct_timeouts.control_ms,
 * nothing changes, and the call fails (VIADUCT_E_APP). A connection ends with the app at either end: when
 * it is unloaded, replaced or reset, also by a run that fails or has an output of unknown length. It does
 * not come back. VIADUCT_E_ARGUMENT: no such end, or the card cannot connect these. */
int viaduct_connect(viaduct_card* card, const char* source, const char* sink,
                    viaduct_connection** connection);

/* Whether it is in effect: 1 or 0. */
int viaduct_connected(viaduct_connection* connection, int* connected);

/* Ends it between two messages; one that lasts longer than 100 ms is cut short. The handle is closed, also if
 * the connection had ended, and if the card fails. */
int viaduct_disconnect(viaduct_connection* connection);

/* A connection of a card. */
typedef struct viaduct_connection_info {
  char source[24];   /* as above; "virtio:NAME" is a function that is attached to the slot */
  char sink[24];     /* as above */
  uint32_t changing; /* 1: the sink is to get another source, or none, after its present message */
  uint32_t reserved;
} viaduct_connection_info;

/* All connections of a card at this moment, whoever has made them. `count` is their number, also if the array
 * is too small (VIADUCT_E_TOO_SMALL); `connections` may be NULL if `capacity` is 0. */
int viaduct_get_connections(viaduct_card* card, viaduct_connection_info* connections, size_t capacity,
                            size_t* count);

/* Releases a buffer that viaduct_run() allocated. NULL is allowed; any other pointer gives
 * VIADUCT_E_ARGUMENT.
 */
int viaduct_free(void* data);

/* ------------------------------------------------------------------------------------------------ mappings
 *
 * Files in the address space of an app, as mmap() and its companions do it for a program. An address is one
 * of the slot: a number for the app, below 2^48, and no pointer of the program. Files are opened and closed
 * with open() and close(); a mapping stays after its descriptor is closed. A slot can have any number of
 * mappings, of one file too.
 *
 * These functions return -1 (viaduct_mmap(): VIADUCT_MAP_FAILED) upon failure, and `errno` as POSIX defines
 * it; viaduct_error() and viaduct_error_code() say more. EBADF is also for a slot that is not open.
 *
 * The card does not look into the page cache. What the app has written is in the file once viaduct_msync() or
 * viaduct_munmap() has returned, and then read() and the program's own mappings of the file show it at once.
 * The app sees what others have written if its page is not on the card; viaduct_msync() with MS_INVALIDATE
 * removes it from there. Two mappings of one file have a page each and meet in the file in the same way.
 *
 * Host and app must not change one page at the same time: pages are written to the file as a whole. */

/* Constants without this prefix are those of <sys/mman.h>. */
#define VIADUCT_MAP_FAILED UINT64_MAX
#define VIADUCT_MAP_HOST 0x200000  /* pages are in host memory and are accessed over the link */
#define VIADUCT_MAP_SMALL 0x400000 /* pages of 4 KiB only; else of 2 MiB at first, from 2 MiB on */

/* Maps `length` bytes of a file, from `offset` on, and returns the address. Pages are loaded when the app
 * accesses them. Accesses beyond the last page of the file, and those that `prot` does not allow, end with an
 * error for the app, which viaduct_report.denied counts.
 *
 * `prot` is PROT_NONE, PROT_READ, PROT_WRITE or both: what the app may do; the card's hardware enforces it.
 * `flags` are MAP_SHARED (the app's changes are written to the file) or MAP_PRIVATE (they are seen through
 * this mapping only and never written), and any of
 *   MAP_FIXED            at `addr`, in place of what is mapped in the range, which is unmapped first
 *   MAP_FIXED_NOREPLACE  at `addr`, or not at all (EEXIST)
 *   MAP_ANONYMOUS        zeros, discarded with the mapping; `fd` is ignored. What the program wants to see
 *                        itself it puts into a memfd_create() file and maps in both places
 *   MAP_POPULATE         as many pages as there is room for are loaded at once
 *   MAP_HUGETLB          pages of 2 MiB; MAP_NORESERVE has no effect
 *   VIADUCT_MAP_HOST, VIADUCT_MAP_SMALL
 * Without one of the fixed ones `addr` is a hint, 0: none.
 *
 * `fd` may be a pipe or a stream socket, to be read or to be written (docs/host-api.md has more about both).
 * Read: an access waits for the data of its page, at most 10 seconds, and is denied then, or if the stream
 * has ended or is more than a window ahead. Written: bytes are sent once and in order, pages when the app has
 * begun one 512 KiB behind them, and all that it has written by viaduct_msync(), viaduct_munmap() and
 * viaduct_unload(). An access waits for room, at most 10 seconds, and is denied then, if it would change what
 * is sent, or if the reader has closed the stream. ESPIPE: it has no offset. EACCES: not for both at once, or
 * it is not open for that. EINVAL: it is neither private, nor of large pages, nor in host memory.
 *
 * EACCES: `fd` is not open for reading, or a shared mapping is to be written and `fd` not open for reading
 * and writing. EBADF: not an open descriptor. EEXIST: see above; also with MAP_FIXED if something of the
 * library is there. EINVAL: length 0, an offset or fixed address that is not a multiple of the page size,
 * flags unknown or in contradiction. ENODEV: neither a regular file nor a stream. ENOMEM: no room in the
 * address space or in memory, or the fixed range leaves 64 KiB to 2^48. ENOTSUP: other bits in `prot`.
 * EOVERFLOW: no file is so long. EIO and others: data of a mapping that was replaced could not be written. */
uint64_t viaduct_mmap(viaduct_slot* slot, uint64_t addr, uint64_t length, int prot, int flags, int fd,
                      int64_t offset);

/* Removes all mappings from a range. Mappings that it covers in part keep the rest. The app's changes are in
 * the files when this returns, and its accesses are over. EINVAL: `addr` is not a multiple of 4096, or
 * length 0. A page of 2 MiB of which a part goes is written and becomes pages of 4 KiB. Of a stream it sends
 * what comes before the end of the range, and if that is inside a page nothing behind it: so a stream gets
 * the length that the app's output has. EPIPE: its reader has closed it; ETIMEDOUT: the reader took nothing
 * for 10 seconds. EIO, ENOSPC and others: the mappings are gone, and changes that could not be written are
 * lost; viaduct_error() names file and bytes. */
int viaduct_munmap(viaduct_slot* slot, uint64_t addr, uint64_t length);

/* Brings file and app together. In every case the app's changes in the range are in the file when this
 * returns; `flags` are MS_ASYNC (no more than that), MS_SYNC (they are on stable storage), and MS_INVALIDATE
 * (the app sees from now on what is in the file, whoever has written it). ENOMEM: a part of the range is not
 * mapped. EINVAL: `addr` is not a multiple of 4096, or flags. Of a stream it sends what comes before the end
 * of the range, to the byte, and waits until it is taken: EPIPE and ETIMEDOUT as for viaduct_munmap(). EIO,
 * ENOSPC and others: changes could not be written; pages for which another attempt may help are kept for it.
 */
int viaduct_msync(viaduct_slot* slot, uint64_t addr, uint64_t length, int flags);

#define VIADUCT_MADV_REUSE 0x1000  /* pages of other ranges are evicted first */
#define VIADUCT_MADV_LOWUSE 0x1001 /* these are evicted before those of other ranges */

/* Says how the app will use a range. MADV_NORMAL: read-ahead follows the faults. MADV_SEQUENTIAL: every fault
 * loads much at once, and the pages are evicted before others, the oldest first. MADV_RANDOM: a fault loads
 * one page. MADV_WILLNEED: pages are loaded now, as many as there is room for. MADV_DONTNEED: changes are
 * written, and the card's memory is freed; changes of private mappings are discarded. ENOMEM, EINVAL as for
 * viaduct_msync(). */
int viaduct_madvise(viaduct_slot* slot, uint64_t addr, uint64_t length, int advice);

/* Operations that go on while the program does something else. Those of a slot are done in the order in which
 * they were begun; at most 64 wait (EAGAIN). Each handle is given to viaduct_wait(), before the slot is
 * unloaded. What may take long of viaduct_mmap() goes on by viaduct_munmap_begin() before it, instead of
 * MAP_FIXED, and viaduct_madvise_begin() after it, instead of MAP_POPULATE. */

int viaduct_munmap_begin(viaduct_slot* slot, uint64_t addr, uint64_t length, viaduct_pending** pending);
int viaduct_msync_begin(viaduct_slot* slot, uint64_t addr, uint64_t length, int flags,
                        viaduct_pending** pending);
int viaduct_madvise_begin(viaduct_slot* slot, uint64_t addr, uint64_t length, int advice,
                          viaduct_pending** pending);

/* Waits up to `timeout_ms` milliseconds (0: not at all, UINT32_MAX: without limit) for an operation and
 * returns its result, as the function does that does not go on; the handle is closed then. -1 with ETIMEDOUT:
 * it is still under way, and the handle stays open. One thread at a time waits for an operation. Of a run
 * that has failed viaduct_error_code() is what viaduct_run() or viaduct_start_and_wait() return. */
int viaduct_wait(viaduct_pending* pending, uint32_t timeout_ms);

/* A descriptor that is readable once an operation has ended, for poll() and its like. It is the library's,
 * which closes it with the handle, and is not to be read. -1 with EMFILE and others: there is none. */
int viaduct_pending_fd(viaduct_pending* pending);

/* Limits the card memory that the slot's pages hold, in bytes; 0: no limit. */
int viaduct_set_frames(viaduct_slot* slot, uint64_t bytes);

/* Limits the host memory for the slot's pages that MADV_RANDOM leaves there while card memory is full, in
 * bytes of mappings; UINT64_MAX: no limit, as at the beginning; 0: such pages are evicted instead. */
int viaduct_set_host_frames(viaduct_slot* slot, uint64_t bytes);

/* The channels of card memory that pages of mappings made from now on are in, bit k for channel k. 0, as at
 * the beginning: the slot's share, which is all of them while no other slot has mappings. VIADUCT_E_ARGUMENT:
 * the card has no such channel. */
int viaduct_set_channels(viaduct_slot* slot, uint32_t channels);

/* The slot's share of card memory beside others that use it at the same time: in proportion to the weights,
 * in bytes. 1, as at the beginning, to 15; else VIADUCT_E_ARGUMENT. What one does not use the others get. */
int viaduct_set_weight(viaduct_slot* slot, uint32_t weight);

/* The slot goes before those without this flag, which get the rest; with a rate while it keeps to it. */
#define VIADUCT_SCHEDULE_FIRST 1u
/* Beyond its rate the slot waits, even if nobody else wants anything. */
#define VIADUCT_SCHEDULE_LIMIT 2u

/* How the accesses of a slot to card memory, host memory and the link are scheduled beside those of others.
 * Bursts and bytes in flight are at most 255 times 16 beats. */
typedef struct viaduct_schedule {
  uint32_t weight;    /* as viaduct_set_weight, among slots that go first, or among the others */
  uint32_t flags;     /* VIADUCT_SCHEDULE_* */
  uint64_t rate;      /* bytes a second, reads and writes together, in steps of 1/256 beat a cycle; 0: none */
  uint64_t burst;     /* bytes that may pass at once after a rest; with rate */
  uint64_t in_flight; /* bytes under way at a time, reads and writes each; 0: no limit */
} viaduct_schedule;

/* Sets all of that; VIADUCT_E_ARGUMENT: a value out of its range, a limit without a rate, or a card that has
 * weights only. Takes effect at once, and ends with the slot. */
int viaduct_set_schedule(viaduct_slot* slot, const viaduct_schedule* schedule);

/* What the pager has done for the slot so far. */
typedef struct viaduct_pager {
  uint64_t faults;    /* served */
  uint64_t remapped;  /* of these, on pages that were on the card */
  uint64_t pages_in;  /* loaded */
  uint64_t pages_out; /* written back */
  uint64_t evicted;
  uint64_t denied;     /* accesses */
  uint64_t damaged;    /* entries of the page table in card memory */
  uint64_t overflowed; /* pages that stayed in host memory, since card memory was full */
  uint64_t demoted;    /* blocks of 2 MiB that got pages of 4 KiB */
  uint64_t promoted;   /* blocks that got a page of 2 MiB again */
} viaduct_pager;

int viaduct_get_pager(viaduct_slot* slot, viaduct_pager* pager);

/* Runs an app that works through its memory port, with the registers that its manifest names: writes `addr`
 * and `length` to them, starts the app, serves its page faults and waits until it is done. With length 0
 * nothing is written: the program has set the registers with the location of the app's data. `limit_ms` is
 * the longest time for the run, 0: no limit while the app shows activity. Of `options`, which may be NULL,
 * `progress` and `user` are used, and the rest must be 0; `progress` gets zeros but may stop the run. The
 * app's changes are in the files after viaduct_msync() or viaduct_munmap(). */
int viaduct_start_and_wait(viaduct_slot* slot, uint64_t addr, uint64_t length, uint32_t limit_ms,
                           const viaduct_run_options* options, viaduct_report* report);

/* The same, but it goes on while the program does something else, as viaduct_run_begin() says of runs of
 * streams: starts the app, and viaduct_wait() waits for it. */
int viaduct_start(viaduct_slot* slot, uint64_t addr, uint64_t length, uint32_t limit_ms,
                  const viaduct_run_options* options, viaduct_report* report, viaduct_pending** pending);

/* How often the app has raised its interrupt, as far as the library has seen. */
int viaduct_get_irqs(viaduct_slot* slot, uint64_t* irqs);

/* A slot that viaduct_wait_for_one() waits for. */
typedef struct viaduct_awaited {
  viaduct_slot* slot;
  uint64_t irqs; /* interrupts of its app that the program has seen: it waits for more */
} viaduct_awaited;

/* One thread that works with several slots of a card: waits, as poll() does for descriptors, until the app of
 * one of them has raised its interrupt, and serves the page faults of all meanwhile. Nothing else serves them
 * if the program has started the apps by their registers (viaduct_set()). Returns the index of the first such
 * slot in the list. -1 with ETIMEDOUT: there is none after `timeout_ms` milliseconds (UINT32_MAX: without
 * limit; a slot without activity counts as hung all the same, see viaduct_timeouts). EINVAL: no slot is
 * listed, or they are not of one card. EBADF: one is not open. EIO and others: the app of one broke a rule,
 * or the card failed; viaduct_error() names the slot, which is unloaded or left out of the next list. */
int viaduct_wait_for_one(const viaduct_awaited* slots, size_t count, uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
