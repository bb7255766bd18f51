// SPDX-License-Identifier: GPL-2.0
/*
 * Character devices for a card's XDMA-compatible function: the engine whose
 * registers and descriptors are those of the vendor's DMA engine (PG195).
 *
 *   /dev/viaduct_xdma<card>_h2c_<n>     write(): to card memory at the file offset
 *   /dev/viaduct_xdma<card>_c2h_<n>     read(): from card memory at the file offset
 *   /dev/viaduct_xdma<card>_control     the registers: read, write, mmap
 *   /dev/viaduct_xdma<card>_events_<n>  read(), poll(): user interrupts
 *
 * A transfer pins the caller's pages, makes a list of descriptors of them and
 * waits for the end of the list, by interrupt or by write-back (poll=1).
 */

#include <linux/capability.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/poll.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/scatterlist.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#define XV_NAME		"viaduct_xdma"
#define XV_CHANNELS	4		/* each way, at most */
#define XV_USERS	16
#define XV_DESCS	1024U		/* of a list, and pages of a transfer */
#define XV_BLOCK	64U		/* adjacent descriptors: never across 4 KiB */
#define XV_REGS		0x8000		/* the MSI-X table is behind them */

/* Blocks of registers */
#define XV_H2C		0x0000
#define XV_C2H		0x1000
#define XV_IRQ		0x2000
#define XV_CONFIG	0x3000
#define XV_SG		0x4000		/* from a channel's block to its list registers */
#define XV_STRIDE	0x0100

/* Registers of a channel */
#define XV_ID		0x00
#define XV_CONTROL	0x04
#define XV_STATUS	0x40
#define XV_STATUS_RC	0x44
#define XV_COUNT	0x48
#define XV_WB_LO	0x88
#define XV_WB_HI	0x8c
#define XV_MASK		0x90
#define XV_LIST_LO	(XV_SG + 0x80)
#define XV_LIST_HI	(XV_SG + 0x84)
#define XV_LIST_ADJ	(XV_SG + 0x88)

/* Registers of the interrupt block */
#define XV_USER_EN	0x04
#define XV_USER_SET	0x08
#define XV_USER_CLEAR	0x0c
#define XV_CHAN_EN	0x10
#define XV_USER_VEC	0x80
#define XV_CHAN_VEC	0xa0

#define XV_ID_MASK	0xffff8000
#define XV_ID_H2C	0x1fc00000
#define XV_ID_C2H	0x1fc10000
#define XV_ID_CONFIG	0x1fc30000

/* Control and status */
#define XV_RUN		BIT(0)
#define XV_BUSY		BIT(0)
#define XV_STOPPED	BIT(1)
#define XV_ERRORS	(GENMASK(23, 19) | GENMASK(18, 14) | GENMASK(13, 9) | GENMASK(5, 3))
#define XV_LOG		(XV_STOPPED | XV_ERRORS)
#define XV_WRITE_BACK	BIT(26)
#define XV_WB_ERROR	BIT(31)

/* Descriptors */
#define XV_MAGIC	0xad4b0000
#define XV_DESC_STOP	BIT(0)
#define XV_DESC_DONE	BIT(1)
#define XV_DESC_EOP	BIT(4)

static bool poll_mode;
module_param_named(poll, poll_mode, bool, 0644);
MODULE_PARM_DESC(poll, "wait for the written-back count instead of the interrupt");

static unsigned int timeout_ms = 10000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "longest time for one list of descriptors (up to 4 MiB)");

struct xv_desc {
	__le32 control;		/* magic, descriptors adjacent to the next, flags */
	__le32 len;
	__le64 src;
	__le64 dst;
	__le64 next;
};

struct xv_dev;

/* A device node. */
struct xv_node {
	struct miscdevice misc;
	struct xv_dev *xd;
	unsigned int index;
	bool registered;
	char name[40];
};

struct xv_channel {
	struct xv_node node;
	struct xv_dev *xd;
	void __iomem *regs;
	bool c2h;
	unsigned int irq;
	struct mutex lock;	/* held for a transfer: the engine, the list */
	wait_queue_head_t wait;
	u32 status;		/* what the interrupt handler found */
	u32 mask;		/* as last written */
	u32 adj;
	struct xv_desc *list;
	dma_addr_t list_dma;
	__le32 *wb;
	dma_addr_t wb_dma;
	atomic64_t transfers, bytes, descs, reads, writes, irqs, errors;
};

struct xv_event {
	struct xv_node node;
	unsigned int irq;
	struct mutex lock;	/* opens */
	unsigned int opens;
	atomic_t count;
	wait_queue_head_t wait;
};

struct xv_dev {
	struct kref ref;	/* the driver's, and one each open file */
	struct pci_dev *pdev;
	int card;
	void __iomem *regs;
	bool gone;		/* no register is touched any more, but for stopping */
	bool broken;		/* an engine did not stop: memory is kept from it */
	struct rw_semaphore io;	/* control node: accesses against removal */
	struct list_head maps;	/* open files of the control node, under io */
	unsigned int num_h2c, num_c2h, num_events;
	struct xv_channel *ch[2 * XV_CHANNELS];
	struct xv_event *event[XV_USERS];
	struct xv_node control;
	struct dentry *debug;
};

