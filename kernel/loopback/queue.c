// SPDX-License-Identifier: GPL-2.0
/*
 * Requests between the driver's ring, which only the kernel can reach, and the
 * ring shared with the device process. What the process writes is checked here,
 * so that the driver's ring has only completions of requests that are in flight,
 * with lengths that fit; and what is in flight is known, so that it can be
 * posted again to another process, or failed.
 *
 * A request's buffers are copied to and from the bounce area, or, if its whole
 * pages make up `map_min` bytes, these pages appear in the window.
 */

#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/io.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "loopback.h"

/*
 * What a small buffer contains that the device process has not written: no status is this.
 * A larger one contains what the same device has read or written before.
 */
#define VL_UNWRITTEN	0xff
/* After its device is gone a queue takes this often its size of requests, to fail them. */
#define VL_BUDGET	64

/* ------------------------------------------------------------ a request's segments */

static int vl_add_segs(struct vl_queue *q, const struct vring_desc *table, u32 size, u32 at, u32 n)
{
	struct virtio_device *vdev = &q->dev->vdev;

	for (;;) {
		const struct vring_desc *d = &table[at];
		u16 flags = virtio16_to_cpu(vdev, d->flags);

		if (n == VL_SEGS)
			return -E2BIG;
		q->segs[n].addr = virtio64_to_cpu(vdev, d->addr);
		q->segs[n].len = virtio32_to_cpu(vdev, d->len);
		q->segs[n].write = flags & VRING_DESC_F_WRITE;
		q->segs[n].mapped = false;
		n++;
		if (!(flags & VRING_DESC_F_NEXT))
			return n;
		at = virtio16_to_cpu(vdev, d->next);
		if (at >= size)
			return -EINVAL;
	}
}

/* Reads the driver's descriptors of a request into q->segs; returns their number. */
static int vl_read_segs(struct vl_queue *q, u16 head)
{
	struct virtio_device *vdev = &q->dev->vdev;
	const struct vring_desc *d = &q->drv->desc[head];

	if (virtio16_to_cpu(vdev, d->flags) & VRING_DESC_F_INDIRECT) {
		/* The ring's core allocates these tables by kmalloc(). */
		const struct vring_desc *table = phys_to_virt(virtio64_to_cpu(vdev, d->addr));
		u32 size = virtio32_to_cpu(vdev, d->len) / sizeof(*table);

		return size ? vl_add_segs(q, table, size, 0, 0) : -EINVAL;
	}
	return vl_add_segs(q, q->drv->desc, q->drv->num, head, 0);
}

static bool vl_is_indirect(struct vl_queue *q, u16 head)
{
	return virtio16_to_cpu(&q->dev->vdev, q->drv->desc[head].flags) & VRING_DESC_F_INDIRECT;
}

static bool vl_has_whole_pages(const struct vl_seg *seg)
{
	return seg->len && IS_ALIGNED(seg->addr | seg->len, PAGE_SIZE);
}

/* Pages that can be held while somebody else may have them mapped: none of slab. */
static bool vl_can_be_held(const struct vl_seg *seg)
{
	unsigned long pfn = PHYS_PFN(seg->addr), end = pfn + (seg->len >> PAGE_SHIFT);

	for (; pfn < end; pfn++)
		if (!pfn_valid(pfn) || !sendpage_ok(pfn_to_page(pfn)))
			return false;
	return true;
}

static void vl_copy(const struct vl_seg *seg, void *bounce, bool to_bounce)
{
	phys_addr_t addr = seg->addr;
	u32 left = seg->len;

	while (left) {
		u32 offset = offset_in_page(addr), n = min_t(u32, left, PAGE_SIZE - offset);
		char *page = kmap_local_page(pfn_to_page(PHYS_PFN(addr)));

		if (to_bounce)
			memcpy(bounce, page + offset, n);
		else
			memcpy(page + offset, bounce, n);
		kunmap_local(page);
		bounce += n;
		addr += n;
		left -= n;
	}
}

