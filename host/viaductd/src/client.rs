// SPDX-License-Identifier: Apache-2.0
//! The client: slots of a card that a daemon serves, with the methods that a local slot has.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, shutdown, socket_with,
};
use viaduct::{Advice, Port, Register, Schedule, SlotStatus, SyncMode};
use viaduct_pci::{Process, Withheld};

use crate::view::View;
pub use crate::wire::{App, DeniedAccess, Kind, MapOptions, Refusal};
use crate::wire::{Call, MAGIC, MAX_RESPONSE, Reply, Request, Response, VERSION, WireError, receive, send};

/// A request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The daemon has refused it, or it failed there.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The connection has ended; with it, all slots are released.
    #[error("the connection to viaductd has ended: {0}")]
    Gone(String),
    /// The socket cannot be connected to.
    #[error("{path}: {}", why_unconnected(*source))]
    Connect {
        /// Path of the socket.
        path: String,
        /// The system's error.
        source: Errno,
    },
    /// No response came in time.
    #[error("no response from viaductd within {0:?}")]
    Timeout(Duration),
    /// This process was forked off from the one that has connected.
    #[error(
        "the connection to viaductd was made before fork(), and is the parent's: connect in this process"
    )]
    Forked,
}

/// The error, and what to do.
fn why_unconnected(source: Errno) -> String {
    match source {
        Errno::PROTOTYPE => {
            "is the socket of a card, or of another program, not of viaductd; name the one given with --socket of \
             `viaductd`, or open the card itself with --card unix:PATH, or `Location::Unix`"
                .into()
        }
        _ => format!("{source}; is viaductd running there?"),
    }
}

impl Error {
    /// The error number of POSIX that means the same, as [`viaduct::Error::errno`].
    pub fn errno(&self) -> i32 {
        match self {
            Self::Refused(refusal) => refusal.errno,
            Self::Gone(_) => Errno::PIPE.raw_os_error(),
            Self::Connect { source, .. } => source.raw_os_error(),
            Self::Timeout(_) => Errno::TIMEDOUT.raw_os_error(),
            Self::Forked => Errno::BADF.raw_os_error(),
        }
    }
}

/// Result of a request.
pub type Result<T> = std::result::Result<T, Error>;

/// A connection to a daemon: a tenant of its card. It may be used by several threads at once. When it and all slots are dropped, or the
/// program ends in whatever way, the daemon releases everything.
///
/// It belongs to the process that has connected. In a child of `fork()` every use of it and of its slots and mappings is an error, and
/// dropping them has no effect.
pub struct Client {
    link: Arc<Link>,
    slots: usize,
}

struct Link {
    /// Dropped before `socket` is closed.
    _withheld: Withheld,
    socket: OwnedFd,
    /// The process that has connected.
    process: Process,
    limit: Duration,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    last: u64,
    responses: HashMap<u64, SyncSender<std::result::Result<Reply, Refusal>>>,
    /// Why there is no connection any more.
    gone: Option<Error>,
}

impl Client {
    /// Connects to the daemon at `path`. Each request may take ten minutes.
    pub fn connect(path: impl AsRef<Path>) -> Result<Self> {
        Self::connect_within(path, Duration::from_secs(600))
    }

    /// As [`Client::connect`], with another limit for the response to a request.
    pub fn connect_within(path: impl AsRef<Path>, limit: Duration) -> Result<Self> {
        match Link::connect(path.as_ref(), limit, Request::Hello { magic: MAGIC, version: VERSION })? {
            (link, Reply::Welcome { slots, .. }) => Ok(Self { link, slots: slots as usize }),
            _ => Err(unexpected()),
        }
    }

    /// Slots of the card.
    pub fn card_slots(&self) -> usize {
        self.slots
    }

    /// Claims a slot and loads an app that is installed with the daemon.
    pub fn open(&self, app: &str) -> Result<Slot> {
        self.opened(Request::Open { app: App::Installed(app.into()) }, None)
    }

    /// Claims a slot and loads an image, the file of which is open.
    pub fn open_image(&self, image: impl AsFd) -> Result<Slot> {
        self.opened(Request::Open { app: App::Image }, Some(image.as_fd()))
    }

    /// Ends the connection at once, whatever is under way: the daemon releases everything.
    pub fn disconnect(self) {
        let _ = shutdown(&self.link.socket, Shutdown::Both);
    }

    fn opened(&self, request: Request, file: Option<BorrowedFd<'_>>) -> Result<Slot> {
        match self.link.call(request, file)? {
            Reply::Opened { slot, index } => {
                let inner = Inner { link: Arc::clone(&self.link), number: slot, index: index as usize };
                Ok(Slot(Arc::new(inner)))
            }
            _ => Err(unexpected()),
        }
    }
}

