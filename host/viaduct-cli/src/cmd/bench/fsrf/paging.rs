// SPDX-License-Identifier: Apache-2.0
//! Which pages are in card memory, and what the other systems' host does about the others (`sim/rivals/pager.h`).

use std::ops::Range;

use super::disk::Times;
use super::work::{PAGE, Work};
use crate::card::Opened;

/// Which pages are in card memory at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Case {
    /// All of them
    #[default]
    Hot,
    /// None; all are in host memory
    Warm,
    /// None; all are on a disk
    Cold,
    /// As many as there are frames, of which there are fewer than pages
    Over,
}

impl Case {
    /// The system that others are compared with: without paging there is nothing to compare when all is resident.
    pub fn reference(self) -> &'static str {
        match self {
            Self::Hot => "physical",
            Self::Warm | Self::Cold | Self::Over => "fsrf-dram",
        }
    }

    pub fn axis(self) -> &'static str {
        match self {
            Self::Hot => "of physical",
            Self::Warm | Self::Cold | Self::Over => "of fsrf-dram",
        }
    }

    pub fn plot(self) -> &'static str {
        match self {
            Self::Hot => "fsrf",
            Self::Warm => "fsrf-warm",
            Self::Cold => "fsrf-cold",
            Self::Over => "fsrf-over",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Hot => "The workloads of FSRF on resident pages, against the same without translation",
            Self::Warm => "The workloads of FSRF on pages outside card memory",
            Self::Cold => "The workloads of FSRF on pages on a disk",
            Self::Over => "The workloads of FSRF with fewer frames than pages",
        }
    }

    /// Frames of a slot; none if there are enough. The paper's oversubscribed runs have 1,920 MiB for the 2 GiB of `gups` and `tri`, and
    /// 16 GiB for 32 GiB of the others.
    pub fn frames(self, work: &Work) -> Option<u64> {
        let pages = (work.memory.len() as u64).div_ceil(PAGE);
        (self == Self::Over).then(|| match work.name {
            "gups" | "tri" => (pages * 15 / 16).max(1),
            _ => (pages / 2).max(1),
        })
    }
}

/// Demand paging of another system: times in cycles, rates in bytes per 1000 cycles.
pub struct Paging {
    /// The first pages are there at the beginning.
    pub resident: bool,
    frames: u64,
    unit: u64,
    most: u64,
    /// Pages of mappings that the app may write.
    writable: Range<u64>,
    times: [u64; 5],
    rates: [u64; 2],
    /// If pages are on a disk.
    disk: Option<Times>,
}

impl Paging {
    /// Of a system that loads so many pages for a fault, at least and at most.
    pub fn new(
        (unit, most): (u64, u64),
        work: &Work,
        case: Case,
        host_us: f64,
        disk: Option<Times>,
        opened: &Opened,
    ) -> Option<Self> {
        let profile = &opened.sim.as_ref()?.profile;
        let pages = (work.memory.len() as u64).div_ceil(PAGE);
        let frames = case.frames(work).unwrap_or(pages);
        let (unit, most) = (unit.min(frames), most.min(frames));
        let cycles = |ns: f64| (ns * f64::from(profile.clk_khz) / 1e6).round() as u64;
        let link = &profile.link;
        let times = [link.read_latency_ns, link.write_latency_ns, link.mmio_read_ns, link.mmio_write_ns];
        let [read, write, mmio_read, mmio_write] = times.map(|ns| cycles(f64::from(ns)));
        let per_cycle = 1e6 / f64::from(profile.clk_khz);
        let rates = super::super::link_limits(opened);
        let percent = [link.read_efficiency_pct, link.write_efficiency_pct];
        let rate = |way: usize| rates[way].1 * per_cycle * 1000.0 * f64::from(percent[way]) / 100.0;
        Some(Self {
            resident: case == Case::Over,
            frames,
            unit,
            most,
            writable: work.writable(),
            times: [read, write, mmio_read, mmio_write, cycles(host_us * 1000.0)],
            rates: [rate(0) as u64, rate(1) as u64],
            disk,
        })
    }

    /// The line of the program's input.
    pub fn line(&self) -> String {
        let Self { resident, frames, unit, most, writable, times, rates, disk } = self;
        let disk = disk.map_or([0, 0], |disk| [disk.latency, disk.rate]);
        let words: Vec<String> = [frames, unit, most, &writable.start, &writable.end]
            .into_iter()
            .chain(times)
            .chain(rates)
            .chain(&disk)
            .map(u64::to_string)
            .collect();
        format!("pager {} {}\n", u8::from(*resident), words.join(" "))
    }
}
