// SPDX-License-Identifier: Apache-2.0
//! Cards: open, close, query.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use viaduct_build::{Project, Variant, meant};
use viaduct_pci::{Location, PciFunction};
use viaduct_sim::{Profile, SimCard, SimConfig};
use viaduct_trace::{Time, Trace};

use crate::args;
use crate::error::{Code, Failure, Result, call, fail};
use crate::handle::{Handle, Table, lock};
use crate::process::PerProcess;
use crate::types::{self, Info, Timeouts};

/// All open cards.
pub(crate) static CARDS: Table<Card> = Table::new("card");

/// One build at a time: two of the same thing would write the same files.
pub(crate) static BUILDING: PerProcess<Mutex<()>> = PerProcess::new(Mutex::default);

/// An open card.
pub struct Card {
    pub(crate) card: Arc<host::Card>,
    /// Card memory that the program has allocated, by address.
    pub(crate) memory: Mutex<BTreeMap<u64, Arc<host::CardBuffer>>>,
    trace: Option<Trace>,
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_open(
    name: *const c_char,
    timeouts: *const Timeouts,
    card: *mut Handle<Card>,
) -> c_int {
    // SAFETY: what this function asks of its caller is what that one asks.
    unsafe { viaduct_open_wait(name, timeouts, 0, card) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_open_wait(
    name: *const c_char,
    timeouts: *const Timeouts,
    wait_ms: u32,
    card: *mut Handle<Card>,
) -> c_int {
    call(|| {
        log();
        // SAFETY: the program gives what the header says: a string, and an exclusive location for a handle.
        let (name, place) = unsafe { (args::text(name, "the card's name")?, args::result(card, "card")?) };
        // SAFETY: the program gives what the header says: NULL, or times that stay as they are during the call.
        let timeouts = unsafe { args::optional_input(timeouts, "timeouts")? };
        let (function, sim) = function(name, wait_ms)?;
        let card = host::Card::open_with(function, timeouts_of(timeouts))?;
        let time = match &sim {
            Some(sim) => Time::Simulated(sim),
            None if name.starts_with("unix:") => Time::Reported,
            None => Time::Machine,
        };
        let trace = begin_trace(&card, time)?;
        place.write(CARDS.insert(Card { card, memory: Mutex::default(), trace }));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_close(card: Handle<Card>) -> c_int {
    call(|| {
        if let Some(Err(error)) = CARDS.remove(card)?.trace.map(Trace::end) {
            // The card is closed whatever becomes of its trace.
            tracing::error!("{error}");
        }
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_get_info(card: Handle<Card>, info: *mut Info) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        unsafe { args::result(info, "info")? }.write(card.card.info().into());
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_time(card: Handle<Card>, cycles: *mut u64) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        unsafe { args::result(cycles, "cycles")? }.write(card.card.time()?);
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_reset_card(card: Handle<Card>) -> c_int {
    call(|| Ok(CARDS.get(card)?.card.reset()?))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_read_card32(card: Handle<Card>, offset: u32, value: *mut u32) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        let place = unsafe { args::result(value, "value")? };
        place.write(card.card.read_register(offset)?);
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_write_card32(card: Handle<Card>, offset: u32, value: u32) -> c_int {
    call(|| Ok(CARDS.get(card)?.card.write_register(offset, value)?))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_get_system_monitor(
    card: Handle<Card>,
    monitor: *mut types::SystemMonitor,
) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        let place = unsafe { args::result(monitor, "monitor")? };
        match card.card.system_monitor()? {
            Some(values) => place.write(values.into()),
            None => return fail(Code::NotFound, "the board of this card has no system monitor"),
        };
        Ok(())
    })
}

/// Errors that cannot be returned are reported on standard error, more with VIADUCT_LOG.
fn log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| viaduct_log::init("error"));
}

/// The trace of a card if `VIADUCT_TRACE` names a file for it, that of a second card with `.2` before its extension, and so on.
fn begin_trace(card: &Arc<host::Card>, time: Time<'_>) -> Result<Option<Trace>> {
    static TRACES: AtomicU32 = AtomicU32::new(0);
    let Some(path) = std::env::var_os("VIADUCT_TRACE").filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let path = numbered(Path::new(&path), TRACES.fetch_add(1, Ordering::Relaxed) + 1);
    let trace = Trace::of_card(&path, &[], card, time);
    trace.map(Some).or_else(|error| fail(Code::Io, format!("VIADUCT_TRACE: {error}")))
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut numbered = path.to_owned();
    if number > 1 {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        numbered.set_extension(format!("{number}.{extension}").trim_end_matches('.'));
    }
    numbered
}

/// A card, and the same if it is simulated in this process.
type Found = (Arc<dyn PciFunction>, Option<Arc<SimCard>>);

fn function(name: &str, wait_ms: u32) -> Result<Found> {
    match name.split_once(':') {
        None if name == "sim" => simulated(None),
        Some(("sim", profile)) if !profile.is_empty() => simulated(Some(profile)),
        _ => {
            let location: Location = name.parse().or_else(|why: String| {
                fail(Code::Argument, format!("there is no card {name:?}: {why}, or sim, or sim:PROFILE"))
            })?;
            let limit = match wait_ms {
                u32::MAX => Duration::MAX,
                ms => Duration::from_millis(ms.into()),
            };
            Ok((location.open_within(limit, |_| true).map_err(host::Error::from)?, None))
        }
    }
}

fn timeouts_of(given: Option<&Timeouts>) -> host::Timeouts {
    let mut timeouts = host::Timeouts::default();
    if let Some(given) = given {
        let set = |to: &mut Duration, ms: u32| {
            if ms != 0 {
                *to = Duration::from_millis(ms.into());
            }
        };
        set(&mut timeouts.stall, given.stall_ms);
        set(&mut timeouts.busy, given.busy_ms);
        set(&mut timeouts.control, given.control_ms);
    }
    timeouts
}

/// The project that this library uses, see [`Project::locate`].
pub(crate) fn project() -> Result<Project> {
    Ok(Project::locate(own_path)?)
}

/// Counts coverage if `VIADUCT_COVERAGE` names a folder for it (see `tools/coverage.py`), has a checker at every port if
/// `VIADUCT_CHECKED` is set, else is fast.
pub(crate) fn variant() -> Variant {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if set("VIADUCT_COVERAGE") {
        Variant::Coverage
    } else if set("VIADUCT_CHECKED") {
        Variant::Assert
    } else {
        Variant::Fast
    }
}

/// Reports builds, since they can take minutes.
pub(crate) fn tell(line: &str) {
    if !line.ends_with("up to date") {
        // Standard error may be closed.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
}

/// The file from which this library was loaded.
fn own_path() -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let here: *const c_void = own_path as *const c_void;
    // SAFETY: dladdr only writes to `info`, and the name stays for as long as the library is loaded, which it is.
    let name = unsafe {
        if libc::dladdr(here, info.as_mut_ptr()) == 0 || info.assume_init_ref().dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(info.assume_init_ref().dli_fname)
    };
    std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}

/// A simulated card in this process, as the profile says. It is built first if needed.
fn simulated(profile: Option<&str>) -> Result<Found> {
    let profile = match profile {
        None => Profile::default(),
        Some(name) => Profile::by_name(name).ok_or_else(|| {
            let remedy = meant(name, Profile::names());
            Failure::new(Code::NotFound, format!("no profile named {name:?}; {remedy}"))
        })?,
    };
    let project = project()?;
    let card_object = {
        let _one_at_a_time = lock(BUILDING.get());
        project.build_card(variant(), profile.channels, &mut tell)?
    };
    let config = SimConfig { profile, card_object, image_dir: project.images(variant()), chan_mib: None };
    match SimCard::open(config) {
        Ok(card) => {
            let card = Arc::new(card);
            Ok((Arc::clone(&card) as _, Some(card)))
        }
        Err(e) => fail(Code::Card, e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_further_cards_have_a_number() {
        for (path, number, name) in [
            ("a/t.json", 1, "a/t.json"),
            ("a/t.json", 2, "a/t.2.json"),
            ("t", 3, "t.3"),
            ("a.b/t.x.json", 2, "a.b/t.x.2.json"),
        ] {
            assert_eq!(numbered(Path::new(path), number), Path::new(name));
        }
    }
}
