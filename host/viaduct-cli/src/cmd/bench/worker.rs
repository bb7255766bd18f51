// SPDX-License-Identifier: Apache-2.0
//! Slots that work on card memory concurrently: app rng on resident pages of 2 MiB, whose channels the bench chooses. Used by `bench calibrate`
//! and `bench share`.

use viaduct::{
    Advice, MapOptions, Mapping, MemoryJob, MemoryRange, PagerStats, Placement, Prot, SharedBytes, Slot,
    Source,
};
use viaduct_build::Manifest;

use super::rng::{expected_sum, offsets};
use super::{read, register, set, wrong};
use crate::card::Opened;
use crate::fail::{Failure, Result};
use crate::random::Random;

pub const SLOTS: usize = 4;
const PAGE: u64 = 2 << 20;

/// A slot with app rng and its pages.
pub struct Worker {
    pub slot: Slot,
    mapping: Mapping,
    data: Vec<u8>,
}

/// The load of a slot.
#[derive(Clone, Copy)]
pub struct Load {
    pub write: bool,
    pub size: u64,
    pub count: u64,
    pub seed: u64,
}

impl Worker {
    fn tell(&self, app: &Manifest, load: Load) -> Result {
        for (name, value) in
            [("size", load.size), ("count", load.count), ("seed", load.seed), ("write", load.write.into())]
        {
            set(&self.slot, app, name, value)?;
        }
        Ok(())
    }

    /// Loads one page into memory.
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
        for at in offsets(load.size, load.count, load.seed, self.data.len() as u64) {
            for word in (at..at + load.size).step_by(8) {
                let bytes = (word ^ load.seed).to_le_bytes();
                self.data[word as usize..word as usize + 8].copy_from_slice(&bytes);
            }
        }
        0
    }
}

/// `count` slots with `pages` pages each, of which none is loaded; the first one's mapping has `spare` more.
fn unloaded(
    opened: &Opened,
    image: &[u8],
    count: usize,
    pages: u64,
    spare: u64,
    placement: Placement,
) -> Result<Vec<Worker>> {
    let mut random = Random(11);
    let mut all = Vec::new();
    for s in 0..count {
        let slot = opened.card.any_slot()?;
        slot.load(image)?;
        let data = random.bytes((pages * PAGE) as usize);
        let mut bytes = data.clone();
        bytes.resize(((pages + if s == 0 { spare } else { 0 }) * PAGE) as usize, 0);
        let len = bytes.len() as u64;
        let options = MapOptions::new(Prot::READ_WRITE).huge(true).placement(placement);
        let mapping = slot.map(Source::bytes(SharedBytes::new(bytes)), len, options)?;
        // A fault loads its own page only: one that is read ahead would be in a channel that nobody chose.
        mapping.advise(Advice::Random)?;
        all.push(Worker { slot, mapping, data });
    }
    Ok(all)
}

/// The slots, if no more pages than `touched` have been loaded, and none was refused.
fn loaded(all: Vec<Worker>, touched: u64) -> Result<Vec<Worker>> {
    // A page is counted soon after the app has it, so the last ones may be missing; more than these were read ahead.
    let stats =
        |of: fn(PagerStats) -> u64| all.iter().map(|worker| of(worker.slot.pager_stats())).sum::<u64>();
    let (loaded, denied) = (stats(|s| s.pages_in), stats(|s| s.denied));
    if loaded > touched || denied > 0 {
        return Err(Failure::Run(format!(
            "{loaded} pages loaded and {denied} denied in {touched} touches: some are in other channels than planned"
        )));
    }
    Ok(all)
}

