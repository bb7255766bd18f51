// SPDX-License-Identifier: Apache-2.0
//! Connections whose first message has not been answered yet. One that says nothing takes a place here and nobody's turn.

use super::link::{Incoming, Link, Message};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Most connections here.
const PLACES: usize = 128;
/// For so long a connection keeps its place though others wait for one: clients send their first message at once.
const GRACE: Duration = Duration::from_millis(100);

pub(super) struct Lobby {
    /// Whose first message is not complete, in the order of their arrival.
    silent: VecDeque<Silent>,
    /// Whose first message is, in that order.
    callers: VecDeque<Caller>,
    /// Longest time for the first message, and for the wait after it.
    patience: Duration,
    busy_time: Duration,
}

struct Silent {
    link: Link,
    since: Instant,
    incoming: Incoming,
}

/// A connection that waits for a response.
pub(super) struct Caller {
    pub link: Link,
    pub first: Message,
    since: Instant,
}

impl Lobby {
    pub fn new(patience: Duration, busy_time: Duration) -> Self {
        Self { silent: VecDeque::new(), callers: VecDeque::new(), patience, busy_time }
    }

    /// Descriptors that are readable when somebody says something, or leaves.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.silent.iter().map(|silent| silent.link.fd())
    }

    /// When there is something to do though nobody says anything; `None`: never.
    pub fn wakes(&self) -> Option<Instant> {
        let grace = if self.is_full() { GRACE.min(self.patience) } else { self.patience };
        let closes = self.silent.front().and_then(|silent| silent.since.checked_add(grace));
        let refuses = self.callers.front().and_then(|caller| caller.since.checked_add(self.busy_time));
        closes.into_iter().chain(refuses).min()
    }

    /// Hears what has come, and closes connections that have been silent for too long, or whose place is wanted.
    pub fn listen(&mut self, now: Instant) {
        for mut silent in std::mem::take(&mut self.silent) {
            match silent.link.take(&mut silent.incoming) {
                Ok(Some(first)) => self.callers.push_back(Caller { link: silent.link, first, since: now }),
                Ok(None) if now.duration_since(silent.since) < self.patience => {
                    // A first message has no descriptors; that it has one suffices to refuse it.
                    silent.incoming.fds.truncate(1);
                    self.silent.push_back(silent);
                }
                Ok(None) => tracing::debug!("a client is disconnected: it said nothing"),
                Err(why) => tracing::debug!(%why, "a client ended before it was served"),
            }
        }
        if self.is_full() {
            self.close_oldest(now);
        }
    }

    /// Closes the connection that has been silent for longest; `false` if none has been for long enough.
    pub fn close_oldest(&mut self, now: Instant) -> bool {
        let old = self.silent.front().is_some_and(|oldest| now.duration_since(oldest.since) >= GRACE);
        if old {
            self.silent.pop_front();
            tracing::debug!("a client is disconnected: it said nothing, and others want its place");
        }
        old
    }

    pub fn is_full(&self) -> bool {
        self.silent.len() + self.callers.len() >= PLACES
    }

    pub fn admit(&mut self, link: Link, now: Instant) {
        self.silent.push_back(Silent { link, since: now, incoming: Incoming::default() });
    }

    /// Who is next.
    pub fn next(&mut self) -> Option<Caller> {
        self.callers.pop_front()
    }

    /// Who has waited for too long, or takes the place of somebody who might be served before.
    pub fn overdue(&mut self, now: Instant) -> Option<Caller> {
        let caller = self.callers.front()?;
        let crowded = self.is_full() && self.silent.is_empty();
        (crowded || now.duration_since(caller.since) >= self.busy_time).then(|| self.next()).flatten()
    }
}
