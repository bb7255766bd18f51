// SPDX-License-Identifier: Apache-2.0
//! A run that sends files through the streams of an app.
//!
//! Each route has one buffer that is mapped into the slot's address space once and used as a ring of chunks. Input is
//! read from the page cache directly into a chunk, which the card moves in; chunks that the card has filled are written
//! in place. Several chunks of every route are in flight, so that file accesses and the card overlap.
//!
//! A route to a stream (a pipe, say) has a thread that moves the bytes between the stream and the ring, see
//! [`crate::job::flow`]: the ring is then one of bytes, and available bytes are sent immediately.
//!
//! One run is one message per stream: its end (`last`) comes with the final byte of the file.
//!
//! A stream that leads to the board's Ethernet port has no buffer: it has a route on the card, see [`crate::job::ethernet`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::card::{Port, Route};
use crate::dispatch::{Stall, State, Tag};
use crate::error::{Error, Result};
use crate::job::endpoint::{Endpoint, In, Out, check_distinct};
use crate::job::ethernet::{Ethernet, serve, wait_for_output};
use crate::job::flow::Flow;
use crate::protocol::desc::{CPL_LAST, Command, Completion, Prot};
use crate::slot::several::{Waits, wait_for_any};
use crate::slot::window::Window;
use crate::slot::{ASK_STOP, Slot, StopIf, check_stop};

/// Bytes in a chunk unless told otherwise.
const CHUNK: u64 = 1 << 20;
/// Chunks in flight on every route.
const WINDOW: u64 = 4;
/// The same for a stream: output waits for a full chunk, and no pipe holds more.
const STREAM_CHUNK: u64 = 64 << 10;

/// Length of an app's output, from its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutLength {
    /// As many bytes as the input stream of the same number got (the first input, if there is none of that number).
    Same,
    /// This many bytes per message.
    Message(u64),
    /// Any number; the app ends the message.
    Any,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes the app has accepted.
    pub bytes_in: u64,
    /// Bytes of all inputs together; 0 if unknown, because one is a stream that has not ended.
    pub total_in: u64,
    /// Bytes the app has produced.
    pub bytes_out: u64,
    /// Cycles since the first command.
    pub cycles: u64,
}

/// Results of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReport {
    /// Bytes sent into the app; frames of Ethernet are not counted.
    pub bytes_in: u64,
    /// Bytes the app produced; frames of Ethernet are not counted.
    pub bytes_out: u64,
    /// Card time from the first command to the last completion, in cycles. 0 if there was nothing to send.
    pub cycles: u64,
}

/// A run: routes and options.
pub struct StreamJob<'a> {
    slot: &'a Slot,
    /// Slots of further apps, each of which gets what the one before gives.
    then: Vec<&'a Slot>,
    inputs: Vec<(u8, Endpoint)>,
    outputs: Vec<(u8, Endpoint, OutLength)>,
    chunk: u64,
    durable: bool,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
    stop: Option<StopIf<'a>>,
}

impl<'a> StreamJob<'a> {
    /// A run without routes on a slot that holds a started app.
    pub fn new(slot: &'a Slot) -> Self {
        Self {
            slot,
            then: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            chunk: CHUNK,
            durable: false,
            progress: None,
            stop: None,
        }
    }

    /// Sends what the app gives on output stream 0 on to input stream 0 of the app in `slot`, on the card
    /// ([`Card::route`](crate::Card::route)), and so on for further calls. Inputs are then those of the first app, outputs
    /// those of the last one; an output of [`OutLength::Same`] has the length of the first input, and no input may be empty.
    /// The other streams of these apps have no routes.
    pub fn then(mut self, slot: &'a Slot) -> Self {
        self.then.push(slot);
        self
    }

    /// Routes an endpoint to input stream `port` (from 0).
    pub fn input(mut self, port: u8, from: Endpoint) -> Self {
        self.inputs.push((port, from));
        self
    }

    /// Routes output stream `port` (from 0) to an endpoint.
    pub fn output(mut self, port: u8, to: Endpoint, length: OutLength) -> Self {
        self.outputs.push((port, to, length));
        self
    }

    /// Bytes moved by one command; rounded up to whole pages, at most 1 GiB, for a stream at most 64 KiB.
    pub fn chunk_bytes(mut self, bytes: u64) -> Self {
        self.chunk = bytes.clamp(1, 1 << 30).next_multiple_of(4096);
        self
    }

    /// Also waits until output files are on stable storage.
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Calls `tell` whenever some chunks are done.
    pub fn on_progress(mut self, tell: impl FnMut(Progress) + 'a) -> Self {
        self.progress = Some(Box::new(tell));
        self
    }