/*
 * Gives each segment its place: `mapped` ones in the window's order, the others
 * after `skip` bytes of the bounce buffer. Returns the bytes needed there.
 */
static u64 vl_place(struct vl_seg *segs, u32 n, u64 bounce, u64 window, u64 skip)
{
	u64 at = skip;
	u32 i;

	for (i = 0; i < n; i++) {
		if (segs[i].mapped) {
			segs[i].at = window;
			window += segs[i].len;
		} else {
			at = ALIGN(at, segs[i].len >= VL_UNIT ? VL_UNIT : 16);
			segs[i].at = bounce + at;
			at += segs[i].len;
		}
	}
	return at;
}

/* The segments of a request in flight, at their places. */
static int vl_segs_of(struct vl_queue *q, u16 head)
{
	struct vl_memory *mem = &q->dev->mem;
	struct vl_req *req = &q->reqs[head];
	int i, n = vl_read_segs(q, head);

	for (i = 0; i < n; i++)
		q->segs[i].mapped = req->slots && vl_has_whole_pages(&q->segs[i]);
	if (n > 0)
		vl_place(q->segs, n, vl_unit_address(mem, req->unit),
			 vl_slot_address(mem, req->slot),
			 vl_is_indirect(q, head) ? n * sizeof(struct vring_desc) : 0);
	return n;
}

static void *vl_bounce(struct vl_memory *mem, const struct vl_seg *seg)
{
	return mem->area + (seg->at - VL_BASE);
}

/* ------------------------------------------------------------ posting */

static void vl_release(struct vl_queue *q, struct vl_req *req)
{
	if (req->units)
		vl_units_put(&q->dev->mem, req->unit, req->units);
	if (req->slots)
		vl_slots_put(&q->dev->mem, req->slot, req->slots);
	req->units = 0;
	req->slots = 0;
}

/* Decides whether the whole pages of a request are mapped, all of them, and gets slots for them. */
static bool vl_reserve_window(struct vl_queue *q, struct vl_req *req, int n)
{
	struct vl_memory *mem = &q->dev->mem;
	u64 whole = 0;
	int i;

	for (i = 0; i < n; i++)
		if (vl_has_whole_pages(&q->segs[i]))
			whole += q->segs[i].len;
	if (!whole || whole < q->dev->map_min || whole >> PAGE_SHIFT > mem->num_slots)
		return false;
	for (i = 0; i < n; i++) {
		q->segs[i].mapped = vl_has_whole_pages(&q->segs[i]);
		if (q->segs[i].mapped && !vl_can_be_held(&q->segs[i]))
			return false;
	}
	if (vl_slots_get(mem, whole >> PAGE_SHIFT, &req->slot))
		return false;
	req->slots = whole >> PAGE_SHIFT;
	return true;
}

/* Memory of the device for the request whose segments are in q->segs. */
static int vl_reserve(struct vl_queue *q, struct vl_req *req, int n, u64 skip)
{
	struct vl_memory *mem = &q->dev->mem;
	u64 bytes;
	int i, err;

	req->writable = 0;
	req->slots = 0;
	req->units = 0;
	for (i = 0; i < n; i++)
		if (q->segs[i].write)
			req->writable += q->segs[i].len;
	if (!vl_reserve_window(q, req, n))
		for (i = 0; i < n; i++)
			q->segs[i].mapped = false;
	bytes = vl_place(q->segs, n, 0, 0, skip);
	if (!bytes)
		return 0;
	if (bytes > (u64)mem->units * VL_UNIT)
		err = -E2BIG;
	else
		err = vl_units_get(mem, DIV_ROUND_UP(bytes, VL_UNIT), &req->unit);
	if (err) {
		vl_release(q, req);
		return err;
	}
	req->units = DIV_ROUND_UP(bytes, VL_UNIT);
	return 0;
}

