// SPDX-License-Identifier: Apache-2.0
//! Different workloads that share the card: figure 7 of the FSRF paper, each against itself alone on the same system; and random accesses of
//! different sizes and directions that meet in the same channels, by Jain's index of the bytes that the slots move. What is counted of a slot
//! beside others ends when the first of them ends, so that all of them work all the time, as they nearly do in the paper.

use viaduct::Placement;

use super::systems::SYSTEMS;
use super::work::{SLOTS, Sizes};
use super::{Bench, Mode, drawn, kind, rate};
use crate::cmd::bench::plot::{Form, Plot};
use crate::cmd::bench::{Figure, jain};
use crate::fail::Result;

/// The paper's workloads, one in each slot.
const WORKLOADS: [&str; SLOTS] = ["aes", "page rank", "sha hls", "rng read"];
/// Random accesses that meet: workload and bytes of an access of each slot. Four slots, then each two different kinds.
const ACCESSES: [(&str, &[(&str, u64)]); 11] = [
    ("reads of 64 bytes and 4 KiB", &[(READ, 64), (READ, 64), (READ, 4096), (READ, 4096)]),
    ("writes of 64 bytes and 4 KiB", &[(WRITE, 64), (WRITE, 64), (WRITE, 4096), (WRITE, 4096)]),
    ("reads and writes of 64 bytes", &[(READ, 64), (READ, 64), (WRITE, 64), (WRITE, 64)]),
    ("reads and writes of 4 KiB", &[(READ, 4096), (READ, 4096), (WRITE, 4096), (WRITE, 4096)]),
    ("reads and writes of both", &[(READ, 64), (READ, 4096), (WRITE, 64), (WRITE, 4096)]),
    ("a read of 64 bytes beside one of 4 KiB", &[(READ, 64), (READ, 4096)]),
    ("a read of 64 bytes beside a write of 64 bytes", &[(READ, 64), (WRITE, 64)]),
    ("a read of 64 bytes beside a write of 4 KiB", &[(READ, 64), (WRITE, 4096)]),
    ("a read of 4 KiB beside a write of 64 bytes", &[(READ, 4096), (WRITE, 64)]),
    ("a read of 4 KiB beside a write of 4 KiB", &[(READ, 4096), (WRITE, 4096)]),
    ("a write of 64 bytes beside one of 4 KiB", &[(WRITE, 64), (WRITE, 4096)]),
];
const READ: &str = "rng read";
const WRITE: &str = "rng write";

/// Measures the figures of `--sweep mixed`.
pub fn mixed(bench: &mut Bench, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
    let meeting: Vec<_> = bench.systems.iter().flat_map(|system| places(system)).collect();
    let results = bench.systems.len() * (WORKLOADS.len() + 1) + meeting.len() * ACCESSES.len();
    bench.bar.set_length(results as u64);
    let mut figures = workloads(bench, plots)?;
    figures.extend(accesses(bench, &meeting)?);
    Ok(figures)
}

/// The paper's four workloads at once, and each of them alone.
fn workloads(bench: &mut Bench, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
    let sizes = bench.sizes;
    let tasks = WORKLOADS.iter().map(|name| bench.task(name, &sizes)).collect::<Result<Vec<_>>>()?;
    let all: Vec<_> = tasks.iter().collect();
    let mut figures = Vec::new();
    let mut plot = Plot::new(
        "fsrf-mixed",
        Form::Bars,
        "Four different workloads at once, each against itself alone",
        "until the first of them ends; bytes over the time of the slot, of those alone on the same system",
        ["workload", "of the throughput alone"],
    );
    for system in bench.systems.clone() {
        let together = bench.measure(system, &all, ", together", Mode { first: true, ..Mode::default() })?;
        let mut shares = Vec::new();
        for (task, ran) in tasks.iter().zip(together) {
            let name = task.work.name;
            let alone = rate(task, &bench.measure(system, &[task], ", alone", Mode::default())?);
            let value = rate(task, &[ran]);
            let share = value / alone;
            shares.push(share);
            let note = format!("{}, {share:.3} of alone", bench.mib(value));
            figures.push(Figure {
                what: format!("{name}, beside others: {system}"),
                value,
                unit: "B/cycle",
                note,
            });
            if drawn(system) {
                plot.add(kind(system), system, name, 0.0, share);
            }
        }
        let value = jain(&shares);
        let note = format!("{value:.4}, of what is left of each workload alone");
        figures.push(Figure { what: format!("Jain's index: {system}"), value, unit: "", note });
    }
    plots.push(plot);
    Ok(figures)
}

/// Random accesses that meet, by bytes.
fn accesses(bench: &mut Bench, meeting: &[Place]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (what, slots) in ACCESSES {
        let task = |&(name, access): &(&'static str, u64)| {
            bench.task(name, &Sizes { random: 2 * bench.sizes.random, access, ..bench.sizes })
        };
        let tasks = slots.iter().map(task).collect::<Result<Vec<_>>>()?;
        let all: Vec<_> = tasks.iter().collect();
        for &Place { system, channels, placement } in meeting {
            let mode = Mode { first: true, placement, ..Mode::default() };
            let ran = bench.measure(system, &all, &format!(", {what}{channels}"), mode)?;
            let values: Vec<f64> = tasks.iter().zip(ran).map(|(task, ran)| rate(task, &[ran])).collect();
            let each: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
            let value = jain(&values);
            figures.push(Figure {
                what: format!("Jain's index, {what}: {system}{channels}"),
                value,
                unit: "",
                note: format!("{value:.4}, of {} B/cycle", each.join(", ")),
            });
        }
    }
    Ok(figures)
}

/// A system, and where the slots meet in it.
struct Place {
    system: &'static str,
    channels: &'static str,
    placement: Placement,
}

/// Where slots meet: in one channel and in all on this card, in all in systems that stripe memory, and nowhere in others.
fn places(system: &'static str) -> Vec<Place> {
    let place = |channels, placement| Place { system, channels, placement };
    match SYSTEMS.iter().find(|s| s.name == system) {
        Some(s) if s.striped() => vec![place("", Placement::default())],
        Some(_) => Vec::new(),
        None => vec![place(", one channel", Placement::Only(1)), place(", all channels", Placement::All)],
    }
}
