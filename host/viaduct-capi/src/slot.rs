// SPDX-License-Identifier: Apache-2.0
//! Slots: the app in a slot, its ports and registers.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use viaduct_build::{Access, Container, Format, Geometry, Length, Manifest, Register, app_lacks};

use crate::args;
use crate::card::{BUILDING, CARDS, Card, project, tell, variant};
use crate::error::{Code, Failure, Result, call, fail};
use crate::handle::{Handle, Table, lock};
use crate::types;

/// All open slots.
pub(crate) static SLOTS: Table<Slot> = Table::new("slot");

/// A claimed slot with an app in it.
pub struct Slot {
    pub(crate) slot: host::Slot,
    pub(crate) app: Manifest,
    /// Values that the program has written to registers, except pulses: 32-bit words by offset.
    written: Mutex<BTreeMap<u32, u32>>,
    /// Of mappings that are made from now on.
    pub(crate) placement: Mutex<host::Placement>,
    /// C strings with the names of the ports, in order, and of the registers.
    port_names: Vec<CString>,
    register_names: Vec<CString>,
    /// Runs under way, by [`Kind`].
    taken: AtomicU8,
    /// The card is in use while the slot is open. Dropped last.
    card: Arc<Card>,
}

/// The manifest of a slot without an app, but for its register: a manifest has at least one, or a port.
const NO_APP: &str = "[app]\nname = 'no_app'\nversion = '0.0.0'\nsummary = 'No app'\ntop = 'no_app'\n\
                      [[register]]\nname = 'r'\nwidth = 1\naccess = 'rw'\n";

fn no_app() -> Result<Manifest> {
    Ok(Manifest { registers: Vec::new(), ..Manifest::parse("no_app", NO_APP)? })
}

/// Ports of an app: name, direction, and length of an output.
fn ports(app: &Manifest) -> impl Iterator<Item = (&str, i32, Length)> {
    let inputs = app.stream_in.iter().map(|s| (s.name.as_str(), types::IN, Length::Any));
    let outputs = app.stream_out.iter().map(|s| (s.name.as_str(), types::OUT, s.length));
    let memory = app.memory.iter().map(|m| (m.name.as_str(), types::MEMORY, Length::Any));
    inputs.chain(outputs).chain(memory)
}

/// Names come from a manifest, which allows no zero byte in them.
fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

impl Slot {
    fn load(card: Arc<Card>, index: i32, app: Option<&str>) -> Result<Self> {
        let (app, image) = match app {
            Some(app) => image(&card, app).map(|(app, image)| (app, Some(image)))?,
            None => (no_app()?, None),
        };
        let slot = match usize::try_from(index) {
            Ok(index) => card.card.slot(index)?,
            Err(_) if index == -1 => card.card.any_slot().map_err(|e| match e {
                host::Error::Invalid(_) => Failure::from(e).coded(Code::Busy),
                e => e.into(),
            })?,
            Err(_) => return fail(Code::NotFound, format!("there is no slot {index}; -1 takes any")),
        };
        match image {
            Some(image) => slot.load(&image)?,
            None => slot.open_space()?,
        }
        Ok(Self {
            slot,
            port_names: ports(&app).map(|(name, ..)| c_name(name)).collect(),
            register_names: app.registers.iter().map(|r| c_name(&r.name)).collect(),
            app,
            written: Mutex::default(),
            placement: Mutex::default(),
            taken: AtomicU8::new(0),
            card,
        })
    }

    /// The card that the slot is on.
    pub(crate) fn card(&self) -> &Card {
        &self.card
    }

    /// The register of that name.
    pub(crate) fn register(&self, name: &str) -> Result<&Register> {
        self.app.register(name).ok_or_else(|| {
            let names = self.app.registers.iter().map(|r| r.name.as_str());
            Failure::new(Code::NotFound, app_lacks(&self.app.name, "register", name, names))
        })
    }

    /// The register in the host library's form.
    pub(crate) fn location(register: &Register) -> host::Register {
        host::Register { offset: register.offset, width: register.width }
    }

    fn write_words(&self, register: &Register, words: &[u32]) -> Result<()> {
        if register.access == Access::Ro {
            let name = &register.name;
            return fail(
                Code::Argument,
                format!("register {name} is driven by the app; it can only be read"),
            );
        }
        (register.offset..).step_by(4).zip(words).try_for_each(|(offset, word)| self.write(offset, *word))
    }

    fn write(&self, offset: u32, value: u32) -> Result<()> {
        self.slot.write_register(offset, value)?;
        let keeps =
            |r: &Register| r.access == Access::Rw && (r.offset..r.offset + 4 * r.words()).contains(&offset);
        if self.app.registers.iter().any(keeps) {
            lock(&self.written).insert(offset, value);
        }
        Ok(())
    }

