// SPDX-License-Identifier: Apache-2.0
//! Handles: numbers that are looked up, never followed, so that a wrong one is an error and not a crash.

use std::collections::BTreeMap;
use std::marker::{PhantomData, PhantomPinned};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Code, Result, fail};
use crate::numbers::{FIRST, NEXT};
use crate::process::PerProcess;

/// Nominal target of the header's handle types; never dereferenced.
#[repr(C)]
pub struct Opaque<T> {
    _nothing: [u8; 0],
    _kind: PhantomData<(*mut T, PhantomPinned)>,
}

/// A handle as it crosses the boundary.
pub(crate) type Handle<T> = *mut Opaque<T>;

/// All open objects of a kind.
pub(crate) struct Table<T: 'static> {
    kind: &'static str,
    open: PerProcess<Open<T>>,
}

type Open<T> = Mutex<BTreeMap<usize, Arc<T>>>;

impl<T: Send + Sync + 'static> Table<T> {
    /// An empty table; `kind` names its objects in errors.
    pub const fn new(kind: &'static str) -> Self {
        Self { kind, open: PerProcess::new(Mutex::default) }
    }

    /// Adds an object and returns its handle.
    pub fn insert(&self, object: T) -> Handle<T> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        lock(self.open.get()).insert(number, Arc::new(object));
        std::ptr::without_provenance_mut(number)
    }

    /// The object of a handle. It stays open while the caller holds it.
    pub fn get(&self, handle: Handle<T>) -> Result<Arc<T>> {
        match lock(self.open.get()).get(&handle.addr()) {
            Some(object) => Ok(Arc::clone(object)),
            None => self.unknown(handle),
        }
    }

    /// Removes an object unless a caller holds it.
    pub fn remove(&self, handle: Handle<T>) -> Result<T> {
        let mut open = lock(self.open.get());
        let Some(object) = open.remove(&handle.addr()) else {
            return self.unknown(handle);
        };
        // New references come from this table, which is locked: a count of one cannot change here.
        Arc::try_unwrap(object).or_else(|object| {
            open.insert(handle.addr(), object);
            let kind = self.kind;
            fail(
                Code::Busy,
                format!("this {kind} is in use: close what was opened on it, and let calls on it end"),
            )
        })
    }

    fn unknown<U>(&self, handle: Handle<T>) -> Result<U> {
        let kind = self.kind;
        match handle.is_null() {
            true => fail(Code::Handle, format!("the handle of the {kind} is NULL; open one first")),
            false if handle.addr() < *FIRST.get() => fail(
                Code::Handle,
                format!(
                    "this {kind} was opened before fork(), and is the parent's: open one in this process"
                ),
            ),
            false => fail(
                Code::Handle,
                format!("this is not the handle of an open {kind}: it was closed, or is something else"),
            ),
        }
    }
}

/// Locks; a poisoned lock is safe to use, since no invariant spans a panic in this library.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_handles_of_the_right_kind_are_taken() {
        let (words, numbers) = (Table::new("word"), Table::<u32>::new("number"));
        let word = words.insert("x".to_owned());
        assert_eq!(*words.get(word).unwrap(), "x");
        assert!(numbers.get(word.cast()).is_err());
        assert!(words.get(std::ptr::null_mut()).is_err());
        let held = words.get(word).unwrap();
        assert!(words.remove(word).is_err());
        drop(held);
        assert_eq!(words.remove(word).unwrap(), "x");
        assert!(words.get(word).is_err() && words.remove(word).is_err());
        assert_ne!(words.insert(String::new()), word);
    }
}
