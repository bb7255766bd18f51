// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the control file of the module as a program that is adapter and device
 * at once: a disk in memory, well-behaved and otherwise.
 *
 * The argument is the number of times that a device is plugged and unplugged.
 * Needs the module, virtio_blk, and root. Prints a line per test; ends with 1 at
 * the first that fails.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_ring.h>

#include "viaduct_loopback.h"

#define SIZE	64U		/* descriptors */
#define DISK	(8U << 20)
#define BOUNCE	(1U << 20)
#define WINDOW	(4U << 20)
#define BIG	(256U << 10)	/* bytes of a mapped request */
#define LIMIT	60		/* seconds for anything */

#define CHECK(what) do { \
	if (!(what)) { \
		fprintf(stderr, "FAIL: %s, line %d: %s (%s)\n", __func__, __LINE__, #what, \
			strerror(errno)); \
		exit(1); \
	} \
} while (0)

struct device {
	int fd, mem, kick, call;
	struct viaduct_loopback_create made;
	struct viaduct_loopback_queue queue;
	uint8_t *map;
	struct vring ring;
	uint16_t avail, used;
	char node[32];
	uint8_t *disk;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static uint32_t bounce = BOUNCE;

static struct viaduct_loopback_create disk_of(uint32_t map_min)
{
	struct viaduct_loopback_create c = {
		.version = VIADUCT_LOOPBACK_VERSION,
		.type = VIRTIO_ID_BLOCK,
		.features = 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_RING_F_INDIRECT_DESC |
			    1ULL << VIRTIO_BLK_F_SEG_MAX,
		.queues = 1,
		.queue_size = SIZE,
		.bounce = bounce,
		.window = WINDOW,
		.map_min = map_min,
		.config_size = sizeof(struct virtio_blk_config),
	};
	struct virtio_blk_config config = { .capacity = DISK / 512, .seg_max = 126 };

	memcpy(c.config, &config, sizeof(config));
	return c;
}

static void *at(struct device *d, uint64_t addr, uint64_t len)
{
	CHECK(addr >= d->made.base && len <= d->made.size);
	CHECK(addr - d->made.base <= d->made.size - len);
	return d->map + (addr - d->made.base);
}

static void create(struct device *d, uint32_t map_min)
{
	memset(d, 0, sizeof(*d));
	d->fd = open("/dev/viaduct-loopback", O_RDWR | O_CLOEXEC);
	CHECK(d->fd >= 0);
	d->made = disk_of(map_min);
	CHECK(!ioctl(d->fd, VIADUCT_LOOPBACK_CREATE, &d->made));
	d->mem = ioctl(d->fd, VIADUCT_LOOPBACK_MEMORY);
	CHECK(d->mem >= 0);
	CHECK(lseek(d->mem, 0, SEEK_END) == (off_t)d->made.size);
	d->map = mmap(NULL, d->made.size, PROT_READ | PROT_WRITE, MAP_SHARED, d->mem, 0);
	CHECK(d->map != MAP_FAILED);
	d->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->call = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->queue = (struct viaduct_loopback_queue) { .kick = d->kick, .call = d->call };
	CHECK(!ioctl(d->fd, VIADUCT_LOOPBACK_QUEUE, &d->queue));
	d->ring.num = SIZE;
	d->ring.desc = at(d, d->queue.desc, sizeof(struct vring_desc) * SIZE);
	d->ring.avail = at(d, d->queue.avail, 6 + 2 * SIZE);
	d->ring.used = at(d, d->queue.used, 6 + 8 * SIZE);
	d->disk = calloc(1, DISK);
	CHECK(d->disk);
}

static struct viaduct_loopback_state state_of(struct device *d)
{
	struct viaduct_loopback_state s;

