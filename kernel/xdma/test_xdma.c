// SPDX-License-Identifier: GPL-2.0
/*
 * Exercises the device files of viaduct_xdma on a card: data of all alignments
 * against a copy kept here, asynchronous requests, bad buffers and addresses,
 * signals, time-outs, several processes, unbinding during transfers. As root, the module loaded:
 *
 *   cc -O2 -static -o test_xdma test_xdma.c && ./test_xdma [SEED [user]]
 *
 * Uses the first 8 MiB of card memory. To hold transfers it sets the engine's
 * halt bits through the control file. With `user` slot 0 is open to the
 * function (--xdma-app rng), otherwise none is.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CARD	"/dev/viaduct_xdma0_"
#define PARAM	"/sys/module/viaduct_xdma/parameters/"
#define SIZE	(8u << 20)
#define PATIENCE 60	/* seconds for operations that are immediate on an idle machine */
#define LONG	"600000"	/* milliseconds for a list: the card may be simulated */

static int h2c, c2h, control, user;
static int user_open;
static uint8_t *want, *mem, *back;

#define check(cond, ...) do {						\
	if (!(cond)) {							\
		printf("FAIL line %d: %s: errno %d: ", __LINE__, #cond, errno);	\
		printf(__VA_ARGS__);					\
		printf("\n");						\
		exit(1);						\
	}								\
} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
	close(fd);
}

static uint32_t reg_read(unsigned int at)
{
	uint32_t value;

	check(pread(control, &value, 4, at) == 4, "register %#x", at);
	return value;
}

static void reg_write(unsigned int at, uint32_t value)
{
	check(pwrite(control, &value, 4, at) == 4, "register %#x", at);
}

static void halt(int on)
{
	reg_write(on ? 0x6014 : 0x6018, 0x10001);
}

static void open_all(void)
{
	h2c = open(CARD "h2c_0", O_WRONLY);
	c2h = open(CARD "c2h_0", O_RDONLY);
	control = open(CARD "control", O_RDWR);
	user = open(CARD "user", O_RDWR);
	check(h2c >= 0 && c2h >= 0 && control >= 0 && user >= 0, "device files");
}

static void close_all(void)
{
	close(h2c);
	close(c2h);
	close(control);
	close(user);
}

static size_t length(void)
{
	switch (rand() % 4) {
	case 0: return 1 + rand() % 200;
	case 1: return 1 + rand() % 20000;
	case 2: return 4096u << rand() % 7;
	default: return 1 + rand() % 300000;
	}
}

static void random_data(int turns)
{
	for (int i = 0; i < turns; i++) {
		size_t n = length(), at = rand() % (SIZE - n), off = rand() % 5000;

		for (size_t k = 0; k < n; k++)
			mem[off + k] = rand();
		check(pwrite(h2c, mem + off, n, at) == (ssize_t)n, "write %zu at %zu", n, at);
		memcpy(want + at, mem + off, n);
		n = length();
		at = rand() % (SIZE - n);
		off = rand() % 5000;
		memset(back, 0x55, off + n + 64);
		check(pread(c2h, back + off, n, at) == (ssize_t)n, "read %zu at %zu", n, at);
		check(!memcmp(back + off, want + at, n), "read %zu at %zu into %zu", n, at, off);
		for (size_t k = 0; k < 64; k++)
			check(back[off + n + k] == 0x55 && (k >= off || back[off - 1 - k] == 0x55),
			      "bytes around %zu at %zu", n, at);
	}
}

static void large_and_vectors(void)
{
	struct iovec iov[4] = {
		{ mem + 3, 5000 }, { NULL, 0 }, { mem + 70001, 1 }, { mem + 100000, 70000 }
	};
	size_t at = 77, k = at;
	double t = now();

	for (size_t i = 0; i < SIZE; i++)
		want[i] = i * 2654435761u >> 13;
	check(pwrite(h2c, want, SIZE, 0) == SIZE, "8 MiB");
	check(pread(c2h, back, SIZE, 0) == SIZE, "8 MiB");
	check(!memcmp(want, back, SIZE), "8 MiB");
	printf("8 MiB to the card and back: %.3f s\n", now() - t);
	check(pwritev(h2c, iov, 4, at) == 75001, "writev");
	for (int i = 0; i < 4; i++) {
		memcpy(want + k, iov[i].iov_base, iov[i].iov_len);
		k += iov[i].iov_len;
	}
	check(lseek(c2h, 70, SEEK_SET) == 70, "seek");
	check(read(c2h, back, 40000) == 40000, "reads in turn");
	check(read(c2h, back + 40000, 40000) == 40000, "reads in turn");
	check(!memcmp(want + 70, back, 80000), "writev");
	check(pread(c2h, back, 0, 0) == 0, "no bytes");
}

