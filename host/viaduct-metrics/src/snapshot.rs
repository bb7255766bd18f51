// SPDX-License-Identifier: Apache-2.0
//! The counters of a card at a moment.

use serde::{Deserialize, Serialize};
use viaduct_sim::{FunctionCounters, SimCard, function_name};

/// The counters of a card at a moment. All but levels count from power-up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The board.
    pub board: String,
    /// Clock in kHz.
    pub clock_khz: u32,
    /// Cycles.
    pub cycles: u64,
    /// The PCIe link.
    pub link: Link,
    /// DRAM channels.
    pub channels: Vec<Channel>,
    /// Slots.
    pub slots: Vec<Slot>,
    /// Functions, the management function first.
    pub functions: Vec<Function>,
    /// The system monitor. Of a simulated card its values are those of a model.
    #[serde(default)]
    pub sysmon: Option<Sysmon>,
}

/// What the system monitor has measured last.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sysmon {
    /// Temperature of the die in degrees Celsius.
    pub temperature_celsius: f64,
    /// Supply of the logic in volts.
    pub vccint_volts: f64,
    /// Its current in amperes.
    pub vccint_amperes: f64,
}

/// The PCIe link.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Link {
    /// Seconds in which packets took the link from the card.
    pub from_card_seconds: f64,
    /// The same for the link to the card.
    pub to_card_seconds: f64,
}

/// A DRAM channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Channel {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Column accesses that found their row open.
    pub row_hits: u64,
    /// Column accesses that needed a row opened.
    pub row_misses: u64,
}

/// A slot. Bytes are those of all apps that were in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Slot {
    /// An app is in it.
    pub loaded: bool,
    /// The app reports that it computes.
    pub busy: bool,
    /// Bytes into streams.
    pub stream_in_bytes: u64,
    /// Bytes out of streams.
    pub stream_out_bytes: u64,
    /// Bytes in whole beats read through the memory port.
    pub memory_read_bytes: u64,
    /// Bytes written through the memory port.
    pub memory_write_bytes: u64,
}

/// A PCI function.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Register reads of the host.
    pub register_reads: u64,
    /// Register writes of the host.
    pub register_writes: u64,
    /// Interrupts that reached the host.
    pub interrupts: u64,
    /// Bytes of host memory that it has requested.
    pub host_read_bytes: u64,
    /// Bytes that it has written to host memory.
    pub host_write_bytes: u64,
    /// Packets sent through its board port.
    pub tx_packets: u64,
    /// Bytes in them.
    pub tx_bytes: u64,
    /// Of its packets those that were dropped: of an invalid length, or not taken.
    pub tx_drops: u64,
    /// Packets received through its board port.
    pub rx_packets: u64,
    /// Bytes in them.
    pub rx_bytes: u64,
    /// Packets that were dropped because it was too slow, or that were no valid frames.
    pub rx_drops: u64,
    /// The Ethernet line at its board port, if it has one.
    #[serde(default)]
    pub line: Option<Line>,
}

/// An Ethernet line.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Line {
    /// Bits that it carries in a second.
    pub bits_per_second: u64,
    /// Its link is up.
    pub up: bool,
    /// Seconds of the card's time that frames from the card, with preamble and gap, have taken of it.
    pub tx_seconds: f64,
    /// The same for frames to the card.
    pub rx_seconds: f64,
    /// Frames from the card that were dropped, by cause.
    pub tx_dropped: Dropped,
    /// Frames to the card that were dropped, by cause.
    pub rx_dropped: Dropped,
}

/// Frames that were dropped, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dropped {
    /// Shorter than a frame of Ethernet.
    pub short: u64,
    /// Longer than the port is set to.
    pub long: u64,
    /// Their frame check sequence was wrong.
    pub fcs: u64,
    /// The link was down.
    pub link: u64,
    /// There was no room for them where they arrived.
    pub room: u64,
}

impl Dropped {
    /// Names of the causes, and their numbers.
    pub fn causes(&self) -> [(&'static str, u64); 5] {
        let Self { short, long, fcs, link, room } = *self;
        [("short", short), ("long", long), ("fcs", fcs), ("link", link), ("room", room)]
    }
}

impl Snapshot {
    /// The counters of a card, all of the same moment.
    pub fn of(card: &SimCard, board: &str) -> Self {
        let (c, functions) = card.all_counters();
        let picoseconds = |ps: u64| ps as f64 / 1e12;
        let slot = |s: usize| Slot {
            loaded: c.slots_loaded >> s & 1 != 0,
            busy: c.slots_busy >> s & 1 != 0,
            stream_in_bytes: c.slot_stream_in[s],
            stream_out_bytes: c.slot_stream_out[s],
            memory_read_bytes: c.slot_mem_read[s],
            memory_write_bytes: c.slot_mem_write[s],
        };
        let channel = |n: usize| Channel {
            read_bytes: c.dram_read_bytes[n],
            write_bytes: c.dram_write_bytes[n],
            row_hits: c.dram_row_hits[n],
            row_misses: c.dram_row_misses[n],
        };
        let function = |(number, f): (usize, &FunctionCounters)| Function {
            name: function_name(number).unwrap_or("unknown").to_owned(),
            register_reads: f.mmio_reads,
            register_writes: f.mmio_writes,
            interrupts: f.irqs,
            host_read_bytes: f.host_read_bytes,
            host_write_bytes: f.host_write_bytes,
            tx_packets: f.tx_packets,
            tx_bytes: f.tx_bytes,
            tx_drops: f.tx_drops,
            rx_packets: f.rx_packets,
            rx_bytes: f.rx_bytes,
            rx_drops: f.rx_drops,
            line: (f.line_bytes_per_second > 0).then(|| Line {
                bits_per_second: 8 * f.line_bytes_per_second,
                up: f.link_up != 0,
                tx_seconds: picoseconds(f.tx_busy_ps),
                rx_seconds: picoseconds(f.rx_busy_ps),
                tx_dropped: Dropped {
                    short: f.tx_short,
                    long: f.tx_long,
                    fcs: 0,
                    link: f.tx_down,
                    room: f.tx_full,
                },
                rx_dropped: Dropped {
                    short: f.rx_short,
                    long: f.rx_long,
                    fcs: f.rx_fcs,
                    link: f.rx_down,
                    room: f.rx_full,
                },
            }),
        };
        Self {
            board: board.to_owned(),
            clock_khz: card.clock_khz(),
            cycles: c.cycles,
            link: Link {
                from_card_seconds: picoseconds(c.link_up_ps),
                to_card_seconds: picoseconds(c.link_down_ps),
            },
            channels: (0..c.channels as usize).map(channel).collect(),
            slots: (0..c.slots as usize).map(slot).collect(),
            functions: functions.iter().enumerate().map(function).collect(),
            sysmon: Some(Sysmon {
                temperature_celsius: c.temperature,
                vccint_volts: c.vccint_volts,
                vccint_amperes: c.vccint_amperes,
            }),
        }
    }

    /// Seconds that `cycles` take at the card's clock.
    pub fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / (f64::from(self.clock_khz.max(1)) * 1e3)
    }
}
