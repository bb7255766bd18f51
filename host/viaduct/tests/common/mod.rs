// SPDX-License-Identifier: Apache-2.0
//! A fake card: the card's side of registers, rings, translation, movers and DMA, executed synchronously in
//! Rust. It follows docs/interfaces.md unless a test makes it violate a rule.
#![allow(dead_code)] // each test file uses a part

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use viaduct::regs::*;
use viaduct_pci::{DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Result};

pub const SLOTS: usize = 2;
pub const STREAMS: u32 = 2;
pub const BEAT: u64 = 64;
const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;

/// How the card misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sabotage {
    #[default]
    None,
    /// Commands are fetched and never completed.
    Silent,
    /// Every completion is preceded by one with a tag that was never used.
    BadTags,
    /// Every copy into the card fails.
    HostErr,
    /// One copy into the card fails, after so many that succeed.
    FailCopy(usize),
    /// Writes to the page table are answered with an error.
    TableErr,
    /// The rings of slots below this one never stop.
    Stuck(usize),
}

/// A stream app: bytes in, bytes out.
pub trait App: Send {
    /// Accepts `data`, the end of the message if `last`, and appends its output; returns whether the output message ends.
    fn stream(&mut self, data: &[u8], last: bool, out: &mut Vec<u8>) -> bool;

    /// The same for messages of several ids: the id of the output message that ends, if one does.
    fn stream_of(&mut self, id: u8, data: &[u8], last: bool, out: &mut Vec<u8>) -> Option<u8> {
        self.stream(data, last, out).then_some(id)
    }
}

impl<F: FnMut(&[u8], bool, &mut Vec<u8>) -> bool + Send> App for F {
    fn stream(&mut self, data: &[u8], last: bool, out: &mut Vec<u8>) -> bool {
        self(data, last, out)
    }
}

/// Returns its input.
pub fn copy(data: &[u8], last: bool, out: &mut Vec<u8>) -> bool {
    out.extend(data);
    last
}

/// Registers of the memory app that every slot has: adds 1 to each byte of a range.
pub const REG_BASE: u32 = 0x100;
pub const REG_BYTES: u32 = 0x108;
pub const REG_START: u32 = 0x110;
pub const REG_DONE: u32 = 0x114;
pub const REG_ERRORS: u32 = 0x118;
/// 1: it restarts whenever it is done.
pub const REG_FOREVER: u32 = 0x11c;

#[derive(Clone, Copy, Default)]
struct Ring {
    base: u64,
    log2: u32,
    on: bool,
    index: u16,
    bell: u16,
    armed: bool,
}

impl Ring {
    fn at(&self, index: u16) -> u64 {
        self.base + u64::from(index & ((1 << self.log2) - 1)) * 32
    }
}

#[derive(Clone, Copy)]
struct Entry {
    pte: u64,
    accessed: bool,
    dirty: bool,
}

#[derive(Clone, Copy)]
struct Move {
    tag: u32,
    va: u64,
    len: u64,
    end: bool,
    id: u8,
    done: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Waits(u64),
    Denied(u64),
}

struct MemRun {
    va: u64,
    end: u64,
}

struct SlotState {
    ctrl: u32,
    loaded: bool,
    cause: Option<u8>,
    cmd: Ring,
    cpl: Ring,
    evt: Ring,
    tlb: HashMap<(u64, bool), Entry>,
    number: u16, // commands for translations that were carried out
    order: VecDeque<(u64, bool)>,
    moves_in: Vec<VecDeque<Move>>,
    moves_out: Vec<VecDeque<Move>>,
    /// Output of the app, and the id of the message that ends with it.
    out: Vec<(Vec<u8>, Option<u8>)>,
    faults: [Option<Fault>; 2], // reads, writes
    app: Box<dyn App>,
    registers: HashMap<u32, u32>,
    weight: u32,
    run: Option<MemRun>,
}

struct State {
    slots: Vec<SlotState>,
    dma: BTreeMap<u64, (Arc<HostMemory>, DmaAccess)>,
    memory: HashMap<u64, Vec<u8>>,
    time: u64,
    irqs: u64,
    icap: (Vec<u32>, u32),
    sabotage: Sabotage,
    tlb_size: usize,
    seen: Vec<u8>,                        // operations executed
    bells: usize,                         // doorbells of commands
    held: bool,                           // no command is fetched
    tables: bool,                         // there is memory for page tables
    late: Option<Vec<(usize, [u64; 3])>>, // completions that are held back
    deaf: bool,                           // no interrupt can be waited for
}

/// The card.
pub struct FakeCard {
    info: FunctionInfo,
    state: Mutex<State>,
    fired: Condvar,
}

