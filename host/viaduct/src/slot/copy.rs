// SPDX-License-Identifier: Apache-2.0
//! Copies between memory of this program and card memory that it has allocated: in one piece, in rows, or a word.
//!
//! The card copies whole beats of card memory, the last one of a command in part. Rows that begin at beats are copied by a command each, many
//! of them with one doorbell. Otherwise what is to change is read, changed here, and written back.

use std::collections::VecDeque;

use crate::card::CardBuffer;
use crate::card::dma::DmaBuffer;
use crate::card::sync::lock;
use crate::dispatch::Tag;
use crate::error::{Error, Result};
use crate::protocol::desc::Command;
use crate::slot::Slot;
use viaduct_pci::DmaAccess;

/// Bytes of host memory that the commands of one batch use.
const BATCH: u64 = 512 << 10;
/// Batches in flight.
const BATCHES: u64 = 4;
/// Commands of a batch, at most: they wait in the ring together.
const COMMANDS: usize = 128;

/// A block of two dimensions: rows of the same length, a step apart in card memory, and another one in host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Bytes of a row.
    pub bytes: u64,
    /// How many there are.
    pub rows: u64,
    /// Bytes from the beginning of one row to that of the next in card memory; at least `bytes`.
    pub card_step: u64,
    /// The same in host memory.
    pub host_step: u64,
}

impl Rows {
    /// One row.
    pub fn one(bytes: u64) -> Self {
        Self { bytes, rows: 1, card_step: bytes, host_step: bytes }
    }

    /// The same as one row, if the rows are one behind the other on both sides; none without bytes.
    fn joined(self) -> Self {
        match self {
            Self { bytes: 0, .. } => Self { rows: 0, ..self },
            Self { bytes, rows, card_step, host_step } if card_step == bytes && host_step == bytes => {
                Self::one(bytes * rows)
            }
            _ => self,
        }
    }

    /// Bytes from the first to the last one in host memory.
    pub fn host_bytes(&self) -> Result<u64> {
        self.span(self.host_step)
    }

    /// Bytes from the first to the last one, with this step.
    fn span(&self, step: u64) -> Result<u64> {
        let Self { bytes, rows, .. } = *self;
        let none = rows == 0 || bytes == 0;
        if !none && rows > 1 && step < bytes {
            return Err(Error::Invalid(format!("rows of {bytes} bytes do not fit into steps of {step}")));
        }
        let span =
            if none { Some(0) } else { (rows - 1).checked_mul(step).and_then(|s| s.checked_add(bytes)) };
        span.ok_or_else(|| Error::Invalid(format!("{rows} rows with steps of {step} bytes are too long")))
    }
}

/// A part of a row: offsets from the first byte in card and in host memory, and bytes.
#[derive(Clone, Copy)]
struct Piece {
    card: u64,
    host: u64,
    bytes: u64,
}

/// Commands that were submitted together, and where their bytes are in the staging memory.
struct Batch {
    tags: Vec<Tag>,
    pieces: Vec<(Piece, u64)>,
}

impl Slot {
    /// Copies bytes to card memory, from `offset` of `to` on. They are there when this returns. The slot needs no app ([`Slot::open_space`]).
    ///
    /// A row that does not begin at a beat of the card ([`CardInfo::data_bytes`](crate::CardInfo)) is written with all of the beats it has a
    /// part of: an app must not write to these beats meanwhile. Other copies of this program may.
    pub fn copy_in(&self, to: &CardBuffer, offset: u64, bytes: &[u8]) -> Result<()> {
        self.copy_rows_in(to, offset, Rows::one(bytes.len() as u64), bytes)
    }

    /// Copies bytes from card memory, from `offset` of `from` on.
    pub fn copy_out(&self, from: &CardBuffer, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.copy_rows_out(from, offset, Rows::one(bytes.len() as u64), bytes)
    }