static void asynchronous(void)
{
	aio_context_t ctx = 0;
	struct iocb io[16], *list[16];
	struct io_event ev[16];

	check(!syscall(SYS_io_setup, 16, &ctx), "io_setup");
	for (int turn = 0; turn < 2; turn++) {
		int n = 0, got = 0;

		for (int i = 0; i < 16; i++) {
			size_t at = i * 100000 + 11, len = 90000 + i;

			memset(&io[i], 0, sizeof(io[i]));
			io[i].aio_fildes = turn ? c2h : h2c;
			io[i].aio_lio_opcode = turn ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
			io[i].aio_buf = (uintptr_t)(turn ? back : mem) + at + 100;
			io[i].aio_nbytes = len;
			io[i].aio_offset = at;
			io[i].aio_data = len;
			list[i] = &io[i];
			if (!turn) {
				for (size_t k = 0; k < len; k++)
					mem[at + 100 + k] = rand();
				memcpy(want + at, mem + at + 100, len);
			}
		}
		n = syscall(SYS_io_submit, ctx, 16, list);
		check(n == 16, "submitted %d", n);
		while (got < 16) {
			int k = syscall(SYS_io_getevents, ctx, 1, 16, ev, NULL);

			check(k > 0, "io_getevents");
			for (int i = 0; i < k; i++)
				check(ev[i].res == (int64_t)ev[i].data, "result %lld",
				      (long long)ev[i].res);
			got += k;
		}
	}
	for (int i = 0; i < 16; i++)
		check(!memcmp(want + i * 100000 + 11, back + i * 100000 + 111, 90000 + i),
		      "request %d", i);
	syscall(SYS_io_destroy, ctx);
}

static void bad_requests(void)
{
	uint8_t *hole = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(munmap(hole + 4096, 4096) == 0, "hole");
	memset(hole, 1, 4096);
	check(pwrite(h2c, hole, 8192, 0) == 4096, "up to the hole");
	memcpy(want, hole, 4096);
	check(pwrite(h2c, hole + 4096, 100, 0) < 0 && errno == EFAULT, "unmapped buffer");
	check(mprotect(hole, 4096, PROT_READ) == 0, "protect");
	check(pread(c2h, hole, 100, 0) < 0 && errno == EFAULT, "a read-only page");
	check(write(c2h, mem, 4) < 0 && errno == EBADF, "wrong direction");
	check(pread(c2h, back, 100, 1ll << 50) < 0 && errno == EIO, "no such card memory");
	check(pwrite(h2c, mem, 9000, (1ll << 50) + 3) < 0 && errno == EIO, "no such card memory");
	check(pread(control, back, 3, 0) < 0 && errno == EINVAL, "not a word");
	check(pread(control, back, 64, 0x8000) == 0, "beyond the registers");
	check(lseek(c2h, 0, SEEK_END) < 0, "there is no end");
	random_data(3);		/* and everything still works */
	munmap(hole, 4096);
	munmap(hole + 8192, 4096);
}

static void no_mapping(size_t len, int kind, off_t at, int why)
{
	check(mmap(NULL, len, PROT_READ, kind, user, at) == MAP_FAILED && errno == why,
	      "%zu bytes of the user BAR at %#lx", len, (long)at);
}

/*
 * Registers of the slots' apps: slot s at 0x1000 s. Those of app rng at 0x10
 * and 0x14, `size` and `count`, keep the values written.
 */
