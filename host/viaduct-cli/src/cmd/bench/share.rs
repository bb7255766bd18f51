// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench share`: how slots share card memory, in bytes per cycle. Resident pages of 2 MiB, random accesses.

use viaduct::desc::Command;
use viaduct::{Policy, Sharing};
use viaduct_build::{Manifest, Project, Variant};

use super::worker::{Load, Ran, SLOTS, Worker, once, rate, read_again, run, sharing, workers};
use super::{Figure, Scale, image, jain, xdma};
use crate::card::{CardArgs, Opened};
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::fail::{Failure, Result};

/// What the app does, and the verb of its figures.
const BOTH: [(bool, &str); 2] = [(false, "read"), (true, "written")];

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
    let mut bench = Bench { project, card, scale, app, image, beat, figures: Vec::new(), plot: plot() };
    bench.channel_each()?;
    let alone = bench.neighbours(&opened)?;
    bench.chosen(alone)?;
    bench.weights()?;
    bench.figures.extend(xdma::shares(project, card, scale.fill / 4)?);
    plots.push(bench.plot);
    Ok(bench.figures)
}

struct Bench<'a> {
    project: &'a Project,
    card: &'a CardArgs,
    scale: &'a Scale,
    app: Manifest,
    image: Vec<u8>,
    /// Bytes of a beat.
    beat: f64,
    figures: Vec<Figure>,
    plot: Plot,
}

