// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench guest`: the round trips of the paper (section V) in one boot of a Linux guest. UDP datagrams through the
//! network device with the kernel's own driver, echoed by app udp_echo; and as many bytes to card memory and back
//! through the XDMA-compatible function with `kernel/xdma`. The guest's processor is emulated and the card simulated, so the
//! times are those of this machine; cycles and counts are the card's.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use nix::time::ClockId;
use serde::Deserialize;
use viaduct::FunctionKind;
use viaduct_build::Project;
use viaduct_pci::PciFunction;
use viaduct_sim::{FunctionCounters, XDMA_DMA_BAR};
use viaduct_virtio::{Device, Stage};

use super::made::made;
use super::{Figure, wrong};
use crate::card::Simulated;
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::cmd::vm::{self, Machine, Watcher};
use crate::fail::{Failure, Result, at};

const SIZES: [u32; 5] = [64, 128, 256, 512, 1024];
/// The network device offers packed rings in addition to its default features; the kernel's driver accepts them.
const PACKED: &str = "net:+packed";
/// Longest time for a round trip, on average, and for everything before the first.
const ROUND_MS: u64 = 1000;
const START_S: u64 = 300;

/// Performance counter of a channel of the XDMA-compatible function (PG195).
const PERF_CONTROL: u64 = 0xc0;
const PERF_CYCLES: u64 = 0xc4;
/// Counts while a list is processed; starts from zero.
const PERF_AUTO_CLEAR: u32 = 1 << 2 | 1 << 1;
/// H2C, C2H.
const CHANNELS: [u64; 2] = [0, 0x1000];

/// Output of udp_rtt and xdma_rtt.
#[derive(Deserialize)]
struct Printed {
    rounds: u32,
    sizes: Vec<Times>,
}

/// Results of one size, in microseconds.
#[derive(Deserialize)]
struct Times {
    size: u32,
    warmup: u32,
    answered: u32,
    lost: u32,
    wrong: u32,
    mean: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    #[serde(rename = "p99.9")]
    p99_9: f64,
    max: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Virtio,
    Xdma,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Virtio => "virtio",
            Way::Xdma => "XDMA",
        }
    }

    /// Options beyond the default.
    fn asks(self) -> String {
        match self {
            Way::Virtio => format!(" with --features {PACKED}"),
            Way::Xdma => String::new(),
        }
    }
}

/// Counters of the card, and processor time of this machine.
struct Sample {
    counters: FunctionCounters,
    card: Duration,
    guest: Duration,
    /// Cycles of the card for each round trip, known at the end.
    hardware: f64,
}

/// All results of one size.
struct Measured {
    way: Way,
    times: Times,
    begun: Sample,
    ended: Sample,
}

/// The card's two functions, observed from outside the guest.
struct Card {
    sim: Simulated,
    net: Device,
    xdma: Arc<dyn PciFunction>,
}

impl Card {
    fn open(sim: &Simulated) -> Result<Self> {
        let function = |kind: FunctionKind| {
            let found = sim.function.function(usize::from(kind.number())).map_err(failed)?;
            found.ok_or_else(|| Failure::Run(format!("this card has no {kind:?} function")))
        };
        let net = Device::observe(function(FunctionKind::Net)?).map_err(failed)?;
        Ok(Self { sim: sim.clone(), net, xdma: function(FunctionKind::Xdma)? })
    }

    /// Restarts the counters of cycles. The counters of accesses are read last, since this makes accesses too.
    fn begin(&self, way: Way, machine: &Machine) -> Result<Sample> {
        match way {
            Way::Virtio => self.net.clear_statistics().map_err(failed)?,
            Way::Xdma => CHANNELS.iter().try_for_each(|channel| {
                self.xdma.write32(XDMA_DMA_BAR, channel + PERF_CONTROL, PERF_AUTO_CLEAR).map_err(failed)
            })?,
        }
        Ok(Sample {
            counters: self.counters(way),
            card: own_time()?,
            guest: machine.processor_time()?,
            hardware: 0.0,
        })
    }

    /// In the opposite order.
    fn end(&self, way: Way, rounds: f64, machine: &Machine) -> Result<Sample> {
        let (card, guest) = (own_time()?, machine.processor_time()?);
        let counters = self.counters(way);
        let hardware = match way {
            Way::Virtio => {
                let statistics = self.net.statistics().map_err(failed)?;
                // The app's time is not the device's, as in the paper (section IV-B).
                statistics.stages.iter().map(Stage::mean).sum::<f64>() - statistics.user.mean()
            }
            Way::Xdma => {
                let mut cycles = 0;
                for channel in CHANNELS {
                    let half =
                        |at: u64| self.xdma.read32(XDMA_DMA_BAR, channel + PERF_CYCLES + at).map_err(failed);
                    cycles += u64::from(half(0)?) | u64::from(half(4)?) << 32;
                }
                cycles as f64 / rounds
            }
        };
        Ok(Sample { counters, card, guest, hardware })
    }

