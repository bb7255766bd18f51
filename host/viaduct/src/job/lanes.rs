// SPDX-License-Identifier: Apache-2.0
//! A run that sends many messages through one input concurrently, in the parallel lanes of the app.
//!
//! A lane is a stream id: the messages of one lane follow each other, those of different lanes are interleaved in chunks.
//! The next chunk is always for the lane that has received least so far, so that no lane is more than a chunk ahead and all
//! are busy until no messages are left; a lane without a message takes the next waiting one. Every output sends one message
//! of known length for each input message, which the card reports with its id.
//!
//! A file is opened when a lane takes it, so that a run of thousands of files does not need as many open ones.

use std::collections::VecDeque;

use crate::backing::SharedBytes;
use crate::dispatch::Tag;
use crate::error::{Error, Result};
use crate::job::endpoint::{Endpoint, In, Out, check_distinct};
use crate::job::flow::Pipe;
use crate::job::stream::{JobReport, Progress, abandon};
use crate::protocol::desc::{CPL_LAST, Command, Completion, Prot};
use crate::slot::window::Window;
use crate::slot::{Slot, StopIf, check_stop};

/// Bytes in a chunk: half of a lane's buffer, so that no lane runs dry while the stream waits for a full one.
const CHUNK: u64 = 16 << 10;
/// Commands in flight on a stream: as many as the card queues.
const WINDOW: usize = 16;
/// Host memory for the messages of an output in flight, unless one alone is larger.
const OUT_BYTES: u64 = 4 << 20;
/// Largest message of an output: it must fit one command.
const MAX_MESSAGE: u64 = 1 << 30;
/// Most bytes of a message of unknown length; it is read in advance.
const MAX_UNKNOWN: u64 = 64 << 20;
/// Number of stream ids.
const MAX_LANES: u16 = 256;

/// A run: many messages into one input, and a response to each from every output.
pub struct LaneJob<'a> {
    slot: &'a Slot,
    port: u8,
    lanes: u16,
    messages: Vec<Endpoint>,
    outputs: Vec<(u8, Endpoint, u64)>,
    durable: bool,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
    stop: Option<StopIf<'a>>,
}

impl<'a> LaneJob<'a> {
    /// A run without messages into input stream `port` (from 0) of the app in `slot`, which accepts messages with ids 0 to
    /// `lanes - 1` interleaved.
    pub fn new(slot: &'a Slot, port: u8, lanes: u16) -> Self {
        Self {
            slot,
            port,
            lanes,
            messages: Vec::new(),
            outputs: Vec::new(),
            durable: false,
            progress: None,
            stop: None,
        }
    }

    /// Adds a message: a whole file, or bytes of this program. It must not be empty. A pipe cannot be a message: it would have
    /// to be read before its turn.
    pub fn message(mut self, from: Endpoint) -> Self {
        self.messages.push(from);
        self
    }

