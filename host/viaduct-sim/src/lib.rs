// SPDX-License-Identifier: Apache-2.0
//! The simulated card, in this process, as a PCI function.
//!
//! [`SimCard`] opens the Verilated card (`libviaduct_card.so`, made by `make card`) and implements
//! [`PciFunction`]. The card has no thread of its own: it runs inside the calls, and above all inside
//! [`PciFunction::wait_irq`], until an interrupt fires or nothing is left to do. With one thread on the host side
//! everything it does takes the same number of cycles every time; time-outs are the only thing that looks at the wall
//! clock.
#![deny(missing_docs)]

mod ffi;
mod profile;

pub use ffi::Counters;
pub use profile::{Dram, Link, Profile};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use viaduct_pci::{
    ConfigIds, ConfigSpace, DmaAccess, FunctionInfo, HostMemory, PciError, PciFunction, Result,
};

/// Cycles the card runs while a thread waits before it looks at time-outs and other threads: some milliseconds.
const SLICE: u64 = 1024;
/// Cycles that pass on the card while the host stores to a register: about what a posted write costs a core.
const STORE_CYCLES: u64 = 16;
/// How long a thread that runs the card lets another one pick up its interrupts before it goes on.
const PICK_UP: Duration = Duration::from_millis(20);

const VENDOR: u16 = 0x1209; // pid.codes
const DEVICE: u16 = 0x5649;
const CLASS: u32 = 0x12_00_00; // processing accelerator
const REGISTERS: (u8, u64) = (0, 256 << 10);
const DOORBELLS: (u8, u64) = (2, 64 << 10);
const MSIX: (u8, u64) = (4, 4 << 10);
const MSIX_PENDING: u64 = 0x800;
const GEOMETRY: u64 = 0x08;

