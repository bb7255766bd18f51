// SPDX-License-Identifier: Apache-2.0
//! Names of PCI functions outside of this process.

use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::vfio::{self, PciAddress};
use crate::{PciError, PciFunction, Result, vfio_user};

/// Location of a function that this process does not simulate itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// `unix:PATH`: behind a vfio-user socket.
    Unix(PathBuf),
    /// `vfio:ADDRESS`: in this machine, bound to `vfio-pci`.
    Vfio(PciAddress),
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("vfio", address)) => address.parse().map(Self::Vfio),
            _ => Err("write unix:PATH or vfio:ADDRESS".to_owned()),
        }
    }
}

/// Pause before a retry to open a function in use.
const AGAIN: Duration = Duration::from_millis(200);

impl Location {
    /// Opens the function. The error says what is wrong, and what to do: [`PciError::Busy`] if another process
    /// uses it.
    pub fn open(&self) -> Result<Arc<dyn PciFunction>> {
        Ok(match self {
            Self::Unix(path) => Arc::new(vfio_user::Client::connect(path).map_err(|e| unix_error(path, e))?),
            Self::Vfio(address) => Arc::new(vfio::Function::open(*address)?),
        })
    }

    /// As [`Location::open`], but retries while another process uses the function, for `limit` or a little longer.
    /// Each time `go_on` is called with the error that names the process; the wait ends when it returns `false`.
    pub fn open_within(
        &self,
        limit: Duration,
        mut go_on: impl FnMut(&PciError) -> bool,
    ) -> Result<Arc<dyn PciFunction>> {
        let end = Instant::now().checked_add(limit);
        loop {
            let opened = self.open();
            let over = end.is_some_and(|end| Instant::now() >= end);
            match &opened {
                Err(busy @ PciError::Busy(_)) if !over && go_on(busy) => std::thread::sleep(AGAIN),
                _ => return opened,
            }
        }
    }
}

fn unix_error(path: &Path, error: PciError) -> PciError {
    let shown = path.display();
    let is_socket = |meta: std::fs::Metadata| meta.file_type().is_socket();
    let nobody = |e: &std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused);
    match error {
        PciError::Busy(who) => PciError::Busy(format!("unix:{shown}: {who}; end it, or wait for it")),
        // A process responds, but it is not a card, or a card that hangs.
        other @ (PciError::Protocol(_) | PciError::Timeout(_)) => PciError::Unusable(format!(
            "connecting to {shown}: {other}; is that the socket of a card, of this version?"
        )),
        // The socket of `viaductd` keeps the bounds of messages, that of a card does not.
        PciError::Os { source, .. } if source.raw_os_error() == Some(libc::EPROTOTYPE) => {
            PciError::Unusable(format!(
                "{shown}: is the socket of viaductd, or of another program, not of a card; programs use viaductd with \
                 `viaductd::client`; for a card of your own name the socket of a `viaduct card`"
            ))
        }
        PciError::Os { source, .. } if source.raw_os_error() == Some(libc::ENAMETOOLONG) => PciError::Os {
            what: format!("connecting to {shown} (the path of a socket has at most 107 bytes)"),
            source,
        },
        PciError::Os { source, .. } if source.raw_os_error() == Some(libc::EACCES) => PciError::Os {
            what: format!(
                "connecting to {shown} (who serves the socket can let you write to it, with `chmod`)"
            ),
            source,
        },
        PciError::Os { .. } if std::fs::metadata(path).is_ok_and(|meta| !is_socket(meta)) => {
            PciError::Unusable(format!(
                "{shown}: is not a socket; name that of a card, as `viaduct card --socket PATH` creates it"
            ))
        }
        // No connection: the system's error says why.
        PciError::Os { what, source } if !nobody(&source) => PciError::Os { what, source },
        // The name that `viaduct card` gives the socket of a card with all its functions.
        other => PciError::Unusable(match (path.file_name(), path.parent()) {
            (Some(name), Some(folder)) if name == "mgmt.sock" => format!(
                "{other}; is there a card? `viaduct card --functions {} --unconnected` starts one",
                folder.display()
            ),
            _ => format!("{other}; is there a card? `viaduct card --socket {shown}` starts one"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named() {
        let address: PciAddress = "0000:01:00.0".parse().unwrap();
        assert_eq!("unix:/a:b".parse(), Ok(Location::Unix("/a:b".into())));
        assert_eq!("vfio:0000:01:00.0".parse(), Ok(Location::Vfio(address)));
        assert_eq!("vfio:01:00.0".parse(), Ok(Location::Vfio(address)));
        for (bad, word) in
            [("", "unix:PATH"), ("unix:", "unix:PATH"), ("pci", "unix:PATH"), ("vfio:", "0000:01:00.0")]
        {
            let error = bad.parse::<Location>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn an_empty_place_says_what_to_do() {
        let error = Location::Unix("/nobody/here".into()).open().err().unwrap().to_string();
        assert!(error.contains("/nobody/here") && error.contains("viaduct card --socket"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let _daemon = crate::SocketFile::packets(&path).unwrap();
        let error = Location::Unix(path).open().err().unwrap().to_string();
        assert!(error.contains("viaductd") && error.contains("viaduct card"), "{error}");
        let error = Location::Unix(dir.path().into()).open().err().unwrap().to_string();
        assert!(error.contains("is not a socket") && !error.contains("is there a card"), "{error}");
        let error = Location::Unix("x".repeat(200).into()).open().err().unwrap().to_string();
        assert!(error.contains("too long") && !error.contains("is there a card"), "{error}");
    }
}
