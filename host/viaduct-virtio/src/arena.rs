// SPDX-License-Identifier: Apache-2.0
//! Memory for rings and buffers, mapped once for the device.

use std::sync::Arc;

use viaduct_pci::{DmaAccess, HostMemory, PciFunction};

use crate::{Result, VirtioError};

/// Memory the device may read and write, allocated piece by piece and never freed.
pub struct Arena {
    function: Arc<dyn PciFunction>,
    memory: Arc<HostMemory>,
    iova: u64,
    used: usize,
}

impl Arena {
    /// Maps `len` bytes for `function` at bus address `iova`; both whole pages.
    pub fn new(function: Arc<dyn PciFunction>, iova: u64, len: usize) -> Result<Self> {
        let memory = Arc::new(HostMemory::new(len)?);
        function.dma_map(iova, Arc::clone(&memory), DmaAccess::ReadWrite)?;
        Ok(Self { function, memory, iova, used: 0 })
    }

    /// The bytes themselves; offsets are those that [`Arena::take`] returns.
    pub fn memory(&self) -> &Arc<HostMemory> {
        &self.memory
    }

    /// Bus address of an offset.
    pub fn bus(&self, offset: usize) -> u64 {
        self.iova + offset as u64
    }

    /// Allocates `len` zeroed bytes at a multiple of `align`, a power of two. Returns their offset.
    pub fn take(&mut self, len: usize, align: usize) -> Result<usize> {
        let at = self.used.next_multiple_of(align);
        let end = at.checked_add(len).filter(|end| *end <= self.memory.len());
        self.used = end.ok_or_else(|| {
            VirtioError::Argument(format!("{len} bytes more than the {} of the arena", self.memory.len()))
        })?;
        Ok(at)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // The function may be gone; then there is nothing to unmap.
        let _ = self.function.dma_unmap(self.iova);
    }
}
