// SPDX-License-Identifier: Apache-2.0
//! A file or memory as the store of the card's block device.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::backing::Source;
use crate::card::FunctionKind;
use crate::error::{Error, Result};
use crate::function::{Attachment, DiskAt, Function};
use crate::protocol::desc::Prot;
use crate::slot::Slot;
use crate::slot::mapping::{MapOptions, Mapping, SyncMode};

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// How often the thread that serves the card checks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Pages that may be changed and are not in the file yet. When there are more, some are written, so that a flush has no more left to do.
const UNWRITTEN: usize = 1024;
/// How long a change stays on the card at most, apart from the time that writing takes, if the driver neither flushes nor resets the device.
const AGE: Duration = Duration::from_secs(2);
/// Time for faults between two steps of that.
const STEP: Duration = Duration::from_millis(1);
/// Longest wait of a flush; a driver's own time-out is longer.
const FLUSH_LIMIT: Duration = Duration::from_secs(30);

/// Processing of the data of a disk in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// None.
    Nothing,
    /// The app in the disk's slot: the data of each request is a message, and the app returns as many bytes.
    App,
    /// The same; 64 bytes with the number of the sector precede the data. The app sends 64 bytes, with any content, ahead of its response too.
    AppWithSectors,
}

/// A disk: a source mapped into a slot's address space, which the card's block device reads and writes. Pages are loaded
/// at the first access and written back when they are evicted, when 4 MiB are changed, two seconds after a change, when the driver resets
/// the device, at [`Disk::sync`], at [`Disk::close`], and when the driver flushes: earlier writes are on the file's stable storage when the
/// flush completes, or the flush fails. The others bring them into the file as `write` does, and not to stable storage.
///
/// Requests of the driver wait for page faults, and flushes for the file: a thread of this value serves both.
pub struct Disk {
    function: Function,
    slot: Arc<Slot>,
    mapping: Option<Mapping>,
    server: Option<Server>,
}

struct Server {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Disk {
    /// Makes `source` the store of the block device `function` through `slot`, which may be empty unless the data is to pass
    /// `through` the app in it.
    pub fn open(
        function: Function,
        slot: Arc<Slot>,
        source: Source,
        read_only: bool,
        through: Through,
    ) -> Result<Self> {
        if function.kind() != FunctionKind::Blk {
            return Err(Error::Invalid(format!("function {} is not a block device", function.kind())));
        }
        let sectors = source.len() / SECTOR;
        if sectors == 0 {
            let name = source.name().display().to_string();
            return Err(Error::Invalid(format!("{name}: a disk has at least one sector of {SECTOR} bytes")));
        }
        let prot = if read_only { Prot::READ } else { Prot::READ_WRITE };
        let flush = (source.is_lasting() && !read_only).then_some(FLUSH_LIMIT);
        let header = through == Through::AppWithSectors;
        slot.open_space()?;
        // A request of 4 KiB loads one page of 4 KiB, and a flush writes those that were written; read-ahead makes both larger for
        // sequential ones.
        let mut options = MapOptions::new(prot).huge(false);
        if flush.is_some() {
            options = options.noting_writes();
        }
        let mapping = slot.map(source, sectors * SECTOR, options)?;
        let (index, range) = (slot.index(), mapping.range());
        let base = range.start;
        let mut disk = Self { function, slot, mapping: Some(mapping), server: None };
        disk.server = Some(Server::start(&disk.slot, &disk.function, range)?);
        let nothing = through == Through::Nothing;
        disk.function.attach(if nothing { Attachment::Nothing } else { Attachment::Slot(index) })?;
        disk.function.set_disk(DiskAt { slot: index, base, sectors, read_only, header }, flush)?;
        disk.function.set_up(true)?;
        Ok(disk)
    }

    /// Writes everything the driver has written to the file; with `durable` also to its stable storage.
    pub fn sync(&self, durable: bool) -> Result<()> {
        self.mapping.as_ref().map_or(Ok(()), |mapping| mapping.sync(durable))
    }

