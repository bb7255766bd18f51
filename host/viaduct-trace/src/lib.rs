// SPDX-License-Identifier: Apache-2.0
//! What a card and its host do, on the card's clock, in a file for trace viewers.
//!
//! The format is Chrome's (Trace Event Format, JSON Array Format), which <https://ui.perfetto.dev> opens. A [`Trace`] has, for each slot,
//! lanes of its commands (DMA, movers, translations), faults and events, and one for each thread that makes calls. These come from the
//! host library ([`viaduct::Observer`]), so they exist on any card. Of a simulated card in this process it has lanes of its streams, memory
//! ports, DRAM channels, functions and link as well ([`SimCard::begin_trace`]).
//!
//! A trace changes no cycle of a simulated card. Its events are written by a thread of its own; if the disk is slower than the run, the
//! run waits.
#![deny(missing_docs)]

mod clock;
mod commands;
mod create;
mod event;
mod host;
mod message;
mod records;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use viaduct::Card;
use viaduct_sim::{SimCard, SimError};

use clock::Clock;
pub use clock::Time;
use commands::Commands;
use host::Host;
use message::Message;
use writer::Writer;

/// Messages that wait for the disk; then the run waits.
const WAITING: usize = 1024;
/// After this time without a message the file has what was traced.
const QUIET: Duration = Duration::from_millis(500);

/// Errors of a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be created.
    #[error("{}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is one that is kept.
    #[error("{}: this file is in use by what is traced; name another", path.display())]
    Kept {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written: it has a part of the trace. What was traced is not affected.
    #[error("{}: {source}; the trace is incomplete, the run is not affected", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The card cannot be traced.
    #[error(transparent)]
    Card(#[from] viaduct::Error),
    /// The card's model cannot be traced.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// A trace in progress. Dropping it leaves the file as far as it is written.
pub struct Trace {
    path: PathBuf,
    to: SyncSender<Message>,
    writer: JoinHandle<io::Result<u64>>,
    sim: Option<Arc<SimCard>>,
    clock: Option<Clock>,
}

impl Trace {
    /// Creates the file, or empties it, unless it is one of `kept`, and traces a card that this program uses.
    pub fn of_card(
        path: &Path,
        kept: &[&Path],
        card: &Arc<Card>,
        time: Time<'_>,
    ) -> Result<Self, TraceError> {
        let mut trace = Self::begin(path, kept, card.info().clock_khz)?;
        if let Time::Simulated(sim) = time {
            trace.watch_model(sim)?;
        }
        let clock = Clock::new(card, time)?;
        card.set_observer(Arc::new(Host::new(clock.clone(), trace.to.clone())))?;
        trace.clock = Some(clock);
        Ok(trace)
    }

    /// The same for a simulated card that other programs use: without what their library does.
    pub fn of_model(path: &Path, kept: &[&Path], sim: &Arc<SimCard>) -> Result<Self, TraceError> {
        let mut trace = Self::begin(path, kept, sim.clock_khz())?;
        trace.watch_model(sim)?;
        Ok(trace)
    }

    fn begin(path: &Path, kept: &[&Path], khz: u32) -> Result<Self, TraceError> {
        let file = create::create(path, kept)?;
        let (to, from) = sync_channel(WAITING);
        let run = move || write(Writer::new(file, khz), &from);
        let writer = std::thread::Builder::new().name("trace".into()).spawn(run);
        let writer = writer.map_err(|source| TraceError::Create { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), to, writer, sim: None, clock: None })
    }

    fn watch_model(&mut self, sim: &Arc<SimCard>) -> Result<(), TraceError> {
        let to = self.to.clone();
        // The writer receives until it is told to end, and then what comes is not wanted.
        sim.begin_trace(Box::new(move |records| drop(to.send(Message::Card(records)))))?;
        self.sim = Some(Arc::clone(sim));
        Ok(())
    }

    /// Ends the trace, whether or not the card is still in use, and returns the number of events in the file.
    pub fn end(self) -> Result<u64, TraceError> {
        if let Some(sim) = &self.sim {
            sim.end_trace();
        }
        // The card may live on, and its observer with it: the writer does not wait for the last sender.
        let _ = self.to.send(Message::End(self.clock.as_ref().map_or(0, Clock::now)));
        let written =
            self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the trace's thread panicked")));
        written.map_err(|source| TraceError::Write { path: self.path, source })
    }
}

/// Writes what it is told, up to the end; returns the number of events.
fn write(mut to: Writer, from: &Receiver<Message>) -> io::Result<u64> {
    let mut commands = Commands::default();
    loop {
        let message = match from.recv_timeout(QUIET) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => {
                to.flush();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match message {
            Message::Card(all) => all.iter().for_each(|record| records::write(&mut to, record)),
            Message::Host { cycle, thread, what } => commands.write(&mut to, cycle, thread, what),
            Message::End(cycle) => {
                commands.end(&mut to, cycle);
                break;
            }
        }
    }
    to.finish()
}
