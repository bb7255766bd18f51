// SPDX-License-Identifier: Apache-2.0
//! The source of a mapping: a file or a buffer of this program.

pub(crate) mod feed;
pub(crate) mod outlet;
pub(crate) mod pump;
pub(crate) mod threads;

use std::alloc::Layout;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::socket::{SockType, getsockopt, sockopt};

use crate::backing::feed::Feed;
use crate::backing::outlet::Outlet;
use crate::backing::pump::Flow;
use crate::card::dma::DmaBuffer;
use crate::card::sync::lock;
use crate::error::{Error, Result};
use crate::protocol::desc::PAGE;
use viaduct_pci::without_sigxfsz;

/// Bytes in this program's memory that a run reads or fills.
#[derive(Debug, Clone, Default)]
pub struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl SharedBytes {
    /// Wraps bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(bytes)))
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        lock(&self.0).len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// Takes the bytes and leaves an empty buffer.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0))
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        lock(&self.0).clone()
    }

    /// Whether both are the same buffer.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// Copies up to `len` bytes at `position` into a buffer. Fewer only at the end.
    pub(crate) fn read(&self, to: &DmaBuffer, offset: usize, len: usize, position: u64) -> usize {
        let bytes = lock(&self.0);
        let start = usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(len).min(bytes.len());
        to.memory().write(offset, &bytes[start..end]);
        end - start
    }

    /// Copies bytes of a buffer to `position`, growing if needed.
    pub(crate) fn write(&self, from: &DmaBuffer, offset: usize, len: usize, position: u64) -> io::Result<()> {
        let mut bytes = lock(&self.0);
        let start = usize::try_from(position).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let end = start.checked_add(len).ok_or(io::ErrorKind::OutOfMemory)?;
        if bytes.len() < end {
            let more = end - bytes.len();
            bytes.try_reserve(more).map_err(|_| io::ErrorKind::OutOfMemory)?;
            bytes.resize(end, 0);
        }
        from.memory().read(offset, &mut bytes[start..end]);
        Ok(())
    }
}

/// Zero bytes, which take memory when they are used; `None` if there is not enough.
pub(crate) fn zeroed(len: u64) -> Option<Vec<u8>> {
    let size = usize::try_from(len).ok()?;
    let layout = Layout::array::<u8>(size).ok()?;
    if size == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout has a size that is not 0.
    let bytes = unsafe { std::alloc::alloc_zeroed(layout) };
    // SAFETY: the global allocator gave it for this layout: `size` initialised bytes of alignment 1, and no more.
    (!bytes.is_null()).then(|| unsafe { Vec::from_raw_parts(bytes, size, size) })
}

/// Opens a regular file for reading, or for reading and writing.
pub(crate) fn open_regular(path: &Path, write: bool) -> Result<(File, u64)> {
    // Without O_NONBLOCK, opening a FIFO would wait for its other end.
    let file = OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
        .map_err(|e| open_error(path, if write { "open it for writing" } else { "open it" }, e))?;
    let meta = file.metadata().map_err(|e| Error::file(path, "examine it", e))?;
    match kind_of(&meta) {
        None => Ok((file, meta.len())),
        Some(what) => Err(Error::NotAFile { path: path.into(), what }),
    }
}

/// Why a path cannot be opened. The type of the file says more than the system's error: a directory cannot be opened for writing, a
/// socket not at all. Where the folder is missing, that is what to mend.
pub(crate) fn open_error(path: &Path, doing: &'static str, source: io::Error) -> Error {
    match std::fs::metadata(path).ok().as_ref().and_then(kind_of) {
        Some(what @ ("a directory" | "a socket")) => Error::NotAFile { path: path.into(), what },
        None if source.kind() == io::ErrorKind::NotFound && path.parent().is_some_and(is_missing) => {
            let why = "there is no such folder; create it first";
            Error::file(path, doing, io::Error::new(source.kind(), why))
        }
        _ => Error::file(path, doing, source),
    }
}

fn is_missing(folder: &Path) -> bool {
    folder != Path::new("") && !folder.exists()
}

/// The type of a file that is not a regular one.
pub(crate) fn kind_of(meta: &std::fs::Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a directory")
    } else if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_block_device() {
        Some("a block device")
    } else {
        Some("a character device")
    }
}

