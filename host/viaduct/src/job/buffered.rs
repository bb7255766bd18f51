// SPDX-License-Identifier: Apache-2.0
//! A message through the streams of an app by way of card memory, with two buffers each way: while the DMA engine fills one, the app's
//! mover empties the other (Vipin et al., FPT 2013, section V.B: double-buffered writes through DRAM).

use crate::card::CardBuffer;
use crate::card::dma::DmaBuffer;
use crate::dispatch::{State, Tag};
use crate::error::{Error, Result};
use crate::job::JobReport;
use crate::protocol::desc::{CPL_LAST, Command, Completion, Prot};
use crate::slot::Slot;
use crate::slot::window::Window;
use viaduct_pci::DmaAccess;

/// Most bytes of a buffer.
const MOST: u64 = 64 << 20;

/// What has ended.
#[derive(Clone, Copy)]
enum Step {
    /// Bytes of a piece of the input are in card memory.
    Filled(u64),
    /// The app has taken them.
    Taken,
    /// The app has given a piece of the output.
    Given(u64),
    /// Its bytes are in host memory.
    Fetched(u64),
}

/// Two buffers of one way: in host memory, for the DMA engine, and in card memory, for the mover.
struct Way {
    host: DmaBuffer,
    /// Of different channels: one is written while the other is read, and a channel has one data bus.
    card: [CardBuffer; 2],
    window: [Window; 2],
    half: u64,
    bytes: u64,
    pieces: u64,
    /// Pieces that were begun, and that have ended.
    begun: u64,
    ended: u64,
}

impl Way {
    fn open(slot: &Slot, bytes: u64, half: u64, prot: Prot, access: DmaAccess) -> Result<Self> {
        let half = half.min(bytes.next_multiple_of(4096));
        let card = [slot.card().allocate(half)?, slot.card().allocate(half)?];
        let window = [
            Window::card(slot, card[0].addr(), half, prot)?,
            Window::card(slot, card[1].addr(), half, prot)?,
        ];
        let host = slot.card().dma_buffer(2 * half, access)?;
        Ok(Self { host, card, window, half, bytes, pieces: bytes.div_ceil(half), begun: 0, ended: 0 })
    }

    /// Offset of a piece in the message, and its bytes.
    fn piece(&self, number: u64) -> (u64, u64) {
        let at = number * self.half;
        (at, self.half.min(self.bytes - at))
    }

    /// Offset of a piece's buffer in host memory.
    fn at(&self, number: u64) -> u64 {
        number % 2 * self.half
    }

    /// Card address of a piece's buffer.
    fn addr(&self, number: u64) -> u64 {
        self.card[number as usize % 2].addr()
    }

    /// Virtual address of the same.
    fn va(&self, number: u64) -> u64 {
        self.window[number as usize % 2].va()
    }

    /// A further piece can begin: the one whose buffers it gets has ended.
    fn has_room(&self) -> bool {
        self.begun < self.pieces && self.begun < self.ended + 2
    }
}

impl Slot {
    /// Sends `input` as a message into input stream 0 of the app, and takes a message of exactly as many bytes as `output` has from output
    /// stream 0, both by way of two buffers of `half` bytes in card memory. An app without the stream gets nothing for it.
    ///
    /// While the DMA engine fills one buffer the app takes the other, so the card's memory, and not the link, is what the app waits for. After
    /// an error the app has been reset.
    pub fn run_buffered(&self, input: &[u8], output: &mut [u8], half: u64) -> Result<JobReport> {
        let _call = self.call("double-buffered run");
        if half == 0 || half % 4096 != 0 || half > MOST {
            return Err(Error::Invalid(format!(
                "buffers of {half} bytes: give a multiple of 4096, at most {MOST}"
            )));
        }
        if input.is_empty() && output.is_empty() {
            return Err(Error::Invalid("neither an input nor an output was given".into()));
        }
        self.check()?;
        let mut run = Run { slot: self, input: None, output: None, flying: Vec::new(), now: 0 };
        if !input.is_empty() {
            run.input = Some(Way::open(self, input.len() as u64, half, Prot::READ, DmaAccess::Read)?);
        }
        if !output.is_empty() {
            run.output = Some(Way::open(self, output.len() as u64, half, Prot::WRITE, DmaAccess::Write)?);
        }
        let begun = self.card().time()?;
        let done = run.go(input, output);
        if done.is_err() {
            // What is under way ends, so that the memory can go.
            self.reset()?;
            let left: Vec<Tag> = run.flying.iter().map(|(tag, _)| *tag).collect();
            self.wait(&left)?;
        }
        let cycles = run.now.saturating_sub(begun);
        for way in [run.input.take(), run.output.take()].into_iter().flatten() {
            way.window.into_iter().try_for_each(Window::close)?;
        }
        done?;
        Ok(JobReport { bytes_in: input.len() as u64, bytes_out: output.len() as u64, cycles })
    }
}