static void user_registers(void)
{
	volatile uint32_t *regs = mmap(NULL, 0x10000, PROT_READ | PROT_WRITE, MAP_SHARED, user, 0);
	volatile uint32_t *last = mmap(NULL, 4096, PROT_READ, MAP_SHARED, user, 0xf000);
	uint32_t two[2] = { rand(), rand() }, got[2];

	check(regs != MAP_FAILED && last != MAP_FAILED, "mapped");
	check(pwrite(user, two, 8, 0x10) == 8 && pread(user, got, 8, 0x10) == 8, "words");
	if (user_open) {
		check(got[0] == two[0] && got[1] == two[1], "%#x %#x", got[0], got[1]);
		check(regs[4] == two[0] && regs[5] == two[1], "mapped");
		regs[5] = ~two[1];
		check(pread(user, got, 4, 0x14) == 4 && got[0] == ~two[1], "%#x", got[0]);
		check(lseek(user, 0x10, SEEK_SET) == 0x10, "seek");
		check(read(user, got, 4) == 4 && read(user, got + 1, 4) == 4, "in turn");
		check(got[0] == two[0] && got[1] == ~two[1], "in turn");
	} else {
		check(got[0] == UINT32_MAX && regs[4] == UINT32_MAX, "slot 0 is closed");
	}
	check(regs[0x1000 / 4] == UINT32_MAX && last[0] == UINT32_MAX, "the others are closed");
	/* Bounds. */
	check(pread(user, got, 3, 0) < 0 && errno == EINVAL, "not a word");
	check(pwrite(user, two, 4, 2) < 0 && errno == EINVAL, "not a word");
	check(pread(user, got, 8, 0xfffc) == 4, "up to the end");
	check(pread(user, got, 4, 0x10000) == 0, "beyond the end");
	check(pwrite(user, two, 4, 1ll << 40) < 0 && errno == ENOSPC, "beyond the end");
	check(lseek(user, 0, SEEK_END) < 0, "there is no end to seek");
	no_mapping(0x11000, MAP_SHARED, 0, EINVAL);
	no_mapping(8192, MAP_SHARED, 0xf000, EINVAL);
	no_mapping(4096, MAP_SHARED, 0x10000, EINVAL);
	no_mapping(4096, MAP_PRIVATE, 0, EINVAL);
	check(munmap((void *)last, 4096) == 0, "unmap");
	check(pread(user, (void *)last, 4, 0) < 0 && errno == EFAULT, "no buffer");
	munmap((void *)regs, 0x10000);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void gives_up(void)
{
	struct sigaction act = { .sa_handler = on_alarm };
	double t = now();

	sigaction(SIGALRM, &act, NULL);
	halt(1);
	alarm(1);
	check(pwrite(h2c, mem, 10000, 0) < 0 && errno == EINTR, "interrupted");
	check(now() - t < PATIENCE, "took %.1f s", now() - t);
	put(PARAM "timeout_ms", "300");
	t = now();
	check(pread(c2h, back, 10000, 0) < 0 && errno == ETIMEDOUT, "time-out");
	check(now() - t > 0.29 && now() - t < PATIENCE, "took %.1f s", now() - t);
	put(PARAM "timeout_ms", LONG);
	halt(0);
	random_data(3);
	/* Killed during a transfer. */
	halt(1);
	pid_t child = fork();

	if (!child) {
		pwrite(h2c, mem, 1000000, 4000000);
		_exit(0);
	}
	usleep(200000);
	kill(child, SIGKILL);
	t = now();
	check(waitpid(child, NULL, 0) == child && now() - t < PATIENCE, "killed");
	halt(0);
	random_data(3);
}

static void events(void)
{
	int fd = open(CARD "events_3", O_RDONLY | O_NONBLOCK);
	uint32_t count;
	struct pollfd p = { fd, POLLIN, 0 };

	check(fd >= 0 && reg_read(0x2004) == 8, "enabled while open");
	check(read(fd, &count, 4) < 0 && errno == EAGAIN, "none yet");
	check(poll(&p, 1, 50) == 0, "none yet");
	close(fd);
	check(reg_read(0x2004) == 0, "disabled");
}

/* Several processes, with polling switched on and off, until the card is removed. */
static void under_load(const char *slot)
{
	int fd, status;

	for (int i = 0; i < 6; i++) {
		if (fork())
			continue;
		srand(i + 10);	/* 0 and 1 are the same */
		for (;;) {
			size_t n = 1 + rand() % 100000, at = i * 1000000 + rand() % 800000;

			for (size_t k = 0; k < n; k++)
				mem[k] = rand();
			ssize_t w = pwrite(h2c, mem, n, at);
			ssize_t r = w == (ssize_t)n ? pread(c2h, back, n, at) : -1;

			if (r == (ssize_t)n && !memcmp(mem, back, n))
				continue;
			if (errno == ENODEV || (w >= 0 && w < (ssize_t)n) ||
			    (r >= 0 && r < (ssize_t)n))
				_exit(0);
			printf("FAIL process %d: %zd and %zd of %zu, errno %d\n", i, w, r, n,
			       errno);
			_exit(1);
		}
	}
	for (int i = 0; i < 10; i++) {
		usleep(100000);
		put(PARAM "poll", i & 1 ? "0" : "1");
	}
	fd = open("/sys/bus/pci/drivers/viaduct_xdma/unbind", O_WRONLY);
	check(fd >= 0 && write(fd, slot, strlen(slot)) > 0, "unbind");
	close(fd);
	for (int i = 0; i < 6; i++) {
		wait(&status);
		check(status == 0, "a process under load");
	}
	close_all();
	put("/sys/bus/pci/drivers/viaduct_xdma/bind", slot);
	open_all();
	/* Their data is unknown here. */
	check(pwrite(h2c, want, SIZE, 0) == SIZE, "refill");
	random_data(5);
}

static sigjmp_buf bus;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(bus, 1);
}

