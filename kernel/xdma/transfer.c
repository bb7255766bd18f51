// SPDX-License-Identifier: GPL-2.0
/*
 * Device nodes of the channels: a transfer pins the caller's pages, builds a
 * list of descriptors and lets the engine execute it.
 */

#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "viaduct_xdma.h"

/* Pages of a caller, and the requested transfer. */
struct xv_req {
	struct xv_channel *ch;
	struct kiocb *iocb;	/* asynchronous: to be completed */
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

/* A request for the part of the iterator that fits one list. */
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

/* Executes and ends a request; bytes moved, or an error if none were. */
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
		mutex_lock(&ch->lock);	/* in a worker: cannot be interrupted */
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

static int xv_channel_open(struct inode *inode, struct file *file)
{
	xv_open_node(file);
	return 0;
}

static ssize_t xv_rw(struct kiocb *iocb, struct iov_iter *iter)
{
	struct xv_node *node = iocb->ki_filp->private_data;
	struct xv_channel *ch = container_of(node, struct xv_channel, node);
	ssize_t total = 0, ret = 0;

	if (!iter_is_ubuf(iter) && !iter_is_iovec(iter))
		return -EINVAL;	/* user memory only */
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

const struct file_operations xv_h2c_fops = {
	.owner = THIS_MODULE,
	.open = xv_channel_open,
	.release = xv_node_release,
	.write_iter = xv_rw,
	.llseek = no_seek_end_llseek,
};

const struct file_operations xv_c2h_fops = {
	.owner = THIS_MODULE,
	.open = xv_channel_open,
	.release = xv_node_release,
	.read_iter = xv_rw,
	.llseek = no_seek_end_llseek,
};
