// SPDX-License-Identifier: GPL-2.0
/*
 * Virtio devices of this machine's own kernel, each served by a process: the
 * kernel's drivers on one side, an unmodified vhost-user device on the other.
 * viaduct_loopback.h describes /dev/viaduct-loopback, for the process in between.
 *
 * This file: the control file, and the life of a device.
 */

#include <linux/idr.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "loopback.h"

#if BITS_PER_LONG != 64
#error "a device's range in the address space of the file needs 64 bits"
#endif

static unsigned int max_devices = 1024;
module_param(max_devices, uint, 0644);
MODULE_PARM_DESC(max_devices, "devices at a time, of all users of the device node");

static DEFINE_IDA(vl_ids);
static atomic_t vl_count;	/* of devices that exist, also while their last user closes them */
static struct workqueue_struct *vl_plug_queue;
struct workqueue_struct *vl_zap_queue;

/* Types whose drivers need nothing but queues and a configuration space. */
static const u8 vl_types[] = {
	VIRTIO_ID_NET, VIRTIO_ID_BLOCK, VIRTIO_ID_CONSOLE, VIRTIO_ID_RNG, VIRTIO_ID_INPUT,
	VIRTIO_ID_VSOCK, VIRTIO_ID_SOUND, VIRTIO_ID_I2C_ADAPTER, VIRTIO_ID_CAN, VIRTIO_ID_GPIO,
	VIRTIO_ID_SPI,
};

/* ------------------------------------------------------------ life of a device */

static void vl_free(struct kref *ref)
{
	struct vl_dev *dev = container_of(ref, struct vl_dev, ref);

	vl_queues_free(dev);
	vl_memory_free(dev);
	if (dev->mem.id >= 0)
		ida_free(&vl_ids, dev->mem.id);
	path_put(&dev->mem.path);
	kfree(dev);
	if (atomic_dec_and_test(&vl_count))
		wake_up_var(&vl_count);
}

void vl_get(struct vl_dev *dev)
{
	kref_get(&dev->ref);
}

void vl_put(struct vl_dev *dev)
{
	kref_put(&dev->ref, vl_free);
}

/* Wakes who waits for the device: the process at the control file, a driver. */
void vl_changed(struct vl_dev *dev)
{
	WRITE_ONCE(dev->changed, true);
	wake_up(&dev->wait);
}

static void vl_release_vdev(struct device *device)
{
	vl_put(to_vl(dev_to_virtio(device)));
}

static void vl_plug(struct work_struct *work)
{
	struct vl_dev *dev = container_of(work, struct vl_dev, plug);
	int err = register_virtio_device(&dev->vdev);

	if (err) {
		dev_err(&dev->vdev.dev, "not registered: error %d\n", err);
		put_device(&dev->vdev.dev);
		WRITE_ONCE(dev->dead, true);
	}
	dev->registered = !err;
	/* With `registered` and the device's index, for who acquires it. */
	smp_store_release(&dev->bound, true);
	vl_changed(dev);
}

static void vl_unplug(struct vl_dev *dev)
{
	WRITE_ONCE(dev->dead, true);
	vl_changed(dev);
	if (dev->stage == VL_NEW)
		return;
	if (dev->stage == VL_PLUGGED) {
		/* Requests fail, so that neither probe nor removal waits for the device process. */
		vl_queues_fail(dev);
		flush_work(&dev->plug);
		if (dev->registered)
			unregister_virtio_device(&dev->vdev);
	}
	vl_queues_quiet(dev);
	flush_delayed_work(&dev->mem.zap);
}

/* ------------------------------------------------------------ figures in sysfs */

static ssize_t owner_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(to_vl(dev_to_virtio(device))->owner));
}
static DEVICE_ATTR_RO(owner);

/* Sums over the queues; those of a queue in use may be a little old. */
static ssize_t sum_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct vl_dev *dev = to_vl(dev_to_virtio(device));
	size_t field = (size_t)container_of(attr, struct dev_ext_attribute, attr)->var;
	u64 sum = 0;
	u32 i;

	for (i = 0; i < dev->num_queues; i++)
		sum += READ_ONCE(*(u64 *)((char *)&dev->queues[i] + field));
	return sysfs_emit(buf, "%llu\n", sum);
}

#define VL_AT(field)	((void *)offsetof(struct vl_queue, field))

