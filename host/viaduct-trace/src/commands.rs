// SPDX-License-Identifier: Apache-2.0
//! Commands, faults and calls of the host as events.

use std::collections::HashMap;

use serde_json::Value;
use viaduct::Observed;
use viaduct::desc::{Command, Completion, Event as CardEvent, EventCause, FLAG_HUGE, HUGE, Op, PAGE};

use crate::event::{Event, Group, Phase};
use crate::writer::Writer;

/// An interval that may overlap others of its lane.
struct Open {
    lane: String,
    id: u32,
    begin: u64,
    args: Vec<(&'static str, Value)>,
}

/// Commands that have not completed and accesses that wait.
#[derive(Default)]
pub struct Commands {
    open: HashMap<(usize, u32), (Command, Open)>,
    faults: HashMap<(usize, u64), Open>,
    /// For each id of a lane of a slot the cycle up to which it is in use. A lane has no more ids than intervals that overlap.
    ids: HashMap<(usize, String), Vec<u64>>,
    /// Lanes of the program's threads.
    threads: HashMap<u32, u32>,
}

impl Commands {
    fn begin(&mut self, slot: usize, lane: String, begin: u64) -> Open {
        let ids = self.ids.entry((slot, lane.clone())).or_default();
        let free = ids.iter().position(|&until| until <= begin).unwrap_or_else(|| {
            ids.push(0);
            ids.len() - 1
        });
        ids[free] = u64::MAX;
        Open { lane, id: free as u32, begin, args: Vec::new() }
    }

    fn close(&mut self, slot: usize, open: &Open, end: u64) {
        let ids = self.ids.get_mut(&(slot, open.lane.clone()));
        if let Some(until) = ids.and_then(|ids| ids.get_mut(open.id as usize)) {
            *until = end.max(open.begin);
        }
    }
}

/// The lane of a command, `None` for those that do nothing.
fn lane(command: &Command) -> Option<String> {
    Some(match command.op {
        Op::Nop => return None,
        Op::H2c => "DMA to the card".into(),
        Op::C2h => "DMA from the card".into(),
        Op::Fill => "fills".into(),
        Op::Map => "pages mapped".into(),
        Op::Unmap => "pages unmapped".into(),
        Op::Deny => "accesses denied".into(),
        Op::Scan => "pages looked at".into(),
        Op::MoveIn => format!("mover of input {}", command.port),
        Op::MoveOut => format!("mover of output {}", command.port),
    })
}

/// Bytes of the page of a command.
fn page(command: &Command) -> u64 {
    if command.flags & FLAG_HUGE != 0 { HUGE } else { PAGE }
}

impl Commands {
    /// Writes what the host has done in a cycle.
    pub fn write(&mut self, to: &mut Writer, cycle: u64, thread: (u32, Option<String>), what: Observed) {
        // A thread has its name the first time, whatever it does then.
        let tid = self.thread(to, thread);
        match what {
            Observed::Submitted { slot, tag, command } => {
                let Some(lane) = lane(&command) else { return };
                let mut open = self.begin(slot, lane, cycle);
                open.args.push(("command", command.to_string().into()));
                self.open.insert((slot, tag), (command, open));
            }
            Observed::Completed { slot, completion } => self.completed(to, slot, &completion),
            Observed::Posted { slot, event } => self.posted(to, slot, &event),
            Observed::Begins { slot, call } => {
                let event = Event::new(Phase::Begin, Group::Host.number(), tid, call, to.time(cycle));
                to.write(&event.with("slot", slot));
            }
            Observed::Ends => {
                to.write(&Event::new(Phase::End, Group::Host.number(), tid, "", to.time(cycle)));
            }
            _ => {}
        }
    }

    /// Writes what is not over when the trace ends.
    pub fn end(&mut self, to: &mut Writer, cycle: u64) {
        for ((slot, _), (_, open)) in self.open.drain() {
            interval(to, slot, &open, cycle, [("status", "not complete".into())]);
        }
        for ((slot, _), open) in self.faults.drain() {
            interval(to, slot, &open, cycle, [("status", "not served".into())]);
        }
    }

    /// Lane of a thread.
    fn thread(&mut self, to: &mut Writer, (thread, name): (u32, Option<String>)) -> u32 {
        *self.threads.entry(thread).or_insert_with(|| {
            let name = name.map_or_else(String::new, |name| format!(": {name}"));
            to.lane(Group::Host, &format!("thread {thread}{name}"))
        })
    }

    fn completed(&mut self, to: &mut Writer, slot: usize, completion: &Completion) {
        let Some((command, open)) = self.open.remove(&(slot, completion.tag)) else { return };
        self.close(slot, &open, completion.time);
        let how = [("status", completion.status.to_string().into()), ("bytes", completion.bytes.into())];
        interval(to, slot, &open, completion.time, how);
        let served = match command.op {
            Op::Map => "mapped",
            Op::Deny => "denied",
            _ => return,
        };
        let first = command.addr0 & !(page(&command) - 1);
        for va in (first..first.saturating_add(page(&command))).step_by(PAGE as usize) {
            if let Some(fault) = self.faults.remove(&(slot, va)) {
                self.close(slot, &fault, completion.time);
                interval(to, slot, &fault, completion.time, [("status", served.into())]);
            }
        }
    }

    fn posted(&mut self, to: &mut Writer, slot: usize, event: &CardEvent) {
        if !matches!(event.cause, EventCause::Miss | EventCause::Perm | EventCause::Table) {
            let group = Group::Slot(slot as u16);
            let tid = to.lane(group, "events");
            let at = to.time(event.time);
            to.write(&Event::new(Phase::Instant, group.number(), tid, event.cause.to_string(), at));
            return;
        }
        let at = (slot, event.va & !(PAGE - 1));
        // The card may post a page more than once.
        if self.faults.contains_key(&at) {
            return;
        }
        let mut fault = self.begin(slot, "faults".into(), event.time);
        fault.args.push(("address", format!("{:#x}", event.va).into()));
        fault.args.push(("access", if event.is_write { "write" } else { "read" }.into()));
        self.faults.insert(at, fault);
    }
}

/// Writes an interval up to a cycle, with how it has ended.
fn interval<const N: usize>(
    to: &mut Writer,
    slot: usize,
    open: &Open,
    end: u64,
    how: [(&'static str, Value); N],
) {
    let group = Group::Slot(slot as u16);
    to.group(group);
    let end = end.max(open.begin);
    let event = |phase, cycle| {
        let mut event = Event::new(phase, group.number(), 0, open.lane.as_str(), to.time(cycle));
        (event.cat, event.id) = (Some("command"), Some(open.id));
        event
    };
    let mut first =
        event(Phase::AsyncBegin, open.begin).with("cycle", open.begin).with("cycles", end - open.begin);
    for (name, value) in open.args.iter().cloned().chain(how) {
        first = first.with(name, value);
    }
    let last = event(Phase::AsyncEnd, end);
    to.write(&first);
    to.write(&last);
}