    /// As [`Slot::copy_in`], in rows: the first one is at the beginning of `bytes`, and goes to `offset`.
    pub fn copy_rows_in(&self, to: &CardBuffer, offset: u64, rows: Rows, bytes: &[u8]) -> Result<()> {
        let _call = self.call("copy to card memory");
        let addr = self.check_copy(to, offset, &rows, bytes.len())?;
        if self.is_aligned(addr, &rows) {
            return self.stream_rows(addr, rows, DmaAccess::Read, |staged, piece, at| {
                staged.memory().write(at as usize, part(bytes, piece));
            });
        }
        let _one_at_a_time = lock(&to.card().partial);
        self.each_region(addr, rows, |region, pieces| {
            let mut whole = vec![0; region.bytes as usize];
            self.read_whole(region, &mut whole)?;
            for piece in pieces {
                let at = (addr + piece.card - region.card) as usize;
                whole[at..at + piece.bytes as usize].copy_from_slice(part(bytes, *piece));
            }
            self.stream_rows(region.card, Rows::one(region.bytes), DmaAccess::Read, |staged, piece, at| {
                staged.memory().write(at as usize, part(&whole, piece));
            })
        })
    }

    /// As [`Slot::copy_out`], in rows: the first one comes from `offset`, and goes to the beginning of `bytes`. What is between rows in
    /// `bytes` stays as it is.
    pub fn copy_rows_out(&self, from: &CardBuffer, offset: u64, rows: Rows, bytes: &mut [u8]) -> Result<()> {
        let _call = self.call("copy from card memory");
        let addr = self.check_copy(from, offset, &rows, bytes.len())?;
        if self.is_aligned(addr, &rows) {
            return self.stream_rows(addr, rows, DmaAccess::Write, |staged, piece, at| {
                staged.memory().read(at as usize, part_mut(bytes, piece));
            });
        }
        self.each_region(addr, rows, |region, pieces| {
            let mut whole = vec![0; region.bytes as usize];
            self.read_whole(region, &mut whole)?;
            for piece in pieces {
                let at = (addr + piece.card - region.card) as usize;
                part_mut(bytes, *piece).copy_from_slice(&whole[at..at + piece.bytes as usize]);
            }
            Ok(())
        })
    }

