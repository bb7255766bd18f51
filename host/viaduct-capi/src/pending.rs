// SPDX-License-Identifier: Apache-2.0
//! What goes on while the program does something else, and one thread that waits for several slots.

use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::Awaited;

use crate::args;
use crate::error::{Code, Failure, Result, call, caught, fail, posix};
use crate::handle::{Handle, Table, lock};
use crate::slot::{Kind, SLOTS, Slot, Taken};

/// `viaduct_awaited`; its size is checked here and, from C, by `tests/c/abi.c`.
#[repr(C)]
pub struct Listed {
    slot: Handle<Slot>,
    irqs: u64,
}
const _: () = assert!(size_of::<Listed>() == 16);

/// An operation or run that was begun. Its slot stays open until it has been waited for.
pub struct Pending {
    operation: host::Pending,
    failed: Failed,
    _slot: Arc<Slot>,
}

/// How a run has failed.
pub(crate) type Failed = Arc<Mutex<Option<Failure>>>;

/// All that was begun and not waited for.
static PENDING: Table<Pending> = Table::new("operation");

/// What the program lends to a run that goes on.
pub(crate) struct Lent<T>(pub T);

// SAFETY: made for pointers into memory of the program, which promises that only the library uses it until the end of the run is told
// (see the header): which thread of the library that is makes no difference.
unsafe impl<T> Send for Lent<T> {}

impl<T: Copy> Lent<T> {
    /// What was lent. A closure that calls this captures the whole, and not its parts, which are not `Send`.
    pub fn get(&self) -> T {
        self.0
    }
}

/// Gives the program a handle for what `begin` has begun.
///
/// # Safety
/// `pending` is NULL or an exclusive location for a handle.
pub(crate) unsafe fn begun(
    slot: Handle<Slot>,
    pending: *mut Handle<Pending>,
    begin: impl FnOnce(&Arc<Slot>, &Failed) -> Result<host::Pending>,
) -> c_int {
    posix(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the caller promises the same.
        let place = unsafe { args::result(pending, "pending")? };
        let failed = Failed::default();
        let operation = begin(&slot, &failed)?;
        place.write(PENDING.insert(Pending { operation, failed, _slot: slot }));
        Ok(())
    })
}

/// Begins a run on a thread of its own. The slot is taken when this returns, so that no later run gets ahead.
///
/// # Safety
/// `pending` is NULL or an exclusive location for a handle.
pub(crate) unsafe fn begun_run(
    slot: Handle<Slot>,
    kind: Kind,
    pending: *mut Handle<Pending>,
    run: impl FnOnce(&Slot) -> Result<()> + Send + 'static,
) -> c_int {
    let begin = |slot: &Arc<Slot>, failed: &Failed| {
        let (taken, failed) = (Taken::new(Arc::clone(slot), kind)?, Arc::clone(failed));
        Ok(host::Pending::spawn(move || {
            *lock(&failed) = caught(|| run(&taken.slot)).err();
            // The next run may begin before the end of this one is told.
            drop(taken);
            Ok(())
        })?)
    };
    // SAFETY: the caller promises the same.
    unsafe { begun(slot, pending, begin) }
}

fn milliseconds(limit: u32) -> Duration {
    match limit {
        u32::MAX => Duration::MAX,
        ms => Duration::from_millis(ms.into()),
    }
}

fn timed_out<T>(what: &str) -> Result<T> {
    Err(Failure::new(Code::Argument, what).with_errno(libc::ETIMEDOUT))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_wait(pending: Handle<Pending>, timeout_ms: u32) -> c_int {
    posix(|| {
        let waiting = PENDING.get(pending)?;
        match waiting.operation.wait(milliseconds(timeout_ms)) {
            None => timed_out("the operation is still under way"),
            Some(result) => {
                let failure = lock(&waiting.failed).take();
                drop(waiting);
                // Another thread that waits for it as well has the handle a moment longer, and closes it.
                let _ = PENDING.remove(pending);
                result?;
                failure.map_or(Ok(()), Err)
            }
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_pending_fd(pending: Handle<Pending>) -> c_int {
    let mut fd = -1;
    posix(|| {
        fd = PENDING.get(pending)?.operation.descriptor()?.as_raw_fd();
        Ok(())
    });
    fd
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_get_irqs(slot: Handle<Slot>, irqs: *mut u64) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        unsafe { args::result(irqs, "irqs")? }.write(slot.slot.irqs());
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_wait_for_one(slots: *const Listed, count: usize, timeout_ms: u32) -> c_int {
    let mut place = -1;
    posix(|| {
        // SAFETY: the program gives what the header says: `count` entries that stay as they are during the call.
        let listed = unsafe { args::list(slots, count, "slots")? };
        if listed.is_empty() {
            return fail(Code::Argument, "no slot is listed; give at least one");
        }
        let open = listed.iter().map(|one| SLOTS.get(one.slot)).collect::<Result<Vec<_>>>()?;
        let awaited: Vec<_> =
            open.iter().zip(listed).map(|(slot, one)| (&slot.slot, Awaited::Irq(one.irqs))).collect();
        match host::wait_for_one(&awaited, milliseconds(timeout_ms))? {
            Some(found) => {
                place = found as c_int;
                Ok(())
            }
            None => timed_out("no app of these slots has raised its interrupt"),
        }
    });
    place
}
