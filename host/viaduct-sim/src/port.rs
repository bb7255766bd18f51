// SPDX-License-Identifier: Apache-2.0
//! The host's side of a function's board port: the far end of its Ethernet cable or UART, its keys.

use std::sync::Arc;
use std::time::Duration;

use viaduct_pci::{PciError, Result};

use crate::card::{SimCard, State, Want, gone};
use crate::kinds::ENTROPY;

/// A packet from a board port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Id of its stream; the console's port.
    pub channel: u8,
    /// A frame without FCS, or bytes.
    pub data: Vec<u8>,
}

/// One end of a cable in a board port, made by [`SimCard::port`]. Without a cable the output of the port is
/// dropped.
pub struct BoardPort {
    card: Arc<SimCard>,
    function: u32,
}

impl SimCard {
    /// Plugs a cable into the board port of function `number`. `None` if the board has no such port, or a cable is
    /// plugged in already.
    pub fn port(self: &Arc<Self>, number: usize) -> Option<BoardPort> {
        self.claim(number).then(|| BoardPort { card: Arc::clone(self), function: number as u32 })
    }

    /// Takes the board port of function `number` for a cable; `false` if there is none, or it is taken.
    pub(crate) fn claim(&self, number: usize) -> bool {
        let mut state = self.enter();
        let Some(function) = u32::try_from(number).ok().filter(|n| (*n as usize) < state.pending.len())
        else {
            return false;
        };
        // An empty packet is refused only if the port does not exist.
        let response = state.card.port_send(function, 0, &[]);
        let exists = number != ENTROPY && response.is_err_and(|failure| failure.errno == libc::EMSGSIZE);
        let free = exists && state.claimed >> function & 1 == 0;
        if free {
            state.claimed |= 1 << function;
            self.leave(state);
        }
        free
    }

    /// Undoes [`SimCard::claim`].
    pub(crate) fn release(&self, number: usize) {
        let mut state = self.enter();
        state.claimed &= !(1 << number);
        self.leave(state);
    }
}

impl BoardPort {
    /// Sends a packet, waiting up to `timeout` for space: a whole frame (14 to 9234 bytes, without FCS), up to 64 KiB
    /// for the console, or events of 8 bytes.
    pub fn send(&self, channel: u8, data: &[u8], timeout: Duration) -> Result<()> {
        if self.try_send(channel, data)? {
            return Ok(());
        }
        self.card.wait(Want::Room(self.function, data.len()), timeout, |state| {
            state.card.port_send(self.function, channel, data).map_err(gone)
        })
    }

    /// As [`BoardPort::send`], without waiting; `false` if there is no space.
    pub fn try_send(&self, channel: u8, data: &[u8]) -> Result<bool> {
        let mut state = self.card.enter();
        let sent = state.card.port_send(self.function, channel, data);
        self.card.leave(state);
        match sent {
            Ok(()) => Ok(true),
            Err(failure) if failure.errno == libc::EAGAIN => Ok(false),
            Err(failure) if failure.errno == libc::EMSGSIZE => {
                Err(PciError::OutOfRange { what: format!("a packet of {} bytes", data.len()) })
            }
            Err(failure) => Err(gone(failure)),
        }
    }

    /// Waits up to `timeout` for the next packet from the card.
    pub fn receive(&self, timeout: Duration) -> Result<Packet> {
        self.card.wait(Want::Packet(self.function), timeout, |state| {
            take(state, self.function).ok_or_else(|| PciError::Gone("the packet vanished".into()))
        })
    }
}

fn take(state: &mut State, function: u32) -> Option<Packet> {
    let (channel, _, len) = state.card.port_receive(function, &mut state.packet)?;
    Some(Packet { channel, data: state.packet[..len].to_vec() })
}

impl Drop for BoardPort {
    fn drop(&mut self) {
        self.card.release(self.function as usize);
    }
}
