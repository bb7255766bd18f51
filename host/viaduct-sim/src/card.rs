// SPDX-License-Identifier: Apache-2.0
//! The management function of a simulated card, and what all functions share.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use viaduct_pci::{
    ConfigIds, ConfigSpace, DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Result,
};

use crate::entropy::Entropy;
use crate::error::SimError;
use crate::far_end::FarEnd;
use crate::ffi::{self, Counters, FunctionCounters};
use crate::kinds::{ENTROPY, NET};
use crate::profile::{Link, Profile};
use crate::trace::{TraceSink, Tracing};

/// Cycles that the card runs for a waiting thread before time-outs and other threads are checked: some milliseconds.
const SLICE: u64 = 1024;
/// Cycles that pass on the card while the host stores to a register: about the cost of a posted write for a core.
pub(crate) const STORE_CYCLES: u64 = 16;

const VENDOR: u16 = 0x1209; // pid.codes
const DEVICE: u16 = 0x5649;
const CLASS: u32 = 0x12_00_00; // processing accelerator
const REGISTERS: (u8, u64) = (0, 256 << 10);
const DOORBELLS: (u8, u64) = (2, 64 << 10);
const MSIX: (u8, u64) = (4, 4 << 10);
const MSIX_PENDING: u64 = 0x800;
const GEOMETRY: u64 = 0x08;
/// The entropy function's attachment: its control register (rtl/regs/viaduct.rdl), field KIND.
const ENTROPY_CTRL: u64 = 0x30000 + 0x100 * ENTROPY as u64;
/// That of the network function.
const NET_CTRL: u64 = 0x30000 + 0x100 * NET as u64;
const KIND_LSB: u32 = 4;
const KIND_BOARD: u32 = 1;
/// What a sink of the card's streams takes.
const ROUTE_STATE: u64 = 0x3c;

/// Configuration of a simulated card.
#[derive(Debug, Clone)]
pub struct SimConfig {
    /// The board.
    pub profile: Profile,
    /// `libviaduct_card.so`.
    pub card_object: PathBuf,
    /// Folder of app images: `<name>/<name>.so`, as `viaduct build` makes it.
    pub image_dir: PathBuf,
    /// Size of a DRAM channel in place of the profile's.
    pub chan_mib: Option<u32>,
}

/// A simulated card.
pub struct SimCard {
    pub(crate) info: FunctionInfo,
    pub(crate) clock_khz: u32,
    pub(crate) link: Link,
    pub(crate) config: Mutex<ConfigSpace>,
    pub(crate) msix_table: Mutex<Vec<u32>>,
    pub(crate) state: Mutex<State>,
    /// An event for a sleeping thread, or work for the card.
    pub(crate) changed: Condvar,
    /// A sleeping thread has collected its event.
    pub(crate) picked_up: Condvar,
    /// Threads that need the card for a moment: the thread that runs it yields to them.
    pub(crate) wanted: AtomicUsize,
    /// A thread runs the card in a wait, and can be stopped.
    pub(crate) running: AtomicBool,
    pub(crate) stopper: ffi::Stopper,
    /// Other functions that are in use, by number. One that was dropped is removed once its reset is over.
    pub(crate) functions: Mutex<HashMap<usize, Weak<dyn PciFunction>>>,
    /// A function was removed from `functions`.
    pub(crate) function_freed: Condvar,
}

pub(crate) struct State {
    pub(crate) card: ffi::Card,
    /// Memory of each function, by bus address.
    pub(crate) maps: HashMap<(u32, u64), Arc<HostMemory>>,
    /// Interrupts of each function.
    pub(crate) pending: Vec<u64>,
    /// The events that sleeping threads wait for.
    pub(crate) sleepers: Vec<Want>,
    /// A thread runs the card.
    pub(crate) stepping: bool,
    /// Board ports with a listener; the output of the others is dropped.
    pub(crate) claimed: u32,
    pub(crate) entropy: Entropy,
    /// The entropy function is attached to the board's source, which should be filled.
    pub(crate) entropy_connected: bool,
    /// Functions that are bus masters.
    pub(crate) masters: u32,
    /// What is at the other end of the Ethernet line, if that is part of the simulation.
    pub(crate) far_end: Option<FarEnd>,
    /// The network function is attached to the board's port.
    pub(crate) net_on_board: bool,
    /// Since the far end was connected, an app has had a route from the Ethernet port.
    pub(crate) net_routed: bool,
    pub(crate) packet: Box<[u8; ffi::MAX_PACKET]>,
    pub(crate) tracing: Option<Tracing>,
    /// What to call in which cycle; calls of one cycle in their order.
    alarms: BTreeMap<(u64, u64), Call>,
    alarms_set: u64,
}