    /// Removes the disk from the driver and writes the changes to the file.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(mapping) = self.mapping.take() else { return Ok(()) };
        if !self.slot.card().is_ours() {
            // The thread belongs to the parent.
            self.server.take();
            self.slot.card().check_process()?;
        }
        // Requests in flight still need their pages: the device stops first, then its faults, then the pages are released.
        let mut ended = self.function.set_up(false);
        let nowhere = DiskAt { slot: self.slot.index(), ..DiskAt::default() };
        ended = ended.and(self.function.set_disk(nowhere, None));
        ended = ended.and(self.function.attach(Attachment::Nothing));
        let served = self.server.take().map_or(Ok(()), Server::stop);
        ended.and(served).and(mapping.unmap())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if !self.slot.card().is_ours() {
            return;
        }
        if let Err(error) = self.end() {
            tracing::error!(%error, "the disk could not be removed cleanly");
        }
    }
}

impl Server {
    fn start(slot: &Arc<Slot>, function: &Function, range: Range<u64>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new()
            .name("disk".into())
            .spawn({
                let (slot, function, stop) = (Arc::clone(slot), function.clone(), Arc::clone(&stop));
                move || {
                    let served = serve(&slot, &function, &range, &stop);
                    if served.is_err() {
                        // There is no write-back any more: a flush must fail soon.
                        function.limit_flush(Some(Duration::from_millis(1)))?;
                    }
                    served
                }
            })
            .map_err(|e| Error::Invalid(format!("cannot start a thread for the disk: {e}")))?;
        Ok(Self { stop, thread })
    }

    fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|_| Err(Error::Invalid("the disk's thread panicked".into())))
    }
}

/// Serves page faults and flushes until told to stop.
fn serve(slot: &Slot, function: &Function, range: &Range<u64>, stop: &AtomicBool) -> Result<()> {
    let (mut seen, mut pass) = (0, Pass::default());
    while !stop.load(Ordering::Acquire) {
        // A thread that waits on a slot serves its faults.
        let step = pass.is_due(slot, function, range)?;
        let end = Some(Instant::now() + if step { STEP } else { LOOK });
        let told = slot.wait_while_serving("waiting for the disk's driver", end, |st| match st.isolated {
            Some(cause) => Some(Err(Error::Isolated { slot: slot.index(), cause })),
            None => (st.flushes > seen).then_some(Ok(st.flushes)),
        })?;
        let Some(told) = told.transpose()? else {
            if step {
                pass.step(slot, range)?;
            }
            continue;
        };
        seen = told;
        let number = function.flush_asked()?;
        let synced = slot.sync(range.clone(), SyncMode { durable: true, invalidate: false });
        if let Err(error) = &synced {
            tracing::error!(%error, "a flush of the disk fails");
        }
        function.flushed(number, synced.is_ok())?;
    }
    Ok(())
}

/// Writes changes to the file while no flush asks for that, in passes over the disk, a few pages at a time.
#[derive(Default)]
struct Pass {
    /// Where the present pass goes on; `None` between two.
    at: Option<u64>,
    /// Since when there are changes, as far as is known.
    since: Option<Instant>,
    /// The driver has reset the device, and a pass has begun for that.
    reset: bool,
    /// Changes before this pass, and whether the last one has left as many: the file cannot be written now. The next flush tells of it.
    before: usize,
    stuck: bool,
}

impl Pass {
    /// Whether some pages are to be written now.
    fn is_due(&mut self, slot: &Slot, function: &Function, range: &Range<u64>) -> Result<bool> {
        let unwritten = slot.unwritten(range);
        if unwritten == 0 {
            *self = Self::default();
            return Ok(false);
        }
        if self.at.is_some() {
            return Ok(true);
        }
        let old = self.since.get_or_insert_with(Instant::now).elapsed() >= AGE;
        // What cannot be written is tried again later.
        let many = unwritten > UNWRITTEN && !std::mem::take(&mut self.stuck);
        let reset = !function.has_driver()?;
        let just_reset = !std::mem::replace(&mut self.reset, reset) && reset;
        let due = old || many || just_reset;
        if due {
            (self.at, self.before) = (Some(range.start), unwritten);
        }
        Ok(due)
    }

    fn step(&mut self, slot: &Slot, range: &Range<u64>) -> Result<()> {
        let from = self.at.unwrap_or(range.start);
        self.at = slot.write_some(&(from..range.end))?;
        if self.at.is_none() {
            self.since = Some(Instant::now());
            self.stuck = slot.unwritten(range) >= self.before;
        }
        Ok(())
    }
}
