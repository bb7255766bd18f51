// SPDX-License-Identifier: Apache-2.0
//! Socket files: created where nothing or a dead socket exists, and removed on drop if they are still the same file.
//!
//! A socket is dead if no process has it bound any more. Nothing else is ever replaced: no file of another kind, no
//! symbolic link, no socket in use. Errors do not name the path, which the caller knows.

use crate::peer::Peer;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, RenameFlags, renameat2};
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, connect, socket};
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest path of a socket in bytes (`sun_path` without the zero byte at its end).
const MAX_PATH: usize = 107;
/// How long to wait for another program that creates a socket in the same folder.
const LOCK_TIME: Duration = Duration::from_secs(5);

/// A socket's file. Dropping it removes the file, if it is still that of the socket: drop it before the socket, whose
/// inode number cannot be reused while the socket exists.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    id: FileId,
}

/// Device and inode.
type FileId = (u64, u64);

impl SocketFile {
    /// Listens at `path`.
    pub fn listen(path: &Path) -> Result<(UnixListener, Self)> {
        Self::bind(path, |path| UnixListener::bind(path))
    }

    /// Receives datagrams at `path`.
    pub fn datagrams(path: &Path) -> Result<(UnixDatagram, Self)> {
        Self::bind(path, |path| UnixDatagram::bind(path))
    }

    /// Listens at `path` for connections that carry whole messages (`SOCK_SEQPACKET`).
    pub fn packets(path: &Path) -> Result<(OwnedFd, Self)> {
        Self::bind(path, |path| {
            let listener = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
            nix::sys::socket::bind(listener.as_raw_fd(), &UnixAddr::new(path)?)?;
            nix::sys::socket::listen(&listener, Backlog::MAXCONN)?;
            Ok(listener)
        })
    }

    fn bind<S>(path: &Path, bind: impl Fn(&Path) -> Result<S>) -> Result<(S, Self)> {
        let length = path.as_os_str().len();
        if length > MAX_PATH {
            let why = format!(
                "the path of a socket has at most {MAX_PATH} bytes, this one has {length}; use a shorter one"
            );
            return Err(Error::new(ErrorKind::InvalidInput, why));
        }
        let absolute = std::path::absolute(path)?;
        let (Some(folder), Some(_)) = (absolute.parent(), absolute.file_name()) else {
            return Err(Error::new(ErrorKind::InvalidInput, "this is a folder; name a file in it"));
        };
        // Where nothing is, binding alone is safe, and the folder's lock may be held for another purpose.
        let socket = match bind(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => Self::replace(path, folder, bind)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::new(error.kind(), "there is no such folder; create it first"));
            }
            socket => socket?,
        };
        let id = look(path)?.as_ref().map(id_of).unwrap_or_default();
        Ok((socket, Self { path: absolute, id }))
    }

    /// Binds where something is, if that is a dead socket. Under the folder's lock, because the check, the removal and
    /// the bind must not interleave with those of others.
    fn replace<S>(path: &Path, folder: &Path, bind: impl Fn(&Path) -> Result<S>) -> Result<S> {
        let lock = lock(folder);
        if let Some(found) = look(path)? {
            make_way(path, &found, lock.as_ref().err())?;
        }
        bind(path).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                Error::new(error.kind(), "in use: another program was faster; name another path")
            }
            _ => error,
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = |found: &Metadata| id_of(found) == self.id;
        if let Ok(Some(_)) = look(&self.path).map(|found| found.filter(ours)) {
            if let Err(error) = remove(&self.path, self.id) {
                tracing::warn!(%error, path = %self.path.display(), "a socket file could not be removed");
            }
        }
    }
}

