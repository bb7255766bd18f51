// SPDX-License-Identifier: Apache-2.0
//! What a card has done between two looks.

use std::time::Duration;

use viaduct_metrics::{Function, Line, Slot, Snapshot};
use viaductd::{SlotView, View};

use crate::managed::{shares, state, user};
use crate::terminal::text::plain;

/// What a card has done between two looks, ready to be shown. Bytes are for each cycle of the card, since its time is not that of who
/// looks; counts are those of the interval.
pub struct Rates {
    /// Board, clock and time.
    pub card: String,
    /// Share of the interval in which the link from the card was used, and that of the one to it, where that is known.
    pub link: Option<[f64; 2]>,
    /// Tables: name, heads of columns, rows.
    pub tables: Vec<Table>,
}

/// A table.
pub struct Table {
    /// What its rows are.
    pub name: &'static str,
    /// Heads of the columns behind the first.
    pub heads: Vec<&'static str>,
    /// Rows: name and values.
    pub rows: Vec<Vec<String>>,
}

impl Rates {
    /// Between two looks that are `wall` apart. A card that was started anew meanwhile begins at 0.
    pub fn between(old: &Snapshot, new: &Snapshot, wall: Duration) -> Self {
        let restarted = new.cycles < old.cycles || new.slots.len() != old.slots.len();
        let old = if restarted { &Snapshot::default() } else { old };
        let cycles = new.cycles - old.cycles;
        let seconds = new.seconds(cycles);
        let share =
            |new: f64, old: f64| if cycles == 0 { 0.0 } else { ((new - old) / seconds).clamp(0.0, 1.0) };
        let rate = |new: u64, old: u64| match cycles {
            0 => "-".to_owned(),
            cycles => format!("{:.2}", new.saturating_sub(old) as f64 / cycles as f64),
        };
        let count = |new: u64, old: u64| new.saturating_sub(old).to_string();
        let slot = |(number, new): (usize, &Slot)| {
            let old = old.slots.get(number).copied().unwrap_or_default();
            let state = match (new.loaded, new.busy) {
                (false, _) => "empty",
                (true, false) => "loaded",
                (true, true) => "busy",
            };
            vec![
                format!("slot {number}"),
                state.to_owned(),
                rate(new.stream_in_bytes, old.stream_in_bytes),
                rate(new.stream_out_bytes, old.stream_out_bytes),
                rate(new.memory_read_bytes, old.memory_read_bytes),
                rate(new.memory_write_bytes, old.memory_write_bytes),
            ]
        };
        let channels = new.channels.iter().enumerate().map(|(number, new)| {
            let old = old.channels.get(number).copied().unwrap_or_default();
            let (hits, misses) =
                (new.row_hits.saturating_sub(old.row_hits), new.row_misses.saturating_sub(old.row_misses));
            let open = match hits.saturating_add(misses) {
                0 => "-".to_owned(),
                all => format!("{:.0} %", 100.0 * hits as f64 / all as f64),
            };
            vec![
                format!("channel {number}"),
                rate(new.read_bytes, old.read_bytes),
                rate(new.write_bytes, old.write_bytes),
                open,
            ]
        });
        let none = Function::default();
        let functions = new.functions.iter().enumerate().map(|(number, new)| {
            let old = old.functions.get(number).unwrap_or(&none);
            vec![
                plain(&new.name),
                rate(new.host_read_bytes, old.host_read_bytes),
                rate(new.host_write_bytes, old.host_write_bytes),
                count(new.register_reads, old.register_reads),
                count(new.register_writes, old.register_writes),
                count(new.interrupts, old.interrupts),
                count(new.tx_packets, old.tx_packets),
                count(new.rx_packets, old.rx_packets),
                count(new.tx_drops.saturating_add(new.rx_drops), old.tx_drops.saturating_add(old.rx_drops)),
            ]
        });
        let lines = new.functions.iter().enumerate().filter_map(|(number, new)| {
            let line = new.line?;
            let old = old.functions.get(number).and_then(|old| old.line).unwrap_or_default();
            let percent = |new, old| format!("{:.0} %", 100.0 * share(new, old));
            let dropped = |line: &Line| {
                let both = line.tx_dropped.causes().into_iter().zip(line.rx_dropped.causes());
                both.map(|((_, tx), (_, rx))| tx.saturating_add(rx)).collect::<Vec<u64>>()
            };
            let mut row = vec![
                format!("{} {}G", plain(&new.name), line.bits_per_second as f64 / 1e9),
                if line.up { "up" } else { "down" }.to_owned(),
                percent(line.tx_seconds, old.tx_seconds),
                percent(line.rx_seconds, old.rx_seconds),
            ];
            let counts = dropped(&line).into_iter().zip(dropped(&old));
            row.extend(counts.map(|(new, old)| count(new, old)));
            Some(row)
        });
        let lines = Table {
            name: "Ethernet, share of the line; dropped frames",
            heads: vec!["link", "out", "in", "short", "long", "damaged", "link down", "no room"],
            rows: lines.collect(),
        };
        // A card without functions has no line.
        let lines = (!lines.rows.is_empty()).then_some(lines);
        let speed = cycles as f64 / wall.as_secs_f64().max(1e-9);
        let state = if restarted { ", started anew" } else { "" };
        Self {
            card: format!(
                "{}, {} MHz, {:.3} ms since power-up{state}; {cycles} cycles since the last look, {speed:.0} a second",
                plain(&new.board),
                f64::from(new.clock_khz) / 1e3,
                new.seconds(new.cycles) * 1e3,
            ),
            link: Some([
                share(new.link.from_card_seconds, old.link.from_card_seconds),
                share(new.link.to_card_seconds, old.link.to_card_seconds),
            ]),
            tables: [
                Table {
                    name: "slots, bytes per cycle",
                    heads: vec!["app", "input", "output", "mem read", "mem write"],
                    rows: new.slots.iter().enumerate().map(slot).collect(),
                },
                Table {
                    name: "card memory, bytes per cycle",
                    heads: vec!["read", "written", "row open"],
                    rows: channels.collect(),
                },
                Table {
                    name: "functions, bytes of host memory per cycle",
                    heads: vec![
                        "read",
                        "written",
                        "reg reads",
                        "reg writes",
                        "interrupts",
                        "packets out",
                        "packets in",
                        "dropped",
                    ],
                    rows: functions.collect(),
                },
            ]
            .into_iter()
            .chain(lines)
            .collect(),
        }
    }