    /// After a reset of the app: restores the values of registers.
    pub(crate) fn write_again(&self) {
        let mut written = lock(&self.written);
        if written.iter().any(|(offset, value)| self.slot.write_register(*offset, *value).is_err()) {
            written.clear();
        }
    }

    /// Registers have their reset values.
    fn forget_written(&self) {
        lock(&self.written).clear();
    }

    /// Fails if a register that must be set is not.
    pub(crate) fn check_required(&self) -> Result<()> {
        let written = lock(&self.written);
        for r in self.app.registers.iter().filter(|r| r.required) {
            if !(0..r.words()).all(|word| written.contains_key(&(r.offset + 4 * word))) {
                let text = format!("register {} must be set before the app runs: {}", r.name, r.doc);
                return fail(Code::Argument, text);
            }
        }
        Ok(())
    }
}

/// What a run works with, a bit for each part. A slot has one run of each part at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Input = 1,
    Output = 2,
    Streams = 3,
    Memory = 4,
}

/// A slot, taken for a run until this is dropped.
pub(crate) struct Taken {
    pub slot: Arc<Slot>,
    kind: Kind,
}

impl Taken {
    /// Takes the slot; only one run of a kind may be active.
    pub fn new(slot: Arc<Slot>, kind: Kind) -> Result<Self> {
        let kinds = kind as u8;
        let free = |taken: u8| (taken & kinds == 0).then_some(taken | kinds);
        if slot.taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, free).is_err() {
            let what = match kind {
                Kind::Streams => "a run",
                Kind::Input => "a run or transfer into the app",
                Kind::Output => "a run or transfer out of the app",
                Kind::Memory => "a memory run",
            };
            return fail(Code::Busy, format!("{what} is running on this slot already; wait for its end"));
        }
        Ok(Self { slot, kind })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.slot.taken.fetch_and(!(self.kind as u8), Ordering::Release);
    }
}

