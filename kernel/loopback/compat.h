/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between kernels 6.1 and 7.3, all of them. */
#ifndef VL_COMPAT_H
#define VL_COMPAT_H

#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/version.h>
#include <linux/virtio_config.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define eventfd_signal(ctx)	eventfd_signal(ctx, 1)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define VL_FIND_VQS_BY_ARRAYS
struct virtqueue_info {
	const char *name;
	vq_callback_t *callback;
	bool ctx;
};
#endif

#ifndef VIRTIO_ID_SPI
#define VIRTIO_ID_SPI	45
#endif

#endif
