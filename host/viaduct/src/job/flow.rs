// SPDX-License-Identifier: Apache-2.0
//! Endpoints without positions: pipes, terminals, sockets, files of unknown length, any `Read` or `Write`.
//!
//! A stream may block for any time, and the slot must be served meanwhile. Therefore each has a thread that only moves
//! bytes between the stream and a ring of DMA memory, which limits the buffered data: a full ring stops the reader, and
//! with it the writer at the other end; an output ring that is not drained stops the app. The run's own thread only
//! checks positions. If it sleeps on the slot's interrupts when a position changes, it is woken by a no-operation
//! command.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::backing::kind_of;
use crate::card::sync::{block_signals, lock};
use crate::error::{Error, Result};
use crate::slot::inner::SlotInner;
use crate::slot::{ASK_STOP, StopIf, check_stop};
use viaduct_pci::{HostMemory, Process};

/// Bytes that a writable pipe accepts without blocking.
const PIPE_BUF: usize = 4096;
/// Bytes copied at a time for a stream that is not a descriptor.
const PIECE: usize = 64 << 10;
/// Longest pause between two attempts to open a FIFO without a reader.
const REOPEN_MAX: Duration = Duration::from_millis(20);
/// How long the end of a run waits for the thread of a stream to stop: a thread in a call of the user's `Read` or
/// `Write` cannot be interrupted and is abandoned.
const LEAVE: Duration = Duration::from_secs(1);

/// A stream that a run reads from or writes to, once.
#[derive(Clone)]
pub struct Stream {
    name: PathBuf,
    kind: Arc<Mutex<Option<Kind>>>,
    /// Device and inode of the file that a `Reader` or `Writer` represents, if stated.
    identity: Option<(u64, u64)>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.name).finish()
    }
}

impl Stream {
    fn new(name: String, kind: Kind) -> Self {
        Self { name: name.into(), kind: Arc::new(Mutex::new(Some(kind))), identity: None }
    }

    pub(crate) fn reader(name: String, from: Box<dyn Read + Send>) -> Self {
        Self::new(name, Kind::Reader(from))
    }

    pub(crate) fn writer(name: String, to: Box<dyn Write + Send>) -> Self {
        Self::new(name, Kind::Writer(to))
    }

    pub(crate) fn descriptor(name: String, fd: OwnedFd) -> Self {
        Self::new(name, Kind::Fd(fd))
    }

    pub(crate) fn stands_for(&mut self, meta: &Metadata) {
        self.identity = identity(meta);
    }

    /// The stream, taken by the run that uses it.
    pub(crate) fn take(&self) -> Result<Pipe> {
        match lock(&self.kind).take() {
            Some(kind) => {
                let pipe = Pipe::new(self.name.clone(), kind)?;
                Ok(Pipe { identity: pipe.identity.or(self.identity), ..pipe })
            }
            None => Err(Error::Invalid(format!(
                "{}: a stream serves one run, and this one is used already; open it again",
                self.name.display()
            ))),
        }
    }
}

/// Implementation of a stream.
enum Kind {
    Fd(OwnedFd),
    /// A FIFO to be written, which can be opened once it has a reader.
    Fifo(PathBuf),
    Reader(Box<dyn Read + Send>),
    Writer(Box<dyn Write + Send>),
}

/// A stream that belongs to a run.
pub(crate) struct Pipe {
    pub name: PathBuf,
    kind: Kind,
    /// Device and inode, if bytes written to it could be read elsewhere.
    pub identity: Option<(u64, u64)>,
    /// Its descriptor is of a regular file, as in a redirection.
    regular: bool,
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pipe").field(&self.name).finish()
    }
}

