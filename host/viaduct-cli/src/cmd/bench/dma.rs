// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench dma`: copies between host and card memory.

use viaduct::Slot;
use viaduct::desc::Command;
use viaduct_build::Project;
use viaduct_pci::DmaAccess;

use super::{Figure, Scale, image, last_completion, link_limits, size_of, wrong, xdma};
use crate::card::{CardArgs, Opened};
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::fail::Result;
use crate::random::Random;

/// Copies of several sizes, submitted together and one after the other, and those of the XDMA-compatible function.
pub fn dma(
    project: &Project,
    card: &CardArgs,
    opened: &Opened,
    scale: &Scale,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let total = scale.dma;
    let slot = opened.card.any_slot()?;
    // Commands of a slot run only while it has an app; any app will do.
    slot.load(&image(project, opened, &project.load("pass")?)?)?;
    let from = opened.card.dma_buffer(total, DmaAccess::Read)?;
    let to = opened.card.dma_buffer(total, DmaAccess::Write)?;
    let mut random = Random(1);
    let mut figures = Vec::new();
    let mut plot = Plot::new(
        "dma",
        Form::Lines,
        "Copies between host and card memory",
        format!(
            "{} MiB in commands of one size, submitted together or, as with XDMA, each after the interrupt of the one before",
            total >> 20
        ),
        ["bytes a command or transfer", "GB/s"],
    );
    for piece in scale.dma_pieces {
        let pieces: Vec<u64> = (0..total).step_by(*piece as usize).collect();
        let len = *piece as u32;
        let down: Vec<_> = pieces.iter().map(|at| Command::h2c(from.iova() + at, *at, len)).collect();
        let up: Vec<_> = pieces.iter().map(|at| Command::c2h(to.iova() + at, *at, len)).collect();
        // Other data for each size: what an earlier one left in card memory would be wrong.
        let data = random.bytes(total as usize);
        from.memory().write(0, &data);
        for one_by_one in [false, true] {
            let how = if one_by_one { ", one after the other" } else { "" };
            let name = |what: &str| format!("dma, {what}, {} KiB each{how}", piece >> 10);
            let mut add = |what: &str, cycles: u64| {
                let seconds = opened.card.info().seconds(cycles);
                let note = format!("{total} bytes in {cycles} cycles");
                let value = total as f64 / seconds / 1e9;
                figures.push(Figure { what: name(what), value, unit: "GB/s", note });
                plot.add(Kind::Ours, &format!("{what}{how}"), &size_of(*piece), *piece as f64, value);
            };
            let run = |commands: &[Command]| match one_by_one {
                true => timed_one_by_one(opened, &slot, commands),
                false => timed(opened, &slot, commands),
            };
            timed(opened, &slot, &[Command::fill(0, total as u32)])?;
            to.memory().fill(0, to.len() as usize, 0);
            let cycles = [run(&down)?, run(&up)?];
            let mut back = vec![0; data.len()];
            to.memory().read(0, &mut back);
            if back != data {
                return wrong(&name("host to card and back"));
            }
            add("host to card", cycles[0]);
            add("card to host", cycles[1]);
        }
    }
    figures.extend(xdma::copies(project, card, scale.dma_pieces, &mut plot)?);
    for (way, limit) in link_limits(opened) {
        for piece in scale.dma_pieces {
            plot.add(Kind::Limit, &format!("the link, {way}"), &size_of(*piece), *piece as f64, limit);
        }
    }
    plots.push(plot);
    Ok(figures)
}

/// Runs commands and returns the cycles from just before the first to the last completion.
fn timed(opened: &Opened, slot: &Slot, commands: &[Command]) -> Result<u64> {
    let begun = opened.card.time()?;
    Ok(last_of(slot, commands)?.unwrap_or(begun) - begun)
}

/// As [`timed`], each command submitted after the interrupt of the one before: as a program waits for each of its copies, with the latency of
/// the link both ways.
fn timed_one_by_one(opened: &Opened, slot: &Slot, commands: &[Command]) -> Result<u64> {
    let begun = opened.card.time()?;
    for command in commands {
        last_of(slot, std::slice::from_ref(command))?;
    }
    Ok(opened.card.time()? - begun)
}

/// Runs commands; when the last one was completed, in cycles.
fn last_of(slot: &Slot, commands: &[Command]) -> Result<Option<u64>> {
    last_completion(slot, &slot.submit(commands)?)
}
