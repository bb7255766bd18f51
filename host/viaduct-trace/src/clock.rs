// SPDX-License-Identifier: Apache-2.0
//! The card's time while the host works.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use viaduct::{Card, Result};
use viaduct_sim::SimCard;

/// Where a trace has the card's time from while the host works.
#[derive(Clone, Copy)]
pub enum Time<'a> {
    /// From the card itself, which is simulated in this process.
    Simulated(&'a Arc<SimCard>),
    /// From the card's latest completion or event: a card that is simulated in another process, whose time has nothing to do with ours.
    Reported,
    /// The same, and on from there at the card's clock: a card in the machine.
    Machine,
}

/// The card's time while the host works.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Simulated(Arc<SimCard>),
    Reported { latest: Arc<Mutex<(u64, Instant)>>, khz: Option<u32> },
}

impl Clock {
    /// A clock that begins with the card's time.
    pub fn new(card: &Card, time: Time<'_>) -> Result<Self> {
        let reported = |khz| -> Result<Source> {
            let latest = Arc::new(Mutex::new((card.time()?, Instant::now())));
            Ok(Source::Reported { latest, khz })
        };
        Ok(Self(match time {
            Time::Simulated(sim) => Source::Simulated(Arc::clone(sim)),
            Time::Reported => reported(None)?,
            Time::Machine => reported(Some(card.info().clock_khz))?,
        }))
    }

    /// The card has done something in this cycle, or before the latest one that is known.
    pub fn report(&self, cycle: u64) {
        if let Source::Reported { latest, .. } = &self.0 {
            let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
            if cycle > latest.0 {
                *latest = (cycle, Instant::now());
            }
        }
    }

    /// Cycles since the card's power-up.
    pub fn now(&self) -> u64 {
        match &self.0 {
            Source::Simulated(sim) => sim.now(),
            Source::Reported { latest, khz } => {
                let (cycle, since) = *latest.lock().unwrap_or_else(PoisonError::into_inner);
                let nanos = since.elapsed().as_nanos();
                let on = khz
                    .map_or(0, |khz| u64::try_from(nanos * u128::from(khz) / 1_000_000).unwrap_or(u64::MAX));
                cycle.saturating_add(on)
            }
        }
    }
}