	CHECK(!ioctl(d->fd, VIADUCT_LOOPBACK_STATE, &s));
	return s;
}

static void acknowledge(struct device *d)
{
	struct viaduct_loopback_state s = state_of(d);
	struct viaduct_loopback_ack ack = { s.resets, s.writes };

	CHECK(!ioctl(d->fd, VIADUCT_LOOPBACK_ACK, &ack));
}

/* The next request's head, or -1. */
static int take(struct device *d)
{
	uint16_t idx = __atomic_load_n(&d->ring.avail->idx, __ATOMIC_ACQUIRE);

	if (idx == d->avail)
		return -1;
	return d->ring.avail->ring[d->avail++ % SIZE];
}

static void answer(struct device *d, uint32_t id, uint32_t len)
{
	uint64_t one = 1;

	d->ring.used->ring[d->used % SIZE] = (struct vring_used_elem) { id, len };
	__atomic_store_n(&d->ring.used->idx, ++d->used, __ATOMIC_RELEASE);
	CHECK(write(d->call, &one, 8) == 8);
}

/* The descriptors of a request, which may be in a table of their own. */
static unsigned int chain(struct device *d, int head, struct vring_desc *out)
{
	struct vring_desc *table = d->ring.desc;
	unsigned int n = 0, size = SIZE, i = head;

	if (table[i].flags & VRING_DESC_F_INDIRECT) {
		size = table[i].len / sizeof(*table);
		table = at(d, table[i].addr, table[i].len);
		i = 0;
	}
	for (;; i = table[i].next) {
		CHECK(i < size && n < 1024);
		out[n++] = table[i];
		if (!(table[i].flags & VRING_DESC_F_NEXT))
			return n;
	}
}

static void carry_out(struct device *d, int head, uint32_t extra)
{
	struct vring_desc desc[1024];
	unsigned int n = chain(d, head, desc), i;
	struct virtio_blk_outhdr *h = at(d, desc[0].addr, desc[0].len);
	uint64_t place = h->sector * 512;
	uint32_t written = 1;
	uint8_t *status = at(d, desc[n - 1].addr, 1);

	CHECK(n >= 2 && desc[0].len == sizeof(*h) && desc[n - 1].len == 1);
	*status = VIRTIO_BLK_S_OK;
	for (i = 1; i < n - 1; i++) {
		void *data = at(d, desc[i].addr, desc[i].len);

		if (place + desc[i].len > DISK) {
			*status = VIRTIO_BLK_S_IOERR;
			break;
		}
		if (h->type == VIRTIO_BLK_T_OUT) {
			memcpy(d->disk + place, data, desc[i].len);
		} else {
			memcpy(data, d->disk + place, desc[i].len);
			written += desc[i].len;
		}
		place += desc[i].len;
	}
	answer(d, head, written + extra);
}

/* Serves until `done` says so. */
static void serve(struct device *d, bool (*done)(struct device *d))
{
	double end = now() + LIMIT;
	int head;

	while (!done(d)) {
		uint64_t count;

		while ((head = take(d)) >= 0)
			carry_out(d, head, 0);
		CHECK(now() < end);
		acknowledge(d);
		poll(&(struct pollfd) { .fd = d->kick, .events = POLLIN }, 1, 10);
		if (read(d->kick, &count, 8) < 0)
			CHECK(errno == EAGAIN);
	}
}

static bool is_bound(struct device *d)
{
	char pattern[64];
	glob_t found;

	if (!(state_of(d).flags & VIADUCT_LOOPBACK_F_BOUND))
		return false;
	snprintf(pattern, sizeof(pattern), "/sys/bus/virtio/devices/virtio%u/block/vd*",
		 state_of(d).index);
	CHECK(!glob(pattern, 0, NULL, &found));
	snprintf(d->node, sizeof(d->node), "/dev/%s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	return true;
}

static void plug(struct device *d)
{
	CHECK(!ioctl(d->fd, VIADUCT_LOOPBACK_PLUG));
	serve(d, is_bound);
	while (access(d->node, F_OK))
		usleep(1000);
}

static void unplug(struct device *d)
{
	double begin = now();

	close(d->fd);
	CHECK(now() - begin < LIMIT);
	munmap(d->map, d->made.size);
	close(d->mem);
	close(d->kick);
	close(d->call);
	free(d->disk);
}

static uint64_t counter(struct device *d, const char *name)
{
	char path[96], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/virtio/devices/virtio%u/viaduct/%s",
		 state_of(d).index, name);
	file = fopen(path, "r");
	CHECK(file && fgets(text, sizeof(text), file));
	fclose(file);
	return strtoull(text, NULL, 10);
}

/* ------------------------------------------------------------ a process that uses the disk */

static pid_t child;
static int child_status;

static bool has_ended(struct device *d)
{
	(void)d;
	return waitpid(child, &child_status, WNOHANG) == child;
}

static void start(struct device *d, int (*work)(struct device *d))
{
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		close(d->fd);	/* the last close unplugs the device */
		_exit(work(d));
	}
}