    /// Calls `stop` about ten times a second, and whenever some chunks are done; `true` ends the run with [`Error::Stopped`], or without an
    /// error if all of its streams lead to Ethernet.
    pub fn stop_if(mut self, stop: impl FnMut() -> bool + 'a) -> Self {
        self.stop = Some(Box::new(stop));
        self
    }

    /// Runs to the end of all outputs.
    ///
    /// Waiting for the other end of a stream has no time-out. An output file is
    /// truncated when the run begins or, if an input is a stream, when the first bytes for it arrive.
    ///
    /// If all inputs are empty and every output has the length of its input, the outputs are empty, without use of the card;
    /// for any other app an empty input is [`Error::EmptyInput`], since a stream without a beat cannot carry an end.
    ///
    /// A stream that leads to Ethernet ([`Endpoint::Ethernet`]) has a route on the card while the run lasts. If all streams do, the run lasts
    /// until `stop` of [`StreamJob::stop_if`] returns true; functions for progress are called about ten times a second. Otherwise it is
    /// one message on each stream as ever: an input takes frames until all outputs have ended, an output sends a frame.
    ///
    /// After an error the app has been reset, and output files hold the data written so far. The same if a function that the
    /// run calls panics.
    pub fn run(mut self) -> Result<JobReport> {
        let (slot, last) = (self.slot, self.then.last().copied().unwrap_or(self.slot));
        let _call = slot.call("stream job");
        slot.check()?;
        self.check_ports()?;
        let ethernet = self.take_ethernet()?;
        let sources = self.inputs.iter().map(|(_, e)| In::open(e)).collect::<Result<Vec<_>>>()?;
        let expected = self.expected(&sources)?;
        let sinks = self.outputs.iter().map(|(_, e, _)| Out::open(e)).collect::<Result<Vec<_>>>()?;
        check_distinct(&sources.iter().collect::<Vec<_>>(), &sinks.iter().collect::<Vec<_>>())?;
        for ((port, ..), (sink, limit)) in self.outputs.iter().zip(sinks.iter().zip(&expected)) {
            if let (Out::Card { len, .. }, Some(expected)) = (sink, limit) {
                if len < expected {
                    let why = "this is the size of its range of card memory";
                    return Err(Error::OutputTooLong { port: (*port).into(), limit: *len, why });
                }
            }
        }
        let streams = sources.iter().any(|source| source.known_len().is_none());
        if !self.then.is_empty() {
            self.check_chain(&sources, &ethernet)?;
        }
        if ethernet.is_used()
            && let Some(k) = sources.iter().position(|source| source.known_len() == Some(0))
        {
            return Err(Error::EmptyInput { port: self.inputs[k].0.into(), name: sources[k].name() });
        }
        if !sources.is_empty() && sources.iter().all(|source| source.known_len() == Some(0)) {
            sinks.into_iter().try_for_each(|sink| match sink {
                Out::Stream(pipe) => pipe.write_all(&[], &mut self.stop),
                sink => sink.begin().and_then(|()| sink.finish(0, self.durable)),
            })?;
            return Ok(JobReport { bytes_in: 0, bytes_out: 0, cycles: 0 });
        }

        let slots: Vec<&Slot> = std::iter::once(slot).chain(self.then.iter().copied()).collect();
        let mut run = Run {
            routes: chain(&slots)?,
            board: Vec::new(),
            ethernet,
            seen: vec![0; slots.len()],
            slots,
            feeds: Vec::new(),
            drains: Vec::new(),
            start: 0,
            now: 0,
            stop: self.stop,
            over: false,
        };
        for ((port, _), source) in self.inputs.iter().zip(sources) {
            run.feeds.push(Feed::open(slot, *port, source, self.chunk)?);
        }
        for ((port, _, length), (sink, expected)) in self.outputs.iter().zip(sinks.into_iter().zip(expected))
        {
            let mut drain = Drain::open(last, *port, sink, expected, self.chunk)?;
            if *length == OutLength::Same && expected.is_none() {
                let own = self.inputs.iter().position(|(input, _)| input == port);
                drain.same_as = Some(own.unwrap_or(0));
            }
            run.drains.push(drain);
        }
        // Not before: what fails up to here leaves an output file as it was.
        if !streams {
            run.drains.iter_mut().try_for_each(Drain::begin)?;
        }
        let sent = last.counters()?.beats_out;
        run.board = run.ethernet.connect(slot, last)?;
        run.go(self.progress.as_deref_mut()).map_err(|error| run.cause(error))?;
        if run.ethernet.sends() && !run.serves() && run.feeds.iter().any(|feed| feed.taken > 0) {
            wait_for_output(&run.slots, sent, &mut run.stop).map_err(|error| run.cause(error))?;
        }
        run.close(self.durable)
    }

