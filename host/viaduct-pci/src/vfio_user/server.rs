// SPDX-License-Identifier: Apache-2.0
//! Offers a PCI function on a Unix socket.

use super::files::Files;
use super::irq::{Forwarder, IrqFd, IrqTable, LOOK};
use super::link::{Link, LinkError, Message};
use super::lobby::{Caller, Lobby};
use super::refusal::Refusal;
use super::wire::{
    Body, Fields, IRQ_MSIX, IRQS, MAJOR, MAX_DATA, MAX_FDS, MAX_MAPS, MINOR, REGION_BARS, REGION_CONFIG,
    REGIONS, command, flag,
};
use crate::budget::{Budget, Resource, Share};
use crate::config::{COMMAND, COMMAND_MASTER};
use crate::eventfds::{eventfd, timeout_until};
use crate::peer::Peer;
use crate::{CONFIG_SIZE, DmaAccess, PciError, PciFunction, Result, SocketFile};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::eventfd::EventFd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Limits of a [`Server`].
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Longest time for a message once begun, in either direction, and for the first one to come; a client that exceeds
    /// it is disconnected. While many are silent, those that have been for longest are disconnected sooner.
    pub message_time: Duration,
    /// How long a new client waits for the current one to disconnect before it is refused with `EBUSY`.
    pub busy_time: Duration,
    /// The resources of this server's clients, shared with those of other servers.
    pub budget: Arc<Budget>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            message_time: Duration::from_secs(5),
            busy_time: Duration::from_secs(1),
            budget: Budget::of_process(),
        }
    }
}

/// Serves a function to one client at a time, one after another.
///
/// Whatever a client sends and however it ends, the server continues: the function is reset, the client's memory
/// released, and the next client served. All threads are created at the start, so a client cannot make the server fail
/// because no thread can be created. Dropping the server ends it.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// The socket's file, if the server created it.
    file: Option<SocketFile>,
}

impl Server {
    /// Binds a socket at `path` and serves `function` on it. A dead socket there, left by a killed server, is
    /// replaced; anything else is an error.
    pub fn bind(path: &Path, function: Arc<dyn PciFunction>) -> Result<Self> {
        Self::bind_with(path, function, ServerOptions::default())
    }

    /// As [`Server::bind`], with options.
    pub fn bind_with(path: &Path, function: Arc<dyn PciFunction>, options: ServerOptions) -> Result<Self> {
        let bound = SocketFile::listen(path);
        let (listener, file) = bound.map_err(|e| os(format!("socket {}", path.display()), e))?;
        let mut server = Self::on(listener, function, options)?;
        server.file = Some(file);
        Ok(server)
    }

    /// Serves `function` on an existing listening socket.
    pub fn on(
        listener: UnixListener,
        function: Arc<dyn PciFunction>,
        options: ServerOptions,
    ) -> Result<Self> {
        listener.set_nonblocking(true).map_err(|e| os("setting up the socket", e))?;
        let (stop, freed) = (eventfd()?, eventfd()?);
        let shared = Arc::new(Shared {
            function,
            share: options.budget.join(),
            options,
            stop,
            irqs: IrqTable::default(),
            forwarder: Forwarder::default(),
            client: Mutex::new(None),
            freed,
        });
        let (door, room) = sync_channel(1);
        // If this fails, the drop ends the threads that exist.
        let mut server = Self { shared, threads: Vec::new(), file: None };
        server.spawn("vfio-user-irq", |shared| shared.forwarder.run(&*shared.function, &shared.irqs))?;
        server.spawn("vfio-user-client", move |shared| serve_all(shared, &room))?;
        server.spawn("vfio-user", move |shared| accept_all(shared, &listener, &door))?;
        Ok(server)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce(&Shared) + Send + 'static) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || body(&shared));
        self.threads.push(thread.map_err(|e| os("starting a thread of the server", e))?);
        Ok(())
    }

