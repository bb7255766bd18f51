// SPDX-License-Identifier: Apache-2.0
//! What a card does at a moment, for who looks at it: its slots, what they have moved and how long they waited, and its routes.

use serde::{Deserialize, Serialize};
use viaduct::{Card, Result, SlotCounters};

/// A card at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct View {
    /// Cycles since power-up.
    pub cycles: u64,
    /// Clock in kHz.
    pub clock_khz: u32,
    /// DRAM channels.
    pub channels: u32,
    /// MiB of each channel.
    pub channel_mib: u64,
    /// Names of the functions that the card has beside the management function.
    pub functions: Vec<String>,
    /// Its slots, in order.
    pub slots: Vec<SlotView>,
    /// Routes, and functions that are attached to slots.
    pub routes: Vec<RouteView>,
}

/// A slot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlotView {
    /// An app is in it.
    pub loaded: bool,
    /// The app reports that it computes.
    pub busy: bool,
    /// It is isolated: it was stopped, its app has broken a rule, or nobody uses it.
    pub isolated: bool,
    /// Who looks may not see more of it: it is another user's. What follows is empty.
    pub hidden: bool,
    /// Who uses it, if that is known.
    pub user: Option<Occupant>,
    /// What it has moved since it was opened; by a card that is looked at without a daemon since its reset, modulo 2^32 beats. None on a card
    /// that cannot tell.
    pub moved: Option<Moved>,
}

/// Who uses a slot, and how it is scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Occupant {
    /// Name of the app.
    pub app: String,
    /// Number of the user.
    pub uid: u32,
    /// Number of the process that has connected.
    pub pid: i32,
    /// Its schedule, in the form of [`viaduct::Schedule`].
    pub schedule: String,
    /// It is paused.
    pub paused: bool,
}

/// What a slot has moved, and how long it waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moved {
    /// Bytes handed to the app's input streams, in whole beats, as all that follows.
    pub stream_in: u64,
    /// Bytes taken from the app's output streams.
    pub stream_out: u64,
    /// Bytes read through the app's memory port.
    pub memory_read: u64,
    /// Bytes written through the app's memory port.
    pub memory_written: u64,
    /// Bytes read from card memory, by the app, its streams and a disk.
    pub card_read: u64,
    /// Bytes written to card memory.
    pub card_written: u64,
    /// Bytes read from host memory.
    pub host_read: u64,
    /// Bytes written to host memory.
    pub host_written: u64,
    /// Cycles in which a read has waited: for others, its rate, its cap.
    pub read_wait: u64,
    /// Cycles in which a write has.
    pub write_wait: u64,
    /// Bursts that found no translation: page faults, and what the page table in card memory has answered.
    pub missed: u64,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RouteView {
    /// Where messages come from, in the form of [`viaduct::Port`].
    pub source: String,
    /// Where they go to.
    pub sink: String,
    /// The sink is to get another source, or none, once the message that it takes has ended.
    pub changing: bool,
}

impl Moved {
    /// From counters, with so many bytes in a beat.
    pub fn new(counters: &SlotCounters, data_bytes: usize) -> Self {
        let bytes = |beats: u32| u64::from(beats) * data_bytes as u64;
        let sum = |one: u32, other: u32| u64::from(one) + u64::from(other);
        Self {
            stream_in: bytes(counters.beats_in),
            stream_out: bytes(counters.beats_out),
            memory_read: bytes(counters.rd_beats),
            memory_written: bytes(counters.wr_beats),
            card_read: bytes(counters.card_rd),
            card_written: bytes(counters.card_wr),
            host_read: bytes(counters.host_rd),
            host_written: bytes(counters.host_wr),
            read_wait: counters.rd_wait.into(),
            write_wait: counters.wr_wait.into(),
            missed: sum(counters.rd_miss, counters.wr_miss),
        }
    }

    /// Both together.
    pub fn plus(&self, more: &Self) -> Self {
        self.each(more, u64::saturating_add)
    }

    /// What has come since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        self.each(earlier, u64::saturating_sub)
    }

    fn each(&self, other: &Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            stream_in: both(self.stream_in, other.stream_in),
            stream_out: both(self.stream_out, other.stream_out),
            memory_read: both(self.memory_read, other.memory_read),
            memory_written: both(self.memory_written, other.memory_written),
            card_read: both(self.card_read, other.card_read),
            card_written: both(self.card_written, other.card_written),
            host_read: both(self.host_read, other.host_read),
            host_written: both(self.host_written, other.host_written),
            read_wait: both(self.read_wait, other.read_wait),
            write_wait: both(self.write_wait, other.write_wait),
            missed: both(self.missed, other.missed),
        }
    }
}

impl View {
    /// What a card tells itself: not who uses its slots. Some hundred accesses to its registers. Also the counters that [`View`] has as
    /// sums; a card with a register map before 2.3 has none.
    pub fn of(card: &Card) -> Result<(Self, Option<Vec<SlotCounters>>)> {
        let info = card.info();
        let (cycles, counters) = match info.version.1 {
            0..=2 => (card.time()?, None),
            _ => card.counters().map(|(cycles, counters)| (cycles, Some(counters)))?,
        };
        let slot = |index: usize| -> Result<SlotView> {
            let status = card.slot_status(index)?;
            let moved = counters.as_ref().map(|all| Moved::new(&all[index], info.data_bytes));
            let (loaded, busy, isolated) = (status.loaded, status.busy, status.isolated);
            Ok(SlotView { loaded, busy, isolated, moved, ..SlotView::default() })
        };
        let routes = card.route_states()?.into_iter().map(|route| RouteView {
            source: route.source.to_string(),
            sink: route.sink.to_string(),
            changing: route.changing,
        });
        let view = Self {
            cycles,
            clock_khz: info.clock_khz,
            channels: info.channels as u32,
            channel_mib: info.chan_mib,
            functions: card.functions()?.into_iter().map(|kind| kind.name().to_owned()).collect(),
            slots: (0..info.slots).map(slot).collect::<Result<_>>()?,
            routes: routes.collect(),
        };
        Ok((view, counters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_on_where_counters_begin_again() {
        let at =
            |beats: u32| SlotCounters { beats_in: beats, rd_miss: 1, wr_miss: 2, ..SlotCounters::default() };
        let grown = at(5).since(&at(u32::MAX - 2));
        let moved = Moved::new(&grown, 64);
        assert_eq!((moved.stream_in, moved.missed), (8 * 64, 0));
        assert_eq!(Moved::new(&at(1), 64).missed, 3);
        let sum = moved.plus(&Moved { stream_in: u64::MAX - 1, ..Moved::default() });
        assert_eq!(sum.stream_in, u64::MAX);
        assert_eq!(moved.since(&sum).stream_in, 0);
    }
}
