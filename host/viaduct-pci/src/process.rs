// SPDX-License-Identifier: Apache-2.0
//! What `fork()` does to a program that uses cards: the child has copies of its objects, but not of its threads, and the
//! card stays its parent's.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// How often this process and its ancestors have been forked off.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which something was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This one.
    pub fn current() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler counts and replaces descriptors, which a child may do before anything else runs in it.
            let code = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
            if code != 0 {
                tracing::error!(code, "a child of fork() will not be told from its parent");
            }
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether that is this process, and not one that it was forked off from.
    pub fn is_current(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

/// Numbers of the descriptors that a child must not have; -1: none.
static WITHHELD: [AtomicI32; 256] = [const { AtomicI32::new(-1) }; 256];

/// While it exists, children of `fork()` have `/dev/null` in place of a descriptor: a card is in use until every copy of
/// its descriptors is closed, so that a child which outlives a killed parent would keep it.
///
/// It must be dropped before the descriptor is closed: a field declared above it.
#[derive(Debug)]
pub struct Withheld(Option<&'static AtomicI32>);

impl Withheld {
    /// Of more than 256 descriptors children have copies.
    pub fn new(fd: impl AsFd) -> Self {
        Process::current(); // registers the handler
        let fd = fd.as_fd().as_raw_fd();
        let free = WITHHELD
            .iter()
            .find(|entry| entry.compare_exchange(-1, fd, Ordering::Relaxed, Ordering::Relaxed).is_ok());
        Self(free)
    }
}

impl Drop for Withheld {
    fn drop(&mut self) {
        if let Some(entry) = self.0 {
            entry.store(-1, Ordering::Relaxed);
        }
    }
}

/// Runs in every child.
unsafe extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let mut null = None;
    for entry in &WITHHELD {
        let fd = entry.load(Ordering::Relaxed);
        if fd < 0 {
            continue;
        }
        // SAFETY: system calls that take no lock. The number stays in use, since an object of the child may close it.
        unsafe {
            let null = *null
                .get_or_insert_with(|| libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC));
            // Without a free descriptor the child keeps the copy.
            libc::dup3(null, fd, libc::O_CLOEXEC);
        }
    }
    if let Some(null) = null {
        // SAFETY: opened above; -1 is an error without effect.
        unsafe { libc::close(null) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// Whether the other end of a socket sees its end while a child that was forked off lives.
    fn ends_beside_a_child(withheld: bool) -> bool {
        let (ours, mut other) = UnixStream::pair().unwrap();
        let guard = withheld.then(|| Withheld::new(&ours));
        // SAFETY: the child only waits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: system calls.
            unsafe {
                libc::alarm(100);
                libc::pause();
                libc::_exit(0);
            }
        }
        drop(guard);
        drop(ours);
        other
            .set_read_timeout(Some(std::time::Duration::from_millis(if withheld { 50_000 } else { 50 })))
            .unwrap();
        let ended = other.read(&mut [0]).is_ok_and(|count| count == 0);
        // SAFETY: our child, which is waited for here only.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        ended
    }

    #[test]
    fn a_child_has_no_copy_of_a_withheld_descriptor() {
        assert!(ends_beside_a_child(true));
        assert!(!ends_beside_a_child(false));
    }
}