impl Link {
    /// Connects to the daemon at a path, and greets it.
    fn connect(path: &Path, limit: Duration, greeting: Request) -> Result<(Arc<Self>, Reply)> {
        let failed = |source| Error::Connect { path: path.display().to_string(), source };
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(failed)?;
        set_socket_timeout(&socket, Timeout::Send, Some(limit)).map_err(failed)?;
        connect(&socket, &SocketAddrUnix::new(path).map_err(failed)?).map_err(failed)?;
        let link = Arc::new(Link {
            _withheld: Withheld::new(&socket),
            socket,
            process: Process::current(),
            limit,
            waiting: Mutex::default(),
        });
        let reader = Arc::downgrade(&link);
        let socket =
            link.socket.try_clone().map_err(|e| failed(Errno::from_io_error(&e).unwrap_or(Errno::MFILE)))?;
        let withheld = Withheld::new(&socket);
        let thread = std::thread::Builder::new().name("viaductd-client".into());
        thread
            .spawn(move || {
                let _withheld = withheld;
                loop {
                    let message = receive::<Response>(socket.as_fd(), MAX_RESPONSE);
                    let Some(link) = reader.upgrade() else { return };
                    if !link.deliver(message.map(|(response, _)| response)) {
                        return;
                    }
                }
            })
            .map_err(|_| failed(Errno::AGAIN))?;
        let reply = link.call(greeting, None)?;
        Ok((link, reply))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a response to who waits for it. False: there will be no more.
    fn deliver(&self, message: std::result::Result<Response, WireError>) -> bool {
        let mut waiting = self.waiting();
        let end = match message {
            Ok(Response { id: 0, result: Err(refusal) }) => Error::Refused(refusal),
            Ok(Response { id, result }) => {
                // Who has given up has no use for it.
                if let Some(to) = waiting.responses.remove(&id) {
                    let _ = to.try_send(result);
                }
                return true;
            }
            Err(error) => Error::Gone(error.to_string()),
        };
        waiting.gone = Some(end);
        waiting.responses.clear();
        let _ = shutdown(&self.socket, Shutdown::Both);
        false
    }

    fn call(&self, request: Request, file: Option<BorrowedFd<'_>>) -> Result<Reply> {
        // Before the lock, which a thread may hold that a child does not have.
        if !self.process.is_current() {
            return Err(Error::Forked);
        }
        let (id, response) = self.expect()?;
        let sent = send(self.socket.as_fd(), &Call { id, request }, file);
        // If the connection has ended, the reason comes from who receives.
        if let Err(error @ (WireError::Os(_) | WireError::Malformed(_) | WireError::Silent)) = sent {
            self.waiting().responses.remove(&id);
            return Err(Error::Gone(error.to_string()));
        }
        match response.recv_timeout(self.limit) {
            Ok(result) => Ok(result?),
            Err(RecvTimeoutError::Timeout) => {
                self.waiting().responses.remove(&id);
                Err(Error::Timeout(self.limit))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.waiting().gone.clone().unwrap_or_else(|| Error::Gone("no reason is known".into())))
            }
        }
    }

