// SPDX-License-Identifier: Apache-2.0
//! Frames through the board's Ethernet port: in, through an app, and out at the same time, and from card memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use viaduct::desc::{Command, PAGE, Place};
use viaduct::{Endpoint, FunctionKind, OutLength, Port, Prot, Route, SharedBytes, Slot, StreamJob, Tag};
use viaduct_build::{Project, Variant};
use viaduct_sim::{FrameInfo, FrameSink, FrameSource, NET, SimCard};

use super::super::{Figure, image, wrong};
use super::APP;
use crate::card::{CardArgs, Opened};
use crate::fail::{Failure, Result};
use crate::random::Random;

/// Bytes that a frame takes of the line besides itself: preamble and delimiter 8, gap 12 (IEEE 802.3).
const AROUND: usize = 20;
const FCS: usize = 4;
/// Where frames are in card memory and in the slot's address space.
const CARD: u64 = 1 << 30;
const FRAMES: u64 = 1 << 32;
/// Frames of card memory that are under way. A mover works on 16 commands.
const AHEAD: usize = 14;
/// Longest wait for frames, in cycles: that of all of them at 1 Gbit/s is a thirtieth.
const LIMIT: u64 = 1 << 28;

/// How much is measured.
pub struct EthernetScale {
    /// Rates of the line in Gbit/s.
    pub gbps: &'static [u32],
    /// Lengths of frames, with FCS.
    pub frames: &'static [usize],
    /// Bytes of all frames of one measurement, and the fewest frames.
    pub bytes: usize,
    pub least: usize,
}

/// Frames of one length, which both ends of the line know.
struct Frames {
    random: Random,
    size: usize,
    left: usize,
}

impl Frames {
    fn new(size: usize, count: usize) -> Self {
        Self { random: Random(size as u64), size, left: count }
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.random.bytes(self.size))
    }
}

struct Source(Frames);

impl FrameSource for Source {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<FrameInfo> {
        frame.extend_from_slice(&self.0.next()?);
        Some(FrameInfo::default())
    }
}

/// What has arrived at the other end.
#[derive(Default)]
struct Arrived {
    first: Duration,
    last: Duration,
    frames: usize,
    wrong: bool,
}

struct Sink {
    expected: Frames,
    arrived: Arc<Mutex<Arrived>>,
}

impl FrameSink for Sink {
    fn put(&mut self, frame: &[u8], sent: Duration) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.wrong |= self.expected.next().is_none_or(|expected| expected != frame);
        if arrived.frames == 0 {
            arrived.first = sent;
        }
        arrived.last = sent;
        arrived.frames += 1;
    }
}

/// Frames of each length at each rate.
pub fn ethernet(project: &Project, card: &CardArgs, scale: &EthernetScale) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for &gbps in scale.gbps {
        let opened =
            card.open_with(project, Variant::Functions, |profile| profile.board.ethernet_gbps = gbps)?;
        let bench = Bench::new(project, &opened, gbps)?;
        for &frame in scale.frames {
            let count = (scale.bytes / frame).max(scale.least);
            figures.push(bench.through(frame, count)?);
        }
        for &frame in scale.frames {
            let count = (scale.bytes / frame).max(scale.least).min(4096);
            figures.push(bench.of_card_memory(frame, count)?);
        }
    }
    Ok(figures)
}

struct Bench {
    sim: Arc<SimCard>,
    slot: Slot,
    gbps: u32,
}

impl Bench {
    fn new(project: &Project, opened: &Opened, gbps: u32) -> Result<Self> {
        let Some(sim) = &opened.sim else {
            return Err(Failure::Run("the card is not simulated here".into()));
        };
        let slot = opened.card.any_slot()?;
        slot.load(&image(project, opened, &project.load(APP)?)?)?;
        Ok(Self { sim: Arc::clone(&sim.function), slot, gbps })
    }

    fn route(&self, source: Port, sink: Port) -> Result<Route> {
        Ok(self.slot.card().route(source, sink)?)
    }

    fn stream(&self) -> Port {
        Port::Stream { slot: self.slot.index(), stream: 0 }
    }