    fn counters(&self, way: Way) -> FunctionCounters {
        let kind = match way {
            Way::Virtio => FunctionKind::Net,
            Way::Xdma => FunctionKind::Xdma,
        };
        self.sim.function.function_counters(usize::from(kind.number())).unwrap_or_default()
    }
}

/// Processor time of this process, which is that of the simulated card.
fn own_time() -> Result<Duration> {
    ClockId::CLOCK_PROCESS_CPUTIME_ID.now().map(Duration::from).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(format!("card: {error}"))
}

/// Follows guest/roundtrips.sh, which prints `begin WAY`, a program's object and `end WAY`, and waits for a line after each
/// marker.
#[derive(Default)]
struct Follower {
    rounds: u32,
    card: Option<Card>,
    line: Vec<u8>,
    begun: Option<Sample>,
    times: Option<Times>,
    measured: Vec<Measured>,
}

impl Watcher for Follower {
    fn card(&mut self, card: &Simulated) -> Result {
        self.card = Some(Card::open(card)?);
        Ok(())
    }

    fn output(&mut self, bytes: &[u8], machine: &mut Machine) -> Result {
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
            if self.line(line.trim_end(), machine)? {
                machine.input.write_all(b"go\n").map_err(at("the guest"))?;
            }
        }
        Ok(())
    }
}

impl Follower {
    /// Processes a line of output; returns whether the guest waits for a line now.
    fn line(&mut self, line: &str, machine: &Machine) -> Result<bool> {
        let Some(card) = &self.card else { return Ok(false) };
        let way = match line.split_once(' ') {
            Some(("begin" | "end", "virtio")) => Way::Virtio,
            Some(("begin" | "end", "xdma")) => Way::Xdma,
            _ if line.starts_with('{') => {
                self.times = Some(self.checked(line)?);
                return Ok(false);
            }
            _ => return Ok(false),
        };
        if line.starts_with("begin") {
            self.begun = Some(card.begin(way, machine)?);
            return Ok(true);
        }
        let (Some(times), Some(begun)) = (self.times.take(), self.begun.take()) else {
            return Err(Failure::Run(format!("unexpected line from the guest: {line:?}")));
        };
        let ended = card.end(way, f64::from(self.rounds + times.warmup), machine)?;
        tell!(
            "{}, {} bytes: {} round trips, {:.2} ms each",
            way.name(),
            times.size,
            times.answered,
            times.mean / 1e3
        );
        self.measured.push(Measured { way, times, begun, ended });
        Ok(true)
    }

    /// The times in a program's output, if every reply was right.
    fn checked(&self, line: &str) -> Result<Times> {
        let unclear = |why: String| Failure::Run(format!("the guest's program printed {line:?}: {why}"));
        let mut printed: Printed = serde_json::from_str(line).map_err(|e| unclear(e.to_string()))?;
        let (Some(times), []) = (printed.sizes.pop(), printed.sizes.as_slice()) else {
            return Err(unclear("not one size".to_owned()));
        };
        // One datagram in a thousand may be lost, as in udp_rtt.
        let least = self.rounds - self.rounds / 1000;
        if printed.rounds != self.rounds || times.wrong > 0 || times.answered < least {
            return wrong(&format!("round trips of {} bytes", times.size));
        }
        Ok(times)
    }
}

/// Measures the figures of `viaduct bench guest`.
pub fn guest(
    project: &Project,
    profile: Option<&str>,
    kernel: &str,
    rounds: u32,
    plots: &mut Vec<Plot>,
) -> Result<Vec<Figure>> {
    let module = made(project, "guest_module.sh", &[kernel])?;
    let script = project.root().join("guest/roundtrips.sh");
    let seconds = START_S + 2 * SIZES.len() as u64 * u64::from(rounds) * ROUND_MS / 1000;
    let mut words: Vec<_> =
        ["--kernel", kernel, "--function", "net,xdma", "--net", "app:udp_echo", "--features", PACKED]
            .into_iter()
            .chain(profile.iter().flat_map(|name| ["--profile", name]))
            .map(Into::into)
            .collect();
    words.extend(["--copy".into(), module.into(), "--script".into(), script.into()]);
    words.extend(["--timeout".into(), seconds.min(86_400).to_string().into(), "--".into()]);
    words.push(rounds.to_string().into());
    words.extend(SIZES.map(|size| size.to_string().into()));

    let mut follower = Follower { rounds, ..Follower::default() };
    let code = vm::watched(vm::Args::of(&words)?, &mut follower)?;
    if code != 0 || follower.measured.len() != 2 * SIZES.len() {
        return wrong(&format!("round trips in the guest, which ends with exit code {code}"));
    }
    let clock_khz = follower.card.as_ref().map_or(0, |card| card.sim.profile.clk_khz);
    let mut plot = Plot::new(
        "guest",
        Form::Bars,
        "Round trips of a program in a Linux guest, time in hardware",
        format!(
            "mean of {rounds} round trips of each size, counted by the card; virtio: packed rings, without the app's time"
        ),
        ["bytes of payload each way", "cycles of the card"],
    );
    for m in &follower.measured {
        let (kind, name) = match m.way {
            Way::Virtio => (Kind::Ours, "virtio, the kernel's driver"),
            Way::Xdma => (Kind::Rival, "XDMA, kernel/xdma"),
        };
        plot.add(kind, name, &m.times.size.to_string(), 0.0, m.ended.hardware);
    }
    plots.push(plot);
    let mut figures: Vec<Figure> = follower.measured.iter().flat_map(|m| m.figures(clock_khz)).collect();
    for size in SIZES {
        let of = |way| follower.measured.iter().find(|m| m.way == way && m.times.size == size);
        if let (Some(virtio), Some(xdma)) = (of(Way::Virtio), of(Way::Xdma)) {
            let ratio = |of: fn(&Measured) -> f64| of(virtio) / of(xdma);
            figures.push(Figure {
                what: format!("guest, {size} bytes: virtio to XDMA"),
                value: ratio(|m| m.times.mean),
                unit: "",
                note: format!(
                    "of the means; p50 {:.2}, p95 {:.2}, p99 {:.2}, p99.9 {:.2}; software {:.2}, hardware {:.2}",
                    ratio(|m| m.times.p50),
                    ratio(|m| m.times.p95),
                    ratio(|m| m.times.p99),
                    ratio(|m| m.times.p99_9),
                    ratio(Measured::software_ms),
                    ratio(|m| m.ended.hardware),
                ),
            });
        }
    }
    Ok(figures)
}

