// SPDX-License-Identifier: Apache-2.0
//! Errors, with texts that name the cause and the remedy.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::protocol::desc::{EventCause, Status};
use viaduct_pci::{PciError, remedy};

/// Result of an operation on a card.
pub type Result<T> = std::result::Result<T, Error>;

/// An operation on a card, a slot, an endpoint or a mapping failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The PCI function failed: card gone, access out of range, system call failed.
    #[error(transparent)]
    Pci(#[from] PciError),
    /// The function is not a Viaduct card.
    #[error(
        "this PCI function is not a Viaduct card: its ID register reads {id:#010x}; check which device is bound"
    )]
    NotACard {
        /// Value of the ID register.
        id: u32,
    },
    /// Card and library are incompatible.
    #[error(
        "the card has register map {card}, this library {library}; build both from the same version of Viaduct"
    )]
    Version {
        /// Major version of the card.
        card: u32,
        /// Major version of this library.
        library: u32,
    },
    /// A register of the card has an invalid value.
    #[error("invalid register of the card: {0}")]
    BadCard(String),
    /// The slot number is too high.
    #[error("there is no slot {slot}: the card has slots 0 to {last}")]
    NoSuchSlot {
        /// Requested number.
        slot: usize,
        /// Highest slot number.
        last: usize,
    },
    /// The slot is claimed already.
    #[error(
        "slot {slot} is in use: another part of this program holds it; use another slot or drop it there"
    )]
    SlotInUse {
        /// The slot.
        slot: usize,
    },
    /// There is no app in the slot.
    #[error("slot {slot} is empty: load an app first")]
    SlotEmpty {
        /// The slot.
        slot: usize,
    },
    /// The slot was isolated.
    #[error("slot {slot} was isolated: {cause}; {}", cause.remedy())]
    Isolated {
        /// The slot.
        slot: usize,
        /// Why.
        cause: EventCause,
    },
    /// A ring of the slot is stopped.
    #[error("slot {slot}: {why}; drop the slot and open it again")]
    RingStopped {
        /// The slot.
        slot: usize,
        /// The card's report.
        why: String,
    },
    /// No activity until the time-out.
    #[error(
        "slot {slot}: {what}: nothing happened for {after:?}; the app waits for input it does not get, or hangs"
    )]
    Stalled {
        /// The slot.
        slot: usize,
        /// The awaited event.
        what: String,
        /// How long without progress.
        after: Duration,
    },
    /// The app has not finished within the limit of the run.
    #[error("slot {slot}: the app has not finished within {limit:?}, the limit of this run")]
    Unfinished {
        /// The slot.
        slot: usize,
        /// The limit.
        limit: Duration,
    },
    /// The card completed a command with an error.
    #[error("slot {slot}: {what} failed: {status}")]
    Command {
        /// The slot.
        slot: usize,
        /// Description of the command.
        what: String,
        /// The completion's status.
        status: Status,
    },
    /// The slot has no such stream.
    #[error("there is no {direction} stream {port}: slots of this card have {count} (numbered from 0)")]
    NoSuchPort {
        /// `input` or `output`.
        direction: &'static str,
        /// Requested port.
        port: usize,
        /// Streams of a slot.
        count: usize,
    },
    /// One stream was routed twice.
    #[error("{direction} stream {port} has two endpoints; give one")]
    PortTwice {
        /// `input` or `output`.
        direction: &'static str,
        /// The port.
        port: usize,
    },
    /// An app register offset does not exist.
    #[error("app register at {offset:#x}: offsets are multiples of 4 below 0x1000")]
    BadRegister {
        /// The offset.
        offset: u32,
    },
    /// An app image is malformed.
    #[error("this is not an app image: {0}; build the app again")]
    BadImage(String),
    /// The card refused an app image.
    #[error("the card refused the image for slot {slot}: {}; {}", load_reason(*.code), load_remedy(*.code))]
    LoadRefused {
        /// The slot.
        slot: usize,
        /// Reason of the configuration logic.
        code: u8,
    },
    /// The card did not finish loading.
    #[error("loading slot {slot} did not end within {after:?}: {what}; reset the card")]
    LoadStuck {
        /// The slot.
        slot: usize,
        /// The step that did not end.
        what: String,
        /// Time-out.
        after: Duration,
    },
    /// An endpoint string is malformed.
    #[error(
        "endpoint `{text}`: {why}; write file:PATH, host:SIZE, card:ADDRESS+LENGTH, fd:NUMBER, eth: or -"
    )]
    BadEndpoint {
        /// The string.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// A file could not be opened, examined or read.
    #[error("{}: cannot {doing}: {source}{}", path.display(), remedy(source))]
    File {
        /// The file.
        path: PathBuf,
        /// What was attempted, as in "cannot ...".
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The path cannot be read or written like a file.
    #[error("{}: is {what}, not a regular file; name a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A range of card memory is an output and also used otherwise.
    #[error("{range} is written in this run and overlaps {other}; use another range for the output")]
    SameRange {
        /// The output.
        range: String,
        /// The other input or output.
        other: String,
    },
    /// The program has stopped the run.
    #[error("the run was stopped by the program")]
    Stopped,
    /// Input and output are one file.
    #[error("{}: is both read and written in this run; write to another file", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The file was truncated while it was read.
    #[error("{}: the file shrank while it was read: it ends at byte {end}, {expected} were expected; keep it unchanged while it is in use", path.display())]
    FileShrank {
        /// The file.
        path: PathBuf,
        /// Its present length in bytes.
        end: u64,
        /// Length when it was opened.
        expected: u64,
    },
    /// The file was removed while it was read.
    #[error("{}: the file was removed while it was read; keep it unchanged during the run", path.display())]
    InputRemoved {
        /// The file.
        path: PathBuf,
    },
    /// The file was removed while it was written.
    #[error("{}: the file was removed while it was written; the output is lost: run again", path.display())]
    FileRemoved {
        /// The file.
        path: PathBuf,
    },
    /// The length of the file is not that of the output.
    #[error("{}: another program changed the file while it was written: it has {length} bytes instead of {written}; let nothing else write to it, and run again", path.display())]
    OutputChanged {
        /// The file.
        path: PathBuf,
        /// Its present length in bytes.
        length: u64,
        /// Bytes that were written.
        written: u64,
    },
    /// Output could not be written.
    #[error("{}: cannot write: {source}{}; {written} bytes are written", path.display(), why_unwritten(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// Bytes of the output that are in the file, from its beginning.
        written: u64,
        /// The system's error.
        source: io::Error,
    },
    /// Changed bytes of a mapping could not be written to the file.
    #[error("{}: bytes {start} to {end} of the mapping are lost: {why}", path.display())]
    Lost {
        /// The file, or the name of the buffer.
        path: PathBuf,
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
        /// Why.
        why: String,
        /// The system's error number, if it was the system that failed.
        os: Option<i32>,
    },
    /// An empty input to an app that must get data.
    #[error(
        "{name}: input {port} is empty: a stream without bytes cannot carry an end, and this app responds only to data; give at least one byte"
    )]
    EmptyInput {
        /// Input port.
        port: usize,
        /// File, or name of the buffer.
        name: String,
    },
    /// The app sent more than expected, or as much and no `last` with it.
    #[error("the app did not end output {port} (`last`) after {limit} bytes: {why}")]
    OutputTooLong {
        /// Output port.
        port: usize,
        /// Largest expected number of bytes.
        limit: u64,
        /// Reason of the limit.
        why: &'static str,
    },
    /// An output message without an input message.
    #[error(
        "the app sent a message with id {id} on output {port}, where none with that id is outstanding; it must send one message for each input message, with the same id"
    )]
    WrongId {
        /// Output port.
        port: usize,
        /// The id.
        id: u64,
    },
    /// The app ended its message early.
    #[error("the app ended output {port} after {bytes} bytes; its manifest promises {expected}")]
    OutputTooShort {
        /// Output port.
        port: usize,
        /// Bytes received.
        bytes: u64,
        /// Bytes according to the manifest.
        expected: u64,
    },
    /// No frame of card memory is free.
    #[error("no card memory is free for {what}; unmap something or raise the frame budget of the slot")]
    OutOfCardMemory {
        /// Its purpose.
        what: String,
    },
    /// This machine does not have enough memory.
    #[error("not enough host memory for {bytes} bytes; request less, or use a file")]
    OutOfMemory {
        /// Requested bytes.
        bytes: u64,
    },
    /// A range of card memory cannot be used.
    #[error("card memory {addr:#x}+{len:#x}: {why}")]
    BadCardRange {
        /// Card address.
        addr: u64,
        /// Bytes.
        len: u64,
        /// What is wrong.
        why: String,
    },
    /// No range of the slot's address space is free, or the one given is not in it.
    #[error("{bytes} bytes do not fit into the slot's address space there")]
    NoAddress {
        /// Bytes of whole pages.
        bytes: u64,
    },
    /// Something is mapped at the address given.
    #[error("{va:#x}+{bytes:#x}: something is mapped there; choose another address")]
    AddressTaken {
        /// First address.
        va: u64,
        /// Bytes of whole pages.
        bytes: u64,
    },
    /// A range of addresses is not mapped.
    #[error("nothing is mapped at {start:#x}, in a range that ends at {end:#x}")]
    NotMapped {
        /// First address that is not mapped.
        start: u64,
        /// End of the range.
        end: u64,
    },
    /// A file is not open for what a mapping needs.
    #[error("{}: is not open for {what}; open it for that, or map it otherwise", path.display())]
    Access {
        /// The file.
        path: PathBuf,
        /// Reading or writing.
        what: &'static str,
    },
    /// Too much is under way.
    #[error("{count} operations are under way; wait for one of them")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// An argument is invalid.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>, doing: &'static str, source: io::Error) -> Self {
        Self::File { path: path.into(), doing, source }
    }

    /// The file that it is about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. }
            | Self::NotAFile { path, .. }
            | Self::SameFile { path }
            | Self::FileShrank { path, .. }
            | Self::InputRemoved { path }
            | Self::FileRemoved { path }
            | Self::OutputChanged { path, .. }
            | Self::Write { path, .. }
            | Self::Lost { path, .. }
            | Self::Access { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The error number of POSIX that means the same, as functions like `mmap` and `msync` give it.
    pub fn errno(&self) -> i32 {
        match self {
            Self::File { source, .. } | Self::Write { source, .. } => {
                let other =
                    if source.kind() == io::ErrorKind::TimedOut { libc::ETIMEDOUT } else { libc::EIO };
                source.raw_os_error().unwrap_or(other)
            }
            Self::Lost { os, .. } => os.unwrap_or(libc::EIO),
            Self::NotAFile { .. } => libc::ENODEV,
            Self::Access { .. } => libc::EACCES,
            Self::NoAddress { .. }
            | Self::NotMapped { .. }
            | Self::OutOfMemory { .. }
            | Self::OutOfCardMemory { .. } => libc::ENOMEM,
            Self::AddressTaken { .. } => libc::EEXIST,
            Self::TooMany { .. } => libc::EAGAIN,
            Self::SlotInUse { .. } | Self::Pci(PciError::Busy(_)) => libc::EBUSY,
            Self::NoSuchSlot { .. } | Self::NoSuchPort { .. } => libc::ENOENT,
            Self::PortTwice { .. }
            | Self::BadRegister { .. }
            | Self::BadImage(_)
            | Self::BadEndpoint { .. }
            | Self::SameFile { .. }
            | Self::SameRange { .. }
            | Self::EmptyInput { .. }
            | Self::BadCardRange { .. }
            | Self::Invalid(_) => libc::EINVAL,
            Self::Stalled { .. }
            | Self::Unfinished { .. }
            | Self::LoadStuck { .. }
            | Self::Pci(PciError::Timeout(_)) => libc::ETIMEDOUT,
            Self::Stopped => libc::ECANCELED,
            Self::Pci(PciError::Forked) => libc::EBADF,
            _ if self.is_out_of_memory() => libc::ENOMEM,
            Self::Pci(PciError::Os { source, .. }) => source.raw_os_error().unwrap_or(libc::EIO),
            _ => libc::EIO,
        }
    }

    /// Whether this process got no memory for the card. For the kernel that is a file: a limit on the size of files is one on
    /// this memory.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::OutOfMemory { .. } => true,
            Self::Pci(PciError::Os { source, .. }) => {
                matches!(source.raw_os_error(), Some(libc::ENOMEM | libc::EFBIG))
            }
            _ => false,
        }
    }

    /// Logs that clean-up has failed. A card that is gone needs none, and the call that noticed it has said so.
    pub(crate) fn log_unclean(&self, slot: usize, what: &str) {
        match self {
            Self::Pci(PciError::Gone(_)) => tracing::debug!(error = %self, slot, "{what}"),
            _ => tracing::warn!(error = %self, slot, "{what}"),
        }
    }

    /// Whether a job ended only because its slot was reset or closed meanwhile. Of several jobs on one slot, the one that
    /// meets a fault resets the slot; its error names the fault, those of the others are of this kind.
    pub fn by_reset(&self) -> bool {
        matches!(
            self,
            Self::Command { status: Status::Aborted, .. } | Self::Isolated { cause: EventCause::Host, .. }
        )
    }
}

