// SPDX-License-Identifier: Apache-2.0
//! What those may do who manage the card: root and the owner of the daemon all of it, another user what concerns slots of their own.

use std::sync::Arc;

use rustix::io::Errno;
use viaduct::{Error, Port, Schedule};

use crate::open::{Open, Visit, alone};
use crate::overview::Overview;
use crate::wire::{Kind, Refusal, Reply, Request};

type Result<T = Reply> = std::result::Result<T, Refusal>;

/// A connection that manages the card.
pub(crate) struct Manager {
    /// Number of the connection, for messages.
    client: u64,
    uid: u32,
    /// It may manage all slots.
    all: bool,
    overview: Arc<Overview>,
}

impl Manager {
    /// For a connection of a user.
    pub fn new(client: u64, uid: u32, all: bool, overview: Arc<Overview>) -> Self {
        Self { client, uid, all, overview }
    }

    /// Does what a request asks for.
    pub fn handle(&self, request: Request) -> Result {
        if let Request::Look = request {
            return Ok(Reply::View(self.overview.view((!self.all).then_some(self.uid))?));
        }
        let done = self.change(request);
        // Also after an error: some of it may have been done.
        self.overview.changed();
        done
    }

    fn change(&self, request: Request) -> Result {
        match request {
            Request::Schedule { index, schedule } => self.schedule(index, &schedule),
            Request::Pause { index, paused } => {
                self.visit(index)?.set_paused(paused, self.all)?;
                tracing::info!(
                    client = self.client,
                    uid = self.uid,
                    slot = index,
                    paused,
                    "slot paused, or not"
                );
                Ok(Reply::Done)
            }
            Request::End { index } => self.end(index),
            Request::Route { source, sink } => self.route(source.parse()?, sink.parse()?),
            Request::Cut { sink } => self.cut(sink.parse()?),
            _ => {
                let text = "this connection manages the card; another one uses it";
                Err(Refusal::new(Kind::Card, Errno::INVAL.raw_os_error(), text.into()))
            }
        }
    }

    /// A slot in use that this user may manage.
    fn slot(&self, index: u32) -> Result<Arc<Open>> {
        let (slot, slots) = (index as usize, self.overview.card.info().slots);
        if slot >= slots {
            return Err(Error::NoSuchSlot { slot, last: slots - 1 }.into());
        }
        let open = self.overview.slot(slot).filter(|open| open.is_open());
        let open = open.ok_or_else(|| unused(index))?;
        if self.all || open.uid == self.uid {
            return Ok(open);
        }
        let text = format!(
            "slot {index} is another user's; its user may do that, and root, and the owner of the daemon"
        );
        Err(Refusal::new(Kind::Access, Errno::PERM.raw_os_error(), text))
    }

    fn visit(&self, index: u32) -> Result<Visit> {
        self.slot(index)?.visit().ok_or_else(|| unused(index))
    }

    fn schedule(&self, index: u32, text: &str) -> Result {
        let schedule: Schedule = text.parse()?;
        let visit = self.visit(index)?;
        schedule.check(&self.overview.card)?;
        visit.set_schedule(&schedule, self.all)?;
        self.overview.keep_up(&schedule)?;
        tracing::info!(client = self.client, uid = self.uid, slot = index, %schedule, "slot scheduled");
        Ok(Reply::Done)
    }

    fn end(&self, index: u32) -> Result {
        let open = self.slot(index)?;
        let text =
            format!("slot {index} was ended by user {}, who manages the card; open another one", self.uid);
        let refusal = Refusal::new(Kind::Ended, Errno::CANCELED.raw_os_error(), text);
        let running = open.end(refusal).ok_or_else(|| unused(index))?;
        tracing::warn!(client = self.client, uid = self.uid, of = open.client, slot = index, "slot ended");
        // Its app does nothing from now on, whatever its client's requests are at.
        if let Err(error) = running.slot.stop() {
            tracing::warn!(%error, slot = index, "an app could not be stopped; its slot is closed nevertheless");
        }
        match alone(running, self.overview.card.timeouts().control) {
            Some(running) => running.slot.close().map(|()| Reply::Done).map_err(|error| {
                let text =
                    format!("slot {index} has ended, and its client's changes are lost in part: {error}");
                Refusal::new(Kind::Card, error.errno(), text)
            }),
            None => {
                let text = format!(
                    "slot {index}: its app is stopped, but a request of its client is still under way, for a slow file \
                     most likely; the slot is free when that has ended"
                );
                Err(Refusal::new(Kind::Card, Errno::INPROGRESS.raw_os_error(), text))
            }
        }
    }

    /// Keeps the slot of an end from becoming another client's, after a check that this user may use the end.
    fn hold(&self, port: Port) -> Result<Option<Visit>> {
        match port {
            Port::Stream { slot, .. } => self.visit(slot as u32).map(Some),
            Port::Board(_) | Port::Function(_) if self.all => Ok(None),
            Port::Board(_) | Port::Function(_) => {
                let text = format!("{port}: root and the owner of the daemon may use it");
                Err(Refusal::new(Kind::Access, Errno::PERM.raw_os_error(), text))
            }
        }
    }

    fn route(&self, source: Port, sink: Port) -> Result {
        let _held = (self.hold(source)?, self.hold(sink)?);
        // Until an app at one end of it ends, as every route has a slot: with the last client none is left.
        self.overview.card.route(source, sink)?.leave();
        tracing::info!(client = self.client, uid = self.uid, %source, %sink, "route made");
        Ok(Reply::Done)
    }

    fn cut(&self, sink: Port) -> Result {
        let card = &self.overview.card;
        let found = card.routes()?.into_iter().find(|(_, to)| *to == sink).map(|(source, _)| source);
        // Without a right to the sink nothing is told about it, and one to the source is enough.
        let _held = match (self.hold(sink), found.filter(|source| source.slot().is_some())) {
            (Ok(held), _) => held,
            (Err(refusal), None) => return Err(refusal),
            (Err(refusal), Some(source)) => self.hold(source).map_err(|_| refusal)?,
        };
        let Some(source) = found else {
            let text = format!("{sink}: no route leads there");
            return Err(Refusal::new(Kind::Card, Errno::NOENT.raw_os_error(), text));
        };
        card.cut(source, sink)?;
        tracing::info!(client = self.client, uid = self.uid, %source, %sink, "route cut");
        Ok(Reply::Done)
    }
}

fn unused(index: u32) -> Refusal {
    Refusal::new(Kind::Card, Errno::NOENT.raw_os_error(), format!("slot {index}: no client uses it"))
}