static void vl_fill(struct vl_queue *q, struct vl_req *req, int n)
{
	struct vl_memory *mem = &q->dev->mem;
	u32 slot = req->slot;
	int i;

	for (i = 0; i < n; i++) {
		struct vl_seg *seg = &q->segs[i];

		if (seg->mapped) {
			u32 pages = seg->len >> PAGE_SHIFT;

			vl_slots_set(mem, slot, pages, PHYS_PFN(seg->addr), seg->write);
			slot += pages;
			q->mapped += seg->len;
		} else if (seg->write) {
			if (seg->len < VL_UNIT)
				memset(vl_bounce(mem, seg), VL_UNWRITTEN, seg->len);
		} else {
			vl_copy(seg, vl_bounce(mem, seg), true);
			q->copied += seg->len;
		}
	}
}

static void vl_put_desc(struct vring_desc *d, u64 addr, u32 len, u16 flags, u16 next)
{
	d->addr = (__force __virtio64)cpu_to_le64(addr);
	d->len = (__force __virtio32)cpu_to_le32(len);
	d->flags = (__force __virtio16)cpu_to_le16(flags);
	d->next = (__force __virtio16)cpu_to_le16(next);
}

/* The table of an indirect request; pages that adjoin in the window are one descriptor. */
static u32 vl_put_table(struct vring_desc *table, const struct vl_seg *segs, int n)
{
	u32 used = 0;
	int i;

	for (i = 0; i < n; used++) {
		const struct vl_seg *seg = &segs[i];
		u64 len = seg->len;

		while (++i < n && segs[i].mapped && seg->mapped && segs[i].write == seg->write &&
		       len + segs[i].len <= SZ_1G)
			len += segs[i].len;
		vl_put_desc(&table[used], seg->at, len,
			    (seg->write ? VRING_DESC_F_WRITE : 0) | (i < n ? VRING_DESC_F_NEXT : 0),
			    used + 1);
	}
	return used;
}

/* The same descriptors as in the driver's ring, with the device's addresses. */
static void vl_put_chain(struct vl_queue *q, u16 head, int n)
{
	struct virtio_device *vdev = &q->dev->vdev;
	u16 at = head;
	int i;

	for (i = 0; i < n; i++) {
		u16 next = virtio16_to_cpu(vdev, q->drv->desc[at].next);
		u16 flags = q->segs[i].write ? VRING_DESC_F_WRITE : 0;

		if (i < n - 1)
			flags |= VRING_DESC_F_NEXT;
		vl_put_desc(&q->shared.desc[at], q->segs[i].at, q->segs[i].len, flags, next);
		at = next;
	}
}

/* Puts a request into the shared ring; -ENOSPC: when there is memory again. */
static int vl_post(struct vl_queue *q, u16 head)
{
	struct vl_memory *mem = &q->dev->mem;
	struct vl_req *req = &q->reqs[head];
	bool indirect = vl_is_indirect(q, head);
	int err, n = vl_read_segs(q, head);
	u32 mask = q->shared.num - 1;

	if (n < 0)
		return n;
	err = vl_reserve(q, req, n, indirect ? n * sizeof(struct vring_desc) : 0);
	if (err)
		return err;
	vl_place(q->segs, n, vl_unit_address(mem, req->unit), vl_slot_address(mem, req->slot),
		 indirect ? n * sizeof(struct vring_desc) : 0);
	vl_fill(q, req, n);
	if (indirect) {
		u32 used = vl_put_table(vl_unit(mem, req->unit), q->segs, n);

		vl_put_desc(&q->shared.desc[head], vl_unit_address(mem, req->unit),
			    used * sizeof(struct vring_desc), VRING_DESC_F_INDIRECT, 0);
	} else {
		vl_put_chain(q, head, n);
	}
	q->shared.avail->ring[q->avail & mask] = (__force __virtio16)cpu_to_le16(head);
	q->avail++;
	req->flying = true;
	list_move_tail(&req->node, &q->flying);
	return 0;
}

/* ------------------------------------------------------------ completing */

