// SPDX-License-Identifier: Apache-2.0
//! Mappings with the semantics of POSIX, and runs of apps on them.

use std::ffi::c_int;
use std::fs::File;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::time::Duration;

use host::{Advice, MapOptions, MemoryJob, MemoryRange, Operation, Placement, Prot, Source, SyncMode};

use crate::args;
use crate::error::{Code, Failure, Result, call, fail, posix};
use crate::handle::{Handle, lock};
use crate::pending::{Lent, Pending, begun, begun_run};
use crate::run::{Told, options_and_report};
use crate::slot::{Kind, SLOTS, Slot, Taken};
use crate::types::{self, Pager, Report, RunOptions, Schedule};

const PAGE: u64 = 4096;

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_mmap(
    slot: Handle<Slot>,
    addr: u64,
    length: u64,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> u64 {
    let mut va = types::MAP_FAILED;
    posix(|| {
        let slot = SLOTS.get(slot)?;
        if length == 0 {
            return errno(libc::EINVAL, "length is 0; at least one byte is mapped");
        }
        let Ok(offset) = u64::try_from(offset) else {
            return errno(libc::EINVAL, format!("offset {offset} is negative"));
        };
        let options = options(addr, prot, flags)?.offset(offset).placement(*lock(&slot.placement));
        if offset.checked_add(length).is_none_or(|end| i64::try_from(end).is_err()) {
            let text = format!("{length} bytes from {offset} on are more than a file can have");
            return errno(libc::EOVERFLOW, text);
        }
        let private = flags & libc::MAP_PRIVATE != 0;
        let source = match flags & libc::MAP_ANONYMOUS {
            0 => of_file(fd, prot, private, offset)?,
            _ if offset != 0 => return errno(libc::EINVAL, "an anonymous mapping has no offset"),
            _ => Source::anonymous(length)?,
        };
        let mapping = slot.slot.map(source, length, options)?;
        if flags & libc::MAP_POPULATE != 0 {
            // As for mmap: pages that cannot be loaded now are loaded at the first access, or denied.
            let _ = mapping.advise(Advice::WillNeed);
        }
        va = mapping.leave().start;
        Ok(())
    });
    va
}

fn errno<T>(number: i32, text: impl Into<String>) -> Result<T> {
    Err(Failure::new(Code::Argument, text).with_errno(number))
}

fn options(addr: u64, prot: c_int, flags: c_int) -> Result<MapOptions> {
    use libc::*;
    if prot & !(PROT_READ | PROT_WRITE) != 0 {
        return errno(ENOTSUP, format!("prot is {prot}: an app can read and write"));
    }
    let known = MAP_SHARED
        | MAP_PRIVATE
        | MAP_FIXED
        | MAP_FIXED_NOREPLACE
        | MAP_ANONYMOUS
        | MAP_POPULATE
        | MAP_NORESERVE
        | MAP_HUGETLB
        | types::MAP_SMALL
        | types::MAP_HOST;
    let (huge, small) = (flags & MAP_HUGETLB != 0, flags & types::MAP_SMALL != 0);
    let kinds = flags & (MAP_SHARED | MAP_PRIVATE);
    if flags & !known != 0 || huge && small || kinds != MAP_SHARED && kinds != MAP_PRIVATE {
        let text = format!(
            "flags are {flags:#x}: give MAP_SHARED or MAP_PRIVATE, and others of viaduct_mmap() that do not contradict one another"
        );
        return errno(EINVAL, text);
    }
    let mut options = MapOptions::new(Prot { read: prot & PROT_READ != 0, write: prot & PROT_WRITE != 0 });
    if kinds == MAP_PRIVATE {
        options = options.private();
    }
    if flags & types::MAP_HOST != 0 {
        options = options.on_host();
    }
    if huge || small {
        options = options.huge(huge);
    }
    Ok(match flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) {
        0 if addr == 0 => options,
        0 => options.near(addr),
        MAP_FIXED => options.replacing(addr),
        _ => options.exactly(addr),
    })
}

