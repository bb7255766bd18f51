// SPDX-License-Identifier: Apache-2.0
//! The structures of the header. Sizes are checked here and, from C, by `tests/c/abi.c`.

use std::ffi::{c_char, c_int, c_void};

use host::{CardInfo, PagerStats, RouteState, SlotCounters};

/// `VIADUCT_ABI_VERSION`.
pub(crate) const ABI_VERSION: u32 = 5;

pub(crate) const IN: i32 = 0;
pub(crate) const OUT: i32 = 1;
pub(crate) const MEMORY: i32 = 2;

pub(crate) const LENGTH_ANY: i32 = 0;
pub(crate) const LENGTH_SAME: i32 = 1;
pub(crate) const LENGTH_MESSAGE: i32 = 2;

pub(crate) const ACCESS_RW: i32 = 0;
pub(crate) const ACCESS_RO: i32 = 1;
pub(crate) const ACCESS_PULSE: i32 = 2;

pub(crate) const ALLOCATE: u64 = u64::MAX;

pub(crate) const MAP_FAILED: u64 = u64::MAX;
pub(crate) const MAP_HOST: c_int = 1 << 21;
pub(crate) const MAP_SMALL: c_int = 1 << 22;

pub(crate) const MADV_REUSE: c_int = 0x1000;
pub(crate) const MADV_LOWUSE: c_int = 0x1001;

/// `viaduct_timeouts`
#[repr(C)]
pub struct Timeouts {
    pub stall_ms: u32,
    pub busy_ms: u32,
    pub control_ms: u32,
}

/// `viaduct_connection_info`
#[repr(C)]
pub struct ConnectionInfo {
    source: [c_char; 24],
    sink: [c_char; 24],
    changing: u32,
    reserved: u32,
}

impl ConnectionInfo {
    pub(crate) fn new(route: &RouteState) -> Self {
        // The longest name of an end has 14 characters.
        let text = |port: host::Port| {
            let mut text = [0; 24];
            let name = port.to_string();
            text.iter_mut().take(23).zip(name.bytes()).for_each(|(to, byte)| *to = byte as c_char);
            text
        };
        let (source, sink) = (text(route.source), text(route.sink));
        Self { source, sink, changing: route.changing.into(), reserved: 0 }
    }
}

/// `viaduct_info`
#[repr(C)]
pub struct Info {
    version_major: u32,
    version_minor: u32,
    slots: u32,
    channels: u32,
    streams: u32,
    data_bytes: u32,
    clock_khz: u32,
    tlb_page_ways: u32,
    tlb_page_sets: u32,
    tlb_huge_ways: u32,
    tlb_huge_sets: u32,
    reserved: u32,
    channel_mib: u64,
}

impl From<&CardInfo> for Info {
    fn from(info: &CardInfo) -> Self {
        Self {
            version_major: info.version.0,
            version_minor: info.version.1,
            slots: info.slots as u32,
            channels: info.channels as u32,
            streams: info.streams as u32,
            data_bytes: info.data_bytes as u32,
            clock_khz: info.clock_khz,
            tlb_page_ways: info.tlb_page.ways,
            tlb_page_sets: info.tlb_page.sets,
            tlb_huge_ways: info.tlb_huge.ways,
            tlb_huge_sets: info.tlb_huge.sets,
            reserved: 0,
            channel_mib: info.chan_mib,
        }
    }
}

/// `viaduct_measured`
#[repr(C)]
pub struct Measured {
    last: f64,
    min: f64,
    max: f64,
}

impl From<host::Measured> for Measured {
    fn from(m: host::Measured) -> Self {
        Self { last: m.last, min: m.min, max: m.max }
    }
}

/// `viaduct_system_monitor`
#[repr(C)]
pub struct SystemMonitor {
    model: u32,
    has_current: u32,
    temperature: Measured,
    vccint: Measured,
    vccaux: Measured,
    vccbram: Measured,
    current: f64,
    power: f64,
}
const _: () = assert!(size_of::<SystemMonitor>() == 120);

impl From<host::SystemMonitor> for SystemMonitor {
    fn from(m: host::SystemMonitor) -> Self {
        Self {
            model: m.model.into(),
            has_current: m.current.is_some().into(),
            temperature: m.temperature.into(),
            vccint: m.vccint.into(),
            vccaux: m.vccaux.into(),
            vccbram: m.vccbram.into(),
            current: m.current.unwrap_or(0.0),
            power: m.power().unwrap_or(0.0),
        }
    }
}

/// `viaduct_port`
#[repr(C)]
pub struct Port {
    pub name: *const c_char,
    pub direction: i32,
    pub length_kind: i32,
    pub length: u64,
}