static void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static int io(struct device *d, bool out, uint8_t *data, size_t size, off_t place)
{
	int fd = open(d->node, O_RDWR | O_DIRECT);
	ssize_t n = out ? pwrite(fd, data, size, place) : pread(fd, data, size, place);
	int err = n == (ssize_t)size ? 0 : n < 0 ? errno : EBADMSG;

	close(fd);
	return err;
}

static int write_and_read(struct device *d)
{
	uint8_t *a = pages(BIG), *b = pages(BIG);
	size_t size, i;

	for (i = 0; i < BIG; i++)
		a[i] = i * 7 + i / 251;
	for (size = 512; size <= BIG; size *= 2) {
		memset(b, 0, BIG);
		if (io(d, true, a, size, size) || io(d, false, b, size, size) || memcmp(a, b, size))
			return 1;
	}
	/* Not on a page's edge. */
	memset(b, 0, BIG);
	return io(d, true, a + 512, BIG - 1024, 0) || io(d, false, b + 1536, BIG - 2048, 0) ||
	       memcmp(a + 512, b + 1536, BIG - 2048);
}

static int read_big(struct device *d)
{
	return io(d, false, pages(BIG), BIG, 0);
}

static int write_big(struct device *d)
{
	return io(d, true, memset(pages(BIG), 0x5a, BIG), BIG, BIG);
}

/* One request of 32 KiB that are mapped and 42 KiB that are copied. */
static int read_mixed(struct device *d)
{
	struct iovec parts[13] = { { pages(32768), 32768 } };
	int fd = open(d->node, O_RDONLY | O_DIRECT), i;

	for (i = 1; i < 13; i++)
		parts[i] = (struct iovec) { (uint8_t *)pages(4096) + 512, 3584 };
	return preadv(fd, parts, 13, 0) != 32768 + 12 * 3584;
}

static int read_until_error(struct device *d)
{
	int err;

	do
		err = io(d, false, pages(BIG), BIG, 0);
	while (!err);
	return err;
}

/* Waits for a request without answering it. */
static int wait_for_request(struct device *d)
{
	double end = now() + LIMIT;
	int head;

	while ((head = take(d)) < 0) {
		CHECK(now() < end);
		usleep(1000);
	}
	return head;
}

/* Whether an access to the memory is refused. */
static bool refused(volatile uint8_t *p, bool write)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		if (write)
			*p = 1;
		else
			(void)*p;
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status)) {
		CHECK(WTERMSIG(status) == SIGBUS);
		return true;
	}
	return false;
}

static bool soon_refused(uint8_t *p)
{
	double end = now() + LIMIT;

	while (!refused(p, false))
		if (now() > end)
			return false;
	return true;
}

/* ------------------------------------------------------------ tests */

static bool unmappable(int mem, size_t size, int flags, off_t offset)
{
	return mmap(NULL, size, PROT_READ, flags, mem, offset) == MAP_FAILED && errno == EINVAL;
}

