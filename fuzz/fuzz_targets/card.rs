// SPDX-License-Identifier: Apache-2.0
//! A hostile card under the host library: registers, completions and events.
//!
//! A completion that the host accepts belongs to an outstanding command; everything else is ignored. The library uses
//! no tag twice, never overfills the command ring, accesses no register outside of the BARs, and leaves no memory
//! mapped.
#![no_main]

use libfuzzer_sys::arbitrary::{Result as Taken, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use viaduct::desc::{Command, ENTRY_BYTES, Op, PHASE, Prot};
use viaduct::regs::*;
use viaduct::ring::{CMD_OFFSET, CPL_OFFSET, EVT_OFFSET, RING_ENTRIES, RING_LOG2};
use viaduct::{Card, MapOptions, Mapping, Register, SharedBytes, Slot, Source, Tag, Timeouts};
use viaduct_pci::{DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Result};

const BAR_SIZES: [u64; 6] = [1 << 20, 0, 1 << 16, 0, 0, 0];
/// Commands of the harness carry their number and this in a field that these commands do not use; those of the library
/// itself do not.
const MARK: u64 = 0xfeed << 48;

struct Hostile {
    info: FunctionInfo,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The card's actions, a turn at a time.
    script: Vec<u8>,
    at: usize,
    /// Overridden values of registers.
    registers: BTreeMap<u64, u32>,
    maps: BTreeMap<u64, Arc<HostMemory>>,
    cpl: u16,
    evt: u16,
    fetched: u16,
    tail: u16,
    /// Commands that have no completion yet: tag and operation.
    open: Vec<(u32, u8)>,
    /// Number of each command of the harness, by tag.
    marked: HashMap<u32, u64>,
    /// Tag of each of these commands.
    tags: HashMap<u64, u32>,
}

impl State {
    /// Memory of the rings: the first mapping.
    fn rings(&self) -> Option<Arc<HostMemory>> {
        self.maps.values().find(|memory| memory.len() == 3 * usize::from(RING_ENTRIES) * ENTRY_BYTES).cloned()
    }

    /// Takes new commands out of the command ring, as a card does after a doorbell.
    fn fetch(&mut self) {
        let Some(memory) = self.rings() else { return };
        while self.fetched != self.tail {
            let at = CMD_OFFSET + usize::from(self.fetched % RING_ENTRIES) * ENTRY_BYTES;
            let words = [0, 8, 16, 24].map(|word| memory.read_u64(at + word, Ordering::Acquire));
            let (tag, op) = ((words[0] >> 32) as u32, words[0] as u8);
            assert!(!self.open.iter().any(|(other, _)| *other == tag), "tag {tag} is used twice");
            self.open.push((tag, op));
            if words[2] & (0xffff << 48) == MARK {
                self.marked.insert(tag, words[2] & !MARK);
                self.tags.insert(words[2] & !MARK, tag);
            }
            self.fetched = self.fetched.wrapping_add(1);
        }
    }

    /// Writes an entry at the card's position in a ring.
    fn post(&mut self, ring: usize, words: [u64; 4]) {
        let Some(memory) = self.rings() else { return };
        let index = if ring == CPL_OFFSET { &mut self.cpl } else { &mut self.evt };
        let at = ring + usize::from(*index % RING_ENTRIES) * ENTRY_BYTES;
        let phase = if *index >> RING_LOG2 & 1 == 0 { PHASE } else { 0 };
        *index = index.wrapping_add(1);
        for (i, word) in words.into_iter().enumerate() {
            let word = if i == 3 { word & !PHASE | phase } else { word };
            memory.write_u64(at + 8 * i, word, Ordering::Release);
        }
    }

    /// The card's turn, until it is the host's again. An error at the end of the script.
    fn turn(&mut self) -> Taken<u64> {
        self.fetch();
        let script = std::mem::take(&mut self.script);
        let mut u = Unstructured::new(&script[self.at..]);
        let fired = self.steps(&mut u);
        self.at = script.len() - u.len();
        self.script = script;
        fired
    }

    fn steps(&mut self, u: &mut Unstructured) -> Taken<u64> {
        loop {
            if u.is_empty() {
                return Err(libfuzzer_sys::arbitrary::Error::NotEnoughData);
            }
            match u.arbitrary::<u8>()? & 15 {
                // A command completes correctly.
                0..=4 => {
                    let (which, status, flags, bytes, info): (u8, u8, u8, u32, u64) = u.arbitrary()?;
                    let status = if status & 0xc0 == 0 { status & 15 } else { 0 };
                    if !self.open.is_empty() {
                        let (tag, op) = self.open.remove(usize::from(which) % self.open.len());
                        self.post(CPL_OFFSET, completion(tag, status, op, flags, bytes, info));
                    }
                }
                // All outstanding commands do.
                5 => {
                    for (tag, op) in std::mem::take(&mut self.open) {
                        self.post(CPL_OFFSET, completion(tag, 0, op, 0, 0, 0));
                    }
                }
                // A wrong completion: another tag, or another operation.
                6 | 7 => {
                    let (tag, status, op): (u32, u8, u8) = u.arbitrary()?;
                    let tag = if status & 1 != 0 { tag & 0xff } else { tag };
                    if !self.open.contains(&(tag, op)) {
                        self.post(CPL_OFFSET, completion(tag, status, op, 0, 0, 0));
                    }
                }
                // A memory access, at an address that may be mapped.
                8 => {
                    let (write, page): (bool, u8) = u.arbitrary()?;
                    let va = (1 << 32) + (u64::from(page) << 12);
                    self.post(EVT_OFFSET, [1 | u64::from(write) << 8, va, 0, 0]);
                }
                // Any event.
                9 => {
                    let (word, va, info, time): (u16, u64, u64, u64) = u.arbitrary()?;
                    self.post(EVT_OFFSET, [word.into(), va, info, time]);
                }
                // Any bytes at any position of the two rings that the card writes.
                10 => {
                    let (at, words): (u16, u64) = u.arbitrary()?;
                    if let Some(memory) = self.rings() {
                        let at = CPL_OFFSET + usize::from(at) % (memory.len() - CPL_OFFSET);
                        memory.write_u64(at & !7, words, Ordering::Release);
                        // A forged entry may complete any outstanding command.
                        self.forget();
                    }
                }
                // A register changes.
                11 => {
                    let (which, value) = u.arbitrary()?;
                    self.set_register(which, value);
                }
                _ => return u.arbitrary(),
            }
        }
    }

    /// From now on it is unknown which completion of a command comes first.
    fn forget(&mut self) {
        self.marked.clear();
        self.tags.clear();
    }

    fn set_register(&mut self, which: u8, value: u32) {
        let slot = VIA_SLOT_BASE;
        let at = match which & 7 {
            0 => slot + VIA_SLOT_STATUS,
            1 => slot + VIA_SLOT_RING_STATUS,
            2 => VIA_CARD_GEOMETRY,
            3 => VIA_CARD_CHAN_MIB,
            4 => VIA_CARD_TLB_PAGE,
            5 => VIA_CARD_TLB_HUGE,
            6 => VIA_CARD_ICAP_STATUS,
            _ => slot + 4 * u64::from(which >> 3),
        };
        self.registers.insert(at, value);
    }
}

fn completion(tag: u32, status: u8, op: u8, flags: u8, bytes: u32, info: u64) -> [u64; 4] {
    let word = u64::from(tag) << 32 | u64::from(status) << 16 | u64::from(op) << 8 | u64::from(flags);
    [word, bytes.into(), info, 0]
}

/// Register values of a well-behaved card.
fn honest(at: u64) -> u32 {
    match at {
        VIA_CARD_ID => VIA_CARD_ID_VALUE_RESET,
        VIA_CARD_VERSION => 2 << VIA_CARD_VERSION_MAJOR_LSB,
        VIA_CARD_GEOMETRY => 6 << 24 | 2 << 16 | 1 << 8 | 2,
        VIA_CARD_CLOCK_KHZ => 250_000,
        VIA_CARD_CHAN_MIB => 8,
        VIA_CARD_TLB_PAGE | VIA_CARD_TLB_HUGE => 6 << VIA_CARD_TLB_PAGE_SETS_LOG2_LSB | 4,
        at if at == VIA_SLOT_BASE + VIA_SLOT_STATUS => {
            VIA_SLOT_STATUS_LOADED_MASK | VIA_SLOT_STATUS_QUIET_MASK
        }
        at if at == VIA_CARD_ICAP_STATUS => VIA_CARD_ICAP_STATUS_DONE_MASK,
        _ => 0,
    }
}

fn check_place(bar: u8, offset: u64) {
    let size = BAR_SIZES[usize::from(bar)];
    assert!(offset % 4 == 0 && offset + 4 <= size, "register {offset:#x} of BAR{bar}");
}

impl PciFunction for Hostile {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }

    fn config_read(&self, _: u16, _: &mut [u8]) -> Result<()> {
        unreachable!("the library does not use configuration space")
    }

    fn config_write(&self, _: u16, _: &[u8]) -> Result<()> {
        unreachable!("the library does not use configuration space")
    }

    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        check_place(bar, offset);
        let state = self.state.lock().unwrap();
        let changed = if bar == 0 { state.registers.get(&offset).copied() } else { None };
        Ok(changed.unwrap_or_else(|| honest(offset)))
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        check_place(bar, offset);
        let mut state = self.state.lock().unwrap();
        if u32::from(bar) == VIA_BELL_BAR && offset == VIA_BELL_BASE + VIA_BELL_CMD_TAIL {
            let added = (value as u16).wrapping_sub(state.tail);
            assert!(added <= RING_ENTRIES, "the doorbell moves by {added}");
            state.tail = value as u16;
            state.fetch();
        }
        Ok(())
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, _: DmaAccess) -> Result<()> {
        let last = iova + (memory.len() as u64 - 1);
        let mut state = self.state.lock().unwrap();
        let before = state.maps.range(..=last).next_back();
        assert!(
            before.is_none_or(|(at, m)| at + (m.len() as u64 - 1) < iova),
            "bus addresses do not overlap"
        );
        state.maps.insert(iova, memory);
        Ok(())
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        assert!(self.state.lock().unwrap().maps.remove(&iova).is_some());
        Ok(())
    }

    /// A wait gives the card its turn. At the end of the script the card is gone, so that no wait depends on time.
    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        if timeout.is_zero() {
            return Err(PciError::Timeout(timeout));
        }
        match self.state.lock().unwrap().turn() {
            Ok(fired) => Ok(fired & mask),
            Err(_) => Err(PciError::Gone("removed".into())),
        }
    }

    fn reset(&self) -> Result<()> {
        Ok(())
    }
}