    /// Disconnects the client and ends the server. Returns once the function is reset and no longer used.
    pub fn stop(&mut self) {
        // While the socket still exists.
        self.file = None;
        // Cannot fail: the counter is far from its limit.
        let _ = self.shared.stop.write(1);
        self.shared.forwarder.end();
        for thread in self.threads.drain(..) {
            while !thread.is_finished() {
                self.shared.irqs.unblock();
                std::thread::sleep(Duration::from_millis(1));
            }
            if thread.join().is_err() {
                tracing::error!("a thread of the server panicked");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Shared {
    function: Arc<dyn PciFunction>,
    options: ServerOptions,
    share: Arc<Share>,
    /// Stays readable once the server is to end.
    stop: EventFd,
    irqs: IrqTable,
    forwarder: Forwarder,
    /// The client being served.
    client: Mutex<Option<Peer>>,
    /// Readable when it is gone.
    freed: EventFd,
}

impl Shared {
    fn client(&self) -> MutexGuard<'_, Option<Peer>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Accepts connections, has one client at a time served, and refuses the others.
fn accept_all(shared: &Shared, listener: &UnixListener, room: &SyncSender<Caller>) {
    let mut lobby = Lobby::new(shared.options.message_time, shared.options.busy_time);
    loop {
        let knocked = match wait_at_door(shared, listener, &lobby) {
            Ok(knocked) => knocked,
            Err(LinkError::Stopped) => return,
            Err(error) => {
                tracing::error!(%error, "no more clients are accepted");
                return;
            }
        };
        shared.irqs.unblock();
        if knocked {
            admit(shared, listener, &mut lobby);
        }
        lobby.listen(Instant::now());
        let present = shared.client().clone();
        match present {
            Some(present) => {
                while let Some(caller) = lobby.overdue(Instant::now()) {
                    refuse(shared, &caller, &present);
                }
            }
            None => {
                if let Some(caller) = lobby.next() {
                    *shared.client() = Some(caller.link.peer());
                    // The previous client has been removed, so there is space.
                    let _ = room.send(caller);
                }
            }
        }
    }
}

/// Waits until there is something to do: a new connection, a message, the end of the present client or of a time. Returns
/// whether it is a new connection, for which there is a place.
fn wait_at_door(
    shared: &Shared,
    listener: &UnixListener,
    lobby: &Lobby,
) -> std::result::Result<bool, LinkError> {
    // A client may block the forwarder in a write; `unblock` ends that.
    let look = shared.client().is_some() || shared.irqs.is_writing();
    let look = look.then(|| Instant::now() + LOOK);
    let until = look.into_iter().chain(lobby.wakes()).min();
    let mut polled: Vec<_> = [shared.stop.as_fd(), shared.freed.as_fd()]
        .into_iter()
        .chain(lobby.fds())
        .chain((!lobby.is_full()).then(|| listener.as_fd()))
        .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
        .collect();
    match poll(&mut polled, timeout_until(until)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    if polled[0].any().unwrap_or(true) {
        return Err(LinkError::Stopped);
    }
    // Whoever was served before has left: it suffices to know it once.
    let _ = shared.freed.read();
    let knocked = polled.last().is_some_and(|last| last.any().unwrap_or(true));
    Ok(knocked && !lobby.is_full())
}

/// Accepts the connections that wait, as long as there are places.
fn admit(shared: &Shared, listener: &UnixListener, lobby: &mut Lobby) {
    let mut admitted = false;
    while !lobby.is_full() {
        let accepted =
            listener.accept().and_then(|(stream, _)| Link::new(stream, shared.options.message_time));
        match accepted {
            Ok(link) => lobby.admit(link, Instant::now()),
            Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return,
            // Most likely out of descriptors: one that is silent gives up its own, or a pause instead of spinning.
            Err(error) if !admitted && !lobby.close_oldest(Instant::now()) => {
                tracing::warn!(%error, "a client waits: it cannot be accepted");
                std::thread::sleep(Duration::from_millis(50));
                return;
            }
            Err(_) => return,
        }
        admitted = true;
    }
}

fn end_turn(shared: &Shared) {
    *shared.client() = None;
    // Cannot fail: the counter is far from its limit.
    let _ = shared.freed.write(1);
}

/// Replies to the first message of a client that connected while another is served.
fn refuse(shared: &Shared, caller: &Caller, present: &Peer) {
    tracing::info!(%present, "refusing a client: another one is being served");
    let Message { header, body, .. } = &caller.first;
    let text = match header.command == command::VERSION && wants_text(body) {
        true => format!("in use by {present}"),
        false => String::new(),
    };
    // Errors only concern the client. Its socket is empty, so that this does not wait for it.
    let reply = header.error_reply(Errno::EBUSY).encode(text.as_bytes());
    let _ = caller.link.send(&reply, &[], Some(shared.stop.as_fd()));
}

/// Whether the sender of this VERSION request wants texts with errors.
fn wants_text(version: &[u8]) -> bool {
    let data = version.get(4..).and_then(|json| VersionData::parse(json).ok()).unwrap_or_default();
    data.capabilities.error_text == Some(true)
}

/// Serves the accepted clients.
fn serve_all(shared: &Shared, room: &Receiver<Caller>) {
    for caller in room {
        if catch_unwind(AssertUnwindSafe(|| serve(shared, caller))).is_err() {
            tracing::error!("serving a client panicked");
        }
    }
}

/// Serves one client, from its first message to its last.
fn serve(shared: &Shared, Caller { link, first, .. }: Caller) {
    /// Cleans up even if a request panics.
    struct Cleanup<'a>(Connection<'a>, &'a Link);
    impl Drop for Cleanup<'_> {
        fn drop(&mut self) {
            self.0.close();
            self.1.shutdown();
            end_turn(self.0.shared);
        }
    }
    let mut cleanup = Cleanup(Connection::new(shared, link.peer()), &link);
    let why = cleanup.0.run(&link, first);
    tracing::debug!(%why, "client ended");
}

/// The state that a client has set up.
struct Connection<'a> {
    shared: &'a Shared,
    peer: Peer,
    greeted: bool,
    error_text: bool,
    maps: BTreeMap<u64, Mapping>,
    files: Files,
    /// The client was told that the function has no access to its memory.
    warned: bool,
}

struct Mapping {
    len: u64,
    /// Whether it is mapped for the function: memory without a descriptor is not accessible to it.
    reachable: bool,
}

type Reply = std::result::Result<Vec<u8>, Refusal>;

impl<'a> Connection<'a> {
    fn new(shared: &'a Shared, peer: Peer) -> Self {
        let files = Files::new(Arc::clone(&shared.share));
        Self { shared, peer, greeted: false, error_text: false, maps: BTreeMap::new(), files, warned: false }
    }

    /// Serves requests, of which the first is here, until the connection ends or fails.
    fn run(&mut self, link: &Link, first: Message) -> LinkError {
        let stop = Some(self.shared.stop.as_fd());
        let mut first = Some(first);
        loop {
            // A client may be silent for any time.
            let message = match first.take().map_or_else(|| link.receive(None, stop), Ok) {
                Ok(message) => message,
                Err(why) => return why,
            };
            let header = message.header;
            if header.flags & flag::TYPE != 0 {
                tracing::warn!(client = %self.peer, "a reply without a request: the client is disconnected");
                return LinkError::Closed;
            }
            let result = self.handle(message);
            if let Err(Refusal { errno, why }) = &result {
                tracing::debug!(command = header.command, %errno, why, "request refused");
            }
            if header.wants_reply() {
                let bytes = match &result {
                    Ok(body) => header.reply().encode(body),
                    Err(Refusal { errno, why }) => {
                        let text = if self.error_text { why.as_bytes() } else { &[] };
                        header.error_reply(*errno).encode(text)
                    }
                };
                if let Err(why) = link.send(&bytes, &[], stop) {
                    return why;
                }
            }
            if !self.greeted {
                return LinkError::Closed;
            }
        }
    }

    fn handle(&mut self, message: Message) -> Reply {
        let Message { header, body, mut fds } = message;
        let mut fields = Fields(&body);
        let wanted_fds = match header.command {
            command::DMA_MAP => 1,
            command::SET_IRQS => MAX_FDS,
            _ => 0,
        };
        if fds.len() > wanted_fds || self.greeted == (header.command == command::VERSION) {
            return Err(Errno::EINVAL.into());
        }
        match header.command {
            command::VERSION => self.version(&mut fields),
            command::DMA_MAP => self.dma_map(&mut fields, fds.pop()),
            command::DMA_UNMAP => self.dma_unmap(&mut fields),
            command::GET_INFO => Self::device_info(&mut fields),
            command::GET_REGION_INFO => self.region_info(&mut fields),
            command::GET_IRQ_INFO => self.irq_info(&mut fields),
            command::SET_IRQS => self.set_irqs(&mut fields, fds),
            command::REGION_READ => self.region_read(&mut fields),
            command::REGION_WRITE => self.region_write(&mut fields),
            command::REGION_WRITE_MULTI => self.region_write_multi(&mut fields),
            command::RESET => {
                fields.rest(0)?;
                self.shared.function.reset()?;
                Ok(Vec::new())
            }
            _ => Err(Errno::EOPNOTSUPP.into()),
        }
    }

    fn version(&mut self, fields: &mut Fields) -> Reply {
        let (major, minor) = (fields.u16()?, fields.u16()?);
        if major != MAJOR {
            return Err(Errno::EPROTONOSUPPORT.into());
        }
        let offered = VersionData::parse(fields.0)?.capabilities;
        let capabilities = Capabilities {
            max_msg_fds: Some(MAX_FDS as u64),
            max_data_xfer_size: Some(u64::from(MAX_DATA)),
            max_dma_maps: offered.max_dma_maps.map(|max| max.min(MAX_MAPS as u64)),
            pgsizes: offered.pgsizes.map(|_| crate::PAGE_SIZE as u64),
            write_multiple: offered.write_multiple.filter(|wanted| *wanted),
            error_text: offered.error_text.filter(|wanted| *wanted),
        };
        self.error_text = capabilities.error_text.is_some();
        let data = VersionData { capabilities }.to_bytes()?;
        self.shared.forwarder.start();
        self.greeted = true;
        Ok(Body::default().u16(MAJOR).u16(minor.min(MINOR)).bytes(&data).0)
    }

    fn dma_map(&mut self, fields: &mut Fields, fd: Option<OwnedFd>) -> Reply {
        let (argsz, flags) = (fields.u32()?, fields.u32()?);
        let (offset, iova, len) = (fields.u64()?, fields.u64()?, fields.u64()?);
        fields.rest(0)?;
        let access = match flags {
            0 => None,
            flag::DMA_READ => Some(DmaAccess::Read),
            flag::DMA_WRITE => Some(DmaAccess::Write),
            f if f == flag::DMA_READ | flag::DMA_WRITE => Some(DmaAccess::ReadWrite),
            _ => return Err(Errno::EINVAL.into()),
        };
        let last = len.checked_sub(1).and_then(|n| iova.checked_add(n)).ok_or(Errno::EINVAL)?;
        if argsz < 32 {
            return Err(Errno::EINVAL.into());
        }
        // Maps do not overlap, so only the nearest one below the end can collide.
        if self.maps.range(..=last).next_back().is_some_and(|(at, map)| *at + (map.len - 1) >= iova) {
            return Err(Errno::EEXIST.into());
        }
        if self.maps.len() >= MAX_MAPS {
            let why = format!("this client has {MAX_MAPS} DMA maps, the most there may be");
            return Err(Refusal::new(Errno::ENOSPC, why));
        }
        let reachable = match (fd, access) {
            (Some(fd), Some(access)) => {
                let size = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
                let function = &self.shared.function;
                let mapped = self.files.memory(fd, offset, size, access).and_then(|memory| {
                    function.dma_map(iova, Arc::new(memory), access).map_err(Refusal::from)
                });
                mapped.map_err(|refusal| {
                    tracing::warn!(client = %self.peer, why = refusal.why, iova, len, "a client's memory is refused");
                    // The request is valid, but the memory cannot be used.
                    let errno = if refusal.errno == Errno::EPROTO { Errno::EPERM } else { refusal.errno };
                    Refusal { errno, ..refusal }
                })?;
                true
            }
            _ => false,
        };
        self.maps.insert(iova, Mapping { len, reachable });
        Ok(Vec::new())
    }

    /// Removes every mapping inside the range, as the kernel's VFIO does; a range that would split a mapping
    /// in two is refused.
    fn dma_unmap(&mut self, fields: &mut Fields) -> Reply {
        let request = fields.0;
        let (_argsz, flags, iova, len) = (fields.u32()?, fields.u32()?, fields.u64()?, fields.u64()?);
        fields.rest(0)?;
        let range = match flags {
            0 => {
                let last = len.checked_sub(1).and_then(|n| iova.checked_add(n)).ok_or(Errno::EINVAL)?;
                let cut = |edge: u64| {
                    let below = self.maps.range(..edge).next_back();
                    below.is_some_and(|(at, map)| *at + (map.len - 1) >= edge)
                };
                if cut(iova) || last.checked_add(1).is_some_and(cut) {
                    return Err(Errno::EINVAL.into());
                }
                iova..=last
            }
            flag::UNMAP_ALL if iova == 0 && len == 0 => 0..=u64::MAX,
            _ => return Err(Errno::EINVAL.into()),
        };
        let inside: Vec<u64> = self.maps.range(range).map(|(at, _)| *at).collect();
        inside.into_iter().try_for_each(|at| self.unmap_one(at))?;
        Ok(request.to_vec())
    }

    /// A mapping that the function does not give up stays one of the client's, who may try again.
    fn unmap_one(&mut self, iova: u64) -> Result<()> {
        if self.maps.get(&iova).is_some_and(|map| map.reachable) {
            self.shared.function.dma_unmap(iova)?;
        }
        self.maps.remove(&iova);
        Ok(())
    }

    fn device_info(fields: &mut Fields) -> Reply {
        if fields.u32()? < 16 {
            return Err(Errno::EINVAL.into());
        }
        fields.rest(12)?;
        Ok(Body::default().u32(16).u32(flag::DEVICE_RESET | flag::DEVICE_PCI).u32(REGIONS).u32(IRQS).0)
    }

    fn region_info(&mut self, fields: &mut Fields) -> Reply {
        let (argsz, _flags, index) = (fields.u32()?, fields.u32()?, fields.u32()?);
        fields.rest(20)?;
        if argsz < 32 || index >= REGIONS {
            return Err(Errno::EINVAL.into());
        }
        let size = self.region_size(index);
        let flags = if size == 0 { 0 } else { flag::REGION_READ | flag::REGION_WRITE };
        Ok(Body::default().u32(32).u32(flags).u32(index).u32(0).u64(size).u64(0).0)
    }

    fn irq_info(&mut self, fields: &mut Fields) -> Reply {
        let (argsz, _flags, index) = (fields.u32()?, fields.u32()?, fields.u32()?);
        fields.rest(4)?;
        if argsz < 16 || index >= IRQS {
            return Err(Errno::EINVAL.into());
        }
        let (flags, count) = if index == IRQ_MSIX { (flag::IRQ_EVENTFD, self.vectors()) } else { (0, 0) };
        Ok(Body::default().u32(16).u32(flags).u32(index).u32(count).0)
    }

    fn set_irqs(&mut self, fields: &mut Fields, fds: Vec<OwnedFd>) -> Reply {
        let (argsz, flags, index) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let (start, count) = (fields.u32()?, fields.u32()?);
        let vectors = if index == IRQ_MSIX { self.vectors() } else { 0 };
        let end = start.checked_add(count).ok_or(Errno::EINVAL)?;
        if argsz < 20 || index >= IRQS || end > vectors {
            return Err(Errno::EINVAL.into());
        }
        let mask = (start..end).fold(0u64, |mask, vector| mask | 1 << vector);
        let irqs = &self.shared.irqs;
        const TRIGGER: u32 = flag::SET_TRIGGER;
        match flags ^ TRIGGER {
            flag::SET_NONE if fds.is_empty() => {
                fields.rest(0)?;
                if count == 0 && start == 0 {
                    irqs.assign(0, (0..vectors).map(|_| None));
                } else {
                    irqs.deliver(mask);
                }
            }
            flag::SET_BOOL if fds.is_empty() => {
                let chosen = fields.rest(count as usize)?;
                let fired =
                    (start..end).zip(chosen).filter(|(_, set)| **set != 0).map(|(vector, _)| 1u64 << vector);
                irqs.deliver(fired.fold(0, |mask, bit| mask | bit));
            }
            flag::SET_EVENTFD => {
                fields.rest(0)?;
                if fds.is_empty() {
                    irqs.assign(start as usize, (start..end).map(|_| None));
                } else if fds.len() == count as usize {
                    let share = &self.shared.share;
                    let take = |fd| {
                        let charge = share.take(Resource::Descriptors, 1)?;
                        Ok::<_, Refusal>(Some(IrqFd::new(fd, charge)?))
                    };
                    let fds = fds.into_iter().map(take).collect::<std::result::Result<Vec<_>, _>>()?;
                    irqs.assign(start as usize, fds.into_iter());
                } else {
                    return Err(Errno::EINVAL.into());
                }
            }
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(Vec::new())
    }

    fn region_read(&mut self, fields: &mut Fields) -> Reply {
        let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
        fields.rest(0)?;
        let mut data = vec![0; self.check_access(region, offset, count)?];
        self.read(region, offset, &mut data)?;
        Ok(Body::default().u64(offset).u32(region).u32(count).bytes(&data).0)
    }

    fn region_write(&mut self, fields: &mut Fields) -> Reply {
        let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
        let len = self.check_access(region, offset, count)?;
        self.write(region, offset, fields.rest(len)?)?;
        Ok(Body::default().u64(offset).u32(region).u32(count).0)
    }

    /// A batch of writes of up to eight bytes each; it ends at the first that fails.
    fn region_write_multi(&mut self, fields: &mut Fields) -> Reply {
        let writes = fields.u64()?;
        for _ in 0..writes {
            let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
            let data = fields.bytes(8)?;
            let len = self.check_access(region, offset, count)?;
            let data = data.get(..len).ok_or(Errno::EINVAL)?;
            self.write(region, offset, data)?;
        }
        fields.rest(0)?;
        Ok(Body::default().u64(writes).0)
    }

    fn check_access(&self, region: u32, offset: u64, count: u32) -> std::result::Result<usize, Refusal> {
        let end = offset.checked_add(u64::from(count)).ok_or(Errno::EINVAL)?;
        if count == 0 || count > MAX_DATA || end > self.region_size(region) {
            return Err(Errno::EINVAL.into());
        }
        Ok(count as usize)
    }

    fn read(&self, region: u32, offset: u64, data: &mut [u8]) -> Result<()> {
        let function = &self.shared.function;
        if region == REGION_CONFIG {
            return pieces(offset, data.len())
                .try_for_each(|(at, range)| function.config_read(at as u16, &mut data[range]));
        }
        function.read(region as u8, offset, data)
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<()> {
        let function = &self.shared.function;
        if region != REGION_CONFIG {
            return function.write(region as u8, offset, data);
        }
        pieces(offset, data.len())
            .try_for_each(|(at, range)| function.config_write(at as u16, &data[range]))?;
        let command = (COMMAND as u64).checked_sub(offset).and_then(|at| data.get(at as usize));
        if command.is_some_and(|command| command & COMMAND_MASTER != 0) {
            self.look_for_memory();
        }
        Ok(())
    }

    /// The function is to access memory now. If none of the client's is shared, it can access nothing, and a driver would wait for it without
    /// any message: an emulated device has access to memory that is not shared.
    fn look_for_memory(&mut self) {
        let nothing = !self.maps.is_empty() && self.maps.values().all(|map| !map.reachable);
        if nothing && !std::mem::replace(&mut self.warned, true) {
            let client = &self.peer;
            tracing::warn!(
                %client,
                "the memory of this client is not shared, so the function cannot access it and its driver will wait in vain; start QEMU with \
                 -object memory-backend-memfd,id=m,size=SIZE,share=on -machine memory-backend=m"
            );
        }
    }

    fn region_size(&self, region: u32) -> u64 {
        match region {
            bar if bar < REGION_BARS => self.shared.function.info().bar_sizes[bar as usize],
            REGION_CONFIG => CONFIG_SIZE as u64,
            _ => 0,
        }
    }

    fn vectors(&self) -> u32 {
        u32::from(self.shared.function.info().vectors.min(64))
    }

    /// Releases everything that the client has set up, and resets the function.
    fn close(&mut self) {
        self.shared.forwarder.rest();
        if !self.greeted {
            return;
        }
        if let Err(error) = self.shared.function.reset() {
            tracing::warn!(%error, "resetting the function after a client");
        }
        let all: Vec<u64> = self.maps.keys().copied().collect();
        for iova in all {
            if let Err(error) = self.unmap_one(iova) {
                tracing::warn!(%error, iova, "unmapping a client's memory");
            }
        }
        self.shared.irqs.clear();
    }
}

/// Splits an access into naturally aligned ones of 1, 2, 4 or 8 bytes: offset, and range in the data.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let left = len - done;
        let size = [8usize, 4, 2, 1].into_iter().find(|size| at % *size as u64 == 0 && *size <= left)?;
        done += size;
        Some((at, done - size..done))
    })
}

/// The capabilities negotiated as JSON after the version numbers. Unknown members are ignored.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct VersionData {
    #[serde(default)]
    pub capabilities: Capabilities,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Capabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_msg_fds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_data_xfer_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_dma_maps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pgsizes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_multiple: Option<bool>,
    /// Own extension: an error reply carries a text that says why, in UTF-8, unterminated. In the protocol such a reply
    /// is a header alone.
    #[serde(rename = "x-viaduct-error-text", skip_serializing_if = "Option::is_none")]
    pub error_text: Option<bool>,
}

impl VersionData {
    /// Absent data means defaults.
    pub fn parse(bytes: &[u8]) -> std::result::Result<Self, Errno> {
        match bytes {
            [] => Ok(Self::default()),
            [json @ .., 0] => serde_json::from_slice(json).map_err(|_| Errno::EINVAL),
            _ => Err(Errno::EINVAL),
        }
    }

    pub fn to_bytes(&self) -> std::result::Result<Vec<u8>, Errno> {
        let mut bytes = serde_json::to_vec(self).map_err(|_| Errno::EIO)?;
        bytes.push(0);
        Ok(bytes)
    }
}

fn os(what: impl Into<String>, source: std::io::Error) -> PciError {
    PciError::Os { what: what.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_cut_into_aligned_pieces() {
        let cut = |offset, len| pieces(offset, len).map(|(at, r)| (at, r.len())).collect::<Vec<_>>();
        assert_eq!(cut(0, 8), [(0, 8)]);
        assert_eq!(cut(1, 7), [(1, 1), (2, 2), (4, 4)]);
        assert_eq!(cut(6, 5), [(6, 2), (8, 2), (10, 1)]);
        assert_eq!(cut(3, 0), []);
    }
}
