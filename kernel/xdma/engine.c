// SPDX-License-Identifier: GPL-2.0
/* Operation of a channel: interrupt, waiting for a list of descriptors, stopping. */

#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "viaduct_xdma.h"

static bool poll_mode;
module_param_named(poll, poll_mode, bool, 0644);
MODULE_PARM_DESC(poll, "poll the written-back count instead of waiting for the interrupt");

static unsigned int timeout_ms = 10000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "longest time for one list of descriptors (up to 4 MiB)");

irqreturn_t xv_channel_irq(int irq, void *data)
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

/* Once this returns 0 or -ENODEV the engine accesses no memory any more. */
int xv_stop(struct xv_channel *ch)
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

/* Runs the list of `n` descriptors; `done` of them were completed. */
int xv_run(struct xv_channel *ch, unsigned int n, unsigned int *done)
{
	bool polls = READ_ONCE(poll_mode);
	u32 mask = polls ? 0 : XV_LOG;
	u32 adj = min(n, XV_BLOCK) - 1, status;
	int err, stop;

	if (ch->mask != mask) {
		/* Status logged while interrupts were off is outdated. */
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
	/* An interrupt of this list must not count for the next. */
	status = xv_read(ch, XV_STATUS_RC);
	synchronize_irq(ch->irq);
	status |= READ_ONCE(ch->status);
	*done = min(xv_read(ch, XV_COUNT), n);
	if (*done == n)
		return 0;	/* ended during the time-out */
	if (err == -EIO || err == -ETIMEDOUT) {
		atomic64_inc(&ch->errors);
		dev_err_ratelimited(&ch->xd->pdev->dev, "%s: %s at descriptor %u of %u, status %#x\n",
				    ch->node.name, err == -EIO ? "error" : "time-out", *done, n,
				    status);
	}
	return err;
}