static u16 vl_u16(const __virtio16 *p)
{
	return le16_to_cpu((__force __le16)READ_ONCE(*p));
}

/* Into the driver's used ring; its interrupt is the caller's. */
static void vl_push_used(struct vl_queue *q, u16 head, u32 len)
{
	struct virtio_device *vdev = &q->dev->vdev;
	vring_used_elem_t *elem = &q->drv->used->ring[q->drv_used & (q->drv->num - 1)];

	list_del_init(&q->reqs[head].node);
	elem->id = cpu_to_virtio32(vdev, head);
	elem->len = cpu_to_virtio32(vdev, len);
	q->drv_used++;
	smp_wmb();	/* the entry before the index */
	WRITE_ONCE(q->drv->used->idx, cpu_to_virtio16(vdev, q->drv_used));
}

static void vl_complete(struct vl_queue *q, u16 head, u32 len)
{
	struct vl_req *req = &q->reqs[head];
	int i, n = vl_segs_of(q, head);

	for (i = 0; i < n; i++) {
		struct vl_seg *seg = &q->segs[i];

		if (!seg->write || seg->mapped)
			continue;
		vl_copy(seg, vl_bounce(&q->dev->mem, seg), false);
		q->copied += seg->len;
	}
	req->flying = false;
	vl_release(q, req);
	vl_push_used(q, head, min(len, req->writable));
	q->requests++;
}

/* Completes a request as one of which the device has written nothing. */
static void vl_fail(struct vl_queue *q, u16 head)
{
	struct vl_req *req = &q->reqs[head];
	int i, n = vl_read_segs(q, head);

	for (i = 0; i < n; i++) {
		struct vl_seg *seg = &q->segs[i];

		if (seg->write && seg->len < PAGE_SIZE &&
		    offset_in_page(seg->addr) + seg->len <= PAGE_SIZE) {
			char *page = kmap_local_page(pfn_to_page(PHYS_PFN(seg->addr)));

			memset(page + offset_in_page(seg->addr), VL_UNWRITTEN, seg->len);
			kunmap_local(page);
		}
	}
	req->flying = false;
	vl_release(q, req);
	vl_push_used(q, head, 0);
}

/* Takes the completions of the device process; returns if it has broken the ring. */
static bool vl_reap(struct vl_queue *q)
{
	struct vring *r = &q->shared;
	u32 mask = r->num - 1;

	for (;;) {
		u16 idx = vl_u16(&r->used->idx);

		if ((u16)(idx - q->used) > r->num)
			return false;
		smp_rmb();	/* entries after the index */
		while (q->used != idx) {
			vring_used_elem_t *elem = &r->used->ring[q->used & mask];
			u32 id = le32_to_cpu((__force __le32)READ_ONCE(elem->id));
			u32 len = le32_to_cpu((__force __le32)READ_ONCE(elem->len));

			if (id >= r->num || !q->reqs[id].flying)
				return false;
			vl_complete(q, id, len);
			q->used++;
		}
		/* The next completion is to be signalled; one may just have come. */
		WRITE_ONCE(vring_used_event(r), (__force __virtio16)cpu_to_le16(q->used));
		smp_mb();	/* the event before the index */
		if (vl_u16(&r->used->idx) == q->used)
			return true;
	}
}

/* ------------------------------------------------------------ driver's side */

static bool vl_driver_has_event_idx(struct vl_queue *q)
{
	return virtio_has_feature(&q->dev->vdev, VIRTIO_RING_F_EVENT_IDX);
}

/* The next request of the driver, which notifies us of further ones if there is none. */
static bool vl_next(struct vl_queue *q, u16 *head)
{
	struct virtio_device *vdev = &q->dev->vdev;
	const struct vring *d = q->drv;
	u16 idx;

	idx = virtio16_to_cpu(vdev, READ_ONCE(d->avail->idx));
	if (idx == q->drv_avail) {
		if (vl_driver_has_event_idx(q))
			WRITE_ONCE(vring_avail_event(d), cpu_to_virtio16(vdev, idx));
		smp_mb();	/* the event before the index */
		idx = virtio16_to_cpu(vdev, READ_ONCE(d->avail->idx));
		if (idx == q->drv_avail)
			return false;
	}
	smp_rmb();	/* the entry after the index */
	*head = virtio16_to_cpu(vdev, d->avail->ring[q->drv_avail & (d->num - 1)]);
	return true;
}

