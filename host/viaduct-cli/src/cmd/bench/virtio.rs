// SPDX-License-Identifier: Apache-2.0
//! `viaduct bench virtio`: the network device, echoed by app udp_echo in a slot, under a driver in this process. The
//! driver takes no card time, so only card and link are measured.

use std::sync::Arc;

use viaduct::{Attachment, Features, FunctionKind};
use viaduct_build::{Project, Variant};
use viaduct_pci::PciFunction;
use viaduct_sim::FunctionCounters;
use viaduct_virtio::net::{HEADER, Net};
use viaduct_virtio::{Statistics, VirtioError, feature};

use super::{Figure, wrong};
use crate::card::{COMPLETION, CardArgs, REQUEST, Simulated};
use crate::cmd::bench::plot::{Form, Kind, Plot};
use crate::fail::{Failure, Result};
use crate::functions::connect::load;
use crate::random::Random;

/// Options of the ring, each in addition to the previous ones.
const MODES: [(&str, u64); 5] = [
    ("split", 0),
    ("+ event index", 1 << feature::EVENT_IDX),
    ("+ notification data", 1 << feature::EVENT_IDX | 1 << feature::NOTIFICATION_DATA),
    ("+ in-order", 1 << feature::EVENT_IDX | 1 << feature::NOTIFICATION_DATA | 1 << feature::IN_ORDER),
    (
        "packed",
        1 << feature::EVENT_IDX
            | 1 << feature::NOTIFICATION_DATA
            | 1 << feature::IN_ORDER
            | 1 << feature::RING_PACKED,
    ),
];
/// Read latencies of the link, in nanoseconds: a root complex nearby, the profile's own, one behind switches and an IOMMU.
const LATENCIES: [u32; 3] = [250, 550, 1_000];
const SIZES: [usize; 5] = [64, 128, 256, 512, 1024];
const QUEUED: [usize; 3] = [64, 1472, 8972];
/// Where buffers of small frames also begin, behind a multiple of 256: in a third line of 64 bytes, and across that multiple.
const OFFSETS: [usize; 2] = [62, 200];
/// Round trips per figure, without the first ones, which find cold rings.
const ROUNDS: u32 = 32;
const WARM: u32 = 8;
/// Frames under load that are received before the measurement begins, and in it: several times what the rings hold, which
/// the driver keeps full.
const BEFORE: u64 = 512;
const MEASURED: u64 = 2048;
/// Before the measurement of a driver that takes the descriptor returned last: later their order changes no more what a
/// frame takes.
const AGED: u64 = 32_768;
/// Frames that the driver sends, and buffers that it offers again, with one notification.
const BATCH: u32 = 32;
/// Cycles between two polls of the ring by the host, and the limit.
const LOOK: u64 = 8;
const LONGEST: u64 = 1_000_000;
const ENTRIES: u16 = 256;
const IOVA: u64 = 0x10_0000_0000;

/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
const OURS: [u8; 6] = [0x02, 0, 0, 0, 0, 0x11];
/// App udp_echo's address after reset.
const ECHO: [u8; 6] = [0x02, 0x56, 0x49, 0x56, 0x44, 0x01];

/// A network device with udp_echo as its user side.
struct Bench {
    sim: Simulated,
    net: Net,
    _slot: viaduct::Slot,
}

impl Bench {
    fn open(project: &Project, card: &CardArgs, features: u64, latency: Option<u32>) -> Result<Self> {
        Self::open_at(project, card, features, latency, 0)
    }

    /// With buffers that begin `offset` bytes behind a multiple of 256.
    fn open_at(
        project: &Project,
        card: &CardArgs,
        features: u64,
        latency: Option<u32>,
        offset: usize,
    ) -> Result<Self> {
        let opened = card.open_with(project, Variant::Functions, |profile| {
            if let Some(ns) = latency {
                profile.link.read_latency_ns = ns;
            }
        })?;
        let sim = opened.sim.clone().ok_or(Failure::Run("not a simulated card".into()))?;
        let slot = load(project, &opened, &project.load("udp_echo")?, &[])?;
        let control = opened.card.function(FunctionKind::Net)?;
        control.attach(Attachment::Slot(slot.index()))?;
        control.set_up(true)?;
        // Packed rings and in-order use are offered only if requested.
        control.allow_features(Features::DEFAULT | features)?;
        let number = usize::from(FunctionKind::Net.number());
        let function: Arc<dyn PciFunction> = sim
            .function
            .function(number)
            .map_err(|e| Failure::Run(e.to_string()))?
            .ok_or(Failure::Run("this card has no network device".into()))?;
        let net = Net::open(function, features, ENTRIES, IOVA, offset).map_err(failed)?;
        if net.device.features() & features != features {
            return Err(Failure::Run(format!("the device does not offer features {features:#x}")));
        }
        Ok(Self { sim, net, _slot: slot })
    }

