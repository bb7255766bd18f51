/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Interface of /dev/viaduct-loopback. Each open file owns one virtio device:
 *
 *   CREATE   what the device is; allocates its memory
 *   QUEUE    the two eventfds of a queue, instead of earlier ones; where its rings are
 *   MEMORY   a descriptor to be mapped by the process that is the device
 *   PLUG     the kernel's driver is bound, in the background
 *   STATE    what the driver has done since; poll() says when to look
 *   ACK      a reset or a write of the configuration space has been carried out
 *   CONFIG   replaces the configuration space
 *   RESTART  empties the rings and posts what was in flight again
 *
 * Closing the file unplugs the device: requests in flight fail.
 *
 * Addresses are those of the device: `base` is the start of the memory that
 * MEMORY's descriptor maps from offset 0. Rings are split virtqueues, little
 * endian (VIRTIO 1.3, section 2.7).
 */
#ifndef VIADUCT_LOOPBACK_H
#define VIADUCT_LOOPBACK_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define VIADUCT_LOOPBACK_VERSION	1
#define VIADUCT_LOOPBACK_CONFIG_SIZE	256
#define VIADUCT_LOOPBACK_MAX_QUEUES	128
#define VIADUCT_LOOPBACK_MAX_SIZE	1024	/* descriptors of a queue */

struct viaduct_loopback_create {
	__u32 version;		/* VIADUCT_LOOPBACK_VERSION */
	__u32 type;		/* of the virtio device */
	__u64 features;		/* that the device process offers */
	__u32 queues;
	__u32 queue_size;	/* descriptors of each queue, a power of two */
	__u32 bounce;		/* bytes for buffers that are copied */
	__u32 window;		/* bytes that can be mapped at a time; 0: none */
	__u32 map_min;		/* requests with so many bytes in whole pages are mapped */
	__u32 config_size;
	__u8 config[VIADUCT_LOOPBACK_CONFIG_SIZE];
	__u64 base;		/* out: start of the device's memory */
	__u64 size;		/* out: its bytes */
};

struct viaduct_loopback_queue {
	__u32 index;
	__s32 kick;		/* eventfd that the kernel signals */
	__s32 call;		/* eventfd that the device process signals */
	__u32 reserved;		/* 0 */
	__u64 desc;		/* out: addresses of the rings */
	__u64 avail;
	__u64 used;
};

#define VIADUCT_LOOPBACK_F_BAD_RING	0x1	/* the device process broke a ring: restart it */
#define VIADUCT_LOOPBACK_F_DEAD		0x2	/* time-out: close the file */
#define VIADUCT_LOOPBACK_F_BOUND	0x4	/* the driver's probe has ended */

struct viaduct_loopback_state {
	__u32 status;		/* of the device, as its driver has set it */
	__u32 flags;
	__u64 features;		/* for the device process */
	__u64 used[VIADUCT_LOOPBACK_MAX_QUEUES / 64];	/* queues that the driver uses */
	__u64 offered;		/* as at creation, also the next four; all 0 before */
	__u64 base;
	__u64 size;
	__u32 queues;
	__u32 queue_size;
	__u32 resets;		/* how many; to be acknowledged */
	__u32 writes;		/* of the configuration space; to be acknowledged */
	__u32 index;		/* N of virtioN, when the driver's probe has ended */
	__u32 config_size;
	__u8 config[VIADUCT_LOOPBACK_CONFIG_SIZE];
};

struct viaduct_loopback_ack {
	__u32 resets;
	__u32 writes;
};

struct viaduct_loopback_config {
	__u32 size;		/* as at creation */
	__u32 notify;		/* 1: tell the driver */
	__u8 data[VIADUCT_LOOPBACK_CONFIG_SIZE];
};

#define VIADUCT_LOOPBACK_CREATE		_IOWR('V', 0xa0, struct viaduct_loopback_create)
#define VIADUCT_LOOPBACK_QUEUE		_IOWR('V', 0xa1, struct viaduct_loopback_queue)
#define VIADUCT_LOOPBACK_MEMORY		_IO('V', 0xa2)
#define VIADUCT_LOOPBACK_PLUG		_IO('V', 0xa3)
#define VIADUCT_LOOPBACK_STATE		_IOR('V', 0xa4, struct viaduct_loopback_state)
#define VIADUCT_LOOPBACK_ACK		_IOW('V', 0xa5, struct viaduct_loopback_ack)
#define VIADUCT_LOOPBACK_CONFIG		_IOW('V', 0xa6, struct viaduct_loopback_config)
#define VIADUCT_LOOPBACK_RESTART	_IO('V', 0xa7)

#endif
