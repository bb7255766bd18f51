// SPDX-License-Identifier: Apache-2.0
//! How a device is shared among 1 to 16 members: this card's scheduler, a round robin by bursts, and that of vFPIO as published and mended, each
//! alone with a device that moves a beat a cycle (`rtl/rivals/via_rival_sched.sv`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use viaduct_build::{Project, Rivals};

use super::super::rival::{numbers, obey};
use super::super::{Figure, jain};
use crate::fail::{Failure, Result};
use crate::random::Random;

/// Members of the largest one.
const MOST: u64 = 16;
/// Beats of the longest burst: 4 KiB.
const BURST: u64 = 64;
/// Beats under way at the device that is shared, if nothing else is said.
const CAP: u64 = 64;

/// How much is measured.
pub struct SchedulerScale {
    /// Subsets of each number of members, each with sizes, directions and weights of its own.
    pub subsets: u64,
    /// Beats for each unit of weight. What members have for a unit differs by less than two bursts at any time, so the share error falls with it.
    pub beats: u64,
    /// Requests of the member that goes first.
    pub requests: u64,
}

/// Who decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Bytes,
    Bursts,
    Published,
    Mended,
}

impl Policy {
    const ALL: [Self; 4] = [Self::Bytes, Self::Bursts, Self::Published, Self::Mended];

    fn name(self) -> &'static str {
        match self {
            Self::Bytes => "by bytes",
            Self::Bursts => "round robin by bursts",
            Self::Published => "vFPIO as published",
            Self::Mended => "vFPIO, mended",
        }
    }
}

/// What is shared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Device {
    /// A direction of the link.
    Link,
    /// A DRAM channel: reads and writes on one data bus.
    Channel,
}

impl Device {
    fn name(self) -> &'static str {
        match self {
            Self::Link => "a direction of the link",
            Self::Channel => "a channel",
        }
    }
}

/// A member that always requests: directions as bits, sizes in beats.
struct Member {
    index: u64,
    ways: u64,
    weight: u64,
    sizes: [u64; 2],
}

/// What became of a set of members.
struct Shared {
    /// Beats for each unit of weight.
    shares: Vec<f64>,
    /// Beats that the device has moved in a cycle.
    busy: f64,
}

impl Shared {
    /// The largest deviation from the mean share.
    fn error(&self) -> f64 {
        let mean = self.shares.iter().sum::<f64>() / self.shares.len() as f64;
        self.shares.iter().map(|share| (share / mean - 1.0).abs()).fold(0.0, f64::max)
    }
}

/// Fairness, work conservation and the wait of a first class.
pub fn schedulers(project: &Project, scale: &SchedulerScale) -> Result<Vec<Figure>> {
    let program = project.build_rivals(Rivals::Schedulers, &mut crate::project::tell)?;
    let bench = Bench { program, scale };
    let mut figures = Vec::new();
    for device in [Device::Link, Device::Channel] {
        for weighted in [false, true] {
            figures.push(bench.fair(Policy::Bytes, device, weighted)?);
        }
    }
    for policy in [Policy::Bursts, Policy::Mended, Policy::Published] {
        figures.push(bench.fair(policy, Device::Link, false)?);
    }
    for members in [2, 3, 4] {
        figures.push(bench.two_of(members)?);
    }
    for policy in Policy::ALL {
        figures.push(bench.alone(policy)?);
    }
    figures.extend(bench.waits()?);
    Ok(figures)
}

struct Bench<'a> {
    program: PathBuf,
    scale: &'a SchedulerScale,
}

