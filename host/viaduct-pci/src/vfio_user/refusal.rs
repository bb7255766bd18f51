// SPDX-License-Identifier: Apache-2.0
//! Why a request of a client is refused.

use nix::errno::Errno;

use super::wire::errno_of;

use crate::PciError;
use crate::budget::Exhausted;

/// The reason for an error reply. The protocol carries only the number; a client that asks for it
/// (`Capabilities::error_text`) gets the text too.
#[derive(Debug)]
pub(super) struct Refusal {
    pub errno: Errno,
    pub why: String,
}

impl Refusal {
    pub fn new(errno: Errno, why: String) -> Self {
        Self { errno, why }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self { errno, why: String::new() }
    }
}

impl From<PciError> for Refusal {
    fn from(error: PciError) -> Self {
        let errno = errno_of(&error);
        // The number is enough.
        let why = match error {
            PciError::Os { what, .. } => what,
            PciError::Gone(why) | PciError::Protocol(why) | PciError::Busy(why) | PciError::Unusable(why) => {
                why
            }
            PciError::Forked | PciError::OutOfRange { .. } | PciError::Timeout(_) => String::new(),
        };
        Self { errno, why }
    }
}

impl From<Exhausted> for Refusal {
    fn from(error: Exhausted) -> Self {
        Self { errno: error.errno(), why: error.to_string() }
    }
}