    fn counters(&self) -> FunctionCounters {
        let number = usize::from(FunctionKind::Net.number());
        self.sim.function.function_counters(number).unwrap_or_default()
    }

    /// Sends a frame, waits for the reply and compares it.
    fn round(&mut self, payload: &[u8]) -> Result {
        let (ask, response) = frames(payload);
        if !self.net.queue(&ask).map_err(failed)? {
            return wrong("virtio, one round trip");
        }
        self.net.tx.kick().map_err(failed)?;
        let got = self.net.wait(super::PATIENCE).map_err(failed)?;
        if got != response {
            return wrong("virtio, one round trip");
        }
        Ok(())
    }
}

fn failed(error: VirtioError) -> Failure {
    Failure::Run(format!("network device: {error}"))
}

/// Results of `ROUNDS` round trips.
struct Rounds {
    cycles: f64,
    statistics: Statistics,
    before: FunctionCounters,
    after: FunctionCounters,
    /// Notifications of both queues per round trip.
    kicks: f64,
}

fn rounds(bench: &mut Bench, size: usize) -> Result<Rounds> {
    let mut random = Random(7);
    for _ in 0..WARM {
        bench.round(&random.bytes(size))?;
    }
    bench.sim.function.run(100_000);
    bench.net.device.clear_statistics().map_err(failed)?;
    let (before, kicks) = (bench.counters(), bench.net.tx.kicks() + bench.net.rx.kicks());
    let begun = bench.sim.function.now();
    for _ in 0..ROUNDS {
        bench.round(&random.bytes(size))?;
    }
    let cycles = (bench.sim.function.now() - begun) as f64 / f64::from(ROUNDS);
    let after = bench.counters();
    let kicks = (bench.net.tx.kicks() + bench.net.rx.kicks() - kicks) as f64 / f64::from(ROUNDS);
    let statistics = bench.net.device.statistics().map_err(failed)?;
    Ok(Rounds { cycles, statistics, before, after, kicks })
}