/* Posts what the driver has made available; returns whether the device process is to be told. */
static bool vl_take(struct vl_queue *q)
{
	u16 before = q->avail;
	bool dead = READ_ONCE(q->dev->dead);
	bool kick;
	u16 head;

	q->stalled = false;
	while (q->vq && !q->bad) {
		bool again = !list_empty(&q->again);
		int err;

		if (again)
			head = list_first_entry(&q->again, struct vl_req, node) - q->reqs;
		else if (!vl_next(q, &head) || head >= q->drv->num)
			break;
		if (dead && !q->budget)
			break;
		err = dead ? -ENODEV : vl_post(q, head);
		if (err == -ENOSPC) {
			q->stalled = true;
			break;
		}
		if (!again)
			q->drv_avail++;
		if (err) {
			if (dead)
				q->budget--;
			else
				dev_warn_ratelimited(&q->dev->vdev.dev,
						     "the device's memory cannot hold a request: error %d\n",
						     err);
			vl_fail(q, head);
			irq_work_queue(&q->call_work);	/* for the driver's interrupt */
		}
	}
	if (q->avail == before)
		return false;
	smp_wmb();	/* entries before the index */
	WRITE_ONCE(q->shared.avail->idx, (__force __virtio16)cpu_to_le16(q->avail));
	smp_mb();	/* the index before the event */
	if (vl_device_features(q->dev) & BIT_ULL(VIRTIO_RING_F_EVENT_IDX))
		kick = vring_need_event(vl_u16(&vring_avail_event(&q->shared)), q->avail, before);
	else
		kick = !(vl_u16(&q->shared.used->flags) & VRING_USED_F_NO_NOTIFY);
	q->kicks += kick;
	return kick;
}

/* With the queue's lock held, since the eventfd may be replaced. */
static void vl_kick(struct vl_queue *q)
{
	if (!q->kick)
		return;
	/* Not within the wake-up of another eventfd. */
	if (eventfd_signal_allowed())
		eventfd_signal(q->kick);
	else
		irq_work_queue(&q->kick_work);
}

static void vl_kick_later(struct irq_work *work)
{
	struct vl_queue *q = container_of(work, struct vl_queue, kick_work);

	spin_lock(&q->lock);
	if (q->kick)
		eventfd_signal(q->kick);
	spin_unlock(&q->lock);
}

