// SPDX-License-Identifier: Apache-2.0
//! What a program needs around its work: standard streams, lines for the user, signals.

#[macro_use]
pub mod tell;

pub mod closed;
pub mod signals;
