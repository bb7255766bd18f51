// SPDX-License-Identifier: Apache-2.0
//! A PCI function in another process.

use super::link::{Link, LinkError, Message, end_of};
use super::server::{Capabilities, VersionData};
use super::wire::{
    Body, Fields, Header, IRQ_MSIX, MAJOR, MAX_DATA, MAX_FDS, MINOR, REGION_BARS, REGION_CONFIG, command,
    error_of, flag,
};
use crate::eventfds::EventFds;
use crate::peer::printable;
use crate::process::Withheld;
use crate::{DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Process, Result};
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, setsockopt, socket};
use nix::sys::time::{TimeVal, TimeValLike};
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limits of a [`Client`].
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// How long the server may take to reply to a request, or to read one from the socket.
    pub reply_time: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { reply_time: Duration::from_secs(30) }
    }
}

/// A function reached over a vfio-user socket.
///
/// Register writes are posted: they return once they are sent, and an error at the server is lost, as on a real bus.
/// Every other call waits for its reply, within [`ClientOptions::reply_time`]. When the server ends, every call,
/// waiting ones included, fails with [`PciError::Gone`]. Dropping the client disconnects it, and the server releases
/// everything it set up.
#[derive(Debug)]
pub struct Client {
    info: FunctionInfo,
    /// Dropped before `link` closes its descriptor.
    _withheld: Withheld,
    link: Link,
    reply_time: Duration,
    /// Set once the stream cannot be used any more; every later call fails immediately.
    broken: AtomicBool,
    requests: Mutex<Requests>,
    /// One for each MSI-X vector.
    eventfds: EventFds,
    maps: Mutex<HashMap<u64, Arc<HostMemory>>>,
    /// The process that has connected.
    process: Process,
}

/// After a reply has not come in time, the next one is waited for only this fraction of the time: the end of a run
/// makes several requests, and should not take long.
const OWING: u32 = 30;

/// Guards the socket: held from a request to its reply.
#[derive(Debug, Default)]
struct Requests {
    next_id: u16,
    /// Requests that timed out and whose replies are still due.
    abandoned: HashSet<u16>,
    max_fds: usize,
}

impl Client {
    /// Connects to the server at `path` and reads the properties of its function.
    pub fn connect(path: &Path) -> Result<Self> {
        Self::connect_with(path, ClientOptions::default())
    }

    /// As [`Client::connect`], with options.
    pub fn connect_with(path: &Path, options: ClientOptions) -> Result<Self> {
        let stream = connect(path, options.reply_time)
            .map_err(|source| PciError::Os { what: format!("connecting to {}", path.display()), source })?;
        Self::on(stream, options)
    }

    /// Uses the server at the other end of a connected socket.
    pub fn on(stream: UnixStream, options: ClientOptions) -> Result<Self> {
        let link = Link::new(stream, options.reply_time)
            .map_err(|source| PciError::Os { what: "setting up the socket".into(), source })?;
        let info = FunctionInfo { vendor: 0, device: 0, bar_sizes: [0; 6], vectors: 0 };
        let mut client = Self {
            info,
            _withheld: Withheld::new(link.fd()),
            link,
            reply_time: options.reply_time,
            broken: AtomicBool::new(false),
            requests: Mutex::default(),
            eventfds: EventFds::default(),
            maps: Mutex::default(),
            process: Process::current(),
        };
        client.greet()?;
        client.info = client.learn()?;
        client.listen()?;
        Ok(client)
    }