    /// Takes streams that lead to Ethernet out of the lists. An output that is as long as an input of frames has any length.
    fn take_ethernet(&mut self) -> Result<Ethernet> {
        let frames = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Ethernet);
        let (inputs, outputs) = (&mut self.inputs, &mut self.outputs);
        let own = |port: u8| inputs.iter().find(|(input, _)| *input == port).or(inputs.first());
        for (port, _, length) in outputs.iter_mut() {
            if *length == OutLength::Same && own(*port).is_some_and(|(_, from)| frames(from)) {
                *length = OutLength::Any;
            }
        }
        let ins = inputs.iter().filter(|(_, from)| frames(from)).map(|(port, _)| *port).collect();
        let outs: Vec<u8> = outputs.iter().filter(|(_, to, _)| frames(to)).map(|(port, ..)| *port).collect();
        inputs.retain(|(_, from)| !frames(from));
        outputs.retain(|(_, to, _)| !frames(to));
        Ethernet::new(ins, &outs)
    }

    /// Checks what a run through several apps needs.
    fn check_chain(&self, sources: &[In], ethernet: &Ethernet) -> Result<()> {
        let mut slots = vec![self.slot];
        for slot in &self.then {
            if !Arc::ptr_eq(slot.card(), self.slot.card())
                || slots.iter().any(|other| other.index() == slot.index())
            {
                return Err(Error::Invalid("the apps of one run are in different slots of one card".into()));
            }
            slot.check()?;
            slots.push(slot);
        }
        if self.inputs.is_empty() && !ethernet.receives() || self.outputs.is_empty() && !ethernet.sends() {
            return Err(Error::Invalid("a run through several apps has an input and an output".into()));
        }
        match sources.iter().zip(&self.inputs).find(|(source, _)| source.known_len() == Some(0)) {
            Some((source, (port, _))) => Err(Error::EmptyInput { port: (*port).into(), name: source.name() }),
            None => Ok(()),
        }
    }

    fn check_ports(&self) -> Result<()> {
        let count = self.slot.card().info().streams;
        let inputs: Vec<u8> = self.inputs.iter().map(|(port, _)| *port).collect();
        let outputs: Vec<u8> = self.outputs.iter().map(|(port, ..)| *port).collect();
        for (direction, ports) in [("input", inputs), ("output", outputs)] {
            for (i, &port) in ports.iter().enumerate() {
                if usize::from(port) >= count {
                    return Err(Error::NoSuchPort { direction, port: port.into(), count });
                }
                if ports[..i].contains(&port) {
                    return Err(Error::PortTwice { direction, port: port.into() });
                }
            }
        }
        if self.inputs.is_empty() && self.outputs.is_empty() {
            return Err(Error::Invalid("the run has no route; give at least one input or output".into()));
        }
        Ok(())
    }

    /// Expected bytes of each output, as far as known. Empty inputs are refused where they cannot work.
    fn expected(&self, sources: &[In]) -> Result<Vec<Option<u64>>> {
        let ports = self.inputs.iter().map(|(port, _)| *port);
        let lens: Vec<(u8, Option<u64>)> = ports.zip(sources.iter().map(In::known_len)).collect();
        let all_same = self.outputs.iter().all(|(.., length)| *length == OutLength::Same);
        // A stream may turn out to be empty.
        let all_empty = lens.iter().all(|(_, len)| len.unwrap_or(0) == 0);
        if let Some(k) = lens.iter().position(|(_, len)| *len == Some(0) && !(all_same && all_empty)) {
            return Err(Error::EmptyInput { port: lens[k].0.into(), name: sources[k].name() });
        }
        self.outputs
            .iter()
            .map(|(port, _, length)| match length {
                OutLength::Any => Ok(None),
                OutLength::Message(0) => {
                    Err(Error::Invalid(format!("output {port}: 0 bytes per message are not possible")))
                }
                OutLength::Message(bytes) => Ok(Some(*bytes)),
                OutLength::Same => {
                    let own = lens.iter().find(|(p, _)| p == port).or(lens.first());
                    own.map(|(_, len)| *len).ok_or_else(|| {
                        Error::Invalid(format!(
                            "output {port} is as long as its input, but there is no input"
                        ))
                    })
                }
            })
            .collect()
    }
}

/// A route into the app.
struct Feed {
    port: u8,
    supply: Supply,
    window: Window,
    ring: u64, // bytes of the window used as a ring
    chunk: u64,
    beat: u64,
    sent: u64,
    taken: u64,
    flying: VecDeque<(Tag, u32)>,
}

/// Source of a feed's bytes.
enum Supply {
    /// Read when they are sent.
    Sized { source: In, len: u64 },
    /// Read by a thread: bytes so far, and whether these are all.
    Stream { flow: Flow, got: u64, all: bool },
}

