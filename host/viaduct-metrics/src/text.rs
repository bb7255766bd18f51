// SPDX-License-Identifier: Apache-2.0
//! Counters as text in the format of OpenMetrics 1.0.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, LabelSetEncoder, text::encode,
};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::snapshot::{Function, Slot, Snapshot};

/// Names and values of labels.
#[derive(Debug)]
struct Labels<'a>(&'a [(&'static str, &'a str)]);

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: LabelSetEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }
}

#[derive(Debug)]
struct Counters(Snapshot);

/// The text of a snapshot.
pub fn text(snapshot: Snapshot) -> String {
    let mut registry = Registry::with_prefix("viaduct");
    registry.register_collector(Box::new(Counters(snapshot)));
    let mut text = String::new();
    // A string takes everything.
    let _ = encode(&mut text, &registry);
    text
}

impl Collector for Counters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let s = &self.0;
        let to = &mut encoder;
        let clock = f64::from(s.clock_khz) * 1e3;
        let board = [("board", s.board.as_str())];
        gauge(to, "clock_hertz", "Clock of the card.", [(board, clock)])?;
        counter(to, "cycles", "Cycles since the card's power-up.", None, [(board, s.cycles)])?;

        let directions = [("from_card", s.link.from_card_seconds), ("to_card", s.link.to_card_seconds)];
        let help = "Time of the card in which packets took a direction of the PCIe link.";
        let mut metric = to.encode_descriptor(
            "link_busy",
            help,
            Some(&Unit::Seconds),
            prometheus_client::metrics::MetricType::Counter,
        )?;
        for (direction, seconds) in directions {
            let labels = [("direction", direction)];
            ConstCounter::new(seconds).encode(metric.encode_family(&Labels(&labels))?)?;
        }

        let channels: Vec<String> = (0..s.channels.len()).map(|n| n.to_string()).collect();
        let of_channels = |op: &'static str, value: fn(&crate::Channel) -> u64| {
            s.channels
                .iter()
                .zip(&channels)
                .map(move |(channel, n)| ([("channel", n.as_str()), ("op", op)], value(channel)))
        };
        let bytes = of_channels("read", |c| c.read_bytes).chain(of_channels("write", |c| c.write_bytes));
        counter(to, "dram", "Bytes that a DRAM channel has read and written.", Some(Unit::Bytes), bytes)?;
        let rows = of_channels("hit", |c| c.row_hits).chain(of_channels("miss", |c| c.row_misses));
        counter(
            to,
            "dram_row_accesses",
            "Column accesses that found their row open (hit) or did not.",
            None,
            rows,
        )?;

        if let Some(sysmon) = &s.sysmon {
            for (name, help, value) in [
                ("temperature_celsius", "Temperature of the die, from a model.", sysmon.temperature_celsius),
                ("vccint_volts", "Supply of the logic, from a model.", sysmon.vccint_volts),
                (
                    "vccint_amperes",
                    "Current of the supply of the logic, from a model.",
                    sysmon.vccint_amperes,
                ),
            ] {
                gauge(to, name, help, [(board, value)])?;
            }
        }

        let slots: Vec<String> = (0..s.slots.len()).map(|n| n.to_string()).collect();
        let level = |value: fn(&Slot) -> bool| {
            s.slots
                .iter()
                .zip(&slots)
                .map(move |(slot, n)| ([("slot", n.as_str())], f64::from(u8::from(value(slot)))))
        };
        gauge(to, "slot_loaded", "An app is in the slot.", level(|slot| slot.loaded))?;
        gauge(to, "slot_busy", "The app in the slot reports that it computes.", level(|slot| slot.busy))?;
        let of_slots = |port: &'static str, value: fn(&Slot) -> u64| {
            s.slots
                .iter()
                .zip(&slots)
                .map(move |(slot, n)| ([("port", port), ("slot", n.as_str())], value(slot)))
        };
        let bytes = of_slots("stream_in", |slot| slot.stream_in_bytes)
            .chain(of_slots("stream_out", |slot| slot.stream_out_bytes))
            .chain(of_slots("memory_read", |slot| slot.memory_read_bytes))
            .chain(of_slots("memory_write", |slot| slot.memory_write_bytes));
        counter(
            to,
            "slot",
            "Bytes at the ports of apps; reads of the memory port in whole beats.",
            Some(Unit::Bytes),
            bytes,
        )?;

        let of_functions = |what: (&'static str, &'static str), value: fn(&Function) -> u64| {
            s.functions.iter().map(move |f| ([("function", f.name.as_str()), what], value(f)))
        };
        let bytes = of_functions(("op", "read"), |f| f.host_read_bytes)
            .chain(of_functions(("op", "write"), |f| f.host_write_bytes));
        counter(
            to,
            "host_memory",
            "Bytes of host memory that a function has read and written.",
            Some(Unit::Bytes),
            bytes,
        )?;
        let accesses = of_functions(("op", "read"), |f| f.register_reads)
            .chain(of_functions(("op", "write"), |f| f.register_writes));
        counter(to, "register_accesses", "Register accesses of the host.", None, accesses)?;
        let interrupts = s.functions.iter().map(|f| ([("function", f.name.as_str())], f.interrupts));
        counter(to, "interrupts", "Interrupts that reached the host.", None, interrupts)?;
        let packets = of_functions(("direction", "tx"), |f| f.tx_packets)
            .chain(of_functions(("direction", "rx"), |f| f.rx_packets));
        counter(to, "port_packets", "Packets through the board port of a function.", None, packets)?;
        let bytes = of_functions(("direction", "tx"), |f| f.tx_bytes)
            .chain(of_functions(("direction", "rx"), |f| f.rx_bytes));
        counter(to, "port", "Bytes through the board port of a function.", Some(Unit::Bytes), bytes)?;
        let drops = of_functions(("direction", "tx"), |f| f.tx_drops)
            .chain(of_functions(("direction", "rx"), |f| f.rx_drops));
        counter(to, "port_drops", "Packets that were dropped at the board port of a function.", None, drops)?;
        self.lines(to)
    }
}

