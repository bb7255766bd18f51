// SPDX-License-Identifier: Apache-2.0
//! Records of the card's model as events.

use viaduct::regs::*;
use viaduct_sim::{TraceRecord, Traced};

use crate::event::{Event, Group, Phase};
use crate::writer::Writer;

/// Number of configuration space among the spaces of a function.
const CONFIG: u16 = 6;

/// Writes a record.
pub fn write(to: &mut Writer, record: &TraceRecord) {
    let slot = Group::Slot;
    let function = Group::Function;
    match record.what {
        Traced::StreamIn { slot: s, stream } => data(to, record, slot(s), &format!("input {stream}")),
        Traced::StreamOut { slot: s, stream } => data(to, record, slot(s), &format!("output {stream}")),
        Traced::SlotRead { slot: s } => data(to, record, slot(s), "memory reads"),
        Traced::SlotWrite { slot: s } => data(to, record, slot(s), "memory writes"),
        Traced::DramRead { channel } => data(to, record, Group::Memory, &format!("channel {channel} reads")),
        Traced::DramWrite { channel } => {
            data(to, record, Group::Memory, &format!("channel {channel} writes"))
        }
        Traced::HostRead { function: f } => data(to, record, function(f), "host reads"),
        Traced::HostWrite { function: f } => data(to, record, function(f), "host writes"),
        Traced::PortTx { function: f } => data(to, record, function(f), "board port out"),
        Traced::PortRx { function: f } => data(to, record, function(f), "board port in"),
        Traced::Loaded { slot: s } => other(to, record, slot(s), "app", "loaded"),
        Traced::Busy { slot: s } => other(to, record, slot(s), "app busy", "busy"),
        Traced::AppInterrupt { slot: s } => other(to, record, slot(s), "app interrupts", "interrupt"),
        Traced::Interrupt { function: f, vector } => {
            other(to, record, function(f), "interrupts", &format!("vector {vector}"));
        }
        Traced::RegisterRead { function: f, space } => {
            let what = format!("read {}", register(f, space, record.amount));
            other(to, record, function(f), "register reads", &what);
        }
        Traced::RegisterWrite { function: f, space } => {
            let what = format!("write {}", register(f, space, record.amount));
            other(to, record, function(f), "register writes", &what);
        }
        Traced::LinkFromCard => link(to, record, "from the card, % busy"),
        Traced::LinkToCard => link(to, record, "to the card, % busy"),
        _ => {}
    }
}

/// Data in a lane: the name says how fast.
fn data(to: &mut Writer, record: &TraceRecord, group: Group, lane: &str) {
    let cycles = (record.end - record.begin).max(1);
    let name = format!("{:.1} B/cycle", record.amount as f64 / cycles as f64);
    let event = event(to, record, group, lane, &name);
    to.write(&event.with("bytes", record.amount).with("waited", record.waited));
}

/// Something else in a lane.
fn other(to: &mut Writer, record: &TraceRecord, group: Group, lane: &str, name: &str) {
    let event = event(to, record, group, lane, name);
    to.write(&event);
}

fn event(to: &mut Writer, record: &TraceRecord, group: Group, lane: &str, name: &str) -> Event {
    let cycles = record.end - record.begin;
    let tid = to.lane(group, lane);
    let at = to.time(record.begin);
    if cycles == 0 {
        return Event::new(Phase::Instant, group.number(), tid, name, at).with("cycle", record.begin);
    }
    let mut event = Event::new(Phase::Complete, group.number(), tid, name, at);
    event.dur = Some(to.time(cycles));
    event.with("cycle", record.begin).with("cycles", cycles)
}

/// Use of a direction of the link, as a counter.
fn link(to: &mut Writer, record: &TraceRecord, name: &str) {
    to.group(Group::Link);
    let ps = to.time(record.end - record.begin) * 1e6;
    // A packet counts in the interval in which it begins.
    let busy = (100.0 * record.amount as f64 / ps.max(1.0)).min(100.0);
    let event = Event::new(Phase::Counter, Group::Link.number(), 0, name, to.time(record.begin));
    to.write(&event.with("busy", busy.round()));
}

/// Where a register is (docs/interfaces.md, section 4).
fn register(function: u16, space: u16, offset: u64) -> String {
    let bar = u32::from(space);
    let within = |base: u64, stride: u64| ((offset - base) / stride, (offset - base) % stride);
    match (function, bar) {
        _ if space == CONFIG => format!("configuration space {offset:#x}"),
        (0, VIA_BELL_BAR) => {
            let (slot, at) = within(VIA_BELL_BASE, VIA_BELL_STRIDE);
            let ring = match at {
                VIA_BELL_CMD_TAIL => "commands",
                VIA_BELL_CPL_HEAD => "completions",
                VIA_BELL_EVT_HEAD => "events",
                _ => "unknown",
            };
            format!("doorbell of slot {slot}: {ring}")
        }
        (0, VIA_CARD_BAR) if offset >= VIA_FN_BASE => {
            let (number, at) = within(VIA_FN_BASE, VIA_FN_STRIDE);
            format!("function {} {at:#x}", number + 1)
        }
        (0, VIA_CARD_BAR) if offset >= VIA_APP_BASE => {
            let (slot, at) = within(VIA_APP_BASE, VIA_APP_STRIDE);
            format!("app in slot {slot} {at:#x}")
        }
        (0, VIA_CARD_BAR) if offset >= VIA_SLOT_BASE => {
            let (slot, at) = within(VIA_SLOT_BASE, VIA_SLOT_STRIDE);
            format!("slot {slot} {at:#x}")
        }
        (0, VIA_CARD_BAR) => format!("card {offset:#x}"),
        _ => format!("BAR{bar} {offset:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_named_by_block() {
        for (function, space, offset, name) in [
            (0, 0, 0x14, "card 0x14"),
            (0, 0, 0x1_3004, "slot 3 0x4"),
            (0, 0, 0x2_f020, "app in slot 15 0x20"),
            (0, 0, 0x3_0650, "function 6 0x50"),
            (0, 2, 0x0, "doorbell of slot 0: commands"),
            (0, 2, 0xf008, "doorbell of slot 15: events"),
            (3, 6, 0x40, "configuration space 0x40"),
            (3, 0, 0x40, "BAR0 0x40"),
        ] {
            assert_eq!(register(function, space, offset), name);
        }
    }
}
