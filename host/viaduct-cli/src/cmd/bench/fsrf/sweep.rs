// SPDX-License-Identifier: Apache-2.0
//! One quantity after the other: figures 6, 8 and 9 of the FSRF paper. Figure 7 is in [`super::mixed`].

use super::paging::Case;
use super::work::{PAGE, SLOTS, Sizes};
use crate::cmd::bench::plot::{Form, Plot};
use crate::cmd::bench::size_of;
use crate::fail::{Result, usage};

/// What changes from one measurement to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sweep {
    /// Slots that work at once, 1 to 4 (the paper's figure 6)
    Slots,
    /// Workloads that share the card: different ones, and random accesses of different sizes (figure 7)
    Mixed,
    /// Bytes of each access of `rng`, 64 to 4096 (figure 8)
    Access,
    /// Bytes that one slot has transferred to card memory for each access, 4 KiB to 2 MiB (figure 9)
    Transfer,
}

impl Sweep {
    /// What changes, if it is one quantity.
    pub fn quantity(self) -> Option<Quantity> {
        match self {
            Self::Slots => Some(Quantity::Slots),
            Self::Mixed => None,
            Self::Access => Some(Quantity::Access),
            Self::Transfer => Some(Quantity::Transfer),
        }
    }

    fn name(self) -> &'static str {
        self.quantity().map_or("mixed", Quantity::name)
    }

    /// The pages that it is of, if these were chosen.
    pub fn case(self, chosen: Case) -> Result<Case> {
        match (self, chosen) {
            (Self::Transfer, Case::Hot | Case::Warm) => Ok(Case::Warm),
            (Self::Transfer, Case::Cold) => Ok(Case::Cold),
            (Self::Transfer, Case::Over) => {
                usage("--sweep=transfer is of pages in host memory or on a disk; leave --pages out")
            }
            (_, Case::Hot) => Ok(Case::Hot),
            _ => usage(format!("--sweep={} is of resident pages; leave --pages out", self.name())),
        }
    }

    /// Refuses workloads that it is not of.
    pub fn check(self, chosen: &[String]) -> Result {
        let other = chosen.iter().find(|name| !name.starts_with("rng"));
        match (self, chosen.first(), other) {
            (Self::Mixed, Some(_), _) => {
                usage("--sweep=mixed has workloads of its own; leave --workload out")
            }
            (Self::Access | Self::Transfer, _, Some(other)) => usage(format!(
                "--sweep={} is of workloads \"rng read\" and \"rng write\", not of {other:?}",
                self.name()
            )),
            _ => Ok(()),
        }
    }
}

/// A quantity that takes one value after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    Slots,
    Access,
    Transfer,
}

impl Quantity {
    fn name(self) -> &'static str {
        match self {
            Self::Slots => "slots",
            Self::Access => "access",
            Self::Transfer => "transfer",
        }
    }

    /// The workloads to measure unless others are named: the paper's.
    pub fn workloads(self) -> &'static [&'static str] {
        match self {
            Self::Slots => &["aes", "rng read"],
            Self::Access => &["rng read", "rng write"],
            Self::Transfer => &["rng read"],
        }
    }

    /// Its values; only some of those that take long, if it shall be quick.
    pub fn points(self, quick: bool) -> Vec<Point> {
        let all = Point::default();
        match self {
            Self::Slots => (1..=SLOTS).map(|slots| Point { slots, ..all }).collect(),
            Self::Access => (6..=12).map(|log2| Point { access: 1 << log2, ..all }).collect(),
            Self::Transfer => {
                let sizes = (12..=21).step_by(if quick { 3 } else { 1 });
                sizes.map(|log2| Point { slots: 1, access: 1 << log2, transfer: true }).collect()
            }
        }
    }

    /// Where a point is on the axis, and its name there.
    pub fn place(self, point: Point) -> (f64, String) {
        match self {
            Self::Slots => (point.slots as f64, point.slots.to_string()),
            Self::Access => (point.access as f64, point.access.to_string()),
            Self::Transfer => (point.access as f64, size_of(point.access)),
        }
    }

    pub fn label(self, point: Point) -> String {
        let (_, place) = self.place(point);
        match self {
            Self::Slots if point.slots == 1 => ", 1 slot".to_owned(),
            Self::Slots => format!(", {place} slots"),
            Self::Access => format!(", {place} bytes"),
            Self::Transfer => format!(", {place}"),
        }
    }

    /// The plot of a workload.
    pub fn plot(self, workload: &str, case: Case) -> Plot {
        let (title, axes) = match self {
            Self::Slots => ("slots that work at once", ["slots", "bytes per cycle"]),
            Self::Access => ("sizes of accesses to resident pages", ["bytes an access", "bytes per cycle"]),
            Self::Transfer if case == Case::Cold => {
                ("sizes of transfers from a disk", ["bytes a transfer", "bytes per cycle"])
            }
            Self::Transfer => {
                ("sizes of transfers from host memory", ["bytes a transfer", "bytes per cycle"])
            }
        };
        let cold = if case == Case::Cold { "-cold" } else { "" };
        Plot::new(
            format!("fsrf-{}-{}{cold}", self.name(), workload.replace(' ', "-")),
            // Lines of systems that grow alike would hide one another.
            if self == Self::Slots { Form::Bars } else { Form::Lines },
            format!("{workload}: {title}"),
            "bytes over the mean time of the slots",
            axes,
        )
    }
}

/// One measurement of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub slots: usize,
    /// Bytes of each access of `rng`.
    pub access: u64,
    /// Whether each of them is a transfer from host memory.
    pub transfer: bool,
}

impl Default for Point {
    fn default() -> Self {
        Self { slots: SLOTS, access: 64, transfer: false }
    }
}

impl Point {
    /// As in the paper the number of accesses stays the same, so that the memory grows with them, unless it is transferred.
    pub fn sizes(self, sizes: &Sizes) -> Sizes {
        let random = if self.transfer { sizes.transfer } else { sizes.random * (self.access / 64) };
        Sizes { random, access: self.access, ..*sizes }
    }

    /// Pages of a transfer.
    pub fn batch(self) -> Option<u64> {
        self.transfer.then_some(self.access / PAGE)
    }
}
