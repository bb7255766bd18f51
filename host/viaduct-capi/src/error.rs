// SPDX-License-Identifier: Apache-2.0
//! Conversion of errors to codes, and the text of the last error.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use viaduct_pci::PciError;

use crate::cancel::Uncancelled;
use crate::numbers::enter_process;

/// Codes of errors, as in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    Argument = -1,
    Handle = -2,
    NotFound = -3,
    Busy = -4,
    TooSmall = -5,
    Io = -6,
    App = -7,
    Card = -8,
    Build = -9,
    Memory = -10,
    Internal = -11,
    Stopped = -12,
}

impl Code {
    /// The error number of a failure with this code, unless more is known, as the header says.
    fn errno(self) -> i32 {
        match self {
            Self::Argument => libc::EINVAL,
            Self::Handle => libc::EBADF,
            Self::NotFound => libc::ENOENT,
            Self::Busy => libc::EBUSY,
            Self::TooSmall => libc::ERANGE,
            Self::Memory => libc::ENOMEM,
            Self::Stopped => libc::ECANCELED,
            Self::Io | Self::App | Self::Card | Self::Build | Self::Internal => libc::EIO,
        }
    }
}

/// A call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    text: String,
    errno: i32,
    /// The file that it is about.
    path: Option<PathBuf>,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with this code and text.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), errno: code.errno(), path: None }
    }

    /// The same with another error number for functions that have the semantics of POSIX.
    pub fn with_errno(self, errno: i32) -> Self {
        Self { errno, ..self }
    }

    /// The same text with another code and its error number.
    pub fn coded(self, code: Code) -> Self {
        Self { code, errno: code.errno(), ..self }
    }
}

/// Shorthand for a failure as a result.
pub(crate) fn fail<T>(code: Code, text: impl Into<String>) -> Result<T> {
    Err(Failure::new(code, text))
}

impl From<host::Error> for Failure {
    fn from(error: host::Error) -> Self {
        use host::Error as E;
        let code = match &error {
            E::NoSuchSlot { .. } | E::NoSuchPort { .. } => Code::NotFound,
            E::SlotInUse { .. } | E::Pci(PciError::Busy(_)) => Code::Busy,
            E::Stopped => Code::Stopped,
            E::Pci(PciError::Forked) => Code::Handle,
            E::SlotEmpty { .. }
            | E::Isolated { .. }
            | E::Stalled { .. }
            | E::Unfinished { .. }
            | E::OutputTooLong { .. }
            | E::OutputTooShort { .. } => Code::App,
            E::PortTwice { .. }
            | E::BadRegister { .. }
            | E::BadImage(_)
            | E::BadEndpoint { .. }
            | E::SameFile { .. }
            | E::SameRange { .. }
            | E::EmptyInput { .. }
            | E::BadCardRange { .. }
            | E::AddressTaken { .. }
            | E::NotMapped { .. }
            | E::Invalid(_) => Code::Argument,
            E::TooMany { .. } => Code::Busy,
            E::Access { .. }
            | E::File { .. }
            | E::NotAFile { .. }
            | E::FileShrank { .. }
            | E::FileRemoved { .. }
            | E::OutputChanged { .. }
            | E::Write { .. }
            | E::Lost { .. } => Code::Io,
            E::OutOfCardMemory { .. } | E::NoAddress { .. } => Code::Memory,
            error if error.is_out_of_memory() => Code::Memory,
            _ => Code::Card,
        };
        match code {
            // After a fork the handle is what is wrong, as with any closed one.
            Code::Handle => Self::new(code, error.to_string()),
            _ => Self {
                path: error.path().map(Path::to_owned),
                ..Self::new(code, error.to_string()).with_errno(error.errno())
            },
        }
    }
}