impl FakeCard {
    /// Weight of a slot.
    pub fn weight(&self, slot: usize) -> u32 {
        self.state.lock().unwrap().slots[slot].weight
    }

    pub fn new() -> Arc<Self> {
        Self::with_tlb(4096)
    }

    /// A card whose slots hold `tlb_size` translations.
    pub fn with_tlb(tlb_size: usize) -> Arc<Self> {
        let slot = || SlotState {
            ctrl: 0,
            loaded: false,
            cause: None,
            cmd: Ring::default(),
            cpl: Ring::default(),
            evt: Ring::default(),
            tlb: HashMap::new(),
            number: 0,
            order: VecDeque::new(),
            moves_in: vec![VecDeque::new(); STREAMS as usize],
            moves_out: vec![VecDeque::new(); STREAMS as usize],
            out: vec![(Vec::new(), None); STREAMS as usize],
            faults: [None; 2],
            app: Box::new(copy),
            registers: HashMap::new(),
            weight: 0,
            run: None,
        };
        let info = FunctionInfo {
            vendor: 0x1234,
            device: 0x5678,
            bar_sizes: [0x40000, 0, 0x10000, 0, 0, 0],
            vectors: 2 * SLOTS as u16,
        };
        let state = State {
            slots: (0..SLOTS).map(|_| slot()).collect(),
            dma: BTreeMap::new(),
            memory: HashMap::new(),
            time: 1000,
            irqs: 0,
            icap: (Vec::new(), 0),
            sabotage: Sabotage::None,
            tlb_size,
            seen: Vec::new(),
            bells: 0,
            held: false,
            tables: false,
            late: None,
            deaf: false,
        };
        Arc::new(Self { info, state: Mutex::new(state), fired: Condvar::new() })
    }

    /// A card with page tables. They hold what the TLBs hold.
    pub fn with_tables() -> Arc<Self> {
        let card = Self::new();
        card.state.lock().unwrap().tables = true;
        card
    }

    pub fn sabotage(&self, how: Sabotage) {
        self.state.lock().unwrap().sabotage = how;
    }

    pub fn set_app(&self, slot: usize, app: impl App + 'static) {
        self.state.lock().unwrap().slots[slot].app = Box::new(app);
    }

    /// A guard cuts the slot off.
    pub fn violate(&self, slot: usize, cause: u8) {
        let mut state = self.state.lock().unwrap();
        state.slots[slot].cause = Some(cause);
        state.event(slot, cause, false, 0);
        state.pump(slot);
        self.fired.notify_all();
    }

    /// Many accesses miss at once. They do not wait for a response.
    pub fn miss(&self, slot: usize, accesses: &[(u64, bool)]) {
        let mut state = self.state.lock().unwrap();
        for &(va, write) in accesses {
            state.event(slot, 1, write, va);
        }
        self.fired.notify_all();
    }

    /// The bytes of a page that a slot sees now, if it is mapped.
    pub fn page(&self, slot: usize, va: u64) -> Option<Vec<u8>> {
        let mut state = self.state.lock().unwrap();
        let tlb = &state.slots[slot].tlb;
        let small = tlb.get(&(va, false)).map(|entry| entry.pte & !0xfff);
        let huge = || tlb.get(&(va - va % HUGE, true)).map(|entry| (entry.pte & !0xfff) + va % HUGE);
        let at = small.or_else(huge)?;
        Some(state.card_read(at, PAGE as usize))
    }

    /// An access that reads, if its page is mapped: the card notes it.
    pub fn read(&self, slot: usize, va: u64) {
        if self.page(slot, va / PAGE * PAGE).is_some() {
            let read = self.state.lock().unwrap().access(slot, va, &mut [0], false);
            assert!(read.is_ok(), "it is mapped");
        }
    }

    /// An access that writes: whether it is allowed; `None` if it waits for its page, and is to be tried again.
    pub fn write(&self, slot: usize, va: u64, data: &[u8]) -> Option<bool> {
        let result = self.state.lock().unwrap().access(slot, va, &mut data.to_vec(), true);
        self.fired.notify_all();
        match result {
            Ok(()) => Some(true),
            Err(true) => Some(false),
            Err(false) => None,
        }
    }

    /// No interrupt can be waited for, as when a link fails, or it can again.
    pub fn be_deaf(&self, deaf: bool) {
        self.state.lock().unwrap().deaf = deaf;
        self.fired.notify_all();
    }

    /// Fetches no command, or those that have come meanwhile.
    pub fn hold(&self, hold: bool) {
        let mut state = self.state.lock().unwrap();
        state.held = hold;
        (0..SLOTS).for_each(|slot| state.pump(slot));
        self.fired.notify_all();
    }

