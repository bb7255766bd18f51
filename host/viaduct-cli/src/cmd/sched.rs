// SPDX-License-Identifier: Apache-2.0
//! `viaduct sched`

use viaduct::Schedule;
use viaductd::{SlotView, View};

use crate::fail::{Failure, Result, usage};
use crate::managed::{ManagedArgs, SOON, shares, size, state, user};
use crate::process::tell::out;
use crate::terminal::text::plain;

/// List how the slots of a card share it, what they have moved and how long they waited, or change that
#[derive(clap::Args)]
pub struct Args {
    /// Slot and its new schedule, parts with commas: weight=1 to 15, first, rate=BYTES_PER_SECOND, burst=BYTES, limit, in-flight=BYTES
    #[arg(value_name = "SLOT=SCHEDULE", value_parser = change)]
    changes: Vec<(usize, Schedule)>,
    /// Let a slot's app wait, until --resume; repeat for more
    #[arg(long, value_name = "SLOT")]
    pause: Vec<usize>,
    /// Let a slot's app go on; repeat for more
    #[arg(long, value_name = "SLOT")]
    resume: Vec<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    card: ManagedArgs,
}

/// `SLOT=SCHEDULE`
fn change(text: &str) -> std::result::Result<(usize, Schedule), String> {
    let parts = text.split_once('=').and_then(|(slot, schedule)| Some((slot.parse().ok()?, schedule)));
    let Some((slot, schedule)) = parts else {
        return Err("write the number of a slot, =, and a schedule, as in 0=weight=3,first".into());
    };
    Ok((slot, schedule.parse().map_err(|error: viaduct::Error| error.to_string())?))
}

/// Runs the command.
pub fn run(args: Args) -> Result {
    if let Some(slot) = args.pause.iter().find(|slot| args.resume.contains(slot)) {
        return usage(format!("slot {slot} cannot be paused and resumed at once"));
    }
    let card = args.card.open(SOON)?;
    for (slot, schedule) in &args.changes {
        card.schedule(*slot, schedule)?;
    }
    for (slots, paused) in [(&args.pause, true), (&args.resume, false)] {
        slots.iter().try_for_each(|slot| card.pause(*slot, paused))?;
    }
    let changed = !args.changes.is_empty() || !args.pause.is_empty() || !args.resume.is_empty();
    if changed && !args.json {
        return Ok(());
    }
    let view = card.look()?;
    match args.json {
        true => out(&serde_json::to_string(&view).map_err(|e| Failure::Run(e.to_string()))?),
        false => out(table(&view).trim_end()),
    }
}

const HEADS: [&str; 15] = [
    "slot",
    "app",
    "user",
    "state",
    "weight",
    "class",
    "rate",
    "in flight",
    "from card",
    "to card",
    "from host",
    "to host",
    "read waits",
    "write waits",
    "misses",
];

/// The slots as lines: rates in bytes a second, waits in seconds of the card.
fn table(view: &View) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(view.slots.iter().enumerate().map(|(number, slot)| row(number, slot, view)));
    let mut widths = [0; HEADS.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; HEADS.len()]| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            // Words at the left, numbers at the right.
            0..=3 | 5 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn row(number: usize, slot: &SlotView, view: &View) -> [String; HEADS.len()] {
    let none = || "-".to_owned();
    let mut row = [(); HEADS.len()].map(|()| none());
    row[0] = number.to_string();
    row[3] = state(slot).to_owned();
    if let Some(occupant) = &slot.user {
        row[1] = plain(&occupant.app);
        row[2] = user(occupant.uid);
        for (cell, text) in row[4..8].iter_mut().zip(shares(&occupant.schedule)) {
            *cell = text;
        }
    }
    if let Some(moved) = &slot.moved {
        let seconds =
            |cycles: u64| format!("{:.6} s", cycles as f64 / (f64::from(view.clock_khz.max(1)) * 1e3));
        let bytes = [moved.card_read, moved.card_written, moved.host_read, moved.host_written].map(size);
        for (cell, text) in row[8..12].iter_mut().zip(bytes) {
            *cell = text;
        }
        row[12] = seconds(moved.read_wait);
        row[13] = seconds(moved.write_wait);
        row[14] = moved.missed.to_string();
    }
    row
}

#[cfg(test)]
mod tests {
    use viaductd::{Moved, Occupant};

    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_slot() {
        let occupant = Occupant {
            app: "rng\u{1b}".into(),
            uid: 4_000_000_000,
            schedule: "weight=3,first,rate=2048,burst=0,limit,in-flight=4096".into(),
            ..Occupant::default()
        };
        let moved = Moved { card_read: 3 << 20, read_wait: 250_000, missed: 9, ..Moved::default() };
        let used = SlotView { loaded: true, user: Some(occupant), moved: Some(moved), ..SlotView::default() };
        let hidden = SlotView { loaded: true, hidden: true, ..SlotView::default() };
        let view =
            View { clock_khz: 250_000, slots: vec![used, hidden, SlotView::default()], ..View::default() };
        let text = table(&view);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[1][..6], ["0", r"rng\u{1b}", "4000000000", "loaded", "3", "first"]);
        assert!(text.contains(" ≤2.0 KiB/s") && text.contains("4.0 KiB") && text.contains("3.0 MiB"));
        assert!(text.contains("0.001000 s") && text.contains(" 9\n"));
        assert_eq!(lines[2][..4], ["1", "-", "-", "another's"]);
        assert_eq!(lines[3][..4], ["2", "-", "-", "empty"]);
    }

    #[test]
    fn a_change_is_a_slot_and_a_schedule() {
        assert_eq!(change("3=weight=2,first").unwrap(), (3, "weight=2,first".parse().unwrap()));
        for wrong in ["", "3", "=weight=2", "x=weight=2", "-1=weight=2", "3=", "3=wight=2"] {
            assert!(change(wrong).is_err(), "{wrong}");
        }
    }
}