/// Source of a mapping's pages, and destination of changed ones.
#[derive(Debug)]
pub struct Source {
    pub(crate) kind: SourceKind,
    name: PathBuf,
    len: u64,
    /// Dropped with it, after its file is closed.
    companion: Option<Companion>,
    device: Option<Arc<dyn Device>>,
}

/// A device that takes time to read and write a source: for measurements on a simulated card, whose time stands still while the host reads, and
/// for tests.
pub trait Device: Send + Sync {
    /// Begins to read these bytes, and returns at once. `done` is called, by any thread, once they have been read; they cannot be read
    /// if it is dropped instead.
    fn read(&self, position: u64, len: u64, done: Box<dyn FnOnce() + Send>);

    /// Takes the time that it takes to write these bytes, which are written when it returns.
    fn write(&self, position: u64, len: u64) {
        let _ = (position, len);
    }
}

impl fmt::Debug for dyn Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Device")
    }
}

struct Companion(#[allow(dead_code)] Arc<dyn Any + Send + Sync>); // held, never looked at

impl fmt::Debug for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Companion")
    }
}

#[derive(Debug)]
pub(crate) enum SourceKind {
    File {
        file: File,
        offset: u64,
        writable: bool,
        linked: bool,
    },
    Bytes(SharedBytes),
    /// A pipe or stream socket that is read in order.
    Stream(Feed),
    /// A pipe or stream socket that is written in order.
    Sink(Outlet),
    /// What is written stays here, and the source below is only read.
    Private {
        below: Box<Source>,
        written: Mutex<BTreeMap<u64, Box<[u8]>>>,
    },
}