static void goes_away(const char *slot)
{
	volatile uint32_t *regs = mmap(NULL, 0x8000, PROT_READ, MAP_SHARED, control, 0);
	volatile uint32_t *apps = mmap(NULL, 0x10000, PROT_READ, MAP_SHARED, user, 0);
	struct sigaction act = { .sa_handler = on_bus };
	int event = open(CARD "events_0", O_RDONLY), status, fd;
	uint32_t count;
	double t;

	check(regs != MAP_FAILED && regs[0] == 0x1fc00006, "mapped registers");
	check(apps != MAP_FAILED && apps[0xf000 / 4] == UINT32_MAX, "mapped registers of apps");
	halt(1);
	pid_t child = fork();

	if (!child)
		_exit(pwrite(h2c, mem, 5000, 0) < 0 ? errno : 0);
	pid_t waiter = fork();

	if (!waiter)
		_exit(read(event, &count, 4) < 0 ? errno : 0);
	usleep(300000);
	t = now();
	fd = open("/sys/bus/pci/drivers/viaduct_xdma/unbind", O_WRONLY);
	check(fd >= 0 && write(fd, slot, strlen(slot)) > 0, "unbind");
	close(fd);
	check(now() - t < PATIENCE, "unbinding took %.1f s", now() - t);
	waitpid(child, &status, 0);
	check(WEXITSTATUS(status) == ENODEV, "transfer ended with %d", WEXITSTATUS(status));
	waitpid(waiter, &status, 0);
	check(WEXITSTATUS(status) == ENODEV, "wait ended with %d", WEXITSTATUS(status));
	check(pwrite(h2c, mem, 5000, 0) < 0 && errno == ENODEV, "gone");
	check(pread(control, &count, 4, 0) < 0 && errno == ENODEV, "gone");
	check(pread(user, &count, 4, 0) < 0 && errno == ENODEV, "gone");
	check(pwrite(user, &count, 4, 0) < 0 && errno == ENODEV, "gone");
	no_mapping(4096, MAP_SHARED, 0, ENODEV);
	sigaction(SIGBUS, &act, NULL);
	if (!sigsetjmp(bus, 1)) {
		count = regs[0];
		check(0, "the mapping still reads %#x", count);
	}
	if (!sigsetjmp(bus, 1)) {
		count = apps[0];
		check(0, "the apps' mapping still reads %#x", count);
	}
	check(open(CARD "h2c_0", O_WRONLY) < 0 && errno == ENOENT, "the node is gone");
	close_all();
	close(event);
	munmap((void *)regs, 0x8000);
	munmap((void *)apps, 0x10000);
	put("/sys/bus/pci/drivers/viaduct_xdma/bind", slot);
	open_all();
	halt(0);
	random_data(5);
}

int main(int argc, char **argv)
{
	unsigned int seed = argc > 1 ? atoi(argv[1]) : time(NULL);
	char slot[64], path[256], link[256];

	user_open = argc > 2 && !strcmp(argv[2], "user");
	printf("seed %u\n", seed);
	srand(seed);
	want = calloc(1, SIZE + 8192);
	mem = malloc(SIZE + 8192);
	back = malloc(SIZE + 8192);
	open_all();
	put(PARAM "timeout_ms", LONG);
	snprintf(path, sizeof(path), "/sys/class/misc/%s/device", CARD "h2c_0" + 5);
	ssize_t n = readlink(path, link, sizeof(link) - 1);

	check(n > 0, "sysfs");
	link[n] = 0;
	snprintf(slot, sizeof(slot), "%s", strrchr(link, '/') + 1);

	for (int poll = 0; poll < 2; poll++) {
		put(PARAM "poll", poll ? "1" : "0");
		large_and_vectors();
		random_data(40);
		asynchronous();
		bad_requests();
		gives_up();
		events();
		user_registers();
		goes_away(slot);
		under_load(slot);
		put(PARAM "poll", poll ? "1" : "0");
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", slot);
		if (!access(path, W_OK)) {
			put(path, "1");
			random_data(5);
		}
		printf("poll=%d: passed\n", poll);
	}
	put(PARAM "poll", "0");
	printf("PASS\n");
	return 0;
}
