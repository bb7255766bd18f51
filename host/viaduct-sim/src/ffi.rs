// SPDX-License-Identifier: Apache-2.0
//! The card's C ABI, as declared in `sim/include/viaduct_sim.h`.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::NonNull;

use libloading::Library;
use viaduct_pci::Process;

use crate::error::SimError;
use crate::profile::{Dram, FUNCTIONS, Link, Port};

const ABI_VERSION: u32 = 7;
/// Largest packet from a board port to the host, in bytes.
pub(crate) const MAX_PACKET: usize = 9234;
/// Bytes that a board port buffers for its function.
pub(crate) const PORT_QUEUE: usize = 1 << 20;
/// The packet is an Ethernet frame as on the line: not padded, and dropped by the port if it is no valid one.
pub(crate) const FRAME_AS_IS: u32 = 1;
/// Its frame check sequence is wrong.
pub(crate) const FRAME_BAD_FCS: u32 = 2;
const DMA_READ: c_uint = 1;
const DMA_WRITE: c_uint = 2;

#[repr(C)]
struct Config {
    abi: u32,
    clk_khz: u32,
    link: Link,
    dram: Dram,
    port: [Port; FUNCTIONS],
    image_dir: *const c_char,
}

/// Counters of a card since power-up.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counters {
    /// Cycles.
    pub cycles: u64,
    /// Cycles in which the shell was evaluated: in the others it was idle.
    pub shell_evals: u64,
    /// Evaluations of apps, over all slots.
    pub slot_evals: u64,
    /// Register reads of the host.
    pub mmio_reads: u64,
    /// Register writes of the host.
    pub mmio_writes: u64,
    /// Interrupts that reached the host.
    pub irqs: u64,
    /// Bytes of host memory requested by the card.
    pub host_read_bytes: u64,
    /// Bytes the card has written to host memory, in whole double words.
    pub host_write_bytes: u64,
    /// Read requests on the link.
    pub host_read_tlps: u64,
    /// Writes on the link.
    pub host_write_tlps: u64,
    /// Bytes read from each DRAM channel.
    pub dram_read_bytes: [u64; 16],
    /// Bytes written to each DRAM channel.
    pub dram_write_bytes: [u64; 16],
    /// Column accesses of each channel that found their row open.
    pub dram_row_hits: [u64; 16],
    /// Column accesses of each channel that needed a row opened.
    pub dram_row_misses: [u64; 16],
    /// Time in picoseconds that packets of all kinds, with their headers, have occupied the link from the card.
    pub link_up_ps: u64,
    /// The same for the link to the card.
    pub link_down_ps: u64,
    /// For each slot: cycle of the first transfer at its app's streams and memory port since a register of the app was last written.
    pub slot_first: [u64; 16],
    /// Cycle of the last one.
    pub slot_last: [u64; 16],
    /// Beats into the app since then.
    pub slot_beats_in: [u64; 16],
    /// Beats out of it.
    pub slot_beats_out: [u64; 16],
    /// For each slot: bytes into the streams of its apps.
    pub slot_stream_in: [u64; 16],
    /// Bytes out of them.
    pub slot_stream_out: [u64; 16],
    /// Bytes, in whole beats, that its apps have read through their memory ports.
    pub slot_mem_read: [u64; 16],
    /// Bytes that they have written.
    pub slot_mem_write: [u64; 16],
    /// Slots of the card.
    pub slots: u32,
    /// Its DRAM channels.
    pub channels: u32,
    /// Bit s: an app is in slot s.
    pub slots_loaded: u32,
    /// Bit s: the app in slot s reports that it computes.
    pub slots_busy: u32,
    /// What the model of the system monitor has measured last: degrees Celsius.
    pub temperature: f64,
    /// Volts of the supply of the logic.
    pub vccint_volts: f64,
    /// Amperes of it.
    pub vccint_amperes: f64,
}