/// A piece of the window to be sent.
struct Piece {
    offset: u64,
    bytes: u32,
    end: bool,
}

impl Feed {
    fn open(slot: &Slot, port: u8, source: In, chunk: u64) -> Result<Self> {
        let chunk = if matches!(source, In::Stream(_)) { chunk.min(STREAM_CHUNK) } else { chunk };
        let ring = chunk * WINDOW;
        let window = match source {
            In::Card { addr, len } => Window::card(slot, addr, len, Prot::READ)?,
            _ => Window::host(slot, ring_bytes(source.known_len().unwrap_or(u64::MAX), chunk), Prot::READ)?,
        };
        let supply = match (source, window.buffer()) {
            (In::Stream(pipe), Some(buffer)) => {
                let memory = Arc::clone(buffer.memory());
                Supply::Stream { flow: Flow::reading(pipe, memory, ring, slot.inner())?, got: 0, all: false }
            }
            (source, _) => Supply::Sized { len: source.known_len().unwrap_or(0), source },
        };
        let beat = slot.card().info().data_bytes as u64;
        Ok(Self { port, supply, window, ring, chunk, beat, sent: 0, taken: 0, flying: VecDeque::new() })
    }

    /// Total bytes, if known by now.
    fn total(&self) -> Option<u64> {
        match &self.supply {
            Supply::Sized { len, .. } => Some(*len),
            Supply::Stream { got, all, .. } => all.then_some(*got),
        }
    }

    fn name(&self) -> String {
        match &self.supply {
            Supply::Sized { source, .. } => source.name(),
            Supply::Stream { flow, .. } => flow.name().display().to_string(),
        }
    }

    /// Sends chunks until enough are in flight.
    fn fill(&mut self, slot: &Slot) -> Result<()> {
        if let Supply::Stream { flow, got, all } = &mut self.supply {
            (*got, *all) = flow.look()?;
        }
        while (self.flying.len() as u64) < WINDOW {
            let Some(Piece { offset, bytes, end }) = self.next()? else { return Ok(()) };
            let command = Command::move_in(self.port, self.window.va() + offset, bytes, end);
            self.flying.extend(slot.submit(&[command])?.into_iter().map(|tag| (tag, bytes)));
            self.sent += u64::from(bytes);
        }
        Ok(())
    }

    /// The next piece to send, if available.
    fn next(&self) -> Result<Option<Piece>> {
        let (bytes, end) = match &self.supply {
            Supply::Sized { len, .. } => {
                let bytes = self.chunk.min(len - self.sent);
                (bytes, self.sent + bytes == *len)
            }
            Supply::Stream { got, all, .. } => {
                let left = got - self.sent;
                // Whole beats; until the end is known one byte is held back, to be sent with it.
                let ready = if *all { left } else { left.saturating_sub(1) / self.beat * self.beat };
                let bytes = ready.min(self.chunk).min(self.ring - self.sent % self.ring);
                (bytes, *all && bytes == left)
            }
        };
        if bytes == 0 {
            return Ok(None);
        }
        let offset = match self.window.buffer() {
            Some(_) => self.sent % self.ring,
            None => self.sent,
        };
        if let (Supply::Sized { source, .. }, Some(buffer)) = (&self.supply, self.window.buffer()) {
            source.read(buffer, offset, bytes, self.sent)?;
        }
        Ok(Some(Piece { offset, bytes: bytes as u32, end }))
    }

    /// The app has accepted the oldest chunk.
    fn take(&mut self, bytes: u32) {
        self.taken += u64::from(bytes);
        if let Supply::Stream { flow, .. } = &self.supply {
            flow.advance(bytes.into());
        }
    }

    fn done(&self) -> bool {
        self.total() == Some(self.taken)
    }

    /// Whether it waits only for the other end of a stream.
    fn is_starved(&self) -> bool {
        matches!(self.supply, Supply::Stream { all: false, .. }) && self.flying.is_empty()
    }

    fn flow(&self) -> Option<&Flow> {
        match &self.supply {
            Supply::Stream { flow, .. } => Some(flow),
            Supply::Sized { .. } => None,
        }
    }

    /// Whether there is new data to send.
    fn has_news(&self) -> bool {
        (self.flying.len() as u64) < WINDOW && self.flow().is_some_and(Flow::has_news)
    }
}

/// A route out of the app.
struct Drain {
    port: u8,
    sink: Target,
    window: Window,
    ring: u64,
    chunk: u64,
    beat: u64,
    expected: Option<u64>,
    /// It has the length of this feed, which is unknown yet.
    same_as: Option<usize>,
    begun: bool,  // the sink has been emptied
    asked: u64,   // bytes requested by commands so far
    arrived: u64, // bytes the app has produced
    stored: u64,  // bytes in the sink
    flying: VecDeque<(Tag, u32)>,
    ended: bool,
}

