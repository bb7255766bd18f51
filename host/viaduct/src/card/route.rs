// SPDX-License-Identifier: Apache-2.0
//! Routes: streams between apps, and between apps and the board's ports, through the card's switch (`rtl/vio`).

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::card::sync::{lock, poll};
use crate::card::{Card, FunctionKind};
use crate::error::{Error, Result};
use crate::protocol::regs::*;

/// Minor version of the register map that brought routes.
const SINCE: u32 = 2;
/// Functions whose ports of the board apps can use.
const BOARD: [FunctionKind; 2] = [FunctionKind::Net, FunctionKind::Console];

/// One end of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Port {
    /// A stream of a slot, by number: as a source the output of its app, as a sink the input.
    Stream {
        /// The slot.
        slot: usize,
        /// Number of the stream.
        stream: u8,
    },
    /// The user side of a function: only in what [`Card::routes`] returns, for functions that are attached to a slot.
    Function(FunctionKind),
    /// The port of the board that belongs to a function: Ethernet (`Net`), UART (`Console`).
    Board(FunctionKind),
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream { slot, stream } => write!(f, "slot:{slot}:{stream}"),
            Self::Function(kind) => write!(f, "virtio:{kind}"),
            Self::Board(kind) => write!(f, "board:{kind}"),
        }
    }
}

impl FromStr for Port {
    type Err = Error;

    /// What [`fmt::Display`] writes, and `slot:N` for stream 0.
    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            let known = "slot:N, slot:N:STREAM, board:net, board:console";
            Error::Invalid(format!("{text:?} is no end of a route; write one of {known}"))
        };
        let (kind, rest) = text.split_once(':').ok_or_else(unknown)?;
        let function = || rest.parse::<FunctionKind>().map_err(|_| unknown());
        match kind {
            "slot" => {
                let (slot, stream) = rest.split_once(':').unwrap_or((rest, "0"));
                // Streams and slots have numbers of 4 bits each.
                let slot = slot.parse::<u8>().ok().filter(|slot| *slot < 16).ok_or_else(unknown)?;
                let stream = stream.parse::<u8>().ok().filter(|stream| *stream < 16).ok_or_else(unknown)?;
                Ok(Self::Stream { slot: slot.into(), stream })
            }
            "virtio" => function().map(Self::Function),
            "board" => function().map(Self::Board),
            _ => Err(unknown()),
        }
    }
}

// Values of KIND.
const NONE: u32 = 0;
const STREAM: u32 = 1;
const FUNCTION: u32 = 2;
const PORT: u32 = 3;

impl Port {
    /// The slot that it belongs to.
    pub fn slot(self) -> Option<usize> {
        match self {
            Self::Stream { slot, .. } => Some(slot),
            Self::Function(_) | Self::Board(_) => None,
        }
    }

    /// The value of `ROUTE_SINK` and `ROUTE_SOURCE`.
    fn encoded(self) -> u32 {
        let of = |kind: u32, slot: u32, index: u32| {
            kind << VIA_CARD_ROUTE_SINK_KIND_LSB
                | slot << VIA_CARD_ROUTE_SINK_SLOT_LSB
                | index << VIA_CARD_ROUTE_SINK_INDEX_LSB
        };
        match self {
            Self::Stream { slot, stream } => of(STREAM, slot as u32, stream.into()),
            Self::Function(kind) => of(FUNCTION, 0, kind.number().into()),
            Self::Board(kind) => of(PORT, 0, kind.number().into()),
        }
    }

    /// From `ROUTE_STATE`.
    fn decoded(state: u32) -> Result<Option<Self>> {
        let index = (state & VIA_CARD_ROUTE_STATE_INDEX_MASK) >> VIA_CARD_ROUTE_STATE_INDEX_LSB;
        let slot = (state & VIA_CARD_ROUTE_STATE_SLOT_MASK) >> VIA_CARD_ROUTE_STATE_SLOT_LSB;
        let kind = || FunctionKind::ALL.into_iter().find(|kind| u32::from(kind.number()) == index);
        let port = match (state & VIA_CARD_ROUTE_STATE_KIND_MASK) >> VIA_CARD_ROUTE_STATE_KIND_LSB {
            NONE => return Ok(None),
            STREAM => Some(Self::Stream { slot: slot as usize, stream: index as u8 }),
            FUNCTION => kind().map(Self::Function),
            _ => kind().map(Self::Board),
        };
        let unknown = || Error::BadCard(format!("a route comes from what does not exist ({state:#x})"));
        port.map(Some).ok_or_else(unknown)
    }
}

