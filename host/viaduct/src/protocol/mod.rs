// SPDX-License-Identifier: Apache-2.0
//! What the library and the card say to each other: registers, descriptors, rings (docs/interfaces.md).

pub mod desc;
pub mod regs;
pub mod ring;
