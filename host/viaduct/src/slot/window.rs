// SPDX-License-Identifier: Apache-2.0
//! A range of memory that the movers of a slot can access during a run.

use std::sync::Arc;

use crate::card::Claim;
use crate::card::dma::DmaBuffer;
use crate::card::sync::lock;
use crate::error::Result;
use crate::protocol::desc::{Place, Prot};
use crate::slot::Slot;
use crate::slot::inner::SlotInner;
use viaduct_pci::DmaAccess;

/// A window: host memory allocated for it, or a range of card memory.
pub(crate) struct Window {
    slot: Arc<SlotInner>,
    va: u64,
    buffer: Option<DmaBuffer>,
    open: bool,
    /// The card memory is in use while the window is there.
    claim: Option<Claim>,
}

impl Window {
    /// New host memory of at least `len` bytes; the card may use it as `prot` says.
    pub fn host(slot: &Slot, len: u64, prot: Prot) -> Result<Self> {
        let access = if prot.write { DmaAccess::Write } else { DmaAccess::Read };
        let buffer = slot.card().dma_buffer(len, access)?;
        let (place, len) = (Place::Host(buffer.iova()), buffer.len());
        Self::open(slot, place, len, prot, Some(buffer), None)
    }

    /// A range of card memory.
    pub fn card(slot: &Slot, addr: u64, len: u64, prot: Prot) -> Result<Self> {
        let claim = slot.card().claim_range(addr, len)?;
        Self::open(slot, Place::Card(addr), len, prot, None, Some(claim))
    }

    fn open(
        slot: &Slot,
        place: Place,
        len: u64,
        prot: Prot,
        mut buffer: Option<DmaBuffer>,
        claim: Option<Claim>,
    ) -> Result<Self> {
        let slot = Arc::clone(slot.inner());
        let mapped = lock(&slot.space).map_window(&slot.rings, place, len, prot);
        if let (Err(_), Some(buffer)) = (&mapped, &mut buffer) {
            buffer.retire();
        }
        Ok(Self { slot, va: mapped?, buffer, open: true, claim })
    }

    /// Virtual address of the first byte.
    pub fn va(&self) -> u64 {
        self.va
    }

    /// The host memory, if it is one of host memory.
    pub fn buffer(&self) -> Option<&DmaBuffer> {
        self.buffer.as_ref()
    }

    /// Removes the window; the card does not access it any more when this returns.
    pub fn close(mut self) -> Result<()> {
        self.unmap()
    }

    /// As [`Window::close`].
    pub fn unmap(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        let unmapped = lock(&self.slot.space).remove(&self.slot.rings, self.va);
        if unmapped.is_err() {
            // The card may still use its memory.
            self.buffer.iter().for_each(DmaBuffer::retire);
            std::mem::forget(self.claim.take());
        }
        unmapped
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if !self.slot.rings.card.is_ours() {
            return;
        }
        if let Err(error) = self.unmap() {
            error.log_unclean(self.slot.rings.slot, "a window could not be removed cleanly");
        }
    }
}