    /// Routes output stream `port` (from 0), which responds to each message with `bytes` bytes, to an endpoint: the responses
    /// in sequence, in the order of the messages. A stream gets them at the end of the run.
    pub fn output(mut self, port: u8, to: Endpoint, bytes: u64) -> Self {
        self.outputs.push((port, to, bytes));
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

    /// Calls `stop` about ten times a second, and whenever some chunks are done; `true` ends the run with [`Error::Stopped`].
    pub fn stop_if(mut self, stop: impl FnMut() -> bool + 'a) -> Self {
        self.stop = Some(Box::new(stop));
        self
    }

    /// Runs until every output has responded to every message.
    ///
    /// As much as possible is checked before the first byte is sent: an empty message is [`Error::EmptyInput`].
    ///
    /// After an error the app has been reset, and output files hold the data written so far.
    pub fn run(mut self) -> Result<JobReport> {
        let slot = self.slot;
        let _call = slot.call("lane job");
        slot.check()?;
        self.check()?;
        let sinks = self.outputs.iter().map(|(_, to, _)| Out::open(to)).collect::<Result<Vec<_>>>()?;
        let messages = self.measure(&sinks)?;
        let feed = Feed::open(slot, self.port, self.lanes, messages)?;
        let total = feed.messages.len();
        let mut run = Run { slot, feed, drains: Vec::new(), start: 0, now: 0, stop: self.stop, over: false };
        for ((port, _, bytes), sink) in self.outputs.iter().zip(sinks) {
            run.drains.push(Drain::open(slot, *port, sink, *bytes, self.lanes, total)?);
        }
        // Not before: what fails up to here leaves an output file as it was.
        run.drains.iter().try_for_each(|drain| drain.sink.begin())?;
        run.go(self.progress.as_deref_mut())?;
        run.close(self.durable)
    }

    fn check(&self) -> Result<()> {
        let count = self.slot.card().info().streams;
        let fail = |why: String| Err(Error::Invalid(why));
        if usize::from(self.port) >= count {
            return Err(Error::NoSuchPort { direction: "input", port: self.port.into(), count });
        }
        if self.lanes == 0 || self.lanes > MAX_LANES {
            return fail(format!("{} lanes: give 1 to {MAX_LANES}", self.lanes));
        }
        if self.messages.is_empty() || self.outputs.is_empty() {
            return fail("a run in lanes needs at least one message and one output".into());
        }
        for (i, (port, to, bytes)) in self.outputs.iter().enumerate() {
            if usize::from(*port) >= count {
                return Err(Error::NoSuchPort { direction: "output", port: (*port).into(), count });
            }
            if self.outputs[..i].iter().any(|(other, ..)| other == port) {
                return Err(Error::PortTwice { direction: "output", port: (*port).into() });
            }
            if *bytes == 0 || *bytes > MAX_MESSAGE {
                return fail(format!(
                    "output {port}: {bytes} bytes per message are not possible; give 1 to {MAX_MESSAGE}"
                ));
            }
            if matches!(to, Endpoint::Card { .. }) {
                return fail(format!(
                    "output {port}: messages in lanes cannot go to card memory; use a file"
                ));
            }
        }
        if self.messages.iter().any(|from| matches!(from, Endpoint::Card { .. })) {
            let port = self.port;
            return fail(format!("input {port}: messages in lanes cannot come from card memory; use files"));
        }
        Ok(())
    }

    /// Checks every message once: its length. None may be empty, or be overwritten by an output.
    fn measure(&self, sinks: &[Out]) -> Result<Vec<(Endpoint, u64)>> {
        let sinks: Vec<&Out> = sinks.iter().collect();
        let measure = |from: &Endpoint| {
            let source = In::open(from)?;
            check_distinct(&[&source], &sinks)?;
            let name = source.name();
            let (from, len) = match (source.known_len(), source) {
                (Some(len), _) => (from.clone(), len),
                (None, In::Stream(pipe)) if pipe.is_file() => {
                    let bytes = SharedBytes::new(pipe.read_all(MAX_UNKNOWN)?);
                    let len = bytes.len();
                    (Endpoint::bytes(name.clone(), bytes), len)
                }
                _ => {
                    let why = "is a stream; only files can be messages in lanes: send it alone, or save it to a file first";
                    return Err(Error::Invalid(format!("{name}: {why}")));
                }
            };
            match len {
                0 => Err(Error::EmptyInput { port: self.port.into(), name }),
                _ => Ok((from, len)),
            }
        };
        self.messages.iter().map(measure).collect()
    }
}

/// The input route.
struct Feed {
    port: u8,
    beat: u64,
    messages: Vec<(Endpoint, u64)>,
    begun: usize, // messages assigned to lanes
    lanes: Vec<Lane>,
    window: Window, // a ring of chunks, one for each command in flight
    chunks: usize,  // commands so far
    taken: u64,     // bytes accepted by the app
    total: u64,
    flying: VecDeque<(Tag, u32)>,
}

#[derive(Default)]
struct Lane {
    /// Its current message, its length, and the position.
    message: Option<(In, u64, u64)>,
    /// Total beats sent to it.
    beats: u64,
}

impl Feed {
    fn open(slot: &Slot, port: u8, lanes: u16, messages: Vec<(Endpoint, u64)>) -> Result<Self> {
        Ok(Self {
            port,
            beat: slot.card().info().data_bytes as u64,
            begun: 0,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            window: Window::host(slot, CHUNK * WINDOW as u64, Prot::READ)?,
            chunks: 0,
            taken: 0,
            total: messages.iter().map(|(_, len)| len).sum(),
            flying: VecDeque::new(),
            messages,
        })
    }

    /// The lane for the next chunk.
    fn next(&self) -> Option<usize> {
        let waiting = self.begun < self.messages.len();
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| lane.message.is_some() || waiting);
        lanes.min_by_key(|(_, lane)| lane.beats).map(|(index, _)| index)
    }

    /// Assigns the next message to a free lane. Returns its number.
    fn begin(&mut self, lane: usize) -> Result<usize> {
        let (endpoint, len) = &self.messages[self.begun];
        let source = In::open(endpoint)?;
        let end = source.known_len().unwrap_or(0);
        if end < *len {
            let path = source.name().into();
            return Err(Error::FileShrank { path, end, expected: *len });
        }
        self.lanes[lane].message = Some((source, *len, 0));
        self.begun += 1;
        Ok(self.begun - 1)
    }