type Call = Box<dyn FnOnce() + Send>;

/// An event that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// One of these interrupts of a function.
    Irq(u32, u64),
    /// A packet from a board port.
    Packet(u32),
    /// Space for this number of bytes in a board port.
    Room(u32, usize),
    /// Nothing: the thread runs the card for others.
    Nothing,
}

impl State {
    /// Collects the card's events for the host; returns whether a sleeping thread waits for one of them.
    pub(crate) fn collect(&mut self) -> bool {
        for (function, pending) in (0..).zip(&mut self.pending) {
            *pending |= self.card.irq_take(function, !0);
        }
        self.pump_line();
        for function in 1..self.pending.len() as u32 {
            if self.claimed >> function & 1 == 0 {
                while self.card.port_receive(function, &mut self.packet).is_some() {}
            }
        }
        // Without a driver, or attached elsewhere, the source would run for nothing.
        if self.entropy_connected && self.masters >> ENTROPY & 1 != 0 {
            self.entropy.supply(&mut self.card);
        }
        if let Some(tracing) = &mut self.tracing {
            tracing.pass_on(|records| self.card.trace_take(records, false));
        }
        self.is_for_others()
    }

    /// Passes on frames of the Ethernet line.
    pub(crate) fn pump_line(&mut self) {
        let Some(far_end) = &mut self.far_end else { return };
        // A driver that has the port of its function, or an app with a route from it.
        let taken = self.net_on_board && self.masters >> NET & 1 != 0 || self.net_routed;
        far_end.pump(&mut self.card, &mut self.packet, taken);
    }

    /// What the host reads of a route: whether the frames of the Ethernet port have somewhere to go now.
    fn see_route(&mut self, route: u32) {
        const PENDING: u32 = 1 << 31;
        const KIND_PORT: u32 = 3;
        self.net_routed |= route & PENDING == 0 && route >> 8 & 3 == KIND_PORT && route & 0xf == NET as u32;
    }

    /// A thread sleeps that has what it waits for.
    fn is_for_others(&self) -> bool {
        self.sleepers.iter().any(|want| self.is_there(*want))
    }

    pub(crate) fn is_there(&self, want: Want) -> bool {
        match want {
            Want::Irq(function, mask) => self.pending[function as usize] & mask != 0,
            Want::Packet(function) => self.card.port_has_packet(function),
            Want::Room(function, bytes) => self.card.port_room(function) >= bytes,
            Want::Nothing => false,
        }
    }

    /// Functions whose packets a thread waits for now.
    pub(crate) fn packets_wanted(&self, own: Want) -> u32 {
        self.sleepers.iter().chain([&own]).fold(0, |mask, want| match want {
            Want::Packet(function) => mask | 1 << function,
            _ => mask,
        })
    }
}

