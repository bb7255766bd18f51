// SPDX-License-Identifier: Apache-2.0
//! Writes the events of a trace to its file.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Error, Result, Write};

use crate::event::{Event, Group, Phase};

/// Writes events, and before the first one of each lane its name.
pub struct Writer {
    to: BufWriter<File>,
    /// Events written, or the first error: what comes after it is dropped.
    written: Result<u64>,
    khz: u32,
    groups: HashSet<Group>,
    lanes: HashMap<(Group, String), u32>,
}

impl Writer {
    /// A writer to a new file, of a card with this clock in kHz.
    pub fn new(file: File, khz: u32) -> Self {
        let mut to = BufWriter::with_capacity(1 << 18, file);
        // The array may lack its end (Trace Event Format), so what a killed program leaves can be read.
        let written = to.write_all(b"[\n").map(|()| 0);
        Self { to, written, khz, groups: HashSet::new(), lanes: HashMap::new() }
    }

    /// Has everything in the file.
    pub fn flush(&mut self) {
        if let (Ok(_), Err(error)) = (&self.written, self.to.flush()) {
            self.written = Err(error);
        }
    }

    /// Ends the file; returns the number of events in it.
    pub fn finish(mut self) -> Result<u64> {
        let events = self.written?;
        self.to.write_all(b"\n]\n")?;
        self.to.flush()?;
        Ok(events)
    }

    /// Microseconds at a cycle.
    pub fn time(&self, cycle: u64) -> f64 {
        cycle as f64 * 1e3 / f64::from(self.khz)
    }

    /// Names a group if it is new.
    pub fn group(&mut self, group: Group) {
        if self.groups.insert(group) {
            let named = |what: &str| Event::new(Phase::Metadata, group.number(), 0, what, 0.0);
            self.write(&named("process_name").with("name", group.name()));
            self.write(&named("process_sort_index").with("sort_index", group.number()));
        }
    }

    /// Number of a lane, which is named if it is new.
    pub fn lane(&mut self, group: Group, name: &str) -> u32 {
        if let Some(number) = self.lanes.get(&(group, name.to_owned())) {
            return *number;
        }
        self.group(group);
        let number = 1 + self.lanes.len() as u32;
        self.lanes.insert((group, name.to_owned()), number);
        self.write(
            &Event::new(Phase::Metadata, group.number(), number, "thread_name", 0.0).with("name", name),
        );
        number
    }

    /// Writes an event.
    pub fn write(&mut self, event: &Event) {
        let Ok(count) = self.written else { return };
        let separator: &[u8] = if count == 0 { b"" } else { b",\n" };
        let line = serde_json::to_vec(event).map_err(Error::from);
        let written =
            line.and_then(|line| self.to.write_all(separator).and_then(|()| self.to.write_all(&line)));
        self.written = written.map(|()| count + 1);
    }
}
