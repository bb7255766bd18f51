// SPDX-License-Identifier: Apache-2.0
//! A file or buffer in the address space of a slot.

use std::sync::Arc;

use crate::card::memory::FrameSize;
use crate::card::sync::lock;
use crate::error::{Error, Result};
use crate::protocol::desc::{HUGE, Prot};
use crate::slot::backing::Source;
use crate::slot::{Slot, SlotInner};

/// Options of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapOptions {
    /// Permissions of the app.
    pub prot: Prot,
    /// Pages are in host memory and accessed over the link, instead of in card memory. They are never evicted.
    pub on_host: bool,
    /// 2 MiB pages; `None`: from 2 MiB on.
    pub huge: Option<bool>,
}

impl MapOptions {
    /// In card memory, with a page size according to the length.
    pub fn new(prot: Prot) -> Self {
        Self { prot, on_host: false, huge: None }
    }

    /// In host memory instead.
    pub fn on_host(mut self) -> Self {
        self.on_host = true;
        self
    }

    /// With pages of 2 MiB, or of 4 KiB only.
    pub fn huge(mut self, huge: bool) -> Self {
        self.huge = Some(huge);
        self
    }
}

/// A file or buffer mapped at a virtual address of a slot. Dropping it unmaps it; errors are then only logged,
/// so [`Mapping::unmap`] is preferable.
pub struct Mapping {
    slot: Arc<SlotInner>,
    va: u64,
    len: u64,
    mapped: bool,
}

impl Slot {
    /// Maps the first `len` bytes of a source into the app's address space. Pages are loaded when the app accesses them.
    pub fn map(&self, source: Source, len: u64, options: MapOptions) -> Result<Mapping> {
        let card = self.card();
        card.check_process()?;
        if len == 0 || len > source.len() {
            let (name, has) = (source.name().display().to_string(), source.len());
            return Err(Error::Invalid(format!("{name}: {len} bytes are to be mapped, it has {has}")));
        }
        if options.prot.write && !source.is_writable() {
            let name = source.name().display().to_string();
            return Err(Error::Invalid(format!(
                "{name}: is open for reading only; map it read-only or open it for writing"
            )));
        }
        let huge = match options.huge {
            Some(huge) => huge,
            None => len >= HUGE,
        } && card.info().tlb_huge.ways > 0;
        let size = if huge { FrameSize::Huge } else { FrameSize::Small };
        let va =
            lock(&self.inner().space).map_source(card, source, len, options.prot, options.on_host, size)?;
        Ok(Mapping::new(Arc::clone(self.inner()), va, len))
    }
}

impl Mapping {
    pub(crate) fn new(slot: Arc<SlotInner>, va: u64, len: u64) -> Self {
        Self { slot, va, len, mapped: true }
    }

    /// Virtual address of the first byte.
    pub fn va(&self) -> u64 {
        self.va
    }

    /// Bytes mapped.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Writes all pages that the app has changed to the file. They are in the file when this returns; with `durable` also on
    /// stable storage. An error names the bytes that are lost, or not yet written.
    pub fn sync(&self, durable: bool) -> Result<()> {
        self.slot.rings.card.check_process()?;
        lock(&self.slot.space).sync(&self.slot.rings, self.va, durable)
    }

    /// Writes changed pages to the file and removes the mapping. Done when this returns.
    pub fn unmap(mut self) -> Result<()> {
        self.close()
    }

    fn close(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.mapped) {
            return Ok(());
        }
        self.slot.rings.card.check_process()?;
        lock(&self.slot.space).unmap(&self.slot.rings, self.va)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.slot.rings.card.is_ours() {
            return;
        }
        if let Err(error) = self.close() {
            tracing::error!(%error, va = self.va, "a mapping could not be removed cleanly");
        }
    }
}
