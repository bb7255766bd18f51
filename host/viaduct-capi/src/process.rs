// SPDX-License-Identifier: Apache-2.0
//! Values that exist once per process: a child of `fork()` has its own, initially empty.
//!
//! The inherited values are not used: threads that do not exist in the child may have held their locks.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use viaduct_pci::Process;

/// A value that each process creates on first use.
pub(crate) struct PerProcess<T: 'static> {
    current: AtomicPtr<Entry<T>>,
    make: fn() -> T,
}

struct Entry<T> {
    process: Process,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// `make` creates the value.
    pub const fn new(make: fn() -> T) -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()), make }
    }

    /// The value of this process.
    pub fn get(&self) -> &T {
        let mut current = self.current.load(Ordering::Acquire);
        let process = Process::current();
        loop {
            // SAFETY: NULL, or an entry that was leaked below: it is never freed, and only shared references to it exist.
            match unsafe { current.as_ref() } {
                Some(entry) if entry.process == process => return &entry.value,
                _ => {}
            }
            let new = Box::into_raw(Box::new(Entry { process, value: (self.make)() }));
            match self.current.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => current = new,
                Err(other) => {
                    // SAFETY: created above, and not shared.
                    drop(unsafe { Box::from_raw(new) });
                    current = other;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_share_one_value() {
        static COUNT: PerProcess<std::sync::Mutex<u32>> = PerProcess::new(|| std::sync::Mutex::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| *COUNT.get().lock().unwrap() += 1);
            }
        });
        assert_eq!(*COUNT.get().lock().unwrap(), 4);
    }
}