/// A step of the program that uses the card.
enum Step {
    Submit(u8),
    Wait(u8),
    WaitAll,
    WaitForInterrupt,
    Map { kib: u8, write: bool, on_host: bool },
    Unmap,
    Sync,
    Budget(u8),
    Look,
    Reset,
    Load,
}

impl Step {
    fn take(u: &mut Unstructured) -> Taken<Self> {
        let (kind, value): (u8, u8) = u.arbitrary()?;
        Ok(match kind & 15 {
            0 | 1 => Self::Submit(value),
            2 | 3 => Self::Wait(value),
            4 => Self::WaitAll,
            5 => Self::WaitForInterrupt,
            6 | 7 => Self::Map { kib: value, write: kind & 0x10 != 0, on_host: kind & 0x20 != 0 },
            8 => Self::Unmap,
            9 => Self::Sync,
            10 => Self::Budget(value),
            11 => Self::Reset,
            12 => Self::Load,
            _ => Self::Look,
        })
    }
}

/// The harness's commands that have not been waited for.
type Outstanding = Vec<(u64, Tag, Op)>;

fn command(number: u64) -> Command {
    let command = match number % 4 {
        0 => Command::nop(),
        1 => Command { len: 4096, ..Command::nop() },
        2 => Command::move_in(0, 1 << 32, 64, true),
        _ => Command::move_out(0, 1 << 32, 64),
    };
    Command { addr1: MARK | number, ..command }
}