/// Holds the folder's lock until dropped. A folder that cannot be locked is no error: binding alone never
/// replaces anything.
fn lock(folder: &Path) -> Result<Flock<File>> {
    let mut file = File::open(folder)?;
    let end = Instant::now() + LOCK_TIME;
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) if Instant::now() < end => file,
            Err((_, errno)) => return Err(errno.into()),
        };
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Removes the file at `path` if it is a dead socket; else the error says what it is.
fn make_way(path: &Path, found: &Metadata, unlocked: Option<&Error>) -> Result<()> {
    let kind = found.file_type();
    if !kind.is_socket() {
        let what = match () {
            () if kind.is_symlink() => "a symbolic link",
            () if kind.is_dir() => "a folder",
            () if kind.is_fifo() => "a FIFO",
            () if kind.is_file() => "a regular file",
            () => "a device",
        };
        let why = format!("{what} is here and is left alone; name another path, or remove it");
        return Err(Error::new(ErrorKind::AlreadyExists, why));
    }
    if let State::Bound(who) = state_of(path)? {
        let who = who.map_or("another program".into(), |peer| peer.to_string());
        let why = format!("in use: {who} has this socket; end it, or name another path");
        return Err(Error::new(ErrorKind::AddrInUse, why));
    }
    let stays = |why: &Error| {
        let why =
            format!("a socket exists here that no program has, and it cannot be replaced ({why}); remove it");
        Error::new(ErrorKind::AddrInUse, why)
    };
    match unlocked {
        Some(why) => Err(stays(why)),
        None => remove(path, id_of(found)).map_err(|why| stays(&why)),
    }
}

/// Removes a socket but no file that may have replaced it meanwhile: it is renamed to a private name, checked there,
/// and renamed back if it is another file.
fn remove(path: &Path, id: FileId) -> Result<()> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let aside = path.with_file_name(format!(".viaduct-{}-{number}", std::process::id()));
    let rename = |from: &Path, to: &Path| renameat2(None, from, None, to, RenameFlags::RENAME_NOREPLACE);
    rename(path, &aside)?;
    if look(&aside)?.as_ref().map(id_of) == Some(id) {
        return std::fs::remove_file(&aside);
    }
    let why = match rename(&aside, path) {
        Ok(()) => "something else has taken its place".to_owned(),
        Err(errno) => format!("the file that has taken its place is now {} ({errno})", aside.display()),
    };
    Err(Error::other(why))
}

/// Kind of the file at `path` (links are not followed), if there is one.
fn look(path: &Path) -> Result<Option<Metadata>> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn id_of(found: &Metadata) -> FileId {
    (found.dev(), found.ino())
}

enum State {
    Dead,
    /// In use by a process, which is named if it is visible.
    Bound(Option<Peer>),
}