/// `viaduct_register`
#[repr(C)]
pub struct Register {
    pub name: *const c_char,
    pub offset: u32,
    pub width: u32,
    pub access: i32,
    pub required: u32,
}

/// `viaduct_route`
#[repr(C)]
pub struct Route {
    pub port: *const c_char,
    pub direction: i32,
    pub reserved: i32,
    pub endpoint: *const c_char,
    pub data: *mut c_void,
    pub capacity: u64,
    pub length: u64,
}

/// `viaduct_progress`
#[repr(C)]
pub struct Progress {
    bytes_in: u64,
    total_in: u64,
    bytes_out: u64,
    cycles: u64,
}

impl From<host::Progress> for Progress {
    fn from(p: host::Progress) -> Self {
        Self { bytes_in: p.bytes_in, total_in: p.total_in, bytes_out: p.bytes_out, cycles: p.cycles }
    }
}

/// `viaduct_progress_fn`
pub(crate) type ProgressFn = unsafe extern "C" fn(*mut c_void, *const Progress) -> c_int;

/// `viaduct_run_options`
#[repr(C)]
pub struct RunOptions {
    pub chunk_bytes: u64,
    pub progress: Option<ProgressFn>,
    pub user: *mut c_void,
    pub durable: u32,
    pub reserved: u32,
}

/// `viaduct_report`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub cycles: u64,
    pub beats_in: u64,
    pub beats_out: u64,
    pub memory_read_beats: u64,
    pub memory_write_beats: u64,
    pub misses: u64,
    pub denied: u64,
}

impl Report {
    /// Differences of a slot's counters between two readings. The counters wrap.
    pub fn counted(a: &SlotCounters, b: &SlotCounters) -> Self {
        let counted = b.since(a);
        Self {
            beats_in: counted.beats_in.into(),
            beats_out: counted.beats_out.into(),
            memory_read_beats: counted.rd_beats.into(),
            memory_write_beats: counted.wr_beats.into(),
            misses: u64::from(counted.rd_miss) + u64::from(counted.wr_miss),
            ..Self::default()
        }
    }
}

/// `viaduct_pager`
#[repr(C)]
pub struct Pager {
    faults: u64,
    remapped: u64,
    pages_in: u64,
    pages_out: u64,
    evicted: u64,
    denied: u64,
    damaged: u64,
    overflowed: u64,
    demoted: u64,
    promoted: u64,
}

impl From<PagerStats> for Pager {
    fn from(stats: PagerStats) -> Self {
        let PagerStats {
            faults,
            remapped,
            pages_in,
            pages_out,
            evicted,
            overflowed,
            denied,
            damaged,
            demoted,
            promoted,
        } = stats;
        Self {
            faults,
            remapped,
            pages_in,
            pages_out,
            evicted,
            denied,
            damaged,
            overflowed,
            demoted,
            promoted,
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_abi_version() -> u32 {
    ABI_VERSION
}

/// Bytes of each structure on a 64-bit machine, as in `tests/c/abi.c`. A change means a new ABI version.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<Timeouts>() == 12);
    assert!(size_of::<Info>() == 56);
    assert!(size_of::<Port>() == 24);
    assert!(size_of::<Register>() == 24);
    assert!(size_of::<Route>() == 48);
    assert!(size_of::<Progress>() == 32);
    assert!(size_of::<RunOptions>() == 32);
    assert!(size_of::<Report>() == 72);
    assert!(size_of::<Pager>() == 80);
};

/// `viaduct_schedule`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Schedule {
    weight: u32,
    flags: u32,
    rate: u64,
    burst: u64,
    in_flight: u64,
}

impl Schedule {
    const FIRST: u32 = 1;
    const LIMIT: u32 = 2;
}

impl TryFrom<Schedule> for host::Schedule {
    type Error = host::Error;

    fn try_from(schedule: Schedule) -> host::Result<Self> {
        if schedule.flags & !(Schedule::FIRST | Schedule::LIMIT) != 0 {
            return Err(host::Error::Invalid(format!("schedule: flags {:#x} are unknown", schedule.flags)));
        }
        Ok(Self {
            // What is too large for its type is too large for a weight.
            weight: u8::try_from(schedule.weight).unwrap_or(u8::MAX),
            first: schedule.flags & Schedule::FIRST != 0,
            rate: (schedule.rate != 0)
                .then_some(host::Rate { bytes_per_second: schedule.rate, burst: schedule.burst }),
            limit: schedule.flags & Schedule::LIMIT != 0,
            in_flight: (schedule.in_flight != 0).then_some(schedule.in_flight),
        })
    }
}