/// Destination of a drain's bytes.
enum Target {
    /// Written when they arrive.
    Sink(Out),
    /// Written by a thread; whether it has written all.
    Stream { flow: Flow, over: bool },
}

impl Drain {
    fn open(slot: &Slot, port: u8, sink: Out, expected: Option<u64>, chunk: u64) -> Result<Self> {
        let chunk = if matches!(sink, Out::Stream(_)) { chunk.min(STREAM_CHUNK) } else { chunk };
        let ring = chunk * WINDOW;
        let window = match sink {
            Out::Card { addr, len } => Window::card(slot, addr, len, Prot::WRITE)?,
            _ => Window::host(slot, ring_bytes(expected.unwrap_or(u64::MAX), chunk), Prot::WRITE)?,
        };
        let sink = match (sink, window.buffer()) {
            (Out::Stream(pipe), Some(buffer)) => {
                let memory = Arc::clone(buffer.memory());
                Target::Stream { flow: Flow::writing(pipe, memory, ring, slot.inner())?, over: false }
            }
            (sink, _) => Target::Sink(sink),
        };
        let beat = slot.card().info().data_bytes as u64;
        Ok(Self {
            port,
            sink,
            window,
            ring,
            chunk,
            beat,
            expected,
            same_as: None,
            begun: false,
            asked: 0,
            arrived: 0,
            stored: 0,
            flying: VecDeque::new(),
            ended: false,
        })
    }

    /// Empties the sink, once.
    fn begin(&mut self) -> Result<()> {
        match &self.sink {
            Target::Sink(sink) if !std::mem::replace(&mut self.begun, true) => sink.begin(),
            _ => Ok(()),
        }
    }

    /// Total bytes that can be requested, whole beats.
    fn limit(&self) -> u64 {
        let expected = self.expected.map_or(u64::MAX, |bytes| bytes.next_multiple_of(self.beat));
        match self.sink {
            // The last beat of a range may be used in part: it is on a page of the range.
            Target::Sink(Out::Card { len, .. }) if self.expected.is_none_or(|bytes| bytes > len) => {
                expected.min(len / self.beat * self.beat)
            }
            _ => expected,
        }
    }

    /// Submits moves for chunks until enough are in flight.
    fn fill(&mut self, slot: &Slot) -> Result<()> {
        if let Target::Stream { flow, over } = &mut self.sink {
            (self.stored, *over) = flow.look()?;
        }
        let limit = self.limit();
        while !self.ended && (self.flying.len() as u64) < WINDOW && self.asked < limit {
            let bytes = self.chunk.min(limit - self.asked) as u32;
            // If a thread writes, its bytes must have left the ring.
            if self.asked + u64::from(bytes) - self.stored > self.ring && self.flow().is_some() {
                break;
            }
            let offset = self.offset(self.asked);
            let command = Command::move_out(self.port, self.window.va() + offset, bytes);
            self.flying.extend(slot.submit(&[command])?.into_iter().map(|tag| (tag, bytes)));
            self.asked += u64::from(bytes);
        }
        Ok(())
    }

    fn offset(&self, at: u64) -> u64 {
        match self.window.buffer() {
            Some(_) => at % self.ring,
            None => at,
        }
    }

    fn flow(&self) -> Option<&Flow> {
        match &self.sink {
            Target::Stream { flow, .. } => Some(flow),
            Target::Sink(_) => None,
        }
    }

    /// The app's message has ended, and a thread that writes it has written all.
    fn done(&self) -> bool {
        self.ended && !matches!(self.sink, Target::Stream { over: false, .. })
    }

    /// No more data arrives, and the app gets no more commands.
    fn end(&mut self) {
        self.ended = true;
        self.flow().into_iter().for_each(Flow::end);
    }

    /// Whether it waits only for the other end of a stream.
    fn is_clogged(&self) -> bool {
        // Commands submitted in advance remain when the app has ended its message: they are aborted when the run closes.
        self.flow().is_some() && (self.ended || self.flying.is_empty()) && !self.done()
    }

    /// The length of its input is now known: `total`; or it continues, and `sent` bytes of it were sent so far.
    fn learn(&mut self, total: Option<u64>, sent: u64) -> Result<()> {
        let port = self.port.into();
        let why = "as many as its input so far";
        match total {
            None if self.arrived > sent => return Err(Error::OutputTooLong { port, limit: sent, why }),
            None => return Ok(()),
            Some(total) if self.arrived > total => {
                return Err(Error::OutputTooLong { port, limit: total, why: PROMISED });
            }
            Some(total) if self.ended && self.arrived < total => {
                return Err(Error::OutputTooShort { port, bytes: self.arrived, expected: total });
            }
            Some(_) => {}
        }
        (self.same_as, self.expected) = (None, total);
        Ok(())
    }