/// Why a simulated card could not be opened or asked for something beyond the PCI function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// There is no card object.
    #[error("{}: there is no simulated card here; build it with `make card`", path.display())]
    NoCard {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is something else, or made for another version.
    #[error("{}: not a card of this version ({why}); rebuild it with `make card`", path.display())]
    NotACard {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The card did not accept its configuration, or what it was asked for.
    #[error("simulated card: {0}")]
    Refused(String),
    /// The card did not come up.
    #[error("simulated card: {0}")]
    Pci(#[from] PciError),
}

/// What to open.
#[derive(Debug, Clone)]
pub struct SimConfig {
    /// The board.
    pub profile: Profile,
    /// `libviaduct_card.so`.
    pub card_object: PathBuf,
    /// Folder of app images: `<name>/<name>.so`, as `viaduct build` makes it.
    pub image_dir: PathBuf,
    /// Size of a DRAM channel, if not the profile's.
    pub chan_mib: Option<u32>,
}

/// A simulated card.
pub struct SimCard {
    info: FunctionInfo,
    clock_khz: u32,
    config: Mutex<ConfigSpace>,
    msix_table: Mutex<Vec<u32>>,
    state: Mutex<State>,
    /// Interrupts for a sleeping thread, or work for the card.
    changed: Condvar,
    /// A sleeping thread has picked up its interrupts.
    picked_up: Condvar,
    /// Threads that want the card for a moment: whoever runs it lets them.
    wanted: AtomicUsize,
}

struct State {
    card: ffi::Card,
    maps: HashMap<u64, Arc<HostMemory>>,
    pending: u64,
    /// Vectors that sleeping threads wait for, one entry a thread.
    sleepers: Vec<u64>,
    /// A thread runs the card.
    stepping: bool,
}

impl State {
    /// Takes interrupts over from the card; whether a sleeping thread waits for one.
    fn collect(&mut self) -> bool {
        self.pending |= self.card.irq_take(!0);
        self.pending & self.sleepers.iter().fold(0, |all, mask| all | mask) != 0
    }
}

impl SimCard {
    /// Powers a card up.
    pub fn open(config: SimConfig) -> std::result::Result<Self, SimError> {
        let mut dram = config.profile.dram.clone();
        dram.mib = config.chan_mib.unwrap_or(dram.mib);
        let link = &config.profile.link;
        let clock_khz = config.profile.clk_khz;
        let mut card = ffi::Card::open(&config.card_object, clock_khz, link, &dram, &config.image_dir)?;
        let geometry = card.read(REGISTERS.0, GEOMETRY).map_err(gone)?;
        let vectors = 2 * (geometry & 0xff) as u16;
        let space = config_space(link, vectors)?;
        let info = FunctionInfo { vendor: VENDOR, device: DEVICE, bar_sizes: space.bar_sizes(), vectors };
        tracing::debug!(profile = config.profile.name, clock_khz, vectors, "simulated card opened");
        Ok(Self {
            info,
            clock_khz,
            config: Mutex::new(space),
            msix_table: Mutex::new(vec![0; MSIX.1 as usize / 4]),
            state: Mutex::new(State {
                card,
                maps: HashMap::new(),
                pending: 0,
                sleepers: Vec::new(),
                stepping: false,
            }),
            changed: Condvar::new(),
            picked_up: Condvar::new(),
            wanted: AtomicUsize::new(0),
        })
    }

    /// What the card has counted since power-up.
    pub fn counters(&self) -> Counters {
        self.enter().card.counters()
    }

    /// Cycles since power-up.
    pub fn now(&self) -> u64 {
        self.enter().card.now()
    }

    /// Clock of the card.
    pub fn clock_khz(&self) -> u32 {
        self.clock_khz
    }

    /// Whether nothing happens on the card until the host does something.
    pub fn parked(&self) -> bool {
        self.enter().card.parked()
    }

    /// Runs the card for so many cycles, or until it parks. Returns the cycles run.
    pub fn run(&self, cycles: u64) -> u64 {
        let mut left = cycles;
        while left > 0 {
            let mut state = self.enter();
            let ran = state.card.run(left.min(SLICE), 0);
            self.leave(state);
            left -= ran;
            if ran == 0 {
                break;
            }
        }
        cycles - left
    }

    /// Writes waves of shell and slots to `path` and files beside it, for `cycles` cycles from cycle `start` on. Needs
    /// a card built with waves.
    pub fn wave(&self, path: &Path, start: u64, cycles: u64) -> std::result::Result<(), SimError> {
        let refused = |failure: ffi::Failure| SimError::Refused(failure.why);
        self.enter().card.wave_open(path, start, cycles).map_err(refused)
    }

    /// Starts over from power-up and keeps what the shell sees at the next `edges` clock edges (up to 2 KiB each), for
    /// [`SimCard::replay`].
    pub fn record(&self, edges: u64) -> std::result::Result<(), SimError> {
        self.enter().card.record(edges).map_err(|failure| SimError::Refused(failure.why))
    }

    /// Gives the recorded edges to a bare Verilated shell, all of them evaluated, and returns their number. With `verify`
    /// an edge after which the bare shell drives anything else than the card's did is an error.
    pub fn replay(&self, verify: bool) -> std::result::Result<u64, SimError> {
        self.enter().card.replay(verify).map_err(|failure| SimError::Refused(failure.why))
    }

    /// The card, for a moment.
    fn enter(&self) -> MutexGuard<'_, State> {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        let state = self.lock();
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        state
    }

    /// After the card was used: lets sleepers see what has happened.
    fn leave(&self, mut state: MutexGuard<'_, State>) {
        if state.sleepers.is_empty() {
            return;
        }
        if state.collect() || !state.stepping {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panicking thread leaves behind is whole: no invariant spans a panic here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the card until an interrupt of `mask` is pending, the card parks or `deadline` has passed.
    fn step<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mask: u64,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        loop {
            let ran = state.card.run(SLICE, !0);
            let for_others = state.collect();
            let over = state.pending & mask != 0
                || ran == 0 && state.card.parked()
                || deadline.is_some_and(|end| Instant::now() >= end);
            if over {
                return state;
            }
            if for_others {
                // The card stands still until they have been seen, so that what follows does not depend on how fast
                // the other thread wakes up.
                self.changed.notify_all();
                let seen = self.picked_up.wait_timeout(state, PICK_UP);
                state = seen.unwrap_or_else(PoisonError::into_inner).0;
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

    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mask: u64,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        state.sleepers.push(mask);
        let limit = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        state = match limit {
            Some(limit) => self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0,
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        if let Some(at) = state.sleepers.iter().position(|m| *m == mask) {
            state.sleepers.swap_remove(at);
        }
        state
    }

    fn check_register(&self, bar: u8, offset: u64) -> Result<()> {
        let size = self.info.bar_sizes.get(usize::from(bar)).copied().unwrap_or(0);
        if offset % 4 == 0 && offset < size {
            return Ok(());
        }
        Err(PciError::OutOfRange { what: format!("register {offset:#x} of BAR{bar}") })
    }

    fn msix_table(&self) -> MutexGuard<'_, Vec<u32>> {
        self.msix_table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn config(&self) -> MutexGuard<'_, ConfigSpace> {
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
        state.card.run(STORE_CYCLES, 0);
        self.leave(state);
        written.map_err(gone)
    }

    fn dma_map(&self, iova: u64, memory: Arc<HostMemory>, access: DmaAccess) -> Result<()> {
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
        // SAFETY: the memory is kept alive in `maps` until it is unmapped or the card is closed, is as long as it says,
        // and is writable if it needs to be.
        let mapped = unsafe { state.card.dma_map(iova, memory.as_ptr(), memory.len() as u64, read, write) };
        mapped.map_err(|failure| os(what(), &failure.why, failure.errno))?;
        state.maps.insert(iova, memory);
        Ok(())
    }

    fn dma_unmap(&self, iova: u64) -> Result<()> {
        let what = || format!("taking back the DMA mapping at bus address {iova:#x}");
        let mut state = self.enter();
        let Some(len) = state.maps.get(&iova).map(|memory| memory.len() as u64) else {
            return Err(os(what(), "there is none", libc::ENOENT));
        };
        // On failure the memory stays, since the card may still use it.
        state.card.dma_unmap(iova, len).map_err(|failure| os(what(), &failure.why, failure.errno))?;
        state.maps.remove(&iova);
        self.leave(state);
        Ok(())
    }

    fn wait_irq(&self, mask: u64, timeout: Duration) -> Result<u64> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.enter();
        loop {
            if state.collect() {
                self.changed.notify_all();
            }
            let fired = state.pending & mask;
            if fired != 0 {
                state.pending &= !fired;
                self.picked_up.notify_all();
                return Ok(fired);
            }
            if deadline.is_some_and(|end| Instant::now() >= end) {
                return Err(PciError::Timeout(timeout));
            }
            if state.stepping || state.card.parked() {
                state = self.sleep(state, mask, deadline);
                continue;
            }
            state.stepping = true;
            state = self.step(state, mask, deadline);
            state.stepping = false;
            // Somebody else runs the card now, if it still has something to do.
            self.changed.notify_all();
        }
    }

    fn reset(&self) -> Result<()> {
        let mut state = self.enter();
        state.card.reset();
        state.pending = 0;
        drop(state);
        self.msix_table().fill(0);
        self.config().reset();
        Ok(())
    }

    fn charge(&self, time: Duration) {
        let mut state = self.enter();
        state.card.charge(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.leave(state);
    }
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

fn gone(failure: ffi::Failure) -> PciError {
    PciError::Gone(failure.why)
}

fn os(what: String, why: &str, errno: i32) -> PciError {
    PciError::Os { what: format!("{what}: {why}"), source: std::io::Error::from_raw_os_error(errno) }
}
