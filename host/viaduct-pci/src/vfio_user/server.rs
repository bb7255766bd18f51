// SPDX-License-Identifier: Apache-2.0
//! Offers a PCI function on a Unix socket.

use super::irq::{self, IrqTable};
use super::link::{Link, LinkError, Message, wait};
use super::wire::{
    Body, Fields, IRQ_MSIX, IRQS, MAJOR, MAX_DATA, MAX_FDS, MAX_FILES, MAX_MAPS, MINOR, REGION_BARS,
    REGION_CONFIG, REGIONS, command, errno_of, flag,
};
use crate::{CONFIG_SIZE, DmaAccess, HostMemory, PciError, PciFunction, Result};
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limits of a [`Server`].
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Time a message may take once begun, in either direction; a client that exceeds it is disconnected.
    pub message_time: Duration,
    /// How long a new client waits for the present one to leave before it is refused with `EBUSY`.
    pub busy_time: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { message_time: Duration::from_secs(5), busy_time: Duration::from_secs(1) }
    }
}

/// Serves a function to one client at a time, many in turn.
///
/// Whatever a client sends or however it ends, the server lives on: the function is reset, the client's memory
/// released, and the next client served. Dropping the server ends it.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    path: Option<PathBuf>,
}

impl Server {
    /// Binds a socket at `path` and serves `function` on it. A socket file left behind by a dead server is replaced.
    pub fn bind(path: &Path, function: Arc<dyn PciFunction>) -> Result<Self> {
        Self::bind_with(path, function, ServerOptions::default())
    }

    /// As [`Server::bind`], with options.
    pub fn bind_with(path: &Path, function: Arc<dyn PciFunction>, options: ServerOptions) -> Result<Self> {
        let bound = match UnixListener::bind(path) {
            Err(e) if e.kind() == std::io::ErrorKind::AddrInUse && is_stale(path) => {
                std::fs::remove_file(path).and_then(|()| UnixListener::bind(path))
            }
            other => other,
        };
        let listener = bound.map_err(|e| os(format!("binding {}", path.display()), e))?;
        let mut server = Self::on(listener, function, options)?;
        server.path = Some(path.to_owned());
        Ok(server)
    }