static DEFINE_IDA(xv_cards);
static struct dentry *xv_debug;
static struct workqueue_struct *xv_queue;	/* asynchronous requests */

static void xv_free(struct kref *ref)
{
	struct xv_dev *xd = container_of(ref, struct xv_dev, ref);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(xd->ch); i++)
		kfree(xd->ch[i]);
	for (i = 0; i < XV_USERS; i++)
		kfree(xd->event[i]);
	pci_dev_put(xd->pdev);
	kfree(xd);
}

/* Registers of a channel; what is counted here is what a transfer costs. */
static u32 xv_read(struct xv_channel *ch, unsigned int reg)
{
	atomic64_inc(&ch->reads);
	return readl(ch->regs + reg);
}

static void xv_write(struct xv_channel *ch, unsigned int reg, u32 value)
{
	atomic64_inc(&ch->writes);
	writel(value, ch->regs + reg);
}

static unsigned int xv_num_channels(struct xv_dev *xd)
{
	return xd->num_h2c + xd->num_c2h;
}

/* ------------------------------------------------------------ the engine */

static irqreturn_t xv_channel_irq(int irq, void *data)
{
	struct xv_channel *ch = data;
	u32 status = xv_read(ch, XV_STATUS_RC);

	if (status == U32_MAX || !(status & XV_LOG))
		return IRQ_NONE;
	atomic64_inc(&ch->irqs);
	WRITE_ONCE(ch->status, status);
	wake_up(&ch->wait);
	return IRQ_HANDLED;
}

/* Once this returns 0 or -ENODEV the engine touches no memory any more. */
static int xv_stop(struct xv_channel *ch)
{
	unsigned long end = jiffies + 2 * HZ;

	xv_write(ch, XV_CONTROL, 0);
	for (;;) {
		bool last = time_after(jiffies, end);
		u32 status = xv_read(ch, XV_STATUS);

		if (status == U32_MAX)
			return -ENODEV;
		if (!(status & XV_BUSY))
			return 0;
		if (last)
			return -ETIMEDOUT;
		usleep_range(20, 100);
	}
}

static int xv_wait_irq(struct xv_channel *ch)
{
	long left = wait_event_interruptible_timeout(ch->wait,
			READ_ONCE(ch->status) || READ_ONCE(ch->xd->gone),
			msecs_to_jiffies(timeout_ms));
	u32 status = READ_ONCE(ch->status);

	if (status & XV_ERRORS)
		return -EIO;
	if (status & XV_STOPPED)
		return 0;
	if (READ_ONCE(ch->xd->gone))
		return -ENODEV;
	return left < 0 ? -EINTR : -ETIMEDOUT;
}

static int xv_wait_poll(struct xv_channel *ch)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);

	for (;;) {
		bool last = time_after(jiffies, end);
		u32 value = le32_to_cpu(READ_ONCE(*ch->wb));

		if (value) {
			dma_rmb();
			return value & XV_WB_ERROR ? -EIO : 0;
		}
		if (READ_ONCE(ch->xd->gone))
			return -ENODEV;
		if (signal_pending(current))
			return -EINTR;
		if (last)
			return -ETIMEDOUT;
		cpu_relax();
		cond_resched();
	}
}

/* Runs the list of `n` descriptors; `done` of them were carried out. */
static int xv_run(struct xv_channel *ch, unsigned int n, unsigned int *done)
{
	bool polls = READ_ONCE(poll_mode);
	u32 mask = polls ? 0 : XV_LOG;
	u32 adj = min(n, XV_BLOCK) - 1, status;
	int err, stop;

	if (ch->mask != mask) {
		/* What was logged while nobody was interrupted is not news. */
		xv_read(ch, XV_STATUS_RC);
		xv_write(ch, XV_MASK, mask);
	}
	WRITE_ONCE(ch->status, 0);
	WRITE_ONCE(*ch->wb, 0);
	if (ch->adj != adj)
		xv_write(ch, XV_LIST_ADJ, adj);
	ch->mask = mask;
	ch->adj = adj;

	xv_write(ch, XV_CONTROL, XV_RUN | XV_LOG | (polls ? XV_WRITE_BACK : 0));
	err = polls ? xv_wait_poll(ch) : xv_wait_irq(ch);
	if (!err) {
		xv_write(ch, XV_CONTROL, 0);
		*done = n;
		return 0;
	}

	*done = 0;
	stop = xv_stop(ch);
	if (stop == -ENODEV)
		return stop;
	if (stop) {
		WRITE_ONCE(ch->xd->broken, true);
		pci_clear_master(ch->xd->pdev);
		dev_err(&ch->xd->pdev->dev, "%s does not stop: unbind it\n", ch->node.name);
		return stop;
	}
	/* No interrupt of this list may be taken for one of the next. */
	status = xv_read(ch, XV_STATUS_RC);
	synchronize_irq(ch->irq);
	status |= READ_ONCE(ch->status);
	*done = min(xv_read(ch, XV_COUNT), n);
	if (*done == n)
		return 0;	/* ended while we gave up */
	if (err == -EIO || err == -ETIMEDOUT) {
		atomic64_inc(&ch->errors);
		dev_err_ratelimited(&ch->xd->pdev->dev, "%s: %s at descriptor %u of %u, status %#x\n",
				    ch->node.name, err == -EIO ? "error" : "time-out", *done, n,
				    status);
	}
	return err;
}