    /// Sends the next chunk of a lane's message.
    fn send(&mut self, slot: &Slot, lane: usize) -> Result<()> {
        let id = lane as u8;
        let lane = &mut self.lanes[lane];
        let Some((source, len, sent)) = &mut lane.message else { return Ok(()) };
        let bytes = CHUNK.min(*len - *sent);
        let offset = (self.chunks % WINDOW) as u64 * CHUNK;
        if let Some(buffer) = self.window.buffer() {
            source.read(buffer, offset, bytes, *sent)?;
        }
        *sent += bytes;
        let end = *sent == *len;
        if end {
            source.check_linked()?;
        }
        let command =
            Command { id, ..Command::move_in(self.port, self.window.va() + offset, bytes as u32, end) };
        self.flying.extend(slot.submit(&[command])?.into_iter().map(|tag| (tag, bytes as u32)));
        self.chunks += 1;
        lane.beats += bytes.div_ceil(self.beat);
        if end {
            lane.message = None;
        }
        Ok(())
    }

    fn done(&self) -> bool {
        self.taken == self.total
    }
}

/// An output route.
struct Drain {
    port: u8,
    sink: Out,
    /// A stream gets its responses at the end: they arrive in any order.
    stream: Option<Pipe>,
    bytes: u64,                 // of a message
    room: u64,                  // of a message in the window: whole beats
    window: Window,             // a ring of messages, one for each command in flight
    depth: usize,               // messages in the window
    asked: usize,               // commands so far
    arrived: usize,             // messages received
    total: usize,               // expected messages
    owed: Vec<VecDeque<usize>>, // for each lane: messages without a response yet
    flying: VecDeque<(Tag, u32)>,
}

impl Drain {
    fn open(slot: &Slot, port: u8, sink: Out, bytes: u64, lanes: u16, total: usize) -> Result<Self> {
        let room = bytes.next_multiple_of(slot.card().info().data_bytes as u64);
        let depth = (OUT_BYTES / room).clamp(1, WINDOW as u64);
        let (sink, stream) = match sink {
            Out::Stream(pipe) => {
                let name = pipe.name.display().to_string();
                (Out::Bytes { bytes: SharedBytes::default(), name }, Some(pipe))
            }
            sink => (sink, None),
        };
        Ok(Self {
            port,
            sink,
            stream,
            bytes,
            room,
            window: Window::host(slot, depth * room, Prot::WRITE)?,
            depth: depth as usize,
            asked: 0,
            arrived: 0,
            total,
            owed: vec![VecDeque::new(); lanes.into()],
            flying: VecDeque::new(),
        })
    }

    /// Submits moves for messages until enough are in flight.
    fn fill(&mut self, slot: &Slot) -> Result<()> {
        while self.flying.len() < self.depth && self.asked < self.total {
            let command =
                Command::move_out(self.port, self.window.va() + self.offset(self.asked), self.room as u32);
            self.flying.extend(slot.submit(&[command])?.into_iter().map(|tag| (tag, self.room as u32)));
            self.asked += 1;
        }
        Ok(())
    }

    fn offset(&self, command: usize) -> u64 {
        (command % self.depth) as u64 * self.room
    }

    /// A message is complete: finds the input message it belongs to and writes it to its position in the sink.
    fn store(&mut self, done: &Completion) -> Result<()> {
        let port = usize::from(self.port);
        let (bytes, last) = (u64::from(done.bytes), done.has(CPL_LAST));
        if bytes > self.room || bytes < self.room && !last {
            let why = format!("the card reports {bytes} bytes of {} requested on output {port}", self.room);
            return Err(Error::BadCard(why));
        }
        if bytes > self.bytes || !last {
            let why = "its manifest promises no more per message";
            return Err(Error::OutputTooLong { port, limit: self.bytes, why });
        }
        if bytes < self.bytes {
            return Err(Error::OutputTooShort { port, bytes, expected: self.bytes });
        }
        let lane = usize::try_from(done.info).ok().and_then(|id| self.owed.get_mut(id));
        let Some(message) = lane.and_then(VecDeque::pop_front) else {
            return Err(Error::WrongId { port, id: done.info });
        };
        if let Some(buffer) = self.window.buffer() {
            self.sink.write(buffer, self.offset(self.arrived), bytes, message as u64 * self.bytes)?;
        }
        self.arrived += 1;
        Ok(())
    }
}

/// A run in progress. Dropped before its end, it resets the app.
struct Run<'a, 'b> {
    slot: &'a Slot,
    feed: Feed,
    drains: Vec<Drain>,
    start: u64,
    now: u64,
    stop: Option<StopIf<'b>>,
    over: bool,
}