/// Whether a process has a socket of whatever type bound here, also if it does not listen. Never waits.
fn state_of(path: &Path) -> Result<State> {
    let address = UnixAddr::new(path)?;
    let mut dead = true;
    for kind in [SockType::Stream, SockType::Datagram, SockType::SeqPacket] {
        let probe =
            socket(AddressFamily::Unix, kind, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?;
        match connect(probe.as_raw_fd(), &address) {
            Ok(()) if kind == SockType::Datagram => return Ok(State::Bound(None)),
            Ok(()) => return Ok(State::Bound(Some(Peer::of(&probe)))),
            // One of another type is bound, even if it does not listen: without any, the connection would be refused.
            Err(Errno::EPROTOTYPE) => dead = false,
            // The queue is full, or it accepts one sender only.
            Err(Errno::EAGAIN | Errno::EPERM) => return Ok(State::Bound(None)),
            // Nothing is bound, or this type is and does not listen.
            Err(Errno::ECONNREFUSED | Errno::ENOENT) => {}
            Err(errno) => {
                let why = format!(
                    "a socket exists here, and whether it is in use cannot be determined ({}); name another path",
                    errno.desc()
                );
                return Err(Error::new(Error::from(errno).kind(), why));
            }
        }
    }
    Ok(if dead { State::Dead } else { State::Bound(None) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::Barrier;

    fn listen(path: &Path) -> std::result::Result<(UnixListener, SocketFile), String> {
        SocketFile::listen(path).map_err(|e| e.to_string())
    }

    /// A socket file without a process.
    fn dead(path: &Path) {
        drop(UnixListener::bind(path).unwrap());
    }

    #[test]
    fn what_is_no_socket_stays() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        fs::write(place("file"), "precious").unwrap();
        dead(&place("dead"));
        symlink("file", place("to-file")).unwrap();
        symlink("dead", place("to-socket")).unwrap();
        symlink("nothing", place("to-nothing")).unwrap();
        nix::unistd::mkfifo(&place("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::create_dir(place("folder")).unwrap();
        let before = names(dir.path());
        for (name, what) in [
            ("file", "a regular file"),
            ("to-file", "a symbolic link"),
            ("to-socket", "a symbolic link"),
            ("to-nothing", "a symbolic link"),
            ("fifo", "a FIFO"),
            ("folder", "a folder"),
        ] {
            let error = listen(&place(name)).unwrap_err();
            assert!(error.starts_with(what) && error.contains("remove it"), "{name}: {error}");
            assert!(SocketFile::datagrams(&place(name)).is_err(), "{name}");
        }
        assert_eq!(fs::read(place("file")).unwrap(), b"precious");
        assert_eq!(names(dir.path()), before);
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        dead(&path);
        let (listener, name) = listen(&path).unwrap();
        let error = listen(&path).unwrap_err();
        assert!(error.contains(&format!("in use: process {}", std::process::id())), "{error}");
        assert!(SocketFile::datagrams(&path).unwrap_err().to_string().contains("in use"));
        drop((name, listener));
        assert!(names(dir.path()).is_empty());
        drop(UnixDatagram::bind(&path).unwrap());
        let (_datagrams, _name) = SocketFile::datagrams(&path).unwrap();
        assert!(listen(&path).unwrap_err().contains("in use"));
        // A socket with a full queue of connections that are not accepted.
        let path = dir.path().join("full");
        let full = UnixListener::bind(&path).unwrap();
        nix::sys::socket::listen(&full, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
        let _waiting = std::os::unix::net::UnixStream::connect(&path).unwrap();
        assert!(listen(&path).unwrap_err().contains("in use"));
    }

    /// As between the two calls of every server, or of a program that listens only when it is asked to.
    #[test]
    fn a_socket_that_nobody_listens_on_yet_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        for kind in [SockType::Stream, SockType::SeqPacket] {
            let path = dir.path().join("bound");
            let bound = socket(AddressFamily::Unix, kind, SockFlag::SOCK_CLOEXEC, None).unwrap();
            nix::sys::socket::bind(bound.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
            assert!(listen(&path).unwrap_err().contains("in use: another program"), "{kind:?}");
            assert!(SocketFile::datagrams(&path).unwrap_err().to_string().contains("in use"), "{kind:?}");
            drop(bound);
            drop(SocketFile::packets(&path).unwrap());
        }
    }

    /// The folder of a program's temporary files is locked for as long as it runs.
    #[test]
    fn a_new_socket_does_not_wait_for_the_lock_of_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let _lock = lock(dir.path()).unwrap();
        let (done, wait) = std::sync::mpsc::channel();
        let path = dir.path().join("s");
        let thread = std::thread::spawn(move || done.send(listen(&path).is_ok()));
        assert_eq!(wait.recv_timeout(LOCK_TIME), Ok(true));
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn a_name_that_became_anothers_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (listener, name) = listen(&path).unwrap();
        fs::rename(&path, dir.path().join("away")).unwrap();
        fs::write(&path, "precious").unwrap();
        drop((name, listener));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        // Even if it changes between the check and the removal.
        let found = fs::symlink_metadata(dir.path().join("away")).unwrap();
        let error = remove(&path, id_of(&found)).unwrap_err();
        assert!(error.to_string().contains("something else"), "{error}");
        assert_eq!(names(dir.path()), ["away", "s"]);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn of_many_at_once_one_gets_the_name() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..4 {
            let path = dir.path().join(format!("s{round}"));
            dead(&path);
            let together = Barrier::new(6);
            let outcomes: Vec<_> = std::thread::scope(|scope| {
                let start = || {
                    together.wait();
                    listen(&path)
                };
                let threads: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|o| o.is_ok());
            assert_eq!(won.len(), 1, "{lost:?}");
            lost.into_iter().for_each(|o| assert!(o.unwrap_err().contains("in use")));
            assert!(matches!(state_of(&path).unwrap(), State::Bound(_)));
        }
    }

    #[test]
    fn places_where_no_socket_can_be_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = listen(&dir.path().join("no/such")).unwrap_err();
        assert!(error.contains("no such folder"), "{error}");
        let error = listen(&dir.path().join("n".repeat(100))).unwrap_err();
        assert!(error.contains("at most 107 bytes"), "{error}");
        assert!(listen(Path::new("/")).is_err() && listen(Path::new("..")).is_err());
        // The folder is removed while the socket is in use.
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let bound = listen(&inner.join("s")).unwrap();
        fs::remove_dir_all(&inner).unwrap();
        drop(bound);
    }
}
