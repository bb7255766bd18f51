// SPDX-License-Identifier: Apache-2.0
//! One end of a connection: whole messages in and out of a stream socket, with descriptors and time limits.

use super::wire::{HEADER_SIZE, Header, MAX_FDS, MAX_MESSAGE};
use crate::eventfds::timeout_until;
use crate::peer::Peer;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Why no message was received or sent. After any of these the connection is unusable.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum LinkError {
    #[error("the other side closed the connection")]
    Closed,
    #[error("the other side disconnected within a message")]
    Truncated,
    #[error("the other side stopped within a message")]
    Stalled,
    #[error("no message came in time")]
    Silent,
    #[error("message of {0} bytes")]
    BadSize(u32),
    #[error("message with more than {MAX_FDS} descriptors")]
    TooManyFds,
    #[error("asked to stop")]
    Stopped,
    #[error("socket: {0}")]
    Os(#[from] Errno),
}

#[derive(Debug)]
pub(super) struct Message {
    pub header: Header,
    pub body: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

/// A message of which a part has come.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    head: [u8; HEADER_SIZE],
    /// Once the head is complete.
    body: Option<Vec<u8>>,
    /// Bytes of the head, or of the body.
    filled: usize,
    pub fds: Vec<OwnedFd>,
}

/// A connected stream socket in non-blocking mode.
#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    /// Longest time from the first to the last byte of a message, in either direction.
    message_time: Duration,
}

impl Link {
    pub fn new(stream: UnixStream, message_time: Duration) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, message_time })
    }

    /// The process at the other end.
    pub fn peer(&self) -> Peer {
        Peer::of(&self.stream)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Waits for a message to begin (at most `patience`, without limit if `None`), then for the rest of it. Ends
    /// early when `stop` becomes readable.
    pub fn receive(
        &self,
        patience: Option<Duration>,
        stop: Option<BorrowedFd>,
    ) -> Result<Message, LinkError> {
        let begin = patience.and_then(end_of);
        if !wait(self.fd(), PollFlags::POLLIN, stop, begin)? {
            return Err(LinkError::Silent);
        }
        let deadline = end_of(self.message_time);
        let mut incoming = Incoming::default();
        loop {
            if let Some(message) = self.take(&mut incoming)? {
                return Ok(message);
            }
            if !wait(self.fd(), PollFlags::POLLIN, stop, deadline)? {
                return Err(LinkError::Stalled);
            }
        }
    }

    /// Takes what has come of a message, without waiting; the message once it is complete.
    pub fn take(&self, incoming: &mut Incoming) -> Result<Option<Message>, LinkError> {
        loop {
            let Incoming { head, body, filled, fds } = &mut *incoming;
            let rest = match body {
                None => &mut head[*filled..],
                Some(body) => &mut body[*filled..],
            };
            if rest.is_empty() {
                let header = Header::decode(head);
                if let Some(body) = body.take() {
                    return Ok(Some(Message { header, body, fds: std::mem::take(fds) }));
                }
                let size = header.size as usize;
                if !(HEADER_SIZE..=MAX_MESSAGE).contains(&size) {
                    return Err(LinkError::BadSize(header.size));
                }
                (*body, *filled) = (Some(vec![0; size - HEADER_SIZE]), 0);
                continue;
            }
            match receive_some(self.stream.as_raw_fd(), rest, fds) {
                Ok(0) if body.is_none() && *filled == 0 => return Err(LinkError::Closed),
                Ok(0) => return Err(LinkError::Truncated),
                Ok(count) => *filled += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::ECONNRESET) => return Err(LinkError::Closed),
                Err(errno) => return Err(errno.into()),
            }
            if fds.len() > MAX_FDS {
                return Err(LinkError::TooManyFds);
            }
        }
    }

    /// Sends a whole message.
    pub fn send(&self, bytes: &[u8], fds: &[RawFd], stop: Option<BorrowedFd>) -> Result<(), LinkError> {
        let deadline = end_of(self.message_time);
        let rights = [ControlMessage::ScmRights(fds)];
        let mut sent = 0;
        while sent < bytes.len() {
            // Descriptors travel with the first byte.
            let control: &[ControlMessage] = if sent == 0 && !fds.is_empty() { &rights } else { &[] };
            let chunk = [IoSlice::new(&bytes[sent..])];
            let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
            match sendmsg::<()>(self.stream.as_raw_fd(), &chunk, control, flags, None) {
                Ok(count) => sent += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    if !wait(self.fd(), PollFlags::POLLOUT, stop, deadline)? {
                        return Err(LinkError::Stalled);
                    }
                }
                Err(Errno::EPIPE | Errno::ECONNRESET) => return Err(LinkError::Closed),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Ends the connection for both sides; a reader elsewhere wakes up.
    pub fn shutdown(&self) {
        // Failure means that it is closed already.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Receives the available bytes, up to `buf.len()`. Every received descriptor is owned immediately, so none leaks.
fn receive_some(socket: RawFd, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> Result<usize, Errno> {
    /// Space for at least one descriptor more than a message may carry. The kernel drops those beyond it, so that a sender of many
    /// does not exhaust this process's limit.
    const CONTROL: usize = 16 + 4 * (MAX_FDS + 2);
    #[repr(align(8))]
    struct Control([u8; CONTROL]);
    let mut control = Control([0; CONTROL]);
    let mut chunk = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    // SAFETY: all-zero is a valid `msghdr`; the pointers set below outlive the call.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut chunk;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    // SAFETY: `message` describes writable buffers of the stated sizes.
    let count = unsafe { libc::recvmsg(socket, &mut message, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) };
    let count = Errno::result(count)?;
    // SAFETY: the kernel filled the control buffer and set its length; the CMSG functions stay inside it. Each
    // descriptor in an SCM_RIGHTS message is new and has no other owner.
    unsafe {
        let mut entry = libc::CMSG_FIRSTHDR(&message);
        while !entry.is_null() {
            if ((*entry).cmsg_level, (*entry).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = (*entry).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let first = libc::CMSG_DATA(entry).cast::<RawFd>();
                for i in 0..bytes / size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(first.add(i).read_unaligned()));
                }
            }
            entry = libc::CMSG_NXTHDR(&message, entry);
        }
    }
    if message.msg_flags & libc::MSG_CTRUNC != 0 && fds.len() <= MAX_FDS {
        // Out of descriptors: the message is incomplete.
        return Err(Errno::EMFILE);
    }
    Ok(count as usize)
}

/// The end of a time that begins now; `None` if it is later than a clock can tell.
pub(super) fn end_of(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}

/// Waits until `fd` is ready; `false` if the deadline passed first.
pub(super) fn wait(
    fd: BorrowedFd,
    events: PollFlags,
    stop: Option<BorrowedFd>,
    deadline: Option<Instant>,
) -> Result<bool, LinkError> {
    let mut polled = vec![PollFd::new(fd, events)];
    polled.extend(stop.map(|stop| PollFd::new(stop, PollFlags::POLLIN)));
    loop {
        match poll(&mut polled, timeout_until(deadline)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if polled.get(1).is_some_and(|stop| stop.any().unwrap_or(true)) {
            return Err(LinkError::Stopped);
        }
        if polled[0].any().unwrap_or(true) {
            return Ok(true);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(false);
        }
    }
}
