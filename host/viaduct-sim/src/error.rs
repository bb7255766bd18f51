// SPDX-License-Identifier: Apache-2.0
//! Errors of a simulated card beyond those of a PCI function.

use std::path::PathBuf;

use viaduct_pci::PciError;

/// Errors when opening a simulated card, or in operations beyond the PCI function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// There is no shared object of the card.
    #[error("{}: there is no simulated card here; build it with `make card`", path.display())]
    NoCard {
        /// The path at which it was expected.
        path: PathBuf,
    },
    /// The file is something else, or made for another version.
    #[error("{}: not a card of this version ({why}); rebuild it with `make card`", path.display())]
    NotACard {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The shell is built for another board.
    #[error("profile {profile} has {wanted} channels of card memory, the card that was built has {channels}")]
    Profile {
        /// The board.
        profile: &'static str,
        /// Channels that the shell has.
        channels: u32,
        /// Channels that the board has.
        wanted: u32,
    },
    /// The card did not accept its configuration, or a request.
    #[error("simulated card: {0}")]
    Refused(String),
    /// The card did not start.
    #[error("simulated card: {0}")]
    Pci(#[from] PciError),
}
