// SPDX-License-Identifier: Apache-2.0
//! Figures of a run.

use std::collections::BTreeMap;

use viaduct::{CardInfo, SlotCounters};

use super::input::Input;

/// Results of a run.
pub struct Outcome {
    /// Number of the slot.
    pub slot: usize,
    /// Bytes accepted by the app.
    pub bytes_in: u64,
    /// Bytes produced by the app.
    pub bytes_out: u64,
    /// Card time.
    pub cycles: u64,
    /// Time of this machine.
    pub seconds: f64,
    /// The slot's counters during the run.
    pub counters: SlotCounters,
    /// Cycles that the link was busy towards the card and from it, if known.
    pub link: Option<(f64, f64)>,
    /// The card.
    pub info: CardInfo,
    /// Read-only registers after the run: little-endian bytes.
    pub registers: BTreeMap<String, Vec<u8>>,
    /// Files that were read, as they were when the run began, if it is to be checked.
    pub inputs: Vec<Input>,
}

impl Outcome {
    /// Bytes through the app: of the side that had more, or of its memory port.
    pub fn bytes(&self) -> u64 {
        let memory =
            u64::from(self.counters.rd_beats.max(self.counters.wr_beats)) * self.info.data_bytes as u64;
        match self.bytes_in.max(self.bytes_out) {
            0 => memory,
            bytes => bytes,
        }
    }

    /// Bytes per cycle.
    pub fn rate(&self) -> f64 {
        if self.cycles == 0 { 0.0 } else { self.bytes() as f64 / self.cycles as f64 }
    }

    /// GB/s at the card's nominal clock.
    pub fn gb_per_s(&self) -> f64 {
        self.rate() * f64::from(self.info.clock_khz) * 1e3 / 1e9
    }

    /// Share of the cycles in which each part moved data, the busiest first.
    pub fn busy(&self) -> Vec<(&'static str, f64)> {
        let c = &self.counters;
        let share = |beats: u32| if self.cycles == 0 { 0.0 } else { f64::from(beats) / self.cycles as f64 };
        let link = self
            .link
            .filter(|_| self.cycles > 0)
            .map_or((0.0, 0.0), |l| (l.0 / self.cycles as f64, l.1 / self.cycles as f64));
        let mut parts = vec![
            ("link to the card", link.0.min(1.0)),
            ("link from the card", link.1.min(1.0)),
            ("input stream", share(c.beats_in)),
            ("output stream", share(c.beats_out)),
            ("memory port, reading", share(c.rd_beats)),
            ("memory port, writing", share(c.wr_beats)),
        ];
        parts.retain(|(_, share)| *share > 0.0);
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        parts
    }
}
