// SPDX-License-Identifier: Apache-2.0
//! Card memory that the program allocates, and other ranges of it in use.

use std::fmt;
use std::sync::Arc;

use crate::card::Card;
use crate::card::sync::lock;
use crate::error::{Error, Result};

/// A range of card memory of this program: whole pages of 4 KiB of one channel, in one piece. What it contains at first is not defined.
///
/// As the endpoint `card:ADDRESS+LENGTH` an app can use it, and [`Slot::copy_in`](crate::Slot::copy_in) and its companions copy between it and host memory.
/// Dropped, it is free for others, or once runs that use it have ended.
pub struct CardBuffer {
    card: Arc<Card>,
    addr: u64,
    len: u64,
}

impl Card {
    /// Allocates at least `len` bytes of card memory.
    pub fn allocate(self: &Arc<Self>, len: u64) -> Result<CardBuffer> {
        self.check_process()?;
        match lock(&self.memory).reserve(len) {
            Some(addr) => Ok(CardBuffer { card: Arc::clone(self), addr, len }),
            None => {
                let what = format!("{len} bytes in one piece of one channel");
                Err(Error::OutOfCardMemory { what })
            }
        }
    }
}

impl CardBuffer {
    /// Card address of the first byte, a multiple of 4096.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// Bytes, as requested.
    #[allow(clippy::len_without_is_empty)] // a length, and no collection
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The card it is on.
    pub fn card(&self) -> &Arc<Card> {
        &self.card
    }

    /// Whether a run uses it now.
    pub fn is_used(&self) -> bool {
        self.card.is_ours() && lock(&self.card.memory).users(self.addr) > 0
    }

    /// The card address of `bytes` bytes from `offset` on, if they are inside.
    pub(crate) fn range(&self, offset: u64, bytes: u64) -> Result<u64> {
        let end = offset.checked_add(bytes);
        match end {
            Some(end) if end <= self.len => Ok(self.addr + offset),
            _ => Err(Error::BadCardRange {
                addr: self.addr.saturating_add(offset),
                len: bytes,
                why: format!("it leaves the {} bytes that are allocated at {:#x}", self.len, self.addr),
            }),
        }
    }
}

impl fmt::Debug for CardBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CardBuffer({:#x}+{})", self.addr, self.len)
    }
}

impl Drop for CardBuffer {
    fn drop(&mut self) {
        if self.card.is_ours() {
            lock(&self.card.memory).release(self.addr);
        }
    }
}

/// A range of card memory in use; an allocated one stays allocated as long as that.
pub(crate) struct Claim(pub(super) Option<(Arc<Card>, u64)>);

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((card, addr)) = &self.0 {
            if card.is_ours() {
                lock(&card.memory).unclaim(*addr);
            }
        }
    }
}
