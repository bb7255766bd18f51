// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench calibrate`: card memory of profile `f1` against the board it is calibrated to, FSRF Table 2, rows "physical".
//! Four slots work concurrently on resident pages, each on its own channel, through the whole path between an app and DRAM.

use viaduct_build::{Project, Variant};

use super::worker::{Load, rate, run, workers};
use super::{Figure, Scale, image};
use crate::card::{CardArgs, Opened};
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::fail::Result;

/// Measures the figures of `viaduct bench calibrate`.
pub fn calibrate(
    project: &Project,
    card: &CardArgs,
    scale: &Scale,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let card = CardArgs { profile: card.profile.clone().or(Some("f1".into())), ..card.clone() };
    let app = project.load("rng")?;
    let mut figures = Vec::new();
    let mut plot = Plot::new(
        "calibrate",
        Form::Bars,
        "Card memory of profile f1 against the board it is fitted to",
        "four slots with app rng on resident pages, a channel each; the board: FSRF, Table 2, physical",
        ["accesses", "MiB/s"],
    );
    let mut add = |opened: &Opened, what: &str, per_cycle: f64, paper: f64| {
        let value = per_cycle / opened.card.info().seconds(1) / f64::from(1 << 20);
        let note = format!("the paper's board {paper:.0}: {:+.1} %", (value / paper - 1.0) * 100.0);
        // The name of the bars is short.
        let place = if what.starts_with("half") { "half and half" } else { what };
        plot.add(Kind::Ours, "the model", place, 0.0, value);
        plot.add(Kind::Rival, "the paper's board", place, 0.0, paper);
        figures.push(Figure { what: format!("card memory, {what}"), value, unit: "MiB/s", note });
    };
    {
        let opened = card.open_with(project, Variant::Fast, |_| ())?;
        let image = image(project, &opened, &app)?;
        let mut all = workers(&opened, &app, &image, scale.pages, |slot, _| slot)?;
        for (size, bytes, written, read) in [
            (4096, scale.calibrate_large, ("written in 4 KiB", 54_000.0), ("read in 4 KiB", 57_000.0)),
            (64, scale.calibrate_small, ("written in 64 bytes", 15_000.0), ("read in 64 bytes", 18_000.0)),
        ] {
            // The written data is read at the same addresses.
            for (write, (what, paper)) in [(true, written), (false, read)] {
                let load = |seed| Load { write, size, count: bytes / size, seed };
                let ran = run(&app, &mut all, what, &[load(3), load(5), load(7), load(9)])?;
                add(&opened, what, rate(&ran), paper);
            }
        }
    }
    // Two slots share a channel, one reads and one writes: half of the board at a time. The paper has no row for this: the nearest is
    // the mean of its seven streams, of which two are half writes and five only read.
    let opened = card.open_with(project, Variant::Fast, |_| ())?;
    let image = image(project, &opened, &app)?;
    let mut all = workers(&opened, &app, &image, scale.pages, |slot, _| slot / 2)?;
    let what = "half read, half written in 4 KiB, two channels, twice";
    let load = |write, seed| Load { write, size: 4096, count: scale.calibrate_large / 4096, seed };
    let loads = [load(false, 3), load(true, 5), load(false, 7), load(true, 9)];
    let half = rate(&run(&app, &mut all, what, &loads)?);
    let again = [load(false, 3), load(false, 5), load(false, 7), load(false, 9)];
    run(&app, &mut all, what, &again)?;
    add(&opened, what, 2.0 * half, 57_000.0);
    plots.push(plot);
    Ok(figures)
}