/* ------------------------------------------------------------ transfers */

/* Pages of a caller, and what is to be done with them. */
struct xv_req {
	struct xv_channel *ch;
	struct kiocb *iocb;	/* asynchronous: whom to tell */
	struct work_struct work;
	struct sg_table sgt;
	u64 pos;
	size_t len;
	unsigned int offset;	/* into the first page */
	unsigned int npages;
	struct page *pages[];
};

/* From 6.4 on a macro; before, the current segment has to be looked up. */
#ifndef iter_iov_addr
static void __user *iter_iov_addr(const struct iov_iter *iter)
{
	return (iter_is_ubuf(iter) ? iter->ubuf : iter->iov->iov_base) + iter->iov_offset;
}
#endif

/* The first part of the iterator that one list can carry, as a request. */
static struct xv_req *xv_pin(struct xv_channel *ch, struct iov_iter *iter, u64 pos)
{
	unsigned long at = (unsigned long)iter_iov_addr(iter);
	unsigned int offset = offset_in_page(at);
	size_t len = min_t(size_t, iov_iter_single_seg_count(iter),
			   XV_DESCS * PAGE_SIZE - offset);
	unsigned int npages = DIV_ROUND_UP(offset + len, PAGE_SIZE);
	struct xv_req *req;
	int got;

	req = kvzalloc(struct_size(req, pages, npages), GFP_KERNEL);
	if (!req)
		return ERR_PTR(-ENOMEM);
	got = pin_user_pages_fast(at - offset, npages, ch->c2h ? FOLL_WRITE : 0, req->pages);
	if (got <= 0) {
		kvfree(req);
		return ERR_PTR(got ? got : -EFAULT);
	}
	req->ch = ch;
	req->pos = pos;
	req->npages = got;
	req->offset = offset;
	req->len = min_t(size_t, len, got * PAGE_SIZE - offset);
	return req;
}

static void xv_unpin(struct xv_req *req)
{
	unpin_user_pages_dirty_lock(req->pages, req->npages, req->ch->c2h);
	kvfree(req);
}

static void xv_fill(struct xv_req *req)
{
	struct xv_channel *ch = req->ch;
	unsigned int i, n = req->sgt.nents;
	u64 pos = req->pos;
	struct scatterlist *sg;

	for_each_sgtable_dma_sg(&req->sgt, sg, i) {
		struct xv_desc *desc = &ch->list[i];
		unsigned int next = i + 1;
		u32 control = XV_MAGIC;

		if (next == n)
			control |= XV_DESC_STOP | XV_DESC_DONE | XV_DESC_EOP;
		else
			control |= (min(round_up(next + 1, XV_BLOCK), n) - 1 - next) << 8;
		desc->control = cpu_to_le32(control);
		desc->len = cpu_to_le32(sg_dma_len(sg));
		desc->src = cpu_to_le64(ch->c2h ? pos : sg_dma_address(sg));
		desc->dst = cpu_to_le64(ch->c2h ? sg_dma_address(sg) : pos);
		desc->next = cpu_to_le64(next == n ? 0 : ch->list_dma + next * sizeof(*desc));
		pos += sg_dma_len(sg);
	}
}

/* Carries a request out and ends it; bytes moved, or an error if none were. */
static ssize_t xv_transfer(struct xv_req *req)
{
	struct xv_channel *ch = req->ch;
	struct device *dev = &ch->xd->pdev->dev;
	enum dma_data_direction dir = ch->c2h ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	struct scatterlist *sg;
	unsigned int i, done = 0;
	ssize_t moved = 0;
	int err;

	if (req->iocb) {
		mutex_lock(&ch->lock);	/* in a worker: nobody to interrupt */
	} else if (mutex_lock_interruptible(&ch->lock)) {
		xv_unpin(req);
		return -ERESTARTSYS;
	}
	err = READ_ONCE(ch->xd->gone) ? -ENODEV : READ_ONCE(ch->xd->broken) ? -EIO : 0;
	if (err)
		goto unpin;
	err = sg_alloc_table_from_pages(&req->sgt, req->pages, req->npages, req->offset,
					req->len, GFP_KERNEL);
	if (err)
		goto unpin;
	err = dma_map_sgtable(dev, &req->sgt, dir, 0);
	if (err)
		goto free;

	xv_fill(req);
	err = xv_run(ch, req->sgt.nents, &done);
	for_each_sgtable_dma_sg(&req->sgt, sg, i) {
		if (i == done)
			break;
		moved += sg_dma_len(sg);
	}
	atomic64_inc(&ch->transfers);
	atomic64_add(done, &ch->descs);
	atomic64_add(moved, &ch->bytes);
	if (READ_ONCE(ch->xd->broken)) {
		/* The engine may still use the pages: they stay pinned and mapped. */
		mutex_unlock(&ch->lock);
		return -EIO;
	}
	dma_unmap_sgtable(dev, &req->sgt, dir, 0);
free:
	sg_free_table(&req->sgt);
unpin:
	mutex_unlock(&ch->lock);
	xv_unpin(req);
	return moved ? moved : err;
}

