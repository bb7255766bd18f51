// SPDX-License-Identifier: Apache-2.0
//! A run that sends files through the streams of an app.
//!
//! Each route has one buffer that is mapped into the slot's address space once and used as a ring of chunks. Input is
//! read from the page cache straight into a chunk and the card told to move it in; chunks that the card has filled are
//! written from where they lie. Several chunks of every route are in flight, so that files and card work at once.
//!
//! One run is one message per stream: its end (`last`) comes with the final byte of the file.

use std::collections::VecDeque;

use crate::desc::{CPL_LAST, Command, Completion, Prot};
use crate::dispatch::Tag;
use crate::endpoint::{Endpoint, In, Out, check_distinct};
use crate::error::{Error, Result};
use crate::slot::Slot;
use crate::window::Window;

/// Bytes in a chunk unless told otherwise.
const CHUNK: u64 = 1 << 20;
/// Chunks in flight on every route.
const WINDOW: u64 = 4;

/// How much an app answers, as its manifest says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutLength {
    /// As many bytes as the input stream of the same number got (the first input, if there is none of that number).
    Same,
    /// This many bytes a message.
    Message(u64),
    /// Any number; the app ends the message.
    Any,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes the app has taken.
    pub bytes_in: u64,
    /// Bytes of all inputs together.
    pub total_in: u64,
    /// Bytes the app has given.
    pub bytes_out: u64,
    /// Cycles since the first command.
    pub cycles: u64,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReport {
    /// Bytes sent into the app.
    pub bytes_in: u64,
    /// Bytes the app gave.
    pub bytes_out: u64,
    /// Card time from the first command to the last completion, in cycles. 0 if nothing had to be sent.
    pub cycles: u64,
}

/// A run: routes and how to go about them.
pub struct StreamJob<'a> {
    slot: &'a Slot,
    inputs: Vec<(u8, Endpoint)>,
    outputs: Vec<(u8, Endpoint, OutLength)>,
    chunk: u64,
    durable: bool,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
}