impl Counters {
    /// Ethernet lines at board ports.
    fn lines(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let lines = || self.0.functions.iter().filter_map(|f| Some((f.name.as_str(), f.line.as_ref()?)));
        let up = lines().map(|(name, line)| ([("function", name)], f64::from(u8::from(line.up))));
        gauge(to, "port_link_up", "The link of an Ethernet port is up.", up)?;
        let rates = lines().map(|(name, line)| ([("function", name)], line.bits_per_second as f64));
        gauge(to, "port_line_bits_per_second", "What an Ethernet line carries.", rates)?;
        let mut metric = to.encode_descriptor(
            "port_line_busy",
            "Time of the card in which frames took an Ethernet line, with preamble and gap.",
            Some(&Unit::Seconds),
            prometheus_client::metrics::MetricType::Counter,
        )?;
        for (name, line) in lines() {
            for (direction, seconds) in [("tx", line.tx_seconds), ("rx", line.rx_seconds)] {
                let labels = [("direction", direction), ("function", name)];
                ConstCounter::new(seconds).encode(metric.encode_family(&Labels(&labels))?)?;
            }
        }
        let dropped = lines().flat_map(|(name, line)| {
            [("tx", line.tx_dropped), ("rx", line.rx_dropped)].into_iter().flat_map(
                move |(direction, dropped)| {
                    dropped.causes().map(|(cause, count)| {
                        ([("cause", cause), ("direction", direction), ("function", name)], count)
                    })
                },
            )
        });
        counter(
            to,
            "port_line_drops",
            "Frames that were dropped at an Ethernet port, by cause.",
            None,
            dropped,
        )
    }
}

fn counter<'a, L: AsRef<[(&'static str, &'a str)]>>(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<Unit>,
    values: impl IntoIterator<Item = (L, u64)>,
) -> fmt::Result {
    let kind = prometheus_client::metrics::MetricType::Counter;
    let mut metric = to.encode_descriptor(name, help, unit.as_ref(), kind)?;
    for (labels, value) in values {
        ConstCounter::new(value).encode(metric.encode_family(&Labels(labels.as_ref()))?)?;
    }
    Ok(())
}

fn gauge<'a, L: AsRef<[(&'static str, &'a str)]>>(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (L, f64)>,
) -> fmt::Result {
    let kind = prometheus_client::metrics::MetricType::Gauge;
    let mut metric = to.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in values {
        ConstGauge::new(value).encode(metric.encode_family(&Labels(labels.as_ref()))?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Channel, Dropped, Line, Link};

    #[test]
    fn every_counter_has_a_line_with_its_value() {
        let snapshot = Snapshot {
            board: "gen3x16".into(),
            clock_khz: 250_000,
            cycles: 1234,
            link: Link { from_card_seconds: 0.5, to_card_seconds: 0.25 },
            channels: vec![Channel { read_bytes: 64, write_bytes: 128, row_hits: 2, row_misses: 1 }],
            slots: vec![Slot {
                loaded: true,
                stream_in_bytes: 77,
                memory_write_bytes: 4096,
                ..Slot::default()
            }],
            functions: vec![Function {
                name: "net".into(),
                rx_drops: 3,
                interrupts: 5,
                line: Some(Line {
                    bits_per_second: 10_000_000_000,
                    up: true,
                    rx_seconds: 0.125,
                    rx_dropped: Dropped { fcs: 3, ..Dropped::default() },
                    ..Line::default()
                }),
                ..Function::default()
            }],
            sysmon: Some(crate::Sysmon {
                temperature_celsius: 41.5,
                vccint_volts: 0.85,
                vccint_amperes: 14.25,
            }),
        };
        let text = text(snapshot);
        for line in [
            "viaduct_clock_hertz{board=\"gen3x16\"} 250000000.0",
            "viaduct_cycles_total{board=\"gen3x16\"} 1234",
            "# UNIT viaduct_link_busy_seconds seconds",
            "viaduct_link_busy_seconds_total{direction=\"from_card\"} 0.5",
            "viaduct_dram_bytes_total{channel=\"0\",op=\"write\"} 128",
            "viaduct_dram_row_accesses_total{channel=\"0\",op=\"miss\"} 1",
            "viaduct_temperature_celsius{board=\"gen3x16\"} 41.5",
            "viaduct_vccint_amperes{board=\"gen3x16\"} 14.25",
            "viaduct_slot_loaded{slot=\"0\"} 1.0",
            "viaduct_slot_busy{slot=\"0\"} 0.0",
            "viaduct_slot_bytes_total{port=\"stream_in\",slot=\"0\"} 77",
            "viaduct_slot_bytes_total{port=\"memory_write\",slot=\"0\"} 4096",
            "viaduct_interrupts_total{function=\"net\"} 5",
            "viaduct_port_drops_total{function=\"net\",direction=\"rx\"} 3",
            "viaduct_port_link_up{function=\"net\"} 1.0",
            "viaduct_port_line_bits_per_second{function=\"net\"} 10000000000.0",
            "viaduct_port_line_busy_seconds_total{direction=\"rx\",function=\"net\"} 0.125",
            "viaduct_port_line_drops_total{cause=\"fcs\",direction=\"rx\",function=\"net\"} 3",
            "viaduct_port_line_drops_total{cause=\"long\",direction=\"tx\",function=\"net\"} 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