static void xv_work(struct work_struct *work)
{
	struct xv_req *req = container_of(work, struct xv_req, work);
	struct kiocb *iocb = req->iocb;
	ssize_t ret = xv_transfer(req);

	if (ret > 0)
		iocb->ki_pos += ret;
	iocb->ki_complete(iocb, ret);
}

static struct xv_dev *xv_open_node(struct file *file)
{
	struct xv_node *node = container_of(file->private_data, struct xv_node, misc);

	kref_get(&node->xd->ref);	/* the node is there as long as misc_open() holds it */
	file->private_data = node;
	return node->xd;
}

static int xv_channel_open(struct inode *inode, struct file *file)
{
	xv_open_node(file);
	return 0;
}

static int xv_node_release(struct inode *inode, struct file *file)
{
	struct xv_node *node = file->private_data;

	kref_put(&node->xd->ref, xv_free);
	return 0;
}

static ssize_t xv_rw(struct kiocb *iocb, struct iov_iter *iter)
{
	struct xv_node *node = iocb->ki_filp->private_data;
	struct xv_channel *ch = container_of(node, struct xv_channel, node);
	ssize_t total = 0, ret = 0;

	if (!iter_is_ubuf(iter) && !iter_is_iovec(iter))
		return -EINVAL;	/* memory of a process only */
	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	while (iov_iter_count(iter)) {
		struct xv_req *req;
		size_t len;

		if (!iov_iter_single_seg_count(iter)) {
			iov_iter_advance(iter, 0);	/* past empty segments */
			if (!iov_iter_single_seg_count(iter))
				break;
		}
		req = xv_pin(ch, iter, iocb->ki_pos);
		if (IS_ERR(req)) {
			ret = PTR_ERR(req);
			break;
		}
		len = req->len;
		if (!is_sync_kiocb(iocb) && !total && len == iov_iter_count(iter)) {
			req->iocb = iocb;
			INIT_WORK(&req->work, xv_work);
			queue_work(xv_queue, &req->work);
			return -EIOCBQUEUED;
		}
		ret = xv_transfer(req);
		if (ret < 0)
			break;
		iov_iter_advance(iter, ret);
		iocb->ki_pos += ret;
		total += ret;
		if (ret < len)
			break;
	}
	if (total)
		return total;
	return ret == -EINTR ? -ERESTARTSYS : ret;
}

static const struct file_operations xv_h2c_fops = {
	.owner = THIS_MODULE,
	.open = xv_channel_open,
	.release = xv_node_release,
	.write_iter = xv_rw,
	.llseek = no_seek_end_llseek,
};

static const struct file_operations xv_c2h_fops = {
	.owner = THIS_MODULE,
	.open = xv_channel_open,
	.release = xv_node_release,
	.read_iter = xv_rw,
	.llseek = no_seek_end_llseek,
};

/* ------------------------------------------------------------ registers */

/* An open control node; in the device's list, so that removal finds the mappings. */
struct xv_map {
	struct list_head entry;
	struct xv_dev *xd;
	struct inode *inode;
};

static int xv_control_open(struct inode *inode, struct file *file)
{
	struct xv_map *map;
	int err;

	/* Who writes these registers can reach all memory. */
	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	err = security_locked_down(LOCKDOWN_PCI_ACCESS);
	if (err)
		return err;
	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return -ENOMEM;
	map->inode = inode;
	map->xd = xv_open_node(file);
	file->private_data = map;
	down_write(&map->xd->io);
	list_add(&map->entry, &map->xd->maps);
	up_write(&map->xd->io);
	return 0;
}

static int xv_control_release(struct inode *inode, struct file *file)
{
	struct xv_map *map = file->private_data;
	struct xv_dev *xd = map->xd;

	down_write(&xd->io);
	list_del(&map->entry);
	up_write(&xd->io);
	kfree(map);
	kref_put(&xd->ref, xv_free);
	return 0;
}