    fn greet(&self) -> Result<()> {
        let capabilities = Capabilities {
            max_msg_fds: Some(MAX_FDS as u64),
            max_data_xfer_size: Some(u64::from(MAX_DATA)),
            write_multiple: Some(true),
            error_text: Some(true),
            ..Capabilities::default()
        };
        let data = VersionData { capabilities }.to_bytes().map_err(|_| garbled("version"))?;
        let body = Body::default().u16(MAJOR).u16(MINOR).bytes(&data).0;
        let reply = self.request(command::VERSION, &body, &[], "negotiating the version")?;
        let parse = |mut fields: Fields| -> std::result::Result<(u16, VersionData), Errno> {
            let (major, _minor) = (fields.u16()?, fields.u16()?);
            Ok((major, VersionData::parse(fields.0)?))
        };
        let (major, data) = parse(Fields(&reply)).map_err(|_| garbled("version"))?;
        if major != MAJOR {
            return Err(PciError::Protocol(format!("the server speaks version {major} of vfio-user")));
        }
        // The protocol's default for a server that does not state it.
        self.lock().max_fds = data.capabilities.max_msg_fds.unwrap_or(1).clamp(1, MAX_FDS as u64) as usize;
        Ok(())
    }

    /// Queries the contents of a [`FunctionInfo`].
    fn learn(&self) -> Result<FunctionInfo> {
        let body = Body::default().u32(16).u32(0).u32(0).u32(0).0;
        let reply = self.request(command::GET_INFO, &body, &[], "querying the device")?;
        let flags = reply_word(&reply, 1)?;
        if flags & flag::DEVICE_PCI == 0 {
            return Err(PciError::Protocol("the server's device is not a PCI function".into()));
        }
        let (regions, irqs) = (reply_word(&reply, 2)?, reply_word(&reply, 3)?);
        let mut bar_sizes = [0; 6];
        for (bar, size) in (0..REGION_BARS.min(regions)).zip(&mut bar_sizes) {
            let body = Body::default().u32(32).u32(0).u32(bar).u32(0).u64(0).u64(0).0;
            let reply = self.request(command::GET_REGION_INFO, &body, &[], "querying a BAR")?;
            *size = u64::from(reply_word(&reply, 4)?) | u64::from(reply_word(&reply, 5)?) << 32;
        }
        let mut vectors = 0;
        if irqs > IRQ_MSIX {
            let body = Body::default().u32(16).u32(0).u32(IRQ_MSIX).u32(0).0;
            let reply = self.request(command::GET_IRQ_INFO, &body, &[], "querying interrupts")?;
            vectors = reply_word(&reply, 3)?.min(64) as u16;
        }
        let mut id = [0; 4];
        self.region_read(REGION_CONFIG, 0, &mut id)?;
        let vendor = u16::from_le_bytes([id[0], id[1]]);
        let device = u16::from_le_bytes([id[2], id[3]]);
        Ok(FunctionInfo { vendor, device, bar_sizes, vectors })
    }

    /// Gives the server an eventfd for each vector.
    fn listen(&mut self) -> Result<()> {
        self.eventfds = EventFds::new(self.info.vectors)?;
        let fds = self.eventfds.raw();
        let at_once = self.lock().max_fds;
        for (i, chunk) in fds.chunks(at_once).enumerate() {
            let (start, count) = ((i * at_once) as u32, chunk.len() as u32);
            let flags = flag::SET_EVENTFD | flag::SET_TRIGGER;
            let body = Body::default().u32(20).u32(flags).u32(IRQ_MSIX).u32(start).u32(count).0;
            self.request(command::SET_IRQS, &body, chunk, "setting up interrupts")?;
        }
        Ok(())
    }

    fn region_read(&self, region: u32, offset: u64, buf: &mut [u8]) -> Result<()> {
        let what = || format!("reading {} bytes of {} at {offset:#x}", buf.len(), region_name(region));
        let body = Body::default().u64(offset).u32(region).u32(buf.len() as u32).0;
        let reply = self.request(command::REGION_READ, &body, &[], &what())?;
        let data = reply.get(16..).filter(|data| data.len() == buf.len()).ok_or_else(|| garbled("read"))?;
        buf.copy_from_slice(data);
        Ok(())
    }

