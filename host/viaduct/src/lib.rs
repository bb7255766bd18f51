// SPDX-License-Identifier: Apache-2.0
//! Host library of Viaduct.
#![deny(missing_docs)]

pub mod regs;
