// SPDX-License-Identifier: Apache-2.0
//! Operations of a slot that go on while the program does something else. They run one after the other on a thread that exists only
//! while there are any.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::card::sync::{block_signals, lock};
use crate::error::{Error, Result};

/// Most operations of a slot that are under way.
const MOST: usize = 64;

type Work = Box<dyn FnOnce() -> Result<()> + Send>;

/// The operations of a slot that are under way.
#[derive(Default)]
pub(crate) struct Worker(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Work, Promise)>,
    running: bool,
}

impl Worker {
    /// Runs `work` after all that was begun before.
    pub fn begin(&self, work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<Pending> {
        let pending = Pending(Arc::default());
        let promise = Promise(Arc::clone(&pending.0));
        let mut queue = lock(&self.0);
        if queue.waiting.len() >= MOST {
            return Err(Error::TooMany { count: MOST });
        }
        queue.waiting.push_back((Box::new(work), promise));
        if !std::mem::replace(&mut queue.running, true) {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("viaduct-slot".into());
            if let Err(error) = thread.spawn(move || run(&shared)) {
                queue.running = false;
                queue.waiting.pop_back();
                return Err(Error::Invalid(format!("no thread can be started: {error}")));
            }
        }
        Ok(pending)
    }
}

fn run(queue: &Mutex<Queue>) {
    block_signals();
    loop {
        let next = {
            let mut queue = lock(queue);
            let next = queue.waiting.pop_front();
            queue.running = next.is_some();
            next
        };
        // Whatever the work holds is dropped before its end is told.
        let Some((work, promise)) = next else { return };
        // After a panic the promise is dropped, which tells of it; operations behind this one go on.
        if let Ok(result) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            promise.keep(result);
        }
    }
}

/// An operation that was begun ([`Slot::begin`](crate::Slot::begin), [`Pending::spawn`]). It goes on if this is dropped. As a future it
/// yields the result.
pub struct Pending(Arc<Outcome>);

#[derive(Default)]
struct Outcome {
    state: Mutex<State>,
    done: Condvar,
    /// Readable once it has ended; made on request.
    event: OnceLock<EventFd>,
}

#[derive(Default)]
struct State {
    ended: bool,
    result: Option<Result<()>>,
    waker: Option<Waker>,
}

impl Pending {
    /// Begins work on a thread of its own, and not behind the operations of a slot: a run of a job, for example.
    pub fn spawn(work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<Self> {
        Worker::default().begin(work)
    }

    /// A descriptor that is readable once it has ended, for `poll` and its like. It is not to be read.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        let state = lock(&self.0.state);
        if let Some(event) = self.0.event.get() {
            return Ok(event.as_fd());
        }
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|e| Error::file("a descriptor for an operation", "create it", e.into()))?;
        let event = self.0.event.get_or_init(|| event);
        if state.ended {
            signal(event);
        }
        Ok(event.as_fd())
    }

    /// Whether it has ended.
    pub fn is_done(&self) -> bool {
        lock(&self.0.state).ended
    }

    /// Waits for its end, at most for `limit`. The result; `None` if it goes on. The result is given once, then `Ok`.
    pub fn wait(&self, limit: Duration) -> Option<Result<()>> {
        let end = Instant::now().checked_add(limit);
        let mut state = lock(&self.0.state);
        while !state.ended {
            let left = match end {
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() {
                return None;
            }
            state = self.0.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(state.result.take().unwrap_or(Ok(())))
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("done", &self.is_done()).finish()
    }
}

impl Future for Pending {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = lock(&self.0.state);
        if state.ended {
            return Poll::Ready(state.result.take().unwrap_or(Ok(())));
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

fn signal(event: &EventFd) {
    // It is written once, so that its counter has room.
    let _ = event.write(1);
}

/// The worker's side: it is kept in any case.
struct Promise(Arc<Outcome>);

impl Promise {
    fn keep(self, result: Result<()>) {
        self.end(result);
    }

    fn end(&self, result: Result<()>) {
        let waker = {
            let mut state = lock(&self.0.state);
            if std::mem::replace(&mut state.ended, true) {
                return;
            }
            state.result = Some(result);
            self.0.done.notify_all();
            self.0.event.get().map(signal);
            state.waker.take()
        };
        // It may poll at once.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.end(Err(Error::Invalid("the operation has ended with an internal error".into())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::sync::mpsc;

    #[test]
    fn work_is_done_in_order_and_its_end_is_told() {
        let worker = Worker::default();
        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let other = tell.clone();
        let first = worker.begin(move || {
            wait.recv().unwrap();
            tell.send(1).unwrap();
            Ok(())
        });
        let second = worker.begin(move || {
            other.send(2).unwrap();
            Err(Error::Stopped)
        });
        let (first, second) = (first.unwrap(), second.unwrap());
        assert!(!first.is_done() && first.wait(Duration::from_millis(1)).is_none());
        go.send(()).unwrap();
        assert!(matches!(second.wait(Duration::MAX), Some(Err(Error::Stopped))));
        assert!(matches!(first.wait(Duration::ZERO), Some(Ok(()))));
        assert_eq!(told.iter().take(2).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_descriptor_is_readable_once_the_work_has_ended() {
        let readable = |pending: &Pending, limit: u8| {
            let fd = pending.descriptor().unwrap();
            poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::from(limit)).unwrap() == 1
        };
        let (go, wait) = mpsc::channel::<()>();
        let pending = Pending::spawn(move || {
            wait.recv().unwrap();
            Ok(())
        });
        let pending = pending.unwrap();
        assert!(!readable(&pending, 1));
        go.send(()).unwrap();
        assert!(readable(&pending, 255) && pending.is_done() && readable(&pending, 0));
        let ended = Pending::spawn(|| Ok(())).unwrap();
        assert!(ended.wait(Duration::MAX).unwrap().is_ok() && readable(&ended, 0));
    }

    #[test]
    fn a_queue_is_bounded_and_a_panic_is_an_error() {
        let worker = Worker::default();
        let (go, wait) = mpsc::channel::<()>();
        let first = worker.begin(move || {
            let _ = wait.recv();
            Ok(())
        });
        // The worker may have taken the first one.
        let more: Vec<_> = (0..=MOST).map(|_| worker.begin(|| Ok(()))).collect();
        assert!(matches!(more[MOST], Err(Error::TooMany { count: MOST })));
        go.send(()).unwrap();
        assert!(first.unwrap().wait(Duration::MAX).unwrap().is_ok());
        let worker = Worker::default();
        let broken = worker.begin(|| panic!("on purpose")).unwrap();
        assert!(broken.wait(Duration::MAX).unwrap().is_err());
    }
}
