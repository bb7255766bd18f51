// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench share`: how slots share card memory, in bytes per cycle. Resident pages of 2 MiB, random accesses.

use viaduct::desc::Command;
use viaduct_build::{Project, Variant};

use super::worker::{Load, SLOTS, Worker, rate, run, sharing, workers};
use super::{Figure, Scale, image};
use crate::card::CardArgs;
use crate::fail::{Failure, Result};
use crate::plot::{Form, Kind, Plot};

/// Measures the figures of `viaduct bench share`.
pub fn share(
    project: &Project,
    card: &CardArgs,
    scale: &Scale,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let app = project.load("rng")?;
    let opened = card.open_with(project, Variant::Fast, |_| ())?;
    let image = image(project, &opened, &app)?;
    let beat = opened.card.info().data_bytes as f64;
    let load = |write, size: u64, bytes: u64, seed| Load { write, size, count: bytes / size, seed };
    let bytes = scale.calibrate_large;
    let mut figures = Vec::new();
    let mut add = |what: String, value: f64, note: String| {
        figures.push(Figure { what, value, unit: "B/cycle", note });
    };

    // All slots at once: each on a channel of its own, then each on all of them.
    let everybody = |all: &mut [Worker], what: &str, write| -> Result<f64> {
        let loads: Vec<Load> = (0..SLOTS as u64).map(|s| load(write, 4096, scale.share, 3 + 2 * s)).collect();
        Ok(rate(&run(&app, all, what, &loads)?))
    };
    let mut own = Vec::new();
    for spread in [false, true] {
        let opened = card.open_with(project, Variant::Fast, |_| ())?;
        let channel = if spread { |s: usize, p: u64| (s + p as usize) % SLOTS } else { |s, _| s };
        // Spread over the channels, each slot needs a page in each.
        let pages = if spread { scale.pages.max(SLOTS as u64) } else { scale.pages };
        let mut all = workers(&opened, &app, &image, pages, channel)?;
        for (i, (write, verb)) in [(true, "written"), (false, "read")].into_iter().enumerate() {
            let place = if spread { "pages over all channels" } else { "a channel each" };
            let what = format!("four slots, {verb} in 4 KiB, {place}");
            let value = everybody(&mut all, &what, write)?;
            let note = if spread {
                format!("{:.2} of a channel each", value / own[i])
            } else {
                own.push(value);
                format!("{:.2} of a beat a cycle and channel", value / beat / SLOTS as f64)
            };
            add(what, value, note);
        }
    }

    // Small accesses beside large ones, all on one channel.
    let mut all = workers(&opened, &app, &image, scale.pages, |_, _| 0)?;
    let mut alone = [0.0; 2];
    for (write, verb) in [(false, "read"), (true, "written")] {
        let alone = &mut alone[usize::from(write)];
        for neighbours in [0, 1, SLOTS - 1] {
            // The neighbours have more to do than the first slot, which is measured.
            let mut loads = vec![load(write, 64, bytes / 16, 3)];
            loads.extend((0..neighbours as u64).map(|n| load(write, 4096, bytes * 2, 5 + 2 * n)));
            let what = match neighbours {
                0 => format!("one slot, {verb} in 64 bytes, alone on a channel"),
                n => format!("beside {n} with 4 KiB"),
            };
            let ran = run(&app, &mut all, &what, &loads)?;
            if ran.iter().skip(1).any(|r| r.cycles < ran[0].cycles) {
                return Err(Failure::Run(format!("{what}: a neighbour ended too early")));
            }
            let value = rate(&ran[..1]);
            let note = match neighbours {
                0 => {
                    *alone = value;
                    format!("{:.2} of a beat a cycle", value / beat)
                }
                n => format!(
                    "{:.2} of alone; an equal share is {:.2} of a beat a cycle, this is {:.2}",
                    value / *alone,
                    1.0 / (n + 1) as f64,
                    value / beat
                ),
            };
            add(what, value, note);
        }
        // Beside the DMA engine, which fills memory of the same channel for another slot.
        let what = format!("beside a fill by DMA, {verb} in 64 bytes");
        let last = (opened.card.info().chan_mib << 20) - scale.fill;
        let fills = [Command::fill(last, scale.fill as u32)];
        let submitted = all[1].slot.submit(&fills)?;
        let ran = run(&app, &mut all, &what, &[load(write, 64, bytes / 16, 3)])?;
        all[1].slot.wait(&submitted)?;
        let value = rate(&ran);
        add(what, value, format!("{:.2} of alone", value / *alone));
    }

    // In the channels that the library chooses.
    for slots in [1, 2, SLOTS] {
        let opened = card.open_with(project, Variant::Fast, |_| ())?;
        let mut all = sharing(&opened, &app, &image, slots, scale.pages)?;
        for (write, verb, alone) in [(false, "read", alone[0]), (true, "written", alone[1])] {
            let loads: Vec<Load> =
                (0..slots as u64).map(|s| load(write, 64, bytes / 16, 3 + 2 * s)).collect();
            let what = match slots {
                1 => format!("one slot, {verb} in 64 bytes, its share of the channels"),
                n => format!("{n} slots, {verb} in 64 bytes, their shares of the channels"),
            };
            let value = rate(&run(&app, &mut all, &what, &loads)?);
            add(what, value, format!("{:.2} of a channel each", value / alone / slots as f64));
        }
    }
    let mut plot = Plot::new(
        "share",
        Form::Bars,
        "Slots that share card memory",
        "app rng on resident pages of 2 MiB, random accesses, a beat is 64 bytes",
        ["load", "bytes per cycle"],
    );
    for f in &figures {
        plot.add(Kind::Ours, "measured", &f.what, 0.0, f.value);
    }
    plots.push(plot);
    Ok(figures)
}