    /// Serves `function` on a listening socket made elsewhere.
    pub fn on(
        listener: UnixListener,
        function: Arc<dyn PciFunction>,
        options: ServerOptions,
    ) -> Result<Self> {
        listener.set_nonblocking(true).map_err(|e| os("setting up the socket", e))?;
        let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|e| os("setting up the server", e.into()))?;
        let shared = Arc::new(Shared {
            function,
            options,
            stop,
            irqs: Arc::new(IrqTable::default()),
            busy: Mutex::new(false),
            freed: Condvar::new(),
        });
        let thread = std::thread::Builder::new()
            .name("vfio-user".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || accept_loop(&shared, &listener)
            })
            .map_err(|e| os("starting the server", e))?;
        Ok(Self { shared, thread: Some(thread), path: None })
    }

    /// Disconnects the client and ends the server. Returns when the function is reset and no longer used.
    pub fn stop(&mut self) {
        // Cannot fail: the counter is far from its limit.
        let _ = self.shared.stop.write(1);
        if let Some(thread) = self.thread.take() {
            if thread.join().is_err() {
                tracing::error!("the server's thread panicked");
            }
        }
        if let Some(path) = self.path.take() {
            // Gone already is fine.
            let _ = std::fs::remove_file(path);
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
    /// Readable for ever once the server is to end.
    stop: EventFd,
    irqs: Arc<IrqTable>,
    /// Whether there is a client.
    busy: Mutex<bool>,
    freed: Condvar,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

fn is_stale(path: &Path) -> bool {
    matches!(UnixStream::connect(path), Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused)
}

fn accept_loop(shared: &Arc<Shared>, listener: &UnixListener) {
    let mut client: Option<JoinHandle<()>> = None;
    while wait(listener.as_fd(), PollFlags::POLLIN, Some(shared.stop.as_fd()), None) == Ok(true) {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                // Most likely out of descriptors: breathe instead of spinning.
                tracing::warn!(%error, "accepting a client");
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        let link = match Link::new(stream, shared.options.message_time) {
            Ok(link) => link,
            Err(error) => {
                tracing::warn!(%error, "setting up a client's socket");
                continue;
            }
        };
        if !take_turn(shared) {
            refuse(&link);
            continue;
        }
        if let Some(ended) = client.take() {
            let _ = ended.join();
        }
        let for_client = Arc::clone(shared);
        match std::thread::Builder::new()
            .name("vfio-user-client".into())
            .spawn(move || serve(&for_client, link))
        {
            Ok(thread) => client = Some(thread),
            Err(error) => {
                tracing::error!(%error, "starting a thread for a client");
                end_turn(shared);
            }
        }
    }
    if let Some(client) = client {
        let _ = client.join();
    }
}

/// Waits for the present client to leave, within limits; `true` if the place is now taken for a new one.
fn take_turn(shared: &Shared) -> bool {
    let busy = shared.busy.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut busy, _) = shared
        .freed
        .wait_timeout_while(busy, shared.options.busy_time, |busy| *busy)
        .unwrap_or_else(PoisonError::into_inner);
    let free = !*busy;
    *busy = true;
    free
}

fn end_turn(shared: &Shared) {
    *shared.busy.lock().unwrap_or_else(PoisonError::into_inner) = false;
    shared.freed.notify_one();
}

/// Answers the first message of a client that came while another is served. Takes little time, so that a slow one
/// does not hold up the others.
fn refuse(link: &Link) {
    tracing::info!("refusing a client: another one is connected");
    if let Ok(message) = link.receive(Some(Duration::from_millis(100)), None) {
        let reply = message.header.error_reply(Errno::EBUSY);
        // The client's loss if it does not read.
        let _ = link.send(&reply.encode(&[]), &[], None);
    }
}

/// One client, from its first message to its last.
fn serve(shared: &Arc<Shared>, link: Link) {
    /// Puts everything back even if a request panics.
    struct Cleanup<'a>(Connection<'a>, &'a Shared);
    impl Drop for Cleanup<'_> {
        fn drop(&mut self) {
            self.0.close();
            end_turn(self.1);
        }
    }
    let mut cleanup = Cleanup(Connection::new(shared), shared);
    let why = cleanup.0.run(&link);
    tracing::debug!(%why, "client ended");
    link.shutdown();
}

/// What a client has set up.
struct Connection<'a> {
    shared: &'a Shared,
    greeted: bool,
    maps: BTreeMap<u64, Mapping>,
    files: BTreeMap<FileKey, Weak<OwnedFd>>,
    forwarder_stop: Option<Arc<AtomicBool>>,
}

/// Device, inode and access mode of a file: descriptors with equal keys can stand for each other.
type FileKey = (u64, u64, i32);

struct Mapping {
    len: u64,
    /// Whether the function knows of it: memory that came without a descriptor is out of its reach.
    reachable: bool,
}

type Reply = std::result::Result<Vec<u8>, Errno>;

