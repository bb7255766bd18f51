// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench calibrate`: card memory of profile `f1` against the board it is calibrated to, FSRF Table 2, rows "physical".
//! Four slots work concurrently on resident pages, each on its own channel, through the whole path between an app and DRAM.

use viaduct::{MapOptions, Mapping, MemoryJob, MemoryRange, Prot, SharedBytes, Slot, Source};
use viaduct_build::{Manifest, Project, Variant};

use super::{Figure, Scale, expected_sum, image, places, register, wrong};
use crate::card::{CardArgs, Opened};
use crate::fail::{Failure, Result};
use crate::plot::{Form, Kind, Plot};
use crate::random::Random;

const SLOTS: usize = 4;
const PAGE: u64 = 2 << 20;

/// A slot with app rng and pages of one channel.
struct Worker {
    slot: Slot,
    mapping: Mapping,
    data: Vec<u8>,
}

/// The load of a slot.
#[derive(Clone, Copy)]
struct Load {
    write: bool,
    size: u64,
    count: u64,
    seed: u64,
}

impl Worker {
    fn set(&self, app: &Manifest, name: &str, value: u64) -> Result {
        let place = register(app, name)?;
        let bytes = place.width.div_ceil(8).min(8) as usize;
        Ok(self.slot.write_wide(place, &value.to_le_bytes()[..bytes])?)
    }

    fn get(&self, app: &Manifest, name: &str) -> Result<u64> {
        let bytes = self.slot.read_wide(register(app, name)?)?;
        Ok(bytes.iter().rev().fold(0, |value, b| value << 8 | u64::from(*b)))
    }

    fn tell(&self, app: &Manifest, load: Load) -> Result {
        for (name, value) in
            [("size", load.size), ("count", load.count), ("seed", load.seed), ("write", load.write.into())]
        {
            self.set(app, name, value)?;
        }
        Ok(())
    }

    /// Loads one page into memory, in the next channel in turn.
    fn touch(&self, app: &Manifest, page: u64) -> Result {
        self.tell(app, Load { write: false, size: 64, count: 1, seed: 1 })?;
        let range = MemoryRange {
            va: self.mapping.va() + page * PAGE,
            len: PAGE,
            base: register(app, "base")?,
            bytes: Some(register(app, "bytes")?),
        };
        let done = register(app, "done")?.offset;
        MemoryJob::new(&self.slot, register(app, "start")?.offset).range(range).done(done).irq().run()?;
        Ok(())
    }

    /// Expected memory after the accesses, and the expected checksum of the app's reads.
    fn follow(&mut self, load: Load) -> u64 {
        if !load.write {
            return expected_sum(&self.data, load.size, load.count, load.seed);
        }
        for at in places(load.size, load.count, load.seed, self.data.len() as u64) {
            for word in (at..at + load.size).step_by(8) {
                let bytes = (word ^ load.seed).to_le_bytes();
                self.data[word as usize..word as usize + 8].copy_from_slice(&bytes);
            }
        }
        0
    }
}

/// Slots with `pages` pages each; all pages of slot s are in channel `channel(s)`.
fn workers(
    opened: &Opened,
    app: &Manifest,
    image: &[u8],
    pages: u64,
    channel: fn(usize) -> usize,
) -> Result<Vec<Worker>> {
    let mut random = Random(11);
    let mut all = Vec::new();
    for _ in 0..SLOTS {
        let slot = opened.card.any_slot()?;
        slot.load(image)?;
        let data = random.bytes((pages * PAGE) as usize);
        // Unused pages occupy the skipped channels.
        let spare = vec![0; (pages * PAGE) as usize * SLOTS];
        let mut bytes = data.clone();
        bytes.extend(spare);
        let len = bytes.len() as u64;
        let options = MapOptions::new(Prot::READ_WRITE).huge(true);
        let mapping = slot.map(Source::bytes(SharedBytes::new(bytes)), len, options)?;
        all.push(Worker { slot, mapping, data });
    }
    // Frames are allocated from the channels in turn.
    let channels = opened.card.info().channels;
    let (mut had, mut spare) = (vec![0; SLOTS], pages);
    while had.iter().any(|n| *n < pages) {
        for c in 0..channels {
            match (0..SLOTS).find(|s| channel(*s) == c && had[*s] < pages) {
                Some(s) => {
                    all[s].touch(app, had[s])?;
                    had[s] += 1;
                }
                None => {
                    all[0].touch(app, spare)?;
                    spare += 1;
                }
            }
        }
    }
    Ok(all)
}

/// Runs a load on all slots concurrently and returns their total throughput, in bytes per second of the longest run.
fn run(
    opened: &Opened,
    app: &Manifest,
    workers: &mut [Worker],
    what: &str,
    loads: [Load; SLOTS],
) -> Result<f64> {
    let mut seen = Vec::new();
    for (worker, load) in workers.iter().zip(loads) {
        worker.tell(app, load)?;
        worker.set(app, "base", worker.mapping.va())?;
        worker.set(app, "bytes", worker.data.len() as u64)?;
        seen.push(worker.slot.irqs());
    }
    for worker in workers.iter() {
        worker.slot.write_register(register(app, "start")?.offset, 1)?;
    }
    for (worker, seen) in workers.iter().zip(seen) {
        if worker.slot.wait_irq(seen, super::PATIENCE)?.is_none() {
            return Err(Failure::Run(format!("{what}: the app does not end")));
        }
    }
    let (mut moved, mut longest) = (0, 0);
    for (worker, load) in workers.iter_mut().zip(loads) {
        let (cycles, sum) = (worker.get(app, "cycles")?, worker.get(app, "checksum")?);
        if worker.get(app, "errors")? != 0 || worker.follow(load) != sum {
            return wrong(what);
        }
        moved += load.size * load.count;
        longest = longest.max(cycles);
    }
    Ok(moved as f64 / opened.card.info().seconds(longest))
}

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
    let mut add = |what: &str, rate: f64, paper: f64| {
        let value = rate / f64::from(1 << 20);
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
        let mut all = workers(&opened, &app, &image, scale.pages, |slot| slot)?;
        for (size, bytes, written, read) in [
            (4096, scale.calibrate_large, ("written in 4 KiB", 54_000.0), ("read in 4 KiB", 57_000.0)),
            (64, scale.calibrate_small, ("written in 64 bytes", 15_000.0), ("read in 64 bytes", 18_000.0)),
        ] {
            // The written data is read at the same addresses.
            for (write, (what, paper)) in [(true, written), (false, read)] {
                let load = |seed| Load { write, size, count: bytes / size, seed };
                let rate = run(&opened, &app, &mut all, what, [load(3), load(5), load(7), load(9)])?;
                add(what, rate, paper);
            }
        }
    }
    // Two slots share a channel, one reads and one writes: half of the board at a time. The paper has no row for this: the nearest is
    // the mean of its seven streams, of which two are half writes and five only read.
    let opened = card.open_with(project, Variant::Fast, |_| ())?;
    let image = image(project, &opened, &app)?;
    let mut all = workers(&opened, &app, &image, scale.pages, |slot| slot / 2)?;
    let what = "half read, half written in 4 KiB, two channels, twice";
    let load = |write, seed| Load { write, size: 4096, count: scale.calibrate_large / 4096, seed };
    let rate =
        run(&opened, &app, &mut all, what, [load(false, 3), load(true, 5), load(false, 7), load(true, 9)])?;
    let again = [load(false, 3), load(false, 5), load(false, 7), load(false, 9)];
    run(&opened, &app, &mut all, what, again)?;
    add(what, 2.0 * rate, 57_000.0);
    plots.push(plot);
    Ok(figures)
}