/// A UDP datagram to app udp_echo, and its reply.
fn frames(payload: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let build = |to: [u8; 6], from: [u8; 6], ports: [u16; 2], addresses: [[u8; 4]; 2]| {
        let mut frame = Vec::with_capacity(HEADERS + payload.len());
        frame.extend(to);
        frame.extend(from);
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((20 + 8 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, 17, 0, 0]);
        frame.extend(addresses.concat());
        frame.extend(ports.iter().flat_map(|p| p.to_be_bytes()));
        frame.extend((8 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(payload);
        frame
    };
    let (here, there) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    (build(ECHO, OURS, [4000, 7], [here, there]), build(OURS, ECHO, [7, 4000], [there, here]))
}

/// Minimum time of the link for one echo of `bytes` with `reads` dependent reads before the payload has arrived, in cycles:
/// those reads, the reply's data with its used entry (and index, if the ring is split), and the read of the driver's event
/// suppression, which follows immediately since the link keeps it in order after them. Also for the interrupt after that.
fn minimum(sim: &Simulated, packed: bool, reads: f64, bytes: usize) -> (f64, f64) {
    let link = &sim.profile.link;
    let wire = |bytes: f64| bytes / sim.bytes_per_cycle();
    let cycles = |ns: u32| f64::from(ns) * f64::from(sim.profile.clk_khz) / 1e6;
    let read = cycles(link.read_latency_ns) + wire(REQUEST as f64);
    // Packets carry double words.
    let bytes = bytes.next_multiple_of(4);
    // Payload that does not fit one completion follows in others.
    let packets = (bytes as f64 / f64::from(link.mps)).ceil();
    let behind = (bytes as f64 - f64::from(link.mps)).max(0.0);
    let payload = wire(behind + (packets - 1.0) * COMPLETION as f64);
    // The half of a used descriptor that is written.
    let used = if packed { REQUEST as f64 + 8.0 } else { 2.0 * REQUEST as f64 + 8.0 + 4.0 };
    let written = wire(bytes as f64 + REQUEST as f64 * packets + used);
    // The read must see the writes: if they take longer to reach host memory than it does, it waits.
    let late =
        (cycles(link.write_latency_ns) - cycles(link.read_latency_ns) / 2.0 - wire(REQUEST as f64)).max(0.0);
    let interrupt = wire(REQUEST as f64 + 4.0);
    (reads * read + payload + written + late + read, interrupt)
}

/// With `all`, all cases of the documents; otherwise one size and one latency, with every ring.
pub fn virtio(project: &Project, card: &CardArgs, all: bool, plots: &mut Vec<Plot>) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut drawn = Drawn::new();
    let ends = [MODES[0], MODES[4]];
    let (latencies, sizes) = if all { (&LATENCIES[..], &SIZES[..]) } else { (&LATENCIES[1..2], &SIZES[..1]) };
    let queued_sizes = if all { &QUEUED[..] } else { &QUEUED[..1] };
    for latency in latencies {
        for (mode, features) in MODES {
            let mut bench = Bench::open(project, card, features, Some(*latency))?;
            let r = echo(&mut bench, &format!("read latency {latency} ns, {mode}"), 64, &mut figures)?;
            drawn.latency(mode, *latency, &r);
            if !all {
                drawn.size(mode, 64, &r);
            }
        }
    }
    if all {
        for (mode, features) in ends {
            let mut bench = Bench::open(project, card, features, None)?;
            for size in SIZES {
                let r = echo(&mut bench, mode, size, &mut figures)?;
                drawn.size(mode, size, &r);
            }
        }
    }
    figures.extend(super::xdma::xdma(project, card, sizes, &mut drawn.sizes)?);
    for (mode, features) in MODES {
        let mut bench = Bench::open(project, card, features, None)?;
        bench.net.tx.take_oldest();
        for size in queued_sizes {
            let r = queued(&mut bench, mode, *size, BEFORE, &mut figures)?;
            drawn.frames(Kind::Ours, mode, *size, &r);
        }
        for offset in if all { &OFFSETS[..] } else { &[] } {
            let mut bench = Bench::open_at(project, card, features, None, *offset)?;
            bench.net.tx.take_oldest();
            let mode = format!("{mode}, {offset} bytes behind a multiple of 256");
            queued(&mut bench, &mode, QUEUED[0], BEFORE, &mut figures)?;
        }
    }
    if all {
        let (mode, features) = MODES[0];
        let mut bench = Bench::open(project, card, features, None)?;
        let mode = format!("{mode}, last descriptor first");
        let mut before = AGED;
        for size in QUEUED {
            let r = queued(&mut bench, &mode, size, before, &mut figures)?;
            drawn.frames(Kind::Rival, &mode, size, &r);
            before = BEFORE;
        }
        for latency in [LATENCIES[0], LATENCIES[2]] {
            for (mode, features) in MODES {
                let mut bench = Bench::open(project, card, features, Some(latency))?;
                bench.net.tx.take_oldest();
                let mode = format!("read latency {latency} ns, {mode}");
                queued(&mut bench, &mode, QUEUED[0], BEFORE, &mut figures)?;
            }
        }
    }
    plots.extend(drawn.plots());
    Ok(figures)
}

/// The plots.
struct Drawn {
    latencies: Plot,
    sizes: Plot,
    frames: Plot,
}

impl Drawn {
    fn new() -> Self {
        Self {
            latencies: Plot::new(
                "virtio-latency",
                Form::Bars,
                "A 64-byte datagram to an app and back, through the network device",
                format!(
                    "mean of {ROUNDS} round trips, from the notification to the interrupt in the queue engine, without the app's time"
                ),
                ["read latency of the link, ns", "cycles of the card"],
            ),
            sizes: Plot::new(
                "virtio-xdma",
                Form::Lines,
                "A round trip from host to host, virtio and XDMA",
                format!(
                    "mean of {ROUNDS} round trips, from the driver's first access to its interrupt handler; virtio: the app's time included"
                ),
                ["bytes of payload each way", "cycles of the card"],
            ),
            frames: Plot::new(
                "virtio-frames",
                Form::Bars,
                "Frames queued, each out and back",
                format!(
                    "mean of {MEASURED} frames and more after others, while the driver keeps rings of {ENTRIES} entries full"
                ),
                ["bytes of payload", "bytes per cycle each way"],
            ),
        }
    }

    fn latency(&mut self, mode: &str, ns: u32, r: &Echo) {
        self.latencies.add(Kind::Ours, mode, &ns.to_string(), 0.0, r.hardware);
        self.latencies.limit_of(mode, "the link alone", &ns.to_string(), r.least);
    }

    fn size(&mut self, mode: &str, size: usize, r: &Echo) {
        let mut add = |kind, name: &str, cycles| {
            self.sizes.add(kind, name, &size.to_string(), size as f64, cycles);
        };
        add(Kind::Ours, &format!("virtio, {mode}"), r.whole);
        add(Kind::Limit, &format!("the link alone, {mode}"), r.ways);
    }

    fn frames(&mut self, kind: Kind, mode: &str, size: usize, r: &Queued) {
        let mut add = |kind, name: &str, rate| self.frames.add(kind, name, &size.to_string(), 0.0, rate);
        add(kind, mode, r.rate);
        add(Kind::Limit, "the link, frames alone", r.most);
    }

    fn plots(self) -> [Plot; 3] {
        [self.latencies, self.sizes, self.frames]
    }
}

/// Cycles of a round trip.
struct Echo {
    /// In the queue engine, and the link's minimum of it.
    hardware: f64,
    least: f64,
    /// From host to host, and the link's minimum of it.
    whole: f64,
    ways: f64,
}

/// One round trip after the other.
fn echo(bench: &mut Bench, mode: &str, size: usize, figures: &mut Vec<Figure>) -> Result<Echo> {
    let r = rounds(bench, size)?;
    let each = |n: u32| f64::from(n) / f64::from(ROUNDS);
    let s = &r.statistics;
    // One after the other before the payload is there. With notification data the index is read only afterwards, to
    // miss no kick.
    let index = if bench.net.device.has(feature::NOTIFICATION_DATA) { 0 } else { s.index_reads };
    let before = [index, s.ring_reads, s.descriptor_reads, s.table_reads, s.payload_reads];
    let dependent: f64 = before.iter().map(|n| each(*n).min(1.0).round()).sum();
    let stages: Vec<String> = s.stages.iter().map(|stage| format!("{:.0}", stage.mean())).collect();
    // The app's time is not the device's (as in the paper, section IV-B).
    let user = s.user.mean();
    let hardware = s.stages.iter().map(viaduct_virtio::Stage::mean).sum::<f64>() - user;
    let packed = bench.net.device.has(feature::RING_PACKED);
    let (least, interrupt) = minimum(&bench.sim, packed, dependent, HEADER + HEADERS + size);
    // The stages are measured in the queue engine. From the doorbell's arrival at the card to the interrupt's departure it is a
    // little more, which is visible on the host's side.
    let link = &bench.sim.profile.link;
    let ways =
        f64::from(link.mmio_write_ns + link.irq_latency_ns) * f64::from(bench.sim.profile.clk_khz) / 1e6;
    let whole = r.cycles - ways - user;
    let over = |cycles: f64, least: f64| (cycles / least - 1.0) * 100.0;
    figures.push(Figure {
        what: format!("virtio echo of {size} bytes, {mode}: card"),
        value: hardware,
        unit: "cycles",
        note: format!(
            "doorbell to interrupt {} - {user:.0} in the app ({:.1} % over the link's own {least:.0}); with the ways in front of the \
             queue engine and behind it {whole:.0} ({:.1} %); with the host's side of the link {:.0}",
            stages.join(" + "),
            over(hardware, least),
            over(whole, least + interrupt),
            r.cycles
        ),
    });
    figures.push(Figure {
        what: format!("virtio echo of {size} bytes, {mode}: MMIO reads"),
        value: (r.after.mmio_reads - r.before.mmio_reads) as f64 / f64::from(ROUNDS),
        unit: "each",
        note: format!(
            "{:.2} notifications, {:.2} DMA reads ({:.2} before the payload is there), {:.2} DMA writes, {:.2} interrupts",
            r.kicks,
            each(s.reads()),
            dependent,
            each(s.writes()),
            (r.after.irqs - r.before.irqs) as f64 / f64::from(ROUNDS),
        ),
    });
    Ok(Echo { hardware, least, whole: r.cycles, ways: least + interrupt + ways })
}

/// Bytes per cycle each way: of queued frames, and at most.
struct Queued {
    rate: f64,
    most: f64,
}

/// Frames echoed while the driver keeps the rings full, after the first `before`: the time of each.
fn queued(
    bench: &mut Bench,
    mode: &str,
    size: usize,
    before: u64,
    figures: &mut Vec<Figure>,
) -> Result<Queued> {
    let what = format!("virtio, frames of {size} bytes queued, {mode}");
    let load = under_load(bench, &what, size, before)?;
    // No frame takes less than the link needs for its bytes, in either direction: if it seems so, more frames were on
    // their way at the beginning of the measurement than at its end.
    let cycles = load.cycles.max(load.up).max(load.down);
    let bytes = (HEADER + HEADERS + size) as f64;
    let (payload_up, payload_down) = both_ways(&bench.sim, bytes);
    let limit = payload_up.max(payload_down);
    // Of the rings, of beats that a frame fills in part, and of packets that are divided at a boundary.
    let besides = |all: f64, payload: f64| (all - payload) * bench.sim.bytes_per_cycle();
    let s = &load.statistics;
    figures.push(Figure {
        what,
        value: cycles,
        unit: "cycles",
        note: format!(
            "each, {:.1} bytes a cycle out and as many back: {:.2} of what the link carries of such frames alone; with \
             everything it carried, the way from the card was in use for {:.2} of the time, the way to it for \
             {:.2}; besides the frame {:.0} bytes from the card and {:.0} to it; {:.1} chains made visible together ({} \
             frames in {} cycles)",
            bytes / cycles,
            limit / cycles,
            load.up / cycles,
            load.down / cycles,
            besides(load.up, payload_up),
            besides(load.down, payload_down),
            f64::from(s.used) / f64::from(s.index_writes.max(1)),
            load.frames,
            load.window,
        ),
    });
    Ok(Queued { rate: bytes / cycles, most: bytes / limit })
}

/// A measurement under load, from one look of the host at the receive ring to a later one.
struct Load {
    frames: u64,
    window: u64,
    /// Cycles of each frame, and those of them in which each direction of the link was busy.
    cycles: f64,
    up: f64,
    down: f64,
    /// With what came before the measurement and after it.
    statistics: Statistics,
}

/// The driver sends whenever there is room and offers receive buffers again as they are used, `BATCH` with one
/// notification, until the measurement is over.
fn under_load(bench: &mut Bench, what: &str, size: usize, before: u64) -> Result<Load> {
    let (mut asked, mut answered) = (Random(9), Random(9));
    let (mut sent, mut received, mut to_send, mut to_offer) = (0, 0, 0, 0);
    let mut ask = frames(&asked.bytes(size)).0;
    let (mut first, mut last) = (None, None);
    bench.net.device.clear_statistics().map_err(failed)?;
    let begun = bench.sim.function.now();
    // The host polls every few cycles, so that the time of an interrupt is not included.
    bench.net.rx.disarm();
    while last.is_none() || received < sent {
        while last.is_none() && bench.net.queue(&ask).map_err(failed)? {
            ask = frames(&asked.bytes(size)).0;
            (sent, to_send) = (sent + 1, to_send + 1);
            if to_send == BATCH {
                bench.net.tx.kick().map_err(failed)?;
                to_send = 0;
            }
        }
        while let Some(got) = bench.net.receive().map_err(failed)? {
            if got != frames(&answered.bytes(size)).1 {
                return wrong(what);
            }
            (received, to_offer) = (received + 1, to_offer + 1);
            if to_offer == BATCH {
                bench.net.rx.kick().map_err(failed)?;
                to_offer = 0;
            }
        }
        if first.is_none() && received >= before {
            first = Some((received, bench.sim.function.counters()));
        } else if last.is_none() && received >= before + MEASURED {
            last = Some((received, bench.sim.function.counters()));
            // The rest of a batch.
            bench.net.tx.kick().map_err(failed)?;
        }
        if bench.sim.function.now() - begun > LONGEST {
            return wrong(what);
        }
        bench.sim.function.run(LOOK);
    }
    bench.net.rx.kick().map_err(failed)?;
    bench.sim.function.run(100_000);
    let statistics = bench.net.device.statistics().map_err(failed)?;
    let (Some((earlier, first)), Some((later, last))) = (first, last) else { return wrong(what) };
    let (frames, window) = (later - earlier, last.cycles - first.cycles);
    let each = |ps: u64| ps as f64 * f64::from(bench.sim.profile.clk_khz) / 1e9 / frames as f64;
    Ok(Load {
        frames,
        window,
        cycles: window as f64 / frames as f64,
        up: each(last.link_up_ps - first.link_up_ps),
        down: each(last.link_down_ps - first.link_down_ps),
        statistics,
    })
}

/// Cycles that a message of `bytes` to the card and one back occupy the link from the card and to it: writes and read
/// requests share the link from the card.
fn both_ways(sim: &Simulated, bytes: f64) -> (f64, f64) {
    let link = &sim.profile.link;
    let packets = |most: u32, each: u64| (bytes / f64::from(most)).ceil() * each as f64;
    let up = bytes + packets(link.mps, REQUEST) + packets(link.mrrs, REQUEST);
    let down = bytes + packets(link.mps, COMPLETION);
    (up / sim.bytes_per_cycle(), down / sim.bytes_per_cycle())
}