/// A route of the card, or a function that is attached to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteState {
    /// Where messages come from.
    pub source: Port,
    /// Where they go to.
    pub sink: Port,
    /// The sink is to get another source, or none, once the message that it takes has ended.
    pub changing: bool,
}

/// When a route changes, if a message is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Once it has ended.
    Between,
    /// At once: the message is cut short.
    Now,
}

impl Card {
    /// Lets `sink` take its messages from `source`, until the returned value is dropped. Slots must be claimed in this program, and
    /// each app must be running: a route ends with the app at either end of it, also by a reset and by the end of a job whose output
    /// has no known length, and does not come back.
    ///
    /// A source may have several sinks, which all get every message, at the speed of the slowest. A sink has one source: what it took
    /// before ends with its present message; if that does not end within [`control`](crate::Timeouts::control), nothing is changed,
    /// and the error is [`Error::Stalled`]. Moves on an input or output that has a route end as aborted, and what a slot's output sends
    /// goes only to its sinks.
    pub fn route(self: &Arc<Self>, source: Port, sink: Port) -> Result<Route> {
        self.check_version(SINCE, "routes")?;
        self.check_process()?;
        if source.slot().or(sink.slot()).is_none() {
            return Err(Error::Invalid(format!("from {source} to {sink}: one end has to be a slot")));
        }
        let streams = self.route_streams()?;
        for port in [source, sink] {
            match port {
                Port::Stream { slot, stream } => {
                    self.check_claimed(slot)?;
                    if usize::from(stream) >= streams {
                        let last = streams - 1;
                        let why =
                            format!("{port}: routes of this card reach streams 0 to {last} of each slot");
                        return Err(Error::Invalid(why));
                    }
                    self.check_running(slot)?;
                }
                Port::Board(kind) if BOARD.contains(&kind) => {
                    self.check_function(kind)?;
                }
                Port::Board(_) | Port::Function(_) => {
                    let names = BOARD.map(|kind| Port::Board(kind).to_string()).join(" and ");
                    return Err(Error::Invalid(format!("{port}: routes go to slots, {names}")));
                }
            }
        }
        let before = self.set_route(Some(source), sink, When::Between)?;
        let why = match self.settled(sink, source) {
            Ok(Some(true)) => {
                let number = lock(&self.routes).owned(sink);
                return Ok(Route { card: Arc::clone(self), source, sink, number });
            }
            Ok(Some(false)) => Error::Invalid(format!(
                "{sink}: a function is attached to it, or the app at one end has stopped"
            )),
            Ok(None) => {
                let slot = sink.slot().or(source.slot()).unwrap_or(0);
                let what = format!("{sink} to end the message that it takes");
                Error::Stalled { slot, what, after: self.timeouts().control }
            }
            Err(error) => error,
        };
        // As it was.
        self.set_route(before, sink, When::Between)?;
        Err(why)
    }

    /// All routes of the card at this moment, and functions that are attached to slots, as sources: sources and sinks.
    pub fn routes(&self) -> Result<Vec<(Port, Port)>> {
        Ok(self.route_states()?.into_iter().map(|route| (route.source, route.sink)).collect())
    }

