// SPDX-License-Identifier: Apache-2.0
//! How the accesses of a slot are scheduled beside those of others.

use std::fmt;
use std::str::FromStr;

use crate::card::{Card, CardInfo};
use crate::error::{Error, Result};
use crate::protocol::regs::*;

/// Minor version of the register map that brought classes, rates and caps.
pub(crate) const SCHEDULES_SINCE: u32 = 3;
/// Beats in a unit of depths, caps and windows.
const UNIT_BEATS: u64 = 16;
/// Greatest number of such units.
const MAX_UNITS: u64 = VIA_SLOT_RATE_DEPTH_MASK as u64 >> VIA_SLOT_RATE_DEPTH_LSB;
/// Units of a rate in a beat a cycle.
const RATE_UNITS: u128 = 256;
/// The greatest rate: two beats a cycle, one each way.
const MAX_RATE: u128 = 2 * RATE_UNITS;

/// How a slot's accesses of card memory, host memory and the link are scheduled beside those of other slots: all of its app, its streams, and a
/// disk in its address space. Its page loads and stores share the DMA engine by weight and class, and do not count for rate and cap. What one slot
/// does not use the others get; a slot alone gets everything, unless it has a limit or a cap.
///
/// As text, parts with commas between them: `weight=4,first,rate=2000000000,burst=65536,limit,in-flight=16384`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Slots of one class share in proportion to their weights, in bytes. From 1 to [`Slot::MAX_WEIGHT`](crate::Slot::MAX_WEIGHT).
    pub weight: u8,
    /// The slot goes before those without this: they get what it leaves. With a rate only while it keeps to that, so that the others have
    /// the rest of the link and of each channel for certain.
    pub first: bool,
    /// What the slot may go first with, or is limited to.
    pub rate: Option<Rate>,
    /// Beyond its rate the slot waits, even if nobody else wants anything. Without it, it goes on as one that does not go first.
    pub limit: bool,
    /// Bytes of the slot that are under way at a time, reads and writes each, about: what others wait for when they come. A multiple of 16 beats
    /// is taken, and up to two bursts (8 KiB) more can be under way. None: as many as the card can.
    pub in_flight: Option<u64>,
}

/// A token bucket: what flows in, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Reads and writes together. The card has steps of 1/256 beat a cycle; the nearest one is taken.
    pub bytes_per_second: u64,
    /// What may pass at once after a rest. The card has steps of 16 beats, up to 255 of them; the next greater one is taken. Up to three bursts
    /// each way (24 KiB) more can pass, at the expense of what follows.
    pub burst: u64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { weight: 1, first: false, rate: None, limit: false, in_flight: None }
    }
}

/// The text that [`FromStr`] reads.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "weight={}", self.weight)?;
        if self.first {
            f.write_str(",first")?;
        }
        if let Some(Rate { bytes_per_second, burst }) = self.rate {
            write!(f, ",rate={bytes_per_second},burst={burst}")?;
        }
        if self.limit {
            f.write_str(",limit")?;
        }
        match self.in_flight {
            Some(bytes) => write!(f, ",in-flight={bytes}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Schedule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut schedule = Self::default();
        let (mut bytes_per_second, mut burst) = (None, None);
        for part in text.split(',') {
            let (name, value) =
                part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
            let number = || -> Result<u64> {
                let parsed = value.and_then(|value| value.parse().ok());
                parsed.ok_or_else(|| Error::Invalid(format!("schedule: {part:?}: write {name}=NUMBER")))
            };
            match (name, value) {
                ("first", None) => schedule.first = true,
                ("limit", None) => schedule.limit = true,
                ("weight", _) => schedule.weight = u8::try_from(number()?).unwrap_or(u8::MAX),
                ("rate", _) => bytes_per_second = Some(number()?),
                ("burst", _) => burst = Some(number()?),
                ("in-flight", _) => schedule.in_flight = Some(number()?),
                _ => {
                    let known = "weight=N, first, rate=BYTES_PER_SECOND, burst=BYTES, limit, in-flight=BYTES";
                    return Err(Error::Invalid(format!("schedule: {part:?} is not one of {known}")));
                }
            }
        }
        schedule.rate = match (bytes_per_second, burst) {
            (Some(bytes_per_second), burst) => {
                Some(Rate { bytes_per_second, burst: burst.unwrap_or(Rate::BURST) })
            }
            (None, None) => None,
            (None, Some(_)) => {
                return Err(Error::Invalid("schedule: burst has an effect only with rate".into()));
            }
        };
        Ok(schedule)
    }
}

