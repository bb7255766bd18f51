// SPDX-License-Identifier: Apache-2.0
//! The files behind a client's DMA maps.
//!
//! A file is mapped into this process once and as a whole, with one descriptor, however many DMA maps are in it: they need no
//! mapping of their own.

use super::refusal::Refusal;
use super::wire::MAX_FILES;
use crate::budget::{Charge, Resource, Share};
use crate::memory::{Area, SealedFile, check_pages};
use crate::{DmaAccess, HostMemory};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Weak};

/// Files of one client. A file is released when the last map in it is removed.
pub(super) struct Files {
    share: Arc<Share>,
    files: BTreeMap<FileKey, Entry>,
}

/// Device, inode and access mode of a file: descriptors with equal keys are interchangeable.
type FileKey = (u64, u64, i32);

struct Entry {
    /// The most recent mapping: the whole file as it was then, if that fitted.
    area: Weak<Area>,
    descriptor: Weak<Charge>,
}

impl Files {
    /// No files yet; their resources come from `share`.
    pub fn new(share: Arc<Share>) -> Self {
        Self { share, files: BTreeMap::new() }
    }

    /// Memory for a DMA map: `len` bytes at `offset` of the file behind `fd`.
    pub fn memory(
        &mut self,
        fd: OwnedFd,
        offset: u64,
        len: usize,
        access: DmaAccess,
    ) -> Result<HostMemory, Refusal> {
        check_pages(offset, len)?;
        let key = key(&fd)?;
        let known =
            self.files.get(&key).and_then(|entry| Some((entry.area.upgrade()?, entry.descriptor.upgrade()?)));
        if let Some((area, _)) = &known {
            if area.covers(offset, len) && area.allows(access) {
                return Ok(HostMemory::part(area, offset, len));
            }
        }
        let (fd, descriptor) = match known {
            Some((area, descriptor)) => (Arc::clone(area.fd()), descriptor),
            None => {
                self.make_room()?;
                (Arc::new(fd), Arc::new(self.share.take(Resource::Descriptors, 1)?))
            }
        };
        let file = SealedFile::new(fd)?;
        file.check(offset, len, access)?;
        let map = |offset: u64, len: usize| {
            let map = self.share.take(Resource::Maps, 1)?;
            let bytes = self.share.take(Resource::Addresses, len as u64)?;
            let charges = vec![Arc::clone(&descriptor), Arc::new(map), Arc::new(bytes)];
            Ok::<_, Refusal>(Arc::new(Area::map(&file, offset, len, charges)?))
        };
        // A part may fit where the whole file does not.
        let whole = usize::try_from(file.size).map_err(|_| Errno::EFBIG)?;
        let area = map(0, whole).or_else(|_| map(offset, len))?;
        self.files
            .insert(key, Entry { area: Arc::downgrade(&area), descriptor: Arc::downgrade(&descriptor) });
        Ok(HostMemory::part(&area, offset, len))
    }

    /// Removes entries of released files, if there are many.
    fn make_room(&mut self) -> Result<(), Refusal> {
        if self.files.len() >= MAX_FILES {
            self.files.retain(|_, file| file.area.strong_count() != 0);
        }
        match self.files.len() {
            count if count < MAX_FILES => Ok(()),
            count => Err(Refusal::new(
                Errno::ENOSPC,
                format!("this client has {count} files mapped, the most there may be"),
            )),
        }
    }
}

fn key(fd: &OwnedFd) -> Result<FileKey, Refusal> {
    // Must come first: other system calls on a file of a file system that the client implements may block for ever.
    nix::fcntl::fcntl(fd.as_raw_fd(), nix::fcntl::F_GET_SEALS)
        .map_err(|_| Refusal::new(Errno::EPERM, crate::memory::NOT_A_MEMFD.into()))?;
    let stat = nix::sys::stat::fstat(fd.as_raw_fd())?;
    let mode = nix::fcntl::fcntl(fd.as_raw_fd(), nix::fcntl::F_GETFL)? & libc::O_ACCMODE;
    Ok((stat.st_dev, stat.st_ino, mode))
}
