// SPDX-License-Identifier: Apache-2.0
//! The messages between client and daemon: packets of a Unix socket (`SOCK_SEQPACKET`), each a request or a response in the format
//! `postcard`, with at most one descriptor. A change of any type here is a new [`VERSION`].

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use viaduct::{Advice, Prot, Register, SlotStatus, SyncMode};

use crate::view::View;

/// Version of the protocol; client and daemon have the same.
pub const VERSION: u16 = 2;
/// First field of the first message.
pub const MAGIC: u32 = u32::from_le_bytes(*b"VIAd");
/// Longest request in bytes.
pub const MAX_REQUEST: usize = 8 << 10;
/// Longest response in bytes.
pub const MAX_RESPONSE: usize = 64 << 10;
/// Longest text in a response in bytes.
const MAX_TEXT: usize = 1000;

/// A request; answers to several may come in any order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Call {
    /// Chosen by the client, not 0; the response has the same.
    pub id: u64,
    /// What to do.
    pub request: Request,
}

/// What a client can ask for. `slot` is a number from [`Reply::Opened`].
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs)] // the fields are the arguments of the methods of `client::Slot`
pub enum Request {
    /// The first message. Response: [`Reply::Welcome`].
    Hello {
        magic: u32,
        version: u16,
    },
    /// Claims a slot and loads an app. With [`App::Image`] comes a descriptor of the image. Response: [`Reply::Opened`].
    Open {
        app: App,
    },
    /// Unmaps everything and releases the slot.
    Close {
        slot: u32,
    },
    /// Resets the app.
    Reset {
        slot: u32,
    },
    /// Fails if the slot does not work. Response: [`Reply::Done`].
    Check {
        slot: u32,
    },
    /// Response: [`Reply::Status`].
    Status {
        slot: u32,
    },
    /// Response: [`Reply::Number`].
    ReadRegister {
        slot: u32,
        offset: u32,
    },
    WriteRegister {
        slot: u32,
        offset: u32,
        value: u32,
    },
    /// Response: [`Reply::Bytes`].
    ReadWide {
        slot: u32,
        #[serde(with = "RegisterDef")]
        register: Register,
    },
    WriteWide {
        slot: u32,
        #[serde(with = "RegisterDef")]
        register: Register,
        bytes: Vec<u8>,
    },
    /// Response: [`Reply::Number`].
    Irqs {
        slot: u32,
    },
    /// Waits, at most `millis` and at most a minute, serving the app's faults. Response: [`Reply::Number`], or [`Reply::Later`].
    WaitIrq {
        slot: u32,
        seen: u64,
        millis: u64,
    },
    /// Maps a file, whose descriptor comes with the request, or memory without a file. Response: [`Reply::Number`], the address.
    Map {
        slot: u32,
        file: bool,
        len: u64,
        options: MapOptions,
    },
    Sync {
        slot: u32,
        start: u64,
        end: u64,
        #[serde(with = "SyncModeDef")]
        mode: SyncMode,
    },
    Unmap {
        slot: u32,
        start: u64,
        end: u64,
    },
    Advise {
        slot: u32,
        start: u64,
        end: u64,
        #[serde(with = "AdviceDef")]
        advice: Advice,
    },
    /// Response: [`Reply::Denied`].
    TakeDenied {
        slot: u32,
    },
    /// The first message of who looks at the card and manages it, in place of [`Request::Hello`]: what follows is for such connections, and
    /// names slots by their numbers on the card. Response: [`Reply::Managing`].
    Manage {
        magic: u32,
        version: u16,
    },
    /// Response: [`Reply::View`].
    Look,
    /// Sets the schedule of a slot, in the form of [`viaduct::Schedule`].
    Schedule {
        index: u32,
        schedule: String,
    },
    /// Pauses the app in a slot, or ends the pause.
    Pause {
        index: u32,
        paused: bool,
    },
    /// Stops the app in a slot, writes its changed pages to their files and frees the slot. Its client gets [`Kind::Ended`] from then on.
    End {
        index: u32,
    },
    /// Leads a stream to another one; ends in the form of [`viaduct::Port`].
    Route {
        source: String,
        sink: String,
    },
    /// Ends a route.
    Cut {
        sink: String,
    },
}