struct Run<'a> {
    slot: &'a Slot,
    input: Option<Way>,
    output: Option<Way>,
    flying: Vec<(Tag, Step)>,
    /// Card time of the last completion.
    now: u64,
}

impl Run<'_> {
    fn go(&mut self, input: &[u8], output: &mut [u8]) -> Result<()> {
        loop {
            self.begin_pieces(input)?;
            if self.flying.is_empty() {
                return Ok(());
            }
            let (step, completion) = self.next()?;
            self.slot.inner().rings.check("a double-buffered run", &completion)?;
            self.now = self.now.max(completion.time);
            self.follow(step, &completion, output)?;
        }
    }

    /// Begins all pieces whose buffers are free.
    fn begin_pieces(&mut self, input: &[u8]) -> Result<()> {
        while let Some(way) = self.input.as_mut().filter(|way| way.has_room()) {
            let number = way.begun;
            let (from, bytes) = way.piece(number);
            let at = way.at(number);
            way.host.memory().write(at as usize, &input[from as usize..(from + bytes) as usize]);
            way.begun += 1;
            let command = Command::h2c(way.host.iova() + at, way.addr(number), bytes as u32);
            self.submit(command, Step::Filled(number))?;
        }
        while let Some(way) = self.output.as_mut().filter(|way| way.has_room()) {
            let number = way.begun;
            let (_, bytes) = way.piece(number);
            way.begun += 1;
            let beat = self.slot.card().info().data_bytes as u64;
            let command = Command::move_out(0, way.va(number), bytes.next_multiple_of(beat) as u32);
            self.submit(command, Step::Given(number))?;
        }
        Ok(())
    }

    /// What follows a step.
    fn follow(&mut self, step: Step, completion: &Completion, output: &mut [u8]) -> Result<()> {
        match (step, &mut self.input, &mut self.output) {
            (Step::Filled(number), Some(way), _) => {
                let (_, bytes) = way.piece(number);
                let last = number + 1 == way.pieces;
                let command = Command::move_in(0, way.va(number), bytes as u32, last);
                self.submit(command, Step::Taken)
            }
            (Step::Taken, Some(way), _) => {
                way.ended += 1;
                Ok(())
            }
            (Step::Given(number), _, Some(way)) => {
                let (from, bytes) = way.piece(number);
                let (got, ended) = (u64::from(completion.bytes), completion.flags & CPL_LAST != 0);
                let last = number + 1 == way.pieces;
                if got < bytes || ended && !last {
                    return Err(Error::OutputTooShort { port: 0, bytes: from + got, expected: way.bytes });
                }
                if got > bytes || last && !ended {
                    let why = "as many as were asked for";
                    return Err(Error::OutputTooLong { port: 0, limit: way.bytes, why });
                }
                let command = Command::c2h(way.host.iova() + way.at(number), way.addr(number), bytes as u32);
                self.submit(command, Step::Fetched(number))
            }
            (Step::Fetched(number), _, Some(way)) => {
                let (from, bytes) = way.piece(number);
                let at = way.at(number);
                way.host.memory().read(at as usize, &mut output[from as usize..(from + bytes) as usize]);
                way.ended += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn submit(&mut self, command: Command, step: Step) -> Result<()> {
        self.flying.extend(self.slot.submit(&[command])?.into_iter().map(|tag| (tag, step)));
        Ok(())
    }

    /// Waits for one of the commands.
    fn next(&mut self) -> Result<(Step, Completion)> {
        let what = "a double-buffered run";
        let flying = &self.flying;
        let done = |st: &mut State| flying.iter().position(|(tag, _)| st.is_done(*tag));
        let ended = self.slot.wait_while_serving(what, None, done)?;
        // In the order in which they were submitted, and copies end: so pieces are moved into the app in order.
        let (tag, step) = self.flying.remove(ended.unwrap_or(0));
        let completion = self.slot.inner().rings.collect(what, &[tag])?;
        match completion.first() {
            Some(completion) => Ok((step, *completion)),
            None => Err(Error::BadCard("a command ended without a completion".into())),
        }
    }
}
