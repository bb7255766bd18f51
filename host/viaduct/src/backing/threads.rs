// SPDX-License-Identifier: Apache-2.0
//! Threads that read and write what has to wait for a disk, so that whoever asks for it does not. A few are enough: the disk was told of all
//! reads before ([`Source::will_need`](super::Source::will_need)), so each finds its bytes there or on their way, and the system keeps what is
//! written.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::card::sync::{block_signals, lock};

/// Most threads.
const MOST: usize = 8;
/// A thread without work ends after so long.
const IDLE: Duration = Duration::from_secs(2);

type Work = Box<dyn FnOnce() + Send>;

/// Threads that exist while there is something to do, and for a while after it.
#[derive(Default)]
pub(crate) struct Threads(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Threads {
    /// Has a thread carry work out. If there can be none it is carried out here.
    pub fn begin(&self, work: impl FnOnce() + Send + 'static) {
        let mut queue = lock(&self.0.queue);
        queue.waiting.push_back(Box::new(work));
        if queue.idle >= queue.waiting.len() || queue.threads == MOST {
            self.0.more.notify_one();
            return;
        }
        let shared = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("viaduct-files".into());
        match thread.spawn(move || shared.work()) {
            Ok(_) => queue.threads += 1,
            Err(_) if queue.threads > 0 => self.0.more.notify_one(),
            Err(error) => {
                tracing::warn!(%error, "no thread can be started: files are read and written without one");
                let all = std::mem::take(&mut queue.waiting);
                drop(queue);
                all.into_iter().for_each(|work| work());
            }
        }
    }
}

impl Drop for Threads {
    /// Threads end with what they do now; nobody waits for the rest.
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        queue.closed = true;
        queue.waiting.clear();
        self.0.more.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        block_signals();
        let mut queue = lock(&self.queue);
        loop {
            if let Some(work) = queue.waiting.pop_front() {
                drop(queue);
                // Whoever waits for it is told of a panic by what it has dropped.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                queue = lock(&self.queue);
                continue;
            }
            queue.idle += 1;
            let (woken, timed) = self.more.wait_timeout(queue, IDLE).unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
            if queue.waiting.is_empty() && (queue.closed || timed.timed_out()) {
                queue.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn work_does_not_wait_for_other_work_and_threads_are_few() {
        let threads = Threads::default();
        let (tell, told) = mpsc::channel();
        let holds: Vec<mpsc::Sender<()>> = (0..3 * MOST)
            .map(|n| {
                let (tell, (go, wait)) = (tell.clone(), mpsc::channel());
                threads.begin(move || {
                    wait.recv().unwrap();
                    tell.send(n).unwrap();
                });
                go
            })
            .collect();
        for n in [MOST - 1, 0, 1, MOST, 2] {
            holds[n].send(()).unwrap();
            assert_eq!(told.recv().unwrap(), n);
        }
        assert_eq!(lock(&threads.0.queue).threads, MOST);
        holds.iter().for_each(|go| _ = go.send(()));
        assert_eq!(told.iter().take(3 * MOST - 5).count(), 3 * MOST - 5);
        // One that panics takes no thread with it.
        threads.begin(|| panic!("on purpose"));
        threads.begin(move || tell.send(7).unwrap());
        assert_eq!(told.recv().unwrap(), 7);
    }
}