    /// Frames that come back to back, pass the app, and leave.
    fn through(&self, frame: usize, count: usize) -> Result<Figure> {
        let size = frame - FCS;
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let sink = Sink { expected: Frames::new(size, count), arrived: Arc::clone(&arrived) };
        let Some(line) = self.sim.line(Source(Frames::new(size, count)), sink) else {
            return Err(Failure::Run("the card has no Ethernet port".into()));
        };
        let board = Port::Board(FunctionKind::Net);
        let out = self.route(self.stream(), board)?;
        let dropped = self.dropped();
        let into = self.route(board, self.stream())?;
        self.run_until(|| arrived.lock().unwrap_or_else(PoisonError::into_inner).frames == count)?;
        drop((line, into, out));
        let what = format!("{frame} B frames through {APP}, {} Gb/s", self.gbps);
        self.figure(what, frame, count, &arrived, self.dropped() != dropped, "both directions")
    }

    /// Frames in card memory that are sent by a command each.
    fn of_card_memory(&self, frame: usize, count: usize) -> Result<Figure> {
        let size = frame - FCS;
        let stride = (size as u64).next_multiple_of(64);
        let len = (stride * count as u64).next_multiple_of(PAGE);
        let mut data = vec![0; len as usize];
        let mut frames = Frames::new(size, count);
        for place in data.chunks_mut(stride as usize) {
            let Some(frame) = frames.next() else { break };
            place[..size].copy_from_slice(&frame);
        }
        StreamJob::new(&self.slot)
            .input(0, Endpoint::bytes("frames", SharedBytes::new(data)))
            .output(0, Endpoint::Card { addr: CARD, len }, OutLength::Same)
            .run()?;
        let pages = (0..len).step_by(PAGE as usize);
        let map = |at| Command::map(FRAMES + at, Place::Card(CARD + at), Prot::READ, false);
        self.finish(&pages.clone().map(map).collect::<Vec<_>>())?;

        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let sink = Sink { expected: Frames::new(size, count), arrived: Arc::clone(&arrived) };
        let Some(line) = self.sim.line(Source(Frames::new(size, 0)), sink) else {
            return Err(Failure::Run("the card has no Ethernet port".into()));
        };
        let dropped = self.dropped();
        let out = self.route(self.stream(), Port::Board(FunctionKind::Net))?;
        let mut under_way: VecDeque<Vec<Tag>> = VecDeque::new();
        for k in 0..count as u64 {
            if under_way.len() == AHEAD {
                self.wait(under_way.pop_front())?;
            }
            let command = Command::move_in(0, FRAMES + k * stride, size as u32, true);
            under_way.push_back(self.slot.submit(&[command])?);
        }
        while !under_way.is_empty() {
            self.wait(under_way.pop_front())?;
        }
        self.run_until(|| arrived.lock().unwrap_or_else(PoisonError::into_inner).frames == count)?;
        drop((line, out));
        self.finish(&pages.map(|at| Command::unmap(FRAMES + at, false)).collect::<Vec<_>>())?;
        let what = format!("{frame} B frames from card memory, {} Gb/s", self.gbps);
        self.figure(what, frame, count, &arrived, self.dropped() != dropped, "a command each")
    }

    fn figure(
        &self,
        what: String,
        frame: usize,
        count: usize,
        arrived: &Mutex<Arrived>,
        dropped: bool,
        how: &str,
    ) -> Result<Figure> {
        let arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
        if arrived.wrong || arrived.frames != count || dropped {
            return wrong(&what);
        }
        // From the end of the first frame to that of the last one.
        let ns = (arrived.last - arrived.first).as_nanos() as f64;
        let gbps = |bytes: usize| ((count - 1) * bytes * 8) as f64 / ns;
        let share = gbps(frame + AROUND) / f64::from(self.gbps);
        Ok(Figure {
            what,
            value: gbps(frame - FCS),
            unit: "Gb/s",
            note: format!("{share:.4} of the line's payload limit, {count} frames, {how}"),
        })
    }

    /// Frames that the port has dropped so far.
    fn dropped(&self) -> u64 {
        let counters = self.sim.function_counters(NET).unwrap_or_default();
        counters.rx_drops + counters.tx_drops
    }

    /// Runs the card until `over`, or until nothing happens any more.
    fn run_until(&self, over: impl Fn() -> bool) -> Result {
        const STEP: u64 = 4096;
        let mut left = LIMIT;
        while !over() && left > 0 && self.sim.run(STEP) > 0 {
            left -= STEP;
        }
        Ok(())
    }

    fn wait(&self, tags: Option<Vec<Tag>>) -> Result {
        super::wait(&self.slot, &tags.unwrap_or_default(), "moves of frames")
    }

    fn finish(&self, commands: &[Command]) -> Result {
        for some in commands.chunks(64) {
            self.wait(Some(self.slot.submit(some)?))?;
        }
        Ok(())
    }
}