    /// Holds completions back, or posts those that were.
    pub fn hold_completions(&self, hold: bool) {
        let mut state = self.state.lock().unwrap();
        let late = std::mem::replace(&mut state.late, hold.then(Vec::new));
        for (slot, words) in late.into_iter().flatten() {
            state.post(slot, false, words);
        }
        self.fired.notify_all();
    }

    /// An access finds a damaged entry. It does not wait for a response.
    pub fn damage(&self, slot: usize, va: u64, write: bool) {
        self.state.lock().unwrap().event(slot, 4, write, va);
        self.fired.notify_all();
    }

    /// How often the host has rung the doorbell of commands.
    pub fn bells(&self) -> usize {
        self.state.lock().unwrap().bells
    }

    /// Bus ranges that are mapped now.
    pub fn mapped_ranges(&self) -> usize {
        self.state.lock().unwrap().dma.len()
    }

    /// Translations that a slot holds now.
    pub fn translations(&self, slot: usize) -> usize {
        self.state.lock().unwrap().slots[slot].tlb.len()
    }

    /// Channels of the card memory that a slot's translations lead to, in the order of the virtual addresses.
    pub fn channels(&self, slot: usize) -> Vec<u64> {
        let state = self.state.lock().unwrap();
        let mut all: Vec<_> =
            state.slots[slot].tlb.iter().map(|((va, _), entry)| (*va, entry.pte >> 34)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, channel)| channel).collect()
    }

    /// How often an operation was executed.
    pub fn count(&self, op: u8) -> usize {
        self.state.lock().unwrap().seen.iter().filter(|seen| **seen == op).count()
    }

    pub fn ctrl(&self, slot: usize) -> u32 {
        self.state.lock().unwrap().slots[slot].ctrl
    }

    pub fn write_card_memory(&self, addr: u64, data: &[u8]) {
        self.state.lock().unwrap().card_write(addr, data);
    }

    pub fn read_card_memory(&self, addr: u64, len: usize) -> Vec<u8> {
        self.state.lock().unwrap().card_read(addr, len)
    }
}

impl State {
    fn host(&self, addr: u64, len: u64, write: bool) -> Option<(Arc<HostMemory>, usize)> {
        let (start, (memory, access)) = self.dma.range(..=addr).next_back()?;
        let offset = addr - start;
        let allowed = if write { DmaAccess::Read } else { DmaAccess::Write } != *access;
        (allowed && offset + len <= memory.len() as u64).then(|| (Arc::clone(memory), offset as usize))
    }

    fn host_read(&self, addr: u64, len: u64) -> Option<Vec<u8>> {
        let (memory, offset) = self.host(addr, len, false)?;
        let mut data = vec![0; len as usize];
        memory.read(offset, &mut data);
        Some(data)
    }

    fn host_write(&self, addr: u64, data: &[u8]) -> Option<()> {
        let (memory, offset) = self.host(addr, data.len() as u64, true)?;
        memory.write(offset, data);
        Some(())
    }

    fn card_read(&mut self, addr: u64, len: usize) -> Vec<u8> {
        let mut data = Vec::with_capacity(len);
        while data.len() < len {
            let at = addr + data.len() as u64;
            let offset = (at % PAGE) as usize;
            let part = (len - data.len()).min(PAGE as usize - offset);
            let page = self.memory.entry(at / PAGE).or_insert_with(|| vec![0xee; PAGE as usize]);
            data.extend(&page[offset..offset + part]);
        }
        data
    }

