// SPDX-License-Identifier: GPL-2.0
/*
 * Device nodes of the BARs: registers as whole words, read and written in
 * sequence or mapped. The engine's need CAP_SYS_RAWIO: they reach all memory.
 */

#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "viaduct_xdma.h"

/* An open window; in the device's list, so that removal finds the mappings. */
struct xv_view {
	struct list_head entry;
	struct xv_window *window;
	struct inode *inode;
};

static int xv_window_open(struct inode *inode, struct file *file)
{
	struct xv_node *node = container_of(file->private_data, struct xv_node, misc);
	struct xv_window *window = container_of(node, struct xv_window, node);
	struct xv_view *view;
	int err;

	if (window->privileged) {
		if (!capable(CAP_SYS_RAWIO))
			return -EPERM;
		err = security_locked_down(LOCKDOWN_PCI_ACCESS);
		if (err)
			return err;
	}
	view = kzalloc(sizeof(*view), GFP_KERNEL);
	if (!view)
		return -ENOMEM;
	xv_open_node(file);
	view->inode = inode;
	view->window = window;
	file->private_data = view;
	down_write(&node->xd->io);
	list_add(&view->entry, &node->xd->views);
	up_write(&node->xd->io);
	return 0;
}

static int xv_window_release(struct inode *inode, struct file *file)
{
	struct xv_view *view = file->private_data;
	struct xv_dev *xd = view->window->node.xd;

	down_write(&xd->io);
	list_del(&view->entry);
	up_write(&xd->io);
	kfree(view);
	kref_put(&xd->ref, xv_free);
	return 0;
}

static ssize_t xv_window_rw(struct xv_window *window, char __user *to, const char __user *from,
			    size_t len, loff_t *pos)
{
	struct xv_dev *xd = window->node.xd;
	size_t done = 0;
	ssize_t err = 0;

	if (*pos & 3 || len & 3)
		return -EINVAL;
	if (*pos >= window->size)
		return to ? 0 : -ENOSPC;
	len = min_t(size_t, len, window->size - *pos);
	for (; done < len; done += 4) {
		void __iomem *reg = window->regs + *pos + done;
		u32 value;

		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		/* Not under io: a fault takes mmap_lock, under which xv_window_mmap() takes io. */
		if (!to && get_user(value, (const u32 __user *)(from + done))) {
			err = -EFAULT;
			break;
		}
		down_read(&xd->io);
		if (xd->gone)
			err = -ENODEV;
		else if (to)
			value = readl(reg);
		else
			writel(value, reg);
		up_read(&xd->io);
		if (!err && to && put_user(value, (u32 __user *)(to + done)))
			err = -EFAULT;
		if (err)
			break;
		cond_resched();
	}
	*pos += done;
	return done ? done : err;
}

static ssize_t xv_window_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	struct xv_view *view = file->private_data;

	return xv_window_rw(view->window, to, NULL, len, pos);
}

static ssize_t xv_window_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct xv_view *view = file->private_data;

	return xv_window_rw(view->window, NULL, from, len, pos);
}

/* Only called when the card is gone: pages are mapped from the beginning. */
static vm_fault_t xv_window_fault(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct xv_window_vm_ops = {
	.fault = xv_window_fault,
};

static int xv_window_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct xv_view *view = file->private_data;
	struct xv_window *window = view->window;
	struct xv_dev *xd = window->node.xd;
	unsigned long size = vma->vm_end - vma->vm_start;
	unsigned long offset = vma->vm_pgoff << PAGE_SHIFT;
	int err = -ENODEV;

	if (vma->vm_pgoff >= window->size >> PAGE_SHIFT || size > window->size - offset)
		return -EINVAL;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_ops = &xv_window_vm_ops;
	down_read(&xd->io);
	if (!xd->gone)
		err = io_remap_pfn_range(vma, vma->vm_start, (window->at + offset) >> PAGE_SHIFT,
					 size, vma->vm_page_prot);
	up_read(&xd->io);
	return err;
}

const struct file_operations xv_window_fops = {
	.owner = THIS_MODULE,
	.open = xv_window_open,
	.release = xv_window_release,
	.read = xv_window_read,
	.write = xv_window_write,
	.mmap = xv_window_mmap,
	.llseek = no_seek_end_llseek,
};

/* Under xd->io for writing: from now on every mapping raises SIGBUS. */
void xv_unmap_windows(struct xv_dev *xd)
{
	struct xv_view *view;

	list_for_each_entry(view, &xd->views, entry)
		unmap_mapping_range(view->inode->i_mapping, 0, 0, 1);
}
