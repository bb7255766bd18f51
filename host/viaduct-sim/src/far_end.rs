// SPDX-License-Identifier: Apache-2.0
//! The far end of the Ethernet line, if it is part of the simulation.
//!
//! A cable to the operating system has threads, and how fast they are decides when a frame comes. What is connected here is asked by the
//! thread that runs the card, often enough that the line never waits for it: the same frames come in the same cycles every time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::ffi;
use crate::kinds::NET;

/// Longest frame that a line carries at all, in bytes without FCS: the port drops those that are longer than it is set to.
pub const LONGEST_SENT: usize = 64 << 10;

/// What is known of a frame for the port besides its bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameInfo {
    /// The first bit is not on the line before this time has passed since the first frame could come.
    pub after: Duration,
    /// Its frame check sequence is wrong: the port drops it.
    pub damaged: bool,
}

/// Where the frames to the card come from.
pub trait FrameSource: Send {
    /// Puts the next frame, as it is on the line but without FCS, into `frame`, which is empty; 1 byte to [`LONGEST_SENT`]. `None`: there
    /// are no more. Called with the card locked, which stands still meanwhile.
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<FrameInfo>;
}

/// Where the frames from the card go.
pub trait FrameSink: Send {
    /// A frame without FCS, whose last bit was on the line `sent` after power-up, in the card's time. Called with the card locked.
    fn put(&mut self, frame: &[u8], sent: Duration);
    /// No more frames come. Called with the card locked.
    fn end(&mut self) {}
}

/// The far end of a line, in the state of the card.
pub(crate) struct FarEnd {
    source: Box<dyn FrameSource>,
    sink: Box<dyn FrameSink>,
    frame: Vec<u8>,
    /// What `frame` holds, if it waits for space.
    held: Option<FrameInfo>,
    /// When the first frame may come, in picoseconds; `None`: nobody takes frames from the port yet.
    begin_ps: Option<u64>,
    over: Arc<AtomicBool>,
}

impl FarEnd {
    /// A far end, and whether its source has no more frames and the port has been handed all of them.
    pub fn new(
        source: impl FrameSource + 'static,
        sink: impl FrameSink + 'static,
    ) -> (Self, Arc<AtomicBool>) {
        let over = Arc::new(AtomicBool::new(false));
        let far_end = Self {
            source: Box::new(source),
            sink: Box::new(sink),
            frame: Vec::with_capacity(ffi::MAX_PACKET),
            held: None,
            begin_ps: None,
            over: Arc::clone(&over),
        };
        (far_end, over)
    }

    /// Passes frames on in both directions, as many as there are and there is space for. The first frame comes as soon as somebody takes
    /// frames from the port: `taken`.
    pub fn pump(&mut self, card: &mut ffi::Card, packet: &mut [u8; ffi::MAX_PACKET], taken: bool) {
        const PORT: u32 = NET as u32;
        if self.begin_ps.is_none() && taken {
            self.begin_ps = Some(card.now_ps());
        }
        while let Some((_, sent_ps, len)) = card.port_receive(PORT, packet) {
            self.sink.put(&packet[..len], Duration::from_nanos(sent_ps / 1000));
        }
        let Some(begin) = self.begin_ps else { return };
        while !self.over.load(Ordering::Relaxed) {
            if self.held.is_none() {
                self.frame.clear();
                self.held = self.source.next(&mut self.frame);
            }
            let Some(info) = self.held else {
                self.over.store(true, Ordering::Release);
                return;
            };
            let after = u64::try_from(info.after.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
            let flags = ffi::FRAME_AS_IS | if info.damaged { ffi::FRAME_BAD_FCS } else { 0 };
            match card.port_send_at(PORT, begin.saturating_add(after), flags, &self.frame) {
                Ok(()) => self.held = None,
                Err(failure) if failure.errno == libc::EAGAIN => return,
                // A frame without bytes, or one that is too long: the source does not keep to what it should.
                Err(failure) => {
                    tracing::error!(why = failure.why, "a frame for the Ethernet port is left out");
                    self.held = None;
                }
            }
        }
    }

    /// No more frames pass.
    pub fn end(mut self) {
        self.sink.end();
    }
}
