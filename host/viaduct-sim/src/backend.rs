// SPDX-License-Identifier: Apache-2.0
//! Backends of a card's board ports: a TAP device, sockets, captures, a plug, a terminal.
//!
//! A cable to the operating system has a thread for each direction, which sleeps until there is data. A frame or byte that is not accepted
//! in time is dropped: a cable never stops the card. Only standard output is waited for; the serial line stops meanwhile.
//! Captures are read and written by the thread that runs the card, so that their frames come in the same cycles every time.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use viaduct_pci::{PciError, SocketFile};

use crate::capture::{CaptureSink, Trouble};
pub use crate::capture::{CaptureSource, Captures, Pace};
use crate::card::SimCard;
use crate::kinds::{CONSOLE, NET};
use crate::line::{Line, LinkState};
use crate::port::BoardPort;

/// How long a thread waits for the card before it checks whether it should end.
const LOOK: Duration = Duration::from_secs(1);
/// How long data from the card waits for a slow reader before it is dropped.
const PATIENCE: Duration = Duration::from_secs(1);
/// What a pipe or terminal that is ready accepts without waiting, whether its descriptor blocks or not.
const AT_ONCE: usize = 256;
const MAX_FRAME: usize = crate::ffi::MAX_PACKET;
const MIN_FRAME: usize = 14;

/// The other end of the Ethernet cable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Net {
    /// Link up, with nothing at the other end.
    #[default]
    None,
    /// A TAP device of the host.
    Tap(String),
    /// A datagram socket, one frame per datagram: its own path, and the peer's. Without the latter frames are sent to the
    /// last sender.
    Unix(PathBuf, Option<PathBuf>),
    /// Captured frames.
    Captures(Captures),
    /// A plug that sends back what the card sends.
    Loop,
}

impl FromStr for Net {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "loop" => Ok(Self::Loop),
            Some(("tap", name)) if !name.is_empty() && name.len() < libc::IFNAMSIZ => {
                Ok(Self::Tap(name.into()))
            }
            Some(("unix", paths)) if !paths.is_empty() => {
                let (own, peer) = paths.split_once(',').map_or((paths, None), |(a, b)| (a, Some(b.into())));
                Ok(Self::Unix(own.into(), peer))
            }
            Some((kind @ ("pcap" | "pcap-times"), paths)) => {
                let (input, output) = paths.split_once(',').unwrap_or((paths, ""));
                let named = |path: &str| (!path.is_empty()).then(|| PathBuf::from(path));
                let (input, output) = (named(input), named(output));
                if input.is_none() && output.is_none() {
                    return Err("name a file with frames, one to be written, or both: pcap:IN, pcap:,OUT or pcap:IN,OUT".to_owned());
                }
                let pace = if kind == "pcap" { Pace::Line } else { Pace::Stamps };
                Ok(Self::Captures(Captures { input, output, pace }))
            }
            _ => {
                Err("write none, tap:NAME, unix:PATH[,PEER], pcap:IN,OUT, pcap-times:IN,OUT or loop"
                    .to_owned())
            }
        }
    }
}

impl Net {
    /// Files that it uses.
    pub fn files(&self) -> Vec<&Path> {
        match self {
            Self::Captures(captures) => {
                [&captures.input, &captures.output].into_iter().flatten().map(PathBuf::as_path).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Who runs the card while nothing but a line needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// A thread of the cable.
    Cable,
    /// A thread that waits for the card in any case: what happens then does not depend on this machine.
    Caller,
}

/// The other end of the console's serial line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Console {
    /// None: output is dropped.
    #[default]
    None,
    /// A new pseudo-terminal.
    Pty,
    /// A stream socket that takes one client at a time.
    Unix(PathBuf),
    /// Standard input and output of this process.
    Stdio,
}

impl FromStr for Console {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "pty" => Ok(Self::Pty),
            None if text == "stdio" => Ok(Self::Stdio),
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            _ => Err("write pty, unix:PATH, stdio or none".to_owned()),
        }
    }
}

/// A cable between a board port and a backend. Unplugged when dropped.
pub struct Cable {
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<()>>,
    place: String,
    socket: Option<SocketFile>,
    /// A line whose far end is part of the simulation.
    line: Option<Line>,
    trouble: Trouble,
    looped: Option<Arc<SimCard>>,
}

impl Cable {
    /// Connects the card's Ethernet port. `None` if there is nothing to connect.
    pub fn net(card: &Arc<SimCard>, to: &Net) -> io::Result<Option<Self>> {
        Self::net_run_by(card, to, Runner::Cable)
    }

