// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a device: allocation of bounce buffers and of the window's
 * pages, the descriptor that the device process maps, its page faults.
 */

#include <linux/anon_inodes.h>
#include <linux/bitmap.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "loopback.h"

#define VL_AROUND	64U	/* pages mapped by a fault, at most */

static u32 vl_total_pages(struct vl_memory *mem)
{
	return mem->area_pages + mem->num_slots;
}

u64 vl_memory_size(struct vl_dev *dev)
{
	return (u64)vl_total_pages(&dev->mem) << PAGE_SHIFT;
}

static loff_t vl_offset(struct vl_memory *mem, u32 page)
{
	return ((loff_t)mem->id << VL_SPAN) + ((loff_t)page << PAGE_SHIFT);
}

/* ------------------------------------------------------------ bounce buffers and window */

/* The first free range of a map: what was used last is in caches, and mapped already. */
static int vl_range_get(unsigned long *map, u32 bits, u32 count, u32 *first)
{
	unsigned long at;

	if (!count || count > bits)
		return -E2BIG;
	at = bitmap_find_next_zero_area(map, bits, 0, count, 0);
	if (at >= bits)
		return -ENOSPC;
	bitmap_set(map, at, count);
	*first = at;
	return 0;
}

int vl_units_get(struct vl_memory *mem, u32 units, u32 *unit)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&mem->lock, flags);
	err = vl_range_get(mem->unit_map, mem->units, units, unit);
	if (err == -ENOSPC)
		mem->wanted = true;
	spin_unlock_irqrestore(&mem->lock, flags);
	return err;
}

void vl_units_put(struct vl_memory *mem, u32 unit, u32 units)
{
	unsigned long flags;
	bool wanted;

	spin_lock_irqsave(&mem->lock, flags);
	bitmap_clear(mem->unit_map, unit, units);
	wanted = mem->wanted;
	mem->wanted = false;
	spin_unlock_irqrestore(&mem->lock, flags);
	/* Perhaps by another queue, which has no completion of its own to wait for. */
	if (wanted)
		mod_delayed_work(vl_zap_queue, &mem->zap, 0);
}

int vl_slots_get(struct vl_memory *mem, u32 slots, u32 *slot)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&mem->lock, flags);
	err = vl_range_get(mem->slot_map, mem->num_slots, slots, slot);
	spin_unlock_irqrestore(&mem->lock, flags);
	if (err == -ENOSPC)
		mod_delayed_work(vl_zap_queue, &mem->zap, 0);
	return err;
}

/* Adjoining pages that are in flight from now on. */
void vl_slots_set(struct vl_memory *mem, u32 slot, u32 slots, unsigned long pfn, bool write)
{
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&mem->lock, flags);
	for (i = 0; i < slots; i++)
		mem->slots[slot + i] = (struct vl_slot) {
			.pfn = pfn + i, .live = 1, .write = write,
		};
	spin_unlock_irqrestore(&mem->lock, flags);
}

/*
 * The pages are in flight no more. Those that the device process has mapped are
 * unmapped by a work item, since that sleeps and this does not: until then they
 * are held, so that they cannot become somebody else's.
 */
void vl_slots_put(struct vl_memory *mem, u32 slot, u32 slots)
{
	bool touched = false;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&mem->lock, flags);
	for (i = slot; i < slot + slots; i++) {
		struct vl_slot *s = &mem->slots[i];

		s->live = 0;
		if (s->touched) {
			get_page(pfn_to_page(s->pfn));
			__set_bit(i, mem->zap_map);
			touched = true;
		} else {
			__clear_bit(i, mem->slot_map);
		}
	}
	spin_unlock_irqrestore(&mem->lock, flags);
	if (touched)
		queue_delayed_work(vl_zap_queue, &mem->zap, 1);
}

