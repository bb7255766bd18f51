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
/// Sources that are remembered, besides those with suppressed messages.
const SOURCES: usize = 256;

/// Source of a message: the location in the program, and the thread (a server has one for its clients).
pub(crate) type Source = (Identifier, ThreadId);

/// Lets messages of a source through a few at a time, and counts the others.
#[derive(Debug)]
pub(crate) struct Throttle<K = Source> {
    sources: Mutex<HashMap<K, State>>,
}

impl<K> Default for Throttle<K> {
    fn default() -> Self {
        Self { sources: Mutex::default() }
    }
}

#[derive(Debug)]
struct State {
    /// When a full burst of [`AT_ONCE`] may be shown again.
    rested: Instant,
    held_back: Option<Cause>,
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

impl<K: Hash + Eq> Throttle<K> {
    /// Whether a message of this source may be shown now; `cause` describes it if not.
    pub fn passes(&self, source: K, now: Instant, cause: impl FnOnce() -> Cause) -> bool {
        let mut sources = self.lock();
        if sources.len() >= SOURCES {
            sources.retain(|_, state| state.rested > now || state.held_back.is_some());
        }
        let state = sources.entry(source).or_insert(State { rested: now, held_back: None });
        let rested = state.rested.max(now) + AGAIN;
        if rested <= now + AT_ONCE * AGAIN {
            state.rested = rested;
            return true;
        }
        state.held_back.get_or_insert_with(cause).count += 1;
        false
    }

    /// Takes the counts of suppressed messages, of sources that may show messages again at `now`, or of all if `None`.
    pub fn held_back(&self, now: Option<Instant>) -> Vec<Cause> {
        let mut sources = self.lock();
        let free =
            |state: &State| now.is_none_or(|now| state.rested.max(now) + AGAIN <= now + AT_ONCE * AGAIN);
        sources.values_mut().filter(|state| free(state)).filter_map(|state| state.held_back.take()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, State>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause() -> Cause {
        Cause { level: Level::WARN, target: "server", message: "refused".into(), count: 0 }
    }

    fn passed(throttle: &Throttle<u32>, source: u32, now: Instant, times: usize) -> usize {
        (0..times).filter(|_| throttle.passes(source, now, cause)).count()
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

    #[test]
    fn sources_are_forgotten() {
        let throttle = Throttle::default();
        let begin = Instant::now();
        for (round, source) in (0..10_000).enumerate() {
            throttle.passes(source, begin + AGAIN * 10 * round as u32, cause);
        }
        assert!(throttle.lock().len() <= SOURCES);
    }
}
