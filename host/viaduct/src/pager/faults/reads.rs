// SPDX-License-Identifier: Apache-2.0
//! Reads that are under way. What is in the system's memory is read at once. The rest is asked for all together, and goes to the card page
//! by page in the order in which it comes, while further faults are served.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use crate::backing::Source;
use crate::card::dma::DmaBuffer;
use crate::dispatch::Dispatcher;
use crate::error::{Error, Result};
use crate::pager::faults::plan::Plan;
use crate::pager::state::load::Load;
use crate::pager::state::region::{HostFrames, PageRef};
use crate::pager::state::space::Space;
use crate::pager::state::staging::STAGING;
use crate::protocol::desc::Place;
use viaduct_pci::DmaAccess;

/// Bytes to be read.
struct Wanted {
    source: Arc<Source>,
    to: Arc<DmaBuffer>,
    offset: usize,
    len: usize,
    position: u64,
}

impl Wanted {
    fn read_now(&self) -> Option<Result<usize>> {
        self.source.read_now(&self.to, self.offset, self.len, self.position)
    }

    fn read(&self) -> Result<usize> {
        self.source.read(&self.to, self.offset, self.len, self.position)
    }
}

/// Tells the end of a read, in any case.
struct Promise {
    rings: Weak<Dispatcher>,
    number: u64,
    kept: bool,
}

impl Promise {
    fn keep(mut self, got: Result<usize>) {
        self.kept = true;
        self.tell(got);
    }

    fn tell(&self, got: Result<usize>) {
        if let Some(rings) = self.rings.upgrade() {
            rings.has_read(self.number, got);
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.kept {
            self.tell(Err(Error::Invalid("the read was given up".into())));
        }
    }
}

impl Space {
    /// Reads what is there, and begins to read the rest, whose faults the plan loses. Returns what was read, with the number of bytes or an
    /// error.
    pub(in crate::pager) fn read(
        &mut self,
        d: &Dispatcher,
        plan: &mut Plan,
        loads: Vec<Load>,
    ) -> Vec<(Load, Result<usize>)> {
        let (mut there, mut wait) = (Vec::new(), Vec::new());
        let step = |load: &Load| self.regions[&load.start].page_bytes();
        let loads: Vec<Load> = loads
            .into_iter()
            .flat_map(|load| {
                let step = step(&load);
                load.pieces(step)
            })
            .collect();
        for load in loads {
            let wanted = match self.wanted_bytes(d, &load) {
                Ok(wanted) => wanted,
                Err(error) => {
                    there.push((load, Err(error)));
                    continue;
                }
            };
            let got = wanted.read_now();
            if let Some(paged) = self.paged(load.start) {
                paged.waits = got.is_none();
            }
            match got {
                Some(got) => there.push((load, got)),
                None => wait.push((load, wanted)),
            }
        }
        // All of them first, so that the disk has something to choose from.
        for (_, wanted) in wait.iter().filter(|(_, wanted)| wanted.source.device().is_none()) {
            wanted.source.will_need(wanted.position, wanted.len as u64);
        }
        for (load, wanted) in wait {
            if wanted.source.device().is_none() && d.card.pci().stands_still() {
                there.push((load, wanted.read()));
            } else {
                let (source, end, next) =
                    (Arc::clone(&wanted.source), wanted.position + wanted.len as u64, load.next);
                plan.away.extend(load.faults().map(|&(number, _)| number));
                let step = self.regions[&load.start].page_bytes();
                self.begin_read(load, wanted);
                if next > 0 {
                    source.will_need(end, next * step);
                }
            }
        }
        d.lock().reading = self.reads.loads.len();
        there
    }

    fn begin_read(&mut self, load: Load, wanted: Wanted) {
        let reads = &mut self.reads;
        let number = reads.count;
        reads.count += 1;
        let numbers = load.number..load.number + load.places.len() as u64;
        reads.pages.extend(numbers.map(|n| ((load.start, n), number)));
        reads.loads.insert(number, load);
        let promise = Promise { rings: Weak::clone(&reads.rings), number, kept: false };
        match wanted.source.device().cloned() {
            Some(device) => {
                let (position, len) = (wanted.position, wanted.len as u64);
                device.read(position, len, Box::new(move || promise.keep(wanted.read())));
            }
            None => reads.threads.begin(move || promise.keep(wanted.read())),
        }
    }

    /// The card does not work, and with it nothing is read: what is still coming arrives in memory that nobody uses, or that is not used again
    /// before.
    pub(in crate::pager) fn give_reads_up(&mut self, d: &Dispatcher) {
        while self.land_oldest(d) {}
        let mut st = d.lock();
        st.reading = 0;
        let ended: BTreeSet<u64> = st.read.drain(..).map(|(number, _)| number).collect();
        drop(st);
        self.reads.late.retain(|number, _| !ended.contains(number));
        let mut faults = Vec::new();
        for (number, load) in std::mem::take(&mut self.reads.loads) {
            let size = self.regions[&load.start].size;
            self.give_back(d, &load.places, size);
            if let (Some(&Place::Host(first)), false) = (load.places.first(), ended.contains(&number)) {
                let end = first + load.places.len() as u64 * size.bytes();
                self.reads.late.insert(number, first..end);
            }
            faults.extend(load.faults().map(|&(_, fault)| fault));
        }
        self.reads.pages.clear();
        if let Some(stage) = self.stage.take() {
            stage.retire();
        }
        self.staging = Default::default();
        let mut st = d.lock();
        st.poked = true;
        faults.into_iter().rev().for_each(|fault| st.faults.push_front(fault));
    }

    /// Whether a page is there, or being read, or may yet be written by a read that was given up.
    pub(in crate::pager) fn is_coming(&self, at: PageRef) -> bool {
        let Some(region) = self.regions.get(&at.0) else { return false };
        let Some(paged) = region.paged() else { return false };
        let late = || self.reads.is_late(paged, at.1 * region.page_bytes());
        paged.pages.contains_key(&at.1) || self.reads.has(at) || late()
    }

    /// What to read for a load, and where to: the staging memory, or its frames in host memory.
    fn wanted_bytes(&mut self, d: &Dispatcher, load: &Load) -> Result<Wanted> {
        let stage = match &self.stage {
            Some(stage) => stage,
            None => self.stage.insert(Arc::new(d.card.dma_buffer(STAGING, DmaAccess::Read)?)),
        };
        let stage = Arc::clone(stage);
        let (number, count) = (load.number, load.places.len() as u64);
        let region = &self.regions[&load.start];
        let step = region.page_bytes();
        let len = (count - 1) * step + region.valid(number + count - 1);
        let paged = region.paged().expect("only such pages are loaded");
        let (to, offset) = match (load.places.first(), &paged.host) {
            (Some(Place::Host(_)), Some(HostFrames { buffer, offset })) => {
                (Arc::clone(buffer), offset + number * step)
            }
            _ => (stage, load.staged.first().map_or(0, |part| part.at)),
        };
        let position = paged.first + number * step;
        let source = Arc::clone(&paged.source);
        Ok(Wanted { source, to, offset: offset as usize, len: len as usize, position })
    }
}