/// An open file of the program. It stays open for the mapping if the program closes it.
fn of_file(fd: c_int, prot: c_int, private: bool, offset: u64) -> Result<Source> {
    // SAFETY: no memory is passed; the number may be anything.
    let mode = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if fd < 0 || mode < 0 {
        return errno(libc::EBADF, format!("{fd} is not an open descriptor"));
    }
    // SAFETY: it is open, as was just seen; only the program could close it during the call, which the header forbids.
    let copy = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    let file = match copy {
        Ok(copy) => File::from(copy),
        Err(e) => return errno(e.raw_os_error().unwrap_or(libc::EMFILE), format!("descriptor {fd}: {e}")),
    };
    let name = std::fs::read_link(format!("/proc/self/fd/{fd}"))
        .unwrap_or_else(|_| PathBuf::from(format!("descriptor {fd}")));
    let reads = matches!(mode & libc::O_ACCMODE, libc::O_RDONLY | libc::O_RDWR) && mode & libc::O_PATH == 0;
    let writes = mode & libc::O_ACCMODE == libc::O_RDWR;
    if file.metadata().is_ok_and(|meta| meta.file_type().is_fifo() || meta.file_type().is_socket()) {
        return of_stream(file, name, prot, offset);
    }
    let write = prot & libc::PROT_WRITE != 0 && !private;
    // POSIX: also what is only written is open for reading.
    if !reads || write && !writes {
        let what = if reads { "writing" } else { "reading" };
        return Err(host::Error::Access { path: name, what }.into());
    }
    Ok(Source::from_file(file, name, 0, writes)?)
}

/// A pipe or stream socket, which the app reads or writes in order.
fn of_stream(file: File, name: PathBuf, prot: c_int, offset: u64) -> Result<Source> {
    if offset != 0 {
        let text = format!("{}: a stream begins where it is; give offset 0", name.display());
        return errno(libc::ESPIPE, text);
    }
    Ok(match (prot & libc::PROT_READ != 0, prot & libc::PROT_WRITE != 0) {
        (true, true) => {
            let text = format!("{}: a stream is mapped for reading only or for writing only", name.display());
            return errno(libc::EACCES, text);
        }
        (false, true) => Source::sink(file, name)?,
        (_, false) => Source::stream(file, name)?,
    })
}

/// Addresses of whole pages: `length` may end within one.
fn range(addr: u64, length: u64) -> Result<Range<u64>> {
    if addr % PAGE != 0 {
        return errno(libc::EINVAL, format!("{addr:#x} is not a multiple of {PAGE}"));
    }
    match addr.checked_add(length) {
        Some(end) => Ok(addr..end),
        None => errno(libc::ENOMEM, format!("{length} bytes from {addr:#x} on are not in any address space")),
    }
}

fn unmap(addr: u64, length: u64) -> Result<Operation> {
    let range = range(addr, length).map_err(|e| e.with_errno(libc::EINVAL))?;
    if length == 0 || range.end > 1 << 48 {
        return errno(libc::EINVAL, "the range is empty, or leaves the slot's address space");
    }
    Ok(Operation::Unmap(range))
}

fn sync(addr: u64, length: u64, flags: c_int) -> Result<Operation> {
    let known = libc::MS_SYNC | libc::MS_ASYNC | libc::MS_INVALIDATE;
    let both = libc::MS_SYNC | libc::MS_ASYNC;
    if flags & !known != 0 || flags & both == both {
        return errno(libc::EINVAL, format!("flags are {flags:#x}: unknown ones, or MS_SYNC and MS_ASYNC"));
    }
    let mode = SyncMode { durable: flags & libc::MS_SYNC != 0, invalidate: flags & libc::MS_INVALIDATE != 0 };
    Ok(Operation::Sync(range(addr, length)?, mode))
}

