// SPDX-License-Identifier: Apache-2.0
//! Failures of commands.

use std::fmt::Display;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;

use crate::terminal::style::{BAD, styled};
use crate::terminal::text::plain;

/// Result of a command.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// Why a command failed; decides the exit code (docs/cli.md).
#[derive(Debug)]
pub enum Failure {
    /// An error during the work: exit code 1.
    Run(String),
    /// Wrong usage: exit code 2.
    Usage(String),
    /// The output differs from the golden model: exit code 3.
    Check(String),
    /// A tool failed, with this output and error: exit code 1.
    Tool(String, String),
}

impl Failure {
    /// The message for the user.
    pub fn message(&self) -> &str {
        match self {
            Failure::Run(m) | Failure::Usage(m) | Failure::Check(m) | Failure::Tool(_, m) => m,
        }
    }

    /// The same, as the fault of an argument.
    pub fn by_usage(self) -> Self {
        Failure::Usage(self.message().to_owned())
    }

    /// Prints the message: one line, after a tool's output.
    pub fn report(&self) {
        if let Failure::Tool(output, _) = self {
            tell!("{output}");
        }
        tell!("{} {}", styled(&std::io::stderr(), BAD, "error:"), plain(self.message()));
    }

    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Run(_) | Failure::Tool(..) => 1,
            Failure::Usage(_) => 2,
            Failure::Check(_) => 3,
        })
    }
}

/// A failure of the work itself, prefixed with its location.
pub fn at(place: impl Display) -> impl FnOnce(std::io::Error) -> Failure {
    move |e| Failure::Run(format!("{place}: {}", reason(&e)))
}

/// Fails unless this is a regular file: reading a device might never end, and opening a FIFO waits for its other end.
pub fn regular(path: &Path) -> Result {
    let kind = std::fs::metadata(path).map_err(at(path.display()))?.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    usage(format!("{}: is {what}, not a regular file; name a file", path.display()))
}

/// The system's text without its number, and what to do if it does not say it.
pub fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned() + viaduct_pci::remedy(e)
}

/// A failure by wrong usage.
pub fn usage<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure::Usage(message.into()))
}

impl From<viaduct_build::Error> for Failure {
    fn from(e: viaduct_build::Error) -> Self {
        use viaduct_build::Error;
        let message = e.to_string();
        match e {
            Error::Tool { what, output, problem } if !output.is_empty() => {
                Failure::Tool(output, format!("{what} failed: {problem}"))
            }
            Error::NoApp { .. }
            | Error::Value { .. }
            | Error::Name { .. }
            | Error::Exists { .. }
            | Error::Manifest { .. } => Failure::Usage(message),
            _ => Failure::Run(message),
        }
    }
}

impl From<viaduct::Error> for Failure {
    fn from(e: viaduct::Error) -> Self {
        use viaduct::Error;
        let message = e.to_string();
        match e {
            Error::BadEndpoint { .. }
            | Error::NotAFile { .. }
            | Error::SameFile { .. }
            | Error::SameRange { .. }
            | Error::BadCardRange { .. }
            | Error::NoSuchSlot { .. } => Failure::Usage(message),
            _ => Failure::Run(message),
        }
    }
}
