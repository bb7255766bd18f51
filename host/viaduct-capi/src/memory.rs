// SPDX-License-Identifier: Apache-2.0
//! Card memory of the program: allocation, copies, words.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use host::{CardBuffer, Rows};

use crate::args;
use crate::card::{CARDS, Card};
use crate::error::{Code, Result, call, caught, fail};
use crate::handle::{Handle, lock};
use crate::pending::{Failed, Lent, Pending, begun};
use crate::slot::{SLOTS, Slot};

/// `viaduct_rows`; its size is checked here and, from C, by `tests/c/abi.c`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Block {
    bytes: u64,
    rows: u64,
    card_step: u64,
    host_step: u64,
}
const _: () = assert!(size_of::<Block>() == 32);

impl From<Block> for Rows {
    fn from(block: Block) -> Self {
        let Block { bytes, rows, card_step, host_step } = block;
        Self { bytes, rows, card_step, host_step }
    }
}

impl Card {
    /// The allocated memory that an address is in, and the offset there.
    pub(crate) fn memory_at(&self, addr: u64) -> Result<(Arc<CardBuffer>, u64)> {
        let memory = lock(&self.memory);
        match memory.range(..=addr).next_back() {
            Some((start, found)) if addr - start < found.len().max(1) => {
                Ok((Arc::clone(found), addr - start))
            }
            _ => {
                let text = format!("card address {addr:#x} is not in memory of viaduct_alloc_memory()");
                fail(Code::Argument, text)
            }
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_alloc_memory(card: Handle<Card>, length: u64, addr: *mut u64) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        let place = unsafe { args::result(addr, "addr")? };
        if length == 0 {
            return fail(Code::Argument, "length is 0; give the bytes that are needed");
        }
        let memory = card.card.allocate(length)?;
        place.write(memory.addr());
        lock(&card.memory).insert(memory.addr(), Arc::new(memory));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_free_memory(card: Handle<Card>, addr: u64) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        let mut memory = lock(&card.memory);
        match memory.get(&addr) {
            None => {
                let text = format!("no memory of viaduct_alloc_memory() begins at card address {addr:#x}");
                fail(Code::Argument, text)
            }
            // Copies of other threads hold it, too; new ones cannot begin, as the table is locked.
            Some(found) if found.is_used() || Arc::strong_count(found) > 1 => fail(
                Code::Busy,
                format!("a run or copy is using the card memory at {addr:#x}; wait for its end"),
            ),
            Some(_) => {
                memory.remove(&addr);
                Ok(())
            }
        }
    })
}

/// A block in card memory and in that of the program.
#[derive(Clone, Copy)]
struct Copy {
    addr: u64,
    block: Block,
}

impl Copy {
    /// Bytes of the program's memory, checked as far as it can be without the slot.
    fn host_bytes(&self) -> Result<u64> {
        Ok(Rows::from(self.block).host_bytes()?)
    }

    /// # Safety
    /// `data` is the bytes of the block, which stay as they are.
    unsafe fn inward(self, slot: &Slot, data: *const c_void) -> Result<()> {
        let (memory, offset) = slot.card().memory_at(self.addr)?;
        // SAFETY: the caller promises the same.
        let bytes = unsafe { args::bytes(data, self.host_bytes()?, "data")? };
        Ok(slot.slot.copy_rows_in(&memory, offset, self.block.into(), bytes)?)
    }

    /// # Safety
    /// `data` is the bytes of the block, exclusively.
    unsafe fn outward(self, slot: &Slot, data: *mut c_void) -> Result<()> {
        let (memory, offset) = slot.card().memory_at(self.addr)?;
        // SAFETY: the caller promises the same; whatever the bytes are, they are initialised as far as C is concerned.
        let bytes = unsafe { args::bytes_mut(data, self.host_bytes()?, "data")? };
        Ok(slot.slot.copy_rows_out(&memory, offset, self.block.into(), bytes)?)
    }
}

/// The block of an argument.
///
/// # Safety
/// `block` is NULL or a `viaduct_rows` that is not changed during the call.
unsafe fn block(addr: u64, block: *const Block) -> Result<Copy> {
    // SAFETY: the caller promises the same.
    match unsafe { args::optional_input(block, "rows")? } {
        Some(block) => Ok(Copy { addr, block: *block }),
        None => fail(Code::Argument, "rows is NULL"),
    }
}