    /// As [`Cable::net`], with the choice of who runs the card.
    pub fn net_run_by(card: &Arc<SimCard>, to: &Net, runner: Runner) -> io::Result<Option<Self>> {
        let (end, socket): (Box<dyn End>, _) = match to {
            Net::None => return Ok(None),
            Net::Captures(captures) => return Self::captures(card, captures, runner).map(Some),
            Net::Loop => return Self::looped(card, runner).map(Some),
            Net::Tap(name) => (Box::new(Tap(open_tap(name)?)), None),
            Net::Unix(path, peer) => {
                let (end, file) = Datagrams::bind(path, peer.clone())?;
                (Box::new(end), Some(file))
            }
        };
        let place = match to {
            Net::Tap(name) => format!("TAP device {name}"),
            Net::Unix(path, _) => path.display().to_string(),
            Net::None | Net::Captures(_) | Net::Loop => String::new(),
        };
        Self::plug(card, NET, end, place, socket).map(Some)
    }

    /// Connects the console's serial line. `None` if there is nothing to connect.
    pub fn console(card: &Arc<SimCard>, to: &Console) -> io::Result<Option<Self>> {
        let (end, place, socket): (Box<dyn End>, _, _) = match to {
            Console::None => return Ok(None),
            Console::Pty => {
                let pty = Pty::open()?;
                let place = pty.name.clone();
                (Box::new(pty), place, None)
            }
            Console::Unix(path) => {
                let (end, file) = Stream::bind(path)?;
                (Box::new(end), path.display().to_string(), Some(file))
            }
            Console::Stdio => (Box::new(Stdio), "this terminal".to_owned(), None),
        };
        Self::plug(card, CONSOLE, end, place, socket).map(Some)
    }

    /// Description of the other end for users: the name of a device or socket.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether a capture has no more frames for the card, and its port has been handed all of them; `false` for other cables.
    pub fn is_over(&self) -> bool {
        self.line.as_ref().is_some_and(Line::is_over)
    }

    /// The first error of a capture since it was connected: no more frames pass in its direction.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.get()
    }

    /// Unplugs it. An error is the first one of a capture.
    pub fn close(self) -> io::Result<()> {
        let trouble = self.trouble.clone();
        drop(self);
        trouble.get().map_or(Ok(()), |why| Err(io::Error::other(why)))
    }

    fn captures(card: &Arc<SimCard>, captures: &Captures, runner: Runner) -> io::Result<Self> {
        let trouble = Trouble::new(runner == Runner::Cable);
        let Captures { input, output, pace } = captures;
        let source = match input {
            Some(path) => CaptureSource::open_with(path, *pace, trouble.clone())?,
            None => CaptureSource::none(trouble.clone()),
        };
        let sink = match output {
            Some(path) => CaptureSink::create(path, input.as_deref(), trouble.clone())?,
            None => CaptureSink::none(trouble.clone()),
        };
        let line = card.line(source, sink).ok_or_else(no_port)?;
        let name =
            |path: &Option<PathBuf>| path.as_ref().map_or("nothing".into(), |p| p.display().to_string());
        let place = format!("captures: frames from {}, to {}", name(input), name(output));
        let mut cable = Self::without_threads(place)?;
        (cable.line, cable.trouble) = (Some(line), trouble);
        cable.run(card, runner)
    }

    fn looped(card: &Arc<SimCard>, runner: Runner) -> io::Result<Self> {
        // Frames do not pass by the host: nobody else may have the port.
        if !card.claim(NET) {
            return Err(no_port());
        }
        card.set_link(LinkState::Loop).map_err(io::Error::other)?;
        let mut cable = Self::without_threads("a plug that sends back its frames".into())?;
        cable.looped = Some(Arc::clone(card));
        cable.run(card, runner)
    }

    fn without_threads(place: String) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let stop = Arc::new(Stop { wake: EventFd::from_flags(flags)?, asked: AtomicBool::new(false) });
        let (threads, trouble) = (Vec::new(), Trouble::default());
        Ok(Self { stop, threads, place, socket: None, line: None, trouble, looped: None })
    }

    /// Adds a thread that runs the card.
    fn run(mut self, card: &Arc<SimCard>, runner: Runner) -> io::Result<Self> {
        if runner == Runner::Cable {
            let (card, stop) = (Arc::clone(card), Arc::clone(&self.stop));
            let body = move || {
                while !stop.is_asked() {
                    if let Err(error) = card.run_for_others(LOOK) {
                        tracing::warn!(%error, "board port");
                        return;
                    }
                }
            };
            self.threads.push(std::thread::Builder::new().name("board-line".into()).spawn(body)?);
        }
        Ok(self)
    }

    fn plug(
        card: &Arc<SimCard>,
        function: usize,
        end: Box<dyn End>,
        place: String,
        socket: Option<SocketFile>,
    ) -> io::Result<Self> {
        let port = card.port(function).ok_or_else(no_port)?;
        let (port, end): (Arc<BoardPort>, Arc<dyn End>) = (Arc::new(port), end.into());
        let mut cable = Self::without_threads(place)?;
        cable.socket = socket;
        let stop = Arc::clone(&cable.stop);
        for (name, body) in [("board-in", to_card as Direction), ("board-out", from_card)] {
            let (port, end, stop) = (Arc::clone(&port), Arc::clone(&end), Arc::clone(&stop));
            let thread = std::thread::Builder::new().name(name.into());
            cable.threads.push(thread.spawn(move || body(&port, &*end, &stop))?);
        }
        Ok(cable)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        // While the threads still use the socket.
        self.socket = None;
        self.stop.asked.store(true, Ordering::Release);
        // Cannot fail: the counter is far from its limit.
        let _ = self.stop.wake.write(1);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of a board port panicked");
            }
        }
        self.line = None;
        if let Some(card) = self.looped.take() {
            // Nothing else fails than a port that is not there.
            let _ = card.set_link(LinkState::Up);
            card.release(NET);
        }
    }
}