/// Counters of a function of a card, and of its board port, since power-up.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionCounters {
    /// Reads of registers, and of the part of configuration space that the card implements.
    pub mmio_reads: u64,
    /// Writes of these.
    pub mmio_writes: u64,
    /// Interrupts that reached the host.
    pub irqs: u64,
    /// Bytes of host memory requested by the function.
    pub host_read_bytes: u64,
    /// Bytes the function has written to host memory, in whole double words.
    pub host_write_bytes: u64,
    /// Read requests on the link.
    pub host_read_tlps: u64,
    /// Writes on the link.
    pub host_write_tlps: u64,
    /// Packets sent by the function through its board port.
    pub tx_packets: u64,
    /// Bytes in them.
    pub tx_bytes: u64,
    /// Packets from the function that were dropped: of an invalid length, or not received by a backend.
    pub tx_drops: u64,
    /// Packets received by the function.
    pub rx_packets: u64,
    /// Bytes in them.
    pub rx_bytes: u64,
    /// Packets that were dropped because the function was too slow, or that were no valid Ethernet frames.
    pub rx_drops: u64,
    /// Of the frames from the function that were dropped, those that were too short for Ethernet.
    pub tx_short: u64,
    /// Those that were longer than the port is set to.
    pub tx_long: u64,
    /// Those that were on the line when its link was down.
    pub tx_down: u64,
    /// Those that the host did not take in time.
    pub tx_full: u64,
    /// Of the frames to the function that were dropped, those of less than 64 bytes with their FCS.
    pub rx_short: u64,
    /// Those that were longer than the port is set to.
    pub rx_long: u64,
    /// Those with a wrong frame check sequence.
    pub rx_fcs: u64,
    /// Those that were on the line when its link was down.
    pub rx_down: u64,
    /// Those that found no room in the port's buffer, as the function was too slow.
    pub rx_full: u64,
    /// Time in picoseconds that frames from the function, with preamble and gap, have taken of the Ethernet line, up to the end of the
    /// last one that has been given to the port.
    pub tx_busy_ps: u64,
    /// The same for frames to the function.
    pub rx_busy_ps: u64,
    /// Bytes that the Ethernet line carries in a second; 0 if the port is none.
    pub line_bytes_per_second: u64,
    /// 1 while its link is up.
    pub link_up: u64,
}

/// A record of a trace, as the card has it (`vsim_trace_record`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Record {
    pub begin: u64,
    pub end: u64,
    pub amount: u64,
    pub waited: u64,
    pub kind: u32,
    pub index: u16,
    pub port: u16,
}

/// Address space of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// A BAR, 0 to 5.
    Bar(u8),
    /// The part of its configuration space that the card implements.
    Config,
}

impl Space {
    fn number(self) -> c_uint {
        match self {
            Self::Bar(bar) => bar.into(),
            Self::Config => 6,
        }
    }
}

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        struct Functions { $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }
        impl Functions {
            fn of(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {$(
                    // SAFETY: the types are those of the header of the same ABI version; vsim_open checks the version
                    // before it uses anything else.
                    $name: unsafe { *library.get(concat!(stringify!($name), "\0").as_bytes())? },
                )*})
            }
        }
    };
}

