/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files of the module: structures and functions. */
#ifndef VL_LOOPBACK_H
#define VL_LOOPBACK_H

#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/path.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/virtio.h>
#include <linux/virtio_ring.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "viaduct_loopback.h"

#define VL_NAME		"viaduct-loopback"
#define VL_BASE		0x100000ULL	/* device address of the memory; 0 stays invalid */
#define VL_SPAN		40		/* bits of a device's range in the file's address space */
#define VL_UNIT		512U		/* bytes of a unit of the bounce area */
#define VL_SEGS		1026U		/* segments of a request */
#define VL_TIMEOUT	(5 * HZ)	/* for the device process, with resets */

struct vl_dev;

/* A page of the window. */
struct vl_slot {
	unsigned long pfn;
	u8 live;		/* in flight: may be mapped */
	u8 write;		/* the device may write it */
	u8 touched;		/* has been mapped */
};

/*
 * The memory that a device process can map: rings and bounce buffers, which
 * belong to the module, then the window, where pages of large requests appear
 * while these are in flight.
 */
struct vl_memory {
	void *area;
	u32 area_pages;
	u32 bounce;		/* offset of the bounce buffers in the area */

	spinlock_t lock;	/* the maps and slots */
	unsigned long *unit_map;
	u32 units;
	bool wanted;		/* a queue waits for units */
	unsigned long *slot_map;	/* taken */
	unsigned long *zap_map;		/* to be unmapped */
	struct vl_slot *slots;
	u32 num_slots;

	struct rw_semaphore fault_lock;	/* read: mapping a page; write: unmapping */
	struct delayed_work zap;
	struct path path;	/* the device node, for as long as its inode is in use */
	struct inode *inode;	/* whose mapping all maps are in */
	int id;			/* selects this device's range in it */
	atomic64_t faults;
};

/* A request, by its head. */
struct vl_req {
	struct list_head node;
	u32 unit, units;	/* of the bounce area */
	u32 slot, slots;	/* of the window */
	u32 writable;		/* bytes that the device may write */
	bool flying;		/* in the device's ring */
};

struct vl_seg {
	phys_addr_t addr;
	u32 len;
	bool write;
	bool mapped;
	u64 at;			/* device address */
};

/*
 * A queue: the driver's ring is private to the kernel. Requests are copied
 * from there to the shared ring, with addresses of the device's memory.
 */
struct vl_queue {
	struct vl_dev *dev;
	u32 index;

	spinlock_t lock;	/* all below up to `call` */
	struct virtqueue *vq;	/* NULL: not in use */
	const struct vring *drv;
	u16 drv_avail, drv_used;
	struct vring shared;
	u16 avail, used;
	bool stalled;		/* waits for memory of the device */
	bool bad;		/* the device process broke the ring */
	u32 budget;		/* of a dead device: requests that it still fails */
	struct vl_req *reqs;
	struct vl_seg *segs;
	struct list_head flying;	/* oldest first */
	struct list_head again;		/* to be posted again */
	u64 requests, copied, mapped, kicks, calls;
	struct eventfd_ctx *kick;

	struct eventfd_ctx *call;	/* the device's mutex */
	wait_queue_entry_t call_entry;
	struct irq_work kick_work, call_work;
};

enum vl_stage { VL_NEW, VL_CREATED, VL_PLUGGED };

struct vl_dev {
	struct virtio_device vdev;
	struct kref ref;
	struct mutex lock;	/* stage, and operations of the file */
	enum vl_stage stage;
	bool registered;
	struct work_struct plug;
	pid_t owner;
	u64 offered;		/* by the device process */
	u32 num_queues, queue_size;
	u32 map_min;
	struct vl_queue *queues;
	struct vl_memory mem;

	spinlock_t state_lock;	/* all below */
	wait_queue_head_t wait;
	bool changed;		/* since the last look at the state */
	bool dead;
	bool bound;
	u8 status;
	u32 generation;
	u32 resets, resets_done;
	u32 writes, writes_done;
	u32 restarts;
	u32 config_size;
	u8 config[VIADUCT_LOOPBACK_CONFIG_SIZE];
};

static inline struct vl_dev *to_vl(struct virtio_device *vdev)
{
	return container_of(vdev, struct vl_dev, vdev);
}

extern struct workqueue_struct *vl_zap_queue;

/* main.c */
void vl_get(struct vl_dev *dev);
void vl_put(struct vl_dev *dev);
void vl_changed(struct vl_dev *dev);

/* transport.c */
extern const struct virtio_config_ops vl_config_ops;
u64 vl_device_features(struct vl_dev *dev);

/* queue.c */
int vl_queues_alloc(struct vl_dev *dev);
void vl_queues_quiet(struct vl_dev *dev);
void vl_queues_free(struct vl_dev *dev);
void vl_queue_begin(struct vl_queue *q, struct virtqueue *vq);
void vl_queue_end(struct vl_queue *q);
bool vl_queue_notify(struct virtqueue *vq);
void vl_queue_retry(struct vl_queue *q);
void vl_queues_restart(struct vl_dev *dev);
void vl_queues_fail(struct vl_dev *dev);
int vl_queue_events(struct vl_queue *q, int kick, int call);

/* memory.c */
int vl_memory_alloc(struct vl_dev *dev, u32 rings, u32 bounce, u32 window);
void vl_memory_free(struct vl_dev *dev);
int vl_memory_file(struct vl_dev *dev);
u64 vl_memory_size(struct vl_dev *dev);
int vl_units_get(struct vl_memory *mem, u32 units, u32 *unit);
void vl_units_put(struct vl_memory *mem, u32 unit, u32 units);
int vl_slots_get(struct vl_memory *mem, u32 slots, u32 *slot);
void vl_slots_set(struct vl_memory *mem, u32 slot, u32 slots, unsigned long pfn, bool write);
void vl_slots_put(struct vl_memory *mem, u32 slot, u32 slots);

static inline void *vl_unit(struct vl_memory *mem, u32 unit)
{
	return mem->area + mem->bounce + (size_t)unit * VL_UNIT;
}

static inline u64 vl_unit_address(struct vl_memory *mem, u32 unit)
{
	return VL_BASE + mem->bounce + (u64)unit * VL_UNIT;
}

static inline u64 vl_slot_address(struct vl_memory *mem, u32 slot)
{
	return VL_BASE + (((u64)mem->area_pages + slot) << PAGE_SHIFT);
}

#endif
