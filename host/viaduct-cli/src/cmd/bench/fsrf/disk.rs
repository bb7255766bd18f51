// SPDX-License-Identifier: Apache-2.0
//! `--pages cold`: the disk that the data of all slots is read from, on the clock of the card; `sim/rivals/pager.h` has the same one. It reads one
//! request after the other, and begins while others wait for its latency. What has been read stays in host memory. The host's system reads
//! nothing ahead that nobody asks for, as is right for random accesses only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use viaduct::Device;
use viaduct_sim::SimCard;

use super::work::PAGE;

/// What it reads: the paper's streams from its SSD, which all systems have 1,600 to 1,700 MiB/s of (Table 2, large and cold), and a single
/// slot nearly so (6.4).
const MIB_PER_S: f64 = 1600.0;

/// The disk's times, in cycles.
#[derive(Clone, Copy)]
pub struct Times {
    pub latency: u64,
    /// Bytes in 1000 cycles.
    pub rate: u64,
}

impl Times {
    pub fn new(latency_us: f64, clk_khz: u32) -> Self {
        let khz = f64::from(clk_khz);
        Self { latency: (latency_us * khz / 1000.0) as u64, rate: (MIB_PER_S * 1048576.0 / khz) as u64 }
    }
}

/// The disk.
pub struct Disk {
    card: Arc<SimCard>,
    times: Times,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When it is free, in thousandths of a cycle.
    free: u64,
    /// When each page of each slot is in host memory.
    there: BTreeMap<(usize, u64), u64>,
}

impl State {
    /// When bytes of a slot are in host memory, if what is missing is requested in cycle `now`.
    fn request(&mut self, now: u64, slot: usize, position: u64, len: u64, times: Times) -> u64 {
        let pages = position / PAGE..(position + len).div_ceil(PAGE);
        pages.fold(now, |end, page| {
            let there = self.there.entry((slot, page)).or_insert_with(|| {
                self.free = self.free.max(now * 1000) + PAGE * 1_000_000 / times.rate;
                self.free.div_ceil(1000) + times.latency
            });
            end.max(*there)
        })
    }
}

impl Disk {
    pub fn new(card: Arc<SimCard>, times: Times) -> Self {
        Self { card, times, state: Mutex::default() }
    }
}

/// The data of a slot on the disk.
pub struct Part {
    pub disk: Arc<Disk>,
    pub slot: usize,
}

impl Device for Part {
    fn read(&self, position: u64, len: u64, done: Box<dyn FnOnce() + Send>) {
        let Disk { card, times, state } = &*self.disk;
        let now = card.now();
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let end = state.request(now, self.slot, position, len, *times);
        drop(state);
        card.at(end, done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_together_and_are_read_one_after_the_other() {
        let times = Times::new(100.0, 250_000);
        assert_eq!((times.latency, times.rate), (25_000, 6710));
        let mut state = State::default();
        let page = 4096 * 1000 / 6710 + 1;
        assert_eq!(state.request(0, 0, 0, 100, times), 25_000 + page);
        let both = 2 * 4096 * 1000 / 6710 + 1;
        assert_eq!(state.request(0, 1, 0, 4096, times), 25_000 + both);
        // It is in host memory then, also for later reads.
        assert_eq!(state.request(30_000, 1, 0, 4096, times), 30_000);
        assert_eq!(state.request(30_000, 0, 0, 8192, times), 55_000 + page);
    }
}
