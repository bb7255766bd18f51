// SPDX-License-Identifier: Apache-2.0
//! How many parts the mappings of a slot are in. Operations on a part of a mapping cut it, and each part costs the daemon memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use crate::account::{Account, Charge};
use crate::wire::Refusal;

/// What a mapping holds while any part of it exists: its source keeps it.
#[derive(Debug)]
pub(crate) struct Held {
    pub _mapping: Charge,
    pub _descriptor: Option<Charge>,
    pub _memory: Option<Charge>,
}

/// The mappings of a slot, and where they were cut.
#[derive(Debug, Default)]
pub(crate) struct Book(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    range: Range<u64>,
    held: Weak<Held>,
    cuts: BTreeMap<u64, Charge>,
}

impl Book {
    /// Enters a mapping.
    pub fn enter(&mut self, range: Range<u64>, held: &Arc<Held>) {
        self.clean();
        self.0.push(Entry { range, held: Arc::downgrade(held), cuts: BTreeMap::new() });
    }

    /// Charges for the cuts that an operation on a range makes, before it is done. The same cut counts once.
    pub fn cut(&mut self, range: &Range<u64>, parts: &Arc<Account>) -> Result<(), Refusal> {
        self.clean();
        for at in [range.start, range.end] {
            for entry in &mut self.0 {
                if at > entry.range.start && at < entry.range.end && !entry.cuts.contains_key(&at) {
                    entry.cuts.insert(at, parts.charge(1)?);
                }
            }
        }
        Ok(())
    }

    /// Forgets mappings that do not exist any more.
    pub fn clean(&mut self) {
        self.0.retain(|entry| entry.held.strong_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_count_until_the_last_is_gone() {
        let parts = Account::new("mappings", 4, 12);
        let mut book = Book::default();
        let one = |parts: &Arc<Account>| {
            let _mapping = parts.charge(1).unwrap();
            Arc::new(Held { _mapping, _descriptor: None, _memory: None })
        };
        let held = one(&parts);
        book.enter(0..100, &held);
        for _ in 0..3 {
            book.cut(&(10..20), &parts).unwrap();
            book.cut(&(0..100), &parts).unwrap();
            book.cut(&(100..200), &parts).unwrap();
        }
        book.cut(&(10..30), &parts).unwrap();
        assert!(book.cut(&(40..100), &parts).is_err());
        drop(held);
        book.clean();
        assert!(parts.charge(4).is_ok());
    }
}
