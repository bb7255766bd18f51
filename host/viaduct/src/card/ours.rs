// SPDX-License-Identifier: Apache-2.0
//! A PCI function that belongs to one process.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use viaduct_pci::{DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Process};

/// A function of one process: in a child of `fork()` it cannot be accessed.
pub(super) struct Ours {
    pci: ManuallyDrop<Arc<dyn PciFunction>>,
    process: Process,
}

impl Ours {
    pub(super) fn new(pci: Arc<dyn PciFunction>, process: Process) -> Self {
        Self { pci: ManuallyDrop::new(pci), process }
    }

    fn get(&self) -> viaduct_pci::Result<&dyn PciFunction> {
        if self.process.is_current() { Ok(&**self.pci) } else { Err(PciError::Forked) }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if self.process.is_current() {
            // SAFETY: it is dropped here and nowhere else, and not used again.
            unsafe { ManuallyDrop::drop(&mut self.pci) }
        }
    }
}

impl PciFunction for Ours {
    fn info(&self) -> &FunctionInfo {
        self.pci.info()
    }

    fn config_read(&self, offset: u16, buf: &mut [u8]) -> viaduct_pci::Result<()> {
        self.get()?.config_read(offset, buf)
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> viaduct_pci::Result<()> {
        self.get()?.config_write(offset, data)
    }

    fn read(&self, bar: u8, offset: u64, buf: &mut [u8]) -> viaduct_pci::Result<()> {
        self.get()?.read(bar, offset, buf)
    }

    fn write(&self, bar: u8, offset: u64, data: &[u8]) -> viaduct_pci::Result<()> {
        self.get()?.write(bar, offset, data)
    }

    fn read32(&self, bar: u8, offset: u64) -> viaduct_pci::Result<u32> {
        self.get()?.read32(bar, offset)
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) -> viaduct_pci::Result<()> {
        self.get()?.write32(bar, offset, value)
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> viaduct_pci::Result<()> {
        self.get()?.dma_map(iova, memory, access)
    }

    fn dma_unmap(&self, iova: u64) -> viaduct_pci::Result<()> {
        self.get()?.dma_unmap(iova)
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> viaduct_pci::Result<u64> {
        self.get()?.wait_irq(mask, timeout)
    }

    fn reset(&self) -> viaduct_pci::Result<()> {
        self.get()?.reset()
    }

    fn charge(&self, time: Duration) {
        if let Ok(pci) = self.get() {
            pci.charge(time);
        }
    }

    fn stands_still(&self) -> bool {
        self.get().is_ok_and(|pci| pci.stands_still())
    }
}
