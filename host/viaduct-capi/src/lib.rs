// SPDX-License-Identifier: Apache-2.0
//! The host library for C and languages that can call C.
//!
//! `include/viaduct.h` is the reference; functions have the same names there. A call looks up its handle
//! ([`handle`]), does its work in safe Rust, and converts the result to a code and a text ([`error`]). Panics are caught.
#![deny(missing_docs)]

mod args;
mod cancel;
mod card;
mod connection;
mod error;
mod handle;
mod mapping;
mod memory;
mod numbers;
mod pending;
mod process;
mod run;
mod slot;
mod types;