/// The app for a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum App {
    /// One that is installed with the daemon, by its name.
    Installed(String),
    /// The image whose descriptor comes with the request.
    Image,
}

/// Options of a mapping, as of [`viaduct::MapOptions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapOptions {
    #[serde(with = "ProtDef")]
    pub(crate) prot: Prot,
    pub(crate) on_host: bool,
    pub(crate) huge: Option<bool>,
    pub(crate) table: Option<bool>,
    pub(crate) private: bool,
    pub(crate) offset: u64,
    pub(crate) at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum At {
    Anywhere,
    Near(u64),
    Replacing(u64),
    Exactly(u64),
}

impl MapOptions {
    /// As [`viaduct::MapOptions::new`].
    pub fn new(prot: Prot) -> Self {
        Self { prot, on_host: false, huge: None, table: None, private: false, offset: 0, at: At::Anywhere }
    }

    /// As [`viaduct::MapOptions::on_host`].
    pub fn on_host(mut self) -> Self {
        self.on_host = true;
        self
    }

    /// As [`viaduct::MapOptions::huge`].
    pub fn huge(mut self, huge: bool) -> Self {
        self.huge = Some(huge);
        self
    }

    /// As [`viaduct::MapOptions::table`].
    pub fn table(mut self, table: bool) -> Self {
        self.table = Some(table);
        self
    }

    /// As [`viaduct::MapOptions::private`].
    pub fn private(mut self) -> Self {
        self.private = true;
        self
    }

    /// As [`viaduct::MapOptions::offset`].
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// As [`viaduct::MapOptions::near`].
    pub fn near(mut self, va: u64) -> Self {
        self.at = At::Near(va);
        self
    }

    /// As [`viaduct::MapOptions::replacing`].
    pub fn replacing(mut self, va: u64) -> Self {
        self.at = At::Replacing(va);
        self
    }

    /// As [`viaduct::MapOptions::exactly`].
    pub fn exactly(mut self, va: u64) -> Self {
        self.at = At::Exactly(va);
        self
    }

    pub(crate) fn local(self) -> viaduct::MapOptions {
        let mut options = viaduct::MapOptions::new(self.prot).offset(self.offset);
        if self.on_host {
            options = options.on_host();
        }
        if self.private {
            options = options.private();
        }
        if let Some(huge) = self.huge {
            options = options.huge(huge);
        }
        if let Some(table) = self.table {
            options = options.table(table);
        }
        match self.at {
            At::Anywhere => options,
            At::Near(va) => options.near(va),
            At::Replacing(va) => options.replacing(va),
            At::Exactly(va) => options.exactly(va),
        }
    }
}

/// The response to a request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Response {
    /// That of the request; 0 if the daemon ends the connection.
    pub id: u64,
    /// The result.
    pub result: Result<Reply, Refusal>,
}

/// Result of a request.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// Done; there is nothing to tell.
    Done,
    /// The connection is a tenant now.
    Welcome {
        /// Slots of the card.
        slots: u32,
        /// Slots that this client may have.
        yours: u32,
    },
    /// A slot is open.
    Opened {
        /// Its number in requests.
        slot: u32,
        /// Its number on the card.
        index: u32,
    },
    /// State of a slot.
    Status(#[serde(with = "SlotStatusDef")] SlotStatus),
    /// A number.
    Number(u64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// It has not happened yet.
    Later,
    /// Accesses that were denied.
    Denied(Vec<DeniedAccess>),
    /// The connection manages the card.
    Managing {
        /// Slots of the card.
        slots: u32,
        /// It may manage all of them, and not only those of its user.
        all: bool,
    },
    /// What the card does.
    View(View),
}

/// As [`viaduct::Denied`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedAccess {
    /// Virtual address.
    pub va: u64,
    /// It was a write.
    pub is_write: bool,
    /// Why.
    pub why: String,
}