impl Source {
    /// A whole file that is only read.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self> {
        Self::open(path.into(), false)
    }

    /// A whole file that is read and written. Its length stays as it is.
    pub fn file_mut(path: impl Into<PathBuf>) -> Result<Self> {
        Self::open(path.into(), true)
    }

    /// A new file of `len` zero bytes; an older one of that name is emptied first.
    pub fn create(path: impl Into<PathBuf>, len: u64) -> Result<Self> {
        let path = path.into();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(|e| open_error(&path, "create it", e))?;
        without_sigxfsz(|| file.set_len(len)).map_err(|e| Error::file(&path, "set its length", e))?;
        Ok(Self {
            kind: SourceKind::File { file, offset: 0, writable: true, linked: true },
            name: path,
            len,
            companion: None,
            device: None,
        })
    }

    /// An open file from byte `offset` on. `name` is for messages. That the file loses its last name is the business of who has opened
    /// it: no error.
    pub fn from_file(file: File, name: impl Into<PathBuf>, offset: u64, writable: bool) -> Result<Self> {
        let name = name.into();
        let meta = file.metadata().map_err(|e| Error::file(&name, "examine it", e))?;
        if let Some(what) = kind_of(&meta) {
            return Err(Error::NotAFile { path: name, what });
        }
        let len = meta.len().saturating_sub(offset);
        Ok(Self {
            kind: SourceKind::File { file, offset, writable, linked: false },
            name,
            len,
            companion: None,
            device: None,
        })
    }

    /// A pipe, FIFO or stream socket that the app reads: byte `i` of the mapping is byte `i` of what is read from now on. `name` is for
    /// messages. [`MapOptions`](crate::MapOptions) has its window and the longest wait for data.
    pub fn stream(fd: impl Into<OwnedFd>, name: impl Into<PathBuf>) -> Result<Self> {
        let (file, socket, name) = open_stream(fd.into(), name.into(), false)?;
        let feed = Feed::new(file, socket).map_err(|e| Error::file(&name, "watch it", e))?;
        Ok(Self { kind: SourceKind::Stream(feed), name, len: 0, companion: None, device: None })
    }

    /// A pipe, FIFO or stream socket that the app writes: byte `i` of the mapping is byte `i` of what is written to it from now on. Pages
    /// may be written in any order within half a window ([`MapOptions`](crate::MapOptions)), and are sent in order: once the app has gone
    /// on to one that is so far behind, and as far as [`Slot::sync`](crate::Slot::sync) and [`Slot::unmap`](crate::Slot::unmap) say.
    pub fn sink(fd: impl Into<OwnedFd>, name: impl Into<PathBuf>) -> Result<Self> {
        let (file, socket, name) = open_stream(fd.into(), name.into(), true)?;
        let outlet = Outlet::new(file, socket).map_err(|e| Error::file(&name, "watch it", e))?;
        Ok(Self { kind: SourceKind::Sink(outlet), name, len: 0, companion: None, device: None })
    }

    /// A FIFO by its path, as [`Source::stream`]. It may have no writer yet.
    pub fn fifo(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = OpenOptions::new()
            .read(true)
            // Else this would wait for a writer.
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(&path)
            .map_err(|e| open_error(&path, "open it", e))?;
        Self::stream(file, path)
    }

    /// The stream that is read or written, if it is one.
    pub(crate) fn flow(&self) -> Option<Arc<dyn Flow>> {
        let written = || self.outlet().map(Outlet::flow);
        self.feed().map(Feed::flow).or_else(written)
    }

    /// The stream that is read, if it is one.
    pub(crate) fn feed(&self) -> Option<&Feed> {
        match &self.kind {
            SourceKind::Stream(feed) => Some(feed),
            SourceKind::Private { below, .. } => below.feed(),
            SourceKind::File { .. } | SourceKind::Bytes(_) | SourceKind::Sink(_) => None,
        }
    }

    /// The stream that is written, if it is one.
    pub(crate) fn outlet(&self) -> Option<&Outlet> {
        match &self.kind {
            SourceKind::Sink(outlet) => Some(outlet),
            SourceKind::Private { below, .. } => below.outlet(),
            SourceKind::File { .. } | SourceKind::Bytes(_) | SourceKind::Stream(_) => None,
        }
    }

    /// Bytes of this program, read and written in place.
    pub fn bytes(bytes: SharedBytes) -> Self {
        let len = bytes.len();
        Self {
            kind: SourceKind::Bytes(bytes),
            name: "host buffer".into(),
            len,
            companion: None,
            device: None,
        }
    }

    /// `len` zero bytes that are discarded with the mapping.
    pub fn anonymous(len: u64) -> Result<Self> {
        let zeros = zeroed(len).ok_or(Error::OutOfMemory { bytes: len })?;
        Ok(Self::bytes(SharedBytes::new(zeros)))
    }

    /// The same bytes, but what is written stays with the mapping, and is gone with it.
    pub fn private(self) -> Self {
        let (name, len) = (self.name.clone(), self.len);
        Self {
            kind: SourceKind::Private { below: Box::new(self), written: Mutex::default() },
            name,
            len,
            companion: None,
            device: None,
        }
    }

    /// Keeps a value until nothing of the source is mapped any more: for those who count what mappings hold.
    pub fn keeping(mut self, value: Arc<dyn Any + Send + Sync>) -> Self {
        self.companion = Some(Companion(value));
        self
    }

    /// The same bytes, on a device.
    pub fn on(mut self, device: Arc<dyn Device>) -> Self {
        self.device = Some(device);
        self
    }

    fn open(path: PathBuf, writable: bool) -> Result<Self> {
        let (file, len) = open_regular(&path, writable)?;
        Ok(Self {
            kind: SourceKind::File { file, offset: 0, writable, linked: true },
            name: path,
            len,
            companion: None,
            device: None,
        })
    }

    /// Bytes that can be mapped.
    #[allow(clippy::len_without_is_empty)] // an empty one cannot be mapped
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Name for messages.
    pub fn name(&self) -> &Path {
        &self.name
    }

    pub(crate) fn is_writable(&self) -> bool {
        !matches!(self.kind, SourceKind::File { writable: false, .. } | SourceKind::Stream(_))
    }

    /// Whether writes to it outlive this program.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self.kind, SourceKind::File { writable: true, .. })
    }

    /// Whether it may take time to write to it.
    pub(crate) fn takes_time(&self) -> bool {
        !self.is_private() && (self.device.is_some() || matches!(self.kind, SourceKind::File { .. }))
    }

    /// The device that it is on.
    pub(crate) fn device(&self) -> Option<&Arc<dyn Device>> {
        match &self.kind {
            SourceKind::Private { below, .. } => self.device.as_ref().or_else(|| below.device()),
            _ => self.device.as_ref(),
        }
    }

    /// Tells the disk of bytes of a file that will be read, so that it can work on several requests. Waits for none of them.
    pub(crate) fn will_need(&self, position: u64, len: u64) {
        if let Some(device) = self.device() {
            let len = len.min(self.len.saturating_sub(position));
            if len > 0 {
                device.read(position, len, Box::new(|| ()));
            }
            return;
        }
        let (file, offset) = match &self.kind {
            SourceKind::File { file, offset, .. } => (file, offset),
            SourceKind::Private { below, .. } => return below.will_need(position, len),
            SourceKind::Bytes(_) | SourceKind::Stream(_) | SourceKind::Sink(_) => return,
        };
        let (Ok(at), Ok(len)) = (i64::try_from(offset + position), i64::try_from(len)) else { return };
        // SAFETY: the descriptor is open as long as `file` is; no memory is passed. It is advice: that it fails changes nothing.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), at, len, libc::POSIX_FADV_WILLNEED) };
    }

    /// As [`Source::read`], if it need not wait for a disk; else `None`.
    pub(crate) fn read_now(
        &self,
        to: &DmaBuffer,
        offset: usize,
        len: usize,
        position: u64,
    ) -> Option<Result<usize>> {
        match &self.kind {
            _ if self.device.is_some() => None,
            SourceKind::File { file, offset: base, .. } => to
                .read_cached(offset, len, file, base + position)
                .map_err(|e| Error::file(&self.name, "read it", e))
                .transpose(),
            SourceKind::Private { below, written } => below
                .read_now(to, offset, len, position)
                .map(|got| Ok(overlay(&lock(written), got?, to, offset, len, position))),
            _ => Some(self.read(to, offset, len, position)),
        }
    }

    /// Reads up to `len` bytes at `position` into a buffer. Fewer only at its present end.
    pub(crate) fn read(&self, to: &DmaBuffer, offset: usize, len: usize, position: u64) -> Result<usize> {
        match &self.kind {
            SourceKind::File { file, offset: base, .. } => to
                .read_file(offset, len, file, base + position)
                .map_err(|e| Error::file(&self.name, "read it", e)),
            SourceKind::Bytes(bytes) => Ok(bytes.read(to, offset, len, position)),
            SourceKind::Stream(feed) => {
                feed.read(to, offset, len, position).map_err(|e| Error::file(&self.name, "read it", e))
            }
            SourceKind::Sink(outlet) => {
                outlet.read(to, offset, len, position);
                Ok(len)
            }
            SourceKind::Private { below, written } => {
                let got = below.read(to, offset, len, position)?;
                Ok(overlay(&lock(written), got, to, offset, len, position))
            }
        }
    }

    /// Waits until a stream has taken what was written to it before a byte. The error says what it has not taken.
    pub(crate) fn drain(&self, until: u64) -> Result<()> {
        let Some(outlet) = self.outlet() else { return Ok(()) };
        let path = || self.name.clone();
        outlet.drain().map_err(|(written, source)| Error::Write { path: path(), written, source })?;
        let Some((start, end)) = outlet.stuck(until) else { return Ok(()) };
        let why = format!("bytes are sent in order, and byte {start} was never written");
        Err(Error::Lost { path: path(), start, end, why, os: None })
    }

    /// Discards what was written to a range of whole pages of a private source.
    pub(crate) fn forget(&self, range: Range<u64>) {
        if let SourceKind::Private { written, .. } = &self.kind {
            lock(written).retain(|at, _| !range.contains(at));
        }
    }

    /// Its length now, which may differ from that when it was opened; `None` if it is not a file.
    pub(crate) fn present_len(&self) -> Option<u64> {
        match &self.kind {
            SourceKind::File { file, offset, .. } => {
                Some(file.metadata().ok()?.len().saturating_sub(*offset))
            }
            SourceKind::Private { below, .. } => below.present_len(),
            _ => None,
        }
    }

    /// Whether it keeps what is written to itself.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self.kind, SourceKind::Private { .. })
    }

    /// Writes bytes of a buffer to `position`, never beyond the present end. The error says which bytes are lost, and
    /// whether a retry may help.
    pub(crate) fn write(
        &self,
        from: &DmaBuffer,
        offset: usize,
        len: usize,
        position: u64,
    ) -> std::result::Result<(), WriteBack> {
        let failed = |written: u64, why: String, os: Option<i32>, again: bool| WriteBack {
            error: Error::Lost {
                path: self.name.clone(),
                start: position + written,
                end: position + len as u64,
                why,
                os,
            },
            again,
        };
        let by_system = |written: u64, e: io::Error| failed(written, e.to_string(), e.raw_os_error(), true);
        let lost = |written: u64, why: String| failed(written, why, None, false);
        if let (Some(device), true) = (&self.device, self.takes_time()) {
            device.write(position, len as u64);
        }
        match &self.kind {
            SourceKind::File { file, offset: base, linked, .. } => {
                let meta = file.metadata().map_err(|e| by_system(0, e))?;
                let room = meta.len().saturating_sub(base + position).min(len as u64);
                from.write_file(offset, room as usize, file, base + position)
                    .map_err(|(written, e)| by_system(written as u64, e))?;
                if room < len as u64 {
                    return Err(lost(
                        room,
                        format!("the file was truncated to {} bytes meanwhile", meta.len()),
                    ));
                }
                if *linked && meta.nlink() == 0 {
                    return Err(lost(0, "the file was removed meanwhile".into()));
                }
                Ok(())
            }
            SourceKind::Bytes(bytes) => {
                let room = bytes.len().saturating_sub(position).min(len as u64);
                bytes.write(from, offset, room as usize, position).map_err(|e| by_system(0, e))?;
                if room < len as u64 {
                    return Err(lost(
                        room,
                        format!("the buffer was truncated to {} bytes meanwhile", bytes.len()),
                    ));
                }
                Ok(())
            }
            SourceKind::Stream(_) => Err(lost(0, "the stream is only read".into())),
            // Errors of the stream are told when it is waited for.
            SourceKind::Sink(outlet) => {
                outlet.store(from, offset, len, position);
                Ok(())
            }
            SourceKind::Private { written, .. } => {
                let mut written = lock(written);
                for done in (0..len).step_by(PAGE as usize) {
                    let mut bytes = vec![0; (len - done).min(PAGE as usize)].into_boxed_slice();
                    from.memory().read(offset + done, &mut bytes);
                    written.insert(position + done as u64, bytes);
                }
                Ok(())
            }
        }
    }

    /// Waits until all writes are on stable storage.
    pub(crate) fn sync(&self) -> Result<()> {
        match &self.kind {
            SourceKind::File { file, .. } => {
                file.sync_data().map_err(|e| Error::file(&self.name, "write it to stable storage", e))
            }
            SourceKind::Bytes(_)
            | SourceKind::Stream(_)
            | SourceKind::Sink(_)
            | SourceKind::Private { .. } => Ok(()),
        }
    }
}

