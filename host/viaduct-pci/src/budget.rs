// SPDX-License-Identifier: Apache-2.0
//! Divides the resource limits of this process among the clients of its servers.
//!
//! Half of each limit is reserved for the servers in equal shares, one share for the client of each; the other half is
//! given out first come, first served. A client that takes all it can get therefore leaves every other client its share,
//! and the process what it needs itself. Threads are not counted: a server creates all of its threads when it starts.

use nix::errno::Errno;
use nix::sys::resource::{Resource as Limited, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Number of servers for which shares are reserved, unless there are more: as many as a card has functions.
const SEATS: u64 = 8;
/// Descriptors that a server needs for its socket, its client, and those in transit in a message.
const DESCRIPTORS_A_SERVER: u64 = 48;
/// Bytes of address space a process has on 64-bit machines.
const ADDRESS_SPACE: u64 = 1 << 47;

/// A resource of which a process has a limited amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    /// Mappings of memory.
    Maps,
    /// File descriptors.
    Descriptors,
    /// Bytes of address space.
    Addresses,
}

/// The most that all clients of a process together may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Mappings of memory.
    pub maps: u64,
    /// File descriptors.
    pub descriptors: u64,
    /// Bytes of address space.
    pub addresses: u64,
}

impl Limits {
    /// The limits of this process (`vm.max_map_count`, those of descriptors and of address space), less what it
    /// uses now and a reserve for itself.
    pub fn of_process() -> Self {
        let number = |path: &str| std::fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok();
        let limit = |what| getrlimit(what).map_or(u64::MAX, |(soft, _hard)| soft);
        let in_use = |path: &str| std::fs::read_dir(path).map_or(0, |entries| entries.count() as u64);

        let maps: u64 = number("/proc/sys/vm/max_map_count").unwrap_or(65530);
        let maps_now =
            std::fs::read_to_string("/proc/self/maps").map_or(0, |text| text.lines().count() as u64);
        let descriptors = limit(Limited::RLIMIT_NOFILE);
        let addresses = limit(Limited::RLIMIT_AS).min(ADDRESS_SPACE);
        let addresses_now = number("/proc/self/statm").unwrap_or(0u64) * crate::page::PAGE_SIZE as u64;
        Self {
            maps: maps.saturating_sub(maps_now + (maps / 8).max(1024)),
            descriptors: descriptors
                .saturating_sub(in_use("/proc/self/fd") + 64 + SEATS * DESCRIPTORS_A_SERVER),
            addresses: addresses.saturating_sub(addresses_now + addresses / 8),
        }
    }

    fn of(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Maps => self.maps,
            Resource::Descriptors => self.descriptors,
            Resource::Addresses => self.addresses,
        }
    }
}

/// Raises this process's soft limit of descriptors as far as the hard limit allows, up to 65536: for programs that serve
/// functions, to be called before the first. Every file of a client and every interrupt needs one.
pub fn raise_descriptor_limit() {
    const ENOUGH: u64 = 65536;
    let Ok((soft, hard)) = getrlimit(Limited::RLIMIT_NOFILE) else { return };
    if soft < hard.min(ENOUGH) {
        if let Err(error) = setrlimit(Limited::RLIMIT_NOFILE, hard.min(ENOUGH), hard) {
            tracing::debug!(%error, soft, hard, "the limit of descriptors cannot be raised");
        }
    }
}

/// Divides [`Limits`] among servers.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// By server: mappings, descriptors, bytes.
    by: BTreeMap<u64, [u64; 3]>,
}

impl Budget {
    /// Divides these limits.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// The budget of this process, from its limits at the time of the first call.
    pub fn of_process() -> Arc<Self> {
        static BUDGET: OnceLock<Arc<Budget>> = OnceLock::new();
        Arc::clone(BUDGET.get_or_init(|| Self::new(Limits::of_process())))
    }

