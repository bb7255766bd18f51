// SPDX-License-Identifier: Apache-2.0
//! The driver's side of a queue, with a split or packed ring.

use std::sync::Arc;

use viaduct_pci::PciFunction;

use crate::packed::Packed;
use crate::ring::{Buffer, QueueOptions, Used};
use crate::split::Split;
use crate::{Result, VirtioError};

pub(crate) enum Ring {
    Split(Split),
    Packed(Packed),
}

/// The driver's side of a queue. For one thread at a time.
pub struct Queue {
    pub(crate) function: Arc<dyn PciFunction>,
    pub(crate) index: u16,
    pub(crate) doorbell: (u8, u64),
    pub(crate) vector: Option<u16>,
    pub(crate) options: QueueOptions,
    pub(crate) ring: Ring,
    pub(crate) kicks: u64,
}

impl Queue {
    /// Number of the queue on its device.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// MSI-X vector of the queue, if it has one.
    pub fn vector(&self) -> Option<u16> {
        self.vector
    }

    /// Notifications sent so far.
    pub fn kicks(&self) -> u64 {
        self.kicks
    }

    /// Chains that the device still owns.
    pub fn open(&self) -> usize {
        match &self.ring {
            Ring::Split(r) => r.open(),
            Ring::Packed(r) => r.open(),
        }
    }

    /// From now on takes the descriptor returned first, instead of the one returned last as Linux does. Only split rings
    /// without IN_ORDER leave the choice.
    pub fn take_oldest(&mut self) {
        match &mut self.ring {
            Ring::Split(r) => r.take_oldest(),
            Ring::Packed(_) => {}
        }
    }

    /// Offers a chain: readable buffers first, then writable ones. [`Queue::kick`] notifies the device, which may find the
    /// chain before. Returns whether there was space; `token` is returned with the used chain.
    pub fn add(&mut self, chain: &[Buffer], token: u64) -> Result<bool> {
        let most = match &self.ring {
            Ring::Split(r) => r.place.size,
            Ring::Packed(r) => r.place.size,
        };
        let ordered = chain.windows(2).all(|w| w[1].writable || !w[0].writable);
        if chain.is_empty() || chain.len() > usize::from(most) || chain.iter().any(|b| b.len == 0) || !ordered
        {
            return Err(VirtioError::Argument(format!(
                "a chain has 1 to {most} buffers that are not empty, readable ones first"
            )));
        }
        Ok(match &mut self.ring {
            Ring::Split(r) => r.add(chain, token),
            Ring::Packed(r) => r.add(chain, token),
        })
    }

    /// Makes added chains available without a notification. Returns whether the device requests one.
    pub fn publish(&mut self) -> bool {
        match &mut self.ring {
            Ring::Split(r) => r.publish(),
            Ring::Packed(r) => r.publish(),
        }
    }

    /// Makes added chains available and notifies the device if it requests that. Returns whether it did.
    pub fn kick(&mut self) -> Result<bool> {
        let notify = self.publish();
        if notify {
            let (bar, offset) = self.doorbell;
            if self.options.notification_data {
                let state = match &self.ring {
                    Ring::Split(r) => r.position(),
                    Ring::Packed(r) => r.position(),
                };
                let word = u32::from(self.index) | u32::from(state) << 16;
                self.function.write(bar, offset, &word.to_le_bytes())?;
            } else {
                self.function.write(bar, offset, &self.index.to_le_bytes())?;
            }
            self.kicks += 1;
        }
        Ok(notify)
    }

    /// The next used chain.
    pub fn used(&mut self) -> Result<Option<Used>> {
        let found = match &mut self.ring {
            Ring::Split(r) => r.used(),
            Ring::Packed(r) => r.used(),
        };
        found.map_err(|id| VirtioError::BadUsed { queue: self.index, id })
    }

    /// Requests an interrupt at the next used chain. Returns whether one is there already, so that the caller must not wait.
    pub fn arm(&mut self) -> bool {
        match &mut self.ring {
            Ring::Split(r) => r.arm(),
            Ring::Packed(r) => r.arm(),
        }
    }

    /// Disables interrupts (a hint: one may still occur).
    pub fn disarm(&mut self) {
        match &mut self.ring {
            Ring::Split(r) => r.disarm(),
            Ring::Packed(r) => r.disarm(),
        }
    }
}