struct Stop {
    /// Readable once the threads are to end.
    wake: EventFd,
    asked: AtomicBool,
}

impl Stop {
    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Waits until some of `fds` are readable and returns which; `None` if the threads are to end.
    fn or_readable(&self, fds: &[BorrowedFd]) -> io::Result<Option<Vec<bool>>> {
        let mut polled = vec![PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)];
        polled.extend(fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)));
        while let Err(errno) = poll(&mut polled, PollTimeout::NONE) {
            if errno != Errno::EINTR {
                return Err(errno.into());
            }
        }
        let ready: Vec<bool> = polled.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        Ok((!ready[0]).then(|| ready[1..].to_vec()))
    }
}

/// The far end of a cable.
trait End: Send + Sync {
    /// Sleeps until data arrives and reads it; 0 bytes mean none this time. `None` once `stop` is requested, or
    /// when no more data can arrive.
    fn receive(&self, stop: &Stop, buf: &mut [u8]) -> io::Result<Option<usize>>;
    /// Passes on data from the card, without waiting for long, or until `stop` is requested.
    fn send(&self, stop: &Stop, data: &[u8]) -> io::Result<()>;
    /// Whether the cable carries frames.
    fn framed(&self) -> bool;
}

/// The work of one of a cable's threads.
type Direction = fn(&BoardPort, &dyn End, &Stop);

fn to_card(port: &BoardPort, end: &dyn End, stop: &Stop) {
    // One byte more than the largest frame, so that a larger one is detected.
    let mut buf = vec![0; MAX_FRAME + 1];
    loop {
        let len = match end.receive(stop, &mut buf) {
            Ok(Some(len)) => len,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "a board port receives no more data");
                return;
            }
        };
        if len == 0 || end.framed() && !(MIN_FRAME..=MAX_FRAME).contains(&len) {
            continue;
        }
        // While the queue is full the sender is not read from.
        loop {
            match port.send(0, &buf[..len], LOOK) {
                Ok(()) => break,
                Err(PciError::Timeout(_)) if !stop.is_asked() => {}
                Err(PciError::Timeout(_)) => return,
                Err(error) => {
                    tracing::warn!(%error, "board port");
                    return;
                }
            }
        }
    }
}

fn from_card(port: &BoardPort, end: &dyn End, stop: &Stop) {
    while !stop.is_asked() {
        match port.receive(LOOK) {
            // Only the console's first port has a serial line.
            Ok(packet) if packet.channel != 0 => {}
            Ok(packet) => {
                if let Err(error) = end.send(stop, &packet.data) {
                    tracing::debug!(%error, "dropping data from a board port");
                }
            }
            Err(PciError::Timeout(_)) => {}
            Err(error) => {
                tracing::warn!(%error, "board port");
                return;
            }
        }
    }
}

/// "Would block" counts as nothing read.
fn nothing_if_not_ready(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        other => other,
    }
}