static void vl_queue_pump(struct vl_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	if (vl_take(q))
		vl_kick(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

/* There may be memory for a request that waits: its queue says so with the lock held. */
void vl_queue_retry(struct vl_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	if (q->stalled && vl_take(q))
		vl_kick(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

/* The driver's notification. */
bool vl_queue_notify(struct virtqueue *vq)
{
	struct vl_queue *q = vq->priv;

	vl_queue_pump(q);
	/* Nothing answers after a reset; a driver may poll for it. */
	if (!READ_ONCE(q->vq))
		return false;
	/* A driver that replaces each failed buffer by another one ends here. */
	return !READ_ONCE(q->dev->dead) || READ_ONCE(q->budget);
}

/*
 * The device process has signalled a queue. It does so in any context, with any
 * locks of the eventfd held; this is as an interrupt.
 */
static void vl_interrupt(struct irq_work *work)
{
	struct vl_queue *q = container_of(work, struct vl_queue, call_work);
	struct virtqueue *vq;

	spin_lock(&q->lock);
	vq = q->vq;
	if (vq && !q->bad) {
		q->calls++;
		if (!READ_ONCE(q->dev->dead) && !vl_reap(q)) {
			q->bad = true;
			dev_warn_ratelimited(&q->dev->vdev.dev, "the device process broke queue %u\n",
					     q->index);
			vl_changed(q->dev);
		}
		if (q->stalled && vl_take(q))
			vl_kick(q);
	}
	spin_unlock(&q->lock);
	/* It looks whether there are completions; vl_queue_end() waits for us. */
	if (vq)
		vring_interrupt(0, vq);
}

/* ------------------------------------------------------------ eventfds */

static int vl_woken(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	struct vl_queue *q = container_of(entry, struct vl_queue, call_entry);
	u64 count;

	if (key_to_poll(key) & EPOLLIN) {
		eventfd_ctx_do_read(q->call, &count);
		irq_work_queue(&q->call_work);
	}
	return 0;
}

struct vl_poll {
	poll_table table;
	struct vl_queue *q;
};

static void vl_poll_queue(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	struct vl_queue *q = container_of(table, struct vl_poll, table)->q;

	add_wait_queue(head, &q->call_entry);
}

static void vl_drop_events(struct vl_queue *q)
{
	struct eventfd_ctx *kick = q->kick;
	u64 count;

	if (!kick)
		return;
	eventfd_ctx_remove_wait_queue(q->call, &q->call_entry, &count);
	eventfd_ctx_put(q->call);
	q->call = NULL;
	spin_lock_irq(&q->lock);
	q->kick = NULL;
	spin_unlock_irq(&q->lock);
	eventfd_ctx_put(kick);
}

/* The eventfds of a queue, instead of earlier ones. With the device's mutex held. */
int vl_queue_events(struct vl_queue *q, int kick, int call)
{
	struct eventfd_ctx *kick_ctx, *call_ctx;
	struct vl_poll poll = { .q = q };
	struct file *file = fget(call);
	int err = 0;

	if (!file)
		return -EBADF;
	call_ctx = eventfd_ctx_fileget(file);
	if (IS_ERR(call_ctx)) {
		err = PTR_ERR(call_ctx);
		goto put_file;
	}
	kick_ctx = eventfd_ctx_fdget(kick);
	if (IS_ERR(kick_ctx)) {
		err = PTR_ERR(kick_ctx);
		eventfd_ctx_put(call_ctx);
		goto put_file;
	}
	vl_drop_events(q);
	spin_lock_irq(&q->lock);
	q->kick = kick_ctx;
	spin_unlock_irq(&q->lock);
	q->call = call_ctx;
	init_waitqueue_func_entry(&q->call_entry, vl_woken);
	init_poll_funcptr(&poll.table, vl_poll_queue);
	if (vfs_poll(file, &poll.table) & EPOLLIN)
		irq_work_queue(&q->call_work);
put_file:
	fput(file);
	return err;
}

/* ------------------------------------------------------------ beginning and end */

static void vl_clear_shared(struct vl_queue *q)
{
	memset(q->shared.desc, 0, vring_size(q->shared.num, PAGE_SIZE));
	q->avail = 0;
	q->used = 0;
	q->bad = false;
}

void vl_queue_begin(struct vl_queue *q, struct virtqueue *vq)
{
	u32 i;

	spin_lock_irq(&q->lock);
	vl_clear_shared(q);
	q->drv = virtqueue_get_vring(vq);
	q->drv_avail = 0;
	q->drv_used = 0;
	q->stalled = false;
	for (i = 0; i < q->shared.num; i++) {
		INIT_LIST_HEAD(&q->reqs[i].node);
		q->reqs[i].flying = false;
		q->reqs[i].units = 0;
		q->reqs[i].slots = 0;
	}
	vq->priv = q;
	q->vq = vq;
	spin_unlock_irq(&q->lock);
}

/* The driver has reset the device or given up the queue: what was in flight is forgotten. */
void vl_queue_end(struct vl_queue *q)
{
	struct vl_req *req, *next;

	spin_lock_irq(&q->lock);
	q->vq = NULL;
	list_splice_init(&q->again, &q->flying);
	list_for_each_entry_safe(req, next, &q->flying, node) {
		list_del_init(&req->node);
		req->flying = false;
		vl_release(q, req);
	}
	spin_unlock_irq(&q->lock);
	irq_work_sync(&q->call_work);
}

/*
 * For another device process: rings as new, with what was in flight in the order
 * in which it was posted.
 */
void vl_queues_restart(struct vl_dev *dev)
{
	struct vl_req *req;
	u32 i;

	for (i = 0; i < dev->num_queues; i++) {
		struct vl_queue *q = &dev->queues[i];

		spin_lock_irq(&q->lock);
		if (q->vq) {
			if (!q->bad)
				vl_reap(q);	/* what the last one has completed */
			list_for_each_entry(req, &q->flying, node) {
				req->flying = false;
				vl_release(q, req);
			}
			list_splice_init(&q->flying, &q->again);
			vl_clear_shared(q);
			if (vl_take(q))
				vl_kick(q);
		}
		spin_unlock_irq(&q->lock);
		irq_work_queue(&q->call_work);
	}
}

/*
 * The device is gone: fails all requests, and from now on those that the driver
 * adds while it is being removed.
 */
void vl_queues_fail(struct vl_dev *dev)
{
	struct vl_req *req, *next;
	u32 i;

	for (i = 0; i < dev->num_queues; i++) {
		struct vl_queue *q = &dev->queues[i];

		spin_lock_irq(&q->lock);
		q->bad = false;
		q->budget = VL_BUDGET * q->shared.num;
		if (q->vq) {
			list_splice_init(&q->again, &q->flying);
			list_for_each_entry_safe(req, next, &q->flying, node)
				vl_fail(q, req - q->reqs);
			vl_take(q);
		}
		spin_unlock_irq(&q->lock);
		irq_work_queue(&q->call_work);
		irq_work_sync(&q->call_work);
	}
}

int vl_queues_alloc(struct vl_dev *dev)
{
	u32 i, stride = PAGE_ALIGN(vring_size(dev->queue_size, PAGE_SIZE));

	dev->queues = kvcalloc(dev->num_queues, sizeof(*dev->queues), GFP_KERNEL_ACCOUNT);
	if (!dev->queues)
		return -ENOMEM;
	for (i = 0; i < dev->num_queues; i++) {
		struct vl_queue *q = &dev->queues[i];

		q->dev = dev;
		q->index = i;
		spin_lock_init(&q->lock);
		INIT_LIST_HEAD(&q->flying);
		INIT_LIST_HEAD(&q->again);
		init_irq_work(&q->kick_work, vl_kick_later);
		init_irq_work(&q->call_work, vl_interrupt);
		vring_init(&q->shared, dev->queue_size, dev->mem.area + i * stride, PAGE_SIZE);
		q->reqs = kvcalloc(dev->queue_size, sizeof(*q->reqs), GFP_KERNEL_ACCOUNT);
		q->segs = kvcalloc(VL_SEGS, sizeof(*q->segs), GFP_KERNEL_ACCOUNT);
		if (!q->reqs || !q->segs)
			return -ENOMEM;
	}
	return 0;
}

/* Nothing comes from the device process any more, and nothing goes there. */
void vl_queues_quiet(struct vl_dev *dev)
{
	u32 i;

	for (i = 0; dev->queues && i < dev->num_queues; i++) {
		struct vl_queue *q = &dev->queues[i];

		vl_drop_events(q);
		irq_work_sync(&q->call_work);
		irq_work_sync(&q->kick_work);
	}
}

void vl_queues_free(struct vl_dev *dev)
{
	u32 i;

	vl_queues_quiet(dev);
	for (i = 0; dev->queues && i < dev->num_queues; i++) {
		kvfree(dev->queues[i].reqs);
		kvfree(dev->queues[i].segs);
	}
	kvfree(dev->queues);
	dev->queues = NULL;
}