impl SimCard {
    /// Powers a card up.
    pub fn open(config: SimConfig) -> std::result::Result<Self, SimError> {
        let mut dram = config.profile.dram.clone();
        dram.mib = config.chan_mib.unwrap_or(dram.mib);
        let link = &config.profile.link;
        let clock_khz = config.profile.clk_khz;
        let ports = config.profile.board.ports();
        let mut card =
            ffi::Card::open(&config.card_object, clock_khz, link, &dram, ports, &config.image_dir)?;
        let geometry = card.read(REGISTERS.0, GEOMETRY).map_err(gone)?;
        let (channels, wanted) = (geometry >> 8 & 0xff, config.profile.channels);
        if channels != wanted {
            let profile = config.profile.name;
            return Err(SimError::Profile { profile, channels, wanted });
        }
        let vectors = 2 * (geometry & 0xff) as u16;
        let space = config_space(link, vectors)?;
        let functions = card.functions();
        let info = FunctionInfo { vendor: VENDOR, device: DEVICE, bar_sizes: space.bar_sizes(), vectors };
        tracing::debug!(profile = config.profile.name, clock_khz, vectors, "simulated card opened");
        Ok(Self {
            info,
            clock_khz,
            link: link.clone(),
            stopper: card.stopper(),
            config: Mutex::new(space),
            msix_table: Mutex::new(vec![0; MSIX.1 as usize / 4]),
            state: Mutex::new(State {
                card,
                maps: HashMap::new(),
                pending: vec![0; 1 + functions],
                sleepers: Vec::new(),
                stepping: false,
                claimed: 0,
                entropy: Entropy::default(),
                entropy_connected: false,
                masters: 0,
                far_end: None,
                net_on_board: false,
                net_routed: false,
                packet: Box::new([0; ffi::MAX_PACKET]),
                tracing: None,
                alarms: BTreeMap::new(),
                alarms_set: 0,
            }),
            changed: Condvar::new(),
            picked_up: Condvar::new(),
            wanted: AtomicUsize::new(0),
            running: AtomicBool::new(false),
            functions: Mutex::default(),
            function_freed: Condvar::new(),
        })
    }

    /// Sets the source of the entropy function's random numbers. By default they are the same every time.
    pub fn set_entropy(&self, source: Entropy) {
        self.enter().entropy = source;
    }

    /// Counters of the card since power-up.
    pub fn counters(&self) -> Counters {
        self.enter().card.counters()
    }

    /// Counters of the card, and of all its functions, of the same moment.
    pub fn all_counters(&self) -> (Counters, Vec<FunctionCounters>) {
        let state = self.enter();
        let functions = (0..).map_while(|function| state.card.fn_counters(function)).collect();
        (state.card.counters(), functions)
    }

    pub(crate) fn functions_in_use(&self) -> bool {
        let functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.values().any(|function| function.strong_count() > 0)
    }

    /// Counters of a function, and of its board port, since power-up; `None` if the card has no such function.
    pub fn function_counters(&self, function: usize) -> Option<FunctionCounters> {
        let function = u32::try_from(function).ok()?;
        self.enter().card.fn_counters(function)
    }

    /// Cycles since power-up.
    pub fn now(&self) -> u64 {
        self.enter().card.now()
    }

    /// Bytes of packets that the PCIe link carries in a cycle, in each direction, net of acknowledgements, flow control and
    /// clock compensation.
    pub fn link_bytes_per_cycle(&self) -> f64 {
        let cycle_fs = 1e12 / f64::from(self.clock_khz);
        cycle_fs / self.enter().card.link_fs_per_byte() as f64
    }

    /// Calls `call` in a cycle, or soon after it if the host is busy then: in the thread that runs the card in a wait. For models of what
    /// is outside the card.
    pub fn at(&self, cycle: u64, call: impl FnOnce() + Send + 'static) {
        let mut state = self.enter();
        let number = state.alarms_set;
        state.alarms_set += 1;
        state.alarms.insert((cycle, number), Box::new(call));
        // The card may be idle but for this.
        self.changed.notify_all();
    }

    /// Clock of the card.
    pub fn clock_khz(&self) -> u32 {
        self.clock_khz
    }

    /// Whether the card is idle until the host does something.
    pub fn parked(&self) -> bool {
        self.enter().card.parked()
    }

    /// Runs the card for `cycles` cycles, or until it is idle. Returns the cycles run.
    pub fn run(&self, cycles: u64) -> u64 {
        let mut left = cycles;
        while left > 0 {
            let mut state = self.enter();
            let ran = state.card.run(left.min(SLICE), 0, 0);
            let parked = ran == 0 && state.card.parked();
            self.leave(state);
            left -= ran;
            if parked {
                break;
            }
        }
        cycles - left
    }

    /// Writes waveforms of shell and slots to `path` and files next to it, for `cycles` cycles from cycle `start` on. Needs
    /// a card built with waveforms.
    pub fn wave(&self, path: &Path, start: u64, cycles: u64) -> std::result::Result<(), SimError> {
        let refused = |failure: ffi::Failure| SimError::Refused(failure.why);
        self.enter().card.wave_open(path, start, cycles).map_err(refused)
    }