    /// Reads a little-endian 32-bit word of card memory at `offset`, a multiple of 4.
    pub fn read_word(&self, from: &CardBuffer, offset: u64) -> Result<u32> {
        let mut word = [0; 4];
        check_word(offset)?;
        self.copy_out(from, offset, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    /// Writes a little-endian 32-bit word of card memory at `offset`, a multiple of 4; see [`Slot::copy_in`] about the beat it is in.
    pub fn write_word(&self, to: &CardBuffer, offset: u64, word: u32) -> Result<()> {
        check_word(offset)?;
        self.copy_in(to, offset, &word.to_le_bytes())
    }

    /// The card address of a copy that is inside the allocated memory and that of the program.
    fn check_copy(&self, memory: &CardBuffer, offset: u64, rows: &Rows, host: usize) -> Result<u64> {
        if !std::sync::Arc::ptr_eq(memory.card(), self.card()) {
            return Err(Error::Invalid("the card memory is of another card than the slot".into()));
        }
        let addr = memory.range(offset, rows.span(rows.card_step)?)?;
        let needed = rows.host_bytes()?;
        if needed > host as u64 {
            return Err(Error::Invalid(format!("the rows are in {needed} bytes, and {host} were given")));
        }
        Ok(addr)
    }

    fn is_aligned(&self, addr: u64, rows: &Rows) -> bool {
        let beat = self.card().info().data_bytes as u64;
        addr % beat == 0 && (rows.rows <= 1 || rows.card_step % beat == 0)
    }

    /// Copies rows that begin at beats. `carry` moves the bytes of a piece between staging memory, at an offset, and the program's: before the
    /// copy if the card reads the staging memory, else after it.
    fn stream_rows(
        &self,
        addr: u64,
        rows: Rows,
        access: DmaAccess,
        mut carry: impl FnMut(&DmaBuffer, Piece, u64),
    ) -> Result<()> {
        let beat = self.card().info().data_bytes as u64;
        let inward = matches!(access, DmaAccess::Read);
        let rows = rows.joined();
        if rows.rows == 0 {
            return Ok(());
        }
        let mut pieces = pieces(rows, BATCH).peekable();
        // Staging memory of a batch.
        let room = (rows.bytes.min(BATCH).next_multiple_of(beat) * rows.rows.min(COMMANDS as u64)).min(BATCH);
        let lanes = rows.bytes.next_multiple_of(beat).saturating_mul(rows.rows).div_ceil(room).min(BATCHES);
        let staged = self.card().dma_buffer(room * lanes, access)?;
        let mut flying: VecDeque<Batch> = VecDeque::new();
        let land = |batch: Batch, carry: &mut dyn FnMut(&DmaBuffer, Piece, u64)| -> Result<()> {
            for completion in self.wait(&batch.tags)? {
                self.inner.rings.check("copying card memory", &completion)?;
            }
            if !inward {
                batch.pieces.iter().for_each(|(piece, at)| carry(&staged, *piece, *at));
            }
            Ok(())
        };
        let mut lane = 0;
        let mut result = loop {
            if pieces.peek().is_none() {
                break Ok(());
            }
            if flying.len() as u64 == lanes
                && let Some(batch) = flying.pop_front()
                && let Err(error) = land(batch, &mut carry)
            {
                break Err(error);
            }
            let (mut batch, mut commands) = (Vec::new(), Vec::new());
            let (mut at, end) = (lane * room, (lane + 1) * room);
            while commands.len() < COMMANDS
                && let Some(piece) = pieces.next_if(|piece| at + piece.bytes <= end)
            {
                if inward {
                    carry(&staged, piece, at);
                }
                let (bus, card, len) = (staged.iova() + at, addr + piece.card, piece.bytes as u32);
                commands.push(match inward {
                    true => Command::h2c(bus, card, len),
                    false => Command::c2h(bus, card, len),
                });
                batch.push((piece, at));
                at += piece.bytes.next_multiple_of(beat);
            }
            lane = (lane + 1) % lanes;
            match self.submit(&commands) {
                Ok(tags) => flying.push_back(Batch { tags, pieces: batch }),
                Err(error) => break Err(error),
            }
        };
        while let Some(batch) = flying.pop_front() {
            match &result {
                Ok(()) => result = land(batch, &mut carry),
                // Their ends are waited for all the same: the card may be using the memory.
                Err(_) => {
                    if self.wait(&batch.tags).is_err() {
                        staged.retire();
                        break;
                    }
                }
            }
        }
        result
    }

    /// Calls `change` for regions of whole beats, at most about a batch each, with the pieces of rows inside.
    fn each_region(
        &self,
        addr: u64,
        rows: Rows,
        mut change: impl FnMut(Piece, &[Piece]) -> Result<()>,
    ) -> Result<()> {
        let beat = self.card().info().data_bytes as u64;
        let mut all = pieces(rows, BATCH).peekable();
        let mut group = Vec::new();
        while let Some(first) = all.next() {
            let start = (addr + first.card) / beat * beat;
            group.clear();
            group.push(first);
            let mut end = addr + first.card + first.bytes;
            while let Some(piece) = all.next_if(|piece| addr + piece.card + piece.bytes - start <= BATCH) {
                end = addr + piece.card + piece.bytes;
                group.push(piece);
            }
            let bytes = end.next_multiple_of(beat) - start;
            change(Piece { card: start, host: 0, bytes }, &group)?;
        }
        Ok(())
    }

    /// Reads a region of whole beats.
    fn read_whole(&self, region: Piece, whole: &mut [u8]) -> Result<()> {
        self.stream_rows(region.card, Rows::one(region.bytes), DmaAccess::Write, |staged, piece, at| {
            staged.memory().read(at as usize, part_mut(whole, piece));
        })
    }
}

/// The rows, in pieces of at most `most` bytes.
fn pieces(rows: Rows, most: u64) -> impl Iterator<Item = Piece> {
    let Rows { bytes, rows, card_step, host_step } = rows.joined();
    (0..rows).flat_map(move |row| {
        (0..bytes).step_by(most as usize).map(move |at| Piece {
            card: row * card_step + at,
            host: row * host_step + at,
            bytes: most.min(bytes - at),
        })
    })
}

fn part(bytes: &[u8], piece: Piece) -> &[u8] {
    &bytes[piece.host as usize..(piece.host + piece.bytes) as usize]
}

fn part_mut(bytes: &mut [u8], piece: Piece) -> &mut [u8] {
    &mut bytes[piece.host as usize..(piece.host + piece.bytes) as usize]
}

fn check_word(offset: u64) -> Result<()> {
    match offset % 4 {
        0 => Ok(()),
        _ => Err(Error::Invalid(format!("a word of card memory is at a multiple of 4, not at {offset:#x}"))),
    }
}