/// Waits for commands and checks their completions.
fn wait(slot: &Slot, hostile: &Hostile, commands: Outstanding) {
    let tags: Vec<Tag> = commands.iter().map(|(_, tag, _)| *tag).collect();
    let Ok(completions) = slot.wait(&tags) else { return };
    assert_eq!(completions.len(), commands.len());
    let state = hostile.state.lock().unwrap();
    for (completion, (number, _, op)) in completions.iter().zip(&commands) {
        assert_eq!(completion.op, *op as u8, "{completion:?} for command {number}");
        if let Some(tag) = state.tags.get(number) {
            assert_eq!(completion.tag, *tag, "{completion:?} for command {number}");
            let open = state.open.contains(&(*tag, *op as u8));
            assert!(!open || state.marked.get(tag) != Some(number), "command {number} was not completed");
        }
    }
}

fn run(u: &mut Unstructured) -> Taken<()> {
    let mut state = State::default();
    for _ in 0..u.arbitrary::<u8>()? & 3 {
        let (which, value) = u.arbitrary()?;
        state.set_register(which, value);
    }
    let steps: Vec<Step> = (0..u.arbitrary::<u8>()? & 31).map(|_| Step::take(u)).collect::<Taken<_>>()?;
    state.script = u.bytes(u.len())?.to_vec();
    let info = FunctionInfo { vendor: 1, device: 1, bar_sizes: BAR_SIZES, vectors: 32 };
    let hostile = Arc::new(Hostile { info, state: Mutex::new(state) });
    // The card's own steps have no time limit: they are made immediately, or never.
    let timeouts = Timeouts { control: Duration::ZERO, ..Timeouts::default() };
    let Ok(card) = Card::open_with(Arc::clone(&hostile) as Arc<dyn PciFunction>, timeouts) else {
        return Ok(());
    };
    let Ok(slot) = card.slot(0) else { return Ok(()) };
    let mut numbers = 0;
    let mut outstanding = Outstanding::new();
    let mut mappings: Vec<Mapping> = Vec::new();
    for step in steps {
        match step {
            Step::Submit(count) => {
                let commands: Vec<Command> = (numbers..numbers + u64::from(count)).map(command).collect();
                numbers += u64::from(count);
                if let Ok(tags) = slot.submit(&commands) {
                    let first = numbers - u64::from(count);
                    let all = (first..).zip(tags).zip(commands);
                    outstanding.extend(all.map(|((number, tag), command)| (number, tag, command.op)));
                }
            }
            Step::Wait(count) => {
                let rest = outstanding.split_off(usize::from(count).min(outstanding.len()));
                wait(&slot, &hostile, std::mem::replace(&mut outstanding, rest));
            }
            Step::WaitAll => wait(&slot, &hostile, std::mem::take(&mut outstanding)),
            Step::WaitForInterrupt => {
                let seen = slot.irqs();
                if let Ok(Some(now)) = slot.wait_irq(seen, Duration::from_secs(3600)) {
                    assert!(now > seen);
                }
            }
            Step::Map { kib, write, on_host } => {
                let source = Source::bytes(SharedBytes::new(vec![7; usize::from(kib) * 1024]));
                let mut options = MapOptions::new(if write { Prot::READ_WRITE } else { Prot::READ });
                if on_host {
                    options = options.on_host();
                }
                mappings.extend(slot.map(source, u64::from(kib) * 1024, options));
            }
            Step::Unmap => drop(mappings.pop().map(Mapping::unmap)),
            Step::Sync => drop(mappings.last().map(|mapping| mapping.sync(false))),
            Step::Budget(pages) => slot.set_frame_budget(u64::from(pages) << 12),
            Step::Look => {
                let _ = (slot.check(), slot.status(), slot.counters(), card.time());
                let _ = slot.read_wide(Register { offset: 0, width: 64 });
                assert!(slot.take_violations().len() <= 64 && slot.take_denied().len() <= 64);
                let _ = (slot.strays(), slot.pager_stats());
            }
            Step::Reset => drop(slot.reset()),
            Step::Load => drop(slot.load(&[0; 80])),
        }
    }
    drop((mappings, slot));
    assert!(hostile.state.lock().unwrap().maps.is_empty(), "memory stays mapped");
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    // An input that is too short ends early.
    let _ = run(&mut Unstructured::new(bytes));
});