functions! {
    vsim_open: fn(*const Config, *mut c_char, usize) -> *mut c_void;
    vsim_close: fn(*mut c_void);
    vsim_error: fn(*const c_void) -> *const c_char;
    vsim_reset: fn(*mut c_void);
    vsim_bar_read: fn(*mut c_void, c_uint, u64, *mut u32) -> c_int;
    vsim_bar_write: fn(*mut c_void, c_uint, u64, u32) -> c_int;
    vsim_functions: fn(*const c_void) -> c_uint;
    vsim_fn_read: fn(*mut c_void, c_uint, c_uint, u32, c_uint, *mut u32) -> c_int;
    vsim_fn_write: fn(*mut c_void, c_uint, c_uint, u32, c_uint, u32) -> c_int;
    vsim_fn_bus_master: fn(*mut c_void, c_uint, c_int) -> c_int;
    vsim_fn_reset: fn(*mut c_void, c_uint) -> c_int;
    vsim_dma_map: fn(*mut c_void, c_uint, u64, *mut c_void, u64, c_uint) -> c_int;
    vsim_dma_unmap: fn(*mut c_void, c_uint, u64, u64) -> c_int;
    vsim_run: fn(*mut c_void, u64, u32, u32) -> u64;
    vsim_stop: fn(*mut c_void);
    vsim_charge: fn(*mut c_void, u64);
    vsim_parked: fn(*const c_void) -> c_int;
    vsim_now: fn(*const c_void) -> u64;
    vsim_link_fs_per_byte: fn(*const c_void) -> u64;
    vsim_irq_take: fn(*mut c_void, c_uint, u64) -> u64;
    vsim_port_send: fn(*mut c_void, c_uint, u8, u64, u32, *const c_void, usize) -> c_int;
    vsim_port_receive: fn(*mut c_void, c_uint, *mut u8, *mut u64, *mut c_void, usize) -> i64;
    vsim_port_link: fn(*mut c_void, c_uint, c_uint) -> c_int;
    vsim_port_room: fn(*const c_void, c_uint) -> usize;
    vsim_port_packets: fn(*const c_void) -> u32;
    vsim_wave_open: fn(*mut c_void, *const c_char, u64, u64) -> c_int;
    vsim_record: fn(*mut c_void, u64) -> c_int;
    vsim_replay: fn(*mut c_void, c_int) -> i64;
    vsim_trace: fn(*mut c_void, c_int) -> c_int;
    vsim_trace_take: fn(*mut c_void, *mut Record, usize, c_int) -> usize;
    vsim_get_counters: fn(*const c_void, *mut Counters);
    vsim_get_fn_counters: fn(*const c_void, c_uint, *mut FunctionCounters) -> c_int;
}

/// A failure the card reported.
#[derive(Debug)]
pub(crate) struct Failure {
    pub errno: i32,
    pub why: String,
}

/// A powered-up card. For one thread at a time.
pub(crate) struct Card {
    sim: NonNull<c_void>,
    clk_khz: u32,
    functions: Functions,
    process: Process,
    _library: Library,
}

// SAFETY: the card is bound to no thread; `&mut self` or the owner's lock serialises all calls.
unsafe impl Send for Card {}

/// Interrupts a thread inside [`Card::run`].
pub(crate) struct Stopper {
    sim: NonNull<c_void>,
    vsim_stop: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: the card allows this one call from any thread at any time.
unsafe impl Send for Stopper {}
// SAFETY: as above.
unsafe impl Sync for Stopper {}

impl Stopper {
    /// Makes [`Card::run`] return soon.
    pub fn stop(&self) {
        // SAFETY: the card is open: the owner of a stopper owns the card as well.
        unsafe { (self.vsim_stop)(self.sim.as_ptr()) }
    }
}

type Outcome<T> = Result<T, Failure>;

/// The limit that kept a shared object from being loaded, in the words of the C library, and what to do.
fn limit(why: &str) -> Option<&'static str> {
    let says = |words: &[&str]| words.iter().any(|word| why.contains(word));
    if says(&["Too many open files"]) {
        Some("the limit of open files is reached (`ulimit -n`): raise it")
    } else if says(&["Cannot allocate memory", "failed to map segment"]) {
        Some("memory is short: end other programs, or raise its limit (`ulimit -v`)")
    } else {
        None
    }
}

