// SPDX-License-Identifier: Apache-2.0
//! The PCI functions that a card may have beside the management function.

use std::fmt;
use std::str::FromStr;

use crate::protocol::regs::{VIA_FN_BASE, VIA_FN_STRIDE};

/// A PCI function of the card other than the management function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// virtio network device.
    Net = 1,
    /// virtio block device.
    Blk = 2,
    /// virtio console.
    Console = 3,
    /// virtio entropy source.
    Entropy = 4,
    /// virtio input device.
    Input = 5,
    /// Engine with the registers and descriptors of the vendor's DMA engine.
    Xdma = 6,
}

impl FunctionKind {
    /// All of them, in order of number.
    pub const ALL: [Self; 6] = [Self::Net, Self::Blk, Self::Console, Self::Entropy, Self::Input, Self::Xdma];

    /// Name on command lines and of sockets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Blk => "blk",
            Self::Console => "console",
            Self::Entropy => "entropy",
            Self::Input => "input",
            Self::Xdma => "xdma",
        }
    }

    /// PCI function number on the card.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Place of one of its management registers in the management function's BAR.
    pub(crate) fn place_of(self, register: u64) -> u64 {
        VIA_FN_BASE + (u64::from(self.number()) - 1) * VIA_FN_STRIDE + register
    }
}

impl fmt::Display for FunctionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FunctionKind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            format!("no function {text:?}; there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}