impl Pipe {
    fn new(name: PathBuf, kind: Kind) -> Result<Self> {
        let meta = match &kind {
            Kind::Fd(fd) => Some(
                fd.try_clone()
                    .and_then(|fd| File::from(fd).metadata())
                    .map_err(|e| Error::file(&name, "examine it", e))?,
            ),
            Kind::Fifo(path) => {
                Some(std::fs::metadata(path).map_err(|e| Error::file(&name, "examine it", e))?)
            }
            Kind::Reader(_) | Kind::Writer(_) => None,
        };
        let regular = meta.as_ref().is_some_and(|meta| meta.is_file());
        if let Some(what @ ("a directory" | "a block device")) = meta.as_ref().and_then(kind_of) {
            return Err(Error::NotAFile { path: name, what });
        }
        Ok(Self { name, kind, identity: meta.as_ref().and_then(identity), regular })
    }

    /// An open file without a reliable length.
    pub fn file(name: &Path, file: File) -> Result<Self> {
        Self::new(name.into(), Kind::Fd(file.into()))
    }

    /// A FIFO to be written: opened when the run begins.
    pub fn fifo(path: &Path) -> Result<Self> {
        Self::new(path.into(), Kind::Fifo(path.into()))
    }

    /// A copy of a descriptor of this process, to be read.
    pub fn input(name: &str, fd: RawFd) -> Result<Self> {
        Self::descriptor(name, fd, OFlag::O_WRONLY, "it is open for writing only")
    }

    /// The same, to be written.
    pub fn output(name: &str, fd: RawFd) -> Result<Self> {
        Self::descriptor(name, fd, OFlag::O_RDONLY, "it is open for reading only")
    }

    /// The other end of a pipe would never have data, or take any.
    fn descriptor(name: &str, fd: RawFd, other: OFlag, why: &str) -> Result<Self> {
        let failed = |e: Errno| Error::file(name, "use it", e.into());
        let flags = fcntl(fd, FcntlArg::F_GETFL).map_err(|e| match e {
            Errno::EBADF => Error::file(name, "use it, since it is not open in this process", e.into()),
            e => failed(e),
        })?;
        let flags = OFlag::from_bits_retain(flags);
        if flags & OFlag::O_ACCMODE == other {
            return Err(Error::Invalid(format!("{name}: {why}; give the other end")));
        }
        let copy = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(3)).map_err(failed)?;
        // SAFETY: the kernel has just created this descriptor; it has no other owner.
        let copy = unsafe { OwnedFd::from_raw_fd(copy) };
        Self::new(name.into(), Kind::Fd(copy))
    }

    /// Whether it is a file without a correct length, such as those of /proc: its end does not depend on a writer.
    pub fn is_file(&self) -> bool {
        self.regular
    }

    /// Reads it to its end, at most `most` bytes.
    pub fn read_all(self, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let fail = |e| Error::file(&self.name, "read it", e);
        let got = match self.kind {
            Kind::Fd(fd) => File::from(fd).take(most + 1).read_to_end(&mut bytes),
            Kind::Reader(from) => from.take(most + 1).read_to_end(&mut bytes),
            Kind::Fifo(_) | Kind::Writer(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        match got.map_err(fail)? as u64 {
            length if length > most => {
                let why = format!("{}: more than {most} bytes without a known length", self.name.display());
                Err(Error::Invalid(why))
            }
            _ => Ok(bytes),
        }
    }

    /// Writes all of these bytes, however long its reader takes, unless `stop` returns true.
    pub fn write_all(self, bytes: &[u8], stop: &mut Option<StopIf<'_>>) -> Result<()> {
        let Self { name, kind, regular, .. } = self;
        let shared = Shared::new(Weak::new()).map_err(|e| Error::file(&name, "start its thread", e))?;
        let written = AtomicU64::new(0);
        let work = || {
            let Some(mut end) = Sink::open(kind, regular, &shared)? else { return Ok(()) };
            let mut left = bytes;
            while !left.is_empty() {
                let Some(part) = end.write(left, &shared)? else { return Ok(()) };
                left = &left[part..];
                written.fetch_add(part as u64, Ordering::Relaxed);
            }
            end.flush()
        };
        // Not on this thread: see `block_signals`. A thread in a call of the user's `Write` is waited for, since it borrows the bytes.
        let done = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                block_signals();
                let result = guarded(work);
                shared.change(|positions| positions.left = true);
                shared.moved.notify_all();
                result
            });
            let mut stopped = Ok(());
            while stopped.is_ok() && !shared.has_left_within(ASK_STOP) {
                stopped = check_stop(stop);
            }
            if stopped.is_err() {
                shared.tell_to_stop();
            }
            let result = thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")));
            stopped.map(|()| result)
        })?;
        let written = written.into_inner();
        done.map_err(|source| Error::Write { path: name, written, source })
    }
}