    /// As [`Card::routes`], with their states. Reads a register for each stream that a route can lead to.
    pub fn route_states(&self) -> Result<Vec<RouteState>> {
        self.check_process()?;
        if self.info().version.1 < SINCE {
            return Ok(Vec::new());
        }
        let streams = self.route_streams()?;
        let inputs = (0..self.info().slots)
            .flat_map(|slot| (0..streams as u8).map(move |stream| Port::Stream { slot, stream }));
        let mut routes = Vec::new();
        for sink in inputs.chain(BOARD.map(Port::Board)) {
            if let (changing, Some(source)) = self.route_state(sink)? {
                // A port of the board has its own function without a route.
                if !matches!(source, Port::Function(_)) || matches!(sink, Port::Stream { .. }) {
                    routes.push(RouteState { source, sink, changing });
                }
            }
        }
        Ok(routes)
    }

    /// Ends the route from `source` to `sink`, whoever has made it, as [`Route::end`] does; whether its message had ended. For what an earlier
    /// owner of the card has left, and for who manages a card. An error if the sink takes nothing from this source, and for a function that is
    /// attached, which is no route.
    pub fn cut(&self, source: Port, sink: Port) -> Result<bool> {
        self.check_process()?;
        if let Port::Function(_) = source {
            return Err(Error::Invalid(format!(
                "{source} is attached to {sink}, which is no route; it ends with the program that has attached it"
            )));
        }
        {
            let mut owned = lock(&self.routes);
            if self.look_at(sink)?.1 != Some(source) {
                return Err(Error::Invalid(format!("no route leads from {source} to {sink}")));
            }
            // Values that stand for it have no effect any more.
            owned.forget(sink);
            self.write_card(VIA_CARD_ROUTE_SOURCE, 0)?;
        }
        self.end_between(source, sink)
    }

    /// Streams of each slot that routes and functions reach, from 0 on.
    pub(crate) fn route_streams(&self) -> Result<usize> {
        if self.info().version.1 < SINCE {
            return Ok(1);
        }
        let state = self.read_card(VIA_CARD_ROUTE_STATE)?;
        Ok(((state & VIA_CARD_ROUTE_STATE_STREAMS_MASK) >> VIA_CARD_ROUTE_STATE_STREAMS_LSB) as usize)
    }

    /// Whether something is still to change at a sink, and what it takes now.
    fn route_state(&self, sink: Port) -> Result<(bool, Option<Port>)> {
        let _one_at_a_time = lock(&self.routes);
        self.look_at(sink)
    }

    fn look_at(&self, sink: Port) -> Result<(bool, Option<Port>)> {
        self.write_card(VIA_CARD_ROUTE_SINK, sink.encoded())?;
        let state = self.read_card(VIA_CARD_ROUTE_STATE)?;
        Ok((state & VIA_CARD_ROUTE_STATE_PENDING_MASK != 0, Port::decoded(state)?))
    }

    /// Sets the route to a sink; the source that it took by a route until then.
    fn set_route(&self, source: Option<Port>, sink: Port, when: When) -> Result<Option<Port>> {
        let _one_at_a_time = lock(&self.routes);
        let (_, before) = self.look_at(sink)?;
        let before = before.filter(|port| !matches!(port, Port::Function(_)));
        let now = if when == When::Now { VIA_CARD_ROUTE_SOURCE_NOW_MASK } else { 0 };
        self.write_card(VIA_CARD_ROUTE_SOURCE, source.map_or(0, Port::encoded) | now)?;
        Ok(before)
    }

    /// Waits until a sink takes what was set last: whether it is this source; `None` if it has not come to that.
    fn settled(&self, sink: Port, source: Port) -> Result<Option<bool>> {
        poll(self.timeouts().control, || {
            let (pending, taken) = self.route_state(sink)?;
            Ok((!pending).then_some(taken == Some(source)))
        })
    }

    /// Ends a route, unless its sink has got another one since; whether the message on it has ended by itself.
    fn end_route(&self, route: &Route) -> Result<bool> {
        let (source, sink) = (route.source, route.sink);
        if !lock(&self.routes).disown(sink, route.number) {
            return Ok(true);
        }
        self.end_between(source, sink)
    }

