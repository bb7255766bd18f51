// SPDX-License-Identifier: Apache-2.0
//! The Ethernet line of a simulated card: its link, and a far end that is part of the simulation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use viaduct_pci::{PciError, Result};

use crate::card::{SimCard, Want, gone};
use crate::far_end::{FarEnd, FrameSink, FrameSource};
use crate::kinds::NET;

/// State of the link of the Ethernet port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Connected.
    Up,
    /// Not connected: frames in both directions are lost, and counted.
    Down,
    /// A plug sends back what the card sends.
    Loop,
}

/// A line with a far end in the simulation, made by [`SimCard::line`]. Taken out when dropped.
pub struct Line {
    card: Arc<SimCard>,
    over: Arc<AtomicBool>,
}

impl SimCard {
    /// Connects the Ethernet port to a source and a sink of frames. The first frame comes when somebody takes frames from the port: a driver
    /// whose function is attached to it, or an app with a route from it. `None` if the card has no such port, or it is in use.
    pub fn line(
        self: &Arc<Self>,
        source: impl FrameSource + 'static,
        sink: impl FrameSink + 'static,
    ) -> Option<Line> {
        if !self.claim(NET) {
            return None;
        }
        let (far_end, over) = FarEnd::new(source, sink);
        let mut state = self.enter();
        state.far_end = Some(far_end);
        // An earlier route says nothing about who is there now.
        state.net_routed = false;
        self.leave(state);
        Some(Line { card: Arc::clone(self), over })
    }

    /// Sets the state of the Ethernet port's link. A frame is lost if the link was down at any time while it was on the line.
    pub fn set_link(&self, link: LinkState) -> Result<()> {
        let mut state = self.enter();
        let set = state.card.port_link(NET as u32, link as u32);
        self.leave(state);
        set.map_err(gone)
    }

    /// Runs the card for other threads until it is idle, at most for `limit` of this machine's time.
    pub(crate) fn run_for_others(&self, limit: Duration) -> Result<()> {
        match self.wait(Want::Nothing, limit, |_| Ok(())) {
            Err(PciError::Timeout(_)) => Ok(()),
            other => other,
        }
    }
}

impl Line {
    /// Whether the source has no more frames, and the port has been handed all of them.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut state = self.card.enter();
        state.pump_line();
        let far_end = state.far_end.take();
        state.claimed &= !(1 << NET);
        self.card.leave(state);
        if let Some(far_end) = far_end {
            far_end.end();
        }
    }
}
