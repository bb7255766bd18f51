// SPDX-License-Identifier: Apache-2.0
//! Statistics of the card's queue engine: the page located by the vendor capability (rtl/vq/README.md).

/// Value of the first word.
pub(crate) const MAGIC: u32 = 0x5651_0001;
/// Words of the page.
pub(crate) const WORDS: usize = 96;

const COUNTS: usize = 6;
const STAGES: usize = 48;
const USER: usize = 5; // after the stages

/// Durations of a stage between a notification and its interrupt, over all notifications that found the engine idle, in
/// card cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stage {
    /// Number of measurements.
    pub count: u32,
    /// Minimum.
    pub min: u32,
    /// Maximum.
    pub max: u32,
    /// Sum.
    pub sum: u64,
}

impl Stage {
    /// Mean, 0 without a measurement.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / f64::from(self.count) }
    }
}

/// Counters since the page was cleared, modulo 2^32.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Notifications.
    pub notifications: u32,
    /// Chains passed to the device as requests.
    pub requests: u32,
    /// Chains used.
    pub used: u32,
    /// Interrupts raised.
    pub interrupts: u32,
    /// Reads of an available index.
    pub index_reads: u32,
    /// Reads of lines of an available or packed ring.
    pub ring_reads: u32,
    /// Reads of lines of a descriptor table.
    pub descriptor_reads: u32,
    /// Reads of indirect tables.
    pub table_reads: u32,
    /// Reads of payload.
    pub payload_reads: u32,
    /// Reads of the driver's event suppression.
    pub event_reads: u32,
    /// Writes of payload.
    pub payload_writes: u32,
    /// Writes of used entries.
    pub used_writes: u32,
    /// Writes of a used index.
    pub index_writes: u32,
    /// Writes of the device's event suppression.
    pub event_writes: u32,
    /// Bytes read for requests.
    pub bytes_read: u64,
    /// Bytes written for responses.
    pub bytes_written: u64,
    /// From the notification to the first chain, to its complete payload, to the device's first response, to its used entry,
    /// to the interrupt.
    pub stages: [Stage; 5],
    /// Of that time, the user side's: from the last beat of a message to it to the last beat of the returned one.
    pub user: Stage,
}

impl Statistics {
    /// All reads, modulo 2^32.
    pub fn reads(&self) -> u32 {
        self.index_reads
            .wrapping_add(self.ring_reads)
            .wrapping_add(self.descriptor_reads)
            .wrapping_add(self.table_reads)
            .wrapping_add(self.payload_reads)
            .wrapping_add(self.event_reads)
    }

    /// All writes, modulo 2^32.
    pub fn writes(&self) -> u32 {
        self.payload_writes
            .wrapping_add(self.used_writes)
            .wrapping_add(self.index_writes)
            .wrapping_add(self.event_writes)
    }

    pub(crate) fn of(words: &[u32; WORDS]) -> Self {
        let count = |i: usize| words[COUNTS + i];
        let wide = |i: usize| u64::from(words[i]) | u64::from(words[i + 1]) << 32;
        let stage = |i: usize| {
            let at = STAGES + 8 * i;
            Stage { count: words[at], min: words[at + 1], max: words[at + 2], sum: wide(at + 4) }
        };
        Self {
            notifications: count(0),
            requests: count(1),
            used: count(2),
            interrupts: count(3),
            index_reads: count(4),
            ring_reads: count(5),
            descriptor_reads: count(6),
            table_reads: count(7),
            payload_reads: count(8),
            event_reads: count(9),
            payload_writes: count(10),
            used_writes: count(11),
            index_writes: count(12),
            event_writes: count(13),
            bytes_read: wide(2),
            bytes_written: wide(4),
            stages: [stage(0), stage(1), stage(2), stage(3), stage(4)],
            user: stage(USER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_modulo_2_32_as_counts_are() {
        let counts = Statistics::of(&[u32::MAX; WORDS]);
        assert_eq!((counts.reads(), counts.writes()), (6u32.wrapping_neg(), 4u32.wrapping_neg()));
    }
}
