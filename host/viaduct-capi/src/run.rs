// SPDX-License-Identifier: Apache-2.0
//! Runs: routes to the app's streams, buffers in and out.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

use host::{CardBuffer, Endpoint, JobReport, OutLength, Progress, SharedBytes, StreamJob};
use viaduct_build::{Length, app_lacks};

use crate::args;
use crate::error::{Code, Failure, Result, call, fail, posix};
use crate::handle::{Handle, lock};
use crate::numbers::is_child;
use crate::pending::{Lent, Pending, begun_run};
use crate::process::PerProcess;
use crate::slot::{Kind, SLOTS, Slot, Taken};
use crate::types::{self, ProgressFn, Report, Route, RunOptions};

/// Buffers that the program has not released yet, by address.
static MADE: PerProcess<Mutex<BTreeMap<usize, Vec<u8>>>> = PerProcess::new(Mutex::default);

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_run(
    slot: Handle<Slot>,
    routes: *mut Route,
    count: usize,
    options: *const RunOptions,
    report: *mut Report,
) -> c_int {
    // SAFETY: the program gives what the header says.
    call(|| unsafe {
        let taken = Taken::new(SLOTS.get(slot)?, Kind::Streams)?;
        run_on(Line(&[&*taken.slot]), routes, count, options, report)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_run_through(
    slots: *const Handle<Slot>,
    slot_count: usize,
    routes: *mut Route,
    count: usize,
    options: *const RunOptions,
    report: *mut Report,
) -> c_int {
    // SAFETY: the program gives what the header says.
    call(|| unsafe {
        let listed = args::list(slots, slot_count, "slots")?;
        if listed.is_empty() {
            return fail(Code::Argument, "no slot is listed; give at least one");
        }
        if let Some(twice) = listed.iter().enumerate().find(|(i, slot)| listed[..*i].contains(slot)) {
            return fail(
                Code::Argument,
                format!("slots[{}] is listed twice; every app has a slot of its own", twice.0),
            );
        }
        let taken = (listed.iter())
            .map(|slot| Taken::new(SLOTS.get(*slot)?, Kind::Streams))
            .collect::<Result<Vec<_>>>()?;
        let slots: Vec<&Slot> = taken.iter().map(|taken| &*taken.slot).collect();
        let line = Line(&slots);
        line.check()?;
        run_on(line, routes, count, options, report)
    })
}

/// Slots whose apps are in sequence; at least one.
#[derive(Clone, Copy)]
struct Line<'a>(&'a [&'a Slot]);

impl<'a> Line<'a> {
    /// The app that has the stream of a route.
    fn end(self, output: bool) -> &'a Slot {
        if output { self.0[self.0.len() - 1] } else { self.0[0] }
    }

    /// Whether the apps can be in sequence.
    fn check(self) -> Result<()> {
        for pair in self.0.windows(2) {
            for (slot, streams, way) in [
                (pair[0], pair[0].app.stream_out.len(), "output"),
                (pair[1], pair[1].app.stream_in.len(), "input"),
            ] {
                let name = &slot.app.name;
                if streams != 1 {
                    let text = format!("app {name} has {streams} {way}s; in sequence it needs one");
                    return fail(Code::Argument, text);
                }
            }
        }
        Ok(())
    }

    /// Length of an output of the last app.
    fn length(self, port: usize) -> Length {
        let before = self.0[..self.0.len() - 1].iter().map(|slot| &slot.app);
        self.end(true).app.length_behind(before, port)
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_run_begin(
    slot: Handle<Slot>,
    routes: *mut Route,
    count: usize,
    options: *const RunOptions,
    report: *mut Report,
    pending: *mut Handle<Pending>,
) -> c_int {
    // SAFETY: the program gives what the header says.
    let held = unsafe { held(slot, routes, count) };
    let lent = Lent((routes, options, report));
    let work = move |slot: &Slot| {
        let _held = held;
        let (routes, options, report) = lent.get();
        // SAFETY: they stay until the end of the run is told, as the header says.
        unsafe { run_on(Line(&[slot]), routes, count, options, report) }
    };
    // SAFETY: the program gives what the header says: an exclusive location for a handle.
    unsafe { begun_run(slot, Kind::Streams, pending, work) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_transfer(slot: Handle<Slot>, route: *mut Route) -> c_int {
    // SAFETY: the program gives what the header says.
    call(|| unsafe {
        let taken = Taken::new(SLOTS.get(slot)?, kind_of(route)?)?;
        transfer(&taken.slot, route)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_transfer_begin(
    slot: Handle<Slot>,
    route: *mut Route,
    pending: *mut Handle<Pending>,
) -> c_int {
    let mut kind = None;
    // SAFETY: the program gives what the header says.
    let looked = posix(|| unsafe {
        kind = Some(kind_of(route)?);
        Ok(())
    });
    let Some(kind) = kind else { return looked };
    // SAFETY: the program gives what the header says, and the route was looked at above.
    let held = unsafe { held(slot, route, 1) };
    let lent = Lent(route);
    // SAFETY: the route stays until the end of the transfer is told, as the header says.
    let work = move |slot: &Slot| unsafe {
        let _held = held;
        transfer(slot, lent.get())
    };
    // SAFETY: the program gives what the header says: an exclusive location for a handle.
    unsafe { begun_run(slot, kind, pending, work) }
}

/// The allocated card memory that routes lead to, which is not freed before the run has begun on its thread, nor until its end. What is wrong
/// with routes or slot is told by the run.
///
/// # Safety
/// `routes` is NULL or `count` routes that are not changed during the call, with endpoints as the header says.
unsafe fn held(slot: Handle<Slot>, routes: *const Route, count: usize) -> Vec<Arc<CardBuffer>> {
    // SAFETY: the caller promises the same.
    let (Ok(slot), Ok(routes)) = (SLOTS.get(slot), unsafe { args::list(routes, count, "routes") }) else {
        return Vec::new();
    };
    let card_memory = |route: &Route| {
        // SAFETY: the caller promises the same.
        let text = unsafe { args::optional_text(route.endpoint, "endpoint") }.ok()??;
        match Endpoint::parse(text.starts_with("card:").then_some(text)?).ok()? {
            Endpoint::Card { addr, .. } => slot.card().memory_at(addr).ok().map(|(memory, _)| memory),
            _ => None,
        }
    };
    routes.iter().filter_map(card_memory).collect()
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_run_buffered(
    slot: Handle<Slot>,
    data: *const c_void,
    length: u64,
    result: *mut c_void,
    result_length: u64,
    buffer_bytes: u64,
    report: *mut Report,
) -> c_int {
    call(|| {
        // SAFETY: the program gives what the header says: bytes that stay as they are, others that are the library's, and NULL or an
        // exclusive location.
        let (input, output, report) = unsafe {
            let input = args::bytes(data, length, "data")?;
            let output = args::bytes_mut(result, result_length, "result")?;
            (input, output, args::optional_result(report, "report")?)
        };
        let taken = Taken::new(SLOTS.get(slot)?, Kind::Streams)?;
        let slot = &*taken.slot;
        slot.check_required()?;
        for (given, streams, way) in [
            (!input.is_empty(), slot.app.stream_in.len(), "input"),
            (!output.is_empty(), slot.app.stream_out.len(), "output"),
        ] {
            if given && streams == 0 {
                return fail(Code::NotFound, format!("app {} has no {way}", slot.app.name));
            }
        }
        let before = slot.slot.counters()?;
        let done = slot.slot.run_buffered(input, output, buffer_bytes).inspect_err(|_| slot.write_again())?;
        let after = slot.slot.counters()?;
        if let Some(report) = report {
            let JobReport { bytes_in, bytes_out, cycles } = done;
            report.write(Report { bytes_in, bytes_out, cycles, ..Report::counted(&before, &after) });
        }
        Ok(())
    })
}

/// The part of a slot that a transfer needs.
///
/// # Safety
/// `route` is NULL or a route that is not changed during the call.
unsafe fn kind_of(route: *const Route) -> Result<Kind> {
    // SAFETY: the caller promises the same.
    match unsafe { args::optional_input(route, "route")? } {
        None => fail(Code::Argument, "route is NULL"),
        Some(route) if route.direction == types::OUT => Ok(Kind::Output),
        Some(_) => Ok(Kind::Input),
    }
}

/// A run of one stream of an app, of which the other streams are left alone.
///
/// # Safety
/// `route` is not NULL, and as the header says.
unsafe fn transfer(slot: &Slot, route: *mut Route) -> Result<()> {
    // SAFETY: not NULL, aligned as was checked, and the library's during the call.
    let route = unsafe { &mut *route };
    slot.check_required()?;
    check_zero("reserved of the route", i64::from(route.reserved))?;
    let line = Line(&[slot]);
    // SAFETY: the caller promises the same.
    let way = unsafe { way(line, route)? };
    let job = StreamJob::new(&slot.slot);
    let (port, endpoint) = (way.port as u8, way.endpoint.clone());
    let job = match way.output {
        false => job.input(port, endpoint),
        true => {
            let length = match &way.endpoint {
                Endpoint::Card { len, .. } => OutLength::Message(*len),
                Endpoint::Bytes { .. } if route.capacity != types::ALLOCATE => {
                    OutLength::Message(route.capacity)
                }
                _ => OutLength::Any,
            };
            job.output(port, endpoint, length)
        }
    };
    if let Err(error) = job.run() {
        slot.write_again();
        return Err(error.into());
    }
    let Some(bytes) = &way.bytes else { return Ok(()) };
    route.length = bytes.len();
    match way.output {
        // SAFETY: the caller promises it of a route that leads to memory.
        true => unsafe { hand_over(route, bytes.take(), name(line, &way)) },
        false => Ok(()),
    }
}

/// A run of slots that are taken for it.
///
/// # Safety
/// The pointers are as the header says of `viaduct_run`.
unsafe fn run_on(
    line: Line<'_>,
    routes: *mut Route,
    count: usize,
    options: *const RunOptions,
    report: *mut Report,
) -> Result<()> {
    // SAFETY: the caller promises the same.
    let (options, report) = unsafe { options_and_report(options, report)? };
    if !routes.is_aligned() || routes.is_null() && count > 0 {
        return fail(Code::Argument, format!("routes is not the address of {count} routes"));
    }
    let (first, last) = (&line.end(false).app, &line.end(true).app);
    let most = first.stream_in.len() + last.stream_out.len();
    if count > most {
        let names: Vec<&str> = line.0.iter().map(|slot| slot.app.name.as_str()).collect();
        let text = format!("{count} routes are too many: app {} has {most} streams", names.join(" | "));
        return fail(Code::Argument, text);
    }
    let routes: &mut [Route] =
        // SAFETY: not NULL and aligned, as checked above; the caller gives `count` initialised routes that are the library's
        // during the call, and `count` is at most the number of an app's streams.
        if count == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(routes, count) } };
    // SAFETY: what the routes point to is as the header says, or the program is wrong.
    let done = unsafe { run(line, routes, options)? };
    if let Some(report) = report {
        report.write(done);
    }
    Ok(())
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_free(data: *mut c_void) -> c_int {
    call(|| match lock(MADE.get()).remove(&data.addr()) {
        // A child's copy of its parent's buffer is released when the child ends.
        None if !data.is_null() && !is_child() => {
            fail(Code::Argument, "this is not a buffer that viaduct_run() allocated")
        }
        _ => Ok(()),
    })
}

/// Fails if a reserved field is not zero.
fn check_zero(field: &str, value: i64) -> Result<()> {
    match value {
        0 => Ok(()),
        _ => fail(
            Code::Argument,
            format!("{field} is {value}: it must be 0, so initialise the whole structure"),
        ),
    }
}

/// What every run is given, checked.
///
/// # Safety
/// `options` is NULL or options that stay as they are, and `report` NULL or an exclusive location, during `'a`.
pub(crate) unsafe fn options_and_report<'a>(
    options: *const RunOptions,
    report: *mut Report,
) -> Result<(Option<&'a RunOptions>, Option<&'a mut MaybeUninit<Report>>)> {
    // SAFETY: the caller promises the same.
    let report = unsafe { args::optional_result(report, "report")? };
    // SAFETY: the caller promises the same.
    let options = unsafe { args::optional_input(options, "options")? };
    options.map_or(Ok(()), |o: &RunOptions| check_zero("reserved of the options", o.reserved.into()))?;
    Ok((options, report))
}

/// Reports progress to the program, which may stop the run.
pub(crate) struct Told {
    tell: ProgressFn,
    user: *mut c_void,
    last: Cell<Progress>,
    /// Time of the last report.
    just_now: Cell<bool>,
    stopped: Cell<bool>,
}

impl Told {
    /// `None` without a progress function.
    pub fn new(options: Option<&RunOptions>) -> Option<Self> {
        let options = options?;
        let last = Cell::new(Progress { bytes_in: 0, total_in: 0, bytes_out: 0, cycles: 0 });
        let (just_now, stopped) = (Cell::new(false), Cell::new(false));
        Some(Self { tell: options.progress?, user: options.user, last, just_now, stopped })
    }

    fn ask(&self) {
        if !self.stopped.get() {
            // SAFETY: the program guarantees that it can be called with `user`, on this thread and during the run; its
            // argument outlives the call.
            let said = unsafe { (self.tell)(self.user, &self.last.get().into()) };
            self.stopped.set(said != 0);
        }
    }

    /// Reports that data has moved.
    pub fn tell(&self, progress: Progress) {
        self.last.set(progress);
        self.just_now.set(true);
        self.ask();
    }

    /// Whether the run is to stop: the program is called even if no data moves.
    pub fn is_stopped(&self) -> bool {
        if !self.just_now.replace(false) {
            self.ask();
        }
        self.stopped.get()
    }
}

/// A checked route.
struct Way {
    /// Number of the stream.
    port: usize,
    output: bool,
    endpoint: Endpoint,
    /// The bytes, if it leads to memory.
    bytes: Option<SharedBytes>,
    /// Bytes of an input, as far as that is known now.
    input_length: Option<u64>,
}

/// # Safety
/// Strings and memory of the routes are as the header says.
unsafe fn run(line: Line<'_>, routes: &mut [Route], options: Option<&RunOptions>) -> Result<Report> {
    line.0.iter().try_for_each(|slot| slot.check_required())?;
    let slot = line.end(false);
    let mut ways: Vec<Way> = Vec::new();
    for (index, route) in routes.iter().enumerate() {
        check_zero(&format!("reserved of routes[{index}]"), i64::from(route.reserved))?;
        // SAFETY: the caller promises the same of each route.
        let way = unsafe { way(line, route)? };
        if ways.iter().any(|w| (w.port, w.output) == (way.port, way.output)) {
            let direction = if way.output { "output" } else { "input" };
            let name = name(line, &way);
            return fail(Code::Argument, format!("{direction} {name} has two routes; give one"));
        }
        ways.push(way);
    }
    check_complete(line, &ways)?;
    check_room(line, routes, &ways)?;

    let before = slot.slot.counters()?;
    let denied = slot.slot.pager_stats().denied;
    let told = Told::new(options);
    let done = match job(line, &ways, options, told.as_ref()).run() {
        Ok(done) => done,
        Err(error) => {
            line.0.iter().for_each(|slot| slot.write_again());
            return Err(error.into());
        }
    };
    let after = slot.slot.counters()?;
    let JobReport { bytes_in, bytes_out, cycles } = done;
    let denied = slot.slot.pager_stats().denied - denied;
    let report = Report { bytes_in, bytes_out, cycles, denied, ..Report::counted(&before, &after) };
    let mut outcome = Ok(report);
    for (route, way) in routes.iter_mut().zip(&ways) {
        let Some(bytes) = &way.bytes else { continue };
        route.length = bytes.len();
        // Every output is delivered, even if another buffer was too small.
        if !way.output {
            continue;
        }
        // SAFETY: the caller promises it of each route that leads to memory.
        if let Err(failure) = unsafe { hand_over(route, bytes.take(), name(line, way)) } {
            outcome = Err(failure);
        }
    }
    outcome
}

/// # Safety
/// See [`run`].
unsafe fn way(line: Line<'_>, route: &Route) -> Result<Way> {
    let output = match route.direction {
        types::IN => false,
        types::OUT => true,
        other => {
            return fail(
                Code::Argument,
                format!("{other} is not a direction: use VIADUCT_IN or VIADUCT_OUT"),
            );
        }
    };
    let app = &line.end(output).app;
    let names: Vec<&str> = match output {
        false => app.stream_in.iter().map(|s| s.name.as_str()).collect(),
        true => app.stream_out.iter().map(|s| s.name.as_str()).collect(),
    };
    let direction = if output { "output" } else { "input" };
    // SAFETY: NULL or a string, as the caller promises.
    let name = unsafe { args::optional_text(route.port, "port")? };
    let port = match name {
        None if names.is_empty() => None,
        None => Some(0),
        Some(name) => names.iter().position(|n| *n == name),
    };
    let Some(port) = port else {
        let text = match name {
            Some(name) => app_lacks(&app.name, direction, name, names),
            None => format!("app {} has no {direction}", app.name),
        };
        return fail(Code::NotFound, text);
    };
    // SAFETY: NULL or a string, as the caller promises.
    if let Some(text) = unsafe { args::optional_text(route.endpoint, "endpoint")? } {
        let endpoint = Endpoint::parse(text)?;
        if let Endpoint::Bytes { .. } = endpoint {
            let text = format!("endpoint {text:?}: memory of the program is given by data and capacity");
            return fail(Code::Argument, text);
        }
        let input_length = if output { None } else { endpoint.known_len()? };
        return Ok(Way { port, output, endpoint, bytes: None, input_length });
    }
    let bytes = match output {
        // SAFETY: an input gives `capacity` bytes that stay as they are during the call, as the caller promises.
        false => args::copy(unsafe { args::bytes(route.data, route.capacity, "data")? })?,
        true => {
            if route.capacity != types::ALLOCATE && route.capacity > 0 && route.data.is_null() {
                return fail(Code::Argument, format!("data is NULL, but its capacity is {}", route.capacity));
            }
            Vec::new()
        }
    };
    let bytes = SharedBytes::new(bytes);
    let endpoint = Endpoint::bytes(names[port], bytes.clone());
    Ok(Way { port, output, endpoint, input_length: Some(bytes.len()), bytes: Some(bytes) })
}

/// Name of the stream of a route.
fn name<'a>(line: Line<'a>, way: &Way) -> &'a str {
    let slot = line.end(way.output);
    match way.output {
        false => &slot.app.stream_in[way.port].name,
        true => &slot.app.stream_out[way.port].name,
    }
}

/// Every stream needs a route, unless it is connected on the card: without one the app would block for ever.
fn check_complete(line: Line<'_>, ways: &[Way]) -> Result<()> {
    let inputs = line.end(false).app.stream_in.iter().map(|s| (false, &s.name)).enumerate();
    let outputs = line.end(true).app.stream_out.iter().map(|s| (true, &s.name)).enumerate();
    for (port, (output, name)) in inputs.chain(outputs) {
        if !ways.iter().any(|way| (way.port, way.output) == (port, output)) {
            let slot = &line.end(output).slot;
            let end = host::Port::Stream { slot: slot.index(), stream: port as u8 };
            let routes = slot.card().routes()?;
            if routes.iter().any(|(source, sink)| end == if output { *source } else { *sink }) {
                continue;
            }
            let direction = if output { "output" } else { "input" };
            return fail(Code::Argument, format!("{direction} {name} has no route"));
        }
    }
    Ok(())
}

/// Fails before the run if an output is known not to fit.
fn check_room(line: Line<'_>, routes: &mut [Route], ways: &[Way]) -> Result<()> {
    for (route, way) in routes.iter_mut().zip(ways).filter(|(_, way)| way.output && way.bytes.is_some()) {
        let stream = &line.end(true).app.stream_out[way.port];
        let needed = match line.length(way.port) {
            Length::Any => None,
            Length::Message(bytes) => Some(bytes),
            Length::Same => {
                let mut inputs = ways.iter().filter(|w| !w.output);
                let first = inputs.clone().min_by_key(|w| w.port);
                inputs.find(|w| w.port == way.port).or(first).and_then(|w| w.input_length)
            }
        };
        if let Some(needed) = needed.filter(|needed| *needed > route.capacity) {
            route.length = needed;
            return fail(Code::TooSmall, too_small(&stream.name, needed, route.capacity));
        }
    }
    Ok(())
}

fn too_small(name: &str, needed: u64, capacity: u64) -> String {
    format!("output {name}: {needed} bytes do not fit into a buffer of {capacity}")
}

fn job<'a>(
    line: Line<'a>,
    ways: &[Way],
    options: Option<&RunOptions>,
    told: Option<&'a Told>,
) -> StreamJob<'a> {
    let first = StreamJob::new(&line.end(false).slot);
    let mut job = line.0[1..].iter().fold(first, |job, slot| job.then(&slot.slot));
    for way in ways {
        let (port, endpoint) = (way.port as u8, way.endpoint.clone());
        job = match way.output {
            false => job.input(port, endpoint),
            true => {
                let length = match line.length(way.port) {
                    Length::Any => OutLength::Any,
                    // What comes over a connection has a length that is not known here.
                    Length::Same if ways.iter().all(|way| way.output) => OutLength::Any,
                    Length::Same => OutLength::Same,
                    Length::Message(bytes) => OutLength::Message(bytes),
                };
                job.output(port, endpoint, length)
            }
        };
    }
    let Some(options) = options else { return job };
    if options.chunk_bytes != 0 {
        job = job.chunk_bytes(options.chunk_bytes);
    }
    if options.durable != 0 {
        job = job.durable();
    }
    if let Some(told) = told {
        job = job.on_progress(|p| told.tell(p)).stop_if(|| told.is_stopped());
    }
    job
}

/// Delivers an output to the program.
///
/// # Safety
/// `route.data` is `route.capacity` bytes, unless the library is to allocate them.
unsafe fn hand_over(route: &mut Route, bytes: Vec<u8>, name: &str) -> Result<()> {
    if route.capacity == types::ALLOCATE {
        route.data = std::ptr::null_mut();
        if !bytes.is_empty() {
            route.data = bytes.as_ptr().cast_mut().cast();
            lock(MADE.get()).insert(route.data.addr(), bytes);
        }
        return Ok(());
    }
    let fits = bytes.len().min(usize::try_from(route.capacity).unwrap_or(usize::MAX));
    if fits > 0 {
        // SAFETY: at least `fits` bytes that may be written, as the caller promises; not NULL, which was checked before the run.
        unsafe { route.data.cast::<u8>().copy_from(bytes.as_ptr(), fits) };
    }
    if fits < bytes.len() {
        let text = too_small(name, bytes.len() as u64, route.capacity);
        return Err(Failure::new(Code::TooSmall, text));
    }
    Ok(())
}