/// Manifest and image of an app, given by name or by the path of an image.
fn image(card: &Card, app: &str) -> Result<(Manifest, Vec<u8>)> {
    if app.contains('/') || app.ends_with(".via") {
        let path = Path::new(app);
        let (image, Container { name, .. }) = Container::read(path)?;
        let manifest = match Manifest::beside(path, &name)? {
            Some(manifest) => manifest,
            None => project()?.load(&name)?,
        };
        return Ok((manifest, image));
    }
    let project = project()?;
    let manifest = project.load(app)?;
    let info = card.card.info();
    let geometry = Geometry { data_width: 8 * info.data_bytes as u32, streams: info.streams as u32 };
    let _one_at_a_time = lock(BUILDING.get());
    let built = project.build_variant(&manifest, &geometry, variant(), &mut tell)?;
    Ok((manifest, Container::read(&built.container)?.0))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_load(
    card: Handle<Card>,
    index: i32,
    app: *const c_char,
    slot: *mut Handle<Slot>,
) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        // SAFETY: the program gives what the header says: a string, and an exclusive location for a handle.
        let (app, place) = unsafe { (args::text(app, "app")?, args::result(slot, "slot")?) };
        place.write(SLOTS.insert(Slot::load(card, index, Some(app))?));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_claim(card: Handle<Card>, index: i32, slot: *mut Handle<Slot>) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        // SAFETY: the program gives what the header says: an exclusive location for a handle.
        let place = unsafe { args::result(slot, "slot")? };
        place.write(SLOTS.insert(Slot::load(card, index, None)?));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_unload(slot: Handle<Slot>) -> c_int {
    call(|| {
        let Slot { slot, .. } = &SLOTS.remove(slot)?;
        Ok(slot.unmap(0..1 << 48)?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_reset(slot: Handle<Slot>) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        slot.slot.reset()?;
        slot.forget_written();
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_pause(slot: Handle<Slot>) -> c_int {
    call(|| Ok(SLOTS.get(slot)?.slot.pause()?))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_resume(slot: Handle<Slot>) -> c_int {
    call(|| Ok(SLOTS.get(slot)?.slot.resume()?))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_slot_index(slot: Handle<Slot>, index: *mut u32) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        unsafe { args::result(index, "index")? }.write(slot.slot.index() as u32);
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_get_port(slot: Handle<Slot>, index: u32, port: *mut types::Port) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        let place = unsafe { args::result(port, "port")? };
        let mut ports = slot.port_names.iter().zip(ports(&slot.app));
        let Some((name, (_, direction, length))) = ports.nth(index as usize) else {
            return fail(Code::NotFound, format!("app {} has no port number {index}", slot.app.name));
        };
        let (length_kind, length) = match length {
            Length::Any => (types::LENGTH_ANY, 0),
            Length::Same => (types::LENGTH_SAME, 0),
            Length::Message(bytes) => (types::LENGTH_MESSAGE, bytes),
        };
        place.write(types::Port { name: name.as_ptr(), direction, length_kind, length });
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_get_register(
    slot: Handle<Slot>,
    index: u32,
    reg: *mut types::Register,
) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        let place = unsafe { args::result(reg, "reg")? };
        let index = index as usize;
        let (Some(name), Some(register)) = (slot.register_names.get(index), slot.app.registers.get(index))
        else {
            return fail(Code::NotFound, format!("app {} has no register number {index}", slot.app.name));
        };
        place.write(types::Register {
            name: name.as_ptr(),
            offset: register.offset,
            width: register.width,
            access: match register.access {
                Access::Rw => types::ACCESS_RW,
                Access::Ro => types::ACCESS_RO,
                Access::Pulse => types::ACCESS_PULSE,
            },
            required: register.required.into(),
        });
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_set(slot: Handle<Slot>, name: *const c_char, text: *const c_char) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: strings.
        let (name, text) = unsafe { (args::text(name, "name")?, args::text(text, "text")?) };
        let register = slot.register(name)?;
        slot.write_words(register, &register.parse(text)?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_set_bytes(
    slot: Handle<Slot>,
    name: *const c_char,
    data: *const c_void,
    length: usize,
) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: a string, and `length` bytes that stay as they are during the call.
        let (name, bytes) = unsafe { (args::text(name, "name")?, args::bytes(data, length as u64, "data")?) };
        let register = slot.register(name)?;
        slot.write_words(register, &words(register, bytes)?)
    })
}

/// Little-endian words of a value given as bytes.
fn words(register: &Register, bytes: &[u8]) -> Result<Vec<u32>> {
    let (name, width) = (&register.name, register.width);
    let room = width.div_ceil(8) as usize;
    let given = bytes.len();
    if register.format == Format::Bytes && given != room {
        return fail(Code::Argument, format!("register {name}: {given} bytes given, it holds {room}"));
    }
    let fits = bytes.iter().enumerate().all(|(i, byte)| match width.saturating_sub(8 * i as u32) {
        left @ 0..8 => byte >> left == 0,
        _ => true,
    });
    if given > room || !fits {
        return fail(Code::Argument, format!("register {name}: the value does not fit {width} bits"));
    }
    let mut padded = bytes.to_vec();
    padded.resize(4 * register.words() as usize, 0);
    Ok(padded.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_get_bytes(
    slot: Handle<Slot>,
    name: *const c_char,
    data: *mut c_void,
    capacity: usize,
    length: *mut usize,
) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: a string, and NULL or an exclusive location.
        let (name, length) = unsafe { (args::text(name, "name")?, args::optional_result(length, "length")?) };
        let register = slot.register(name)?;
        let room = register.width.div_ceil(8) as usize;
        if let Some(length) = length {
            length.write(room);
        }
        if data.is_null() || capacity < room {
            let text = format!("register {name} has {room} bytes, the buffer {capacity}");
            return fail(if data.is_null() && capacity > 0 { Code::Argument } else { Code::TooSmall }, text);
        }
        let bytes = slot.slot.read_wide(Slot::location(register))?;
        // SAFETY: the program gives `capacity` bytes of its own, not NULL and at least `room`, as checked above; no more are written.
        unsafe { data.cast::<u8>().copy_from(bytes.as_ptr(), room.min(bytes.len())) };
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_read32(slot: Handle<Slot>, offset: u32, value: *mut u32) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        unsafe { args::result(value, "value")? }.write(slot.slot.read_register(offset)?);
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_write32(slot: Handle<Slot>, offset: u32, value: u32) -> c_int {
    call(|| SLOTS.get(slot)?.write(offset, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(text: &str) -> Register {
        let text = format!(
            "[app]\nname='t'\nversion='0.1.0'\nsummary='t'\ntop='t'\n[[register]]\nname='r'\naccess='rw'\n{text}"
        );
        Manifest::parse("apps/t", &text).unwrap().registers.remove(0)
    }

    #[test]
    fn bytes_become_words_if_they_fit() {
        let number = register("width=33\n");
        assert_eq!(words(&number, &[1]).unwrap(), [1, 0]);
        assert_eq!(words(&number, &[1, 2, 3, 4, 1]).unwrap(), [0x0403_0201, 1]);
        assert!(words(&number, &[0, 0, 0, 0, 2]).is_err());
        assert!(words(&number, &[0; 6]).is_err());
        let key = register("width=64\nformat='bytes'\n");
        assert_eq!(words(&key, &[0xff; 8]).unwrap(), [u32::MAX; 2]);
        assert!(words(&key, &[0; 7]).is_err());
    }
}
