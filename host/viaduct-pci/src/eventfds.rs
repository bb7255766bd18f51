// SPDX-License-Identifier: Apache-2.0
//! Interrupts delivered as eventfds, one for each vector.

use crate::{PciError, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// Eventfds of the vectors 0, 1, …, at most 64.
#[derive(Debug, Default)]
pub(crate) struct EventFds(Vec<EventFd>);

impl EventFds {
    /// Creates the eventfds.
    pub(crate) fn new(vectors: u16) -> Result<Self> {
        (0..vectors).map(|_| eventfd()).collect::<Result<_>>().map(Self)
    }

    /// The descriptors, in the order of the vectors.
    pub(crate) fn raw(&self) -> Vec<RawFd> {
        self.0.iter().map(|fd| fd.as_fd().as_raw_fd()).collect()
    }

    /// Vectors of `mask` that have fired, cleared.
    fn take(&self, mask: u64) -> u64 {
        let fired = self.of(mask).filter(|(_, eventfd)| drain(*eventfd));
        fired.fold(0, |fired, (vector, _)| fired | 1 << vector)
    }

    fn of(&self, mask: u64) -> impl Iterator<Item = (usize, &EventFd)> {
        self.0.iter().enumerate().filter(move |(vector, _)| mask >> vector & 1 != 0)
    }

    /// Implements [`PciFunction::wait_irq`](crate::PciFunction::wait_irq). `None`: the descriptor `end` has one of
    /// these events, or an error, and no vector of `mask` has fired.
    pub(crate) fn wait(
        &self,
        mask: u64,
        timeout: Duration,
        end: impl AsFd,
        events: PollFlags,
    ) -> Result<Option<u64>> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let fired = self.take(mask);
            if fired != 0 {
                return Ok(Some(fired));
            }
            let mut polled = vec![PollFd::new(end.as_fd(), events)];
            polled.extend(self.of(mask).map(|(_, eventfd)| PollFd::new(eventfd.as_fd(), PollFlags::POLLIN)));
            match poll(&mut polled, timeout_until(deadline)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => {
                    return Err(PciError::Os {
                        what: "waiting for an interrupt".into(),
                        source: errno.into(),
                    });
                }
            }
            let ended = polled[0].any().unwrap_or(true);
            // Vectors that fired before the end are still reported.
            let fired = self.take(mask);
            if fired != 0 {
                return Ok(Some(fired));
            }
            if ended {
                return Ok(None);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(PciError::Timeout(timeout));
            }
        }
    }
}

/// An eventfd that never blocks.
pub(crate) fn eventfd() -> Result<EventFd> {
    EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
        .map_err(|e| PciError::Os { what: "creating an eventfd".into(), source: e.into() })
}

/// Clears an eventfd; whether it had been signalled. Never blocks, even if another process that has the descriptor has made
/// reads of it block.
pub(crate) fn drain(eventfd: impl AsFd) -> bool {
    let mut count = [0u8; 8];
    let chunk = libc::iovec { iov_base: count.as_mut_ptr().cast(), iov_len: count.len() };
    // SAFETY: one buffer of the stated size that outlives the call. Offset -1 means a stream.
    unsafe { libc::preadv2(eventfd.as_fd().as_raw_fd(), &chunk, 1, -1, libc::RWF_NOWAIT) == 8 }
}

/// Time to a deadline in the form `poll` expects, rounded up so that it does not wake early and spin.
pub(crate) fn timeout_until(deadline: Option<Instant>) -> PollTimeout {
    let Some(deadline) = deadline else { return PollTimeout::NONE };
    let left = deadline.saturating_duration_since(Instant::now());
    let millis = left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128);
    PollTimeout::try_from(millis as i32).unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    struct Waiter(EventFds, EventFd);

    impl Waiter {
        fn new(vectors: u16) -> Self {
            Self(EventFds::new(vectors).unwrap(), eventfd().unwrap())
        }

        fn wait(&self, mask: u64, timeout: Duration) -> Result<Option<u64>> {
            self.0.wait(mask, timeout, &self.1, PollFlags::POLLIN)
        }

        fn fire(&self, vector: usize) {
            self.0.0[vector].write(1).unwrap();
        }
    }

    #[test]
    fn vectors_fire_once_and_others_stay_pending() {
        let waiter = Waiter::new(64);
        [0, 3, 3, 63].into_iter().for_each(|vector| waiter.fire(vector));
        assert_eq!(waiter.wait(0b1010, NOW).unwrap(), Some(0b1000));
        assert!(matches!(waiter.wait(0b1010, NOW), Err(PciError::Timeout(NOW))));
        assert_eq!(waiter.wait(u64::MAX, NOW).unwrap(), Some(1 << 63 | 1));
        let begun = Instant::now();
        assert!(waiter.wait(u64::MAX, Duration::from_millis(30)).is_err());
        assert!(begun.elapsed() >= Duration::from_millis(30));
    }

    /// The flag is that of the open file, which whoever has been given a descriptor shares.
    #[test]
    fn a_descriptor_that_another_process_made_blocking_does_not_block() {
        let waiter = Waiter::new(2);
        for eventfd in &waiter.0.0 {
            let flags = nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::empty());
            nix::fcntl::fcntl(eventfd.as_fd().as_raw_fd(), flags).unwrap();
        }
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            done.send(waiter.wait(0b11, NOW).is_err()).unwrap();
            waiter.fire(1);
            done.send(waiter.wait(0b11, NOW).unwrap() == Some(0b10)).unwrap();
        });
        for _ in 0..2 {
            assert_eq!(wait.recv_timeout(Duration::from_secs(60)), Ok(true));
        }
    }

    #[test]
    fn a_waiter_is_woken() {
        let waiter = Waiter::new(2);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| waiter.wait(0b10, Duration::from_secs(60)).unwrap());
            std::thread::sleep(Duration::from_millis(20));
            waiter.fire(0);
            waiter.fire(1);
            assert_eq!(thread.join().unwrap(), Some(0b10));
        });
        assert_eq!(waiter.wait(1, NOW).unwrap(), Some(1));
    }

    #[test]
    fn the_end_comes_after_what_has_fired() {
        let waiter = Waiter::new(1);
        waiter.1.write(1).unwrap();
        waiter.fire(0);
        let wait = || waiter.wait(1, Duration::from_secs(60)).unwrap();
        assert_eq!([wait(), wait(), wait()], [Some(1), None, None]);
    }
}
