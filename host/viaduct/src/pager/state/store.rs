// SPDX-License-Identifier: Apache-2.0
//! Changed pages on their way to their source.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use crate::backing::threads::Threads;
use crate::backing::{Source, WriteBack};
use crate::card::dma::DmaBuffer;
use crate::card::sync::lock;
use crate::dispatch::Dispatcher;
use crate::error::Error;

/// A region, and the numbers of neighbouring pages of it.
type Pages = (u64, Range<u64>);

/// Neighbouring pages of a region on their way to its source.
pub(in crate::pager) struct Run {
    source: Arc<Source>,
    buffer: Arc<DmaBuffer>,
    offset: usize,
    len: usize,
    position: u64,
    pages: Pages,
    failed: Option<WriteBack>,
}

impl Run {
    /// Of `len` bytes at `offset` of a buffer, which belong to `position` of the source.
    pub fn new(
        source: Arc<Source>,
        buffer: Arc<DmaBuffer>,
        offset: usize,
        len: usize,
        position: u64,
        pages: Pages,
    ) -> Self {
        let (path, why, os) = (source.name().to_owned(), "the write was given up".into(), None);
        let error = Error::Lost { path, start: position, end: position + len as u64, why, os };
        Self { source, buffer, offset, len, position, pages, failed: Some(WriteBack { error, again: true }) }
    }

    /// Whether writing them may take time.
    pub fn takes_time(&self) -> bool {
        self.source.takes_time()
    }

    /// Writes them. This may take time, and needs no lock.
    pub fn write(&mut self) {
        self.failed = self.source.write(&self.buffer, self.offset, self.len, self.position).err();
    }

    /// The pages, and why they could not be written.
    pub fn end(self) -> (Pages, Option<WriteBack>) {
        (self.pages, self.failed)
    }
}

/// Runs that a thread writes.
#[derive(Default)]
pub(in crate::pager) struct Store {
    written: Mutex<Option<Vec<Run>>>,
    ended: Condvar,
}

/// Tells the end of writing, in any case.
struct Ending {
    store: Arc<Store>,
    runs: Vec<Run>,
    rings: Weak<Dispatcher>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        *lock(&self.store.written) = Some(std::mem::take(&mut self.runs));
        self.store.ended.notify_all();
        if let Some(rings) = self.rings.upgrade() {
            rings.has_stored();
        }
    }
}

impl Store {
    /// Has a thread write them. Whoever serves these rings is woken at the end.
    pub fn begin(runs: Vec<Run>, threads: &Threads, rings: Weak<Dispatcher>) -> Arc<Self> {
        if let Some(rings) = rings.upgrade() {
            rings.begins_to_store();
        }
        let store = Arc::new(Self::default());
        let mut ending = Ending { store: Arc::clone(&store), runs, rings };
        threads.begin(move || ending.runs.iter_mut().for_each(Run::write));
        store
    }

    /// Whether they have been written, or could not be.
    pub fn has_ended(&self) -> bool {
        lock(&self.written).is_some()
    }

    /// Waits for the end of writing, and takes them.
    pub fn wait(&self) -> Vec<Run> {
        let written = self.ended.wait_while(lock(&self.written), |written| written.is_none());
        written.unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}