    /// Sends a request and waits for its reply, whose body is returned.
    fn request(&self, command: u16, body: &[u8], fds: &[RawFd], what: &str) -> Result<Vec<u8>> {
        let mut requests = self.lock();
        let id = self.send(&mut requests, command, 0, body, fds)?;
        // Replies come in order: while an earlier one is overdue, this one is unlikely to come in time.
        let patience = if requests.abandoned.is_empty() { self.reply_time } else { self.reply_time / OWING };
        let mut deadline = end_of(patience);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let message = match self.link.receive(left, None) {
                Ok(message) => message,
                Err(LinkError::Silent) => {
                    requests.abandoned.insert(id);
                    return Err(PciError::Timeout(self.reply_time));
                }
                Err(why) => return Err(self.break_off(&why)),
            };
            let Message { header, body, .. } = message;
            if !header.is_reply() {
                self.decline(&header)?;
                // Messages that never end must not make the wait endless.
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    requests.abandoned.insert(id);
                    return Err(PciError::Timeout(self.reply_time));
                }
            } else if header.id == id && header.command == command {
                return match header.flags & flag::ERROR {
                    0 => Ok(body),
                    _ => Err(error_of(header.error, what.into(), &printable(&body))),
                };
            } else if requests.abandoned.remove(&header.id) {
                deadline = end_of(self.reply_time);
            } else {
                let why = format!("unexpected reply to command {} (id {})", header.command, header.id);
                self.broken.store(true, Ordering::Release);
                self.link.shutdown();
                return Err(PciError::Protocol(why));
            }
        }
    }

    fn send(
        &self,
        requests: &mut Requests,
        command: u16,
        flags: u32,
        body: &[u8],
        fds: &[RawFd],
    ) -> Result<u16> {
        if self.broken.load(Ordering::Acquire) {
            return Err(PciError::Gone("the connection broke earlier".into()));
        }
        let id = requests.next_id;
        requests.next_id = id.wrapping_add(1);
        let bytes = Header::request(id, command, flags).encode(body);
        self.link.send(&bytes, fds, None).map_err(|why| self.break_off(&why))?;
        Ok(id)
    }

    /// The server may ask its client to copy memory that it cannot access. It can access all of ours.
    fn decline(&self, header: &Header) -> Result<()> {
        if !header.wants_reply() {
            return Ok(());
        }
        let reply = header.error_reply(Errno::EOPNOTSUPP).encode(&[]);
        self.link.send(&reply, &[], None).map_err(|why| self.break_off(&why))
    }

    /// Marks the connection as broken; other threads find out at their next operation.
    fn break_off(&self, why: &LinkError) -> PciError {
        self.broken.store(true, Ordering::Release);
        self.link.shutdown();
        match why {
            LinkError::BadSize(_) | LinkError::TooManyFds => PciError::Protocol(why.to_string()),
            _ => PciError::Gone(why.to_string()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Closing the socket would not end the connection while a child of `fork()` has a copy of it.
        if self.process.is_current() {
            self.link.shutdown();
        }
    }
}

impl PciFunction for Client {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }

    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        self.region_read(REGION_CONFIG, u64::from(offset), buf)
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()> {
        let body =
            Body::default().u64(u64::from(offset)).u32(REGION_CONFIG).u32(data.len() as u32).bytes(data).0;
        let what = format!("writing {} bytes of configuration space at {offset:#x}", data.len());
        self.request(command::REGION_WRITE, &body, &[], &what).map(drop)
    }

    fn read(&self, bar: u8, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(&self.info, bar, offset, buf.len())?;
        self.region_read(u32::from(bar), offset, buf)
    }

    fn write(&self, bar: u8, offset: u64, data: &[u8]) -> Result<()> {
        check_range(&self.info, bar, offset, data.len())?;
        let body = Body::default().u64(offset).u32(u32::from(bar)).u32(data.len() as u32).bytes(data).0;
        self.send(&mut self.lock(), command::REGION_WRITE, flag::NO_REPLY, &body, &[]).map(drop)
    }

    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        check_register(&self.info, bar, offset)?;
        let mut word = [0; 4];
        self.region_read(u32::from(bar), offset, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        check_register(&self.info, bar, offset)?;
        let body = Body::default().u64(offset).u32(u32::from(bar)).u32(4).u32(value).0;
        self.send(&mut self.lock(), command::REGION_WRITE, flag::NO_REPLY, &body, &[]).map(drop)
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()> {
        let flags = match access {
            DmaAccess::Read => flag::DMA_READ,
            DmaAccess::Write => flag::DMA_WRITE,
            DmaAccess::ReadWrite => flag::DMA_READ | flag::DMA_WRITE,
        };
        let len = memory.len() as u64;
        let body = Body::default().u32(32).u32(flags).u64(memory.fd_offset()).u64(iova).u64(len).0;
        let what = format!("mapping {len:#x} bytes for DMA at {iova:#x}");
        self.request(command::DMA_MAP, &body, &[memory.fd().as_raw_fd()], &what)?;
        self.maps.lock().unwrap_or_else(PoisonError::into_inner).insert(iova, memory);
        Ok(())
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        let what = format!("unmapping DMA memory at {iova:#x}");
        let maps = || self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        let len = maps().get(&iova).map(|memory| memory.len() as u64);
        let len = len.ok_or_else(|| PciError::OutOfRange { what: what.clone() })?;
        let body = Body::default().u32(24).u32(0).u64(iova).u64(len).0;
        // If the server does not remove it, another attempt may.
        self.request(command::DMA_UNMAP, &body, &[], &what)?;
        maps().remove(&iova);
        Ok(())
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        // The socket is polled only for a hang-up, which is always reported: replies are read by their requesters.
        let fired = self.eventfds.wait(mask, timeout, self.link.fd(), PollFlags::empty())?;
        fired.ok_or_else(|| self.break_off(&LinkError::Closed))
    }

    fn reset(&self) -> Result<()> {
        self.request(command::RESET, &[], &[], "resetting the function").map(drop)
    }
}

/// Connects within a time limit: if the server's queue is full, the kernel lets the caller wait.
fn connect(path: &Path, limit: Duration) -> std::io::Result<UnixStream> {
    let address = UnixAddr::new(path)?;
    let stream = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // More is not a valid time for the kernel.
    let limit = limit.min(Duration::from_secs(1 << 32));
    setsockopt(&stream, SendTimeout, &TimeVal::microseconds(limit.as_micros() as i64))?;
    loop {
        match nix::sys::socket::connect(stream.as_raw_fd(), &address) {
            Ok(()) => return Ok(stream.into()),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Err(Errno::ETIMEDOUT.into()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A word of a reply's body.
fn reply_word(body: &[u8], index: usize) -> Result<u32> {
    let mut fields = Fields(body.get(4 * index..).unwrap_or_default());
    fields.u32().map_err(|_| garbled("information"))
}

fn garbled(what: &str) -> PciError {
    PciError::Protocol(format!("garbled {what} reply"))
}

fn region_name(region: u32) -> String {
    if region == REGION_CONFIG { "configuration space".into() } else { format!("BAR{region}") }
}

/// Checks that an access is to a naturally aligned 32-bit register.
fn check_register(info: &FunctionInfo, bar: u8, offset: u64) -> Result<()> {
    if offset % 4 != 0 {
        return Err(PciError::OutOfRange { what: format!("register {offset:#x} of BAR{bar}") });
    }
    check_range(info, bar, offset, 4)
}

/// Posted writes have no reply, so accesses that cannot succeed are refused here.
fn check_range(info: &FunctionInfo, bar: u8, offset: u64, len: usize) -> Result<()> {
    let size = info.bar_sizes.get(usize::from(bar)).copied().unwrap_or(0);
    let fits = offset.checked_add(len as u64).is_some_and(|end| end <= size);
    if len == 0 || len > MAX_DATA as usize || !fits {
        return Err(PciError::OutOfRange { what: format!("{len} bytes at {offset:#x} of BAR{bar}") });
    }
    Ok(())
}
