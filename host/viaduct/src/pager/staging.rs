// SPDX-License-Identifier: Apache-2.0
//! Host memory through which pages pass on their way from files to the card: a ring, whose parts become free in the order in which
//! they were taken.

use crate::protocol::desc::HUGE;

/// Bytes: several pages of 2 MiB at once.
pub(super) const STAGING: u64 = 4 * HUGE;

/// Which bytes of the staging memory are in use.
#[derive(Default)]
pub(super) struct Staging {
    head: u64,
    used: u64,
    /// Taken since the last batch was sealed.
    open: u64,
}

impl Staging {
    /// The most bytes that can be taken in one piece.
    pub(super) fn room(&self) -> u64 {
        if self.used == 0 {
            return STAGING;
        }
        let tail = (self.head + STAGING - self.used) % STAGING;
        match tail < self.head {
            true => tail.max(STAGING - self.head),
            false => tail - self.head,
        }
    }

    /// Takes bytes, no more than there is room for; returns where they are.
    pub(super) fn take(&mut self, bytes: u64) -> u64 {
        debug_assert!(bytes <= self.room());
        if self.used == 0 {
            self.head = 0;
        }
        if STAGING - self.head < bytes {
            // The end stays unused until what was taken before is free.
            let rest = STAGING - self.head;
            (self.used, self.open, self.head) = (self.used + rest, self.open + rest, 0);
        }
        let at = self.head;
        self.head = (at + bytes) % STAGING;
        self.used += bytes;
        self.open += bytes;
        at
    }

    /// What was taken since the last call becomes free with one batch, whose part this is.
    pub(super) fn seal(&mut self) -> u64 {
        std::mem::take(&mut self.open)
    }

    /// Frees what was taken and not sealed. Nothing else may be in use.
    pub(super) fn abandon(&mut self) {
        self.used -= self.seal();
    }

    /// Frees the oldest part.
    pub(super) fn free(&mut self, bytes: u64) {
        self.used -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn parts_never_overlap(steps in proptest::collection::vec((any::<bool>(), 1u64..600), 1..300)) {
            let mut staging = Staging::default();
            let mut held: VecDeque<(u64, u64, u64)> = VecDeque::new();
            for (take, pages) in steps {
                let bytes = (pages * 4096).min(staging.room());
                if take && bytes > 0 {
                    let at = staging.take(bytes);
                    prop_assert!(at + bytes <= STAGING);
                    prop_assert!(held.iter().all(|&(a, b, _)| at + bytes <= a || a + b <= at));
                    held.push_back((at, bytes, staging.seal()));
                } else if let Some((_, _, part)) = held.pop_front() {
                    staging.free(part);
                }
            }
            while let Some((_, _, part)) = held.pop_front() {
                staging.free(part);
            }
            prop_assert_eq!(staging.room(), STAGING);
        }
    }
}