/// Device and inode of a file from which written bytes can be read.
fn identity(meta: &Metadata) -> Option<(u64, u64)> {
    (meta.is_file() || meta.file_type().is_fifo()).then(|| (meta.dev(), meta.ino()))
}

/// Body of a stream's thread. A panic in the user's `Read` or `Write` is an ordinary error.
fn guarded<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(io::Error::other("its Read or Write panicked")))
}

/// State shared by a run and the thread of a stream.
struct Shared {
    positions: Mutex<Positions>,
    moved: Condvar,
    /// Readable once the thread is to stop.
    stop: EventFd,
    slot: Weak<SlotInner>,
}

#[derive(Default)]
struct Positions {
    /// Bytes put into the ring so far, and taken out of it.
    put: u64,
    got: u64,
    /// No more bytes will be put in.
    ended: bool,
    /// The thread has finished its work.
    over: bool,
    /// The thread has failed.
    error: Option<io::Error>,
    /// The thread is to stop.
    stopped: bool,
    /// The thread has ended.
    left: bool,
    /// The run wants to be woken.
    watched: bool,
}

impl Shared {
    fn new(slot: Weak<SlotInner>) -> io::Result<Self> {
        let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { positions: Mutex::default(), moved: Condvar::new(), stop, slot })
    }

    fn lock(&self) -> MutexGuard<'_, Positions> {
        lock(&self.positions)
    }

    /// Called by the thread after a change: wakes the run.
    fn change(&self, change: impl FnOnce(&mut Positions)) {
        let wake = {
            let mut positions = self.lock();
            change(&mut positions);
            std::mem::take(&mut positions.watched) && !positions.stopped
        };
        // Not under the lock: a run checks positions under that of its slot.
        if let Some(slot) = wake.then(|| self.slot.upgrade()).flatten() {
            slot.rings.wake();
        }
    }

    /// Waits until `ready` returns a result; `None` if the thread is to stop first.
    fn wait<T>(&self, mut ready: impl FnMut(&Positions) -> Option<T>) -> Option<T> {
        let mut positions = self.lock();
        loop {
            if positions.stopped {
                return None;
            }
            if let Some(response) = ready(&positions) {
                return Some(response);
            }
            positions = self.moved.wait(positions).unwrap_or_else(|e| e.into_inner());
        }
    }

    fn tell_to_stop(&self) {
        self.lock().stopped = true;
        // Cannot fail: the counter is far from its limit.
        let _ = self.stop.write(1);
        self.moved.notify_all();
    }

    /// Waits until the thread has ended, with a limit.
    fn has_left_within(&self, limit: Duration) -> bool {
        let waited = self.moved.wait_timeout_while(self.lock(), limit, |positions| !positions.left);
        waited.unwrap_or_else(|e| e.into_inner()).0.left
    }

    /// Waits until the descriptor is ready, or for `limit`; `false` if the thread is to stop first.
    fn ready(&self, fd: Option<BorrowedFd>, events: PollFlags, limit: PollTimeout) -> io::Result<bool> {
        let mut polled = vec![PollFd::new(self.stop.as_fd(), PollFlags::POLLIN)];
        polled.extend(fd.map(|fd| PollFd::new(fd, events)));
        loop {
            match poll(&mut polled, limit) {
                Ok(_) => return Ok(!polled[0].any().unwrap_or(true)),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// A stream being read or written by its thread.
pub(crate) struct Flow {
    shared: Arc<Shared>,
    name: PathBuf,
    writes: bool,
    /// The last result of [`Flow::look`].
    seen: (u64, bool),
    process: Process,
}

impl Flow {
    /// Begins to read into the first `size` bytes of `memory`, used as a ring, for a run on that slot.
    pub fn reading(pipe: Pipe, memory: Arc<HostMemory>, size: u64, slot: &Arc<SlotInner>) -> Result<Self> {
        Self::start(pipe, slot, false, move |kind, _, shared| {
            read_all(Source::open(kind)?, &Ring { memory, size }, shared)
        })
    }

    /// Begins to write out of the first `size` bytes of `memory`, used as a ring, for a run on that slot.
    pub fn writing(pipe: Pipe, memory: Arc<HostMemory>, size: u64, slot: &Arc<SlotInner>) -> Result<Self> {
        Self::start(pipe, slot, true, move |kind, regular, shared| {
            let Some(sink) = Sink::open(kind, regular, shared)? else { return Ok(()) };
            write_all(sink, &Ring { memory, size }, shared)
        })
    }

    fn start(
        pipe: Pipe,
        slot: &Arc<SlotInner>,
        writes: bool,
        work: impl FnOnce(Kind, bool, &Shared) -> io::Result<()> + Send + 'static,
    ) -> Result<Self> {
        let Pipe { name, kind, regular, .. } = pipe;
        let fail = |e| Error::file(&name, "start its thread", e);
        let shared = Arc::new(Shared::new(Arc::downgrade(slot)).map_err(fail)?);
        let thread = std::thread::Builder::new().name("stream".into()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                block_signals();
                let result = guarded(|| work(kind, regular, &shared));
                shared.change(|positions| {
                    positions.left = true;
                    positions.over = result.is_ok();
                    positions.error = result.err();
                });
                shared.moved.notify_all();
            }
        });
        thread.map_err(fail)?;
        Ok(Self { shared, name, writes, seen: (0, false), process: Process::current() })
    }

    /// Name for messages.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The thread's position in bytes, and whether it has reached the end; or its error.
    pub fn look(&mut self) -> Result<(u64, bool)> {
        let mut positions = self.shared.lock();
        if let Some(source) = positions.error.take() {
            let path = self.name.clone();
            return Err(match self.writes {
                true => Error::Write { path, written: positions.got, source },
                false => Error::file(path, "read it", source),
            });
        }
        self.seen = self.progress(&positions);
        Ok(self.seen)
    }

    /// The run has put in or taken out `bytes` more.
    pub fn advance(&self, bytes: u64) {
        let mut positions = self.shared.lock();
        if self.writes {
            positions.put += bytes;
        } else {
            positions.got += bytes;
        }
        drop(positions);
        self.shared.moved.notify_all();
    }

    /// The run will put no more bytes in.
    pub fn end(&self) {
        self.shared.lock().ended = true;
        self.shared.moved.notify_all();
    }

    /// Requests to be woken upon a change.
    pub fn watch(&self) {
        self.shared.lock().watched = true;
    }

    /// Whether [`Flow::look`] would return a new result.
    pub fn has_news(&self) -> bool {
        let positions = self.shared.lock();
        positions.error.is_some() || self.progress(&positions) != self.seen
    }

    fn progress(&self, positions: &Positions) -> (u64, bool) {
        (if self.writes { positions.got } else { positions.put }, positions.over)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return;
        }
        self.shared.tell_to_stop();
        if !self.shared.has_left_within(LEAVE) {
            tracing::debug!(name = %self.name.display(), "the thread of a stream is abandoned in a call that does not return");
        }
    }
}

