// SPDX-License-Identifier: Apache-2.0
//! Counters of slots, all at one time.

use super::Card;
use super::schedule::SCHEDULES_SINCE;
use super::sync::lock;
use crate::error::Result;
use crate::protocol::regs::*;

/// Counters of a slot since power-up, modulo 2^32.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotCounters {
    /// Read bursts translated.
    pub rd_trans: u32,
    /// Write bursts translated.
    pub wr_trans: u32,
    /// Read bursts that found no translation.
    pub rd_miss: u32,
    /// Write bursts that found no translation.
    pub wr_miss: u32,
    /// Beats handed to the app's input streams.
    pub beats_in: u32,
    /// Beats taken from the app's output streams.
    pub beats_out: u32,
    /// Beats read through the app's memory port.
    pub rd_beats: u32,
    /// Beats written through the app's memory port.
    pub wr_beats: u32,
    /// Beats requested of card memory, read by app, streams and a disk. This and what follows is 0 on a card with a register map before 2.3.
    pub card_rd: u32,
    /// Beats requested of card memory, written.
    pub card_wr: u32,
    /// Beats requested of host memory through translations, read.
    pub host_rd: u32,
    /// Beats requested of host memory through translations, written.
    pub host_wr: u32,
    /// Cycles in which a read of these has waited: for others, its rate, its cap.
    pub rd_wait: u32,
    /// Cycles in which a write has.
    pub wr_wait: u32,
}

impl SlotCounters {
    /// What was counted since `earlier`, as long as that is less than 2^32.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            rd_trans: self.rd_trans.wrapping_sub(earlier.rd_trans),
            wr_trans: self.wr_trans.wrapping_sub(earlier.wr_trans),
            rd_miss: self.rd_miss.wrapping_sub(earlier.rd_miss),
            wr_miss: self.wr_miss.wrapping_sub(earlier.wr_miss),
            beats_in: self.beats_in.wrapping_sub(earlier.beats_in),
            beats_out: self.beats_out.wrapping_sub(earlier.beats_out),
            rd_beats: self.rd_beats.wrapping_sub(earlier.rd_beats),
            wr_beats: self.wr_beats.wrapping_sub(earlier.wr_beats),
            card_rd: self.card_rd.wrapping_sub(earlier.card_rd),
            card_wr: self.card_wr.wrapping_sub(earlier.card_wr),
            host_rd: self.host_rd.wrapping_sub(earlier.host_rd),
            host_wr: self.host_wr.wrapping_sub(earlier.host_wr),
            rd_wait: self.rd_wait.wrapping_sub(earlier.rd_wait),
            wr_wait: self.wr_wait.wrapping_sub(earlier.wr_wait),
        }
    }

    pub(crate) fn read(card: &Card, slot: usize) -> Result<Self> {
        let read = |register| card.read_slot(slot, register);
        let metered = |register| match card.info().version.1 {
            minor if minor < SCHEDULES_SINCE => Ok(0),
            _ => card.read_slot(slot, register),
        };
        Ok(Self {
            rd_trans: read(VIA_SLOT_RD_TRANS)?,
            wr_trans: read(VIA_SLOT_WR_TRANS)?,
            rd_miss: read(VIA_SLOT_RD_MISS)?,
            wr_miss: read(VIA_SLOT_WR_MISS)?,
            beats_in: read(VIA_SLOT_BEATS_IN)?,
            beats_out: read(VIA_SLOT_BEATS_OUT)?,
            rd_beats: read(VIA_SLOT_RD_BEATS)?,
            wr_beats: read(VIA_SLOT_WR_BEATS)?,
            card_rd: metered(VIA_SLOT_CARD_RD)?,
            card_wr: metered(VIA_SLOT_CARD_WR)?,
            host_rd: metered(VIA_SLOT_HOST_RD)?,
            host_wr: metered(VIA_SLOT_HOST_WR)?,
            rd_wait: metered(VIA_SLOT_RD_WAIT)?,
            wr_wait: metered(VIA_SLOT_WR_WAIT)?,
        })
    }
}

impl Card {
    /// Counters of all slots as they were in one cycle, and that cycle in cycles since power-up. An error on a card with a register map before
    /// 2.3, which cannot hold its counters.
    pub fn counters(&self) -> Result<(u64, Vec<SlotCounters>)> {
        self.check_process()?;
        self.check_version(SCHEDULES_SINCE, "counters that can be held")?;
        let _one_at_a_time = lock(&self.counters);
        self.write_card(VIA_CARD_COUNTERS, VIA_CARD_COUNTERS_HOLD_MASK)?;
        let read = || -> Result<(u64, Vec<SlotCounters>)> {
            let low = self.read_card(VIA_CARD_COUNT_TIME_LO)?;
            let high = self.read_card(VIA_CARD_COUNT_TIME_HI)?;
            let slots =
                (0..self.info().slots).map(|slot| SlotCounters::read(self, slot)).collect::<Result<_>>()?;
            Ok((u64::from(high) << 32 | u64::from(low), slots))
        };
        let held = read();
        self.write_card(VIA_CARD_COUNTERS, 0)?;
        held
    }
}