    /// Traces the card from now on, until [`SimCard::end_trace`]. That changes no cycle of it.
    pub fn begin_trace(&self, sink: TraceSink) -> std::result::Result<(), SimError> {
        let mut state = self.enter();
        state.card.trace(true).map_err(|failure| SimError::Refused(failure.why))?;
        state.tracing = Some(Tracing::new(sink));
        Ok(())
    }

    /// Passes the last records on and drops the receiver.
    pub fn end_trace(&self) {
        let mut state = self.enter();
        let state = &mut *state;
        if let Some(mut tracing) = state.tracing.take() {
            tracing.pass_on(|records| state.card.trace_take(records, true));
            // Nothing is allocated, so this does not fail.
            let _ = state.card.trace(false);
        }
    }

    /// Restarts from power-up and records the shell's inputs at the next `edges` clock edges (up to 2 KiB each), for
    /// [`SimCard::replay`].
    pub fn record(&self, edges: u64) -> std::result::Result<(), SimError> {
        self.enter().card.record(edges).map_err(|failure| SimError::Refused(failure.why))
    }

    /// Applies the recorded edges to a bare Verilated shell, evaluating each, and returns their number. With `verify`
    /// an edge after which the outputs of the bare shell differ from the card's is an error.
    pub fn replay(&self, verify: bool) -> std::result::Result<u64, SimError> {
        self.enter().card.replay(verify).map_err(|failure| SimError::Refused(failure.why))
    }