impl Card {
    /// Powers up a card from its shared object.
    pub fn open(
        object: &Path,
        clk_khz: u32,
        link: &Link,
        dram: &Dram,
        port: [Port; FUNCTIONS],
        images: &Path,
    ) -> Result<Self, SimError> {
        if !object.exists() {
            return Err(SimError::NoCard { path: object.to_owned() });
        }
        let not_a_card = |source: libloading::Error| {
            let why = source.to_string();
            match limit(&why) {
                Some(limit) => SimError::Refused(format!("{why}; {limit}")),
                None => SimError::NotACard { path: object.to_owned(), why },
            }
        };
        // SAFETY: running the object's constructors is what opening a card means; the path is the user's choice.
        let library = unsafe { Library::new(object) }.map_err(not_a_card)?;
        let functions = Functions::of(&library).map_err(not_a_card)?;
        let image_dir = CString::new(images.as_os_str().as_encoded_bytes())
            .map_err(|_| SimError::Refused("the image folder's name holds a NUL".into()))?;
        let config = Config {
            abi: ABI_VERSION,
            clk_khz,
            link: link.clone(),
            dram: dram.clone(),
            port,
            image_dir: image_dir.as_ptr(),
        };
        let mut message = [0u8; 512];
        // SAFETY: the configuration and the message buffer outlive the call.
        let sim = unsafe { (functions.vsim_open)(&config, message.as_mut_ptr().cast(), message.len()) };
        let Some(sim) = NonNull::new(sim) else {
            return Err(SimError::Refused(text(&message)));
        };
        Ok(Self { sim, clk_khz, functions, process: Process::current(), _library: library })
    }

    /// Reads a register of the management function.
    pub fn read(&mut self, bar: u8, offset: u64) -> Outcome<u32> {
        let mut value = 0;
        // SAFETY: `sim` is open; `value` outlives the call.
        let code =
            unsafe { (self.functions.vsim_bar_read)(self.sim.as_ptr(), bar.into(), offset, &mut value) };
        self.outcome(code)?;
        Ok(value)
    }

    /// Writes a register of the management function.
    pub fn write(&mut self, bar: u8, offset: u64, value: u32) -> Outcome<()> {
        // SAFETY: `sim` is open.
        let code = unsafe { (self.functions.vsim_bar_write)(self.sim.as_ptr(), bar.into(), offset, value) };
        self.outcome(code)
    }

