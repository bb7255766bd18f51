// SPDX-License-Identifier: Apache-2.0
//! The card's time while the host works.

use std::sync::Arc;
use std::time::Instant;

use viaduct::{Card, Result};
use viaduct_sim::SimCard;

/// The card's time while the host works.
#[derive(Clone)]
pub enum Clock {
    /// That of a card in this process.
    Simulated(Arc<SimCard>),
    /// The host's, from a cycle of the card on: a card that goes on while the host works, and is not asked for each event.
    Host { cycle: u64, since: Instant, khz: u32 },
}

impl Clock {
    /// The host's clock, set by the card's.
    pub fn of_host(card: &Card) -> Result<Self> {
        Ok(Self::Host { cycle: card.time()?, since: Instant::now(), khz: card.info().clock_khz })
    }

    /// Cycles since the card's power-up.
    pub fn now(&self) -> u64 {
        match self {
            Self::Simulated(sim) => sim.now(),
            Self::Host { cycle, since, khz } => {
                let cycles = since.elapsed().as_nanos() * u128::from(*khz) / 1_000_000;
                cycle.saturating_add(u64::try_from(cycles).unwrap_or(u64::MAX))
            }
        }
    }
}