impl<'a> StreamJob<'a> {
    /// A run without routes on a slot that holds a started app.
    pub fn new(slot: &'a Slot) -> Self {
        Self { slot, inputs: Vec::new(), outputs: Vec::new(), chunk: CHUNK, durable: false, progress: None }
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

    /// Bytes moved by one command; rounded up to whole pages, at most 1 GiB.
    pub fn chunk_bytes(mut self, bytes: u64) -> Self {
        self.chunk = bytes.clamp(1, 1 << 30).next_multiple_of(4096);
        self
    }

    /// Also waits until output files are on their medium.
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Calls `tell` whenever some chunks are done.
    pub fn on_progress(mut self, tell: impl FnMut(Progress) + 'a) -> Self {
        self.progress = Some(Box::new(tell));
        self
    }

    /// Runs to the end of all outputs.
    ///
    /// Inputs that are all empty give empty outputs without a word to the card if every output has the length of its input;
    /// for any other app an empty input is [`Error::EmptyInput`], since a stream without a beat cannot carry an end.
    ///
    /// After an error the app has been reset, and output files hold what was written so far.
    pub fn run(mut self) -> Result<JobReport> {
        let slot = self.slot;
        slot.check()?;
        self.check_ports()?;
        let sources = self.inputs.iter().map(|(_, e)| In::open(e)).collect::<Result<Vec<_>>>()?;
        let expected = self.expected(&sources)?;
        let sinks = self.outputs.iter().map(|(_, e, _)| Out::open(e)).collect::<Result<Vec<_>>>()?;
        check_distinct(&sources.iter().collect::<Vec<_>>(), &sinks.iter().collect::<Vec<_>>())?;
        for ((port, ..), (sink, limit)) in self.outputs.iter().zip(sinks.iter().zip(&expected)) {
            if let (Out::Card { len, .. }, Some(expected)) = (sink, limit) {
                if len < expected {
                    let why = "that is the range of card memory given for it";
                    return Err(Error::OutputTooLong { port: (*port).into(), limit: *len, why });
                }
            }
        }
        sinks.iter().try_for_each(Out::begin)?;
        if sources.iter().all(|source| source.len() == 0) && !sources.is_empty() {
            sinks.iter().try_for_each(|sink| sink.finish(0, self.durable))?;
            return Ok(JobReport { bytes_in: 0, bytes_out: 0, cycles: 0 });
        }

        let mut feeds = Vec::new();
        for ((port, _), source) in self.inputs.iter().zip(sources) {
            feeds.push(Feed::open(slot, *port, source, self.chunk)?);
        }
        let mut drains = Vec::new();
        for ((port, ..), (sink, expected)) in self.outputs.iter().zip(sinks.into_iter().zip(expected)) {
            drains.push(Drain::open(slot, *port, sink, expected, self.chunk)?);
        }
        let mut run = Run { slot, feeds, drains, start: 0, now: 0 };
        match run.go(self.progress.as_deref_mut()) {
            Ok(()) => run.close(self.durable),
            Err(error) => {
                run.abandon();
                Err(error)
            }
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

    /// Bytes to expect on each output. Empty inputs are refused where they cannot work.
    fn expected(&self, sources: &[In]) -> Result<Vec<Option<u64>>> {
        let ports = self.inputs.iter().map(|(port, _)| *port);
        let lens: Vec<(u8, u64)> = ports.zip(sources.iter().map(In::len)).collect();
        let all_same = self.outputs.iter().all(|(.., length)| *length == OutLength::Same);
        let all_empty = lens.iter().all(|(_, len)| *len == 0);
        if let Some(k) = lens.iter().position(|(_, len)| *len == 0 && !(all_same && all_empty)) {
            return Err(Error::EmptyInput { port: lens[k].0.into(), name: sources[k].name() });
        }
        self.outputs
            .iter()
            .map(|(port, _, length)| match length {
                OutLength::Any => Ok(None),
                OutLength::Message(0) => {
                    Err(Error::Invalid(format!("output {port} is to have 0 bytes a message; that cannot be")))
                }
                OutLength::Message(bytes) => Ok(Some(*bytes)),
                OutLength::Same => {
                    let own = lens.iter().find(|(p, _)| p == port).or(lens.first());
                    own.map(|(_, len)| Some(*len)).ok_or_else(|| {
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
    source: In,
    window: Window,
    chunk: u64,
    sent: u64,
    taken: u64,
    flying: VecDeque<(Tag, u32)>,
}

impl Feed {
    fn open(slot: &Slot, port: u8, source: In, chunk: u64) -> Result<Self> {
        let window = match source {
            In::Card { addr, len } => Window::card(slot, addr, len, Prot::READ)?,
            _ => Window::host(slot, ring_bytes(source.len(), chunk), Prot::READ)?,
        };
        Ok(Self { port, source, window, chunk, sent: 0, taken: 0, flying: VecDeque::new() })
    }

    /// Sends chunks until enough are in flight.
    fn fill(&mut self, slot: &Slot) -> Result<()> {
        let len = self.source.len();
        while (self.flying.len() as u64) < WINDOW && self.sent < len {
            let bytes = self.chunk.min(len - self.sent) as u32;
            let offset = match self.window.buffer() {
                Some(_) => self.sent % (self.chunk * WINDOW),
                None => self.sent,
            };
            if let Some(buffer) = self.window.buffer() {
                self.source.read(buffer, offset, bytes.into(), self.sent)?;
            }
            let end = self.sent + u64::from(bytes) == len;
            let command = Command::move_in(self.port, self.window.va() + offset, bytes, end);
            self.flying.extend(slot.submit(&[command])?.into_iter().map(|tag| (tag, bytes)));
            self.sent += u64::from(bytes);
        }
        Ok(())
    }

    fn done(&self) -> bool {
        self.taken == self.source.len()
    }
}

/// A route out of the app.
struct Drain {
    port: u8,
    sink: Out,
    window: Window,
    chunk: u64,
    beat: u64,
    expected: Option<u64>,
    asked: u64,   // bytes that the commands so far have room for
    arrived: u64, // bytes the app has given
    stored: u64,  // bytes in the sink
    flying: VecDeque<(Tag, u32)>,
    ended: bool,
}

impl Drain {
    fn open(slot: &Slot, port: u8, sink: Out, expected: Option<u64>, chunk: u64) -> Result<Self> {
        let window = match sink {
            Out::Card { addr, len } => Window::card(slot, addr, len, Prot::WRITE)?,
            _ => Window::host(slot, ring_bytes(expected.unwrap_or(u64::MAX), chunk), Prot::WRITE)?,
        };
        let beat = slot.card().info().data_bytes as u64;
        let flying = VecDeque::new();
        Ok(Self {
            port,
            sink,
            window,
            chunk,
            beat,
            expected,
            asked: 0,
            arrived: 0,
            stored: 0,
            flying,
            ended: false,
        })
    }

    /// Bytes that can be asked for in all, whole beats.
    fn limit(&self) -> u64 {
        let expected = self.expected.map_or(u64::MAX, |bytes| bytes.next_multiple_of(self.beat));
        match self.sink {
            Out::Card { len, .. } => expected.min(len / self.beat * self.beat),
            _ => expected,
        }
    }

    /// Asks for chunks until enough are in flight.
    fn fill(&mut self, slot: &Slot) -> Result<()> {
        let limit = self.limit();
        while !self.ended && (self.flying.len() as u64) < WINDOW && self.asked < limit {
            let bytes = self.chunk.min(limit - self.asked) as u32;
            let offset = self.offset(self.asked);
            let command = Command::move_out(self.port, self.window.va() + offset, bytes);
            self.flying.extend(slot.submit(&[command])?.into_iter().map(|tag| (tag, bytes)));
            self.asked += u64::from(bytes);
        }
        Ok(())
    }

    fn offset(&self, at: u64) -> u64 {
        match self.window.buffer() {
            Some(_) => at % (self.chunk * WINDOW),
            None => at,
        }
    }

    /// A chunk is complete.
    fn arrive(&mut self, bytes: u32, room: u32, last: bool) -> Result<()> {
        let port = usize::from(self.port);
        if bytes > room || bytes < room && !last {
            let why = format!("the card reports {bytes} bytes of {room} asked for on output {port}");
            return Err(Error::BadCard(why));
        }
        self.arrived += u64::from(bytes);
        self.ended = last;
        match self.expected {
            Some(expected) if self.arrived > expected => {
                Err(Error::OutputTooLong { port, limit: expected, why: "its manifest promises no more" })
            }
            Some(expected) if last && self.arrived < expected => {
                Err(Error::OutputTooShort { port, bytes: self.arrived, expected })
            }
            Some(expected) if !last && self.arrived == expected => {
                Err(Error::OutputTooLong { port, limit: expected, why: "its manifest promises no more" })
            }
            None if !last && self.arrived >= self.limit() => {
                let why = "that is the range of card memory given for it";
                Err(Error::OutputTooLong { port, limit: self.arrived, why })
            }
            _ => Ok(()),
        }
    }

    /// Writes what has arrived to the sink.
    fn store(&mut self, bytes: u32) -> Result<()> {
        if let Some(buffer) = self.window.buffer() {
            self.sink.write(buffer, self.offset(self.stored), bytes.into(), self.stored)?;
        }
        self.stored += u64::from(bytes);
        Ok(())
    }
}

/// A run under way.
struct Run<'a> {
    slot: &'a Slot,
    feeds: Vec<Feed>,
    drains: Vec<Drain>,
    start: u64,
    now: u64,
}

/// What has completed: the number of the route and the completion of its oldest chunk.
type Ended = Vec<(usize, Completion)>;

impl Run<'_> {
    fn go(&mut self, mut progress: Option<&mut (dyn FnMut(Progress) + '_)>) -> Result<()> {
        self.start = self.slot.card().time()?;
        self.now = self.start;
        for drain in &mut self.drains {
            drain.fill(self.slot)?;
        }
        loop {
            for feed in &mut self.feeds {
                feed.fill(self.slot)?;
            }
            if self.feeds.iter().all(Feed::done) && self.drains.iter().all(|drain| drain.ended) {
                return Ok(());
            }
            let (taken, arrived) = self.wait()?;
            for (route, done) in taken {
                let feed = &mut self.feeds[route];
                let Some((_, bytes)) = feed.flying.pop_front() else { continue };
                self.slot.inner().rings.check(&format!("moving data into input {}", feed.port), &done)?;
                feed.taken += u64::from(bytes);
                self.now = self.now.max(done.time);
            }
            // The card gets its next input before what it gave is written.
            for feed in &mut self.feeds {
                feed.fill(self.slot)?;
            }
            for (route, done) in arrived {
                let drain = &mut self.drains[route];
                let Some((_, room)) = drain.flying.pop_front() else { continue };
                self.slot.inner().rings.check(&format!("taking data from output {}", drain.port), &done)?;
                self.now = self.now.max(done.time);
                // What came is kept even if there is too much or too little of it.
                let fits = drain.arrive(done.bytes, room, done.has(CPL_LAST));
                if done.bytes <= room {
                    drain.store(done.bytes)?;
                }
                fits?;
                drain.fill(self.slot)?;
            }
            if let Some(tell) = &mut progress {
                tell(Progress {
                    bytes_in: self.feeds.iter().map(|feed| feed.taken).sum(),
                    total_in: self.feeds.iter().map(|feed| feed.source.len()).sum(),
                    bytes_out: self.drains.iter().map(|drain| drain.arrived).sum(),
                    cycles: self.now - self.start,
                });
            }
        }
    }

    /// What a run waits for, with how far each stream is.
    fn waiting(&self) -> String {
        let mut what = "waiting for the app's streams".to_string();
        for feed in &self.feeds {
            what += &format!(", input {} took {} of {} bytes", feed.port, feed.taken, feed.source.len());
        }
        for drain in &self.drains {
            what += &format!(", output {} gave {} bytes", drain.port, drain.arrived);
        }
        what
    }

    /// Waits until the oldest chunk of a route is complete. Takes at most one of each route.
    fn wait(&self) -> Result<(Ended, Ended)> {
        let fronts = |queue: &VecDeque<(Tag, u32)>| queue.front().map(|(tag, _)| *tag);
        let answer = self.slot.wait_while_serving(&self.waiting(), None, |st| {
            let mut take = |route: usize, tag: Option<Tag>| Some((route, st.take_one(tag?)?));
            let taken: Ended = self
                .feeds
                .iter()
                .enumerate()
                .filter_map(|(route, feed)| take(route, fronts(&feed.flying)))
                .collect();
            let arrived: Ended = self
                .drains
                .iter()
                .enumerate()
                .filter(|(_, drain)| !drain.ended)
                .filter_map(|(route, drain)| take(route, fronts(&drain.flying)))
                .collect();
            (!taken.is_empty() || !arrived.is_empty()).then_some((taken, arrived))
        })?;
        Ok(answer.unwrap_or_default())
    }

    /// After success: commands that found no data any more are ended, windows taken away, files checked.
    fn close(mut self, durable: bool) -> Result<JobReport> {
        let left: Vec<Tag> =
            self.drains.iter_mut().flat_map(|drain| drain.flying.drain(..)).map(|(tag, _)| tag).collect();
        if !left.is_empty() {
            self.slot.abort_moves(&left)?;
        }
        let mut report = JobReport { bytes_in: 0, bytes_out: 0, cycles: self.now - self.start };
        for feed in self.feeds {
            report.bytes_in += feed.taken;
            feed.window.close()?;
        }
        for drain in self.drains {
            report.bytes_out += drain.stored;
            drain.window.close()?;
            drain.sink.finish(drain.stored, durable)?;
        }
        Ok(report)
    }

    /// After an error.
    fn abandon(self) {
        let feeds = self.feeds.iter().flat_map(|feed| &feed.flying);
        let drains = self.drains.iter().flat_map(|drain| &drain.flying);
        let tags: Vec<Tag> = feeds.chain(drains).map(|(tag, _)| *tag).collect();
        abandon(self.slot, &tags);
    }
}

/// After an error: nothing of a run goes on, and nobody asks for its commands any more.
pub(crate) fn abandon(slot: &Slot, tags: &[Tag]) {
    if let Err(error) = slot.reset() {
        tracing::warn!(%error, slot = slot.index(), "the slot could not be reset after a failed run");
    }
    slot.inner().rings.abandon(tags);
}

/// Bytes of the buffer of a route that carries `len` bytes.
fn ring_bytes(len: u64, chunk: u64) -> u64 {
    len.min(chunk * WINDOW)
}
