// SPDX-License-Identifier: GPL-2.0
/* The virtio transport: what drivers of the kernel ask of a device. */

#include <linux/virtio_config.h>

#include "compat.h"
#include "loopback.h"

/* Features of the rings that a device process may have; others need none of it. */
#define VL_RING_FEATURES \
	(BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC) | BIT_ULL(VIRTIO_RING_F_EVENT_IDX))
#define VL_TRANSPORT_FEATURES \
	GENMASK_ULL(VIRTIO_TRANSPORT_F_END - 1, VIRTIO_TRANSPORT_F_START)

/* For the driver: its ring is the kernel's own, and can always say when to notify. */
static u64 vl_get_features(struct virtio_device *vdev)
{
	struct vl_dev *dev = to_vl(vdev);

	return (dev->offered & ~VL_TRANSPORT_FEATURES) | BIT_ULL(VIRTIO_F_VERSION_1) |
	       BIT_ULL(VIRTIO_RING_F_EVENT_IDX) |
	       (dev->offered & BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC));
}

/* For the device process: what driver and process agree on, and the rings'. */
u64 vl_device_features(struct vl_dev *dev)
{
	u64 ring = dev->offered & VL_RING_FEATURES;

	if (!__virtio_test_bit(&dev->vdev, VIRTIO_RING_F_INDIRECT_DESC))
		ring &= ~BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC);
	return (dev->vdev.features & dev->offered & ~VL_TRANSPORT_FEATURES) |
	       BIT_ULL(VIRTIO_F_VERSION_1) | ring;
}

static int vl_finalize_features(struct virtio_device *vdev)
{
	vring_transport_features(vdev);
	if (__virtio_test_bit(vdev, VIRTIO_F_VERSION_1))
		return 0;
	dev_err(&vdev->dev, "the driver does not know virtio 1\n");
	return -EINVAL;
}

/*
 * Waits until the process at the control file has carried out what a sequence
 * number stands for. If it does not in time, the device is dead.
 */
static void vl_handshake(struct vl_dev *dev, const u32 *done, u32 wanted, const char *what)
{
	vl_changed(dev);
	if (wait_event_timeout(dev->wait,
			       READ_ONCE(dev->dead) || (s32)(READ_ONCE(*done) - wanted) >= 0,
			       VL_TIMEOUT))
		return;
	dev_err(&dev->vdev.dev, "no answer to %s within %u s: the device is given up\n", what,
		VL_TIMEOUT / HZ);
	WRITE_ONCE(dev->dead, true);
	vl_changed(dev);
}

static void vl_config_get(struct virtio_device *vdev, unsigned int offset, void *buf,
			  unsigned int len)
{
	struct vl_dev *dev = to_vl(vdev);

	memset(buf, 0, len);
	spin_lock_irq(&dev->state_lock);
	if (offset < dev->config_size)
		memcpy(buf, dev->config + offset, min(len, dev->config_size - offset));
	spin_unlock_irq(&dev->state_lock);
}

static void vl_config_set(struct virtio_device *vdev, unsigned int offset, const void *buf,
			  unsigned int len)
{
	struct vl_dev *dev = to_vl(vdev);
	u32 writes;

	spin_lock_irq(&dev->state_lock);
	if (offset >= dev->config_size || len > dev->config_size - offset) {
		spin_unlock_irq(&dev->state_lock);
		return;
	}
	memcpy(dev->config + offset, buf, len);
	writes = ++dev->writes;
	spin_unlock_irq(&dev->state_lock);
	/* What the driver reads next may depend on what it has written. */
	vl_handshake(dev, &dev->writes_done, writes, "a write of the configuration space");
}

static u32 vl_generation(struct virtio_device *vdev)
{
	return READ_ONCE(to_vl(vdev)->generation);
}

static u8 vl_get_status(struct virtio_device *vdev)
{
	return READ_ONCE(to_vl(vdev)->status);
}