static void what_is_not_a_device_is_refused(void)
{
	struct viaduct_loopback_create good = disk_of(16384), c;
	struct viaduct_loopback_queue q = { .kick = 0, .call = 0 };
	struct viaduct_loopback_ack ack = { .resets = 1 };
	int fd = open("/dev/viaduct-loopback", O_RDWR), events = eventfd(0, 0), mem;

	CHECK(fd >= 0);
#define WRONG(field, value, error) do { \
	c = good; \
	c.field = value; \
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_CREATE, &c) == -1 && errno == (error)); \
} while (0)
	WRONG(version, 2, EPROTO);
	WRONG(type, 99, EOPNOTSUPP);
	WRONG(type, 258, EOPNOTSUPP);
	WRONG(features, 0, EOPNOTSUPP);
	WRONG(queues, 0, EINVAL);
	WRONG(queues, VIADUCT_LOOPBACK_MAX_QUEUES + 1, EINVAL);
	WRONG(queue_size, 63, EINVAL);
	WRONG(queue_size, 2048, EINVAL);
	WRONG(bounce, 4096, EINVAL);
	WRONG(bounce, BOUNCE + 512, EINVAL);
	WRONG(window, 1U << 31, EINVAL);
	WRONG(config_size, 257, EINVAL);
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_CREATE, 8) == -1 && errno == EFAULT);
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_PLUG) == -1 && errno == EBUSY);
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_MEMORY) == -1 && errno == ENOTCONN);
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_RESTART) == -1 && errno == ENOTCONN);
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_QUEUE, &q) == -1 && errno == ENOTCONN);
	c = good;
	CHECK(!ioctl(fd, VIADUCT_LOOPBACK_CREATE, &c));
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_CREATE, &c) == -1 && errno == EBUSY);
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_PLUG) == -1 && errno == ENOTCONN);
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_ACK, &ack) == -1 && errno == EINVAL);
	q.kick = fd;
	q.call = events;
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_QUEUE, &q) == -1 && errno == EINVAL);
	q.kick = events;
	q.index = 1;
	CHECK(ioctl(fd, VIADUCT_LOOPBACK_QUEUE, &q) == -1 && errno == EINVAL);
	q.index = 0;
	/* One for both directions, and again. */
	CHECK(!ioctl(fd, VIADUCT_LOOPBACK_QUEUE, &q));
	CHECK(!ioctl(fd, VIADUCT_LOOPBACK_QUEUE, &q));
	mem = ioctl(fd, VIADUCT_LOOPBACK_MEMORY);
	CHECK(mem >= 0);
	CHECK(unmappable(mem, c.size + 4096, MAP_SHARED, 0));
	CHECK(unmappable(mem, 4096, MAP_SHARED, c.size));
	CHECK(unmappable(mem, 4096, MAP_PRIVATE, 0));
	/* The memory is there longer than the device. */
	close(fd);
	CHECK(!unmappable(mem, 4096, MAP_SHARED, 0));
	close(mem);
	close(events);
}

static void data_is_the_same(void)
{
	struct device d;

	create(&d, 16384);
	plug(&d);
	start(&d, write_and_read);
	serve(&d, has_ended);
	CHECK(child_status == 0);
	/* Four sizes from 16 KiB, both ways; then the copied ones, and headers. */
	CHECK(counter(&d, "mapped") >= 2 * (BIG * 2 - 16384));
	CHECK(counter(&d, "faults") > 0);
	unplug(&d);
	/* The same without a single mapped page. */
	create(&d, 1U << 30);
	plug(&d);
	start(&d, write_and_read);
	serve(&d, has_ended);
	CHECK(child_status == 0 && counter(&d, "mapped") == 0 && counter(&d, "copied") > 2 * BIG);
	unplug(&d);
}

static void only_what_is_in_flight_can_be_reached(void)
{
	struct vring_desc desc[1024];
	struct device d;
	uint8_t *data;
	int head;

	create(&d, 16384);
	plug(&d);
	CHECK(refused(d.map + d.made.size - 4096, false));
	/* Written by the driver: to be read, not written. */
	start(&d, write_big);
	head = wait_for_request(&d);
	chain(&d, head, desc);
	data = at(&d, desc[1].addr, desc[1].len);
	CHECK(refused(data, true));
	CHECK(data[0] == 0x5a && data[desc[1].len - 1] == 0x5a);
	CHECK(refused(data, true));
	CHECK(refused(data + BIG, false));
	carry_out(&d, head, 0);
	serve(&d, has_ended);
	CHECK(child_status == 0);
	CHECK(soon_refused(data));
	/* Read by the driver. */
	start(&d, read_big);
	head = wait_for_request(&d);
	chain(&d, head, desc);
	data = at(&d, desc[1].addr, desc[1].len);
	CHECK(!refused(data, true));
	carry_out(&d, head, 0);
	serve(&d, has_ended);
	CHECK(child_status == 0);
	CHECK(soon_refused(data));
	unplug(&d);
}