    /// Functions other than the management function.
    pub fn functions(&self) -> usize {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_functions)(self.sim.as_ptr()) as usize }
    }

    /// Reads 1, 2 or 4 bytes.
    pub fn fn_read(&mut self, function: u32, space: Space, offset: u32, bytes: u32) -> Outcome<u32> {
        let mut value = 0;
        // SAFETY: `sim` is open; `value` outlives the call.
        let code = unsafe {
            (self.functions.vsim_fn_read)(
                self.sim.as_ptr(),
                function,
                space.number(),
                offset,
                bytes,
                &mut value,
            )
        };
        self.outcome(code)?;
        Ok(value)
    }

    /// Writes 1, 2 or 4 bytes.
    pub fn fn_write(
        &mut self,
        function: u32,
        space: Space,
        offset: u32,
        bytes: u32,
        value: u32,
    ) -> Outcome<()> {
        // SAFETY: `sim` is open.
        let code = unsafe {
            (self.functions.vsim_fn_write)(self.sim.as_ptr(), function, space.number(), offset, bytes, value)
        };
        self.outcome(code)
    }

    /// Enables or disables a function's bus mastering.
    pub fn fn_bus_master(&mut self, function: u32, on: bool) -> Outcome<()> {
        // SAFETY: `sim` is open.
        let code = unsafe { (self.functions.vsim_fn_bus_master)(self.sim.as_ptr(), function, on.into()) };
        self.outcome(code)
    }

    /// Function-level reset.
    pub fn fn_reset(&mut self, function: u32) -> Outcome<()> {
        // SAFETY: `sim` is open.
        let code = unsafe { (self.functions.vsim_fn_reset)(self.sim.as_ptr(), function) };
        self.outcome(code)
    }

    /// # Safety
    /// `host` is valid for `len` bytes, for writing too if `write`, until the range is unmapped or the card dropped.
    pub unsafe fn dma_map(
        &mut self,
        function: u32,
        iova: u64,
        host: *mut u8,
        len: u64,
        read: bool,
        write: bool,
    ) -> Outcome<()> {
        let perms = if read { DMA_READ } else { 0 } | if write { DMA_WRITE } else { 0 };
        // SAFETY: `sim` is open; the memory is as the caller promises.
        let code = unsafe {
            (self.functions.vsim_dma_map)(self.sim.as_ptr(), function, iova, host.cast(), len, perms)
        };
        self.outcome(code)
    }

    /// Removes a DMA mapping.
    pub fn dma_unmap(&mut self, function: u32, iova: u64, len: u64) -> Outcome<()> {
        // SAFETY: `sim` is open.
        let code = unsafe { (self.functions.vsim_dma_unmap)(self.sim.as_ptr(), function, iova, len) };
        self.outcome(code)
    }

    /// Runs until an interrupt of the functions in `irq_of` or a packet of those in `packet_of` is available, the card is
    /// idle, or [`Stopper::stop`] is called.
    pub fn run(&mut self, max_cycles: u64, irq_of: u32, packet_of: u32) -> u64 {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_run)(self.sim.as_ptr(), max_cycles, irq_of, packet_of) }
    }

    /// Lets other threads interrupt [`Card::run`]. Not to be used after the card is dropped.
    pub fn stopper(&self) -> Stopper {
        Stopper { sim: self.sim, vsim_stop: self.functions.vsim_stop }
    }

    /// Advances the card's time, as though the host had been busy that long.
    pub fn charge(&mut self, ns: u64) {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_charge)(self.sim.as_ptr(), ns) }
    }

    /// Resets the card.
    pub fn reset(&mut self) {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_reset)(self.sim.as_ptr()) }
    }

    /// Whether the card is idle until the host does something.
    pub fn parked(&self) -> bool {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_parked)(self.sim.as_ptr()) != 0 }
    }

    /// Cycles since power-up.
    pub fn now(&self) -> u64 {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_now)(self.sim.as_ptr()) }
    }

    /// Picoseconds since power-up.
    pub fn now_ps(&self) -> u64 {
        (u128::from(self.now()) * 1_000_000_000 / u128::from(self.clk_khz)) as u64
    }

    /// Femtoseconds per byte of a packet on the link, including the overhead of the lower layers.
    pub fn link_fs_per_byte(&self) -> u64 {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_link_fs_per_byte)(self.sim.as_ptr()) }
    }

    /// Returns and clears the pending interrupts of a function in `mask`.
    pub fn irq_take(&mut self, function: u32, mask: u64) -> u64 {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_irq_take)(self.sim.as_ptr(), function, mask) }
    }

    /// Hands a packet to a board port.
    pub fn port_send(&mut self, function: u32, channel: u8, data: &[u8]) -> Outcome<()> {
        self.give(function, channel, 0, 0, data)
    }

    /// Hands a frame to the Ethernet port, which does not begin with it before a time in picoseconds; `flags` are `FRAME_…`.
    pub fn port_send_at(
        &mut self,
        function: u32,
        not_before_ps: u64,
        flags: u32,
        frame: &[u8],
    ) -> Outcome<()> {
        self.give(function, 0, not_before_ps, flags, frame)
    }

    fn give(
        &mut self,
        function: u32,
        channel: u8,
        not_before_ps: u64,
        flags: u32,
        data: &[u8],
    ) -> Outcome<()> {
        // SAFETY: `sim` is open; the card copies `data`.
        let code = unsafe {
            (self.functions.vsim_port_send)(
                self.sim.as_ptr(),
                function,
                channel,
                not_before_ps,
                flags,
                data.as_ptr().cast(),
                data.len(),
            )
        };
        self.outcome(code)
    }

    /// Sets the state of an Ethernet port's link: 0 up, 1 down, 2 looped back.
    pub fn port_link(&mut self, function: u32, state: u32) -> Outcome<()> {
        // SAFETY: `sim` is open.
        let code = unsafe { (self.functions.vsim_port_link)(self.sim.as_ptr(), function, state) };
        self.outcome(code)
    }

    /// Takes the oldest packet from a board port to the host: returns its channel, when it was on the line, in picoseconds, and its length,
    /// with the bytes in `data`.
    pub fn port_receive(&mut self, function: u32, data: &mut [u8; MAX_PACKET]) -> Option<(u8, u64, usize)> {
        let (mut channel, mut sent_ps) = (0, 0);
        // SAFETY: `sim` is open; both buffers outlive the call and have the stated lengths.
        let len = unsafe {
            (self.functions.vsim_port_receive)(
                self.sim.as_ptr(),
                function,
                &mut channel,
                &mut sent_ps,
                data.as_mut_ptr().cast(),
                data.len(),
            )
        };
        usize::try_from(len).ok().map(|len| (channel, sent_ps, len.min(data.len())))
    }

    /// Whether a board port has a packet for the host.
    pub fn port_has_packet(&self, function: u32) -> bool {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_port_packets)(self.sim.as_ptr()) >> function & 1 != 0 }
    }

    /// Bytes that [`Card::port_send`] accepts now.
    pub fn port_room(&self, function: u32) -> usize {
        // SAFETY: `sim` is open.
        unsafe { (self.functions.vsim_port_room)(self.sim.as_ptr(), function) }
    }

    /// Writes waveforms for `cycles` cycles from cycle `start` on.
    pub fn wave_open(&mut self, path: &Path, start: u64, cycles: u64) -> Outcome<()> {
        let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else {
            return Err(Failure { errno: libc::EINVAL, why: "the wave file's name holds a NUL".into() });
        };
        // SAFETY: `sim` is open; `path` outlives the call.
        let code =
            unsafe { (self.functions.vsim_wave_open)(self.sim.as_ptr(), path.as_ptr(), start, cycles) };
        self.outcome(code)
    }

    /// See [`SimCard::record`](crate::SimCard::record).
    pub fn record(&mut self, edges: u64) -> Outcome<()> {
        // SAFETY: `sim` is open.
        let code = unsafe { (self.functions.vsim_record)(self.sim.as_ptr(), edges) };
        self.outcome(code)
    }

    /// See [`SimCard::replay`](crate::SimCard::replay).
    pub fn replay(&mut self, verify: bool) -> Outcome<u64> {
        // SAFETY: `sim` is open.
        let edges = unsafe { (self.functions.vsim_replay)(self.sim.as_ptr(), verify.into()) };
        self.outcome(edges.min(0) as c_int)?;
        Ok(edges.unsigned_abs())
    }

    /// Begins or ends a trace.
    pub fn trace(&mut self, on: bool) -> Outcome<()> {
        // SAFETY: `sim` is open.
        let code = unsafe { (self.functions.vsim_trace)(self.sim.as_ptr(), on.into()) };
        self.outcome(code)
    }

    /// Takes records of the trace, with `end` those too that are not over; returns how many.
    pub fn trace_take(&mut self, records: &mut [Record], end: bool) -> usize {
        let (to, room) = (records.as_mut_ptr(), records.len());
        // SAFETY: `sim` is open; the records have the layout of the header, and there is room for as many.
        unsafe { (self.functions.vsim_trace_take)(self.sim.as_ptr(), to, room, end.into()) }
    }

    /// Counters of the card.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        // SAFETY: `sim` is open; the struct has the layout of the header.
        unsafe { (self.functions.vsim_get_counters)(self.sim.as_ptr(), &mut counters) }
        counters
    }

    /// Counters of a function.
    pub fn fn_counters(&self, function: u32) -> Option<FunctionCounters> {
        let mut counters = FunctionCounters::default();
        // SAFETY: `sim` is open; the struct has the layout of the header.
        let code =
            unsafe { (self.functions.vsim_get_fn_counters)(self.sim.as_ptr(), function, &mut counters) };
        (code == 0).then_some(counters)
    }

    fn outcome(&self, code: c_int) -> Outcome<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the string belongs to the card, is terminated, and is valid until the next call.
        let why = unsafe { std::ffi::CStr::from_ptr((self.functions.vsim_error)(self.sim.as_ptr())) };
        Err(Failure { errno: -code, why: why.to_string_lossy().into_owned() })
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // Closing would wait for threads of the parent.
            return;
        }
        // SAFETY: `sim` is open and not used again; the library is unloaded after it.
        unsafe { (self.functions.vsim_close)(self.sim.as_ptr()) }
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