impl Bench<'_> {
    fn open(&self) -> Result<Opened> {
        self.card.open_with(self.project, Variant::Fast, |_| ())
    }

    /// `place` is the label in the plot, `verb` the series.
    fn add(&mut self, what: String, place: &str, verb: &str, value: f64, note: String) {
        self.plot.add(Kind::Ours, verb, place, 0.0, value);
        self.figures.push(Figure { what, value, unit: "B/cycle", note });
    }

    /// All slots at once: each on a channel of its own, then each on all of them.
    fn channel_each(&mut self) -> Result {
        let mut own = Vec::new();
        for spread in [false, true] {
            let opened = self.open()?;
            let channel = if spread { |s: usize, p: u64| (s + p as usize) % SLOTS } else { |s, _| s };
            // Spread over the channels, each slot needs a page in each.
            let pages = if spread { self.scale.pages.max(SLOTS as u64) } else { self.scale.pages };
            let mut all = workers(&opened, &self.app, &self.image, pages, channel)?;
            for (i, (write, verb)) in BOTH.into_iter().rev().enumerate() {
                let place = if spread { "pages over all channels" } else { "a channel each" };
                let what = format!("four slots, {verb} in 4 KiB, {place}");
                let value = self.everybody(&mut all, &what, write, 4096, self.scale.share)?;
                let note = if spread {
                    format!("{:.2} of a channel each", value / own[i])
                } else {
                    own.push(value);
                    format!("{:.2} of a beat a cycle and channel", value / self.beat / SLOTS as f64)
                };
                let place =
                    if spread { "4 slots, 4 KiB, all channels" } else { "4 slots, 4 KiB, own channels" };
                self.add(what, place, verb, value, note);
            }
        }
        Ok(())
    }

    /// Small accesses beside large ones, all on one channel. Returns what a slot reads and writes alone.
    fn neighbours(&mut self, opened: &Opened) -> Result<[f64; 2]> {
        let mut all = workers(opened, &self.app, &self.image, self.scale.pages, |_, _| 0)?;
        let mut alone = [0.0; 2];
        for ((write, verb), alone) in BOTH.into_iter().zip(&mut alone) {
            for count in [0, 1, SLOTS - 1] {
                let what = match count {
                    0 => format!("one slot, {verb} in 64 bytes, alone on a channel"),
                    n => format!("{verb} in 64 bytes, beside {n} with 4 KiB"),
                };
                let place = match count {
                    0 => "1 slot, 64 bytes, 1 channel".to_owned(),
                    n => format!("beside {n} with 4 KiB"),
                };
                let value = self.beside(&mut all, &what, self.small(write), count)?;
                let of_beat = value / self.beat;
                let note = if count == 0 {
                    *alone = value;
                    format!("{of_beat:.2} of a beat a cycle")
                } else {
                    format!(
                        "{:.2} of alone; an equal share is {:.2} of a beat a cycle, this is {of_beat:.2}",
                        value / *alone,
                        1.0 / (count + 1) as f64,
                    )
                };
                self.add(what, &place, verb, value, note);
            }
            let others = SLOTS - 1;
            let what = format!("{verb} in 64 bytes, beside {others} with 4 KiB, round robin by bursts");
            opened.card.set_sharing(&Sharing { policy: Policy::RoundRobin, ..Sharing::default() })?;
            // It is that much slower.
            let few = load(write, 64, self.scale.calibrate_large / 256, 3);
            let value = self.beside(&mut all, &what, few, others)?;
            opened.card.set_sharing(&Sharing::default())?;
            let note = format!("{:.2} of alone; by bytes it is the line before", value / *alone);
            self.add(what, &format!("beside {others}, by bursts"), verb, value, note);
            let what = format!("{verb} in 64 bytes, beside a fill by DMA");
            let (value, dma) = self.beside_dma(opened, &mut all, &what, write)?;
            let note = format!("{:.2} of alone; the fill moves {dma:.2} B/cycle meanwhile", value / *alone);
            self.add(what, "beside a fill by DMA", verb, value, note);
        }
        Ok(alone)
    }

    /// The first slot with small accesses beside `count` with large ones.
    /// The first slot with `small` beside `count` with large accesses.
    fn beside(&self, all: &mut [Worker], what: &str, small: Load, count: usize) -> Result<f64> {
        // The neighbours have more to do than the first slot, which is measured.
        let write = small.write;
        let mut loads = vec![small];
        loads.extend((0..count as u64).map(|n| load(write, 4096, self.scale.calibrate_large * 2, 5 + 2 * n)));
        let ran = run(&self.app, all, what, &loads)?;
        if ran.iter().skip(1).any(|r| r.cycles < ran[0].cycles) {
            let cycles: Vec<u64> = ran.iter().map(|r| r.cycles).collect();
            return Err(Failure::Run(format!("{what}: a neighbour ended too early: {cycles:?} cycles")));
        }
        Ok(rate(&ran[..1]))
    }

    /// The first slot with small accesses beside the DMA engine, which fills memory of the same channel for another slot. Returns what the slot
    /// and the engine move meanwhile.
    fn beside_dma(&self, opened: &Opened, all: &mut [Worker], what: &str, write: bool) -> Result<(f64, f64)> {
        let card = &opened.card;
        let bytes = self.scale.fill;
        let fills = [Command::fill((card.info().chan_mib << 20) - bytes, bytes as u32)];
        let begun = card.time()?;
        let submitted = all[1].slot.submit(&fills)?;
        all[1].slot.wait(&submitted)?;
        let alone = (card.time()? - begun) as f64;

        let begun = card.time()?;
        let submitted = all[1].slot.submit(&fills)?;
        let small = [self.small(write)];
        let ran = once(&self.app, all, what, &small)?;
        all[1].slot.wait(&submitted)?;
        // What the fill lost was lost during the run.
        let lost = (card.time()? - begun) as f64 - alone;
        if alone + lost < 2.0 * ran[0].cycles as f64 {
            return Err(Failure::Run(format!("{what}: the fill may have ended too early")));
        }
        read_again(&self.app, all, what, &small)?;
        Ok((rate(&ran), bytes as f64 / alone * (1.0 - lost / ran[0].cycles as f64)))
    }

    /// Slots in the channels that the library chooses.
    fn chosen(&mut self, alone: [f64; 2]) -> Result {
        for slots in [1, 2, SLOTS] {
            let opened = self.open()?;
            let mut all = sharing(&opened, &self.app, &self.image, slots, self.scale.pages)?;
            for ((write, verb), alone) in BOTH.into_iter().zip(alone) {
                let what = match slots {
                    1 => format!("one slot, {verb} in 64 bytes, its share of the channels"),
                    n => format!("{n} slots, {verb} in 64 bytes, their shares of the channels"),
                };
                let bytes = self.scale.calibrate_large / 16;
                let value = self.everybody(&mut all, &what, write, 64, bytes)?;
                let place = match slots {
                    1 => "1 slot, 64 bytes, all channels".to_owned(),
                    n => format!("{n} slots"),
                };
                self.add(
                    what,
                    &place,
                    verb,
                    value,
                    format!("{:.2} of a channel each", value / alone / slots as f64),
                );
            }
        }
        Ok(())
    }

    /// Four slots on one channel, of equal weights and of different ones. Each has as much to do as its weight says, so that all are at work
    /// nearly all the time.
    fn weights(&mut self) -> Result {
        const WEIGHTS: [u8; SLOTS] = [1, 2, 4, 8];
        let opened = self.open()?;
        let mut all = workers(&opened, &self.app, &self.image, self.scale.pages, |_, _| 0)?;
        let both = [true, false, true, false];
        for (verb, writes) in
            [("read", [false; SLOTS]), ("written", [true; SLOTS]), ("written (1, 4) and read (2, 8)", both)]
        {
            for weights in [[1; SLOTS], WEIGHTS] {
                let names = weights.map(|weight| weight.to_string()).join(" ");
                let what = format!("weights {names}, {verb} in 4 KiB, a channel");
                let mut loads = Vec::new();
                for (s, worker) in all.iter().enumerate() {
                    worker.slot.set_weight(weights[s])?;
                    let bytes = self.scale.calibrate_large * u64::from(weights[s]);
                    loads.push(load(writes[s], 4096, bytes, 3 + 2 * s as u64));
                }
                let ran = run(&self.app, &mut all, &what, &loads)?;
                let shares = |weights: [u8; SLOTS]| -> Vec<f64> {
                    let share =
                        |(ran, weight): (&Ran, u8)| ran.bytes as f64 / ran.cycles as f64 / f64::from(weight);
                    ran.iter().zip(weights).map(share).collect()
                };
                let each: Vec<String> = shares(weights).iter().map(|share| format!("{share:.2}")).collect();
                let note = format!(
                    "a unit of weight has {} B/cycle; by weights 1 2 4 8 Jain's index of bytes is {:.3}",
                    each.join(", "),
                    jain(&shares(WEIGHTS)),
                );
                self.figures.push(Figure { what, value: rate(&ran), unit: "B/cycle", note });
            }
        }
        Ok(())
    }

    /// All slots with the same load, from different seeds.
    fn everybody(&self, all: &mut [Worker], what: &str, write: bool, size: u64, bytes: u64) -> Result<f64> {
        let loads: Vec<Load> = (0..all.len() as u64).map(|s| load(write, size, bytes, 3 + 2 * s)).collect();
        Ok(rate(&run(&self.app, all, what, &loads)?))
    }

    fn small(&self, write: bool) -> Load {
        load(write, 64, self.scale.calibrate_large / 16, 3)
    }
}

fn load(write: bool, size: u64, bytes: u64, seed: u64) -> Load {
    Load { write, size, count: bytes / size, seed }
}

fn plot() -> Plot {
    Plot::new(
        "share",
        Form::Bars,
        "Slots that share card memory",
        "app rng on resident pages of 2 MiB, random accesses, a beat is 64 bytes",
        ["load", "bytes per cycle"],
    )
}