static struct dev_ext_attribute vl_sums[] = {
	{ __ATTR(requests, 0444, sum_show, NULL), VL_AT(requests) },
	{ __ATTR(copied, 0444, sum_show, NULL), VL_AT(copied) },
	{ __ATTR(mapped, 0444, sum_show, NULL), VL_AT(mapped) },
	{ __ATTR(kicks, 0444, sum_show, NULL), VL_AT(kicks) },
	{ __ATTR(calls, 0444, sum_show, NULL), VL_AT(calls) },
};

static ssize_t faults_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&to_vl(dev_to_virtio(device))->mem.faults));
}
static DEVICE_ATTR_RO(faults);

static ssize_t restarts_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(to_vl(dev_to_virtio(device))->restarts));
}
static DEVICE_ATTR_RO(restarts);

static struct attribute *vl_attrs[] = {
	&dev_attr_owner.attr, &dev_attr_faults.attr, &dev_attr_restarts.attr,
	&vl_sums[0].attr.attr, &vl_sums[1].attr.attr, &vl_sums[2].attr.attr, &vl_sums[3].attr.attr,
	&vl_sums[4].attr.attr, NULL
};

static const struct attribute_group vl_group = { .name = "viaduct", .attrs = vl_attrs };
static const struct attribute_group *vl_groups[] = { &vl_group, NULL };

/* ------------------------------------------------------------ the control file */

static const struct file_operations vl_fops;
static struct miscdevice vl_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = VL_NAME,
	.fops = &vl_fops,
	.mode = 0600,
};

static int vl_open(struct inode *inode, struct file *file)
{
	struct vl_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL_ACCOUNT);

	if (!dev)
		return -ENOMEM;
	kref_init(&dev->ref);
	mutex_init(&dev->lock);
	spin_lock_init(&dev->state_lock);
	init_waitqueue_head(&dev->wait);
	INIT_WORK(&dev->plug, vl_plug);
	dev->owner = task_tgid_nr(current);
	dev->mem.id = -1;
	dev->mem.inode = inode;
	dev->mem.path = file->f_path;
	path_get(&dev->mem.path);
	atomic_inc(&vl_count);
	file->private_data = dev;
	return 0;
}

static int vl_close(struct inode *inode, struct file *file)
{
	struct vl_dev *dev = file->private_data;

	vl_unplug(dev);
	vl_put(dev);
	return 0;
}

static __poll_t vl_poll_state(struct file *file, poll_table *table)
{
	struct vl_dev *dev = file->private_data;

	poll_wait(file, &dev->wait, table);
	return (READ_ONCE(dev->changed) ? EPOLLIN | EPOLLRDNORM : 0) |
	       (READ_ONCE(dev->dead) ? EPOLLERR : 0);
}

static int vl_check(const struct viaduct_loopback_create *c)
{
	if (c->version != VIADUCT_LOOPBACK_VERSION)
		return -EPROTO;
	if (c->type > U8_MAX || !memchr(vl_types, c->type, sizeof(vl_types)))
		return -EOPNOTSUPP;
	if (!(c->features & BIT_ULL(VIRTIO_F_VERSION_1)))
		return -EOPNOTSUPP;
	if (!c->queues || c->queues > VIADUCT_LOOPBACK_MAX_QUEUES)
		return -EINVAL;
	if (c->queue_size < 2 || c->queue_size > VIADUCT_LOOPBACK_MAX_SIZE ||
	    !is_power_of_2(c->queue_size))
		return -EINVAL;
	if (c->bounce < SZ_64K || c->bounce > SZ_64M || c->window > SZ_1G)
		return -EINVAL;
	if (!IS_ALIGNED(c->bounce | c->window, PAGE_SIZE))
		return -EINVAL;
	if (c->config_size > VIADUCT_LOOPBACK_CONFIG_SIZE)
		return -EINVAL;
	return 0;
}