/// Explanation of a system's error for an output.
fn why_unwritten(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPIPE) => ", its reader has closed it",
        Some(libc::EFBIG) => ", files of this user may not be larger (`ulimit -f`)",
        _ => "",
    }
}

/// Reasons of the configuration logic; those of the simulated card are in sim/include/viaduct_image.h.
fn load_reason(code: u8) -> &'static str {
    match code {
        1 => "it is not an image (code 1)",
        2 => "the image folder has no such app (code 2)",
        3 => "the app's object is not the one of this image: rebuilt since, or damaged (code 3)",
        4 => "it is built for another data width or number of streams (code 4)",
        5 => "it is built for another version of the card (code 5)",
        6 => "the app's object is damaged, or there is too little memory to open it (code 6)",
        7 => "there is not enough memory (code 7)",
        8 => "the card has no such slot (code 8)",
        9 => "its process has as many files open as it may (code 9)",
        _ => "the reason is unknown",
    }
}

fn load_remedy(code: u8) -> &'static str {
    match code {
        9 => "raise the limit of that process with `ulimit -n`",
        _ => "build the app for this card and load it again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_open_files_is_told_with_what_to_do() {
        let full = io::Error::from_raw_os_error(libc::EMFILE);
        for error in [Error::LoadRefused { slot: 0, code: 9 }, Error::file("a", "open it", full)] {
            let text = error.to_string();
            assert!(text.contains("`ulimit -n`") && !text.contains("build"), "{text}");
        }
    }

    #[test]
    fn a_reset_by_somebody_else_is_no_cause() {
        let isolated = |cause| Error::Isolated { slot: 0, cause };
        let ended = |status| Error::Command { slot: 0, what: "moving data".into(), status };
        assert!(isolated(EventCause::Host).by_reset());
        assert!(ended(Status::Aborted).by_reset());
        assert!(!isolated(EventCause::Cross4k).by_reset());
        assert!(!ended(Status::BadArg).by_reset());
        assert!(!Error::SlotEmpty { slot: 0 }.by_reset());
    }
}