/// Memory used as a ring.
struct Ring {
    memory: Arc<HostMemory>,
    size: u64,
}

impl Ring {
    /// Offset of byte `position`, and how many of `bytes` follow it contiguously.
    fn piece(&self, position: u64, bytes: u64) -> (usize, usize) {
        let at = position % self.size;
        (at as usize, bytes.min(self.size - at) as usize)
    }

    /// First byte of a piece.
    fn ptr(&self, (at, len): (usize, usize)) -> *mut u8 {
        assert!(at + len <= self.memory.len(), "a ring is inside its memory");
        self.memory.as_ptr().wrapping_add(at)
    }
}

fn read_all(mut from: Source, ring: &Ring, shared: &Shared) -> io::Result<()> {
    loop {
        let room = |p: &Positions| (p.put - p.got < ring.size).then(|| (p.put, ring.size - (p.put - p.got)));
        let Some((put, room)) = shared.wait(room) else { return Ok(()) };
        match from.read(ring, ring.piece(put, room), shared)? {
            None => return Ok(()),
            Some(0) => {
                shared.lock().ended = true;
                return Ok(());
            }
            Some(got) => shared.change(|p| p.put += got as u64),
        }
    }
}

fn write_all(mut to: Sink, ring: &Ring, shared: &Shared) -> io::Result<()> {
    loop {
        let left = |p: &Positions| (p.put > p.got || p.ended).then_some((p.got, p.put - p.got));
        match shared.wait(left) {
            None => return Ok(()),
            Some((_, 0)) => return to.flush(),
            Some((got, left)) => {
                let piece = ring.piece(got, left);
                let Some(written) = to.write_ring(ring, piece, shared)? else { return Ok(()) };
                shared.change(|p| p.got += written as u64);
            }
        }
    }
}

