// SPDX-License-Identifier: Apache-2.0
//! Mappings, and runs of apps on them.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::{MapOptions, MemoryJob, MemoryRange, Prot, SharedBytes, Source};

use crate::args;
use crate::error::{Code, Result, call, fail};
use crate::handle::{Handle, Table, lock};
use crate::run::{Told, begin, check_options};
use crate::slot::{SLOTS, Slot};
use crate::types::{self, Report, RunOptions};

/// All open mappings.
pub(crate) static MAPPINGS: Table<Mapping> = Table::new("mapping");

/// A file or buffer in the address space of a slot.
pub struct Mapping {
    mapping: host::Mapping,
    buffer: Option<Buffer>,
    slot: Arc<Slot>,
}

/// Memory of the program, to which the app's changes are copied back.
struct Buffer {
    bytes: SharedBytes,
    /// Held during a copy: two threads may request one at the same time.
    data: Mutex<Place>,
}

/// Address of the memory.
struct Place {
    first: *mut u8,
    len: usize,
}

// SAFETY: the program guarantees that the memory stays valid, and writable where requested, until the mapping is closed,
// on any thread.
unsafe impl Send for Place {}

impl Buffer {
    /// Copies the app's changes to the program's memory; `bytes` are those of the whole mapping.
    fn copy_back(&self, bytes: &[u8]) {
        let place = lock(&self.data);
        let len = bytes.len().min(place.len);
        // SAFETY: `len` bytes existed when they were mapped, and the program keeps them until the mapping is closed. Only
        // this thread writes, under the lock. The memory cannot overlap the library's, but `copy_from` would allow that.
        unsafe { place.first.copy_from(bytes.as_ptr(), len) };
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_map(
    slot: Handle<Slot>,
    path: *const c_char,
    data: *mut c_void,
    length: u64,
    prot: u32,
    flags: u32,
    mapping: *mut Handle<Mapping>,
) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: NULL or a string, and an exclusive location for a handle.
        let (path, place) =
            unsafe { (args::optional_text(path, "path")?, args::result(mapping, "mapping")?) };
        let prot = match prot {
            types::READ => Prot::READ,
            types::WRITE => Prot::WRITE,
            p if p == types::READ | types::WRITE => Prot::READ_WRITE,
            other => {
                return fail(
                    Code::Argument,
                    format!("prot is {other}: use VIADUCT_READ, VIADUCT_WRITE or both"),
                );
            }
        };
        let options = options(prot, flags)?;
        let create = flags & types::MAP_CREATE != 0;
        if length == 0 && (path.is_none() || create) {
            return fail(Code::Argument, "length is 0; at least one byte is mapped");
        }
        let mut buffer = None;
        let source = match path {
            Some(_) if !data.is_null() => {
                return fail(Code::Argument, "path and data are both given; give one");
            }
            Some(path) if create => Source::create(path, length)?,
            Some(path) if prot.write => Source::file_mut(path)?,
            Some(path) => Source::file(path)?,
            None if create => return fail(Code::Argument, "VIADUCT_MAP_CREATE needs a path"),
            None if data.is_null() => {
                Source::bytes(SharedBytes::new(args::zeroed(args::size(length, "length")?, 0)?))
            }
            None => {
                // SAFETY: the program gives what the header says: `length` bytes that stay as they are during the call.
                let bytes = args::copy(unsafe { args::bytes(data, length, "data")? })?;
                let place = Place { first: data.cast(), len: bytes.len() };
                let bytes = SharedBytes::new(bytes);
                buffer = prot.write.then(|| Buffer { bytes: bytes.clone(), data: Mutex::new(place) });
                Source::bytes(bytes)
            }
        };
        let length = if length == 0 { source.len() } else { length };
        let mapping = slot.slot.map(source, length, options)?;
        place.write(MAPPINGS.insert(Mapping { mapping, buffer, slot }));
        Ok(())
    })
}

fn options(prot: Prot, flags: u32) -> Result<MapOptions> {
    let (huge, small) = (flags & types::MAP_HUGE != 0, flags & types::MAP_SMALL != 0);
    let known = types::MAP_HOST | types::MAP_HUGE | types::MAP_SMALL | types::MAP_CREATE;
    if flags & !known != 0 || huge && small {
        return fail(
            Code::Argument,
            format!("flags are {flags:#x}: unknown ones, or pages both huge and small"),
        );
    }
    let mut options = MapOptions::new(prot);
    if flags & types::MAP_HOST != 0 {
        options = options.on_host();
    }
    if huge || small {
        options = options.huge(huge);
    }
    Ok(options)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_mapping_va(mapping: Handle<Mapping>, va: *mut u64) -> c_int {
    call(|| {
        let mapping = MAPPINGS.get(mapping)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        unsafe { args::result(va, "va")? }.write(mapping.mapping.va());
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_mapping_length(mapping: Handle<Mapping>, length: *mut u64) -> c_int {
    call(|| {
        let mapping = MAPPINGS.get(mapping)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        unsafe { args::result(length, "length")? }.write(mapping.mapping.len());
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_sync(mapping: Handle<Mapping>, durable: c_int) -> c_int {
    call(|| {
        let mapping = MAPPINGS.get(mapping)?;
        mapping.mapping.sync(durable != 0)?;
        if let Some(buffer) = &mapping.buffer {
            buffer.copy_back(&buffer.bytes.to_vec());
        }
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_unmap(mapping: Handle<Mapping>) -> c_int {
    call(|| {
        let Mapping { mapping, buffer, slot: _slot } = MAPPINGS.remove(mapping)?;
        let unmapped = mapping.unmap();
        // Data that was written back is copied even if some is lost.
        if let Some(buffer) = buffer {
            buffer.copy_back(&buffer.bytes.take());
        }
        Ok(unmapped?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_start_and_wait(
    slot: Handle<Slot>,
    mapping: Handle<Mapping>,
    limit_ms: u32,
    options: *const RunOptions,
    report: *mut Report,
) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        let mapping = if mapping.is_null() { None } else { Some(MAPPINGS.get(mapping)?) };
        // SAFETY: the program gives what the header says: NULL, or an exclusive location.
        let report = unsafe { args::optional_result(report, "report")? };
        // SAFETY: the program gives what the header says: NULL, or options that stay as they are during the call.
        let options = unsafe { args::optional_input(options, "options")? };
        check_options(options)?;
        if options.is_some_and(|o| o.chunk_bytes != 0 || o.durable != 0) {
            return fail(
                Code::Argument,
                "chunk_bytes and durable are for runs of streams: they must be 0 here",
            );
        }
        let done = start_and_wait(&slot, mapping.as_deref(), limit_ms, options)?;
        if let Some(report) = report {
            report.write(done);
        }
        Ok(())
    })
}

fn start_and_wait(
    slot: &Arc<Slot>,
    mapping: Option<&Mapping>,
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
    if let Some(mapping) = mapping {
        if !Arc::ptr_eq(&mapping.slot, slot) {
            return fail(Code::Argument, "this mapping belongs to another slot");
        }
        let Some(base) = register(&port.base) else {
            return fail(Code::NotFound, format!("app {app}: its manifest names no register for an address"));
        };
        let bytes = register(&port.bytes).map(Slot::place);
        job = job.range(MemoryRange::of(&mapping.mapping, Slot::place(base), bytes));
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
    let _running = begin(&slot.memory, "a memory run")?;
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
