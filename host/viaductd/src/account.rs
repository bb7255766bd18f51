// SPDX-License-Identifier: Apache-2.0
//! What a tenant may have, and what it has.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use viaduct::Schedule;

use crate::wire::{Kind, Refusal};

/// What each tenant may have at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotas {
    /// Slots.
    pub slots: u64,
    /// Bytes of card memory, divided equally among these slots. Pages are evicted to keep to it.
    pub card_memory: u64,
    /// Mappings; one that is cut into parts counts as many.
    pub mappings: u64,
    /// Descriptors that the daemon keeps open for mappings.
    pub descriptors: u64,
    /// Requests that are not answered yet.
    pub requests: u64,
    /// Bytes of this machine's memory: mappings without a file, on the host, or private and written; images while they are loaded.
    pub host_memory: u64,
}

impl Quotas {
    /// The defaults on a card with so many slots and bytes of memory: one slot, and its share of the memory.
    pub fn new(card_slots: usize, card_bytes: u64) -> Self {
        Self {
            slots: 1,
            card_memory: card_bytes / card_slots.max(1) as u64,
            mappings: 64,
            descriptors: 64,
            requests: 16,
            host_memory: 64 << 20,
        }
    }
}

/// Who is served, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What each tenant may have.
    pub quotas: Quotas,
    /// Users that may connect.
    pub uids: Vec<u32>,
    /// Groups that may connect: those that a client's process has as its effective one.
    pub gids: Vec<u32>,
    /// Users that may manage the whole card, whether or not they may be tenants; others who may be tenants manage slots of their own.
    pub managers: Vec<u32>,
    /// Connections at a time.
    pub clients: usize,
    /// Of one user.
    pub clients_per_uid: usize,
    /// For the first message of a client, and for a client to take a response.
    pub patience: Duration,
    /// How the slots of a user's clients are scheduled beside those of others ([`viaduct::Slot::set_schedule`]); the default if it is not here.
    pub schedules: HashMap<u32, Schedule>,
    /// Files of file systems that are served by a process (FUSE) may be mapped: it can hold up a slot's release.
    pub allow_fuse: bool,
}

impl Config {
    /// Serves the user of this process; that one and root manage the card.
    pub fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            uids: vec![rustix::process::geteuid().as_raw()],
            gids: Vec::new(),
            managers: vec![0, rustix::process::geteuid().as_raw()],
            clients: 32,
            clients_per_uid: 8,
            patience: Duration::from_secs(10),
            schedules: HashMap::new(),
            allow_fuse: false,
        }
    }
}

/// How much of one thing is in use.
#[derive(Debug)]
pub(crate) struct Account {
    what: &'static str,
    errno: i32,
    limit: u64,
    used: AtomicU64,
}

/// A part of an account, given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Arc<Account>,
    amount: u64,
}

impl Account {
    /// Nothing is in use. `what` is for messages; more than `limit` is the error `errno`.
    pub fn new(what: &'static str, limit: u64, errno: i32) -> Arc<Self> {
        Arc::new(Self { what, errno, limit, used: AtomicU64::new(0) })
    }

    /// Takes `amount`, or nothing.
    pub fn charge(self: &Arc<Self>, amount: u64) -> Result<Charge, Refusal> {
        let more = |used: u64| used.checked_add(amount).filter(|&sum| sum <= self.limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Charge { account: Arc::clone(self), amount }),
            Err(used) => {
                let (limit, what) = (self.limit, self.what);
                let text = format!(
                    "quota: {amount} more would exceed the {limit} {what} of a client ({used} in use); release some, \
                     or ask the owner of the daemon for more"
                );
                Err(Refusal::new(Kind::Quota, self.errno, text))
            }
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.used.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_gives_no_more_than_its_limit() {
        let account = Account::new("things", 3, 11);
        let two = account.charge(2).unwrap();
        let refused = account.charge(2).unwrap_err();
        assert_eq!((refused.kind, refused.errno), (Kind::Quota, 11));
        assert!(account.charge(u64::MAX).is_err());
        let _one = account.charge(1).unwrap();
        assert!(account.charge(1).is_err());
        drop(two);
        assert!(account.charge(2).is_ok());
    }
}
