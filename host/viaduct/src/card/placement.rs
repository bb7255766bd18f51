// SPDX-License-Identifier: Apache-2.0
//! Which channels of card memory a slot's pages are in.

use crate::card::CardInfo;
use crate::error::{Error, Result};

/// The channels of card memory that the pages of a mapping are in: these in turn, so that neighbouring pages are in different ones.
///
/// A page stays where it was loaded. One that is loaded again, after an eviction, may be in another channel then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// The slot's share while a page is loaded: of the slots that have mappings in card memory, one alone has all channels, as many as
    /// there are channels have one each, and those between as many as there are for each. Others if there is no free frame in these.
    #[default]
    Share,
    /// All of the card.
    All,
    /// Those whose bits are set, bit k for channel k. Without a free frame there, pages are evicted as if the whole card were full.
    Only(u16),
}

impl Placement {
    /// [`Placement::Only`] for a card. An error if a bit is set for a channel that it does not have, or none is set.
    pub fn only(channels: u32, card: &CardInfo) -> Result<Self> {
        let count = card.channels;
        match u16::try_from(channels) {
            Ok(only) if only != 0 && only & !all(count) == 0 => Ok(Self::Only(only)),
            _ => Err(Error::Invalid(format!(
                "channels {channels:#b}: give at least one of the card's {count}, bit k for channel k"
            ))),
        }
    }
}

/// The share of `slot`, one bit for each channel; `users` has a bit for each slot that has a share.
pub(super) fn share(users: u32, slot: usize, channels: usize) -> u16 {
    let users = users | 1 << slot;
    let count = users.count_ones() as usize;
    let rank = (users & ((1 << slot) - 1)).count_ones() as usize;
    let first = rank * channels / count;
    let end = ((rank + 1) * channels / count).max(first + 1);
    all(end) & !all(first)
}

/// All of so many channels, at most 16.
pub(super) fn all(channels: usize) -> u16 {
    ((1u32 << channels) - 1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_slot_has_all_channels_and_four_have_one_each() {
        assert_eq!(share(0, 2, 4), 0b1111);
        assert_eq!([0, 3].map(|slot| share(0b1001, slot, 4)), [0b0011, 0b1100]);
        assert_eq!([0, 1, 2].map(|slot| share(0b0111, slot, 4)), [0b0001, 0b0010, 0b1100]);
        assert_eq!([0, 1, 2, 3].map(|slot| share(0b1111, slot, 4)), [1, 2, 4, 8]);
        assert_eq!([0, 1, 2, 3].map(|slot| share(0b1111, slot, 2)), [1, 1, 2, 2]);
        assert_eq!(share(0xffff, 15, 16), 0x8000);
    }

    proptest! {
        #[test]
        fn shares_cover_all_channels_evenly(users in 1u32..1 << 16, channels in 1usize..=16) {
            let shares: Vec<u16> =
                (0..16).filter(|slot| users >> slot & 1 != 0).map(|slot| share(users, slot, channels)).collect();
            prop_assert_eq!(shares.iter().fold(0, |all, share| all | share), all(channels));
            // Of the channels one has at most one user more than another, and of the slots one channel more.
            let spread = |counts: Vec<u32>| counts.iter().max().unwrap() - counts.iter().min().unwrap();
            prop_assert!(spread(shares.iter().map(|share| share.count_ones()).collect()) <= 1);
            let of = |channel| shares.iter().filter(|&&share| share >> channel & 1 != 0).count() as u32;
            prop_assert!(spread((0..channels).map(of).collect()) <= 1);
        }
    }
}
