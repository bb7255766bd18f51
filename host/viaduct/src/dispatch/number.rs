// SPDX-License-Identifier: Apache-2.0
//! In which order a slot's MMU has carried out commands and found misses: it numbers its commands, and tells with each miss how many were
//! before it. When they come to the host says nothing of that, as a command may complete long after it was carried out.

use crate::protocol::ring::RING_ENTRIES;

/// Numbers of 64 bits from those of 16 that the card tells.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Commands carried out, as far as is known. The card may have begun anywhere.
    latest: Option<u64>,
}

impl Numbers {
    /// Number of a command from its completion. All are told, in order.
    pub fn of_command(&mut self, told: u16) -> u64 {
        let latest = self.latest.unwrap_or_else(|| first(told));
        let number = latest.wrapping_add_signed(i64::from(told.wrapping_sub(latest as u16) as i16));
        self.latest = Some(latest.max(number.wrapping_add(1)));
        number
    }

    /// Commands carried out before a miss. For one that is extremely old this is too many, so that it counts as a new one.
    pub fn before_miss(&mut self, told: u16) -> u64 {
        let latest = *self.latest.get_or_insert_with(|| first(told));
        // Completions that are not seen yet have room in the ring.
        let most = latest.wrapping_add(u64::from(RING_ENTRIES));
        most - u64::from((most as u16).wrapping_sub(told))
    }
}

/// So that no number is below zero, nor zero.
fn first(told: u16) -> u64 {
    1 << 17 | u64::from(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn misses_and_commands_keep_their_order(
            begin: u16,
            early: bool,
            steps in prop::collection::vec((0u64..250, 0u64..90_000), 1..300)
        ) {
            let mut numbers = Numbers::default();
            let mut carried_out = u64::from(begin);
            let mut told: Vec<(u64, u64)> = Vec::new(); // commands: true number, the one found
            if early {
                numbers.before_miss(carried_out as u16);
            }
            for (ahead, age) in steps {
                for _ in 0..ahead {
                    told.push((carried_out, numbers.of_command(carried_out as u16)));
                    carried_out += 1;
                }
                // A miss after some commands whose completions come later, and an old one.
                for at in [carried_out + ahead, carried_out.saturating_sub(age)] {
                    let before = numbers.before_miss(at as u16);
                    for &(number, found) in &told {
                        prop_assert!(number >= at || found < before, "{number} came before {at}");
                        prop_assert!(number < at || found >= before || carried_out - at > 60_000);
                    }
                }
                told.drain(..told.len().saturating_sub(500));
            }
        }
    }
}