static int vl_create(struct vl_dev *dev, void __user *arg)
{
	struct viaduct_loopback_create *c;
	u32 rings;
	int err;

	if (dev->stage != VL_NEW)
		return -EBUSY;
	c = memdup_user(arg, sizeof(*c));
	if (IS_ERR(c))
		return PTR_ERR(c);
	err = vl_check(c);
	if (err)
		goto out;
	err = -ENOSPC;
	if (max_devices)
		err = ida_alloc_max(&vl_ids, min(max_devices, 1U << 16) - 1, GFP_KERNEL);
	if (err < 0)
		goto out;
	dev->mem.id = err;
	rings = c->queues * PAGE_ALIGN(vring_size(c->queue_size, PAGE_SIZE));
	err = vl_memory_alloc(dev, rings, c->bounce, c->window);
	if (err)
		goto free_id;
	dev->num_queues = c->queues;
	dev->queue_size = c->queue_size;
	err = vl_queues_alloc(dev);
	if (err)
		goto free_memory;
	dev->offered = c->features;
	dev->map_min = c->map_min;
	dev->config_size = c->config_size;
	memcpy(dev->config, c->config, c->config_size);
	dev->vdev.id.device = c->type;
	dev->vdev.config = &vl_config_ops;
	dev->vdev.dev.parent = vl_misc.this_device;
	dev->vdev.dev.groups = vl_groups;
	dev->vdev.dev.release = vl_release_vdev;
	c->base = VL_BASE;
	c->size = vl_memory_size(dev);
	if (copy_to_user(arg, c, sizeof(*c))) {
		err = -EFAULT;
		goto free_memory;
	}
	dev->stage = VL_CREATED;
	goto out;
free_memory:
	vl_queues_free(dev);
	vl_memory_free(dev);
	dev->num_queues = 0;
free_id:
	ida_free(&vl_ids, dev->mem.id);
	dev->mem.id = -1;
out:
	kfree(c);
	return err;
}

static int vl_queue_set(struct vl_dev *dev, void __user *arg)
{
	struct viaduct_loopback_queue set;
	struct vl_queue *q;
	void *area = dev->mem.area;

	if (copy_from_user(&set, arg, sizeof(set)))
		return -EFAULT;
	if (dev->stage == VL_NEW)
		return -ENOTCONN;
	if (set.index >= dev->num_queues || set.reserved)
		return -EINVAL;
	q = &dev->queues[set.index];
	set.desc = VL_BASE + ((void *)q->shared.desc - area);
	set.avail = VL_BASE + ((void *)q->shared.avail - area);
	set.used = VL_BASE + ((void *)q->shared.used - area);
	if (copy_to_user(arg, &set, sizeof(set)))
		return -EFAULT;
	return vl_queue_events(q, set.kick, set.call);
}

static int vl_plug_in(struct vl_dev *dev)
{
	u32 i;

	if (dev->stage != VL_CREATED)
		return -EBUSY;
	for (i = 0; i < dev->num_queues; i++)
		if (!dev->queues[i].kick)
			return -ENOTCONN;
	dev->stage = VL_PLUGGED;
	vl_get(dev);	/* of vl_release_vdev() */
	queue_work(vl_plug_queue, &dev->plug);
	return 0;
}

static int vl_state(struct vl_dev *dev, void __user *arg)
{
	struct viaduct_loopback_state *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int err;
	u32 i;

	if (!s)
		return -ENOMEM;
	/* Whoever looks at it serves the device; it may have the file from another process. */
	WRITE_ONCE(dev->owner, task_tgid_nr(current));
	WRITE_ONCE(dev->changed, false);
	smp_mb();	/* what changes from here on is looked at again */
	spin_lock_irq(&dev->state_lock);
	s->status = dev->status;
	s->resets = dev->resets;
	s->writes = dev->writes;
	s->config_size = dev->config_size;
	memcpy(s->config, dev->config, dev->config_size);
	spin_unlock_irq(&dev->state_lock);
	if (dev->stage == VL_PLUGGED)
		s->features = vl_device_features(dev);
	if (dev->stage != VL_NEW) {
		s->offered = dev->offered;
		s->base = VL_BASE;
		s->size = vl_memory_size(dev);
		s->queues = dev->num_queues;
		s->queue_size = dev->queue_size;
	}
	if (READ_ONCE(dev->dead))
		s->flags |= VIADUCT_LOOPBACK_F_DEAD;
	/* After vl_plug(). */
	if (smp_load_acquire(&dev->bound)) {
		s->flags |= VIADUCT_LOOPBACK_F_BOUND;
		s->index = dev->vdev.index;
	}
	for (i = 0; i < dev->num_queues; i++) {
		struct vl_queue *q = &dev->queues[i];

		spin_lock_irq(&q->lock);
		if (q->vq)
			s->used[i / 64] |= BIT_ULL(i % 64);
		if (q->bad)
			s->flags |= VIADUCT_LOOPBACK_F_BAD_RING;
		spin_unlock_irq(&q->lock);
	}
	err = copy_to_user(arg, s, sizeof(*s)) ? -EFAULT : 0;
	kfree(s);
	return err;
}