static bool vl_zap_range(struct vl_memory *mem)
{
	unsigned long first, end, i;

	spin_lock_irq(&mem->lock);
	first = find_first_bit(mem->zap_map, mem->num_slots);
	end = find_next_zero_bit(mem->zap_map, mem->num_slots, first);
	bitmap_clear(mem->zap_map, first, end - first);
	spin_unlock_irq(&mem->lock);
	if (first >= mem->num_slots)
		return false;
	/* A fault that has seen a page in flight ends before this begins. */
	down_write(&mem->fault_lock);
	unmap_mapping_range(mem->inode->i_mapping, vl_offset(mem, mem->area_pages + first),
			    (loff_t)(end - first) << PAGE_SHIFT, 1);
	up_write(&mem->fault_lock);
	for (i = first; i < end; i++) {
		put_page(pfn_to_page(mem->slots[i].pfn));
		/* Slots may be put again without having been set: nothing of this page then. */
		mem->slots[i].touched = 0;
	}
	spin_lock_irq(&mem->lock);
	bitmap_clear(mem->slot_map, first, end - first);
	spin_unlock_irq(&mem->lock);
	return true;
}

static void vl_zap(struct work_struct *work)
{
	struct vl_memory *mem = container_of(work, struct vl_memory, zap.work);
	struct vl_dev *dev = container_of(mem, struct vl_dev, mem);
	u32 i;

	while (vl_zap_range(mem))
		cond_resched();
	for (i = 0; i < dev->num_queues; i++)
		vl_queue_retry(&dev->queues[i]);
}

/* ------------------------------------------------------------ page faults */

/* Pages of the window to be mapped, with one protection. */
struct vl_around {
	struct mm_struct *mm;
	unsigned long pfns[VL_AROUND];
	pgprot_t prot;
	u32 next;
};

/* The pages in flight from an index on, as far as they may be accessed like the first. */
static u32 vl_look_around(struct vl_memory *mem, u32 slot, u32 most, bool *write,
			  struct vl_around *around)
{
	struct vl_slot *s = &mem->slots[slot];
	u32 n;

	most = min3(most, VL_AROUND, mem->num_slots - slot);
	spin_lock_irq(&mem->lock);
	if (*write && !s->write)
		most = 0;
	*write = s->write;
	for (n = 0; n < most && s[n].live && s[n].write == *write; n++) {
		s[n].touched = 1;
		around->pfns[n] = s[n].pfn;
	}
	spin_unlock_irq(&mem->lock);
	return n;
}

static int vl_map_one(pte_t *pte, unsigned long addr, void *data)
{
	struct vl_around *around = data;
	unsigned long pfn = around->pfns[around->next++];

	/* Another thread may have been faster. */
	if (pte_none(ptep_get(pte)))
		set_pte_at(around->mm, addr, pte, pte_mkspecial(pfn_pte(pfn, around->prot)));
	return 0;
}

static vm_fault_t vl_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct vl_dev *dev = vma->vm_file->private_data;
	struct vl_memory *mem = &dev->mem;
	pgoff_t page = vmf->pgoff - (vl_offset(mem, 0) >> PAGE_SHIFT);
	bool write = vmf->flags & FAULT_FLAG_WRITE;
	unsigned long addr = vmf->address & PAGE_MASK;
	struct vl_around around;
	vm_flags_t flags = vma->vm_flags;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	unsigned int noio;
	u32 n;

	if (page >= vl_total_pages(mem))
		return VM_FAULT_SIGBUS;
	if (page < mem->area_pages) {
		void *area = mem->area + page * PAGE_SIZE;

		return vmf_insert_pfn_prot(vma, addr, vmalloc_to_pfn(area),
					   vm_get_page_prot(flags));
	}
	atomic64_inc(&mem->faults);
	/* The rest of the request, which comes next, is mapped too, in one walk. */
	down_read(&mem->fault_lock);
	n = vl_look_around(mem, page - mem->area_pages, (vma->vm_end - addr) >> PAGE_SHIFT, &write,
			   &around);
	if (n) {
		around.mm = vma->vm_mm;
		around.next = 0;
		around.prot = vm_get_page_prot(write ? flags : flags & ~VM_WRITE);
		/* Page tables must not wait for writes to the disk that this process may be. */
		noio = memalloc_noio_save();
		if (apply_to_page_range(vma->vm_mm, addr, (unsigned long)n << PAGE_SHIFT,
					vl_map_one, &around))
			ret = VM_FAULT_OOM;
		else
			ret = VM_FAULT_NOPAGE;
		memalloc_noio_restore(noio);
	}
	up_read(&mem->fault_lock);
	return ret;
}

