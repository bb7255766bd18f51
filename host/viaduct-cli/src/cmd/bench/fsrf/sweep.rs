// SPDX-License-Identifier: Apache-2.0
//! One quantity after the other: figures 6 and 8 of the FSRF paper.

use super::work::{SLOTS, Sizes};

/// What changes from one measurement to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sweep {
    /// Slots that work at once, 1 to 4 (the paper's figure 6)
    Slots,
    /// Bytes of each access of `rng`, 64 to 4096 (figure 8)
    Access,
}

impl Sweep {
    /// The workloads to measure unless others are named: the paper's.
    pub fn workloads(self) -> [&'static str; 2] {
        match self {
            Self::Slots => ["aes", "rng read"],
            Self::Access => ["rng read", "rng write"],
        }
    }

    pub fn points(self) -> Vec<Point> {
        let all = Point::default();
        match self {
            Self::Slots => (1..=SLOTS).map(|slots| Point { slots, ..all }).collect(),
            Self::Access => (0..=6).map(|log2| Point { access: 64 << log2, ..all }).collect(),
        }
    }

    /// Where a point is on the axis, and its name there.
    pub fn place(self, point: Point) -> (f64, String) {
        match self {
            Self::Slots => (point.slots as f64, point.slots.to_string()),
            Self::Access => (point.access as f64, point.access.to_string()),
        }
    }

    pub fn label(self, point: Point) -> String {
        match self {
            Self::Slots if point.slots == 1 => ", 1 slot".to_owned(),
            Self::Slots => format!(", {} slots", point.slots),
            Self::Access => format!(", {} bytes", point.access),
        }
    }

    pub fn plot(self) -> &'static str {
        match self {
            Self::Slots => "fsrf-slots",
            Self::Access => "fsrf-access",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Slots => "Slots that work at once",
            Self::Access => "Sizes of random accesses to resident pages",
        }
    }

    pub fn axes(self) -> [&'static str; 2] {
        match self {
            Self::Slots => ["slots", "times the throughput of one"],
            Self::Access => ["bytes an access", "bytes per cycle"],
        }
    }
}

/// One measurement of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub slots: usize,
    /// Bytes of each access of `rng`.
    pub access: u64,
}

impl Default for Point {
    fn default() -> Self {
        Self { slots: SLOTS, access: 64 }
    }
}

impl Point {
    /// As in the paper the number of accesses stays the same, so that the memory grows with them.
    pub fn sizes(self, sizes: &Sizes) -> Sizes {
        Sizes { random: sizes.random * (self.access / 64), access: self.access, ..*sizes }
    }
}
