// SPDX-License-Identifier: Apache-2.0
//! The host's only interface to a card: a PCI function.
//!
//! [`PciFunction`] is implemented by the in-process simulated card (`viaduct-sim`), by a client of the vfio-user
//! protocol ([`vfio_user`]), and over the kernel's VFIO ([`vfio`]). Code above the trait does not know which one it uses.
#![deny(missing_docs)]

mod budget;
mod config;
mod eventfds;
mod limit;
mod location;
mod memory;
mod page;
mod peer;
mod process;
mod socket;
pub mod vfio;
pub mod vfio_user;

pub use budget::{Budget, Limits, raise_descriptor_limit};
pub use config::{CONFIG_SIZE, ConfigIds, ConfigSpace};
pub use limit::without_sigxfsz;
pub use location::Location;
pub use memory::HostMemory;
pub use page::PAGE_SIZE;
pub use process::{Process, Withheld};
pub use socket::SocketFile;

use std::sync::Arc;
use std::time::Duration;

/// Errors of operations on a PCI function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PciError {
    /// The access does not fit the function (no such BAR, out of range, misaligned).
    #[error("{what}: out of range for this PCI function")]
    OutOfRange {
        /// The access, in words.
        what: String,
    },
    /// The other side is gone: process ended, socket closed, card removed.
    #[error("the card is gone: {0}")]
    Gone(String),
    /// This process was forked off from the one that uses the function.
    #[error("the card was opened before fork(), and is the parent's: open one in this process")]
    Forked,
    /// The other side broke the protocol.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// A wait ended without the expected event.
    #[error("no response from the card within {0:?}")]
    Timeout(Duration),
    /// The function is in use by another process; the text names it, and what to do.
    #[error("{0}")]
    Busy(String),
    /// The function exists but cannot be used in its present state; the text says what to do.
    #[error("{0}")]
    Unusable(String),
    /// A system call failed.
    #[error("{what}: {source}{}", remedy(source))]
    Os {
        /// What was attempted.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}

/// What to do about an error of the system that does not say it, to be appended to its text.
pub fn remedy(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => "; the limit of open files is reached (`ulimit -n`): raise it",
        _ => "",
    }
}

/// Result of an operation on a PCI function.
pub type Result<T> = std::result::Result<T, PciError>;

/// Identity and sizes of a function, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Size of each BAR in bytes, 0 if absent.
    pub bar_sizes: [u64; 6],
    /// Number of MSI-X vectors (at most 64).
    pub vectors: u16,
}

/// What the card may do with a DMA mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DmaAccess {
    /// The card may only read.
    Read,
    /// The card may only write.
    Write,
    /// The card may read and write.
    ReadWrite,
}

/// A PCI function: BARs, DMA maps, MSI-X. All methods may be called from any thread.
pub trait PciFunction: Send + Sync {
    /// Identity and sizes.
    fn info(&self) -> &FunctionInfo;
    /// Reads `buf.len()` bytes (1, 2, 4 or 8) of configuration space.
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()>;
    /// Writes 1, 2, 4 or 8 bytes of configuration space.
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()>;
    /// Reads `buf.len()` bytes of a BAR in accesses of the function's register width. Unless a function has byte enables,
    /// these are whole 32-bit registers, of which a narrower read returns its part.
    fn read(&self, bar: u8, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let word = self.read32(bar, at & !3)?.to_le_bytes();
            let part = &word[(at & 3) as usize..];
            let len = part.len().min(buf.len() - done);
            buf[done..done + len].copy_from_slice(&part[..len]);
            done += len;
        }
        Ok(())
    }
    /// Writes bytes of a BAR. Unless a function has byte enables, only whole 32-bit registers can be written: a narrower
    /// write would change neighbouring bytes. Posted: may return before it reaches the card.
    fn write(&self, bar: u8, offset: u64, data: &[u8]) -> Result<()> {
        if offset % 4 != 0 || data.len() % 4 != 0 {
            return Err(PciError::OutOfRange { what: format!("{}-byte write at {offset:#x}", data.len()) });
        }
        (offset..).step_by(4).zip(data.chunks_exact(4)).try_for_each(|(at, word)| {
            self.write32(bar, at, u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        })
    }
    /// Reads a naturally aligned 32-bit register.
    fn read32(&self, bar: u8, offset: u64) -> Result<u32>;
    /// Writes a naturally aligned 32-bit register. Posted: may return before it reaches the card.
    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()>;
    /// Makes `memory` accessible to the card at bus addresses `iova..iova + memory.len()` until unmapped; keeps it alive.
    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()>;
    /// Removes a mapping. After it returns, the card makes no further access to the memory.
    fn dma_unmap(&self, iova: u64) -> Result<()>;
    /// Waits until one of the vectors in `mask` (bit n = vector n) has fired and returns the vectors that have, cleared.
    /// Vectors outside `mask` stay pending. `Err(Timeout)` after `timeout` of wall-clock time.
    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64>;
    /// Function-level reset: rings and slots stop, DMA maps are kept.
    fn reset(&self) -> Result<()>;
    /// Advances the card by `time`, as though the host had been busy that long. Only a deterministic simulated card
    /// implements this: on every other function host time passes by itself.
    fn charge(&self, time: Duration) {
        let _ = time;
    }
    /// Whether the card's time stands still while the host works. What the host does then must not depend on how fast it is, so that the
    /// same run takes the same time of the card again.
    fn stands_still(&self) -> bool {
        false
    }
}