impl Bench<'_> {
    /// Runs lines of the program, and returns the numbers of its lines that begin with `word`.
    fn obey(&self, script: String, word: &str) -> Result<Vec<Vec<u64>>> {
        let lines = script.lines().count();
        let program: &Path = &self.program;
        let said = numbers(&obey(program, "schedulers", script)?, word)?;
        match said.len() == lines {
            true => Ok(said),
            false => Err(odd()),
        }
    }

    /// Shares a device among each of these sets of members, out of so many.
    fn share(&self, policy: Policy, device: Device, sets: &[(u64, Vec<Member>)]) -> Result<Vec<Shared>> {
        let mut script = String::new();
        for (of, members) in sets {
            let beats = self.scale.beats;
            let _ = write!(script, "share {} {} {of} {CAP} {beats}", policy as u8, device as u8);
            for Member { index, ways, weight, sizes: [least, most] } in members {
                let _ = write!(script, " {index}:{ways}:{weight}:{least}:{most}");
            }
            script.push('\n');
        }
        let said = self.obey(script, "shared")?;
        let results = said.iter().zip(sets).map(|(line, (_, members))| match &line[..] {
            [cycles, moved, beats @ ..] if beats.len() == members.len() && *cycles > 0 => Ok(Shared {
                shares: beats.iter().zip(members).map(|(b, m)| *b as f64 / m.weight as f64).collect(),
                busy: *moved as f64 / *cycles as f64,
            }),
            _ => Err(odd()),
        });
        results.collect()
    }

    /// All numbers of members, some subsets of each, any sizes, directions and weights.
    fn fair(&self, policy: Policy, device: Device, weighted: bool) -> Result<Figure> {
        let mut random = Random(11);
        let mut pick = |least: u64, most: u64| least + random.next() % (most - least + 1);
        let mut sets = Vec::new();
        for of in 1..=MOST {
            for subset in 0..self.scale.subsets {
                let mut members = Vec::new();
                for index in 0..of {
                    // All of them once, then some.
                    if subset > 0 && pick(0, 1) == 0 && !(index + 1 == of && members.is_empty()) {
                        continue;
                    }
                    let most = pick(1, BURST);
                    let sizes = match pick(0, 3) {
                        0 => [1, 1],
                        1 => [BURST, BURST],
                        _ => [pick(1, most), most],
                    };
                    let ways = if device == Device::Channel { pick(1, 3) } else { 1 };
                    let weight = if weighted { pick(1, 4) } else { 1 };
                    members.push(Member { index, ways, weight, sizes });
                }
                sets.push((of, members));
            }
        }
        let all = self.share(policy, device, &sets)?;
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let index = least(&mut all.iter().map(|s| jain(&s.shares)));
        let error = all.iter().map(Shared::error).fold(0.0, f64::max);
        let busy = least(&mut all.iter().map(|s| s.busy));
        let by = if weighted { "weights 1 to 4" } else { "equal weights" };
        Ok(Figure {
            what: format!("1 to 16 members share {}, {by}: {}", device.name(), policy.name()),
            value: index,
            unit: "",
            note: format!(
                "Jain's index of bytes by weight, {index:.5}, the least of {} sets of members, sizes{}; shares differ from even ones by {:.2} % at most; the device moves {busy:.4} beats a cycle or more",
                all.len(),
                if device == Device::Channel { " and directions" } else { "" },
                error * 100.0,
            ),
        })
    }

    /// Two active ones of several, with bursts of 4 KiB: what vFPIO's pointer makes of them.
    fn two_of(&self, of: u64) -> Result<Figure> {
        let pair = || (0..2).map(|index| Member { index, ways: 1, weight: 1, sizes: [BURST; 2] }).collect();
        let mut parts = Vec::new();
        let mut published = 0.0;
        for policy in Policy::ALL {
            let [shared] = &self.share(policy, Device::Link, &[(of, pair())])?[..] else { return Err(odd()) };
            let part = shared.shares[0] / shared.shares.iter().sum::<f64>();
            if policy == Policy::Published {
                published = part;
            }
            parts.push(format!("{}: {part:.3}", policy.name()));
        }
        Ok(Figure {
            what: format!("2 of {of} members with bursts of 4 KiB, part of the first"),
            value: published,
            unit: "",
            note: parts.join("; "),
        })
    }

    /// One that is alone, of all numbers of members.
    fn alone(&self, policy: Policy) -> Result<Figure> {
        let sets: Vec<_> = (1..=MOST)
            .flat_map(|of| [(of, 0), (of, of - 1)])
            .map(|(of, index)| (of, vec![Member { index, ways: 1, weight: 1, sizes: [1, BURST] }]))
            .collect();
        let all = self.share(policy, Device::Link, &sets)?;
        let least = all.iter().map(|s| s.busy).fold(f64::INFINITY, f64::min);
        Ok(Figure {
            what: format!("a member that is alone: {}", policy.name()),
            value: least,
            unit: "",
            note: format!(
                "{least:.4} of the device, the least of {} cases: first and last of 1 to 16 members",
                all.len()
            ),
        })
    }

    /// The longest wait of a member that goes first, beside others that always request bursts of all sizes, by weights up to 15.
    fn waits(&self) -> Result<Vec<Figure>> {
        let cases = [
            (Policy::Bytes, Device::Link, 4, 640),
            (Policy::Bytes, Device::Link, 16, 640),
            (Policy::Bytes, Device::Link, 16, CAP),
            (Policy::Bytes, Device::Channel, 16, CAP),
            (Policy::Bursts, Device::Link, 16, 640),
            (Policy::Mended, Device::Link, 16, 640),
        ];
        let mut script = String::new();
        for (policy, device, of, cap) in cases {
            let requests = self.scale.requests;
            let _ = writeln!(script, "wait {} {} {of} {cap} {requests} 8", policy as u8, device as u8);
        }
        let said = self.obey(script, "waited")?;
        let figures = said.iter().zip(cases).map(|(line, (policy, device, of, cap))| {
            let &[grant, start] = &line[..] else { return Err(odd()) };
            Ok(Figure {
                what: format!("1 of {of} goes first, {cap} beats under way, {}: {}", device.name(), policy.name()),
                value: start as f64,
                unit: "cycles",
                note: format!(
                    "at most from a request to its first beat, {grant} to its grant, of {} requests; cap and a burst of 64 beats are {}",
                    self.scale.requests,
                    cap + BURST
                ),
            })
        });
        figures.collect()
    }
}

fn odd() -> Failure {
    Failure::Run("the program with the schedulers has not said what was expected".to_owned())
}
