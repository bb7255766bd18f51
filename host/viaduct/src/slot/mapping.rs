// SPDX-License-Identifier: Apache-2.0
//! Files and buffers in the address space of a slot.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::backing::Source;
use crate::backing::feed::{Feed, StreamState};
use crate::card::Placement;
use crate::card::memory::FrameSize;
use crate::card::sync::lock;
use crate::error::{Error, Result};
use crate::pager::{Advice, At, Then, Wanted};
use crate::protocol::desc::{HUGE, PAGE, Prot};
use crate::slot::Slot;
use crate::slot::inner::SlotInner;
use crate::slot::worker::Pending;

/// Bytes of a stream that are kept, unless told.
const STREAM_WINDOW: u64 = 1 << 20;
/// Longest wait for data of a stream, unless told.
const STREAM_PATIENCE: Duration = Duration::from_secs(10);
/// Limits of what can be told.
const WINDOWS: std::ops::RangeInclusive<u64> = 16 * PAGE..=1 << 30;

/// Options of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapOptions {
    prot: Prot,
    on_host: bool,
    huge: Option<bool>,
    table: Option<bool>,
    placement: Placement,
    noted: bool,
    private: bool,
    offset: u64,
    at: At,
    window: u64,
    patience: Duration,
}

impl MapOptions {
    /// In card memory, with a page size according to the length, shared, from the beginning of the source, at any address.
    pub fn new(prot: Prot) -> Self {
        Self {
            prot,
            on_host: false,
            huge: None,
            table: None,
            placement: Placement::default(),
            noted: false,
            private: false,
            offset: 0,
            at: At::Anywhere,
            window: STREAM_WINDOW,
            patience: STREAM_PATIENCE,
        }
    }

    /// Pages are in host memory and accessed over the link, instead of in card memory. They are never evicted.
    pub fn on_host(mut self) -> Self {
        self.on_host = true;
        self
    }

    /// With pages of 2 MiB, or of 4 KiB, only. Unless told: of 2 MiB from 2 MiB on, and of 4 KiB where accesses in random order find no room
    /// for these.
    pub fn huge(mut self, huge: bool) -> Self {
        self.huge = Some(huge);
        self
    }

    /// With or without the page table in card memory: there the card finds translations that its TLBs have displaced, without the host.
    /// By default with it if the mapping is larger than what the TLBs hold. For pages of 4 KiB in card memory only; without it where the
    /// table has no room.
    pub fn table(mut self, table: bool) -> Self {
        self.table = Some(table);
        self
    }

    /// Pages are in these channels of card memory, rather than in the slot's share.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Every first write to a page since it was last written back is a fault, even if the page was loaded for a read. So the cost of
    /// [`Slot::sync`] depends on what was written since the last one, and not on how many pages are loaded: for those that are often
    /// brought up to date. While such writes are in order, one fault stands for several pages, half as many as were written before.
    pub fn noting_writes(mut self) -> Self {
        self.noted = true;
        self
    }

    /// What the app writes is seen through this mapping only, and never written to the source, which need not be writable.
    pub fn private(mut self) -> Self {
        self.private = true;
        self
    }

    /// Of a stream that is read, the last so many bytes are kept, rounded up to pages; unless told, 1 MiB. Half of it is read ahead of
    /// the last page that the app has asked for, and accesses to what has left the window are denied. Of a stream that is written, so
    /// many bytes may wait for its reader; pages are sent once the app has begun one that is half of it behind them.
    pub fn window(mut self, bytes: u64) -> Self {
        self.window = bytes;
        self
    }

    /// An access to a stream waits so long for its data, or for room, and is denied then; unless told, 10 seconds. [`Slot::sync`] and
    /// [`Slot::unmap`] wait so long for a reader that takes nothing.
    pub fn patience(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// From this byte of the source on, a multiple of 4096.
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// At this address if the range is free there, else at another one.
    pub fn near(mut self, va: u64) -> Self {
        self.at = At::Near(va);
        self
    }

    /// At this address, a multiple of the page size. What is mapped in the range is unmapped first, as `MAP_FIXED` says.
    pub fn replacing(mut self, va: u64) -> Self {
        self.at = At::Replacing(va);
        self
    }

    /// At this address, a multiple of the page size; it is an error if something is mapped in the range.
    pub fn exactly(mut self, va: u64) -> Self {
        self.at = At::Exactly(va);
        self
    }
}

/// How far [`Slot::sync`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncMode {
    /// The files are on stable storage when it returns.
    pub durable: bool,
    /// Pages on the card are dropped: from now on the app sees what is in the files, whoever has written it.
    pub invalidate: bool,
}