    /// A chunk is complete.
    fn arrive(&mut self, bytes: u32, room: u32, last: bool) -> Result<()> {
        let port = usize::from(self.port);
        if bytes > room || bytes < room && !last {
            let why = format!("the card reports {bytes} bytes of {room} requested on output {port}");
            return Err(Error::BadCard(why));
        }
        self.arrived += u64::from(bytes);
        self.ended = last;
        match self.expected {
            Some(expected) if self.arrived > expected => {
                Err(Error::OutputTooLong { port, limit: expected, why: PROMISED })
            }
            Some(expected) if last && self.arrived < expected => {
                Err(Error::OutputTooShort { port, bytes: self.arrived, expected })
            }
            Some(expected) if !last && self.arrived == expected => {
                Err(Error::OutputTooLong { port, limit: expected, why: PROMISED })
            }
            None if !last && self.arrived >= self.limit() => {
                let why = "this is the size of its range of card memory";
                Err(Error::OutputTooLong { port, limit: self.arrived, why })
            }
            _ => Ok(()),
        }
    }

    /// Writes received data to the sink, or passes it to the thread.
    fn store(&mut self, bytes: u32) -> Result<()> {
        self.begin()?;
        let sink = match &self.sink {
            Target::Sink(sink) => sink,
            Target::Stream { flow, .. } => {
                flow.advance(bytes.into());
                if self.ended {
                    flow.end();
                }
                return Ok(());
            }
        };
        if let Some(buffer) = self.window.buffer() {
            sink.write(buffer, self.offset(self.stored), bytes.into(), self.stored)?;
        }
        self.stored += u64::from(bytes);
        Ok(())
    }
}

/// Reason of an output's length limit.
const PROMISED: &str = "its manifest promises no more";

/// The routes from each app to the next one.
fn chain(slots: &[&Slot]) -> Result<Vec<Route>> {
    let port = |slot: &Slot| Port::Stream { slot: slot.index(), stream: 0 };
    slots.windows(2).map(|pair| pair[0].card().route(port(pair[0]), port(pair[1]))).collect()
}

/// A run in progress. Dropped before its end, it resets the app, or all of them.
struct Run<'a, 'b> {
    /// Usually one; otherwise the first one has the inputs, the last one the outputs.
    slots: Vec<&'a Slot>,
    /// Between them.
    routes: Vec<Route>,
    /// Streams that lead to Ethernet, and their routes.
    ethernet: Ethernet,
    board: Vec<Route>,
    /// Activity of those that are neither first nor last, as it was last looked at.
    seen: Vec<u64>,
    feeds: Vec<Feed>,
    drains: Vec<Drain>,
    start: u64,
    now: u64,
    stop: Option<StopIf<'b>>,
    over: bool,
}

/// A completed chunk: the number of the route and the completion of its oldest chunk.
type Ended = Vec<(usize, Completion)>;