/// The thread's end of a stream that is read.
enum Source {
    Fd(OwnedFd),
    Reader(Box<dyn Read + Send>, Vec<u8>),
}

impl Source {
    fn open(kind: Kind) -> io::Result<Self> {
        match kind {
            Kind::Fd(fd) => Ok(Self::Fd(fd)),
            Kind::Reader(from) => Ok(Self::Reader(from, vec![0; PIECE])),
            Kind::Fifo(_) | Kind::Writer(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "this stream can only be written"))
            }
        }
    }

    /// Reads some bytes into a piece of the ring: 0 at the end, `None` if told to stop.
    fn read(&mut self, ring: &Ring, piece: (usize, usize), shared: &Shared) -> io::Result<Option<usize>> {
        let ptr = ring.ptr(piece);
        match self {
            Self::Fd(fd) => loop {
                // The descriptor may be shared with other programs, so it must not be made non-blocking.
                if !shared.ready(Some(fd.as_fd()), PollFlags::POLLIN, PollTimeout::NONE)? {
                    return Ok(None);
                }
                // SAFETY: `ptr` checked that the piece is in the mapping, which `ring` keeps; no reference covers it.
                let got = unsafe { libc::read(fd.as_raw_fd(), ptr.cast(), piece.1) };
                if let Some(got) = again_later(got)? {
                    return Ok(Some(got));
                }
            },
            Self::Reader(from, bytes) => loop {
                let most = piece.1.min(bytes.len());
                match from.read(&mut bytes[..most]) {
                    Ok(got) => {
                        let got = got.min(most);
                        ring.memory.write(piece.0, &bytes[..got]);
                        return Ok(Some(got));
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            },
        }
    }
}

/// The thread's end of a stream that is written.
enum Sink {
    /// With the largest number of bytes per write.
    Fd(OwnedFd, usize),
    Writer(Box<dyn Write + Send>, Vec<u8>),
}

impl Sink {
    /// `None` if told to stop before the stream has a reader.
    fn open(kind: Kind, regular: bool, shared: &Shared) -> io::Result<Option<Self>> {
        let fd = match kind {
            Kind::Writer(to) => return Ok(Some(Self::Writer(to, vec![0; PIECE]))),
            Kind::Reader(_) => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "this stream can only be read"));
            }
            Kind::Fd(fd) => fd,
            Kind::Fifo(path) => match open_fifo(&path, shared)? {
                Some(fd) => fd,
                None => return Ok(None),
            },
        };
        let flags = OFlag::from_bits_truncate(fcntl(fd.as_raw_fd(), FcntlArg::F_GETFL)?);
        let never_waits = regular || flags.contains(OFlag::O_NONBLOCK);
        Ok(Some(Self::Fd(fd, if never_waits { usize::MAX } else { PIPE_BUF })))
    }

    fn write_ring(
        &mut self,
        ring: &Ring,
        piece: (usize, usize),
        shared: &Shared,
    ) -> io::Result<Option<usize>> {
        match self {
            Self::Fd(fd, most) => {
                // SAFETY: `ptr` checked that the piece is in the mapping, which `ring` keeps; no reference covers it.
                unsafe { write_fd(fd, *most, ring.ptr(piece), piece.1, shared) }
            }
            Self::Writer(to, bytes) => {
                let part = piece.1.min(bytes.len());
                ring.memory.read(piece.0, &mut bytes[..part]);
                to.write_all(&bytes[..part])?;
                Ok(Some(part))
            }
        }
    }

    /// Writes some bytes; `None` if told to stop first.
    fn write(&mut self, bytes: &[u8], shared: &Shared) -> io::Result<Option<usize>> {
        match self {
            Self::Fd(fd, most) => {
                // SAFETY: the bytes are borrowed for the call.
                unsafe { write_fd(fd, *most, bytes.as_ptr(), bytes.len(), shared) }
            }
            Self::Writer(to, _) => {
                let part = bytes.len().min(PIECE);
                to.write_all(&bytes[..part])?;
                Ok(Some(part))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Fd(..) => Ok(()),
            Self::Writer(to, _) => to.flush(),
        }
    }
}