impl Measured {
    /// Number of round trips, including uncounted ones.
    fn made(&self) -> f64 {
        f64::from(self.times.answered + self.times.lost + self.times.warmup)
    }

    /// Processor time of the guest for one, in milliseconds.
    fn software_ms(&self) -> f64 {
        (self.ended.guest - self.begun.guest).as_secs_f64() * 1e3 / self.made()
    }

    fn figures(&self, clock_khz: u32) -> [Figure; 3] {
        let t = &self.times;
        let name = format!("guest, {} of {} bytes", self.way.name(), t.size);
        let ms = |us: f64| us / 1e3;
        let simulated = (self.ended.card - self.begun.card).as_secs_f64() * 1e3 / self.made();
        let each = |of: fn(&FunctionCounters) -> u64| {
            (of(&self.ended.counters) - of(&self.begun.counters)) as f64 / self.made()
        };
        [
            Figure {
                what: format!("{name}: mean"),
                value: ms(t.mean),
                unit: "ms",
                note: format!(
                    "p50 {:.2}, p95 {:.2}, p99 {:.2}, p99.9 {:.2}, max {:.2}; {} round trips{}; processor time: {:.2} the emulated guest, {simulated:.2} the simulated card",
                    ms(t.p50),
                    ms(t.p95),
                    ms(t.p99),
                    ms(t.p99_9),
                    ms(t.max),
                    t.answered,
                    self.way.asks(),
                    self.software_ms(),
                ),
            },
            Figure {
                what: format!("{name}: hardware"),
                value: self.ended.hardware,
                unit: "cycles",
                note: format!(
                    "{:.2} us of card time",
                    self.ended.hardware / f64::from(clock_khz.max(1)) * 1e3
                ),
            },
            Figure {
                what: format!("{name}: MMIO reads"),
                value: each(|c| c.mmio_reads),
                unit: "each",
                note: format!(
                    "{:.2} MMIO writes, {:.2} DMA reads, {:.2} DMA writes, {:.2} interrupts",
                    each(|c| c.mmio_writes),
                    each(|c| c.host_read_tlps),
                    each(|c| c.host_write_tlps),
                    each(|c| c.irqs),
                ),
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_right_answers_make_a_figure() {
        let follower = Follower { rounds: 2000, ..Follower::default() };
        let line = |rounds: u32, answered: u32, wrong: u32| {
            let times = r#""mean": 1, "min": 1, "p50": 1, "p95": 1, "p99": 1, "p99.9": 1, "max": 1"#;
            let counts = format!(r#""warmup": 20, "answered": {answered}, "lost": 0, "wrong": {wrong}"#);
            format!(r#"{{"peer": "", "rounds": {rounds}, "sizes": [{{"size": 64, {counts}, {times}}}]}}"#)
        };
        assert!(follower.checked(&line(2000, 1998, 0)).is_ok());
        assert!(matches!(follower.checked(&line(2000, 1997, 0)), Err(Failure::Check(_))));
        assert!(matches!(follower.checked(&line(2000, 2000, 1)), Err(Failure::Check(_))));
        assert!(matches!(follower.checked(&line(1000, 2000, 0)), Err(Failure::Check(_))));
        assert!(matches!(
            follower.checked(r#"{"peer": "", "rounds": 2000, "sizes": []}"#),
            Err(Failure::Run(_))
        ));
        assert!(matches!(follower.checked("{"), Err(Failure::Run(_))));
    }
}
