// SPDX-License-Identifier: GPL-2.0
/* Device nodes of the user interrupts. */

#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#include "viaduct_xdma.h"

irqreturn_t xv_event_irq(int irq, void *data)
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

/* Waits for an interrupt; returns their number since the last read, as a u32. */
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

const struct file_operations xv_event_fops = {
	.owner = THIS_MODULE,
	.open = xv_event_open,
	.release = xv_event_release,
	.read = xv_event_read,
	.poll = xv_event_poll,
};