impl Run<'_, '_> {
    fn go(&mut self, mut progress: Option<&mut (dyn FnMut(Progress) + '_)>) -> Result<()> {
        self.start = self.slot.card().time()?;
        self.now = self.start;
        self.drains.iter_mut().try_for_each(|drain| drain.fill(self.slot))?;
        loop {
            self.feed()?;
            if self.feed.done() && self.drains.iter().all(|drain| drain.arrived == drain.total) {
                return Ok(());
            }
            let (taken, arrived) = self.wait()?;
            for done in taken {
                let Some((_, bytes)) = self.feed.flying.pop_front() else { continue };
                let what = format!("moving data into input {}", self.feed.port);
                self.slot.inner().rings.check(&what, &done)?;
                self.feed.taken += u64::from(bytes);
                self.now = self.now.max(done.time);
            }
            // The card gets its next input before its output is written.
            self.feed()?;
            for (drain, arrived) in self.drains.iter_mut().zip(arrived) {
                for done in arrived {
                    drain.flying.pop_front();
                    let what = format!("taking a message from output {}", drain.port);
                    self.slot.inner().rings.check(&what, &done)?;
                    self.now = self.now.max(done.time);
                    drain.store(&done)?;
                }
                drain.fill(self.slot)?;
            }
            if let Some(tell) = &mut progress {
                tell(Progress {
                    bytes_in: self.feed.taken,
                    total_in: self.feed.total,
                    bytes_out: self.bytes_out(),
                    cycles: self.now - self.start,
                });
            }
            check_stop(&mut self.stop)?;
        }
    }

    fn bytes_out(&self) -> u64 {
        self.drains.iter().map(|drain| drain.arrived as u64 * drain.bytes).sum()
    }

    /// Sends chunks until enough are in flight.
    fn feed(&mut self) -> Result<()> {
        while self.feed.flying.len() < WINDOW {
            let Some(lane) = self.feed.next() else { return Ok(()) };
            if self.feed.lanes[lane].message.is_none() {
                let message = self.feed.begin(lane)?;
                self.drains.iter_mut().for_each(|drain| drain.owed[lane].push_back(message));
            }
            self.feed.send(self.slot, lane)?;
        }
        Ok(())
    }

    /// Description of the wait, with the position of each stream.
    fn waiting(&self) -> String {
        let Feed { port, taken, total, .. } = &self.feed;
        let mut what = format!("waiting for the app's streams, input {port} took {taken} of {total} bytes");
        for drain in &self.drains {
            what += &format!(", output {} gave {} of {} messages", drain.port, drain.arrived, drain.total);
        }
        what
    }

    /// Waits until commands are complete: the oldest of the input, or of an output.
    fn wait(&mut self) -> Result<(Vec<Completion>, Vec<Vec<Completion>>)> {
        let (feed, drains) = (&self.feed, &self.drains);
        self.slot.wait_unless_stopped(&self.waiting(), false, &mut self.stop, |st| {
            let mut take = |queue: &VecDeque<(Tag, u32)>| -> Vec<Completion> {
                queue.iter().map_while(|(tag, _)| st.take_one(*tag)).collect()
            };
            let taken = take(&feed.flying);
            let arrived: Vec<_> = drains.iter().map(|drain| take(&drain.flying)).collect();
            (!taken.is_empty() || arrived.iter().any(|list| !list.is_empty())).then_some((taken, arrived))
        })
    }

    /// After success: windows are removed and files checked.
    fn close(mut self, durable: bool) -> Result<JobReport> {
        self.over = true;
        let report = JobReport {
            bytes_in: self.feed.taken,
            bytes_out: self.bytes_out(),
            cycles: self.now - self.start,
        };
        self.feed.window.unmap()?;
        for drain in std::mem::take(&mut self.drains) {
            drain.window.close()?;
            drain.sink.finish(drain.arrived as u64 * drain.bytes, durable)?;
            if let (Some(pipe), Out::Bytes { bytes, .. }) = (drain.stream, &drain.sink) {
                pipe.write_all(&bytes.take(), &mut self.stop)?;
            }
        }
        Ok(report)
    }
}

impl Drop for Run<'_, '_> {
    fn drop(&mut self) {
        if !self.over && self.slot.card().is_ours() {
            let queues = self.drains.iter().map(|drain| &drain.flying).chain([&self.feed.flying]);
            let tags: Vec<Tag> = queues.flatten().map(|(tag, _)| *tag).collect();
            abandon(self.slot, &tags);
        }
    }
}
