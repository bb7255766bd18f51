// SPDX-License-Identifier: Apache-2.0
//! Streams of a run that lead to the board's Ethernet port: routes on the card, whose frames the host does not see.

use std::time::{Duration, Instant};

use crate::card::{FunctionKind, Port, Route};
use crate::dispatch::Stall;
use crate::error::{Error, Result};
use crate::slot::several::{Waits, wait_for_any};
use crate::slot::{ASK_STOP, Slot, StopIf, check_stop};

const BOARD: Port = Port::Board(FunctionKind::Net);
/// How often is looked whether the app has begun to send.
const LOOK: Duration = Duration::from_millis(5);

/// Streams with the endpoint `eth:`.
#[derive(Debug, Default)]
pub(super) struct Ethernet {
    inputs: Vec<u8>,
    output: Option<u8>,
}

impl Ethernet {
    /// Of these inputs and outputs.
    pub fn new(inputs: Vec<u8>, outputs: &[u8]) -> Result<Self> {
        match outputs {
            [] | [_] => Ok(Self { inputs, output: outputs.first().copied() }),
            _ => Err(Error::Invalid("two outputs lead to eth:, which takes frames of one stream".into())),
        }
    }

    /// Whether there is any.
    pub fn is_used(&self) -> bool {
        !self.inputs.is_empty() || self.output.is_some()
    }

    /// Whether there is an output.
    pub fn sends(&self) -> bool {
        self.output.is_some()
    }

    /// Whether there is an input.
    pub fn receives(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// Connects the app with inputs and the one with outputs. What comes out has somewhere to go before anything comes in.
    pub fn connect(&self, first: &Slot, last: &Slot) -> Result<Vec<Route>> {
        let port = |slot: &Slot, stream| Port::Stream { slot: slot.index(), stream };
        let out = self.output.map(|stream| last.card().route(port(last, stream), BOARD));
        let ins = self.inputs.iter().map(|stream| first.card().route(BOARD, port(first, *stream)));
        out.into_iter().chain(ins).collect()
    }
}

/// Lets apps work until `stop` returns true.
pub(super) fn serve(slots: &[&Slot], stop: &mut Option<StopIf<'_>>, mut tell: impl FnMut()) -> Result<()> {
    let mut waits = Waits::new(slots, Stall::OfAll);
    // For the next frame.
    waits.outside(true);
    loop {
        let end = Some(Instant::now() + ASK_STOP);
        wait_for_any(slots, &mut waits, "waiting for frames", end, |_, _| Ok(None::<()>))?;
        slots.iter().try_for_each(|slot| slot.check())?;
        slots.iter().try_for_each(|slot| slot.card().check_process())?;
        tell();
        match check_stop(stop) {
            Err(Error::Stopped) => return Ok(()),
            other => other?,
        }
    }
}

/// Waits until the last of these apps has begun to send, since its output had so many beats.
pub(super) fn wait_for_output(slots: &[&Slot], before: u32, stop: &mut Option<StopIf<'_>>) -> Result<()> {
    let Some(last) = slots.last() else { return Ok(()) };
    let mut waits = Waits::new(slots, Stall::OfAll);
    while last.counters()?.beats_out == before {
        let end = Some(Instant::now() + LOOK);
        wait_for_any(slots, &mut waits, "waiting for the app to send a frame", end, |_, _| Ok(None::<()>))?;
        slots.iter().try_for_each(|slot| slot.check())?;
        check_stop(stop)?;
    }
    Ok(())
}