impl<'a> Run<'a, '_> {
    fn first(&self) -> &'a Slot {
        self.slots[0]
    }

    fn last(&self) -> &'a Slot {
        self.slots[self.slots.len() - 1]
    }

    /// Whether it has no end of its own: all of its data pass on the card.
    fn serves(&self) -> bool {
        self.ethernet.is_used() && self.feeds.is_empty() && self.drains.is_empty()
    }

    fn go(&mut self, mut progress: Option<&mut (dyn FnMut(Progress) + '_)>) -> Result<()> {
        let (first, last) = (self.first(), self.last());
        self.start = first.card().time()?;
        self.now = self.start;
        if self.serves() {
            let cycles = || first.card().time().map_or(0, |now| now.saturating_sub(self.start));
            serve(&self.slots, &mut self.stop, || {
                if let Some(tell) = &mut progress {
                    tell(Progress { bytes_in: 0, total_in: 0, bytes_out: 0, cycles: cycles() });
                }
            })?;
            self.now = first.card().time()?;
            return Ok(());
        }
        loop {
            for drain in &mut self.drains {
                drain.fill(last)?;
            }
            for feed in &mut self.feeds {
                feed.fill(first)?;
            }
            self.learn()?;
            if self.nothing_came()? {
                self.drains.iter_mut().for_each(Drain::end);
            }
            if self.feeds.iter().all(Feed::done) && self.drains.iter().all(Drain::done) {
                return Ok(());
            }
            let (taken, arrived) = self.wait()?;
            for (route, done) in taken {
                let feed = &mut self.feeds[route];
                let Some((_, bytes)) = feed.flying.pop_front() else { continue };
                first.inner().rings.check(&format!("moving data into input {}", feed.port), &done)?;
                feed.take(bytes);
                self.now = self.now.max(done.time);
            }
            // The card gets its next input before its output is written.
            for feed in &mut self.feeds {
                feed.fill(first)?;
            }
            for (route, done) in arrived {
                let drain = &mut self.drains[route];
                let Some((_, room)) = drain.flying.pop_front() else { continue };
                last.inner().rings.check(&format!("taking data from output {}", drain.port), &done)?;
                self.now = self.now.max(done.time);
                // Received data is kept even if it is too long or too short.
                let fits = drain.arrive(done.bytes, room, done.has(CPL_LAST));
                if done.bytes <= room {
                    drain.store(done.bytes)?;
                }
                fits?;
                drain.fill(last)?;
            }
            if let Some(tell) = &mut progress {
                let totals = self.feeds.iter().map(Feed::total);
                tell(Progress {
                    bytes_in: self.feeds.iter().map(|feed| feed.taken).sum(),
                    total_in: totals.sum::<Option<u64>>().unwrap_or(0),
                    bytes_out: self.drains.iter().map(|drain| drain.arrived).sum(),
                    cycles: self.now - self.start,
                });
            }
            check_stop(&mut self.stop)?;
        }
    }

    /// What has caused an error: if an app of several was isolated, the others have only met the consequences.
    fn cause(&self, error: Error) -> Error {
        let isolated = |slot: &&Slot| match slot.check() {
            Err(isolated) if matches!(isolated, Error::Isolated { .. }) && !isolated.by_reset() => {
                Some(isolated)
            }
            _ => None,
        };
        match self.slots.len() {
            1 => error,
            _ => self.slots.iter().find_map(isolated).unwrap_or(error),
        }
    }

    /// Updates outputs that have the length of a stream.
    fn learn(&mut self) -> Result<()> {
        for drain in &mut self.drains {
            if let Some(feed) = drain.same_as.and_then(|feed| self.feeds.get(feed)) {
                drain.learn(feed.total(), feed.sent)?;
            }
        }
        Ok(())
    }

    /// Whether all inputs were empty, which is allowed if all outputs are to be empty. One empty input alone is an error: the
    /// app cannot be notified of it.
    fn nothing_came(&self) -> Result<bool> {
        let Some(empty) = self.feeds.iter().find(|feed| feed.total() == Some(0)) else { return Ok(false) };
        if self.slots.len() > 1 {
            return Err(Error::EmptyInput { port: empty.port.into(), name: empty.name() });
        }
        let none_more =
            self.feeds.iter().all(|feed| feed.sent == 0 && feed.total().is_none_or(|all| all == 0));
        if !none_more || !self.drains.iter().all(|drain| drain.expected == Some(0) || drain.same_as.is_some())
        {
            return Err(Error::EmptyInput { port: empty.port.into(), name: empty.name() });
        }
        Ok(self.feeds.iter().all(|feed| feed.total() == Some(0)))
    }

    /// Description of the wait, with the position of each stream.
    fn waiting(&self) -> String {
        let mut what = match self.slots.as_slice() {
            [_] => "waiting for the app's streams".to_string(),
            slots => {
                let slots: Vec<String> = slots.iter().map(|slot| slot.index().to_string()).collect();
                format!("waiting for the streams of the apps in slots {}", slots.join(", "))
            }
        };
        for feed in &self.feeds {
            let of = feed.total().map_or_else(String::new, |total| format!(" of {total}"));
            what += &format!(", input {} took {}{of} bytes", feed.port, feed.taken);
        }
        for drain in &self.drains {
            what += &format!(", output {} gave {} bytes", drain.port, drain.arrived);
        }
        what
    }

    /// Waits until the oldest chunk of a route is complete, or a stream has changed. Takes at most one of each route.
    fn wait(&mut self) -> Result<(Ended, Ended)> {
        let fronts = |queue: &VecDeque<(Tag, u32)>| queue.front().map(|(tag, _)| *tag);
        let (feeds, drains) = (&self.feeds, &self.drains);
        feeds
            .iter()
            .filter_map(Feed::flow)
            .chain(drains.iter().filter_map(Drain::flow))
            .for_each(Flow::watch);
        let outside = feeds.iter().any(Feed::is_starved)
            || drains.iter().any(Drain::is_clogged)
            || self.ethernet.receives();
        let what = self.waiting();
        let last = self.slots.len() - 1;
        // What is new at the app with this index.
        let look = |index: usize, st: &mut State| {
            let mut take = |route: usize, tag: Option<Tag>| Some((route, st.take_one(tag?)?));
            let taken: Ended = feeds
                .iter()
                .enumerate()
                .filter(|_| index == 0)
                .filter_map(|(route, feed)| take(route, fronts(&feed.flying)))
                .collect();
            let arrived: Ended = drains
                .iter()
                .enumerate()
                .filter(|(_, drain)| index == last && !drain.ended)
                .filter_map(|(route, drain)| take(route, fronts(&drain.flying)))
                .collect();
            let news = || {
                feeds.iter().any(Feed::has_news) || drains.iter().filter_map(Drain::flow).any(Flow::has_news)
            };
            (!taken.is_empty() || !arrived.is_empty() || news()).then_some((taken, arrived))
        };
        if last == 0 {
            return self.slots[0].wait_unless_stopped(&what, outside, &mut self.stop, |st| look(0, st));
        }
        let mut waits = Waits::new(&self.slots, Stall::OfAll);
        waits.outside(outside);
        loop {
            let end = self.stop.is_some().then(|| Instant::now() + ASK_STOP);
            let seen = &mut self.seen;
            let found = wait_for_any(&self.slots, &mut waits, &what, end, |index, st| {
                // Of an app in between there is nothing to be collected, but perhaps it has broken a rule.
                let stirs = index != 0
                    && index != last
                    && std::mem::replace(&mut seen[index], st.activity) != st.activity;
                Ok(look(index, st).or_else(|| stirs.then(Default::default)))
            })?;
            if let Some((taken, arrived)) = found {
                if taken.is_empty() && arrived.is_empty() {
                    self.slots[1..last].iter().try_for_each(|slot| slot.check())?;
                }
                return Ok((taken, arrived));
            }
            check_stop(&mut self.stop)?;
            self.slots[0].card().check_process()?;
        }
    }

    /// After success: commands without data are ended, windows removed, files checked.
    fn close(mut self, durable: bool) -> Result<JobReport> {
        // The card ends a message that an app did not end, since it was isolated or reset, and its routes: what came of it is not the
        // result.
        if self.slots.len() > 1 {
            self.slots.iter().try_for_each(|slot| slot.check())?;
            for route in &self.routes {
                if !route.is_in_effect()? {
                    let ends = format!("from {} to {}", route.source(), route.sink());
                    return Err(Error::Invalid(format!(
                        "the route {ends} has ended during the run: an app was reset"
                    )));
                }
            }
        }
        // Before commands are ended, which takes a route from an output of any length.
        for route in std::mem::take(&mut self.board) {
            if !route.is_in_effect()? {
                let ends = format!("from {} to {}", route.source(), route.sink());
                return Err(Error::Invalid(format!("the route {ends} has ended during the run")));
            }
            let slot = if matches!(route.sink(), Port::Board(_)) { self.last() } else { self.first() };
            // What has not ended would be at the beginning of the next run.
            if !route.end()? {
                slot.reset()?;
            }
        }
        let left: Vec<Tag> =
            self.drains.iter_mut().flat_map(|drain| drain.flying.drain(..)).map(|(tag, _)| tag).collect();
        if !left.is_empty() {
            self.last().abort_moves(&left)?;
        }
        for (route, ends) in std::mem::take(&mut self.routes).into_iter().zip(self.slots.windows(2)) {
            // An app that has not taken all of its message would do so in the next run.
            if !route.end()? {
                ends.iter().try_for_each(|slot| slot.reset())?;
            }
        }
        self.over = true;
        let mut report = JobReport { bytes_in: 0, bytes_out: 0, cycles: self.now - self.start };
        for feed in std::mem::take(&mut self.feeds) {
            report.bytes_in += feed.taken;
            feed.window.close()?;
        }
        for mut drain in std::mem::take(&mut self.drains) {
            report.bytes_out += drain.arrived;
            drain.begin()?;
            drain.window.close()?;
            if let Target::Sink(sink) = drain.sink {
                sink.finish(drain.stored, durable)?;
            }
        }
        Ok(report)
    }
}

impl Drop for Run<'_, '_> {
    fn drop(&mut self) {
        if self.over || !self.first().card().is_ours() {
            return;
        }
        for (index, slot) in self.slots.iter().enumerate() {
            let feeds = self.feeds.iter().filter(|_| index == 0).flat_map(|feed| &feed.flying);
            let drains =
                self.drains.iter().filter(|_| index + 1 == self.slots.len()).flat_map(|drain| &drain.flying);
            let tags: Vec<Tag> = feeds.chain(drains).map(|(tag, _)| *tag).collect();
            abandon(slot, &tags);
        }
    }
}

/// After an error: the run is stopped, and its commands are abandoned.
pub(crate) fn abandon(slot: &Slot, tags: &[Tag]) {
    if let Err(error) = slot.reset() {
        error.log_unclean(slot.index(), "the slot could not be reset after a failed run");
    }
    slot.inner().rings.abandon(tags);
}

/// Bytes of the buffer of a route that carries `len` bytes.
fn ring_bytes(len: u64, chunk: u64) -> u64 {
    len.min(chunk * WINDOW)
}