fn one(addr: u64, bytes: u64) -> Copy {
    Copy { addr, block: Block { bytes, rows: 1, card_step: bytes, host_step: bytes } }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_copy_in(
    slot: Handle<Slot>,
    addr: u64,
    data: *const c_void,
    length: u64,
) -> c_int {
    // SAFETY: the program gives what the header says.
    call(|| unsafe { one(addr, length).inward(&*SLOTS.get(slot)?, data) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_copy_out(
    slot: Handle<Slot>,
    addr: u64,
    data: *mut c_void,
    length: u64,
) -> c_int {
    // SAFETY: the program gives what the header says.
    call(|| unsafe { one(addr, length).outward(&*SLOTS.get(slot)?, data) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_copy_rows_in(
    slot: Handle<Slot>,
    addr: u64,
    data: *const c_void,
    rows: *const Block,
) -> c_int {
    // SAFETY: the program gives what the header says.
    call(|| unsafe { block(addr, rows)?.inward(&*SLOTS.get(slot)?, data) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_copy_rows_out(
    slot: Handle<Slot>,
    addr: u64,
    data: *mut c_void,
    rows: *const Block,
) -> c_int {
    // SAFETY: the program gives what the header says.
    call(|| unsafe { block(addr, rows)?.outward(&*SLOTS.get(slot)?, data) })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_copy_in_begin(
    slot: Handle<Slot>,
    addr: u64,
    data: *const c_void,
    rows: *const Block,
    pending: *mut Handle<Pending>,
) -> c_int {
    let data = Lent(data);
    // SAFETY: the program leaves the bytes as they are until the end of the copy is told.
    let work = move |copy: Copy, slot: &Slot| unsafe { copy.inward(slot, data.get()) };
    // SAFETY: the program gives what the header says.
    unsafe { begun_copy(slot, addr, rows, pending, work) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_copy_out_begin(
    slot: Handle<Slot>,
    addr: u64,
    data: *mut c_void,
    rows: *const Block,
    pending: *mut Handle<Pending>,
) -> c_int {
    let data = Lent(data);
    // SAFETY: the bytes are the library's until the end of the copy is told.
    let work = move |copy: Copy, slot: &Slot| unsafe { copy.outward(slot, data.get()) };
    // SAFETY: the program gives what the header says.
    unsafe { begun_copy(slot, addr, rows, pending, work) }
}

/// Begins a copy on a thread of its own.
///
/// # Safety
/// `rows` is NULL or a block that is not changed during the call, and `pending` NULL or an exclusive location for a handle.
unsafe fn begun_copy(
    slot: Handle<Slot>,
    addr: u64,
    rows: *const Block,
    pending: *mut Handle<Pending>,
    work: impl FnOnce(Copy, &Slot) -> Result<()> + Send + 'static,
) -> c_int {
    let begin = |slot: &Arc<Slot>, failed: &Failed| {
        // SAFETY: the caller promises the same.
        let copy = unsafe { block(addr, rows)? };
        // What is wrong with the arguments is told now.
        slot.card().memory_at(addr)?;
        copy.host_bytes()?;
        let (slot, failed) = (Arc::clone(slot), Arc::clone(failed));
        Ok(host::Pending::spawn(move || {
            *lock(&failed) = caught(|| work(copy, &slot)).err();
            Ok(())
        })?)
    };
    // SAFETY: the caller promises the same.
    unsafe { begun(slot, pending, begin) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_read_word(slot: Handle<Slot>, addr: u64, value: *mut u32) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        let place = unsafe { args::result(value, "value")? };
        let (memory, offset) = slot.card().memory_at(addr)?;
        place.write(slot.slot.read_word(&memory, offset)?);
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_write_word(slot: Handle<Slot>, addr: u64, value: u32) -> c_int {
    call(|| {
        let slot = SLOTS.get(slot)?;
        let (memory, offset) = slot.card().memory_at(addr)?;
        Ok(slot.slot.write_word(&memory, offset, value)?)
    })
}