impl Rate {
    /// The burst of a rate for which none is given, in bytes.
    pub const BURST: u64 = 64 << 10;
}

/// The registers of a slot that hold its schedule.
struct Registers {
    weight: u32,
    sched: u32,
    rate: u32,
}

impl Schedule {
    fn registers(&self, card: &Card) -> Result<Registers> {
        card.check_weight(self.weight)?;
        if *self != (Self { weight: self.weight, ..Self::default() }) {
            card.check_version(SCHEDULES_SINCE, "classes, rates and caps")?;
        }
        let info = card.info();
        let (rate, depth) = match self.rate {
            Some(rate) => (steps(rate.bytes_per_second, info)?, units("schedule: burst", rate.burst, info)?),
            None if self.limit => {
                return Err(Error::Invalid("schedule: a limit needs a rate".into()));
            }
            None => (0, 0),
        };
        let cap = match self.in_flight {
            Some(bytes) => units("schedule: in-flight", bytes, info)?.max(1),
            None => 0,
        };
        Ok(Registers {
            weight: self.weight.into(),
            sched: u32::from(self.first) << VIA_SLOT_SCHED_FIRST_LSB
                | u32::from(self.limit) << VIA_SLOT_SCHED_LIMIT_LSB
                | cap << VIA_SLOT_SCHED_CAP_LSB,
            rate: rate << VIA_SLOT_RATE_RATE_LSB | depth << VIA_SLOT_RATE_DEPTH_LSB,
        })
    }

    /// Whether a card can do that.
    pub fn check(&self, card: &Card) -> Result<()> {
        self.registers(card).map(drop)
    }

    /// Whether a slot with this schedule has no more of the card than with `other`: no greater weight or rate, no more under way, and first only
    /// where it goes first. For who lets others choose.
    pub fn is_within(&self, other: &Self) -> bool {
        let rate_within = other.rate.is_none_or(|most| {
            let no_more =
                |rate: Rate| rate.bytes_per_second <= most.bytes_per_second && rate.burst <= most.burst;
            self.rate.is_some_and(no_more)
        });
        let first = !self.first || other.first && rate_within;
        let limit = !other.limit || self.limit && rate_within;
        let in_flight = other.in_flight.is_none_or(|most| self.in_flight.is_some_and(|bytes| bytes <= most));
        self.weight <= other.weight && first && limit && in_flight
    }

    /// Sets it for a slot.
    pub(crate) fn apply(&self, card: &Card, slot: usize) -> Result<()> {
        let registers = self.registers(card)?;
        card.write_slot(slot, VIA_SLOT_WEIGHT, registers.weight)?;
        if card.info().version.1 >= SCHEDULES_SINCE {
            card.write_slot(slot, VIA_SLOT_RATE, registers.rate)?;
            card.write_slot(slot, VIA_SLOT_SCHED, registers.sched)?;
        }
        Ok(())
    }
}

impl Card {
    /// The window of host memory that a card begins with, in beats: 40 KiB with beats of 64 bytes.
    pub const HOST_WINDOW_BEATS: u64 = 640;

    /// Undoes all that was set, for slots and for the card.
    pub(super) fn forget_schedules(&self) -> Result<()> {
        (0..self.info().slots).try_for_each(|slot| Schedule::default().apply(self, slot))?;
        match self.info().version.1 {
            minor if minor < SCHEDULES_SINCE => Ok(()),
            _ => {
                self.set_host_window(Self::HOST_WINDOW_BEATS * self.info().data_bytes as u64)?;
                self.write_card(VIA_CARD_COUNTERS, 0)
            }
        }
    }