/// Writes some of `len` bytes at `from`, at most `most`; `None` if told to stop first.
///
/// # Safety
/// `from` is `len` bytes that can be read during the call.
unsafe fn write_fd(
    fd: &OwnedFd,
    most: usize,
    from: *const u8,
    len: usize,
    shared: &Shared,
) -> io::Result<Option<usize>> {
    loop {
        // The descriptor may be shared with other programs, so it must not be made non-blocking. A pipe that is
        // ready accepts `PIPE_BUF` bytes.
        if !shared.ready(Some(fd.as_fd()), PollFlags::POLLOUT, PollTimeout::NONE)? {
            return Ok(None);
        }
        // SAFETY: as the caller promises; the kernel only reads.
        let written = unsafe { libc::write(fd.as_raw_fd(), from.cast(), len.min(most)) };
        match again_later(written)? {
            Some(0) => return Err(io::ErrorKind::WriteZero.into()),
            Some(written) => return Ok(Some(written)),
            None => {}
        }
    }
}

/// Bytes moved by a read or write; `None` if it should be retried once the descriptor is ready.
fn again_later(moved: libc::ssize_t) -> io::Result<Option<usize>> {
    if let Ok(moved) = usize::try_from(moved) {
        return Ok(Some(moved));
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
        _ => Err(error),
    }
}

/// Opens a FIFO for writing as soon as it has a reader; `None` if told to stop first. It polls, since there is no notification.
fn open_fifo(path: &Path, shared: &Shared) -> io::Result<Option<OwnedFd>> {
    let mut pause = Duration::from_millis(1);
    loop {
        let opened =
            OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
        match opened {
            Ok(file) if file.metadata()?.file_type().is_fifo() => return Ok(Some(file.into())),
            Ok(_) => return Err(io::Error::other("it is not a pipe any more")),
            Err(e) if e.raw_os_error() == Some(libc::ENXIO) => {}
            Err(e) => return Err(e),
        }
        let limit = PollTimeout::try_from(pause).unwrap_or(PollTimeout::from(20u8));
        if !shared.ready(None, PollFlags::empty(), limit)? {
            return Ok(None);
        }
        pause = (pause * 2).min(REOPEN_MAX);
    }
}