/// Something that takes time, for [`Slot::begin`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// [`Slot::sync`]
    Sync(Range<u64>, SyncMode),
    /// [`Slot::unmap`]
    Unmap(Range<u64>),
    /// [`Slot::advise`]
    Advise(Range<u64>, Advice),
}

/// A file or buffer mapped at a virtual address of a slot. Dropping it unmaps it; errors are then only logged,
/// so [`Mapping::unmap`] is preferable.
pub struct Mapping {
    slot: Arc<SlotInner>,
    va: u64,
    len: u64,
    owner: u64,
    mapped: bool,
    stream: Option<Arc<Source>>,
}

impl Slot {
    /// Maps `len` bytes of a source into the app's address space. Pages are loaded when the app accesses them; accesses to pages
    /// beyond the end of the source are denied. Any number of mappings can exist; a page that two of them have is loaded twice, and
    /// what is written through one is seen through the other after [`Slot::sync`] of both, the second with `invalidate`.
    pub fn map(&self, source: Source, len: u64, options: MapOptions) -> Result<Mapping> {
        let _call = self.call("map");
        let card = self.card();
        card.check_process()?;
        if len == 0 {
            let name = source.name().display();
            return Err(Error::Invalid(format!("{name}: 0 bytes cannot be mapped; give at least one")));
        }
        let options = match source.flow() {
            Some(_) => stream_options(&source, options)?,
            None => options,
        };
        let source = if options.private { source.private() } else { source };
        if options.prot.write && !source.is_writable() {
            return Err(Error::Access { path: source.name().into(), what: "writing" });
        }
        if options.offset % PAGE != 0 {
            return Err(Error::Invalid(format!("offset {} is not a multiple of {PAGE}", options.offset)));
        }
        if options.offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(Error::Invalid(format!(
                "{len} bytes from {} on: no file is so long",
                options.offset
            )));
        }
        if let Placement::Only(channels) = options.placement {
            Placement::only(channels.into(), card.info())?;
        }
        let aligned = match options.at {
            At::Replacing(va) | At::Exactly(va) => va % HUGE == 0,
            At::Anywhere | At::Near(_) => true,
        };
        let huge = options.huge.unwrap_or(len >= HUGE && aligned) && card.info().tlb_huge.ways > 0;
        let wanted = Wanted {
            source: Arc::new(source),
            first: options.offset,
            len,
            prot: options.prot,
            size: if huge { FrameSize::Huge } else { FrameSize::Small },
            auto: huge && options.huge.is_none() && !options.on_host,
            on_host: options.on_host,
            table: !huge
                && !options.on_host
                && options.table.unwrap_or(len > card.info().held(FrameSize::Small) * PAGE),
            placement: options.placement,
            noted: options.noted && options.prot.write,
            at: options.at,
        };
        let inner = self.inner();
        if let At::Replacing(va) = options.at {
            let range = va..va.saturating_add(len);
            if !lock(&inner.space).written_streams(&range, None).is_empty() {
                // What is on its way to a stream arrives there first.
                inner.unmap(&range, None)?;
            }
        }
        let slot = Arc::downgrade(inner);
        let poke = move || {
            let Some(slot) = slot.upgrade() else { return };
            slot.rings.poke();
            if let Some(last) = Arc::into_inner(slot) {
                // Closing waits for the thread of the stream, which this is.
                drop(std::thread::Builder::new().spawn(move || drop(last)));
            }
        };
        if let Some(flow) = wanted.source.flow() {
            let started = flow.start(options.window, options.patience, poke);
            started
                .map_err(|e| Error::file(wanted.source.name(), "start a thread that moves its bytes", e))?;
        }
        let source = Arc::clone(&wanted.source);
        let (va, owner) = inner.space_at_rest().map_source(&inner.rings, wanted)?;
        let stream = source.feed().is_some().then_some(source);
        Ok(Mapping { slot: Arc::clone(inner), va, len, owner, mapped: true, stream })
    }

    /// Writes all pages of a range that the app has changed to their files: they are there when this returns, so that others can read
    /// them. The range begins at a multiple of 4096, and mappings cover it. An error names bytes that are lost, or not yet written.
    pub fn sync(&self, range: Range<u64>, mode: SyncMode) -> Result<()> {
        self.inner().sync(&range, mode)
    }

    /// Pages of a range, in mappings that note writes, which may be changed and not written.
    pub(crate) fn unwritten(&self, range: &Range<u64>) -> usize {
        lock(&self.inner().space).unwritten(range)
    }

    /// Writes some changed pages of a range; returns where to go on, if there is more. Errors of writing are kept for [`Slot::sync`].
    pub(crate) fn write_some(&self, range: &Range<u64>) -> Result<Option<u64>> {
        self.inner().sync_some(range, Then::Keep)
    }

    /// Removes all mappings from a range, which begins at a multiple of 4096. Parts of mappings that it does not cover stay; a page of
    /// 2 MiB of which a part is covered becomes pages of 4 KiB. Changed pages are written to their files first; an error says what is lost.
    /// Nothing is removed if a page of 2 MiB at an end of the range cannot be written.
    pub fn unmap(&self, range: Range<u64>) -> Result<()> {
        self.inner().unmap(&range, None)
    }

    /// Says how the app will use a range, which mappings cover.
    pub fn advise(&self, range: Range<u64>, advice: Advice) -> Result<()> {
        self.inner().advise(&range, advice)
    }

    /// As [`Advice::WillNeed`], until `stop` says so: it is asked after every few pages, since a range may have any size.
    pub fn load_ahead(&self, range: Range<u64>, stop: impl Fn() -> bool) -> Result<()> {
        self.inner().load_ahead(&range, stop)
    }

    /// Begins an operation that goes on while the program does something else. Those of a slot are done in order; the slot stays open
    /// until they have ended.
    pub fn begin(&self, operation: Operation) -> Result<Pending> {
        self.card().check_process()?;
        let inner = Arc::clone(self.inner());
        self.inner().worker.begin(move || match operation {
            Operation::Sync(range, mode) => inner.sync(&range, mode),
            Operation::Unmap(range) => inner.unmap(&range, None),
            Operation::Advise(range, advice) => inner.advise(&range, advice),
        })
    }
}