    /// A share for one server.
    pub(crate) fn join(self: &Arc<Self>) -> Arc<Share> {
        let mut taken = self.lock();
        let id = taken.next;
        taken.next += 1;
        taken.by.insert(id, [0; 3]);
        Arc::new(Share { budget: Arc::clone(self), id })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of the budget that one server may use.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    id: u64,
}

impl Share {
    /// Reserves an amount of a resource until the value is dropped.
    pub(crate) fn take(self: &Arc<Self>, resource: Resource, amount: u64) -> Result<Charge, Exhausted> {
        let limit = self.budget.limits.of(resource);
        let index = resource as usize;
        let mut taken = self.budget.lock();
        let promised = limit / 2 / SEATS.max(taken.by.len() as u64);
        let own = taken.by.get(&self.id).map_or(0, |all| all[index]);
        let others = || taken.by.iter().filter(|(id, _)| **id != self.id).map(|(_, all)| all[index]);
        let beyond: u64 = others().map(|used| used.saturating_sub(promised)).sum();
        let all: u64 = others().sum();
        // Sums of granted amounts are far below overflow; the requested amount may not be.
        let wanted = own.checked_add(amount);
        let granted = wanted.is_some_and(|wanted| {
            wanted.saturating_sub(promised).saturating_add(beyond) <= limit - limit / 2
                && all.saturating_add(wanted) <= limit
        });
        let Some(wanted) = wanted.filter(|_| granted) else {
            return Err(Exhausted { resource, own, limit });
        };
        if let Some(all) = taken.by.get_mut(&self.id) {
            all[index] = wanted;
        }
        Ok(Charge { share: Arc::clone(self), resource, amount })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.lock().by.remove(&self.id);
    }
}

/// A reserved amount. Released when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    share: Arc<Share>,
    resource: Resource,
    amount: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(all) = self.share.budget.lock().by.get_mut(&self.share.id) {
            all[self.resource as usize] -= self.amount;
        }
    }
}

/// A client has requested more than is available to it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing left for this client: it has {own} {}, all clients of the card's process together may have {limit}; {}",
    self.words().0, self.words().1
)]
pub(crate) struct Exhausted {
    resource: Resource,
    own: u64,
    limit: u64,
}

impl Exhausted {
    fn words(&self) -> (&'static str, &'static str) {
        match self.resource {
            Resource::Maps => {
                ("mappings", "map fewer files, or raise vm.max_map_count where the card is served")
            }
            Resource::Descriptors => {
                ("descriptors", "pass fewer, or raise `ulimit -n` where the card is served")
            }
            Resource::Addresses => ("bytes of address space", "map less memory"),
        }
    }

    /// The error number for a reply.
    pub(crate) fn errno(&self) -> Errno {
        match self.resource {
            Resource::Maps | Resource::Descriptors => Errno::ENOSPC,
            Resource::Addresses => Errno::ENOMEM,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Resource::{Addresses, Descriptors, Maps};

    fn budget(maps: u64) -> Arc<Budget> {
        Budget::new(Limits { maps, descriptors: 16, addresses: u64::MAX })
    }

    #[test]
    fn who_takes_all_leaves_the_others_their_share() {
        let budget = budget(160);
        let shares: Vec<_> = (0..8).map(|_| budget.join()).collect();
        let mut held = Vec::new();
        // The first takes its share of 10 and the common half, then every other its share and no more.
        for (share, most) in shares.iter().zip([90, 10, 10, 10, 10, 10, 10, 10]) {
            let before = held.len();
            while let Ok(charge) = share.take(Maps, 1) {
                held.push(charge);
            }
            assert_eq!(held.len() - before, most);
        }
        let error = shares[0].take(Maps, 1).unwrap_err();
        assert!(
            error.to_string().contains("it has 90 mappings") && error.errno() == Errno::ENOSPC,
            "{error}"
        );
        // What is released can be reserved again, within the same rules.
        held.truncate(80);
        assert!(shares[7].take(Maps, 20).is_ok() && shares[7].take(Maps, 21).is_err());
        assert!(shares[3].take(Descriptors, 1).is_ok(), "each resource by itself");
    }

    #[test]
    fn a_server_that_ends_leaves_its_share() {
        let budget = budget(160);
        for _ in 0..100 {
            let share = budget.join();
            let charge = share.take(Maps, 90).unwrap();
            drop(share);
            assert_eq!(budget.lock().by.len(), 1, "its client's memory still counts");
            drop(charge);
            assert!(budget.lock().by.is_empty());
        }
    }

    #[test]
    fn no_amount_overflows() {
        let budget = budget(0);
        let share = budget.join();
        assert!(share.take(Maps, 1).is_err() && share.take(Maps, u64::MAX).is_err());
        assert!(share.take(Maps, 0).is_ok());
        let _some = share.take(Addresses, 5).unwrap();
        assert_eq!(share.take(Addresses, u64::MAX).unwrap_err().errno(), Errno::ENOMEM);
    }

    #[test]
    fn more_servers_than_seats_never_exceed_the_limit() {
        let budget = budget(100);
        let shares: Vec<_> = (0..30).map(|_| budget.join()).collect();
        let charges: Vec<_> =
            shares.iter().flat_map(|share| (0..60).map_while(|_| share.take(Maps, 1).ok())).collect();
        assert!((50..=100).contains(&charges.len()), "{}", charges.len());
    }

    #[test]
    fn the_process_has_limits() {
        let limits = Limits::of_process();
        assert!(limits.maps < 1 << 40 && limits.addresses < ADDRESS_SPACE, "{limits:?}");
    }
}