impl<'a> Connection<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self { shared, greeted: false, maps: BTreeMap::new(), files: BTreeMap::new(), forwarder_stop: None }
    }

    /// Serves requests until the connection is of no further use.
    fn run(&mut self, link: &Link) -> LinkError {
        let stop = Some(self.shared.stop.as_fd());
        loop {
            // Only the greeting is due within a time; afterwards a client may be silent as long as it likes.
            let patience = if self.greeted { None } else { Some(self.shared.options.message_time) };
            let message = match link.receive(patience, stop) {
                Ok(message) => message,
                Err(why) => return why,
            };
            let header = message.header;
            if header.flags & flag::TYPE != 0 {
                tracing::warn!("client sent a reply without a request");
                return LinkError::Closed;
            }
            let result = self.handle(message);
            if let Err(errno) = &result {
                tracing::debug!(command = header.command, %errno, "request refused");
            }
            if header.wants_reply() {
                let bytes = match &result {
                    Ok(body) => header.reply().encode(body),
                    Err(errno) => header.error_reply(*errno).encode(&[]),
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
            return Err(Errno::EINVAL);
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
                self.shared.function.reset().map_err(|e| errno_of(&e))?;
                Ok(Vec::new())
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn version(&mut self, fields: &mut Fields) -> Reply {
        let (major, minor) = (fields.u16()?, fields.u16()?);
        if major != MAJOR {
            return Err(Errno::EPROTONOSUPPORT);
        }
        let offered = VersionData::parse(fields.0)?.capabilities;
        let capabilities = Capabilities {
            max_msg_fds: Some(MAX_FDS as u64),
            max_data_xfer_size: Some(u64::from(MAX_DATA)),
            max_dma_maps: offered.max_dma_maps.map(|max| max.min(MAX_MAPS as u64)),
            pgsizes: offered.pgsizes.map(|_| crate::PAGE_SIZE as u64),
            write_multiple: offered.write_multiple.filter(|wanted| *wanted),
        };
        let data = VersionData { capabilities }.to_bytes()?;
        self.start_forwarder()?;
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
            _ => return Err(Errno::EINVAL),
        };
        let last = len.checked_sub(1).and_then(|n| iova.checked_add(n)).ok_or(Errno::EINVAL)?;
        if argsz < 32 {
            return Err(Errno::EINVAL);
        }
        // Maps do not overlap, so only the nearest one below the end can collide.
        if self.maps.range(..=last).next_back().is_some_and(|(at, map)| *at + (map.len - 1) >= iova) {
            return Err(Errno::EEXIST);
        }
        if self.maps.len() >= MAX_MAPS {
            return Err(Errno::ENOSPC);
        }
        let reachable = match (fd, access) {
            (Some(fd), Some(access)) => {
                let size = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
                let fd = self.share_file(fd)?;
                let map = || {
                    let memory = Arc::new(HostMemory::from_fd(fd, offset, size, access)?);
                    self.shared.function.dma_map(iova, memory, access)
                };
                map().map_err(|error| {
                    tracing::warn!(%error, iova, len, "client's memory refused");
                    match error {
                        PciError::Protocol(_) => Errno::EPERM,
                        other => errno_of(&other),
                    }
                })?;
                true
            }
            _ => false,
        };
        self.maps.insert(iova, Mapping { len, reachable });
        Ok(Vec::new())
    }

    /// Gives mappings of one file one descriptor, however often the client sends it.
    fn share_file(&mut self, fd: OwnedFd) -> std::result::Result<Arc<OwnedFd>, Errno> {
        let stat = nix::sys::stat::fstat(fd.as_raw_fd())?;
        let mode = nix::fcntl::fcntl(fd.as_raw_fd(), nix::fcntl::F_GETFL)? & libc::O_ACCMODE;
        let key = (stat.st_dev, stat.st_ino, mode);
        if let Some(shared) = self.files.get(&key).and_then(Weak::upgrade) {
            return Ok(shared);
        }
        if self.files.len() >= MAX_FILES {
            self.files.retain(|_, file| file.strong_count() != 0);
        }
        if self.files.len() >= MAX_FILES {
            return Err(Errno::ENOSPC);
        }
        let shared = Arc::new(fd);
        self.files.insert(key, Arc::downgrade(&shared));
        Ok(shared)
    }

    /// Removes every mapping that lies inside the range, as the kernel's VFIO does; a range that would cut a mapping
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
                    return Err(Errno::EINVAL);
                }
                iova..=last
            }
            flag::UNMAP_ALL if iova == 0 && len == 0 => 0..=u64::MAX,
            _ => return Err(Errno::EINVAL),
        };
        let inside: Vec<u64> = self.maps.range(range).map(|(at, _)| *at).collect();
        inside.into_iter().try_for_each(|at| self.unmap_one(at)).map_err(|e| errno_of(&e))?;
        Ok(request.to_vec())
    }

    fn unmap_one(&mut self, iova: u64) -> Result<()> {
        match self.maps.remove(&iova) {
            Some(Mapping { reachable: true, .. }) => self.shared.function.dma_unmap(iova),
            _ => Ok(()),
        }
    }

    fn device_info(fields: &mut Fields) -> Reply {
        if fields.u32()? < 16 {
            return Err(Errno::EINVAL);
        }
        fields.rest(12)?;
        Ok(Body::default().u32(16).u32(flag::DEVICE_RESET | flag::DEVICE_PCI).u32(REGIONS).u32(IRQS).0)
    }

    fn region_info(&mut self, fields: &mut Fields) -> Reply {
        let (argsz, _flags, index) = (fields.u32()?, fields.u32()?, fields.u32()?);
        fields.rest(20)?;
        if argsz < 32 || index >= REGIONS {
            return Err(Errno::EINVAL);
        }
        let size = self.region_size(index);
        let flags = if size == 0 { 0 } else { flag::REGION_READ | flag::REGION_WRITE };
        Ok(Body::default().u32(32).u32(flags).u32(index).u32(0).u64(size).u64(0).0)
    }

    fn irq_info(&mut self, fields: &mut Fields) -> Reply {
        let (argsz, _flags, index) = (fields.u32()?, fields.u32()?, fields.u32()?);
        fields.rest(4)?;
        if argsz < 16 || index >= IRQS {
            return Err(Errno::EINVAL);
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
            return Err(Errno::EINVAL);
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
                    fds.iter().try_for_each(irq::check_eventfd)?;
                    irqs.assign(start as usize, fds.into_iter().map(Some));
                } else {
                    return Err(Errno::EINVAL);
                }
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(Vec::new())
    }

    fn start_forwarder(&mut self) -> std::result::Result<(), Errno> {
        let stop = Arc::new(AtomicBool::new(false));
        let (function, irqs, stopped) =
            (Arc::clone(&self.shared.function), Arc::clone(&self.shared.irqs), Arc::clone(&stop));
        std::thread::Builder::new()
            .name("vfio-user-irq".into())
            .spawn(move || irq::forward(&*function, &irqs, &stopped))
            .map_err(|_| Errno::EAGAIN)?;
        self.forwarder_stop = Some(stop);
        Ok(())
    }

    fn region_read(&mut self, fields: &mut Fields) -> Reply {
        let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
        fields.rest(0)?;
        let mut data = vec![0; self.check_access(region, offset, count)?];
        self.read(region, offset, &mut data).map_err(|e| errno_of(&e))?;
        Ok(Body::default().u64(offset).u32(region).u32(count).bytes(&data).0)
    }

    fn region_write(&mut self, fields: &mut Fields) -> Reply {
        let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
        let len = self.check_access(region, offset, count)?;
        self.write(region, offset, fields.rest(len)?).map_err(|e| errno_of(&e))?;
        Ok(Body::default().u64(offset).u32(region).u32(count).0)
    }

    /// A batch of writes of up to eight bytes each; the first failing one ends it.
    fn region_write_multi(&mut self, fields: &mut Fields) -> Reply {
        let writes = fields.u64()?;
        for _ in 0..writes {
            let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
            let data = fields.bytes(8)?;
            let len = self.check_access(region, offset, count)?;
            let data = data.get(..len).ok_or(Errno::EINVAL)?;
            self.write(region, offset, data).map_err(|e| errno_of(&e))?;
        }
        fields.rest(0)?;
        Ok(Body::default().u64(writes).0)
    }

    fn check_access(&self, region: u32, offset: u64, count: u32) -> std::result::Result<usize, Errno> {
        let end = offset.checked_add(u64::from(count)).ok_or(Errno::EINVAL)?;
        if count == 0 || count > MAX_DATA || end > self.region_size(region) {
            return Err(Errno::EINVAL);
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

    fn write(&self, region: u32, offset: u64, data: &[u8]) -> Result<()> {
        let function = &self.shared.function;
        if region == REGION_CONFIG {
            return pieces(offset, data.len())
                .try_for_each(|(at, range)| function.config_write(at as u16, &data[range]));
        }
        function.write(region as u8, offset, data)
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

    /// Takes back all that the client has set up, and resets the function.
    fn close(&mut self) {
        if let Some(stop) = self.forwarder_stop.take() {
            stop.store(true, Ordering::Release);
        }
        if !self.greeted {
            return;
        }
        if let Err(error) = self.shared.function.reset() {
            tracing::warn!(%error, "resetting the function after a client");
        }
        let all: Vec<u64> = self.maps.keys().copied().collect();
        for iova in all {
            if let Err(error) = self.unmap_one(iova) {
                tracing::warn!(%error, iova, "taking back a client's memory");
            }
        }
        self.shared.irqs.clear();
    }
}

/// Cuts an access into naturally aligned pieces of 1, 2, 4 or 8 bytes: offset, and range in the data.
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

/// What is negotiated as JSON after the version numbers. Unknown members are ignored.
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

    pub fn to_bytes(&self) -> Reply {
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