    /// Lets a sink take nothing from a source any more; whether the message between them has ended by itself.
    fn end_between(&self, source: Port, sink: Port) -> Result<bool> {
        // Also if the sink does not take the source now: the route is to be gone in any case.
        self.set_route(None, sink, When::Between)?;
        let taken = || self.route_state(sink).map(|(pending, taken)| (pending, taken == Some(source)));
        if poll(GRACE.min(self.timeouts().control), || Ok((taken()? == (false, false)).then_some(())))?
            .is_some()
        {
            return Ok(true);
        }
        // The message does not end: it is cut short.
        self.set_route(None, sink, When::Now)?;
        let (slot, after) = (sink.slot().or(source.slot()).unwrap_or(0), self.timeouts().control);
        match poll(after, || Ok((!taken()?.1).then_some(false)))? {
            Some(by_itself) => Ok(by_itself),
            None => {
                Err(Error::Stalled { slot, what: format!("ending the route from {source} to {sink}"), after })
            }
        }
    }
}

/// The routes that values of this program stand for.
#[derive(Debug, Default)]
pub(super) struct Owned {
    /// By sink: the number of its route.
    numbers: HashMap<Port, u64>,
    last: u64,
}

impl Owned {
    /// A new route to a sink, in place of an earlier one; its number.
    fn owned(&mut self, sink: Port) -> u64 {
        self.last += 1;
        self.numbers.insert(sink, self.last);
        self.last
    }

    /// No value stands for a sink's route any more.
    fn forget(&mut self, sink: Port) {
        self.numbers.remove(&sink);
    }

    /// Whether this is still the sink's route, which it is no longer then.
    fn disown(&mut self, sink: Port, number: u64) -> bool {
        let is_its = self.numbers.get(&sink) == Some(&number);
        if is_its {
            self.numbers.remove(&sink);
        }
        is_its
    }
}

/// How long the end of a route waits for the end of the message on it.
const GRACE: std::time::Duration = std::time::Duration::from_millis(100);

/// A route of [`Card::route`]. It ends when the value is dropped, between two messages; a message that does not end within 100 ms is
/// cut short.
pub struct Route {
    card: Arc<Card>,
    source: Port,
    sink: Port,
    /// Among all routes of this program.
    number: u64,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("source", &self.source)
            .field("sink", &self.sink)
            .finish_non_exhaustive()
    }
}

impl Route {
    /// Where it comes from.
    pub fn source(&self) -> Port {
        self.source
    }

    /// Where it goes to.
    pub fn sink(&self) -> Port {
        self.sink
    }

    /// Whether it is in effect: it ends with the app at either end, and when its sink gets another source.
    pub fn is_in_effect(&self) -> Result<bool> {
        Ok(self.card.route_state(self.sink)?.1 == Some(self.source))
    }

    /// Lets it last without this value: until the app at either end ends, its sink gets another source, or [`Card::cut`].
    pub fn leave(self) {
        // Dropped, it is another one's by then.
        lock(&self.card.routes).disown(self.sink, self.number);
    }

    /// Ends it, as dropping it does; whether its message had ended. Otherwise a message was cut short, or what the sink does not accept
    /// is still held for it.
    pub fn end(self) -> Result<bool> {
        self.card.end_route(&self)
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        if !self.card.is_ours() {
            return;
        }
        if let Err(error) = self.card.end_route(self) {
            tracing::warn!(%error, source = %self.source, sink = %self.sink, "a route could not be ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_of_a_route_is_read_from_what_is_written() {
        let stream = |slot, stream| Port::Stream { slot, stream };
        let ends =
            [stream(0, 0), stream(15, 3), Port::Board(FunctionKind::Net), Port::Function(FunctionKind::Blk)];
        for end in ends {
            assert_eq!(end.to_string().parse::<Port>().unwrap(), end);
        }
        assert_eq!("slot:2".parse::<Port>().unwrap(), stream(2, 0));
        for wrong in [
            "",
            "slot",
            "slot:",
            "slot:x",
            "slot:16",
            "slot:1:16",
            "slot:-1",
            "slot:1:2:3",
            "board:eth",
            "net",
        ] {
            assert!(
                wrong.parse::<Port>().unwrap_err().to_string().contains("no end of a route"),
                "{wrong:?}"
            );
        }
    }
}