/// Writes all bytes, unless the reader does not accept them within `limit`, or `stop` is requested while it accepts none. The descriptor may
/// be one that blocks: standard output is shared with other programs, so it stays as it is.
fn write_patiently(to: impl AsFd, stop: &Stop, limit: Option<Duration>, mut data: &[u8]) -> io::Result<()> {
    let end = limit.map(|limit| Instant::now() + limit);
    while !data.is_empty() {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the reader is too slow"));
        }
        let left = left.map_or(PollTimeout::NONE, |left| left.try_into().unwrap_or(PollTimeout::MAX));
        let mut polled =
            [PollFd::new(to.as_fd(), PollFlags::POLLOUT), PollFd::new(stop.wake.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, left) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) if polled[0].any().unwrap_or(true) => {}
            Ok(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "the cable is unplugged")),
            Err(errno) => return Err(errno.into()),
        }
        match nix::unistd::write(to.as_fd(), &data[..data.len().min(AT_ONCE)]) {
            Ok(count) => data = &data[count..],
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------- TAP

struct Tap(File);

fn open_tap(name: &str) -> io::Result<File> {
    nix::ioctl_write_ptr_bad!(set_interface, libc::TUNSETIFF, libc::ifreq);
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
        .map_err(|e| io::Error::new(e.kind(), format!("/dev/net/tun: {e}")))?;
    // SAFETY: all-zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is what TUNSETIFF reads, and outlives the call.
    unsafe { set_interface(file.as_raw_fd(), &request) }.map_err(|errno| {
        io::Error::new(io::Error::from(errno).kind(), format!("TAP device {name}: {errno}"))
    })?;
    Ok(file)
}

impl End for Tap {
    fn receive(&self, stop: &Stop, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(_) = stop.or_readable(&[self.0.as_fd()])? else { return Ok(None) };
        match nothing_if_not_ready((&self.0).read(buf)) {
            // The device is down, and so is the link until it comes up again.
            Err(e) if e.raw_os_error() == Some(libc::EIO) => {
                std::thread::sleep(Duration::from_millis(100));
                Ok(Some(0))
            }
            other => other.map(Some),
        }
    }

    fn send(&self, _stop: &Stop, data: &[u8]) -> io::Result<()> {
        (&self.0).write(data).map(drop)
    }

    fn framed(&self) -> bool {
        true
    }
}

// ---------------------------------------------------------------------------------------------------- datagrams

struct Datagrams {
    socket: UnixDatagram,
    /// Destination of frames.
    peer: Mutex<Option<PathBuf>>,
    fixed: bool,
}

impl Datagrams {
    fn bind(path: &Path, peer: Option<PathBuf>) -> io::Result<(Self, SocketFile)> {
        let (socket, file) = SocketFile::datagrams(path).map_err(|e| at(path, e))?;
        socket.set_nonblocking(true)?;
        Ok((Self { socket, fixed: peer.is_some(), peer: Mutex::new(peer) }, file))
    }
}

impl End for Datagrams {
    fn receive(&self, stop: &Stop, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(_) = stop.or_readable(&[self.socket.as_fd()])? else { return Ok(None) };
        let mut from = None;
        let received = self.socket.recv_from(buf).map(|(len, address)| {
            from = address.as_pathname().map(Path::to_owned);
            len
        });
        let len = nothing_if_not_ready(received)?;
        if !self.fixed && from.is_some() {
            *lock(&self.peer) = from;
        }
        Ok(Some(len))
    }

    fn send(&self, _stop: &Stop, data: &[u8]) -> io::Result<()> {
        let Some(peer) = lock(&self.peer).clone() else { return Ok(()) };
        self.socket.send_to(data, peer).map(drop)
    }

    fn framed(&self) -> bool {
        true
    }
}

// ---------------------------------------------------------------------------------------------------- terminals

struct Pty {
    master: File,
    name: String,
    /// Kept open, so that the terminal persists when its user closes it.
    _slave: OwnedFd,
}

impl Pty {
    fn open() -> io::Result<Self> {
        let pair = nix::pty::openpty(None, None)?;
        let mut mode = nix::sys::termios::tcgetattr(&pair.slave)?;
        nix::sys::termios::cfmakeraw(&mut mode);
        nix::sys::termios::tcsetattr(&pair.slave, nix::sys::termios::SetArg::TCSANOW, &mode)?;
        let mut name = [0; 128];
        // SAFETY: the buffer is ours and as long as stated.
        let code = unsafe { libc::ptsname_r(pair.master.as_raw_fd(), name.as_mut_ptr(), name.len()) };
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        // SAFETY: the call above has put a terminated string there.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        set_nonblocking(&pair.master)?;
        Ok(Self { master: pair.master.into(), name, _slave: pair.slave })
    }
}

impl End for Pty {
    fn receive(&self, stop: &Stop, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(_) = stop.or_readable(&[self.master.as_fd()])? else { return Ok(None) };
        nothing_if_not_ready((&self.master).read(buf)).map(Some)
    }

    fn send(&self, stop: &Stop, data: &[u8]) -> io::Result<()> {
        write_patiently(&self.master, stop, Some(PATIENCE), data)
    }

    fn framed(&self) -> bool {
        false
    }
}

struct Stdio;

impl End for Stdio {
    fn receive(&self, stop: &Stop, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let input = io::stdin();
        let Some(_) = stop.or_readable(&[input.as_fd()])? else { return Ok(None) };
        // Not through the standard library's buffer, which polling does not see.
        let count = match nix::unistd::read(input.as_raw_fd(), buf) {
            Ok(count) => count,
            Err(Errno::EINTR | Errno::EAGAIN) => return Ok(Some(0)),
            Err(errno) => return Err(errno.into()),
        };
        Ok((count > 0).then_some(count))
    }

    fn send(&self, stop: &Stop, data: &[u8]) -> io::Result<()> {
        // Who stops the output of a terminal for a while wants to read it all: the serial line holds the rest back.
        write_patiently(io::stdout(), stop, None, data)
    }

    fn framed(&self) -> bool {
        false
    }
}

struct Stream {
    listener: UnixListener,
    client: Mutex<Option<Arc<UnixStream>>>,
}

impl Stream {
    fn bind(path: &Path) -> io::Result<(Self, SocketFile)> {
        let (listener, file) = SocketFile::listen(path).map_err(|e| at(path, e))?;
        listener.set_nonblocking(true)?;
        Ok((Self { listener, client: Mutex::default() }, file))
    }
}

impl End for Stream {
    fn receive(&self, stop: &Stop, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let client = lock(&self.client).clone();
        let Some(client) = client else {
            let Some(_) = stop.or_readable(&[self.listener.as_fd()])? else { return Ok(None) };
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    *lock(&self.client) = Some(Arc::new(stream));
                }
                Err(e)
                    if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted) => {}
                // Most likely out of descriptors: pause instead of spinning.
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
            return Ok(Some(0));
        };
        let Some(_) = stop.or_readable(&[client.as_fd()])? else { return Ok(None) };
        match (&*client).read(buf) {
            Ok(count) if count > 0 => Ok(Some(count)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(Some(0))
            }
            // The client has disconnected.
            _ => {
                *lock(&self.client) = None;
                Ok(Some(0))
            }
        }
    }

    fn send(&self, stop: &Stop, data: &[u8]) -> io::Result<()> {
        let client = lock(&self.client).clone();
        client.map_or(Ok(()), |client| write_patiently(&*client, stop, Some(PATIENCE), data))
    }

    fn framed(&self) -> bool {
        false
    }
}