/// Puts pages of a private source that were written over what was read, and returns how many bytes there are then.
fn overlay(
    written: &BTreeMap<u64, Box<[u8]>>,
    mut got: usize,
    to: &DmaBuffer,
    offset: usize,
    len: usize,
    position: u64,
) -> usize {
    for (&at, bytes) in written.range(position..position + len as u64) {
        let from = (at - position) as usize;
        let part = bytes.len().min(len - from);
        // A page that was changed outlives the end of a file that was truncated.
        if from <= got {
            to.memory().write(offset + from, &bytes[..part]);
            got = got.max(from + part);
        }
    }
    got
}

/// A pipe or stream socket, and whether it is a socket.
fn open_stream(fd: OwnedFd, name: PathBuf, write: bool) -> Result<(File, bool, PathBuf)> {
    let file = File::from(fd);
    let meta = file.metadata().map_err(|e| Error::file(&name, "examine it", e))?;
    let socket = match kind_of(&meta) {
        Some("a pipe") => false,
        Some("a socket") if getsockopt(&file, sockopt::SockType) == Ok(SockType::Stream) => true,
        what => {
            let what =
                if what == Some("a socket") { "a socket of messages" } else { what.unwrap_or("a file") };
            let text = format!("{}: is {what}, not a pipe or a stream socket", name.display());
            return Err(Error::Invalid(text));
        }
    };
    let flags = fcntl(file.as_raw_fd(), FcntlArg::F_GETFL);
    let flags = flags.map_err(|e| Error::file(&name, "examine it", e.into()))?;
    let (other, what) = if write { (libc::O_RDONLY, "writing") } else { (libc::O_WRONLY, "reading") };
    match flags & libc::O_ACCMODE == other {
        true => Err(Error::Access { path: name, what }),
        false => Ok((file, socket, name)),
    }
}

/// A page that could not be written back.
#[derive(Debug)]
pub(crate) struct WriteBack {
    pub error: Error,
    /// A retry may help: the page is kept.
    pub again: bool,
}