    /// Locks the card for a short operation.
    pub(crate) fn enter(&self) -> MutexGuard<'_, State> {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        if self.running.load(Ordering::SeqCst) {
            self.stopper.stop();
        }
        let state = self.lock();
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        state
    }

    /// After the card was used: wakes sleeping threads for new events.
    pub(crate) fn leave(&self, mut state: MutexGuard<'_, State>) {
        let for_others = state.collect();
        if for_others || !state.sleepers.is_empty() && !state.stepping {
            self.changed.notify_all();
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // No invariant spans a panic here, so the state is valid after one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an event, and then `take`s it. Meanwhile the card runs, in this thread or in another
    /// waiting one.
    pub(crate) fn wait<T>(
        &self,
        want: Want,
        timeout: Duration,
        take: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.enter();
        loop {
            state = self.call_due(state);
            if state.collect() {
                self.changed.notify_all();
            }
            if state.is_there(want) {
                let taken = take(&mut state);
                self.picked_up.notify_all();
                // Space in a queue may let the card continue.
                if !state.stepping && !state.sleepers.is_empty() {
                    self.changed.notify_all();
                }
                return taken;
            }
            if deadline.is_some_and(|end| Instant::now() >= end) {
                return Err(PciError::Timeout(timeout));
            }
            if state.stepping || state.card.parked() && state.alarms.is_empty() {
                state = self.sleep(state, want, deadline);
                continue;
            }
            state.stepping = true;
            self.running.store(true, Ordering::SeqCst);
            state = self.step(state, want, deadline);
            self.running.store(false, Ordering::SeqCst);
            state.stepping = false;
            // Another thread runs the card now, if it is not idle.
            self.changed.notify_all();
        }
    }

    /// Runs the card until the event occurs, the card is idle or `deadline` has passed.
    pub(crate) fn step<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        want: Want,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        loop {
            let packets = state.packets_wanted(want);
            let until = state.alarms.first_key_value().map(|(&(cycle, _), _)| cycle);
            let left = until.map_or(u64::MAX, |cycle| cycle.saturating_sub(state.card.now()));
            let ran = state.card.run(left.min(SLICE), !0, packets);
            let parked = state.card.parked();
            if parked && left < u64::MAX {
                let left = left - ran.min(left);
                state.card.charge((left * 1_000_000).div_ceil(u64::from(self.clock_khz)));
            }
            state = self.call_due(state);
            let for_others = state.collect();
            let over = state.is_there(want)
                || ran == 0 && parked && until.is_none()
                || deadline.is_some_and(|end| Instant::now() >= end);
            if over {
                return state;
            }
            if for_others {
                // The card does not run until they have been collected, so that its behaviour does not depend on how fast
                // the other thread wakes up. That thread needs nothing but the lock, so this ends.
                self.changed.notify_all();
                let seen = self.picked_up.wait_while(state, |state| state.is_for_others());
                state = seen.unwrap_or_else(PoisonError::into_inner);
            }
            if self.wanted.load(Ordering::SeqCst) > 0 {
                drop(state);
                while self.wanted.load(Ordering::SeqCst) > 0 {
                    std::thread::yield_now();
                }
                state = self.lock();
            }
        }
    }

    /// Calls what is due. The card is not locked meanwhile.
    fn call_due<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        loop {
            let now = state.card.now();
            let due = state.alarms.first_entry().filter(|first| first.key().0 <= now);
            let Some(call) = due.map(|due| due.remove()) else { return state };
            drop(state);
            call();
            state = self.enter();
        }
    }

    pub(crate) fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        want: Want,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        state.sleepers.push(want);
        let limit = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        state = match limit {
            Some(limit) => self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0,
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        if let Some(at) = state.sleepers.iter().position(|other| *other == want) {
            state.sleepers.swap_remove(at);
        }
        self.picked_up.notify_all();
        state
    }

    pub(crate) fn map(
        &self,
        function: u32,
        iova: u64,
        memory: Arc<HostMemory>,
        access: DmaAccess,
    ) -> Result<()> {
        let what = || format!("DMA mapping at bus address {iova:#x}");
        let (read, write) = match access {
            DmaAccess::Read => (true, false),
            DmaAccess::Write => (false, true),
            DmaAccess::ReadWrite => (true, true),
        };
        if write && !memory.is_writable() {
            return Err(os(what(), "the memory is read-only", libc::EPERM));
        }
        let mut state = self.enter();
        let (at, len) = (memory.as_ptr(), memory.len() as u64);
        // SAFETY: the memory is kept alive in `maps` until it is unmapped or the card is closed, is as long as it says,
        // and is writable if it needs to be.
        let mapped = unsafe { state.card.dma_map(function, iova, at, len, read, write) };
        mapped.map_err(|failure| os(what(), &failure.why, failure.errno))?;
        state.maps.insert((function, iova), memory);
        Ok(())
    }

    pub(crate) fn unmap(&self, function: u32, iova: u64) -> Result<()> {
        let what = || format!("removing the DMA mapping at bus address {iova:#x}");
        let mut state = self.enter();
        let Some(len) = state.maps.get(&(function, iova)).map(|memory| memory.len() as u64) else {
            return Err(os(what(), "there is none", libc::ENOENT));
        };
        // On failure the memory is kept, since the card may still use it.
        state
            .card
            .dma_unmap(function, iova, len)
            .map_err(|failure| os(what(), &failure.why, failure.errno))?;
        let memory = state.maps.remove(&(function, iova));
        self.leave(state);
        drop(memory);
        Ok(())
    }

    pub(crate) fn wait_irq_of(&self, function: u32, mask: u64, timeout: Duration) -> Result<u64> {
        self.wait(Want::Irq(function, mask), timeout, |state| {
            let pending = &mut state.pending[function as usize];
            let fired = *pending & mask;
            *pending &= !fired;
            Ok(fired)
        })
    }

    pub(crate) fn check_register(&self, bar: u8, offset: u64) -> Result<()> {
        let size = self.info.bar_sizes.get(usize::from(bar)).copied().unwrap_or(0);
        if offset % 4 == 0 && offset < size {
            return Ok(());
        }
        Err(PciError::OutOfRange { what: format!("register {offset:#x} of BAR{bar}") })
    }

    pub(crate) fn msix_table(&self) -> MutexGuard<'_, Vec<u32>> {
        self.msix_table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn config(&self) -> MutexGuard<'_, ConfigSpace> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PciFunction for SimCard {
    fn info(&self) -> &FunctionInfo {
        &self.info
    }

    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<()> {
        self.config().read(offset, buf)
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<()> {
        let wants_reset = self.config().write(offset, data)?;
        if wants_reset { self.reset() } else { Ok(()) }
    }

    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        self.check_register(bar, offset)?;
        if bar == MSIX.0 {
            // Vectors are delivered whatever the table says, so none is ever pending in the sense of the capability.
            return Ok(self.msix_table()[offset as usize / 4]);
        }
        let mut state = self.enter();
        let value = state.card.read(bar, offset);
        if let ((0, ROUTE_STATE), Ok(value)) = ((bar, offset), &value) {
            state.see_route(*value);
        }
        self.leave(state);
        value.map_err(gone)
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) -> Result<()> {
        self.check_register(bar, offset)?;
        if bar == MSIX.0 {
            if offset < MSIX_PENDING {
                self.msix_table()[offset as usize / 4] = value;
            }
            return Ok(());
        }
        let mut state = self.enter();
        let written = state.card.write(bar, offset, value);
        if (bar, offset) == (REGISTERS.0, ENTROPY_CTRL) {
            state.entropy_connected = value >> KIND_LSB & 3 == KIND_BOARD;
        }
        if (bar, offset) == (REGISTERS.0, NET_CTRL) {
            state.net_on_board = value >> KIND_LSB & 3 == KIND_BOARD;
        }
        state.card.run(STORE_CYCLES, 0, 0);
        self.leave(state);
        written.map_err(gone)
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()> {
        self.map(0, iova, memory, access)
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        self.unmap(0, iova)
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        self.wait_irq_of(0, mask, timeout)
    }

    fn reset(&self) -> Result<()> {
        let alone = !self.functions_in_use();
        let mut state = self.enter();
        if alone {
            state.card.reset();
            state.pending.fill(0);
            state.masters = 0;
            state.entropy_connected = false;
            state.net_on_board = false;
        } else {
            stop_slots(&mut state.card, usize::from(self.info.vectors) / 2).map_err(gone)?;
            state.card.irq_take(0, !0);
            state.pending[0] = 0;
        }
        self.leave(state);
        self.msix_table().fill(0);
        self.config().reset();
        Ok(())
    }

    fn charge(&self, time: Duration) {
        let mut state = self.enter();
        state.card.charge(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.leave(state);
    }

    fn stands_still(&self) -> bool {
        true
    }
}

/// Function-level reset of the management function while other functions are in use: holds all apps in reset, and
/// disables the rings.
fn stop_slots(card: &mut ffi::Card, slots: usize) -> std::result::Result<(), ffi::Failure> {
    const SLOT: u64 = 0x10000;
    const STRIDE: u64 = 0x1000;
    const CTRL: u64 = 0x00;
    const CTRL_RESET: u32 = 1 << 2;
    const STATUS: u64 = 0x04;
    const STATUS_QUIET: u32 = 1 << 1;
    const RINGS: [u64; 3] = [0x18, 0x28, 0x38];
    /// Register reads after which a slot counts as stuck: some milliseconds of card time.
    const LOOKS: u32 = 4096;
    for slot in 0..slots as u64 {
        card.write(REGISTERS.0, SLOT + STRIDE * slot + CTRL, CTRL_RESET)?;
    }
    for base in (0..slots as u64).map(|slot| SLOT + STRIDE * slot) {
        let mut looks = 0;
        while card.read(REGISTERS.0, base + STATUS)? & STATUS_QUIET == 0 && looks < LOOKS {
            looks += 1;
        }
        for ring in RINGS {
            card.write(REGISTERS.0, base + ring, 0)?;
        }
        card.write(REGISTERS.0, base + CTRL, 0)?;
    }
    // Earlier writes to memory are visible now, and so are their interrupts.
    card.read(REGISTERS.0, GEOMETRY)?;
    card.run(SLICE, 0, 0);
    Ok(())
}

fn config_space(link: &Link, vectors: u16) -> Result<ConfigSpace> {
    let mut space = ConfigSpace::new(&ConfigIds {
        vendor: VENDOR,
        device: DEVICE,
        revision: 1,
        class: CLASS,
        subsystem_vendor: VENDOR,
        subsystem: DEVICE,
    });
    for (bar, size) in [REGISTERS, DOORBELLS, MSIX] {
        space.add_bar(bar, size, true, false)?;
    }
    space.add_pcie(link.generation as u8, link.lanes as u8)?;
    space.add_msix(vectors, (MSIX.0, 0), (MSIX.0, MSIX_PENDING as u32))?;
    Ok(space)
}

pub(crate) fn gone(failure: ffi::Failure) -> PciError {
    PciError::Gone(failure.why)
}

fn os(what: String, why: &str, errno: i32) -> PciError {
    PciError::Os { what: format!("{what}: {why}"), source: std::io::Error::from_raw_os_error(errno) }
}