// ---------------------------------------------------------------------------------------------------- helpers

fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = OFlag::from_bits_truncate(fcntl(fd.as_raw_fd(), FcntlArg::F_GETFL)?);
    fcntl(fd.as_raw_fd(), FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

fn no_port() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the card has no such port, or it is in use")
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_named() {
        assert_eq!("tap:t0".parse(), Ok(Net::Tap("t0".into())));
        assert_eq!("unix:/a".parse(), Ok(Net::Unix("/a".into(), None)));
        assert_eq!("unix:/a,/b".parse(), Ok(Net::Unix("/a".into(), Some("/b".into()))));
        assert_eq!("none".parse(), Ok(Net::None));
        let captures = |input: Option<&str>, output: Option<&str>, pace| {
            Ok(Net::Captures(Captures { input: input.map(Into::into), output: output.map(Into::into), pace }))
        };
        assert_eq!("pcap:/a,/b".parse(), captures(Some("/a"), Some("/b"), Pace::Line));
        assert_eq!("pcap:a".parse(), captures(Some("a"), None, Pace::Line));
        assert_eq!("pcap:,b".parse(), captures(None, Some("b"), Pace::Line));
        assert_eq!("pcap-times:a:b,c,d".parse(), captures(Some("a:b"), Some("c,d"), Pace::Stamps));
        assert_eq!("loop".parse(), Ok(Net::Loop));
        for bad in ["pcap:", "pcap", "pcap:,", "pcap-times:", "loop:", "loop:x"] {
            assert!(bad.parse::<Net>().is_err(), "{bad}");
        }
        for bad in ["", "tap", "tap:", "tap:a_name_that_is_too_long", "unix:", "pty"] {
            assert!(bad.parse::<Net>().is_err(), "{bad}");
        }
        assert_eq!("pty".parse(), Ok(Console::Pty));
        assert_eq!("unix:/a".parse(), Ok(Console::Unix("/a".into())));
        assert!("tap:a".parse::<Console>().is_err());
    }

    fn stop() -> Stop {
        Stop {
            wake: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).unwrap(),
            asked: AtomicBool::new(false),
        }
    }

    #[test]
    fn datagrams_go_back_to_whoever_sent() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (dir.path().join("a"), dir.path().join("b"));
        drop(UnixDatagram::bind(&ours).unwrap());
        let (end, _file) = Datagrams::bind(&ours, None).expect("a dead socket is replaced");
        assert!(Datagrams::bind(&ours, None).is_err(), "one in use is not");
        let peer = UnixDatagram::bind(&theirs).unwrap();
        let (stop, mut buf) = (stop(), [0; 64]);
        end.send(&stop, b"nobody").unwrap();
        peer.send_to(b"hello, card", &ours).unwrap();
        assert_eq!(end.receive(&stop, &mut buf).unwrap(), Some(11));
        end.send(&stop, b"hello, host").unwrap();
        assert_eq!(peer.recv(&mut buf).unwrap(), 11);
        stop.wake.write(1).unwrap();
        assert_eq!(end.receive(&stop, &mut buf).unwrap(), None);
    }

    #[test]
    fn a_stream_takes_one_client_after_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("console");
        let (end, _file) = Stream::bind(&path).unwrap();
        let (stop, mut buf) = (stop(), [0; 64]);
        end.send(&stop, b"nobody").unwrap();
        for _ in 0..2 {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(b"key").unwrap();
            assert_eq!(end.receive(&stop, &mut buf).unwrap(), Some(0));
            assert_eq!(end.receive(&stop, &mut buf).unwrap(), Some(3));
            end.send(&stop, b"login:").unwrap();
            let mut got = [0; 6];
            client.read_exact(&mut got).unwrap();
            drop(client);
            assert_eq!(end.receive(&stop, &mut buf).unwrap(), Some(0));
        }
    }

    #[test]
    fn a_terminal_is_raw_and_outlives_its_user() {
        let end = Pty::open().unwrap();
        let (stop, mut buf) = (stop(), [0; 64]);
        for _ in 0..2 {
            let mut user = File::options().read(true).write(true).open(&end.name).unwrap();
            end.send(&stop, b"a\nb").unwrap();
            let mut got = [0; 3];
            user.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"a\nb");
            user.write_all(b"\x03\r").unwrap();
            assert_eq!(end.receive(&stop, &mut buf).unwrap(), Some(2));
            assert_eq!(&buf[..2], b"\x03\r");
        }
    }

    #[test]
    fn a_reader_that_is_slow_is_not_waited_for_long() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (_reader, writer) = nix::unistd::pipe().unwrap();
        for to in [ours.as_fd(), writer.as_fd()] {
            let begin = Instant::now();
            assert!(write_patiently(to, &stop(), Some(PATIENCE), &vec![0; 4 << 20]).is_err());
            assert!(begin.elapsed() < Duration::from_secs(30));
        }
    }

    #[test]
    fn nor_is_one_that_reads_now_and_then() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let reader = std::thread::spawn(move || {
            let mut some = vec![0; 64 << 10];
            while theirs.read(&mut some).is_ok_and(|count| count > 0) {
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        let begin = Instant::now();
        assert!(write_patiently(&ours, &stop(), Some(PATIENCE), &vec![0; 16 << 20]).is_err());
        assert!(begin.elapsed() < Duration::from_secs(30));
        drop(ours);
        reader.join().unwrap();
    }

    #[test]
    fn standard_output_that_nobody_reads_is_waited_for_until_the_end() {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        let stop = Arc::new(stop());
        let told = Arc::clone(&stop);
        let cable = std::thread::spawn(move || write_patiently(&writer, &told, None, &vec![0; 1 << 20]));
        std::thread::sleep(PATIENCE + Duration::from_millis(500));
        assert!(!cable.is_finished());
        stop.wake.write(1).unwrap();
        assert!(cable.join().unwrap().is_err());
        drop(reader);
    }
}
