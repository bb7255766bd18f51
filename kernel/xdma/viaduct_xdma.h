/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of the driver: registers and descriptors of the engine
 * (PG195), the structures of a card, and functions.
 */
#ifndef VIADUCT_XDMA_H
#define VIADUCT_XDMA_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#define XV_NAME		"viaduct_xdma"
#define XV_CHANNELS	4		/* each way, at most */
#define XV_USERS	16
#define XV_DESCS	1024U		/* of a list, and pages of a transfer */
#define XV_BLOCK	64U		/* adjacent descriptors: never across 4 KiB */
#define XV_REGS		0x8000		/* followed by the MSI-X table */

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
#define XV_ID_BLOCK	0xffff0000
#define XV_ID_H2C	0x1fc00000
#define XV_ID_C2H	0x1fc10000
#define XV_ID_IRQ	0x1fc20000
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
	u32 status;		/* status found by the interrupt handler */
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

/* A BAR as a device node. */
struct xv_window {
	struct xv_node node;
	void __iomem *regs;
	phys_addr_t at;
	size_t size;
	bool privileged;	/* write access allows access to all memory */
};

struct xv_dev {
	struct kref ref;	/* the driver's, and one per open file */
	struct pci_dev *pdev;
	int card;
	int bars;		/* those requested, a mask */
	void __iomem *regs;	/* of the engine */
	bool gone;		/* no register accesses any more, except to stop */
	bool broken;		/* an engine did not stop: its memory is not freed */
	struct rw_semaphore io;	/* windows: accesses against removal */
	struct list_head views;	/* open files of the windows, under io */
	unsigned int num_h2c, num_c2h, num_events;
	struct xv_channel *ch[2 * XV_CHANNELS];
	struct xv_event *event[XV_USERS];
	struct xv_window control;
	struct xv_window user;	/* .size = 0: there is no user BAR */
	struct dentry *debug;
};

extern struct workqueue_struct *xv_queue;	/* asynchronous requests */

/* Register accesses of a channel, counted as the cost of transfers. */
static inline u32 xv_read(struct xv_channel *ch, unsigned int reg)
{
	atomic64_inc(&ch->reads);
	return readl(ch->regs + reg);
}

static inline void xv_write(struct xv_channel *ch, unsigned int reg, u32 value)
{
	atomic64_inc(&ch->writes);
	writel(value, ch->regs + reg);
}

static inline unsigned int xv_num_channels(struct xv_dev *xd)
{
	return xd->num_h2c + xd->num_c2h;
}

/* main.c */
struct xv_dev *xv_open_node(struct file *file);
int xv_node_release(struct inode *inode, struct file *file);
void xv_free(struct kref *ref);

/* engine.c */
irqreturn_t xv_channel_irq(int irq, void *data);
int xv_stop(struct xv_channel *ch);
int xv_run(struct xv_channel *ch, unsigned int n, unsigned int *done);

/* transfer.c */
extern const struct file_operations xv_h2c_fops;
extern const struct file_operations xv_c2h_fops;

/* window.c */
extern const struct file_operations xv_window_fops;
void xv_unmap_windows(struct xv_dev *xd);

/* event.c */
extern const struct file_operations xv_event_fops;
irqreturn_t xv_event_irq(int irq, void *data);

#endif