    /// The same of a card that a daemon shares, which tells who uses it, how long slots waited, and routes.
    pub fn of_slots(old: &View, new: &View, wall: Duration) -> Self {
        let restarted = new.cycles < old.cycles || new.slots.len() != old.slots.len();
        let none = View::default();
        let old = if restarted { &none } else { old };
        let cycles = new.cycles - old.cycles;
        let in_a_cycle = |amount: u64| match cycles {
            0 => "-".to_owned(),
            cycles => format!("{:.2}", amount as f64 / cycles as f64),
        };
        let percent = |waits: u64| match cycles {
            0 => "-".to_owned(),
            cycles => format!("{:.0} %", (100.0 * waits as f64 / cycles as f64).min(100.0)),
        };
        let used = |(number, slot): (usize, &SlotView)| {
            let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let occupant = slot.user.as_ref();
            let mut row = vec![
                format!("slot {number}"),
                state(slot).to_owned(),
                text(occupant.map(|occupant| plain(&occupant.app))),
                text(occupant.map(|occupant| user(occupant.uid))),
                text(occupant.map(|occupant| occupant.pid.to_string())),
            ];
            row.extend(shares(occupant.map_or("-", |occupant| &occupant.schedule)));
            row
        };
        let moved = |(number, slot): (usize, &SlotView)| {
            let who = |slot: &SlotView| slot.user.as_ref().map(|user| (user.pid, user.uid, user.app.clone()));
            let before = old.slots.get(number).filter(|before| who(before) == who(slot));
            let before = before.and_then(|slot| slot.moved).unwrap_or_default();
            let mut row = vec![format!("slot {number}")];
            row.extend(match slot.moved {
                None => vec!["-".to_owned(); 9],
                Some(now) => {
                    let m = now.since(&before);
                    let bytes =
                        [m.stream_in, m.stream_out, m.card_read, m.card_written, m.host_read, m.host_written];
                    let waits = [m.read_wait, m.write_wait].map(percent);
                    bytes.map(in_a_cycle).into_iter().chain(waits).chain([m.missed.to_string()]).collect()
                }
            });
            row
        };
        let routes = new.routes.iter().map(|route| {
            let state = if route.changing { "changing" } else { "in effect" };
            vec![plain(&route.source), plain(&route.sink), state.to_owned()]
        });
        let functions = new.functions.iter().map(|name| {
            let end = format!("virtio:{name}");
            let sinks = new.routes.iter().filter(|route| route.source == end).map(|route| plain(&route.sink));
            let sinks = sinks.collect::<Vec<_>>().join(" ");
            vec![plain(name), if sinks.is_empty() { "-".to_owned() } else { sinks }]
        });
        let speed = cycles as f64 / wall.as_secs_f64().max(1e-9);
        let anew = if restarted { ", started anew" } else { "" };
        let tables = vec![
            Table {
                name: "slots",
                heads: vec!["state", "app", "user", "process", "weight", "class", "rate", "in flight"],
                rows: new.slots.iter().enumerate().map(used).collect(),
            },
            Table {
                name: "bytes per cycle",
                heads: vec![
                    "input",
                    "output",
                    "card read",
                    "card write",
                    "host read",
                    "host write",
                    "read waits",
                    "write waits",
                    "misses",
                ],
                rows: new.slots.iter().enumerate().map(moved).collect(),
            },
            Table { name: "routes", heads: vec!["to", "state"], rows: routes.collect() },
            Table { name: "functions", heads: vec!["attached to"], rows: functions.collect() },
        ];
        Self {
            card: format!(
                "{} MHz, {:.3} ms since power-up{anew}; {cycles} cycles since the last look, {speed:.0} a second",
                f64::from(new.clock_khz) / 1e3,
                new.cycles as f64 / f64::from(new.clock_khz.max(1)),
            ),
            link: None,
            tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
        }
    }