/* A write to a page that is mapped for reading: data on its way to the device. */
static vm_fault_t vl_mkwrite(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct vl_vm_ops = {
	.fault = vl_fault,
	.pfn_mkwrite = vl_mkwrite,
};

static int vl_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vl_dev *dev = file->private_data;
	unsigned long total = vl_total_pages(&dev->mem);

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_pgoff > total || vma_pages(vma) > total - vma->vm_pgoff)
		return -EINVAL;
	/* Each device has its own range of the mapping, for unmap_mapping_range(). */
	vma->vm_pgoff += vl_offset(&dev->mem, 0) >> PAGE_SHIFT;
	vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &vl_vm_ops;
	return 0;
}

/* Programs ask for the size of what they map. */
static loff_t vl_llseek(struct file *file, loff_t offset, int whence)
{
	return fixed_size_llseek(file, offset, whence, vl_memory_size(file->private_data));
}

static int vl_memory_release(struct inode *inode, struct file *file)
{
	vl_put(file->private_data);
	return 0;
}

static const struct file_operations vl_memory_fops = {
	.owner = THIS_MODULE,
	.mmap = vl_mmap,
	.llseek = vl_llseek,
	.release = vl_memory_release,
};

int vl_memory_file(struct vl_dev *dev)
{
	struct file *file;
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return fd;
	vl_get(dev);
	file = anon_inode_getfile("[" VL_NAME "]", &vl_memory_fops, dev, O_RDWR);
	if (IS_ERR(file)) {
		vl_put(dev);
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	file->f_mapping = dev->mem.inode->i_mapping;
	file->f_mode |= FMODE_LSEEK;
	fd_install(fd, file);
	return fd;
}

/* ------------------------------------------------------------ allocation */

int vl_memory_alloc(struct vl_dev *dev, u32 rings, u32 bounce, u32 window)
{
	struct vl_memory *mem = &dev->mem;
	size_t size, slot_longs;

	mem->bounce = PAGE_ALIGN(rings);
	size = PAGE_ALIGN((size_t)mem->bounce + bounce);
	mem->area_pages = size >> PAGE_SHIFT;
	mem->units = bounce / VL_UNIT;
	mem->num_slots = window >> PAGE_SHIFT;
	spin_lock_init(&mem->lock);
	init_rwsem(&mem->fault_lock);
	INIT_DELAYED_WORK(&mem->zap, vl_zap);
	mem->area = __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	mem->unit_map = kvcalloc(BITS_TO_LONGS(mem->units), sizeof(long), GFP_KERNEL_ACCOUNT);
	/* One more: there may be no window. */
	slot_longs = BITS_TO_LONGS(mem->num_slots) + 1;
	mem->slot_map = kvcalloc(slot_longs, sizeof(long), GFP_KERNEL_ACCOUNT);
	mem->zap_map = kvcalloc(slot_longs, sizeof(long), GFP_KERNEL_ACCOUNT);
	mem->slots = kvcalloc(mem->num_slots + 1, sizeof(*mem->slots), GFP_KERNEL_ACCOUNT);
	if (mem->area && mem->unit_map && mem->slot_map && mem->zap_map && mem->slots)
		return 0;
	vl_memory_free(dev);
	return -ENOMEM;
}

/* After the device is gone, and its last mapping. */
void vl_memory_free(struct vl_dev *dev)
{
	struct vl_memory *mem = &dev->mem;

	kvfree(mem->slots);
	kvfree(mem->zap_map);
	kvfree(mem->slot_map);
	kvfree(mem->unit_map);
	vfree(mem->area);
	mem->slots = NULL;
	mem->zap_map = NULL;
	mem->slot_map = NULL;
	mem->unit_map = NULL;
	mem->area = NULL;
}
