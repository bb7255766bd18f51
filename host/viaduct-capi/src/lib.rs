// SPDX-License-Identifier: Apache-2.0
//! The host library for C and every language that calls C.
//!
//! `include/viaduct.h` is the reference; each function here is the one of the same name there. A call looks its handle up
//! ([`handle`]), does its work in safe Rust, and turns the outcome into a code and a text ([`error`]). No panic leaves it.
#![deny(missing_docs)]

mod args;
mod card;
mod error;
mod handle;
mod mapping;
mod process;
mod run;
mod slot;
mod types;