    fn card_write(&mut self, addr: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let at = addr + done as u64;
            let offset = (at % PAGE) as usize;
            let part = (data.len() - done).min(PAGE as usize - offset);
            let page = self.memory.entry(at / PAGE).or_insert_with(|| vec![0xee; PAGE as usize]);
            page[offset..offset + part].copy_from_slice(&data[done..done + part]);
            done += part;
        }
    }

    fn post(&mut self, slot: usize, is_evt: bool, words: [u64; 3]) {
        let s = &mut self.slots[slot];
        let ring = if is_evt { &mut s.evt } else { &mut s.cpl };
        if !ring.on {
            return;
        }
        let used = ring.index.wrapping_sub(ring.bell);
        assert!(u32::from(used) < 1 << ring.log2, "the host let a ring overflow");
        let phase = u64::from((ring.index >> ring.log2) & 1 == 0) << 63;
        let at = ring.at(ring.index);
        ring.index = ring.index.wrapping_add(1);
        self.time += 10;
        let last = phase | self.time;
        let (memory, offset) = self.host(at, 32, true).expect("rings are mapped");
        for (i, word) in words.into_iter().enumerate() {
            memory.write_u64(offset + 8 * i, word, Ordering::Relaxed);
        }
        memory.write_u64(offset + 24, last, Ordering::Release);
        self.fire(slot);
    }

    fn fire(&mut self, slot: usize) {
        let s = &mut self.slots[slot];
        for (vector, ring) in [(2 * slot, &mut s.cpl), (2 * slot + 1, &mut s.evt)] {
            if ring.armed && ring.index != ring.bell {
                ring.armed = false;
                self.irqs |= 1 << vector;
            }
        }
    }

    fn complete(&mut self, slot: usize, (op, tag): (u8, u32), status: u8, flags: u8, bytes: u64, info: u64) {
        if self.sabotage == Sabotage::Silent {
            return;
        }
        let word0 =
            |tag: u32| u64::from(tag) << 32 | u64::from(status) << 16 | u64::from(op) << 8 | u64::from(flags);
        if self.sabotage == Sabotage::BadTags {
            self.post(slot, false, [word0(!tag), bytes, info]);
        }
        let words = [word0(tag), bytes, info];
        match &mut self.late {
            Some(late) => late.push((slot, words)),
            None => self.post(slot, false, words),
        }
    }

    fn event(&mut self, slot: usize, cause: u8, is_write: bool, va: u64) {
        let info = u64::from(self.slots[slot].number) << 16;
        self.post(slot, true, [u64::from(is_write) << 8 | u64::from(cause), va, info]);
    }

    fn isolated(&self, slot: usize) -> bool {
        let s = &self.slots[slot];
        s.ctrl & 1 == 0 || s.ctrl & 0b1100 != 0 || s.cause.is_some() || !s.loaded
    }

    /// A command is fetched only if there is space for its completion (two of them: see `Sabotage::BadTags`).
    fn has_room(&self, slot: usize) -> bool {
        let s = &self.slots[slot];
        let owed: usize = s.moves_in.iter().chain(&s.moves_out).map(VecDeque::len).sum();
        let used = s.cpl.index.wrapping_sub(s.cpl.bell);
        usize::from(used) + 2 * owed + 2 <= 1 << s.cpl.log2
    }

    fn pump(&mut self, slot: usize) {
        let before = self.slots[slot].cmd;
        let mut index = before.index;
        while !self.held && before.on && index != self.slots[slot].cmd.bell && self.has_room(slot) {
            let entry = self.host_read(before.at(index), 32).expect("the command ring is mapped");
            index = index.wrapping_add(1);
            self.slots[slot].cmd.index = index;
            let word = |i: usize| u64::from_le_bytes(entry[8 * i..8 * i + 8].try_into().unwrap());
            self.execute(slot, [word(0), word(1), word(2), word(3)]);
        }
        if self.sabotage == Sabotage::Silent {
            return;
        }
        if self.isolated(slot) {
            self.abort(slot);
        } else {
            while self.step(slot) {}
        }
    }

    fn abort(&mut self, slot: usize) {
        let s = &mut self.slots[slot];
        s.faults = [None; 2];
        s.run = None;
        let mut ended = Vec::new();
        for (op, queues) in [(0x20, &mut s.moves_in), (0x21, &mut s.moves_out)] {
            ended.extend(queues.iter_mut().flat_map(|q| q.drain(..)).map(|m| (op, m)));
        }
        s.out.fill((Vec::new(), None));
        for (op, m) in ended {
            self.complete(slot, (op, m.tag), 6, 0, m.done, 0);
        }
    }

    fn fails_copy(&mut self) -> bool {
        match self.sabotage {
            Sabotage::HostErr => true,
            Sabotage::FailCopy(0) => {
                self.sabotage = Sabotage::None;
                true
            }
            Sabotage::FailCopy(left) => {
                self.sabotage = Sabotage::FailCopy(left - 1);
                false
            }
            _ => false,
        }
    }

    fn execute(&mut self, slot: usize, [word0, addr0, addr1, len]: [u64; 4]) {
        let (op, flags, port, id) =
            (word0 as u8, (word0 >> 8) as u8, (word0 >> 16) as u8, (word0 >> 24) as u8);
        let tag = (word0 >> 32) as u32;
        self.seen.push(op);
        let huge = flags & 4 != 0;
        let mut status = 0;
        let mut out_flags = 0;
        let mut info = 0;
        let broken = flags & 8 != 0 && self.sabotage == Sabotage::TableErr;
        match op {
            0x00 => {}
            0x02..=0x04 if self.slots[slot].ctrl & 4 != 0 => status = 6,
            0x02 if self.fails_copy() => status = 2,
            0x02 => match self.host_read(addr0, len) {
                Some(data) => self.card_write(addr1, &data),
                None => status = 2,
            },
            0x03 => {
                let data = self.card_read(addr1, len as usize);
                status = if self.host_write(addr0, &data).is_some() { 0 } else { 2 };
            }
            0x04 => self.card_write(addr1, &vec![0; len as usize]),
            0x10 => {
                let aligned = if huge { HUGE } else { PAGE };
                assert_eq!(addr0 % aligned, 0);
                assert_eq!((addr1 & !0xfff) % aligned, 0, "the location of a page is aligned to its size");
                let size = self.tlb_size;
                let s = &mut self.slots[slot];
                let key = (addr0, huge);
                let victim = if s.tlb.contains_key(&key) {
                    Some(key)
                } else if s.order.len() == size {
                    s.order.pop_front()
                } else {
                    None
                };
                if let Some(key) = victim {
                    let old = s.tlb.remove(&key).unwrap();
                    s.order.retain(|k| *k != key);
                    info = key.0;
                    out_flags =
                        8 | u8::from(old.accessed) << 4 | u8::from(old.dirty) << 5 | u8::from(key.1) << 6;
                }
                // The right to write comes with a dirty bit in the table.
                let pte = if broken { addr1 & !4 } else { addr1 };
                s.tlb.insert(key, Entry { pte, accessed: false, dirty: false });
                status = if broken { 3 } else { 0 };
                s.order.push_back(key);
                s.faults.iter_mut().for_each(|f| {
                    if matches!(f, Some(Fault::Waits(_))) {
                        *f = None;
                    }
                });
            }
            0x11 | 0x13 => {
                let s = &mut self.slots[slot];
                match s.tlb.get_mut(&(addr0, huge)) {
                    Some(entry) => {
                        out_flags = u8::from(entry.accessed) << 1 | u8::from(entry.dirty) << 2;
                        entry.accessed = false;
                        if op == 0x11 {
                            s.tlb.remove(&(addr0, huge));
                            s.order.retain(|k| *k != (addr0, huge));
                        }
                    }
                    None => status = 8,
                }
                if broken {
                    (status, out_flags) = (0, out_flags | 0x86);
                }
            }
            0x12 => {
                let s = &mut self.slots[slot];
                status = 8;
                for fault in &mut s.faults {
                    if let Some(Fault::Waits(va)) = *fault {
                        if va / PAGE == addr0 / PAGE {
                            *fault = Some(Fault::Denied(va));
                            status = 0;
                        }
                    }
                }
            }
            0x20 | 0x21 => {
                let s = &mut self.slots[slot];
                let queues = if op == 0x20 { &mut s.moves_in } else { &mut s.moves_out };
                let bad = addr0 % BEAT != 0 || len == 0 || len % BEAT != 0 && (op == 0x21 || flags & 2 == 0);
                match queues.get_mut(usize::from(port)) {
                    None => status = 1,
                    Some(_) if bad => status = 4,
                    Some(queue) if queue.len() == 16 => status = 5,
                    Some(queue) => {
                        queue.push_back(Move { tag, va: addr0, len, end: flags & 2 != 0, id, done: 0 });
                        return;
                    }
                }
            }
            _ => status = 1,
        }
        let mut bytes = 0;
        if (0x10..=0x13).contains(&op) {
            let number = &mut self.slots[slot].number;
            bytes = u64::from(*number);
            *number = number.wrapping_add(1);
        }
        self.complete(slot, (op, tag), status, out_flags, bytes, info);
    }

    /// Translates; `Err(true)`: denied, `Err(false)`: waits.
    fn translate(&mut self, slot: usize, va: u64, write: bool) -> std::result::Result<u64, bool> {
        let s = &mut self.slots[slot];
        let direction = usize::from(write);
        match s.faults[direction] {
            Some(Fault::Denied(_)) => {
                s.faults[direction] = None;
                return Err(true);
            }
            Some(Fault::Waits(_)) => return Err(false),
            None => {}
        }
        let bit = if write { 4 } else { 2 };
        let mut cause = 1;
        for (huge, size) in [(false, PAGE), (true, HUGE)] {
            if let Some(entry) = s.tlb.get_mut(&(va / size * size, huge)) {
                if entry.pte & bit != 0 {
                    entry.accessed = true;
                    entry.dirty |= write;
                    return Ok((entry.pte & !0xfff) + (va % size) + ((entry.pte & 8) << 60));
                }
                cause = 2;
            }
        }
        s.faults[direction] = Some(Fault::Waits(va));
        if self.sabotage == Sabotage::TableErr {
            cause = 4;
        }
        self.event(slot, cause, write, va);
        Err(false)
    }

    fn access(
        &mut self,
        slot: usize,
        va: u64,
        data: &mut [u8],
        write: bool,
    ) -> std::result::Result<(), bool> {
        let place = self.translate(slot, va, write)?;
        let (host, addr) = (place >> 63 != 0, place & !(1 << 63));
        match (host, write) {
            (true, true) => self.host_write(addr, data).ok_or(true)?,
            (true, false) => {
                data.copy_from_slice(&self.host_read(addr, data.len() as u64).ok_or(true)?);
            }
            (false, true) => self.card_write(addr, data),
            (false, false) => data.copy_from_slice(&self.card_read(addr, data.len())),
        }
        Ok(())
    }

    /// Processes a page of data; `false` if there is no work or all of it waits.
    fn step(&mut self, slot: usize) -> bool {
        let mut did = false;
        for port in 0..STREAMS as usize {
            did |= self.step_in(slot, port) | self.step_out(slot, port);
        }
        did | self.step_memory(slot)
    }

    fn step_in(&mut self, slot: usize, port: usize) -> bool {
        // A real app accepts no more input while its output is not accepted.
        if self.slots[slot].out[port].0.len() > 8192 || self.slots[slot].out[port].1.is_some() {
            return false;
        }
        let Some(m) = self.slots[slot].moves_in[port].front().copied() else { return false };
        let va = m.va + m.done;
        let len = (m.len - m.done).min(PAGE - va % PAGE);
        let mut data = vec![0; len as usize];
        let ended = match self.access(slot, va, &mut data, false) {
            Ok(()) => {
                let last = m.end && m.done + len == m.len;
                let s = &mut self.slots[slot];
                let (out, ends) = &mut s.out[port];
                *ends = s.app.stream_of(m.id, &data, last, out).or(*ends);
                s.moves_in[port][0].done += len;
                (m.done + len == m.len).then_some(0)
            }
            Err(true) => Some(7),
            Err(false) => return false,
        };
        if let Some(status) = ended {
            let m = self.slots[slot].moves_in[port].pop_front().unwrap();
            self.complete(slot, (0x20, m.tag), status, 0, m.done, 0);
        }
        true
    }

    fn step_out(&mut self, slot: usize, port: usize) -> bool {
        let Some(m) = self.slots[slot].moves_out[port].front().copied() else { return false };
        let (out, id) = &self.slots[slot].out[port];
        let (id, ends) = (u64::from(id.unwrap_or(0)), id.is_some());
        let va = m.va + m.done;
        let len = (m.len - m.done).min(PAGE - va % PAGE).min(out.len() as u64);
        if len == 0 && !(ends && out.is_empty()) || !ends && (out.len() as u64) < BEAT {
            return false;
        }
        let mut data = out[..len as usize].to_vec();
        let last = ends && len == out.len() as u64;
        match self.access(slot, va, &mut data, true) {
            Ok(()) => {
                let s = &mut self.slots[slot];
                s.out[port].0.drain(..len as usize);
                s.moves_out[port][0].done += len;
                if last {
                    s.out[port].1 = None;
                }
                if last || m.done + len == m.len {
                    let m = s.moves_out[port].pop_front().unwrap();
                    let info = if last { id } else { 0 };
                    self.complete(slot, (0x21, m.tag), 0, u8::from(last), m.done, info);
                }
                true
            }
            Err(true) => {
                let m = self.slots[slot].moves_out[port].pop_front().unwrap();
                self.complete(slot, (0x21, m.tag), 7, 0, m.done, 0);
                true
            }
            Err(false) => false,
        }
    }

    fn step_memory(&mut self, slot: usize) -> bool {
        let Some(MemRun { va, end }) = self.slots[slot].run else { return false };
        if va >= end && self.slots[slot].registers.get(&REG_FOREVER) == Some(&1) {
            let start = self.slots[slot].registers[&REG_BASE];
            let high = self.slots[slot].registers[&(REG_BASE + 4)];
            self.slots[slot].run = Some(MemRun { va: u64::from(high) << 32 | u64::from(start), end });
            return true;
        }
        if va >= end {
            let s = &mut self.slots[slot];
            s.run = None;
            s.registers.insert(REG_DONE, 1);
            self.event(slot, 0x20, false, 0);
            return true;
        }
        let len = (end - va).min(PAGE - va % PAGE);
        let mut data = vec![0; len as usize];
        let mut result = self.access(slot, va, &mut data, false);
        if result.is_ok() {
            data.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            result = self.access(slot, va, &mut data, true);
        }
        match result {
            Ok(()) => {}
            Err(true) => *self.slots[slot].registers.entry(REG_ERRORS).or_default() += 1,
            Err(false) => return false,
        }
        self.slots[slot].run = Some(MemRun { va: va + len, end });
        true
    }

    fn write_app(&mut self, slot: usize, offset: u32, value: u32) {
        let s = &mut self.slots[slot];
        if s.ctrl & 1 == 0 || s.ctrl & 4 != 0 {
            return;
        }
        s.registers.insert(offset, value);
        let get = |r: u32| u64::from(s.registers.get(&r).copied().unwrap_or(0));
        if offset == REG_START && value == 1 {
            let va = get(REG_BASE) | get(REG_BASE + 4) << 32;
            let end = va + (get(REG_BYTES) | get(REG_BYTES + 4) << 32);
            s.run = Some(MemRun { va, end });
            s.registers.insert(REG_DONE, 0);
        }
    }

    fn write_slot(&mut self, slot: usize, register: u64, value: u32) {
        let s = &mut self.slots[slot];
        let set_config = |ring: &mut Ring| {
            let on = value >> 31 != 0;
            if on && !ring.on {
                ring.index = 0;
            }
            if !on {
                (ring.bell, ring.armed) = (0, false);
            }
            (ring.on, ring.log2) = (on, value & 15);
        };
        let low = |ring: &mut Ring| ring.base = ring.base >> 32 << 32 | u64::from(value & !0xfff);
        let high = |ring: &mut Ring| ring.base = ring.base & 0xffff_ffff | u64::from(value) << 32;
        match register {
            VIA_SLOT_CTRL => {
                s.ctrl = value;
                if value & 4 != 0 {
                    s.cause = None;
                    s.registers.clear();
                }
            }
            VIA_SLOT_WEIGHT => s.weight = value,
            VIA_SLOT_SCHED | VIA_SLOT_RATE => {}
            VIA_SLOT_TABLE_BASE => {}
            VIA_SLOT_TABLE_CFG => assert!(value == 0 || self.tables, "a page table is enabled"),
            VIA_SLOT_CMD_BASE_LO => low(&mut s.cmd),
            VIA_SLOT_CPL_BASE_LO => low(&mut s.cpl),
            VIA_SLOT_EVT_BASE_LO => low(&mut s.evt),
            VIA_SLOT_CMD_BASE_HI => high(&mut s.cmd),
            VIA_SLOT_CPL_BASE_HI => high(&mut s.cpl),
            VIA_SLOT_EVT_BASE_HI => high(&mut s.evt),
            VIA_SLOT_CMD_CFG => set_config(&mut s.cmd),
            VIA_SLOT_CPL_CFG => set_config(&mut s.cpl),
            VIA_SLOT_EVT_CFG => set_config(&mut s.evt),
            _ => panic!("write to slot register {register:#x}"),
        }
    }

    fn write_bell(&mut self, slot: usize, register: u64, value: u32) {
        let s = &mut self.slots[slot];
        let ring = match register {
            VIA_BELL_CMD_TAIL => &mut s.cmd,
            VIA_BELL_CPL_HEAD => &mut s.cpl,
            VIA_BELL_EVT_HEAD => &mut s.evt,
            _ => panic!("write to doorbell {register:#x}"),
        };
        if !ring.on {
            return;
        }
        ring.bell = value as u16;
        if register == VIA_BELL_CMD_TAIL {
            self.bells += 1;
            assert!(ring.bell.wrapping_sub(ring.index) <= 1 << ring.log2, "the doorbell jumped");
        } else {
            ring.armed |= value >> 31 != 0;
        }
        self.fire(slot);
    }

    fn read_card(&self, register: u64) -> u32 {
        match register {
            VIA_CARD_ID => 0x5649_4144,
            VIA_CARD_VERSION => 2 << 16 | 1,
            VIA_CARD_GEOMETRY => 6 << 24 | STREAMS << 16 | 2 << 8 | SLOTS as u32,
            VIA_CARD_CLOCK_KHZ => 250_000,
            VIA_CARD_TIME_LO => self.time as u32,
            VIA_CARD_TIME_HI => (self.time >> 32) as u32,
            // The smaller one is too small for page tables.
            VIA_CARD_CHAN_MIB => {
                if self.tables {
                    1024
                } else {
                    62
                }
            }
            // One set with as many ways as it holds.
            VIA_CARD_TLB_PAGE => self.tlb_size as u32,
            VIA_CARD_TLB_HUGE => 8 << 16 | 4,
            VIA_CARD_STATUS => {
                self.slots.iter().enumerate().map(|(i, s)| u32::from(s.loaded) << (16 + i)).sum()
            }
            VIA_CARD_ICAP_STATUS => self.icap.1,
            _ => u32::MAX,
        }
    }

    fn read_slot(&self, slot: usize, register: u64) -> u32 {
        let s = &self.slots[slot];
        match register {
            VIA_SLOT_CTRL => s.ctrl,
            VIA_SLOT_STATUS => {
                u32::from(s.loaded)
                    | 1 << 1
                    | u32::from(self.isolated(slot)) << 3
                    | u32::from(s.cause.unwrap_or(0)) << 8
            }
            VIA_SLOT_RING_STATUS if matches!(self.sabotage, Sabotage::Stuck(end) if slot < end) => 1,
            VIA_SLOT_RING_STATUS => u32::from(s.cmd.on) | u32::from(s.cpl.on) << 1 | u32::from(s.evt.on) << 2,
            0x80..=0x9c => 0,
            _ => panic!("read of slot register {register:#x}"),
        }
    }
}

