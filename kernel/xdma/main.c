// SPDX-License-Identifier: GPL-2.0
/*
 * Character devices for a card's XDMA-compatible function: the engine whose
 * registers and descriptors are those of the vendor's DMA engine (PG195).
 *
 *   /dev/viaduct_xdma<card>_h2c_<n>     write(): to card memory at the file offset
 *   /dev/viaduct_xdma<card>_c2h_<n>     read(): from card memory at the file offset
 *   /dev/viaduct_xdma<card>_control     the engine's registers: read, write, mmap
 *   /dev/viaduct_xdma<card>_user        user logic's registers: read, write, mmap
 *   /dev/viaduct_xdma<card>_events_<n>  read(), poll(): user interrupts
 *
 * This file: probe, removal and reset of a card.
 */

#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "viaduct_xdma.h"

static DEFINE_IDA(xv_cards);
static struct dentry *xv_debug;
struct workqueue_struct *xv_queue;

void xv_free(struct kref *ref)
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

struct xv_dev *xv_open_node(struct file *file)
{
	struct xv_node *node = container_of(file->private_data, struct xv_node, misc);

	kref_get(&node->xd->ref);	/* misc_open() keeps the node alive */
	file->private_data = node;
	return node->xd;
}

int xv_node_release(struct inode *inode, struct file *file)
{
	struct xv_node *node = file->private_data;

	kref_put(&node->xd->ref, xv_free);
	return 0;
}

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

/* ------------------------------------------------------------ probe and removal */

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

static int xv_add_window(struct xv_dev *xd, struct xv_window *window, const char *name)
{
	struct xv_node *node = &window->node;

	snprintf(node->name, sizeof(node->name), XV_NAME "%d_%s", xd->card, name);
	return xv_add_node(xd, node, 0, &xv_window_fops, 0600);
}

static void xv_remove_node(struct xv_node *node)
{
	if (node->registered)
		misc_deregister(&node->misc);
	node->registered = false;
}

/* Restores the state that a reset clears. The channels are idle. */
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

static void xv_unmap_bars(struct xv_dev *xd)
{
	if (xd->user.regs)
		pci_iounmap(xd->pdev, xd->user.regs);
	if (xd->control.regs)
		pci_iounmap(xd->pdev, xd->control.regs);
}

static void xv_map_window(struct xv_dev *xd, struct xv_window *window, int bar, size_t size)
{
	window->regs = pci_iomap(xd->pdev, bar, size);
	window->at = pci_resource_start(xd->pdev, bar);
	window->size = size;
}

/* Identifier of a block of registers. */
static u32 xv_block(struct xv_window *window, unsigned int at)
{
	return readl(window->regs + at + XV_ID) & XV_ID_BLOCK;
}

/*
 * The engine's BAR is found by its registers; one before it is user logic's.
 * The vendor's driver uses the same rule. It reads user logic's BAR at the
 * offsets of the engine's identifiers: these reads have no side effects.
 */
static int xv_map_bars(struct xv_dev *xd)
{
	struct xv_window *control = &xd->control;
	int bar, before = -1;

	for (bar = 0; bar < PCI_STD_NUM_BARS; bar++) {
		if (!(xd->bars & BIT(bar)))
			continue;
		if (pci_resource_len(xd->pdev, bar) >= XV_REGS) {
			xv_map_window(xd, control, bar, XV_REGS);
			if (!control->regs)
				return -ENOMEM;
			if (xv_block(control, XV_IRQ) == XV_ID_IRQ &&
			    xv_block(control, XV_CONFIG) == XV_ID_CONFIG)
				break;
			pci_iounmap(xd->pdev, control->regs);
			control->regs = NULL;
		}
		before = bar;
	}
	if (!control->regs)
		return dev_err_probe(&xd->pdev->dev, -ENODEV, "no BAR with a DMA engine\n");
	control->privileged = true;
	xd->regs = control->regs;
	if (before >= 0) {
		xv_map_window(xd, &xd->user, before, pci_resource_len(xd->pdev, before));
		if (!xd->user.regs) {
			xv_unmap_bars(xd);
			return -ENOMEM;
		}
	}
	return 0;
}

static int xv_find_channels(struct xv_dev *xd)
{
	unsigned int i;
	int err;

	for (i = 0; i < 2 * XV_CHANNELS; i++) {
		bool c2h = i >= XV_CHANNELS;
		unsigned int index = i % XV_CHANNELS;
		u32 id = readl(xd->regs + (c2h ? XV_C2H : XV_H2C) + index * XV_STRIDE + XV_ID);

		/* The mask includes the bit for streams: memory-mapped channels only. */
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
	err = xv_add_window(xd, &xd->control, "control");
	if (!err && xd->user.size)
		err = xv_add_window(xd, &xd->user, "user");
	return err;
}

/* Stops everything in any state; open files then return errors. */
static void xv_take_down(struct xv_dev *xd)
{
	struct pci_dev *pdev = xd->pdev;
	unsigned int i;

	debugfs_remove_recursive(xd->debug);
	xv_remove_node(&xd->control.node);
	xv_remove_node(&xd->user.node);
	for (i = 0; i < xd->num_events; i++)
		xv_remove_node(&xd->event[i]->node);
	for (i = 0; i < xv_num_channels(xd); i++)
		xv_remove_node(&xd->ch[i]->node);

	/* Waiting callers return, and later ones are refused. */
	down_write(&xd->io);
	WRITE_ONCE(xd->gone, true);
	xv_unmap_windows(xd);
	up_write(&xd->io);
	for (i = 0; i < xd->num_events; i++)
		wake_up_all(&xd->event[i]->wait);
	for (i = 0; i < xv_num_channels(xd); i++) {
		struct xv_channel *ch = xd->ch[i];

		wake_up_all(&ch->wait);
		mutex_lock(&ch->lock);	/* the transfer in progress has ended */
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
	xv_unmap_bars(xd);
	pci_release_selected_regions(pdev, xd->bars);
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
	INIT_LIST_HEAD(&xd->views);
	xd->pdev = pci_dev_get(pdev);
	xd->card = ida_alloc(&xv_cards, GFP_KERNEL);
	if (xd->card < 0) {
		err = xd->card;
		goto put;
	}
	err = pci_enable_device(pdev);
	if (err)
		goto card;
	xd->bars = pci_select_bars(pdev, IORESOURCE_MEM);
	err = pci_request_selected_regions(pdev, xd->bars, XV_NAME);
	if (err)
		goto disable;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto release;
	err = xv_map_bars(xd);
	if (err)
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
	pci_release_selected_regions(pdev, xd->bars);
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

/* A reset through sysfs waits for transfers, and the state is restored afterwards. */
static void xv_reset_prepare(struct pci_dev *pdev)
{
	struct xv_dev *xd = pci_get_drvdata(pdev);
	unsigned int i;

	for (i = 0; i < xv_num_channels(xd); i++)
		mutex_lock_nested(&xd->ch[i]->lock, i);
	/* Register accesses wait too: their settings would be lost. */
	down_write(&xd->io);
}

static void xv_reset_done(struct pci_dev *pdev)
{
	struct xv_dev *xd = pci_get_drvdata(pdev);
	unsigned int i;

	xv_setup(xd);
	up_write(&xd->io);
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