/// Each step locks the address space for itself, so that faults are served meanwhile.
impl SlotInner {
    fn sync(&self, range: &Range<u64>, mode: SyncMode) -> Result<()> {
        let _call = self.rings.card.call(self.rings.slot, "sync");
        let then = if mode.invalidate { Then::Drop } else { Then::Keep };
        let (failed, sources) = self.write(range, then)?;
        failed.map_or(Ok(()), Err)?;
        if mode.durable { sources.iter().try_for_each(|source| source.sync()) } else { Ok(()) }
    }

    fn write(&self, range: &Range<u64>, then: Then) -> Result<(Option<Error>, Vec<Arc<Source>>)> {
        self.rings.card.check_process()?;
        let (failed, sources) = {
            let _alone = lock(&self.syncs);
            self.space_at_rest().begin(&self.rings, range)?;
            self.step_through(range, then)?;
            self.space_at_rest().end(range, |_| true)
        };
        // The reader of a stream may be slow: no other sync waits for that.
        let streams = lock(&self.space).written_streams(range, None);
        if streams.is_empty() {
            return Ok((failed, sources));
        }
        let sent = self.send(&streams);
        // Errors of files are told to who writes them.
        let of_these = |source: &Arc<Source>| streams.iter().any(|(stream, _)| Arc::ptr_eq(stream, source));
        let failed = failed.or_else(|| self.space_at_rest().end(range, of_these).0);
        Ok((failed.or(sent.err()), sources))
    }

    fn step_through(&self, range: &Range<u64>, then: Then) -> Result<()> {
        let mut rest = Some(range.start);
        while let Some(from) = rest {
            rest = self.sync_some(&(from..range.end), then)?;
        }
        Ok(())
    }

    /// Writes files ahead of an operation that is done in one go, with the address space locked: for it to find little to write. Errors are
    /// left to it.
    fn write_ahead(&self, range: &Range<u64>) {
        let mut rest = Some(range.start).filter(|_| lock(&self.space).writes_files(range));
        while let Some(from) = rest {
            rest = self.sync_some(&(from..range.end), Then::Keep).unwrap_or(None);
        }
    }

    fn unmap(&self, range: &Range<u64>, owner: Option<u64>) -> Result<()> {
        let _call = self.rings.card.call(self.rings.slot, "unmap");
        self.rings.card.check_process()?;
        if range.start % PAGE != 0 || range.is_empty() {
            let (start, end) = (range.start, range.end);
            return Err(Error::Invalid(format!(
                "the range {start:#x} to {end:#x} is empty or does not begin at a multiple of {PAGE}"
            )));
        }
        self.write_ahead(range);
        let (streams, unmapped) = {
            let mut space = self.space_at_rest();
            let streams = space.written_streams(range, owner);
            (streams, space.unmap(&self.rings, range.clone(), owner))
        };
        let sent = self.send(&streams);
        for (source, until) in &streams {
            source.outlet().into_iter().for_each(|outlet| outlet.end_at(*until));
        }
        unmapped.and(sent)
    }