/* A request with room in the window, but not in the bounce area: it waits, and touches no page. */
static void half_a_request_waits(void)
{
	struct vring_desc desc[1024];
	struct device d;
	uint8_t *data;
	pid_t first;
	int head;

	bounce = 64U << 10;
	create(&d, 16384);
	plug(&d);
	/* Leaves slots that have been mapped; their pages are free. */
	start(&d, write_big);
	head = wait_for_request(&d);
	chain(&d, head, desc);
	data = at(&d, desc[1].addr, desc[1].len);
	carry_out(&d, head, 0);
	serve(&d, has_ended);
	CHECK(child_status == 0 && soon_refused(data));
	start(&d, read_mixed);
	first = child;
	head = wait_for_request(&d);
	start(&d, read_mixed);
	usleep(300000);
	CHECK(take(&d) < 0);
	carry_out(&d, head, 0);
	serve(&d, has_ended);
	CHECK(child_status == 0);
	CHECK(waitpid(first, &child_status, 0) == first && child_status == 0);
	unplug(&d);
	bounce = BOUNCE;
}

static bool is_broken(struct device *d)
{
	return state_of(d).flags & VIADUCT_LOOPBACK_F_BAD_RING;
}

static void restart(struct device *d)
{
	CHECK(!ioctl(d->fd, VIADUCT_LOOPBACK_RESTART));
	CHECK(!is_broken(d));
	d->avail = 0;
	d->used = 0;
}

static void a_broken_ring_is_found_and_nothing_is_lost(void)
{
	static const uint32_t ids[] = { SIZE, 0xffffffff, SIZE / 2 };
	struct device d;
	unsigned int i;
	int head;

	create(&d, 16384);
	plug(&d);
	for (i = 0; i < sizeof(ids) / sizeof(*ids) + 1; i++) {
		double end = now() + LIMIT;

		start(&d, write_and_read);
		head = wait_for_request(&d);
		if (i < sizeof(ids) / sizeof(*ids)) {
			CHECK(ids[i] != (uint32_t)head);
			answer(&d, ids[i], 1);
		} else {
			/* More completions than there are descriptors. */
			d.used += SIZE;
			answer(&d, head, 1);
		}
		while (!is_broken(&d))
			CHECK(now() < end);
		restart(&d);
		serve(&d, has_ended);
		CHECK(child_status == 0);
	}
	CHECK(counter(&d, "restarts") == i);
	unplug(&d);
}

static void wrong_lengths_do_no_harm(void)
{
	struct device d;
	int head;

	create(&d, 16384);
	plug(&d);
	start(&d, write_and_read);
	while (!has_ended(&d)) {
		head = take(&d);
		if (head >= 0)
			carry_out(&d, head, 0xfffffff0);
	}
	CHECK(child_status == 0);
	unplug(&d);
}

static void requests_in_flight_are_posted_again(void)
{
	struct device d;
	int i;

	create(&d, 16384);
	plug(&d);
	start(&d, write_and_read);
	/* Each request is taken and forgotten once. */
	for (i = 0; i < 5; i++) {
		wait_for_request(&d);
		restart(&d);
		carry_out(&d, wait_for_request(&d), 0);
	}
	serve(&d, has_ended);
	CHECK(child_status == 0);
	unplug(&d);
}

/* Another process with the file: only that is left of the one before. */
static void another_adapter_goes_on(void)
{
	struct device d, e;
	struct viaduct_loopback_state s;

	create(&d, 16384);
	plug(&d);
	start(&d, write_and_read);
	wait_for_request(&d);
	e = d;
	s = state_of(&d);
	CHECK(s.queues == 1 && s.queue_size == SIZE && s.offered == d.made.features);
	CHECK(s.base == d.made.base && s.size == d.made.size);
	e.kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	e.call = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	e.queue.kick = e.kick;
	e.queue.call = e.call;
	CHECK(!ioctl(e.fd, VIADUCT_LOOPBACK_QUEUE, &e.queue) && e.queue.desc == d.queue.desc);
	close(d.kick);
	close(d.call);
	restart(&e);
	serve(&e, has_ended);
	CHECK(child_status == 0);
	unplug(&e);
}