static ssize_t xv_control_rw(struct xv_dev *xd, char __user *to, const char __user *from,
			     size_t len, loff_t *pos)
{
	size_t done = 0;
	ssize_t err = 0;

	if (*pos & 3 || len & 3)
		return -EINVAL;
	if (*pos >= XV_REGS)
		return 0;
	len = min_t(size_t, len, XV_REGS - *pos);
	down_read(&xd->io);
	if (xd->gone)
		err = -ENODEV;
	for (; !err && done < len; done += 4) {
		void __iomem *reg = xd->regs + *pos + done;
		u32 value;

		if (to) {
			value = readl(reg);
			if (put_user(value, (u32 __user *)(to + done)))
				err = -EFAULT;
		} else if (get_user(value, (const u32 __user *)(from + done))) {
			err = -EFAULT;
		} else {
			writel(value, reg);
		}
		if (err)
			break;
	}
	up_read(&xd->io);
	*pos += done;
	return done ? done : err;
}

static ssize_t xv_control_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	struct xv_map *map = file->private_data;

	return xv_control_rw(map->xd, to, NULL, len, pos);
}

static ssize_t xv_control_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct xv_map *map = file->private_data;

	return xv_control_rw(map->xd, NULL, from, len, pos);
}

/* Only reached when the card is gone: the pages are there from the beginning. */
static vm_fault_t xv_control_fault(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct xv_control_vm_ops = {
	.fault = xv_control_fault,
};

static int xv_control_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct xv_map *map = file->private_data;
	struct xv_dev *xd = map->xd;
	unsigned long size = vma->vm_end - vma->vm_start;
	unsigned long offset = vma->vm_pgoff << PAGE_SHIFT;
	int err = -ENODEV;

	if (vma->vm_pgoff >= XV_REGS >> PAGE_SHIFT || size > XV_REGS - offset)
		return -EINVAL;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_ops = &xv_control_vm_ops;
	down_read(&xd->io);
	if (!xd->gone)
		err = io_remap_pfn_range(vma, vma->vm_start,
					 (pci_resource_start(xd->pdev, 0) + offset) >> PAGE_SHIFT,
					 size, vma->vm_page_prot);
	up_read(&xd->io);
	return err;
}

static const struct file_operations xv_control_fops = {
	.owner = THIS_MODULE,
	.open = xv_control_open,
	.release = xv_control_release,
	.read = xv_control_read,
	.write = xv_control_write,
	.mmap = xv_control_mmap,
	.llseek = no_seek_end_llseek,
};

/* ------------------------------------------------------------ user interrupts */

static irqreturn_t xv_event_irq(int irq, void *data)
{
	struct xv_event *event = data;

	atomic_inc(&event->count);
	wake_up(&event->wait);
	return IRQ_HANDLED;
}

static void xv_event_enable(struct xv_event *event, bool on)
{
	struct xv_dev *xd = event->node.xd;

	down_read(&xd->io);
	if (!xd->gone)
		writel(BIT(event->node.index),
		       xd->regs + XV_IRQ + (on ? XV_USER_SET : XV_USER_CLEAR));
	up_read(&xd->io);
}

static int xv_event_open(struct inode *inode, struct file *file)
{
	struct xv_event *event;

	xv_open_node(file);
	event = container_of((struct xv_node *)file->private_data, struct xv_event, node);
	mutex_lock(&event->lock);
	if (!event->opens++)
		xv_event_enable(event, true);
	mutex_unlock(&event->lock);
	return stream_open(inode, file);
}

static int xv_event_release(struct inode *inode, struct file *file)
{
	struct xv_node *node = file->private_data;
	struct xv_event *event = container_of(node, struct xv_event, node);

	mutex_lock(&event->lock);
	if (!--event->opens)
		xv_event_enable(event, false);
	mutex_unlock(&event->lock);
	return xv_node_release(inode, file);
}

/* Waits for an interrupt; how many there were since the last read, as a u32. */
static ssize_t xv_event_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	struct xv_node *node = file->private_data;
	struct xv_event *event = container_of(node, struct xv_event, node);
	u32 count;

	if (len < sizeof(count))
		return -EINVAL;
	for (;;) {
		count = atomic_xchg(&event->count, 0);
		if (count)
			break;
		if (READ_ONCE(node->xd->gone))
			return -ENODEV;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(event->wait, atomic_read(&event->count) ||
					     READ_ONCE(node->xd->gone)))
			return -ERESTARTSYS;
	}
	return put_user(count, (u32 __user *)to) ? -EFAULT : sizeof(count);
}

static __poll_t xv_event_poll(struct file *file, poll_table *table)
{
	struct xv_node *node = file->private_data;
	struct xv_event *event = container_of(node, struct xv_event, node);

	poll_wait(file, &event->wait, table);
	return (atomic_read(&event->count) ? EPOLLIN | EPOLLRDNORM : 0) |
	       (READ_ONCE(node->xd->gone) ? EPOLLHUP | EPOLLERR : 0);
}