impl PciFunction for FakeCard {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }

    fn config_read(&self, _: u16, _: &mut [u8]) -> Result<()> {
        Err(PciError::Protocol("the fake card: it has no configuration space".into()))
    }

    fn config_write(&self, _: u16, _: &[u8]) -> Result<()> {
        Err(PciError::Protocol("the fake card: it has no configuration space".into()))
    }

    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        assert_eq!(bar, 0, "doorbells are not read");
        let mut state = self.state.lock().unwrap();
        state.time += 100;
        let (slot, register) = ((offset >> 12 & 0xf) as usize, offset & 0xfff);
        Ok(match offset >> 16 {
            0 => state.read_card(offset),
            1 => state.read_slot(slot, register),
            _ if state.isolated(slot) => u32::MAX,
            _ => state.slots[slot].registers.get(&(register as u32)).copied().unwrap_or(0),
        })
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        let (slot, register) = ((offset >> 12 & 0xf) as usize, offset & 0xfff);
        match (bar, offset >> 16) {
            (0, 0) => match register {
                VIA_CARD_WEIGHTS => {}
                VIA_CARD_ICAP_CTRL if value & 0x100 != 0 => state.icap = (Vec::new(), 1),
                VIA_CARD_ICAP_CTRL => {
                    // Images of this card begin with a magic word; another word is the code of a refusal.
                    let code = match state.icap.0.first() {
                        Some(0x4149_5621) => 0,
                        other => other.copied().unwrap_or(0xff) & 0xff,
                    };
                    state.slots[(value & 15) as usize].loaded = code == 0;
                    state.icap.1 = 2 | code << 8;
                }
                VIA_CARD_ICAP_DATA => state.icap.0.push(value),
                VIA_CARD_KEEP if state.tables => {}
                _ => panic!("write to card register {register:#x}"),
            },
            (0, 1) => state.write_slot(slot, register, value),
            (0, _) => state.write_app(slot, register as u32, value),
            _ => state.write_bell(slot, register, value),
        }
        for slot in 0..SLOTS {
            state.pump(slot);
        }
        if state.irqs != 0 {
            self.fired.notify_all();
        }
        Ok(())
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        let end = iova + memory.len() as u64;
        let overlaps = state.dma.iter().any(|(&at, (m, _))| at < end && iova < at + m.len() as u64);
        assert!(!overlaps, "bus addresses overlap");
        state.dma.insert(iova, (memory, access));
        Ok(())
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        self.state.lock().unwrap().dma.remove(&iova).expect("only what is mapped is unmapped");
        Ok(())
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        let end = Instant::now() + timeout;
        let mut state = self.state.lock().unwrap();
        loop {
            if state.deaf {
                return Err(PciError::Gone("for a moment".into()));
            }
            let fired = state.irqs & mask;
            if fired != 0 {
                state.irqs &= !fired;
                return Ok(fired);
            }
            let now = Instant::now();
            if now >= end {
                return Err(PciError::Timeout(timeout));
            }
            state = self.fired.wait_timeout(state, end - now).unwrap().0;
        }
    }

    fn reset(&self) -> Result<()> {
        Err(PciError::Protocol("the fake card: it is not reset".into()))
    }
}

/// An image that the card accepts.
pub const IMAGE: [u8; 8] = *b"!VIA\0\0\0\0";

/// Slot 0 of a card with short time-outs, with an app.
pub fn open(fake: &Arc<FakeCard>) -> viaduct::Slot {
    let short = Duration::from_millis(300);
    let timeouts = viaduct::Timeouts { stall: short, busy: short, control: short };
    let slot = viaduct::Card::open_with(fake.clone(), timeouts).unwrap().slot(0).unwrap();
    slot.load(&IMAGE).unwrap();
    slot
}

/// The bytes of so many pages, which all differ.
pub fn pattern(pages: u64) -> Vec<u8> {
    (0..(pages * 4096) as usize).map(|i| (i * 13 + (i >> 12) * 5) as u8).collect()
}