static void unplugging_ends_requests_that_are_not_answered(void)
{
	struct device d;

	create(&d, 16384);
	plug(&d);
	start(&d, read_big);
	wait_for_request(&d);
	unplug(&d);
	CHECK(waitpid(child, &child_status, 0) == child);
	CHECK(WIFEXITED(child_status) && WEXITSTATUS(child_status) == EIO);
	/* Even before the driver has bound the device, which reads from it. */
	create(&d, 16384);
	CHECK(!ioctl(d.fd, VIADUCT_LOOPBACK_PLUG));
	wait_for_request(&d);
	unplug(&d);
}

static double until;

static bool is_over(struct device *d)
{
	(void)d;
	return now() > until;
}

static void unplugging_under_load(void)
{
	struct device d;
	int i;

	for (i = 0; i < 3; i++) {
		create(&d, 16384);
		plug(&d);
		start(&d, read_until_error);
		until = now() + 0.3;
		serve(&d, is_over);
		unplug(&d);
		CHECK(waitpid(child, &child_status, 0) == child);
		CHECK(WIFEXITED(child_status) && WEXITSTATUS(child_status));
	}
}

static void a_reset_that_is_not_answered_has_a_limit(void)
{
	struct device d;
	char name[32];
	double begin;
	int fd, n;

	create(&d, 16384);
	plug(&d);
	n = snprintf(name, sizeof(name), "virtio%u", state_of(&d).index);
	fd = open("/sys/bus/virtio/drivers/virtio_blk/unbind", O_WRONLY);
	begin = now();
	CHECK(fd >= 0 && write(fd, name, n) == n);
	CHECK(now() - begin < LIMIT);
	close(fd);
	CHECK(state_of(&d).flags & VIADUCT_LOOPBACK_F_DEAD);
	CHECK(ioctl(d.fd, VIADUCT_LOOPBACK_RESTART) == -1 && errno == ENODEV);
	unplug(&d);
}

static void many_at_once(void)
{
	static struct device d[32];
	unsigned int i, n = sizeof(d) / sizeof(*d);

	for (i = 0; i < n; i++) {
		create(&d[i], 16384);
		plug(&d[i]);
	}
	for (i = 0; i < n; i++) {
		start(&d[i], write_big);
		serve(&d[i], has_ended);
		CHECK(child_status == 0 && d[i].disk[BIG] == 0x5a);
	}
	for (i = 0; i < n; i++)
		unplug(&d[i]);
}

/* Bytes of memory that are free, after what can be dropped has been. */
static long free_memory(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	CHECK(fd >= 0 && write(fd, "3", 1) == 1);
	close(fd);
	return sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static void plugged_and_unplugged(int cycles)
{
	struct device d;
	long before = 0;
	int i;

	bounce = 8 * BOUNCE;
	for (i = 0; i < cycles; i++) {
		if (i == cycles / 10)
			before = free_memory();
		create(&d, 16384);
		plug(&d);
		unplug(&d);
	}
	/* A leak of a device's memory would be more than this after two. */
	CHECK(before - free_memory() < 16L << 20);
}

int main(int argc, char **argv)
{
	int cycles = argc > 1 ? atoi(argv[1]) : 20;

	setvbuf(stdout, NULL, _IOLBF, 0);
#define RUN(test) do { \
	test; \
	printf("pass: %s\n", #test); \
} while (0)
	RUN(what_is_not_a_device_is_refused());
	RUN(data_is_the_same());
	RUN(only_what_is_in_flight_can_be_reached());
	RUN(half_a_request_waits());
	RUN(a_broken_ring_is_found_and_nothing_is_lost());
	RUN(wrong_lengths_do_no_harm());
	RUN(requests_in_flight_are_posted_again());
	RUN(another_adapter_goes_on());
	RUN(unplugging_ends_requests_that_are_not_answered());
	RUN(unplugging_under_load());
	RUN(a_reset_that_is_not_answered_has_a_limit());
	RUN(many_at_once());
	RUN(plugged_and_unplugged(cycles));
	return 0;
}