static const struct file_operations xv_event_fops = {
	.owner = THIS_MODULE,
	.open = xv_event_open,
	.release = xv_event_release,
	.read = xv_event_read,
	.poll = xv_event_poll,
};

/* ------------------------------------------------------------ counters */

static int counters_show(struct seq_file *m, void *data)
{
	struct xv_dev *xd = m->private;
	unsigned int i;

	for (i = 0; i < xv_num_channels(xd); i++) {
		struct xv_channel *ch = xd->ch[i];

		seq_printf(m, "%s_%u transfers %lld bytes %lld descriptors %lld reads %lld writes %lld interrupts %lld errors %lld\n",
			   ch->c2h ? "c2h" : "h2c", ch->node.index,
			   atomic64_read(&ch->transfers), atomic64_read(&ch->bytes),
			   atomic64_read(&ch->descs), atomic64_read(&ch->reads),
			   atomic64_read(&ch->writes), atomic64_read(&ch->irqs),
			   atomic64_read(&ch->errors));
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/* ------------------------------------------------------------ coming and going */

static int xv_add_node(struct xv_dev *xd, struct xv_node *node, unsigned int index,
		       const struct file_operations *fops, umode_t mode)
{
	int err;

	node->xd = xd;
	node->index = index;
	node->misc.minor = MISC_DYNAMIC_MINOR;
	node->misc.name = node->name;
	node->misc.fops = fops;
	node->misc.parent = &xd->pdev->dev;
	node->misc.mode = mode;
	err = misc_register(&node->misc);
	node->registered = !err;
	return err;
}

static void xv_remove_node(struct xv_node *node)
{
	if (node->registered)
		misc_deregister(&node->misc);
	node->registered = false;
}

/* What a reset of the function forgets. The channels are at rest. */
static void xv_setup(struct xv_dev *xd)
{
	unsigned int i, n = xv_num_channels(xd);
	u32 vectors[4] = { };

	for (i = 0; i < n; i++) {
		struct xv_channel *ch = xd->ch[i];

		ch->mask = 0;
		ch->adj = 0;
		writel(0, ch->regs + XV_MASK);
		writel(0, ch->regs + XV_LIST_ADJ);
		writel(lower_32_bits(ch->list_dma), ch->regs + XV_LIST_LO);
		writel(upper_32_bits(ch->list_dma), ch->regs + XV_LIST_HI);
		writel(lower_32_bits(ch->wb_dma), ch->regs + XV_WB_LO);
		writel(upper_32_bits(ch->wb_dma), ch->regs + XV_WB_HI);
		vectors[i / 4] |= i << i % 4 * 8;
	}
	for (i = 0; i < 2; i++)
		writel(vectors[i], xd->regs + XV_IRQ + XV_CHAN_VEC + 4 * i);
	memset(vectors, 0, sizeof(vectors));
	for (i = 0; i < xd->num_events; i++)
		vectors[i / 4] |= (n + i) << i % 4 * 8;
	for (i = 0; i < 4; i++)
		writel(vectors[i], xd->regs + XV_IRQ + XV_USER_VEC + 4 * i);
	writel(BIT(n) - 1, xd->regs + XV_IRQ + XV_CHAN_EN);
	vectors[0] = 0;
	for (i = 0; i < xd->num_events; i++)
		if (xd->event[i]->opens)
			vectors[0] |= BIT(i);
	writel(vectors[0], xd->regs + XV_IRQ + XV_USER_EN);
}

static int xv_add_channel(struct xv_dev *xd, bool c2h, unsigned int index)
{
	struct device *dev = &xd->pdev->dev;
	unsigned int at = xv_num_channels(xd);
	struct xv_channel *ch = kzalloc(sizeof(*ch), GFP_KERNEL);

	if (!ch)
		return -ENOMEM;
	xd->ch[at] = ch;
	if (c2h)
		xd->num_c2h++;
	else
		xd->num_h2c++;
	ch->xd = xd;
	ch->c2h = c2h;
	ch->regs = xd->regs + (c2h ? XV_C2H : XV_H2C) + index * XV_STRIDE;
	mutex_init(&ch->lock);
	init_waitqueue_head(&ch->wait);
	ch->node.index = index;
	snprintf(ch->node.name, sizeof(ch->node.name), XV_NAME "%d_%s_%u", xd->card,
		 c2h ? "c2h" : "h2c", index);
	ch->list = dma_alloc_coherent(dev, XV_DESCS * sizeof(*ch->list), &ch->list_dma, GFP_KERNEL);
	ch->wb = dma_alloc_coherent(dev, sizeof(*ch->wb), &ch->wb_dma, GFP_KERNEL);
	return ch->list && ch->wb ? 0 : -ENOMEM;
}

static void xv_free_channel(struct xv_dev *xd, struct xv_channel *ch)
{
	struct device *dev = &xd->pdev->dev;

	if (ch->wb)
		dma_free_coherent(dev, sizeof(*ch->wb), ch->wb, ch->wb_dma);
	if (ch->list)
		dma_free_coherent(dev, XV_DESCS * sizeof(*ch->list), ch->list, ch->list_dma);
	ch->wb = NULL;
	ch->list = NULL;
}

static int xv_find_channels(struct xv_dev *xd)
{
	unsigned int i;
	int err;

	if ((readl(xd->regs + XV_CONFIG + XV_ID) & 0xffff0000) != XV_ID_CONFIG)
		return dev_err_probe(&xd->pdev->dev, -ENODEV, "no DMA engine in BAR 0\n");
	for (i = 0; i < 2 * XV_CHANNELS; i++) {
		bool c2h = i >= XV_CHANNELS;
		unsigned int index = i % XV_CHANNELS;
		u32 id = readl(xd->regs + (c2h ? XV_C2H : XV_H2C) + index * XV_STRIDE + XV_ID);

		/* The bit for streams is in the mask too: memory-mapped channels only. */
		if ((id & XV_ID_MASK) != (c2h ? XV_ID_C2H : XV_ID_H2C))
			continue;
		err = xv_add_channel(xd, c2h, index);
		if (!err)
			err = xv_stop(xd->ch[xv_num_channels(xd) - 1]);
		if (err)
			return err;
	}
	return xv_num_channels(xd) ? 0 : -ENODEV;
}

static int xv_find_irqs(struct xv_dev *xd)
{
	unsigned int i, n = xv_num_channels(xd);
	int err, got;

	got = pci_alloc_irq_vectors(xd->pdev, n, n + XV_USERS, PCI_IRQ_MSIX);
	if (got < 0)
		return got;
	for (i = 0; i < n; i++) {
		struct xv_channel *ch = xd->ch[i];

		err = request_irq(pci_irq_vector(xd->pdev, i), xv_channel_irq, 0,
				  ch->node.name, ch);
		if (err)
			return err;
		ch->irq = pci_irq_vector(xd->pdev, i);
	}
	for (i = 0; n + i < got; i++) {
		struct xv_event *event = kzalloc(sizeof(*event), GFP_KERNEL);

		if (!event)
			return -ENOMEM;
		mutex_init(&event->lock);
		init_waitqueue_head(&event->wait);
		event->node.xd = xd;
		event->node.index = i;
		snprintf(event->node.name, sizeof(event->node.name), XV_NAME "%d_events_%u",
			 xd->card, i);
		xd->event[xd->num_events++] = event;
		err = request_irq(pci_irq_vector(xd->pdev, n + i), xv_event_irq, 0,
				  event->node.name, event);
		if (err)
			return err;
		event->irq = pci_irq_vector(xd->pdev, n + i);
	}
	return 0;
}

static int xv_add_nodes(struct xv_dev *xd)
{
	unsigned int i;
	int err;

	for (i = 0; i < xv_num_channels(xd); i++) {
		struct xv_channel *ch = xd->ch[i];

		err = xv_add_node(xd, &ch->node, ch->node.index,
				  ch->c2h ? &xv_c2h_fops : &xv_h2c_fops, 0600);
		if (err)
			return err;
	}
	for (i = 0; i < xd->num_events; i++) {
		err = xv_add_node(xd, &xd->event[i]->node, i, &xv_event_fops, 0600);
		if (err)
			return err;
	}
	snprintf(xd->control.name, sizeof(xd->control.name), XV_NAME "%d_control", xd->card);
	return xv_add_node(xd, &xd->control, 0, &xv_control_fops, 0600);
}

/* Ends everything, whatever was begun; files may stay open and find the card gone. */
static void xv_take_down(struct xv_dev *xd)
{
	struct pci_dev *pdev = xd->pdev;
	struct xv_map *map;
	unsigned int i;

	debugfs_remove_recursive(xd->debug);
	xv_remove_node(&xd->control);
	for (i = 0; i < xd->num_events; i++)
		xv_remove_node(&xd->event[i]->node);
	for (i = 0; i < xv_num_channels(xd); i++)
		xv_remove_node(&xd->ch[i]->node);

	/* Who waits gives up, and whoever comes later is sent away. */
	down_write(&xd->io);
	WRITE_ONCE(xd->gone, true);
	list_for_each_entry(map, &xd->maps, entry)
		unmap_mapping_range(map->inode->i_mapping, 0, 0, 1);
	up_write(&xd->io);
	for (i = 0; i < xd->num_events; i++)
		wake_up_all(&xd->event[i]->wait);
	for (i = 0; i < xv_num_channels(xd); i++) {
		struct xv_channel *ch = xd->ch[i];

		wake_up_all(&ch->wait);
		mutex_lock(&ch->lock);	/* the transfer that was running has ended */
		mutex_unlock(&ch->lock);
	}

	writel(0, xd->regs + XV_IRQ + XV_CHAN_EN);
	writel(0, xd->regs + XV_IRQ + XV_USER_EN);
	for (i = 0; i < xv_num_channels(xd); i++)
		if (xd->ch[i]->irq)
			free_irq(xd->ch[i]->irq, xd->ch[i]);
	for (i = 0; i < xd->num_events; i++)
		if (xd->event[i]->irq)
			free_irq(xd->event[i]->irq, xd->event[i]);
	pci_free_irq_vectors(pdev);
	pci_clear_master(pdev);
	if (xd->broken)
		__pci_reset_function_locked(pdev);
	for (i = 0; i < xv_num_channels(xd); i++)
		xv_free_channel(xd, xd->ch[i]);
	pci_iounmap(pdev, xd->regs);
	pci_release_region(pdev, 0);
	pci_disable_device(pdev);
	ida_free(&xv_cards, xd->card);
	kref_put(&xd->ref, xv_free);
}

static int xv_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct xv_dev *xd = kzalloc(sizeof(*xd), GFP_KERNEL);
	int err;

	if (!xd)
		return -ENOMEM;
	kref_init(&xd->ref);
	init_rwsem(&xd->io);
	INIT_LIST_HEAD(&xd->maps);
	xd->pdev = pci_dev_get(pdev);
	xd->card = ida_alloc(&xv_cards, GFP_KERNEL);
	if (xd->card < 0) {
		err = xd->card;
		goto put;
	}
	err = pci_enable_device(pdev);
	if (err)
		goto card;
	err = pci_request_region(pdev, 0, XV_NAME);
	if (err)
		goto disable;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto release;
	err = -ENODEV;
	if (pci_resource_len(pdev, 0) < XV_REGS)
		goto release;
	xd->regs = pci_iomap(pdev, 0, XV_REGS);
	if (!xd->regs)
		goto release;
	pci_set_drvdata(pdev, xd);

	err = xv_find_channels(xd);
	if (!err)
		err = xv_find_irqs(xd);
	if (!err) {
		xv_setup(xd);
		pci_set_master(pdev);
		err = xv_add_nodes(xd);
	}
	if (err) {
		xv_take_down(xd);
		return err;
	}
	xd->debug = debugfs_create_dir(pci_name(pdev), xv_debug);
	debugfs_create_file("counters", 0444, xd->debug, xd, &counters_fops);
	dev_info(&pdev->dev, "card %d: %u channels to the card, %u from it, %u user interrupts\n",
		 xd->card, xd->num_h2c, xd->num_c2h, xd->num_events);
	return 0;

release:
	pci_release_region(pdev, 0);
disable:
	pci_disable_device(pdev);
card:
	ida_free(&xv_cards, xd->card);
put:
	kref_put(&xd->ref, xv_free);
	return err;
}

static void xv_remove(struct pci_dev *pdev)
{
	xv_take_down(pci_get_drvdata(pdev));
}

/* A reset asked for through sysfs waits for the transfers and is undone for the next. */
static void xv_reset_prepare(struct pci_dev *pdev)
{
	struct xv_dev *xd = pci_get_drvdata(pdev);
	unsigned int i;

	for (i = 0; i < xv_num_channels(xd); i++)
		mutex_lock_nested(&xd->ch[i]->lock, i);
}

static void xv_reset_done(struct pci_dev *pdev)
{
	struct xv_dev *xd = pci_get_drvdata(pdev);
	unsigned int i;

	xv_setup(xd);
	for (i = xv_num_channels(xd); i > 0; i--)
		mutex_unlock(&xd->ch[i - 1]->lock);
}

static const struct pci_error_handlers xv_err_handlers = {
	.reset_prepare = xv_reset_prepare,
	.reset_done = xv_reset_done,
};

static const struct pci_device_id xv_ids[] = {
	{ PCI_DEVICE(0x10ee, 0x903f) },
	{ }
};
MODULE_DEVICE_TABLE(pci, xv_ids);

static struct pci_driver xv_driver = {
	.name = XV_NAME,
	.id_table = xv_ids,
	.probe = xv_probe,
	.remove = xv_remove,
	.err_handler = &xv_err_handlers,
};

static int __init xv_init(void)
{
	int err;

	xv_queue = alloc_workqueue(XV_NAME, WQ_UNBOUND, 0);
	if (!xv_queue)
		return -ENOMEM;
	xv_debug = debugfs_create_dir(XV_NAME, NULL);
	err = pci_register_driver(&xv_driver);
	if (err) {
		debugfs_remove_recursive(xv_debug);
		destroy_workqueue(xv_queue);
	}
	return err;
}

static void __exit xv_exit(void)
{
	pci_unregister_driver(&xv_driver);
	destroy_workqueue(xv_queue);
	debugfs_remove_recursive(xv_debug);
	ida_destroy(&xv_cards);
}

module_init(xv_init);
module_exit(xv_exit);

MODULE_DESCRIPTION("Character devices for the XDMA-compatible function of a Viaduct card");
MODULE_AUTHOR("Viaduct contributors");
MODULE_LICENSE("GPL");