static void vl_set_status(struct virtio_device *vdev, u8 status)
{
	struct vl_dev *dev = to_vl(vdev);

	WRITE_ONCE(dev->status, status);
	vl_changed(dev);
}

static void vl_reset(struct virtio_device *vdev)
{
	struct vl_dev *dev = to_vl(vdev);
	u32 i, resets = 0;

	spin_lock_irq(&dev->state_lock);
	/* The device process is at work only after DRIVER_OK. */
	if (dev->status & VIRTIO_CONFIG_S_DRIVER_OK)
		resets = ++dev->resets;
	dev->status = 0;
	spin_unlock_irq(&dev->state_lock);
	if (resets)
		vl_handshake(dev, &dev->resets_done, resets, "a reset");
	/* Drivers free the buffers in flight from here on, before del_vqs(). */
	for (i = 0; i < dev->num_queues; i++)
		vl_queue_end(&dev->queues[i]);
}

/* ------------------------------------------------------------ queues */

static void vl_del_vqs(struct virtio_device *vdev)
{
	struct virtqueue *vq, *next;

	list_for_each_entry_safe(vq, next, &vdev->vqs, list) {
		vl_queue_end(vq->priv);
		vring_del_virtqueue(vq);
	}
}

static int vl_add_vqs(struct virtio_device *vdev, unsigned int n, struct virtqueue *vqs[],
		      const struct virtqueue_info info[])
{
	struct vl_dev *dev = to_vl(vdev);
	unsigned int i, index = 0;

	for (i = 0; i < n; i++) {
		struct virtqueue *vq;

		vqs[i] = NULL;
		if (!info[i].name)
			continue;
		if (index == dev->num_queues || READ_ONCE(dev->dead))
			goto fail;
		vq = vring_create_virtqueue(index, dev->queue_size, PAGE_SIZE, vdev, true, false,
					    info[i].ctx, vl_queue_notify, info[i].callback,
					    info[i].name);
		if (!vq)
			goto fail;
		vl_queue_begin(&dev->queues[index], vq);
		vqs[i] = vq;
		index++;
	}
	return 0;
fail:
	vl_del_vqs(vdev);
	return index == dev->num_queues ? -ENOENT : -ENOMEM;
}

#ifdef VL_FIND_VQS_BY_ARRAYS
static int vl_find_vqs(struct virtio_device *vdev, unsigned int n, struct virtqueue *vqs[],
		       vq_callback_t *callbacks[], const char * const names[], const bool *ctx,
		       struct irq_affinity *desc)
{
	struct virtqueue_info *info = kcalloc(n, sizeof(*info), GFP_KERNEL);
	unsigned int i;
	int err;

	if (!info)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		info[i] = (struct virtqueue_info) { names[i], callbacks[i], ctx && ctx[i] };
	err = vl_add_vqs(vdev, n, vqs, info);
	kfree(info);
	return err;
}
#else
static int vl_find_vqs(struct virtio_device *vdev, unsigned int n, struct virtqueue *vqs[],
		       struct virtqueue_info info[], struct irq_affinity *desc)
{
	return vl_add_vqs(vdev, n, vqs, info);
}
#endif

static void vl_synchronize(struct virtio_device *vdev)
{
	struct vl_dev *dev = to_vl(vdev);
	u32 i;

	for (i = 0; i < dev->num_queues; i++)
		irq_work_sync(&dev->queues[i].call_work);
}

static const char *vl_bus_name(struct virtio_device *vdev)
{
	return VL_NAME;
}

const struct virtio_config_ops vl_config_ops = {
	.get = vl_config_get,
	.set = vl_config_set,
	.generation = vl_generation,
	.get_status = vl_get_status,
	.set_status = vl_set_status,
	.reset = vl_reset,
	.find_vqs = vl_find_vqs,
	.del_vqs = vl_del_vqs,
	.synchronize_cbs = vl_synchronize,
	.get_features = vl_get_features,
	.finalize_features = vl_finalize_features,
	.bus_name = vl_bus_name,
};