impl From<viaduct::Denied> for DeniedAccess {
    fn from(denied: viaduct::Denied) -> Self {
        let viaduct::Denied { va, is_write, why } = denied;
        // Many fit into a response.
        Self { va, is_write, why: why.chars().take(200).collect() }
    }
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// What kind of reason.
    pub kind: Kind,
    /// The error number of POSIX that means the same ([`viaduct::Error::errno`]).
    pub errno: i32,
    /// Cause and remedy.
    pub text: String,
}

/// Kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// The operation failed as it would in a program that has the card for itself.
    Card,
    /// It would exceed a quota.
    Quota,
    /// The client may not be served.
    Access,
    /// The message is wrong. The daemon ends the connection.
    Protocol,
    /// The slot was ended by who manages the card.
    Ended,
}

impl Refusal {
    /// A refusal; the text is cut where it is too long for a message.
    pub fn new(kind: Kind, errno: i32, mut text: String) -> Self {
        if text.len() > MAX_TEXT {
            let end = (0..=MAX_TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.truncate(end);
        }
        Self { kind, errno, text }
    }
}

impl From<viaduct::Error> for Refusal {
    fn from(error: viaduct::Error) -> Self {
        Self::new(Kind::Card, error.errno(), error.to_string())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Prot")]
struct ProtDef {
    read: bool,
    write: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Register")]
struct RegisterDef {
    offset: u32,
    width: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SyncMode")]
struct SyncModeDef {
    durable: bool,
    invalidate: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotStatus")]
struct SlotStatusDef {
    loaded: bool,
    quiet: bool,
    busy: bool,
    isolated: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Advice")]
enum AdviceDef {
    Normal,
    Sequential,
    Random,
    WillNeed,
    DontNeed,
    Reuse,
    LowUse,
}

/// Why no message came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The other side has closed the connection.
    #[error("the other side has closed the connection")]
    Closed,
    /// Nothing came in time, or the other side does not take what is sent.
    #[error("the other side was silent for too long")]
    Silent,
    /// What came is no message.
    #[error("{0}")]
    Malformed(String),
    /// The system failed.
    #[error("socket: {0}")]
    Os(Errno),
}

/// Sends a message, and a descriptor with it. Waits as long as the socket's limit says.
pub fn send<T: Serialize>(
    socket: BorrowedFd<'_>,
    message: &T,
    file: Option<BorrowedFd<'_>>,
) -> Result<(), WireError> {
    send_bytes(socket, &encode(message)?, file.as_slice())
}

/// The bytes of a message.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    postcard::to_stdvec(message).map_err(|e| WireError::Malformed(e.to_string()))
}

/// Sends bytes as one message, with descriptors.
pub fn send_bytes(socket: BorrowedFd<'_>, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<(), WireError> {
    let mut space = vec![MaybeUninit::uninit(); SendAncillaryMessage::ScmRights(files).size()];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    loop {
        match sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(WireError::Silent),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => return Err(WireError::Closed),
            Err(errno) => return Err(WireError::Os(errno)),
        }
    }
}

/// Receives a message of at most `most` bytes, and the descriptor that came with it. Descriptors that are too many are closed.
pub fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
    most: usize,
) -> Result<(T, Option<OwnedFd>), WireError> {
    let mut bytes = vec![0; most];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(got) => break got,
            // The other side has closed with a message of ours unread. The system tells that once; what it has sent before comes next.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(Errno::AGAIN) => return Err(WireError::Silent),
            Err(errno) => return Err(WireError::Os(errno)),
        }
    };
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            files.extend(some);
        }
    }
    if got.bytes == 0 {
        return Err(WireError::Closed);
    }
    if got.flags.contains(ReturnFlags::TRUNC) {
        return Err(WireError::Malformed(format!("a message has more than {most} bytes")));
    }
    if files.len() > 1 || got.flags.contains(ReturnFlags::CTRUNC) {
        let why = "a message has more than one descriptor, or there is no room for one";
        return Err(WireError::Malformed(why.into()));
    }
    Ok((decode(&bytes[..got.bytes])?, files.pop()))
}

/// The message that some bytes are.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok(_) => Err(WireError::Malformed("a message has bytes after its end".into())),
        Err(error) => Err(WireError::Malformed(format!("a message is not understood: {error}"))),
    }
}
