// SPDX-License-Identifier: Apache-2.0
//! Copies of streamed data in a checked run, since it cannot be read a second time.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use viaduct::Endpoint;
use viaduct_build::Scratch;

use crate::fail::{Result, at};
use crate::route::Route;

/// A copy, in a temporary file that is removed with the value.
pub struct Kept(Scratch);

impl Kept {
    /// The endpoint that reads the route's stream and copies it; `None` if the route is not a stream.
    pub fn input(route: &Route, from: &Endpoint) -> Result<Option<(Kept, Endpoint)>> {
        let path = match (route.is_standard(), route.file()) {
            (true, _) => None,
            (false, Some(path)) if from.known_len()?.is_none() => Some(PathBuf::from(path)),
            (false, _) => return Ok(None),
        };
        let (kept, copy) = Self::new()?;
        let meta = metadata(path.as_deref(), io::stdin())?;
        let through = Endpoint::reader(route.name(), Tee { end: End::Unopened(path), copy });
        Ok(Some((kept, through.standing_for(&meta))))
    }

    /// The endpoint that writes the route's stream and copies it; `None` if the route is not a stream.
    pub fn output(route: &Route, to: &Endpoint) -> Result<Option<(Kept, Endpoint)>> {
        let path = match (route.is_standard(), route.file()) {
            (true, _) => None,
            (false, Some(path)) if to.is_written_in_order() => Some(PathBuf::from(path)),
            (false, _) => return Ok(None),
        };
        let (kept, copy) = Self::new()?;
        let meta = metadata(path.as_deref(), io::stdout())?;
        let through = Endpoint::writer(route.name(), Tee { end: End::Unopened(path), copy });
        Ok(Some((kept, through.standing_for(&meta))))
    }

    fn new() -> Result<(Kept, File)> {
        let kept = Kept(Scratch::new()?);
        let copy = File::create(kept.path()).map_err(|e| Scratch::lacks(COPY, &e))?;
        Ok((kept, copy))
    }

    /// Path of the copy.
    pub fn path(&self) -> PathBuf {
        self.0.path().join("copy")
    }
}

/// Metadata of the file, or of the standard stream if there is none.
fn metadata(path: Option<&Path>, standard: impl AsFd) -> Result<Metadata> {
    let found = match path {
        Some(path) => std::fs::metadata(path),
        None => standard.as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata()),
    };
    found.map_err(at(path.map_or("standard stream".into(), |path| path.display().to_string())))
}

/// A stream and its copy. It is opened on first use, which may have to wait for its other end.
struct Tee {
    end: End,
    copy: File,
}

enum End {
    /// `None`: standard input or output.
    Unopened(Option<PathBuf>),
    In(Box<dyn Read + Send>),
    Out(Box<dyn Write + Send>),
}

impl Tee {
    fn input(&mut self) -> io::Result<&mut dyn Read> {
        if let End::Unopened(path) = &self.end {
            self.end = End::In(match path {
                Some(path) => Box::new(File::open(path)?),
                None => Box::new(io::stdin()),
            });
        }
        match &mut self.end {
            End::In(from) => Ok(from),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn output(&mut self) -> io::Result<&mut dyn Write> {
        if let End::Unopened(path) = &self.end {
            self.end = End::Out(match path {
                Some(path) => Box::new(OpenOptions::new().write(true).open(path)?),
                None => Box::new(io::stdout()),
            });
        }
        match &mut self.end {
            End::Out(to) => Ok(to),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// The copy, in errors.
const COPY: &str = "the copy for --check";

fn of_copy(e: io::Error) -> io::Error {
    io::Error::new(e.kind(), Scratch::lacks(COPY, &e).to_string())
}

impl Read for Tee {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let got = self.input()?.read(bytes)?;
        self.copy.write_all(&bytes[..got]).map_err(of_copy)?;
        Ok(got)
    }
}

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output()?.write_all(bytes)?;
        self.copy.write_all(bytes).map_err(of_copy)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output()?.flush()
    }
}
