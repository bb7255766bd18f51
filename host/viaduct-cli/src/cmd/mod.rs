// SPDX-License-Identifier: Apache-2.0
//! One module per command.

pub mod bench;
pub mod build;
pub mod card;
pub mod completions;
pub mod doctor;
pub mod graph;
pub mod info;
pub mod loopback;
pub mod ls;
pub mod man;
pub mod new;
pub mod reset;
pub mod route;
pub mod run;
pub mod sched;
pub mod test;
pub mod top;
pub mod vm;
pub mod wave;
