// SPDX-License-Identifier: Apache-2.0
//! Rate limit of messages.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::{Level, Metadata};

/// Messages of one source that may be shown in a burst.
const AT_ONCE: u32 = 5;
/// Time after which one more may be shown.
const AGAIN: Duration = Duration::from_secs(5);
/// How many sources with the same place may show as much as they like: there are servers with a thread for each connection, and
/// a client can connect any number of times.
const TOGETHER: u32 = 4;
/// Sources that are remembered, besides those with suppressed messages.
const SOURCES: usize = 256;

/// Lets messages of a source through a few at a time, and counts the others. A source is a place in the program, and a
/// thread (a server has one for its clients); all threads together are limited too.
#[derive(Debug)]
pub(crate) struct Throttle<P = Identifier, T = ThreadId> {
    /// By place, and by thread or for all threads.
    sources: Mutex<HashMap<(P, Option<T>), State>>,
}

impl<P, T> Default for Throttle<P, T> {
    fn default() -> Self {
        Self { sources: Mutex::default() }
    }
}

#[derive(Debug)]
struct State {
    /// Time after which one more message may be shown, at the least.
    step: Duration,
    /// When a full burst may be shown again.
    rested: Instant,
    held_back: Option<Cause>,
}

impl State {
    fn new(step: Duration, now: Instant) -> Self {
        Self { step, rested: now, held_back: None }
    }

    /// [`State::rested`] after one more message; `None` if that is too many.
    fn after_one(&self, now: Instant) -> Option<Instant> {
        let rested = self.rested.max(now) + self.step;
        Some(rested).filter(|rested| *rested <= now + AT_ONCE * AGAIN)
    }

    /// Counts a message that is not shown: `false`.
    fn hold_back(&mut self, cause: impl FnOnce() -> Cause) -> bool {
        self.held_back.get_or_insert_with(cause).count += 1;
        false
    }
}

/// The suppressed messages of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    level: Level,
    target: &'static str,
    message: String,
    count: u64,
}

impl Cause {
    /// None yet, like `message`.
    pub fn new(metadata: &'static Metadata<'static>, message: String) -> Self {
        Self { level: *metadata.level(), target: metadata.target(), message, count: 0 }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, target, message, count } = self;
        write!(f, "{level:>5} {target}: {count} more like \"{message}\" were not shown")
    }
}

impl<P: Hash + Eq + Clone, T: Hash + Eq> Throttle<P, T> {
    /// Whether a message of this place and thread may be shown now; `cause` describes it if not.
    pub fn passes(&self, place: P, thread: T, now: Instant, cause: impl FnOnce() -> Cause) -> bool {
        let mut sources = self.lock();
        if sources.len() >= SOURCES {
            sources.retain(|_, state| state.rested > now || state.held_back.is_some());
        }
        let all = sources.entry((place.clone(), None)).or_insert(State::new(AGAIN / TOGETHER, now));
        let Some(all_rested) = all.after_one(now) else { return all.hold_back(cause) };
        let one = sources.entry((place.clone(), Some(thread))).or_insert(State::new(AGAIN, now));
        let Some(one_rested) = one.after_one(now) else { return one.hold_back(cause) };
        one.rested = one_rested;
        // What one thread may not show does not count for all.
        sources.entry((place, None)).and_modify(|all| all.rested = all_rested);
        true
    }

    /// Takes the counts of suppressed messages, of sources that may show messages again at `now`, or of all if `None`.
    pub fn held_back(&self, now: Option<Instant>) -> Vec<Cause> {
        let mut sources = self.lock();
        let free = |state: &State| now.is_none_or(|now| state.after_one(now).is_some());
        sources.values_mut().filter(|state| free(state)).filter_map(|state| state.held_back.take()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(P, Option<T>), State>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause() -> Cause {
        Cause { level: Level::WARN, target: "server", message: "refused".into(), count: 0 }
    }

    /// How many of some messages of one place pass.
    fn passed(throttle: &Throttle<(), u32>, thread: u32, now: Instant, times: usize) -> usize {
        (0..times).filter(|_| throttle.passes((), thread, now, cause)).count()
    }

    #[test]
    fn a_flood_is_held_back_and_counted() {
        let throttle = Throttle::default();
        let begin = Instant::now();
        assert_eq!(passed(&throttle, 1, begin, 1000), 5);
        assert_eq!(passed(&throttle, 2, begin, 3), 3, "another source");
        assert_eq!(throttle.held_back(Some(begin)), []);
        assert_eq!(passed(&throttle, 1, begin + AGAIN - Duration::from_millis(1), 1000), 0);
        let later = begin + AGAIN;
        let held_back = throttle.held_back(Some(later));
        assert_eq!(held_back.len(), 1);
        assert_eq!(held_back[0].to_string(), " WARN server: 1995 more like \"refused\" were not shown");
        assert_eq!(throttle.held_back(Some(later)), [], "reported once");
        assert_eq!(passed(&throttle, 1, later, 1000), 1);
        assert_eq!(throttle.held_back(None)[0].count, 999);
        // After a pause the full burst is allowed again.
        assert_eq!(passed(&throttle, 1, later + 100 * AGAIN, 1000), 5);
    }

    /// A server with a thread for each connection, and a client that connects again and again.
    #[test]
    fn a_flood_from_many_threads_is_held_back_too() {
        let throttle = Throttle::default();
        let begin = Instant::now();
        let flood =
            |from: u32, now| (from..from + 10_000).map(|t| passed(&throttle, t, now, 2)).sum::<usize>();
        assert_eq!(flood(0, begin), 20);
        assert_eq!(flood(10_000, begin + AGAIN), 4);
        assert!(throttle.lock().len() < 100);
        let held_back: u64 = throttle.held_back(None).iter().map(|cause| cause.count).sum();
        assert_eq!(held_back, 40_000 - 24);
        // Another place is not affected.
        let places: Throttle<u32, u32> = Throttle::default();
        assert_eq!((0..100).filter(|t| places.passes(1, *t, begin, cause)).count(), 20);
        assert!(places.passes(2, 1, begin, cause));
    }

    /// One that has nothing more to show takes nothing from the others.
    #[test]
    fn a_flood_from_one_thread_does_not_hold_back_others() {
        let throttle = Throttle::default();
        let begin = Instant::now();
        assert_eq!(passed(&throttle, 1, begin, 10_000), 5);
        assert_eq!(passed(&throttle, 2, begin, 5), 5);
        assert_eq!(passed(&throttle, 1, begin + AGAIN, 10_000), 1);
        assert_eq!(passed(&throttle, 3, begin + AGAIN, 5), 5);
    }

    #[test]
    fn sources_are_forgotten() {
        let throttle = Throttle::default();
        let begin = Instant::now();
        for (round, source) in (0..10_000).enumerate() {
            throttle.passes((), source, begin + AGAIN * 10 * round as u32, cause);
        }
        assert!(throttle.lock().len() <= SOURCES);
    }
}