fn advise(addr: u64, length: u64, advice: c_int) -> Result<Operation> {
    let advice = match advice {
        libc::MADV_NORMAL => Advice::Normal,
        libc::MADV_RANDOM => Advice::Random,
        libc::MADV_SEQUENTIAL => Advice::Sequential,
        libc::MADV_WILLNEED => Advice::WillNeed,
        libc::MADV_DONTNEED => Advice::DontNeed,
        types::MADV_REUSE => Advice::Reuse,
        types::MADV_LOWUSE => Advice::LowUse,
        other => return errno(libc::EINVAL, format!("{other} is no advice")),
    };
    Ok(Operation::Advise(range(addr, length)?, advice))
}

/// Does it now.
fn now(slot: Handle<Slot>, operation: impl FnOnce() -> Result<Operation>) -> c_int {
    posix(|| {
        let slot = &SLOTS.get(slot)?.slot;
        match operation()? {
            Operation::Sync(range, mode) => slot.sync(range, mode)?,
            Operation::Unmap(range) => slot.unmap(range)?,
            Operation::Advise(range, advice) => slot.advise(range, advice)?,
        }
        Ok(())
    })
}

/// Begins it.
///
/// # Safety
/// `pending` is NULL or an exclusive location for a handle.
unsafe fn later(
    slot: Handle<Slot>,
    operation: impl FnOnce() -> Result<Operation>,
    pending: *mut Handle<Pending>,
) -> c_int {
    // SAFETY: the caller promises the same.
    unsafe { begun(slot, pending, |slot, _| Ok(slot.slot.begin(operation()?)?)) }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_munmap(slot: Handle<Slot>, addr: u64, length: u64) -> c_int {
    now(slot, || unmap(addr, length))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_msync(slot: Handle<Slot>, addr: u64, length: u64, flags: c_int) -> c_int {
    now(slot, || sync(addr, length, flags))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_madvise(slot: Handle<Slot>, addr: u64, length: u64, advice: c_int) -> c_int {
    now(slot, || advise(addr, length, advice))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_munmap_begin(
    slot: Handle<Slot>,
    addr: u64,
    length: u64,
    pending: *mut Handle<Pending>,
) -> c_int {
    // SAFETY: the program gives what the header says: an exclusive location for a handle.
    unsafe { later(slot, || unmap(addr, length), pending) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_msync_begin(
    slot: Handle<Slot>,
    addr: u64,
    length: u64,
    flags: c_int,
    pending: *mut Handle<Pending>,
) -> c_int {
    // SAFETY: the program gives what the header says: an exclusive location for a handle.
    unsafe { later(slot, || sync(addr, length, flags), pending) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_madvise_begin(
    slot: Handle<Slot>,
    addr: u64,
    length: u64,
    advice: c_int,
    pending: *mut Handle<Pending>,
) -> c_int {
    // SAFETY: the program gives what the header says: an exclusive location for a handle.
    unsafe { later(slot, || advise(addr, length, advice), pending) }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_set_frames(slot: Handle<Slot>, bytes: u64) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        slot.slot.set_frame_budget(if bytes == 0 { u64::MAX } else { bytes });
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_set_host_frames(slot: Handle<Slot>, bytes: u64) -> c_int {
    call(|| {
        SLOTS.get(slot)?.slot.set_host_budget(bytes);
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_set_channels(slot: Handle<Slot>, channels: u32) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        *lock(&slot.placement) = match channels {
            0 => Placement::Share,
            only => Placement::only(only, slot.slot.card().info())?,
        };
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_set_weight(slot: Handle<Slot>, weight: u32) -> c_int {
    call(|| {
        // What is too large for its type is too large for a weight.
        SLOTS.get(slot)?.slot.set_weight(u8::try_from(weight).unwrap_or(u8::MAX))?;
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_set_schedule(slot: Handle<Slot>, schedule: *const Schedule) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: a schedule.
        let Some(schedule) = (unsafe { args::optional_input(schedule, "schedule")? }) else {
            return fail(Code::Argument, "schedule is NULL");
        };
        slot.slot.set_schedule(&(*schedule).try_into()?)?;
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_get_pager(slot: Handle<Slot>, pager: *mut Pager) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        unsafe { args::result(pager, "pager")? }.write(slot.slot.pager_stats().into());
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_start_and_wait(
    slot: Handle<Slot>,
    addr: u64,
    length: u64,
    limit_ms: u32,
    options: *const RunOptions,
    report: *mut Report,
) -> c_int {
    // SAFETY: the program gives what the header says.
    call(|| unsafe {
        let taken = Taken::new(SLOTS.get(slot)?, Kind::Memory)?;
        start_on(&taken.slot, addr, length, limit_ms, options, report)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_start(
    slot: Handle<Slot>,
    addr: u64,
    length: u64,
    limit_ms: u32,
    options: *const RunOptions,
    report: *mut Report,
    pending: *mut Handle<Pending>,
) -> c_int {
    let lent = Lent((options, report));
    let work = move |slot: &Slot| {
        let (options, report) = lent.get();
        // SAFETY: they stay until the end of the run is told, as the header says.
        unsafe { start_on(slot, addr, length, limit_ms, options, report) }
    };
    // SAFETY: the program gives what the header says: an exclusive location for a handle.
    unsafe { begun_run(slot, Kind::Memory, pending, work) }
}

/// A run of a slot that is taken for it.
///
/// # Safety
/// The pointers are as the header says of `viaduct_start_and_wait`.
unsafe fn start_on(
    slot: &Slot,
    addr: u64,
    length: u64,
    limit_ms: u32,
    options: *const RunOptions,
    report: *mut Report,
) -> Result<()> {
    // SAFETY: the caller promises the same.
    let (options, report) = unsafe { options_and_report(options, report)? };
    if options.is_some_and(|o| o.chunk_bytes != 0 || o.durable != 0) {
        return fail(Code::Argument, "chunk_bytes and durable are for runs of streams: they must be 0 here");
    }
    let range = (length > 0).then_some((addr, length));
    let done = start_and_wait(slot, range, limit_ms, options)?;
    if let Some(report) = report {
        report.write(done);
    }
    Ok(())
}

fn start_and_wait(
    slot: &Slot,
    range: Option<(u64, u64)>,
    limit_ms: u32,
    options: Option<&RunOptions>,
) -> Result<Report> {
    let told = Told::new(options);
    let app = &slot.app.name;
    let Some(port) = &slot.app.memory else {
        return fail(Code::NotFound, format!("app {app} has no memory port"));
    };
    let register = |name: &Option<String>| name.as_ref().and_then(|n| slot.app.register(n));
    let Some(start) = register(&port.start) else {
        return fail(Code::NotFound, format!("app {app}: its manifest names no register that starts it"));
    };
    let mut job = MemoryJob::new(&slot.slot, start.offset);
    if let Some((va, len)) = range {
        let Some(base) = register(&port.base) else {
            return fail(Code::NotFound, format!("app {app}: its manifest names no register for an address"));
        };
        let bytes = register(&port.bytes).map(Slot::location);
        job = job.range(MemoryRange { va, len, base: Slot::location(base), bytes });
    }
    if let Some(done) = register(&port.done) {
        job = job.done(done.offset);
    }
    if limit_ms != 0 {
        job = job.limit(Duration::from_millis(limit_ms.into()));
    }
    if let Some(told) = &told {
        job = job.stop_if(|| told.is_stopped());
    }
    slot.check_required()?;
    let before = slot.slot.counters()?;
    let done = match job.run() {
        Ok(done) => done,
        Err(error) => {
            slot.write_again();
            return Err(error.into());
        }
    };
    let after = slot.slot.counters()?;
    Ok(Report { cycles: done.cycles, denied: done.denied, ..Report::counted(&before, &after) })
}