/// Slots with `pages` loaded pages each, page p of slot s in channel `channel(s, p)`.
pub fn workers(
    opened: &Opened,
    app: &Manifest,
    image: &[u8],
    pages: u64,
    channel: fn(usize, u64) -> usize,
) -> Result<Vec<Worker>> {
    // Unused pages of the first slot occupy the skipped channels: all others for each page, at most.
    let most_spare = (SLOTS * (opened.card.info().channels - 1)) as u64 * pages;
    let all = unloaded(opened, image, SLOTS, pages, most_spare, Placement::All)?;
    // Frames are allocated from the channels in turn.
    let mut wanted: Vec<(usize, u64)> = (0..SLOTS).flat_map(|s| (0..pages).map(move |p| (s, p))).collect();
    let (mut spare, mut touched) = (pages, 0);
    for c in (0..opened.card.info().channels).cycle() {
        if wanted.is_empty() {
            break;
        }
        match wanted.iter().position(|(s, p)| channel(*s, *p) == c) {
            Some(i) => {
                let (s, page) = wanted.remove(i);
                all[s].touch(app, page)?;
            }
            None => {
                all[0].touch(app, spare)?;
                spare += 1;
            }
        }
        touched += 1;
    }
    loaded(all, touched)
}

/// `count` slots with `pages` loaded pages each, in the channels that the library chooses.
pub fn sharing(
    opened: &Opened,
    app: &Manifest,
    image: &[u8],
    count: usize,
    pages: u64,
) -> Result<Vec<Worker>> {
    let all = unloaded(opened, image, count, pages, 0, Placement::Share)?;
    for page in 0..pages {
        for worker in &all {
            worker.touch(app, page)?;
        }
    }
    loaded(all, pages * count as u64)
}

/// What a slot has moved, and the cycles from its start to its end.
pub struct Ran {
    pub bytes: u64,
    pub cycles: u64,
}

/// Runs the loads concurrently, the first on the first slot; slots without one stand still. Checks all data: what was written is read again.
pub fn run(app: &Manifest, workers: &mut [Worker], what: &str, loads: &[Load]) -> Result<Vec<Ran>> {
    let ran = once(app, workers, what, loads)?;
    read_again(app, workers, what, loads)?;
    Ok(ran)
}

/// Reads what the loads have written, and checks it.
pub fn read_again(app: &Manifest, workers: &mut [Worker], what: &str, loads: &[Load]) -> Result {
    if loads.iter().any(|load| load.write) {
        let again: Vec<Load> = loads.iter().map(|load| Load { write: false, ..*load }).collect();
        once(app, workers, what, &again)?;
    }
    Ok(())
}

/// As `run`, but checks only data that is read.
pub fn once(app: &Manifest, workers: &mut [Worker], what: &str, loads: &[Load]) -> Result<Vec<Ran>> {
    let mut seen = Vec::new();
    for (worker, load) in workers.iter().zip(loads) {
        worker.tell(app, *load)?;
        set(&worker.slot, app, "base", worker.mapping.va())?;
        set(&worker.slot, app, "bytes", worker.data.len() as u64)?;
        seen.push(worker.slot.irqs());
    }
    // The first one last: the others are at work in all of its time, if they have enough to do.
    for (worker, _) in workers.iter().zip(loads).rev() {
        worker.slot.write_register(register(app, "start")?.offset, 1)?;
    }
    for (worker, seen) in workers.iter().zip(seen) {
        if worker.slot.wait_irq(seen, super::PATIENCE)?.is_none() {
            return Err(Failure::Run(format!("{what}: the app does not end")));
        }
    }
    let mut all = Vec::new();
    for (worker, load) in workers.iter_mut().zip(loads) {
        let (cycles, sum) = (read(&worker.slot, app, "cycles")?, read(&worker.slot, app, "checksum")?);
        if read(&worker.slot, app, "errors")? != 0 || worker.follow(*load) != sum {
            return wrong(what);
        }
        all.push(Ran { bytes: load.size * load.count, cycles });
    }
    Ok(all)
}

/// Throughput of all slots together, in bytes per cycle of the longest run.
pub fn rate(ran: &[Ran]) -> f64 {
    let longest = ran.iter().map(|r| r.cycles).max().unwrap_or(0);
    ran.iter().map(|r| r.bytes).sum::<u64>() as f64 / longest.max(1) as f64
}