    /// Bytes that all slots together have under way to host memory, each way; what is beyond waits in the card, where it is shared by schedules.
    /// The card begins with [`Card::HOST_WINDOW_BEATS`]. More than the link's latency times its rate is of no use, and makes others
    /// wait in the link, where no schedule counts; less slows the link down. Up to 255 times 16 beats.
    pub fn set_host_window(&self, bytes: u64) -> Result<()> {
        self.check_version(SCHEDULES_SINCE, "window of host memory")?;
        let units = units("a window of host memory", bytes, self.info())?.max(1);
        self.write_card(VIA_CARD_HOST_WINDOW, units)
    }
}

/// The step of the card that is nearest to a rate.
fn steps(bytes_per_second: u64, info: &CardInfo) -> Result<u32> {
    let beat_per_cycle = info.data_bytes as u128 * u128::from(info.clock_khz) * 1000;
    let rounded = (u128::from(bytes_per_second) * RATE_UNITS + beat_per_cycle / 2) / beat_per_cycle.max(1);
    match u32::try_from(rounded) {
        Ok(steps) if u128::from(steps) <= MAX_RATE => Ok(steps.max(1)),
        _ => Err(Error::Invalid(format!(
            "schedule: a rate of {bytes_per_second} bytes a second is more than the slot's {}; leave it out",
            2 * beat_per_cycle
        ))),
    }
}

/// Units of 16 beats that hold so many bytes.
fn units(what: &str, bytes: u64, info: &CardInfo) -> Result<u32> {
    let unit = UNIT_BEATS * info.data_bytes as u64;
    match bytes.div_ceil(unit) {
        units if units <= MAX_UNITS => Ok(units as u32),
        _ => {
            Err(Error::Invalid(format!("{what} of {bytes} bytes: the card has at most {}", MAX_UNITS * unit)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_from_text() {
        let parse = |text: &str| text.parse::<Schedule>();
        assert_eq!(parse("weight=3").unwrap(), Schedule { weight: 3, ..Schedule::default() });
        let all = parse("first,weight=2,rate=1000000,burst=4096,limit,in-flight=1").unwrap();
        let rate = Some(Rate { bytes_per_second: 1_000_000, burst: 4096 });
        assert_eq!(all, Schedule { weight: 2, first: true, rate, limit: true, in_flight: Some(1) });
        assert_eq!(parse("rate=5").unwrap().rate, Some(Rate { bytes_per_second: 5, burst: Rate::BURST }));
        for wrong in ["", "first=1", "weight", "weight=x", "burst=4096", "last", "rate=-1", "first,,limit"] {
            assert!(parse(wrong).unwrap_err().to_string().contains("schedule"), "{wrong:?}");
        }
    }

    #[test]
    fn a_schedule_is_written_as_it_is_read() {
        for text in [
            "weight=1",
            "weight=15,first",
            "weight=2,rate=5,burst=0,limit",
            "weight=1,in-flight=1",
            "weight=3,first,rate=1000000,burst=4096,limit,in-flight=8192",
        ] {
            assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_schedule_is_within_another_one_if_it_has_no_more() {
        let within =
            |inner: &str, outer: &str| inner.parse::<Schedule>().unwrap().is_within(&outer.parse().unwrap());
        for (inner, outer) in [
            ("weight=1", "weight=1"),
            ("weight=2,rate=5", "weight=3"),
            ("weight=3", "weight=3,first,rate=10"),
            ("first,rate=10,burst=1", "first,rate=10,burst=1"),
            ("first,rate=9", "first"),
            ("limit,rate=9,in-flight=64", "limit,rate=10,in-flight=128"),
        ] {
            assert!(within(inner, outer), "{inner} in {outer}");
        }
        for (inner, outer) in [
            ("weight=2", "weight=1"),
            ("first", "weight=15"),
            ("first", "first,rate=10"),
            ("first,rate=11", "first,rate=10"),
            ("first,rate=10,burst=2", "first,rate=10,burst=1"),
            ("weight=1", "limit,rate=10"),
            ("rate=10", "limit,rate=10"),
            ("limit,rate=11", "limit,rate=10"),
            ("weight=1", "in-flight=64"),
            ("in-flight=65", "in-flight=64"),
        ] {
            assert!(!within(inner, outer), "{inner} in {outer}");
        }
    }
}