impl From<viaduct_build::Error> for Failure {
    fn from(error: viaduct_build::Error) -> Self {
        use viaduct_build::Error as E;
        let code = match &error {
            E::NoApp { .. } | E::NoProject { .. } | E::Root { .. } => Code::NotFound,
            E::Value { .. } | E::Image { .. } => Code::Argument,
            E::Io { .. } | E::Scratch { .. } | E::ScratchFile { .. } => Code::Io,
            _ => Code::Build,
        };
        let failure = Self::new(code, error.to_string());
        match error {
            E::Io { path, source } => {
                let errno = source.raw_os_error().unwrap_or(libc::EIO);
                Self { path: Some(path), ..failure.with_errno(errno) }
            }
            E::Scratch { folder, errno, .. } | E::ScratchFile { folder, errno, .. } => {
                Self { path: Some(folder), ..failure.with_errno(errno) }
            }
            _ => failure,
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
    static LAST_PATH: RefCell<Option<CString>> = const { RefCell::new(None) };
    static LAST_CODE: Cell<c_int> = const { Cell::new(0) };
}

fn remember(failure: &Failure) {
    let text = CString::new(failure.text.replace('\0', "?")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = text);
    let path = failure.path.as_ref().and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    LAST_PATH.with(|last| *last.borrow_mut() = path);
    LAST_CODE.set(failure.code as c_int);
}

/// Runs the body of a function: 0, or the code of the failure, whose text is kept for [`viaduct_error`] and whose error
/// number is in `errno`.
pub(crate) fn call(work: impl FnOnce() -> Result<()>) -> c_int {
    match caught(work) {
        Ok(()) => 0,
        Err(failure) => {
            // SAFETY: the location of this thread's `errno`, which exists as long as the thread.
            unsafe { *libc::__errno_location() = failure.errno };
            failure.code as c_int
        }
    }
}

/// As [`call`], but upon a failure -1.
pub(crate) fn posix(work: impl FnOnce() -> Result<()>) -> c_int {
    if call(work) == 0 { 0 } else { -1 }
}

/// The body of a function; a panic is a failure.
pub(crate) fn caught(work: impl FnOnce() -> Result<()>) -> Result<()> {
    let _uncancelled = Uncancelled::new();
    enter_process();
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        fail(Code::Internal, format!("an internal error of libviaduct, please report it: {what}"))
    });
    outcome.inspect_err(remember)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_error_code() -> c_int {
    LAST_CODE.try_with(Cell::get).unwrap_or(0)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_error() -> *const c_char {
    // A thread that is ending has no text any longer.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(CStr::as_ptr(c""))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_error_path() -> *const c_char {
    let path =
        |last: &RefCell<Option<CString>>| last.borrow().as_ref().map_or(std::ptr::null(), |p| p.as_ptr());
    LAST_PATH.try_with(path).unwrap_or(std::ptr::null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the text of this thread, not replaced meanwhile.
        unsafe { CStr::from_ptr(viaduct_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn failures_and_panics_become_codes_and_texts() {
        assert_eq!(last(), "");
        assert_eq!(call(|| fail(Code::Busy, "a\0b")), -4);
        assert_eq!(last(), "a?b");
        assert_eq!(call(|| Ok(())), 0);
        assert_eq!(last(), "a?b");
        assert_eq!(call(|| panic!("number {}", 7)), -11);
        assert!(last().contains("number 7"), "{}", last());
    }

    #[test]
    fn the_error_number_follows_from_the_code() {
        use host::Error as E;
        let os =
            |number| PciError::Os { what: "x".into(), source: std::io::Error::from_raw_os_error(number) };
        let errors: [(E, Code, i32); 12] = [
            (E::BadRegister { offset: 3 }, Code::Argument, libc::EINVAL),
            (E::PortTwice { direction: "input", port: 0 }, Code::Argument, libc::EINVAL),
            (E::BadImage("x".into()), Code::Argument, libc::EINVAL),
            (E::EmptyInput { port: 0, name: "x".into() }, Code::Argument, libc::EINVAL),
            (host::Endpoint::parse("").unwrap_err(), Code::Argument, libc::EINVAL),
            (E::NoSuchSlot { slot: 9, last: 1 }, Code::NotFound, libc::ENOENT),
            (E::NoSuchPort { direction: "input", port: 9, count: 1 }, Code::NotFound, libc::ENOENT),
            (E::SlotInUse { slot: 0 }, Code::Busy, libc::EBUSY),
            (E::Pci(PciError::Busy("x".into())), Code::Busy, libc::EBUSY),
            (E::Stopped, Code::Stopped, libc::ECANCELED),
            (E::Pci(os(libc::EFBIG)), Code::Memory, libc::ENOMEM),
            (E::Pci(os(libc::ENODEV)), Code::Card, libc::ENODEV),
        ];
        for (error, code, errno) in errors {
            let failure = Failure::from(error);
            assert_eq!((failure.code, failure.errno), (code, errno), "{}", failure.text);
        }
    }

    #[test]
    fn a_temporary_folder_that_cannot_be_used_has_its_error_number_and_path() {
        let folder = std::env::temp_dir();
        for errno in [libc::ENOSPC, libc::EACCES, libc::EROFS] {
            let full = viaduct_build::Scratch::lacks("the copy", &std::io::Error::from_raw_os_error(errno));
            assert_eq!(call(|| Err(full.into())), Code::Io as c_int);
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(errno));
            // SAFETY: the path of this thread, not replaced meanwhile.
            let path = unsafe { CStr::from_ptr(viaduct_error_path()) };
            assert_eq!(path.to_bytes(), folder.as_os_str().as_bytes());
            assert!(last().contains(&*folder.to_string_lossy()), "{}", last());
        }
    }
}