static int vl_ack(struct vl_dev *dev, void __user *arg)
{
	struct viaduct_loopback_ack ack;
	int err = 0;

	if (copy_from_user(&ack, arg, sizeof(ack)))
		return -EFAULT;
	spin_lock_irq(&dev->state_lock);
	if ((s32)(dev->resets - ack.resets) < 0 || (s32)(dev->writes - ack.writes) < 0) {
		err = -EINVAL;	/* none of these has been asked for */
	} else {
		dev->resets_done = ack.resets;
		dev->writes_done = ack.writes;
	}
	spin_unlock_irq(&dev->state_lock);
	wake_up(&dev->wait);
	return err;
}

static int vl_config(struct vl_dev *dev, void __user *arg)
{
	struct viaduct_loopback_config *c;
	int err = 0;

	if (dev->stage == VL_NEW)
		return -ENOTCONN;
	c = memdup_user(arg, sizeof(*c));
	if (IS_ERR(c))
		return PTR_ERR(c);
	if (c->size != dev->config_size || c->notify > 1) {
		err = -EINVAL;
		goto out;
	}
	spin_lock_irq(&dev->state_lock);
	memcpy(dev->config, c->data, c->size);
	dev->generation++;
	spin_unlock_irq(&dev->state_lock);
	/* A driver that is being bound reads it later: after vl_plug(). */
	if (c->notify && smp_load_acquire(&dev->bound) && dev->registered)
		virtio_config_changed(&dev->vdev);
out:
	kfree(c);
	return err;
}

static int vl_restart(struct vl_dev *dev)
{
	if (dev->stage != VL_PLUGGED)
		return -ENOTCONN;
	if (READ_ONCE(dev->dead))
		return -ENODEV;
	vl_queues_restart(dev);
	WRITE_ONCE(dev->restarts, dev->restarts + 1);
	return 0;
}

static long vl_ioctl(struct file *file, unsigned int cmd, unsigned long value)
{
	struct vl_dev *dev = file->private_data;
	void __user *arg = (void __user *)value;
	long ret;

	mutex_lock(&dev->lock);
	switch (cmd) {
	case VIADUCT_LOOPBACK_CREATE:
		ret = vl_create(dev, arg);
		break;
	case VIADUCT_LOOPBACK_QUEUE:
		ret = vl_queue_set(dev, arg);
		break;
	case VIADUCT_LOOPBACK_MEMORY:
		ret = dev->stage == VL_NEW ? -ENOTCONN : vl_memory_file(dev);
		break;
	case VIADUCT_LOOPBACK_PLUG:
		ret = vl_plug_in(dev);
		break;
	case VIADUCT_LOOPBACK_STATE:
		ret = vl_state(dev, arg);
		break;
	case VIADUCT_LOOPBACK_ACK:
		ret = vl_ack(dev, arg);
		break;
	case VIADUCT_LOOPBACK_CONFIG:
		ret = vl_config(dev, arg);
		break;
	case VIADUCT_LOOPBACK_RESTART:
		ret = vl_restart(dev);
		break;
	default:
		ret = -ENOTTY;
	}
	mutex_unlock(&dev->lock);
	return ret;
}

static const struct file_operations vl_fops = {
	.owner = THIS_MODULE,
	.open = vl_open,
	.release = vl_close,
	.poll = vl_poll_state,
	.unlocked_ioctl = vl_ioctl,
};

static int __init vl_init(void)
{
	int err = -ENOMEM;

	vl_plug_queue = alloc_workqueue(VL_NAME "-plug", WQ_UNBOUND, 0);
	if (!vl_plug_queue)
		return err;
	/* Requests can wait for pages to be unmapped, and memory for requests. */
	vl_zap_queue = alloc_workqueue(VL_NAME "-unmap", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!vl_zap_queue)
		goto free_plug;
	err = misc_register(&vl_misc);
	if (!err)
		return 0;
	destroy_workqueue(vl_zap_queue);
free_plug:
	destroy_workqueue(vl_plug_queue);
	return err;
}

static void __exit vl_exit(void)
{
	misc_deregister(&vl_misc);
	wait_var_event(&vl_count, !atomic_read(&vl_count));
	destroy_workqueue(vl_zap_queue);
	destroy_workqueue(vl_plug_queue);
	ida_destroy(&vl_ids);
}

module_init(vl_init);
module_exit(vl_exit);
MODULE_DESCRIPTION("Virtio devices of the kernel's own drivers, served by vhost-user processes");
MODULE_AUTHOR("Viaduct contributors");
MODULE_LICENSE("GPL");
