// SPDX-License-Identifier: Apache-2.0
//! Numbers and names of the functions.

/// The network function's number.
pub const NET: usize = 1;
/// The block function's number.
pub const BLK: usize = 2;
/// The console function's number.
pub const CONSOLE: usize = 3;
/// The entropy function's number.
pub const ENTROPY: usize = 4;
/// The input function's number.
pub const INPUT: usize = 5;
/// The XDMA-compatible function's number.
pub const XDMA: usize = 6;
/// Its BAR with the registers of the slots' apps.
pub const XDMA_USER_BAR: u8 = 0;
/// Its BAR with the registers of the engine.
pub const XDMA_DMA_BAR: u8 = 1;

const NAMES: [&str; 7] = ["mgmt", "net", "blk", "console", "entropy", "input", "xdma"];

/// Name of function `number`; the management function is 0.
pub fn function_name(number: usize) -> Option<&'static str> {
    NAMES.get(number).copied()
}

/// Names of all possible functions of a card, by number.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_name() {
        assert_eq!(function_name(0), Some("mgmt"));
        assert_eq!(function_name(XDMA), Some("xdma"));
        assert_eq!(function_name(XDMA + 1), None);
        assert!(NAMES.len() <= crate::profile::FUNCTIONS);
    }
}