    fn expect(&self) -> Result<(u64, Receiver<std::result::Result<Reply, Refusal>>)> {
        let mut waiting = self.waiting();
        if let Some(gone) = &waiting.gone {
            return Err(gone.clone());
        }
        let (to, response) = sync_channel(1);
        waiting.last += 1;
        let id = waiting.last;
        waiting.responses.insert(id, to);
        Ok((id, response))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Wakes the thread that receives.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

/// A connection to a daemon that looks at its card and manages it, and has no slots itself. Root and the user of the daemon may manage all slots,
/// other users that the daemon admits their own. Slots are named by their numbers on the card.
pub struct Manager {
    link: Arc<Link>,
    slots: usize,
    all: bool,
}

impl Manager {
    /// Connects to the daemon at `path`. Each request may take so long; the end of a slot takes as long as its files are slow.
    pub fn connect_within(path: impl AsRef<Path>, limit: Duration) -> Result<Self> {
        match Link::connect(path.as_ref(), limit, Request::Manage { magic: MAGIC, version: VERSION })? {
            (link, Reply::Managing { slots, all }) => Ok(Self { link, slots: slots as usize, all }),
            _ => Err(unexpected()),
        }
    }

    /// Slots of the card.
    pub fn card_slots(&self) -> usize {
        self.slots
    }

    /// Whether it may manage all slots.
    pub fn manages_all(&self) -> bool {
        self.all
    }

    /// What the card does now, as far as this user may see it.
    pub fn look(&self) -> Result<View> {
        match self.link.call(Request::Look, None)? {
            Reply::View(view) => Ok(view),
            _ => Err(unexpected()),
        }
    }

    /// Sets the schedule of a slot, as [`viaduct::Slot::set_schedule`]. A user may take less for a slot than the owner of the card has given.
    pub fn set_schedule(&self, slot: usize, schedule: &Schedule) -> Result<()> {
        self.done(Request::Schedule { index: number(slot), schedule: schedule.to_string() })
    }

    /// Pauses the app in a slot, as [`viaduct::Slot::pause`]; a pause by the owner of the card only that one ends.
    pub fn pause(&self, slot: usize) -> Result<()> {
        self.done(Request::Pause { index: number(slot), paused: true })
    }

    /// Ends a pause.
    pub fn resume(&self, slot: usize) -> Result<()> {
        self.done(Request::Pause { index: number(slot), paused: false })
    }

    /// Stops the app in a slot at once, writes its changed pages to their files, as for a client that has ended, and frees the slot. Its client
    /// gets errors of [`Kind::Ended`] from then on, and keeps its other slots.
    pub fn end(&self, slot: usize) -> Result<()> {
        self.done(Request::End { index: number(slot) })
    }

    /// Leads a stream to another one, as [`viaduct::Card::route`], until the app at either end has ended or [`Manager::cut`].
    pub fn route(&self, source: Port, sink: Port) -> Result<()> {
        self.done(Request::Route { source: source.to_string(), sink: sink.to_string() })
    }

    /// Ends the route to a sink, as [`viaduct::Card::cut`].
    pub fn cut(&self, sink: Port) -> Result<()> {
        self.done(Request::Cut { sink: sink.to_string() })
    }

    fn done(&self, request: Request) -> Result<()> {
        match self.link.call(request, None)? {
            Reply::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }
}

/// A number of a slot in a message; one that is too large for it is that of no slot.
fn number(slot: usize) -> u32 {
    u32::try_from(slot).unwrap_or(u32::MAX)
}

/// A slot that belongs to this client. Released when the value and all its mappings are dropped.
pub struct Slot(Arc<Inner>);

struct Inner {
    link: Arc<Link>,
    number: u32,
    index: usize,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("index", &self.0.index).finish()
    }
}

impl Inner {
    fn done(&self, request: Request) -> Result<()> {
        match self.link.call(request, None)? {
            Reply::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    fn number(&self, request: Request, file: Option<BorrowedFd<'_>>) -> Result<u64> {
        match self.link.call(request, file)? {
            Reply::Number(number) => Ok(number),
            _ => Err(unexpected()),
        }
    }

    fn sync(&self, range: Range<u64>, mode: SyncMode) -> Result<()> {
        self.done(Request::Sync { slot: self.number, start: range.start, end: range.end, mode })
    }

    fn unmap(&self, range: Range<u64>) -> Result<()> {
        self.done(Request::Unmap { slot: self.number, start: range.start, end: range.end })
    }

    fn advise(&self, range: Range<u64>, advice: Advice) -> Result<()> {
        self.done(Request::Advise { slot: self.number, start: range.start, end: range.end, advice })
    }
}

impl Slot {
    /// Number of the slot on the card.
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// Resets the app, as [`viaduct::Slot::reset`].
    pub fn reset(&self) -> Result<()> {
        self.0.done(Request::Reset { slot: self.0.number })
    }

    /// Fails, with the cause, if the slot does not work, as [`viaduct::Slot::check`].
    pub fn check(&self) -> Result<()> {
        self.0.done(Request::Check { slot: self.0.number })
    }

    /// State of the slot.
    pub fn status(&self) -> Result<SlotStatus> {
        match self.0.link.call(Request::Status { slot: self.0.number }, None)? {
            Reply::Status(status) => Ok(status),
            _ => Err(unexpected()),
        }
    }

    /// Reads a 32-bit register of the app.
    pub fn read_register(&self, offset: u32) -> Result<u32> {
        let value = self.0.number(Request::ReadRegister { slot: self.0.number, offset }, None)?;
        u32::try_from(value).map_err(|_| unexpected())
    }

    /// Writes a 32-bit register of the app.
    pub fn write_register(&self, offset: u32, value: u32) -> Result<()> {
        self.0.done(Request::WriteRegister { slot: self.0.number, offset, value })
    }

    /// Reads a register of any width, as [`viaduct::Slot::read_wide`].
    pub fn read_wide(&self, register: Register) -> Result<Vec<u8>> {
        match self.0.link.call(Request::ReadWide { slot: self.0.number, register }, None)? {
            Reply::Bytes(bytes) => Ok(bytes),
            _ => Err(unexpected()),
        }
    }

    /// Writes a register of any width, as [`viaduct::Slot::write_wide`].
    pub fn write_wide(&self, register: Register, bytes: &[u8]) -> Result<()> {
        self.0.done(Request::WriteWide { slot: self.0.number, register, bytes: bytes.to_vec() })
    }

    /// Interrupts the app has raised since the slot was opened, as far as they have been processed.
    pub fn irqs(&self) -> Result<u64> {
        self.0.number(Request::Irqs { slot: self.0.number }, None)
    }

    /// Waits until the app has raised its interrupt more than `seen` times, as [`viaduct::Slot::wait_irq`]. The app's faults are served
    /// meanwhile, and only then.
    pub fn wait_irq(&self, seen: u64, limit: Duration) -> Result<Option<u64>> {
        // A request waits for less than the limit of a response.
        let most = Duration::from_secs(10).min(self.0.link.limit / 2);
        let end = Instant::now().checked_add(limit);
        loop {
            let left = end.map_or(most, |end| end.saturating_duration_since(Instant::now()).min(most));
            let millis = left.as_millis() as u64;
            match self.0.link.call(Request::WaitIrq { slot: self.0.number, seen, millis }, None)? {
                Reply::Number(irqs) => return Ok(Some(irqs)),
                Reply::Later if end.is_some_and(|end| Instant::now() >= end) => return Ok(None),
                Reply::Later => {}
                _ => return Err(unexpected()),
            }
        }
    }

    /// Maps `len` bytes of an open file into the app's address space, as [`viaduct::Slot::map`]. The file may be closed afterwards.
    pub fn map(&self, file: impl AsFd, len: u64, options: MapOptions) -> Result<Mapping> {
        self.mapped(Some(file.as_fd()), len, options)
    }

    /// Maps `len` zero bytes that are discarded with the mapping.
    pub fn map_anonymous(&self, len: u64, options: MapOptions) -> Result<Mapping> {
        self.mapped(None, len, options)
    }

    fn mapped(&self, file: Option<BorrowedFd<'_>>, len: u64, options: MapOptions) -> Result<Mapping> {
        let request = Request::Map { slot: self.0.number, file: file.is_some(), len, options };
        let va = self.0.number(request, file)?;
        Ok(Mapping { slot: Arc::clone(&self.0), va, len, mapped: true })
    }

    /// As [`viaduct::Slot::sync`]. With `durable`, what is confirmed outlives a crash of the daemon.
    pub fn sync(&self, range: Range<u64>, mode: SyncMode) -> Result<()> {
        self.0.sync(range, mode)
    }

    /// As [`viaduct::Slot::unmap`].
    pub fn unmap(&self, range: Range<u64>) -> Result<()> {
        self.0.unmap(range)
    }

    /// As [`viaduct::Slot::advise`].
    pub fn advise(&self, range: Range<u64>, advice: Advice) -> Result<()> {
        self.0.advise(range, advice)
    }

    /// Accesses of the app that were denied, oldest first; each is reported once.
    pub fn take_denied(&self) -> Result<Vec<DeniedAccess>> {
        match self.0.link.call(Request::TakeDenied { slot: self.0.number }, None)? {
            Reply::Denied(denied) => Ok(denied),
            _ => Err(unexpected()),
        }
    }

    /// Unmaps everything and releases the slot: an error says what is lost. Without it the slot is released when it is dropped, and
    /// errors are only logged by the daemon.
    pub fn close(self) -> Result<()> {
        self.0.done(Request::Close { slot: self.0.number })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        match self.done(Request::Close { slot: self.number }) {
            // Closed already, gone with the connection, or the parent's.
            Ok(()) | Err(Error::Gone(_) | Error::Forked) => {}
            Err(error) if error.errno() == Errno::BADF.raw_os_error() => {}
            Err(error) => tracing::error!(%error, slot = self.index, "the slot was not closed cleanly"),
        }
    }
}

/// A mapping in a slot, removed when dropped; errors are then only logged.
pub struct Mapping {
    slot: Arc<Inner>,
    va: u64,
    len: u64,
    mapped: bool,
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

    /// Writes all pages that the app has changed to the file, as [`viaduct::Mapping::sync`].
    pub fn sync(&self, durable: bool) -> Result<()> {
        self.slot.sync(self.range(), SyncMode { durable, invalidate: false })
    }

    /// Says how the app will use it.
    pub fn advise(&self, advice: Advice) -> Result<()> {
        self.slot.advise(self.range(), advice)
    }

    /// Writes changed pages to the file and removes the mapping. Done when this returns.
    pub fn unmap(mut self) -> Result<()> {
        self.mapped = false;
        self.slot.unmap(self.range())
    }

    /// Leaves the mapping to the slot. Returns its addresses.
    pub fn leave(mut self) -> Range<u64> {
        self.mapped = false;
        self.range()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.mapped {
            return;
        }
        match self.slot.unmap(self.range()) {
            Ok(()) | Err(Error::Gone(_) | Error::Forked) => {}
            Err(error) => tracing::error!(%error, va = self.va, "a mapping could not be removed cleanly"),
        }
    }
}

fn unexpected() -> Error {
    Error::Gone("the daemon has sent a response that does not fit".into())
}