    /// As lines.
    pub fn text(&self) -> String {
        let mut lines = vec![self.card.clone()];
        if let Some([up, down]) = self.link.map(|link| link.map(|share| 100.0 * share)) {
            lines.push(format!("link: from the card {up:.0} %, to the card {down:.0} %"));
        }
        for table in &self.tables {
            let head: Vec<String> = table.heads.iter().map(|head| format!(" {head:>11}")).collect();
            lines.push(format!("{:<44}{}", table.name, head.concat()));
            for row in &table.rows {
                let values: Vec<String> = row[1..].iter().map(|value| format!(" {value:>11}")).collect();
                lines.push(format!("  {:<42}{}", row[0], values.concat()));
            }
        }
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_metrics::Link;

    fn at(cycles: u64, bytes: u64) -> Snapshot {
        Snapshot {
            board: "test".into(),
            clock_khz: 250_000,
            cycles,
            link: Link { from_card_seconds: cycles as f64 / 250e6 / 2.0, to_card_seconds: 0.0 },
            slots: vec![Slot { loaded: true, stream_in_bytes: bytes, ..Slot::default() }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn rates_are_those_of_the_interval() {
        let rates = Rates::between(&at(1000, 640), &at(3000, 64_640), Duration::from_secs(2));
        assert_eq!(rates.tables[0].rows[0][1..3], ["loaded", "32.00"]);
        let link = rates.link.unwrap();
        assert!((link[0] - 0.5).abs() < 1e-9 && link[1] == 0.0);
        assert!(rates.card.contains("2000 cycles since the last look, 1000 a second"), "{}", rates.card);
        assert!(rates.text().contains("link: from the card 50 %"));
    }

    #[test]
    fn a_line_has_its_share_and_what_it_dropped() {
        let with = |cycles: u64, seconds: f64, room: u64| {
            let rx_dropped = viaduct_metrics::Dropped { room, ..Default::default() };
            let line = Line {
                bits_per_second: 10_000_000_000,
                up: true,
                rx_seconds: seconds,
                rx_dropped,
                ..Line::default()
            };
            let net = Function { name: "net".into(), line: Some(line), ..Function::default() };
            Snapshot { functions: vec![net], ..at(cycles, 0) }
        };
        // 250 cycles are a microsecond.
        let rates = Rates::between(&with(1000, 1e-6, 3), &with(2000, 2e-6, 7), Duration::from_secs(1));
        let expected = ["net 10G", "up", "0 %", "25 %", "0", "0", "0", "0", "4"];
        assert_eq!(rates.tables[3].rows, [expected.map(str::to_owned).to_vec()]);
    }

    #[test]
    fn a_card_that_stands_still_or_is_another_one_has_rates_too() {
        let still = Rates::between(&at(1000, 640), &at(1000, 640), Duration::ZERO);
        assert_eq!(still.tables[0].rows[0][2], "-");
        let anew = Rates::between(&at(1000, 640), &at(100, 200), Duration::from_secs(1));
        assert_eq!(anew.tables[0].rows[0][2], "2.00");
        assert!(anew.card.contains("started anew"));
    }

    #[test]
    fn a_shared_card_shows_users_waits_and_routes() {
        use viaductd::{Moved, Occupant, RouteView};

        let at = |cycles: u64, amount: u64, pid: i32| {
            let user = Some(Occupant { app: "rng".into(), uid: 4_000_000_000, pid, ..Occupant::default() });
            let moved =
                Some(Moved { card_read: 64 * amount, read_wait: amount, missed: amount, ..Moved::default() });
            let used = viaductd::SlotView { loaded: true, user, moved, ..Default::default() };
            let hidden = viaductd::SlotView { hidden: true, ..Default::default() };
            let route = RouteView { source: "virtio:net".into(), sink: "slot:0:0".into(), changing: true };
            View {
                cycles,
                clock_khz: 250_000,
                functions: vec!["net".into()],
                slots: vec![used, hidden],
                routes: vec![route],
                ..View::default()
            }
        };
        let rates = Rates::of_slots(&at(1000, 100, 1), &at(3000, 600, 1), Duration::from_secs(1));
        assert_eq!(rates.tables[0].rows[0][..4], ["slot 0", "loaded", "rng", "4000000000"]);
        assert_eq!(rates.tables[0].rows[1][..3], ["slot 1", "another's", "-"]);
        assert_eq!(rates.tables[1].rows[0][3], "16.00");
        assert_eq!(rates.tables[1].rows[0][7..], ["25 %", "0 %", "500"]);
        assert_eq!(rates.tables[1].rows[1][1..], ["-"; 9]);
        assert_eq!(rates.tables[2].rows[0], ["virtio:net", "slot:0:0", "changing"]);
        assert_eq!(rates.tables[3].rows[0], ["net", "slot:0:0"]);
        // The counts of another client begin at 0, as do those of another daemon.
        let other = Rates::of_slots(&at(1000, 600, 1), &at(3000, 10, 2), Duration::from_secs(1));
        assert_eq!(other.tables[1].rows[0][9], "10");
        let anew = Rates::of_slots(&at(5000, 600, 1), &at(3000, 10, 1), Duration::from_secs(1));
        assert!(anew.card.contains("started anew") && anew.tables[1].rows[0][9] == "10");
        assert!(!anew.text().contains("link:"));
    }
}
