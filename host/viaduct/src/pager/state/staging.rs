// SPDX-License-Identifier: Apache-2.0
//! Host memory through which pages pass on their way from files to the card: a ring. A part that is given back is free once those that were
//! taken before it are.

use std::collections::VecDeque;

use crate::protocol::desc::HUGE;

/// Bytes: several pages of 2 MiB at once.
pub(in crate::pager) const STAGING: u64 = 4 * HUGE;

/// Which bytes of the staging memory are in use.
#[derive(Default)]
pub(in crate::pager) struct Staging {
    head: u64,
    used: u64,
    /// The parts in use, the oldest first: bytes, and whether it was given back.
    parts: VecDeque<(u64, bool)>,
    /// Parts before these.
    gone: u64,
}

/// A part of the staging memory.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::pager) struct Staged {
    /// Where it is.
    pub(in crate::pager) at: u64,
    number: u64,
}

impl Staging {
    /// The most bytes that can be taken in one piece.
    pub(in crate::pager) fn room(&self) -> u64 {
        if self.used == 0 {
            return STAGING;
        }
        let tail = (self.head + STAGING - self.used) % STAGING;
        match tail < self.head {
            true => tail.max(STAGING - self.head),
            false => tail - self.head,
        }
    }

    /// Takes bytes, no more than there is room for.
    pub(in crate::pager) fn take(&mut self, bytes: u64) -> Staged {
        debug_assert!(bytes <= self.room());
        if self.used == 0 {
            self.head = 0;
        }
        let mut all = bytes;
        if STAGING - self.head < bytes {
            // The end stays unused until this part is free.
            all += STAGING - self.head;
            self.head = 0;
        }
        let at = self.head;
        self.head = (at + bytes) % STAGING;
        self.used += all;
        self.parts.push_back((all, false));
        Staged { at, number: self.gone + self.parts.len() as u64 - 1 }
    }

    /// Takes bytes in parts of at most `each` bytes.
    pub(in crate::pager) fn take_parts(&mut self, bytes: u64, each: u64) -> Vec<Staged> {
        (0..bytes).step_by(each as usize).map(|done| self.take(each.min(bytes - done))).collect()
    }

    /// Gives a part back.
    pub(in crate::pager) fn free(&mut self, part: Staged) {
        if let Some((_, free)) = self.parts.get_mut((part.number - self.gone) as usize) {
            *free = true;
        }
        while let Some(&(bytes, true)) = self.parts.front() {
            self.parts.pop_front();
            self.used -= bytes;
            self.gone += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_never_overlap(
            steps in proptest::collection::vec((any::<bool>(), 1u64..600, any::<prop::sample::Index>()), 1..300)
        ) {
            let mut staging = Staging::default();
            let mut held: Vec<(u64, u64, Staged)> = Vec::new();
            for (take, pages, which) in steps {
                let bytes = (pages * 4096).min(staging.room());
                if take && bytes > 0 {
                    let part = staging.take(bytes);
                    let at = part.at;
                    prop_assert!(at + bytes <= STAGING);
                    prop_assert!(held.iter().all(|&(a, b, _)| at + bytes <= a || a + b <= at));
                    held.push((at, bytes, part));
                } else if !held.is_empty() {
                    staging.free(held.swap_remove(which.index(held.len())).2);
                }
            }
            for (_, _, part) in held {
                staging.free(part);
            }
            prop_assert_eq!(staging.room(), STAGING);
        }
    }
}
