// SPDX-License-Identifier: Apache-2.0
//! What the system-level driver paper measures, on a link of its shape (PCIe 2.0 x4): copies between host and card memory of all sizes, blocking
//! and deferred, and apps that use all channels of card memory.

use viaduct::Slot;
use viaduct::desc::Command;
use viaduct_build::{Project, Variant};
use viaduct_pci::DmaAccess;

use super::super::worker::{Load, SLOTS, rate, run, workers};
use super::super::{Figure, image, last_completion, link_limits, size_of, wrong};
use crate::card::{CardArgs, Opened};
use crate::fail::Result;
use crate::random::Random;

/// The board.
const PROFILE: &str = "gen2x4";

/// How much is measured.
pub struct NarrowScale {
    /// Bytes of a copy.
    pub sizes: &'static [u64],
    /// Bytes of all copies of a size, at least one and at most so many commands.
    pub total: u64,
    pub commands: u64,
    /// Bytes that each app moves.
    pub memory: u64,
}

/// Copies, and apps with card memory.
pub fn narrow(project: &Project, card: &CardArgs, scale: &NarrowScale) -> Result<Vec<Figure>> {
    let card = CardArgs { profile: Some(PROFILE.to_owned()), ..card.clone() };
    let open = || card.open_with(project, Variant::Fast, |_| ());
    let mut figures = copies(project, &open()?, scale)?;
    figures.extend(memory(project, &open()?, scale)?);
    Ok(figures)
}

/// Each size as many times as fit into the total: all submitted at once, or each after the end of the one before.
fn copies(project: &Project, opened: &Opened, scale: &NarrowScale) -> Result<Vec<Figure>> {
    let slot = opened.card.any_slot()?;
    // Commands of a slot run only while it has an app; any app will do.
    slot.load(&image(project, opened, &project.load("pass")?)?)?;
    let room = scale.sizes.iter().copied().max().unwrap_or(0).max(scale.total);
    let from = opened.card.dma_buffer(room, DmaAccess::Read)?;
    let to = opened.card.dma_buffer(room, DmaAccess::Write)?;
    let limits = link_limits(opened);
    let mut figures = Vec::new();
    for &size in scale.sizes {
        let count = (scale.total / size).clamp(1, scale.commands);
        let data = Random(size).bytes((size * count) as usize);
        from.memory().write(0, &data);
        to.memory().fill(0, data.len(), 0);
        for (way, (name, limit)) in [("host to card", limits[0]), ("card to host", limits[1])] {
            let at = |i: u64| i * size;
            let commands: Vec<Command> = (0..count)
                .map(|i| match way {
                    "host to card" => Command::h2c(from.iova() + at(i), at(i), size as u32),
                    _ => Command::c2h(to.iova() + at(i), at(i), size as u32),
                })
                .collect();
            for blocking in [false, true] {
                // One command is both.
                if blocking && count == 1 {
                    continue;
                }
                let begun = opened.card.time()?;
                let cycles = match blocking {
                    false => last_completion(&slot, &slot.submit(&commands)?)?.unwrap_or(begun) - begun,
                    true => one_by_one(opened, &slot, &commands)? - begun,
                };
                let how = match (count, blocking) {
                    (1, _) => "one copy",
                    (_, false) => "deferred",
                    (_, true) => "blocking",
                };
                let value = data.len() as f64 / opened.card.info().seconds(cycles) / 1e9;
                figures.push(Figure {
                    what: format!("{way}, {} each, {how}, {PROFILE}", size_of(size)),
                    value,
                    unit: "GB/s",
                    note: format!(
                        "{:.3} of the link's payload limit {name}, {count} × {size} bytes in {cycles} cycles",
                        value / limit
                    ),
                });
            }
        }
        let mut back = vec![0; data.len()];
        to.memory().read(0, &mut back);
        if back != data {
            return wrong(&format!("copies of {} to the card and back", size_of(size)));
        }
    }
    Ok(figures)
}

/// When the last of these commands has ended, each submitted after the end of the one before.
fn one_by_one(opened: &Opened, slot: &Slot, commands: &[Command]) -> Result<u64> {
    for command in commands {
        last_completion(slot, &slot.submit(std::slice::from_ref(command))?)?;
    }
    Ok(opened.card.time()?)
}

/// An app on each of the four channels, with accesses of 4 KiB.
fn memory(project: &Project, opened: &Opened, scale: &NarrowScale) -> Result<Vec<Figure>> {
    let app = project.load("rng")?;
    let image = image(project, opened, &app)?;
    let mut all = workers(opened, &app, &image, 1, |slot, _| slot)?;
    let Some(sim) = &opened.sim else { return Ok(Vec::new()) };
    let (dram, info) = (&sim.profile.dram, opened.card.info());
    // Bytes in a cycle that a channel's pins carry, and less the time of its refreshes; a beat a cycle is what the card can move.
    let pins = f64::from(dram.data_bytes) * 1e9 / f64::from(dram.burst_ps) / f64::from(info.clock_khz);
    let refreshed = pins * (1.0 - f64::from(dram.t_rfc_ps) / f64::from(dram.t_refi_ps));
    let mut figures = Vec::new();
    for (write, verb) in [(false, "read"), (true, "written")] {
        let what = format!("four apps, {verb} in 4 KiB, a channel each, {PROFILE}");
        let loads: Vec<Load> = (0..SLOTS as u64)
            .map(|slot| Load { write, size: 4096, count: scale.memory / 4096, seed: 3 + 2 * slot })
            .collect();
        let value = rate(&run(&app, &mut all, &what, &loads)?);
        let of = |most: f64| value / SLOTS as f64 / most.min(info.data_bytes as f64);
        let note = format!(
            "{:.3} of what the channels' pins carry, {:.3} of that less refreshes, {} bytes each",
            of(pins),
            of(refreshed),
            scale.memory
        );
        figures.push(Figure { what, value, unit: "B/cycle", note });
    }
    Ok(figures)
}
