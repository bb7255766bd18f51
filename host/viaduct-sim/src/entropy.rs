// SPDX-License-Identifier: Apache-2.0
//! What feeds the entropy function's port of the board.

use crate::ffi;
use crate::kinds::ENTROPY;

/// Source of the entropy function's random numbers.
#[derive(Debug)]
pub enum Entropy {
    /// A generator with this state: the same numbers every time, not secret.
    Seeded(u64),
    /// The operating system's source.
    System,
}

impl Default for Entropy {
    fn default() -> Self {
        Self::Seeded(0x5649_4144_5543_5421)
    }
}

impl Entropy {
    /// Bytes supplied at a time and kept in reserve: far more than the source delivers between two refills.
    const BLOCK: usize = 4096;

    /// Refills the card's entropy source.
    pub(crate) fn supply(&mut self, card: &mut ffi::Card) {
        let source = ENTROPY as u32;
        let mut block = [0; Self::BLOCK];
        while card.port_room(source) > ffi::PORT_QUEUE - Self::BLOCK {
            if let Err(error) = self.fill(&mut block) {
                tracing::error!(%error, "no random numbers from the operating system");
                return;
            }
            if let Err(failure) = card.port_send(source, 0, &block) {
                tracing::error!(why = failure.why, "the entropy source accepts no data");
                return;
            }
        }
    }

    fn fill(&mut self, block: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Seeded(state) => {
                for word in block.chunks_mut(8) {
                    word.copy_from_slice(&split_mix(state).to_le_bytes()[..word.len()]);
                }
                Ok(())
            }
            Self::System => {
                let mut done = 0;
                while done < block.len() {
                    let rest = &mut block[done..];
                    // SAFETY: the buffer is local and has the stated length.
                    let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
                    match usize::try_from(got) {
                        Ok(got) => done += got,
                        Err(_) => {
                            let error = std::io::Error::last_os_error();
                            if error.kind() != std::io::ErrorKind::Interrupted {
                                return Err(error);
                            }
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