    fn load_ahead(&self, range: &Range<u64>, stop: impl Fn() -> bool) -> Result<()> {
        self.rings.card.check_process()?;
        let mut room = {
            let space = self.space_at_rest();
            space.check_range(range)?;
            space.room(&self.rings)
        };
        let mut rest = Some(range.start);
        while let Some(from) = rest.filter(|_| !stop()) {
            rest = self.space_at_rest().load_some(&self.rings, &(from..range.end), &mut room)?;
        }
        lock(&self.space).settled(&self.rings).map(drop)
    }

    fn advise(&self, range: &Range<u64>, advice: Advice) -> Result<()> {
        let _call = self.rings.card.call(self.rings.slot, "advise");
        self.rings.card.check_process()?;
        match advice {
            Advice::DontNeed => self.write(range, Then::Discard)?.0.map_or(Ok(()), Err),
            Advice::WillNeed => self.load_ahead(range, || false),
            hint => {
                self.space_at_rest().advise(&self.rings, range, hint)?;
                match hint {
                    Advice::Random | Advice::LowUse => Ok(()),
                    // Others are better served from card memory. Errors of writing are told by the next `sync` or `unmap`, as always.
                    _ => self.step_through(range, Then::Recall),
                }
            }
        }
    }
}

impl Mapping {
    /// Virtual address of the first byte.
    pub fn va(&self) -> u64 {
        self.va
    }

    /// Bytes mapped.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Its addresses.
    pub fn range(&self) -> Range<u64> {
        self.va..self.va + self.len
    }

    /// How far the stream has been read, if it is a mapping of one.
    pub fn stream(&self) -> Option<StreamState> {
        self.stream.as_ref()?.feed().map(Feed::state)
    }

    /// Writes all pages that the app has changed to the file. They are in the file when this returns; with `durable` also on
    /// stable storage. An error names the bytes that are lost, or not yet written.
    pub fn sync(&self, durable: bool) -> Result<()> {
        self.slot.sync(&self.range(), SyncMode { durable, invalidate: false })
    }

    /// Says how the app will use it.
    pub fn advise(&self, advice: Advice) -> Result<()> {
        self.slot.advise(&self.range(), advice)
    }

    /// Writes changed pages to the file and removes the mapping. Done when this returns.
    pub fn unmap(mut self) -> Result<()> {
        self.close()
    }

    /// Leaves the mapping to the slot: it stays until [`Slot::unmap`] or the end of the slot. Returns its addresses.
    pub fn leave(mut self) -> Range<u64> {
        self.mapped = false;
        self.stream = None;
        self.range()
    }

    fn close(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.mapped) {
            return Ok(());
        }
        // The mapping is the last one to hold the stream, which is closed with it.
        self.stream = None;
        self.slot.unmap(&self.range(), Some(self.owner))
    }
}

/// What holds for a mapping of a stream, or why it is not possible.
fn stream_options(source: &Source, options: MapOptions) -> Result<MapOptions> {
    let name = source.name().display();
    let written = source.outlet().is_some();
    let why = if options.prot.write && !written {
        "what is read in order cannot be written; map it for reading only"
    } else if options.prot.read && written {
        "what is written in order cannot be read; map it for writing only"
    } else if options.private || source.is_private() {
        "it cannot be private, as it has no bytes of its own that stay; map it shared"
    } else if options.offset != 0 {
        "it begins where it is; give offset 0"
    } else if options.on_host {
        "only a window of it is kept, so its pages are in card memory; do not ask for host memory"
    } else if options.huge == Some(true) {
        "its pages are of 4 KiB; do not ask for larger ones"
    } else if !WINDOWS.contains(&options.window) {
        "its window has 64 KiB to 1 GiB; give another one"
    } else {
        let table = Some(options.table.unwrap_or(false)); // it is never larger than its window
        let window = options.window.next_multiple_of(PAGE);
        return Ok(MapOptions { huge: Some(false), table, window, ..options });
    };
    Err(Error::Invalid(format!("{name}: a stream: {why}")))
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.slot.rings.card.is_ours() {
            return;
        }
        if let Err(error) = self.close() {
            tracing::error!(%error, va = self.va, "a mapping could not be removed cleanly");
        }
    }
}
